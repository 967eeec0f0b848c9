"""Budgets within any w consecutive times: what a publication may spend, by absorption or by distribution.

Kellaris, Papadopoulos, Xiao, Papadias: Differentially Private Event Sequences over Infinite Streams, VLDB 2014. Half of
the level decides, a 2w-th at each time, whether the counts have changed enough to be published; the other half pays for
publications. Budgets are in units of epsilon / (2 w) here, so that w units may be spent in any window.
"""

from collections.abc import Callable

import numpy as np

__all__ = ["WindowScheme", "by_absorption", "by_distribution"]

#: What each run may spend now, (runs,) units, of those `spent` (runs, t) at the times before and the window w.
WindowScheme = Callable[[np.ndarray, int], np.ndarray]


def by_absorption(spent: np.ndarray, window: int) -> np.ndarray:
    """A unit a time, with those that the times before have not used; what is absorbed beyond one is waited for after.

    >>> by_absorption(np.array([[0.0, 0.0], [0.0, 2.0], [2.0, 0.0]]), 4).tolist()
    [3.0, 0.0, 1.0]
    """
    runs, t = spent.shape
    times = np.arange(t) * (spent > 0)
    last = np.where((spent > 0).any(axis=1), times.max(axis=1, initial=0), -1)
    waits = np.maximum(spent[np.arange(runs), last] - 1.0, 0.0) if t else np.zeros(runs)
    return np.clip(t - last - waits, 0.0, window)


def by_distribution(spent: np.ndarray, window: int) -> np.ndarray:
    """Half of what the window has left.

    >>> by_distribution(np.array([[0.0, 2.0], [2.0, 1.0]]), 2).tolist()
    [0.0, 0.5]
    """
    return (window - spent[:, max(spent.shape[1] - window + 1, 0) :].sum(axis=1)) / 2.0
