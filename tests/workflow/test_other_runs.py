"""How far the claims' numbers moved in another run."""

import json

import pytest

from workflow.configuration import ROOT
from workflow.other_runs import OTHER_VERDICT, OTHER_WORDS, compare, moved, summary, tolerance_of

RECORD = "tkde2019/fig3"


@pytest.mark.parametrize(("factor", "expected"), [(1.0, {0.0}), (0.5, {OTHER_VERDICT})])
def test_records_are_compared_by_what_their_claims_show_and_conclude(tmp_path, factor, expected):
    record = json.loads((ROOT / "figures" / f"{RECORD}.json").read_text())
    halved = json.loads(json.dumps(record["results"]), parse_float=lambda text: float(text) * factor)
    path = tmp_path / f"{RECORD}.json"
    path.parent.mkdir()
    path.write_text(json.dumps(record | {"results": halved}))
    found = compare(tmp_path)
    assert len(found) > 3
    assert expected <= set(found.values())
    assert factor != 1.0 or expected == set(found.values())


def test_the_largest_relative_difference_is_rounded_up_and_a_run_summed_up_in_a_sentence():
    others = {"2 of 1,000 s": 0.0, "2 of 1,010 s": 1.0, "3 of 1,000 s": 33.4, "2 s": OTHER_WORDS}
    assert {other: moved("2 of 1,000 s", other) for other in others} == others
    claims = {"a#same": 0.0, "a#near": 1.5, "b#far": 20.0, "b#other": OTHER_VERDICT}
    assert summary({"another seed": claims}) == (
        "With another seed, 1 of 4 claims showed the same digits, the numbers of 2 moved by 1.5 to 20 %; "
        "other verdict: b#other."
    )
    assert tolerance_of(2.5) == "up to 2.5 % with another seed"
    assert (tolerance_of(OTHER_VERDICT), tolerance_of(0.0)) == ("other verdict with another seed", None)
