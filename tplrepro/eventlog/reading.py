"""What the readers of event logs share: which rows of a file make a log, and in which order.

A row without case, activity or readable time is left out and counted; rows whose time precedes that of the row before
are sorted and counted. `strict` makes either an error that names file and line: see `datasets.reading`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pandas as pd

from tplrepro.datasets.reading import DataFormatError, Defects, finish
from tplrepro.eventlog.log import ACTIVITY, CASE, TIMESTAMP

__all__ = ["NO_TIME", "as_log", "microseconds"]

NO_TIME = np.iinfo(np.int64).min


def microseconds(texts: Iterable[str | None], time_format: str = "ISO8601") -> np.ndarray:
    """Times as microseconds since 1970 UTC, `NO_TIME` where none can be read; those without an offset are UTC."""
    stamps = pd.to_datetime(pd.Series(texts, dtype=object), format=time_format, utc=True, errors="coerce")
    return stamps.to_numpy("datetime64[us]").astype(np.int64)


def as_log(
    path,
    cases: pd.Categorical,
    activities: pd.Categorical,
    times: np.ndarray,
    timed: np.ndarray,
    *,
    unit: str,
    strict: bool,
    place: Callable[[int], tuple[int, str]],
    remedy: str,
    **attrs: int,
) -> pd.DataFrame:
    """The log of a file's rows, which are called `unit`; `remedy` is what to do where none is good.

    `times` are those of `microseconds`, `timed` says whether the row has any time, readable or not, and `place` gives
    the line of a row and what it holds.
    """
    defects = Defects(strict, 0, "an event log")
    good = np.ones(times.size, dtype=bool)
    lacking = {
        f"{unit} without {CASE}": cases.codes < 0,
        f"{unit} without {ACTIVITY}": activities.codes < 0,
        f"{unit} without {TIMESTAMP}": ~timed,
        f"{unit} with an unreadable {TIMESTAMP}": times == NO_TIME,
    }
    for reason, lacks in lacking.items():
        bad = np.flatnonzero(lacks & good)
        defects.known(reason, bad.size, path, lambda bad=bad: place(int(bad[0])))  # type: ignore[misc]
        good[bad] = False
    if not good.any():
        counts = ", ".join(f"{count} times {reason}" for reason, count in defects.skipped.items())
        raise DataFormatError(
            f"no {unit} has a case, an activity and a readable time ({counts or f'no {unit}s'}); {remedy}", path
        )
    rows = np.flatnonzero(good)
    rows = rows[np.argsort(cases.codes[rows], kind="stable")]
    same_case = np.diff(cases.codes[rows]) == 0
    early = np.sort(rows[1:][same_case & (np.diff(times[rows]) < 0)])
    defects.out_of_order(early.size, path, lambda: place(int(early[0])))
    rows = rows[np.lexsort((times[rows], cases.codes[rows]))]
    frame = pd.DataFrame({CASE: cases[rows].astype(str), ACTIVITY: activities[rows].astype(str)})
    frame[TIMESTAMP] = pd.DatetimeIndex(times[rows].astype("datetime64[us]")).tz_localize("UTC")
    return finish(frame, path, defects, **attrs)
