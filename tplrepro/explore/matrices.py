"""Matrices that a person pastes, uploads, has generated or begins with: those of the papers' figures and the limits.

Commas, semicolons, tabs or blanks; brackets of Python, JSON or Matlab; fractions; labels in a first row, a first column
or both: each is read.
"""

import re

import numpy as np

from tplrepro.explore.text import cells_of_lines, number, whole_numbers
from tplrepro.markov.generators import random_matrix, smoothed, strongest
from tplrepro.markov.transition import TransitionMatrix
from tplrepro.validation import ROW_SUM_TOLERANCE, check_choice, check_horizon

__all__ = ["EXAMPLES", "KINDS", "MAX_STATES", "example", "format_matrix", "generate", "parse_matrix"]

#: Larger matrices are for the package itself: a page that answers within a tenth of a second is not.
MAX_STATES = 300
#: Name -> (forward rows, backward rows or None for Bayes' reversal of the forward ones, states or None for 0..n-1).
EXAMPLES = {
    "home and office": ([[0.8, 0.2], [0.1, 0.9]], None, ["home", "office"]),
    "four places of a weekday": (
        [[0.70, 0.20, 0.06, 0.04], [0.25, 0.60, 0.08, 0.07], [0.70, 0.05, 0.20, 0.05], [0.80, 0.01, 0.01, 0.18]],
        None,
        ["home", "office", "gym", "bar"],
    ),
    "Fig. 8 of TKDE 2019": ([[0.8, 0.2], [0.1, 0.9]], [[0.8, 0.2], [0.2, 0.8]], None),
    "Fig. 3 of TKDE 2019, moderate": ([[0.8, 0.2], [0.0, 1.0]], [[0.8, 0.2], [0.0, 1.0]], None),
    "Example 4 of TKDE 2019": ([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.5, 0.3, 0.2]],) * 2 + (None,),
    "strongest correlation": ([[1.0, 0.0], [0.0, 1.0]],) * 2 + (None,),
    "no correlation": ([[0.5, 0.5], [0.5, 0.5]],) * 2 + (None,),
}
#: Kinds of generated matrices.
KINDS = STRONGEST, RANDOM = ("strongest, smoothed", "random")

#: The number of a line, and its cells.
Row = tuple[int, list[str]]


def example(name: str) -> tuple[TransitionMatrix, TransitionMatrix]:
    """The backward and the forward matrix of one of `EXAMPLES`.

    >>> backward, forward = example("home and office")
    >>> backward.states, backward.probabilities.round(4).tolist()
    (['home', 'office'], [[0.8, 0.2], [0.1, 0.9]])
    """
    check_choice(name, "an example", EXAMPLES)
    forward_rows, backward_rows, states = EXAMPLES[name]
    forward = TransitionMatrix(forward_rows, states=states)
    return forward.reverse() if backward_rows is None else TransitionMatrix(backward_rows, states=states), forward


def generate(kind: str, n: int, s: float, seed: int) -> TransitionMatrix:
    """A matrix over n states: the strongest correlation, or a random one by `seed`; smoothed by s (Eq. (28) of [1]).

    A kind not among `KINDS`, n not from 1 to `MAX_STATES`, and s negative or not finite are ValueErrors.

    >>> generate("strongest, smoothed", 2, 0.5, seed=0).probabilities.tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """
    if check_horizon(n, "n") > MAX_STATES:
        raise ValueError(f"n must be at most {MAX_STATES} states here, found {n}; use tplrepro directly for more")
    check_choice(kind, "kind", KINDS)
    return smoothed(strongest(n) if kind == STRONGEST else random_matrix(n, seed), s)


