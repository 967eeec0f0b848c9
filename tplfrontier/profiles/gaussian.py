"""(epsilon, delta) of mu-GDP: two normal laws of variance 1 with means mu apart (Dong, Roth, Su,
JRSS B 2022).

delta(epsilon) = Q(epsilon / mu - mu / 2) - e^epsilon Q(epsilon / mu + mu / 2), Q the normal law's
upper tail (Balle, Wang, ICML 2018). Rounding errors are added to delta, and the two inverses return
numbers that they have tested.
"""

from __future__ import annotations
from collections.abc import Callable
from functools import cache
from math import inf, isinf, log, sqrt

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.search import largest_within
from tplrepro.validation import (
    LARGEST,
    SMALLEST,
    as_numbers,
    check_alpha,
    check_delta,
    check_range,
    check_series,
)


def gaussian_delta(mu: ArrayLike, epsilon: ArrayLike) -> float | np.ndarray:
    """The least delta with which mu-GDP is (epsilon, delta)-DP, rounded up; elementwise.

    mu >= 0 (inf: the output reveals everything), epsilon >= 0 in nats; ValueError for others.

    >>> round(gaussian_delta(1.0, 1.0), 6)
    0.126937
    """
    deltas = _deltas(_check_mu(mu), check_alpha(epsilon, "epsilon"))
    return deltas if deltas.ndim else float(deltas)


def gaussian_epsilon(mu: ArrayLike, delta: ArrayLike) -> float | np.ndarray:
    """The least epsilon in nats with which mu-GDP is (epsilon, delta)-DP, rounded up; elementwise.

    mu >= 0 (inf: epsilon is inf), 0 < delta < 1; ValueError for others.

    >>> round(gaussian_epsilon(1.0, 1e-6), 6)
    4.886554
    """
    return _elementwise(_epsilon, _check_mu(mu), check_delta(delta))


def gaussian_mu(epsilon: ArrayLike, delta: ArrayLike) -> float | np.ndarray:
    """The largest mu for which mu-GDP is (epsilon, delta)-DP, rounded down; elementwise.

    epsilon >= 0 in nats, 0 < delta < 1; ValueError for others.

    >>> mu = gaussian_mu(1.0, 1e-6)
    >>> round(mu, 6), gaussian_delta(mu, 1.0) <= 1e-6
    (0.236704, True)
    """
    return _elementwise(_mu, check_alpha(epsilon, "epsilon"), check_delta(delta))


def check_noise_multipliers(noise_multipliers: ArrayLike, horizon: int | None = None) -> np.ndarray:
    """Standard deviations of noise over its sensitivity, (T,), finite and > 0; `horizon` as for
    budgets."""
    must = "noise_multipliers must be finite and greater than 0"
    values = check_range(
        noise_multipliers, SMALLEST, LARGEST, must, "give standard deviations over sensitivities"
    )
    return check_series(values, "noise_multipliers", "multiplier", horizon)


def _deltas(mu: np.ndarray, epsilon: np.ndarray) -> np.ndarray:
    from scipy.special import erf, erfcx, ndtr

    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        low, high = epsilon / mu - mu / 2.0, epsilon / mu + mu / 2.0
        density = np.exp(-low * low / 2.0)
        tail = np.where(low < 0.0, ndtr(-low), density * erfcx(low / sqrt(2.0)) / 2.0)
        other = density * erfcx(high / sqrt(2.0)) / 2.0  # e^epsilon Q(high)
        # a rounding error of low changes the logarithm of either term by up to |low| + high times
        # as much
        rounding = 2.0**-50 * (4.0 + (abs(low) + high) * (abs(low) + high))
        deltas = tail - other + rounding * tail
        # no difference
        deltas = np.where(epsilon > 0.0, deltas, erf(mu / sqrt(8.0)) * (1.0 + 2.0**-48))
        deltas = np.clip(deltas, SMALLEST, 1.0)
    # np.select takes longer, which searches notice; beyond 40, the smaller tail is below SMALLEST
    deltas = np.where(abs(low) <= 40.0, deltas, np.where(low > 0.0, SMALLEST, 1.0))
    return np.where((mu > 0.0) & (mu < inf), deltas, np.where(mu > 0.0, 1.0, 0.0))


def _delta(mu: float, epsilon: float) -> float:
    return float(_deltas(np.asarray(mu), np.asarray(epsilon)))


def _epsilon(mu: float, delta: float) -> float:
    if isinf(mu):
        return inf
    if _delta(mu, 0.0) <= delta:
        return 0.0
    most = mu * (sqrt(-2.0 * log(delta)) + 1.0 + mu / 2.0)  # Q(x) < exp(-x^2 / 2)
    return -largest_within(lambda x: _delta(mu, -x) <= delta, -most, 0.0)


def _mu(epsilon: float, delta: float) -> float:
    high = 1.0
    while _delta(high, epsilon) <= delta:
        high *= 2.0
    return largest_within(lambda mu: _delta(mu, epsilon) <= delta, 0.0, high)


def _check_mu(mu: ArrayLike) -> np.ndarray:
    values = as_numbers(mu, "mu must be numbers, at least 0", "give the mu of mu-GDP")
    if not (values >= 0.0).all():
        raise ValueError(
            f"mu must be at least 0, found {values[~(values >= 0.0)][0]:g}; give the mu of mu-GDP"
        )
    return values


def _elementwise(function: Callable, first: np.ndarray, second: np.ndarray) -> float | np.ndarray:
    """The function of each pair, computed once for equal pairs."""
    values = np.vectorize(cache(function), otypes=[float])(first, second)
    return values if values.ndim else float(values)
