"""The claims pages say what the published records say, and the committed notebooks what the pages
say."""

import json
import os
import re
import shutil
from unittest import mock

import nbformat
import pytest
import yaml

from experiments.claims import ClaimError, Kind, claims_of
from workflow.batch.run_notebook import execute, kernel_environment
from workflow.configuration import ROOT, ConfigurationError, owner_of, read_notebooks, read_profile
from workflow.publishing.claims import OPEN, render
from workflow.publishing.code_map import find_code
from workflow.publishing.judging import outcomes_of, read_pages
from workflow.publishing.number_tables import link_tables, render_table
from workflow.publishing.parameters_of_papers import render_parameters

NOTEBOOKS = read_notebooks()
#: What the quick profile gives to notebooks beside their own parameters.
QUICK = {name: entry.parameters["quick"] for name, entry in NOTEBOOKS.items()}
STATED = [claim for content in read_pages().values() for claim in claims_of(content)]


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
    shown = [
        output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", ())
    ]
    lines = [line for data in shown for line in data.get("text/markdown", "").splitlines()]
    links = [(re.search(r"docs/claims/\w+\.md#([\w-]+)", line), line) for line in lines]
    return {link[1]: line for link, line in links if link}


UNJUDGED = "Not judged at these parameters. Published verdict: "


@pytest.mark.parametrize("record", sorted({claim.record for claim in STATED if claim.record}))
def test_a_notebook_shows_each_claim_and_the_verdicts_of_the_page_on_those_marked_quick(record):
    """nbval compares what the notebooks show with a new run, so this holds for today's code."""
    owner = owner_of(record, NOTEBOOKS)
    if QUICK[owner]:
        pytest.skip("committed with the values of another figure; the next test runs it")
    shown = outputs(owner)
    page = (ROOT / "docs/claims" / f"{record.partition('/')[0]}.md").read_text()
    for claim in (claim for claim in STATED if claim.record == record):
        verdict = shown[claim.id].rsplit(" | ", 1)[1]
        verdict = verdict.removeprefix("" if claim.quick else UNJUDGED)
        (kind,) = [kind for kind in sorted(Kind, key=len)[::-1] if verdict.startswith(kind)][
            :1
        ] or [verdict]
        assert kind in list(Kind), (claim.id, verdict)
        row = next(line for line in page.splitlines() if f'id="{claim.id}"' in line)
        unsettled = OPEN if claim.quick else re.escape(kind)
        assert re.search(rf" \| ({re.escape(kind)}|{unsettled})", row), (
            f"{claim.id}: {kind} in the notebook"
        )


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, given in QUICK.items() if given])
def test_quick_parameters_of_a_notebook_lead_to_the_published_verdicts(name, tmp_path):
    environment = kernel_environment(tmp_path, "quick", "pytest", real_data=False)
    source, target = NOTEBOOKS[name].path(), tmp_path / "executed.ipynb"
    with mock.patch.dict(os.environ, environment, clear=True):
        failure = execute(source, target, QUICK[name], read_profile("quick"))
    assert failure is None
    assert [
        problem for problem in render(tmp_path, "quick")[1] if "found none" not in problem
    ] == []
    assert any(claim.quick for claim in STATED if claim.record == name)


TESTS = ("tests/a.py::b", "tests/a.py::c")
MARKS = ("<!-- rendered by make claims -->\n", "\n<!-- end of what is rendered -->")


