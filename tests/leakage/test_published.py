"""Algorithms 1-6 and Theorem 11 of TKDE 2019 against exhaustion, 60 digits, the paper's examples and one another."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.leakage.matrices import FIG_4, KINDS, random_matrices
from tests.leakage.oracles import brute_force_loss, loss_mpmath, supremum_mpmath
from tplrepro.leakage import published


@st.composite
def transition_matrices(draw, largest=5):
    """Rows of small integers and of powers of ten: exact ties, zeros, equal rows and tiny entries all occur."""
    n = draw(st.integers(2, largest))
    entry = st.one_of(st.integers(0, 4), st.sampled_from([1e-3, 1e-6, 1e-9]))
    rows = [draw(st.lists(entry, min_size=n, max_size=n).filter(any)) for _ in range(n)]
    weights = np.array(rows, dtype=float)
    return weights / weights.sum(axis=1, keepdims=True)


def all_algorithms(P, alphas, a_1=1e-4, a_m=50.0):
    tables = published.algorithm_2(P)
    function = published.algorithm_4(tables, a_1, a_m)
    return {
        "Algorithm 1": [published.algorithm_1(P, alpha) for alpha in alphas],
        "Algorithm 3": [published.algorithm_3(alpha, tables) for alpha in alphas],
        "Algorithm 5": published.algorithm_5(alphas, function),
    }


# 8 kinds x 70 matrices


@pytest.mark.parametrize("kind", KINDS)
def test_algorithms_equal_brute_force_on_random_matrices(kind):
    rng = np.random.default_rng([1, KINDS.index(kind)])
    for n in range(2, 9):
        for P in random_matrices(rng, kind, n, 10):
            alphas = np.array([1e-3, *np.exp(rng.uniform(np.log(1e-3), np.log(30), 2)), 30.0])
            expected = [brute_force_loss(P, alpha) for alpha in alphas]
            for name, values in all_algorithms(P, alphas).items():
                np.testing.assert_allclose(values, expected, rtol=1e-12, atol=0, err_msg=f"{name}, {kind}, n={n}")


@pytest.mark.parametrize("kind", KINDS)
def test_algorithms_1_and_3_equal_high_precision_at_any_alpha(kind):
    rng = np.random.default_rng([2, KINDS.index(kind)])
    for n in (2, 5):
        for P in random_matrices(rng, kind, n, 2):
            tables = published.algorithm_2(P)
            for alpha in (1e-300, 1e-9, 1.0, 36.0, 40.0, 60.0, 500.0, 705.0, 744.0, 1e3, 1e6):
                expected = float(loss_mpmath(P, alpha))
                assert published.algorithm_1(P, alpha) == pytest.approx(expected, rel=1e-13, abs=0)
                # sums read from tables: 1e-16 over the total variation distance
                assert published.algorithm_3(alpha, tables) == pytest.approx(expected, rel=1e-12, abs=0)


@pytest.mark.parametrize("kind", KINDS)
def test_algorithm_4_has_no_gap_between_the_points_it_tried(kind):
    rng = np.random.default_rng([3, KINDS.index(kind)])
    for P in random_matrices(rng, kind, 7, 3):
        tables = published.algorithm_2(P)
        function = published.algorithm_4(tables, 1e-6, 100.0)
        ends = np.r_[function.a_1, function.aArr]
        alphas = np.unique(np.clip(np.r_[ends, ends * (1 - 1e-9), np.geomspace(1e-6, 100, 200)], 1e-6, ends[-1]))
        expected = [published.algorithm_3(alpha, tables) for alpha in alphas]
        np.testing.assert_allclose(published.algorithm_5(alphas, function), expected, rtol=1e-13, atol=0)
        if tables.qM.any():
            assert function.aArr[-1] == 100.0
            assert (np.diff(function.aArr) > 0).all()


def test_algorithm_1_solves_blocks_of_rows_like_single_pairs(monkeypatch):
    (P,) = random_matrices(np.random.default_rng(4), "zeros", 40, 1)
    expected = float(loss_mpmath(P, 3.0, dps=30))
    for block in (1, 40 * 40 * 7, 1 << 16):
        monkeypatch.setattr(published.polynomial, "BLOCK", block)
        assert published.algorithm_1(P, 3.0) == pytest.approx(expected, rel=1e-13)


# the paper's examples


def test_worked_example_of_algorithm_2():
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


def test_tables_hold_every_ordered_pair_in_order():
    tables = published.algorithm_2(FIG_4)
    assert tables.qM.shape == tables.dM.shape == tables.aM.shape == (6, 3)
    pairs = [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]
    for k, (i, j) in enumerate(pairs):
        for table, row in zip(tables, published.piecewise_coefficients(FIG_4[i], FIG_4[j]), strict=True):
            np.testing.assert_array_equal(table[k], row)


def test_backward_leakage_of_figure_3():
    P = np.array([[0.8, 0.2], [0.0, 1.0]])
    leakage = [0.1]
    for _ in range(9):
        leakage.append(published.algorithm_1(P, leakage[-1], epsilon=0.1))
    expected = [0.1]
    for _ in range(9):
        expected.append(np.log(0.8 * np.expm1(expected[-1]) + 1) + 0.1)
    np.testing.assert_allclose(leakage, expected, rtol=1e-14)


def test_function_of_figure_4_bends_at_the_pentagram():
    function = published.algorithm_4(FIG_4, 1e-6, 10)
    np.testing.assert_allclose(function.qArr, [0.7, 0.5])
    np.testing.assert_allclose(function.dArr, [0.2, 0.1])
    # (0.7 u + 1) / (0.2 u + 1) = (0.5 u + 1) / (0.1 u + 1) at u = 10/3
    np.testing.assert_allclose(function.aArr, [np.log(10 / 3 + 1), 10.0])


@pytest.mark.parametrize(
    ("P", "epsilon", "expected"),
    [
        ([[1, 0], [0, 1]], 0.23, np.inf),
        ([[0.8, 0.2], [0, 1]], 0.23, np.inf),  # log(1 / 0.8) = 0.223
        ([[0.8, 0.2], [0, 1]], 0.15, np.log(0.2 * np.exp(0.15) / (1 - 0.8 * np.exp(0.15)))),
        ([[0.8, 0.2], [0.1, 0.9]], 0.23, None),
    ],
)
def test_suprema_of_figure_5(P, epsilon, expected):
    supremum, q, d = published.algorithm_6(epsilon, published.algorithm_2(P))
    assert supremum == pytest.approx(float(supremum_mpmath(q, d, epsilon)), rel=1e-13)
    if expected is not None:
        assert supremum == pytest.approx(expected, rel=1e-13)
    if np.isfinite(supremum):  # the recursion of Eq. (13) gets there, and never beyond
        leakage = epsilon
        for _ in range(2000):
            leakage = published.algorithm_1(P, leakage, epsilon)
        assert leakage == pytest.approx(supremum, rel=1e-12)
        assert published.algorithm_1(P, supremum, epsilon) == pytest.approx(supremum, rel=1e-14)


def test_algorithm_6_is_the_fixed_point_of_the_whole_function():
    rng = np.random.default_rng(5)
    for kind in KINDS:
        for P in random_matrices(rng, kind, 6, 3):
            for epsilon in (1e-6, 0.1, 2.0, 30.0):
                supremum, q, d = published.algorithm_6(epsilon, published.algorithm_2(P))
                assert supremum >= epsilon
                assert supremum == pytest.approx(float(supremum_mpmath(min(q, 1), d, epsilon, 40)), rel=1e-9)
                if np.isfinite(supremum):
                    # where q is near 1 and d near 0 a rounding of q moves the supremum by far more than an ulp
                    assert published.algorithm_1(P, supremum, epsilon) == pytest.approx(supremum, rel=1e-12)


def test_algorithm_6_reads_long_tables_in_blocks(monkeypatch):
    (P,) = random_matrices(np.random.default_rng(6), "dense", 9, 1)
    tables = published.algorithm_2(P)
    whole = published.algorithm_6(0.3, tables)
    monkeypatch.setattr(published.supremum, "BLOCK", 20)
    assert published.algorithm_6(0.3, tables) == whole


@given(d=st.one_of(st.just(0.0), st.floats(1e-300, 1.0)), share=st.floats(0, 1), epsilon=st.floats(1e-6, 1000.0))
@settings(max_examples=60, deadline=None)
def test_theorem_11_solves_the_fixed_point_equation(d, share, epsilon):
    q = max(d, d + share * (1 - d))
    if q > 1:
        q = 1.0
    exact = supremum_mpmath(q, d, epsilon, dps=40)
    # the conditioning in q, where d is tiny: half an ulp of q is all that 1 - q e^epsilon can resolve
    margin = abs(1 + d - q * np.exp(min(epsilon, 700))) + np.sqrt(d)
    tolerance = 1e-13 + 1e-15 / margin if margin else np.inf
    value = published.theorem_11(q, d, epsilon)
    assert value >= epsilon
    if exact < np.inf and tolerance < 1e-3:
        assert value == pytest.approx(float(exact), rel=tolerance)


# limits and properties


@pytest.mark.parametrize("n", [1, 2, 5])
def test_identical_rows_leak_nothing_but_epsilon(n):
    P = np.tile(np.arange(1.0, n + 1) / np.arange(1.0, n + 1).sum(), (n, 1))
    tables = published.algorithm_2(P)
    assert not tables.qM.any()
    assert not tables.dM.any()
    assert not tables.aM.any()
    function = published.algorithm_4(tables, 1e-6, 10)
    assert [a.tolist() for a in function[:3]] == [[0], [0], [0]]
    for alpha in (0.0, 3.0, 1e6):
        assert published.algorithm_1(P, alpha, 0.5) == 0.5
        assert published.algorithm_3(alpha, tables, 0.5) == 0.5
        assert published.algorithm_5(alpha, function, 0.5) == 0.5
    assert published.algorithm_5([1.0, 2.0], function, 0.5).tolist() == [0.5, 0.5]
    assert published.algorithm_6(0.5, tables) == (0.5, 0, 0)


def test_nothing_before_leaks_nothing_but_epsilon():
    function = published.algorithm_4(FIG_4, 1e-6, 10)
    assert published.algorithm_1(FIG_4, 0, 0.5) == 0.5
    assert published.algorithm_3(0, published.algorithm_2(FIG_4), 0.5) == 0.5
    assert published.algorithm_5(0, function, 0.5) == 0.5


@given(P=transition_matrices(), first=st.floats(1e-3, 30), second=st.floats(1e-3, 30), seed=st.integers(0, 99))
@settings(max_examples=100, deadline=None)
def test_properties_of_the_loss_function(P, first, second, seed):
    low, high = sorted((first, second))
    slack = 1e-13 * high
    values = all_algorithms(P, np.array([low, high]))
    expected = [brute_force_loss(P, alpha) for alpha in (low, high)]
    shuffled = np.random.default_rng(seed).permutation(len(P))
    for name, (at_low, at_high) in values.items():
        np.testing.assert_allclose([at_low, at_high], expected, rtol=1e-12, atol=1e-15, err_msg=name)
        assert 0 <= at_low <= low + slack
        assert at_low <= at_high + slack
        assert at_low - low >= at_high - high - slack
    assert published.algorithm_1(P[np.ix_(shuffled, shuffled)], high) == pytest.approx(
        expected[1], rel=1e-12, abs=1e-15
    )


@pytest.mark.parametrize("kind", KINDS)
def test_slope_at_zero_is_the_largest_total_variation_distance(kind):
    for P in random_matrices(np.random.default_rng([7, KINDS.index(kind)]), kind, 6, 5):
        distance = max(np.abs(q - d).sum() / 2 for q in P for d in P)
        assert published.algorithm_1(P, 1e-12) / 1e-12 == pytest.approx(distance, rel=1e-11)


def test_anything_that_is_an_array_is_accepted():
    class Wrapped:
        def __array__(self, dtype=None, copy=None):
            return np.array(FIG_4, dtype=dtype)

    assert published.algorithm_1(Wrapped(), 2.0) == published.algorithm_1(FIG_4.tolist(), 2.0)
    np.testing.assert_array_equal(published.algorithm_2(Wrapped()).aM, published.algorithm_2(FIG_4).aM)
