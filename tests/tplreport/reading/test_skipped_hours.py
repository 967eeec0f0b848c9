"""The hour that clocks leave out in spring, in times with and without a zone."""

import warnings

import numpy as np
import pandas as pd
import pytest

from tests.tplreport.reading.test_observations import listed
from tplreport import read_sequences
from tplreport.command import main
from tplreport.reading import rows_by_user
from tplreport.reading.skipped_hours import SkippedHours, left_out_hours

#: A zone -> the evening before, and the hour that is left out.
NIGHTS = {
    "Europe/Berlin": ("2024-03-30 20:00", "2024-03-31 02:00"),
    "Europe/London": ("2024-03-30 20:00", "2024-03-31 01:00"),
    "America/Los_Angeles": ("2023-03-11 20:00", "2023-03-12 02:00"),
    "Australia/Melbourne": ("2023-09-30 20:00", "2023-10-01 02:00"),
}


def night_in(zone, frequency="1h", n_users=3):
    """Rows of several users through the night in which clocks are put forward."""
    evening, _ = NIGHTS[zone]
    times = pd.date_range(evening, periods=16, freq=frequency, tz=zone)
    rows = [(user, time, "ab"[k % 2]) for user in range(n_users) for k, time in enumerate(times)]
    return pd.DataFrame(rows, columns=["user", "time", "state"])


@pytest.mark.parametrize("zone", NIGHTS)
@pytest.mark.parametrize("frequency", ["1h", "30min"])
def test_steps_are_of_equal_length_where_times_have_a_zone(tmp_path, zone, frequency):
    rows = night_in(zone, frequency)
    rows.to_csv(tmp_path / "offsets.csv", index=False)
    with warnings.catch_warnings(action="error"):
        for data in (rows, tmp_path / "offsets.csv"):
            found = read_sequences(data, step=frequency)
            assert listed(found) == [(user, list("ab") * 8) for user in range(3)]
            assert "which no row has" not in str(found)


@pytest.mark.filterwarnings("ignore:.* are held from an earlier step")
@pytest.mark.parametrize("zone", NIGHTS)
def test_sequences_that_clocks_cut_are_counted_where_times_have_none(monkeypatch, zone):
    monkeypatch.setattr(rows_by_user, "PART", 1)  # a user at a time
    _, hour = NIGHTS[zone]
    rows = night_in(zone)
    rows["time"] = rows["time"].dt.tz_localize(None)
    with pytest.warns(UserWarning, match=f"3 sequences are cut at {hour}, which no row has"):
        found = read_sequences(rows, step="1h")
    assert len(found) == 6
    assert f"3 sequences are cut at {hour}, which no row has" in str(found)
    with pytest.warns(UserWarning, match=f"3 states are held at {hour}, which no row has"):
        found = read_sequences(rows, step="1h", max_gap="2h")
    assert found.lengths.tolist() == [17] * 3


@pytest.mark.parametrize(("frequency", "minutes"), [("1h", 30), ("1h", 1), ("30min", 10)])
def test_sequences_are_counted_where_rows_are_off_the_full_step(frequency, minutes):
    """Such a row counts at the next full step, an hour that clocks leave out or not."""
    rows = night_in("Europe/Berlin", frequency)
    rows["time"] = rows["time"].dt.tz_localize(None) + pd.Timedelta(minutes=minutes)
    with pytest.warns(UserWarning, match="3 sequences are cut at 2024-03-31 02:00, which no row"):
        found = read_sequences(rows, step=frequency)
    assert len(found) == 6


@pytest.mark.filterwarnings("default:.* are cut at")
def test_the_command_says_it(tmp_path, capsys):
    rows = night_in("Europe/Berlin")
    rows["time"] = rows["time"].dt.tz_localize(None)
    rows.to_csv(tmp_path / "night.csv", index=False)
    options = ["--alpha", "1", "--horizon", "4", "--draws", "0", "--step", "1h"]
    main(["report", str(tmp_path / "night.csv"), *options])
    found = capsys.readouterr()
    said = "3 sequences are cut at 2024-03-31 02:00, which no row has"
    assert said in found.err
    assert said in found.out


def test_an_hour_with_a_row_is_none_that_clocks_leave_out():
    utc = pd.date_range("2024-03-30 20:00", periods=16, freq="1h")
    rows = pd.DataFrame({"user": 1, "time": utc, "state": list("ab") * 8})
    gap = rows.drop(index=6).assign(user=2)
    others = pd.concat([rows, gap])
    with warnings.catch_warnings(action="error"):
        assert len(read_sequences(others, step="1h")) == 3
        no_clock_does = read_sequences(rows.drop(index=8), step="1h")  # at 04:00
        assert len(no_clock_does) == 2


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (["2024-03-31T01", "2024-03-31T03"], "1 sequence is cut at 2024-03-31 02:00, which no row"),
        (["2024-03-30T22", "2024-03-31T03"], ""),
        (["2024-03-31T01", "2024-03-31T04"], ""),
    ],
)
def test_a_longer_pause_at_night_is_no_change_of_clocks(rows, said):
    cuts = np.array(["2024-03-31T02"], "datetime64[h]")
    noted = SkippedHours()
    noted.add(cuts, cuts[:0], np.array(rows, "datetime64[h]"))
    assert str(noted).startswith(said)
    assert bool(str(noted)) == bool(said)


@pytest.mark.parametrize(("first", "last"), [("2024-03-12", "2024-03-31"), ("2022-12-31", "2024")])
def test_hours_are_those_of_the_years_of_both_times(first, last):
    hours = left_out_hours(np.datetime64(first), np.datetime64(last))
    years = {int(str(hour)[:4]) for hour in hours}
    assert years == set(range(int(first[:4]), int(last[:4]) + 1))
