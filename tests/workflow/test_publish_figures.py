import json

import pytest

from workflow.fingerprint import fingerprint, write_status
from workflow.publish_figures import publish


@pytest.fixture
def batch(repository):
    """A finished batch of two notebooks, without having run it."""
    repository.of("a/one", "a/two")
    for name in ("a/one", "a/two"):
        repository.write(f"build/quick/notebooks/{name}.ipynb", "{}")
        write_status(name, "quick", {"fingerprint": fingerprint(*repository.entry(name))}, repository.root)
    return repository


def save(repository, name, data, suffixes=(".png", ".pdf")):
    for suffix in (*suffixes, ".json"):
        repository.write(f"build/quick/figures/{name}{suffix}", json.dumps({"data": data}))


def test_figures_and_records_are_copied_and_what_is_no_longer_saved_goes(batch):
    folder = batch.root / "figures"
    batch.write("figures/a/one.csv", "old")
    save(batch, "a/one", "none")
    save(batch, "a/two_detail", "real", suffixes=(".csv",))
    assert publish("quick", batch.root) == (["a/one", "a/two_detail"], [])
    published = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    assert published == ["a/one.json", "a/one.pdf", "a/one.png", "a/two_detail.csv", "a/two_detail.json"]


def test_synthetic_data_results_of_older_code_and_figures_of_no_notebook_are_not_published(batch):
    save(batch, "a/removed", "none")
    assert publish("quick", batch.root) == ([], [])
    save(batch, "a/one", "synthetic")
    synthetic = "a/one: computed from synthetic data; set TPLREPRO_DATA and run make figures"
    assert publish("quick", batch.root) == ([], [synthetic])
    save(batch, "a/one", "none")
    batch.write("tplrepro/module.py", "answer = 43\n")
    older = "a/one: notebooks/a/one.ipynb is not up to date; run make figures (same TPLREPRO_DATA)"
    assert publish("quick", batch.root) == ([], [older])
