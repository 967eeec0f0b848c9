"""How far the claims' numbers move in other runs, such as with another seed or on another processor.

A run is a batch of the paper profile in which one thing was changed on purpose. ``python -m
workflow.other_runs "another seed" build/paper/figures`` compares it with the published records, without
claims about times, and writes ``docs/other_runs.json``, from which ARTIFACT.md and the claims' pages take
tolerances.
"""

import argparse
import re
import sys
from math import ceil
from pathlib import Path

from workflow.configuration import ROOT, owner_of, read_json, read_notebooks, write_json
from workflow.judging import judge_all

KEPT = "docs/other_runs.json"
SEED = "another seed"
OTHER_VERDICT, OTHER_WORDS = "other verdict", "other words"
NUMBER = re.compile(r"[-+]?\d[\d,]*\.?\d*(?:e[-+]?\d+)?")


def read_runs(root=ROOT):
    """By run and by claim ("tkde2019#example-1"), the per cent by which its numbers moved, or in words."""
    return read_json(root / KEPT)


def moved(published, other):
    """The largest relative difference of the numbers in two texts, per cent, rounded up, or `OTHER_WORDS`."""
    if NUMBER.sub("", published) != NUMBER.sub("", other):
        return OTHER_WORDS
    before, now = ([float(number.replace(",", "")) for number in NUMBER.findall(text)] for text in (published, other))
    apart = [abs(a - b) / max(abs(a), abs(b)) for a, b in zip(before, now, strict=True) if a != b]
    return ceil(1000 * max(apart, default=0.0) - 1e-9) / 10


def compare(folder, root=ROOT):
    """By claim whose record is in the folder, how far its numbers moved."""
    notebooks, found = read_notebooks(root), {}
    published, other = (judge_all(records, "paper", root, outcomes={})[1] for records in (None, folder))
    for before, now in zip(published, other, strict=True):
        record = before.claim.record
        if not record or before.verdict is None or not (folder / f"{record}.json").is_file():
            continue
        if not notebooks[owner_of(record, notebooks)].timing:
            moved_by = moved(before.verdict.ours, now.verdict.ours) if now.verdict else OTHER_VERDICT
            found[f"{before.page}#{before.claim.id}"] = moved_by
    return found


def tolerance_of(moved_by):
    """What a claim's row says of the run with another seed; None if its numbers stayed or were not compared."""
    if isinstance(moved_by, str):
        return f"{moved_by} with {SEED}"
    return f"up to {moved_by:g} % with {SEED}" if moved_by else None


def summary(runs):
    """A sentence for each run."""
    sentences = []
    for name, claims in runs.items():
        numbers = [value for value in claims.values() if isinstance(value, float) and value]
        same = sum(value == 0.0 for value in claims.values())
        words = f"With {name}, {same} of {len(claims)} claims showed the same digits"
        if numbers:
            words += f", the numbers of {len(numbers)} moved by {min(numbers):g} to {max(numbers):g} %"
        for other in (OTHER_WORDS, OTHER_VERDICT):
            keys = sorted(key for key, value in claims.items() if value == other)
            words += f"; {other}: {', '.join(keys)}" if keys else ""
        sentences.append(f"{words}.")
    return " ".join(sentences)


def main(arguments=None):
    """Compare the records of a run with the published ones, and keep the result."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("run", help='what was changed: "another seed"')
    parser.add_argument("records", type=Path, help="the folder of its figures")
    options = parser.parse_args(arguments)
    runs = read_runs() | {options.run: compare(options.records)}
    write_json(ROOT / KEPT, runs)
    print(summary(runs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
