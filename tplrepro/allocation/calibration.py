"""The largest budgets in given proportions that keep the leakage within a level, rounding errors included."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tplrepro.leakage.loss_function import PrivacyLossFunction
from tplrepro.leakage.temporal import temporal_privacy_leakage
from tplrepro.search import largest_within

__all__ = ["SAFETY", "NoFiniteSupremumError", "fit_to_level", "largest_equal_budgets"]

#: Relative margin below alpha: more than the rounding errors of one step of the recursion, of L and of their sum.
SAFETY = 32 * 2.0**-52
#: Neighbouring floats.
ULP = 2.0**-52


class NoFiniteSupremumError(ValueError):
    """No positive budget keeps the leakage bounded for ever: L(alpha) = alpha on one side, or as good as that."""


def fit_to_level(
    leakage: Callable[[np.ndarray], float],
    budgets: np.ndarray,
    alpha: float,
    tolerance: float = ULP,
    margin: float = 0.0,
) -> np.ndarray:
    """The budgets times the largest factor, to `tolerance`, whose largest leakage stays a rounding margin below alpha.

    The margin is a share of alpha: what a recursion needs, which grows with the number of budgets, or `margin` if that
    is more.
    """
    target = alpha * min(1.0 - 2.0 * SAFETY - budgets.size * 2.0**-50, 1.0 - margin)
    budgets = budgets * min(alpha / budgets.max(), 1.0)  # no budget exceeds the leakage

    def within(factor: float) -> bool:
        return leakage(factor * budgets) <= target

    # The first bracket is as wide as the leakage is far from its target, so that near budgets are fast.
    first = leakage(budgets)
    width = min(max(4.0 * abs(first / target - 1.0), 2.0**-50), 1.0)
    if first <= target:
        low, high = 1.0, 1.0 + width
        while within(high):
            width *= 2.0
            low, high = high, high + width
    else:
        low, high = max(1.0 - width, 0.5), 1.0
        while not within(low):
            width = min(2.0 * width, 1.0)
            low, high = max(low - width, 0.5 * low), low
    return largest_within(within, low, high, tolerance=tolerance) * budgets


def largest_equal_budgets(
    alpha: float, backward: PrivacyLossFunction | None, forward: PrivacyLossFunction | None, horizon: int
) -> np.ndarray:
    """The largest budget that, spent at each of `horizon` time points, keeps the TPL within alpha; (horizon,)."""
    return fit_to_level(
        lambda budgets: temporal_privacy_leakage(budgets, backward, forward).tpl.max(), np.full(horizon, alpha), alpha
    )
