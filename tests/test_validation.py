"""The checks that all rooms share: what they return, and that their errors name the constraint and
the value."""

import random
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

import tplreport as tr
from tplrepro.validation import (
    FrozenArrays,
    as_generator,
    as_scalar,
    check_budgets,
    check_choice,
    check_codes,
    check_distribution,
    check_horizon,
    check_level,
    check_probability,
    check_smoothing,
    frozen,
)


def test_what_is_right_is_returned_and_a_distribution_is_copied_and_sums_to_one():
    assert as_scalar(np.array(0.5), "x") == check_probability(np.float32(0.5)) == 0.5
    assert check_smoothing(0) == 0.0
    check_choice("a", "letter", {"a": 1})
    assert (
        check_budgets(0.5, horizon=3).tolist()
        == check_budgets([0.5] * 3, horizon=3).tolist()
        == [0.5] * 3
    )
    assert check_distribution({1: 0.75, 0: 0.25}).tolist() == [0.25, 0.75]
    given = np.array([0.25, 0.75 + 3e-10, 0.0])
    checked = check_distribution(given, 3)
    assert abs(checked.sum() - 1) <= 2e-16
    assert checked == pytest.approx(given, rel=1e-9)
    assert not np.shares_memory(checked, given)


@pytest.mark.parametrize(
    ("check", "arguments", "message"),
    [
        (
            check_distribution,
            ([0.5, 0.6], None, "prior"),
            "prior must be non-negative and sum to 1 .* found sum 1.1",
        ),
        (check_distribution, ([1.5, -0.5],), "minimum -0.5"),
        (check_smoothing, (1e308,), "at most 1e\\+200, found 1e\\+308"),
        (check_distribution, ([0.5, np.nan],), "found sum nan"),
        (
            check_distribution,
            ([0.5, 0.5], 3, "prior"),
            r"prior must have shape \(3,\), found \(2,\)",
        ),
        (check_distribution, ([],), r"shape \(n,\) with n >= 1"),
        (check_distribution, ([[1.0]],), "one probability for each state"),
        *(
            (check_probability, (bad, "x"), "x must be (a probab|one num)")
            for bad in (-0.1, 2, np.nan, [0.5], None, 10**400)
        ),
        *(
            (check_level, (bad,), "alpha must be (finite|a finite)")
            for bad in (5e-324, 9e-301, 0, -1, np.inf, np.nan)
        ),
        *(
            (check_horizon, (bad,), "horizon must be")
            for bad in (0, -1, 10**8 + 1, 10**400, 2.0, "2", None)
        ),
        *(
            (check_smoothing, (bad,), "smoothing must be (finite|one num)")
            for bad in (-1, np.inf, np.nan, [1.0], None)
        ),
        *(
            (as_generator, (bad,), "rng must be .*, found .*; give a seed")
            for bad in ("0", 0.5, True, -1, [0], random)
        ),
        (as_scalar, (np.array([0.5]), "x"), r"x must be one number, found shape \(1,\); call once"),
        (
            check_choice,
            ("c", "letter", ["a", "b"]),
            "letter must be one of 'a', 'b', found 'c'; choose one",
        ),
        *(
            (check_codes, (bad, 3, "cells"), "cells must be whole")
            for bad in ([0.0], np.ma.masked_less([0, 1], 1))
        ),
        (
            partial(check_budgets, horizon=3),
            ([0.1, 0.2],),
            "one for each release, found 2 for 3 releases; give 3",
        ),
    ],
)
def test_each_wrong_argument_is_named(check, arguments, message):
    with pytest.raises(ValueError, match=message):
        check(*arguments)


def test_a_generator_is_kept_or_made_of_a_seed():
    rng = np.random.default_rng(3)
    assert as_generator(rng) is rng
    assert (
        as_generator(np.int64(3)).random()
        == as_generator(3).random()
        == np.random.default_rng(3).random()
    )
    assert as_generator(None).random() != as_generator(None).random()


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


def test_warnings_name_the_line_of_the_caller_of_the_package():
    with pytest.warns(UserWarning, match="for experiments") as caught:
        tr.release_counts([10, 20], [0.5, 0.5], 1, mechanism="numpy", rng=np.random.default_rng(0))
    assert caught[0].filename == __file__
