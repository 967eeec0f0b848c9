import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from tests.sip.oracles import second_order_sequences
from tplrepro import TransitionMatrix, sip


def beliefs_by_enumeration(mechanism, prior, outputs):
    """Pr(X_k | y_1..k-1) from the joint distribution of all sequences, for every k."""
    n, horizon = prior.shape[0], prior.ndim
    likelihood, found = np.ones(()), []
    for k in range(horizon):
        joint = prior.sum(axis=tuple(range(k + 1, horizon)))
        weights = joint * np.expand_dims(likelihood, -1)
        current = weights.reshape(-1, n).sum(axis=0) / weights.sum()
        found.append(current)
        likelihood = np.multiply.outer(likelihood, mechanism.matrix(current)[:, outputs[k]])
    return found


def estimate_by_loops(sequences, n):
    """Relative frequencies of pairs (n, n) and of triples (n, n, n); what was never seen is even."""
    pairs, triples = np.zeros((n, n)), np.zeros((n, n, n))
    for s in sequences:
        for k in range(1, len(s)):
            pairs[s[k - 1], s[k]] += 1
            if k > 1:
                triples[s[k - 2], s[k - 1], s[k]] += 1
    return [
        np.where(c.sum(-1, keepdims=True), c / np.maximum(c.sum(-1, keepdims=True), 1), 1 / n) for c in (pairs, triples)
    ]


@settings(max_examples=40)
@given(st.integers(2, 3), st.sampled_from(["dense", "sparse", "second order"]), st.integers(0, 2**32 - 1))
def test_recursion_of_eq_13_for_order_1_and_2(n, kind, seed):
    rng = np.random.default_rng(seed)
    initial, first = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(n), n)
    mechanism = sip.OptimalResponse(2.0) if seed % 2 else sip.ConditionalRandomizedResponse(1.0)
    if kind == "second order":
        weights = rng.dirichlet(np.ones(n))
        # Long enough that all triples occur, so that nothing restarts.
        sequences = [rng.choice(n, 300, p=0.5 * weights + 0.5 / n) for _ in range(2)]
        chain = sip.chain_from_sequences(sequences, n, order=2, restart=0.0, initial=initial)
        prior = second_order_sequences(initial, *estimate_by_loops(sequences, n), 4)
    else:
        chain = sip.SymbolChain.first_order(initial, csr_array(first) if kind == "sparse" else first)
        prior = sip.markov_sequences(initial, first, 4)
    belief, outputs, steps = sip.Belief.start(chain), [], []
    for _ in range(4):
        response = mechanism.response(belief.current)
        steps.append(belief.current)
        outputs.append(int(rng.choice(n, p=response.marginal / response.marginal.sum())))
        belief = belief.observe(outputs[-1], response)
    for found, wanted in zip(steps, beliefs_by_enumeration(mechanism, prior, outputs), strict=True):
        assert found == pytest.approx(wanted, rel=1e-9, abs=1e-12)


def test_a_symbol_stays_possible_however_unlikely():
    belief = sip.Belief.start(sip.SymbolChain.first_order([0.5, 0.5], np.eye(2)))
    response = sip.RandomizedResponse(5.0).response([0.5, 0.5])
    for y in [0] * 300 + [1] * 301:
        belief = belief.observe(y, response)
    assert belief.current == pytest.approx(response.column(1) / response.column(1).sum(), rel=1e-9)


@pytest.mark.parametrize("background", [0.0, 0.02, 2.0])
def test_one_step_is_the_dense_product_with_restarts(background):
    counts = csr_array(np.array([[3.0, 0, 0], [0, 1, 2], [1, 0, 1]]))
    step = TransitionMatrix(counts, background=background, normalize=True)
    chain = sip.SymbolChain(np.array([0.2, 0.5, 0.3]), step, np.arange(3), np.array([0.0, 0.4, 1.0]))
    expected = (1 - chain.restart)[:, None] * step.toarray() + np.outer(chain.restart, chain.initial)
    assert chain.toarray() == pytest.approx(expected, rel=1e-12)
    weights = np.array([0.1, 0.6, 0.3])
    assert chain.predict(weights) == pytest.approx(weights @ expected, rel=1e-12)
    assert np.exp(chain.log_predict(np.log(weights))) == pytest.approx(weights @ expected, rel=1e-12)
    assert (chain.steps[2] > 0) == (background < 1)  # else entries are differences, and logarithms are used


def test_estimated_chains():
    sequences = [[0, 1, 2, 0, 1, 2], [0, 1, 0], [2]]
    first = sip.chain_from_sequences(sequences, 4, order=1, restart=0.0)
    # 0 is always followed by 1; 3 was never seen, so it restarts.
    assert first.toarray()[0].tolist() == [0, 1, 0, 0]
    assert first.toarray()[3] == pytest.approx(first.initial)
    assert first.initial == pytest.approx(np.array([5, 4, 4, 1]) / 14)
    second = sip.chain_from_sequences(sequences, 4, order=2, restart=0.0)
    rows = second.toarray()
    following = rows[0] @ rows  # "0" leads to the pair (0, 1), and 0 1 to 2, 2, 0
    assert np.bincount(second.symbols, following, 4) == pytest.approx([1 / 3, 0, 2 / 3, 0])
    renewed = sip.chain_from_sequences(sequences, 4, order=1, restart=0.25)
    assert renewed.toarray()[0] == pytest.approx(0.75 * np.eye(4)[1] + 0.25 * renewed.initial)


def test_41270_states_hold_no_table_of_pairs():
    n = 41_270
    rng = np.random.default_rng(0)
    chain = sip.chain_from_sequences([rng.integers(0, n, 20) for _ in range(2_000)], n, order=2)
    assert chain.transition.probabilities.nnz < 3 * 40_000 + n + chain.symbols.size
    assert sip.Belief.start(chain).current.sum() == pytest.approx(1.0)
