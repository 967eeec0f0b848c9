"""From anybody's observations (who was in which state at what time) to sequences of states, in
three calls.

`read_table` gathers the rows of a file, `to_states` makes states of what they hold, `to_sequences`
cuts them into sequences; `read_sequences` is all three. A row is one observation, a spell with an
end, or a sequence of states; `table` says which files are read. A state is the value of a column,
or the cell of a geographic position. Labels are the same whatever the format (see `rows_by_user`).
Observations are ordered by instant; time steps of a day or more follow the local clock given by the
offset or time zone, shorter ones UTC, since a clock goes back.
"""

from __future__ import annotations
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from tplreport.reading.rows_by_user import MISSING, Codes, RowsByUser, Spill, plain_label
from tplreport.reading.table import (
    USUAL_NAMES,
    check_first_line,
    column_names,
    first_rows,
    format_of,
    open_source,
    plain_name,
    read_spmf,
    read_workbook,
    unlike_columns,
)
from tplreport.reading.text_files import DataFormatError, ahead, limits_of_command
from tplreport.reading.time_steps import Cutter, Duration, Pieces
from tplreport.reading.times import (
    LOCAL,
    UNITS,
    check_filled,
    check_seconds,
    looks_like_times,
    parse_numbers,
    seconds_of,
    texts_of,
    with_instants,
)
from tplrepro.display import count_noun
from tplrepro.markov.sequences import Sequences
from tplrepro.progress import with_progress
from tplrepro.validation import check_choice, warn_caller

if TYPE_CHECKING:
    from tplreport.reading.grid import Box, Grid

POSITION = ("latitude", "longitude")
SAME_TIME = ("first", "last", "rows")


@dataclass(frozen=True)
class WhatWasRead:
    """What a file was taken for, to be looked at before anything is believed."""

    source: str
    columns: dict[str, str]  # role -> name of the column
    times: str  # what orders the rows
    span: tuple[str, str] | None  # first and last time
    rows: int
    dropped: dict[str, int]  # reason -> number of rows that do not count
    first: dict[str, str]  # the first row, as understood
    last: dict[str, str]

    @property
    def lines(self) -> tuple[str, ...]:
        """In words, a line each."""
        columns = ", ".join(f"{role} from {name!r}" for role, name in self.columns.items())
        columns += (
            ""
            if "user" in self.columns
            else "; no column of users: all rows of a file are one user's"
        )
        span = "" if self.span is None else f", from {self.span[0]} to {self.span[1]}"
        used = self.rows - sum(self.dropped.values())
        reasons = "".join(f"; not {count:,}: {reason}" for reason, count in self.dropped.items())
        ends = "; ".join(
            f"{which} row: {', '.join(f'{name} {value}' for name, value in row.items())}"
            for which, row in (("first", self.first), ("last", self.last))
        )
        return (
            f"Read: {columns}",
            f"Times: {self.times}{span}",
            f"Rows: {used:,} of {self.rows:,} count{reasons}",
            ends,
        )


@dataclass(frozen=True, eq=False)
class Observed(Sequences):
    """Sequences that were read, with what was read."""

    reading: WhatWasRead | None = None

    def __str__(self) -> str:
        return "\n".join([repr(self), *(self.reading.lines if self.reading else ())])


@dataclass(eq=False)
class Table:
    """The rows of a file, by user, which `read_table` returns, and their states, which `to_states`
    adds."""

    source: str
    columns: dict[str, Hashable]
    place: Callable[[int], str]
    users: Codes
    states: Codes
    width: int  # states a row of the file holds
    rows: RowsByUser = field(default_factory=RowsByUser)
    # of positions
    edges: np.ndarray = field(default_factory=lambda: np.array([np.inf, -np.inf] * 2))
    ends: list[dict[str, str]] = field(default_factory=list)  # the first and the last row
    span: list[Any] = field(default_factory=list)  # the first and the last time
    unit: str | None = None  # of times that are numbers
    ties: str | None = None  # as `same_time`: events of a log are in order
    cells_of: Callable[[pd.DataFrame], np.ndarray] | None = None  # of rows; -1 for none
    labels_of: Callable[[np.ndarray], Any] = np.asarray
    # cells that are states in any case
    declared: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def box(self) -> tuple[float, float, float, float]:
        """South, north, west and east of all positions; DataFormatError if they are not on the
        globe."""
        south, north, west, east = self.edges.tolist()
        if not (-90 <= south <= north <= 90 and -180 <= west <= east <= 180):
            found = (
                f"latitudes from {south:g} to {north:g} and longitudes from {west:g} to {east:g}"
            )
            problem = "positions must be degrees within 90 north and south, 180 east and west"
            raise DataFormatError(
                f"{problem}, found {found}; give box= to leave others out", self.source
            )
        return south, north, west, east


