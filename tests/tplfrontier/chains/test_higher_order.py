"""Chains of order k against counting tuples by hand, and their leakage against all paths."""

from collections import Counter
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import tplrepro as tpl
from tplfrontier import estimate_higher_order, every_kth
from tplfrontier.chains import higher_order

lists_of_places = st.lists(st.lists(st.integers(0, 3), max_size=9), min_size=1, max_size=5)


def by_hand(sequences, order, direction, smoothing, every):
    """States, those seen or every one, and rows by counting tuples in a loop."""
    windows = [[tuple(s[i : i + order]) for i in range(len(s) - order + 1)] for s in sequences]
    tuples = sorted({each for of_one in windows for each in of_one})
    if every:
        tuples = [*product(dict.fromkeys(place for each in tuples for place in each), repeat=order)]
    counts = Counter(pair for of_one in windows for pair in pairwise(of_one))
    rows = np.zeros((len(tuples), len(tuples)))
    for (i, early), (j, late) in product(enumerate(tuples), repeat=2):
        rows[i, j] = counts[early, late] + smoothing * (order == 1 or early[1:] == late[:-1])
    return tuples, rows if direction == "forward" else rows.T


@given(
    lists_of_places,
    st.integers(1, 3),
    st.sampled_from(["forward", "backward"]),
    st.sampled_from([0.0, 0.3, 2.0]),
    st.booleans(),
)
@settings(max_examples=40)
def test_chains_of_higher_order_count_tuples(sequences, order, direction, smoothing, every):
    options = {
        "smoothing": smoothing,
        "direction": direction,
        "tuples": "all" if every else "observed",
    }
    if max(map(len, sequences)) < order:
        with pytest.raises(
            ValueError, match=f"order {order} needs a sequence of at least {order} |found none"
        ):
            estimate_higher_order(sequences, order)
        return
    tuples, rows = by_hand(sequences, order, direction, smoothing, every)
    if (rows.sum(axis=1) == 0).any():
        with pytest.raises(ValueError, match="every state must be left at least once"):
            estimate_higher_order(sequences, order, **options)
        return
    P = estimate_higher_order(sequences, order, **options)
    assert P.states == ([place for (place,) in tuples] if order == 1 else tuples)
    assert P.toarray() == pytest.approx(rows / rows.sum(axis=1, keepdims=True))
    # The states of one estimate are those of another, and places have labels.
    options["tuples"] = P.states
    assert estimate_higher_order(sequences, order, labels=range(4), **options).states == P.states


def test_one_step_is_the_identity_and_k_steps_are_not_and_their_powers_stay_sparse():
    assert estimate_higher_order([[1, 0, 1, 0]], labels=["x", "y"]).states == [
        ("x", "y"),
        ("y", "x"),
    ]
    rng = np.random.default_rng(2)
    for direction in ("forward", "backward"):
        P = estimate_higher_order(
            [rng.integers(0, 3, 200)], order=2, smoothing=1.0, tuples="all", direction=direction
        )
        assert tpl.PrivacyLossFunction(P).is_identity
        sparse = tpl.TransitionMatrix(csr_array(P.probabilities), states=P.states)
        for k in (1, 2, 3):
            power = every_kth(sparse, k)
            assert (power.is_sparse, power.states) == (True, P.states)
            assert power.toarray() == pytest.approx(np.linalg.matrix_power(P.probabilities, k))
            assert every_kth(P, k).probabilities == pytest.approx(power.toarray())
        assert np.isfinite(tpl.PrivacyLossFunction(every_kth(P, 2)).supremum(0.1))
    many = estimate_higher_order([rng.integers(0, 80, 40_000)], order=2, smoothing=0.1)
    assert many.is_sparse
    assert many.n_states > 6000
    assert many.probabilities.nnz < 85 * many.n_states


def test_leakage_seen_every_second_step_bounds_that_of_all_paths():
    """Pr(r^1..r^4 | l^3, l^4) by enumeration, releases by randomized response, against blocks."""
    rng = np.random.default_rng(3)
    epsilon, forward = 0.4, np.zeros((4, 4))  # pairs (a, b) as 2a + b
    rule = rng.dirichlet(np.ones(2), size=4)
    for pair, nxt in product(range(4), range(2)):
        forward[pair, 2 * (pair % 2) + nxt] = rule[pair, nxt]
    P = tpl.TransitionMatrix(forward)
    start = P.stationary()
    # rows: true place
    answer = np.array([[np.exp(epsilon), 1.0], [1.0, np.exp(epsilon)]]) / (1 + np.exp(epsilon))
    worst = 0.0
    for outputs in product(range(2), repeat=4):
        given = np.zeros(4)
        for first, third, fourth in product(range(4), range(2), range(2)):
            path = (first // 2, first % 2, third, fourth)
            weight = start[first] * rule[first, third] * rule[2 * (first % 2) + third, fourth]
            given[2 * third + fourth] += weight * np.prod(
                [answer[pair] for pair in zip(path, outputs, strict=True)]
            )
        given /= start  # stationary: the pair has the same distribution at time 4
        worst = max(worst, float(np.log(given.max() / given.min())))
    blocks = every_kth(P.reverse(start), 2)
    bound = tpl.temporal_privacy_leakage([2 * epsilon] * 2, backward=blocks, forward=None).bpl[-1]
    assert worst <= bound
    assert worst > 0.8 * bound
    # Naively spending one epsilon a step on the pair would promise too little.
    assert (
        worst > tpl.temporal_privacy_leakage([epsilon] * 2, backward=blocks, forward=None).bpl[-1]
    )


def test_chains_that_would_fill_the_memory_are_refused():
    others, zeros = np.arange(1, 12_000), np.zeros(11_999, dtype=int)
    places = np.r_[zeros, others], np.r_[others, zeros]
    star = csr_array((np.ones(others.size * 2), places))
    with pytest.raises(ValueError, match="the power must store at most 134217728 probabilities"):
        every_kth(tpl.TransitionMatrix(star, normalize=True), 2)
    with pytest.raises(ValueError, match="the chain must store at most 134217728 probabilities"):
        estimate_higher_order(
            [[1, 0, 1]],
            2,
            1.0,
            tuples=list(zip(*(place.tolist() for place in places), strict=True)),
        )


@pytest.mark.parametrize(("order", "fits"), [(1, True), (2, False)])
def test_all_tuples_are_refused_where_their_steps_do_not_fit(monkeypatch, order, fits):
    monkeypatch.setattr("tplfrontier.chains.higher_order.MOST_STORED", 7)
    states = [("a", "b"), ("b", "a")]
    if fits:
        assert higher_order._all_tuples(states, order) == [("a",), ("b",)]
    else:
        with pytest.raises(ValueError, match="all 2-tuples must fit in memory, found 4 of 2"):
            higher_order._all_tuples(states, order)
