"""Profiles of ordered pairs of states against enumeration, pure leakages and fifty digits."""

from itertools import accumulate

import mpmath
import numpy as np
import pytest
from dp_accounting import GaussianDpEvent

import tplfrontier as tf
import tplrepro as tpl
from tests.tplfrontier.pairs.test_leakage import exact_step
from tests.tplfrontier.profiles.test_rounding import Exact, assert_bounds
from tests.tplfrontier.profiles.test_temporal_profile import worst_ratio
from tests.tplrepro.leakage.matrices import BACKWARD, FORWARD, SWAPPED, THREE
from tplfrontier.profiles import repeated_releases
from tplfrontier.profiles.pair_profiles import PairProfiles
from tplfrontier.profiles.privacy_profile import compose_orders


@pytest.mark.parametrize(
    "seeds", [range(6), pytest.param(range(1000, 2500), marks=pytest.mark.slow)]
)
def test_no_random_family_leaks_more(seeds):
    """Each seed compares about 70 values with enumeration."""
    assert max(worst_ratio(seed, pairs=True) for seed in seeds) < 1.0 + 1e-9


# of which each value determines the next, but not with the same label
SHIFTED = np.roll(np.eye(3), 1, axis=0)


@pytest.mark.parametrize("steps", [THREE, [THREE, SHIFTED, THREE], [SHIFTED, THREE, SHIFTED]])
def test_the_ends_of_pair_profiles_are_the_pure_leakages_of_the_pairs(steps):
    epsilons = [0.5, 1.0, 0.2, 0.7]
    r = tf.temporal_privacy_profile(epsilons, steps, steps, pairs=True)
    level = 1.0 - np.eye(3)
    leakage = tf.pairwise_leakage([e * level for e in epsilons], steps, steps)
    for series, expected in (
        (r.backward, leakage.bpl),
        (r.forward, leakage.fpl),
        (r.both, leakage.tpl),
    ):
        np.testing.assert_allclose(series.largest, expected.max(axis=(1, 2)), rtol=1e-12)


def test_pairs_are_kept_where_two_of_several_rows_have_no_state_in_common():
    P = np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0], [0.4, 0.3, 0.3]])
    one, pairs = (
        tf.temporal_privacy_profile([0.5] * 3, P, None, grid=0.02, pairs=each)
        for each in (False, True)
    )
    assert pairs.delta(0.6)[-1] < 0.99 * one.delta(0.6)[-1]


@pytest.mark.parametrize(("epsilon", "leave"), [(0.1, 0.2), (0.5, 0.2), (0.3, 0.02)])
def test_the_largest_losses_of_a_long_run_are_not_those_of_settled_deltas(epsilon, leave):
    """Deltas settle within 1e-15 when losses still grow by 1e-7."""
    P = np.array([[1 - leave, leave], [0.1, 0.9]])
    found = tf.temporal_privacy_profile(
        epsilon, P, None, horizon=200, grid=0.02, pairs=True
    ).backward.largest
    with mpmath.workdps(40):
        exact = accumulate(
            [[mpmath.mpf(epsilon)] * 2] * 200, lambda known, bound: exact_step(P, known, bound)
        )
        assert all(
            max(a) <= b <= max(a) * (1 + 2e-9) for a, b in zip(exact, found.tolist(), strict=True)
        )


@pytest.mark.parametrize("steps", [SWAPPED, THREE])
def test_the_largest_losses_of_a_long_run_are_those_of_the_pairs(steps):
    """Where no two pairs leak alike, so that bounds by the largest of them are larger."""
    found = tf.temporal_privacy_profile(0.1, steps, None, horizon=200, grid=0.02, pairs=True)
    level = 0.1 * (1.0 - np.eye(len(steps)))
    exact = tf.pairwise_leakage(level, steps, None, horizon=200).bpl.max(axis=(1, 2))
    np.testing.assert_allclose(found.backward.largest, exact, rtol=3e-9)
    by_largest = tpl.temporal_privacy_leakage(0.1, steps, None, horizon=200).bpl
    assert by_largest[-1] > 1.05 * exact[-1]


