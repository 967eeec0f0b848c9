import numpy as np
import pytest

from tplrepro import comparison


def infer_at_once(noisy, variances, setting):
    """The same estimate from the covariance of all counts together."""
    pi, matrix = setting.adversary.initial, setting.adversary.transitions.toarray()
    horizon, n = noisy.shape
    covariance = np.zeros((horizon, n, horizon, n))
    for s in range(horizon):
        for t in range(s, horizon):
            joint = np.diag(pi) @ np.linalg.matrix_power(matrix, t - s) - np.outer(pi, pi)
            covariance[s, :, t], covariance[t, :, s] = setting.n_users * joint, setting.n_users * joint.T
    covariance = covariance.reshape(horizon * n, horizon * n)
    seen = np.repeat(np.isfinite(variances), n)
    total = covariance[np.ix_(seen, seen)] + np.diag(np.repeat(variances, n)[seen])
    surprise = (noisy - setting.expected_counts).ravel()[seen]
    return setting.expected_counts + (covariance[:, seen] @ np.linalg.solve(total, surprise)).reshape(horizon, n)


@pytest.mark.parametrize("variances", [[1.0, 1, 1, 1, 1], [np.inf, 3, np.inf, np.inf, 0.1], [400.0, 2, 9, np.inf, 5]])
def test_smoothing_is_the_estimate_from_everything_at_once(setting, variances):
    noisy = setting.counts + np.random.default_rng(3).normal(size=(5, 6))
    found = comparison.infer_counts(noisy, np.array(variances), setting)
    np.testing.assert_allclose(found, infer_at_once(noisy, np.array(variances), setting), atol=1e-9)


def test_counts_are_recovered_where_there_is_no_noise(setting):
    inferred = comparison.infer_counts(setting.counts, np.full(5, 1e-9), setting)
    np.testing.assert_allclose(inferred, setting.counts, atol=1e-4)


def test_without_releases_the_chain_is_all_there_is(setting):
    inferred = comparison.infer_counts(np.full((5, 6), np.nan), np.full(5, np.inf), setting)
    np.testing.assert_allclose(inferred, np.tile(setting.expected_counts, (5, 1)))


def test_counts_between_two_releases_are_between_them(crowd):
    """One time alone is Bayes' rule for normal variables; its neighbours follow by the chain."""
    people = crowd(np.random.default_rng(0), 500, 3)
    variances = np.array([np.inf, 4.0, np.inf])
    noisy = np.where(np.isfinite(variances)[:, None], people.counts + 1.0, np.nan)
    inferred = comparison.infer_counts(noisy, variances, people)
    pi, matrix = people.adversary.initial, people.adversary.transitions.toarray()
    covariance = 500 * (np.diag(pi) - np.outer(pi, pi))
    middle = 500 * pi + covariance @ np.linalg.solve(covariance + 4 * np.eye(6), noisy[1] - 500 * pi)
    np.testing.assert_allclose(inferred[1], middle)
    np.testing.assert_allclose(inferred[2], middle @ matrix)
    np.testing.assert_allclose(inferred[0], middle @ people.adversary.transitions.reverse(pi).toarray())


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
