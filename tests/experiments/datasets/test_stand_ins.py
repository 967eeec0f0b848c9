"""Stand-ins and recorded files against plain readers and what is known of them; no half-written stand-in is left."""

import errno
import gzip
import os
import zipfile

import pytest

from experiments.datasets import writing
from tests.datasets import plain
from tplrepro.datasets import gaze, geolife, gowalla, kosarak
from tplrepro.datasets.reading import marker_path, read_marker


def test_an_unpacked_geolife_reads_as_the_archive_and_by_a_plain_reader(tmp_path):
    path = tmp_path / "official.zip"
    frame = geolife.synthetic(3, seed=5, path=path, n_trajectories=7, seconds_between_points=20)
    assert plain.content(frame) == (plain.trajectories(path), 0)
    assert frame["trajectory"].nunique() == 7
    assert frame.attrs["generator"]["seed"] == 5
    with zipfile.ZipFile(path) as archive:
        archive.extractall(tmp_path / "a")
    for folder in ("a", "a/Geolife Trajectories 1.3", "a/Geolife Trajectories 1.3/Data"):
        unpacked = geolife.load(tmp_path / folder)
        assert unpacked.equals(frame)
        assert unpacked.attrs["synthetic"] is False  # the note stands beside the zip


@pytest.mark.parametrize("layout", [gaze.GAZEGRAPH, gaze.ANDERSSON2017])
def test_users_and_samples_of_gaze(tmp_path, layout):
    frame = gaze.synthetic(3, seed=1, path=tmp_path / "g", seconds=12, n_recordings=2, layout=layout)
    names = {(f"P{user}", f"SYNTHETIC{recording}") for user in (1, 2, 3) for recording in (1, 2)}
    assert set(zip(frame["user"], frame["recording"], strict=True)) == names
    assert frame.attrs["unit"] == layout["unit"]
    assert len(frame) + frame.attrs["skipped"]["lost sample"] == 3 * 2 * 12 * 60


def test_arguments_are_checked():
    with pytest.raises(ValueError, match="n_users must be at least 1, found 0"):
        geolife.synthetic(0)
    with pytest.raises(ValueError, match="n_trajectories must be at least n_users"):
        geolife.synthetic(5, n_trajectories=3)
    with pytest.raises(ValueError, match="seconds_between_points must be from 1 to 600"):
        geolife.synthetic(1, seconds_between_points=0)


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("module", "name", "rows", "counts"),
    [
        (geolife, "geolife-subset.zip", 1_966_493, {"user": 140, "trajectory": 1351}),
        (gowalla, "loc-gowalla_LA_merged.txt", 54_808, {"user": 4_806}),
        (gowalla, "loc-gowalla_users1000.txt.gz", 157_181, {"user": 1_000}),
        (gowalla, "loc-gowalla_first10000.txt", 10_000, {"user": 48}),
        (kosarak, "kosarak.dat", 801_947, {"session": 100_000, "page": 23_496}),
    ],
)
def test_recorded_sets(real_data, module, name, rows, counts):
    path = real_data(f"{module.__name__.rpartition('.')[2]}/{name}")
    frame = module.load(path)
    assert len(frame) + sum(frame.attrs["skipped"].values()) == rows
    assert frame[list(counts)].nunique().to_dict() == counts
    assert frame.attrs["synthetic"] is False
    if module is kosarak:
        assert frame.attrs["skipped"] == {}
        assert frame["page"].iloc[-4:].tolist() == [int(page) for page in path.read_bytes()[-99:].split()[-4:]]
        assert kosarak.to_sequences(frame).n_transitions == 701_947


@pytest.mark.real_data
def test_unpacked_recorded_folder_reads_as_by_a_plain_reader(real_data, tmp_path):
    folder = real_data("geolife/Data")
    with zipfile.ZipFile(tmp_path / "again.zip", "w") as archive:
        for file in sorted(folder.glob("00[0-2]/Trajectory/*.plt")):
            archive.write(file, file.relative_to(folder.parent).as_posix())
    frame = geolife.load(folder)
    assert plain.content(frame[frame["user"] <= 2])[0] == plain.trajectories(tmp_path / "again.zip")


