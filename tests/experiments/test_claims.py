"""Claims: verdicts follow the numbers, what a claim lacks is an error, notebooks show them at
whatever values."""

import json
import re

import pytest
import yaml

from experiments import claims
from experiments.claims import Claim, ClaimError, judge
from workflow.configuration import ROOT

RECORD = {
    "name": "tkde2019/fig3",
    "profile": "paper",
    "parameters": {"epsilon": 0.1, "horizon": 10},
    "results": {
        "BPL, s = 0.5": [0.1, 0.25],
        "error (km)": {"value": 1.4432, "low": 1.3, "high": 1.6},
        "supremum": "inf",
        "by": [{"n": 5}],
        "times": [{"value": value, "low": value - 1, "high": value + 1} for value in (8, 9, 10)],
    },
}
NUMBERS = {
    "bpl": "BPL, s = 0.5",
    "error": "error (km)",
    "top": "supremum",
    "n": ["by", 0, "n"],
    "time": "times",
}
SWEPT = {"what": "threshold", "over": "[90, 95, 98]", "each": ["time"]}


def claim(**facts):
    return Claim("some", "Fig. 3", "It grows", "tkde2019/fig3", numbers=NUMBERS, **facts)


@pytest.mark.parametrize(
    ("facts", "kind", "rest"),
    [
        ({"predicate": "bpl[0] == epsilon"}, "reproduced", ""),
        (
            {"predicate": "all(diff(bpl) > 0)", "erratum": "errata.md#a"},
            "reproduced with an erratum",
            "",
        ),
        (
            {"predicate": "len(bpl) > horizon", "why": "only {len(bpl)}"},
            "not reproduced",
            ": only 2",
        ),
        (
            {"predicate": "bpl[1] > 1", "part": "to {bpl[1]:.1f}", "why": "not to 1"},
            "in part",
            ": to 0.2; not to 1",
        ),
        (
            {"predicate": "bpl[1] > 1", "part": "a", "part_if": "bpl[1] > 2", "why": "b"},
            "not reproduced",
            ": b",
        ),
        (
            {"predicate": "bpl[1] > 1", "other_data": "our data", "why": "b"},
            "not observed on other data",
            ", our data: b",
        ),
        ({"predicate": "True", "note": "{epsilon} nats"}, "reproduced", ". 0.1 nats"),
        ({"why": "no {epsilon}"}, "not checkable here", ": no 0.1"),
        # A printed number is met from both sides within its tolerance.
        ({"printed": {"bpl[1]": "0.2 ± 0.05"}}, "reproduced", ""),
        ({"printed": {"bpl[1]": "0.3 ± 0.04"}, "why": "b"}, "not reproduced", ": b"),
        ({"printed": {"bpl[1]": "0.2 ± 25 %", "1e4 * bpl[0]": "1,000 ± 1"}}, "reproduced", ""),
        ({"printed": {"bpl": "0.2 ± 0.06"}, "why": "b"}, "not reproduced", ": b"),
        # A statement with an open choice is judged at each of its values.
        (
            {"swept": SWEPT, "predicate": "time < 12"},
            "reproduced",
            ", at every threshold tried: 90, 95 and 98",
        ),
        (
            {"swept": SWEPT, "predicate": "time <= 9", "why": "b"},
            "in part",
            ": at threshold = 90 and 95, not at 98; b",
        ),
        (
            {"swept": SWEPT, "predicate": "time_low > 8", "why": "b"},
            "in part",
            ": at threshold = 98, not at 90 and 95; b",
        ),
        (
            {"swept": SWEPT, "predicate": "time != 9", "why": "b"},
            "in part",
            ": at threshold = 90 and 98, not at 95; b",
        ),
        (
            {"swept": SWEPT | {"over": "['day', 'week', 'year']"}, "predicate": "time < 10"}
            | {"why": "b"},
            "in part",
            ": for threshold day and week, not for year; b",
        ),
        (
            {"swept": SWEPT | {"over": "['a, 1', 'a, 2', 'b']"}, "predicate": "time > 9"}
            | {"why": "b"},
            "in part",
            ": for threshold b, not for (a, 1; a, 2); b",
        ),
    ],
)
def test_the_verdict_follows_the_numbers(facts, kind, rest):
    verdict = judge(claim(**facts), RECORD)
    assert (verdict.kind, verdict.words) == (kind, kind + rest)


