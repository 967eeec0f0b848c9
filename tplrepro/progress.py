"""The one progress bar of the package: on a terminal, if asked for."""

from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from typing import Any


def progress_bar(total: int | None, show: bool, description: str, unit: str):
    """A tqdm bar over `total` units (None: unknown); it draws nothing unless `show`, nor if stderr is no terminal."""
    if not show:
        return nullcontext(_NoBar())
    from tqdm import tqdm

    return tqdm(total=total, disable=None, desc=description, unit=unit, leave=False)


def with_bar(parts: Iterable[Any], total: int | None, description: str) -> Iterator[Any]:
    """Parts of a table, with a bar over its rows."""
    with progress_bar(total, True, description, "row") as bar:
        for part in parts:
            yield part
            bar.update(len(part))


class _NoBar:
    """What is used of a bar: making a tqdm bar that draws nothing takes as long as a small hull."""

    n = 0

    def update(self, count: int = 1) -> None:
        self.n += count
