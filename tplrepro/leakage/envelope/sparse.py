"""The joint hull of a sparse matrix with a smoothing background, without ever making it dense.

Row i is a few stored probabilities over a constant background b_i, as Laplacian smoothing of sparse counts gives. Two
things make tens of thousands of states exact in seconds.

Columns stored in neither row of a pair all have the same ratio, so they act as one column with their total mass: a
pair is a dense pair with about as many columns as row q stores, and `hull` does the rest.

No pair needs a look of its own to be dismissed. Let low_j be the smallest entry of row j as d, and top_i(m) the sum of
the m largest entries of row i as q. Every point of the pair lies on or below the points (m low_j, top_i(m)), so all are
inside the hull if m low_j >= D(top_i(m)) for all m, where D(q) is the d at which the hull's boundary reaches q. That is
low_j >= tau_i with tau_i = max_m D(top_i(m)) / m: one number a row. Rows j are visited in order of growing low_j, each
against the rows i with tau_i > low_j, until there are none.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from tplrepro.leakage.envelope.hull import (
    STEEPEST,
    TIE,
    Hull,
    edges,
    is_diagonal,
    point_at,
    prefix_points,
    sticks_out,
    upper_hull,
)
from tplrepro.progress import progress_bar

__all__ = ["SparseRows", "best_pair", "joint_hull", "sparse_rows"]

# Bounds are compared with this much room, so that rounding never dismisses a pair.
ROOM = 1.0 + 1e-12


class SparseRows(NamedTuple):
    """Compressed rows with what the bounds need; `top` and `size` hold top_i(m) and m for the m that matter."""

    start: np.ndarray  # (n + 1,) where each row's stored entries begin
    column: np.ndarray
    value: np.ndarray  # each row's stored entries in order of falling value
    background: np.ndarray  # (n,)
    top: np.ndarray  # (stored + n,) row i has its entries from start[i] + i on
    size: np.ndarray
    low: np.ndarray  # (n,) the smallest entry of each row


def sparse_rows(probabilities, background: np.ndarray) -> SparseRows:
    """Sort each row's stored entries of a csr_array (n, n) by falling value and take the sums."""
    start = probabilities.indptr.astype(np.int64)
    column, value = probabilities.indices.astype(np.int64), probabilities.data
    owner = np.repeat(np.arange(start.size - 1), np.diff(start))
    order = np.lexsort((-value, owner))
    column, value = column[order], value[order]
    top, size, low = _tops(start, value, background)
    return SparseRows(start, column, value, background, top, size, low)


