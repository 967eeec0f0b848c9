"""The hull of all points of pairs of rows, and whether a pair sticks out of it.

A pair `rows, i, j, size` is the first `size` columns of q = rows[i] and d = rows[j]. Rows are
indexed, not sliced, because making a slice costs as much as a pass over 200 columns.

Points (m, 5) are rows d(S), gap(S), 1 - q(S), i, j (see the package's docstring). Those of a hull
are its vertices by falling d; those of one pair come by rising d. `hull` (3, K + 1) is what
`edges_of_hull` returns, and `mu` is a slope.
"""

import numpy as np

from tplrepro.leakage.envelope.compiled import FAST, kernel

# Slopes are finite: a vertex with d(S) = 0 is tangent at every slope, and 1e300 stands for "above
# every ratio".
STEEPEST = 1e300
# A point counts as outside the hull if it exceeds it by this fraction of its own gap. The loss is
# then off by at most this fraction, and pairs that tie in exact arithmetic are not sorted again and
# again.
TIE = 1e-15
# Rows of the array that `edges_of_hull` returns.
SLOPE = 0
SUPPORT = 1
D = 2
# The most intervals of slopes of one pair that wait to be searched.
PENDING = 64
# The length of the runs that `stable_order` sorts by insertion before it merges them.
RUN = 8


@kernel()
def equal_rows(rows, i, j):
    """Whether two rows agree in every column."""
    for k in range(rows.shape[1]):
        if rows[i, k] != rows[j, k]:
            return False
    return True


@kernel()
def add_compensated(total, lost, term):
    """One step of a compensated sum: the new total, and what its rounding added too much.

    `lost` is that of the step before, 0 at first, and is taken from the term.
    """
    term -= lost
    new = total + term
    added = new - total
    return new, added - term


@kernel(fastmath=FAST)
def excess_of_pair(rows, i, j, size, mu):
    """The excess of a pair, s(mu) = sum_k max(q_k - (1 + mu) d_k, 0)."""
    total = 0.0
    for k in range(size):
        d = rows[j, k]
        gap = rows[i, k] - d  # first: q - (1 + mu) d would lose its digits for small mu
        term = gap - mu * d
        total += max(term, 0.0)
    return total


@kernel()
def point_at(rows, i, j, size, mu):
    """The point (d(S), gap(S)) of a pair that is farthest in direction mu: S is where q_k - d_k >
    mu d_k."""
    d_sum = d_lost = gap_sum = gap_lost = 0.0
    for k in range(size):
        d = rows[j, k]
        gap = rows[i, k] - d
        if gap > mu * d:
            d_sum, d_lost = add_compensated(d_sum, d_lost, d)
            gap_sum, gap_lost = add_compensated(gap_sum, gap_lost, gap)
    return d_sum, gap_sum


@kernel()
def best_slope(rows, i, j, size, inverse, best):
    """The slope of a pair's steepest tangent from (-inverse, 0), by Dinkelbach's iteration, if
    steeper than the slope `best`; else `best`."""
    while True:
        d_sum, gap_sum = point_at(rows, i, j, size, best)
        slope = gap_sum / (d_sum + inverse)
        if not slope > best:
            return best
        best = slope


def stable_order_of_numpy(keys, n):
    """The numbers of the first `n` keys, by rising key, equal ones by rising number."""
    return np.argsort(keys[:n], kind="stable")


# NumPy's own sort would take a second to compile, and again some in each kernel that calls it.
@kernel(in_python=stable_order_of_numpy)
def stable_order(keys, n):
    """`stable_order_of_numpy`, compiled: runs sorted by insertion, then merged two by two."""
    order = np.empty(n, np.int64)
    for start in range(0, n, RUN):
        for k in range(start, min(start + RUN, n)):
            at = k
            while at > start and keys[order[at - 1]] > keys[k]:
                order[at] = order[at - 1]
                at -= 1
            order[at] = k
    merged = np.empty(n, np.int64)
    width = RUN
    while width < n:
        for start in range(0, n, 2 * width):
            middle = min(start + width, n)
            stop = min(middle + width, n)
            left = start
            right = middle
            for at in range(start, stop):
                is_left = right == stop
                if left < middle and right < stop:
                    is_left = keys[order[left]] <= keys[order[right]]
                if is_left:
                    merged[at] = order[left]
                    left += 1
                else:
                    merged[at] = order[right]
                    right += 1
        before = order
        order = merged
        merged = before
        width *= 2
    return order


