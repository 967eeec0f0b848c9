import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

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


@settings(max_examples=40)
@given(st.integers(2, 3), st.sampled_from([1, 2]), st.booleans(), st.integers(0, 2**32 - 1))
def test_recursion_of_eq_13_for_order_1_and_2(n, order, sparse, seed):
    rng = np.random.default_rng(seed)
    initial, first = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(n), n)
    tensor = rng.dirichlet(np.ones(n), (n, n))
    mechanism = sip.OptimalResponse(2.0) if seed % 2 else sip.ConditionalRandomizedResponse(1.0)
    prior = sip.markov_sequences(initial, first if order == 1 else (first, tensor), 4)
    if order == 2:
        chain = sip.second_order(initial, first, tensor)
    else:
        chain = sip.SymbolChain.first_order(initial, csr_array(first) if sparse else first)
    belief, outputs = sip.Belief.start(chain), []
    steps = []
    for _ in range(4):
        response = mechanism.response(belief.current)
        steps.append(belief.current)
        outputs.append(int(rng.choice(n, p=response.marginal / response.marginal.sum())))
        belief = belief.observe(outputs[-1], response)
    expected = beliefs_by_enumeration(mechanism, prior, outputs)
    for found, wanted in zip(steps, expected, strict=True):
        assert found == pytest.approx(wanted, rel=1e-9, abs=1e-12)


def test_a_response_given_as_rows_counts_the_same():
    chain = sip.SymbolChain.first_order([0.3, 0.7], [[0.8, 0.2], [0.4, 0.6]])
    response = sip.ConditionalRandomizedResponse(1.0).response([0.3, 0.7])
    start = sip.Belief.start(chain)
    assert start.observe(1, response).current == pytest.approx(start.observe(1, response.matrix()).current)


def test_a_smoothed_sparse_chain_with_background():
    counts = csr_array(np.array([[3.0, 0, 0], [0, 1, 2], [1, 0, 0]]))

    sparse, dense = (TransitionMatrix.from_counts(counts, 0.1, sparse=flag) for flag in (True, False))
    weights = np.array([0.2, 0.5, 0.3])
    chains = [sip.SymbolChain.first_order(weights, m) for m in (sparse, dense)]
    assert chains[0].predict(weights) == pytest.approx(chains[1].predict(weights), rel=1e-12)


def test_estimated_chains():
    sequences = [[0, 1, 2, 0, 1, 2], [0, 1, 0], [2]]
    first = sip.chain_from_sequences(sequences, 4, order=1, restart=0.0)
    # 0 is always followed by 1; 3 was never seen, so it restarts.
    assert first.predict(np.array([1.0, 0, 0, 0])).tolist() == [0, 1, 0, 0]
    assert first.predict(np.array([0, 0, 0, 1.0])) == pytest.approx(first.initial)
    assert first.initial == pytest.approx(np.array([5, 4, 4, 1]) / 14)
    second = sip.chain_from_sequences(sequences, 4, order=2, restart=0.0)
    weights = np.zeros(second.symbols.size)
    weights[0] = 1.0
    after_01 = second.predict(weights)  # "0" leads to the pair (0, 1)
    following = sip.Belief(second, second.predict(after_01)).current
    assert following == pytest.approx([1 / 3, 0, 2 / 3, 0])  # 0 1 -> 2, 2, 0
    renewed = sip.chain_from_sequences(sequences, 4, order=1, restart=0.25)
    assert renewed.predict(np.array([1.0, 0, 0, 0])) == pytest.approx(0.75 * np.eye(4)[1] + 0.25 * renewed.initial)


def test_41270_states_hold_no_table_of_pairs():
    n = 41_270
    rng = np.random.default_rng(0)
    chain = sip.chain_from_sequences([rng.integers(0, n, 20) for _ in range(2_000)], n, order=2)
    stored = chain.transition.probabilities
    assert stored.nnz < 3 * 40_000 + n + chain.symbols.size
    belief = sip.Belief.start(chain)
    assert belief.current.sum() == pytest.approx(1.0)


def test_an_output_of_zero_probability():
    belief = sip.Belief.start(sip.SymbolChain.first_order([0.0, 1.0], np.eye(2)))
    response = sip.ConditionalRandomizedResponse(1.0).response(belief.current)
    with pytest.raises(sip.ZeroProbabilityError, match="output 0 has probability 0 under the adversary's belief"):
        belief.observe(0, response)
    assert issubclass(sip.ZeroProbabilityError, ValueError)


def test_bad_chains():
    with pytest.raises(ValueError, match="estimation needs at least one observed symbol, found none"):
        sip.chain_from_sequences([[]], 2)
    with pytest.raises(ValueError, match="symbols must be 0..1, found 0 to 2"):
        sip.chain_from_sequences([[0, 2]], 2)
    with pytest.raises(ValueError, match="order must be 1 or 2, found 3"):
        sip.chain_from_sequences([[0, 1]], 2, order=3)
    with pytest.raises(ValueError, match="restart must be a probability, found 1.5"):
        sip.chain_from_sequences([[0, 1]], 2, restart=1.5)
    with pytest.raises(ValueError, match=r"needs shape \(2, 2, 2\), found \(2, 2\)"):
        sip.second_order([0.5, 0.5], np.eye(2), np.eye(2))
    with pytest.raises(ValueError, match="a belief must have shape \\(2,\\), found \\(3,\\)"):
        sip.SymbolChain.first_order([0.2, 0.3, 0.5], TransitionMatrix(np.eye(2)))
