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
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tplfrontier.series.leakage import compute_information, gaussian_series_limit, regress_values
from tplfrontier.series.state_space import LinearGaussianSeries, check_covariance
from tplrepro.leakage.temporal import safely_below
from tplrepro.progress import Bar, with_progress
from tplrepro.search import largest_within
from tplrepro.validation import as_numbers, check_level, warn_caller

GAP = 1e-4  # largest relative distance of the cost from the least
ROUNDS = 200  # most linear programs
# largest variance, in that of equal independent noise; the cost may not depend on some of the noise
MOST = 100.0
MAX_TIMES = 1000  # the linear programs hold matrices of this many times at most


def allocate_series_noise(
    mu: float, covariance: LinearGaussianSeries | ArrayLike, change: float, *, equal: bool = True
) -> np.ndarray:
    """Variances (T,), rounded up, of independent noise that keep values `change` apart mu-GDP at
    every time.

    Parameters
    ----------
    mu : float > 0
        `gaussian_mu` of a given (epsilon, delta).
    covariance : array-like (T, T), or LinearGaussianSeries
        Of the values, or their model.
    change : float > 0
        The distance of the two values that the outputs must not distinguish.
    equal : bool, optional
        Whether the variances are the least that are equal at all times, or those of the least sum
        (to 1e-4), for T <= 1,000.

    Returns
    -------
    ndarray (T,)
        Variances of the noise.

    Raises
    ------
    ValueError
        For covariances that are not symmetric and positive semidefinite, values without variance,
        numbers out of range, or too many times.

    Examples
    --------
    >>> series = LinearGaussianSeries.autoregressive(0.9, 5)
    >>> allocate_series_noise(1.0, series, 1.0).round(4).tolist()
    [3.6234, 3.6234, 3.6234, 3.6234, 3.6234]
    """
    mu = check_level(mu, "mu")
    change = check_level(change, "change")
    if equal:
        return _least_equal_variances(mu, covariance, change)
    K = _covariance_of_few_times(covariance)
    start = _least_equal_variances(mu, K, change)
    return _find_least_noise(mu, K, change, _IndependentNoise(), np.ones(len(K)), start)


