"""Cycles of matrices: laws that repeat, reversal under each start, and what a user may type."""

from datetime import timedelta
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

import tplrepro as tpl
from tplrepro.markov.cycle import AnyLaw, NearHabit, hilbert_distance

NIGHT, DAY = [[0.98, 0.02], [0.02, 0.98]], [[0.7, 0.3], [0.4, 0.6]]


def random_cycle(seed, p, n):
    rng = np.random.default_rng(seed)
    return tpl.Cycle([tpl.TransitionMatrix.random(n, rng=rng) for _ in range(p)])


def joint_of_two_times(cycle, initial, time):
    """Pr(l^time, l^{time+1}) by enumeration of all paths."""
    law = np.asarray(initial)
    for step in cycle.over(time):
        law = law @ step.toarray()
    return law[:, None] * cycle.at(time).toarray()


@given(seed=st.integers(0, 10**6), p=st.integers(1, 5), n=st.integers(2, 4))
def test_laws_repeat_with_the_cycle_and_reversal_is_bayes_rule(seed, p, n):
    cycle = random_cycle(seed, p, n)
    laws = cycle.laws()
    back = cycle.reverse()
    for phase in range(p):
        following = laws[phase] @ cycle[phase].toarray()
        assert following == pytest.approx(laws[(phase + 1) % p], abs=1e-12)
        joint = laws[phase][:, None] * cycle[phase].toarray()
        assert back[phase].toarray() == pytest.approx(joint.T / joint.sum(axis=0)[:, None])


def test_a_cycle_of_one_is_its_matrix():
    P = tpl.TransitionMatrix([[0.8, 0.2], [0.1, 0.9]])
    assert (tpl.Cycle(P).reverse()[0].toarray() == P.reverse().toarray()).all()
    budgets = np.linspace(0.1, 0.5, 7)
    with_cycle = tpl.temporal_privacy_leakage(budgets, tpl.Cycle(P).reverse(), tpl.Cycle(P))
    alone = tpl.temporal_privacy_leakage(budgets, P.reverse(), P)
    assert (with_cycle.tpl == alone.tpl).all()


def test_a_cycle_leaks_as_the_list_of_its_steps():
    cycle = tpl.Cycle([NIGHT, NIGHT, DAY])
    steps = [NIGHT, NIGHT, DAY, NIGHT, NIGHT, DAY, NIGHT]
    with_cycle = tpl.temporal_privacy_leakage([0.1] * 8, cycle, cycle.starting_at(2))
    with_lists = tpl.temporal_privacy_leakage([0.1] * 8, steps, [DAY, *steps[:-1]])
    assert (with_cycle.bpl == with_lists.bpl).all()
    assert (with_cycle.fpl == with_lists.fpl).all()


@given(seed=st.integers(0, 10**6), p=st.integers(1, 3))
def test_backward_matrices_of_a_known_start_are_exact_until_it_is_forgotten(seed, p):
    cycle = random_cycle(seed, p, 3)
    start = np.random.default_rng(seed).dirichlet(np.ones(3))
    back = cycle.reverse(start=start)
    law = start
    for time in range(len(back.first) + 2 * p):
        joint = joint_of_two_times(cycle, start, time)
        exact = joint.T / joint.sum(axis=0)[:, None]
        step = back.at(time)
        if isinstance(step, NearHabit):
            habit = cycle.laws()[time % p]
            assert hilbert_distance(law, habit) <= step.distance <= 1e-3
        else:
            assert step.toarray() == pytest.approx(exact, abs=1e-12)
        law = joint.sum(axis=0)


def test_a_start_at_home_keeps_the_states_that_can_occur():
    cycle = tpl.Cycle([[[0.0, 1.0], [1.0, 0.0]], [[0.5, 0.5], [0.5, 0.5]]])
    back = cycle.reverse(start=[1.0, 0.0])
    assert back.at(0).toarray().tolist() == [[1.0, 0.0], [1.0, 0.0]]


@given(seed=st.integers(0, 10**6), p=st.integers(1, 3))
def test_steps_near_the_habit_bound_the_leakage_of_every_law_so_near(seed, p):
    rng = np.random.default_rng(seed)
    cycle = random_cycle(seed, p, 3)
    law = rng.dirichlet(np.ones(3))
    habit = cycle.laws()[0]
    distance = hilbert_distance(law, habit)
    near = NearHabit(cycle.reverse()[0], distance, cycle[0])
    L = tpl.leakage.temporal.as_loss_function(near)
    joint = law[:, None] * cycle[0].toarray()
    exact = tpl.PrivacyLossFunction(joint.T / joint.sum(axis=0)[:, None])
    for alpha in rng.exponential(size=5):
        assert exact.at(alpha) <= L.at(alpha) * (1 + 1e-12)
        level = L.at(alpha)
        assert L.at(L.inverse_at(level)) <= level * (1 + 1e-12)
        assert L.inverse_at(level) == pytest.approx(alpha, rel=1e-6)
        supremum = L.supremum(alpha)
        if supremum < 50:
            assert supremum == pytest.approx(alpha + L.at(supremum), rel=1e-9)
            assert L.budget_for(supremum) == pytest.approx(alpha, rel=1e-6)


