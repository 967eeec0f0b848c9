"""The one reader of matrices and of columns of numbers: each layout, and what may be two things."""

from datetime import timedelta

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tplreport.reading.matrices import (
    RECOMMENDED,
    parse_by_phase,
    parse_chain,
    parse_law,
    parse_matrix,
    parse_releases,
    read_chain,
    read_releases,
    read_text,
)
from tplreport.reading.text_files import DataFormatError

ROWS = [[0.8, 0.2], [0.1, 0.9]]


@pytest.mark.parametrize(
    ("text", "states", "rows"),
    [
        ("1,0\n0,1", [0, 1], np.eye(2)),
        ("1;0\n0;1", [0, 1], np.eye(2)),
        ("0,8;0,2\n0,1;0,9", [0, 1], ROWS),
        ("0,8\t0,2\n0,1\t0,9", [0, 1], ROWS),
        ("# moves\nhome,work\n0.8,0.2\n# stays\n0.1,0.9\n", ["home", "work"], ROWS),
        ("St. Pauli;Altona\n0,8;0,2\n0,1;0,9", ["St. Pauli", "Altona"], ROWS),
        ("home,0.8,0.2\nwork,0.1,0.9", ["home", "work"], ROWS),
        ("home,work\nhome,0.8,0.2\nwork,0.1,0.9", ["home", "work"], ROWS),  # as R writes it
        ("from,home,work\nhome,0.8,0.2\nwork,0.1,0.9", ["home", "work"], ROWS),
        (",0,1\n0,0.8,0.2\n1,0.1,0.9", [0, 1], ROWS),
        ("from,0,1\n0,0.8,0.2\n1,0.1,0.9", [0, 1], ROWS),
        ("0,1,2\n1,0,0\n0,1,0\n0,0,1", [0, 1, 2], np.eye(3)),
        ("0-9,10-19\n0.8,0.2\n0.1,0.9", ["0-9", "10-19"], ROWS),
        ("home\n1", ["home"], [[1.0]]),
        ("0.8 0.2\n\xa0\n0.1 0.9", [0, 1], ROWS),  # a line of a blank that is not broken
    ],
)
def test_each_layout_of_a_matrix_is_read(text, states, rows):
    matrix = parse_matrix(text)
    assert list(matrix.states) == states
    np.testing.assert_array_equal(matrix.probabilities, rows)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0,1\n0.8,0.2\n0.1,0.9", "may be the names of 2 states, or a row of a matrix that lacks"),
        ("1,0\n0.5,0.5\n0,1", "write names in the first cell of each line, too, below ',1,0'"),
        ("x,0\n0,1", "of one state called '0', or of two with a mistyped first entry"),
        (",0\n0,1", "of one state called '0', or of two with a mistyped first entry"),
        ("0\n0,1", "of one state called '0'"),
        ("O.8,0.2\n0.2,0.8", "found 'O.8' in line 1"),
        ("home,0.2\n0.1,0.9", "found 'home' in line 1"),
        ("NA,home\n0.8,0.2\n0.1,0.9", "found 'NA' in line 1"),
        ("nan,inf\n0.8,0.2\n0.1,0.9", "found 'nan' in line 1"),
        ("0,8;0.2\n0,1;0.9", "decimals must be written in one way, found '0,8' and '0.2'"),
        ("0,8 0,2\n0,1 0,9", "found '8 0' in line 1"),
        ("1_0,0\n1,0", "found '1_0' in line 1"),
        ("", "there must be 1 row or more, found 0"),
        ("\xa0", "there must be 1 row or more, found 0"),
        ("0,8,0,2\n0,1,0,9", "found 4 numbers in each of 2 rows; if their commas are decimal"),
        ("80%;20%\n10%;90%", "found '80%' in line 1"),
        ("50%,0.5\n0.5,0.5", "found '50%' in line 1"),
        ("0.8,0.2", "must be square"),
        (",1,0\n0,0.2,0.8\n1,0.9,0.1", r"same order, found \['0', '1'\] and \['1', '0'\]; reorder"),
        ("from,1,0\n0,0.2,0.8\n1,0.9,0.1", r"same order, found \['0', '1'\] and \['1', '0'\]"),
        ("1,0\n0,0.2,0.8\n1,0.9,0.1", r"same order, found \['0', '1'\] and \['1', '0'\]; reor"),
        ("2;1\n1;0,2;0,8\n2;0,9;0,1", r"same order, found \['1', '2'\] and \['2', '1'\]"),
        (",1,2\n0,0.2,0.8\n1,0.9,0.1", r"must name the same states .* found \['0', '1'\] and"),
        ("b,a\na,0.2,0.8\nb,0.9,0.1", r"same order, found \['a', 'b'\] and \['b', 'a'\]"),
        (",0.5\n0.2,0.8", "must be numbers, at least 0, found '' in line 1, entry 1"),
        (",1,0\n0,1,0\n0,0,1", "must be numbers, at least 0, found '' in line 1, entry 1"),
        ("1\n0.2,0.8", "the names of 1 state, or a row of a matrix"),
    ],
)
def test_a_text_that_is_no_matrix_or_may_be_read_as_two_is_an_error(text, message):
    with pytest.raises(ValueError, match=message):
        parse_matrix(text)


