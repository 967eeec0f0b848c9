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
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.claims import (
    Claim,
    ClaimError,
    Kind,
    claims_of,
    head_of,
    markdown_table,
    printed_in_words,
)
from tplreport.files import write_whole
from workflow.configuration import ROOT, Notebook, owner_of, read_notebooks
from workflow.publishing import artifact, code_map
from workflow.publishing.judging import Judged, judge_all
from workflow.publishing.number_tables import link_tables, render_table
from workflow.publishing.older_records import describe_older_records
from workflow.publishing.other_runs import SEED, Movement, read_runs
from workflow.publishing.parameters_of_papers import render_parameters

OPEN = "no verdict yet"
TRIAL = ROOT / "build" / "claims"


def render(
    records: Path | str | None = None,
    profile: str = "paper",
    root: Path = ROOT,
    outcomes: Mapping[str, str] | None = None,
) -> tuple[dict[str, str], list[str]]:
    """Pages by path, and one sentence for each claim without a verdict.

    Parameters
    ----------
    records, profile, root, outcomes
        As for `judge_all`.
    """
    contents, judged, problems = judge_all(records, profile, root, outcomes)
    notebooks = read_notebooks(root)
    movements = read_runs(root).get(SEED, {})
    overview = (root / "docs" / "claims.md").read_text(encoding="utf-8")
    counts = render_overview(contents, judged)
    pages = {"docs/claims.md": artifact.replace_region(overview, counts)}
    for page, content in contents.items():
        rows = {
            one.claim.id: cells_of(one, notebooks, movements.get(f"{page}#{one.claim.id}"))
            for one in judged
            if one.page == page
        }
        of_page = [one for one in judged if one.page == page]
        text = render_page(page, content, of_page, rows, root / "figures")
        if "parameters" in content:
            text += "\n" + render_parameters(content["parameters"], root / "figures")
        pages[f"docs/claims/{page}.md"] = text
    if records is None:
        pages |= artifact.render(root)
        pages["docs/map.md"] = code_map.render_map(contents, root)
    return pages, problems


def render_overview(contents: Mapping[str, Any], judged: Sequence[Judged]) -> str:
    """The counts of the pages `contents` by verdict, and in a sentence those of the papers'
    statements."""
    headings = ["statements of", "in all", *Kind, OPEN]
    rows = overview_rows(contents, judged)
    if not any(row[-1] for row in rows):
        headings = headings[:-1]
        rows = [row[:-1] for row in rows]
    once = stated_once(judged)
    counts = describe_counts(once)
    headline = f"**Of the {len(once)} statements of the papers that we found: {counts}.**"
    return f"{headline}\n\n{markdown_table(headings, rows)}\n"


def overview_rows(contents: Mapping[str, Any], judged: Sequence[Judged]) -> list[list[str]]:
    """The papers' statements, those that two papers share once, ours apart, and other pages."""
    papers = [page for page in contents if is_on_paper(page)]
    others = [page for page in contents if page not in papers]
    on_papers = [one for one in judged if one.page in papers]
    ours = claims_about("ours", on_papers)
    rows = []
    for page in papers:
        stated = claims_about("the paper", on_page(page, judged))
        rows.append(count_verdicts(page_link(page, contents), stated))
    rows.append(count_verdicts("**the papers, shared statements once**", stated_once(judged)))
    if ours:
        rows.append(count_verdicts("our own results on the papers' pages", ours))
    for page in others:
        rows.append(count_verdicts(page_link(page, contents), on_page(page, judged)))
    return rows


def stated_once(judged: Sequence[Judged]) -> list[Judged]:
    """The papers' own statements, those that two papers share once."""
    return [
        one
        for one in judged
        if is_on_paper(one.page) and one.claim.about == "the paper" and one.claim.same_as is None
    ]


def is_on_paper(page: str) -> bool:
    """Whether a page is about a paper, not about our own notebooks."""
    return head_of(page) == "the paper"