@given(seed=st.integers(0, 10**6), distance=st.sampled_from([0.0, 1e-6, 1e-3, 0.1, 1.0, 5.0]))
def test_steps_near_the_habit_bound_the_divergences_of_every_law_so_near(seed, distance):
    """Sets of columns and the extreme laws, all enumerated."""
    rng = np.random.default_rng(seed)
    cycle = random_cycle(seed, p=1, n=4)
    (habit,) = cycle.laws()
    near = NearHabit(cycle.reverse()[0], distance, cycle[0])
    L = tpl.leakage.temporal.as_loss_function(near)
    gammas = np.append(1.0, 1.0 + rng.exponential(size=6))
    found = L.hockey_stick(gammas)
    assert (found <= tpl.PriorFreeLoss(cycle[0]).hockey_stick(gammas)).all()
    largest = np.zeros(gammas.size)
    for raised in product([0.0, 1.0], repeat=4):
        law = habit * np.exp(distance * np.array(raised))
        joint = (law / law.sum())[:, None] * cycle[0].toarray()
        backward = joint.T / joint.sum(axis=0)[:, None]
        for q, d in permutations(backward, 2):
            excess = np.maximum(q - gammas[:, None] * d, 0.0).sum(axis=1)
            largest = np.maximum(largest, excess)
    assert (largest <= found + 1e-15).all()
    if distance <= 1e-3:
        assert found == pytest.approx(largest, abs=3 * distance * L.hockey_stick(1.0) + 1e-12)


def test_any_start_is_not_known_until_all_states_can_occur():
    walk = [[0.5, 0.5, 0.0], [0.25, 0.5, 0.25], [0.0, 0.5, 0.5]]
    back = tpl.Cycle(walk).reverse(start="any")
    kinds = [type(step) for step in back.first]
    assert kinds[:2] == [AnyLaw, AnyLaw]
    assert set(kinds[2:]) == {NearHabit}
    one_support = tpl.Cycle([walk, [[0.8, 0.1, 0.1]] * 3]).reverse(start="any")
    assert one_support.first == []
    assert {type(step) for step in one_support} == {AnyLaw}


