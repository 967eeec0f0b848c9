import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tplrepro.search import fit_to_level, largest_within

three = st.lists(st.floats(1e-300, 1e300), min_size=3, max_size=3).map(sorted)


@given(three, st.booleans(), st.just(0.0) | st.floats(1e-15, 0.1))
def test_finds_the_last_float_before_the_threshold_or_within_a_share_on_the_safe_side(
    numbers, logarithmic, tolerance
):
    low, threshold, high = numbers
    found = largest_within(
        lambda x: x <= threshold, low, high, tolerance=tolerance, logarithmic=logarithmic
    )
    assert found <= threshold <= found * (1 + 2 * tolerance) or found == low >= threshold / (
        1 + 2 * tolerance
    )


def test_the_result_was_tested_or_is_the_lower_end_and_ratios_are_halved_fast():
    tested = []
    assert largest_within(lambda x: tested.append(x) or x < 0.3, 0.0, 1.0) in tested
    tested.clear()
    largest_within(
        lambda x: tested.append(x) or x <= 1e-9, 1e-12, 1e12, tolerance=1e-9, logarithmic=True
    )
    assert len(tested) < 45
    assert largest_within(lambda x: x <= 0.0, 0.0, 1.0) == 0.0  # below the least positive float
    # negatives find the smallest number
    assert -largest_within(lambda x: -x >= 0.3, -1.0, -0.0) == 0.3


@pytest.mark.parametrize(
    ("low", "high", "logarithmic"),
    [(1.0, 0.5, False), (0.0, 1.0, True), (-2.0, -1.0, True), (np.nan, 1.0, False)],
)
def test_ends_in_the_wrong_order_or_without_a_logarithm_are_refused(low, high, logarithmic):
    with pytest.raises(ValueError, match="low <= high"):
        largest_within(lambda x: True, low, high, logarithmic=logarithmic)


@given(st.lists(st.floats(-1e300, 1e300), min_size=3, max_size=3).map(sorted))
def test_finds_the_last_float_of_either_sign(numbers):
    low, threshold, high = numbers
    assert largest_within(lambda x: x <= threshold, low, high) == threshold


@given(
    st.lists(st.floats(-1e300, 1e300), min_size=4, max_size=4).map(sorted), st.sampled_from([1, 2])
)
def test_a_guess_changes_no_result(numbers, place):
    low, *inner, high = numbers
    found = largest_within(lambda x: x <= inner[0], low, high, near=inner[place - 1])
    assert found == inner[0]


@pytest.mark.parametrize("threshold", [5e-324, 1e-322, 1e-311])
@pytest.mark.parametrize("near", [1e-323, 3e-311])
def test_a_guess_among_the_smallest_floats_ends(threshold, near):
    assert largest_within(lambda x: x <= threshold, 0.0, 1.0, near=near) == threshold


@pytest.mark.parametrize("error", [0.0, 2.0**-52, -(2.0**-48), 1e-12])
def test_a_good_guess_takes_few_steps(error):
    tested = []
    largest_within(lambda x: tested.append(x) or x <= 0.3, 0.0, 1.0, near=0.3 * (1.0 + error))
    assert len(tested) < 25


@given(st.floats(1e-3, 1e3), st.floats(1e-6, 1e3), st.sampled_from([1, 2, 3]))
@example(2.0, 0.75, 1)  # half of 1.5, the sum
def test_budgets_of_a_given_shape_reach_the_level_or_alpha_to_the_last_bits(alpha, target, power):
    found = fit_to_level(
        lambda budgets: budgets.sum() ** power, np.array([0.5, 1.0]), alpha, target
    )
    assert found[1] == 2.0 * found[0] <= alpha
    assert found.sum() ** power <= target
    assert (found.sum() * (1 + 2e-14)) ** power > target or found[1] == alpha


def test_no_budget_exceeds_alpha_where_the_target_leaves_room():
    found = fit_to_level(lambda budgets: budgets.sum(), np.array([2.0, 4.0]), 1.0, 100.0)
    assert found.tolist() == [0.5, 1.0]
