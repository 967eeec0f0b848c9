"""From the events of a file to a log, with one parser of times for all readers.

A time is a complete ISO 8601 date, with or without a time of day: 2022-08-03, 2022/08/03 10:00,
2022-08-03T10:00:00.1Z, 2022-08-03 10:00:00 +02:00. Other texts that pandas accepts ("2022-8", "today") are
unreadable here, because truncated and damaged files contain such texts; so are years before 1000 and from
9999 on, which stand for "unknown" and "never".
"""

from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd

from tplrepro.datasets.reading import DataFormatError, Defects, finish
from tplrepro.eventlog.log import ACTIVITY, CASE, TIMESTAMP

ISO_TIME = (
    r" *([0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{4}/[0-9]{2}/[0-9]{2})"
    r"([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?( ?(Z|[-+][0-9]{2}(:?[0-9]{2})?))?)?"
)
WITH_DIGIT = "(?s).*[0-9].*"  # unlike "now" and "today", which pandas accepts in any format
FIRST_TIME, LAST_TIME = pd.to_datetime(["1000-01-01", "9998-12-31"], utc=True)
#: Number of events converted into columns at once; as Python objects they take several times the memory.
EVENTS_AT_ONCE = 1 << 14


def as_log(
    path: str | Path,
    unit: str,
    events: Iterator[tuple[str | int, str, str, int]],
    *,
    strict: bool,
    remedy: str,
    time_format: str = "ISO8601",
    names: list[str] | None = None,
) -> pd.DataFrame:
    """The log of a file's `events`: case, activity, time (each may be empty) and line; messages call them `unit`.

    With `names`, an event has the number of its case in that list, which is complete after the last event;
    the 17th case, if it has no name, is called "trace 17". Events without case, activity or readable time are
    skipped and counted; events out of order are sorted and counted. With `strict` both are errors that name
    file and line, see `datasets.reading`. Raises DataFormatError with the `remedy` if no event is valid.
    """
    batches = iter(lambda: list(islice(events, EVENTS_AT_ONCE)), [])
    table = pd.concat([_columns(batch, time_format) for batch in batches] or [_columns([], time_format)])
    if names is not None:
        table[CASE] = pd.array(_labels(names), dtype=str).take(table[CASE].to_numpy(dtype=int))
    defects = Defects(strict, 0, "an event log")

    def place(rows: np.ndarray) -> tuple[int, str]:
        case, activity, text, line, time = table.iloc[rows[0]]
        return line, f"case {case!r}, activity {activity!r}, time {text or str(time)!r}"

    lacking = {
        f"{unit} without {CASE}": table[CASE] == "",
        f"{unit} without {ACTIVITY}": table[ACTIVITY] == "",
        f"{unit} without {TIMESTAMP}": table[TIMESTAMP].isna() & (table["text"] == ""),
        f"{unit} with an unreadable {TIMESTAMP}": table[TIMESTAMP].isna(),
    }
    good = np.ones(len(table), dtype=bool)
    for reason, lacks in lacking.items():
        bad = np.flatnonzero(lacks & good)
        defects.known(reason, bad.size, path, partial(place, bad))
        good[bad] = False
    if not good.any():
        counts = ", ".join(f"{count} times {reason}" for reason, count in defects.skipped.items()) or f"no {unit}s"
        raise DataFormatError(f"no {unit} has a case, an activity and a readable time ({counts}); {remedy}", path)
    rows = np.flatnonzero(good)
    cases, times = pd.factorize(table[CASE])[0][rows], table[TIMESTAMP].to_numpy("datetime64[us]")[rows]
    in_file = np.argsort(cases, kind="stable")
    back = (np.diff(cases[in_file]) == 0) & (np.diff(times[in_file]) < np.timedelta64(0))
    defects.out_of_order(int(back.sum()), path, partial(place, np.sort(rows[in_file[1:][back]])))
    frame = table[[CASE, ACTIVITY, TIMESTAMP]].take(rows[np.lexsort((times, cases))])
    return finish(frame.reset_index(drop=True), path, defects)


def _columns(events: list[tuple], time_format: str) -> pd.DataFrame:
    """Case, activity, the text of an unreadable time, line, and time (UTC if it has no offset)."""
    table = pd.DataFrame(events, columns=[CASE, ACTIVITY, "text", "line"])
    formed = table["text"].astype(str).str.fullmatch(ISO_TIME if time_format == "ISO8601" else WITH_DIGIT)
    times = pd.to_datetime(table["text"].where(formed), format=time_format, utc=True, errors="coerce").astype(
        "datetime64[us, UTC]"
    )
    table[TIMESTAMP] = times.where(times.between(FIRST_TIME, LAST_TIME))
    table["text"] = table["text"].where(table[TIMESTAMP].isna(), "")
    return table


def _labels(names: list[str]) -> list[str]:
    """The names of cases; the 17th case without a name becomes "trace 17", or "trace 17'" if that name is taken."""
    unnamed, mark = [number for number, name in enumerate(names, 1) if not name], ""
    while not {f"trace {number}{mark}" for number in unnamed}.isdisjoint(names):
        mark += "'"
    return [name or f"trace {number}{mark}" for number, name in enumerate(names, 1)]
