"""Anybody's files: what is read against a plain loop over the rows, whatever the format, and what
each error says."""

import gzip
import math
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tplreport import Grid, read_sequences

ROWS = [("007", 3, "NA"), ("8", 1, "bar"), ("007", 1, "bar"), ("007", 2, None), ("8", 2, "a, b")]
FRAME = pd.DataFrame(ROWS, columns=["who", "day", "place"])
NAMES = {"user": "who", "time": "day", "state": "place"}


def listed(sequences):
    """Users with their sequences of labels."""
    found = [sequences.labels[own].tolist() for own in sequences]
    return list(zip(sequences.users.tolist(), found, strict=True))


def write(path, frame, kind):
    if kind == "parquet":
        frame.to_parquet(path, index=False)
    else:
        encoding = "utf-8-sig" if kind == "mark" else "utf-8"
        frame.to_csv(
            path, index=False, sep={"semicolon": ";", "tab": "\t"}.get(kind, ","), encoding=encoding
        )
    return path


@pytest.mark.parametrize("kind", ["csv", "semicolon", "tab", "mark", "parquet", "frame"])
def test_labels_are_read_unchanged_and_a_missing_state_ends_a_sequence(tmp_path, kind):
    data = FRAME if kind == "frame" else write(tmp_path / "visits", FRAME, kind)
    found = read_sequences(data, **NAMES, missing="")
    assert found.labels.tolist() == ["NA", "a, b", "bar"]
    assert listed(found) == [("007", ["bar"]), ("007", ["NA"]), ("8", ["bar", "a, b"])]


