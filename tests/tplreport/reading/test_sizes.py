"""A small file that holds very much is refused before it is read, by the page and the command."""

import gzip
import os
import subprocess
import sys
import zipfile
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet  # noqa: F401 - makes it an attribute of pa
import pytest

import tplreport as tr
from page.own_data import columns_of, read
from tplreport.reading import text_files
from tplreport.reading.sizes import check_size
from tplreport.reading.text_files import COMMAND, PAGE, DataFormatError, limits_of_command
from workflow.configuration import ROOT

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
RELATION = (
    '<Relationships xmlns="{}"><Relationship Id="r1" Type="{}/{}" Target="{}"/></Relationships>'
)
PARTS = {
    "[Content_Types].xml": "<Types/>",
    "_rels/.rels": RELATION.format(PACKAGE, OFFICE, "officeDocument", "xl/workbook.xml"),
    "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets>'
    '<sheet name="a" sheetId="1" r:id="r1"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": RELATION.format(PACKAGE, OFFICE, "worksheet", "sheets/a.xml"),
}


def workbook(path, rows, times=1):
    """A workbook of one sheet, which need not stand where Excel puts it; `rows` come so often."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in PARTS.items():
            archive.writestr(name, content)
        with archive.open("xl/sheets/a.xml", "w") as sheet:
            sheet.write(f'<worksheet xmlns="{MAIN}"><sheetData>'.encode())
            for _ in range(times):
                sheet.write(rows.encode())
            sheet.write(b"</sheetData></worksheet>")
    return path


def cells(*places):
    return "".join(f'<c r="{place}" t="str"><v>{place}</v></c>' for place in places)


def rows_like(count, width):
    return f"<row>{'<c><v>1</v></c>' * width}</row>" * count


def test_a_usual_workbook_is_read(tmp_path):
    head = "<row>" + "".join(f'<c t="str"><v>{name}</v></c>' for name in ("user", "time", "state"))
    body = "".join(
        f'<row><c><v>{k // 9}</v></c><c><v>{k}</v></c><c t="str"><v>s{k % 2}</v></c></row>'
        for k in range(90)
    )
    path = workbook(tmp_path / "visits.xlsx", f"{head}</row>{body}")
    check_size(path, PAGE)
    assert len(tr.read_sequences(path)) == 10


@pytest.mark.parametrize(
    "rows",
    [
        f'<row r="1">{cells("A1")}</row><row r="1048576">{cells("XFD1048576")}</row>',
        f"<row>{cells('A1')}</row><row>{cells('XFD1048576').replace(chr(34), chr(39))}</row>",
        f'<row r="1048576">{"<c><v>1</v></c>" * 16_384}</row>',
        f'<x:row r="999999">{"<x:c/>" * 20}</x:row>',
        f"<row>{'<c/>' * 200_000}</row>" * 51,
    ],
    ids=["corners", "single quotes", "a row without places", "prefixes", "many"],
)
def test_cells_of_a_sheet_count_as_the_rectangle_around_them(tmp_path, rows):
    path = workbook(tmp_path / "few.xlsx", rows)
    for limits in (PAGE, COMMAND):
        with pytest.raises(DataFormatError, match="at most [0-9,]+ (cells|bytes when it is unp)"):
            check_size(path, limits)


def test_each_cell_of_a_sheet_counts_once_wherever_a_block_ends(tmp_path, monkeypatch):
    path = workbook(tmp_path / "sheet.xlsx", rows_like(100, 10))
    wide = workbook(tmp_path / "wide.xlsx", f"<row>{cells('A1', 'J100')}</row>")
    for size in (1, 2, 3, 7, 50, 1000):
        monkeypatch.setattr("tplreport.reading.sizes.BLOCK_BYTES", size)
        for one in (path, wide):
            check_size(one, limits_with(cells=1000))
            with pytest.raises(DataFormatError, match="at most 999 cells, found 1,0"):
                check_size(one, limits_with(cells=999))


def limits_with(**changed):
    return replace(PAGE, **changed)


def test_a_member_that_is_larger_than_it_says_is_refused(tmp_path):
    path = workbook(tmp_path / "liar.xlsx", rows_like(1000, 10))
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        size = archive.getinfo("xl/sheets/a.xml").file_size.to_bytes(4, "little")
    assert content.count(size) >= 1
    path.write_bytes(bytes(content).replace(size, (40).to_bytes(4, "little")))
    with pytest.raises(DataFormatError, match="a whole Excel workbook, found a broken one"):
        tr.read_sequences(path)


def test_a_binary_workbook_is_refused_with_a_remedy(tmp_path):
    path = workbook(tmp_path / "binary.xlsx", "")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("xl/workbook.bin", b"")
    with pytest.raises(DataFormatError, match="save it as .xlsx"):
        check_size(path, COMMAND)


def long_parquet(path, groups=100):
    """As many rows as fit nothing, in 5 MB: all alike."""
    part = pa.table({name: np.zeros(4_000_000, int) for name in ("user", "time", "state")})
    with pa.parquet.ParquetWriter(path, part.schema) as writer:
        for _ in range(groups):
            writer.write_table(part, row_group_size=4_000_000)


def test_values_in_lists_of_parquet_and_feather_count_one_by_one(tmp_path):
    path = tmp_path / "rows.parquet"
    long_parquet(path, groups=1)
    with pytest.raises(DataFormatError, match="at most 10,000,000 values, found 12,000,000"):
        check_size(path, PAGE)
    check_size(path, COMMAND)
    lists = pa.table({"state": [np.zeros(20_000_000, np.int8)]})
    pa.parquet.write_table(lists, path)
    with pytest.raises(DataFormatError, match="at most 10,000,000 values, found 20,000,000"):
        check_size(path, PAGE)
    many = pa.table({"state": np.zeros(20_000_000, np.int8)})
    pa.feather.write_feather(many, path, compression="zstd")
    with pytest.raises(DataFormatError, match="at most 10,000,000 values, found 20,000,000"):
        check_size(path, PAGE)
    wide = pa.table({f"c{k}": [1] for k in range(2000)})
    pa.parquet.write_table(wide, path)
    with pytest.raises(DataFormatError, match="at most 1,000 columns, found 2,000"):
        check_size(path, PAGE)


def test_groups_of_rows_of_parquet_count_in_each_column(tmp_path):
    path = tmp_path / "groups.parquet"
    table = pa.table({name: np.arange(30) for name in ("user", "time", "state")})
    pa.parquet.write_table(table, path, row_group_size=1)
    check_size(path, limits_with(values=9000))
    with pytest.raises(DataFormatError, match="at most 89 groups of rows, times columns, found 90"):
        check_size(path, limits_with(values=8999))


def test_a_large_file_may_hold_so_many_times_its_size(tmp_path):
    drawn = np.random.default_rng(0).integers(2**63, size=3000)
    path = tmp_path / "rows.parquet"
    pa.parquet.write_table(pa.table({"state": drawn}), path)
    assert 3000 < path.stat().st_size // 8 < 4000
    check_size(path, limits_with(values=100, growth=1))
    with pytest.raises(DataFormatError, match="at most 2,999 values, found 3,000"):
        check_size(path, limits_with(values=2999))
    pa.parquet.write_table(pa.table({"state": np.zeros(4000, int)}), path)
    most = path.stat().st_size // 8
    with pytest.raises(DataFormatError, match=f"at most {most} values, found 4,000"):
        check_size(path, limits_with(values=50, growth=1))
    book = workbook(tmp_path / "rows.xlsx", rows_like(100, 10))
    check_size(book, limits_with(workbook_bytes=1, growth=100))
    with pytest.raises(DataFormatError, match=f"at most {book.stat().st_size:,} bytes when"):
        check_size(book, limits_with(workbook_bytes=1, growth=1))


WIDE = ",".join(f"c{k}" for k in range(30_000))


def long_text(lines):
    return "user,time,state\n" + "1,1,a\n" * lines


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("wide.csv", WIDE, "at most [0-9,]+ columns, found 30,000"),
        ("wide.csv", WIDE.replace(",", ";"), "at most [0-9,]+ columns, found 30,000"),
        ("wide.jsonl", "{" + WIDE.replace("c", '"').replace(",", '":1,') + '":1}\n', "columns"),
        ("line.csv", "x" * 5_000_000, "at most [0-9,]+ bytes in the first line"),
        ("blank.csv", "\n" * 10 + "x" * 5_000_000, "at most [0-9,]+ bytes in the first line"),
    ],
)
@pytest.mark.parametrize("limits", [PAGE, COMMAND], ids=["page", "command"])
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "packed"])
def test_first_lines_that_would_fill_memory_are_refused(
    tmp_path, name, content, message, limits, packed
):
    path = tmp_path / name
    path.write_bytes(gzip.compress(content.encode(), 1) if packed else content.encode())
    with pytest.raises(DataFormatError, match=message):
        check_size(path, limits)


@pytest.mark.parametrize(
    ("most", "lines"),
    [(4 << 20, 6_000_000), pytest.param(COMMAND.stream_bytes, 12_000_000, marks=pytest.mark.slow)],
)
@pytest.mark.parametrize("name", ["long.csv.gz", "log.xes.gz"])
def test_streams_are_measured_while_they_are_unpacked(tmp_path, monkeypatch, name, most, lines):
    """By the command, too, where every day it may unpack less: it reads what it has unpacked."""
    path = tmp_path / name
    begin = b"<?xml version='1.0'?><log>" if "xes" in name else b""
    path.write_bytes(gzip.compress(begin + long_text(lines).encode(), 1))
    with pytest.raises(DataFormatError, match="at most 33,554,432 bytes when it is unpacked"):
        check_size(path, PAGE)
    monkeypatch.setattr(text_files, "COMMAND", replace(COMMAND, stream_bytes=most))
    with pytest.raises(ValueError, match="unpacked, it must have at most|expected an XES event"):
        tr.read_sequences(path)


def test_each_byte_of_an_unpacked_stream_counts_once(tmp_path):
    path = tmp_path / "rows.csv.gz"
    path.write_bytes(gzip.compress(long_text(200)[:1000].encode()))
    check_size(path, limits_with(stream_bytes=1000))
    with pytest.raises(DataFormatError, match="at most 999 bytes when it is unpacked"):
        check_size(path, limits_with(stream_bytes=999))


def test_limits_hold_for_each_file_of_a_folder(tmp_path):
    (tmp_path / "a.csv").write_text("user,time,state\n1,1,a\n")
    (tmp_path / "b.csv").write_text(WIDE)
    with pytest.raises(DataFormatError, match="b.csv: there must be at most 20,000 columns"):
        tr.read_sequences(tmp_path)


def test_an_environment_variable_raises_the_limits_by_a_factor(monkeypatch):
    assert limits_of_command() == COMMAND
    monkeypatch.setenv("TPLREPRO_LIMITS", "10")
    assert limits_of_command().cells == 10 * COMMAND.cells
    monkeypatch.setenv("TPLREPRO_LIMITS", "much")
    with pytest.raises(ValueError, match="TPLREPRO_LIMITS must be a whole number from 1 on"):
        limits_of_command()


#: Files of at most 5 MB that took gigabytes or minutes.
BOMBS = {
    "cells.xlsx": lambda path: workbook(path, rows_like(4096, 18), times=256),
    "rows.parquet": long_parquet,
    "columns.csv": lambda path: path.write_text("user,time,state" + ",c" * 500_000 + "\n1,1,a\n"),
}
ONE = """
import resource, sys
from pathlib import Path
import page.own_data, tplreport.reading.observations, pyarrow.dataset, pyarrow.parquet
before = resource.getrusage(resource.RUSAGE_SELF)
try:
    if sys.argv[1] == "page":
        page.own_data.read(Path(sys.argv[2]).read_bytes(), "file", ())
    else:
        tplreport.reading.observations.read_sequences(sys.argv[2])
