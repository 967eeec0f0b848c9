"""The joint hull, and one tangent to it, of a dense matrix: O(n^3) time, O(n^2) memory.

Most pairs are settled by a screen, slopes with caps on the excess, without looking at them one by one.
If s(mu) is at most cap_l at slope mu_l for every l, and the polygon through the points (mu_l, cap_l) runs under the
hull's support function h, then s, being convex, is under h as well. The excesses of one row d against many rows q at
one slope are vectorised over a tile of rows q, in single precision:

    s(mu) = sum_k max(q_k, c_k) - sum_k c_k,    c_k = (1 + mu) d_k,

over the columns in which some row exceeds c_k; the others add nothing, which leaves few at steep slopes. The sum is
compared with the cap plus a bound on its error, so what is settled is settled rigorously (`kernels.find_outside`).
Where the caps leave no room for that, as where all rows are nearly equal, the smallest entry of each column is taken
off q_k and c_k before they are rounded, which leaves the excess as it is.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np

from tplrepro.leakage.envelope import kernels
from tplrepro.leakage.envelope.kernels import Screen
from tplrepro.progress import progress_bar

__all__ = [
    "NO_POINTS",
    "SAMPLED_PAIRS",
    "best_pair",
    "Offset",
    "choose_screen",
    "joint_hull",
    "offset_of",
    "spread_pairs",
    "tangent_point",
    "tiles_of",
]


class Offset(NamedTuple):
    """What is taken off each column (n,), and the most that it leaves of a row's sum."""

    column: np.ndarray
    mass: float


# A hull without vertices.
NO_POINTS = np.empty((0, 5))

# Rows d before the hull is brought up to date, whatever the number of threads, so that ties are settled alike; parts
# for each of several threads; the most rows q of the tiles that a part goes through; and the bytes of a cache line.
BLOCK = 256
PARTS = 4
WIDTH = 512
LINE = 64
# Up to this many states the pairs are gone through one by one, which takes less than preparing anything better.
SMALL = 48
# Pairs with the largest ratios, with which the first hull begins.
STEEP = 16
# Slopes at which the first hull takes the best pair of a sample.
SEEDS = 8
# Where the pairs on the first hull look for better partners, in turn: in the middle of the slopes where they are
# tangent, or at the last.
CLIMBS = (0.5, 1.0, 0.5)
# Rows d with which the scan for one tangent begins, so that nearly all other pairs fail their first test.
FIRST = 4
# Pairs, and slopes, of the sample from which a screen is chosen.
SAMPLED_PAIRS = 100
SAMPLED_SLOPES = 24
# Powers of the inverse of the plastic number, which spread points evenly over a square.
PLASTIC = np.array([0.7548776662466927, 0.5698402909980532])
# Caps to try in turn: which of the sample's excesses from the top, how far from it to the support, and how many slopes
# they may take. Higher caps leave fewer pairs, and need more slopes to stay under the hull.
CAPS = ((1, 0.25, 16), (4, 0.0, 16))


