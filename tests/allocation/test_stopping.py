"""Budgets for a series of unknown length, against series of known length, exhaustive search and high precision."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tplrepro as tpl
from tests.allocation.oracles import exact_supremum, problems
from tests.leakage.matrices import BACKWARD, FORWARD, random_matrix
from tests.leakage.oracles import DIGITS, exact_loss
from tplrepro.allocation import EndlessBudgets
from tplrepro.allocation.stopping import _Endless


def exact_endless_tpl(endless, loss_b, loss_f, alpha):
    """The suprema over the length T of the TPL at the first times and in the tail's limit, with 50 digits."""
    with mpmath.workdps(DIGITS):
        tail = mpmath.mpf(endless.tail)
        budgets = [*(mpmath.mpf(float(epsilon)) for epsilon in endless.first), tail]
        ceiling = mpmath.mpf(2 * alpha)
        fpl = [exact_supremum(loss_f, tail, ceiling)]
        for epsilon in budgets[-2::-1]:
            fpl.append(loss_f(fpl[-1]) + epsilon)
        bpl = budgets[:1]
        for epsilon in budgets[1:]:
            bpl.append(loss_b(bpl[-1]) + epsilon)
        at_times = [b + f - e for b, f, e in zip(bpl, fpl[::-1], budgets, strict=True)]
        return max([*at_times, exact_supremum(loss_b, tail, ceiling) + fpl[0] - tail])


@given(problems(), st.floats(0.02, 0.95), st.sampled_from(["absolute", "squared"]))
@settings(max_examples=20)
def test_never_above_alpha_for_any_length_and_never_worse_than_algorithm_7(problem, p, error):
    alpha, backward, forward = problem
    known = [None if P is None else tpl.PrivacyLossFunction(P) for P in (backward, forward)]
    try:
        constant = tpl.allocate_by_upper_bound(alpha, *known)
    except tpl.NoFiniteSupremumError:
        with pytest.raises(tpl.NoFiniteSupremumError):
            tpl.allocate_with_stopping(alpha, *known, p, error=error)
        return
    endless = tpl.allocate_with_stopping(alpha, *known, p, error=error)
    assert endless.tail > 0
    assert np.all(endless.first > 0)
    for horizon in (1, 2, 3, 5, 10, 50, 200):
        budgets = endless.budgets(horizon)
        assert budgets.shape == (horizon,)
        assert tpl.temporal_privacy_leakage(budgets, *known).tpl.max() <= alpha
    if endless.first.size <= 60:
        largest = exact_endless_tpl(endless, exact_loss(backward), exact_loss(forward), alpha)
        assert largest <= alpha * (1 + mpmath.mpf(10) ** -38)  # the bisection's own error
    power = 1 if error == "absolute" else 2
    assert endless.expected_error(p, error) <= 1 / p / constant**power * (1 + 1e-12)


@pytest.mark.parametrize("p", [0.5, 0.05])
def test_every_length_up_to_200_on_figure_8(p):
    endless = tpl.allocate_with_stopping(1.0, BACKWARD, FORWARD, p)
    for horizon in range(1, 201):
        assert tpl.temporal_privacy_leakage(endless.budgets(horizon), BACKWARD, FORWARD).tpl.max() <= 1


@pytest.mark.parametrize("error", ["absolute", "squared"])
@pytest.mark.parametrize(("p", "horizon"), [(0.2, 90), (0.5, 30)])
@pytest.mark.parametrize("alpha", [1.0, 6.0])
def test_agrees_with_a_long_known_series_of_falling_weights(alpha, p, horizon, error):
    # A series that ends asks for less and counts all but (1 - p)^T of the error, so its error is a lower bound.
    weights = (1 - p) ** np.arange(horizon)
    known = tpl.allocate_optimally(alpha, BACKWARD, FORWARD, horizon, weights=weights, error=error)
    power = 1 if error == "absolute" else 2
    bound = (weights / known**power).sum()
    found = tpl.allocate_with_stopping(alpha, BACKWARD, FORWARD, p, error=error).expected_error(p, error)
    assert bound * (1 - 1e-6) <= found <= bound * (1 + 1e-5)


def test_no_grid_search_over_three_unknowns_does_better():
    # Backward only, soon over: two first budgets and a tail are enough, as BPL then has reached its supremum.
    alpha, p = 1.0, 0.9
    loss = tpl.PrivacyLossFunction(BACKWARD)
    endless = tpl.allocate_with_stopping(alpha, loss, None, p)
    least = np.inf
    for first in np.linspace(0.8, 1.0, 41) * alpha:
        for second in np.linspace(0.01, 1.0, 200) * (alpha - loss(first)):
            reached = loss(first) + second
            # The tail follows: its supremum and its first leakage stay within alpha.
            tail = min(alpha - loss(reached), loss.budget_for(alpha))
            least = min(least, 1 / first + (1 - p) / second + (1 - p) ** 2 / p / tail)
    assert endless.expected_error(p) <= least * (1 + 1e-9)
    assert endless.expected_error(p) == pytest.approx(least, rel=1e-3)


