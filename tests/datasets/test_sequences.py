"""Ragged sequences against lists of lists."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tplrepro.datasets import Sequences

LISTS = st.lists(st.lists(st.sampled_from([3, 5, 8, 10**9]), max_size=5), max_size=8)


def ragged(lists, **options):
    flat = np.array([s for one in lists for s in one], dtype=np.int64)
    return Sequences.from_flat(flat, np.concatenate([[0], np.cumsum([len(one) for one in lists])]), **options)


def back(sequences):
    return [sequences.labels[s].tolist() for s in sequences]


@given(LISTS)
def test_all_of_it_is_as_with_lists(lists):
    sequences = ragged(lists)
    assert back(sequences) == lists
    assert [sequences.labels_of(i).tolist() for i in range(len(lists))] == lists
    assert sequences.lengths.tolist() == [len(one) for one in lists]
    assert sequences.labels.tolist() == sorted({s for one in lists for s in one})
    pairs = [p for one in lists for p in itertools.pairwise(one)]
    before, after = sequences.transitions()
    assert list(zip(sequences.labels[before].tolist(), sequences.labels[after].tolist(), strict=True)) == pairs
    assert sequences.n_transitions == len(pairs)
    odd = np.arange(len(lists)) % 2 == 1
    assert back(sequences.select(odd)) == lists[1::2]
    assert back(sequences.select(np.flatnonzero(odd))) == lists[1::2]
    compact = sequences.select(odd).compact()
    assert back(compact) == lists[1::2]
    assert compact.n_states == len({s for one in lists[1::2] for s in one})


def test_sequences_are_grouped_by_user():
    sequences = ragged([[3], [5, 5], [8]], users=np.array([9, 1, 9]))
    grouped = sequences.by_user()
    assert list(grouped) == [9, 1]
    assert [s.tolist() for s in grouped[9]] == [[0], [2]]


def test_items_and_bounds():
    sequences = ragged([[3], [5, 5]])
    assert sequences[-1].tolist() == [1, 1]
    for wrong in (2, -3):
        with pytest.raises(IndexError, match="there are 2 sequences"):
            sequences[wrong]
    assert repr(sequences) == "Sequences(2 sequences, 3 values, 2 states)"


def test_sequences_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        ragged([[3, 5]])[0][0] = 1


@pytest.mark.parametrize(
    ("values", "offsets", "labels", "users", "message"),
    [
        ([0.5], [0, 1], [1], [1], "values must be a flat array of integer codes"),
        ([[0]], [0, 1], [1], [1], "values must be a flat array of integer codes"),
        ([0], [0, 2], [1], [1], "offsets must rise from 0 to the number of values, 1"),
        ([0], [1, 1], [1], [1], "offsets must rise from 0"),
        ([0, 0], [0, 2, 1, 2], [1], [1, 1, 1], "offsets must rise"),
        ([0], [], [1], [], "offsets must rise"),
        ([0], [0, 1], [1], [1, 2], "users must name one user a sequence, 1, found 2"),
        ([1], [0, 1], [1], [1], "values must be codes from 0 to 0, found 1 to 1"),
        ([-1], [0, 1], [1], [1], "values must be codes from 0 to 0, found -1 to -1"),
    ],
)
def test_arrays_must_fit(values, offsets, labels, users, message):
    with pytest.raises(ValueError, match=message):
        Sequences(np.array(values), np.array(offsets), np.array(labels), np.array(users))
