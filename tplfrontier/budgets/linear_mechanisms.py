"""Event-level budgets of linear mechanisms: a matrix times the series, plus noise.

An event-level budget of time t bounds by how much everything that is ever published can change with
the data of time t alone. It is the epsilon of that time in `temporal_privacy_leakage`
(docs/theory/promises.md).
"""

from __future__ import annotations
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from scipy.special import ndtri

from tplrepro.validation import (
    SMALLEST,
    as_numbers,
    check_delta,
    check_entries,
    check_horizon,
    check_sensitivity,
)

EPS = float(np.finfo(float).eps)
SMALL = 1e-150  # squares of smaller numbers underflow
UNDERFLOW = 1e-310  # exceeds what underflows in a sum


def event_level_budgets(strategy: Any, scale: ArrayLike, sensitivity: float = 1.0) -> np.ndarray:
    """With Laplace noise, in nats: sensitivity times the sum over r of abs(strategy[r, t]) /
    scale[r], (T,).

    Parameters
    ----------
    strategy : array-like or scipy.sparse matrix (R, T), a row for each of R published answers
        The identity publishes each number, a lower triangle of ones their running totals.
    scale : float > 0 or array-like (R,), the scale of each answer's noise
    sensitivity : float > 0, by how much the number of one time changes with the data of that time
        For a vector of numbers, which all go through the same matrix, in the L1 norm.

    The budgets are rounded up. ValueError for entries that are not finite and scales that are not
    above 0.

    >>> event_level_budgets(np.tril(np.ones((4, 4))), 16.0, sensitivity=2.0).round(9).tolist()
    [0.5, 0.375, 0.25, 0.125]
    """
    weights, exponent, up = _weights(strategy, scale, sensitivity)
    sums = weights.sum(axis=0)
    return _rounded_up(sums > 0.0, [(sums * up, exponent)])


def gaussian_event_level_budgets(
    strategy: Any, scale: ArrayLike, delta: float, *, n_states: int, sensitivity: float = sqrt(2.0)
) -> np.ndarray:
    """Event-level budgets (T,), in nats, rounded up, that Gaussian noise keeps with probability 1 -
    delta.

    If their temporal privacy leakage is at most alpha, the series is (alpha, delta)-DP_T (theorem
    1'). The data of one person have one of `n_states` values at each time. `strategy` as in
    `event_level_budgets`, `scale` in standard deviations, `sensitivity` in the L2 norm: by default
    who moves changes two counts by
    1. ValueError for numbers outside their ranges.

    >>> totals = np.tril(np.ones((4, 4)))
    >>> gaussian_event_level_budgets(totals, 100.0, 1e-6, n_states=10).round(3).tolist()
    [0.166, 0.144, 0.118, 0.083]
    """
    weights, exponent, up = _weights(strategy, scale, sensitivity)
    quantile = _quantile(weights.shape[1], delta, n_states)
    sums, squares = weights.sum(axis=0), (weights * weights).sum(axis=0)
    norms = np.where(sums < SMALL, sums, np.sqrt(squares))
    together = weights.T @ weights.sum(axis=1)
    terms = [((together - squares / 2.0) * up, 2 * exponent), (norms * quantile * up, exponent)]
    return _rounded_up(sums > 0.0, terms)


def gaussian_budgets_of_columns(
    squares: np.ndarray, together: np.ndarray, delta: float, n_states: int, sensitivity: float
) -> np.ndarray:
    """The same from A = abs(strategy) / scale: the squared norms of its columns (T,), and A' A 1
    (T,)."""
    width, quantile = check_sensitivity(sensitivity), _quantile(squares.size, delta, n_states)
    return (width * (width * (together - squares / 2.0)) + width * np.sqrt(squares) * quantile) * (
        1.0 + 1e-12
    )


def _quantile(horizon: int, delta: float, n_states: int) -> float:
    """q of theorem 1', rounded up, at least 0."""
    changes = horizon * check_horizon(n_states, "n_states") * max(n_states - 1, 1)
    return max(-float(ndtri(check_delta(delta) / changes)), 0.0) * (1.0 + 1e-13) + 1e-15


def _rounded_up(used: np.ndarray, terms: list[tuple[np.ndarray, int]]) -> np.ndarray:
    """The sum of numbers times 2^exponent, 0 in columns that are not `used`, rounded up to inf if
    need be."""
    with np.errstate(over="ignore", under="ignore"):
        parts = [np.ldexp(numbers + UNDERFLOW, exponent) + SMALLEST for numbers, exponent in terms]
        return np.where(used, np.sum(parts, axis=0) * (1.0 + 4.0 * EPS), 0.0)


def _weights(strategy: Any, scale: ArrayLike, sensitivity: float) -> tuple[csr_array, int, float]:
    """sensitivity abs(strategy[r, t]) / scale[r] / 2^exponent, (R, T), the exponent, and a factor
    above rounding.

    Mantissas and exponents are divided separately, as their products may be no floats.
    """
    matrix = (
        strategy
        if hasattr(strategy, "tocsr")
        else as_numbers(strategy, "strategy must be numbers", "give rows")
    )
    if matrix.ndim != 2:
        raise ValueError(
            f"strategy must have shape (R, T), found {matrix.shape}; give a row for each answer"
        )
    scales = as_numbers(
        scale, "scale must be numbers above 0", "give one for all answers, or one for each"
    )
    if scales.shape not in ((), matrix.shape[:1]) or not ((scales > 0.0) & (scales < np.inf)).all():
        raise ValueError(
            f"scale must be above 0 and finite, one or {matrix.shape[0]} of them, found {scales}; leave out other rows"
        )
    weights = csr_array(abs(csr_array(matrix)))
    check_entries(weights.data, "entries of the strategy, over the scale,")
    rows = np.repeat(np.arange(weights.shape[0]), np.diff(weights.indptr))
    numbers = (
        weights.data,
        np.broadcast_to(scales, matrix.shape[:1])[rows],
        check_sensitivity(sensitivity),
    )
    (entry, entry_power), (noise, noise_power), (width, width_power) = map(np.frexp, numbers)
    powers = entry_power - noise_power + width_power + 1
    exponent = int(powers[entry > 0.0].max(initial=-5000))
    with np.errstate(under="ignore"):
        weights.data = np.ldexp(entry * width / noise, powers - 1 - exponent) + SMALLEST * (
            entry > 0.0
        )
    return weights, exponent, 1.0 + (sum(weights.shape) + 8) * EPS
