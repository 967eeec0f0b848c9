"""The joint hull of all pairs of rows, which is the whole privacy loss function (Eq. (24) of [1]).

With u = e^alpha - 1, two rows q and d and a set S of columns, the objective of Eq. (24) is

    (q(S) u + 1) / (d(S) u + 1) = 1 + mu,    mu = gap(S) / (d(S) + 1/u),    gap(S) = q(S) - d(S),

so mu is the slope of the line from (-1/u, 0) to the point (d(S), gap(S)). The maximum over all pairs and sets is the
tangent from (-1/u, 0) to the upper hull of all these points: as alpha runs from 0 to infinity it touches the hull's
vertices one after the other, from the largest gap to the largest gap(S)/d(S). Working with gaps instead of q(S) keeps
full relative accuracy for small alpha and for rows that nearly agree.

A pair is inside the hull exactly if its excess s(mu) = sum_j max(q_j - d_j - mu d_j, 0) stays under the hull's support
function h at every edge slope of the hull. Both are convex, and h is linear between edge slopes, so the chord of s
between two slopes settles everything between them unless it crosses h; a handful of passes over the columns settle a
pair. Only a pair that sticks out is sorted (its points are prefix sums in order of falling q_j/d_j, Theorem 8 of [1]).

This is the only module that uses Numba. Kernels release the GIL; blocks of rows run on a thread pool.

References
----------
[1] Cao, Yoshikawa, Xiao, Xiong: Quantifying Differential Privacy in Continuous Data Release under Temporal
    Correlations. IEEE TKDE, 2019.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numba
import numpy as np

__all__ = ["Hull", "best_pair", "joint_hull", "excess"]

# Slopes are finite: a vertex with d(S) = 0 is tangent at every slope, and 1e300 stands for "beyond every ratio".
STEEPEST = 1e300
# A point counts as outside the hull if it exceeds it by this fraction of its own gap; the loss is then off by at most
# as much, and pairs that tie in exact arithmetic are not sorted again and again.
TIE = 1e-15
BLOCK = 64
# Inputs are finite, so sums may be reordered and vectorised; compensated sums below are compiled without this.
FAST = {"nnan", "ninf", "nsz", "reassoc", "contract", "arcp"}


class Hull(NamedTuple):
    """Vertices in order of growing alpha (falling d); `d`, `gap`, `rest` are d(S), q(S) - d(S) and 1 - q(S)."""

    d: np.ndarray
    gap: np.ndarray
    rest: np.ndarray
    row_q: np.ndarray
    row_d: np.ndarray


@numba.njit(fastmath=FAST, nogil=True, cache=True, error_model="numpy")
def excess(rows, i, j, mu):
    """s(mu) = sum_k max(q_k - (1 + mu) d_k, 0) for q = rows[i], d = rows[j].

    Below mu = 1/2 the difference is taken first, to keep its digits. Rows are indexed, not sliced: making a slice costs
    as much as a pass over 200 columns.
    """
    total = 0.0
    if mu < 0.5:
        for k in range(rows.shape[1]):
            total += max((rows[i, k] - rows[j, k]) - mu * rows[j, k], 0.0)
    else:
        slope = 1.0 + mu
        for k in range(rows.shape[1]):
            total += max(rows[i, k] - slope * rows[j, k], 0.0)
    return total


@numba.njit(nogil=True, cache=True, error_model="numpy")
def point_at(rows, i, j, mu):
    """The pair's own vertex (d(S), gap(S)) in direction mu, by compensated sums."""
    d_sum = d_low = gap_sum = gap_low = 0.0
    for k in range(rows.shape[1]):
        gap = rows[i, k] - rows[j, k]
        if gap > mu * rows[j, k]:
            y = rows[j, k] - d_low
            t = d_sum + y
            d_low = (t - d_sum) - y
            d_sum = t
            y = gap - gap_low
            t = gap_sum + y
            gap_low = (t - gap_sum) - y
            gap_sum = t
    return d_sum, gap_sum


