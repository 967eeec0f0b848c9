"""Ticks of axes that count releases or times, which the papers number from 1."""

from typing import Any

import numpy as np
from matplotlib.ticker import MaxNLocator


class TicksFromOne(MaxNLocator):
    """Ticks at whole numbers, with 1 in place of 0 and of what is below it.

    >>> TicksFromOne(nbins=5).tick_values(-1.5, 50.0).tolist()
    [1.0, 20.0, 40.0, 60.0]
    """

    def __init__(self, nbins: Any = "auto"):
        super().__init__(nbins, steps=[1, 2, 5, 10], integer=True)

    def tick_values(self, vmin: float, vmax: float) -> np.ndarray:
        ticks = np.asarray(super().tick_values(vmin, vmax))
        above = ticks[ticks > 1.5]
        return np.append(1.0, above)
