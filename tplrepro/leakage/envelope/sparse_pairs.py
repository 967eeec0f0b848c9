"""Rows of a sparse matrix over a background, and a pair of them as a short dense pair.

Columns stored in neither row of a pair all have the same ratio, so they act as one column with
their total mass; so do the columns that only row d stores, for each of its few distinct values. A
pair then has about as many columns as row q stores, and goes through the same kernels as a dense
one.

`rows` are `SparseRows`, `work` is a `Workspace`, `bounds` are `Bounds` of `sparse`. A row is
scattered while the workspace holds it as d, from `scatter_row` to `gather_row`. `top` and `size`
are from `sums_of_largest`, `points` (K, 5) are a hull.
"""

import numpy as np

from tplrepro.leakage.envelope.compiled import kernel
from tplrepro.leakage.envelope.hulls import (
    STEEPEST,
    TIE,
    add_pair,
    best_slope,
    edges_of_hull,
    excess_of_pair,
    is_diagonal,
    prefix_points,
    sticks_out,
)

# Bounds from sparse rows are compared with this much room, so that rounding never dismisses a pair.
ROOM = 1.0 + 1e-12


@kernel()
def sums_of_largest(rows):
    """Sums of each row's m largest entries, and m, where a stored entry or the background, as a
    whole, is the last.

    A row has one more of them than it stores entries; those of row i begin at start[i] + i.
    """
    value = rows.value
    n = rows.background.size
    n_sums = value.size + n
    top = np.empty(n_sums)
    size = np.empty(n_sums)
    for i in range(n):
        k = rows.start[i]
        stop = rows.start[i + 1]
        stored = stop - k
        missing = n - stored
        b = 0.0
        if missing > 0:
            b = rows.background[i]
        total = 0.0
        count = 0.0
        for at in range(k + i, stop + i + 1):
            is_background_left = at == k + i
            if is_background_left and (k == stop or value[k] < b):
                total += missing * b
                count += missing
            else:
                total += value[k]
                count += 1.0
                k += 1
            top[at] = total
            size[at] = count
    return top, size


@kernel()
def scatter_row(j, rows, work):
    """Write row j into the workspace as d; returns the number of runs of equal entries, the number
    of stored entries, and its background."""
    first = rows.start[j]
    stop = rows.start[j + 1]
    run = -1
    for k in range(first, stop):
        c = rows.column[k]
        value = rows.value[k]
        work.dense[c] = value
        if run < 0 or value != work.run_value[run]:
            run += 1
            work.run_value[run] = value
            work.run_size[run] = 0
        work.run_size[run] += 1
        work.run_of[c] = run
    runs = run + 1
    stored = stop - first
    for k in range(stored):
        least = rows.value[stop - 1 - k]
        work.sum_of_least[k + 1] = work.sum_of_least[k] + least
    return runs, stored, rows.background[j]


@kernel()
def gather_row(j, rows, work):
    """Undo `scatter_row` of row j: `work.dense` is -1 everywhere again."""
    for k in range(rows.start[j], rows.start[j + 1]):
        work.dense[rows.column[k]] = -1.0


