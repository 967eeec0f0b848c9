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
`few_rows.hull_of_few_rows` 5 for 30 states, and 55 for 2,000 users with 20.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np

from tplrepro.leakage.envelope import compiled, few_rows, hulls, screens
from tplrepro.leakage.envelope.screens import Screen

# A hull without vertices, and a screen that settles nothing.
NO_POINTS = np.empty((0, 5))
NO_SCREEN = Screen(np.empty(0), np.empty(0), np.empty(0, dtype=np.int64))

# Rows d after which the hull is updated. It does not depend on the number of threads, and so
# neither do ties.
BLOCK = 256
# Parts of the work for each of several threads.
PARTS = 4
# The largest number of states for which `few_rows.hull_of_few_rows` is used.
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
# The share of a sample's excesses that should be under the caps.
USUAL = 0.99
# How far caps go down from the support to these excesses.
BELOW = 0.6
# Where these excesses are a larger share of the support, caps leave no room for steps.
LITTLE_ROOM = 0.9999
# Shares of the rows d that a screen settles at least, tried in turn: few rows have large ratios.
SETTLED = (0.99, 0.9, 0.5)


def joint_hull(rows: np.ndarray, progress: bool = True) -> np.ndarray:
    """The joint hull (K, 5) of all ordered pairs of rows of a dense matrix.

    Parameters
    ----------
    rows : array (n, n), read-only, C-contiguous and row-stochastic
    progress : bool, show a progress bar if it takes more than two seconds
    """
    n = rows.shape[0]
    if n <= SMALL:
        return hull_of_few_rows(rows)
    different = next((i for i in range(1, n) if (rows[i] != rows[0]).any()), None)
    if different is None:  # all rows are equal
        return NO_POINTS
    columns = screens.columns_of(rows)
    far = screens.last_slopes(rows, columns.largest)
    sample = spread_pairs(n)
    excesses = screens.excesses_of_pairs(rows, sample, SEED_SLOPES, 1.0 / columns.scale)
    usual = np.sort(excesses)[:, int(USUAL * n)]
    search = _Search(rows, columns, far)
    points = search.first_hull(different, sample[excesses.argmax(axis=1)])
    blocks = -(-n // BLOCK)
    limits = [block * n // blocks for block in range(blocks + 1)]
    from tplrepro.progress import Bar

    with Bar(blocks, "joint hull", "block", progress) as bar:
        for start, stop in pairwise(limits):
            if hulls.is_diagonal(points):
                break
            hull = hulls.edges_of_hull(points)
            marks = search.mark_outside(start, stop, hull, choose_screen(far, hull, usual))
            j, i = marks.nonzero()
            candidates = np.stack((i, start + j), axis=1)
            points = hulls.grow_hull(points, rows, candidates, far)
            bar.update()
    return points


@dataclass(frozen=True)
class _Search:
    """Which pairs of rows are outside a hull; `far` holds a slope from which on the excess over a
    row d is 0."""

    rows: np.ndarray
    columns: screens.Columns
    far: np.ndarray

    def first_hull(self, different: int, best: np.ndarray) -> np.ndarray:
        """The hull of row 0 and a different one, the best pairs (p, 2) of a sample and better
        partners for these."""
        rows = self.rows
        two_rows = np.array([(different, 0), (0, different)])
        points = hulls.grow_hull(NO_POINTS, rows, two_rows, self.far)
        points = hulls.grow_hull(points, rows, best, self.far)
        for share in CLIMBS:
            slopes = hulls.edges_of_hull(points)[hulls.SLOPE]
            pairs = points[:, 3:].tolist()
            # where the vertices of each pair begin
            changes = [k for k in range(1, len(pairs)) if pairs[k] != pairs[k - 1]]
            starts = [0, *changes]
            edge = [
                start + int(share * (stop - start))
                for start, stop in pairwise([*starts, len(pairs)])
            ]
            partners = points[starts, 3:].astype(np.int64).repeat(2, axis=0)
            screens.improve_partners(self.columns, rows, slopes[edge], partners)
            points = hulls.grow_hull(points, rows, partners, self.far)
        return points

    def mark_outside(self, start: int, stop: int, hull: np.ndarray, screen: Screen) -> np.ndarray:
        """Whether the pair of row d = start + j and row q = i is outside the hull, bool (stop -
        start, n), by several threads."""
        n = self.rows.shape[0]
        threads = compiled.thread_count(n, 100)
        parts = PARTS * threads if threads > 1 else 1
        marks = np.zeros((stop - start, n), dtype=bool)
        bounds = np.linspace(0, stop - start, parts + 1).astype(int)

        def mark_part(k: int) -> None:
            part = marks[bounds[k] : bounds[k + 1]]
            first = start + bounds[k]
            screens.mark_outside(self.rows, self.columns, self.far, hull, screen, first, part)

        for_each(mark_part, parts, threads)
        return marks


def hull_of_few_rows(rows: np.ndarray) -> np.ndarray:
    """The same for at most SMALL rows."""
    points, is_complete = few_rows.hull_of_few_rows(rows)
    if is_complete:
        return points
    i, j = np.divmod(np.arange(rows.size), len(rows))
    far = screens.last_slopes(rows, rows.max(axis=0))
    return hulls.grow_hull(points, rows, np.stack((i, j), axis=1), far)


class Tangent(NamedTuple):
    """The slope of the steepest tangent from (-inverse, 0), and the rows q and d that it touches
    (-1: none)."""

    slope: float
    i: int
    j: int


def best_pair(rows: np.ndarray, alpha: float) -> tuple[float, float, float]:
    """The pair of rows and the set of columns that attain L(alpha).

    Parameters
    ----------
    rows : array (n, n), read-only, C-contiguous and row-stochastic
    alpha : float, 0 < alpha <= 700, nats

    Returns
    -------
    d(S), gap(S), 1 - q(S) : float; 0, 0 and 1 if all rows are equal
    """
    n = rows.shape[0]
    inverse = 1.0 / np.expm1(alpha)
    columns = screens.columns_of(rows)

    def improve(first: int, stop: int, best: Tangent) -> Tangent:
        """The steepest tangent to a pair with a row d of first..stop, if steeper."""
        found = screens.improve_tangent(rows, columns, inverse, first, stop, best.slope)
        return max(best, Tangent(*found))

    best = improve(0, min(n, FIRST), Tangent(0.0, -1, -1))
    threads = compiled.thread_count(n, 300)
    parts = 1 if threads == 1 else PARTS * threads
    bounds = np.linspace(min(n, FIRST), n, parts + 1).astype(int)
    results = for_each(lambda k: improve(bounds[k], bounds[k + 1], best), parts, threads)
    _, i, j = max(results)
    if i < 0:
        return 0.0, 0.0, 1.0
    return tangent_point(hulls.prefix_points(rows, i, j, n), inverse)


def choose_screen(far: np.ndarray, hull: np.ndarray, usual: np.ndarray) -> Screen:
    """Few slopes with caps that most pairs keep; NO_SCREEN if there are none.

    Parameters
    ----------
    far : array (n,), for each row d a slope from which on its excess is 0
    hull : array (3, K + 1), the edges of the hull
    usual : array (SEED_SLOPES,)
        What nearly all excesses of a sample keep at SEED_SLOPES, with terms rounded up to steps.
    """
    slopes, support, _ = hull
    # Higher caps leave fewer pairs, but need more slopes.
    support_at_seeds = np.interp(SEED_SLOPES, slopes, support)
    shares = usual / np.maximum(support_at_seeds, 1e-300)
    shares = np.interp(slopes, SEED_SLOPES, np.minimum(shares, 1.0))
    shares[shares > LITTLE_ROOM] = 1.0  # no room for steps
    caps = support * (1.0 - BELOW * (1.0 - shares))
    lasts = np.sort(far)
    enough = 100.0 * screens.sum_error(far.size)
    for share in SETTLED:
        usual_far = lasts[int(share * (far.size - 1))]
        is_last = slopes >= min(usual_far, slopes[-1])
        edge = np.flatnonzero((shares < 1.0) | (support > enough) | is_last)
        of_edge = slopes[edge], caps[edge]
        chosen = screens.fewest_caps(*of_edge, edge, usual_far, hull, MOST_SLOPES)
        if chosen.size:
            edge = edge[chosen]
            return Screen(slopes[edge], caps[edge], edge)
    return NO_SCREEN


def spread_pairs(n: int) -> np.ndarray:
    """n pairs of different rows, spread evenly: a Kronecker sequence of the plastic number."""
    points, _ = np.modf(0.5 + np.arange(n)[:, None] * PLASTIC)
    pairs = (n * points).astype(np.int64)
    is_same = pairs[:, 0] == pairs[:, 1]
    pairs[:, 1] = (pairs[:, 1] + is_same) % n
    return pairs


def tangent_point(points: np.ndarray, inverse: float) -> tuple[float, float, float]:
    """(d, gap, rest) of the point of `points` (m, 5) to which the line from (-inverse, 0) is
    steepest."""
    slopes = points[:, 1] / (points[:, 0] + inverse)
    d, gap, rest = points[np.argmax(slopes), :3].tolist()
    return d, gap, rest


def for_each(work: Callable[[int], Any], parts: int, threads: int) -> list:
    """The results of work(0), ..., work(parts - 1), in any order.

    Parameters
    ----------
    work : callable of a whole number, which may run in any thread
    parts : int, how many there are
    threads : int >= 1; this thread and threads - 1 others work
    """
    remaining = iter(range(parts))  # its `next` is atomic; kernels release the GIL

    def take_turns(_: Any = None) -> list:
        return [work(k) for k in remaining]

    with ThreadPoolExecutor(max(1, threads - 1)) as pool:  # starts threads only when they have work
        others = pool.map(take_turns, range(threads - 1))
        return [*take_turns(), *chain.from_iterable(others)]
