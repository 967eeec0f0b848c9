"""Screens of many pairs of dense rows at once: one row d and all rows q.

Words and names of this module, as in `dense`, which uses it:

The excess of a pair of rows q and d at a slope mu is s(mu) = sum_k max(q_k - (1 + mu) d_k, 0). A
pair sticks out, or is outside, if its excess is above the hull's support function h at some slope,
and is inside otherwise. `far` is for a row d a slope from which on no row q has an excess over it;
(n,) for all rows. A cap is a number at a slope mu with which the excess there is compared. Caps at
several slopes are a `Screen`. They settle a row d if the polygon through them, which ends at 0 at
slope `far`, runs under h: then each pair with that row whose excesses are all within the caps is
inside.

`rows` (n, n) is the matrix, `hull` (3, K + 1) what `hulls.edges_of_hull` returns, `in_steps` the
rows in whole steps (`Columns`), and `room` the arrays of `room_for`. A group is up to GROUP
successive rows d; m counts rows within it.
"""

from typing import NamedTuple

import numpy as np

from tplrepro.leakage.envelope.compiled import FAST, kernel
from tplrepro.leakage.envelope.hulls import (
    PENDING,
    SLOPE,
    STEEPEST,
    SUPPORT,
    TIE,
    best_slope,
    excess_of_pair,
    sticks_out,
)

# Columns of one sum in 16 bits.
CHUNK = 64
# Columns that are added at a time.
LANES = 8
# Rows d that go through a chunk together.
GROUP = 16
# The most steps of a row q in one chunk, but for CHUNK of rounding.
STEPS = 65_400
# More than an entry's relative rounding.
ROOM = 2.0**-50


class Columns(NamedTuple):
    """Rows (n, n) in whole steps, columns first: row i is at most steps[k, i] / scale above column
    k's smallest entry least[k]; `largest` (n,) are the largest entries."""

    steps: np.ndarray
    least: np.ndarray
    largest: np.ndarray
    scale: float


class Screen(NamedTuple):
    """Caps (C,): the slope of each, the cap on the excess there, and the number of the hull's edge
    with that slope; empty: no screen."""

    slope: np.ndarray
    cap: np.ndarray
    edge: np.ndarray


@kernel()
def last_slopes(rows, largest):
    """For each row d a slope from which on its excess over any row q is 0; `largest` holds each
    column's largest."""
    n_rows, n_columns = rows.shape
    last = np.empty(n_rows)
    for j in range(n_rows):
        slope = 1e-300
        for k in range(n_columns):
            d = rows[j, k]
            gap = largest[k] - d
            if gap > slope * d:
                if d > gap / STEEPEST:
                    slope = gap / d
                else:
                    slope = np.inf
        last[j] = slope
    return last


@kernel(fastmath=FAST)
def excesses_of_pairs(rows, pairs, slopes, step):
    """The excess of each pair of rows at each slope, (S, P), with `step` added for each term above
    0.

    `pairs` (P, 2) are numbers of rows q and d, `slopes` is (S,); `step` is by how much rounding a
    term up to steps may raise it.
    """
    n_pairs = pairs.shape[0]
    n_columns = rows.shape[1]
    values = np.empty((slopes.size, n_pairs))
    for m in range(n_pairs):
        i = pairs[m, 0]
        j = pairs[m, 1]
        for e in range(slopes.size):
            slope = slopes[e]
            total = 0.0
            for k in range(n_columns):
                d = rows[j, k]
                gap = rows[i, k] - d
                term = gap - slope * d
                total += term + step if term > 0.0 else 0.0
            values[e, m] = total
    return values


def columns_of(rows):
    """Rows (n, n) in whole steps above each column's smallest entry, rounded up, as `Columns`; the
    rows may all be equal."""
    least = rows.min(axis=0)
    largest = rows.max(axis=0)
    ranges = np.sort(largest - least)
    most = ranges[-CHUNK:].sum()  # of a row in a chunk
    most = min(max(most, 1e-100), 1.0)
    scale = STEPS / most
    scale_up = scale * (1.0 + ROOM)
    steps = np.empty(rows.shape, np.uint16)
    for at in range(0, len(rows), CHUNK):
        block = slice(at, at + CHUNK)
        above = rows[block] - least
        rounded_up = np.ceil(above * scale_up)
        steps[:, block] = rounded_up.T
    return Columns(steps, least, largest, scale)


