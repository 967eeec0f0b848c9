import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from tests.tplrepro.sip.oracles import second_order_sequences
from tplrepro import TransitionMatrix, sip
from tplrepro.markov.sequences import as_sequences

STEP = np.array([[0.8, 0.2], [0.3, 0.7]])
CHAIN = sip.SymbolChain.first_order([0.4, 0.6], STEP)
CYCLE = np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.5, 0.0, 0.5]])


@settings(max_examples=40)
@given(
    st.integers(2, 3),
    st.sampled_from(["dense", "sparse", "second order"]),
    st.integers(0, 2**32 - 1),
)
def test_beliefs_follow_the_recursion_of_eq_13_for_order_1_and_2(n, kind, seed):
    rng = np.random.default_rng(seed)
    initial, first = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(n), n)
    mechanism = sip.OptimalResponse(2.0) if seed % 2 else sip.ConditionalRandomizedResponse(1.0)
    if kind == "second order":
        weights = rng.dirichlet(np.ones(n))
        # Long enough that all triples occur, so that nothing restarts.
        sequences = [rng.choice(n, 300, p=0.5 * weights + 0.5 / n) for _ in range(2)]
        chain = sip.chain_from_sequences(sequences, n, order=2, restart=0.0, initial=initial)
        pairs, triples = np.zeros((n, n)), np.zeros((n, n, n))
        for s in sequences:
            np.add.at(pairs, (s[:-1], s[1:]), 1.0)
            np.add.at(triples, (s[:-2], s[1:-1], s[2:]), 1.0)
        frequencies = [counts / counts.sum(-1, keepdims=True) for counts in (pairs, triples)]
        prior = second_order_sequences(initial, *frequencies, 4)
    else:
        chain = sip.SymbolChain.first_order(
            initial, csr_array(first) if kind == "sparse" else first
        )
        prior = sip.markov_sequences(initial, first, 4)
    belief, likelihood = sip.Belief.start(chain), np.ones(())
    for k in range(4):
        # Pr(X_k | y_1..k-1) from the joint distribution of all sequences.
        weights = prior.sum(axis=tuple(range(k + 1, 4))) * np.expand_dims(likelihood, -1)
        expected = weights.reshape(-1, n).sum(axis=0) / weights.sum()
        assert belief.current == pytest.approx(expected, rel=1e-9, abs=1e-12)
        response = mechanism.response(belief.current)
        output = int(rng.choice(n, p=response.marginal / response.marginal.sum()))
        likelihood = np.multiply.outer(likelihood, mechanism.matrix(expected)[:, output])
        belief = belief.observe(output, response)


def test_a_symbol_stays_possible_however_unlikely():
    belief = sip.Belief.start(sip.SymbolChain.first_order([0.5, 0.5], np.eye(2)))
    response = sip.RandomizedResponse(5.0).response([0.5, 0.5])
    for y in [0] * 300 + [1] * 301:
        belief = belief.observe(y, response)
    assert belief.current == pytest.approx(response.column(1) / response.column(1).sum(), rel=1e-9)


def test_a_symbol_stays_possible_where_belief_and_likelihood_are_tiny_together():
    chain = sip.SymbolChain.first_order([1.0, 1e-200], np.eye(2))
    belief = sip.Belief.start(chain).given(np.array([0.5, 1e-200]))
    for _ in range(2):
        belief = belief.given(np.array([1e-250, 1.0]))
    assert belief.current == pytest.approx([0.5e-100, 1.0], rel=1e-9)


@pytest.mark.parametrize("background", [0.0, 0.02, 2.0])
def test_one_step_is_the_dense_product_with_restarts(background):
    counts = csr_array(np.array([[3.0, 0, 0], [0, 1, 2], [1, 0, 1]]))
    step = TransitionMatrix(counts, background=background, normalize=True)
    chain = sip.SymbolChain(
        np.array([0.2, 0.5, 0.3]), step, np.arange(3), np.array([0.0, 0.4, 1.0])
    )
    expected = (1 - chain.restart)[:, None] * step.toarray() + np.outer(
        chain.restart, chain.initial
    )
    assert chain.toarray() == pytest.approx(expected, rel=1e-12)
    weights = np.array([0.1, 0.6, 0.3])
    assert chain.predict(weights) == pytest.approx(weights @ expected, rel=1e-12)
    assert np.exp(chain.log_predict(np.log(weights))) == pytest.approx(
        weights @ expected, rel=1e-12
    )
    # else entries are differences, and logarithms are used
    assert (chain.factors.smallest > 0) == (background < 1)


