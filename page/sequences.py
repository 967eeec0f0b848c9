"""Transition counts of observed sequences: of an uploaded file, or of one of the data sets.

A file is read by `read_sequences`, with the options of the command line, so that it gives the same result
there. Only the page also reads a file without columns, in which each line is a sequence.
"""

import os
import re
import shlex
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from experiments.datasets.preparation import prepare
from page.matrices import MAX_STATES
from page.text import cells_of_lines, check_most, decode, number
from tplrepro.datasets import read_sequences
from tplrepro.datasets.files import column_names
from tplrepro.datasets.table import USUAL_NAMES, find_columns, plain_name, whole_numbers
from tplrepro.markov.sequences import Sequences, as_sequences, count_transitions
from tplrepro.markov.transition import TransitionMatrix
from tplrepro.reporting.command import COLUMNS
from tplrepro.reporting.plans import estimated_matrices
from tplrepro.reporting.report import counted_steps

WANTED = "a header user,time,state above rows such as 7,1,home, or one sequence per line such as home,office,home"
LINES = "each line is a sequence"  # in place of a column of states
MISSING = ("", "nan", "na", "null")
# Name -> the arguments of `prepare`.
DATASETS: dict[str, dict[str, Any]] = {
    "Geolife": {"cell_km": 2.0, "stand_in": {"n_users": 12, "seed": 2007, "n_trajectories": 120}},
    "Gowalla": {"cell_km": 10.0, "stand_in": {"n_users": 500, "seed": 2011}},
    "Kosarak": {"stand_in": {"n_users": 2000, "seed": 2003}},
    "Gaze": {"stand_in": {"n_users": 8, "seed": 2017}},
}
DATE = re.compile(r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}([T ].*)?")
MOST_VISITED = 40  # states kept of a data set, so that the page stays quick

Columns = tuple[tuple[str, Any], ...]  # options of the command line and their values


@dataclass(frozen=True, eq=False)
class Observed:
    """Counts of steps between states."""

    counts: Any  # scipy.sparse.csr_array (n, n), steps from state (row) to state (column)
    states: list  # n labels
    title: str
    synthetic: bool = False  # whether they come from a synthetic stand-in
    sequences: Sequences | None = None  # of a file
    warnings: tuple[str, ...] = ()  # what its reader says

    def matrices(self, smoothing: float) -> tuple[TransitionMatrix, TransitionMatrix]:
        """The backward and the forward matrix, as in a report."""
        return estimated_matrices(self.counts, self.states, smoothing)


def from_dataset(name: str) -> Observed:
    """Counts of the steps between the most visited states of a data set, or of its synthetic stand-in."""
    prepared = prepare(name.lower(), **DATASETS[name])
    counts, _ = count_transitions(prepared.sequences)
    visits = np.bincount(prepared.sequences.values, minlength=counts.shape[0])
    kept = np.sort(np.argsort(-visits, kind="stable")[:MOST_VISITED])
    states = [prepared.state_names[k] for k in kept]
    return Observed(counts[kept][:, kept], states, prepared.title, prepared.synthetic)


@lru_cache(maxsize=8)
def from_file(content: bytes, name: str, columns: Columns) -> Observed:
    """Counts of the steps in an uploaded file; ValueError with the message of the command line."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if ("state", LINES) in columns:
            sequences = parse_lines(decode(content, name))
        else:
            with _on_disk(content, name) as path:
                sequences = read_sequences(path, **dict(columns))
    said = tuple(str(warning.message) for warning in caught if warning.category is UserWarning)
    counts, states = counted_steps(sequences)
    check_most(len(states), "the number of states", MAX_STATES)
    return Observed(counts, states, name, sequences=sequences, warnings=said)


def parse_lines(text: str) -> Sequences:
    """One sequence per line, which a missing state ends; ValueError if the lines are rows of a table."""
    rows = [cells for _, cells in cells_of_lines(text)]
    if _has_roles(rows):
        raise ValueError(
            f"each line must be a sequence of states, found columns of different things below {', '.join(rows[0])}; "
            "choose the columns of users, times and states"
        )
    runs = [groupby(row, key=lambda state: state.lower() not in MISSING) for row in rows]
    sequences = as_sequences([list(run) for row in runs for is_state, run in row if is_state])
    labels = np.array(whole_numbers(sequences.labels.tolist()))
    return Sequences.from_flat(labels[sequences.values], sequences.offsets)


def columns_of(content: bytes, name: str) -> tuple[list[str], dict[str, str]]:
    """The names of the columns of a file, and those of users, times and states by their usual names, or `LINES`.

    >>> columns_of(b"User ID;Datum;Ort;Page", "visits.csv")
    (['User ID', 'Datum', 'Ort', 'Page'], {'user': 'User ID', 'state': 'Page'})
    """
    names, found = list[str](), dict[str, str]()
    with suppress(ValueError):  # reading says what is wrong
        with _on_disk(content, name) as path:
            names = [str(column) for column in column_names(path)]
        things = ("user", "time", "state")
        found = {k: names[place] for k, place in find_columns(dict.fromkeys(things), names, name, "", things).items()}
    if "state" not in found:
        for columns in ({}, {"state": LINES}):
            with suppress(ValueError):
                from_file(content, name, tuple(columns.items()))
                found |= columns
                break
    return [one for one in names if one], found


def parse_options(text: str) -> dict[str, Any]:
    """Options as on the command line.

    >>> parse_options("STEP=1D, time-format='%d.%m.%Y %H:%M'")
    {'step': '1D', 'time_format': '%d.%m.%Y %H:%M'}
    """
    options, word = {}, text
    try:
        for word in shlex.split(text):
            name, _, value = word.rstrip(",").partition("=")
            key = name.lower().replace("-", "_")
            if not value:
                raise ValueError
            options[key] = COLUMNS[key](value)
    except (KeyError, ValueError):
        raise ValueError(
            f"options must be written as step=1D same_time=last, found {word!r}; the options are {', '.join(COLUMNS)}"
        ) from None
    return options


@contextmanager
def _on_disk(content: bytes, name: str) -> Iterator[Path]:
    """The file in a folder that messages do not name; any error of reading it is a ValueError."""
    with TemporaryDirectory() as folder:
        path = Path(folder, Path(name).name)
        path.write_bytes(content)
        try:
            yield path
        except (ValueError, OSError, ModuleNotFoundError) as error:
            raise ValueError(str(error).replace(f"{folder}{os.sep}", "")) from None


def _has_roles(rows: Sequence[list[str]]) -> bool:
    """Whether columns hold different things.

    These are dates, numbers or usual states below a word that names them, or a name of its own in each row
    that no other column has.
    """
    header, body = rows[0], rows[1:]
    named = [set(column) for column in zip(*body, strict=False)]
    if any(
        number(name) is None and None not in map(number, column) for name, column in zip(header, named, strict=False)
    ):
        return True
    usual = set(USUAL_NAMES["state"])
    if not usual.isdisjoint(map(plain_name, header)):
        return all(usual.isdisjoint(map(plain_name, row)) for row in body)
    if len(body) < 2 or len(header) < 2 or {len(row) for row in rows} != {len(header)}:
        return False
    first, *others = named
    are_names = len(header) > 2 and len(body) > 2 and len(first) == len(body) and first.isdisjoint(set().union(*others))
    return are_names or any(all(map(DATE.fullmatch, column)) for column in named)
