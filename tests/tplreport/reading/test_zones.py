"""Times by the clock of a zone that is named: what a file writes in UTC, or without a zone."""

import numpy as np
import pandas as pd
import pytest

import tplrepro as tpl
from tests.tplreport.reading.test_observations import listed
from tplreport import read_sequences, read_table
from tplreport.command import main

BERLIN = "Europe/Berlin"


def visits(times):
    return pd.DataFrame({"user": 1, "time": times, "state": [*"abab"]})


def in_utc(form):
    instants = pd.date_range("2024-07-01 22:00", periods=4, freq="1h", tz="UTC")
    if form == "seconds":
        return instants.as_unit("s").asi8
    if form == "texts":
        return instants.strftime("%Y-%m-%dT%H:%M:%SZ")
    if form == "offset":
        return instants.tz_convert("+05:30")
    return instants


@pytest.mark.parametrize("form", ["seconds", "texts", "offset", "stamps"])
def test_instants_are_shown_by_the_clock_of_the_zone(form):
    found = read_sequences(visits(in_utc(form)), step="1h", zone=BERLIN)
    assert found.starts.astype(str).tolist() == ["2024-07-02T00:00:00.000000"]
    assert found.zone == BERLIN
    assert f"by the clock of {BERLIN}" in found.reading.lines[1]
    assert listed(found) == [(1, [*"abab"])]


def test_times_without_an_offset_are_what_the_clock_shows():
    """Over a night in which clocks go ahead no hour is missing, and none is made up."""
    times = ["2024-03-31 00:00", "2024-03-31 01:00", "2024-03-31 03:00", "2024-03-31 04:00"]
    assert listed(read_sequences(visits(times), step="1h", zone=BERLIN)) == [(1, [*"abab"])]
    with pytest.warns(UserWarning, match="in a column with a zone, or zone= if it is one for all"):
        cut = read_sequences(visits(times), step="1h")
    assert listed(cut) == [(1, [*"ab"]), (1, [*"ab"])]
    times[1] = "2024-03-31 02:30"
    with pytest.raises(
        ValueError, match=f"clock of {BERLIN} leaves out an hour, found .* row 1 of"
    ):
        read_sequences(visits(times), step="1h", zone=BERLIN)


def test_the_first_of_two_hours_that_a_clock_repeats_counts():
    times = ["2024-10-27 01:00", "2024-10-27 02:00", "2024-10-27 03:00", "2024-10-27 04:00"]
    found = read_sequences(visits(times), step="1h", zone=BERLIN)
    assert listed(found) == [(1, [*"ab"]), (1, [*"ab"])]  # nothing is known of the second


@pytest.mark.parametrize(
    ("hour", "zone", "is_repeated"),
    [("02:30", BERLIN, True), ("02:30", None, True), ("03:30", BERLIN, False)],
)
def test_an_hour_that_the_clock_repeats_needs_offsets(tmp_path, capsys, hour, zone, is_repeated):
    """same_time= alone would drop one of the two hours."""
    path = tmp_path / "visits.csv"
    times = ["2024-10-27 01:30", *[f"2024-10-27 {hour}"] * 2, "2024-10-27 04:30"]
    visits(times).to_csv(path, index=False)
    words = ["report", str(path), "--alpha=1", "--horizon=2", "--draws=0"]
    if zone is not None:
        words.append(f"--zone={zone}")
    assert main(words) == 2
    said = capsys.readouterr().err
    assert "--same-time 'first', 'last', or 'rows'" in said
    hint = "if clocks went back in that night, times with their offset from UTC"
    assert (hint in said) == is_repeated
    offsets = ["+02:00", "+02:00", "+01:00", "+01:00"]
    with_offsets = visits([time + offset for time, offset in zip(times, offsets, strict=True)])
    if is_repeated:
        assert listed(read_sequences(with_offsets, step="1h", zone=zone))[0] == (1, [*"aba"])


def test_days_are_those_of_the_zone(tmp_path):
    """Late in the evening by UTC it is the next day in Berlin, whose state is that of the day
    before."""
    frame = visits(pd.date_range("2024-07-01 23:00", periods=4, freq="1D"))
    frame["time"] = frame["time"].astype(str) + "Z"
    frame.to_csv(tmp_path / "visits.csv", index=False)
    for zone, day in {None: "2024-07-02", "UTC": "2024-07-02", BERLIN: "2024-07-03"}.items():
        found = read_sequences(tmp_path / "visits.csv", step="1D", zone=zone)
        assert found.starts.astype(str).tolist() == [f"{day}T00:00:00.000000"]


def test_habits_follow_the_clock_of_the_zone(tmp_path, capsys):
    """People in New York whose times were written in UTC: nights are where they live."""
    asleep = [[0.98, 0.02], [0.05, 0.95]]
    habits = tpl.Cycle([asleep] * 7 + [[[0.4, 0.6], [0.6, 0.4]]] * 17, step="1h")
    rng = np.random.default_rng(0)
    there = pd.date_range("2024-01-08", periods=24 * 7, freq="1h", tz="America/New_York")
    walks = []
    for user in range(8):
        states = habits.sample(len(there), rng=rng)
        walks.append(pd.DataFrame({"user": user, "time": there.tz_convert("UTC"), "state": states}))
    path = tmp_path / "walks.csv"
    pd.concat(walks).to_csv(path, index=False)
    words = [str(path), "--step=1h", "--alpha=1", "--horizon=5", "--draws=0"]
    assert main(["report", *words, "--zone=America/New_York"]) in (0, 3)
    assert "follow the clock of America/New_York" in capsys.readouterr().out
    local = pd.concat(walks).assign(time=lambda frame: frame["time"].dt.tz_convert(there.tz))
    expected = read_sequences(local, step="1h")
    found = read_sequences(path, step="1h", zone="America/New_York")
    assert found.starts.tolist() == expected.starts.tolist()
    assert found.zone == expected.zone


@pytest.mark.parametrize(
    ("data", "words", "message"),
    [
        (visits(range(4)), {"zone": BERLIN}, "zone= needs times that are dates, found 0 in row 0"),
        (visits(in_utc("stamps")), {"zone": "Berlin"}, "name of a time zone, found 'Berlin'; give"),
        (
            visits(range(4)).drop(columns="time"),
            {"zone": BERLIN, "order": "rows"},
            "a table without times must be read without zone",
        ),
    ],
)
def test_a_zone_that_does_not_fit_is_refused(data, words, message):
    with pytest.raises(ValueError, match=message):
        read_table(data, **words)


def test_numbers_of_a_unit_and_days_of_a_spreadsheet():
    """Milliseconds since 1970 are instants, and days of a spreadsheet what a clock shows."""
    instants = pd.DatetimeIndex(in_utc("stamps")).as_unit("ms").asi8
    found = read_sequences(visits(instants), step="1h", zone=BERLIN, time_unit="ms")
    assert found.starts.astype(str).tolist() == ["2024-07-02T00:00:00.000000"]
    days = 45474.0 + np.arange(4) / 24  # from 2024-07-01 00:00 on
    shown = read_sequences(visits(days), step="1h", zone=BERLIN, time_unit="excel")
    assert shown.starts.astype(str).tolist() == ["2024-07-01T00:00:00.000000"]
