"""Mutated files of all sets: refused by name, or read as a strict reader reads them line by
line."""

import gzip
import zipfile
import zlib

import pytest

from tests.experiments.datasets import plain
from tests.experiments.datasets.test_readers import FORMATS, point, visit
from tests.fuzzing import mutations, read_within_limits

LINES = {  # more than those of FORMATS, so that changes hit different ones
    "geolife": [point(f"39.9{i}", clock=f"02:53:{4 * i:02d}") for i in range(12)],
    "gowalla": [
        visit(f"30.2{i}", user=i // 4, time=f"2010-10-{29 - i}T23:55:27Z", place=i)
        for i in range(12)
    ],
    "kosarak": [b"%d 27 %d " % (i, i * i) for i in range(12)],
    "gaze": [b"%d.5,0.%d,%d" % (i, i, i) for i in range(12)],
}
PLAIN = {
    "geolife": plain.point,
    "gowalla": plain.visit,
    "kosarak": plain.session,
    "gaze": plain.sample,
}


@pytest.mark.parametrize("cases", [40, pytest.param(700, marks=pytest.mark.slow)])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", FORMATS)
def test_a_mutated_file_is_read_correctly_or_refused_by_an_error_that_names_it(
    tmp_path, name, packed, cases
):
    one = FORMATS[name]
    head, path = one.head.count(b"\n"), tmp_path / one.file
    one.path(tmp_path, LINES[name])
    data = path.read_bytes()

    def read(path):
        return one.load(tmp_path if path.suffix == ".plt" else path)

    if packed and name == "geolife":
        path = tmp_path / "a.zip"
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
                expected = plain.read(mutated, head, PLAIN[name])
            except (ValueError, EOFError, gzip.BadGzipFile, zlib.error) as error:
                raise AssertionError(
                    f"case {case} is read though {error!r}: {mutated!r}"
                ) from error
        assert plain.content(found[0]) == expected, (case, mutated)
