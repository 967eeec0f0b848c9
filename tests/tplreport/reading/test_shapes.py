"""Thirty kinds of files as people have them: the first try works, or the error names the right
remedy."""

import bz2
import gzip
import lzma
import os
import re
import subprocess
import sys
import threading
import zipfile

import numpy as np
import pandas as pd
import pyarrow.feather
import pytest

from tests.tplreport.reading.test_observations import listed
from tplreport import read_sequences
from tplreport.reading import rows_by_user, text_files
from tplreport.reading.table import read_counts
from workflow.configuration import ROOT

VISITS = pd.DataFrame(
    {
        "user": ["a", "a", "a", "b", "b"],
        "time": [1, 2, 3, 1, 2],
        "state": ["home", "bar", "home", "bar", "bar"],
    }
)
CSV = VISITS.to_csv(index=False)
FOUND = [("a", ["home", "bar", "home"]), ("b", ["bar", "bar"])]
DAYS = "user;date;clock;state\na;03.08.2022;09:00;home\na;02.08.2022;10:00;bar\n"
SPELLS = (
    "user,start,end,state\na,2024-01-01,2024-01-03,home\n"
    "a,2024-01-03,2024-01-04,bar\na,2024-01-08,2024-01-09,home\n"
)
TRIPS = "bike,when,start,end\n7,1,park,station\n7,2,station,park\n8,1,park,park\n"
WIDE = "person,mon,tue,wed\nann,home,bar,home\nbob,bar,,bar\n"
LONG = "x" * 5_000_000
MEASURED = "user,time,state\n" + "".join(f"1,{t},{t * 1.5 % 4}\n" for t in range(8))


def zipped(path, **members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)


def encrypted(path):
    zipped(path, visits=CSV)
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\1\2") + 8] |= 1  # in the list of members
    path.write_bytes(content)


def partitioned(path):
    for user, own in VISITS.groupby("user"):
        (path / f"user={user}").mkdir(parents=True)
        own[["time", "state"]].to_parquet(path / f"user={user}" / "part.parquet")


def geolife(path):
    (path / "000" / "Trajectory").mkdir(parents=True)
    (path / "000" / "Trajectory" / "1.plt").write_text("Geolife trajectory\n")


def workbook(path, frame):
    """An Excel workbook of one sheet, written as text."""
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006/relationships"
    kinds = {
        int: "<c><v>{}</v></c>",
        str: "<c t='inlineStr'><is><t xml:space='preserve'>{}</t></is></c>",
    }
    kinds |= {float: kinds[int], bool: "<c t='b'><v>{:d}</v></c>", type(None): "<c/>"}
    rows = [frame.columns, *frame.itertuples(index=False)]
    cells = ["".join(kinds[type(one)].format(one) for one in row) for row in rows]
    sheet = "".join(f"<row>{row}</row>" for row in cells)
    parts = {
        "[Content_Types].xml": "<Types xmlns='http://schemas.openxmlformats.org/package/2006/content-types'/>",
        "_rels/.rels": f"<Relationships xmlns='{package}'>"
        f"<Relationship Id='book' Type='{office}/officeDocument' Target='xl/workbook.xml'/>"
        "</Relationships>",
        "xl/workbook.xml": f"<workbook xmlns='{main}' xmlns:r='{office}'><sheets>"
        "<sheet name='visits' sheetId='1' r:id='first'/></sheets></workbook>",
        "xl/_rels/workbook.xml.rels": f"<Relationships xmlns='{package}'>"
        f"<Relationship Id='first' Type='{office}/worksheet' Target='worksheets/sheet1.xml'/>"
        "</Relationships>",
        "xl/worksheets/sheet1.xml": f"<worksheet xmlns='{main}'><sheetData>{sheet}</sheetData>"
        "</worksheet>",
    }
    zipped(path, **parts)


def workbook_in_folder(path):
    path.mkdir()
    workbook(path / "a.csv", VISITS)


def text(content, encoding="utf-8"):
    return lambda path: path.write_bytes(content.encode(encoding))


