"""Sequences of states, stored flat: an array of codes 0..n-1, and offsets.

States are labels: places, pages, activities, or any whole numbers. A state's code is its position
among the states of one analysis.

Sequences know the times of their values, if there are any: as the local clock shows them, where
there is one. Those that were cut into even steps keep the time of the first value of each sequence;
others, and those in which a clock was changed, the time of each value.
"""

from __future__ import annotations
import itertools
import mmap
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, replace
from datetime import timedelta
from numbers import Number
from os import PathLike
from typing import Any, Self, TypeVar

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
#: Counts of so many cells are kept as an array.
MOST_CELLS = 1 << 22
#: Times are kept as those, and a step is a whole number of them.
MICROSECONDS = np.dtype("datetime64[us]")
#: Monday at midnight, with which weeks begin, and so does a day.
MONDAY = np.datetime64("1970-01-05", "us")
AnySequences = TypeVar("AnySequences", bound="Sequences")
#: Whole numbers from this size on become floats in an array, in which large labels are equal.
FIRST_INEXACT = 2**63


@dataclass(frozen=True, eq=False)
class Sequences(FrozenArrays):
    """Sequences of states, iterable as integer arrays; no array in them can be changed.

    >>> s = Sequences(np.array([0, 1, 1, 0, 2]), [0, 3, 5], labels=["a", "b", "c"], users=[7, 9])
    >>> [v.tolist() for v in s], s.n_transitions
    ([[0, 1, 1], [0, 2]], 3)
    >>> s.labels[s.select(s.users == 9)[0]].tolist()
    ['a', 'c']
    """

    values: np.ndarray  # (m,), codes 0..n-1 of the states, one sequence after the other
    offsets: np.ndarray  # (k + 1,); sequence i is values[offsets[i] : offsets[i + 1]]
    labels: np.ndarray  # (n,), what each code stands for: a cell, a page, an area
    users: np.ndarray  # (k,), the user of each sequence; a user may have several
    _: KW_ONLY
    starts: np.ndarray | None = None  # (k,), time of the first value of each; the others by `step`
    times: np.ndarray | None = None  # (m,), time of each value, where `starts` do not tell it
    step: timedelta | None = None  # between two values of a sequence, if it is always the same
    zone: str | None = None  # whose clock shows the times; None if they have no zone

    def __post_init__(self):
        must = "offsets must be whole numbers"
        offsets = as_numbers(self.offsets, must, "say where each sequence begins")
        labels = _as_label_array(self.labels)
        users = _as_label_array(self.users)
        checked_states(labels.tolist())
        values = _checked_values(self.values)
        _check_offsets(offsets, len(values))
        if len(users) != len(offsets) - 1:
            raise ValueError(
                f"users must name the user of each of {len(offsets) - 1} sequences, "
                f"found {len(users)}; repeat a user with several"
            )
        for start in range(0, len(values), BLOCK):
            block = values[start : start + BLOCK]
            check_codes(block, len(labels), "values")
            _release_memory(values)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "offsets", offsets.astype(np.int64))
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "users", users)
        object.__setattr__(self, "starts", _checked_times(self.starts, len(users), "starts"))
        object.__setattr__(self, "times", _checked_times(self.times, len(values), "times"))
        _check_clock(self.starts, self.times, self.step)
        super().__post_init__()

    @classmethod
    def from_flat(
        cls, states: ArrayLike, offsets: ArrayLike, users: ArrayLike | None = None
    ) -> Self:
        """Sequences from the states themselves in place of codes.

        Parameters
        ----------
        states : array-like (m,)
            The states of all sequences, one after the other; those that occur, sorted, are the
            labels.
        offsets : array-like (k + 1,)
            Sequence i is states[offsets[i] : offsets[i + 1]].
        users : array-like (k,), optional
            The user of each sequence, by default 0..k-1.

        Returns
        -------
        Sequences

        Raises
        ------
        ValueError
            If a state is missing or no whole number or label, or offsets do not rise from 0 to m.
        """
        offsets = np.asarray(offsets)
        labels, codes = _factorize(np.asarray(states), offsets)
        if users is None:
            users = np.arange(len(offsets) - 1)
        return cls(codes, offsets, labels, np.asarray(users))

    def __len__(self) -> int:
        return len(self.users)

    def __iter__(self) -> Iterator[np.ndarray]:
        for start, stop in itertools.pairwise(self.offsets.tolist()):
            yield self.values[start:stop]

    def __getitem__(self, i: int) -> np.ndarray:
        start = self.offsets[:-1][i]
        stop = self.offsets[1:][i]
        return self.values[start:stop]

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
        transitions = np.maximum(self.lengths - 1, 0)
        return int(transitions.sum())

    def transitions(self) -> tuple[np.ndarray, np.ndarray]:
        """All pairs of consecutive states, as two arrays (n_transitions,): from, to."""
        later = self.places_of_later_values()
        return self.values[later - 1], self.values[later]

    def places_of_later_values(self) -> np.ndarray:
        """Where each value stands that another one of its sequence comes before,
        (n_transitions,)."""
        is_filled = self.lengths > 0
        starts = self.offsets[:-1][is_filled]
        has_previous = np.ones(len(self.values), dtype=bool)
        has_previous[starts] = False
        return np.flatnonzero(has_previous)

    def select(self, which: ArrayLike) -> Self:
        """The sequences at a boolean mask (k,) or an index array; states keep their codes."""
        numbers = np.arange(len(self))[np.asarray(which)]
        return self.gather(self.offsets[numbers], self.offsets[numbers + 1], numbers)

    def part(self, first: int, stop: int) -> Self:
        """The sequences from number `first` up to `stop`, without a copy of their values.

        Parameters
        ----------
        first, stop : int
            Between 0 and the number of sequences.

        Returns
        -------
        Sequences

        Raises
        ------
        IndexError
            Without any such place, `stop` before `first`.
        """
        offsets = self.offsets[first : stop + 1]
        values = slice(offsets[0], offsets[-1])
        first_times = self.starts
        if first_times is not None:
            first_times = first_times[first:stop]
        times = self.times
        if times is not None:
            times = times[values]
        return replace(
            self,
            values=self.values[values],
            offsets=offsets - offsets[0],
            users=self.users[first:stop],
            starts=first_times,
            times=times,
        )

    def blocks(self, size: int = BLOCK) -> Iterator[Sequences]:
        """These sequences in parts of about `size` values; the value at a cut is in both parts, so
        no step is lost."""
        if len(self.values) <= size:
            yield self
            return
        starts, stops, owner = self.stretches(size)
        cuts = np.arange(0, len(self.values), size)
        limits = np.searchsorted(starts, cuts)
        limits = np.unique([*limits, len(owner)])
        for first, last in itertools.pairwise(limits.tolist()):
            pieces = slice(first, last)
            yield self.gather(starts[pieces], stops[pieces], owner[pieces])
            _release_memory(self.values)

    def stretches(self, steps: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Cut sequences after so many steps: where each piece begins and ends in `values`, and its
        sequence. Successive pieces share the value at which they were cut."""
        n_pieces = np.ceil((self.lengths - 1) / steps).astype(np.int64)
        n_pieces = np.maximum(n_pieces, 1)
        owner = np.repeat(np.arange(len(self)), n_pieces)
        first_piece = np.cumsum(n_pieces) - n_pieces
        number = np.arange(owner.size) - first_piece[owner]  # of each piece in its sequence
        starts = self.offsets[owner] + steps * number
        ends = self.offsets[owner + 1]
        stops = np.minimum(starts + steps + 1, ends)
        return starts, stops, owner

    def gather(self, starts: np.ndarray, stops: np.ndarray, owner: np.ndarray) -> Self:
        """New sequences that are pieces of these.

        Parameters
        ----------
        starts, stops : array (p,)
            Where each piece begins and ends in `values`.
        owner : array (p,)
            The sequence that each piece is from, whose user it keeps.

        Returns
        -------
        Sequences

        Raises
        ------
        IndexError
            If a piece ends beyond the values.
        """
        lengths = stops - starts
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        new_places = np.arange(offsets[-1])
        distances = np.repeat(starts - offsets[:-1], lengths)
        places = distances + new_places
        times = self.times
        if times is not None:
            times = np.asarray(times[places])
        first_times = self.starts
        if first_times is not None:
            length = np.timedelta64(self.step, "us")
            first_times = first_times[owner] + length * (starts - self.offsets[owner])
        return replace(
            self,
            values=np.asarray(self.values[places]),
            offsets=offsets,
            users=self.users[owner],
            starts=first_times,
            times=times,
        )

    def phases(self, period: timedelta) -> np.ndarray:
        """How many steps before each value a period began, such as a day.

        Parameters
        ----------
        period : datetime.timedelta
            A multiple of the step. Days begin at midnight, weeks at midnight before Monday, by the
            clock of the times.

        Returns
        -------
        array (m,) of whole numbers below p, the steps of a period

        Raises
        ------
        ValueError
            Without times or an even step, or if no whole number of steps is a period.

        Examples
        --------
        >>> noon = np.array(["2024-05-01T12:00"], "datetime64[us]")
        >>> hours = dict(starts=noon, step=timedelta(hours=6))
        >>> Sequences([0, 1, 1], [0, 3], labels=["a", "b"], users=[7], **hours).phases(
        ...     timedelta(days=1)
        ... ).tolist()
        [2, 3, 0]
        """
        p = steps_of_period(self.step, period)
        length = np.timedelta64(self.step, "us")
        if self.times is not None:
            return (self.times - MONDAY) // length % p
        if self.starts is None:
            raise ValueError(
                "sequences must know their times, found none; read them with a column of time "
                "stamps, and step="
            )
        first = (self.starts - MONDAY) // length % p
        distance = first - self.offsets[:-1]
        return (np.repeat(distance, self.lengths) + np.arange(len(self.values))) % p

    def by_user(self) -> dict[Any, list[np.ndarray]]:
        """The list of sequences of each user, in the order of their first appearance."""
        grouped: dict = {}
        for user, sequence in zip(self.users.tolist(), self, strict=True):
            grouped.setdefault(user, []).append(sequence)
        return grouped

    def __repr__(self) -> str:
        n_values = len(self.values)
        return f"Sequences({len(self)} sequences, {n_values} values, {self.n_states} states)"


def _checked_values(values: Any) -> np.ndarray:
    """A flat array of integer codes."""
    if len(values) == 0:  # an empty list has no type
        values = np.asanyarray(values, np.int32)
    values = np.asanyarray(values)
    if values.ndim != 1 or values.dtype.kind not in "iu" or np.ma.is_masked(values):
        raise ValueError(
            f"values must be a flat array of integer codes, found {type(values).__name__} of "
            f"{values.dtype}, shape {values.shape}; put the states themselves into labels"
        )
    return values


def _check_offsets(offsets: np.ndarray, n_values: int) -> None:
    ends = []
    if offsets.ndim == 1 and offsets.size:
        ends = offsets[[0, -1]].tolist()
    is_rising = np.diff(offsets) >= 0
    is_fraction = offsets % 1 != 0
    if ends != [0, n_values] or not is_rising.all() or is_fraction.any():
        found = np.array2string(offsets, threshold=6, edgeitems=2)
        raise ValueError(
            f"offsets must rise from 0 to the number of values, {n_values}, found {found}; "
            "give one more than the sequences"
        )


def _checked_times(times: Any, size: int, name: str) -> np.ndarray | None:
    """Times (size,) of type datetime64, to the microsecond; None stays None. Errors call them
    `name`."""
    if times is None:
        return None
    times = np.asanyarray(times)
    if times.shape != (size,) or times.dtype.kind != "M" or np.isnat(times).any():
        raise ValueError(
            f"{name} must be {size} times of type datetime64, found {times.dtype}, shape "
            f"{times.shape}; give one for each {'sequence' if name == 'starts' else 'value'}"
        )
    if times.dtype == MICROSECONDS:
        return times
    return times.astype(MICROSECONDS)


def _check_clock(
    starts: np.ndarray | None, times: np.ndarray | None, step: timedelta | None
) -> None:
    """Refuse starts together with times or without a step, and a step that is not positive."""
    if starts is not None and (step is None or times is not None):
        raise ValueError(
            "starts must come with the step that tells the other times, and without times, found "
            f"step={step}; give starts and step, or times"
        )
    if step is not None and step <= timedelta(0):
        raise ValueError(f"step must be positive, found {step}; give such as timedelta(hours=1)")


def steps_of_period(step: timedelta | None, period: timedelta) -> int:
    """How many steps a period has.

    Parameters
    ----------
    step : datetime.timedelta or None
    period : datetime.timedelta

    Returns
    -------
    int >= 1

    Raises
    ------
    ValueError
        Without a step, and for a period that is no multiple of it.
    """
    if step is None:
        raise ValueError(
            "phases need sequences with one time step, found none or several; read them with "
            "step= such as '1h'"
        )
    if period % step:
        raise ValueError(
            f"a period must be a whole number of steps, found {period} and steps of {step}; choose "
            "a step that divides it"
        )
    return period // step


def with_even_times(
    sequences: AnySequences, times: np.ndarray, step: timedelta | None, zone: str | None
) -> AnySequences:
    """The sequences with the times of their values.

    Parameters
    ----------
    sequences : Sequences
    times : array (m,) of datetime64, as the local clock shows them
    step : datetime.timedelta or None
        Between two values of a sequence, if it is always the same.
    zone : str or None
        Whose clock that is.

    Returns
    -------
    Sequences with `starts` in place of times, if these tell the others by the step

    Raises
    ------
    ValueError
        For another number of times.
    """
    if step is None or not _are_even(times, sequences.offsets, step):
        return replace(sequences, times=times, step=step, zone=zone)
    is_filled = sequences.lengths > 0
    starts = np.full(len(sequences), MONDAY)
    starts[is_filled] = times[sequences.offsets[:-1][is_filled]]
    return replace(sequences, starts=starts, step=step, zone=zone)


def _are_even(times: np.ndarray, offsets: np.ndarray, step: timedelta) -> bool:
    """Whether times (m,) of one sequence after the other are a step apart in each of them; sequence
    k begins at offsets[k]."""
    length = np.timedelta64(step, "us")
    for begin in range(0, len(times), BLOCK):
        differences = np.diff(times[begin : begin + BLOCK + 1])
        first, last = np.searchsorted(offsets, [begin + 1, begin + 1 + len(differences)])
        differences[offsets[first:last] - begin - 1] = length  # to another sequence
        if (differences != length).any():
            return False
    return True


def common_step(times: np.ndarray, offsets: np.ndarray) -> timedelta | None:
    """The step between two values of a sequence, if it is always the same and positive.

    Parameters
    ----------
    times : array (m,) of datetime64, instants of one sequence after the other
    offsets : array (k + 1,)
        Where each sequence begins, and m.

    Returns
    -------
    datetime.timedelta, or None

    Examples
    --------
    >>> common_step(np.array([0, 60, 120, 7, 67], "datetime64[m]"), np.array([0, 3, 5]))
    datetime.timedelta(seconds=3600)
    """
    differences = np.diff(times)
    is_inside = np.ones(len(times), dtype=bool)
    is_inside[offsets[:-1][np.diff(offsets) > 0]] = False
    inside = differences[is_inside[1:]]
    if inside.size == 0 or (inside != inside[0]).any():
        return None
    microseconds, rest = divmod(inside[0], np.timedelta64(1, "us"))
    if rest or microseconds <= 0:
        return None
    return timedelta(microseconds=int(microseconds))


def as_sequences(
    data: Any, n_states: int | None = None, states: Iterable | None = None
) -> Sequences:
    """Sequences of any kind as `Sequences`.

    Parameters
    ----------
    data : Sequences, DataFrame, mapping, or iterable of sequences
        `Sequences` keep their labels and users; a DataFrame has the columns user, time and state;
        a mapping leads from each user to her sequence or sequences; a sequence holds whole numbers
        or labels.
    n_states : int, optional
        The states are 0..n_states-1, instead of the values seen.
    states : sequence of labels, optional
        All states in their order, instead of the values seen, sorted.

    Returns
    -------
    Sequences

    Raises
    ------
    ValueError
        If there is no state, a state is missing or unknown, or a sequence is no list of states.

    Examples
    --------
    >>> seen = as_sequences([[30, 7, 7], [7, 30]])
    >>> seen.labels.tolist(), [s.tolist() for s in seen]
    ([7, 30], [[1, 0, 0], [0, 1]])
    >>> as_sequences({"ann": ["x", "y"], "bob": [["y"], ["y", "x"]]}, states=["y", "x", "z"])
    Sequences(3 sequences, 5 values, 3 states)
    """
    coded = data
    if not isinstance(data, Sequences):
        coded = _code_values_seen(data)
    if coded.values.size == 0:
        raise ValueError(
            "estimation needs at least one observed state, found none; give non-empty sequences"
        )
    if states is None:
        if n_states is None or (coded is data and n_states == coded.n_states):
            return coded
        n_states = check_horizon(n_states, "n_states")
        states = coded.labels
        if coded.labels.dtype.kind in "iu":
            states = range(n_states)
    checked = checked_states(states, n_states)
    return _recode(coded, _as_label_array(checked))


def _recode(coded: Sequences, labels: np.ndarray) -> Sequences:
    """The same sequences over other states (n,), which must be all that occur, or more."""
    position = {label: code for code, label in enumerate(labels.tolist())}
    seen = coded.labels.tolist()
    new_codes = np.array([position.get(label, -1) for label in seen], dtype=np.int64)
    codes = new_codes[coded.values]
    if codes.min() < 0:
        first_unknown = np.argmin(codes)
        unknown = seen[coded.values[first_unknown]]
        allowed = f"{labels[:5].tolist()}"
        if len(labels) > 5:
            allowed += "..."
        raise ValueError(
            f"unknown state {unknown!r} in the sequences; the states allowed are "
            f"{allowed}: raise n_states, add it to states, or drop it"
        )
    return replace(coded, values=codes, labels=labels)


def count_transitions(
    sequences: Any,
    n_states: int | None = None,
    states: Iterable | None = None,
    direction: str = "forward",
) -> tuple[Any, list]:
    """Count the steps from state to state.

    Parameters
    ----------
    sequences : Sequences, DataFrame, mapping, or iterable of sequences
        A DataFrame has the columns user, time and state; a mapping leads from each user to her
        sequence or sequences; a sequence holds whole numbers or labels.
    n_states : int, optional
        The states are 0..n_states-1, instead of the values seen.
    states : sequence of labels, optional
        All states in their order, instead of the values seen, sorted.
    direction : str
        "forward" counts l^{t-1} -> l^t, "backward" l^t -> l^{t-1}.

    Returns
    -------
    counts : csr_array (n, n) of float
    labels : list of the n states

    Raises
    ------
    ValueError
        If there is no state, a state is missing or unknown, or a sequence is no list of states.

    Examples
    --------
    >>> counts, states = count_transitions([["a", "b", "b"], ["b", "a"]])
    >>> states, counts.toarray().tolist()
    (['a', 'b'], [[0.0, 1.0], [1.0, 1.0]])
    """
    check_choice(direction, "direction", ["forward", "backward"])
    data = as_sequences(sequences, n_states, states)
    counts = CountedPairs((data.n_states, data.n_states), data.n_transitions)
    for block in data.blocks():
        earlier, later = block.transitions()
        if direction == "backward":
            earlier, later = later, earlier
        counts.add(earlier, later)
    return counts.table, data.labels.tolist()


class CountedPairs:
    """How often each row of a table of `shape` was met with each column.

    `expected` says about how many pairs will be added: tables of few cells are counted cell by
    cell, which takes a tenth of the time of a sort.

    >>> counts = CountedPairs((2, 3), expected=10)
    >>> counts.add(np.array([0, 1, 0]), np.array([2, 0, 2]))
    >>> counts.table.toarray().tolist()
    [[0.0, 0.0, 2.0], [1.0, 0.0, 0.0]]
    """

    def __init__(self, shape: tuple[int, int], expected: int):
        import scipy.sparse

        self.shape = shape
        self.n_cells = shape[0] * shape[1]
        self.of_cells = None
        self.sparse = scipy.sparse.csr_array(shape)
        if self.n_cells <= min(expected, MOST_CELLS):
            self.of_cells = np.zeros(self.n_cells)

    def add(self, rows: np.ndarray, columns: np.ndarray) -> None:
        """Count m pairs; both arrays are (m,)."""
        if self.of_cells is None:
            self.sparse = self.sparse + self._sorted(rows, columns)
        else:
            cells = rows.astype(np.int64) * self.shape[1] + columns
            self.of_cells += np.bincount(cells, minlength=self.n_cells)

    def _sorted(self, rows: np.ndarray, columns: np.ndarray) -> Any:
        import scipy.sparse

        each_once = np.ones(rows.size)
        return scipy.sparse.coo_array((each_once, (rows, columns)), shape=self.shape).tocsr()

    @property
    def table(self) -> Any:
        """The counts, a csr_array of float."""
        import scipy.sparse

        if self.of_cells is None:
            return self.sparse
        return scipy.sparse.csr_array(self.of_cells.reshape(self.shape))


def rename_columns(data: Any, names: dict[str, Any]) -> Any:
    """Call the columns of a DataFrame user, time and state.

    Parameters
    ----------
    data : any
        Left as they are if no column has another name.
    names : dict
        The present name of each of the three columns, None for one that has its name already.

    Returns
    -------
    any
        The data; a DataFrame loses columns of its own that had one of the new names.

    Raises
    ------
    ValueError
        If a name is none of a DataFrame's columns.
    """
    role_of_column = {}
    roles = set()
    for role, column in names.items():
        if column is not None:
            roles.add(role)
            role_of_column[column] = role
    if not roles:
        return data
    if not hasattr(data, "columns") or not {*role_of_column} <= {*data.columns}:
        found = [*data.columns] if hasattr(data, "columns") else type(data).__name__
        raise ValueError(
            f"{' and '.join(role_of_column.values())} must name columns of a DataFrame, "
            f"found {found}; correct them"
        )
    replaced = (roles - {*role_of_column}) & {*data.columns}
    return data.drop(columns=replaced).rename(columns=role_of_column)


def _code_values_seen(data: Any) -> Sequences:
    """Any data but Sequences as `Sequences` over the values seen."""
    if hasattr(data, "columns"):
        return _from_frame(data)
    if isinstance(data, (str, bytes, PathLike)):
        raise ValueError(
            f"sequences must be a list of sequences, a mapping or a DataFrame, found {data!r}; "
            "read a file with tplreport.read_sequences"
        )
    users = []
    arrays: list[np.ndarray] = []
    for user, sequence in _users_and_sequences(data):
        users.append(user)
        arrays.append(_one_dimensional(sequence, position=len(arrays)))
    nonempty = [array for array in arrays if array.size]
    if not nonempty:
        nonempty = [np.empty(0, np.int32)]
    # Together, int64 and uint64 would become floats, in which large labels are equal.
    dtype: Any = None
    if np.result_type(*nonempty).kind not in "iuO":
        dtype = object
    states = np.concatenate(nonempty, dtype=dtype)
    offsets = np.cumsum([0, *map(len, arrays)])
    return Sequences.from_flat(states, offsets, _as_label_array(users))


def _users_and_sequences(data: Any) -> Iterator[tuple[Any, Any]]:
    """Each sequence with its user: those of a mapping, or the number of the sequence."""
    if isinstance(data, Mapping):
        for user, value in data.items():
            for sequence in _sequences_of_user(value):
                yield user, sequence
    elif np.iterable(data):
        yield from enumerate(data)
    else:
        yield 0, data


def _from_frame(frame: Any) -> Sequences:
    _check_frame(frame)
    ordered = frame[COLUMNS].sort_values(["user", "time"], kind="stable")
    is_repeated = ordered.duplicated(["user", "time"])
    repeated = ordered[is_repeated]
    if len(repeated):
        user, time = repeated.iloc[0][["user", "time"]]
        rows = count_noun(len(repeated), "row")
        raise ValueError(
            f"a user must have one row at a time, found {rows} beyond it, "
            f"such as of {user!r} at {time}; "
            "drop them, or use tr.read_sequences with same_time="
        )
    users = ordered["user"].to_numpy()
    is_another = users[1:] != users[:-1]
    is_first = np.append(True, is_another)[: len(users)]
    starts = np.flatnonzero(is_first)
    offsets = np.append(starts, len(users))
    found = Sequences.from_flat(ordered["state"].to_numpy(), offsets, users[starts])
    return _with_times_of_column(found, ordered["time"])


def _with_times_of_column(sequences: Sequences, column: Any) -> Sequences:
    """The sequences with the times of a column, if it holds time stamps."""
    if column.dtype.kind != "M":
        return sequences
    import pandas as pd

    stamps = pd.DatetimeIndex(column)
    zone = None
    instants = local = stamps
    if stamps.tz is not None:
        zone = str(stamps.tz)
        instants = stamps.tz_convert(None)
        local = stamps.tz_localize(None)
    step = common_step(instants.to_numpy(), sequences.offsets)
    return with_even_times(sequences, local.to_numpy().astype(MICROSECONDS), step, zone)


def _check_frame(frame: Any) -> None:
    if any(name not in frame.columns for name in COLUMNS):
        raise ValueError(
            f"a DataFrame must have columns user, time and state, found {list(frame.columns)}; "
            "rename them"
        )
    if frame["time"].dtype.kind not in "iufMm":
        raise ValueError(
            f"column time must hold numbers or time stamps, found {frame['time'].dtype}; "
            "use pandas.to_datetime"
        )
    missing = frame[COLUMNS].isna().sum()
    if missing.any():
        found = [f"{count:,} in column {name}" for name, count in missing.items() if count]
        raise ValueError(
            f"observations must not be missing, found {' and '.join(found)} of {len(frame):,} "
            "rows; read them by tplreport.read_sequences with missing='drop' or 'state', since a "
            "step across one would be false"
        )


def _sequences_of_user(value: Any) -> list:
    """The sequences of one user, whose value in a mapping may be a single sequence."""
    if isinstance(value, str) or not np.iterable(value):
        return [value]
    items: Any = value if hasattr(value, "__len__") else list(value)
    first = next(iter(items), 0)
    if np.ndim(first) == 0:
        return [items]
    return list(items)


def _one_dimensional(sequence: Any, position: int) -> np.ndarray:
    """A sequence of states as an array, of integers or of objects; an error names its `position`
    among the sequences."""
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
            f"each sequence must be one-dimensional, found nested ones ({error}); "
            "give a list of flat sequences"
        ) from None
    is_wrong = codes < 0  # missing
    if labels.dtype.kind in "Ofc":
        converted = [_as_label(label) for label in labels.tolist()]
        is_no_label = [label is None for label in converted]
        is_no_label.append(True)  # code -1, missing
        is_wrong |= np.array(is_no_label)[codes]
        labels = _as_label_array(converted)
    if is_wrong.any():
        first = int(np.argmax(is_wrong))
        sequence = np.searchsorted(offsets, first, "right") - 1
        raise ValueError(
            f"states must be whole numbers or labels, not missing, found {states[first]} in "
            f"sequence {sequence}; drop it or split there, or put numbers into bins"
        )
    try:
        order = np.argsort(labels)
    except TypeError as error:
        raise ValueError(
            f"labels must be of one kind, to be sorted, found a mix ({error}); convert them"
        ) from None
    rank = np.argsort(order).astype(np.int32)
    return labels[order], rank[codes]


def _release_memory(values: np.ndarray) -> None:
    """Give back the memory of values that are mapped from a file."""
    if isinstance(values, np.memmap) and hasattr(mmap, "MADV_DONTNEED"):
        values._mmap.madvise(mmap.MADV_DONTNEED)  # type: ignore[attr-defined]


def _as_label(value: Any) -> Any:
    """A label as it is; a number as an int, or None if it is no whole number."""
    if not isinstance(value, Number):
        return value
    number: Any = value
    with suppress(TypeError, OverflowError, ValueError):  # numpy.timedelta64, NaN
        if number == round(number.real):
            return int(number.real)
    return None


def _as_label_array(labels: Iterable) -> np.ndarray:
    """Labels as a 1-D array: tuples stay tuples, and numbers among strings stay numbers."""
    if isinstance(labels, np.ndarray) and labels.ndim == 1:
        return labels
    labels = list(labels)
    types = {type(label) for label in labels}
    if types <= {str, np.str_}:
        return np.array(labels)
    if types <= {int, np.int64} and max(map(abs, labels), default=0) < FIRST_INEXACT:
        return np.array(labels)
    return np.fromiter(labels, object, len(labels))
