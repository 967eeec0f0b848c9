"""How simulated walks are recorded as a table, and read by what `tr.read_sequences` offers.

Where the reader refuses a table, its error names the remedy, which is then taken.
"""

import re
import warnings
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
import pandas as pd

import tplreport as tr
from tplrepro.markov import Sequences

IN_ORDER = "rows in order"
SHUFFLED = "shuffled rows"
UNUSUAL_TIME = "times of no usual name"
#: Three times of observation a step, of which some are missing and at most one counts.
DROPPING = "steps that drop rows"
#: An hourly walk, of which a quarter of the hours are seen.
THINNED = "a quarter of the hours"
#: An hourly walk, of which those hours are seen at which the place is new.
CHANGES = "rows at changes"
UNUSUAL_USER = "users of no usual name"
#: Those of data of any kind.
USUAL = (IN_ORDER, SHUFFLED, UNUSUAL_TIME, DROPPING)
RECORDINGS = (*USUAL, THINNED, CHANGES, UNUSUAL_USER)

BEGIN = pd.Timestamp("2024-01-01")
HOURLY = timedelta(hours=1)
OFTEN = timedelta(minutes=20)
SEEN_OF_HOURS = 0.25
SEEN_OF_STEPS = (0.4, 0.7, 1.0)
#: Where an error of the reader names the argument that it needs.
REMEDIES = {
    "step": re.compile(r"give step='([^']+)'"),
    "time": re.compile(r"'([^']+)' holds times"),
    "user": re.compile(r"'([^']+)' may name users"),
}


@dataclass(frozen=True)
class Recorded:
    """Sequences that were read from the table of walks."""

    sequences: Sequences
    every: int  # so many steps of a walk are one of the sequences
    is_asked: bool  # the reader refused to read it without an argument


def every_of(recording: str) -> int:
    """So many steps of a walk are recorded for each step that is meant."""
    if recording == DROPPING:
        return 3
    return 1


def record(walks: np.ndarray, recording: str, *, rng: np.random.Generator) -> Recorded:
    """Record walks as a table and read it.

    Parameters
    ----------
    walks : array (users, length)
        The places of each user.
    recording : str
        One of `RECORDINGS`.
    rng : numpy.random.Generator
        Draws the order of rows, and which are missing.

    Returns
    -------
    Recorded
    """
    step = OFTEN
    if recording in (THINNED, CHANGES):
        step = HOURLY
    table = _table_of(walks, step)
    options: dict[str, Any] = {}
    if recording == DROPPING:
        table = _seen(table, rng.choice(SEEN_OF_STEPS), rng)
        options["step"] = "1h"
    elif recording == THINNED:
        table = _seen(table, SEEN_OF_HOURS, rng)
    elif recording == CHANGES:
        is_new = np.ones(walks.shape, dtype=bool)
        is_new[:, 1:] = np.diff(walks) != 0
        table = table[is_new.ravel()]
    elif recording != IN_ORDER:
        table = table.sample(frac=1.0, random_state=rng)
    if recording == UNUSUAL_TIME:
        table = table.rename(columns={"time": "moment"})
    elif recording == UNUSUAL_USER:
        table = table.rename(columns={"user": "card"})
    sequences, is_asked = _read(table, options)
    every = 1
    if sequences.step is not None:
        every = max(1, round(sequences.step / step))
    return Recorded(sequences, every, is_asked)


def _table_of(walks: np.ndarray, step: timedelta) -> pd.DataFrame:
    """A row for each user and time."""
    users, length = walks.shape
    names = np.array([f"user {number}" for number in range(users)])
    times = pd.date_range(BEGIN, periods=length, freq=step)
    return pd.DataFrame(
        {"user": np.repeat(names, length), "time": np.tile(times, users), "place": walks.ravel()}
    )


def _seen(table: pd.DataFrame, share: float, rng: np.random.Generator) -> pd.DataFrame:
    """The rows that are seen, each with the probability `share`."""
    return table[rng.random(len(table)) < share]


def _read(table: pd.DataFrame, options: dict[str, Any]) -> tuple[Sequences, bool]:
    """The sequences, and whether the reader asked for an argument, which it then got."""
    with warnings.catch_warnings():
        # of rows between two steps, and of states that hold until the next row: on purpose
        warnings.simplefilter("ignore", UserWarning)
        try:
            return tr.read_sequences(table, **options), False
        except ValueError as error:
            remedy = _remedy_of(str(error))
            if not remedy:
                raise
        return tr.read_sequences(table, **options, **remedy), True


def _remedy_of(sentence: str) -> dict[str, Any]:
    """The arguments that an error of the reader names."""
    found = {name: pattern.search(sentence) for name, pattern in REMEDIES.items()}
    return {name: match.group(1) for name, match in found.items() if match}
