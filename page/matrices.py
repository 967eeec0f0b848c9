"""Matrices that a person pastes, uploads, has generated or begins with: those of the papers' figures and the limits.

Commas, semicolons, tabs or blanks; brackets of Python, JSON or Matlab; fractions; labels in a first row, a first column
or both: each is read.
"""

import re

import numpy as np
from scipy.sparse.csgraph import connected_components

from page.text import cells_of_lines, check_most, number
from tplrepro.markov.generators import smoothed, strongest
from tplrepro.markov.sequences import whole_numbers
from tplrepro.markov.transition import TransitionMatrix
from tplrepro.validation import ROW_SUM_TOLERANCE, check_choice, check_horizon

__all__ = ["EXAMPLES", "KINDS", "MAX_STATES", "SAME", "example", "format_matrix", "generate", "parse_matrix", "reverse"]

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
#: The choice of a backward matrix that needs no reversal.
SAME = "same as forward"
#: Kinds of generated matrices.
KINDS = STRONGEST, RANDOM = ("strongest, smoothed", "random")


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

    `kind` is one of `KINDS`; n not from 1 to `MAX_STATES`, and s negative or not finite, are ValueErrors.

    >>> generate("strongest, smoothed", 2, 0.5, seed=0).probabilities.tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """
    check_most(check_horizon(n, "n"), "the number of states", MAX_STATES)
    if kind == STRONGEST:
        return smoothed(strongest(n), s)
    return smoothed(TransitionMatrix.random(n, rng=np.random.default_rng(seed)), s)


def reverse(forward: TransitionMatrix) -> TransitionMatrix:
    """Bayes' reversal from a stationary distribution, whichever it is; a ValueError where these give different ones.

    They agree if no class of states leads to another: the reversal of the identity is the identity.

    >>> reverse(TransitionMatrix([[1, 0, 0], [0, 0.5, 0.5], [0, 1, 0]])).probabilities.tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.5, 0.5], [0.0, 1.0, 0.0]]
    """
    rows = forward.toarray()
    count, classes = connected_components(rows, connection="strong")
    if count == 1 or rows[classes[:, None] != classes].any():
        try:
            return forward.reverse()
        except ValueError as error:  # it advises what the page has no control for
            reason = str(error).partition(";")[0]
        raise ValueError(f'{reason}; give the backward matrix itself, or choose "{SAME}"')
    weights = np.zeros(len(rows))
    for members in (classes == k for k in range(count)):
        weights[members] = TransitionMatrix(rows[np.ix_(members, members)]).stationary() / count
    return forward.reverse(weights)


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
    header, rows = _header(rows)
    width, labels = len(rows[0][1]) if rows else 0, None
    if width > 1 and (all(row[0] and number(row[0]) is None for _, row in rows) or (header and width == len(rows) + 1)):
        labels, rows = [row[0] for _, row in rows], [(line, row[1:]) for line, row in rows]
    check_most(len(rows), "the number of states", MAX_STATES)
    values = np.array([_numbers(row, line, len(rows[0][1])) for line, row in rows])
    if header and labels and len(header) == len(labels) + 1:
        header = header[1:]  # the corner: "from\\to", or nothing
    if header and len(header) != values.shape[-1]:
        raise ValueError(
            f"the first line must name {values.shape[-1]} columns, found {len(header)} labels; name each once"
        )
    if header and labels and header != labels:
        raise ValueError(
            f"rows and columns must name the same states, found {labels[:5]} and {header[:5]}; sort them alike"
        )
    # Said here, because TransitionMatrix counts rows from 0 and names an argument as the remedy.
    sums = values.sum(axis=1)
    wrong = sums == 0 if normalize else np.abs(sums - 1.0) > ROW_SUM_TOLERANCE
    if wrong.any():
        must = "have a sum greater than 0" if normalize else "sum to 1"
        remedy = "" if normalize else ', or tick "divide each row by its sum"'
        line = rows[int(np.argmax(wrong))][0]
        raise ValueError(f"rows must {must}, found {sums[wrong][0]:.12g} in line {line}; correct it{remedy}")
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


def _header(rows: list[tuple[int, list[str]]]) -> tuple[list[str] | None, list[tuple[int, list[str]]]]:
    """The first row as labels, if it is not numbers, or if there is one row more than columns."""
    first, others = rows[0][1], rows[1:]
    texts = sum(number(cell) is None for cell in first)
    corner = texts == 1 and number(first[0]) is None and len(first) > 1
    columns = first[1:] if corner else first
    said_again = corner and (not first[0] or [row[0] for _, row in others] == columns)  # by the labels of the rows
    counted = columns in [[str(k + start) for k in range(len(others))] for start in (0, 1)]  # the columns of a square
    return (first, others) if texts > 1 or said_again or counted else (None, rows)


def _numbers(row: list[str], line: int, length: int) -> list[float]:
    if len(row) != length:
        raise ValueError(
            f"each row must have {length} entries like the first, found {len(row)} in line {line}; correct it"
        )
    numbers = [number(cell) for cell in row]
    for place, (value, cell) in enumerate(zip(numbers, row, strict=True), 1):
        if value is None or not 0.0 <= value < np.inf:
            raise ValueError(
                f"entries must be numbers, at least 0, found {repr(cell) if cell else 'nothing'} in line {line}, entry "
                f"{place}; give probabilities such as 0.25 or 1/4"
            )
    return [value for value in numbers if value is not None]