class Repository:
    """One paper with two claims by one record, one by two tests, and one that nothing decides."""

    def __init__(self, root):
        self.root = root
        for folder in ("config", "notebooks"):
            shutil.copytree(ROOT / folder, root / folder)
        (root / "docs/claims").mkdir(parents=True)
        for name in ("ARTIFACT.md", "REPRODUCING.md", "codecheck.yml", "docs/claims.md"):
            shutil.copy(ROOT / name, root / name)
        (root / "docs/map.yaml").write_text("{}")
        facts = {
            "place": "Fig. 3",
            "statement": "it is x",
            "record": "tkde2019/fig3",
            "numbers": {"x": "x"},
        }
        facts |= {"predicate": "x == 1", "ours": "{x}"}
        others = {"place": "Theorem", "statement": "it holds", "ours": "tried"}
        self.claims = {
            "one": facts,
            "two": facts | {"quick": True, "predicate": "x != 1", "why": "x is {x}"},
            "three": others | {"test": list(TESTS)},
            "four": others | {"why": "unknown"},
        }
        self.write()

    def write(self, page="tkde2019"):
        claims = [{"id": name, **facts} for name, facts in self.claims.items()]
        content = {
            "title": "T",
            "introduction": "I",
            "sections": [{"title": "S", "text": "Some.", "claims": claims}],
        }
        (self.root / f"docs/claims/{page}.yaml").write_text(yaml.safe_dump(content))

    def publish(self, folder="figures", name="tkde2019/fig3", **facts):
        path = self.root / folder / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        record = {
            "name": name,
            "profile": "paper",
            "data": "none",
            "parameters": {},
            "results": {"x": 1},
        }
        record |= {
            "machine": {"processor": "Some", "cores": 2},
            "cost": {"cpu_seconds": 90.0, "peak_megabytes": 512},
        }
        path.write_text(json.dumps(record | {"commit": {"id": "c", "modified": False}} | facts))

    def render(self, *trial):
        return render(*(trial or (None, "paper")), self.root, dict.fromkeys(TESTS, "passed"))

    def rendered(self, name):
        """The lines between a page's marks."""
        return self.render()[0][name].partition(MARKS[0])[2].partition(MARKS[1])[0].splitlines()[1:]


@pytest.fixture
def repository(tmp_path):
    return Repository(tmp_path)


def test_a_page_has_our_numbers_verdicts_and_their_counts(repository):
    repository.publish()
    pages, problems = repository.render()
    assert problems == []
    counts = "2 reproduced, 1 not reproduced, 1 not checkable here"
    by = "[tkde2019/fig3](../../notebooks/tkde2019/fig3.ipynb)"
    tests = '[a.py](../../tests/a.py "b"), [a.py](../../tests/a.py "c")'
    assert pages["docs/claims/tkde2019.md"] == (
        f"# Claims of T\n\nI\n\n**Summary.** Of 4 statements: {counts}.\n\n## S\n\nSome.\n\n"
        "| row | the paper | ours | decided by | verdict |\n| --- | --- | --- | --- | --- |\n"
        f'| 1 | <a id="one"></a>Fig. 3: it is x | 1 | {by} | reproduced |\n'
        f'| 2 | <a id="two"></a>Fig. 3: it is x | 1 | {by} | not reproduced: x is 1 |\n'
        f'| 3 | <a id="three"></a>Theorem: it holds | tried | {tests} | reproduced |\n'
        '| 4 | <a id="four"></a>Theorem: it holds | tried |  | not checkable here: unknown |\n'
    )
    headline, *_, of_paper, of_papers = repository.rendered("docs/claims.md")
    assert headline == f"**Of the 4 statements of the papers that we found: {counts}.**"
    assert of_paper == "| [T](claims/tkde2019.md) | 4 | 2 | 0 | 0 | 0 | 1 | 1 |"
    assert of_papers == "| **the papers, shared statements once** | 4 | 2 | 0 | 0 | 0 | 1 | 1 |"


