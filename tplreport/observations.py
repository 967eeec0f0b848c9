"""From anybody's observations (who was in which state at what time) to sequences of states.

A row is one observation, a spell with an end, or a sequence of states; `table` says which files are read. A
state is the value of a column, or the cell of a geographic position. Users and states keep their names,
including "007" and "NA": text becomes whole numbers only if the whole column consists of whole numbers.
Observations are ordered by instant; time steps of a day or more follow the local clock given by the offset or
time zone, shorter ones UTC, since a clock goes back.
"""

import errno
import tempfile
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tplreport.grid import Box, Grid
from tplreport.table import (
    column_names,
    format_of,
    open_source,
    read_spmf,
    read_workbook,
    unlike_columns,
    whole_numbers,
)
from tplreport.time_steps import UNITS, Cutter, checked_blocks, observed_sequences, parse_numbers
from tplrepro.markov.sequences import Sequences
from tplrepro.progress import with_bar
from tplrepro.validation import check_choice, warn_caller

POSITION = ("latitude", "longitude")
SAME_TIME = ("first", "last", "rows")
#: Bytes of arrays that stay in memory.
IN_MEMORY = 128 << 20
#: About so many rows of whole users are given back at once.
PART = 1 << 20


def read_sequences(
    data: str | Path | pd.DataFrame,
    *,
    user: Hashable = None,
    time: Hashable = None,
    state: Hashable = None,
    latitude: Hashable = None,
    longitude: Hashable = None,
    cell_km: float | None = None,
    box: Box | tuple[float, float, float, float] | None = None,
    step: str | float | timedelta | None = None,
    max_gap: str | float | timedelta | None = None,
    time_format: str | None = None,
    time_unit: str | None = None,
    same_time: str | None = None,
    until: Hashable = None,
    bins: int | None = None,
    binning: str = "quantiles",
    progress: bool = False,
) -> Sequences:
    """Sequences of states from observations, one per row in any order.

    Parameters
    ----------
    data : DataFrame, or path of a CSV, Excel, Parquet, Feather, JSON lines or SPMF file, or of a folder of tables
    user, time, state : column names, or column numbers from 0 in CSV files without a header; by default the first
        column with one of the `USUAL_NAMES`
        Without users each file is one user, with a warning if that user would be in two states at once;
        without times rows are in order. Times are time stamps, text in ISO 8601 or in `time_format` (see
        `strptime`), or numbers, which are seconds if `step` is given. A row without a state ends a sequence.
        `time` "date+clock" joins two columns. `state` "first..last", or "a+b", names the columns of a row
        that is a sequence by itself, such as a week of a person, or the two ends of a trip; times are then
        left out.
    until : column of ends of spells, which begin at `time`
    bins, binning : number of bins of states that are measured numbers, with equal "quantiles" or equal "width"
    latitude, longitude, cell_km : instead of `state`, the columns of degrees of WGS 84 and the side of the cells of a
        `Grid` over `box`, (south, north, west, east), by default around all positions
        States are named by row and column of the grid. A position outside the box ends a sequence.
    step, max_gap : with `step`, one state per time step as in `fixed_steps`, where the last known state holds for
        `max_gap`, by default less than one step; without `step`, one state per row, and a gap longer than
        `max_gap` ends a sequence
        A warning gives the share of states that are held from an earlier step: stays among them are assumed.
    time_unit : "s", "ms", "us" or "ns", of times that are numbers, by default seconds
    same_time : "first", "last" or "rows": which states of a user at one time count; "rows" are all, as steps in the
        order of the rows
        By default different states are an error, and equal ones count once, with a warning.
    progress : show how many rows were read

    Files may be larger than memory: what exceeds `IN_MEMORY` bytes goes to a temporary file (24 to 44 bytes a row),
    from which the values of the result are mapped. Memory then grows with the numbers of users, states and
    sequences, and with the rows of the user who has most.

    Raises FileNotFoundError; DataFormatError, a ValueError, if a file cannot be read; ValueError for a
    missing column, missing or unreadable users or times, numbers as times that can be no seconds, a user in
    two states at one time, and arguments that do not fit together; and the errors of `fixed_steps` and `Grid`.

    Examples
    --------
    >>> visits = pd.DataFrame({"who": ["007", "007", "8"], "day": [2, 1, 1], "place": ["bar", "NA", "bar"]})
    >>> found = read_sequences(visits, user="who", time="day", state="place")
    >>> found.users.tolist(), found.labels.tolist(), [sequence.tolist() for sequence in found]
    (['007', '8'], ['NA', 'bar'], [[0, 1], [1]])
    """
    if not isinstance(data, pd.DataFrame):
        data = Path(data)
        if not data.exists():
            raise FileNotFoundError(f"there must be a file or folder {data}, found none; check its name")
        kind = format_of(data)
        if kind == "spmf":
            names = {"user": user, "time": time, "state": state, "cell_km": cell_km}
            _check_unused("an SPMF file", names | {"step": step, "max_gap": max_gap, "until": until, "bins": bins})
            return read_spmf(data)
        if kind == "excel":
            data = read_workbook(data)
    positions = dict(zip(POSITION, (latitude, longitude), strict=True))
    has_coordinates = any(argument is not None for argument in (latitude, longitude, box))
    if (has_coordinates and cell_km is None) or (cell_km is not None and state is not None):
        raise ValueError(
            f"states must be a column or the cells of positions, found state={state!r}, cell_km={cell_km!r}, "
            f"{positions}; give state, or cell_km with the columns of positions"
        )
    for name, choice, choices in (("same_time", same_time, SAME_TIME), ("time_unit", time_unit, UNITS)):
        if choice is not None:
            check_choice(choice, name, choices)
    wanted: dict[str, Hashable] = {"user": user}
    states_of_row = _several(data, state)
    if states_of_row:
        unused = {"step": step, "max_gap": max_gap, "same_time": same_time, "until": until, "bins": bins}
        _check_unused("a table with a sequence a row", unused)
        wanted |= {f"state {k}": name for k, name in enumerate(states_of_row)}
    else:
        wanted |= {"time": time} | ({"state": state} if cell_km is None else positions)
        if parts := _several(data, time):
            wanted |= {"time": parts[0], "clock": "+".join(map(str, parts[1:]))}
        if until is not None:
            wanted["until"] = until
    source = open_source(data, wanted)
    users, states = Codes(source.is_text), Codes(source.is_text)
    is_timed = step is not None or max_gap is not None or until is not None
    blocks = checked_blocks(source, step, time_format, time_unit, is_timed)
    if progress:
        blocks = with_bar(blocks, None, "reading")
    if states_of_row:
        return _joined(_sequences_of_rows(blocks, users, states), lambda seen: states.labels[seen], users)
    cutter = Cutter(step, max_gap, same_time, source.place)
    try:
        rows, edges = _gathered(blocks, users, states)
        cells_of: Callable[[pd.DataFrame], np.ndarray]
        labels_of: Callable[[np.ndarray], Any]
        if cell_km is None:
            cell_of, labels = _binned(states, bins, binning, lambda code: source.place(_first_row(rows, code)))
            cells_of, labels_of = lambda part: cell_of[part["cell"].to_numpy()], lambda seen: labels[seen]
        else:
            grid = Grid(Box(*(edges.tolist() if box is None else box)), cell_km)
            cells_of, labels_of = lambda part: grid.cell(part["latitude"], part["longitude"]), grid.labels
        of_users = with_bar(rows.parts(), rows.n_rows, "sequences") if progress else rows.parts()
        found = _joined(
            (cutter.sequences(part, cells_of(part), bool(users.blocks)) for part in of_users), labels_of, users
        )
    except pd.errors.OutOfBoundsDatetime as error:
        raise unlike_columns(error, source.name) from None
    if isinstance(data, pd.DataFrame) and (skipped := data.attrs.get("skipped")):
        reasons = ", ".join(f"{count} times {reason}" for reason, count in skipped.items())
        warn_caller(f"{source.name} was read without {reasons}: what is left counts as if nothing lay between")
    if cutter.repeated:
        warn_caller(f"{cutter.repeated} rows repeat a user, a time and a state, and count once")
    if cutter.held:
        warn_caller(
            f"{cutter.held / len(found.values):.1%} of all states are held from an earlier step, for up to "
            f"max_gap={max_gap!r}: stays among them are assumed, not observed; give a shorter max_gap, or none"
        )
    return found


