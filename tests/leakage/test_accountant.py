"""What every account of temporal leakage must satisfy, limits first, for every kind of adversary."""

import time
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tplrepro as tpl
from tests.leakage.matrices import FIG_3, matrices

WEAK = [[0.6, 0.4], [0.3, 0.7]]
ADVERSARIES = {
    "knows nothing": (None, None),
    "knows the past": (FIG_3, None),
    "knows the future": (None, FIG_3),
    "knows both": (FIG_3, WEAK),
    "knows all": (np.eye(2), np.eye(2)),
    "knows independence": ([[0.5, 0.5]] * 2, [[0.5, 0.5]] * 2),
}
adversary = pytest.mark.parametrize("sides", ADVERSARIES.values(), ids=ADVERSARIES)


def assert_same(account, epsilons, sides):
    """The account holds what a computation from scratch gives."""
    expected = tpl.temporal_privacy_leakage(epsilons, *sides)
    assert len(account) == len(epsilons)
    np.testing.assert_array_equal(account.epsilons, expected.epsilons)
    # The backward pass stops below one ulp, so a value may be one ulp behind where a binade ends.
    for name in ("bpl", "fpl", "tpl"):
        np.testing.assert_allclose(getattr(account, name), getattr(expected, name), rtol=4e-16, err_msg=name)
    np.testing.assert_allclose(account.leakage.user_level, expected.user_level, rtol=1e-15)


class Counted(tpl.PrivacyLossFunction):
    """A loss function that counts how often the recursion asks it."""

    calls = 0

    def at(self, alpha):
        self.calls += 1
        return super().at(alpha)


@pytest.fixture
def counted():
    """An account against an adversary who knows both sides, and `calls()`: those of both sides since last asked."""
    sides = Counted(WEAK), Counted(WEAK)

    def calls():
        since = [side.calls for side in sides]
        for side in sides:
            side.calls = 0
        return since

    return tpl.TemporalAccountant(*sides), calls


@adversary
def test_nothing_composed(sides):
    account = tpl.TemporalAccountant(*sides)
    assert (len(account), account.ledger) == (0, ())
    for values in (account.epsilons, account.bpl, account.fpl, account.tpl, account.leakage.tpl):
        assert values.shape == (0,)
    assert account.leakage.user_level == 0
    assert repr(account) == "TemporalAccountant(0 releases, 0 nats spent)"
    with pytest.raises(ValueError, match="0 <= first <= last < 0"):
        account.leakage.composed(0, 0)
    with pytest.raises(ValueError, match="at most the number of time points 0"):
        account.leakage.w_event(1)


@adversary
def test_one_release(sides):
    account = tpl.TemporalAccountant(*sides)
    assert account.compose(0.7) is account
    assert account.epsilons.tolist() == account.bpl.tolist() == account.fpl.tolist() == account.tpl.tolist() == [0.7]
    assert account.ledger == ((0.7, 1),)
    assert repr(account) == "TemporalAccountant(1 releases, 0.7 nats spent)"


@adversary
def test_composing_raises_the_past_and_leaves_the_backward_leakage(sides):
    account = tpl.TemporalAccountant(*sides).compose(0.3, count=5)
    bpl, fpl, tpl_before = account.bpl, account.fpl, account.tpl
    account.compose(0.2)
    assert account.bpl[:5].tolist() == bpl.tolist()
    assert np.all(account.fpl[:5] >= fpl)
    assert np.all(account.tpl[:5] >= tpl_before)
    depends = sides[1] is not None and not tpl.PrivacyLossFunction(sides[1]).is_zero
    assert np.all(account.fpl[:5] > fpl) == depends


@pytest.mark.parametrize("epsilon", [1, np.float64(1), np.float32(1), np.array(1.0), np.int64(1), True])
def test_any_kind_of_number_is_one_budget(epsilon):
    account = tpl.TemporalAccountant().compose(epsilon, count=np.int64(2))
    assert account.ledger == ((1.0, 2),)
    assert type(account.ledger[0][0]) is float


@adversary
def test_a_count_is_that_many_releases(sides):
    at_once = tpl.TemporalAccountant(*sides).compose(0.1, count=6).compose(0.4, count=2)
    one_by_one = tpl.TemporalAccountant(*sides)
    for epsilon in [0.1] * 6 + [0.4] * 2:
        one_by_one.compose(epsilon)
    assert at_once.tpl.tolist() == one_by_one.tpl.tolist()
    assert at_once.ledger == ((0.1, 6), (0.4, 2))
    assert len(one_by_one.ledger) == 8
    assert_same(at_once, [0.1] * 6 + [0.4] * 2, sides)


@adversary
def test_reading_after_every_release_gives_the_same_as_reading_once(sides):
    epsilons = np.random.default_rng(300).uniform(0.01, 0.5, 300)
    account = tpl.TemporalAccountant(*sides)
    for t, epsilon in enumerate(epsilons):
        assert account.compose(epsilon).tpl.shape == (t + 1,)
    assert_same(account, epsilons, sides)


