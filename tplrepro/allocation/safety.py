"""What all allocations share: the margin below alpha, and the largest budgets within it by bisection from below."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tplrepro.leakage.loss_function import PrivacyLossFunction
from tplrepro.leakage.quantification import temporal_privacy_leakage

__all__ = ["SAFETY", "NoFiniteSupremumError", "fit_to_level", "identity_message", "largest", "largest_equal"]

#: Relative margin below alpha: more than the rounding errors of one step of the recursion, of L and of their sum.
SAFETY = 32 * 2.0**-52
#: Bisection ends when two neighbouring floats are reached, at most 1,074 halvings from 1; this is a backstop.
MAX_ITERATIONS = 1100


class NoFiniteSupremumError(ValueError):
    """No positive budget keeps the leakage bounded for ever: L(alpha) = alpha on one side, or as good as that."""


def largest_equal(alpha: float, backward, forward, horizon: int) -> np.ndarray:
    """The largest budget that, spent at each of `horizon` time points, keeps the TPL within alpha; (horizon,)."""
    target = alpha * (1.0 - 2.0 * SAFETY)

    def within(epsilon: float) -> bool:
        return temporal_privacy_leakage(np.full(horizon, epsilon), backward, forward).tpl.max() <= target

    return np.full(horizon, largest(within, alpha, tolerance=SAFETY))


def largest(within: Callable[[float], bool], upper: float, tolerance: float = 0.0) -> float:
    """The largest float in (0, upper] that is `within` (monotone: true up to a point); 0 if none is."""
    if within(upper):
        return upper
    low, high = 0.0, upper
    for _ in range(MAX_ITERATIONS):
        middle = 0.5 * (low + high)
        if middle in (low, high) or high - low <= tolerance * high:
            break
        if within(middle):
            low = middle
        else:
            high = middle
    return low


def fit_to_level(
    leakage: Callable[[np.ndarray], float], budgets: np.ndarray, alpha: float, tolerance: float = 2.0**-52
) -> np.ndarray:
    """The budgets times the largest factor, to `tolerance`, whose largest leakage stays a rounding margin below alpha.

    The margin grows with the number of budgets, as the rounding errors of a recursion may.
    """
    target = alpha * (1.0 - 2.0 * SAFETY - budgets.size * 2.0**-50)
    budgets = budgets * min(alpha / budgets.max(), 1.0)  # no budget exceeds the leakage
    width = min(max(4.0 * abs(leakage(budgets) / target - 1.0), 2.0**-50), 1.0)
    if leakage(budgets) <= target:
        low, high = 1.0, 1.0 + width
        while leakage(high * budgets) <= target:
            width *= 2.0
            low, high = high, high + width
    else:
        low, high = max(1.0 - width, 0.5), 1.0
        while leakage(low * budgets) > target:
            width = min(2.0 * width, 1.0)
            low, high = max(low - width, 0.5 * low), low
    while high - low > tolerance * high:
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        if leakage(middle * budgets) <= target:
            low = middle
        else:
            high = middle
    return low * budgets


def identity_message(name: str, function: PrivacyLossFunction) -> str:
    witness = function.witness(1.0)
    return (
        f"the {name} leakage has no finite supremum for any budget: states {witness.state_q!r} and {witness.state_d!r} "
        "have no common neighbour, so L(alpha) = alpha; smooth the matrix, or use allocate_by_quantification with a "
        "finite horizon"
    )
