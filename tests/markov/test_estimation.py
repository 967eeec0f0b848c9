"""Estimates from sequences against counting by hand."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tplrepro as tpl
from tplrepro.markov.estimation import count_transitions, estimate_transitions, transitions_from_counts

sequences_of_states = st.lists(st.lists(st.integers(0, 4), max_size=8), min_size=1, max_size=6).filter(any)


@given(sequences=sequences_of_states, direction=st.sampled_from(["forward", "backward"]))
def test_counts_are_those_of_a_loop(sequences, direction):
    expected = Counter()
    for sequence in sequences:
        for before, after in pairwise(sequence):
            expected[(before, after) if direction == "forward" else (after, before)] += 1
    counts, _ = count_transitions(sequences, n_states=5, direction=direction)
    assert {key: int(counts[key]) for key in expected} == dict(expected)
    assert counts.sum() == sum(expected.values())


@given(sequences=sequences_of_states, smoothing=st.floats(0.01, 5.0))
def test_smoothing_adds_to_every_count(sequences, smoothing):
    counts, _ = count_transitions(sequences, n_states=5)
    expected = counts.toarray() + smoothing
    expected /= expected.sum(axis=1, keepdims=True)
    P = tpl.TransitionMatrix.from_sequences(sequences, n_states=5, smoothing=smoothing)
    assert P.probabilities == pytest.approx(expected)
    sparse = tpl.TransitionMatrix.from_sequences(sequences, n_states=5, smoothing=smoothing, sparse=True)
    assert sparse.is_sparse
    assert sparse.toarray() == pytest.approx(expected)


def test_maximum_likelihood_recovers_a_chain():
    rng = np.random.default_rng(0)
    P = tpl.random_matrix(4, seed=1)
    state, sequence = 0, []
    for _ in range(50_000):
        state = rng.choice(4, p=P.row(state))
        sequence.append(state)
    estimate = tpl.TransitionMatrix.from_sequences([sequence])
    assert np.abs(estimate.probabilities - P.probabilities).max() < 0.02
    backward = tpl.TransitionMatrix.from_sequences([sequence], direction="backward")
    assert np.abs(backward.probabilities - P.reverse().probabilities).max() < 0.02


def test_labels_are_found_and_kept_in_the_order_given():
    sequences = [["home", "road", "home"], ["home", "road", "office", "road"], ["office", "office"]]
    P = tpl.TransitionMatrix.from_sequences(sequences)
    assert P.states == ["home", "office", "road"]
    assert P.row(P.index("road")).tolist() == [0.5, 0.5, 0.0]
    Q = estimate_transitions(sequences, states=["road", "home", "office"])
    assert Q.row(0).tolist() == [0.0, 0.5, 0.5]


def test_sequences_may_have_any_lengths_and_be_a_generator():
    P = tpl.TransitionMatrix.from_sequences(np.array(s) for s in ([0, 1, 0], [1], [], [1, 1, 0, 1]))
    assert P.probabilities.tolist() == [[0.0, 1.0], [2 / 3, 1 / 3]]


def test_no_step_leads_from_one_sequence_to_the_next():
    counts, _ = count_transitions([[0, 1], [2, 0]], n_states=3)
    assert counts.toarray().tolist() == [[0, 1, 0], [0, 0, 0], [1, 0, 0]]


def test_many_states_stay_sparse():
    P = tpl.TransitionMatrix.from_sequences([range(5000), [0]], smoothing=0.1)
    assert P.is_sparse
    assert P.background[0] == pytest.approx(0.1 / (1 + 500))


def test_counts_of_one_row_per_state_are_kept():
    counts, _ = count_transitions([[0, 1, 0]], n_states=2)
    assert transitions_from_counts(counts).probabilities.tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda e: e([]), "at least one observed state, found none"),
        (lambda e: e([[], []]), "at least one observed state, found none"),
        (lambda e: e([[0, 1], [[0, 1], [1]]]), "found a ragged or nested one at position 1"),
        (lambda e: e([[[0, 1], [1, 0]]]), "found 2 dimensions at position 0"),
        (lambda e: e("abc"), "found the string 'a' at position 0; wrap"),
        (lambda e: e([[0, 1], [1, 7]], n_states=3), r"unknown state 7 in the sequences; states must be 0..2"),
        (lambda e: e([[0, -1]]), "unknown state -1"),
        (lambda e: e([["a", "b"], ["c"]], states=["a", "b"]), "unknown state 'c'.*add it to states or drop it"),
        (lambda e: e([["a", "b"]], states=["a", "b"], n_states=3), "equal the number of labels, found 3 and 2"),
        (lambda e: e([[0.0, 1.5]]), "whole numbers or labels, found 1.5 in sequence 0"),
        (lambda e: e([[0.0, np.nan]]), "whole numbers or labels, found nan"),
        (lambda e: e([[0, 1]], smoothing=-1.0), "smoothing must be finite and at least 0, found -1.0"),
        (lambda e: e([[0, 1]], smoothing=np.inf), "found inf"),
        (lambda e: e([[0, 1]]), r"no step starts at state 1 \(1 such states\); give smoothing > 0"),
        (lambda e: e([[0, 1]], direction="sideways"), "'forward' or 'backward', found 'sideways'"),
    ],
)
def test_bad_input_names_constraint_value_and_remedy(call, message):
    with pytest.raises(ValueError, match=message):
        call(tpl.TransitionMatrix.from_sequences)
