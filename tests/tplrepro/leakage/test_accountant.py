"""What every account of pure temporal leakage must satisfy, limits first, for every kind of
adversary."""

import copy
import os
import pickle
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import dp_accounting as dp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tplrepro as tpl
from tests.oracles import exact_loss, exact_tpl
from tests.tplrepro.leakage.matrices import FIG_3, matrices
from tests.work import lines_run, most_bytes

WEAK = [[0.6, 0.4], [0.3, 0.7]]


class Counted(tpl.PrivacyLossFunction):
    """A loss function that counts how often the recursion asks it."""

    calls = 0

    def at(self, alpha):
        self.calls += 1
        return super().at(alpha)


def test_an_account_of_nothing_leaks_nothing():
    account = tpl.TemporalAccountant(WEAK, WEAK)
    assert (len(account), account.ledger, account.tpl.shape, account.leakage.user_level) == (
        0,
        (),
        (0,),
        0,
    )
    with pytest.raises(ValueError, match="0 <= first <= last < 0"):
        account.leakage.composed(0, 0)
    with pytest.raises(ValueError, match="at most the number of time points 0"):
        account.leakage.w_event(1)
    assert account.skip(2).tpl.tolist() == [0.0, 0.0]
    assert account.compose(np.float32(0.5), count=np.int64(2)).ledger[-1] == (0.5, 2)
    assert repr(account) == "TemporalAccountant(2 releases, 1 nat spent)"


budgets = st.one_of(
    st.sampled_from([0.1, 1.0]), st.floats(-3, 1).map(lambda exponent: 10.0**exponent)
)


def test_what_is_read_or_copied_cannot_change_the_account():
    account = tpl.TemporalAccountant(WEAK, WEAK).compose(0.3, 2)
    for values in (
        account.epsilons,
        account.bpl,
        account.leakage.fpl,
        pickle.loads(pickle.dumps(account)).bpl,
    ):
        with pytest.raises(ValueError, match="read-only"):
            values[:] = 99
    expected = tpl.temporal_privacy_leakage([0.3] * 3, WEAK, WEAK).tpl
    for _ in ("before", "after reading"):
        for other in (
            copy.copy(account),
            copy.deepcopy(account),
            pickle.loads(pickle.dumps(account)),
        ):
            np.testing.assert_allclose(other.compose(0.3).tpl, expected, rtol=4e-16)
        assert account.tpl.size == 2


def test_threads_that_compose_copy_and_read_lose_no_release():
    def act(k):
        return (
            shared.compose(0.01 + k % 3 / 100, 2)
            if k % 4
            else (copy.copy(shared).tpl, shared.remaining)
        )

    shared = tpl.TemporalAccountant(WEAK, WEAK, alpha=1.0)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(act, range(200)))
    assert len(shared) == 300
    plain = tpl.TemporalAccountant(WEAK, WEAK)
    for entry in shared.ledger:
        plain.compose(*entry)
    np.testing.assert_allclose(shared.tpl, plain.tpl, rtol=4e-16)


def test_a_fork_while_another_thread_spends_leaves_a_child_that_can_spend(monkeypatch):
    def slow(self, epsilon, count=1):
        monkeypatch.undo()
        reached.set()
        time.sleep(0.3)
        return spend(self, epsilon, count)

    shared = tpl.TemporalAccountant(WEAK, WEAK, alpha=1.0)
    spend = tpl.TemporalFilter.spend
    reached = threading.Event()
    monkeypatch.setattr(tpl.TemporalFilter, "spend", slow)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(shared.compose, 0.1)
        reached.wait()
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(120)
            try:
                shared.compose(0.1)
            finally:
                os._exit(shared.ledger != ((0.1, 1), (0.1, 1)))
        assert os.waitpid(child, 0)[1] == 0
    assert shared.ledger == ((0.1, 1),)


