"""Profiles of Gaussian releases against what the actual mechanism leaks: digits for two states,
else simulation."""

import re

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

import tplfrontier as tf
from tests.oracles import simulated_profile
from tests.tplrepro.leakage.matrices import BACKWARD, FIG_3, FORWARD, SWAPPED, THREE, matrices
from tplfrontier.exact import two_states
from workflow.configuration import ROOT

LOSSES = np.array([0.0, 0.25, 0.5, 1.0, 1.5, 3.0])
#: The error of exact profiles, absolute: sums of at most a few thousand rounded probabilities.
ROUNDING = 1e-13
UNINFORMATIVE = np.full((2, 2), 0.5)


def gaussian_delta(shift):
    return norm.sf(LOSSES / shift - shift / 2) - np.exp(
        LOSSES + norm.logsf(LOSSES / shift + shift / 2)
    )


def deltas(profile):
    """At all times and LOSSES, (T, losses)."""
    return np.transpose([profile.delta(x) for x in LOSSES])


def exact_deltas(shifts, backward, forward):
    """BPL, FPL and TPL of the actual mechanism, (3, T, losses)."""
    sides = (backward, None), (None, forward), (backward, forward)
    return np.array([deltas(tf.ExactGaussianProfile(1 / shifts, *pair)) for pair in sides])


def bounds(shifts, backward, forward, **options):
    events = [GaussianDpEvent(1 / shift) for shift in shifts]
    return tf.temporal_privacy_profile(events, backward, forward, **options)


def bounded_deltas(*arguments, **options):
    r = bounds(*arguments, **options)
    return np.array([deltas(side) for side in (r.backward, r.forward, r)])


@pytest.mark.parametrize("shift", [0.05, 0.5, 1.5])
def test_exact_profile_has_thirteen_digits(shift, monkeypatch):
    """Against closed forms, and against itself on a grid twice as fine."""
    for matrix, factor in ((np.eye(2), 5**0.5), (UNINFORMATIVE, 1.0), (None, 1.0)):
        found = exact_deltas(np.full(5, shift), matrix, UNINFORMATIVE)[2, -1]
        np.testing.assert_allclose(found, gaussian_delta(shift * factor), 0, ROUNDING)
    shifts = shift * np.linspace(1.5, 0.5, 6)
    coarse = exact_deltas(shifts, [BACKWARD, None, *[SWAPPED] * 3], FIG_3)
    monkeypatch.setattr(two_states, "STEPS", 8)
    np.testing.assert_allclose(
        coarse, exact_deltas(shifts, [BACKWARD, None, *[SWAPPED] * 3], FIG_3), 0, ROUNDING
    )


def test_a_weak_release_after_a_strong_one_has_ten_digits():
    """By quadrature with 25 digits; on the grid of the strong release alone the error was 4e-11."""
    forward = [[0.0, 1.0], [0.13191656073798835, 0.8680834392620117]]
    found = tf.ExactGaussianProfile([8.0, 1.0], None, forward).delta(3.0)
    assert found[0] == pytest.approx(1.0539084333619142e-07, abs=ROUNDING)


@pytest.mark.parametrize(
    ("sides", "t"),
    [
        ((FORWARD, FORWARD), 5),
        ((BACKWARD, FORWARD), 2),
        ((SWAPPED, FIG_3), 3),
        ((THREE, THREE.T), 2),
    ],
)
def test_simulation_agrees_with_the_exact_profile_and_stays_below_the_bound(sides, t):
    shifts = np.full(6, 0.5)  # between unit vectors at distance sqrt(2)
    rng = np.random.default_rng(3)
    mean, error = simulated_profile(*sides, t, 2**0.5 / shifts[0], 6, LOSSES, 100_000, rng)
    found = bounded_deltas(shifts, *sides)[2, t]
    assert (mean - 5 * error <= found + 1e-5).all()
    assert (found[:4] <= 1.3 * mean[:4]).all()  # up to 1 nat
    if len(sides[0]) == 2:
        assert (np.abs(mean - exact_deltas(shifts, *sides)[2, t]) <= 5 * error + 1e-5).all()


@settings(max_examples=20)
@given(matrices(2), matrices(2), st.lists(st.floats(0.05, 2.0), min_size=1, max_size=5))
def test_profiles_are_never_below_those_of_two_states_and_nearly_equal_by_pairs(
    backward, forward, shifts
):
    shifts = np.array(shifts)
    exact = exact_deltas(shifts, backward, forward)
    one, pairs = (
        bounded_deltas(shifts, backward, forward, grid=0.005, pairs=each) for each in (False, True)
    )
    for found in (one, pairs):
        assert (found >= exact - ROUNDING).all()
        assert (found >= exact * (1 - 1e-9) - 1e-15).all()
    seen = exact > 1e-6
    assert (pairs[seen] <= exact[seen] * 1.01 + 1e-4).all()


def documented():
    """The rows of the table of docs/theory/profiles.md: matrix, shift, T, delta, bound, pair by
    pair, exact."""
    text = (ROOT / "docs" / "theory" / "profiles.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| \(([^|]+)\) \| ([^|]+) \| (\d+) \| (\S+) \| (\S+) \| (\S+) \| (\S+) \|",
        text,
        re.MULTILINE,
    )
    assert len(rows) == 8
    return [
        ([[float(p) for p in row.split()] for row in matrix.split(";")], *more)
        for matrix, *more in rows
    ]


@pytest.mark.parametrize(
    ("P", "shift", "horizon", "delta", "bound", "by_pairs", "actual"), documented()
)
def test_profiles_exceed_the_exact_ones_by_as_much_as_documented(
    P, shift, horizon, delta, bound, by_pairs, actual
):
    shifts, delta = np.full(int(horizon), float(shift)), float(delta)
    exact = tf.ExactGaussianProfile(1 / shifts, P, None).epsilon(delta)
    found = [
        bounds(shifts, P, None, pairs=pairs).backward.epsilon(delta) for pairs in (False, True)
    ]
    assert (np.array(found) >= exact).all()
    assert [f"{epsilon[-1]:.3f}" for epsilon in (*found, exact)] == [bound, by_pairs, actual]


def test_a_delta_that_all_releases_keep_without_any_epsilon_needs_none():
    profile = tf.ExactGaussianProfile([1.0, 1.0], None, None)
    delta = float(profile.delta(0.0).max())
    assert profile.epsilon(1.001 * delta).tolist() == [0.0, 0.0]
    assert profile.epsilon(0.999 * delta).min() > 0.0


def test_more_work_than_is_allowed_is_refused_before_it_is_done(monkeypatch):
    monkeypatch.setattr(two_states, "MAX_WORK", 1e3)
    assert tf.ExactGaussianProfile([1.0, 1.0], FORWARD, None).delta(0.5).shape == (2,)
    with pytest.raises(ValueError, match="must fit 1000 pairs of grid points, found"):
        tf.ExactGaussianProfile([1.0] * 3, FORWARD, None)