@numba.njit(nogil=True, cache=True, error_model="numpy")
def sticks_out(rows, i, j, far, slopes, support, hull_d, pending):
    """Whether the points of q = rows[i], d = rows[j] leave the hull given by its edge slopes, the support there and the
    vertices' d. `far` is a slope from which on the excess is 0; `pending` is room for intervals still to be settled.
    """
    last = slopes.size - 1
    # An interval of slopes from edge a to edge b (b may lie beyond `far`), with the excess at both ends.
    a, mu_a, s_a = 0, 0.0, excess(rows, i, j, 0.0)
    if s_a > support[0] * (1.0 + TIE) and outside(rows, i, j, 0.0, support[0]):
        return True
    b, mu_b, s_b = last, far, 0.0
    if far >= slopes[last]:
        mu_b = slopes[last]
        s_b = excess(rows, i, j, mu_b)
        if s_b > support[last] and outside(rows, i, j, mu_b, support[last]):
            return True
    size = 0
    while True:
        fall = (s_a - s_b) / (mu_b - mu_a)
        # h less the chord is convex: smallest at the first edge whose vertex has d <= the chord's fall.
        low, half = a + 1, b - a - 1
        while half > 0:
            step = (half + 1) >> 1
            low += step if hull_d[low + step - 1] > fall else 0
            half -= step
        mu = slopes[low]
        if low < b and mu < mu_b and s_a - fall * (mu - mu_a) > support[low] * (1.0 + TIE):
            s = excess(rows, i, j, mu)
            if s > support[low] * (1.0 + TIE) and outside(rows, i, j, mu, support[low]):
                return True
            if size == pending.shape[0]:
                return True  # no room left; sorting the pair settles it as well
            pending[size, 0], pending[size, 1], pending[size, 2] = b, mu_b, s_b
            size += 1
            b, mu_b, s_b = low, mu, s
        elif size == 0:
            return False
        else:
            size -= 1
            a, mu_a, s_a = b, mu_b, s_b
            b, mu_b, s_b = int(pending[size, 0]), pending[size, 1], pending[size, 2]
    return False


@numba.njit(nogil=True, cache=True, error_model="numpy")
def outside(rows, i, j, mu, support):
    """The accurate form of s(mu) > h(mu), asked only where the fast sum says so."""
    d_sum, gap_sum = point_at(rows, i, j, mu)
    return gap_sum - mu * d_sum > support + TIE * gap_sum


@numba.njit(nogil=True, cache=True, error_model="numpy")
def find_outside(rows, far, slopes, support, hull_d, first, stop, tile, found):
    """Mark in found[j - first, i] the pairs (q = row i, d = row j), first <= j < stop, that stick out of the hull."""
    n = rows.shape[0]
    pending = np.empty((64, 3))
    for start in range(0, n, tile):
        for j in range(first, stop):
            for i in range(start, min(start + tile, n)):
                if i != j:
                    found[j - first, i] = sticks_out(rows, i, j, far[j], slopes, support, hull_d, pending)


@numba.njit(nogil=True, cache=True, error_model="numpy")
def prefix_points(q, d):
    """All vertices of one pair: columns with q_j > d_j in order of falling q_j/d_j, summed with compensation."""
    gap = q - d
    chosen = np.flatnonzero(gap > 0.0)
    order = chosen[np.argsort(d[chosen] / gap[chosen], kind="mergesort")]
    m = order.size
    points = np.empty((m, 3))
    d_sum = d_low = gap_sum = gap_low = 0.0
    for k in range(m):
        j = order[k]
        y = d[j] - d_low
        t = d_sum + y
        d_low = (t - d_sum) - y
        d_sum = t
        y = gap[j] - gap_low
        t = gap_sum + y
        gap_low = (t - gap_sum) - y
        gap_sum = t
        points[k, 0] = d_sum
        points[k, 1] = gap_sum
    rest = rest_low = 0.0
    for j in range(q.size):
        if not gap[j] > 0.0:
            y = q[j] - rest_low
            t = rest + y
            rest_low = (t - rest) - y
            rest = t
    for k in range(m - 1, -1, -1):
        points[k, 2] = rest
        y = q[order[k]] - rest_low
        t = rest + y
        rest_low = (t - rest) - y
        rest = t
    return points


