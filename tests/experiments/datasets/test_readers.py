"""What readers promise: defects, broken and cut files, order, errors with line; and what one format
alone has.

Blocks of lines, and the search for malformed ones, are tested against plain line-by-line code.
"""

import gzip
import io
import warnings
import zipfile
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import NamedTuple

import pandas as pd
import pytest

from experiments.datasets.geolife import HEADER
from experiments.datasets.readers import gaze, geolife, gowalla, kosarak, registry
from experiments.datasets.readers.registry import DatasetNotFoundError
from tplreport.reading import grid
from tplreport.reading.text_files import DataFormatError, line_blocks

LATER = f"{datetime.now(UTC) + timedelta(days=2):%Y-%m-%d}"


class Format(NamedTuple):
    """A format: its reader, where a file stands, what precedes the sound lines, known defects and
    broken lines."""

    reader: object
    file: str
    head: bytes
    sound: list
    known: dict  # reasons, and lines that are skipped for them if they follow the sound ones
    broken: list
    options: dict | None = None

    def path(self, folder, lines=None, name=None, ended=True):
        """Write a file of these lines, or of these bytes, and return what the reader is to load."""
        path = folder / (name or self.file)
        path.parent.mkdir(parents=True, exist_ok=True)
        data = lines
        if not isinstance(lines, bytes):
            data = (
                self.head
                + b"\n".join(self.sound if lines is None else lines)
                + (b"\n" if ended else b"")
            )
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
        return folder if path.suffix == ".plt" else path

    def load(self, path, **options):
        return self.reader.load(path, **(self.options or {}), **options)

    def line(self, i):
        """Number of the i-th line below the head."""
        return self.head.count(b"\n") + 1 + i


def point(latitude="39.9", longitude="116.4", altitude="100", day="2008-10-23", clock="02:53:06"):
    return f"{latitude},{longitude},0,{altitude},39744.12,{day},{clock}".encode("latin-1")


def visit(latitude="34.1", longitude="-118.2", user="1", time="2010-10-17T19:26:05Z", place="5"):
    return f"{user}\t{time}\t{latitude}\t{longitude}\t{place}".encode("latin-1")


FORMATS = {
    "geolife": Format(
        geolife,
        "Data/000/Trajectory/a.plt",
        HEADER,
        [point(clock=f"02:53:0{s}") for s in (4, 5, 6)],
        {
            "coordinates out of range": [point("400.1666"), point("39.9", "-180.5"), point("nan")],
            "time before the recording began": [point(day="2000-01-01")],
            "time in the future": [point(day=LATER)],
            "duplicate time": [point("39.91")],
        },
        [
            b"39.9,116.4,0,100",
            point("a", "b"),
            point(day="2008-13-23"),
            point(clock="25:53:09"),
            point(clock="02:53"),
        ]
        + [point(altitude=""), point(altitude="\xe9")],
    ),
    "gowalla": Format(
        gowalla,
        "check-ins.txt",
        b"",
        [visit("30.2", "-97.7", 0, f"2010-10-{day}T23:55:27Z", 22) for day in (19, 18, 17)]
        + [visit("34.04", "-118.26")],
        {
            "coordinates out of range": [visit("400.0"), visit("40.0", "-197.7")],
            "position (0, 0)": [visit("0", "0")],
            "missing field": [visit("")],
            "time in the future": [visit(time=LATER + "T00:00:00Z")],
            "duplicate time": [visit(user="1")],
        },
        [visit("34", "-118\t5\t1"), b"1\t2010-10-17T19:26:05Z\t34\t-118", visit(time="17.10.2010")]
        + [visit(time=f"2010-10-17T19{rest}Z") for rest in ("", ":26", ":26:05.5")]
        + [visit(user="x"), visit("north"), visit(place="cafe"), visit(place="\xe9")],
    ),
    "kosarak": Format(
        kosarak,
        "kosarak.dat",
        b"",
        [b"1 2", b"3", b"4 5 6"],
        {"empty session": [b"", b" \t"]},
        [
            b"1 x 2",
            b"0x10 2",
            b"-3",
            b"1.5",
            b"4,5",
            b"99999999999",
            b"2147483648",
            b"7 \xff",
            b"\0",
        ],
    ),
    "gaze": Format(
        gaze,
        "A_1.csv",
        b"t,x,y\n",
        [b"0,1,2", b"1,0,4", b"2,5,6"],
        {"lost sample": [b"3,0,0", b"3,,", b"3,nan,3", b"3,inf,3"], "duplicate time": [b"2,9,9"]},
        [b"1,2", b"1,2,3,4", b"a,1,2", b"1;2;3", b"1,2,\xff"],
        {"time": "t", "x": "x", "y": "y"},
    ),
}
KNOWN = [
    (n, line, reason)
    for n, one in FORMATS.items()
    for reason, lines in one.known.items()
    for line in lines
]
BROKEN = [(name, line) for name, one in FORMATS.items() for line in one.broken]
LINES = ["gowalla", "kosarak", "gaze"]  # read in blocks, plain or compressed
TIMED = ["geolife", "gowalla", "gaze"]


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr("tplreport.reading.text_files.line_blocks.__defaults__", (7,))


