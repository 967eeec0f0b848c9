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

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from tplrepro.leakage.envelope import compiled, hulls, screens, sparse_pairs
from tplrepro.leakage.envelope.dense import NO_POINTS, Tangent, steepest_vertex
from tplrepro.leakage.vertex import Vertex
from tplrepro.validation import frozen

GROUP = 64
# Rows d that are tried against all rows q first, so that later groups meet a hull that is nearly
# the last.
SEEDS = 4
# Shares of the support to try in turn as caps.
SHARES = (0.9999, 0.999, 0.99, 0.9)
# The most slopes that they may take.
SLOPES = 64


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
    slopes: np.ndarray
    caps: np.ndarray


def joint_hull(
    probabilities: csr_array, background: np.ndarray, progress: bool = True
) -> np.ndarray:
    """The joint hull (K, 5) of all ordered pairs of rows of a sparse matrix.

    Parameters
    ----------
    probabilities : csr_array (n, n), what rows hold where they store something
    background : array (n,), what each row holds elsewhere
    progress : bool, show a progress bar if it takes more than two seconds
    """
    search = _HullSearch(probabilities, background)
    if not search.points.size:
        return search.points
    from tplrepro.progress import Bar

    with Bar(search.n, "joint hull", "row", progress) as bar:
        for results in search.visit_in_rounds():
            found = np.concatenate(results)
            d = found[:, 0]
            by_d = np.argsort(d, kind="stable")
            sorted_points = found[by_d]
            search.points = hulls.hull_in_order(sorted_points)
            left = search.n - bar.n
            visited = min(GROUP * len(results), left)
            bar.update(visited)
            if hulls.is_diagonal(search.points):
                break
        left = search.n - bar.n
        bar.update(left)
    points = search.points
    in_order = points[:, 3:].astype(int)
    as_given = search.order[in_order]
    points[:, 3:] = as_given
    return points


def best_vertex(probabilities: csr_array, background: np.ndarray, alpha: float) -> Vertex:
    """The vertex that attains L(alpha).

    Parameters
    ----------
    probabilities : csr_array (n, n), what rows hold where they store something
    background : array (n,), what each row holds elsewhere
    alpha : float, 0 < alpha <= 700, nats

    Returns
    -------
    Vertex, with d = gap = 0 if L = 0
    """
    u = np.expm1(alpha)
    inverse = 1.0 / u
    search = _TangentSearch(probabilities, background, inverse)
    if search.best.slope == 0.0:
        return Vertex(d=0.0, gap=0.0, rest=1.0)
    for results in search.visit_in_rounds():
        search.best = max(results)
    rows = search.rows
    work = search.work[0]
    _, i, j = search.best
    scattered = sparse_pairs.scatter_row(j, rows, work)
    pair, _ = sparse_pairs.compress_pair(i, rows, scattered, work)
    points = hulls.prefix_points(*pair)
    return steepest_vertex(points, inverse)


def may_exceed(
    bounds: Bounds, rows: SparseRows, j: int, rows_d: SparseRows, work: Workspace
) -> np.ndarray:
    """Places in `bounds.candidates` of the rows q that may exceed the caps with one row d.

    Parameters
    ----------
    bounds : Bounds of the candidates
    rows : SparseRows of which the candidates are numbers
    j : int, the number of row d among `rows_d`
    rows_d : SparseRows
    work : Workspace
    """
    sparse_pairs.scatter_row(j, rows_d, work)
    found = sparse_pairs.may_exceed(bounds, rows, j, rows_d, work)
    sparse_pairs.gather_row(j, rows_d, work)
    return found


