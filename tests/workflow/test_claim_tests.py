"""Outcomes of tests that decide claims come from pytest, and are kept until code or tests change."""

import json

import pytest

from workflow import claim_tests
from workflow.claim_tests import outcomes_of

TESTS = """import pytest

@pytest.mark.parametrize("number", [1, 2])
def test_every_case(number):
    assert number < {bound}

@pytest.mark.slow
def test_slow():
    pass

def test_skipped():
    pytest.skip("no data")

@pytest.mark.parametrize("number", [1, 2])
def test_some_case_skipped(number):
    if number == 2:
        pytest.skip("no data")

@pytest.fixture
def broken():
    raise ValueError

def test_setup_fails(broken):
    pass
"""
NAMES = ("every_case", "slow", "skipped", "some_case_skipped", "setup_fails", "not_there")


@pytest.fixture
def repository(tmp_path):
    """A repository whose only room is one file of tests."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "requirements.lock").touch()
    (tmp_path / "pyproject.toml").write_text(
        '[tool.pytest.ini_options]\nmarkers = ["slow"]\naddopts = ["-m", "not slow"]\n'
    )
    write(tmp_path, bound=3)
    return tmp_path


def write(repository, bound):
    (repository / "tests/test_some.py").write_text(TESTS.format(bound=bound))


def test_the_worst_case_counts_slow_tests_run_and_what_is_missing_stays_so(repository):
    names = [f"tests/test_some.py::test_{name}" for name in NAMES]
    found = outcomes_of([*names, "tests/test_other.py::test_any", "tests/test_some.py::test_every_case[1]"], repository)
    assert [found.get(name) for name in names] == ["passed", "passed", "skipped", "skipped", "failed", None]
    assert found["tests/test_some.py::test_every_case[1]"] == "passed"
    assert "tests/test_other.py::test_any" not in found


def test_a_file_that_cannot_be_imported_has_no_outcomes(repository):
    (repository / "tests/test_bad.py").write_text("import no_such_module\n\ndef test_any():\n    pass\n")
    names = ["tests/test_bad.py::test_any", "tests/test_some.py::test_slow"]
    assert outcomes_of(names, repository) == {names[1]: "passed"}


def test_outcomes_are_kept_until_the_code_changes_and_never_if_one_did_not_pass(repository, monkeypatch):
    names = ["tests/test_some.py::test_every_case"]
    assert outcomes_of(names, repository) == {names[0]: "passed"}
    calls = []
    monkeypatch.setattr(claim_tests, "run_tests", lambda wanted, root: calls.append(wanted) or {names[0]: "failed"})
    assert outcomes_of(names, repository) == {names[0]: "passed"}
    assert calls == []
    write(repository, bound=2)
    assert outcomes_of(names, repository) == outcomes_of(names, repository) == {names[0]: "failed"}
    assert calls == [names, names]
    assert json.loads((repository / "build/claims/tests.json").read_text())["names"] == names
    assert outcomes_of([], repository) == {}
