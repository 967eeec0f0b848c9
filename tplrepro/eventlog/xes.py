"""Reading XES, the XML format of event logs (IEEE 1849), event by event.

Files may be plain or gzip-compressed (told by the content), with or without the XES namespace, by any writer: ProM,
Disco, pm4py. Of a trace its `concept:name` is taken, of an event `concept:name` and `time:timestamp`; attributes nested
in other attributes, globals, classifiers and extensions are passed over. `iter_xes` needs the same memory for a log of
any size, `read_xes` that and 16 bytes an event besides the frame it returns.
A file that declares a document type is refused: see `xes_parser`.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator

import numpy as np
import pandas as pd

from tplrepro.datasets.reading import DataFormatError, Defects, finish
from tplrepro.eventlog.log import ACTIVITY, CASE, TIMESTAMP
from tplrepro.eventlog.xes_parser import XesParser

__all__ = ["iter_xes", "read_xes"]


def read_xes(path, *, strict: bool = False, progress: bool = False) -> pd.DataFrame:
    """Read an XES log into a frame with one event a row.

    Parameters
    ----------
    path : path-like, .xes or .xes.gz
    strict : bool, default False
        Raise at the first event without a name or a time, or out of order, instead of counting it.
    progress : bool, default False
        Show a progress bar.

    Returns
    -------
    DataFrame
        case:concept:name : str, the case; a trace without a name is called by its position, "trace 17";
        concept:name : str, the activity;
        time:timestamp : datetime64[us, UTC].
        Cases stand in the order of the file, the events of a case in the order of their times. ``attrs``: source,
        synthetic, skipped and skipped_examples (events without a name or a time, by reason), reordered (events whose
        time precedes that of the event before), unnamed_cases, empty_cases, repeated_cases (traces whose name an
        earlier trace has; they count as one case).

    Raises
    ------
    DataFormatError
        The file is not XES, declares a document type, ends early, or holds no event with a name and a time. The
        message names file and line.
    OSError
        The file cannot be opened.

    Examples
    --------
    >>> import tempfile
    >>> text = '''<log><trace><string key="concept:name" value="7"/>
    ... <event><string key="concept:name" value="register"/>
    ... <date key="time:timestamp" value="2022-08-03T10:00:00.000+02:00"/></event></trace></log>'''
    >>> with tempfile.NamedTemporaryFile("w", suffix=".xes") as file:
    ...     _ = file.write(text), file.flush()
    ...     log = read_xes(file.name)
    >>> log.iloc[0].map(str).tolist()
    ['7', 'register', '2022-08-03 08:00:00+00:00']
    """
    reader = _Reader(path, strict, progress=progress)
    cases, activities, times = array("i"), array("i"), array("q")
    for piece in reader.pieces():
        cases.frombytes(piece[0].tobytes())
        activities.frombytes(piece[1].tobytes())
        times.frombytes(piece[2].tobytes())
    reader.check_not_empty()
    case_of = np.frombuffer(cases, dtype=np.int32)
    stamp = np.frombuffer(times, dtype=np.int64)
    order = np.lexsort((np.arange(stamp.size), stamp, case_of))
    return reader.finish(_frame(reader, case_of[order], np.frombuffer(activities, dtype=np.int32)[order], stamp[order]))


def iter_xes(path, *, events: int = 65_536, strict: bool = False) -> Iterator[pd.DataFrame]:
    """Read an XES log of any size in pieces of about `events` events; memory grows with the names alone.

    Parameters
    ----------
    path, strict : as for `read_xes`
    events : int >= 1, size of a piece

    Yields
    ------
    DataFrame, as `read_xes` gives it but in the order of the file; a case may go on in the next piece. The last
    piece's ``attrs`` hold the counts of the whole file.
    """
    if events < 1:
        raise ValueError(f"events must be at least 1, found {events}; give the number of events of a piece")
    reader = _Reader(path, strict, piece=events)
    last = None
    for piece in reader.pieces():
        if last is not None:
            yield last
        last = _frame(reader, *piece)
    reader.check_not_empty()
    yield reader.finish(last)


def _frame(reader: _Reader, cases, activities, times) -> pd.DataFrame:
    def names(values, codes):
        used, codes = np.unique(codes, return_inverse=True)  # of all the names so far only those of this piece
        return pd.Categorical.from_codes(codes, pd.Index([values[k] for k in used.tolist()], dtype=str)).astype(str)

    return pd.DataFrame(
        {
            CASE: names(reader.parser.case_names, cases),
            ACTIVITY: names(reader.activity_names, activities),
            TIMESTAMP: pd.DatetimeIndex(times.astype("datetime64[us]")).tz_localize("UTC"),
        }
    )


class _Reader:
    """Turns the parser's events into arrays, and counts what it leaves out."""

    def __init__(self, path, strict: bool, piece: int = 65_536, progress: bool = False):
        self.path = path
        self.defects = Defects(strict, 0, "an XES event log")
        self.parser = XesParser(path, piece, progress)
        self.activity_codes: dict[str, int] = {}
        self.activity_names: list[str] = []
        self.seen = self.untimed = self.kept = 0
        self.last_time: dict[int, int] = {}

    def pieces(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Case codes (int32), activity codes (int32) and times (int64, microseconds)."""
        for rows in self.parser.pieces():
            yield self._convert(rows)

    def _convert(self, rows: list) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        self.seen += len(rows)
        self.untimed += sum(row[2] is None for row in rows)
        stamps = _microseconds([row[2] for row in rows])
        cases = np.array([row[0] for row in rows], dtype=np.int32)
        named = np.array([bool(row[1]) for row in rows], dtype=bool)
        timed = stamps != _NAT
        missing = np.array([row[2] is None for row in rows], dtype=bool)
        for reason, bad in (
            ("event without concept:name", ~named),
            ("event without time:timestamp", named & missing),
            ("event with an unreadable time:timestamp", named & ~missing & ~timed),
        ):
            self.defects.known(reason, int(bad.sum()), self.path, lambda bad=bad: _place(rows[int(np.argmax(bad))]))
        good = named & timed
        kept = [rows[k] for k in np.flatnonzero(good).tolist()]
        activities = np.empty(len(kept), dtype=np.int32)
        for k, row in enumerate(kept):
            code = activities[k] = self.activity_codes.setdefault(row[1], len(self.activity_names))
            if code == len(self.activity_names):
                self.activity_names.append(row[1])
        cases, stamps = cases[good], stamps[good]
        self.kept += len(kept)
        self._count_unordered(cases, stamps, kept)
        return cases, activities, stamps

    def _count_unordered(self, cases, stamps, kept) -> None:
        if not kept:
            return
        earlier = np.zeros(stamps.size, dtype=bool)
        earlier[1:] = (cases[1:] == cases[:-1]) & (stamps[1:] < stamps[:-1])
        earlier[0] = stamps[0] < self.last_time.get(int(cases[0]), stamps[0])  # the case goes on from the last piece
        self.last_time = {int(cases[-1]): int(stamps[-1])}
        self.defects.out_of_order(int(earlier.sum()), self.path, lambda: _place(kept[int(np.argmax(earlier))]))

    def check_not_empty(self) -> None:
        if self.kept:
            return
        if not self.seen:
            problem = (
                f"the log holds no events ({self.parser.traces} traces); check that the export took the events along"
            )
        elif self.untimed == self.seen:
            problem = (
                f"none of the {self.seen} events has a time:timestamp, which orders the releases; "
                "export the log with its times"
            )
        else:
            reasons = ", ".join(f"{count} times {reason}" for reason, count in self.defects.skipped.items())
            problem = f"no event has both a concept:name and a readable time:timestamp ({reasons}); export it again"
        raise DataFormatError(problem, self.path)

    def finish(self, frame: pd.DataFrame) -> pd.DataFrame:
        return finish(
            frame,
            self.path,
            self.defects,
            unnamed_cases=self.parser.unnamed,
            empty_cases=self.parser.empty,
            repeated_cases=self.parser.repeated,
        )


_NAT = np.iinfo(np.int64).min


def _place(row) -> tuple[int, str]:
    return row[3], f"activity {row[1]!r}, time {row[2]!r}"


def _microseconds(texts: list) -> np.ndarray:
    """ISO 8601 times as microseconds since 1970 UTC, NaT where there is none; those without an offset are UTC."""
    stamps = pd.to_datetime(pd.Series(texts, dtype=object), format="ISO8601", utc=True, errors="coerce")
    return stamps.dt.tz_localize(None).to_numpy().astype("datetime64[us]").astype(np.int64)
