import json
import os

import pytest

from workflow.batch.fingerprint import fingerprint, is_current, of_modules, write_status
from workflow.publishing.publish_figures import publish

ENTRY = "a/one: {{data: [kosarak, eventlogs], quick: {{value: {value}}}}}\n"


@pytest.fixture
def one(repository, monkeypatch):
    monkeypatch.setenv("TPLREPRO_CACHE", str(repository.root / "downloads"))
    repository.notebook("a/one", "print(value)")
    repository.configure(ENTRY.format(value=0.7))
    return repository


def take(repository):
    return fingerprint(*repository.entry("a/one"))


def changed(repository, before):
    return {part for part, now in take(repository).items() if now != before[part]}


def test_a_fingerprint_follows_code_parameters_and_environment_but_not_outputs_and_markdown(one):
    before = take(one)
    path = one.notebook("a/one", "print(value, seed)")
    assert changed(one, before) == {"notebook"}
    for name, text, part in (
        ("config/notebooks.yaml", ENTRY.format(value=0.8), "parameters"),
        ("tplrepro/module.py", "answer = 43\n", "package"),
        ("requirements.lock", "numpy==2.1\n", "environment"),
    ):
        before = take(one)
        one.write(name, text)
        assert changed(one, before) == {part}
    before = take(one)
    path.write_text(path.read_text().replace("# Title", "# Better title"))
    assert changed(one, before) == set()


def test_a_fingerprint_ignores_other_entries_and_profiles(one):
    before = take(one)
    for own in ("", "  paper: {value: 0.9}\n", "  timing: true\n"):
        entry = f"a/one:\n  data: [kosarak, eventlogs]\n  parameters: {{value: 0.7}}\n{own}"
        one.configure(f"a/two: {{data: [gaze], parameters: {{value: 2}}}}\n{entry}")
        assert changed(one, before) == set()


def test_a_fingerprint_follows_the_modules_that_a_run_imported_alone(one):
    module = one.write("tplrepro/sip/__init__.py", "")
    one.write("build/quick/notebooks/a/one.ipynb", "{}")

    def current_when_changed(change, *modules):
        write_status("a/one", "quick", {"fingerprint": of_modules(take(one), modules)}, one.root)
        assert is_current(*one.entry("a/one"))
        change()
        return is_current(*one.entry("a/one"))

    assert current_when_changed(lambda: module.write_text("#"), "tplrepro", "tplrepro.module")
    assert not current_when_changed(lambda: module.write_text("##"), "tplrepro", "tplrepro.sip")
    assert not current_when_changed(
        (one.root / "tplrepro/module.py").unlink, "tplrepro.sip", "tplrepro.module"
    )


def test_an_earlier_result_is_outdated_after_a_failure(one):
    """It stands until the job that replaces it starts."""
    one.write("build/quick/notebooks/a/one.ipynb", "{}")
    for status, expected in (("ok", True), ("failed", False)):
        content = {"fingerprint": take(one), "status": status}
        write_status("a/one", "quick", content, one.root)
        assert is_current(*one.entry("a/one")) == expected


def test_a_fingerprint_follows_name_size_and_time_of_data_files(one, monkeypatch, tmp_path):
    before = take(one)
    assert before["data"] == {"kosarak": "absent", "eventlogs": "absent"}
    downloaded = one.write("downloads/kosarak.dat.gz", "unpacked elsewhere")
    assert changed(one, before) == {"data"}
    downloaded.unlink()
    monkeypatch.setenv("TPLREPRO_DATA", str(tmp_path / "data"))
    assert changed(one, before) == set()
    for text in ("1 2\n", "1 2 3\n"):
        one.write("data/kosarak/kosarak.dat", text)
        assert changed(one, before) == {"data"}
        before = take(one)
        one.write("data/gowalla/other.txt", f"not read by this notebook: {text}\n")
        assert changed(one, before) == set()
    os.utime(one.root / "data/kosarak/kosarak.dat", (0, 0))
    assert changed(one, before) == {"data"}
    before = take(one)
    (tmp_path / "data/eventlogs").mkdir()
    (tmp_path / "data/eventlogs/linked").symlink_to(one.write("elsewhere/log.xes", "<log/>").parent)
    assert changed(one, before) == {"data"}


@pytest.fixture
def finished(repository):
    """A finished batch of two notebooks in both profiles, without having run it."""
    repository.of("a/one", "a/two")
    repository.write("config/notebooks.yaml", "a/one: {data: [kosarak]}\na/two:\n")
    for profile in ("quick", "paper"):
        for name in ("a/one", "a/two"):
            repository.write(f"build/{profile}/notebooks/{name}.ipynb", "{}")
            status = {"fingerprint": fingerprint(*repository.entry(name))}
            write_status(name, profile, status, repository.root)
    return repository


def save(repository, name, data, suffixes=(".png", ".pdf"), modified=False):
    record = {"data": data, "commit": {"id": "c", "modified": modified}}
    for suffix in (*suffixes, ".json"):
        repository.write(f"build/paper/figures/{name}{suffix}", json.dumps(record))


def test_publishing_copies_current_figures_without_synthetic_data_and_removes_others(finished):
    save(finished, "a/removed", "none")
    assert publish(finished.root) == ({}, [])
    save(finished, "a/one", "synthetic")
    assert publish(finished.root)[1] == [
        "a/one is from synthetic data; set TPLREPRO_DATA, run again"
    ]
    save(finished, "a/one", "none", modified=True)
    assert publish(finished.root)[1] == ["a/one is from modified code; commit and run it again"]
    folder = finished.write("figures/a/one.csv", "old").parent
    finished.write("figures/a/three_of_old.json", "{}")
    save(finished, "a/one", "none")
    # its own example, in the place of no data set
    save(finished, "a/two_detail", "synthetic", suffixes=(".csv",))
    copied, refused = publish(finished.root)
    assert (list(copied), refused) == (["a/one", "a/two_detail"], [])
    published = ["one.json", "one.pdf", "one.png", "two_detail.csv", "two_detail.json"]
    assert sorted(path.name for path in folder.iterdir()) == published
    finished.write("tplrepro/module.py", "answer = 43\n")
    older = "a/one is of a notebook that is not up to date; run make figures PROFILE=paper"
    assert publish(finished.root)[1][0] == older
    assert sorted(path.name for path in folder.iterdir()) == published
