"""The one progress bar of the packages: in a notebook or on a terminal, of what takes more than two
seconds.

In the environment, ``TQDM_DISABLE=1`` hides bars in notebooks, too, and ``TPLREPRO_PROGRESS`` names
a file for them.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sized
from math import inf
from time import monotonic
from typing import Any, Self

#: Seconds before a bar is drawn. Until then there is none: making one takes as long as a small hull.
PATIENCE = 2.0
# in a file: one every ten seconds
LINES: Any = {"bar_format": "{l_bar}{bar:20}{r_bar}\n", "mininterval": 10.0}


class Bar:
    """A tqdm bar over `total` units (None: unknown), drawn after `PATIENCE` seconds if `show`."""

    def __init__(self, total: int | None, description: str, unit: str, show: bool = True):
        self.n = 0
        self._settings = {"total": total, "desc": description, "unit": unit, "leave": False}
        self._drawn: Any = None
        self._from = monotonic() + PATIENCE if show and not os.environ.get("TQDM_DISABLE") else inf

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._drawn is not None:
            self._drawn.close()

    def update(self, count: int = 1) -> None:
        self.n += count
        if self._drawn is not None:
            self._drawn.update(count)
        elif self.n != self._settings["total"] and monotonic() > self._from:
            self._from = inf
            in_kernel = "IPython" in sys.modules and hasattr(
                sys.modules["IPython"].get_ipython(), "kernel"
            )
            log = os.environ.get("TPLREPRO_PROGRESS")
            if log or in_kernel or sys.stderr.isatty():
                from tqdm import auto, std

                look = {"file": open(log, "a", encoding="utf-8"), **LINES} if log else {}
                self._drawn = (std if log else auto).tqdm(initial=self.n, **self._settings, **look)


def with_progress(
    items: Iterable[Any],
    description: str,
    unit: str,
    *,
    total: int | None = None,
    size: Callable[[Any], int] = lambda item: 1,
    show: bool = True,
) -> Iterator[Any]:
    """The items, with a bar over them, or over their sizes; `total` is by default their number, if
    they have one.

    >>> [*with_progress([3, 4], "squares", "number")]
    [3, 4]
    """
    known = len(items) if total is None and isinstance(items, Sized) else total
    with Bar(known, description, unit, show) as bar:
        for item in items:
            yield item
            bar.update(size(item))
