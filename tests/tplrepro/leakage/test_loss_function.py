"""The loss function in every form that the package has, against exhaustion, 60 digits and what the
papers prove."""

import copy
import math
import pickle
import re
from fractions import Fraction
from itertools import permutations, product, repeat

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tplrepro as tpl
from tests.oracles import (
    brute_force_loss,
    exact_loss,
    extended_loss,
    largest_loss,
    loss_mpmath,
    supremum_mpmath,
)
from tests.tplrepro.leakage.matrices import (
    EXTREME,
    FIG_3,
    FIG_4,
    KINDS,
    matrices,
    random_matrices,
    random_matrix,
)
from tplrepro.leakage import published
from tplrepro.leakage.loss_function import TIES
from tplrepro.leakage.vertex import (
    vertex_budget,
    vertex_inverse,
    vertex_loss,
    vertex_slope,
    vertex_supremum,
)

#: Over the whole range that is promised, the ends of the double range's exponentials among them.
ALPHAS = (1e-310, 1e-300, 1e-17, 1e-8, 0.01, 0.3, 1.0, 3.0, 10.0)
ALPHAS += (36.0, 60.0, 500.0, 699.9, 700.1, 705.0, 745.0, 1e4, 1e6)

EXACT = {
    "PrivacyLossFunction": lambda P, alphas: tpl.PrivacyLossFunction(P)(alphas),
    "privacy_loss": lambda P, alphas: [tpl.privacy_loss(P, alpha) for alpha in alphas],
}
#: Of [1]; algorithm 5 serves between two given leakages only.
PUBLISHED = {
    "Algorithm 1": lambda P, alphas: [published.algorithm_1(P, alpha) for alpha in alphas],
    "Algorithm 3": lambda P, alphas: [
        *map(published.algorithm_3, alphas, repeat(published.algorithm_2(P)))
    ],
    "Algorithm 5": lambda P, alphas: published.algorithm_5(
        alphas, published.algorithm_4(P, 1e-4, 50.0)
    ),
}
ANY = st.integers(1, 6).flatmap(lambda n: matrices(n, (*KINDS, *EXTREME * 3)))
WITHOUT_LIMITS = EXACT | {name: PUBLISHED[name] for name in ("Algorithm 1", "Algorithm 3")}


def assert_close(functions, P, alphas, expected, rtol=1e-12, atol=0.0):
    for name, function in functions.items():
        np.testing.assert_allclose(
            function(P, np.array(alphas)), np.array(expected, float), rtol, atol, err_msg=name
        )


def nearly_equal_rows(n, spread):
    P = 1.0 + spread * np.random.default_rng(5).random((n, n))
    return P / P.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("kind", KINDS)
def test_the_loss_is_that_of_exhaustion_over_all_sets_of_columns(kind):
    rng = np.random.default_rng([1, KINDS.index(kind)])
    for n in range(1, 9):
        for P in random_matrices(rng, kind, n, 9):  # times 8 sizes and 8 kinds: 576 matrices
            alphas = np.array([1e-3, *np.exp(rng.uniform(np.log(1e-3), np.log(30), 2)), 30.0])
            assert_close(EXACT | PUBLISHED, P, alphas, brute_force_loss(P, alphas))


@pytest.mark.parametrize("kind", KINDS)
def test_relative_error_is_below_1e_12_on_the_whole_range(kind):
    rng = np.random.default_rng([2, KINDS.index(kind)])
    for n in (2, 3, 5, 7):
        P = random_matrix(rng, kind, n)
        expected = loss_mpmath(P, ALPHAS, dps=50)
        assert_close(WITHOUT_LIMITS, P, ALPHAS, expected)
        assert_close({"Algorithm 1": PUBLISHED["Algorithm 1"]}, P, ALPHAS, expected, rtol=1e-13)


@pytest.mark.parametrize(
    "P", [nearly_equal_rows(*case) for case in [(6, 1e-1), (6, 1e-6), (12, 1e-12)]]
)
def test_rows_that_nearly_agree_keep_their_digits(P):
    assert_close(EXACT, P, ALPHAS[1:], loss_mpmath(P, ALPHAS[1:]))


