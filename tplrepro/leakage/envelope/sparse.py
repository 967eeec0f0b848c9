"""The joint hull, and one tangent to it, of a sparse matrix with a smoothing background, never made dense.

No pair needs a look of its own to be dismissed. Let low_j be the smallest entry of row j as d, and top_i(m) the sum of
the m largest entries of row i as q. Every point of the pair lies on or below the points (m low_j, top_i(m)), so all are
inside the hull if m low_j >= D(top_i(m)) for all m, where D(q) is the d at which the hull's boundary reaches q. That is
low_j >= tau_i with tau_i = max_m D(top_i(m)) / m: one number a row. Rows j are visited in order of growing low_j, each
against the rows i with tau_i > low_j, until there are none.

That bound forgets which columns row j stores, which matters where popular states share their successors. So rows are
visited in groups: a group of rows d against a group of rows q, then against its members, then parts of the group, and
single rows only against what is left. A group has a row of its own that bounds its members: as q the largest entry of
each column, as d the smallest. What that leaves inside the hull no pair of members can bring out.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from scipy.sparse import csr_array

from tplrepro.leakage.envelope import kernels
from tplrepro.leakage.envelope.dense import NO_POINTS, tangent_point
from tplrepro.leakage.envelope.kernels import FEW, PENDING, ROOM, SIDE, SparseRows, Workspace
from tplrepro.progress import progress_bar

__all__ = ["best_pair", "group_rows", "joint_hull", "sparse_rows"]

GROUP = 64
# A part of a group: small where single pairs are dear, as for the hull, larger where they are cheap.
SMALL_PART, LARGE_PART = 8, 32


def joint_hull(probabilities, background: np.ndarray, progress: bool = False) -> np.ndarray:
    """The joint hull of all ordered pairs of rows of a csr_array (n, n) over `background` (n,)."""
    search = _Search(probabilities, background, SMALL_PART)
    points = NO_POINTS
    for j in search.order.tolist():  # the first row from which another differs upwards
        points = kernels.extend(j, search.order, search.rows, search.work[0], points)
        if points.size:
            break
    else:
        return points

    def reach(q):
        d, gap = np.vstack((points, np.zeros(5)))[::-1, :2].T
        return np.interp(q, d + gap, d) + np.maximum(q - (d[-1] + gap[-1]), 0.0)

    def visit(first, work):
        found = points
        for members, left in search.left_over(first, (kernels.edges(points), 0.0, 0.0), work):
            for j in members.tolist():
                found = kernels.extend(j, left, search.rows, work, found)
        return found

    with progress_bar(search.n, progress, "joint hull", "row") as bar:
        for results in search.rounds(reach, visit):
            found = np.concatenate(results)
            points = kernels.hull_in_order(found[np.argsort(found[:, 0], kind="stable")])
            bar.update(min(GROUP * len(results), search.n - bar.n))
            if kernels.is_diagonal(points):
                break
        bar.update(search.n - bar.n)
    return points


def best_pair(probabilities, background: np.ndarray, alpha: float) -> tuple[float, float, float]:
    """(d(S), gap(S), 1 - q(S)) of the pair and set that attain L(alpha), 0 < alpha <= 700; 0, 0, 1 if L = 0."""
    search = _Search(probabilities, background, LARGE_PART)
    rows, work = search.rows, search.work[0]
    inverse = 1.0 / np.expm1(alpha)
    no_hull = kernels.edges(NO_POINTS)
    for j in search.order.tolist():
        slope, i = kernels.steepen(j, search.order, rows, work, inverse, 0.0)
        if i >= 0:
            best = slope, i, j
            break
    else:
        return 0.0, 0.0, 1.0

    def reach(q):
        # For the half-plane above the tangent: there q > (1 + best) d + best inverse.
        return (q - best[0] * inverse) / (1.0 + best[0])

    def visit(first, work):
        found = best
        for members, left in search.left_over(first, (no_hull, inverse, best[0]), work):
            # Rows that store many columns come first, and each may find a steeper tangent, which leaves fewer pairs.
            step = SIDE if np.diff(rows.start)[members[0]] > FEW else members.size
            for some in np.split(members, range(step, members.size, step)):
                exceeds = kernels.exceeding(some, left, rows, work, inverse, found[0])
                for at in exceeds.any(axis=1).nonzero()[0]:
                    slope, i = kernels.steepen(some[at], left[exceeds[at]], rows, work, inverse, found[0])
                    if i >= 0:
                        found = slope, i, some[at]
        return found

    for results in search.rounds(reach, visit):
        best = max(results)
    _, i, j = best
    pair, _ = kernels.compress(i, rows, kernels.scatter(j, rows, work), work)
    return tangent_point(kernels.prefix_points(*pair), inverse)


def sparse_rows(matrix, background) -> SparseRows:
    """Each row's entries of a csr_array over its background (n,), in order of falling value."""
    start, value = matrix.indptr.astype(np.int64), matrix.data.astype(float)
    order = kernels.falling(start, value)
    return SparseRows(start, matrix.indices[order].astype(np.int64), value[order], np.array(background, dtype=float))


