"""The errata of TKDE 2019 that docs/errata.md lists: what is printed, against what is true.

The printed forms are transcribed here and nowhere else.
"""

import math
from itertools import permutations, product

import numpy as np
import pytest

import tplrepro as tpl
from tests import oracles
from tests.oracles import (
    brute_force_loss,
    loss_mpmath,
    pair_loss_mpmath,
    supremum_mpmath,
    theorem_11,
)
from tests.tplrepro.leakage.matrices import (
    BACKWARD,
    FIG_3,
    FIG_4,
    FORWARD,
    SWAPPED,
    THREE,
    random_matrices,
)
from tplrepro.leakage import published

WORKED_EXAMPLE = [0.2, 0.3, 0.5], [0.1, 0.0, 0.9]  # of Algorithm 2
IDENTITY, OF_BACKWARD, OF_FORWARD = (
    published.algorithm_2(P) for P in (np.eye(2), BACKWARD, FORWARD)
)


def printed_f(q, d, alpha):
    """Eq. (24) as it stands, without the logarithm."""
    return (q * (math.exp(alpha) - 1) + 1) / (d * (math.exp(alpha) - 1) + 1)


def printed_algorithm_1(P, alpha):
    """Line for line, but that the flag is cleared in every pass."""
    largest = 0.0
    for q_row, d_row in permutations(P, 2):
        kept = q_row > d_row
        while True:
            q, d = q_row[kept].sum(), d_row[kept].sum()
            with np.errstate(divide="ignore", invalid="ignore"):
                remaining = kept & ~(q_row / d_row <= printed_f(q, d, alpha))
            if (remaining == kept).all():
                break
            kept = remaining
        largest = max(largest, math.log(printed_f(q, d, alpha)))
    return largest


def printed_theorem_11_first_case(q, d, epsilon):
    e = math.exp(epsilon)
    root = (math.sqrt(4 * d * e * (1 - q) + (d + q * e - 1) ** 2) + d + q * e - 1) / (2 * d)
    return math.log(root) if root > 0 else -math.inf


def test_algorithm_1_flag_is_never_cleared_as_printed():
    # lines 5-12: "update = false" stands before the loop, "update = true" in it
    (q_row, d_row), alpha = np.array(WORKED_EXAMPLE), 3.0
    kept, update, passes = q_row > d_row, False, 0
    while passes < 1000:
        passes += 1
        with np.errstate(divide="ignore"):
            removed = kept & (
                q_row / d_row <= printed_f(q_row[kept].sum(), d_row[kept].sum(), alpha)
            )
        if removed.any():
            kept, update = kept & ~removed, True
        if not update:
            break
    assert passes == 1000
    assert published.algorithm_1([q_row, d_row, d_row], alpha) == pytest.approx(
        math.log(printed_f(0.3, 0, alpha))
    )


def test_algorithm_1_as_printed_silently_understates_for_large_alpha():
    # which alpha is hit depends on the last bit of exp, so a range is tried; the true value is log
    # 5 throughout
    printed = [printed_algorithm_1(FIG_4, alpha) for alpha in range(40, 60)]
    assert min(printed) == 0
    assert np.median(printed) < 1
    for alpha in range(40, 60):
        assert float(loss_mpmath(FIG_4, alpha)) == pytest.approx(math.log(5), rel=1e-15)
        assert published.algorithm_1(FIG_4, alpha) == pytest.approx(math.log(5), rel=1e-15)
    assert printed_algorithm_1(FIG_4, 30) == pytest.approx(
        published.algorithm_1(FIG_4, 30), rel=1e-14
    )


def test_algorithm_1_as_printed_understates_earlier_where_rows_nearly_agree():
    P = np.array([[0.5 + 1e-8, 0.5 - 1e-8], [0.5, 0.5]])
    alphas = np.arange(18, 24, 0.25)
    assert min(printed_algorithm_1(P, alpha) for alpha in alphas) == 0
    for alpha in alphas:
        assert published.algorithm_1(P, alpha) == pytest.approx(
            float(loss_mpmath(P, alpha)), rel=1e-14
        )


def test_printed_formula_overflows_and_loses_digits():
    with pytest.raises(OverflowError):
        printed_f(0.5, 0.1, 710)
    assert published.algorithm_1(FIG_4, 710) == pytest.approx(math.log(5), rel=1e-15)
    exact = float(loss_mpmath(FIG_4, 1e-8))
    assert abs(printed_algorithm_1(FIG_4, 1e-8) / exact - 1) > 1e-9
    assert published.algorithm_1(FIG_4, 1e-8) == pytest.approx(exact, rel=1e-15)