def _check_unused(data: str, arguments: dict[str, Any]) -> None:
    for name, value in arguments.items():
        if value is not None:
            raise ValueError(f"{data} must be read without {name}, found {name}={value!r}; leave it out")


def _several(data: Path | pd.DataFrame, given: Hashable) -> list[Hashable]:
    """The columns that "first..last" or "a+b" names, unless a column has that name itself."""
    if not isinstance(given, str) or not (".." in given or "+" in given):
        return []
    names = column_names(data)
    if given in names:
        return []
    if ".." not in given:
        return [*given.split("+")]
    parts = given.split("..")
    ends = [names.index(part) if part in names else int(part) if part.isdecimal() else -1 for part in parts]
    if len(ends) != 2 or not 0 <= ends[0] < ends[1] < len(names):
        raise ValueError(
            f"state 'first..last' must name two columns in order, found {given!r}; the columns of {data} are {names}"
        )
    return [name if parts[0] in names else k for k, name in enumerate(names)][ends[0] : ends[1] + 1]


class Spill:
    """Arrays, one after the other: in memory while they are small, in a temporary file from then on.

    The file has no name, stands in the folder that TMPDIR names, and is gone once the process ends, however it ends.
    """

    def __init__(self) -> None:
        self.file = tempfile.SpooledTemporaryFile(IN_MEMORY)
        self.size = 0  # bytes
        self.places: list[tuple[int, int, np.dtype]] = []  # first byte, length and type of each array

    def __del__(self) -> None:
        self.file.close()  # which removes it, unless an array is mapped from it

    def append(self, array: np.ndarray) -> None:
        """Add an array; OSError if there is no room for it."""
        self.places.append((self.size, len(array), array.dtype))
        self.size += array.nbytes
        try:
            self.file.seek(0, 2)
            self.file.write(array.tobytes())
            self.file.flush()
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise
            raise OSError(
                f"there must be room for a temporary file, found none in {tempfile.gettempdir()} after "
                f"{self.size >> 20:,} MB; set TMPDIR to a folder with more"
            ) from None

    def read(self, k: int, start: int = 0, stop: int | None = None) -> np.ndarray:
        """The entries from `start` to `stop` of array k."""
        first, length, kind = self.places[k]
        stop = length if stop is None else stop
        self.file.seek(first + start * kind.itemsize)
        return np.frombuffer(self.file.read((stop - start) * kind.itemsize), kind)

    def joined(self) -> np.ndarray:
        """All arrays, which have one type, as one array; it is mapped from the temporary file if there is one."""
        if self.size > IN_MEMORY:
            return np.memmap(self.file, self.places[0][2], "r")
        return np.concatenate([self.read(k) for k in range(len(self.places))])


