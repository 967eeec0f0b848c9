import numpy as np
import pytest

from experiments.sip import clicks, gaze, setups
from tplrepro import sip


def test_costs_of_randomised_response_are_those_of_its_matrix():
    sessions, epsilon = [np.array([0, 3, 1]), np.array([2])], 1.3
    matrix = sip.RandomizedResponse(epsilon).matrix(np.full(4, 0.25))
    away = (matrix * np.abs(np.subtract.outer(range(4), range(4)))).sum(axis=1)
    found = clicks.randomized_costs(sessions, 4, epsilon)
    assert found.distance == pytest.approx([away[own].sum() for own in sessions], rel=1e-12)
    assert found.changed == pytest.approx(
        [(1 - matrix.diagonal()[own]).sum() for own in sessions], rel=1e-12
    )


def test_expected_costs_of_clicks_are_the_means_of_simulated_ones():
    chain = sip.chain_from_sequences([[0, 0, 0, 1, 0, 0, 2, 0]], restart=0.2)
    sessions, rng, draws = [np.array([2, 1, 2])], np.random.default_rng(4), 1000
    mechanism = sip.ConditionalRandomizedResponse(0.8)
    expected = clicks.click_costs(sessions * draws, mechanism, chain, rng=rng)
    released = sip.release_sequences(sessions * draws, mechanism, chain, rng=rng)
    wrong = np.array([own != sessions[0] for own in released.outputs]).sum(axis=1)
    far = np.array([np.abs(own - sessions[0]) for own in released.outputs]).sum(axis=1)
    assert expected.changed.mean() == pytest.approx(
        wrong.mean(), abs=4 * wrong.std() / np.sqrt(draws)
    )
    assert expected.distance.mean() == pytest.approx(far.mean(), abs=4 * far.std() / np.sqrt(draws))
    assert expected.leakage.max() == pytest.approx(released.largest_leakage)
    assert expected.changed.std() < wrong.std()


def test_a_gain_has_an_interval_over_sessions():
    zeros = np.zeros(3)
    less = clicks.SessionCosts(np.array([1.0, 2.0, 3.0]), zeros, zeros, np.array([1, 2, 3]))
    more = clicks.SessionCosts(np.array([2.0, 4.0, 9.0]), zeros, zeros, np.array([1, 2, 3]))
    half = 1.959964 * np.sqrt(0.5**2 + 1.0**2 + 1.5**2) / 6
    assert less.gain_on(more)["distance"] == pytest.approx(
        {"value": 1.5, "low": 1.5 - half, "high": 1.5 + half}
    )


def test_batches_of_a_huge_budget_cost_nothing_and_leakage_is_that_of_a_click():
    batches = sip.observed_batches([[0, 1, 2, 2, 1], [1, 0, 0, 2]], 2)
    chain = sip.chain_from_sequences(batches, restart=0.3)
    costs = clicks.batch_costs(batches, np.array([0, 1]), 9.0, chain, rng=np.random.default_rng(1))
    assert costs.clicks.tolist() == [5, 4]
    assert costs.changed.tolist() == costs.distance.tolist() == [0, 0]
    assert costs.leakage.max() <= 9.0


def test_released_gaze_is_measured_in_cells():
    pieces = [np.array([0, 1, 3, 2]), np.array([3, 3, 2, 0])]
    batches = sip.observed_batches(pieces, 2, 4)
    chain, rng = sip.chain_from_sequences(batches, restart=0.3), np.random.default_rng(2)
    between = np.vectorize(lambda x, y: float(setups.cell_distance(x, y, 2)), otypes=[float])
    found = gaze.released_batches(batches, list(batches), 0.5, chain, between, rng=rng)
    expected = [between(own, true).mean() for own, true in zip(found.cells, pieces, strict=True)]
    assert found.distance.tolist() == expected
    assert found.changed == np.mean(
        [own != true for own, true in zip(found.cells, pieces, strict=True)]
    )
    assert found.largest_leakage <= 0.5


def test_the_nearest_batch_elsewhere_has_distance_0_if_it_is_equal():
    batches = sip.observed_batches([[0, 1, 2, 3], [0, 1, 3, 3], [2, 2, 2, 2]], 2, 4)
    assert gaze.nearest_elsewhere(batches, 0, 2, 2) == 0.0
    # (2, 3) is half a cell from (3, 3), and from (2, 2), on average over its samples.
    assert gaze.nearest_elsewhere(batches, 0, 4, 2) == 0.25
