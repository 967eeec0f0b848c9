"""Matrices estimated from observed sequences: an uploaded text, or one of the data sets.

A forward matrix comes from the counts of steps, the backward one from the same counts with time reversed. Of a data set
the most visited states are kept, because the page shall answer while a slider moves; a visit to another state ends a
sequence. A synthetic stand-in takes the place of a data set that is not found, and is called synthetic.
"""

from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from tplrepro.explore.matrices import MAX_STATES
from tplrepro.explore.text import cells_of_lines, check_most, number, whole_numbers
from tplrepro.markov.sequences import count_transitions
from tplrepro.markov.transition import TransitionMatrix, drop_dead_ends

__all__ = ["DATASETS", "Observed", "from_dataset", "from_text", "parse_sequences"]

STATE_COLUMNS = ("state", "cell", "location", "label")
USER_COLUMNS = ("user", "sequence", "id")
MISSING = ("", "nan", "na", "null")
#: Name -> the arguments of `datasets.prepare`.
DATASETS: dict[str, dict[str, Any]] = {
    "Geolife": {"cell_km": 2.0, "stand_in": {"n_users": 12, "seed": 2007, "n_trajectories": 120}},
    "Gowalla": {"cell_km": 10.0, "stand_in": {"n_users": 500, "seed": 2011}},
    "Kosarak": {"stand_in": {"n_users": 2000, "seed": 2003}},
    "Gaze": {"stand_in": {"n_users": 8, "seed": 2017}},
}
#: States kept of a data set.
MOST_VISITED = 40


@dataclass(frozen=True, eq=False)
class Observed:
    """Counts of steps between states."""

    counts: Any  # scipy.sparse.csr_array (n, n), steps from state (row) to state (column)
    states: list  # n labels
    title: str  # what the counts are of
    synthetic: bool = False  # whether they come from a synthetic stand-in

    def matrices(self, smoothing: float, drop: bool = False) -> tuple[TransitionMatrix, TransitionMatrix]:
        """The backward and the forward matrix, with `smoothing` added to each count.

        With `drop`, states are left out that are never left or never entered, which have no row without smoothing. They
        are a ValueError otherwise, and so is a sample of which no state remains.
        """
        counts, states = drop_dead_ends(self.counts, self.states) if drop else (self.counts, self.states)
        backward, forward = (TransitionMatrix.from_counts(c, smoothing, states) for c in (counts.T.tocsr(), counts))
        return backward, forward


def from_text(text: str, title: str = "sequences") -> Observed:
    """Counts of the steps in sequences as text.

    >>> from_text("a, b, b\\nb, a").counts.toarray().tolist()
    [[0.0, 1.0], [1.0, 1.0]]
    """
    return Observed(*count_transitions(parse_sequences(text)), title=title)


def from_dataset(name: str) -> Observed:
    """Counts of the steps between the most visited states of one of `DATASETS`, or of its synthetic stand-in."""
    from tplrepro import datasets

    prepared = datasets.prepare(name.lower(), **DATASETS[name])
    counts, _ = count_transitions(prepared.sequences)
    visits = np.bincount(prepared.sequences.values, minlength=counts.shape[0])
    kept = np.sort(np.argsort(-visits, kind="stable")[:MOST_VISITED])
    states = [prepared.state_names[k] for k in kept]
    return Observed(counts[kept][:, kept], states, prepared.title, prepared.synthetic)


def parse_sequences(text: str) -> list[list]:
    """Sequences of states from text, for estimation.

    Two layouts: one sequence a line, its states separated by commas (semicolons, tabs, blanks); or one observation a
    line below a header with a column "state" (or "cell", "location", "label"), and optionally a column "user" (or
    "sequence", "id") and a column "time", by which the observations are sorted. Where a state is missing a sequence
    ends, and the next one begins. States are whole numbers if all of them are, else str. Text without a single step is
    a ValueError.

    >>> parse_sequences("home, office, home\\noffice, office")
    [['home', 'office', 'home'], ['office', 'office']]
    >>> parse_sequences("user,time,state\\n7,1,3\\n9,1,4\\n7,2,5")
    [[3, 5], [4]]
    """
    rows = [row for _, row in cells_of_lines(text)]
    table = _observations(rows)
    pieces = [
        list(run)
        for row in (rows if table is None else table)
        for missing, run in groupby(row, key=lambda state: state.lower() in MISSING)
        if not missing
    ]
    if not any(len(piece) > 1 for piece in pieces):
        raise ValueError(
            f"sequences need at least one step, found {len(pieces)} states apart; give one a line, or a column state"
        )
    states = sorted({state for piece in pieces for state in piece})
    check_most(len(states), "the number of states", MAX_STATES)
    label = dict(zip(states, whole_numbers(states), strict=True))
    return [[label[state] for state in piece] for piece in pieces]


def _observations(rows: list[list[str]]) -> list[list[str]] | None:
    """Sequences from a table of observations, None if the first row is no header that names a column of states."""
    header = [cell.lower() for cell in rows[0]]
    state = next((header.index(name) for name in STATE_COLUMNS if name in header), None)
    named = len(header) == 1 or {"time", *USER_COLUMNS} & set(header)
    if state is None or (not named and any(header[state] in map(str.lower, row) for row in rows[1:])):
        return None  # sequences, perhaps with a state of this name
    if not named:
        raise ValueError(
            f"a column named {header[state]} must stand alone or beside one named user or time, found "
            f"{', '.join(header)}; name the other columns so, leave them out, or give that state another name"
        )
    table = [row + [""] * (len(header) - len(row)) for row in rows[1:]]
    if "time" in header:
        time = header.index("time")
        texts = [row[time] for row in table]
        numbers: list = [number(text) for text in texts]
        table = [table[k] for k in np.argsort(texts if None in numbers else numbers, kind="stable")]
    user = next((header.index(name) for name in USER_COLUMNS if name in header), None)
    grouped: dict[str, list[str]] = {}
    for row in table:
        grouped.setdefault("" if user is None else row[user], []).append(row[state])
    return list(grouped.values())
