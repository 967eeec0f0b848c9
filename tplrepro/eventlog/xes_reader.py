"""Reading XES, the XML format of event logs (IEEE 1849), safely and in bounded memory.

Files may be plain or gzip-compressed (told by the content), with or without the XES namespace, by any writer: ProM,
Disco, pm4py. Of a trace its `concept:name` is taken, of an event `concept:name` and `time:timestamp`; attributes nested
in other attributes, globals, classifiers and extensions are passed over.

The parser is expat, fed block by block; what is kept of an event are 25 bytes, besides the frame made of them. A file
with a document type declaration is refused before any entity is declared, so that entities can neither be expanded
(billion laughs) nor fetched from elsewhere: all that defusedxml would add here. Elements may neither be long without
bound nor nested without bound.
"""

from array import array
from itertools import chain
from pathlib import Path
from pyexpat import ErrorString, ExpatError, ParserCreate

import numpy as np
import pandas as pd

from tplrepro.datasets.reading import DataFormatError, describe_content, file_blocks
from tplrepro.eventlog.log import ACTIVITY, NO_TIME, TIMESTAMP, as_log, microseconds

__all__ = ["read_xes"]

READ_BYTES = 1 << 18
LONGEST_TAG_BYTES = 8 << 20
DEEPEST = 10_000
#: Times are converted so many at once: as texts they would take several times the memory.
EVENTS_AT_ONCE = 1 << 16


