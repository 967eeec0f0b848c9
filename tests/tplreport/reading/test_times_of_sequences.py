"""Sequences that were read know when their states were: by the local clock, where there is one."""

from datetime import timedelta

import numpy as np
import pandas as pd
import pytest

import tplreport as tr
from tplreport.reading import observations, rows_by_user

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def times_of(sequences):
    """The time of each value, in a loop."""
    if sequences.times is not None:
        return pd.DatetimeIndex(sequences.times).tolist()
    times = []
    for start, length in zip(sequences.starts, sequences.lengths, strict=True):
        times += [pd.Timestamp(start) + k * sequences.step for k in range(length)]
    return times


def hourly(first, hours, zone=None):
    """A row each hour, of a user whose states are the hours of the local clock."""
    times = pd.date_range(first, periods=hours, freq="1h", tz=zone)
    return pd.DataFrame({"user": "a", "time": times, "state": times.hour})


@pytest.mark.parametrize("step", ["1h", None])
def test_naive_times_are_as_written(step):
    rows = hourly("2024-05-01T20:00", 30)
    found = tr.read_sequences(rows, step=step)
    assert found.times is None
    assert found.step == HOUR
    assert found.zone is None
    assert times_of(found) == rows["time"].tolist()
    assert found.phases(DAY).tolist() == rows["state"].tolist()
    assert "as written, without a zone" in found.reading.lines[1]


@pytest.mark.parametrize("first", ["2024-03-30T20:00", "2024-10-26T20:00", "2024-05-01T20:00"])
@pytest.mark.parametrize("step", ["1h", None])
def test_the_clock_of_a_zone_is_followed_over_its_changes(first, step):
    rows = hourly(first, 30, "Europe/Berlin")
    found = tr.read_sequences(rows, step=step)
    local = rows["time"].dt.tz_localize(None)
    assert times_of(found) == local.tolist()
    assert found.phases(DAY).tolist() == rows["state"].tolist()
    assert (found.step, found.zone) == (HOUR, "Europe/Berlin")
    assert "by the clock of Europe/Berlin" in found.reading.lines[1]
    has_change = first != "2024-05-01T20:00"
    assert (found.times is not None) == has_change


@pytest.mark.filterwarnings("ignore:.*(do not count|are held)")
def test_a_state_that_is_held_over_a_change_of_clocks_follows_the_zone():
    rows = hourly("2024-03-31T00:00", 2, "Europe/Berlin").iloc[[0]]
    last = rows.assign(time=rows["time"] + 5 * HOUR)
    found = tr.read_sequences(pd.concat([rows, last]), step="1h", max_gap="12h")
    assert [time.hour for time in times_of(found)] == [0, 1, 3, 4, 5, 6]


def test_offsets_of_texts_are_local_clocks(tmp_path):
    rows = hourly("2024-03-30T20:00", 30, "Europe/Berlin")
    expected = rows["time"].dt.tz_localize(None).tolist()
    file = tmp_path / "visits.csv"
    rows.assign(time=rows["time"].map(pd.Timestamp.isoformat)).to_csv(file, index=False)
    found = tr.read_sequences(file, step="1h")
    assert times_of(found) == expected
    assert found.phases(DAY).tolist() == rows["state"].tolist()
    assert "by local clocks, as their offsets from UTC say" in found.reading.lines[1]


def test_half_hours_from_utc_stay_in_the_hour_of_the_local_clock():
    rows = hourly("2024-05-01T20:00", 30, "Asia/Kolkata")
    rows["time"] += timedelta(minutes=30)
    found = tr.read_sequences(rows, step="1h")
    hours = [time.hour for time in times_of(found)]
    assert hours == found.phases(DAY).tolist()
    assert hours[0] == rows["time"][0].hour


@pytest.mark.filterwarnings("ignore:.*(do not count|are held)")
def test_days_are_those_of_the_local_clock():
    rows = hourly("2024-03-28T23:00", 100, "Europe/Berlin")
    found = tr.read_sequences(rows, step="1D", max_gap="1D")
    assert {time.hour for time in times_of(found)} == {0}
    assert times_of(found)[0] == pd.Timestamp("2024-03-29")


def test_seconds_are_utc():
    rows = pd.DataFrame({"user": 1, "time": np.arange(30) * 3600, "state": np.arange(30) % 24})
    found = tr.read_sequences(rows, step="1h")
    assert found.phases(DAY).tolist() == rows["state"].tolist()
    assert found.zone == "UTC"
    assert "in UTC, with second 0 at midnight" in found.reading.lines[1]
    assert tr.read_sequences(rows).times is None  # such numbers order the rows, no more


def test_rows_at_irregular_times_keep_the_time_of_each():
    minutes = [0, 7, 9, 100, 101]
    times = pd.Timestamp("2024-05-01T20:00") + pd.to_timedelta(minutes, unit="min")
    rows = pd.DataFrame({"user": [1, 1, 1, 1, 2], "time": times, "state": list("abcab")})
    found = tr.read_sequences(rows, max_gap="1h")
    assert times_of(found) == times.tolist()
    assert found.step is None
    assert found.starts is None
    assert found.lengths.tolist() == [3, 1, 1]
    with pytest.raises(ValueError, match="need sequences with one time step.*step= such as '1h'"):
        found.phases(DAY)


def test_rows_in_order_have_no_times():
    found = tr.read_sequences(pd.DataFrame({"user": [1, 1], "state": [0, 1]}), order="rows")
    assert found.times is found.starts is found.step is None
    assert found.reading.clock is None


@pytest.mark.filterwarnings("ignore:.*(do not count|are held)")
def test_many_users_in_a_temporary_file_keep_their_times(monkeypatch):
    monkeypatch.setattr(rows_by_user, "IN_MEMORY", 100)
    monkeypatch.setattr(rows_by_user, "PART", 50)
    rng = np.random.default_rng(3)
    rows = pd.DataFrame({"user": rng.integers(0, 20, 600), "state": rng.integers(0, 3, 600)})
    rows["time"] = pd.Timestamp("2024-03-29", tz="Europe/Berlin") + pd.to_timedelta(
        rng.choice(6000, 600, replace=False), unit="min"
    )
    found = tr.read_sequences(rows, step="20min", max_gap="2h")
    monkeypatch.undo()
    in_memory = tr.read_sequences(rows, step="20min", max_gap="2h")
    assert times_of(found) == times_of(in_memory)
    assert found.times is not None
    for user, sequence, time in zip(found.users, found, starts_of(found), strict=True):
        own = rows[(rows["user"] == user)].sort_values("time")
        upto = own[own["time"].dt.tz_localize(None) <= time]
        assert upto["state"].iloc[-1] == sequence[0]


def starts_of(sequences):
    times = times_of(sequences)
    return [times[offset] for offset in sequences.offsets[:-1]]


@pytest.mark.parametrize("zone", [None, "America/New_York"])
def test_fixed_steps_and_observed_sequences_keep_times(zone):
    rows = hourly("2024-05-01T20:00", 30, zone).rename(columns={"state": "cell"})
    local = rows["time"].dt.tz_localize(None).tolist()
    assert times_of(tr.fixed_steps(rows, "1h")) == local
    assert times_of(tr.observed_sequences(rows)) == local


def test_what_was_read_stays_with_the_sequences():
    found = tr.read_sequences(hourly("2024-05-01T20:00", 5), step="1h")
    assert isinstance(found, observations.Observed)
    assert found.reading.clock == "as written, without a zone"
