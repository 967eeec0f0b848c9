"""From anybody's observations (who was in which state at what time) to sequences of states, in
three calls.

`read_table` gathers the rows of a file, `to_states` makes states of what they hold, `to_sequences`
cuts them into sequences; `read_sequences` is all three. A row is one observation, a spell with an
end, or a sequence of states; `table` says which files are read. A state is the value of a column,
or the cell of a geographic position. A *block* is a frame of some rows; `place` is a function from
the number of a row to where the row stands in the file, for messages. Labels are the same whatever
the format (see `rows_by_user`). Observations are ordered by instant; time steps of a day or more
follow the local clock given by the offset or time zone, shorter ones UTC, since a clock goes back.
"""

from __future__ import annotations
import re
import unicodedata
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from tplreport.reading.rows_by_user import (
    MISSING,
    Codes,
    Labels,
    RowsByUser,
    Spill,
    plain_label,
    release_memory,
)
from tplreport.reading.table import (
    USUAL_NAMES,
    Source,
    check_first_line,
    check_is_no_pipe,
    column_names,
    first_rows,
    format_of,
    is_in_partitions,
    name_of_source,
    open_source,
    plain_name,
    read_spmf,
    read_workbook,
    unlike_columns,
    usual_column,
)
from tplreport.reading.text_files import Ahead, DataFormatError, limits_of_command
from tplreport.reading.time_steps import (
    ABOUT,
    FEWEST_GAPS,
    FEWEST_TO_JUDGE,
    Cutter,
    Duration,
    Gaps,
    Pieces,
    about,
    fitting_step,
    in_units,
    regular_gap,
)
from tplreport.reading.times import (
    LOCAL,
    SAMPLE,
    UNITS,
    Absent,
    OnClock,
    are_clocks,
    check_seconds,
    fitting_formats,
    looks_like_times,
    parse_numbers,
    seconds_of,
    texts_of,
    with_instants,
    zone_of,
)
from tplrepro.display import count_noun
from tplrepro.markov.sequences import MICROSECONDS, Sequences, with_even_times
from tplrepro.progress import with_progress
from tplrepro.validation import check_choice, warn_caller

if TYPE_CHECKING:
    from tplreport.reading.grid import Box, Grid
    from tplreport.reading.missing import Lacking

POSITION = ("latitude", "longitude")
ORDERS = ("rows", "times")
#: As `user`: all rows are one person's.
NO_USER = "none"
#: As `missing`: rows without a value are left out, or a missing state is a state, of this name.
DROP = "drop"
AS_STATE = "state"
NO_STATE = "missing"
#: As a number; of times of day most are later.
ONE_O_CLOCK = 100
#: States of these names, whatever their case, may be none.
WORDS_FOR_NOTHING = {
    *("", "-", "--", "?", ".", "na", "n/a", "n.a.", "#n/a", "<na>", "nan", "-nan", "nat"),
    *("nil", "none", "null", "(null)", "unknown"),
}
SAME_TIME = ("first", "last", "rows")
DECIMAL_COMMA = r"[-+]?\d+(,\d+)?"
#: A gap that is so many times the usual one is said.
LONG = 1.5


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
    clock: str | None = None  # whose hours the times of the sequences are, if they have any
    step: str | None = None  # from row to row, where each row is a step
    stateless: int = 0  # rows without a state, which are a state of its own
    skipped: str | None = None  # what is cut or held at hours that clocks leave out
    users: int = 0  # in the rows, those without a state included
    of_all: tuple[str, ...] = ()  # what the rows of all users decide about each of them
    given_step: timedelta | None = None  # that was asked for

    @property
    def lines(self) -> tuple[str, ...]:
        """In words, a line each."""
        columns = ", ".join(f"{role} from {name!r}" for role, name in self.columns.items())
        if "user" not in self.columns:
            columns += f"; no column of users: {self._rows_of_one_user} one user's"
        times = self.times
        if self.span is not None:
            first, last = self.span
            times += f", from {first} to {last}"
        if self.clock is not None:
            times += f"; hours and weekdays {self.clock}"
        if self.step is not None:
            times += f"; each row is a step, of {self.step}"
        if self.skipped is not None:
            times += f"; {self.skipped.partition(';')[0]}"
        used = self.rows - sum(self.dropped.values())
        reasons = "".join(f"; not {count:,}: {reason}" for reason, count in self.dropped.items())
        if self.stateless:
            reasons += f"; {self.stateless:,} of them without a state, as state {NO_STATE!r}"
        return (
            f"Read: {columns}",
            f"Times: {times}",
            f"Rows: {used:,} of {self.rows:,} count{reasons}",
            f"first row: {_in_words(self.first)}; last row: {_in_words(self.last)}",
        )

    @property
    def _rows_of_one_user(self) -> str:
        """Which rows are one user's, where no column tells."""
        if "user" in self.first:  # by the name of its file
            return "all rows of a file are"
        return "all rows are"


