"""Reads lines of official files in blocks, counts or raises defects, and names file and line in errors.

The contract of all readers in this folder:

- A *known defect* of a published set (a latitude of 400, a wrong clock, two points in the same second) is
  skipped and counted in ``df.attrs["skipped"]``, with the place of the first one in
  ``df.attrs["skipped_examples"]``. ``strict=True`` makes it an error.
- A *malformed line*, which does not follow the format, is an error that names file and line, unless the
  caller allows some with ``max_malformed``; those are counted too.
- A file that ends early, belongs to another set, or cannot be opened or decoded is always an error.

pyarrow parses the lines in blocks. Only if a block fails is it searched, by halving, for the malformed lines,
so exact messages cost nothing for good files.
"""

import bz2
import codecs
import gzip
import itertools
import json
import lzma
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv

from tplrepro.datasets.grid import as_box
from tplrepro.validation import warn_caller

BLOCK_BYTES = 16 << 20
LONGEST_LINE_BYTES = 64 << 20
MOST_GROWTH, ALWAYS_UNPACKED = 100, 64 << 20  # unpacked size: times the compressed size, or bytes
#: First bytes of a compressed file -> the function that opens it.
COMPRESSED: dict[bytes, Callable[[Any], Any]] = {
    b"\x1f\x8b": lambda raw: gzip.GzipFile(fileobj=raw),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ": lzma.LZMAFile,
    b"PK\x03\x04": lambda raw: _only_member(raw),
}
DAMAGES = (EOFError, gzip.BadGzipFile, zipfile.BadZipFile, zlib.error, lzma.LZMAError)
UTF_16 = re.compile(rb"(?s)\xff\xfe[^\0]\0|\xfe\xff\0[^\0]")  # its mark and a Latin letter
OUT_OF_RANGE = "coordinates out of range"

Parse = Callable[[bytes], pa.Table]
Place = Callable[[], tuple[int | None, str]]  # line and content, computed only if needed


class DataFormatError(ValueError):
    """A file does not follow its format; the message names `file`, `line` (from 1, or None) and the remedy."""

    def __init__(self, problem: str, file: str | Path, line: int | None = None):
        self.file = str(file)
        self.line = line
        where = self.file if line is None else f"{self.file}, line {line}"
        super().__init__(f"{where}: {problem}")


class Defects:
    """Counts the rows that a reader skips, or raises if the caller asked for that.

    `strict` raises at the first defect of any kind, `max_malformed` is the number of malformed lines that may
    be skipped (None: the caller cannot allow any), and `expected` describes the format in messages: "seven
    fields: latitude, ...".
    """

    def __init__(self, strict: bool, max_malformed: int | None, expected: str):
        if max_malformed is not None and max_malformed < 0:
            raise ValueError(f"max_malformed must be at least 0, found {max_malformed}; give a number of lines")
        self.strict = strict
        self.can_skip = max_malformed is not None
        self.max_malformed = 0 if strict else max_malformed or 0
        self.expected = expected
        self.skipped: dict[str, int] = {}
        self.examples: dict[str, str] = {}
        self.reordered = 0

    def known(self, reason: str, count: int, file: str | Path, place: Place) -> None:
        """Count `count` rows under `reason`; `place` gives the place of the first one."""
        if not count:
            return
        if self.strict or reason not in self.examples:
            line, content = place()
            if self.strict:
                raise DataFormatError(
                    f"{reason}, found {_quote(content)}; pass strict=False to count such lines", file, line
                )
            self.examples[reason] = str(file) if line is None else f"{file}, line {line}"
        self.skipped[reason] = self.skipped.get(reason, 0) + int(count)

    def malformed(self, file: str | Path, line: int, content: bytes) -> None:
        """Count one malformed line; raise if no more are allowed, or if it is the first line of the file."""
        before = self.skipped.get("malformed line", 0)
        if line == 1 or before >= self.max_malformed:
            found, is_text = f"found {_quote(content.decode('utf-8', 'backslashreplace'))}", _is_utf_8(content)
            if line == 1:
                found += f" in {describe_content(content)}"
                remedy = "check that this is the right file, columns in the official order"
            elif not (is_text or self.can_skip):
                remedy = "convert the file to UTF-8, such as by iconv -f LATIN1 -t UTF-8"
            else:
                if before:
                    found += f"; {before} malformed lines were skipped before"
                remedy = "mend the line or the download"
                if self.can_skip:
                    remedy += (
                        f", or pass max_malformed={10 * before + 100} and strict=False to skip and count such lines"
                    )
            raise DataFormatError(f"expected {self.expected}, {found}; {remedy}", file, line)
        self.known("malformed line", 1, file, lambda: (line, ""))

    def out_of_order(self, count: int, file: str | Path, place: Place) -> None:
        """Count rows that are earlier than the previous row; they are sorted, not skipped."""
        if count and self.strict:
            line, content = place()
            raise DataFormatError(
                f"times must be in order, found {_quote(content)}; pass strict=False to sort", file, line
            )
        self.reordered += int(count)


