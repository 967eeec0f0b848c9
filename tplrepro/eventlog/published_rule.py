"""The loss as the implementation published with [4] computes it, for comparison; it understates the leakage.

For a pair of rows q, d the published code (supplement of [4], "Calculating Accumulative Privacy Leakage") keeps the
coordinates with q_j > d_j > 0 alone. Those with q_j > 0 and d_j = 0, whose ratio is infinite and which an optimal
solution always takes, are left out, unless some q_j is 1: then it answers L(alpha) = alpha at once.

Its elimination loop finds, for the coordinates it keeps, the same subset as a sort by q_j / d_j does, which is used
here. Only pairs of rows that share a column are looked at: the others give 0.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from tplrepro.markov.transition import TransitionMatrix, as_transition_matrix
from tplrepro.validation import check_alpha

__all__ = ["PublishedLoss"]


class PublishedLoss:
    """The loss of a matrix (n, n), perhaps sparse, by the published rule; not a bound on the leakage.

    >>> rows = [[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.5, 0.5, 0.0]]
    >>> import tplrepro as tpl
    >>> PublishedLoss(rows).at(1.0), round(tpl.privacy_loss(rows, 1.0), 3)
    (0.0, 0.62)
    """

    def __init__(self, matrix: TransitionMatrix | ArrayLike):
        matrix = as_transition_matrix(matrix)
        smooth = not matrix.is_sparse or matrix.background.any()
        rows = scipy.sparse.csr_array(matrix.toarray() if smooth else matrix.probabilities, copy=True)
        rows.eliminate_zeros()
        users = np.bincount(rows.indices, minlength=rows.shape[0])
        certain = rows.indices[rows.data == 1.0]
        some_is_told_for_certain = (users[certain] < rows.shape[0]).any()  # some q_j = 1 where another row has d_j = 0
        self._parts = None if some_is_told_for_certain else _shared(rows.tocsc())

    def at(self, alpha: float) -> float:
        """The loss in nats at one leakage alpha; ValueError where alpha is negative or not finite."""
        alpha = float(check_alpha(alpha))
        if self._parts is None:
            return alpha
        q, d = self._parts
        if not q.size or alpha == 0.0:
            return 0.0
        u = np.expm1(alpha)
        return float(np.log1p(np.max((q - d) * u / (d * u + 1.0))))


def _shared(columns: scipy.sparse.csc_array) -> tuple[np.ndarray, np.ndarray]:
    """Sums of q and of d over the kept coordinates of all pairs of rows, in order of falling q_j / d_j."""
    q_parts, d_parts, pair_parts = [], [], []
    n = columns.shape[0]
    for column in range(n):
        stored = slice(columns.indptr[column], columns.indptr[column + 1])
        values, rows = columns.data[stored], columns.indices[stored].astype(np.int64)
        i, j = np.nonzero(values[:, None] > values[None, :])
        q_parts.append(values[i])
        d_parts.append(values[j])
        pair_parts.append(rows[i] * n + rows[j])
    q, d, pair = np.concatenate(q_parts), np.concatenate(d_parts), np.concatenate(pair_parts)
    order = np.lexsort((-(q / d), pair))
    starts = np.flatnonzero(np.diff(pair[order], prepend=-1))
    return _running(q[order], starts), _running(d[order], starts)


def _running(values: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Sums from the start of each part up to each place; by rank, because differences of one long sum lose digits."""
    total = values.copy()
    rank = np.arange(values.size) - np.repeat(starts, np.diff(np.append(starts, values.size)))
    by_rank = np.argsort(rank, kind="stable")
    for places in np.split(by_rank, np.cumsum(np.bincount(rank))[:-1])[1:] if values.size else ():
        total[places] += total[places - 1]
    return total
