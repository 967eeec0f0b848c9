"""Noise multipliers never leak above (epsilon, delta), by profiles and by the exact law, and hardly
less."""

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import norm

import tplfrontier as tf
import tplrepro as tpl
from tests.tplrepro.leakage.matrices import BACKWARD, FORWARD, matrices
from tplfrontier.budgets.gaussian_noise import _find_zero, _Series
from tplfrontier.exact.two_states import ExactGaussianProfile

INDEPENDENT = np.full((3, 3), 1 / 3)


def epsilons(multipliers, delta, *sides, **settings):
    events = [GaussianDpEvent(m) for m in multipliers.tolist()]
    return tf.temporal_privacy_profile(events, *sides, **settings).epsilon(delta)


LEVELS = st.tuples(
    st.floats(-1.5, 0.8).map(lambda x: 10.0**x), st.floats(-9.0, -1.5).map(lambda x: 10.0**x)
)
TWO = matrices(2, ("dense", "zeros", "smoothed", "near_identity", None))
FOUR = matrices(4, ("dense", "zeros", "smoothed", "near_identity", "sharp", "sparse", None))


@pytest.mark.parametrize("cases", [8, pytest.param(300, marks=pytest.mark.slow)])
def test_allocated_noise_keeps_the_level_and_has_no_more_variance_than_equal_noise(cases):
    both = st.sampled_from([TWO, FOUR]).flatmap(lambda side: st.tuples(side, side))
    settings(max_examples=cases)(given(LEVELS, both, st.integers(1, 4))(check_level))()


def check_level(level, sides, horizon):
    epsilon, delta = level
    known = tuple(P if P is None else tpl.PrivacyLossFunction(P) for P in sides)
    equal = tf.allocate_noise(epsilon, delta, *known, horizon)
    least = tf.allocate_noise(epsilon, delta, *known, horizon, method="least_variance")
    for found in (equal, least):
        assert epsilons(found, delta, *known).max() <= epsilon
        # By the exact law, not on a finer grid: its bound, above the truth as well, may be the
        # larger one (by 4e-7).
        if all(P is None or len(P) == 2 for P in sides):
            assert ExactGaussianProfile(found, *sides).epsilon(delta).max() <= epsilon * (1 + 1e-9)
    assert (equal == equal[0]).all()
    assert epsilons(equal * (1 - 1e-4), delta, *known).max() > epsilon
    assert epsilons(least * (1 - 1e-4), delta, *known).max() > epsilon
    assert (least**2).sum() <= (equal**2).sum() * (1 + 1e-12)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (1.0, 1e-6), (6.0, 1e-3)])
@pytest.mark.parametrize(("sides", "together"), [
    ((INDEPENDENT, INDEPENDENT), 1), ((None, None), 1),
    ((np.eye(3), np.eye(3)), 500), ((None, np.eye(2)), 60),
    ((np.eye(2), [[0.6, 0.4], [0.3, 0.7]]), 60),
])  # fmt: skip
def test_closed_forms_without_correlation_and_under_the_strongest(epsilon, delta, sides, together):
    for method in ("equal", "least_variance"):
        found = tf.allocate_noise(epsilon, delta, *sides, max(together, 60), method=method)
        assert np.ptp(found) <= 1e-12 * found[0]
        for factor, above in ((1.0, False), (1 - 2e-3, True)):
            mu = together**0.5 / (found[0] * factor)  # mu-GDP (Dong, Roth, Su 2022)
            exact = norm.sf(epsilon / mu - mu / 2) - np.exp(
                epsilon + norm.logsf(epsilon / mu + mu / 2)
            )
            assert (exact > delta) == above


