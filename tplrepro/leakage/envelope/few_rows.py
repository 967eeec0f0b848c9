"""The hull of all pairs of few dense rows, or of those within each of many matrices: at one slope
after the other, the excesses of all pairs at once."""

import numpy as np

from tplrepro.leakage.envelope.compiled import ORDERED, kernel
from tplrepro.leakage.envelope.hulls import (
    SLOPE,
    SUPPORT,
    TIE,
    add_pair,
    edges_of_hull,
    equal_rows,
    excess_of_pair,
    is_outside,
    prefix_points,
)

# The number of rows d side by side is padded to a multiple of this, so that no loop over them has a
# remainder.
LANES = 8


@kernel(fastmath=ORDERED)
def best_at(slope, support, rows, columns, least, used, values, totals):  # noqa: PLR0917 - a kernel: its space is made once, outside
    """The largest excess at the slope of all pairs of rows, if above `support`, and the numbers of
    its rows q and d; else `support`, 0, 0.

    `columns` (n, M), M a multiple of LANES, holds column k of all rows d in row k; `least` (n,) is
    the smallest entry of each column, which bounds the excess of a row q over any other. `used`,
    `values` (n + 4,) and `totals` (M,) are space.
    """
    best = support
    best_i = np.int64(0)
    best_j = np.int64(0)
    for i in range(rows.shape[0]):
        # The columns in which row i may have an excess, and a bound on the sum of all.
        size = 0
        bound = 0.0
        for k in range(rows.shape[1]):
            d = least[k]
            gap = rows[i, k] - d
            used[size] = k
            values[size] = rows[i, k]
            size += gap > slope * d
            bound += max(gap - slope * d, 0.0)
        if bound <= best:
            continue
        totals[:] = 0.0
        values[size:] = 0.0  # adds nothing
        # four columns at a time, so that `totals` is loaded and stored a quarter as often
        for m in range(0, size, 4):
            a = used[m]
            b = used[m + 1]
            c = used[m + 2]
            e = used[m + 3]
            q_a = values[m]
            q_b = values[m + 1]
            q_c = values[m + 2]
            q_e = values[m + 3]
            for j in range(totals.size):
                d_a = columns[a, j]
                d_b = columns[b, j]
                d_c = columns[c, j]
                d_e = columns[e, j]
                total = totals[j] + max((q_a - d_a) - slope * d_a, 0.0)
                total += max((q_b - d_b) - slope * d_b, 0.0)
                total += max((q_c - d_c) - slope * d_c, 0.0)
                totals[j] = total + max((q_e - d_e) - slope * d_e, 0.0)
        for j in range(totals.size):
            if totals[j] > best:
                best = totals[j]
                best_i = np.int64(i)
                best_j = np.int64(j)
    return best, best_i, best_j


@kernel()
def first_outside(rows, slope, support):
    """The first pair of rows q and d that exceeds the hull's `support` at the slope, or -1, -1."""
    n = rows.shape[0]
    for i in range(n):
        for j in range(n):
            if excess_of_pair(rows, i, j, n, slope) > support * (1.0 + TIE):
                if is_outside(rows, i, j, n, slope, support):
                    return i, j
    return -1, -1


