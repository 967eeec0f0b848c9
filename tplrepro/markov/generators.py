"""Matrices for experiments: the strongest correlation, and Laplacian smoothing of it (section 6 of
[1])."""

from __future__ import annotations

import numpy as np

from tplrepro.markov.transition import MatrixLike, TransitionMatrix, as_transition_matrix
from tplrepro.validation import check_horizon, check_smoothing


def strongest(n: int, seed: int | None = None) -> TransitionMatrix:
    """The strongest correlation: one state determines the next.

    Parameters
    ----------
    n : int
        The number of states.
    seed : int, optional
        Without a seed the matrix is the identity ([1], section 6.2), else a random permutation
        ([2], section VI).

    Returns
    -------
    TransitionMatrix

    Raises
    ------
    ValueError
        If `n` is no positive whole number.

    Examples
    --------
    >>> strongest(3).probabilities.tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    n = check_horizon(n, "n")
    following = np.arange(n)
    if seed is not None:
        following = np.random.default_rng(seed).permutation(n)
    return TransitionMatrix(np.eye(n)[following])


def smoothed(matrix: MatrixLike, s: float) -> TransitionMatrix:
    """Laplacian smoothing, Eq. (28) of [1] exactly as printed: (p_jk + s) / sum_u (p_ju + s).

    A smaller s means stronger correlation; values of s compare only for the same n.

    Parameters
    ----------
    matrix : TransitionMatrix or array-like (n, n)
        The probabilities p_jk.
    s : float
        What is added to each probability, >= 0.

    Returns
    -------
    TransitionMatrix
        Sparse if `matrix` is.

    Raises
    ------
    ValueError
        If `matrix` is no transition matrix, or s is negative or not finite.

    Examples
    --------
    >>> smoothed(strongest(2), 0.5).probabilities.tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """
    s = check_smoothing(s, "s")
    matrix = as_transition_matrix(matrix)
    total = 1.0 + matrix.n_states * s
    if not matrix.is_sparse:
        rows = (matrix.probabilities + s) / total
        return TransitionMatrix(rows, states=matrix.states, normalize=True)
    stored = matrix.probabilities.copy()
    stored.data = (stored.data + s) / total
    background = (matrix.background + s) / total
    return TransitionMatrix(stored, states=matrix.states, background=background, normalize=True)