@pytest.mark.parametrize("names", ["", "home,work\n"])
def test_a_transposed_matrix_is_called_so(names):
    transposed = names + "0.8,0.1\n0.2,0.9"
    line = 1 + bool(names)
    with pytest.raises(ValueError, match=f"found 0.9 in line {line}, while each column does, so "):
        parse_matrix(transposed)
    for other in ("8,1\n2,9", "0.8,0.1\n0.1,0.9", "0.8,0.1\n0.20001,0.9"):
        with pytest.raises(ValueError, match="correct it, or divide each row by its sum"):
            parse_matrix(other)
    with pytest.raises(ValueError, match="phase '1': rows must .* looks transposed; swap its rows"):
        parse_chain("phase,a,b\n0,1,0\n0,0,1\n1,0.8,0.1\n1,0.2,0.9")


@given(
    st.integers(2, 5),
    st.sampled_from([(", ", "."), (",", "."), (";", ","), ("\t", ","), (" ", "."), ("; ", ".")]),
    st.sampled_from(["none", "above", "beside", "both", "corner"]),
    st.integers(0, 1000),
)
@settings(max_examples=200)
def test_every_layout_is_read_as_it_was_written_or_refused(n, signs, names, seed):
    mark, point = signs
    rng = np.random.default_rng(seed)
    values = rng.dirichlet(np.ones(n), n) if seed % 2 else rng.permutation(np.eye(n))
    labels = [f"place-{k}" for k in range(n)] if seed % 3 else [str(k) for k in range(n)]
    lines = [[f"{one!r}".replace(".", point) for one in row] for row in values.tolist()]
    if names in ("beside", "both", "corner"):
        lines = [[label, *line] for label, line in zip(labels, lines, strict=True)]
    if names in ("above", "both"):
        lines = [labels, *lines]
    if names == "corner":
        lines = [["from", *labels], *lines]
    text = "\n".join(mark.join(line) for line in lines)
    try:
        matrix = parse_matrix(text)
    except ValueError:
        assert not seed % 3  # only names that are numbers
        return
    np.testing.assert_allclose(matrix.probabilities, values, rtol=1e-15)
    shown = labels if names != "none" else [str(k) for k in range(n)]
    assert [str(state) for state in matrix.states] == shown


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("2.0\n0.1\n0.1", [2.0, 0.1, 0.1]),
        ("2\n1\n", [2.0, 1.0]),
        ("# nats\n.5\n1e-1\n1/4", [0.5, 0.1, 0.25]),
        ("epsilon\n0.5\n0.1", [0.5, 0.1]),
        ("ε\n0.5", [0.5]),
        (",epsilon\n0,0.5\n1,0.1", [0.5, 0.1]),
        ("t;epsilon\n1;0,5\n2;0,1", [0.5, 0.1]),
        (f't,α/T,"{RECOMMENDED}smallest error, against all"\n1,0.3,0.5\n2,0.3,0.1', [0.5, 0.1]),
        (f'epsilon,"{RECOMMENDED}smallest error, against all"\n0.3,0.5', [0.3]),
        ('"epsilon"\n0.5', [0.5]),
    ],
)
def test_each_layout_of_a_column_is_read(text, values):
    assert parse_releases(text).column("epsilon").tolist() == values


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2,0\n0,1\n0,1", "which may be 2 numbers, or one with decimal commas"),
        ("epsilon\n0,5\n0,1", "found 2 in line 2; if its commas are decimal, write points"),
        ("O.5\n0.1", "the first line must be a number or a heading .* found 'O.5', which may be"),
        ("2,O\n0.1", "which may be 2 numbers|found 1 in line 2"),
        ("2 0\n0.1", "found '2 0', which may be either"),
        ("5 %\n0.1", "found '5 %', which may be either"),
        ("NA\n0.1", "found 'NA', which may be either"),
        ("\u00bd\n0.1\n0.1", "found '\u00bd', which may be either"),
        ("inf\n0.1", "found 'inf', which may be either"),
        ("-Infinity\n0.1", "found '-Infinity', which may be either"),
        ("l\n0.1", "found 'l', which may be either"),
        ("epsilon\nNA\n0.1", "found 'NA' in line 2; correct it"),
        ("epsilon\n", "numbers below 'epsilon', found none"),
        ("noise_multiplier\n7.1\n7.1", "one column epsilon.*, found 'noise_multiplier'"),
        ("t,a,b\n1,0.5,0.1", "there must be one column epsilon, or one .*found 't', 'a', 'b'"),
        ("epsilon,epsilon\n1,2", "there must be one column epsilon"),
        ("t,0.5\n1,0.1", "each of several columns must have a heading, found 't,0.5'"),
        ("t,epsilon\n2,0.5\n1,0.1", "must count releases one by one, found '2' in line 2"),
        ("", "found no line"),
        ("t\n1\n2", "there must be one column epsilon, or .*, found 't'"),
        ("Date\n1\n2", "there must be one column epsilon, or .*, found 'Date'"),
        ("time,count,epsilon\n1,1,0.1\n2,25,0.1", "a count of '25' in line 3; write a line for"),
    ],
)
def test_an_ambiguous_column_is_an_error(text, message):
    with pytest.raises(ValueError, match=message):
        parse_releases(text).column("epsilon")


