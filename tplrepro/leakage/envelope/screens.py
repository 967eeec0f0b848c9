"""Screens of many pairs of dense rows at once: one row d and all rows q (see `dense`).

`transposed[k, i]` is column k of row i, in single precision.
"""

from typing import NamedTuple

import numpy as np

from tplrepro.leakage.envelope.compiled import EXACT_ORDER, FAST, kernel
from tplrepro.leakage.envelope.hulls import PENDING, SLOPE, STEEPEST, SUPPORT, TIE, best_slope, excess, sticks_out

# Columns that are summed before they are added to the total: rounding errors grow with the longer of the two sums.
CHUNK = 64
# Rows d that go through a chunk of columns together.
GROUP = 16


class Screen(NamedTuple):
    """Slopes, the cap on the excess at each, and the number of the hull's edge with that slope; empty: no screen."""

    slope: np.ndarray
    cap: np.ndarray
    edge: np.ndarray


@kernel()
def last_slopes(rows, largest):
    """For each row d a slope from which on its excess over any row q is 0; `largest` holds each column's largest."""
    last = np.empty(rows.shape[0])
    for j in range(rows.shape[0]):
        last[j] = 1e-300
        for k in range(rows.shape[1]):
            d, gap = rows[j, k], largest[k] - rows[j, k]
            if gap > last[j] * d:
                last[j] = gap / d if d > gap / STEEPEST else np.inf
    return last


@kernel()
def excesses(rows, pairs, slopes):
    """The excess of each pair at each slope, (slopes, pairs)."""
    values = np.empty((slopes.size, pairs.shape[0]))
    for e in range(slopes.size):
        for m in range(pairs.shape[0]):
            values[e, m] = excess(rows, pairs[m, 0], pairs[m, 1], rows.shape[1], slopes[e])
    return values