def test_the_clock_goes_from_matrices_to_cycles():
    hours = tpl.TransitionMatrix(DAY, step="1h")
    assert (hours**24).step.days == 1
    assert hours.reverse().step == hours.step
    week = tpl.Cycle([hours] * 168)
    assert week.period == "week"
    assert week.phases[:2] == ["Mon 00:00", "Mon 01:00"]
    assert week.starting_at("Sun 23:00").reverse().phases[:2] == ["Sun 23:00", "Mon 00:00"]
    assert tpl.Cycle([hours] * 24).every(3).phases[1] == "03:00"
    with pytest.raises(ValueError, match="one length, found 1:00:00 and 1 day"):
        tpl.Cycle([hours, hours**24])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tpl.Cycle([]), "at least one step"),
        (lambda: tpl.Cycle([DAY, np.eye(3)]), "same states"),
        (lambda: tpl.Cycle([DAY], phases=["a", "b"]), "2"),
        (lambda: tpl.Cycle([DAY]).starting_at("noon"), "one of the cycle's, found 'noon'"),
        (lambda: tpl.Cycle([DAY]).reverse(start="home"), 'start must be "habit"'),
        (lambda: tpl.Cycle([None]).reverse(), "each step must have a matrix"),
        (lambda: tpl.Cycle([np.eye(2)]).reverse(), "unique"),
        (lambda: tpl.TransitionMatrix(DAY, step="soon"), "positive duration"),
    ],
)
def test_errors_name_the_constraint(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_coarser_steps_keep_sparse_matrices_and_refuse_a_reversed_cycle():
    sparse = tpl.TransitionMatrix(
        csr_array(0.5 * np.eye(3)), normalize=True, background=[1 / 6] * 3
    )
    (same,) = tpl.Cycle(sparse).every(1)
    assert (same.toarray() == sparse.toarray()).all()
    hourly = tpl.TransitionMatrix(DAY, step="1h")
    assert tpl.Cycle(hourly).every(1)[0].step == timedelta(hours=1)
    started = tpl.Cycle([DAY], first=[NIGHT])
    with pytest.raises(ValueError, match="cannot be reversed or made coarser, found 1; give"):
        started.every(2)


def test_a_cycle_knows_when_its_first_phase_begins():
    week = tpl.Cycle([NIGHT, DAY] * 7, [f"half {k}" for k in range(14)], step="12h")
    turned = week.starting_at("half 3")
    assert (week.begins, turned.begins) == (timedelta(0), timedelta(hours=36))
    for same in (turned.reverse(), turned.reverse(start="any"), turned.map(lambda step: step)):
        assert (same.begins, same.phases) == (turned.begins, turned.phases)
    assert turned.starting_at("half 0").begins == timedelta(0)
    assert turned.every(7).begins == turned.begins
    evening = tpl.Cycle([NIGHT, DAY], step="12h", begins=timedelta(hours=18))
    assert evening.phases == ["18:00", "06:00"]
    assert tpl.Cycle([NIGHT, DAY]).starting_at(1).begins == timedelta(0)
    with pytest.raises(ValueError, match="begins must be a time after midnight within .*; give st"):
        tpl.Cycle([NIGHT, DAY], begins=timedelta(hours=1))


def test_both_sides_begin_at_one_phase():
    habits = tpl.Cycle([NIGHT, DAY], step="12h")
    turned = habits.starting_at("12:00")
    with pytest.raises(ValueError, match="must begin at one phase, found '00:00' and '12:00'; rev"):
        tpl.temporal_privacy_leakage([0.1], habits.reverse(), turned)
    weekly = tpl.Cycle([NIGHT, DAY] * 7, step="12h")
    assert tpl.temporal_privacy_leakage([0.1], weekly.reverse(), habits).max() == 0.1


def test_both_sides_have_steps_of_one_length():
    hours = tpl.TransitionMatrix(DAY, step="1h")
    half_days = tpl.Cycle([NIGHT, DAY], step="12h")
    for backward, forward in (
        (half_days.reverse(), hours),
        (tpl.PrivacyLossFunction(hours), half_days),
        (tpl.TransitionMatrix(DAY, step="2h"), hours),
    ):
        with pytest.raises(ValueError, match="must have steps of one length, found .*:00:00 and"):
            tpl.temporal_privacy_leakage(0.1, backward, forward, horizon=4)
    assert tpl.temporal_privacy_leakage(0.1, DAY, hours, horizon=4).tpl.size == 4


def test_a_sparse_matrix_knows_how_far_a_start_is_from_the_habit():
    """The law of a sparse matrix has an error of up to 1e-14 / (1 - its second eigenvalue)."""
    rows = np.array([[1.0 - 2.0**-9, 2.0**-9], [3 * 2.0**-10, 1.0 - 3 * 2.0**-10]])
    start = [0.999, 0.001]
    sparse = tpl.Cycle([tpl.TransitionMatrix(csr_array(rows))]).reverse(start)
    dense = tpl.Cycle([rows]).reverse(start)
    habit = Fraction(3, 5)
    first = Fraction(start[0])
    rest = (1 - Fraction(5, 2**10)) ** len(sparse.first)
    law = habit + (first - habit) * rest
    odds = law * (1 - habit) / ((1 - law) * habit)
    assert sparse[0].distance >= abs(np.log1p(float(odds - 1)))
    assert sparse[0].distance == dense[0].distance
    assert (sparse[0].backward.toarray() == dense[0].backward.toarray()).all()


def test_a_cycle_of_many_phases_shows_the_first_two_and_the_last():
    assert repr(tpl.Cycle([DAY] * 6)) == "Cycle(6 phases 0, 1, ..., 5; 2 states)"
    assert repr(tpl.Cycle([DAY] * 4)) == "Cycle(4 phases 0, 1, 2, 3; 2 states)"


@pytest.mark.parametrize("start", ["any", [1.0, 0.0, 0.0]])
def test_a_distance_from_the_habit_allows_for_the_rounding_of_all_steps_so_far(monkeypatch, start):
    steps = []

    def noted(count, n):
        steps.append(count)
        return 0.0

    monkeypatch.setattr("tplrepro.markov.cycle.rounding_of_laws", noted)
    walk = [[0.5, 0.5, 0.0], [0.2, 0.4, 0.4], [0.0, 0.3, 0.7]]
    other = [[0.6, 0.4, 0.0], [0.3, 0.3, 0.4], [0.0, 0.5, 0.5]]
    tpl.Cycle([walk, other, walk]).reverse(start=start)
    assert len(steps) > 3
    assert steps == [passed + 3 for passed in range(1, len(steps) + 1)]


def test_a_cycle_that_is_no_day_turns_without_a_clock():
    turned = tpl.Cycle([NIGHT, DAY], step="1h").starting_at(1)
    assert (turned.phases, turned.begins, turned.step) == ([1, 0], timedelta(0), timedelta(hours=1))


def test_products_of_sparse_matrices_have_up_to_a_number_of_states(monkeypatch):
    sparse = tpl.TransitionMatrix(
        csr_array(0.5 * np.eye(3)), normalize=True, background=[1 / 6] * 3
    )
    expected = sparse.toarray() @ sparse.toarray()
    monkeypatch.setattr("tplrepro.markov.cycle.MOST_STATES", 3)
    assert tpl.Cycle(sparse).every(2)[0].toarray() == pytest.approx(expected)
    monkeypatch.setattr("tplrepro.markov.cycle.MOST_STATES", 2)
    with pytest.raises(ValueError, match="may have 2 states, found 3; take fewer states"):
        tpl.Cycle(sparse).every(2)
