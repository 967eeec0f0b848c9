import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sip.oracles import leakage_by_loops
from tests.sip.strategies import beliefs
from tplrepro import sip


@given(beliefs(), st.integers(0, 2**32 - 1))
def test_leakage_agrees_with_bayes_rule(belief, seed):
    rows = np.random.default_rng(seed).dirichlet(np.ones(4), belief.size)
    assert sip.instantaneous_leakage(rows, belief) == pytest.approx(leakage_by_loops(rows, belief), rel=1e-9, abs=1e-12)


@given(beliefs(), st.integers(0, 2**32 - 1))
def test_theorem_3_and_the_order_of_the_measures(belief, seed):
    belief = np.maximum(belief, 1e-6)
    belief /= belief.sum()
    rows = np.random.default_rng(seed).dirichlet(np.ones(3), belief.size)
    leakage, level = sip.instantaneous_leakage(rows, belief), sip.local_differential_privacy(rows)
    slack = 1e-9
    assert leakage <= level + slack
    assert level <= 2 * leakage + slack
    assert sip.mutual_information(rows, belief) <= leakage + slack


def test_an_output_that_rules_a_symbol_out_leaks_without_bound():
    assert sip.instantaneous_leakage([[1, 0], [0.5, 0.5]], [0.5, 0.5]) == np.inf
    # A symbol that cannot occur is not ruled out by anything.
    assert sip.instantaneous_leakage([[1, 0], [0.5, 0.5]], [0.0, 1.0]) == 0.0
    assert sip.local_differential_privacy([[1, 0], [0.5, 0.5]]) == np.inf


def test_mutual_information_of_a_symmetric_channel():
    p = 0.11
    entropy = -p * np.log(p) - (1 - p) * np.log(1 - p)
    found = sip.mutual_information([[1 - p, p], [p, 1 - p]], [0.5, 0.5])
    assert found == pytest.approx(np.log(2) - entropy, rel=1e-12)


@pytest.mark.parametrize(
    ("belief", "message"),
    [
        ([0.5, 0.6], "a belief must be non-negative and sum to 1 within 1e-09, found sum 1.1"),
        ([1.5, -0.5], "found sum 1 and minimum -0.5; divide it by its sum"),
        ([np.nan, 1.0], "found sum nan"),
        ([], "a belief must have shape"),
        ([[1.0]], "a belief must have shape"),
    ],
)
def test_bad_beliefs(belief, message):
    for kind in (sip.ConditionalRandomizedResponse, sip.OptimalResponse, sip.RandomizedResponse):
        with pytest.raises(ValueError, match=message):
            kind(1.0).response(belief)
    with pytest.raises(ValueError, match=message):
        sip.instantaneous_leakage(np.eye(2), belief)


def test_bad_matrices():
    with pytest.raises(ValueError, match=r"row a\(.\|1\) must be non-negative and sum to 1 .* found sum 0.9"):
        sip.instantaneous_leakage([[1, 0], [0.5, 0.4]], [0.5, 0.5])
    with pytest.raises(ValueError, match="a response over 2 symbols must have a row .* found shape \\(3, 3\\)"):
        sip.instantaneous_leakage(np.eye(3), [0.5, 0.5])