class Rows:
    """The parsed lines of a block; rows can be dropped for a reason, which is counted with the first row's line.

    `table` holds the remaining rows, `rejected` the indices of the malformed lines, which are blank in
    `block`.
    """

    def __init__(
        self, table: pa.Table, block: bytes, first_line: int, file, defects: Defects, rejected=(), quotes: bool = False
    ):
        self.table, self.block, self.first_line, self.file = table, block, first_line, file
        self.defects, self.rejected, self.quotes = defects, rejected, quotes
        self._numbers = np.arange(table.num_rows, dtype=np.int32)  # rows of the block that remain

    def __len__(self) -> int:
        return self.table.num_rows

    def __getitem__(self, column: str) -> np.ndarray:
        return self.table[column].to_numpy()

    def keep(self, wanted: np.ndarray) -> None:
        """Drop the other rows without counting them."""
        if not wanted.all():
            self.table, self._numbers = self.table.filter(pa.array(wanted)), self._numbers[wanted]

    def drop(self, bad: np.ndarray, reason: str) -> None:
        """Drop and count a known defect."""
        self.defects.known(reason, int(bad.sum()), self.file, lambda: self.place(np.argmax(bad)))
        self.keep(~bad)

    def check_order(
        self, before: tuple | None = None, group: str | None = None, newest_first: bool = False
    ) -> tuple | None:
        """Within each `group`, count rows out of order and drop rows with the same time as the previous row.

        `before` is the result for the previous block.
        """
        if not len(self):
            return before
        time = self["time"]
        who = np.zeros(len(time), dtype=np.int8) if group is None else self[group]
        last = before or (who[0], time[0])
        step, same = np.diff(time, prepend=last[1]), np.diff(who, prepend=last[0]) == 0
        same[0] &= before is not None
        wrong = same & ((step > 0) if newest_first else (step < 0))
        self.defects.out_of_order(int(wrong.sum()), self.file, lambda: self.place(np.argmax(wrong)))
        self.drop(same & (step == 0), "duplicate time")
        return who[-1], time[-1]

    def place(self, row: int | np.intp) -> tuple[int, str]:
        """Line and content of one of the remaining rows; blank lines do not count as rows."""
        filled = ((line, text) for line, text in _numbered_rows(self.block, self.first_line, self.quotes) if text)
        line, text = next(itertools.islice(filled, self._numbers[row], None))
        return line, text.decode("utf-8", "replace")


def in_time(
    time: np.ndarray, defects: Defects, place: Callable[[int], tuple[str | Path, str]], group: np.ndarray | None = None
) -> np.ndarray:
    """Indices of the rows sorted by group and time, without rows that repeat a time (a known defect).

    `place` gives file and content of a row.
    """
    group = np.zeros(len(time), dtype=np.int8) if group is None else group
    order = np.lexsort((time, group))
    again = np.append([False], (np.diff(time[order]) == 0) & (np.diff(group[order]) == 0))[: len(order)]
    if again.any():
        file, content = place(order[np.argmax(again)])
        defects.known("duplicate time", int(again.sum()), file, lambda: (None, content))
    return order[~again]


