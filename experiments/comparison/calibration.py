"""Mechanisms at equal measured leakage: sweep the parameter, and read off the error where the leakage is as wanted.

A seed stands for a crowd of users and all the noise; within a seed every parameter meets the same draws (common random
numbers), so that curves are smooth. The leakage of a seed is a high quantile over its users of the largest leakage
about any time: a mean would hide the users who are exposed, and the maximum of a sample grows with its size and belongs
to a single run. It is realised, not worst-case: the privacy loss of outputs that were drawn, which temporal privacy
leakage (Eq. (2) of [1]) bounds over all outputs.
"""

from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import block_diag

from experiments.comparison.catalogue import CountMechanism
from experiments.comparison.setting import Setting
from tplrepro.blas import one_blas_thread
from tplrepro.progress import progress_bar
from tplrepro.search import largest_within
from tplrepro.validation import FrozenArrays, check_level

__all__ = ["Calibrated", "Outcome", "at_equal_leakage", "at_guarantee"]
__all__ += ["infer_counts", "measured_leakage", "simulate", "sweep"]

#: Parameters beyond these are not tried.
SMALLEST, LARGEST = 1e-6, 1e6


@dataclass(frozen=True)
class Outcome(FrozenArrays):
    """What a mechanism gives: floats for one seed at one parameter, arrays (S, P) for S seeds at P parameters each.

    `leakage` and `leakage_near` are the quantile of the measured leakage between all cells and between neighbours,
    `largest` is the largest between all; nats. `error` is the mean absolute error of the counts as released, users a
    cell and time, NaN if none are; `inferred_error` that of the counts inferred with the public chain, `prior_error`
    that of the counts that the chain expects without any release.
    """

    parameter: Any
    leakage: Any
    leakage_near: Any
    largest: Any
    error: Any
    inferred_error: Any
    prior_error: Any


@dataclass(frozen=True, eq=False)
class Calibrated(FrozenArrays):
    """What each seed gives at the wanted leakage, (S,) each; NaN where its curve does not reach that leakage."""

    parameter: np.ndarray
    error: np.ndarray
    inferred_error: np.ndarray


def measured_leakage(told: ArrayLike, pairs: ArrayLike | None = None) -> np.ndarray:
    """The largest realised log-likelihood ratio between two cells at each time, (..., T), nats.

    `told` (..., T, n) is log Pr(all outputs | l_t = k), NaN for cells that are impossible at that time. By default all
    pairs of possible cells are compared, else those given (m, 2). Infinite where a possible cell is ruled out.

    >>> told = [[0.0, 1.0, 3.0]]
    >>> measured_leakage(told).tolist(), measured_leakage(told, [(0, 1), (1, 2)]).tolist()
    ([3.0], [2.0])
    """
    values = np.asarray(told, dtype=float)
    if pairs is None:
        return np.nanmax(values, axis=-1) - np.nanmin(values, axis=-1)
    largest = np.zeros(values.shape[:-1])
    by_cell = np.ascontiguousarray(np.moveaxis(values, -1, 0))
    for first, second in np.asarray(pairs, dtype=np.intp).reshape(-1, 2):
        with np.errstate(invalid="ignore"):
            np.fmax(largest, np.abs(by_cell[first] - by_cell[second]), out=largest)
    return largest


def infer_counts(noisy: np.ndarray, variances: np.ndarray, setting: Setting, correlation: float = 0.0) -> np.ndarray:
    """The best linear estimate of counts from noisy ones, given the number of users and their chain.

    Users move independently by the chain, so that the counts of one time have the mean N pi and the covariance
    N (diag(pi) - pi pi^T), and those of the next are P^T times these plus innovations: a Kalman filter, and smoothing
    in the form of Bryson and Frazier, which inverts no singular covariance. The `variances` (T,) of the noise of each
    count are infinite where nothing was published; of the data in `setting` only the number of users is used. Noise of
    one variance whose values at consecutive times have a `correlation` is followed beside the counts.
    """
    pi = setting.adversary.initial
    step = setting.adversary.transitions.toarray().T
    stationary = setting.n_users * (np.diag(pi) - np.outer(pi, pi))
    seen = np.eye(pi.size)
    if correlation != 0.0:
        step, stationary = block_diag(step, correlation * seen), block_diag(stationary, variances[0] * seen)
        variances, seen = np.zeros(len(variances)), np.hstack((seen, seen))
    innovations = stationary - step @ stationary @ step.T
    mean, covariance = np.zeros(len(step)), stationary  # of the counts less N pi
    filtered = []
    for values, variance in zip(np.asarray(noisy, dtype=float), variances, strict=True):
        closed, weighed = np.eye(len(step)), np.zeros(len(step))
        if np.isfinite(variance):
            total = seen @ covariance @ seen.T + variance * np.eye(pi.size)
            told = seen.T @ np.linalg.solve(total, np.column_stack((seen, values - setting.n_users * pi - seen @ mean)))
            weighed = told[:, -1]
            closed = closed - covariance @ told[:, :-1]
            mean, covariance = mean + covariance @ weighed, closed @ covariance
        filtered.append((mean, covariance, closed, weighed))
        mean, covariance = step @ mean, step @ covariance @ step.T + innovations
    inferred, later = np.empty((len(filtered), pi.size)), np.zeros_like(mean)
    for t in range(len(filtered) - 1, -1, -1):
        mean, covariance, closed, weighed = filtered[t]
        inferred[t] = setting.n_users * pi + (mean + covariance @ later)[: pi.size]
        later = step.T @ (weighed + closed.T @ later)
    return inferred


