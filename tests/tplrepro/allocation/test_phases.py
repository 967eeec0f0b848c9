"""Budgets under habits that follow the clock, and under matrices that differ at every step."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tplrepro as tpl
from tplrepro.allocation.phases import OnCycle
from tplrepro.leakage.temporal import loss_cycles

SELDOM = [[0.9999, 0.0001], [0.5, 0.5]]
MODERATE = [[0.8, 0.2], [0.1, 0.9]]


def commuter():
    """24 hours between home, office and shops; nights are nearly deterministic."""
    night = [[0.999, 0.0005, 0.0005], [0.5, 0.49, 0.01], [0.9, 0.01, 0.09]]
    morning = [[0.3, 0.65, 0.05], [0.02, 0.96, 0.02], [0.3, 0.5, 0.2]]
    day = [[0.85, 0.05, 0.1], [0.03, 0.92, 0.05], [0.3, 0.3, 0.4]]
    evening = [[0.9, 0.02, 0.08], [0.6, 0.25, 0.15], [0.7, 0.05, 0.25]]
    steps = [night] * 7 + [morning] * 2 + [day] * 8 + [evening] * 4 + [night] * 3
    return tpl.Cycle(steps, step="1h")


def random_cycle(seed, p, n=3, stay=0.3):
    steps = np.random.default_rng(seed).dirichlet(np.full(n, 0.7), (p, n))
    return tpl.Cycle((1.0 - stay) * steps + stay * np.eye(n))


def test_budgets_of_a_commuter_keep_the_level_for_ever():
    habits = commuter()
    backward = habits.reverse()
    budgets = tpl.allocate_by_upper_bound(1.0, backward, habits)
    assert budgets.shape == (24,)
    assert np.ptp(budgets) == 0.0
    suprema = tpl.leakage_suprema(budgets, backward, habits)
    assert 1.0 - 1e-10 < suprema.max() <= 1.0
    series = np.resize(budgets, 24 * 30)
    assert tpl.temporal_privacy_leakage(series, backward, habits).max() <= 1.0


@pytest.mark.parametrize(("still", "hours", "moving"), [(0.98, 6, 0.85), (0.95, 4, 0.75)])
def test_one_matrix_for_all_hours_promises_what_does_not_hold(still, hours, moving):
    stay = np.where(np.arange(24) < hours, still, moving)
    habits = tpl.Cycle([[[x, 1 - x], [1 - x, x]] for x in stay], step="1h")
    pooled = tpl.TransitionMatrix(sum(step.toarray() for step in habits) / 24)
    budget = tpl.allocate_by_upper_bound(1.0, pooled, pooled)
    # The exact worst mechanism, not only the bound, leaks more.
    assert tpl.exact_leakage(budget, list(habits) * 2, list(habits) * 2, horizon=49).max() > 1.1
    budgets = tpl.allocate_by_upper_bound(1.0, habits, habits)
    exact = tpl.exact_leakage(np.resize(budgets, 49), list(habits) * 2, list(habits) * 2)
    assert 0.99 < exact.max() <= 1.0


def test_less_at_night_leaves_more_by_day():
    habits = commuter()
    shape = np.where(np.arange(24) < 7, 0.2, 1.0)
    budgets = tpl.allocate_by_upper_bound(1.0, habits.reverse(), habits, shape=shape)
    np.testing.assert_allclose(budgets / budgets.max(), shape, rtol=1e-12)
    assert budgets.max() > tpl.allocate_by_upper_bound(1.0, habits.reverse(), habits).max()
    suprema = tpl.leakage_suprema(budgets, habits.reverse(), habits)
    assert 1.0 - 1e-10 < suprema.max() <= 1.0
    none = tpl.allocate_by_upper_bound(1.0, habits.reverse(), habits, shape=np.floor(shape))
    assert (none[:7] == 0.0).all()
    assert none.max() > budgets.max()


def test_the_shape_of_least_error_has_less():
    habits = commuter()
    for backward in (habits.reverse(), None):
        equal = tpl.allocate_by_upper_bound(1.0, backward, habits)
        least = tpl.allocate_by_upper_bound(1.0, backward, habits, shape="least error")
        assert (1 / least).sum() < 0.99 * (1 / equal).sum()
        assert tpl.leakage_suprema(least, backward, habits).max() <= 1.0


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), p=st.integers(2, 5))
def test_derivatives_of_suprema(seed, p):
    habits = random_cycle(seed, p)
    problem = OnCycle(1.0, loss_cycles(habits.reverse(), habits))
    budgets = np.random.default_rng(seed).uniform(0.05, 0.2, p)
    _, derivative = problem.tpl(budgets, np.eye(p))
    for phase in range(p):
        change = 1e-6 * (np.arange(p) == phase)
        above, _ = problem.tpl(budgets + change, np.eye(p))
        below, _ = problem.tpl(budgets - change, np.eye(p))
        np.testing.assert_allclose(derivative[:, phase], (above - below) / 2e-6, rtol=1e-4)


@pytest.mark.parametrize("p", [1, 4])
def test_the_error_of_budgets_alpha_is_the_unit_of_costs(p):
    habits = random_cycle(0, p)
    problem = OnCycle(2.0, loss_cycles(None, habits))
    assert problem.cost(np.full(p, 2.0)) == pytest.approx(1.0, rel=1e-12)
    assert problem.cost(np.full(p, 0.5)) == pytest.approx(4.0, rel=1e-12)


def test_a_start_outside_the_habit_needs_smaller_budgets():
    forward = tpl.Cycle(SELDOM)
    known = forward.reverse(start=[0.5, 0.5])
    exact = [*known.first, *[known.first[-1]] * 20][:39]

    def leakage(budget):
        return tpl.exact_leakage(budget, exact, SELDOM, horizon=40).max()

    assert leakage(tpl.allocate_by_upper_bound(1.0, forward.reverse(), forward)) > 2.0
    for start in ([0.5, 0.5], "any"):
        budget = tpl.allocate_by_upper_bound(1.0, forward.reverse(start=start), forward)
        assert isinstance(budget, float)
        assert leakage(budget) <= 1.0


def test_a_cycle_of_one_has_the_budget_of_its_matrix():
    P = tpl.TransitionMatrix(MODERATE)
    budget = tpl.allocate_by_upper_bound(1.0, P.reverse(), P)
    assert tpl.allocate_by_upper_bound(1.0, tpl.Cycle(P).reverse(), tpl.Cycle(P)) == budget
    (of_shape,) = tpl.allocate_by_upper_bound(1.0, P.reverse(), P, shape=[3.0])
    assert of_shape == pytest.approx(budget, rel=1e-12)
    repeated = tpl.allocate_by_upper_bound(1.0, tpl.Cycle([P.reverse()] * 3), P)
    assert repeated == pytest.approx([budget] * 3, rel=1e-12)


def test_a_first_step_in_which_hardly_anybody_moves_counts_for_a_cycle_of_one():
    mixing = [[0.5, 0.5], [0.49, 0.51]]
    still = [[0.999, 0.001], [0.001, 0.999]]
    backward = tpl.Cycle([mixing], first=[still])
    budget = tpl.allocate_by_upper_bound(1.0, backward, None)
    assert 1.0 - 1e-9 < tpl.leakage_suprema(budget, backward, None).max() <= 1.0
    assert budget < 0.51 < 0.9 < tpl.allocate_by_upper_bound(1.0, tpl.Cycle([mixing]), None)


def test_tiny_levels_have_budgets_in_proportion():
    """L is nearly linear there."""
    habits = random_cycle(3, 4)
    of_one, of_other = (
        tpl.allocate_by_upper_bound(alpha, habits.reverse(), habits) / alpha
        for alpha in (1e-7, 1e-9)
    )
    assert of_one == pytest.approx(of_other, rel=1e-6)


def test_what_has_no_supremum_is_said():
    still = tpl.Cycle([np.eye(2)] * 2, ["night", "day"])
    message = "the backward leakage has no finite supremum .* at phase 'night', and others"
    with pytest.raises(tpl.NoFiniteSupremumError, match=message):
        tpl.allocate_by_upper_bound(1.0, still, None)
    nearly = tpl.Cycle([[[1 - 1e-16, 1e-16], [1e-16, 1 - 1e-16]]] * 2)
    with pytest.raises(tpl.NoFiniteSupremumError, match="as good as deterministic"):
        tpl.allocate_by_upper_bound(1.0, nearly, None)
    with pytest.raises(ValueError, match=r"shape must have shape \(2,\), found \(3,\)"):
        tpl.allocate_by_upper_bound(1.0, None, nearly, shape=[1, 2, 3])
    with pytest.raises(ValueError, match="shape must be one of 'least error', found 'best'"):
        tpl.allocate_by_upper_bound(1.0, None, tpl.Cycle([MODERATE] * 2), shape="best")
    with pytest.raises(ValueError, match="found a list of 2 matrices; give one matrix, or a Cycle"):
        tpl.allocate_by_upper_bound(1.0, [MODERATE] * 2, None)


def test_runs_in_which_nobody_moves_are_planned_jointly():
    steps = [np.eye(2), MODERATE]
    budgets = tpl.allocate_by_quantification(1.0, steps, steps, horizon=3)
    assert (budgets > 0.0).all()
    assert budgets[0] == pytest.approx(budgets[1])
    leakage = tpl.temporal_privacy_leakage(budgets, steps, steps)
    np.testing.assert_allclose(leakage.tpl, 1.0, rtol=1e-12)
    # The budgets of the second reader of this theorem have the same leakage.
    other = tpl.temporal_privacy_leakage([0.3, 0.2846, 0.5846], steps, steps)
    np.testing.assert_allclose(other.tpl, 1.0, atol=1e-3)
    long = [MODERATE, *[np.eye(2)] * 4, MODERATE, np.eye(2)]
    budgets = tpl.allocate_by_quantification(1.0, long, long, horizon=8)
    np.testing.assert_allclose(tpl.temporal_privacy_leakage(budgets, long, long).tpl, 1, rtol=1e-12)
    np.testing.assert_allclose(budgets[1:6], budgets[1], rtol=1e-9)


def test_the_first_time_without_a_budget_is_named():
    """After a step in which nobody moves nothing is left for the last time."""
    backward = [MODERATE, MODERATE, np.eye(2)]
    with pytest.warns(UserWarning, match="that of time 3, counted from 0, would have"):
        tpl.allocate_by_quantification(1.0, backward, [MODERATE] * 3, 4)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    horizon=st.integers(2, 9),
    alpha=st.sampled_from([1e-3, 0.3, 1.0, 5.0]),
)
def test_lists_of_matrices_leak_alpha_everywhere_or_say_why_not(seed, horizon, alpha):
    rng = np.random.default_rng(seed)
    steps = list(random_cycle(seed, horizon - 1, stay=rng.uniform(0, 0.5)))
    steps = [np.eye(3) if rng.random() < 0.2 else step for step in steps]
    other = list(random_cycle(seed + 1, horizon - 1, stay=rng.uniform(0, 0.5)))
    other = [np.eye(3) if rng.random() < 0.1 else step for step in other]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        budgets = tpl.allocate_by_quantification(alpha, steps, other, horizon)
    told = [warning for warning in caught if "compiling" not in str(warning.message)]
    assert (budgets > 0.0).all()
    tpl_of_times = tpl.temporal_privacy_leakage(budgets, steps, other).tpl
    assert tpl_of_times.max() <= alpha
    if not told:
        np.testing.assert_allclose(tpl_of_times, alpha, rtol=1e-11)
    for warning in told:
        assert "no budgets have a TPL of alpha at every time: that of time" in str(warning.message)


def test_budgets_of_a_cycle_are_periodic_inside():
    habits = tpl.Cycle([MODERATE, [[0.7, 0.3], [0.25, 0.75]]])
    budgets = tpl.allocate_by_quantification(1.0, habits.reverse(), habits, horizon=200)
    np.testing.assert_allclose(budgets[1:-3], budgets[3:-1], rtol=1e-12)
    leakage = tpl.temporal_privacy_leakage(budgets, habits.reverse(), habits)
    np.testing.assert_allclose(leakage.tpl, 1.0, rtol=1e-12)
    assert leakage.max() <= 1.0


@pytest.mark.parametrize(
    ("horizon", "name"),
    [(30, "allocate_optimally"), (240, 'allocate_by_upper_bound with shape="least error"')],
)
def test_where_alpha_everywhere_is_impossible_the_best_plan_is_returned(horizon, name):
    habits = commuter()
    backward = habits.reverse()
    message = f"that of time [0-9]+, counted from 0, would .* those of {name}, within alpha"
    with pytest.warns(UserWarning, match=message):
        budgets = tpl.allocate_by_quantification(1.0, backward, habits, horizon)
    assert tpl.temporal_privacy_leakage(budgets, backward, habits).max() <= 1.0
    assert (1 / budgets).sum() < 0.5 * horizon**2
    if horizon == 240:
        with pytest.warns(UserWarning, match="those of equal releases, within alpha"):
            equal = tpl.allocate_by_quantification(1.0, backward.over(horizon - 1), habits, horizon)
        assert np.ptp(equal) == 0.0


@pytest.mark.parametrize("start", ["habit", "any", [0.2, 0.3, 0.5]])
def test_optimal_budgets_of_a_cycle_are_not_worse_than_published_ones(start):
    habits = random_cycle(4, 3)
    backward = habits.reverse(start=start)
    budgets = tpl.allocate_optimally(1.0, backward, habits, 20)
    assert tpl.temporal_privacy_leakage(budgets, backward, habits).max() <= 1.0
    of_phases = tpl.allocate_by_upper_bound(1.0, backward, habits)
    assert (1 / budgets).sum() < (1 / np.resize(of_phases, 20)).sum()
    assert (1 / budgets).sum() < 20 * 20


def test_a_cycle_warns_where_equal_leakage_is_impossible_over_its_first_step_alone():
    """It was taken for a cycle of one, of which nobody is warned."""
    exact = [[0.0, 1.0], [1.0, 0.0]]
    habits = tpl.Cycle([exact, MODERATE])
    back = tpl.Cycle([MODERATE, MODERATE])
    with pytest.warns(UserWarning, match="no budgets have a TPL of alpha at every time: that of"):
        budgets = tpl.allocate_by_quantification(1.0, back, habits, 2)
    tpls = tpl.temporal_privacy_leakage(budgets, back, habits).tpl
    assert tpls.max() <= 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tpl.allocate_by_quantification(1.0, tpl.Cycle([MODERATE] * 2), tpl.Cycle([exact] * 2), 2)


def test_a_step_near_the_habit_that_leaks_tiny_budgets_in_full_leaves_equal_leakage_possible():
    """Its loss is at least twice the distance from the habit, but never more than the leakage."""
    rows = [[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]  # without a common state
    habits = tpl.Cycle([[*rows, [1 / 3, 1 / 3, 1 / 3]], [*rows, [0.4, 0.3, 0.3]]])
    back = tpl.Cycle(list(habits.reverse([0.2, 0.3, 0.5])))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        budgets = tpl.allocate_by_quantification(1e-4, back, habits, 4)
    tpls = tpl.temporal_privacy_leakage(budgets, back, habits).tpl
    np.testing.assert_allclose(tpls, 1e-4, rtol=1e-12)
    assert tpls.max() <= 1e-4
