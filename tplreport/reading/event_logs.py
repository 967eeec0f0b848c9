"""Event logs from files: XES (IEEE 1849), and CSV as process-mining tools export it.

XES is read safely and in bounded memory, by expat, fed in blocks: an event takes about 240 bytes at
most. A file with a document type declaration is refused before any entity is declared, so entities
can neither be expanded (billion laughs) nor fetched; the length and nesting of elements are
limited. Nested attributes, globals, classifiers and extensions are ignored.

The columns of a CSV file are found by name: the XES names that ProM and pm4py write, or the ones
that Disco does. `datasets.table` describes the format of the rows, `datasets.time_steps` that of
times.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from pyexpat import ExpatError, ParserCreate
from typing import Any, Self

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute

from tplreport.reading.table import line_of, table_blocks
from tplreport.reading.text_files import (
    DataFormatError,
    Defects,
    Place,
    describe_content,
    file_blocks,
    finish,
)
from tplreport.reading.times import parse_times, texts_of
from tplrepro.eventlog.log import ACTIVITY, CASE, TIMESTAMP

COLUMNS = [CASE, ACTIVITY, TIMESTAMP]
ROLES = {"user": CASE, "state": ACTIVITY, "time": TIMESTAMP}
PHASE = "lifecycle:transition"
READ_BYTES = 1 << 18
LONGEST_TAG_BYTES = 8 << 20
DEEPEST = 10_000
# converted into columns; as Python objects they take several times the memory
EVENTS_AT_ONCE = 1 << 14
PARENTS = {"log": "", "trace": "log", "event": "trace"}


def read_xes(path: str | Path) -> pd.DataFrame:
    """Read an XES log, plain or compressed, into a frame with one event a row.

    Events without a name or a time, or with an unreadable time, are skipped and counted, and events
    out of order are sorted. Raises DataFormatError if the file is not XES, declares a document
    type, ends early, or has no event with name and readable time.

    Returns
    -------
    DataFrame
        case:concept:name : str, the case; a trace without a name is called "trace 17" by its
        position; concept:name : str, the activity; time:timestamp : datetime64[us, UTC], or [ns,
        UTC] if a time has nanoseconds. Cases are in the order of the file, the events of a case in
        the order of their times. Traces of one name are one case. ``attrs``: source, synthetic,
        skipped and skipped_examples (events without a name or a readable time), reordered (events
        out of order), phases (such as start and complete).

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
    return _Events.of(path).as_log(path)


def read_all_events(path: str | Path) -> pd.DataFrame:
    """All events of an XES log, those that lack something too, in the order of the file.

    Returns
    -------
    DataFrame
        The columns of `read_xes`: None for an activity without a name, NaT for a time that is
        missing or unreadable. ``attrs``: source, synthetic, skipped (nothing) and phases.
    """
    events = _Events.of(path)
    table = events.table
    times, _ = parse_times(texts_of(table[TIMESTAMP]))
    names = table[ACTIVITY].astype(object)
    if not (names != "")[~np.isnat(times)].any():
        return events.as_log(path)  # an error that says what they lack
    frame = table[[CASE]].assign(
        **{ACTIVITY: names.where(names != "", None), TIMESTAMP: pd.DatetimeIndex(times, tz="UTC")}
    )
    frame.index = pd.Index(events.lines, name="line")
    return finish(frame, path, Defects(), phases=events.phases)


@dataclass(frozen=True, eq=False)
class _Events:
    """The events of a file in its order: texts, "" for what one lacks, and where each ends."""

    table: pd.DataFrame
    lines: np.ndarray
    phases: list[str]

    @classmethod
    def of(cls, path: str | Path) -> Self:
        """Those of an XES log."""
        parser = _Parser(path)
        events = parser.events()
        batches = iter(lambda: list(islice(events, EVENTS_AT_ONCE)), [])
        columns = {"number": np.int32, ACTIVITY: str, TIMESTAMP: str, "line": np.int32}
        parts = (
            pd.DataFrame(batch, columns=[*columns]).astype(columns)
            for batch in chain(batches, [[]])
        )
        table = pd.concat(parts, ignore_index=True)
        lines = table.pop("line").to_numpy()
        numbers = table.pop("number").to_numpy()
        table[CASE] = pd.array(_labels(parser.names), dtype=str).take(numbers)
        return cls(table, lines, sorted(parser.phases))

    def line(self, row: int) -> int:
        """The line at which an event ends."""
        return int(self.lines[row])

    def as_log(self, path: str | Path) -> pd.DataFrame:
        """Those that lack nothing, in order of time; DataFormatError if there are none."""
        remedy = "check that the export of the traces took their events and times along"
        return _as_log(path, "event", self.table, self.line, remedy, phases=self.phases)