def claims_about(what: str, judged: Sequence[Judged]) -> list[Judged]:
    """The claims about `what`, "the paper" or "ours"."""
    return [one for one in judged if one.claim.about == what]


def on_page(page: str, judged: Sequence[Judged]) -> list[Judged]:
    return [one for one in judged if one.page == page]


def page_link(page: str, contents: Mapping[str, Any]) -> str:
    return f"[{contents[page]['title']}](claims/{page}.md)"


def count_verdicts(title: str, judged: Sequence[Judged]) -> list[str]:
    """A row of the overview: title, number of claims, and number by verdict; the last is of those
    without."""
    counts = verdict_counts(judged)
    by_kind = [str(counts[kind]) for kind in Kind]
    without = ""
    if counts[OPEN]:
        without = str(counts[OPEN])
    return [title, str(len(judged)), *by_kind, without]


def verdict_counts(judged: Sequence[Judged]) -> Counter[str]:
    return Counter(one.verdict.kind if one.verdict else OPEN for one in judged)


def describe_counts(judged: Sequence[Judged]) -> str:
    """The counts of verdicts in words, such as "7 reproduced, 1 in part"."""
    counts = verdict_counts(judged)
    words = [f"{counts[kind]} {kind}" for kind in Kind if counts[kind]]
    if counts[OPEN]:
        words.append(f"{counts[OPEN]} with {OPEN}")
    return ", ".join(words)


def render_page(
    page: str,
    content: Mapping[str, Any],
    judged: Sequence[Judged],
    rows: Mapping[str, list[str]],
    records: Path,
) -> str:
    """The text of docs/claims/<page>.md.

    `content` is the file of claims, `judged` are its claims with their verdicts, `rows` the cells
    of each claim by its id, and `records` the folder of the records for tables.
    """
    parts = [f"# Claims of {content['title']}", content["introduction"].strip()]
    of_papers = is_on_paper(page)
    parts.append(summarise_page(judged, of_papers))
    head = head_of(page)
    shown = link_results(content, rows)
    numbered = 0
    for section in content["sections"]:
        own = [claim for claim in section["claims"] if of_papers and claim.about == "ours"]
        stated = [claim for claim in section["claims"] if claim not in own]
        if own and not stated and not section.get("text"):
            continue
        parts.append(f"## {section['title']}")
        parts.append(section.get("text", "").strip())
        if stated:
            parts.append(table_of_claims(head, [shown[claim.id] for claim in stated], numbered))
        numbered += len(stated)
        parts += [render_table(table, records) for table in section.get("tables", ())]
    own_rows = [shown[one.claim.id] for one in claims_about("ours", judged)]
    if of_papers and own_rows:
        own_table = table_of_claims("our statement", own_rows, numbered)
        parts.append(f"## Our own methods\n\n{own_table}")
    parts.append(content.get("end", "").strip())
    return "\n\n".join(part for part in parts if part) + "\n"


def link_results(
    content: Mapping[str, Any], rows: Mapping[str, Sequence[str]]
) -> dict[str, list[str]]:
    """The cells of each claim of a page by its id, `rows`, with a link where a table shows the
    result; what the paper prints stays."""
    shown = {name: list(row) for name, row in rows.items()}
    printed = {claim.id: printed_in_words(claim) for claim in claims_of(content)}
    results = {name: row[1] for name, row in rows.items()}
    tables = [table for section in content["sections"] for table in section.get("tables", ())]
    for name, result in link_tables(tables, results).items():
        if name not in shown:
            raise ClaimError(
                f"{content['title']}: tables must name claims of their page, found {name}; "
                "correct it"
            )
        shown[name][1] = result
        if printed[name] not in result:
            shown[name][1] += printed[name]
    return shown


