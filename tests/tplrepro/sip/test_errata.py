"""The findings of docs/errata/sip2023.md, and its example."""

import doctest

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.tplrepro.sip.oracles import distances_in_a_square
from tplrepro import sip


def test_the_examples_on_the_page_of_errata_run():
    result = doctest.testfile("../../../docs/errata/sip2023.md")
    assert result.attempted >= 6
    assert result.failed == 0


@settings(max_examples=25)
@given(st.integers(2, 5), st.floats(0.2, 3.0), st.integers(0, 2**32 - 1))
def test_theorem_4_holds_for_metrics_where_no_belief_is_small(n, epsilon, seed):
    rng = np.random.default_rng(seed)
    least = 1 / (np.exp(epsilon) + 1)
    assume(n * least < 1)
    belief = least + (1 - n * least) * rng.dirichlet(np.ones(n))
    distance = distances_in_a_square(rng, n)
    published = sip.ConditionalRandomizedResponse(epsilon).response(belief)
    assert published.leakage == pytest.approx(epsilon, abs=1e-9)
    exact = sip.OptimalResponse(epsilon, distance).response(belief)
    assert published.cost(distance) == pytest.approx(exact.cost(distance), abs=1e-7)