@numba.njit(cache=True, error_model="numpy")
def _tops(start, value, background):
    n = start.size - 1
    top = np.empty(value.size + n)
    size = np.empty(value.size + n)
    low = np.empty(n)
    for i in range(n):
        b, missing = background[i], n - (start[i + 1] - start[i])
        total, count, at, placed = 0.0, 0.0, start[i] + i, missing == 0
        low[i] = b if missing else STEEPEST
        for k in range(start[i], start[i + 1]):
            if not placed and value[k] < b:
                total, count, placed = total + missing * b, count + missing, True
                top[at], size[at] = total, count
                at += 1
            total, count = total + value[k], count + 1.0
            top[at], size[at] = total, count
            low[i] = min(low[i], value[k])
            at += 1
        if not placed:
            total, count = total + missing * b, count + missing
            top[at], size[at] = total, count
        elif missing == 0:
            top[at], size[at] = total, count
    return top, size, low


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _thresholds(start, top, size, hull_d, hull_q):
    """tau_i of each row: against rows with a larger smallest entry it cannot leave the hull (d, q; growing)."""
    n = start.size - 1
    last = hull_d.size - 1
    tau = np.zeros(n)
    for i in range(n):
        for k in range(start[i] + i, start[i + 1] + i + 1):
            q = top[k]
            at = np.searchsorted(hull_q, q)
            if at > last:
                d = hull_d[last] + (q - hull_q[last])  # beyond the largest gap the boundary rises with slope 1
            else:
                under_d, under_q = (hull_d[at - 1], hull_q[at - 1]) if at > 0 else (0.0, 0.0)
                d = under_d + (hull_d[at] - under_d) * (q - under_q) / (hull_q[at] - under_q)
            tau[i] = max(tau[i], d / size[k])
    return tau


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _scatter(j, start, column, value, background, dense, stored):
    """Row j as d, dense; `stored` marks its columns."""
    dense[:] = background[j]
    stored[:] = False
    for k in range(start[j], start[j + 1]):
        dense[column[k]] = value[k]
        stored[column[k]] = True


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _compress(i, j, start, column, value, background, dense, stored, seen, buffer):
    """Rows i (as q) and j (as d, scattered) with equal columns merged; returns the columns used and the largest gap/d.

    Columns with q <= d count only towards 1 - q(S): they become one column with d = 1, which is never chosen.
    """
    b_i, b_j = background[i], background[j]
    b_i, b_j = background[i], background[j]
    n, stored_i, stored_j = start.size - 1, start[i + 1] - start[i], start[j + 1] - start[j]
    used, shared, rest = 0, 0, 0.0
    for k in range(start[i], start[i + 1]):
        c = column[k]
        seen[c] = i
        shared += stored[c]
        if value[k] > dense[c]:
            buffer[0, used], buffer[1, used] = value[k], dense[c]
            used += 1
        else:
            rest += value[k]
    alone = stored_j - shared  # columns that row j alone stores: those below b_i can be chosen
    k = start[j + 1] - 1
    while k >= start[j] and value[k] < b_i:
        if seen[column[k]] != i:
            buffer[0, used], buffer[1, used] = b_i, value[k]
            used += 1
            alone -= 1
        k -= 1
    neither = n - stored_i - stored_j + shared
    rest += alone * b_i
    if b_i > b_j and neither > 0:
        buffer[0, used], buffer[1, used] = neither * b_i, neither * b_j
        used += 1
    else:
        rest += neither * b_i
    far = 0.0
    for c in range(used):
        gap, d = buffer[0, c] - buffer[1, c], buffer[1, c]
        if gap > 0.0:
            far = max(far, gap / d if d > gap / STEEPEST else STEEPEST)
    buffer[0, used], buffer[1, used] = min(rest, 1.0), 1.0
    return used + 1, max(far * ROOM, 1e-300)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _scan_row(j, candidates, rows, work, points, pairs):
    """Add to the hull what sticks out of it among the pairs (q = row i, d = row j), i in candidates."""
    start, column, value, background = rows
    dense, stored, seen, buffer, pending = work
    _scatter(j, start, column, value, background, dense, stored)
    seen[:] = -1
    grown = False
    if points.shape[0] > 0:
        slopes, support = edges(points)
        hull_d = points[:, 0].copy()
    else:
        slopes, support, hull_d = np.zeros(1), np.zeros(1), np.zeros(0)
    for i in candidates:
        if i == j:
            continue
        used, far = _compress(i, j, start, column, value, background, dense, stored, seen, buffer)
        if points.shape[0] > 0 and not sticks_out(buffer[:, :used], 0, 1, far, slopes, support, hull_d, pending):
            continue
        new = prefix_points(buffer[0, :used], buffer[1, :used])
        if new.shape[0] == 0:
            continue
        new_pairs = np.empty((new.shape[0], 2), dtype=np.int64)
        new_pairs[:, 0] = i
        new_pairs[:, 1] = j
        points, pairs = upper_hull(np.concatenate((points, new)), np.concatenate((pairs, new_pairs)))
        slopes, support = edges(points)
        hull_d = points[:, 0].copy()
        grown = True
        if points[0, 0] == 0.0 and points[0, 2] == 0.0:
            break
    return points, pairs, grown