def test_algorithm_2_line_11_lacks_plus_one():
    # with the printed transition point, 1.20 for the worked example's 1.47, the piece for one
    # column starts too early
    printed = math.log((0.2 - 0.1) / (0.5 * 0.1 - 0.1 * 0.2))
    q_arr, d_arr, a_arr = published.piecewise_coefficients(*WORKED_EXAMPLE)
    assert (printed, a_arr[1]) == pytest.approx((1.204, 1.466), abs=1e-3)
    exact = math.exp(float(pair_loss_mpmath(*WORKED_EXAMPLE, 1.3)))
    assert printed_f(q_arr[1], d_arr[1], 1.3) == pytest.approx(exact, rel=1e-14)
    assert printed_f(q_arr[0], d_arr[0], 1.3) < exact - 0.01


def test_algorithm_3_line_5_has_the_wrong_denominator():
    # "qArr[k](e^alpha_(k-1) - 1) + 1": whichever transition point is meant, the result is negative
    alpha = 1.0
    q_arr, d_arr, a_arr = published.piecewise_coefficients(*WORKED_EXAMPLE)
    for k in (0, 1):
        assert (q_arr[1] * np.expm1(alpha) + 1) / (q_arr[1] * np.expm1(a_arr[k]) + 1) < 1
    exact = float(pair_loss_mpmath(*WORKED_EXAMPLE, alpha))
    assert math.log(printed_f(q_arr[1], d_arr[1], alpha)) == pytest.approx(exact, rel=1e-14)
    P = [*WORKED_EXAMPLE, WORKED_EXAMPLE[1]]
    value = published.algorithm_3(alpha, published.algorithm_2(P))
    assert value == pytest.approx(brute_force_loss(P, alpha), rel=1e-14)


def test_algorithm_4_with_equal_floats_often_never_ends():
    def ends(tables, a_1, a_m, calls=500):
        stack = [(a_1, a_m)]
        while stack and calls:
            calls -= 1
            low, high = stack.pop()
            q1, d1, qm, dm = (*coefficients(tables, low), *coefficients(tables, high))
            k = (qm + d1 - q1 - dm) / (q1 * dm - qm * d1) if q1 * dm != qm * d1 else 0
            if low == high or log_f(qm, dm, high) == log_f(q1, d1, high):
                continue
            if log_f(q1, d1, low) == log_f(qm, dm, low) or k <= 0:
                continue
            middle = math.log(k + 1)
            stack += [(low, middle), (middle, high)]
        return not stack

    def log_f(q, d, alpha):
        return math.log(printed_f(q, d, alpha))

    def coefficients(tables, alpha):
        rows = np.arange(len(tables.aM))
        k = np.maximum((tables.aM > alpha).sum(axis=1) - 1, 0)
        q, d = tables.qM[rows, k], tables.dM[rows, k]
        best = np.argmax((q * (math.exp(alpha) - 1) + 1) / (d * (math.exp(alpha) - 1) + 1))
        return q[best], d[best]

    tables = [
        published.algorithm_2(P) for P in random_matrices(np.random.default_rng(0), "dense", 6, 10)
    ]
    assert sum(not ends(table, 1e-3, 20) for table in tables) >= 3
    for table in tables:
        assert len(published.algorithm_4(table, 1e-3, 20).aArr) < 60


def test_equation_39_has_wrong_signs():
    q, d, epsilon = 0.8, 0.1, 0.23
    e, limit = math.exp(epsilon), math.exp(float(supremum_mpmath(q, d, epsilon)))
    printed = d * limit**2 + (q * e + d - 1) * limit + (q * e - e)
    corrected = d * limit**2 + (1 - d - q * e) * limit - e * (1 - q)
    assert abs(printed) > 0.4
    assert corrected == pytest.approx(0, abs=1e-14)
    for first_case in (printed_theorem_11_first_case, theorem_11):
        assert first_case(q, d, epsilon) == pytest.approx(math.log(limit), rel=1e-14)


def test_theorem_11_has_no_supremum_at_equality():
    # the printed second case divides by 1 - q e^epsilon = 0
    assert 1 - 0.5 * math.exp(math.log(2)) == 0
    assert theorem_11(0.5, 0.0, math.log(2)) == math.inf
    assert theorem_11(0.5, 0.0, math.log(2) - 1e-12) == pytest.approx(
        math.log(0.5 / 0.5e-12), abs=1e-3
    )