def test_what_decides_all_of_several_rows_stands_above_them_and_our_own_pages_are_not_ours(
    repository,
):
    """On a page of our own notebooks every statement is ours."""
    repository.publish(name="explore/streams")
    facts = repository.claims["one"] | {"record": "explore/streams"}
    del facts["place"]
    repository.claims = {"one": facts, "two": facts | {"about": "ours", "place": "panel (a)"}}
    repository.write("explore")
    by = "[explore/streams](../../notebooks/explore/streams.ipynb)"
    assert repository.render()[0]["docs/claims/explore.md"] == (
        "# Claims of T\n\nI\n\n**Summary.** Of 2 statements: 2 reproduced.\n\n## S\n\nSome.\n\n"
        f"All are decided by {by}.\n\n"
        "| row | statement | ours | verdict |\n| --- | --- | --- | --- |\n"
        '| 1 | <a id="one"></a>it is x | 1 | reproduced |\n'
        '| 2 | <a id="two"></a>panel (a): it is x | 1 | reproduced |\n'
    )
    repository.claims = {name: {"statement": "x", "why": "unknown"} for name in ("one", "two")}
    repository.write("explore")
    page = repository.render()[0]["docs/claims/explore.md"]
    assert page.partition("Some.\n\n")[2].startswith("| row | statement | ours | verdict |\n")


def test_why_no_single_number_decides_is_a_sentence_of_its_own_after_the_verdict(repository):
    repository.publish()
    said = {"note": "For x.", "invariant": "Half of x is above 0, too."}
    repository.claims = {"one": repository.claims["one"] | said}
    repository.write()
    page = repository.render()[0]["docs/claims/tkde2019.md"]
    assert "| reproduced. For x. Half of x is above 0, too. |" in page


def test_a_result_that_a_table_shows_is_a_link_and_what_the_paper_prints_stays(repository):
    repository.publish()
    repository.claims = {"one": repository.claims["one"] | {"printed": {"x": "1 ± 1"}}}
    repository.write()
    path = repository.root / "docs/claims/tkde2019.yaml"
    content = yaml.safe_load(path.read_text())
    table = {"id": "t", "title": "Some", "record": "tkde2019/fig3", "numbers": {"x": "x"}}
    table |= {"claims": ["one"], "columns": {"of": ["all"]}, "rows": {"x": "{x}"}}
    content["sections"][0]["tables"] = [table]
    path.write_text(yaml.safe_dump(content))
    page = repository.render()[0]["docs/claims/tkde2019.md"]
    assert " | [Some](#t) (printed: 1 ± 1) | " in page
    assert page.endswith("Some (tkde2019/fig3):\n\n| of | all |\n| --- | --- |\n| x | 1 |\n")
    table["claims"] = ["no"]
    path.write_text(yaml.safe_dump(content))
    with pytest.raises(ClaimError, match="T: tables must name claims of their page, found no;"):
        repository.render()


