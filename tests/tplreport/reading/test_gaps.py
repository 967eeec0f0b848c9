"""Rows that are steps lie one step apart, or the reader says so: a chain of rows at irregular times
is not that of releases at regular ones."""

import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from tests.tplreport.reading.test_observations import listed
from tplreport import read_sequences
from tplreport.command import main
from tplreport.reading.observations import _place_of_block_row
from tplreport.reading.time_steps import fitting_step

HOUR = pd.Timedelta("1h")


def visits(gaps, unit="h", users=4, states="abbacab"):
    """Rows of users with these gaps between them; times are whole numbers without a unit."""
    times = np.cumsum([0, *gaps])
    if unit:
        times = pd.Timestamp("2024-02-26T08:00") + pd.to_timedelta(times, unit=unit)
    own = pd.DataFrame(
        {"time": times, "state": [states[k % len(states)] for k in range(len(times))]}
    )
    frames = [own.assign(user=f"u{k}") for k in range(users)]
    return pd.concat(frames, ignore_index=True)


def thinned(share, seed=3):
    """An hourly chain of 20 users, seen at a share of its hours."""
    rng = np.random.default_rng(seed)
    gaps = rng.geometric(share, 20 * 60)
    return pd.concat(
        [visits(own, users=1).assign(user=k) for k, own in enumerate(gaps.reshape(20, 60))]
    )


@pytest.mark.parametrize(
    ("rows", "step"),
    [
        (visits([1] * 9), "1 hour"),
        (visits([24] * 9), "1 day"),
        (visits([24 * days for days in (31, 30, 31, 30, 31, 31, 30, 28)]), "30 days"),
        (visits([1] * 300 + [2], users=1), "1 hour"),
        (visits([1] * 9, unit=""), "1"),
        (visits([7] * 9, unit=""), "7"),
    ],
)
def test_regular_rows_are_steps_whose_length_is_named(rows, step):
    found = read_sequences(rows)
    assert found.lengths.max() == len(rows) // rows["user"].nunique()
    assert f"each row is a step, of {step}" in found.reading.lines[1]


@pytest.mark.parametrize(
    ("rows", "step"),
    [
        (thinned(0.25), "1h"),
        (visits([2, 2, 12_000, 2, 2, 300]), "2h"),
        (visits([2, 2, 2, 5], unit=""), "2"),
        (visits([1, 1, 1, 1, 100], unit=""), "1"),
        (visits([24] * 4 + [72] + [24] * 4 + [72]), "1D"),
        (visits([61, 340, 95, 610, 77, 4001], unit="min"), "1h"),
    ],
)
def test_irregular_rows_are_refused_with_a_step_that_fits(tmp_path, capsys, rows, step):
    path = tmp_path / "visits.csv"
    rows.to_csv(path, index=False)
    message = (
        rf"one step apart, found gaps of .* before line \d+ of .*; give step='?{step}'?, which"
        " fits, .*max_gap=.*order='times' .order='rows'"
    )
    with pytest.raises(ValueError, match=message):
        read_sequences(path)
    assert main(["report", str(path), "--alpha", "1", "--horizon", "4", "--draws", "0"]) == 2
    said = capsys.readouterr().err
    assert "--step " in said
    assert "--max-gap" in said
    assert "--order 'times' (--order 'rows'" in said


def test_each_observation_is_a_step_where_the_order_is_to_count():
    rows = thinned(0.25)
    shuffled = rows.sample(frac=1, random_state=1)
    found = read_sequences(shuffled, order="times")
    in_rows = read_sequences(rows.drop(columns="time"), order="rows")
    assert sorted(listed(found)) == sorted(listed(in_rows))
    assert "each row is a step, of any length" in found.reading.lines[1]
    with pytest.raises(ValueError, match="order='times' must be read without step, found step="):
        read_sequences(rows, order="times", step="1h")


def test_pauses_may_end_sequences_of_regular_rows():
    rows = visits([1] * 8 + [16] + [1] * 8 + [40] + [1] * 8)
    with pytest.raises(ValueError, match="found gaps of 1 hour to 1.7 days"):
        read_sequences(rows)
    found = read_sequences(rows, max_gap="2h")
    assert found.lengths.tolist() == [9] * 12
    with pytest.raises(ValueError, match="found gaps of 1 hour to 16 hours"):
        read_sequences(rows, max_gap="20h")


