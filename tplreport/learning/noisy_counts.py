"""Counts of steps with the noise of a budget, and how large that noise is in any row.

Discrete Laplace noise of scale b has P(Z = k) proportional to q^|k|, q = exp(-1/b). Of n values, a
number K of which Pr = binomial(n, q/(1 + q)) are positive, the sum of the positive ones is K plus a
negative binomial number: the tail of the sum is known, and W is the smallest whole number that it
exceeds with a given probability, in any row or column, with either sign.
"""

from __future__ import annotations
from math import exp, expm1

import numpy as np

from tplreport.publishing.counts import release_counts

#: OpenDP may take a scale that is larger by some last bits, and a tail has rounding errors.
MARGIN = 1e-6


def add_noise(counts: np.ndarray, epsilon: float, steps_per_user: int) -> np.ndarray:
    """Counts (n, n) of which one user changes at most 2 `steps_per_user` in sum, with Laplace noise
    of `epsilon` nats."""
    row = counts.reshape(1, -1)
    sensitivity = 2 * steps_per_user
    noisy = release_counts(row, [epsilon], sensitivity=sensitivity, allow_large=True)
    return noisy.reshape(counts.shape)


def largest_noise(n: int, scale: float, probability: float) -> int:
    """W, which the noise exceeds with at most a given probability: in the sum of its positive or of
    its negative parts, in any of n rows or n columns.

    Parameters
    ----------
    n : int
        The number of rows, and of columns.
    scale : float
        Of the discrete Laplace noise of each count.
    probability : float
        That W is exceeded anywhere.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        For a number that is no number.

    Examples
    --------
    >>> [largest_noise(n, 40.0, 0.025) for n in (2, 5, 20)]
    [266, 456, 1094]
    """
    each = probability / (4 * n) * (1.0 - MARGIN)
    low = -1
    high = 1
    while tail_of_sum(high, n, scale) > each:
        low = high
        high *= 2
    while high - low > 1:
        middle = (low + high) // 2
        if tail_of_sum(middle, n, scale) > each:
            low = middle
        else:
            high = middle
    return high


def tail_of_sum(limit: int, n: int, scale: float) -> float:
    """The probability that the positive parts of n values of noise of this scale exceed `limit` in
    sum."""
    from scipy.stats import binom, nbinom

    rate = 1.0 / (scale * (1.0 + MARGIN))
    q = exp(-rate)
    numbers = np.arange(1, n + 1)
    of_numbers = binom.pmf(numbers, n, q / (1.0 + q))
    tails = nbinom.sf(limit - numbers, numbers, -expm1(-rate))
    return float(of_numbers @ tails)
