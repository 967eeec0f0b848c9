"""Rows without a user, a time, a state or an end: counted, left out, or a state, against a plain
walk over the rows in the order of the file."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tplreport.reading.test_observations import listed
from tests.tplreport.reading.test_shapes import workbook
from tplreport import fixed_steps, observed_sequences, read_sequences
from tplreport.command import main
from tplreport.reading import text_files
from tplrepro.markov import as_sequences

STEP = 10
BASE = pd.Timestamp("2024-05-01")
ROWS = pd.DataFrame(
    {
        "user": ["a", "a", "a", "a", "b", "b", "b", "b"],
        "time": [1, 2, 3, 4, 1, 2, 3, 4],
        "state": ["x", "y", "x", "y", "y", "y", "x", "x"],
    }
).astype(object)


NOBODY = "ignore:.* without a user"


def write_table(folder, frame, kind):
    """The frame itself, or the path of a file with it."""
    path = folder / f"rows.{kind}"
    if kind == "frame":
        return frame
    if kind == "csv":
        frame.to_csv(path, index=False)
    elif kind == "parquet":
        frame.convert_dtypes().to_parquet(path, index=False)
    else:
        workbook(path, frame.astype(object).where(frame.notna(), None))
    return path


def without(column, *rows):
    frame = ROWS.copy()
    frame.loc[[*rows], column] = None
    return frame


KINDS = ["frame", "csv", "parquet", "xlsx"]


@pytest.mark.filterwarnings(NOBODY)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("column", "expected", "reason"),
    [
        ("user", [("a", ["x", "y", "y"]), ("b", ["y", "y", "x"])], "ends no sequence: it may be"),
        ("time", [("a", ["x", "y"]), ("a", ["y"]), ("b", ["y", "y", "x"])], "ends a sequence wh"),
        ("state", [("a", ["x", "y"]), ("a", ["y"]), ("b", ["y", "y", "x"])], "ends a sequence"),
    ],
)
def test_rows_without_a_value_are_counted_and_left_out(tmp_path, kind, column, expected, reason):
    data = write_table(tmp_path, without(column, 2, 7), kind)
    if column != "state":
        message = (
            f"{column} must not be empty, found nothing in .* and in 1 other row of the 8 read; "
            f"drop them by missing='drop' .a row without a {column}.*{reason}"
        )
        with pytest.raises(ValueError, match=message):
            read_sequences(data)
    found = read_sequences(data, missing="drop", order="times")
    assert listed(found) == expected
    text = str(found)
    assert f"Rows: 6 of 8 count; not 2: without a {column}" in text
    assert reason in text


@pytest.mark.filterwarnings(NOBODY)
def test_all_empty_rows_are_counted_whatever_the_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(text_files, "BLOCK_BYTES", 64)
    monkeypatch.setattr(text_files.line_blocks, "__defaults__", (64,))
    many = pd.concat([without("user", 1)] * 9).assign(time=[*map(str, range(72))])
    many.iloc[40, 1] = "NA"
    many.to_csv(tmp_path / "rows.csv", index=False)
    message = (
        "user must not be empty, found nothing in line 3 of .* and in 8 other rows of the 72 read, "
        "and time must not be empty, found 'NA' in line 42 of .*; drop them by missing='drop'"
    )
    with pytest.raises(ValueError, match=message):
        read_sequences(tmp_path / "rows.csv")
    found = read_sequences(tmp_path / "rows.csv", missing="drop", order="times")
    assert found.reading.rows == 72
    assert [*found.reading.dropped.values()] == [9, 1]


def test_rows_without_a_user_are_warned_of():
    message = "2 rows of the DataFrame without a user are left out, .* a step may lead across"
    with pytest.warns(UserWarning, match=message):
        read_sequences(without("user", 2, 7), missing="drop", order="times")


def test_a_row_without_a_time_needs_rows_in_order_of_time():
    shuffled = without("time", 2).iloc[[1, 2, 0, 3, 7, 5, 6, 4]]
    message = "in order of time, .* found row 1 of the DataFrame before row 0 of the DataFrame; so"
    with pytest.raises(ValueError, match=message):
        read_sequences(shuffled, missing="drop")
    others = shuffled.iloc[[2, 0, 1, 3, 4, 5, 6, 7]]
    assert listed(read_sequences(others, missing="drop"))[:2] == [("a", ["x", "y"]), ("a", ["y"])]


@pytest.mark.filterwarnings(NOBODY)
@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_state_may_be_a_state(tmp_path, kind):
    data = write_table(tmp_path, without("state", 2, 7), kind)
    found = read_sequences(data, missing="state")
    assert listed(found) == [("a", ["x", "y", "missing", "y"]), ("b", ["y", "y", "x", "missing"])]
    assert "Rows: 8 of 8 count; 2 of them without a state, as state 'missing'" in str(found)
    both = ROWS.assign(state=["x", None, "missing", "x", *"yyxx"])
    with pytest.raises(
        ValueError, match="no state may be called 'missing' .*'state,missing' if it"
    ):
        read_sequences(both, missing="state", order="times")
    merged = read_sequences(both, missing="state,missing")
    assert listed(merged)[0] == ("a", ["x", "missing", "missing", "x"])
    nobody = without("state", 2)
    nobody.loc[5, "user"] = None
    with pytest.raises(ValueError, match="user must not be empty"):
        read_sequences(nobody, missing="state")
    found = read_sequences(nobody, missing=["state", "drop"], order="times")
    assert found.lengths.tolist() == [4, 3]


def test_states_stay_numbers_where_none_is_missing():
    numbers = ROWS.assign(state=[1, 2, 1, 2, 2, 2, 1, 1])
    assert read_sequences(numbers, missing="state").labels.tolist() == [1, 2]
    numbers.loc[3, "state"] = None
    assert read_sequences(numbers, missing="state").labels.tolist() == ["1", "2", "missing"]
    measured = numbers.assign(state=[1.5, 2.5, 3.5, None, 1.5, 2.5, 3.5, 4.5])
    found = read_sequences(measured, missing="state", bins=2)
    assert found.labels.tolist() == ["1.5 to 2.5", "2.5 to 4.5", "missing"]


@pytest.mark.filterwarnings(NOBODY)
@pytest.mark.parametrize("bins", [None, 2])
def test_states_of_rows_that_are_left_out_do_not_count(bins):
    """Such as a last row of totals, which has neither a user nor a time."""
    total = pd.DataFrame({"user": [None], "time": [None], "state": ["Total"]})
    numbers = ROWS.assign(state=[1, 2, 1, 2, 2, 2, 1, 1])
    rows = pd.concat([numbers, total.astype(object)], ignore_index=True)
    found = read_sequences(rows, missing="drop", bins=bins)
    assert listed(found) == listed(read_sequences(numbers, bins=bins))


@pytest.mark.filterwarnings(NOBODY)
def test_wide_rows_without_a_user_are_left_out_and_the_ends_of_rows_are_no_state():
    wide = pd.DataFrame({"who": ["ann", None, "bob"], "mon": ["x", "y", None], "tue": ["y"] * 3})
    names = {"user": "who", "state": "mon..tue"}
    with pytest.raises(ValueError, match="user must not be empty, found nothing in row 1 of"):
        read_sequences(wide, **names)
    assert listed(read_sequences(wide, **names, missing="drop")) == [
        ("ann", ["x", "y"]),
        ("bob", ["y"]),
    ]
    found = read_sequences(wide, **names, missing="drop,state")
    assert listed(found) == [("ann", ["x", "y"]), ("bob", ["missing", "y"])]
    assert found.reading.rows == 3
    assert [*found.reading.dropped.values()] == [1]


def test_wide_rows_are_told_apart_in_every_block(tmp_path, monkeypatch):
    monkeypatch.setattr(text_files.line_blocks, "__defaults__", (64,))
    wide = pd.DataFrame({"mon": [*"xyxx"] * 8, "tue": [*"yyxy"] * 8})
    wide.to_csv(tmp_path / "wide.csv", index=False)
    assert len((tmp_path / "wide.csv").read_bytes()) > 2 * 64
    found = read_sequences(tmp_path / "wide.csv", state="mon..tue")
    assert [own for _, own in listed(found)] == [[*"xy"], [*"yy"], [*"xx"], [*"xy"]] * 8
    wide.loc[30, "mon"] = "0x1"
    wide.assign(who=[*range(31), None]).to_csv(tmp_path / "wide.csv", index=False)
    with pytest.raises(ValueError, match="user must not be empty, found nothing in line 33 of"):
        read_sequences(tmp_path / "wide.csv", state="mon..tue", user="who")


@pytest.mark.parametrize("kind", ["frame", "csv", "parquet"])
def test_positions_that_are_missing_end_a_sequence_or_are_a_state(tmp_path, kind):
    rows = ROWS.drop(columns="state").assign(lat=[41.9, 41.95] * 4, lon=[12.55, 12.45] * 4)
    rows = rows.astype({"lat": float, "lon": float, "time": int})
    rows.loc[2, "lat"] = None
    rows.loc[6, "lon"] = None
    data = write_table(tmp_path, rows, kind)
    ended = read_sequences(data, cell_km=1.0)
    assert ended.lengths.tolist() == [2, 1, 2, 1]
    assert listed(read_sequences(data, cell_km=1.0, missing="drop")) == listed(ended)
    found = read_sequences(data, cell_km=1.0, missing="state")
    assert [own.count("missing") for _, own in listed(found)] == [1, 1]
    assert found.lengths.tolist() == [4, 4]


SPELLS = pd.DataFrame(
    {
        "user": ["a"] * 5,
        "start": pd.to_datetime([f"2024-01-0{day}" for day in (1, 3, 4, 6, 8)]),
        "end": pd.to_datetime([f"2024-01-0{day}" for day in (3, 4, 6, 8, 9)]),
        "state": [*"xyxyx"],
    }
)
NAMES = {"time": "start", "until": "end"}


@pytest.mark.parametrize("kind", ["frame", "csv", "parquet"])
@pytest.mark.parametrize(
    ("column", "rows", "daily", "spells"),
    [
        ("end", [2], [[*"xxy"], [*"yyx"]], [[*"xy"], [*"yx"]]),
        ("end", [4], [[*"xxyxxyy"]], [[*"xyxy"]]),
        ("start", [2], [[*"xxy"], [*"yyx"]], [[*"xy"], [*"yx"]]),
        ("start", [0], [[*"yxxyyx"]], [[*"yxyx"]]),
        ("state", [2], [[*"xxy"], [*"yyx"]], [[*"xy"], [*"yx"]]),
    ],
)
def test_spells_without_a_begin_or_an_end_end_a_sequence(
    tmp_path, kind, column, rows, daily, spells
):
    frame = SPELLS.copy()
    frame.loc[rows, column] = None
    data = write_table(tmp_path, frame, kind)
    name = {"end": "until", "start": "time"}.get(column)
    if name is not None:
        with pytest.raises(ValueError, match=f"{name} must not be empty, found nothing in .*drop"):
            read_sequences(data, **NAMES)
    found = read_sequences(data, **NAMES, missing="drop")
    assert [own for _, own in listed(found)] == spells
    found = read_sequences(data, **NAMES, missing="drop", step="1D")
    assert [own for _, own in listed(found)] == daily


def test_a_spell_whose_follower_lacks_its_begin_is_not_held_into_the_next():
    """Without the row y nothing lies between the two spells of x."""
    frame = SPELLS.iloc[[0, 1, 2]].assign(start=[BASE, None, BASE + pd.Timedelta("2D")])
    frame = frame.assign(end=[BASE + pd.Timedelta(f"{days}D") for days in (2, 2, 4)])
    assert read_sequences(frame, **NAMES, missing="drop", step="1D").lengths.tolist() == [2, 2]
    assert read_sequences(frame, **NAMES, missing="drop").lengths.tolist() == [1, 1]


@pytest.mark.parametrize("column", ["time", "until"])
def test_a_file_may_lack_all_ends_or_times_of_a_block(tmp_path, monkeypatch, column):
    monkeypatch.setattr(text_files.line_blocks, "__defaults__", (64,))
    name = {"time": "start", "until": "end"}[column]
    lines = SPELLS.astype(str).to_dict("records")
    for line in lines[1:4]:
        line[name] = ""
    pd.DataFrame(lines).to_csv(tmp_path / "spells.csv", index=False)
    found = read_sequences(tmp_path / "spells.csv", **NAMES, missing="drop", step="1D")
    assert [own for _, own in listed(found)] == [["x", "x"], ["x"]]
    for line in lines:
        line[name] = ""
    pd.DataFrame(lines).to_csv(tmp_path / "spells.csv", index=False)
    with pytest.raises(
        ValueError, match=f"{column} must not be empty, .* 4 other rows of the 5 read"
    ):
        read_sequences(tmp_path / "spells.csv", **NAMES)
    if column == "time":
        with pytest.raises(ValueError, match="must be rows with a user and a time, found none in"):
            read_sequences(tmp_path / "spells.csv", **NAMES, missing="drop")


def test_a_date_without_its_clock_is_no_time():
    frame = ROWS.drop(columns="time").assign(
        date="2024-05-01", clock=[f"{hour:02}:00" for hour in range(8)]
    )
    frame.loc[1, "clock"] = None
    frame.loc[6, "date"] = "NA"
    options = {"time": "date+clock"}
    with pytest.raises(
        ValueError, match="time must not be empty, found nothing in row 1 .* 1 other row of"
    ):
        read_sequences(frame, **options)
    found = read_sequences(frame, **options, missing="drop", order="times")
    assert found.lengths.tolist() == [1, 2, 2, 1]


def test_the_command_takes_missing_where_observations_are_read(tmp_path, capsys):
    rng = np.random.default_rng(1)
    rows = pd.DataFrame(
        {
            "user": np.repeat([f"u{k}" for k in range(20)], 30),
            "time": [*range(30)] * 20,
            "state": rng.choice([*"xy"], 600),
        }
    ).astype(object)
    rows.loc[[45, 77], "time"] = None
    path = tmp_path / "rows.csv"
    rows.to_csv(path, index=False)
    report = ["report", str(path), "--alpha", "1", "--horizon", "4", "--draws", "0"]
    assert main(report) == 2
    assert "1 other row of the 600 read; drop them by --missing 'drop'" in capsys.readouterr().err
    assert main([*report, "--missing", "drop"]) == 0
    assert "598 of 600 count; not 2: without a time" in capsys.readouterr().out
    chain = ["--data", str(path), "--missing", "drop", "--horizon", "4"]
    assert main(["budgets", "--alpha", "1", *chain]) == 0
    assert main(["leakage", "--epsilon", "0.1", *chain]) == 0
    publish = ["publish", str(tmp_path / "counts.sqlite"), "--alpha", "1", "--sensitivity", "2"]
    assert main([*publish, "--floor", "0.01", "--data", str(path), "--missing", "drop"]) == 0


@pytest.mark.parametrize("column", ["user", "time", "state"])
def test_who_gives_frames_is_told_how_many_values_are_missing(column):
    frame = ROWS.astype({"time": float})
    frame.loc[[1, 5], column] = None
    with pytest.raises(ValueError, match=f"found 2 in column {column} of 8 rows; read them by"):
        as_sequences(frame)
    if column != "state":
        for read in (observed_sequences, partial(fixed_steps, step=1.0)):
            with pytest.raises(ValueError, match="found 2 in 8 rows; read them by .*='drop', whi"):
                read(frame, state="state")


def known_rows(rows, is_state):
    """Of one user, in the order of the file, or of time if all rows have one: time and state,
    None for what is missing; AssertionError if a row without a time has no place."""
    times = [time for time, _ in rows if time is not None]
    if len(times) < len(rows):
        assert times == sorted(times)
    else:
        rows = sorted(rows, key=lambda row: row[0])
    return [(time, "missing" if is_state and state is None else state) for time, state in rows]


def plain_sequences(rows, is_state):
    """The states of each run of rows that lack neither a time nor a state."""
    found = [[]]
    for time, state in known_rows(rows, is_state):
        if time is None or state is None:
            found.append([])
        else:
            found[-1].append(state)
    return [own for own in found if own]


def plain_steps(rows, is_state, longest):
    """The state at each time step: that of the last row, if it is not too old, if no row without
    a time came after it, and if it has one; runs of these, which no row without a time cuts."""
    rows = known_rows(rows, is_state)
    timed = [k for k, (time, _) in enumerate(rows) if time is not None]
    found = []
    before = None  # step and row of the last state
    last_time = rows[timed[-1]][0] if timed else 0
    for step in range(last_time // STEP + 2):
        at = [k for k in timed if rows[k][0] <= step * STEP]
        if not at:
            continue
        k = at[-1]
        time, state = rows[k]
        age = step * STEP - time
        is_followed = k + 1 < len(rows) and rows[k + 1][0] is None
        is_past_the_end = k == timed[-1] and step > -(-time // STEP)
        if state is None or age > longest or (is_followed and age > 0) or is_past_the_end:
            continue
        is_next = before is not None and before[0] == step - 1
        if is_next and all(time is not None for time, _ in rows[before[1] : k]):
            found[-1].append(state)
        else:
            found.append([state])
        before = step, k
    return found


VALUES = st.tuples(
    st.sampled_from(["a", "b", None]),
    st.one_of(st.integers(0, 60), st.none()),
    st.sampled_from(["x", "y", None]),
)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(VALUES, min_size=1, max_size=24),
    st.sampled_from(["drop", "drop,state"]),
    st.sampled_from([None, 0, 25]),
    st.booleans(),
)
@pytest.mark.filterwarnings(NOBODY)
@pytest.mark.filterwarnings("ignore:.* do not count, between two steps")
@pytest.mark.filterwarnings("ignore:.* are held from an earlier step")
def test_what_is_missing_is_neither_stepped_over_nor_held(
    tmp_path_factory, rows, missing, max_gap, is_sorted
):
    if is_sorted:
        times = iter(sorted(time for _, time, _ in rows if time is not None))
        rows = [(user, None if time is None else next(times), state) for user, time, state in rows]
    is_state = "state" in missing
    expected = []
    has_place = True
    for user in ("a", "b"):
        own = [(time, state) for name, time, state in rows if name == user]
        try:
            if max_gap is None:
                found = plain_sequences(own, is_state)
            else:
                found = plain_steps(own, is_state, max_gap or STEP - 1)
        except AssertionError:
            has_place = False
            continue
        expected += [(user, states) for states in found]
    frame = pd.DataFrame(rows, columns=["user", "time", "state"])
    seconds = pd.to_timedelta(frame["time"].astype(float), unit="s")
    frame = frame.assign(time=BASE + seconds)
    options = {"order": "times", "same_time": "rows", "missing": missing}
    if max_gap is not None:
        options |= {"order": None, "step": f"{STEP}s", "max_gap": f"{max_gap}s"}
    if max_gap == 0:
        options.pop("max_gap")
    path = tmp_path_factory.mktemp("rows") / "rows.csv"
    frame.to_csv(path, index=False)
    for data in (frame, path):
        if not any(user and time is not None for user, time, _ in rows):
            with pytest.raises(ValueError, match="must be rows with a user and a time"):
                read_sequences(data, **options)
        elif not has_place:
            with pytest.raises(ValueError, match="must be in order of time"):
                read_sequences(data, **options)
        else:
            found = listed(read_sequences(data, **options))
            assert sorted(found, key=lambda own: own[0]) == expected


def event_log(*traces):
    """XES of traces of events: activity and hour, either of which may be None."""
    lines = ["<log>"]
    for number, trace in enumerate(traces):
        lines.append(f'<trace><string key="concept:name" value="case {number}"/>')
        for activity, hour in trace:
            event = ""
            if activity is not None:
                event = f'<string key="concept:name" value="{activity}"/>'
            if hour is not None:
                event += f'<date key="time:timestamp" value="2022-08-03T{hour}:00:00Z"/>'
            lines.append(f"<event>{event}</event>")
        lines.append("</trace>")
    return "\n".join([*lines, "</log>"])


@pytest.mark.parametrize("lost", [None, "ninth"])
def test_an_event_without_a_time_ends_a_sequence_of_its_case(tmp_path, lost):
    """A time that cannot be read is none, as in `read_xes`, which leaves such events out."""
    path = tmp_path / "log.xes"
    first = [("a", 10), ("b", lost), ("c", 12), ("d", 13)]
    path.write_text(event_log(first, [("a", 10), ("b", 11), (None, 12), ("c", 13)]))
    said = rf"found nothing in line 4 of {path}; drop it by missing='drop'"
    with pytest.raises(ValueError, match=said):
        read_sequences(path, order="times")
    cut = read_sequences(path, order="times", missing="drop")
    assert listed(cut) == [
        ("case 0", ["a"]),
        ("case 0", ["c", "d"]),
        ("case 1", ["a", "b"]),
        ("case 1", ["c"]),
    ]
    as_state = read_sequences(path, order="times", missing="drop,state")
    assert listed(as_state)[-1] == ("case 1", ["a", "b", "missing", "c"])
    path.write_text(path.read_text().replace("\n", ""))
    assert listed(read_sequences(path, order="times", missing="drop")) == listed(cut)