def test_probabilities_over_three_hundred_magnitudes_keep_their_digits():
    P = 10.0 ** np.random.default_rng(6).uniform(-324, 0, (20, 5, 5))
    subnormal = np.vstack(
        [[[0.41, 0.29, 0.2, 0.05, 0.05]], [[1.5e-323, 1e-323, 1e-323, 0.5, 0.5]] * 4]
    )
    # The set of the smallest gap and the largest ratio counts, beside another column that ties, or
    # a fall of 1e-401.
    tie = [[1.0, 6e-121, 3e-175], [1.0, 8e-88, 9e-125], [1.8104418826668826e-110, 1.0, 8e-256]]
    small = [[1.0, 0.0, 8e-101], [1.0, 2e-238, 7e-194], [1.0, 0.0, 3e-265]]
    for rows in [*P / P.sum(axis=2, keepdims=True), subnormal, *np.array([tie, small])]:
        alphas = (0.5, 50.0, 500.0, 690.0, 710.0, 744.0, 750.0, 800.0, 1e5)
        assert_close({"L": EXACT["PrivacyLossFunction"]}, rows, alphas, loss_mpmath(rows, alphas))


# Of few rows, the pair of the largest ratio hides behind the rounding of one with a large gap; of
# many, ratios above 1e300 settle no row.
@pytest.mark.parametrize(("n", "seed"), [(3, 324), (4, 1356), (8, 58), (49, 268), (60, 134)])
def test_the_loss_of_tiny_probabilities_is_that_of_extended_precision(n, seed):
    P, alphas = random_matrix(np.random.default_rng(seed), "tiny", n), [50.0, 300.0, 690.0, 2000.0]
    assert_close(EXACT, P, alphas, [extended_loss(P)(np.longdouble(alpha)) for alpha in alphas])


LARGE = [random_matrix(np.random.default_rng(n), "dense", n) for n in (30, 130)] + [
    nearly_equal_rows(60, 1e-12)
]


# The last goes through the screen; reordering q - d - mu d as q - (1 + mu) d would lose 4 of 16
# digits there.
@pytest.mark.parametrize("P", LARGE, ids=["30 states", "130 states", "60 nearly equal"])
def test_larger_matrices_have_the_loss_of_sorted_prefix_sums(P):
    # An oracle that is O(n^3 log n) in NumPy: sorted prefix sums of every pair, in extended
    # precision.
    alphas, rows = np.array([0.1, 2.0, 9.0, 20.0]), P.astype(np.longdouble)
    u, best = np.expm1(alphas.astype(np.longdouble))[:, None, None], np.zeros(alphas.size)
    for d in rows:
        order = np.argsort(-rows / d, axis=1)
        gaps = np.cumsum(np.take_along_axis(rows - d, order, axis=1), axis=1)
        best = np.maximum(best, (gaps * u / (np.cumsum(d[order], axis=1) * u + 1)).max(axis=(1, 2)))
    assert_close(EXACT, P, alphas, np.log1p(best).astype(float))


@settings(max_examples=60)
@given(P=ANY, alpha=st.floats(1e-3, 30.0), more=st.floats(1e-3, 20.0), seed=st.integers(0, 99))
def test_the_loss_grows_with_alpha_but_no_faster_whatever_states_are_called(P, alpha, more, seed):
    rng = np.random.default_rng(seed)
    shuffled = P[np.ix_(rng.permutation(len(P)), rng.permutation(len(P)))]
    expected = brute_force_loss(P, np.array([alpha, alpha + more]))
    for name, function in (EXACT | PUBLISHED).items():
        here, there = function(P, np.array([alpha, alpha + more]))
        assert [here, there] == pytest.approx(expected, rel=1e-12, abs=1e-15), name
        rounding = 1e-13 * (alpha + more) if name in PUBLISHED else 0.0
        assert 0.0 <= here <= alpha + rounding
        assert here <= there * (1 + 1e-14) + rounding  # increasing
        # L(alpha) - alpha falls
        assert there - (alpha + more) <= here - alpha + 1e-13 * (alpha + more)
        # names of states do not matter
        assert function(shuffled, np.array([alpha]))[0] == pytest.approx(
            here, rel=1e-13, abs=rounding
        )
    # The derivative at 0 is the largest total variation distance.
    distance = max(0.5 * np.abs(q - d).sum() for q in P for d in P)
    assert_close(WITHOUT_LIMITS, P, [1e-12], distance * 1e-12, rtol=1e-11, atol=1e-28)
    assert_close(EXACT | PUBLISHED, P, [0.0], 0.0)


