"""Files as strangers type them, which were read in silence as something else."""

import os
import re
import threading
import warnings

import numpy as np
import pandas as pd
import pyarrow.feather
import pytest

from tests.tplreport.reading.test_observations import listed
from tplreport import DataFormatError, read_sequences
from tplreport.reading.matrices import parse_releases

RNG = np.random.default_rng(4)
HOURS = pd.DataFrame(
    {
        "user": np.repeat(["u1", "u2", "u3"], 20),
        "time": [*pd.date_range("2024-03-04 08:00", periods=20, freq="h")] * 3,
        "state": RNG.choice([*"abc"], 60),
    }
)
SEQUENCES = [(user, own["state"].tolist()) for user, own in HOURS.groupby("user")]


def test_a_column_is_one_thing():
    message = "a column must be one thing, found 'state' for user and state; name another"
    with pytest.raises(ValueError, match=message):
        read_sequences(HOURS, user="state", state="state")


@pytest.mark.parametrize(
    ("names", "difference"),
    [
        (["Home", "home"], "case alone, such as 'Home' and 'home'"),
        (["caf\u00e9", "cafe\u0301"], ".* signs that look alike or that nobody"),
        (["home", "home\u200b"], ".* signs that look alike or that nobody"),
        (["at  home", "at home"], "blanks, a # before it, or"),
        (["#home", "home"], "blanks, a # before it, or"),
    ],
)
def test_states_that_nobody_tells_apart_are_warned_of(names, difference):
    rows = HOURS.assign(state=names * 30)
    with pytest.warns(UserWarning, match=f"1 state of .* differs from another one by {difference}"):
        assert read_sequences(rows).labels.tolist() == sorted(names)
    with pytest.warns(UserWarning, match=f"1 user of .* differs from another one by {difference}"):
        read_sequences(HOURS.assign(user=np.repeat(names, 30)), order="rows", state="time")


@pytest.mark.parametrize("digits", [6, 10])
def test_days_of_a_spreadsheet_with_few_digits_are_whole_seconds(tmp_path, digits):
    serial = (HOURS["time"] - pd.Timestamp("1899-12-30")) / pd.Timedelta("1D")
    rows = HOURS.assign(time=serial.map(f"{{:.{digits}f}}".format))
    rows.to_csv(tmp_path / "serial.csv", index=False)
    found = read_sequences(tmp_path / "serial.csv", step="1h", time_unit="excel")
    assert listed(found) == SEQUENCES
    hours = HOURS.assign(time=[f"{k / 3:.5f}" for k in range(20)] * 3)
    assert listed(read_sequences(hours, step="20min", time_unit="h")) == SEQUENCES


@pytest.mark.parametrize("step", [None, 30, "30"])
def test_times_of_day_without_a_colon_are_no_numbers(step):
    clocks = [f"{8 + k // 2:02}{30 * (k % 2):02}" for k in range(20)]
    for times in (clocks, [*map(int, clocks)]):
        with pytest.raises(ValueError, match="times? of day such as 0830.*write .* as 08:30, with"):
            read_sequences(HOURS.assign(time=times * 3), step=step)
    minutes = HOURS.assign(time=[30 * k for k in range(20)] * 3)
    assert listed(read_sequences(minutes, step=step)) == SEQUENCES


def test_measured_numbers_may_have_decimal_commas(tmp_path):
    degrees = RNG.normal(20, 5, 60).round(1)
    rows = HOURS.assign(state=degrees)
    rows.to_csv(tmp_path / "commas.csv", index=False, sep=";", decimal=",")
    with pytest.warns(UserWarning, match="count as labels; give bins=, such as 5, if they are"):
        read_sequences(tmp_path / "commas.csv")
    assert listed(read_sequences(tmp_path / "commas.csv", bins=3)) == listed(
        read_sequences(rows, bins=3)
    )
    thousands = HOURS.assign(state=[f"{k},000" for k in range(60)])
    with pytest.raises(ValueError, match="of numbers, found 3 of states such as '0,000'; change"):
        read_sequences(thousands, bins=3)
    with pytest.raises(ValueError, match="of numbers, found 3 of states such as '[abc]'; change"):
        read_sequences(HOURS, bins=3)


