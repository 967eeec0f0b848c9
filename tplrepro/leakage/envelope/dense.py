"""The joint hull, and one tangent to it, of a dense matrix: O(n^3) time, O(n^2) memory."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np

from tplrepro.leakage.envelope.hull import (
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
from tplrepro.leakage.envelope.screen import choose_screen, excess_of_all, settles
from tplrepro.progress import progress_bar

__all__ = ["best_pair", "joint_hull"]

# Rows d that one task handles, and the size of the tiles of rows q that it goes through, so that a tile stays in cache.
BLOCK = 128
# Up to this many states the pairs are gone through one by one, which takes less than preparing anything better.
SMALL = 48
TILE_BYTES = 1 << 20


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
    # Random pairs first: the hull is then nearly final, and few later pairs stick out of it.
    sample = np.random.default_rng(0).integers(0, n, size=(4 * n, 2))
    points, pairs = _grow(points, pairs, rows, sample, far)

    tiles = _tiles(rows)
    threads = _threads(n, 100)
    blocks = threads * -(-n // (threads * BLOCK))
    starts = np.linspace(0, n, blocks + 1).astype(int)
    hull_d = np.empty(0)
    with progress_bar(blocks, progress, "joint hull", "block") as bar:
        for group in range(0, blocks, threads):
            if is_diagonal(points):
                break
            if hull_d.size != points.shape[0] or (hull_d != points[:, 0]).any():
                slopes, support = edges(points)
                hull_d = points[:, 0].copy()
                screen = choose_screen(rows, far, slopes, support)
            found = [np.zeros((starts[b + 1] - starts[b], n), dtype=np.bool_) for b in range(group, group + threads)]

            def work(k, group=group, slopes=slopes, support=support, hull_d=hull_d, screen=screen, found=found):
                first = starts[group + k]
                for start, tile in tiles:
                    marks = found[k][:, start : start + tile.shape[1]]
                    _find_outside(rows, tile, start, largest, far, slopes, support, hull_d, *screen, first, marks)

            _run(work, threads)
            for k, marks in enumerate(found):
                j, i = np.nonzero(marks)
                if i.size:
                    candidates = np.column_stack((i, j + starts[group + k]))
                    points, pairs = _grow(points, pairs, rows, candidates, far)
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
    parts = 1 if threads == 1 else 4 * threads
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


def _tiles(rows: np.ndarray) -> list[tuple[int, np.ndarray]]:
    """The transpose in parts: for each tile its first row and its rows as columns, (n, width) and contiguous."""
    n = rows.shape[0]
    width = min(n, max(48, TILE_BYTES // (8 * n) // 8 * 8))
    return [(start, np.ascontiguousarray(rows[start : start + width].T)) for start in range(0, n, width)]


def _run(work: Callable[[int], None], parts: int, threads: int | None = None) -> None:
    """work(0), ..., work(parts - 1) on a thread pool; kernels release the GIL."""
    if parts == 1:
        work(0)
        return
    with ThreadPoolExecutor(threads or parts) as pool:
        list(pool.map(work, range(parts)))


@numba.njit(cache=True, error_model="numpy")
def _first_difference(rows):
    """The first row that differs from row 0, or -1."""
    for i in range(1, rows.shape[0]):
        for k in range(rows.shape[1]):
            if rows[i, k] != rows[0, k]:
                return i
    return -1


@numba.njit(nogil=True, cache=True, error_model="numpy")
def _largest(rows):
    """The largest entry of each column; and for each row d a slope from which on its excess is 0 whatever the row q."""
    n = rows.shape[0]
    largest = np.zeros(n)
    for i in range(n):
        for k in range(n):
            largest[k] = max(largest[k], rows[i, k])
    far = np.zeros(n)
    for i in range(n):
        for k in range(n):
            gap = largest[k] - rows[i, k]
            if gap > 0.0:
                far[i] = max(far[i], gap / rows[i, k] if rows[i, k] > gap / STEEPEST else STEEPEST)
        far[i] = max(far[i], 1e-300)
    return largest, far


@numba.njit(nogil=True, cache=True, error_model="numpy")
def _find_outside(rows, tile, start, largest, far, slopes, support, hull_d, slope, cap, edge, first, found):
    """Mark in found[j - first, i - start] the pairs (q = row i in the tile, d = row j) that stick out of the hull."""
    pending = np.empty((64, 3))
    width = tile.shape[1]
    total = np.empty(width)
    open_pairs = np.empty(width, dtype=np.int8)
    for j in range(first, first + found.shape[0]):
        screened = settles(slope, cap, edge, far[j], slopes, support)
        open_pairs[:] = 0 if screened else 1
        for level in range(slope.size if screened else 0):
            if slope[level] >= far[j]:
                break  # no excess from here on
            excess_of_all(tile, rows, j, slope[level], largest, total)
            limit = cap[level] * (1.0 - 1e-12)
            for i in range(width):
                open_pairs[i] |= total[i] > limit
        for i in range(width):
            if open_pairs[i] and start + i != j:
                found[j - first, i] = sticks_out(rows, start + i, j, far[j], slopes, support, hull_d, pending)


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