def room_for(n):
    """Space for a group of rows d: the columns in use of each (GROUP, n + LANES), their levels (the
    same shape), and how many they are (GROUP,); and for the sums of a chunk (n,)."""
    width = n + LANES
    columns = np.zeros((GROUP, width), np.int64)
    levels = np.empty((GROUP, width), np.uint16)
    size = np.zeros(GROUP, dtype=np.int64)
    part = np.empty(n, np.uint16)
    return columns, levels, size, part


@kernel()
def use_all_columns(m, n, room):
    """Mark all columns as in use for row m of the group."""
    columns, _, size, _ = room
    for k in range(n):
        columns[m, k] = k
    size[m] = n


@kernel(fastmath=FAST)
def set_levels(rows, j, mu, in_steps, room, m):
    """Put (1 + mu) d for d = row j, member m of the group, rounded down to steps, into `room` next
    to the columns in use.

    A column stays in use as long as some row of the matrix, and so the largest entry, exceeds (1 +
    mu) d there.
    """
    columns, levels, size, _ = room
    factor = (1.0 + mu) * (1.0 - ROOM)
    kept = 0
    for c in range(size[m]):
        k = columns[m, c]
        level = factor * rows[j, k]
        least = in_steps.least[k]
        largest = in_steps.largest[k]
        capped = min(level, largest)
        height = max(capped - least, 0.0)
        columns[m, kept] = k
        levels[m, kept] = np.uint16(height * in_steps.scale)
        kept += largest > level
    size[m] = kept
    for c in range(kept, kept + LANES):  # nothing exceeds it
        columns[m, c] = 0
        levels[m, c] = 65535


@kernel()
def bound_excesses(in_steps, rows, first, mu, room, bounds):
    """Fill `bounds` (GROUP, n): bounds[m, i] / scale >= s(mu) for d = row first + m and q = row i,
    in a group whose columns in use `room` holds. Those that no row exceeds at `mu` go out of
    use."""
    size = room[2]
    longest = 0
    bounds[:] = 0
    for m in range(GROUP):
        if size[m] > 0:
            j = first + m
            set_levels(rows, j, mu, in_steps, room, m)
            longest = max(longest, size[m])
    for start in range(0, longest, CHUNK):
        end = start + CHUNK
        for m in range(GROUP):
            if start < size[m]:
                stop = min(end, size[m])
                add_excesses(in_steps.steps, m, start, stop, room, bounds)


