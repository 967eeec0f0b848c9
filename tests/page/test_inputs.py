"""Matrices as they are typed or uploaded, and what is said about mistakes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from page.matrices import MAX_STATES, parse_cycle

ROWS = [[0.8, 0.2], [0.1, 0.9]]
UNNAMED = [
    "0.8,0.2\n0.1,0.9",
    "0.8, 0.2,\n\n# comment\n0.1, 0.9,\n",
    "0.8 0.2\n.1 .9",
    "0.8\t0.2\n0.1\t0.9",
]
UNNAMED += [
    "0.8;0.2\n0.1;0.9",
    "4/5, 1/5\n1/10, 9/10",
    "[[0.8, 0.2], [0.1, 0.9]]",
    "[0.8 0.2; 0.1 0.9]",
]


@pytest.mark.parametrize(
    ("text", "states"),
    [
        *((text, [0, 1]) for text in UNNAMED),
        ("home,office\n0.8,0.2\n0.1,0.9", ["home", "office"]),
        (",home,office\nhome,0.8,0.2\noffice,0.1,0.9", ["home", "office"]),
        (",0,1\n0,0.8,0.2\n1,0.1,0.9", [0, 1]),
        ("1,2\n0.8,0.2\n0.1,0.9", [1, 2]),
        ('"a, b",c\n0.8,0.2\n0.1,0.9', ["a, b", "c"]),
    ],
)
def test_a_matrix_is_read_from_many_layouts(text, states):
    (matrix,) = parse_cycle(text)
    assert list(matrix.states) == states
    assert np.allclose(matrix.probabilities, ROWS, rtol=1e-15)


@given(st.text(alphabet="0.5,;/ \n\tab[]\"'#-1²", max_size=40) | st.text(max_size=40))
@settings(max_examples=300)
def test_any_text_gives_a_matrix_or_an_error(text):
    try:
        parse_cycle(text)
    except ValueError as error:
        assert ";" in str(error)  # noqa: PT017 - the remedy follows it


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (" \n,,\n# only a comment", "there must be 1 to 300 rows here, found 0; give one per line"),
        ("O.8,0.2\n0.1,0.9", "entries must be .*, found 'O.8' in line 1, entry 1; give such as"),
        ("0.8,0.2\n0.1,0.9\n0.5,0.5", r"must be square, found shape \(3, 2\)"),
        ("0.8,0.2\n1", "each row must have 2 entries, found 1 in line 2"),
        ("# P\n0.8,0.2\n0.1,1", "rows must sum to 1, found 1.1 in line 3; correct it"),
        ("1.5,-0.5\n0.5,0.5", "must be numbers, at least 0, found '-0.5' in line 1, entry 2"),
        ("a,a\n0.5,0.5\n0.5,0.5", "states must be distinct, found 'a' more than once"),
        (
            ",a,b\nb,0.5,0.5\na,0.5,0.5",
            "must name the same states in the same order, found .'b', 'a'. and .'a', 'b'.",
        ),
        (
            "\n".join(["1"] * (MAX_STATES + 2)),
            f"1 to {MAX_STATES} rows here, found {MAX_STATES + 2}",
        ),
        (
            "phase\n" + "\n".join(["0,1"] * (MAX_STATES + 2)),
            f"1 to {MAX_STATES} rows here, found {MAX_STATES + 2}",
        ),
        ("phase,a,b\n0,0.5,0.5", "phase '0': "),
        ("phase,a,b\n1,1,0\n1,0,1\n0,1,0\n0,0,1", "must count from 0 on, found 1, 0"),
    ],
)
def test_each_mistake_in_a_matrix_is_named(text, message):
    with pytest.raises(ValueError, match=message):
        parse_cycle(text)
