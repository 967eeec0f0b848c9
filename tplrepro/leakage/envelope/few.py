"""The hull of all pairs of few dense rows: at one slope after the other, the excesses of all pairs
at once."""

import numpy as np

from tplrepro.leakage.envelope.compiled import EXACT_ORDER, kernel
from tplrepro.leakage.envelope.hulls import (
    SLOPE,
    SUPPORT,
    TIE,
    add_pair,
    edges,
    equal_rows,
    excess,
    outside,
    prefix_points,
)

# The number of rows d side by side is padded to a multiple of this, so that no loop over them has a
# remainder.
LANES = 8


@kernel(fastmath=EXACT_ORDER)
def best_at(slope, support, rows, columns, least, used, values, totals):
    """The largest excess at the slope of all pairs of rows, if above `support`, and its pair.

    `columns` holds the rows d side by side, `least` the smallest entry of each column, which bounds
    the excess of a row q over any other; `used`, `values` and `totals` are space.
    """
    best, best_i, best_j = support, np.int64(0), np.int64(0)
    for i in range(rows.shape[0]):
        size, bound = 0, 0.0
        for k in range(rows.shape[1]):
            used[size], values[size] = k, rows[i, k]
            size += rows[i, k] - least[k] > slope * least[k]
            bound += max((rows[i, k] - least[k]) - slope * least[k], 0.0)
        if bound <= best:
            continue
        totals[:] = 0.0
        values[size:] = 0.0  # adds nothing
        # four columns at a time, so that `totals` is loaded and stored a quarter as often
        for m in range(0, size, 4):
            a, b, c, e = used[m], used[m + 1], used[m + 2], used[m + 3]
            q_a, q_b, q_c, q_e = values[m], values[m + 1], values[m + 2], values[m + 3]
            for j in range(totals.size):
                total = totals[j] + max((q_a - columns[a, j]) - slope * columns[a, j], 0.0)
                total += max((q_b - columns[b, j]) - slope * columns[b, j], 0.0)
                total += max((q_c - columns[c, j]) - slope * columns[c, j], 0.0)
                totals[j] = total + max((q_e - columns[e, j]) - slope * columns[e, j], 0.0)
        for j in range(totals.size):
            if totals[j] > best:
                best, best_i, best_j = totals[j], np.int64(i), np.int64(j)
    return best, best_i, best_j


@kernel()
def first_outside(rows, slope, support):
    """The first pair that exceeds the hull at the slope, or -1, -1."""
    n = rows.shape[0]
    for i in range(n):
        for j in range(n):
            if excess(rows, i, j, n, slope) > support * (1.0 + TIE) and outside(
                rows, i, j, n, slope, support
            ):
                return i, j
    return -1, -1


@kernel()
def hull_of_few(rows):
    """The hull of all pairs of rows, and whether it is complete: the best pair at an edge joins it
    until none is left.

    It is not complete if the best pair is in the hull already, since others may then hide behind
    it.
    """
    n = rows.shape[0]
    columns, least = np.empty((n, -(-n // LANES) * LANES)), rows[0].copy()
    columns[:] = 2.0  # exceeds every probability
    for i in range(n):
        for k in range(n):
            columns[k, i] = rows[i, k]
            least[k] = min(least[k], rows[i, k])
    used, values, totals = (
        np.zeros(n + 4, dtype=np.int64),
        np.empty(n + 4),
        np.empty(columns.shape[1]),
    )
    points, first, different = np.empty((0, 5)), np.int64(0), np.int64(1)
    while different < n and equal_rows(rows, different, first):
        different += 1
    if different == n:
        return points, True
    # of pairs that tie, this one is the witness
    points = add_pair(points, prefix_points(rows, different, first, n))
    hull, e = edges(points), 0
    while e < hull.shape[1]:
        slope, support = hull[SLOPE, e], hull[SUPPORT, e]
        best, i, j = best_at(slope, support, rows, columns, least, used, values, totals)
        if best > support * (1.0 + TIE) and not outside(rows, i, j, n, slope, support):
            # rounding made the excess of that pair the largest
            i, j = first_outside(rows, slope, support)
        if best > support * (1.0 + TIE) and i >= 0:
            points = add_pair(points, prefix_points(rows, i, j, n))
            before, hull = hull, edges(points)
            tried, e = e, 0
            while (
                e <= tried
                and hull[SLOPE, e] == before[SLOPE, e]
                and hull[SUPPORT, e] == before[SUPPORT, e]
            ):
                e += 1
            if e > tried:
                return points, False
        else:
            e += 1
    return points, True
