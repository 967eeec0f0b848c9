"""From observations at irregular times to sequences of states, one state a time step.

The chains of the papers move in fixed steps, while people are observed when a GPS device or an app reports. Between
two reports the last known state holds, but no longer than a maximum gap; where nothing is known a sequence ends and
the next report begins a new one, so that no transition is made up across the gap.

All times are those of the data frames of this folder: a column of time stamps in UTC, or of seconds as floats.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from tplrepro.markov.sequences import Sequences

__all__ = ["fixed_steps", "observed_sequences"]


def fixed_steps(
    frame: pd.DataFrame,
    step,
    max_gap,
    *,
    state: str = "cell",
    user: str = "user",
    time: str = "time",
    outside=-1,
    labels=None,
    as_frame: bool = False,
):
    """Sequences of states at fixed time steps, the last known state holding for at most `max_gap`.

    At a time t that is a multiple of `step` (since 1970, or since second 0), a user is where the latest report at or
    before t says, if that report is not older than `max_gap`. The last report holds until the next multiple of `step`.

    Parameters
    ----------
    frame : DataFrame
        One report a row, in any order; of two at the same time the later row counts.
    step, max_gap : str, timedelta or float
        Such as "5min"; seconds where the times are seconds.
    state : str
        Column of integer or other hashable states.
    user : str or list of str
        Column or columns that tell whose sequence it is (user and recording, say).
    time : str
        Column of time stamps, or of seconds.
    outside : scalar or None
        State that stands for "not on the map": it ends the one before it, and makes no step of its own.
    labels : array-like (n,), optional
        The states are already codes 0..n-1 of these; without it the codes are those of the states that occur, sorted.
    as_frame : bool
        Return a tidy frame (user, sequence, time, state) instead.

    Returns
    -------
    Sequences or DataFrame

    Raises
    ------
    ValueError
        A column is missing, a time is missing, or a duration is not positive.

    Examples
    --------
    >>> import pandas as pd
    >>> reports = pd.DataFrame({"user": 1, "time": [0.0, 4.0, 11.0, 31.0], "cell": [5, 6, 5, 6]})
    >>> [s.tolist() for s in fixed_steps(reports, step=5, max_gap=10)]
    [[0, 1, 1, 0, 0], [1]]
    >>> fixed_steps(reports, step=5, max_gap=10, as_frame=True)
       user  sequence  time  cell
    0     1         0   0.0     5
    1     1         0   5.0     6
    2     1         0  10.0     6
    3     1         0  15.0     5
    4     1         0  20.0     5
    5     1         1  35.0     6
    """
    ticks, per_tick, group, names, states = _columns(frame, state, user, time)
    step, max_gap = (_duration(v, per_tick, n) for v, n in ((step, "step"), (max_gap, "max_gap")))
    order = _order(ticks, group)
    ticks, group = ticks[order], group[order]

    last = np.append(group[1:] != group[:-1], True) if len(group) else np.empty(0, dtype=bool)
    following = np.append(ticks[1:], 0)
    begin = -(-ticks // step)  # the first step at or after the report
    end = np.where(last, begin, -(-following // step) - 1)
    end = np.minimum(end, (ticks + max_gap) // step)
    inside = np.ones(len(order), dtype=bool)
    if outside is not None:
        inside = ~_equal(states, outside)[order]
    lengths = np.where(inside, np.maximum(end - begin + 1, 0), 0)

    stops = np.cumsum(lengths)
    total = int(stops[-1]) if len(stops) else 0
    source = np.repeat(np.arange(len(order)), lengths)
    index = np.arange(total) - np.repeat(stops - lengths, lengths) + begin[source]
    breaks = np.flatnonzero((np.diff(index) != 1) | (np.diff(group[source]) != 0)) + 1
    result = _sequences(states, order[source], group[source], breaks, names, labels)
    if not as_frame:
        return result
    whose = names.take(group[source])
    columns = {name: whose.get_level_values(name) for name in names.names}
    columns["sequence"] = np.repeat(np.arange(len(result)), result.lengths)
    if isinstance(frame[time].dtype, pd.DatetimeTZDtype) or np.issubdtype(frame[time].dtype, np.datetime64):
        columns[time] = pd.to_datetime(index * step, unit="us", utc=isinstance(frame[time].dtype, pd.DatetimeTZDtype))
    else:
        columns[time] = index * step / per_tick
    columns[state] = states[order[source]]
    return pd.DataFrame(columns)


def observed_sequences(
    frame: pd.DataFrame,
    *,
    max_gap=None,
    state: str = "cell",
    user: str = "user",
    time: str = "time",
    outside=-1,
    labels=None,
) -> Sequences:
    """Sequences of the states as they were reported, one state a report; a gap longer than `max_gap` ends a sequence.

    Parameters are those of `fixed_steps`. A report outside ends a sequence as well.

    Examples
    --------
    >>> import pandas as pd
    >>> reports = pd.DataFrame({"user": [1, 1, 1, 2], "time": [0.0, 4.0, 31.0, 0.0], "cell": [5, 6, 5, 6]})
    >>> [s.tolist() for s in observed_sequences(reports, max_gap=10)]
    [[0, 1], [0], [1]]
    """
    ticks, per_tick, group, names, states = _columns(frame, state, user, time)
    order = _order(ticks, group)
    broken = np.diff(group[order]) != 0
    if max_gap is not None:
        broken |= np.diff(ticks[order]) > _duration(max_gap, per_tick, "max_gap")
    run = np.concatenate([[0], np.cumsum(broken)]) if len(order) else np.empty(0, dtype=np.int64)
    if outside is not None:
        away = _equal(states, outside)[order]
        run = run + np.cumsum(away)
        order, run = order[~away], run[~away]
    return _sequences(states, order, group[order], np.flatnonzero(np.diff(run)) + 1, names, labels)


def _columns(frame, state, user, time):
    """Ticks (integer), ticks a second, group number a row, the groups' names, and states, of a frame."""
    users = [user] if isinstance(user, str) else list(user)
    missing = [c for c in [state, *users, time] if c not in frame.columns]
    if missing:
        raise ValueError(
            f"the frame must have the columns {[state, *users, time]}, found {list(frame.columns)}; "
            f"add {missing} or name yours with state=, user= and time="
        )
    column = frame[time]
    if column.isna().any():
        raise ValueError(f"times must not be missing, found {int(column.isna().sum())} in column {time!r}; drop them")
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        stamps = column.dt.tz_convert("UTC").dt.tz_localize(None) if column.dt.tz is not None else column
        ticks = stamps.to_numpy().astype("datetime64[us]").astype(np.int64)
    elif pd.api.types.is_numeric_dtype(column.dtype):
        ticks = np.rint(column.to_numpy(dtype=float) * 1e6).astype(np.int64)
    else:
        raise ValueError(f"column {time!r} must hold time stamps or seconds, found {column.dtype}; convert it first")
    if len(users) == 1:
        group, names = pd.factorize(frame[users[0]], sort=True)
        names = pd.Index(names, name=users[0])
    else:
        keys = pd.MultiIndex.from_frame(frame[users])
        group, names = pd.factorize(keys, sort=True)
        names = names.set_names(users)
    if (group < 0).any():
        raise ValueError(f"users must not be missing, found {int((group < 0).sum())} rows without; drop them")
    return ticks, 1e6, group.astype(np.int64), names, frame[state].to_numpy()