def test_noise_multipliers_are_not_read_as_budgets():
    assert parse_releases("noise_multiplier\n7.1").column("noise_multiplier").tolist() == [7.1]
    with pytest.raises(ValueError, match="one column noise_multiplier, found 'epsilon'"):
        parse_releases("epsilon\n0.1").column("noise_multiplier")


@given(st.text(alphabet='0.5,;\n\tae"#-1²', max_size=30) | st.text(max_size=30))
@settings(max_examples=200)
def test_any_text_gives_numbers_or_an_error_with_a_remedy(text):
    for parse in (parse_matrix, lambda text: parse_releases(text).column("epsilon")):
        try:
            parse(text)
        except ValueError as error:
            assert ";" in str(error)  # noqa: PT017 - the remedy follows it


def test_files_are_read_in_any_encoding_and_named_in_errors(tmp_path):
    path = tmp_path / "moves.csv"
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        path.write_text("zu Hause;Büro\n0,8;0,2\n0,1;0,9", encoding=encoding)
        assert read_chain(path).states == ["zu Hause", "Büro"]
    path.write_text("x,0.2\n0.1,0.9")
    with pytest.raises(DataFormatError, match=r"moves.csv: entries must be numbers.* found 'x'"):
        read_chain(path)
    path.write_bytes(b"zu Hause;B\xfcro\n0,8;0,2\n0,1;0,9")
    with pytest.raises(DataFormatError, match="must be text in UTF-8, found .*; export it"):
        read_text(path)
    pd.Series([0.5, 0.1], name="epsilon").to_csv(path)
    assert read_releases(path).column("epsilon").tolist() == [0.5, 0.1]


