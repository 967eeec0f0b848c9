"""How far the numbers of the claims move with another seed: docs/other_runs.json.

``python -m workflow.publishing.records --changed "another seed"`` writes it, and the claims' pages
show it.
"""

import math
import re
from collections.abc import Mapping
from pathlib import Path

from workflow.configuration import ROOT, Notebook, owner_of, read_json, read_notebooks, write_json
from workflow.publishing.judging import judge_all

RUNS = "docs/other_runs.json"
SEED = "another seed"
OTHER = "another result"
NEAR_ZERO = 0.1  # numbers below it are compared absolutely
NUMBER = re.compile(r"[-+]?\d[\d,]*\.?\d*(?:e[-+]?\d+)?")

#: Per cent by which the numbers of a claim moved, or words where per cent do not say it.
Movement = float | str
#: Movements by run and by claim ("tkde2019#example-1").
Runs = dict[str, dict[str, Movement]]


def read_runs(root: Path = ROOT) -> Runs:
    """The movements that the committed file has."""
    return read_json(root / RUNS)


def add_run(name: str, one: Path | str, other: Path | str) -> Runs:
    """Compare two folders of records, write how far claims moved under the name of the run, and
    return the movements of all runs."""
    runs = read_runs() | {name: movements_of_claims(one, other)}
    write_json(ROOT / RUNS, runs)
    return runs


def movement_of(published: str, other: str) -> Movement:
    """The largest difference of two texts' numbers.

    Per cent, rounded up; a text if some near 0 moved; `OTHER` if more than numbers differs.
    """
    if NUMBER.sub("", published) != NUMBER.sub("", other):
        return OTHER
    relative = []
    absolute = []
    for before, now in zip(numbers_in(published), numbers_in(other), strict=True):
        size = max(abs(before), abs(now))
        if size < NEAR_ZERO:
            absolute.append(abs(before - now))
        else:
            relative.append(abs(before - now) / size)
    percent = math.ceil(1000 * max(relative, default=0.0) - 1e-9) / 10
    if not any(absolute):
        return percent
    near_zero = f"near 0 by up to {max(absolute):.3g}"
    if not percent:
        return near_zero
    return f"up to {percent:g} %, {near_zero}"


def numbers_in(text: str) -> list[float]:
    return [float(number.replace(",", "")) for number in NUMBER.findall(text)]


def movements_of_claims(one: Path | str, other: Path | str) -> dict[str, Movement]:
    """How far the numbers of each claim moved from the folder of records `one` to `other`, if both
    have its record; without claims about times."""
    notebooks = read_notebooks()
    before = judge_all(one, outcomes={})[1]
    after = judge_all(other, outcomes={})[1]
    movements = {}
    for first, second in zip(before, after, strict=True):
        record = first.claim.record or ""
        is_there = Path(other, f"{record}.json").is_file()
        if not is_there or first.verdict is None or not is_reproducible(record, notebooks):
            continue
        movement: Movement = OTHER
        if second.verdict:
            movement = movement_of(first.verdict.ours, second.verdict.ours)
        movements[f"{first.page}#{first.claim.id}"] = movement
    return movements


def is_reproducible(record: str, notebooks: Mapping[str, Notebook]) -> bool:
    """Whether a record is of a notebook, and of one that measures no times."""
    owner = owner_of(record, notebooks)
    return owner is not None and not notebooks[owner].timing


def describe_tolerance(movement: Movement | None) -> str | None:
    """What a claim's row says of the run with another seed; None if its numbers stayed or were not
    compared."""
    if not movement:
        return None
    if isinstance(movement, str):
        return f"{movement} with {SEED}"
    return f"up to {movement:g} % with {SEED}"


def summarise_runs(runs: Runs) -> str:
    """A sentence for each run."""
    return " ".join(summarise_run(name, movements) for name, movements in runs.items())


def summarise_run(name: str, movements: Mapping[str, Movement]) -> str:
    """How many claims showed the same digits, and how far the others moved."""
    moved = []
    near_zero = []
    others = []
    for claim, movement in movements.items():
        if movement == OTHER:
            others.append(claim)
        elif isinstance(movement, str):
            near_zero.append(claim)
            moved += _percent_in(movement)
        elif movement:
            moved.append(movement)
    same = sum(movement == 0.0 for movement in movements.values())
    sentence = f"With {name}, {same} of {len(movements)} claims showed the same digits"
    if moved:
        extremes = f"{min(moved):g} to {max(moved):g} %"
        sentence += f", the numbers of {len(moved)} moved by {extremes}"
    if near_zero:
        sentence += f"; of {len(near_zero)} some near 0 moved"
    if others:
        sentence += f"; {OTHER}: {', '.join(sorted(others))}"
    return f"{sentence}."


def _percent_in(movement: str) -> list[float]:
    """The per cent that the words of a movement near 0 name beside; empty if they name none."""
    match = re.match(r"up to (\S+) %", movement)
    if match is None:
        return []
    return [float(match[1])]
