import itertools

import numpy as np
import pytest
import scipy.stats

from experiments.comparison.central import release_by_window, release_gaussian, release_laplace
from experiments.comparison.setting import Adversary, Setting
from tests.experiments.comparison.schemes import SCHEMES
from tplrepro import TransitionMatrix


def log_laplace(values, scale):
    return -np.abs(values) / scale - np.log(2 * scale)


def test_likelihood_is_that_of_the_noise_around_each_cell(setting):
    budgets = np.array([0.5, 1.0, 2.0, 0.1, 0.3])
    release = release_laplace(setting, budgets, rng=np.random.default_rng(3))
    assert release.log_likelihoods.shape == (setting.n_users, 5, 6)
    # The first run's counts are released: the others' counts and each candidate cell explain them
    # so.
    others = setting.counts - setting.present[0]
    noise = (release.counts - others)[:, None] - np.eye(6)
    expected = log_laplace(noise, 2 / budgets[:, None, None]).sum(axis=-1)
    found = release.log_likelihoods[0]
    np.testing.assert_allclose(found - found[:, :1], expected - expected[:, :1], atol=1e-9)
    np.testing.assert_allclose(release.variances, 2 * (2 / budgets) ** 2)
    rng = np.random.default_rng(2)
    errors = (
        np.array([release_laplace(setting, budgets, rng=rng).counts for _ in range(2000)])
        - setting.counts
    )
    np.testing.assert_allclose(errors.var(axis=(0, 2)), release.variances, rtol=0.1)
    assert np.abs(errors.mean(axis=(0, 2)) / np.sqrt(release.variances / 12000)).max() < 4


def release_by_loops(setting, epsilon, window, doubt, noise, target, offered):
    """One run as Kellaris et al. write it, with the likelihood of each cell of the target, and what
    was spent."""
    unit, n = epsilon / (2 * window), setting.n_cells
    last, told, spent = setting.expected_counts, [], []
    for t in range(setting.horizon):
        true = setting.counts[t]
        budget = offered(t, spent, unit, window)
        if budget == 0:
            told.append(np.zeros(n))
            spent.append(0.0)
            continue
        scale = 2 / budget
        candidates = [true - setting.present[target, t] + np.eye(n)[k] for k in range(n)]
        decide = np.mean(np.abs(last - true)) + doubt[target, t] * 2 / n / unit > scale
        law = scipy.stats.laplace(scale=2 / n / unit)
        threshold = scale - np.array([np.mean(np.abs(last - c)) for c in candidates])
        if decide:
            last = true + noise[target, t] * scale
            told.append(
                law.logsf(threshold) + [log_laplace(last - c, scale).sum() for c in candidates]
            )
        else:
            told.append(law.logcdf(threshold))
        spent.append(budget if decide else 0.0)
    return np.array(told), np.array(spent)


@pytest.mark.parametrize("name", ["absorption", "distribution"])
@pytest.mark.parametrize(("epsilon", "window"), [(3.0, 2), (8.0, 3), (2.0, 3), (6.0, 1), (40.0, 5)])
def test_schemes_of_kellaris_keep_their_promise_for_a_window(
    setting, leakage, name, epsilon, window
):
    scheme, offered = SCHEMES[name]
    release = release_by_window(
        setting, epsilon, rng=np.random.default_rng(7), window=window, scheme=scheme
    )
    rng = np.random.default_rng(7)
    doubt, noise = rng.laplace(size=(setting.n_users, 5)), rng.laplace(size=(setting.n_users, 5, 6))
    publishing = 0
    for target in range(setting.n_users):
        told, published = release_by_loops(setting, epsilon, window, doubt, noise, target, offered)
        found = release.log_likelihoods[target]
        np.testing.assert_allclose(found - found[:, :1], told - told[:, :1], atol=1e-9)
        for start in range(5):  # within any window: what was published, and the decisions
            assert published[start : start + window].sum() <= epsilon / 2 + 1e-9
        publishing += np.count_nonzero(published)
        if target == 0:
            np.testing.assert_allclose(
                release.variances, [8 / b**2 if b else np.inf for b in published]
            )
    assert 0 < publishing
    # A target who is in different cells within a window of w times only is hidden within epsilon.
    spread = np.ptp(release.log_likelihoods, axis=-1)
    in_window = np.array([spread[:, s : s + window].sum(axis=1) for s in range(5 - window + 1)])
    assert in_window.max() <= epsilon + 1e-9
    # as many windows cover five times
    assert leakage(release).max() <= np.ceil(5 / window) * epsilon + 1e-9


@pytest.mark.parametrize("correlation", [0.0, 0.7, -0.4])
def test_gaussian_likelihoods_equal_the_sum_over_all_paths(setting, correlation):
    """The joint law of all outputs given each path of the target, with the whole covariance of the
    noise."""
    rng = np.random.default_rng(6)
    matrix = TransitionMatrix(TransitionMatrix.random(3, rng=np.random.default_rng(2)).toarray())
    small = Setting(rng.integers(3, size=(3, 4)), Adversary(matrix), np.eye(3)[:, :2], [(0, 1)])
    release = release_gaussian(small, 1.3, rng=rng, correlation=correlation)
    covariance = 2 / 1.3**2 * float(correlation) ** np.abs(np.subtract.outer(range(4), range(4)))
    np.testing.assert_allclose(release.variances, np.diag(covariance))
    precision, initial = np.linalg.inv(covariance), small.adversary.initial
    values = release.counts - (small.counts - small.present[0])
    given = np.zeros((4, 3))
    for path in itertools.product(range(3), repeat=4):
        apart = values - np.eye(3)[list(path)]
        weight = initial[path[0]] * np.prod(
            [matrix.toarray()[step] for step in itertools.pairwise(path)]
        )
        weight *= np.exp(-0.5 * np.einsum("tk,ts,sk", apart, precision, apart))
        for t, cell in enumerate(path):
            given[t, cell] += weight / initial[cell]
    expected = np.log(given)
    found = small.adversary.output_log_likelihoods(release.log_likelihoods, release.staying)[0]
    np.testing.assert_allclose(found - found[:, :1], expected - expected[:, :1], atol=1e-9)
    errors = [
        release_gaussian(setting, 0.8, rng=rng, correlation=correlation).counts for _ in range(2000)
    ]
    noise = np.moveaxis(np.array(errors) - setting.counts, 1, -1).reshape(-1, 5)
    wanted = 2 / 0.8**2 * float(correlation) ** np.abs(np.subtract.outer(range(5), range(5)))
    np.testing.assert_allclose(np.cov(noise.T), wanted, atol=0.05 * wanted[0, 0])