@pytest.mark.parametrize("kind", ["stamps", "texts", "numbers"])
def test_rows_that_count_in_the_order_of_the_file_are_in_order_of_time(kind):
    rows = HOURS[::-1]
    if kind == "texts":
        rows = rows.assign(time=rows["time"].astype(str))
    elif kind == "numbers":
        rows = rows.assign(time=range(60, 0, -1))
    with pytest.warns(UserWarning, match="the column 'time' goes back from one to the next of a"):
        read_sequences(rows, order="rows")
    by_time = rows.sort_values("time", kind="stable")
    expected = sorted(own for _, own in SEQUENCES)
    assert sorted(own for _, own in listed(read_sequences(by_time, order="rows"))) == expected
    read_sequences(rows.rename(columns={"time": "note"}), order="rows")
    read_sequences(rows, order="rows", state="time")
    at_one_time = pd.DataFrame({"user": 1, "time": ["2024-05-01 08:00"] * 2, "state": ["a", "b"]})
    assert listed(read_sequences(at_one_time, order="rows")) == [(1, ["a", "b"])]


def test_one_column_is_named_where_several_are_given():
    with pytest.raises(
        ValueError, match=r"user must be the name .* \['user', 'a'\]; give its name$"
    ):
        read_sequences(HOURS, user=["user", "a"])
    with pytest.raises(ValueError, match="give its name, or all states .* state='first..last'$"):
        read_sequences(HOURS, state=["state", "a"])


def test_no_thread_reads_ahead_of_a_file_that_was_refused(tmp_path):
    """While the error is kept, and with it what failed; a block that is being made is finished."""
    (tmp_path / "visits.csv").write_text("user,time,state\na,2024-05-01,x\na,soon,y\n")
    before = set(threading.enumerate())
    with pytest.raises(ValueError) as refused:
        read_sequences(tmp_path / "visits.csv")
    for thread in set(threading.enumerate()) - before:
        thread.join(60.0)
    assert set(threading.enumerate()) == before
    assert "found 'soon'" in str(refused.value)


@pytest.mark.parametrize("content", ["", "\n", " \n\n \n"])
def test_a_file_of_empty_lines_is_empty(content, tmp_path):
    (tmp_path / "visits.csv").write_text(content)
    with pytest.raises(ValueError, match="found an empty file; unpack or export it again"):
        read_sequences(tmp_path / "visits.csv")


def test_the_order_of_the_file_is_judged_for_the_users_that_are_read():
    rows = HOURS[::-1].reset_index(drop=True)
    rows.insert(0, "id", range(len(rows)))  # a usual name of users, too, but not the best one
    with pytest.warns(UserWarning, match="the column 'time' goes back from one to the next of a"):
        read_sequences(rows, order="rows")
    by_user = HOURS.sort_values(["user", "time"], kind="stable")
    read_sequences(by_user, order="rows")
    with pytest.warns(UserWarning, match="the column 'time' goes back from one to the next of a"):
        read_sequences(by_user, order="rows", user="none")


def test_gaps_that_are_longer_than_the_usual_one_are_said():
    times = [*pd.date_range("2024-03-04", periods=250, freq="h")]
    times[-1] += pd.Timedelta("9D")
    rows = pd.DataFrame({"user": 1, "time": times, "state": [*"ab"] * 125})
    said = "each row is a step, of 1 hour (but 1 of 249, up to 9 days: give step= to end"
    assert said in str(read_sequences(rows))


def test_a_broken_feather_file_is_called_so(tmp_path):
    path = tmp_path / "rows.feather"
    pyarrow.feather.write_feather(pd.concat([HOURS] * 50), str(path), compression="lz4")
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 30] = b"\xff" * 30
    path.write_bytes(content)
    with pytest.raises(ValueError, match="there must be a whole Feather file, found a broken"):
        read_sequences(path)


@pytest.mark.parametrize("heading", ["time", "day", "release", "timestamp", "", "Step"])
@pytest.mark.parametrize(
    ("times", "found"),
    [
        ([1, 3, 2], "found '2' in line 4 after '3'"),
        ([1, 2, 4], "found '4' in line 4 after '2'"),
        ([3, 2, 1], None),
        ([5, 5, 5], "found '5' in line 3 after '5'"),
        (["2024-01-01", "2024-01-03", "2024-01-02"], "found '2024-01-02' in line 4 after"),
    ],
)
def test_budgets_stand_in_the_order_of_their_times_whatever_the_heading(heading, times, found):
    budgets = [0.1, 0.2, 0.3]
    lines = [f"{time},{one}" for time, one in zip(times, budgets, strict=True)]
    with pytest.raises(ValueError, match=f"one after the other, {found or 'found'}"):
        parse_releases("\n".join([f"{heading},epsilon", *lines])).column("epsilon")
    for sound in ([1, 2, 3], [0, 8, 16], ["2024-01-01", "2024-01-02", "2024-02-01"], [*"xay"]):
        lines = [f"{time},{one}" for time, one in zip(sound, budgets, strict=True)]
        table = "\n".join([f"{heading},epsilon", *lines])
        assert parse_releases(table).column("epsilon").tolist() == budgets