def joint_hull(rows: np.ndarray, progress: bool = False) -> np.ndarray:
    """The joint hull of all ordered pairs of `rows` (n, n), read-only, C-contiguous and row-stochastic."""
    n = rows.shape[0]
    if n <= SMALL:
        return kernels.hulls_of_few(rows[None])[0]
    different = next((i for i in range(1, n) if (rows[i] != rows[0]).any()), None)
    if different is None:
        return NO_POINTS
    # Of two rows that differ, one may exceed the other nowhere, if their sums differ by rounding.
    first = (different, 0) if (rows[different] > rows[0]).any() else (0, different)
    largest = rows.max(axis=0)
    far = kernels.last_slopes(rows, largest)
    offset = offset_of(rows, least=False)
    tiles, sample = tiles_of(rows, offset), spread_pairs(n, max(n, SAMPLED_PAIRS))
    points = _first_hull([first, *_steepest(rows, far, largest)], rows, far, tiles, sample[:n])

    threads = kernels.thread_count(n, 100)
    parts = PARTS * threads if threads > 1 else 1
    blocks = -(-n // BLOCK)
    limits = [block * n // blocks for block in range(blocks + 1)]
    with progress_bar(blocks, progress, "joint hull", "block") as bar:
        for start, stop in pairwise(limits):
            if kernels.is_diagonal(points):
                break
            hull = kernels.edges(points)
            screen, needed = choose_screen(rows, far, hull, largest, sample[:SAMPLED_PAIRS])
            if needed.mass != offset.mass:
                offset, tiles = needed, tiles_of(rows, needed)
            marks = np.zeros((stop - start, n), dtype=np.float32)
            bounds = np.linspace(0, stop - start, parts + 1).astype(int)

            def work(k, start=start, hull=hull, screen=screen, tiles=tiles, offset=offset, marks=marks, bounds=bounds):
                own = marks[bounds[k] : bounds[k + 1]]
                for at, tile in tiles:
                    kernels.find_outside(rows, tile, at, *offset, largest, far, hull, screen, start + bounds[k], own)

            _each(work, parts, threads)
            points = kernels.grow(points, rows, _marked_pairs(marks, start), far)
            bar.update()
    return points


def best_pair(rows: np.ndarray, alpha: float) -> tuple[float, float, float]:
    """(d(S), gap(S), 1 - q(S)) of the pair of `rows` (n, n) and set that attain L(alpha), 0 < alpha <= 700."""
    n = rows.shape[0]
    inverse = 1.0 / np.expm1(alpha)
    largest = rows.max(axis=0)
    offset = offset_of(rows, least=False)
    tiles = tiles_of(rows, offset)

    def scan(first, stop, best):
        for at, tile in tiles:
            best = max(best, kernels.improve(rows, tile, at, *offset, largest, inverse, first, stop, best[0]))
        return best

    best = scan(0, min(n, FIRST), (0.0, -1, -1))
    # Bounds in single precision leave too many pairs to be looked at where its rounding counts.
    if best[0] * inverse < 100.0 * kernels.rounding_error(n, offset.mass, largest.sum()):
        offset = offset_of(rows, least=True)
        tiles = tiles_of(rows, offset)
    threads = kernels.thread_count(n, 300)
    parts = 1 if threads == 1 else PARTS * threads
    bounds = np.linspace(min(n, FIRST), n, parts + 1).astype(int)
    _, i, j = max(_each(lambda k: scan(bounds[k], bounds[k + 1], best), parts, threads))
    return (0.0, 0.0, 1.0) if i < 0 else tangent_point(kernels.prefix_points(rows, i, j, n), inverse)


def choose_screen(rows, far, hull, largest, sample) -> tuple[Screen, Offset]:
    """Few slopes whose caps most of a sample of SAMPLED_PAIRS keep, an empty screen if there are none, as where pairs
    tie; and the offset at which the sums that are compared with the caps are exact enough.
    """
    slopes, support, _ = hull
    n = rows.shape[0]
    at = _spread_edges(slopes, SAMPLED_SLOPES)
    excesses = np.sort(kernels.excesses(rows, sample, slopes[at]), axis=1)
    usual_far = np.partition(far, n - 1 - n // 100)[n - 1 - n // 100]
    for least in (False, True):
        # Caps leave room for the rounding of the sums that are compared with them; near the last slope no room is left,
        # but there usually is no excess either.
        offset = offset_of(rows, least)
        room = 8.0 * kernels.rounding_error(n, offset.mass, largest.sum() - offset.column.sum())
        if support[0] < 8.0 * room:
            continue
        edge = np.flatnonzero((support >= room) | (slopes >= min(usual_far, slopes[-1])))
        for kept, slack, most in CAPS:
            # Shares of the support, which change less between the slopes of the sample than the excesses do.
            shares = np.minimum(excesses[:, -kept] / np.maximum(support[at], 1e-300), 1.0)
            caps = support[edge] * np.interp(slopes[edge], slopes[at], shares + slack * (1.0 - shares))
            caps = np.minimum(np.maximum(caps, room), support[edge])
            chosen = kernels.chain(slopes[edge], caps, edge, usual_far, hull, most)
            # Where pairs tie, the hull is as low as most of them, and no screen settles them.
            if chosen.size > 0 and caps[0] > excesses[0, SAMPLED_PAIRS // 2]:
                return Screen(slopes[edge[chosen]], caps[chosen], edge[chosen]), offset
    return Screen(np.empty(0), np.empty(0), np.empty(0, dtype=np.int64)), offset


def spread_pairs(n: int, count: int) -> np.ndarray:
    """So many pairs of different rows of n >= 2, spread evenly: a Kronecker sequence of the plastic number."""
    pairs = (n * np.modf(0.5 + np.arange(count)[:, None] * PLASTIC)[0]).astype(np.int64)
    pairs[:, 1] = (pairs[:, 1] + (pairs[:, 0] == pairs[:, 1])) % n
    return pairs


def _spread_edges(slopes: np.ndarray, count: int) -> np.ndarray:
    """Half of the edges by their slopes, from where the excess begins to fall, and half by their number; rising."""
    shares = np.arange(count // 2) / (count // 2 - 1.0)
    stop = max(slopes[1], slopes[-2])
    start = max(slopes[1], min(0.1, 0.01 * stop))
    chosen = np.zeros(slopes.size, dtype=bool)
    chosen[np.searchsorted(slopes[:-1], start * (stop / start) ** shares)] = True
    chosen[(shares * (slopes.size - 1)).astype(int)] = True
    return chosen.nonzero()[0]


def tangent_point(points: np.ndarray, inverse: float) -> tuple[float, float, float]:
    """(d, gap, rest) of the one among `points` to which the line from (-inverse, 0) is steepest."""
    return tuple(points[np.argmax(points[:, 1] / (points[:, 0] + inverse)), :3].tolist())


def _steepest(rows, far, largest):
    """Pairs with the largest ratio in one column, where the hull ends; no screen settles a row d that is beyond it."""
    d = np.argsort(-far, kind="stable")[:STEEP]
    columns = (rows[d] / np.maximum(largest - rows[d], 1e-300)).argmin(axis=1)
    return zip(rows[:, columns].argmax(axis=0).tolist(), d.tolist(), strict=True)


def _first_hull(first, rows, far, tiles, sample):
    """The first pairs, the best of a sample, and better partners for those on the hull: few later pairs stick out."""
    points = kernels.grow(NO_POINTS, rows, np.array(first), far)
    slopes = kernels.edges(points)[kernels.SLOPE]
    best = kernels.excesses(rows, sample, slopes[_spread_edges(slopes, SEEDS)]).argmax(axis=1)
    points = kernels.grow(points, rows, sample[best], far)
    for share in CLIMBS:
        slopes, pairs = kernels.edges(points)[kernels.SLOPE], points[:, 3:].tolist()
        runs = [k for k, pair in enumerate(pairs) if k == 0 or pair != pairs[k - 1]]
        tangent = slopes[[start + int(share * (stop - start)) for start, stop in pairwise([*runs, len(pairs)])]]
        partners = points[runs, 3:].astype(np.int64).repeat(2, axis=0)
        best = np.zeros(len(partners), dtype=np.float32)
        for at, tile in tiles:
            kernels.improve_partners(tile, at, rows, tangent, partners, best)
        points = kernels.grow(points, rows, partners, far)
    return points


def _marked_pairs(marks: np.ndarray, first: int) -> np.ndarray:
    """The pairs (i, j) with a mark in marks[j - first, i], the largest mark first: it settles most others."""
    at = np.flatnonzero(marks > 0.0)
    j, i = np.divmod(at[np.argsort(-marks.ravel()[at], kind="stable")], marks.shape[1])
    return np.stack((i, first + j), axis=1)


def offset_of(rows: np.ndarray, least: bool) -> Offset:
    """What is taken off each column of `rows` (n, n): its smallest entry, or nothing."""
    if not least:
        return Offset(np.zeros(rows.shape[1]), 1.0)
    column = rows.min(axis=0)
    return Offset(column, rows.sum(axis=1).max() - column.sum() + 2.0**-50)  # more than the rounding of the sums


def tiles_of(rows: np.ndarray, offset: Offset) -> list[tuple[int, np.ndarray]]:
    """The transpose less the offset in parts, in single precision: for each tile its first row and its rows as columns,
    (n, width), padded with zeros.
    """
    n, parts = rows.shape[0], -(-rows.shape[0] // WIDTH)
    limits = [part * n // parts for part in range(parts + 1)]
    return [(start, _transposed(rows[start:stop], offset)) for start, stop in pairwise(limits)]


def _transposed(rows: np.ndarray, offset: Offset) -> np.ndarray:
    # Each row of it begins with a cache line, as loads that cross two of them cost twice as much.
    per_line = LINE // np.dtype(np.float32).itemsize
    width, height = -(-rows.shape[0] // per_line) * per_line, rows.shape[1]
    buffer = np.zeros(height * width + per_line, dtype=np.float32)
    skipped = -buffer.ctypes.data % LINE // buffer.itemsize
    tile = buffer[skipped : skipped + height * width].reshape(height, width)
    tile[:, : rows.shape[0]] = rows.T if offset.mass == 1.0 else (rows - offset.column).T
    return tile


def _each(work: Callable[[int], Any], parts: int, threads: int) -> list:
    """What work(0), ..., work(parts - 1) return, in any order, on so many threads, this one among them."""
    remaining = iter(range(parts))  # `next` of it is atomic; kernels release the GIL

    def take_turns(_=None) -> list:
        return [work(k) for k in remaining]

    with ThreadPoolExecutor(max(1, threads - 1)) as pool:  # it starts no thread that it has no work for
        others = pool.map(take_turns, range(threads - 1))
        return [*take_turns(), *chain.from_iterable(others)]