@kernel()
def side_by_side(rows):
    """Column k of all rows (n, n) in row k of an array (n, M), M a multiple of LANES, which is 2
    beyond them; and the smallest entry of each column, (n,)."""
    n = rows.shape[0]
    width = -(-n // LANES) * LANES
    columns = np.empty((n, width))
    least = np.empty(n)
    for k in range(n):
        for i in range(n, width):
            columns[k, i] = 2.0  # exceeds every probability
        least[k] = rows[0, k]
    for i in range(n):
        for k in range(n):
            columns[k, i] = rows[i, k]
            least[k] = min(least[k], rows[i, k])
    return columns, least


@kernel()
def first_new_edge(hull, before, last):
    """The number of the first edge of a hull, of those up to `last`, that the one `before` lacks;
    last + 1 if there is none."""
    for e in range(last + 1):
        has_same_slope = hull[SLOPE, e] == before[SLOPE, e]
        has_same_support = hull[SUPPORT, e] == before[SUPPORT, e]
        if not (has_same_slope and has_same_support):
            return e
    return last + 1


@kernel()
def edge_under_chord(hull, excesses):
    """The number of the edge of the hull whose support is furthest under the chord of the two
    nearest `excesses` (K + 1,) that are known, of which others are NaN; -1 if none is under it.

    The largest excess is convex in the slope, so it runs under its chords; the hull's support is
    linear between the slopes of its edges.
    """
    furthest = 0.0
    found = np.int64(-1)
    a = np.int64(0)
    for b in range(1, hull.shape[1]):
        if np.isnan(excesses[b]):
            continue
        run = hull[SLOPE, b] - hull[SLOPE, a]
        for e in range(a + 1, b):
            share = (hull[SLOPE, b] - hull[SLOPE, e]) / run
            chord = excesses[b] + (excesses[a] - excesses[b]) * share
            if chord - hull[SUPPORT, e] > furthest:
                furthest = chord - hull[SUPPORT, e]
                found = np.int64(e)
        a = np.int64(b)
    return found


@kernel()
def are_under(hull, rows, columns, least, used, values, totals):  # noqa: PLR0917 - a kernel, as above
    """Whether no pair of rows sticks out of a hull, by the largest excess at few slopes of its
    edges; other arguments as in `best_at`."""
    last = hull.shape[1] - 1
    excesses = np.empty(last + 1)
    excesses[:] = np.nan
    e = np.int64(0)
    while e >= 0:
        slope = hull[SLOPE, e]
        best, _, _ = best_at(slope, 0.0, rows, columns, least, used, values, totals)
        if best > hull[SUPPORT, e] * (1.0 + TIE):
            return False
        excesses[e] = best
        if e == 0:
            e = np.int64(last)
        else:
            e = edge_under_chord(hull, excesses)
    return True


@kernel()
def row_unlike_first(rows):
    """The number of the first row that differs from row 0; n if all rows are equal."""
    n = rows.shape[0]
    first = np.int64(0)
    different = np.int64(1)
    while different < n and equal_rows(rows, different, first):
        different += 1
    return different


@kernel()
def grow_by_few_rows(points, rows):
    """The hull of `points`, a hull, and of all pairs of rows, and whether it is complete: the best
    pair at an edge joins it until none is left.

    It is not complete if the best pair is in the hull already, since others may then hide behind
    it.
    """
    n = rows.shape[0]
    different = row_unlike_first(rows)
    if different == n:
        return points, True
    columns, least = side_by_side(rows)
    used = np.empty(n + 4, np.int64)
    used[:] = 0
    values = np.empty(n + 4)
    totals = np.empty(columns.shape[1])
    hull = edges_of_hull(points)
    if points.shape[0] == 0:
        # of pairs that tie, this one is the witness
        points = add_pair(points, prefix_points(rows, different, np.int64(0), n))
        hull = edges_of_hull(points)
    elif are_under(hull, rows, columns, least, used, values, totals):
        return points, True
    e = np.int64(0)
    while e < hull.shape[1]:
        slope = hull[SLOPE, e]
        support = hull[SUPPORT, e]
        best, i, j = best_at(slope, support, rows, columns, least, used, values, totals)
        sticks_out = best > support * (1.0 + TIE)
        if sticks_out and not is_outside(rows, i, j, n, slope, support):
            # rounding made the excess of that pair the largest
            i, j = first_outside(rows, slope, support)
        if not (sticks_out and i >= 0):
            e += 1
            continue
        points = add_pair(points, prefix_points(rows, i, j, n))
        # Go on at the first edge that is new.
        before = hull
        hull = edges_of_hull(points)
        tried = e
        e = first_new_edge(hull, before, tried)
        if e > tried:
            return points, False
    return points, True


@kernel()
def hull_of_each(matrices):
    """The hull of all pairs of rows within each of M matrices (M, n, n), and the number of the
    first matrix of which it is not complete, or M; only those before it are part of the hull.

    The third result is the hull with what was found of that matrix, too.
    """
    points = np.empty((0, 5))
    grown = points
    for m in range(matrices.shape[0]):
        grown, is_complete = grow_by_few_rows(points, matrices[m])
        if not is_complete:
            return points, m, grown
        points = grown
    return points, matrices.shape[0], grown
