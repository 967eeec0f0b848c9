"""Event-level budgets of linear mechanisms: a matrix times the series, plus noise.

An event-level budget of time t bounds by how much everything that is ever published can change with
the data of time t alone. It is the epsilon of that time in `temporal_privacy_leakage`
(docs/theory/promises.md).
"""

from __future__ import annotations
from dataclasses import dataclass
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
    strategy : array-like or scipy.sparse matrix (R, T)
        A row for each of R published answers. The identity publishes each number, a lower triangle
        of ones their running totals.
    scale : float > 0 or array-like (R,)
        The scale of each answer's noise.
    sensitivity : float > 0, optional
        By how much the number of one time changes with the data of that time. For a vector of
        numbers, which all go through the same matrix, in the L1 norm.

    Returns
    -------
    ndarray (T,)
        In nats, rounded up.

    Raises
    ------
    ValueError
        For entries that are not finite, and scales or a sensitivity that are not above 0.

    Examples
    --------
    >>> event_level_budgets(np.tril(np.ones((4, 4))), 16.0, sensitivity=2.0).round(9).tolist()
    [0.5, 0.375, 0.25, 0.125]
    """
    scaled = _scale_strategy(strategy, scale, sensitivity)
    sums = scaled.weights.sum(axis=0)
    return _sum_rounded_up(sums > 0.0, [(sums * scaled.up, scaled.exponent)])


def gaussian_event_level_budgets(
    strategy: Any, scale: ArrayLike, delta: float, *, n_states: int, sensitivity: float = sqrt(2.0)
) -> np.ndarray:
    """Event-level budgets (T,), in nats, rounded up, that Gaussian noise keeps with probability 1 -
    delta.

    If their temporal privacy leakage is at most alpha, the series is (alpha, delta)-DP_T: theorem
    1' of docs/theory/promises.md.

    Parameters
    ----------
    strategy : array-like or scipy.sparse matrix (R, T)
        A row for each of R published answers.
    scale : float > 0 or array-like (R,)
        The standard deviation of each answer's noise.
    delta : float
        Above 0 and below 1.
    n_states : int >= 1
        The number of values that the data of one person have at each time.
    sensitivity : float > 0, optional
        By how much the numbers of one time change with the data of that time, in the L2 norm: by
        default who moves changes two counts by 1.

    Returns
    -------
    ndarray (T,)
        In nats, rounded up.

    Raises
    ------
    ValueError
        For numbers outside their ranges.

    Examples
    --------
    >>> totals = np.tril(np.ones((4, 4)))
    >>> gaussian_event_level_budgets(totals, 100.0, 1e-6, n_states=10).round(3).tolist()
    [0.166, 0.144, 0.118, 0.083]
    """
    scaled = _scale_strategy(strategy, scale, sensitivity)
    weights = scaled.weights
    quantile = _quantile(weights.shape[1], delta, n_states)
    sums = weights.sum(axis=0)
    squares = (weights * weights).sum(axis=0)
    norms = np.where(sums < SMALL, sums, np.sqrt(squares))
    together = weights.T @ weights.sum(axis=1)
    change_of_means = (together - squares / 2.0) * scaled.up
    change_of_noise = norms * quantile * scaled.up
    return _sum_rounded_up(
        sums > 0.0, [(change_of_means, 2 * scaled.exponent), (change_of_noise, scaled.exponent)]
    )


def gaussian_budgets_of_columns(
    squares: np.ndarray, together: np.ndarray, delta: float, n_states: int, sensitivity: float
) -> np.ndarray:
    """The same from A = abs(strategy) / scale: the squared norms of its columns (T,), and A' A 1
    (T,)."""
    width = check_sensitivity(sensitivity)
    quantile = _quantile(squares.size, delta, n_states)
    change_of_means = width * (width * (together - squares / 2.0))
    change_of_noise = width * np.sqrt(squares) * quantile
    return (change_of_means + change_of_noise) * (1.0 + 1e-12)


def _quantile(horizon: int, delta: float, n_states: int) -> float:
    """q of theorem 1', rounded up, at least 0."""
    changes = horizon * check_horizon(n_states, "n_states") * max(n_states - 1, 1)
    quantile = -float(ndtri(check_delta(delta) / changes))
    return max(quantile, 0.0) * (1.0 + 1e-13) + 1e-15


def _sum_rounded_up(is_used: np.ndarray, terms: list[tuple[np.ndarray, int]]) -> np.ndarray:
    """The sum of numbers times 2^exponent, 0 in columns that are not used, rounded up to inf if
    need be."""
    with np.errstate(over="ignore", under="ignore"):
        parts = [np.ldexp(numbers + UNDERFLOW, exponent) + SMALLEST for numbers, exponent in terms]
        total = np.sum(parts, axis=0) * (1.0 + 4.0 * EPS)
        return np.where(is_used, total, 0.0)


@dataclass(frozen=True)
class _ScaledStrategy:
    """sensitivity abs(strategy[r, t]) / scale[r] = `weights` (R, T) times 2^`exponent`, up to a
    factor `up` above rounding."""

    weights: csr_array
    exponent: int
    up: float


def _scale_strategy(strategy: Any, scale: ArrayLike, sensitivity: float) -> _ScaledStrategy:
    """Mantissas and exponents are divided separately, as their products may be no floats."""
    matrix = strategy
    if not hasattr(strategy, "tocsr"):
        matrix = as_numbers(strategy, "strategy must be numbers", "give rows")
    if matrix.ndim != 2:
        raise ValueError(
            f"strategy must have shape (R, T), found {matrix.shape}; give a row for each answer"
        )
    scales = _check_scales(scale, matrix.shape[0])
    weights = csr_array(abs(csr_array(matrix)))
    check_entries(weights.data, "entries of the strategy, over the scale,")
    rows = np.repeat(np.arange(weights.shape[0]), np.diff(weights.indptr))
    entry, entry_power = np.frexp(weights.data)
    noise, noise_power = np.frexp(scales[rows])
    width, width_power = np.frexp(check_sensitivity(sensitivity))
    powers = entry_power - noise_power + width_power + 1
    exponent = int(powers[entry > 0.0].max(initial=-5000))
    with np.errstate(under="ignore"):
        scaled = np.ldexp(entry * width / noise, powers - 1 - exponent)
        weights.data = scaled + SMALLEST * (entry > 0.0)
    up = 1.0 + (sum(weights.shape) + 8) * EPS
    return _ScaledStrategy(weights, exponent, up)


def _check_scales(scale: ArrayLike, answers: int) -> np.ndarray:
    """The scale of each answer's noise, (R,)."""
    scales = as_numbers(
        scale, "scale must be numbers above 0", "give one for all answers, or one for each"
    )
    are_in_range = ((scales > 0.0) & (scales < np.inf)).all()
    if scales.shape not in ((), (answers,)) or not are_in_range:
        raise ValueError(
            f"scale must be above 0 and finite, one or {answers} of them, found {scales}; "
            "leave out other rows"
        )
    return np.broadcast_to(scales, (answers,))
