import json

import pytest

from workflow.configuration import read_notebooks, read_profile
from workflow.fingerprint import fingerprint, write_status
from workflow.publish_figures import publish


@pytest.fixture
def batch(repository, monkeypatch):
    """A finished batch of two notebooks, without having run it."""
    monkeypatch.delenv("TPLREPRO_DATA", raising=False)
    for name in ("a/one", "a/two"):
        repository.notebook(name)
    repository.configure("a/one:\na/two:", "notebooks:\n  a/one: {}\n  a/two: {}\n")
    for name, entry in read_notebooks(repository.root).items():
        repository.write(f"build/quick/notebooks/{name}.ipynb", "{}")
        now = fingerprint(entry, read_profile("quick", repository.root), repository.root)
        write_status(name, "quick", {"fingerprint": now}, repository.root)
    return repository


def save(repository, name, data, suffixes=(".png", ".pdf")):
    for suffix in suffixes:
        repository.write(f"build/quick/figures/{name}{suffix}", f"{name}{suffix}")
    repository.write(f"build/quick/figures/{name}.json", json.dumps({"data": data}))


def published(repository):
    folder = repository.root / "figures"
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_figures_and_records_are_copied(batch):
    save(batch, "a/one", "none")
    save(batch, "a/two_detail", "real", suffixes=(".csv",))
    assert publish("quick", batch.root) == (["a/one", "a/two_detail"], [])
    assert published(batch) == ["a/one.json", "a/one.pdf", "a/one.png", "a/two_detail.csv", "a/two_detail.json"]


def test_a_file_that_is_no_longer_saved_goes(batch):
    batch.write("figures/a/one.csv", "old")
    save(batch, "a/one", "none")
    publish("quick", batch.root)
    assert "a/one.csv" not in published(batch)


def test_synthetic_data_are_not_published(batch):
    save(batch, "a/one", "synthetic")
    copied, (reason,) = publish("quick", batch.root)
    assert copied == []
    assert reason == "a/one: computed from synthetic data; set TPLREPRO_DATA and run make figures"


def test_results_of_older_code_are_not_published(batch):
    save(batch, "a/one", "none")
    batch.write("tplrepro/module.py", "answer = 43\n")
    copied, (reason,) = publish("quick", batch.root)
    assert copied == []
    assert reason == "a/one: notebooks/a/one.ipynb is not up to date; run make figures (same TPLREPRO_DATA)"


def test_figures_of_no_registered_notebook_stay_where_they_are(batch):
    save(batch, "a/removed", "none")
    assert publish("quick", batch.root) == ([], [])
