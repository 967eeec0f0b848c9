"""Kernels as plain Python, on few states, against what they stand for in whole numbers.

Probabilities are multiples of 1/64, so that all sums are exact, and hulls must be equal.
"""

import math
from fractions import Fraction
from itertools import combinations, pairwise, permutations

import numpy as np
import pytest
from scipy.sparse import csr_array

import tplrepro as tpl
from tplrepro.allocation.minimisation import Recursion
from tplrepro.leakage.accumulation import accumulate_leakages
from tplrepro.leakage.envelope import (
    compiled,
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
from tplrepro.leakage.vertex import Vertex
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


def rows_of_two_values(seed):
    """A matrix (6, 6) in units, each row of which is the same everywhere but in one column."""
    rng = np.random.default_rng(seed)
    least = rng.integers(8, 13, (6, 1))
    units = least.repeat(6, axis=1)
    odd = rng.integers(0, 6, (6, 1))
    np.put_along_axis(units, odd, UNITS - 5 * least, axis=1)
    return units


def rows_of_three_values(seed):
    """A matrix (6, 6) in units, each row of which is the same in four columns, less in the fifth
    and more in the sixth, in any order."""
    rng = np.random.default_rng(seed)
    often = rng.integers(7, 11, 6)
    rows = [[k, k, k, k, k - 2, UNITS - 5 * k + 2] for k in often]
    return rng.permuted(rows, axis=1)


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


def most_frequent(units):
    """The most frequent entry of each row."""
    return np.array([np.bincount(row).argmax() for row in units])


def sparse_form(units, background):
    """Entries that are stored over the background of each row, and that."""
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
    monkeypatch.setattr(sparse, "GROUP", 4)


@pytest.fixture(params=[1, 2])
def threads(request, monkeypatch):
    monkeypatch.setattr(compiled, "thread_count", lambda n, enough: request.param)


@pytest.mark.usefixtures("small_blocks", "threads")
@pytest.mark.parametrize(("n", "many"), [(2, 3), (3, 6), (4, 8), (6, 8), (18, 1)])
def test_the_hull_of_many_rows_is_exact(n, many):
    for seed in range(many):
        units = rows_in_units(seed, n)
        check_hull(dense.joint_hull(in_probabilities(units)), units)


@pytest.mark.usefixtures("small_blocks", "threads")
@pytest.mark.parametrize("most_slopes", [1, 64])  # with one there is no screen
@pytest.mark.parametrize("n", [3, 5, 7, 13])
def test_the_hull_of_sparse_rows_is_exact(n, most_slopes, monkeypatch):
    monkeypatch.setattr(sparse, "SLOPES", most_slopes)
    for seed in range(8):
        units = rows_in_units(seed, n)
        check_hull(sparse.joint_hull(*sparse_form(units, most_frequent(units))), units)


def test_the_hull_of_sparse_rows_of_few_values_is_exact():
    for seed in range(20):
        for units in (rows_of_two_values(seed), rows_of_three_values(seed)):
            check_hull(sparse.joint_hull(*sparse_form(units, most_frequent(units))), units)


def test_rows_may_store_all_of_their_entries():
    units = np.random.default_rng(0).permuted([[1, 3, 7, 12, 18, 23]] * 6, axis=1)
    check_hull(sparse.joint_hull(*sparse_form(units, np.zeros(6))), units)


def test_a_block_may_have_more_rows_than_a_group(monkeypatch):
    monkeypatch.setattr(dense, "SMALL", 1)
    for seed in range(4):
        units = rows_in_units(seed, 20)
        check_hull(dense.joint_hull(in_probabilities(units)), units)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("alpha", [0.01, 1.0, 6.0])
def test_the_best_vertex_is_exact(alpha):
    for seed in range(16):
        n = 13
        if seed < 12:
            n = 2 + seed % 6
        units = rows_in_units(seed, n)
        form = sparse_form(units, most_frequent(units))
        check_vertex(dense.best_vertex(in_probabilities(units), alpha), units, alpha)
        check_vertex(sparse.best_vertex(*form, alpha), units, alpha)


@pytest.mark.parametrize("n", [2, 6])  # with a single vertex, and with several
def test_leakages_are_those_of_single_steps(n):
    matrices = np.array([rows_in_units(seed, n) for seed in range(6)]) / UNITS
    matrices = np.append(matrices, np.full((1, n, n), 1 / n), axis=0)  # equal rows
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
    matrices = [tpl.TransitionMatrix(rows_in_units(seed, 6) / UNITS) for seed in (1, 2)]
    losses = [*map(tpl.PrivacyLossFunction, matrices)]
    losses[0].scale = 2.0
    steps = [losses[0], None, losses[1], losses[0]]
    side = Recursion(steps)
    budgets = np.array([2.0, 0.2, 1.5, 1.3, 0.1])
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


def excess_of(q, d, slope):
    return float(sum(max(gap - Fraction(slope) * below, 0) for gap, below in gaps_of(q, d)))


def gaps_of(q, d):
    """q - d and d in each column, as fractions."""
    return [
        (Fraction(int(a - b), UNITS), Fraction(int(b), UNITS)) for a, b in zip(q, d, strict=True)
    ]


def test_excesses_are_sums_of_what_is_above_a_multiple_of_a_row():
    slopes = np.array([0.0, 0.125, 1.5, 8.0])
    step = 2.0**-20
    for seed in range(6):
        units = rows_in_units(seed, 5)
        rows = in_probabilities(units)
        pairs = np.array([*permutations(range(5), 2)])
        with_steps = screens.excesses_of_pairs(rows, pairs, slopes, step)
        last = screens.last_slopes(rows, rows.max(axis=0))
        for number, (i, j) in enumerate(pairs):
            if last[j] < np.inf:
                assert excess_of(units[i], units[j], last[j]) <= 1e-15
            for e, slope in enumerate(slopes):
                excess = excess_of(units[i], units[j], slope)
                above = np.sum(units[i] > (1 + slope) * units[j])
                assert hulls.excess_of_pair(rows, i, j, 5, slope) == excess
                assert with_steps[e, number] == excess + step * above


def test_a_pair_sticks_out_if_its_points_change_the_hull():
    n = 12
    outside = []
    for seed in range(10):
        units = rows_in_units(seed, n)
        rows = in_probabilities(units)
        pairs = np.array([*permutations(range(n), 2)])
        known = pairs[seed::15]
        last = screens.last_slopes(rows, rows.max(axis=0))
        points = hulls.grow_hull(dense.NO_POINTS, rows, known, last)
        hull = hulls.edges_of_hull(points)
        vertices = hull_in_units(
            [one for i, j in known for one in points_of_pair(units[i], units[j])]
        )
        assert (UNITS * points[:, :2]).tolist() == [[*vertex] for vertex in vertices]
        pending = np.empty((hulls.PENDING, 3))
        for i, j in pairs:
            with_pair = hull_in_units([*vertices, *points_of_pair(units[i], units[j])])
            outside.append(with_pair != vertices)
            assert hulls.sticks_out(rows, i, j, n, last[j], hull, pending) == outside[-1]
    assert 0.1 < np.mean(outside) < 0.9


def test_only_a_vertex_that_nothing_exceeds_is_diagonal():
    assert not hulls.is_diagonal(dense.NO_POINTS)
    assert hulls.is_diagonal(np.array([[0.0, 1.0, 0.0, 0.0, 1.0]]))
    assert not hulls.is_diagonal(np.array([[0.0, 0.5, 0.5, 0.0, 1.0]]))


def steep_hull(seed):
    """The edges of a hull with seven vertices."""
    rng = np.random.default_rng(seed)
    widths = rng.uniform(0.01, 0.1, 7)
    slopes = np.sort(rng.uniform(0.1, 5.0, 7))[::-1]
    points = np.zeros((7, 5))
    points[:, 0] = np.cumsum(widths)[::-1]
    points[:, 1] = np.cumsum(widths * slopes)[::-1]
    return hulls.edges_of_hull(points)


def test_caps_are_the_fewest_whose_polygon_is_under_the_hull():
    sizes = set()
    for seed in range(40):
        hull = steep_hull(seed)
        slopes, support, _ = hull
        caps = 0.93 * support[:-1]
        far = slopes[-1] * (1.0 - 0.1 * (seed % 3))

        def is_under(chosen, slopes=slopes, caps=caps, support=support, far=far):
            corners = [k for k in chosen if slopes[k] < far]
            heights = np.interp(slopes, [*slopes[corners], far], [*caps[corners], 0.0])
            return bool((heights[slopes < far] <= support[slopes < far]).all())

        found = screens.fewest_caps(slopes[:-1], caps, np.arange(7), far, hull, 7)
        fewest = next(
            size
            for size in range(1, 8)
            if any(is_under((0, *others)) for others in combinations(range(1, 7), size - 1))
        )
        assert is_under(found)
        assert found.size == fewest
        sizes.add(fewest)
    assert len(sizes) > 2


def test_partners_have_the_largest_excess():
    slopes = np.array([0.0, 0.25, 2.0])
    for seed in range(10):
        units = rows_in_units(seed, 6)
        rows = in_probabilities(units)
        columns = screens.columns_of(rows)
        q, d = np.random.default_rng(seed).permutation(6)[:2]
        pairs = np.array([(q, d)] * 6)
        screens.improve_partners(columns, rows, slopes, screens.room_for(6), pairs)
        rounding = 12 / columns.scale
        for slope, of_d, of_q in zip(slopes, pairs[::2], pairs[1::2], strict=True):
            assert of_d[1] == d
            assert of_q[0] == q
            over_d = [excess_of(row, units[d], slope) for row in units]
            of_row_q = [excess_of(units[q], row, slope) for row in units]
            assert over_d[of_d[0]] >= max(over_d) - rounding
            assert of_row_q[of_q[1]] >= max(of_row_q) - (1 + slope) * rounding


def sparse_search(units):
    """The search of the rows over their least entries, and these rows in its order."""
    search = sparse._HullSearch(*sparse_form(units, units.min(axis=1)))
    return search, units[search.order]


def test_tau_is_no_lower_than_where_the_largest_entries_leave_the_hull():
    for seed in range(10):
        search, units = sparse_search(rows_in_units(seed, 5))
        corners = [(0, 0)] + [(int(d), int(d + gap)) for d, gap in UNITS * search.points[::-1, :2]]
        for tau, row in zip(search._compute_tau().tolist(), units, strict=True):
            tops = np.cumsum(np.sort(row)[::-1]).tolist()
            exact = [d_on_boundary(corners, q) / (m * UNITS) for m, q in enumerate(tops, start=1)]
            assert max(exact) <= tau <= max(exact) * Fraction(1 + 1e-9)


def d_on_boundary(corners, q):
    """The d at which the polygon through corners (d, q) reaches q, beyond which d grows as q."""
    for (d_a, q_a), (d_b, q_b) in pairwise(corners):
        if q <= q_b:
            return d_a + Fraction((q - q_a) * (d_b - d_a), q_b - q_a)
    return Fraction(corners[-1][0] + q - corners[-1][1])


def test_a_row_may_exceed_a_cap_just_below_its_excess_and_none_far_above():
    matrices = [rows_in_units(seed, 6) for seed in range(8)]
    matrices += [rows_of_three_values(seed) for seed in range(4)]
    for matrix in matrices:
        search, units = sparse_search(matrix)
        for i, j in permutations(range(6), 2):
            ratios = [gap / d for gap, d in gaps_of(units[i], units[j]) if gap > 0 and d > 0]
            if not ratios:
                continue
            for slope in (0.0, float(max(ratios)) - 2.0**-10):
                excess = excess_of(units[i], units[j], slope)
                assert is_left(search, i, j, slope, excess * (1.0 - 1e-10))
                assert not is_left(search, i, j, slope, excess + 2.0**-10)
            assert is_left(search, i, j, np.nextafter(float(max(ratios)), 0.0), 0.0)


def is_left(search, i, j, slope, cap):
    """Whether row q = i may exceed the cap over row d = j."""
    slopes = np.array([slope])
    candidates = np.array([i])
    excess = sparse_pairs.excess_over(search.low[j], candidates, search.rows, *search.top, slopes)
    bounds = sparse.Bounds(
        candidates, search.low[j], excess, np.zeros_like(excess), slopes, np.array([cap])
    )
    found = sparse.may_exceed(bounds, search.rows, j, search.rows, search.work[0])
    return found.size == 1


def test_equal_rows_have_no_best_vertex():
    units = np.array([[10, 20, 34]] * 3)
    nothing = Vertex(d=0.0, gap=0.0, rest=1.0)
    assert dense.best_vertex(in_probabilities(units), 1.0) == nothing
    assert sparse.best_vertex(*sparse_form(units, units.min(axis=1)), 1.0) == nothing


def test_bounds_of_excesses_are_above_them_by_their_rounding():
    n = 20
    for seed in range(3):
        units = rows_in_units(seed, n)
        rows = in_probabilities(units)
        columns = screens.columns_of(rows)
        room = screens.room_for(n)
        bounds = np.empty((screens.GROUP, n), dtype=np.int32)
        for m in range(screens.GROUP):
            screens.use_all_columns(m, n, room)
        for slope in (0.0, 0.5):
            screens.bound_excesses(columns, rows, 0, slope, room, bounds)
            levels = (1.0 + slope) * rows[: screens.GROUP, None]
            excess = np.maximum(rows - levels, 0.0).sum(axis=2) * columns.scale
            assert (bounds >= excess - 1e-6).all()
            assert (bounds <= excess + 2 * n).all()


def test_keys_are_sorted_as_numpy_does_and_those_that_tie_keep_their_order():
    rng = np.random.default_rng(0)
    for n in (0, 1, 2, 7, 8, 9, 16, 17, 24, 25, 40, 100):
        keys = rng.integers(0, n // 2 + 1, n + 3) / 8.0
        found = hulls.stable_order.function(keys, n)
        assert found.tolist() == np.argsort(keys[:n], kind="stable").tolist()


def test_a_vertex_applies_up_to_its_crossing():
    vertices = np.zeros((5, 5))
    vertices[:, recursion.UNTIL] = [0.5, 1.0, 2.0, 4.0, math.inf]
    for alpha in (0.1, 0.5, 0.7, 1.0, 2.0, 3.0, 4.0, 9.0):
        expected = np.searchsorted(vertices[:, recursion.UNTIL], alpha, side="right")
        assert recursion.vertex_at(vertices, 0, 4, alpha) == expected


def test_the_farthest_rows_have_the_largest_range_of_differences():
    for seed in range(5):
        first = rows_in_units(seed, 4) / UNITS
        second = rows_in_units(seed + 50, 4) / UNITS
        ranges = np.ptp(first[:, None] - second, axis=2)
        largest, i, j = recursion.farthest_rows(first, second, 0.0)
        assert largest == ranges[i, j] == ranges.max()
        assert recursion.farthest_rows(first, second, largest) == (largest, 0, 0)
    single = np.array([[0.25, 0.75]])
    assert recursion.farthest_rows(single, single, 0.0) == (0.0, 0, 0)


def test_a_hull_has_no_new_edge_beside_itself():
    hull = steep_hull(0)
    assert few_rows.first_new_edge(hull, hull, 3) == 4
    assert few_rows.first_new_edge(hull, hull, 7) == 8
    changed = hull.copy()
    changed[hulls.SUPPORT, 2] += 0.1
    assert few_rows.first_new_edge(changed, hull, 3) == 2


def test_all_matrices_are_part_of_a_hull_that_is_complete():
    several = in_probabilities(np.array([rows_in_units(seed, 3) for seed in range(5)]))
    assert few_rows.hull_of_each(several)[1] == 5


def test_a_sample_has_pairs_of_different_rows():
    for n in range(2, 40):
        first, second = dense.sample_pairs(n).T
        assert (first != second).all()
        assert min(first.min(), second.min()) >= 0
        assert max(first.max(), second.max()) < n


def test_caps_of_sparse_rows_are_below_the_support():
    assert 0.0 < min(sparse.SHARES) <= max(sparse.SHARES) < 1.0


def test_the_best_pair_at_a_slope_has_the_largest_excess():
    for seed in range(6):
        units = rows_in_units(seed, 5)
        rows = in_probabilities(units)
        columns, least = few_rows.side_by_side(rows)
        used = np.ones(9, dtype=np.int64)
        space = used, np.empty(9), np.empty(columns.shape[1])
        for slope in (0.0, 0.5, 2.0):
            excesses = [excess_of(*pair, slope) for pair in permutations(units, 2)]
            best, i, j = few_rows.best_at(slope, 0.0, rows, columns, least, *space)
            assert best == max(excesses)
            if best > 0.0:
                assert excess_of(units[i], units[j], slope) == best
            assert few_rows.best_at(slope, best, rows, columns, least, *space) == (best, 0, 0)


def test_a_group_of_sparse_rows_has_the_least_entries_of_its_members():
    for seed in range(8):
        units = rows_in_units(seed, 7)
        stored, low = sparse_form(units, units.min(axis=1))
        found = sparse.group_rows(stored, low, 2)
        is_stored = units != units.min(axis=1, keepdims=True)
        for group, first in enumerate(range(0, 7, 2)):
            members = slice(first, first + 2)
            expected = np.where(
                is_stored[members].all(axis=0), units[members].min(axis=0), units[members].min()
            )
            row = np.full(7, found.background[group])
            entries = slice(found.start[group], found.start[group + 1])
            row[found.column[entries]] = found.value[entries]
            assert (UNITS * row).tolist() == expected.tolist()


def test_the_boundary_of_a_tangent_is_the_line_above_it():
    units = rows_in_units(3, 6)
    inverse = 0.01
    search = sparse._TangentSearch(*sparse_form(units, units.min(axis=1)), inverse)
    slope = search.best.slope
    d = np.array([0.01, 0.2])
    q = (1.0 + slope) * d + slope * inverse
    assert slope > 0.0
    np.testing.assert_allclose(search.d_on_boundary(q), d, rtol=1e-12)
