"""The largest budgets in given proportions that keep the leakage within a level, rounding errors included."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from tplrepro.leakage.loss_function import PrivacyLossFunction
from tplrepro.leakage.temporal import temporal_privacy_leakage

__all__ = ["SAFETY", "NoFiniteSupremumError", "fit_to_level", "largest_equal_budgets"]

#: Relative margin below alpha: more than the rounding errors of one step of the recursion, of L and of their sum.
SAFETY = 32 * 2.0**-52


class NoFiniteSupremumError(ValueError):
    """No positive budget keeps the leakage bounded for ever: L(alpha) = alpha on one side, or as good as that."""


def fit_to_level(
    leakage: Callable[[np.ndarray], float],
    budgets: np.ndarray,
    alpha: float,
    tolerance: float = 4.0 * 2.0**-52,
    margin: float = 0.0,
) -> np.ndarray:
    """The budgets times the largest factor, to `tolerance`, whose largest leakage stays a rounding margin below alpha.

    The margin is a share of alpha: what a recursion needs, which grows with the number of budgets, or `margin` if that
    is more.
    """
    from scipy.optimize import brentq  # far fewer leakages than a search by halves, but not on the safe side

    target = alpha * min(1.0 - 2.0 * SAFETY - budgets.size * 2.0**-50, 1.0 - margin)

    @cache
    def surplus(factor: float) -> float:
        return min(leakage(factor * budgets) / target, 2.0) - 1.0  # a root is not looked for from infinity

    largest = alpha / budgets.max()  # no budget exceeds the leakage
    low, high = min(1.0, largest), largest
    while surplus(low) > 0.0:
        low, high = 0.5 * low, low
    factor = brentq(surplus, low, high, xtol=tolerance * low, rtol=tolerance) if surplus(high) > 0.0 else high
    while surplus(factor) > 0.0:
        factor = max(factor * (1.0 - tolerance), low)
        tolerance *= 2.0
    return factor * budgets


def largest_equal_budgets(
    alpha: float, backward: PrivacyLossFunction | None, forward: PrivacyLossFunction | None, horizon: int
) -> np.ndarray:
    """The largest budget that, spent at each of `horizon` time points, keeps the TPL within alpha; (horizon,)."""
    return fit_to_level(
        lambda budgets: temporal_privacy_leakage(budgets, backward, forward).tpl.max(), np.full(horizon, alpha), alpha
    )
