"""Schemes keep their promise whichever side follows the clock."""

import numpy as np
import pytest

import tplrepro as tpl
from tests.tplreport.people.test_rhythm import staying
from tplreport.reporting.allocation_schemes import MOST_FOR_LEAST_ERROR, allocate, rounded_down
from tplrepro.leakage import suprema

ALPHA = 1.0
WEEK = tpl.Cycle([staying(0.8)] * 84 + [staying(0.6)] * 84)
ALIKE = tpl.Cycle([staying(0.8)] * 168)
TWO_DAYS = tpl.Cycle([staying(0.7)] * 32 + [staying(0.6)] * 32)
THREE_DAYS = tpl.Cycle([staying(0.8)] * 48 + [staying(0.65)] * 48)


@pytest.mark.parametrize(
    ("backward", "forward", "phases"),
    [
        (WEEK, None, 168),
        (None, WEEK, 168),
        (WEEK, staying(0.7), 168),
        (TWO_DAYS, THREE_DAYS, 192),
        (ALIKE, None, 168),
    ],
)
def test_a_long_cycle_on_either_side_has_a_budget_for_each_phase(backward, forward, phases):
    assert phases > MOST_FOR_LEAST_ERROR
    budgets = allocate("Algorithm 7 (any T)", ALPHA, (backward, forward), 2 * phases)
    first_round, second_round = budgets.reshape(2, phases)
    np.testing.assert_array_equal(first_round, second_round)
    equal = tpl.allocate_by_upper_bound(ALPHA, backward, forward, shape=np.ones(phases))
    assert np.mean(1.0 / first_round) <= np.mean(1.0 / equal) * (1.0 + 1e-5)  # rounded down
    largest = suprema.leakage_suprema(first_round, backward, forward).tpl.max()
    assert 0.99 * ALPHA < largest <= ALPHA


def test_a_cycle_of_as_many_phases_as_allowed_has_the_budgets_of_least_error(monkeypatch):
    cycle = tpl.Cycle([staying(0.8), staying(0.6)])
    monkeypatch.setattr("tplreport.reporting.allocation_schemes.MOST_FOR_LEAST_ERROR", 2)
    budgets = allocate("Algorithm 7 (any T)", ALPHA, (cycle, None), 4)
    least = tpl.allocate_by_upper_bound(ALPHA, cycle, None, shape="least error")
    np.testing.assert_array_equal(budgets, np.resize(rounded_down(least), 4))
