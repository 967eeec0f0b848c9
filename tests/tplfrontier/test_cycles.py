"""Cycles of matrices in every function of `tplfrontier` that takes a matrix, against the list of
their steps, one matrix, and all outputs of small mechanisms enumerated."""

import pickle
from copy import copy

import dp_accounting
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tplfrontier as tf
import tplrepro as tpl
from tests.tplfrontier.profiles.test_temporal_profile import (
    LOSSES,
    hockey_stick,
    joint,
    known,
    largest_loss,
    profile_of,
    random_laws,
)
from tests.work import search_once
from tplfrontier.budgets import gaussian_noise
from tplfrontier.budgets.gaussian_noise import _Series

NIGHT, DAY = [[0.98, 0.02], [0.02, 0.98]], [[0.7, 0.3], [0.4, 0.6]]
HORIZON = 8
GAUSSIAN = dp_accounting.GaussianDpEvent(3.0)
RESPONSES = [[2.0, 1.0], [1.0, 3.0]]
LOG_LIKELIHOODS = np.random.default_rng(1).normal(size=(3, HORIZON, 2))

#: What each function finds for both sides, as arrays.
FOUND = {
    "profile": lambda b, f: tf.temporal_privacy_profile(GAUSSIAN, b, f, horizon=HORIZON).epsilon(
        1e-5
    ),
    "profile with pauses": lambda b, f: tf.temporal_privacy_profile(
        [GAUSSIAN, None, 0.3, None, None, 0.3, 0.3, GAUSSIAN], b, f
    ).epsilon(1e-5),
    "profile of pairs": lambda b, f: tf.temporal_privacy_profile(
        GAUSSIAN, b, f, horizon=HORIZON, pairs=True
    ).epsilon(1e-5),
    "noise": lambda b, f: tf.allocate_noise(1.0, 1e-5, b, f, HORIZON),
    "least variance": lambda b, f: tf.allocate_noise(
        1.0, 1e-5, b, f, HORIZON, method="least_variance"
    ),
    "pairs": lambda b, f: tf.pairwise_leakage([[0, 1], [2, 0]], b, f, horizon=HORIZON).tpl,
    "mechanism": lambda b, f: tf.mechanism_leakage(RESPONSES, b, f, horizon=HORIZON).tpl,
    "outputs": lambda b, f: tf.measured_leakage(LOG_LIKELIHOODS, b, f).tpl,
    "exact Gaussian": lambda b, f: tf.ExactGaussianProfile(3.0, b, f, horizon=HORIZON).delta(0.3),
}
#: These need the matrix of each step.
EXACT = {
    **{name: FOUND[name] for name in ("profile of pairs", "pairs", "mechanism", "outputs")},
    "exact Gaussian": FOUND["exact Gaussian"],
    "worst mechanism": lambda b, f: tpl.exact_leakage(0.1, b, f, horizon=HORIZON).tpl,
}


@pytest.mark.parametrize("find", FOUND.values(), ids=FOUND)
def test_a_cycle_is_the_list_of_its_steps_and_a_matrix_a_cycle_of_one(find, monkeypatch):
    """Searches for the same steps are the same search."""
    for owner, name in ((_Series, "fit"), (gaussian_noise, "_approximate_least_variance")):
        monkeypatch.setattr(owner, name, search_once(getattr(owner, name)))
    cycle = tpl.Cycle([NIGHT, NIGHT, DAY])
    back = cycle.reverse()
    of_cycle = np.asarray(find(back, cycle))
    of_lists = np.asarray(find(back.over(HORIZON - 1), cycle.over(HORIZON - 1)))
    assert of_cycle.tolist() == of_lists.tolist()
    assert of_cycle.tolist() != np.asarray(find(back[0], cycle[0])).tolist()
    P = tpl.TransitionMatrix(DAY)
    alone = np.asarray(find(P.reverse(), P))
    assert np.asarray(find(tpl.Cycle(P.reverse()), tpl.Cycle(P))).tolist() == alone.tolist()


@pytest.mark.parametrize("find", EXACT.values(), ids=EXACT)
@pytest.mark.parametrize("start", ["any", [1 / 3, 2 / 3]])
def test_what_needs_matrices_refuses_bounds_for_several_laws(find, start):
    cycle = tpl.Cycle([DAY, DAY, [[0.5, 0.5], [0.25, 0.75]]])
    back = cycle.reverse(start=start)
    with pytest.raises(
        ValueError, match=r'known matrix here, found .*start="habit", or give a list'
    ):
        find(back, cycle)
    assert np.isfinite(find(cycle.reverse(), cycle)).all()


