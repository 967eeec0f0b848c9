"""Counts of steps to which one user adds at most a number that is fixed in advance.

The first m steps of each user are counted, in the order of the data: a rule that looks at no value,
so the steps left from a state still lead to the next one with the probabilities of its row,
whatever came before. One user who is replaced changes the counts of any row and any set of columns
by at most m, and all counts together by at most 2m in sum.
"""

from __future__ import annotations
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tplreport.reading.rows_by_user import plain_label
from tplreport.reading.time_steps import in_units_of
from tplrepro.markov.sequences import Sequences, as_sequences
from tplrepro.validation import checked_states


@dataclass(frozen=True)
class FirstSteps:
    """Counts (n, n) of the first steps of each user, between states that were given."""

    counts: np.ndarray
    states: list
    users: int
    step: str | None = None  # how long a step takes, if that was asked for

    @classmethod
    def of(cls, sequences: Any, states: Any, steps_per_user: int, elsewhere: Any) -> FirstSteps:
        """Count at most `steps_per_user` steps of each user of `sequences` between `states`.

        `elsewhere` is the state that stands for values that are none of the others; None: they are
        an error, which names no value.
        """
        labels = _checked_labels(states, elsewhere)
        data = as_sequences(sequences)
        users = _public_users(data)
        code_of_seen = _codes_of(data.labels.tolist(), labels, elsewhere)
        codes = code_of_seen[data.values]
        if codes.min() < 0:
            raise ValueError(
                "states must hold every state that can occur, found other ones in the data; name "
                "all that are possible by what is public, or give elsewhere= one of them, which "
                "then stands for all others (what occurs is private: publish no list of it)"
            )
        later = _places_of_first_steps(data, steps_per_user)
        n = len(labels)
        counts = np.zeros((n, n), np.int64)
        np.add.at(counts, (codes[later - 1], codes[later]), 1)
        return cls(counts, labels, users, _public_step(data))


def _public_users(data: Sequences) -> int:
    """How many users there are, those included of whom no state was read; ValueError for data that
    were read so that one user changes what is counted of others."""
    reading = getattr(data, "reading", None)
    if reading is None:
        return data.n_users
    if reading.of_all:
        raise ValueError(
            "what is counted of a user must not depend on the rows of others, found that those of "
            f"all decide {' and '.join(reading.of_all)}; read the data again"
        )
    return max(data.n_users, reading.users)


def _public_step(data: Sequences) -> str | None:
    """How long a step takes, unless it was found from the rows."""
    step = data.step
    reading = getattr(data, "reading", None)
    if reading is not None:
        step = reading.given_step
    if step is None:
        return None
    return in_units_of(step)


def _checked_labels(states: Any, elsewhere: Any) -> list:
    if states is None:
        raise ValueError(
            "states must be given, found none: which states occur is private; list those that are "
            "possible"
        )
    if isinstance(states, str):
        raise ValueError(
            "states must be a list of labels, found a text; give such as ['home', 'work']"
        )
    if isinstance(states, int):
        states = range(states)
    labels = list(checked_states(states))
    if len(labels) < 2:
        raise ValueError(f"there must be at least two states, found {len(labels)}; name others")
    if elsewhere is not None and elsewhere not in labels:
        raise ValueError(
            f"elsewhere must be one of the states, found {elsewhere!r}; add it to states="
        )
    return labels


def _codes_of(seen: Iterable, labels: list, elsewhere: Any) -> np.ndarray:
    """The code of each label that was seen, that of `elsewhere` for others; -1 without it."""
    code_of_label = {label: code for code, label in enumerate(labels)}
    plain = {_plain(label): code for label, code in code_of_label.items()}
    if len(plain) == len(labels):
        code_of_label = plain
        seen = map(_plain, seen)
    other = -1
    if elsewhere is not None:
        other = labels.index(elsewhere)
    return np.array([code_of_label.get(label, other) for label in seen], dtype=np.int64)


def _plain(label: Any) -> Hashable:
    """The plain form of a label by itself.

    Whether a file has 1 or "1" depends on the other rows of its column: one user with another text
    would change the states of all.
    """
    return plain_label(label, frozenset())


def _places_of_first_steps(data: Sequences, steps_per_user: int) -> np.ndarray:
    """Where the values stand to which the first steps of each user lead."""
    import pandas as pd

    later = data.places_of_later_values()
    sequence_of_value = np.repeat(np.arange(len(data)), data.lengths)
    user_of_sequence = pd.factorize(data.users)[0]
    users = pd.Series(user_of_sequence[sequence_of_value[later]])
    number_of_step = users.groupby(users).cumcount().to_numpy()
    return later[number_of_step < steps_per_user]
