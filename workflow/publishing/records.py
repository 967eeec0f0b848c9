"""Records held against others: those of another batch, and those that today's code would make.

``python -m workflow.publishing.records one/figures other/figures`` lists in what two batches differ, without
dates, costs and, of notebooks that measure times, fractional results, tables and pictures. With
``--changed "another seed"`` the other batch is one of the paper profile in which that was changed:
it writes to docs/other_runs.json how far the numbers of the claims moved, which the claims' pages
show. `make claims` says in a line which published records are older than their code.
"""

import argparse
import ast
import json
import math
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import nbformat

from workflow.batch.fingerprint import files_of_modules
from workflow.configuration import (
    ROOT,
    owner_of,
    read_json,
    read_notebooks,
    read_profile,
    records_in,
    write_json,
)
from workflow.publishing.judging import judge_all

NOT_COMPARED = ("cost", "time_utc")
# With a tolerance, numbers that differ by less are equal, such as differences of numbers near 1
# that should be 0.
ROUNDING = 1e-12
# Modules that only save and show results: a record is not older when they change.
COMPUTE_NOTHING = {
    "experiments/claims/__init__.py",
    "experiments/claims/judging.py",
    "experiments/claims/numbers.py",
    "experiments/claims/statement.py",
    "experiments/claims/verdicts.py",
    "experiments/figures.py",
    "experiments/parameters.py",
    "experiments/provenance.py",
    "tplrepro/progress.py",
}
RUNS = "docs/other_runs.json"
SEED, OTHER = "another seed", "another result"
NEAR_ZERO = 0.1  # numbers below it are compared absolutely
NUMBER = re.compile(r"[-+]?\d[\d,]*\.?\d*(?:e[-+]?\d+)?")


def differences(one, other, tolerance=0.0):
    """One sentence for each part of a record, and each file, that is not the same in both folders.

    With a tolerance, numbers may differ by that share of the larger one, or by 1e-12, and tables
    and pictures are not compared.
    """
    notebooks, folders = read_notebooks(), (Path(one), Path(other))
    names = [{path.relative_to(folder) for path in folder.rglob("*.*")} for folder in folders]
    found = [
        f"{name.as_posix()}: only in {one if name in names[0] else other}"
        for name in sorted(names[0] ^ names[1])
    ]
    for name in sorted(names[0] & names[1]):
        owner = notebooks.get(owner_of(name.with_suffix("").as_posix(), notebooks))
        timing = owner is not None and owner.timing
        contents = [(folder / name).read_bytes() for folder in folders]
        if name.suffix == ".json":
            parts = _differing(*map(json.loads, contents), timing, tolerance)
            found += [f"{name.as_posix()}: {part}" for part in parts]
        elif contents[0] != contents[1] and not timing and not tolerance:
            found.append(f"{name.as_posix()}: other bytes")
    return found


def _differing(one, other, timing, tolerance):
    """Parts of a record that differ, each with its first differing values."""
    leaves, parts = [dict(_leaves(record)) for record in (one, other)], {}
    for path in dict.fromkeys([*leaves[0], *leaves[1]]):
        values = [known.get(path, "nothing") for known in leaves]
        is_time = timing and path[0] == "results" and all(type(value) is float for value in values)
        equal = values[0] == values[1]
        if tolerance and {type(value) for value in values} <= {int, float}:
            equal = math.isclose(*values, rel_tol=tolerance, abs_tol=ROUNDING)
        if path[0] not in NOT_COMPARED and not is_time and not equal:
            parts.setdefault(path[: 1 + (path[0] in ("parameters", "results"))], values)
    return [f"{' / '.join(path)}: {before!r} and {now!r}" for path, (before, now) in parts.items()]


def _leaves(value, path=()):
    """All numbers and strings of a record with the keys that lead there."""
    parts = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    if not isinstance(value, dict | list) or not value:
        yield path, value
    for key, part in parts:
        yield from _leaves(part, (*path, key))


def older_records(root=ROOT):
    """The parts of its code that differ from the commit that made it, by published record that has
    some.

    The code is that of the notebook's cells and of the modules that its run imported, at the places
    where they were: a module that has moved makes the record older. Comments, docstrings and layout
    do not count.
    """
    notebooks, profile, older = read_notebooks(root), read_profile("paper", root), {}
    for name, record in records_in(root / "figures").items():
        entry, commit = notebooks[owner_of(name, notebooks)], record["commit"]["id"]
        there = set(_git("ls-tree", "-r", "--name-only", commit, root=root).splitlines())
        if not there:
            older[name] = [f"commit {commit[:7]}, which this clone does not have"]
            continue
        files = sorted(files_of_modules(record["modules"]) & there - COMPUTE_NOTHING)
        notebook = entry.path(root).relative_to(root).as_posix()
        changed = [
            file
            for file in (notebook, *files)
            if file not in there or _is_changed(file, commit, root)
        ]
        if entry.declared_parameters(root) | entry.parameters[profile.name] != record["parameters"]:
            changed.append("parameters")
        if changed:
            older[name] = changed
    return older


