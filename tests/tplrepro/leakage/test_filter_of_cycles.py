"""The filter of habits that follow the clock: every path against a plain recursion in extended
precision that shares nothing with it, at each kind of start."""

import pickle
from collections import defaultdict
from copy import copy
from itertools import permutations

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tplrepro as tpl
from tests.oracles import _prefix_sums, exact_loss, extended_tpl, largest_loss
from tests.work import lines_run
from tplrepro.leakage.filter import FilterState, FloorSuprema, LeakageExceededError
from tplrepro.leakage.loss_over_steps import LossOverSteps
from tplrepro.leakage.temporal import as_loss_function, loss_cycles

ALPHA = 1.0


def random_matrix(rng, n):
    """Nearly still, nearly equal rows, or anything between."""
    rows = rng.dirichlet(np.ones(n), n)
    share = rng.choice([0.05, 0.5, 1.0])
    background = np.eye(n) if rng.random() < 0.7 else np.full((n, n), 1.0 / n)
    return tpl.TransitionMatrix(share * rows + (1.0 - share) * background + 1e-4, normalize=True)


def random_cycle(rng):
    n = int(rng.integers(2, 4))
    return tpl.Cycle([random_matrix(rng, n) for _ in range(rng.integers(1, 7))])


def random_law(rng, n):
    law = rng.dirichlet(np.full(n, 0.5)) + 1e-3
    return law / law.sum()


def largest_floors(alpha, backward, forward, shape):
    """The largest multiple of a shape that the filter takes as floors."""
    backward, forward = [side.map(as_loss_function) for side in (backward, forward)]
    low, high = 0.0, 2.0 * alpha
    for _ in range(45):
        middle = 0.5 * (low + high)
        try:
            tpl.TemporalFilter(alpha, backward, forward, floor=middle * shape)
            low = middle
        except ValueError:
            high = middle
    return low * shape


def adversarial_path(rng, account, floors, horizon):
    """Budgets that spend all, the floor only, or anything between; 0 without a release."""
    habit = rng.choice(["all", "floor", "random", "all, then floor"])
    pauses = rng.choice([0.0, 0.2, 0.5])
    turn = rng.integers(0, horizon)
    budgets = []
    for time in range(horizon):
        floor = floors[time % len(floors)]
        rest = account.remaining
        assert rest >= floor
        budget = rest
        if habit == "floor" or (habit == "all, then floor" and time >= turn):
            budget = floor
        if habit == "random":
            budget = max(rest * rng.random(), floor)
        if budget <= 0.0 or rng.random() < pauses:
            account.skip()
            budget = 0.0
        else:
            account.spend(budget)
        budgets.append(budget)
    return budgets


def true_steps(cycle, law, horizon):
    """The matrices of each step of both sides, from the law of the first state."""
    forward = [step.toarray().astype(np.longdouble) for step in cycle.over(horizon - 1)]
    backward = []
    for matrix in forward:
        joint = matrix * law[:, None]
        law = joint.sum(axis=0)
        backward.append((joint / law).T)
    return backward, forward


