"""Matrices estimated from observed sequences: an uploaded text, or one of the data sets.

A forward matrix comes from the counts of steps, the backward one from the same counts with time reversed. Of a data set
the most visited states are kept, because the page shall answer while a slider moves; a visit to another state ends a
sequence. A synthetic stand-in takes the place of a data set that is not found, and is called synthetic.
"""

from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from page.matrices import MAX_STATES
from page.text import cells_of_lines, check_most, number
from tplrepro.markov.sequences import USUAL_NAMES, count_transitions, whole_numbers
from tplrepro.markov.transition import TransitionMatrix, drop_dead_ends

__all__ = ["DATASETS", "WANTED", "Observed", "from_dataset", "from_text", "parse_sequences"]

WANTED = "user,time,state above lines such as 7,1,home and 7,2,office, or one sequence a line, such as home,office,home"
MISSING = ("", "nan", "na", "null")
#: Name -> the arguments of `preparation.prepare`.
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
    from experiments.datasets import preparation

    prepared = preparation.prepare(name.lower(), **DATASETS[name])
    counts, _ = count_transitions(prepared.sequences)
    visits = np.bincount(prepared.sequences.values, minlength=counts.shape[0])
    kept = np.sort(np.argsort(-visits, kind="stable")[:MOST_VISITED])
    states = [prepared.state_names[k] for k in kept]
    return Observed(counts[kept][:, kept], states, prepared.title, prepared.synthetic)


def parse_sequences(text: str) -> list[list]:
    """Sequences of states from text, for estimation.

    Two layouts: one sequence a line, its states separated by commas (semicolons, tabs, blanks); or one observation a
    line below a header with one of `USUAL_NAMES` of states, and optionally one of users and one of times, by which
    the observations are sorted. Where a state is missing a sequence ends, and the next one begins. States are
    whole numbers if all of them are, else str. Text without a single step is a ValueError, and so is a line of words
    above a column of numbers, which seems to be a header, if no word names the states.

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
        raise ValueError(f"sequences need at least one step, found {len(pieces)} states apart; give {WANTED}")
    states = sorted({state for piece in pieces for state in piece})
    check_most(len(states), "the number of states", MAX_STATES)
    label = dict(zip(states, whole_numbers(states), strict=True))
    return [[label[state] for state in piece] for piece in pieces]


def _observations(rows: list[list[str]]) -> list[list[str]] | None:
    """Sequences from a table of observations, None if the first row is no header that names a column of states."""
    header = [cell.lower() for cell in rows[0]]
    state, user, time = (
        next((header.index(name) for name in names if name in header), None)
        for names in (USUAL_NAMES[thing] for thing in ("state", "user", "time"))
    )
    table = [row + [""] * (len(header) - len(row)) for row in rows[1:]]
    alone = len(header) == 1 or user is not None or time is not None
    if state is not None and not alone and any(header[state] in map(str.lower, row) for row in table):
        return None  # sequences, with a state of this name
    columns = zip(header, zip(*table, strict=False), strict=False)
    if state is None and not any(number(name) is None and None not in map(number, cells) for name, cells in columns):
        return None
    if state is None or not alone:
        raise ValueError(
            f"a table needs a column {' or '.join(USUAL_NAMES['state'])}, and beside others one of users "
            f"({', '.join(USUAL_NAMES['user'])}) or times ({', '.join(USUAL_NAMES['time'])}), "
            f"found {', '.join(rows[0])}; give {WANTED}"
        )
    if time is not None:
        texts = [row[time] for row in table]
        numbers: list = [number(text) for text in texts]
        table = [table[k] for k in np.argsort(texts if None in numbers else numbers, kind="stable")]
        if user is None and len({row[time] for row in table}) < len({(row[time], row[state]) for row in table}):
            raise ValueError(
                f"one user cannot be in two states at the same time; name the column of users {USUAL_NAMES['user'][0]} "
                f"(or {', '.join(USUAL_NAMES['user'][1:])}), found {', '.join(rows[0])}"
            )
    grouped: dict[str, list[str]] = {}
    for row in table:
        grouped.setdefault("" if user is None else row[user], []).append(row[state])
    return list(grouped.values())
