"""Budgets over time that keep the temporal privacy leakage within alpha (section 5, Definition 8 of
[1]).

Both schemes aim 2 `SAFETY` below alpha and subtract `SAFETY` alpha from each budget, which covers
the rounding of the recursion that computes the leakage. The conference version [2] searches over
alpha^B (its Algorithms 2 and 3) for the same budgets; its noise is Lap(1/epsilon) (sensitivity 1),
in [1] Lap(2/epsilon) (sensitivity 2).
"""

from __future__ import annotations
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from math import ulp
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.leakage.loss_function import PrivacyLossFunction, leakage_after
from tplrepro.leakage.temporal import (
    SAFETY,
    Correlation,
    LossCycle,
    LossCycles,
    LossMaker,
    is_cycle,
    is_several,
    loss_cycles,
    safely_below,
    steps_of_both_sides,
    temporal_privacy_leakage,
)
from tplrepro.search import fit_to_level, largest_within
from tplrepro.validation import check_choice, check_horizon, check_level, warn_caller, with_index

if TYPE_CHECKING:
    from pandas import Series

#: Up to this number of releases, `allocate_optimally` takes the place of Algorithm 8 where that is
#: impossible.
MOST_OPTIMAL = 100


class NoFiniteSupremumError(ValueError):
    """No positive budget keeps the leakage bounded for ever: L(alpha) is alpha on one side, or
    nearly so."""


def allocate_by_upper_bound(
    alpha: float, backward: Correlation, forward: Correlation, *, shape: ArrayLike | None = None
) -> Any:
    """The largest epsilon with sup BPL + sup FPL - epsilon <= alpha (Algorithm 7 of [1], Algorithm
    2 of [2]); for a cycle, the largest budgets of its phases.

    Parameters
    ----------
    alpha : float
        The level of alpha-DP_T in nats, > 0.
    backward : TransitionMatrix, array-like (n, n), PrivacyLossFunction, None or Cycle
        Pr(l^{t-1} | l^t), which the adversary knows, or its loss function; None if the adversary
        does not know that side. It is `forward.reverse()`, seldom the forward matrix itself. Unless
        a cycle was reversed with another `start`, the promise is to users who start in the law that
        repeats itself.
    forward : TransitionMatrix, array-like (n, n), PrivacyLossFunction, None or Cycle
        The same of Pr(l^t | l^{t-1}).
    shape : array-like (p,) or "least error", optional
        What the budgets of the p phases are proportional to, >= 0, by default equal; or that they
        have the least sum of expected errors, 1 / epsilon, among those found.

    Returns
    -------
    float, or array (p,)
        The budget of every release, for any number of releases, in nats; for a cycle of several
        phases or with a shape, the budget of each phase.

    Raises
    ------
    NoFiniteSupremumError
        If no positive budget has a finite supremum, as for two rows of disjoint supports.
    ValueError
        If `alpha` is not positive and finite, a matrix is not row-stochastic, a shape is negative,
        all 0 or not of p numbers, or for a list of matrices, which says nothing of later steps.

    Examples
    --------
    >>> backward, forward = [[0.8, 0.2], [0.2, 0.8]], [[0.8, 0.2], [0.1, 0.9]]  # Fig. 8 of [1]
    >>> round(allocate_by_upper_bound(1.0, backward, forward), 7)
    0.2038721
    >>> from tplrepro import Cycle
    >>> habits = Cycle([[[0.98, 0.02], [0.02, 0.98]], forward], phases=["night", "day"])
    >>> allocate_by_upper_bound(1.0, habits.reverse(), habits).round(4).tolist()
    [0.0952, 0.0952]
    >>> allocate_by_upper_bound(1.0, habits.reverse(), habits, shape=[0, 1]).round(4).tolist()
    [0.0, 0.19]
    """
    alpha = check_level(alpha)
    losses = loss_cycles(backward, forward)
    _check_suprema_exist(losses.backward, losses.phases, "backward")
    _check_suprema_exist(losses.forward, losses.phases, "forward")
    is_one = len(losses) == 1 and shape is None
    if is_one and losses.n_first == 0:
        return _budget_of_every_release(alpha, losses)
    budgets = _budgets_of_phases(alpha, losses, shape)
    return float(budgets[0]) if is_one else budgets


