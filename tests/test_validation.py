"""The checks that all rooms share: what they return, and that their errors name the constraint and the value."""

from dataclasses import dataclass

import numpy as np
import pytest

from tplrepro.validation import (
    FrozenArrays,
    check_budgets,
    check_choice,
    check_distribution,
    check_probability,
    check_smoothing,
    frozen,
    one_number,
)


def test_a_distribution_is_copied_and_sums_to_one():
    given = np.array([0.25, 0.75 + 3e-10])
    checked = check_distribution(given, 2)
    assert abs(checked.sum() - 1) <= 2e-16
    assert checked == pytest.approx(given, rel=1e-9)
    checked[:] = 0
    assert given[0] == 0.25


@pytest.mark.parametrize(
    ("values", "n", "message"),
    [
        ([0.5, 0.6], None, "prior must be non-negative and sum to 1 .* found sum 1.1"),
        ([1.5, -0.5], None, "minimum -0.5"),
        ([0.5, np.nan], None, "found sum nan"),
        ([0.5, 0.5], 3, r"prior must have shape \(3,\), found \(2,\)"),
        ([], None, r"shape \(n,\) with n >= 1"),
        ([[1.0]], None, "one probability a state"),
    ],
)
def test_what_is_no_distribution_is_an_error(values, n, message):
    with pytest.raises(ValueError, match=message):
        check_distribution(values, n, "prior")


def test_single_numbers():
    assert check_probability(np.float32(0.5)) == 0.5
    assert check_smoothing(0) == 0.0
    for bad in (-0.1, 1.1, np.nan, "0.5", [0.5], None):
        with pytest.raises(ValueError, match="restart must be a probability, found"):
            check_probability(bad, "restart")
    for bad in (-1, np.inf, np.nan, "1", [1.0], None):
        with pytest.raises(ValueError, match="smoothing must be finite and at least 0, found"):
            check_smoothing(bad)


def test_results_hold_copies_that_cannot_be_written_to():
    @dataclass(frozen=True)
    class Result(FrozenArrays):
        values: np.ndarray
        name: str

    given = np.arange(3.0)
    result = Result(given, "x")
    given[:] = 7.0
    assert (result.values.tolist(), result.name) == ([0.0, 1.0, 2.0], "x")
    assert not result.values.flags.writeable
    assert given.flags.writeable
    assert not frozen([1, 2]).flags.writeable


def test_one_number_has_no_axis():
    assert one_number(np.array(0.5), "x") == 0.5
    with pytest.raises(ValueError, match=r"x must be one number, found shape \(1,\); call once"):
        one_number(np.array([0.5]), "x")


def test_a_choice_is_one_of_those_there_are():
    check_choice("a", "letter", {"a": 1})
    with pytest.raises(ValueError, match="letter must be one of 'a', 'b', found 'c'; choose one"):
        check_choice("c", "letter", ["a", "b"])


def test_a_budget_stands_for_all_releases():
    assert check_budgets(0.5, horizon=3).tolist() == check_budgets([0.5] * 3, horizon=3).tolist() == [0.5] * 3
    with pytest.raises(ValueError, match="one for each release, found 2 for 3 releases; give 3"):
        check_budgets([0.1, 0.2], horizon=3)
