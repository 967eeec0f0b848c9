import numpy as np
import pytest

from tplrepro import sip

STEP = np.array([[0.8, 0.2], [0.3, 0.7]])
CHAIN = sip.SymbolChain.first_order([0.4, 0.6], STEP)
CYCLE = np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.5, 0.0, 0.5]])
ON_A_CYCLE = sip.SymbolChain.first_order(np.full(3, 1 / 3), CYCLE)


def test_each_release_reports_its_true_leakage():
    rng = np.random.default_rng(4)
    crr, belief = sip.ConditionalRandomizedResponse(1.0), sip.Belief.start(CHAIN)
    for step in sip.release_sequence(crr, [1, 1, 0, 1], CHAIN, rng=rng):
        response = crr.response(belief.current)
        measured = sip.instantaneous_leakage(response.matrix(), belief.current)
        assert step.leakage == pytest.approx(measured, rel=1e-12)
        assert step.kept == pytest.approx(response.matrix()[step.symbol, step.symbol])
        belief = belief.observe(step.output, response)
    exact = sip.release_sequence(sip.OptimalResponse(1.0), [1, 1, 0, 1], CHAIN, rng=rng)
    assert max(step.leakage for step in exact) <= 1.0


@pytest.mark.parametrize("mechanism", [sip.RandomizedResponse(0.8), sip.OptimalResponse(1.0)])
def test_costs_and_leakages_of_many_releases(mechanism):
    # The mean of `kept` over releases is what sampling shows.
    rng = np.random.default_rng(0)
    sequences = [rng.integers(0, 2, 30) for _ in range(100)]
    found = sip.release_sequences(mechanism, sequences, CHAIN, rng=rng, distance=1 - np.eye(2), keep_likelihoods=True)
    assert found.mean_leakage <= found.largest_leakage <= mechanism.epsilon
    shown = np.mean(np.concatenate(found.outputs) != np.concatenate(sequences))
    assert found.distance == pytest.approx(shown)
    assert found.error == pytest.approx(shown, abs=5 * 0.5 / np.sqrt(3000))
    assert np.shape(found.likelihoods[0]) == (30, 2)


@pytest.mark.parametrize("kind", [sip.ConditionalRandomizedResponse, sip.OptimalResponse])
def test_expectations_agree_with_enumeration_of_all_sequences(kind):
    found = sip.expected_release(kind(0.8), CHAIN, 4)
    whole = sip.sequence_leakage(kind(0.8), sip.markov_sequences([0.4, 0.6], STEP, 4))
    assert found.costs == pytest.approx(whole.costs, abs=1e-9)
    assert found.leakages == pytest.approx(whole.instantaneous, abs=1e-9)


def test_the_temporal_variant_is_given_the_previous_symbol_and_tells_it():
    found = sip.release_sequences(
        sip.TemporalRandomizedResponse(0.1, CYCLE), [[0, 1]] * 40, ON_A_CYCLE, rng=np.random.default_rng(0)
    )
    assert {int(second) for _, second in found.outputs} == {0, 1}  # never 2, which cannot follow 0
    mechanism = sip.TemporalRandomizedResponse(0.7, CYCLE)
    assert not mechanism.same_supports
    assert sip.TemporalRandomizedResponse(0.7, np.full((3, 3), 1 / 3)).same_supports
    rng = np.random.default_rng(2)
    found = sip.release_sequences(mechanism, [[0, 1, 2]], ON_A_CYCLE, rng=rng, keep_likelihoods=True)
    assert found.largest_leakage == np.inf
    # The likelihood of the outputs, by summing over all inputs, is that of the classifier's forward recursion.
    classifier = sip.MarkovClassifier(3).fit({"a": [[0, 1, 2, 0]], "b": [[0, 0, 1, 1]]})
    outputs, belief = found.outputs[0], np.full(3, 1 / 3)
    for i in range(2):
        total = 0.0
        for x, weight in np.ndenumerate(sip.markov_sequences(classifier.initial[i], classifier.steps[i], 3)):
            value = mechanism.response(belief).row(x[0])[outputs[0]]
            for k in (1, 2):
                value *= mechanism.response(belief, previous=x[k - 1]).row(x[k])[outputs[k]]
            total += weight * value
        score = classifier.log_likelihood(outputs, likelihoods=found.likelihoods[0])[i]
        assert score == pytest.approx(np.log(total), rel=1e-12)