def group_rows(rows: SparseRows, order: np.ndarray, size: int, low: np.ndarray | None = None) -> SparseRows:
    """The bounds of groups of `size` rows, taken in `order`: entrywise largest, or smallest if `low`, that of each row,
    is given.
    """
    n, first = order.size, np.arange(0, order.size, size)
    matrix = csr_array((rows.value, rows.column, rows.start), shape=(n, n))[order]
    start = matrix.indptr[np.append(first, n)]
    # By columns, each group's entries of one column lie next to each other.
    columns = csr_array((matrix.data, matrix.indices, start), shape=(first.size, n)).tocsc()
    column = np.repeat(np.arange(n), np.diff(columns.indptr))
    run = np.flatnonzero(np.diff(column * first.size + columns.indices, prepend=-1))
    group = columns.indices[run]
    if low is None:
        background = np.maximum.reduceat(rows.background[order], first)
        bounds = np.maximum(np.maximum.reduceat(columns.data, run), background[group])
    else:
        background = np.minimum.reduceat(low[order], first)
        # Only columns that all of them store are known to be larger than the smallest entry.
        members = np.diff(np.append(first, n))
        bounds = np.minimum.reduceat(columns.data, run)
        whole = np.diff(np.append(run, column.size)) == members[group]
        run, group, bounds = run[whole], group[whole], bounds[whole]
    return sparse_rows(csr_array((bounds, (group, column[run])), shape=(first.size, n)), background)


def _workspace(n: int) -> Workspace:
    buffer = np.empty((2, 2 * n + 2))
    return Workspace(
        dense=np.full(n, -1.0),
        run_of=np.zeros(n, dtype=np.int64),
        run_value=np.empty(n + 1),
        run_size=np.empty(n + 1, dtype=np.int64),
        taken=np.zeros(n + 1, dtype=np.int64),
        buffer=buffer,
        pair=np.broadcast_to(buffer, buffer.shape),  # read-only
        pending=np.empty((PENDING, 3)),
    )


class _Search:
    """Which pairs of rows are worth a look: rows d in order of growing smallest entry, in groups; rows q in groups."""

    def __init__(self, probabilities, background, part: int):
        self.rows = sparse_rows(probabilities, background)
        self.n = background.size
        *self.top, low = kernels.sums_of_largest(self.rows)
        self.order = np.argsort(low, kind="stable")
        self.low = low[self.order]
        self.groups_d = group_rows(self.rows, self.order, GROUP, low)
        self.part = part
        self.parts_d = group_rows(self.rows, self.order, part, low)
        self.groups_q = group_rows(self.rows, self.order, GROUP)
        self.threads = kernels.thread_count(self.n, 2000)
        self.work = [_workspace(self.n) for _ in range(self.threads)]

    def rounds(self, reach, visit):
        """visit(first row, workspace) for every group of rows d, as many at a time as there are threads.

        Ends where tau, by `reach(q)`, the d at which the boundary reaches q, leaves no row q for the groups to come.
        """
        starts = range(0, self.n, GROUP)
        with ThreadPoolExecutor(self.threads) as pool:
            for r, at in enumerate(range(0, len(starts), self.threads)):
                if r < 16 or r % 16 == 0:  # they cost a pass over all entries, and old ones are only wider
                    top, size = self.top
                    tau = np.maximum.reduceat(reach(top) / size, self.rows.start[:-1] + np.arange(self.n))
                    tau = np.maximum(tau, 0.0)[self.order] * ROOM
                now = starts[at : at + self.threads]
                self.selected = tau > self.low[now[0]]
                if not self.selected.any():
                    return
                yield list(pool.map(visit, now, self.work)) if self.threads > 1 else [visit(now[0], self.work[0])]

    def left_over(self, first: int, test, work):
        """Parts of a group of rows d, each with the rows q that the bounds leave; `test`: `mattering`'s hull or
        tangent.
        """
        groups = np.flatnonzero(np.logical_or.reduceat(self.selected, range(0, self.n, GROUP)))
        groups = kernels.mattering(groups, self.groups_q, first // GROUP, self.groups_d, *test, work)
        selected = np.zeros(self.n, dtype=bool)
        for g in groups.tolist():
            selected[g * GROUP : (g + 1) * GROUP] = self.selected[g * GROUP : (g + 1) * GROUP]
        kept = kernels.mattering(self.order[selected], self.rows, first // GROUP, self.groups_d, *test, work)
        for part in range(first // self.part, -(-min(first + GROUP, self.n) // self.part)):
            left = kernels.mattering(kept, self.rows, part, self.parts_d, *test, work) if kept.size else kept
            if left.size:
                yield self.order[part * self.part : (part + 1) * self.part], left
