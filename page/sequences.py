"""Transition counts of observed sequences: of an uploaded text, or of one of the data sets."""

from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd

from experiments.datasets.preparation import prepare
from page.matrices import MAX_STATES
from page.text import cells_of_lines, check_most, number
from tplrepro.datasets import read_sequences
from tplrepro.markov.sequences import USUAL_NAMES, Sequences, as_sequences, count_transitions, whole_numbers
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
    rows = [row for _, row in cells_of_lines(text)]
    table = _table_of(rows)
    if table is not None:
        try:
            sequences = read_sequences(table)
        except ValueError as error:  # its remedy names arguments that the page does not have
            reason = str(error).partition(";")[0].replace("the DataFrame", "the table, counted from 0")
            raise ValueError(f"{reason}; give {WANTED}") from None
    else:
        runs = [groupby(row, key=lambda state: state.lower() not in MISSING) for row in rows]
        sequences = as_sequences([list(run) for row in runs for is_state, run in row if is_state])
    if not sequences.n_transitions:
        raise ValueError(f"sequences must contain a step, found {len(sequences)} separate states; give {WANTED}")
    check_most(sequences.n_states, "the number of states", MAX_STATES)
    labels = np.array(whole_numbers(sequences.labels.tolist()))
    return Sequences.from_flat(labels[sequences.values], sequences.offsets)


def _table_of(rows: list[list[str]]) -> pd.DataFrame | None:
    """The columns of a table of observations; None if each row is a sequence."""
    header = [cell.lower() for cell in rows[0]]
    columns = {}
    for thing in ("user", "time", "state"):
        names = [name for name in USUAL_NAMES[thing] if name in header]
        if names:
            columns[thing] = header.index(names[0])
    body = [row + [""] * (len(header) - len(row)) for row in rows[1:]]
    if "state" not in columns or (len(columns) == 1 and len(header) > 1):
        if "state" in columns:
            is_table = all(header[columns["state"]] not in map(str.lower, row) for row in body)
        else:  # a word above numbers is a header
            cells = zip(header, zip(*body, strict=False), strict=False)
            is_table = any(number(name) is None and None not in map(number, column) for name, column in cells)
        if not is_table:
            return None
        raise ValueError(
            f"a table must have a column of states ({', '.join(USUAL_NAMES['state'])}) and, beside other columns, one "
            f"of users ({', '.join(USUAL_NAMES['user'])}) or times ({', '.join(USUAL_NAMES['time'])}), found "
            f"{', '.join(rows[0])}; give {WANTED}"
        )
    table = pd.DataFrame({thing: [row[k] or None for row in body] for thing, k in columns.items()})
    if "user" not in table and "time" in table and table.drop_duplicates()["time"].duplicated().any():
        raise ValueError(
            f"one user cannot be in two states at the same time, found {', '.join(rows[0])}; name the column of users "
            f"{' or '.join(USUAL_NAMES['user'])}"
        )
    return table
