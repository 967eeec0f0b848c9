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
START, END = "▶", "■"


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
        """The same, where the end of a complete case counts as an event."""
        return self.lengths + self.complete

    def paths(self, published: np.ndarray) -> Counter[tuple[int, ...]]:
        """How many cases have each trace of their first `published` (cases,) events, ▶ and perhaps
        ■ included."""
        end = len(self.activities) - 1
        return Counter(
            (0, *events[:out], end) if out > len(events) else (0, *events[:out])
            for events, out in zip(self.events, published.tolist(), strict=True)
            if out
        )


@dataclass(frozen=True, eq=False)
class Release(FrozenArrays):
    """One release of the log `traces`."""

    # (cases,), the number of events of each case so far, including the artificial end
    published: np.ndarray
    traces: Traces


def as_traces(log: pd.DataFrame, timed: bool = True) -> Traces:
    """The traces of a checked log; if `timed`, times order the events of a case."""
    _check_log(log, [CASE, ACTIVITY, TIMESTAMP] if timed else [CASE, ACTIVITY])
    if skipped := log.attrs.get("skipped"):
        reasons = ", ".join(f"{count} times {reason}" for reason, count in skipped.items())
        warn_caller(
            f"the log was read without {reasons}: its traces count as if nothing lay between; they may leak more"
        )
    # As objects: a category without events must not become an activity.
    case_codes, cases = pd.factorize(log[CASE].astype(object))
    activity_codes, activities = pd.factorize(log[ACTIVITY].astype(object), sort=True)
    times = np.zeros(len(log), "datetime64[us]")
    if timed:
        times = pd.to_datetime(log[TIMESTAMP], utc=True).dt.tz_localize(None).to_numpy()
    order = np.lexsort((times, case_codes))  # stable
    bounds = np.searchsorted(case_codes[order], np.arange(len(cases) + 1))
    by_start = np.argsort(times[order][bounds[:-1]], kind="stable")
    parts = [order[bounds[k] : bounds[k + 1]] for k in by_start.tolist()]
    return Traces(
        events=[tuple((activity_codes[part] + 1).tolist()) for part in parts],
        activities=[START, *map(str, activities), END],
        complete=_complete(log, case_codes, len(cases))[by_start],
        times=times[np.concatenate(parts)],
    )


def _check_log(log: pd.DataFrame, wanted: list[str]) -> None:
    if not isinstance(log, pd.DataFrame):
        raise ValueError(
            f"an event log must be a DataFrame, found {type(log).__name__}; read it by tplreport.read_xes or read_log_csv"
        )
    for name in wanted:
        count = np.count_nonzero(log.columns == name)
        if count != 1:
            found = f"found {count or 'no'} {name}"
            raise ValueError(
                f"a log must have the columns {', '.join(wanted)} once, {found}; rename the columns"
            )
        empty = np.flatnonzero(log[name].isna())
        if empty.size:
            raise ValueError(
                f"every event must have a {name}, found none in row {empty[0]} ({empty.size} such rows); drop those"
            )
    if len(log) == 0:
        raise ValueError(
            "an event log must hold at least one event, found none; check the file or the filter before"
        )
    if TIMESTAMP in wanted and not pd.api.types.is_datetime64_any_dtype(log[TIMESTAMP]):
        raise ValueError(
            f"{TIMESTAMP} must hold times, found {log[TIMESTAMP].dtype}; convert it by pandas.to_datetime(utc=True)"
        )
    if log[ACTIVITY].isin([START, END]).any():
        raise ValueError(
            f"{START} and {END} must not be activities of the log, found one; rename or drop those events"
        )


def _complete(log: pd.DataFrame, case_codes: np.ndarray, n_cases: int) -> np.ndarray:
    if COMPLETE not in log.columns:
        return np.ones(n_cases, dtype=bool)
    flags = log[COMPLETE].infer_objects()
    if not pd.api.types.is_bool_dtype(flags) or flags.isna().any():
        raise ValueError(
            f"{COMPLETE} must be True or False in every row, found values such as {flags.iloc[0]!r}; convert them, "
            f"for texts by log[{COMPLETE!r}] == 'True'"
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
    log : DataFrame with columns case:concept:name, concept:name, time:timestamp
    window : int >= 1, new events per case and release: exactly this number if `certain`, else drawn from 0..window
    start : the first release holds this share of the events, in (0, 1], in the order of time and with all events of
        the last one's time; or all events up to this time, in UTC by default
    max_releases : int >= 1, optional
    rng : int, numpy.random.Generator or None, for uncertain releases

    >>> log = pd.DataFrame({"case:concept:name": list("1122"), "concept:name": list("abac"),
    ...     "time:timestamp": pd.to_datetime(["2022-01-01", "2022-01-03", "2022-01-02", "2022-01-04"])})
    >>> [release.published.tolist() for release in releases(log)]
    [[1, 1], [2, 2], [3, 3]]
    """
    # Checked before the generator starts, so that errors are raised by the call itself.
    traces = as_traces(log)
    check_choice(certain, "certain", (True, False))
    rng = None if certain else as_generator(rng)
    most = None if max_releases is None else check_horizon(max_releases, "max_releases")
    return _advance(traces, _first(traces, start), check_horizon(window, "window"), most, rng)


def _first(traces: Traces, start: float | str | pd.Timestamp) -> np.ndarray:
    """The number of events of each case in the first release, (cases,)."""
    lengths = traces.lengths
    if isinstance(start, (int, float, np.number)) and not isinstance(start, bool):
        # Rounded first: 0.07 of 100 events are 7, though 0.07 * 100 is more.
        count = (
            max(1, int(np.ceil(round(start * lengths.sum(), 6)))) if 0.0 < start <= 1.0 else None
        )
        cut = (
            None
            if count is None
            else pd.Timestamp(np.partition(traces.times, count - 1)[count - 1])
        )
    else:
        is_time = isinstance(start, str | date | np.datetime64)
        stamp = pd.to_datetime(start, utc=True, errors="coerce") if is_time else None
        cut = stamp.tz_localize(None) if isinstance(stamp, pd.Timestamp) else None
    if cut is None:
        raise ValueError(
            f"start must be a share in (0, 1] or a time, found {start}; give the first's share"
        )
    of_case = np.repeat(np.arange(lengths.size), lengths)
    out = np.bincount(of_case[pd.DatetimeIndex(traces.times) <= cut], minlength=lengths.size)
    if not out.any():
        began = pd.Timestamp(traces.times.min())
        raise ValueError(
            f"the first release must hold an event, but the log begins at {began}; give a later start"
        )
    return out + ((out == lengths) & traces.complete)


def _advance(
    traces: Traces,
    out: np.ndarray,
    window: int,
    max_releases: int | None,
    rng: np.random.Generator | None,
) -> Iterator[Release]:
    """The releases, starting with the first; certain if `rng` is None."""
    full, number = traces.full_lengths, 1
    yield Release(out, traces)
    while (out != full).any() and number != max_releases:
        new = window if rng is None else rng.integers(0, window, out.size, endpoint=True)
        out, number = np.minimum(out + new, full), number + 1
        yield Release(out, traces)