@kernel()
def prefix_points(rows, i, j, size):
    """All vertices (m, 5) of one pair by rising d: columns with q_k > d_k in order of falling
    q_k/d_k, summed up (Theorem 8 of [1])."""
    chosen = np.empty(size, np.int64)
    ratio = np.empty(size)
    m = np.int64(0)
    rest = rest_lost = 0.0
    for k in range(size):
        q = rows[i, k]
        d = rows[j, k]
        gap = q - d
        if gap > 0.0:
            scaled_d = 2.0**60 * d  # d may be subnormal
            chosen[m] = k
            ratio[m] = scaled_d / gap
            m += 1
        else:
            rest, rest_lost = add_compensated(rest, rest_lost, q)
    order = stable_order(ratio, m)
    points = np.empty((m, 5))
    d_sum = d_lost = gap_sum = gap_lost = 0.0
    for at in range(m):
        k = chosen[order[at]]
        d = rows[j, k]
        gap = rows[i, k] - d
        d_sum, d_lost = add_compensated(d_sum, d_lost, d)
        gap_sum, gap_lost = add_compensated(gap_sum, gap_lost, gap)
        points[at, 0] = d_sum
        points[at, 1] = gap_sum
        points[at, 3] = i
        points[at, 4] = j
    for at in range(m - 1, -1, -1):
        points[at, 2] = rest
        k = chosen[order[at]]
        rest, rest_lost = add_compensated(rest, rest_lost, rows[i, k])
    return points


@kernel()
def edges_of_hull(points):
    """Rows SLOPE, SUPPORT and D (3, k + 1) of the hull of k vertices.

    They are the slopes of its edges, beginning with 0 and ending with the tangent through the
    origin; the support function h at each slope; and d of each vertex, followed by that of the
    origin, 0.
    """
    k = points.shape[0]
    hull = np.empty((3, k + 1))
    hull[SLOPE, 0] = 0.0
    hull[D, k] = 0.0
    d = 0.0
    gap = 0.0
    for e in range(k, 0, -1):  # from the origin on
        next_d = points[e - 1, 0]
        next_gap = points[e - 1, 1]
        rise = next_gap - gap
        run = next_d - d
        slope = STEEPEST
        if run > rise / STEEPEST:
            slope = rise / run
        support = gap - slope * d  # of the edge's two ends the one with less rounding
        d = next_d
        gap = next_gap
        if d == 0.0:  # the same at any slope
            support = gap
        hull[SLOPE, e] = slope
        hull[SUPPORT, e] = support
        hull[D, e - 1] = d
    hull[SUPPORT, 0] = gap
    return hull


@kernel()
def is_diagonal(points):
    """Whether (0, 1) is on the hull: two rows have disjoint supports, L(alpha) = alpha, and nothing
    can exceed it."""
    if points.shape[0] == 0:
        return False
    return points[0, 0] == 0.0 and points[0, 2] == 0.0


@kernel()
def hull_in_order(points):
    """The vertices, from the largest gap to the largest gap/d, of points with rising d.

    A point that exceeds the chord of its neighbours by less than the fraction TIE of its gap is
    left out.
    """
    stack = np.empty((points.shape[0] + 1, 5))
    stack[0, 0] = stack[0, 1] = 0.0  # under the first vertex lies the origin (S empty)
    top = 0
    for k in range(points.shape[0]):
        d = points[k, 0]
        gap = points[k, 1]
        if gap <= stack[top, 1] * (1.0 + TIE):
            continue
        while top > 0:
            top_d = stack[top, 0]
            top_gap = stack[top, 1]
            under_d = stack[top - 1, 0]
            under_gap = stack[top - 1, 1]
            if d > top_d:
                share = (top_d - under_d) / (d - under_d)
                rise = gap - under_gap
                chord = under_gap + share * rise
                if top_gap * (1.0 - TIE) > chord:
                    break
            top -= 1
        top += 1
        for c in range(5):  # assigning whole rows would take seconds to compile
            stack[top, c] = points[k, c]
    return stack[top:0:-1].copy()


@kernel()
def add_pair(points, new):
    """The hull of `points`, a hull, with falling d, and `new`, the points of one pair, with rising
    d."""
    n_old = points.shape[0]
    n_new = new.shape[0]
    size = n_old + n_new
    merged = np.empty((size, 5))
    old = n_old - 1
    at = 0
    for m in range(size):
        is_old = at == n_new or (old >= 0 and points[old, 0] <= new[at, 0])
        if is_old:
            for c in range(5):
                merged[m, c] = points[old, c]
            old -= 1
        else:
            for c in range(5):
                merged[m, c] = new[at, c]
            at += 1
    return hull_in_order(merged)


