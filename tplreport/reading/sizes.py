"""How much a file holds, found out before it is read.

What is looked at is what each format says of itself without being unpacked into memory: the members
of an archive and the cells of a workbook, the groups of rows of a Parquet file, the first line of a
table.
"""

import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet  # noqa: F401 - makes it an attribute of pa

from tplreport.reading.table import BROKEN, check_first_line, format_of
from tplreport.reading.text_files import (
    COMPRESSED,
    DAMAGES,
    DataFormatError,
    Limits,
    file_blocks,
    refuse_more,
)

#: Bytes of a value of a Parquet or Feather file in memory.
VALUE_BYTES = 8
BLOCK_BYTES = 1 << 20
#: Tags of a sheet: a row, a cell, and where one stands, if it says so.
ROW = re.compile(rb"<(?:\w+:)?row(?=[ \s/>])")
CELL = re.compile(rb"<(?:\w+:)?c[\s/>]")
PLACE = re.compile(rb"""\sr=["']([A-Z]{0,3})([0-9]{1,7})["']""")


def check_size(path: Path, limits: Limits) -> None:
    """DataFormatError if more would be read of a file than the limits allow.

    Parameters
    ----------
    path : Path of a file in one of the formats of `read_table`, or of a folder of such files
    limits : Limits, those of the command or of the page

    Raises
    ------
    DataFormatError
        With what the file holds, what is read at most, and a remedy.
    """
    if path.is_dir():
        _check_sizes_in(path, limits)
        return
    kind = format_of(path)
    checks: dict[str | None, Callable[[Path, Limits], None]] = {
        "excel": _check_workbook,
        "parquet": _check_parquet,
        "ipc": _check_feather,
    }
    if kind in checks:
        checks[kind](path, limits)
        return
    if limits.growth == 0:
        _check_stream(path, limits)
    if kind in (None, "json"):
        check_first_line(path, kind, limits)


def _check_sizes_in(folder: Path, limits: Limits) -> None:
    for file in sorted(folder.rglob("*")):
        if file.is_file() and file.stat().st_size:
            check_size(file, limits)


def _check_workbook(path: Path, limits: Limits) -> None:
    """Cells count as the rectangle around all of them, which is what is made of them.

    Any member may be a sheet. All are unpacked, so that none is larger than it says.
    """
    most = max(limits.workbook_bytes, limits.growth * path.stat().st_size)
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            unpacked = sum(member.file_size for member in members)
            refuse_more(path, "bytes when it is unpacked", most, unpacked, limits)
            if "xl/workbook.bin" in archive.namelist():
                raise DataFormatError(
                    "a workbook must be of the kind .xlsx, found a binary one; save it as .xlsx",
                    path,
                )
            for member in members:
                with archive.open(member) as content:
                    _check_cells(content, path, limits)
    except (*DAMAGES, NotImplementedError) as error:
        raise DataFormatError(
            f"there must be a whole Excel workbook, found a broken one ({error}); save it again",
            path,
        ) from None


def _check_cells(content: Any, path: Path, limits: Limits) -> None:
    """Count the cells of a sheet, read from the stream `content`; DataFormatError if there are more
    than the limits allow."""
    sheet = Sheet()
    rest = b""
    while data := content.read(BLOCK_BYTES):
        block = rest + data
        end = max(block.rfind(b"<"), 0)  # a tag may go on in the next block
        sheet.add(block[:end])
        rest = block[end:]
        refuse_more(path, "cells", limits.cells, sheet.cells, limits)
    sheet.add(rest)
    refuse_more(path, "cells", limits.cells, sheet.cells, limits)


class Sheet:
    """The number of cells in the rectangle around all those of a sheet, by its tags."""

    def __init__(self) -> None:
        self.rows = self.last_row = 0
        self.last_column = self.widest = self.width = 0  # width: cells of the row at hand
        self.column_of: dict[bytes, int] = {b"": 0}

    def add(self, tags: bytes) -> None:
        """Count the cells of the next tags, which are whole."""
        first, *following = ROW.split(tags)
        self.width += len(CELL.findall(first))
        self.widest = max(self.widest, self.width)
        for row in following:
            self.width = len(CELL.findall(row))
            self.widest = max(self.widest, self.width)
        self.rows += len(following)
        for letters, digits in {*PLACE.findall(tags)}:
            if letters not in self.column_of:
                self.column_of[letters] = _column_number(letters)
            self.last_column = max(self.last_column, self.column_of[letters])
            self.last_row = max(self.last_row, int(digits))

    @property
    def cells(self) -> int:
        """Rows and cells need not say where they stand; they follow each other then."""
        return max(self.rows, self.last_row) * max(self.widest, self.last_column)


def _column_number(letters: bytes) -> int:
    """The number of a column of a sheet, from 1.

    >>> _column_number(b"A"), _column_number(b"AA"), _column_number(b"XFD")
    (1, 27, 16384)
    """
    number = 0
    for letter in letters:
        number = 26 * number + letter - ord("A") + 1
    return number


def _check_values(path: Path, columns: int, values: int, limits: Limits) -> None:
    """DataFormatError for a file with more columns, or more values in all of them together, than
    the limits allow."""
    refuse_more(path, "columns", limits.columns, columns, limits)
    most = max(limits.values, limits.growth * path.stat().st_size // VALUE_BYTES)
    refuse_more(path, "values", most, values, limits)


def _check_parquet(path: Path, limits: Limits) -> None:
    """Values of lists count one by one."""
    try:
        found = pa.parquet.read_metadata(path)
        groups = found.num_row_groups
        _check_values(path, found.num_columns, found.num_rows * found.num_columns, limits)
        chunks = groups * found.num_columns
        refuse_more(path, "groups of rows, times columns", limits.values // 100, chunks, limits)
        _check_values(path, found.num_columns, _count_values(found), limits)
    except BROKEN as error:
        raise _broken(path, "Parquet", error) from None


def _count_values(found: pa.parquet.FileMetaData) -> int:
    """The values of all columns of a Parquet file.

    Of columns without lists they are the rows. pyarrow is asked for no more than those with lists:
    where a damaged file has wrong statistics of a column, it would end the process (26.0.1).
    """
    values = 0
    for number in range(found.num_row_groups):
        group = found.row_group(number)
        for k in range(found.num_columns):
            has_lists = found.schema.column(k).max_repetition_level > 0
            values += group.column(k).num_values if has_lists else group.num_rows
    return values


def _check_feather(path: Path, limits: Limits) -> None:
    try:
        # with one thread, as `memory` asks for, it would wait for ever
        pa.set_io_thread_count(max(pa.io_thread_count(), 2))
        found = pa.dataset.dataset(path, format="ipc")
        columns = len(found.schema.names)
        _check_values(path, columns, columns * found.count_rows(), limits)
    except BROKEN as error:
        raise _broken(path, "Feather", error) from None


def _broken(path: Path, kind: str, error: Exception) -> DataFormatError:
    return DataFormatError(
        f"there must be a whole {kind} file, found a broken one ({error}); export it again", path
    )


def _check_stream(path: Path, limits: Limits) -> None:
    """Unpack a compressed file to count its bytes, and keep nothing of it.

    Only where limits do not grow with the size of a file: `check_growth` counts the others while
    they are read.
    """
    with open(path, "rb") as file:
        if not file.read(6).startswith((*COMPRESSED,)):
            return
    unpacked = 0
    for block in file_blocks(path, lambda: 1, BLOCK_BYTES):
        unpacked += len(block)
        refuse_more(path, "bytes when it is unpacked", limits.stream_bytes, unpacked, limits)
