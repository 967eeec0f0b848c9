"""Render articles/<name>.md as PDFs in build/articles, with every number of ours taken from a
claim.

In a text, ``{ours tkde2019#bpl-none}`` stands for our number of that claim and ``{verdict
tkde2019#bpl-none}`` for its verdict, both with a link to the claim; ``{counts PAGES}`` for the
numbers of verdicts; ``{departures PAGES}`` for the statements that did not come out as printed;
``{errata FILE: HEADING}`` for the errata below a heading; ``{page FILE without: HEADING; HEADING}``
for a page of the documentation, without its title, its references and these sections.
"""

import re
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

import tplrepro
from experiments.claims import Kind, Verdict, markdown_table
from experiments.provenance import date_of_commit, describe_commit
from workflow.configuration import ROOT
from workflow.publishing.claims import count_verdicts
from workflow.publishing.judging import Judged, judge_all

PLACEHOLDER = re.compile(r"\{(ours|verdict|counts|departures|errata|page)\s([^}]+)\}")
FILES = {"include-in-header": "style.typ", "metadata-file": "style.yaml"}
# Names of symbols that Pandoc writes and Typst has renamed.
RENAMED = {"times.circle": "times.o", " sect ": " inter "}
MARKDOWN = "markdown-smart-subscript-superscript-example_lists+autolink_bare_uris"
DEPARTURES = (Kind.IN_PART, Kind.NOT_OBSERVED, Kind.NOT_REPRODUCED)
CELL_BORDER = re.compile(r"(?<!\\)\|")


def main() -> int:
    """Render all articles; the exit status is 1 where one names a claim without a verdict."""
    build = ROOT / "build" / "articles"
    build.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "articles" / "paper.bib", build)
    contents, judged, problems = judge_all()
    for problem in problems:
        print(problem, file=sys.stderr)
    for path in sorted((ROOT / "articles").glob("*.md")):
        text = fill(path.read_text(encoding="utf-8"), contents, judged)
        source = build / f"{path.stem}.typ"
        render_pdf(text, source)
        print(f"build/articles/{source.stem}.pdf")
    return 1 if problems else 0


def render_pdf(text: str, source: Path) -> None:
    """Write Markdown as Typst to `source`, and its PDF beside it."""
    import pypandoc
    import typst

    options = [f"--{name}={ROOT / 'articles' / file}" for name, file in FILES.items()]
    options.append(f"--metadata=date:{describe_version()}")
    typed = pypandoc.convert_text(text, "typst", MARKDOWN, extra_args=["--standalone", *options])
    for old, new in RENAMED.items():
        typed = typed.replace(old, new)
    source.write_text(typed, encoding="utf-8")
    typst.compile(source, source.with_suffix(".pdf"), root=ROOT)


def describe_version() -> str:
    """Version, commit and its date, for the head of a PDF; outside a repository the version."""
    words = f"tplrepro {tplrepro.__version__}"
    commit = describe_commit()
    if commit is None:
        return words
    words += f", commit {commit['id'][:8]} of {date_of_commit()}"
    if commit["modified"]:
        words += ", modified"
    return words


def fill(text: str, contents: Mapping[str, Any], judged: Sequence[Judged]) -> str:
    """The text of an article with its placeholders replaced.

    `contents` are the pages of claims by paper, `judged` are all claims with their verdicts.
    KeyError for a claim that there is not.
    """
    fillings = Fillings(contents, judged)

    def fill_one(match: re.Match[str]) -> str:
        kind, words = match.groups()
        return fillings.fill(kind, words.replace("\n", " "))

    return PLACEHOLDER.sub(fill_one, text)