def _in_words(row: dict[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in row.items())


@dataclass(frozen=True, eq=False)
class Observed(Sequences):
    """Sequences that were read, with what was read."""

    reading: WhatWasRead | None = None

    def __str__(self) -> str:
        lines = [repr(self)]
        if self.reading is not None:
            lines += self.reading.lines
        return "\n".join(lines)


@dataclass(frozen=True)
class Missing:
    """Which texts stand for no value, and what becomes of rows with them."""

    texts: frozenset[str]
    are_usual: bool = True  # whether the texts are those that nobody had to name
    is_dropped: bool = False  # rows without a user, a time or an end are left out
    is_state: bool = False  # rows without a state are in a state of its own

    @classmethod
    def of(cls, missing: str | Iterable[str] | None) -> Missing:
        """What `read_table` takes: texts, or one with commas between them, `DROP` or `AS_STATE`
        among them, or None.

        >>> Missing.of("state,-9").is_state, sorted(Missing.of("state,-9").texts)
        (True, ['', '-9'])
        """
        if missing is None:
            missing = []
        elif isinstance(missing, str):
            missing = missing.split(",")
        words = [*missing]
        texts = [word for word in words if word not in (DROP, AS_STATE)]
        return cls(
            texts=frozenset(["", *(texts or MISSING)]),
            are_usual=not texts,
            is_dropped=DROP in words,
            is_state=AS_STATE in words,
        )


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
    missing: Missing = field(default_factory=partial(Missing.of, None))
    lacking: Lacking | None = None  # rows without a user, a time or an end, if there are any
    stateless: int = 0  # rows without a state that have the others
    rows: RowsByUser = field(default_factory=RowsByUser)
    # of positions: least and largest latitude, and longitude
    edges: np.ndarray = field(default_factory=lambda: np.array([np.inf, -np.inf] * 2))
    first_row: dict[str, str] = field(default_factory=dict)  # as it was understood
    last_row: dict[str, str] = field(default_factory=dict)
    span: list[Any] = field(default_factory=list)  # the first and the last time
    unit: str | None = None  # of times that are numbers
    on_clock: OnClock | None = None  # that of a zone which is given
    zones: set[str | None] = field(default_factory=set)  # of times, None for those without
    has_offsets: bool = False  # whether local clocks differ from UTC, or may do
    ties: str | None = None  # as `same_time`: events of a log are in order
    counts_rows: bool = False  # each row is a step, whatever the time between
    cells_of: Callable[[pd.DataFrame], np.ndarray] | None = None  # of rows; -1 for none
    labels_of: Callable[[np.ndarray], Any] = np.asarray
    # cells that are states in any case
    declared: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    of_all: tuple[str, ...] = ()  # what the rows of all users decide about each of them

    @property
    def zone(self) -> str | None:
        """The zone of all times, None if they have none, or several."""
        if len(self.zones) != 1:
            return None
        return next(iter(self.zones))

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
    zone: str | None = None,
    progress: bool = True,
) -> Table:
    """The rows of a file, a folder or a DataFrame, gathered by user.

    Files may be larger than memory: what exceeds `IN_MEMORY` bytes goes to a temporary file (24 to
    44 bytes a row).

    Parameters
    ----------
    data : DataFrame, or path of a CSV, Excel, Parquet, Feather, JSON lines, SPMF or XES file
        A folder of tables, too, and a DataFrame of Dask, whose partitions are read in turn.
    user, time, state : names of columns, or numbers from 0 in CSV files without a header
        By default the first column with one of the `USUAL_NAMES`. Each file of a folder without
        users is one user's; `user="none"` says that all rows, of all files, are one person's.
        Times are time stamps, text in ISO 8601 or in `time_format`, or numbers; "date+clock"
        joins two columns. A row without a state ends a sequence. The state "first..last", or "a+b",
        names the columns of a row that is a sequence by itself, such as a week of a person, or the
        two ends of a trip; times are then left out.
    latitude, longitude : instead of `state`, the columns of degrees of WGS 84
    positions : bool; the columns of positions are those of usual names
    until : column of ends of spells, which begin at `time`
    order : "rows" or "times": each observation of a user is a step
        In the order of the rows, without times, or in that of times, whatever lies between them.
    time_format : format of times that are text, as of `strptime`
        A week without a day, "%G-W%V", is its Monday; "%q" is the number of a quarter.
    time_unit : "s", "ms", "us", "ns", "min", "h", "D" or "excel", of times that are numbers
        The last are days of a spreadsheet.
    missing : "drop" or "state", or texts that stand for no value, or both, such as "drop,NA,-9"
        Texts are by default `MISSING`, with a warning. A row without a state ends a sequence, and
        with "state" it is in a state "missing" of its own. Rows without a user, a time or an end
        are an error, and with "drop" left out: a user's sequence ends where a row without a time
        stands, if the user's rows are in order of time, and at the begin of a spell without an
        end; a row without a user may be anybody's, and ends none.
    zone : name of a time zone, such as "Europe/Berlin", by whose clock hours and days count
        Times with an offset from UTC, and seconds since 1970, are shown by it; those without an
        offset are taken for what it shows.
    progress : bool; show how many rows were read

    Returns
    -------
    Table

    Raises
    ------
    FileNotFoundError
    DataFormatError
        If a file cannot be read; a ValueError.
    ValueError
        For a missing column, missing or unreadable users or times, and arguments that do not fit
        together.
    """
    _check_names_of_columns(user=user, time=time, state=state, until=until)
    check_choice(order or "rows", "order", ORDERS)
    check_choice(time_unit or "s", "time_unit", UNITS)
    kind = None
    if not (isinstance(data, pd.DataFrame) or is_in_partitions(data)):
        data = Path(data)
        kind = _checked_format(data)
        if kind == "spmf":
            _check_unused("an SPMF file", user=user, time=time, state=state, until=until)
            order = "rows"
        data = _frame_of_format(data, kind)
    states_of_row = _several_columns(data, state)
    if states_of_row:
        _check_unused(
            "a table with a sequence a row", until=until, latitude=latitude, longitude=longitude
        )
        wanted = {"user": user} | {f"state {k}": name for k, name in enumerate(states_of_row)}
    else:
        states = _wanted_states(state, latitude, longitude, positions)
        wanted = _wanted_observation(data, user, time, states, until, order=order)
    _heed_user(user, data, wanted, is_table=not states_of_row)
    if order == "rows" and kind != "spmf" and not states_of_row:
        _warn_of_order(data, wanted)
    source = open_source(data, wanted)
    table = _empty_table(source, len(states_of_row) or 1, missing, time_unit)
    table.counts_rows = order == "times"
    _heed_zone(table, zone, has_times="time" in wanted)
    _gather_rows(table, source, time_format, progress)
    release_memory()
    _heed_lacking(table)
    if table.missing.are_usual:
        _warn_of_missing(table)
        _warn_of_words_for_nothing(table)
    for codes in (table.users, table.states):
        _warn_of_likeness(table, codes)
    if isinstance(data, pd.DataFrame):
        _heed_notes(table, source.name, data.attrs)
    return table


def _heed_zone(table: Table, zone: str | None, has_times: bool) -> None:
    """Let the clock of a zone that is given show the times; ValueError where there are none."""
    if zone is None:
        return
    if not has_times:
        _check_unused("a table without times", zone=zone)
    from tplreport.reading.zones import NamedZone

    table.on_clock = NamedZone(zone, table.unit).times
    table.unit = None  # numbers become dates
    table.zones.add(zone)


def _gather_rows(table: Table, source: Source, time_format: str | None, progress: bool) -> None:
    """Add all rows of a source to the table; with `progress`, a bar is shown if that takes long."""
    blocks = with_progress(source.blocks, "reading", "row", size=len, show=progress)
    try:
        _gather(table, blocks, time_format)
    except pd.errors.OutOfBoundsDatetime as error:
        raise unlike_columns(error, source.name) from None
    finally:
        if isinstance(source.blocks, Generator | Ahead):
            source.blocks.close()  # with its thread, though an error keeps the source


def _heed_notes(table: Table, name: str, notes: Mapping) -> None:
    """Warn of what the reader of a log noted on its frame, and order events at one time by their
    rows; `name` is the source."""
    _warn_of_notes(name, notes)
    if "phases" in notes:
        table.ties = "rows"


def _checked_format(path: Path) -> str | None:
    """The format of a file that is there, and holds no more than is read."""
    if not path.exists():
        raise FileNotFoundError(
            f"there must be a file or folder {path}, found none; check its name"
        )
    check_is_no_pipe(path)
    kind = format_of(path)
    if kind is None:
        check_first_line(path, kind, limits_of_command())
    else:
        from tplreport.reading.sizes import check_size

        check_size(path, limits_of_command())
    return kind


def _frame_of_format(path: Path, kind: str | None) -> Path | pd.DataFrame:
    """A file whose format is read as a whole ("spmf", "excel", "xes"), as a frame; of any other
    kind its path."""
    if kind == "spmf":
        return read_spmf(path)
    if kind == "excel":
        return read_workbook(path)
    if kind == "xes":
        from tplreport.reading.event_logs import read_all_events

        return read_all_events(path)
    return path


