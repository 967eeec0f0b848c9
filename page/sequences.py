"""Transition counts of observed sequences: of an uploaded file, or of one of the data sets.

A file is read by `read_sequences`, with the options of the command line, so that it gives the same result
there.
"""

import os
import shlex
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from experiments.datasets.preparation import prepare
from page.matrices import check_size
from tplreport import read_sequences
from tplreport.command import COLUMNS
from tplreport.reporting.plans import estimated_matrices
from tplreport.reporting.report import counted_steps
from tplreport.table import column_names
from tplrepro.markov.sequences import Sequences, count_transitions
from tplrepro.markov.transition import TransitionMatrix

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
def from_file(content: bytes, name: str, options: tuple[tuple[str, Any], ...] = ()) -> Observed:
    """Counts of the steps in an uploaded file, with options of the command line, or its message as a ValueError."""
    with warnings.catch_warnings(record=True) as caught, _on_disk(content, name) as path:
        warnings.simplefilter("always")
        sequences = read_sequences(path, **dict(options))
    said = tuple(str(warning.message) for warning in caught if warning.category is UserWarning)
    counts, states = counted_steps(sequences)
    check_size(len(states))
    return Observed(counts, states, name, sequences=sequences, warnings=said)


def columns_of(content: bytes, name: str) -> list[str]:
    """The names of the columns of a file; none if it cannot be read."""
    with suppress(ValueError), _on_disk(content, name) as path:
        return [str(column) for column in column_names(path) if column]
    return []


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
