"""Matrices that a user pastes, uploads or generates, and examples: the papers' and the limits.

Entries may be separated by commas, semicolons, tabs or blanks, in brackets of Python, JSON or Matlab. They
may be fractions. Labels may stand in the first row, or in it and the first column.
"""

import re

import numpy as np

from page.text import cells_of_lines, number
from tplreport.table import whole_numbers
from tplrepro.markov.generators import smoothed, strongest
from tplrepro.markov.transition import TransitionMatrix
from tplrepro.validation import ROW_SUM_TOLERANCE, check_choice

MAX_STATES = 300  # larger matrices would make the page slow
SAME = "same as forward"  # the choice of a backward matrix that needs no reversal

# Name -> forward rows, backward rows (or SAME, or None for Bayes' reversal), states (None for 0..n-1).
EXAMPLES: dict[str, tuple] = {
    "home and office": ([[0.8, 0.2], [0.1, 0.9]], None, ["home", "office"]),
    "four places of a weekday": (
        [[0.70, 0.20, 0.06, 0.04], [0.25, 0.60, 0.08, 0.07], [0.70, 0.05, 0.20, 0.05], [0.80, 0.01, 0.01, 0.18]],
        None,
        ["home", "office", "gym", "bar"],
    ),
    "Fig. 8 of TKDE 2019": ([[0.8, 0.2], [0.1, 0.9]], [[0.8, 0.2], [0.2, 0.8]], None),
    "Fig. 3 of TKDE 2019, moderate": ([[0.8, 0.2], [0.0, 1.0]], SAME, None),
    "Example 4 of TKDE 2019": ([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.5, 0.3, 0.2]], SAME, None),
    "strongest correlation": ([[1.0, 0.0], [0.0, 1.0]], SAME, None),
    "no correlation": ([[0.5, 0.5], [0.5, 0.5]], SAME, None),
}


def example(name: str) -> tuple[TransitionMatrix, TransitionMatrix]:
    """The backward and the forward matrix of one of `EXAMPLES`."""
    check_choice(name, "an example", EXAMPLES)
    rows, backward_rows, states = EXAMPLES[name]
    forward = TransitionMatrix(rows, states=states)
    if backward_rows is None:
        return forward.reverse(), forward
    return TransitionMatrix(rows if backward_rows == SAME else backward_rows, states=states), forward


def check_size(n: int) -> int:
    """A number of states; ValueError for more than the page can show while a slider moves."""
    if n > MAX_STATES:
        raise ValueError(
            f"the number of states must be at most {MAX_STATES} here, found {n}; use fewer, or call tplrepro directly"
        )
    return n


def generate(n: int, s: float) -> TransitionMatrix:
    """The strongest correlation of n states, smoothed by s (Eq. (28) of [1])."""
    return smoothed(strongest(check_size(n)), s)


def reverse(forward: TransitionMatrix) -> TransitionMatrix:
    """Bayes' reversal from the stationary distribution; ValueError if there is more than one, or a state without."""
    try:
        return forward.reverse()
    except ValueError as error:  # its remedy has no control on the page
        reason = str(error).partition(";")[0]
    raise ValueError(f'{reason}; give the backward matrix itself, or choose "{SAME}"')


def parse_matrix(text: str, normalize: bool = False) -> TransitionMatrix:
    """A transition matrix from text, one row per line; `normalize` divides each row by its sum.

    >>> P = parse_matrix("from\\\\to, home, office\\nhome, 0.8, 0.2\\noffice, 1/10, 9/10")
    >>> P.states, P.probabilities.tolist()
    (['home', 'office'], [[0.8, 0.2], [0.1, 0.9]])
    >>> parse_matrix("[0.5 0.5; 0.25 0.75]").probabilities.tolist()
    [[0.5, 0.5], [0.25, 0.75]]
    """
    rows, labels = _without_labels(cells_of_lines(_without_brackets(text)))
    check_size(len(rows))
    values = np.array([_numbers(cells, line) for line, cells in rows])
    # Checked here because TransitionMatrix counts rows from 0 and names an argument as the remedy.
    sums = values.sum(axis=1)
    wrong = sums == 0 if normalize else np.abs(sums - 1.0) > ROW_SUM_TOLERANCE
    if wrong.any():
        must, remedy = "sum to 1", 'correct it, or tick "divide each row by its sum"'
        if normalize:
            must, remedy = "have a sum greater than 0", "correct it"
        line = rows[int(np.argmax(wrong))][0]
        raise ValueError(f"rows must {must}, found {sums[wrong][0]:.12g} in line {line}; {remedy}")
    return TransitionMatrix(values, states=whole_numbers(labels) if labels else None, normalize=normalize)


def format_matrix(matrix: TransitionMatrix) -> str:
    """Text that `parse_matrix` reads back exactly, with labels unless they are 0..n-1."""
    rows = [", ".join(map(repr, row)) for row in matrix.toarray().tolist()]
    if list(matrix.states) == list(range(matrix.n_states)):
        return "\n".join(rows)
    labels = [re.sub(r"[,;\t\n\"]+", " ", str(label)).strip() for label in matrix.states]
    labelled = [f"{label}, {row}" for label, row in zip(labels, rows, strict=True)]
    return "\n".join([", ".join(["", *labels]), *labelled])


def _without_brackets(text: str) -> str:
    """One row per line, from text in brackets: [[a, b], [c, d]] or [a b; c d]."""
    if not re.match(r"\s*(?:\w+\s*=\s*)?(?:np\.|numpy\.)?(?:array\()?\s*\[", text):
        return text
    inside = text[text.index("[") : text.rindex("]") + 1] if "]" in text else text
    if ";" not in inside:  # line ends inside a row mean nothing in Python
        inside = re.sub(r"\s+", " ", inside)
    inside = re.sub(r"\]\s*,?\s*\[", "\n", inside)
    return re.sub(r"[\[\]]", " ", inside).replace(";", "\n")


def _without_labels(rows: list[tuple[int, list[str]]]) -> tuple[list[tuple[int, list[str]]], list[str]]:
    """The rows of numbers of a square matrix, and the labels in a line above it, perhaps in a column beside it, too."""
    header, *others = (cells for _, cells in rows)
    width = len(header)
    for line, cells in rows:
        if len(cells) != width:
            raise ValueError(
                f"each row must have {width} entries like the first, found {len(cells)} in line {line}; correct it"
            )
    has_corner = len(rows) == width > 1 and number(header[0]) is None
    if has_corner and header[0] and all(number(one) is not None for one in header[1:]):
        has_corner = header[1:] == [cells[0] for cells in others]  # else a probability that is mistyped
    if not has_corner:
        has_header = len(rows) == width + 1 and all(number(one) is None or one.isdigit() for one in header)
        return (rows[1:], header) if has_header else (rows, [])
    above, beside = header[1:], [cells[0] for cells in others]
    if above != beside:
        raise ValueError(
            f"rows and columns must name the same states in the same order, found {beside[:5]} and {above[:5]}; "
            "reorder them"
        )
    return [(line, cells[1:]) for line, cells in rows[1:]], above


def _numbers(cells: list[str], line: int) -> list[float]:
    """The probabilities in the cells of a line."""
    values = []
    for place, cell in enumerate(cells, 1):
        value = number(cell)
        if value is None or not 0.0 <= value < np.inf:
            raise ValueError(
                f"entries must be numbers, at least 0, found {cell!r} in line {line}, entry {place}; give "
                "probabilities such as 0.25 or 1/4"
            )
        values.append(value)
    return values