@pytest.mark.parametrize(("name", "line", "reason"), KNOWN)
def test_known_defects_are_skipped_counted_and_placed(tmp_path, name, line, reason):
    one = FORMATS[name]
    expected = one.load(one.path(tmp_path))
    frame = one.load(one.path(tmp_path, [*one.sound, line]))
    assert frame.equals(expected)
    assert frame.attrs["skipped"] == {reason: 1}
    where = f"{tmp_path / one.file}, line {one.line(len(one.sound))}"
    assert frame.attrs["skipped_examples"] == {reason: where}


@pytest.mark.parametrize(("name", "line"), BROKEN)
def test_broken_lines_are_errors_with_file_and_line(tmp_path, name, line):
    one = FORMATS[name]
    path = one.path(tmp_path, [one.sound[0], line, *one.sound[1:]])
    message = rf"{one.file}, line {one.line(1)}: expected .*, found .*; (mend|convert)"
    with pytest.raises(DataFormatError, match=message):
        one.load(path)


@pytest.mark.parametrize("name", FORMATS)
def test_a_last_line_without_an_end_gives_a_warning(tmp_path, name):
    one = FORMATS[name]
    expected = one.load(one.path(tmp_path))
    path = one.path(tmp_path, one.sound, ended=False)
    with pytest.warns(
        UserWarning,
        match=rf"{one.file}, line {one.line(len(one.sound) - 1)}: the last line has no end",
    ):
        assert one.load(path).equals(expected)


@pytest.mark.parametrize("name", TIMED)
def test_lines_out_of_order_are_sorted_and_repeated_times_counted_across_blocks(
    tmp_path, name, small_blocks
):
    one = FORMATS[name]
    first, *others = one.sound
    expected = one.load(one.path(tmp_path))
    for lines in (
        [others[0], first, *others[1:]],
        [first, first, *others],
        [first, *others, first],
    ):
        frame = one.load(one.path(tmp_path, lines))
        assert frame.equals(expected)
        repeated = len(lines) - len(one.sound)
        assert frame.attrs["skipped"] == ({"duplicate time": repeated} if repeated else {})


@pytest.mark.parametrize(
    ("name", "lines", "box", "users", "outside"),
    [
        ("geolife", [point(), point("50.0", clock="02:53:07")], (39, 40, 116, 117), [0], 1),
        ("gowalla", FORMATS["gowalla"].sound, grid.LOS_ANGELES, [1], 3),
    ],
)
def test_a_box_selects_rows_and_the_others_are_counted(tmp_path, name, lines, box, users, outside):
    one = FORMATS[name]
    path = one.path(tmp_path, lines)
    frame = one.load(path, box=box)
    assert frame["user"].tolist() == users  # users with one point stay
    assert frame.attrs["outside_box"] == outside
    assert frame.attrs["skipped"] == {}
    with pytest.raises(ValueError, match="box must be four numbers"):
        one.load(path, box=(40, 39, 116, 117))