def table_of_claims(head: str, rows: Sequence[Sequence[str]], before: int) -> str:
    """A table of claims, whose rows are numbered on from the number `before`.

    What decides all of several rows stands above the table instead of in a column. A column for
    another seed is there only if a row has a movement.
    """
    headings = ["row", head, "ours", "decided by", "verdict", SEED]
    cells = [[str(number), *row] for number, row in enumerate(rows, before + 1)]
    shown = list(range(len(headings)))
    if not any(row[-1] for row in cells):
        shown.remove(headings.index(SEED))
    decider = headings.index("decided by")
    deciders = {row[decider] for row in cells}
    sentence = ""
    if len(cells) > 1 and len(deciders) == 1:
        shown.remove(decider)
        (only,) = deciders
        if only:
            sentence = f"All are decided by {only}.\n\n"
    lines = [[row[column] for column in shown] for row in cells]
    return sentence + markdown_table([headings[column] for column in shown], lines)


def summarise_page(judged: Sequence[Judged], of_papers: bool) -> str:
    """How many of a paper's statements, and of ours, have which verdict; on a page of our own
    notebooks, how many of all."""
    if not of_papers:
        return f"**Summary.** Of {len(judged)} statements: {describe_counts(judged)}."
    papers = claims_about("the paper", judged)
    ours = claims_about("ours", judged)
    summary = f"**Summary.** Of {len(papers)} statements: {describe_counts(papers)}."
    if ours:
        summary += f" Of {len(ours)} about our own methods: {describe_counts(ours)}."
    return summary


def cells_of(
    judged: Judged, notebooks: Mapping[str, Notebook], movement: Movement | None
) -> list[str]:
    """Cells of one claim; links are relative to the page. `movement` is how far its numbers moved
    with another seed, None if nothing is known."""
    claim = judged.claim
    statement = f'<a id="{claim.id}"></a>{claim.place_and_statement}'
    result = ""
    if judged.verdict:
        result = judged.verdict.ours
    decided_by = decider_link(claim, notebooks)
    return [statement, result, decided_by, verdict_words(judged), str(movement or "")]


def decider_link(claim: Claim, notebooks: Mapping[str, Notebook]) -> str:
    """The notebook whose record decides a claim, or the tests with what they compare."""
    if not claim.record:
        tests = [test.partition("::") for test in claim.tests]
        links = [f'[{Path(file).name}](../../{file} "{name}")' for file, _, name in tests]
        decided_by = ", ".join(links)
        if claim.compares:
            return f"{decided_by}: {claim.compares}"
        return decided_by
    owner = owner_of(claim.record, notebooks)
    if owner is None:
        raise ClaimError(
            f"{claim.id}: no notebook makes {claim.record!r}; see config/notebooks.yaml"
        )
    return f"[{claim.record}](../../notebooks/{notebooks[owner].notebook}.ipynb)"


def verdict_words(judged: Judged) -> str:
    """The verdict on a claim, why no single number decides it, and its erratum."""
    claim = judged.claim
    sentences = [judged.verdict.words if judged.verdict else OPEN]
    if claim.invariant:
        sentences.append(claim.invariant)
    *first, last = sentences
    words = ". ".join([*(sentence.removesuffix(".") for sentence in first), last])
    if claim.erratum:
        words += f" ([erratum](../{claim.erratum}))"
    return words


def main(arguments: Sequence[str] | None = None) -> int:
    """Evaluate the claims on the published records and render their pages."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument(
        "--records", help="folder of the records to try, in place of the published ones"
    )
    parser.add_argument("--profile", default="paper", help="profile that the records must have")
    options = parser.parse_args(arguments)
    pages, problems = render(options.records, options.profile)
    target = ROOT
    place = ""
    if options.records:
        target = TRIAL
        place = " in build/claims"
    for name, text in pages.items():
        write_whole(target / name, text.encode())
    for problem in problems:
        print(problem, file=sys.stderr)
    if not options.records and (older := describe_older_records()):
        print(older)
    print(f"{len(pages)} pages rendered{place}; {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
