"""Every claim notices a change of its published numbers, or of the code: ``make claims-mutate
[CODE=1]``.

Each number of a claim is changed alone in every way that its form admits, and numbers of the same
form are swapped. A claim notices if its verdict changes, or the values of a swept choice at which
it holds, or if it cannot be judged. One that never notices must say why in its field ``invariant``.
A claim that tests decide names a change of code in ``breaks``, after which one of its tests must
fail.
"""

import itertools
import re
import shutil
import warnings
from dataclasses import replace

import numpy as np
import pytest

from experiments.claims import Claim, ClaimError, claims_of, judge, recorded
from experiments.provenance import ROOTS
from workflow.configuration import ROOT, records_in
from workflow.publishing.judging import outcomes_of, read_pages

RECORDS = records_in(ROOT / "figures")
CLAIMS = {
    f"{page}#{claim.id}": claim
    for page, content in read_pages().items()
    for claim in claims_of(content)
}
BY_RECORD = [name for name, claim in CLAIMS.items() if claim.by_record]
BY_TESTS = [name for name, claim in CLAIMS.items() if claim.tests]


def scaled(value, factor):
    if isinstance(value, dict):
        return value | {
            name: value[name] * factor for name in ("value", "low", "high") if name in value
        }
    return (
        [scaled(part, factor) for part in value]
        if isinstance(value, list)
        else float(value) * factor
    )


def flattened(values):
    try:
        return np.broadcast_to(
            np.mean(np.asarray(values, dtype=float), axis=0), np.shape(values)
        ).tolist()
    except (TypeError, ValueError):  # texts, intervals, or series of different lengths
        return [values[0]] * len(values)


# Of any number, and of each entry of a series.
CHANGES = {
    f"times {factor}": lambda value, factor=factor: scaled(value, factor)
    for factor in (0.5, 0.9, 1.1, 2.0)
}
CHANGES["made finite"] = lambda value: np.nan_to_num(
    np.asarray(value, dtype=float), posinf=1000.0
).tolist()
OF_SERIES = {
    "ends swapped": lambda values: [values[-1], *values[1:-1], values[0]],
    "reversed": lambda values: values[::-1],
    "shuffled": lambda values: [
        values[place] for place in np.random.default_rng(0).permutation(len(values))
    ],
    "flattened": flattened,
}


def mutants(value):
    """Names and results of the changes of one number of a record."""
    if isinstance(value, bool):
        return {"negated": not value}
    results = {}
    for name, change in (
        CHANGES | (OF_SERIES if isinstance(value, list) and len(value) > 1 else {})
    ).items():
        try:
            results[name] = change(value)
        except (TypeError, ValueError):  # a text has no half
            continue
    return {name: result for name, result in results.items() if result != value}


def noticed(claim, record):
    """Whether the claim notices it, by change of its numbers."""
    values = {name: recorded(claim, name, record) for name in claim.numbers or {}}
    changes = {
        f"{name} {words}": {name: new}
        for name in values
        for words, new in mutants(values[name]).items()
    }
    for one, other in itertools.combinations(values, 2):
        alike = type(values[one]) is type(values[other]) and np.shape(values[one]) == np.shape(
            values[other]
        )
        if alike and values[one] != values[other]:
            changes[f"{one}, {other} swapped"] = {one: values[other], other: values[one]}
    claim = replace(claim, numbers={name: name for name in values})

    def verdict(results):
        try:
            found = judge(claim, record | {"results": results})
        except ClaimError:
            return None
        return found.kind, found.holding

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a predicate may divide by what became 0
        before = verdict(values)
        return {words: verdict(values | change) != before for words, change in changes.items()}


def shown(name):
    """As pytest's option -k takes it."""
    return name.replace("#", "/")


@pytest.mark.parametrize("name", BY_RECORD, ids=shown)
def test_a_claim_notices_a_change_of_its_numbers_or_says_why_not(name):
    claim = CLAIMS[name]
    notices = any(noticed(claim, RECORDS[claim.record]).values())
    assert not (notices and claim.invariant), "notices a change; drop invariant"
    assert notices or claim.invariant, (
        "notices no change; sharpen its predicate, or say why in invariant"
    )


def test_at_most_5_percent_of_claims_are_invariant():
    assert sum(bool(CLAIMS[name].invariant) for name in BY_RECORD) <= 0.05 * len(BY_RECORD)