def _budget_of_every_release(alpha: float, losses: LossCycles) -> float:
    """The largest budget, nats, that all releases may have: Algorithm 7 of [1], for one matrix on
    each side."""
    sides = losses.backward.steps[0], losses.forward.steps[0]
    known = [loss for loss in sides if loss is not None]
    target = aimed_level(alpha)

    def is_within(epsilon: float) -> bool:
        # TPL is the sum of the suprema, less epsilon for each side that is counted twice.
        suprema = [float(loss.supremum(epsilon)) for loss in known]
        return sum(suprema) - (len(suprema) - 1) * epsilon <= target

    margin = SAFETY * alpha
    # where no budget is left, a search would go on through all smaller floats
    if not is_within(max(margin, ulp(0.0))):
        raise _no_budget_error(alpha, margin)
    near = _nearly_budget_of_every_release(target, known)
    budget = largest_within(is_within, 0.0, alpha, near=near) - margin
    if budget <= 0.0:
        raise _no_budget_error(alpha, margin)
    return budget


def _nearly_budget_of_every_release(target: float, losses: list[PrivacyLossFunction]) -> float:
    """The budget, nats, whose TPL is the target but for rounding."""
    from scipy.optimize import brentq

    def excess(epsilon: float) -> float:
        suprema = [loss.nearly_supremum(epsilon) for loss in losses]
        counted_twice = (len(losses) - 1) * epsilon
        total = sum(suprema) - counted_twice
        return 1.0 - 2.0 * target / (total + target)  # brentq needs finite numbers

    precision = max(SAFETY * target, ulp(0.0))
    return brentq(excess, 0.0, target, xtol=precision)


def _budgets_of_phases(alpha: float, losses: LossCycles, shape: Any) -> np.ndarray:
    """The largest budgets (p,) of a shape whose suprema of TPL are within alpha. The shape is
    proportions (p,), "least error", or None for equal budgets."""
    from tplrepro.allocation.phases import OnCycle
    from tplrepro.leakage.suprema import check_budgets_of_phases

    p = len(losses)
    is_least_error = isinstance(shape, str)
    if is_least_error:
        check_choice(shape, "shape", ["least error"])
    proportions = np.ones(p)
    if shape is not None and not is_least_error:
        proportions = check_budgets_of_phases(shape, p, "shape")
        proportions = proportions / proportions.max()
    problem = OnCycle(alpha, losses)
    smallest = p * SAFETY * alpha
    if problem.largest_tpl(smallest * proportions) > safely_below(alpha, p):
        raise _no_budget_error(alpha, smallest)
    budgets = problem.fit(alpha * proportions)
    if is_least_error:
        solution = problem.fit(problem.solve(budgets))
        budgets = min(budgets, solution, key=problem.cost)
    return budgets


def _no_budget_error(alpha: float, rounding: float) -> NoFiniteSupremumError:
    return NoFiniteSupremumError(
        f"no budget above the rounding error {rounding:.3g} keeps the leakage within "
        f"alpha = {alpha:g} for ever: the correlation is as good as deterministic; "
        "use allocate_by_quantification with a horizon, or smooth the matrix"
    )


def _check_suprema_exist(losses: LossCycle, phases: list, side: str) -> None:
    """Refuse a side of which all steps are deterministic: no budget has a finite supremum. A step
    that is not deterministic, or not known, bounds the leakage of all phases. `phases` are their
    labels."""
    if not all(loss is not None and loss.is_identity for loss in losses.steps):
        return
    where = "" if len(losses) == 1 else f" at phase {phases[0]!r}, and others at the other phases"
    raise NoFiniteSupremumError(
        f"the {side} leakage has no finite supremum for any budget: "
        f"{losses.steps[0].unbounded_because()}{where}, so L(alpha) = alpha; "
        "smooth the matrix, or use allocate_by_quantification with a finite horizon"
    )


