"""Reads lines of official files in blocks, counts known defects, and names file and line in errors.

The contract of all readers in this folder:

- A *known defect* of a published set (a latitude of 400, a wrong clock, two points in the same
  second) is skipped and counted in ``df.attrs["skipped"]``, with the place of the first one in
  ``df.attrs["skipped_examples"]``.
- Any other line that does not follow the format is an error that names file and line. So is a file
  that ends early, belongs to another set, or cannot be opened or decoded.

A *block* is a run of whole lines, as bytes; `first_line` is the number, from 1, of its first line
in the file. A *place* is a file and the number of a line, None where no line is known.

pyarrow parses the lines in blocks. Only if a block fails is it searched, by halving, for the
malformed line, so exact messages cost nothing for good files.

Small files may hold very much. `Limits` say how much is read, by the command and by the page: a
compressed stream is measured while it is unpacked, the first line of a table by `table`, and other
formats by `sizes`.
"""

import bz2
import codecs
import gzip
import itertools
import json
import lzma
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv

from tplrepro.validation import warn_caller

BLOCK_BYTES = 16 << 20
PARSED_BYTES = 1 << 20  # at once, which stays in the cache of the processor
LONGEST_LINE_BYTES = 64 << 20
#: First bytes of a compressed file -> the function that opens it.
COMPRESSED: dict[bytes, Callable[[Any], Any]] = {
    b"\x1f\x8b": lambda raw: gzip.GzipFile(fileobj=raw),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ": lzma.LZMAFile,
    b"PK\x03\x04": lambda raw: _only_member(raw),
}
#: What opening or reading a damaged or encrypted file raises.
DAMAGES = (EOFError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, OSError, RuntimeError)
UTF_16 = re.compile(rb"(?s)\xff\xfe[^\0]\0|\xfe\xff\0[^\0]")  # its mark and a Latin letter

Parse = Callable[[bytes], pa.Table]
Place = tuple[str | Path, int | None]  # file and line of a row


class DataFormatError(ValueError):
    """A file does not follow its format; the message names `file`, `line` (from 1, or None) and the
    remedy."""

    def __init__(self, problem: str, file: str | Path, line: int | None = None):
        self.file = str(file)
        self.line = line
        super().__init__(f"{_at(file, line)}: {problem}")


def _at(file: str | Path, line: int | None) -> str:
    if line is None:
        return str(file)
    return f"{file}, line {line}"


#: Environment variable of a factor for the limits of the command.
FACTOR = "TPLREPRO_LIMITS"


@dataclass(frozen=True)
class Limits:
    """How much is read of one file, by the command or by the page."""

    columns: int
    line_bytes: int  # of the first line of a text
    values: int  # of a Parquet or Feather file; more if the file is large, see `growth`
    cells: int  # of a workbook, the empty ones between others included
    workbook_bytes: int  # of the unpacked members of a workbook; with `growth`, more of a large one
    stream_bytes: int  # of a compressed text when it is unpacked; likewise
    growth: int  # times the size of the file: so much is allowed in any case
    remedy: str


COMMAND = Limits(
    columns=20_000,
    line_bytes=4 << 20,
    values=100_000_000,
    cells=10_000_000,
    workbook_bytes=256 << 20,
    stream_bytes=64 << 20,
    growth=100,
    remedy=f"leave out what is not needed, or set {FACTOR}=10 to read ten times as much",
)
PAGE = Limits(
    columns=1_000,
    line_bytes=1 << 20,
    values=10_000_000,
    cells=1_000_000,
    workbook_bytes=64 << 20,
    stream_bytes=32 << 20,
    growth=0,
    remedy="leave out what is not needed, or use the command tplrepro report, which reads more",
)