except ValueError as error:
    assert "there must be at most" in str(error), error
after = resource.getrusage(resource.RUSAGE_SELF)
print((after.ru_maxrss - before.ru_maxrss) // 1024)
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.parametrize("reader", ["page", "command"])
def test_a_small_file_that_would_take_gigabytes_is_refused_within_500_megabytes(
    tmp_path, name, reader
):
    path = tmp_path / name
    BOMBS[name](path)
    assert path.stat().st_size < 5e6
    words = [sys.executable, "-c", ONE, reader, path]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 500


def test_the_page_lists_no_columns_of_a_file_with_too_many_and_refuses_it(tmp_path):
    content = WIDE.encode()
    assert columns_of(content, "wide.csv") == []
    with pytest.raises(
        ValueError, match="^wide.csv: there must be at most 1,000 columns.*tplrepro r"
    ):
        read(content, "wide.csv", ())


def test_a_feather_file_is_counted_even_where_arrow_has_one_thread(tmp_path):
    """As under `ulimit -v`: rows were counted by a data set, which then waited for ever."""
    path = tmp_path / "moves.feather"
    pa.feather.write_feather(pa.table({"user": [1, 1], "time": [1, 2], "state": ["a", "b"]}), path)
    script = (
        "import sys; from pathlib import Path; from tplreport.reading.sizes import check_size;"
        "from tplreport.reading.text_files import COMMAND; check_size(Path(sys.argv[1]), COMMAND)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)],
        env=os.environ | {"ARROW_IO_THREADS": "1", "PYTHONPATH": str(ROOT)},
        timeout=60,
    )
    assert done.returncode == 0