def endless_series_noise(mu: float, series: LinearGaussianSeries, change: float) -> float:
    """The least variance of independent noise that keeps values mu-GDP in a stationary series of
    any length.

    Parameters
    ----------
    mu : float > 0
        `gaussian_mu` of a given (epsilon, delta).
    series : LinearGaussianSeries
        A stationary one, whose horizon does not matter.
    change : float > 0
        The distance of the two values that the outputs must not distinguish.

    Returns
    -------
    float
        The variance, rounded up.

    Raises
    ------
    ValueError
        If the series is not stationary, has no variance, or changes so slowly that its limit cannot
        be computed; or a number is out of range.

    Examples
    --------
    >>> series = LinearGaussianSeries.autoregressive(0.9, 1)
    >>> round(endless_series_noise(1.0, series, 1.0), 4)
    6.4029
    """
    mu = check_level(mu, "mu")
    change = check_level(change, "change")
    gaussian_series_limit(series, 1.0, change)  # refuses series without a limit
    level = _level_of_computed_mu(mu, series, 1)

    def is_enough(variance: float) -> bool:
        return gaussian_series_limit(series, variance, change) <= level

    return _least_variance(is_enough, mu, change)


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

    Parameters
    ----------
    mu : float > 0
        `gaussian_mu` of a given (epsilon, delta).
    covariance : array-like (T, T), or LinearGaussianSeries
        Of the values, or their model.
    change : float > 0
        The distance of the two values that the outputs must not distinguish.
    band : int, 0 <= band < T
        Cov(z_s, z_t) of the noise depends on `|s - t|` alone, and is 0 where that is more.
    workload : array-like (k, T), optional
        The linear answers whose total variance is least, by default each value by itself.

    Returns
    -------
    ndarray (T, T)
        The covariance of the noise, rounded up. The total variance is least to 1e-4, else a
        UserWarning says so.

    Raises
    ------
    ValueError
        For covariances that are not symmetric and positive semidefinite, values without variance,
        numbers out of range, another shape, or more than 1,000 times.

    Examples
    --------
    >>> series = LinearGaussianSeries.autoregressive(0.9, 5)
    >>> for band in (0, 1, 2, 4):
    ...     noise = correlate_series_noise(1.0, series, 1.0, band)
    ...     print(round(float(noise[0, 0]), 3))
    3.623
    2.13
    1.448
    1.0
    """
    mu = check_level(mu, "mu")
    change = check_level(change, "change")
    K = _covariance_of_few_times(covariance)
    T = len(K)
    _check_band(band, T)
    answers = _check_workload(workload, T)
    shape = _BandedNoise(T, band)
    cost = shape.coefficients(answers.T).sum(axis=1)
    variance = _least_equal_variances(mu, K, change)[0]
    start = np.append(variance, np.zeros(band))
    return _find_least_noise(mu, K, change, shape, cost, start)


def _check_band(band: int, T: int) -> None:
    is_whole = isinstance(band, (int, np.integer)) and not isinstance(band, bool)
    if not is_whole or not 0 <= band < T:
        raise ValueError(
            f"band must be a whole number from 0 to T - 1 = {T - 1}, found {band!r}; "
            "give how many lags"
        )


def _check_workload(workload: ArrayLike | None, T: int) -> np.ndarray:
    if workload is None:
        return np.eye(T)
    answers = as_numbers(workload, "workload must be numbers", "give a row an answer")
    has_shape = answers.ndim == 2 and answers.shape[1] == T
    if not has_shape or not np.isfinite(answers).all() or not answers.any():
        raise ValueError(
            f"workload must be finite, not 0 and of shape (k, {T}), found {answers.shape}; "
            "give a row an answer"
        )
    return answers


class _IndependentNoise:
    """Noise of T variances x."""

    is_correlated = False

    def noise(self, x: np.ndarray) -> np.ndarray:
        """The variances of the noise, (T,)."""
        return np.asarray(x)

    def coefficients(self, v: np.ndarray) -> np.ndarray:
        """a with v^T noise v = a^T x for each column v of (T, k), (T, k)."""
        return np.square(v)


class _BandedNoise:
    """Noise whose covariance at each distance up to the band is a number of x (band + 1,)."""

    is_correlated = True

    def __init__(self, T: int, band: int):
        self.T = T
        self.band = band
        times = np.arange(T)
        self._distance = abs(np.subtract.outer(times, times))

    def noise(self, x: np.ndarray) -> np.ndarray:
        """The covariance of the noise, (T, T)."""
        is_within = self._distance <= self.band
        lags = np.minimum(self._distance, self.band)
        return np.where(is_within, x[lags], 0.0)

    def coefficients(self, v: np.ndarray) -> np.ndarray:
        """a with v^T noise v = a^T x for each column v of (T, k), (band + 1, k)."""
        rows = []
        for lag in range(self.band + 1):
            earlier = v[: self.T - lag]
            later = v[lag:]
            rows.append(np.sum(earlier * later, axis=0))
        coefficients = np.array(rows)
        coefficients[1:] *= 2.0  # both orders of two times
        return coefficients


def _find_least_noise(
    mu: float,
    K: np.ndarray,
    change: float,
    shape: _IndependentNoise | _BandedNoise,
    cost: np.ndarray,
    start: np.ndarray,
) -> np.ndarray:
    """The noise of a shape with the least cost @ x that keeps mu, from a `start` that keeps it.

    `K` (T, T) is the covariance of the series, `change` how much one person changes a value. `cost`
    and `start` belong to the unknowns x from which the shape makes the noise.
    """
    unit = (change / mu) ** 2
    K_in_units = K / unit
    most = MOST * start.max() / unit
    programme = _CuttingPlanes(K_in_units, shape, cost, start / unit, most)
    rounds = 0
    for _ in with_progress(range(ROUNDS), "least noise, at most", "round"):
        rounds += 1
        if not programme.improve():
            break
    if not programme.is_solved:
        warn_caller(
            f"the least noise must be found to a share of {GAP:g}, found {programme.gap:.3g} after "
            f"{rounds} rounds; it keeps mu, and a shorter band or series comes nearer to the least"
        )
    noise = shape.noise(unit * programme.best)
    step = 2.0**-52
    while not _keeps_mu(mu, K_in_units * unit, noise, change):
        noise = noise * (1.0 + step)
        step *= 2.0
    return noise


class _CuttingPlanes:
    """Kelley's cutting planes, in units of the variance that a single output needs.

    `K` (T, T) is the covariance of the series; the unknowns are those of the `shape`, with costs
    `cost`, `start` is a noise that keeps mu, and no unknown exceeds `most`. `best` is the noise of
    least cost so far that keeps mu; `lowest` a bound below the least cost. A noise that leaks too
    much is mixed with twice the start, which leaks less than mu, in the share that concavity
    requires.
    """

    def __init__(
        self,
        K: np.ndarray,
        shape: _IndependentNoise | _BandedNoise,
        cost: np.ndarray,
        start: np.ndarray,
        most: float,
    ):
        self._K = K
        self._variances = np.diagonal(K)
        self._shape = shape
        self._cost = cost
        self._inner = 2.0 * start
        self._inner_values = self._tightest_constraints(self._inner).values
        self.best = start
        self.lowest = float(cost[0])  # until a program says more
        # the constraints rows @ x >= least
        self._rows = [np.zeros((0, start.size))]
        self._least = [np.zeros(0)]
        least = 1.0
        if shape.is_correlated:
            least = -most
            self._require_waves_of_variance()
        self._bounds = [(1.0, most), *[(least, most)] * (start.size - 1)]

    @property
    def is_solved(self) -> bool:
        """Whether the cost of the best noise is within `GAP` of the least."""
        cost = self._cost @ self.best
        return bool(cost <= (1.0 + GAP) * self.lowest)

    @property
    def gap(self) -> float:
        """How far the cost of the best noise is above the lower bound, as a share."""
        cost = self._cost @ self.best
        return cost / self.lowest - 1.0

    def improve(self) -> bool:
        """Solve a linear program, and cut near its solution; False where this ends."""
        from scipy.optimize import linprog

        solved = linprog(
            self._cost,
            A_ub=-np.vstack(self._rows),
            b_ub=-np.concatenate(self._least),
            bounds=self._bounds,
            method="highs",
        )
        # rounding leaves no solution beside variances of very different sizes
        if solved.fun is None:
            return False
        self.lowest = solved.fun
        if self.is_solved:
            return False
        halfway = 0.5 * (solved.x + self.best)
        for x in (solved.x, halfway):
            self._cut_at(x)
        return True

    def _cut_at(self, x: np.ndarray) -> None:
        """Exclude x by what it violates, and keep the noise between it and the inner one."""
        if self._shape.is_correlated:
            x = self._require_semidefinite(x)
        tightest = self._tightest_constraints(x)
        v = tightest.v
        values = tightest.values
        is_short = values < 1.0
        of_series = np.sum(v * (self._K @ v), axis=0)
        least = 1.0 - of_series + self._variances
        self._require(v[:, is_short], least[is_short])
        missing = 1.0 - values
        gained = self._inner_values - values
        shares = missing[is_short] / gained[is_short]
        share = np.max(shares, initial=0.0)
        mixed = (1.0 - share) * x + share * self._inner
        if self._cost @ mixed < self._cost @ self.best:
            self.best = mixed

    def _require(self, v: np.ndarray, least: np.ndarray) -> None:
        """Add the constraints v^T noise v >= least, for each column v."""
        coefficients = self._shape.coefficients(v)
        self._rows.append(coefficients.T)
        self._least.append(least)

    def _require_waves_of_variance(self) -> None:
        """The variance of each wave is at least 0."""
        T = len(self._K)
        frequencies = np.linspace(0.0, np.pi, 2 * T)
        phases = np.outer(np.arange(T), frequencies)
        cosines = np.cos(phases)
        sines = np.sin(phases[:, 1:-1])  # the first and the last are 0
        waves = np.hstack((cosines, sines))
        self._require(waves, np.zeros(waves.shape[1]))

    def _require_semidefinite(self, x: np.ndarray) -> np.ndarray:
        """Cut where the noise has no variance, and return it with as much more at each time."""
        covariance = self._shape.noise(x)
        eigenvalues, vectors = np.linalg.eigh(covariance)
        is_negative = eigenvalues < 0.0
        negative = vectors[:, is_negative]
        self._require(negative, np.zeros(negative.shape[1]))
        missing = max(-eigenvalues[0], 0.0)
        raised = x.copy()
        raised[0] += missing * (1.0 + 1e-9)
        return raised

    def _tightest_constraints(self, x: np.ndarray) -> _Tightest:
        fit = regress_values(self._K, self._shape.noise(x))
        values = fit.remaining * self._variances / fit.explained
        factors = self._variances / fit.explained
        return _Tightest(values, fit.weights * factors)


@dataclass(frozen=True)
class _Tightest:
    """The least v^T (K + noise) v - Var(x_t) for each time, (T,), at least 1 where mu is kept, and
    its v, the columns of (T, T)."""

    values: np.ndarray
    v: np.ndarray


def _least_equal_variances(
    mu: float, covariance: LinearGaussianSeries | ArrayLike, change: float
) -> np.ndarray:
    """The least variance of independent noise, the same at all T times, (T,), that keeps mu if one
    person changes a value by `change`."""
    if isinstance(covariance, LinearGaussianSeries):
        T = covariance.horizon
    else:
        T = len(check_covariance(covariance))

    def is_enough(variance: float) -> bool:
        return _keeps_mu(mu, covariance, np.full(T, variance), change)

    return np.full(T, _least_variance(is_enough, mu, change))


def _least_variance(is_enough: Callable[[float], bool], mu: float, change: float) -> float:
    """The least variance for which `is_enough` holds, at least that of a single output."""
    single = (change / mu) ** 2 * (1.0 - 2.0**-50)
    high = single
    with Bar(None, "search", "step") as bar:

        def is_negative_enough(negative: float) -> bool:
            bar.update()
            return is_enough(-negative)

        while not is_negative_enough(-high):
            high *= 2.0
        low = max(high / 2.0, single)
        return -largest_within(is_negative_enough, -high, -low)


def _keeps_mu(
    mu: float, covariance: LinearGaussianSeries | ArrayLike, noise: np.ndarray, change: float
) -> bool:
    """Whether the noise, variances (T,) or a covariance (T, T), keeps mu at all times if one person
    changes a value by `change`; False where rounding decides."""
    if not isinstance(covariance, LinearGaussianSeries):
        rounding = _rounding_of_mu(check_covariance(covariance), noise)
        mu = mu * (1.0 - rounding)
    most_information = compute_information(covariance, noise).max()
    largest = change * np.sqrt(most_information)
    return largest <= _level_of_computed_mu(mu, covariance, len(noise))


def _level_of_computed_mu(mu: float, covariance: LinearGaussianSeries | ArrayLike, T: int) -> float:
    """What a computed mu of T times may be to be within `mu` exactly: the recursions of a state of
    several numbers have fewer digits than that of one."""
    if isinstance(covariance, LinearGaussianSeries) and covariance.value.size > 1:
        return mu * (1.0 - 1e-8)
    return safely_below(mu, T)


def _rounding_of_mu(K: np.ndarray, noise: np.ndarray) -> float:
    """The share by which rounding, of the covariance of a series as well, may change mu.

    It changes v^T (K + noise) v - Var(x_t) by a share T 2^-51 of the sum of absolute terms at most,
    and an error of the best v only to second order.
    """
    fit = regress_values(K, noise)
    variances = np.diagonal(K)
    factors = variances / fit.explained
    v = abs(fit.weights) * factors
    if noise.ndim == 1:
        noise = np.diag(noise)
    covariance_of_outputs = K + noise
    absolute = abs(covariance_of_outputs) @ v
    sizes = np.sum(v * absolute, axis=0) + variances
    shares = sizes * fit.explained / (fit.remaining * variances)
    rounding_of_sum = len(K) * 2.0**-51
    return float(rounding_of_sum * shares.max())


def _covariance_of_few_times(covariance: LinearGaussianSeries | ArrayLike) -> np.ndarray:
    """The covariance (T, T) of a series of at most `MAX_TIMES` times."""
    if isinstance(covariance, LinearGaussianSeries):
        _check_few_times(covariance.horizon)
        return covariance.covariance
    _check_few_times(len(np.atleast_1d(covariance)))
    return check_covariance(covariance)


def _check_few_times(T: int) -> None:
    if T > MAX_TIMES:
        raise ValueError(
            f"the program takes at most {MAX_TIMES} times, found {T}; "
            "take a shorter series, or equal variances"
        )
