"""Profiles of Gaussian releases against what the actual mechanism leaks: digits for two states, else simulation."""

import numpy as np
import pytest
from scipy.stats import norm

import tplrepro as tpl
from tests.leakage.matrices import BACKWARD, FIG_3, FORWARD, SWAPPED
from tests.leakage.profile_oracles import simulated_profile
from tplrepro.leakage import exact_gaussian

LOSSES = np.array([0.0, 0.25, 0.5, 1.0, 1.5, 3.0])
#: The error of exact profiles, absolute: sums of at most a few thousand rounded probabilities.
ROUNDING = 1e-13
UNINFORMATIVE = np.full((2, 2), 0.5)


def gaussian_delta(shift):
    return norm.sf(LOSSES / shift - shift / 2) - np.exp(LOSSES + norm.logsf(LOSSES / shift + shift / 2))


def deltas(profile):
    """At all times and LOSSES, (T, losses)."""
    return np.transpose([profile.delta(x) for x in LOSSES])


def exact_deltas(shifts, backward, forward):
    """BPL, FPL and TPL of the actual mechanism, (3, T, losses)."""
    sides = (backward, None), (None, forward), (backward, forward)
    return np.array([deltas(tpl.ExactGaussianProfile(1 / shifts, *pair)) for pair in sides])


@pytest.mark.parametrize("shift", [0.05, 0.5, 1.5])
def test_exact_profile_has_thirteen_digits(shift, monkeypatch):
    """Against closed forms, and against itself on a grid twice as fine."""
    for matrix, factor in ((np.eye(2), 5**0.5), (UNINFORMATIVE, 1.0), (None, 1.0)):
        found = exact_deltas(np.full(5, shift), matrix, UNINFORMATIVE)[2, -1]
        np.testing.assert_allclose(found, gaussian_delta(shift * factor), 0, ROUNDING)
    shifts = shift * np.linspace(1.5, 0.5, 6)
    coarse = exact_deltas(shifts, [BACKWARD, None, *[SWAPPED] * 3], FIG_3)
    monkeypatch.setattr(exact_gaussian, "STEPS", 8)
    np.testing.assert_allclose(coarse, exact_deltas(shifts, [BACKWARD, None, *[SWAPPED] * 3], FIG_3), 0, ROUNDING)


def test_exact_epsilon_inverts_delta():
    exact = tpl.ExactGaussianProfile([2.0, 1.0, 4.0], BACKWARD, FORWARD)
    for delta in (1e-12, 1e-5, 0.2):
        for t, epsilon in enumerate(exact.epsilon(delta)):
            assert (
                exact.delta(epsilon)[t] == pytest.approx(delta, rel=1e-9) or epsilon == 0 >= exact.delta(0)[t] - delta
            )


@pytest.mark.parametrize(("sides", "t"), [((FORWARD, FORWARD), 5), ((BACKWARD, FORWARD), 2), ((SWAPPED, FIG_3), 3)])
def test_simulation_agrees_with_the_exact_profile(sides, t):
    shift = 0.5  # between unit vectors at distance sqrt(2)
    mean, error = simulated_profile(*sides, t, 2**0.5 / shift, 6, LOSSES, 100_000, np.random.default_rng(3))
    assert (np.abs(mean - exact_deltas(np.full(6, shift), *sides)[2, t]) <= 5 * error + 1e-5).all()