def limits_of_command() -> Limits:
    """The limits of the command, times the factor that the user has set."""
    text = os.environ.get(FACTOR, "1")
    if not re.fullmatch(r"[1-9][0-9]{0,5}", text):
        raise ValueError(
            f"{FACTOR} must be a whole number from 1 on, found {text!r}; set it to such as 10"
        )
    factor = int(text)
    return replace(
        COMMAND,
        columns=factor * COMMAND.columns,
        line_bytes=factor * COMMAND.line_bytes,
        values=factor * COMMAND.values,
        cells=factor * COMMAND.cells,
        workbook_bytes=factor * COMMAND.workbook_bytes,
        stream_bytes=factor * COMMAND.stream_bytes,
        growth=factor * COMMAND.growth,
    )


def refuse_more(path: Path, what: str, most: int, found: int, limits: Limits) -> None:
    """DataFormatError if a file holds `found` of `what`, such as "columns", and that is more than
    `most`."""
    if found > most:
        raise DataFormatError(
            f"there must be at most {most:,} {what}, found {found:,}; {limits.remedy}", path
        )


class Defects:
    """Counts the rows that a reader skips, by reason.

    `expected` describes the format for the error of a malformed line: "seven fields: latitude,
    ...".
    """

    def __init__(self, expected: str = ""):
        self.expected = expected
        self.skipped: dict[str, int] = {}
        self.examples: dict[str, str] = {}

    def known(self, reason: str, count: int, place: Callable[[], Place]) -> None:
        """Count `count` rows under `reason`; `place()`, called for the first ones only, tells the
        file and line of the first."""
        if not count:
            return
        if reason not in self.examples:
            self.examples[reason] = _at(*place())
        self.skipped[reason] = self.skipped.get(reason, 0) + int(count)


class Rows:
    """The parsed lines of a block; `table` has the rows that were not dropped.

    `first_line` is the number of the block's first line in the file. Rows that are dropped are
    counted in `defects`. With `quotes`, a row may go over several lines.
    """

    def __init__(
        self,
        table: pa.Table,
        block: bytes,
        first_line: int,
        file,
        defects: Defects,
        quotes: bool = False,
    ):
        self.table = table
        self.block = block
        self.first_line = first_line
        self.file = file
        self.defects = defects
        self.quotes = quotes
        self._numbers = np.arange(table.num_rows, dtype=np.int32)  # rows of the block that remain

    def __len__(self) -> int:
        return self.table.num_rows

    def __getitem__(self, column: str) -> np.ndarray:
        return self.table[column].to_numpy()

    def keep(self, rows: np.ndarray) -> None:
        """Keep these rows, in this order, without counting the others."""
        if not np.array_equal(rows, np.arange(len(self))):
            self.table = self.table.take(pa.array(rows))
            self._numbers = self._numbers[rows]

    def drop(self, bad: np.ndarray, reason: str) -> None:
        """Drop the rows where `bad` (m,) is true, and count them as a known defect."""
        self.defects.known(reason, int(bad.sum()), lambda: self.place(np.argmax(bad)))
        self.keep(np.flatnonzero(~bad))

    def put_in_time(self, group: np.ndarray | None = None) -> None:
        """Sort the rows by group and time; rows that repeat a time are a known defect."""
        self.keep(in_time(self["time"], self.defects, self.place, group))

    def place(self, row: int | np.intp) -> tuple[str | Path, int]:
        """Where one of the remaining rows stands; blank lines do not count as rows."""
        filled = (
            line for line, text in _numbered_rows(self.block, self.first_line, self.quotes) if text
        )
        return self.file, next(itertools.islice(filled, self._numbers[row], None))


def in_time(
    time: np.ndarray,
    defects: Defects,
    place: Callable[[np.intp], Place],
    group: np.ndarray | None = None,
) -> np.ndarray:
    """Indices of the rows sorted by `group` (m,) and `time` (m,), without rows that repeat a time
    in a group, a known defect; `place` tells where a row stands."""
    if group is None:
        group = np.zeros(len(time), dtype=np.int8)
    order = np.lexsort((time, group))
    is_as_before = (np.diff(time[order]) == 0) & (np.diff(group[order]) == 0)
    again = np.append([False], is_as_before)[: len(order)]
    defects.known("duplicate time", int(again.sum()), lambda: place(order[again].min()))
    return order[~again]