@kernel()
def compress_pair(i, rows, scattered, work):
    """Row i as q and the scattered row j as d with equal columns merged, and a slope from which on
    the excess is 0.

    Returns the arguments (columns, 0, 1, size) of `hulls.prefix_points`, and that slope. The
    columns of the short pair, in work.buffer, with b_i and b_j the backgrounds:

        columns stored by    q              d                   one for each
        row i                value          value in j or b_j   column
        row j alone          count * b_i    count * value       run of equal values below b_i
        neither              count * b_i    count * b_j         if b_i > b_j
        those with q <= d    sum of all     1                   last; never chosen, but counted in
                                                                1 - q(S)
    """
    runs, stored_j, b_j = scattered
    first = rows.start[i]
    stop = rows.start[i + 1]
    b_i = rows.background[i]
    column = rows.column
    entries = rows.value
    dense = work.dense
    taken = work.taken
    run_of = work.run_of
    run_value = work.run_value
    q = work.buffer[0]
    d = work.buffer[1]
    used = 0
    shared = 0
    rest = 0.0
    # Branch-free, because branches would be unpredictable here: unwanted entries are overwritten,
    # or counted in the last place of `taken`.
    for k in range(first, stop):
        value = entries[k]
        value_j = dense[column[k]]
        shared += value_j >= 0.0
        value_j = value_j if value_j >= 0.0 else b_j
        q[used] = value
        d[used] = value_j
        used += value > value_j
        rest += 0.0 if value > value_j else value
    alone = stored_j - shared
    if runs > 0 and run_value[runs - 1] < b_i:
        for k in range(first, stop):  # how many columns of each run row i stores too
            c = column[k]
            taken[run_of[c] if dense[c] >= 0.0 else dense.size] += 1
        r = runs - 1
        while r >= 0 and run_value[r] < b_i:
            count = work.run_size[r] - taken[r]
            if count > 0:
                q[used] = count * b_i
                d[used] = count * run_value[r]
                used += 1
                alone -= count
            r -= 1
        for k in range(first, stop):
            c = column[k]
            taken[run_of[c] if dense[c] >= 0.0 else dense.size] = 0
    rest += alone * b_i
    neither = dense.size - (stop - first) - stored_j + shared
    if b_i > b_j and neither > 0:
        q[used] = neither * b_i
        d[used] = neither * b_j
        used += 1
    else:
        rest += neither * b_i
    far = 0.0
    for c in range(used):
        gap = q[c] - d[c]
        if gap > far * d[c]:
            far = gap / d[c] if d[c] > gap / STEEPEST else STEEPEST
    q[used] = min(rest, 1.0)
    d[used] = 1.0
    pair = work.pair, np.int64(0), np.int64(1), used + 1
    return pair, max(far * ROOM, 1e-300)


@kernel()
def excess_over(low, candidates, rows, top, size, slopes):
    """The excess of each candidate q at each slope, (C, S), over a row that is `low` everywhere.

    `candidates` (C,) are numbers of rows, `slopes` is (S,).
    """
    start = rows.start
    value = rows.value
    background = rows.background
    bounds = np.empty((candidates.size, slopes.size))
    for c in range(candidates.size):
        i = candidates[c]
        first = start[i]
        stop = start[i + 1]
        for e in range(slopes.size):
            level = (1.0 + slopes[e]) * low
            k = first  # the first entry that is not above the level
            end = stop
            while k < end:
                middle = (k + end) >> 1
                if value[middle] > level:
                    k = middle + 1
                else:
                    end = middle
            has_background_above = background[i] > level and stop - first < background.size
            last = i + k - 1 + has_background_above
            bound = 0.0
            if last >= first + i:
                excess = top[last] - size[last] * level
                bound = max(excess, 0.0)
            bounds[c, e] = bound
    return bounds


@kernel()
def exceeds_a_level(i, rows, slope, level, b_d, dense):
    """Whether an entry of row i exceeds `slope` (here 1 + mu) times that of the scattered row d.

    `level` is `slope` times the smallest entry of d, `b_d` the background of d, and `dense` (n,)
    its entries, -1 where it stores none.
    """
    if rows.background[i] * ROOM > level:
        return True
    for k in range(rows.start[i], rows.start[i + 1]):
        value = rows.value[k] * ROOM
        if not value > level:
            break  # nor are the entries after it, which fall
        d = dense[rows.column[k]]
        if d < 0.0:
            d = b_d
        if value > slope * d:
            return True
    return False