@pytest.mark.real_data
def test_recorded_gaze(real_data):
    real_data("gaze/andersson2017"), real_data("gaze/gazegraph")
    frame = gaze.load(**gaze.ANDERSSON2017)  # the columns tell which of the sets is meant
    assert frame.attrs["source"].endswith("andersson2017")
    assert len(frame) + sum(frame.attrs["skipped"].values()) == 383_221
    assert frame.attrs["skipped"] == {"lost sample": 3371}
    assert frame["user"].nunique() == 30
    assert frame.groupby(["user", "recording"], observed=True).ngroups == 63
    frame = gaze.load(**gaze.GAZEGRAPH)
    assert frame.attrs["source"].endswith("gazegraph")
    assert frame["user"].nunique() == 8
    assert frame["recording"].nunique() == 6


SETS = [
    (geolife, "a.zip", {"n_trajectories": 3}),
    (gowalla, "a.txt", {}),
    (kosarak, "a.dat.gz", {}),
    (gaze, "gaze", {}),
]


@pytest.mark.parametrize(("module", "name"), [(kosarak, "a.dat"), (gaze, "gaze")])
def test_what_cannot_be_written_is_named_with_a_remedy_and_not_kept(tmp_path, monkeypatch, module, name):
    def refuse(source, target, replace=os.replace):
        if str(target).endswith(".synthetic.json"):
            return replace(source, target)  # so that the set itself fails
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("os.replace", refuse)
    with pytest.raises(OSError, match="No space left on device while writing, so nothing was kept; free some space"):
        module.synthetic(3, path=tmp_path / name)
    left = [] if module is gaze else [f"{name}.synthetic.json"]  # in a folder the note is a file of it
    assert [file.name for file in tmp_path.iterdir()] == left


@pytest.mark.parametrize("name", ["a", "a.gz"])
def test_an_error_in_the_middle_keeps_the_earlier_file(tmp_path, name):
    path = tmp_path / name
    with writing.synthetic_file(path) as out:
        out.write(b"first")
    kept = path.read_bytes()
    with pytest.raises(KeyboardInterrupt), writing.synthetic_file(path) as out:
        out.write(b"second")
        raise KeyboardInterrupt
    assert path.read_bytes() == kept
    assert set(tmp_path.iterdir()) == {path, marker_path(path)}
    assert (gzip.decompress(kept) if name == "a.gz" else kept) == b"first"


def test_a_stand_in_folder_replaces_a_stand_in_and_nothing_else(tmp_path):
    for n_users in (2, 1):
        assert gaze.synthetic(n_users, path=tmp_path / "g", seconds=2)["user"].nunique() == n_users
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.csv").write_text("x")
    with pytest.raises(FileExistsError, match=r"not a stand-in of ours; give another path="):
        gaze.synthetic(1, path=tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.csv").exists()


@pytest.mark.parametrize(("module", "name", "options"), SETS)
def test_stand_ins_are_marked_and_the_same_seed_gives_the_same_bytes(tmp_path, module, name, options):
    def written(label, seed):
        path = tmp_path / label / name
        frame = module.synthetic(3, seed=seed, path=path, **options)
        again = module.load(path, **(gaze.GAZEGRAPH if module is gaze else {}))
        assert frame.attrs["synthetic"] is again.attrs["synthetic"] is True
        assert again.attrs["generator"]["set"] == module.__name__.rpartition(".")[2]
        assert read_marker(path)["seed"] == seed
        return [file.read_bytes() for file in (sorted(path.glob("*.csv")) if path.is_dir() else [path])]

    assert written("a", 4) == written("b", 4) != written("c", 5)


@pytest.mark.parametrize("module", [geolife, gaze])
def test_without_a_path_nothing_is_left_and_the_same_comes_back(module, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    first, second = module.synthetic(2, seed=1), module.synthetic(2, seed=1)
    assert list(tmp_path.iterdir()) == []
    assert first.equals(second)
    assert first.attrs == second.attrs
    assert str(tmp_path) not in str(first.attrs)
    assert not first.equals(module.synthetic(2, seed=2))
