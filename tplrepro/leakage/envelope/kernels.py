"""Everything that Numba compiles: sums over a pair of rows, the hull of pairs' points, screens of many pairs,
sparse rows; and the recursion of `vertex`.

It is one file because Numba stores compiled functions on disk and compiles a function again if its own file
has changed, but not if a function or constant that it uses has changed in another file. A small problem takes
less time than loading Numba, so kernels run as plain Python until `expect` announces more work, with the same
results. Then each is compiled on its first call, and for one type of argument only: rows are read-only,
C-contiguous float64, both of a dense matrix and of a sparse pair in its workspace, transposed rows float32,
and pairs of rows C-contiguous int64. Where `np.int64(0)` is written, a literal 0, which has a type of its own
in Numba, would cause a second compilation.

Points are rows d(S), gap(S), 1 - q(S), i, j of an array (see the package's docstring); i and j are the
numbers of the two rows q and d. All sums that enter a result are compensated. Kernels release the GIL.
"""

import warnings
from collections.abc import Callable
from functools import cache, cached_property
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from tplrepro.leakage import vertex

# Slopes are finite: a vertex with d(S) = 0 is tangent at every slope, and 1e300 stands for "above every
# ratio".
STEEPEST = 1e300
# A point counts as outside the hull if it exceeds it by this fraction of its own gap. The loss is then off by
# at most this fraction, and pairs that tie in exact arithmetic are not sorted again and again.
TIE = 1e-15
# Bounds from sparse rows are compared with this much room, so that rounding never dismisses a pair.
ROOM = 1.0 + 1e-12
# The number of rows d side by side is padded to a multiple of this, so that no loop over them has a
# remainder.
LANES = 8
# Columns that are summed before they are added to the total: rounding errors grow with the longer of the two
# sums.
CHUNK = 64
# Rows d that go through a chunk of columns together.
GROUP = 16
# Rows of the array that `edges` returns.
SLOPE, SUPPORT, D = 0, 1, 2
# The most intervals of slopes of one pair that wait to be searched.
PENDING = 64

# FLOW and CLEAR only choose where a search goes on or ends: `proved_ratio` bounds whatever tree is the last.
# A flow of a tree counts as negative below this share of the numbers that it is the difference of.
FLOW = 2.0**-48
# Flows that are sums below a node are clear of rounding errors beyond this share of all gains.
CLEAR = 1e-12

# Inputs are finite. EXACT_ORDER keeps the order of operations, which small differences need; FAST lets sums
# be in any order, and so vectorised. Compensated sums are compiled with neither.
EXACT_ORDER = {"nnan", "ninf", "nsz", "contract"}
FAST = EXACT_ORDER | {"reassoc"}
# Elementary steps that take as long uncompiled as loading Numba and its stored kernels.
WORTH = 200_000


