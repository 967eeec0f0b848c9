"""From anybody's observations (who was in which state at what time) to sequences of states.

Observations come as a CSV file (plain or compressed), one of `FORMATS`, a folder of either, a partitioned
Parquet folder, the first sheet of an Excel workbook, an SPMF file or a DataFrame. A row is one observation, a
spell with an end, or a sequence of states. A state is the value of a column, or the cell of a geographic
position. Users and states keep their names, including "007" and "NA": text becomes whole numbers only if the
whole column consists of whole numbers. Observations are ordered by instant; time steps follow the local clock
given by the offset or time zone.
"""

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute
import pyarrow.dataset

from tplrepro.datasets.grid import Box, Grid
from tplrepro.datasets.reading import DataFormatError
from tplrepro.datasets.spill import Codes, RowsByUser, Spill
from tplrepro.datasets.table import (
    find_columns,
    likely_format,
    line_of,
    parse_numbers,
    parse_times,
    read_header,
    rows_of_table,
    whole_numbers,
)
from tplrepro.datasets.time_steps import fixed_steps, held_steps, observed_sequences
from tplrepro.markov.sequences import Sequences
from tplrepro.progress import progress_bar
from tplrepro.validation import warn_caller
from tplrepro.words import counted

#: First bytes of a file that is no text -> its format, as pyarrow.dataset calls it.
FORMATS = {b"PAR1": "parquet", b"ARROW1": "ipc", b'{"': "json"}
TABLES = tuple(".csv .tsv .txt .parquet .feather .arrow .jsonl .gz .bz2 .xz .zip".split())  # read from a folder
POSITION = ("latitude", "longitude")
UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}  # in a second
WORDS = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
LATEST = 1e11  # seconds since 1970: the year 5138
OPTIONAL = ("user", "time")
LOCAL = {"time": "clock of time", "until": "clock of until"}  # instants -> the local clock there, where it differs
CLOCK = r"\d?\d:\d\d(:\d\d)?( [AP]M)?"  # a time of day alone
OFFSET = r"(\d:\d\d\S*?)\s*(?:Z|[+-]\d\d(?::?\d\d)?)$"  # after a time of day
EXCEL = re.compile(rb"(?s)PK\x03\x04.*(xl/|Content_Types)")
SPMF = re.compile(rb"(@[^\n]*\n|\s)*\d+\s+(-1\s+\d+\s+)*-1\s+-2\s")

Place = Callable[[int], str]  # a row -> where it stands, for messages


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
    until : column of ends of spells, each of which begins at `time`
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

    Files may be larger than memory: what exceeds `spill.IN_MEMORY` bytes goes to a temporary file (24 to 40 bytes a
    row), from which the values of the result are mapped. Memory then grows with the numbers of users, states and
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
    if not isinstance(data, pd.DataFrame) and not Path(data).exists():
        raise FileNotFoundError(f"there must be a file or folder {data}, found none; check its name")
    if not isinstance(data, pd.DataFrame) and _begins_like(Path(data), EXCEL):
        data = _read_workbook(Path(data))
    positions = dict(zip(POSITION, (latitude, longitude), strict=True))
    has_coordinates = any(argument is not None for argument in (latitude, longitude, box))
    if (has_coordinates and cell_km is None) or (cell_km is not None and state is not None):
        raise ValueError(
            f"states must be a column or the cells of positions, found state={state!r}, cell_km={cell_km!r}, "
            f"{positions}; give state, or cell_km with the columns of positions"
        )
    wanted: dict[str, Hashable] = {"user": user}
    several = _several(data, state, "..") or _several(data, state, "+")
    if several:
        wanted |= {f"state {k}": name for k, name in enumerate(several)}
    else:
        wanted |= {"time": time} | ({"state": state} if cell_km is None else positions)
        if parts := _several(data, time, "+"):
            wanted |= {"time": parts[0], "clock": "+".join(map(str, parts[1:]))}
        if until is not None:
            wanted["until"] = until
    frames: Iterator[pd.DataFrame]
    is_text = False
    if isinstance(data, pd.DataFrame):
        source = data.attrs.get("source", "the DataFrame")
        columns = find_columns(wanted, list(data.columns), source, optional=OPTIONAL)
        frame = data.iloc[:, [*columns.values()]].set_axis([*columns], axis=1)
        place: Place = lambda row: f"{data.index.name or 'row'} {data.index[row]} of {source}"  # noqa: E731
        frames = (_with_instants(block, time_format, place) for block in [frame] if len(block))
    else:
        source, path = str(data), Path(data)
        if _begins_like(path, SPMF):
            return _read_spmf(path)
        frames, place, is_text = _read_files(path, wanted, time_format)
    users, states = Codes(is_text), Codes(is_text)
    frames = _checked(frames, step, source, place, progress)
    if several:
        return _joined(_sequences_of_rows(frames, users, states), lambda seen: _labels_of_rows(states)[seen], users)
    tally = Counter[str]()
    try:
        is_timed = step is not None or max_gap is not None or until is not None
        rows, edges = _gathered(frames, users, states, partial(_seconds, unit=time_unit) if is_timed else None, place)
        if cell_km is None:
            cell_of, labels = _binned(states, bins, binning, lambda code: place(_first_row(rows, code)))
            cells_of = lambda part: cell_of[part["cell"]]  # noqa: E731
            labels_of: Callable[[np.ndarray], Any] = lambda seen: labels[seen]  # noqa: E731
        else:
            grid = Grid(Box(*(edges.tolist() if box is None else box)), cell_km)
            cells_of, labels_of = lambda part: grid.cell(*(part[name] for name in POSITION)), grid.labels
        reports_of = partial(_reports_of, same_time=same_time, local=step is not None, tally=tally)
        reports = (reports_of(part, cells_of(part), place, bool(users.blocks)) for part in rows.parts(progress))
        sequences_of = partial(_sequences_of_reports, step=step, max_gap=max_gap, spells=until is not None, tally=tally)
        found = _joined(map(sequences_of, reports), labels_of, users)
    except pd.errors.OutOfBoundsDatetime as error:
        raise _unlike_columns(error, source) from None
    if tally["repeated"]:
        warn_caller(f"{tally['repeated']} rows repeat a user, a time and a state, and count once")
    if tally["held"]:
        warn_caller(
            f"{tally['held'] / len(found.values):.1%} of all states are held from an earlier step, for up to "
            f"max_gap={max_gap!r}: stays among them are assumed, not observed; give a shorter max_gap, or none"
        )
    return found


