"""Temporal privacy profiles against exact enumeration, closed forms, pure leakages and
`dp_accounting`."""

from itertools import product

import dp_accounting
import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant

import tplfrontier as tf
import tplrepro as tpl
from tests.tplrepro.leakage.matrices import FORWARD, KINDS, random_matrix
from tplfrontier.profiles.gaussian import gaussian_epsilon
from tplfrontier.profiles.recursion import Side
from tplfrontier.profiles.repeated_releases import extrapolate_run, group_ends
from tplrepro.leakage.timeline import Timeline

LOSSES = np.array([0.0, 0.1, 0.3, 0.7, 1.3, 2.5])


def hockey_stick(laws, gammas):
    """The largest divergence between any two of the laws (n, K), at each gamma."""
    return np.array([np.maximum(laws[:, None] - g * laws, 0.0).sum(axis=-1).max() for g in gammas])


def largest_loss(laws):
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nanmax(np.log(laws[:, None] / laws))


def profile_of(laws, grid):
    """The profile of a mechanism with finitely many outputs, exact at the grid's points."""
    largest = largest_loss(laws)
    losses = grid * np.arange(int((largest if largest < 50 else 5.0) / grid) + 2)
    # its own rounding
    return tf.PrivacyProfile(hockey_stick(laws, np.exp(losses)) + 4e-16, grid, largest)


def random_laws(rng, n):
    """A mechanism (n, K): any, one that tells a single state from the others, or one with outputs
    nobody else has."""
    outputs = int(rng.integers(2, 5))
    laws = rng.dirichlet(
        np.full(outputs, rng.choice([0.3, 1.0, 5.0])), size=int(rng.choice([2, n]))
    )
    if rng.random() < 0.2:
        laws[0, -1] = 0.0
    laws = laws if len(laws) == n else laws[rng.integers(0, 2, n)]
    return laws / laws.sum(axis=1, keepdims=True)


def known(laws, steps):
    """The laws of all that was released before each time, given the value at that time; laws None:
    no release."""
    n = next(len(law) for law in laws if law is not None)
    before = [np.ones((n, 1))]
    for law, P in zip(laws, steps, strict=False):
        given = joint(before[-1], law)
        before.append(np.ones((n, 1)) if P is None else P @ given)
    return before


def joint(first, second):
    if second is None:
        return first
    return (first[:, :, None] * second[:, None, :]).reshape(len(first), -1)


def worst_ratio(seed, **options):
    """The largest ratio of the true delta to the bound in one random family; the law of all outputs
    is enumerated."""
    rng = np.random.default_rng(seed)
    n, horizon, grid = int(rng.integers(2, 7)), int(rng.integers(1, 5)), 0.01
    laws = [None if rng.random() < 0.15 else random_laws(rng, n) for _ in range(horizon)]
    laws[int(rng.integers(horizon))] = random_laws(rng, n)
    sides = []
    for _ in range(2):
        some = [random_matrix(rng, rng.choice(KINDS), n) for _ in range(horizon - 1)]
        sides.append(
            [some, [None] * (horizon - 1), some[:1] * (horizon - 1)][
                int(rng.choice(3, p=[0.4, 0.2, 0.4]))
            ]
        )
    events = [None if law is None else profile_of(law, grid) for law in laws]
    r = tf.temporal_privacy_profile(events, sides[0], sides[1], grid=grid, **options)
    before, after = known(laws, sides[0]), known(laws[::-1], sides[1][::-1])[::-1]
    ratios = [0.0]
    for t in range(horizon):
        own = joint(before[t], laws[t])
        series = (
            (r.backward, own),
            (r.forward, joint(after[t], laws[t])),
            (r.both, joint(own, after[t])),
        )
        for bound, law in series:
            profile = bound.profile_at(t)
            true, found = hockey_stick(law, np.exp(LOSSES)), profile.delta(LOSSES)
            assert np.all(true <= found + 1e-15), (seed, t)
            assert largest_loss(law) <= profile.largest + 1e-12, (seed, t)
            ratios.append((true[found > 1e-6] / found[found > 1e-6]).max(initial=0.0))
    # Theorem 3 of [1]: about two values that follow each other, any of which may be changed
    if 1 < horizon and n < 5:
        own, following = joint(before[0], laws[0]), joint(after[1], laws[1])
        pairs = np.array([np.outer(a, b).ravel() for a in own for b in following])
        assert np.all(hockey_stick(pairs, np.exp(LOSSES)) <= r.composed(0, 1).delta(LOSSES) + 1e-15)
        assert np.all(r.composed(0, 1).delta(LOSSES) <= r.w_event(2).delta(LOSSES) * (1.0 + 1e-12))
    return max(ratios)


