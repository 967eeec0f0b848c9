"""Mechanisms in which users perturb their own data: the laws behind likelihoods and counts, and what they leak."""

import numpy as np
import pytest

from tplrepro import comparison, sip
from tplrepro.comparison.policy import blocks, mechanism_for
from tplrepro.comparison.setting import Setting
from tplrepro.dphmm import PolicyGraph

LOCAL = {
    "randomised response": comparison.release_randomized_response,
    "unary encoding": comparison.release_unary_encoding,
    "published": comparison.release_conditional_response,
}


def leakage(setting, release):
    return comparison.measured_leakage(setting.adversary.log_evidence(release.log_likelihoods))


@pytest.mark.parametrize("name", LOCAL)
@pytest.mark.parametrize("epsilon", [0.3, 1.5])
def test_counts_are_unbiased(setting, name, epsilon):
    rng = np.random.default_rng(4)
    counts = np.array([LOCAL[name](setting, epsilon, rng).counts for _ in range(400)])
    standard_error = counts.std(axis=0) / np.sqrt(400)
    z = (counts.mean(axis=0) - setting.counts) / standard_error
    assert np.abs(z).max() < 4.5
    assert np.sqrt((z**2).mean()) < 1.4


@pytest.mark.parametrize("name", ["randomised response", "unary encoding"])
def test_reports_are_epsilon_dp_and_attain_it(setting, name):
    release = LOCAL[name](setting, 0.8, np.random.default_rng(0))
    assert np.ptp(release.log_likelihoods, axis=-1).max() == pytest.approx(0.8)
    assert leakage(setting, release).max() <= setting.adversary.bound(np.full(5, 0.8)) + 1e-9


@pytest.mark.parametrize("name", [*LOCAL, "exact", "policy"])
def test_posteriors_are_calibrated(setting, name):
    """Users drawn from the chain are where the posterior says, as often as it says: likelihoods are the true ones."""
    rng = np.random.default_rng(8)
    matrix, initial = setting.adversary.transitions.toarray(), setting.adversary.initial
    paths = [rng.choice(6, size=4000, p=initial)]
    for _ in range(2):
        paths.append((matrix[paths[-1]].cumsum(axis=1) < rng.random((4000, 1))).sum(axis=1))
    crowd = Setting(np.array(paths).T, setting.adversary, setting.positions, setting.near)
    released = {
        "exact": lambda: comparison.release_optimal_response(crowd, 1.2, rng),
        "policy": lambda: comparison.release_by_policy(crowd, PolicyGraph.utility(crowd.positions, 1.0), 1.2, rng),
    }.get(name, lambda: LOCAL[name](crowd, 1.2, rng))()
    evidence = crowd.adversary.log_evidence(released.log_likelihoods)
    believed = comparison.smoothed_posteriors(evidence, matrix, initial)
    for low, high in [(0, 0.1), (0.1, 0.3), (0.3, 0.6), (0.6, 1.0)]:
        chosen = (believed > low) & (believed <= high)
        if chosen.sum() < 300:
            continue
        expected, variance = believed[chosen].sum(), (believed[chosen] * (1 - believed[chosen])).sum()
        assert abs(crowd.present[chosen].sum() - expected) < 4 * np.sqrt(3 * variance)  # three times of a user


def test_conditional_response_is_the_packages(setting):
    """The likelihoods of each user are those of `sip`, one step after the other."""
    release = comparison.release_conditional_response(setting, 0.7, np.random.default_rng(1))
    mechanism = sip.ConditionalRandomizedResponse(0.7)
    chain = sip.SymbolChain.first_order(setting.adversary.initial, setting.adversary.transitions)
    for user in range(5):
        belief = sip.Belief.start(chain)
        for t in range(5):
            response = mechanism.response(belief.current)
            columns = np.log([response.column(y) for y in range(6)])
            distances = np.abs(columns - release.log_likelihoods[user, t]).max(axis=1)
            output = int(np.argmin(distances))
            assert distances[output] < 1e-9
            belief = belief.observe(output, response)


def test_exact_response_is_the_packages_and_keeps_twice_its_budget_a_release(setting):
    epsilon = 0.9
    release = comparison.release_optimal_response(setting, epsilon, np.random.default_rng(1))
    mechanism = sip.OptimalResponse(epsilon)
    chain = sip.SymbolChain.first_order(setting.adversary.initial, setting.adversary.transitions)
    for user in range(5):
        belief = sip.Belief.start(chain)
        for t in range(5):
            response = mechanism.response(belief.current)
            likelihoods = np.exp(release.log_likelihoods[user, t])
            output = int(np.argmin([np.abs(response.column(y) - likelihoods).max() for y in range(6)]))
            np.testing.assert_allclose(response.column(output), likelihoods, atol=1e-9)
            belief = belief.observe(output, response)
    assert np.ptp(release.log_likelihoods, axis=-1).max() <= 2 * epsilon + 1e-9
    assert leakage(setting, release).max() <= setting.adversary.bound(np.full(5, 2 * epsilon)) + 1e-9
    assert release.counts is None


@pytest.mark.parametrize("policy", ["complete", "radius", "blocks"])
def test_policies_hide_their_pairs_within_epsilon_a_release(setting, policy):
    graph = {
        "complete": PolicyGraph.complete(6),
        "radius": PolicyGraph.utility(setting.positions, 1.0),
        "blocks": PolicyGraph.categorical(blocks(setting.positions, 2.0), 6),
    }[policy]
    release = comparison.release_by_policy(setting, graph, 0.5, np.random.default_rng(2))
    first, second = graph.edge_array.T
    told = release.log_likelihoods
    assert np.abs(told[..., first] - told[..., second]).max() <= 0.5 + 1e-9
    assert np.abs(told[..., first] - told[..., second]).max() > 0.45
    mechanism = mechanism_for(setting, graph, 0.5)
    assert np.ptp(told, axis=-1).max() <= 0.5 * mechanism.hull.pairwise_norms(*[setting.positions] * 2).max() + 1e-9


def test_a_budget_must_be_positive(setting):
    for release in [*LOCAL.values(), comparison.release_optimal_response]:
        with pytest.raises(ValueError, match="epsilon must be a finite level"):
            release(setting, 0.0, np.random.default_rng(0))
