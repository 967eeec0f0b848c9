"""Mechanisms in which users perturb their own data: the laws behind likelihoods and counts, and
what they leak."""

from functools import partial
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.comparison import local
from experiments.comparison.local import Reports
from experiments.comparison.window import by_absorption
from tests.experiments.comparison.schemes import SCHEMES
from tplrepro import sip
from tplrepro.dphmm import PolicyGraph

LOCAL = {
    "randomised response": local.release_reports,
    "unary encoding": partial(local.release_reports, unary=True),
    "published": local.release_conditional_response,
    "exact": local.release_optimal_response,
    "LBA": partial(local.release_reports_by_window, window=2, scheme=by_absorption),
    "policy": lambda s, epsilon, rng: local.release_by_policy(
        s, epsilon, rng=rng, policy=PolicyGraph.utility(s.positions, 1.0)
    ),
}


def law(epsilon, n, unary):
    """Pr(the values that a report supports | the user's value) by definition, (reports, n), and
    these reports."""
    odds = np.exp(epsilon)
    if not unary:
        return np.where(np.eye(n, dtype=bool), odds, 1.0) / (odds + n - 1), np.eye(n, dtype=bool)
    reports = np.array(list(product([False, True], repeat=n)))
    set_with = np.where(np.eye(n, dtype=bool), 0.5, 1 / (odds + 1))
    return np.array(
        [np.where(bits, set_with, 1 - set_with).prod(axis=1) for bits in reports]
    ), reports


@given(st.floats(0.01, 5.0), st.integers(1, 5), st.booleans())
def test_reports_have_the_odds_and_the_variance_of_their_definition(epsilon, n, unary):
    mechanism = Reports(epsilon, n, unary)
    probabilities, supported = law(epsilon, n, unary)
    assert probabilities.sum(axis=0) == pytest.approx(1.0)
    # those of the definition and of the mechanism differ by a constant for each report
    logs = np.log(probabilities)
    apart = logs - epsilon * supported
    assert np.ptp(apart, axis=1) == pytest.approx(0.0, abs=1e-9)
    # Pr(a report of the user's value, first, supports a value, second)
    truth = probabilities.T @ supported
    assert truth == pytest.approx(mechanism.other + mechanism.gain * np.eye(n), rel=1e-9)
    expected = (truth * (1 - truth)).mean() / mechanism.gain**2
    assert mechanism.mean_variance == pytest.approx(expected, rel=1e-9, abs=1e-9)
    # nothing is lost to rounding
    assert Reports(100.0, 3).mean_variance == pytest.approx(4 / 3 * np.exp(-100.0))


@pytest.mark.parametrize("name", ["randomised response", "unary encoding", "published"])
@pytest.mark.parametrize("epsilon", [0.3, 1.5])
def test_estimated_counts_are_unbiased(setting, name, epsilon):
    rng = np.random.default_rng(4)
    counts = np.array([LOCAL[name](setting, epsilon, rng=rng).counts for _ in range(400)])
    z = (counts.mean(axis=0) - setting.counts) / (counts.std(axis=0) / np.sqrt(400))
    assert np.abs(z).max() < 4.5
    assert np.sqrt((z**2).mean()) < 1.4


@pytest.mark.parametrize("name", LOCAL)
def test_posteriors_are_calibrated(crowd, name):
    """Users drawn from the chain are where the posterior says, as often as it says: likelihoods are
    the true ones."""
    rng = np.random.default_rng(8)
    people = crowd(rng, 4000, 3)
    told = people.adversary.output_log_likelihoods(
        LOCAL[name](people, 1.2, rng=rng).log_likelihoods
    )
    believed = people.adversary.posteriors(told)
    for low, high in [(0, 0.1), (0.1, 0.3), (0.3, 0.6), (0.6, 1.0)]:
        chosen = (believed > low) & (believed <= high)
        expected, variance = (
            believed[chosen].sum(),
            (believed[chosen] * (1 - believed[chosen])).sum(),
        )
        if chosen.sum() >= 300:
            # three times of a user
            assert abs(people.present[chosen].sum() - expected) < 4 * np.sqrt(3 * variance)


@pytest.mark.parametrize("name", ["absorption", "distribution"])
@pytest.mark.parametrize(("epsilon", "window"), [(12.0, 2), (40.0, 3), (16.0, 1), (1.0, 3)])
def test_schemes_of_ren_keep_their_promise_for_a_window(crowd, leakage, name, epsilon, window):
    """Algorithms 3 and 4 of Ren et al. with frequencies and the variances printed there; reports
    are the release's."""
    people, (scheme, offered) = crowd(np.random.default_rng(3), 3000, 6), SCHEMES[name]
    release = local.release_reports_by_window(
        people, epsilon, rng=np.random.default_rng(1), window=window, scheme=scheme
    )
    n, users, unit = people.n_cells, people.n_users, epsilon / (2 * window)

    def variance(budget):  # Eq. (2) there, averaged over the values, whose frequencies sum to 1
        e = np.exp(budget)
        return (n - 2 + e) / (users * (e - 1) ** 2) + (n - 2) / (users * n * (e - 1))

    streams = [one.spawn(2) for one in np.random.default_rng(1).spawn(6)]
    last, spent = people.expected_counts / users, []
    for t, own in enumerate(people.paths.T):
        told = np.zeros((users, n))

        def estimate(budget, rng, own=own, told=told):
            supported = Reports(budget, n).sample(own, rng=rng)
            told += budget * supported
            lie = 1 / (np.exp(budget) + n - 1)
            return (supported.mean(axis=0) - lie) / (lie * np.expm1(budget))

        dissimilarity = np.mean((estimate(unit, streams[t][0]) - last) ** 2) - variance(unit)
        budget = offered(t, spent, unit, window)
        publish = budget > 0 and dissimilarity > variance(budget)
        if publish:
            last = estimate(budget, streams[t][1])
        spent.append(budget if publish else 0.0)
        np.testing.assert_allclose(release.counts[t], users * last, rtol=1e-9)
        np.testing.assert_allclose(release.log_likelihoods[:, t], told, atol=1e-9)
    assert (epsilon == 1.0) == (sum(spent) == 0)
    spread = np.ptp(release.log_likelihoods, axis=-1)
    in_window = [
        spread[:, start : start + window].sum(axis=1).max() for start in range(6 - window + 1)
    ]
    assert max(in_window) <= epsilon + 1e-9
    assert leakage(release).max() <= 6 // window * epsilon + 1e-9


@pytest.mark.parametrize(
    ("name", "published"),
    [("published", sip.ConditionalRandomizedResponse), ("exact", sip.OptimalResponse)],
)
def test_local_likelihoods_are_those_of_the_responses_of_sip(setting, name, published):
    """The likelihoods of each user are those of the package's response, one step after the
    other."""
    mechanism, release = published(0.9), LOCAL[name](setting, 0.9, rng=np.random.default_rng(1))
    chain = sip.SymbolChain.first_order(setting.adversary.initial, setting.adversary.transitions)
    for user in range(5):
        belief = sip.Belief.start(chain)
        for t in range(5):
            response = mechanism.response(belief.current)
            distances = np.abs(
                response.matrix() - np.exp(release.log_likelihoods[user, t])[:, None]
            ).max(axis=0)
            output = int(np.argmin(distances))
            assert distances[output] < 1e-9
            belief = belief.observe(output, response)
