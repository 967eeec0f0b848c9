import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.comparison.calibration import infer_counts, realised_leakage
from experiments.comparison.setting import Adversary
from tplrepro import TransitionMatrix
from tplrepro.markov import forward_backward


def test_cells_that_are_ruled_out_leak_without_bound():
    told = [[0.0, -1.0, -2.0], [-np.inf, 0.0, -1.0]]
    assert realised_leakage(told).tolist() == [2.0, np.inf]
    # The two cells that remain are still to be told apart, those that are both ruled out are not.
    assert realised_leakage(told, [(1, 2)]).tolist() == [1.0, 1.0]
    assert realised_leakage([[-np.inf, -np.inf, 0.0]], [(0, 1)]).tolist() == [0.0]


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.05, 3.0))
def test_posteriors_are_those_of_the_filter_and_leakage_never_exceeds_temporal_privacy_leakage(seed, epsilon):
    rng = np.random.default_rng(seed)
    adversary = Adversary(TransitionMatrix(0.05 / 4 + 0.95 * TransitionMatrix.random(4, rng=rng).toarray()))
    budgets = epsilon * rng.uniform(0.2, 1, size=5)
    told = rng.integers(2, size=(200, 5, 4)) * budgets[:, None]  # the extreme outputs of epsilon_t-DP releases
    given_outputs = adversary.output_log_likelihoods(told)
    expected = forward_backward(told, adversary.transitions, adversary.initial)
    np.testing.assert_allclose(adversary.posteriors(given_outputs), expected.smoothed, atol=1e-12)
    assert realised_leakage(given_outputs).max() <= adversary.bound(budgets) + 1e-9


def covariance_of_counts(setting):
    pi, matrix = setting.adversary.initial, setting.adversary.transitions.toarray()
    covariance = np.zeros((5, 6, 5, 6))
    for s in range(5):
        for t in range(s, 5):
            joint = np.diag(pi) @ np.linalg.matrix_power(matrix, t - s) - np.outer(pi, pi)
            covariance[s, :, t], covariance[t, :, s] = setting.n_users * joint, setting.n_users * joint.T
    return covariance.reshape(30, 30)


NEVER = np.inf
NOISE = [
    ([1.0] * 5, 0.0),
    ([NEVER, 3, NEVER, NEVER, 0.1], 0.0),
    ([400.0, 2, 9, NEVER, 5], 0.0),
    ([NEVER] * 5, 0.0),
    ([0.3] * 5, 0.6),
    ([40.0] * 5, -0.5),
]


@pytest.mark.parametrize(("variances", "correlation"), NOISE)
def test_smoothing_is_the_estimate_from_everything_at_once(setting, variances, correlation):
    noisy = setting.counts + np.random.default_rng(3).normal(size=(5, 6))
    noisy[np.isinf(variances)] = np.nan
    # The same estimate from the covariance of all counts and all noise together.
    covariance = covariance_of_counts(setting)
    seen = np.repeat(np.isfinite(variances), 6)
    deviations = np.sqrt(np.where(np.isfinite(variances), variances, 0.0))
    distances = np.abs(np.subtract.outer(range(5), range(5)))
    noise = np.kron(np.outer(deviations, deviations) * correlation**distances, np.eye(6))
    surprise = (noisy - setting.expected_counts).ravel()[seen]
    total = (covariance + noise)[np.ix_(seen, seen)]
    expected = setting.expected_counts + (covariance[:, seen] @ np.linalg.solve(total, surprise)).reshape(5, 6)
    found = infer_counts(noisy, np.array(variances), setting, correlation)
    np.testing.assert_allclose(found, expected, atol=1e-9)
    without_noise = infer_counts(setting.counts, np.full(5, 1e-9), setting)
    np.testing.assert_allclose(without_noise, setting.counts, atol=1e-4)
