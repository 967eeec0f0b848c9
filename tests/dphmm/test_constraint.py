from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tplrepro.dphmm import delta_location_set, possible_states
from tplrepro.dphmm.constraint import as_answers


@given(st.integers(0, 10_000), st.floats(0, 0.6))
@settings(max_examples=40)
def test_delta_location_set_is_the_smallest(seed, delta):
    p = np.random.default_rng(seed).dirichlet(np.ones(6) / 2)
    chosen = delta_location_set(p, delta)
    assert p[chosen].sum() >= 1 - delta - 1e-12
    for smaller in combinations(range(6), len(chosen) - 1):
        assert p[list(smaller)].sum() < 1 - delta + 1e-12


def test_no_impossible_state_is_taken_and_no_possible_one_lost():
    assert possible_states([0.5, 0, 1e-320, 0.5]).tolist() == [0, 2, 3]
    # The sum of the others falls short of 1 by rounding.
    assert delta_location_set([0.1] * 10 + [0.0], 0).tolist() == list(range(10))
    assert delta_location_set([0.25, 0.25, 0.5], 0.25).tolist() == [0, 2]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: possible_states([0.5, 0.4]), "sum to 1 within 1e-09, found sum 0.9"),
        (lambda: delta_location_set([1.0], 1.0), r"delta must be in \[0, 1\)"),
        (lambda: as_answers([[1, 2, 3], [4, 5, 6]], 3), r"shape \(3, d\), found \(2, 3\); transpose it"),
        (lambda: as_answers(np.zeros((4, 2)), 3), "one row of d numbers a state"),
        (lambda: as_answers([0, np.nan], 2), r"finite, found \[nan\] for state 1"),
        (lambda: as_answers(["a", "b"], 2), "array of numbers"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()
