"""Kernels as plain Python, on few states, against what they stand for in whole numbers.

Probabilities are multiples of 1/64, so that all sums are exact, and hulls must be equal.
"""

import math
from itertools import permutations

import numpy as np
import pytest
from scipy.sparse import csr_array

import tplrepro as tpl
from tplrepro.allocation.minimisation import Recursion
from tplrepro.leakage.accumulation import accumulate_leakages
from tplrepro.leakage.envelope import (
    dense,
    few_rows,
    hulls,
    leakages_of_small,
    recursion,
    screens,
    sparse,
    sparse_pairs,
)
from tplrepro.leakage.envelope.compiled import Kernel
from tplrepro.validation import frozen

UNITS = 64


@pytest.fixture(autouse=True)
def kernels_in_python(monkeypatch):
    monkeypatch.setattr(Kernel, "worth", math.inf)


def rows_in_units(seed, n):
    """A matrix (n, n) of whole numbers, rows of which sum to UNITS."""
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.full(n, rng.choice([0.3, 1.0, 20.0])), n)
    return np.array([rng.multinomial(UNITS, row) for row in weights])


def in_probabilities(units):
    return frozen(units / UNITS)


def points_of_pair(q, d):
    """(d(S), gap(S)) in units for the sets S of Theorem 8 of [1], from the smallest on."""
    columns = [k for k in range(len(q)) if q[k] > d[k]]
    columns.sort(key=lambda k: d[k] / (q[k] - d[k]))
    return [
        (int(d[columns[:m]].sum()), int((q - d)[columns[:m]].sum()))
        for m in range(1, len(columns) + 1)
    ]


def hull_in_units(points):
    """The vertices of the upper hull of points and the origin, from the largest gap on."""
    stack = [(0, 0)]
    for d, gap in sorted(set(points)):
        if gap <= stack[-1][1]:
            continue
        while len(stack) > 1 and not is_right_turn(stack[-2], stack[-1], (d, gap)):
            stack.pop()
        if stack[-1][0] == d and len(stack) > 1:
            stack.pop()
        stack.append((d, gap))
    return stack[:0:-1]


def is_right_turn(a, b, c):
    return (b[1] - a[1]) * (c[0] - a[0]) > (c[1] - a[1]) * (b[0] - a[0])


def hull_of_rows(units):
    pairs = permutations(units, 2)
    return hull_in_units([point for pair in pairs for point in points_of_pair(*pair)])


def check_hull(points, units):
    """The vertices are those of the exact hull, and the rows that they name attain them."""
    expected = [(d, gap, UNITS - d - gap) for d, gap in hull_of_rows(units)]
    assert (UNITS * points[:, :3]).tolist() == [[*vertex] for vertex in expected]
    for (d, gap, _), (i, j) in zip(expected, points[:, 3:].astype(int), strict=True):
        assert (d, gap) in points_of_pair(units[i], units[j])


def check_vertex(vertex, units, alpha):
    """It is the one of the exact hull that attains L(alpha)."""
    inverse = UNITS / math.expm1(alpha)
    slopes = {gap / (d + inverse): (d, gap) for d, gap in hull_of_rows(units)}
    d, gap = slopes[max(slopes)]
    assert (vertex.d, vertex.gap, vertex.rest) == (d / UNITS, gap / UNITS, 1 - (d + gap) / UNITS)


def sparse_form(units):
    """Entries that differ from their row's most frequent one, and that one, of each row."""
    background = np.array([np.bincount(row).argmax() for row in units])
    is_stored = units != background[:, None]
    place = is_stored.nonzero()
    stored = csr_array((units[is_stored] / UNITS, place), shape=units.shape)
    return stored, background / UNITS


def test_the_hull_of_few_rows_is_exact():
    for seed in range(40):
        units = rows_in_units(seed, 2 + seed % 5)
        check_hull(dense.hull_of_few_rows(in_probabilities(units)), units)


def test_the_hull_of_several_matrices_is_exact():
    for seed in range(25):
        several = [rows_in_units(100 * seed + number, 3) for number in range(4)]
        points = dense.hull_of_several(in_probabilities(np.array(several)))
        of_each = [vertex for units in several for vertex in hull_of_rows(units)]
        d, gap = UNITS * points[:, :2].T
        assert hull_in_units(zip(d, gap, strict=True)) == hull_in_units(of_each)


@pytest.fixture
def small_blocks(monkeypatch):
    """Few rows take the ways of many, in several blocks and groups."""
    monkeypatch.setattr(dense, "SMALL", 1)
    monkeypatch.setattr(dense, "BLOCK", 4)
    monkeypatch.setattr(sparse, "GROUP", 2)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(("n", "many"), [(2, 3), (3, 6), (4, 8), (6, 8), (18, 1)])
def test_the_hull_of_many_rows_is_exact(n, many):
    for seed in range(many):
        units = rows_in_units(seed, n)
        check_hull(dense.joint_hull(in_probabilities(units)), units)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("n", [3, 5, 7])
def test_the_hull_of_sparse_rows_is_exact(n):
    for seed in range(12):
        units = rows_in_units(seed, n)
        check_hull(sparse.joint_hull(*sparse_form(units)), units)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("alpha", [0.01, 1.0, 6.0])
def test_the_best_vertex_is_exact(alpha):
    for seed in range(12):
        units = rows_in_units(seed, 2 + seed % 6)
        check_vertex(dense.best_vertex(in_probabilities(units), alpha), units, alpha)
        check_vertex(sparse.best_vertex(*sparse_form(units), alpha), units, alpha)


def test_leakages_are_those_of_single_steps():
    matrices = np.array([rows_in_units(seed, 3) for seed in range(6)]) / UNITS
    matrices = np.append(matrices, np.full((1, 3, 3), 1 / 3), axis=0)  # equal rows
    budgets = np.array([0.3, 0.1, 0.1, 0.7, 0.2])
    found = leakages_of_small(matrices, budgets)
    losses = [tpl.PrivacyLossFunction(rows) for rows in matrices]
    for loss, leakages in zip(losses, found, strict=True):
        in_turn = accumulate_leakages([loss] * 4, budgets)
        np.testing.assert_array_equal(leakages, in_turn)
        if not loss.is_zero:
            along = recursion.run_along(loss.table, math.nan, budgets)
            np.testing.assert_array_equal(along, in_turn)


def test_a_derivative_is_the_slopes_of_the_steps_multiplied():
    matrices = [tpl.TransitionMatrix(rows_in_units(seed, 3) / UNITS) for seed in (1, 2)]
    losses = [*map(tpl.PrivacyLossFunction, matrices)]
    losses[0].scale = 2.0
    steps = [losses[0], None, losses[1], losses[0]]
    side = Recursion(steps)
    budgets = np.array([0.4, 0.2, 0.5, 0.3, 0.1])
    change = np.random.default_rng(0).normal(size=(5, 2))
    leakages, derivative = recursion.accumulate_with_derivative(
        side.vertices, side.first, side.steps, budgets, change
    )
    np.testing.assert_array_equal(leakages, accumulate_leakages(steps, budgets))
    expected = change.copy()
    for t, loss in enumerate(steps, start=1):
        if loss is not None:
            expected[t] += loss.slope_at(leakages[t - 1]) * expected[t - 1]
    np.testing.assert_array_equal(derivative, expected)
