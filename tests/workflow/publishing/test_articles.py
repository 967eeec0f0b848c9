"""Every number of ours in an article is that of a claim."""

import re

import pytest

from experiments.claims import Kind, claims_of
from workflow.configuration import ROOT
from workflow.publishing import articles
from workflow.publishing.judging import judge_all, read_pages

TEXTS = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "articles").glob("*.md")}
# Numbers of the papers or of their places: equations, sections, the parameters of their examples.
NOT_OURS = re.compile(
    r"```.*?```|^---\n.*?^---\n|\{[a-z]+\s[^}]+\}|\$+[^$]+\$+|\[@[^]]+\]"
    r"|!\[.*?\]\(.*?\)(\{[^}]*\})?|^: .*?$|@[a-z]+\d+"
    r"|(Section|Fig\.|Figs\.|Eqs?\.|Theorem|Corollary|Algorithms?|Example)\s[\d(][\d., ()and]*",
    re.S | re.M,
)
OF_THE_PAPERS = {
    "reproduction-tkde-icde": [
        "arXiv:1711.11436",
        "arXiv:1610.07543",
        "150 states",
        "47 minutes",
        "38 hours",
        "almost 8 releases",
        "about 80",
        "with 50 digits",
    ],
    "reproduction-sip-dphmm-logs": ["among 100 states", "So 100 lies", "Gowalla 70", "95 %"],
    "paper": ["brahms2013/TPL", "yangcao888/TPL", "yangcao88/ConTPL"],
    "preprint": [],
}


@pytest.fixture(scope="module")
def judged():
    claims = [claim for content in read_pages().values() for claim in claims_of(content)]
    return judge_all(outcomes={test: "passed" for claim in claims for test in claim.tests})[:2]


@pytest.mark.parametrize("name", TEXTS)
def test_an_article_types_no_number_that_is_not_the_papers(name):
    text = NOT_OURS.sub("", TEXTS[name])
    for words in OF_THE_PAPERS[name]:
        text, found = re.subn(r"\s+".join(map(re.escape, words.split())), "", text)
        assert found, words
    assert re.findall(r".*\d.*", re.sub(r"^\d\. ", "", text, flags=re.M)) == []


@pytest.mark.parametrize("name", TEXTS)
def test_each_placeholder_is_filled_and_links_to_its_claim(name, judged):
    text = articles.fill(TEXTS[name], *judged)
    assert not articles.PLACEHOLDER.search(text)
    for page, anchor in re.findall(r"docs/claims/(\w+\.md)#([\w-]+)", text):
        assert f'<a id="{anchor}"></a>' in (ROOT / "docs" / "claims" / page).read_text(
            encoding="utf-8"
        )
    for figure in re.findall(r"!\[.*?\]\(\.\./\.\./(.*?)\)", text):
        assert (ROOT / figure).is_file()


def test_tables_of_a_paper_are_made_of_its_claims_and_errata(judged):
    text = articles.fill(
        "{departures tkde2019}\n{errata errata.md: [1], wrong in print}\n{counts tkde2019}", *judged
    )
    assert "[Theorem 2, Eqs. (10), (11)](../../docs/claims/tkde2019.md#theorem-2): TPL is" in text
    assert '| Section 3.2, Example 3 | "FPL at time 1 is the lowest' in text
    assert re.search(r"\| \[1\], TKDE 2019 \| \d+ \| \d+ \|", text)
    counts = articles.fill("{counts tkde2019}", *judged).splitlines()
    assert {line.count("|") for line in counts} == {3 + len(Kind)}
    with pytest.raises(KeyError, match="tkde2019#none"):
        articles.fill("{ours tkde2019#none}", *judged)


def test_a_page_is_quoted_without_its_references_and_what_is_left_out():
    page = articles.quote_page("theory/profiles.md", ["Notation"])
    assert "## One step of correlation" in page
    assert "## Notation" not in page
    assert "## References" not in page
    with pytest.raises(KeyError, match="No such heading"):
        articles.quote_page("theory/profiles.md", ["No such heading"])


def test_one_list_of_references_has_all_that_the_pages_of_the_preprint_name():
    """By title, since the pages write first names as initials."""
    bibliography = re.sub(r"[{}]", "", (ROOT / "articles/paper.bib").read_text(encoding="utf-8"))
    bibliography = " ".join(bibliography.split())
    nocite = TEXTS["preprint"].partition("nocite: |")[2].partition("abstract:")[0]
    titles = []
    for page in ("promises", "profiles"):
        text = (ROOT / "docs/theory" / f"{page}.md").read_text(encoding="utf-8")
        entries = text.partition("## References\n\n")[2].split("\n- ")
        titles += [re.split(r"(?<=[a-z])\. ", " ".join(entry.split()))[0:2] for entry in entries]
    assert len(titles) == nocite.count("@") == 15
    for authors, title in titles:
        assert title.replace("$E_\\gamma$", "Eγ") in bibliography, authors


def test_a_pdf_tells_version_commit_and_date():
    assert re.fullmatch(
        r"tplrepro [\d.]+(, commit [0-9a-f]{8} of \d{4}-\d\d-\d\d(, modified)?)?",
        articles.describe_version(),
    )


def test_the_software_paper_has_the_sections_that_its_journal_asks_for():
    assert re.findall(r"^# (.*)$", TEXTS["paper"], re.M) == [
        "Summary",
        "Statement of need",
        "State of the field",
        "Software design",
        "Research impact statement",
        "Limitations",
        "AI usage disclosure",
        "Acknowledgements",
    ]


def test_each_pdf_has_ten_pages_at_most(judged, monkeypatch):
    typst = pytest.importorskip("typst")
    monkeypatch.setattr(articles, "judge_all", lambda: (*judged, []))
    assert articles.main() == 0
    for name in TEXTS:
        assert (
            2
            <= len(typst.compile(ROOT / "build/articles" / f"{name}.typ", format="svg", root=ROOT))
            <= 10
        )
