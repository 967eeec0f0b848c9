"""Sequences of states, stored flat: an array of codes 0..n-1, and offsets.

States are labels: places, pages, activities, or any whole numbers. A state's code is its position
among the states of one analysis.
"""

from __future__ import annotations
import itertools
import mmap
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from numbers import Number
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.display import count_noun
from tplrepro.validation import (
    FrozenArrays,
    as_numbers,
    check_choice,
    check_codes,
    check_horizon,
    checked_states,
)

COLUMNS = ["user", "time", "state"]
#: Values that are worked on at once.
BLOCK = 1 << 20


@dataclass(frozen=True, eq=False)
class Sequences(FrozenArrays):
    """Sequences of states, iterable as integer arrays; no array in them can be changed.

    >>> s = Sequences(np.array([0, 1, 1, 0, 2]), np.array([0, 3, 5]), np.array(["a", "b", "c"]), np.array([7, 9]))
    >>> [v.tolist() for v in s], s.n_transitions
    ([[0, 1, 1], [0, 2]], 3)
    >>> s.labels[s.select(s.users == 9)[0]].tolist()
    ['a', 'c']
    """

    values: np.ndarray  # (m,), codes 0..n-1 of the states, one sequence after the other
    offsets: np.ndarray  # (k + 1,); sequence i is values[offsets[i] : offsets[i + 1]]
    labels: np.ndarray  # (n,), what each code stands for: a cell, a page, an area
    users: np.ndarray  # (k,), the user of each sequence; a user may have several

    def __post_init__(self):
        # an empty list has no type
        values = np.asanyarray(self.values, None if len(self.values) else np.int32)
        offsets = as_numbers(
            self.offsets, "offsets must be whole numbers", "say where each sequence begins"
        )
        labels, users = _array_of(self.labels), _array_of(self.users)
        checked_states(labels.tolist())
        if values.ndim != 1 or values.dtype.kind not in "iu" or np.ma.is_masked(values):
            raise ValueError(
                f"values must be a flat array of integer codes, found {type(values).__name__} of {values.dtype}, "
                f"shape {values.shape}; put the states themselves into labels"
            )
        ends = offsets[[0, -1]].tolist() if offsets.ndim == 1 and offsets.size else []
        if ends != [0, len(values)] or not (np.diff(offsets) >= 0).all() or (offsets % 1).any():
            raise ValueError(
                f"offsets must rise from 0 to the number of values, {len(values)}, found "
                f"{np.array2string(offsets, threshold=6, edgeitems=2)}; give one more than the sequences"
            )
        if len(users) != len(offsets) - 1:
            raise ValueError(
                f"users must name the user of each of {len(offsets) - 1} sequences, found {len(users)}; "
                "repeat a user with several"
            )
        for start in range(0, len(values), BLOCK):
            check_codes(values[start : start + BLOCK], len(labels), "values")
            _release(values)
        vars(self).update(
            values=values, offsets=offsets.astype(np.int64), labels=labels, users=users
        )
        super().__post_init__()

    @classmethod
    def from_flat(
        cls, states: ArrayLike, offsets: ArrayLike, users: ArrayLike | None = None
    ) -> Self:
        """From the states themselves, (m,), in place of codes; the labels are those that occur,
        sorted."""
        offsets = np.asarray(offsets)
        labels, codes = _factorize(np.asarray(states), offsets)
        users = np.arange(len(offsets) - 1) if users is None else np.asarray(users)
        return cls(codes, offsets, labels, users)

    def __len__(self) -> int:
        return len(self.users)

    def __iter__(self) -> Iterator[np.ndarray]:
        for start, stop in itertools.pairwise(self.offsets.tolist()):
            yield self.values[start:stop]

    def __getitem__(self, i: int) -> np.ndarray:
        return self.values[self.offsets[:-1][i] : self.offsets[1:][i]]

    @property
    def n_states(self) -> int:
        return len(self.labels)

    @property
    def n_users(self) -> int:
        import pandas as pd

        return len(pd.unique(self.users))

    @property
    def lengths(self) -> np.ndarray:
        return np.diff(self.offsets)

    @property
    def n_transitions(self) -> int:
        return int(np.maximum(self.lengths - 1, 0).sum())

    def transitions(self) -> tuple[np.ndarray, np.ndarray]:
        """All pairs of consecutive states, as two arrays (n_transitions,): from, to."""
        inside = np.ones(len(self.values), dtype=bool)
        inside[self.offsets[:-1][self.lengths > 0]] = False
        to = np.flatnonzero(inside)
        return self.values[to - 1], self.values[to]

    def select(self, which: ArrayLike) -> Self:
        """The sequences at a boolean mask (k,) or an index array; states keep their codes."""
        which = np.asarray(which)
        return self.gather(self.offsets[:-1][which], self.offsets[1:][which], which)

    def blocks(self, size: int = BLOCK) -> Iterator[Sequences]:
        """These sequences in parts of about `size` values; the value at a cut is in both parts, so
        no step is lost."""
        if len(self.values) <= size:
            yield self
            return
        starts, stops, owner = self.stretches(size)
        limits = np.searchsorted(starts, np.arange(0, len(self.values), size))
        for first, last in itertools.pairwise(np.unique([*limits, len(owner)]).tolist()):
            yield self.gather(starts[first:last], stops[first:last], owner[first:last])
            _release(self.values)

    def stretches(self, steps: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Cut sequences after so many steps: where each piece begins and ends in `values`, and its
        sequence."""
        pieces = np.maximum(-(-(self.lengths - 1) // steps), 1)
        owner = np.repeat(np.arange(len(self)), pieces)
        starts = self.offsets[owner] + steps * (
            np.arange(owner.size) - (np.cumsum(pieces) - pieces)[owner]
        )
        return starts, np.minimum(starts + steps + 1, self.offsets[owner + 1]), owner

    def gather(self, starts: np.ndarray, stops: np.ndarray, owner: np.ndarray) -> Self:
        """The pieces of `values` from each start to its stop; `owner` is the sequence that a piece
        is from."""
        offsets = np.concatenate([[0], np.cumsum(stops - starts)])
        take = np.repeat(starts - offsets[:-1], stops - starts) + np.arange(offsets[-1])
        return replace(
            self, values=np.asarray(self.values[take]), offsets=offsets, users=self.users[owner]
        )

    def by_user(self) -> dict[Any, list[np.ndarray]]:
        """The list of sequences of each user, in the order of their first appearance."""
        grouped: dict = {}
        for user, sequence in zip(self.users.tolist(), self, strict=True):
            grouped.setdefault(user, []).append(sequence)
        return grouped

    def __repr__(self) -> str:
        return (
            f"Sequences({len(self)} sequences, {len(self.values)} values, {self.n_states} states)"
        )


def as_sequences(
    data: Any, n_states: int | None = None, states: Iterable | None = None
) -> Sequences:
    """Sequences of any kind as `Sequences`.

    `data` are Sequences, whose labels and users are kept; a DataFrame with the columns user, time
    and state; a mapping from each user to her sequence or sequences; or an iterable of sequences of
    whole numbers or labels. The states are the values seen, sorted; or `states`, all labels in
    their order; or 0..n_states-1.

    >>> seen = as_sequences([[30, 7, 7], [7, 30]])
    >>> seen.labels.tolist(), [s.tolist() for s in seen]
    ([7, 30], [[1, 0, 0], [0, 1]])
    >>> as_sequences({"ann": ["x", "y"], "bob": [["y"], ["y", "x"]]}, states=["y", "x", "z"])
    Sequences(3 sequences, 5 values, 3 states)
    """
    coded = data if isinstance(data, Sequences) else _coded(data)
    if coded.values.size == 0:
        raise ValueError(
            "estimation needs at least one observed state, found none; give non-empty sequences"
        )
    if states is None:
        if n_states is None or (coded is data and n_states == coded.n_states):
            return coded
        n_states = check_horizon(n_states, "n_states")
        states = range(n_states) if coded.labels.dtype.kind in "iu" else coded.labels
    labels = _array_of(checked_states(states, n_states))
    position = {label: code for code, label in enumerate(labels.tolist())}
    seen = coded.labels.tolist()
    codes = np.array([position.get(label, -1) for label in seen], dtype=np.int64)[coded.values]
    if codes.min() < 0:
        raise ValueError(
            f"unknown state {seen[coded.values[np.argmin(codes)]]!r} in the sequences; the states allowed are "
            f"{labels[:5].tolist()}{'...' if len(labels) > 5 else ''}: raise n_states, add it to states, or drop it"
        )
    return Sequences(codes, coded.offsets, labels, coded.users)


def count_transitions(
    sequences: Any,
    n_states: int | None = None,
    states: Iterable | None = None,
    direction: str = "forward",
) -> tuple[Any, list]:
    """The counts of steps from state to state, a csr_array (n, n) of floats, and the list of the n
    labels.

    Arguments as in `as_sequences`; "forward" counts l^{t-1} -> l^t, "backward" l^t -> l^{t-1}.

    >>> counts, states = count_transitions([["a", "b", "b"], ["b", "a"]])
    >>> states, counts.toarray().tolist()
    (['a', 'b'], [[0.0, 1.0], [1.0, 1.0]])
    """
    import scipy.sparse

    check_choice(direction, "direction", ["forward", "backward"])
    data = as_sequences(sequences, n_states, states)
    counts = scipy.sparse.csr_array((data.n_states, data.n_states))
    for block in data.blocks():
        before, after = block.transitions()
        steps = (before, after) if direction == "forward" else (after, before)
        counts = (
            counts
            + scipy.sparse.coo_array((np.ones(before.size), steps), shape=counts.shape).tocsr()
        )
    return counts, data.labels.tolist()


def with_columns(data: Any, named: dict[str, Any]) -> Any:
    """A DataFrame whose columns with these names are called user, time and state; data as they are
    without names."""
    given = {column: role for role, column in named.items() if column is not None}
    if not given:
        return data
    if not hasattr(data, "columns") or not {*given} <= {*data.columns}:
        found = [*data.columns] if hasattr(data, "columns") else type(data).__name__
        raise ValueError(
            f"{' and '.join(given.values())} must name columns of a DataFrame, found {found}; correct them"
        )
    others = {name for role, column in named.items() for name in (role,) if column is not None} - {
        *given
    }
    return data.drop(columns=others & {*data.columns}).rename(columns=given)


def _coded(data) -> Sequences:
    """Any data but Sequences as `Sequences` over the values seen."""
    if hasattr(data, "columns"):
        return _from_frame(data)
    if isinstance(data, (str, bytes, PathLike)):
        raise ValueError(
            f"sequences must be a list of sequences, a mapping or a DataFrame, found {data!r}; "
            "read a file with tplreport.read_sequences"
        )
    pairs: Any = enumerate(data if np.iterable(data) else [data])
    if isinstance(data, Mapping):
        pairs = (
            (user, sequence) for user, value in data.items() for sequence in _sequences_of(value)
        )
    users, sequences = [*zip(*pairs, strict=True)] or [(), ()]
    arrays = [_one_dimensional(sequence, position) for position, sequence in enumerate(sequences)]
    nonempty = [array for array in arrays if array.size] or [np.empty(0, np.int32)]
    # Together, int64 and uint64 would become floats, in which large labels are equal.
    exact = None if np.result_type(*nonempty).kind in "iuO" else object
    states, offsets = np.concatenate(nonempty, dtype=exact), np.cumsum([0, *map(len, arrays)])
    return Sequences.from_flat(states, offsets, _array_of(users))


def _from_frame(frame) -> Sequences:
    if any(name not in frame.columns for name in COLUMNS):
        raise ValueError(
            f"a DataFrame must have columns user, time and state, found {list(frame.columns)}; rename them"
        )
    if frame["time"].dtype.kind not in "iufMm":
        raise ValueError(
            f"column time must hold numbers or time stamps, found {frame['time'].dtype}; use pandas.to_datetime"
        )
    missing = frame[COLUMNS].isna().any()
    if missing.any():
        raise ValueError(
            f"observations must not be missing, found some in column {missing.idxmax()}; drop them"
        )
    ordered = frame[COLUMNS].sort_values(["user", "time"], kind="stable")
    twice = ordered[ordered.duplicated(["user", "time"])]
    if len(twice):
        user, time = twice.iloc[0][["user", "time"]]
        raise ValueError(
            f"a user must have one row at a time, found {count_noun(len(twice), 'row')} beyond it, such as of {user!r} at "
            f"{time}; drop them, or use tr.read_sequences with same_time="
        )
    users = ordered["user"].to_numpy()
    starts = np.flatnonzero(np.append(True, users[1:] != users[:-1])[: len(users)])
    return Sequences.from_flat(
        ordered["state"].to_numpy(), np.append(starts, len(users)), users[starts]
    )


def _sequences_of(value: Any) -> list:
    """The sequences of one user, whose value in a mapping may be a single sequence."""
    if isinstance(value, str) or not np.iterable(value):
        return [value]
    items: Any = value if hasattr(value, "__len__") else list(value)
    is_single = np.ndim(next(iter(items), 0)) == 0
    return [items] if is_single else list(items)


def _one_dimensional(sequence, position: int) -> np.ndarray:
    """A sequence of states as an array, of integers or of objects."""
    if isinstance(sequence, np.ma.MaskedArray):
        sequence = np.ma.filled(sequence.astype(object), np.nan)
    if isinstance(sequence, np.ndarray) and sequence.ndim == 1 and sequence.dtype.kind in "iu":
        return sequence
    if isinstance(sequence, (str, bytes, set, frozenset, Mapping)) or not np.iterable(sequence):
        raise ValueError(
            f"each sequence must be a list of states, found {sequence!r} at position {position}; "
            "wrap a single one in a list, or read a file with tplreport.read_sequences"
        )
    return np.fromiter(sequence, dtype=object)


def _factorize(states: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct states, sorted, and the int32 codes (m,) of all."""
    import pandas as pd

    try:
        codes, labels = pd.factorize(states)
    except TypeError as error:
        raise ValueError(
            f"each sequence must be one-dimensional, found nested ones ({error}); give a list of flat sequences"
        ) from None
    wrong = codes < 0
    if labels.dtype.kind in "Ofc":
        converted = [
            _whole_number(label) if isinstance(label, Number) else label
            for label in labels.tolist()
        ]
        wrong |= np.array([label is None for label in [*converted, None]], dtype=bool)[codes]
        labels = _array_of(converted)
    if wrong.any():
        first = int(np.argmax(wrong))
        raise ValueError(
            f"states must be whole numbers or labels, not missing, found {states[first]} in sequence "
            f"{np.searchsorted(offsets, first, 'right') - 1}; drop it or split there, or put numbers into bins"
        )
    try:
        order = np.argsort(labels)
    except TypeError as error:
        raise ValueError(
            f"labels must be of one kind, to be sorted, found a mix ({error}); convert them"
        ) from None
    return labels[order], np.argsort(order).astype(np.int32)[codes]


def _release(values: np.ndarray) -> None:
    """Give back the memory of values that are mapped from a file."""
    if isinstance(values, np.memmap) and hasattr(mmap, "MADV_DONTNEED"):
        values._mmap.madvise(mmap.MADV_DONTNEED)  # type: ignore[attr-defined]


def _whole_number(value: Any) -> int | None:
    with suppress(TypeError, OverflowError, ValueError):  # numpy.timedelta64, NaN
        if value == round(value.real):
            return int(value.real)
    return None


def _array_of(labels: Iterable) -> np.ndarray:
    """Labels as a 1-D array: tuples stay tuples, and numbers among strings stay numbers."""
    if isinstance(labels, np.ndarray) and labels.ndim == 1:
        return labels
    labels = list(labels)
    types = {*map(type, labels)}
    is_text = types <= {str, np.str_}
    # larger ones become floats
    is_whole = types <= {int, np.int64} and max(map(abs, labels), default=0) < 2**63
    return np.array(labels) if is_text or is_whole else np.fromiter(labels, object, len(labels))
