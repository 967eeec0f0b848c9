"""Gaussian series: direct formula, smoother, high precision and density ratios agree."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import block_diag
from scipy.stats import multivariate_normal

import tplfrontier as tf
from tests.oracles import gaussian_leakage_mpmath
from tests.work import lines_run, most_bytes
from tplfrontier.series.state_space import LinearGaussianSeries

AR = LinearGaussianSeries.autoregressive
LEVEL = LinearGaussianSeries([[1.0]], [[0.3]], [2.0], [[0.5]], 12)  # a random walk
TREND = LinearGaussianSeries(
    [[1.0, 1.0], [0.0, 0.9]], np.diag([0.1, 0.02]), [1.0, 0.0], np.eye(2), 12
)
SMOOTH = LinearGaussianSeries([[1.0, 1.0], [0.0, 1.0]], np.zeros((2, 2)), [1.0, 0.0], np.eye(2), 12)
CONSTANT = LinearGaussianSeries([[1.0]], [[0.0]], [1.0], [[3.0]], 12)
SERIES = {f"AR{c}": AR(c, 12, 2.0) for c in ([0.0], [0.9], [-0.99], [0.9, -0.2, 0.1], [1.5, -0.6])}
SERIES |= {"random walk": LEVEL, "trend": TREND, "constant": CONSTANT}


def moving_average(weights, horizon):
    """The sum of weights[k] u_{t-k} with independent standard normal u_t."""
    d = len(weights)
    return LinearGaussianSeries(
        np.eye(d, k=-1), np.diag(np.arange(d) == 0), weights, np.eye(d), horizon
    )


NOISES = {
    "little": 1e-6,
    "much": 1e6,
    "changing": np.geomspace(0.01, 100.0, 12),
    "with gaps": np.array([1.0, np.inf, np.inf, 0.5] * 3),
    "moving average": moving_average([1.0, -0.6, 0.2], 12),
    "autoregressive": AR(0.7, 12, 3.0),
}


@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
@pytest.mark.parametrize("series", SERIES.values(), ids=SERIES)
def test_smoother_direct_formula_and_high_precision_agree_to_12_digits(series, noise):
    K = series.covariance
    full = noise.covariance if isinstance(noise, LinearGaussianSeries) else noise
    expected = np.array(gaussian_leakage_mpmath(K, full, 1.5), dtype=float)
    for found in (
        tf.gaussian_series_leakage(series, noise, 1.5),
        tf.gaussian_series_leakage(K, noise, 1.5),
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    # the recursion for larger states, of which the second is not in the value
    if series.value.size == 1:
        F, Q, P = (
            block_diag(part, 0.5) for part in (series.transition, series.innovation, series.initial)
        )
        larger = LinearGaussianSeries(F, Q, np.append(series.value, 0.0), P, series.horizon)
        np.testing.assert_allclose(
            tf.gaussian_series_leakage(larger, noise, 1.5), expected, rtol=1e-12
        )


@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_leakage_is_that_of_the_density_ratio_of_the_outputs(seed, T):
    """The logarithm of the ratio is affine in the outputs, so its mean and variance are exact: mu^2
    / 2 and mu^2."""
    rng = np.random.default_rng(seed)
    roots = rng.normal(size=(2, T, T))
    K, noise = roots @ roots.transpose(0, 2, 1) + 1e-3 * np.eye(T)
    t, change = rng.integers(T), 0.7
    slope = K[:, t] / K[t, t]
    law = K + noise - np.outer(slope, K[t])  # of the outputs, given x_t
    means = (1.3 + change) * slope, 1.3 * slope

    def ratio(outputs):
        first, second = (multivariate_normal.logpdf(outputs, mean, law) for mean in means)
        return first - second

    gradient = np.array([ratio(means[0] + unit) - ratio(means[0]) for unit in np.eye(T)])
    mu = tf.gaussian_series_leakage(K, noise, change)[t]
    assert ratio(means[0]) == pytest.approx(mu**2 / 2, rel=1e-6)
    assert gradient @ law @ gradient == pytest.approx(mu**2, rel=1e-6)


@pytest.mark.parametrize("series", [AR(0.5, 3), np.eye(3)])
def test_nothing_leaks_without_a_release(series):
    assert tf.gaussian_series_leakage(series, [np.inf] * 3, 1.0).tolist() == [0.0] * 3


@given(st.floats(-0.999, 0.999), st.floats(-3.0, 3.0), st.integers(1, 40))
def test_leakage_grows_with_outputs_correlation_and_less_noise(rho, logarithm, T):
    noise, slack = 10.0**logarithm, 1 + 1e-12
    mu = tf.gaussian_series_leakage(AR(rho, T), noise, 1.0)
    assert np.all(mu >= 1 / np.sqrt(noise) / slack)  # its own output
    assert np.all(mu <= np.sqrt(T / noise) * slack)  # a series that never changes
    assert np.all(mu <= tf.gaussian_series_leakage(AR(rho, T + 1), noise, 1.0)[:T] * slack)
    assert np.all(
        mu <= tf.gaussian_series_leakage(AR(min(abs(rho) + 5e-4, 0.9999), T), noise, 1.0) * slack
    )
    assert np.all(mu >= tf.gaussian_series_leakage(AR(rho, T), 1.1 * noise, 1.0) / slack)
    assert mu.max() <= tf.gaussian_series_limit(AR(rho, 1), noise, 1.0) * slack
    np.testing.assert_allclose(
        tf.gaussian_series_leakage(AR(rho, T), noise, 2.5), 2.5 * mu, rtol=1e-14
    )


@pytest.mark.parametrize("noise", [0.01, 1.0, 100.0, "moving average"])
@pytest.mark.parametrize("name", [name for name in SERIES if name.startswith("AR")])
def test_long_series_reach_the_limit(name, noise):
    long, noise = (
        AR(SERIES[name].transition[0], 40_001, 2.0),
        noise if isinstance(noise, float) else NOISES[noise],
    )
    lasting = moving_average(noise.value, 40_001) if not isinstance(noise, float) else noise
    mu = tf.gaussian_series_leakage(long, lasting, 1.0)
    assert mu[20_000] == pytest.approx(tf.gaussian_series_limit(long, noise, 1.0), rel=1e-11)
    assert mu.argmax() > 1 or np.ptp(mu) < 1e-12


def limit_by_frequencies(series, noise):
    """The mu of an autoregression in independent noise by Wiener's smoother: the variance that
    remains is the mean over all frequencies of S noise / (S + noise), with the spectrum S."""
    waves = np.exp(-2j * np.pi * np.arange(2**14) / 2**14)
    coefficients = series.transition[0]
    powers = waves[:, None] ** np.arange(1, coefficients.size + 1)
    filtered = abs(1.0 - powers @ coefficients) ** 2
    innovation = series.innovation[0, 0]
    remaining = np.mean(innovation * noise / (innovation + noise * filtered))
    return np.sqrt(1.0 / remaining - 1.0 / series.initial[0, 0])


def limit_or_refusal(series, noise):
    """The limit, or what is said where there is none."""
    try:
        return tf.gaussian_series_limit(series, noise, 1.0)
    except ValueError as error:
        return str(error)


@pytest.mark.parametrize(
    ("roots", "variance", "noise"),
    [
        ((0.9999, 0.998), 1e6, 1e6),
        ((0.9999, 0.99), 1e4, 1e6),
        ((0.9999, 0.99), 1.0, 100.0),
        ((0.999, 0.998), 100.0, 1e4),
        ((0.999, 0.998), 100.0 * 2.0**-20, 1e4 * 2.0**-20),
        ((0.999, 0.99), 1e-2, 1e-2),
        ((0.999, 0.3), 1.0, 1.0),
        ((0.999, 0.998), 1e4, 1.0),
    ],
)
def test_a_limit_is_right_to_10_digits_or_refused(roots, variance, noise):
    first, second = roots
    series = AR([first + second, -first * second], 1, variance)
    exact = limit_by_frequencies(series, noise)
    found = limit_or_refusal(series, noise)
    if isinstance(found, str):
        assert found.startswith("the Riccati equation must")
        assert noise >= variance  # else most of the variance is explained, and the limit is clear
    else:
        assert found == pytest.approx(exact, rel=1e-10)


def test_a_limit_is_that_of_the_values_in_other_units():
    once = LinearGaussianSeries([[0.9]], [[0.19]], [1.0], [[1.0]], 1)
    thrice = LinearGaussianSeries([[0.9]], [[0.19]], [3.0], [[1.0]], 1)
    expected = tf.gaussian_series_limit(once, 4.0, 1.0)
    assert tf.gaussian_series_limit(thrice, 36.0, 3.0) == pytest.approx(expected, rel=1e-12)
    long = LinearGaussianSeries([[0.9]], [[0.19]], [3.0], [[1.0]], 2001)
    mu = tf.gaussian_series_leakage(long, 36.0, 3.0)
    assert mu[1000] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("noise", [4.0, np.linspace(1.0, 4.0, 10**6)], ids=["constant", "changing"])
def test_a_million_values_have_finite_leakage(noise):
    mu = tf.gaussian_series_leakage(AR(0.999, 10**6), noise, 1.0)
    assert mu.shape == (10**6,)
    assert np.isfinite(mu).all()


@pytest.mark.parametrize("noise", [4.0, np.linspace(1.0, 4.0, 10**5)], ids=["constant", "changing"])
def test_each_value_takes_some_lines_of_python_and_some_numbers_however_long_the_series(noise):
    def compute():
        tf.gaussian_series_leakage(AR(0.999, 10**5), noise, 1.0)

    assert lines_run(compute) < 15 * 10**5
    assert most_bytes(compute) < 40 * 8 * 10**5


def test_a_covariance_that_cannot_be_solved_for_is_an_error_with_a_remedy(monkeypatch):
    """As on some processors, for roots that hardly differ from 1."""

    def singular(*matrices):
        raise np.linalg.LinAlgError("singular")

    monkeypatch.setattr("scipy.linalg.solve_discrete_lyapunov", singular)
    with pytest.raises(
        ValueError, match=r"must be clearly stationary \(singular\); give roots further below 1"
    ):
        LinearGaussianSeries.autoregressive([0.5, 0.2], 3)


@pytest.mark.parametrize("coefficients", [[1.5, 0.6], [0.0, -1.21], [1.0], [-1.0], [1.2, -0.2]])
def test_coefficients_of_no_stationary_series_are_refused(coefficients):
    with pytest.raises(ValueError, match="must belong to a clearly stationary series"):
        AR(coefficients, 3)
