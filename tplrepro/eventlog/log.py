"""Event logs, and how a log is published over time ([4]).

A log is a DataFrame with one event per row and the column names of process mining:
`case:concept:name` names the case (the individual whose privacy is at stake), `concept:name` the
activity, and `time:timestamp` the time. `case:complete`, optional, is False for cases that continue
after the log ends. The trace of a case is its rows in the order of their times; rows with equal
times keep their order.

Each release after the first adds to every incomplete case its next `window` events (certain), or a
random number of events from 0 to `window` (uncertain); the artificial end counts as the last event
of a complete case. Cases that are not in the first release join in the second one, as in the
program published with [4] (pm-cedp-qdp 0.1.2, github.com/m4jidRafiei/QDP_CEDP, commit 9604d1def37a,
qdp.py, lines 379 to 388).
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
import pandas as pd

from tplrepro.validation import (
    FrozenArrays,
    RngLike,
    as_generator,
    check_choice,
    check_horizon,
    warn_caller,
)

CASE = "case:concept:name"
ACTIVITY = "concept:name"
TIMESTAMP = "time:timestamp"
COMPLETE = "case:complete"

#: The artificial activities before the first and after the last event of a complete case.
START = "▶"
END = "■"


@dataclass(frozen=True, eq=False)
class Traces(FrozenArrays):
    """A log as integers, one trace per case, in the order in which the cases start."""

    events: list[tuple[int, ...]]  # positions in `activities`
    activities: list[str]  # `START`, the log's activities in alphabetical order, and `END`
    complete: np.ndarray  # (cases,) of bool
    # (events,) of datetime64 in UTC, case after case; all equal if the log has none
    times: np.ndarray

    @property
    def lengths(self) -> np.ndarray:
        """The number of events of each case, (cases,), without the artificial ones."""
        return np.array([len(events) for events in self.events])

    @property
    def full_lengths(self) -> np.ndarray:
        """The number of events of each case, (cases,), where the end of a complete case counts as
        an event."""
        return self.lengths + self.complete

    def paths(self, published: np.ndarray) -> Counter[tuple[int, ...]]:
        """How many cases have each trace of their first `published` (cases,) events, ▶ and perhaps
        ■ included."""
        start = 0
        end = len(self.activities) - 1
        counts: Counter[tuple[int, ...]] = Counter()
        for events, n_published in zip(self.events, published.tolist(), strict=True):
            if n_published > len(events):
                counts[(start, *events, end)] += 1
            elif n_published > 0:
                counts[(start, *events[:n_published])] += 1
        return counts


@dataclass(frozen=True, eq=False)
class Release(FrozenArrays):
    """One release of the log `traces`."""

    # (cases,), the number of events of each case so far, including the artificial end
    published: np.ndarray
    traces: Traces


def as_traces(log: pd.DataFrame, timed: bool = True) -> Traces:
    """The traces of a checked log.

    Parameters
    ----------
    log : DataFrame
        With the columns case:concept:name and concept:name, and time:timestamp if `timed`.
    timed : bool
        Whether times order the events of a case; else they are in the order of the rows.

    Returns
    -------
    Traces

    Raises
    ------
    ValueError
        If the log is no DataFrame or has no event, lacks a column or a value in it, has times that
        are no datetimes, uses START or END as an activity, or marks complete cases by anything but
        True and False.
    """
    wanted = [CASE, ACTIVITY]
    if timed:
        wanted.append(TIMESTAMP)
    _check_log(log, wanted)
    _warn_of_skipped_events(log)
    # As objects: a category without events must not become an activity.
    case_codes, cases = pd.factorize(log[CASE].astype(object))
    activity_codes, activities = pd.factorize(log[ACTIVITY].astype(object), sort=True)
    times = np.zeros(len(log), "datetime64[us]")
    if timed:
        times = pd.to_datetime(log[TIMESTAMP], utc=True).dt.tz_localize(None).to_numpy()
    order = np.lexsort((times, case_codes))  # stable
    n_cases = len(cases)
    bounds = np.searchsorted(case_codes[order], np.arange(n_cases + 1))
    first_rows = order[bounds[:-1]]
    by_start = np.argsort(times[first_rows], kind="stable")
    numbers = activity_codes + 1  # START is 0
    rows_of_cases = []
    events = []
    for case in by_start.tolist():
        rows = order[bounds[case] : bounds[case + 1]]
        rows_of_cases.append(rows)
        events.append(tuple(numbers[rows].tolist()))
    complete = _are_complete(log, case_codes, n_cases)
    return Traces(
        events=events,
        activities=[START, *map(str, activities), END],
        complete=complete[by_start],
        times=times[np.concatenate(rows_of_cases)],
    )


def _warn_of_skipped_events(log: pd.DataFrame) -> None:
    """Say what the reader of the log left out."""
    skipped = log.attrs.get("skipped")
    if skipped:
        reasons = ", ".join(f"{count} times {reason}" for reason, count in skipped.items())
        warn_caller(
            f"the log was read without {reasons}: its traces count as if nothing lay between; "
            "they may leak more"
        )


def _check_log(log: pd.DataFrame, wanted: list[str]) -> None:
    """ValueError for what is no DataFrame, has no event, lacks a wanted column or a value in it,
    has times that are no datetimes, or uses START or END as an activity."""
    if not isinstance(log, pd.DataFrame):
        raise ValueError(
            f"an event log must be a DataFrame, found {type(log).__name__}; "
            "read it by tplreport.read_xes or read_log_csv"
        )
    for name in wanted:
        _check_column(log, name, wanted)
    if len(log) == 0:
        raise ValueError(
            "an event log must hold at least one event, found none; "
            "check the file or the filter before"
        )
    if TIMESTAMP in wanted and not pd.api.types.is_datetime64_any_dtype(log[TIMESTAMP]):
        raise ValueError(
            f"{TIMESTAMP} must hold times, found {log[TIMESTAMP].dtype}; "
            "convert it by pandas.to_datetime(utc=True)"
        )
    if log[ACTIVITY].isin([START, END]).any():
        raise ValueError(
            f"{START} and {END} must not be activities of the log, found one; "
            "rename or drop those events"
        )


def _check_column(log: pd.DataFrame, name: str, wanted: list[str]) -> None:
    """Refuse a log in which column `name`, one of those `wanted`, is missing, stands twice, or has
    no value in some row."""
    count = np.count_nonzero(log.columns == name)
    if count != 1:
        found = f"found {count or 'no'} {name}"
        raise ValueError(
            f"a log must have the columns {', '.join(wanted)} once, {found}; rename the columns"
        )
    empty = np.flatnonzero(log[name].isna())
    if empty.size:
        raise ValueError(
            f"every event must have a {name}, found none in row {empty[0]} "
            f"({empty.size} such rows); drop those"
        )


def _are_complete(log: pd.DataFrame, case_codes: np.ndarray, n_cases: int) -> np.ndarray:
    """Whether each case ends within the log, (n_cases,) of bool; by default all do. `case_codes`
    (rows,) numbers the case of each row."""
    if COMPLETE not in log.columns:
        return np.ones(n_cases, dtype=bool)
    flags = log[COMPLETE].infer_objects()
    if not pd.api.types.is_bool_dtype(flags) or flags.isna().any():
        raise ValueError(
            f"{COMPLETE} must be True or False in every row, "
            f"found values such as {flags.iloc[0]!r}; "
            f"convert them, for texts by log[{COMPLETE!r}] == 'True'"
        )
    by_case = flags.groupby(case_codes)
    if (by_case.nunique() > 1).any():
        raise ValueError(
            f"{COMPLETE} must be the same in all rows of a case, found both; give one value a case"
        )
    return by_case.first().to_numpy(dtype=bool)


def releases(
    log: pd.DataFrame,
    window: int = 1,
    *,
    certain: bool = True,
    start: float | str | pd.Timestamp = 0.5,
    max_releases: int | None = None,
    rng: RngLike = None,
) -> Iterator[Release]:
    """The releases of a log until all its events are published.

    Parameters
    ----------
    log : DataFrame
        With the columns case:concept:name, concept:name and time:timestamp.
    window : int
        At least 1: how many new events per case a release holds, exactly this number if `certain`,
        else drawn from 0..window.
    certain : bool
    start : float, str or Timestamp
        The first release holds this share of the events, in (0, 1], in the order of time and with
        all events of the last one's time; or all events up to this time, in UTC by default.
    max_releases : int, optional
        At least 1.
    rng : int, numpy.random.Generator or None
        For uncertain releases: a seed, a generator, or None for draws that nobody can repeat.

    Returns
    -------
    iterator of Release

    Raises
    ------
    ValueError
        If the log is malformed, or an argument out of range.

    Examples
    --------
    >>> log = pd.DataFrame({"case:concept:name": list("1122"), "concept:name": list("abac"),
    ...     "time:timestamp": pd.to_datetime([f"2022-01-0{day}" for day in (1, 3, 2, 4)])})
    >>> [release.published.tolist() for release in releases(log)]
    [[1, 1], [2, 2], [3, 3]]
    """
    # Checked before the generator starts, so that errors are raised by the call itself.
    traces = as_traces(log)
    check_choice(certain, "certain", (True, False))
    generator = None
    if not certain:
        generator = as_generator(rng)
    if max_releases is not None:
        max_releases = check_horizon(max_releases, "max_releases")
    first = _first_release(traces, start)
    window = check_horizon(window, "window")
    return _iterate_releases(traces, first, window, max_releases, generator)


def _first_release(traces: Traces, start: float | str | pd.Timestamp) -> np.ndarray:
    """The number of events of each case in the first release, (cases,)."""
    last_time = _last_time(traces, start)
    if last_time is None:
        raise ValueError(
            f"start must be a share in (0, 1] or a time, found {start}; give the first's share"
        )
    lengths = traces.lengths
    case_of_event = np.repeat(np.arange(lengths.size), lengths)
    is_published = pd.DatetimeIndex(traces.times) <= last_time
    published = np.bincount(case_of_event[is_published], minlength=lengths.size)
    if not published.any():
        began = pd.Timestamp(traces.times.min())
        raise ValueError(
            f"the first release must hold an event, but the log begins at {began}; "
            "give a later start"
        )
    ends = (published == lengths) & traces.complete
    return published + ends


def _last_time(traces: Traces, start: float | str | pd.Timestamp) -> pd.Timestamp | None:
    """The time of the last events in the first release; None if `start` is no share or time."""
    if isinstance(start, (int, float, np.number)) and not isinstance(start, bool):
        if not 0.0 < start <= 1.0:
            return None
        # Rounded first: 0.07 of 100 events are 7, though 0.07 * 100 is more.
        n_events = max(1, int(np.ceil(round(start * traces.times.size, 6))))
        return pd.Timestamp(np.partition(traces.times, n_events - 1)[n_events - 1])
    if not isinstance(start, str | date | np.datetime64):
        return None
    stamp = pd.to_datetime(start, utc=True, errors="coerce")
    if not isinstance(stamp, pd.Timestamp):
        return None
    return stamp.tz_localize(None)


def _iterate_releases(
    traces: Traces,
    published: np.ndarray,
    window: int,
    max_releases: int | None,
    rng: np.random.Generator | None,
) -> Iterator[Release]:
    """The releases, starting with the first, of `published` (cases,) events of each case.

    Each further one adds `window` events of each case, or with `rng` 0 to `window` at random, until
    all are published or there are `max_releases`.
    """
    full = traces.full_lengths
    number = 1
    yield Release(published, traces)
    while (published != full).any() and number != max_releases:
        new: Any = window
        if rng is not None:
            new = rng.integers(0, window, published.size, endpoint=True)
        published = np.minimum(published + new, full)
        number += 1
        yield Release(published, traces)