@kernel()
def add_excesses(q, m, start, stop, room, totals):
    """Add to totals[m, i] the sum of max(q_k - level_k, 0) over places start..stop of the columns
    in use, with q_k = q[k, i] in steps (n, n), for each row i.

    It is the sum of max(q_k, level_k) less that of level_k, both modulo 2^16, and is itself below
    2^16. `stop` is rounded up to whole LANES; `set_levels` leaves levels of 65535 there, which
    nothing exceeds.
    """
    columns, levels, _, part = room
    n_lanes = -(-(stop - start) // LANES)
    stop = start + n_lanes * LANES
    all_levels = np.int64(0)
    for c in range(start, stop):
        all_levels += levels[m, c]
    part[:] = -all_levels & 65535
    for c in range(start, stop, LANES):
        k_a = columns[m, c]
        k_b = columns[m, c + 1]
        k_c = columns[m, c + 2]
        k_d = columns[m, c + 3]
        k_e = columns[m, c + 4]
        k_f = columns[m, c + 5]
        k_g = columns[m, c + 6]
        k_h = columns[m, c + 7]
        l_a = levels[m, c]
        l_b = levels[m, c + 1]
        l_c = levels[m, c + 2]
        l_d = levels[m, c + 3]
        l_e = levels[m, c + 4]
        l_f = levels[m, c + 5]
        l_g = levels[m, c + 6]
        l_h = levels[m, c + 7]
        for i in range(part.size):
            q_a = max(q[k_a, i], l_a)
            q_b = max(q[k_b, i], l_b)
            q_c = max(q[k_c, i], l_c)
            q_d = max(q[k_d, i], l_d)
            q_e = max(q[k_e, i], l_e)
            q_f = max(q[k_f, i], l_f)
            q_g = max(q[k_g, i], l_g)
            q_h = max(q[k_h, i], l_h)
            first_four = (q_a + q_b) + (q_c + q_d)
            last_four = (q_e + q_f) + (q_g + q_h)
            part[i] += first_four + last_four
    for i in range(part.size):
        totals[m, i] += part[i]


@kernel()
def runs_under(hull, first, last, mu_a, s_a, mu_b, s_b):  # noqa: PLR0917 - a kernel: both ends of a line as numbers
    """Whether the line from (mu_a, s_a) to (mu_b, s_b) is under the support at those edges
    first..last, both included, that come before mu_b. `mu_b` may be infinite: the line is then
    level."""
    for e in range(first, last + 1):
        mu = hull[SLOPE, e]
        if mu >= mu_b:
            break
        share = 1.0
        if mu_b < np.inf:
            share = (mu_b - mu) / (mu_b - mu_a)
        fall = s_a - s_b
        height = s_b + fall * share
        if height > hull[SUPPORT, e]:
            return False
    return True


@kernel()
def fewest_caps(slopes, caps, edge, far, hull, most):
    """Numbers of the fewest caps, chosen greedily, that settle a row d with this `far`. The first
    cap is always chosen.

    `slopes` and `caps` (C,) are the caps, `edge` (C,) the number of the hull's edge at each slope.
    The result is empty if more than `most` caps are needed.
    """
    chosen = np.empty(most, np.int64)
    chosen[0] = 0
    last = hull.shape[1] - 1
    for size in range(1, most + 1):
        a = chosen[size - 1]
        first = edge[a] + 1
        slope = slopes[a]
        cap = caps[a]
        if far <= slope:
            return chosen[:size]
        if runs_under(hull, first, last, slope, cap, far, 0.0):
            return chosen[:size]
        b = edge.size - 1
        while b > a:
            if runs_under(hull, first, edge[b], slope, cap, slopes[b], caps[b]):
                break
            b -= 1
        if b == a or size == most:
            break
        chosen[size] = b
    return chosen[:0]


@kernel()
def settles_pairs_of_row(screen, far, hull):
    """Whether the screen settles pairs with a row d: the line from its last cap down to 0 at slope
    `far` runs under the support. The lines between caps do, as `fewest_caps` chose them."""
    last = screen.slope.size - 1
    if last < 0:
        return False
    slope = screen.slope[last]
    cap = screen.cap[last]
    if far <= slope:
        return True
    first_edge = screen.edge[last] + 1
    last_edge = hull.shape[1] - 1
    return runs_under(hull, first_edge, last_edge, slope, cap, far, 0.0)


@kernel()
def sum_error(n):
    """How far below an excess a sum of its n terms in single precision is at most, n < 160,000."""
    rounding = 2.0**-24
    return 1.01 * (n + 4) * rounding


@kernel(fastmath=FAST)
def mark_above(rows, far, first, mu, cap, marks):
    """Set marks[m, i] where the excess of q = row i over d = row first + m at slope `mu` may be
    above `cap`; sums are in single precision. Other marks (M, n) of bool stay."""
    n = rows.shape[1]
    size = marks.shape[0]
    factor = 1.0 + mu
    none = np.float32(0.0)
    limit = cap - sum_error(n)
    q = np.empty(n, np.float32)
    levels = np.empty(marks.shape, np.float32)
    for m in range(size):
        j = first + m
        # for an assignment of arrays, Numba compiles 36 functions of its own, in 2 s
        for k in range(n):
            levels[m, k] = factor * rows[j, k]
    for i in range(n):
        for k in range(n):
            q[k] = rows[i, k]
        for m in range(size):
            j = first + m
            if mu < far[j]:
                total = none
                for k in range(n):
                    term = q[k] - levels[m, k]
                    total += max(term, none)
                marks[m, i] |= total > limit


@kernel()
def mark_outside(rows, in_steps, far, hull, screen, first, room, marks):  # noqa: C901, PLR0917 - a kernel: one compiled loop over a group
    """Set marks[m, i] (M, n), of bool, all False at first, for each pair of q = row i and d = row
    first + m that sticks out: those that the screen does not settle are tested one by one."""
    n = rows.shape[1]
    size = marks.shape[0]
    pending = np.empty((PENDING, 3))
    columns_in_use = room[2]
    bounds = np.empty((GROUP, n), np.int32)
    for at in range(0, size, GROUP):
        end = min(at + GROUP, size)
        members = range(at, end)
        first_d = first + at
        columns_in_use[:] = 0
        for j in members:
            d = first + j
            if settles_pairs_of_row(screen, far[d], hull):
                use_all_columns(j - at, n, room)
            else:
                marks[j, :] = True
        for a in range(screen.slope.size):
            slope = screen.slope[a]
            cap = screen.cap[a]
            support = hull[SUPPORT, screen.edge[a]]
            if cap >= support:  # no room for steps
                mark_above(rows, far, first_d, slope, cap, marks[at:end])
                continue
            bound_excesses(in_steps, rows, first_d, slope, room, bounds)
            cap_in_steps = np.int32(cap * in_steps.scale)
            for j in members:
                d = first + j
                if slope < far[d]:
                    for i in range(n):
                        bound = bounds[j - at, i]
                        marks[j, i] |= bound > cap_in_steps
        for j in members:
            d = first + j
            for i in range(n):
                if marks[j, i]:
                    marks[j, i] = sticks_out(rows, i, d, n, far[d], hull, pending)


@kernel()
def improve_partners(in_steps, rows, slopes, room, pairs):
    """Look for better partners of pairs (2 S, 2) of rows q and d at slopes (S,), where each pair
    comes twice, one after the other; `pairs` is changed.

    The first is given the row q with the largest excess over its d, the second the row d over which
    its q has it.
    """
    n = rows.shape[1]
    totals = np.empty((GROUP, n), np.int32)
    for m in range(pairs.shape[0]):
        # Up to a factor and a constant of q, an excess is that of d over q / (1 + mu).
        changed = m % 2
        fixed = pairs[m, 1 - changed]
        mu = slopes[m // 2]
        if changed == 1:
            mu = 1.0 / (1.0 + mu) - 1.0
        use_all_columns(np.int64(0), n, room)
        bound_excesses(in_steps, rows, fixed, mu, room, totals)
        best = np.int64(0)
        for i in range(n):
            if totals[0, i] > totals[0, best]:
                best = i
        if best != fixed:
            pairs[m, changed] = best


@kernel()
def improve_tangent(rows, in_steps, inverse, first, stop, room, best):  # noqa: PLR0917 - a kernel: its space is made once, outside
    """The steepest tangent from (-inverse, 0) among the pairs of any row q and rows d in
    first..stop, `stop` excluded, if steeper than the slope `best`, and its rows q and d.

    Returns `best`, -1, -1 if none is steeper.
    """
    n = rows.shape[1]
    best_i = -1
    best_j = -1
    columns_in_use = room[2]
    bounds = np.empty((GROUP, n), np.int32)
    for at in range(first, stop, GROUP):
        end = min(at + GROUP, stop)
        group = range(at, end)
        columns_in_use[:] = 0
        for j in group:
            use_all_columns(j - at, n, room)
        bound_excesses(in_steps, rows, at, best, room, bounds)
        for j in group:
            for i in range(n):
                support = best * inverse
                support_in_steps = support * in_steps.scale
                # Bounds at the slope with which the group began hold from there on.
                bound = bounds[j - at, i]
                if i == j or not bound > support_in_steps:
                    continue
                excess = excess_of_pair(rows, i, j, n, best)
                if excess > support * (1.0 + TIE):
                    slope = best_slope(rows, i, j, n, inverse, best)
                    if slope > best:
                        best = slope
                        best_i = i
                        best_j = j
    return best, best_i, best_j
