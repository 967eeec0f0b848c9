"""Verdicts on all claims of docs/claims/<paper>.yaml, by the published records or by those of
another batch."""

import subprocess
import sys
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

from experiments.claims import Claim, ClaimError, Kind, Verdict, claims_of, judge, read_claims
from workflow.configuration import (
    PAPERS,
    ROOT,
    Notebook,
    read_json,
    read_notebooks,
    why_no_evidence,
)

# From the best to the worst: a test with several cases has the worst of theirs.
OUTCOMES = ("passed", "skipped", "failed")
#: Every test, the slow ones too, and reports that name the file of each.
PYTEST_OPTIONS = (
    *("-p", "no:nbval", "-p", "no:cacheprovider", "-q"),
    *("-m", "", "-o", "junit_family=xunit1"),
)


class Judged(NamedTuple):
    """A claim, the page that it stands on, and its verdict, if it has one."""

    page: str
    claim: Claim
    verdict: Verdict | None


@dataclass(frozen=True)
class Evidence:
    """The records by which claims are judged."""

    records: Path  # their folder
    profile: str  # that they must have
    notebooks: Mapping[str, Notebook]
    published: Path | None = None  # of a trial, the folder of the records to compare with

    @property
    def is_trial(self) -> bool:
        return self.published is not None

    def record_of(self, claim: Claim) -> dict[str, Any]:
        """The record of a claim; ClaimError if it has none, or one that does not count."""
        name = f"{claim.record}.json"
        record = read_json(self.records / name)
        if not record:
            raise ClaimError(
                f"{claim.id}: must have a record {name}, found none; publish the paper profile's"
            )
        if record["profile"] != self.profile:
            raise ClaimError(
                f"{claim.id}: the record {name} must be of the profile {self.profile}, "
                f"found {record['profile']}; run make figures PROFILE={self.profile} and publish"
            )
        why = None
        if not self.is_trial:
            why = why_no_evidence(str(claim.record), record, self.notebooks)
        if why:
            raise ClaimError(f"{claim.id}: the record {name} {why}")
        return record

    def judge(self, claim: Claim, outcomes: Mapping[str, str]) -> Verdict | None:
        """The verdict on a claim by its record and the outcomes of tests; None for a claim that
        means nothing at this profile's sizes."""
        record = None
        if claim.record:
            record = self.record_of(claim)
        if self.profile != "paper" and claim.record and not claim.quick:
            return None
        verdict = judge(claim, record, outcomes)
        if self.published is not None and claim.record:
            published = Evidence(self.published, "paper", self.notebooks)
            published.require_same_verdict(claim, verdict)
        return verdict

    def require_same_verdict(self, claim: Claim, found: Verdict) -> None:
        """ClaimError if these records have another verdict than the one found in a trial."""
        try:
            published = judge(claim, self.record_of(claim))
        except ClaimError:
            return
        if published.kind != found.kind:
            raise ClaimError(
                f"{claim.id}: {found.kind} here ({found.ours}), published as {published.kind} "
                f"({published.ours}); look which is right, or drop quick"
            )


def read_pages(root: Path = ROOT) -> dict[str, dict[str, Any]]:
    """Contents of the pages: the papers in the order of the README, then those of our own
    notebooks."""
    paths = {path.stem: path for path in sorted((root / "docs" / "claims").glob("*.yaml"))}
    return {name: read_claims(paths[name]) for name in sorted(paths, key=list(PAPERS).index)}


def judge_all(
    records: Path | str | None = None,
    profile: str = "paper",
    root: Path = ROOT,
    outcomes: Mapping[str, str] | None = None,
) -> tuple[dict[str, dict[str, Any]], list[Judged], list[str]]:
    """Judge every claim of every page.

    Parameters
    ----------
    records : Path or str, optional
        The folder of records to try; by default the published ones.
    profile : str
        The profile that the records must have.
    root : Path
        The repository.
    outcomes : mapping, optional
        Outcomes of the tests that decide claims, by name; by default those tests are run.

    Returns
    -------
    contents : dict
        By page.
    judged : list of Judged
        In the order of the pages.
    problems : list of str
        One sentence for each claim without a verdict.
    """
    contents = read_pages(root)
    stated = [(page, claim) for page, content in contents.items() for claim in claims_of(content)]
    if outcomes is None:
        outcomes = outcomes_of([test for _, claim in stated for test in claim.tests], root)
    published = root / "figures"
    evidence = Evidence(published, profile, read_notebooks(root))
    if records is not None:
        evidence = replace(evidence, records=Path(records), published=published)
    judged = []
    problems = []
    for page, claim in stated:
        verdict = None
        try:
            verdict = evidence.judge(claim, outcomes)
        except ClaimError as problem:
            problems.append(f"{page}: {problem}")
        judged.append(Judged(page, claim, verdict))
    return contents, judged, problems + find_disagreements(judged)


def find_disagreements(judged: Sequence[Judged]) -> list[str]:
    """A sentence for each statement that two papers share and that has two verdicts, and for each
    `same_as` that names no claim."""
    kinds: dict[str, Kind | None] = {}
    for page, claim, verdict in judged:
        kinds[f"{page}#{claim.id}"] = None
        if verdict is not None:
            kinds[f"{page}#{claim.id}"] = verdict.kind
    problems = []
    for page, claim, verdict in judged:
        if claim.same_as is None or verdict is None:
            continue
        if claim.same_as not in kinds:
            problems.append(
                f"{page}: {claim.id}: same_as must name a claim, found {claim.same_as!r}; "
                "correct it"
            )
        elif kinds[claim.same_as] not in (None, verdict.kind):
            there = f"{kinds[claim.same_as]} as {claim.same_as}"
            problems.append(
                f"{page}: {claim.id}: {verdict.kind} here, {there}; look which is right"
            )
    return problems


def outcomes_of(names: Collection[str], root: Path = ROOT) -> dict[str, str]:
    """Run tests; the outcomes of those that are there, by name ("passed" only if every case is)."""
    if not names:
        return {}
    print(f"running the {len(set(names))} tests that decide claims", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        pytest = [sys.executable, "-m", "pytest", *PYTEST_OPTIONS]
        command = [*pytest, f"--junitxml={report}", *sorted(set(names))]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True)
        if done.returncode > 1:  # tests that are not there, or cannot be imported
            print(done.stdout[-2000:] + done.stderr[-2000:], file=sys.stderr)
        if not report.is_file():
            return {}
        outcomes: dict[str, str] = {}
        for case in ElementTree.parse(report).iter("testcase"):
            function = case.get("name", "").partition("[")[0]
            test = f"{case.get('file')}::{function}"
            if test in names:
                both = (outcome_of_case(case), outcomes.get(test, "passed"))
                outcomes[test] = max(both, key=OUTCOMES.index)
    return outcomes


def outcome_of_case(case: ElementTree.Element) -> str:
    """The outcome of one case of a test in pytest's report."""
    tags = {part.tag for part in case}
    if tags & {"failure", "error"}:
        return "failed"
    if "skipped" in tags:
        return "skipped"
    return "passed"
