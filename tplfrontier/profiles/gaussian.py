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
    distances = _check_mu(mu)
    losses = check_alpha(epsilon, "epsilon")
    deltas = _compute_deltas(distances, losses)
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
    distances = _check_mu(mu)
    probabilities = check_delta(delta)
    return _for_each_pair(_least_epsilon, distances, probabilities)


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
    losses = check_alpha(epsilon, "epsilon")
    probabilities = check_delta(delta)
    return _for_each_pair(_largest_mu, losses, probabilities)


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


def _compute_deltas(mu: np.ndarray, epsilon: np.ndarray) -> np.ndarray:
    from scipy.special import erf

    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        middle = epsilon / mu
        low = middle - mu / 2.0
        high = middle + mu / 2.0
        deltas = _difference_of_tails(low, high)
        total_variation = erf(mu / sqrt(8.0))
        total_variation = total_variation * (1.0 + 2.0**-48)
        deltas = np.where(epsilon > 0.0, deltas, total_variation)
        deltas = np.clip(deltas, SMALLEST, 1.0)
    # np.select takes longer, which searches notice; beyond 40, the smaller tail is below SMALLEST
    limits = np.where(low > 0.0, SMALLEST, 1.0)
    is_in_range = abs(low) <= 40.0
    deltas = np.where(is_in_range, deltas, limits)
    at_ends = np.where(mu > 0.0, 1.0, 0.0)
    is_between = (mu > 0.0) & (mu < inf)
    return np.where(is_between, deltas, at_ends)


def _difference_of_tails(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Q(low) - e^epsilon Q(high), rounded up, where epsilon = (high^2 - low^2) / 2."""
    from scipy.special import erfcx, ndtr

    density = np.exp(-low * low / 2.0)
    tail_of_low = erfcx(low / sqrt(2.0))
    tail_of_high = erfcx(high / sqrt(2.0))
    upper_tail = density * tail_of_low / 2.0
    is_negative = low < 0.0
    first = np.where(is_negative, ndtr(-low), upper_tail)
    second = density * tail_of_high / 2.0
    # a rounding error of low changes the logarithm of either term by up to |low| + high times as
    # much
    reach = abs(low) + high
    factor = 4.0 + reach * reach
    rounding = 2.0**-50 * factor
    return first - second + rounding * first


def _compute_delta(mu: float, epsilon: float) -> float:
    distance = np.asarray(mu)
    deltas = _compute_deltas(distance, np.asarray(epsilon))
    return float(deltas)


def _least_epsilon(mu: float, delta: float) -> float:
    if isinf(mu):
        return inf
    if _compute_delta(mu, 0.0) <= delta:
        return 0.0
    standard_deviations = sqrt(-2.0 * log(delta))  # Q(x) < exp(-x^2 / 2)
    most = mu * (standard_deviations + 1.0 + mu / 2.0)

    def is_within(negative_epsilon: float) -> bool:
        return _compute_delta(mu, -negative_epsilon) <= delta

    return -largest_within(is_within, -most, 0.0)


def _largest_mu(epsilon: float, delta: float) -> float:
    def is_within(mu: float) -> bool:
        return _compute_delta(mu, epsilon) <= delta

    high = 1.0
    while is_within(high):
        high *= 2.0
    return largest_within(is_within, 0.0, high)


def _check_mu(mu: ArrayLike) -> np.ndarray:
    values = as_numbers(mu, "mu must be numbers, at least 0", "give the mu of mu-GDP")
    out_of_range = values[~(values >= 0.0)]
    if out_of_range.size:
        raise ValueError(f"mu must be at least 0, found {out_of_range[0]:g}; give the mu of mu-GDP")
    return values


def _for_each_pair(
    function: Callable[[float, float], float], first: np.ndarray, second: np.ndarray
) -> float | np.ndarray:
    """The function of each pair of `first` and `second`, which broadcast, computed once for equal
    pairs; a float if both are numbers."""
    compute_each = np.vectorize(cache(function), otypes=[float])
    values = compute_each(first, second)
    return as_float_or_array(values)


def as_float_or_array(values: np.ndarray) -> float | np.ndarray:
    """A float for an array without dimensions, other arrays as they are."""
    if values.ndim:
        return values
    return float(values)
