"""Times of observations, and from observations at irregular times to sequences of states, one per time step.

A time is a complete ISO 8601 date, with or without a time of day: 2022-08-03, 2022/08/03 10:00,
2022-08-03T10:00:00.1Z, 2022-08-03 10:00:00 +02:00. Other texts that pandas accepts ("2022-8", "today") are
unreadable here, because truncated and damaged files contain such texts; so are years before 1000 and from
9999 on, which stand for "unknown" and "never". Nanoseconds are kept; with them, years are those from 1678 to
2261.

The chains of the papers move in fixed steps, while people are observed whenever a GPS device or an app
reports. Between two reports the last known state holds, but no longer than a maximum gap. After a longer gap
a new sequence begins, so no transition is invented across the gap. A report of the state -1 (off the map)
also ends a sequence.

Times are time stamps in UTC, or seconds as numbers. They order the reports exactly, nanoseconds included.
"""

import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute
from pandas.tseries.api import guess_datetime_format

from tplrepro.markov.sequences import Sequences
from tplrepro.words import counted

if TYPE_CHECKING:
    from tplreport.table import Source

OUTSIDE = -1
SECOND = 1_000_000  # times are counted in microseconds, time stamps with nanoseconds in those
ISO_TIME = (
    r" *([0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{4}/[0-9]{2}/[0-9]{2})"
    r"([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?( ?(Z|[-+][0-9]{2}(:?[0-9]{2})?))?)?"
)
CLOCK = r"\d?\d:\d\d(:\d\d)?( [AP]M)?"  # a time of day alone
OFFSET = r"(\d:\d\d\S*?)\s*(?:Z|[+-]\d\d(?::?\d\d)?)$"  # after a time of day
LOCAL = {"time": "clock of time", "until": "clock of until"}  # instants -> the local clock there, where it differs
UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}  # in a second
LATEST = 1e11  # seconds since 1970: the year 5138
Duration = str | float | timedelta | None
PlaceOfRow = Callable[[int], str]  # a row -> where it stands, for messages
WITH_DIGIT = "(?s).*[0-9].*"  # unlike "now" and "today", which pandas accepts in any format
FIRST_TIME, LAST_TIME = np.datetime64("1000-01-01", "us"), np.datetime64("9998-12-31", "us")


