"""Matrices and columns of numbers as people type them: one reader for the command and the page.

A text has a row a line, of cells between semicolons, tabs, commas or blanks. Lines that begin with
"#" are comments, commas are decimal where they do not separate cells, and 1/3 is a number. Headings
are read as such only where they cannot be numbers; a text that can be read in two ways is an error
that says both.

The matrices of a cycle are one text, whose first column is called phase, or a folder with a file
for each phase. Phases in words such as 08:00 or "Mon 08:00" must be those of a day or week.
"""

from __future__ import annotations
import csv
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from tplreport.reading.rows_by_user import MISSING
from tplreport.reading.table import MARK, USUAL_NAMES, check_is_no_pipe, plain_name, whole_numbers
from tplreport.reading.text_files import DataFormatError, describe_content, file_blocks
from tplrepro.display import count_noun
from tplrepro.markov.cycle import PERIODS, Cycle
from tplrepro.markov.transition import WEEKDAYS, TransitionMatrix
from tplrepro.validation import EPSILON, NOISE_MULTIPLIER, ROW_SUM_TOLERANCE

#: The heading of a column that tells the phases of a cycle apart.
PHASE = "phase"
#: Part of each label that may be a time of the clock.
CLOCK = re.compile(r"[0-9]:[0-9]{2}|^(" + "|".join(WEEKDAYS) + ")$")
#: Plain names of columns that number releases or tell their times, beside "t" and none.
OF_RELEASES = {*USUAL_NAMES["time"], "release", "index", "step", "hour", "week", "month", "year"}
#: How the name of the column begins that a report recommends.
RECOMMENDED = "recommended: "
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
NUMERALS = ("No", "Nl")  # categories of Unicode: a half, Roman numbers
OTHER_NUMBER = re.compile(r"(?i)\W*(inf|infinity|nan)\W*")  # to Python, R and others
DECIMAL_COMMA = re.compile(r"[+-]?[0-9]*,[0-9]+([eE][+-]?[0-9]+)?")
DECIMAL_POINT = re.compile(r"[+-]?[0-9]*\.[0-9]+([eE][+-]?[0-9]+)?")
#: A digit beside a decimal sign, the bar of a fraction or a percent sign, once letters are digits.
MISTYPED = re.compile(r"\W*[0-9]*[.,/][0-9][0-9\W]*|[0-9\W]*[0-9]\W*%")
#: Letters that are typed for digits.
LIKE_DIGITS = str.maketrans("OolI", "0011")

Read = TypeVar("Read")


@dataclass(frozen=True)
class Line:
    """A line of a text."""

    number: int  # from 1
    cells: list[str]

    def without_first(self) -> Line:
        return Line(self.number, self.cells[1:])


@dataclass(frozen=True)
class Labelled:
    """The lines of numbers of a matrix, and the names of its states, if it has them."""

    lines: list[Line]
    names: list[str] | None = None


@dataclass(frozen=True)
class Releases:
    """The table of a series of releases, as a report writes it or as people type it."""

    lines: list[Line]  # with that of the headings, if there is one
    file: str | Path | None = None  # for errors

    def column(self, name: str) -> np.ndarray:
        """The numbers of a column.

        A single column may have a heading or none. Of several, each with a heading, the one called
        `name` counts, or else the one that a report marks as recommended.

        Parameters
        ----------
        name : "epsilon" for budgets in nats, or "noise_multiplier"

        Returns
        -------
        ndarray (T,)

        Raises
        ------
        ValueError for a table without such a column, or that may be read in two ways; of a file, a
        DataFormatError.
        """
        with _naming(self.file):
            return self._column(name)

    def _column(self, name: str) -> np.ndarray:
        lines = self.lines
        if not lines:
            raise ValueError(
                f"there must be a column {name}, found no line; give a number per line"
            )
        _check_widths(lines)
        heading = lines[0].cells
        if len(heading) == 1 and not np.isnan(number(heading[0])):
            return np.array([_value(line, 0) for line in lines])
        _check_heading(heading, name)
        place = _column_called(name, heading)
        _check_a_release_a_line(lines[1:], heading)
        if len(lines) == 1:
            raise ValueError(
                f"there must be numbers below {heading[place]!r}, found none; add them"
            )
        return np.array([_value(line, place) for line in lines[1:]])

    @property
    def headings(self) -> list[str]:
        """The cells of the first line."""
        if not self.lines:
            return []
        return self.lines[0].cells

    @property
    def first_phase(self) -> str | None:
        """The first cell of the column phase, as a report writes it; None without one."""
        if len(self.lines) < 2 or PHASE not in self.headings:
            return None
        return self.cells(PHASE)[0]

    @property
    def heading_of_times(self) -> str | None:
        """The heading of the column of times, by a usual name; None without one."""
        are_times = (name for name in self.headings if plain_name(name) in USUAL_NAMES["time"])
        return next(are_times, None)

    def cells(self, heading: str) -> list[str]:
        """The cells below a heading."""
        with _naming(self.file):
            _check_widths(self.lines)
        place = self.headings.index(heading)
        return [line.cells[place] for line in self.lines[1:]]


