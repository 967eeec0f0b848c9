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
`few_rows.hull_of_each` 5 for 30 states, and 55 for 2,000 users with 20.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, pairwise, product
from math import ceil
from typing import Any, NamedTuple

import numpy as np

from tplrepro.leakage.envelope import compiled, few_rows, hulls, screens
from tplrepro.leakage.envelope.screens import Screen
from tplrepro.leakage.vertex import Vertex

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
    different = first_different_row(rows)
    if different is None:
        return NO_POINTS
    columns = screens.columns_of(rows)
    far = screens.last_slopes(rows, columns.largest)
    step = 1.0 / columns.scale
    sample = sample_pairs(n)
    excesses = screens.excesses_of_pairs(rows, sample, SEED_SLOPES, step)
    rank = int(USUAL * n)
    sorted_excesses = np.sort(excesses)
    usual = sorted_excesses[:, rank]
    best = excesses.argmax(axis=1)
    best_pairs = sample[best]
    search = _Search(rows, columns, far)
    points = search.first_hull(different, best_pairs)
    blocks = ceil(n / BLOCK)
    limits = [block * n // blocks for block in range(blocks + 1)]
    from tplrepro.progress import Bar

    with Bar(blocks, "joint hull", "block", progress) as bar:
        for start, stop in pairwise(limits):
            if hulls.is_diagonal(points):
                break
            hull = hulls.edges_of_hull(points)
            screen = choose_screen(far, hull, usual)
            marks = search.mark_outside(start, stop, hull, screen)
            j, i = marks.nonzero()
            d = start + j
            candidates = np.stack((i, d), axis=1)
            points = hulls.grow_hull(points, rows, candidates, far)
            bar.update()
    return points


def first_different_row(rows: np.ndarray) -> int | None:
    """The number of the first row of (n, n) that is not row 0; None if all rows are equal."""
    for i in range(1, len(rows)):
        is_different = rows[i] != rows[0]
        if is_different.any():
            return i
    return None


@dataclass(frozen=True)
class _Search:
    """Which pairs of rows are outside a hull; `far` (n,) holds for each row d a slope from which on
    no row q has an excess over it, `columns` the rows in whole steps."""

    rows: np.ndarray
    columns: screens.Columns
    far: np.ndarray

    def first_hull(self, different: int, best: np.ndarray) -> np.ndarray:
        """The hull (K, 5) of row 0 and the row number `different`, of the best pairs (p, 2) of a
        sample, and of better partners for the pairs of that hull."""
        rows = self.rows
        room = screens.room_for(len(rows))
        two_rows = np.array([(different, 0), (0, different)])
        points = hulls.grow_hull(NO_POINTS, rows, two_rows, self.far)
        points = hulls.grow_hull(points, rows, best, self.far)
        for share in CLIMBS:
            hull = hulls.edges_of_hull(points)
            starts = _starts_of_pairs(points)
            edges = []
            for start, stop in pairwise([*starts, len(points)]):
                n_vertices = stop - start
                further = int(share * n_vertices)
                edges.append(start + further)
            slopes = hull[hulls.SLOPE, edges]
            pairs = points[starts, 3:].astype(np.int64)
            partners = pairs.repeat(2, axis=0)
            screens.improve_partners(self.columns, rows, slopes, room, partners)
            points = hulls.grow_hull(points, rows, partners, self.far)
        return points

    def mark_outside(self, start: int, stop: int, hull: np.ndarray, screen: Screen) -> np.ndarray:
        """Whether the pair of row d = start + j and row q = i is outside the hull, bool (stop -
        start, n), by several threads.

        `hull` is from `hulls.edges_of_hull`; pairs that `screen` settles are inside.
        """
        n = self.rows.shape[0]
        size = stop - start
        threads = compiled.thread_count(n, 100)
        parts = part_count(threads)
        marks = np.zeros((size, n), dtype=bool)
        bounds = np.linspace(0, size, parts + 1).astype(int)

        def mark_part(k: int) -> None:
            first = bounds[k]
            last = bounds[k + 1]
            first_d = start + first
            part = marks[first:last]
            room = screens.room_for(n)
            screens.mark_outside(
                self.rows, self.columns, self.far, hull, screen, first_d, room, part
            )

        for_each(mark_part, parts, threads)
        return marks


def _starts_of_pairs(points: np.ndarray) -> list[int]:
    """Where the vertices of each pair of rows begin among the vertices (K, 5) of a hull."""
    pairs = points[:, 3:].tolist()
    starts = [0]
    for k, (before, pair) in enumerate(pairwise(pairs), start=1):
        if pair != before:
            starts.append(k)
    return starts


def hull_of_few_rows(rows: np.ndarray) -> np.ndarray:
    """The joint hull (K, 5) of all ordered pairs of rows of a dense matrix (n, n), n <= SMALL."""
    _, complete, points = few_rows.hull_of_each(rows[np.newaxis])
    if complete == 1:
        return points
    numbers = range(len(rows))
    all_pairs = np.array([*product(numbers, numbers)])
    largest = rows.max(axis=0)
    last_slopes = screens.last_slopes(rows, largest)  # of each row d: from there on no excess
    return hulls.grow_hull(points, rows, all_pairs, last_slopes)


def hull_of_several(matrices: np.ndarray) -> np.ndarray:
    """Points (K, 5), by falling d, whose hull is that of the pairs of rows within each of M dense
    matrices (M, n, n), n <= SMALL.

    Most matrices of many users stay under the hull of the others, which few slopes show: 12 µs for
    20 states in place of 36.
    """
    found = []
    start = 0
    while start < len(matrices):
        points, done, _ = few_rows.hull_of_each(matrices[start:])
        found.append(points)
        start += done
        if start < len(matrices):
            found.append(hull_of_few_rows(matrices[start]))
            start += 1
    return np.concatenate(found)


class Tangent(NamedTuple):
    """The slope of the steepest tangent from (-inverse, 0), and the rows q and d that it touches
    (-1: none)."""

    slope: float
    i: int
    j: int


def best_vertex(rows: np.ndarray, alpha: float) -> Vertex:
    """The vertex that attains L(alpha).

    Parameters
    ----------
    rows : array (n, n), read-only, C-contiguous and row-stochastic
    alpha : float, 0 < alpha <= 700, nats

    Returns
    -------
    Vertex, with d = gap = 0 if all rows are equal
    """
    n = rows.shape[0]
    u = np.expm1(alpha)
    inverse = 1.0 / u
    columns = screens.columns_of(rows)

    def improve(first: int, stop: int, best: Tangent) -> Tangent:
        """The steepest tangent to a pair with a row d of first..stop, if steeper than `best`; else
        `best`."""
        room = screens.room_for(n)
        slope, i, j = screens.improve_tangent(rows, columns, inverse, first, stop, room, best.slope)
        tangent = Tangent(slope, i, j)
        return max(best, tangent)

    n_first = min(n, FIRST)
    no_tangent = Tangent(0.0, -1, -1)
    best = improve(0, n_first, no_tangent)
    threads = compiled.thread_count(n, 300)
    parts = part_count(threads)
    bounds = np.linspace(n_first, n, parts + 1).astype(int)

    def improve_part(k: int) -> Tangent:
        first = bounds[k]
        stop = bounds[k + 1]
        return improve(first, stop, best)

    results = for_each(improve_part, parts, threads)
    _, i, j = max(results)
    if i < 0:
        return Vertex(d=0.0, gap=0.0, rest=1.0)
    points = hulls.prefix_points(rows, i, j, n)
    return steepest_vertex(points, inverse)


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
    shares_at_seeds = usual / np.maximum(support_at_seeds, 1e-300)
    shares_at_seeds = np.minimum(shares_at_seeds, 1.0)
    shares = np.interp(slopes, SEED_SLOPES, shares_at_seeds)
    shares[shares > LITTLE_ROOM] = 1.0  # no room for steps
    room = 1.0 - shares
    lowering = BELOW * room
    caps = support * (1.0 - lowering)
    has_room = shares < 1.0
    rounding = screens.sum_error(far.size)
    is_high = support > 100.0 * rounding
    sorted_far = np.sort(far)
    last_rank = far.size - 1
    for share in SETTLED:
        rank = int(share * last_rank)
        usual_far = sorted_far[rank]
        last_needed = min(usual_far, slopes[-1])
        is_last = slopes >= last_needed
        is_possible = has_room | is_high | is_last
        edge = np.flatnonzero(is_possible)
        slopes_there = slopes[edge]
        caps_there = caps[edge]
        chosen = screens.fewest_caps(slopes_there, caps_there, edge, usual_far, hull, MOST_SLOPES)
        if chosen.size:
            return Screen(slopes_there[chosen], caps_there[chosen], edge[chosen])
    return NO_SCREEN


def part_count(threads: int) -> int:
    """Into how many parts work is cut for so many threads."""
    if threads == 1:
        return 1
    return PARTS * threads


def sample_pairs(n: int) -> np.ndarray:
    """A sample of n pairs (n, 2) of row numbers i != j of a matrix of n >= 2 rows, evenly spread
    and without chance: a Kronecker sequence of the plastic number.

    Its excesses set the usual level of the caps, and its best pairs begin the hull.
    """
    numbers = np.arange(n)[:, None]
    steps = numbers * PLASTIC
    points, _ = np.modf(0.5 + steps)  # in a square of side 1
    scaled = n * points
    pairs = scaled.astype(np.int64)
    first = pairs[:, 0]
    second = pairs[:, 1]
    is_same = first == second
    different = (second + is_same) % n
    return np.column_stack((first, different))


def steepest_vertex(points: np.ndarray, inverse: float) -> Vertex:
    """The vertex that attains L(alpha): the one of `points` (m, 5), columns d, gap, rest, i, j, to
    which the line from (-inverse, 0), inverse = 1 / (e^alpha - 1), is steepest."""
    d = points[:, 0]
    gap = points[:, 1]
    run = d + inverse
    slopes = gap / run
    steepest = np.argmax(slopes)
    numbers = points[steepest, :3].tolist()
    return Vertex(*numbers)


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
        results = take_turns()
        results.extend(chain.from_iterable(others))
    return results
