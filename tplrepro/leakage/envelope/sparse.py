"""The joint hull, and one tangent to it, of a sparse matrix with a smoothing background, never made
dense.

No pair needs a look of its own to be dismissed. Let low_j be the smallest entry of row j as d, and
top_i(m) the sum of the m largest entries of row i as q. Every point of the pair lies on or below
the points (m low_j, top_i(m)), so all are inside the hull if m low_j >= D(top_i(m)) for all m,
where D(q) is the d at which the hull's boundary reaches q. That is low_j >= tau_i with tau_i =
max_m D(top_i(m)) / m: one number a row. Rows j are visited in order of growing low_j, each against
the rows i with tau_i > low_j, until there are none.

That bound ignores which columns row j stores, which matters where popular states share their
successors. So the excess of each remaining pair is bounded at a few slopes (a screen, see `dense`;
for one tangent its own slope): the excess over low_j everywhere, known from sums of the largest
entries of row i, is reduced by row j's larger entries, beginning with the largest of row i, until
it is below the cap. Most pairs need few entries.

Rows j come in groups. A row q is first compared with the smallest entries of the whole group,
column by column; if that row does not bring q out of the hull, no member of the group does.

What the parts buy, as the time without one over the time with it: tau 12 to 17 for the whole
function of 23,496 Kosarak pages, 7 for one tangent; the chord in low_j (`fall` in `Bounds`) 2.0 to
3.8 and 1.5 to 6.5; groups 1.2 to 1.5 and 0.9 to 1.3, but 2.6 and 2.1 on sessions of the official
size, with 41,270 pages.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from tplrepro.leakage.envelope import compiled, hulls, screens, sparse_pairs
from tplrepro.leakage.envelope.dense import NO_POINTS, tangent_point
from tplrepro.validation import frozen

GROUP = 64
# Rows d that are tried against all rows q first, so that later groups meet a hull that is nearly
# the last.
SEEDS = 4
# Shares of the support to try in turn as caps, and the most slopes that they may take.
SHARES, SLOPES = (0.9999, 0.999, 0.99, 0.9), 64


class SparseRows(NamedTuple):
    """Row i: entries value[start[i]:start[i + 1]], falling, at `column`; else background[i]. low[i]
    is the smallest."""

    start: np.ndarray
    column: np.ndarray
    value: np.ndarray
    background: np.ndarray
    low: np.ndarray


class Workspace(NamedTuple):
    """Room for one row d spread out (its entries, the sums of its least entries, runs of equal
    ones) and for one pair.

    `dense` is -1 where the row stores nothing, and everywhere after `gather`; `pair` is `buffer`,
    read-only.
    """

    dense: np.ndarray
    sum_of_least: np.ndarray
    run_of: np.ndarray
    run_value: np.ndarray
    run_size: np.ndarray
    taken: np.ndarray
    buffer: np.ndarray
    pair: np.ndarray
    pending: np.ndarray


class Bounds(NamedTuple):
    """Candidates q, few slopes with a cap on the excess at each, and bounds on the excess.

    With a row d whose smallest entry is low + x, it is at most excess[c, e] - x fall[c, e].
    """

    candidates: np.ndarray
    low: float
    excess: np.ndarray
    fall: np.ndarray
    slope: np.ndarray
    cap: np.ndarray


def joint_hull(probabilities, background: np.ndarray, progress: bool = True) -> np.ndarray:
    """The joint hull of all ordered pairs of rows of a csr_array (n, n) over `background` (n,)."""
    search = _Search(probabilities, background)
    points = NO_POINTS
    for k, j in enumerate(search.first):
        points = sparse_pairs.extend(
            j, j + 1, search.unbounded, search.rows, search.work[0], points
        )
        if points.size and k + 1 >= SEEDS:
            break
    if not points.size:
        return points

    def reach(q):
        d, gap = np.vstack((points, np.zeros(5)))[::-1, :2].T
        return np.interp(q, d + gap, d) + np.maximum(q - (d[-1] + gap[-1]), 0.0)

    def visit(first, work):
        stop, bounds = search.left_over(first, *_caps(points), work)
        return sparse_pairs.extend(first, stop, bounds, search.rows, work, points)

    from tplrepro.progress import Bar

    with Bar(search.n, "joint hull", "row", progress) as bar:
        for results in search.rounds(reach, visit):
            found = np.concatenate(results)
            points = hulls.hull_in_order(found[np.argsort(found[:, 0], kind="stable")])
            bar.update(min(GROUP * len(results), search.n - bar.n))
            if hulls.is_diagonal(points):
                break
        bar.update(search.n - bar.n)
    points[:, 3:] = search.order[points[:, 3:].astype(int)]
    return points


def best_pair(probabilities, background: np.ndarray, alpha: float) -> tuple[float, float, float]:
    """(d(S), gap(S), 1 - q(S)) of the pair and set that attain L(alpha), 0 < alpha <= 700; 0, 0, 1
    if L = 0."""
    search = _Search(probabilities, background)
    rows, work = search.rows, search.work[0]
    inverse = 1.0 / np.expm1(alpha)
    best = 0.0, -1, -1
    for k, j in enumerate(search.first):
        best = max(
            best, sparse_pairs.steepen(j, j + 1, search.unbounded, rows, work, inverse, best[0])
        )
        if best[0] > 0.0 and k + 1 >= SEEDS:
            break
    if best[0] == 0.0:
        return 0.0, 0.0, 1.0

    def reach(q):
        # For the half-plane above the tangent: there q > (1 + best) d + best inverse.
        return (q - best[0] * inverse) / (1.0 + best[0])

    def visit(first, work):
        slope = np.array([best[0]])
        stop, bounds = search.left_over(first, slope, slope * inverse, work)
        return max(
            best, sparse_pairs.steepen(first, stop, bounds, search.rows, work, inverse, best[0])
        )

    for results in search.rounds(reach, visit):
        best = max(results)
    _, i, j = best
    pair, _ = sparse_pairs.compress(i, rows, sparse_pairs.scatter(j, rows, work), work)
    return tangent_point(hulls.prefix_points(*pair), inverse)


def may_exceed(
    bounds: Bounds, rows: SparseRows, j: int, rows_d: SparseRows, work: Workspace
) -> np.ndarray:
    """Numbers of the candidates q that may exceed the caps with row j of `rows_d`."""
    sparse_pairs.scatter(j, rows_d, work)
    found = sparse_pairs.may_exceed(bounds, rows, j, rows_d, work)
    sparse_pairs.gather(j, rows_d, work)
    return found


def _caps(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Few slopes, the hull's last with cap 0 among them, and caps on the excess there that keep a
    pair inside it."""
    hull = hulls.edges(points)
    slopes, support = hull[hulls.SLOPE], hull[hulls.SUPPORT]
    edge = np.arange(slopes.size - 1)
    for share in SHARES:
        caps = share * support[:-1]
        chosen = screens.fewest_caps(slopes[:-1], caps, edge, slopes[-1], hull, SLOPES)
        if chosen.size:
            return np.append(slopes[chosen], slopes[-1]), np.append(caps[chosen], 0.0)
    return np.empty(0), np.empty(0)