def parse_matrix(text: str, normalize: bool = False) -> TransitionMatrix:
    """A transition matrix from text: one row of probabilities a line, with or without labels of the states.

    With `normalize`, each row is divided by its sum. ValueError if an entry is no number, the rows differ in length,
    labels contradict each other, or the matrix is not row-stochastic.

    >>> P = parse_matrix("from\\\\to, home, office\\nhome, 0.8, 0.2\\noffice, 1/10, 9/10")
    >>> P.states, P.probabilities.tolist()
    (['home', 'office'], [[0.8, 0.2], [0.1, 0.9]])
    >>> parse_matrix("[0.5 0.5; 0.25 0.75]").probabilities.tolist()
    [[0.5, 0.5], [0.25, 0.75]]
    """
    rows = cells_of_lines(_without_brackets(text))
    if not rows:
        raise ValueError("a transition matrix needs at least one row, found no text; give one row of numbers a line")
    header, rows = _header(rows)
    width, labels = len(rows[0][1]) if rows else 0, None
    if width > 1 and (all(row[0] and number(row[0]) is None for _, row in rows) or (header and width == len(rows) + 1)):
        labels, rows = [row[0] for _, row in rows], [(line, row[1:]) for line, row in rows]
    if len(rows) > MAX_STATES:
        remedy = "merge states, or use tplrepro.PrivacyLossFunction directly"
        raise ValueError(f"a matrix must have at most {MAX_STATES} states here, found {len(rows)}; {remedy}")
    values = np.array([_numbers(row, line, len(rows[0][1])) for line, row in rows])
    if header and labels and len(header) == len(labels) + 1:
        header = header[1:]  # the corner: "from\\to", or nothing
    if header and len(header) != values.shape[-1]:
        found = f"found {len(header)} labels for {values.shape[-1]} columns; give one label a column"
        raise ValueError(f"the first line must name each column once, {found}")
    if header and labels and header != labels:
        found = f"found {labels[:5]} and {header[:5]}; sort them alike"
        raise ValueError(f"rows and columns must name the same states in the same order, {found}")
    if not normalize:
        _check_sums(values)
    states = header or labels
    return TransitionMatrix(values, states=whole_numbers(states) if states else None, normalize=normalize)


def format_matrix(matrix: TransitionMatrix) -> str:
    """Text that `parse_matrix` reads back exactly, with labels unless they are 0..n-1.

    >>> print(format_matrix(TransitionMatrix([[0.8, 0.2], [0.1, 0.9]], states=["home", "office"])))
    , home, office
    home, 0.8, 0.2
    office, 0.1, 0.9
    """
    rows = [", ".join(map(repr, row)) for row in matrix.toarray().tolist()]
    if list(matrix.states) == list(range(matrix.n_states)):
        return "\n".join(rows)
    labels = [re.sub(r"[,;\t\n\"]+", " ", str(label)).strip() for label in matrix.states]
    return "\n".join([", " + ", ".join(labels)] + [f"{label}, {row}" for label, row in zip(labels, rows, strict=True)])


def _without_brackets(text: str) -> str:
    """Rows on lines of their own, for text in brackets: [[a, b], [c, d]] or [a b; c d]."""
    if not re.match(r"\s*(?:\w+\s*=\s*)?(?:np\.|numpy\.)?(?:array\()?\s*\[", text):
        return text
    inside = text[text.index("[") : text.rindex("]") + 1] if "]" in text else text
    if ";" not in inside:  # line ends inside a row mean nothing in Python
        inside = re.sub(r"\s+", " ", inside)
    inside = re.sub(r"\]\s*,?\s*\[", "\n", inside)
    return re.sub(r"[\[\]]", " ", inside).replace(";", "\n")


def _header(rows: list[Row]) -> tuple[list[str] | None, list[Row]]:
    """The first row as labels, if it is not numbers, or if there is one row more than columns."""
    first, others = rows[0][1], rows[1:]
    texts = sum(number(cell) is None for cell in first)
    corner = texts == 1 and number(first[0]) is None and len(first) > 1
    if texts > 1 or (corner and not first[0]):
        return first, others
    columns = first[1:] if corner else first
    if corner and [row[0] for _, row in others] == columns:
        return first, others  # row labels say the same
    if len(others) == len(columns) and columns in [[str(k + start) for k in range(len(columns))] for start in (0, 1)]:
        return first, others  # whole numbers over the columns of a square
    return None, rows


def _numbers(row: list[str], line: int, length: int) -> list[float]:
    if len(row) != length:
        found = f"found {len(row)} entries in line {line} and {length} in the first row"
        raise ValueError(f"rows must be of one length, {found}; give each row one entry a state")
    numbers = [number(cell) for cell in row]
    if None in numbers:
        column = numbers.index(None)
        found = f"{repr(row[column]) if row[column] else 'nothing'} in line {line}, entry {column + 1}"
        raise ValueError(f"entries must be numbers, found {found}; give probabilities such as 0.25 or 1/4")
    return [value for value in numbers if value is not None]


def _check_sums(values: np.ndarray) -> None:
    """Find a wrong sum before TransitionMatrix does: the error must name this page's remedy, not an argument's."""
    for place, row in enumerate(values, 1):
        total = row.sum()
        if (row >= 0).all() and np.isfinite(total) and abs(total - 1.0) > ROW_SUM_TOLERANCE:
            remedy = 'correct it, or tick "divide each row by its sum"'
            raise ValueError(f"rows must sum to 1, found {total:.12g} in row {place}; {remedy}")