@numba.njit(nogil=True, cache=True, error_model="numpy")
def upper_hull(points, rows):
    """The vertices, from the largest gap to the largest gap/d, of points (m, 3) with their pairs of rows (m, 2).

    A point that exceeds the chord of its neighbours by less than the fraction TIE of its gap is left out.
    """
    order = np.argsort(points[:, 0], kind="mergesort")
    stack = np.empty(order.size, dtype=np.int64)
    size = 0
    for k in order:
        d, gap = points[k, 0], points[k, 1]
        if gap <= 0.0 or (size > 0 and gap <= points[stack[size - 1], 1] * (1.0 + TIE)):
            continue
        while size > 0:
            top_d, top_gap = points[stack[size - 1], 0], points[stack[size - 1], 1]
            # Under the first vertex lies the origin (S empty).
            under_d = points[stack[size - 2], 0] if size > 1 else 0.0
            under_gap = points[stack[size - 2], 1] if size > 1 else 0.0
            if d > top_d:
                share = (top_d - under_d) / (d - under_d)
                if top_gap * (1.0 - TIE) > under_gap + share * (gap - under_gap):
                    break
            size -= 1
        stack[size] = k
        size += 1
    kept = stack[:size][::-1].copy()
    return points[kept], rows[kept]


@numba.njit(nogil=True, cache=True, error_model="numpy")
def edges(points):
    """Edge slopes (0 first, the tangent through the origin last) and the support function there."""
    k = points.shape[0]
    slopes = np.empty(k + 1)
    support = np.empty(k + 1)
    slopes[0], support[0] = 0.0, points[0, 1]
    for e in range(1, k + 1):
        d, gap = points[e - 1, 0], points[e - 1, 1]
        next_d, next_gap = (points[e, 0], points[e, 1]) if e < k else (0.0, 0.0)
        slope = STEEPEST
        if d - next_d > (gap - next_gap) / STEEPEST:
            slope = (gap - next_gap) / (d - next_d)
        slopes[e] = slope
        support[e] = max(gap - slope * d, next_gap - slope * next_d)
    return slopes, support


@numba.njit(nogil=True, cache=True, error_model="numpy")
def grow(points, pairs, rows, candidates, far):
    """Add to the hull every candidate pair (i, j) that still sticks out of it."""
    slopes, support = edges(points)
    hull_d = points[:, 0].copy()
    pending = np.empty((64, 3))
    for c in range(candidates.shape[0]):
        i, j = candidates[c, 0], candidates[c, 1]
        if i == j or not sticks_out(rows, i, j, far[j], slopes, support, hull_d, pending):
            continue
        new = prefix_points(rows[i], rows[j])
        new_pairs = np.empty((new.shape[0], 2), dtype=np.int64)
        new_pairs[:, 0] = i
        new_pairs[:, 1] = j
        points, pairs = upper_hull(np.concatenate((points, new)), np.concatenate((pairs, new_pairs)))
        slopes, support = edges(points)
        hull_d = points[:, 0].copy()
        if points[0, 0] == 0.0 and points[0, 2] == 0.0:
            break
    return points, pairs


@numba.njit(nogil=True, cache=True, error_model="numpy")
def farthest_slopes(rows):
    """For each row as d, a slope from which on its excess is 0 whatever the other row (STEEPEST if there is none)."""
    n = rows.shape[0]
    largest = np.zeros(n)
    for i in range(n):
        for k in range(n):
            largest[k] = max(largest[k], rows[i, k])
    far = np.zeros(n)
    for i in range(n):
        for k in range(n):
            gap = largest[k] - rows[i, k]
            if gap > 0.0:
                far[i] = max(far[i], gap / rows[i, k] if rows[i, k] > gap / STEEPEST else STEEPEST)
        far[i] = max(far[i], 1e-300)
    return far


