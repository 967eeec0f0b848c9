"""Matrices that a user pastes, uploads or generates, and examples: the papers' and the limits.

Entries may be separated by commas, semicolons, tabs or blanks, in brackets of Python, JSON or Matlab. They
may be fractions. Labels may stand in the first row, the first column or both.
"""

import re

import numpy as np
from scipy.sparse.csgraph import connected_components

from page.text import cells_of_lines, check_most, number
from tplrepro.datasets.table import whole_numbers
from tplrepro.markov.generators import smoothed, strongest
from tplrepro.markov.transition import TransitionMatrix
from tplrepro.validation import ROW_SUM_TOLERANCE, check_choice, check_horizon

MAX_STATES = 300  # larger matrices would make the page slow
SAME = "same as forward"  # the choice of a backward matrix that needs no reversal
KINDS = STRONGEST, RANDOM = ("strongest, smoothed", "random")  # of generated matrices

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


def generate(kind: str, n: int, s: float, seed: int) -> TransitionMatrix:
    """A matrix over n states of one of `KINDS`, smoothed by s (Eq. (28) of [1])."""
    check_most(check_horizon(n, "n"), "the number of states", MAX_STATES)
    if kind == STRONGEST:
        return smoothed(strongest(n), s)
    return smoothed(TransitionMatrix.random(n, rng=np.random.default_rng(seed)), s)


def reverse(forward: TransitionMatrix) -> TransitionMatrix:
    """Bayes' reversal from a stationary distribution; ValueError if it depends on which one.

    It does not if no class of states leads to another: the reversal of the identity is the identity.
    """
    rows = forward.toarray()
    count, classes = connected_components(rows, connection="strong")
    if count == 1 or rows[classes[:, None] != classes].any():
        try:
            return forward.reverse()
        except ValueError as error:  # its remedy has no control on the page
            reason = str(error).partition(";")[0]
        raise ValueError(f'{reason}; give the backward matrix itself, or choose "{SAME}"')
    weights = np.zeros(len(rows))
    for k in range(count):
        members = classes == k
        weights[members] = TransitionMatrix(rows[np.ix_(members, members)]).stationary() / count
    return forward.reverse(weights)


def parse_matrix(text: str, normalize: bool = False) -> TransitionMatrix:
    """A transition matrix from text, one row per line; `normalize` divides each row by its sum.

    >>> P = parse_matrix("from\\\\to, home, office\\nhome, 0.8, 0.2\\noffice, 1/10, 9/10")
    >>> P.states, P.probabilities.tolist()
    (['home', 'office'], [[0.8, 0.2], [0.1, 0.9]])
    >>> parse_matrix("[0.5 0.5; 0.25 0.75]").probabilities.tolist()
    [[0.5, 0.5], [0.25, 0.75]]
    """
    rows = cells_of_lines(_without_brackets(text))
    header, labels = None, None
    if _has_header([cells for _, cells in rows]):
        header, rows = rows[0][1], rows[1:]
    width = len(rows[0][1]) if rows else 0
    starts_with_words = all(cells[0] and number(cells[0]) is None for _, cells in rows)
    if width > 1 and (starts_with_words or (header and width == len(rows) + 1)):
        labels = [cells[0] for _, cells in rows]
        rows = [(line, cells[1:]) for line, cells in rows]
    check_most(len(rows), "the number of states", MAX_STATES)
    values = np.array([_numbers(cells, line, len(rows[0][1])) for line, cells in rows])
    if header and labels and len(header) == len(labels) + 1:
        header = header[1:]  # the corner: "from\\to", or nothing
    if header and len(header) != values.shape[-1]:
        raise ValueError(
            f"the first line must name {values.shape[-1]} columns, found {len(header)} labels; name each column once"
        )
    if header and labels and header != labels:
        raise ValueError(
            f"rows and columns must name the same states in the same order, found {labels[:5]} and {header[:5]}; "
            "reorder them"
        )
    # Checked here because TransitionMatrix counts rows from 0 and names an argument as the remedy.
    sums = values.sum(axis=1)
    wrong = sums == 0 if normalize else np.abs(sums - 1.0) > ROW_SUM_TOLERANCE
    if wrong.any():
        must, remedy = "sum to 1", 'correct it, or tick "divide each row by its sum"'
        if normalize:
            must, remedy = "have a sum greater than 0", "correct it"
        line = rows[int(np.argmax(wrong))][0]
        raise ValueError(f"rows must {must}, found {sums[wrong][0]:.12g} in line {line}; {remedy}")
    states = header or labels
    return TransitionMatrix(values, states=whole_numbers(states) if states else None, normalize=normalize)


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


def _has_header(rows: list[list[str]]) -> bool:
    """Whether the first row holds labels: words, numbers that the rows repeat, or 0..n-1 or 1..n."""
    first, others = rows[0], rows[1:]
    words = [cell for cell in first if number(cell) is None]
    has_corner = len(words) == 1 and number(first[0]) is None and len(first) > 1
    columns = first[1:] if has_corner else first
    are_repeated = has_corner and (not first[0] or [row[0] for row in others] == columns)
    are_counted = columns in [[str(k + start) for k in range(len(others))] for start in (0, 1)]
    return len(words) > 1 or are_repeated or are_counted


def _numbers(cells: list[str], line: int, length: int) -> list[float]:
    """The probabilities in the cells of a line."""
    if len(cells) != length:
        raise ValueError(
            f"each row must have {length} entries like the first, found {len(cells)} in line {line}; correct it"
        )
    values = []
    for place, cell in enumerate(cells, 1):
        value = number(cell)
        if value is None or not 0.0 <= value < np.inf:
            raise ValueError(
                f"entries must be numbers, at least 0, found {repr(cell) if cell else 'nothing'} in line {line}, "
                f"entry {place}; give probabilities such as 0.25 or 1/4"
            )
        values.append(value)
    return values