def test_every_kth_step_of_a_cycle_is_a_method_that_knows_its_direction():
    cycle = tpl.Cycle([NIGHT, DAY])
    with pytest.raises(ValueError, match=r"one step, found Cycle\(2 phases.*; write cycle\.every"):
        tf.every_kth(cycle, 2)
    (both,) = cycle.every(2)
    assert both.toarray() == pytest.approx(np.array(NIGHT) @ DAY)
    assert tpl.Cycle(DAY).every(3)[0].toarray() == pytest.approx(tf.every_kth(DAY, 3).toarray())


def backward_steps(cycle, law, steps):
    """Bayes' rule for each step of a chain that starts in a law."""
    found = []
    for step in cycle.over(steps):
        both = law[:, None] * step.toarray()
        law = both.sum(axis=0)
        found.append(both.T / law[:, None])
    return found


@given(
    seed=st.integers(0, 10**6),
    p=st.integers(1, 3),
    start=st.sampled_from(["habit", "known", "any"]),
    pairs=st.booleans(),
)
@settings(max_examples=50)
def test_no_mechanism_leaks_more_about_a_cycle_from_any_start(seed, p, start, pairs):
    """All outputs of four releases are enumerated, with the true law of each time."""
    rng = np.random.default_rng(seed)
    n, horizon, grid = int(rng.integers(2, 4)), 4, 0.02
    cycle = tpl.Cycle([rng.dirichlet(np.full(n, 2.0), n) for _ in range(p)])
    law = rng.dirichlet(np.ones(n))
    if start == "habit":
        law = cycle.laws()[0]
        back = cycle.reverse()
    elif start == "known":
        back = cycle.reverse(start=law)
    else:
        back = cycle.reverse(start="any")
    pairs = pairs and start == "habit"
    laws = [None if rng.random() < 0.2 else random_laws(rng, n) for _ in range(horizon)]
    laws[int(rng.integers(horizon))] = random_laws(rng, n)
    events = [None if each is None else profile_of(each, grid) for each in laws]
    found = tf.temporal_privacy_profile(events, back, cycle, grid=grid, pairs=pairs)
    before = known(laws, backward_steps(cycle, law, horizon - 1))
    forward = [step.toarray() for step in cycle.over(horizon - 1)]
    after = known(laws[::-1], forward[::-1])[::-1]
    for t in range(horizon):
        own = joint(before[t], laws[t])
        series = (
            (found.backward, own),
            (found.forward, joint(after[t], laws[t])),
            (found.both, joint(own, after[t])),
        )
        for bound, outputs in series:
            profile = bound.profile_at(t)
            assert (hockey_stick(outputs, np.exp(LOSSES)) <= profile.delta(LOSSES) + 1e-15).all()
            assert largest_loss(outputs) <= profile.largest + 1e-12


def walked(steps, released, kinds, grid):
    """The recursion of profiles, one step after the other."""
    profile = tf.PrivacyProfile.nothing(grid)
    profiles = [profile]
    for loss, kind in zip(steps, released, strict=False):
        together = profile.compose(kinds[kind])
        profile = together.correlated(loss)
        profiles.append(profile)
    return profiles


@pytest.mark.parametrize(
    ("p", "horizon", "still_hours", "kinds"),
    [(2, 40, 0, 1), (5, 200, 2, 1), (24, 300, 6, 2), (40, 250, 0, 1), (10, 300, 9, 1)],
)
def test_a_repeated_cycle_is_bounded_by_few_profiles_as_closely_as_by_a_walk(
    p, horizon, still_hours, kinds
):
    """Also where nobody moves at some hours, so that these alone would never forget."""
    rng = np.random.default_rng(p)
    moving = [rng.dirichlet(np.full(3, 2.0), 3) for _ in range(p - still_hours)]
    cycle = tpl.Cycle([np.eye(3)] * still_hours + moving)
    grid = 4e-3
    events = [[GAUSSIAN], [GAUSSIAN, 0.4]][kinds - 1]
    sizes = [tf.PrivacyProfile.of_event(event, grid) for event in events]
    released = [time % kinds for time in range(horizon)]
    found = tf.temporal_privacy_profile([events[k] for k in released], None, cycle, grid=grid)
    losses = list(cycle.map(tpl.PrivacyLossFunction).over(horizon - 1))
    walk = walked(losses[::-1], released[::-1], sizes, grid)[::-1]
    for time in range(0, horizon, 7):
        together = walk[time].compose(sizes[released[time]])
        bound = found.forward.profile_at(time)
        for loss in (0.0, 0.3, 1.0):
            least = together.delta(loss)
            assert least * (1 - 1e-9) <= bound.delta(loss) <= least * (1 + 1e-6) + 1e-11
    assert len(found.forward.profiles) < horizon


METHODS = ("equal", pytest.param("least_variance", marks=pytest.mark.slow))
DAY_AND_NIGHT = tpl.Cycle([NIGHT, NIGHT, NIGHT, DAY, DAY, DAY])
OTHER_START = np.array([0.95, 0.05])


