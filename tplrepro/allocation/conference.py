"""Algorithms 2 and 3 of [2], from the description in its section V; the accessible text has lost
their lines.

Both choose alpha^B and find the budget that keeps BPL there; what this leaves of alpha is alpha^F,
whose budget is found in the same way; alpha^B changes until the two budgets agree. Algorithms 7 and
8 of [1], in `published`, give the same budgets, and aim at the same level, below alpha by more than
the rounding.
"""

from __future__ import annotations
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tplrepro.allocation.published import NoFiniteSupremumError, aimed_level
from tplrepro.leakage.loss_function import PrivacyLossFunction
from tplrepro.leakage.temporal import LossLike, loss_functions
from tplrepro.leakage.vertex import vertex_supremum
from tplrepro.search import largest_within
from tplrepro.validation import check_horizon, check_level

#: The budget, in nats, that keeps the leakage of a loss function at a level.
BudgetForLevel = Callable[[PrivacyLossFunction, float], float]


@dataclass(frozen=True)
class Split:
    """A level alpha divided between both sides, and the budget that each side then allows; nats."""

    alpha_b: float
    alpha_f: float
    epsilon_b: float
    epsilon_f: float

    @property
    def budget(self) -> float:
        """The budget that both sides allow."""
        return min(self.epsilon_b, self.epsilon_f)


def algorithm_2(alpha: float, backward: LossLike, forward: LossLike) -> float:
    """The budget of every release by Algorithm 2 of [2]: Theorem 5 of [2] solved for it on both
    sides.

    Theorem 5 takes the sums q and d of Algorithm 1 at the supremum itself.

    Parameters
    ----------
    alpha : float
        The level of alpha-DP_T in nats, > 0.
    backward : TransitionMatrix, array-like (n, n), PrivacyLossFunction or None
        Pr(l^{t-1} | l^t), which the adversary knows, or its loss function; None if the adversary
        does not know that side.
    forward : TransitionMatrix, array-like (n, n), PrivacyLossFunction or None
        The same of Pr(l^t | l^{t-1}).

    Returns
    -------
    float
        The budget of each release in nats.

    Raises
    ------
    NoFiniteSupremumError
        If no positive budget has a finite supremum, as for two rows of disjoint supports.
    ValueError
        If `alpha` is not positive and finite, or a matrix is not row-stochastic.

    Examples
    --------
    >>> backward, forward = [[0.8, 0.2], [0.2, 0.8]], [[0.8, 0.2], [0.1, 0.9]]  # Fig. 7 of [2]
    >>> round(algorithm_2(1.0, backward, forward), 7)
    0.2038721
    """
    return _agreed_split(alpha, backward, forward, _budget_of_supremum).budget


def algorithm_3(alpha: float, backward: LossLike, forward: LossLike, horizon: int) -> np.ndarray:
    """The budgets by Algorithm 3 of [2]: alpha^B, the agreed one between, and alpha^F.

    Parameters
    ----------
    alpha : float
        The level of alpha-DP_T in nats, > 0.
    backward : TransitionMatrix, array-like (n, n), PrivacyLossFunction or None
        Pr(l^{t-1} | l^t), which the adversary knows, or its loss function; None if the adversary
        does not know that side.
    forward : TransitionMatrix, array-like (n, n), PrivacyLossFunction or None
        The same of Pr(l^t | l^{t-1}).
    horizon : int
        The number of releases T.

    Returns
    -------
    array (T,)
        The budget of each release in nats.

    Raises
    ------
    NoFiniteSupremumError
        If no positive budget keeps the leakage of a side at a level, as for two rows of disjoint
        supports.
    ValueError
        If `alpha` is not positive and finite, or a matrix is not row-stochastic.

    Examples
    --------
    >>> backward, forward = [[0.8, 0.2], [0.2, 0.8]], [[0.8, 0.2], [0.1, 0.9]]  # Fig. 7 of [2]
    >>> algorithm_3(1.0, backward, forward, horizon=4).round(7).tolist()
    [0.4998062, 0.2038721, 0.2038721, 0.7040659]
    """
    if check_horizon(horizon) == 1:
        return np.array([check_level(alpha)])
    split = _agreed_split(alpha, backward, forward, _budget_of_leakage)
    between = [split.budget] * (horizon - 2)
    return np.array([split.alpha_b, *between, split.alpha_f])


def _budget_of_supremum(loss: PrivacyLossFunction, supremum: float) -> float:
    """The largest budget whose supremum, by Theorem 5 of [2], is at most this, rounded down."""
    vertex = loss.vertex_for(supremum)  # q - d and 1 - q without cancellation

    def is_within(epsilon: float) -> bool:
        return loss.scale * vertex_supremum(*vertex, epsilon / loss.scale) <= supremum

    solved = largest_within(is_within, 0.0, supremum)
    return min(solved, _budget_of_leakage(loss, supremum))


def _budget_of_leakage(loss: PrivacyLossFunction, leakage: float) -> float:
    """The budget that keeps the leakage of one side, leakage = L(leakage) + epsilon, rounded
    down."""
    return float(loss.budget_for(leakage))


def _agreed_split(
    alpha: float, backward: LossLike, forward: LossLike, budget: BudgetForLevel
) -> Split:
    """The division of alpha, nats, at which both sides allow the same budget. `budget` tells from a
    loss function and the leakage of that side which budget keeps it."""
    alpha = aimed_level(check_level(alpha))
    sides = loss_functions(backward, forward)
    # A side that the adversary does not know adds nothing, as a single state does.
    without_leakage = PrivacyLossFunction(np.ones((1, 1)))
    loss_b, loss_f = (without_leakage if side is None else side for side in sides)

    def split_at(alpha_b: float) -> Split:
        epsilon_b = budget(loss_b, alpha_b)
        alpha_f = alpha - alpha_b + epsilon_b
        return Split(alpha_b, alpha_f, epsilon_b, epsilon_f=budget(loss_f, alpha_f))

    def backward_allows_less(alpha_b: float) -> bool:
        split = split_at(alpha_b)
        return split.epsilon_b <= split.epsilon_f

    agreed = split_at(largest_within(backward_allows_less, 0.0, alpha))
    if agreed.budget <= 0.0:
        raise NoFiniteSupremumError(
            "no budget keeps the leakage bounded: L(alpha) = alpha on one side, or nearly so"
        )
    return agreed