def read_chain(path: str | Path) -> TransitionMatrix | Cycle:
    """The transition matrix in a file, as `parse_chain` reads it, or the cycle of a file or folder;
    DataFormatError for others."""
    if not Path(path).is_dir():
        return _read(path, parse_chain)
    files = sorted(file for file in Path(path).iterdir() if not file.name.startswith("."))
    try:
        in_order = _files_in_order(files)
    except ValueError as error:
        raise DataFormatError(str(error), path) from None
    phases = [file.stem for file in in_order]
    return _cycle([_read(file, parse_matrix) for file in in_order], phases)


def _files_in_order(files: list[Path]) -> list[Path]:
    """The files of phases by their names: numbers from 0 on, or times of the clock."""
    other = [file.name for file in files if file.suffix != ".csv"]
    if other or not files:
        found = ", ".join(other[:3]) or "none"
        raise ValueError(
            f"a folder of a cycle must hold a CSV file for each phase, found {found}; name them "
            "such as 0.csv, 1.csv, or 00:00.csv, 01:00.csv"
        )
    file_of = {file.stem: file for file in files}
    if all(map(_is_whole_number, file_of)):
        return [file_of[name] for name in sorted(file_of, key=int)]
    by_clock = _clock_of([*file_of])
    if by_clock is None:
        raise ValueError(
            "files of phases must be named by numbers or times of the clock, found "
            f"{', '.join([*file_of][:3])}, whose order is not known; rename them such as 0.csv, or "
            f"give one file with a column {PHASE}"
        )
    file_of = {_time_of_week(name): file for name, file in file_of.items()}
    return [file_of[phase] for phase in by_clock.phases]


def read_releases(path: str | Path) -> Releases:
    """The table of releases in a file, whose errors name it."""
    return replace(_read(path, parse_releases), file=path)


def read_law(path: str | Path, states: Sequence) -> np.ndarray:
    """The law of a state in a file, as `parse_law` reads it; DataFormatError for others."""
    return _read(path, lambda text: parse_law(text, states))


def read_by_phase(path: str | Path, name: str) -> dict[str, float]:
    """A number for each phase of a file, as `parse_by_phase` reads it; DataFormatError for
    others."""
    return _read(path, lambda text: parse_by_phase(text, name))


def read_text(path: str | Path) -> str:
    """The text of a file in UTF-8 or UTF-16, plain or compressed; DataFormatError for others,
    a ValueError for a pipe."""
    check_is_no_pipe(Path(path))
    content = b"".join(file_blocks(path, lambda: 1)).removeprefix(MARK)
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        found = describe_content(content)
        raise DataFormatError(
            f"there must be text in UTF-8, found {found}; export it as CSV in UTF-8", path
        )
    return text


def _read(path: str | Path, parse: Callable[[str], Read]) -> Read:
    text = read_text(path)
    with _naming(path):
        return parse(text)


@contextmanager
def _naming(file: str | Path | None) -> Iterator[None]:
    """A ValueError about the content of a file, if it is one, is a DataFormatError that names
    it."""
    try:
        yield
    except ValueError as error:
        if file is None:
            raise
        raise DataFormatError(str(error), file) from None