def test_infinite_times_are_an_error():
    with pytest.raises(ValueError, match="times must be finite numbers, found inf in row 3 of the"):
        read_sequences(HOURS.assign(time=[1.0, 2.0, 3.0, np.inf, *range(4, 60)]))


@pytest.mark.parametrize(("form", "frequency"), [("%Y%m%d", "D"), ("%Y%m", "MS")])
def test_irregular_numbers_that_are_dates_are_called_so(form, frequency):
    days = pd.date_range("2024-01-20", periods=20, freq=frequency).strftime(form).astype(int)
    rows = HOURS.assign(time=[*days] * 3)
    with pytest.raises(
        ValueError, match=f"were dates such as {days[0]}; give time_format='{form}'"
    ):
        read_sequences(rows)
    assert listed(read_sequences(rows, time_format=form)) == SEQUENCES


def test_dates_with_two_digits_of_a_year_have_a_format():
    rows = HOURS.assign(time=HOURS["time"].dt.strftime("%y-%m-%d %H:%M"))
    with pytest.raises(ValueError, match="give such as time_format=.*'%y-%m-%d %H:%M'"):
        read_sequences(rows)


USERS_IN_ROWS = "user,time,state\nx,1,a\nx,2,b\ny,1,a\n"


@pytest.mark.parametrize("order", [("a.csv", "b.csv"), ("b.csv", "a.csv")])
def test_a_file_whose_users_have_no_usual_name_is_no_user_beside_files_with_users(tmp_path, order):
    """Steps would lead from the row of one person to that of another one."""
    (tmp_path / order[0]).write_text(USERS_IN_ROWS)
    (tmp_path / order[1]).write_text("who,time,state\nu,1,a\nv,2,b\nu,3,a\n")
    with pytest.raises(DataFormatError, match="name them alike") as refused:
        read_sequences(tmp_path)
    assert f"user, time, state in {order[0]}" in str(refused.value)
    assert f" time, state in {order[1]}" in str(refused.value)
    (tmp_path / order[1]).write_text("User,time,state\nu,1,a\nv,2,b\nu,3,a\n")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "heading.csv").write_text("who,time,state\n")  # which is nobody's
    (tmp_path / "notes.md").write_text("who,time\n")
    with pytest.warns(UserWarning, match=r"notes\.md"):
        assert read_sequences(tmp_path).n_users == 4


@pytest.mark.parametrize("word", ["n/a", "NONE", "-nan", "-", "?", "(null)", "Unknown"])
def test_a_state_that_may_stand_for_no_value_is_named(tmp_path, word):
    rows = pd.DataFrame({"user": "x", "time": range(6), "state": ["a", word, "a", "b", "a", "b"]})
    message = f"'{re.escape(word)}' counts as a state of .*; give missing='{re.escape(word)}' if it"
    with pytest.warns(UserWarning, match=message):
        assert word in read_sequences(rows).labels
    with warnings.catch_warnings(action="error"):
        assert word not in read_sequences(rows, missing=word).labels
        assert word in read_sequences(rows, missing="").labels


@pytest.mark.parametrize(
    ("times", "remedy"),
    [
        ("2024-01-01 00:00:00 UTC", r"write the offset from UTC, such as \+00:00, in place of UTC"),
        ("2024-02-30", "there is no such time: correct it"),
        ("2024-01-01 25:00:61", "there is no such time: correct it"),
        ("45292,5", "write numbers with a decimal point"),
        ("Mon", "write all of them in one way"),
    ],
)
def test_times_that_cannot_be_read_get_the_remedy_that_fits(times, remedy):
    rows = pd.DataFrame({"user": "x", "time": times, "state": [*"abab"]})
    with pytest.raises(ValueError, match=f"found '{re.escape(times)}' in row 0 .*; {remedy}"):
        read_sequences(rows)


def test_json_of_columns_is_refused_in_a_line(tmp_path):
    path = tmp_path / "rows.json"
    HOURS.to_json(path, date_format="iso")
    with pytest.raises(DataFormatError, match="found one whose 3 values are columns; write one ob"):
        read_sequences(path)
    HOURS.to_json(path, orient="records", lines=True, date_format="iso")
    assert read_sequences(path).n_users == 3


def test_a_pipe_is_to_be_written_into_a_file_first(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(ValueError, match="found a pipe .*; write what comes from it into a file"):
        read_sequences(path)


def test_a_blank_before_a_quote_is_named(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text('user, time, state\nx, 2024-01-01, "a, b"\n')
    with pytest.raises(DataFormatError, match="a quote in quotes, without a blank before them, fo"):
        read_sequences(path)
