"""Mutated files of all sets: refused by name, or read as a strict reader reads them line by line."""

import gzip
import zipfile
import zlib
from functools import partial

import pytest

from tests.datasets import plain
from tests.fuzzing import mutations, read_within_limits
from tplrepro.datasets import gaze, geolife, gowalla, kosarak
from tplrepro.datasets.stand_ins.geolife import HEADER

FORMATS = {  # file, reader, lines of the header, plain reader of a line, content
    "geolife": (
        "Data/000/Trajectory/a.plt",
        lambda path: geolife.load(path.parents[3], max_malformed=2),
        6,
        plain.point,
        HEADER
        + b"".join(b"39.9%d,116.%d,0,%d,39744.12,2008-10-23,02:53:%02d\r\n" % (i, i, i, 4 * i) for i in range(12)),
    ),
    "gowalla": (
        "a.txt",
        partial(gowalla.load, max_malformed=2),
        0,
        plain.visit,
        b"".join(b"%d\t2010-10-%dT23:55:27Z\t30.2%d\t-97.%d\t%d\n" % (i // 4, 29 - i, i, i, i) for i in range(12)),
    ),
    "kosarak": (
        "a.dat",
        partial(kosarak.load, max_malformed=2),
        0,
        plain.session,
        b"".join(b"%d 27 %d \n" % (i, i * i) for i in range(12)),
    ),
    "gaze": (
        "A_1.csv",
        partial(gaze.load, time="t", x="x", y="y", max_malformed=2),
        1,
        plain.sample,
        b"t,x,y\n" + b"".join(b"%d.5,0.%d,%d\n" % (i, i, i) for i in range(12)),
    ),
}


@pytest.mark.parametrize("cases", [40, pytest.param(700, marks=pytest.mark.slow)])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", FORMATS)
def test_no_mutated_file_is_read_wrongly_or_fails_without_its_name(tmp_path, name, packed, cases):
    file, read, head, parse, data = FORMATS[name]
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    expected = plain.read(data, head, parse)
    if packed and name == "geolife":
        path, read = tmp_path / "a.zip", geolife.load
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for user in range(3):
                archive.writestr(f"Data/00{user}/Trajectory/a.plt", data)
        data, expected = path.read_bytes(), (plain.trajectories(path), 0)
    elif packed:
        data = gzip.compress(data, mtime=0)
    for case, mutated in enumerate(mutations(data, cases, seed=12)):
        found = read_within_limits(read, path, mutated)
        if found is None or (path.suffix == ".zip" and found[0].attrs["skipped"]):
            continue
        if path.suffix != ".zip":  # which has checksums of its own
            try:
                expected = plain.read(mutated, head, parse, allowed=2)
            except (ValueError, EOFError, gzip.BadGzipFile, zlib.error) as error:
                raise AssertionError(f"case {case} is read though {error!r}: {mutated!r}") from error
        assert plain.content(found[0]) == expected, (case, mutated)
