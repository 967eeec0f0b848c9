"""Transition counts of observed sequences: of an uploaded text, or of one of the data sets."""

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd

from experiments.datasets.preparation import prepare
from page.matrices import MAX_STATES
from page.text import cells_of_lines, check_most, number
from tplrepro.datasets import read_sequences
from tplrepro.datasets.table import USUAL_NAMES, plain_name, whole_numbers
from tplrepro.markov.sequences import Sequences, as_sequences, count_transitions
from tplrepro.markov.transition import TransitionMatrix, drop_dead_ends

WANTED = "a header user,time,state above rows such as 7,1,home, or one sequence per line such as home,office,home"
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


@dataclass(frozen=True, eq=False)
class Observed:
    """Counts of steps between states."""

    counts: Any  # scipy.sparse.csr_array (n, n), steps from state (row) to state (column)
    states: list  # n labels
    title: str
    synthetic: bool = False  # whether they come from a synthetic stand-in

    def matrices(self, smoothing: float, drop: bool = False) -> tuple[TransitionMatrix, TransitionMatrix]:
        """The backward and the forward matrix; `drop` leaves out states never left or never entered."""
        counts, states = drop_dead_ends(self.counts, self.states) if drop else (self.counts, self.states)
        backward = TransitionMatrix.from_counts(counts.T.tocsr(), smoothing, states)
        return backward, TransitionMatrix.from_counts(counts, smoothing, states)


def from_text(text: str, title: str = "sequences") -> Observed:
    """Counts of the steps in sequences given as text."""
    return Observed(*count_transitions(parse_sequences(text)), title=title)


def from_dataset(name: str) -> Observed:
    """Counts of the steps between the most visited states of a data set, or of its synthetic stand-in."""
    prepared = prepare(name.lower(), **DATASETS[name])
    counts, _ = count_transitions(prepared.sequences)
    visits = np.bincount(prepared.sequences.values, minlength=counts.shape[0])
    kept = np.sort(np.argsort(-visits, kind="stable")[:MOST_VISITED])
    states = [prepared.state_names[k] for k in kept]
    return Observed(counts[kept][:, kept], states, prepared.title, prepared.synthetic)


def parse_sequences(text: str) -> Sequences:
    """One sequence per line, or a table of observations below a header such as user,time,state.

    A missing state ends a sequence. `read_sequences` reads the table.
    """
    lines, rows = zip(*cells_of_lines(text), strict=True)
    if _is_table(rows):
        width = len(rows[0])
        body = [(row + [""] * width)[:width] for row in rows[1:]]
        table = pd.DataFrame(body, pd.Index(lines[1:], name="line"), rows[0], dtype=object).replace("", None)
        table.attrs["source"] = "the table"
        try:
            with warnings.catch_warnings(action="error", category=UserWarning):
                sequences = read_sequences(table)
        except (ValueError, UserWarning) as error:  # its remedy names arguments that the page does not have
            raise ValueError(f"{str(error).partition(';')[0]}; give {WANTED}") from None
    else:
        runs = [groupby(row, key=lambda state: state.lower() not in MISSING) for row in rows]
        sequences = as_sequences([list(run) for row in runs for is_state, run in row if is_state])
    if not sequences.n_transitions:
        raise ValueError(f"sequences must contain a step, found {len(sequences)} separate states; give {WANTED}")
    check_most(sequences.n_states, "the number of states", MAX_STATES)
    labels = np.array(whole_numbers(sequences.labels.tolist()))
    return Sequences.from_flat(labels[sequences.values], sequences.offsets)


def _has_roles(rows: Sequence[list[str]]) -> bool:
    """Whether columns hold different things: dates, or a name of its own in each row that no other column has."""
    body = rows[1:]
    if len(body) < 2 or {len(row) for row in rows} != {len(rows[0])} or len(rows[0]) < 2:
        return False
    first, *others = (set(column) for column in zip(*body, strict=True))
    has_dates = any(all(map(DATE.fullmatch, column)) for column in (first, *others))
    return has_dates or (
        len(rows[0]) > 2 and len(body) > 2 and len(first) == len(body) and first.isdisjoint(set().union(*others))
    )


def _is_table(rows: Sequence[list[str]]) -> bool:
    """Whether the first row names the columns of a table of observations; ValueError for a table of other columns."""
    header, body = [plain_name(cell) for cell in rows[0]], rows[1:]
    columns = {thing: set(USUAL_NAMES[thing]).intersection(header) for thing in ("user", "time", "state")}
    if columns["state"] and (len(header) == 1 or columns["user"] or columns["time"]):
        return True
    if columns["state"]:
        is_table = all(columns["state"].isdisjoint(map(plain_name, row)) for row in body)
    else:  # a word above numbers is a header
        cells = zip(header, zip(*body, strict=False), strict=False)
        is_table = any(number(name) is None and None not in map(number, column) for name, column in cells)
        is_table |= _has_roles(rows)
    if is_table:
        usual = {thing: ", ".join(USUAL_NAMES[thing]) for thing in columns}
        raise ValueError(
            f"a table must have a column of states ({usual['state']}) and, beside other columns, one of users "
            f"({usual['user']}) or times ({usual['time']}), found {', '.join(rows[0])}; give {WANTED}"
        )
    return False