def read_log_csv(path: str | Path) -> pd.DataFrame:
    """Read a CSV file, plain or compressed, into the same frame as `read_xes`; other columns are
    ignored.

    The header names the columns as in XES, or by usual names such as "Case ID", "Activity" and
    "Timestamp". Times are ISO 8601; those without an offset are in UTC. For other tables use
    `pandas.read_csv` and rename the columns: a log is any DataFrame with these columns.

    Rows without case, activity or time, or with an unreadable time, are skipped and counted. Raises
    DataFormatError if a column is missing, a row does not fit the header, the file is empty or not
    UTF-8, or no row has all three.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     _ = file.write("Case ID;Activity;Complete Timestamp\\n")
    ...     _ = file.write("7;register;2022-08-03 10:00:00\\n"), file.flush()
    ...     log = read_log_csv(file.name)
    >>> log.iloc[0].map(str).tolist()
    ['7', 'register', '2022-08-03 10:00:00+00:00']
    """
    wanted = dict.fromkeys(ROLES)
    blocks = table_blocks(
        path, wanted, remedy="name it by a header such as case,activity,timestamp"
    )
    table = pa.concat_tables(
        [rows.table.cast(pa.schema([(role, pa.string()) for role in ROLES])) for rows in blocks]
    )
    events = pd.DataFrame(
        {ROLES[role]: pyarrow.compute.fill_null(table[role], "").to_pandas() for role in wanted}
    )
    remedy = "check the file, or read it by pandas.read_csv"
    return _as_log(path, "row", events, partial(line_of, path=path, wanted=wanted), remedy)


def _as_log(
    path: str | Path,
    unit: str,
    events: pd.DataFrame,
    line: Callable[[int], int],
    remedy: str,
    **more: Any,
) -> pd.DataFrame:
    """The log of a file's `events`, rows of texts: case, activity and time, each of which may be
    empty.

    `line` gives the line of an event in the file; messages call an event `unit`. Events with a
    defect are counted and left out; DataFormatError with the `remedy` if no event is valid. `more`
    are attributes of the log.
    """
    times, _ = parse_times(texts_of(events[TIMESTAMP]))
    defects = Defects()

    def place(rows: np.ndarray) -> Place:
        return path, line(int(rows[0]))

    lacking = {f"{unit} without {name}": events[name] == "" for name in COLUMNS}
    lacking[f"{unit} with an unreadable {TIMESTAMP}"] = np.isnat(times)
    good = np.ones(len(events), dtype=bool)
    for reason, lacks in lacking.items():
        bad = np.flatnonzero(lacks & good)
        defects.known(reason, bad.size, partial(place, bad))
        good[bad] = False
    if not good.any():
        reasons = [f"{count} times {reason}" for reason, count in defects.skipped.items()]
        found = ", ".join(reasons) or f"no {unit}s"
        raise DataFormatError(
            f"no {unit} has a case, an activity and a readable time ({found}); {remedy}", path
        )
    rows = np.flatnonzero(good)
    cases = pd.factorize(events[CASE])[0][rows]
    times = times[rows]
    in_file = np.argsort(cases, kind="stable")
    back = (np.diff(cases[in_file]) == 0) & (times[in_file][1:] < times[in_file][:-1])
    order = np.lexsort((times, cases))
    frame = events[[CASE, ACTIVITY]].take(rows[order]).reset_index(drop=True)
    frame[TIMESTAMP] = pd.DatetimeIndex(times[order], tz="UTC")
    return finish(frame, path, defects, reordered=int(back.sum()), **more)


