from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.comparison.calibration import infer_counts, realised_leakage
from experiments.comparison.setting import Adversary
from tplrepro import TransitionMatrix
from tplrepro.markov import forward_backward


def test_a_cell_that_an_output_rules_out_leaks_without_bound():
    told = [[0.0, -1.0, -2.0], [-np.inf, 0.0, -1.0]]
    assert realised_leakage(told).tolist() == [2.0, np.inf]
    # The two cells that remain are still to be told apart, those that are both ruled out are not.
    assert realised_leakage(told, [(1, 2)]).tolist() == [1.0, 1.0]
    assert realised_leakage([[-np.inf, -np.inf, 0.0]], [(0, 1)]).tolist() == [0.0]


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.05, 3.0))
def test_posteriors_are_those_of_the_filter_and_leakage_never_exceeds_temporal_privacy_leakage(
    seed, epsilon
):
    rng = np.random.default_rng(seed)
    adversary = Adversary(
        TransitionMatrix(0.05 / 4 + 0.95 * TransitionMatrix.random(4, rng=rng).toarray())
    )
    budgets = epsilon * rng.uniform(0.2, 1, size=5)
    # the extreme outputs of epsilon_t-DP releases
    told = rng.integers(2, size=(200, 5, 4)) * budgets[:, None]
    given_outputs = adversary.output_log_likelihoods(told)
    expected = forward_backward(told, adversary.transitions, adversary.initial)
    np.testing.assert_allclose(adversary.posteriors(given_outputs), expected.smoothed, atol=1e-12)
    assert realised_leakage(given_outputs).max() <= adversary.bound(budgets) + 1e-9


NEVER = np.inf
NOISE = [([400.0, 2, 0.1, NEVER, 5], 0.0), ([NEVER] * 5, 0.0), ([0.3] * 5, 0.6), ([40.0] * 5, -0.5)]


@pytest.mark.parametrize(("variances", "correlation"), NOISE)
def test_inferred_counts_are_the_most_likely_ones_under_the_law_of_all_paths(
    setting, variances, correlation
):
    pi, matrix = setting.adversary.initial, setting.adversary.transitions.toarray()
    paths = np.array(list(product(range(6), repeat=5)))
    weights = pi[paths[:, 0]] * matrix[paths[:, :-1], paths[:, 1:]].prod(axis=1)
    covariance = setting.n_users * np.cov(
        np.eye(6)[paths].reshape(-1, 30).T, aweights=weights, ddof=0
    )
    # Counts are their mean plus a sum of these directions with independent normal weights.
    values, directions = np.linalg.eigh(covariance)
    values, directions = values[values > 1e-9], directions[:, values > 1e-9]
    noisy = setting.counts + np.random.default_rng(3).normal(size=(5, 6))
    noisy[np.isinf(variances)] = np.nan
    times = np.flatnonzero(np.isfinite(variances))
    seen, deviations = np.repeat(np.isfinite(variances), 6), np.sqrt(np.array(variances)[times])
    correlations = correlation ** np.abs(np.subtract.outer(times, times))
    noise = np.kron(np.outer(deviations, deviations) * correlations, np.eye(6))
    weighed = directions[seen].T @ np.linalg.inv(noise)
    most_likely = np.linalg.solve(
        np.diag(1 / values) + weighed @ directions[seen],
        weighed @ (noisy - setting.expected_counts).ravel()[seen],
    )
    expected = setting.expected_counts + (directions @ most_likely).reshape(5, 6)
    found = infer_counts(noisy, np.array(variances), setting, correlation)
    np.testing.assert_allclose(found, expected, atol=1e-9)
