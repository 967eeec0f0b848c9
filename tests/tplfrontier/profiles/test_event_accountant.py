"""What an account of releases with any noise must satisfy, limits first."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import dp_accounting as dp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tplfrontier as tf
import tplrepro as tpl
from tests.tplrepro.leakage.matrices import FIG_3, matrices

WEAK = [[0.6, 0.4], [0.3, 0.7]]


def test_an_account_of_nothing_leaks_nothing():
    account = tf.EventAccountant(WEAK, WEAK)
    assert account.epsilon(1e-6).shape == account.delta(0.0).shape == (0,)
    with pytest.raises(ValueError, match="events must hold at least one release, found none"):
        _ = account.profile
    account.compose(dp.NoOpDpEvent()).skip()
    assert (
        account.epsilon(1e-6).tolist()
        == account.delta(0.0).tolist()
        == account.tpl.tolist()
        == [0.0, 0.0]
    )
    for delta in (0.0, 1.0, np.nan):
        with pytest.raises(ValueError, match="delta must be greater than 0 and less than 1"):
            account.epsilon(delta)
    assert repr(account.compose(0.5, 2)) == "EventAccountant(2 releases, 1 nat spent)"


def test_what_is_read_or_copied_cannot_change_the_account():
    parts = [dp.GaussianDpEvent(4.0)]
    account = tf.EventAccountant(WEAK, WEAK).compose(dp.ComposedDpEvent(parts), 2)
    parts.append(dp.NonPrivateDpEvent())
    account.ledger[0][0].events.clear()
    for values in (
        account.epsilons,
        account.bpl,
        account.leakage.fpl,
        pickle.loads(pickle.dumps(account)).bpl,
    ):
        with pytest.raises(ValueError, match="read-only"):
            values[:] = 99
    expected = tf.temporal_privacy_profile(
        [(dp.GaussianDpEvent(4.0), 3)], WEAK, WEAK, grid=1e-3
    ).epsilon(1e-6)
    for _ in ("before", "after reading"):
        for other in (
            copy.copy(account),
            copy.deepcopy(account),
            pickle.loads(pickle.dumps(account)),
        ):
            found = other.compose(dp.GaussianDpEvent(4.0)).epsilon(1e-6)
            np.testing.assert_allclose(found, expected, rtol=1e-9)
        assert account.epsilon(1e-6).size == 2


def test_threads_that_compose_copy_and_read_lose_no_release():
    def act(k):
        return (
            shared.compose(0.1 + k % 3 / 10, 2)
            if k % 4
            else (copy.copy(shared).epsilon(1e-6), shared.profile)
        )

    shared = tf.EventAccountant(WEAK, WEAK).compose(dp.GaussianDpEvent(4.0))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(act, range(60)))
    expected = tf.temporal_privacy_profile(shared.ledger, WEAK, WEAK, grid=1e-3).epsilon(1e-6)
    np.testing.assert_allclose(shared.epsilon(1e-6), expected, rtol=1e-7)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0,), "greater than 0, found 0"),
        (([0.1, 0.2],), "one number.*compose each budget in turn"),
        ((dp.GaussianDpEvent(0.0),), "noise_multiplier.*greater than 0, found 0"),
        (
            (dp.ComposedDpEvent([dp.UnsupportedDpEvent()]),),
            "an event must be.*found UnsupportedDpEvent",
        ),
        ((dp.GaussianDpEvent(1.0), 0), "count must be at least 1"),
    ],
)
def test_a_failed_compose_leaves_the_account_unchanged(arguments, message):
    account = tf.EventAccountant(FIG_3, WEAK).compose(0.2, count=3)
    with pytest.raises(ValueError, match=message):
        account.compose(*arguments)
    assert account.ledger == ((0.2, 3),)


EVENTS = [
    dp.GaussianDpEvent(4.0),
    dp.LaplaceDpEvent(10.0),
    dp.RandomizedResponseDpEvent(0.9, 3),
    0.2,
]
EVENTS += [
    dp.PoissonSampledDpEvent(0.3, dp.GaussianDpEvent(2.0)),
    dp.ComposedDpEvent([dp.GaussianDpEvent(6.0)] * 2),
]


releases = st.sampled_from([*EVENTS, None])
readings = st.sampled_from(["", "bpl", "fpl", "tpl", "epsilons", "leakage", "profile"])


@given(st.tuples(matrices(3), matrices(3)), st.data())
@settings(max_examples=25)
def test_any_interleaving_of_releases_pauses_and_readings_leaks_what_is_computed_from_scratch(
    sides, data
):
    """The account holds what a computation from scratch gives, and its leakages only grow."""
    account, largest, before = tf.EventAccountant(*sides, grid=1e-3), [], np.zeros((2, 0))
    steps = data.draw(
        st.lists(st.tuples(releases, st.integers(1, 6), readings), min_size=1, max_size=6)
    )
    for release, count, reading in steps:
        if release is None:
            account.skip(count)
        else:
            account.compose(release, count)
            largest += tf.EventAccountant(None, None).compose(release, count).epsilons.tolist()
        if reading == "profile":
            after = np.array([account.tpl, account.epsilon(1e-5)])
            assert np.all(after[:, : before.shape[1]] >= before * (1 - 1e-9))
            before = after
        elif reading:
            getattr(account, reading)
    assert account.ledger == tuple(
        (0.0 if release is None else release, count) for release, count, _ in steps
    )
    times = np.flatnonzero(
        np.repeat([release is not None for release, *_ in steps], [n for _, n, _ in steps])
    )
    if not times.size:
        return
    bounded = np.minimum(largest, 1e300)
    expected = tpl.leakage_at_all_times(bounded, *sides, times=times, horizon=len(account))
    exact = times.size == len(account) and bounded.max() < 1e300
    for name in ("epsilons", "bpl", "fpl", "tpl"):
        finite = np.where(getattr(expected, name) < 1e200, getattr(expected, name), np.inf)
        # The backward pass stops below one ulp, so a value may be one ulp behind where a binade
        # ends.
        np.testing.assert_allclose(
            getattr(account, name), finite, rtol=4e-16 if exact else 1e-12, err_msg=name
        )
    profile = tf.temporal_privacy_profile([step[:2] for step in steps], *sides, grid=1e-3)
    np.testing.assert_allclose(account.epsilon(1e-5), profile.epsilon(1e-5), rtol=1e-7)
    np.testing.assert_allclose(account.delta(0.3), profile.delta(0.3), rtol=1e-7, atol=1e-12)
    assert np.all(account.epsilon(1e-12) <= account.tpl + 1e-12)  # rounded up


def test_no_pure_leakage_is_finite_at_an_event_without_one_and_none_is_infinite_elsewhere():
    """CHAIN tells no more than log 9 about the next time, whatever is released."""
    chain = [[0.9, 0.1], [0.1, 0.9]]
    account = (
        tf.EventAccountant(chain, chain)
        .compose(0.1, 2)
        .compose(dp.GaussianDpEvent(2.0))
        .compose(0.3)
    )
    assert account.epsilons.tolist() == [0.1, 0.1, np.inf, 0.3]
    assert account.bpl[2:] == pytest.approx([np.inf, np.log(9) + 0.3])
    assert account.fpl[1:3] == pytest.approx([np.log(9) + 0.1, np.inf])
    assert np.isinf(account.tpl).tolist() == [False, False, True, False]
    assert (account.leakage.w_event(2), account.leakage.user_level, account.budget_within(5.0)) == (
        np.inf,
        np.inf,
        0.0,
    )


def test_one_more_release_recomputes_only_the_profiles_that_change(monkeypatch):
    composed, compose = [], tf.PrivacyProfile.compose
    monkeypatch.setattr(
        tf.PrivacyProfile, "compose", lambda *parts: composed.append(1) or compose(*parts)
    )
    account = tf.EventAccountant(WEAK, WEAK)
    for multiplier in np.random.default_rng(7).uniform(3.0, 6.0, 120).tolist():
        account.compose(dp.GaussianDpEvent(multiplier))
    first = account.epsilon(1e-6)
    composed.clear()
    assert account.epsilon(1e-5).max() < first.max()
    assert composed == []
    later = account.compose(dp.GaussianDpEvent(3.0)).epsilon(1e-6)
    assert 10 < len(composed) < 150  # 1 backward, and some 30 forward and 60 for both
    np.testing.assert_allclose(later[:70], first[:70], rtol=1e-9)
    assert later[119] > first[119] * 1.01


@pytest.mark.parametrize("sides", [(None, None), (FIG_3, WEAK), (np.eye(2), np.eye(2))])
@pytest.mark.parametrize(
    ("noise", "delta"), [(None, 1e-5), (dp.GaussianDpEvent, 1e-5), (dp.LaplaceDpEvent, 0)]
)
def test_what_remains_at_any_delta_is_the_largest_next_release_within_alpha(sides, noise, delta):
    account = tf.EventAccountant(*sides).compose(dp.LaplaceDpEvent(5.0), 3).compose(0.1)

    def worst(size):
        later = copy.copy(account).compose(size if noise is None else noise(size))
        return (later.epsilon(delta) if delta else later.tpl).max()

    def largest(alpha, delta=delta):
        return (
            account.least_noise(alpha, delta, noise)
            if noise
            else account.budget_within(alpha, delta)
        )

    size = largest(1.0)
    assert worst(size) <= 1.0 < worst(size * (1.002 if noise is None else 0.998))
    assert largest(0.05) == (0.0 if noise is None else np.inf)
    if noise is None:
        assert size >= account.budget_within(1.0) * 0.999
    for wrong in (-1e-5, 1.0, np.nan):
        with pytest.raises(ValueError, match="delta must be"):
            largest(1.0, wrong)


def test_plans_share_delta():
    account = tf.EventAccountant(WEAK, WEAK).compose(0.1)
    assert account.budget_within(1.0, 1e-6, plans=4) == account.budget_within(1.0, 2.5e-7)
    assert account.least_noise(1.0, 1e-6, dp.GaussianDpEvent, plans=4) == account.least_noise(
        1.0, 2.5e-7, dp.GaussianDpEvent
    )
    with pytest.raises(ValueError, match="plans must be"):
        account.budget_within(1.0, plans=0)


def test_the_grid_follows_the_weakest_release():
    account = tf.EventAccountant(np.eye(2), None).compose(dp.GaussianDpEvent(4.0))
    coarse = tf.EventAccountant(np.eye(2), None, grid=1e-3).compose(dp.GaussianDpEvent(4.0))
    assert account.epsilon(1e-6).tolist() == coarse.epsilon(1e-6).tolist()
    exact = dp.get_epsilon_gaussian(1 / np.sqrt(4.0**-2 + 100 * 1000.0**-2), 1e-6)
    found, rough = (
        one.compose(dp.GaussianDpEvent(1000.0), 100).epsilon(1e-6)[-1] for one in (account, coarse)
    )
    assert exact <= found < exact * 1.0001 < rough


@pytest.mark.parametrize("epsilon", [800.0, 1e7, 1e30])
def test_an_account_continues_after_a_release_that_hides_nothing(epsilon):
    account = tf.EventAccountant(WEAK, None).compose(epsilon)
    assert account.epsilon(1e-6)[0] == pytest.approx(epsilon)
    assert account.compose(0.1).epsilon(1e-6)[1] >= account.epsilons[1]


def test_after_a_release_without_a_pure_budget_none_is_left():
    account = tf.EventAccountant(WEAK, WEAK).compose(dp.GaussianDpEvent(1.0)).skip(2)
    assert account.budget_within(1.0) == 0.0
    assert account.ledger == ((dp.GaussianDpEvent(1.0), 1), (0.0, 2))


def test_noise_beyond_8192_is_no_answer_and_budgets_below_their_8192nd_part_are_none():
    account = tf.EventAccountant(None, None)
    assert account.least_noise(1e-5, 1e-9, dp.GaussianDpEvent) == np.inf
    # a later release of everything but a 4,000th or a 12,000th part of the level is left
    for left, is_some in ((1.0 / 4000.0, True), (1.0 / 12000.0, False)):
        spent = tf.EventAccountant(np.eye(2), None).compose(1.0 - left)
        assert (spent.budget_within(1.0, 1e-300) > 0.0) == is_some


def test_a_release_of_all_that_is_allowed_leaves_others_theirs():
    """Without correlation each time has a level of its own."""
    account = tf.EventAccountant(None, None).compose(1.0)
    level = account.epsilon(1e-6).item()
    assert account.budget_within(level, 1e-6) == pytest.approx(1.0, rel=2e-3)


@pytest.mark.parametrize("alpha", [0.05, 0.7, 30.0])
def test_the_least_noise_of_one_release_is_that_of_a_normal_shift(alpha):
    """Multipliers far above 1, about 1 and far below it."""
    noise = tf.EventAccountant(None, None).least_noise(alpha, 1e-5, dp.GaussianDpEvent)
    assert noise == pytest.approx(1.0 / tf.gaussian_mu(alpha, 1e-5), rel=2e-3)
