"""Algorithms 2 and 3 of [2], from the description in its section V; the accessible text has lost
their lines.

Both choose alpha^B and find the budget that keeps BPL there; what this leaves of alpha is alpha^F,
whose budget is found in the same way; alpha^B changes until the two budgets agree. Algorithms 7 and
8 of [1], in `published`, give the same budgets less a margin for rounding, which these have not:
their leakage may pass alpha in the last digits.
"""

from __future__ import annotations
from collections.abc import Callable

import numpy as np

from tplrepro.allocation.published import NoFiniteSupremumError
from tplrepro.leakage.loss_function import PrivacyLossFunction
from tplrepro.leakage.temporal import LossLike, loss_functions
from tplrepro.leakage.vertex import vertex_supremum
from tplrepro.search import largest_within
from tplrepro.validation import check_horizon, check_level


def algorithm_2(alpha: float, backward: LossLike, forward: LossLike) -> float:
    """The budget of every release by Algorithm 2 of [2], nats: Theorem 5 of [2] solved for it on
    both sides.

    Theorem 5 takes the sums q and d of Algorithm 1 at the supremum itself. Arguments and errors are
    those of `published.allocate_by_upper_bound`.

    >>> round(algorithm_2(1.0, [[0.8, 0.2], [0.2, 0.8]], [[0.8, 0.2], [0.1, 0.9]]), 7)  # Fig. 7 of [2]
    0.2038721
    """

    def budget(loss: PrivacyLossFunction, supremum: float) -> float:
        q, d = loss.witness(supremum)[3:5]
        return largest_within(
            lambda e: vertex_supremum(d, q - d, 1.0 - q, e) <= supremum, 0.0, supremum
        )

    return _agreed(alpha, backward, forward, budget)[2]


def algorithm_3(alpha: float, backward: LossLike, forward: LossLike, horizon: int) -> np.ndarray:
    """The budgets (T,), T = `horizon`, by Algorithm 3 of [2], nats: alpha^B, the agreed one
    between, and alpha^F.

    >>> budgets = algorithm_3(1.0, [[0.8, 0.2], [0.2, 0.8]], [[0.8, 0.2], [0.1, 0.9]], horizon=4)
    >>> budgets.round(7).tolist()  # Fig. 7 of [2]
    [0.4998062, 0.2038721, 0.2038721, 0.7040659]
    """
    if check_horizon(horizon) == 1:
        return np.array([check_level(alpha)])
    first, last, between = _agreed(
        alpha, backward, forward, lambda loss, leakage: leakage - loss.at(leakage)
    )
    return np.array([first, *[between] * (horizon - 2), last])


def _agreed(
    alpha: float,
    backward: LossLike,
    forward: LossLike,
    budget: Callable[[PrivacyLossFunction, float], float],
) -> tuple[float, float, float]:
    """alpha^B, alpha^F and the budget at which both sides agree; `budget` keeps one side's leakage
    at a level."""
    alpha, sides = check_level(alpha), loss_functions(backward, forward)
    loss_b, loss_f = (
        PrivacyLossFunction(np.ones((1, 1))) if side is None else side for side in sides
    )

    def rest(alpha_b: float) -> tuple[float, float, float]:
        epsilon_b = budget(loss_b, alpha_b)
        alpha_f = alpha - alpha_b + epsilon_b
        return alpha_f, epsilon_b, budget(loss_f, alpha_f)

    alpha_b = largest_within(lambda level: rest(level)[1] <= rest(level)[2], 0.0, alpha)
    alpha_f, epsilon_b, epsilon_f = rest(alpha_b)
    if min(epsilon_b, epsilon_f) <= 0.0:
        raise NoFiniteSupremumError(
            "no budget keeps the leakage bounded: L(alpha) = alpha on one side, or nearly so"
        )
    return alpha_b, alpha_f, min(epsilon_b, epsilon_f)