def test_tends_to_algorithm_7_as_the_series_gets_longer():
    constant = tpl.allocate_by_upper_bound(1.0, BACKWARD, FORWARD)
    gains = []
    for p in (1e-2, 1e-4, 1e-6):
        endless = tpl.allocate_with_stopping(1.0, BACKWARD, FORWARD, p)
        gains.append(1 - p * constant * endless.expected_error(p))
        assert endless.tail == pytest.approx(constant, rel=1e-5)
    assert 0 < gains[2] < gains[1] / 50 < gains[0] / 2000


def test_a_side_that_is_not_known_and_no_correlation():
    assert tpl.allocate_with_stopping(0.7, None, None, 0.1).budgets(3) == pytest.approx([0.7] * 3, rel=1e-13)
    for sides in ((BACKWARD, None), (None, BACKWARD)):
        endless = tpl.allocate_with_stopping(1.0, *sides, 0.3)
        assert 1 - 1e-9 < tpl.temporal_privacy_leakage(endless.budgets(300), *sides).tpl.max() <= 1


def test_nearly_deterministic_correlation():
    P = tpl.PrivacyLossFunction(tpl.smoothed(tpl.strongest(5, seed=3), 1e-6))
    endless = tpl.allocate_with_stopping(1.0, P, P, 0.2)
    # All budgets together are nearly bounded by alpha, which budgets falling by sqrt(1 - p) spend best.
    ratios = endless.first[1:20] / endless.first[:19]
    assert ratios == pytest.approx(np.full(19, np.sqrt(0.8)), rel=0.01)
    for horizon in (1, 30, 1000):
        assert tpl.temporal_privacy_leakage(endless.budgets(horizon), P, P).tpl.max() <= 1


@pytest.mark.parametrize("sides", ["both", "backward", "forward"])
def test_derivatives_agree_with_differences(sides):
    rng = np.random.default_rng(8)
    backward, forward = (tpl.PrivacyLossFunction(random_matrix(rng, "dense", 4)) for _ in range(2))
    backward, forward = backward if sides != "forward" else None, forward if sides != "backward" else None
    for count in (5, 50):
        programme = _Endless(1.3, backward, forward, 0.1, 1, count)
        x = rng.uniform(-2.5, -1.5, programme.knots.size)
        slack, jacobian = programme.slack(x)
        gradient = programme.cost_of(x)[1]
        assert np.isfinite(slack).all()
        for k in range(x.size):
            step = 1e-6 * np.eye(x.size)[k]
            up, down = programme.slack(x + step)[0], programme.slack(x - step)[0]
            assert jacobian[:, k] == pytest.approx((up - down) / 2e-6, rel=1e-6, abs=1e-9)
            difference = (programme.cost_of(x + step)[0] - programme.cost_of(x - step)[0]) / 2e-6
            assert gradient[k] == pytest.approx(difference, rel=1e-6, abs=1e-12)


def test_the_expected_error_is_that_of_drawn_lengths():
    endless = EndlessBudgets(np.array([0.5, 0.25]), 0.1)
    lengths = np.random.default_rng(1).geometric(0.3, 20000)
    errors = np.array([(1 / endless.budgets(length)).sum() for length in range(1, lengths.max() + 1)])
    drawn = errors[lengths - 1]
    assert endless.expected_error(0.3) == pytest.approx(drawn.mean(), abs=4 * drawn.std() / np.sqrt(20000))
    assert endless.expected_error(0.5, "squared") == pytest.approx(4 + 0.5 * 16 + 0.25 / 0.5 * 100)


def test_budgets_of_short_and_long_series():
    endless = EndlessBudgets(np.array([0.5, 0.25]), 0.1)
    assert endless.budgets(1).tolist() == [0.5]
    assert endless.budgets(4).tolist() == [0.5, 0.25, 0.1, 0.1]
    with pytest.raises(ValueError, match="horizon must be at least 1"):
        endless.budgets(0)


@pytest.mark.parametrize("p", [0.0, 1.0, -0.1, np.nan])
def test_probabilities_that_cannot_be(p):
    with pytest.raises(ValueError, match="stopping_probability must lie .* 0 and 1, found .*; for a known"):
        tpl.allocate_with_stopping(1.0, BACKWARD, FORWARD, p)


def test_other_arguments_that_cannot_be():
    with pytest.raises(tpl.NoFiniteSupremumError, match="no finite supremum"):
        tpl.allocate_with_stopping(1.0, np.eye(2), FORWARD, 0.1)
    with pytest.raises(ValueError, match="error must be"):
        tpl.allocate_with_stopping(1.0, BACKWARD, FORWARD, 0.1, error="cubed")
    with pytest.raises(ValueError, match="alpha must be a finite level"):
        tpl.allocate_with_stopping(-1.0, BACKWARD, FORWARD, 0.1)