@pytest.mark.parametrize(
    ("written", "label"),
    [
        ([10**20, 1e20, "1" + "0" * 20, "1" + "0" * 20 + ".0"], "1" + "0" * 20),
        ([-(10**18), -1e18, "-1" + "0" * 18], "-1" + "0" * 18),
        ([0, -0.0, "-0", "-0.0"], "0"),
        ([math.inf, Decimal("Infinity"), "inf"], "inf"),
    ],
)
def test_a_number_is_one_label_however_it_is_written(written, label):
    frame = pd.DataFrame({"user": 1, "time": range(len(written)), "state": written})
    found = read_sequences(frame.astype({"state": object}))
    assert [str(own) for own in found.labels] == [label]


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 50), st.integers(0, 4)), min_size=1, max_size=30
    )
)
def test_every_format_gives_the_sequences_of_a_plain_loop(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("rows")
    frame = pd.DataFrame(rows, columns=["user", "time", "state"])
    expected = [
        (
            user,
            [
                state
                for _, _, state in sorted(
                    (row for row in rows if row[0] == user), key=lambda row: row[1]
                )
            ],
        )
        for user in sorted({user for user, *_ in rows})
    ]
    for kind in ("csv", "parquet"):
        assert (
            sorted(listed(read_sequences(write(folder / kind, frame, kind), same_time="rows")))
            == expected
        )
    assert sorted(listed(read_sequences(frame, same_time="rows"))) == expected
    by_user = folder / "users"
    by_user.mkdir()
    for user, own in frame.groupby("user"):
        write(by_user / f"{user}.csv", own[["time", "state"]], "csv")
    assert [own for _, own in listed(read_sequences(by_user, same_time="rows"))] == [
        own for _, own in expected
    ]


@pytest.mark.filterwarnings("ignore:.* between two steps")
def test_instants_order_observations_and_the_local_clock_cuts_steps():
    """The clocks go on in that night; d is of 1 April by the clock there, but of 31 March in
    UTC."""
    times = [
        "2024-03-31T03:15:00+02:00",
        "2024-03-31T01:30:00+01:00",
        "2024-03-31 23:30+02",
        "2024-04-01T00:30:00+0200",
    ]
    text = pd.DataFrame({"user": 1, "time": times, "state": ["b", "a", "c", "d"]})
    instants = pd.to_datetime(text["time"], format="ISO8601", utc=True)
    berlin = instants.dt.tz_convert("Europe/Berlin")
    for times in (text["time"], berlin, berlin.astype("timestamp[us, tz=Europe/Berlin][pyarrow]")):
        frame = text.assign(time=times)
        assert listed(read_sequences(frame)) == [(1, ["a", "b", "c", "d"])]
        assert listed(read_sequences(frame, step="1D")) == [(1, ["c", "d"])]
    assert listed(read_sequences(text.assign(time=instants), step="1D")) == [(1, ["d"])]


@pytest.mark.filterwarnings("ignore:.* between two steps")
def test_clocks_that_go_back_keep_the_order_of_instants_and_lose_nothing():
    """An hour that comes twice, in steps of ten minutes; a flight over the date line, in days."""
    times = ["2024-10-27 02:50+02:00", "2024-10-27 02:00+01:00", "2024-10-27 02:10+01:00"]
    night = pd.DataFrame({"user": 1, "time": times, "state": ["a", "b", "c"]})
    times = ["2024-05-02 12:00+09:00", "2024-05-01 22:00-10:00", "2024-05-03 22:00-10:00"]
    flight = pd.DataFrame({"user": 1, "time": times, "state": ["Narita", "Oahu", "Maui"]})
    for order in (slice(None), slice(None, None, -1)):
        assert listed(read_sequences(night[order], step="10min")) == [(1, ["a", "b", "c"])]
        assert listed(read_sequences(flight[order], step="1D")) == [(1, ["Oahu", "Maui"])]


def test_files_without_a_header_are_read_also_in_a_folder_of_one_a_user(tmp_path):
    """As T-Drive has them: taxi, time, longitude, latitude, no header."""
    for taxi, east in ((1, 116.30), (2, 116.40)):
        lines = [
            f"{taxi},2008-02-02 15:3{minute}:08,{east + minute / 50},39.92\n" for minute in (6, 3)
        ]
        (tmp_path / f"{taxi}.txt").write_text("".join(lines))
    (tmp_path / "3.txt").write_text("")
    box = (39.8, 40.0, 116.2, 116.6)
    found = read_sequences(tmp_path, user=0, time=1, longitude=2, latitude=3, cell_km=1.0, box=box)
    grid = Grid(box, 1.0)
    expected = [
        (taxi, [grid.labels(grid.cell([39.92], [east + m / 50]))[0] for m in (3, 6)])
        for taxi, east in ((1, 116.30), (2, 116.40))
    ]
    assert listed(found) == expected
    by_name = read_sequences(tmp_path, time=1, longitude=2, latitude=3, cell_km=1.0, box=box)
    assert [own for _, own in listed(by_name)] == [own for _, own in expected]


def test_files_of_a_folder_name_their_users_in_full_or_are_left_out_with_a_warning(tmp_path):
    for name in ("a.1.csv", "a.2.CSV", "2024.01.txt.gz", "notes.md", ".hidden"):
        content = b"time,state\n1,x\n"
        (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    with pytest.warns(
        UserWarning, match="1 file of .* left out, such as 'notes.md': only those that end in .csv"
    ):
        assert read_sequences(tmp_path).users.tolist() == ["2024.01", "a.1", "a.2"]


def test_a_user_in_two_states_at_one_time_is_an_error_until_users_are_told_apart_or_one_is_chosen(
    tmp_path,
):
    message = (
        "a user must be in one state at a time, .* such as in row 3 .* and row 4 .*; "
        "give user= the column"
    )
    with pytest.raises(ValueError, match=message):
        read_sequences(FRAME, user="none", time="day", state="place", missing="")
    assert (
        len(
            read_sequences(
                FRAME.drop(columns="day"), user="none", state="place", order="rows", missing=""
            )
        )
        == 2
    )
    path = tmp_path / "visits.csv"
    path.write_text("user,time,state\nada,1,home\nada,2,work\nada,2,bar\nada,3,home\nbob,2,bar\n")
    message = (
        "found another one in 1 row, such as in line 3 of .*visits.csv and line 4 of .*; "
        "give same_time= 'first'"
    )
    with pytest.raises(ValueError, match=message):
        read_sequences(path)
    for choice, days in (
        ("first", ["home", "work", "home"]),
        ("last", ["home", "bar", "home"]),
        ("rows", ["home", "work", "bar", "home"]),
    ):
        assert listed(read_sequences(path, same_time=choice)) == [("ada", days), ("bob", ["bar"])]


def test_a_state_is_held_for_less_than_a_step_unless_max_gap_says_otherwise():
    """Monday, Wednesday, Friday: without a gap nothing is a stay; with two days every other step is
    held."""
    days = pd.DataFrame(
        {"user": 1, "time": ["2024-01-01", "2024-01-03", "2024-01-05"], "state": ["a", "b", "c"]}
    )
    assert [own for _, own in listed(read_sequences(days, step="1D"))] == [["a"], ["b"], ["c"]]
    with pytest.warns(
        UserWarning,
        match=r"40.0% of all states are held from an earlier step, for up to max_gap='2D'",
    ):
        assert listed(read_sequences(days, step="1D", max_gap="2D")) == [
            (1, ["a", "a", "b", "b", "c"])
        ]


@pytest.mark.parametrize(("unit", "many"), [("ms", 10**3), ("us", 10**6), ("ns", 10**9)])
def test_epochs_in_other_units_are_not_taken_for_seconds(unit, many):
    start = 1_700_000_400
    seconds = pd.DataFrame(
        {"user": 1, "time": [start, start + 600, start + 1200], "state": ["a", "b", "a"]}
    )
    frame = seconds.assign(time=seconds["time"] * many)
    with pytest.raises(
        ValueError,
        match=f"must be seconds, found {start * many} in row 0 .*give time_unit='{unit}'",
    ):
        read_sequences(frame, step="10min")
    expected = listed(read_sequences(seconds, step="10min"))
    assert (
        listed(read_sequences(frame, step="10min", time_unit=unit))
        == expected
        == [(1, ["a", "b", "a"])]
    )
    assert listed(read_sequences(frame)) == expected  # only the order counts


NANOSECONDS = pd.to_datetime([1_000_002, 1_000_001], unit="ns")
TEXTS = [f"2024-01-01T10:00:00.00000000{k}" for k in (2, 1)]
LATER_FIRST = [
    NANOSECONDS,
    NANOSECONDS.tz_localize("Asia/Tokyo"),
    pd.array(NANOSECONDS, dtype="timestamp[ns][pyarrow]"),
    TEXTS,
    [f"{text}+02:00" for text in TEXTS],
    [1_700_000_000_123_456_789, 1_700_000_000_123_456_788],
    ["1700000000123456789", "1700000000123456788"],
    [str(2**63 + 2), str(2**63 + 1)],
    [20240101123001, 20240101123000],  # in microseconds more than an int64
    np.array([5, 3], dtype=np.uint8),
    pd.array([5, 3], dtype="UInt64"),
]


@pytest.mark.parametrize("times", LATER_FIRST, ids=str)
def test_times_order_observations_exactly(tmp_path, times):
    frame = pd.DataFrame({"user": 1, "time": times, "state": ["b", "a"]})
    for data in (
        frame,
        write(tmp_path / "a.csv", frame, "csv"),
        write(tmp_path / "a.parquet", frame, "parquet"),
    ):
        assert listed(read_sequences(data)) == [(1, ["a", "b"])]


BIG = 2**53  # floats hold BIG + 2, not BIG + 1


@pytest.mark.parametrize("dtype", ["Int64", "UInt64", "uint64[pyarrow]"])
def test_large_labels_stay_apart_whatever_their_type(tmp_path, dtype):
    frame = pd.DataFrame(
        {"user": 1, "time": [1, 2, 3, 4], "state": pd.array([BIG + 1, BIG, None, 7], dtype=dtype)}
    )
    expected = [(1, [BIG + 1, BIG]), (1, [7])]
    other = tmp_path / "other.parquet"  # as other programs write it, without pandas' types
    pq.write_table(pa.Table.from_pandas(frame).replace_schema_metadata(None), other)
    for data in (
        frame,
        write(tmp_path / "a.csv", frame, "csv"),
        write(tmp_path / "a.parquet", frame, "parquet"),
        other,
    ):
        assert listed(read_sequences(data)) == expected


def test_all_files_of_a_folder_have_labels_of_one_type(tmp_path):
    for name, states in (("a", [BIG + 1, None, BIG]), ("b", [7])):
        text = "".join(f"{time},{state or ''}\n" for time, state in enumerate(states))
        (tmp_path / f"{name}.csv").write_text("time,state\n" + text)
    assert listed(read_sequences(tmp_path)) == [("a", [BIG + 1]), ("a", [BIG]), ("b", [7])]
    (tmp_path / "c.csv").write_text("time,state\n1,x\n")
    assert read_sequences(tmp_path).labels.tolist() == ["7", str(BIG), str(BIG + 1), "x"]
    pd.DataFrame({"time": [1], "state": [BIG]}).to_parquet(tmp_path / "d.parquet")
    assert listed(read_sequences(tmp_path))[-1] == ("d", [str(BIG)])
    for name, states in (("e", [True, False]), ("f", [1.0, 0.0])):  # equal to Python
        pd.DataFrame({"time": [1, 2], "state": states}).to_parquet(tmp_path / f"{name}.parquet")
    assert listed(read_sequences(tmp_path))[-2:] == [("e", ["True", "False"]), ("f", ["1", "0"])]


def test_defects_are_placed_where_quoted_fields_span_lines(tmp_path):
    path = tmp_path / "visits.csv"
    path.write_text('user,time,state\n\n1,1,"a\n""b"""\n1,2,c\n')
    assert listed(read_sequences(path)) == [(1, ['a\n"b"', "c"])]
    for wrong, message in (
        (",3,c", "nothing in line 6 of"),
        ('1,3,c"', "line 6: expected"),
        ('1,3,"c', "line 6: expected"),
    ):
        path.write_text('user,time,state\n\n1,1,"a\n""b"""\n1,2,c\n' + wrong + "\n")
        with pytest.raises(ValueError, match=message):
            read_sequences(path)
