"""The Geolife reader against a plain reader, on stand-ins, on broken files, and on recorded ones."""

import csv
import io
import zipfile
from datetime import datetime

import numpy as np
import pytest

from tplrepro.datasets import geolife
from tplrepro.datasets.reading import DataFormatError
from tplrepro.datasets.stand_ins.geolife import HEADER, write


def line(latitude=39.9, longitude=116.4, altitude=100, stamp="2008-10-23,02:53:04"):
    return f"{latitude},{longitude},0,{altitude},39744.12,{stamp}".encode()


def folder_of(tmp_path, **trajectories):
    """Folders NNN/Trajectory of trajectories given as "u000_name": lines."""
    for label, lines in trajectories.items():
        user, name = label[1:].split("_")
        file = tmp_path / "Data" / user / "Trajectory" / f"{name}.plt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(lines if isinstance(lines, bytes) else HEADER + b"".join(li + b"\r\n" for li in lines))
    return tmp_path


def plain_reader(archive_path):
    """An independent reading of a zip, by the csv module: (user, time) -> (latitude, longitude, altitude)."""
    rows = {}
    with zipfile.ZipFile(archive_path) as archive:
        for name in sorted(archive.namelist()):
            user = int(name.split("/")[-3])
            text = archive.read(name).decode().splitlines()[6:]
            for latitude, longitude, _, altitude, _, date, clock in csv.reader(io.StringIO("\n".join(text))):
                stamp = datetime.fromisoformat(f"{date} {clock}")
                rows.setdefault((user, stamp), (float(latitude), float(longitude), float(altitude)))
    return dict(sorted(rows.items()))


def test_stand_in_reads_as_by_a_plain_reader(tmp_path):
    path = tmp_path / "official.zip"
    frame = geolife.synthetic(3, seed=5, path=path, n_trajectories=7, seconds_between_points=20)
    expected = plain_reader(path)
    assert list(zip(frame["user"], frame["time"].dt.tz_localize(None), strict=True)) == list(expected)
    values = np.array(list(expected.values()))
    assert (frame["latitude"] == values[:, 0]).all()
    assert (frame["longitude"] == values[:, 1]).all()
    unknown = values[:, 2] == -777
    assert unknown.any()
    assert (frame["altitude"].isna() == unknown).all()
    np.testing.assert_allclose(frame["altitude"][~unknown], values[~unknown, 2] * 0.3048, rtol=1e-6)  # float32
    assert str(frame["time"].dt.tz) == "UTC"
    assert frame["trajectory"].nunique() == 7
    assert frame.attrs["synthetic"] is True
    assert frame.attrs["generator"]["seed"] == 5
    assert frame.attrs["skipped"] == {}


def test_folder_and_zip_hold_the_same(tmp_path):
    zipped = geolife.synthetic(2, path=tmp_path / "a.zip", n_trajectories=4, seconds_between_points=30)
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        archive.extractall(tmp_path / "a")
    for folder in ("a", "a/Geolife Trajectories 1.3", "a/Geolife Trajectories 1.3/Data"):
        plain = geolife.load(tmp_path / folder)
        assert plain.equals(zipped)
        assert plain.attrs["synthetic"] is False  # the note stands beside the zip


def test_folders_that_are_no_users_are_passed_over(tmp_path):
    path = folder_of(tmp_path, u000_a=[line()])
    folder_of(path, **{"u000 (copy)_a": [line()], "u001backup_a": [line()]})
    assert geolife.load(path)["user"].tolist() == [0]


def test_stand_in_has_stays_commutes_and_known_places():
    frame = geolife.synthetic(4, seed=1, n_trajectories=60, seconds_between_points=30)
    assert geolife.BEIJING_3RD_RING.contains(frame["latitude"], frame["longitude"]).mean() > 0.99
    where = frame["latitude"].round(3).astype(str) + "," + frame["longitude"].round(3).astype(str)
    for _, seen in where.groupby(frame["user"]):
        # Two stays (home and work) of about 100 m hold most of a user's points in a city of 20 km.
        assert seen.value_counts(normalize=True).head(8).sum() > 0.2
    local = frame["time"].dt.tz_convert("Asia/Shanghai")
    assert local.dt.hour.between(5, 23).mean() > 0.95


def test_the_box_selects(tmp_path):
    path = folder_of(
        tmp_path,
        u000_a=[line(39.9), line(50.0, stamp="2008-10-23,02:53:05")],
        u007_a=[line(39.9, stamp="2009-01-01,00:00:00")],
    )
    frame = geolife.load(path, box=(39, 40, 116, 117))
    assert frame["user"].tolist() == [0, 7]  # users with one point stay
    assert frame.attrs["outside_box"] == 1
    assert frame.attrs["skipped"] == {}
    with pytest.raises(ValueError, match="box must be four numbers"):
        geolife.load(path, box=(40, 39, 116, 117))


