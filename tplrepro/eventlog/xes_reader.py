"""Reading XES, the XML format of event logs (IEEE 1849), safely and in bounded memory.

Files may be plain or gzip-compressed, with or without the XES namespace, by any writer: ProM, Disco, pm4py.
The reader uses `concept:name` of a trace, and `concept:name` and `time:timestamp` of an event; it ignores
nested attributes, globals, classifiers and extensions.

The parser is expat, fed in blocks; an event takes about 240 bytes at most, regardless of the length of its
trace. A file with a document type declaration is refused before any entity is declared, so entities can
neither be expanded (billion laughs) nor fetched; defusedxml would add nothing here. The length and nesting of
elements are limited.
"""

from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from pyexpat import ExpatError, ParserCreate

import numpy as np
import pandas as pd

from tplrepro.datasets.reading import DataFormatError, describe_content, file_blocks
from tplrepro.eventlog.events import as_log
from tplrepro.eventlog.log import ACTIVITY, CASE, TIMESTAMP

READ_BYTES = 1 << 18
LONGEST_TAG_BYTES = 8 << 20
DEEPEST = 10_000
EVENTS_AT_ONCE = 1 << 14  # converted into columns; as Python objects they take several times the memory
PARENTS = {"log": "", "trace": "log", "event": "trace"}


def read_xes(path: str | Path, *, strict: bool = False) -> pd.DataFrame:
    """Read an XES log, .xes or .xes.gz, into a frame with one event a row.

    With `strict`, an event without a name or a time, or out of order, is an error instead of being counted.
    Raises DataFormatError if the file is not XES, declares a document type, ends early, or has no event with
    name and time.

    Returns
    -------
    DataFrame
        case:concept:name : str, the case; a trace without a name is called "trace 17" by its position;
        concept:name : str, the activity; time:timestamp : datetime64[us, UTC], or [ns, UTC] if a time has
        nanoseconds.
        Cases are in the order of the file, the events of a case in the order of their times. ``attrs``:
        source, synthetic, skipped and skipped_examples (events without a name or a time, by reason),
        reordered (events out of order), unnamed_cases, empty_cases, repeated_cases (traces with the name of
        an earlier trace; they count as one case).

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
    remedy = "check that the export of the traces took their events and times along"
    events = parser.events()
    batches = iter(lambda: list(islice(events, EVENTS_AT_ONCE)), [])
    columns = {"number": np.int32, ACTIVITY: str, TIMESTAMP: str, "line": np.int32}
    parts = [pd.DataFrame(batch, columns=[*columns]).astype(columns) for batch in chain(batches, [[]])]
    table = pd.concat(parts, ignore_index=True)
    del parts
    lines = table.pop("line").to_numpy()
    table[CASE] = pd.array(_labels(parser.names), dtype=str).take(table.pop("number").to_numpy())
    log = as_log(path, "event", table, lambda row: int(lines[row]), strict=strict, remedy=remedy)
    named = [name for name in parser.names if name]
    log.attrs |= {
        "unnamed_cases": len(parser.names) - len(named),
        "empty_cases": parser.empty,
        "repeated_cases": len(named) - len(set(named)),
    }
    return log


class _Parser:
    """One pass over one file."""

    def __init__(self, path: str | Path):
        self.path = path
        self.names: list[str] = []  # of the traces so far; may be empty
        self.empty = 0  # traces without events
        self.met: list[tuple[int, str, str, int]] = []  # parsed events that were not yielded yet
        self.open: list[tuple[str, dict[str, str]]] = [("", {})]  # open log, trace and event with their attributes
        self.nested = 0  # number of open elements inside them
        self.expat = ParserCreate(namespace_separator=" ")
        self.expat.StartElementHandler = self._start
        self.expat.EndElementHandler = self._end
        self.expat.StartDoctypeDeclHandler = self._refuse

    def events(self) -> Iterator[tuple[int, str, str, int]]:
        """Number of the trace, activity, time and line of each event; `names` is complete after the last event."""
        fed, head = 0, b""
        for block in chain(file_blocks(self.path, lambda: self.expat.CurrentLineNumber, READ_BYTES), [b""]):
            head = head or block[:4096]
            fed += len(block)
            try:
                self.expat.Parse(block, not block)
            except DataFormatError:
                raise
            except (ExpatError, LookupError, ValueError) as error:  # LookupError, ValueError: unknown encodings
                found = _described(str(error), head, not block)
                raise self._error(f"expected an XES event log, found {found}", "mend it or download it again") from None
            if fed - self.expat.CurrentByteIndex > LONGEST_TAG_BYTES:
                raise self._error(f"an element must be at most {LONGEST_TAG_BYTES >> 20} MiB long, found a longer one")
            yield from self.met
            self.met = []

    def _error(self, problem: str, remedy: str = "check that this is the right file") -> DataFormatError:
        return DataFormatError(f"{problem}; {remedy}", self.path, self.expat.CurrentLineNumber)

    def _refuse(self, *_):
        raise self._error(
            "an XES log must not declare a document type or entities, found such a declaration",
            "it could expand without bound or read other files: remove it if you trust the file",
        )

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        tag, (parent, found) = name.rpartition(" ")[2], self.open[-1]
        if tag in PARENTS or not parent:
            if self.nested or PARENTS.get(tag) != parent:
                raise self._error(
                    "expected an XES event log, with events in traces and these in the outermost element <log>, "
                    f"found <{tag}> in <{parent}>"
                )
            self.open.append((tag, {}))
            return
        self.nested += 1
        if self.nested == 1:
            key = attributes.get("key")
            if key in (ACTIVITY, TIMESTAMP):
                if key in found:
                    raise self._error(f"<{parent}> must have one {key}, found two", "leave one of them out")
                found[key] = attributes.get("value", "")
        elif self.nested > DEEPEST:
            raise self._error(f"elements must not be nested more than {DEEPEST} deep, found more")

    def _end(self, _name: str) -> None:
        if self.nested:
            self.nested -= 1
            return
        tag, found = self.open.pop()
        if tag == "event":
            self.open[-1][1]["event"] = "found"
            activity, time = found.get(ACTIVITY, ""), found.get(TIMESTAMP, "")
            self.met.append((len(self.names), activity, time, self.expat.CurrentLineNumber))
        elif tag == "trace":
            self.empty += "event" not in found
            self.names.append(found.get(ACTIVITY, ""))  # the name may follow the events


def _described(error: str, head: bytes, at_end: bool) -> str:
    if head.lstrip(b"\xef\xbb\xbf \r\n\t")[:1] == b"<" or head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return f"XML with {error.partition(': line ')[0]}" + (": the file ends early" if at_end else "")
    return describe_content(head) if head else "an empty file"


def _labels(names: list[str]) -> list[str]:
    """The names of cases; the 17th case without a name becomes "trace 17", or "trace 17'" if that name is taken."""
    unnamed, mark = [number for number, name in enumerate(names, 1) if not name], ""
    while not {f"trace {number}{mark}" for number in unnamed}.isdisjoint(names):
        mark += "'"
    return [name or f"trace {number}{mark}" for number, name in enumerate(names, 1)]
