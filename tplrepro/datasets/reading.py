"""Reading lines of official files: blocks, defects that are counted or raised, and errors that name file and line.

The contract of all readers in this folder:

- A *known defect*, one that the published sets are known to hold (a latitude of 400, a clock set wrong, two points at
  the same second), is skipped and counted in ``df.attrs["skipped"]``, with the place of the first one in
  ``df.attrs["skipped_examples"]``. ``strict=True`` makes it an error.
- A *malformed line*, one that does not follow the format, is an error that names file and line, unless the caller
  allows some of them with ``max_malformed``; those are counted too.
- A file that ends early, is of another set, cannot be opened or cannot be decoded is always an error.

Lines are parsed by pyarrow, a block at a time. Only if a block fails is it searched, by halving, for the lines
to blame, so that good files pay nothing for exact messages.
"""

from __future__ import annotations

import gzip
import json
import warnings
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv

__all__ = [
    "DataFormatError",
    "Defects",
    "describe_content",
    "line_blocks",
    "parse_lines",
    "parse_table",
    "read_marker",
    "time_limit",
]

BLOCK_BYTES = 16 << 20
LONGEST_LINE_BYTES = 64 << 20


class DataFormatError(ValueError):
    """A file does not follow its format; the message names the file, the line and the remedy.

    Attributes
    ----------
    file : str
    line : int or None
        Counted from 1.
    """

    def __init__(self, problem: str, file, line: int | None = None):
        self.file = str(file)
        self.line = line
        where = self.file if line is None else f"{self.file}, line {line}"
        super().__init__(f"{where}: {problem}")


class Defects:
    """Counts what a reader leaves out, and raises instead where the caller asked for that.

    Parameters
    ----------
    strict : bool
        Raise at the first defect of any kind.
    max_malformed : int
        How many lines that do not follow the format may be skipped.
    expected : str
        The format, for messages: "seven fields: latitude, ...".
    """

    def __init__(self, strict: bool, max_malformed: int, expected: str):
        if max_malformed < 0:
            raise ValueError(f"max_malformed must be at least 0, found {max_malformed}; give a number of lines")
        self.strict = strict
        self.max_malformed = 0 if strict else max_malformed
        self.expected = expected
        self.skipped: dict[str, int] = {}
        self.examples: dict[str, str] = {}
        self.reordered = 0

    def known(self, reason: str, count: int, file, place: Callable[[], tuple[int | None, object]]) -> None:
        """Count `count` rows under `reason`; `place` gives line and content of the first one, asked for only then."""
        if not count:
            return
        if self.strict or reason not in self.examples:
            line, content = place()
            if self.strict:
                raise DataFormatError(
                    f"{reason}, found {_quote(content)}; pass strict=False to skip and count such lines", file, line
                )
            self.examples[reason] = str(file) if line is None else f"{file}, line {line}"
        self.skipped[reason] = self.skipped.get(reason, 0) + int(count)

    def malformed(self, file, line: int, content: bytes) -> None:
        """Count one line that does not follow the format, or raise if no more are allowed."""
        reason = "malformed line"
        count = self.skipped.get(reason, 0) + 1
        if count > self.max_malformed:
            more = f"; {count - 1} malformed lines were skipped before" if count > 1 else ""
            raise DataFormatError(
                f"expected {self.expected}, found {_quote(content)}{more}; mend the line or the download, or pass "
                f"max_malformed={max(10 * count, 100)} and strict=False to skip and count such lines",
                file,
                line,
            )
        self.examples.setdefault(reason, f"{file}, line {line}")
        self.skipped[reason] = count

    def out_of_order(self, count: int, file, place: Callable[[], tuple[int | None, object]]) -> None:
        """Note rows whose time precedes that of the row before; they are sorted, not skipped."""
        if count and self.strict:
            line, content = place()
            raise DataFormatError(
                f"times must be in order, found {_quote(content)} after a row on its wrong side; "
                "pass strict=False to have the rows sorted",
                file,
                line,
            )
        self.reordered += int(count)

    def merge(self, other: Defects) -> None:
        """Add the counts of a reader of another file."""
        for reason, count in other.skipped.items():
            self.skipped[reason] = self.skipped.get(reason, 0) + count
            self.examples.setdefault(reason, other.examples[reason])
        self.reordered += other.reordered

    def attrs(self) -> dict:
        """What a DataFrame carries of this."""
        return {
            "skipped": dict(self.skipped),
            "skipped_examples": dict(self.examples),
            "reordered": self.reordered,
        }


