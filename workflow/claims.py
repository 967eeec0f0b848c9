"""Render the claims pages, docs/claims.md and docs/claims/<paper>.md, from docs/claims/<paper>.yaml and the records.

It also writes the texts of `workflow.artifact`: ARTIFACT.md, codecheck.yml, a part of REPRODUCING.md.

A claim whose record is missing, of another profile than the paper's, from modified code or from synthetic
data has no verdict, and the exit status is then 1. ``--records build/quick/figures --profile quick`` is a
trial: it judges the records of a batch by the claims that are marked ``quick``, whose verdicts must be the
published ones, allows modified code, and writes below ``build/claims``.
"""

import argparse
import json
import sys
from collections import Counter
from pathlib import Path

from experiments.claims import KINDS, ClaimError, claims_of, head_of, judge, markdown_table, read_claims
from tplrepro.files import write_whole
from workflow import artifact
from workflow.configuration import ROOT, from_committed_code, owner_of, read_notebooks

OPEN = "no verdict yet"
INTRODUCTION = """# Claims

The statements of the papers' examples, theorems, tables and evaluations, each with our number and a verdict:

- **reproduced**: our number agrees with the paper's statement;
- **reproduced with an erratum**: it agrees after correction of a misprint listed in [errata.md](errata.md);
- **in part**: part of the statement holds, and the table says which;
- **not reproduced**: our number disagrees, and the table says why;
- **not checkable here**: nothing here decides the statement, and the table says why.

The statements and their predicates are in `docs/claims/<paper>.yaml`; `make claims` evaluates the predicates on the
published records in `figures/` and renders these pages. Numbers in brackets after our number are its interval over
repeats. A claim has no verdict unless its record is of the paper profile and computed from unmodified code.
"""


def render(records=None, profile="paper", root=ROOT):
    """Pages by path, and one sentence for each claim without a verdict; a folder of `records` is a trial."""
    trial, records = records is not None, Path(records or root / "figures")
    pages, problems, overview, judged = {}, [], [], []
    for path in sorted((root / "docs" / "claims").glob("*.yaml"), key=_order):
        content = read_claims(path)
        claims = claims_of(content)
        found = {}
        for claim in claims:
            try:
                found[claim.id] = judge(claim, _record(claim, records, profile, trial) if claim.record else None)
                if trial and claim.record:
                    _agree(claim, found[claim.id], root)
            except ClaimError as problem:
                problems.append(f"{path.stem}: {problem}")
            except NotJudgedError:
                pass
        judged += [(path.stem, claim, found.get(claim.id)) for claim in claims]
        counts = Counter(found[claim.id].kind if claim.id in found else OPEN for claim in claims)
        pages[f"docs/claims/{path.stem}.md"] = _page(content, found, counts, head_of(path.stem), root)
        cells = [str(counts[kind] or "") for kind in (*KINDS, OPEN)]
        overview.append([f"[{content['title']}](claims/{path.stem}.md)", str(len(claims)), *cells])
    heads = ["claims of", "in all", *KINDS, OPEN]
    if not any(row[-1] for row in overview):
        heads, overview = heads[:-1], [row[:-1] for row in overview]
    sums = [str(sum(int(row[column] or 0) for row in overview)) for column in range(1, len(heads))]
    pages["docs/claims.md"] = f"{INTRODUCTION}\n{markdown_table(heads, [*overview, ['all', *sums]])}\n"
    return pages | ({} if trial else artifact.render(judged, root)), problems


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
    print(f"{len(pages)} pages rendered{place}; {len(problems)} problems")
    return 1 if problems else 0


def _order(path):
    """In the order of the papers in the README; claims of our own notebooks come last."""
    papers = ["tkde2019", "icde2017", "sip2023", "eventlog2022", "dphmm2016"]
    return (papers.index(path.stem) if path.stem in papers else len(papers), path.stem)


def _record(claim, records, profile, trial):
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
    if not trial and record["data"] == "synthetic":
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
        published = judge(claim, _record(claim, root / "figures", "paper", trial=False))
    except ClaimError:
        return
    if published.kind != verdict.kind:
        raise ClaimError(
            f"{claim.id}: {verdict.kind} here ({verdict.ours}), published as {published.kind} ({published.ours}); "
            "look which is right, or drop quick"
        )


def _page(content, verdicts, counts, head, root):
    notebooks = read_notebooks(root)
    summary = [f"{counts[kind]} {kind}" for kind in KINDS if counts[kind]]
    if counts[OPEN]:
        summary.append(f"{counts[OPEN]} with {OPEN}")
    parts = [f"# Claims of {content['title']}", content["introduction"].strip()]
    parts.append(f"**Summary.** Of {sum(counts.values())} statements: {', '.join(summary)}.")
    for section in content["sections"]:
        parts.append(f"## {section['title']}")
        if "text" in section:
            parts.append(section["text"].strip())
        rows = [_row(claim, verdicts.get(claim.id), notebooks) for claim in section["claims"]]
        if rows:
            parts.append(markdown_table((head, "ours", "decided by", "verdict"), rows))
    parts.append(content.get("end", "").strip())
    return "\n\n".join(part for part in parts if part) + "\n"


def _row(claim, verdict, notebooks):
    """Cells of one claim; links are relative to the page."""
    if claim.record:
        owner = owner_of(claim.record, notebooks)
        if owner is None:
            raise ClaimError(f"{claim.id}: no notebook makes {claim.record!r}; see config/notebooks.yaml")
        by = f"[{claim.record}](../../notebooks/{notebooks[owner].notebook}.ipynb)"
    else:
        tests = [claim.test] if isinstance(claim.test, str) else claim.test or []
        by = ", ".join(
            f'[{Path(file).name}](../../{file} "{name}")' for file, _, name in (t.partition("::") for t in tests)
        )
    words = OPEN if verdict is None else verdict.words
    if claim.erratum:
        words += f" ([erratum](../{claim.erratum}))"
    return f'<a id="{claim.id}"></a>{claim.place}: {claim.statement}', verdict.ours if verdict else "", by, words


if __name__ == "__main__":
    sys.exit(main())
