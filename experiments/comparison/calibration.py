"""Mechanisms at equal measured leakage: sweep the parameter, and interpolate the error at the
target leakage.

All parameters use the same users and noise of a seed, so the curves are smooth. The leakage of a
seed is a high quantile over its users of the largest leakage about any time: a mean would hide
exposed users, and a maximum grows with their number. It is the realised privacy loss of the outputs
that were drawn, which temporal privacy leakage (Eq. (2) of [1]) bounds over all outputs.
"""

from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import toeplitz

from experiments.comparison.catalogue import LARGEST, SMALLEST, CountMechanism
from experiments.comparison.setting import Setting
from tplrepro.blas import one_blas_thread
from tplrepro.progress import with_progress
from tplrepro.search import largest_within
from tplrepro.validation import FrozenArrays, check_level


@dataclass(frozen=True)
class Outcome(FrozenArrays):
    """Leakage and error of a mechanism: of one seed and parameter, or (S, P) for S seeds, P
    parameters."""

    parameter: Any
    leakage: Any  # quantile over users between all cells, nats
    leakage_near: Any  # the same between neighbours
    largest: Any  # maximum over users between all cells
    # mean absolute error of the released counts (users per cell and time), NaN if there are none
    error: Any
    inferred_error: Any  # of the counts inferred with the public chain
    prior_error: Any  # of the counts expected without any release


def realised_leakage(log_likelihoods: ArrayLike, pairs: ArrayLike | None = None) -> np.ndarray:
    """The largest realised log-likelihood ratio between two cells at each time, (..., T), nats.

    `log_likelihoods` (..., T, n) are log Pr(all outputs | l_t = k). All pairs of cells are
    compared, or only `pairs` (m, 2). Infinite where the outputs rule out one cell of a pair.
    """
    values = np.asarray(log_likelihoods, dtype=float)
    if pairs is None:
        return np.ptp(values, axis=-1)
    largest = np.zeros(values.shape[:-1])
    by_cell = np.ascontiguousarray(np.moveaxis(values, -1, 0))
    for first, second in np.asarray(pairs, dtype=np.intp).reshape(-1, 2):
        with np.errstate(invalid="ignore"):
            np.fmax(largest, np.abs(by_cell[first] - by_cell[second]), out=largest)
    return largest


def infer_counts(
    noisy: np.ndarray, variances: np.ndarray, setting: Setting, correlation: float = 0.0
) -> np.ndarray:
    """The best linear estimate of the counts (T, n) from noisy counts, given the number of users
    and their chain.

    Users move independently by the chain, so the counts of each time have mean N pi, and those of
    times s <= t have covariance N (diag(pi) P^(t - s) - pi pi^T). The noise `variances` (T,) are
    infinite where nothing was published; the noise of one count has a `correlation` over time.
    """
    horizon = len(variances)
    n_cells = setting.n_cells
    published = np.isfinite(variances)
    deviations = np.sqrt(np.where(published, variances, 0.0))
    noise = toeplitz(correlation ** np.arange(horizon)) * np.outer(deviations, deviations)
    seen = np.repeat(published, n_cells)
    with_counts = _covariance_of_counts(setting, horizon)[:, seen]
    total = (with_counts + np.kron(noise, np.eye(n_cells))[:, seen])[seen]
    residual = (np.asarray(noisy, dtype=float) - setting.expected_counts).ravel()[seen]
    correction = with_counts @ np.linalg.solve(total, residual)
    return setting.expected_counts + correction.reshape(horizon, n_cells)


def _covariance_of_counts(setting: Setting, horizon: int) -> np.ndarray:
    """The covariance of the true counts of all times and cells, (T n, T n)."""
    pi = setting.adversary.initial
    step = setting.adversary.transitions.toarray()
    covariance = np.empty((horizon, pi.size, horizon, pi.size))
    joint = np.diag(pi)  # Pr(l_s = j, l_t = k)
    for apart in range(horizon):
        for t in range(horizon - apart):
            covariance[t, :, t + apart] = setting.n_users * (joint - np.outer(pi, pi))
            covariance[t + apart, :, t] = covariance[t, :, t + apart].T
        joint = joint @ step
    return covariance.reshape(horizon * pi.size, horizon * pi.size)


