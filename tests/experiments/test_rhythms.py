"""Simulated people whose habits follow the clock: their leakage, and what reports say about
them."""

import numpy as np
import pandas as pd
import pytest

import tplrepro as tpl
from experiments import rhythms
from experiments.advice import judging


def world_of(habits, first=0, kind=rhythms.NO_RHYTHM):
    of_user = np.arange(6) % len(habits)
    return rhythms.World(kind, habits, of_user, days=2, alpha=1.0, horizon=6, first=first)


def test_true_leakage_is_that_of_the_worst_user_from_the_first_hour_on():
    calm, lively = np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([[0.6, 0.4], [0.3, 0.7]])
    habit = np.array([calm] * 8 + [lively] * 16)
    other = np.array([lively] * 24)
    world = world_of([habit, other], first=30)
    budgets = np.linspace(0.1, 0.3, 6)
    cycle = tpl.Cycle(habit)
    laws = cycle.laws()
    backward = [tpl.TransitionMatrix(habit[hour]).reverse(laws[hour]) for hour in range(6, 11)]
    forward = [habit[hour] for hour in range(6, 11)]
    expected = tpl.temporal_privacy_leakage(budgets, backward, forward).tpl.max()
    assert world.tpl(budgets) == pytest.approx(expected, rel=1e-12)


def test_people_walk_by_the_matrix_of_the_hour():
    still = np.eye(2)
    change = np.array([[0.0, 1.0], [1.0, 0.0]])
    habit = np.array([still] * 6 + [change] * 17 + [np.full((2, 2), 0.5)])
    data = world_of([habit]).data(rng=np.random.default_rng(0))
    for path in data:
        moves = np.diff(path)
        assert not moves[:6].any()
        assert moves[6:23].all()
        assert not moves[24:30].any()
    assert set(data.phases(np.timedelta64(1, "D").item()).tolist()) == set(range(24))


@pytest.mark.parametrize(
    "kind",
    [
        *(pytest.param(kind, marks=pytest.mark.slow) for kind in rhythms.KINDS[:2]),
        *rhythms.KINDS[2:],
    ],
)
def test_plans_by_the_clock_keep_alpha(kind):
    """None that is recommended without a warning breaks its promise; of the first two kinds, every
    day that of another world below."""
    outcome = rhythms.simulate(kind, rng=np.random.default_rng(6))
    judgement = outcome.judgement
    assert not judgement.is_broken
    assert judgement.composed or judgement.relied_on  # of few odd users, plans are for these, too
    assert judgement.error <= judgement.error_of_shares


def test_hours_that_users_may_keep_are_planned_for_before_they_are_found():
    """A plan for the hours of all would leak more than α about those who rise two hours later."""
    rng = np.random.default_rng(np.random.SeedSequence(2061, spawn_key=(482,)))
    judgement = rhythms.simulate(rhythms.SHIFTED, rng=rng).judgement
    assert judgement.model_tpl > judgement.alpha
    assert not judgement.is_unwarned
    assert judgement.error < judgement.error_of_shares / 2


def test_a_row_for_each_world_in_turn():
    table = rhythms.judge_rhythms(2, rng=np.random.default_rng(1))
    assert table["kind"].tolist() == list(rhythms.KINDS[:2])
    assert table["is_broken"].dtype == bool
    assert not table["is_broken"].any()
    assert (table["composed"] | ~table["doubted"]).all()
    assert (table["error"] <= table["error_of_shares"]).all()


def test_rhythms_found_and_plans_by_one_chain_are_counted():
    outcomes = pd.DataFrame(
        {
            "kind": ["b", "a", "b", "b"],
            "alpha": 1.0,
            "finds_rhythm": [True, False, True, False],
            "doubted": [False, False, True, True],
            "withheld": False,
            "is_unwarned": [True, False, False, False],
            "model_tpl": [1.1, 0.5, 1.2, 0.8],
            "pooled_tpl": [1.2, 0.5, 1.3, 1.4],
            "error": [1.0, 4.0, 8.0, np.nan],
            "error_of_shares": 10.0,
        }
    )
    table = rhythms.summarize(outcomes)
    assert table.index.tolist() == ["b", "a"]
    assert table[rhythms.RHYTHM_FOUND].tolist() == [2, 0]
    assert table[rhythms.ONE_CHAIN_BREAKS].tolist() == [3, 0]
    assert table[judging.MODEL_BREAKS].tolist() == [2, 0]
    assert table[judging.SHARE_OF_ERROR].tolist() == pytest.approx([0.45, 0.4])