@kernel()
def rounding_error(columns, base):
    """Bound on the error of sum_k max(q_k, c_k) - sum_k c_k as `bound_excesses` computes it; base = sum_k c_k.

    Rounding q and c to single precision costs unit (1 + 2 base), and the last sum as much; each term passes
    through at most two additions in its group of four, CHUNK/4 in its chunk and one for each chunk.
    """
    return (CHUNK // 4 + columns // CHUNK + 8) * 2.0**-24 * (1.0 + base)


@kernel()
def room_for(n):
    """Arrays for a group of rows d: each one's columns in use, their levels and their number; and sums of a chunk."""
    columns, levels = np.empty((GROUP, n), np.int64), np.empty((GROUP, n), np.float32)
    return columns, levels, np.zeros(GROUP, dtype=np.int64), np.empty(n, np.float32)


@kernel()
def use(m, n, room):
    """Mark all columns as in use for row m of the group."""
    columns, _, size, _ = room
    for k in range(n):
        columns[m, k] = k
    size[m] = n


@kernel(fastmath=FAST)
def set_levels(rows, j, mu, largest, room, m):
    """Put (1 + mu) d for d = row j next to the columns in use, and return their sum.

    A column stays in use as long as some row of the matrix, and so `largest`, exceeds (1 + mu) d there.
    """
    columns, levels, size, _ = room
    kept = 0
    for c in range(size[m]):
        k = columns[m, c]
        level = (1.0 + mu) * rows[j, k]
        columns[m, kept], levels[m, kept] = k, level
        kept += largest[k] > level
    size[m] = kept
    base = 0.0
    for c in range(kept):
        base += levels[m, c]
    return base


@kernel()
def bound_excesses(transposed, rows, first, mu, largest, room, bounds):
    """bounds[m, i] >= s(mu) for d = row first + m and each row q = i, for a group with columns in use.

    The group goes through a chunk of columns together, which stays in cache.
    """
    size, longest = room[2], 0
    for m in range(GROUP):
        base = set_levels(rows, first + m, mu, largest, room, m) if size[m] > 0 else 0.0
        bounds[m, :] = rounding_error(size[m], base) - base
        longest = max(longest, size[m])
    for start in range(0, longest, CHUNK):
        for m in range(GROUP):
            if start < size[m]:
                add_maxima(transposed, m, start, min(start + CHUNK, size[m]), room, bounds)


@kernel(fastmath=EXACT_ORDER)
def add_maxima(q, m, start, stop, room, totals):
    """Add to totals[m, i] the sum of max(q_k, level_k) over columns start..stop in use, for each row q = i."""
    columns, levels, _, part = room
    part[:] = 0.0
    # Four columns at a time, so that `part` is loaded and stored a quarter as often.
    while start + 4 <= stop:
        k_a, k_b, k_c, k_e = columns[m, start], columns[m, start + 1], columns[m, start + 2], columns[m, start + 3]
        a, b, c, e = levels[m, start], levels[m, start + 1], levels[m, start + 2], levels[m, start + 3]
        for i in range(part.size):
            part[i] += (max(q[k_a, i], a) + max(q[k_b, i], b)) + (max(q[k_c, i], c) + max(q[k_e, i], e))
        start += 4
    while start < stop:
        k_a, a = columns[m, start], levels[m, start]
        for i in range(part.size):
            part[i] += max(q[k_a, i], a)
        start += 1
    for i in range(part.size):
        totals[m, i] += part[i]


@kernel()
def runs_under(hull, first, last, mu_a, s_a, mu_b, s_b):
    """Whether the line from (mu_a, s_a) to (mu_b, s_b) is under the support at those edges first..last before mu_b."""
    for e in range(first, last + 1):
        mu = hull[SLOPE, e]
        if mu >= mu_b:
            break
        share = (mu_b - mu) / (mu_b - mu_a) if mu_b < np.inf else 1.0
        if s_b + (s_a - s_b) * share > hull[SUPPORT, e]:
            return False
    return True


@kernel()
def fewest_caps(slopes, caps, edge, far, hull, most):
    """Numbers of the fewest caps, chosen greedily, that settle a row d whose excesses are 0 from slope `far` on.

    `edge` holds the number of the hull's edge at each slope. Empty if more than `most` caps are needed.
    """
    chosen = np.zeros(most, dtype=np.int64)
    last = hull.shape[1] - 1
    for size in range(1, most + 1):
        a = chosen[size - 1]
        if far <= slopes[a] or runs_under(hull, edge[a] + 1, last, slopes[a], caps[a], far, 0.0):
            return chosen[:size]
        b = edge.size - 1
        while b > a and not runs_under(hull, edge[a] + 1, edge[b], slopes[a], caps[a], slopes[b], caps[b]):
            b -= 1
        if b == a or size == most:
            break
        chosen[size] = b
    return chosen[:0]


@kernel()
def settles(screen, far, hull):
    """Whether the caps settle a row d whose excesses are 0 from slope `far` on."""
    slope, cap, edge = screen
    last = slope.size - 1
    if last < 0 or far <= slope[last]:
        return last >= 0
    return runs_under(hull, edge[last] + 1, hull.shape[1] - 1, slope[last], cap[last], far, 0.0)


@kernel()
def mark_outside(rows, transposed, largest, far, hull, screen, first, marks):
    """Mark in marks[j - first, i], of bool, the pairs (q = row i, d = row j) that stick out: those that the screen
    does not settle are tested one by one.
    """
    n, pending = rows.shape[1], np.empty((PENDING, 3))
    room, bounds = room_for(n), np.empty((GROUP, n), np.float32)
    for at in range(0, marks.shape[0], GROUP):
        members = range(at, min(at + GROUP, marks.shape[0]))
        room[2][:] = 0
        for j in members:
            if settles(screen, far[first + j], hull):
                use(j - at, n, room)
            else:
                marks[j, :] = True
        for a in range(screen.slope.size):
            bound_excesses(transposed, rows, first + at, screen.slope[a], largest, room, bounds)
            for j in members:
                if screen.slope[a] < far[first + j]:
                    for i in range(n):
                        marks[j, i] |= bounds[j - at, i] > screen.cap[a]
        for j in members:
            for i in range(n):
                if marks[j, i]:
                    marks[j, i] = sticks_out(rows, i, first + j, n, far[first + j], hull, pending)


@kernel()
def improve_partners(transposed, rows, slopes, pairs):
    """Look for better partners of pairs (2 S, 2) at slopes (S,), where each pair comes twice, one after the other.

    The first is given the row q with the largest excess over its d, the second the row d over which its q has it.
    """
    n = rows.shape[1]
    room, totals = room_for(n), np.empty((GROUP, n), np.float32)
    use(np.int64(0), n, room)
    levels = room[1]
    for m in range(pairs.shape[0]):
        # Both excesses are, up to a factor and a constant of the fixed row, sums of maxima: of q and (1 + mu)
        # d over q, of d and q / (1 + mu) over d.
        factor = 1.0 + slopes[m // 2]
        fixed = pairs[m, 1 - m % 2]
        for k in range(n):
            levels[0, k] = rows[fixed, k] * factor if m % 2 == 0 else rows[fixed, k] / factor
        totals[0, :] = 0.0
        for start in range(0, n, CHUNK):
            add_maxima(transposed, np.int64(0), start, min(start + CHUNK, n), room, totals)
        best = np.int64(0)
        for i in range(n):
            best = i if totals[0, i] > totals[0, best] else best
        if best != fixed:
            pairs[m, m % 2] = best


@kernel()
def improve(rows, transposed, largest, inverse, first, stop, best):
    """The steepest tangent from (-inverse, 0) among the pairs of any row q and rows d in first..stop, if
    steeper than `best`, and its rows.
    """
    n = rows.shape[1]
    best_i, best_j = -1, -1
    room = room_for(n)
    bounds = np.empty((GROUP, n), np.float32)
    for at in range(first, stop, GROUP):
        group = range(at, min(at + GROUP, stop))
        room[2][:] = 0
        for j in group:
            of_largest = 0.0
            for k in range(n):
                of_largest += max((largest[k] - rows[j, k]) - best * rows[j, k], 0.0)
            if of_largest > best * inverse:
                use(j - at, n, room)
        bound_excesses(transposed, rows, at, best, largest, room, bounds)
        for j in group:
            for i in range(n):
                # Bounds at the slope with which the group began hold from there on.
                if (
                    bounds[j - at, i] > best * inverse
                    and i != j
                    and excess(rows, i, j, n, best) > best * inverse * (1.0 + TIE)
                ):
                    slope = best_slope(rows, i, j, n, inverse, best)
                    if slope > best:
                        best, best_i, best_j = slope, i, j
    return best, best_i, best_j
