"""One table in every format gives the same; mutated ones are read, or refused by an error that
names the file."""

import json
import re
import warnings

import numpy as np
import pandas as pd
import pyarrow.feather
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzzing import mutations, read_within_limits
from tests.tplreport.reading.test_observations import listed
from tests.tplreport.reading.test_shapes import workbook
from tplreport import read_sequences
from tplreport.reading import rows_by_user
from tplreport.reading.table import open_source

RNG = np.random.default_rng(8)
ROWS = pd.DataFrame(
    {
        "user": RNG.choice(["ann", "bob", "7"], 60),
        "time": pd.date_range("2024-01-01", periods=60, freq="7h").strftime("%Y-%m-%d %H:%M:%S"),
        "state": RNG.choice(["home", "a, b", "12"], 60),
    }
)
TYPED = ROWS.assign(time=pd.to_datetime(ROWS["time"]), state=RNG.integers(0, 3, 60))
FORMATS = {
    "csv": lambda path: ROWS.to_csv(path, index=False),
    "jsonl": lambda path: ROWS.to_json(path, orient="records", lines=True),
    "parquet": lambda path: TYPED.to_parquet(path, index=False),
    "parquet of text": lambda path: ROWS.to_parquet(path, index=False, compression=None),
    "feather": lambda path: pyarrow.feather.write_feather(
        TYPED, str(path), compression="uncompressed"
    ),
    "xlsx": lambda path: workbook(path, ROWS),
    "spmf": lambda path: path.write_text(
        "@ITEM=1=home\n@ITEM=2=bar\n" + "1 -1 2 -1 1 -1 -2\n" * 20
    ),
    "positions": lambda path: (
        ROWS.drop(columns="state")
        .assign(lat=RNG.uniform(39, 40, 60), lon=RNG.uniform(116, 117, 60))
        .to_csv(path)
    ),
}


@pytest.mark.parametrize("cases", [40, pytest.param(2000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", FORMATS)
def test_a_mutated_table_is_read_or_refused_by_an_error_that_names_it(tmp_path, name, cases):
    path = tmp_path / "table.data"
    FORMATS[name](path)
    options = {"cell_km": 20.0} if name == "positions" else {}
    with warnings.catch_warnings(action="ignore"):
        for mutated in mutations(path.read_bytes(), cases, seed=51):
            read_within_limits(lambda path: read_sequences(path, **options), path, mutated)


LABELS = st.sampled_from(
    ["1", 1, 1.0, "01", "a", " a ", "", "NA", None, True, 2**40 + 1, "1.0", "x y", "é", 3.5, "nan"]
)
WRITERS = {
    "csv": lambda path, frame: frame.to_csv(path, index=False),
    "jsonl": lambda path, frame: path.write_text(
        "".join(
            json.dumps(row) + "\n"
            for row in frame.astype(object).where(frame.notna(), None).to_dict("records")
        )
    ),
    "parquet": lambda path, frame: frame.to_parquet(path, index=False),
    "xlsx": workbook,
}


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 2), LABELS), min_size=1, max_size=8),
    st.sampled_from([int, str, "time"]),
)
def test_a_table_has_the_same_states_or_the_same_error_in_every_format(
    tmp_path_factory, rows, kind
):
    """Whatever labels are: text, numbers, both, blanks around them, missing ones; Parquet has
    columns of one kind."""
    folder = tmp_path_factory.mktemp("formats")
    users, states = zip(*rows, strict=True)
    times = (
        range(len(rows)) if kind is int else [f"2024-01-{day + 1:02}" for day in range(len(rows))]
    )
    frame = pd.DataFrame(
        {"user": users, "time": pd.to_datetime(list(times)) if kind == "time" else list(times)}
    )
    frame["state"] = pd.Series(states, dtype=object)

    def outcome(data):
        with warnings.catch_warnings(action="ignore"):
            try:
                return listed(read_sequences(data))
            except ValueError as error:
                return re.sub(
                    r"(line|row) \d+ of \S+|\S*/\S+: ", "", str(error).replace("the DataFrame", "")
                )

    expected = outcome(frame)
    for name, write_as in WRITERS.items():
        one = (
            frame.assign(time=frame["time"].astype(str))
            if kind == "time" and name in ("jsonl", "xlsx")
            else frame
        )
        if name == "parquet" and len({*map(type, states)} - {type(None)}) > 1:
            continue
        write_as(folder / name, one)
        assert outcome(folder / name) == expected, name


@pytest.mark.parametrize("known", [1, rows_by_user.KNOWN])
def test_texts_of_parquet_are_read_once_each_and_mean_the_same(tmp_path, monkeypatch, known):
    """By groups of rows with other texts, which are kept as dictionaries of Arrow; texts that do
    not occur in a group are no states."""
    monkeypatch.setattr(rows_by_user, "KNOWN", known)
    states = np.resize(np.array([" x", "z", "y", "NA", "1.0"], dtype=object), 200)
    states[100:] = "y"
    users = np.where(np.arange(200) < 90, "b", "a")
    rows = pd.DataFrame({"user": users, "time": np.arange(200), "state": states})
    path = tmp_path / "rows.parquet"
    rows.to_parquet(path, index=False, row_group_size=40)
    block = next(open_source(path, {"user": "user", "state": "state"}).blocks)
    assert "dictionary" in str(block["user"].dtype)
    assert "dictionary" in str(block["state"].dtype)
    with pytest.warns(UserWarning, match="with state 'NA'"):
        read = read_sequences(path)
    with pytest.warns(UserWarning, match="with state 'NA'"):
        expected = read_sequences(rows)
    assert listed(read) == listed(expected)
    assert read.users.tolist() == expected.users.tolist()
    assert read.labels.tolist() == expected.labels.tolist() == ["1", "x", "y", "z"]