def joint_hull(rows: np.ndarray, progress: bool = False) -> Hull:
    """The joint hull of all ordered pairs of rows.

    Parameters
    ----------
    rows : ndarray (n, n), C-contiguous, row-stochastic
    progress : show a progress bar over blocks of rows

    Returns
    -------
    Hull with K vertices; K = 0 if all rows are equal.

    Notes
    -----
    O(n^3) time with a handful of passes a pair, O(n^2) memory. Blocks have a fixed size and are merged in order, so the
    result does not depend on the number of threads.
    """
    n = rows.shape[0]
    points, pairs = np.empty((0, 3)), np.empty((0, 2), dtype=np.int64)
    first = first_difference(rows)
    if first < 0:
        return Hull(*points.T, *pairs.T)
    # Of two rows that differ, one may exceed the other nowhere, if their sums differ by rounding.
    pair = (first, 0) if (rows[first] > rows[0]).any() else (0, first)
    points = prefix_points(rows[pair[0]], rows[pair[1]])
    points, pairs = upper_hull(points, np.tile(np.array([pair]), (points.shape[0], 1)))
    far = farthest_slopes(rows)

    # Random pairs first: the hull is then nearly final, and few later pairs stick out of it.
    sample = np.random.default_rng(0).integers(0, n, size=(min(4 * n, n * n), 2))
    points, pairs = grow(points, pairs, rows, sample, far)

    tile = max(8, (1 << 20) // (8 * n))
    threads = 1 if n < 100 else numba.config.NUMBA_NUM_THREADS
    blocks = threads * -(-n // (threads * BLOCK))
    block = -(-n // blocks)
    starts = range(0, n, block)
    with ThreadPoolExecutor(threads) as pool, progress_bar(len(starts), progress, "block") as bar:
        for group in (starts[k : k + threads] for k in range(0, len(starts), threads)):
            if points[0, 0] == 0.0 and points[0, 2] == 0.0:
                break  # disjoint supports: L(alpha) = alpha, nothing can exceed it
            slopes, support = edges(points)
            hull_d = points[:, 0].copy()
            found = [np.zeros((min(block, n - start), n), dtype=np.bool_) for start in group]
            work = [
                (rows, far, slopes, support, hull_d, start, start + marks.shape[0], tile, marks)
                for start, marks in zip(group, found, strict=True)
            ]
            list(pool.map(lambda arguments: find_outside(*arguments), work)) if threads > 1 else find_outside(*work[0])
            for start, marks in zip(group, found, strict=True):
                j, i = np.nonzero(marks)
                if i.size:
                    points, pairs = grow(points, pairs, rows, np.column_stack((i, j + start)), far)
                bar.update()
    return Hull(*np.ascontiguousarray(points.T), *np.ascontiguousarray(pairs.T))


@numba.njit(cache=True, error_model="numpy")
def first_difference(rows):
    """The first row that differs from row 0, or -1."""
    for i in range(1, rows.shape[0]):
        for k in range(rows.shape[1]):
            if rows[i, k] != rows[0, k]:
                return i
    return -1


@numba.njit(nogil=True, cache=True, error_model="numpy")
def improve(rows, inverse, first, stop, tile, best):
    """Scan the pairs with d in rows first..stop; the steepest tangent found from (-inverse, 0), with its pair."""
    n = rows.shape[0]
    best_i, best_j = -1, -1
    for start in range(0, n, tile):
        for j in range(first, stop):
            for i in range(start, min(start + tile, n)):
                if i == j or excess(rows, i, j, best) <= best * inverse * (1.0 + TIE):
                    continue
                # Dinkelbach's iteration: the slope to the pair's vertex in the direction of the slope so far.
                while True:
                    d_sum, gap_sum = point_at(rows, i, j, best)
                    slope = gap_sum / (d_sum + inverse)
                    if not slope > best:
                        break
                    best, best_i, best_j = slope, i, j
    return best, best_i, best_j


def best_pair(rows: np.ndarray, alpha: float) -> tuple[float, float, float]:
    """(d(S), gap(S), 1 - q(S)) of the pair and set that attain L(alpha), by one pass over all pairs, 0 < alpha <= 700.

    All three are 0, 0, 1 if all rows are equal.
    """
    n = rows.shape[0]
    inverse = 1.0 / np.expm1(alpha)
    tile = max(8, (1 << 20) // (8 * n))
    # A few pairs first, so that nearly all others fail their first test.
    best = improve(rows, inverse, 0, 1, tile, 0.0)
    threads = 1 if n < 100 else numba.config.NUMBA_NUM_THREADS
    if threads == 1:
        results = [improve(rows, inverse, 1, n, tile, best[0])]
    else:
        bounds = np.linspace(1, n, 4 * threads + 1).astype(int)
        with ThreadPoolExecutor(threads) as pool:
            results = list(
                pool.map(lambda k: improve(rows, inverse, bounds[k], bounds[k + 1], tile, best[0]), range(4 * threads))
            )
    _, i, j = max([best, *results])
    if i < 0:
        return 0.0, 0.0, 1.0
    points = prefix_points(rows[i], rows[j])
    at = int(np.argmax(points[:, 1] / (points[:, 0] + inverse)))
    return tuple(float(value) for value in points[at])


def progress_bar(total: int, show: bool, unit: str):
    """A bar on a terminal if `show`, else one that draws nothing."""
    from tqdm import tqdm

    return tqdm(total=total, disable=None if show else True, desc="joint hull", unit=unit, leave=False)
