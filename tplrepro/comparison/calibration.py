"""Mechanisms at equal measured leakage: sweep the parameter, and read off the error where the leakage is as wanted.

A seed stands for a crowd of users drawn from the data and all the noise; within a seed every parameter meets the same
draws (common random numbers), so that curves are smooth. The leakage of a seed is a high quantile over its users of the
largest leakage about any time: a mean would hide the users who are exposed, and the maximum of a sample grows with its
size and belongs to a single run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from tplrepro.blas import one_blas_thread
from tplrepro.comparison.catalogue import CountMechanism
from tplrepro.comparison.measures import infer_counts, measured_leakage
from tplrepro.comparison.setting import Setting
from tplrepro.progress import progress_bar
from tplrepro.search import largest_within
from tplrepro.validation import check_level

__all__ = ["Calibrated", "Outcome", "at_equal_leakage", "at_guarantee", "simulate", "sweep"]

#: Parameters beyond these are not tried.
SMALLEST, LARGEST = 1e-6, 1e6


@dataclass(frozen=True)
class Outcome:
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
class Calibrated:
    """What each seed gives at the wanted leakage, (S,) each; NaN where its curve does not reach that leakage."""

    parameter: np.ndarray
    error: np.ndarray
    inferred_error: np.ndarray


def simulate(
    mechanism: CountMechanism, parameter: float, setting: Setting, n_users: int, seed: int, quantile: float
) -> Outcome:
    """Release the counts of a crowd of `n_users` drawn from `setting`, and measure; the quantile is over users."""
    people, noise = np.random.default_rng(seed).spawn(2)
    crowd = setting.sample(n_users, people)
    with one_blas_thread():
        release = mechanism.release(crowd, parameter, noise)
        told = crowd.adversary.told(release.log_likelihoods)
        if release.counts is None or release.variances is None:
            inferred = crowd.adversary.posteriors(told).sum(axis=0)
        else:
            inferred = infer_counts(release.counts, release.variances, crowd)

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
    parameters = np.geomspace(first, last, points)
    rows = []
    with progress_bar(len(seeds) * points, progress, mechanism.name, "release") as bar:
        for seed, parameter in product(seeds, parameters.tolist()):
            rows.append(astuple(simulate(mechanism, parameter, setting, n_users, seed, quantile)))
            bar.update()
    return Outcome(*np.array(rows).T.reshape(-1, len(seeds), points))


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

    def parameter(size: float) -> float:
        return size if side < 0 else 1 / size

    def reaches(size: float) -> bool:  # true for small sizes
        return side * (leakage(parameter(size)) - wanted) >= 0

    size = 1.0
    while not reaches(size):
        size /= 8
        if size < SMALLEST:
            found = parameter(size * 8)
            reached = f"found {leakage(found):g} at parameter {found:g}; choose a range that the mechanism has"
            raise ValueError(f"the measured leakage must reach {wanted:g} nats, {reached}")
    while size * 8 <= LARGEST and reaches(size * 8):
        size *= 8
    return parameter(largest_within(reaches, size, size * 8, tolerance=0.25, logarithmic=True))


def _quantile(values: np.ndarray, quantile: float) -> float:
    """An order statistic, never between two values, so that infinite ones stay infinite."""
    return float(np.quantile(values, quantile, method="higher"))
