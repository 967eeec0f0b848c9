"""Quantiles and sums of event-level budgets are rounded up, and by little, against 50 digits."""

import mpmath
import numpy as np
import pytest

import tplfrontier as tf
from tplfrontier.budgets.linear_mechanisms import _quantile_of_changes, gaussian_budgets_of_columns

mpf = mpmath.mpf


def exact_quantile(share):
    """The normal quantile above which the upper tail has this probability."""
    with mpmath.workdps(50):
        return mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * mpf(share))


@pytest.mark.parametrize("delta", [0.5 - 2.0**-54, 0.5 - 1e-14, 0.4, 0.1, 1e-3, 1e-12])
def test_the_quantile_is_rounded_up_and_by_little(delta):
    found = _quantile_of_changes(1, delta, 1)
    exact = exact_quantile(delta)
    assert exact <= found <= exact * (1 + mpf(2e-13)) + mpf(2e-15)


def test_two_states_have_two_changes_at_each_time():
    """Of one state into the other, and back; of three states six."""
    two = _quantile_of_changes(5, 1e-3, 2)
    three = _quantile_of_changes(5, 1e-3, 3)
    assert two == pytest.approx(float(exact_quantile(1e-4)), rel=1e-12)
    assert three == pytest.approx(float(exact_quantile(1e-3 / 30.0)), rel=1e-12)


def test_budgets_from_sums_over_columns_are_rounded_up_and_those_of_the_strategy():
    rng = np.random.default_rng(0)
    for _ in range(20):
        strategy = np.abs(rng.normal(size=(5, 4)))
        squares = (strategy**2).sum(axis=0)
        products = strategy.T @ strategy.sum(axis=1)
        width = float(rng.uniform(0.5, 2.0))
        found = gaussian_budgets_of_columns(squares, products, 1e-5, 3, width)
        quantile = exact_quantile(1e-5 / (4 * 6))
        of_strategy = tf.gaussian_event_level_budgets(
            strategy, 1.0, 1e-5, n_states=3, sensitivity=width
        )
        np.testing.assert_allclose(found, of_strategy, rtol=1e-11)
        columns = zip(squares.tolist(), products.tolist(), found.tolist(), strict=True)
        for square, product, budget in columns:
            with mpmath.workdps(50):
                change = mpf(width) * (mpf(product) - mpf(square) / 2)
                exact = mpf(width) * (change + mpmath.sqrt(mpf(square)) * quantile)
            assert exact <= budget <= exact * (1 + mpf(3e-12))


def test_noise_of_each_answer_and_columns_without_data_have_their_own_budgets():
    strategy = [[1.0, 0.0, 2.0], [0.0, 0.0, 1.0]]
    laplace = tf.event_level_budgets(strategy, [4.0, 0.5], sensitivity=3.0)
    np.testing.assert_allclose(laplace, [0.75, 0.0, 7.5], rtol=1e-12)
    gaussian = tf.gaussian_event_level_budgets(strategy, 1.0, 1e-5, n_states=2)
    assert (gaussian > 0.0).tolist() == [True, False, True]
    assert gaussian[1] == 0.0