@kernel()
def is_outside(rows, i, j, size, mu, support):
    """Whether s(mu) > `support`, the hull's at slope mu, in the accurate form, used only where the
    fast sum exceeds it; each gap is reduced by TIE.

    Columns that add only rounding at this slope are thus not part of the point.
    """
    kept = 1.0 - TIE
    slope = mu / kept
    d_sum, gap_sum = point_at(rows, i, j, size, slope)
    reduced_gap = gap_sum * kept
    excess = reduced_gap - mu * d_sum
    return excess > support


@kernel()
def sticks_out(rows, i, j, size, far, hull, pending):  # noqa: PLR0917 - a kernel: a slice costs as much as a pass
    """Whether the points of the pair leave the hull: s(mu) > h(mu) at the slope of some edge.

        h *                 The chord of s from slope mu_a to mu_b is, at mu,
           *                    s_b + (s_a - s_b) (mu_b - mu)/(mu_b - mu_a).
        a.__ *              s is convex, so it runs under its chord, and h is linear between slopes
           . --__*          of edges. If the chord is under h at the edge where it comes closest to
           s  .  --__b *    h, nothing between a and b sticks out. Otherwise s is computed at that
                            edge: the pair sticks out there, or two shorter intervals are left, one
                            of which waits in `pending`.

    `far` is a slope above which s is 0; `pending` (PENDING, 3) is space.
    """
    a = 0
    mu_a = 0.0
    s_a = excess_of_pair(rows, i, j, size, 0.0)
    support = hull[SUPPORT, 0]
    limit = support * (1.0 + TIE)
    if s_a > limit and is_outside(rows, i, j, size, 0.0, support):
        return True
    if s_a == 0.0:  # no entry of q exceeds that of d
        return False
    b = hull.shape[1] - 1
    mu_b = far
    s_b = 0.0
    if far >= hull[SLOPE, b]:
        mu_b = hull[SLOPE, b]
        s_b = excess_of_pair(rows, i, j, size, mu_b)
        support = hull[SUPPORT, b]
        if s_b > support and is_outside(rows, i, j, size, mu_b, support):
            return True
    waiting = 0
    while True:
        fall = (s_a - s_b) / (mu_b - mu_a)
        # h less the chord is convex: smallest at the first edge whose vertex has d <= the chord's
        # fall.
        low = a + 1
        half = b - a - 1
        while half > 0:
            step = (half + 1) >> 1
            low += step if hull[D, low + step - 1] > fall else 0
            half -= step
        mu = hull[SLOPE, low]
        support = hull[SUPPORT, low]
        # The chord by the share of its length: the fall itself may be below all doubles.
        share = (mu_b - mu) / (mu_b - mu_a)
        chord = s_b + (s_a - s_b) * share
        limit = support * (1.0 + TIE)
        if low < b and mu < mu_b and chord > limit:
            s = excess_of_pair(rows, i, j, size, mu)
            exceeds = s > limit and is_outside(rows, i, j, size, mu, support)
            # Where `pending` is full, the pair is sorted instead, which gives the same hull.
            if exceeds or waiting == PENDING:
                return True
            # The interval from here to b waits; the one from a to here is next.
            pending[waiting, 0] = b
            pending[waiting, 1] = mu_b
            pending[waiting, 2] = s_b
            waiting += 1
            b = low
            mu_b = mu
            s_b = s
        elif waiting == 0:
            return False
        else:
            waiting -= 1
            a = b
            mu_a = mu_b
            s_a = s_b
            b = int(pending[waiting, 0])
            mu_b = pending[waiting, 1]
            s_b = pending[waiting, 2]


@kernel()
def grow_hull(points, rows, candidates, far):
    """The hull of `points`, a hull, and of every candidate pair (q, d) of dense rows that still
    sticks out of it when its turn comes.

    `candidates` (C, 2) are numbers of rows; `far` (n,) is for each row d a slope from which on no
    row q has an excess over it.
    """
    hull = edges_of_hull(points)
    pending = np.empty((PENDING, 3))
    n = rows.shape[1]
    for c in range(candidates.shape[0]):
        i = candidates[c, 0]
        j = candidates[c, 1]
        if i != j and sticks_out(rows, i, j, n, far[j], hull, pending):
            points = add_pair(points, prefix_points(rows, i, j, n))
            hull = edges_of_hull(points)
            if is_diagonal(points):
                break
    return points
