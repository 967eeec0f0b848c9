"""The findings of docs/errata/sip2023.md, and its example."""

import doctest
from itertools import product

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


def test_theorem_4_fails_for_the_squared_distance_of_section_4a():
    """The squared distance breaks the triangle inequality: 9 > 1 + 4 for the places 0, 1 and 3."""
    places = np.array([0.0, 1.0, 3.0])
    squared = (places[:, None] - places[None]) ** 2
    belief = np.full(3, 1 / 3)
    epsilon = np.log(2.0)
    published = sip.ConditionalRandomizedResponse(epsilon).response(belief)
    exact = sip.OptimalResponse(epsilon, squared).response(belief)
    assert published.leakage == pytest.approx(epsilon, abs=1e-12)
    assert exact.leakage <= epsilon + 1e-9
    assert published.cost(squared) == pytest.approx(14 / 9, abs=1e-12)
    assert exact.cost(squared) == pytest.approx(13 / 9, abs=1e-7)
    # by the distance itself, which is a metric, both are optimal
    assert published.cost(np.sqrt(squared)) == pytest.approx(
        sip.OptimalResponse(epsilon, np.sqrt(squared)).response(belief).cost(np.sqrt(squared)),
        abs=1e-7,
    )


def test_the_leakage_of_a_sequence_is_less_than_the_sum_of_its_steps():
    """By Bayes' rule over all sequences of two symbols, three times."""
    chain = np.array([[0.5, 0.5], [0.1, 0.9]])
    law = np.array([0.9, 0.1])
    keep = np.exp(1.0) / (1 + np.exp(1.0))
    response = np.array([[keep, 1 - keep], [1 - keep, keep]])
    paths = list(product(range(2), repeat=3))
    prior = {p: law[p[0]] * chain[p[0], p[1]] * chain[p[1], p[2]] for p in paths}
    told = {
        (x, y): np.prod([response[a, b] for a, b in zip(x, y, strict=True)])
        for x in paths
        for y in paths
    }
    output = {y: sum(prior[x] * told[x, y] for x in paths) for y in paths}
    whole = max(abs(np.log(told[x, y] / output[y])) for x in paths for y in paths)
    steps = 0.0
    for k in range(3):
        likelihoods = []
        for x, y in product(paths, paths):
            before = sum(output[z] for z in paths if z[:k] == y[:k])
            after = sum(output[z] for z in paths if z[: k + 1] == y[: k + 1])
            likelihoods.append(abs(np.log(response[x[k], y[k]] / (after / before))))
        steps += max(likelihoods)
    found = sip.sequence_leakage(sip.RandomizedResponse(1.0), sip.markov_sequences(law, chain, 3))
    assert found.sequence == pytest.approx(whole, rel=1e-12)
    assert found.instantaneous.sum() == pytest.approx(steps, rel=1e-12)
    assert (whole, steps) == pytest.approx((2.4321, 2.5158), abs=1e-4)