class RowsByUser:
    """Rows that are added in blocks of columns, and given back in parts of whole users."""

    def __init__(self) -> None:
        self.n_rows = 0
        self.blocks = Spill()  # records, sorted by user
        self.counts = np.zeros(0, dtype=np.int64)  # rows of each user

    def add(self, columns: dict[str, np.ndarray]) -> None:
        """Add the columns of a block; "user" holds codes from 0."""
        users = columns["user"]
        order = np.argsort(users, kind="stable")
        columns = columns | {"row": np.arange(self.n_rows, self.n_rows + len(users))}
        records = np.empty(len(order), [(name, column.dtype) for name, column in columns.items()])
        for name, column in columns.items():
            records[name] = column[order]
        self.blocks.append(records)
        self.n_rows += len(order)
        counts = np.bincount(users, minlength=len(self.counts))
        counts[: len(self.counts)] += self.counts
        self.counts = counts

    def parts(self) -> Iterator[pd.DataFrame]:
        """About `PART` rows at a time in the order of "row", their number from 0; users in order."""
        part_of = (np.cumsum(self.counts) - self.counts) // PART
        limits = np.append(np.unique(part_of, return_index=True)[1], len(part_of))
        edges = [np.searchsorted(self.blocks.read(k)["user"], limits).tolist() for k in range(len(self.blocks.places))]
        for number in range(len(limits) - 1):
            part = _frame([self.blocks.read(k, *own[number : number + 2]) for k, own in enumerate(edges)])
            yield part.iloc[np.argsort(part["row"].to_numpy())]


