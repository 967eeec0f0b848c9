"""(epsilon, delta) of a normal shift: never below the exact value, and next to nothing more."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tplfrontier as tf

MU = st.floats(-4.0, 2.0).map(lambda x: 10.0**x)


def exact_delta(mu, epsilon):
    """The hockey-stick divergence of two normal laws, as an mpmath number."""
    with mpmath.workdps(60):
        mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
        low, high = ((epsilon / mu + sign * mu / 2) / mpmath.sqrt(2) for sign in (-1, 1))
        return (mpmath.erfc(low) - mpmath.exp(epsilon) * mpmath.erfc(high)) / 2


@given(MU, st.floats(0.0, 36.0))
def test_delta_is_rounded_up_and_by_little(mu, ratio):
    epsilon = mu * ratio
    delta, exact = tf.gaussian_delta(mu, epsilon), exact_delta(mu, epsilon)
    assert exact <= delta <= max(exact * (1 + mpmath.mpf(2e-6)), 1e-300)


@given(MU, st.floats(-290.0, -0.1).map(lambda x: 10.0**x))
def test_epsilon_and_mu_keep_delta_and_are_tight(mu, delta):
    epsilon = tf.gaussian_epsilon(mu, delta)
    assert exact_delta(mu, epsilon) <= delta
    assert epsilon == 0 or exact_delta(mu, epsilon * (1 - 1e-6)) > delta
    inverse = tf.gaussian_mu(epsilon, delta)
    assert exact_delta(inverse, epsilon) <= delta
    assert inverse >= mu * (1 - 1e-15) if epsilon == 0 else inverse == pytest.approx(mu, rel=1e-6)


def test_arrays_and_limits_are_allowed_and_wrong_arguments_named():
    assert tf.gaussian_delta([[0.0, np.inf], [1.0, 1e-200]], [1.0, 2.0]).tolist()[0] == [0.0, 1.0]
    assert tf.gaussian_delta(1e-200, 2.0) <= 1e-300  # below all floats, but not 0
    assert tf.gaussian_epsilon([0.0, np.inf, 2.0], 0.5).tolist() == [
        0.0,
        np.inf,
        tf.gaussian_epsilon(2.0, 0.5),
    ]
    for refused, message in (
        (lambda: tf.gaussian_delta(-1.0, 1.0), "mu must be at least 0, found -1; give"),
        (lambda: tf.gaussian_delta(1.0, -1.0), "epsilon must be .*found -1"),
        (
            lambda: tf.gaussian_epsilon(1.0, [0.5, 1.0]),
            "delta must be greater than 0 and less than 1, found 1; give",
        ),
        (lambda: tf.gaussian_mu(1.0, 0.0), "delta must be .* found 0"),
    ):
        with pytest.raises(ValueError, match=message):
            refused()
