"""Matrices that a user types or uploads, and examples: the papers' and the limits."""

import csv
import re

import numpy as np

from tplreport.table import whole_numbers
from tplrepro.markov.generators import smoothed, strongest
from tplrepro.markov.transition import TransitionMatrix
from tplrepro.validation import ROW_SUM_TOLERANCE

MAX_STATES = 300  # larger matrices would make the page slow
EXAMPLE_4 = "0.1, 0.2, 0.7\n0.3, 0.3, 0.4\n0.5, 0.3, 0.2"
WEEKDAY = "home, office, gym, bar\n.7, .2, .06, .04\n.25, .6, .08, .07\n.7, .05, .2, .05\n.8, .01, .01, .18"
LARGE = "\n".join(
    ", ".join(f"{one:.17g}" for one in row) for row in smoothed(strongest(50), 0.05).probabilities
)
# Name -> forward and backward matrix as text; none: Bayes' reversal.
EXAMPLES = {
    "Fig. 8 of TKDE 2019": ("0.8, 0.2\n0.1, 0.9", "0.8, 0.2\n0.2, 0.8"),
    "home and office": ("home, office\n0.8, 0.2\n0.1, 0.9", ""),
    "four places of a weekday": (WEEKDAY, ""),
    "Fig. 3 of TKDE 2019, moderate": ("0.8, 0.2\n0, 1", "0.8, 0.2\n0, 1"),
    "Example 4 of TKDE 2019": (EXAMPLE_4, EXAMPLE_4),
    "50 states, smoothed": (LARGE, ""),
    "strongest correlation": ("1, 0\n0, 1", "1, 0\n0, 1"),
    "no correlation": ("1/2, 1/2\n1/2, 1/2", ""),
}


def parse_matrix(text: str) -> TransitionMatrix:
    """A transition matrix from text: a row per line, of cells between commas, semicolons, tabs or
    blanks.

    >>> P = parse_matrix("from\\\\to, home, office\\nhome, 0.8, 0.2\\noffice, 1/10, 9/10")
    >>> P.states, P.probabilities.tolist()
    (['home', 'office'], [[0.8, 0.2], [0.1, 0.9]])
    >>> parse_matrix("[0.5 0.5; 0.25 0.75]").probabilities.tolist()
    [[0.5, 0.5], [0.25, 0.75]]
    """
    if text.lstrip().startswith("["):
        text = re.sub(r"[\[\]]", " ", re.sub(r"\][,\s]*\[|;", "\n", text))
    lines = {
        k: line.rstrip(" ,;\t")
        for k, line in enumerate(text.splitlines(), 1)
        if line.lstrip()[:1] != "#"
    }
    lines = {k: line for k, line in lines.items() if line}
    if not 1 <= len(lines) <= MAX_STATES + 1:
        raise ValueError(
            f"there must be 1 to {MAX_STATES} rows here, found {len(lines)}; give one per line"
        )
    mark = next(
        (mark for mark in ("\t", ";", ",") if any(mark in line for line in lines.values())), None
    )
    rows = []
    for k, line in lines.items():
        cells = (
            next(csv.reader([line], delimiter=mark, skipinitialspace=True))
            if mark
            else line.split()
        )
        rows.append((k, [cell.strip() for cell in cells]))
    rows, labels = _without_labels(rows)
    values = [_numbers(cells, line, len(rows[0][1])) for line, cells in rows]
    return TransitionMatrix(values, states=whole_numbers(labels) if labels else None)


def number(cell: str) -> float:
    """The number in a cell, or a fraction such as 1/3; NaN for anything else."""
    numerator, slash, denominator = cell.partition("/")
    try:
        return float(numerator) / float(denominator) if slash else float(cell)
    except (ValueError, ZeroDivisionError):
        return np.nan


def _without_labels(
    rows: list[tuple[int, list[str]]],
) -> tuple[list[tuple[int, list[str]]], list[str]]:
    """The rows of numbers, and the labels in a line above them, perhaps in a column beside them,
    too."""
    header, beside = rows[0][1], [cells[0] for _, cells in rows[1:]]
    names = [np.isnan(number(cell)) for cell in header]
    if len(rows) == len(header) + 1 and (all(names) or all(cell.isdigit() for cell in header)):
        return rows[1:], header
    # Else the first cell may be a probability that is mistyped.
    if len(rows) == len(header) > 1 and names[0] and (all(names) or header[1:] == beside):
        if header[1:] != beside:
            words = "rows and columns must name the same states in the same order"
            raise ValueError(f"{words}, found {beside[:5]} and {header[1:6]}; reorder them")
        return [(line, cells[1:]) for line, cells in rows[1:]], beside
    return rows, []


def _numbers(cells: list[str], line: int, width: int) -> list[float]:
    """The probabilities in the cells of a line; TransitionMatrix would count lines from 0."""
    if len(cells) != width:
        raise ValueError(
            f"each row must have {width} entries, found {len(cells)} in line {line}; correct it"
        )
    values = [number(cell) for cell in cells]
    for place, value in enumerate(values):
        if not 0.0 <= value < np.inf:
            words = f"entries must be numbers, at least 0, found {cells[place]!r} in line {line}"
            raise ValueError(f"{words}, entry {place + 1}; give such as 0.25 or 1/4")
    if abs(sum(values) - 1.0) > ROW_SUM_TOLERANCE:
        raise ValueError(f"rows must sum to 1, found {sum(values):.12g} in line {line}; correct it")
    return values