@overload
def allocate_by_quantification(
    alpha: float, backward: Correlation, forward: Correlation, horizon: int, *, index: None = ...
) -> np.ndarray: ...
@overload
def allocate_by_quantification(
    alpha: float, backward: Correlation, forward: Correlation, horizon: int, *, index: Any
) -> Series: ...
def allocate_by_quantification(
    alpha: float, backward: Correlation, forward: Correlation, horizon: int, *, index: Any = None
) -> Any:
    """Budgets whose TPL is alpha at every time (Algorithm 8 of [1], Algorithm 3 of [2]).

    For the step between two times, L^B(a^B) + a^F = alpha and L^F(a^F) + a^B = alpha (Eqs. (26),
    (27) of [1]) give the BPL a^B before it and the FPL a^F after it. With one matrix epsilon_1 =
    a^B, epsilon_T = a^F and epsilon_t = a^B + a^F - alpha between; in general a^B is that of the
    step after a time, and a^F that of the step before it. For T = 1 the budget is alpha.

    Where these equations leave nothing for some release, no budgets have a TPL of alpha at every
    time. With one matrix the largest equal budgets are returned. Otherwise a warning names the
    first such time, and what is returned: the budgets of `allocate_optimally`; beyond 100 times
    those of `allocate_by_upper_bound` of least error, or else the largest equal ones.

    Parameters
    ----------
    alpha : float
        The level of alpha-DP_T in nats, > 0.
    backward : TransitionMatrix, array-like (n, n), PrivacyLossFunction, None, Cycle, or a list
        Pr(l^{t-1} | l^t), which the adversary knows, or its loss function: one for all steps, a
        list of T - 1 with one for each step, or a cycle; None if the adversary does not know that
        side. Of people who start in the habit it is `forward.reverse()`, seldom the forward matrix
        itself.
    forward : the same of Pr(l^t | l^{t-1})
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
    >>> steps = [np.eye(2), forward]  # nobody moves at first
    >>> allocate_by_quantification(1.0, steps, steps, horizon=3).round(4).tolist()
    [0.2923, 0.2923, 0.5846]
    """
    alpha = check_level(alpha)
    horizon = check_horizon(horizon)
    make = LossMaker()
    backward = make.for_cycle(backward)
    forward = make.for_cycle(forward)
    before, after, _ = steps_of_both_sides(make, backward, forward, horizon)
    if horizon == 1:
        return with_index(np.array([alpha]), index)
    if _is_one_matrix(backward) and _is_one_matrix(forward):
        budgets = _budgets_of_one_link(alpha, before[0], after[0], horizon)
        if budgets.min() <= 0.0:
            budgets = largest_equal_budgets(alpha, before[0], after[0], horizon)
        return with_index(budgets, index)
    budgets = budgets_of_links(alpha, before, after)
    if budgets.min() <= 0.0:
        budgets = _best_possible(alpha, backward, forward, budgets)
    return with_index(budgets, index)


def _is_one_matrix(correlation: Correlation) -> bool:
    """Whether all steps, those after the last release included, have one loss function."""
    if is_cycle(correlation):
        cycle: Any = correlation
        return are_same([*cycle, *cycle.first])
    return not is_several(correlation)


def are_same(steps: list) -> bool:
    """Whether all steps have one loss function."""
    return all(step is steps[0] for step in steps)


def _budgets_of_one_link(
    alpha: float,
    backward: PrivacyLossFunction | None,
    forward: PrivacyLossFunction | None,
    horizon: int,
) -> np.ndarray:
    """`budgets_of_links` (T,) where all steps of a side have one loss function, or None; 0 where L
    is the identity on one side up to alpha: a run of such steps has no budgets that are the same
    for every horizon."""
    target = aimed_level(alpha)
    if _is_identity(backward, target) or _is_identity(forward, target):
        return np.zeros(horizon)
    steps = min(horizon, 3) - 1
    few = budgets_of_links(alpha, [backward] * steps, [forward] * steps)
    budgets = np.full(horizon, few[1])
    budgets[0] = few[0]
    budgets[-1] = few[-1]
    return budgets


def budgets_of_links(alpha: float, before: list, after: list) -> np.ndarray:
    """The budgets whose TPL is alpha at every time; not positive where there are none.

    Parameters
    ----------
    alpha : float
        The level in nats.
    before, after : list (T - 1,) of PrivacyLossFunction or None
        Those of each step between two time points, of the backward and of the forward side.

    Returns
    -------
    array (T,), nats
    """
    levels = _levels_of_links(aimed_level(alpha), before, after)
    last = len(before)
    budgets = np.empty(last + 1)
    budgets[0] = levels.bpl[0]
    budgets[last] = levels.fpl[last]
    for time in range(1, last):
        of_bpl = _budget_between(before[time - 1], levels.bpl[time - 1], levels.bpl[time])
        of_fpl = _budget_between(after[time], levels.fpl[time + 1], levels.fpl[time])
        budgets[time] = min(of_bpl, of_fpl) - SAFETY * alpha
    return budgets


@dataclass(frozen=True)
class _Levels:
    """The BPL and the FPL of each of T times, nats, under budgets whose TPL is alpha at each."""

    bpl: list[float]
    fpl: list[float]


class _Link(NamedTuple):
    """The BPL before a step and the FPL after it, nats."""

    bpl_before: float
    fpl_after: float


