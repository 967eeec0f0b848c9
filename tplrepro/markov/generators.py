"""Matrices for experiments: the strongest correlation, and Laplacian smoothing of it (section 6 of
[1])."""

from __future__ import annotations

import numpy as np

from tplrepro.markov.transition import MatrixLike, TransitionMatrix, as_transition_matrix
from tplrepro.validation import check_horizon, check_smoothing


def strongest(n: int, seed: int | None = None) -> TransitionMatrix:
    """The strongest correlation: one state determines the next.

    Without a seed it is the identity ([1], section 6.2), else a random permutation ([2], section
    VI).

    >>> strongest(3).probabilities.tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    n = check_horizon(n, "n")
    columns = np.arange(n) if seed is None else np.random.default_rng(seed).permutation(n)
    return TransitionMatrix(np.eye(n)[columns])


def smoothed(matrix: MatrixLike, s: float) -> TransitionMatrix:
    """Laplacian smoothing, Eq. (28) of [1] exactly as printed: (p_jk + s) / sum_u (p_ju + s).

    A smaller s means stronger correlation; values of s compare only for the same n.

    >>> smoothed(strongest(2), 0.5).probabilities.tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """
    s = check_smoothing(s, "s")
    matrix = as_transition_matrix(matrix)
    total = 1.0 + matrix.n_states * s
    if not matrix.is_sparse:
        return TransitionMatrix(
            (matrix.probabilities + s) / total, states=matrix.states, normalize=True
        )
    rows = matrix.probabilities.copy()
    rows.data = (rows.data + s) / total
    background = (matrix.background + s) / total
    return TransitionMatrix(rows, states=matrix.states, background=background, normalize=True)
