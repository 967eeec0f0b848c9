"""Change records, or code, on purpose, and see which claims notice: ``make claims-mutate``.

Each number of a claim is changed alone by every mutation that its form admits, and two numbers of the same
form are swapped; the claim is then judged again. It notices if its verdict changes, or the values of a swept
choice at which it holds, or if it can no longer be judged. A claim that notices nothing must say why in its
field ``invariant``. ``--code`` makes the change in the field ``breaks`` of each claim that tests decide, in a
copy of the repository, and runs these tests: one of them must fail.
"""

import argparse
import copy
import itertools
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np

from experiments.claims import ClaimError, claims_of, judge, paths_of, recorded
from experiments.provenance import ROOTS
from workflow.claim_tests import outcomes_of
from workflow.configuration import ROOT, records_in
from workflow.judging import read_pages

# The largest share of the claims decided by records that may notice nothing.
ALLOWED_SHARE = 0.05


def _scaled(value, factor):
    if isinstance(value, dict):
        ends = {name: value[name] * factor for name in ("value", "low", "high") if name in value}
        return value | ends
    if isinstance(value, list):
        return [_scaled(part, factor) for part in value]
    return float(value) * factor


def _flattened(values):
    try:
        return np.broadcast_to(np.mean(np.asarray(values, dtype=float), axis=0), np.shape(values)).tolist()
    except (TypeError, ValueError):  # texts, intervals, or series of different lengths
        return [values[0]] * len(values)


# Of any number, and of each entry of a series.
MUTATIONS = {
    "halve": lambda value: _scaled(value, 0.5),
    "double": lambda value: _scaled(value, 2.0),
    "10 % up": lambda value: _scaled(value, 1.1),
    "10 % down": lambda value: _scaled(value, 0.9),
    "make finite": lambda value: np.nan_to_num(np.asarray(value, dtype=float), posinf=1000.0).tolist(),
}
# Of a series alone.
OF_SERIES = {
    "swap the ends": lambda values: [values[-1], *values[1:-1], values[0]],
    "reverse": lambda values: values[::-1],
    "shuffle": lambda values: [values[place] for place in np.random.default_rng(0).permutation(len(values))],
    "flatten": _flattened,
}


def mutants(value):
    """Names and results of the mutations that change a value of a record."""
    if isinstance(value, bool):
        return {"negate": not value}
    is_series = isinstance(value, list) and len(value) > 1
    results = {}
    for name, mutation in (MUTATIONS | (OF_SERIES if is_series else {})).items():
        try:
            results[name] = mutation(value)
        except (TypeError, ValueError):  # a text has no half
            continue
    return {name: result for name, result in results.items() if result != value}


def mutate(claim, record):
    """What was changed, and whether the claim notices it, for every change of its numbers."""
    before = _judged(claim, record)
    values = {name: recorded(claim, name, record) for name in claim.numbers or {}}
    changes = [(f"{words} {name}", {name: value}) for name in values for words, value in mutants(values[name]).items()]
    for one, other in itertools.combinations(values, 2):
        alike = type(values[one]) is type(values[other]) and np.shape(values[one]) == np.shape(values[other])
        if alike and values[one] != values[other]:
            changes.append((f"swap {one}, {other}", {one: values[other], other: values[one]}))
    return [(words, _judged(claim, _changed(claim, record, change)) != before) for words, change in changes]


def _changed(claim, record, change):
    """The record with other values of the claim's numbers."""
    record = copy.deepcopy(record)
    for name, value in change.items():
        parts = value if isinstance(claim.numbers[name], dict) else [value]
        for (*keys, last), part in zip(paths_of(claim, name), parts, strict=True):
            place = record["results"]
            for key in keys:
                place = place[key]
            place[last] = part
    return record


def _judged(claim, record):
    try:
        verdict = judge(claim, record)
    except ClaimError:
        return None
    return verdict.kind, verdict.holding


def report(root=ROOT):
    """The claims that notice nothing, as text, and a sentence for each whose ``invariant`` is missing or wrong."""
    decided, changes, unaware, problems, records = 0, 0, [], [], records_in(root / "figures")
    stated = [(page, claim) for page, content in read_pages(root).items() for claim in claims_of(content)]
    for page, claim in stated:
        if not claim.by_record:
            continue
        try:
            judge(claim, records[claim.record])
        except ClaimError as problem:
            problems.append(f"{page}: {problem}")
            continue
        noticed = [notices for _, notices in mutate(claim, records[claim.record])]
        decided, changes = decided + 1, changes + len(noticed)
        if not any(noticed):
            unaware.append(f"- {page}#{claim.id}: {claim.invariant or 'NO REASON'}")
        if any(noticed) and claim.invariant:
            problems.append(f"{page}: {claim.id}: notices a change; drop invariant")
        if not any(noticed) and not claim.invariant:
            remedy = "sharpen its predicate, or say why in invariant"
            problems.append(f"{page}: {claim.id}: notices no change; {remedy}")
    count = f"{changes} changes: {len(unaware)} of {decided} claims that records decide notice nothing"
    if len(unaware) > ALLOWED_SHARE * decided:
        problems.append(
            f"at most {ALLOWED_SHARE:.0%} of the claims may notice nothing, found {len(unaware)} of {decided}"
        )
    return "\n".join([count, *unaware]), problems


def break_code(root=ROOT, only=()):
    """A sentence for each claim decided by tests whose change of code is missing or makes none fail."""
    problems = []
    stated = [(page, claim) for page, content in read_pages(root).items() for claim in claims_of(content)]
    for page, claim in stated:
        if not claim.tests or (only and f"{page}#{claim.id}" not in only):
            continue
        problem = "must have breaks, found none; say which change of code makes a test fail"
        if claim.breaks:
            problem = _problem_of(claim, root)
        print(f"{page}: {claim.id}: {problem or 'a test fails after the change'}", flush=True)
        problems += [f"{page}: {claim.id}: {problem}"] if problem else []
    return problems


def _problem_of(claim, root):
    """Run a claim's tests in a changed copy of the repository; what is wrong with the change, or None."""
    code = (root / claim.breaks["in"]).read_text(encoding="utf-8")
    if code.count(claim.breaks["from"]) != 1:
        return f"{claim.breaks['in']} must have {claim.breaks['from']!r} once; correct breaks"
    with tempfile.TemporaryDirectory() as folder:
        for part in (*ROOTS, "tests", "workflow"):
            shutil.copytree(root / part, Path(folder) / part)  # with compiled kernels
        for part in ("pyproject.toml", "config", "docs", "figures", "notebooks", "data"):
            (Path(folder) / part).symlink_to(root / part)
        changed = code.replace(claim.breaks["from"], claim.breaks["to"])
        (Path(folder) / claim.breaks["in"]).write_text(changed, encoding="utf-8")
        outcomes = outcomes_of(claim.tests, Path(folder))
    if "failed" not in outcomes.values():
        return f"a test must fail after the change in breaks, found {outcomes}; correct breaks"
    return None


def main(arguments=None):
    """Change records, or code, and print which claims notice nothing."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--code", action="store_true", help="change the code, in place of the records")
    parser.add_argument("--only", nargs="*", default=(), help="claims such as tkde2019#theorem-1")
    options = parser.parse_args(arguments)
    if options.code:
        problems = break_code(only=options.only)
    else:
        text, problems = report()
        print(text)
    print(*problems, sep="\n", end="\n" * bool(problems), file=sys.stderr)
    print(f"{len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
