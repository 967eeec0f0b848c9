"""Noise for a normal series: the least that keeps every value mu-GDP
(`tplfrontier.series.leakage`).

The noise is independent, of one variance or of one for each time, or correlated, with a stationary,
banded covariance. 1 / (1 / Var(x_t | outputs) - 1 / Var(x_t)) is the least v^T (K + noise) v -
Var(x_t) over all v with v^T K_t = Var(x_t), so it is concave in the noise's covariance, and the
noise that keeps mu is a convex set. Cutting planes minimise a linear cost over it: each linear
program gives a lower bound, and each of its solutions a noise that keeps mu.

Without a band there is a closed form: noise shaped like the series, (change / mu)^2 K / Var(x),
leaks at each time as if nothing else had been released, and no noise of less variance can.
"""

from __future__ import annotations
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from tplfrontier.series.leakage import gaussian_series_limit, information, regression
from tplfrontier.series.state_space import LinearGaussianSeries, check_covariance
from tplrepro.leakage.temporal import safely_below
from tplrepro.progress import Bar, with_progress
from tplrepro.search import largest_within
from tplrepro.validation import as_numbers, check_level, warn_caller

# largest relative distance of the cost from the least, and most linear programs
GAP, ROUNDS = 1e-4, 200
# largest variance, in that of equal independent noise; the cost may not depend on some of the noise
MOST = 100.0
MAX_TIMES = 1000  # the linear programs hold matrices of this many times at most


def allocate_series_noise(
    mu: float, covariance: LinearGaussianSeries | ArrayLike, change: float, *, equal: bool = True
) -> np.ndarray:
    """Variances (T,), rounded up, of independent noise that keep values `change` apart mu-GDP at
    every time.

    `mu` > 0 is `gaussian_mu` of a given (epsilon, delta); `covariance` and `change` as in
    `gaussian_series_leakage`, with its errors. The variances are the least that are equal at all
    times, or those of the least sum (to 1e-4), for T <= 1,000.

    Examples
    --------
    >>> series = LinearGaussianSeries.autoregressive(0.9, 5)
    >>> allocate_series_noise(1.0, series, 1.0).round(4).tolist()
    [3.6234, 3.6234, 3.6234, 3.6234, 3.6234]
    """
    mu, change = check_level(mu, "mu"), check_level(change, "change")
    if equal:
        return _least_equal(mu, covariance, change)
    K = _dense(covariance)
    return _least_cost(
        mu, K, change, np.ones(len(K)), _least_equal(mu, K, change), np.square, np.asarray
    )


def endless_series_noise(mu: float, series: LinearGaussianSeries, change: float) -> float:
    """The least variance of independent noise that keeps values mu-GDP in a stationary series of
    any length.

    Arguments, rounding and errors as in `allocate_series_noise` and `gaussian_series_limit`.

    Examples
    --------
    >>> round(endless_series_noise(1.0, LinearGaussianSeries.autoregressive(0.9, 1), 1.0), 4)
    6.4029
    """
    mu, change = check_level(mu, "mu"), check_level(change, "change")
    gaussian_series_limit(series, 1.0, change)  # refuses series without a limit
    level = _level(mu, series, 1)
    return _least_variance(
        lambda noise: gaussian_series_limit(series, noise, change) <= level, mu, change
    )


