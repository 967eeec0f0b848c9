"""Profiles of ordered pairs of states against enumeration, exact two-state chains, fifty digits, and one profile."""

from itertools import product

import mpmath
import numpy as np
import pytest
from dp_accounting import GaussianDpEvent
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mpf

import tplrepro as tpl
from tests.leakage.matrices import BACKWARD, FORWARD, SWAPPED, THREE, matrices
from tests.leakage.test_profile import worst_ratio
from tests.leakage.test_profile_rounding import rounded_up
from tplrepro.leakage import pair_profiles
from tplrepro.leakage.profile import composed

ALTERNATING = [[0.2, 0.8], [1.0, 0.0]]


@pytest.mark.parametrize("seeds", [range(6), pytest.param(range(1000, 2500), marks=pytest.mark.slow)])
def test_no_random_family_leaks_more(seeds):
    """Each seed compares about 70 values with enumeration."""
    assert max(worst_ratio(seed, pairs=True) for seed in seeds) < 1.0 + 1e-9


@settings(max_examples=8)
@given(matrices(3), matrices(3), st.lists(st.sampled_from([None, 0.3, GaussianDpEvent(2.0)]), min_size=1, max_size=4))
def test_is_never_above_the_bound_of_one_profile(backward, forward, events):
    events = [*events, 0.5]
    one, pairs = (
        tpl.temporal_privacy_profile(events, backward, forward, grid=0.01, pairs=each) for each in (False, True)
    )
    for x in (0.0, 0.2, 1.0, 3.0):
        assert (pairs.delta(x) <= one.delta(x) * (1 + 1e-9) + 1e-13).all()
        assert pairs.composed(0, len(events) - 1).delta(x) <= one.user_level.delta(x) * (1 + 1e-9) + 1e-13


def test_ends_are_the_pure_leakages_pair_by_pair():
    epsilons = [0.5, 1.0, 0.2, 0.7]
    r = tpl.temporal_privacy_profile(epsilons, THREE, THREE, pairs=True)
    level = 1.0 - np.eye(3)
    leakage = tpl.pairwise_leakage([e * level for e in epsilons], THREE, THREE)
    for series, expected in ((r.backward, leakage.bpl), (r.forward, leakage.fpl), (r.both, leakage.tpl)):
        np.testing.assert_allclose(series.largest, expected.max(axis=(1, 2)), rtol=1e-12)


def test_a_settled_run_is_the_recursion(monkeypatch):
    run = tpl.temporal_privacy_profile(GaussianDpEvent(3.0), SWAPPED, FORWARD, horizon=100, grid=0.02, pairs=True)
    assert len(run._before.bases) < 100
    monkeypatch.setattr(pair_profiles, "_settled", lambda new, old: False)
    step = tpl.temporal_privacy_profile(GaussianDpEvent(3.0), SWAPPED, FORWARD, horizon=100, grid=0.02, pairs=True)
    for x in (0.0, 0.5, 2.0):
        difference = run.delta(x) - step.delta(x)
        assert (np.abs(difference) <= 1e-12).all()


def test_a_chain_that_changes_and_pauses_as_one_that_does_not():
    product_ = np.array(BACKWARD) @ np.array(SWAPPED)
    long = tpl.temporal_privacy_profile([0.5, None, 0.4], [SWAPPED, BACKWARD], grid=0.01, pairs=True)
    short = tpl.temporal_privacy_profile([0.5, 0.4], product_, grid=0.01, pairs=True)
    for x in (0.0, 0.2, 0.5):
        assert long.delta(x)[-1] == pytest.approx(short.delta(x)[-1], abs=1e-14)
    unknown = tpl.temporal_privacy_profile([0.5, 0.4, 0.4], [SWAPPED, None], grid=0.01, pairs=True)
    assert unknown.epsilon(0.01)[-1] == tpl.PrivacyProfile.pure(0.4, 0.01).epsilon(0.01)


class ExactPair:
    """Masses of the losses 1, 2, ... grid steps for an ordered pair of values, and for the reverse order."""

    def __init__(self, grid, forth, back):
        self.grid, self.masses = mpf(grid), {k + 1: mpf(p) for k, p in enumerate(forth)}
        self.masses |= {-k - 1: mpf(p) * mpmath.exp(-self.grid * (k + 1)) for k, p in enumerate(back)}
        self.masses[0] = 1 - sum(self.masses.values())

    def delta(self, j):
        terms = (p * (1 - mpmath.exp((j - k) * self.grid)) for k, p in self.masses.items() if k > j)
        return sum(terms, mpf(0))

    def profile(self, size):
        deltas = np.minimum.accumulate([rounded_up(self.delta(j)) for j in range(size + 1)])
        return tpl.PrivacyProfile(deltas, float(self.grid))


def random_pair(rng, grid, size=15):
    """Both orders; the mass at 0 makes both sum to one, whence the last mass of the reverse order follows."""
    forth, back = (rng.random(size) ** 4 * (rng.random(size) < 0.8) for _ in range(2))
    forth *= 0.2 / forth.sum()
    shrunk = np.exp(-grid * np.arange(1, size + 1))
    back *= (forth * (1 - shrunk)).sum() / (back * (1 - shrunk)).sum()  # equal total variation
    return ExactPair(grid, forth, back), ExactPair(grid, back, forth)


@pytest.mark.parametrize("seed", range(6))
def test_compositions_of_ordered_pairs_round_up(seed):
    rng, size = np.random.default_rng(seed), 15
    grid = float(rng.choice([1e-3, 0.05, 0.3]))
    with mpmath.workdps(50):
        one, other = random_pair(rng, grid), random_pair(rng, grid)
        found = composed(*(tuple(each.profile(size) for each in pair) for pair in (one, other)))
        true = ExactPair(grid, [], [])
        true.masses = {}
        for (j, p), (k, q) in product(one[0].masses.items(), other[0].masses.items()):
            true.masses[j + k] = true.masses.get(j + k, mpf(0)) + p * q
        exact = [true.delta(j) for j in range(found.deltas.size)]
        assert all(mpf(bound) >= value for bound, value in zip(found.deltas.tolist(), exact, strict=True))
        np.testing.assert_allclose(found.deltas, np.array(exact, float), rtol=1e-9, atol=1e-12)