def read_table(
    data: str | Path | pd.DataFrame,
    *,
    user: Hashable = None,
    time: Hashable = None,
    state: Hashable = None,
    latitude: Hashable = None,
    longitude: Hashable = None,
    positions: bool = False,
    until: Hashable = None,
    order: str | None = None,
    time_format: str | None = None,
    time_unit: str | None = None,
    missing: str | Iterable[str] | None = None,
    progress: bool = True,
) -> Table:
    """The rows of a file, a folder or a DataFrame, gathered by user.

    Parameters
    ----------
    data : DataFrame, or path of a CSV, Excel, Parquet, Feather, JSON lines, SPMF or XES file, or of a folder of tables
    user, time, state : column names, or column numbers from 0 in CSV files without a header; by default the first
        column with one of the `USUAL_NAMES`. Without users each file is one user. Times are time stamps, text
        in ISO 8601 or in `time_format` (see `strptime`), or numbers. A row without a state ends a sequence.
        `time` "date+clock" joins two columns. `state` "first..last", or "a+b", names the columns of a row
        that is a sequence by itself, such as a week of a person, or the two ends of a trip; times are then
        left out.
    latitude, longitude : instead of `state`, the columns of degrees of WGS 84; with `positions` those of usual names
    until : column of ends of spells, which begin at `time`
    order : "rows", if there are no times and the rows of each user are in order of time
    time_unit : "s", "ms", "us", "ns", "min", "h", "D" or "excel" (days of a spreadsheet), of times that are numbers
    missing : texts that stand for no value, such as "NA,null"; by default `MISSING`, with a warning
    progress : show how many rows were read

    Files may be larger than memory: what exceeds `IN_MEMORY` bytes goes to a temporary file (24 to
    44 bytes a row).

    Raises FileNotFoundError; DataFormatError, a ValueError, if a file cannot be read; ValueError
    for a missing column, missing or unreadable users or times, and arguments that do not fit
    together.
    """
    check_choice(order or "rows", "order", ("rows",))
    check_choice(time_unit or "s", "time_unit", UNITS)
    if not isinstance(data, pd.DataFrame):
        data = Path(data)
        if not data.exists():
            raise FileNotFoundError(
                f"there must be a file or folder {data}, found none; check its name"
            )
        kind = format_of(data)
        if kind is None:
            check_first_line(data, kind, limits_of_command())
        else:
            from tplreport.reading.sizes import check_size

            check_size(data, limits_of_command())
        if kind == "spmf":
            _check_unused("an SPMF file", user=user, time=time, state=state, until=until)
            data, order = read_spmf(data), "rows"
        elif kind == "excel":
            data = read_workbook(data)
        elif kind == "xes":
            from tplreport.reading.event_logs import read_xes

            data = read_xes(data)
    states_of_row, parts = _several(data, state), _several(data, time)
    wanted: dict[str, Hashable] = {"user": user}
    if states_of_row:
        _check_unused(
            "a table with a sequence a row", until=until, latitude=latitude, longitude=longitude
        )
        wanted |= {f"state {k}": name for k, name in enumerate(states_of_row)}
    else:
        if order is not None:
            _check_unused("a table with order='rows'", time=time, until=until)
        elif parts:
            wanted |= {"time": parts[0], "clock": "+".join(map(str, parts[1:]))}
        else:
            wanted["time"] = time
        is_position = positions or latitude is not None or longitude is not None
        wanted |= (
            dict(zip(POSITION, (latitude, longitude), strict=True))
            if is_position
            else {"state": state}
        )
        wanted |= {} if until is None else {"until": until}
        if "time" in wanted and time is None:
            _check_times(data, wanted)
    source = open_source(data, wanted)
    words = (
        MISSING if missing is None else missing.split(",") if isinstance(missing, str) else missing
    )
    absent = frozenset([*words, ""])
    columns = {thing: name for thing, name in source.columns.items() if name is not None}
    width = len(states_of_row) or 1
    place: Callable[[int], str] = (
        source.place if width == 1 else lambda row: source.place(row // (width + 1))
    )
    table = Table(
        source.name,
        columns,
        place,
        Codes("user", absent),
        Codes("state", absent),
        width,
        unit=time_unit,
    )
    try:
        _gather(
            table,
            with_progress(source.blocks, "reading", "row", size=len, show=progress),
            time_format,
        )
    except pd.errors.OutOfBoundsDatetime as error:
        raise unlike_columns(error, source.name) from None
    for text, count in table.states.absent.items():
        if text and missing is None:
            warn_caller(
                f"{count_noun(count, 'row', ',')} of {source.name} with state {text!r}, which "
                "stands for a missing value: "
                "each ends a sequence; give missing='' if it is a state"
            )
    notes = data.attrs if isinstance(data, pd.DataFrame) else {}
    if skipped := notes.get("skipped"):
        reasons = ", ".join(f"{count} times {reason}" for reason, count in skipped.items())
        warn_caller(
            f"{source.name} was read without {reasons}: what is left counts as if nothing lay "
            "between"
        )
    table.ties = "rows" if "phases" in notes else None
    if len(phases := notes.get("phases", ())) > 1:
        warn_caller(
            f"{source.name} has events of several phases ({', '.join(phases)}), each of which "
            "counts, so that an "
            "activity that starts and ends seems to be repeated; keep one phase to count each "
            "activity once"
        )
    return table


def _check_unused(data: str, **arguments: Any) -> None:
    for name, value in arguments.items():
        if value is not None:
            raise ValueError(
                f"{data} must be read without {name}, found {name}={value!r}; leave it out"
            )


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
    ends = [
        names.index(part) if part in names else int(part) if part.isdecimal() else -1
        for part in parts
    ]
    if len(ends) != 2 or not 0 <= ends[0] < ends[1] < len(names):
        raise ValueError(
            f"state 'first..last' must name two columns in order, found {given!r}; the columns of "
            f"{data} are {names}"
        )
    return [name if parts[0] in names else k for k, name in enumerate(names)][ends[0] : ends[1] + 1]


def _check_times(data: Path | pd.DataFrame, wanted: Mapping[str, Hashable]) -> None:
    """ValueError if no column of times has a usual name, with the names of those whose values look
    like times."""
    names = column_names(data)
    if {*map(plain_name, names)} & {*USUAL_NAMES["time"]}:
        return
    head = first_rows(data, names)
    likely = [
        repr(name) for k, name in enumerate(head.columns) if looks_like_times(head.iloc[:, k])
    ]
    found = f"; {' and '.join(likely)} hold{'s' * (len(likely) == 1)} times" if likely else ""
    remedy = "name their column by time=, or give order='rows' if the rows of each user are in order of time"
    source = data.attrs.get("source", "the DataFrame") if isinstance(data, pd.DataFrame) else data
    try:
        next(
            open_source(
                data, {thing: name for thing, name in wanted.items() if thing != "time"}
            ).blocks,
            None,
        )
    except DataFormatError as error:
        problem = str(error).removeprefix(f"{error.file}: ")
        raise DataFormatError(
            f"{problem}{found}" + f"; {remedy}" * bool(found), error.file
        ) from None
    columns = ", ".join(map(repr, names[:12]))
    raise DataFormatError(
        f"there must be times, found none among the columns {columns}{found}: {remedy}", source
    )


def _gather(table: Table, blocks: Iterable[pd.DataFrame], time_format: str | None) -> None:
    """Add all rows to the table; threads look up users and states while times are read."""
    begin, kinds = 0, dict[str, tuple[bool, bool]]()
    codes = {"user": table.users, "state": table.states}
    with ThreadPoolExecutor(2) as threads:
        for block in blocks:
            place: Callable[[int], str] = lambda row: table.place(begin + row)  # noqa: B023, E731 (called at once)
            long = _long(block, begin, table.width) if table.width > 1 else block
            found = {
                key: threads.submit(of.factorized, long[key]).result
                for key, of in codes.items()
                if key in long
            }
            given = with_instants(block, time_format, place, kinds)
            block = long if table.width > 1 else given
            columns = {
                name: block[name].to_numpy()
                for name in block
                if name not in ("user", "state", *POSITION)
            }
            columns["user"] = np.zeros(len(block), np.int32)
            if "user" in block:
                columns["user"] = table.users.of(block["user"], place, found["user"])
                check_filled(columns["user"] < 0, block["user"], "user", place)
            elif table.width > 1:
                columns["user"] = block["time"].to_numpy() // (table.width + 1)
            if "state" in block:
                columns["cell"] = table.states.of(block["state"], place, found["state"])
            for k, name in enumerate(block.columns.intersection(POSITION)):
                columns[name] = _degrees(block[name], name, place)
                table.edges[2 * k] = np.fmin.reduce(columns[name], initial=table.edges[2 * k])
                table.edges[2 * k + 1] = np.fmax.reduce(
                    columns[name], initial=table.edges[2 * k + 1]
                )
            if "time" in block and table.width == 1:
                first, last = columns["time"].min(), columns["time"].max()
                table.span = [min([first, *table.span]), max([last, *table.span])]
            table.ends = [*table.ends[:1], *(_shown(given, row, table) for row in (0, -1))][
                :: 2 if table.ends else 1
            ]
            table.rows.add(columns)
            begin += len(block)
    if not begin:
        raise ValueError(
            f"there must be observations, found no row in {table.source}; check the file and the "
            "names of its columns"
        )


def _shown(block: pd.DataFrame, row: int, table: Table) -> dict[str, str]:
    """A row as it was understood."""
    values = {name: block[name].iloc[row] for name in block if name not in LOCAL.values()}
    return {
        name: str(value if name in LOCAL else plain_label(value, table.users.missing))
        for name, value in values.items()
    }


def _long(block: pd.DataFrame, begin: int, width: int) -> pd.DataFrame:
    """A row for each state of a row that is a sequence, and one without a state after it, which
    ends it."""
    values = block.drop(columns="user", errors="ignore").assign(end=None).to_numpy(dtype=object)
    long = pd.DataFrame({"time": begin + np.arange(values.size), "state": values.ravel()})
    if "user" in block:
        long["user"] = block["user"].repeat(width + 1).to_numpy()
    return long


def _degrees(column: pd.Series, name: str, place: Callable[[int], str]) -> np.ndarray:
    """Degrees as floats, NaN where there are none."""
    if column.dtype.kind in "iuf":
        return column.to_numpy(float)
    texts = column.astype(str).str.strip()
    numbers = pd.to_numeric(texts, errors="coerce").to_numpy(float)
    wrong = np.isnan(numbers) & ~(column.isna() | texts.isin(MISSING)).to_numpy()
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"{name} must be in degrees, found {texts.iloc[row][:40]!r} in {place(row)}; correct it"
        )
    return numbers


