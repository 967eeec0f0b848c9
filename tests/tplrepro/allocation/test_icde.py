"""Algorithms 2 and 3 of [2], searched over alpha^B as its section V tells, against those of the
package.

Only their prose survives: choose alpha^B; find the rows' sums q and d by Algorithm 1 at that
leakage; solve Theorem 5 for the budget that has the supremum alpha^B; the rest of alpha goes to
alpha^F, whose budget is found in the same way; change alpha^B until both agree. Plain Python on
single floats that shares no code with the package.
"""

from itertools import permutations
from math import exp, inf, log, sqrt

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tplrepro as tpl
from tests.tplrepro.leakage.matrices import BACKWARD, FORWARD, matrices
from tplrepro.allocation import conference

# What is left of 53 bits: the oracle works with e^alpha itself and 1 - q.
TOLERANCE = 1e-10


def algorithm_1(rows, alpha):
    """Lines 1 to 12: the sums q, d of the pair of rows and the columns that maximise the
    objective."""
    best = (0.0, 0.0, 1.0)
    for row_q, row_d in permutations(rows, 2):
        kept = [(q, d) for q, d in zip(row_q, row_d, strict=True) if q > d]  # Corollary 2
        while True:
            q, d = sum(a for a, _ in kept), sum(b for _, b in kept)
            ratio = (q * (exp(alpha) - 1) + 1) / (d * (exp(alpha) - 1) + 1)
            satisfied = [(a, b) for a, b in kept if a > ratio * b]  # Inequality (21)
            if len(satisfied) == len(kept):
                break
            kept = satisfied
        best = max(best, (log(ratio), q, d))
    return best


def theorem_5(q, d, epsilon):
    """The supremum over time of a mechanism that spends epsilon at each time point."""
    growth = exp(epsilon)
    if d != 0:
        b = d + q * growth - 1
        return log((sqrt(4 * d * growth * (1 - q) + b**2) + b) / (2 * d))
    return log((1 - q) * growth / (1 - q * growth)) if q * growth < 1 else inf


def bisected(within, alpha):
    low, high = 0.0, alpha
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if within(middle) else (low, middle)
    return low


def budget_with_supremum(rows, alpha):
    """Solve Theorem 5 for epsilon, with q and d from Algorithm 1 at the supremum itself."""
    _, q, d = algorithm_1(rows, alpha)
    return bisected(lambda epsilon: theorem_5(q, d, epsilon) <= alpha, alpha)


def budget_between(rows, alpha):
    """The budget that keeps the leakage at alpha from one time point to the next."""
    return alpha - algorithm_1(rows, alpha)[0]


def search(alpha, backward, forward, budget):
    """Change alpha^B until the budgets of both sides agree; alpha^B, alpha^F and that budget."""

    def rest(alpha_b):
        epsilon_b = budget(backward, alpha_b)
        alpha_f = alpha - alpha_b + epsilon_b
        return epsilon_b, alpha_f, budget(forward, alpha_f)

    def is_too_small(alpha_b):
        epsilon_b, _, epsilon_f = rest(alpha_b)
        return epsilon_b < epsilon_f

    alpha_b = bisected(is_too_small, alpha)
    epsilon_b, alpha_f, epsilon_f = rest(alpha_b)
    return alpha_b, alpha_f, min(epsilon_b, epsilon_f)


SIDES = st.integers(2, 6).flatmap(
    lambda n: st.tuples(*[matrices(n, ("dense", "smoothed", "repeated_rows"))] * 2)
)


def test_the_prose_gives_the_budgets_of_figure_7_by_both_algorithms():
    by_bound = search(1.0, BACKWARD, FORWARD, budget_with_supremum)
    assert by_bound == pytest.approx((0.4998062, 0.7040659, 0.2038721), abs=5e-8)
    # Theorem 5's supremum is the fixed point of the step between two time points, so 2 and 3 share
    # alpha^B.
    assert search(1.0, BACKWARD, FORWARD, budget_between) == pytest.approx(by_bound, rel=1e-10)


