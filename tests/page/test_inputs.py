from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tplrepro as tpl
from page.matrices import MAX_STATES, format_matrix, parse_matrix, reverse
from page.text import MAX_RELEASES, decode, format_budgets, parse_budgets

ROWS = [[0.8, 0.2], [0.1, 0.9]]
UNNAMED = ["0.8,0.2\n0.1,0.9", "0.8, 0.2,\n\n# comment\n0.1, 0.9,\n", "0.8 0.2\n.1 .9", "0.8\t0.2\n0.1\t0.9"]
UNNAMED += ["0,8;0,2\n0,1;0,9", "4/5, 1/5\n1/10, 9/10", "[[0.8, 0.2], [0.1, 0.9]]", "[0.8 0.2; 0.1 0.9]"]
UNNAMED += ["np.array([[0.8, 0.2],\n       [0.1, 0.9]])", "P = [0.8, 0.2;\n 0.1, 0.9]"]


@pytest.mark.parametrize(
    ("text", "states"),
    [
        *((text, [0, 1]) for text in UNNAMED),
        ("home,office\n0.8,0.2\n0.1,0.9", ["home", "office"]),
        (",home,office\nhome,0.8,0.2\noffice,0.1,0.9", ["home", "office"]),
        (",0,1\n0,0.8,0.2\n1,0.1,0.9", [0, 1]),
        ("1,2\n0.8,0.2\n0.1,0.9", [1, 2]),
        ("from,7,8\n7,0.8,0.2\n8,0.1,0.9", [7, 8]),
        ('"a, b",c\n0.8,0.2\n0.1,0.9', ["a, b", "c"]),
    ],
)
def test_a_matrix_is_read_from_many_layouts(text, states):
    matrix = parse_matrix(text)
    assert list(matrix.states) == states
    assert np.allclose(matrix.probabilities, ROWS, rtol=1e-15)


@settings(max_examples=30)
@given(st.integers(2, 6), st.integers(0, 10**6), st.booleans(), st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=20))
def test_matrices_and_budgets_are_read_back_exactly(n, seed, named, budgets):
    states = [f"place {k}" for k in range(n)] if named else None
    matrix = tpl.TransitionMatrix(
        tpl.TransitionMatrix.random(n, rng=np.random.default_rng(seed)).probabilities, states=states
    )
    again = parse_matrix(format_matrix(matrix))
    assert np.array_equal(again.probabilities, matrix.probabilities)
    assert list(again.states) == list(matrix.states)
    assert parse_budgets(format_budgets(budgets), len(budgets)).tolist() == budgets


@given(st.text(max_size=60))
@settings(max_examples=200)
def test_no_text_ends_in_anything_but_a_matrix_or_a_message(text):
    for parse in (parse_matrix, lambda text: parse_budgets(text, 3)):
        try:
            parse(text)
            message = ";"
        except ValueError as error:
            message = str(error)
        assert ";" in message  # the remedy follows it


MISTAKES = {
    parse_matrix: [
        ("", "at least one line, found no text; give one row of a matrix"),
        (" \n,,\n\xa0\n# only a comment", "at least one line, found no text"),
        ("O.8,0.2\n0.1,0.9", "entries must be .*, found 'O.8' in line 1, entry 1; give probabilities"),
        ("0.5,,0.5\n1,0,0\n0,0,1", "entries must be .*, found '' in line 1, entry 2"),
        ("0.8,0.2\n0.1,0.9\n0.5,0.5", r"must be square, found shape \(3, 2\)"),
        ("0.8,0.2\n1", "each row must have 2 entries like the first, found 1 in line 2"),
        ("# P\n0.8,0.2\n0.1,1", 'rows must sum to 1, found 1.1 in line 3; correct it, or tick "divide each row'),
        ("nan,1\n0.5,0.5", "must be numbers, at least 0, found 'nan' in line 1, entry 1"),
        ("1.5,-0.5\n0.5,0.5", "must be numbers, at least 0, found '-0.5' in line 1, entry 2"),
        ("a,a\n0.5,0.5\n0.5,0.5", "states must be distinct, found 'a' more than once"),
        (
            ",a,b\nb,0.5,0.5\na,0.5,0.5",
            "must name the same states in the same order, found .'b', 'a'. and .'a', 'b'.; reorder them",
        ),
        ("\n".join(["1"] * (MAX_STATES + 1)), f"of states must be at most {MAX_STATES} here, found {MAX_STATES + 1}"),
    ],
    partial(parse_matrix, normalize=True): [
        ("1,9\n0,0", "must have a sum greater than 0, found 0 in line 2; correct it$")
    ],
    partial(parse_budgets, horizon=3): [
        ("0.1, 0.2", "one budget per release, found 2 for T = 3; edit them"),
        ("0.1, much, 0.2", "budgets must be numbers greater than 0, .* found 'much' as entry 2"),
        ("0.1, 0, 0.2", "budgets must be numbers greater than 0, .* found '0' as entry 2; separate"),
        (f"0.1 x {10**12}", f"repeated at most {MAX_RELEASES} times"),
        ("0.1*y", "budgets must be numbers greater than 0"),
    ],
    partial(decode, name="m.png"): [
        (b"\x89PNG\xff", "m.png must be text in UTF-8, found data that are not UTF-8 text; save"),
        (b"PAR1\x15\xff", "found a Parquet file; save it as CSV in UTF-8"),
        (b" \n", "found an empty file"),
    ],
}


@pytest.mark.parametrize(
    ("parse", "text", "message"), [(parse, *case) for parse, cases in MISTAKES.items() for case in cases]
)
def test_what_is_wrong_is_said(parse, text, message):
    with pytest.raises(ValueError, match=message):
        parse(text)


def test_where_a_reversal_is_not_defined_the_page_says_what_it_can_do():
    for rows in ([[0.8, 0.2], [0.0, 1.0]], [[0.5, 0.25, 0.25], [0, 1, 0], [0, 0, 1]]):
        with pytest.raises(ValueError, match='; give the backward matrix itself, or choose "same as forward"$'):
            reverse(tpl.TransitionMatrix(rows))


def test_budgets_rows_to_divide_and_files_are_written_in_several_ways():
    assert parse_budgets("0.5 0.2*3;0.7", 5).tolist() == [0.5, 0.2, 0.2, 0.2, 0.7]
    assert parse_budgets("1e-3 × 2\n0.25", 3).tolist() == [1e-3, 1e-3, 0.25]
    assert parse_matrix("4,1\n1,9", normalize=True).probabilities.tolist() == ROWS
    assert {decode("café,1".encode(name), "m.csv") for name in ("utf-8", "utf-8-sig")} == {"café,1"}
