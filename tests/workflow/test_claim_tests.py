"""Outcomes of tests that decide claims come from pytest."""

from workflow.claim_tests import outcomes_of

TESTS = """import pytest

@pytest.mark.parametrize("number", [1, 2])
def test_every_case(number):
    assert number < 3

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
OUTCOMES = {"every_case": "passed", "every_case[1]": "passed", "slow": "passed", "skipped": "skipped"}
OUTCOMES |= {"some_case_skipped": "skipped", "setup_fails": "failed"}


def test_the_worst_case_counts_slow_tests_run_and_what_is_missing_or_cannot_be_imported_stays_so(tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "pyproject.toml").write_text(
        '[tool.pytest.ini_options]\nmarkers = ["slow"]\naddopts = ["-m", "no slow"]'
    )
    (tmp_path / "tests/test_some.py").write_text(TESTS)
    (tmp_path / "tests/test_bad.py").write_text("import no_such_module\n\ndef test_any():\n    pass\n")
    expected = {f"tests/test_some.py::test_{name}": outcome for name, outcome in OUTCOMES.items()}
    missing = ["tests/test_some.py::test_not_there", "tests/test_other.py::test_any", "tests/test_bad.py::test_any"]
    assert outcomes_of([*expected, *missing], tmp_path) == expected
    assert outcomes_of([], tmp_path) == {}