def test_estimated_chains_and_no_table_of_pairs_of_41270_states():
    sequences = [[0, 1, 2, 0, 1, 2], [0, 1, 0], [2]]
    for restart in (0.0, 0.25):
        first = sip.chain_from_sequences(sequences, 4, restart=restart)
        assert first.initial == pytest.approx(np.array([5, 4, 4, 1]) / 14)
        # 0 is always followed by 1; 3 was never seen, so it restarts.
        expected = (1 - restart) * np.eye(4)[1] + restart * first.initial, first.initial
        assert first.toarray()[[0, 3]] == pytest.approx(np.array(expected))
    second = sip.chain_from_sequences(sequences, 4, order=2, restart=0.0)
    # "0" leads to the pair (0, 1), and 0 1 to 2, 2, 0
    following = second.toarray()[0] @ second.toarray()
    assert np.bincount(second.symbols, following, 4) == pytest.approx([1 / 3, 0, 2 / 3, 0])
    n, rng = 41_270, np.random.default_rng(0)
    chain = sip.chain_from_sequences([rng.integers(0, n, 20) for _ in range(2_000)], n, order=2)
    assert chain.transition.probabilities.nnz < 3 * 40_000 + n + chain.symbols.size
    assert sip.Belief.start(chain).current.sum() == pytest.approx(1.0)


def test_symbols_are_by_default_the_values_seen_and_nobody_can_write_to_a_chain():
    ids = as_sequences([[7, 60_977, 7, 10**9, 7], [60_977, 7]])
    chain = sip.chain_from_sequences(ids)
    assert chain.labels.tolist() == [7, 60_977, 10**9]
    assert (
        chain.toarray() == sip.chain_from_sequences([[0, 1, 0, 2, 0], [1, 0]], 3).toarray()
    ).all()
    longer = sip.chain_from_sequences(ids, order=2)
    for array in (chain.initial, sip.Belief.start(CHAIN).current, sip.Belief.start(longer).current):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0


def test_each_release_reports_its_true_leakage():
    crr, belief = sip.ConditionalRandomizedResponse(1.0), sip.Belief.start(CHAIN)
    steps = list(sip.release([1, 1, 0, 1], crr, CHAIN, rng=np.random.default_rng(4)))
    for step in steps:
        response = crr.response(belief.current)
        rows = response.matrix()
        assert step.leakage == pytest.approx(
            sip.instantaneous_leakage(rows, belief.current), rel=1e-12
        )
        belief = belief.observe(step.output, response)
    rng = np.random.default_rng(4)
    found = sip.release_sequences([[1, 1, 0, 1], [0]], crr, CHAIN, rng=rng, keep_likelihoods=True)
    assert found.outputs[0].tolist() == [step.output for step in steps]
    assert np.array(found.likelihoods[0]) == pytest.approx(
        np.array([step.likelihood for step in steps])
    )
    # that of the second sequence, which starts from the chain's own belief
    first = crr.leakage(CHAIN.initial)
    leakages = [step.leakage for step in steps] + [first]
    assert (found.mean_leakage, found.largest_leakage) == pytest.approx(
        (np.mean(leakages), max(leakages))
    )


def test_the_temporal_variant_is_given_the_previous_symbol_and_tells_it():
    on_a_cycle = sip.SymbolChain.first_order(np.full(3, 1 / 3), CYCLE)
    mechanism, rng = sip.TemporalRandomizedResponse(0.1, CYCLE), np.random.default_rng(0)
    found = sip.release_sequences([[0, 1]] * 40, mechanism, on_a_cycle, rng=rng)
    assert {int(second) for _, second in found.outputs} == {0, 1}  # never 2, which cannot follow 0
    assert found.largest_leakage == np.inf  # an output rules out what cannot precede it
    found = sip.release_sequences(
        [[0, 1, 2]], mechanism, on_a_cycle, rng=rng, keep_likelihoods=True
    )
    for output, told in zip(found.outputs[0][1:], found.likelihoods[0][1:], strict=True):
        responses = [mechanism.response(on_a_cycle.initial, before) for before in range(3)]
        assert told.tolist() == [
            [response.row(x)[output] for x in range(3)] for response in responses
        ]


def test_where_all_supports_are_the_same_the_temporal_variant_is_randomised_response():
    """Earlier outputs then change the belief, and with it the leakage; without them it was stated
    too small."""
    kinds = sip.TemporalRandomizedResponse(1.0, STEP), sip.RandomizedResponse(1.0)
    rngs = np.random.default_rng(1), np.random.default_rng(1)
    same, plain = (
        list(sip.release([0, 0, 1, 1], k, CHAIN, rng=r)) for k, r in zip(kinds, rngs, strict=True)
    )
    assert [step.output for step in same] == [step.output for step in plain]
    assert [step.leakage for step in same] == [step.leakage for step in plain]
    assert max(step.leakage for step in same) > same[0].leakage
