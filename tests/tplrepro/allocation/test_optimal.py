"""Optimal budgets against exhaustive search, a global optimiser and closed forms, and never above
alpha."""

from contextlib import suppress
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import differential_evolution

import tplrepro as tpl
from tests.oracles import brute_force_loss, recursion
from tests.tplrepro.allocation.problems import as_functions, assert_derivatives, problems
from tests.tplrepro.leakage.matrices import BACKWARD, FORWARD, matrices, random_matrix
from tplrepro.allocation.minimisation import LeastError, Recursion, _ProgrammeOnKnots
from tplrepro.allocation.optimal import (
    MAX_KNOTS,
    OnTimeline,
    _knots_where_unequal,
    knots_at_the_ends,
)
from tplrepro.leakage.near_habit import NearHabitLoss
from tplrepro.leakage.timeline import Timeline


def absolute(budgets, weights=1.0):
    """The total error of a series, or of each of many, budgets (..., T)."""
    return (weights / budgets).sum(axis=-1)


WALK = np.array(
    [[0.8, 0.2, 0, 0, 0], [1, 4, 1, 0, 0], [0, 1, 4, 1, 0], [0, 0, 1, 4, 1], [0, 0, 0, 0.2, 0.8]]
)
WALK /= WALK.sum(axis=1, keepdims=True)


def plain_tpl(backward, forward):
    """The TPL of many series at once, budgets (..., T), by the definition; a side is a matrix, list
    or None."""
    losses = [
        [partial(brute_force_loss, P) for P in side]
        if isinstance(side, list)
        else partial(brute_force_loss, side)
        for side in (backward, forward)
    ]
    return lambda budgets: np.stack(
        recursion(list(np.moveaxis(budgets, -1, 0)), *losses)[2], axis=-1
    )


def scaled_to_level(logs, alpha, tpl_of):
    """Proportions, given by their logarithms against the first, (cases, T - 1), each scaled up to
    alpha."""
    shapes = np.exp(np.concatenate([np.zeros((len(logs), 1)), logs], axis=1))
    shapes /= shapes.max(axis=1, keepdims=True)
    factor, top = np.zeros(len(logs)), np.full(len(logs), float(alpha))
    for _ in range(45):
        middle = (factor + top) / 2
        fits = tpl_of(middle[:, None] * shapes).max(axis=-1) <= alpha
        factor, top = np.where(fits, middle, factor), np.where(fits, top, middle)
    return np.maximum(factor, 1e-300)[:, None] * shapes


def least_cost_by_search(alpha, tpl_of, cost, horizon, zooms=7, points=17):
    """The least cost on a grid of proportions refined around its best point, each scaled up to
    alpha."""
    low, high = np.full(horizon - 1, -5.0), np.full(horizon - 1, 5.0)
    best = np.inf
    for _ in range(zooms):
        axes = [np.linspace(a, b, points) for a, b in zip(low, high, strict=True)]
        logs = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, horizon - 1)
        costs = cost(scaled_to_level(logs, alpha, tpl_of))
        at = int(np.argmin(costs))
        best = min(best, float(costs[at]))
        width = (high - low) * 1.5 / (points - 1)
        low, high = logs[at] - width, logs[at] + width
    return best


GRID_SIDES = matrices(3, ("dense", "zeros", "smoothed", "sharp", "sparse", None))
WEIGHTS = st.sampled_from([2, 2, 3]).flatmap(
    lambda horizon: st.tuples(*[st.floats(0.2, 3.0)] * horizon)
)


@given(st.floats(-1, 1.1), GRID_SIDES, GRID_SIDES, WEIGHTS.map(np.array), st.sampled_from([1, 2]))
@settings(max_examples=12)
def test_no_grid_search_does_better(exponent, backward, forward, weights, power):
    alpha, error = 10.0**exponent, ["absolute", "squared"][power - 1]

    def cost(budgets):
        return absolute(budgets**power, weights)

    found = tpl.allocate_optimally(
        alpha, backward, forward, weights.size, weights=weights, error=error
    )
    searched = least_cost_by_search(alpha, plain_tpl(backward, forward), cost, weights.size)
    assert cost(found) <= searched * (1 + 1e-9)
    assert searched <= cost(found) * (1 + 1e-2)  # the search itself is sound


