"""The exact loss function against exhaustion, 60 digits, and the properties that the paper proves."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tplrepro as tpl
from tests.leakage.matrices import FIG_4, KINDS, random_matrix
from tests.leakage.oracles import brute_force_loss, loss_mpmath, supremum_mpmath

#: Over the whole range that is promised, the ends of the double range's exponentials among them.
ALPHAS = (1e-300, 1e-17, 1e-8, 0.01, 0.3, 1.0, 3.0, 10.0, 36.0, 100.0, 699.9, 700.1, 745.0, 1e4, 1e6)


def relative_error(value, exact):
    return 0.0 if value == exact == 0 else float(abs(mpmath.mpf(value) - exact) / exact)


@st.composite
def matrices(draw, largest=6):
    n = draw(st.integers(1, largest))
    # Small whole numbers give ties, zeros and disjoint supports; the exponents give ratios over many magnitudes.
    weights = draw(hnp.arrays(float, (n, n), elements=st.integers(0, 4).map(float)))
    exponents = draw(hnp.arrays(float, (n, n), elements=st.sampled_from([0.0, 0.0, -1.0, -9.0, -60.0])))
    weights = weights * 10.0**exponents
    weights[weights.sum(axis=1) == 0, 0] = 1.0
    return weights / weights.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("kind", KINDS)
def test_equals_exhaustion_over_all_sets_of_columns(kind):
    rng = np.random.default_rng(KINDS.index(kind))
    for _ in range(70):  # times 8 kinds: 560 matrices
        P = random_matrix(rng, kind, int(rng.integers(1, 9)))
        L = tpl.PrivacyLossFunction(P)
        for alpha in 10.0 ** rng.uniform(-3, 1.5, 3):
            exact = brute_force_loss(P, alpha)
            assert L(alpha) == pytest.approx(exact, rel=1e-12)
            assert tpl.privacy_loss(P, alpha) == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_relative_error_is_below_1e_12_on_the_whole_range(kind):
    rng = np.random.default_rng(KINDS.index(kind))
    for n in (2, 3, 7):
        P = random_matrix(rng, kind, n)
        L = tpl.PrivacyLossFunction(P)
        for alpha in ALPHAS:
            exact = loss_mpmath(P, alpha, dps=50)
            if 0 < exact < 1e-290:
                continue  # the answer itself is at the end of the double range
            assert relative_error(L(alpha), exact) < 1e-12, alpha
            assert relative_error(tpl.privacy_loss(P, alpha), exact) < 1e-12, alpha


@pytest.mark.parametrize(("n", "spread"), [(6, 1e-1), (6, 1e-6), (12, 1e-12), (60, 1e-12)])
def test_rows_that_nearly_agree_keep_their_digits(n, spread):
    # n = 60 goes through the screen. Reordering q - d - mu d as q - (1 + mu) d would lose 4 of 16 digits here.
    rng = np.random.default_rng(5)
    P = 1.0 + spread * rng.random((n, n))
    P /= P.sum(axis=1, keepdims=True)
    L = tpl.PrivacyLossFunction(P)
    for alpha in ALPHAS[1:] if n < 60 else (0.1, 20.0):
        exact = loss_mpmath(P, alpha)
        assert relative_error(L(alpha), exact) < 1e-12
        assert relative_error(tpl.privacy_loss(P, alpha), exact) < 1e-12


def test_probabilities_over_three_hundred_magnitudes():
    rng = np.random.default_rng(6)
    for _ in range(20):
        P = 10.0 ** rng.uniform(-300, 0, (5, 5))
        P /= P.sum(axis=1, keepdims=True)
        L = tpl.PrivacyLossFunction(P)
        for alpha in (0.5, 50.0, 500.0, 690.0, 710.0, 800.0, 1e5):
            assert relative_error(L(alpha), loss_mpmath(P, alpha)) < 1e-12


@pytest.mark.parametrize("n", [30, 130])
def test_larger_matrices_in_blocks_and_threads(n):
    rng = np.random.default_rng(n)
    P = random_matrix(rng, "dense", n)
    L = tpl.PrivacyLossFunction(P)
    # An oracle that is O(n^3 log n) in NumPy: sorted prefix sums of every pair.
    for alpha in (0.1, 2.0, 9.0):
        u, best = np.expm1(alpha), 0.0
        for d in P:
            gap = P - d
            order = np.argsort(-P / d, axis=1)
            gaps = np.cumsum(np.take_along_axis(gap, order, axis=1), axis=1)
            best = max(best, float((gaps * u / (np.cumsum(d[order], axis=1) * u + 1)).max()))
        assert L(alpha) == pytest.approx(np.log1p(best), rel=1e-12)
        assert tpl.privacy_loss(P, alpha) == pytest.approx(np.log1p(best), rel=1e-12)


@settings(max_examples=60)
@given(P=matrices(), alpha=st.floats(1e-6, 50.0), more=st.floats(1e-3, 20.0))
def test_shape_of_the_function(P, alpha, more):
    L = tpl.PrivacyLossFunction(P)
    here, there = L(alpha), L(alpha + more)
    assert 0.0 <= here <= alpha
    assert here <= there * (1 + 1e-14)  # increasing
    assert there - (alpha + more) <= here - alpha + 1e-13 * (alpha + more)  # L(alpha) - alpha falls


@settings(max_examples=60)
@given(P=matrices(), seed=st.integers(0, 99))
def test_derivative_at_zero_is_the_largest_total_variation_distance(P, seed):
    distance = max(0.5 * np.abs(q - d).sum() for q in P for d in P)
    assert tpl.PrivacyLossFunction(P)(1e-9) == pytest.approx(distance * 1e-9, rel=1e-8, abs=1e-25)


@settings(max_examples=60)
@given(P=matrices(), seed=st.integers(0, 99), alpha=st.floats(1e-3, 100.0))
def test_names_of_states_do_not_matter(P, seed, alpha):
    rng = np.random.default_rng(seed)
    rows, columns = rng.permutation(len(P)), rng.permutation(len(P))
    shuffled = P[np.ix_(rows, columns)]
    assert tpl.PrivacyLossFunction(shuffled)(alpha) == pytest.approx(tpl.PrivacyLossFunction(P)(alpha), rel=1e-13)


@settings(max_examples=60)
@given(P=matrices(), epsilon=st.floats(1e-4, 5.0))
def test_supremum_is_the_fixed_point_of_the_recursion(P, epsilon):
    L = tpl.PrivacyLossFunction(P)
    supremum = L.supremum(epsilon)
    exact = max(
        (supremum_mpmath(q, d, epsilon) for d, q in L.vertices), default=mpmath.mpf(epsilon)
    )  # Algorithm 6: the largest over the vertices
    if exact == mpmath.inf or supremum == np.inf:
        # The edge epsilon = log(1/q) itself is a matter of the last digit.
        assert min(abs(epsilon + np.log(q)) for d, q in L.vertices if d == 0) < 1e-12 or supremum == exact
    else:
        gain = float(exact) - epsilon
        assert supremum >= epsilon
        # Where the fixed point hardly attracts, its condition number is large: compare the budgets instead.
        assert float(exact) - loss_mpmath(P, float(exact)) == pytest.approx(epsilon, rel=1e-9)
        assert L.budget_for(supremum) == pytest.approx(epsilon, rel=1e-9) or gain < 1e-9


@settings(max_examples=80)
@given(P=matrices(), alpha=st.floats(1e-9, 800.0))
def test_budget_for_is_safe_and_tight(P, alpha):
    # Rows that sum to 1 exactly, as otherwise alpha - L(alpha) depends on where the rounding is put.
    P = np.floor(P * 2.0**40) / 2.0**40
    P[np.arange(len(P)), P.argmax(axis=1)] += 1.0 - P.sum(axis=1)
    L = tpl.PrivacyLossFunction(P)
    budget = L.budget_for(alpha)
    exact = mpmath.mpf(alpha) - loss_mpmath(P, alpha, dps=400)
    assert 0.0 <= budget <= alpha
    assert budget <= exact
    if budget > 0:
        assert L.supremum(budget) <= alpha
        if exact > 1e-290:
            assert budget == pytest.approx(float(exact), rel=1e-9, abs=1e-15)


def test_example_4():
    L = tpl.PrivacyLossFunction(FIG_4)
    assert L.vertices == pytest.approx(np.array([[0.2, 0.7], [0.1, 0.5]]))
    # The pentagram of Fig. 4: (0.7 u + 1)/(0.2 u + 1) = (0.5 u + 1)/(0.1 u + 1).
    assert L.breakpoints == pytest.approx([np.log1p((0.7 + 0.1 - 0.2 - 0.5) / (0.2 * 0.5 - 0.7 * 0.1))])
    assert L(40.0) == pytest.approx(np.log(5.0), rel=1e-15)


def test_printed_sizes_of_the_supremum():
    # n = 50, s = 0.005 with Eq. (28) as printed: the reading notes' numbers for Fig. 7.
    L = tpl.PrivacyLossFunction(tpl.smoothed(tpl.strongest(50), 0.005))
    assert L.supremum([1.0, 0.1]) == pytest.approx([5.70, 0.63], abs=0.01)


def test_trivial_matrices():
    for P in ([[1.0]], np.full((4, 4), 0.25), [[0.3, 0.7]] * 2):
        L = tpl.PrivacyLossFunction(P)
        assert L(3.0) == 0.0
        assert L.is_zero
        assert L.supremum(0.5) == 0.5
        assert L.breakpoints.size == 0
    identity = tpl.PrivacyLossFunction(np.eye(3))
    assert identity.is_identity
    assert identity([1e-300, 1.0, 1e6]).tolist() == [1e-300, 1.0, 1e6]
    assert identity.supremum(1e-9) == np.inf
    assert identity.budget_for(1.0) == 0.0
    # Disjoint supports are enough (Theorem 7 of [1] asks for more), whatever the rounding of their sums.
    thirds = tpl.PrivacyLossFunction([[1 / 3, 1 / 3, 1 / 3, 0, 0, 0], [0, 0, 0, 0.1, 0.2, 0.7]] + [[1 / 6] * 6] * 4)
    assert thirds.is_identity
    assert thirds(2.5) == 2.5


def test_theorem_11_on_both_sides_of_its_second_case():
    L = tpl.PrivacyLossFunction([[0.8, 0.2], [0.0, 1.0]])
    limit = np.log(1 / 0.8)
    assert L.supremum(0.15) == pytest.approx(np.log(0.2 * np.exp(0.15) / (1 - 0.8 * np.exp(0.15))), rel=1e-12)
    assert np.isfinite(L.supremum(limit * (1 - 1e-9)))
    assert L.supremum(limit * (1 + 1e-9)) == np.inf


def test_supremum_with_a_tiny_d_is_not_understated():
    # The printed root cancels there and is off by half on the unsafe side.
    L = tpl.PrivacyLossFunction([[0.5, 0.5], [1 - 1e-17, 1e-17]])
    exact = supremum_mpmath(0.5, 1e-17, 0.5)
    assert L.supremum(0.5) == pytest.approx(float(exact), rel=1e-12)


def test_scalars_give_floats_and_arrays_keep_their_shape():
    L = tpl.PrivacyLossFunction(FIG_4)
    assert type(L(1.0)) is float
    assert type(L.supremum(1.0)) is float
    grid = np.array([[0.0, 0.1, 1.0], [2.0, 3.0, 50.0]])
    assert L(grid).shape == (2, 3)
    assert L(grid)[1, 2] == L(50.0)
    assert L.budget_for(grid).shape == (2, 3)


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_give_what_scalars_give(kind):
    rng = np.random.default_rng([1, KINDS.index(kind)])
    for P in (random_matrix(rng, kind, 9), np.eye(3), np.full((2, 2), 0.5), 10.0 ** rng.uniform(-300, 0, (5, 5))):
        L = tpl.PrivacyLossFunction(P / np.sum(P, axis=1, keepdims=True))
        alphas = np.concatenate([[0.0, *ALPHAS], L.breakpoints, 10.0 ** rng.uniform(-3, 3, 300)])
        np.testing.assert_allclose(L(alphas), [L.at(alpha) for alpha in alphas.tolist()], rtol=9e-16, atol=0)
        assert (L(alphas) <= alphas).all()


def test_what_is_handed_out_cannot_be_changed():
    rows = np.array(FIG_4)
    L = tpl.PrivacyLossFunction(rows)
    expected = L(1.0)
    rows[:] = 1 / 3
    assert (L.at(1.0), L.witness(1.0).q) == (expected, 0.7)
    for array in (L.vertices, L.breakpoints):
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 0.0


def test_repr_names_states_and_counts_vertices():
    assert repr(tpl.PrivacyLossFunction(FIG_4)) == "PrivacyLossFunction(TransitionMatrix(3 states, dense), 2 vertices)"
    named = tpl.TransitionMatrix(FIG_4, states=["home", "road", "office"])
    assert "'home', 'road', 'office'" in repr(tpl.PrivacyLossFunction(named))


def test_witness_attains_the_loss():
    P = tpl.TransitionMatrix(FIG_4, states=["home", "road", "office"])
    L = tpl.PrivacyLossFunction(P)
    for alpha in (0.5, 1.4, 1.5, 5.0):
        w = L.witness(alpha)
        q, d = P.row(P.index(w.state_q)), P.row(P.index(w.state_d))
        columns = [P.index(label) for label in w.columns]
        assert (q[columns].sum(), d[columns].sum()) == pytest.approx((w.q, w.d), rel=1e-14)
        u = np.expm1(alpha)
        assert np.log((w.q * u + 1) / (w.d * u + 1)) == pytest.approx(L(alpha), rel=1e-13)
    assert "telling 'office' from 'home'" in str(L.witness(5.0)) or "telling 'home' from 'office'" in str(
        L.witness(5.0)
    )


def test_witness_of_equal_rows_names_no_column():
    witness = tpl.PrivacyLossFunction([[0.5, 0.5], [0.5, 0.5]]).witness(1.0)
    assert witness.columns == ()
    assert "gains nothing from the correlation" in str(witness)


def test_ties_do_not_multiply_vertices():
    # All pairs of a smoothed permutation give the same two points, up to rounding.
    L = tpl.PrivacyLossFunction(tpl.smoothed(tpl.strongest(60, seed=3), 0.37))
    assert len(L.vertices) == 1


def test_result_does_not_depend_on_the_number_of_threads(monkeypatch):
    import numba

    P = tpl.random_matrix(150, seed=4)
    monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", 1)
    alone = tpl.PrivacyLossFunction(P)
    monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", 3)
    together = tpl.PrivacyLossFunction(P)
    alphas = np.geomspace(1e-3, 100, 50)
    assert together(alphas) == pytest.approx(alone(alphas), rel=1e-14)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tpl.PrivacyLossFunction([[0.5, 0.5]]), r"must be square, found shape \(1, 2\)"),
        (
            lambda: tpl.PrivacyLossFunction([[0.5, 0.4], [0.5, 0.5]]),
            r"sum to 1 within 1e-09, found 0.9 in row 0.*normal",
        ),
        (lambda: tpl.PrivacyLossFunction([[1.5, -0.5], [0.5, 0.5]]), "negative, found -0.5 in row 0, column 1"),
        (lambda: tpl.PrivacyLossFunction([[np.nan, 1.0], [0.5, 0.5]]), "finite numbers, found nan in row 0, column 0"),
        (lambda: tpl.PrivacyLossFunction([[np.inf, 1.0], [0.5, 0.5]]), "finite numbers, found inf"),
        (lambda: tpl.PrivacyLossFunction([]), "found shape"),
        (lambda: tpl.PrivacyLossFunction(np.empty((0, 0))), "at least one"),
        (lambda: tpl.PrivacyLossFunction([[0.5, 0.5], [1.0]]), "rectangular array of numbers"),
        (lambda: tpl.PrivacyLossFunction("abc"), "rectangular array of numbers, found str"),
        (lambda: tpl.PrivacyLossFunction(FIG_4)(-1.0), "alpha must be a finite leakage in nats, at least 0; found -1"),
        (lambda: tpl.PrivacyLossFunction(FIG_4)([1.0, np.nan]), "found nan"),
        (lambda: tpl.PrivacyLossFunction(FIG_4)(np.inf), "found inf"),
        (lambda: tpl.privacy_loss(FIG_4, -0.5), "at least 0; found -0.5"),
        (lambda: tpl.privacy_loss(FIG_4, [1.0, 2.0]), "alpha must be one number, found shape"),
        (lambda: tpl.PrivacyLossFunction(FIG_4).supremum(0.0), "epsilon must be a finite privacy budget.*found 0"),
        (lambda: tpl.PrivacyLossFunction(FIG_4).supremum(-1.0), "greater than 0; found -1"),
        (lambda: tpl.PrivacyLossFunction(FIG_4).budget_for(-1.0), "alpha must be.*found -1"),
        (lambda: tpl.PrivacyLossFunction(FIG_4).witness(-1.0), "alpha must be.*found -1"),
    ],
)
def test_bad_input_names_constraint_value_and_remedy(call, message):
    with pytest.raises(ValueError, match=message):
        call()
