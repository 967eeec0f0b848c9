"""A time names one time point of its step, whenever it is read, or it is refused."""

from datetime import date, datetime

import numpy as np
import pandas as pd
import pytest

import tplreport as tr
from tplreport.publishing.clock import Clock, CycleOnClock

HOUR = "0 days 01:00:00"
DAY = "1 days 00:00:00"


def clock_from(time, step):
    return Clock(**Clock.starting(time, step))


@pytest.mark.parametrize(
    "time",
    [
        *("2024-05-01 08:00", "2024/05/01 08:00", "2024-05-01T08:00:00.0", "2024-05-01 08:00:00"),
        *(datetime(2024, 5, 1, 8), np.datetime64("2024-05-01T08"), pd.Timestamp(2024, 5, 1, 8)),
    ],
)
def test_one_time_may_be_written_in_several_ways(time):
    assert clock_from("2024-05-01 06:00", HOUR).positions([time]) == [2]


@pytest.mark.parametrize("time", ["2024-05-01", date(2024, 5, 1), np.datetime64("2024-05-01")])
def test_a_time_coarser_than_the_step_is_refused(time):
    assert clock_from("2024-04-30", DAY).positions([time]) == [1]
    with pytest.raises(ValueError, match="as fine as the step .*write it such as 2024-05-01 08:00"):
        clock_from("2024-04-30 00:00", HOUR).positions([time])


@pytest.mark.parametrize(
    ("step", "coarse", "fine"),
    [
        ("2h", "2024-05-01", "2024-05-01 08:00"),
        ("1s", "2024-05-01 08:00", "2024-05-01 08:00:00"),
        ("250ms", "2024-05-01 08:00:00", "2024-05-01 08:00:00.0"),
        ("100ms", "2024-05-01 08:00:00", "2024-05-01 08:00:00.0"),
        ("10ms", "2024-05-01 08:00:00.0", "2024-05-01 08:00:00.00"),
        ("1us", "2024-05-01 08:00:00.0", "2024-05-01 08:00:00.000000"),
        ("1ns", "2024-05-01 08:00:00.000000", "2024-05-01 08:00:00.000000000"),
    ],
)
def test_the_example_in_the_error_is_as_fine_as_the_step(step, coarse, fine):
    with pytest.raises(ValueError, match=f"write it such as {fine}$"):
        clock_from(coarse, step)
    assert clock_from(fine, step).positions([fine]) == [0]


#: What pandas reads as an instant, most of it as another one on another day.
VAGUE = ("10:00", "now", "today", "May", "Mon", "2024", "2024-05", "2024Q2", "2024-05-01 08")


@pytest.mark.parametrize(
    "time", [*VAGUE, "noon", "", "1 May 2024", "01.05.2024 08:00", "2024-05-01 08:00:00.1234567891"]
)
def test_a_text_whose_time_depends_on_the_day_of_reading_is_refused(time):
    with pytest.raises(ValueError, match="whole numbers or dates, found .*write dates in full"):
        clock_from(time, HOUR)
    with pytest.raises(ValueError, match="whole numbers or dates, found .*write dates in full"):
        clock_from("2024-05-01", DAY).positions([time])


@pytest.mark.parametrize(
    ("time", "message"),
    [
        (45413.5, "found 45413.5; .*: a spreadsheet shows its 45413.5 as 2024-05-01 12:00"),
        (np.float64(0), "found 0.0; write dates in full"),
        (45413, "needs a whole number as step if times are, found time 45413"),
        (np.int64(45413), "found time 45413 and step '1h'"),
        (True, "whole numbers or dates, found True"),
        (pd.Period("2024-05"), "whole numbers or dates, found Period"),
        (np.datetime64("2024-05"), "whole numbers or dates, found np.datetime64"),
        (b"2024-05-01 08:00", "whole numbers or dates, found b'"),
        (2**63, "whole numbers must be within 2..62, found 9223372036854775808"),
        (-(2**70), "whole numbers must be within 2..62"),
        ("99999999999999999999-01-01", "whole numbers or dates, found '99999999999999999999"),
        ("9999-01-01 00:00", "of the years 1678 to 2261, found 9999"),
        (datetime(1, 1, 1), "of the years 1678 to 2261"),
        ("2024-13-01 08:00", "dates of the calendar, found '2024-13-01 08:00'"),
        ("2024-02-30 08:00", "dates of the calendar"),
        *((time, "must not be missing, found NaT") for time in (None, np.nan, pd.NaT, pd.NA)),
    ],
)
def test_the_error_for_what_is_no_time_has_a_remedy(time, message):
    with pytest.raises(ValueError, match=message):
        clock_from(time, HOUR)