def to_states(
    table: Table, *, grid: Grid | None = None, bins: int | None = None, binning: str = "quantiles"
) -> Table:
    """The rows of a table with the cell of a grid, a bin, or the value of a column as state.

    Parameters
    ----------
    grid : for a table of positions; a position outside ends a sequence
    bins, binning : number of bins of states that are measured numbers, with equal "quantiles" or equal "width"

    ValueError for measured numbers without bins, and bins of what is no number.
    """
    if grid is not None:
        return replace(
            table,
            cells_of=lambda part: grid.cell(part["latitude"], part["longitude"]),
            labels_of=grid.labels,
        )
    cell_of, labels = _binned(table, bins, binning)
    declared = np.unique(cell_of[:-1]) if table.states.is_declared else table.declared
    return replace(
        table,
        cells_of=lambda part: cell_of[part["cell"].to_numpy()],
        labels_of=lambda seen: labels[seen],
        declared=declared,
    )


def to_sequences(
    table: Table,
    *,
    step: Duration = None,
    max_gap: Duration = None,
    same_time: str | None = None,
    progress: bool = True,
) -> Sequences:
    """The sequences of states of each user, with what was read as `reading`; states are those of
    `to_states`.

    Parameters
    ----------
    step, max_gap : with `step`, one state per time step as in `fixed_steps`, where the last known state holds for
        `max_gap`, by default less than one step; without `step`, one state per row, and a gap longer than
        `max_gap` ends a sequence. Times that are numbers are then seconds, unless `time_unit` says otherwise.
        Warnings give the number of rows between two steps, which do not count, and the share of states that
        are held from an earlier step: stays among them are assumed.
    same_time : "first", "last" or "rows": which states of a user at one time count; "rows" are all, as steps in the
        order of the rows
        By default different states are an error, and equal ones count once, with a warning; events of an XES log are
        "rows".

    The values of the result may be mapped from a temporary file. ValueError for numbers as times
    that can be no seconds, a user in two states at one time, and the errors of `fixed_steps`.
    """
    cells_of = table.cells_of
    if cells_of is None:
        return to_sequences(
            to_states(table), step=step, max_gap=max_gap, same_time=same_time, progress=progress
        )
    check_choice(same_time or "rows", "same_time", SAME_TIME)
    if table.width > 1:
        _check_unused(
            "a table with a sequence a row", step=step, max_gap=max_gap, same_time=same_time
        )
    elif step is not None and not table.span:
        raise ValueError(
            f"there must be times, found none for step={step!r} in {table.source}; name their "
            "column"
        )
    cutter = Cutter(step, max_gap, same_time or table.ties, table.place, bool(table.users.code_of))
    rows = table.rows
    of_users = with_progress(
        ahead(rows.parts()), "sequences", "row", total=rows.n_rows, size=len, show=progress
    )
    is_timed = step is not None or max_gap is not None or "until" in table.columns
    if is_timed:
        of_users = _in_seconds(of_users, table, cutter.seconds)
    users = table.users.labels if table.users.code_of else None
    try:
        parts = (cutter.pieces(part, cells_of(part)) for part in of_users)
        found = _joined(parts, table.labels_of, users, table.declared)
    except pd.errors.OutOfBoundsDatetime as error:
        raise unlike_columns(error, table.source) from None
    values, _, labels, _ = found
    cutter.warn(table.source, labels, len(values), table.labels_of)
    return Observed(*found, _reading(table, cutter.dropped, is_timed))


