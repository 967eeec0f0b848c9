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
from tplrepro.leakage.loss_function import PrivacyLossFunction
from tplrepro.leakage.temporal import (
    Correlation,
    as_loss_function,
    safely_below,
    steps_of_both_sides,
)
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
    epsilon : float > 0, in nats
    delta : float, 0 < delta < 1
    backward, forward : as in `temporal_privacy_profile`
    horizon : int >= 1, the number of releases T
    method : "equal" or "least_variance"
        "equal" gives the smallest equal multipliers, to 0.01%; "least_variance" ones of a smaller sum
        of squares, never worse, from an approximation: at epsilon = 7 a sum 2.8% smaller was found.
    index : labels of the time points, or None

    Returns
    -------
    array (T,) that knows its unit, or with an index a Series called noise_multiplier; where budgets
    are wanted, both are an error

    Raises
    ------
    ValueError as in `temporal_privacy_profile`, and for a delta near the rounding of profiles

    Examples
    --------
    >>> backward, forward = [[0.8, 0.2], [0.2, 0.8]], [[0.8, 0.2], [0.1, 0.9]]  # Fig. 8 of [1]
    >>> allocate_noise(1.0, 1e-6, backward, forward, horizon=4).round(2).tolist()
    [6.14, 6.14, 6.14, 6.14]
    >>> allocate_noise(1.0, 1e-6, backward, forward, horizon=4, method="least_variance").round(1).tolist()
    [5.4, 6.7, 6.2, 5.2]
    """
    epsilon, horizon = check_level(epsilon, "epsilon"), check_horizon(horizon)
    delta = as_scalar(check_delta(delta), "delta")
    check_choice(method, "method", ("equal", "least_variance"))
    before, after, _ = steps_of_both_sides(as_loss_function, backward, forward, horizon)
    series = _Series(epsilon, delta, float(gaussian_mu(epsilon, delta)), before, after)
    composed = np.full(horizon, epsilon / horizon)  # within epsilon even if all values are the same
    if series.largest(composed / 4.0) > epsilon:
        raise ValueError(
            f"delta must be above the rounding errors of the profiles of {horizon} releases, found {delta:g}; give a "
            "larger one, or budgets for pure DP (allocate_optimally)"
        )
    equal = series.fit(composed)
    # other compositions round differently
    while series.adds_up and series.leakage(equal).max() > epsilon:
        equal = equal * (1.0 - TOLERANCE)
    if method == "least_variance" and not series.adds_up:
        unequal = series.fit(_least_variance(series, equal))
        equal = min(equal, unequal, key=lambda budgets: (1.0 / budgets).sum())
    multipliers = NoiseMultipliers.of(1.0 / series.shift(equal))
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
        return any(
            all(loss is not None and loss.is_identity for loss in side)
            for side in (self.before, self.after)
        )

    def shift(self, budgets: np.ndarray) -> np.ndarray:
        return self.mu * np.sqrt(budgets / self.epsilon)

    def budget(self, epsilons: np.ndarray | float) -> np.ndarray:
        """The budget of a single release with each epsilon at delta."""
        return self.epsilon * (np.asarray(gaussian_mu(epsilons, self.delta)) / self.mu) ** 2

    def profile(self, budgets: np.ndarray) -> TemporalPrivacyProfile:
        with optional_import():
            from dp_accounting import GaussianDpEvent

        multipliers = (1.0 / self.shift(budgets)).tolist()
        runs = [(GaussianDpEvent(m), len(list(run))) for m, run in groupby(multipliers)]
        return temporal_privacy_profile(runs, self.before, self.after)

    def leakage(self, budgets: np.ndarray) -> np.ndarray:
        """The epsilon at delta of each time, (T,)."""
        return self.profile(budgets).epsilon(self.delta)

    def largest(self, budgets: np.ndarray) -> float:
        """The largest epsilon at delta; from one composition of all releases where they add up."""
        profile = self.profile(budgets)
        return float(np.max((profile.user_level if self.adds_up else profile).epsilon(self.delta)))

    def fit(self, budgets: np.ndarray) -> np.ndarray:
        """The largest multiple of the budgets that is within (epsilon, delta)."""
        target = safely_below(self.epsilon, budgets.size)
        return fit_to_level(self.largest, budgets, self.epsilon, target, tolerance=TOLERANCE)


class _Step:
    """An approximate step of correlation, from the budget before it to the budget after it."""

    def __init__(self, loss: PrivacyLossFunction, series: _Series):
        budgets = np.linspace(0.0, 2.0 * series.epsilon, POINTS)
        shifts = series.shift(budgets)
        losses = np.linspace(0.0, float(gaussian_epsilon(shifts[-1], series.delta)), 4097)
        slopes = np.expm1(np.minimum(losses, 700.0))
        eta = np.maximum(loss.support(slopes), 1e-300)
        before = np.log(eta + slopes) - np.log(eta)  # 1 + slopes / eta may overflow
        epsilons = np.zeros(POINTS)
        for k, shift in enumerate(shifts.tolist()):
            logs = np.log(np.maximum(eta * gaussian_delta(shift, before), 1e-300) / series.delta)
            point = int(np.argmax(logs <= 0.0))  # delta falls with the loss
            if point > 0:
                epsilons[k] = losses[point - 1] + losses[1] * logs[point - 1] / (
                    logs[point - 1] - logs[point]
                )
        self.after = np.minimum(np.maximum.accumulate(series.budget(epsilons)), budgets).tolist()
        self.width = float(budgets[1])

    def __call__(self, budget: float) -> tuple[float, float]:
        """The budget after the step, linear between points, and its slope."""
        cell = min(int(budget / self.width), POINTS - 2)
        slope = (self.after[cell + 1] - self.after[cell]) / self.width
        return self.after[cell] + slope * (budget - cell * self.width), slope


class _LeastVariance(LeastError):
    """The sum of 1 / budget over T times by the approximation, whose TPL is corrected by
    `correction` (T,)."""

    def __init__(self, epsilon: float, before: list, after: list, correction: np.ndarray):
        T = correction.size
        super().__init__(epsilon, np.full(T, 1.0 / T), power=1)
        self.before, self.after, self.correction = before, after, correction

    def tpl(self, budgets: np.ndarray, change: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        bpl, dbpl = _ascend(self.before, budgets, change)
        fpl, dfpl = (
            values[::-1] for values in _ascend(self.after[::-1], budgets[::-1], change[::-1])
        )
        return bpl + fpl - budgets + self.correction, dbpl + dfpl - change


def _ascend(steps: list, budgets: np.ndarray, change: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """As `Recursion.ascend`."""
    leakages, derivative = budgets.copy(), change.copy()
    for t, step in enumerate(steps, start=1):
        if step is not None:
            after, slope = step(float(leakages[t - 1]))
            leakages[t] += after
            derivative[t] += slope * derivative[t - 1]
    return leakages, derivative


def _least_variance(series: _Series, start: np.ndarray) -> np.ndarray:
    """Budgets (T,) in the proportions of the least total variance, by the corrected
    approximation."""
    steps = {
        loss: None if loss is None else _Step(loss, series)
        for loss in {*series.before, *series.after}
    }
    before = [steps[loss] for loss in series.before]
    after = [steps[loss] for loss in series.after]
    on_knots = start.size > MANY and len(set(before)) == len(set(after)) == 1
    budgets, correction = start, np.zeros(start.size)
    for _ in range(CORRECTIONS):
        problem = _LeastVariance(series.epsilon, before, after, correction)
        begin = problem.fit(budgets, tolerance=1e-9)
        solutions = solve_on_knots(problem, [begin]) if on_knots else [problem.solve(begin)]
        budgets = np.exp(np.log(min(map(problem.fit, solutions), key=problem.cost)).round(DIGITS))
        leakages = np.minimum(series.leakage(budgets), 4.0 * series.epsilon)  # may be inf
        error = series.budget(leakages) - problem.tpl(budgets, np.empty((budgets.size, 0)))[0]
        correction = correction + error
        if np.abs(error).max() <= SETTLED * series.epsilon:
            break
    return budgets
