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

from tplrepro.leakage.loss_function import PrivacyLossFunction, leakage_after
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
    2 of [2]).

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
        The budget of every release, for any number of releases, in nats.

    Raises
    ------
    NoFiniteSupremumError
        If no positive budget has a finite supremum, as for two rows of disjoint supports.
    ValueError
        If `alpha` is not positive and finite, or a matrix is not row-stochastic.

    Examples
    --------
    >>> backward, forward = [[0.8, 0.2], [0.2, 0.8]], [[0.8, 0.2], [0.1, 0.9]]  # Fig. 8 of [1]
    >>> round(allocate_by_upper_bound(1.0, backward, forward), 7)
    0.2038721
    """
    alpha = check_level(alpha)
    loss_b, loss_f = loss_functions(backward, forward)
    _check_supremum_exists(loss_b, "backward")
    _check_supremum_exists(loss_f, "forward")
    known = [loss for loss in (loss_b, loss_f) if loss is not None]
    target = alpha * (1.0 - 2.0 * SAFETY)

    def is_within(epsilon: float) -> bool:
        # TPL is the sum of the suprema, less epsilon for each side that is counted twice.
        suprema = [float(loss.supremum(epsilon)) for loss in known]
        return sum(suprema) - (len(suprema) - 1) * epsilon <= target

    budget = largest_within(is_within, 0.0, alpha) - SAFETY * alpha
    if budget <= 0.0:
        raise NoFiniteSupremumError(
            f"no budget above the rounding error {SAFETY * alpha:.3g} keeps the leakage within "
            f"alpha = {alpha:g} for ever: the correlation is as good as deterministic; "
            "use allocate_by_quantification with a horizon, or smooth the matrix"
        )
    return budget


def _check_supremum_exists(loss: PrivacyLossFunction | None, side: str) -> None:
    if loss is not None and loss.is_identity:
        raise NoFiniteSupremumError(
            f"the {side} leakage has no finite supremum for any budget: "
            f"{loss.unbounded_because()}, so L(alpha) = alpha; "
            "smooth the matrix, or use allocate_by_quantification with a finite horizon"
        )


def allocate_by_quantification(
    alpha: float, backward: LossLike, forward: LossLike, horizon: int, *, index: Any = None
) -> np.ndarray:
    """Budgets whose TPL is alpha at every time (Algorithm 8 of [1], Algorithm 3 of [2]).

    L^B(a^B) + a^F = alpha and L^F(a^F) + a^B = alpha (Eqs. (26), (27) of [1]) give epsilon_1 = a^B,
    epsilon_T = a^F and epsilon_t = a^B + a^F - alpha between. For T = 1 the budget is alpha. Where
    L is the identity on one side, these equations leave nothing for some releases; then the largest
    equal budgets are returned.

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
    index : sequence of T labels, optional
        The labels of the time points, for a Series.

    Returns
    -------
    array (T,), or Series with `index`
        The budget of each release in nats.

    Raises
    ------
    ValueError
        If `alpha` is not positive and finite, `horizon` no positive whole number, or a matrix is
        not row-stochastic.

    Examples
    --------
    >>> backward, forward = [[0.8, 0.2], [0.2, 0.8]], [[0.8, 0.2], [0.1, 0.9]]  # Fig. 8 of [1]
    >>> allocate_by_quantification(1.0, backward, forward, horizon=4).round(7).tolist()
    [0.4998062, 0.2038721, 0.2038721, 0.7040659]
    """
    alpha = check_level(alpha)
    horizon = check_horizon(horizon)
    loss_b, loss_f = loss_functions(backward, forward)
    if horizon == 1:
        return with_index(np.array([alpha]), index)
    target = alpha * (1.0 - 2.0 * SAFETY)

    def forward_level(a_b: float) -> float:  # Eq. (26)
        return target - leakage_after(loss_b, a_b, 0.0)

    def is_within(a_b: float) -> bool:  # Eq. (27), whose left side grows with a^B
        return leakage_after(loss_f, forward_level(a_b), a_b) <= target

    a_b = largest_within(is_within, 0.0, target)
    a_f = forward_level(a_b)
    between = min(_budget_for(loss_b, a_b), _budget_for(loss_f, a_f))
    budgets = np.full(horizon, between - SAFETY * alpha)
    budgets[0] = a_b
    budgets[-1] = a_f
    is_unbounded = any(loss is not None and loss.is_identity for loss in (loss_b, loss_f))
    if is_unbounded or budgets.min() <= 0.0:
        budgets = largest_equal_budgets(alpha, loss_b, loss_f, horizon)
    return with_index(budgets, index)


def _budget_for(loss: PrivacyLossFunction | None, level: float) -> float:
    """The budget that keeps the leakage of one side at a level: level - L(level)."""
    if loss is None:
        return level
    return float(loss.budget_for(level))


def largest_equal_budgets(
    alpha: float,
    backward: PrivacyLossFunction | None,
    forward: PrivacyLossFunction | None,
    horizon: int,
) -> np.ndarray:
    """The largest budget that keeps the TPL within alpha if spent at each of T times.

    Parameters
    ----------
    alpha : float
        The level in nats.
    backward, forward : PrivacyLossFunction or None
        The loss function of each side, None for a side that the adversary does not know.
    horizon : int
        The number of releases T.

    Returns
    -------
    array (T,)
        T equal budgets, nats.
    """

    def largest_tpl(budgets: np.ndarray) -> float:
        return temporal_privacy_leakage(budgets, backward, forward).tpl.max()

    start = np.full(horizon, alpha)
    return fit_to_level(largest_tpl, start, alpha, safely_below(alpha, horizon))