def aimed_level(alpha: float) -> float:
    """The TPL that budgets of one matrix and of links aim at, below alpha by more than the rounding
    errors of the recursion."""
    return alpha * (1.0 - 2.0 * SAFETY)


def _levels_of_links(target: float, before: list, after: list) -> _Levels:
    """Eqs. (26) and (27) of [1] for each step, with a TPL of `target`; `before` and `after` hold
    the loss functions, or None, of each side.

    Where L is the identity on both sides, they leave one number free: the budgets of a run of such
    steps are equal.
    """
    solved: dict[tuple, _Link] = {}
    bpl = []
    fpl = [target]
    for link in zip(before, after, strict=True):
        if link not in solved:
            solved[link] = _levels_of_link(target, *link)
        bpl.append(solved[link].bpl_before)
        fpl.append(solved[link].fpl_after)
    bpl.append(target)
    is_free = [
        _is_identity(loss_b, target) and _is_identity(loss_f, target)
        for loss_b, loss_f in zip(before, after, strict=True)
    ]
    step = 0
    for free, run in groupby(is_free):
        end = step + len([*run])
        if free:
            # The budgets of the times from `step` to `end` add up to this.
            total = bpl[end] - (target - fpl[step])
            for place, time in enumerate(range(step, end), start=1):
                missing = total * (end + 1 - step - place) / (end + 1 - step)
                bpl[time] = bpl[end] - missing
                fpl[time + 1] = target - bpl[time]
        step = end
    return _Levels(bpl, fpl)


def _is_identity(loss: PrivacyLossFunction | None, level: float) -> bool:
    """Whether a leakage up to a level leaks in full, as a tiny one may near the habit."""
    return loss is not None and (loss.is_identity or loss.at(level) >= level)


def _levels_of_link(
    target: float, loss_b: PrivacyLossFunction | None, loss_f: PrivacyLossFunction | None
) -> _Link:
    """The BPL before a step and the FPL after it that give both its ends a TPL of `target`, from
    the loss functions of the backward and the forward side, or None."""
    if _is_identity(loss_b, target):
        return _Link(target, 0.0)
    if _is_identity(loss_f, target):
        return _Link(0.0, target)

    def forward_level(a_b: float) -> float:  # Eq. (26)
        return target - leakage_after(loss_b, a_b, 0.0)

    def is_within(a_b: float) -> bool:  # Eq. (27), whose left side grows with a^B
        return leakage_after(loss_f, forward_level(a_b), a_b) <= target

    a_b = largest_within(is_within, 0.0, target)
    return _Link(a_b, forward_level(a_b))


def _budget_between(loss: PrivacyLossFunction | None, previous: float, level: float) -> float:
    """The budget that takes the leakage of one side from `previous` to `level` by L = `loss`; None:
    the side is not known."""
    if loss is None:
        return level
    if previous == level:
        return float(loss.budget_for(level))  # without cancellation
    return level - loss.at_most(previous)


def _best_possible(
    alpha: float, backward: Correlation, forward: Correlation, impossible: np.ndarray
) -> np.ndarray:
    """Budgets (T,) within alpha, with a warning, where `impossible` (T,), those with a TPL of alpha
    at every time, are not all positive."""
    horizon = impossible.size
    if horizon <= MOST_OPTIMAL:
        from tplrepro import allocate_optimally  # by its public name: it starts from these budgets

        name = "allocate_optimally"
        budgets = allocate_optimally(alpha, backward, forward, horizon)
    else:
        name = "equal releases"
        budgets = largest_equal_budgets(alpha, backward, forward, horizon)
        if not is_several(backward) and not is_several(forward):
            with suppress(NoFiniteSupremumError):
                of_phases = allocate_by_upper_bound(alpha, backward, forward, shape="least error")
                name = 'allocate_by_upper_bound with shape="least error"'
                budgets = np.resize(of_phases, horizon)
    first = int(np.argmax(impossible <= 0.0))
    warn_caller(
        f"no budgets have a TPL of alpha at every time: that of time {first}, counted from 0, "
        f"would have to be negative; the budgets returned are those of {name}, within alpha"
    )
    return budgets


def largest_equal_budgets(
    alpha: float, backward: Correlation, forward: Correlation, horizon: int
) -> np.ndarray:
    """The largest budget that keeps the TPL within alpha if spent at each of T times.

    Parameters
    ----------
    alpha : float
        The level in nats.
    backward, forward : PrivacyLossFunction, None, Cycle or list of T - 1
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
