"""w-event budgets: what a publication may spend within any w consecutive times, by absorption or by
distribution.

Kellaris, Papadopoulos, Xiao, Papadias: Differentially Private Event Sequences over Infinite
Streams, VLDB 2014. Half of epsilon, in w equal parts, pays for deciding at each time whether to
publish; the other half pays for publications. Budgets here are in units of epsilon / (2 w), so w
units may be spent in any window.
"""

from collections.abc import Callable

import numpy as np

#: Maps the units `spent` (runs, t) at earlier times and the window w to what each run may spend
#: now, (runs,).
WindowScheme = Callable[[np.ndarray, int], np.ndarray]


def by_absorption(spent: np.ndarray, window: int) -> np.ndarray:
    """Spend one unit per time, plus units left over from earlier times; after absorbing k extra
    units, skip k times."""
    runs, t = spent.shape
    if t == 0:
        return np.full(runs, min(1.0, window))
    has_published = (spent > 0).any(axis=1)
    times_of_spending = np.arange(t) * (spent > 0)
    last = np.where(has_published, times_of_spending.max(axis=1), -1)
    extra_units = np.maximum(spent[np.arange(runs), last] - 1.0, 0.0)
    return np.clip(t - last - extra_units, 0.0, window)


def by_distribution(spent: np.ndarray, window: int) -> np.ndarray:
    """Spend half of the units that are left in the window."""
    first_in_window = max(spent.shape[1] - window + 1, 0)
    spent_in_window = spent[:, first_in_window:].sum(axis=1)
    return (window - spent_in_window) / 2.0