@pytest.mark.parametrize(
    ("table", "found"),
    [
        ("epsilon\n", "there must be numbers below 'epsilon', found none"),
        ("t,phase,epsilon\n1,18:00\n", "each line must have as many cells as line 1"),
        ("t;epsilon\n1;0,5\n2;0.5\n", "decimals must be written in one way"),
    ],
)
def test_errors_of_a_table_of_releases_name_its_file(table, found, tmp_path):
    path = tmp_path / "plan.csv"
    path.write_text(table)
    with pytest.raises(DataFormatError, match=rf"plan\.csv: {found}"):
        read_releases(path).column("epsilon")
    if "phase" in table:
        with pytest.raises(DataFormatError, match=rf"plan\.csv: {found}"):
            read_releases(path).first_phase  # noqa: B018 - it is a property that reads


NIGHT, DAY = [[0.98, 0.02], [0.03, 0.97]], [[0.7, 0.3], [0.4, 0.6]]
ROWS = "00:00{0},.98,.02\n00:00{1},.03,.97\n12:00{0},.7,.3\n12:00{1},.4,.6\n"
SEMICOLONS = ROWS.format(",home", ",work").replace(",", ";")


@pytest.mark.parametrize(
    ("text", "states"),
    [
        ("phase,home,work\n" + ROWS.format("", ""), ["home", "work"]),
        ("phase,from,home,work\n" + ROWS.format(",home", ",work"), ["home", "work"]),
        (
            "phase;from;home;work\n" + ROWS.format(",home", ",work").replace(",", ";"),
            ["home", "work"],
        ),
        ("phase\n" + ROWS.format("", ""), [0, 1]),
        ("phase,,home,work\n" + ROWS.format(",home", ",work"), ["home", "work"]),
        ("# by hour\nphase,1,2\n" + ROWS.format("", ""), [1, 2]),
    ],
)
def test_a_cycle_is_read_with_and_without_names(text, states):
    cycle = parse_chain(text)
    assert [matrix.toarray().tolist() for matrix in cycle] == [NIGHT, DAY]
    assert (list(cycle.states), cycle.phases, cycle.period) == (states, ["00:00", "12:00"], "day")


@pytest.mark.parametrize(
    ("phases", "read", "period"),
    [
        (("0", "1"), [0, 1], None),
        (("night", "day"), ["night", "day"], None),
        (("12:00", "00:00"), ["12:00", "00:00"], "day"),
        (("00", "01"), [0, 1], None),
    ],
)
def test_phases_keep_their_order(phases, read, period):
    rows = ROWS.replace("00:00{", "A{").replace("12:00{", "B{").format("", "")
    text = "phase,home,work\n" + rows.replace("A", phases[0]).replace("B", phases[1])
    cycle = parse_chain(text)
    assert (cycle.phases, cycle.period) == (read, period)
    assert cycle[0].toarray().tolist() == NIGHT


def test_days_of_the_week_are_phases_by_the_clock():
    days = ("Sat", "Sun", "Mon", "Tue", "Wed", "Thu", "Fri")
    cycle = parse_chain("phase,a,b\n" + "".join(f"{day},1,0\n{day},0,1\n" for day in days))
    assert (cycle.period, cycle.phases[0]) == ("week", "Sat 00:00")
    assert cycle.begins == timedelta(days=5)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("phase,home\nhome,1", "may be of one state, below a corner .* or a cycle of one phase"),
        ("phase,a,b\n0,1,0\n1,1,0\n0,0,1\n1,0,1", "must follow each other, found '0' in several"),
        ("phase,a,b\n0,1,0\n1,0,1", "phase '0': "),
        (
            "phase,a,b\n0,1,0\n0,0,1\n1,1,0\n1,0,.5",
            "phase '1': rows must sum to 1, found 0.5 in li",
        ),
        ("phase,a,b\n1,1,0\n1,0,1\n2,1,0\n2,0,1", "must count from 0 on, found 1, 2, the first of"),
        ("phase,a,b\n08:00,1,0\n08:00,0,1\n09:00,1,0\n09:00,0,1", "those of a whole day or week"),
        ("phase,a,b\n8:00,1,0\n8:00,0,1\n20:00,1,0\n20:00,0,1", "those of a whole day or week"),
        ("phase,a,b", "must be rows below 'phase', found none"),
        ("phase,from,a,b\n0,a,1,0\n0,b,0,1\n1,b,1,0\n1,a,0,1", "same states in the same order"),
    ],
)
def test_a_cycle_that_may_be_misread_is_refused(text, said):
    with pytest.raises(ValueError, match=said):
        parse_chain(text)