def parse_matrix(text: str, most_states: int | None = None) -> TransitionMatrix:
    """A transition matrix from text: a row per line, of cells between commas, semicolons, tabs or
    blanks.

    The names of states may stand in the first line, in the first cell of each line, or in both.

    Parameters
    ----------
    text : str, n rows of n numbers, with or without names
    most_states : int, optional; more rows are an error

    Returns
    -------
    TransitionMatrix; its states are 0 to n - 1 if the text has no names

    Raises
    ------
    ValueError for a text that is no such matrix, or may be two of them.

    Examples
    --------
    >>> P = parse_matrix("from\\\\to, home, office\\nhome, 0.8, 0.2\\noffice, 1/10, 9/10")
    >>> P.states, P.probabilities.tolist()
    (['home', 'office'], [[0.8, 0.2], [0.1, 0.9]])
    >>> parse_matrix("[0.5 0.5; 0.25 0.75]").probabilities.tolist()
    [[0.5, 0.5], [0.25, 0.75]]
    >>> parse_matrix("     [,1] [,2]\\n[1,]  0.5 0.5\\n[2,] 0.25 0.75").n_states
    2
    >>> parse_matrix("1,0\\n0,1").n_states, parse_matrix("0,5;0,5\\n1;0").n_states
    (2, 2)
    """
    if text.lstrip().startswith("[,1]"):  # as R prints a matrix without names
        text = re.sub(r"\[,[0-9]+\]|\[[0-9]+,\]", " ", text)
    elif text.lstrip().startswith("["):
        text = re.sub(r"[\[\]]", " ", re.sub(r"\][,\s]*\[|;", "\n", text))
    lines = _lines(text, blanks=True)
    _check_number_of_rows(lines, most_states)
    return _matrix_of(lines)


def _matrix_of(lines: list[Line]) -> TransitionMatrix:
    _check_commas_are_not_decimal(lines)
    labelled = _labelled(lines)
    width = len(labelled.lines[0].cells)
    values = [_entries(line, width) for line in labelled.lines]
    _check_row_sums(labelled.lines, values)
    if labelled.names is None:
        return TransitionMatrix(values)
    return TransitionMatrix(values, states=whole_numbers(labelled.names))


def parse_chain(text: str, most_states: int | None = None) -> TransitionMatrix | Cycle:
    """A matrix, or the cycle of matrices in a text whose first column is called phase.

    The other columns are those of a matrix, as `parse_matrix` reads it, with the heading above all.

    Parameters
    ----------
    text : str
    most_states : int, optional; more rows of a matrix are an error

    Returns
    -------
    TransitionMatrix, or Cycle; its phases are in the order of the text

    Raises
    ------
    ValueError for a text that is neither, or may be both.

    Examples
    --------
    >>> chain = parse_chain(
    ...     "phase,home,work\\n00:00,1,0\\n00:00,0,1\\n12:00,0.8,0.2\\n12:00,0.1,0.9"
    ... )
    >>> chain, chain[1].probabilities.tolist()
    (Cycle(2 phases '00:00', '12:00' of a day; 2 states), [[0.8, 0.2], [0.1, 0.9]])
    """
    lines = _lines(text, blanks=True)
    if not lines or lines[0].cells[0] != PHASE:
        return _matrix_of_no_cycle(text, lines, most_states)
    heading = lines[0].without_first()
    phases = [line.cells[0] for line in lines[1:]]
    if phases == heading.cells:
        if len(phases) == 1:
            raise ValueError(
                f"a chain must be clear, found one that may be of one state, below a corner that "
                f"is called {PHASE}, or a cycle of one phase; call the corner from"
            )
        return parse_matrix(text, most_states)
    groups = [list(rows) for _, rows in groupby(lines[1:], key=lambda line: line.cells[0])]
    labels = [rows[0].cells[0] for rows in groups]
    _check_phases(labels)
    for rows in groups:
        _check_number_of_rows(rows, most_states)
    matrices = [_matrix_of_phase(heading, rows) for rows in groups]
    return _cycle(matrices, labels)


def _matrix_of_no_cycle(text: str, lines: list[Line], most_states: int | None) -> TransitionMatrix:
    """The matrix in a text with these lines; ValueError that says what a cycle must look like, if
    the first column is called as one of times."""
    try:
        return parse_matrix(text, most_states)
    except ValueError as error:
        if not lines or plain_name(lines[0].cells[0]) not in OF_RELEASES:
            raise
        raise ValueError(
            f"{error}; or if this is a cycle, call its first column {PHASE}, in place of "
            f"{lines[0].cells[0]!r}"
        ) from None


