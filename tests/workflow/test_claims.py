"""The claims pages say what the published records say, and the committed notebooks what the pages say."""

import json
import os
import re
import shutil
from unittest import mock

import jsonschema
import nbformat
import pytest
import yaml

from experiments.claims import KINDS, claims_of, read_claims
from workflow.claims import OPEN, render
from workflow.configuration import ROOT, owner_of, read_notebooks, read_profile
from workflow.kernel_environment import kernel_environment
from workflow.run_notebook import execute

NOTEBOOKS, QUICK = read_notebooks(), read_profile("quick")
STATED = [claim for path in sorted((ROOT / "docs" / "claims").glob("*.yaml")) for claim in claims_of(read_claims(path))]


def test_the_committed_pages_are_what_make_claims_renders():
    """The tests that decide claims run beside this one, so here they count as passed."""
    pages, problems = render(outcomes={test: "passed" for claim in STATED for test in claim.tests})
    for name, text in pages.items():
        assert (ROOT / name).read_text() == text, f"{name}: run make claims"
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
    if QUICK.notebooks[owner]:
        pytest.skip("committed with the values of another figure; the next test runs it")
    shown = outputs(owner)
    page = (ROOT / "docs/claims" / f"{record.partition('/')[0]}.md").read_text()
    for claim in (claim for claim in STATED if claim.record == record):
        verdict = shown[claim.id].rsplit(" | ", 1)[1]
        if not claim.quick:
            assert re.match("judged at the paper(?: profile)?'s values", verdict), claim.id
            continue
        (kind,) = [kind for kind in sorted(KINDS, key=len)[::-1] if verdict.startswith(kind)][:1] or [verdict]
        assert kind in KINDS, claim.id
        row = next(line for line in page.splitlines() if f'id="{claim.id}"' in line)
        assert re.search(rf" \| ({re.escape(kind)}|{OPEN})", row), f"{claim.id}: {kind} at the quick profile's size"


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, given in QUICK.notebooks.items() if given])
def test_what_a_notebook_makes_with_other_values_than_its_own_comes_to_the_published_verdicts(name, tmp_path):
    environment = kernel_environment(tmp_path, "quick", "pytest", real_data=False)
    with mock.patch.dict(os.environ, environment, clear=True):
        failure = execute(NOTEBOOKS[name].path(), tmp_path / "executed.ipynb", QUICK.notebooks[name], QUICK)
    assert failure is None
    problems = [problem for problem in render(tmp_path, "quick")[1] if "found none" not in problem]
    assert problems == []
    assert any(claim.quick for claim in STATED if claim.record == name)


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
    return path


def test_a_page_has_our_numbers_verdicts_and_their_counts(repository):
    publish(repository)
    pages, problems = render(root=repository)
    assert problems == []
    assert pages["docs/claims/tkde2019.md"] == (
        "# Claims of T\n\nI\n\n**Summary.** Of 2 statements: 1 reproduced, 1 not reproduced.\n\n## S\n\nSome.\n\n"
        "| the paper | ours | decided by | verdict |\n| --- | --- | --- | --- |\n"
        '| <a id="one"></a>Fig. 3: it is x | 1 | [tkde2019/fig3](../../notebooks/tkde2019/fig3.ipynb) | reproduced |\n'
        '| <a id="two"></a>Fig. 3: it is x | 1 | [tkde2019/fig3](../../notebooks/tkde2019/fig3.ipynb) '
        "| not reproduced: x is 1 |\n"
    )
    assert (
        "**Of the 2 statements of the papers that we found: 1 reproduced, 1 not reproduced.**"
        in pages["docs/claims.md"]
    )
    counts = "| 2 | 1 |  |  | 1 |  |\n"
    shared = f"| **the papers, shared statements once** {counts}"
    assert pages["docs/claims.md"].endswith(f"| [T](claims/tkde2019.md) {counts}{shared}")


def test_shared_statements_count_once_with_one_verdict_and_ours_apart(repository):
    publish(repository)
    change(repository, lambda claims: claims[0].update(about="ours"))
    other = yaml.safe_load((repository / "docs/claims/tkde2019.yaml").read_text())
    two = other["sections"][0]["claims"][1]
    other["sections"][0]["claims"] = [two | {"id": "again", "same_as": "tkde2019#two"}]
    (repository / "docs/claims/icde2017.yaml").write_text(yaml.safe_dump(other))
    pages, problems = render(root=repository)
    assert problems == []
    lines = pages["docs/claims.md"].splitlines()
    assert lines[2] == "**Of the 1 statements of the papers that we found: 1 not reproduced.**"
    assert [line.rpartition("**")[2] for line in lines[-2:]] == [
        " | 1 |  |  |  | 1 |  |",
        "| our own results on the papers' pages | 1 | 1 |  |  |  |  |",
    ]
    page = pages["docs/claims/tkde2019.md"]
    assert "Of 1 statements: 1 not reproduced. Of 1 about our own methods: 1 reproduced." in page
    assert '<a id="one"></a>Fig. 3 (ours): it is x' in page
    two.update(id="again", same_as="tkde2019#one")
    three = two | {"id": "third", "same_as": "tkde2019#none"}
    other["sections"][0]["claims"] = [two, three]
    (repository / "docs/claims/icde2017.yaml").write_text(yaml.safe_dump(other))
    assert render(root=repository)[1] == [
        "icde2017: again: not reproduced here, reproduced as tkde2019#one; look which is right",
        "icde2017: third: same_as must name a claim, found 'tkde2019#none'; correct it",
    ]