def _choose_caps(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Few slopes, the hull's last with cap 0 among them, and caps on the excess there that keep a
    pair inside it."""
    hull = hulls.edges_of_hull(points)
    all_slopes = hull[hulls.SLOPE]
    slopes = all_slopes[:-1]
    last_slope = all_slopes[-1]
    support = hull[hulls.SUPPORT, :-1]
    edge = np.arange(slopes.size)
    for share in SHARES:
        caps = share * support
        chosen = screens.fewest_caps(slopes, caps, edge, last_slope, hull, SLOPES)
        if chosen.size:
            chosen_slopes = np.append(slopes[chosen], last_slope)
            chosen_caps = np.append(caps[chosen], 0.0)
            return chosen_slopes, chosen_caps
    return np.empty(0), np.empty(0)


def sparse_rows(matrix: csr_array, background: np.ndarray, low: np.ndarray) -> SparseRows:
    """Each row's entries of a csr_array, in order of falling value.

    Parameters
    ----------
    matrix : csr_array (n, m)
    background, low : array (n,), what each row holds elsewhere, and its smallest entry
    """
    start = matrix.indptr.astype(np.int64)
    value = matrix.data.astype(float)
    rows = np.arange(start.size - 1)
    stored = np.diff(start)
    row_of_entry = np.repeat(rows, stored)
    order = np.lexsort((-value, row_of_entry))
    column = matrix.indices[order].astype(np.int64)
    # A copy, because arrays of an unpickled matrix are not read-only, for which kernels would be
    # compiled again.
    background = frozen(background)
    return SparseRows(
        start=start, column=column, value=value[order], background=background, low=low
    )


def smallest_entries(matrix, background: np.ndarray) -> np.ndarray:
    """The smallest entry of each row, (n,), of a csr_array over its background (n,), which is in
    each place where it stores nothing."""
    n_columns = matrix.shape[1]
    row_starts = matrix.indptr[:-1]
    stored = np.diff(matrix.indptr)
    has_background = stored < n_columns
    low = np.where(has_background, background, 1.0)
    has_entries = stored > 0
    starts = row_starts[has_entries]
    least_stored = np.minimum.reduceat(matrix.data, starts)
    low[has_entries] = np.minimum(low[has_entries], least_stored)
    return low


def group_rows(matrix, low: np.ndarray, size: int) -> SparseRows:
    """The entrywise smallest of each group of rows.

    Parameters
    ----------
    matrix : csr_array (n, n)
    low : array (n,), the smallest entry of each row
    size : int, how many successive rows are a group
    """
    n = low.size
    first = np.arange(0, n, size)
    n_groups = first.size
    shape = n_groups, n
    bounds = np.append(first, n)
    # By columns, each group's entries of one column lie next to each other.
    group_starts = matrix.indptr[bounds]
    rows_of_groups = matrix.data, matrix.indices, group_starts
    columns = csr_array(rows_of_groups, shape=shape).tocsc()
    group = columns.indices
    stored = np.diff(columns.indptr)
    column = np.repeat(np.arange(n), stored)
    cell = column * n_groups + group
    is_new_cell = np.diff(cell, prepend=-1) != 0
    run = np.flatnonzero(is_new_cell)
    run_bounds = np.append(run, cell.size)
    length = np.diff(run_bounds)
    # Only columns that all of them store are known to be larger than the smallest entry.
    members = np.diff(bounds)
    group_of_runs = group[run]
    is_stored_by_all = length == members[group_of_runs]
    least_of_runs = np.minimum.reduceat(columns.data, run)
    least = least_of_runs[is_stored_by_all]
    common = run[is_stored_by_all]
    place = (group[common], column[common])
    least_entries = csr_array((least, place), shape=shape)
    low_of_groups = np.minimum.reduceat(low, first)
    return sparse_rows(least_entries, low_of_groups, low_of_groups)


def _make_workspace(n: int) -> Workspace:
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

    def __init__(self, probabilities: csr_array, background: np.ndarray):
        self.n = background.size
        low = smallest_entries(probabilities, background)
        order = np.argsort(low, kind="stable")
        matrix = probabilities[order]
        self.order = order
        self.low = low[order]
        self.rows = sparse_rows(matrix, background[order], self.low)
        self.top = sparse_pairs.sums_of_largest(self.rows)
        self.groups = group_rows(matrix, self.low, GROUP)
        self.threads = compiled.thread_count(self.n, 2000)
        self.work = [_make_workspace(self.n) for _ in range(self.threads)]

    def first_rows(self) -> Iterable[int]:
        """Rows d in the order in which they are tried until two rows differ, a few of them spread
        over all."""
        numbers = np.geomspace(1, self.n, SEEDS).astype(int)
        spread = numbers - 1
        all_rows = range(self.n)
        return dict.fromkeys([*spread.tolist(), *all_rows])

    def no_bounds(self) -> Bounds:
        """All rows as candidates, without a slope that could dismiss one."""
        no_slopes = np.empty(0)
        no_excess = np.empty((self.n, 0))
        return Bounds(
            candidates=np.arange(self.n),
            low=0.0,
            excess=no_excess,
            fall=no_excess,
            slopes=no_slopes,
            caps=no_slopes,
        )

    def d_on_boundary(self, q: np.ndarray) -> np.ndarray:
        """The d at which the boundary of what was found so far reaches q."""
        raise NotImplementedError

    def visit_group(self, first: int, work: Workspace) -> Any:
        """What the group of rows d from `first` on adds to what was found so far."""
        raise NotImplementedError

    def visit_in_rounds(self) -> Iterator[list]:
        """`visit_group` of every group of rows d, as many at a time as there are threads.

        Ends where tau leaves no row q for the groups to come.
        """
        starts = range(0, self.n, GROUP)
        n_groups = len(starts)
        first_of_rounds = range(0, n_groups, self.threads)
        with ThreadPoolExecutor(self.threads) as pool:
            for number, at in enumerate(first_of_rounds):
                # they cost a pass over all entries, and old ones are only wider
                if number < 16 or number % 16 == 0:
                    tau = self._compute_tau()
                now = starts[at : at + self.threads]
                first = now[0]
                least = self.low[first]
                may_be_outside = tau > least
                self.selected = np.flatnonzero(may_be_outside)
                if not self.selected.size:
                    return
                if self.threads > 1:
                    results = pool.map(self.visit_group, now, self.work)
                    yield list(results)
                else:
                    result = self.visit_group(first, self.work[0])
                    yield [result]

    def _compute_tau(self) -> np.ndarray:
        """The smallest entry from which on no row d brings row q = i out of the hull, (n,)."""
        top, size = self.top
        numbers = np.arange(self.n)
        row_starts = self.rows.start[:-1] + numbers
        reached = self.d_on_boundary(top)
        per_column = reached / size
        tau = np.maximum.reduceat(per_column, row_starts)
        tau = np.maximum(tau, 0.0)
        return tau * sparse_pairs.ROOM

    def left_over(
        self, first: int, slopes: np.ndarray, caps: np.ndarray, work: Workspace
    ) -> tuple[int, Bounds]:
        """Where the group of rows d from `first` on ends, and the `Bounds` of the rows q whose
        excess over the row that bounds the group may exceed `caps` (S,) at `slopes` (S,)."""
        stop = min(first + GROUP, self.n)
        group = first // GROUP
        low = self.low[first]
        high = self.low[stop - 1]
        rows = self.rows
        top, size = self.top
        excess = sparse_pairs.excess_over(low, self.selected, rows, top, size, slopes)
        no_fall = np.zeros_like(excess)
        bounds = Bounds(self.selected, low, excess, no_fall, slopes, caps)
        left = may_exceed(bounds, rows, group, self.groups, work)
        candidates = self.selected[left]
        excess = excess[left]
        at_high = sparse_pairs.excess_over(high, candidates, rows, top, size, slopes)
        # on the chord: the excess is convex in low
        distance = max(high - low, 1e-300)
        fall = (excess - at_high) / distance
        return stop, Bounds(candidates, low, excess, fall, slopes, caps)


class _HullSearch(_Search):
    """The joint hull so far, `points` (K, 5), whose rows are numbered as in `rows`."""

    def __init__(self, probabilities: csr_array, background: np.ndarray):
        super().__init__(probabilities, background)
        self.points = NO_POINTS
        bounds = self.no_bounds()
        for k, j in enumerate(self.first_rows()):
            self.points = sparse_pairs.extend_hull(
                j, j + 1, bounds, self.rows, self.work[0], self.points
            )
            if self.points.size and k + 1 >= SEEDS:
                break

    def d_on_boundary(self, q: np.ndarray) -> np.ndarray:
        origin = np.zeros(5)
        points = np.vstack((self.points, origin))[::-1]
        d = points[:, 0]
        gap = points[:, 1]
        q_of_points = d + gap
        largest_q = q_of_points[-1]
        beyond = np.maximum(q - largest_q, 0.0)
        return np.interp(q, q_of_points, d) + beyond

    def visit_group(self, first: int, work: Workspace) -> np.ndarray:
        slopes, caps = _choose_caps(self.points)
        stop, bounds = self.left_over(first, slopes, caps, work)
        return sparse_pairs.extend_hull(first, stop, bounds, self.rows, work, self.points)


class _TangentSearch(_Search):
    """The steepest tangent so far, `best`, from (-inverse, 0)."""

    def __init__(self, probabilities: csr_array, background: np.ndarray, inverse: float):
        super().__init__(probabilities, background)
        self.inverse = inverse
        self.best = Tangent(0.0, -1, -1)
        bounds = self.no_bounds()
        for k, j in enumerate(self.first_rows()):
            self.best = self._steepen(j, j + 1, bounds, self.work[0])
            if self.best.slope > 0.0 and k + 1 >= SEEDS:
                break

    def _steepen(self, first: int, stop: int, bounds: Bounds, work: Workspace) -> Tangent:
        """The steepest tangent to a pair of a candidate and a row d of first..stop, if steeper than
        the best so far; else that."""
        best = self.best
        slope, i, j = sparse_pairs.steepen_tangent(
            first, stop, bounds, self.rows, work, self.inverse, best.slope
        )
        tangent = Tangent(slope, i, j)
        return max(best, tangent)

    def d_on_boundary(self, q: np.ndarray) -> np.ndarray:
        # For the half-plane above the tangent: there q > (1 + best) d + best inverse.
        slope = self.best.slope
        at_zero = slope * self.inverse  # the q of the boundary for d = 0
        beyond = q - at_zero
        return beyond / (1.0 + slope)

    def visit_group(self, first: int, work: Workspace) -> Tangent:
        slopes = np.array([self.best.slope])
        caps = slopes * self.inverse
        stop, bounds = self.left_over(first, slopes, caps, work)
        return self._steepen(first, stop, bounds, work)