def _order(ticks, group) -> np.ndarray:
    """Rows by group and time, rows of one time in the order of the frame; frames of this folder are so already."""
    step = np.diff(group)
    if ((step > 0) | ((step == 0) & (np.diff(ticks) >= 0))).all():
        return np.arange(len(ticks))
    return np.lexsort((ticks, group))


def _duration(value, per_tick: float, name: str) -> int:
    """A duration in ticks, at least one."""
    try:
        seconds = (
            float(value) if np.isscalar(value) and not isinstance(value, str) else (pd.Timedelta(value).total_seconds())
        )
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a duration, found {value!r}; give seconds or such as '5min'") from None
    ticks = np.rint(seconds * per_tick)
    if not 1 <= ticks <= 2**62:
        raise ValueError(f"{name} must be a positive duration, found {value!r}; give seconds or such as '5min'")
    return int(ticks)


def _equal(states: np.ndarray, outside) -> np.ndarray:
    same = states == outside
    return same if isinstance(same, np.ndarray) else np.zeros(len(states), dtype=bool)


def _sequences(states, rows, group, breaks, names, labels) -> Sequences:
    offsets = np.concatenate([[0], breaks, [len(rows)]]).astype(np.int64) if len(rows) else np.zeros(1, np.int64)
    users = np.empty(len(offsets) - 1, dtype=object) if names.nlevels > 1 else None
    which = group[offsets[:-1]] if len(rows) else np.empty(0, np.int64)
    if users is None:
        users = names.to_numpy()[which]
    else:
        users[:] = names.take(which).tolist()
    if labels is None:
        return Sequences.from_flat(states[rows], offsets, users)
    return Sequences(states[rows], offsets, np.asarray(labels), users)