def simulate(
    mechanism: CountMechanism,
    parameter: float,
    setting: Setting,
    n_users: int,
    seed: int,
    quantile: float,
) -> Outcome:
    """Release the counts of `n_users` users drawn from `setting` once, and measure leakages and
    errors.

    `seed` fixes the users and the noise; `quantile` of the users' leakages becomes the field
    `leakage`.
    """
    people, noise = np.random.default_rng(seed).spawn(2)
    crowd = setting.sample(n_users, rng=people)
    with one_blas_thread():
        release = mechanism.release(crowd, parameter, rng=noise)
        log_likelihoods = crowd.adversary.output_log_likelihoods(
            release.log_likelihoods, release.staying
        )
        if release.counts is None or release.variances is None:
            inferred = crowd.adversary.posteriors(log_likelihoods).sum(axis=0)
        else:
            inferred = infer_counts(release.counts, release.variances, crowd, release.correlation)

    def error(estimate: np.ndarray) -> float:
        return float(np.abs(estimate - crowd.counts).mean())

    released_error = np.nan
    if release.counts is not None:
        released_error = error(release.counts)
    worst = realised_leakage(log_likelihoods).max(axis=-1)
    near = realised_leakage(log_likelihoods, crowd.near).max(axis=-1)
    return Outcome(
        parameter=parameter,
        # The method never interpolates, so infinite values stay infinite.
        leakage=float(np.quantile(worst, quantile, method="higher")),
        leakage_near=float(np.quantile(near, quantile, method="higher")),
        largest=float(worst.max()),
        error=released_error,
        inferred_error=error(inferred),
        prior_error=error(crowd.expected_counts),
    )


def sweep(
    mechanism: CountMechanism,
    setting: Setting,
    n_users: int,
    seeds: Sequence[int],
    *,
    low: float,
    high: float,
    points: int,
    quantile: float = 0.95,
) -> Outcome:
    """Outcomes (seeds, points) at `points` >= 2 parameters, whose measured leakage runs from about
    `low` to about `high` nats.

    Each seed fixes `n_users` users drawn from `setting`, and the noise; the measured leakage is the
    `quantile` over users. The first seed determines the ends: the leakage between all cells is
    about `low`, that between neighbours, which is never larger, about `high`.
    """

    @cache
    def outcome(parameter: float) -> Outcome:
        return simulate(mechanism, parameter, setting, n_users, seeds[0], quantile)

    first = _extreme_parameter(lambda parameter: outcome(parameter).leakage, low, -1)
    last = _extreme_parameter(lambda parameter: outcome(parameter).leakage_near, high, 1)
    # All seeds of a parameter one after the other: its budgets are computed once and cached.
    grid = list(product(np.geomspace(first, last, points).tolist(), seeds))
    rows = []
    for parameter, seed in with_progress(grid, mechanism.name, "release"):
        rows.append(astuple(simulate(mechanism, parameter, setting, n_users, seed, quantile)))
    fields = np.array(rows).T.reshape(-1, points, len(seeds))
    return Outcome(*fields.swapaxes(1, 2))


def at_equal_leakage(swept: Outcome, target: float, near: bool = False) -> Outcome:
    """The outcome of each of S seeds where its measured leakage is `target` nats: fields (S,).

    Fields are NaN where a seed's curve does not cross the target. All are interpolated on
    logarithmic scales of the leakage (between neighbouring cells if `near`) and of the field, from
    the last parameter whose leakage is not above the target to the next.
    """
    wanted = np.log(check_level(target, "target"))
    leakage = swept.leakage_near if near else swept.leakage
    with np.errstate(divide="ignore"):
        leakages = np.log(leakage)
        logs = [np.log(field) for field in astuple(swept)]
    fields = []
    for log in logs:
        crossings = [
            _value_at_crossing(of_seed, values, wanted)
            for of_seed, values in zip(leakages, log, strict=True)
        ]
        fields.append(np.exp(crossings))
    return Outcome(*fields)


def _value_at_crossing(leakages: np.ndarray, values: np.ndarray, wanted: float) -> float:
    """The entry of `values` (m,), interpolated, where the log leakages (m,) last cross `wanted`;
    NaN if they do not.

    Where nothing leaks before the crossing, it is the value before it.
    """
    below = np.flatnonzero(leakages <= wanted)
    if not below.size or below[-1] + 1 == leakages.size:
        return np.nan
    i = below[-1]
    if np.isneginf(leakages[i]):
        return values[i]
    share = (wanted - leakages[i]) / (leakages[i + 1] - leakages[i])
    return (1 - share) * values[i] + share * values[i + 1]


def _extreme_parameter(leakage: Callable[[float], float], wanted: float, side: int) -> float:
    """The largest parameter whose leakage is at most `wanted` nats (side -1), or the smallest whose
    leakage is at least that (side 1); up to a factor of 1.3."""

    def reaches(size: float) -> bool:  # true for small sizes
        return side * (leakage(size**-side) - wanted) >= 0

    size = 1.0
    while not reaches(size):
        size /= 8
        if size < SMALLEST:
            last = (size * 8) ** -side
            raise ValueError(
                f"the measured leakage must reach {wanted:g} nats, found {leakage(last):g} "
                f"at parameter {last:g}; choose a range that the mechanism has"
            )
    while size * 8 <= LARGEST and reaches(size * 8):
        size *= 8
    largest = largest_within(reaches, size, size * 8, tolerance=0.25, logarithmic=True)
    return largest**-side