def simulate(
    mechanism: CountMechanism, parameter: float, setting: Setting, n_users: int, seed: int, quantile: float
) -> Outcome:
    """Release the counts of a crowd of `n_users` drawn from `setting`, and measure; the quantile is over users."""
    people, noise = np.random.default_rng(seed).spawn(2)
    crowd = setting.sample(n_users, people)
    with one_blas_thread():
        release = mechanism.release(crowd, parameter, noise)
        told = crowd.adversary.told(release.log_likelihoods, release.staying)
        if release.counts is None or release.variances is None:
            inferred = crowd.adversary.posteriors(told).sum(axis=0)
        else:
            inferred = infer_counts(release.counts, release.variances, crowd, release.correlation)

    def error(estimate: np.ndarray) -> float:
        return float(np.abs(estimate - crowd.counts).mean())

    worst, near = (measured_leakage(told, pairs).max(axis=-1) for pairs in (None, crowd.near))
    return Outcome(
        parameter=parameter,
        leakage=_quantile(worst, quantile),
        leakage_near=_quantile(near, quantile),
        largest=float(worst.max()),
        error=np.nan if release.counts is None else error(release.counts),
        inferred_error=error(inferred),
        prior_error=error(crowd.expected_counts),
    )


def sweep(
    mechanism: CountMechanism,
    setting: Setting,
    n_users: int,
    seeds: Sequence[int],
    low: float,
    high: float,
    points: int,
    quantile: float = 0.95,
    progress: bool = False,
) -> Outcome:
    """Outcomes for parameters whose measured leakage runs from about `low` to about `high`, between neighbours too.

    The ends are found with the first seed: `low` for the leakage between all cells, `high` for that between neighbours,
    which is never larger; nats. The `points` >= 2 parameters in all are equally spaced on a logarithmic scale.
    ValueError if the mechanism does not reach such leakages.
    """
    low, high = check_level(low, "low"), check_level(high, "high")
    if not (low < high and points >= 2):
        raise ValueError(f"a sweep needs low < high and 2 points, found {low:g}, {high:g} and {points}; widen it")

    @cache
    def outcome(parameter: float) -> Outcome:
        return simulate(mechanism, parameter, setting, n_users, seeds[0], quantile)

    first = _end(lambda parameter: outcome(parameter).leakage, low, -1)
    last = _end(lambda parameter: outcome(parameter).leakage_near, high, 1)
    grid = list(product(np.geomspace(first, last, points).tolist(), seeds))
    rows = []
    with progress_bar(len(grid), progress, mechanism.name, "release") as bar:
        for parameter, seed in grid:  # what depends on the parameter alone is found once
            rows.append(astuple(simulate(mechanism, parameter, setting, n_users, seed, quantile)))
            bar.update()
    return Outcome(*np.array(rows).T.reshape(-1, points, len(seeds)).swapaxes(1, 2))


def at_equal_leakage(swept: Outcome, target: float, near: bool = False) -> Calibrated:
    """Parameter and errors of each seed where its measured leakage is `target`.

    Leakage (between neighbouring cells if `near`), parameter and errors are interpolated on logarithmic scales, from
    the last parameter whose leakage is below the target to the next.
    """
    wanted = np.log(check_level(target, "target"))
    with np.errstate(divide="ignore"):
        leakages = np.log(swept.leakage_near if near else swept.leakage)

    def crossings(values: np.ndarray) -> np.ndarray:
        return np.exp([_crossing(*row, wanted) for row in zip(leakages, np.log(values), strict=True)])

    return Calibrated(*map(crossings, (swept.parameter, swept.error, swept.inferred_error)))


def at_guarantee(mechanism: CountMechanism, setting: Setting, target: float) -> float:
    """The largest parameter with which theory bounds the leakage of any outputs by `target` nats; NaN if none does."""
    level = check_level(target, "target")

    def within(parameter: float) -> bool:
        return mechanism.bound(setting, parameter) <= level

    return largest_within(within, SMALLEST, LARGEST, tolerance=1e-9, logarithmic=True) if within(SMALLEST) else np.nan


def _crossing(leakages: np.ndarray, values: np.ndarray, wanted: float) -> float:
    """The value where the logarithmic leakages pass `wanted` for good; the last before, if that leaks nothing."""
    below = np.flatnonzero(leakages <= wanted)
    if not below.size or below[-1] + 1 == leakages.size:
        return np.nan
    i = below[-1]
    if np.isneginf(leakages[i]):
        return values[i]
    share = (wanted - leakages[i]) / (leakages[i + 1] - leakages[i])
    return (1 - share) * values[i] + share * values[i + 1]


def _end(leakage: Callable[[float], float], wanted: float, side: int) -> float:
    """A parameter whose leakage is at most (side -1) or at least (1) as wanted, up to a factor of 1.3 the last one."""

    def reaches(size: float) -> bool:  # true for small sizes
        return side * (leakage(size**-side) - wanted) >= 0

    size = 1.0
    while not reaches(size):
        size /= 8
        if size < SMALLEST:
            found = (size * 8) ** -side
            raise ValueError(
                f"the measured leakage must reach {wanted:g} nats, found {leakage(found):g} at parameter {found:g}; "
                "choose a range that the mechanism has"
            )
    while size * 8 <= LARGEST and reaches(size * 8):
        size *= 8
    return largest_within(reaches, size, size * 8, tolerance=0.25, logarithmic=True) ** -side


def _quantile(values: np.ndarray, quantile: float) -> float:
    """An order statistic, never between two values, so that infinite ones stay infinite.

    >>> _quantile(np.array([4.0, 1.0, 3.0, 2.0]), 0.5), _quantile(np.array([1.0, np.inf]), 0.5)
    (3.0, inf)
    """
    return float(np.quantile(values, quantile, method="higher"))