def file_blocks(path: str | Path, line: Callable[[], int], block_bytes: int = BLOCK_BYTES) -> Iterator[bytes]:
    """The content of a file in blocks of at most `block_bytes`, unpacked as in `COMPRESSED`; UTF-16 becomes UTF-8.

    If the compressed stream is damaged or ends early, the error names the `line` read so far.
    """
    with open(path, "rb") as raw:
        head = raw.read(6)
        raw.seek(0)
        try:
            stream = next((opened(raw) for magic, opened in COMPRESSED.items() if head.startswith(magic)), raw)
            decoder = None
            while data := stream.read(block_bytes):
                if stream is not raw:
                    check_growth(stream.tell(), path)
                if stream.tell() == len(data) and UTF_16.match(data):
                    decoder = codecs.getincrementaldecoder("utf-16")("replace")
                yield data if decoder is None else decoder.decode(data).encode()
        except (*DAMAGES, OSError) as damage:
            raise DataFormatError(
                f"the compressed file ends early or is damaged ({damage}); download it again", path, line()
            ) from None


def _only_member(raw: BinaryIO) -> Any:
    """The only file of a zip archive, opened; the bytes as they are if there are several or none."""
    with suppress(zipfile.BadZipFile):
        archive = zipfile.ZipFile(raw)
        names = [name for name in archive.namelist() if not name.endswith("/")]
        if len(names) == 1:
            if archive.getinfo(names[0]).flag_bits & 1:
                raise DataFormatError(
                    "a zip archive must not be encrypted, found one with a password; unpack it", raw.name
                )
            return archive.open(names[0])
    raw.seek(0)
    return raw


def _is_utf_8(content: bytes) -> bool:
    try:
        return bool(content.decode()) or True
    except UnicodeDecodeError:
        return False


def check_growth(size: int, path: str | Path) -> None:
    """Raise DataFormatError if the compressed file at `path` unpacks to implausibly many bytes."""
    most = max(MOST_GROWTH * Path(path).stat().st_size, ALWAYS_UNPACKED)
    if size > most:
        raise DataFormatError(
            f"unpacked, it must have at most {most} bytes, {MOST_GROWTH} times its size or {ALWAYS_UNPACKED >> 20} MiB"
            f", found {size}; if it is sound, unpack it",
            path,
        )


def line_blocks(path: str | Path, block_bytes: int = BLOCK_BYTES) -> Iterator[tuple[bytes, int]]:
    """Whole lines of a file in blocks of about `block_bytes`, each with the number of its first line, from 1.

    Errors as in `file_blocks`. Every block ends with a line end, except possibly the last.
    """
    rest, first_line = b"", 1
    for data in file_blocks(path, lambda: first_line + rest.count(b"\n"), block_bytes):  # noqa: B023 (asked at once)
        cut = data.rfind(b"\n") + 1
        block, rest = (rest + data[:cut], data[cut:]) if cut else (b"", rest + data)
        if block:
            yield block, first_line
            first_line += block.count(b"\n")
        if len(rest) > LONGEST_LINE_BYTES:
            raise DataFormatError(
                f"a line must not be longer than {LONGEST_LINE_BYTES >> 20} MiB, found {describe_content(rest)}; "
                "check the file",
                path,
                first_line,
            )
    if rest:
        yield rest, first_line


def read_rows(
    path: str | Path, parse: Parse, defects: Defects, header: bool = False, quotes: bool = False
) -> Iterator[Rows]:
    """The rows of a file, block by block; with `header` the first line is skipped.

    With `quotes`, a field in quotes may contain line ends, and the file may begin with a byte order mark.
    """
    first_line = 0
    blocks = line_blocks(path)
    for block, first_line in _closed_blocks(blocks) if quotes else blocks:
        bare = re.search(rb"\r(?!\n|\Z)", block)
        if bare:
            raise DataFormatError(
                "lines must end in LF or CRLF, found a CR alone; convert the line ends",
                path,
                first_line + block.count(b"\n", 0, bare.start()),
            )
        if first_line == 1 and header:
            block, first_line = block.partition(b"\n")[2], 2
        elif first_line == 1 and quotes:
            block = block.removeprefix(b"\xef\xbb\xbf")
        yield rows_of(block, first_line, path, parse, defects, attempt(parse, block), quotes)
    if not first_line:
        raise DataFormatError("the file is empty; download it again", path)


def _closed_blocks(blocks: Iterable[tuple[bytes, int]]) -> Iterator[tuple[bytes, int]]:
    """Blocks of lines, joined where a quoted field continues in the next block."""
    whole, start = b"", 1
    for block, first_line in blocks:
        start = start if whole else first_line
        whole += block
        if whole.count(b'"') % 2 == 0:
            yield whole, start
            whole = b""
    if whole:
        yield whole, start


