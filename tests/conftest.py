"""Settings that all tests share."""

import gc
import os
import sys
from pathlib import Path

# Before anything imports Matplotlib: tests draw without a screen. Before anything imports NumPy:
# there is a process of tests for each core, beside which threads of BLAS only spin.
os.environ["MPLBACKEND"] = "Agg"
os.environ |= {
    f"{name}_NUM_THREADS": os.environ.get(f"{name}_NUM_THREADS", "1")
    for name in ("OMP", "OPENBLAS", "MKL")
}

import pytest
from hypothesis import Phase, settings

# The first call of a compiled function takes seconds, so hypothesis must not time examples; the
# same examples are drawn every time, because a failure that cannot be repeated helps nobody.
# HYPOTHESIS_PROFILE=search draws others.
settings.register_profile(
    "tplrepro", deadline=None, derandomize=True, database=None, print_blob=True
)
settings.register_profile("search", deadline=None, max_examples=1000, print_blob=True)
settings.register_profile(
    "first failure", settings.get_profile("tplrepro"), phases=(Phase.explicit, Phase.generate)
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "tplrepro"))


@pytest.hookimpl(wrapper=True)
def pytest_collection(session):
    """What collection makes, half a million objects, lives to the end: to look through it for
    garbage took a third of its time. One of several processes of tests never does; `make mutate`,
    which is a single one, looks there for functions."""
    gc.disable()
    try:
        return (yield)
    finally:
        if hasattr(session.config, "workerinput"):
            gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config, items):
    """Notebooks first, which take longest, so that no processor waits for the last of them; skip
    tests that need real files where TPLREPRO_DATA names none.
    """
    items.sort(key=lambda item: item.get_closest_marker("notebook") is None)
    folder = os.environ.get("TPLREPRO_DATA")
    if folder and Path(folder).is_dir():
        return
    reason = "TPLREPRO_DATA names no folder with the real files; see data/README.md"
    for item in items:
        if item.get_closest_marker("real_data"):
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture
def data_folder():
    """Folder with the real data; for tests marked real_data."""
    return Path(os.environ["TPLREPRO_DATA"])


@pytest.fixture(autouse=True)
def figures_folder(tmp_path_factory, monkeypatch):
    """Figures that a test saves go to a folder of its own, and none stays open."""
    folder = tmp_path_factory.getbasetemp() / "figures"
    monkeypatch.setenv("TPLREPRO_FIGURES", str(folder))
    yield folder
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