def test_what_interrupts_a_spending_may_not_spend(monkeypatch):
    """A handler's budget would be forgotten: the call that it interrupts stores its own state."""
    account = tpl.TemporalAccountant(WEAK, WEAK, alpha=1.0)
    with monkeypatch.context() as patched:
        patched.setattr(tpl.TemporalFilter, "spend", lambda *words: account.compose(0.1))
        with pytest.raises(RuntimeError, match="taken by the call that a signal interrupted"):
            account.compose(0.2)
    assert account.compose(0.3).ledger == ((0.3, 1),)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0,), "greater than 0, found 0"),
        ((np.nan,), "found nan"),
        ((np.inf,), "found inf"),
        (([0.1, 0.2],), "one number.*compose each budget in turn"),
        ((dp.GaussianDpEvent(1.0),), "found GaussianDpEvent"),
        ((0.1, 0), "count must be at least 1"),
        ((0.1, 1.5), "count must be a whole number"),
    ],
)
def test_a_failed_compose_leaves_the_account_unchanged(arguments, message):
    account = tpl.TemporalAccountant(FIG_3, WEAK).compose(0.2, count=3)
    for epsilons in ([0.2] * 3, [0.2] * 3 + [0.1]):  # before and after reading
        with pytest.raises(ValueError, match=message):
            account.compose(*arguments)
        np.testing.assert_allclose(
            account.tpl, tpl.temporal_privacy_leakage(epsilons, FIG_3, WEAK).tpl, rtol=4e-16
        )
        account.compose(0.1)
    assert account.ledger == ((0.2, 3), (0.1, 1), (0.1, 1))


@given(
    st.tuples(matrices(3), matrices(3)),
    st.lists(st.tuples(budgets, st.booleans()), max_size=6),
    st.floats(0, 1),
)
@settings(max_examples=25)
def test_what_remains_is_the_largest_next_budget_within_alpha(sides, steps, share):
    """Not with 50 digits does any TPL exceed alpha after it, and a little more is too much."""
    account = tpl.TemporalAccountant(*sides)
    for epsilon, pause in steps:
        account.compose(epsilon)
        if pause:
            account.skip()
    alpha = max([*account.tpl, 0.01]) * (0.5 + 2 * share)
    rest = account.budget_within(alpha)
    if rest > 0:
        assert copy.copy(account).compose(rest).tpl.max() <= alpha
        if not any(pause for _, pause in steps):
            assert max(exact_tpl([*account.epsilons, rest], *map(exact_loss, sides))) <= alpha
    assert copy.copy(account).compose(rest * (1 + 1e-9) + 1e-12 * alpha).tpl.max() > alpha * (
        1 - 1e-13
    )


def test_reading_evaluates_each_step_once_and_composing_none():
    """L'(0) = 0.3 here, so a change of the last budget is below one ulp some 30 time points
    back."""
    sides = Counted(WEAK), Counted(WEAK)
    account = tpl.TemporalAccountant(*sides)
    for epsilon in np.random.default_rng(4).uniform(0.1, 0.5, 5000):
        account.compose(epsilon)
    # A release is appended to what there is, of which no copy is made.
    other = copy.copy(account)
    assert lines_run(lambda: other.compose(0.1)) < 100
    assert min(most_bytes(lambda: other.compose(0.1)) for _ in range(3)) < 8 * 5000
    assert [side.calls for side in sides] == [0, 0]
    for name in ("tpl", "bpl", "fpl", "epsilons", "leakage"):  # one reading is enough for all
        getattr(account, name)
    assert [side.calls for side in sides] == [4999, 4999]
    _ = account.compose(0.3).tpl
    assert sides[0].calls == 5000
    assert 10 < sides[1].calls - 4999 < 60
    assert account.compose(0.3, count=10**6).tpl.size == 5001 + 10**6
    assert max(side.calls for side in sides) < 5200


readings = st.sampled_from(["", "bpl", "fpl", "tpl", "epsilons", "leakage"])