@pytest.mark.parametrize(
    "seeds", [range(100), pytest.param(range(100, 10_000), marks=pytest.mark.slow)]
)
def test_no_random_family_leaks_more_and_some_as_much(seeds):
    assert 0.999999 < max(map(worst_ratio, seeds)) < 1.0 + 1e-9


@pytest.mark.parametrize("seed", range(20))
def test_a_step_is_the_worst_case_over_families_of_two_laws(seed):
    """Each state has one of two laws: of all ways to share them out, the worst attains the step."""
    rng = np.random.default_rng(seed)
    n, grid = int(rng.integers(2, 6)), 1e-3
    P, laws = random_matrix(rng, rng.choice(KINDS), n), random_laws(rng, 2)
    once = profile_of(laws, grid)
    shared = np.array(list(product([0, 1], repeat=n)))
    worst = np.max([hockey_stick(P @ laws[which], np.exp(LOSSES)) for which in shared], axis=0)
    found = once.correlated(tpl.PrivacyLossFunction(P)).delta(LOSSES)
    assert np.all(worst <= found + 1e-15)
    np.testing.assert_allclose(found, worst, rtol=0, atol=2e-4 * grid)


def gaussian(multiplier, count, P, **options):
    return tf.temporal_privacy_profile(
        [(dp_event.GaussianDpEvent(multiplier), count)], P, P, **options
    )


def laplace_excess(seed, n):
    """How far the ends of profiles are above the pure leakages, in grid steps: the least and the
    most."""
    rng = np.random.default_rng(seed)
    matrices = [random_matrix(rng, rng.choice(KINDS), n) for _ in range(2)]
    multipliers, grid = 10.0 ** rng.uniform(-0.5, 2, 5), 2e-3
    pure = tpl.temporal_privacy_leakage(1 / multipliers, *matrices)
    r = tf.temporal_privacy_profile(
        [dp_event.LaplaceDpEvent(m) for m in multipliers], *matrices, grid=grid
    )
    found = [r.backward.epsilon(1e-300), r.forward.epsilon(1e-300), r.epsilon(1e-300)]
    assert not any(side.delta(side.largest.max()).any() for side in (r.backward, r.forward, r.both))
    found += [[r.w_event(w).epsilon(1e-300) for w in (2, 5)], [r.user_level.epsilon(1e-300)]]
    expected = [pure.bpl, pure.fpl, pure.tpl, [pure.w_event(2), pure.w_event(5)], [pure.user_level]]
    excess = (np.concatenate(found) - np.concatenate(expected)) / grid
    return excess.min(), excess.max()


@pytest.mark.parametrize(
    "sizes", [[2, 3, 5, 8, 20] * 6, pytest.param([2, 50, 200] * 300, marks=pytest.mark.slow)]
)
def test_the_ends_of_profiles_are_the_pure_leakages(sizes):
    least, most = np.array([laplace_excess(seed, n) for seed, n in enumerate(sizes)]).T
    assert 0.0 <= least.min()
    assert most.max() <= 1.0


GAUSSIAN, LAPLACE = dp_event.GaussianDpEvent(2.0), dp_event.LaplaceDpEvent(3.0)


def accountant(events, relation="ADD_OR_REMOVE_ONE"):
    account = PLDAccountant(getattr(dp_accounting.NeighboringRelation, relation))
    for event in events:
        account.compose(event)
    return account


