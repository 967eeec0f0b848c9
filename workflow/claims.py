"""Render the claims pages, docs/claims.md and docs/claims/<paper>.md, from docs/claims/<paper>.yaml and the records.

It also writes the texts of `workflow.artifact`: ARTIFACT.md, codecheck.yml, a part of REPRODUCING.md.

A claim whose record is missing, of another profile than the paper's, from modified code or from synthetic
data in the place of recorded ones has no verdict, and the exit status is then 1. ``--records
build/quick/figures --profile quick`` is a trial: it judges the records of a batch by the claims that are
marked ``quick``, whose verdicts must be the published ones, allows modified code, and writes below
``build/claims``.
"""

import argparse
import json
import sys
from collections import Counter
from pathlib import Path

from experiments.claims import KINDS, ClaimError, claims_of, head_of, judge, markdown_table, read_claims
from tplrepro.files import write_whole
from workflow import artifact
from workflow.claim_tests import outcomes_of
from workflow.configuration import ROOT, from_committed_code, owner_of, read_notebooks
from workflow.older_records import older_records
from workflow.other_runs import SEED, read_runs, tolerance_of

OPEN = "no verdict yet"
SHOWN = 4  # changed files of a record
INTRODUCTION = """# Claims

HEADLINE

These are statements of the papers' examples, theorems, tables and evaluations. A statement that is made in two places
counts once; statements about our own methods are counted apart. We could not compare plots, because the texts that we
read have no pictures. Of [4] only the abstract and the supplement were accessible. Each statement has our number and a
verdict:

- **reproduced**: our number agrees with the paper's statement;
- **reproduced with an erratum**: it agrees once a misprint is corrected or a condition added; see
  [errata.md](errata.md);
- **in part**: part of the statement holds, and the table says which;
- **not reproduced**: our number disagrees, and the table says why;
- **not checkable here**: nothing here decides the statement, and the table says why.

The statements and their predicates are in `docs/claims/<paper>.yaml`; `make claims` evaluates the predicates on the
published records in `figures/`, runs the tests that decide statements, and renders these pages. Numbers in brackets
after our number are its interval over repeats; "printed: 8 ± 1" is the paper's number with the difference that we
allow. If the paper leaves a choice open, such as a threshold, the statement is judged at several values of it, and the
verdict says at which values it holds. Where the numbers moved in a run with another seed, the verdict says how far. A
claim has no verdict unless its record is of the paper profile and computed from unmodified code, or its tests pass.
`make claims-mutate` changes the records or the code and shows which verdicts notice it.
"""


def render(records=None, profile="paper", root=ROOT, outcomes=None):
    """Pages by path, and one sentence for each claim without a verdict; the arguments are those of `judge_all`."""
    contents, judged, problems = judge_all(records, profile, root, outcomes)
    pages = {"docs/claims.md": _overview(contents, judged)}
    for page, content in contents.items():
        found = {claim.id: (claim, verdict) for of_page, claim, verdict in judged if of_page == page}
        pages[f"docs/claims/{page}.md"] = _page(content, found, head_of(page), root, _moved(page, root))
    return pages | ({} if records is not None else artifact.render(judged, root)), problems


