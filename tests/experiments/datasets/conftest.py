"""Fixtures of the data set tests: no test sees the user's own data folder or cache unless it asks
for real data."""

import os
from pathlib import Path

import pytest

from experiments.datasets.readers import registry


@pytest.fixture(autouse=True)
def own_folders(request, tmp_path, monkeypatch):
    monkeypatch.setenv(registry.CACHE_VARIABLE, str(tmp_path / "cache"))
    if request.node.get_closest_marker("real_data") is None:
        monkeypatch.delenv(registry.DATA_VARIABLE, raising=False)


@pytest.fixture
def real_data():
    """The folder that TPLREPRO_DATA names; a function of it skips, saying why, if a part is
    absent."""

    def part(name):
        folder = os.environ.get(registry.DATA_VARIABLE)
        if not folder:
            pytest.skip(
                "TPLREPRO_DATA is not set: it must name the folder with the recorded data sets"
            )
        path = Path(folder) / name
        if not path.exists():
            pytest.skip(f"TPLREPRO_DATA has no {name}")
        return path

    return part
