"""Event-level budgets of linear mechanisms: a matrix times the series, plus noise.

An event-level budget of time t bounds by how much everything that is ever published can change with the data
of time t alone. It is the epsilon of that time in `temporal_privacy_leakage` (docs/theory/promises.md).
"""

from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, diags_array
from scipy.special import ndtri

from tplrepro.validation import as_numbers, check_delta, check_entries, check_horizon, check_sensitivity

UP = 1.0 + 1e-12  # above the rounding of the sums


def event_level_budgets(strategy: Any, scale: ArrayLike, sensitivity: float = 1.0) -> np.ndarray:
    """With Laplace noise, in nats: sensitivity times the sum over r of abs(strategy[r, t]) / scale[r], (T,).

    Parameters
    ----------
    strategy : array-like or scipy.sparse matrix (R, T), a row for each of R published answers
        The identity publishes each number, a lower triangle of ones their running totals.
    scale : float > 0 or array-like (R,), the scale of each answer's noise
    sensitivity : float > 0, by how much the number of one time changes with the data of that time
        For a vector of numbers, which all go through the same matrix, in the L1 norm.

    >>> event_level_budgets(np.tril(np.ones((4, 4))), 16.0, sensitivity=2.0).tolist()
    [0.5, 0.375, 0.25, 0.125]
    """
    return check_sensitivity(sensitivity) * _weights(strategy, scale).sum(axis=0)


def gaussian_event_level_budgets(
    strategy: Any, scale: ArrayLike, delta: float, *, n_states: int, sensitivity: float = sqrt(2.0)
) -> np.ndarray:
    """Event-level budgets (T,), in nats, rounded up, that Gaussian noise keeps with probability 1 - delta.

    If their temporal privacy leakage is at most alpha, the series is (alpha, delta)-DP_T (theorem 1'). The
    data of one person have one of `n_states` values at each time. `strategy` as in `event_level_budgets`,
    `scale` in standard deviations, `sensitivity` in the L2 norm: by default who moves changes two counts by
    1. ValueError for numbers outside their ranges.

    >>> totals = np.tril(np.ones((4, 4)))
    >>> gaussian_event_level_budgets(totals, 100.0, 1e-6, n_states=10).round(3).tolist()
    [0.166, 0.144, 0.118, 0.083]
    """
    weights = _weights(strategy, scale)
    together = weights.T @ weights.sum(axis=1)
    return gaussian_budgets_of_columns((weights * weights).sum(axis=0), together, delta, n_states, sensitivity)


def gaussian_budgets_of_columns(
    squares: np.ndarray, together: np.ndarray, delta: float, n_states: int, sensitivity: float
) -> np.ndarray:
    """The same from A = abs(strategy) / scale: the squared norms of its columns (T,), and A' A 1 (T,)."""
    changes = squares.size * check_horizon(n_states, "n_states") * max(n_states - 1, 1)
    quantile = max(-ndtri(check_delta(delta) / changes), 0.0)
    width = check_sensitivity(sensitivity)
    return (width**2 * (together - squares / 2.0) + width * np.sqrt(squares) * quantile) * UP


def _weights(strategy: Any, scale: ArrayLike) -> csr_array:
    """The absolute values of a strategy matrix (R, T), each row divided by the scale of its noise."""
    matrix = strategy if hasattr(strategy, "tocsr") else as_numbers(strategy, "strategy must be numbers", "give rows")
    if matrix.ndim != 2:
        raise ValueError(f"strategy must have shape (R, T), found {matrix.shape}; give a row for each answer")
    scales = as_numbers(scale, "scale must be numbers above 0", "give one for all answers, or one for each")
    if scales.shape not in ((), matrix.shape[:1]) or not ((scales > 0.0) & (scales < np.inf)).all():
        raise ValueError(
            f"scale must be above 0 and finite, one or {matrix.shape[0]} of them, found {scales}; leave out other rows"
        )
    weights = csr_array(diags_array(1.0 / np.broadcast_to(scales, matrix.shape[:1])) @ abs(csr_array(matrix)))
    check_entries(weights.data, "entries of the strategy, over the scale,")
    return weights