def _numbered_rows(block: bytes, first_line: int, quotes: bool) -> Iterator[tuple[int, bytes]]:
    """The rows of a block with the number of their first line; with `quotes`, a row ends outside of them."""
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
    block: bytes,
    first_line: int,
    file,
    parse: Parse,
    defects: Defects,
    table: pa.Table | None,
    quotes: bool = False,
) -> Rows:
    """The rows of a block; `table` is the result of `attempt`.

    Lines that `parse` rejects go to `defects` and are blanked, so line numbers stay correct.
    """
    block = with_end(block, first_line, file, defects.strict)
    if table is not None:
        return Rows(table, block, first_line, file, defects, quotes=quotes)
    numbered = [*_numbered_rows(block, first_line, quotes)]
    lines = [line for _, line in numbered]
    rejected = []
    for i in _rejected(lines, parse, 0, len(lines)):
        defects.malformed(file, numbered[i][0], lines[i])
        lines[i] = b""
        rejected.append(i)
    block = b"\n".join(lines) + b"\n"
    return Rows(parse(block), block, first_line, file, defects, rejected, quotes)


def with_end(block: bytes, first_line: int, file: str | Path, strict: bool) -> bytes:
    """The block with a final line end; warns if it was missing, as in truncated and some hand-made files."""
    if not block or block.endswith(b"\n"):
        return block
    cut = DataFormatError(
        "the last line has no end, as if the file were cut; download it again",
        file,
        first_line + block.count(b"\n"),
    )
    if strict:
        raise cut
    warn_caller(str(cut))
    return block + b"\n"


def attempt(parse: Parse, lines: bytes) -> pa.Table | None:
    """The parsed lines, or None if `parse` rejects one of them; lines must be UTF-8 without byte order mark."""
    try:
        return parse(lines) if lines.isascii() or "\ufeff" not in lines.decode() else None
    except (UnicodeDecodeError, pa.ArrowInvalid):
        return None


def _rejected(lines: list[bytes], parse: Parse, start: int, stop: int) -> Iterator[int]:
    """Indices of the lines from `start` to `stop` that `parse` rejects, in order, found by halving."""
    if attempt(parse, b"\n".join(lines[start:stop]) + b"\n") is None:
        if stop - start == 1:
            yield start
            return
        middle = (start + stop) // 2
        yield from _rejected(lines, parse, start, middle)
        yield from _rejected(lines, parse, middle, stop)


def parse_table(
    block: bytes, columns: dict[str, Any], delimiter: str, empty_is_null: bool = False, quotes: bool = False
) -> pa.Table:
    """Parse lines with pyarrow into columns of the given types, those of type None left out.

    With `quotes`, fields may be quoted by RFC 4180; otherwise quotes have no meaning, so that each line
    stands for itself.
    """
    wanted = {name: kind for name, kind in columns.items() if kind is not None}
    if any(map(pa.types.is_integer, wanted.values())) and (b"x" in block or b"X" in block):
        raise pa.ArrowInvalid("hexadecimal numbers, which pyarrow would read")
    has_quotes = quotes and b'"' in block
    if has_quotes and not _quotes_are_sound(block, delimiter):
        raise pa.ArrowInvalid("a quote in a field without quotes around it, which pyarrow would read")
    return pa.csv.read_csv(
        pa.BufferReader(block),
        pa.csv.ReadOptions(column_names=list(columns), use_threads=False, block_size=max(len(block), 1)),
        pa.csv.ParseOptions(
            delimiter=delimiter, quote_char='"' if has_quotes else False, newlines_in_values=has_quotes
        ),
        pa.csv.ConvertOptions(
            column_types=wanted,
            include_columns=list(wanted),
            null_values=[""] if empty_is_null else [],
            strings_can_be_null=empty_is_null,
        ),
    )


