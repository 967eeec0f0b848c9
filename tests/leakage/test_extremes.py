"""Numbers at the ends of floating point, arguments that are no such numbers."""

import mpmath
import numpy as np
import pytest
from dp_accounting import dp_event

import tplrepro as tpl
from tplrepro.leakage.profile import PrivacyProfile

P = [[0.8, 0.2], [0.1, 0.9]]
GAUSSIAN = dp_event.GaussianDpEvent(1.0)
PROFILE = tpl.temporal_privacy_profile(1.0, P, P, horizon=3)


def exact_gaussian_delta(shift, x):
    with mpmath.workdps(60):
        shift, x = mpmath.mpf(shift), mpmath.mpf(x)
        return float(mpmath.ncdf(shift / 2 - x / shift) - mpmath.exp(x) * mpmath.ncdf(-shift / 2 - x / shift))


@pytest.mark.parametrize("epsilon", [1.0, 600.0, 800.0, 1250.0, 1400.0])
def test_exact_gaussian_delta_beyond_the_largest_power(epsilon):
    found = tpl.ExactGaussianProfile(0.02, horizon=1).delta(epsilon)[0]
    assert found == pytest.approx(exact_gaussian_delta(50.0, epsilon), rel=1e-9)
    along = tpl.ExactGaussianProfile([0.05, 0.05], np.eye(2)).delta(epsilon)[1]
    assert along == pytest.approx(exact_gaussian_delta(20.0 * np.sqrt(2.0), epsilon), rel=1e-9)


@pytest.mark.parametrize("delta", [1e-3, 1e-12, 1e-15, 1e-16, 1e-100])
def test_gaussian_mu_without_epsilon(delta):
    mu = tpl.gaussian_mu(0.0, delta)
    with mpmath.workdps(200):
        exact = float(mpmath.erf(mpmath.mpf(mu) / mpmath.sqrt(8)))
    assert delta * (1.0 - 1e-13) <= exact <= delta


@pytest.mark.parametrize("epsilon", [800.0, 1e7, 1e30])
def test_accountant_continues_after_a_release_that_hides_nothing(epsilon):
    account = tpl.TemporalAccountant(backward=P).compose(epsilon)
    assert account.epsilon(1e-6)[0] == pytest.approx(epsilon)
    assert account.compose(0.1).epsilon(1e-6)[1] >= account.epsilons[1]


def test_profiles_of_rows_that_nearly_agree_with_little_noise():
    nearly = [[0.5, 0.5], [0.5 + 1e-15, 0.5 - 1e-15]]
    for event in (dp_event.GaussianDpEvent(1e-3), dp_event.LaplaceDpEvent(1e-7), 1e7):
        alone = tpl.temporal_privacy_profile(event, horizon=3).epsilon(1e-6)
        r = tpl.temporal_privacy_profile(event, nearly, nearly, horizon=3).epsilon(1e-6)
        assert (r >= alone * (1.0 - 1e-12)).all()
        assert (r <= alone * (1.0 + 1e-6)).all()


def test_discrete_laplace_noise_of_a_large_sensitivity():
    parameter, sensitivity = 1e-3, 10_000
    profile = PrivacyProfile.of_event(dp_event.DiscreteLaplaceDpEvent(parameter, sensitivity), 0.01)
    p, between = mpmath.mpf(parameter), range(1, sensitivity // 2)
    for j in (0, 300, 999):
        x = j * mpmath.mpf(0.01)
        masses = [(1 / (1 + mpmath.exp(-p)), p * sensitivity)]
        masses += [(mpmath.tanh(p / 2) * mpmath.exp(-p * b), p * (sensitivity - 2 * b)) for b in between]
        exact = mpmath.fsum(mass * max(-mpmath.expm1(x - loss), 0) for mass, loss in masses)
        assert exact <= profile.deltas[j] <= exact * (1 + 1e-9)


def test_unsigned_times():
    times = np.array([0, 3], np.uint8)
    result = tpl.leakage_at_all_times(0.5, P, P, times=times, horizon=5)
    assert (result.epsilons > 0).tolist() == [True, False, False, True, False]
    with pytest.raises(ValueError, match="increasing time points in 0..4"):
        tpl.allocate_optimally(1.0, P, P, 5, times=times[::-1])


def account():
    return tpl.TemporalAccountant(P)


SAMPLED = dp_event.SampledWithoutReplacementDpEvent
EVENTS = [
    (dp_event.GaussianDpEvent("a"), "noise_multiplier of an event must be a number, found str"),
    (dp_event.GaussianDpEvent([1, 2]), r"noise_multiplier must be one number, found shape \(2,\)"),
    (SAMPLED(0, 0, GAUSSIAN), "source_dataset_size must be at least 1, found 0"),
    (SAMPLED(9, "a", GAUSSIAN), "sample_size of an event must be a number"),
]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda: PrivacyProfile.of_event(1.0, 0), "grid must be .* greater than 0, found 0"),
        (lambda: PROFILE.profile_at(0).on(0.0), "grid must be .* found 0"),
        (lambda: tpl.temporal_privacy_profile(1.0, P, horizon=2, grid=800.0), "at most 512 nats, found 800"),
        (lambda: PrivacyProfile(np.array([0.5, 0.0]), 0.1, -1.0), "largest must be at least 0, found -1"),
        (lambda: PrivacyProfile(np.array([0.5, np.nan]), 0.1), "deltas must be probabilities"),
        (lambda: PrivacyProfile(np.ma.array([0.5, 0.1], mask=[0, 1]), 0.1), "deltas must be numbers, .* masked"),
        (lambda: PrivacyProfile(np.array([0.5, 0.1j]), 0.1), "deltas must be numbers, .*complex"),
        (lambda: account().compose(True), "epsilon must be .* found True"),
        (lambda: account().compose(1.0, True), "count must be a whole number, found True"),
        (lambda: account().epsilon(None), "delta must be .* found nan"),
        (lambda: account().epsilon([0.1, 0.2]), r"delta must be one number, found shape \(2,\)"),
        (lambda: tpl.population_leakage({"a": [0, 1]}, [0.5], n_jobs=0), "n_jobs must be .* found 0"),
        (lambda: tpl.population_leakage({"a": [0, 1]}, [0.5], smoothing=1e308), "smoothing must be .* found 1e"),
        (lambda: tpl.gaussian_series_limit(np.eye(3), 1.0, 1.0), "needs a LinearGaussianSeries, found ndarray"),
        (lambda: tpl.endless_series_noise(1.0, np.eye(3), 1.0), "needs a LinearGaussianSeries, found ndarray"),
        (lambda: PROFILE.profile_at(1.0), "t must be a whole number, found 1.0"),
        (lambda: PROFILE.profile_at(3), "t must be a time point in 0..2, found 3"),
        (lambda: PROFILE.composed(0.0, 1.0), "first must be a whole number, found 0.0"),
        (lambda: tpl.temporal_privacy_leakage(1.0, P, horizon=3).composed(0, 2.0), "last must be a whole number"),
        (lambda: tpl.temporal_privacy_profile({1.0, 0.1}, P), "events must be a list"),
        (lambda: tpl.ExactGaussianProfile([0.2] * 64, np.eye(2)), "must fit .* take fewer releases"),
        *((lambda event=event: account().compose(event), message) for event, message in EVENTS),
    ],
)
def test_errors(function, message):
    with pytest.raises(ValueError, match=message):
        function()


def test_states_are_numbered_by_whole_numbers():
    with pytest.raises(IndexError, match=r"found 0\.5"):
        tpl.TransitionMatrix(P).row(0.5)
