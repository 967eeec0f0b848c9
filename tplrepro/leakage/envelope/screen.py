"""A test that settles most pairs without looking at them one by one: caps on the excess at a few slopes.

If s(mu) is at most cap_l at slope mu_l for every l, and the polygon through the points (mu_l, cap_l) runs under the
hull's support function h, then s, being convex, is under h as well. The excesses of one row d against many rows q at
one slope are sums over columns of max(q_k - (1 + mu) d_k, 0), vectorised over a tile of rows q; columns in which no row
exceeds (1 + mu) d_k add nothing and are skipped, which leaves few at steep slopes.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from tplrepro.leakage.envelope.hull import EXACT_ORDER, excess, small_excess

__all__ = ["Screen", "choose_screen", "excess_of_all", "settles"]

SAMPLE = 100
MOST_CANDIDATES = 64
MOST_SLOPES = 16


class Screen(NamedTuple):
    """Slopes with the cap on the excess at each; `edge` is the hull's edge that each slope belongs to. Empty: none."""

    slope: np.ndarray
    cap: np.ndarray
    edge: np.ndarray


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


def choose_screen(rows: np.ndarray, far: np.ndarray, slopes: np.ndarray, support: np.ndarray) -> Screen:
    """Few slopes whose caps most of a sample of pairs keep; an empty screen if there are none, as where pairs tie."""
    n = rows.shape[0]
    candidates = np.arange(slopes.size)
    if slopes.size > MOST_CANDIDATES:
        steps = np.geomspace(slopes[1], slopes[-1], MOST_CANDIDATES)
        candidates = np.unique(np.concatenate(([0], np.searchsorted(slopes, steps).clip(0, slopes.size - 1))))
    first, second = np.random.default_rng(1).integers(0, n, size=(2, SAMPLE))
    caps = _sample_caps(rows, first, (second + (first == second)) % n, slopes[candidates])
    caps = np.minimum(caps, support[candidates])
    usual_far = np.quantile(far, 0.99)
    chosen = [0]
    while not settles(slopes[candidates[chosen]], caps[chosen], candidates[chosen], usual_far, slopes, support):
        at = chosen[-1]
        for following in range(len(candidates) - 1, at, -1):
            a, b = candidates[at], candidates[following]
            if runs_under(slopes, support, a + 1, b, slopes[a], caps[at], slopes[b], caps[following]):
                break
        else:
            return Screen(np.empty(0), np.empty(0), np.empty(0, dtype=np.int64))
        chosen.append(following)
        if len(chosen) > MOST_SLOPES:
            return Screen(np.empty(0), np.empty(0), np.empty(0, dtype=np.int64))
    kept = candidates[chosen]
    return Screen(slopes[kept], caps[chosen], kept)


@numba.njit(nogil=True, cache=True, error_model="numpy")
def _sample_caps(rows, first, second, slopes):
    """At each slope, the excess that all but one of the sampled pairs stay under."""
    values = np.empty(first.size)
    caps = np.empty(slopes.size)
    for e in range(slopes.size):
        for m in range(first.size):
            values[m] = excess(rows, first[m], second[m], slopes[e])
        values.sort()
        caps[e] = values[-2]
    return caps