def test_a_notebook_that_reads_no_data_set_may_be_synthetic(repository):
    publish(repository, data="synthetic")
    assert render(root=repository)[1] == []


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        (None, "tkde2019: one: must have a record tkde2019/fig3.json, found none; publish the paper profile's"),
        ({"profile": "quick"}, "must be of the profile paper, found quick; run make figures PROFILE=paper and publish"),
        ({"commit": {"id": "c", "modified": True}}, "is from modified code; commit and run it again"),
        ({"commit": None}, "is from modified code"),
        ({"data": "synthetic"}, "is from synthetic data; set TPLREPRO_DATA, run again"),
        ({"data": "synthetic in part: Kosarak"}, "is from synthetic data; set TPLREPRO_DATA, run again"),
        ({"results": {}}, "tkde2019/fig3 has no 'x' in its results; record it"),
        ({"results": {"x": 2}}, "one: does not hold (2), and no cause is given; say why"),
    ],
)
def test_a_claim_without_a_record_that_counts_has_no_verdict(repository, facts, message):
    listed = repository / "config/notebooks.yaml"
    listed.write_text(listed.read_text().replace("tkde2019/fig3:\n", "tkde2019/fig3: {data: [geolife]}\n"))
    if facts is not None:
        publish(repository, **facts)
    pages, problems = render(root=repository)
    assert message in problems[0]
    assert len(problems) == 2
    assert "Of 2 statements: 2 with no verdict yet." in pages["docs/claims/tkde2019.md"]


def test_a_trial_judges_a_quick_batch_by_what_means_something_there(repository):
    publish(repository, "build", profile="quick", commit={"id": "c", "modified": True})
    pages, problems = render(repository / "build", "quick", repository)
    assert problems == []
    assert "Of 2 statements: 1 not reproduced, 1 with no verdict yet." in pages["docs/claims/tkde2019.md"]


def test_a_trial_says_where_its_verdict_is_not_the_published_one(repository):
    change(repository, lambda claims: claims[1].update(predicate="x > 2", part="p", part_if="x > 1"))
    publish(repository, results={"x": 2})
    publish(repository, "build", profile="quick")
    assert render(repository / "build", "quick", repository)[1] == [
        "tkde2019: two: not reproduced here (1), published as in part (2); look which is right, or drop quick"
    ]


COST = {"seconds": 90.0, "peak_megabytes": 512, "machine": "Some, 2 cores", "time_utc": "2026-01-01T10:00:00Z"}


@pytest.fixture
def artifact(repository):
    """The repository with what is rendered beside the claims pages."""
    for name in ("ARTIFACT.md", "REPRODUCING.md", "CITATION.cff"):
        shutil.copy(ROOT / name, repository / name)
    note_costs(repository, paper={"tkde2019/fig3": COST, "tkde2019/fig6a": COST})
    facts = {"id": "three", "place": "Theorem", "statement": "it holds", "ours": "tried"}
    change(repository, lambda claims: claims.append(facts | {"test": ["tests/a.py::b", "tests/a.py::c"]}))
    change(repository, lambda claims: claims.append(facts | {"id": "four", "why": "unknown"}))
    return repository


PASSED = {"tests/a.py::b": "passed", "tests/a.py::c": "passed"}


def note_costs(repository, **costs):
    (repository / "docs/costs.json").write_text(json.dumps(costs))


def change(repository, edit):
    path = repository / "docs/claims/tkde2019.yaml"
    content = yaml.safe_load(path.read_text())
    edit(content["sections"][0]["claims"])
    path.write_text(yaml.safe_dump(content))


def rendered(repository, name):
    """What stands between the marks, line by line."""
    text = render(root=repository, outcomes=PASSED)[0][name]
    (region,) = re.findall(r"<!-- rendered by make claims -->\n\n(.*)\n<!-- end of what is rendered -->", text, re.S)
    return text, region.splitlines()


