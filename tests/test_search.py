import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tplrepro.search import largest_within

positive = st.floats(min_value=1e-300, max_value=1e300)


def three(numbers):
    return st.lists(numbers, min_size=3, max_size=3).map(sorted)


@pytest.mark.parametrize("logarithmic", [False, True])
@given(data=st.data())
def test_finds_the_last_float_before_the_threshold(logarithmic, data):
    low, threshold, high = data.draw(three(positive if logarithmic else st.floats(-1e300, 1e300)))
    assert largest_within(lambda x: x <= threshold, low, high, logarithmic=logarithmic) == threshold


@given(three(positive), st.booleans(), st.floats(1e-15, 0.1))
def test_the_tolerance_is_a_share_and_on_the_safe_side(numbers, logarithmic, tolerance):
    low, threshold, high = numbers
    found = largest_within(lambda x: x <= threshold, low, high, tolerance=tolerance, logarithmic=logarithmic)
    assert found <= threshold <= found * (1 + 2 * tolerance) or found == low >= threshold / (1 + 2 * tolerance)


def test_the_result_was_tested_or_is_the_lower_end_and_ratios_are_halved_fast():
    tested = []
    assert largest_within(lambda x: tested.append(x) or x < 0.3, 0.0, 1.0) in tested
    tested.clear()
    largest_within(lambda x: tested.append(x) or x <= 1e-9, 1e-12, 1e12, tolerance=1e-9, logarithmic=True)
    assert len(tested) < 45
    assert largest_within(lambda x: False, 0.25, 1.0) == 0.25
    assert largest_within(lambda x: True, 0.25, 1.0) == 1.0
    assert largest_within(lambda x: x <= 0.0, 0.0, 1.0) == 0.0  # below the least positive float
    assert -largest_within(lambda x: -x >= 0.3, -1.0, -0.0) == 0.3  # negatives find the smallest number


@pytest.mark.parametrize(
    ("low", "high", "logarithmic"), [(1.0, 0.5, False), (0.0, 1.0, True), (-2.0, -1.0, True), (np.nan, 1.0, False)]
)
def test_ends_in_the_wrong_order_or_without_a_logarithm_are_refused(low, high, logarithmic):
    with pytest.raises(ValueError, match="low <= high"):
        largest_within(lambda x: True, low, high, logarithmic=logarithmic)
