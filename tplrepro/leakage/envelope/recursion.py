"""The recursion of Eqs. (13) and (15) of [1] for compiled code, and the search for the largest
range of differences (`prior_free`).

`accumulation.leakages_in_turn` is the recursion as a reader of [1] knows it. Here it runs along
tables of vertices: rows d, gap, rest, the alpha up to which each vertex applies, and the scale of
leakages (`PrivacyLossFunction.table`).
"""

from math import isnan, nan

import numpy as np

from tplrepro.leakage.envelope.compiled import FAST, kernel
from tplrepro.leakage.vertex import vertex_crossing, vertex_loss, vertex_slope

# Columns of a table of vertices.
D = 0
GAP = 1
REST = 2
UNTIL = 3
SCALE = 4


@kernel()
def vertex_at(vertices, first, last, alpha):
    """The number of the row of `vertices`, from `first` to `last`, both included, whose vertex
    gives L(alpha), as by `bisect_right`; `alpha` is in units of its scale."""
    low = first
    high = last
    while low < high:
        middle = (low + high) // 2
        if alpha < vertices[middle, UNTIL]:
            high = middle
        else:
            low = middle + 1
    return low


@kernel()
def run_along(vertices, last, budgets):
    """Leakages (R,) along `budgets` (R,), nats, with one loss function, of which `vertices` (K, 5),
    K >= 1, are the table.

    `last` is the leakage before them, NaN if there is none.
    """
    leakages = np.empty(budgets.size)
    scale = vertices[0, SCALE]
    last_row = vertices.shape[0] - 1
    fixed = -1.0  # the budget with which the last leakage is a fixed point
    for t in range(budgets.size):
        budget = budgets[t]
        if budget != fixed:
            leakage = budget
            if not isnan(last):
                at = vertex_at(vertices, np.int64(0), last_row, last)
                d = vertices[at, D]
                gap = vertices[at, GAP]
                rest = vertices[at, REST]
                leakage += scale * vertex_loss(d, gap, rest, last / scale)
            fixed = -1.0
            if leakage == last:
                fixed = budget
            last = leakage
        leakages[t] = last
    return leakages


def accumulate_compiled(table, last, budgets):
    """Leakages (R,) along budgets (R,), nats, with one loss function, given by its `table` (K, 5).

    `last` is the leakage before them, None if there is none.
    """
    # Copies, since for read-only arrays, and for reversed ones, kernels would be compiled again.
    vertices = np.array(table)
    budgets = np.array(budgets)
    if last is None:
        last = nan
    return run_along(vertices, last, budgets)


@kernel()
def accumulate_with_derivative(vertices, first, steps, budgets, change):
    """Leakages (R,) along `budgets` (R,), nats, and their derivative (R, N) by N unknowns if
    `change` (R, N) is that of budgets.

    The table of loss function f is the rows of `vertices` (V, 5) from `first[f]` on. `steps` (R -
    1,) holds the number of each step's function, or -1 if there is none.
    """
    leakages = budgets.copy()
    derivative = change.copy()
    for t in range(1, budgets.size):
        before = t - 1
        function = steps[before]
        if function < 0:
            continue
        alpha = leakages[before]
        at = first[function]
        while alpha >= vertices[at, UNTIL]:
            at += 1
        d = vertices[at, D]
        gap = vertices[at, GAP]
        rest = vertices[at, REST]
        scale = vertices[at, SCALE]
        scaled = alpha / scale
        leakages[t] += scale * vertex_loss(d, gap, rest, scaled)
        slope = vertex_slope(d, gap, rest, scaled)
        for n in range(change.shape[1]):
            derivative[t, n] += slope * derivative[before, n]
    return leakages, derivative


@kernel()
def accumulate_for_each(points, first, budgets):
    """Leakages (U, T) along `budgets` (T,), nats, with the loss function of each of U hulls.

    Hull u is `points[first[u]:first[u + 1]]`, rows (K, 5) of which d, gap and rest are used;
    `first` is (U + 1,). The row of a hull is NaN where doubles do not decide: a crossing is out of
    range, or rows are nearly disjoint (`envelope.joint_hull`).
    """
    leakages = np.empty((first.size - 1, budgets.size))
    leakages[:] = nan
    vertices = points.copy()
    vertices[:, SCALE] = 1.0
    for u in range(first.size - 1):
        start = first[u]
        last = first[u + 1] - 1
        if last < start:  # without vertices all rows are equal
            for t in range(budgets.size):
                leakages[u, t] = budgets[t]
            continue
        nearly_disjoint = 0.0 < points[last, REST] < 1e-8
        is_decided = points[last, D] > 0.0 or not nearly_disjoint
        for v in range(start, last):
            d = points[v, D]
            gap = points[v, GAP]
            next_d = points[v + 1, D]
            next_gap = points[v + 1, GAP]
            crossing = vertex_crossing(d, gap, next_d, next_gap)
            vertices[v, UNTIL] = crossing
            if isnan(crossing):
                is_decided = False
        if is_decided:
            along = run_along(vertices[start : last + 1], nan, budgets)
            for t in range(budgets.size):  # assigning a whole row would take seconds to compile
                leakages[u, t] = along[t]
    return leakages


@kernel(fastmath=FAST)
def farthest_rows(first, second, least):
    """The largest range, max_k - min_k, of the difference of a row of `first` (a, n) and one of
    `second` (b, n), if above `least`, and the numbers of the two rows; else `least`, 0, 0."""
    best_i = best_j = np.int64(0)
    for i in range(first.shape[0]):
        for j in range(second.shape[0]):
            high = low = first[i, 0] - second[j, 0]
            for k in range(first.shape[1]):
                difference = first[i, k] - second[j, k]
                high = max(high, difference)
                low = min(low, difference)
            if high - low > least:
                least = high - low
                best_i = i
                best_j = j
    return least, best_i, best_j
