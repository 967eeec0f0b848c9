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
    """Event-level budgets of Laplace noise: sensitivity times the sum over r of abs(strategy[r, t])
    / scale[r].

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
    is_used = sums > 0.0
    budgets = _Scaled(sums * scaled.up, scaled.exponent)
    return _sum_rounded_up(is_used, [budgets])


def gaussian_event_level_budgets(
    strategy: Any, scale: ArrayLike, delta: float, *, n_states: int, sensitivity: float = sqrt(2.0)
) -> np.ndarray:
    """Event-level budgets (T,), in nats, rounded up, that Gaussian noise keeps with probability 1 -
    delta.

    If their temporal privacy leakage is at most alpha, the series is (alpha, delta)-DP_T: theorem
    1' of docs/theory/promises.md. `linear_gaussian_leakage` needs less noise.

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
    horizon = weights.shape[1]
    quantile = _quantile_of_changes(horizon, delta, n_states)
    sums = weights.sum(axis=0)
    squares = (weights * weights).sum(axis=0)
    products = weights.T @ weights.sum(axis=1)  # of a column with all columns
    norms = np.where(sums < SMALL, sums, np.sqrt(squares))
    shift = (products - squares / 2.0) * scaled.up
    deviation = norms * quantile * scaled.up
    change_of_means = _Scaled(shift, 2 * scaled.exponent)
    change_of_noise = _Scaled(deviation, scaled.exponent)
    is_used = sums > 0.0
    return _sum_rounded_up(is_used, [change_of_means, change_of_noise])


def gaussian_budgets_of_columns(
    squares: np.ndarray, products: np.ndarray, delta: float, n_states: int, sensitivity: float
) -> np.ndarray:
    """The budgets of `gaussian_event_level_budgets` from sums over the columns of A = abs(strategy)
    / scale.

    Parameters
    ----------
    squares : ndarray (T,)
        The sum of the squares of each column.
    products : ndarray (T,)
        The sum of the products of each column with all columns, A' A 1.
    delta : float
        Above 0 and below 1.
    n_states : int >= 1
        The number of values that the data of one person have at each time.
    sensitivity : float > 0
        By how much the numbers of one time change with the data of that time, in the L2 norm.

    Returns
    -------
    ndarray (T,)
        In nats, rounded up.

    Raises
    ------
    ValueError
        For numbers outside their ranges.
    """
    width = check_sensitivity(sensitivity)
    quantile = _quantile_of_changes(squares.size, delta, n_states)
    change_of_means = width * (width * (products - squares / 2.0))
    change_of_noise = width * np.sqrt(squares) * quantile
    budgets = change_of_means + change_of_noise
    return budgets * (1.0 + 1e-12)


def _quantile_of_changes(horizon: int, delta: float, n_states: int) -> float:
    """q of theorem 1', rounded up, at least 0: the normal quantile at which delta is shared among
    all changes of one state into another at one of `horizon` times."""
    states = check_horizon(n_states, "n_states")
    other_states = max(n_states - 1, 1)
    changes = horizon * states * other_states
    share = check_delta(delta) / changes
    quantile = -float(ndtri(share))
    at_least_zero = max(quantile, 0.0)
    return at_least_zero * (1.0 + 1e-13) + 1e-15


@dataclass(frozen=True)
class _Scaled:
    """`numbers` times 2^`exponent`, which may be no floats."""

    numbers: np.ndarray
    exponent: int


def _sum_rounded_up(is_used: np.ndarray, terms: list[_Scaled]) -> np.ndarray:
    """The sum of terms, 0 in columns that are not used, rounded up to inf if need be."""
    with np.errstate(over="ignore", under="ignore"):
        parts = []
        for term in terms:
            rounded_up = term.numbers + UNDERFLOW
            parts.append(np.ldexp(rounded_up, term.exponent) + SMALLEST)
        total = np.sum(parts, axis=0)
        return np.where(is_used, total * (1.0 + 4.0 * EPS), 0.0)


@dataclass(frozen=True)
class _ScaledStrategy:
    """sensitivity abs(strategy[r, t]) / scale[r] = `weights` (R, T) times 2^`exponent`, up to a
    factor `up` above rounding."""

    weights: csr_array
    exponent: int
    up: float


def _scale_strategy(strategy: Any, scale: ArrayLike, sensitivity: float) -> _ScaledStrategy:
    """The strategy (R, T) times the sensitivity, over the scale of each row. Mantissas and
    exponents are divided separately, as their products may be no floats."""
    weights = abs(check_strategy(strategy))
    answers = weights.shape[0]
    scales = check_scales(scale, answers)
    check_entries(weights.data, "entries of the strategy, over the scale,")
    entries_of_answers = np.diff(weights.indptr)
    answer = np.repeat(np.arange(answers), entries_of_answers)
    entry, entry_power = np.frexp(weights.data)
    noise, noise_power = np.frexp(scales[answer])
    width, width_power = np.frexp(check_sensitivity(sensitivity))
    quotient = entry * width / noise  # below 2
    power = entry_power - noise_power + width_power
    is_positive = entry > 0.0
    largest_powers = power[is_positive] + 1
    exponent = int(largest_powers.max(initial=-5000))
    with np.errstate(under="ignore"):
        scaled = np.ldexp(quotient, power - exponent)
        weights.data = scaled + SMALLEST * is_positive
    up = 1.0 + (sum(weights.shape) + 8) * EPS
    return _ScaledStrategy(weights, exponent, up)


def check_strategy(strategy: Any) -> csr_array:
    """A strategy matrix (R, T)."""
    matrix = strategy
    if not hasattr(strategy, "tocsr"):
        matrix = as_numbers(strategy, "strategy must be numbers", "give rows")
    if matrix.ndim != 2:
        raise ValueError(
            f"strategy must have shape (R, T), found {matrix.shape}; give a row for each answer"
        )
    return csr_array(matrix)


def check_scales(scale: ArrayLike, answers: int) -> np.ndarray:
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
