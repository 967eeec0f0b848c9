"""From the events of a file to a log: defects are counted or refused, and events ordered by time."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from tplrepro.datasets.reading import DataFormatError, Defects, Place, finish
from tplrepro.datasets.table import parse_times
from tplrepro.eventlog.log import ACTIVITY, CASE, TIMESTAMP


def as_log(
    path: str | Path,
    unit: str,
    events: pd.DataFrame,
    line: Callable[[int], int],
    *,
    strict: bool,
    remedy: str,
    time_format: str = "ISO8601",
) -> pd.DataFrame:
    """The log of a file's `events`, rows of texts: case, activity and time, each of which may be empty.

    `line` gives the line of an event in the file; messages call an event `unit`. Events without case,
    activity or readable time are skipped and counted; events out of order are sorted and counted. With
    `strict` both are errors that name file and line, see `datasets.reading`. Raises DataFormatError with the
    `remedy` if no event is valid.
    """
    times = parse_times(events[TIMESTAMP], time_format)
    defects = Defects(strict=strict)

    def place(rows: np.ndarray) -> Place:
        case, activity, time = events[[CASE, ACTIVITY, TIMESTAMP]].iloc[rows[0]]
        return path, line(int(rows[0])), f"case {case!r}, activity {activity!r}, time {time!r}"

    lacking = {f"{unit} without {name}": events[name] == "" for name in (CASE, ACTIVITY, TIMESTAMP)}
    good = np.ones(len(events), dtype=bool)
    for reason, lacks in (lacking | {f"{unit} with an unreadable {TIMESTAMP}": np.isnat(times)}).items():
        bad = np.flatnonzero(lacks & good)
        defects.known(reason, bad.size, partial(place, bad))
        good[bad] = False
    if not good.any():
        counts = ", ".join(f"{count} times {reason}" for reason, count in defects.skipped.items()) or f"no {unit}s"
        raise DataFormatError(f"no {unit} has a case, an activity and a readable time ({counts}); {remedy}", path)
    rows = np.flatnonzero(good)
    cases, times = pd.factorize(events[CASE])[0][rows], times[rows]
    in_file = np.argsort(cases, kind="stable")
    back = (np.diff(cases[in_file]) == 0) & (times[in_file][1:] < times[in_file][:-1])
    if strict and back.any():
        _, number, content = place(np.sort(rows[in_file[1:][back]]))
        raise DataFormatError(f"times must be in order, found {content}; pass strict=False to sort", path, number)
    order = np.lexsort((times, cases))
    frame = events[[CASE, ACTIVITY]].take(rows[order]).reset_index(drop=True)
    frame[TIMESTAMP] = pd.DatetimeIndex(times[order], tz="UTC")
    return finish(frame, path, defects, reordered=int(back.sum()))