def joint_hull(probabilities, background: np.ndarray, progress: bool = False) -> Hull:
    """The joint hull of all ordered pairs of rows of a csr_array (n, n) over `background` (n,).

    Returns
    -------
    Hull with K vertices; K = 0 if all rows are equal.
    """
    rows = sparse_rows(probabilities, background)
    n = background.size
    parts = rows.start, rows.column, rows.value, rows.background
    work = _workspace(n)
    points, pairs = np.empty((0, 3)), np.empty((0, 2), dtype=np.int64)
    everyone = np.arange(n)
    order = np.argsort(rows.low, kind="stable")
    with progress_bar(n, progress, "joint hull", "row") as bar:
        candidates, tau = everyone, None
        for visited, j in enumerate(order.tolist()):
            if tau is not None:
                candidates = everyone[: np.searchsorted(-tau, -rows.low[j])]
                if candidates.size == 0:
                    break  # no later row has a smaller entry
            points, pairs, grown = _scan_row(j, candidates, parts, work, points, pairs)
            bar.update()
            if is_diagonal(points):
                break
            # New thresholds cost about as much as a pass over all entries, so not after every row.
            if len(points) and (tau is None or (grown and (visited < 64 or visited % 16 == 0))):
                bounds = _thresholds(
                    rows.start, rows.top, rows.size, points[::-1, 0].copy(), (points[::-1, 0] + points[::-1, 1]).copy()
                )
                everyone = np.argsort(-bounds, kind="stable")
                tau = bounds[everyone] * ROOM
        bar.update(n - bar.n)
    return Hull(*np.ascontiguousarray(points.T), *np.ascontiguousarray(pairs.T))


def _workspace(n: int):
    return (
        np.empty(n),
        np.empty(n, dtype=np.bool_),
        np.empty(n, dtype=np.int64),
        np.empty((2, n + 2)),
        np.empty((64, 3)),
    )


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _improve_row(j, candidates, rows, work, inverse, best):
    """The steepest tangent from (-inverse, 0) among the pairs with d = row j, if steeper than `best`; and its row i."""
    start, column, value, background = rows
    dense, stored, seen, buffer, _ = work
    _scatter(j, start, column, value, background, dense, stored)
    seen[:] = -1
    best_i = -1
    for i in candidates:
        if i == j:
            continue
        used, _ = _compress(i, j, start, column, value, background, dense, stored, seen, buffer)
        while True:
            d_sum, gap_sum = point_at(buffer[:, :used], 0, 1, best)
            slope = gap_sum / (d_sum + inverse)
            if not slope > best * (1.0 + TIE):
                break
            best, best_i = slope, i
    return best, best_i


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _tangent_thresholds(start, top, size, inverse, best):
    """tau_i for the half-plane above the tangent: there q > (1 + best) d + best inverse."""
    n = start.size - 1
    tau = np.zeros(n)
    for i in range(n):
        for k in range(start[i] + i, start[i + 1] + i + 1):
            tau[i] = max(tau[i], (top[k] - best * inverse) / ((1.0 + best) * size[k]))
    return tau


def best_pair(probabilities, background: np.ndarray, alpha: float) -> tuple[float, float, float]:
    """(d(S), gap(S), 1 - q(S)) of the pair and set that attain L(alpha), 0 < alpha <= 700; 0, 0, 1 if L = 0."""
    rows = sparse_rows(probabilities, background)
    n = background.size
    parts = rows.start, rows.column, rows.value, rows.background
    work = _workspace(n)
    inverse = 1.0 / np.expm1(alpha)
    best, pair = 0.0, None
    everyone = candidates = np.arange(n)
    tau, at = None, 0.0
    for j in np.argsort(rows.low, kind="stable").tolist():
        if best > at * 1.001 or (tau is None and best > 0.0):
            bounds = _tangent_thresholds(rows.start, rows.top, rows.size, inverse, best)
            everyone = np.argsort(-bounds, kind="stable")
            tau, at = bounds[everyone] * ROOM, best
        if tau is not None:
            candidates = everyone[: np.searchsorted(-tau, -rows.low[j])]
            if candidates.size == 0:
                break
        best, i = _improve_row(j, candidates, parts, work, inverse, best)
        if i >= 0:
            pair = i, j
    if pair is None:
        return 0.0, 0.0, 1.0
    i, j = pair
    dense, stored, seen, buffer, _ = work
    _scatter(j, *parts, dense, stored)
    used, _ = _compress(i, j, *parts, dense, stored, seen, buffer)
    points = prefix_points(buffer[0, :used], buffer[1, :used])
    chosen = int(np.argmax(points[:, 1] / (points[:, 0] + inverse)))
    return tuple(float(total) for total in points[chosen])
