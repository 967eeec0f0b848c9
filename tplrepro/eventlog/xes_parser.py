"""Parsing XES safely and in constant memory: blocks of a file in, events out.

Safety. The parser is expat, fed block by block. A file with a document type declaration is refused before any entity
is declared, so that entities can neither be expanded (billion laughs) nor fetched from elsewhere; XES has no document
types. That refusal is all that defusedxml would add here, so it is not needed. Elements may neither be long without
bound nor nested without bound.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pyexpat import ErrorString, ExpatError, ParserCreate

from tplrepro.datasets.reading import DataFormatError, describe_content
from tplrepro.eventlog.log import ACTIVITY, TIMESTAMP

__all__ = ["XesParser"]

READ_BYTES = 1 << 18
LONGEST_TAG_BYTES = 8 << 20
DEEPEST = 10_000


class XesParser:
    """One pass over one file; `pieces` yields its events, the counts are right when it is exhausted.

    Parameters
    ----------
    path : path-like, plain or gzip-compressed
    piece : int, about how many events to yield at once
    progress : bool

    Attributes
    ----------
    case_names : list of str, grows as cases appear; an event's case is a position in it
    traces, unnamed, empty, repeated : int
        Traces so far; those without a name, without events, and with the name of an earlier one.
    """

    def __init__(self, path, piece: int, progress: bool = False):
        self.path = path
        self.piece = piece
        self.progress = progress
        self.case_names: list[str] = []
        self.case_codes: dict[str, int] = {}
        self.traces = self.unnamed = self.empty = self.repeated = 0
        self.depth = 0
        self.trace_depth = self.event_depth = 0  # 0: outside of one
        self.pending: list[tuple[str | None, str | None, int]] = []  # (activity, time, line) of the open trace
        self.rows: list[tuple[int, str | None, str | None, int]] = []  # (case, activity, time, line) to be yielded
        self.case: str | None = None
        self.case_code = -1
        self.parser = parser = ParserCreate(namespace_separator=" ")
        parser.ordered_attributes = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.StartDoctypeDeclHandler = self._refuse
        parser.EntityDeclHandler = self._refuse
        parser.ExternalEntityRefHandler = self._refuse

    def pieces(self) -> Iterator[list[tuple[int, str | None, str | None, int]]]:
        """Lists of events (case, activity, time as written, line); activity and time are None where absent.

        Raises
        ------
        DataFormatError
            The file is not XES, declares a document type, is damaged or ends early.
        OSError
            The file cannot be opened.
        """
        from tqdm import tqdm

        fed, head = 0, b""
        with open(self.path, "rb") as raw:
            size = raw.seek(0, 2)
            raw.seek(0)
            compressed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            stream = gzip.GzipFile(fileobj=raw) if compressed else raw
            with tqdm(total=size, unit="B", unit_scale=True, desc="reading", disable=not self.progress) as bar:
                block = b"more"
                while block:
                    block = self._read(stream)
                    head = head or block[:4096]
                    fed += len(block)
                    self._feed(block, head)
                    if fed - self.parser.CurrentByteIndex > LONGEST_TAG_BYTES:
                        raise self._error(
                            f"an element must not be longer than {LONGEST_TAG_BYTES >> 20} MiB, found a longer one; "
                            "check that this is the right file"
                        )
                    bar.update(raw.tell() - bar.n)
                    if len(self.rows) >= self.piece or (not block and self.rows):
                        rows, self.rows = self.rows, []
                        yield rows

    def _read(self, stream) -> bytes:
        try:
            return stream.read(READ_BYTES)
        except EOFError:
            problem = "the compressed file ends early; download it again"
        except (gzip.BadGzipFile, zlib.error) as error:
            problem = f"the compressed file is damaged ({error}); download it again"
        raise self._error(problem) from None

    def _feed(self, block: bytes, head: bytes) -> None:
        try:
            self.parser.Parse(block, not block)
        except ExpatError as error:
            what = ErrorString(error.code)
            if not head:
                problem = "expected an XES event log, found an empty file; download it again"
            elif not block:
                problem = f"the file ends early ({what}), perhaps because a download was cut; download it again"
            elif head.lstrip(b"\xef\xbb\xbf \r\n\t")[:1] != b"<" and head[:2] not in (b"\xff\xfe", b"\xfe\xff"):
                problem = f"expected an XES event log, found {describe_content(head)}; check the file"
            else:
                problem = f"expected well-formed XML, found: {what}; mend the file or export the log again"
            raise DataFormatError(problem, self.path, error.lineno) from None

    def _error(self, problem: str) -> DataFormatError:
        return DataFormatError(problem, self.path, self.parser.CurrentLineNumber)

    def _refuse(self, *_):
        raise self._error(
            "an XES log must not declare a document type or entities, found such a declaration, which could expand "
            "without bound or read other files; remove it if you trust the file"
        )

    def _start(self, name, attributes):
        self.depth += 1
        if self.depth > DEEPEST:
            raise self._error(
                f"elements must not be nested more than {DEEPEST} deep, found more; check that this is the right file"
            )
        tag = name.rpartition(" ")[2]
        if self.event_depth:
            if self.depth == self.event_depth + 1:  # deeper ones are nested in attributes
                key = value = None
                for k in range(0, len(attributes), 2):
                    if attributes[k] == "key":
                        key = attributes[k + 1]
                    elif attributes[k] == "value":
                        value = attributes[k + 1]
                if key == ACTIVITY:
                    self.activity = value
                elif key == TIMESTAMP:
                    self.time = value
        elif self.trace_depth:
            if self.depth != self.trace_depth + 1:
                return
            if tag == "event":
                self.event_depth = self.depth
                self.activity = self.time = None
            else:
                found = dict(zip(attributes[::2], attributes[1::2], strict=True))
                if found.get("key") == ACTIVITY:
                    self.case = found.get("value")
        elif self.depth == 1 and tag != "log":
            raise self._error(
                f"expected an XES event log, whose outermost element is <log>, found <{tag}>; "
                "check that this is the right file"
            )
        elif tag == "trace" and self.depth == 2:
            self.trace_depth = self.depth
            self.case, self.case_code = None, -1

    def _end(self, name):
        if self.depth == self.event_depth:
            self.event_depth = 0
            self.pending.append((self.activity, self.time, self.parser.CurrentLineNumber))
            if len(self.pending) >= self.piece and self.case is not None:
                self._take(last=False)
        elif self.depth == self.trace_depth:
            self.trace_depth = 0
            self._take(last=True)
        self.depth -= 1

    def _take(self, last: bool) -> None:
        """Move the events of the open trace to `rows`; its name may stand after them, so not before the trace ends."""
        if self.case_code < 0:
            self.traces += 1
            name = self.case
            if not name:
                self.unnamed += 1
                name = f"trace {self.traces}"
            code = self.case_codes.setdefault(name, len(self.case_names))
            if code == len(self.case_names):
                self.case_names.append(name)
            else:
                self.repeated += 1
            self.case_code = code
            if last and not self.pending:
                self.empty += 1
        for activity, time, line in self.pending:
            self.rows.append((self.case_code, activity, time, line))
        self.pending = []