class Ahead(Iterator[Any]):
    """The same blocks, each of which a thread makes while the one before is used.

    Making a block must not warn: a warning from a thread would name no caller. The thread ends with
    the last block, with an error, by `close`, or when the iterator is collected as garbage, which
    waits for nothing: it may happen while any thread is being started.
    """

    def __init__(self, blocks: Iterator[Any]):
        self._blocks = blocks
        self._thread = ThreadPoolExecutor(1)
        self._following: Future | None = None

    def __next__(self) -> Any:
        if self._following is None:
            self._following = self._make_next()
        try:
            block = self._following.result()
        except BaseException:
            self.close()
            raise
        if block is None:
            self.close()
            raise StopIteration
        self._following = self._make_next()
        return block

    def _make_next(self) -> Future:
        return self._thread.submit(next, self._blocks, None)

    def close(self) -> None:
        """Wait for the block that is being made, and end the thread."""
        self._thread.shutdown(cancel_futures=True)


def file_blocks(
    path: str | Path, line: Callable[[], int], block_bytes: int = BLOCK_BYTES
) -> Iterator[bytes]:
    """The content of a file in blocks of at most `block_bytes`, unpacked as in `COMPRESSED`.

    UTF-16 becomes UTF-8. It is an error if a compressed stream is damaged or ends early, which
    names the line `line()` that was read last, or if it unpacks to more than 100 times its size and
    64 MiB.
    """
    with open(path, "rb") as raw:
        head = raw.read(6)
        raw.seek(0)
        try:
            stream = next(
                (opened(raw) for magic, opened in COMPRESSED.items() if head.startswith(magic)), raw
            )
            blocks = _unpacked(raw, stream, block_bytes, path)
            yield from _in_utf_8(blocks)
        except DAMAGES as damage:
            raise DataFormatError(
                f"the compressed file ends early, is damaged or encrypted ({damage}); download it "
                "again, or unpack it",
                path,
                line(),
            ) from None


def _unpacked(raw: BinaryIO, stream: Any, block_bytes: int, path: str | Path) -> Iterator[bytes]:
    """Blocks of a stream that unpacks the file `raw`, or is `raw` itself; DataFormatError if it
    unpacks to implausibly many bytes."""
    while data := stream.read(block_bytes):
        if stream is not raw:
            check_growth(stream.tell(), path)
        yield data