def places_of_change(change):
    """Where the code stands that a claim's `breaks` changes, however its lines are wrapped."""
    code = (ROOT / change["in"]).read_text(encoding="utf-8")
    parts = re.split(r"\s+|(?<=[(\[{,])|(?=[)\]}])", change["from"])
    return list(re.finditer(r"\s*".join(re.escape(part) for part in parts if part), code))


def test_each_claim_that_tests_decide_names_a_change_of_code_that_can_be_made():
    breaks = {name: CLAIMS[name].breaks for name in BY_TESTS}
    assert [name for name, change in breaks.items() if not change] == []
    counts = {name: len(places_of_change(change)) for name, change in breaks.items()}
    assert {name: count for name, count in counts.items() if count != 1} == {}


def test_each_claim_that_tests_decide_says_what_they_compare():
    """A statement that two papers share says it once."""
    own = {name for name in BY_TESTS if not CLAIMS[name].same_as}
    assert {name for name, claim in CLAIMS.items() if claim.compares} == own
    assert [name for name in own if " against " not in f" {CLAIMS[name].compares} "] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", BY_TESTS, ids=shown)
def test_a_test_of_the_claim_fails_after_the_change_of_code_that_it_names(name, tmp_path):
    claim = CLAIMS[name]
    file = claim.breaks["in"]
    code = (ROOT / file).read_text(encoding="utf-8")
    (place,) = places_of_change(claim.breaks)
    changed = code[: place.start()] + claim.breaks["to"] + code[place.end() :]
    for part in (*ROOTS, "tests", "workflow"):
        shutil.copytree(ROOT / part, tmp_path / part)  # with compiled kernels
    for part in ("pyproject.toml", "config", "docs", "figures", "notebooks", "data"):
        (tmp_path / part).symlink_to(ROOT / part)
    (tmp_path / file).write_text(changed, encoding="utf-8")
    assert "failed" in outcomes_of(claim.tests, tmp_path).values()


VALUES = {"x": 1.0, "y": 3.0, "series": [1.0, 2.0, 3.0]}
REORDERED = {f"series {words}" for words in OF_SERIES}
SCALED = {"series times 0.5", "series times 0.9", "series times 1.1", "series times 2.0"}


@pytest.mark.parametrize(
    ("predicate", "facts", "expected"),
    [
        ("x < y", {}, {"x, y swapped"}),
        ("all(diff(series) > 0)", {}, REORDERED),
        (
            "series > 1",
            {"swept": {"what": "size", "over": "[1, 2, 3]", "each": ["series"]}, "why": "size"},
            None,
        ),
        ("x < 100", {}, set()),
    ],
)
def test_a_claim_notices_exactly_the_changes_that_alter_its_verdict(predicate, facts, expected):
    expected = REORDERED | SCALED - {"series times 0.9"} if expected is None else expected
    numbers = {name: name for name in VALUES}
    claim = Claim(
        "some", "Fig. 3", "It grows", "tkde2019/fig3", numbers=numbers, predicate=predicate, **facts
    )
    found = noticed(claim, {"parameters": {}, "results": VALUES})
    assert {words for words, notices in found.items() if notices} == expected


@pytest.mark.parametrize(
    ("value", "results"),
    [
        (True, {"negated": False}),
        ("Algorithm 1", {}),
        (
            {"value": 2.0, "low": 1.0, "repeats": 3},
            {"times 0.5": {"value": 1.0, "low": 0.5, "repeats": 3}},
        ),
        ("inf", {"made finite": 1000.0}),
        (
            [[1, 2], [3]],
            {
                "times 0.5": [[0.5, 1.0], [1.5]],
                "reversed": [[3], [1, 2]],
                "flattened": [[1, 2], [1, 2]],
            },
        ),
        ([1, 2, 4], {"shuffled": [4, 1, 2], "ends swapped": [4, 2, 1], "flattened": [7 / 3] * 3}),
        ([5.0, 5.0], {"times 0.5": [2.5, 2.5], "reversed": None, "flattened": None}),
    ],
)
def test_each_form_of_number_is_changed_in_its_own_ways(value, results):
    found = mutants(value)
    assert {name: found.get(name) for name in results} == results
    assert found == results or value not in (True, "Algorithm 1")
