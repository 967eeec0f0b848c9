"""The joint hull of all pairs of rows, which is the whole privacy loss function (Eq. (24) of [1]).

With u = e^alpha - 1, two rows q and d and a set S of columns, the objective of Eq. (24) is

    (q(S) u + 1) / (d(S) u + 1) = 1 + mu,    mu = gap(S) / (d(S) + 1/u),    gap(S) = q(S) - d(S),

so mu is the slope of the line from (-1/u, 0) to the point (d(S), gap(S)). The maximum over all
pairs and sets is the tangent from (-1/u, 0) to the upper hull of all these points: as alpha runs
from 0 to infinity it touches the hull's vertices one after the other, from the largest gap to the
largest gap(S)/d(S). Working with gaps instead of q(S) keeps full relative accuracy for small alpha
and for rows that nearly agree.

A pair is inside the hull exactly if its excess s(mu) = sum_k max(q_k - d_k - mu d_k, 0) stays under
the hull's support function h at every edge slope of the hull. Both are convex, and h is linear
between edge slopes, so the chord of s between two slopes settles everything between them unless it
crosses h. `dense` evaluates a few slopes for one row d and many rows q at once, which settles
nearly all pairs, and bisects for the rest. Only a pair that sticks out is sorted: its points are
prefix sums in order of falling q_k/d_k (Theorem 8 of [1]). `sparse` dismisses most pairs by a bound
for each row. `compiled` alone knows Numba; blocks of rows run on a thread pool.
"""

from collections.abc import Iterator

import numpy as np
from scipy.sparse import csr_array

from tplrepro.leakage.envelope import compiled, dense, hulls, recursion, sparse
from tplrepro.leakage.envelope.dense import SMALL
from tplrepro.leakage.vertex import Vertex
from tplrepro.markov.transition import TransitionMatrix
from tplrepro.validation import frozen

__all__ = [
    "SMALL",
    "best_vertex",
    "compile_kernels",
    "hull_of_several",
    "joint_hull",
    "leakages_of_small",
]

# Steps of each call, and of each column of a pair in the hull of few rows.
CALL = 50
PASSES = 4


def joint_hull(matrix, progress: bool = True) -> np.ndarray:
    """The joint hull of all ordered pairs of rows of a matrix (Eq. (24) of [1]).

    Parameters
    ----------
    matrix : TransitionMatrix
    progress : bool, show a progress bar if it takes more than two seconds

    Returns
    -------
    array (K, 5): the vertices in order of growing alpha (falling d)
        Each is d(S), gap(S), 1 - q(S), and the numbers of rows q and d; none if all rows are equal.
    """
    n = matrix.n_states
    passes = PASSES if n <= SMALL else 1
    compiled.announce_steps(passes * n**3 + CALL)
    if matrix.is_sparse:
        points = sparse.joint_hull(matrix.probabilities, matrix.background, progress)
    else:
        points = dense.joint_hull(matrix.probabilities, progress)
    # What lies within TIE of the hull counts as inside, but whether leakage grows without bound is
    # decided exactly.
    if not points.size:
        return points
    d, _, rest = points[-1, :3]
    is_nearly_disjoint = d == 0.0 and 0.0 < rest < 1e-8
    if not is_nearly_disjoint:
        return points
    disjoint = _disjoint_rows(matrix)
    return next(disjoint, points)


def _disjoint_rows(matrix) -> Iterator[np.ndarray]:
    """The hull (1, 5) of each two rows without a column in which both are above 0."""
    n = matrix.n_states
    background = np.zeros(n)
    if matrix.is_sparse:
        background = (matrix.background > 0).astype(float)
    rows = csr_array(matrix.probabilities, dtype=float, copy=True)
    stored = np.diff(rows.indptr)
    background_of_entries = np.repeat(background, stored)
    is_positive = rows.data > 0
    rows.data = is_positive - background_of_entries
    for first in range(0, n, dense.BLOCK):
        stop = min(first + dense.BLOCK, n)
        supports = [matrix.row(i) > 0 for i in range(first, stop)]
        support = np.array(supports, dtype=float)
        support_sizes = support.sum(axis=1)
        # the number of columns in which both are above 0
        common_of_background = np.outer(support_sizes, background)
        common_of_entries = support @ rows.T
        common = common_of_entries + common_of_background
        are_disjoint = common == 0.0
        for i, j in np.argwhere(are_disjoint):
            disjoint = (0.0, 1.0, 0.0, first + i, j)
            yield np.array([disjoint])


