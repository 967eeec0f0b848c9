"""The token bucket: its arithmetic against all intervals, its promise against adaptive policies."""

from itertools import product

import numpy as np
import pytest

import tplfrontier as tf
import tplrepro as tpl
from experiments.adaptive_gaussian import POLICIES, Bucket, Secret, TwoStates, simulate_delta
from tests.tplrepro.leakage.matrices import BACKWARD, FORWARD
from tplfrontier.budgets import gaussian_filter

CHAIN = tpl.TransitionMatrix([[0.8, 0.2], [0.3, 0.7]])


def filter_of(burst, alpha=1.0, delta=1e-6):
    return tf.GaussianFilter(alpha, delta, BACKWARD, FORWARD, burst=burst)


@pytest.fixture(scope="module")
def account():
    return filter_of(3.0)


def fresh(account):
    account.state = account.exhausted()._replace(level=0.0)
    return account


def largest_excess(budgets, account):
    """By how much the budgets of an interval exceed its cap, at most."""
    excesses = []
    for start in range(len(budgets)):
        for end in range(start, len(budgets)):
            cap = account.rate * (end - start + 1 + account.burst)
            excesses.append(sum(budgets[start : end + 1]) - cap)
    return max(excesses)


def test_no_interval_exceeds_its_cap(account):
    for seed in range(30):
        rng = np.random.default_rng(seed)
        account = fresh(account)
        budgets = []
        for _ in range(60):
            if rng.random() < 0.4:
                account.skip()
                budgets.append(0.0)
                continue
            multiplier = account.remaining
            if rng.random() < 0.5:
                multiplier = multiplier * rng.uniform(1.0, 3.0)
            account.spend(multiplier)
            budgets.append(multiplier**-2)
        assert largest_excess(budgets, account) <= 0.0


def test_what_remains_may_be_spent_and_no_more(account):
    rng = np.random.default_rng(0)
    account = fresh(account)
    for _ in range(2000):
        with pytest.raises(tpl.LeakageExceededError, match="noise multipliers must be at least"):
            account.spend(account.remaining * (1.0 - 1e-12))
        if rng.random() < 0.5:
            account.spend(account.remaining)
        else:
            account.skip(int(rng.integers(1, 9)))
        assert account.remaining <= account.floor


def test_the_floor_is_there_for_ever(account):
    account = fresh(account)
    account.spend(account.remaining)
    account.spend(account.floor, 10**8)
    assert account.remaining <= account.floor
    for _ in range(1000):
        account.spend(account.floor)
    account.state = account.exhausted(7)
    account.spend(account.floor, 10**6)


def test_many_releases_are_as_many_single_ones(account):
    for multiplier in (account.floor * 2.0, account.floor * 0.99):
        many = fresh(account).spend(5.6 * 2).spend(multiplier, 7).remaining
        single = fresh(account).spend(5.6 * 2)
        for _ in range(7):
            single.spend(multiplier)
        assert many == pytest.approx(single.remaining, rel=1e-12)


def test_nothing_is_spent_by_a_release_that_is_refused(account):
    account = fresh(account)
    before = account.state
    with pytest.raises(tpl.LeakageExceededError, match="release 4 of 9"):
        account.spend(account.remaining * 1.5, 9)
    assert account.state == before


def test_without_correlation_one_release_may_take_it_all():
    account = tf.GaussianFilter(1.0, 1e-6, None, None, burst=2.0)
    assert account.remaining == pytest.approx(1.0 / tf.gaussian_mu(1.0, 1e-6), rel=2e-3)
    assert account.floor == pytest.approx(account.remaining * np.sqrt(3.0), rel=1e-9)


def test_nothing_is_saved_unless_a_burst_is_given():
    account = tf.GaussianFilter(1.0, 1e-6, None, None)
    assert account.burst == 0.0
    assert account.skip(5).remaining == account.floor
    assert account.floor == pytest.approx(1.0 / tf.gaussian_mu(1.0, 1e-6), rel=2e-3)


def test_who_never_moves_has_no_rate():
    with pytest.raises(tpl.NoFiniteSupremumError, match="allocate_noise"):
        tf.GaussianFilter(1.0, 1e-6, np.eye(2), np.eye(2))


