"""Ragged sequences of states: one flat array of codes and the offsets at which each sequence begins.

Estimation of a Markov chain wants the sequences of many users, of very different lengths. Kept as a list of arrays,
a million sessions cost a million Python objects; kept flat they cost two arrays.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

__all__ = ["Sequences"]


@dataclass(frozen=True, eq=False)
class Sequences:
    """Sequences of states, iterable as integer arrays.

    Parameters
    ----------
    values : int array (m,)
        Codes 0..n-1 of the states, one sequence after the other.
    offsets : int64 array (k + 1,)
        Sequence i is ``values[offsets[i]:offsets[i + 1]]``.
    labels : array (n,)
        What each code stands for: a cell, a page, an area.
    users : array (k,)
        The user of each sequence; a user may have several.

    Raises
    ------
    ValueError
        The arrays do not fit each other.

    Examples
    --------
    >>> import numpy as np
    >>> s = Sequences(np.array([0, 1, 1, 0, 2]), np.array([0, 3, 5]), np.array(["a", "b", "c"]), np.array([7, 9]))
    >>> [v.tolist() for v in s]
    [[0, 1, 1], [0, 2]]
    >>> s.n_states, s.n_transitions, len(s)
    (3, 3, 2)
    >>> s.select(s.users == 9).labels_of(0).tolist()
    ['a', 'c']
    """

    values: np.ndarray
    offsets: np.ndarray
    labels: np.ndarray
    users: np.ndarray

    def __post_init__(self):
        values = np.asarray(self.values)
        offsets = np.asarray(self.offsets, dtype=np.int64)
        labels, users = np.asarray(self.labels), np.asarray(self.users)
        if values.ndim != 1 or (values.size and not np.issubdtype(values.dtype, np.integer)):
            raise ValueError(
                f"values must be a flat array of integer codes, found {values.dtype} with shape {values.shape}; "
                "pass codes and put what they stand for into labels"
            )
        if not values.size:
            values = values.astype(np.int32)
        if (
            offsets.ndim != 1
            or not offsets.size
            or offsets[0] != 0
            or offsets[-1] != len(values)
            or (np.diff(offsets) < 0).any()
        ):
            raise ValueError(
                f"offsets must rise from 0 to the number of values, {len(values)}, found {_brief(offsets)}; "
                "give one more offset than there are sequences"
            )
        if len(users) != len(offsets) - 1:
            raise ValueError(
                f"users must name one user a sequence, {len(offsets) - 1}, found {len(users)}; repeat a user that "
                "has several sequences"
            )
        if values.size and not 0 <= int(values.min()) <= int(values.max()) < len(labels):
            raise ValueError(
                f"values must be codes from 0 to {len(labels) - 1}, found {int(values.min())} to "
                f"{int(values.max())}; give one label a state"
            )
        for name, array in (("values", values), ("offsets", offsets), ("labels", labels), ("users", users)):
            array = array.view()
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @classmethod
    def from_flat(cls, states, offsets, users=None) -> Sequences:
        """From states that are not codes yet, (m,); the labels are the states that occur, sorted."""
        states = np.asarray(states)
        labels, codes = _factorize(states)
        users = np.arange(len(offsets) - 1) if users is None else users
        return cls(codes, offsets, labels, users)

    def __len__(self) -> int:
        return len(self.users)

    def __iter__(self) -> Iterator[np.ndarray]:
        offsets = self.offsets.tolist()
        for start, stop in itertools.pairwise(offsets):
            yield self.values[start:stop]

    def __getitem__(self, i: int) -> np.ndarray:
        if not -len(self) <= i < len(self):
            raise IndexError(f"there are {len(self)} sequences, found index {i}")
        i %= len(self)
        return self.values[self.offsets[i] : self.offsets[i + 1]]

    @property
    def n_states(self) -> int:
        """Number of states, seen or not."""
        return len(self.labels)

    @property
    def lengths(self) -> np.ndarray:
        """Length of each sequence, (k,)."""
        return np.diff(self.offsets)

    @property
    def n_transitions(self) -> int:
        """Number of pairs of consecutive states."""
        return int(np.maximum(self.lengths - 1, 0).sum())

    def labels_of(self, i: int) -> np.ndarray:
        """Sequence i in labels instead of codes."""
        return self.labels[self[i]]

    def transitions(self) -> tuple[np.ndarray, np.ndarray]:
        """All pairs of consecutive states, as two arrays (n_transitions,): from, to."""
        inside = np.ones(len(self.values), dtype=bool)
        inside[self.offsets[:-1][self.lengths > 0]] = False
        to = np.flatnonzero(inside)
        return self.values[to - 1], self.values[to]

    def select(self, which) -> Sequences:
        """The sequences that a boolean mask (k,) or an index array names; states keep their codes."""
        which = np.asarray(which)
        which = np.flatnonzero(which) if which.dtype == bool else which
        lengths = self.lengths[which]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        take = np.repeat(self.offsets[:-1][which] - offsets[:-1], lengths) + np.arange(offsets[-1])
        return Sequences(self.values[take], offsets, self.labels, self.users[which])

    def compact(self) -> Sequences:
        """The same sequences over the states that occur only."""
        seen, codes = _factorize(self.values)
        return Sequences(codes, self.offsets, self.labels[seen], self.users)

    def by_user(self) -> dict:
        """The list of sequences of each user, users in order of first appearance."""
        grouped: dict = {}
        for user, sequence in zip(self.users.tolist(), self, strict=True):
            grouped.setdefault(user, []).append(sequence)
        return grouped

    def __repr__(self) -> str:
        return f"Sequences({len(self)} sequences, {len(self.values)} values, {self.n_states} states)"


def _factorize(states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sorted distinct states and int32 codes; by a table where the states are small integers, which is much faster."""
    if states.size and np.issubdtype(states.dtype, np.integer):
        low, high = int(states.min()), int(states.max())
        if high - low < max(10 * states.size, 1 << 20):
            seen = np.zeros(high - low + 1, dtype=bool)
            seen[states - low] = True
            code = np.cumsum(seen, dtype=np.int32) - np.int32(1)
            return (np.flatnonzero(seen) + low).astype(states.dtype), code[states - low]
    labels, codes = np.unique(states, return_inverse=True)
    return labels, codes.astype(np.int32)


def _brief(array: np.ndarray) -> str:
    return np.array2string(array, threshold=6, edgeitems=2)
