"""Columns of users without a usual name, and formats as spreadsheets and timetables write them."""

import numpy as np
import pandas as pd
import pytest

from tests.tplreport.reading.test_observations import listed
from tplreport import read_sequences
from tplreport.command import main

VISITS = pd.DataFrame(
    {"card": np.repeat(["k1", "k2", "k3"], 4), "time": [1, 2, 3, 4] * 3, "state": list("abba") * 3}
)


@pytest.mark.parametrize("name", ["card", "plate", "tag", "patient_id"])
@pytest.mark.parametrize("order", [None, "rows"])
def test_a_column_that_looks_like_users_is_asked_for_by_name(tmp_path, capsys, name, order):
    path = tmp_path / "visits.csv"
    rows = VISITS.rename(columns={"card": name}).assign(note=range(12))
    rows.to_csv(path, index=False)
    message = (
        f"there must be users, .*; '{name}' may name users: name .* user=, or give user='none'"
    )
    with pytest.raises(ValueError, match=message):
        read_sequences(path, order=order)
    assert main(["report", str(path), "--alpha", "1", "--horizon", "4", "--draws", "0"]) == 2
    assert "--user 'none'" in capsys.readouterr().err
    assert read_sequences(path, order=order, user=name).n_users == 3


def test_one_person_needs_no_users_if_she_is_named_so_or_nothing_else_is_there(tmp_path):
    one = VISITS[:4]
    alone = read_sequences(one[["time", "state"]])
    assert listed(alone) == [(0, list("abba"))]
    assert listed(read_sequences(one, user="none")) == [(0, list("abba"))]
    with pytest.raises(ValueError, match="there must be users, found none of a usual name"):
        read_sequences(one)
    named = VISITS.rename(columns={"card": "none"})
    assert read_sequences(named, user="none").n_users == 3


def test_all_files_of_a_folder_are_one_persons_if_that_is_said(tmp_path):
    for month, states in (("01", "ab"), ("02", "ba")):
        times = [f"2024-{month}-01", f"2024-{month}-02"]
        rows = pd.DataFrame({"time": times, "state": [*states]})
        rows.to_csv(tmp_path / f"{month}.csv", index=False)
    one = read_sequences(tmp_path, order="rows", user="none")
    assert listed(one) == [(0, list("abba"))]
    assert "no column of users: all rows are one user's" in one.reading.lines[0]
    each = read_sequences(tmp_path, order="rows")
    assert listed(each) == [("01", list("ab")), ("02", list("ba"))]
    assert "no column of users: all rows of a file are one user's" in each.reading.lines[0]


def test_users_whose_names_differ_by_case_are_warned_of():
    rows = VISITS.rename(columns={"card": "user"}).replace({"k2": "K1"})
    with pytest.warns(UserWarning, match="1 user of .* differ.*case alone, such as 'k1' and 'K1'"):
        assert read_sequences(rows).n_users == 3


SPELLS = pd.DataFrame(
    {"user": 1, "time": [0, 0, 40], "until": [22, 40, 90], "state": ["a", "a", "b"]}
)


@pytest.mark.parametrize("order", [[0, 1, 2], [1, 0, 2]])
def test_spells_that_begin_together_and_end_apart_are_an_error(order):
    with pytest.raises(ValueError, match="must end together, found 1 other end, such as in row"):
        read_sequences(SPELLS.iloc[order], until="until", step=10)
    same = SPELLS.assign(until=[40, 40, 90])
    with pytest.warns(
        UserWarning, match="1 row repeats a user, a time and a state, and counts once"
    ):
        assert read_sequences(same, until="until", step=10).lengths.tolist() == [9]


def test_hours_as_numbers_have_a_format():
    hours = pd.date_range("2024-01-31T20:00", periods=8, freq="h").strftime("%Y%m%d%H").astype(int)
    rows = pd.DataFrame({"user": 1, "time": hours, "state": list("abbabaab")})
    with pytest.raises(
        ValueError, match="found 2024013120 .*, a date; give time_format='%Y%m%d%H'"
    ):
        read_sequences(rows, step="1h")
    found = read_sequences(rows, step="1h", time_format="%Y%m%d%H")
    assert found.lengths.tolist() == [8]


def test_a_step_of_numbered_weeks_is_a_number(tmp_path):
    path = tmp_path / "weeks.csv"
    rows = VISITS.rename(columns={"card": "user"}).assign(time=[0, 2, 4, 6] * 3)
    rows.to_csv(path, index=False)
    assert read_sequences(path, step="2").lengths.tolist() == [4, 4, 4]
    with pytest.raises(ValueError, match="step must be a positive duration with its unit"):
        read_sequences(path, step="2", time_unit="D")


@pytest.mark.parametrize("times", [["2024-05-01", "2024-05-02"], [0, 1]])
@pytest.mark.parametrize("step", ["1x", "-1"])
def test_a_wrong_step_has_a_remedy_that_fits_the_times(tmp_path, capsys, times, step):
    path = tmp_path / "rows.csv"
    rows = pd.DataFrame({"user": [1, 1, 2, 2], "time": times * 2, "state": [*"abba"]})
    rows.to_csv(path, index=False)
    words = ["report", str(path), "--alpha=1", "--horizon=2", "--draws=0"]
    assert main([*words, f"--step={step}"]) == 2
    said = capsys.readouterr().err
    is_number = times == [0, 1]
    assert said.strip().endswith("numbers without a unit" if is_number else "give such as '5min'")
    assert ("or a number such as 1" in said) == is_number
    if is_number:
        assert read_sequences(path, step=1).n_transitions == 2
    else:
        assert main([*words, "--step=1"]) == 2
        assert "with its unit" in capsys.readouterr().err


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_line_of_excel_names_the_separator(tmp_path, end):
    path = tmp_path / "visits.csv"
    rows = VISITS.rename(columns={"card": "user"})
    text = rows.to_csv(index=False, sep=";", lineterminator=end)
    path.write_bytes(f"sep=;{end}{text}".encode())
    assert listed(read_sequences(path)) == listed(read_sequences(rows))
    path.write_bytes(f"sep=;{end}{text}k4;;a{end}".encode())
    with pytest.raises(ValueError, match="time must not be empty, found nothing in line 15 of"):
        read_sequences(path)


