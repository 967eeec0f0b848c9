"""How far the claims' numbers moved in another run."""

import json
import shutil

import pytest

from workflow.configuration import ROOT
from workflow.other_runs import OTHER_VERDICT, OTHER_WORDS, compare, moved, summary

RECORD = "tkde2019/fig3"


def scaled(value, factor):
    if isinstance(value, dict):
        return {key: scaled(one, factor) for key, one in value.items()}
    if isinstance(value, list):
        return [scaled(one, factor) for one in value]
    return value * factor if isinstance(value, float) else value


@pytest.mark.parametrize(("factor", "expected"), [(1.0, {0.0}), (0.5, {OTHER_VERDICT})])
def test_records_are_compared_by_what_their_claims_show_and_conclude(tmp_path, factor, expected):
    path = tmp_path / f"{RECORD}.json"
    path.parent.mkdir()
    shutil.copy(ROOT / "figures" / f"{RECORD}.json", path)
    record = json.loads(path.read_text())
    path.write_text(json.dumps(record | {"results": scaled(record["results"], factor)}))
    found = compare(tmp_path)
    assert len(found) > 3
    assert expected <= set(found.values())
    assert factor != 1.0 or expected == set(found.values())


@pytest.mark.parametrize(
    ("other", "expected"), [("2 of 1,000 s", 0.0), ("2 of 1,010 s", 1.0), ("3 of 1,000 s", 33.4), ("2 s", OTHER_WORDS)]
)
def test_the_largest_relative_difference_is_rounded_up(other, expected):
    assert moved("2 of 1,000 s", other) == expected


def test_a_run_is_summed_up_in_a_sentence():
    claims = {"a#same": 0.0, "a#near": 1.5, "b#far": 20.0, "b#other": OTHER_VERDICT}
    assert summary({"another seed": claims}) == (
        "With another seed, 1 of 4 claims showed the same digits, the numbers of 2 moved by 1.5 to 20 %; "
        "other verdict: b#other."
    )