@pytest.mark.parametrize(("alpha", "seed"), [(1.0, 1), (12.0, 2)])
def test_a_global_optimiser_does_not_do_better_for_five_releases(alpha, seed):
    rng = np.random.default_rng(seed)
    sharp = random_matrix(rng, "sharp", 3), [[0.8, 0.2, 0], [1 / 6, 2 / 3, 1 / 6], [0, 0.2, 0.8]]
    sides = (BACKWARD, FORWARD) if alpha == 1 else sharp

    def cost(logs):
        return absolute(scaled_to_level(logs.T, alpha, plain_tpl(*map(np.array, sides))))

    options = {"maxiter": 50, "popsize": 10, "tol": 0, "polish": False, "updating": "deferred"}
    found = differential_evolution(cost, [(-3, 3)] * 4, seed=seed, vectorized=True, **options)
    optimal = absolute(tpl.allocate_optimally(alpha, *sides, 5))
    assert optimal <= found.fun * (1 + 1e-9)
    assert found.fun <= optimal * (1 + 1e-2)


@given(problems(), st.sampled_from([1, 2, 3, 5, 8, 30]), st.integers(0, 2**32 - 1))
@settings(max_examples=8)
def test_optimal_budgets_reach_alpha_and_err_no_more_than_the_published_ones(
    problem, horizon, seed
):
    alpha, backward, forward = problem
    known = as_functions(backward, forward)
    budgets = tpl.allocate_optimally(alpha, *known, horizon)
    assert alpha * (1 - 1e-9) < tpl.temporal_privacy_leakage(budgets, *known).tpl.max() <= alpha
    cost = absolute(budgets)
    assert cost <= absolute(tpl.allocate_by_quantification(alpha, *known, horizon))
    assert cost <= horizon**2 / alpha * (1 + 1e-12)
    with suppress(tpl.NoFiniteSupremumError):
        assert cost <= horizon / tpl.allocate_by_upper_bound(alpha, *known)
    # A change of the proportions that still fits does not improve the total to first order.
    for changed in budgets * np.exp(
        1e-4 * np.random.default_rng(seed).standard_normal((5, horizon))
    ):
        while tpl.temporal_privacy_leakage(changed, *known).tpl.max() > alpha:
            changed *= 1 - 1e-7
        assert cost <= absolute(changed) * (1 + 1e-6)


@pytest.mark.parametrize(("error", "exponent"), [("absolute", 1 / 2), ("squared", 1 / 3)])
def test_under_the_strongest_correlation_the_budgets_share_alpha(error, exponent):
    # All budgets add up to alpha; Lagrange: epsilon_t proportional to w_t^(1 / (1 + power)).
    weights = np.array([1.0, 8.0, 27.0, 0.5, 3.0])
    budgets = tpl.allocate_optimally(2.0, np.eye(3), np.eye(3), 5, weights=weights, error=error)
    expected = 2.0 * weights**exponent / (weights**exponent).sum()
    assert budgets == pytest.approx(expected, rel=1e-5)
    equal = tpl.allocate_optimally(2.0, np.eye(3), None, 200, error=error)
    assert equal == pytest.approx(np.full(200, 0.01), rel=1e-5)