def judge_all(records=None, profile="paper", root=ROOT, outcomes=None):
    """Contents by page, (page, claim, verdict or None) for each claim, and one sentence for each without a verdict.

    A folder of `records` is a trial. `outcomes` of the tests that decide claims are those of
    `workflow.claim_tests` by default.
    """
    trial, records = records is not None, Path(records or root / "figures")
    contents = {path.stem: read_claims(path) for path in sorted((root / "docs" / "claims").glob("*.yaml"), key=_order)}
    stated = [(page, claim) for page, content in contents.items() for claim in claims_of(content)]
    if outcomes is None:
        outcomes = outcomes_of([test for _, claim in stated for test in claim.tests], root)
    problems, judged = [], []
    for page, claim in stated:
        verdict = None
        try:
            found = judge(claim, _record(claim, records, profile, trial, root) if claim.record else None, outcomes)
            if trial and claim.record:
                _agree(claim, found, root)
            verdict = found
        except ClaimError as problem:
            problems.append(f"{page}: {problem}")
        except NotJudgedError:
            pass
        judged.append((page, claim, verdict))
    return contents, judged, problems + _disagreements(judged)


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
    """The page with the counts: the papers' statements, those that two papers share once, and ours apart."""
    heads = ["statements of", "in all", *KINDS, OPEN]
    rows, papers, ours = [], [], []
    for page, content in contents.items():
        of_page = [(claim, verdict) for name, claim, verdict in judged if name == page]
        if head_of(page) == "the paper":
            chosen = [(claim, verdict) for claim, verdict in of_page if claim.about == "the paper"]
            papers += [(claim, verdict) for claim, verdict in chosen if claim.same_as is None]
            ours += [(claim, verdict) for claim, verdict in of_page if claim.about == "ours"]
            rows.append(counted(f"[{content['title']}](claims/{page}.md)", chosen))
    rows.append(counted("**the papers, shared statements once**", papers))
    if ours:
        rows.append(counted("our own results on the papers' pages", ours))
    for page, content in contents.items():
        if head_of(page) != "the paper":
            chosen = [(claim, verdict) for name, claim, verdict in judged if name == page]
            rows.append(counted(f"[{content['title']}](claims/{page}.md)", chosen))
    if not any(row[-1] for row in rows):
        heads, rows = heads[:-1], [row[:-1] for row in rows]
    return INTRODUCTION.replace("HEADLINE", _headline(papers)) + f"\n{markdown_table(heads, rows)}\n"


def counted(title, claims):
    """A row of the overview: title, number of claims, and number by verdict."""
    counts = _counts(claims)
    return [title, str(len(claims)), *(str(counts[kind] or "") for kind in (*KINDS, OPEN))]


def _counts(claims):
    return Counter(verdict.kind if verdict else OPEN for _, verdict in claims)


def _in_words(counts):
    words = [f"{counts[kind]} {kind}" for kind in KINDS if counts[kind]]
    return ", ".join(words + ([f"{counts[OPEN]} with {OPEN}"] if counts[OPEN] else []))


def _headline(papers):
    return f"**Of the {len(papers)} statements of the papers that we found: {_in_words(_counts(papers))}.**"


class NotJudgedError(Exception):
    """A claim that a trial at this profile does not judge."""


def main(arguments=None):
    """Evaluate the claims on the published records and render their pages."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--records", help="folder of the records to try, in place of the published ones")
    parser.add_argument("--profile", default="paper", help="profile that the records must have")
    options = parser.parse_args(arguments)
    pages, problems = render(options.records, options.profile)
    folder = ROOT / "build" / "claims" if options.records else ROOT
    for name, text in pages.items():
        write_whole(folder / name, text.encode())
    for problem in problems:
        print(problem, file=sys.stderr)
    place = " in build/claims" if options.records else ""
    if not options.records:
        for name, parts in older_records().items():
            print(f"figures/{name} is older than its code: {', '.join(parts[:SHOWN])}{', ...' * (len(parts) > SHOWN)}")
    print(f"{len(pages)} pages rendered{place}; {len(problems)} problems")
    return 1 if problems else 0


def _order(path):
    """In the order of the papers in the README; claims of our own notebooks come last."""
    papers = ["tkde2019", "icde2017", "sip2023", "eventlog2022", "dphmm2016"]
    return (papers.index(path.stem) if path.stem in papers else len(papers), path.stem)


def _reads_data(name, root):
    """Whether the notebook of a record reads a data set, so that synthetic data stand in for recorded ones."""
    notebooks = read_notebooks(root)
    owner = notebooks.get(owner_of(name, notebooks))
    return owner is None or bool(owner.data)


def _record(claim, records, profile, trial, root):
    """The record of a claim, if it may be judged by it."""
    path = records / f"{claim.record}.json"
    if not path.is_file():
        raise ClaimError(f"{claim.id}: must have a record {claim.record}.json, found none; publish the paper profile's")
    record = json.loads(path.read_text(encoding="utf-8"))
    if record["profile"] != profile:
        raise ClaimError(
            f"{claim.id}: the record {claim.record}.json must be of the profile {profile}, found {record['profile']}; "
            f"run make figures PROFILE={profile} and publish"
        )
    if not trial and record["data"].startswith("synthetic") and _reads_data(claim.record, root):
        raise ClaimError(
            f"{claim.id}: the record {claim.record}.json is from synthetic data; set TPLREPRO_DATA, run again"
        )
    if not trial and not from_committed_code(record):
        raise ClaimError(f"{claim.id}: the record {claim.record}.json is from modified code; commit and run it again")
    if profile != "paper" and not claim.quick:
        raise NotJudgedError
    return record


def _agree(claim, verdict, root):
    """A trial's verdict must equal that on the published record, if there is one."""
    try:
        published = judge(claim, _record(claim, root / "figures", "paper", False, root))
    except ClaimError:
        return
    if published.kind != verdict.kind:
        raise ClaimError(
            f"{claim.id}: {verdict.kind} here ({verdict.ours}), published as {published.kind} ({published.ours}); "
            "look which is right, or drop quick"
        )


