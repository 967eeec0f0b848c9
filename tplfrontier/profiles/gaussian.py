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
    EPSILON,
    LARGEST,
    SMALLEST,
    as_numbers,
    check_alpha,
    check_delta,
    check_range,
    check_series,
    unit_of,
)


def gaussian_delta(mu: ArrayLike, epsilon: ArrayLike) -> float | np.ndarray:
    """The least delta with which mu-GDP is (epsilon, delta)-DP, rounded up; elementwise.

    Balle, Wang, ICML 2018, Theorem 8; arguments are broadcast.

    Parameters
    ----------
    mu : array-like of numbers >= 0
        Distance of the means in standard deviations; inf: the output reveals everything.
    epsilon : array-like of numbers >= 0
        In nats.

    Returns
    -------
    float or ndarray
        The delta, between 0 and 1.

    Raises
    ------
    ValueError
        If a mu or an epsilon is out of range.

    Examples
    --------
    >>> round(gaussian_delta(1.0, 1.0), 6)
    0.126937
    """
    deltas = _deltas(_check_mu(mu), check_alpha(epsilon, "epsilon"))
    return as_float_or_array(deltas)


def gaussian_epsilon(mu: ArrayLike, delta: ArrayLike) -> float | np.ndarray:
    """The least epsilon in nats with which mu-GDP is (epsilon, delta)-DP, rounded up; elementwise.

    The inverse of `gaussian_delta` in epsilon; arguments are broadcast.

    Parameters
    ----------
    mu : array-like of numbers >= 0
        Distance of the means in standard deviations; inf: epsilon is inf.
    delta : array-like of numbers
        Above 0 and below 1.

    Returns
    -------
    float or ndarray
        The epsilon in nats.

    Raises
    ------
    ValueError
        If a mu or a delta is out of range.

    Examples
    --------
    >>> round(gaussian_epsilon(1.0, 1e-6), 6)
    4.886554
    """
    return _for_each_pair(_least_epsilon, _check_mu(mu), check_delta(delta))


def gaussian_mu(epsilon: ArrayLike, delta: ArrayLike) -> float | np.ndarray:
    """The largest mu for which mu-GDP is (epsilon, delta)-DP, rounded down; elementwise.

    The inverse of `gaussian_delta` in mu; arguments are broadcast.

    Parameters
    ----------
    epsilon : array-like of numbers >= 0
        In nats.
    delta : array-like of numbers
        Above 0 and below 1.

    Returns
    -------
    float or ndarray
        The mu: the distance of the means in standard deviations.

    Raises
    ------
    ValueError
        If an epsilon or a delta is out of range.

    Examples
    --------
    >>> mu = gaussian_mu(1.0, 1e-6)
    >>> round(mu, 6), gaussian_delta(mu, 1.0) <= 1e-6
    (0.236704, True)
    """
    return _for_each_pair(_largest_mu, check_alpha(epsilon, "epsilon"), check_delta(delta))


def check_noise_multipliers(noise_multipliers: ArrayLike, horizon: int | None = None) -> np.ndarray:
    """Standard deviations of noise over its sensitivity, (T,), finite and > 0; `horizon` as for
    budgets."""
    must = "noise_multipliers must be finite and greater than 0"
    if unit_of(noise_multipliers) == EPSILON:
        raise ValueError(f"{must}, found budgets in nats; release counts with epsilons=")
    values = check_range(
        noise_multipliers, SMALLEST, LARGEST, must, "give standard deviations over sensitivities"
    )
    return check_series(values, "noise_multipliers", "multiplier", horizon)


def _deltas(mu: np.ndarray, epsilon: np.ndarray) -> np.ndarray:
    from scipy.special import erf, erfcx, ndtr

    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        middle = epsilon / mu
        low = middle - mu / 2.0
        high = middle + mu / 2.0
        density = np.exp(-low * low / 2.0)
        near_tail = density * erfcx(low / sqrt(2.0)) / 2.0
        tail = np.where(low < 0.0, ndtr(-low), near_tail)
        other = density * erfcx(high / sqrt(2.0)) / 2.0  # e^epsilon Q(high)
        # a rounding error of low changes the logarithm of either term by up to |low| + high times
        # as much
        rounding = 2.0**-50 * (4.0 + (abs(low) + high) * (abs(low) + high))
        deltas = tail - other + rounding * tail
        without_difference = erf(mu / sqrt(8.0)) * (1.0 + 2.0**-48)
        deltas = np.where(epsilon > 0.0, deltas, without_difference)
        deltas = np.clip(deltas, SMALLEST, 1.0)
    # np.select takes longer, which searches notice; beyond 40, the smaller tail is below SMALLEST
    limits = np.where(low > 0.0, SMALLEST, 1.0)
    deltas = np.where(abs(low) <= 40.0, deltas, limits)
    at_ends = np.where(mu > 0.0, 1.0, 0.0)
    return np.where((mu > 0.0) & (mu < inf), deltas, at_ends)


def _delta(mu: float, epsilon: float) -> float:
    return float(_deltas(np.asarray(mu), np.asarray(epsilon)))


def _least_epsilon(mu: float, delta: float) -> float:
    if isinf(mu):
        return inf
    if _delta(mu, 0.0) <= delta:
        return 0.0
    most = mu * (sqrt(-2.0 * log(delta)) + 1.0 + mu / 2.0)  # Q(x) < exp(-x^2 / 2)
    return -largest_within(lambda x: _delta(mu, -x) <= delta, -most, 0.0)


def _largest_mu(epsilon: float, delta: float) -> float:
    high = 1.0
    while _delta(high, epsilon) <= delta:
        high *= 2.0
    return largest_within(lambda mu: _delta(mu, epsilon) <= delta, 0.0, high)


def _check_mu(mu: ArrayLike) -> np.ndarray:
    values = as_numbers(mu, "mu must be numbers, at least 0", "give the mu of mu-GDP")
    out_of_range = values[~(values >= 0.0)]
    if out_of_range.size:
        raise ValueError(f"mu must be at least 0, found {out_of_range[0]:g}; give the mu of mu-GDP")
    return values


def _for_each_pair(
    function: Callable[[float, float], float], first: np.ndarray, second: np.ndarray
) -> float | np.ndarray:
    """The function of each pair, computed once for equal pairs."""
    values = np.vectorize(cache(function), otypes=[float])(first, second)
    return as_float_or_array(values)


def as_float_or_array(values: np.ndarray) -> float | np.ndarray:
    if values.ndim:
        return values
    return float(values)
