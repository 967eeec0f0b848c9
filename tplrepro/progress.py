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

#: Seconds before a bar is drawn. Until then there is none: making one takes as long as a small
#: hull.
PATIENCE = 2.0
#: How bars look in a file: a line every ten seconds.
LINES: Any = {"bar_format": "{l_bar}{bar:20}{r_bar}\n", "mininterval": 10.0}


class Bar:
    """A tqdm bar over `total` units (None: unknown), drawn after `PATIENCE` seconds if `show`."""

    def __init__(self, total: int | None, description: str, unit: str, show: bool = True):
        self.n = 0
        self._settings = {"total": total, "desc": description, "unit": unit, "leave": False}
        self._drawn: Any = None
        self._from = inf
        if show and not os.environ.get("TQDM_DISABLE"):
            self._from = monotonic() + PATIENCE

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
            self._draw()

    def _draw(self) -> None:
        """Draw the bar into the file of the environment, in a notebook or on a terminal, if there
        is one."""
        log = os.environ.get("TPLREPRO_PROGRESS")
        if log:
            from tqdm.std import tqdm as tqdm_lines

            file = open(log, "a", encoding="utf-8")
            self._drawn = tqdm_lines(initial=self.n, **self._settings, file=file, **LINES)
        elif _is_in_notebook() or sys.stderr.isatty():
            from tqdm.auto import tqdm

            self._drawn = tqdm(initial=self.n, **self._settings)


def _is_in_notebook() -> bool:
    if "IPython" not in sys.modules:
        return False
    return hasattr(sys.modules["IPython"].get_ipython(), "kernel")


def with_progress(
    items: Iterable[Any],
    description: str,
    unit: str,
    *,
    total: int | None = None,
    size: Callable[[Any], int] = lambda item: 1,
    show: bool = True,
) -> Iterator[Any]:
    """The items, with a bar over them.

    Parameters
    ----------
    items : iterable
    description, unit : str
        What the bar says: what is done, and the noun of what it counts.
    total : int, optional
        By default the number of items, if they have one.
    size : callable
        How many units an item is, by default 1.
    show : bool
        Whether there is a bar.

    Returns
    -------
    iterator

    Examples
    --------
    >>> [*with_progress([3, 4], "squares", "number")]
    [3, 4]
    """
    if total is None and isinstance(items, Sized):
        total = len(items)
    with Bar(total, description, unit, show) as bar:
        for item in items:
            yield item
            bar.update(size(item))