def _in_seconds(parts: Iterable[pd.DataFrame], table: Table, step: float) -> Iterator[pd.DataFrame]:
    """Rows whose times that are numbers are seconds; those of the first part are checked."""
    for number, part in enumerate(parts):
        for name in part.columns.intersection([*LOCAL, *LOCAL.values()]):
            times, rows = part[name].to_numpy(), part["row"].to_numpy()
            if times.dtype.kind in "iuf":
                if number == 0 and name == "time" and table.unit is None:
                    check_seconds(times, table.span, step, lambda row: table.place(int(rows[row])))  # noqa: B023
                part = part.assign(**{name: seconds_of(times, table.unit)})
        yield part


def _reading(table: Table, dropped: Mapping[str, int], is_timed: bool) -> WhatWasRead:
    """What was read, in words."""
    times = "rows in the order of the file" if table.width == 1 else "each row is a sequence"
    span, dropped = None, dict(dropped) if table.width == 1 else {}
    if table.span:
        is_number = not isinstance(table.span[0], np.datetime64 | pd.Timestamp)
        unit = (
            f"in {table.unit}" if table.unit else "seconds" if is_timed else "which order the rows"
        )
        times = f"numbers, {unit}" if is_number else "time stamps"
        first, last = (one if is_number else pd.Timestamp(one) for one in table.span)
        span = str(first), str(last)
    columns = {
        role: str(name) for role, name in table.columns.items() if not role.startswith("state ")
    }
    if table.width > 1:
        columns["states"] = ", ".join(
            str(name) for role, name in table.columns.items() if role not in columns
        )
    first, last, rows = (
        table.ends[0],
        table.ends[-1],
        table.rows.n_rows // (table.width + (table.width > 1)),
    )
    return WhatWasRead(table.source, columns, times, span, rows, dropped, first, last)