def case(write, expected, **arguments):
    """What writes the file, or its text; the sequences or the error; and the arguments of
    `read_sequences`."""
    return text(write) if isinstance(write, str) else write, arguments, expected


FILES = {
    "no header": case(CSV.partition("\n")[2], FOUND, user="0", time="1", state="2"),
    "bars": case(CSV.replace(",", "|"), FOUND),
    "UTF-16": case(text(CSV, "utf-16"), FOUND),
    "Latin-1": case(text(CSV + "b,3,café\n", "latin-1"), "line 7: .*iconv -f LATIN1 -t UTF-8"),
    "gzip": case(lambda path: path.write_bytes(gzip.compress(CSV.encode())), FOUND),
    "bz2": case(lambda path: path.write_bytes(bz2.compress(CSV.encode())), FOUND),
    "xz": case(lambda path: path.write_bytes(lzma.compress(CSV.encode())), FOUND),
    "zip, encrypted": case(
        encrypted, "encrypted .*password required .*; download it again, or unpack it"
    ),
    "zip": case(lambda path: zipped(path, visits=CSV), FOUND),
    "zip of two": case(
        lambda path: zipped(path, one=CSV, two=CSV), "a zip archive of several files; unpack"
    ),
    "xlsx": case(lambda path: workbook(path, VISITS), FOUND),
    "xlsx, twice": case(
        lambda path: workbook(path, pd.concat([VISITS, VISITS.assign(state="bus")])),
        "rows?, .* row 7 of",
    ),
    "xlsx, text": case(
        lambda path: workbook(
            path, pd.DataFrame({"user": ["007", "7"], "time": [1, 1], "state": ["NA", "1E5"]})
        ),
        [("007", ["NA"]), ("7", ["1E5"])],
        missing="",
    ),
    "xlsx, cut": case(
        lambda path: zipped(path, **{"[Content_Types].xml": "", "xl/workbook.xml": ""}),
        "a whole Excel workbook, found a broken one .*; save it again",
    ),
    "JSON lines": case(lambda path: VISITS.to_json(path, orient="records", lines=True), FOUND),
    "JSON lines, spaced": case(
        '{ "user": "a", "time": 1, "state": "home"}\n { "user": "a", "time": 2, "state": "bar"}\n',
        [("a", ["home", "bar"])],
    ),
    "feather": case(lambda path: pyarrow.feather.write_feather(VISITS, str(path)), FOUND),
    "Parquet": case(VISITS.to_parquet, FOUND),
    "Parquet, cut": case(
        lambda path: path.write_bytes(b"PAR1" + b"x" * 50), "a whole Parquet file, found a broken"
    ),
    "partitioned": case(partitioned, FOUND),
    "folder of a workbook": case(
        workbook_in_folder, "a.csv: .* found an Excel workbook; read it alone, or save it as"
    ),
    "Geolife": case(geolife, "found .*1.plt; read it by experiments.datasets.readers.geolife"),
    "XES": case(
        '<?xml version="1.0"?><log></log>\n', "no event has a case, an activity and a readable time"
    ),
    "web page": case(
        "<!doctype html>\n<p>x</p>\n", "one column of state, found '<!doctype html>' in a web page"
    ),
    "uid": case(CSV.replace("user", "uid"), FOUND),
    "event log": case(
        CSV.replace("user,time,state", "case:concept:name,time:timestamp,concept:name"), FOUND
    ),
    "R": case(
        '"user","time","state"\n"1","a",1,"home"\n"2","a",2,"bar"\n', [("a", ["home", "bar"])]
    ),
    "comment": case(
        "# of 2024\n" + CSV, "line 1: a header must not begin with #, .*; remove # or the comment"
    ),
    "wide": case(
        WIDE, [("ann", FOUND[0][1])] + [("bob", ["bar"])] * 2, user="person", state="mon..wed"
    ),
    "wide, unnamed": case(
        WIDE, "one column of state, .* all states of a row as state='first..last'"
    ),
    "wide, misspelt": case(
        WIDE, "must name two columns in order, found 'mon..thu'", state="mon..thu"
    ),
    "trips": case(
        TRIPS,
        [(7, ["park", "station"]), (7, ["station", "park"]), (8, ["park", "park"])],
        user="bike",
        state="start+end",
    ),
    "spells": case(SPELLS, [("a", ["home", "bar"]), ("a", ["home"])], time="start", until="end"),
    "spells by day": case(
        SPELLS,
        [("a", ["home", "home", "bar"]), ("a", ["home"])],
        time="start",
        until="end",
        step="1D",
    ),
    "overlap": case(
        SPELLS.replace("01-03,home", "01-09,home"),
        "before the next one, found one until .* in line 2 of",
        time="start",
        until="end",
    ),
    "wrong user": case(
        CSV, "one column of user 'usr', found 'user', .*; name it by user=", user="usr"
    ),
    "state and cells": case(CSV, "a column or the cells of pos", state="state", cell_km=1.0),
    "no times": case(
        CSV.replace("time", "z"),
        "there must be times, found none among .*: name their column by time=, "
        "or give order='rows'",
    ),
    "empty": case("", "line 1: .* in UTF-8, found an empty file; unpack or export it again"),
    "empty first line": case(
        "\n" + CSV, "line 1: the first line must .*, found an empty line; remove it"
    ),
    "bare CR": case(CSV.replace("\n", "\r"), "line 1: .*found a CR alone; convert"),
    "a long row": case(CSV + f"b,3,{LONG}\n", [FOUND[0], ("b", ["bar", "bar", LONG])]),
    "header": case("user,time,state\n", "there must be observations, found no row in "),
    "empty time": case(CSV + "a,,b\n", "time must not be empty, .* in line 7 of .*; drop it"),
    "mixed times": case(
        CSV + "a,2.1.2024,b\n", "times must all be numbers, .*ISO8601, .*found '2.1.2024' in line 7"
    ),
    "mixed offsets": case(
        "user,time,state\n1,2024-01-01T10:00Z,a\n1,2024-01-02T10:00,b\n",
        "all with an offset from UTC or all without, found '2024-01-02T10:00' in line 3",
    ),
    "hours": case(
        "user,time,state\n1,2024-01-01T10,a\n", "times must all .*, found '2024-01-01T10' in line 2"
    ),
    "offsets": case(
        DAYS.replace("08.2022;", "08.2022 10:00 +0100;"),
        [("a", ["bar", "home"])],
        time="date",
        time_format="%d.%m.%Y %H:%M %z",
    ),
    "same time": case(CSV, "same_time must be one of .*, found 'both'", same_time="both"),
    "SPMF, named": case(
        "@CONVERTED_FROM_TEXT\n@ITEM=1=home page\n@ITEM=3=news\n1 -1 3 -1 1 -1 -2\n3 -1 -2\n",
        [(0, ["home page", "news", "home page"]), (1, ["news"])],
    ),
    "SPMF, one name": case(
        "@ITEM=1=2\n1 -1 2 -1 -2\n", "different names, found '2' for 1 and 2; rename one"
    ),
    "SPMF, Latin-1": case(
        text("@ITEM=1=café\n1 -1 -2\n", "latin-1"),
        "data: an SPMF file must be text in UTF-8 .*; conv",
    ),
    "SPMF, users": case(
        "1 -1 2 -1 -2\n", "must be read without user, found user=0; leave it out", user=0
    ),
    "row, bins": case("user,a,b\n1,1,4\n", [(1, ["1 to 2.5", "2.5 to 4"])], state="a+b", bins=2),
    "row, step": case(
        "user,a,b\n1,1,2\n", "a sequence a row must be .* step=2; leave", state="a+b", step=2
    ),
    "SPMF, sets": case("1 -1 -2\n1 2 -1 -2\n", "line 2: .* found '1 2 -1 -2'; split sets"),
    "two columns": case(
        DAYS, [("a", ["bar", "home"])], time="date+clock", time_format="%d.%m.%Y %H:%M"
    ),
    "clock alone": case(
        DAYS, r"found '09:00' in line 2 of .*; join .* time='date\+time'", time="clock"
    ),
    "format": case(
        DAYS, "found '03.08.2022' in line 2 .*; give such as time_format='%d.%m.%Y'$", time="date"
    ),
    "measured": case(
        MEASURED, "found 1.5 in line 3 of .*; give bins=5, with binning='quantiles' or 'width'"
    ),
    "bins": case(
        MEASURED,
        [(1, [("0 to 1.75", "1.75 to 3.5")[t * 1.5 % 4 >= 1.75] for t in range(8)])],
        bins=2,
        binning="width",
    ),
    "world": case(
        "user,time,lat,lon\na,1,0,0\na,2,1,170\n",
        "one size within 1%, found a box 18903 km wide, .*; give a smaller box=",
        cell_km=100,
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_a_common_shape_is_read_or_refused_with_a_remedy(tmp_path, name):
    write, arguments, expected = FILES[name]
    path = tmp_path / "data"
    write(path)
    if isinstance(expected, str):
        with pytest.raises(ValueError, match=expected):
            read_sequences(path, **arguments)
    else:
        assert sorted(listed(read_sequences(path, **arguments))) == sorted(expected)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("day,home,work\n1,2,3\n2,4.5,5\n", {"home": [2.0, 4.5], "work": [3.0, 5.0]}),
        ("date;home;mean\n01.02.2024;105;98,2\n", {"home": [105.0], "mean": [98.2]}),
        ("time;home\n1;12.345\n2;1.5\n", {"home": [12.345, 1.5]}),
        ("time;home\n1;0.123\n2;0.456\n", {"home": [0.123, 0.456]}),
        ("time;home\n1.234;5\n2.345;6\n", {"home": [5, 6]}),
        ("time,home\n1,12.345\n2,1.234\n", {"home": [12.345, 1.234]}),
        ('day,home\n1,"1,234"\n', "found another cell in row 1 of column 'home'; correct it"),
        ("home,work\n<5,2\n12,3\n", "found another cell in row 1 of column 'home'"),
        ("home,work\n1,True\n2,False\n", "found another cell in row 1 of column 'work'"),
        (
            "week,home\nw1,2\n",
            "found another cell in row 1 of column 'week'; .* or name a column of times 'time'",
        ),
        (
            "day,<5,98.2\n1,2,3\n",
            "counts must begin with names of their columns, found a number; add a line",
        ),
        (
            "home,work\n1,\n",
            "found an empty cell in row 1 of column 'work'; write its count, 0 if nobody was there",
        ),
        ("time;home\n1;12.345\n2;1.000\n", "none with a point or a comma but those with three"),
        ("home;time;work\n12,345;1;7\n2,267;2;8\n", "where 1.234 may be 1234 or a little more"),
        (
            "home,work\n1,2\n1,2,3\n",
            "as many fields in each line as in the first, found: .* line 3, saw 3",
        ),
        ("home,work\n1,2,3\n", "as many fields in each line as in the first"),
        ("home\n1\nü\n".encode("latin-1"), "must be in UTF-8, .* byte 0xfc"),
        ("day\n1\n", "a row and a column of counts"),
    ],
)
def test_counts_are_read_as_numbers_or_refused(tmp_path, content, expected):
    path = tmp_path / "counts.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    if isinstance(expected, dict):
        assert read_counts(path).to_dict("list") == expected
    else:
        with pytest.raises(ValueError, match=expected):
            read_counts(path)