@dataclass(frozen=True)
class Fillings:
    """What stands in an article in the place of each placeholder."""

    contents: Mapping[str, Any]  # of the pages of claims
    judged: Sequence[Judged]

    def fill(self, kind: str, words: str) -> str:
        """What stands in the place of ``{kind words}``."""
        if kind == "ours":
            return f"[{self.verdict_on(words).ours}]({link_of_claim(words)})"
        if kind == "verdict":
            return f"[{self.verdict_on(words).kind}]({link_of_claim(words)})"
        if kind == "counts":
            return self.count(words.split())
        if kind == "departures":
            return self.list_departures(words.split())
        if kind == "errata":
            file, _, heading = words.partition(": ")
            return list_errata(file, heading)
        page, _, left_out = words.partition(" without: ")
        return quote_page(page, [heading for heading in left_out.split("; ") if heading])

    def verdict_on(self, name: str) -> Verdict:
        for page, claim, verdict in self.judged:
            if f"{page}#{claim.id}" == name and verdict is not None:
                return verdict
        raise KeyError(name)

    def count(self, pages: Sequence[str]) -> str:
        """The table of verdicts on the statements of these papers."""
        rows = []
        for page in pages:
            title = self.contents[page]["title"]
            rows.append(count_verdicts(title, self.statements_of([page]))[:-1])
        return format_table(["statements of", "in all", *Kind], rows, (4, 1, *[2] * len(Kind)))

    def list_departures(self, pages: Sequence[str]) -> str:
        """The table of the statements that did not come out as printed."""
        rows = []
        for page, claim, verdict in self.statements_of(pages):
            if verdict is not None and verdict.kind in DEPARTURES:
                link = link_of_claim(f"{page}#{claim.id}")
                statement = drop_links(f"[{claim.place}]({link}): {claim.statement}")
                rows.append((statement, drop_links(verdict.words)))
        return format_table(("the paper", "verdict"), rows, (2, 3))

    def statements_of(self, pages: Sequence[str]) -> list[Judged]:
        """The papers' own statements on these pages."""
        return [one for one in self.judged if one.page in pages and one.claim.about == "the paper"]


def quote_page(file: str, left_out: Sequence[str]) -> str:
    """A page of the documentation without its title, its references and the sections `left_out`.

    An article has its own list of references. KeyError for a section that the page has not.
    """
    _, _, below_title = (ROOT / "docs" / file).read_text(encoding="utf-8").partition("\n")
    opening, *sections = below_title.split("\n## ")
    by_heading = {section.partition("\n")[0]: section for section in sections}
    for heading in left_out:
        del by_heading[heading]
    by_heading.pop("References", None)
    return drop_links("\n## ".join([opening, *by_heading.values()]))


def link_of_claim(name: str) -> str:
    """Where a claim stands: on the site of the repository that CITATION.cff names, or in this
    checkout."""
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    base = "../.."
    if "repository-code" in citation:
        base = f"{citation['repository-code']}/blob/main"
    page, _, anchor = name.partition("#")
    return f"{base}/docs/claims/{page}.md#{anchor}"


def list_errata(file: str, heading: str) -> str:
    """Place and misprint of the rows of the table below a heading."""
    text = (ROOT / "docs" / file).read_text(encoding="utf-8")
    _, _, below = text.partition(f"\n## {heading}\n")
    section, _, _ = below.partition("\n## ")
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    rows = []
    for line in lines[1:]:
        _, place, printed, *_ = CELL_BORDER.split(line)
        rows.append((drop_links(place), drop_links(printed)))
    return format_table(("where", "printed"), rows, (1, 3))


def format_table(
    headings: Sequence[str], rows: Iterable[Iterable[str]], widths: Sequence[int]
) -> str:
    """A Markdown table whose columns have these relative widths in print."""
    if len(widths) != len(headings):
        raise ValueError(
            f"a table must have a width for each of {len(headings)} columns, found "
            f"{len(widths)}; correct them"
        )
    lines = markdown_table(headings, rows).replace("\\\\|", "\\|").splitlines()
    dashes = [":" + "-" * 20 * width for width in widths]
    lines[1] = f"|{'|'.join(dashes)}|"
    return "\n".join(lines)


def drop_links(text: str) -> str:
    """The text without anchors, and without links that lead nowhere in an article: not to the
    network or to claims."""
    text = re.sub(r'<a id="[^"]*"></a>', "", text.strip())
    return re.sub(r"\[([^\]]*)\]\((?!http|\.\./\.\./docs)[^()\s]*\)", r"\1", text)


if __name__ == "__main__":
    sys.exit(main())