def exact_leakage(noise, law):
    """The largest epsilon of two states that follow the clock from a law of the first state."""
    steps = backward_steps(DAY_AND_NIGHT, law, noise.size - 1)
    return tf.ExactGaussianProfile(np.asarray(noise), steps, DAY_AND_NIGHT).epsilon(1e-5).max()


@pytest.mark.parametrize("start", ["habit", "known", "any"])
@pytest.mark.parametrize("method", METHODS)
def test_noise_of_a_cycle_keeps_the_exact_leakage_from_any_start(start, method):
    """Also after a known start is nearly forgotten."""
    backs = {
        "habit": (DAY_AND_NIGHT.laws()[0], DAY_AND_NIGHT.reverse()),
        "known": (OTHER_START, DAY_AND_NIGHT.reverse(start=OTHER_START)),
        "any": (OTHER_START, DAY_AND_NIGHT.reverse(start="any")),
    }
    horizon = 24
    truth, back = backs[start]
    assert start != "known" or len(back.first) < horizon - 4
    noise = tf.allocate_noise(1.0, 1e-5, back, DAY_AND_NIGHT, horizon, method=method)
    assert 0.8 < exact_leakage(noise, truth) <= 1.0


@pytest.mark.parametrize("method", METHODS)
def test_noise_of_pooled_matrices_keeps_too_little_for_a_cycle(method):
    pooled = tpl.TransitionMatrix((np.array(NIGHT) + DAY) / 2)
    noise = tf.allocate_noise(1.0, 1e-5, pooled.reverse(), pooled, 24, method=method)
    for law in (DAY_AND_NIGHT.laws()[0], OTHER_START):
        assert exact_leakage(noise, law) > 1.0


ADDED = [(0.1, 2), (GAUSSIAN, 1), (None, 2), (0.3, 1), (GAUSSIAN, 3), (0.05, 1)]


@pytest.mark.parametrize("start", ["habit", "any", [0.9, 0.1]])
@pytest.mark.parametrize("pauses", [False, True])
def test_an_account_of_events_follows_the_clock_release_by_release(start, pauses):
    """As the profiles of all releases at once, whatever was read before, also from a copy."""
    cycle = tpl.Cycle([NIGHT, NIGHT, DAY])
    back = cycle.reverse(start=start)
    grid = 1e-2
    account = tf.EventAccountant(back, cycle, grid=grid)
    events = []
    for event, count in ADDED:
        if event is not None:
            account.compose(event, count)
            events.append((event, count))
        elif pauses:
            account.skip(count)
            events.append((event, count))
        found = account.epsilon(1e-5)
        at_once = tf.temporal_privacy_profile(events, back, cycle, grid=grid)
        assert found == pytest.approx(at_once.epsilon(1e-5), rel=1e-9)
        assert (found >= at_once.epsilon(1e-5) * (1 - 1e-12)).all()
        account = pickle.loads(pickle.dumps(account))
    larger = account.budget_within(4.0, 1e-5)
    assert 0 < larger < tf.EventAccountant(None, cycle).budget_within(4.0, 1e-5)
    assert copy(account).compose(larger).epsilon(1e-5).max() <= 4.0
    least = account.least_noise(4.0, 1e-5, dp_accounting.GaussianDpEvent)
    stronger = copy(account).compose(dp_accounting.GaussianDpEvent(least))
    assert stronger.epsilon(1e-5).max() <= 4.0


def test_an_account_of_one_matrix_is_that_of_a_cycle_of_one_and_lists_are_refused():
    P = tpl.TransitionMatrix(DAY)
    alone = tf.EventAccountant(P.reverse(), P).compose(0.1, 3).compose(GAUSSIAN).skip().compose(0.2)
    of_cycle = tf.EventAccountant(tpl.Cycle(P).reverse(), tpl.Cycle(P)).compose(0.1, 3)
    of_cycle.compose(GAUSSIAN).skip().compose(0.2)
    assert of_cycle.epsilon(1e-5).tolist() == alone.epsilon(1e-5).tolist()
    assert of_cycle.tpl.tolist() == alone.tpl.tolist()
    with pytest.raises(ValueError, match="every later step, found a list of 2 matrices"):
        tf.EventAccountant(None, [NIGHT, DAY])


def test_pure_budgets_of_an_account_leak_as_the_recursion_says():
    cycle = tpl.Cycle([NIGHT, DAY, DAY])
    account = tf.EventAccountant(cycle.reverse(), cycle).compose(0.1, 7)
    pure = tpl.temporal_privacy_leakage(0.1, cycle.reverse(), cycle, horizon=7)
    assert account.tpl.tolist() == pure.tpl.tolist()
    assert account.epsilon(1e-12) == pytest.approx(pure.tpl, rel=2e-2)
    budget = account.budget_within(1.2)
    more = copy(account).compose(budget)
    assert more.tpl.max() <= 1.2
    assert copy(account).compose(budget * 1.001).tpl.max() > 1.2
