"""No half-written file is ever left: full disk, no permission, an error in the middle; and stand-ins are marked."""

import contextlib
import errno
import gzip
import os
import signal

import numpy as np
import pytest

from tplrepro.datasets import gaze, geolife, gowalla, kosarak, writing
from tplrepro.datasets.reading import marker_path, read_marker

SETS = [
    (geolife, "a.zip", {"n_trajectories": 40}),
    (gowalla, "a.txt", {}),
    (gowalla, "a.txt.gz", {}),
    (kosarak, "a.dat", {}),
    (gaze, "gaze", {}),
]


@contextlib.contextmanager
def small_files():
    """Files of this process must not grow over 20 kB, as on a disk that is full.

    Only within the test: afterwards pytest reports its result, perhaps to a file that is longer already.
    """
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.parametrize(("module", "name", "options"), SETS)
def test_nothing_is_left_when_a_file_cannot_grow(tmp_path, module, name, options):
    with (
        small_files(),
        pytest.raises(OSError, match=r"while writing, so nothing was kept; .*fewer users") as error,
    ):
        module.synthetic(5000 if module is kosarak else 40, path=tmp_path / name, **options)
    assert error.value.filename == str(tmp_path / name)
    assert error.value.errno == errno.EFBIG
    assert not (tmp_path / name).exists()
    assert all(p.name.endswith(".synthetic.json") for p in tmp_path.iterdir())


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS])
@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
def test_full_disk_is_named_with_a_remedy(tmp_path, monkeypatch, code, name):
    def full(descriptor):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match=r"nothing was kept; (free some space|give a path= that you may write to)"):
        gowalla.synthetic(3, path=tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_no_permission_is_named_with_a_remedy(tmp_path, monkeypatch):
    def refuse(*args, **kwargs):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)  # tests may run as root, who may write anywhere
    with pytest.raises(PermissionError, match="give a path= that you may write to"):
        kosarak.synthetic(3, path=tmp_path / "a.dat")


@pytest.mark.parametrize("name", ["a", "a.gz"])
def test_an_error_in_the_middle_keeps_the_earlier_file(tmp_path, name):
    path = tmp_path / name
    with writing.synthetic_file(path) as out:
        out.write(b"first")
    kept = path.read_bytes()
    for error in (RuntimeError, KeyboardInterrupt):
        with pytest.raises(error), writing.synthetic_file(path) as out:
            out.write(b"second")
            raise error
        assert path.read_bytes() == kept
        assert set(tmp_path.iterdir()) == {path, marker_path(path)}
    assert (gzip.decompress(kept) if name == "a.gz" else kept) == b"first"


def test_written_files_are_readable_by_others(tmp_path):
    old = os.umask(0o022)
    try:
        with writing.synthetic_file(tmp_path / "a") as out:
            out.write(b"x")
    finally:
        os.umask(old)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o644


def test_a_stand_in_folder_replaces_a_stand_in_and_nothing_else(tmp_path):
    first = gaze.synthetic(2, path=tmp_path / "g", seconds=2)
    second = gaze.synthetic(1, path=tmp_path / "g", seconds=2)
    assert first["user"].nunique(), second["user"].nunique() == (2, 1)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.csv").write_text("x")
    with pytest.raises(FileExistsError, match=r"not a stand-in of ours; give another path="):
        gaze.synthetic(1, path=tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.csv").exists()


@pytest.mark.parametrize(("module", "name", "options"), SETS)
def test_stand_ins_are_marked_wherever_they_are_read(tmp_path, module, name, options):
    frame = module.synthetic(2, seed=4, path=tmp_path / name, **(options and {"n_trajectories": 2}))
    assert frame.attrs["synthetic"] is True
    assert read_marker(tmp_path / name)["seed"] == 4
    again = module.load(tmp_path / name, **(gaze.GAZEGRAPH if module is gaze else {}))
    assert again.attrs["synthetic"] is True
    assert again.attrs["generator"]["set"] == module.__name__.rpartition(".")[2]


@pytest.mark.parametrize("module", [geolife, gowalla, kosarak, gaze])
def test_without_a_path_nothing_is_left_and_the_same_comes_back(module, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    first, second = module.synthetic(2, seed=1), module.synthetic(2, seed=1)
    assert list(tmp_path.iterdir()) == []
    assert first.equals(second)
    assert first.attrs == second.attrs
    assert str(tmp_path) not in str(first.attrs)
    assert not first.equals(module.synthetic(2, seed=2))


def test_lines_have_no_quotes_and_the_given_end():
    columns = {"a": np.array([1, 2]), "b": np.array([0.5, 1e-7]), "c": np.array(["x y", "z"])}
    assert writing.line_bytes(columns, ",", b"\r\n").split(b"\r\n")[0] == b"1,0.5,x y"
