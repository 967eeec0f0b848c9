import numpy as np
import pytest

from tplrepro import sip

STEP = np.array([[0.8, 0.2], [0.3, 0.7]])
CHAIN = sip.SymbolChain.first_order([0.4, 0.6], STEP)


@pytest.mark.parametrize("kind", [sip.ConditionalRandomizedResponse, sip.OptimalResponse])
def test_expectations_agree_with_enumeration_of_all_sequences(kind):
    found = sip.expected_release(kind(0.8), CHAIN, 4)
    whole = sip.sequence_leakage(kind(0.8), sip.markov_sequences([0.4, 0.6], STEP, 4))
    assert found.costs == pytest.approx(whole.costs, abs=1e-9)
    assert found.leakages == pytest.approx(whole.instantaneous, abs=1e-9)


def test_evaluation_on_sequences():
    rng = np.random.default_rng(0)
    sequences = [rng.integers(0, 2, 30) for _ in range(20)]
    found = sip.evaluate(
        sip.OptimalResponse(1.0), sequences, CHAIN, rng, sip.hamming_distance(2), keep_likelihoods=True
    )
    assert found.largest_leakage <= 1.0
    assert found.mean_leakage <= found.largest_leakage
    shown = np.mean([o != s for o, s in zip(np.concatenate(found.outputs), np.concatenate(sequences), strict=True)])
    assert found.distance == pytest.approx(shown)
    assert found.error == pytest.approx(shown, abs=5 * 0.5 / np.sqrt(600))
    assert found.likelihoods[0].shape == (30, 2)
