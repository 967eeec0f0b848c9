"""The stationary distribution of a chain: the default prior of Bayes' rule where no initial distribution is known."""

from __future__ import annotations

import numpy as np

__all__ = ["stationary_distribution"]


def stationary_distribution(matrix) -> np.ndarray:
    """The one distribution p with p P = p.

    Parameters
    ----------
    matrix : TransitionMatrix (n states)

    Returns
    -------
    ndarray (n,), summing to 1

    Raises
    ------
    ValueError
        If the chain has several closed classes, so that p is not unique; or, for a sparse matrix, if power iteration
        does not converge.

    Notes
    -----
    Dense: the algorithm of Grassmann, Taksar and Heyman on the closed class, which subtracts nothing and so keeps full
    relative accuracy. Sparse: power iteration on the lazy chain (P + I)/2, O(stored entries) a step.
    """
    return _power_iteration(matrix) if matrix.is_sparse else _state_reduction(matrix)


def _closed_class(adjacency, states) -> np.ndarray:
    from scipy.sparse.csgraph import connected_components

    count, label = connected_components(adjacency, connection="strong")
    rows, columns = adjacency.nonzero()
    leaves = label[rows] != label[columns]
    closed = np.setdiff1d(np.arange(count), label[rows[leaves]])
    if closed.size > 1:
        first, second = (states[int(np.argmax(label == c))] for c in closed[:2])
        raise ValueError(
            f"the stationary distribution must be unique, found {closed.size} closed classes of states "
            f"(one holds {first!r}, another {second!r}); give an initial distribution, or smooth the matrix"
        )
    return np.flatnonzero(label == closed[0])


def _state_reduction(matrix) -> np.ndarray:
    import scipy.sparse

    inside = _closed_class(scipy.sparse.csr_array(matrix.probabilities), matrix.states)
    a = matrix.probabilities[np.ix_(inside, inside)].copy()
    for k in range(inside.size - 1, 0, -1):
        a[:k, k] /= a[k, :k].sum()
        a[:k, :k] += np.outer(a[:k, k], a[k, :k])
    p = np.zeros(inside.size)
    p[0] = 1.0
    for k in range(1, inside.size):
        p[k] = p[:k] @ a[:k, k]
    distribution = np.zeros(matrix.n_states)
    distribution[inside] = p / p.sum()
    return distribution


def _power_iteration(matrix, tolerance: float = 1e-14, steps: int = 100_000) -> np.ndarray:
    if not matrix.background.any():
        _closed_class(matrix.probabilities, matrix.states)
    p = np.full(matrix.n_states, 1.0 / matrix.n_states)
    for _ in range(steps):
        following = 0.5 * (p + matrix.propagate(p))
        following /= following.sum()
        if np.abs(following - p).sum() <= tolerance:
            return following
        p = following
    raise ValueError(
        f"power iteration must reach a change of {tolerance:g} within {steps} steps, found "
        f"{np.abs(following - p).sum():g}; give an initial distribution"
    )