def time_limit(value, name: str) -> pd.Timestamp | None:
    """A limit on times as a UTC timestamp; naive values are read as UTC, None stays None."""
    if value is None:
        return None
    try:
        stamp = pd.Timestamp(value)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} must be a date or a time, found {value!r} ({error}); give one such as '2012-12-31'"
        ) from None
    if stamp is pd.NaT:
        raise ValueError(f"{name} must be a date or a time, found {value!r}; give one such as '2012-12-31'")
    return stamp.tz_localize("UTC") if stamp.tzinfo is None else stamp.tz_convert("UTC")


def line_blocks(path, block_bytes: int = BLOCK_BYTES) -> Iterator[tuple[bytes, int]]:
    """Whole lines of a text file, plain or gzip-compressed, in blocks of about `block_bytes`.

    Compression is told by the content, not by the name.

    Yields
    ------
    block : bytes
        Ends in a line end, except possibly the last one.
    first_line : int
        Number of its first line, counted from 1.

    Raises
    ------
    DataFormatError
        The compressed stream ends early or is damaged, or a line is longer than 64 MiB.
    OSError
        The file cannot be opened.
    """
    with open(path, "rb") as raw:
        compressed = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        stream = gzip.GzipFile(fileobj=raw) if compressed else raw
        rest = b""
        first_line = 1
        while True:
            try:
                data = stream.read(block_bytes)
            except EOFError:
                line = first_line + rest.count(b"\n")
                raise DataFormatError("the compressed file ends early; download it again", path, line) from None
            except (gzip.BadGzipFile, zlib.error) as error:
                line = first_line + rest.count(b"\n")
                raise DataFormatError(
                    f"the compressed file is damaged ({error}); download it again", path, line
                ) from None
            if not data:
                break
            cut = data.rfind(b"\n") + 1
            if not cut:
                rest += data
                if len(rest) > LONGEST_LINE_BYTES:
                    raise DataFormatError(
                        f"a line must not be longer than {LONGEST_LINE_BYTES >> 20} MiB, found "
                        f"{describe_content(rest)}; check that this is the right file",
                        path,
                        first_line,
                    )
                continue
            block = rest + data[:cut]
            rest = data[cut:]
            yield block, first_line
            first_line += block.count(b"\n")
        if rest:
            yield rest, first_line


def parse_table(
    block: bytes,
    columns: dict[str, pa.DataType | None],
    delimiter: str,
    times: str | None = None,
    empty_is_null: bool = False,
) -> pa.Table:
    """Parse lines into columns with pyarrow; columns of type None are passed over.

    Quotes have no meaning, so that each line stands for itself.
    """
    wanted = {name: kind for name, kind in columns.items() if kind is not None}
    return pa.csv.read_csv(
        pa.BufferReader(block),
        pa.csv.ReadOptions(column_names=list(columns), use_threads=False, block_size=max(len(block), 1)),
        pa.csv.ParseOptions(delimiter=delimiter, quote_char=False),
        pa.csv.ConvertOptions(
            column_types=wanted,
            include_columns=list(wanted),
            null_values=[""] if empty_is_null else [],
            strings_can_be_null=empty_is_null,
            timestamp_parsers=[times] if times else None,
        ),
    )


def parse_lines(
    block: bytes,
    first_line: int,
    file,
    parse: Callable[[bytes], object],
    defects: Defects,
    encoding: str = "ascii",
):
    """`parse(block)`; lines that it rejects go to `defects` and are blanked, so that line numbers stay.

    Returns
    -------
    parsed, block, rejected
        What `parse` gave, the block that it was given at last, and the indices of the lines blanked in it.
    """
    fits = block.isascii() if encoding == "ascii" else _decodes(block)
    if fits:
        try:
            return parse(block), block, []
        except pa.ArrowInvalid:
            pass
    lines = block.splitlines()
    rejected = []
    for i in _rejected(list(lines), parse, encoding):
        if first_line + i == 1:
            raise DataFormatError(
                f"expected {defects.expected}, found {describe_content(block)} that begins with {_quote(lines[i])}; "
                "check that this is the right file, with its columns in the official order",
                file,
                1,
            )
        defects.malformed(file, first_line + i, lines[i])
        lines[i] = b""
        rejected.append(i)
    block = b"\n".join(lines) + b"\n"
    return parse(block), block, rejected


