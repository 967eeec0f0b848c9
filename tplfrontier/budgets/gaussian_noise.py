"""Gaussian noise over time that keeps the temporal privacy profile within (epsilon, delta).

A release with noise multiplier m_t shifts a normal law by 1 / m_t. The search works on budgets
proportional to 1 / m_t^2; a single release may have the budget `epsilon`. Where two rows of a
matrix have disjoint supports, all releases compose, the budgets add up, and equal ones are best.
Otherwise the least total variance is sought with an approximation: the profile of all earlier
releases is replaced by that of one normal shift with the same epsilon at delta, so that a step of
correlation maps budgets to budgets, as L maps leakages in the recursion of TPL. The difference from
the profiles is then added at each time, until both agree.
"""

from __future__ import annotations
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np

from tplfrontier.budgets.noise_multipliers import NoiseMultipliers
from tplfrontier.profiles.gaussian import gaussian_delta, gaussian_epsilon, gaussian_mu
from tplfrontier.profiles.temporal_profile import TemporalPrivacyProfile, temporal_privacy_profile
from tplrepro.allocation.minimisation import LeastError
from tplrepro.allocation.optimal import MANY, solve_on_knots
from tplrepro.lazy import optional_import
from tplrepro.leakage.accumulation import leakages_in_turn
from tplrepro.leakage.loss_function import PrivacyLossFunction
from tplrepro.leakage.temporal import Correlation, LossMaker, safely_below, steps_of_both_sides
from tplrepro.search import fit_to_level
from tplrepro.validation import (
    NOISE_MULTIPLIER,
    as_scalar,
    check_choice,
    check_delta,
    check_horizon,
    check_level,
    with_index,
)

TOLERANCE = 1e-5  # relative, of squared multipliers
# at most, of the approximation; usually two or three leave an error below `SETTLED` epsilon
CORRECTIONS = 8
SETTLED = 1e-3
# of the logarithms of shares, so that profiles see equal releases in the middle of a long series
DIGITS = 4
POINTS = 65  # of the approximation of a step
LOSSES = 4097  # at which its profiles are computed
SMALLEST = 1e-300  # smaller numbers would have no logarithm