@pytest.mark.parametrize(
    ("d", "epsilon", "expected"), [(1e-16, 0.01, 0.02010101), (1e-17, 0.5, 1.54617527)]
)
def test_theorem_11_first_case_cancels_for_tiny_d(d, epsilon, expected):
    # what the printed form gives depends on the order of evaluation; none is near
    exact = float(supremum_mpmath(0.5, d, epsilon))
    assert exact == pytest.approx(expected, rel=1e-7)
    assert abs(printed_theorem_11_first_case(0.5, d, epsilon) - exact) > 0.05
    assert theorem_11(0.5, d, epsilon) == pytest.approx(exact, rel=1e-14)
    assert tpl.PrivacyLossFunction([[0.5, 0.5], [1 - d, d]]).supremum(epsilon) == pytest.approx(
        exact, rel=1e-12
    )


def printed_algorithm_7(alpha, backward, forward, steps, tolerance=0.0):
    """Returns (budget, whether the loop ended)."""

    def supremum(budget, tables):
        return published.algorithm_6(budget, tables)[0] if budget > 0 else 0.0

    width, budget = alpha, 0.5 * alpha
    for _ in range(steps):
        width *= 0.5
        total = supremum(budget, backward) + supremum(budget, forward) - budget
        if abs(total - alpha) <= tolerance:
            return budget, True
        budget += -width if total > alpha else width
    return budget, False


def printed_algorithm_8(alpha, backward, forward, steps):
    """Returns (first, middle, last budget, whether the loop ended)."""
    width, first = alpha, 0.5 * alpha
    for _ in range(steps):
        width *= 0.5
        last = alpha - published.algorithm_3(first, backward)
        total = published.algorithm_3(last, forward) + first
        if total == alpha:
            return first, first + last - alpha, last, True
        first += width if total < alpha else -width
    return first, first + last - alpha, last, False


def test_algorithm_7_waits_for_a_float_equality_that_does_not_come():
    levels = np.linspace(0.1, 3, 40)
    ended = [printed_algorithm_7(alpha, OF_BACKWARD, OF_FORWARD, 200)[1] for alpha in levels]
    assert 1 <= sum(ended) <= 35
    assert printed_algorithm_7(1.0, OF_BACKWARD, OF_FORWARD, 60)[0] == pytest.approx(
        0.2038721, abs=5e-8
    )
    first, middle, last, _ = printed_algorithm_8(1.0, OF_BACKWARD, OF_FORWARD, 60)
    assert (first, middle, last) == pytest.approx((0.4998062, 0.2038721, 0.7040659), abs=5e-8)
    # two releases reach alpha at both times, Eq. (11)
    at_first = published.algorithm_3(last, OF_FORWARD, first)
    at_last = published.algorithm_3(first, OF_BACKWARD, last)
    assert (at_first, at_last) == pytest.approx((1.0, 1.0), rel=1e-14)


def test_with_the_authors_tolerance_algorithm_7_ends_where_there_is_a_budget_and_only_there():
    tolerance = 10 * np.finfo(float).eps
    for alpha in np.linspace(0.1, 3, 15):
        _, ended = printed_algorithm_7(alpha, OF_BACKWARD, OF_FORWARD, 200, tolerance)
        assert ended
    steps = 1080  # halvings of 1, after which the step is 0
    budget, ended = printed_algorithm_7(1.0, IDENTITY, IDENTITY, steps, tolerance)
    assert not ended
    assert budget < 1e-300


def test_without_a_finite_supremum_the_printed_allocations_release_nothing():
    budget, ended = printed_algorithm_7(1.0, IDENTITY, IDENTITY, 300)
    assert budget < 1e-80
    assert not ended
    # Eq. (26) with L(x) = x: the middle budget alpha_B + alpha_F - alpha is 0, so Algorithm 8
    # serves only T <= 2
    for backward in (IDENTITY, OF_BACKWARD):
        assert printed_algorithm_8(1.0, backward, IDENTITY, 300)[1] == 0