@pytest.mark.parametrize("alpha", [0.3, 1.0, 4.0])
def test_leakage_between_the_releases_of_a_subset_is_within_alpha(alpha):
    P, times = WALK, [0, 4]
    budgets = tpl.allocate_optimally(alpha, P, P, 5, times=times)
    leakage = tpl.leakage_at_all_times(budgets, P, P, times=times, horizon=5).tpl
    assert alpha * (1 - 1e-9) < leakage.max() <= alpha
    assert leakage.argmax() not in times
    losses = [
        lambda b: b,
        *(partial(brute_force_loss, np.linalg.matrix_power(P, gap)) for gap in range(1, 5)),
    ]

    def leakages(b):
        return np.stack(
            [losses[gap](b[..., 0]) + losses[4 - gap](b[..., 1]) for gap in range(5)], axis=-1
        )

    searched = least_cost_by_search(alpha, leakages, absolute, 2)
    assert absolute(budgets) == pytest.approx(searched, rel=1e-6)


@given(problems(), st.integers(0, 2**32 - 1))
@settings(max_examples=15)
def test_subsets_never_above_alpha_and_never_worse_than_all_releases(problem, seed):
    alpha, backward, forward = problem
    rng = np.random.default_rng(seed)
    horizon = int(rng.integers(2, 9))
    times = np.sort(rng.choice(horizon, int(rng.integers(1, horizon + 1)), replace=False))
    budgets = tpl.allocate_optimally(alpha, backward, forward, horizon, times=times)
    assert (
        tpl.leakage_at_all_times(budgets, backward, forward, times=times, horizon=horizon).tpl.max()
        <= alpha
    )
    mask = np.isin(np.arange(horizon), times)
    assert (
        budgets.tolist()
        == tpl.allocate_optimally(alpha, backward, forward, horizon, times=mask).tolist()
    )
    assert absolute(budgets) <= absolute(
        tpl.allocate_by_quantification(alpha, backward, forward, horizon)[times]
    )
    assert absolute(budgets) <= times.size**2 / alpha * (1 + 1e-12)


def test_a_list_of_matrices_is_taken_step_by_step():
    once = tpl.allocate_optimally(1.0, BACKWARD, FORWARD, 5)
    listed = tpl.allocate_optimally(1.0, [BACKWARD.copy() for _ in range(4)], [FORWARD] * 4, 5)
    assert listed == pytest.approx(once, rel=1e-6)
    rng = np.random.default_rng(3)
    backward = [random_matrix(rng, "dense", 3) for _ in range(2)]
    forward = [None, random_matrix(rng, "dense", 3)]
    budgets = tpl.allocate_optimally(1.0, backward, forward, 3)
    assert 1 - 1e-9 < tpl.temporal_privacy_leakage(budgets, backward, forward).tpl.max() <= 1
    searched = least_cost_by_search(1.0, plain_tpl(backward, forward), absolute, 3)
    assert absolute(budgets) == pytest.approx(searched, rel=1e-4)


@pytest.mark.parametrize("n_weak", [1, 3])
def test_steps_of_one_side_alone_may_differ(n_weak):
    """Budgets for the first step at all times would leak 1.5."""
    weak, strong = [[0.5, 0.5], [0.45, 0.55]], [[0.95, 0.05], [0.05, 0.95]]
    steps = [weak] * n_weak + [strong] * (4 - n_weak)
    for sides in ((None, steps), (steps, None), (weak, steps), (steps, weak)):
        budgets = tpl.allocate_optimally(1.0, *sides, 5)
        assert 1 - 1e-9 < tpl.temporal_privacy_leakage(budgets, *sides).tpl.max() <= 1.0


@pytest.mark.parametrize("s", [0.05, 0.001])
def test_knots_lose_nothing_against_all_unknowns(s):
    L = tpl.PrivacyLossFunction(tpl.smoothed(tpl.strongest(10, seed=2), s))
    budgets = tpl.allocate_optimally(2.0, L, L, 120)
    # too unequal for knots
    everywhere = tpl.allocate_optimally(2.0, L, L, 120, weights=1 + 1e-12 * np.arange(120))
    assert absolute(budgets) <= absolute(everywhere) * (1 + 1e-5)