def best_vertex(matrix, alpha: float) -> Vertex:
    """The vertex that attains L(alpha), by one pass over all pairs of rows.

    Parameters
    ----------
    matrix : TransitionMatrix
    alpha : float, 0 < alpha <= 700, nats

    Returns
    -------
    Vertex, with d = gap = 0 if all rows are equal
    """
    compiled.announce_steps(matrix.n_states**3 + CALL)
    if matrix.is_sparse:
        return sparse.best_vertex(matrix.probabilities, matrix.background, alpha)
    return dense.best_vertex(matrix.probabilities, alpha)


def leakages_of_small(matrices: np.ndarray, budgets: np.ndarray) -> np.ndarray:
    """Leakages by Eq. (13) of [1] with each of many small matrices.

    Parameters
    ----------
    matrices : array (M, n, n), n <= SMALL, each row-stochastic
    budgets : array (T,), the budget of each release, nats

    Returns
    -------
    array (M, T), nats
        They equal those of `accumulate_leakages` with a `PrivacyLossFunction` of each bit for bit.
        NaN where rows are nearly disjoint or numbers out of range, which needs that function.
    """
    compiled.announce_steps(len(matrices) * budgets.size)
    found = _hulls_of_small(matrices)
    sizes = [len(points) for points in found]
    first = np.cumsum([0, *sizes])
    points = np.concatenate(found)
    contiguous = np.array(budgets)
    return recursion.accumulate_for_each(points, first, contiguous)


def hull_of_several(matrices: np.ndarray) -> np.ndarray:
    """The joint hull (K, 5), as of `joint_hull`, of the pairs of rows within each of M dense
    matrices (M, n, n)."""
    if matrices.shape[1] <= SMALL:
        compiled.announce_steps(PASSES * matrices.size * matrices.shape[2] + CALL)
        points = dense.hull_of_several(frozen(matrices))
        d = points[:, 0]
        rest = points[:, 2]
        is_tiny = rest < 1e-8
        is_nearly_disjoint = is_tiny & (d == 0.0)
        # without the exact decision of `joint_hull`, on the safe side
        points[is_nearly_disjoint, 1] = 1.0
        points[is_nearly_disjoint, 2] = 0.0
    else:
        several = [joint_hull(TransitionMatrix(rows)) for rows in matrices]
        points = np.vstack(several)
    return hull_of_points(points)


def _hulls_of_small(matrices: np.ndarray) -> list[np.ndarray]:
    n = matrices.shape[2]
    compiled.announce_steps(PASSES * matrices.size * n + CALL)
    return [dense.hull_of_few_rows(rows) for rows in frozen(matrices)]


def hull_of_points(points: np.ndarray) -> np.ndarray:
    """The hull (K, 5) of points (m, 5) in any order."""
    compiled.announce_steps(points.size)
    d = points[:, 0]
    gap = points[:, 1]
    order = np.lexsort((gap, d))
    return hulls.hull_in_order(points[order])


def compile_kernels() -> None:
    """Compile all kernels that are not stored compiled, before something is timed or run in several
    processes."""
    compiled.announce_steps(compiled.WORTH)
    rng = np.random.default_rng(0)
    matrix = TransitionMatrix.random(60, rng=rng)
    walk = rng.integers(0, 300, 3000)
    walks = [walk]
    sparse_matrix = TransitionMatrix.from_sequences(
        walks, n_states=300, smoothing=0.01, sparse=True
    )
    for P in (matrix, sparse_matrix):
        joint_hull(P)
        best_vertex(P, 1.0)
    one_small = np.full((1, 2, 2), 0.5)
    leakages_of_small(one_small, np.ones(1))
    hull_of_several(one_small)
    no_vertices = np.empty((0, 5))
    first = np.zeros(1, dtype=int)
    no_step = np.array([-1])
    budgets = np.ones(2)
    change = np.ones((2, 1))
    recursion.accumulate_with_derivative(no_vertices, first, no_step, budgets, change)
    vertices = np.ones((1, 5))
    recursion.run_along(vertices, 1.0, budgets)
    row = np.zeros((1, 1))
    recursion.farthest_rows(row, row, 0.0)
