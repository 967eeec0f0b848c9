import pickle

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.tplrepro.sip.oracles import (
    beliefs,
    budgets,
    checked_rows,
    distances_in_a_square,
    least_cost,
)
from tplrepro import sip
from tplrepro.sip.hamming import _divide_by_sum, _tight_values

TOLERANCE = 2e-8  # the reference programme's own, and the margin below the budget


@settings(max_examples=150)
@given(beliefs(), budgets)
@example(np.array([1.0]), 1.0)
@example(np.array([0.5, 0.5]), 1e-12)
@example(np.array([1 - 2e-12, 1e-12, 1e-12]), 0.5)
@example(np.full(5, 0.2), np.log(4.0))
def test_hamming_is_optimal_and_never_exceeds_its_budget(belief, epsilon):
    response = sip.OptimalResponse(epsilon).response(belief)
    assert sip.instantaneous_leakage(checked_rows(response, belief), belief) <= epsilon
    assert response.leakage <= epsilon
    # A budget below 1e-11 is too small for anything but an output that ignores the input.
    if epsilon > 1e-10:
        assert response.cost() <= response.bound + TOLERANCE
    if 0.05 <= epsilon <= 4:
        best = least_cost(belief, 1 - np.eye(belief.size), epsilon)
        assert response.cost() == pytest.approx(best, abs=TOLERANCE)
        assert response.bound <= best + TOLERANCE


@pytest.mark.parametrize("epsilon", [10.0, 12.0, 20.0])
def test_the_bound_is_not_above_the_cost_of_a_likely_symbol(epsilon):
    belief = [7.206679530593351e-07, 0.9999989770240685, 3.0230797856797856e-07]
    response = sip.OptimalResponse(epsilon).response(belief)
    assert response.bound <= response.cost() + np.finfo(float).eps


def test_what_a_caller_does_to_a_response_changes_no_other():
    response = sip.OptimalResponse(1.0, np.ones((3, 3)) - np.eye(3)).response([0.2, 0.3, 0.5])
    with pytest.raises(ValueError, match="read-only"):
        response.table[:] = np.eye(3)


def test_values_of_served_symbols_solve_their_equations():
    """K is 4: the first symbol is common."""
    belief, odds, of_rarer = np.array([0.5, 0.2, 0.01]), 3.0, 0.7
    x = _tight_values(belief, odds, of_rarer)
    assert odds * x[0] == pytest.approx(odds - 1.0 + belief[0], rel=1e-12)
    shares = 4.0 * belief[1:]
    of_rare = shares * x[1:] + (1.0 - shares) * of_rarer
    assert of_rare == pytest.approx(odds * belief[1:], rel=1e-12)


def test_shares_of_any_sum_are_divided_by_it():
    assert _divide_by_sum(np.array([0.1, 0.3])) == pytest.approx([0.25, 0.75])
    assert _divide_by_sum(np.array([2.0, 6.0])) == pytest.approx([0.25, 0.75])
    assert _divide_by_sum(np.zeros(2)).tolist() == [0.0, 0.0]


def test_the_constant_output_of_a_tiny_budget_is_the_one_that_costs_least():
    """The middle of three places, not the most probable one; also if parts of a large alphabet are
    compared one after the other."""
    squares = np.array([[0.0, 1.0, 9.0], [1.0, 0.0, 1.0], [9.0, 1.0, 0.0]])
    belief = [0.5, 0.05, 0.45]
    for distance in (squares, lambda x, y: squares[x, y]):
        response = sip.OptimalResponse(1e-12, distance).response(belief)
        assert response.labels.tolist() == [1]
        assert response.cost(distance) == pytest.approx(0.95)
        assert response.bound == -np.inf
    impossible = sip.OptimalResponse(1e-12, lambda x, y: squares[x, y]).response([0.6, 0.0, 0.4])
    assert impossible.labels.tolist() == [0]
    many = np.full(2_100, 1 / 2_100)
    on_a_line = sip.OptimalResponse(1e-12, lambda x, y: abs(x - y) + (y == 1_049))
    assert on_a_line.response(many).labels.tolist() == [1_050]