@pytest.mark.parametrize("unit", [None, "s", "min"])
def test_who_changes_no_more_stays_until_the_last_row_of_all(unit):
    """Without that, long stays would be left out, and plans would leak more than they say."""
    rng = np.random.default_rng(6)
    hours = np.arange(300)
    frames = []
    for user in range(60):
        states = (rng.random(300) < 0.02).cumsum() % 2
        is_change = np.append(True, np.diff(states) != 0)
        rows = {"user": user, "time": hours[is_change], "state": states[is_change]}
        frames.append(pd.DataFrame(rows))
    changes = pd.concat(frames)
    options = {"step": "1h"}
    if unit is None:
        changes["time"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(changes["time"], unit="h")
    else:
        changes["time"] *= {"s": 3600, "min": 60}[unit]
        options["time_unit"] = unit
    with pytest.warns(UserWarning, match="the last one of a user until the last of all"):
        read = read_sequences(changes, **options)
    before, after = read.transitions()
    assert read.n_users == 60
    assert (before == after).mean() == pytest.approx(0.98, abs=0.003)


@pytest.mark.parametrize(("rows", "is_noted"), [(50, False), (51, True)])
def test_fifty_changes_show_that_rows_stand_at_changes_only(rows, is_noted):
    gaps = np.random.default_rng(0).integers(1, 30, rows - 1)
    with pytest.raises(ValueError, match="rows that are steps must lie one step apart") as refused:
        read_sequences(visits(gaps, users=1, states="ab"))
    assert ("as if rows stood at changes only" in str(refused.value)) == is_noted


@pytest.mark.parametrize(
    ("sizes", "are_seconds", "step"),
    [
        ([0.5, 0.5, 1.5], False, 0.5),  # what half of the gaps are
        ([2.0, 3.0, 3.0, 5.0, 7.0], False, 2.4),  # nothing fits: what a tenth are below
        ([1800.0, 3600.0, 5400.0, 9000.0], True, 1800),  # the longest usual one that divides them
    ],
)
def test_the_step_that_is_offered_fits_the_gaps(sizes, are_seconds, step):
    assert fitting_step(np.array(sizes), are_seconds) == pytest.approx(step)


def test_rows_at_changes_hold_until_the_next_one():
    """A walk of hours, of which only those are kept in which the state is another one."""
    rng = np.random.default_rng(5)
    frames = []
    for user in range(8):
        states = (rng.random(200) < 0.2).cumsum() % 3
        hours = pd.date_range("2024-01-01", periods=200, freq="h")
        frames.append(pd.DataFrame({"user": user, "time": hours, "state": states}))
    whole = pd.concat(frames)
    is_change = whole.groupby("user")["state"].diff().fillna(1) != 0
    changes = whole[is_change]
    with pytest.raises(ValueError, match="no state that follows itself, as if .* changes only"):
        read_sequences(changes)
    with pytest.warns(UserWarning, match="no state of .* follows itself.*each state holds until"):
        held = read_sequences(changes, step="1h")
    for (_, own), (_, expected) in zip(listed(held), listed(read_sequences(whole)), strict=True):
        assert own == expected[: len(own)]
    lengths = [len(own) for _, own in listed(held)]
    assert max(lengths) == 200  # the last row of all
    assert len(set(lengths)) == 1
    with pytest.warns(UserWarning, match="are held from an earlier step, for up to max_gap='2h'"):
        assert len(read_sequences(changes, step="1h", max_gap="2h")) > 8


def test_long_gaps_among_regular_ones_are_counted():
    days = [*range(200), *range(210, 410)]
    times = pd.Timestamp("2024-05-01") + pd.to_timedelta(days, unit="D")
    frame = pd.DataFrame({"user": 1, "time": times, "state": [*"aabb"] * 100})
    with warnings.catch_warnings(action="ignore"):
        said = str(read_sequences(frame))
        without = str(read_sequences(frame[:200]))
    assert "1 day (but 1 of 399, up to 11 days: give step= to end sequences there)" in said
    assert "(but" not in without


@pytest.mark.parametrize(
    ("rows", "step"),
    [
        (visits([1], users=1), "1 hour (1 gap: too few to judge whether"),
        (visits([24, 24, 24], users=1), "1 day (3 gaps: too few to judge whether"),
        (visits([1, 1, 99], unit="", users=1), "1 to 99 (3 gaps: too few to judge whether"),
        (visits([99, 1], unit="", users=1), "1 to 99 (2 gaps: too few to judge whether"),
        (visits([1, 87_660, 3], users=1), "1 hour to 3,652 days (3 gaps: too few to judge"),
    ],
)
def test_of_too_few_gaps_to_judge_the_shortest_and_the_longest_are_named(rows, step):
    found = read_sequences(rows)
    assert found.lengths.tolist() == [len(rows)]
    assert f"each row is a step, of {step}" in found.reading.lines[1]


def test_rows_count_in_order_although_two_columns_may_be_their_times():
    rows = [[1, 2, 9, "a"], [1, 1, 8, "b"]]
    frame = pd.DataFrame(rows, columns=["user", "time", "time", "state"])
    with warnings.catch_warnings(action="error"):
        assert listed(read_sequences(frame, order="rows")) == [(1, ["a", "b"])]


def test_a_row_of_a_later_block_has_its_place_in_the_table():
    table = SimpleNamespace(place=lambda row: f"row {row}")
    assert _place_of_block_row(table, 10, 3) == "row 13"
