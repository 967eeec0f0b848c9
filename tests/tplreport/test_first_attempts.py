"""What people type at first, and the remedy that they are told."""

import numpy as np
import pandas as pd
import pytest

import tplreport as tr
from tplreport.reading.matrices import parse_chain

P = [[0.8, 0.2], [0.1, 0.9]]
VISITS = pd.DataFrame({"user": [1, 1], "time": [0, 1], "state": ["a", "b"]})


def test_one_column_is_named_by_its_name():
    with pytest.raises(ValueError, match=r"state must be the .*, found \['state'\]; .*'first..la"):
        tr.read_sequences(VISITS, state=["state"])
    with pytest.raises(ValueError, match=r"user must be the .*, found \['user'\]; give its name$"):
        tr.read_sequences(VISITS, user=["user"])


def test_positions_without_cells_name_the_option():
    fixes = VISITS.drop(columns="state").assign(Lat=[41.92, 41.9], lon=[12.55, 12.49])
    message = "one column of state, .*, or give cell_km= for cells of the positions in 'Lat' and"
    with pytest.raises(ValueError, match=message):
        tr.read_sequences(fixes)
    assert tr.read_sequences(fixes, cell_km=1.0).lengths.tolist() == [2]
    with pytest.raises(ValueError, match="one column of state, .*'first..last'$"):
        tr.read_sequences(VISITS.drop(columns="state").assign(lat=[41.92, 41.9]))


def test_rows_without_a_time_end_a_sequence_in_one_sentence():
    lacking = VISITS.assign(time=["2024-01-01", None])
    message = r"missing='drop' \(a row without a time ends a sequence where it stands in the file\)"
    with pytest.raises(ValueError, match=message):
        tr.read_sequences(lacking)


def test_states_that_are_held_are_told_without_words_of_python():
    rows = VISITS.assign(time=pd.to_datetime(["2024-01-01 00:00", "2024-01-01 03:00"]))
    with pytest.warns(UserWarning, match="assumed, not observed; give a shorter one, or none$"):
        tr.read_sequences(rows, step="1h", max_gap="5h")


def test_a_matrix_is_read_as_r_prints_it():
    printed = "     [,1] [,2]\n[1,]  0.8  0.2\n[2,]  0.1  0.9\n"
    assert parse_chain(printed).toarray().tolist() == P


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("80,20\n10,90", "found 100 in line 1; .* divide each row by its sum if these are counts"),
        (
            "hour,home,work\n0,1,0\n0,0,1\n1,0.8,0.2\n1,0.1,0.9",
            "or if this is a cycle, call its first column phase, in place of 'hour'$",
        ),
        (
            "from,to,p\nhome,home,.8\nhome,work,.2\nwork,home,.1\nwork,work,.9",
            "found 'from' in line 1, entry 1; give such as 0.25 or 1/4$",
        ),
    ],
)
def test_what_is_no_matrix_is_told_how_to_become_one(text, message):
    with pytest.raises(ValueError, match=message):
        parse_chain(text)


def test_a_forgotten_start_is_named(tmp_path):
    settings = {"alpha": 1.0, "sensitivity": 2, "floor": 0.1}
    with pytest.raises(TypeError, match="found forward= alone; give start='habit', 'any' or a law"):
        tr.Publisher(tmp_path / "p.sqlite", forward=P, **settings)
    tr.Publisher(tmp_path / "p.sqlite", forward=P, start="habit", **settings)


def test_a_forgotten_sensitivity_is_not_found_as_a_number(tmp_path):
    with pytest.raises(ValueError, match="sensitivity must be given, found none; give how much"):
        tr.Publisher(tmp_path / "p.sqlite", forward=P, start="habit", alpha=1.0, floor=0.1)


@pytest.mark.parametrize("parse_dates", [False, ["day"]])
def test_times_in_a_column_are_told_to_be_the_index(tmp_path, parse_dates):
    (tmp_path / "counts.csv").write_text("day,home\n2024-05-01,105\n2024-05-02,98\n")
    settings = {"alpha": 1.0, "sensitivity": 2, "floor": 0.1, "step": "1D"}
    publisher = tr.Publisher(tmp_path / "p.sqlite", forward=P, start="habit", **settings)
    counts = pd.read_csv(tmp_path / "counts.csv", parse_dates=parse_dates)
    with pytest.raises(ValueError, match=r"column 'day'; .*, give counts.set_index\('day'\)$"):
        publisher.publish_table(counts)
    assert len(publisher.publish_table(counts.set_index("day"))) == 2


def test_another_file_is_told_to_be_none_of_a_publisher(tmp_path):
    (tmp_path / "counts.csv").write_text("time,home\n" * 100)
    message = "file is not a database.*; check that this is the name of a publisher's file, or re"
    with pytest.raises(OSError, match=message):
        tr.Publisher(tmp_path / "counts.csv")


def test_states_to_learn_are_a_list(tmp_path):
    walks = [np.array(["a", "b", "a"])]
    with pytest.raises(ValueError, match="states must be a list of labels, found a text; give"):
        tr.learn_privately(
            walks, path=tmp_path / "m.json", states="a,b", steps_per_user=2, epsilon=1.0
        )