def allocate_noise(
    epsilon: float,
    delta: float,
    backward: Correlation,
    forward: Correlation,
    horizon: int,
    *,
    method: str = "equal",
    index: Any = None,
) -> Any:
    """Gaussian noise multipliers (T,) that keep T = `horizon` releases within (epsilon, delta) at
    each time.

    A multiplier is a standard deviation over the largest L2 distance between the answers for two
    values of a user (sqrt(2) for a histogram), as `release_counts(mechanism="opendp-gaussian")`
    takes it. 500 releases take 0.1 to 4 s, 1,000 up to 30 s where correlation takes hundreds of
    steps to fade, and least variance twice as long.

    Parameters
    ----------
    epsilon : float > 0
        In nats.
    delta : float
        Above 0 and below 1.
    backward : TransitionMatrix, array-like (n, n), PrivacyLossFunction, list, Cycle, or None
        Pr(l^{t-1} | l^t): row by row the probabilities of the value before. A list of T - 1
        holds the matrix of each step between two time points. None: the adversary does not know it.
        The promise is to users whose first state has the law that this side assumes: for a
        `reverse()` without a start, those who start in the habit.
    forward : as `backward`
        Pr(l^t | l^{t-1}): row by row the probabilities of the value after.
    horizon : int >= 1
        The number of releases T.
    method : {"equal", "least_variance"}, optional
        "equal" gives the smallest equal multipliers, to 0.01%; "least_variance" ones of a smaller
        sum of squares, never worse, from an approximation: at epsilon = 7 a sum 2.8% smaller was
        found.
    index : sequence of T labels, optional
        Of the time points.

    Returns
    -------
    array (T,) that knows its unit, or with an index a Series called noise_multiplier
        Where budgets are wanted, both are an error.

    Raises
    ------
    ValueError
        For a number out of range, a delta near the rounding of profiles, matrices that are not
        row-stochastic, whose states disagree or that are not T - 1.
    TypeError
        If one of the sides is not given.

    Examples
    --------
    >>> backward = [[0.8, 0.2], [0.2, 0.8]]  # Fig. 8 of [1]
    >>> forward = [[0.8, 0.2], [0.1, 0.9]]
    >>> allocate_noise(1.0, 1e-6, backward, forward, horizon=4).round(2).tolist()
    [6.14, 6.14, 6.14, 6.14]
    >>> least = allocate_noise(1.0, 1e-6, backward, forward, horizon=4, method="least_variance")
    >>> least.round(1).tolist()
    [5.4, 6.7, 6.2, 5.2]
    """
    epsilon = check_level(epsilon, "epsilon")
    horizon = check_horizon(horizon)
    delta = as_scalar(check_delta(delta), "delta")
    check_choice(method, "method", ("equal", "least_variance"))
    before, after, _ = steps_of_both_sides(LossMaker(), backward, forward, horizon)
    mu = float(gaussian_mu(epsilon, delta))
    series = _Series(epsilon, delta, mu, before, after)
    composed = np.full(horizon, epsilon / horizon)  # within epsilon even if all values are the same
    if series.largest_leakage(composed / 4.0) > epsilon:
        raise ValueError(
            f"delta must be above the rounding errors of the profiles of {horizon} releases, "
            f"found {delta:g}; give a larger one, or budgets for pure DP (allocate_optimally)"
        )
    equal = series.fit(composed)
    # other compositions round differently
    while series.adds_up and series.leakages(equal).max() > epsilon:
        equal = equal * (1.0 - TOLERANCE)
    best = equal
    if method == "least_variance" and not series.adds_up:
        unequal = series.fit(_approximate_least_variance(series, equal))
        variances = 1.0 / unequal
        equal_variances = 1.0 / equal
        if variances.sum() < equal_variances.sum():
            best = unequal
    multipliers = NoiseMultipliers.of(1.0 / series.shifts(best))
    return with_index(multipliers, index, NOISE_MULTIPLIER)


@dataclass(frozen=True)
class _Series:
    """Releases with Gaussian noise within (epsilon, delta), which a single release of `mu`
    reaches."""

    epsilon: float
    delta: float
    mu: float
    before: list[PrivacyLossFunction | None]
    after: list[PrivacyLossFunction | None]

    @cached_property
    def adds_up(self) -> bool:
        """Whether the first or the last value determines all others."""
        return _are_identities(self.before) or _are_identities(self.after)

    def shifts(self, budgets: np.ndarray) -> np.ndarray:
        """The distances of two normal laws of variance 1 that budgets stand for."""
        shares = budgets / self.epsilon
        return self.mu * np.sqrt(shares)

    def budgets(self, epsilons: np.ndarray | float) -> np.ndarray:
        """The budget of a single release with each epsilon at delta."""
        shifts = np.asarray(gaussian_mu(epsilons, self.delta))
        shares = (shifts / self.mu) ** 2
        return self.epsilon * shares

    def profile(self, budgets: np.ndarray) -> TemporalPrivacyProfile:
        with optional_import():
            from dp_accounting import GaussianDpEvent

        multipliers = (1.0 / self.shifts(budgets)).tolist()
        runs = []
        for multiplier, run in groupby(multipliers):
            event = GaussianDpEvent(multiplier)
            runs.append((event, len([*run])))
        return temporal_privacy_profile(runs, self.before, self.after)

    def leakages(self, budgets: np.ndarray) -> np.ndarray:
        """The epsilon at delta of each time, (T,)."""
        return self.profile(budgets).epsilon(self.delta)

    def largest_leakage(self, budgets: np.ndarray) -> float:
        """The largest epsilon at delta; from one composition of all releases where they add up."""
        profile = self.profile(budgets)
        if self.adds_up:
            return float(profile.user_level.epsilon(self.delta))
        leakages = profile.epsilon(self.delta)
        return float(np.max(leakages))

    def fit(self, budgets: np.ndarray) -> np.ndarray:
        """The largest multiple of the budgets that is within (epsilon, delta)."""
        target = safely_below(self.epsilon, budgets.size)
        return fit_to_level(
            self.largest_leakage, budgets, self.epsilon, target, tolerance=TOLERANCE
        )