@settings(max_examples=40)
@given(P=ANY, epsilon=st.floats(1e-4, 5.0))
def test_supremum_is_the_fixed_point_of_the_recursion(P, epsilon):
    L = tpl.PrivacyLossFunction(P)
    supremum = L.supremum(epsilon)
    # Algorithm 6: the largest over the vertices
    exact = max(supremum_mpmath(q, d, epsilon) for d, q in L.vertices)
    if exact == mpmath.inf or supremum == np.inf:
        # The edge epsilon = log(1/q) itself is a matter of the last digit.
        assert (
            min(abs(epsilon + np.log(q)) for d, q in L.vertices if d == 0) < 1e-12
            or supremum == exact
        )
    else:
        gain = float(exact) - epsilon
        assert supremum >= epsilon
        # Where the fixed point hardly attracts, its condition number is large: compare the budgets
        # instead.
        assert float(exact) - loss_mpmath(P, float(exact)) == pytest.approx(epsilon, rel=1e-9)
        assert L.budget_for(supremum) == pytest.approx(epsilon, rel=1e-9) or gain < 1e-9


@settings(max_examples=150)
@given(P=ANY, alpha=st.floats(1e-9, 800.0))
def test_budget_for_is_safe_and_tight(P, alpha):
    # Rows that sum to 1 exactly, as otherwise alpha - L(alpha) depends on where the rounding is
    # put.
    P = np.floor(P * 2.0**53) / 2.0**53
    P[np.arange(len(P)), P.argmax(axis=1)] -= [math.fsum([*row, -1.0]) for row in P]
    L = tpl.PrivacyLossFunction(P)
    assert L.is_identity == (((P > 0.0).astype(int) @ (P > 0.0).T) == 0).any()
    budget = L.budget_for(alpha)
    with mpmath.workdps(400):
        exact = alpha - loss_mpmath(P, alpha, dps=400)
    assert 0.0 <= budget <= alpha
    assert budget <= exact
    for level in (budget, L(alpha)):
        inverse = L.inverse(level)
        assert inverse == np.inf or loss_mpmath(P, inverse, dps=400) <= level <= inverse
    if budget > 0:
        assert L.supremum(budget) <= alpha
        if exact > 1e-290:
            # Pairs that tie within 1e-15 of a gap are not told apart.
            assert budget == pytest.approx(float(exact), rel=1e-9, abs=2.5e-15 * min(alpha, 1.0))


def rows_of_exact_sum(rng, n, bits):
    """A random matrix of multiples of 2^-bits, whose rows sum to 1 without rounding."""
    cuts = np.sort(rng.integers(0, 2**bits + 1, (n, n - 1)), axis=1)
    return np.diff(cuts, prepend=0, append=2**bits, axis=1) / 2.0**bits


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_rows_that_nearly_tie_never_leak_more(order):
    """The hull may keep the first of two points whose gaps differ by 2^-51, and 1 - q(S) differs
    far more.

    Without the margin `TIES` in `budget_for`, half of these budgets exceed the exact one.
    """
    for rest, alpha in product((2.0**-20, 2.0**-30, 2.0**-40), (0.1, 1.0, 10.0)):
        P = np.array([[1 - rest, 0, rest], [0, 1 - rest + 2.0**-51, rest - 2.0**-51], [0, 0, 1]])
        L = tpl.PrivacyLossFunction(P[list(order)])
        with mpmath.workdps(60):
            assert L.budget_for(alpha) <= alpha - loss_mpmath(P, alpha)
            assert loss_mpmath(P, L.inverse(level := L(alpha))) <= level


