"""The check-in reader against a plain reader, on stand-ins, on broken files, and on recorded ones."""

import gzip
from datetime import datetime

import numpy as np
import pytest

from tplrepro.datasets import gowalla, grid
from tplrepro.datasets.reading import DataFormatError

SOUND = [
    b"0\t2010-10-19T23:55:27Z\t30.2359091167\t-97.7951395833\t22847",
    b"0\t2010-10-18T22:17:43Z\t30.2691029532\t-97.7493953705\t420315",
    b"0\t2010-10-17T23:42:03Z\t30.2557309927\t-97.7633857727\t316637",
    b"1\t2010-10-17T19:26:05Z\t34.0430230998\t-118.2671570778\t16516",
]


def plain_reader(data):
    """An independent reading: (user, time) -> (latitude, longitude, location), ordered."""
    rows = {}
    for line in data.decode().splitlines():
        user, stamp, latitude, longitude, location = line.split("\t")
        key = int(user), datetime.strptime(stamp, "%Y-%m-%dT%H:%M:%SZ")
        rows.setdefault(key, (float(latitude), float(longitude), int(location)))
    return dict(sorted(rows.items()))


def file_of(tmp_path, lines, name="check-ins.txt"):
    path = tmp_path / name
    data = lines if isinstance(lines, bytes) else b"".join(line + b"\n" for line in lines)
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
def test_stand_in_reads_as_by_a_plain_reader(tmp_path, name):
    path = tmp_path / name
    frame = gowalla.synthetic(60, seed=3, path=path)
    data = gzip.decompress(path.read_bytes()) if name.endswith(".gz") else path.read_bytes()
    expected = plain_reader(data)
    assert list(zip(frame["user"], frame["time"].dt.tz_localize(None), strict=True)) == list(expected)
    assert list(zip(frame["latitude"], frame["longitude"], frame["location"], strict=True)) == list(expected.values())
    assert str(frame["time"].dt.tz) == "UTC"
    assert frame.attrs["synthetic"] is True
    assert frame.attrs["reordered"] == 0  # newest first, as the official file


def test_stand_in_has_few_places_a_user_and_a_heavy_tail():
    frame = gowalla.synthetic(400, seed=0)
    visits = frame.groupby("user")["location"].value_counts(normalize=True)
    busy = frame["user"].value_counts()
    busy = busy.index[busy >= 50]
    assert visits.groupby("user").head(3).groupby("user").sum()[busy].median() > 0.4
    assert frame["location"].value_counts().iloc[0] > 20 * frame["location"].value_counts().median()
    assert 0.3 < grid.LOS_ANGELES.contains(frame["latitude"], frame["longitude"]).mean() < 0.7
    assert np.median(busy) > 0


def test_swapped_columns_are_suspected(tmp_path):
    swapped = [b"\t".join([f[0], f[1], f[3], f[2], f[4]]) for f in (line.split(b"\t") for line in SOUND)]
    with pytest.raises(DataFormatError, match=r"line 1: 4 of 4 points .* the columns may be swapped"):
        gowalla.load(file_of(tmp_path, swapped))
    user_last = [b"\t".join([f[1], f[0], *f[2:]]) for f in (line.split(b"\t") for line in SOUND)]
    with pytest.raises(DataFormatError, match="line 1: expected five fields .* columns in the official order"):
        gowalla.load(file_of(tmp_path, user_last))


def test_box_selects_and_counts(tmp_path):
    frame = gowalla.load(file_of(tmp_path, SOUND), box=grid.LOS_ANGELES)
    assert frame["user"].tolist() == [1]
    assert frame.attrs["outside_box"] == 3


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("name", "rows", "users"),
    [
        ("loc-gowalla_LA_merged.txt", 54_808, 4_806),
        ("loc-gowalla_users1000.txt.gz", 157_181, 1_000),
        ("loc-gowalla_first10000.txt", 10_000, 48),
    ],
)
def test_recorded_check_ins(real_data, name, rows, users):
    frame = gowalla.load(real_data(f"gowalla/{name}"))
    assert len(frame) + sum(frame.attrs["skipped"].values()) == rows
    assert frame["user"].nunique() == users
    assert frame.attrs["reordered"] == 0
    assert frame.attrs["synthetic"] is False