def test_the_artefacts_table_has_command_number_tolerance_and_minutes_of_what_a_record_or_a_test_decides(artifact):
    publish(artifact)
    text, (title, _, _, _, one, two, three) = rendered(artifact, "ARTIFACT.md")
    assert title.endswith("(TKDE 2019)")
    run = "`make figures PROFILE=paper ONLY=tkde2019/fig3`"
    start = "[Fig. 3](docs/claims/tkde2019.md#one): it is x"
    assert one == f"| {start} | {run} | 1 | reproduced | digits shown | 1.5 |"
    assert two.endswith(f" | {run} | 1 | not reproduced | digits shown | 1.5 |")
    tests = "`.venv/bin/pytest -p no:nbval tests/a.py::b tests/a.py::c`"
    assert three.endswith(f"#three): it holds | {tests} | tried | reproduced | the test passes |  |")
    (artifact / "ARTIFACT.md").write_text(text)
    assert render(root=artifact, outcomes=PASSED)[0]["ARTIFACT.md"] == text
    publish(artifact, results={"x": {"value": 1, "low": 0.5, "high": 2}})
    assert "| 1 (0.5 to 2) | reproduced | its interval |" in rendered(artifact, "ARTIFACT.md")[0]
    publish(artifact, profile="quick")
    assert rendered(artifact, "ARTIFACT.md")[1][4] == f"| {start} | {run} |  |  | no verdict yet | 1.5 |"
    change(artifact, lambda claims: claims[0].update(record="tkde2019/fig6a"))
    publish(artifact).rename(artifact / "figures/tkde2019/fig6a.json")
    assert "| 1 | reproduced | the verdict alone | 1.5 |" in rendered(artifact, "ARTIFACT.md")[1][4]


def test_what_the_profiles_take_comes_from_the_noted_costs(artifact):
    note_costs(artifact)
    assert rendered(artifact, "REPRODUCING.md")[1][3].startswith("| paper | not measured yet |")
    later = COST | {"seconds": 60.0, "peak_megabytes": 700, "time_utc": "2026-01-01T10:03:30Z"}
    quick = {"tkde2019/fig3": COST | {"seconds": 2.4, "peak_megabytes": 300}}
    note_costs(artifact, quick=quick, paper={"tkde2019/fig3": COST, "tkde2019/fig4": later})
    lines = rendered(artifact, "REPRODUCING.md")[1]
    assert lines[2:4] == ["| quick | 1 | 0 | 0 | 300 | Some, 2 cores |", "| paper | 2 | 5 | 2 | 700 | Some, 2 cores |"]
    assert lines[7:9] == ["| tkde2019/fig3 | 0.1 | 300 | 1.5 | 512 |", "| tkde2019/fig4 |  |  | 1.0 | 700 |"]
    assert len(lines) == 7 + len(NOTEBOOKS)


# The author's part of the CODECHECK configuration file, version 1.0, written from its specification.
AUTHOR = {"type": "object", "required": ["name"], "properties": {"ORCID": {"pattern": r"^(\d{4}-){3}\d{3}[\dX]$"}}}
FILE = {"type": "object", "required": ["file"], "properties": {"file": {"pattern": r"^[^/]"}}}
PAPER = {"type": "object", "required": ["title", "authors", "reference"]}
CODECHECK = {
    "type": "object",
    "required": ["version", "manifest", "paper"],
    "properties": {
        "version": {"const": "https://codecheck.org.uk/spec/config/1.0/"},
        "manifest": {"type": "array", "minItems": 1, "items": FILE},
        "paper": PAPER | {"properties": {"authors": {"type": "array", "minItems": 1, "items": AUTHOR}}},
    },
}


def test_the_codecheck_manifest_is_valid_and_has_each_published_figure_once():
    text = (ROOT / "codecheck.yml").read_text(encoding="utf-8")
    assert text.startswith("---\n")
    content = yaml.safe_load(text)
    jsonschema.validate(content, CODECHECK)
    files = [ROOT / item["file"] for item in content["manifest"]]
    assert [path for path in files if not path.is_file()] == []
    records = {path.with_suffix("") for path in (ROOT / "figures").rglob("*.json")}
    assert sorted(path.with_suffix("") for path in files) == sorted(records)
    assert content["paper"]["title"] == yaml.safe_load((ROOT / "CITATION.cff").read_text())["title"]


def test_a_release_fills_in_the_codecheck_reference_and_the_orcid(artifact):
    publish(artifact)
    citation = yaml.safe_load((artifact / "CITATION.cff").read_text())
    person = {"given-names": "Jo", "family-names": "Poe", "orcid": "https://orcid.org/0000-0002-1825-0097"}
    citation |= {"authors": [person], "doi": "10.5281/zenodo.1", "repository-code": "https://example.org/r"}
    (artifact / "CITATION.cff").write_text(yaml.safe_dump(citation))
    content = yaml.safe_load(render(root=artifact, outcomes=PASSED)[0]["codecheck.yml"])
    jsonschema.validate(content, CODECHECK)
    assert content["paper"]["authors"] == [{"name": "Jo Poe", "ORCID": "0000-0002-1825-0097"}]
    assert content["paper"]["reference"] == "https://doi.org/10.5281/zenodo.1"
    assert content["repository"] == "https://example.org/r"
    (item,) = content["manifest"]
    assert item["file"] == "figures/tkde2019/fig3.json"
    assert item["comment"].startswith("tkde2019/fig3: Fig. 3 of Cao et al. (TKDE 2019)")
