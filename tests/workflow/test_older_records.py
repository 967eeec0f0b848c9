"""`make claims` lists the records whose code has changed since, and no others."""

import json
import subprocess

import pytest

from workflow import older_records

RECORD = "figures/a/one_more.json"


@pytest.fixture
def published(repository):
    """A figure made by a committed notebook and module."""
    repository.notebook("a/one", "import tplrepro.module", "answer = 1  # the answer")
    repository.configure("a/one:", "notebooks:\n  a/one: {value: 0.75}\n")
    repository.write("tplrepro/module.py", '"""What it is."""\nanswer = 42\n')
    repository.write("experiments/claims.py", "answer = 0\n")
    git = ("git", "-C", str(repository.root), "-c", "user.name=a", "-c", "user.email=a@example.org")
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *words], check=True)
    commit = {"id": subprocess.check_output([*git, "rev-parse", "HEAD"], text=True).strip()}
    parameters = {"value": 0.75, "seed": 1}
    record = {"commit": commit, "modules": ["tplrepro.module", "experiments.claims"], "parameters": parameters}
    repository.write(RECORD, json.dumps(record))
    return repository


@pytest.mark.parametrize(
    ("file", "text", "changed"),
    [
        ("tplrepro/module.py", '"""Other words."""\n\nanswer = (42)  # and why\n', []),
        ("experiments/claims.py", "answer = 1\n", []),
        ("tplrepro/other.py", "answer = 1\n", []),
        ("tplrepro/module.py", '"""What it is."""\nanswer = 43\n', ["tplrepro/module.py"]),
        ("tplrepro/module.py", None, ["tplrepro/module.py"]),
    ],
)
def test_changed_and_missing_code_makes_a_record_older_but_words_layout_and_other_modules_do_not(
    published, file, text, changed
):
    (published.root / file).unlink(missing_ok=True)
    if text is not None:
        published.write(file, text)
    assert older_records.older_records(published.root).get("a/one_more", []) == changed


def test_another_notebook_a_changed_one_and_a_commit_that_is_not_there_are_named(published):
    published.notebook("a/one", "import tplrepro.module", "answer = 2", parameters="value = 1.0\nseed = 2")
    changed = older_records.older_records(published.root)
    assert changed == {"a/one_more": ["notebooks/a/one.ipynb", "parameters"]}
    published.notebook("a/other", "answer = 1")
    published.configure("a/one: {notebook: a/other}", "notebooks:\n  a/one: {value: 0.75}\n")
    assert older_records.older_records(published.root) == {"a/one_more": ["notebooks/a/other.ipynb"]}
    record = json.loads((published.root / RECORD).read_text())
    published.write(RECORD, json.dumps(record | {"commit": {"id": "0123456789"}}))
    changed = older_records.older_records(published.root)
    assert changed == {"a/one_more": ["commit 0123456, which this clone does not have"]}
