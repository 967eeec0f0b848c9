import numpy as np
import pytest
import scipy.stats

from tplrepro import comparison


def log_laplace(values, scale):
    return -np.abs(values) / scale - np.log(2 * scale)


def test_likelihood_is_that_of_the_noise_around_each_cell(setting):
    budgets = np.array([0.5, 1.0, 2.0, 0.1, 0.3])
    release = comparison.release_laplace(setting, budgets, np.random.default_rng(3))
    assert release.log_likelihoods.shape == (setting.n_users, 5, 6)
    # The first run's counts are released: the others' counts and each candidate cell explain them so.
    others = setting.counts - setting.present[0]
    noise = (release.counts - others)[:, None] - np.eye(6)
    expected = log_laplace(noise, 2 / budgets[:, None, None]).sum(axis=-1)
    found = release.log_likelihoods[0]
    np.testing.assert_allclose(found - found[:, :1], expected - expected[:, :1], atol=1e-9)
    np.testing.assert_allclose(release.variances, 2 * (2 / budgets) ** 2)
    rng = np.random.default_rng(2)
    errors = np.array([comparison.release_laplace(setting, budgets, rng).counts for _ in range(2000)]) - setting.counts
    np.testing.assert_allclose(errors.var(axis=(0, 2)), release.variances, rtol=0.1)
    assert np.abs(errors.mean(axis=(0, 2)) / np.sqrt(release.variances / 12000)).max() < 4


@pytest.mark.parametrize("budgets", [[0.7] * 5, [0.3] * 5, [2.0, 0.1, 0.1, 0.1, 2.0], [4.0] * 5])
def test_leakage_is_between_the_budget_and_the_bounds(setting, budgets, leakage):
    budgets = np.array(budgets)
    release = comparison.release_laplace(setting, budgets, np.random.default_rng(1))
    measured = leakage(release)
    spread = np.ptp(release.log_likelihoods, axis=-1).max(axis=0)
    assert np.all(spread <= budgets + 1e-12)
    assert spread.max() == pytest.approx(budgets.max())
    assert measured.max() <= setting.adversary.bound(budgets) + 1e-9
    assert measured.max() <= budgets.sum() + 1e-9  # group privacy
    assert measured.max() > 1.05 * budgets.max()  # the correlation costs something


def absorption_by_loops(setting, epsilon, window, doubt, noise, target):
    """Budget absorption of one run as Kellaris et al. write it, with the likelihood of each cell of the target."""
    unit, n = epsilon / (2 * window), setting.n_cells
    last, last_time, last_budget = setting.expected_counts, -1, 0.0
    told, published = [], []
    for t in range(setting.horizon):
        true = setting.counts[t]
        nullified = last_budget / unit - 1
        if 0 < last_budget and t - last_time <= nullified + 1e-9:
            told.append(np.zeros(n))
            published.append(0.0)
            continue
        absorbed = t - last_time - nullified if last_budget else t + 1
        budget = unit * min(round(absorbed), window)
        scale = 2 / budget
        candidates = [true - setting.present[target, t] + np.eye(n)[k] for k in range(n)]
        decide = np.mean(np.abs(last - true)) + doubt[target, t] * 2 / n / unit > scale
        law = scipy.stats.laplace(scale=2 / n / unit)
        threshold = scale - np.array([np.mean(np.abs(last - c)) for c in candidates])
        if decide:
            out = true + noise[target, t] * scale
            told.append(law.logsf(threshold) + [log_laplace(out - c, scale).sum() for c in candidates])
            last, last_time, last_budget = out, t, budget
        else:
            told.append(law.logcdf(threshold))
        published.append(budget if decide else 0.0)
    return np.array(told), np.array(published)


@pytest.mark.parametrize(("epsilon", "window"), [(3.0, 2), (8.0, 3), (2.0, 3), (1.0, 1), (40.0, 5)])
def test_absorption_is_the_algorithm_of_kellaris_and_keeps_its_promise_for_a_window(setting, leakage, epsilon, window):
    release = comparison.release_by_absorption(setting, epsilon, np.random.default_rng(7), window=window)
    rng = np.random.default_rng(7)
    doubt, noise = rng.laplace(size=(setting.n_users, 5)), rng.laplace(size=(setting.n_users, 5, 6))
    publishing = 0
    for target in range(setting.n_users):
        told, published = absorption_by_loops(setting, epsilon, window, doubt, noise, target)
        found = release.log_likelihoods[target]
        np.testing.assert_allclose(found - found[:, :1], told - told[:, :1], atol=1e-9)
        for start in range(5):  # within any window: what was published, and the decisions
            assert published[start : start + window].sum() <= epsilon / 2 + 1e-9
        publishing += np.count_nonzero(published)
        if target == 0:
            np.testing.assert_allclose(release.variances, [8 / b**2 if b else np.inf for b in published])
    assert 0 < publishing
    # A target who is in different cells within a window of w times only is hidden within epsilon.
    spread = np.ptp(release.log_likelihoods, axis=-1)
    in_window = np.array([spread[:, s : s + window].sum(axis=1) for s in range(5 - window + 1)])
    assert in_window.max() <= epsilon + 1e-9
    assert leakage(release).max() <= np.ceil(5 / window) * epsilon + 1e-9  # as many windows cover five times
