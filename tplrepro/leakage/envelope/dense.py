"""The joint hull, and one tangent to it, of a dense matrix: O(n^3) time, O(n^2) memory.

A screen settles most pairs together: a few slopes mu_l, each with a cap on the excess. If s(mu_l)
is at most cap_l for every l, and the polygon through the points (mu_l, cap_l) runs under the hull's
support function h, then s, being convex, is under h as well. For one row d and one slope, the
excesses of all rows q are summed:

    s(mu) = sum_k max(q_k, c_k) - sum_k c_k,    c_k = (1 + mu) d_k,

over the columns in which some row exceeds c_k; the others add nothing, which leaves few at steep
slopes. They are whole steps of 16 bits above each column's smallest entry, q rounded up and c down,
so rounding settles no pair. Where caps leave no room for that, sums in single precision are taken.
Pairs that no cap settles are tested one by one (`screens.mark_outside`).

What the parts buy, as the time of the whole function without one over the time with it: the screen
2.4, 4.8, 7.0 and 9.1 on a random matrix of 100, 200, 500 and 1,000 states; the search for better
partners in the first hull 3.1, 3.6, 2.0 and 1.2; the hull of at most `SMALL` rows by
`few.hull_of_few` 5 for 30 states, and 55 for 2,000 users with 20.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, pairwise
from typing import Any

import numpy as np

from tplrepro.leakage.envelope import compiled, few, hulls, screens
from tplrepro.leakage.envelope.screens import Screen

# A hull without vertices, and a screen that settles nothing.
NO_POINTS = np.empty((0, 5))
NO_SCREEN = Screen(np.empty(0), np.empty(0), np.empty(0, dtype=np.int64))

# Rows d after which the hull is updated. It does not depend on the number of threads, and so
# neither do ties.
BLOCK = 256
# Parts of the work for each of several threads.
PARTS = 4
# The largest number of states for which `few.hull_of_few` is used.
SMALL = 48
# Slopes at which excesses of a sample of pairs are taken, for the first hull and for screens.
SEED_SLOPES = np.append(0.0, np.geomspace(0.1, 1e5, 11))
# Where pairs on the first hull look for better partners: in the middle of their tangents' slopes,
# or at the last.
CLIMBS = (0.5, 1.0, 0.5)
# Rows d with which the scan for one tangent begins; nearly all other pairs then fail their first
# test.
FIRST = 4
# Powers of the inverse of the plastic number, which spread points evenly over a square.
PLASTIC = np.array([0.7548776662466927, 0.5698402909980532])
# The most slopes of a screen; 12 serve for 5,000 random rows.
MOST_SLOPES = 32
# The share of a sample's excesses under the caps, how far caps are down to these, and these' most
# share of support.
USUAL, BELOW, LITTLE_ROOM = 0.99, 0.6, 0.9999
# Shares of the rows d that a screen settles at least, tried in turn: few rows have large ratios.
SETTLED = (0.99, 0.9, 0.5)


def joint_hull(rows: np.ndarray, progress: bool = True) -> np.ndarray:
    """The joint hull of all ordered pairs of `rows` (n, n), which are read-only, C-contiguous and
    row-stochastic."""
    n = rows.shape[0]
    if n <= SMALL:
        return hull_of_few(rows)
    different = next((i for i in range(1, n) if (rows[i] != rows[0]).any()), None)
    if different is None:
        return NO_POINTS
    columns = screens.columns_of(rows)
    far = screens.last_slopes(rows, columns.largest)
    sample = spread_pairs(n)
    excesses = screens.excesses(rows, sample, SEED_SLOPES, 1.0 / columns.scale)
    points = _first_hull(different, rows, far, columns, sample[excesses.argmax(axis=1)])
    usual = np.sort(excesses)[:, int(USUAL * n)]

    threads = compiled.thread_count(n, 100)
    parts = PARTS * threads if threads > 1 else 1
    blocks = -(-n // BLOCK)
    limits = [block * n // blocks for block in range(blocks + 1)]
    from tplrepro.progress import Bar

    with Bar(blocks, "joint hull", "block", progress) as bar:
        for start, stop in pairwise(limits):
            if hulls.is_diagonal(points):
                break
            hull = hulls.edges(points)
            screen = choose_screen(far, hull, usual)
            marks = np.zeros((stop - start, n), dtype=bool)
            bounds = np.linspace(0, stop - start, parts + 1).astype(int)

            def work(k, start=start, hull=hull, screen=screen, marks=marks, bounds=bounds):
                part = marks[bounds[k] : bounds[k + 1]]
                screens.mark_outside(rows, columns, far, hull, screen, start + bounds[k], part)

            for_each(work, parts, threads)
            j, i = marks.nonzero()
            points = hulls.grow(points, rows, np.stack((i, start + j), axis=1), far)
            bar.update()
    return points


def hull_of_few(rows: np.ndarray) -> np.ndarray:
    """The same for at most SMALL rows."""
    points, complete = few.hull_of_few(rows)
    if complete:
        return points
    pairs = np.stack(np.divmod(np.arange(rows.size), len(rows)), axis=1)
    return hulls.grow(points, rows, pairs, screens.last_slopes(rows, rows.max(axis=0)))


def best_pair(rows: np.ndarray, alpha: float) -> tuple[float, float, float]:
    """(d(S), gap(S), 1 - q(S)) of the pair of `rows` (n, n) and set that attain L(alpha), 0 < alpha
    <= 700."""
    n = rows.shape[0]
    inverse = 1.0 / np.expm1(alpha)
    columns = screens.columns_of(rows)

    def scan(first, stop, best):
        return max(best, screens.improve(rows, columns, inverse, first, stop, best[0]))

    best = scan(0, min(n, FIRST), (0.0, -1, -1))
    threads = compiled.thread_count(n, 300)
    parts = 1 if threads == 1 else PARTS * threads
    bounds = np.linspace(min(n, FIRST), n, parts + 1).astype(int)
    _, i, j = max(for_each(lambda k: scan(bounds[k], bounds[k + 1], best), parts, threads))
    return (0.0, 0.0, 1.0) if i < 0 else tangent_point(hulls.prefix_points(rows, i, j, n), inverse)


def choose_screen(far, hull, usual) -> Screen:
    """Few slopes with caps that most pairs keep; NO_SCREEN if there are none.

    `usual` holds what nearly all excesses of a sample keep at SEED_SLOPES, with terms rounded up to
    steps.
    """
    slopes, support, _ = hull
    # Higher caps leave fewer pairs, but need more slopes.
    shares = usual / np.maximum(np.interp(SEED_SLOPES, slopes, support), 1e-300)
    shares = np.interp(slopes, SEED_SLOPES, np.minimum(shares, 1.0))
    shares[shares > LITTLE_ROOM] = 1.0  # no room for steps
    caps = support * (1.0 - BELOW * (1.0 - shares))
    lasts, enough = np.sort(far), 100.0 * screens.sum_error(far.size)
    for share in SETTLED:
        usual_far = lasts[int(share * (far.size - 1))]
        edge = np.flatnonzero(
            (shares < 1.0) | (support > enough) | (slopes >= min(usual_far, slopes[-1]))
        )
        chosen = edge[
            screens.fewest_caps(slopes[edge], caps[edge], edge, usual_far, hull, MOST_SLOPES)
        ]
        if chosen.size:
            return Screen(slopes[chosen], caps[chosen], chosen)
    return NO_SCREEN


def spread_pairs(n: int) -> np.ndarray:
    """n pairs of different rows, spread evenly: a Kronecker sequence of the plastic number."""
    pairs = (n * np.modf(0.5 + np.arange(n)[:, None] * PLASTIC)[0]).astype(np.int64)
    pairs[:, 1] = (pairs[:, 1] + (pairs[:, 0] == pairs[:, 1])) % n
    return pairs


def tangent_point(points: np.ndarray, inverse: float) -> tuple[float, float, float]:
    """(d, gap, rest) of the point to which the line from (-inverse, 0) is steepest."""
    return tuple(points[np.argmax(points[:, 1] / (points[:, 0] + inverse)), :3].tolist())


def _first_hull(different, rows, far, columns, best):
    """The hull of row 0 and a different one, the best pairs of a sample and better partners for
    these."""
    points = hulls.grow(NO_POINTS, rows, np.array([(different, 0), (0, different)]), far)
    points = hulls.grow(points, rows, best, far)
    for share in CLIMBS:
        slopes, pairs = hulls.edges(points)[hulls.SLOPE], points[:, 3:].tolist()
        starts = [k for k, pair in enumerate(pairs) if k == 0 or pair != pairs[k - 1]]
        edge = [
            start + int(share * (stop - start)) for start, stop in pairwise([*starts, len(pairs)])
        ]
        partners = points[starts, 3:].astype(np.int64).repeat(2, axis=0)
        screens.improve_partners(columns, rows, slopes[edge], partners)
        points = hulls.grow(points, rows, partners, far)
    return points


def for_each(work: Callable[[int], Any], parts: int, threads: int) -> list:
    """The results of work(0), ..., work(parts - 1), in any order, computed by this thread and
    threads - 1 others."""
    remaining = iter(range(parts))  # its `next` is atomic; kernels release the GIL

    def take_turns(_=None) -> list:
        return [work(k) for k in remaining]

    with ThreadPoolExecutor(max(1, threads - 1)) as pool:  # starts threads only when they have work
        others = pool.map(take_turns, range(threads - 1))
        return [*take_turns(), *chain.from_iterable(others)]
