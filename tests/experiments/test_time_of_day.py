"""Rhythms and plans of explore/time_of_day, against definitions."""

import numpy as np
import pytest

import tplrepro as tpl
from experiments import time_of_day

RHYTHMS = time_of_day.rhythms()
BY_CYCLE = (time_of_day.EQUAL, time_of_day.LEAST_FOR_EVER, time_of_day.LEAST)


@pytest.mark.parametrize("name", RHYTHMS)
def test_a_day_has_24_hours_and_the_pooled_matrix_its_mean_law(name):
    habits = RHYTHMS[name]
    assert habits.period == "day"
    assert len({matrix.toarray().tobytes() for matrix in habits}) == (24 if "24" in name else 2)
    matrix = time_of_day.pooled(habits)
    np.testing.assert_allclose(matrix.stationary(), habits.laws().mean(axis=0), rtol=1e-9)
    # Steps of all hours together, counted backwards, are those of the reversed matrix.
    steps = sum(
        law[:, None] * one.toarray() for law, one in zip(habits.laws(), habits, strict=True)
    )
    backward = steps.T / steps.sum(axis=0)[:, None]
    np.testing.assert_allclose(matrix.reverse().toarray(), backward, rtol=1e-9)


def test_no_hour_loses_more_than_the_largest_loss():
    habits = RHYTHMS["commuter, 24 matrices"]
    levels = np.linspace(0.0, 4.0, 9)
    of_hours = [tpl.PrivacyLossFunction(matrix)(levels) for matrix in habits]
    largest = time_of_day.largest_loss(habits)(levels)
    np.testing.assert_allclose(largest, np.max(of_hours, axis=0), rtol=1e-12)


def test_only_plans_of_the_cycle_keep_what_they_promise_at_little_error():
    habits = RHYTHMS["two states, .95 and .75"]
    judged = time_of_day.judged(time_of_day.plans(habits, 1.0, 30), habits).set_index("plan")
    assert (judged["exact TPL"] <= judged["TPL"] * (1 + 1e-12)).all()
    for plan in (time_of_day.POOLED_7, time_of_day.POOLED_8):
        assert judged.loc[plan, "exact TPL"] > 1.5
    for plan in BY_CYCLE:
        assert judged.loc[plan, "TPL"] <= 1.0
        assert judged.loc[plan, "mean error"] < judged.loc[time_of_day.LARGEST_OF_ALL, "mean error"]
    assert judged["mean error"].idxmax() == time_of_day.COMPOSED
    assert judged.loc[time_of_day.COMPOSED, "mean error"] == pytest.approx(60.0)


def test_what_one_matrix_says_is_below_what_the_worst_mechanism_attains():
    suprema = time_of_day.suprema(RHYTHMS["two states, .98 and .85"], 0.1)
    pooled, exact, cycle, largest = suprema.values()
    assert 1.3 * pooled < exact <= cycle < 0.5 * largest
    assert exact == pytest.approx(cycle, rel=1e-2)


def test_equal_leakage_is_impossible_for_the_commuter_alone():
    warned = {
        name: time_of_day.equal_leakage(habits, 1.0, 30).warning for name, habits in RHYTHMS.items()
    }
    assert [name for name, warning in warned.items() if warning] == ["commuter, 24 matrices"]


def test_the_start_of_the_habit_bounds_no_other():
    begun = time_of_day.known_start([[0.9999, 0.0001], [0.5, 0.5]], [0.5, 0.5], 0.1, 1.0, 40)
    assert begun.suprema["habit"] == pytest.approx(0.211, abs=5e-4)
    assert begun.exact[7] == pytest.approx(0.678, abs=5e-4)
    assert begun.suprema["habit"] < begun.exact.max() <= begun.suprema["known"]
    assert begun.suprema["known"] < begun.suprema["any"]
    assert begun.broken > 2.0
    # Once the start is forgotten, that of the habit is exact again.
    assert begun.exact[-1] == pytest.approx(begun.habit[-1], rel=1e-5)


@pytest.mark.parametrize("name", ["geolife", "gowalla"])
def test_stand_ins_are_read_by_their_own_clock(name, monkeypatch, tmp_path):
    monkeypatch.setenv("TPLREPRO_DATA", str(tmp_path))
    monkeypatch.setenv("TPLREPRO_CACHE", str(tmp_path))
    cut = time_of_day.Cut.parsed("4km/1h/3h")
    assert cut.name == "4 km, 1h, held for 3h"
    found = time_of_day.recorded_rhythm(name, cut, {"n_users": 6, "seed": 1}, 0.1)
    zone = {"geolife": "Asia/Shanghai", "gowalla": "UTC"}[name]
    assert found.data.synthetic
    assert found.rhythm.sequences.zone == zone
    numbers = found.numbers()
    assert numbers["steps"] == found.rhythm.sequences.n_transitions
    assert max(found.gains()["gain"]) == numbers["best"][0]
    assert found.summary()["states"] == numbers["states"]
