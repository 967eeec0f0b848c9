"""The hull of the points of pairs of rows: what one pair adds to it, and whether it adds anything.

Points are (d(S), gap(S)); see the package's docstring. All sums that enter a result are compensated.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

__all__ = [
    "STEEPEST",
    "TIE",
    "Hull",
    "add_pair",
    "edges",
    "excess",
    "small_excess",
    "hull_in_order",
    "is_diagonal",
    "outside",
    "point_at",
    "prefix_points",
    "sticks_out",
    "sticks_out_after",
    "sticks_out_between",
    "upper_hull",
]

# Slopes are finite: a vertex with d(S) = 0 is tangent at every slope, and 1e300 stands for "beyond every ratio".
STEEPEST = 1e300
# A point counts as outside the hull if it exceeds it by this fraction of its own gap; the loss is then off by at most
# as much, and pairs that tie in exact arithmetic are not sorted again and again.
TIE = 1e-15
# Inputs are finite. EXACT_ORDER keeps the order of operations, which small differences need; FAST lets sums be in any
# order, and so vectorised. Compensated sums are compiled with neither.
EXACT_ORDER = {"nnan", "ninf", "nsz", "contract"}
FAST = EXACT_ORDER | {"reassoc"}


class Hull(NamedTuple):
    """Vertices in order of growing alpha (falling d); `d`, `gap`, `rest` are d(S), q(S) - d(S) and 1 - q(S)."""

    d: np.ndarray
    gap: np.ndarray
    rest: np.ndarray
    row_q: np.ndarray
    row_d: np.ndarray


@numba.njit(fastmath=EXACT_ORDER, nogil=True, cache=True, error_model="numpy")
def small_excess(q, d, mu):
    """max(q - d - mu d, 0) with the difference first: q - (1 + mu) d would lose its digits for small mu."""
    return max((q - d) - mu * d, 0.0)


@numba.njit(fastmath=FAST, nogil=True, cache=True, error_model="numpy")
def excess(rows, i, j, mu):
    """s(mu) = sum_k max(q_k - (1 + mu) d_k, 0) for q = rows[i], d = rows[j].

    Rows are indexed, not sliced: making a slice costs as much as a pass over 200 columns.
    """
    total = 0.0
    if mu < 0.5:
        for k in range(rows.shape[1]):
            total += small_excess(rows[i, k], rows[j, k], mu)
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
    s = excess(rows, i, j, 0.0)
    if s > support[0] * (1.0 + TIE) and outside(rows, i, j, 0.0, support[0]):
        return True
    return sticks_out_after(rows, i, j, 0, s, far, slopes, support, hull_d, pending)


@numba.njit(nogil=True, cache=True, error_model="numpy")
def sticks_out_after(rows, i, j, a, s_a, far, slopes, support, hull_d, pending):
    """The same for slopes from edge a on, where the excess is at most s_a."""
    last = slopes.size - 1
    mu_b, s_b = far, 0.0
    if far >= slopes[last]:
        mu_b = slopes[last]
        s_b = excess(rows, i, j, mu_b)
        if s_b > support[last] and outside(rows, i, j, mu_b, support[last]):
            return True
    return sticks_out_between(rows, i, j, a, slopes[a], s_a, last, mu_b, s_b, slopes, support, hull_d, pending)


@numba.njit(nogil=True, cache=True, error_model="numpy")
def sticks_out_between(rows, i, j, a, mu_a, s_a, b, mu_b, s_b, slopes, support, hull_d, pending):
    """The same between slope mu_a of edge a and mu_b (that of edge b or before it); s_a and s_b bound the excess."""
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
        if low < b and mu < mu_b and s_b + fall * (mu_b - mu) > support[low] * (1.0 + TIE):
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
    return hull_in_order(points, rows, np.argsort(points[:, 0], kind="mergesort"))


@numba.njit(nogil=True, cache=True, error_model="numpy")
def hull_in_order(points, rows, order):
    """`upper_hull`, given the order in which d rises."""
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
def add_pair(points, pairs, q, d, i, j):
    """The hull of `points` (of the pairs of rows `pairs`) and of all points of q = row i, d = row j."""
    new = prefix_points(q, d)
    if new.shape[0] == 0:
        return points, pairs
    new_pairs = np.empty((new.shape[0], 2), dtype=np.int64)
    new_pairs[:, 0] = i
    new_pairs[:, 1] = j
    # The hull's points come with falling d, those of a pair with rising d.
    order = np.empty(points.shape[0] + new.shape[0], dtype=np.int64)
    a, b = points.shape[0] - 1, 0
    for m in range(order.size):
        if b == new.shape[0] or (a >= 0 and points[a, 0] <= new[b, 0]):
            order[m] = a
            a -= 1
        else:
            order[m] = points.shape[0] + b
            b += 1
    return hull_in_order(np.concatenate((points, new)), np.concatenate((pairs, new_pairs)), order)


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
        support[e] = next_gap - slope * next_d  # of the edge's two ends the one with less rounding
    return slopes, support


def is_diagonal(points: np.ndarray) -> bool:
    """Whether (0, 1) is on the hull: two rows have disjoint supports, L(alpha) = alpha, and nothing can exceed it."""
    return points.shape[0] > 0 and points[0, 0] == 0.0 and points[0, 2] == 0.0
