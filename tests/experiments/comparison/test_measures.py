import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments import comparison
from tplrepro import TransitionMatrix
from tplrepro.markov import forward_backward

RNG = np.random.default_rng(11)


def output_log_likelihoods(log_likelihoods, transitions, initial):
    """log Pr(all outputs | l_t = k) up to a summand for each time; NaN for states that are impossible at that time."""
    smoothed = forward_backward(log_likelihoods, transitions, initial).log_smoothed
    marginals = forward_backward(np.zeros(smoothed.shape[-2:]), transitions, initial).log_priors
    return smoothed - np.where(np.isneginf(marginals), np.nan, marginals)


def test_cells_that_are_ruled_out_leak_without_bound():
    """Exact zeros: an impossible output, and a cell that is impossible whatever is released."""
    matrix, initial = np.array([[0.7, 0.3, 0], [0, 0.5, 0.5], [0.2, 0.2, 0.6]]), np.array([0.5, 0.25, 0.25])
    told = output_log_likelihoods([[0.0, -1, -2], [-np.inf, 0, -1], [0, -0.5, -0.1]], matrix, initial)
    assert comparison.realised_leakage(told)[1] == np.inf
    # The two cells that remain are still to be told apart.
    assert np.isfinite(comparison.realised_leakage(told, [(1, 2)])[1])
    never = output_log_likelihoods([[0.0, -1.0]], np.eye(2), [1.0, 0.0])
    assert comparison.realised_leakage(never) == comparison.realised_leakage(never, [(0, 1)]) == 0


@pytest.mark.parametrize("n", [2, 5])
def test_independent_times_leak_only_their_own_release_and_a_target_who_never_moves_all(n):
    initial = RNG.dirichlet(np.ones(n))
    told = RNG.normal(size=(7, 4, n))
    all_told = np.ptp(told.sum(axis=1), axis=-1)[:, None]
    for matrix, expected in ((np.tile(initial, (n, 1)), np.ptp(told, axis=-1)), (np.eye(n), np.tile(all_told, 4))):
        found = comparison.realised_leakage(output_log_likelihoods(told, matrix, initial))
        np.testing.assert_allclose(found, expected, atol=1e-12)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.05, 3.0))
def test_posteriors_are_those_of_the_filter_and_leakage_never_exceeds_temporal_privacy_leakage(seed, epsilon):
    rng = np.random.default_rng(seed)
    adversary = comparison.Adversary(TransitionMatrix(0.05 / 4 + 0.95 * TransitionMatrix.random(4, rng=rng).toarray()))
    told = rng.normal(size=(4, 4))
    expected = forward_backward(told, adversary.transitions, adversary.initial).smoothed
    np.testing.assert_allclose(adversary.posteriors(adversary.output_log_likelihoods(told)), expected, atol=1e-12)
    budgets = epsilon * rng.uniform(0.2, 1, size=5)
    told = rng.integers(2, size=(200, 5, 4)) * budgets[:, None]  # the extreme outputs of epsilon_t-DP releases
    measured = comparison.realised_leakage(adversary.output_log_likelihoods(told))
    assert measured.max() <= adversary.bound(budgets) + 1e-9


def covariance_of_counts(setting):
    pi, matrix = setting.adversary.initial, setting.adversary.transitions.toarray()
    covariance = np.zeros((5, 6, 5, 6))
    for s in range(5):
        for t in range(s, 5):
            joint = np.diag(pi) @ np.linalg.matrix_power(matrix, t - s) - np.outer(pi, pi)
            covariance[s, :, t], covariance[t, :, s] = setting.n_users * joint, setting.n_users * joint.T
    return covariance.reshape(30, 30)


NEVER = np.inf
VARIANCES = [[1.0] * 5, [NEVER, 3, NEVER, NEVER, 0.1], [400.0, 2, 9, NEVER, 5], [NEVER] * 5]


@pytest.mark.parametrize("variances", np.array(VARIANCES))
def test_smoothing_is_the_estimate_from_everything_at_once(setting, variances):
    noisy = setting.counts + np.random.default_rng(3).normal(size=(5, 6))
    noisy[np.isinf(variances)] = np.nan
    # The same estimate from the covariance of all counts together.
    covariance = covariance_of_counts(setting)
    seen = np.repeat(np.isfinite(variances), 6)
    total = covariance[np.ix_(seen, seen)] + np.diag(np.repeat(variances, 6)[seen])
    surprise = (noisy - setting.expected_counts).ravel()[seen]
    expected = setting.expected_counts + (covariance[:, seen] @ np.linalg.solve(total, surprise)).reshape(5, 6)
    np.testing.assert_allclose(comparison.infer_counts(noisy, variances, setting), expected, atol=1e-9)
    without_noise = comparison.infer_counts(setting.counts, np.full(5, 1e-9), setting)
    np.testing.assert_allclose(without_noise, setting.counts, atol=1e-4)


@pytest.mark.parametrize("correlation", [0.6, -0.5])
@pytest.mark.parametrize("variance", [0.3, 40.0])
def test_smoothing_follows_correlated_noise(setting, correlation, variance):
    noisy = setting.counts + np.random.default_rng(3).normal(size=(5, 6))
    distances = np.abs(np.subtract.outer(range(5), range(5)))
    noise = variance * np.kron(float(correlation) ** distances, np.eye(6))
    surprise = (noisy - setting.expected_counts).ravel()
    covariance = covariance_of_counts(setting)
    expected = setting.expected_counts + (covariance @ np.linalg.solve(covariance + noise, surprise)).reshape(5, 6)
    found = comparison.infer_counts(noisy, np.full(5, variance), setting, correlation)
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("epsilon", [0.2, 2.0])
def test_inference_beats_noisy_counts_and_the_chain_alone(crowd, epsilon):
    rng = np.random.default_rng(1)
    errors = []
    for _ in range(60):
        people = crowd(rng, 200, 5)
        release = comparison.release_laplace(people, np.full(5, epsilon), rng)
        inferred = comparison.infer_counts(release.counts, release.variances, people)
        estimates = inferred, release.counts, people.expected_counts
        errors.append([((estimate - people.counts) ** 2).mean() for estimate in estimates])
    inferred, noisy, chain = np.mean(errors, axis=0)
    assert inferred < 0.97 * min(noisy, chain)
