"""Transition matrices for experiments: strongest correlation, Laplacian smoothing of it, random (section 6 of [1])."""

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.markov.transition import TransitionMatrix, as_transition_matrix
from tplrepro.validation import check_horizon, check_smoothing

__all__ = ["random_matrix", "smoothed", "strongest"]


def strongest(n: int, seed: int | None = None) -> TransitionMatrix:
    """The strongest correlation: one 1 in each row and column, so that one state tells the next for certain.

    Without a seed it is the identity ([1], section 6.2), with one a random permutation of n states ([2], section VI).

    Examples
    --------
    >>> strongest(3).probabilities.tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    n = check_horizon(n, "n")
    columns = np.arange(n) if seed is None else np.random.default_rng(seed).permutation(n)
    return TransitionMatrix(np.eye(n)[columns])


def smoothed(matrix: TransitionMatrix | ArrayLike, s: float) -> TransitionMatrix:
    """Laplacian smoothing, Eq. (28) of [1] exactly as printed: (p_jk + s) / sum_u (p_ju + s).

    A smaller s means stronger correlation; values of s compare only for the same n. The generator published with [1]
    adds s twice: its s = 0.05 is 0.10 here.

    Examples
    --------
    >>> smoothed(strongest(2), 0.5).probabilities.tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """
    s, matrix = check_smoothing(s, "s"), as_transition_matrix(matrix)
    total = 1.0 + matrix.n_states * s
    if not matrix.is_sparse:
        return TransitionMatrix((matrix.probabilities + s) / total, states=matrix.states, normalize=True)
    rows = matrix.probabilities.copy()
    rows.data = (rows.data + s) / total
    return TransitionMatrix(rows, states=matrix.states, background=(matrix.background + s) / total, normalize=True)


def random_matrix(n: int, seed: int | None = None, zeros: float = 0.0) -> TransitionMatrix:
    """A random matrix over n states: entries uniform on [0, 1], rows divided by their sums ([2], section VI.A).

    `zeros`, in [0, 1), is the share of entries set to 0 before normalizing (at least one a row is kept).

    Examples
    --------
    >>> random_matrix(2, seed=1).probabilities.round(4).tolist()
    [[0.35, 0.65], [0.1319, 0.8681]]
    """
    n = check_horizon(n, "n")
    if not 0.0 <= zeros < 1.0:
        raise ValueError(f"zeros must be a share in [0, 1), found {zeros}; give the fraction of entries to clear")
    rng = np.random.default_rng(seed)
    rows = rng.random((n, n))
    keep = rng.random((n, n)) >= zeros
    keep[np.arange(n), rng.integers(0, n, n)] = True
    return TransitionMatrix(rows * keep, normalize=True)