@given(st.floats(0.05, 5), SIDES, st.integers(2, 6))
@settings(max_examples=12)
def test_the_prose_agrees_with_the_allocations(alpha, sides, horizon):
    *_, epsilon = search(alpha, *sides, budget_with_supremum)
    for allocate in (tpl.allocate_by_upper_bound, conference.algorithm_2):
        assert allocate(alpha, *sides) == pytest.approx(epsilon, abs=TOLERANCE * alpha)
    alpha_b, alpha_f, middle = search(alpha, *sides, budget_between)
    expected = [alpha_b, *[middle] * (horizon - 2), alpha_f]
    for allocate in (tpl.allocate_by_quantification, conference.algorithm_3):
        assert allocate(alpha, *sides, horizon).tolist() == pytest.approx(
            expected, abs=TOLERANCE * alpha
        )


def test_the_budget_of_a_supremum_leaves_it_whatever_the_unit_of_leakage():
    """That of a law that is not known is one half."""
    for loss in (tpl.PrivacyLossFunction(BACKWARD), tpl.PriorFreeLoss(BACKWARD)):
        for supremum in (0.01, 0.5, 2.0):
            budget = conference._budget_of_supremum(loss, supremum)
            assert budget == pytest.approx(supremum - loss.at(supremum), rel=1e-9)
            assert supremum * (1 - 1e-9) <= loss.supremum(budget) <= supremum


def test_a_single_release_gets_all_and_deterministic_correlation_has_no_budget():
    assert conference.algorithm_3(1.5, BACKWARD, FORWARD, 1).tolist() == [1.5]
    for allocate in (conference.algorithm_2, lambda *given: conference.algorithm_3(*given, 3)):
        with pytest.raises(
            tpl.allocation.published.NoFiniteSupremumError, match="keeps the leakage bounded"
        ):
            allocate(1.0, [[1.0, 0.0], [0.0, 1.0]], FORWARD)


@mpmath.workdps(60)
def exact_loss(rest, d, alpha):
    """L of the matrix [[1 - rest, rest], [d, 1 - d]]: two pairs of rows, a column each."""
    u = mpmath.expm1(alpha)
    of_first = mpmath.log(((1 - mpmath.mpf(rest)) * u + 1) / (mpmath.mpf(d) * u + 1))
    of_second = mpmath.log(((1 - mpmath.mpf(d)) * u + 1) / (mpmath.mpf(rest) * u + 1))
    return max(of_first, of_second)


@mpmath.workdps(60)
def exact_supremum(rest, d, epsilon):
    """The fixed point of alpha = L(alpha) + epsilon, between 0 and 100 nats."""
    low, high = mpmath.mpf(0), mpmath.mpf(100)
    for _ in range(200):
        middle = (low + high) / 2
        if exact_loss(rest, d, middle) + mpmath.mpf(epsilon) > middle:
            low = middle
        else:
            high = middle
    return high


NEARLY = [
    (10.0**-k, 10.0**-j, alpha)
    for k, j, alpha in ((6, 9, 1.0), (10, 3, 2.0), (9, 9, 5.0), (1, 12, 0.3))
]
NEARLY += [
    tuple(10.0 ** np.random.default_rng(seed).uniform([-10, -10, -1], [-1, -1, 0.7]))
    for seed in range(12)
]


@pytest.mark.parametrize(("rest", "d", "alpha"), NEARLY)
@mpmath.workdps(60)
def test_budgets_of_the_prose_keep_alpha_exactly(rest, d, alpha):
    """Also where 1 - q cancels, by a fixed point and a recursion in 60 digits."""
    P = np.array([[1.0 - rest, rest], [d, 1.0 - d]])
    one_side = conference.algorithm_2(alpha, None, P)
    assert exact_supremum(rest, d, one_side) <= alpha
    assert exact_supremum(rest, d, one_side * (1 + 1e-3) + 1e-11 * alpha) > alpha
    both = conference.algorithm_2(alpha, P, P)
    assert 2 * exact_supremum(rest, d, both) - mpmath.mpf(both) <= alpha
    budgets = [mpmath.mpf(one) for one in conference.algorithm_3(alpha, P, P, 6).tolist()]
    bpl = [budgets[0]]
    fpl = [budgets[-1]]
    for k in range(1, 6):
        bpl.append(exact_loss(rest, d, bpl[-1]) + budgets[k])
        fpl.append(exact_loss(rest, d, fpl[-1]) + budgets[-1 - k])
    tpl_of_times = [b + f - one for b, f, one in zip(bpl, fpl[::-1], budgets, strict=True)]
    assert max(tpl_of_times) <= alpha