@pytest.mark.parametrize(
    ("name", "file", "reason", "columns"),
    [
        (
            "geolife",
            "Data/001/Trajectory/b.plt",
            "file without points",
            "trajectory time latitude longitude altitude",
        ),
        ("gaze", "B_1.csv", "file without samples", "recording time x y"),
    ],
)
def test_files_without_rows_below_their_head_are_skipped_and_counted(
    tmp_path, name, file, reason, columns
):
    one = FORMATS[name]
    one.path(tmp_path, [], file, ended=False)
    frame = one.load(tmp_path)
    assert len(frame) == 0
    assert list(frame) == ["user", *columns.split()]
    one.path(tmp_path)
    frame = one.load(tmp_path)
    assert frame["user"].nunique() == 1
    assert frame.attrs["skipped"] == {reason: 1}
    assert frame.attrs["skipped_examples"][reason].endswith(f"{file}, line {one.line(0)}")


def archive(*names, lines=FORMATS["geolife"].sound, flips=()):
    """A zip archive of two trajectories of these names, with bits flipped: (a mark, so many bytes
    after it, which)."""
    file = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
        warnings.simplefilter("ignore")  # of names that are there twice
        for name in names or ("Data/000/Trajectory/a.plt", "Data/001/Trajectory/b.plt"):
            made.writestr(name, HEADER + b"\n".join(lines) + b"\n")
    data = bytearray(file.getvalue())
    for mark, after, bits in flips:
        data[data.index(mark) + after] ^= bits
    return bytes(data)


# Flags stand 6 and 8 bytes after these marks, methods 8 and 10; in ENTRY a size 24, a comment 32, a
# name 46.
MEMBER, ENTRY = b"PK\3\4", b"PK\1\2"


WRONG = [
    (
        "geolife",
        "a.zip",
        archive()[:200],
        "expected Geolife's whole zip archive .* found a zip archive",
    ),
    ("geolife", "a.zip", b"1 2 3\n", "found a file of sessions"),
    (
        "geolife",
        "a.zip",
        archive(flips=[(MEMBER, 70, 255)]),
        r"a\.zip::Data/000/.*a\.plt: the archive is damaged",
    ),
    (
        "geolife",
        "a.zip",
        archive(flips=[(ENTRY, 55, 32)]),
        "File name in directory 'Data/000/t.* differ",
    ),
    (
        "geolife",
        "a.zip",
        archive(flips=[(ENTRY, 68, 1)]),
        r"a\.zip::Data/000/Trajectory/a\.qlt: .* damaged",
    ),
    (
        "geolife",
        "a.zip",
        archive(flips=[(ENTRY, 32, 71)]),
        "one entry of its directory holds another",
    ),
    (
        "geolife",
        "a.zip",
        archive(flips=[(ENTRY, 8, 1), (MEMBER, 6, 1)]),
        "is encrypted, password required",
    ),
    (
        "geolife",
        "a.zip",
        archive(flips=[(ENTRY, 10, 64), (MEMBER, 8, 64)]),
        "compression method is not supported",
    ),
    (
        "geolife",
        "a.zip",
        archive("0/Trajectory/a.plt", "0/Trajectory/a.plt"),
        "one trajectory of a name, found two",
    ),
    (
        "geolife",
        "a.zip",
        archive(flips=[(ENTRY, 27, 64)]),
        "at most 67108864 bytes, 100 times its size or 64 MiB",
    ),
    (
        "geolife",
        "a.zip",
        archive("99999999999/Trajectory/a.plt"),
        "there must be trajectories NNN/Traj",
    ),
    ("geolife", None, HEADER[:60], "line 1: expected six header lines, 'Geolife"),
    (
        "geolife",
        None,
        HEADER.replace(b"WGS 84\r\n", b"") + point() + b"\n",
        "line 1: expected six header lines",
    ),
    (
        "gowalla",
        None,
        b"2010-10-19T23:55:27Z\t0\t30.2\t-97.7\t5\n",
        "line 1: expected five .* official order",
    ),
    (
        "kosarak",
        None,
        b"1 2\n3\r4\n",
        "line 2: lines must end in LF or CRLF, found a CR alone; convert",
    ),
    (
        "gaze",
        None,
        b"t,a,b\n0,1,2\n",
        "one column of x 'x', y 'y', found 't', .*; name them by x=, y=",
    ),
    ("gaze", None, b"t,x,y,x\n0,1,2,3\n", "one column of x 'x', found 't', .*; name it by x="),
    ("gaze", "A_1.csv", b"1 2 3\n4\n", r"A_1\.csv: .* a file of sessions"),
    ("kosarak", None, b"Geolife trajectory\r\n", "line 1: .* a Geolife trajectory"),
    ("kosarak", None, b"\xff\xfe\x00\n", "line 1: .* data that are not UTF-8 text"),
    ("kosarak", None, b"PK\x03\x04....\n", "line 1: the compressed file .* not a zip file"),
    ("kosarak", None, b"<?xml version='1.0'?>\n", "line 1: .* an XML file, perhaps an XES"),
    ("kosarak", None, b"", "the file is empty; download it again"),
    ("gaze", "plain.csv", b"t,x,y\n0,1,2\n", "the file's name must tell user and recording"),
    (
        "geolife",
        None,
        HEADER + 3 * (point("116.4", "39.9") + b"\n"),
        "line 7: 3 of 3 points .* may be",
    ),
    (
        "gowalla",
        None,
        3 * (visit("-118.2", "34.1") + b"\n"),
        "line 1: 3 of 3 points .* may be swapped",
    ),
]