def _in_utf_8(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The same text in UTF-8, if its first bytes are the mark of UTF-16."""
    decoder = None
    for number, block in enumerate(blocks):
        if number == 0 and UTF_16.match(block):
            decoder = codecs.getincrementaldecoder("utf-16")("replace")
        if decoder is not None:
            block = decoder.decode(block).encode()
        yield block


def check_growth(size: int, path: str | Path) -> None:
    """DataFormatError if the compressed file at `path` unpacks to implausibly many bytes."""
    limits = limits_of_command()
    most = max(limits.growth * Path(path).stat().st_size, limits.stream_bytes)
    if size > most:
        raise DataFormatError(
            f"unpacked, it must have at most {most} bytes, {limits.growth} times its size or "
            f"{limits.stream_bytes >> 20} MiB, found {size}; if it is sound, unpack it",
            path,
        )


def _only_member(raw: BinaryIO) -> Any:
    """The only file of a zip archive, opened; the bytes as they are if there are several or
    none."""
    archive = zipfile.ZipFile(raw)
    names = [name for name in archive.namelist() if not name.endswith("/")]
    if len(names) == 1:
        return archive.open(names[0])
    raw.seek(0)
    return raw


def line_blocks(path: str | Path, block_bytes: int = BLOCK_BYTES) -> Iterator[tuple[bytes, int]]:
    """Whole lines of a file in blocks of about `block_bytes`, each with the number of its first
    line, from 1.

    Errors as in `file_blocks`. Every block ends with a line end, except possibly the last.
    """
    rest = b""
    first_line = 1
    line = lambda: first_line + rest.count(b"\n")  # noqa: E731
    for data in file_blocks(path, line, block_bytes):
        cut = data.rfind(b"\n") + 1
        if not cut:
            rest += data
        else:
            block = b"".join((rest, memoryview(data)[:cut]))
            rest = data[cut:]
            yield block, first_line
            first_line += block.count(b"\n")
        if len(rest) > LONGEST_LINE_BYTES:
            most = f"a line must not be longer than {LONGEST_LINE_BYTES >> 20} MiB"
            raise DataFormatError(
                f"{most}, found {describe_content(rest)}; check the file", path, first_line
            )
    if rest:
        yield rest, first_line


def read_rows(
    path: str | Path, parse: Parse, defects: Defects, header: int = 0, quotes: bool = False
) -> Iterator[Rows]:
    """The rows of a file, block by block, after so many lines of a header.

    `parse` makes a table of a block's lines; what it rejects is an error that names the line. With
    `quotes`, a field in quotes may contain line ends, and the file may begin with a byte order
    mark.
    """
    for table, block, first_line in Ahead(_parsed(path, parse, header, quotes)):
        yield rows_of(table, block, first_line, path, parse, defects, quotes=quotes)


def _parsed(
    path: str | Path, parse: Parse, header: int, quotes: bool
) -> Iterator[tuple[pa.Table | None, bytes, int]]:
    """The tables of all blocks of a file, None for a block that `parse` rejects, with the block and
    the number of its first line; `header` and `quotes` as in `read_rows`."""
    first_line = 0
    blocks = line_blocks(path)
    if quotes:
        blocks = _closed_blocks(blocks)
    for block, first_line in blocks:
        _check_line_ends(block, first_line, path)
        if first_line == 1 and header:
            for _ in range(header):
                block = block.partition(b"\n")[2]
            first_line += header
        elif first_line == 1 and quotes:
            block = block.removeprefix(b"\xef\xbb\xbf")
        yield attempt(parse, block), block, first_line
    if not first_line:
        raise DataFormatError("the file is empty; download it again", path)


def _check_line_ends(block: bytes, first_line: int, path: str | Path) -> None:
    """DataFormatError for lines that end in a CR alone, in a block that begins at line
    `first_line`."""
    if b"\r" not in block:
        return
    bare = re.search(rb"\r(?!\n|\Z)", block)
    if bare is not None:
        line = first_line + block.count(b"\n", 0, bare.start())
        raise DataFormatError(
            "lines must end in LF or CRLF, found a CR alone; convert the line ends", path, line
        )


def _closed_blocks(blocks: Iterable[tuple[bytes, int]]) -> Iterator[tuple[bytes, int]]:
    """Blocks of lines, joined where a quoted field continues in the next block."""
    whole = b""
    start = 1
    for block, first_line in blocks:
        if not whole:
            start = first_line
        whole += block
        if b'"' not in whole or whole.count(b'"') % 2 == 0:
            yield whole, start
            whole = b""
    if whole:
        yield whole, start


def _numbered_rows(block: bytes, first_line: int, quotes: bool) -> Iterator[tuple[int, bytes]]:
    """The rows of a block that begins at line `first_line`, each with the number of its own first
    line; with `quotes`, a row ends outside of quotes only."""
    row: list[bytes] = []
    is_open = False
    for number, line in enumerate(block.splitlines(), first_line):
        row.append(line)
        is_open ^= quotes and line.count(b'"') % 2 == 1
        if not is_open:
            yield number + 1 - len(row), b"\n".join(row)
            row = []
    if row:
        yield number + 1 - len(row), b"\n".join(row)


def rows_of(
    table: pa.Table | None,
    block: bytes,
    first_line: int,
    file,
    parse: Parse,
    defects: Defects,
    *,
    quotes: bool = False,
) -> Rows:
    """The rows of a block that begins at line `first_line`, with the `table` that `attempt` made of
    it; None: DataFormatError for the first line that `parse` rejects.

    A warning if the last line has no end, as in truncated and some hand-made files.
    """
    if not block.endswith(b"\n"):
        if block:
            where = _at(file, first_line + block.count(b"\n"))
            warn_caller(
                f"{where}: the last line has no end, as if the file were cut; download it again"
            )
        block += b"\n"
    if table is None:
        raise _malformed(block, first_line, file, parse, defects.expected, quotes)
    return Rows(table, block, first_line, file, defects, quotes)


def attempt(parse: Parse, lines: bytes) -> pa.Table | None:
    """The parsed lines, or None if `parse` rejects one of them; lines must be UTF-8 without byte
    order mark."""
    if not lines.endswith(b"\n"):
        lines += b"\n"
    try:
        if not lines.isascii() and "\ufeff" in lines.decode():
            return None
        return parse(lines)
    except (UnicodeDecodeError, pa.ArrowInvalid):
        return None


def _malformed(
    block: bytes, first_line: int, file, parse: Parse, expected: str, quotes: bool
) -> DataFormatError:
    """The error for the first line of a block that `parse` rejects, found by halving; `expected`
    describes the format, and the block begins at line `first_line`."""
    numbered = [*_numbered_rows(block, first_line, quotes)]
    start = 0
    stop = len(numbered)
    while stop - start > 1:
        middle = (start + stop) // 2
        if attempt(parse, b"".join(text + b"\n" for _, text in numbered[start:middle])) is None:
            stop = middle
        else:
            start = middle
    line, content = numbered[start]
    text = content.decode("utf-8", "backslashreplace")
    found = f"found {text[:60]!r}"
    remedy = "mend the line or the download"
    if line == 1:
        found += f" in {describe_content(content)}"
        remedy = "check that this is the right file, columns in the official order"
    elif text.encode() != content:
        remedy = "convert the file to UTF-8, such as by iconv -f LATIN1 -t UTF-8"
    return DataFormatError(f"expected {expected}, {found}; {remedy}", file, line)


def parse_table(
    block: bytes,
    columns: dict[str, Any],
    delimiter: str,
    nulls: Sequence[str] = (),
    quotes: bool = False,
    decimal_point: str = ".",
) -> pa.Table:
    """Parse lines with pyarrow into the columns of a file.

    `columns` maps the names of all, in order, to types; those of type None are left out. Texts in
    `nulls` stand for no value. With `quotes`, fields may be quoted by RFC 4180; otherwise quotes
    have no meaning, so that each line stands for itself.
    """
    wanted = {name: kind for name, kind in columns.items() if kind is not None}
    if any(map(pa.types.is_integer, wanted.values())) and (b"x" in block or b"X" in block):
        raise pa.ArrowInvalid("hexadecimal numbers, which pyarrow would read")
    parsing = _parse_options(block, delimiter, has_quotes=quotes and b'"' in block)
    converting = pa.csv.ConvertOptions(
        column_types=wanted,
        include_columns=list(wanted),
        null_values=[*nulls],
        strings_can_be_null=bool(nulls),
        decimal_point=decimal_point,
    )
    reading = pa.csv.ReadOptions(column_names=list(columns), block_size=PARSED_BYTES)
    try:
        return pa.csv.read_csv(pa.BufferReader(block), reading, parsing, converting)
    except pa.ArrowInvalid:  # a row may be longer
        reading.block_size = len(block)
        return pa.csv.read_csv(pa.BufferReader(block), reading, parsing, converting)


def _parse_options(block: bytes, delimiter: str, has_quotes: bool) -> Any:
    """How pyarrow parses a block of fields between delimiters, with or without quotes; ArrowInvalid
    for quotes of which it would make something else."""
    if not has_quotes:
        return pa.csv.ParseOptions(delimiter=delimiter, quote_char=False, newlines_in_values=False)
    if not _quotes_are_sound(block, delimiter):
        raise pa.ArrowInvalid(
            "a quote that neither opens nor closes a field, which pyarrow would read"
        )
    return pa.csv.ParseOptions(delimiter=delimiter, quote_char='"', newlines_in_values=True)


def _quotes_are_sound(block: bytes, delimiter: str) -> bool:
    """Whether each quote opens a field, closes one, or is one of two within a field."""
    content = np.frombuffer(b"\n" + block + b"\n", dtype=np.uint8)
    quotes = np.flatnonzero(content == ord('"'))
    # Of two within a field, one closes and one opens.
    before = content[quotes[::2] - 1]
    after = content[quotes[1::2] + 1]
    limits = [ord(mark) for mark in f'{delimiter}\n"']
    return len(quotes) % 2 == 0 and bool(
        np.isin(before, limits).all() and np.isin(after, [*limits, ord("\r")]).all()
    )


#: Pattern of the first bytes -> description; the first match counts.
CONTENTS = {
    rb"\Z": "an empty file",
    rb"(?s)PK\x03\x04.*(xl/|Content_Types)": "an Excel workbook, to be saved as CSV",
    rb"PK\x03\x04": "a zip archive of several files",
    rb"PAR1": "a Parquet file",
    rb"\x1f\x8b": "gzip-compressed data",
    rb"Geolife trajectory": "a Geolife trajectory (.plt)",
    rb"\s*<(\?xml|log )": "an XML file, perhaps an XES event log",
    rb"\s*<": "a web page or XML file",
    rb"[^\t\n]*\t[^\t\n]*T[^\t\n]*(\t[^\t\n]*){3}(\n|$)": (
        "a file of check-ins (user, time, position, location)"
    ),
    rb"[0-9 ]+\r?(\n|$)": "a file of sessions (item ids)",
}


def describe_content(head: bytes) -> str:
    """What a file seems to be by its first bytes, for messages.

    >>> describe_content(b"Geolife trajectory\\r\\nWGS 84\\r\\n")
    'a Geolife trajectory (.plt)'
    """
    head = head[:4096]
    what = next((what for pattern, what in CONTENTS.items() if re.match(pattern, head)), None)
    if what:
        return what
    first = head.split(b"\n")[0]
    whole_lines = head.rpartition(b"\n")[0] or first
    if b"\0" in head or "\ufffd" in whole_lines.decode("utf-8", "replace"):
        return "data that are not UTF-8 text"
    if b"," in first:
        return "a comma-separated file"
    return "a text file"


def marker_path(path: str | Path) -> Path:
    """Path of the note that marks a file or folder as synthetic: beside the file, or inside the
    folder."""
    path = Path(path)
    if path.is_dir():
        return path / "SYNTHETIC.json"
    return path.with_name(path.name + ".synthetic.json")


def read_marker(path: str | Path) -> dict | None:
    """The note that marks a stand-in, or None for recorded data."""
    note = marker_path(path)
    if not note.exists():
        return None
    return json.loads(note.read_text(encoding="utf-8"))


def finish(frame: pd.DataFrame, path: str | Path, defects: Defects, **more: Any) -> pd.DataFrame:
    """Attach the attributes of every data set to the frame: source, whether synthetic, what was
    skipped, and `more`."""
    marker = read_marker(path)
    frame.attrs |= {"source": str(path), "synthetic": marker is not None}
    frame.attrs |= {
        "skipped": dict(defects.skipped),
        "skipped_examples": dict(defects.examples),
        **more,
    }
    if marker is not None:
        frame.attrs["generator"] = marker
    return frame