@kernel()
def may_exceed(bounds, rows, j, rows_d, work):
    """Places in `bounds.candidates` of the rows q whose excess over row j of `rows_d` (scattered)
    may exceed the cap at some slope; all if there is no slope.

    With the levels c_k = (1 + mu) d_k, and c that of the smallest entry of d,

        s(mu)  =  sum_k max(q_k - c, 0)  -  sum_k (max(min(q_k, c_k), c) - c).

    `bounds` bounds the first sum. Terms of the second, none negative, are subtracted until the rest
    is within the cap: first all terms of a row that is q's background everywhere, then, from the
    largest stored q_k on, what that entry's own term adds. One loop covers all candidates: a call
    for each would take ten times as long.
    """
    candidates, low, excess, fall, slopes, caps = bounds
    start, column, value, background, lows = rows
    dense = work.dense
    sum_of_least = work.sum_of_least
    found = np.empty(candidates.size, dtype=np.int64)
    many = 0
    n = background.size
    value_d = rows_d.value
    low_d = rows_d.low[j]
    above = low_d - low
    stop_d = rows_d.start[j + 1]
    stored_d = stop_d - rows_d.start[j]
    b_d = rows_d.background[j]
    # how many entries of row d were below the last background
    n_below_base = np.zeros(slopes.size, dtype=np.int64)
    for c in range(candidates.size):
        i = candidates[c]
        # Entries under the background would raise the bound again: then the background's terms are
        # left in it.
        base = background[i] if lows[i] >= background[i] else 0.0
        exceeds = slopes.size == 0
        for e in range(slopes.size):
            bound = excess[c, e] - above * fall[c, e]
            cap = max(caps[e] * (1.0 - 1e-11) - 1e-13, 0.0)
            if bound <= cap and cap > 0.0:
                continue
            slope = 1.0 + slopes[e]
            level = slope * low_d
            # a rounded sum cannot decide this, so each entry is compared with its level
            if cap == 0.0:
                exceeds = exceeds_a_level(i, rows, slope, level, b_d, dense)
            else:
                if base > level:
                    t = n_below_base[e]
                    while t < stored_d and slope * value_d[stop_d - 1 - t] < base:
                        t += 1
                    while t > 0 and slope * value_d[stop_d - t] >= base:
                        t -= 1
                    n_below_base[e] = t
                    of_stored = slope * sum_of_least[t] + (stored_d - t) * base
                    of_others = (n - stored_d) * min(slope * b_d, base)
                    bound -= of_stored + of_others - n * level
                k = start[i]
                while bound > cap and k < start[i + 1]:
                    d = dense[column[k]]
                    level_k = slope * (d if d >= 0.0 else b_d)
                    of_entry = max(min(value[k], level_k), level)
                    of_base = max(min(base, level_k), level)
                    bound -= of_entry - of_base
                    k += 1
                exceeds = bound > cap
            if exceeds:
                break
        found[many] = c
        many += exceeds
    return found[:many]


@kernel()
def extend_hull(first, stop, bounds, rows, work, points):
    """The hull of `points` and of each pair of a candidate q and a row d of first..stop, `stop`
    excluded, that sticks out of it."""
    hull = edges_of_hull(points)
    for j in range(first, stop):
        scattered = scatter_row(j, rows, work)
        for c in may_exceed(bounds, rows, j, rows, work):
            i = bounds.candidates[c]
            if i == j:
                continue
            pair, last_slope = compress_pair(i, rows, scattered, work)
            if sticks_out(*pair, last_slope, hull, work.pending):
                new = prefix_points(*pair)
                for m in range(new.shape[0]):
                    new[m, 3] = i
                    new[m, 4] = j
                points = add_pair(points, new)
                hull = edges_of_hull(points)
                if is_diagonal(points):
                    break
        gather_row(j, rows, work)
    return points


@kernel()
def steepen_tangent(first, stop, bounds, rows, work, inverse, best):  # noqa: PLR0917 - a kernel: a tangent as two numbers
    """The steepest tangent from (-inverse, 0) to a pair of a candidate q and a row d of
    first..stop, `stop` excluded, if steeper than the slope `best`, and its rows q and d; else
    `best`, -1, -1.

    The cap of `bounds`, at one slope if any, is updated from the next row d on.
    """
    best_i = best_j = -1
    for j in range(first, stop):
        scattered = scatter_row(j, rows, work)
        for c in may_exceed(bounds, rows, j, rows, work):
            i = bounds.candidates[c]
            if i == j:
                continue
            pair, _ = compress_pair(i, rows, scattered, work)
            support = best * inverse
            excess = excess_of_pair(*pair, best)
            if excess > support * (1.0 + TIE):
                slope = best_slope(*pair, inverse, best)
                if slope > best:
                    best = slope
                    best_i = i
                    best_j = j
                    bounds.caps[:] = best * inverse
        gather_row(j, rows, work)
    return best, best_i, best_j