@pytest.mark.parametrize(
    ("name", "file", "content", "message"), WRONG, ids=[row[3] for row in WRONG]
)
def test_the_error_says_what_is_wrong_with_a_file(tmp_path, name, file, content, message):
    one = FORMATS[name]
    with pytest.raises(DataFormatError, match=message):
        one.load(one.path(tmp_path, content, file))


@pytest.mark.parametrize("name", ["geolife", "gaze"])
def test_an_empty_or_absent_folder_is_an_error(tmp_path, name):
    with pytest.raises(DataFormatError, match="there must be (trajectories NNN/Traj|CSV files)"):
        FORMATS[name].load(tmp_path)
    with pytest.raises(FileNotFoundError, match="there is no file or folder"):
        FORMATS[name].load(tmp_path / "absent")


@pytest.mark.parametrize("name", LINES)
def test_the_size_of_blocks_does_not_change_what_is_read(tmp_path, monkeypatch, name):
    reader = FORMATS[name].reader
    options = {"seconds": 20.0} if reader is gaze else {}
    whole = import_module(f"experiments.datasets.{reader.__name__.rpartition('.')[2]}").synthetic(
        20, seed=1, path=tmp_path / "data", **options
    )
    monkeypatch.setattr("tplreport.reading.text_files.line_blocks.__defaults__", (500,))
    pd.testing.assert_frame_equal(
        reader.load(tmp_path / "data", **(gaze.GAZEGRAPH if reader is gaze else {})), whole
    )


def test_geolife_orders_overlapping_trajectories_and_counts_their_duplicates(tmp_path):
    a = [point("39.1", clock="02:00:00"), point("39.2", clock="02:00:10")]
    b = [point("39.3", clock="02:00:05"), point("39.4", clock="02:00:10")]
    for user in ("000", "000 (copy)", "001backup", "99999999999"):
        FORMATS["geolife"].path(tmp_path, a, f"Data/{user}/Trajectory/a.plt")
    FORMATS["geolife"].path(tmp_path, b, "Data/000/Trajectory/b.plt")
    frame = geolife.load(tmp_path)
    assert frame["latitude"].tolist() == [39.1, 39.3, 39.2]
    assert frame["trajectory"].tolist() == ["000/a", "000/b", "000/a"]
    assert frame.attrs["skipped"] == {
        "duplicate time": 1,
        "trajectory in another folder than NNN/Trajectory": 3,
    }


def sessions_of(frame):
    return {s: pages.tolist() for s, pages in frame.groupby("session")["page"]}