def _check_phases(labels: list[str]) -> None:
    """ValueError unless there are phases, each in one place."""
    if not labels:
        raise ValueError(f"there must be rows below {PHASE!r}, found none; add them")
    if len(set(labels)) < len(labels):
        repeated = next(label for label in labels if labels.count(label) > 1)
        raise ValueError(
            f"all rows of a phase must follow each other, found {repeated!r} in several places; "
            "sort the rows"
        )


def _matrix_of_phase(heading: Line, rows: list[Line]) -> TransitionMatrix:
    """The matrix in the rows of a phase, below the heading of all."""
    lines = [row.without_first() for row in rows]
    if heading.cells:
        lines = [heading, *lines]
    if not all(line.cells for line in lines):
        raise ValueError(f"a phase must have a matrix, found none for {rows[0].cells[0]!r}; add it")
    try:
        return _matrix_of(lines)
    except ValueError as error:
        raise ValueError(f"phase {rows[0].cells[0]!r}: {error}") from None


def _cycle(matrices: list[TransitionMatrix], labels: list[str]) -> Cycle:
    """A cycle from its first phase on; ValueError for phases whose place in it is not clear."""
    if all(map(_is_whole_number, labels)):
        _check_count_from_0(labels)
        return Cycle(matrices)
    if not any(map(CLOCK.search, labels)):
        return Cycle(matrices, labels)
    by_clock = _clock_of(labels)
    times = list(map(_time_of_week, labels))
    if by_clock is None or times != by_clock.starting_at(times[0]).phases:
        raise ValueError(
            f"phases in times of the clock must be those of a whole day or week in order, found "
            f"{', '.join(labels[:5])}; give a matrix for each step of it, such as 00:00, 06:00, "
            "12:00, 18:00, or number the phases from 0 on"
        )
    turned = by_clock.starting_at(times[0])
    return Cycle(matrices, times, step=turned.step, begins=turned.begins)


def _is_whole_number(label: str) -> bool:
    return label.isascii() and label.isdigit()


def _check_count_from_0(labels: list[str]) -> None:
    if list(map(int, labels)) != list(range(len(labels))):
        raise ValueError(
            f"phases that are numbers must count from 0 on, found {', '.join(labels[:5])}, the "
            "first of which may be midnight, or as many steps later; number them anew, or give "
            "times such as 01:00"
        )


def _time_of_week(label: str) -> str:
    """A day of the week as the time at which it begins; other labels as they are."""
    if label in WEEKDAYS:
        return f"{label} 00:00"
    return label


