import itertools

import numpy as np
import pytest

from experiments.sip import identification
from tplrepro import sip


def streams(rng, length, count):
    """`count` sequences of each of two users, who change between 0 and 1 seldom, or often; all
    begin with 0."""
    changes = {
        user: rng.random((count, length - 1)) < share
        for user, share in {"slow": 0.1, "fast": 0.8}.items()
    }
    return {
        user: list(np.pad(own, [(0, 0), (1, 0)]).cumsum(axis=1) % 2)
        for user, own in changes.items()
    }


def test_users_are_told_apart_and_noise_hides_them():
    rng = np.random.default_rng(3)
    train, test = streams(rng, 200, 2), streams(rng, 40, 20)
    classifier = identification.MarkovClassifier(2).fit(train)
    assert identification.identification_rate(classifier, test) > 0.95
    hidden = {user: rng.integers(0, 2, (20, 40)) for user in test}
    assert identification.identification_rate(classifier, hidden) < 0.8


@pytest.mark.parametrize(
    "symbols", [None, np.array([[0, 0, 1], [1, 0, 1], [1, 1, 1]])], ids=["symbols", "batches"]
)
def test_likelihood_of_outputs_is_the_sum_over_hidden_sequences(symbols):
    classifier = identification.MarkovClassifier(2).fit(streams(np.random.default_rng(4), 50, 1))
    states = np.array([[0], [1]]) if symbols is None else symbols
    told = np.random.default_rng(5).random((2, len(states)))
    found = classifier.log_likelihoods([[0, 1]], [told], symbols)[0]
    for i in range(2):
        joint = sip.markov_sequences(
            classifier.initial[i], classifier.steps[i], 2 * states.shape[1]
        )
        expected = sum(
            joint[(*states[a], *states[b])] * told[0, a] * told[1, b]
            for a, b in np.ndindex(len(states), len(states))
        )
        assert found[i] == pytest.approx(np.log(expected), rel=1e-12)
    assert (
        classifier.predict([[0, 1]], [told], symbols)[0] == classifier.users[int(np.argmax(found))]
    )
    if symbols is None:  # the same as statements about the previous symbol, too
        pairs = [told[0], np.tile(told[1], (2, 1))]
        assert classifier.log_likelihoods([[0, 1]], [pairs])[0] == pytest.approx(found, rel=1e-12)


def test_likelihoods_of_long_sequences_do_not_underflow():
    classifier = identification.MarkovClassifier(2).fit(streams(np.random.default_rng(4), 50, 1))
    long = [0, 1] * 2000
    exact = classifier.log_likelihoods([long])[0]
    assert exact.min() < -1000
    assert classifier.log_likelihoods([long], [np.eye(2)[long]])[0] == pytest.approx(
        exact, rel=1e-12
    )


def smoothed_by_definition(chain, told, reads):
    """The probabilities of what `reads` says of the symbols (T,), summed over all sequences of
    contexts."""
    matrix, expected = chain.toarray(), 0.0
    for path in itertools.product(range(chain.symbols.size), repeat=len(told)):
        x = chain.symbols[list(path)]
        weight = chain.start[path[0]] * np.prod([matrix[a, b] for a, b in itertools.pairwise(path)])
        for k, likelihood in enumerate(told):
            weight *= likelihood[x[k]] if likelihood.ndim == 1 else likelihood[x[k - 1], x[k]]
        expected = expected + weight * reads(x)
    return expected / expected[0].sum()


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("kind", ["exact", "temporal", "batches"])
def test_smoothed_symbols_are_the_sum_over_all_sequences(order, kind):
    rng, n = np.random.default_rng(5), 3
    recorded = [rng.integers(0, n, 40), [0, 0, 1, 1, 2, 2, 0]]
    pieces, symbols, mechanism = [[0, 1, 0, 2], [2, 2, 0, 1]], None, sip.OptimalResponse(0.7)
    if kind == "temporal":  # 0 does not follow 0, so outputs rule symbols out
        mechanism = sip.TemporalRandomizedResponse(
            0.7, sip.chain_from_sequences([[0, 1, 0, 2, 2]], n).transition
        )
    if kind == "batches":
        recorded = sip.observed_batches([rng.integers(0, 2, 24), [0, 0, 1, 1]], 2, 2)
        n, symbols, pieces = recorded.n_states, recorded.symbols, [recorded[0][:3]]
    chain = sip.chain_from_sequences(recorded, n, order, restart=0.2)
    likelihoods = sip.release_sequences(
        pieces, mechanism, chain, rng=rng, keep_likelihoods=True
    ).likelihoods
    digits = np.arange(n)[:, None] if symbols is None else symbols
    for told, smoothed in zip(
        likelihoods, identification.smoothed_symbols(chain, likelihoods, symbols), strict=True
    ):
        expected = smoothed_by_definition(
            chain, told, lambda x: np.eye(digits.max() + 1)[digits[x].ravel()]
        )
        assert smoothed == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.slow  # the network is compiled for each seed
def test_the_network_finds_who_is_who_and_is_the_same_for_the_same_seed(monkeypatch):
    pytest.importorskip("jax", reason="needs the extra attack")
    rng = np.random.default_rng(6)
    train, test = streams(rng, 20, 200), streams(rng, 20, 50)
    train["fast"] = train["fast"][:150]
    monkeypatch.setattr(identification, "UNITS", 8)
    monkeypatch.setattr(identification, "EPOCHS", 30)
    one, same, other = (
        identification.RecurrentClassifier(2).fit(train, rng=np.random.default_rng(seed))
        for seed in (1, 1, 2)
    )
    assert identification.identification_rate(one, test) > 0.95
    first, second, third = (
        [np.asarray(w.value) for w in found.network.weights] for found in (one, same, other)
    )
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    assert not np.array_equal(first[0], third[0])
    # A symbol is the certainty of it; of what says nothing, all is the same.
    assert (one.predict(test["slow"]) == one.predict(np.eye(2)[np.array(test["slow"])])).all()
    assert len(set(one.predict(np.full((5, 20, 2), 0.5)).tolist())) == 1
