import pytest

from workflow.configuration import read_notebooks, read_profile
from workflow.fingerprint import fingerprint, write_fingerprint


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


def test_another_papers_folder_counts_only_where_it_is_named(one):
    before = take(one)
    one.write("tplrepro/sip/module.py", "answer = 1\n")
    assert changed(one, before) == set()
    one.notebook("a/one", "from tplrepro import sip")
    before = take(one)
    one.write("tplrepro/sip/module.py", "answer = 2\n")
    assert changed(one, before) == {"package"}


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


def test_the_file_is_rewritten_only_when_something_changed(one):
    def write():
        profile = read_profile("quick", one.root)
        return write_fingerprint(read_notebooks(one.root)["a/one"], profile, one.root).stat().st_mtime_ns

    first = write()
    assert write() == first
    one.write("tplrepro/module.py", "answer = 43\n")
    assert write() > first
