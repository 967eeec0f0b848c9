import numpy as np
import pytest

from tplrepro import sip

CHAIN = sip.SymbolChain.first_order([0.2, 0.8], [[0.9, 0.1], [0.3, 0.7]])


def test_each_release_reports_its_true_leakage():
    rng = np.random.default_rng(4)
    steps = list(sip.release_sequence(sip.ConditionalRandomizedResponse(1.0), [1, 1, 0, 1], CHAIN, rng=rng))
    belief = sip.Belief.start(CHAIN)
    for step in steps:
        response = sip.ConditionalRandomizedResponse(1.0).response(belief.current)
        measured = sip.instantaneous_leakage(response.matrix(), belief.current)
        assert step.leakage == pytest.approx(measured, rel=1e-12)
        assert step.kept == pytest.approx(response.matrix()[step.symbol, step.symbol])
        belief = belief.observe(step.output, response)
    exact = list(sip.release_sequence(sip.OptimalResponse(1.0), [1, 1, 0, 1], CHAIN, rng=rng))
    assert max(s.leakage for s in exact) <= 1.0


def test_expected_noise_of_many_releases():
    # The mean of `kept` over releases is what sampling shows.
    rng = np.random.default_rng(5)
    chosen = rng.integers(0, 2, 3000)
    steps = list(sip.release_sequence(sip.RandomizedResponse(0.8), chosen, CHAIN, rng=rng))
    shown = np.mean([s.output == s.symbol for s in steps])
    assert shown == pytest.approx(np.mean([s.kept for s in steps]), abs=5 * 0.5 / np.sqrt(3000))


def test_the_temporal_variant_is_given_the_previous_symbol():
    step = np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.5, 0.0, 0.5]])
    chain = sip.SymbolChain.first_order(np.full(3, 1 / 3), step)
    mechanism = sip.TemporalRandomizedResponse(0.1, step)
    outputs = [
        list(sip.release_sequence(mechanism, [0, 1], chain, rng=np.random.default_rng(seed)))[1].output
        for seed in range(40)
    ]
    assert set(outputs) == {0, 1}  # never 2, which cannot follow 0


def test_bad_sequences():
    mechanism, rng = sip.RandomizedResponse(1.0), np.random.default_rng(0)
    with pytest.raises(ValueError, match="a sequence must hold at least one symbol, found shape \\(0,\\)"):
        sip.release_sequence(mechanism, [], CHAIN, rng=rng)
    with pytest.raises(ValueError, match="symbols must be 0..1, found 0 to 2"):
        sip.release_sequence(mechanism, [0, 2], CHAIN, rng=rng)