def read_sequences(
    data: str | Path | pd.DataFrame,
    *,
    user: Hashable = None,
    time: Hashable = None,
    state: Hashable = None,
    step: Duration = None,
    max_gap: Duration = None,
    same_time: str | None = None,
    cell_km: float | None = None,
    box: Box | tuple[float, float, float, float] | None = None,
    bins: int | None = None,
    binning: str = "quantiles",
    progress: bool = True,
    **columns: Any,
) -> Sequences:
    """Sequences of states from observations, one per row in any order.

    `columns` are other arguments of `read_table`; `step`, `max_gap` and `same_time` are those of
    `to_sequences`, `bins` and `binning` those of `to_states`. For positions, `cell_km` is the side
    of the cells of a `Grid` over `box`, (south, north, west, east), by default around all
    positions; states are named by row and column. The result has what was read as `reading`. Errors
    are those of the three.

    Examples
    --------
    >>> visits = pd.DataFrame({"who": ["007", "007", "8"], "day": [2, 1, 1], "place": ["bar", "home", "bar"]})
    >>> found = read_sequences(visits, user="who", time="day", state="place")
    >>> found.users.tolist(), found.labels.tolist(), [sequence.tolist() for sequence in found]
    (['007', '8'], ['bar', 'home'], [[1, 0], [0]])
    """
    is_position = box is not None or any(columns.get(name) is not None for name in POSITION)
    if (is_position and cell_km is None) or (cell_km is not None and state is not None):
        found = {"state": state, "cell_km": cell_km, "box": box} | {
            name: columns.get(name) for name in POSITION
        }
        raise ValueError(
            f"states must be a column or the cells of positions, found {found}; give state, or "
            "cell_km with the "
            "columns of positions"
        )
    table = read_table(
        data,
        user=user,
        time=time,
        state=state,
        positions=cell_km is not None,
        progress=progress,
        **columns,
    )
    grid = None
    if cell_km is not None:
        from tplreport.reading.grid import Grid, as_box

        try:
            grid = Grid(as_box(table.box if box is None else box), cell_km)
        except DataFormatError:
            raise
        except ValueError as error:
            raise ValueError(f"{error}, for the positions in {table.source}") from None
    table = to_states(table, grid=grid, bins=bins, binning=binning)
    return to_sequences(table, step=step, max_gap=max_gap, same_time=same_time, progress=progress)