def _are_identities(losses: list[PrivacyLossFunction | None]) -> bool:
    return all(loss is not None and loss.is_identity for loss in losses)


@dataclass(frozen=True)
class _Point:
    """A leakage and its derivative (N,) by the unknowns; or those of a budget."""

    leakage: float
    derivative: np.ndarray


class _BudgetStep:
    """An approximate step of correlation, from the budget before it to the budget after it, linear
    between `POINTS` budgets."""

    def __init__(self, loss: PrivacyLossFunction, series: _Series):
        budgets = np.linspace(0.0, 2.0 * series.epsilon, POINTS)
        shifts = series.shifts(budgets)
        epsilons = _epsilons_after_step(loss, shifts, series.delta)
        after = series.budgets(epsilons)
        rising = np.maximum.accumulate(after)
        self.after = np.minimum(rising, budgets).tolist()
        self.width = float(budgets[1])

    def follow(self, before: _Point) -> _Point:
        """The budget after the step, and its derivative."""
        budget = before.leakage
        widths = int(budget / self.width)
        cell = min(widths, POINTS - 2)
        start = self.after[cell]
        end = self.after[cell + 1]
        slope = (end - start) / self.width
        from_start = budget - cell * self.width
        after = start + slope * from_start
        return _Point(after, slope * before.derivative)


def _epsilons_after_step(loss: PrivacyLossFunction, shifts: np.ndarray, delta: float) -> np.ndarray:
    """For each of rising normal shifts (K,) the epsilon at delta after a step of correlation, (K,),
    nats."""
    largest = float(gaussian_epsilon(shifts[-1], delta))
    losses = np.linspace(0.0, largest, LOSSES)
    slopes = np.expm1(np.minimum(losses, 700.0))
    eta = np.maximum(loss.support(slopes), SMALLEST)
    raised = eta + slopes
    losses_before = np.log(raised) - np.log(eta)  # 1 + slopes / eta may overflow
    epsilons = np.zeros(shifts.size)
    for k, shift in enumerate(shifts.tolist()):
        after_step = eta * gaussian_delta(shift, losses_before)
        deltas = np.maximum(after_step, SMALLEST)
        logarithms = np.log(deltas / delta)
        epsilons[k] = _find_zero(logarithms, losses)
    return epsilons


def _find_zero(logarithms: np.ndarray, losses: np.ndarray) -> float:
    """The loss, nats, at which falling `logarithms` (K,) reach 0, linear between two of the evenly
    spaced `losses` (K,) from 0 on; 0 if the first is not above 0, or none is within."""
    first_within = int(np.argmax(logarithms <= 0.0))
    if first_within == 0:
        return 0.0
    last_above = first_within - 1
    height = logarithms[last_above]
    fall = height - logarithms[first_within]
    width = losses[1]
    return losses[last_above] + width * height / fall


def _point_after(step: _BudgetStep | None, before: _Point | None, budget: _Point) -> _Point:
    """The leakage right after a release of `budget`, by Eq. (13) of [1] with the approximation
    `step` for L: that of `before`, the leakage one release earlier, plus the budget, each with its
    derivative. The budget alone if the side has no step (None), or no earlier release."""
    if step is None or before is None:
        return budget
    after = step.follow(before)
    leakage = budget.leakage + after.leakage
    return _Point(leakage, budget.derivative + after.derivative)