def test_degrees_may_have_decimal_commas(tmp_path):
    rows = pd.DataFrame(
        {"user": 1, "time": range(6), "lat": [41.9, 41.95] * 3, "lon": [12.55, 12.45] * 3}
    )
    found = []
    for name, decimal in (("points.csv", "."), ("commas.csv", ",")):
        rows.to_csv(tmp_path / name, index=False, sep=";", decimal=decimal)
        found.append(listed(read_sequences(tmp_path / name, cell_km=1.0)))
    assert found[0] == found[1]
    assert len({*found[0][0][1]}) == 2


@pytest.mark.parametrize("day", ["2024-05-01 ", "01.05.2024 ", ""])
def test_clocks_after_midnight_are_of_the_day_of_service(tmp_path, day):
    path = tmp_path / "trips.csv"
    clocks = [f"{hour}:{minute:02}:00" for hour in (9, 23, 24, 25) for minute in (0, 20, 40)][3:]
    rows = pd.DataFrame(
        {"user": 1, "time": [day + one for one in clocks], "state": list("abbabaaba")}
    )
    rows.to_csv(path, index=False)
    options = {"time_format": "%d.%m.%Y %H:%M:%S"} if "." in day else {}
    found = read_sequences(path, step="20min", **options)
    assert found.lengths.tolist() == [9]
    first, last = map(pd.Timestamp, found.reading.span)
    assert last - first == pd.Timedelta("160min")
    assert (first.hour, last.hour) == (23, 1)


@pytest.mark.parametrize("column", ["user", "time"])
def test_empty_users_and_times_are_counted(column):
    rows = VISITS.rename(columns={"card": "user"}).astype(object)
    rows.loc[[2, 5, 9], column] = None
    message = f"{column} must not be empty, found nothing in row 2 of .* and in 2 other rows of the"
    with pytest.raises(ValueError, match=message):
        read_sequences(rows)


PERIODS = [
    ("%G-W%V", "7D", lambda days: days.strftime("%G-W%V")),
    ("%Y-Q%q", None, lambda days: [f"{day.year}-Q{day.quarter}" for day in days]),
    ("Q%q %Y", None, lambda days: [f"Q{day.quarter} {day.year}" for day in days]),
    ("%Y-%m", None, lambda days: days.strftime("%Y-%m")),
    ("%b %Y", None, lambda days: days.strftime("%b %Y")),
    ("%m/%Y", None, lambda days: days.strftime("%m/%Y")),
]


@pytest.mark.parametrize(("form", "step", "write"), PERIODS)
def test_weeks_months_and_quarters_have_a_format(tmp_path, form, step, write):
    """A year with 53 weeks is among them."""
    frequency = {"V": "W-MON", "q": "QS"}.get(form[-1], "QS" if "q" in form else "MS")
    days = pd.date_range("2020-10-01", periods=40, freq=frequency)
    rows = pd.DataFrame({"user": 1, "when": write(days), "state": list("abba") * 10})
    path = tmp_path / "rows.csv"
    rows.sample(frac=1, random_state=1).to_csv(path, index=False)
    with pytest.raises(ValueError, match="'when' holds times"):
        read_sequences(path)
    with pytest.raises(ValueError, match=f"give such as time_format='{form}'"):
        read_sequences(path, time="when")
    found = read_sequences(path, time="when", time_format=form, step=step)
    assert listed(found) == [(1, list("abba") * 10)]
    assert [pd.Timestamp(day) for day in found.reading.span] == [days[0], days[-1]]


@pytest.mark.parametrize("wrong", ["2021-W53", "2021-W00", "2021-W1x"])
def test_weeks_that_do_not_exist_are_no_times(wrong):
    rows = pd.DataFrame({"user": 1, "time": ["2020-W53", wrong], "state": ["a", "b"]})
    with pytest.raises(ValueError, match=f"found '{wrong}' in row 1"):
        read_sequences(rows, time_format="%G-W%V")


@pytest.mark.parametrize("wrong", ["2021-Q5", "2021-Q12", "2021-01", "Q1 2021"])
def test_quarters_that_do_not_exist_are_no_times(wrong):
    rows = pd.DataFrame({"user": 1, "time": ["2021-Q4", wrong], "state": ["a", "b"]})
    with pytest.raises(ValueError, match=f"found '{wrong}' in row 1"):
        read_sequences(rows, time_format="%Y-Q%q")


@pytest.mark.parametrize("form", ["%G", "%Q", "%Y-%G-%V"])
def test_a_format_that_is_none_is_named(form):
    rows = pd.DataFrame({"user": 1, "time": ["2021-1", "2021-2"], "state": ["a", "b"]})
    message = "time_format must be a format as of strptime, found .*; give such as '%d.%m.%Y"
    with pytest.raises(ValueError, match=message):
        read_sequences(rows, time_format=form)


def test_a_first_day_in_may_does_not_hide_the_short_names_of_months():
    rows = pd.DataFrame({"user": 1, "time": ["1 May 2024", "1 Jun 2024"], "state": ["a", "b"]})
    with pytest.raises(ValueError, match="give such as time_format='%d %b %Y'$"):
        read_sequences(rows)