def _checked(
    frames: Iterable[pd.DataFrame], step: Any, source: str, place: Place, progress: bool
) -> Iterator[pd.DataFrame]:
    """The frames; an error for a missing user, no times for steps, or no row at all."""
    remedy = f"in {source}; check the file and the names of its columns"
    begin = 0
    with progress_bar(None, progress, "reading", "row") as bar:
        for frame in frames:
            if step is not None and "time" not in frame:
                raise ValueError(f"there must be times, found none for step={step!r} {remedy}")
            if "user" in frame:
                _check_filled(frame["user"], "user", partial(_later, place, begin))
            yield frame
            begin += len(frame)
            bar.update(len(frame))
    if not begin:
        raise ValueError(f"there must be observations, found no row {remedy}")


def _gathered(
    frames: Iterable[pd.DataFrame], users: Codes, states: Codes, seconds: Callable | None, place: Place
) -> tuple[RowsByUser, np.ndarray]:
    """Codes, positions and times of all rows, and the southern, northern, western and eastern edge of the positions."""
    rows, edges = RowsByUser(), np.array([np.inf, -np.inf, np.inf, -np.inf])
    for frame in frames:
        block = {"user": users.of(frame["user"]) if "user" in frame else np.zeros(len(frame), np.int32)}
        if "state" in frame:
            block["cell"] = states.of(frame["state"])
        for k, name in enumerate(frame.columns.intersection(POSITION)):
            block[name] = frame[name].to_numpy(float)
            edges[2 * k] = np.fmin.reduce(block[name], initial=edges[2 * k])
            edges[2 * k + 1] = np.fmax.reduce(block[name], initial=edges[2 * k + 1])
        for name in frame.columns.intersection([*LOCAL, *LOCAL.values()]):
            block[name] = frame[name].to_numpy()
            if seconds and block[name].dtype.kind in "iuf":
                block[name] = seconds(block[name], place=partial(_later, place, rows.n_rows))
        rows.add(block)
    return rows, edges


def _later(place: Place, begin: int, row: int) -> str:
    """Where a row stands that is counted from `begin`."""
    return place(begin + row)


def _first_row(rows: RowsByUser, code: int) -> int:
    """The first row whose state has the code."""
    return min(int(row) for part in rows.parts() for row in part["row"][part["cell"] == code][:1])


