"""Budgets for several chains: how many pairs count, and which of them are left out."""

import pytest

import tplfrontier as tf
import tplrepro as tpl


def by_number(backward, _forward):
    """A budget that is the pair's own number; none for negative ones."""
    if backward < 0.0:
        raise tpl.NoFiniteSupremumError(f"no budget for {backward}")
    return backward


def pairs_of(numbers):
    return [(number, None) for number in numbers]


@pytest.mark.parametrize("share", [0.05, 0.35, 0.95, 1.0])
def test_a_share_of_twenty_pairs_is_a_whole_number_of_them(share):
    """0.35 of 20 is 7.000000000000001 or less in floats; the least of the 7 largest is the 14th."""
    numbers = [float(number) for number in range(1, 21)]
    least = tf.allocate_for_several(by_number, pairs_of(numbers), share=share)
    assert least == 21 - round(20 * share)


def test_all_pairs_count_unless_a_share_is_given():
    assert tf.allocate_for_several(by_number, pairs_of([3.0, 2.0, 5.0])) == 2.0
    assert tf.allocate_for_several(by_number, pairs_of([3.0])) == 3.0


def test_pairs_without_a_budget_count_among_all_and_the_first_one_is_named():
    assert tf.allocate_for_several(by_number, pairs_of([-1.0, 4.0, 3.0]), share=0.6) == 3.0
    for numbers in ([-1.0, 4.0, 3.0], [4.0, -1.0, -2.0]):
        with pytest.raises(tpl.NoFiniteSupremumError, match=r"no budget for -1\.0"):
            tf.allocate_for_several(by_number, pairs_of(numbers), share=0.9)