def test_a_subset_of_columns_can_leave_out_a_ratio_above_that_of_its_sums():
    """Section IV-B of [2]: "any subset ... automatically satisfy Inequality (22)"."""
    q = np.array([0.6, 0.3, 0.1])
    d = np.array([0.1, 0.1, 0.8])
    grown = np.expm1(1.0)
    ratio_of_sums = (q[1] * grown + 1) / (d[1] * grown + 1)
    assert ratio_of_sums == pytest.approx(1.29, abs=0.005)
    assert q[0] / d[0] == pytest.approx(6.0)  # of a column left out, which (22) wants below it
    both = (q[:2].sum() * grown + 1) / (d[:2].sum() * grown + 1)
    assert published.algorithm_1([q, d, d], 1.0) >= np.log(both) > np.log(ratio_of_sums)


def test_theorem_7_is_sufficient_and_not_necessary():
    # rows with disjoint supports and no entry 1
    P = np.array([[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.3, 0.7], [0.25] * 4, [0.1, 0.2, 0.3, 0.4]])
    for alpha in (0.1, 1.0, 10.0, 100.0):
        assert published.algorithm_1(P, alpha) == pytest.approx(alpha, rel=1e-15)


def recursion_of(P, epsilon, T=10):
    """BPL and FPL by Eqs. (13) and (15) with P on both sides, through Algorithm 1."""
    return oracles.recursion([epsilon] * T, *[lambda alpha: published.algorithm_1(P, alpha)] * 2)[
        :2
    ]


def test_example_3_forward_leakage_is_highest_at_time_1():
    forward = recursion_of(FIG_3, 0.1)[1]
    assert forward[0] == max(forward) > 0.49
    assert forward[-1] == min(forward) == 0.1


def test_equation_13_is_an_upper_bound_that_is_attained_only_for_some_correlations():
    # Definition 6 over all outputs of randomised response, of all epsilon-DP mechanisms on two
    # states the one that leaks most: every likelihood ratio within e^-epsilon .. e^epsilon mixes
    # its two outputs
    response = [np.exp(np.eye(2))] * 10
    bound, exact = (
        recursion_of(FIG_3, 1.0)[0],
        oracles.exhaustive_leakage(response, [FIG_3] * 9, [None] * 9)[0],
    )
    np.testing.assert_allclose(exact, bound, rtol=1e-12)
    np.testing.assert_allclose(tpl.exact_leakage([1.0] * 10, FIG_3, None).bpl, exact, rtol=1e-12)
    # the same rows with the columns exchanged have the same L, but what x must be now contradicts
    # what it was before
    exact = oracles.exhaustive_leakage(response, [SWAPPED] * 9, [None] * 9)[0]
    np.testing.assert_allclose(exact[:2], bound[:2], rtol=1e-12)
    assert (exact[2:] < np.array(bound[2:]) - 0.1).all()
    assert (round(exact[-1], 2), round(bound[-1], 2)) == (3.26, 8.15)
    np.testing.assert_allclose(tpl.exact_leakage([1.0] * 10, SWAPPED, None).bpl, exact, rtol=1e-12)


def test_theorem_2_is_an_upper_bound_even_for_equal_mechanisms():
    # T = 3, the leakage at time 2
    forward, backward, epsilon = THREE, THREE.T, 1.0
    pairs = list(permutations(range(3), 2))
    past = [float(pair_loss_mpmath(backward[i], backward[j], epsilon)) for i, j in pairs]
    future = [float(pair_loss_mpmath(forward[i], forward[j], epsilon)) for i, j in pairs]
    split = max(past) + max(future) + epsilon  # Eq. (10): BPL + FPL - epsilon
    one_pair = max(a + b for a, b in zip(past, future, strict=True)) + epsilon
    assert (split, one_pair) == pytest.approx((2.41255, 2.34558), abs=1e-5)
    # Definition 5, Eq. (2), over all outputs of the worst 1-DP mechanism
    outputs = [np.exp(list(product([0.0, epsilon], repeat=3)))] * 3
    by_definition = oracles.exhaustive_leakage(outputs, [backward] * 2, [forward] * 2)[2]
    assert by_definition[1] == pytest.approx(one_pair, rel=1e-12)
    assert tpl.temporal_privacy_leakage([1.0] * 3, backward, forward).tpl[1] == pytest.approx(
        split, rel=1e-13
    )
    assert tpl.exact_leakage([1.0] * 3, backward, forward).tpl[1] == pytest.approx(
        one_pair, rel=1e-13
    )


