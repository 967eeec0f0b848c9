"""The loss as the implementation published with [4] computes it, for comparison; it understates the leakage.

For a pair of rows q, d the published code keeps the coordinates with q_j > d_j > 0 alone. Those with q_j > 0 and
d_j = 0, whose ratio is infinite and which an optimal solution always takes, are left out, unless some q_j is 1: then it
answers L(alpha) = alpha at once. Rows (.5, .5, 0) and (0, .5, .5) at alpha = 1 so give 0, where the supremum of Eq. (1)
of [4] is log(0.5 (e - 1) + 1) = 0.620.

The elimination loop of the published code finds, for the coordinates it keeps, the same subset as a sort by q_j / d_j
does, which is used here. Only pairs of rows that share a column are looked at: the others give 0.

References
----------
[4] M. Rafiei, G. Elkoumy, W. M. P. van der Aalst: Quantifying Temporal Privacy Leakage in Continuous Event Data
    Publishing. 2022; its supplement: Calculating Accumulative Privacy Leakage.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse

from tplrepro.markov.transition import as_transition_matrix
from tplrepro.validation import check_alpha

__all__ = ["PublishedLoss", "privacy_loss"]


def privacy_loss(matrix, alpha: float) -> float:
    """The loss at one alpha, by the published rule; not a bound on the leakage.

    Parameters
    ----------
    matrix : TransitionMatrix, array-like or scipy.sparse matrix (n, n)
    alpha : float, leakage of the neighbouring release in nats, finite and >= 0

    Returns
    -------
    float, nats

    Raises
    ------
    ValueError
        If the matrix is not row-stochastic, or alpha is negative or not finite.

    Examples
    --------
    >>> rows = [[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.5, 0.5, 0.0]]
    >>> import tplrepro as tpl
    >>> privacy_loss(rows, 1.0), round(tpl.privacy_loss(rows, 1.0), 3)
    (0.0, 0.62)
    """
    return PublishedLoss(matrix).at(float(check_alpha(alpha)))


class PublishedLoss:
    """The published rule for one matrix: its pairs of rows that share a column, found once.

    Parameters
    ----------
    matrix : TransitionMatrix, array-like or scipy.sparse matrix (n, n)
    """

    def __init__(self, matrix):
        matrix = as_transition_matrix(matrix)
        smooth = not matrix.is_sparse or matrix.background.any()
        self.rows = scipy.sparse.csr_array(matrix.toarray() if smooth else matrix.probabilities)
        self.rows.eliminate_zeros()
        self.rows.sort_indices()
        self.is_identity = self._has_certain_coordinate()
        self._parts = () if self.is_identity else self._shared()

    def _has_certain_coordinate(self) -> bool:
        """Whether some q_j = 1 where another row has d_j = 0."""
        users = np.bincount(self.rows.indices, minlength=self.rows.shape[0])
        certain = self.rows.indices[self.rows.data == 1.0]
        return bool((users[certain] < self.rows.shape[0]).any())

    def _shared(self):
        """The kept coordinates of all pairs, flat: q, d, and where each pair begins."""
        columns = self.rows.tocsc()
        q_parts, d_parts, pair_parts = [], [], []
        n = self.rows.shape[0]
        for column in range(n):
            a, b = columns.indptr[column], columns.indptr[column + 1]
            values, rows = columns.data[a:b], columns.indices[a:b].astype(np.int64)
            i, j = np.nonzero(values[:, None] > values[None, :])
            q_parts.append(values[i])
            d_parts.append(values[j])
            pair_parts.append(rows[i] * n + rows[j])
        q, d, pair = np.concatenate(q_parts), np.concatenate(d_parts), np.concatenate(pair_parts)
        order = np.lexsort((-(q / d), pair))
        q, d, pair = q[order], d[order], pair[order]
        starts = np.flatnonzero(np.diff(pair, prepend=-1))
        return _running(q, starts), _running(d, starts)

    def at(self, alpha: float) -> float:
        """The loss at alpha >= 0."""
        if self.is_identity:
            return alpha
        q, d = self._parts
        if not q.size or alpha == 0.0:
            return 0.0
        u = np.expm1(alpha)
        return float(np.log1p(np.max((q - d) * u / (d * u + 1.0))))


def _running(values: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Sums from the start of each part up to each place; by rank, because differences of one long sum lose digits."""
    total = values.copy()
    rank = np.arange(values.size) - np.repeat(starts, np.diff(np.append(starts, values.size)))
    by_rank = np.argsort(rank, kind="stable")
    for places in np.split(by_rank, np.cumsum(np.bincount(rank))[:-1])[1:] if values.size else ():
        total[places] += total[places - 1]
    return total