@given(st.tuples(matrices(3), matrices(3)), st.data())
@settings(max_examples=25)
def test_any_interleaving_of_releases_pauses_and_readings_leaks_what_is_computed_from_scratch(
    sides, data
):
    """The account holds what a computation from scratch gives, and its leakages only grow."""
    account, before = tpl.TemporalAccountant(*sides), np.zeros(0)
    steps = data.draw(
        st.lists(
            st.tuples(budgets | st.none(), st.integers(1, 6), readings), min_size=1, max_size=6
        )
    )
    for budget, count, reading in steps:
        account.compose(budget, count) if budget else account.skip(count)
        if reading == "tpl":
            assert np.all(account.tpl[: before.size] >= before * (1 - 1e-9))
            before = account.tpl
        elif reading:
            getattr(account, reading)
    assert account.ledger == tuple((budget or 0.0, count) for budget, count, _ in steps)
    spent = np.repeat([budget or 0.0 for budget, *_ in steps], [count for _, count, _ in steps])
    times = np.flatnonzero(spent)
    if times.size:
        expected = tpl.leakage_at_all_times(spent[times], *sides, times=times, horizon=len(account))
        for name in ("epsilons", "bpl", "fpl", "tpl"):
            # The backward pass stops below one ulp, so a value may be one ulp behind where a binade
            # ends.
            rtol = 4e-16 if times.size == len(account) else 1e-12
            np.testing.assert_allclose(
                getattr(account, name), getattr(expected, name), rtol=rtol, err_msg=name
            )


@given(
    seed=st.integers(0, 10**6),
    start=st.sampled_from(["habit", "known", "any"]),
    pauses=st.booleans(),
    data=st.data(),
)
@settings(max_examples=25, deadline=None)
def test_an_account_of_a_cycle_read_at_any_time_leaks_what_is_computed_from_scratch(
    seed, start, pauses, data
):
    rng = np.random.default_rng(seed)
    steps = [tpl.TransitionMatrix.random(3, rng=rng) for _ in range(rng.integers(1, 5))]
    cycle = tpl.Cycle(steps)
    backward = cycle.reverse([0.7, 0.2, 0.1] if start == "known" else start)
    account = tpl.TemporalAccountant(backward, cycle)
    spent = []
    for _ in range(data.draw(st.integers(1, 5))):
        budget = float(rng.uniform(0.05, 0.5))
        count = int(rng.integers(1, 400))
        account.compose(budget, count)
        spent += [budget] * count
        if pauses:
            account.skip(3)
            spent += [0.0] * 3
        if data.draw(st.booleans()):
            assert account.tpl.size == len(spent)
            account = data.draw(st.sampled_from([copy.copy, copy.deepcopy, repickled]))(account)
    times = np.flatnonzero(spent)
    expected = tpl.leakage_at_all_times(
        np.array(spent)[times], backward, cycle, times=times, horizon=len(spent)
    )
    for name in ("epsilons", "bpl", "fpl", "tpl"):
        found = getattr(account, name)
        np.testing.assert_allclose(found, getattr(expected, name), rtol=1e-12, err_msg=name)


def repickled(account):
    return pickle.loads(pickle.dumps(account))


def test_an_account_of_a_cycle_with_a_level_keeps_it():
    cycle = tpl.Cycle([WEAK, [[0.9, 0.1], [0.2, 0.8]], np.eye(2)])
    account = tpl.TemporalAccountant(cycle.reverse(), cycle, alpha=1.0, floor=[0.05, 0.0, 0.1])
    account.compose(0.3).skip(4).compose(0.05).compose(account.remaining)
    plain = tpl.TemporalAccountant(cycle.reverse(), cycle)
    for epsilon, count in account.ledger:
        plain.compose(epsilon, count) if epsilon else plain.skip(count)
    assert plain.budget_within(1.0, floor=[0.05, 0.0, 0.1]) == account.remaining
    assert plain.budget_within(1.0) >= account.remaining
    account.skip()  # the phase that keeps nothing
    account.skip()  # the phase that keeps nothing
    account.compose(account.remaining)
    assert account.tpl.max() <= 1.0