def test_knots_grow_apart_from_both_ends_inwards():
    knots = knots_at_the_ends(120, 5, 3, 1.5)
    from_the_first = [0, 1, 2, 3, 4, 6, 8, 11, 16, 24, 35, 52]
    from_the_last = [69, 86, 97, 105, 110, 113, 115, 117, 118, 119]
    assert knots.tolist() == sorted([*from_the_first, 60, *from_the_last])
    assert knots_at_the_ends(20, 3, 3, 30.0).tolist() == [0, 1, 2, 10, 17, 18, 19]
    assert knots_at_the_ends(7, 3, 4, 1.5).tolist() == [*range(7)]


def test_finer_knots_are_all_budgets_that_differ_and_some_more_up_to_a_number():
    budgets = np.full(200, 0.3)
    budgets[:7] = np.linspace(0.6, 0.4, 7)
    budgets[-5:] = np.linspace(0.4, 0.6, 5)
    expected = knots_at_the_ends(200, 7 + 4, 5 + 4, 1.4)
    assert _knots_where_unequal(budgets).tolist() == expected.tolist()
    budgets[:40] = np.linspace(0.6, 0.4, 40)
    budgets[-40:] = np.linspace(0.4, 0.6, 40)
    assert 60 < _knots_where_unequal(budgets).size <= MAX_KNOTS


@pytest.mark.parametrize("power", [1, 2])
def test_unknowns_are_bounded_by_what_the_error_of_the_start_allows(power):
    """Less would be one release alone with as large an error."""
    weights = np.array([0.7, 0.2, 0.1])
    problem = LeastError(2.0, weights, power)
    start = np.array([0.3, 0.5, 0.4])
    programme = _ProgrammeOnKnots(problem, start, np.arange(3))
    least = 2.0 * (weights / problem.cost(start)) ** (1.0 / power)
    assert (2.0 * np.exp(programme.lower) < least).all()
    assert (2.0 * np.exp(programme.lower) > 0.9 * least).all()
    assert programme.budgets(programme.start) == pytest.approx(start)
    assert programme.scaled_cost(programme.start)[0] == pytest.approx(1.0)


def test_a_recursion_without_tables_has_the_derivatives_of_its_known_steps():
    loss = NearHabitLoss(tpl.PrivacyLossFunction(BACKWARD), tpl.PriorFreeLoss(BACKWARD), 0.01)
    ascending = Recursion([loss, None, loss])
    assert not ascending.has_tables
    budgets = np.array([0.3, 0.5, 0.2, 0.4])
    leakages, derivatives = ascending.ascend(budgets, np.eye(4))
    assert leakages[[1, 3]] == pytest.approx([loss.at(0.3) + 0.5, loss.at(0.2) + 0.4])
    first, last = loss.slope_at(0.3), loss.slope_at(0.2)
    expected = [[1, 0, 0, 0], [first, 1, 0, 0], [0, 0, 1, 0], [0, 0, last, 1]]
    np.testing.assert_allclose(derivatives, expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize("times", [None, [0, 2, 3, 8], [1, 5, 6]])
def test_derivatives_agree_with_differences(times):
    rng = np.random.default_rng(8)
    backward, forward = (random_matrix(rng, "dense", 4) for _ in range(2))
    timeline = Timeline.of(backward, forward, 9, times)
    programme = OnTimeline(1.3, timeline, np.full(timeline.times.size, 1 / timeline.times.size), 1)
    budgets = rng.uniform(0.1, 0.8, timeline.times.size)
    assert_derivatives(programme, budgets, rng)
    tpl_there = tpl.leakage_at_all_times(
        budgets, backward, forward, times=timeline.times, horizon=9
    ).tpl
    inside = np.arange(timeline.times[0], timeline.times[-1] + 1)
    found = programme.tpl(budgets, np.empty((budgets.size, 0)))[0]
    assert np.sort(found) == pytest.approx(np.sort(tpl_there[inside]), abs=1e-13)
