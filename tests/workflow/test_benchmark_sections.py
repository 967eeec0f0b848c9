"""Parts of `make bench` that take minutes there, at sizes that take none."""

from dataclasses import replace

import pytest

from benchmarks.sections import data_set_readers
from benchmarks.sections.data_set_readers import OFFICIAL_SETS, READERS


@pytest.mark.parametrize("name", OFFICIAL_SETS)
def test_a_stand_in_is_written_that_its_reader_reads(name, tmp_path, monkeypatch):
    official = OFFICIAL_SETS[name]
    few = replace(official, users=3)
    if name == "geolife":
        few = replace(few, settings={"n_trajectories": 3, "seconds_between_points": 60.0})
    monkeypatch.setitem(data_set_readers.OFFICIAL_SETS, name, few)
    path = tmp_path / official.file_name
    data_set_readers.write_set(name, path)
    assert len(READERS[f"read {name}"](path)) > 0