def _clock_of(labels: Sequence[str]) -> Cycle | None:
    """The cycle of a day or week with these phases, in any order, of whose steps nothing is known;
    None if there is none."""
    p = len(labels)
    wanted = set(map(_time_of_week, labels))
    for length in PERIODS.values():
        microseconds = length // timedelta(microseconds=1)
        if microseconds % p == 0:
            step = timedelta(microseconds=microseconds // p)
            cycle = Cycle([None] * p, step=step)
            if set(cycle.phases) == wanted:
                return cycle
    return None


def parse_law(text: str, states: Sequence) -> np.ndarray:
    """The law of a state (n,) from text: a state and its probability a line, or if states have no
    names a probability a line.

    Parameters
    ----------
    text : str
    states : sequence (n,) of labels; a range if they have no names

    Returns
    -------
    ndarray (n,)

    Raises
    ------
    ValueError for a text that does not give one probability for each state.

    Examples
    --------
    >>> parse_law("work,0.1\\nhome,9/10", ["home", "work"]).tolist()
    [0.9, 0.1]
    """
    lines = _lines(text, blanks=True)
    values = [number(line.cells[-1]) for line in lines]
    if lines and np.isnan(values[0]) and is_name(lines[0].cells[-1]):  # a heading
        lines, values = lines[1:], values[1:]
    widths = {len(line.cells) for line in lines}
    named = [line.cells[0] for line in lines]
    wanted = list(map(str, states))
    is_plain = widths == {1} and isinstance(states, range) and len(lines) == len(wanted)
    if is_plain:
        return np.array(values)
    if widths != {2} or sorted(named) != sorted(wanted):
        raise ValueError(
            f"a law must have a line for each state, with its name and probability, found "
            f"{len(lines)} lines for {', '.join(wanted[:5])}; write such as {wanted[0]},0.5"
        )
    value_of = dict(zip(named, values, strict=True))
    return np.array([value_of[state] for state in wanted])


def parse_by_phase(text: str, name: str) -> dict[str, float]:
    """A number for each phase from the columns phase and `name` of a table, in which a phase may
    come again with the same number.

    Parameters
    ----------
    text : str
    name : "epsilon", for floors

    Returns
    -------
    dict from phases to numbers

    Raises
    ------
    ValueError for a text without these columns, or with several numbers for a phase.

    Examples
    --------
    >>> parse_by_phase("phase,epsilon\\n00:00,0.05\\n12:00,0.1", "epsilon")
    {'00:00': 0.05, '12:00': 0.1}
    """
    lines = _lines(text, blanks=False)
    heading = lines[0].cells if lines else []
    if PHASE not in heading:
        raise ValueError(
            f"there must be a column {PHASE} and a column {name}, found "
            f"{', '.join(map(repr, heading)) or 'no line'}; add them, or give one number"
        )
    _check_widths(lines)
    place = _column_called(name, heading)
    values: dict[str, float] = {}
    for line in lines[1:]:
        phase = line.cells[heading.index(PHASE)]
        value = _value(line, place)
        if values.setdefault(phase, value) != value:
            raise ValueError(
                f"each phase must have one {name}, found {values[phase]:g} and {value:g} for "
                f"{phase!r} in line {line.number}; give those of a plan for ever"
            )
    return values


def _check_number_of_rows(lines: list[Line], most_states: int | None) -> None:
    """ValueError for no row, or more rows than a matrix of `most_states` states has with a line of
    their names; None: any number."""
    if not lines or (most_states is not None and len(lines) > most_states + 1):
        rows = "1 row or more"
        if most_states is not None:
            rows = f"1 to {most_states} rows here"
        raise ValueError(f"there must be {rows}, found {len(lines)}; give one per line")


def _check_commas_are_not_decimal(lines: list[Line]) -> None:
    """ValueError for twice as many whole numbers in a row as there are rows."""
    if len(lines[0].cells) == 2 * len(lines) and all(map(str.isdigit, lines[0].cells)):
        raise ValueError(
            f"a matrix must be square, found {len(lines[0].cells)} numbers in each of "
            f"{len(lines)} rows; if their commas are decimal, separate the numbers by semicolons"
        )


def parse_releases(text: str) -> Releases:
    """The table of a series of releases, a line for each, or its one column without a heading.

    >>> parse_releases("2.0\\n0.1\\n0.1").column("epsilon").tolist()
    [2.0, 0.1, 0.1]
    >>> parse_releases("t;epsilon\\n1;0,5\\n2;0,1").column("epsilon").tolist()
    [0.5, 0.1]
    """
    return Releases(_lines(text, blanks=False))


def number(cell: str) -> float:
    """The number in a cell, or a fraction such as 1/3; NaN for anything else."""
    parts = cell.split("/", 1)
    if not all(NUMBER.fullmatch(part.strip()) for part in parts):
        return np.nan
    if len(parts) == 1:
        return float(cell)
    numerator, denominator = map(float, parts)
    if denominator == 0.0:
        return np.nan
    return numerator / denominator


def is_name(cell: str) -> bool:
    """Whether a cell can only be a name: neither a number, nor a mistyped or missing one.

    >>> [is_name(cell) for cell in ("home", "7a", "10-20", "0.8", "O.8", "2,0", "NA", "")]
    [True, True, True, False, False, False, False, False]
    """
    if cell in MISSING or not np.isnan(number(cell)):
        return False
    return MISTYPED.fullmatch(cell.translate(LIKE_DIGITS)) is None


def _lines(text: str, blanks: bool) -> list[Line]:
    """The lines of a text that are neither empty nor comments, their numbers with a decimal point.

    `blanks`: whether blanks separate cells where nothing else does.
    """
    kept = {}
    for k, line in enumerate(text.splitlines(), 1):
        bare = line.rstrip(" ,;\t")
        if bare.strip() and not line.lstrip().startswith("#"):
            kept[k] = bare
    mark = next((mark for mark in "\t;," if any(mark in line for line in kept.values())), None)
    lines = [Line(k, _cells(line, k, mark, blanks)) for k, line in kept.items()]
    if mark == ",":
        return lines
    return _with_points(lines)


def _cells(line: str, k: int, mark: str | None, blanks: bool) -> list[str]:
    """The cells of a line, number k of the file, between delimiters `mark`; None: between blanks if
    `blanks`, or else the line is one cell."""
    if mark is None and blanks:
        return line.split()
    if mark is None:
        return [line.strip().strip('"')]
    try:
        cells = next(csv.reader([line], delimiter=mark, skipinitialspace=True))
    except csv.Error as error:
        raise ValueError(
            f"cells must be short texts, found line {k} ({error}); correct it"
        ) from None
    return [cell.strip() for cell in cells]


def _with_points(lines: list[Line]) -> list[Line]:
    """The lines with a decimal point in each number that has a comma; ValueError if some have
    one, others the other."""
    cells = [cell for line in lines for cell in line.cells]
    comma = next(filter(DECIMAL_COMMA.fullmatch, cells), None)
    if comma is None:
        return lines
    if point := next(filter(DECIMAL_POINT.fullmatch, cells), None):
        raise ValueError(
            f"decimals must be written in one way, found {comma!r} and {point!r}; use commas or "
            "points"
        )
    return [Line(line.number, [*map(_with_point, line.cells)]) for line in lines]


def _with_point(cell: str) -> str:
    if DECIMAL_COMMA.fullmatch(cell):
        return cell.replace(",", ".")
    return cell


def _labelled(lines: list[Line]) -> Labelled:
    """The lines of numbers of a matrix, and the names of the states above or beside them."""
    found = _with_names_on_both_sides(lines) or _with_names_above(lines)
    found = found or _with_names_beside(lines) or Labelled(lines)
    if found.names and len(found.names) == 1 and not is_name(found.names[0]):
        raise ValueError(
            "a matrix must be clear, found one that may be of one state called "
            f"{found.names[0]!r}, or of two with a mistyped first entry; correct the entry, or "
            "give the state a name with letters"
        )
    return found


def _with_names_on_both_sides(lines: list[Line]) -> Labelled | None:
    """The lines of a matrix with names above and beside, and a corner that is no number, or none,
    as R writes it; None for any other."""
    names = lines[0].cells
    beside = [line.cells[0] for line in lines[1:]]
    if len(names) == len(lines):
        corner, *names = names
        if corner and not is_name(corner):
            return None
        _check_same_names(names, beside, has_corner=corner != "")
    elif len(names) == len(beside) and len(lines[1].cells) == len(names) + 1:
        _check_same_names(names, beside, has_corner=False)
    if not names or names != beside:
        return None
    return Labelled([line.without_first() for line in lines[1:]], names)


def _check_same_names(names: list[str], beside: list[str], has_corner: bool) -> None:
    """ValueError if the cells above a matrix, `names`, and those at its left, `beside`, name
    states, but not the same ones in the same order.

    Without a corner, `beside` may be numbers of the rows below names in letters; then there is no
    error.
    """
    if names == beside:
        return
    are_others = all(map(is_name, names)) and (has_corner or all(map(is_name, beside)))
    if are_others or _are_numbered_otherwise(names, beside):
        raise ValueError(
            "rows and columns must name the same states in the same order, found "
            f"{beside[:5]} and {names[:5]}; reorder or rename them"
        )


def _are_numbered_otherwise(names: list[str], beside: list[str]) -> bool:
    """Whether the cells above a matrix, `names`, and those at its left, `beside`, which differ, are
    numbers of states: whole ones, each once.

    Two cells at least: a single 0 or 1 on either side may as well be an entry.
    """
    if len(names) < 2:
        return False
    return all(
        len(set(cells)) == len(cells) and all(map(_is_whole_number, cells))
        for cells in (names, beside)
    )


def _with_names_above(lines: list[Line]) -> Labelled | None:
    """The lines of a matrix with names in the first line only, of which numbers are too large for
    probabilities; None for any other."""
    names = lines[0].cells
    rows = lines[1:]
    if len(rows) != len(names):
        return None
    if all(map(is_name, names)):
        return Labelled(rows, names)
    if not all(cell.isascii() and cell.isdigit() for cell in names):
        return None
    if sum(map(int, names)) <= 1:
        shown = ",".join(names)
        raise ValueError(
            f"the first line must be names or probabilities, found {shown!r}, which may be the "
            f"names of {count_noun(len(names), 'state')}, or a row of a matrix that lacks a "
            f"column; write names in the first cell of each line, too, below ',{shown}', or leave "
            "the line out"
        )
    return Labelled(rows, names)


def _with_names_beside(lines: list[Line]) -> Labelled | None:
    """The lines of a matrix with names in the first cell of each line only; None for any other."""
    beside = [line.cells[0] for line in lines]
    if len(lines[0].cells) != len(lines) + 1 or not all(map(is_name, beside)):
        return None
    return Labelled([line.without_first() for line in lines], beside)


def _entries(line: Line, width: int) -> list[float]:
    """The numbers in the `width` cells of a line; ValueError, which names the line as editors count
    it, from 1, for what can be no probability or count."""
    if len(line.cells) != width:
        raise ValueError(
            f"each row must have {width} entries, found {len(line.cells)} in line {line.number}; "
            "correct it"
        )
    values = [number(cell) for cell in line.cells]
    for place, value in enumerate(values):
        if not 0.0 <= value < np.inf:
            raise ValueError(
                f"entries must be numbers, at least 0, found {line.cells[place]!r} in line "
                f"{line.number}, entry {place + 1}; give such as 0.25 or 1/4"
            )
    return values


def _check_row_sums(lines: list[Line], values: list[list[float]]) -> None:
    """ValueError for a row of `values` that is no law, which says so if each column is one."""
    wrong = next((k for k, row in enumerate(values) if not _is_law(row)), None)
    if wrong is None:
        return
    found = f"{sum(values[wrong]):.12g} in line {lines[wrong].number}"
    is_square = len(values) == len(values[0])
    if is_square and all(map(_is_law, zip(*values, strict=True))):
        raise ValueError(
            f"rows must sum to 1, found {found}, while each column does, so that the matrix looks "
            "transposed; swap its rows and columns"
        )
    raise ValueError(
        f"rows must sum to 1, found {found}; correct it, or divide each row by its sum if these "
        "are counts, percents or rounded"
    )


def _is_law(values: Iterable[float]) -> bool:
    """Whether values sum to 1 but for rounding."""
    return abs(sum(values) - 1.0) <= ROW_SUM_TOLERANCE


def _check_widths(lines: list[Line]) -> None:
    """ValueError unless all lines have as many cells as the first."""
    width = len(lines[0].cells)
    for line in lines:
        if len(line.cells) != width:
            raise ValueError(
                f"each line must have as many cells as line {lines[0].number}, {width}, found "
                f"{len(line.cells)} in line {line.number}; if its commas are decimal, write points"
            )


def _check_heading(heading: Sequence[str], name: str) -> None:
    """ValueError unless the cells above columns can only be headings."""
    for place, cell in enumerate(heading):
        is_index = place == 0 and cell == "" and len(heading) > 1  # as pandas writes it
        if is_index or _is_heading(cell):
            continue
        if len(heading) == 1:
            raise ValueError(
                f"the first line must be a number or a heading such as {name}, found {cell!r}, "
                f"which may be either; write the number such as 0.25, or the heading {name}"
            )
        shown = ",".join(heading)
        raise ValueError(
            f"each of several columns must have a heading, found {shown!r}, which may be "
            f"{len(heading)} numbers, or one with decimal commas; write one number per line with "
            f"a point, or headings such as t,{name}"
        )


def _is_heading(cell: str) -> bool:
    """Whether a cell above numbers can only be a heading.

    Its first word has letters, and it is no number in another spelling, as "inf", a letter l for 1
    or the single character for a half may be.
    """
    if not is_name(cell) or not re.match(r"\W*[^\W\d]", cell):
        return False
    if OTHER_NUMBER.fullmatch(cell) or cell.translate(LIKE_DIGITS).isdigit():
        return False
    return not any(unicodedata.category(sign) in NUMERALS for sign in cell)


def _column_called(name: str, heading: Sequence[str]) -> int:
    """The position of the column that `name` means by its heading; ValueError unless there is
    one."""
    places = _candidate_columns(name, heading)
    if len(places) == 1:
        return places[0]
    wanted = f"one column {name}"
    if name == EPSILON:
        wanted += f", or one column that begins with {RECOMMENDED!r}"
    raise ValueError(
        f"there must be {wanted}, found {', '.join(map(repr, heading))}; call the one that is "
        f"meant {name}"
    )


def _candidate_columns(name: str, heading: Sequence[str]) -> list[int]:
    """The positions of all columns that may be meant: of the name, or else recommended budgets, or
    else a single column that is nothing else."""
    other = {EPSILON: NOISE_MULTIPLIER, NOISE_MULTIPLIER: EPSILON}[name]
    places = [k for k, cell in enumerate(heading) if cell == name]
    if not places and name == EPSILON:
        places = [k for k, cell in enumerate(heading) if cell.startswith(RECOMMENDED)]
    if not places and len(heading) == 1 and not _is_other(heading[0], other):
        places = [0]
    return places


def _is_other(heading: str, other: str) -> bool:
    """Whether a heading says that a column holds the level called `other`, or times."""
    return heading in (other, "t", "count") or plain_name(heading) in USUAL_NAMES["time"]


def _check_a_release_a_line(lines: Sequence[Line], heading: Sequence[str]) -> None:
    """ValueError unless the columns of times and count, if there are any, say that each line is one
    release, after that of the line before."""
    for place, cell in enumerate(heading):
        if cell == "t":
            _check_order(lines, place)
        elif cell == "" or plain_name(cell) in OF_RELEASES:
            _check_rising(lines, place, cell)
    if "count" in heading:
        _check_single(lines, heading.index("count"))


def _check_single(lines: Sequence[Line], place: int) -> None:
    """ValueError for a line that stands for several releases, as those of a ledger may, by the
    column at `place`."""
    for line in lines:
        if number(line.cells[place]) != 1.0:
            raise ValueError(
                f"each line must be one release, found a count of {line.cells[place]!r} in line "
                f"{line.number}; write a line for each"
            )


def _check_order(lines: Sequence[Line], place: int) -> None:
    """ValueError unless the column t, at `place`, counts the lines from 0 or from 1 on."""
    times = [line.cells[place] for line in lines]
    first = 1
    if times[:1] == ["0"]:
        first = 0
    for line, time, expected in zip(lines, times, range(first, len(lines) + first), strict=True):
        if time != str(expected):
            raise ValueError(
                f"the column t must count releases one by one, found {time!r} in line "
                f"{line.number} in place of {expected}; sort the lines by t"
            )


def _check_rising(lines: Sequence[Line], place: int, name: str) -> None:
    """ValueError unless the column `name` at `place` rises evenly from line to line, or holds dates
    that rise."""
    cells = [line.cells[place] for line in lines]
    are_numbers = all(re.fullmatch(r"-?\d+", cell) for cell in cells)
    if not are_numbers and not all(re.match(r"\d{4}-\d\d", cell) for cell in cells):
        return
    times: Sequence[Any] = cells
    if are_numbers:
        times = [int(cell) for cell in cells]
    for (before, after), line in zip(pairwise(times), lines[1:], strict=True):
        is_next = after > before
        if are_numbers:
            is_next &= after - before == times[1] - times[0]
        if not is_next:
            raise ValueError(
                f"releases must be one after the other, found {line.cells[place]!r} in line "
                f"{line.number} after {str(before)!r}, in the column {name!r}; write a line for "
                "each, in order"
            )


def _value(line: Line, place: int) -> float:
    """The number in the cell of a line at `place`, the position of a column."""
    cell = line.cells[place]
    value = number(cell)
    if not np.isfinite(value):
        raise ValueError(
            f"there must be numbers such as 0.25, found {cell!r} in line {line.number}; correct it"
        )
    return value
