"""A test that settles most pairs without looking at them one by one: caps on the excess at a few slopes.

If s(mu) is at most cap_l at slope mu_l for every l, and the polygon through the points (mu_l, cap_l) runs under the
hull's support function h, then s, being convex, is under h as well. The excesses of one row d against many rows q at
one slope are vectorised over a tile of rows q, in single precision where the caps leave room for its rounding:

    s(mu) = sum_k max(q_k, c_k) - sum_k c_k,    c_k = (1 + mu) d_k,

over the columns in which some row exceeds c_k; the others add nothing, which leaves few at steep slopes. The sum is
compared with the cap less a bound on its error, so what is settled is settled rigorously.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from tplrepro.leakage.envelope.hull import (
    EXACT_ORDER,
    TIE,
    excess,
    outside,
    small_excess,
    sticks_out_after,
    sticks_out_between,
)

__all__ = [
    "best_of_sample",
    "Screen",
    "choose_screen",
    "excess_of_all",
    "bound_excesses",
    "settles",
    "spread_edges",
    "sticks_out_above",
    "sum_of_maxima",
]

SAMPLED_PAIRS = 100
SAMPLED_SLOPES = 24
# Caps to try in turn: which of the sample's excesses from the top, a factor, and how many slopes they may take. Higher
# caps leave fewer pairs, and need more slopes to stay under the hull.
CAPS = ((1, 1.05, 10), (2, 1.0, 16))
# Columns that are summed up before they are added to the total: rounding errors grow with the longer of the two sums.
CHUNK = 64


class Screen(NamedTuple):
    """Slopes with the cap on the excess at each; `edge` is the hull's edge that each slope belongs to. Empty: none.

    `precision` is the type of the sums that are compared with the caps.
    """

    slope: np.ndarray
    cap: np.ndarray
    edge: np.ndarray
    precision: type


@numba.njit(nogil=True, cache=True, error_model="numpy")
def excess_of_all(tile, rows, j, mu, largest, total):
    """total[i] = s(mu) for d = row j and each q in the tile: tile[k, i] is column k of the tile's i-th row.

    A column is skipped if no row of the matrix, `largest`, exceeds (1 + mu) d there.
    """
    total[:] = 0.0
    # Four columns at a time, so that `total` is loaded and stored a quarter as often.
    a = b = c = size = 0
    for k in range(rows.shape[1]):
        if largest[k] - rows[j, k] <= mu * rows[j, k]:
            continue
        size += 1
        if size == 4:
            _add_four(tile, a, b, c, k, rows[j, a], rows[j, b], rows[j, c], rows[j, k], mu, total)
            size = 0
        else:
            a, b, c = b, c, k
    if size > 0:
        _add_one(tile, c, rows[j, c], mu, total)
    if size > 1:
        _add_one(tile, b, rows[j, b], mu, total)
    if size > 2:
        _add_one(tile, a, rows[j, a], mu, total)


@numba.njit(fastmath=EXACT_ORDER, nogil=True, cache=True, error_model="numpy")
def _add_four(q, k_a, k_b, k_c, k_e, a, b, c, e, mu, total):
    if mu < 0.5:
        for i in range(total.size):
            total[i] += (small_excess(q[k_a, i], a, mu) + small_excess(q[k_b, i], b, mu)) + (
                small_excess(q[k_c, i], c, mu) + small_excess(q[k_e, i], e, mu)
            )
    else:
        a, b, c, e = (1.0 + mu) * a, (1.0 + mu) * b, (1.0 + mu) * c, (1.0 + mu) * e
        for i in range(total.size):
            total[i] += (max(q[k_a, i] - a, 0.0) + max(q[k_b, i] - b, 0.0)) + (
                max(q[k_c, i] - c, 0.0) + max(q[k_e, i] - e, 0.0)
            )


@numba.njit(fastmath=EXACT_ORDER, nogil=True, cache=True, error_model="numpy")
def _add_one(q, k, d, mu, total):
    for i in range(total.size):
        total[i] += small_excess(q[k, i], d, mu)


@numba.njit(nogil=True, cache=True, error_model="numpy")
def rounding_error(columns, base, unit):
    """Bound on the error of sum_k max(q_k, c_k) - sum_k c_k as `bound_excesses` computes it, base = sum_k c_k.

    Rounding q and c to the tile's precision, whose unit roundoff is `unit`, costs unit (1 + 2 base), and the last sum
    as much; each term passes through at most two additions in its group of four, CHUNK/4 in its chunk and one for each
    chunk.
    """
    return (CHUNK // 4 + columns // CHUNK + 8) * unit * (1.0 + base)


@numba.njit(nogil=True, cache=True, error_model="numpy")
def bound_excesses(tile, rows, j, mu, largest, unit, columns, levels, part, total, bounds):
    """bounds[i] >= s(mu) for d = row j and each row q of the tile: tile[k, i] is column k of the tile's i-th row.

    columns, levels, part and total are room to work in.
    """
    size = 0
    for k in range(rows.shape[1]):
        level = (1.0 + mu) * rows[j, k]
        columns[size] = k
        levels[size] = level
        size += largest[k] > level
    base = 0.0
    for m in range(size):
        base += levels[m]
    sum_of_maxima(tile, columns, levels, size, part, total)
    # Assigned to an array's element, the shift takes the tile's precision, and so does the sum.
    levels[0] = rounding_error(size, base, unit) - base
    shift = levels[0]
    for i in range(total.size):
        bounds[i] = total[i] + shift


@numba.njit(fastmath=EXACT_ORDER, nogil=True, cache=True, error_model="numpy")
def sum_of_maxima(q, columns, levels, size, part, total):
    total[:] = 0.0
    for start in range(0, size, CHUNK):
        stop = min(start + CHUNK, size)
        part[:] = 0.0
        m = start
        # Four columns at a time, so that `part` is loaded and stored a quarter as often.
        while m + 4 <= stop:
            k_a, k_b, k_c, k_e = columns[m], columns[m + 1], columns[m + 2], columns[m + 3]
            a, b, c, e = levels[m], levels[m + 1], levels[m + 2], levels[m + 3]
            for i in range(part.size):
                part[i] += (max(q[k_a, i], a) + max(q[k_b, i], b)) + (max(q[k_c, i], c) + max(q[k_e, i], e))
            m += 4
        while m < stop:
            k_a, a = columns[m], levels[m]
            for i in range(part.size):
                part[i] += max(q[k_a, i], a)
            m += 1
        for i in range(part.size):
            total[i] += part[i]


@numba.njit(nogil=True, cache=True, error_model="numpy")
def runs_under(slopes, support, first, last, mu_a, s_a, mu_b, s_b):
    """Whether the line from (mu_a, s_a) to (mu_b, s_b) is under the support at those edges first..last before mu_b."""
    for e in range(first, last + 1):
        mu = slopes[e]
        if mu >= mu_b:
            break
        if s_b + (s_a - s_b) * ((mu_b - mu) / (mu_b - mu_a)) > support[e]:
            return False
    return True


@numba.njit(nogil=True, cache=True, error_model="numpy")
def settles(slope, cap, edge, far, slopes, support):
    """Whether the caps settle a row d whose excesses are 0 from slope `far` on."""
    last = slope.size - 1
    if last < 0:
        return False
    if far <= slope[last]:
        return True
    return runs_under(slopes, support, edge[last] + 1, slopes.size - 1, slope[last], cap[last], far, 0.0)


@numba.njit(nogil=True, cache=True, error_model="numpy")
def sticks_out_above(rows, i, j, bounds, size, screen, far, slopes, support, hull_d, pending):
    """`sticks_out` for a pair above some cap: only next to that slope. bounds[l] >= s at the first `size` slopes of the
    screen; `far` is before any further one. Bounds that say nothing are replaced by the excess.
    """
    slope, cap, edge = screen
    for a in range(size):
        if bounds[a] > support[edge[a]]:
            bounds[a] = excess(rows, i, j, slope[a])
            if bounds[a] > support[edge[a]] * (1.0 + TIE) and outside(rows, i, j, slope[a], support[edge[a]]):
                return True
    for a in range(size - 1):
        if (bounds[a] > cap[a] or bounds[a + 1] > cap[a + 1]) and sticks_out_between(
            rows, i, j, edge[a], slope[a], bounds[a], edge[a + 1], slope[a + 1], bounds[a + 1],
            slopes, support, hull_d, pending,
        ):  # fmt: skip
            return True
    a = size - 1
    return bounds[a] > cap[a] and sticks_out_after(
        rows, i, j, edge[a], bounds[a], far, slopes, support, hull_d, pending
    )


def choose_screen(rows, far, slopes, support, largest) -> Screen:
    """Few slopes whose caps most of a sample of pairs keep; an empty screen if there are none, as where pairs tie."""
    slope, cap, edge, single = _choose_screen(rows, far, slopes, support, largest)
    return Screen(slope, cap, edge, np.float32 if single else np.float64)


@numba.njit(nogil=True, cache=True, error_model="numpy")
def _choose_screen(rows, far, slopes, support, largest):
    n, last = rows.shape[0], slopes.size - 1
    at = spread_edges(slopes, SAMPLED_SLOPES)
    excesses = _sample_excesses(rows, spread_pairs(n, SAMPLED_PAIRS), slopes[at])
    usual_far = np.partition(far, n - 1 - n // 100)[n - 1 - n // 100]
    for unit in (2.0**-24, 2.0**-53):
        # Caps leave room for the rounding of the sums that are compared with them; near the last slope no room is left,
        # but there usually is no excess either.
        room = 8.0 * rounding_error(n, largest.sum(), unit)
        if support[0] < 8.0 * room:
            continue
        edge = np.flatnonzero((support >= room) | (slopes >= min(usual_far, slopes[last])))
        for kept, slack, most in CAPS:
            caps = np.interp(slopes[edge], slopes[at], slack * excesses[:, SAMPLED_PAIRS - kept])
            caps = np.minimum(np.maximum(caps, room), support[edge])
            chosen = _chain(edge, caps, usual_far, slopes, support, most)
            # Where pairs tie, the hull is as low as most of them, and no screen settles them.
            if chosen.size > 0 and caps[0] > excesses[0, SAMPLED_PAIRS // 2]:
                return slopes[edge[chosen]], caps[chosen], edge[chosen], unit == 2.0**-24
    return np.empty(0), np.empty(0), np.empty(0, dtype=np.int64), False


@numba.njit(nogil=True, cache=True, error_model="numpy")
def _chain(candidates, caps, far, slopes, support, most):
    """The fewest candidates, taken greedily, that settle a row d whose excesses are 0 from slope `far` on; none if that
    takes more than `most`.
    """
    chosen = np.zeros(most, dtype=np.int64)
    size = 1
    while True:
        kept = chosen[:size]
        if settles(slopes[candidates[kept]], caps[kept], candidates[kept], far, slopes, support):
            return kept
        at = chosen[size - 1]
        following = candidates.size - 1
        while following > at:
            a, b = candidates[at], candidates[following]
            if runs_under(slopes, support, a + 1, b, slopes[a], caps[at], slopes[b], caps[following]):
                break
            following -= 1
        if following == at or size == most:
            return chosen[:0]
        chosen[size] = following
        size += 1


@numba.njit(nogil=True, cache=True, error_model="numpy")
def _sample_excesses(rows, pairs, slopes):
    """At each slope, the excesses of the pairs in rising order."""
    values = np.empty((slopes.size, pairs.shape[0]))
    for e in range(slopes.size):
        for m in range(pairs.shape[0]):
            values[e, m] = excess(rows, pairs[m, 0], pairs[m, 1], slopes[e])
        values[e].sort()
    return values


@numba.njit(nogil=True, cache=True, error_model="numpy")
def best_of_sample(rows, slopes, count):
    """Of so many pairs the one with the largest excess at each slope."""
    sample = spread_pairs(rows.shape[0], count)
    found = np.empty((slopes.size, 2), dtype=np.int64)
    for e in range(slopes.size):
        best = -1.0
        for m in range(count):
            s = excess(rows, sample[m, 0], sample[m, 1], slopes[e])
            if s > best:
                best = s
                found[e] = sample[m]
    return found


@numba.njit(nogil=True, cache=True, error_model="numpy")
def spread_edges(slopes, count):
    """Half of the edges by their slopes, from where the excess begins to fall, and half by their number; rising."""
    last, half = slopes.size - 1, count // 2
    stop = max(slopes[1], slopes[last - 1])
    start = max(slopes[1], min(0.1, 0.01 * stop))
    at = np.empty(2 * half, dtype=np.int64)
    for m in range(half):
        at[m] = min(np.searchsorted(slopes, start * (stop / start) ** (m / (half - 1.0))), last)
        at[half + m] = m * last // (half - 1)
    return np.unique(at)


@numba.njit(nogil=True, cache=True, error_model="numpy")
def spread_pairs(n, count):
    """So many pairs of different rows of n >= 2, spread evenly: a Kronecker sequence of the plastic number."""
    pairs = np.empty((count, 2), dtype=np.int64)
    for m in range(count):
        pairs[m, 0] = int(n * ((0.5 + 0.7548776662466927 * m) % 1.0))
        pairs[m, 1] = int(n * ((0.5 + 0.5698402909980532 * m) % 1.0))
        if pairs[m, 0] == pairs[m, 1]:
            pairs[m, 1] = (pairs[m, 1] + 1) % n
    return pairs