def fixed_steps(
    frame: pd.DataFrame,
    step: str | float | timedelta,
    max_gap: str | float | timedelta | None = None,
    *,
    state: str = "cell",
    user: str | list[str] = "user",
) -> Sequences:
    """Sequences of states at fixed time steps, the last known state holding for at most `max_gap`.

    At a time t that is a multiple of `step` (since 1970, or since second 0), a user's state is that of the
    latest report at or before t, if that report is not older than `max_gap`; without `max_gap`, if it came
    after the step before. The last report holds until the next multiple of `step`.

    `frame` has one report per row, in any order; of two reports at one time the later row counts. `state` is
    the column of states (integer or other hashable values), `user` the column or columns that identify the
    user. Durations are strings such as "5min", or seconds. Raises ValueError if a column, a time or a user is
    missing, or a duration is not positive.

    >>> reports = pd.DataFrame({"user": 1, "time": [0.0, 4.0, 11.0, 31.0], "cell": [5, 6, 5, 6]})
    >>> [s.tolist() for s in fixed_steps(reports, step=5, max_gap=10)]
    [[0, 1, 1, 0, 0], [1]]
    """
    times, group, users, states = _reports(frame, state, user)
    ticks, second = _ticks(times)
    step = _duration(step, "step", second)
    max_gap = step - 1 if max_gap is None else _duration(max_gap, "max_gap", second)
    last = np.append(np.diff(group) != 0, True)[: len(ticks)]
    begin = -(-ticks // step)  # the first step at or after the report
    end = np.minimum(np.where(last, begin, -(-np.append(ticks[1:], 0) // step) - 1), (ticks + max_gap) // step)
    lengths = np.where(states == OUTSIDE, 0, np.maximum(end - begin + 1, 0))
    source = np.repeat(np.arange(len(states)), lengths)
    stops = np.cumsum(lengths)
    index = np.arange(len(source)) - np.repeat(stops - lengths, lengths) + begin[source]
    breaks = (np.diff(index) != 1) | (np.diff(group[source]) != 0)
    return _sequences(states[source], group[source], breaks, users)


def observed_sequences(
    frame: pd.DataFrame,
    *,
    max_gap: str | float | timedelta | None = None,
    state: str = "cell",
    user: str | list[str] = "user",
) -> Sequences:
    """Sequences of states as reported, one state per report; a gap longer than `max_gap` ends a sequence.

    Parameters and errors are those of `fixed_steps`.

    >>> reports = pd.DataFrame({"user": [1, 1, 1, 2], "time": [0.0, 4.0, 31.0, 0.0], "cell": [5, 6, 5, 6]})
    >>> [s.tolist() for s in observed_sequences(reports, max_gap=10)]
    [[0, 1], [0], [1]]
    """
    times, group, users, states = _reports(frame, state, user)
    broken = np.diff(group) != 0
    if max_gap is not None:
        ticks, second = _ticks(times)
        broken |= np.diff(ticks) > _duration(max_gap, "max_gap", second)
    inside = states != OUTSIDE
    run = np.cumsum(~inside)
    run[1:] += np.cumsum(broken)
    return _sequences(states[inside], group[inside], np.diff(run[inside]) != 0, users)


class Cutter:
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
        if self.step is not None and _duration(self.step, "step", 1) >= 86_400:
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


def _reports(
    frame: pd.DataFrame, state: str, user: str | list[str]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Times, user codes, users and states, sorted by user and time; reports at one time keep their order."""
    columns = [user] if isinstance(user, str) else list(user)
    missing = [c for c in [state, *columns, "time"] if c not in frame.columns]
    if missing:
        raise ValueError(
            f"the frame must have the columns {[state, *columns, 'time']}, found {list(frame.columns)}; "
            f"add {missing} or name yours with state= and user="
        )
    for name in [*columns, "time"]:
        absent = int(frame[name].isna().sum())
        if absent:
            raise ValueError(f"column {name!r} must not miss values, found {absent}; drop those rows")
    column = frame["time"]
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        column = pd.to_datetime(column, utc=True).dt.tz_localize(None)
    elif not pd.api.types.is_numeric_dtype(column.dtype):
        raise ValueError(f"column 'time' must hold time stamps or seconds, found {column.dtype}; convert it first")
    times = column.to_numpy()
    numbers = times.view(np.int64) if times.dtype.kind == "M" else times  # are sorted faster
    keys = frame[columns[0]] if len(columns) == 1 else pd.MultiIndex.from_frame(frame[columns])
    group, users = pd.factorize(keys, sort=True)
    states, step = frame[state].to_numpy(), np.diff(group)
    is_sorted = (step > 0) | ((step == 0) & (numbers[1:] >= numbers[:-1]))
    if not is_sorted.all():  # skipped for the data sets, which are sorted already
        order = np.lexsort((numbers, group))
        times, group, states = times[order], group[order], states[order]
    return times, group, pd.Index(users).to_numpy(), states


def _ticks(times: np.ndarray) -> tuple[np.ndarray, int]:
    """Times as whole numbers, and how many of these make a second."""
    if times.dtype.kind == "M":
        if np.datetime_data(times.dtype)[0] == "ns":
            return times.astype(np.int64), 1000 * SECOND
        return times.astype("datetime64[us]").astype(np.int64), SECOND
    within = np.abs(times.astype(float)) <= 2**62 / SECOND
    if not within.all():
        raise ValueError(
            f"times must be within {2**62 // SECOND} seconds of 0, found {times[np.argmin(within)]}; "
            "convert them to time stamps"
        )
    if times.dtype.kind in "iu":
        return times.astype(np.int64) * SECOND, SECOND
    return np.rint(times * float(SECOND)).astype(np.int64), SECOND


def _duration(value: str | float | timedelta, name: str, second: int) -> int:
    """A duration in ticks, at least one."""
    try:
        seconds = pd.Timedelta(value).total_seconds() if isinstance(value, str | timedelta) else float(value)
    except (TypeError, ValueError):
        seconds = np.nan
    if not 1 <= np.rint(seconds * second) <= 2**62:
        raise ValueError(f"{name} must be a positive duration, found {value!r}; give seconds or such as '5min'")
    return round(seconds * second)


def _sequences(states: np.ndarray, group: np.ndarray, breaks: np.ndarray, users: np.ndarray) -> Sequences:
    """Cut the states after each position where `breaks`, one shorter than `states`, is true."""
    starts = np.flatnonzero(np.append(True, breaks)[: len(states)])
    return Sequences.from_flat(states, np.append(starts, len(states)), users[group[starts]])


def parse_numbers(texts: pd.Series) -> np.ndarray | None:
    """Texts as whole numbers, or else as floats; None if one of them is no number."""
    text = pa.array(texts, pa.string())
    for kind in (pa.int64(), pa.uint64(), pa.float64()):
        with suppress(pa.ArrowInvalid):
            text[:1].cast(kind)  # most texts that are no numbers are refused here, at once
            numbers = text.cast(kind).to_numpy(zero_copy_only=False)
            has_letters = pa.compute.any(pa.compute.match_substring_regex(text, "[^-+.0-9eE]")).as_py()
            return None if has_letters else numbers  # "nan" and "0x10"
    return None


def parse_times(texts: pd.Series, time_format: str = "ISO8601") -> np.ndarray:
    """Instants in UTC, as datetime64 without a zone; NaT for an unreadable text. Times without an offset are UTC.

    `time_format` is "ISO8601" or as for `strptime`.
    """
    is_iso = time_format == "ISO8601"
    instants = _uniform_times(pa.array(texts, pa.string())) if is_iso else None
    if instants is None:
        formed = texts.str.fullmatch(ISO_TIME if is_iso else WITH_DIGIT).astype(bool)
        parsed = pd.to_datetime(texts.where(formed), format=time_format, utc=True, errors="coerce")
        instants = parsed.dt.tz_localize(None).to_numpy()
    if np.datetime_data(instants.dtype)[0] != "ns":
        instants = instants.astype("datetime64[us]")
        instants[(instants < FIRST_TIME) | (instants > LAST_TIME)] = np.datetime64("NaT")
    return instants


def _uniform_times(text: pa.Array) -> np.ndarray | None:
    """The instants of ISO 8601 texts that all have an offset or all have none; None for others.

    Reading a CSV file takes 1.4 times as long without it.
    """
    has_minutes = pa.compute.equal(pa.compute.utf8_slice_codeunits(text, 13, 14), ":")
    is_whole = pa.compute.or_(has_minutes, pa.compute.equal(pa.compute.binary_length(text), 10))
    if text.null_count or not pa.compute.all(is_whole).as_py():  # pyarrow also accepts an hour without minutes
        return None
    for unit in ("us", "ns"):
        for zone in (None, "UTC"):
            with suppress(pa.ArrowInvalid):
                return text.cast(pa.timestamp(unit, zone)).cast(pa.timestamp(unit)).to_numpy(zero_copy_only=False)
    return None


def checked_blocks(
    source: "Source", step: Duration, time_format: str | None, unit: str | None, in_seconds: bool
) -> Iterator[pd.DataFrame]:
    """The blocks with instants for times; an error for a missing user or time, no times for steps, or no row.

    With `in_seconds`, times that are numbers of the `unit` become seconds.
    """
    remedy = f"in {source.name}; check the file and the names of its columns"
    begin, kinds = 0, dict[str, tuple]()
    for block in source.blocks:
        place: PlaceOfRow = lambda row: source.place(begin + row)  # noqa: B023, E731 (called at once)
        if step is not None and "time" not in block:
            raise ValueError(f"there must be times, found none for step={step!r} {remedy}")
        if "user" in block:
            _check_filled(block["user"], "user", place)
        block = _with_instants(block, time_format, place, kinds)
        for name in block.columns.intersection([*LOCAL, *LOCAL.values()]):
            if in_seconds and block[name].dtype.kind in "iuf":
                block[name] = _seconds_of(block[name].to_numpy(), place, unit)
        yield block
        begin += len(block)
    if not begin:
        raise ValueError(f"there must be observations, found no row {remedy}")


def _with_instants(
    block: pd.DataFrame, time_format: str | None, place: PlaceOfRow, kinds: dict[str, tuple[bool, bool]]
) -> pd.DataFrame:
    """The block with instants for times, and the local clock where it differs; `kinds` holds the kinds so far."""
    block = block.copy(deep=False)
    if "clock" in block:
        block["time"] = block["time"].astype(str) + " " + block.pop("clock").astype(str)
    for name in block.columns.intersection([*LOCAL]):
        _check_filled(block[name], name, place)
        texts = block[name]
        instants, clock = _times(texts, time_format, place)
        kind = instants.dtype.kind == "M", clock is instants
        if kinds.setdefault(name, kind) != kind:
            raise _unlike_times(str(texts.iloc[0]), time_format, place(0))
        block[name] = instants
        if clock is not instants:
            block[LOCAL[name]] = clock
    return block


def _check_filled(column: pd.Series, name: str, place: PlaceOfRow) -> None:
    """ValueError for a missing value."""
    missing = column.isna().to_numpy()
    if missing.any():
        raise ValueError(f"{name} must not be empty, found nothing in {place(int(np.argmax(missing)))}; drop it")


def _times(column: pd.Series, time_format: str | None, place: PlaceOfRow) -> tuple[np.ndarray, np.ndarray]:
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
    has_offset = pa.compute.match_substring_regex(text, OFFSET).to_numpy(zero_copy_only=False)
    if has_offset.any():
        there = pa.compute.replace_substring_regex(text, OFFSET, r"\1").to_pandas()
        clock = parse_times(there, form.replace("%z", "").strip())
    wrong = np.isnat(instants) | np.isnat(clock) | (has_offset != has_offset[0])
    if wrong.any():
        first = int(np.argmax(wrong))
        raise _unlike_times(texts.iloc[first], time_format, place(first))
    return instants, clock


def _unlike_times(text: str, time_format: str | None, place: str) -> ValueError:
    """The error for a time that cannot be read, or that is not like the others."""
    remedy = "join the columns of the date and of this time of day, such as time='date+time'"
    if not re.fullmatch(CLOCK, text):
        with warnings.catch_warnings(action="ignore"):  # pandas says that it swaps day and month
            is_day_first = re.match("[0-9]{4}", text) is None
            likely = guess_datetime_format(text, dayfirst=is_day_first) or "%d.%m.%Y %H:%M"
        remedy = f"give such as time_format={likely!r}"
    return ValueError(
        f"times must all be numbers, or in the format {time_format or 'ISO8601'}, all with an offset from UTC or all "
        f"without, found {text!r} in {place}; {remedy}"
    )


def _seconds_of(times: np.ndarray, place: PlaceOfRow, unit: str | None) -> np.ndarray:
    """Times that are numbers of a unit, as seconds; an error if they would be centuries away."""
    far = np.abs(times.astype(float)) > LATEST
    if unit is None and far.any():
        first = int(np.argmax(far))
        likely = next((name for name, many in UNITS.items() if abs(times[first]) / many <= LATEST), "ns")
        raise ValueError(
            f"times that are numbers must be seconds, found {times[first]} in {place(first)}, after the year 5000; "
            f"give time_unit={likely!r} for {likely} since 1970"
        )
    many = UNITS[unit or "s"]
    return times if many == 1 else times.astype(float) / many
