"""The claims pages say what the published records say, and the committed notebooks what the pages say."""

import json
import re
import shutil

import nbformat
import pytest
import yaml

from tplrepro.claims import KINDS, claims_of, read_claims
from workflow.claims import OPEN, render
from workflow.configuration import ROOT, owner_of, read_notebooks

NOTEBOOKS = read_notebooks()
STATED = [claim for path in sorted((ROOT / "docs" / "claims").glob("*.yaml")) for claim in claims_of(read_claims(path))]


def test_the_committed_pages_are_what_make_claims_renders():
    pages, problems = render()
    for name, text in pages.items():
        assert (ROOT / "docs" / name).read_text() == text, "run make claims"
    published = [json.loads(path.read_text()) for path in (ROOT / "figures").rglob("*.json")]
    if all(record["profile"] == "paper" for record in published):
        assert problems == []


def outputs(name):
    """What the committed notebook shows, as Markdown, by the claims' ids."""
    notebook = nbformat.read(NOTEBOOKS[name].path(), as_version=4)
    shown = (out.get("data", {}).get("text/markdown", "") for cell in notebook.cells for out in cell.get("outputs", ()))
    lines = [line for text in shown for line in text.splitlines()]
    return {re.search(r"docs/claims/\w+\.md#([\w-]+)", line)[1]: line for line in lines if "docs/claims/" in line}


RECORDS = sorted({claim.record for claim in STATED if claim.record})


@pytest.mark.parametrize("record", RECORDS)
def test_the_notebook_shows_each_claim_and_judges_those_that_mean_something_at_its_size_as_the_page_does(record):
    """nbval compares what the notebooks show with a new run, so this holds for today's code."""
    owner = owner_of(record, NOTEBOOKS)
    if NOTEBOOKS[owner].notebook != owner:
        pytest.skip("committed with the values of another figure")
    shown, pages = outputs(owner), render()[0]
    page = pages[f"claims/{record.partition('/')[0]}.md"]
    for claim in (claim for claim in STATED if claim.record == record):
        verdict = shown[claim.id].rsplit(" | ", 1)[1]
        if not claim.quick:
            assert verdict.startswith("judged at the paper's values"), claim.id
            continue
        (kind,) = [kind for kind in sorted(KINDS, key=len)[::-1] if verdict.startswith(kind)][:1] or [verdict]
        assert kind in KINDS, claim.id
        row = next(line for line in page.splitlines() if f'id="{claim.id}"' in line)
        assert re.search(rf" \| ({re.escape(kind)}|{OPEN})", row), f"{claim.id}: {kind} at the quick profile's size"


@pytest.fixture
def repository(tmp_path):
    """A repository with one paper and one notebook, and its record of the paper profile."""
    for folder in ("config", "notebooks"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    facts = {"place": "Fig. 3", "statement": "it is x", "record": "tkde2019/fig3", "numbers": {"x": "x"}}
    facts |= {"predicate": "x == 1", "ours": "{x}"}
    claims = [facts | {"id": "one"}, facts | {"id": "two", "quick": True, "predicate": "x != 1", "why": "x is {x}"}]
    content = {"title": "T", "introduction": "I", "sections": [{"title": "S", "text": "Some.", "claims": claims}]}
    (tmp_path / "docs/claims").mkdir(parents=True)
    (tmp_path / "docs/claims/tkde2019.yaml").write_text(yaml.safe_dump(content))
    return tmp_path


def publish(repository, folder="figures", **facts):
    path = repository / folder / "tkde2019/fig3.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    record = {"name": "tkde2019/fig3", "profile": "paper", "data": "none", "parameters": {}, "results": {"x": 1}}
    path.write_text(json.dumps(record | {"commit": {"id": "c", "modified": False}} | facts))


def test_a_page_has_our_numbers_verdicts_and_their_counts(repository):
    publish(repository)
    pages, problems = render(root=repository)
    assert problems == []
    assert pages["claims/tkde2019.md"] == (
        "# Claims of T\n\nI\n\n**Summary.** Of 2 statements: 1 reproduced, 1 not reproduced.\n\n## S\n\nSome.\n\n"
        "| the paper | ours | decided by | verdict |\n| --- | --- | --- | --- |\n"
        '| <a id="one"></a>Fig. 3: it is x | 1 | [tkde2019/fig3](../../notebooks/tkde2019/fig3.ipynb) | reproduced |\n'
        '| <a id="two"></a>Fig. 3: it is x | 1 | [tkde2019/fig3](../../notebooks/tkde2019/fig3.ipynb) '
        "| not reproduced: x is 1 |\n"
    )
    assert pages["claims.md"].endswith(
        "| [T](claims/tkde2019.md) | 2 | 1 |  |  | 1 |  |\n| all | 2 | 1 | 0 | 0 | 1 | 0 |\n"
    )


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        (None, "tkde2019: one: must have a record tkde2019/fig3.json, found none; publish the paper profile's"),
        ({"profile": "quick"}, "must be of the profile paper, got quick; run make figures PROFILE=paper and publish"),
        ({"commit": {"id": "c", "modified": True}}, "is from modified code; commit and run it again"),
        ({"commit": None}, "is from modified code"),
        ({"data": "synthetic"}, "is from synthetic data; set TPLREPRO_DATA, run again"),
        ({"results": {}}, "tkde2019/fig3 has no 'x' in its results; record it"),
        ({"results": {"x": 2}}, "one: does not hold (2), and no cause is given; say why"),
    ],
)
def test_a_claim_without_a_record_that_counts_has_no_verdict(repository, facts, message):
    if facts is not None:
        publish(repository, **facts)
    pages, problems = render(root=repository)
    assert message in problems[0]
    assert len(problems) == 2
    assert "Of 2 statements: 2 with no verdict yet." in pages["claims/tkde2019.md"]


def test_a_trial_judges_a_quick_batch_by_what_means_something_there(repository):
    publish(repository, "build", profile="quick", commit={"id": "c", "modified": True})
    pages, problems = render(repository / "build", "quick", repository)
    assert problems == []
    assert "Of 2 statements: 1 not reproduced, 1 with no verdict yet." in pages["claims/tkde2019.md"]
