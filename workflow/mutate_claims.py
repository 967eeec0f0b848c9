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
import json
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np

from experiments.claims import ClaimError, claims_of, judge, markdown_table, paths_of, read_claims, recorded
from experiments.provenance import ROOTS
from workflow.claim_tests import run_tests
from workflow.configuration import ROOT

#: The largest share of the claims decided by records that may notice nothing.
ALLOWED_SHARE = 0.05


def _scaled(value, factor):
    if isinstance(value, dict):
        return {
            name: _scaled(part, factor) if name in ("value", "low", "high") else part for name, part in value.items()
        }
    if isinstance(value, list):
        return [_scaled(part, factor) for part in value]
    return float(value) * factor


def _shuffled(values):
    return [values[place] for place in np.random.default_rng(0).permutation(len(values))]


def _flattened(values):
    try:
        return np.broadcast_to(np.mean(np.asarray(values, dtype=float), axis=0), np.shape(values)).tolist()
    except (TypeError, ValueError):  # texts, intervals, or series of different lengths
        return [values[0]] * len(values)


def _made_finite(value):
    return np.nan_to_num(np.asarray(value, dtype=float), posinf=1000.0).tolist()


#: Of any number, and of each entry of a series.
MUTATIONS = {
    "halve": lambda value: _scaled(value, 0.5),
    "double": lambda value: _scaled(value, 2.0),
    "10 % up": lambda value: _scaled(value, 1.1),
    "10 % down": lambda value: _scaled(value, 0.9),
    "make finite": _made_finite,
}
#: Of a series alone.
OF_SERIES = {
    "swap the ends": lambda values: [values[-1], *values[1:-1], values[0]],
    "reverse": lambda values: values[::-1],
    "shuffle": _shuffled,
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
    return {name: result for name, result in results.items() if not _same(result, value)}


def mutate(claim, record):
    """What was changed, and whether the claim notices it, for every change of its numbers."""
    before = _judged(claim, record)
    values = {name: recorded(claim, name, record) for name in claim.numbers or {}}
    changes = [({name: value}, f"{words} {name}") for name in values for words, value in mutants(values[name]).items()]
    for one, other in itertools.combinations(values, 2):
        alike = type(values[one]) is type(values[other]) and np.shape(values[one]) == np.shape(values[other])
        if alike and not _same(values[one], values[other]):
            changes.append(({one: values[other], other: values[one]}, f"swap {one}, {other}"))
    noticed = []
    for change, words in changes:
        mutant = copy.deepcopy(record)
        for name, value in change.items():
            paths = paths_of(claim, name)
            for path, part in zip(paths, value if isinstance(claim.numbers[name], dict) else [value], strict=True):
                _at(mutant["results"], path[:-1])[path[-1]] = part
        noticed.append((words, _judged(claim, mutant) != before))
    return noticed


def report(root=ROOT):
    """The report in Markdown, and one sentence for each claim whose field ``invariant`` is missing or wrong."""
    rows, unaware, problems = [], [], []
    for path in sorted((root / "docs" / "claims").glob("*.yaml")):
        claims = [claim for claim in claims_of(read_claims(path)) if claim.by_record]
        found = []
        for claim in claims:
            record = json.loads((root / "figures" / f"{claim.record}.json").read_text(encoding="utf-8"))
            try:
                judge(claim, record)
            except ClaimError as problem:
                problems.append(f"{path.stem}: {problem}")
                continue
            noticed = mutate(claim, record)
            found.append(noticed)
            aware = any(notices for _, notices in noticed)
            if not aware:
                unaware.append(f"- {path.stem}#{claim.id}: {claim.invariant or 'NO REASON'}")
            if aware == bool(claim.invariant):
                remedy = "drop invariant" if aware else "sharpen its predicate, or say why in invariant"
                problems.append(f"{path.stem}: {claim.id}: notices {'a' if aware else 'no'} change; {remedy}")
        none = sum(not any(notices for _, notices in noticed) for noticed in found)
        every = [notices for noticed in found for _, notices in noticed]
        rows.append([path.stem, len(found), none, len(every), sum(every)])
    sums = ["all", *(sum(row[column] for row in rows) for column in range(1, 5))]
    heads = ("claims of", "decided by records", "notice nothing", "changes", "noticed")
    table = markdown_table(heads, [[str(cell) for cell in row] for row in [*rows, sums]])
    share = sums[2] / max(sums[1], 1)
    words = f"{share:.1%} of the claims notice nothing; at most {ALLOWED_SHARE:.0%} may."
    if share > ALLOWED_SHARE:
        problems.append(words)
    return "\n".join([table, "", words, *unaware]), problems


def break_code(root=ROOT, only=()):
    """One sentence for each claim decided by tests whose change of code is missing or makes none of them fail."""
    problems = []
    for path in sorted((root / "docs" / "claims").glob("*.yaml")):
        for claim in claims_of(read_claims(path)):
            if not claim.tests or (only and f"{path.stem}#{claim.id}" not in only):
                continue
            name = f"{path.stem}: {claim.id}"
            if not claim.breaks:
                problems.append(f"{name}: must have breaks, found none; say which change of code makes a test fail")
                continue
            code = (root / claim.breaks["in"]).read_text(encoding="utf-8")
            if code.count(claim.breaks["from"]) != 1:
                problems.append(f"{name}: {claim.breaks['in']} must have {claim.breaks['from']!r} once; correct breaks")
                continue
            outcomes = _outcomes_after(claim, code, root)
            print(f"{name}: {outcomes}", flush=True)
            if "failed" not in outcomes.values():
                problems.append(
                    f"{name}: a test must fail after the change in breaks, found {outcomes}; correct breaks"
                )
    return problems


def _outcomes_after(claim, code, root):
    """Outcomes of the claim's tests in a copy of the repository with the change."""
    with tempfile.TemporaryDirectory() as folder:
        for part in (*ROOTS, "tests", "workflow"):
            shutil.copytree(root / part, Path(folder) / part)  # with compiled kernels
        for part in ("pyproject.toml", "config", "docs", "figures", "notebooks", "data"):
            (Path(folder) / part).symlink_to(root / part)
        changed = code.replace(claim.breaks["from"], claim.breaks["to"])
        (Path(folder) / claim.breaks["in"]).write_text(changed, encoding="utf-8")
        return run_tests(claim.tests, Path(folder))


def _judged(claim, record):
    try:
        verdict = judge(claim, record)
    except ClaimError:
        return None
    return verdict.kind, verdict.holding


def _at(value, keys):
    for key in keys:
        value = value[key]
    return value


def _same(one, other):
    if isinstance(one, float | int | list) and isinstance(other, float | int | list):
        return np.array_equal(np.array(one, dtype=object), np.array(other, dtype=object))
    return one == other


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
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
