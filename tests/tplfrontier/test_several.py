"""Budgets for several candidate chains, against the TPL of each."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tplfrontier as tf
import tplrepro as tpl
from tests.tplrepro.leakage.matrices import BACKWARD, FORWARD, random_matrix

BY_BOUND = partial(tpl.allocate_by_upper_bound, 1.0)


@settings(max_examples=15)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1.0, 0.8, 0.5]), st.booleans())
def test_tpl_is_within_alpha_for_the_share(seed, share, over_time):
    rng = np.random.default_rng(seed)
    pairs = [(random_matrix(rng, "dense", 3), random_matrix(rng, "dense", 3)) for _ in range(10)]
    allocate = partial(tpl.allocate_by_quantification, 1.0, horizon=6) if over_time else BY_BOUND
    budgets = np.broadcast_to(tf.allocate_for_several(allocate, pairs, share=share), 6)
    largest = [tpl.temporal_privacy_leakage(budgets, *pair).tpl.max() for pair in pairs]
    assert sum(leakage <= 1.0 for leakage in largest) >= share * len(pairs)


def test_a_pair_without_a_budget_is_left_out_or_an_error():
    pairs = [(BACKWARD, FORWARD)] * 3 + [(np.eye(2), np.eye(2))]
    assert tf.allocate_for_several(BY_BOUND, pairs, share=0.75) == BY_BOUND(BACKWARD, FORWARD)
    with pytest.raises(tpl.NoFiniteSupremumError):
        tf.allocate_for_several(BY_BOUND, pairs, share=0.76)
