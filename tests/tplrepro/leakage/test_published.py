"""Algorithms 1-6 and Theorem 11 of [1] against high precision, the paper's examples and one
another.

That they compute the loss function is tested with its other forms in test_loss_function.py.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracles import brute_force_loss, loss_mpmath, supremum_mpmath, theorem_11
from tests.tplrepro.leakage.matrices import FIG_4, KINDS, random_matrices, random_matrix
from tplrepro.leakage import published
from tplrepro.leakage.loss_function import PrivacyLossFunction


@pytest.mark.parametrize("kind", KINDS)
def test_algorithm_4_has_no_gap_between_the_points_it_tried(kind):
    rng = np.random.default_rng([3, KINDS.index(kind)])
    for P in random_matrices(rng, kind, 7, 3):
        tables = published.algorithm_2(P)
        function = published.algorithm_4(tables, 1e-6, 100.0)
        ends = np.r_[function.a_1, function.aArr]
        alphas = np.unique(
            np.clip(np.r_[ends, ends * (1 - 1e-9), np.geomspace(1e-6, 100, 200)], 1e-6, ends[-1])
        )
        expected = [published.algorithm_3(alpha, tables) for alpha in alphas]
        np.testing.assert_allclose(
            published.algorithm_5(alphas, function), expected, rtol=1e-13, atol=0
        )
        if tables.qM.any():
            assert function.aArr[-1] == 100.0
            assert (np.diff(function.aArr) > 0).all()


def calls_of_algorithm_3(tables, monkeypatch):
    """How often Algorithm 4 evaluates L, as Algorithm 3 does, on [1e-6, 10]."""
    points = []

    def counted(alpha, tables):
        points.append(alpha)
        return largest_loss(alpha, tables)

    largest_loss = published._largest_loss
    with monkeypatch.context() as patched:
        patched.setattr(published, "_largest_loss", counted)
        published.algorithm_4(tables, 1e-6, 10.0)
    return len(points)


def transition_points(tables):
    """All distinct values in aM, on the same range."""
    return np.unique(tables.aM[(tables.aM >= 1e-6) & (tables.aM <= 10.0)])


def calls_within_the_bound(tables):
    """n^2 log n + m log m over n^2 log n, where m is the number of transition points."""
    n = tables.aM.shape[1]
    m = transition_points(tables).size
    return 1 + m * np.log(m) / (n**2 * np.log(n))


@pytest.mark.parametrize("n", [20, 40, 80])
def test_algorithm_4_keeps_its_complexity_on_random_matrices(n, monkeypatch):
    for seed in range(3):
        tables = published.algorithm_2(random_matrix(np.random.default_rng(seed), "dense", n))
        assert calls_of_algorithm_3(tables, monkeypatch) < calls_within_the_bound(tables)


@pytest.mark.parametrize("n", [10, 20, 40, 80])
def test_algorithm_4_exceeds_its_complexity_where_all_rows_but_one_are_equal(n, monkeypatch):
    rows = random_matrix(np.random.default_rng(0), "dense", n).copy()
    rows[1:] = rows[1]
    tables = published.algorithm_2(rows)
    assert calls_within_the_bound(tables) < 1.2
    assert calls_of_algorithm_3(tables, monkeypatch) > n / 2


def rows_on_one_curve(n, n_odd):
    """`n_odd` rows q whose sums over best columns, against those of the other, equal rows d, lie on
    one concave curve; shuffled within blocks of six columns, each row has points of its own."""
    rng = np.random.default_rng(0)
    shared = rng.uniform(0.5, 1.5, n)
    shared /= shared.sum()
    rows = np.tile(shared, (n, 1))
    for row in rows[:n_odd]:
        blocks = [rng.permutation(block) for block in np.split(np.arange(n), range(6, n, 6))]
        order = np.concatenate(blocks)
        d = np.r_[0.0, np.cumsum(shared[order])]
        row[order] = np.diff(d + 0.9 * d * (1 - d))
    return rows


@pytest.mark.parametrize("n", [16, 36, 64, 100])
def test_generating_the_loss_exceeds_its_complexity_where_some_rows_have_their_pieces_on_one_curve(
    n, monkeypatch
):
    """Calls of O(n^2 log n), more than n^1.5 / 2, where n^3 + m log m allows about n / log n."""
    tables = published.algorithm_2(rows_on_one_curve(n, n_odd=round(np.sqrt(n))))
    assert transition_points(tables).size < n**2
    assert calls_within_the_bound(tables) < 2
    assert calls_of_algorithm_3(tables, monkeypatch) > n**1.5 / 2


def test_blocks_of_rows_are_solved_like_single_pairs(monkeypatch):
    P = random_matrix(np.random.default_rng(4), "zeros", 20)
    expected, tables = float(loss_mpmath(P, 3.0, dps=30)), published.algorithm_2(P)
    whole = published.algorithm_6(0.01, tables)
    for block in (1, 20 * 20 * 7, 1 << 16):
        monkeypatch.setattr(published, "BLOCK", block)
        assert published.algorithm_1(P, 3.0) == pytest.approx(expected, rel=1e-13)
        assert published.algorithm_6(0.01, tables) == whole


def test_algorithm_2_gives_the_coefficients_of_its_worked_example():
    q_arr, d_arr, a_arr = published.piecewise_coefficients([0.2, 0.3, 0.5], [0.1, 0, 0.9])
    np.testing.assert_allclose(q_arr, [0.3, 0.5, 0.5])
    np.testing.assert_allclose(d_arr, [0.0, 0.1, 0.1])
    np.testing.assert_allclose(a_arr, [np.inf, np.log(0.1 / 0.03 + 1), np.nan])


def test_transition_points_fall_where_ratios_tie():
    # 4/2 and 6/3: the denominator of the second is 0, which comes out as -1.7e-18
    q, d = np.array([4, 2, 7, 6, 5]) / 24, np.array([2, 4, 4, 3, 6]) / 19
    a_arr = published.piecewise_coefficients(q, d)[2]
    assert a_arr[:2].tolist() == [np.inf, np.inf]
    rng = np.random.default_rng(8)
    for n in (4, 8, 12):
        for P in random_matrices(rng, "ties", n, 40):
            points = np.nan_to_num(published.algorithm_2(P).aM, nan=0.0, posinf=1e300)
            assert (points[:, 1:] <= points[:, :-1]).all()


def test_algorithm_3_is_the_optimum_on_both_sides_of_each_transition_point():
    """Theorems 8 and 9 of [1]: the optimal sums change there, and nowhere else."""
    rng = np.random.default_rng(9)
    for P in random_matrices(rng, "dense", 5, 3):
        tables = published.algorithm_2(P)
        points = np.unique(tables.aM[np.isfinite(tables.aM) & (tables.aM > 0)])
        assert points.size
        for alphas in (points * (1 - 1e-6), points * (1 + 1e-6)):
            found = [published.algorithm_3(alpha, tables) for alpha in alphas]
            assert found == pytest.approx(brute_force_loss(P, alphas), rel=1e-12)


def test_a_step_that_is_certain_from_one_state_and_impossible_from_another_gives_the_identity():
    """Theorem 7 of [1], whatever the other rows are."""
    rng = np.random.default_rng(7)
    for P in random_matrices(rng, "dense", 5, 5):
        P = np.array(P)
        P[0] = np.eye(5)[0]
        P[1, 0] = 0.0
        P[1] /= P[1].sum()
        assert PrivacyLossFunction(P).is_identity
        for alpha in (1e-3, 1.0, 30.0):
            assert published.algorithm_1(P, alpha) == pytest.approx(alpha, rel=1e-12)
            assert PrivacyLossFunction(P)(alpha) == alpha


@given(st.lists(st.floats(0, 1), min_size=4, max_size=4))
def test_theorem_10_two_functions_change_places_at_most_once(sums):
    """The pieces are (q u + 1)/(d u + 1), u = e^alpha - 1; where they nearly agree, rounding
    decides."""
    q, d, other_q, other_d = sums
    alphas = np.linspace(0.01, 10, 300)
    u = np.expm1(alphas)
    difference = (q * u + 1) * (other_d * u + 1) - (other_q * u + 1) * (d * u + 1)
    clear = np.abs(difference) > 1e-9 * (1 + u) ** 2
    one = published.Coefficients(q, d)
    other = published.Coefficients(other_q, other_d)
    changes = np.flatnonzero(np.diff(np.sign(difference[clear])))
    assert changes.size <= 1
    for place in changes:  # and they do so where lines 4 and 14 of Algorithm 4 say
        before, after = alphas[clear][[place, place + 1]]
        assert before < published._intersection(one, other) < after


def test_tables_hold_every_ordered_pair_in_order():
    tables = published.algorithm_2(FIG_4)
    assert tables.qM.shape == tables.dM.shape == tables.aM.shape == (6, 3)
    pairs = [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]
    for k, (i, j) in enumerate(pairs):
        for table, row in zip(
            tables, published.piecewise_coefficients(FIG_4[i], FIG_4[j]), strict=True
        ):
            np.testing.assert_array_equal(table[k], row)


def test_algorithm_6_is_the_fixed_point_of_the_whole_function():
    rng = np.random.default_rng(5)
    for kind in KINDS:
        for P in random_matrices(rng, kind, 6, 2):
            for epsilon in (1e-6, 0.1, 2.0, 30.0):
                supremum, q, d = published.algorithm_6(epsilon, published.algorithm_2(P))
                assert supremum >= epsilon
                assert supremum == pytest.approx(
                    float(supremum_mpmath(min(q, 1), d, epsilon, 40)), rel=1e-9
                )
                assert PrivacyLossFunction(P).supremum(epsilon) == pytest.approx(supremum, rel=1e-9)
                if np.isfinite(supremum):
                    # where q is near 1 and d near 0 a rounding of q moves the supremum by far more
                    # than an ulp
                    assert published.algorithm_1(P, supremum, epsilon) == pytest.approx(
                        supremum, rel=1e-12
                    )


@given(
    d=st.one_of(st.just(0.0), st.floats(1e-300, 1.0)),
    share=st.floats(0, 1),
    epsilon=st.floats(1e-6, 1000.0),
)
@settings(max_examples=60, deadline=None)
def test_theorem_11_solves_the_fixed_point_equation(d, share, epsilon):
    q = min(max(d, d + share * (1 - d)), 1.0)
    exact = supremum_mpmath(q, d, epsilon, dps=40)
    # the conditioning in q, where d is tiny: half an ulp of q is all that 1 - q e^epsilon can
    # resolve
    margin = abs(1 + d - q * np.exp(min(epsilon, 700))) + np.sqrt(d)
    tolerance = 1e-13 + 1e-15 / margin if margin else np.inf
    value = theorem_11(q, d, epsilon)
    assert value >= epsilon
    if exact < np.inf and tolerance < 1e-3:
        assert value == pytest.approx(float(exact), rel=tolerance)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_identical_rows_leak_nothing_but_epsilon(n):
    P = np.tile(np.arange(1.0, n + 1) / np.arange(1.0, n + 1).sum(), (n, 1))
    tables = published.algorithm_2(P)
    assert not np.any(tables)
    function = published.algorithm_4(tables, 1e-6, 10)
    assert [a.tolist() for a in function[:3]] == [[0], [0], [0]]
    for alpha in (0.0, 3.0, 1e6):
        assert published.algorithm_1(P, alpha, 0.5) == 0.5
        assert published.algorithm_3(alpha, tables, 0.5) == 0.5
        assert published.algorithm_5(alpha, function, 0.5) == 0.5
    assert published.algorithm_5([1.0, 2.0], function, 0.5).tolist() == [0.5, 0.5]
    assert published.algorithm_6(0.5, tables) == (0.5, 0, 0)


def test_the_top_function_changes_between_transition_points_too():
    """So comparing functions at these alone would not do (section 4.4 of [1])."""
    matrix = random_matrix(np.random.default_rng(1), "dense", 6)
    tables = published.algorithm_2(matrix)
    points = np.unique(tables.aM[np.isfinite(tables.aM)])
    intersections = published.algorithm_4(tables, 1e-6, 20.0).aArr[:-1]
    assert intersections.size
    assert np.abs(np.subtract.outer(intersections, points)).min(axis=1).max() > 1e-3
    # at each of them L, by all sets of columns, is both the piece before and the one after
    function = published.algorithm_4(tables, 1e-6, 20.0)
    expected = brute_force_loss(matrix, intersections)
    u = np.expm1(intersections)
    for pieces in (slice(None, -1), slice(1, None)):
        q, d = function.qArr[pieces], function.dArr[pieces]
        assert np.log((q * u + 1) / (d * u + 1)) == pytest.approx(expected, rel=1e-12)
