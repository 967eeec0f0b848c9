"""The quasi-quadratic algorithm of Section 4.3 of [1]: Algorithms 2 and 3."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.leakage.published.formula import log_f, one_leakage
from tplrepro.validation import as_transition_array

__all__ = ["PrecomputedTables", "algorithm_2", "algorithm_3", "largest_pair", "piecewise_coefficients"]


class PrecomputedTables(NamedTuple):
    """Algorithm 2's output: one row for each ordered pair of rows, (0, 1), (0, 2), ..., (n-1, n-2).

    Attributes
    ----------
    qM, dM : ndarray (n(n-1), n)
        Sums of q and of d over the k columns of largest q_j / d_j, for k = 1 .. n.
    aM : ndarray (n(n-1), n)
        Transition points, falling: the first k columns are optimal from aM[:, k] up to aM[:, k - 1]. The
        first is inf; NaN pads the columns with q_j <= d_j; all are 0 where the two rows are identical.
    """

    qM: np.ndarray
    dM: np.ndarray
    aM: np.ndarray


def piecewise_coefficients(q: ArrayLike, d: ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lines 2 to 11 of Algorithm 2 of [1] for one pair of rows, or for many pairs at once.

    From rows (..., n) of one length, else ValueError, whose shapes broadcast: qArr, dArr, aArr (..., n), see
    `PrecomputedTables`.

    Examples
    --------
    The worked example of [1], below Algorithm 2:

    >>> piecewise_coefficients([0.2, 0.3, 0.5], [0.1, 0, 0.9])[2].round(3)
    array([  inf, 1.466,   nan])
    """
    q, d = np.asarray(q, dtype=float), np.asarray(d, dtype=float)
    if q.ndim == 0 or d.ndim == 0 or q.shape[-1] != d.shape[-1]:
        raise ValueError(
            f"q and d must be rows of one length, found shapes {q.shape} and {d.shape}; pass two rows of P"
        )
    q, d = np.broadcast_arrays(q, d)
    excess = q - d
    candidate = excess > 0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        order = np.argsort(np.where(candidate, -(excess / d), np.inf), axis=-1)
        q, d, excess = (np.take_along_axis(np.where(candidate, row, 0.0), order, axis=-1) for row in (q, d, excess))
        q_arr, d_arr, p_arr = (np.cumsum(row, axis=-1) for row in (q, d, excess))
        # qArr_i d_i - dArr_i q_i, with q - d for q and without the terms in q_i d_i, which cancel
        denominator = np.zeros_like(q_arr)
        denominator[..., 1:] = p_arr[..., :-1] * d[..., 1:] - d_arr[..., :-1] * excess[..., 1:]
        np.maximum(denominator, 0.0, out=denominator)  # the ratios fall, so a negative one is rounding
        a_arr = np.log1p(excess / denominator)
    np.minimum.accumulate(a_arr, axis=-1, out=a_arr)  # the same for points out of order
    a_arr[~candidate.any(axis=-1)] = 0.0  # lines 4 and 5: identical rows
    return q_arr, d_arr, a_arr


def algorithm_2(P: ArrayLike) -> PrecomputedTables:
    """Precompute the parameters of all n(n-1) pairs by Algorithm 2 of [1].

    The three tables take 24 n^2 (n-1) bytes: 0.2 GB at n = 200, 24 GB at n = 1,000.

    Examples
    --------
    >>> algorithm_2([[0.8, 0.2], [0.0, 1.0]]).dM
    array([[0. , 0. ],
           [0.2, 0.2]])
    """
    rows = as_transition_array(P)
    n = rows.shape[0]
    tables = PrecomputedTables(*(np.empty((n * (n - 1), n)) for _ in range(3)))
    for i in range(n):
        pairs = slice(i * (n - 1), (i + 1) * (n - 1))
        values = piecewise_coefficients(rows[i], np.delete(rows, i, axis=0))
        tables.qM[pairs], tables.dM[pairs], tables.aM[pairs] = values
    return tables


def algorithm_3(alpha: float, tables: PrecomputedTables, epsilon: float = 0.0) -> float:
    """BPL or FPL at one time point from Algorithm 2's tables by Algorithm 3 of [1]: L(alpha) + epsilon.

    `alpha` and `epsilon` as in `algorithm_1`.

    Examples
    --------
    >>> round(algorithm_3(0.1, algorithm_2([[0.8, 0.2], [0.0, 1.0]]), epsilon=0.1), 6)
    0.180784
    """
    return largest_pair(one_leakage(alpha, "alpha"), tables)[0] + one_leakage(epsilon, "epsilon")


def largest_pair(alpha: float, tables: PrecomputedTables) -> tuple[float, float, float]:
    """The largest log f over all pairs at `alpha`, with its q and d; all rows of aM are bisected at once."""
    q_table, d_table, a_table = (table.ravel() for table in tables)
    pairs, n = tables.aM.shape
    if pairs == 0:
        return 0.0, 0.0, 0.0
    base = np.arange(pairs) * n
    count = np.zeros(pairs, dtype=np.intp)  # entries of a row above alpha: that many columns are optimal
    step = 1 << (n.bit_length() - 1)
    while step:
        further = count + step
        exceeds = a_table[base + np.minimum(further, n) - 1] > alpha
        count = np.where((further <= n) & exceeds, further, count)
        step >>= 1
    found = base + np.maximum(count - 1, 0)  # identical rows: count 0, coefficients 0, log f = 0
    q, d = q_table[found], d_table[found]
    loss = log_f(q - d, d, alpha)
    k = int(np.argmax(loss))
    return float(loss[k]), float(q[k]), float(d[k])