def _wanted_observation(
    data: Path | pd.DataFrame,
    user: Hashable,
    time: Hashable,
    states: dict[str, Hashable],
    until: Hashable,
    *,
    order: str | None,
) -> dict[str, Hashable]:
    """The columns of a table whose rows are observations, or spells that end at `until`.

    A column is given by its name, None for one of a usual name; the result maps user, time, until
    and what `states` holds to these. `order` "rows": there are no times.
    """
    wanted = {"user": user} | _wanted_times(data, time, until, order) | states
    if until is not None:
        wanted["until"] = until
    if "time" in wanted and time is None:
        _check_times(data, wanted)
    return wanted


def _wanted_times(
    data: Path | pd.DataFrame, time: Hashable, until: Hashable, order: str | None
) -> dict[str, Hashable]:
    """The columns of times: none for rows in order (`order` is not None); a date and a clock where
    `time` names several; else one."""
    parts = _several_columns(data, time)
    if order == "rows":
        _check_unused("a table with order='rows'", time=time, until=until)
        return {}
    if parts:
        date, *clocks = parts
        return {"time": date, "clock": "+".join(map(str, clocks))}
    return {"time": time}


def _wanted_states(
    state: Hashable, latitude: Hashable, longitude: Hashable, positions: bool
) -> dict[str, Hashable]:
    """The column of states, or with `positions` or a name of one of them those of latitude and
    longitude."""
    if positions or latitude is not None or longitude is not None:
        return {"latitude": latitude, "longitude": longitude}
    return {"state": state}