def test_shared_statements_count_once_with_one_verdict_and_ours_apart(repository):
    repository.publish()
    one, two = repository.claims["one"] | {"about": "ours"}, repository.claims["two"]
    repository.claims = {"one": one, "two": two}
    repository.write()
    repository.claims = {"again": two | {"same_as": "tkde2019#two"}}
    repository.write("icde2017")
    pages, problems = repository.render()
    assert problems == []
    lines = repository.rendered("docs/claims.md")
    assert lines[0] == "**Of the 1 statements of the papers that we found: 1 not reproduced.**"
    assert lines[-2].endswith("once** | 1 | 0 | 0 | 0 | 0 | 1 | 0 |")
    assert lines[-1] == "| our own results on the papers' pages | 1 | 1 | 0 | 0 | 0 | 0 | 0 |"
    page = pages["docs/claims/tkde2019.md"]
    assert "Of 1 statements: 1 not reproduced. Of 1 about our own methods: 1 reproduced." in page
    assert page.endswith(
        "## Our own methods\n\n| row | our statement | ours | decided by | verdict |\n"
        "| --- | --- | --- | --- | --- |\n"
        '| 2 | <a id="one"></a>Fig. 3: it is x | 1 | '
        "[tkde2019/fig3](../../notebooks/tkde2019/fig3.ipynb) | reproduced |\n"
    )
    repository.claims = {
        "again": two | {"same_as": "tkde2019#one"},
        "third": two | {"same_as": "tkde2019#none"},
    }
    repository.write("icde2017")
    assert repository.render()[1] == [
        "icde2017: again: not reproduced here, reproduced as tkde2019#one; look which is right",
        "icde2017: third: same_as must name a claim, found 'tkde2019#none'; correct it",
    ]


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        (
            None,
            "tkde2019: one: must have a record tkde2019/fig3.json, found none; "
            "publish the paper profile's",
        ),
        (
            {"profile": "quick"},
            "must be of the profile paper, found quick; run make figures PROFILE=paper and publish",
        ),
        (
            {"commit": {"id": "c", "modified": True}},
            "is from modified code; commit and run it again",
        ),
        ({"commit": None}, "is from modified code"),
        ({"data": "synthetic"}, "is from synthetic data; set TPLREPRO_DATA, run again"),
        (
            {"data": "synthetic in part: Kosarak"},
            "is from synthetic data; set TPLREPRO_DATA, run again",
        ),
        ({"results": {}}, "tkde2019/fig3 has no 'x' in its results; record it"),
        ({"results": {"x": 2}}, "one: does not hold (2), and no cause is given; say why"),
    ],
)
def test_a_claim_without_a_record_that_counts_has_no_verdict(repository, facts, message):
    repository.publish(data="synthetic")  # in the place of no data set
    assert repository.render()[1] == []
    listed = repository.root / "config/notebooks.yaml"
    listed.write_text(
        listed.read_text().replace("tkde2019/fig3:\n", "tkde2019/fig3: {data: [geolife]}\n")
    )
    shutil.rmtree(repository.root / "figures")
    if facts is not None:
        repository.publish(**facts)
    pages, problems = repository.render()
    assert message in problems[0]
    assert len(problems) == 2
    counts = "Of 4 statements: 1 reproduced, 1 not checkable here, 2 with no verdict"
    assert counts in pages["docs/claims/tkde2019.md"]


def test_a_trial_judges_claims_marked_quick_and_names_verdicts_that_differ(repository):
    repository.publish("build", profile="quick", commit={"id": "c", "modified": True})
    pages, problems = repository.render(repository.root / "build", "quick")
    assert problems == []
    assert (
        "1 not reproduced, 1 not checkable here, 1 with no verdict yet."
        in pages["docs/claims/tkde2019.md"]
    )
    repository.claims["two"] |= {"predicate": "x > 2", "part": "p", "part_if": "x > 1"}
    repository.write()
    repository.publish(results={"x": 2})
    assert repository.render(repository.root / "build", "quick")[1] == [
        "tkde2019: two: not reproduced here (1), published as in part (2); "
        "look which is right, or drop quick"
    ]


def test_costs_of_the_published_batch_and_the_manifest_come_from_its_records(repository):
    repository.publish()
    repository.publish(name="tkde2019/fig4", cost={"cpu_seconds": 0.4, "peak_megabytes": 700})
    lines = repository.rendered("REPRODUCING.md")
    assert (
        lines[0]
        == "2 notebooks, 2 minutes of one processor, at most 700 MB; measured on Some, 2 cores."
    )
    assert lines[4:] == ["| tkde2019/fig3 | 1.5 | 512 |", "| tkde2019/fig4 | 0.1 | 700 |"]
    content = yaml.safe_load(repository.render()[0]["codecheck.yml"])
    assert [item["file"] for item in content["manifest"]] == [
        "figures/tkde2019/fig3.json",
        "figures/tkde2019/fig4.json",
    ]
    assert content["manifest"][0]["comment"].startswith(
        "tkde2019/fig3: Fig. 3 of Cao et al. (TKDE 2019)"
    )


