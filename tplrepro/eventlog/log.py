"""Event logs: DataFrames with one event per row and the column names of process mining.

`case:concept:name` names the case (the individual whose privacy is at stake), `concept:name` the activity,
and `time:timestamp` the time. A log may also have `case:complete`, False for cases that continue after the
log ends; without that column every case is complete. Other columns are ignored.

Rows of one case are its trace, in the order of their times; rows with equal times keep their order.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tplrepro.validation import FrozenArrays

CASE = "case:concept:name"
ACTIVITY = "concept:name"
TIMESTAMP = "time:timestamp"
COMPLETE = "case:complete"

#: The artificial activities before the first and after the last event of a complete case.
START, END = "▶", "■"


@dataclass(frozen=True, eq=False)
class Traces(FrozenArrays):
    """A log as integers, one trace per case, in the order in which the cases start.

    `events` are positions in `activities`, which are `START`, the log's activities in alphabetical order, and
    `END`. `times` (events,) are datetime64 in UTC, case after case; all equal if the log has none.
    """

    events: list[tuple[int, ...]]
    activities: list[str]
    complete: np.ndarray
    times: np.ndarray

    @property
    def lengths(self) -> np.ndarray:
        """The number of events of each case, without the artificial ones."""
        return np.array([len(events) for events in self.events])

    def paths(self, published: np.ndarray) -> Counter[tuple[int, ...]]:
        """The distinct traces of the first `published` events, with ▶ and perhaps ■, and their numbers of cases."""
        end = len(self.activities) - 1
        return Counter(
            (0, *events[:out], end) if out > len(events) else (0, *events[:out])
            for events, out in zip(self.events, published.tolist(), strict=True)
            if out
        )


def check_log(log: pd.DataFrame, timestamps: bool = True) -> pd.DataFrame:
    """Return `log` if it is valid; otherwise raise a ValueError that says what is wrong.

    Errors: a missing column (time:timestamp is optional without `timestamps`), a missing name or time, or no
    rows.
    """
    if not isinstance(log, pd.DataFrame):
        raise ValueError(
            f"an event log must be a DataFrame, found {type(log).__name__}; read it by read_xes or read_csv"
        )
    wanted = [CASE, ACTIVITY, TIMESTAMP][: 2 + timestamps]
    missing = [name for name in wanted if name not in log.columns]
    if missing:
        raise ValueError(
            f"an event log must have the columns {', '.join(wanted)}, found no {', '.join(missing)}; rename the "
            "columns, or read the file with read_xes or read_csv"
        )
    if len(log) == 0:
        raise ValueError("an event log must hold at least one event, found none; check the file or the filter before")
    for name in wanted:
        empty = np.flatnonzero(log[name].isna())
        if empty.size:
            raise ValueError(
                f"every event must have a {name}, found none in row {empty[0]} ({empty.size} such rows); "
                "drop those rows first"
            )
    if timestamps and not pd.api.types.is_datetime64_any_dtype(log[TIMESTAMP]):
        raise ValueError(
            f"{TIMESTAMP} must hold times, found {log[TIMESTAMP].dtype}; convert it by pandas.to_datetime(utc=True)"
        )
    if log[ACTIVITY].isin([START, END]).any():
        raise ValueError(
            f"{START} and {END} must not be activities of the log, found one: they stand for its start and end; "
            "rename or drop those events"
        )
    return log


def as_traces(log: pd.DataFrame, timed: bool = True) -> Traces:
    """The traces of a valid log; if `timed`, times order the events of a case."""
    check_log(log, timestamps=timed)
    # A category without events must not become an activity, so numbers come from the values that occur.
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
        raise ValueError(f"{COMPLETE} must be the same in all rows of a case, found both; give one value a case")
    return by_case.first().to_numpy(dtype=bool)