@pytest.mark.parametrize("sides", [("habit", None), (None, "habit")])
def test_what_lies_beyond_the_steps_that_are_followed_counts_as_known(monkeypatch, sides):
    habit = [[0.9, 0.1], [0.1, 0.9]]
    backward, forward = (habit if side else None for side in sides)
    whole = tf.GaussianFilter(1.0, 0.01, backward, forward)
    monkeypatch.setattr(gaussian_filter, "MOST_STEPS", 16)
    cut = tf.GaussianFilter(1.0, 0.01, backward, forward)
    assert cut.rate < 0.99 * whole.rate


@pytest.mark.parametrize(
    ("burst", "message"), [(-1.0, "burst must be at least 0"), (np.nan, "burst must be at least 0")]
)
def test_a_burst_out_of_range_is_refused(burst, message):
    with pytest.raises(ValueError, match=message):
        filter_of(burst)


def test_plans_within_the_caps_keep_the_level():
    """A constant plan at the floor, whose profile is exact up to its grid."""
    account = filter_of(0.0)
    from dp_accounting import GaussianDpEvent

    profile = tf.temporal_privacy_profile(
        GaussianDpEvent(account.floor), BACKWARD, FORWARD, horizon=100
    )
    assert profile.epsilon(1e-6).max() <= 1.0


def test_cycles_keep_the_level_at_each_phase(monkeypatch):
    monkeypatch.setattr(gaussian_filter, "FINE", 16)
    night = [[0.9, 0.1], [0.1, 0.9]]
    habits = tpl.Cycle([night, FORWARD])
    in_habit = tf.GaussianFilter(1.0, 1e-6, habits.reverse(), habits)
    at_any_start = tf.GaussianFilter(1.0, 1e-6, habits.reverse(start="any"), habits)
    always_night = tf.GaussianFilter(1.0, 1e-6, night, night)
    always_day = tf.GaussianFilter(1.0, 1e-6, BACKWARD, FORWARD)
    assert always_night.rate < in_habit.rate < always_day.rate
    assert at_any_start.rate <= in_habit.rate * 1.001


def check_policies(seed, draws):
    """The delta of adaptive policies is within that of the filter, by 4 standard errors."""
    rng = np.random.default_rng(seed)
    matrix = 0.96 * rng.dirichlet([1.0, 1.0], 2) + 0.02
    habit = tpl.TransitionMatrix(matrix)
    alpha = float(rng.choice([0.2, 0.5, 1.0]))
    delta = float(rng.choice([0.02, 0.1]))
    burst = float(rng.choice([0.0, 1.0, 4.0]))
    account = tf.GaussianFilter(alpha, delta, habit.reverse(), habit, burst=burst)
    chain = TwoStates.of_matrix(matrix, habit.stationary(), 6)
    largest = 0.0
    bucket = Bucket(account.rate, account.rate * burst)
    for policy, state in product(POLICIES, (0, 1)):
        secret = Secret(int(rng.integers(0, 6)), state)
        found = simulate_delta(chain, secret, alpha, bucket, policy, draws=draws, rng=rng)
        assert found.least <= delta
        largest = max(largest, found.mean / delta)
    return largest


def test_no_adaptive_policy_exceeds_delta():
    """Those of these seeds come next to delta."""
    largest = [check_policies(seed, draws=20_000) for seed in (2, 4, 5, 7)]
    assert min(largest) > 0.8


@pytest.mark.slow
def test_no_adaptive_policy_of_many_exceeds_delta():
    largest = [check_policies(seed, draws=100_000) for seed in (0, 1, 3, 6, *range(100, 160))]
    assert max(largest) > 0.6


def test_the_simulation_agrees_with_one_release():
    """A single time: the profile of two normal laws."""
    chain = TwoStates.of_matrix(CHAIN.toarray(), CHAIN.stationary(), 1)
    rng = np.random.default_rng(0)
    release = Bucket(1.0, 0.0)
    found = simulate_delta(chain, Secret(0, 1), 0.5, release, POLICIES[0], draws=200_000, rng=rng)
    assert abs(found.mean - tf.gaussian_delta(1.0, 0.5)) <= found.error
