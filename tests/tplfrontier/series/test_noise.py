"""Noise for normal series keeps mu at every time, and is the least that does."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import toeplitz
from scipy.optimize import minimize

import tplfrontier as tf
from tests.oracles import gaussian_leakage_mpmath
from tplfrontier.series.noise import _CuttingPlanes, _IndependentNoise

AR = tf.LinearGaussianSeries.autoregressive
T = 5
SUMS = np.tril(np.ones((T, T)))


def by_another_optimiser(mu, K, change, cost, noise_of, start):
    """The least cost by SLSQP from a noise that keeps mu; derivatives by differences, leakages by
    inverses."""

    def surplus(x):
        left = np.linalg.inv(np.linalg.inv(K) + np.linalg.inv(noise_of(x)))
        return (mu / change) ** 2 - (1 / np.diagonal(left) - 1 / np.diagonal(K))

    constraints = [{"type": "ineq", "fun": surplus}]
    constraints += [{"type": "ineq", "fun": lambda x: np.linalg.eigvalsh(noise_of(x))[0] - 1e-7}]
    found = minimize(cost, start, constraints=constraints, tol=1e-10, options={"maxiter": 500})
    assert surplus(found.x).min() > -1e-7
    return found.fun


@pytest.mark.parametrize("rho", [0.0, 0.5, -0.9, 0.99])
@pytest.mark.parametrize(("mu", "change"), [(0.2, 1.0), (3.0, 2.0)])
def test_equal_noise_is_the_least_that_keeps_mu(rho, mu, change):
    series = AR(rho, 40, 2.0)
    noise = tf.allocate_series_noise(mu, series, change)
    assert tf.gaussian_series_leakage(series, noise, change).max() <= mu
    assert tf.gaussian_series_leakage(series, noise * (1 - 1e-9), change).max() > mu * (1 - 1e-12)
    np.testing.assert_allclose(
        tf.allocate_series_noise(mu, series.covariance, change), noise, rtol=1e-9
    )
    endless = tf.endless_series_noise(mu, series, change)
    assert noise[0] <= endless * (1 + 1e-12)
    assert tf.gaussian_series_leakage(AR(rho, 100_000, 2.0), endless, change).max() <= mu
    # one side's information I solves I + L(I) = (mu / change)^2, as in Algorithm 7 of [1]; the
    # noise is I - L(I)
    level, rest = (mu / change) ** 2, 2.0 * (1 - rho**2)
    one_side = np.roots([rest, 1 + rho**2 - level * rest, -level]).max()
    assert endless == pytest.approx(1 / (2 * one_side - level), rel=1e-9)


@pytest.mark.parametrize("mu", [0.2, 1.0, 3.0])
def test_endless_noise_keeps_mu_for_a_state_of_several_numbers(mu):
    series = AR([0.9, -0.2, 0.1], 10_000)
    noise = tf.endless_series_noise(mu, series, 1.0)
    assert mu * (1 - 2e-8) < tf.gaussian_series_leakage(series, noise, 1.0).max() <= mu


def banded(lags):
    return toeplitz(np.r_[lags, np.zeros(T - len(lags))])


@pytest.mark.parametrize(("rho", "band"), [(0.3, None), (0.9, None), (0.8, 1), (0.8, 2)])
@pytest.mark.parametrize("workload", [np.eye(T), SUMS], ids=["each value", "sums"])
def test_least_noise_is_what_another_optimiser_finds(rho, band, workload):
    mu, change, K = 0.8, 1.5, AR(rho, T).covariance
    start = tf.allocate_series_noise(mu, K, change)
    if band is None:
        workload = np.eye(T)
        noise_of, best = np.diag, np.diag(tf.allocate_series_noise(mu, K, change, equal=False))
    else:
        noise_of, best = banded, tf.correlate_series_noise(mu, K, change, band, workload=workload)
        start = np.append(start[0], np.zeros(band))
        np.testing.assert_allclose(best, banded(best[0, : band + 1]), rtol=1e-15)

    def cost(noise):
        return np.trace(workload @ noise @ workload.T)

    expected = by_another_optimiser(mu, K, change, lambda x: cost(noise_of(x)), noise_of, start)
    assert tf.gaussian_series_leakage(K, best, change).max() <= mu
    assert expected * (1 - (1e-6 if band is None else 1e-5)) <= cost(best) <= expected * (1 + 2e-4)
    assert cost(best) < cost(noise_of(start))


def test_without_a_band_the_best_noise_is_shaped_like_the_series():
    mu, change, K = 0.5, 2.0, AR([0.5, 0.3], T, 3.0).covariance
    best = tf.correlate_series_noise(mu, K, change, T - 1)
    np.testing.assert_allclose(best, (change / mu) ** 2 * K / 3.0, rtol=2e-2)
    assert best[0, 0] == pytest.approx((change / mu) ** 2, rel=1e-4)
    of_no_band = tf.correlate_series_noise(mu, K, change, 0)
    np.testing.assert_allclose(
        of_no_band, np.diag(tf.allocate_series_noise(mu, K, change)), rtol=1e-9
    )


@settings(max_examples=10)
@given(st.integers(0, 2**32 - 1), st.floats(-2.0, 1.5), st.integers(0, 2))
def test_no_noise_leaks_more_than_mu(seed, logarithm, band):
    rng, mu = np.random.default_rng(seed), 10.0**logarithm
    # variances may be far above the noise
    root = rng.normal(size=(4, 2)) * 10.0 ** rng.uniform(0.0, 3.5)
    K = root @ root.T + 0.01 * np.eye(4)
    for noise in (
        tf.allocate_series_noise(mu, K, 1.0),
        tf.allocate_series_noise(mu, K, 1.0, equal=False),
        tf.correlate_series_noise(mu, K, 1.0, band, workload=rng.normal(size=(2, 4))),
    ):
        assert max(gaussian_leakage_mpmath(K, noise, 1.0)) <= mu
        assert (
            np.linalg.eigvalsh(noise if noise.ndim == 2 else np.diag(noise))[0]
            >= -1e-9 * noise.max()
        )


def test_noise_that_is_not_found_to_be_the_least_says_so_and_keeps_mu(monkeypatch):
    monkeypatch.setattr("tplfrontier.series.noise.ROUNDS", 2)
    # the second program has no solution
    fading = tf.LinearGaussianSeries([[0.0826]], [[0.0]], [1.0], [[0.3]], 12)
    for series, mu, change, band in ((AR(0.9, 8), 1.0, 1.0, 2), (fading, 25.0, 18.0, 9)):
        with pytest.warns(
            UserWarning, match=r"to a share of 0.0001, found [\d.e+]+ after 2 rounds; it keeps mu"
        ):
            noise = tf.correlate_series_noise(mu, series, change, band)
        assert tf.gaussian_series_leakage(series, noise, change).max() <= mu


def test_mu_is_kept_where_rounding_of_the_covariance_matters():
    """The exact law of the series; without a margin for the floats of its covariance, mu was 2e-11
    too high."""
    series, mu, change = (
        AR(-0.9999998955361102, 4, 983.1007117049876),
        1.3131819440649577,
        0.02957553000666787,
    )
    noise = tf.correlate_series_noise(mu, series, change, 0)
    a, innovation, variance = (
        mpmath.mpf(x.item()) for x in (series.transition, series.innovation, series.initial)
    )
    K = np.empty((4, 4), dtype=object)
    with mpmath.workdps(50):
        for t in range(4):
            for s in range(t, 4):
                K[s, t] = K[t, s] = a ** (s - t) * variance
            variance = a * a * variance + innovation
    assert mu * (1 - 1e-6) < max(gaussian_leakage_mpmath(K, noise, change)) <= mu


def test_two_numbers_near_a_unit_root_have_a_margin_or_an_error_of_ours(monkeypatch):
    series, mu, change = (
        AR([-1.9817888521126132, -0.9818415755845847], 4, 33.10914656859399),
        0.234,
        0.0109,
    )
    noise = tf.allocate_series_noise(mu, series, change)
    assert tf.gaussian_series_leakage(series, noise, change).max() <= mu * (1 - 1e-9)
    for must in ("be solved to 1e-10", "have a solution"):
        with pytest.raises(ValueError, match=f"the Riccati equation must {must}"):
            tf.gaussian_series_limit(AR([1.998, -0.998001], 1), 1.0, 1.0)
        monkeypatch.setattr(
            "scipy.linalg.solve_discrete_are", lambda *_: np.linalg.inv(np.zeros((2, 2)))
        )


def test_noise_that_is_short_is_mixed_with_more_until_it_keeps_mu():
    K = AR(0.9, T).covariance
    start = tf.allocate_series_noise(1.0, K, 1.0)
    programme = _CuttingPlanes(K, _IndependentNoise(), np.ones(T), 3.0 * start, 100.0 * start[0])
    programme._cut_at(0.5 * start)
    assert tf.gaussian_series_leakage(K, programme.best, 1.0).max() <= 1.0
    assert programme.best.sum() < 1.5 * start.sum()
