"""Verdicts on all claims of docs/claims/<paper>.yaml, by the published records or by those of
another batch."""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from experiments.claims import Claim, ClaimError, Verdict, claims_of, judge, read_claims
from workflow.configuration import PAPERS, ROOT, read_json, read_notebooks, why_no_evidence


class Judged(NamedTuple):
    """A claim, the page that it stands on, and its verdict, if it has one."""

    page: str
    claim: Claim
    verdict: Verdict | None


def read_pages(root=ROOT):
    """Contents of the pages: the papers in the order of the README, then those of our own
    notebooks."""
    paths = {path.stem: path for path in sorted((root / "docs" / "claims").glob("*.yaml"))}
    return {name: read_claims(paths[name]) for name in sorted(paths, key=list(PAPERS).index)}


def judge_all(records=None, profile="paper", root=ROOT, outcomes=None):
    """Contents by page, each claim as `Judged`, and one sentence for each without a verdict.

    A folder of `records` is a trial. `outcomes` of the tests that decide claims are those of
    `outcomes_of` by default.
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
            record = (
                _record(claim, folder, profile, None if trial else notebooks)
                if claim.record
                else None
            )
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
        raise ClaimError(
            f"{claim.id}: must have a record {claim.record}.json, found none; publish the paper profile's"
        )
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
            problems.append(
                f"{page}: {claim.id}: same_as must name a claim, found {claim.same_as!r}; correct it"
            )
        elif kinds[claim.same_as] not in (None, verdict.kind):
            there = f"{kinds[claim.same_as]} as {claim.same_as}"
            problems.append(
                f"{page}: {claim.id}: {verdict.kind} here, {there}; look which is right"
            )
    return problems


def outcomes_of(names, root=ROOT):
    """Outcomes of these tests by name: "passed" only if every case passed; a test that is not there
    has none."""
    outcomes, order = {}, ("passed", "skipped", "failed")
    if not names:
        return outcomes
    print(f"running the {len(set(names))} tests that decide claims", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        options = [
            "-p",
            "no:nbval",
            "-p",
            "no:cacheprovider",
            "-q",
            "-m",
            "",
            "-o",
            "junit_family=xunit1",
        ]
        command = [
            sys.executable,
            "-m",
            "pytest",
            *options,
            f"--junitxml={report}",
            *sorted(set(names)),
        ]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True)
        if done.returncode > 1:  # tests that are not there, or cannot be imported
            print(done.stdout[-2000:] + done.stderr[-2000:], file=sys.stderr)
        cases = ElementTree.parse(report).iter("testcase") if report.is_file() else ()
        for case in cases:
            found = {part.tag for part in case}
            outcome = (
                "failed"
                if found & {"failure", "error"}
                else "skipped"
                if "skipped" in found
                else "passed"
            )
            test = f"{case.get('file')}::{case.get('name').partition('[')[0]}"
            if test in names:
                outcomes[test] = max(outcome, outcomes.get(test, "passed"), key=order.index)
    return outcomes