budgets = st.one_of(st.sampled_from([0.1, 1.0]), st.floats(-3, 1).map(lambda exponent: 10.0**exponent))
readings = st.sampled_from(["", "bpl", "fpl", "tpl", "epsilons", "leakage"])
histories = st.lists(st.tuples(budgets, st.integers(1, 40), readings), min_size=1, max_size=12)


@given(st.tuples(matrices(4), matrices(4)), histories)
@settings(max_examples=80)
def test_any_interleaving_of_releases_and_readings(sides, steps):
    account = tpl.TemporalAccountant(*sides)
    epsilons = []
    for epsilon, count, reading in steps:
        account.compose(epsilon, count)
        epsilons += [epsilon] * count
        if reading:
            getattr(account, reading)
    assert account.ledger == tuple((epsilon, count) for epsilon, count, _ in steps)
    assert_same(account, epsilons, sides)


@given(st.tuples(matrices(4), matrices(4)), histories)
@settings(max_examples=20)
def test_leakage_only_grows_as_releases_are_added(sides, steps):
    account = tpl.TemporalAccountant(*sides)
    readings = [account.compose(epsilon, count).tpl for epsilon, count, _ in steps]
    for before, after in pairwise(readings):
        assert np.all(after[: before.size] >= before)


@adversary
def test_what_is_read_cannot_change_the_account(sides):
    account = tpl.TemporalAccountant(*sides).compose(0.1, count=3)
    expected = account.tpl.tolist()
    for values in (account.epsilons, account.bpl, account.fpl, account.leakage.bpl):
        with pytest.raises(ValueError, match="read-only"):
            values[:] = 99
    account.tpl[:] = 99
    account.compose(0.1)
    assert_same(account, [0.1] * 4, sides)
    assert account.leakage.composed(0, 0) >= expected[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0,), "greater than 0; found 0"),
        ((-1.0,), "greater than 0; found -1"),
        ((np.nan,), "found nan"),
        ((np.inf,), "found inf"),
        (([0.1, 0.2],), "one number.*compose each budget in turn"),
        ((0.1, 0), "count must be at least 1"),
        ((0.1, 1.5), "count must be a whole number"),
    ],
)
@pytest.mark.parametrize("read_before", [True, False])
def test_a_failed_compose_leaves_the_account_unchanged(arguments, message, read_before):
    account = tpl.TemporalAccountant(FIG_3, WEAK).compose(0.2, count=3)
    if read_before:
        _ = account.tpl
    with pytest.raises(ValueError, match=message):
        account.compose(*arguments)
    assert account.ledger == ((0.2, 3),)
    assert_same(account, [0.2] * 3, (FIG_3, WEAK))
    assert_same(account.compose(0.1), [0.2] * 3 + [0.1], (FIG_3, WEAK))


def test_compose_evaluates_nothing_and_a_second_reading_neither(counted):
    account, calls = counted
    for k in range(1000):
        account.compose(0.1 + 0.01 * (k % 7))
    assert calls() == [0, 0]
    _ = account.tpl
    assert calls() == [999, 999]
    for name in ("tpl", "bpl", "fpl", "epsilons", "leakage"):
        getattr(account, name)
    assert calls() == [0, 0]


def test_the_backward_pass_stops_where_nothing_changes_any_more(counted):
    """L'(0) = 0.3 here, so a change of the last budget is below one ulp some 30 time points back."""
    account, calls = counted
    epsilons = np.random.default_rng(4).uniform(0.1, 0.5, 5000)
    for epsilon in epsilons:
        account.compose(epsilon)
    _, _ = account.tpl, calls()
    _ = account.compose(0.3).tpl
    backward, forward = calls()
    assert backward == 1
    assert 10 < forward < 60
    assert_same(account, [*epsilons, 0.3], (WEAK, WEAK))


def test_equal_budgets_stop_at_their_fixed_point(counted):
    account, calls = counted
    assert account.compose(0.3, count=100_000).tpl.shape == (100_000,)
    assert max(calls()) < 100


def test_composing_costs_the_same_however_long_the_account():
    account = tpl.TemporalAccountant(WEAK, WEAK).compose(0.1, count=10**6)
    _ = account.tpl
    started = time.perf_counter()
    for _ in range(10_000):
        account.compose(0.1)
    assert time.perf_counter() - started < 1  # 10,000 copies of the account would take minutes


@pytest.mark.slow
def test_a_million_releases_and_one_reading():
    account = tpl.TemporalAccountant(FIG_3, WEAK)
    budgets = np.random.default_rng(6).uniform(0.01, 0.2, 1000).tolist()
    started = time.perf_counter()
    for _ in range(1000):
        for epsilon in budgets:
            account.compose(epsilon)
    leakage = account.tpl
    assert time.perf_counter() - started < 10
    assert leakage.shape == (10**6,)
    assert np.all(leakage >= account.epsilons)