@pytest.mark.parametrize(
    ("tried", "words"),
    [
        ("[1, 2, 4, 8]", "1, 2, 4 and 8"),
        ("[1, 2, 3]", "1 to 3"),
        ("[0.5, 1, 2, 3, 4, 6]", "0.5, 1, 2, 3, 4 and 6"),
        ("[0.5, 1, 2, 3, 4, 6, 8]", "0.5 to 8"),
        ("[3]", "3"),
    ],
)
def test_values_tried_are_listed_unless_none_is_between_them_or_they_are_many(tried, words):
    swept = {"what": "window", "over": tried, "each": []}
    verdict = judge(claim(swept=swept, predicate="value > 0"), RECORD)
    assert verdict.words == f"reproduced, at every window tried: {words}"


def test_without_each_of_its_tests_passed_a_claim_has_no_verdict():
    stated = {"test": ["a::b", "a::c"]}
    assert (
        judge(Claim("a", "b", "c", **stated), outcomes={"a::b": "passed", "a::c": "passed"}).kind
        == "reproduced"
    )
    one = Claim("a", "b", "c", test="a::b", why="d")
    assert judge(one, outcomes={"a::b": "passed"}).kind == "not reproduced"
    for found, outcomes in {"skipped": {"a::c": "skipped"}, "missing": {}}.items():
        with pytest.raises(
            ClaimError, match=f"a: a::c must pass, found {found}; a claim has no verdict without"
        ):
            judge(Claim("a", "b", "c", **stated), outcomes={"a::b": "passed"} | outcomes)


def test_numbers_intervals_arrays_and_infinities_are_written_from_the_record():
    ours = "{bpl:.2f}; {error:.2f} km; {top}; {n} states; {2 * error:.1f}; {time:.0f}"
    stated = claim(predicate="error_low < error < error_high and isinf(top)", ours=ours)
    expected = (
        "0.10, 0.25; 1.44 (1.30 to 1.60) km; inf; 5 states; 2.9; "
        "8 (7 to 9), 9 (8 to 10), 10 (9 to 11)"
    )
    assert judge(stated, RECORD).ours == expected
    halved = claim(predicate="True", ours="{time:±.0f}")
    assert judge(halved, RECORD).ours == "8 ± 1, 9 ± 1, 10 ± 1"
    assert (
        judge(claim(printed={"bpl[1]": "0.2 ± 25 %"}, ours="{n}"), RECORD).ours
        == "5 (printed: 0.2 ± 25 %)"
    )


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"predicate": "bpl[1] > 1"}, r"some: does not hold \(\), and no cause is given; say why"),
        ({"predicate": "True", "why": "x"}, r"some: holds \(\), though a cause is given why not"),
        (
            {"predicate": "other > 1"},
            "some: 'other > 1' fails: NameError: name 'other' is not defined; correct it",
        ),
        ({"predicate": "open('x')"}, "NameError: name 'open' is not defined"),
        ({"predicate": "True", "ours": "{epsilon:d}"}, "some: cannot write 0.1 as 'd'"),
        (
            {"predicate": "True", "ours": "{error:±.1f}"},
            "some: cannot write 1.4432 as '±.1f': it is not in the middle of 1.3 and 1.6",
        ),
        (
            {},
            "some: must have a record with a predicate or printed numbers, or a test, "
            "or only why it is not checkabl",
        ),
        (
            {"printed": {"bpl[0]": "about 8"}},
            "some: printed must be like '11 ± 1' or '256 ± 20 %', found 'about 8'",
        ),
        (
            {"predicate": "True", "swept": {"over": "bpl"}},
            r"some: swept must have .*, found \['over'\]; correct it",
        ),
        (
            {"predicate": "True", "breaks": {"in": "a.py"}},
            r"some: breaks must have .* found \['in'\]; correct it",
        ),
        (
            {"predicate": "True", "swept": SWEPT, "part": "a"},
            "some: part must be empty, because swept renders it",
        ),
        (
            {"predicate": "True", "swept": SWEPT | {"over": "[1]"}},
            "some: time must have a number for each of 1 values",
        ),
        (
            {"predicate": "True", "about": "us"},
            "some: about must be 'the paper' or 'ours', found 'us'; correct it",
        ),
        (
            {"predicate": "True", "test": "x"},
            "some: must have a record with a predicate or printed numbers, or a test",
        ),
    ],
)
def test_each_mistake_in_a_claim_is_named(facts, message):
    with pytest.raises(ClaimError, match=message):
        judge(claim(**facts), RECORD)
    with pytest.raises(
        ClaimError, match=r"a: tkde2019/fig3 has no \['by', 1\] in its results; record it"
    ):
        judge(
            Claim("a", "b", "c", "tkde2019/fig3", numbers={"n": ["by", 1]}, predicate="n"), RECORD
        )