@pytest.mark.parametrize("P", [None, np.full((3, 3), 1 / 3)])
def test_without_correlation_each_time_is_alone(P):
    events = [GAUSSIAN, LAPLACE, None, dp_event.DiscreteLaplaceDpEvent(0.4, 3), GAUSSIAN]
    r = tf.temporal_privacy_profile(events, P, P)
    for t, event in enumerate(events):
        alone = accountant([event] if event else [])
        assert r.epsilon(1e-5)[t] == pytest.approx(alone.get_epsilon(1e-5), abs=2e-4)
        assert r.delta(0.2)[t] == pytest.approx(alone.get_delta(0.2), abs=1e-4)


def test_the_identity_composes_all_releases():
    events = [GAUSSIAN] * 3 + [LAPLACE] * 2 + [GAUSSIAN]
    r = tf.temporal_privacy_profile(events, np.eye(3), np.eye(3))
    expected = [accountant(events[: t + 1]).get_epsilon(1e-6) for t in (1, 3, 5)]
    assert r.backward.epsilon(1e-6)[1::2] == pytest.approx(expected, abs=6e-4)
    assert r.epsilon(1e-6) == pytest.approx([expected[-1]] * 6, abs=6e-4)
    for profile in (r.user_level, r.w_event(3), r.composed(1, 4)):
        assert profile.epsilon(1e-6) == pytest.approx(expected[-1], abs=6e-4)


EVENTS = [
    GAUSSIAN,
    dp_event.GaussianDpEvent(0.5),
    dp_event.GaussianDpEvent(500.0),
    LAPLACE,
    dp_event.DiscreteLaplaceDpEvent(0.7, 4),
    dp_event.RandomizedResponseDpEvent(0.4, 5),
    dp_event.SelfComposedDpEvent(GAUSSIAN, 7),
    dp_event.ComposedDpEvent([GAUSSIAN, LAPLACE, dp_event.NoOpDpEvent()]),
]


@pytest.mark.parametrize("event", EVENTS, ids=repr)
def test_events_have_the_profiles_of_dp_accounting(event):
    found = tf.temporal_privacy_profile([event], None, None).profile_at(0)
    relation = "REPLACE_ONE" if type(event).__name__.startswith("Random") else "ADD_OR_REMOVE_ONE"
    other = accountant([event], relation)
    for delta in (1e-9, 1e-5, 1e-2):
        assert found.epsilon(delta) == pytest.approx(other.get_epsilon(delta), rel=1e-4, abs=1e-3)


@pytest.mark.parametrize("q", [0.0, 0.01, 0.3, 1.0])
def test_no_mixture_leaks_more_for_a_user_who_takes_part_with_a_probability(q):
    """Against all mixtures with the law without the user, which is no farther from the others than
    they are."""
    laws = 0.6 * np.eye(6) + 0.4 / 6
    sampled = np.array([(1 - q) * laws[0] + q * law for law in laws])
    for event in (
        dp_event.PoissonSampledDpEvent(q, LAPLACE),
        dp_event.SampledWithoutReplacementDpEvent(100, int(100 * q), LAPLACE),
    ):
        found, alone = (
            tf.PrivacyProfile.of_event(event, 1e-3),
            tf.PrivacyProfile.of_event(LAPLACE, 1e-3),
        )
        assert found.largest == pytest.approx(np.log1p(q * np.expm1(alone.largest)), rel=1e-12)
        assert found.delta(0.0) == pytest.approx(q * alone.delta(0.0), rel=1e-6)
    gaussian = tf.PrivacyProfile.of_event(dp_event.PoissonSampledDpEvent(q, GAUSSIAN), 1e-3)
    assert gaussian.largest == (np.inf if q else 0.0)
    response = dp_event.RandomizedResponseDpEvent(0.4, 6)
    found = tf.PrivacyProfile.of_event(dp_event.PoissonSampledDpEvent(q, response), 1e-3)
    assert np.all(hockey_stick(sampled, np.exp(LOSSES)) <= found.delta(LOSSES) + 1e-15)


