"""Mechanisms at equal measured leakage: sweep the parameter, and read off the error where the leakage is as wanted.

A seed stands for a crowd of users drawn from the data and all the noise; within a seed every parameter meets the same
draws (common random numbers), so that curves are smooth. The leakage of a seed is a high quantile over its users of the
largest leakage about any time: a mean would hide the users who are exposed, and the maximum of a sample grows with its
size and belongs to a single run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from tplrepro.comparison.adversary import measured_leakage, smoothed_posteriors
from tplrepro.comparison.catalogue import Mechanism
from tplrepro.comparison.setting import Setting
from tplrepro.comparison.utility import infer_counts, mean_absolute_error
from tplrepro.progress import progress_bar
from tplrepro.validation import check_level

__all__ = ["Calibrated", "Outcome", "Sweep", "at_equal_leakage", "at_guarantee", "simulate", "sweep"]

#: Parameters beyond these are not tried.
SMALLEST, LARGEST = 1e-6, 1e6
#: How often an end of the range of parameters, known within a factor of 8, is halved on a logarithmic scale.
HALVINGS = 3


@dataclass(frozen=True)
class Outcome:
    """One seed at one parameter.

    Attributes
    ----------
    leakage, leakage_near : float, the quantile of the measured leakage between all cells and between neighbours; nats
    largest : float, the largest measured leakage between all cells; nats
    error : float, mean absolute error of the counts as released, users; NaN if none are
    inferred_error : float, the same of the counts inferred with the public chain
    prior_error : float, the same of the counts that the chain expects, without any release
    """

    leakage: float
    leakage_near: float
    largest: float
    error: float
    inferred_error: float
    prior_error: float


@dataclass(frozen=True, eq=False)
class Sweep:
    """Outcomes of a mechanism for P parameters and S seeds: arrays (P,) and (S, P), named as in `Outcome`."""

    parameters: np.ndarray
    leakage: np.ndarray
    leakage_near: np.ndarray
    largest: np.ndarray
    error: np.ndarray
    inferred_error: np.ndarray
    prior_error: np.ndarray


@dataclass(frozen=True, eq=False)
class Calibrated:
    """What each seed gives at the wanted leakage, (S,) each; NaN where its curve does not reach that leakage."""

    parameter: np.ndarray
    error: np.ndarray
    inferred_error: np.ndarray


def simulate(
    mechanism: Mechanism, parameter: float, setting: Setting, n_users: int, seed: int, quantile: float
) -> Outcome:
    """Release one crowd's counts, and measure.

    Parameters
    ----------
    mechanism : Mechanism
    parameter : float
    setting : Setting, from whose users the crowd is drawn
    n_users : int, N
    seed : int
    quantile : float in (0, 1], over users

    Returns
    -------
    Outcome
    """
    people, noise = np.random.default_rng(seed).spawn(2)
    crowd = setting.sample(n_users, people)
    with _blas_threads().limit(limits=1, user_api="blas"):
        return _measured(mechanism, parameter, crowd, quantile, noise)


def _measured(mechanism, parameter, crowd, quantile, noise) -> Outcome:
    adversary = crowd.adversary
    release = mechanism.release(crowd, parameter, noise)
    evidence = adversary.log_evidence(release.log_likelihoods)
    worst = measured_leakage(evidence).max(axis=-1)
    near = measured_leakage(evidence, crowd.near).max(axis=-1)
    if release.variances is None:
        inferred = smoothed_posteriors(evidence, adversary.transitions, adversary.initial).sum(axis=0)
    else:
        inferred = infer_counts(release.counts, release.variances, crowd)
    return Outcome(
        leakage=_quantile(worst, quantile),
        leakage_near=_quantile(near, quantile),
        largest=float(worst.max()),
        error=np.nan if release.counts is None else mean_absolute_error(release.counts, crowd.counts),
        inferred_error=mean_absolute_error(inferred, crowd.counts),
        prior_error=mean_absolute_error(crowd.expected_counts, crowd.counts),
    )


def sweep(
    mechanism: Mechanism,
    setting: Setting,
    n_users: int,
    seeds: Sequence[int],
    low: float,
    high: float,
    points: int,
    quantile: float = 0.95,
    progress: bool = False,
) -> Sweep:
    """Outcomes for parameters whose measured leakage runs from about `low` to about `high`, between neighbours too.

    The ends are found with the first seed: `low` for the leakage between all cells, `high` for that between neighbours,
    which is never larger. The parameters between are equally spaced on a logarithmic scale.

    Parameters
    ----------
    mechanism, setting, n_users, quantile : as for `simulate`
    seeds : sequence of int
    low, high : float, nats
    points : int >= 2, P
    progress : bool, show a progress bar

    Raises
    ------
    ValueError
        If low < high does not hold, or the mechanism does not reach such leakages.
    """
    low, high = check_level(low, "low"), check_level(high, "high")
    if not (low < high and points >= 2):
        raise ValueError(f"a sweep needs low < high and 2 points, found {low:g}, {high:g} and {points}; widen it")

    def outcome(parameter):
        return simulate(mechanism, parameter, setting, n_users, seeds[0], quantile)

    first = _end(lambda parameter: outcome(parameter).leakage, low, -1)
    last = _end(lambda parameter: outcome(parameter).leakage_near, high, 1)
    parameters = np.geomspace(first, last, points)
    rows = []
    with progress_bar(len(seeds) * points, progress, mechanism.name, "release") as bar:
        for seed in seeds:
            for parameter in parameters:
                rows.append(simulate(mechanism, parameter, setting, n_users, seed, quantile))
                bar.update()
    columns = {
        name: np.array([getattr(row, name) for row in rows]).reshape(len(seeds), points)
        for name in Outcome.__dataclass_fields__
    }
    return Sweep(parameters, **columns)


def at_equal_leakage(swept: Sweep, target: float, near: bool = False) -> Calibrated:
    """Parameter and errors of each seed where its measured leakage is `target`.

    Leakage, parameter and errors are interpolated on logarithmic scales, from the last parameter whose leakage is below
    the target to the next.

    Parameters
    ----------
    swept : Sweep
    target : float > 0, nats
    near : bool, take the leakage between neighbouring cells
    """
    wanted = np.log(check_level(target, "target"))
    with np.errstate(divide="ignore"):
        leakages = np.log(swept.leakage_near if near else swept.leakage)
    columns = np.log(swept.parameters), np.log(swept.error), np.log(swept.inferred_error)
    parameter, error, inferred = (
        np.exp([_crossing(row, np.broadcast_to(column, leakages.shape)[s], wanted) for s, row in enumerate(leakages)])
        for column in columns
    )
    return Calibrated(parameter, error, inferred)


def at_guarantee(mechanism: Mechanism, setting: Setting, target: float) -> float:
    """The largest parameter with which theory bounds the leakage of all outputs by `target` nats; NaN without a bound.

    Never above: the bound at the result, as computed, is at most the target.
    """
    level = check_level(target, "target")
    low, high = SMALLEST, LARGEST
    if not mechanism.bound(setting, low) <= level:
        return np.nan
    while high > low * (1 + 1e-9):
        middle = float(np.sqrt(low * high))
        if mechanism.bound(setting, middle) <= level:
            low = middle
        else:
            high = middle
    return low


@cache
def _blas_threads():
    """Of products this small several threads wait for each other, on busy cores ten times as long as the product."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


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


def _end(leakage, wanted: float, side: int) -> float:
    """A parameter whose leakage is at most (side -1) or at least (1) as wanted, and not far from that."""

    def reaches(parameter):
        return side * (leakage(parameter) - wanted) >= 0

    step = 8.0**side
    outside = 1.0
    while not reaches(outside):
        outside *= step
        if not SMALLEST <= outside <= LARGEST:
            raise ValueError(
                f"the measured leakage must reach {wanted:g} nats, found {leakage(outside / step):g} at parameter "
                f"{outside / step:g}; choose a range that the mechanism has"
            )
    inside = outside / step
    while reaches(inside) and SMALLEST <= inside / step <= LARGEST:
        inside, outside = inside / step, inside
    for _ in range(HALVINGS):
        middle = float(np.sqrt(inside * outside))
        if reaches(middle):
            outside = middle
        else:
            inside = middle
    return outside


def _quantile(values: np.ndarray, quantile: float) -> float:
    """An order statistic, never between two values, so that infinite ones stay infinite."""
    return float(np.quantile(values, quantile, method="higher"))
