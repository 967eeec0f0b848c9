"""Rows of a sparse matrix over a background, and a pair of them as a short dense pair.

Columns stored in neither row of a pair all have the same ratio, so they act as one column with their total mass; so do
the columns that only row d stores, for each of its few distinct values. A pair then has about as many columns as row q
stores, and `hull` does the rest.

A group of rows has a row of its own that bounds them all: as q the largest entry of each column, as d the smallest.
What the bounds' pair leaves inside the hull no pair of their members can bring out.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from tplrepro.leakage.envelope.hull import STEEPEST

__all__ = ["ROOM", "SparseRows", "Workspace", "compress", "gather", "group_rows", "scatter", "sparse_rows", "workspace"]

# Bounds are compared with this much room, so that rounding never dismisses a pair.
ROOM = 1.0 + 1e-12


class SparseRows(NamedTuple):
    """Rows i: entries value[start[i]:start[i + 1]], falling, at `column`; everywhere else `background[i]`."""

    start: np.ndarray
    column: np.ndarray
    value: np.ndarray
    background: np.ndarray


class Workspace(NamedTuple):
    """Room for one row d spread out (its entries, which columns it stores, their runs) and for one pair.

    `stored` is False everywhere, and `taken` 0, but between `scatter` and `gather`.
    """

    dense: np.ndarray
    stored: np.ndarray
    run_of: np.ndarray
    run_value: np.ndarray
    run_size: np.ndarray
    taken: np.ndarray
    buffer: np.ndarray
    pending: np.ndarray


def workspace(n: int) -> Workspace:
    return Workspace(
        np.empty(n),
        np.zeros(n, dtype=np.bool_),
        np.empty(n, dtype=np.int64),
        np.empty(n + 1),
        np.empty(n + 1, dtype=np.int64),
        np.zeros(n + 1, dtype=np.int64),
        np.empty((2, 2 * n + 2)),
        np.empty((64, 3)),
    )


def sparse_rows(start, column, value, background) -> SparseRows:
    """Each row's entries in order of falling value; a csr_array's parts and the background (n,)."""
    start, column = np.asarray(start, dtype=np.int64), np.asarray(column, dtype=np.int64)
    return SparseRows(start, *_falling(start, column, value), np.asarray(background, dtype=float))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _falling(start, column, value):
    new_column, new_value = np.empty_like(column), np.empty_like(value)
    for i in range(start.size - 1):
        own = slice(start[i], start[i + 1])
        order = np.argsort(-value[own], kind="mergesort")
        new_column[own], new_value[own] = column[own][order], value[own][order]
    return new_column, new_value


def group_rows(rows: SparseRows, order: np.ndarray, size: int, largest: bool, low: np.ndarray) -> SparseRows:
    """The bounds of groups of `size` rows, taken in `order`: entrywise largest, or smallest (`low`: of each row)."""
    kernel = _group_largest if largest else _group_smallest
    return sparse_rows(*kernel(*rows, order, size, low))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _group_largest(start, column, value, background, order, size, low):
    n = background.size
    groups = -(-order.size // size)
    entry = np.full(n, -1)
    new_start = np.zeros(groups + 1, dtype=np.int64)
    new_column = np.empty(column.size, dtype=np.int64)
    new_value = np.empty(column.size)
    new_background = np.zeros(groups)
    used = 0
    for g in range(groups):
        first = used
        for i in order[g * size : (g + 1) * size]:
            new_background[g] = max(new_background[g], background[i])
            for k in range(start[i], start[i + 1]):
                c = column[k]
                if entry[c] < first:
                    entry[c] = used
                    new_column[used], new_value[used] = c, value[k]
                    used += 1
                else:
                    new_value[entry[c]] = max(new_value[entry[c]], value[k])
        for k in range(first, used):
            new_value[k] = max(new_value[k], new_background[g])
        new_start[g + 1] = used
    return new_start, new_column[:used], new_value[:used], new_background


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _group_smallest(start, column, value, background, order, size, low):
    n = background.size
    groups = -(-order.size // size)
    count = np.zeros(n, dtype=np.int64)
    smallest = np.empty(n)
    new_start = np.zeros(groups + 1, dtype=np.int64)
    new_column = np.empty(column.size, dtype=np.int64)
    new_value = np.empty(column.size)
    new_background = np.full(groups, STEEPEST)
    used = 0
    for g in range(groups):
        members = order[g * size : (g + 1) * size]
        for i in members:
            new_background[g] = min(new_background[g], low[i])
            for k in range(start[i], start[i + 1]):
                c = column[k]
                smallest[c] = min(smallest[c], value[k]) if count[c] else value[k]
                count[c] += 1
        for i in members:  # only columns that all of them store are known to be larger than the smallest entry
            for k in range(start[i], start[i + 1]):
                c = column[k]
                if count[c] == members.size:
                    new_column[used], new_value[used] = c, smallest[c]
                    used += 1
                count[c] = 0
        new_start[g + 1] = used
    return new_start, new_column[:used], new_value[:used], new_background


@numba.njit(cache=True, nogil=True, error_model="numpy")
def scatter(j, start, column, value, background, work):
    """Spread row j out as d; returns the number of runs of equal values among its entries (falling)."""
    dense, stored, run_of, run_value, run_size = work[0], work[1], work[2], work[3], work[4]
    runs = 0
    for k in range(start[j], start[j + 1]):
        c = column[k]
        dense[c], stored[c] = value[k], True
        if runs == 0 or value[k] != run_value[runs - 1]:
            run_value[runs], run_size[runs] = value[k], 0
            runs += 1
        run_size[runs - 1] += 1
        run_of[c] = runs - 1
    return runs


@numba.njit(cache=True, nogil=True, error_model="numpy")
def gather(j, start, column, work):
    """Take row j back in."""
    for k in range(start[j], start[j + 1]):
        work[1][column[k]] = False


@numba.njit(cache=True, nogil=True, error_model="numpy")
def compress(i, start, column, value, background, runs, stored_j, b_j, work):
    """Row i as q and the scattered row as d with equal columns merged, in work.buffer.

    `runs`, `stored_j`, `b_j`: the scattered row's number of runs, of entries, and its background. Returns the number of
    columns and a slope from which on the excess is 0. Columns with q <= d count only towards 1 - q(S): they become one
    column with d = 1, which is never chosen.
    """
    dense, stored, run_of, run_value, run_size, taken, buffer = (
        work[0], work[1], work[2], work[3], work[4], work[5], work[6],
    )  # fmt: skip
    b_i, n, stored_i = background[i], dense.size, start[i + 1] - start[i]
    used, shared, rest = 0, 0, 0.0
    for k in range(start[i], start[i + 1]):
        c = column[k]
        d = b_j
        if stored[c]:
            d = dense[c]
            shared += 1
            taken[run_of[c]] += 1
        if value[k] > d:
            buffer[0, used], buffer[1, used] = value[k], d
            used += 1
        else:
            rest += value[k]
    alone = stored_j - shared  # columns that row d alone stores: those below b_i can be chosen
    r = runs - 1
    while r >= 0 and run_value[r] < b_i:
        count = run_size[r] - taken[r]
        if count > 0:
            buffer[0, used], buffer[1, used] = count * b_i, count * run_value[r]
            used += 1
            alone -= count
        r -= 1
    for k in range(start[i], start[i + 1]):
        if stored[column[k]]:
            taken[run_of[column[k]]] = 0
    rest += alone * b_i
    neither = n - stored_i - stored_j + shared
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