def sparse_rows(matrix, background: np.ndarray, low: np.ndarray) -> SparseRows:
    """Each row's entries of a csr_array over its background (n,), in order of falling value; `low`:
    the smallest."""
    start, value = matrix.indptr.astype(np.int64), matrix.data.astype(float)
    order = np.lexsort((-value, np.repeat(np.arange(start.size - 1), np.diff(start))))
    # A copy, because arrays of an unpickled matrix are not read-only, for which kernels would be
    # compiled again.
    return SparseRows(
        start, matrix.indices[order].astype(np.int64), value[order], frozen(background), low
    )


def lowest(matrix, background: np.ndarray) -> np.ndarray:
    """The smallest entry of each row of a csr_array over its background (n,)."""
    stored = np.diff(matrix.indptr)
    low = np.where(stored < matrix.shape[1], background, 1.0)
    some = stored > 0
    low[some] = np.minimum(low[some], np.minimum.reduceat(matrix.data, matrix.indptr[:-1][some]))
    return low


def group_rows(matrix, low: np.ndarray, size: int) -> SparseRows:
    """The entrywise smallest of each `size` rows of a csr_array (n, n); `low`: the smallest entry
    of each row."""
    n, first = low.size, np.arange(0, low.size, size)
    # By columns, each group's entries of one column lie next to each other.
    shape = first.size, n
    columns = csr_array(
        (matrix.data, matrix.indices, matrix.indptr[np.append(first, n)]), shape=shape
    ).tocsc()
    column = np.repeat(np.arange(n), np.diff(columns.indptr))
    run = np.flatnonzero(np.diff(column * first.size + columns.indices, prepend=-1))
    # Only columns that all of them store are known to be larger than the smallest entry.
    members = np.diff(np.append(first, n))
    whole = np.diff(np.append(run, column.size)) == members[columns.indices[run]]
    least = np.minimum.reduceat(columns.data, run)[whole]
    place = columns.indices[run[whole]], column[run[whole]]
    of_groups = np.minimum.reduceat(low, first)
    return sparse_rows(csr_array((least, place), shape=shape), of_groups, of_groups)


