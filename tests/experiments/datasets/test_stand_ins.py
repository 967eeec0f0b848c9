"""Stand-ins and recorded files against plain readers and what is known of them; stand-ins are
marked and whole."""

import gzip
import zipfile
from pathlib import Path

import numpy as np
import pytest

from experiments.datasets import gaze, geolife, gowalla, kosarak
from tests.experiments.datasets import plain
from tplreport.reading.grid import NEW_YORK
from tplreport.reading.text_files import read_marker


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
def test_a_stand_in_of_gaze_has_the_users_recordings_and_samples_asked_for(tmp_path, layout):
    frame = gaze.synthetic(
        3, seed=1, path=tmp_path / "g", seconds=12, n_recordings=2, layout=layout
    )
    names = {(f"P{user}", f"SYNTHETIC{recording}") for user in (1, 2, 3) for recording in (1, 2)}
    assert set(zip(frame["user"], frame["recording"], strict=True)) == names
    assert frame.attrs["unit"] == layout["unit"]
    assert len(frame) + frame.attrs["skipped"]["lost sample"] == 3 * 2 * 12 * 60


def test_numbers_of_users_and_trajectories_are_checked():
    with pytest.raises(ValueError, match="n_users must be at least 1, found 0"):
        geolife.synthetic(0)
    with pytest.raises(ValueError, match="n_trajectories must be at least n_users"):
        geolife.synthetic(5, n_trajectories=3)


def test_contents_do_not_depend_on_how_numbers_of_check_ins_are_written(tmp_path):
    path, other = tmp_path / "a.txt", tmp_path / "b.txt.gz"
    gowalla.synthetic(30, 1, path)
    rows = [line.split("\t") for line in path.read_text().splitlines()]
    noisy = [
        "\t".join([*row[:2], repr(float(row[2]) * (1 + 2**-52)), *row[3:]]) + "\n" for row in rows
    ]
    other.write_bytes(gzip.compress("".join(noisy).encode()))
    found = gowalla.contents(path)
    assert noisy[0].split("\t")[2] != rows[0][2]
    assert gowalla.contents(other) == found
    inside = next(
        k for k, row in enumerate(rows) if NEW_YORK.contains(float(row[2]), float(row[3]))
    )
    other.write_bytes(gzip.compress("".join(noisy[:inside] + noisy[inside + 1 :]).encode()))
    fewer = gowalla.contents(other)
    assert fewer["check-ins"] == found["check-ins"] - 1
    assert fewer["sha256"] != found["sha256"]


@pytest.mark.real_data
def test_the_part_in_new_york_is_as_documented_and_holds_what_the_official_file_begins_with(
    real_data,
):
    part, beginning = (
        real_data(f"gowalla/loc-gowalla_{name}") for name in ("NY.txt.gz", "first10000.txt")
    )
    text = (Path(__file__).parents[3] / "data" / "README.md").read_text(encoding="utf-8")
    assert gowalla.contents(part)["sha256"] in text
    frames = [gowalla.load(path, box=NEW_YORK) for path in (part, beginning)]
    last = frames[1]["user"].max()  # whose rows are cut off
    ours, official = (frame[frame["user"] < last].drop(columns="time") for frame in frames)
    assert len(official) > 1000
    assert np.allclose(ours, official, rtol=0, atol=1e-9)


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("module", "name", "rows", "counts"),
    [
        (geolife, "geolife-subset.zip", 1_966_493, {"user": 140, "trajectory": 1351}),
        (gowalla, "loc-gowalla_NY.txt.gz", 138_957, {"user": 7_115}),
        (gowalla, "loc-gowalla_LA_merged.txt", 54_808, {"user": 4_806}),
        (gowalla, "loc-gowalla_users1000.txt.gz", 157_181, {"user": 1_000}),
        (gowalla, "loc-gowalla_first10000.txt", 10_000, {"user": 48}),
        (kosarak, "kosarak.dat", 801_947, {"session": 100_000, "page": 23_496}),
    ],
)
def test_recorded_sets_have_the_rows_users_and_pages_that_are_known(
    real_data, module, name, rows, counts
):
    path = real_data(f"{module.__name__.rpartition('.')[2]}/{name}")
    frame = module.load(path)
    assert len(frame) + sum(frame.attrs["skipped"].values()) == rows
    assert frame[list(counts)].nunique().to_dict() == counts
    assert frame.attrs["synthetic"] is False
    if module is kosarak:
        assert frame.attrs["skipped"] == {}
        assert frame["page"].iloc[-4:].tolist() == [
            int(page) for page in path.read_bytes()[-99:].split()[-4:]
        ]
        assert kosarak.to_sequences(frame).n_transitions == 701_947


@pytest.mark.real_data
def test_recorded_gaze_has_the_samples_and_recordings_that_are_known(real_data):
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


@pytest.mark.parametrize(("module", "name", "options"), SETS)
def test_stand_ins_are_marked_and_the_same_seed_gives_the_same_bytes(
    tmp_path, module, name, options
):
    def written(label, seed):
        path = tmp_path / label / name
        frame = module.synthetic(3, seed=seed, path=path, **options)
        again = module.load(path, **(gaze.GAZEGRAPH if module is gaze else {}))
        assert frame.attrs["synthetic"] is again.attrs["synthetic"] is True
        assert again.attrs["generator"]["set"] == module.__name__.rpartition(".")[2]
        assert read_marker(path)["seed"] == seed
        return [
            file.read_bytes() for file in (sorted(path.glob("*.csv")) if path.is_dir() else [path])
        ]

    assert written("a", 4) == written("b", 4) != written("c", 5)


@pytest.mark.parametrize(("module", "name"), [(kosarak, "a.dat.gz"), (gaze, "gaze")])
def test_a_stand_in_is_replaced_by_a_whole_one_alone_and_other_data_never(
    tmp_path, monkeypatch, module, name
):
    for seed in (1, 2):
        module.synthetic(3, seed=seed, path=tmp_path / name)
    files = sorted(tmp_path.rglob("*"))

    def interrupt(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr("experiments.datasets.stand_ins.write_whole", interrupt)
        module.synthetic(4, seed=3, path=tmp_path / name)
    assert read_marker(tmp_path / name)["seed"] == 2
    assert sorted(tmp_path.rglob("*")) == files
    if module is kosarak:
        content = (tmp_path / name).read_bytes()
        assert gzip.decompress(content).count(b"\n") == 3
        assert content[4:8] == bytes(4)  # no date, so that the same seed gives the same bytes
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.csv").touch()
    with pytest.raises(FileExistsError, match=r"not a stand-in of ours; give another path="):
        gaze.synthetic(1, path=tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.csv").exists()


@pytest.mark.parametrize("module", [geolife, gaze])
def test_a_stand_in_without_a_path_leaves_no_file_and_depends_on_its_seed_alone(
    module, tmp_path, monkeypatch
):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    first, second = module.synthetic(2, seed=1), module.synthetic(2, seed=1)
    assert list(tmp_path.iterdir()) == []
    assert first.equals(second)
    assert first.attrs == second.attrs
    assert str(tmp_path) not in str(first.attrs)
    assert not first.equals(module.synthetic(2, seed=2))
