"""Ticks of axes that count releases or times, which the papers number from 1."""

from collections.abc import Sequence
from typing import Any

from matplotlib.ticker import MaxNLocator


class TicksFromOne(MaxNLocator):
    """Ticks at whole numbers, with 1 in place of 0 and of what is below it.

    >>> [float(tick) for tick in TicksFromOne(nbins=5).tick_values(-1.5, 50.0)]
    [1.0, 20.0, 40.0, 60.0]
    """

    def __init__(self, nbins: Any = "auto"):
        super().__init__(nbins, steps=[1, 2, 5, 10], integer=True)

    def tick_values(self, vmin: float, vmax: float) -> Sequence[float]:
        above = [tick for tick in super().tick_values(vmin, vmax) if tick > 1.5]
        return [1.0, *above]
