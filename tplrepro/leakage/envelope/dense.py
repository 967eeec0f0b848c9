"""The joint hull, and one tangent to it, of a dense matrix: O(n^3) time, O(n^2) memory."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np

from tplrepro.leakage.envelope.hull import (
    FAST,
    STEEPEST,
    TIE,
    Hull,
    add_pair,
    edges,
    is_diagonal,
    point_at,
    prefix_points,
    sticks_out,
)
from tplrepro.leakage.envelope.screen import (
    best_of_sample,
    bound_excesses,
    choose_screen,
    excess_of_all,
    settles,
    spread_edges,
    sticks_out_above,
    sum_of_maxima,
)
from tplrepro.progress import progress_bar

__all__ = ["best_pair", "joint_hull"]

# Rows d before the hull is brought up to date, whatever the number of threads, so that ties are settled alike; parts
# for each thread; and the size of the tiles of rows q that a part goes through, so that a tile stays in cache.
BLOCK = 256
PARTS = 4
# Up to this many states the pairs are gone through one by one, which takes less than preparing anything better.
SMALL = 48
TILE_BYTES = 1 << 20
# Slopes at which the first hull takes the best pair of a sample.
SEEDS = 8
# Where the pairs on the first hull look for better partners, in turn: in the middle of the slopes where they are
# tangent, or at the last.
CLIMBS = (0.5, 1.0, 0.5)


def joint_hull(rows: np.ndarray, progress: bool = False) -> Hull:
    """The joint hull of all ordered pairs of `rows` (n, n), C-contiguous and row-stochastic."""
    n = rows.shape[0]
    points, pairs = np.empty((0, 3)), np.empty((0, 2), dtype=np.int64)
    first = _first_difference(rows)
    if first < 0:
        return Hull(*points.T, *pairs.T)
    # Of two rows that differ, one may exceed the other nowhere, if their sums differ by rounding.
    i, j = (first, 0) if (rows[first] > rows[0]).any() else (0, first)
    points, pairs = add_pair(points, pairs, rows[i], rows[j], i, j)
    largest, far = _largest(rows)

    if n <= SMALL:
        points, pairs = _grow(points, pairs, rows, np.indices((n, n)).reshape(2, -1).T, far)
        return Hull(*np.ascontiguousarray(points.T), *np.ascontiguousarray(pairs.T))
    # The best of a sample of pairs first, and better partners for those on the hull, which is then nearly final: few
    # later pairs stick out of it.
    slopes, _ = edges(points)
    sample = best_of_sample(rows, slopes[spread_edges(slopes, SEEDS)], n)
    points, pairs = _grow(points, pairs, rows, sample, far)
    tiles = _tiles(rows, np.float32)
    for share in CLIMBS:
        found, slopes, best = _tangent_pairs(points, pairs, share)
        for start, tile in tiles:
            _improve_partners(tile, start, rows, slopes, found, best)
        points, pairs = _grow(points, pairs, rows, found, far)

    threads = _threads(n, 100)
    parts = PARTS * threads
    blocks = -(-n // BLOCK)
    starts = np.arange(blocks * parts + 1) * n // (blocks * parts)
    with progress_bar(blocks, progress, "joint hull", "block") as bar:
        for block in range(blocks):
            if is_diagonal(points):
                break
            slopes, support = edges(points)
            screen = choose_screen(rows, far, slopes, support, largest)
            if tiles[0][1].dtype != screen.precision:
                tiles = _tiles(rows, screen.precision)
            hull = slopes, support, points[:, 0].copy(), screen[:3]
            bounds = starts[block * parts :][: parts + 1]
            found = np.zeros((bounds[-1] - bounds[0], n), dtype=np.float32)

            def work(k, bounds=bounds, hull=hull, tiles=tiles, found=found):
                marks = found[bounds[k] - bounds[0] : bounds[k + 1] - bounds[0]]
                for start, tile in tiles:
                    marks_of_tile = marks[:, start : start + tile.shape[1]]
                    _find_outside(rows, tile, start, largest, far, *hull, bounds[k], marks_of_tile)

            _run(work, parts, threads)
            points, pairs = _grow(points, pairs, rows, _marked_pairs(found, bounds[0]), far)
            bar.update()
    return Hull(*np.ascontiguousarray(points.T), *np.ascontiguousarray(pairs.T))


def best_pair(rows: np.ndarray, alpha: float) -> tuple[float, float, float]:
    """(d(S), gap(S), 1 - q(S)) of the pair of `rows` (n, n) and set that attain L(alpha), 0 < alpha <= 700."""
    n = rows.shape[0]
    inverse = 1.0 / np.expm1(alpha)
    largest, _ = _largest(rows)
    tiles = _tiles(rows)
    # A few rows first, so that nearly all other pairs fail their first test.
    start = min(n, 4)
    best = 0.0, -1, -1
    for first, tile in tiles:
        best = max(best, _improve(rows, tile, first, largest, inverse, 0, start, best[0]))
    threads = _threads(n, 300)
    parts = 1 if threads == 1 else PARTS * threads
    bounds = np.linspace(start, n, parts + 1).astype(int)
    results = [best] * parts

    def work(k):
        for first, tile in tiles:
            found = _improve(rows, tile, first, largest, inverse, bounds[k], bounds[k + 1], results[k][0])
            results[k] = max(results[k], found)

    _run(work, parts, threads)
    _, i, j = max(results)
    if i < 0:
        return 0.0, 0.0, 1.0
    points = prefix_points(rows[i], rows[j])
    at = int(np.argmax(points[:, 1] / (points[:, 0] + inverse)))
    return tuple(float(value) for value in points[at])


def _threads(n: int, enough: int) -> int:
    """As many as Numba may use, if there are states enough to pay for starting them."""
    return 1 if n < enough else numba.config.NUMBA_NUM_THREADS


def _tiles(rows: np.ndarray, precision=np.float64) -> list[tuple[int, np.ndarray]]:
    """The transpose in parts: for each tile its first row and its rows as columns, (n, width) and contiguous."""
    n = rows.shape[0]
    width = min(n, max(48, TILE_BYTES // (np.dtype(precision).itemsize * n) // 8 * 8))
    return [
        (start, np.ascontiguousarray(rows[start : start + width].T, dtype=precision)) for start in range(0, n, width)
    ]


def _run(work: Callable[[int], None], parts: int, threads: int) -> None:
    """work(0), ..., work(parts - 1) on so many threads, this one among them; kernels release the GIL."""
    remaining = iter(range(parts))  # `next` of it is atomic

    def take_turns():
        for k in remaining:
            work(k)

    with ThreadPoolExecutor(threads) as pool:
        others = [pool.submit(take_turns) for _ in range(threads - 1)]
        take_turns()
        for other in others:
            other.result()


@numba.njit(cache=True, error_model="numpy")
def _first_difference(rows):
    """The first row that differs from row 0, or -1."""
    for i in range(1, rows.shape[0]):
        for k in range(rows.shape[1]):
            if rows[i, k] != rows[0, k]:
                return i
    return -1


@numba.njit(fastmath=FAST, nogil=True, cache=True, error_model="numpy")
def _largest(rows):
    """The largest entry of each column; and for each row d a slope from which on its excess is 0 whatever the row q."""
    n = rows.shape[0]
    largest = np.zeros(n)
    for i in range(n):
        for k in range(n):
            largest[k] = max(largest[k], rows[i, k])
    far = np.empty(n)
    for i in range(n):
        far[i] = _last_slope(rows[i], largest)
    return largest, far


@numba.njit(fastmath=FAST, nogil=True, cache=True, error_model="numpy")
def _last_slope(d, largest):
    last = 1e-300
    for k in range(d.size):
        gap = largest[k] - d[k]
        if gap > last * d[k]:
            last = gap / d[k] if d[k] > gap / STEEPEST else STEEPEST
    return last


@numba.njit(nogil=True, cache=True, error_model="numpy")
def _find_outside(rows, tile, start, largest, far, slopes, support, hull_d, screen, first, found):
    """Mark in found[j - first, i - start] the pairs (q = row i in the tile, d = row j) that stick out of the hull.

    The mark is the largest share of the support that the excess has at a slope of the screen, and > 0.
    """
    slope, cap, edge = screen
    pending = np.empty((64, 3))
    width = tile.shape[1]
    total = np.empty(width, dtype=tile.dtype)
    part = np.empty(width, dtype=tile.dtype)
    levels = np.empty(rows.shape[1], dtype=tile.dtype)
    columns = np.empty(rows.shape[1], dtype=np.int64)
    unit = 0.5 * np.finfo(tile.dtype).eps
    bounds = np.empty((slope.size, width), dtype=tile.dtype)
    of_pair = np.empty(slope.size)
    above = np.empty(width, dtype=np.bool_)
    for j in range(first, first + found.shape[0]):
        screened = settles(slope, cap, edge, far[j], slopes, support)
        above[:] = not screened
        size = 0
        while screened and size < slope.size and slope[size] < far[j]:
            bound_excesses(tile, rows, j, slope[size], largest, unit, columns, levels, part, total, bounds[size])
            for i in range(width):
                above[i] |= bounds[size, i] > cap[size]
            size += 1
        for i in range(width):
            if not above[i] or start + i == j:
                continue
            if size == 0:
                found[j - first, i] = sticks_out(rows, start + i, j, far[j], slopes, support, hull_d, pending)
                continue
            share = 0.0
            for a in range(size):
                of_pair[a] = bounds[a, i]
                share = max(share, of_pair[a] / support[edge[a]])
            if sticks_out_above(rows, start + i, j, of_pair, size, screen, far[j], slopes, support, hull_d, pending):
                found[j - first, i] = share


@numba.njit(cache=True, error_model="numpy")
def _tangent_pairs(points, pairs, share):
    """Each pair on the hull twice, with a slope where it is tangent; and room for the best sum of a partner."""
    slopes, _ = edges(points)
    found = np.empty((2 * pairs.shape[0], 2), dtype=np.int64)
    tangent = np.empty(pairs.shape[0])
    size = start = 0
    for stop in range(1, pairs.shape[0] + 1):
        if stop == pairs.shape[0] or (pairs[stop] != pairs[start]).any():
            found[2 * size] = found[2 * size + 1] = pairs[start]
            tangent[size] = slopes[start + int(share * (stop - start))]
            start = stop
            size += 1
    return found[: 2 * size], tangent[:size], np.zeros(2 * size, dtype=np.float32)


@numba.njit(nogil=True, cache=True, error_model="numpy")
def _improve_partners(tile, first, rows, slopes, found, best):
    """Put the best q of the tile into found[0::2, 0] and the best d into found[1::2, 1], where better than `best`."""
    n, width = tile.shape
    total = np.empty(width, dtype=tile.dtype)
    part = np.empty(width, dtype=tile.dtype)
    levels = np.empty(n, dtype=tile.dtype)
    columns = np.arange(n)
    for m in range(found.shape[0]):
        # Both excesses are, up to a factor and a constant of the fixed row, sums of maxima: of q and (1 + mu) d over q,
        # of d and q / (1 + mu) over d.
        factor = 1.0 + slopes[m // 2]
        fixed = found[m, 1 - m % 2]
        for k in range(n):
            levels[k] = rows[fixed, k] * factor if m % 2 == 0 else rows[fixed, k] / factor
        sum_of_maxima(tile, columns, levels, n, part, total)
        at = np.argmax(total)
        if total[at] > best[m] and first + at != fixed:
            best[m], found[m, m % 2] = total[at], first + at


@numba.njit(nogil=True, cache=True, error_model="numpy")
def _marked_pairs(found, first):
    """The pairs (i, j) with a mark in found[j - first, i], the largest mark first: it settles most others."""
    size = 0
    for j in range(found.shape[0]):
        for i in range(found.shape[1]):
            size += found[j, i] > 0.0
    marked = np.empty((size, 2), dtype=np.int64)
    marks = np.empty(size, dtype=found.dtype)
    size = 0
    for j in range(found.shape[0]):
        for i in range(found.shape[1]):
            if found[j, i] > 0.0:
                marked[size, 0], marked[size, 1], marks[size] = i, first + j, -found[j, i]
                size += 1
    return marked[np.argsort(marks)]


@numba.njit(nogil=True, cache=True, error_model="numpy")
def _grow(points, pairs, rows, candidates, far):
    """Add to the hull every candidate pair (i, j) that still sticks out of it."""
    slopes, support = edges(points)
    hull_d = points[:, 0].copy()
    pending = np.empty((64, 3))
    for c in range(candidates.shape[0]):
        i, j = candidates[c, 0], candidates[c, 1]
        if i == j or not sticks_out(rows, i, j, far[j], slopes, support, hull_d, pending):
            continue
        points, pairs = add_pair(points, pairs, rows[i], rows[j], i, j)
        slopes, support = edges(points)
        hull_d = points[:, 0].copy()
        if points[0, 0] == 0.0 and points[0, 2] == 0.0:
            break
    return points, pairs


@numba.njit(nogil=True, cache=True, error_model="numpy")
def _improve(rows, tile, start, largest, inverse, first, stop, best):
    """Scan the pairs of rows q in the tile and rows d in first..stop; the steepest tangent found from (-inverse, 0)."""
    best_i, best_j = -1, -1
    total = np.empty(tile.shape[1])
    for j in range(first, stop):
        bound = 0.0
        for k in range(rows.shape[1]):
            bound += max((largest[k] - rows[j, k]) - best * rows[j, k], 0.0)
        if bound <= best * inverse:
            continue
        excess_of_all(tile, rows, j, best, largest, total)
        for i in range(total.size):
            if start + i == j or total[i] <= best * inverse * (1.0 + TIE):
                continue
            # Dinkelbach's iteration: the slope to the pair's vertex in the direction of the slope so far.
            while True:
                d_sum, gap_sum = point_at(rows, start + i, j, best)
                slope = gap_sum / (d_sum + inverse)
                if not slope > best:
                    break
                best, best_i, best_j = slope, start + i, j
    return best, best_i, best_j
