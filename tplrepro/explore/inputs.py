"""Transition matrices from text: what a person pastes, or the content of a CSV file.

Text is read generously (commas, semicolons, tabs or blanks; brackets of Python, JSON or Matlab; fractions; labels in a
first row, a first column or both; empty lines and lines that begin with #) and refused precisely: errors say where.
"""

from __future__ import annotations

import csv
import re

import numpy as np

from tplrepro.markov.transition import TransitionMatrix

__all__ = ["decode", "format_matrix", "parse_matrix", "cells_of_lines", "number", "whole_numbers", "MAX_STATES"]

#: Larger files and matrices are for the package itself: a page that answers within a tenth of a second is not.
MAX_BYTES = 5_000_000
MAX_STATES = 300
QUOTES = {"skipinitialspace": True}


def decode(content: bytes, name: str = "the file") -> str:
    """The text of an uploaded file.

    Raises
    ------
    ValueError
        If it is empty, larger than `MAX_BYTES` or no text in UTF-8 or UTF-16.
    """
    if len(content) > MAX_BYTES:
        raise ValueError(
            f"{name} must be at most {MAX_BYTES / 1e6:g} MB here, found {len(content) / 1e6:.1f} MB; "
            "estimate the matrix with tplrepro.TransitionMatrix.from_sequences and load the matrix, or load fewer lines"
        )
    encoding = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{name} must be text in UTF-8, found byte 0x{content[error.start]:02x} at position {error.start}; "
            "save it as CSV in UTF-8"
        ) from None
    if "\0" in text:
        raise ValueError(f"{name} must be text, found binary content; save it as CSV in UTF-8")
    if not text.strip():
        raise ValueError(f"{name} must not be empty, found no text; choose another file")
    return text


def parse_matrix(text: str, normalize: bool = False) -> TransitionMatrix:
    """A transition matrix from text.

    Parameters
    ----------
    text : str
        One row of probabilities a line, with or without labels of the states.
    normalize : bool
        Divide each row by its sum.

    Returns
    -------
    TransitionMatrix (n, n), its states labelled 0..n-1 where the text has no labels

    Raises
    ------
    ValueError
        If an entry is no number, the rows differ in length, labels contradict each other, or the matrix is not
        row-stochastic.

    Examples
    --------
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
    n, width = len(rows), len(rows[0][1]) if rows else 0
    labels = None
    if width > 1 and (_all_texts(rows) or (header is not None and width == n + 1)):
        labels, rows = [row[0] for _, row in rows], [(line, row[1:]) for line, row in rows]
    if n > MAX_STATES:
        raise ValueError(
            f"a matrix must have at most {MAX_STATES} states here, found {n}; "
            "merge states, or use tplrepro.PrivacyLossFunction directly"
        )
    values = np.array([_numbers(row, line, len(rows[0][1])) for line, row in rows], dtype=float)
    if header is not None and labels is not None and len(header) == len(labels) + 1:
        header = header[1:]  # the corner: "from\\to", or nothing
    if header is not None and len(header) != values.shape[-1]:
        raise ValueError(
            f"the first line must name each column once, found {len(header)} labels for {values.shape[-1]} columns; "
            "give one label a column"
        )
    if header is not None and labels is not None and header != labels:
        raise ValueError(
            f"rows and columns must name the same states in the same order, found {labels[:5]} and {header[:5]}; "
            "sort them alike"
        )
    return TransitionMatrix(_remedied(values, normalize), states=whole_numbers(header or labels), normalize=normalize)


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
    if "[" not in text or not re.match(r"\s*(?:\w+\s*=\s*)?(?:np\.|numpy\.)?(?:array\()?\s*\[", text):
        return text
    inside = text[text.index("[") : text.rindex("]") + 1] if "]" in text else text
    if ";" not in inside:  # line ends inside a row mean nothing in Python
        inside = re.sub(r"\s+", " ", inside)
    inside = re.sub(r"\]\s*,?\s*\[", "\n", inside)
    return re.sub(r"[\[\]]", " ", inside).replace(";", "\n")


def cells_of_lines(text: str) -> list[tuple[int, list[str]]]:
    """(number of the line, cells) of each line that holds something."""
    lines = [(place, line) for place, line in enumerate(text.splitlines(), 1)]
    lines = [(place, line) for place, line in lines if line.strip(" \t,;") and not line.lstrip().startswith("#")]
    everything = "\n".join(line for _, line in lines)
    separator = next((mark for mark in ("\t", ";", ",") if mark in everything), None)
    points, commas = re.search(r"\d\.\d", everything), re.search(r"\d,\d", everything)
    comma_is_point = separator in (";", "\t") and commas and not points
    rows = []
    for place, line in lines:
        cells = line.split() if separator is None else next(csv.reader([line], delimiter=separator, **QUOTES))
        cells = [cell.strip().strip("\"'") for cell in cells]
        while len(cells) > 1 and not cells[-1]:  # a comma at the end, or padding by a spreadsheet
            cells.pop()
        rows.append((place, [cell.replace(",", ".") for cell in cells] if comma_is_point else cells))
    return rows


def _header(rows):
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


def _all_texts(rows) -> bool:
    """Whether each row begins with a label."""
    return bool(rows) and all(row[0] and number(row[0]) is None for _, row in rows)


def whole_numbers(labels):
    """Labels as whole numbers if all of them are."""
    if labels and all(re.fullmatch(r"-?\d{1,15}", label) for label in labels):
        return [int(label) for label in labels]
    return labels


def number(cell: str) -> float | None:
    """The number that a cell holds, or a fraction such as 1/3; None for anything else."""
    numerator, slash, denominator = cell.partition("/")
    try:
        return float(numerator) / float(denominator) if slash else float(cell)
    except (ValueError, ZeroDivisionError):
        return None


def _numbers(row: list[str], line: int, length: int) -> list[float]:
    if len(row) != length:
        raise ValueError(
            f"rows must be of one length, found {len(row)} entries in line {line} and {length} in the first row; "
            "give each row one entry a state"
        )
    numbers = [number(cell) for cell in row]
    if None in numbers:
        column = numbers.index(None)
        found = repr(row[column]) if row[column] else "nothing"
        raise ValueError(
            f"entries must be numbers, found {found} in line {line}, entry {column + 1}; "
            "give probabilities such as 0.25 or 1/4"
        )
    return numbers


def _remedied(values: np.ndarray, normalize: bool) -> np.ndarray:
    """The values, unless a row sum is wrong: that error must name this page's remedy, not an argument's."""
    if normalize or values.ndim != 2 or values.shape[0] != values.shape[1]:
        return values
    if np.isfinite(values).all() and (values >= 0).all():
        sums = values.sum(axis=1)
        worst = int(np.argmax(np.abs(sums - 1.0)))
        if abs(sums[worst] - 1.0) > 1e-9:
            raise ValueError(
                f"rows must sum to 1, found {sums[worst]:.12g} in row {worst + 1}; "
                'correct it, or tick "divide each row by its sum"'
            )
    return values