def _reports_of(
    part: dict[str, np.ndarray],
    cells: np.ndarray,
    place: Place,
    has_users: bool,
    same_time: str | None,
    local: bool,
    tally: Counter[str],
) -> pd.DataFrame:
    """The reports in these rows, at instants or on the local clock; those that repeat another one are counted."""
    rows, users = part["row"], part["user"]
    kept: Any = slice(None)
    if "time" in part and same_time != "rows":
        place_of_row: Place = lambda row: place(int(rows[row]))  # noqa: E731
        kept = _one_state_at_a_time(users, part["time"], cells, same_time, place_of_row, has_users)
        tally["repeated"] += len(rows) - len(kept) if same_time is None else 0
    used = {name: part[LOCAL[name] if local and LOCAL[name] in part else name] for name in LOCAL if name in part}
    time = used.get("time", rows)
    reports = pd.DataFrame({"user": users[kept], "time": time[kept], "cell": cells[kept]})
    if "until" in used:
        rows = rows[kept]
        reports = _closed(reports, used["until"][kept], lambda row: place(int(rows[row])))
    return reports


def _sequences_of_reports(
    reports: pd.DataFrame, step: Any, max_gap: Any, spells: bool, tally: Counter[str]
) -> Sequences:
    """The sequences of the users of a part; states that are held are counted."""
    if spells:
        max_gap = None if step is None else reports["time"].max() - reports["time"].min()
    if step is None:
        return observed_sequences(reports, max_gap=max_gap)
    found = fixed_steps(reports, step, max_gap)
    if max_gap is not None and not spells:
        tally["held"] += held_steps(reports, step, max_gap)
    return found


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


def column_names(path: Path) -> list[Hashable]:
    """The names of the columns of a file."""
    if _begins_like(path, EXCEL):
        return list(_read_workbook(path).columns)
    kind = _format(path)
    return [*(pa.dataset.dataset(path, format=kind).schema.names if kind else read_header(path)[1])]


def _several(data: str | Path | pd.DataFrame, given: Hashable, mark: str) -> list[Hashable]:
    """The columns that "first..last" or "a+b" names, unless a column has that name itself."""
    if not isinstance(given, str) or mark not in given:
        return []
    names: list[Hashable] = list(data.columns) if isinstance(data, pd.DataFrame) else column_names(Path(data))
    parts = given.split(mark)
    if given in names or mark == "+":
        return [] if given in names else [*parts]
    ends = [names.index(part) if part in names else int(part) if part.isdecimal() else -1 for part in parts]
    if len(ends) != 2 or not 0 <= ends[0] < ends[1] < len(names):
        raise ValueError(
            f"state 'first..last' must name two columns in order, found {given!r}; the columns of {data} are {names}"
        )
    return [name if parts[0] in names else k for k, name in enumerate(names)][ends[0] : ends[1] + 1]


def _sequences_of_rows(frames: Iterable[pd.DataFrame], users: Codes, states: Codes) -> Iterator[Sequences]:
    """One sequence per row, of the states in its columns; a missing one ends it."""
    begin = 0
    for frame in frames:
        values = frame.drop(columns="user", errors="ignore")
        index = np.arange(begin, begin + len(values))
        times = np.tile(np.arange(values.shape[1]), len(values))
        cells = states.of(pd.Series(values.to_numpy(dtype=object).ravel()))
        found = observed_sequences(
            pd.DataFrame({"user": np.repeat(index, values.shape[1]), "time": times, "cell": cells})
        )
        if "user" in frame:
            found = replace(found, users=users.of(frame["user"])[found.users - begin])
        begin += len(values)
        yield found


def _labels_of_rows(states: Codes) -> np.ndarray:
    """Labels of states, as whole numbers if they are texts of these."""
    labels = states.labels
    return np.asarray(whole_numbers(labels.tolist())) if all(isinstance(name, str) for name in labels) else labels


def _closed(reports: pd.DataFrame, ends: np.ndarray, place: Place) -> pd.DataFrame:
    """Reports with one more, of no state, at the end of each spell that no other one follows at once."""
    ordered = reports.assign(end=ends, row=np.arange(len(reports))).sort_values(["user", "time"], kind="stable")
    same = ordered["user"].eq(ordered["user"].shift(-1))
    following = ordered["time"].shift(-1)
    wrong = (ordered["end"] <= ordered["time"]) | (same & (following < ordered["end"]))
    if wrong.any():
        first = int(ordered["row"][wrong].iloc[0])
        raise ValueError(
            f"a spell must end after its begin and before the next one, found one until {ends[first]} "
            f"in {place(first)}; shorten it, or leave out until="
        )
    closing = ordered[~(same & (following == ordered["end"]))]
    closing = closing.assign(time=closing["end"], cell=-1)
    return pd.concat([reports, closing[["user", "time", "cell"]]], ignore_index=True)