def test_where_rows_nearly_agree_leakage_is_rounded_up_and_its_inverse_down():
    """L(alpha) is hardly more than what ties may hide, or less than that."""
    for gap, alpha in product((2.0**-10, 2.0**-30, 2.0**-40), (1e-3, 1.0, 20.0)):
        P = [[0.5 + gap, 0.5 - gap], [0.5, 0.5]]
        L = tpl.PrivacyLossFunction(P)
        exact = exact_loss(P)
        with mpmath.workdps(40):
            assert exact(alpha) <= L.at_most(alpha) <= exact(alpha) * (1 + 1e-14) + TIES
            for level in (1e-17, 1e-16, 3e-15, 1e-14, 1e-6):
                within = L.inverse_within(level, alpha)
                assert exact(min(within, alpha)) <= level
                assert exact(min(within, alpha)) > 0.4 * min(level, exact(alpha))


def test_the_hockey_stick_divergence_is_never_rounded_down():
    """Without the margin `ROUNDING` in `support`, a third of these divergences is below the exact
    one."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        P = rows_of_exact_sum(rng, int(rng.integers(2, 6)), rng.integers(3, 50))
        rows, gammas = (
            [list(map(Fraction, row)) for row in P.tolist()],
            [1.0, *(1.0 + 10.0 ** rng.uniform(-9, 3, 5))],
        )
        for gamma, divergence in zip(
            gammas, tpl.PrivacyLossFunction(P).hockey_stick(gammas).tolist(), strict=True
        ):
            pairs = (zip(q, d, strict=True) for q, d in permutations(rows, 2))
            exact = max(sum(max(a - Fraction(gamma) * b, 0) for a, b in pair) for pair in pairs)
            assert exact <= divergence <= exact + 1e-14


def test_trivial_matrices_have_their_closed_forms():
    for P in ([[1.0]], np.full((4, 4), 0.25), [[0.3, 0.7]] * 2):
        L = tpl.PrivacyLossFunction(P)
        assert L.is_zero
        assert L(3.0) == 0.0
        assert L.supremum(0.5) == 0.5
        assert L.table.tolist() == [[0.0, 0.0, 1.0, np.inf, 1.0]]
        assert "gains nothing from the correlation" in str(L.witness(1.0))
    limit = np.log(1 / 0.8)  # Theorem 11's second case
    L_3 = tpl.PrivacyLossFunction(FIG_3)
    assert np.isfinite(L_3.supremum(limit * (1 - 1e-9)))
    assert L_3.supremum(limit * (1 + 1e-9)) == np.inf
    assert tpl.PrivacyLossFunction([[0.5, 0.5], [0.0, 1.0]]).supremum(np.log(2)) == np.inf
    assert L_3.budget_for([1.0, 1e6]) == pytest.approx(
        [1 - np.log(0.8 * (np.e - 1) + 1), limit], rel=1e-12
    )
    assert vertex_inverse(0.0, 0.8, 0.2, 1.0) == pytest.approx(np.log((np.e - 1) / 0.8 + 1))
    # All pairs of a smoothed permutation give the same two points, up to rounding.
    assert len(tpl.PrivacyLossFunction(tpl.smoothed(tpl.strongest(60, seed=3), 0.37)).vertices) == 1
    # Disjoint supports are enough (Theorem 7 of [1] asks for more), whatever the rounding of their
    # sums.
    thirds = [[1 / 3, 1 / 3, 1 / 3, 0, 0, 0], [0, 0, 0, 0.1, 0.2, 0.7]] + [[1 / 6] * 6] * 4
    alphas = [1e-300, 1.7, 1e6]  # log1p(expm1(1.7)) is not 1.7
    for identity in map(tpl.PrivacyLossFunction, (np.eye(3), thirds)):
        assert identity.is_identity
        assert identity(alphas).tolist() == [*map(identity, alphas)] == alphas
        assert identity.supremum(1e-9) == np.inf
        assert identity.budget_for(1.0) == 0.0


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_give_what_scalars_give(kind):
    rng = np.random.default_rng([1, KINDS.index(kind)])
    for P in (
        random_matrix(rng, kind, 9),
        np.eye(3),
        np.full((2, 2), 0.5),
        10.0 ** rng.uniform(-300, 0, (5, 5)),
    ):
        L = tpl.PrivacyLossFunction(P / np.sum(P, axis=1, keepdims=True))
        alphas = np.concatenate([[0.0, *ALPHAS], L.breakpoints, 10.0 ** rng.uniform(-3, 3, 300)])
        np.testing.assert_allclose(
            L(alphas), [L.at(alpha) for alpha in alphas.tolist()], rtol=9e-16, atol=0
        )
        assert (L(alphas) <= alphas).all()


def test_arrays_keep_their_shape_and_no_array_of_a_loss_function_can_be_changed():
    rows = np.array(FIG_4)
    L = tpl.PrivacyLossFunction(rows)
    expected, grid = L(1.0), np.array([[0.0, 0.1, 1.0], [2.0, 3.0, 50.0]])
    assert type(expected) is type(L.supremum(1.0)) is float
    assert L(grid).shape == L.budget_for(grid).shape == (2, 3)
    rows[:] = 1 / 3
    for same in (L, copy.deepcopy(L), pickle.loads(pickle.dumps(L))):
        assert (same.at(1.0), same.witness(1.0).q) == (expected, 0.7)
        for array in (same.vertices, same.breakpoints):
            with pytest.raises(ValueError, match="read-only"):
                array[:] = 0.0


def test_long_labels_are_short_in_a_sentence_and_still_differ():
    streets = [f"{number} Long Street {'of many letters ' * 5}north" for number in (1, 1.5)]
    said = str(
        tpl.PrivacyLossFunction(
            tpl.TransitionMatrix([[0.8, 0.2], [0.1, 0.9]], states=streets)
        ).witness(1.0)
    )
    first, second, indicating = re.findall("'[^']+'", said)
    assert first == indicating != second
    assert max(len(first), len(second)) <= 40


def test_witness_attains_the_loss():
    P = tpl.TransitionMatrix(FIG_4, states=["home", "road", "office"])
    L = tpl.PrivacyLossFunction(P)
    assert "'home', 'road', 'office'; dense), 2 vertices)" in repr(L)
    assert tpl.PrivacyLossFunction([[0.5, 0.3, 0.2], [0, 0, 1], [0.1, 0.1, 0.8]]).witness(
        1.0
    ).columns == (0, 1)
    for alpha in (0.5, 1.4, 1.5, 5.0):
        w = L.witness(alpha)
        q, d = P.row(P.index(w.state_q)), P.row(P.index(w.state_d))
        columns = [P.index(label) for label in w.columns]
        assert (q[columns].sum(), d[columns].sum()) == pytest.approx((w.q, w.d), rel=1e-14)
        u = np.expm1(alpha)
        assert np.log((w.q * u + 1) / (w.d * u + 1)) == pytest.approx(L(alpha), rel=1e-13)
    assert re.search("telling ('office' from 'home'|'home' from 'office')", str(L.witness(5.0)))


VERTICES = [(0.1, 0.7, 0.2), (0.0, 0.8, 0.2), (1e-9, 0.5, 0.5 - 1e-9), (0.0, 1e-5, 1 - 1e-5)]
VERTICES += [(1e-290, 0.5, 0.5), (1e-310, 0.5, 0.5), (0.3, 0.0, 0.7), (1e-307, 1e-307, 1.0)]


@pytest.mark.parametrize("vertex", VERTICES)
@pytest.mark.parametrize("alpha", [1e-12, 1e-3, 1.0, 10.0, 50.0, 699.0, 701.0, 750.0])
def test_slope_is_the_derivative_of_the_loss_and_budget_and_supremum_are_exact(vertex, alpha):
    with mpmath.workdps(500):
        d, gap, at = map(mpmath.mpf, (*vertex[:2], alpha))
        step = mpmath.mpf(10) ** -100
        there, here = (largest_loss([(gap, d)], alpha) for alpha in (at + step, at - step))
        expected = float((there - here) / (2 * step))
        budget = float(at - largest_loss([(gap, d)], alpha))
    assert vertex_budget(*vertex, alpha) == pytest.approx(budget, rel=1e-12)
    assert vertex_slope(*vertex, alpha) == pytest.approx(expected, rel=1e-12, abs=1e-300)
    assert 0.0 <= vertex_slope(*vertex, alpha) <= 1.0
    supremum = supremum_mpmath(vertex[0] + vertex[1], vertex[0], alpha)
    assert vertex_supremum(*vertex, alpha) == pytest.approx(float(supremum), rel=1e-12)
    assert vertex_loss(*vertex, alpha) < alpha  # also where the slope rounds to 1


@mpmath.workdps(60)
def test_no_digits_are_lost_where_leakages_and_probabilities_are_out_of_range():
    """The logarithm of a gap of 1e-304 and a leakage of 750 cancel: 640 units in the last place."""
    rng = np.random.default_rng(64)
    for _ in range(400):
        alpha = float(rng.uniform(700.0, 1500.0))
        exponents = [rng.uniform(-323, 0), rng.uniform(-alpha / np.log(10), -300)]
        gap = 10.0 ** float(rng.choice(exponents))
        d = float(rng.choice([0.0, 10.0 ** rng.uniform(-323, -1)]))
        exact = largest_loss([(mpmath.mpf(gap), mpmath.mpf(d))], alpha)
        loss = vertex_loss(d, gap, 1.0 - gap - d, alpha)
        assert abs(loss - exact) <= 1e-15 * exact + 1e-320


@mpmath.workdps(60)
def loss_of_small_gap(d, gap, alpha):
    """The loss of a vertex, in 60 digits."""
    u = mpmath.expm1(mpmath.mpf(alpha))
    q = mpmath.mpf(d) + mpmath.mpf(gap)
    return mpmath.log((q * u + 1) / (mpmath.mpf(d) * u + 1))


def test_a_large_budget_has_a_supremum_beside_the_least_probability():
    """d is the least double, so that the root is that of d = 0."""
    epsilon, gap = 701.0, 1e-306
    with mpmath.workdps(40):
        expected = epsilon - mpmath.log(1 - mpmath.mpf(gap) * mpmath.exp(epsilon))
    found = vertex_supremum(5e-324, gap, 1.0, epsilon)
    assert found == pytest.approx(float(expected), rel=1e-15)


@pytest.mark.parametrize("exponent", [-1, -12, -100, -250, -290, -300, -307])
def test_the_inverse_is_finite_and_rounded_down_however_small_the_gap(exponent):
    """L(alpha) = log1p(gap u) of these rows: a relative error of alpha counts hundreds of times."""
    rng = np.random.default_rng(-exponent)
    for gap in 10.0 ** (exponent + rng.uniform(0, 0.9, 6)):
        L = tpl.PrivacyLossFunction([[1.0 - gap, gap], [1.0, 0.0]])
        for level in (1e-9, 1e-3, 0.3, 1.0, 30.0, 60.0, 600.0, 800.0):
            alpha = L.inverse(level)
            assert level <= alpha < np.inf
            with mpmath.workdps(60):
                exact = loss_of_small_gap(0.0, gap, alpha)
                assert exact <= level or alpha == level
                beyond = loss_of_small_gap(0.0, gap, alpha * (1 + 1e-13) + 1e-13)
                assert beyond > level or exponent == -1


def test_a_vertex_of_any_size_is_inverted_to_the_last_digits():
    rng = np.random.default_rng(7)
    n_infinite = 0
    for _ in range(800):
        gap = 10.0 ** rng.uniform(-307, -0.4)
        d = rng.choice([0.0, 10.0 ** rng.uniform(-307, -0.4)])
        loss = 10.0 ** rng.uniform(-6, 2.5)
        alpha = vertex_inverse(float(d), float(gap), 1.0 - gap - d, loss)
        with mpmath.workdps(60):
            if d > 0 and mpmath.log1p(mpmath.mpf(gap) / mpmath.mpf(d)) <= loss * (1 + 1e-14):
                n_infinite += alpha == np.inf
                continue
            assert alpha < np.inf
            exact = loss_of_small_gap(d, gap, alpha)
            assert abs(exact - loss) <= 1e-15 * (alpha + loss) + 1e-14 * loss
    assert n_infinite > 100
