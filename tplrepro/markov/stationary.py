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
#: By how much what two starts settle at may differ, in sum.
ALIKE = 1e-6
#: Sparse matrices of up to so many states are reduced as dense ones, which takes a second.
MOST_REDUCED = 1000


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
        longer_by = distance[before] + 1 - distance[after]
        period = np.gcd.reduce(longer_by)
        periods.append(int(period))
    return periods


def reduce_states(matrix: Any) -> np.ndarray:
    """The stationary distribution (n,) by state reduction, of a sparse matrix as of a dense one.

    The algorithm of Grassmann, Taksar and Heyman subtracts nothing, so no digits are lost.
    """
    import scipy.sparse

    rows = matrix.toarray()
    steps = scipy.sparse.csr_array(rows)
    members = _closed_class(steps, matrix.states)
    size = members.size
    inside = np.ix_(members, members)
    a = rows[inside]
    for k in range(size - 1, 0, -1):
        leaving = a[k, :k]
        a[:k, k] /= leaving.sum()
        by_way_of_k = np.outer(a[:k, k], leaving)
        a[:k, :k] += by_way_of_k
    p = np.zeros(size)
    p[0] = 1.0
    for k in range(1, size):
        p[k] = p[:k] @ a[:k, k]
    p /= p.sum()
    return np.bincount(members, weights=p, minlength=matrix.n_states)


def iterate_powers(matrix: Any) -> np.ndarray:
    """The stationary distribution (n,) of a sparse matrix by power iteration.

    A step takes O(stored entries). Between parts that are hardly ever left, a step moves less than
    what counts as settled, so that it settles anywhere: then another start settles elsewhere.
    """
    _closed_class(_likely_steps(matrix), matrix.states)
    n = matrix.n_states
    p = _settled(matrix, np.full(n, 1.0 / n))
    uneven = np.random.default_rng(0).exponential(size=n)
    difference = np.abs(_settled(matrix, uneven / uneven.sum()) - p).sum()
    if difference > ALIKE:
        raise ValueError(
            "power iteration must settle at the same distribution from any start, found two that "
            f"differ by {difference:.2g} in sum; give `initial`"
        )
    return p


def _settled(matrix: Any, p: np.ndarray) -> np.ndarray:
    """Where the distribution p (n,) settles. The chain is made lazy, (P + I) / 2, so that it has no
    period."""
    for _ in range(MOST_ITERATIONS):
        normalised = p / p.sum()
        after_step = matrix.__rmatmul__(normalised)
        following = 0.5 * (p + after_step)
        following /= following.sum()
        difference = following - p
        change = np.abs(difference).sum()
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

    n = matrix.n_states
    background_mass = matrix.background[:, None] * n
    stored = matrix.probabilities >= LEAST_STEP
    anywhere = scipy.sparse.csr_array(background_mass >= LEAST_STEP)
    everywhere = np.ones((1, n))
    blocks = [[stored, anywhere], [everywhere, None]]
    return scipy.sparse.block_array(blocks, format="csr")


def _closed_class(steps: Any, states: Sequence) -> np.ndarray:
    """The numbers of the states in the only class of connected states that is never left."""
    from scipy.sparse.csgraph import connected_components

    _, class_of_state = connected_components(steps, connection="strong")
    rows, columns = steps.nonzero()
    class_before = class_of_state[rows]
    class_after = class_of_state[columns]
    is_left = class_before != class_after
    open_classes = class_before[is_left]
    closed = np.setdiff1d(class_of_state, open_classes)
    if closed.size > 1:
        first = states[int(np.argmax(class_of_state == closed[0]))]
        second = states[int(np.argmax(class_of_state == closed[1]))]
        raise ValueError(
            f"the stationary distribution must be unique, found {closed.size} closed classes of "
            f"states (one holds {first!r}, another {second!r}); "
            "give an initial distribution, or smooth the matrix"
        )
    return np.flatnonzero(class_of_state == closed[0])