def _binned(
    states: Codes, bins: int | None, binning: str, place_of: Callable[[int], str]
) -> tuple[np.ndarray, np.ndarray]:
    """The cell of each code of a state, the last for code -1, and labels; bins of measured numbers, else an error."""
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
    if numbers is None or bins < 2 or binning not in ("quantiles", "width"):
        raise ValueError(
            f"bins must be at least 2, of numbers, by 'quantiles' or 'width', found {bins} by {binning!r}; change "
            "bins= or binning=, or leave out both"
        )
    shares = np.linspace(0, 1, bins + 1)
    low, high = numbers.min(), numbers.max()
    by_width = low + (high - low) * shares
    edges = np.unique(by_width if binning == "width" else _quantiles(numbers, states.counts, shares))
    index = np.clip(np.searchsorted(edges, numbers, "right") - 1, 0, max(len(edges) - 2, 0))
    names = np.array([f"{a:g} to {b:g}" for a, b in pairwise(edges)] or [f"{low:g}"])
    return np.append(index, -1), names


def _quantiles(numbers: np.ndarray, counts: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """`np.quantile` of numbers that are repeated so often."""
    order = np.argsort(numbers)
    upto = np.cumsum(counts[order])
    index = shares * (upto[-1] - 1)
    below, above = (numbers[order][np.searchsorted(upto, edge(index), "right")] for edge in (np.floor, np.ceil))
    return np.array([np.quantile(ends, share) for *ends, share in zip(below, above, index % 1.0, strict=True)])


def _seconds(times: np.ndarray, place: Place, unit: str | None) -> np.ndarray:
    """Times that are numbers, as seconds; an error if they would be centuries away."""
    if unit not in (None, *UNITS):
        raise ValueError(f"time_unit must be one of {', '.join(UNITS)}, found {unit!r}; give one, or no unit")
    far = np.abs(times.astype(float)) > LATEST
    if unit is None and far.any():
        first = int(np.argmax(far))
        likely = next((name for name, many in UNITS.items() if abs(times[first]) / many <= LATEST), "ns")
        raise ValueError(
            f"times that are numbers must be seconds, found {times[first]} in {place(first)}, after the year 5000; "
            f"give time_unit={likely!r} for {WORDS[likely]} since 1970"
        )
    many = UNITS[unit or "s"]
    return times if many == 1 else times.astype(float) / many


def _one_state_at_a_time(
    users: np.ndarray, times: np.ndarray, states: np.ndarray, same_time: str | None, place: Place, has_users: bool
) -> np.ndarray:
    """The rows (K,) that count, in order, where each user is in one state at a time."""
    if same_time not in (None, "first", "last"):
        raise ValueError(f"same_time must be 'first', 'last' or 'rows', found {same_time!r}; give one, or none")
    reports = pd.DataFrame({"user": users, "time": times})
    if not reports.duplicated().any():
        return np.arange(len(reports))
    if same_time is not None:
        return np.flatnonzero(~reports.duplicated(keep=same_time).to_numpy())
    distinct = reports.assign(state=states).drop_duplicates()
    again = distinct.duplicated(["user", "time"]).to_numpy()
    if again.any():
        second = int(distinct.index[again][0])
        first = int(np.argmax((users == users[second]) & (times == times[second])))
        remedy = "same_time= 'first', 'last', or 'rows' if all are steps in the order of the rows"
        if not has_users:
            remedy = "user= the column that tells users apart, or " + remedy
        raise ValueError(
            f"a user must be in one state at a time, found another one in {counted(again.sum(), 'row')}, such as in "
            f"{place(first)} and {place(second)}; give {remedy}"
        )
    return distinct.index.to_numpy()


def _read_files(
    path: Path, wanted: Mapping[str, Hashable], time_format: str | None
) -> tuple[Iterator[pd.DataFrame], Place, bool]:
    """The wanted columns of a file, or of all files of a folder, block by block; and whether all are text.

    Without a column of users, each file is a user's.
    """
    files = [path]
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix in TABLES and file.stat().st_size)
        if not files and next(path.rglob("*.parquet"), None):
            files = [path]  # partitioned
        if not files:
            plt = next(path.rglob("*.plt"), None)
            remedy = "read it by tplrepro.datasets.geolife" if plt else "check it"
            raise DataFormatError(
                f"there must be files that end in {', '.join(TABLES)}, found {plt or 'none'}; {remedy}", path
            )
    starts = [0]

    def place(row: int) -> str:
        number = int(np.searchsorted(starts, row, "right")) - 1
        file, row = files[number], row - starts[number]
        return f"{f'row {row}' if _format(file) else f'line {line_of(row, file, wanted, optional=OPTIONAL)}'} of {file}"

    def frames() -> Iterator[pd.DataFrame]:
        rows, names, like, schema = 0, list[str](), dict[str, tuple](), pa.schema([])
        for file in files:
            for table in filter(len, _blocks(file, wanted)):
                if files != [path]:
                    table = _with_user(table, file)
                names = names or table.column_names
                if set(names) != set(table.column_names):
                    raise DataFormatError(
                        f"all files of a folder must have the columns {', '.join(names)}, found "
                        f"{', '.join(table.column_names)}; add or rename one",
                        file,
                    )
                times = table.select([name for name in (*LOCAL, "clock") if name in table.column_names])
                others = table.drop_columns(times.column_names) if times.column_names else table
                try:
                    schema = pa.unify_schemas([schema, others.schema], promote_options="default")
                except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
                    raise _unlike_columns(error, path) from None
                instants = _with_instants(times.to_pandas(), time_format, partial(_later, place, rows), like)
                rows += len(table)
                yield others.to_pandas(integer_object_nulls=True).assign(**instants)
            starts.append(rows)

    return frames(), place, not any(map(_format, files))