def _quotes_are_sound(block: bytes, delimiter: str) -> bool:
    """Whether each quote opens a field, closes one, or is one of two within a field."""
    content = np.frombuffer(b"\n" + block + b"\n", dtype=np.uint8)
    quotes = np.flatnonzero(content == ord('"'))
    before, after = (
        content[quotes[::2] - 1],
        content[quotes[1::2] + 1],
    )  # of two within a field, one ends it, one begins it
    limits = [ord(mark) for mark in f'{delimiter}\n"']
    return len(quotes) % 2 == 0 and bool(np.isin(before, limits).all() and np.isin(after, [*limits, ord("\r")]).all())


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
    rb"[^\t\n]*\t[^\t\n]*T[^\t\n]*(\t[^\t\n]*){3}(\n|$)": "a file of check-ins (user, time, position, location)",
    rb"[0-9 ]+\r?(\n|$)": "a file of sessions (item ids)",
}


def describe_content(head: bytes) -> str:
    """What a file seems to be by its first bytes, for messages.

    >>> describe_content(b"Geolife trajectory\\r\\nWGS 84\\r\\n")
    'a Geolife trajectory (.plt)'
    """
    head = head[:4096]
    what = next((what for pattern, what in CONTENTS.items() if re.match(pattern, head)), None)
    first = head.split(b"\n")[0]
    if not what and (b"\0" in head or "\ufffd" in (head.rpartition(b"\n")[0] or first).decode("utf-8", "replace")):
        what = "data that are not UTF-8 text"
    return what or ("a comma-separated file" if b"," in first else "a text file")


def _quote(content: str) -> str:
    text = repr(content)
    return text if len(text) <= 80 else text[:76] + "...'"


def marker_path(path: str | Path) -> Path:
    """Path of the note that marks a file or folder as synthetic: beside the file, or inside the folder."""
    path = Path(path)
    return path / "SYNTHETIC.json" if path.is_dir() else path.with_name(path.name + ".synthetic.json")


def read_marker(path: str | Path) -> dict | None:
    """The note that marks a stand-in, or None for recorded data."""
    note = marker_path(path)
    return json.loads(note.read_text(encoding="utf-8")) if note.exists() else None


def finish(frame: pd.DataFrame, path: str | Path, defects: Defects, **more) -> pd.DataFrame:
    """Attach the attributes of every data set: source, whether synthetic, and what was skipped."""
    marker = read_marker(path)
    frame.attrs |= {
        "source": str(path),
        "synthetic": marker is not None,
        "reordered": defects.reordered,
        "skipped": dict(defects.skipped),
        "skipped_examples": dict(defects.examples),
        **({} if marker is None else {"generator": marker}),
        **more,
    }
    return frame


class Positions:
    """Drops the known defects of geographic positions, and counts positions outside the `box`, which may be None."""

    def __init__(self, box, defects: Defects, earliest: str = "1970-01-01"):
        self.box = None if box is None else as_box(box)
        self.earliest = pd.Timestamp(earliest).value // 1000
        self.latest = pd.Timestamp.now().value // 1000
        self.defects = defects
        self.total = 0
        self.outside = 0

    def select(self, rows: Rows, before: tuple | None = None, **order: Any) -> tuple | None:
        """Keep the rows in the box without known defects; arguments and result are those of `Rows.check_order`.

        Times are in microseconds since 1970.
        """
        self.total += len(rows)
        rows.drop(~((np.abs(rows["latitude"]) <= 90) & (np.abs(rows["longitude"]) <= 180)), OUT_OF_RANGE)
        rows.drop(rows["time"] < self.earliest, "time before the recording began")
        rows.drop(rows["time"] > self.latest, "time in the future")
        before = rows.check_order(before, **order)
        if self.box is not None:
            inside = self.box.contains(rows["latitude"], rows["longitude"])
            self.outside += len(rows) - int(inside.sum())
            rows.keep(inside)
        return before

    def finish(self, frame: pd.DataFrame, path: str | Path) -> pd.DataFrame:
        """The frame with its attributes; raises if most positions were out of range."""
        wrong = self.defects.skipped.get(OUT_OF_RANGE, 0)
        if 2 * wrong > self.total:
            file, _, line = self.defects.examples[OUT_OF_RANGE].rpartition(", line ")
            raise DataFormatError(
                f"{wrong} of {self.total} points are out of range, so the columns may be swapped; "
                "put latitude before longitude",
                file,
                int(line),
            )
        return finish(frame, path, self.defects, outside_box=self.outside)
