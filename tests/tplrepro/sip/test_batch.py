import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from experiments.sip.expected_release import expected_release
from experiments.sip.gradient import GradientResponse
from tests.tplrepro.sip.oracles import distances_in_a_square, least_cost, second_order_sequences
from tplrepro import sip

STEP = np.array([[0.9, 0.1], [0.2, 0.8]])


def test_batches_are_numbered_by_their_digits_and_believed_by_the_joint_distribution():
    distance = sip.batch_distance(3, 2, np.abs(np.subtract.outer(np.arange(3.0), np.arange(3))))
    assert distance[2 * 3 + 0, 0 * 3 + 1] == 3.0
    found = sip.batch_belief([0.3, 0.7], STEP, 4)
    assert found == pytest.approx(
        second_order_sequences([0.3, 0.7], STEP, STEP, 4).ravel(), rel=1e-12
    )
    after = found.reshape(4, 4).sum(axis=1) @ sip.batch_chain([0.3, 0.7], STEP, 2).toarray()
    assert after == pytest.approx(found.reshape(4, 4).sum(axis=0), rel=1e-12)


@settings(max_examples=30)
@given(st.floats(0.01, 0.99), st.floats(0.2, 3.0), st.integers(1, 3))
@example(0.5, 1.0, 2)
def test_gradient_descent_stays_on_the_simplex_and_within_the_budget(p, epsilon, width):
    belief = sip.batch_belief([1 - p, p], STEP, width)
    mechanism = GradientResponse(epsilon, width, 2)
    response = mechanism.response(belief)
    assert response.matrix().sum(axis=1) == pytest.approx(1.0, abs=1e-12)
    assert response.leakage <= epsilon + 1e-9
    exact = sip.BatchResponse(epsilon, width, 2).response(belief)
    assert exact.leakage <= epsilon
    cost, least = response.cost(mechanism.distance), exact.cost(mechanism.distance)
    # of problem (30)
    assert least == pytest.approx(least_cost(belief, mechanism.distance, epsilon), abs=1e-6)
    uniform = float((belief @ mechanism.distance).mean())
    assert least - 1e-8 <= cost <= uniform + 1e-12
    # the drawn ones need not improve as much
    assert cost < 0.8 * uniform or (p, epsilon, width) != (0.5, 1.0, 2)


@settings(max_examples=10)
@given(st.integers(0, 99), st.floats(0.2, 3.0))
def test_memory_of_earlier_batches_never_pays(seed, epsilon):
    """The best response to (earlier, current) costs what the best to the current alone does:
    docs/errata/sip2023.md."""
    rng = np.random.default_rng(seed)
    joint, distance = rng.dirichlet(np.full(9, 0.5)), distances_in_a_square(rng, 3)
    with_memory = np.tile(distance, (3, 3))  # between pairs: that of their current batches
    longer, shorter = (
        least_cost(joint, with_memory, epsilon),
        least_cost(joint.reshape(3, 3).sum(0), distance, epsilon),
    )
    assert longer == pytest.approx(shorter, abs=1e-8)
    response = sip.OptimalResponse(epsilon, distance).response(joint.reshape(3, 3).sum(0))
    assert response.cost(distance) == pytest.approx(longer, abs=1e-7)


def test_a_response_to_two_batches_keeps_its_budget_for_all_three():
    """Theorem 5 with L = 2: the third response sees the second batch and the third."""
    rng = np.random.default_rng(11)
    belief = rng.dirichlet(np.full(27, 0.5)).reshape(3, 3, 3)  # given the outputs so far
    response = rng.dirichlet(np.ones(4), (3, 3))
    outputs = belief[..., None] * response
    after = outputs / outputs.sum(axis=(0, 1, 2))
    of_all = np.abs(np.log(after / belief[..., None])).max()
    of_two = sip.instantaneous_leakage(response.reshape(9, 4), belief.sum(axis=0).ravel())
    assert of_all == pytest.approx(of_two, rel=1e-9)


def test_longer_batches_cost_less_for_the_same_total_budget():
    # Four bits, a total of 2 nats, spent in one, two or four parts.
    costs = []
    for width in (1, 2, 4):
        chain = sip.batch_chain([0.5, 0.5], STEP, width)
        prior = sip.markov_sequences([0.5, 0.5], STEP, 4).reshape((2**width,) * (4 // width))
        mechanism = sip.BatchResponse(2.0 * width / 4, width, 2)
        found = sip.sequence_leakage(mechanism, prior)
        assert found.sequence <= found.instantaneous.sum() + 1e-9 <= 2.0 + 1e-9
        assert found.instantaneous.max() <= mechanism.epsilon  # Theorem 5
        costs.append(expected_release(mechanism, chain, 4 // width, mechanism.distance).costs.sum())
    assert costs[0] > costs[1] > costs[2]


@pytest.mark.slow
def test_about_a_thousand_batches_are_solved_exactly():
    mechanism = sip.BatchResponse(2.0, 10, 2)
    response = mechanism.response(sip.batch_belief([0.5, 0.5], STEP, 10))
    assert response.leakage <= 2.0
    assert response.cost(mechanism.distance) <= response.bound + 1e-6