def _unlike_columns(error: Exception, path: str | Path) -> DataFormatError:
    """The error for a column that is of one kind here and of another one there."""
    return DataFormatError(f"a column must be of one kind in all files, found two ({error}); convert one", path)


def _blocks(path: Path, wanted: Mapping[str, Hashable]) -> Iterator[pa.Table]:
    """The columns of a file, renamed to the keys of `wanted`, block by block."""
    kind = _format(path)
    if kind is None:
        yield from (rows.table for rows in rows_of_table(path, wanted, optional=OPTIONAL))
        return
    try:
        whole = pa.dataset.dataset(path, format=kind, partitioning="hive" if path.is_dir() else None)
        names = whole.schema.names
        columns = {thing: names[k] for thing, k in find_columns(wanted, names, path, optional=OPTIONAL).items()}
        ahead = {"batch_readahead": 2, "fragment_readahead": 1}  # more would only take memory
        for batch in whole.to_batches(columns=[*columns.values()], batch_size=1 << 18, **ahead):
            table = pa.Table.from_batches([batch]).select([*columns.values()]).rename_columns([*columns])
            for k, name in enumerate(columns):
                if name in ("user", "state") and pa.types.is_string(table.schema.types[k]):
                    table = table.set_column(k, name, table[name].dictionary_encode())
            yield table
    except (pa.ArrowInvalid, OSError) as error:
        raise DataFormatError(
            f"there must be a whole {kind.capitalize()} file, found a broken one ({error}); export it again", path
        ) from None


def _format(path: Path) -> str | None:
    """The format of a file that is not text, or of a folder that is partitioned."""
    if path.is_dir():
        return "parquet"
    with open(path, "rb") as file:
        head = file.read(8)
    return next((kind for magic, kind in FORMATS.items() if head.startswith(magic)), None)


def _with_user(table: pa.Table, file: Path) -> pa.Table:
    """The table with the name of its file as its user, unless it has a column of users."""
    if "user" in table.column_names:
        return table
    users = pa.array([file.name.partition(".")[0]] * table.num_rows, pa.string())
    return table.append_column("user", users.dictionary_encode())


def _check_filled(column: pd.Series, name: str, place: Place) -> None:
    missing = column.isna().to_numpy()
    if missing.any():
        raise ValueError(f"{name} must not be empty, found nothing in {place(int(np.argmax(missing)))}; drop it")


def _with_instants(
    frame: pd.DataFrame, time_format: str | None, place: Place, like: dict[str, tuple] | None = None
) -> pd.DataFrame:
    """The frame with instants for times, and the local clock where it differs; `like` holds the kinds so far."""
    frame = frame.copy(deep=False)
    if "clock" in frame:
        frame["time"] = frame["time"].astype(str) + " " + frame.pop("clock").astype(str)
    for name in frame.columns.intersection([*LOCAL]):
        _check_filled(frame[name], name, place)
        texts = frame[name]
        instants, clock = _times(texts, time_format, place)
        kind = instants.dtype.kind == "M", clock is instants
        if like is not None and like.setdefault(name, kind) != kind:
            raise _unlike_times(str(texts.iloc[0]), time_format, place(0))
        frame[name] = instants
        if clock is not instants:
            frame[LOCAL[name]] = clock
    return frame