@pytest.mark.parametrize(
    ("rows", "sum_of_single", "attained"),
    [
        ([[0.8, 0.2], [0, 1]], 2.60663438, 2.67969524),
        ([[0.8, 0.2], [0.2, 0.8]], 1.90529109, 1.83126671),
    ],
)
def test_the_sum_of_single_suprema_of_appendix_a_bounds_in_neither_direction(
    rows, sum_of_single, attained
):
    P = np.array(rows)
    # what one release tells of the state k steps later, in 50 digits
    single = 1.0
    for step in (P, P @ P):
        single += max(float(pair_loss_mpmath(step[i], step[1 - i], 1.0)) for i in (0, 1))
    assert single == pytest.approx(sum_of_single, rel=1e-6)
    assert tpl.exact_leakage([1.0] * 3, P, None).bpl[2] == pytest.approx(attained, rel=1e-6)


@pytest.mark.parametrize(
    ("epsilon", "as_discussed", "fitting"),
    [(1.0, 5.6964956, 8.1286800), (0.1, 0.63337054, 5.0923977)],
)
def test_the_suprema_of_figure_7_fit_a_tenth_of_the_printed_s(epsilon, as_discussed, fitting):
    # Eq. (28) with n = 50 and the s of the text, 0.005, then with the s that fits the text
    for s, expected in ((0.005, as_discussed), (0.0005, fitting)):
        P = tpl.smoothed(tpl.strongest(50), s)
        assert published.algorithm_6(epsilon, published.algorithm_2(P))[0] == pytest.approx(
            expected, rel=1e-7
        )
        assert tpl.PrivacyLossFunction(P).supremum(epsilon) == pytest.approx(expected, rel=1e-7)


def leakage_of_smoothed_identity(n, s, epsilon):
    """BPL of 5,000 releases by Eqs. (13), (28): each row has q = (1 + s) / (1 + n s) at its own
    state and d = s / (1 + n s) elsewhere."""
    q, d = (1 + s) / (1 + n * s), s / (1 + n * s)
    leakages = [epsilon]
    for _ in range(4999):
        u = math.expm1(leakages[-1])
        leakages.append(math.log((q * u + 1) / (d * u + 1)) + epsilon)
    return np.array(leakages)


@pytest.mark.parametrize(
    ("divisor", "fits"),
    [(0.5, False), (1, False), (2, False), (3, False)]
    + [(divisor, True) for divisor in (4, 5, 10, 15, 20, 25, 30)]
    + [(40, False), (50, False)],
)
def test_an_s_that_is_4_to_30_times_smaller_fits_the_text_of_section_6_2(divisor, fits):
    """Almost 8 and approximately 80 releases to nine tenths of the supremum, within 15 %, and
    suprema that differ by less than two times. ConTPL, by the authors, adds s twice."""
    fast, slow = (
        leakage_of_smoothed_identity(50, 0.005 / divisor, epsilon) for epsilon in (1.0, 0.1)
    )
    matrix = tpl.smoothed(tpl.strongest(50), 0.005 / divisor)
    found = tpl.temporal_privacy_leakage(np.full(200, 0.1), backward=matrix, forward=None)
    assert found.bpl == pytest.approx(slow[:200], rel=1e-9)
    releases = [1 + np.argmax(bpl >= 0.9 * bpl[-1]) for bpl in (fast, slow)]
    is_near = abs(releases[0] - 8) <= 1.2 and abs(releases[1] - 80) <= 12
    assert (is_near and fast[-1] < 2 * slow[-1]) == fits


def balance_equations(backward, forward):
    """The coefficients of pi_i forward_ij - nu_j backward_ji = 0 in the distributions (pi, nu)
    before and after."""
    n = len(forward)
    rows = np.zeros((n, n, 2 * n))
    for i in range(n):
        for j in range(n):
            rows[i, j, i], rows[i, j, n + j] = forward[i, j], -backward[j, i]
    return rows.reshape(n * n, 2 * n)


def test_matrices_of_figure_2_are_no_reversals_of_each_other():
    backward = np.array([[0.1, 0.2, 0.7], [0.0, 0.0, 1.0], [0.3, 0.3, 0.4]])
    forward = np.array([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8], [0.6, 0.2, 0.2]])
    # solved by pi = nu = 0 alone
    assert np.linalg.matrix_rank(balance_equations(backward, forward)) == 6
    reverse = tpl.TransitionMatrix(forward).reverse([0.2, 0.5, 0.3]).probabilities
    assert np.linalg.matrix_rank(balance_equations(reverse, forward), tol=1e-12) == 5
