"""Budgets over time that keep the temporal privacy leakage within alpha (section 5, Definition 8 of
[1]).

Both schemes aim 2 `SAFETY` below alpha and subtract `SAFETY` alpha from each budget, which covers
the rounding of the recursion that computes the leakage. The conference version [2] searches over
alpha^B (its Algorithms 2 and 3) for the same budgets; its noise is Lap(1/epsilon) (sensitivity 1),
in [1] Lap(2/epsilon) (sensitivity 2).
"""

from __future__ import annotations
from typing import Any

import numpy as np

from tplrepro.leakage.accumulation import leakage_after
from tplrepro.leakage.loss_function import PrivacyLossFunction
from tplrepro.leakage.temporal import (
    SAFETY,
    LossLike,
    loss_functions,
    safely_below,
    temporal_privacy_leakage,
)
from tplrepro.search import fit_to_level, largest_within
from tplrepro.validation import check_horizon, check_level, with_index


class NoFiniteSupremumError(ValueError):
    """No positive budget keeps the leakage bounded for ever: L(alpha) is alpha on one side, or
    nearly so."""


def allocate_by_upper_bound(alpha: float, backward: LossLike, forward: LossLike) -> float:
    """The largest epsilon with sup BPL + sup FPL - epsilon <= alpha (Algorithm 7 of [1], Algorithm
    2 of [2]); nats.

    `alpha` > 0 is the level of alpha-DP_T in nats; `backward` and `forward` are a TransitionMatrix,
    an array (n, n), a PrivacyLossFunction, or None where the adversary does not know that side.
    NoFiniteSupremumError, a ValueError, if no positive budget has a finite supremum, as for two
    rows of disjoint supports.

    Examples
    --------
    >>> budget = allocate_by_upper_bound(1.0, [[0.8, 0.2], [0.2, 0.8]], [[0.8, 0.2], [0.1, 0.9]])  # Fig. 8 of [1]
    >>> round(budget, 7)
    0.2038721
    """
    alpha = check_level(alpha)
    sides = dict(zip(("backward", "forward"), loss_functions(backward, forward), strict=True))
    for name, function in sides.items():
        if function is not None and function.is_identity:
            raise NoFiniteSupremumError(
                f"the {name} leakage has no finite supremum for any budget: {function.unbounded_because()}, so "
                "L(alpha) = alpha; smooth the matrix, or use allocate_by_quantification with a finite horizon"
            )
    target = alpha * (1.0 - 2.0 * SAFETY)

    def within(epsilon: float) -> bool:
        # TPL is the sum of the suprema, less epsilon for each side that is counted twice.
        suprema = [
            float(function.supremum(epsilon)) for function in sides.values() if function is not None
        ]
        return sum(suprema) - (len(suprema) - 1) * epsilon <= target

    budget = largest_within(within, 0.0, alpha) - SAFETY * alpha
    if budget <= 0.0:
        raise NoFiniteSupremumError(
            f"no budget above the rounding error {SAFETY * alpha:.3g} keeps the leakage within alpha = {alpha:g} for "
            "ever: the correlation is as good as deterministic; use allocate_by_quantification with a horizon, or "
            "smooth the matrix"
        )
    return budget


def allocate_by_quantification(
    alpha: float, backward: LossLike, forward: LossLike, horizon: int, *, index: Any = None
) -> np.ndarray:
    """Budgets (T,), T = `horizon`, whose TPL is alpha at every time (Algorithm 8 of [1], Algorithm
    3 of [2]); nats.

    L^B(a^B) + a^F = alpha and L^F(a^F) + a^B = alpha (Eqs. (26), (27) of [1]) give epsilon_1 = a^B,
    epsilon_T = a^F and epsilon_t = a^B + a^F - alpha between. For T = 1 the budget is alpha. Where
    L is the identity on one side, these equations leave nothing for some releases; then the largest
    equal budgets are returned. With `index`, the labels of the time points, a Series. Other
    arguments and errors as in `allocate_by_upper_bound`.

    Examples
    --------
    >>> budgets = allocate_by_quantification(1.0, [[0.8, 0.2], [0.2, 0.8]], [[0.8, 0.2], [0.1, 0.9]], horizon=4)
    >>> budgets.round(7).tolist()  # Fig. 8 of [1]
    [0.4998062, 0.2038721, 0.2038721, 0.7040659]
    """
    alpha, horizon = check_level(alpha), check_horizon(horizon)
    loss_b, loss_f = loss_functions(backward, forward)
    if horizon == 1:
        return with_index(np.array([alpha]), index)
    target = alpha * (1.0 - 2.0 * SAFETY)

    def within(a_b: float) -> bool:  # grows with a_b; Eq. (27) with a^F from Eq. (26)
        return leakage_after(loss_f, target - leakage_after(loss_b, a_b, 0.0), a_b) <= target

    a_b = largest_within(within, 0.0, target)
    a_f = target - leakage_after(loss_b, a_b, 0.0)
    budget_b = a_b if loss_b is None else loss_b.budget_for(a_b)
    budget_f = a_f if loss_f is None else loss_f.budget_for(a_f)
    budgets = np.full(horizon, min(budget_b, budget_f) - SAFETY * alpha)
    budgets[0], budgets[-1] = a_b, a_f
    if budgets.min() > 0.0 and not any(
        loss is not None and loss.is_identity for loss in (loss_b, loss_f)
    ):
        return with_index(budgets, index)
    return with_index(largest_equal_budgets(alpha, loss_b, loss_f, horizon), index)


def largest_equal_budgets(
    alpha: float,
    backward: PrivacyLossFunction | None,
    forward: PrivacyLossFunction | None,
    horizon: int,
) -> np.ndarray:
    """The largest budget that keeps the TPL within alpha if spent at each of `horizon` times,
    (horizon,)."""

    def leakage(budgets: np.ndarray) -> float:
        return temporal_privacy_leakage(budgets, backward, forward).tpl.max()

    return fit_to_level(leakage, np.full(horizon, alpha), alpha, safely_below(alpha, horizon))