def test_codecheck_names_what_its_specification_asks_for_and_each_published_figure_once():
    content = yaml.safe_load((ROOT / "codecheck.yml").read_text(encoding="utf-8"))
    assert content["version"] == "https://codecheck.org.uk/spec/config/1.0/"
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert content["paper"]["title"] == citation["title"]
    assert content["paper"]["authors"] == citation["authors"]
    assert content["paper"]["reference"] == citation.get(
        "doi", "unpublished; CITATION.cff lists the papers that it reproduces"
    )
    files = [ROOT / item["file"] for item in content["manifest"]]
    assert [path for path in files if not path.is_file()] == []
    records = {path.with_suffix("") for path in (ROOT / "figures").rglob("*.json")}
    assert sorted(path.with_suffix("") for path in files) == sorted(records)


OF_TESTS = """import pytest

@pytest.mark.parametrize("number", [1, 2])
def test_every_case(number):
    assert number < 3

@pytest.mark.slow
def test_slow():
    pass

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
OUTCOMES = {
    "every_case": "passed",
    "slow": "passed",
    "some_case_skipped": "skipped",
    "setup_fails": "failed",
}


def test_the_worst_case_of_a_deciding_test_counts_and_a_missing_test_has_no_outcome(tmp_path):
    (tmp_path / "tests").mkdir()
    settings = '[tool.pytest.ini_options]\nmarkers = ["slow"]\naddopts = ["-m", "no slow"]'
    (tmp_path / "pyproject.toml").write_text(settings)
    (tmp_path / "tests/test_some.py").write_text(OF_TESTS)
    (tmp_path / "tests/test_bad.py").write_text(
        "import no_such_module\n\ndef test_any():\n    pass\n"
    )
    expected = {f"tests/test_some.py::test_{name}": outcome for name, outcome in OUTCOMES.items()}
    assert outcomes_of([*expected], tmp_path) == expected
    for missing in (("some.py::test_not_there", "other.py::test_any"), ("bad.py::test_any",)):
        assert outcomes_of([f"tests/test_{name}" for name in missing], tmp_path) == {}
    assert outcomes_of([], tmp_path) == {}


@pytest.mark.parametrize(
    "path", ["tplrepro.leakage.not_there", "tplrepro.leakage.published.algorithm_0", "elsewhere"]
)
def test_the_map_names_existing_code_alone(path):
    with pytest.raises(ConfigurationError, match=f"found {path}; correct it"):
        find_code(path)


def test_the_map_names_existing_claims_alone(repository):
    """The page has the claims one to four."""
    repository.publish()
    path = repository.root / "docs/map.yaml"
    path.write_text("tkde2019: {Theorem 1: {claims: [one, five]}}")
    with pytest.raises(ConfigurationError, match=r"docs/claims/tkde2019\.yaml, found five"):
        repository.render()
    path.write_text("tkde2019: {Theorem 1: {claims: [one]}}")
    assert (
        "| Theorem 1 |  |  | [one](claims/tkde2019.md#one) |"
        in repository.render()[0]["docs/map.md"]
    )


def test_the_map_has_each_algorithm_with_its_code_notebooks_and_claims():
    """A reader with the paper beside it finds every algorithm by its number; Algorithm 4 of [5]
    stands in a test."""
    page = (ROOT / "docs/map.md").read_text()
    sections = re.split(r"^## ", page, flags=re.M)[1:]
    rows = [
        dict(re.findall(r"^\| Algorithm (\d) \| (.*) \|$", section, re.M)) for section in sections
    ]
    assert [len(of_paper) for of_paper in rows] == [8, 3, 2, 0, 4, 0]
    cells = {
        (paper, number): row.split(" | ")
        for paper, found in enumerate(rows, 1)
        for number, row in found.items()
    }
    assert [name for name, row in cells.items() if "" in map(str.strip, row)] == [(5, "4")]
    (row,) = re.findall(r"^\| Algorithm 7 .*$", page, re.M)
    assert (
        "`allocate_by_upper_bound` "
        "([tplrepro/allocation/published.py](../tplrepro/allocation/published.py))" in row
    )
    assert "[fig8](../notebooks/tkde2019/fig8.ipynb)" in row
    assert "[algorithm-7](claims/tkde2019.md#algorithm-7)" in row


def test_a_page_tells_where_its_parameters_differ_from_the_papers(tmp_path):
    """With the numbers of the record, not typed ones."""
    row = {"what": "draws", "paper": "not printed", "record": "p/fig1", "ours": "{draws} draws"}
    record = {"parameters": {"draws": 7}, "results": {"shares": [0.5, 0.25]}}
    (tmp_path / "p").mkdir()
    (tmp_path / "p/fig1.json").write_text(json.dumps(record))
    assert "| draws | not printed | 7 draws | p/fig1 |" in render_parameters([row], tmp_path)
    of_results = row | {"numbers": {"shares": "shares"}, "ours": "{100 * shares[-1]:.0f} %"}
    assert "| 25 % |" in render_parameters([of_results], tmp_path)


def test_each_run_below_a_papers_size_has_a_row_of_parameters():
    """config/notebooks.yaml marks them with "Below"."""
    text = (ROOT / "config/notebooks.yaml").read_text()
    below = re.findall(r"^([\w/]+):\n(?:  (?!paper).*\n)*?  # .*Below(?: |:)", text, re.M)
    named = {row["record"] for page in read_pages().values() for row in page.get("parameters", ())}
    assert len(below) >= 5
    assert set(below) <= named


def test_a_small_table_shows_recorded_numbers_and_names_a_row_of_another_length(tmp_path):
    record = {"parameters": {"epsilons": [0.5, 1.0]}, "results": {"cost": [3.14, 2.72], "one": [1]}}
    (tmp_path / "fig1.json").write_text(json.dumps(record))
    table = {
        "id": "table-costs",
        "title": "Costs",
        "record": "fig1",
        "claims": ["dear"],
        "numbers": {"cost": "cost", "one": "one"},
        "columns": {"ε": "epsilons"},
        "rows": {"cost to {epsilons[-1]:g}": "{cost:.1f}"},
    }
    lines = render_table(table, tmp_path).splitlines()
    assert lines[0] == '<a id="table-costs"></a>Costs (fig1):'
    assert lines[2:] == ["| ε | 0.5 | 1.0 |", "| --- | --- | --- |", "| cost to 1 | 3.1 | 2.7 |"]
    assert link_tables([table]) == {"dear": "[Costs](#table-costs)"}
    turned = table | {"columns": {"": ["at {epsilons[0]}", "at 1"]}, "turned": True}
    lines = render_table(turned, tmp_path).splitlines()
    assert lines[2:] == ["|  | cost to 1 |", "| --- | --- |", "| at 0.5 | 3.1 |", "| at 1 | 2.7 |"]
    both = link_tables([table, table | {"id": "table-more", "title": "More"}])
    assert both == {"dear": "[Costs](#table-costs); [More](#table-more)"}
    beside = table | {"beside": table["claims"], "claims": []}
    assert link_tables([beside], {"dear": "it is 1"}) == {"dear": "it is 1; [Costs](#table-costs)"}
    with pytest.raises(ClaimError, match="Costs: one must have a number for each of 2"):
        render_table(table | {"rows": {"one": "{one:.0f}"}}, tmp_path)
    assert render_table(table | {"record": "fig2"}, tmp_path).endswith(": no record yet")


def test_a_papers_tables_have_the_papers_own_statements_and_ours_stand_apart():
    page = (ROOT / "docs/claims/sip2023.md").read_text()
    stated, ours = page.split("\n## Our own methods\n")
    claims = claims_of(read_pages()["sip2023"])
    rows = re.compile(r'^\| \d+ \| <a id="([\w-]+)"', re.M)
    assert rows.findall(stated) == [one.id for one in claims if one.about == "the paper"]
    assert rows.findall(ours) == [one.id for one in claims if one.about == "ours"]
    assert len(rows.findall(ours)) > 10