@pytest.mark.parametrize(
    "step",
    ["1", "1.5", 1.5, True, " 2 ", "", "nat", "1M", 2**63, "10000000000000D", "-1h", 0, None],
)
def test_a_step_without_a_unit_is_refused(step):
    with pytest.raises(ValueError, match="step must be .*; give such as 1 or '1h'"):
        Clock.checked_step(step)


@pytest.mark.parametrize("step", ["3600", " 1.5 ", ""])
def test_a_step_of_observations_without_a_unit_is_refused(step):
    """A number alone, as the command gives it, would be nanoseconds."""
    rows = pd.DataFrame({"user": 1, "time": pd.date_range("2024-05-01", periods=4), "state": 0})
    with pytest.raises(ValueError, match="step must be a positive duration with its unit, found"):
        tr.read_sequences(rows, step=step)


def test_the_error_for_a_gap_names_the_times_that_are_missing():
    clock = clock_from("2024-05-01", DAY)
    message = "2024-05-04 00:00:00 is next, not 2024-05-07 00:00:00: 3 missing; publish them, or "
    message += "skip from 2024-05-04 00:00:00 until 2024-05-06 00:00:00"
    with pytest.raises(ValueError, match=f"^{message}$"):
        clock.check_follow([6, 7], 3)
    clock.check_follow([3, 4], 3)


@pytest.mark.parametrize(
    ("positions", "message"),
    [
        ([0, 1, 4, 6], "found 4 after 1: 2 missing; add them, or publish those up to 1 alone, and "
         "then skip from 2 until 3 before the others"),
        ([0, 2, 2, 4], "found 2 after 0: 1 missing; .* skip from 1 until 1 before the others"),
        ([0, 1, 1, 4], "found 1 twice; leave one of them out"),
        ([0, 2, 1], "found 1 after 2; sort them"),
        ([3, 3, 1], "found 1 after 3; sort them"),
    ],
)  # fmt: skip
def test_times_that_do_not_follow_each_other_are_named_with_the_remedy_that_fits(
    positions, message
):
    clock = clock_from(0, 1)
    with pytest.raises(ValueError, match=f"^times must follow each other step by step, {message}$"):
        clock.check_follow(positions, 9)


def test_an_hour_that_comes_twice_may_be_one_that_clocks_repeat_and_a_gap_is_none():
    """Where the times have no zone."""
    clock = clock_from("2024-10-27 01:00", HOUR)
    for positions in ([0, 1, 1], [0, 2, 1]):
        with pytest.raises(ValueError, match="; an hour that clocks repeat needs its offset"):
            clock.check_follow(positions, 9)
    for other, positions in ((clock, [0, 2]), (clock_from("2024-10-27 01:00Z", HOUR), [1, 1])):
        with pytest.raises(ValueError, match="step by step, found 2024-10-27 0[23]:00:00") as said:
            other.check_follow(positions, 9)
        assert "clocks" not in str(said.value)


def test_numbers_far_from_each_other_do_not_overflow():
    assert clock_from(-(2**60), 1).positions([2**60]) == [2**61]
    with pytest.raises(ValueError, match="within 2..62 steps"):
        clock_from(1 - 2**62, 1).positions([2**62 - 1])
    assert clock_from("1700-01-01", DAY).positions(["2200-01-01"]) == [182_621]


