"""The findings of docs/errata/sip2023.md, and its example."""

import doctest
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from experiments.sip.gradient import GradientResponse
from tests.tplrepro.sip.oracles import distances_in_a_square, least_cost
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
    least = least_cost(belief, distance, epsilon)
    assert published.cost(distance) == pytest.approx(least, abs=1e-7)
    assert exact.cost(distance) == pytest.approx(least, abs=1e-7)


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


def test_a_belief_depends_on_every_entry_of_a_dense_chain():
    """Eq. (13) is a sum over the earlier symbols for each symbol: |X|^2 numbers are read."""
    n = 4
    rng = np.random.default_rng(5)
    initial = rng.dirichlet(np.ones(n))
    chain = rng.dirichlet(np.ones(n), n)
    response = sip.ConditionalRandomizedResponse(1.0).response(initial)
    told = response.matrix()[:, 2]

    def next_belief(rows):
        start = sip.Belief.start(sip.SymbolChain.first_order(initial, rows))
        return start.observe(2, response).current

    weights = [sum(initial[i] * told[i] * chain[i, j] for i in range(n)) for j in range(n)]
    before = next_belief(chain)
    assert before == pytest.approx(np.array(weights) / sum(weights), rel=1e-12)
    for i, j in product(range(n), repeat=2):
        moved = chain.copy()
        moved[i, j] -= 0.5 * chain[i, j]
        moved[i, (j + 1) % n] += 0.5 * chain[i, j]
        share = initial[i] * told[i] / sum(weights)
        change = before[j] - next_belief(moved)[j]
        assert change == pytest.approx(0.5 * share * chain[i, j], rel=1e-9)


@pytest.mark.parametrize("width", [1, 2, 3])
def test_the_nested_loops_of_algorithm_2_take_the_third_power_of_the_number_of_batches(width):
    """Lines 7, 8 and 11 as printed; the sum of line 12 is the same for every o."""
    batches = range(2**width)
    belief = np.random.default_rng(width).dirichlet(np.ones(len(batches)))
    response = GradientResponse(1.0, width, 2).response(belief)
    rows = response.matrix()
    additions = 0
    for _o, r in product(batches, repeat=2):
        s = 0.0
        for other in batches:
            s += rows[other, r] * belief[other]
            additions += 1
        assert response.marginal[r] == pytest.approx(s, rel=1e-12)
    assert additions == 2 ** (3 * width)


def joint_of_two_releases(second):
    """Pr(x_1, x_2, y_1, y_2) of two correlated bits: the first release by randomised response, the
    second by `second[x_1, x_2, y_1, y_2]`."""
    prior = np.array([[0.4, 0.1], [0.2, 0.3]])
    first = np.array([[0.7, 0.3], [0.3, 0.7]])
    return prior[:, :, None, None] * first[:, None, :, None] * second


def information(joint, protected, released, given=()):
    """I(protected; released | given), nats, of the axes of a joint distribution, by its sums."""

    def entropy(*axes):
        others = tuple(set(range(joint.ndim)) - set(axes))
        law = joint.sum(axis=others).ravel()
        return -sum(p * np.log(p) for p in law if p > 0)

    return (
        entropy(*protected, *given)
        + entropy(*released, *given)
        - entropy(*protected, *released, *given)
        - (entropy(*given) if given else 0.0)
    )


def test_information_on_the_symbols_so_far_adds_up_and_on_single_symbols_need_not():
    """What releases tell of all symbols; of those so far and of their own, given the outputs
    before. No release depends on later symbols (section II-A)."""
    tells_its_own = np.array([[0.8, 0.2], [0.3, 0.7]])[None, :, None, :] * np.ones((2, 2, 2, 2))
    tells_the_first = tells_its_own.swapaxes(0, 1)
    tells_both = np.random.default_rng(1).dirichlet(np.ones(2), (2, 2, 2))
    for second, is_its_own in (
        (tells_its_own, True),
        (tells_the_first, False),
        (tells_both, False),
    ):
        joint = joint_of_two_releases(second)
        whole = information(joint, (0, 1), (2, 3))
        table = joint.reshape(4, 4)
        prior = table.sum(axis=1)
        found = sip.mutual_information(table / prior[:, None], prior)
        assert found == pytest.approx(whole, rel=1e-12)
        of_the_first = information(joint, (0,), (2,))
        so_far = of_the_first + information(joint, (0, 1), (3,), given=(2,))
        assert whole == pytest.approx(so_far, rel=1e-12)
        own = of_the_first + information(joint, (1,), (3,), given=(2,))
        if is_its_own:
            assert whole == pytest.approx(own, rel=1e-12)
        else:
            assert whole > 1.2 * own