def _times(column: pd.Series, time_format: str | None, place: Place) -> tuple[np.ndarray, np.ndarray]:
    """Instants, which order the observations, and local clock times, which determine the time steps."""
    if isinstance(column.dtype, pd.ArrowDtype):
        column = pa.array(column).to_pandas()
    if isinstance(column.dtype, pd.DatetimeTZDtype):
        return column.dt.tz_convert(None).to_numpy(), column.dt.tz_localize(None).to_numpy()
    if column.dtype.kind in "iufM":
        return (column.to_numpy(),) * 2
    texts, form = column.astype(str), time_format or "ISO8601"
    numbers = None if time_format else parse_numbers(texts)
    if numbers is not None:
        return numbers, numbers
    instants = clock = parse_times(texts, form)
    text = pa.array(texts, pa.string())
    has_offset = pyarrow.compute.match_substring_regex(text, OFFSET).to_numpy(zero_copy_only=False)
    if has_offset.any():
        there = pyarrow.compute.replace_substring_regex(text, OFFSET, r"\1").to_pandas()
        clock = parse_times(there, form.replace("%z", "").strip())
    wrong = np.isnat(instants) | np.isnat(clock) | (has_offset != has_offset[0])
    if wrong.any():
        first = int(np.argmax(wrong))
        raise _unlike_times(texts.iloc[first], time_format, place(first))
    return instants, clock


def _unlike_times(text: str, time_format: str | None, place: str) -> ValueError:
    """The error for a time that cannot be read, or that is not like the others."""
    remedy = f"give such as time_format={likely_format(text)!r}"
    if re.fullmatch(CLOCK, text):
        remedy = "join the columns of the date and of this time of day, such as time='date+time'"
    return ValueError(
        f"times must all be numbers, or in the format {time_format or 'ISO8601'}, all with an offset from UTC or all "
        f"without, found {text!r} in {place}; {remedy}"
    )


def _begins_like(path: Path, pattern: re.Pattern[bytes]) -> bool:
    """Whether the path is that of a file whose first bytes match."""
    if path.is_dir():
        return False
    with open(path, "rb") as file:
        return pattern.match(file.read(1 << 16)) is not None


def _read_workbook(path: Path) -> pd.DataFrame:
    """The first sheet of an Excel workbook, whose rows have the numbers that Excel shows."""
    from python_calamine import CalamineError

    try:
        frame = pd.read_excel(path, engine="calamine")
    except CalamineError as error:
        raise DataFormatError(
            f"there must be a whole Excel workbook, found a broken one ({error}); save it again", path
        ) from None
    frame.index = pd.RangeIndex(2, len(frame) + 2, name="row")
    frame.attrs["source"] = str(path)
    return frame


def _read_spmf(path: Path) -> Sequences:
    """Read SPMF: each item is followed by -1, each sequence by -2; lines such as "@ITEM=7=bread" name items."""
    lines = path.read_bytes().splitlines()
    header = [line.removeprefix(b"@ITEM=").decode() for line in lines if line.startswith(b"@ITEM=")]
    try:
        numbers = np.array(b" ".join(line for line in lines if not line.startswith(b"@")).split(), dtype=np.int64)
    except ValueError as error:
        raise DataFormatError(f"an SPMF file must hold whole numbers ({error}); download it again", path) from None
    items, end = numbers >= 0, numbers == -2
    then = np.append(numbers[1:], 0)  # the end of the file follows a sequence
    wrong = np.where(items, then != -1, np.where(end, then < 0, (numbers != -1) | ((then != -2) & (then < 0))))
    if wrong.any() or not end[-1]:
        first = int(np.argmax(np.append(wrong, True)))
        raise DataFormatError(
            "each item of an SPMF file must be followed by -1 and each sequence by -2, found "
            f"{numbers[first:][:3].tolist()} in sequence {end[:first].sum()}; split sets of several items, and check "
            "that the file is whole",
            path,
        )
    labels: np.ndarray = numbers[items]
    if header:
        names = dict(line.split("=", 1) for line in header)
        labels = np.array([names.get(item, item) for item in labels.astype(str).tolist()], dtype=object)
    return Sequences.from_flat(labels, np.append(0, np.cumsum(items)[end]))
