"""Render articles/<name>.md as PDFs in build/articles, with every number of ours taken from a
claim.

In a text, ``{ours tkde2019#bpl-none}`` stands for our number of that claim and ``{verdict
tkde2019#bpl-none}`` for its verdict, both with a link to the claim; ``{counts PAGES}`` for the
numbers of verdicts; ``{departures PAGES}`` for the statements that did not come out as printed;
``{errata FILE: HEADING}`` for the errata below a heading; ``{page FILE}`` for a page of the
documentation, without its title.
"""

import re
import shutil
import sys

import yaml

from experiments.claims import Kind, markdown_table
from workflow.configuration import ROOT
from workflow.publishing.claims import counted
from workflow.publishing.judging import judge_all

PLACEHOLDER = re.compile(r"\{(ours|verdict|counts|departures|errata|page)\s([^}]+)\}")
FILES = {"include-in-header": "style.typ", "metadata-file": "style.yaml"}
# Names of symbols that Pandoc writes and Typst has renamed.
RENAMED = {"times.circle": "times.o", " sect ": " inter "}
MARKDOWN = "markdown-smart-subscript-superscript-example_lists+autolink_bare_uris"


def main():
    """Render all articles; the exit status is 1 where one names a claim without a verdict."""
    import pypandoc
    import typst

    build = ROOT / "build" / "articles"
    build.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "articles" / "paper.bib", build)
    contents, judged, problems = judge_all()
    for problem in problems:
        print(problem, file=sys.stderr)
    for path in sorted((ROOT / "articles").glob("*.md")):
        source = build / f"{path.stem}.typ"
        options = [f"--{name}={ROOT / 'articles' / file}" for name, file in FILES.items()]
        text = filled(path.read_text(encoding="utf-8"), contents, judged)
        typed = pypandoc.convert_text(
            text, "typst", MARKDOWN, extra_args=["--standalone", *options]
        )
        for old, new in RENAMED.items():
            typed = typed.replace(old, new)
        source.write_text(typed, encoding="utf-8")
        typst.compile(source, source.with_suffix(".pdf"), root=ROOT)
        print(f"build/articles/{source.stem}.pdf")
    return 1 if problems else 0


def filled(text, contents, judged):
    """The text with its placeholders replaced; KeyError for a claim that there is not."""
    found = {f"{page}#{claim.id}": verdict for page, claim, verdict in judged}

    fillings = {
        "ours": lambda name: f"[{found[name].ours}]({linked(name)})",
        "verdict": lambda name: f"[{found[name].kind}]({linked(name)})",
        "counts": lambda pages: _counts(pages.split(), contents, judged),
        "departures": lambda pages: _departures(pages.split(), judged),
        "errata": lambda place: _errata(*place.split(": ", 1)),
        "page": lambda file: _without_links(
            (ROOT / "docs" / file).read_text(encoding="utf-8").partition("\n")[2]
        ),
    }
    return PLACEHOLDER.sub(lambda match: fillings[match[1]](match[2].replace("\n", " ")), text)


def linked(name):
    """Where a claim stands: on the site of the repository that CITATION.cff names, or in this
    checkout."""
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    page, _, anchor = name.partition("#")
    base = f"{citation['repository-code']}/blob/main" if "repository-code" in citation else "../.."
    return f"{base}/docs/claims/{page}.md#{anchor}"


def _counts(pages, contents, judged):
    papers = [one for one in judged if one.claim.about == "the paper"]
    rows = [
        counted(contents[page]["title"], [one for one in papers if one.page == page])[:-1]
        for page in pages
    ]
    return _table(["statements of", "in all", *Kind], rows, (4, 1, 2, 2, 1, 2, 2))


def _departures(pages, judged):
    rows = [
        (f"[{claim.place}]({linked(f'{page}#{claim.id}')}): {claim.statement}", verdict.words)
        for page, claim, verdict in judged
        if page in pages
        and claim.about == "the paper"
        and verdict.kind in ("in part", "not reproduced")
    ]
    return _table(("the paper", "verdict"), [map(_without_links, row) for row in rows], (2, 3))


def _errata(file, heading):
    """Place and misprint of the rows of the table below a heading."""
    text = (
        (ROOT / "docs" / file)
        .read_text(encoding="utf-8")
        .partition(f"\n## {heading}\n")[2]
        .partition("\n## ")[0]
    )
    rows = [
        re.split(r"(?<!\\)\|", line)[1:3] for line in text.splitlines() if line.startswith("| ")
    ][1:]
    return _table(("where", "printed"), [map(_without_links, row) for row in rows], (1, 3))


def _table(heads, rows, widths):
    """A Markdown table whose columns have these widths in print."""
    lines = markdown_table(heads, rows).replace("\\\\|", "\\|").splitlines()
    lines[1] = "|" + "|".join(":" + "-" * 20 * width for width in widths) + "|"
    return "\n".join(lines)


def _without_links(text):
    """Without anchors, and without links that lead nowhere in an article: not to the network or to
    claims."""
    text = re.sub(r'<a id="[^"]*"></a>', "", text.strip())
    return re.sub(r"\[([^\]]*)\]\((?!http|\.\./\.\./docs)[^()\s]*\)", r"\1", text)


if __name__ == "__main__":
    sys.exit(main())
