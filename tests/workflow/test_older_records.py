"""`make claims` lists the records whose code has changed since, and no others."""

import json
import subprocess

import pytest

from workflow.older_records import older_records


@pytest.fixture
def published(repository):
    """A figure made by a committed notebook and module; a function writes its record again after a change."""
    repository.notebook("a/one", "import tplrepro.module", "answer = 1  # the answer")
    repository.configure("a/one:", "notebooks:\n  a/one: {value: 0.75}\n")
    repository.write("Makefile", "")
    repository.write("tplrepro/module.py", '"""What it is."""\nanswer = 42\n')
    git = ("git", "-C", str(repository.root), "-c", "user.name=a", "-c", "user.email=a@example.org")
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *words], check=True)
    commit = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    record = {"commit": {"id": commit}, "modules": ["tplrepro.module"], "parameters": {"value": 0.75, "seed": 1}}
    repository.write("figures/a/one_more.json", json.dumps(record))
    return repository


def changed(repository):
    older_records.__globals__["_git"].cache_clear()
    return older_records(repository.root)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("tplrepro/module.py", '"""Other words."""\n\nanswer = (42)  # and why\n'),
        ("experiments/claims.py", "answer = 1\n"),
        ("tplrepro/other.py", "answer = 1\n"),
    ],
)
def test_words_layout_and_modules_that_were_not_imported_make_no_record_older(published, file, text):
    published.write(file, text)
    assert changed(published) == {}


def test_changed_and_missing_code_and_parameters_make_it_older(published):
    published.write("tplrepro/module.py", '"""What it is."""\nanswer = 43\n')
    assert changed(published) == {"a/one_more.json": ["tplrepro/module.py"]}
    (published.root / "tplrepro/module.py").unlink()
    published.notebook(
        "a/one", "import tplrepro.module", "answer = 2  # the answer", parameters="value = 1.0\nseed = 2"
    )
    parts = ["notebooks/a/one.ipynb", "tplrepro/module.py", "parameters"]
    assert changed(published) == {"a/one_more.json": parts}


def test_a_commit_that_is_not_there_is_named(published):
    path = published.root / "figures/a/one_more.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"commit": {"id": "0123456789"}}))
    assert changed(published) == {"a/one_more.json": ["commit 0123456, which this clone does not have"]}