def test_approximate_concentrated_and_non_private_events_have_their_profiles():
    pure = tf.PrivacyProfile.pure(0.5, grid=1e-3, delta=1e-3)
    assert (pure.epsilon(1e-3 * (1 + 1e-9)), pure.epsilon(9e-4)) == (
        pytest.approx(0.5, abs=1e-3),
        np.inf,
    )
    concentrated = tf.temporal_privacy_profile([dp_event.ZCDpEvent(0.125)], None, None)
    assert np.all(
        concentrated.delta(1.0) >= tf.temporal_privacy_profile([GAUSSIAN], None, None).delta(1.0)
    )
    account = dp_accounting.rdp.RdpAccountant(np.linspace(1.1, 60, 2000)).compose(
        dp_event.ZCDpEvent(0.125)
    )
    assert concentrated.epsilon(1e-6)[0] == pytest.approx(account.get_epsilon(1e-6), rel=2e-3)
    nothing = tf.temporal_privacy_profile([dp_event.NonPrivateDpEvent(), 0.1], FORWARD, FORWARD)
    assert nothing.epsilon(0.5)[0] == np.inf
    # the prior's own ratio
    assert nothing.backward.epsilon(1e-9)[1] == pytest.approx(0.1 + np.log(8), abs=2e-3)


def lazy(rng, n, leave):
    """A random chain that leaves its state with a small probability."""
    return (1.0 - leave) * np.eye(n) + leave * rng.dirichlet(np.full(n, 3.0), size=n)


def iterates(kinds, loss):
    """What is known before each release and after the last, by the recursion alone."""
    bases = [tf.PrivacyProfile.nothing(kinds[0].grid)]
    for kind in kinds:
        bases.append(bases[-1].compose(kind).correlated(loss))
    return bases


@pytest.fixture
def steps(monkeypatch):
    """An entry for each step of correlation that is worked out."""
    made, correlated = [], tf.PrivacyProfile.correlated
    monkeypatch.setattr(
        tf.PrivacyProfile, "correlated", lambda *parts: made.append(1) or correlated(*parts)
    )
    return made


SHORTCUT = np.array([0.0, 0.01, 0.1, 0.3, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0])


def deltas_at(series, times):
    known = {}
    return np.array(
        [
            known.setdefault(k, series.profiles[k].delta(SHORTCUT))
            for k in series.position[list(times)]
        ]
    )


def assert_told_ahead(events, P, grid, compared, steps, most):
    """Few steps give the first profiles of a series, never below the recursion."""
    loss = tpl.PrivacyLossFunction(P)
    kinds = [tf.PrivacyProfile.of_event(event, grid) for event in events[:compared]]
    r = tf.temporal_privacy_profile(events, loss, None, grid=grid)
    found = deltas_at(r.backward, range(compared))
    assert len(steps) < most
    bases = zip(iterates(kinds, loss), kinds, strict=False)
    true = np.array([base.compose(kind).delta(SHORTCUT) for base, kind in bases])
    assert np.all(true <= found * (1 + 1e-14) + 1e-15)
    assert np.all(found <= true * (1 + 3e-9) + 1e-10)


@pytest.mark.parametrize("seed", [0, 1, 2, pytest.param(3, marks=pytest.mark.slow), 4, 5])
def test_profiles_of_a_long_run_near_the_identity_are_extrapolated(seed, steps):
    """At all times, of rising and of falling runs: the shortcut starts long before the fixed
    point."""
    rng = np.random.default_rng(seed)
    event = [dp_event.GaussianDpEvent(4.0), dp_event.LaplaceDpEvent(5.0), 0.3][seed % 3]
    first = [dp_event.GaussianDpEvent(0.7)] if seed > 3 else []
    assert_told_ahead(
        [*first, *[event] * 500], lazy(rng, int(rng.integers(2, 5)), 0.1), 5e-3, 500, steps, 350
    )


def test_profiles_of_a_schedule_that_repeats_are_extrapolated(steps):
    events = [dp_event.GaussianDpEvent(multiplier) for multiplier in (1.0, 1.5, 2.0)]
    assert_told_ahead(events * 1000, FORWARD, 1e-3, 300, steps, 400)