def read_xes(path: str | Path, *, strict: bool = False) -> pd.DataFrame:
    """Read an XES log, .xes or .xes.gz, into a frame with one event a row.

    With `strict`, an event without a name or a time, or out of order, is an error instead of being counted.
    DataFormatError if the file is not XES, declares a document type, ends early, or holds no event with name and time.

    Returns
    -------
    DataFrame
        case:concept:name : str, the case; a trace without a name is called by its position, "trace 17";
        concept:name : str, the activity; time:timestamp : datetime64[us, UTC].
        Cases stand in the order of the file, the events of a case in the order of their times. ``attrs``: source,
        synthetic, skipped and skipped_examples (events without a name or a time, by reason), reordered (events whose
        time precedes that of the event before), unnamed_cases, empty_cases, repeated_cases (traces whose name an
        earlier trace has; they count as one case).

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
    parser = _Parser(path)
    parser.parse()

    def place(event: int) -> tuple[int, str]:
        activity = [None, *parser.activity_codes][parser.activities[event] + 1]
        time = parser.unreadable.get(event) or str(np.datetime64(parser.times[event], "us"))
        return parser.lines[event], f"activity {activity!r}, time {time!r}"

    return as_log(
        path,
        _names(parser.cases, parser.case_codes),
        _names(parser.activities, parser.activity_codes),
        np.frombuffer(parser.times, dtype=np.int64),
        np.frombuffer(parser.timed, dtype=bool),
        unit="event",
        strict=strict,
        place=place,
        remedy=f"check that the export of these {parser.traces} traces took their events and times along",
        unnamed_cases=parser.unnamed,
        empty_cases=parser.empty,
        repeated_cases=parser.traces - len(parser.case_codes),
    )


def _names(codes: array, names: dict[str, int]) -> pd.Categorical:
    return pd.Categorical.from_codes(np.frombuffer(codes, dtype=np.int32), pd.Index(list(names), dtype=str))


class _Parser:
    """One pass over one file; afterwards the arrays hold its events, in the order of the file."""

    def __init__(self, path: str | Path):
        self.path = path
        self.case_codes: dict[str, int] = {}  # by name, in the order in which names are first met
        self.activity_codes: dict[str, int] = {}
        self.cases, self.activities = array("i"), array("i")  # these numbers; -1 for an event without a name
        self.times, self.lines = array("q"), array("q")  # microseconds or `NO_TIME`
        self.timed = bytearray()  # whether a time is written at all
        self.unreadable: dict[int, str] = {}  # the first time that cannot be read, by its event
        self.traces = self.unnamed = self.empty = 0  # all, those without a name, those without events
        self.depth = 0
        self.in_trace = self.in_event = False
        self.case: str | None = None
        self.activity: str | None = None
        self.time: str | None = None
        self.texts: list[str | None] = []  # times that are still to be converted
        self.expat = ParserCreate(namespace_separator=" ")
        self.expat.StartElementHandler = self._start
        self.expat.EndElementHandler = self._end
        self.expat.StartDoctypeDeclHandler = self._refuse
        self.expat.EntityDeclHandler = self._refuse
        self.expat.ExternalEntityRefHandler = self._refuse

    def parse(self) -> None:
        fed, head = 0, b""
        for block in chain(file_blocks(self.path, lambda: self.expat.CurrentLineNumber, READ_BYTES), [b""]):
            head = head or block[:4096]
            fed += len(block)
            try:
                self.expat.Parse(block, not block)
            except ExpatError as error:
                raise DataFormatError(_explained(error, head, not block), self.path, error.lineno) from None
            if fed - self.expat.CurrentByteIndex > LONGEST_TAG_BYTES:
                raise self._error(f"an element must be at most {LONGEST_TAG_BYTES >> 20} MiB long, found a longer one")
        self._convert_times()

    def _error(self, problem: str, remedy: str = "check that this is the right file") -> DataFormatError:
        return DataFormatError(f"{problem}; {remedy}", self.path, self.expat.CurrentLineNumber)

    def _refuse(self, *_):
        problem = "an XES log must not declare a document type or entities, found such a declaration"
        remedy = "it could expand without bound or read other files: remove it if you trust the file"
        raise self._error(problem, remedy)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self.depth += 1
        if self.depth == 4 and self.in_event:  # deeper ones are nested in attributes
            key = attributes.get("key")
            if key == ACTIVITY:
                self.activity = attributes.get("value")
            elif key == TIMESTAMP:
                self.time = attributes.get("value")
        elif self.depth == 3 and self.in_trace:
            self.in_event = name.rpartition(" ")[2] == "event"
            if self.in_event:
                self.activity = self.time = None
            elif attributes.get("key") == ACTIVITY:
                self.case = attributes.get("value")
        elif self.depth == 2:
            self.in_trace = name.rpartition(" ")[2] == "trace"
            self.case = None
        elif self.depth == 1 and (tag := name.rpartition(" ")[2]) != "log":
            raise self._error(f"expected an XES event log, whose outermost element is <log>, found <{tag}>")
        elif self.depth > DEEPEST:
            raise self._error(f"elements must not be nested more than {DEEPEST} deep, found more")

    def _end(self, _name: str) -> None:
        if self.depth == 3 and self.in_event:
            self.in_event = False
            name = self.activity
            self.activities.append(self.activity_codes.setdefault(name, len(self.activity_codes)) if name else -1)
            self.lines.append(self.expat.CurrentLineNumber)
            self.texts.append(self.time)
            if len(self.texts) >= EVENTS_AT_ONCE:
                self._convert_times()
        elif self.depth == 2 and self.in_trace:
            self.in_trace = False
            self._end_trace()
        self.depth -= 1

    def _end_trace(self) -> None:
        """Name the case of the events since the last trace: its name may stand after them."""
        self.traces += 1
        self.unnamed += not self.case
        code = self.case_codes.setdefault(self.case or f"trace {self.traces}", len(self.case_codes))
        events = len(self.activities) - len(self.cases)
        self.cases.extend([code] * events)
        self.empty += not events

    def _convert_times(self) -> None:
        first, times = len(self.times), microseconds(self.texts)
        self.times.frombytes(times.tobytes())
        self.timed.extend(text is not None for text in self.texts)
        for k in np.flatnonzero(times == NO_TIME).tolist():
            text = self.texts[k]
            if text is not None and self.activities[first + k] >= 0 and not self.unreadable:
                self.unreadable[first + k] = text
        self.texts = []


def _explained(error: ExpatError, head: bytes, at_end: bool) -> str:
    what = ErrorString(error.code)
    if not head:
        return "expected an XES event log, found an empty file; download it again"
    if at_end:
        return f"the file ends early ({what}), perhaps because a download was cut; download it again"
    if head.lstrip(b"\xef\xbb\xbf \r\n\t")[:1] != b"<" and head[:2] not in (b"\xff\xfe", b"\xfe\xff"):
        return f"expected an XES event log, found {describe_content(head)}; check the file"
    return f"expected well-formed XML, found: {what}; mend the file or export the log again"
