"""Classes of states that lead to each other, their periods, and the stationary distribution.

The functions take a `TransitionMatrix`, dense or sparse; its methods are their public face.
"""

from __future__ import annotations
from collections.abc import Sequence
from typing import Any

import numpy as np

#: Less likely steps join no classes: power iteration ends before they change anything.
LEAST_STEP = 1e-10
#: Power iteration ends when a step changes the distribution by less than this, in sum.
SETTLED = 1e-14
MOST_ITERATIONS = 100_000


def class_periods(steps: Any) -> list[int]:
    """The period of each class of states that lead to each other: the largest common divisor of
    the lengths of all its cycles, 0 if it has none.

    `steps` is a csr_array (n, n) of bool, True where a step is possible.
    """
    from scipy.sparse import csgraph

    n_classes, class_of_state = csgraph.connected_components(steps, connection="strong")
    periods = []
    for number in range(n_classes):
        members = np.flatnonzero(class_of_state == number)
        inside = steps[members][:, members]
        distance = csgraph.dijkstra(inside, indices=0, unweighted=True).astype(int)
        before, after = inside.nonzero()
        periods.append(int(np.gcd.reduce(distance[before] + 1 - distance[after])))
    return periods


def reduce_states(matrix: Any) -> np.ndarray:
    """The stationary distribution (n,) of a dense matrix by state reduction.

    The algorithm of Grassmann, Taksar and Heyman subtracts nothing, so no digits are lost.
    """
    import scipy.sparse

    members = _closed_class(scipy.sparse.csr_array(matrix.probabilities), matrix.states)
    a = matrix.probabilities[np.ix_(members, members)].copy()
    for k in range(members.size - 1, 0, -1):
        a[:k, k] /= a[k, :k].sum()
        a[:k, :k] += np.outer(a[:k, k], a[k, :k])
    p = np.append(1.0, np.zeros(members.size - 1))
    for k in range(1, members.size):
        p[k] = p[:k] @ a[:k, k]
    return np.bincount(members, weights=p / p.sum(), minlength=matrix.n_states)


def iterate_powers(matrix: Any) -> np.ndarray:
    """The stationary distribution (n,) of a sparse matrix by power iteration.

    The chain is made lazy, (P + I) / 2, so that it has no period. A step takes O(stored entries).
    """
    _closed_class(_likely_steps(matrix), matrix.states)
    p = np.full(matrix.n_states, 1.0 / matrix.n_states)
    for _ in range(MOST_ITERATIONS):
        following = 0.5 * (p + matrix.__rmatmul__(p / p.sum()))
        following /= following.sum()
        change = np.abs(following - p).sum()
        if change <= SETTLED:
            return following
        p = following
    raise ValueError(
        f"power iteration must settle within 1e-14 in 100,000 steps, found {change:g}; "
        "give `initial`"
    )


def _likely_steps(matrix: Any) -> Any:
    """The steps of a sparse matrix that are not too unlikely, csr_array (n + 1, n + 1) of bool.

    A state with a background leads to one more node, which leads everywhere.
    """
    import scipy.sparse

    anywhere = scipy.sparse.csr_array(matrix.background[:, None] * matrix.n_states >= LEAST_STEP)
    everywhere = np.ones((1, matrix.n_states))
    blocks = [[matrix.probabilities >= LEAST_STEP, anywhere], [everywhere, None]]
    return scipy.sparse.block_array(blocks, format="csr")


def _closed_class(steps: Any, states: Sequence) -> np.ndarray:
    """The numbers of the states in the only class of connected states that is never left."""
    from scipy.sparse.csgraph import connected_components

    _, class_of_state = connected_components(steps, connection="strong")
    rows, columns = steps.nonzero()
    leaves = class_of_state[rows] != class_of_state[columns]
    closed = np.setdiff1d(class_of_state, class_of_state[rows[leaves]])
    if closed.size > 1:
        first, second = (states[int(np.argmax(class_of_state == c))] for c in closed[:2])
        raise ValueError(
            f"the stationary distribution must be unique, found {closed.size} closed classes of "
            f"states (one holds {first!r}, another {second!r}); "
            "give an initial distribution, or smooth the matrix"
        )
    return np.flatnonzero(class_of_state == closed[0])
