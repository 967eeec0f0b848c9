"""Render docs/claims.md and docs/claims/<paper>.md from docs/claims/<paper>.yaml and the records.

It also writes the texts of `workflow.artifact`: parts of ARTIFACT.md and REPRODUCING.md, and codecheck.yml.

A claim whose record is missing, of another profile than the paper's, from modified code or from synthetic
data in the place of recorded ones has no verdict, and the exit status is then 1. ``--records
build/quick/figures --profile quick`` is a trial: it judges the records of a batch by the claims that are
marked ``quick``, whose verdicts must be the published ones, allows modified code, and writes below
``build/claims``.
"""

import argparse
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from experiments.claims import KINDS, Claim, ClaimError, Verdict, claims_of, head_of, judge, markdown_table, read_claims
from tplrepro.files import write_whole
from workflow import artifact
from workflow.claim_tests import outcomes_of
from workflow.configuration import ROOT, owner_of, read_json, read_notebooks, why_no_evidence
from workflow.older_records import older_records
from workflow.other_runs import SEED, read_runs, tolerance_of

OPEN = "no verdict yet"
SHOWN = 4  # changed files of a record
PAPERS = ("tkde2019", "icde2017", "sip2023", "eventlog2022", "dphmm2016")


class Judged(NamedTuple):
    """A claim, the page that it stands on, and its verdict, if it has one."""

    page: str
    claim: Claim
    verdict: Verdict | None


def read_pages(root=ROOT):
    """Contents of the pages: the papers in the order of the README, then those of our own notebooks."""
    paths = {path.stem: path for path in sorted((root / "docs" / "claims").glob("*.yaml"))}
    names = sorted(paths, key=lambda name: PAPERS.index(name) if name in PAPERS else len(PAPERS))
    return {name: read_claims(paths[name]) for name in names}


def render(records=None, profile="paper", root=ROOT, outcomes=None):
    """Pages by path, and one sentence for each claim without a verdict; arguments as for `judge_all`."""
    contents, judged, problems = judge_all(records, profile, root, outcomes)
    notebooks, moved = read_notebooks(root), read_runs(root).get(SEED, {})
    overview = (root / "docs" / "claims.md").read_text(encoding="utf-8")
    pages = {"docs/claims.md": artifact.with_region(overview, _overview(contents, judged))}
    for page, content in contents.items():
        of_page = [one for one in judged if one.page == page]
        pages[f"docs/claims/{page}.md"] = _page(page, content, of_page, notebooks, moved)
    return pages | (artifact.render(judged, root) if records is None else {}), problems


def judge_all(records=None, profile="paper", root=ROOT, outcomes=None):
    """Contents by page, each claim as `Judged`, and one sentence for each without a verdict.

    A folder of `records` is a trial. `outcomes` of the tests that decide claims are those of
    `workflow.claim_tests` by default.
    """
    contents, notebooks = read_pages(root), read_notebooks(root)
    stated = [(page, claim) for page, content in contents.items() for claim in claims_of(content)]
    if outcomes is None:
        outcomes = outcomes_of([test for _, claim in stated for test in claim.tests], root)
    folder, trial = Path(records or root / "figures"), records is not None
    judged, problems = [], []
    for page, claim in stated:
        verdict = None
        try:
            record = _record(claim, folder, profile, None if trial else notebooks) if claim.record else None
            if profile == "paper" or claim.quick or not claim.record:
                verdict = judge(claim, record, outcomes)
            if trial and verdict and claim.record:
                _require_published(claim, verdict, root / "figures", notebooks)
        except ClaimError as problem:
            problems.append(f"{page}: {problem}")
            verdict = None
        judged.append(Judged(page, claim, verdict))
    return contents, judged, problems + _disagreements(judged)


def _record(claim, folder, profile, notebooks):
    """The record of a claim, of this profile; with `notebooks` it must count as evidence."""
    record = read_json(folder / f"{claim.record}.json")
    if not record:
        raise ClaimError(f"{claim.id}: must have a record {claim.record}.json, found none; publish the paper profile's")
    if record["profile"] != profile:
        raise ClaimError(
            f"{claim.id}: the record {claim.record}.json must be of the profile {profile}, found {record['profile']}; "
            f"run make figures PROFILE={profile} and publish"
        )
    if notebooks and (why := why_no_evidence(claim.record, record, notebooks)):
        raise ClaimError(f"{claim.id}: the record {claim.record}.json {why}")
    return record


def _require_published(claim, verdict, folder, notebooks):
    """A trial's verdict must equal that on the published record, if there is one."""
    try:
        published = judge(claim, _record(claim, folder, "paper", notebooks))
    except ClaimError:
        return
    if published.kind != verdict.kind:
        raise ClaimError(
            f"{claim.id}: {verdict.kind} here ({verdict.ours}), published as {published.kind} ({published.ours}); "
            "look which is right, or drop quick"
        )