def test_an_extrapolated_profile_that_is_too_low_is_not_used():
    """Profiles that seem to shrink by other rates than 0.741 a step, theirs: whatever is taken
    bounds the true ones."""
    loss, once = (
        tpl.PrivacyLossFunction([[0.95, 0.05], [0.05, 0.95]]),
        tf.PrivacyProfile.of_event(GAUSSIAN, 1e-2),
    )
    bases, taken = iterates([once] * 120, loss), set()
    last, new = (base.deltas for base in bases[40:42])
    for rate, lag in product([0.5, 0.745, 0.78], [0.25, 1, 4]):
        before = tf.PrivacyProfile(
            np.minimum.accumulate(np.maximum(last - (new - last) / rate, 0.0)), once.grid
        )
        marks = [before, *bases[40:42]]
        ahead = extrapolate_run(
            marks, lag, lambda base: base.compose(once).correlated(loss), forgotten=0.1
        )
        for true, bound in zip(bases[42:], ahead, strict=False):
            taken.add((rate, lag))
            assert np.all(true.deltas <= bound().deltas)
    assert taken == {(0.745, 0.25), (0.745, 1), (0.78, 0.25), (0.78, 1)}


@pytest.mark.parametrize(
    ("event", "most"), [(dp_event.GaussianDpEvent(3.0), 330), (0.1, 1150), (1.0, 250)]
)
def test_many_releases_of_a_chain_that_hardly_changes_take_few_steps(event, most, steps):
    """Without the shortcut 1,000 steps, 3,000, and no end (rounding errors do not settle)."""
    loss = tpl.PrivacyLossFunction([[0.9985, 0.0015], [0.0015, 0.9985]])
    r = tf.temporal_privacy_profile([(event, 10**5)], loss, loss)
    assert len(steps) <= most
    assert r.backward.profile_at(-1).delta(1.0) < 1.0


@pytest.mark.slow
def test_many_releases_of_the_identity_are_told_apart_by_their_leading_digits():
    r = gaussian(300.0, 10**5, np.eye(2))
    times = np.array([1, 100, 257, 12_345, 99_999, 10**5])
    true = gaussian_epsilon(np.sqrt(times) / 300, 1e-6)
    assert r.epsilon(1e-6)[[0, 77, -1]] == pytest.approx([true[-1]] * 3, rel=1e-3)
    found = r.backward.epsilon(1e-6)[times - 1]
    assert np.all(true <= found)
    np.testing.assert_allclose(found, true, rtol=6e-3)


def test_rows_that_nearly_agree_add_next_to_nothing_with_little_noise():
    nearly = [[0.5, 0.5], [0.5 + 1e-15, 0.5 - 1e-15]]
    for event in (dp_event.GaussianDpEvent(1e-3), dp_event.LaplaceDpEvent(1e-7), 1e7):
        alone = tf.temporal_privacy_profile(event, None, None, horizon=3).epsilon(1e-6)
        r = tf.temporal_privacy_profile(event, nearly, nearly, horizon=3).epsilon(1e-6)
        assert (r >= alone * (1.0 - 1e-12)).all()
        assert (r <= alone * (1.0 + 1e-6)).all()


def test_the_step_to_a_pause_knows_of_how_many_matrices_it_is():
    """With them grows the rounding of their product, for which a bound makes good."""
    timeline = Timeline.of(FORWARD, FORWARD, 7, [1, 4])
    past, future = Side.both(timeline, [0, 0])
    before = {pause.time: pause.step.length for pause in past.pauses}
    assert before == {0: 0, 2: 1, 3: 2, 5: 1, 6: 2}
    after = {6 - pause.time: pause.step.length for pause in future.pauses}
    assert after == {0: 1, 2: 2, 3: 1, 5: 0, 6: 0}


@pytest.mark.parametrize("number", [1, 255, 1000, 1001, 2000, 100_003])
def test_repetitions_that_share_a_profile_are_few_and_alike(number):
    """Numbers are rounded up to 8 bits in long runs only, and never beyond the run."""
    ends = group_ends(number)
    each = np.arange(1, number + 1)
    shared = np.array(ends)[np.searchsorted(ends, each)]
    assert ends[-1] == number
    assert (shared <= each * (1.0 + 2.0**-7)).all()
    if number <= 1000:
        assert ends == each.tolist()
    else:
        assert ends[:256] == each[:256].tolist()
        assert len(ends) <= 128 * number.bit_length()