@settings(max_examples=40)
@given(beliefs(largest=6), budgets, st.integers(0, 2**32 - 1))
def test_other_distances_never_exceed_their_budget(belief, epsilon, seed):
    distance = distances_in_a_square(np.random.default_rng(seed), belief.size)
    response = sip.OptimalResponse(epsilon, distance).response(belief)
    assert response.leakage <= epsilon
    assert sip.instantaneous_leakage(checked_rows(response, belief), belief) <= epsilon
    if 1e-10 < epsilon <= 20:
        assert response.cost(distance) <= response.bound * (1 + 1e-8) + 1e-11 * distance.max()
    elif epsilon > 20:
        assert response.bound <= response.cost(distance) <= 3e-9 * distance.max()
    if 0.05 <= epsilon <= 4:
        best = least_cost(belief, distance, epsilon)
        # The reference cannot place rows of beliefs near its tolerance better than that.
        assert response.cost(distance) == pytest.approx(best, abs=1e-6)
        assert response.bound <= best + 1e-6


@pytest.mark.parametrize("epsilon", [0.3, 3.0, 10.0])
def test_symbols_that_are_alike_are_treated_alike(epsilon):
    around = np.abs(np.arange(6) - np.arange(6)[:, None])
    rows = (
        sip.OptimalResponse(epsilon, np.minimum(around, 6 - around))
        .response(np.full(6, 1 / 6))
        .matrix()
    )
    # Among equally good responses the middle is met as exactly as the optimum, to 1e-9 of the cost.
    assert np.roll(rows, (1, 1), axis=(0, 1)) == pytest.approx(rows, abs=1e-7)
    assert rows.T == pytest.approx(rows, abs=1e-7)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 8.0, 20.0])
def test_large_alphabets_under_other_distances_are_proven_optimal(epsilon):
    rng = np.random.default_rng(0)
    belief, distance = rng.dirichlet(np.full(150, 0.3)), distances_in_a_square(rng, 150)
    response = sip.OptimalResponse(epsilon, distance).response(belief)
    assert response.bound <= response.cost(distance) <= response.bound * (1 + 1e-8) + 1e-11
    assert response.leakage <= epsilon


def test_an_asymmetric_distance_costs_the_least_and_both_paths_for_hamming_agree():
    belief = np.array([0.45, 0.3, 0.2, 0.05])
    distance = np.array([[0, 5, 1, 2], [1, 0, 1, 1], [3, 1, 0, 1], [1, 1, 4, 0]], dtype=float)
    mechanism = pickle.loads(pickle.dumps(sip.OptimalResponse(0.8, distance)))
    response = mechanism.response(belief)
    assert mechanism.response(belief.tolist()) is response  # many users start from the same belief
    assert response.cost(distance) == pytest.approx(
        least_cost(belief, distance, 0.8), abs=TOLERANCE
    )
    general = sip.OptimalResponse(0.8, (1 - np.eye(4))).response(belief)
    assert general.cost() == pytest.approx(
        sip.OptimalResponse(0.8).response(belief).cost(), abs=TOLERANCE
    )


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
def test_hamming_on_41270_states_is_proven_optimal(epsilon):
    belief = 1 / np.arange(1.0, 41_271)
    belief /= belief.sum()
    response = sip.OptimalResponse(epsilon).response(belief)
    assert response.leakage <= epsilon
    assert response.cost() - response.bound < 1e-7
    assert np.abs(np.log(response.column(0) / response.marginal[0])).max() <= epsilon


def test_a_response_that_keeps_hardly_anything_is_within_its_budget():
    """One found by an attack: 1 - share = 8e-9 had lost the digits that the budget needs."""
    belief = [1.9696527480968438e-16, 0.9999999999999999, 1.0426800098885713e-299]
    distance = [
        [0.0, 4.1916111164788296e-10, 55008695.97690049],
        [7.660655150736938, 0.0, 6.041703747803707e-06],
        [1.6929616821171857e-10, 74.08002973666217, 0.0],
    ]
    epsilon = 0.0029646498874443764
    response = sip.OptimalResponse(epsilon, distance).response(belief)
    assert response.leakage <= epsilon


@pytest.mark.parametrize("unit", [1e-180, 1e-6, 1e6, 1e180])
def test_the_unit_of_distances_changes_no_response(unit):
    belief = [0.2, 0.3, 0.5]
    distance = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]])
    expected = sip.OptimalResponse(1.0, distance).response(belief)
    response = sip.OptimalResponse(1.0, unit * distance).response(belief)
    assert response.matrix() == pytest.approx(expected.matrix(), abs=1e-7)
    assert response.bound == pytest.approx(unit * expected.bound, rel=1e-8)
    assert response.cost(unit * distance) <= response.bound * (1 + 1e-8)
