import pytest

from workflow.configuration import read_notebooks, read_profile
from workflow.fingerprint import fingerprint, is_current, of_modules, write_status


@pytest.fixture
def one(repository, monkeypatch):
    monkeypatch.delenv("TPLREPRO_DATA", raising=False)
    monkeypatch.setenv("TPLREPRO_CACHE", str(repository.root / "downloads"))
    repository.notebook("a/one", "print(value)")
    repository.configure("a/one: {data: [kosarak]}", "notebooks:\n  a/one: {value: 0.7}\n")
    return repository


def take(repository):
    profile = read_profile("quick", repository.root)
    return fingerprint(read_notebooks(repository.root)["a/one"], profile, repository.root)


def changed(repository, before):
    after = take(repository)
    return {part for part in after if after[part] != before[part]}


def test_new_outputs_and_markdown_change_nothing(one):
    before = take(one)
    path = one.root / "notebooks" / "a" / "one.ipynb"
    path.write_text(path.read_text().replace("# Title", "# Better title"))
    assert changed(one, before) == set()


def test_each_ingredient_counts(one):
    before = take(one)
    one.notebook("a/one", "print(value, seed)")
    assert changed(one, before) == {"notebook"}
    one.write("config/quick.yaml", "notebooks:\n  a/one: {value: 0.8}\n")
    assert changed(one, before) == {"notebook", "parameters"}
    one.write("tplrepro/module.py", "answer = 43\n")
    assert changed(one, before) == {"notebook", "parameters", "package"}
    one.write("requirements.lock", "numpy==2.1\n")
    assert changed(one, before) == {"notebook", "parameters", "package", "environment"}


def test_only_the_modules_that_a_run_imported_count(one):
    one.write("tplrepro/sip/__init__.py", "")
    profile, entry = read_profile("quick", one.root), read_notebooks(one.root)["a/one"]
    one.write("build/quick/notebooks/a/one.ipynb", "{}")

    def current_after_a_run_that_imported(*modules):
        write_status("a/one", "quick", {"fingerprint": of_modules(take(one), modules)}, one.root)
        assert is_current(entry, profile, one.root)
        one.write("tplrepro/sip/__init__.py", (one.root / "tplrepro/sip/__init__.py").read_text() + "#\n")
        return is_current(entry, profile, one.root)

    assert current_after_a_run_that_imported("tplrepro", "tplrepro.module")
    assert not current_after_a_run_that_imported("tplrepro", "tplrepro.sip")
    write_status(
        "a/one", "quick", {"fingerprint": of_modules(take(one), ["tplrepro.sip", "tplrepro.module"])}, one.root
    )
    (one.root / "tplrepro/module.py").unlink()
    assert not is_current(entry, profile, one.root)


def test_data_count_by_name_size_and_time(one, monkeypatch, tmp_path):
    before = take(one)
    assert before["data"] == {"kosarak": "absent"}
    monkeypatch.setenv("TPLREPRO_DATA", str(tmp_path / "data"))
    assert changed(one, before) == set()
    one.write("data/kosarak/kosarak.dat", "1 2\n")
    assert changed(one, before) == {"data"}
    before = take(one)
    one.write("data/gowalla/other.txt", "not read by this notebook\n")
    assert changed(one, before) == set()
    one.write("data/kosarak/kosarak.dat", "1 2 3\n")
    assert changed(one, before) == {"data"}


def test_downloads_count_as_data(one):
    before = take(one)
    one.write("downloads/kosarak.dat.gz", "unpacked elsewhere")
    assert changed(one, before) == {"data"}