def older_in_words(root=ROOT, shown=4):
    """A line on the published records that are older than their code; empty if there are none."""
    older, count = older_records(root), len(records_in(root / "figures"))
    parts = sorted({part for changed in older.values() for part in changed})
    which, what = (
        ", ".join(names[:shown]) + ", ..." * (len(names) > shown) for names in (list(older), parts)
    )
    which = "all" if len(older) == count else which
    line = f"{len(older)} of {count} published records ({which}) are older than their code ({what} changed since)"
    return f"{line}; to renew them, run and publish the paper profile" if older else ""


@cache
def _is_changed(file, commit, root):
    """Whether a file of a commit is gone, or does something else now."""
    if not (root / file).is_file():
        return True
    texts = (_git("show", f"{commit}:{file}", root=root), (root / file).read_text(encoding="utf-8"))
    if file.endswith(".ipynb"):
        texts = map(_code_cells, texts)
    before, now = (ast.dump(_WithoutDocstrings().visit(ast.parse(text))) for text in texts)
    return before != now


def _code_cells(notebook):
    """The code of a notebook without its parameters."""
    cells = [
        cell for cell in nbformat.reads(notebook, as_version=4).cells if cell.cell_type == "code"
    ]
    return "\n".join(
        cell.source for cell in cells if "parameters" not in cell.metadata.get("tags", [])
    )


class _WithoutDocstrings(ast.NodeTransformer):
    def visit_Expr(self, node):
        return None if isinstance(node.value, ast.Constant) else node


@cache
def _git(*words, root):
    """What git prints; nothing if it fails."""
    done = subprocess.run(
        ["git", "-C", str(root), *words], capture_output=True, encoding="utf-8", check=False
    )
    return done.stdout if done.returncode == 0 else ""


def read_runs(root=ROOT):
    """By run and by claim ("tkde2019#example-1"), what `moved` says of its numbers."""
    return read_json(root / RUNS)


def moved(published, other):
    """The largest difference of two texts' numbers: per cent, rounded up; a text if some near 0
    moved; or `OTHER`."""
    if NUMBER.sub("", published) != NUMBER.sub("", other):
        return OTHER
    before, now = (
        [float(number.replace(",", "")) for number in NUMBER.findall(text)]
        for text in (published, other)
    )
    relative, absolute = [], []
    for a, b in zip(before, now, strict=True):
        size = max(abs(a), abs(b))
        if size < NEAR_ZERO:
            absolute.append(abs(a - b))
        else:
            relative.append(abs(a - b) / size)
    percent = math.ceil(1000 * max(relative, default=0.0) - 1e-9) / 10
    near_zero = f"near 0 by up to {max(absolute):.3g}" if any(absolute) else ""
    return f"up to {percent:g} %, {near_zero}" if percent and near_zero else near_zero or percent


def moved_claims(one, other):
    """How far the numbers of each claim moved whose record both folders have, without claims about
    times."""
    notebooks, found = read_notebooks(), {}
    for before, now in zip(
        *(judge_all(folder, outcomes={})[1] for folder in (one, other)), strict=True
    ):
        owner = owner_of(before.claim.record or "", notebooks)
        there = Path(other, f"{before.claim.record}.json").is_file()
        if before.verdict and owner and there and not notebooks[owner].timing:
            moved_by = moved(before.verdict.ours, now.verdict.ours) if now.verdict else OTHER
            found[f"{before.page}#{before.claim.id}"] = moved_by
    return found


def tolerance_of(moved_by):
    """What a claim's row says of the run with another seed; None if its numbers stayed or were not
    compared."""
    if isinstance(moved_by, str):
        return f"{moved_by} with {SEED}"
    return f"up to {moved_by:g} % with {SEED}" if moved_by else None


def summary(runs):
    """A sentence for each run."""
    sentences = []
    for name, claims in runs.items():
        numbers = [value for value in claims.values() if value and not isinstance(value, str)]
        near_zero = sum(isinstance(value, str) and value != OTHER for value in claims.values())
        same = sum(value == 0.0 for value in claims.values())
        words = f"With {name}, {same} of {len(claims)} claims showed the same digits"
        if numbers:
            words += (
                f", the numbers of {len(numbers)} moved by {min(numbers):g} to {max(numbers):g} %"
            )
        if near_zero:
            words += f"; of {near_zero} some near 0 moved"
        if others := sorted(key for key, value in claims.items() if value == OTHER):
            words += f"; {OTHER}: {', '.join(others)}"
        sentences.append(f"{words}.")
    return " ".join(sentences)


def main(arguments=None):
    """Compare the records, tables and pictures of two batches; the exit status is 1 if they
    differ."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("one", help="a folder of figures: figures, or build/paper/figures")
    parser.add_argument("other")
    parser.add_argument(
        "--tolerance",
        type=float,
        default=0.0,
        help="relative; tables and pictures are then left out",
    )
    parser.add_argument(
        "--changed", help='what was changed on purpose ("another seed"): note how far claims moved'
    )
    options = parser.parse_args(arguments)
    if options.changed:
        runs = read_runs() | {options.changed: moved_claims(options.one, options.other)}
        write_json(ROOT / RUNS, runs)
        print(summary(runs))
        return 0
    found = differences(options.one, options.other, tolerance=options.tolerance)
    records = len(list(Path(options.one).rglob("*.json")))
    print(*found, f"{records} records compared, {len(found)} differences", sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