def _disagreements(judged):
    """The same statement in two papers must have one verdict; `same_as` must name a claim."""
    kinds = {f"{page}#{claim.id}": verdict and verdict.kind for page, claim, verdict in judged}
    problems = []
    for page, claim, verdict in judged:
        if claim.same_as is None or verdict is None:
            continue
        if claim.same_as not in kinds:
            problems.append(f"{page}: {claim.id}: same_as must name a claim, found {claim.same_as!r}; correct it")
        elif kinds[claim.same_as] not in (None, verdict.kind):
            there = f"{kinds[claim.same_as]} as {claim.same_as}"
            problems.append(f"{page}: {claim.id}: {verdict.kind} here, {there}; look which is right")
    return problems


def _overview(contents, judged):
    """The counts: the papers' statements, those that two papers share once, and ours apart."""
    on_papers = [one for one in judged if head_of(one.page) == "the paper"]
    stated = [one for one in on_papers if one.claim.about == "the paper"]
    once = [one for one in stated if one.claim.same_as is None]
    links = {page: f"[{content['title']}](claims/{page}.md)" for page, content in contents.items()}
    papers, others = ([page for page in contents if (head_of(page) == "the paper") == paper] for paper in (True, False))
    rows = [counted(links[page], [one for one in stated if one.page == page]) for page in papers]
    rows.append(counted("**the papers, shared statements once**", once))
    if ours := [one for one in on_papers if one.claim.about == "ours"]:
        rows.append(counted("our own results on the papers' pages", ours))
    rows += [counted(links[page], [one for one in judged if one.page == page]) for page in others]
    heads = ["statements of", "in all", *KINDS, OPEN]
    if not any(row[-1] for row in rows):
        heads, rows = heads[:-1], [row[:-1] for row in rows]
    headline = f"**Of the {len(once)} statements of the papers that we found: {_in_words(once)}.**"
    return f"{headline}\n\n{markdown_table(heads, rows)}\n"


def counted(title, judged):
    """A row of the overview: title, number of claims, and number by verdict."""
    counts = _counts(judged)
    return [title, str(len(judged)), *(str(counts[kind] or "") for kind in (*KINDS, OPEN))]


def _counts(judged):
    return Counter(one.verdict.kind if one.verdict else OPEN for one in judged)


def _in_words(judged):
    counts = _counts(judged)
    words = [f"{counts[kind]} {kind}" for kind in KINDS if counts[kind]]
    return ", ".join(words + ([f"{counts[OPEN]} with {OPEN}"] if counts[OPEN] else []))


def _page(page, content, judged, notebooks, moved):
    papers = [one for one in judged if one.claim.about == "the paper"]
    ours = [one for one in judged if one.claim.about == "ours"]
    summary = f"**Summary.** Of {len(papers)} statements: {_in_words(papers)}."
    if ours:
        summary += f" Of {len(ours)} about our own methods: {_in_words(ours)}."
    parts = [f"# Claims of {content['title']}", content["introduction"].strip(), summary]
    rows = {one.claim.id: _row(one, notebooks, moved.get(f"{page}#{one.claim.id}")) for one in judged}
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
            raise ClaimError(f"{claim.id}: no notebook makes {claim.record!r}; see config/notebooks.yaml")
        by = f"[{claim.record}](../../notebooks/{notebooks[owner].notebook}.ipynb)"
    else:
        tests = [test.partition("::") for test in claim.tests]
        by = ", ".join(f'[{Path(file).name}](../../{file} "{name}")' for file, _, name in tests)
    if claim.breaks:
        by += f"; fails if `{claim.breaks['from']}` becomes `{claim.breaks['to']}` in `{claim.breaks['in']}`"
    words = verdict.words if verdict else OPEN
    if claim.invariant:
        words += f". No change of single numbers alters this verdict: {claim.invariant}"
    if tolerance := tolerance_of(moved):
        words += f". Its numbers: {tolerance}"
    if claim.erratum:
        words += f" ([erratum](../{claim.erratum}))"
    place = f"{claim.place} (ours)" if claim.about == "ours" else claim.place
    return f'<a id="{claim.id}"></a>{place}: {claim.statement}', verdict.ours if verdict else "", by, words


def main(arguments=None):
    """Evaluate the claims on the published records and render their pages."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--records", help="folder of the records to try, in place of the published ones")
    parser.add_argument("--profile", default="paper", help="profile that the records must have")
    options = parser.parse_args(arguments)
    pages, problems = render(options.records, options.profile)
    for name, text in pages.items():
        write_whole((ROOT / "build" / "claims" if options.records else ROOT) / name, text.encode())
    print(*problems, sep="\n", end="\n" * bool(problems), file=sys.stderr)
    for name, parts in ({} if options.records else older_records()).items():
        print(f"figures/{name} is older than its code: {', '.join(parts[:SHOWN])}{', ...' * (len(parts) > SHOWN)}")
    print(f"{len(pages)} pages rendered{' in build/claims' if options.records else ''}; {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