@pytest.mark.parametrize(("sides", "epsilon", "gain"), [
    ((BACKWARD, None), 0.2, 0.05),
    pytest.param((BACKWARD, FORWARD), 1.0, 0.035, marks=pytest.mark.slow),
    pytest.param((BACKWARD, FORWARD), 4.0, 0.05, marks=pytest.mark.slow),
])  # fmt: skip
def test_a_search_from_the_least_variance_does_not_do_better(sides, epsilon, gain):
    known, delta = tuple(P if P is None else tpl.PrivacyLossFunction(P) for P in sides), 1e-6

    def variance(logs):
        """The total variance of proportions, scaled to the level by secants; epsilon falls with
        noise."""
        shape, factor = np.exp(np.append(0.0, logs)), 5.0 / epsilon
        for _ in range(20):
            leaked = epsilons(factor * shape, delta, *known).max()
            factor *= (leaked / epsilon) ** (0.9 if epsilon > 1 else 1.0)
            if abs(leaked / epsilon - 1.0) < 1e-5:
                break
        return (factor * shape @ shape * factor).item()

    equal = tf.allocate_noise(epsilon, delta, *known, 3)
    least = tf.allocate_noise(epsilon, delta, *known, 3, method="least_variance")
    assert (least**2).sum() < (1 - gain) * (equal**2).sum()
    start = np.log(least[1:] / least[0])
    searched = minimize(
        variance, start, method="Nelder-Mead", options={"maxfev": 80, "xatol": 1e-4}
    ).fun
    assert searched > (least**2).sum() * (1 - 2e-3)


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(200.0, 1e-6), (1e-3, 1e-6), (1e-3, 1e-2), (1.0, 1e-14)]
)
def test_the_level_is_kept_and_reached_at_its_extremes(epsilon, delta):
    least = tf.allocate_noise(epsilon, delta, BACKWARD, FORWARD, 3, method="least_variance")
    assert epsilon * (1 - 1e-4) < epsilons(least, delta, BACKWARD, FORWARD).max() <= epsilon


@pytest.mark.slow
def test_long_series_are_constant_in_the_middle():
    least = tf.allocate_noise(1.0, 1e-6, BACKWARD, FORWARD, 50, method="least_variance")  # by knots
    assert np.ptp(least[15:-15]) <= 1e-4 * least[25]
    assert max(least[0], least[-1]) < 0.85 * least[25]
    short = tf.allocate_noise(1.0, 1e-6, BACKWARD, FORWARD, 24, method="least_variance")
    assert np.r_[short[:10], short[-10:]] == pytest.approx(np.r_[least[:10], least[-10:]], rel=2e-3)


def test_noise_is_reversed_with_time_and_needs_less_between_steps_without_correlation():
    steps = [BACKWARD, INDEPENDENT[:2, :2] * 1.5, BACKWARD, BACKWARD]
    least = tf.allocate_noise(1.0, 1e-6, steps, None, 5, method="least_variance")
    assert tf.allocate_noise(
        1.0, 1e-6, None, steps[::-1], 5, method="least_variance"
    ) == pytest.approx(least[::-1])
    pair = tf.allocate_noise(1.0, 1e-6, BACKWARD, None, 2, method="least_variance")
    assert least[:2] == pytest.approx(pair, rel=3e-3)
    assert epsilons(least, 1e-6, steps, None).max() <= 1.0


def test_noise_grows_where_another_composition_rounds_above_the_level(monkeypatch):
    leakages = _Series.leakages
    tried = []

    def above_at_first(series, budgets):
        tried.append(budgets[0])
        found = leakages(series, budgets)
        if len(tried) == 1:
            return found + 1e-3
        return found

    monkeypatch.setattr(_Series, "leakages", above_at_first)
    noise = tf.allocate_noise(1.0, 1e-6, np.eye(2), np.eye(2), 3)
    assert len(tried) == 2
    assert tried[1] < tried[0]
    assert epsilons(noise, 1e-6, np.eye(2), np.eye(2)).max() <= 1.0


def test_the_zero_of_a_falling_line_lies_on_it():
    losses = np.linspace(0.0, 2.0, 5)
    assert _find_zero(1.2 - losses, losses) == pytest.approx(1.2)
    assert _find_zero(-losses, losses) == 0.0
    assert _find_zero(3.0 - losses, losses) == 0.0  # none is within
