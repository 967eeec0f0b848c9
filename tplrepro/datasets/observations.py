"""From anybody's observations (who was in which state at what time) to sequences of states.

A row is one observation, a spell with an end, or a sequence of states; `files` says which files are read. A
state is the value of a column, or the cell of a geographic position. Users and states keep their names,
including "007" and "NA": text becomes whole numbers only if the whole column consists of whole numbers.
Observations are ordered by instant; time steps of a day or more follow the local clock given by the offset or
time zone, shorter ones UTC, since a clock goes back.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import replace
from datetime import timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tplrepro.datasets.files import read_spmf, read_workbook
from tplrepro.datasets.grid import Box, Grid
from tplrepro.datasets.spill import Codes, RowsByUser, Spill
from tplrepro.datasets.table import Source, column_names, format_of, open_source, unlike_columns
from tplrepro.datasets.time_steps import (
    LOCAL,
    UNITS,
    PlaceOfRow,
    check_filled,
    duration,
    fixed_steps,
    observed_sequences,
    parse_numbers,
    seconds_of,
    with_instants,
)
from tplrepro.markov.sequences import Sequences
from tplrepro.progress import with_bar
from tplrepro.validation import check_choice, warn_caller
from tplrepro.words import counted

POSITION = ("latitude", "longitude")
SAME_TIME = ("first", "last", "rows")
Duration = str | float | timedelta | None


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

    Files may be larger than memory: what exceeds `spill.IN_MEMORY` bytes goes to a temporary file (24 to 44 bytes a
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
    blocks = _checked(source, step, time_format, partial(seconds_of, unit=time_unit) if is_timed else None)
    if progress:
        blocks = with_bar(blocks, None, "reading")
    if states_of_row:
        return _joined(_sequences_of_rows(blocks, users, states), lambda seen: states.labels[seen], users)
    cutter = _Cutter(step, max_gap, same_time, source.place)
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


def _checked(
    source: Source, step: Duration, time_format: str | None, seconds: Callable | None
) -> Iterator[pd.DataFrame]:
    """The blocks with instants for times; an error for a missing user or time, no times for steps, or no row."""
    remedy = f"in {source.name}; check the file and the names of its columns"
    begin, kinds = 0, dict[str, tuple]()
    for block in source.blocks:
        place: PlaceOfRow = lambda row: source.place(begin + row)  # noqa: B023, E731 (called at once)
        if step is not None and "time" not in block:
            raise ValueError(f"there must be times, found none for step={step!r} {remedy}")
        if "user" in block:
            check_filled(block["user"], "user", place)
        block = with_instants(block, time_format, place, kinds)
        for name in block.columns.intersection([*LOCAL, *LOCAL.values()]):
            if seconds and block[name].dtype.kind in "iuf":
                block[name] = seconds(block[name].to_numpy(), place)
        yield block
        begin += len(block)
    if not begin:
        raise ValueError(f"there must be observations, found no row {remedy}")


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


class _Cutter:
    """Cuts the rows of whole users into sequences; counts rows that repeat others and states that are held."""

    def __init__(self, step: Duration, max_gap: Duration, same_time: str | None, place: PlaceOfRow):
        self.step, self.max_gap, self.same_time, self.place = step, max_gap, same_time, place
        self.repeated = self.held = 0

    def sequences(self, part: pd.DataFrame, cells: np.ndarray, has_users: bool) -> Sequences:
        """The sequences of these rows, whose states are `cells`."""
        reports = part.assign(cell=cells)
        if "time" not in reports:
            reports["time"] = reports["row"]
        elif self.same_time != "rows":
            reports = self._one_state_at_a_time(reports, has_users)
        if self.step is not None and duration(self.step, "step", 1) >= 86_400:
            reports = reports.sort_values(["user", "time"], kind="stable")
            for name, clock in LOCAL.items():
                if clock in reports:  # which stands still until it is ahead again
                    reports[name] = reports.groupby("user")[clock].cummax()
        if "until" in reports:
            reports = self._closed(reports)
            longest = reports["time"].max() - reports["time"].min()
            return self._cut(reports, longest)
        found = self._cut(reports, self.max_gap)
        if self.step is not None and self.max_gap is not None:
            self.held += max(0, len(found.values) - len(fixed_steps(reports, self.step).values))
        return found

    def _cut(self, reports: pd.DataFrame, max_gap: Any) -> Sequences:
        if self.step is None:
            return observed_sequences(reports, max_gap=max_gap)
        return fixed_steps(reports, self.step, max_gap)

    def _one_state_at_a_time(self, reports: pd.DataFrame, has_users: bool) -> pd.DataFrame:
        """The rows that count, where each user is in one state at a time."""
        keys = ["user", "time"]
        if not reports.duplicated(keys).any():
            return reports
        if self.same_time is not None:
            return reports[~reports.duplicated(keys, keep=self.same_time)].copy()
        distinct = reports.drop_duplicates([*keys, "cell"])
        others = distinct[distinct.duplicated(keys)]
        if len(others):
            user, time, second = (others[name].iloc[0] for name in (*keys, "row"))
            first = reports["row"][(reports["user"] == user) & (reports["time"] == time)].iloc[0]
            remedy = "same_time= 'first', 'last', or 'rows' if all are steps in the order of the rows"
            if not has_users:
                remedy = "user= the column that tells users apart, or " + remedy
            raise ValueError(
                f"a user must be in one state at a time, found another one in {counted(len(others), 'row')}, such as "
                f"in {self.place(int(first))} and {self.place(int(second))}; give {remedy}"
            )
        self.repeated += len(reports) - len(distinct)
        return distinct

    def _closed(self, reports: pd.DataFrame) -> pd.DataFrame:
        """Reports with one more, of no state, at the end of each spell that no other one follows at once."""
        ordered = reports.sort_values(["user", "time"], kind="stable")
        same = ordered["user"].eq(ordered["user"].shift(-1))
        following = ordered["time"].shift(-1)
        wrong = ordered[(ordered["until"] <= ordered["time"]) | (same & (following < ordered["until"]))]
        if len(wrong):
            raise ValueError(
                f"a spell must end after its begin and before the next one, found one until {wrong['until'].iloc[0]} "
                f"in {self.place(int(wrong['row'].iloc[0]))}; shorten it, or leave out until="
            )
        closing = ordered[~(same & (following == ordered["until"]))]
        return pd.concat([reports, closing.assign(time=closing["until"], cell=-1)], ignore_index=True)


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