class _LeastVariance(LeastError):
    """The sum of 1 / budget over T times by the approximation, whose TPL is corrected by
    `correction` (T,), nats.

    `before` and `after` hold the approximate step, or None, of each of the T - 1 steps of a side.
    """

    def __init__(self, epsilon: float, before: list, after: list, correction: np.ndarray):
        T = correction.size
        equal_weights = np.full(T, 1.0 / T)
        super().__init__(epsilon, equal_weights, power=1)
        self.before = before
        self.after = after
        self.correction = correction

    def tpl(self, budgets: np.ndarray, change: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        bpl = _accumulate_leakages(self.before, budgets, change)
        steps_from_end = self.after[::-1]
        budgets_from_end = budgets[::-1]
        change_from_end = change[::-1]
        fpl_from_end = _accumulate_leakages(steps_from_end, budgets_from_end, change_from_end)
        fpl = fpl_from_end.leakages[::-1]
        fpl_derivative = fpl_from_end.derivative[::-1]
        tpl = bpl.leakages + fpl - budgets + self.correction
        return tpl, bpl.derivative + fpl_derivative - change


@dataclass(frozen=True)
class _Leakages:
    """Leakages (T,) and their derivative (T, N) by the unknowns."""

    leakages: np.ndarray
    derivative: np.ndarray


def _accumulate_leakages(steps: list, budgets: np.ndarray, change: np.ndarray) -> _Leakages:
    """Leakages (T,) along budgets (T,), nats, by Eq. (13) of [1], and their derivative (T, N) by N
    unknowns, of which `change` (T, N) is that of the budgets. `steps` holds the T - 1 approximate
    steps, or None."""
    points: Any = map(_Point, budgets.tolist(), change)
    point_after: Any = _point_after
    steps_before: Any = [None, *steps]
    accumulated: Any = [*leakages_in_turn(steps_before, points, step=point_after)]
    leakages = [point.leakage for point in accumulated]
    derivative = [point.derivative for point in accumulated]
    return _Leakages(np.array(leakages), np.array(derivative))


def _approximate_least_variance(series: _Series, start: np.ndarray) -> np.ndarray:
    """Budgets (T,) in the proportions of the least total variance, by the corrected
    approximation."""
    steps = _approximate_steps(series)
    before = [steps[loss] for loss in series.before]
    after = [steps[loss] for loss in series.after]
    budgets = start
    correction = np.zeros(start.size)
    for _ in range(CORRECTIONS):
        problem = _LeastVariance(series.epsilon, before, after, correction)
        best = _solve_approximation(problem, budgets)
        logarithms = np.log(best)
        budgets = np.exp(logarithms.round(DIGITS))
        most = 4.0 * series.epsilon
        leakages = np.minimum(series.leakages(budgets), most)  # may be inf
        no_unknowns = np.empty((budgets.size, 0))
        approximate, _derivative = problem.tpl(budgets, no_unknowns)
        error = series.budgets(leakages) - approximate
        correction = correction + error
        largest_error = np.abs(error).max()
        if largest_error <= SETTLED * series.epsilon:
            break
    return budgets


def _approximate_steps(series: _Series) -> dict[PrivacyLossFunction | None, _BudgetStep | None]:
    """The approximate step of each different loss function, None for a side without one."""
    steps: dict[PrivacyLossFunction | None, _BudgetStep | None] = {None: None}
    for loss in {*series.before, *series.after}:
        if loss is not None:
            steps[loss] = _BudgetStep(loss, series)
    return steps


def _solve_approximation(problem: _LeastVariance, start: np.ndarray) -> np.ndarray:
    """Budgets (T,) of the least variance within epsilon by the approximation."""
    within = problem.fit(start, tolerance=1e-9)
    different_steps = {*problem.before}
    different_steps_after = {*problem.after}
    is_alike = len(different_steps) == len(different_steps_after) == 1
    if is_alike and start.size > MANY:
        solutions = solve_on_knots(problem, [within])
    else:
        solutions = [problem.solve(within)]
    candidates = map(problem.fit, solutions)
    return min(candidates, key=problem.cost)
