"""Sequences of any kind against lists of lists, and estimates from them against counting by
hand."""

import itertools
from functools import partialmethod
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tplrepro as tpl
from tplrepro.markov import Sequences, as_sequences, count_transitions

LISTS = st.lists(st.lists(st.sampled_from([3, 5, 8, 10**9]), max_size=5), max_size=8)
STATES = st.lists(st.lists(st.integers(0, 4), max_size=8), min_size=1, max_size=6).filter(any)


def ragged(lists, **options):
    flat = np.array([s for one in lists for s in one], dtype=np.int64)
    return Sequences.from_flat(
        flat, np.concatenate([[0], np.cumsum([len(one) for one in lists])]), **options
    )


def back(sequences):
    return [sequences.labels[s].tolist() for s in sequences]


@settings(max_examples=50)
@given(LISTS)
def test_sequences_hold_and_select_what_lists_of_lists_do(lists):
    sequences = ragged(lists)
    assert back(sequences) == lists
    assert sequences.lengths.tolist() == [len(one) for one in lists]
    assert sequences.labels.tolist() == sorted({s for one in lists for s in one})
    pairs = [p for one in lists for p in itertools.pairwise(one)]
    before, after = sequences.transitions()
    assert (
        list(zip(sequences.labels[before].tolist(), sequences.labels[after].tolist(), strict=True))
        == pairs
    )
    assert sequences.n_transitions == len(pairs)
    odd = np.arange(len(lists)) % 2 == 1
    assert back(sequences.select(odd)) == lists[1::2]
    assert back(sequences.select(np.flatnonzero(odd))) == lists[1::2]
    for size in (1, 4):
        blocks = list(sequences.blocks(size))
        assert [
            p for block in blocks for one in back(block) for p in itertools.pairwise(one)
        ] == pairs
        assert all(len(block.values) <= 2 * size + 2 for block in blocks)


def test_sequences_are_found_by_user_and_index_and_cannot_be_changed():
    sequences = ragged([[3], [5, 5], [8]], users=np.array([9, 1, 9]))
    grouped = {user: [s.tolist() for s in own] for user, own in sequences.by_user().items()}
    assert list(grouped.items()) == [(9, [[0], [2]]), (1, [[1, 1]])]
    assert sequences[-2].tolist() == [1, 1]
    with pytest.raises(IndexError, match="index -4 .* size 3"):
        sequences[-4]
    values = np.array([0, 1])
    sequences = Sequences(values, [0, 2], ["a", "b"], [1])
    values[:] = 1
    assert sequences[0].tolist() == [0, 1]


def test_states_are_the_values_seen_unless_they_are_named_and_labels_and_users_survive():
    lists = [[60_977, 12], [], [12, 12]]
    assert back(as_sequences(np.array(s) for s in lists)) == lists
    assert tpl.TransitionMatrix.from_sequences(lists, smoothing=0.1).states == [12, 60_977]
    numbered = as_sequences([[2, 0]], n_states=4)
    assert (numbered.labels.tolist(), numbered[0].tolist()) == ([0, 1, 2, 3], [2, 0])
    named = as_sequences([["b", "a"]], states=["c", "b", "a"])
    assert (named.labels.tolist(), named[0].tolist()) == (["c", "b", "a"], [1, 2])
    assert as_sequences([[2.0, True, np.int8(1)]]).labels.tolist() == [1, 2]
    # equal as floats
    for hashes in ([2**63, 2**63 + 1], [10**20, 10**20 + 1], [-1, 2**63, 2**63 + 1]):
        assert as_sequences([hashes]).labels.tolist() == hashes
    assert as_sequences([np.array([-1]), np.array(hashes[1:])]).labels.tolist() == [-1, *hashes[1:]]
    # A state that is never visited survives too.
    given = Sequences([0, 2, 0], [0, 1, 3], ["x", "y", "z"], ["ann", "bob"])
    assert as_sequences(given) is given
    P = tpl.TransitionMatrix.from_sequences(given, smoothing=1.0)
    assert P.states == ["x", "y", "z"]
    assert P.row(P.index("z")) == pytest.approx([0.5, 0.25, 0.25])
    again = as_sequences(given, states=["z", "y", "x"])
    assert back(again) == back(given)
    assert again.users.tolist() == ["ann", "bob"]
    tuples = Sequences([1, 0], [0, 2], [(0, 1), (1, 0)], [("ann", 7)])
    assert back(tuples)[0] == [(1, 0), (0, 1)]
    assert list(tuples.by_user()) == [("ann", 7)]