def test_bounds_on_the_loss_of_a_pair_round_up():
    rng = np.random.default_rng(5)
    for epsilon in 10.0 ** rng.uniform(-1, 2, 200):
        first, second = 10.0 ** -rng.uniform(0.1, 14, 2)
        P = np.array([[1.0 - first, first], [second, 1.0 - second]])
        pairs = PairProfiles.alike(tf.PrivacyProfile.pure(epsilon, 0.5), 2)
        after = pairs.correlated(tpl.PrivacyLossFunction(P))
        with mpmath.workdps(40):
            exact = exact_step(P, [mpmath.mpf(epsilon)] * 2, [0, 0])
        found = [after.by_pair[0, 1].largest, after.by_pair[1, 0].largest]
        assert all(a <= b <= a + 1e-13 * (1 + epsilon) for a, b in zip(exact, found, strict=True))


def test_extrapolated_profiles_of_a_long_run_are_those_of_the_recursion(monkeypatch):
    run = tf.temporal_privacy_profile(
        GaussianDpEvent(3.0), SWAPPED, FORWARD, horizon=100, grid=0.02, pairs=True
    )
    assert len(run._before.profiles) < 100
    monkeypatch.setattr(repeated_releases, "is_within", lambda new, old: False)
    step = tf.temporal_privacy_profile(
        GaussianDpEvent(3.0), SWAPPED, FORWARD, horizon=100, grid=0.02, pairs=True
    )
    for x in (0.0, 0.5, 2.0):
        difference = run.delta(x) - step.delta(x)
        assert (np.abs(difference) <= 1e-12).all()


def test_a_chain_that_changes_and_pauses_as_one_that_does_not():
    product_ = np.array(BACKWARD) @ np.array(SWAPPED)
    long = tf.temporal_privacy_profile(
        [0.5, None, 0.4], [SWAPPED, BACKWARD], None, grid=0.01, pairs=True
    )
    short = tf.temporal_privacy_profile([0.5, 0.4], product_, None, grid=0.01, pairs=True)
    for x in (0.0, 0.2, 0.5):
        assert long.delta(x)[-1] == pytest.approx(short.delta(x)[-1], abs=1e-14)
    unknown = tf.temporal_privacy_profile(
        [0.5, 0.4, 0.4], [SWAPPED, None], None, grid=0.01, pairs=True
    )
    assert unknown.epsilon(0.01)[-1] == tf.PrivacyProfile.pure(0.4, 0.01).epsilon(0.01)


def random_pair(rng, grid, size=15):
    """Both orders; the mass at 0 makes both sum to one, whence the last mass of the reverse order
    follows."""
    forth, back = (rng.random(size) ** 4 * (rng.random(size) < 0.8) for _ in range(2))
    forth *= 0.2 / forth.sum()
    shrunk = np.exp(-grid * np.arange(1, size + 1))
    back *= (forth * (1 - shrunk)).sum() / (back * (1 - shrunk)).sum()  # equal total variation
    return Exact(grid, forth, reverse=back), Exact(grid, back, reverse=forth)


@pytest.mark.parametrize("seed", range(6))
def test_compositions_of_ordered_pairs_round_up(seed):
    rng = np.random.default_rng(seed)
    grid = float(rng.choice([1e-3, 0.05, 0.3]))
    with mpmath.workdps(50):
        one, other = random_pair(rng, grid), random_pair(rng, grid)
        found = compose_orders(*(tuple(each.profile() for each in pair) for pair in (one, other)))
        exact = one[0].compose(other[0])
        assert_bounds(found, exact)
        true = np.array(exact.deltas()[: found.deltas.size], float)
    np.testing.assert_allclose(found.deltas, true, rtol=1e-9, atol=1e-12)