def test_kosarak_takes_blanks_of_all_kinds_and_frames_in_any_order(tmp_path, small_blocks):
    path = FORMATS["kosarak"].path(tmp_path, b"1 2 3 \r\n  4\t5\r\n6\r\n\r\n123 0 99\r\n")
    assert sessions_of(kosarak.load(path)) == {0: [1, 2, 3], 1: [4, 5], 2: [6], 4: [123, 0, 99]}
    empty = kosarak.load(FORMATS["kosarak"].path(tmp_path, b"\n\n"))
    assert len(empty) == len(kosarak.to_sequences(empty)) == 0
    frame = kosarak.load(FORMATS["kosarak"].path(tmp_path, b"5 6 5\n7\n5 7\n"))
    mixed = kosarak.to_sequences(frame.sample(frac=1, random_state=0))
    assert [mixed.labels[s].tolist() for s in mixed] == [[5, 6, 5], [7], [5, 7]]
    assert kosarak.to_sequences(frame[frame["session"] != 1]).users.tolist() == [0, 2]


def test_callers_name_gaze_columns_and_units_and_samples_on_edges_are_kept(tmp_path):
    path = FORMATS["gaze"].path(tmp_path, b"s,kind,gy,gx\n0,a,1.5,2.5\n0.5,b,3,4\n")
    frame = gaze.load(path, time="s", x="gx", y="gy", unit="deg")
    assert frame[["time", "x", "y"]].to_numpy().tolist() == [[0.0, 2.5, 1.5], [0.5, 4.0, 3.0]]
    assert frame.attrs["unit"] == "deg"
    one = FORMATS["gaze"]  # samples on an edge, after a byte order mark
    path = one.path(tmp_path, b"\xef\xbb\xbft,x,y\r\n0,0,5\r\n1,5,0\r\n2,0,0\r\n", "A_1.csv.gz")
    assert one.load(path)["time"].tolist() == [0, 1]
    with pytest.raises(ValueError, match="must name different columns"):
        gaze.load(tmp_path, time="t", x="x", y="x")
    with pytest.raises(ValueError, match="width and height must be positive"):
        gaze.areas(pd.DataFrame({"x": [1.0], "y": [1.0]}), 2, 2, 0, 1)
    with pytest.raises(
        DatasetNotFoundError, match=r"no official file to download.*one CSV a recording"
    ):
        registry.fetch("gaze")


GZIP = gzip.compress(b"".join(b"%d\t%d\n" % (i, i * i) for i in range(1000)), mtime=0)
HALF = len(GZIP) // 2


@pytest.mark.parametrize(
    ("data", "message"),
    [(GZIP[:kept], "ends early, .*; download it again") for kept in (20, 200, -9)]
    + [(GZIP[:HALF] + bytes([GZIP[HALF] ^ 0xFF]) + GZIP[HALF + 1 :], "damaged|ends early")]
    + [(b"\0" * 5000, "a line must not be longer")],
)
def test_truncated_and_damaged_files_and_endless_lines_are_named(
    tmp_path, monkeypatch, data, message
):
    monkeypatch.setattr("tplreport.reading.text_files.LONGEST_LINE_BYTES", 1000)
    path = tmp_path / "cut.txt.gz"
    path.write_bytes(data)
    with pytest.raises(DataFormatError, match=message) as error:
        list(line_blocks(path, 100))
    assert error.value.file == str(path)
    assert error.value.line >= 1


def test_files_that_unpack_to_a_hundred_times_their_size_are_refused(tmp_path):
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(b"1\n" * (33 << 20), 1))
    with pytest.raises(
        DataFormatError,
        match=r"at most 67108864 bytes, 100 times its size or 64 MiB, found \d+; if",
    ):
        list(line_blocks(path))


def test_dropped_rows_are_placed_at_their_lines(tmp_path):
    lines = [
        visit(user="1"),
        b"",
        visit("400"),
        visit("0", "0"),
        visit("0", "0"),
        visit(user="2"),
        visit("", user="2"),
    ]
    frame = gowalla.load(FORMATS["gowalla"].path(tmp_path, lines))
    assert frame["user"].tolist() == [1, 2]
    assert frame.attrs["skipped"] == {
        "missing field": 1,
        "position (0, 0)": 2,
        "coordinates out of range": 1,
    }
    places = {
        reason: int(place.rpartition(" ")[2])
        for reason, place in frame.attrs["skipped_examples"].items()
    }
    assert places == {"missing field": 7, "position (0, 0)": 4, "coordinates out of range": 3}