#: Zones, and a day before each change of clocks; in the last two midnight is left out.
CHANGES = [
    ("Europe/Berlin", "2024-03-29"),
    ("Europe/Berlin", "2024-10-25"),
    ("America/New_York", "2024-03-08"),
    ("America/New_York", "2024-11-01"),
    ("Australia/Lord_Howe", "2024-04-05"),
    ("America/Sao_Paulo", "2018-11-02"),
    ("Africa/Cairo", "2024-04-24"),
]


@pytest.mark.parametrize(("zone", "day"), CHANGES)
def test_steps_of_days_and_hours_in_a_zone_continue_over_a_change_of_clocks(zone, day):
    days = pd.date_range(day, periods=6).tz_localize(zone, nonexistent="shift_forward")
    daily = clock_from(days[0], DAY)
    assert daily.positions(days) == [*range(6)]
    assert daily.index(range(6)).equals(days)
    hours = pd.date_range(days[0], days[-1], freq="h")
    hourly = clock_from(hours[0], HOUR)
    assert hourly.positions(hours) == [*range(len(hours))]
    assert hourly.index(range(len(hours))).equals(hours)
    with pytest.raises(ValueError, match="whole steps apart, found .*; round it to the step$"):
        daily.positions([days[1] + pd.Timedelta("1min")])


@pytest.mark.parametrize(("zone", "day"), CHANGES[:4])
def test_offsets_alone_count_elapsed_time_and_the_error_shows_the_way_out(zone, day):
    days = pd.date_range(day, periods=6, tz=zone)
    texts = days.astype(str)
    hours = pd.date_range(days[0], days[-1], freq="h")
    hourly = clock_from(str(hours[0]), HOUR)
    assert hourly.positions(hours.astype(str)) == [*range(len(hours))]
    with pytest.raises(ValueError, match="24 hours after .*tz='Europe/Berlin'.*, or without off"):
        clock_from(texts[0], DAY).positions(texts)
    local = days.tz_localize(None).astype(str)
    assert clock_from(local[0], DAY).positions(local) == [*range(6)]


@pytest.mark.parametrize(
    ("zone", "day"), [("America/Mexico_City", "2024-01-01"), ("Europe/Istanbul", "2018-01-01")]
)
def test_hours_have_phases_in_a_zone_whose_clocks_are_changed_no_more(zone, day):
    """They were, less than two years before, in both zones."""
    cycle = CycleOnClock("day", 0, [*range(24)])
    first = pd.Timestamp(f"{day} 05:00", tz=zone)
    assert Clock.starting(first, HOUR, cycle)["phase"] == 5
    with pytest.raises(ValueError, match="known for ever, .*, whose clocks are changed; give"):
        Clock.starting(first - pd.DateOffset(years=3), HOUR, cycle)


def test_a_publisher_publishes_local_days_over_a_change_of_clocks(tmp_path):
    days = pd.date_range("2024-03-29", periods=6, tz="Europe/Berlin")
    settings = {"backward": None, "forward": None, "alpha": 1.0, "sensitivity": 1}
    made = tr.Publisher(tmp_path / "days.sqlite", **settings, floor=0.05, step="1D")
    made.publish_table(pd.Series(range(6), days))
    assert made.to_frame().index.equals(days)
    with pytest.warns(UserWarning, match="was handed out before"):
        again = tr.Publisher(made.path).publish("2024-04-01 00:00+02:00", 3)
    assert again == made.to_frame()["count"].iloc[3]


def test_resume_refuses_a_date_without_a_time_on_a_clock_of_hours(tmp_path):
    settings = {"backward": None, "forward": None, "alpha": 1.0, "sensitivity": 1}
    made = tr.Publisher(tmp_path / "hours.sqlite", **settings, floor=0.01, step="1h")
    made.publish("2024-05-01 00:00", 1)
    made.backup(tmp_path / "copy.sqlite")
    copy = tr.Publisher(tmp_path / "copy.sqlite")
    for until in ("2024-05-01", "2024", "2024-05", "2024Q2", date(2024, 5, 1)):
        with pytest.raises(ValueError, match="such as 2024-05-01 08:00"):
            copy.resume(until)
    assert len(copy.resume("2024-05-01 23:00")) == 24
