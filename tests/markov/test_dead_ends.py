"""Leaving out states that a sample never leaves or never enters."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tplrepro import TransitionMatrix
from tplrepro.markov import count_transitions, drop_dead_ends


@settings(max_examples=60)
@given(
    sequences=st.lists(st.lists(st.integers(0, 5), min_size=2, max_size=6), min_size=1, max_size=5), both=st.booleans()
)
def test_keeps_what_repeated_deletion_keeps(sequences, both):
    steps = {(a, b) for s in sequences for a, b in itertools.pairwise(s)}
    kept = set(range(6))
    while True:
        inside = {(a, b) for a, b in steps if a in kept and b in kept}
        alive = {a for a, _ in inside} & ({b for _, b in inside} if both else kept)
        if alive == kept:
            break
        kept = alive
    counts, _ = count_transitions(sequences, n_states=6)
    if not kept:
        with pytest.raises(ValueError, match="left again and again, found none of 6"):
            drop_dead_ends(counts, both=both)
        return
    smaller, states = drop_dead_ends(counts, both=both)
    assert states == sorted(kept)
    assert smaller.toarray().tolist() == counts.toarray()[np.ix_(states, states)].tolist()
    TransitionMatrix.from_counts(smaller)
    if both:
        TransitionMatrix.from_counts(smaller.T)


def test_labels_are_kept_and_counts_checked():
    assert drop_dead_ends(np.array([[1, 1], [0, 0]]), states=["home", "trip"])[1] == ["home"]
    with pytest.raises(ValueError, match=r"square and not empty, found shape \(2, 3\)"):
        drop_dead_ends(np.ones((2, 3)))
