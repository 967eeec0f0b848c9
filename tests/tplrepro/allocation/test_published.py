"""Budgets against bisection in high precision, and the promise that the leakage never exceeds
alpha."""

from functools import partial

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings

import tplfrontier as tf
import tplrepro as tpl
from tests.oracles import DIGITS, exact_budgets, exact_loss, exact_supremum, exact_tpl
from tests.tplrepro.allocation.problems import problems
from tests.tplrepro.leakage.matrices import FORWARD


@given(problems())
@settings(max_examples=20)
def test_budgets_are_the_largest_ones_up_to_the_safety_margin(problem):
    alpha, backward, forward = problem
    margin = 1e-13 * alpha
    with mpmath.workdps(DIGITS):
        loss_b, loss_f = exact_loss(backward), exact_loss(forward)
        a_b, a_f, between = exact_budgets(alpha, loss_b, loss_f)
        try:
            constant = tpl.allocate_by_upper_bound(alpha, backward, forward)
        except tpl.NoFiniteSupremumError:
            assert between < margin  # it is said only where there is none
            return
        first, middle, last = tpl.allocate_by_quantification(alpha, backward, forward, horizon=3)
        assert between - margin <= constant < between
        suprema = [exact_supremum(loss, mpmath.mpf(constant), alpha) for loss in (loss_b, loss_f)]
        # the bisection's own error
        assert sum(suprema) - constant <= alpha * (1 + mpmath.mpf(10) ** -38)
        assert between - margin <= middle < between
        # a^B itself is ill-conditioned where both sides are nearly deterministic; its equations are
        # not.
        assert alpha - margin <= loss_b(mpmath.mpf(first)) + last <= alpha
        assert alpha - margin <= loss_f(mpmath.mpf(last)) + first <= alpha
        if max(loss_b(a_b) / a_b, loss_f(a_f) / a_f) < 0.99:
            assert first == pytest.approx(float(a_b), rel=1e-10)
            assert last == pytest.approx(float(a_f), rel=1e-10)


@pytest.mark.parametrize("alpha", [1e-300, 1e-12, 690.0, 2000.0])
def test_budgets_are_safe_and_tight_near_determinism_and_at_the_ends_of_the_double_range(alpha):
    P = tpl.smoothed(tpl.strongest(5, seed=3), 1e-6)
    loss = exact_loss(P.probabilities)
    with mpmath.workdps(DIGITS):
        *_, between = exact_budgets(alpha, loss, loss)
        assert between - 1e-13 * alpha <= tpl.allocate_by_upper_bound(alpha, P, P) < between
    budgets = tpl.allocate_by_quantification(alpha, P, P, 3)
    assert alpha * (1 - 1e-12) < max(exact_tpl(budgets, loss, loss)) <= alpha


@pytest.mark.parametrize(
    "sides", [(None, None), ([[0.3, 0.7]] * 2, None), ([[0.3, 0.7]] * 2, [[0.3, 0.7]] * 2)]
)
def test_without_correlation_alpha_is_spent_at_every_time(sides):
    assert tpl.allocate_optimally(0.7, *sides, 4).tolist() == [0.7] * 4
    assert tpl.allocate_by_upper_bound(0.7, *sides) == pytest.approx(0.7, rel=1e-13)
    assert tpl.allocate_by_quantification(0.7, *sides, horizon=1).tolist() == [0.7]
    assert tpl.allocate_by_quantification(0.7, *sides, 3) == pytest.approx(
        np.full(3, 0.7), rel=1e-13
    )
    assert tf.allocate_with_stopping(0.7, *sides, 0.1).budgets(3) == pytest.approx(
        np.full(3, 0.7), rel=1e-13
    )


HOME = tpl.TransitionMatrix(np.eye(2), states=["home", "office"])


@pytest.mark.parametrize(
    ("sides", "named"),
    [((HOME, None), "backward"), ((None, HOME), "forward"), ((HOME, FORWARD), "backward")],
)
def test_deterministic_correlation_has_no_finite_supremum(sides, named):
    told = (
        f"the {named} leakage has no finite supremum"
        ".*states ('home' and 'office'|'office' and 'home')"
        ".*no common neighbour"
        ".*smooth the matrix, or use allocate_by_quantification with a finite horizon"
    )
    for allocate in (
        tpl.allocate_by_upper_bound,
        partial(tf.allocate_with_stopping, stopping_probability=0.1),
    ):
        with pytest.raises(tpl.NoFiniteSupremumError, match=told):
            allocate(1.0, *sides)
    assert issubclass(tpl.NoFiniteSupremumError, ValueError)
    for horizon in (2, 3, 200):
        assert tpl.allocate_by_quantification(1.0, HOME, HOME, horizon) == pytest.approx(
            [1 / horizon] * horizon
        )


def test_correlation_as_good_as_deterministic_has_no_bound_for_any_horizon():
    P = [[1 - 1e-16, 1e-16], [1e-16, 1 - 1e-16]]
    with pytest.raises(
        tpl.NoFiniteSupremumError, match="above the rounding error .* as good as deterministic"
    ):
        tpl.allocate_by_upper_bound(1.0, P, P)
    assert tpl.allocate_by_quantification(1.0, P, P, horizon=5) == pytest.approx([0.2] * 5)


def test_no_ever_smaller_budgets_are_tried_where_correlation_is_as_good_as_deterministic(
    monkeypatch,
):
    tried = []
    supremum = tpl.PrivacyLossFunction._supremum

    def counted(loss, epsilon):
        tried.append(epsilon)
        return supremum(loss, epsilon)

    monkeypatch.setattr(tpl.PrivacyLossFunction, "_supremum", counted)
    P = [[1 - 1e-16, 1e-16], [1e-16, 1 - 1e-16]]
    with pytest.raises(tpl.NoFiniteSupremumError, match="above the rounding error"):
        tpl.allocate_by_upper_bound(1.0, P, P)
    assert len(tried) < 10


def test_few_suprema_are_rounded_up_for_the_budget_of_every_release(monkeypatch):
    rounded = []
    least_level = tpl.PrivacyLossFunction._least_level

    def counted(loss, epsilon, level):
        rounded.append(epsilon)
        return least_level(loss, epsilon, level)

    monkeypatch.setattr(tpl.PrivacyLossFunction, "_least_level", counted)
    tpl.allocate_by_upper_bound(1.0, FORWARD, FORWARD)
    assert len(rounded) < 40  # bisection takes 106