def _frame(pieces: list[np.ndarray]) -> pd.DataFrame:
    """The columns of records, one below the other."""
    if len({piece.dtype for piece in pieces}) > 1:  # pandas finds a common type, and refuses years that it cannot hold
        return pd.concat(map(pd.DataFrame, pieces), ignore_index=True)
    names = pieces[0].dtype.names or ()
    return pd.DataFrame({name: np.concatenate([piece[name] for piece in pieces]) for name in names}, copy=False)


class Codes:
    """Numbers for labels, in the order in which these first occur, over blocks of a column."""

    def __init__(self, is_text: bool = False) -> None:
        self.is_text = is_text  # labels written as whole numbers are whole numbers
        self.code_of: dict[Hashable, int] = {}
        self.blocks: list[np.ndarray] = []  # new labels of each block
        self.counts = np.zeros(0, dtype=np.int64)  # rows with each label

    def of(self, column: pd.Series) -> np.ndarray:
        """The codes of a block, int32; -1 for a missing value."""
        codes, labels = pd.factorize(column)
        known, code_of = len(self.code_of), self.code_of
        code = np.array([code_of.setdefault(label, len(code_of)) for label in labels.tolist()], dtype=np.int32)
        self.blocks.append(np.asarray(labels)[code >= known])
        self.counts = np.pad(self.counts, (0, len(code_of) - known))
        self.counts[code] += np.bincount(codes[codes >= 0], minlength=len(code))
        return np.append(code, np.int32(-1))[codes]

    @property
    def labels(self) -> np.ndarray:
        """The label of each code."""
        labels = np.concatenate(self.blocks)
        return np.asarray(pd.Index(whole_numbers(labels.tolist()))) if self.is_text else labels


def _gathered(blocks: Iterable[pd.DataFrame], users: Codes, states: Codes) -> tuple[RowsByUser, np.ndarray]:
    """Codes, positions and times of all rows, and the south, north, west and east edge of positions."""
    rows, edges = RowsByUser(), np.array([np.inf, -np.inf, np.inf, -np.inf])
    for block in blocks:
        columns = {name: block[name].to_numpy() for name in block if name not in ("user", "state", *POSITION)}
        columns["user"] = users.of(block["user"]) if "user" in block else np.zeros(len(block), np.int32)
        if "state" in block:
            columns["cell"] = states.of(block["state"])
        for k, name in enumerate(block.columns.intersection(POSITION)):
            columns[name] = block[name].to_numpy(float)
            edges[2 * k] = np.fmin.reduce(columns[name], initial=edges[2 * k])
            edges[2 * k + 1] = np.fmax.reduce(columns[name], initial=edges[2 * k + 1])
        rows.add(columns)
    return rows, edges


def _first_row(rows: RowsByUser, code: int) -> int:
    """The first row whose state has the code."""
    return min(int(row) for part in rows.parts() for row in part["row"][part["cell"] == code].iloc[:1])


