"""From observations at irregular times to sequences of states, one state per time step.

The chains of the papers move in fixed steps, while people are observed whenever a GPS device or an app
reports. Between two reports the last known state holds, but no longer than a maximum gap. After a longer gap
a new sequence begins, so no transition is invented across the gap. A report of the state -1 (off the map)
also ends a sequence.

Times are time stamps in UTC, or seconds as numbers. They order the reports exactly, nanoseconds included.
"""

from datetime import timedelta

import numpy as np
import pandas as pd

from tplrepro.markov.sequences import Sequences

OUTSIDE = -1
SECOND = 1_000_000  # times are counted in microseconds, time stamps with nanoseconds in those


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