def largest_excess(rng, paths):
    """The largest TPL of so many paths, less alpha, as a share of it."""
    largest = -np.inf
    for _ in range(paths // 4):
        cycle = random_cycle(rng)
        n = cycle[0].n_states
        law = random_law(rng, n)
        start = rng.choice(["habit", "any", "known"])
        backward = cycle.reverse(law if start == "known" else start)
        laws = [law, random_law(rng, n)]
        if start == "habit":
            laws = [cycle.laws()[0]]
        if start == "known":
            laws = [law]
        shape = rng.random(len(cycle)) * (rng.random(len(cycle)) < 0.8)
        shape[0] += 0.1
        floors = largest_floors(ALPHA, backward, cycle, shape)
        floors = floors * rng.choice([0.0, 0.5, 1.0, 1.0])
        account = tpl.TemporalFilter(ALPHA, backward, cycle, floor=floors)
        for _ in range(4):
            horizon = int(rng.integers(3, 16))
            budgets = adversarial_path(rng, copy(account), floors, horizon)
            for first_law in laws:
                tpls = extended_tpl(budgets, *true_steps(cycle, first_law, horizon))
                largest = max(largest, tpls.max() / ALPHA - 1.0)
    return largest


@pytest.mark.parametrize("paths", [100, pytest.param(6000, marks=pytest.mark.slow)])
def test_no_path_leaks_more_than_alpha_and_the_floor_of_each_phase_remains(paths):
    """The floor is spent where it is all that remains, so that a lost floor is an excess."""
    assert largest_excess(np.random.default_rng(paths), paths) <= 1e-12


def test_the_level_of_one_matrix_would_lose_the_floors_of_a_cycle(monkeypatch):
    """With beta_r = alpha - R_r for each phase, the floors that remain exceed alpha."""
    monkeypatch.setattr(FloorSuprema, "levels", defaultdict(lambda: ALPHA))
    assert largest_excess(np.random.default_rng(100), 100) > 0.01


@given(seed=st.integers(0, 10**6), start=st.sampled_from(["habit", "any"]))
@settings(max_examples=25, deadline=None)
def test_the_budgets_of_algorithm_7_for_a_cycle_are_its_largest_floors(seed, start):
    cycle = random_cycle(np.random.default_rng(seed))
    backward = cycle.reverse(start)
    floors = np.asarray(tpl.allocate_by_upper_bound(ALPHA, backward, cycle))
    tpl.TemporalFilter(ALPHA, backward, cycle, floor=floors)
    with pytest.raises(ValueError, match="floor must keep the TPL within alpha"):
        tpl.TemporalFilter(ALPHA, backward, cycle, floor=floors * (1 + 1e-6))


@given(seed=st.integers(0, 10**6), share=st.sampled_from([0.0, 0.5, 1.0]))
@settings(max_examples=25, deadline=None)
def test_a_cycle_of_one_is_its_matrix_bit_for_bit(seed, share):
    rng = np.random.default_rng(seed)
    P = random_matrix(rng, 3)
    back = P.reverse()
    floor = share * tpl.allocate_by_upper_bound(ALPHA, back, P)
    one = tpl.TemporalFilter(ALPHA, back, P, floor=floor)
    cycle = tpl.TemporalFilter(ALPHA, tpl.Cycle(back), tpl.Cycle(P), floor=[floor])
    for _ in range(20):
        budget = max(one.remaining * rng.random(), floor)
        if rng.random() < 0.3 or budget == 0.0:
            count = int(rng.integers(1, 40))
            one.skip(count)
            cycle.skip(count)
        else:
            one.spend(budget)
            cycle.spend(budget)
        assert one.state == cycle.state
        assert one.remaining == cycle.remaining
        assert one.exhausted() == cycle.exhausted()
    assert one.state.last == 0


@given(seed=st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_a_matrix_at_each_phase_is_the_matrix(seed):
    rng = np.random.default_rng(seed)
    P = random_matrix(rng, 3)
    floor = 0.5 * tpl.allocate_by_upper_bound(ALPHA, P, P)
    one = tpl.TemporalFilter(ALPHA, P, P, floor=floor)
    three = tpl.TemporalFilter(ALPHA, tpl.Cycle([P] * 3), P, floor=floor)
    for _ in range(10):
        assert three.remaining == pytest.approx(one.remaining, rel=1e-11)
        budget = one.remaining * rng.random()
        budget = max(budget * (1 - 1e-9), floor)
        pause = int(rng.integers(0, 3)) * 7
        for account in (one, three):
            account.spend(budget)
            if pause:
                account.skip(pause)


@given(seed=st.integers(0, 10**6), count=st.integers(1, 3000))
@settings(max_examples=25, deadline=None)
def test_a_count_is_as_many_releases_one_by_one(seed, count):
    """The state is the same a period ago from some release on, from where the rest is known."""
    rng = np.random.default_rng(seed)
    cycle = random_cycle(rng)
    backward = cycle.reverse(random_law(rng, cycle[0].n_states))
    floors = largest_floors(ALPHA, backward, cycle, np.ones(len(cycle)))
    at_once = tpl.TemporalFilter(ALPHA, backward, cycle, floor=floors)
    at_once.spend(at_once.remaining)
    in_turn = copy(at_once)
    at_once.spend(floors[0], count)
    for _ in range(count):
        in_turn.spend(floors[0])
    assert at_once.state == in_turn.state
    assert at_once.remaining == in_turn.remaining


def test_many_equal_releases_end_at_a_period_that_repeats_itself():
    rng = np.random.default_rng(3)
    cycle = tpl.Cycle([random_matrix(rng, 3) for _ in range(5)])
    account = tpl.TemporalFilter(ALPHA, cycle.reverse(), cycle, floor=1e-3)
    few = copy(account).spend(1e-3, 4003)
    assert lines_run(lambda: account.spend(1e-3, 10**8 - 2)) < 200_000
    assert account.state == few.state  # both counts have the same phase


@given(seed=st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_after_times_that_are_not_known_no_path_leaks_more_than_alpha(seed):
    """What was spent there is another adversarial path, as after a copy was put back."""
    rng = np.random.default_rng(seed)
    cycle = random_cycle(rng)
    backward = cycle.reverse()
    shape = rng.random(len(cycle)) + 0.1
    floors = largest_floors(ALPHA, backward, cycle, shape) * rng.choice([0.5, 1.0])
    account = tpl.TemporalFilter(ALPHA, backward, cycle, floor=floors)
    budgets = adversarial_path(rng, account, floors, int(rng.integers(1, 6)))
    unknown = int(rng.integers(1, 8))
    after = copy(account)
    after.state = account.exhausted(unknown)
    for time in range(len(budgets), len(budgets) + unknown):
        floor = floors[time % len(floors)]
        budget = max(account.remaining * rng.choice([0.0, 0.5, 1.0]), floor)
        account.spend(budget)
        budgets.append(budget)
    for time in range(len(budgets), len(budgets) + 8):
        floor = floors[time % len(floors)]
        rest = after.remaining
        assert rest >= floor
        budget = max(rest * rng.random(), floor)
        after.spend(budget)
        budgets.append(budget)
    tpls = extended_tpl(budgets, *true_steps(cycle, cycle.laws()[0], len(budgets)))
    assert tpls.max() <= ALPHA * (1 + 1e-12)


@pytest.mark.parametrize("start", ["habit", "any"])
def test_what_a_pause_leaks_is_bounded_by_what_the_fullest_release_leaks_in_a_step(start):
    """The bound holds for the rounded numbers of the filter, and is as close as these."""
    rng = np.random.default_rng(8)
    for _ in range(10):
        cycle = tpl.Cycle([random_matrix(rng, 2) for _ in range(3)])
        backward = cycle.reverse(start)
        floors = 0.9 * largest_floors(ALPHA, backward, cycle, rng.random(3) + 0.1)
        account = tpl.TemporalFilter(ALPHA, backward, cycle, floor=floors)
        for count in range(1, 5):
            fullest = account.exhausted(count)
            leaked = account._limits(fullest).leaked
            most_leaked = account._limits_at(fullest.following).most_leaked
            assert leaked <= most_leaked <= leaked * (1 + 2e-14)


def exact_loss_of_product(matrices, leakage):
    """L of a product of matrices in high precision, whose rows are divided by their sums."""
    with mpmath.workdps(40):
        product = mpmath.matrix(matrices[0].tolist())
        for matrix in matrices[1:]:
            product = product * mpmath.matrix(matrix.tolist())
        rows = product.tolist()
        rows = [[p / mpmath.fsum(row) for p in row] for row in rows]
        sums = [pair for q, d in permutations(rows, 2) for pair in _prefix_sums(q, d)]
        return largest_loss(sums, leakage)


@pytest.mark.parametrize("side", ["backward", "forward"])
@pytest.mark.parametrize("start", ["habit", "known"])
def test_the_loss_over_a_pause_of_a_cycle_is_never_below_the_exact_one(side, start):
    rng = np.random.default_rng(4)
    cycle = tpl.Cycle([random_matrix(rng, 3) for _ in range(5)])
    law = random_law(rng, 3)
    if start == "habit":
        law = cycle.laws()[0]
    backward = cycle.reverse(start if start == "habit" else law)
    losses = getattr(loss_cycles(backward, cycle), side)
    over = LossOverSteps(losses, side)
    true_backward, true_forward = true_steps(cycle, law, 200)
    for time, steps in ((0, 1), (0, 4), (3, 7), (2, 16), (1, 37), (11, 23), (40, 100), (4, 100)):
        if side == "backward":
            loss = over.bound(time, steps)
            matrices = true_backward[time : time + steps][::-1]
        else:
            loss = over.bound(time + steps, steps)
            matrices = true_forward[time : time + steps]
        for leakage in (1e-9, 0.4, 20.0):
            exact = exact_loss_of_product(matrices, leakage)
            assert loss.at_most(leakage) >= exact
            if start == "habit" or side == "forward":
                assert loss.at_most(leakage) <= exact * (1 + 1e-9) + 1e-9 * min(leakage, 1.0)
            within = min(loss.inverse_within(float(exact), leakage), leakage)
            assert exact_loss_of_product(matrices, within) <= exact


def test_a_year_of_minutes_is_skipped_at_once():
    rng = np.random.default_rng(0)
    matrices = [
        tpl.TransitionMatrix(0.999 * np.eye(9) + 0.001 * rng.dirichlet(np.ones(9), 9))
        for _ in range(24)
    ]
    cycle = tpl.Cycle(matrices)
    account = tpl.TemporalFilter(ALPHA, cycle.reverse(), cycle).spend(0.4).skip()
    short = copy(account)
    work_for_hours = lines_run(lambda: short.skip(525).remaining)
    work_for_a_year = lines_run(lambda: account.skip(525_600).remaining)
    assert work_for_a_year < 8 * work_for_hours
    assert account.remaining == pytest.approx(ALPHA)
    assert lines_run(lambda: account.remaining) < 50


def test_a_phase_may_keep_nothing_and_floors_are_checked():
    cycle = tpl.Cycle([[[0.9, 0.1], [0.2, 0.8]], [[0.6, 0.4], [0.5, 0.5]]])
    sides = cycle.reverse(), cycle
    account = tpl.TemporalFilter(ALPHA, *sides, floor=[0.0, 0.3])
    assert "floor=0 to 0.3" in repr(account)
    account.spend(account.remaining)
    account.spend(0.3)
    assert account.remaining < 1e-9
    account.skip().spend(0.3)
    with pytest.raises(LeakageExceededError, match="with a floor of 0 to 0.3, found 0.9"):
        account.spend(0.9)
    with pytest.raises(ValueError, match="found 0.3 to 0.8, for which it reaches 1.1"):
        tpl.TemporalFilter(ALPHA, *sides, floor=[0.3, 0.8])
    with pytest.raises(ValueError, match=r"found shape \(3,\); give one budget, or one"):
        tpl.TemporalFilter(ALPHA, *sides, floor=[0.1] * 3)
    with pytest.raises(ValueError, match="floor must be finite and at least 0.*found -0.1"):
        tpl.TemporalFilter(ALPHA, *sides, floor=[0.1, -0.1])
    still = tpl.Cycle([np.eye(2), [[0.6, 0.4], [0.5, 0.5]]])
    tpl.TemporalFilter(ALPHA, still, still, floor=0.01)
    with pytest.raises(ValueError, match="found 0.01, for which it reaches inf"):
        tpl.TemporalFilter(ALPHA, tpl.Cycle([np.eye(2), np.eye(2)]), None, floor=0.01)


def test_copies_and_pickles_go_on_at_the_same_phase():
    rng = np.random.default_rng(9)
    cycle = tpl.Cycle([random_matrix(rng, 3) for _ in range(4)])
    account = tpl.TemporalFilter(ALPHA, cycle.reverse(random_law(rng, 3)), cycle, floor=0.01)
    account.spend(0.2).skip(6).spend(0.1, 3).skip(2)
    for other in (copy(account), pickle.loads(pickle.dumps(account))):
        assert other.state == account.state
        assert other.remaining == account.remaining
        other.spend(0.01)
        assert other.state != account.state


def test_a_state_that_was_kept_before_there_were_cycles_is_that_of_one_matrix():
    P = [[0.8, 0.2], [0.1, 0.9]]
    account = tpl.TemporalFilter(ALPHA, P, P).spend(0.2).skip(3)
    assert FilterState(*account.state[:3]) == account.state


def test_a_side_may_be_known_at_some_phases_only():
    P = tpl.TransitionMatrix([[0.9, 0.1], [0.2, 0.8]])
    account = tpl.TemporalFilter(ALPHA, tpl.Cycle([P, None]), tpl.Cycle([None, P]), floor=0.05)
    account.spend(account.remaining).skip().spend(0.3)
    assert account.bpl == pytest.approx(0.3, rel=1e-12)  # the second step forgets all
    account.spend(0.1)
    loss = exact_loss(P.toarray())
    assert account.bpl == pytest.approx(0.1 + float(loss(0.3)), rel=1e-12)


@given(seed=st.integers(0, 10**6), share=st.sampled_from([0.0, 0.7, 0.99]))
@settings(max_examples=40, deadline=None)
def test_a_filter_that_goes_on_with_the_same_chain_is_the_same_filter(seed, share):
    """Time 0 of the second one is the last time of the first, whatever its phase."""
    rng = np.random.default_rng(seed)
    cycle = random_cycle(rng)
    p = len(cycle)
    backward = cycle.reverse()
    floors = share * largest_floors(ALPHA, backward, cycle, rng.random(p) + 0.1)
    whole = tpl.TemporalFilter(ALPHA, backward, cycle, floor=floors)
    count = int(rng.integers(2, 12))
    adversarial_path(rng, whole, floors, count - 1)
    last = max(floors[(count - 1) % p], whole.remaining * rng.random())
    if last == 0.0:
        return
    whole.spend(last)
    turned = [(count - 1 + time) % p for time in range(p)]
    sides = []
    for side in (backward, cycle):
        sides.append(tpl.Cycle([side[phase] for phase in turned], first=[side[turned[0]]]))
    # Where all was spent, what is tolerated is the floor to the last bit.
    kept = floors[turned] * (1.0 - 1e-9)
    rest = tpl.TemporalFilter(ALPHA, *sides, floor=kept, after=whole.settled())
    for time in range(count, count + 8):
        # The recursion of what is tolerated increases differences.
        assert rest.remaining == pytest.approx(whole.remaining, rel=1e-5, abs=1e-8)
        budget = max(floors[time % p] * (1.0 - 1e-9), 0.99 * whole.remaining * rng.random())
        if budget == 0.0 or rng.random() < 0.2:
            pause = int(rng.integers(1, 4))
            whole.skip(pause)
            rest.skip(pause)
            break
        whole.spend(budget)
        rest.spend(budget)


def test_a_filter_that_goes_on_refuses_floors_that_earlier_times_do_not_tolerate():
    P, slow = [[0.6, 0.4], [0.3, 0.7]], [[0.95, 0.05], [0.05, 0.95]]
    whole = tpl.TemporalFilter(ALPHA, None, slow)
    whole.spend(0.8).spend(0.1)
    settled = whole.settled()
    joined = tpl.Cycle([P], first=[slow])
    after = tpl.TemporalFilter(ALPHA, None, joined, floor=0.05, after=settled)
    assert after.remaining >= 0.05
    with pytest.raises(ValueError, match="floor must leave all earlier times within alpha = 1, fo"):
        tpl.TemporalFilter(ALPHA, None, joined, floor=0.2, after=settled)
    settled = tpl.TemporalFilter(ALPHA, slow, slow).spend(0.95).settled()
    with pytest.raises(ValueError, match="it reaches .*; give less, after what was spent"):
        tpl.TemporalFilter(ALPHA, joined, joined, floor=0.2, after=settled)


def test_what_was_spent_counts_where_a_plain_cycle_goes_on():
    """Without first steps of its own, time 0 of the new filter is still one that has passed."""
    stays = [[0.999, 0.001], [0.001, 0.999]]
    forgets = [[0.5, 0.5], [0.5, 0.5]]
    settled = tpl.TemporalFilter(ALPHA, None, None).spend(0.9).settled()
    sides = tpl.Cycle([stays, forgets]), tpl.Cycle([forgets, forgets])
    with pytest.raises(ValueError, match="reaches 1.79795; give less, after what was spent"):
        tpl.TemporalFilter(ALPHA, *sides, floor=[0.0, 0.9], after=settled)
    assert tpl.TemporalFilter(ALPHA, *sides, floor=[0.0, 0.1], after=settled).remaining >= 0.1


def test_one_matrix_goes_on_with_the_floor_that_it_had():
    P = tpl.TransitionMatrix([[0.8, 0.2], [0.1, 0.9]])
    sides = P.reverse(), P
    floor = 0.999 * tpl.allocate_by_upper_bound(ALPHA, *sides)
    whole = tpl.TemporalFilter(ALPHA, *sides, floor=floor)
    whole.spend(whole.remaining).spend(floor, 20)
    rest = tpl.TemporalFilter(ALPHA, *sides, floor=0.999 * floor, after=whole.settled())
    assert rest.remaining == pytest.approx(whole.remaining, rel=5e-3)


def going_on(before, cycle, at):
    """A side from the last time before a change on: its first step is the earlier chain's."""
    p = len(cycle)
    steps = [cycle[(phase - 1) % p] for phase in range(p)]
    return tpl.Cycle(steps, first=[before.at(at - 1), *cycle.first])


def largest_floors_after(settled, backward, forward, shape):
    """The largest multiple of a shape that the filter takes as floors after what was spent."""
    low, high = 0.0, 2.0 * ALPHA
    for _ in range(40):
        middle = 0.5 * (low + high)
        try:
            tpl.TemporalFilter(ALPHA, backward, forward, floor=middle * shape, after=settled)
            low = middle
        except ValueError:
            high = middle
    return low * shape


def excess_after_a_change(rng):
    """The largest TPL of three paths over a change of the chain, less alpha, by the true matrices
    of each step; a floor that is lost fails."""
    n = int(rng.integers(2, 4))
    before, after = (
        tpl.Cycle([random_matrix(rng, n) for _ in range(rng.integers(1, 5))]) for _ in range(2)
    )
    law = before.laws()[0]
    backward = before.reverse()
    if rng.random() < 0.5:
        law = random_law(rng, n)
        backward = before.reverse(law)
    shape = rng.random(len(before)) * (rng.random(len(before)) < 0.8)
    shape[0] += 0.1
    floors = largest_floors(ALPHA, backward, before, shape) * rng.choice([0.0, 0.5, 1.0])
    account = tpl.TemporalFilter(ALPHA, backward, before, floor=floors)
    at = int(rng.integers(2, 8))
    spent = adversarial_path(rng, account, floors, at)
    law_at_change = law
    for matrix in before.over(at):
        law_at_change = law_at_change @ matrix.toarray()
    start = "any"
    if rng.random() < 0.5:
        start = law_at_change / law_at_change.sum()
    sides = going_on(backward, after.reverse(start), at), going_on(before, after, at)
    p = len(after)
    shape = rng.random(p) * (rng.random(p) < 0.8)
    shape[0] += 0.1
    settled = account.settled()
    floors = largest_floors_after(settled, *sides, shape) * rng.choice([0.0, 0.5, 1.0])
    largest = -np.inf
    for _ in range(3):
        horizon = int(rng.integers(3, 16))
        changed = tpl.TemporalFilter(ALPHA, *sides, floor=floors, after=settled)
        budgets = spent + adversarial_path(rng, changed, np.roll(floors, -1), horizon)
        forward = [*before.over(at), *after.over(horizon - 1)]
        whole = tpl.Cycle([forward[-1]], first=forward)
        tpls = extended_tpl(budgets, *true_steps(whole, law, len(budgets)))
        largest = max(largest, float(tpls.max()) / ALPHA - 1.0)
    return largest


@pytest.mark.parametrize("paths", [8, pytest.param(300, marks=pytest.mark.slow)])
def test_no_path_over_a_change_of_the_chain_leaks_more_than_alpha(paths):
    """Pauses before, over and after it, at each kind of start."""
    rng = np.random.default_rng(paths)
    assert max(excess_after_a_change(rng) for _ in range(paths)) <= 1e-12