def _joined(parts: Iterable[Sequences], labels_of: Callable[[np.ndarray], Any], users: Codes) -> Sequences:
    """The sequences of all parts, whose states and users are codes, with labels and names."""
    values, own, lengths, owners = Spill(), [], [], []
    for part in parts:
        values.append(part.values)
        own.append(part.labels)
        lengths.append(part.lengths)
        owners.append(part.users)
    seen = np.unique(np.concatenate(own))
    ordered = Sequences.from_flat(np.asarray(labels_of(seen)), [0, len(seen)])
    coded = Spill()
    for k, labels in enumerate(own):
        coded.append(ordered.values[np.searchsorted(seen, labels)][values.read(k)])
    offsets = np.cumsum([0, *np.concatenate(lengths)])
    owner = np.concatenate(owners)
    return Sequences(coded.joined(), offsets, ordered.labels, users.labels[owner] if users.blocks else owner)


def _sequences_of_rows(blocks: Iterable[pd.DataFrame], users: Codes, states: Codes) -> Iterator[Sequences]:
    """One sequence per row, of the states in its columns; a missing one ends it."""
    begin = 0
    for block in blocks:
        values = block.drop(columns="user", errors="ignore")
        index = np.arange(begin, begin + len(values))
        times = np.tile(np.arange(values.shape[1]), len(values))
        cells = states.of(pd.Series(values.to_numpy(dtype=object).ravel()))
        found = observed_sequences(
            pd.DataFrame({"user": np.repeat(index, values.shape[1]), "time": times, "cell": cells})
        )
        if "user" in block:
            found = replace(found, users=users.of(block["user"])[found.users - begin])
        begin += len(values)
        yield found


def _binned(
    states: Codes, bins: int | None, binning: str, place_of: Callable[[int], str]
) -> tuple[np.ndarray, np.ndarray]:
    """The cell of each code of a state, the last for code -1, and labels; measured numbers need bins."""
    labels = states.labels
    numbers = labels if labels.dtype.kind in "iuf" else parse_numbers(pd.Series(labels).astype(str))
    if bins is None:
        if numbers is None or numbers.dtype.kind != "f" or np.all(numbers == np.floor(numbers)):
            return np.append(np.arange(len(labels)), -1), labels
        measured = int(np.argmax(numbers != np.floor(numbers)))
        raise ValueError(
            f"states must be whole numbers or labels, found {labels[measured]} in {place_of(measured)}; "
            "give bins=5, with binning='quantiles' or 'width'"
        )
    check_choice(binning, "binning", ("quantiles", "width"))
    if numbers is None or bins < 2:
        raise ValueError(f"bins must be at least 2, of numbers, found {bins}; change bins=, or leave it out")
    low, high, shares = numbers.min(), numbers.max(), np.linspace(0, 1, bins + 1)
    if binning == "width":
        edges = np.unique(low + (high - low) * shares)
    else:
        edges = np.unique(_quantiles(numbers, states.counts, shares))
    index = np.clip(np.searchsorted(edges, numbers, "right") - 1, 0, max(len(edges) - 2, 0))
    digits = next(n for n in range(6, 18) if len({f"{edge:.{n}g}" for edge in edges}) == len(edges))
    names = np.array([f"{a:.{digits}g} to {b:.{digits}g}" for a, b in pairwise(edges)] or [f"{low:g}"])
    return np.append(index, -1), names


def _quantiles(numbers: np.ndarray, counts: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """`np.quantile` of numbers that are repeated so often, in the memory of the distinct ones."""
    order = np.argsort(numbers)
    upto = np.cumsum(counts[order])
    index = shares * (upto[-1] - 1)
    below, above = (numbers[order][np.searchsorted(upto, edge(index), "right")] for edge in (np.floor, np.ceil))
    return np.array([np.quantile(ends, share) for *ends, share in zip(below, above, index % 1.0, strict=True)])