def _moved(page, root):
    """By claim of a page, how far its numbers moved with another seed."""
    claims = read_runs(root).get(SEED, {})
    return {key.removeprefix(f"{page}#"): value for key, value in claims.items() if key.startswith(f"{page}#")}


def _page(content, found, head, root, moved):
    notebooks = read_notebooks(root)
    parts = [f"# Claims of {content['title']}", content["introduction"].strip()]
    papers = [pair for pair in found.values() if pair[0].about == "the paper"]
    ours = [pair for pair in found.values() if pair[0].about == "ours"]
    summary = f"**Summary.** Of {len(papers)} statements: {_in_words(_counts(papers))}."
    if ours:
        summary += f" Of {len(ours)} about our own methods: {_in_words(_counts(ours))}."
    parts.append(summary)
    for section in content["sections"]:
        parts.append(f"## {section['title']}")
        if "text" in section:
            parts.append(section["text"].strip())
        rows = [_row(claim, found[claim.id][1], notebooks, moved.get(claim.id)) for claim in section["claims"]]
        if rows:
            parts.append(markdown_table((head, "ours", "decided by", "verdict"), rows))
    parts.append(content.get("end", "").strip())
    return "\n\n".join(part for part in parts if part) + "\n"


def _row(claim, verdict, notebooks, moved):
    """Cells of one claim; links are relative to the page."""
    if claim.record:
        owner = owner_of(claim.record, notebooks)
        if owner is None:
            raise ClaimError(f"{claim.id}: no notebook makes {claim.record!r}; see config/notebooks.yaml")
        by = f"[{claim.record}](../../notebooks/{notebooks[owner].notebook}.ipynb)"
    else:
        by = ", ".join(
            f'[{Path(file).name}](../../{file} "{name}")' for file, _, name in (t.partition("::") for t in claim.tests)
        )
        if claim.breaks:
            by += f"; fails if `{claim.breaks['from']}` becomes `{claim.breaks['to']}` in `{claim.breaks['in']}`"
    words = OPEN if verdict is None else verdict.words
    if claim.invariant:
        words += f". No change of single numbers alters this verdict: {claim.invariant}"
    if tolerance := tolerance_of(moved):
        words += f". Its numbers: {tolerance}"
    if claim.erratum:
        words += f" ([erratum](../{claim.erratum}))"
    place = f"{claim.place} (ours)" if claim.about == "ours" else claim.place
    return f'<a id="{claim.id}"></a>{place}: {claim.statement}', verdict.ours if verdict else "", by, words


if __name__ == "__main__":
    sys.exit(main())
