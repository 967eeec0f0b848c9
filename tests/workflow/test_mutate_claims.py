"""Mutations of records: each form has its own, a claim that notices nothing must say why."""

import json

import pytest
import yaml

from experiments.claims import Claim
from workflow.mutate_claims import break_code, mutants, mutate, report


@pytest.mark.parametrize(
    ("value", "results"),
    [
        (True, {"negate": False}),
        ("Algorithm 1", {}),
        ({"value": 2.0, "low": 1.0, "repeats": 3}, {"halve": {"value": 1.0, "low": 0.5, "repeats": 3}}),
        ("inf", {"make finite": 1000.0}),
        ([[1, 2], [3]], {"halve": [[0.5, 1.0], [1.5]], "reverse": [[3], [1, 2]], "flatten": [[1, 2], [1, 2]]}),
        ([1, 2, 4], {"shuffle": [4, 1, 2], "swap the ends": [4, 2, 1], "reverse": [4, 2, 1], "flatten": [7 / 3] * 3}),
        ([5.0, 5.0], {"halve": [2.5, 2.5], "reverse": None, "flatten": None}),
    ],
)
def test_mutations_by_form(value, results):
    found = mutants(value)
    assert {name: found.get(name) for name in results} == results
    if value in (True, "Algorithm 1"):
        assert found == results


RESULTS = {"x": 1.0, "y": 3.0, "series": [1.0, 2.0, 3.0]}
SWEPT = {"what": "size", "over": "[1, 2, 3]", "each": ["series"]}
REORDERED = {f"{words} series" for words in ("swap the ends", "reverse", "shuffle", "flatten")}


@pytest.mark.parametrize(
    ("predicate", "facts", "expected"),
    [
        ("x < y", {}, {"swap x, y"}),
        ("all(diff(series) > 0)", {}, REORDERED),
        (
            "series > 1",
            {"swept": SWEPT, "why": "size"},
            REORDERED | {"halve series", "double series", "10 % up series"},
        ),
        ("x < 100", {}, set()),
    ],
)
def test_a_claim_notices_a_change_of_its_verdict_alone(predicate, facts, expected):
    numbers = {name: name for name in RESULTS}
    claim = Claim("some", "Fig. 3", "It grows", "tkde2019/fig3", numbers=numbers, predicate=predicate, **facts)
    noticed = {words for words, notices in mutate(claim, {"parameters": {}, "results": RESULTS}) if notices}
    assert noticed == expected


@pytest.fixture
def repository(tmp_path):
    """A repository with one claim by a record, and one by a test of one line of code."""
    for folder in (
        "docs/claims",
        "figures/tkde2019",
        "tests",
        "tplrepro",
        "tplfrontier",
        "tplreport",
        "experiments",
        "page",
        "workflow",
    ):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "tplrepro/code.py").write_text("ONE = 1\n")
    (tmp_path / "tests/test_code.py").write_text(
        "import pathlib\n\ndef test_one():\n    assert pathlib.Path('tplrepro/code.py').read_text() == 'ONE = 1\\n'\n"
    )
    (tmp_path / "figures/tkde2019/fig3.json").write_text(json.dumps({"parameters": {}, "results": RESULTS}))
    return tmp_path


def state(repository, **facts):
    stated = {"id": "some", "place": "P", "statement": "S"} | facts
    page = {"title": "T", "introduction": "I", "sections": [{"title": "S", "claims": [stated]}]}
    (repository / "docs/claims/tkde2019.yaml").write_text(yaml.safe_dump(page))


@pytest.mark.parametrize(
    ("number", "predicate", "invariant", "count", "problem"),
    [
        ("x", "x < 1.05", "", "4 changes: 0 of 1", None),
        ("x", "x < 100", "", "4 changes: 1 of 1", "notices no change; sharpen its predicate, or say why in invariant"),
        ("x", "x < 100", "a bound", "4 changes: 1 of 1", None),
        ("x", "x < 1.05", "a bound", "4 changes: 0 of 1", "notices a change; drop invariant"),
        # It cannot be judged, and is not counted.
        ("z", "x < 100", "", "0 changes: 0 of 0", "tkde2019/fig3 has no 'z' in its results; record it"),
    ],
)
def test_the_report_counts_what_notices_nothing(repository, number, predicate, invariant, count, problem):
    state(repository, record="tkde2019/fig3", numbers={"x": number}, predicate=predicate, invariant=invariant)
    text, found = report(repository)
    expected = [f"tkde2019: some: {problem}"] if problem else []
    if "1 of 1" in count:
        expected.append("at most 5% of the claims may notice nothing, found 1 of 1")
        assert f"- tkde2019#some: {invariant or 'NO REASON'}" in text
    assert found == expected
    assert text.startswith(f"{count} claims that records decide notice nothing")


@pytest.mark.parametrize(
    ("breaks", "problem"),
    [
        ({"in": "tplrepro/code.py", "from": "1", "to": "2"}, None),
        ({"in": "tplrepro/code.py", "from": "ONE =", "to": "ONE ="}, "a test must fail after the change in breaks"),
        ({"in": "tplrepro/code.py", "from": "TWO", "to": "3"}, "tplrepro/code.py must have 'TWO' once; correct breaks"),
        (None, "must have breaks, found none; say which change of code makes a test fail"),
    ],
)
def test_a_change_of_code_must_make_a_test_of_the_claim_fail(repository, breaks, problem):
    state(repository, test="tests/test_code.py::test_one", breaks=breaks)
    found = break_code(repository)
    assert len(found) == (problem is not None)
    assert problem is None or problem in found[0]
    assert (repository / "tplrepro/code.py").read_text() == "ONE = 1\n"
