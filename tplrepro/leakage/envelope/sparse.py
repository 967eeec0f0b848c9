"""The joint hull, and one tangent to it, of a sparse matrix with a smoothing background, never made dense.

No pair needs a look of its own to be dismissed. Let low_j be the smallest entry of row j as d, and top_i(m) the sum of
the m largest entries of row i as q. Every point of the pair lies on or below the points (m low_j, top_i(m)), so all are
inside the hull if m low_j >= D(top_i(m)) for all m, where D(q) is the d at which the hull's boundary reaches q. That is
low_j >= tau_i with tau_i = max_m D(top_i(m)) / m: one number a row. Rows j are visited in order of growing low_j, each
against the rows i with tau_i > low_j, until there are none.

That bound forgets which columns row j stores, which matters where popular states share their successors. So rows are
visited in groups: a group of rows d against a group of rows q, then against its members, then parts of the group, and
single rows only against what is left. Each test is that of a pair, with the groups' bounds in place of the rows.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np

from tplrepro.leakage.envelope.compressed import ROOM, compress, gather, group_rows, scatter, sparse_rows, workspace
from tplrepro.leakage.envelope.hull import (
    TIE,
    Hull,
    add_pair,
    edges,
    is_diagonal,
    point_at,
    prefix_points,
    small_excess,
    sticks_out,
    upper_hull,
)
from tplrepro.progress import progress_bar

__all__ = ["best_pair", "joint_hull", "tops"]

GROUP = 64
# A part of a group: small where single pairs are dear, as for the hull, larger where they are cheap.
SMALL_PART, LARGE_PART = 8, 32
# Up to this many stored entries of row d, a pair is first tried at the cost of these.
FEW = 500


def joint_hull(probabilities, background: np.ndarray, progress: bool = False) -> Hull:
    """The joint hull of all ordered pairs of rows of a csr_array (n, n) over `background` (n,); K = 0 if all agree."""
    search = _Search(probabilities, background, SMALL_PART)
    rows = search.rows
    points, pairs = np.empty((0, 3)), np.empty((0, 2), dtype=np.int64)
    for j in search.order.tolist():  # the first row from which another differs upwards
        points, pairs = _extend(j, search.order, rows, search.work[0], points, pairs)
        if points.shape[0] > 0:
            break
    else:
        return Hull(*points.T, *pairs.T)

    def bounds():
        return _thresholds(rows.start, *search.top, points[::-1, 0].copy(), (points[::-1, 0] + points[::-1, 1]).copy())

    def visit(first, work):
        slopes, support = edges(points)
        found = points, pairs
        for members, left in search.left_over(first, (slopes, support, points[:, 0].copy(), 0.0, 0.0), work):
            for j in members.tolist():
                found = _extend(j, left, rows, work, *found)
        return found

    with progress_bar(search.n, progress, "joint hull", "row") as bar:
        for results in search.rounds(bounds, visit):
            points, pairs = upper_hull(*map(np.concatenate, zip(*results, strict=True)))
            bar.update(min(GROUP * len(results), search.n - bar.n))
            if is_diagonal(points):
                break
        bar.update(search.n - bar.n)
    return Hull(*np.ascontiguousarray(points.T), *np.ascontiguousarray(pairs.T))


def best_pair(probabilities, background: np.ndarray, alpha: float) -> tuple[float, float, float]:
    """(d(S), gap(S), 1 - q(S)) of the pair and set that attain L(alpha), 0 < alpha <= 700; 0, 0, 1 if L = 0."""
    search = _Search(probabilities, background, LARGE_PART)
    rows, work = search.rows, search.work[0]
    inverse = 1.0 / np.expm1(alpha)
    no_hull = np.zeros(1), np.zeros(1), np.zeros(0)
    for j in search.order.tolist():
        slope, i = _improve(j, search.order, rows, work, inverse, 0.0)
        if i >= 0:
            best = slope, i, j
            break
    else:
        return 0.0, 0.0, 1.0

    def bounds():
        return _tangent_thresholds(rows.start, *search.top, inverse, best[0])

    def visit(first, work):
        found = best
        for members, left in search.left_over(first, (*no_hull, inverse, best[0]), work):
            exceeds = _exceeding(members, left, rows, work, inverse, found[0])
            for j, candidates in zip(members.tolist(), exceeds, strict=True):
                slope, i = _improve(j, left[candidates], rows, work, inverse, found[0])
                if i >= 0:
                    found = slope, i, j
        return found

    for results in search.rounds(bounds, visit):
        best = max(results)
    _, i, j = best
    runs = scatter(j, *rows, work)
    used, _ = compress(i, *rows, runs, rows.start[j + 1] - rows.start[j], rows.background[j], work)
    points = prefix_points(work.buffer[0, :used], work.buffer[1, :used])
    at = int(np.argmax(points[:, 1] / (points[:, 0] + inverse)))
    return tuple(float(total) for total in points[at])


class _Search:
    """Which pairs of rows are worth a look: rows d in order of growing smallest entry, in groups; rows q in groups."""

    def __init__(self, probabilities, background, part: int):
        self.rows = sparse_rows(probabilities.indptr, probabilities.indices, probabilities.data, background)
        self.n = background.size
        *self.top, self.low = tops(self.rows.start, self.rows.value, self.rows.background)
        self.order = np.argsort(self.low, kind="stable")
        self.groups_d = group_rows(self.rows, self.order, GROUP, False, self.low)
        self.part = part
        self.parts_d = group_rows(self.rows, self.order, part, False, self.low)
        self.groups_q = group_rows(self.rows, self.order, GROUP, True, self.low)
        self.threads = 1 if self.n < 2000 else numba.config.NUMBA_NUM_THREADS
        self.work = [workspace(self.n) for _ in range(self.threads)]

    def rounds(self, bounds, visit):
        """visit(first row, workspace) for every group of rows d, as many at a time as there are threads.

        Ends where `bounds()`, the tau of every row, leaves no row q for the groups to come.
        """
        starts = range(0, self.n, GROUP)
        with ThreadPoolExecutor(self.threads) as pool:
            for r, at in enumerate(range(0, len(starts), self.threads)):
                if r < 16 or r % 16 == 0:  # they cost a pass over all entries, and old ones are only wider
                    tau = bounds() * ROOM
                now = starts[at : at + self.threads]
                self.selected = tau > self.low[self.order[now[0]]]
                if not self.selected.any():
                    return
                yield list(pool.map(visit, now, self.work)) if self.threads > 1 else [visit(now[0], self.work[0])]

    def left_over(self, first: int, test, work):
        """Parts of a group of rows d, each with the rows q that the bounds leave; `test` as in `_matters`."""
        kept = _filter_groups(
            first // GROUP, self.groups_d, self.groups_q, self.rows, self.order, self.selected, work, test
        )
        for part in range(first // self.part, -(-min(first + GROUP, self.n) // self.part)):
            left = _filter(part, kept, self.parts_d, self.rows, work, test) if kept.size else kept
            if left.size:
                yield self.order[part * self.part : (part + 1) * self.part], left


@numba.njit(cache=True, nogil=True, error_model="numpy")
def tops(start, value, background):
    """top_i(m) and m for the m that matter, row i's from start[i] + i on; and the smallest entry of each row."""
    n = start.size - 1
    top = np.empty(value.size + n)
    size = np.empty(value.size + n)
    low = np.empty(n)
    for i in range(n):
        b, missing = background[i], n - (start[i + 1] - start[i])
        total, count, at, placed = 0.0, 0.0, start[i] + i, missing == 0
        low[i] = b if missing else np.inf
        for k in range(start[i], start[i + 1]):
            if not placed and value[k] < b:
                total, count, placed = total + missing * b, count + missing, True
                top[at], size[at] = total, count
                at += 1
            total, count = total + value[k], count + 1.0
            top[at], size[at] = total, count
            low[i] = min(low[i], value[k])
            at += 1
        if not placed or missing == 0:
            top[at], size[at] = total + missing * b, count + missing
    return top, size, low


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _thresholds(start, top, size, hull_d, hull_q):
    """tau_i of each row: against rows with a larger smallest entry it cannot leave the hull (d, q; growing)."""
    n = start.size - 1
    last = hull_d.size - 1
    tau = np.zeros(n)
    for i in range(n):
        for k in range(start[i] + i, start[i + 1] + i + 1):
            q = top[k]
            at = np.searchsorted(hull_q, q)
            if at > last:
                d = hull_d[last] + (q - hull_q[last])  # beyond the largest gap the boundary rises with slope 1
            else:
                under_d, under_q = (hull_d[at - 1], hull_q[at - 1]) if at > 0 else (0.0, 0.0)
                d = under_d + (hull_d[at] - under_d) * (q - under_q) / (hull_q[at] - under_q)
            tau[i] = max(tau[i], d / size[k])
    return tau


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _tangent_thresholds(start, top, size, inverse, best):
    """tau_i for the half-plane above the tangent: there q > (1 + best) d + best inverse."""
    n = start.size - 1
    tau = np.zeros(n)
    for i in range(n):
        for k in range(start[i] + i, start[i + 1] + i + 1):
            tau[i] = max(tau[i], (top[k] - best * inverse) / ((1.0 + best) * size[k]))
    return tau


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _matters(used, far, work, test):
    """Whether the compressed pair leaves the hull, or, without a hull, exceeds the tangent."""
    slopes, support, hull_d, inverse, best = test
    buffer, pending = work[6], work[7]
    if hull_d.size:
        return sticks_out(buffer[:, :used], 0, 1, far, slopes, support, hull_d, pending)
    return _exceeds(used, buffer, inverse, best)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _exceeds(used, buffer, inverse, best):
    """Whether the compressed pair exceeds the tangent of slope `best` from (-inverse, 0)."""
    total = 0.0
    for c in range(used):
        total += small_excess(buffer[0, c], buffer[1, c], best)
    return total > best * inverse * (1.0 + TIE)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _filter_groups(group, groups_d, groups_q, rows, order, selected, work, test):
    """Rows q among the selected that may matter for some row d of the group."""
    candidates = np.empty(order.size, dtype=np.int64)
    size = 0
    stored, b = groups_d.start[group + 1] - groups_d.start[group], groups_d.background[group]
    runs = scatter(group, groups_d.start, groups_d.column, groups_d.value, groups_d.background, work)
    for g in range(groups_q.background.size):
        members = order[g * GROUP : (g + 1) * GROUP]
        if not selected[members].any():
            continue
        used, far = compress(
            g, groups_q.start, groups_q.column, groups_q.value, groups_q.background, runs, stored, b, work
        )
        if not _matters(used, far, work, test):
            continue
        for i in members:
            if selected[i]:
                candidates[size] = i
                size += 1
    kept = _mattering(candidates[:size], rows, runs, stored, b, work, test)
    gather(group, groups_d.start, groups_d.column, work)
    return kept


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _filter(part, candidates, parts_d, rows, work, test):
    """Candidates that may matter for some row d of the part."""
    stored, b = parts_d.start[part + 1] - parts_d.start[part], parts_d.background[part]
    runs = scatter(part, parts_d.start, parts_d.column, parts_d.value, parts_d.background, work)
    kept = _mattering(candidates, rows, runs, stored, b, work, test)
    gather(part, parts_d.start, parts_d.column, work)
    return kept


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _mattering(candidates, rows, runs, stored, b, work, test):
    """Candidates q that may matter for what is scattered: `stored` columns in `runs`, over the background b."""
    kept = np.empty(candidates.size, dtype=np.int64)
    size = 0
    for i in candidates:
        used, far = compress(i, rows.start, rows.column, rows.value, rows.background, runs, stored, b, work)
        if _matters(used, far, work, test):
            kept[size] = i
            size += 1
    return kept[:size]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _exceeding(members, candidates, rows, work, inverse, best):
    """Which rows q (columns) exceed the tangent with which rows d (rows): as `_exceeds`, but rounding counts as yes.

    So does a row d that stores many columns. Row q is spread out instead of row d, so that a pair costs as much as
    row d stores, which is little for most.
    """
    start, column, value, background = rows
    dense, stored, prefix = work[0], work[1], work[6][0]
    result = np.zeros((members.size, candidates.size), dtype=np.bool_)
    limit = best * inverse * (1.0 - 1e-12) - 1e-14
    for at in range(candidates.size):
        i = candidates[at]
        first, stop, b = start[i], start[i + 1], background[i]
        prefix[0] = 0.0
        for k in range(first, stop):
            dense[column[k]], stored[column[k]] = value[k], True
            prefix[k - first + 1] = prefix[k - first] + value[k]
        for m in range(members.size):
            j = members[m]
            if i == j:
                continue
            if start[j + 1] - start[j] > FEW:
                result[m, at] = True
                continue
            # What exceeds row j's background, then corrected where row j stores something.
            level = (1.0 + best) * background[j]
            low, high = first, stop
            while low < high:
                middle = (low + high) >> 1
                if value[middle] > level:
                    low = middle + 1
                else:
                    high = middle
            total = prefix[low - first] - (low - first) * level + (dense.size - (stop - first)) * max(b - level, 0.0)
            for k in range(start[j], start[j + 1]):
                q = dense[column[k]] if stored[column[k]] else b
                total += max(q - (1.0 + best) * value[k], 0.0) - max(q - level, 0.0)
            result[m, at] = total > limit
        for k in range(first, stop):
            stored[column[k]] = False
    return result


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _extend(j, candidates, rows, work, points, pairs):
    """Add to the hull what sticks out of it among the pairs (q = row i, d = row j), i in candidates."""
    buffer, pending = work[6], work[7]
    stored, b = rows.start[j + 1] - rows.start[j], rows.background[j]
    runs = scatter(j, rows.start, rows.column, rows.value, rows.background, work)
    slopes, support, hull_d = np.zeros(1), np.zeros(1), np.zeros(0)
    if points.shape[0] > 0:
        slopes, support = edges(points)
        hull_d = points[:, 0].copy()
    for i in candidates:
        if i == j:
            continue
        used, far = compress(i, rows.start, rows.column, rows.value, rows.background, runs, stored, b, work)
        if points.shape[0] > 0 and not sticks_out(buffer[:, :used], 0, 1, far, slopes, support, hull_d, pending):
            continue
        points, pairs = add_pair(points, pairs, buffer[0, :used], buffer[1, :used], i, j)
        if points.shape[0] == 0:
            continue
        slopes, support = edges(points)
        hull_d = points[:, 0].copy()
        if points[0, 0] == 0.0 and points[0, 2] == 0.0:
            break
    gather(j, rows.start, rows.column, work)
    return points, pairs


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _improve(j, candidates, rows, work, inverse, best):
    """The steepest tangent from (-inverse, 0) among the pairs with d = row j, if steeper than `best`; and its row i."""
    buffer = work[6]
    stored, b = rows.start[j + 1] - rows.start[j], rows.background[j]
    runs = scatter(j, rows.start, rows.column, rows.value, rows.background, work)
    best_i = -1
    for i in candidates:
        if i == j:
            continue
        used, _ = compress(i, rows.start, rows.column, rows.value, rows.background, runs, stored, b, work)
        while _exceeds(used, buffer, inverse, best):
            d_sum, gap_sum = point_at(buffer[:, :used], 0, 1, best)
            slope = gap_sum / (d_sum + inverse)
            if not slope > best * (1.0 + TIE):
                break
            best, best_i = slope, i
    gather(j, rows.start, rows.column, work)
    return best, best_i
