"""Randomised response against its definition: all outputs of every value, one at a time."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.comparison.randomized_response import KaryRandomizedResponse, UnaryEncoding


@given(st.floats(0.01, 5.0), st.integers(1, 5))
def test_k_ary_odds_and_bits_of_unary_encoding_within_the_budget(epsilon, n):
    mechanism, odds = KaryRandomizedResponse(epsilon, n), np.exp(epsilon)
    expected = np.where(np.eye(n, dtype=bool), odds, 1.0) / (odds + n - 1)
    assert mechanism.matrix() == pytest.approx(expected, rel=1e-12)
    assert np.exp(mechanism.log_likelihood(np.arange(n))) == pytest.approx(expected, rel=1e-12)
    # Unary encoding gives a distribution over all bits.
    outputs = list(itertools.product([0, 1], repeat=n))
    found = UnaryEncoding(epsilon, n).log_likelihood(outputs)
    assert np.exp(found).sum(axis=0) == pytest.approx(1.0)
    for bits, told in zip(outputs, np.exp(found), strict=True):
        for value in range(n):
            set_with = [0.5 if i == value else 1 / (odds + 1) for i in range(n)]
            expected = np.prod([p if bit else 1 - p for p, bit in zip(set_with, bits, strict=True)])
            assert told[value] == pytest.approx(expected, rel=1e-9)
    assert np.ptp(found, axis=1).max() == pytest.approx(epsilon if n > 1 else 0.0)


@pytest.mark.parametrize("kind", [KaryRandomizedResponse, UnaryEncoding])
def test_counts_of_many_users_are_unbiased(kind):
    for arguments, message in {(0.0, 3): "epsilon must be a finite level", (1.0, 0): "n must be at least 1"}.items():
        with pytest.raises(ValueError, match=message):
            kind(*arguments)
    for value in (3, -1, 0.5, "1"):
        with pytest.raises(ValueError, match="values must be .* 0..2, found"):
            kind(1.0, 3).sample([0, value], np.random.default_rng(5))
    for report in (0.5, 7) if kind is KaryRandomizedResponse else ([0, 1, 2], [0.5, 0, 1]):
        for call in (kind(1.0, 3).unbiased_counts, kind(1.0, 3).log_likelihood):
            with pytest.raises(ValueError, match="(outputs|bits) must be .*found"):
                call([report])
    exact = KaryRandomizedResponse(100.0, 3)
    assert exact.other == pytest.approx(np.exp(-100.0), rel=1e-12)
    assert exact.mean_variance == pytest.approx(4 / 3 * np.exp(-100.0))
    told = kind(800.0, 3).log_likelihood([0] if kind is KaryRandomizedResponse else [[1, 0, 0]])
    assert np.ptp(told) == pytest.approx(800)  # nothing overflows
    values = np.repeat([[0, 2], [1, 2], [1, 0]], 20_000, axis=0)  # users at two times
    mechanism = kind(1.0, 3)
    reports = mechanism.sample(values, np.random.default_rng(5))
    found = mechanism.unbiased_counts(reports)
    expected = np.array([[20_000, 40_000, 0], [20_000, 0, 40_000]])
    # Five standard deviations of a report, at most 1/2, over the share of the truth, at least 0.23 at this budget.
    assert found == pytest.approx(expected, abs=5 * 0.5 * np.sqrt(60_000) / 0.23)
    # Independent users: the variance of a count is the sum of those of their reports, by Bernoulli's formula.
    told = np.where(np.eye(3, dtype=bool), 0.5, 1 / (np.e + 1)) if kind is UnaryEncoding else mechanism.matrix()
    variance = (told * (1 - told)).mean() / (told[0, 0] - told[0, 1]) ** 2
    assert mechanism.mean_variance == pytest.approx(variance, rel=1e-12)
    if kind is KaryRandomizedResponse:
        shares = np.bincount(reports[:20_000, 0], minlength=3) / 20_000
        assert shares == pytest.approx(mechanism.matrix()[0], abs=5 * 0.5 / np.sqrt(20_000))