def _rejected(lines: list[bytes], parse, encoding: str) -> Iterator[int]:
    """Indices of the lines that `parse` rejects, in order, found by halving."""
    stack = [(0, len(lines))]
    while stack:
        start, stop = stack.pop()
        part = b"\n".join(lines[start:stop]) + b"\n"
        try:
            if not (part.isascii() if encoding == "ascii" else _decodes(part)):
                raise pa.ArrowInvalid("cannot be decoded")
            parse(part)
        except pa.ArrowInvalid:
            if stop - start == 1:
                yield start
            else:
                middle = (start + stop) // 2
                stack += [(middle, stop), (start, middle)]


def warn_unterminated(block: bytes, first_line: int, file, strict: bool) -> None:
    """Say that the last line has no end, which a cut file has in common with some hand-made ones."""
    if not block or block.endswith((b"\n", b"\r")):
        return
    line = first_line + block.count(b"\n")
    if strict:
        raise DataFormatError("the last line has no end, so the file may have been cut; download it again", file, line)
    warnings.warn(
        f"{file}, line {line}: the last line has no end, so the file may have been cut", UserWarning, stacklevel=2
    )


def line_of_row(block: bytes, row: int, first_line: int) -> tuple[int, str]:
    """Line number and content of the `row`-th line of a block that is not blank."""
    for i, line in enumerate(block.splitlines()):
        if line:
            if row == 0:
                return first_line + i, line.decode("utf-8", "replace")
            row -= 1
    raise IndexError("the block has fewer rows")


def describe_content(head: bytes) -> str:
    """What a file seems to be, told from its first bytes, for messages.

    >>> describe_content(b"Geolife trajectory\\r\\nWGS 84\\r\\n")
    'a Geolife trajectory (.plt)'
    """
    first = head[:4096].split(b"\n")[0].rstrip(b"\r")
    fields = first.split(b"\t")
    if head[:4] == b"PK\x03\x04":
        return "a zip archive"
    if head[:2] == b"\x1f\x8b":
        return "gzip-compressed data"
    if first.startswith(b"Geolife trajectory"):
        return "a Geolife trajectory (.plt)"
    if head.lstrip()[:5] in (b"<?xml", b"<log "):
        return "an XML file, perhaps an XES event log"
    if head.lstrip()[:1] == b"<":
        return "a web page or XML file"
    if len(fields) == 5 and b"T" in fields[1]:
        return "a file of check-ins (user, time, latitude, longitude, location)"
    if first and not first.strip(b"0123456789 "):
        return "a file of sessions (item ids)"
    if b"\0" in head[:4096] or not _decodes(head[:4096].rpartition(b"\n")[0] or first):
        return "data that are not UTF-8 text"
    if b"," in first:
        return "a comma-separated file"
    return "a text file"


def _decodes(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _quote(content, longest: int = 80) -> str:
    if isinstance(content, bytes):
        content = content.decode("utf-8", "backslashreplace")
    text = repr(content) if isinstance(content, str) else str(content)
    return text if len(text) <= longest else text[: longest - 4] + "...'"


def marker_path(path) -> Path:
    """Where the note that a file or folder is synthetic stands: beside the file, or inside the folder."""
    path = Path(path)
    return path / "SYNTHETIC.json" if path.is_dir() else path.with_name(path.name + ".synthetic.json")


def read_marker(path) -> dict | None:
    """The note that `writing.mark_synthetic` left, or None for recorded data."""
    try:
        return json.loads(marker_path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None


def finish(frame: pd.DataFrame, path, defects: Defects, **more) -> pd.DataFrame:
    """Attach what every data set carries: source, whether synthetic, and what was left out."""
    marker = read_marker(path)
    frame.attrs.update(source=str(path), synthetic=marker is not None, **defects.attrs(), **more)
    if marker is not None:
        frame.attrs["generator"] = marker
    return frame


def first_true(mask: np.ndarray) -> int:
    return int(np.argmax(mask))