@pytest.mark.parametrize("options", [{}, {"state": "mon..wed"}, {"time": "date+clock"}])
def test_a_missing_file_is_named(tmp_path, options):
    with pytest.raises(
        FileNotFoundError,
        match=r"there must be a file or folder .*none.csv, found none; check its name",
    ):
        read_sequences(tmp_path / "none.csv", **options)


def test_the_next_block_is_made_by_a_thread_that_ends_with_the_reader():
    before, this = threading.active_count(), threading.get_ident()
    blocks = text_files.Ahead(map(lambda number: (6 // number, threading.get_ident()), [3, 2, 0]))
    (first, maker), (second, _) = next(blocks), next(blocks)
    assert (first, second) == (2, 3)
    assert maker != this
    with pytest.raises(ZeroDivisionError):
        next(blocks)
    whole = text_files.Ahead(iter("abc"))
    assert [*whole, *whole] == ["a", "b", "c"]
    left = text_files.Ahead(iter("abc"))
    assert next(left) == "a"
    left.close()
    assert threading.active_count() == before


def test_a_reader_that_is_forgotten_does_not_wait_for_its_thread():
    """Garbage may be collected while a thread is being started, which waits for that."""
    before = set(threading.enumerate())
    goes_on = threading.Event()

    def blocks():
        yield "a"
        goes_on.wait(60.0)

    forgotten = text_files.Ahead(blocks())
    assert next(forgotten) == "a"
    (maker,) = set(threading.enumerate()) - before
    del forgotten
    assert maker.is_alive()
    goes_on.set()
    maker.join(60.0)
    assert set(threading.enumerate()) == before


class TestManyBlocks:
    """A file read block by block, and users taken part by part, give what one block gives."""

    @pytest.fixture
    def frame(self):
        rng = np.random.default_rng(3)
        times = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.permutation(2000), unit="h")
        frame = {
            "user": rng.integers(0, 30, 2000),
            "time": times,
            "state": rng.choice(["a", "b", "NO", "7"], 2000),
        }
        frame["state"][1900] = "c"  # after many blocks without a label of their own
        return pd.DataFrame(frame)

    @pytest.mark.parametrize(
        "options",
        [
            {"order": "times"},
            {"order": "times", "max_gap": "60h"},
            {"step": "6h"},
            {"step": "6h", "max_gap": "2D"},
        ],
    )
    @pytest.mark.filterwarnings("ignore:.* of all states are held", "ignore:.* between two steps")
    def test_files_and_frames_give_the_same_sequences_in_or_out_of_memory(
        self, tmp_path, monkeypatch, frame, options
    ):
        expected = listed(read_sequences(frame, **options))
        frame.to_csv(tmp_path / "data.csv", index=False)
        frame.to_parquet(tmp_path / "data.parquet", row_group_size=300)
        monkeypatch.setattr(text_files.line_blocks, "__defaults__", (700,))
        monkeypatch.setattr(rows_by_user, "PART", 250)
        for most, known, kind in ((10**9, 10**9, np.ndarray), (1, 3, np.memmap)):
            monkeypatch.setattr(rows_by_user, "IN_MEMORY", most)
            monkeypatch.setattr(rows_by_user, "KNOWN", known)
            for data in (tmp_path / "data.csv", tmp_path / "data.parquet", frame):
                found = read_sequences(data, **options)
                assert listed(found) == expected
                assert type(found.values) is kind

    def test_the_error_for_a_time_unlike_those_of_earlier_files_names_its_line(
        self, tmp_path, frame
    ):
        frame.assign(time=range(2000)).to_csv(tmp_path / "a.csv", index=False)
        frame.assign(time="2024-01-01").to_csv(tmp_path / "b.csv", index=False)
        with pytest.raises(
            ValueError,
            match="times must all be numbers, .* found '2024-01-01' in line 2 of .*b.csv",
        ):
            read_sequences(tmp_path)

    def test_bins_of_large_numbers_keep_names_of_their_own(self):
        data = pd.DataFrame(
            {"user": 1, "time": range(50), "state": np.linspace(5820000.1, 5820010.5, 50)}
        )
        assert read_sequences(data, bins=5).n_states == 5

    def test_bins_of_a_file_larger_than_memory_are_those_of_a_frame(self, tmp_path, monkeypatch):
        rng = np.random.default_rng(5)
        measured = pd.DataFrame(
            {"user": 1, "time": range(900), "state": rng.choice([0.25, 1.5, 2, 7, 8, 9.5], 900)}
        )
        measured.to_parquet(tmp_path / "data.parquet", row_group_size=100)
        for name, value in {"PART": 250, "IN_MEMORY": 1}.items():
            monkeypatch.setattr(rows_by_user, name, value)
        for bins in (2, 3, 5, 7):
            found = read_sequences(tmp_path / "data.parquet", bins=bins)
            edges = np.unique(np.quantile(measured["state"], np.linspace(0, 1, bins + 1)))
            place = np.clip(
                np.searchsorted(edges, measured["state"], "right") - 1, 0, len(edges) - 2
            )
            assert found.labels[found.values].tolist() == [
                f"{edges[k]:g} to {edges[k + 1]:g}" for k in place
            ]
        with pytest.raises(
            ValueError, match=r"found \S+ in row \d+ of .*data.parquet; give bins=5"
        ) as error:
            read_sequences(tmp_path / "data.parquet")
        value, row = re.search(r"found (\S+) in row (\d+)", str(error.value)).groups()
        assert int(row) == np.argmax(measured["state"] % 1 > 0)
        assert float(value) == measured["state"][int(row)]

    def test_a_file_with_other_columns_than_its_folder_is_named(self, tmp_path, frame):
        frame.to_csv(tmp_path / "a.csv", index=False)
        frame.drop(columns="time").to_csv(tmp_path / "b.csv", index=False)
        message = (
            "b.csv: there must be one column of time, "
            "found 'user', 'state' in a comma-separated file; name it by"
        )
        with pytest.raises(text_files.DataFormatError, match=message):
            read_sequences(tmp_path)

    def test_a_full_disk_is_reported_and_no_temporary_file_remains(self, tmp_path, frame):
        """A limit on the size of files stands for the end of the disk."""
        folder = tmp_path / "temporary"
        folder.mkdir()
        frame.to_csv(tmp_path / "data.csv", index=False)
        code = (
            "import resource, sys; from tplreport import read_sequences;"
            "from tplreport.reading import rows_by_user;"
            "rows_by_user.IN_MEMORY = 1;"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000));"
            "read_sequences(sys.argv[1])"
        )
        words = [sys.executable, "-c", code, str(tmp_path / "data.csv")]
        done = subprocess.run(
            words, capture_output=True, text=True, env=os.environ | {"TMPDIR": str(folder)}
        )
        found = (
            "OSError: there must be room for a temporary file, "
            f"found none in {folder} after 0 MB; set TMPDIR to"
        )
        assert found in done.stderr
        assert list(folder.iterdir()) == []

    @pytest.mark.slow
    def test_a_large_file_is_read_within_a_memory_limit(self, tmp_path):
        """8 million rows, 250 MB of text, of which 16 bytes a row are kept, in 0.8 GB."""
        rng = np.random.default_rng(4)
        with open(tmp_path / "data.csv", "w") as file:
            file.write("user,time,state\n")
            for _ in range(8):
                users, states, times = (
                    rng.integers(0, most, 1_000_000) for most in (20_000, 100, 10**15)
                )
                places = np.char.add("place ", states.astype(str))
                block = pd.DataFrame(
                    {"user": users, "time": times.astype("M8[us]"), "state": places}
                )
                block.to_csv(file, index=False, header=False)
        code = (
            "import sys; from tests.fuzzing import peak; from tplreport import read_sequences;"
            "found = read_sequences(sys.argv[1], order='times');"
            "print(len(found.values), peak() >> 10)"
        )
        command = [sys.executable, "-c", code, tmp_path / "data.csv"]
        values, megabytes = map(int, subprocess.check_output(command, text=True, cwd=ROOT).split())
        assert values == 8_000_000
        assert megabytes < 800


def test_counts_of_two_columns_with_one_name_are_refused(tmp_path):
    path = tmp_path / "counts.csv"
    path.write_text("home,work,home\n1,2,3\n")
    with pytest.raises(ValueError, match="columns of different names, found 'home' 2 times"):
        read_counts(path)


@pytest.mark.parametrize(("columns", "shown"), [(12, "'c11'; name"), (13, "'c11', ...; name")])
def test_the_error_for_a_missing_column_shows_twelve_columns(columns, shown):
    frame = pd.DataFrame({f"c{number}": [1] for number in range(columns)})
    with pytest.raises(ValueError, match="there must be one column of user 'x'") as error:
        read_sequences(frame, user="x", time="c0", state="c1")
    assert shown in str(error.value)