def test_overlapping_trajectories_are_ordered_and_their_duplicates_counted(tmp_path):
    path = folder_of(
        tmp_path,
        u000_a=[line(39.1, stamp="2008-10-23,02:00:00"), line(39.2, stamp="2008-10-23,02:00:10")],
        u000_b=[line(39.3, stamp="2008-10-23,02:00:05"), line(39.4, stamp="2008-10-23,02:00:10")],
    )
    frame = geolife.load(path)
    assert frame["latitude"].tolist() == [39.1, 39.3, 39.2]
    assert frame["trajectory"].tolist() == ["000/a", "000/b", "000/a"]
    assert frame.attrs["skipped"] == {"duplicate time": 1}
    with pytest.raises(DataFormatError, match=r"b\.plt: duplicate time, found '2008-10-23T02:00:10"):
        geolife.load(path, strict=True)


def test_malformed_lines_are_counted_over_all_files(tmp_path):
    lines = [line(), b"?", line(stamp="2008-10-23,02:53:10")]
    path = folder_of(tmp_path, u000_a=lines, u000_b=lines, u001_a=lines)
    with pytest.raises(DataFormatError, match="001/Trajectory/a.plt, line 8: .* 2 malformed lines were skipped before"):
        geolife.load(path, max_malformed=2)
    assert geolife.load(path, max_malformed=3).attrs["skipped"]["malformed line"] == 3


def test_a_file_cut_in_its_header_is_an_error(tmp_path):
    path = folder_of(tmp_path, u000_a=b"\r\n".join(HEADER.split(b"\r\n")[:3]))
    with pytest.raises(DataFormatError, match="expected six header lines, found the end of the file"):
        geolife.load(path)


def test_file_without_points_is_counted(tmp_path):
    path = folder_of(tmp_path, u000_a=[], u001_a=[line()])
    frame = geolife.load(path)
    assert frame["user"].tolist() == [1]
    assert frame.attrs["skipped"] == {"file without points": 1}
    with pytest.raises(DataFormatError, match=r"a\.plt, line 7: file without points"):
        geolife.load(path, strict=True)


def test_only_files_without_points_give_an_empty_frame(tmp_path):
    frame = geolife.load(folder_of(tmp_path, u000_a=[]))
    assert len(frame) == 0
    assert list(frame) == ["user", "trajectory", "time", "latitude", "longitude", "altitude"]


def test_swapped_columns_are_suspected(tmp_path):
    lines = [line(116.4, 39.9, stamp=f"2008-10-23,02:53:0{s}") for s in range(5)]
    with pytest.raises(DataFormatError, match=r"a\.plt, line 7: 5 of 5 points .* columns may be swapped"):
        geolife.load(folder_of(tmp_path, u000_a=lines))


def test_nothing_there_is_an_error(tmp_path):
    with pytest.raises(DataFormatError, match="there must be trajectories NNN/Trajectory"):
        geolife.load(tmp_path)
    with pytest.raises(FileNotFoundError, match="there is no file or folder"):
        geolife.load(tmp_path / "absent")


def test_damaged_archives_are_named(tmp_path):
    path = tmp_path / "a.zip"
    write(path, 2, 0, n_trajectories=4, seconds_between_points=60)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(DataFormatError, match=r"a\.zip: .* a zip archive that ends early"):
        geolife.load(path)
    path.write_bytes(b"1 2 3\n")
    with pytest.raises(DataFormatError, match="found a file of sessions"):
        geolife.load(path)
    broken = bytearray(data)
    broken[len(data) // 3] ^= 0xFF
    path.write_bytes(broken)
    with pytest.raises(DataFormatError, match=r"a\.zip::Geolife Trajectories 1\.3/Data/.*plt: the archive is damaged"):
        geolife.load(path)


def test_arguments_of_the_stand_in_are_checked():
    with pytest.raises(ValueError, match="n_users must be a whole number, at least 1, found 0"):
        geolife.synthetic(0)
    with pytest.raises(ValueError, match="n_trajectories must be at least n_users"):
        geolife.synthetic(5, n_trajectories=3)
    with pytest.raises(ValueError, match="seconds_between_points must be from 1 to 600"):
        geolife.synthetic(1, seconds_between_points=0)


@pytest.mark.real_data
def test_recorded_trajectories(real_data):
    frame = geolife.load(real_data("geolife/geolife-subset.zip"))
    total = len(frame) + sum(frame.attrs["skipped"].values())
    assert total == 1_966_493
    assert frame["user"].nunique() == 140
    assert frame.attrs["synthetic"] is False
    assert frame["trajectory"].nunique() == 1351


@pytest.mark.real_data
def test_unpacked_recorded_folder_reads_as_by_a_plain_reader(real_data, tmp_path):
    folder = real_data("geolife/Data")
    with zipfile.ZipFile(tmp_path / "again.zip", "w") as archive:
        for file in sorted(folder.glob("00[0-2]/Trajectory/*.plt")):
            archive.write(file, file.relative_to(folder.parent).as_posix())
    expected = plain_reader(tmp_path / "again.zip")
    frame = geolife.load(folder)
    frame = frame[frame["user"] <= 2]
    assert list(zip(frame["user"], frame["time"].dt.tz_localize(None), strict=True)) == list(expected)
