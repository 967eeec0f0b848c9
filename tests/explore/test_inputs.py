from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tplrepro as tpl
from tplrepro.explore.matrices import MAX_STATES, format_matrix, parse_matrix
from tplrepro.explore.sequences import parse_sequences
from tplrepro.explore.text import MAX_RELEASES, decode, format_budgets, parse_budgets

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
        ("from\\to,home,office\nhome,0.8,0.2\noffice,0.1,0.9", ["home", "office"]),
        ("home 0.8 0.2\noffice 0.1 0.9", ["home", "office"]),
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
    matrix = tpl.TransitionMatrix(tpl.random_matrix(n, seed).probabilities, states=states)
    again = parse_matrix(format_matrix(matrix))
    assert np.array_equal(again.probabilities, matrix.probabilities)
    assert list(again.states) == list(matrix.states)
    assert parse_budgets(format_budgets(budgets), len(budgets)).tolist() == budgets


@given(st.text(max_size=60))
@settings(max_examples=200)
def test_no_text_ends_in_anything_but_a_matrix_or_a_message(text):
    for parse in (parse_matrix, parse_sequences, lambda text: parse_budgets(text, 3)):
        try:
            parse(text)
            message = ";"
        except ValueError as error:
            message = str(error)
        assert ";" in message  # the remedy follows it


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a,b,a\nb,b", [["a", "b", "a"], ["b", "b"]]),
        ("1 2 3 1", [[1, 2, 3, 1]]),
        ("1;2\n2;1", [[1, 2], [2, 1]]),
        ("a,b,,b,a", [["a", "b"], ["b", "a"]]),
        ("a,b,,,\nb,a,,,", [["a", "b"], ["b", "a"]]),
        ("a,b,NaN,b,a", [["a", "b"], ["b", "a"]]),
        ("user,state\nu,a\nv,b\nu,b\nv,b", [["a", "b"], ["b", "b"]]),
        ("time,user,cell\n10,u,5\n9,u,6\n100,u,5", [[6, 5, 5]]),
        ("user,time,location\nu,2020-01-02,a\nu,2020-01-01,b", [["b", "a"]]),
        ("state\na\nb", [["a", "b"]]),
        ("cell,home\nhome,cell", [["cell", "home"], ["home", "cell"]]),
        ("user,state\nu,a\nu,\nu,b\nu,a", [["a"], ["b", "a"]]),
    ],
)
def test_sequences_are_read_from_lines_or_observations(text, expected):
    assert parse_sequences(text) == expected


MISTAKES = {
    parse_matrix: [
        ("", "at least one line, found no text; give one row of a matrix"),
        (" \n,,\n\xa0\n# only a comment", "at least one line, found no text"),
        ("abc", "entries must be numbers, found 'abc' in line 1, entry 1"),
        ("0.8,0.2\n0.1,?", "entries must be numbers, found '\\?' in line 2, entry 2; give probabilities"),
        ("0.5,,0.5\n1,0,0\n0,0,1", "entries must be numbers, found nothing in line 1, entry 2"),
        ("0.8,0.2\n0.1,0.9\n0.5,0.5", r"must be square, found shape \(3, 2\)"),
        ("0.8,0.2\n1", "each row must have 2 entries like the first, found 1 in line 2"),
        ("0.8,0.3\n0.1,0.9", 'rows must sum to 1, found 1.1 in row 1; correct it, or tick "divide each row'),
        ("nan,1\n0.5,0.5", "must be finite numbers, found nan in row 0"),
        ("1.5,-0.5\n0.5,0.5", "must not be negative, found -0.5"),
        ("a,a\n0.5,0.5\n0.5,0.5", "states must be distinct, found 'a' more than once"),
        (",a,b\nb,0.5,0.5\na,0.5,0.5", "must name the same states, found .'b', 'a'. and .'a', 'b'.; sort them"),
        ("a,b,c\n0.5,0.5\n0.5,0.5", "must name 2 columns, found 3 labels; name each once"),
        ("\n".join(["1"] * (MAX_STATES + 1)), f"of states must be at most {MAX_STATES} here, found {MAX_STATES + 1}"),
    ],
    partial(parse_matrix, normalize=True): [("0,0\n1,9", "positive, finite sum to be normalized, found 0 in row 0")],
    parse_sequences: [
        ("state,hour\na,7\nb,9", "must stand alone or beside one named user or time, found state, hour; name"),
        ("a\nb\n", "need at least one step, found 2 states apart; give one a line"),
        (",".join(f"s{k}" for k in range(MAX_STATES + 1)), f"of states must be at most {MAX_STATES} here, found"),
    ],
    partial(parse_budgets, horizon=3): [
        ("0.1, 0.2", "one budget a release, found 2 for T = 3; edit or reset them"),
        ("0.1, much, 0.2", "budgets must be numbers in nats, .* found 'much' as entry 2"),
        ("0.1, 0, 0.2", "epsilons must be a finite privacy budget in nats, greater than 0; found 0"),
        (f"0.1 x {10**12}", f"repeated at most {MAX_RELEASES} times"),
        ("0.1 x 0", "budgets must be numbers in nats"),
        ("0.1*y", "budgets must be numbers in nats"),
    ],
    partial(decode, name="m.png"): [
        (b"\x89PNG\xff", "m.png must be text in UTF-8, found byte 0x89; save"),
        (b"a\0b", "found binary content"),
        (b" \n", "must not be empty"),
    ],
}


@pytest.mark.parametrize(
    ("parse", "text", "message"), [(parse, *case) for parse, cases in MISTAKES.items() for case in cases]
)
def test_what_is_wrong_is_said(parse, text, message):
    with pytest.raises(ValueError, match=message):
        parse(text)


def test_budgets_rows_to_divide_and_files_are_written_in_several_ways():
    assert parse_budgets("0.5 0.2*3;0.7", 5).tolist() == [0.5, 0.2, 0.2, 0.2, 0.7]
    assert parse_budgets("1e-3 × 2\n0.25", 3).tolist() == [1e-3, 1e-3, 0.25]
    assert parse_matrix("4,1\n1,9", normalize=True).probabilities.tolist() == ROWS
    assert {decode("café,1".encode(name)) for name in ("utf-8", "utf-8-sig", "utf-16")} == {"café,1"}
