"""Mutated files of all sets: refused by name, or read as a strict parser reads them line by line."""

import gzip
import math
import re
import time
import zipfile
import zlib
from datetime import datetime

import pytest

from tests.fuzzing import mutations, read_within_limits
from tplrepro.datasets import gaze, geolife, gowalla, kosarak
from tplrepro.datasets.stand_ins.geolife import HEADER

NUMBER = re.compile(rb"[ \t]*-?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?[ \t]*|[ +-]*(nan|inf|infinity) *", re.IGNORECASE)
WHOLE = re.compile(rb" *-?\d+ *")


def number(field, pattern=NUMBER):
    """The number of a field, which the format forbids to be anything else."""
    if not pattern.fullmatch(field):
        raise ValueError(field)
    return float(field) if pattern is NUMBER else int(field)


def row(user, stamp, values, earliest="1970-01-01", latest=(90.0, 180.0)):
    """User, time and values of a line; None for a known defect."""
    when = datetime.strptime(stamp.decode("ascii"), "%Y-%m-%dT%H:%M:%S%z").timestamp() if stamp else math.nan
    sound = len(values) == 2 and all(abs(value) <= most for value, most in zip(values, latest, strict=True))
    sound &= datetime.fromisoformat(earliest + "T00:00:00+00:00").timestamp() <= when <= time.time()
    return (user, when, *values) if sound else None


def point(line):
    latitude, longitude, _, altitude, _, date, clock = line.split(b",")
    number(altitude)
    stamp = date.strip(b" ") + b"T" + clock.strip(b" ") + b"Z"
    return row(0, stamp, [number(latitude), number(longitude)], "2007-01-01")


def visit(line):
    user, stamp, *place, location = line.split(b"\t")
    whole = [number(field, WHOLE) for field in (user, location) if field]
    values = [number(field) for field in place[:2] if field]
    found = row(whole[:1], stamp, values + place[2:])
    return None if len(whole) < 2 or not any(values) else (whole[0], *found[1:]) if found else None


def sample(line):
    when, x, y = (number(field) if field else math.nan for field in line.split(b","))
    return ("A", when, x, y) if math.isfinite(when + x + y) and (x or y) else None


def session(line):
    return [number(page, WHOLE) for page in line.replace(b"\t", b" ").split(b" ") if page] or None


def strictly(data, head, parse):
    """What a file holds, each user and time once, and how many of its lines are left out."""
    data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    *top, rest = (data + b"\n" * bool(head)).split(b"\n", head)
    if len(top) < head or (parse is point and not top[5].strip().isdigit()):
        raise ValueError("head")
    found = [parse(line) for line in rest.splitlines() if line or parse is session]
    kept = [one for one in found if one is not None]
    if parse is not session:
        kept = sorted({one[:2]: one for one in reversed(kept)}.values())
    return kept, len(found) - len(kept)


def content(frame):
    """What a frame holds, in the form of `strictly`."""
    skipped = sum(n for reason, n in frame.attrs["skipped"].items() if not reason.startswith("file without"))
    if "page" in frame:
        return [pages.tolist() for _, pages in frame.groupby("session")["page"]], skipped
    when = frame["time"] if frame["time"].dtype == float else frame["time"].astype("int64") / 1e6
    values = frame[["x", "y"]] if "x" in frame else frame[["latitude", "longitude"]]
    return [(u, t, *v) for u, t, v in zip(frame["user"], when, values.to_numpy().tolist(), strict=True)], skipped


PLT = HEADER + b"".join(b"39.9%d,116.%d,0,%d,39744.12,2008-10-23,02:53:%02d\r\n" % (i, i, i, 4 * i) for i in range(12))
FORMATS = {
    "geolife": ("Data/000/Trajectory/a.plt", lambda path: geolife.load(path.parents[3]), 6, point, PLT),
    "gowalla": (
        "a.txt",
        gowalla.load,
        0,
        visit,
        b"".join(b"%d\t2010-10-%dT23:55:27Z\t30.2%d\t-97.%d\t%d\n" % (i // 4, 29 - i, i, i, i) for i in range(12)),
    ),
    "kosarak": ("a.dat", kosarak.load, 0, session, b"".join(b"%d 27 %d \n" % (i, i * i) for i in range(12))),
    "gaze": (
        "A_1.csv",
        lambda path: gaze.load(path, time="t", x="x", y="y"),
        1,
        sample,
        b"t,x,y\n" + b"".join(b"%d.5,0.%d,%d\n" % (i, i, i) for i in range(12)),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", FORMATS)
def test_no_mutated_file_is_read_wrongly_or_fails_without_its_name(tmp_path, name, packed):
    file, read, head, parse, data = FORMATS[name]
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    if packed and name == "geolife":
        path, read = tmp_path / "a.zip", geolife.load
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for user in range(3):
                archive.writestr(f"Data/00{user}/Trajectory/a.plt", data)
        data = path.read_bytes()
        whole = read(path)
    elif packed:
        data = gzip.compress(data, mtime=0)
    for case, mutated in enumerate(mutations(data, 700, seed=12)):
        found = read_within_limits(read, path, mutated)
        if found is None:
            continue
        if path.suffix == ".zip":
            assert found[0].attrs["skipped"] or found[0].equals(whole), case
            continue
        try:
            expected = strictly(mutated, head, parse)
        except (ValueError, EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise AssertionError(f"case {case} is read though {error!r}: {mutated!r}") from error
        assert content(found[0]) == expected, (case, mutated)
