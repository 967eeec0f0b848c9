"""The gaze reader on stand-ins of both layouts, on broken files, and on recorded ones."""

import gzip

import numpy as np
import pandas as pd
import pytest

from tplrepro.datasets import fixed_steps, gaze
from tplrepro.datasets.reading import DataFormatError
from tplrepro.datasets.registry import DatasetNotFoundError

COLUMNS = {"time": "t", "x": "x", "y": "y"}


def folder_of(tmp_path, **files):
    for name, text in files.items():
        data = text if isinstance(text, bytes) else text.encode()
        (tmp_path / f"{name}.csv").write_bytes(data)
    return tmp_path


@pytest.mark.parametrize("layout", [gaze.GAZEGRAPH, gaze.ANDERSSON2017])
def test_stand_in_reads_as_by_pandas(tmp_path, layout):
    frame = gaze.synthetic(3, seed=1, path=tmp_path / "g", seconds=12, n_recordings=2, layout=layout)
    plain = []
    for file in sorted((tmp_path / "g").glob("*.csv")):
        one = pd.read_csv(file)
        one = one[(one[layout["x"]] != 0) | (one[layout["y"]] != 0)]
        user, recording = file.stem.split("_")
        plain.append(one.assign(user=user, recording=recording))
    plain = pd.concat(plain)
    assert frame["user"].tolist() == plain["user"].tolist()
    assert frame["recording"].tolist() == plain["recording"].tolist()
    for ours, theirs in (("time", "time"), ("x", "x"), ("y", "y")):
        assert frame[ours].tolist() == plain[layout[theirs]].tolist()
    assert frame.attrs["synthetic"] is True
    assert frame.attrs["unit"] == layout["unit"]
    total = 3 * 2 * 12 * 60
    assert len(frame) + frame.attrs["skipped"]["lost sample"] == total


def test_stand_in_rests_on_areas():
    frame = gaze.synthetic(4, seed=0, seconds=60)
    area = gaze.areas(frame, 6, 4, 1.0, 1.0)
    assert (area >= 0).all()
    assert (np.diff(area) == 0).mean() > 0.8
    frame["area"] = area
    steps = fixed_steps(frame, 0.1, 0.3, state="area", user=["user", "recording"])
    assert steps.n_states > 3
    assert set(steps.users) <= {(f"P{i}", "SYNTHETIC1") for i in range(1, 5)}


def test_columns_and_units_are_the_callers(tmp_path):
    path = folder_of(tmp_path, A_1="s,kind,gy,gx\n0,a,1.5,2.5\n0.5,b,3,4\n")
    frame = gaze.load(path, time="s", x="gx", y="gy", unit="deg")
    assert frame["time"].tolist() == [0.0, 0.5]
    assert frame["x"].tolist() == [2.5, 4.0]
    assert frame.attrs["unit"] == "deg"


def test_one_file_compressed_and_byte_order_mark(tmp_path):
    path = tmp_path / "A_1.csv.gz"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbft,x,y\r\n0,1,2\r\n"))
    assert len(gaze.load(path, **COLUMNS)) == 1


def test_samples_on_an_edge_are_not_lost(tmp_path):
    path = folder_of(tmp_path, A_1="t,x,y\n0,0,5\n1,5,0\n2,0,0\n")
    assert gaze.load(path, **COLUMNS)["time"].tolist() == [0, 1]


def test_headers_are_checked(tmp_path):
    path = folder_of(tmp_path, A_1="t,a,b\n0,1,2\n")
    with pytest.raises(DataFormatError, match=r"line 1: the header must have the columns \['t', 'x', 'y'\], found"):
        gaze.load(path, **COLUMNS)
    with pytest.raises(DataFormatError, match="must name each column once"):
        gaze.load(folder_of(tmp_path, A_1="t,x,y,x\n0,1,2,3\n"), **COLUMNS)
    with pytest.raises(DataFormatError, match="the file is empty"):
        gaze.load(folder_of(tmp_path, A_1=""), **COLUMNS)
    with pytest.raises(DataFormatError, match="in a file of check-ins"):
        gaze.load(folder_of(tmp_path, A_1="0\t2010-10-19T23:55:27Z\t30.2\t-97.7\t22847\n"), **COLUMNS)


def test_recording_without_samples_is_counted(tmp_path):
    frame = gaze.load(folder_of(tmp_path, A_1="t,x,y\n", B_1="t,x,y\n0,1,2\n"), **COLUMNS)
    assert frame["user"].tolist() == ["B"]
    assert frame.attrs["skipped"] == {"file without samples": 1}


def test_names_and_arguments_are_checked(tmp_path):
    path = folder_of(tmp_path, plain="t,x,y\n0,1,2\n")
    with pytest.raises(DataFormatError, match="the file's name must tell user and recording"):
        gaze.load(path, **COLUMNS)
    with pytest.raises(ValueError, match="must name different columns"):
        gaze.load(path, time="t", x="x", y="x")
    with pytest.raises(DataFormatError, match="there must be CSV files"):
        (tmp_path / "empty").mkdir()
        gaze.load(tmp_path / "empty", **COLUMNS)
    with pytest.raises(ValueError, match="width and height must be positive"):
        gaze.areas(pd.DataFrame({"x": [1.0], "y": [1.0]}), 2, 2, 0, 1)


def test_there_is_nothing_official_to_fetch():
    with pytest.raises(DatasetNotFoundError, match=r"no official file to download.*one CSV a recording"):
        gaze.fetch()


@pytest.mark.real_data
def test_recorded_gaze(real_data):
    frame = gaze.load(real_data("gaze/andersson2017"), **gaze.ANDERSSON2017)
    assert len(frame) + sum(frame.attrs["skipped"].values()) == 383_221
    assert frame.attrs["skipped"] == {"lost sample": 3371}
    assert frame["user"].nunique() == 30
    assert frame.groupby(["user", "recording"], observed=True).ngroups == 63
    frame = gaze.load(real_data("gaze/gazegraph"), **gaze.GAZEGRAPH)
    assert frame["user"].nunique() == 8
    assert frame["recording"].nunique() == 6


@pytest.mark.real_data
def test_the_columns_tell_which_recorded_set_is_meant(real_data):
    real_data("gaze/andersson2017"), real_data("gaze/gazegraph")
    assert gaze.load(**gaze.GAZEGRAPH).attrs["source"].endswith("gazegraph")
    assert gaze.load(**gaze.ANDERSSON2017).attrs["source"].endswith("andersson2017")