def test_a_corner_called_phase_is_one_matrix():
    assert parse_chain("phase,solid,liquid\nsolid,.9,.1\nliquid,.2,.8").states == [
        "solid",
        "liquid",
    ]


def test_a_folder_has_a_file_for_each_phase(tmp_path):
    (tmp_path / ".hidden").write_text("")
    for number in range(12):
        (tmp_path / f"{number}.csv").write_text(f"{number / 12},{1 - number / 12}\n0,1\n")
    cycle = read_chain(tmp_path)
    assert [matrix.toarray()[0, 0] for matrix in cycle] == [number / 12 for number in range(12)]
    for number in range(12):
        (tmp_path / f"{number}.csv").rename(tmp_path / f"{2 * (11 - number):02d}:00.csv")
    by_clock = read_chain(tmp_path)
    assert (by_clock.period, by_clock[0].toarray()[0, 0]) == ("day", 11 / 12)
    (tmp_path / "00:00.csv").rename(tmp_path / "night.csv")
    with pytest.raises(DataFormatError, match="whose order is not known; rename them such as 0"):
        read_chain(tmp_path)
    (tmp_path / "night.csv").rename(tmp_path / "readme.txt")
    with pytest.raises(DataFormatError, match="a CSV file for each phase, found readme.txt"):
        read_chain(tmp_path)


@pytest.mark.parametrize(
    ("text", "states", "law"),
    [
        ("home,0.9\nwork,0.1", ["home", "work"], [0.9, 0.1]),
        ("state;p\nwork;0,1\nhome;0,9", ["home", "work"], [0.9, 0.1]),
        ("0.9\n0.1", range(2), [0.9, 0.1]),
        ("1,0.1\n0,0.9", range(2), [0.9, 0.1]),
    ],
)
def test_a_law_names_each_state(text, states, law):
    assert parse_law(text, states).tolist() == law


@pytest.mark.parametrize("text", ["0.9\n0.1", "home,0.9", "home,.9\nwork,.1\nhome,0", ".9,.1", ""])
def test_a_law_that_leaves_a_state_open_is_refused(text):
    with pytest.raises(ValueError, match="a line for each state, with its name and probability"):
        parse_law(text, ["home", "work"])


def test_a_number_for_each_phase_is_one():
    table = "t,phase,epsilon,bpl\n1,00:00,0.1,0.1\n2,12:00,0.2,0.3\n3,00:00,0.1,0.4\n"
    assert parse_by_phase(table, "epsilon") == {"00:00": 0.1, "12:00": 0.2}
    with pytest.raises(ValueError, match="one epsilon, found 0.1 and 0.3 for '00:00' in line 5"):
        parse_by_phase(table + "4,00:00,0.3,0.3\n", "epsilon")
    with pytest.raises(ValueError, match="a column phase and a column epsilon, found 't', 'ep"):
        parse_by_phase("t,epsilon\n1,0.1", "epsilon")


def test_a_plan_of_one_time_has_a_first_phase():
    assert parse_releases("t,phase,epsilon\n1,18:00,0.2\n").first_phase == "18:00"
    assert parse_releases("t,phase,epsilon\n").first_phase is None
    assert parse_releases("t,epsilon\n1,0.2\n").first_phase is None
    assert parse_releases("").first_phase is None


def test_a_table_of_releases_has_its_times_in_a_column_of_a_usual_name():
    dated = parse_releases("n,Date,epsilon\n1,2024-03-04,0.2\n2,2024-03-05,0.1\n")
    assert dated.heading_of_times == "Date"
    assert dated.cells("Date") == ["2024-03-04", "2024-03-05"]
    assert parse_releases("t,epsilon\n1,0.2\n").heading_of_times is None
    assert parse_releases("0.2\n0.1\n").heading_of_times is None


def test_numbers_above_a_matrix_name_states_unless_they_may_be_probabilities():
    assert parse_matrix("0,2\n0.8,0.2\n0.1,0.9").states == [0, 2]
    with pytest.raises(ValueError, match="must be names or probabilities, found '0,1'"):
        parse_matrix("0,1\n0.8,0.2\n0.1,0.9")
