"""Leakage at time points with and without a release; tests/test_attacks.py has an oracle for any of
them."""

from cProfile import Profile

import numpy as np
import pytest
import scipy.sparse

import tplrepro as tpl
from tests.oracles import brute_force_loss, extended_tpl
from tests.tplrepro.leakage.matrices import BACKWARD, FORWARD, random_matrix
from tests.tplrepro.leakage.test_filter_of_cycles import true_steps

FORWARD3 = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.3, 0.6]]


def test_a_list_multiplies_in_the_order_of_time():
    rng = np.random.default_rng(5)
    forward = tpl.TransitionMatrix(random_matrix(rng, "dense", 3))
    start = [0.5, 0.3, 0.2]
    backward = [
        forward.reverse(start @ np.linalg.matrix_power(forward.probabilities, k)) for k in range(3)
    ]
    # The reverse of three steps at once is the product of the three reversed steps, the last one
    # first.
    three_steps = tpl.TransitionMatrix(
        np.linalg.matrix_power(forward.probabilities, 3), normalize=True
    )
    expected = tpl.PrivacyLossFunction(three_steps.reverse(start))(0.7)
    leakage = tpl.leakage_at_all_times([0.7, 0.1], backward, None, times=[0, 3], horizon=4)
    assert leakage.bpl[3] - 0.1 == pytest.approx(expected, rel=1e-10)
    matrices = [random_matrix(rng, "dense", 3) for _ in range(3)]
    leakage = tpl.leakage_at_all_times([0.1, 0.7], None, matrices, times=[0, 3], horizon=4)
    assert leakage.fpl[0] - 0.1 == pytest.approx(
        brute_force_loss(np.linalg.multi_dot(matrices), 0.7), rel=1e-10
    )
    leakage = tpl.leakage_at_all_times(
        [0.7, 0.1], [BACKWARD, None, BACKWARD], None, times=[0, 3], horizon=4
    )
    assert leakage.bpl[1] > 0  # a step that is not known breaks the chain
    assert leakage.bpl[2:].tolist() == [0, 0.1]


def test_sparse_matrices_leak_as_dense_ones_up_to_a_number_of_states(monkeypatch):
    steps = scipy.sparse.diags_array([np.full(39, 0.5), np.full(39, 0.4)], offsets=[1, -1])
    sparse = tpl.TransitionMatrix(
        steps.tocsr(), background=(1 - steps.sum(axis=1)) / (40 - np.diff(steps.tocsr().indptr))
    )
    dense = tpl.TransitionMatrix(sparse.toarray())
    expected = tpl.leakage_at_all_times([0.4, 0.6], dense, dense, times=[1, 4], horizon=6).tpl
    found = tpl.leakage_at_all_times([0.4, 0.6], sparse, sparse, times=[1, 4], horizon=6).tpl
    assert found == pytest.approx(expected, rel=1e-12)
    monkeypatch.setattr("tplrepro.leakage.loss_over_steps.MAX_STATES", 3)
    with pytest.raises(
        ValueError, match="a sparse one may have 3 states, found 40; release every time point"
    ):
        tpl.leakage_at_all_times([0.4, 0.6], sparse, None, times=[0, 2], horizon=3)
    with pytest.raises(ValueError, match="release every time point"):
        tpl.TemporalAccountant(sparse, None).skip()
    assert tpl.leakage_at_all_times([0.4, 0.6], sparse, None, times=[0, 1], horizon=2).tpl.size == 2


def test_unsigned_times_are_taken_as_signed_ones():
    times = np.array([0, 3], np.uint8)
    result = tpl.leakage_at_all_times(0.5, FORWARD, FORWARD, times=times, horizon=5)
    assert (result.epsilons > 0).tolist() == [True, False, False, True, False]
    with pytest.raises(ValueError, match="increasing time points in 0..4"):
        tpl.allocate_optimally(1.0, FORWARD, FORWARD, 5, times=times[::-1])


@pytest.mark.parametrize("kind", [tpl.PrivacyLossFunction, tpl.PriorFreeLoss])
def test_the_cost_of_a_pause_is_in_proportion_to_its_length(kind):
    calls = []
    for pause in (200, 400):
        account = tpl.TemporalAccountant(*[kind(FORWARD)] * 2).compose(0.1).skip(pause).compose(0.1)
        with Profile() as profile:
            assert account.leakage.tpl.size == pause + 2
        calls.append(sum(entry.callcount for entry in profile.getstats()))
    assert calls[1] < 2.2 * calls[0]
    assert len({*account.skip(3000).leakage.bpl.tolist()}) < 2200