def _workspace(n: int) -> Workspace:
    buffer = np.empty((2, 2 * n + 2))
    return Workspace(
        dense=np.full(n, -1.0),
        sum_of_least=np.zeros(n + 1),
        run_of=np.zeros(n, dtype=np.int64),
        run_value=np.empty(n + 1),
        run_size=np.empty(n + 1, dtype=np.int64),
        taken=np.zeros(n + 1, dtype=np.int64),
        buffer=buffer,
        pair=np.broadcast_to(buffer, buffer.shape),  # read-only
        pending=np.empty((hulls.PENDING, 3)),
    )


class _Search:
    """Which pairs of rows are worth a look: rows, kept by growing smallest entry, as d in
    groups."""

    def __init__(self, probabilities, background):
        self.n = background.size
        low = lowest(probabilities, background)
        self.order = np.argsort(low, kind="stable")
        matrix, self.low = probabilities[self.order], low[self.order]
        self.rows = sparse_rows(matrix, background[self.order], self.low)
        self.top = sparse_pairs.sums_of_largest(self.rows)
        self.groups = group_rows(matrix, self.low, GROUP)
        spread = np.geomspace(1, self.n, SEEDS).astype(int) - 1
        self.first = dict.fromkeys([*spread.tolist(), *range(self.n)])  # until two rows differ
        none, no_bounds = np.empty(0), np.empty((self.n, 0))
        self.unbounded = Bounds(np.arange(self.n), 0.0, no_bounds, no_bounds, none, none)
        self.threads = compiled.thread_count(self.n, 2000)
        self.work = [_workspace(self.n) for _ in range(self.threads)]

    def rounds(self, reach, visit):
        """visit(first row, workspace) for every group of rows d, as many at a time as there are
        threads.

        Ends where tau, by `reach(q)`, the d at which the boundary reaches q, leaves no row q for
        the groups to come.
        """
        starts = range(0, self.n, GROUP)
        with ThreadPoolExecutor(self.threads) as pool:
            for r, at in enumerate(range(0, len(starts), self.threads)):
                # they cost a pass over all entries, and old ones are only wider
                if r < 16 or r % 16 == 0:
                    top, size = self.top
                    tau = np.maximum.reduceat(
                        reach(top) / size, self.rows.start[:-1] + np.arange(self.n)
                    )
                    tau = np.maximum(tau, 0.0) * sparse_pairs.ROOM
                now = starts[at : at + self.threads]
                self.selected = np.flatnonzero(tau > self.low[now[0]])
                if not self.selected.size:
                    return
                yield (
                    list(pool.map(visit, now, self.work))
                    if self.threads > 1
                    else [visit(now[0], self.work[0])]
                )

    def left_over(self, first: int, slopes, caps, work):
        """Where a group of rows d ends, and the rows q that may exceed the caps with the row that
        bounds the group."""
        stop = min(first + GROUP, self.n)
        low, high = self.low[first], self.low[stop - 1]
        excess = sparse_pairs.excess_over(low, self.selected, self.rows, *self.top, slopes)
        bounds = Bounds(self.selected, low, excess, np.zeros_like(excess), slopes, caps)
        left = may_exceed(bounds, self.rows, first // GROUP, self.groups, work)
        candidates, excess = self.selected[left], excess[left]
        at_high = sparse_pairs.excess_over(high, candidates, self.rows, *self.top, slopes)
        # on the chord: the excess is convex in low
        fall = (excess - at_high) / max(high - low, 1e-300)
        return stop, Bounds(candidates, low, excess, fall, slopes, caps)