def correlate_series_noise(
    mu: float,
    covariance: LinearGaussianSeries | ArrayLike,
    change: float,
    band: int,
    *,
    workload: ArrayLike | None = None,
) -> np.ndarray:
    """The covariance (T, T) of the best correlated noise that keeps values `change` apart mu-GDP
    throughout.

    Cov(z_s, z_t) of the noise depends on `|s - t|` alone, and is 0 where that is more than the
    `band`. The total variance of the linear answers `workload` (k, T), by default of each value by
    itself, is least to 1e-4, else a UserWarning says so. Other arguments, rounding and errors as in
    `allocate_series_noise`.

    Examples
    --------
    >>> series = LinearGaussianSeries.autoregressive(0.9, 5)
    >>> [round(float(correlate_series_noise(1.0, series, 1.0, band)[0, 0]), 3) for band in (0, 1, 2, 4)]
    [3.623, 2.13, 1.448, 1.0]
    """
    mu, change, K = check_level(mu, "mu"), check_level(change, "change"), _dense(covariance)
    T = len(K)
    if isinstance(band, bool) or not isinstance(band, (int, np.integer)) or not 0 <= band < T:
        raise ValueError(
            f"band must be a whole number from 0 to T - 1 = {T - 1}, found {band!r}; give how many lags"
        )
    A = (
        np.eye(T)
        if workload is None
        else as_numbers(workload, "workload must be numbers", "give a row an answer")
    )
    if A.ndim != 2 or A.shape[1] != T or not np.isfinite(A).all() or not A.any():
        raise ValueError(
            f"workload must be finite, not 0 and of shape (k, {T}), found {A.shape}; give a row an answer"
        )
    distance = abs(np.subtract.outer(np.arange(T), np.arange(T)))

    def toeplitz(lags: np.ndarray) -> np.ndarray:
        return np.where(distance <= band, lags[np.minimum(distance, band)], 0.0)

    def products(v: np.ndarray) -> np.ndarray:
        sums = np.array([np.sum(v[: T - lag] * v[lag:], axis=0) for lag in range(band + 1)])
        return sums * np.where(np.arange(band + 1) > 0, 2.0, 1.0)[:, None]

    start = np.append(_least_equal(mu, K, change)[0], np.zeros(band))
    return _least_cost(mu, K, change, products(A.T).sum(axis=1), start, products, toeplitz)