def _joined(
    parts: Iterable[Pieces],
    labels_of: Callable[[np.ndarray], Any],
    users: np.ndarray | None,
    declared: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Values, offsets, labels and users of all parts, whose states and users are codes."""
    values, own, lengths, owners = Spill(), [declared], [], []
    for cells, offsets, owner in parts:
        codes, seen = pd.factorize(cells)
        values.append(codes.astype(np.int32))
        own.append(seen)
        lengths.append(np.diff(offsets))
        owners.append(owner)
    seen = np.unique(np.concatenate(own))
    ordered = Sequences.from_flat(np.asarray(labels_of(seen)), [0, len(seen)])
    coded = Spill()
    for k, labels in enumerate(own[1:]):
        coded.append(ordered.values[np.searchsorted(seen, labels)][values.read(k)])
    offsets = np.cumsum([0, *np.concatenate(lengths)])
    owner = np.concatenate(owners)
    return coded.joined(), offsets, ordered.labels, owner if users is None else users[owner]


def _binned(table: Table, bins: int | None, binning: str) -> tuple[np.ndarray, np.ndarray]:
    """The cell of each code of a state, the last for code -1, and labels; measured numbers need
    bins."""
    labels = table.states.labels
    numbers = labels if labels.dtype.kind in "iuf" else parse_numbers(texts_of(pd.Series(labels)))
    if bins is None:
        if numbers is None or numbers.dtype.kind != "f" or np.all(numbers == np.floor(numbers)):
            return np.append(np.arange(len(labels), dtype=np.int32), np.int32(-1)), labels
        measured = int(np.argmax(numbers != np.floor(numbers)))
        row = min(
            int(row) for part in table.rows.parts() for row in part["row"][part["cell"] == measured]
        )
        raise ValueError(
            f"states must be whole numbers or labels, found {labels[measured]} in "
            f"{table.place(row)}; "
            "give bins=5, with binning='quantiles' or 'width'"
        )
    check_choice(binning, "binning", ("quantiles", "width"))
    if numbers is None or bins < 2:
        raise ValueError(
            f"bins must be at least 2, of numbers, found {bins}; change bins=, or leave it out"
        )
    low, high, shares = numbers.min(), numbers.max(), np.linspace(0, 1, bins + 1)
    if binning == "width":
        edges = np.unique(low + (high - low) * shares)
    else:
        edges = np.unique(_quantiles(numbers, table.states.counts, shares))
    index = np.clip(np.searchsorted(edges, numbers, "right") - 1, 0, max(len(edges) - 2, 0))
    digits = next(n for n in range(6, 18) if len({f"{edge:.{n}g}" for edge in edges}) == len(edges))
    names = np.array(
        [f"{a:.{digits}g} to {b:.{digits}g}" for a, b in pairwise(edges)] or [f"{low:g}"]
    )
    return np.append(index, -1).astype(np.int32), names


def _quantiles(numbers: np.ndarray, counts: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """`np.quantile` of numbers that are repeated so often, in the memory of the distinct ones."""
    order = np.argsort(numbers)
    order = order[counts[order] > 0]
    upto = np.cumsum(counts[order])
    # index of each among all numbers in order
    first_and_last = np.column_stack([upto - counts[order], upto - 1])
    return np.interp(shares * (upto[-1] - 1), first_and_last.ravel(), numbers[order].repeat(2))