def _empty_table(
    source: Source, width: int, missing: str | Iterable[str] | None, time_unit: str | None
) -> Table:
    """A table without rows, for rows that hold `width` states.

    `missing` is as for `Missing.of`.
    """
    chosen = Missing.of(missing)
    place = source.place
    if width > 1:
        place = lambda row: source.place(row // (width + 1))  # noqa: E731
    return Table(
        source=source.name,
        columns={thing: name for thing, name in source.columns.items() if name is not None},
        place=place,
        users=Codes("user", chosen.texts),
        states=Codes("state", chosen.texts),
        width=width,
        missing=chosen,
        unit=time_unit,
    )


def _warn_of_missing(table: Table) -> None:
    """Warn of states that are texts which stand for no value by default."""
    effect = "each ends a sequence"
    if table.missing.is_state:
        effect = f"each is in state {NO_STATE!r}"
    for text, count in table.states.absent.items():
        if text:
            warn_caller(
                f"{count_noun(count, 'row', ',')} of {table.source} with state {text!r}, which "
                f"stands for a missing value: {effect}; give missing='' if it is a state"
            )


def _warn_of_words_for_nothing(table: Table) -> None:
    """Warn of states whose names often stand for no value, though not by default."""
    found = [
        name
        for name in table.states.code_of
        if isinstance(name, str) and name.strip().casefold() in WORDS_FOR_NOTHING
    ]
    for name in found:
        warn_caller(
            f"{name!r} counts as a state of {table.source}; give missing={name!r} if it stands for "
            "no value"
        )


def _heed_lacking(table: Table) -> None:
    """ValueError for rows without a user, a time or an end, unless they are to be left out."""
    if table.lacking is None:
        return
    if not table.missing.is_dropped:
        table.lacking.check(table.place, table.rows.n_rows)
    table.lacking.warn(table.source)
    if not table.rows.counts.size:
        raise ValueError(
            f"there must be rows with a user and a time, found none in {table.source}; check the "
            "columns"
        )


def _warn_of_likeness(table: Table, codes: Codes) -> None:
    """Warn of users, or states, whose names differ by case, or by what nobody sees."""
    if _are_plainly_unlike([name for name in codes.code_of if isinstance(name, str)]):
        return
    first = dict[str, str]()
    pairs = []
    for name in codes.code_of:
        if isinstance(name, str):
            other = first.setdefault(_as_read(name), name)
            if other != name:
                pairs.append((other, name))
    if not pairs:
        return
    one, other = pairs[0]
    verb = "differ"
    effect = f"count as {codes.name}s of their own"
    if len(pairs) == 1:
        verb = "differs"
        effect = f"counts as a {codes.name} of its own"
    difference = "case alone"
    if one.casefold() != other.casefold():
        difference = "blanks, a # before it, or signs that look alike or that nobody sees"
    warn_caller(
        f"{count_noun(len(pairs), codes.name, ',')} of {table.source} {verb} from another one by "
        f"{difference}, such as {one!r} and {other!r}, and {effect}; "
        "write one name if they are one"
    )


def _are_plainly_unlike(names: list[str]) -> bool:
    """Whether names without blanks and signs beyond letters, digits and the like differ by more
    than case, which is seen at once.

    >>> _are_plainly_unlike(["u1", "u2"]), _are_plainly_unlike(["u1", "U1"])
    (True, False)
    >>> _are_plainly_unlike(["u 1", "u2"]), _are_plainly_unlike(["#u1", "u2"])
    (False, False)
    """
    together = "\0".join(names)
    if not together.isascii() or "#" in together or len(together.split()) > 1:
        return False
    return len({*together.casefold().split("\0")}) == len(names)


def _as_read(name: str) -> str:
    """A name as it is heard: without case, without a # before it, with single blanks, and without
    signs that have no width.

    >>> _as_read("Cafe\u0301\u200b") == _as_read("caf\u00e9"), _as_read("#user  7")
    (True, 'user 7')
    """
    signs = name
    if not name.isascii():
        signs = unicodedata.normalize("NFKC", name)
        signs = "".join(sign for sign in signs if unicodedata.category(sign) != "Cf")
    words = signs.lstrip("#").split()
    return " ".join(words).casefold() or name


def _warn_of_notes(source: str, notes: Mapping[Any, Any]) -> None:
    """Warn of what a reader noted in a frame: rows that it skipped, several phases of events."""
    if skipped := notes.get("skipped"):
        reasons = ", ".join(f"{count} times {reason}" for reason, count in skipped.items())
        warn_caller(
            f"{source} was read without {reasons}: what is left counts as if nothing lay between"
        )
    phases = notes.get("phases", ())
    if len(phases) > 1:
        warn_caller(
            f"{source} has events of several phases ({', '.join(phases)}), each of which counts, "
            "so that an activity that starts and ends seems to be repeated; keep one phase to "
            "count each activity once"
        )


def _check_names_of_columns(**columns: Any) -> None:
    """ValueError for several columns where the name of one is meant."""
    for name, column in columns.items():
        if not isinstance(column, Hashable):
            remedy = "give its name"
            if name == "state":
                remedy += ", or all states of a row as state='first..last'"
            raise ValueError(f"{name} must be the name of a column, found {column!r}; {remedy}")


def _check_unused(data: str, **arguments: Any) -> None:
    for name, value in arguments.items():
        if value is not None:
            raise ValueError(
                f"{data} must be read without {name}, found {name}={value!r}; leave it out"
            )


def _several_columns(data: Path | pd.DataFrame, given: Hashable) -> list[Hashable]:
    """The columns that the text `given`, "first..last" or "a+b", names; none if it names one column
    itself."""
    if not isinstance(given, str) or not (".." in given or "+" in given):
        return []
    names = column_names(data)
    if given in names:
        return []
    if ".." not in given:
        return list(given.split("+"))
    return _columns_from_to(data, given, names)


def _columns_from_to(
    data: Path | pd.DataFrame, given: str, names: Sequence[Hashable]
) -> list[Hashable]:
    """The columns that the text `given`, "first..last", names; ValueError unless it names two of
    `names` in order."""
    parts = given.split("..")
    places = [_place_of_column(part, names) for part in parts]
    if len(places) != 2 or not 0 <= places[0] < places[1] < len(names):
        raise ValueError(
            f"state 'first..last' must name two columns in order, found {given!r}; the columns of "
            f"{data} are {names}"
        )
    first, last = places
    if parts[0] in names:
        return list(names[first : last + 1])
    return list(range(first, last + 1))


def _place_of_column(given: str, names: Sequence[Hashable]) -> int:
    """The place of a column by its name or number; -1 if it is neither."""
    if given in names:
        return names.index(given)
    return int(given) if given.isdecimal() else -1


def _check_times(data: Path | pd.DataFrame, wanted: Mapping[str, Hashable]) -> None:
    """ValueError if no column of times has a usual name, with the names of those whose values look
    like times."""
    names = column_names(data)
    if {*map(plain_name, names)} & {*USUAL_NAMES["time"]}:
        return
    found = _likely_times_in_words(first_rows(data, names))
    remedy = (
        "name their column by time=, or give order='rows' if the rows of each user are in order "
        "of time"
    )
    addition = ""
    if found:
        addition = f"{found}; {remedy}"
    _check_other_columns(data, wanted, addition)
    columns = ", ".join(map(repr, names[:12]))
    source = name_of_source(data)
    raise DataFormatError(
        f"there must be times, found none among the columns {columns}{found}: {remedy}", source
    )


def _heed_user(user: Any, data: Any, wanted: dict[str, Hashable], *, is_table: bool) -> None:
    """Look for columns that may be those of users, if none is named in a table with a row for each
    observation; want none if all rows are one person's."""
    if user is None and is_table:
        _check_users(data, wanted)
    if user == NO_USER and NO_USER not in column_names(data):
        del wanted["user"]


def _check_users(data: Path | pd.DataFrame, wanted: Mapping[str, Hashable]) -> None:
    """DataFormatError if no column of users has a usual name and there are columns that may be
    those of users; each file of a folder is a user's.

    Called where user= is not given; nothing is checked where columns are given by number.
    """
    is_by_number = any(isinstance(one, int) for one in wanted.values())
    if is_by_number:
        return
    if isinstance(data, Path) and data.is_dir():
        return
    names = column_names(data)
    if _has_users(names):
        return
    head = _head_of_other_columns(data, names, wanted)
    if head.columns.empty:
        return
    shown = ", ".join(map(repr, names[:12]))
    likely = [repr(name) for name in head if _may_be_users(head[name])]
    hint = ""
    if likely:
        hint = f"; {' and '.join(likely)} may name users"
    source = name_of_source(data)
    raise DataFormatError(
        f"there must be users, found none of a usual name among the columns {shown}{hint}: name "
        f"their column by user=, or give user={NO_USER!r} if all rows are one person's",
        source,
    )


def _has_users(names: Iterable[Hashable]) -> bool:
    """Whether one of these names is a usual one for users."""
    return not {*map(plain_name, names)}.isdisjoint(USUAL_NAMES["user"])


def _warn_of_order(data: Path | pd.DataFrame, wanted: Mapping[str, Hashable]) -> None:
    """Warn of rows that count in the order of the file though times of a usual name, among the
    first rows, go back for a user."""
    names = column_names(data)
    by_number = any(isinstance(one, int) for one in wanted.values())
    others = [name for name in names if name not in wanted.values()]
    usual = usual_column("time", others)
    if by_number or usual is None or names.count(usual) > 1:
        return
    user = wanted.get("user")
    if user is None and "user" in wanted:
        user = usual_column("user", names)
    if user not in names or names.count(user) > 1:
        user = None
    columns = [usual]
    if user is not None:
        columns.append(user)
    head = first_rows(data, columns)
    time = head[usual]
    if not looks_like_times(time) and time.dtype.kind not in "iuf":
        return
    try:
        times = with_instants(pd.DataFrame({"time": time.dropna()}), None, str, {})[0]["time"]
    except ValueError:
        return
    owner = pd.Series(0, times.index)
    if user is not None:
        owner = head[user].astype(str).loc[times.index]
    before = times.groupby(owner.to_numpy()).shift(1)
    if (times < before).any():
        warn_caller(
            f"rows count in the order of the file, though the column {usual!r} goes back from "
            "one to the next of a user; leave out order='rows' to put them in order of it"
        )


def _head_of_other_columns(
    data: Path | pd.DataFrame, names: list, wanted: Mapping[str, Hashable]
) -> pd.DataFrame:
    """The first values of the columns, of all `names`, that are not `wanted`, have no usual name
    of another thing, and hold neither nothing nor times."""
    given = [*map(str, wanted.values())]
    taken = {*given}.union(*(name.split("+") for name in given))
    usual = {one for names_of_one in USUAL_NAMES.values() for one in names_of_one}
    others = [
        name
        for name in names
        if names.count(name) == 1
        and str(name) not in taken
        and plain_name(name) not in {*usual, ""}
    ]
    head = first_rows(data, others)[others].dropna(axis=1, how="all")
    return head[[name for name in head if not looks_like_times(head[name])]]


def _may_be_users(column: pd.Series) -> bool:
    """Whether the values of a column are labels of which there are several that occur again."""
    values = column.dropna()
    if values.dtype.kind in "fb":
        return False
    distinct = values.astype(str).nunique()
    return 2 <= distinct <= len(values) / 2


def _likely_times_in_words(head: pd.DataFrame) -> str:
    """Which columns hold times by their first values; "" for none."""
    likely = [
        repr(name) for k, name in enumerate(head.columns) if looks_like_times(head.iloc[:, k])
    ]
    if not likely:
        return ""
    verb = "hold"
    if len(likely) == 1:
        verb = "holds"
    return f"; {' and '.join(likely)} {verb} times"


def _check_other_columns(
    data: Path | pd.DataFrame, wanted: Mapping[str, Hashable], addition: str
) -> None:
    """DataFormatError, with `addition` at its end, if other columns than that of times are
    missing."""
    others = {thing: name for thing, name in wanted.items() if thing != "time"}
    try:
        next(open_source(data, others).blocks, None)
    except DataFormatError as error:
        problem = str(error).removeprefix(f"{error.file}: ")
        raise DataFormatError(problem + addition, error.file) from None


def _gather(table: Table, blocks: Iterable[pd.DataFrame], time_format: str | None) -> None:
    """Add the rows of all blocks to the table, which is changed; threads look up users and states
    while times are read."""
    begin = 0
    kinds = dict[str, tuple[bool, bool]]()
    is_wide = table.width > 1
    with ThreadPoolExecutor(2) as threads:
        for block in blocks:
            place = partial(_place_of_block_row, table, begin)
            added = block
            if is_wide:
                added = _long(block, begin, table.width)
            lookups = {
                key: threads.submit(codes.factorized, added[key]).result
                for key, codes in (("user", table.users), ("state", table.states))
                if key in added
            }
            if "time" in block and table.on_clock is None:
                table.zones.add(zone_of(block["time"]))
            block, absent = with_instants(
                block, time_format, place, kinds, table.missing.texts, table.on_clock
            )
            table.has_offsets |= LOCAL["time"] in block
            if not is_wide:
                added = block
            _add_block(table, added, place, lookups, absent)
            if not table.first_row:
                table.first_row = _shown_row(block, 0, table, absent)
            table.last_row = _shown_row(block, len(block) - 1, table, absent)
            begin += len(added)
    if not begin:
        raise ValueError(
            f"there must be observations, found no row in {table.source}; check the file and the "
            "names of its columns"
        )


def _place_of_block_row(table: Table, begin: int, row: int) -> str:
    """Where a row of a block stands that begins at row `begin` of the table."""
    return table.place(begin + row)


def _add_block(
    table: Table,
    block: pd.DataFrame,
    place: Callable[[int], str],
    lookups: Mapping[str, Callable[[], Any]],
    absent: Mapping[str, Absent],
) -> None:
    """Add the rows of a block to the table, with codes of their users and states, and widen its
    span of times and positions.

    `place` tells where a row of the block stands; `lookups` give, for user and state, what
    `Codes.factorized` found in the block; `absent` are the rows without a time, by its column.
    """
    coded = ("user", "state", *POSITION)
    columns = {name: block[name].to_numpy() for name in block if name not in coded}
    columns["user"] = np.zeros(len(block), np.int32)
    if "user" in block:
        columns["user"] = table.users.of(block["user"], place, lookups["user"])
        is_nobody = columns["user"] < 0
        if is_nobody.any():
            absent = {**absent, "user": Absent.of(is_nobody, block["user"])}
    elif table.width > 1:
        columns["user"] = columns["time"] // (table.width + 1)
    is_left_out = _leave_out(table, columns["user"], absent)
    columns["user"][is_left_out] = -1
    if "state" in block:
        lookup = partial(_labels_of_kept, lookups["state"], is_left_out)
        columns["cell"] = table.states.of(block["state"], place, lookup)
    for k, name in enumerate(block.columns.intersection(POSITION)):
        degrees = _degrees(block[name], name, place)
        degrees = np.where(is_left_out, np.nan, degrees)
        columns[name] = degrees
        _widen_edges(table.edges[2 * k : 2 * k + 2], degrees)
    if "time" in block and table.width == 1:
        _widen_span(table, columns["time"][~is_left_out])
    is_stateless = _lacks_state(pd.DataFrame(columns, copy=False), table.width)
    table.stateless += int((is_stateless & ~is_left_out).sum())
    table.rows.add(columns)


def _leave_out(table: Table, users: np.ndarray, absent: Mapping[str, Absent]) -> np.ndarray:
    """Which rows (m,) of a block are left out, as they have no user or no time; the table notes
    all that lack something.

    `users` are codes, -1 for none; `absent` are the rows that lack something, by its column.
    """
    if not absent:
        return np.zeros(len(users), dtype=bool)
    if table.lacking is None:
        from tplreport.reading.missing import Lacking

        table.lacking = Lacking()
    return table.lacking.add(users, absent, table.rows.n_rows)


def _labels_of_kept(lookup: Callable[[], Labels], is_left_out: np.ndarray) -> Labels:
    """What a lookup found, without the labels of rows that are left out."""
    found = lookup()
    return replace(found, of_rows=np.where(is_left_out, -1, found.of_rows))


def _widen_edges(edges: np.ndarray, degrees: np.ndarray) -> None:
    """Change `edges`, the least and the largest degree of a table, to cover further ones."""
    edges[0] = np.fmin.reduce(degrees, initial=edges[0])
    edges[1] = np.fmax.reduce(degrees, initial=edges[1])


def _widen_span(table: Table, times: np.ndarray) -> None:
    """Change the first and the last time of a table to cover further ones."""
    if not times.size:
        return
    table.span = [min([times.min(), *table.span]), max([times.max(), *table.span])]


def _shown_row(
    block: pd.DataFrame, row: int, table: Table, absent: Mapping[str, Absent]
) -> dict[str, str]:
    """Row number `row` of a block, as it was understood: texts by role; `absent` are the rows
    without a time, by its column."""
    shown = {}
    for name in block:
        value = block[name].iloc[row]
        if name in absent and row in absent[name].rows:
            shown[name] = str(None)
        elif name in LOCAL:
            shown[name] = str(value)
        elif name not in LOCAL.values():
            shown[name] = str(plain_label(value, table.users.missing))
    return shown


def _long(block: pd.DataFrame, begin: int, width: int) -> pd.DataFrame:
    """A row for each state of rows that are sequences of `width` states, and one without a state
    after each sequence, which ends it.

    `begin` is the number of earlier rows; times count all rows from 0 on.
    """
    values = block.drop(columns="user", errors="ignore").assign(end=None).to_numpy(dtype=object)
    long = pd.DataFrame({"time": begin + np.arange(values.size), "state": values.ravel()})
    if "user" in block:
        long["user"] = block["user"].repeat(width + 1).to_numpy()
    return long


def _degrees(column: pd.Series, name: str, place: Callable[[int], str]) -> np.ndarray:
    """The column `name` in degrees as floats, NaN where there are none; ValueError, with its place,
    for any other value."""
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
    table : Table, as of `read_table`
    grid : Grid, for a table of positions; a position outside ends a sequence
    bins : number of bins of states that are measured numbers
    binning : "quantiles" for bins of equal shares, or "width" for equal width

    Returns
    -------
    Table

    Raises
    ------
    ValueError
        For measured numbers without bins, and bins of what is no number.
    """
    if grid is not None:
        found = replace(
            table,
            cells_of=lambda part: grid.cell(part["latitude"], part["longitude"]),
            labels_of=grid.labels,
        )
        return _with_state_of_none(found, grid.n_cells)
    cell_of, labels = _binned(table, bins, binning)
    declared = np.unique(cell_of[:-1]) if table.states.is_declared else table.declared
    found = replace(
        table,
        cells_of=lambda part: cell_of[part["cell"].to_numpy()],
        labels_of=lambda seen: labels[seen],
        declared=declared,
    )
    if bins is not None:
        edges = "the edges of bins (leave bins= out, and give states of fixed ranges)"
        found = replace(found, of_all=(*table.of_all, edges))
    return _with_state_of_none(found, len(labels))


def _with_state_of_none(table: Table, cell: int) -> Table:
    """The table with this cell, of the label `NO_STATE`, for rows without a state, if they are to
    have one; ValueError if another state has that label."""
    cells_of = table.cells_of
    if not table.missing.is_state or not table.stateless or cells_of is None:
        return table
    labels_of = table.labels_of

    def cells_with_none(part: pd.DataFrame) -> np.ndarray:
        """The cells of rows, that of rows without a state among them."""
        return np.where(_lacks_state(part, table.width), cell, cells_of(part)).astype(np.int32)

    def labels_with_none(cells: np.ndarray) -> np.ndarray:
        """The labels of cells as texts, the last one perhaps of those without a state."""
        is_none = cells == cell
        labels = [str(label) for label in labels_of(cells[~is_none])]
        if NO_STATE in labels:
            raise ValueError(
                f"no state may be called {NO_STATE!r} beside missing={AS_STATE!r}, found one in "
                f"{table.source}; give missing='{AS_STATE},{NO_STATE}' if it stands for no state, "
                "or rename it"
            )
        return np.array([*labels, *[NO_STATE] * int(is_none.sum())])

    return replace(table, cells_of=cells_with_none, labels_of=labels_with_none)


def _lacks_state(rows: pd.DataFrame, width: int) -> np.ndarray:
    """Which rows have no state, or position, that could have one: the row after each sequence of
    `width` states, if that is more than one, has none."""
    if "cell" not in rows:
        return np.logical_or(*(np.isnan(rows[name].to_numpy()) for name in POSITION))
    lacks = rows["cell"].to_numpy() < 0
    if width > 1:
        lacks = lacks & (rows["time"].to_numpy() % (width + 1) != width)
    return lacks


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
    table : Table, as of `to_states`, or of `read_table` for states as they are
    step, max_gap : durations, such as "1h"; numbers are seconds
        With `step`, one state per time step as in `fixed_steps`, where the last known state holds
        for `max_gap`, by default less than one step. Without `step`, one state per row, and a gap
        longer than `max_gap` ends a sequence. Times that are numbers are then seconds, unless
        `time_unit` says otherwise. Warnings give the number of rows between two steps, which do not
        count, and the share of states that are held from an earlier step: stays among them are
        assumed.
    same_time : "first", "last" or "rows": which states of a user at one time count
        "rows" are all, as steps in the order of the rows. By default different states are an error,
        and equal ones count once, with a warning; events of an XES log are "rows".
    progress : bool; show how many rows are done

    Returns
    -------
    Sequences, whose values may be mapped from a temporary file

    Raises
    ------
    ValueError
        For numbers as times that can be no seconds, a user in two states at one time, and the
        errors of `fixed_steps`.
    """
    if isinstance(step, str):
        step = _step_of_numbers(table, step)
    cells_of = table.cells_of
    if cells_of is None:
        return to_sequences(
            to_states(table), step=step, max_gap=max_gap, same_time=same_time, progress=progress
        )
    _check_cuts(table, step, max_gap, same_time)
    has_users = bool(table.users.code_of)
    rows = table.rows
    parts = Ahead(rows.parts())
    of_users = with_progress(parts, "sequences", "row", total=rows.n_rows, size=len, show=progress)
    is_timed = step is not None or max_gap is not None or "until" in table.columns
    cutter = Cutter(
        step,
        max_gap,
        same_time or table.ties,
        table.place,
        has_users,
        zone=table.zone,
        lacking=table.lacking,
        last=_last_time(table, is_timed),
    )
    if is_timed:
        of_users = _in_seconds(of_users, table, cutter.seconds)
    users = None
    if table.users.code_of:
        users = table.users.labels
    try:
        pieces = (cutter.pieces(part, cells_of(part)) for part in of_users)
        joined = _join_pieces(pieces, table.labels_of, users, table.declared)
    except pd.errors.OutOfBoundsDatetime as error:
        raise unlike_columns(error, table.source) from None
    finally:
        parts.close()
    release_memory()
    cutter.warn(table.source, joined.labels, len(joined.values), table.labels_of)
    reading = _describe_reading(table, cutter.dropped, is_timed)
    if cutter.skipped is not None:
        reading = replace(reading, skipped=str(cutter.skipped) or None)
    if step is not None:
        reading = _with_given_step(reading, joined.step, max_gap)
    elif cutter.same_time != "rows":
        reading = replace(reading, step=_step_of_rows(table, cutter.gaps, max_gap))
    observed = Observed(joined.values, joined.offsets, joined.labels, joined.users)
    if joined.times is None:
        return replace(observed, reading=reading)
    clock, zone = _clock_of(table)
    timed = with_even_times(observed, joined.times, joined.step, zone)
    return replace(timed, reading=replace(reading, clock=clock))


def _with_given_step(
    reading: WhatWasRead, step: timedelta | None, max_gap: Duration
) -> WhatWasRead:
    """What was read at steps that were asked for."""
    of_all = reading.of_all
    if max_gap is None:
        of_all = (*of_all, "how long a state holds (give max_gap=, such as the step)")
    return replace(reading, given_step=step, of_all=of_all)


def _last_time(table: Table, is_timed: bool) -> Any:
    """The last time of any user, in seconds where times are numbers of a known unit; None without
    times."""
    if not table.span:
        return None
    last = table.span[1]
    if is_timed and isinstance(last, int | float | np.number):
        return seconds_of(np.array([last]), table.unit)[0]
    return last


def _step_of_rows(table: Table, gaps: Gaps, max_gap: Duration) -> str | None:
    """The time from row to row in words; ValueError if it differs, unless rows are to count."""
    if not table.span or "until" in table.columns or gaps.n < FEWEST_GAPS:
        return None
    if table.counts_rows:
        return "any length"
    sizes = gaps.sizes
    are_seconds = isinstance(table.span[0], np.datetime64 | pd.Timestamp) or max_gap is not None
    if table.unit and max_gap is None:
        sizes = sizes * UNITS[table.unit][0] / UNITS[table.unit][1]
        are_seconds = True
    usual = regular_gap(sizes)
    if usual is None:
        raise _irregular(table, gaps, sizes, are_seconds)
    shown = _plainly
    if are_seconds:
        shown = about
    if gaps.n < FEWEST_TO_JUDGE:
        return _few_gaps(sizes, shown)
    said = shown(usual)
    n_long = int((sizes > LONG * usual).sum())
    if n_long:
        said += (
            f" (but {n_long:,} of {len(sizes):,}, up to {shown(gaps.longest)}: give step= to end "
            "sequences there)"
        )
    return said


def _few_gaps(sizes: np.ndarray, shown: Callable[[float], str]) -> str:
    """Gaps, in order, that are too few to tell whether rows lie one step apart."""
    shortest = shown(sizes[0])
    longest = shown(sizes[-1])
    found = shortest
    if longest != shortest:
        found = f"{shortest} to {longest}"
    return f"{found} ({count_noun(len(sizes), 'gap')}: too few to judge whether rows are steps)"


def _meaning_of_numbers(table: Table) -> str:
    """What times that are numbers seem to be, and what to do, by those of some users; "" for
    nothing but numbers."""
    part = next(table.rows.parts())
    times = part["time"].to_numpy()
    if are_clocks(times, fewest=6) and np.median(times) >= ONE_O_CLOCK:
        return "times of day such as 0830; write them as 08:30, with their date"
    forms = fitting_formats(times[:SAMPLE])
    if not forms:
        return ""
    return f"dates such as {times[0]}; give time_format={' or '.join(map(repr, forms))}"


def _plainly(seconds: float) -> str:
    return f"{seconds:g}"


def _irregular(table: Table, gaps: Gaps, sizes: np.ndarray, are_seconds: bool) -> ValueError:
    """The error for rows at times of no one step."""
    fits = fitting_step(sizes, are_seconds)
    step: float | str = round(fits, 6)
    if fits == round(fits):
        step = round(fits)
    shown: Callable[[float], str] = _plainly
    if are_seconds:
        step = in_units(fits)
        shown = about
    must = "rows that are steps must lie one step apart"
    typical = np.median(sizes)
    share = (np.abs(sizes - typical) <= ABOUT * typical).mean()
    found = (
        f"gaps of {shown(sizes[0])} to {shown(sizes[-1])}, {share:.0%} of them about "
        f"{shown(typical)}, the longest before {table.place(gaps.row_after_longest)}"
    )
    if not are_seconds and (meant := _meaning_of_numbers(table)):
        return ValueError(f"{must}, found {found}, as if they were {meant}")
    if gaps.shows_changes_only:
        found += ", and no state that follows itself, as if rows stood at changes only"
    return ValueError(
        f"{must}, found {found}; give step={step!r}, which "
        "fits, and max_gap= for how long a state holds; or, if each observation is a step, "
        "whatever lies between, order='times' (order='rows' for the order of the file)"
    )


def _clock_of(table: Table) -> tuple[str, str | None]:
    """Whose clock shows the times of the sequences, in words, and the name of its zone."""
    if isinstance(table.span[0], int | float | np.number):
        return "in UTC, with second 0 at midnight", "UTC"
    if table.zone is not None:
        return f"by the clock of {table.zone}", table.zone
    if table.has_offsets:
        return "by local clocks, as their offsets from UTC say", "offsets from UTC"
    return "as written, without a zone", None


def _step_of_numbers(table: Table, step: str) -> Duration:
    """A step that was typed: a number of the same kind as times that are numbers of no unit, such
    as weeks."""
    is_number = re.fullmatch(r"\s*\d+(\.\d+)?\s*", step) is not None
    has_numbers = bool(table.span) and isinstance(table.span[0], int | float | np.number)
    if is_number and has_numbers and table.unit is None:
        return float(step)
    return step


def _check_cuts(table: Table, step: Duration, max_gap: Duration, same_time: str | None) -> None:
    """ValueError for arguments of `to_sequences` that do not fit the table: any with a sequence a
    row, and a step without times."""
    check_choice(same_time or "rows", "same_time", SAME_TIME)
    if table.counts_rows:
        _check_unused("a table with order='times'", step=step)
    if table.width > 1:
        _check_unused(
            "a table with a sequence a row", step=step, max_gap=max_gap, same_time=same_time
        )
    elif step is not None and not table.span:
        raise ValueError(
            f"there must be times, found none for step={step!r} in {table.source}; name their "
            "column"
        )


def _in_seconds(parts: Iterable[pd.DataFrame], table: Table, step: float) -> Iterator[pd.DataFrame]:
    """The rows of all parts, with times that are numbers in seconds.

    Times of the first part are checked to be plausible for steps of `step` seconds.
    """
    for number, part in enumerate(parts):
        for name in part.columns.intersection([*LOCAL, *LOCAL.values()]):
            times = part[name].to_numpy()
            rows = part["row"].to_numpy()
            if times.dtype.kind in "iuf":
                if number == 0 and name == "time" and table.unit is None:
                    place = lambda row: table.place(int(rows[row]))  # noqa: B023, E731
                    check_seconds(times, table.span, step, place)
                part = part.assign(**{name: seconds_of(times, table.unit)})
        yield part


def _describe_reading(table: Table, dropped: Mapping[str, int], is_timed: bool) -> WhatWasRead:
    """What was read, in words; `dropped` counts rows that do not count, by reason."""
    columns = {
        role: str(name) for role, name in table.columns.items() if not role.startswith("state ")
    }
    times = "rows in the order of the file"
    rows = table.rows.n_rows
    reasons = {}
    if table.lacking is not None:
        reasons = table.lacking.reasons()
    if table.width > 1:
        states = [str(name) for role, name in table.columns.items() if role not in columns]
        columns["states"] = ", ".join(states)
        times = "each row is a sequence"
        rows //= table.width + 1
        dropped = {}
        reasons = {reason: count // (table.width + 1) for reason, count in reasons.items()}
    span = None
    if table.span:
        times, span = _times_in_words(table, is_timed)
    return WhatWasRead(
        source=table.source,
        columns=columns,
        times=times,
        span=span,
        rows=rows,
        dropped={**reasons, **dropped},
        stateless=table.stateless if table.missing.is_state else 0,
        first=table.first_row,
        last=table.last_row,
        users=len(table.users.code_of),
        of_all=table.of_all,
    )


def _times_in_words(table: Table, is_timed: bool) -> tuple[str, tuple[str, str]]:
    """What times were taken for; the first and the last."""
    first, last = table.span
    if isinstance(first, np.datetime64 | pd.Timestamp):
        return "time stamps", (str(pd.Timestamp(first)), str(pd.Timestamp(last)))
    if table.unit:
        unit = f"in {table.unit}"
    elif is_timed:
        unit = "seconds"
    else:
        unit = "which order the rows"
    return f"numbers, {unit}", (str(first), str(last))


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

    `read_table`, `to_states` and `to_sequences` in one call.

    Parameters
    ----------
    data : DataFrame, or path of a file or of a folder of tables
        CSV, Excel, Parquet, Feather, JSON lines, SPMF or XES; or a DataFrame of Dask.
    user, time, state : names of columns; by default those of usual names
    step : duration of a time step, such as "1h"; without it each row is a step
    max_gap : duration that a state holds with `step`, and that no gap exceeds without it
    same_time : "first", "last" or "rows": which states of a user at one time count
    cell_km : side in km of the cells of a `Grid`, which are the states of positions
        States are named by row and column.
    box : (south, north, west, east) of the grid in degrees; by default around all positions
    bins : number of bins of states that are measured numbers
    binning : "quantiles" for bins of equal shares, or "width" for equal width
    progress : bool; show how many rows were read
    **columns : other arguments of `read_table`

    Returns
    -------
    Sequences, with what was read as `reading`

    Raises
    ------
    FileNotFoundError
    DataFormatError
        If a file cannot be read; a ValueError.
    ValueError
        For columns or arguments that do not fit together, and where `read_table`, `to_states` and
        `to_sequences` raise it.

    Examples
    --------
    >>> visits = pd.DataFrame({"who": ["007", "007", "8"], "day": [2, 1, 1]})
    >>> visits["place"] = ["bar", "home", "bar"]
    >>> found = read_sequences(visits, user="who", time="day", state="place")
    >>> found.users.tolist(), found.labels.tolist(), [sequence.tolist() for sequence in found]
    (['007', '8'], ['bar', 'home'], [[1, 0], [0]])
    """
    has_cells = cell_km is not None
    position = {name: columns.get(name) for name in POSITION}
    _check_states_are_one_thing(state, cell_km, box, position)
    table = read_table(
        data, user=user, time=time, state=state, positions=has_cells, progress=progress, **columns
    )
    grid = None
    if cell_km is not None:
        if box is None:
            box = table.box
            table = replace(table, of_all=(*table.of_all, "where cells begin (give box=)"))
        grid = _grid_over(box, cell_km, table.source)
    table = to_states(table, grid=grid, bins=bins, binning=binning)
    return to_sequences(table, step=step, max_gap=max_gap, same_time=same_time, progress=progress)


def _check_states_are_one_thing(
    state: Hashable,
    cell_km: float | None,
    box: Box | tuple[float, float, float, float] | None,
    position: Mapping[str, Hashable],
) -> None:
    """ValueError unless states are a column, or cells of positions, and not parts of both;
    `position` are the columns of latitude and longitude, by role."""
    has_position = box is not None or any(name is not None for name in position.values())
    has_cells = cell_km is not None
    if (has_position and not has_cells) or (has_cells and state is not None):
        found = {"state": state, "cell_km": cell_km, "box": box, **position}
        raise ValueError(
            f"states must be a column or the cells of positions, found {found}; give state, or "
            "cell_km with the columns of positions"
        )


def _grid_over(box: Box | tuple[float, float, float, float], cell_km: float, source: str) -> Grid:
    """The grid of cells of `cell_km` over a box; its ValueError names the source of the
    positions."""
    from tplreport.reading.grid import Grid, as_box

    try:
        return Grid(as_box(box), cell_km)
    except ValueError as error:
        raise ValueError(f"{error}, for the positions in {source}") from None


@dataclass(frozen=True)
class Joined:
    """The pieces of all users: flat sequences, whose values are codes of the labels."""

    values: np.ndarray
    offsets: np.ndarray
    labels: np.ndarray
    users: np.ndarray
    times: np.ndarray | None  # (m,), if there are any
    step: timedelta | None  # between two values of a sequence, if it is always the same


def _join_pieces(
    pieces: Iterable[Pieces],
    labels_of: Callable[[np.ndarray], Any],
    users: np.ndarray | None,
    declared: np.ndarray,
) -> Joined:
    """All pieces as flat sequences of codes of ordered labels.

    `labels_of` gives the labels of states of the pieces; `users` those of their owners, None if
    there are none. `declared` are states that get a code even if they do not occur.
    """
    values = Spill()
    times = Spill()
    cells_of_piece = []
    lengths = []
    owners = []
    steps = set()
    for piece in pieces:
        codes, seen = pd.factorize(piece.states)
        values.append(codes.astype(np.int32))
        cells_of_piece.append(seen)
        lengths.append(np.diff(piece.offsets))
        owners.append(piece.owners)
        if piece.times is not None:
            times.append(piece.times.view(np.int64))
        if piece.n_transitions:
            steps.add(piece.step)
    seen = np.unique(np.concatenate([declared, *cells_of_piece]))
    ordered = Sequences.from_flat(np.asarray(labels_of(seen)), [0, len(seen)])
    coded = Spill()
    for k, cells in enumerate(cells_of_piece):
        code_of_cell = ordered.values[np.searchsorted(seen, cells)]
        coded.append(code_of_cell[values.read(k)])
    owner = np.concatenate(owners)
    if users is not None:
        owner = users[owner]
    offsets = np.cumsum([0, *np.concatenate(lengths)])
    step = None
    if len(steps) == 1:
        step = steps.pop()
    times_of_values = None
    if times.size:
        times_of_values = times.joined().view(MICROSECONDS)
    return Joined(coded.joined(), offsets, ordered.labels, owner, times_of_values, step)


def _binned(table: Table, bins: int | None, binning: str) -> tuple[np.ndarray, np.ndarray]:
    """The cell of each code of a state, the last entry for code -1, and the labels of cells.

    Without bins a cell is a state. With them, states must be numbers, which are put into `bins`
    ranges with equal counts (`binning` "quantiles") or of equal width ("width").
    """
    codes = table.states.met
    labels = table.states.labels_met
    cell_of = np.full(len(table.states.code_of) + 1, -1, dtype=np.int32)
    numbers: np.ndarray | None = labels
    if labels.dtype.kind not in "iuf":
        numbers = _numbers_of_labels(labels, table.source, bins)
    if bins is None:
        _check_no_measure(table, labels, numbers)
        cell_of[codes] = np.arange(len(codes))
        return cell_of, labels
    check_choice(binning, "binning", ("quantiles", "width"))
    if numbers is None or bins < 2:
        found = f"{bins}"
        if bins >= 2:
            found += f" of states such as {str(labels[0])!r}"
        raise ValueError(
            f"bins must be at least 2, of numbers, found {found}; change bins=, or leave it out"
        )
    shares = np.linspace(0, 1, bins + 1)
    low = numbers.min()
    if binning == "width":
        edges = np.unique(low + (numbers.max() - low) * shares)
    else:
        edges = np.unique(_quantiles(numbers, table.states.counts[codes], shares))
    cell_of[codes] = np.clip(
        np.searchsorted(edges, numbers, "right") - 1, 0, max(len(edges) - 2, 0)
    )
    return cell_of, _names_of_bins(edges)


def _numbers_of_labels(labels: np.ndarray, source: str, bins: int | None) -> np.ndarray | None:
    """Labels as numbers if all of them are, with decimal commas only where there are bins of them;
    a warning if they may have these."""
    texts = pd.Series(labels).astype(str)
    numbers = parse_numbers(texts_of(texts))
    if numbers is not None or not texts.str.fullmatch(DECIMAL_COMMA).all():
        return numbers
    decimals = texts.str.extract(",(.*)")[0].dropna()
    if decimals.empty:  # digits of another script
        return None
    may_be_thousands = (decimals.str.len() == 3).all()
    if bins is not None and not may_be_thousands:
        return parse_numbers(texts_of(texts.str.replace(",", ".")))
    if bins is None:
        warn_caller(
            f"states of {source} such as {texts[decimals.index[0]]!r} count as labels; give bins=, "
            "such as 5, if they are measured numbers with decimal commas"
        )
    return None


def _check_no_measure(table: Table, labels: np.ndarray, numbers: np.ndarray | None) -> None:
    """ValueError for states that are measured: `numbers`, the labels as numbers if all are, with
    fractions."""
    if numbers is None or numbers.dtype.kind != "f" or np.all(numbers == np.floor(numbers)):
        return
    measured = int(np.argmax(numbers != np.floor(numbers)))
    code = table.states.met[measured]
    rows = (part["row"][part["cell"] == code] for part in table.rows.parts())
    first_row = min(int(row) for rows_of_part in rows for row in rows_of_part)
    raise ValueError(
        f"states must be whole numbers or labels, found {labels[measured]} in "
        f"{table.place(first_row)}; give bins=5, with binning='quantiles' or 'width'"
    )


def _names_of_bins(edges: np.ndarray) -> np.ndarray:
    """The ranges of bins, with as many digits as tell their edges apart."""
    if len(edges) == 1:
        return np.array([f"{edges[0]:g}"])
    digits = next(n for n in range(6, 18) if len({f"{edge:.{n}g}" for edge in edges}) == len(edges))
    return np.array([f"{low:.{digits}g} to {high:.{digits}g}" for low, high in pairwise(edges)])


def _quantiles(numbers: np.ndarray, counts: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """What `np.quantile` gives at `shares` for `numbers` of which each occurs as often as `counts`
    says; it needs no memory for repeated ones."""
    order = np.argsort(numbers)
    order = order[counts[order] > 0]
    upto = np.cumsum(counts[order])
    # index of each among all numbers in order
    first_and_last = np.column_stack([upto - counts[order], upto - 1])
    return np.interp(shares * (upto[-1] - 1), first_and_last.ravel(), numbers[order].repeat(2))