@pytest.mark.parametrize("start", ["habit", "known", "any"])
@pytest.mark.parametrize("pauses", [False, True])
def test_a_cycle_leaks_at_all_times_as_the_list_of_its_steps(start, pauses):
    rng = np.random.default_rng(6)
    cycle = tpl.Cycle([random_matrix(rng, "dense", 3) for _ in range(4)])
    law = np.array([0.5, 0.3, 0.2])
    backward = cycle.reverse(law if start == "known" else start)
    horizon = 30
    times = np.flatnonzero(rng.random(horizon) < 0.3) if pauses else np.arange(horizon)
    budgets = rng.uniform(0.1, 0.5, times.size)
    found = tpl.leakage_at_all_times(budgets, backward, cycle, times=times, horizon=horizon)
    lists = backward.over(horizon - 1), cycle.over(horizon - 1)
    expected = tpl.leakage_at_all_times(budgets, *lists, times=times, horizon=horizon)
    for name in ("epsilons", "bpl", "fpl"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-12)
    if start == "habit":
        law = cycle.laws()[0]
    spent = np.zeros(horizon)
    spent[times] = budgets
    exact = extended_tpl(spent, *true_steps(cycle, law, horizon))
    assert (found.tpl >= exact * (1 - 1e-14)).all()
    if start != "any":
        np.testing.assert_allclose(found.tpl, exact.astype(float), rtol=0.02)


def test_a_long_pause_before_and_after_a_start_is_forgotten_takes_the_steps_near_the_habit():
    """From states without a common neighbour, no evidence bounds a step; later ones do."""
    cycle = tpl.Cycle([[[0.5, 0.5, 0], [0, 0.5, 0.5], [0.5, 0, 0.5]], FORWARD3])
    backward = cycle.reverse(start="any")
    leakage = tpl.leakage_at_all_times([1.0, 1.0], backward, None, times=[0, 60], horizon=61)
    assert leakage.bpl[60] < 1.01
    account = tpl.TemporalAccountant(backward, None).compose(1.0).skip(59).compose(1.0)
    np.testing.assert_allclose(account.bpl, leakage.bpl, rtol=1e-12)


@pytest.mark.parametrize("more", [0, 1, 2, 3])
def test_a_series_may_end_within_the_first_period_after_the_first_steps(more):
    habits = tpl.Cycle(
        [[[0.8, 0.2], [0.1, 0.9]], [[0.6, 0.4], [0.3, 0.7]], [[0.5, 0.5], [0.1, 0.9]]]
    )
    backward = habits.reverse(start=[1.0, 0.0])
    horizon = len(backward.first) + 1 + more
    at_all = tpl.leakage_at_all_times([0.5] * 2, backward, None, times=[0, 1], horizon=horizon)
    two = tpl.temporal_privacy_leakage([0.5] * 2, backward, None)
    np.testing.assert_allclose(at_all.tpl[:2], two.tpl, rtol=1e-12)
    assert (np.diff(at_all.bpl[1:]) <= 0).all()


@pytest.mark.parametrize("times", [[-1, 2], [0, 5], [2, 1], [1, 1]])
def test_times_lie_within_the_horizon_and_increase(times):
    P = [[0.8, 0.2], [0.2, 0.8]]
    with pytest.raises(ValueError, match="times"):
        tpl.leakage_at_all_times([0.1, 0.1], P, P, times=times, horizon=5)


@pytest.mark.parametrize("horizon", [4, 6, 9])
def test_a_pause_from_the_first_steps_into_the_habit_leaks_no_less_than_its_own_steps(horizon):
    """The longest part of the pause near the habit is no longer than what follows the first
    steps."""
    habit = tpl.Cycle([[[0.9, 0.1], [0.2, 0.8]]])
    law = habit.laws()[0] + [0.0004, -0.0004]
    backward = habit.reverse(start=law)
    assert len(backward.first) == 2
    found = tpl.leakage_at_all_times([1.0], backward, habit, times=[0], horizon=horizon)
    spent = np.zeros(horizon)
    spent[0] = 1.0
    exact = extended_tpl(spent, *true_steps(habit, law, horizon))
    assert (found.tpl >= exact * (1 - 1e-14)).all()


def test_a_single_release_leaks_before_and_after_it():
    leakage = tpl.leakage_at_all_times(0.5, BACKWARD, FORWARD, times=[1], horizon=3)
    assert leakage.bpl.tolist()[:2] == [0.0, 0.5]
    assert leakage.fpl.tolist()[1:] == [0.5, 0.0]
    assert leakage.bpl[2] == pytest.approx(tpl.privacy_loss(BACKWARD, 0.5), rel=1e-12)
    assert leakage.fpl[0] == pytest.approx(tpl.privacy_loss(FORWARD, 0.5), rel=1e-12)