class Kernel:
    """A function that runs as plain Python until `expect` has announced enough work to compile it."""

    def __init__(self, function: Callable, options: dict[str, Any]):
        self.function, self.options = function, options

    @cached_property
    def compiled(self):
        options = {"cache": True, "nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True} | self.options
        return load_numba().njit(**options)(self.function)

    @property
    def _numba_type_(self):  # compiled, kernels call each other's compiled functions
        return self.compiled._numba_type_

    def __call__(self, *arguments):
        if Kernel.worth <= 0:
            return self.compiled(*arguments)
        with np.errstate(all="ignore"):  # as in compiled code
            return uncompiled()[self.function.__name__](*arguments)

    #: Steps left before kernels are compiled.
    worth = WORTH


def kernel(**options) -> Callable[[Callable], Kernel]:
    """Decorator that makes a function a kernel; `options` of numba.njit are added to those of all kernels."""
    return lambda function: Kernel(function, options)


def expect(steps: int) -> None:
    """Announce `steps` elementary steps; when a process has announced more than WORTH, kernels are compiled."""
    Kernel.worth -= steps


@cache
def uncompiled() -> dict[str, Any]:
    """This module's names, but kernels are plain functions that call each other as such."""
    names = dict(globals())
    for name, value in globals().items():
        if isinstance(value, Kernel):
            plain = value.function
            names[name] = FunctionType(plain.__code__, names) if plain.__globals__ is globals() else plain
    return names


@cache
def load_numba():
    """Numba, with the formulas of `vertex` registered; it warns once in a process when it compiles a kernel."""
    import numba
    from numba.core import event
    from numba.extending import register_jitable

    for formula in (vertex.vertex_crossing, vertex.vertex_loss, vertex.vertex_slope):
        register_jitable(error_model="numpy")(formula)

    class Announcer(event.Listener):
        said = False

        def on_start(self, event):
            dispatcher = event.data["dispatcher"]
            if self.said or dispatcher.py_func.__module__ not in (__name__, vertex.__name__):
                return
            self.said = True
            message = f"compiling kernels, which takes seconds, once: they are kept in {dispatcher.stats.cache_path}"
            warnings.warn_explicit(message, UserWarning, "tplrepro", 1)  # in one line, as no source belongs to it

        def on_end(self, event):
            pass

    event.register("numba:compile", Announcer())
    return numba


# The recursion and its formulas are together in `vertex`, in plain Python, so that Numba notices changes of
# that file.
ascend = kernel()(vertex.ascend)
ascend_each = kernel()(vertex.ascend_each)


def thread_count(n: int, enough: int) -> int:
    """Number of threads that Numba may use; 1 for fewer states than `enough`, which do not repay starting more."""
    return 1 if n < enough else load_numba().config.NUMBA_NUM_THREADS


@kernel(fastmath=FAST)
def farthest(first, second, least):
    """The largest range above `least` of the difference of a row of `first` and one of `second`, and their numbers."""
    best_i, best_j = np.int64(0), np.int64(0)
    for i in range(first.shape[0]):
        for j in range(second.shape[0]):
            high = low = first[i, 0] - second[j, 0]
            for k in range(first.shape[1]):
                difference = first[i, k] - second[j, k]
                high = max(high, difference)
                low = min(low, difference)
            if high - low > least:
                least, best_i, best_j = high - low, i, j
    return least, best_i, best_j


# One pair of rows: `rows, i, j, size` stands for the first `size` columns of q = rows[i] and d = rows[j].
# Rows are indexed, not sliced, because making a slice costs as much as a pass over 200 columns.


@kernel()
def add(total, lost, term):
    """One step of a compensated sum: the total, and the part of the term that the addition lost."""
    term -= lost
    new = total + term
    return new, (new - total) - term


@kernel(fastmath=FAST)
def excess(rows, i, j, size, mu):
    """s(mu) = sum_k max(q_k - (1 + mu) d_k, 0)."""
    total = 0.0
    for k in range(size):  # the difference first: q - (1 + mu) d would lose its digits for small mu
        total += max((rows[i, k] - rows[j, k]) - mu * rows[j, k], 0.0)
    return total


@kernel()
def point_at(rows, i, j, size, mu):
    """The pair's own vertex (d(S), gap(S)) in direction mu."""
    d_sum = d_lost = gap_sum = gap_lost = 0.0
    for k in range(size):
        gap = rows[i, k] - rows[j, k]
        if gap > mu * rows[j, k]:
            d_sum, d_lost = add(d_sum, d_lost, rows[j, k])
            gap_sum, gap_lost = add(gap_sum, gap_lost, gap)
    return d_sum, gap_sum


@kernel()
def best_slope(rows, i, j, size, inverse, best):
    """The pair's steepest tangent from (-inverse, 0) by Dinkelbach's iteration, if steeper than `best`; else `best`."""
    while True:
        d_sum, gap_sum = point_at(rows, i, j, size, best)
        slope = gap_sum / (d_sum + inverse)
        if not slope > best:
            return best
        best = slope


@kernel()
def prefix_points(rows, i, j, size):
    """All vertices of one pair: columns with q_k > d_k in order of falling q_k/d_k, summed up (Theorem 8 of [1])."""
    chosen, ratio = np.empty(size, dtype=np.int64), np.empty(size)
    m = np.int64(0)
    rest = rest_lost = 0.0
    for k in range(size):
        gap = rows[i, k] - rows[j, k]
        if gap > 0.0:
            chosen[m], ratio[m] = k, 2.0**60 * rows[j, k] / gap  # scaled, as d may be subnormal
            m += 1
        else:
            rest, rest_lost = add(rest, rest_lost, rows[i, k])
    order = np.argsort(ratio[:m], kind="mergesort")  # stable
    points = np.empty((m, 5))
    d_sum = d_lost = gap_sum = gap_lost = 0.0
    for at in range(m):
        k = chosen[order[at]]
        d_sum, d_lost = add(d_sum, d_lost, rows[j, k])
        gap_sum, gap_lost = add(gap_sum, gap_lost, rows[i, k] - rows[j, k])
        points[at, 0], points[at, 1] = d_sum, gap_sum
        points[at, 3], points[at, 4] = i, j
    for at in range(m - 1, -1, -1):
        points[at, 2] = rest
        rest, rest_lost = add(rest, rest_lost, rows[i, chosen[order[at]]])
    return points


# The hull and the pairs that stick out of it.


@kernel()
def edges(points):
    """The hull of k vertices as kernels take it (3, k + 1): its edges' slopes, 0 first and the tangent
    through the origin last; its support function there; each vertex's d, and 0.
    """
    hull = np.empty((3, points.shape[0] + 1))
    d = gap = hull[SLOPE, 0] = hull[D, points.shape[0]] = 0.0
    for e in range(points.shape[0], 0, -1):  # from the origin on
        rise, run = points[e - 1, 1] - gap, points[e - 1, 0] - d
        hull[SLOPE, e] = rise / run if run > rise / STEEPEST else STEEPEST
        support = gap - hull[SLOPE, e] * d  # of the edge's two ends the one with less rounding
        d, gap = points[e - 1, 0], points[e - 1, 1]
        hull[SUPPORT, e] = support if d > 0.0 else gap  # of a vertex with d = 0 at any slope
        hull[D, e - 1] = d
    hull[SUPPORT, 0] = gap
    return hull


@kernel()
def is_diagonal(points):
    """Whether (0, 1) is on the hull: two rows have disjoint supports, L(alpha) = alpha, and nothing can exceed it."""
    return points.shape[0] > 0 and points[0, 0] == 0.0 and points[0, 2] == 0.0


@kernel()
def hull_in_order(points):
    """The vertices, from the largest gap to the largest gap/d, of points with rising d.

    A point that exceeds the chord of its neighbours by less than the fraction TIE of its gap is left out.
    """
    stack = np.empty((points.shape[0] + 1, 5))
    top = stack[0, 0] = stack[0, 1] = 0  # under the first vertex lies the origin (S empty)
    for k in range(points.shape[0]):
        d, gap = points[k, 0], points[k, 1]
        if gap <= stack[top, 1] * (1.0 + TIE):
            continue
        while top > 0:
            under_d, under_gap = stack[top - 1, 0], stack[top - 1, 1]
            if d > stack[top, 0]:
                share = (stack[top, 0] - under_d) / (d - under_d)
                if stack[top, 1] * (1.0 - TIE) > under_gap + share * (gap - under_gap):
                    break
            top -= 1
        top += 1
        for c in range(5):  # assigning whole rows would take seconds to compile
            stack[top, c] = points[k, c]
    return stack[top:0:-1].copy()


@kernel()
def add_pair(points, new):
    """The hull of the hull `points` and of the points `new` of one pair."""
    # The hull's points come with falling d, those of a pair with rising d.
    merged = np.concatenate((points[::-1], new))
    return hull_in_order(merged[np.argsort(merged[:, 0].copy(), kind="mergesort")])


@kernel()
def outside(rows, i, j, size, mu, support):
    """The accurate form of s(mu) > h(mu), used only where the fast sum exceeds h; each gap is reduced by TIE.

    Columns that add only rounding at this slope are thus not part of the point.
    """
    d_sum, gap_sum = point_at(rows, i, j, size, mu / (1.0 - TIE))
    return gap_sum * (1.0 - TIE) - mu * d_sum > support


@kernel()
def sticks_out(rows, i, j, size, far, hull, pending):
    """Whether the points of the pair leave the hull, given by its `edges`.

    `far` is a slope above which the excess is 0; `pending` is space for intervals that are still to be
    searched.
    """
    a, mu_a, s_a = 0, 0.0, excess(rows, i, j, size, 0.0)
    if s_a > hull[SUPPORT, 0] * (1.0 + TIE) and outside(rows, i, j, size, 0.0, hull[SUPPORT, 0]):
        return True
    if s_a == 0.0:  # no entry of q exceeds that of d
        return False
    b, mu_b, s_b = hull.shape[1] - 1, far, 0.0
    if far >= hull[SLOPE, b]:
        mu_b = hull[SLOPE, b]
        s_b = excess(rows, i, j, size, mu_b)
        if s_b > hull[SUPPORT, b] and outside(rows, i, j, size, mu_b, hull[SUPPORT, b]):
            return True
    left = 0
    while True:
        fall = (s_a - s_b) / (mu_b - mu_a)
        # h less the chord is convex: smallest at the first edge whose vertex has d <= the chord's fall.
        low, half = a + 1, b - a - 1
        while half > 0:
            step = (half + 1) >> 1
            low += step if hull[D, low + step - 1] > fall else 0
            half -= step
        mu, support = hull[SLOPE, low], hull[SUPPORT, low]
        # The chord by the share of its length: the fall itself may be below all doubles.
        chord = s_b + (s_a - s_b) * ((mu_b - mu) / (mu_b - mu_a))
        if low < b and mu < mu_b and chord > support * (1.0 + TIE):
            s = excess(rows, i, j, size, mu)
            # Where `pending` is full, the pair is sorted instead, which gives the same hull.
            if left == PENDING or (s > support * (1.0 + TIE) and outside(rows, i, j, size, mu, support)):
                return True
            pending[left, 0], pending[left, 1], pending[left, 2] = b, mu_b, s_b
            left += 1
            b, mu_b, s_b = low, mu, s
        elif left == 0:
            return False
        else:
            left -= 1
            a, mu_a, s_a = b, mu_b, s_b
            b, mu_b, s_b = int(pending[left, 0]), pending[left, 1], pending[left, 2]


@kernel()
def grow(points, rows, candidates, far):
    """Add to the hull every candidate pair (i, j) of dense rows that still sticks out of it."""
    hull, pending, n = edges(points), np.empty((PENDING, 3)), rows.shape[1]
    for c in range(candidates.shape[0]):
        i, j = candidates[c, 0], candidates[c, 1]
        if i != j and sticks_out(rows, i, j, n, far[j], hull, pending):
            points = add_pair(points, prefix_points(rows, i, j, n))
            hull = edges(points)
            if is_diagonal(points):
                break
    return points


# All pairs of few dense rows: at one slope after the other, all excesses at once.


@kernel(fastmath=EXACT_ORDER)
def best_at(slope, rows, columns, least, used, totals):
    """The largest excess at the slope of all pairs of rows, and its pair.

    `columns` holds the rows d side by side, `least` the smallest entry of each column; `used` and `totals` are space.
    """
    best, best_i, best_j = 0.0, np.int64(0), np.int64(0)
    for i in range(rows.shape[0]):
        size = 0
        for k in range(rows.shape[1]):
            used[size] = k
            size += rows[i, k] - least[k] > slope * least[k]
        totals[:] = 0.0
        for m in range(size):
            k, q = used[m], rows[i, used[m]]
            for j in range(totals.size):
                totals[j] += max((q - columns[k, j]) - slope * columns[k, j], 0.0)
        j = np.argmax(totals)
        if totals[j] > best:
            best, best_i, best_j = totals[j], np.int64(i), np.int64(j)
    return best, best_i, best_j


@kernel()
def first_outside(rows, slope, support):
    """The first pair that exceeds the hull at the slope, or -1, -1."""
    n = rows.shape[0]
    for i in range(n):
        for j in range(n):
            if excess(rows, i, j, n, slope) > support * (1.0 + TIE) and outside(rows, i, j, n, slope, support):
                return i, j
    return -1, -1


@kernel()
def hull_of_few(rows):
    """The hull of all pairs of rows, and whether it is complete: the best pair at an edge joins it until none is left.

    It is not complete if the best pair is in the hull already, since others may then hide behind it.
    """
    n = rows.shape[0]
    columns, least = np.full((n, -(-n // LANES) * LANES), 2.0), rows[0].copy()  # 2 exceeds every probability
    for i in range(n):
        for k in range(n):
            columns[k, i] = rows[i, k]
            least[k] = min(least[k], rows[i, k])
    used, totals = np.empty(n + 1, dtype=np.int64), np.empty(columns.shape[1])
    points, different = np.empty((0, 5)), 1
    while different < n and (rows[different] == rows[0]).all():
        different += 1
    if different == n:
        return points, True
    first = np.int64(0)  # a literal 0 would have `prefix_points` compiled once more
    points = add_pair(points, prefix_points(rows, different, first, n))  # of pairs that tie, this one is the witness
    hull, e = edges(points), 0
    while e < hull.shape[1]:
        slope, support = hull[SLOPE, e], hull[SUPPORT, e]
        best, i, j = best_at(slope, rows, columns, least, used, totals)
        if best > support * (1.0 + TIE) and not outside(rows, i, j, n, slope, support):
            i, j = first_outside(rows, slope, support)  # rounding made the excess of that pair the largest
        if best > support * (1.0 + TIE) and i >= 0:
            points = add_pair(points, prefix_points(rows, i, j, n))
            before, hull = hull, edges(points)
            tried, e = e, 0
            while e <= tried and (hull[:2, e] == before[:2, e]).all():
                e += 1
            if e > tried:
                return points, False
        else:
            e += 1
    return points, True


# Many pairs of dense rows at once: one row d and all rows q. `transposed[k, i]` is column k of row i, in
# single precision.


class Screen(NamedTuple):
    """Slopes with the cap on the excess at each; `edge` is the hull's edge that each slope belongs to. Empty: none."""

    slope: np.ndarray
    cap: np.ndarray
    edge: np.ndarray


@kernel()
def last_slopes(rows, largest):
    """For each row d a slope from which on its excess is 0 whatever the row q; `largest`: each column's entry."""
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
    """For each of a group of rows d the columns in use, their levels and number; and room for sums over a chunk."""
    columns, levels = np.empty((GROUP, n), np.int64), np.empty((GROUP, n), np.float32)
    return columns, levels, np.zeros(GROUP, dtype=np.int64), np.empty(n, np.float32)


@kernel()
def use(m, n, room):
    """Begin with all columns for row m of the group."""
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
def chain(slopes, caps, edge, far, hull, most):
    """Which of the caps at these slopes, that of `edge` each, make a screen: the fewest, taken greedily, that
    settle a row d whose excesses are 0 from slope `far` on; none if that takes more than `most`.
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
    """Of each two equal pairs (2 S, 2), tangent at slopes (S,), give the first the best q and the second the best d."""
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


# Rows of a sparse matrix over a background, and a pair of them as a short dense pair.
#
# Columns stored in neither row of a pair all have the same ratio, so they act as one column with their total
# mass; so do the columns that only row d stores, for each of its few distinct values. A pair then has about
# as many columns as row q stores, and goes through the same kernels as a dense one.


class SparseRows(NamedTuple):
    """Rows i: entries value[start[i]:start[i + 1]], falling, at `column`; everywhere else `background[i]`.
    The smallest of all is low[i].
    """

    start: np.ndarray
    column: np.ndarray
    value: np.ndarray
    background: np.ndarray
    low: np.ndarray


class Workspace(NamedTuple):
    """Room for one row d spread out (its entries, -1 where it stores none, the sums of its least entries, and
    runs of equal ones) and for one pair.

    `dense` is -1 everywhere but between `scatter` and `gather`, `taken` is 0. `pair` is `buffer`, read-only.
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
    """Candidates q, and bounds on their excess at few slopes, with a cap at each: it is at most excess[c, e]
    less x fall[c, e] with a row d whose smallest entry is low + x.
    """

    candidates: np.ndarray
    low: float
    excess: np.ndarray
    fall: np.ndarray
    slope: np.ndarray
    cap: np.ndarray


@kernel()
def falling(start, value):
    """The order of the entries in which each row's value falls."""
    order, keys = np.empty(value.size, dtype=np.int64), np.empty(value.size)
    for i in range(start.size - 1):
        size = start[i + 1] - start[i]
        for k in range(size):
            keys[k] = -value[start[i] + k]
        of_row = np.argsort(keys[:size], kind="mergesort")
        for k in range(size):
            order[start[i] + k] = start[i] + of_row[k]
    return order


@kernel()
def sums_of_largest(rows):
    """top_i(m) and m for the m that matter, row i's from start[i] + i on."""
    value, n = rows.value, rows.background.size
    top, size = np.empty(value.size + n), np.empty(value.size + n)
    for i in range(n):
        k, stop = rows.start[i], rows.start[i + 1]
        missing = n - (stop - k)
        b = rows.background[i] if missing > 0 else 0.0
        total = count = 0.0
        for at in range(k + i, stop + i + 1):
            if at == k + i and (k == stop or value[k] < b):  # the background's turn
                total, count = total + missing * b, count + missing
            else:
                total, count = total + value[k], count + 1.0
                k += 1
            top[at], size[at] = total, count
    return top, size


@kernel()
def scatter(j, rows, work):
    """Spread row j out as d; returns its numbers of runs of equal values and of entries, and its background."""
    runs = 0
    for k in range(rows.start[j], rows.start[j + 1]):
        c, value = rows.column[k], rows.value[k]
        work.dense[c] = value
        if runs == 0 or value != work.run_value[runs - 1]:
            work.run_value[runs], work.run_size[runs] = value, 0
            runs += 1
        work.run_size[runs - 1] += 1
        work.run_of[c] = runs - 1
    stored = rows.start[j + 1] - rows.start[j]
    for k in range(stored):
        work.sum_of_least[k + 1] = work.sum_of_least[k] + rows.value[rows.start[j + 1] - 1 - k]
    return runs, stored, rows.background[j]


@kernel()
def gather(j, rows, work):
    """Take row j back in."""
    for k in range(rows.start[j], rows.start[j + 1]):
        work.dense[rows.column[k]] = -1.0


@kernel()
def compress(i, rows, scattered, work):
    """Row i as q and the scattered row as d with equal columns merged, in work.buffer.

    Returns the pair and a slope from which on the excess is 0. Columns with q <= d count only towards
    1 - q(S): they become one column with d = 1, which is never chosen.
    """
    runs, stored_j, b_j = scattered
    b_i, stored_i = rows.background[i], rows.start[i + 1] - rows.start[i]
    q, d, dense, taken = work.buffer[0], work.buffer[1], work.dense, work.taken
    used, shared, rest = 0, 0, 0.0
    # Branch-free, because branches would be unpredictable here: unwanted entries are overwritten, or counted
    # in the last place.
    for k in range(rows.start[i], rows.start[i + 1]):
        value, value_j = rows.value[k], dense[rows.column[k]]
        shared += value_j >= 0.0
        value_j = value_j if value_j >= 0.0 else b_j
        q[used], d[used] = value, value_j
        used += value > value_j
        rest += 0.0 if value > value_j else value
    alone = stored_j - shared  # columns that row d alone stores: those below b_i can be chosen
    if runs > 0 and work.run_value[runs - 1] < b_i:
        for k in range(rows.start[i], rows.start[i + 1]):
            c = rows.column[k]
            taken[work.run_of[c] if dense[c] >= 0.0 else dense.size] += 1
        r = runs - 1
        while r >= 0 and work.run_value[r] < b_i:
            count = work.run_size[r] - taken[r]
            if count > 0:
                q[used], d[used] = count * b_i, count * work.run_value[r]
                used += 1
                alone -= count
            r -= 1
        for k in range(rows.start[i], rows.start[i + 1]):
            c = rows.column[k]
            taken[work.run_of[c] if dense[c] >= 0.0 else dense.size] = 0
    rest += alone * b_i
    neither = work.dense.size - stored_i - stored_j + shared
    if b_i > b_j and neither > 0:
        q[used], d[used] = neither * b_i, neither * b_j
        used += 1
    else:
        rest += neither * b_i
    far = 0.0
    for c in range(used):
        gap = q[c] - d[c]
        if gap > far * d[c]:
            far = gap / d[c] if d[c] > gap / STEEPEST else STEEPEST
    q[used], d[used] = min(rest, 1.0), 1.0
    return (work.pair, np.int64(0), np.int64(1), used + 1), max(far * ROOM, 1e-300)


@kernel()
def excess_over(low, candidates, rows, top, size, slopes):
    """The excess of each candidate q at each slope, (candidates, slopes), over a row that is `low`
    everywhere; `top` and `size` as from `sums_of_largest`.
    """
    start, value, background = rows.start, rows.value, rows.background
    bounds = np.empty((candidates.size, slopes.size))
    for c in range(candidates.size):
        i = candidates[c]
        first, stop = start[i], start[i + 1]
        for e in range(slopes.size):
            level = (1.0 + slopes[e]) * low
            k, end = first, stop  # the entries above the level
            while k < end:
                middle = (k + end) >> 1
                if value[middle] > level:
                    k = middle + 1
                else:
                    end = middle
            last = i + k - 1 + (background[i] > level and stop - first < background.size)
            bounds[c, e] = max(top[last] - size[last] * level, 0.0) if last >= first + i else 0.0
    return bounds


@kernel()
def may_exceed(bounds, rows, j, rows_d, work):
    """Numbers of the candidates q whose excess over row j of `rows_d` (scattered) may exceed the cap at some slope.

    The bound over a row that is `low` everywhere is reduced entry by entry, beginning with the largest of row
    q, until it is under the cap. One loop covers all candidates, because a call for each would take ten times
    as long.
    """
    found = np.empty(bounds.candidates.size, dtype=np.int64)
    many = 0
    n, above = rows.background.size, rows_d.low[j] - bounds.low
    stop_d, b_d = rows_d.start[j + 1], rows_d.background[j]
    stored_d = stop_d - rows_d.start[j]
    under = np.zeros(bounds.slope.size, dtype=np.int64)  # where the last search for the background ended
    for c in range(found.size):
        i = bounds.candidates[c]
        b, first, stop = rows.background[i], rows.start[i], rows.start[i + 1]
        # Entries under the background would raise the bound again: then the background's own share is left in
        # it.
        base = b if rows.low[i] >= b else 0.0
        exceeds = bounds.slope.size == 0
        for e in range(bounds.slope.size):
            bound = bounds.excess[c, e] - above * bounds.fall[c, e]
            cap = max(bounds.cap[e] * (1.0 - 1e-11) - 1e-13, 0.0)
            if bound <= cap and cap > 0.0:
                continue
            slope = 1.0 + bounds.slope[e]
            level = slope * rows_d.low[j]
            if cap == 0.0:  # a rounded sum cannot decide this, so each entry is compared with its level
                exceeds = b * ROOM > level
                k = first
                while not exceeds and k < stop and rows.value[k] * ROOM > level:
                    d = work.dense[rows.column[k]]
                    exceeds = rows.value[k] * ROOM > slope * (d if d >= 0.0 else b_d)
                    k += 1
            else:
                if base > level:  # reduce the bound by what row d takes from a row q that is its background everywhere
                    t = under[e]
                    while t < stored_d and slope * rows_d.value[stop_d - 1 - t] < base:
                        t += 1
                    while t > 0 and slope * rows_d.value[stop_d - t] >= base:
                        t -= 1
                    under[e] = t
                    of_stored = slope * work.sum_of_least[t] + (stored_d - t) * base
                    bound -= of_stored + (n - stored_d) * min(slope * b_d, base) - n * level
                k = first
                while bound > cap and k < stop:
                    d = work.dense[rows.column[k]]
                    level_k = slope * (d if d >= 0.0 else b_d)
                    bound -= max(min(rows.value[k], level_k), level) - max(min(base, level_k), level)
                    k += 1
                exceeds = bound > cap
            if exceeds:
                break
        found[many] = c
        many += exceeds
    return found[:many]


@kernel()
def may_exceed_each(bounds, rows, j, rows_d, work):
    """Numbers of the candidates q that may exceed the caps with row j of `rows_d`, nowhere under `bounds.low`."""
    scatter(j, rows_d, work)
    found = may_exceed(bounds, rows, j, rows_d, work)
    gather(j, rows_d, work)
    return found


@kernel()
def extend(first, stop, bounds, rows, work, points):
    """Add to the hull each pair of a candidate q and a row d of first..stop that sticks out of it."""
    hull = edges(points)
    for j in range(first, stop):
        scattered = scatter(j, rows, work)
        for c in may_exceed(bounds, rows, j, rows, work):
            i = bounds.candidates[c]
            if i == j:
                continue
            pair, far = compress(i, rows, scattered, work)
            if sticks_out(*pair, far, hull, work.pending):
                new = prefix_points(*pair)
                for m in range(new.shape[0]):
                    new[m, 3], new[m, 4] = i, j
                points = add_pair(points, new)
                hull = edges(points)
                if is_diagonal(points):
                    break
        gather(j, rows, work)
    return points


@kernel()
def steepen(first, stop, bounds, rows, work, inverse, best):
    """The steepest tangent from (-inverse, 0) among the same pairs, if steeper than `best`, and its rows i and j.

    The cap, at one slope if any, is updated from the next row d on.
    """
    best_i = best_j = -1
    for j in range(first, stop):
        scattered = scatter(j, rows, work)
        for c in may_exceed(bounds, rows, j, rows, work):
            i = bounds.candidates[c]
            if i == j:
                continue
            pair, _ = compress(i, rows, scattered, work)
            if excess(*pair, best) > best * inverse * (1.0 + TIE):
                slope = best_slope(*pair, inverse, best)
                if slope > best:
                    best, best_i, best_j = slope, i, j
                    bounds.cap[:] = best * inverse
        gather(j, rows, work)
    return best, best_i, best_j


# For `pairwise`: the largest q x / d x over x_j <= e^D_jk x_k, by the simplex method. A basis is a tree of
# tight constraints. `parent` (n,) has 0 as its root, and upper[m] says that m is the larger end: x_m = e^D_mp
# x_p.


@kernel()
def place(parent, upper, bounds, order, y):
    """Set y = log x, where every constraint of the tree is tight, and an order with each node after its parent."""
    y[:] = np.nan
    y[0], order[0], placed = 0.0, 0, 1
    path = np.empty(parent.size, np.int64)
    for start in range(parent.size):
        length, m = 0, start
        while np.isnan(y[m]):
            path[length] = m
            length, m = length + 1, parent[m]
        for m in path[:length][::-1]:
            p = parent[m]
            y[m] = y[p] + bounds[m, p] if upper[m] else y[p] - bounds[p, m]
            order[placed] = m
            placed += 1


@kernel()
def sums_of_both_sides(values, parent, order):
    """For each node but the root, the sum of the values (n,) at and below it, and that of all others, all >= 0."""
    below, beside, passed = values.copy(), np.zeros(values.size), values.copy()
    for m in order[:0:-1]:
        below[parent[m]] += below[m]
    for m in order[1:]:
        beside[m] = passed[parent[m]]
        passed[parent[m]] += below[m]
    passed[:] = 0.0
    for m in order[:0:-1]:
        beside[m] += passed[parent[m]]
        passed[parent[m]] += below[m]
    for m in order[1:]:
        beside[m] += beside[parent[m]]
    return below, beside


@kernel()
def arc_to_cut(q, d, parent, upper, order, x):
    """The node above which a cut raises q x / d x most, -1 if none does, and that ratio."""
    gain, cost = q * x, d * x
    ratio = gain.sum() / cost.sum()
    gains_below, gains_beside = sums_of_both_sides(gain, parent, order)
    costs_below, costs_beside = sums_of_both_sides(ratio * cost, parent, order)
    cut, least = -1, 0.0
    for m in order[1:]:
        below, beside = gains_below[m] + costs_below[m], gains_beside[m] + costs_beside[m]
        flow = gains_below[m] - costs_below[m] if below < beside else costs_beside[m] - gains_beside[m]
        flow = flow if upper[m] else -flow
        if flow < least and flow < -FLOW * min(below, beside):
            cut, least = m, flow
    return cut, ratio


@kernel()
def clear_cut(gain, cost, parent, upper, order):
    """The cut of `arc_to_cut`, by fewer sums, where it is beyond their rounding error; and the same ratio."""
    ratio = gain.sum() / cost.sum()
    flows = gain - ratio * cost
    cut, least = -1, -CLEAR * gain.sum()
    for m in order[:0:-1]:
        flow = flows[m] if upper[m] else -flows[m]
        if flow < least:
            cut, least = m, flow
        flows[parent[m]] += flows[m]
    return cut, ratio


@kernel(fastmath=FAST)
def least_sum(row, levels):
    """The least sum of two elements in the same place."""
    least = row[0] + levels[0]
    for k in range(1, row.size):
        least = min(least, row[k] + levels[k])
    return least


@kernel()
def exchange(cut, parent, upper, bounds, transposed, order, y):
    """Cut the tree above a node, and join both parts by the constraint that is tight first as x changes in one.

    The part below the cut is returned, (n,) of bool.
    """
    below = np.zeros(parent.size, np.bool_)
    below[cut] = True
    for m in order[1:]:
        below[m] |= below[parent[m]]
    above_falls = not upper[cut]
    # The slack of j, k is D_jk - y_j + y_k, where y_k falls. Each node of the smaller part looks at the other part.
    smaller = below if 2 * below.sum() <= below.size else ~below
    smaller_falls = smaller[cut] != above_falls
    table, sign = (transposed, 1.0) if smaller_falls else (bounds, -1.0)
    levels = np.where(smaller, STEEPEST, -sign * y)
    least, inside = np.inf, cut
    for m in np.flatnonzero(smaller):
        slack = least_sum(table[m], levels) + sign * y[m]
        if slack < least:
            least, inside = slack, m
    outside = np.argmin(table[inside] + levels)
    node, above = (inside, outside) if smaller[cut] else (outside, inside)
    larger, m = above_falls, -1
    while m != cut:  # the path from the new end to the old one is turned round
        m = node
        node, was_larger = parent[m], upper[m]
        parent[m], upper[m] = above, larger
        above, larger = m, not was_larger
    return below


@kernel()
def proved_ratio(q, d, parent, upper, order, bounds, ratio):
    """A ratio, little above the one given, that no x exceeds: weights >= 0 of the tree's constraints prove it.

    At each node, what it has, rounded up, is at most what it can take, rounded down. inf if no ratio is
    proved.
    """
    error, step = np.full(parent.size, 9 * 2.0**-53), 2.0**-52
    for m in order[1:]:
        error[parent[m]] += 2.0**-53  # of a sum with one more term
    while step < 1e30:
        level = ratio * (1.0 + step)
        has, takes = q.copy(), level * d
        proved = True
        for m in order[::-1]:
            p, rest = parent[m], has[m] * (1.0 + error[m]) - takes[m] * (1.0 - error[m])
            if rest > 0.0:
                if m == 0 or not upper[m]:
                    proved = False
                    break
                has[p] += rest * np.exp(bounds[m, p]) * (1.0 + error[m])
            elif m != 0 and not upper[m]:
                takes[p] -= rest * np.exp(-bounds[p, m]) * (1.0 - error[m])
        if proved:
            return level
        step *= 2.0
    return np.inf


@kernel()
def largest_ratios(rows, i, bounds, tilted, patience, ratios):
    """Set ratios[l] (n,) to a proved bound of B_i x / B_l x for x_j <= e^bounds[j, k] x_k.

    `tilted` (n, n) are finite bounds without ties, which choose the trees. A search stops after `patience`
    exchanges without a gain.
    """
    columns = np.empty(0, np.int64)
    for j in range(rows.shape[0]):
        if (rows[i] == rows[j]).all():
            ratios[j] = 1.0
            continue
        possible = np.flatnonzero(rows[i] + rows[j] > 0.0)
        if possible.size != columns.size or (possible != columns).any():
            columns = possible
            near, far = tilted[columns][:, columns], bounds[columns][:, columns]
            finite, transposed = np.minimum(far, near), near.T.copy()
            parent, order = np.zeros((2, columns.size), np.int64)
            upper, y = np.ones(columns.size, np.bool_), np.empty(columns.size)
        q, d = rows[i][columns], rows[j][columns]
        best, stalled = 0.0, 0
        place(parent, upper, near, order, y)
        x = np.exp(y)
        while True:
            cut, ratio = clear_cut(q * x, d * x, parent, upper, order)
            if cut < 0:
                cut, ratio = arc_to_cut(q, d, parent, upper, order, x)
            stalled = 0 if ratio > best else stalled + 1
            if cut < 0 or stalled > patience:
                break
            best = max(best, ratio)
            moved = exchange(cut, parent, upper, near, transposed, order, y)
            place(parent, upper, near, order, y)
            for m in np.flatnonzero(moved):
                x[m] = np.exp(y[m])
        place(parent, upper, finite, order, y)
        x = np.exp(y - y.max())
        ratio = (q * x).sum() / (d * x).sum()
        ratios[j] = proved_ratio(q, d, parent, upper, order, far, ratio)
