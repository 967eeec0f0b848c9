"""What every account of temporal leakage must satisfy, limits first, for every kind of adversary."""

import time
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tplrepro as tpl
from tests.leakage.matrices import FIG_3, KINDS, random_matrix

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


class Counted:
    """A loss function that counts how often the recursion asks it."""

    def __init__(self, P):
        self.function = tpl.PrivacyLossFunction(P)
        self.calls = 0
        at = self.function.at

        def counted(alpha):
            self.calls += 1
            return at(alpha)

        self.function.at = counted

    def since(self):
        calls, self.calls = self.calls, 0
        return calls


@adversary
def test_nothing_composed(sides):
    account = tpl.TemporalAccountant(*sides)
    assert len(account) == 0
    assert account.ledger == ()
    for values in (account.epsilons, account.bpl, account.fpl, account.tpl, account.leakage.tpl):
        assert values.shape == (0,)
    assert account.leakage.user_level == 0
    assert repr(account) == "TemporalAccountant(0 releases, 0 nats spent)"
    with pytest.raises(ValueError, match="needs 0 <= first <= last < 0"):
        account.leakage.composed(0, 0)
    with pytest.raises(ValueError, match="w must be at most the number of time points 0, found 1"):
        account.leakage.w_event(1)


@adversary
def test_one_release(sides):
    account = tpl.TemporalAccountant(*sides).compose(0.7)
    assert account.epsilons.tolist() == account.bpl.tolist() == account.fpl.tolist() == account.tpl.tolist() == [0.7]
    assert account.ledger == ((0.7, 1),)
    assert repr(account) == "TemporalAccountant(1 releases, 0.7 nats spent)"


@adversary
def test_compose_returns_the_account(sides):
    account = tpl.TemporalAccountant(*sides)
    assert account.compose(0.1) is account
    assert account.compose(0.1, count=3) is account
    assert len(account) == 4


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
@pytest.mark.parametrize("horizon", [2, 10, 300])
def test_reading_after_every_release_gives_the_same_as_reading_once(sides, horizon):
    epsilons = np.random.default_rng(horizon).uniform(0.01, 0.5, horizon)
    account = tpl.TemporalAccountant(*sides)
    for t, epsilon in enumerate(epsilons):
        account.compose(epsilon)
        assert account.tpl.shape == (t + 1,)
    assert_same(account, epsilons, sides)


@st.composite
def histories(draw):
    """An adversary, and releases with readings of any kind between them."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))

    def side(kind):
        return None if kind is None else random_matrix(rng, kind, 4)

    kinds = st.sampled_from([*KINDS, None])
    budget = st.one_of(st.sampled_from([0.1, 1.0]), st.floats(-3, 1).map(lambda exponent: 10.0**exponent))
    step = st.tuples(budget, st.integers(1, 40), st.sampled_from(["", "bpl", "fpl", "tpl", "epsilons", "leakage"]))
    return (side(draw(kinds)), side(draw(kinds))), draw(st.lists(step, min_size=1, max_size=12))


@given(histories())
@settings(max_examples=80)
def test_any_interleaving_of_releases_and_readings(history):
    sides, steps = history
    account = tpl.TemporalAccountant(*sides)
    epsilons = []
    for epsilon, count, reading in steps:
        account.compose(epsilon, count)
        epsilons += [epsilon] * count
        if reading:
            getattr(account, reading)
    assert account.ledger == tuple((epsilon, count) for epsilon, count, _ in steps)
    assert_same(account, epsilons, sides)


@given(histories())
@settings(max_examples=20)
def test_leakage_only_grows_as_releases_are_added(history):
    sides, steps = history
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
        ((0,), "epsilon must be a finite privacy budget in nats, greater than 0; found 0"),
        ((-1.0,), "greater than 0; found -1"),
        ((np.nan,), "greater than 0; found nan"),
        ((np.inf,), "greater than 0; found inf"),
        (([0.1, 0.2],), r"epsilon must be one number, found shape \(2,\); compose each budget in turn"),
        ((0.1, 0), "count must be at least 1 time point, found 0"),
        ((0.1, -3), "count must be at least 1 time point, found -3"),
        ((0.1, 1.5), "count must be a whole number of time points, found 1.5; give an int"),
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


def test_a_bad_matrix_is_named_at_once():
    with pytest.raises(ValueError, match="rows must sum to 1"):
        tpl.TemporalAccountant(backward=[[0.8, 0.1], [0.2, 0.8]])


def test_compose_evaluates_nothing_and_a_second_reading_neither():
    backward, forward = Counted(FIG_3), Counted(WEAK)
    account = tpl.TemporalAccountant(backward.function, forward.function)
    for k in range(1000):
        account.compose(0.1 + 0.01 * (k % 7))
    assert backward.since() == forward.since() == 0
    _ = account.tpl
    assert backward.since() == forward.since() == 999
    for name in ("tpl", "bpl", "fpl", "epsilons", "leakage"):
        getattr(account, name)
    assert backward.since() == forward.since() == 0


def test_the_backward_pass_stops_where_nothing_changes_any_more():
    """L'(0) = 0.3 here, so a change of the last budget is below one ulp some 30 time points back."""
    backward, forward = Counted(WEAK), Counted(WEAK)
    account = tpl.TemporalAccountant(backward.function, forward.function)
    epsilons = np.random.default_rng(4).uniform(0.1, 0.5, 5000)
    for epsilon in epsilons:
        account.compose(epsilon)
    _ = account.tpl
    backward.since(), forward.since()
    account.compose(0.3)
    _ = account.tpl
    assert backward.since() == 1
    assert 10 < forward.since() < 60
    assert_same(account, [*epsilons, 0.3], (WEAK, WEAK))


def test_equal_budgets_stop_at_their_fixed_point():
    backward, forward = Counted(WEAK), Counted(WEAK)
    account = tpl.TemporalAccountant(backward.function, forward.function).compose(0.3, count=100_000)
    assert account.tpl.shape == (100_000,)
    assert backward.since() < 100
    assert forward.since() < 100


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