def test_a_number_may_be_a_list_of_several_results():
    numbers = {
        "x": {"of": [["BPL, s = 0.5", 1], "supremum"]},
        "e": {"of": ["error (km)", "error (km)"]},
        "b": {"below": "BPL, s = 0.5", "each": [1, 0]},
    }
    stated = Claim(
        "a",
        "b",
        "c",
        "tkde2019/fig3",
        numbers=numbers,
        predicate="all(e_low < e)",
        ours="{x}; {e:.1f}; {b}",
    )
    expected = "0.25, inf; 1.4 (1.3 to 1.6), 1.4 (1.3 to 1.6); 0.25, 0.1"
    assert judge(stated, RECORD).ours == expected


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository with one paper of two claims, whose notebook has just written `RECORD`."""
    (tmp_path / "Snakefile").touch()
    one = {
        "id": "one",
        "place": "Fig. 3",
        "statement": "a | b",
        "record": "tkde2019/fig3",
        "quick": True,
    }
    both = [
        one | {"predicate": "epsilon < 1", "ours": "{epsilon:.2f}"},
        {**one, "id": "two", "quick": False},
    ]
    both[1] |= {"predicate": "horizon == 10", "erratum": "errata.md#one"}
    page = {"title": "T", "introduction": "I", "sections": [{"title": "S", "claims": both}]}
    for name in ("docs/claims", "figures/tkde2019", "build/figures/tkde2019"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "docs/claims/tkde2019.yaml").write_text(yaml.safe_dump(page))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TPLREPRO_FIGURES", raising=False)
    return tmp_path


def write(path, **facts):
    path.write_text(json.dumps(RECORD | facts))


def shown(repository, **facts):
    write(repository / "build/figures/tkde2019/fig3.json", **facts)
    lines = claims.verdicts("tkde2019/fig3")._repr_markdown_().splitlines()
    return [re.split(r"(?<!\\) \| ", line.strip("| ")) for line in lines[2:]]


def test_a_notebook_shows_its_verdicts_at_the_papers_values_alone(repository):
    write(repository / "figures/tkde2019/fig3.json")
    unjudged = "Not judged at these parameters. Published verdict: "
    first, second = shown(repository)
    assert first == [
        "Fig. 3: a \\| b",
        "0.10",
        "reproduced ([claim](../../docs/claims/tkde2019.md#one))",
    ]
    links = "[claim](../../docs/claims/tkde2019.md#two), [erratum](../../docs/errata.md#one)"
    assert second[-1] == f"reproduced with an erratum ({links})"
    quick = [cells[-1] for cells in shown(repository, profile="quick")]
    assert quick == [first[-1], unjudged + second[-1]]
    changed = [
        cells[1:] for cells in shown(repository, profile="interactive", parameters={"epsilon": 2})
    ]
    assert changed[0] == ["2.00", unjudged + first[-1]]
    assert changed[1][1] == unjudged + second[-1]
    (repository / "figures/tkde2019/fig3.png").touch()
    link = "[figures/tkde2019/fig3.png](../../figures/tkde2019/fig3.png)"
    assert shown(repository)[-1] == [f"The published figure: {link}"]


def test_a_notebook_run_by_hand_at_the_values_of_a_profile_counts_as_such(repository):
    assert "Not judged" in shown(repository, profile="interactive")[0][-1]
    cell = {
        "source": ["# Title\n", "epsilon = 0.3\n", "horizon = 10"],
        "metadata": {"tags": ["parameters"]},
    }
    (repository / "notebooks/tkde2019").mkdir(parents=True)
    (repository / "notebooks/tkde2019/fig3.ipynb").write_text(
        json.dumps({"cells": [{"metadata": {}}, cell]})
    )
    write(repository / "figures/tkde2019/fig3.json")
    published = {"epsilon": 0.1, "horizon": 10}
    for epsilon, words in (
        (0.1, ("repro", "repro")),
        (0.3, ("repro", "Not")),
        (0.2, ("Not", "Not")),
    ):
        rows = shown(repository, profile="interactive", parameters=published | {"epsilon": epsilon})
        assert [row[-1].startswith(word) for row, word in zip(rows, words, strict=True)] == [
            True,
            True,
        ], epsilon


def test_only_the_notebook_that_saves_a_record_says_which_values_are_of_the_quick_profile(
    repository,
):
    source = "epsilon: float = 0.3\nhorizon: int = 10"
    cell = {"source": [source], "metadata": {"tags": ["parameters"]}}
    folder = repository / "notebooks/tkde2019"
    folder.mkdir(parents=True)
    (folder / "other.ipynb").write_text(json.dumps({"cells": [cell]}))

    def judged(epsilon):
        values = {"epsilon": epsilon, "horizon": 10}
        row = shown(repository, profile="interactive", parameters=values)[0]
        return "Not judged" not in row[-1]

    assert not judged(0.3)  # the defaults of another notebook
    (repository / "config").mkdir()
    entries = repository / "config/notebooks.yaml"
    entries.write_text("tkde2019/fig3: {notebook: tkde2019/other}\n")
    assert judged(0.3)
    entries.write_text("tkde2019/fig3: {notebook: tkde2019/other, quick: {epsilon: 0.4}}\n")
    assert [judged(epsilon) for epsilon in (0.3, 0.4)] == [False, True]


def test_a_notebook_never_fails_over_a_claim(repository):
    assert "fails: NameError" in shown(repository, parameters={})[0][-1]
    assert "Not judged" in shown(repository, profile="interactive", parameters={})[0][-1]
    assert "Published verdict: none" in shown(repository, profile="quick")[1][-1]
    (repository / "docs/claims/tkde2019.yaml").unlink()
    assert shown(repository) == []


PAPERS = sorted((ROOT / "docs" / "claims").glob("*.yaml"))


@pytest.mark.parametrize("path", PAPERS, ids=lambda path: path.stem)
def test_claims_name_tests_and_errata_that_exist_and_type_no_number_of_ours(path):
    """Settings may be typed: s = 0.05."""
    for stated in claims.claims_of(claims.read_claims(path)):
        for test in stated.tests:
            file, _, name = test.partition("::")
            assert f"def {name.partition('[')[0]}(" in (ROOT / file).read_text(), stated.id
        if stated.erratum:
            file, _, anchor = stated.erratum.partition("#")
            assert f'<a id="{anchor}"></a>' in (ROOT / "docs" / file).read_text(), stated.id
        assert (
            not re.search(r"(?<!= )\b\d+\.\d", re.sub(r"\{.*?\}", "", stated.ours)) or stated.test
        ), stated.id
        assert stated.record is None or stated.record.startswith(
            ("datasets/", "explore/", path.stem)
        )