def _least_cost(
    mu: float,
    K: np.ndarray,
    change: float,
    cost: np.ndarray,
    start: np.ndarray,
    coefficients: Callable[[np.ndarray], np.ndarray],
    noise_of: Callable[[np.ndarray], np.ndarray],
) -> np.ndarray:
    """The noise_of(x) of least cost @ x, where v^T noise v = coefficients(v)^T x for each column v.

    Kelley's cutting planes, in units of the variance that a single output needs. A noise that leaks
    too much is mixed with twice the `start`, which leaks less than mu, in the share that concavity
    requires.
    """
    from scipy.optimize import linprog

    unit = (change / mu) ** 2
    K, variances = K / unit, np.diagonal(K) / unit

    def tightest(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The least v^T (K + noise) v - Var(x_t), (T,), >= 1 where mu is kept, and its v, the
        columns (T, T)."""
        weights, explained, remaining = regression(K, noise_of(x))
        return remaining * variances / explained, weights * (variances / explained)

    T, correlated = len(K), noise_of(start).ndim == 2
    most = MOST * start.max() / unit
    bounds = [(1.0, most), *[(-most if correlated else 1.0, most)] * (start.size - 1)]
    rows, least = [np.zeros((0, start.size))], [np.zeros(0)]  # the constraints rows @ x >= least
    if correlated:  # the variance of each wave is at least 0
        phases = np.outer(np.arange(T), np.linspace(0.0, np.pi, 2 * T))
        rows.append(coefficients(np.hstack((np.cos(phases), np.sin(phases[:, 1:-1])))).T)
        least.append(np.zeros(len(rows[-1])))
    best = start / unit
    inner = 2.0 * best
    inner_values, _ = tightest(inner)
    lowest = float(cost[0])  # until a program says more
    for _round in with_progress(range(ROUNDS), "least noise, at most", "round"):
        solved = linprog(
            cost, -np.vstack(rows), -np.concatenate(least), bounds=bounds, method="highs"
        )
        # rounding leaves no solution beside variances of very different sizes
        if solved.fun is None:
            break
        lowest = solved.fun
        if cost @ best <= (1.0 + GAP) * lowest:
            break
        for x in (solved.x, 0.5 * (solved.x + best)):
            if correlated:
                eigenvalues, vectors = np.linalg.eigh(noise_of(x))
                rows.append(coefficients(vectors[:, eigenvalues < 0.0]).T)
                least.append(np.zeros(len(rows[-1])))
                x = x.copy()
                x[0] += max(-eigenvalues[0], 0.0) * (1.0 + 1e-9)
            values, v = tightest(x)
            short = values < 1.0
            rows.append(coefficients(v[:, short]).T)
            least.append((1.0 - np.sum(v * (K @ v), axis=0) + variances)[short])
            share = np.max((1.0 - values[short]) / (inner_values - values)[short], initial=0.0)
            best = min(best, (1.0 - share) * x + share * inner, key=lambda x: cost @ x)
    if not cost @ best <= (1.0 + GAP) * lowest:
        warn_caller(
            f"the least noise must be found to a share of {GAP:g}, found {cost @ best / lowest - 1.0:.3g} after "
            f"{_round + 1} rounds; it keeps mu, and a shorter band or series comes nearer to the least",
        )
    noise, step = noise_of(unit * best), 2.0**-52
    while not _within(mu, K * unit, noise, change):
        noise = noise * (1.0 + step)
        step *= 2.0
    return noise


def _least_equal(
    mu: float, covariance: LinearGaussianSeries | ArrayLike, change: float
) -> np.ndarray:
    """The least variance of independent noise, the same at all T times, (T,)."""
    T = (
        covariance.horizon
        if isinstance(covariance, LinearGaussianSeries)
        else len(check_covariance(covariance))
    )
    return np.full(
        T,
        _least_variance(
            lambda noise: _within(mu, covariance, np.full(T, noise), change), mu, change
        ),
    )


def _least_variance(enough: Callable[[float], bool], mu: float, change: float) -> float:
    """The least variance for which a predicate holds, at least that of a single output."""
    single = (change / mu) ** 2 * (1.0 - 2.0**-50)
    high = single
    with Bar(None, "search", "step") as bar:

        def within(negative: float) -> bool:
            bar.update()
            return enough(-negative)

        while not within(-high):
            high *= 2.0
        return -largest_within(within, -high, -max(high / 2.0, single))


def _within(
    mu: float, covariance: LinearGaussianSeries | ArrayLike, noise: np.ndarray, change: float
) -> bool:
    if not isinstance(covariance, LinearGaussianSeries):
        mu = mu * (1.0 - _rounding(check_covariance(covariance), noise))
    return change * np.sqrt(information(covariance, noise).max()) <= _level(
        mu, covariance, len(noise)
    )


def _level(mu: float, covariance: LinearGaussianSeries | ArrayLike, T: int) -> float:
    """What a computed mu may be: the recursions of a state of several numbers have fewer digits
    than that of one."""
    several = isinstance(covariance, LinearGaussianSeries) and covariance.value.size > 1
    return mu * (1.0 - 1e-8) if several else safely_below(mu, T)


def _rounding(K: np.ndarray, noise: np.ndarray) -> float:
    """The share by which rounding, of the covariance of a series as well, may change mu.

    It changes v^T (K + noise) v - Var(x_t) by a share T 2^-51 of the sum of absolute terms at most,
    and an error of the best v only to second order.
    """
    weights, explained, remaining = regression(K, noise)
    v = abs(weights) * (np.diagonal(K) / explained)
    sizes = np.sum(
        v * (abs(K + (np.diag(noise) if noise.ndim == 1 else noise)) @ v), axis=0
    ) + np.diagonal(K)
    return float(len(K) * 2.0**-51 * (sizes * explained / (remaining * np.diagonal(K))).max())


def _dense(covariance: LinearGaussianSeries | ArrayLike) -> np.ndarray:
    """The covariance (T, T) of a series of at most `MAX_TIMES` times."""
    T = (
        covariance.horizon
        if isinstance(covariance, LinearGaussianSeries)
        else len(np.atleast_1d(covariance))
    )
    if T > MAX_TIMES:
        raise ValueError(
            f"the program takes at most {MAX_TIMES} times, found {T}; take a shorter series, or equal variances"
        )
    return (
        covariance.covariance
        if isinstance(covariance, LinearGaussianSeries)
        else check_covariance(covariance)
    )
