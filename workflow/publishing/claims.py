"""Render docs/claims.md and docs/claims/<paper>.md from docs/claims/<paper>.yaml and the records.

It also writes docs/map.md, parts of ARTIFACT.md and REPRODUCING.md, and codecheck.yml.

A claim whose record is missing, of another profile than the paper's, from modified code or from
synthetic data in the place of recorded ones has no verdict, and the exit status is then 1.
``--records build/quick/figures --profile quick`` is a trial: it judges the records of a batch by
the claims that are marked ``quick``, whose verdicts must be the published ones, allows modified
code, and writes below ``build/claims``.
"""

import argparse
import sys
from collections import Counter
from pathlib import Path

from experiments.claims import ClaimError, Kind, head_of, markdown_table
from tplreport.files import write_whole
from workflow.configuration import ROOT, owner_of, read_notebooks
from workflow.publishing import artifact, code_map
from workflow.publishing.judging import judge_all
from workflow.publishing.records import SEED, older_in_words, read_runs, tolerance_of

OPEN = "no verdict yet"


def render(records=None, profile="paper", root=ROOT, outcomes=None):
    """Pages by path, and one sentence for each claim without a verdict; arguments as for
    `judge_all`."""
    contents, judged, problems = judge_all(records, profile, root, outcomes)
    notebooks, moved = read_notebooks(root), read_runs(root).get(SEED, {})
    overview = (root / "docs" / "claims.md").read_text(encoding="utf-8")
    pages = {"docs/claims.md": artifact.with_region(overview, _overview(contents, judged))}
    for page, content in contents.items():
        of_page = [one for one in judged if one.page == page]
        pages[f"docs/claims/{page}.md"] = _page(page, content, of_page, notebooks, moved)
    if records is None:
        pages |= artifact.render(root) | {"docs/map.md": code_map.page(contents, root)}
    return pages, problems


def _overview(contents, judged):
    """The counts: the papers' statements, those that two papers share once, and ours apart."""
    on_papers = [one for one in judged if head_of(one.page) == "the paper"]
    stated = [one for one in on_papers if one.claim.about == "the paper"]
    once = [one for one in stated if one.claim.same_as is None]
    links = {page: f"[{content['title']}](claims/{page}.md)" for page, content in contents.items()}
    papers, others = (
        [page for page in contents if (head_of(page) == "the paper") == paper]
        for paper in (True, False)
    )
    rows = [counted(links[page], [one for one in stated if one.page == page]) for page in papers]
    rows.append(counted("**the papers, shared statements once**", once))
    if ours := [one for one in on_papers if one.claim.about == "ours"]:
        rows.append(counted("our own results on the papers' pages", ours))
    rows += [counted(links[page], [one for one in judged if one.page == page]) for page in others]
    heads = ["statements of", "in all", *Kind, OPEN]
    if not any(row[-1] for row in rows):
        heads, rows = heads[:-1], [row[:-1] for row in rows]
    headline = f"**Of the {len(once)} statements of the papers that we found: {_in_words(once)}.**"
    return f"{headline}\n\n{markdown_table(heads, rows)}\n"


def counted(title, judged):
    """A row of the overview: title, number of claims, and number by verdict."""
    counts = _counts(judged)
    return [
        title,
        str(len(judged)),
        *(str(counts[kind]) for kind in Kind),
        str(counts[OPEN] or ""),
    ]


def _counts(judged):
    return Counter(one.verdict.kind if one.verdict else OPEN for one in judged)


def _in_words(judged):
    counts = _counts(judged)
    words = [f"{counts[kind]} {kind}" for kind in Kind if counts[kind]]
    return ", ".join(words + ([f"{counts[OPEN]} with {OPEN}"] if counts[OPEN] else []))


def _page(page, content, judged, notebooks, moved):
    papers = [one for one in judged if one.claim.about == "the paper"]
    ours = [one for one in judged if one.claim.about == "ours"]
    summary = f"**Summary.** Of {len(papers)} statements: {_in_words(papers)}."
    if ours:
        summary += f" Of {len(ours)} about our own methods: {_in_words(ours)}."
    parts = [f"# Claims of {content['title']}", content["introduction"].strip(), summary]
    rows = {
        one.claim.id: _row(one, notebooks, moved.get(f"{page}#{one.claim.id}")) for one in judged
    }
    for section in content["sections"]:
        parts += [f"## {section['title']}", section.get("text", "").strip()]
        if section["claims"]:
            heads = (head_of(page), "ours", "decided by", "verdict")
            parts.append(markdown_table(heads, [rows[claim.id] for claim in section["claims"]]))
    parts.append(content.get("end", "").strip())
    return "\n\n".join(part for part in parts if part) + "\n"


def _row(judged, notebooks, moved):
    """Cells of one claim; links are relative to the page."""
    _, claim, verdict = judged
    if claim.record:
        owner = owner_of(claim.record, notebooks)
        if owner is None:
            raise ClaimError(
                f"{claim.id}: no notebook makes {claim.record!r}; see config/notebooks.yaml"
            )
        by = f"[{claim.record}](../../notebooks/{notebooks[owner].notebook}.ipynb)"
    else:
        tests = [test.partition("::") for test in claim.tests]
        by = ", ".join(f'[{Path(file).name}](../../{file} "{name}")' for file, _, name in tests)
    sentences = [verdict.words if verdict else OPEN]
    if claim.invariant:
        sentences.append(f"No change of single numbers alters this verdict: {claim.invariant}")
    if tolerance := tolerance_of(moved):
        sentences.append(f"Its numbers: {tolerance}")
    words = ". ".join([*(sentence.removesuffix(".") for sentence in sentences[:-1]), sentences[-1]])
    if claim.erratum:
        words += f" ([erratum](../{claim.erratum}))"
    place = f"{claim.place} (ours)" if claim.about == "ours" else claim.place
    return (
        f'<a id="{claim.id}"></a>{place}: {claim.statement}',
        verdict.ours if verdict else "",
        by,
        words,
    )


def main(arguments=None):
    """Evaluate the claims on the published records and render their pages."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument(
        "--records", help="folder of the records to try, in place of the published ones"
    )
    parser.add_argument("--profile", default="paper", help="profile that the records must have")
    options = parser.parse_args(arguments)
    pages, problems = render(options.records, options.profile)
    for name, text in pages.items():
        write_whole((ROOT / "build" / "claims" if options.records else ROOT) / name, text.encode())
    print(*problems, sep="\n", end="\n" * bool(problems), file=sys.stderr)
    if not options.records and (older := older_in_words()):
        print(older)
    print(
        f"{len(pages)} pages rendered{' in build/claims' if options.records else ''}; {len(problems)} problems"
    )
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