class _Parser:
    """One pass over one file."""

    def __init__(self, path: str | Path):
        self.path = path
        self.names: list[str] = []  # of the traces so far; may be empty
        self.phases: set[str] = set()  # of activities, such as start and complete
        self.met: list[tuple[int, str, str, int]] = []  # parsed events that were not yielded yet
        # open log, trace and event with their attributes
        self.open: list[tuple[str, dict[str, str]]] = [("", {})]
        self.nested = 0  # number of open elements inside them
        self.expat = ParserCreate(namespace_separator=" ")
        self.expat.StartElementHandler = self._start
        self.expat.EndElementHandler = self._end
        self.expat.StartDoctypeDeclHandler = self._refuse

    def events(self) -> Iterator[tuple[int, str, str, int]]:
        """Of each event: number of its trace from 0, activity, time as text as in the file (both ""
        if absent), and the line where it ends. `names` is complete after the last event."""
        fed = 0
        head = b""
        for block in chain(
            file_blocks(self.path, lambda: self.expat.CurrentLineNumber, READ_BYTES), [b""]
        ):
            head = head or block[:4096]
            fed += len(block)
            try:
                self.expat.Parse(block, not block)
            except DataFormatError:
                raise
            # LookupError, ValueError: unknown encodings
            except (ExpatError, LookupError, ValueError) as error:
                found = _described(str(error), head, not block)
                raise self._error(
                    f"expected an XES event log, found {found}", "mend it or download it again"
                ) from None
            if fed - self.expat.CurrentByteIndex > LONGEST_TAG_BYTES:
                raise self._error(
                    f"an element must be at most {LONGEST_TAG_BYTES >> 20} MiB long, found a "
                    "longer one"
                )
            yield from self.met
            self.met = []

    def _error(
        self, problem: str, remedy: str = "check that this is the right file"
    ) -> DataFormatError:
        return DataFormatError(f"{problem}; {remedy}", self.path, self.expat.CurrentLineNumber)

    def _refuse(self, *_):
        raise self._error(
            "an XES log must not declare a document type or entities, found such a declaration",
            "it could expand without bound or read other files: remove it if you trust the file",
        )

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        """Note an element that begins: the log, a trace, an event, or an attribute of one of
        these."""
        tag = name.rpartition(" ")[2]
        parent, _ = self.open[-1]
        if tag in PARENTS or not parent:
            self._open_element(tag, parent)
            return
        self.nested += 1
        if self.nested > DEEPEST:
            raise self._error(f"elements must not be nested more than {DEEPEST} deep, found more")
        if self.nested == 1:
            self._note_attribute(attributes)

    def _open_element(self, tag: str, parent: str) -> None:
        """Enter the log, a trace or an event."""
        if self.nested or PARENTS.get(tag) != parent:
            raise self._error(
                "expected an XES event log, with events in traces and these in the outermost "
                f"element <log>, found <{tag}> in <{parent}>"
            )
        self.open.append((tag, {}))

    def _note_attribute(self, attributes: dict[str, str]) -> None:
        """Keep an attribute of the trace or event that is open, if it is one that counts."""
        parent, found = self.open[-1]
        key = attributes.get("key")
        if key in found:
            raise self._error(f"<{parent}> must have one {key}, found two", "leave one of them out")
        if key in (ACTIVITY, TIMESTAMP):
            found[key] = attributes.get("value", "")
        elif key == PHASE:
            self.phases.add(attributes.get("value", "").lower())

    def _end(self, _name: str) -> None:
        if self.nested:
            self.nested -= 1
            return
        tag, found = self.open.pop()
        if tag == "event":
            activity = found.get(ACTIVITY, "")
            time = found.get(TIMESTAMP, "")
            self.met.append((len(self.names), activity, time, self.expat.CurrentLineNumber))
        elif tag == "trace":
            self.names.append(found.get(ACTIVITY, ""))  # the name may follow the events


def _described(error: str, head: bytes, at_end: bool) -> str:
    """What a file seems to be instead of a log, by the parser's message and its first bytes;
    `at_end`: the parser wants more after the last byte."""
    is_xml = head.lstrip(b"\xef\xbb\xbf \r\n\t")[:1] == b"<"
    if is_xml or head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        words = f"XML with {error.partition(': line ')[0]}"
        if at_end:
            words += ": the file ends early"
        return words
    if not head:
        return "an empty file"
    return describe_content(head)


def _labels(names: list[str]) -> list[str]:
    """The names of cases; the 17th case without a name becomes "trace 17", or "trace 17'" if that
    name is taken."""
    unnamed = [number for number, name in enumerate(names, 1) if not name]
    mark = ""
    while not {f"trace {number}{mark}" for number in unnamed}.isdisjoint(names):
        mark += "'"
    return [name or f"trace {number}{mark}" for number, name in enumerate(names, 1)]