def test_a_frame_is_put_in_order_of_user_and_time_and_a_mapping_names_the_users():
    frame = pd.DataFrame(
        {"user": ["bob", "ann"] * 2, "time": [2, 5, 1, 4], "state": list("wxyz"), "speed": np.nan}
    )
    sequences = as_sequences(frame)
    assert back(sequences) == [["z", "x"], ["y", "w"]]
    assert sequences.users.tolist() == ["ann", "bob"]
    dated = frame.assign(
        time=pd.to_datetime(frame["time"], unit="D"), state=pd.Series([3, 1, 3, 9], dtype="Int64")
    )
    assert back(as_sequences(dated)) == [[9, 1], [3, 3]]
    with pytest.raises(
        ValueError,
        match=r"one row at a time, found 1 row beyond it, such as of 'ann' at 4; drop them",
    ):
        as_sequences(pd.concat([frame, frame.iloc[[3]]]))
    sequences = as_sequences({"ann": ["x", "y"], "bob": [["y"], ["y", "x"]], "new": []})
    assert back(sequences) == [["x", "y"], ["y"], ["y", "x"], []]
    assert sequences.users.tolist() == ["ann", "bob", "bob", "new"]


@settings(max_examples=40)
@given(
    sequences=STATES,
    direction=st.sampled_from(["forward", "backward"]),
    smoothing=st.floats(0.01, 5.0),
)
def test_counts_are_those_of_a_loop_and_smoothing_adds_to_each(sequences, direction, smoothing):
    expected = np.zeros((5, 5))
    for pair in (pair for sequence in sequences for pair in itertools.pairwise(sequence)):
        expected[pair if direction == "forward" else pair[::-1]] += 1
    counts, _ = count_transitions(sequences, n_states=5, direction=direction)
    assert counts.toarray().tolist() == expected.tolist()
    with mock.patch.object(Sequences, "blocks", partialmethod(Sequences.blocks, 3)):
        again, _ = count_transitions(sequences, n_states=5, direction=direction)
    assert again.toarray().tolist() == expected.tolist()
    rows = (expected + smoothing) / (expected + smoothing).sum(axis=1, keepdims=True)
    for sparse in (False, True):
        P = tpl.TransitionMatrix.from_sequences(
            sequences, 5, smoothing, direction=direction, sparse=sparse
        )
        assert P.is_sparse == sparse
        assert P.toarray() == pytest.approx(rows)


def test_maximum_likelihood_recovers_the_chain_of_a_path_and_many_states_stay_sparse():
    P = tpl.TransitionMatrix(
        tpl.TransitionMatrix.random(4, rng=np.random.default_rng(1)), states="abcd"
    )
    path = P.sample(30_000, rng=np.random.default_rng(0), initial=[0, 1, 0, 0])
    assert path[0] == "b"
    assert {P.sample(1, rng=np.random.default_rng(seed))[0] for seed in range(40)} == set("abcd")
    for options, truth in (({}, P), ({"direction": "backward"}, P.reverse())):
        estimate = tpl.TransitionMatrix.from_sequences([path], **options)
        assert estimate.states == P.states
        assert np.abs(estimate.probabilities - truth.probabilities).max() < 0.02
    many = tpl.TransitionMatrix.from_sequences([range(5000), [0]], smoothing=0.1)
    assert many.is_sparse
    assert many.background[0] == pytest.approx(0.1 / (1 + 500))
