"""How far the numbers of the claims move with another seed: docs/other_runs.json.

``python -m workflow.publishing.records --changed "another seed"`` writes it, and the claims' pages
show it.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workflow.configuration import ROOT, Notebook, owner_of, read_json, read_notebooks, write_json
from workflow.publishing.judging import judge_all

RUNS = "docs/other_runs.json"
SEED = "another seed"
OTHER = "another result"
NEAR_ZERO = 0.1  # numbers below it are compared absolutely
NUMBER = re.compile(r"[-+]?\d[\d,]*\.?\d*(?:e[-+]?\d+)?")


@dataclass(frozen=True)
class Movement:
    """How far the numbers of a claim moved."""

    percent: float = 0.0  # the most by which a number moved, rounded up
    near_zero: float = 0.0  # the most by which one below `NEAR_ZERO` moved
    is_other: bool = False  # more than numbers differs

    def __str__(self) -> str:
        if self.is_other:
            return OTHER
        words = []
        if self.percent:
            words.append(f"up to {self.percent:g} %")
        if self.near_zero:
            words.append(f"near 0 up to {self.near_zero:.3g}")
        return ", ".join(words)

    def as_json(self) -> dict[str, Any]:
        """What is not as if nothing had moved."""
        return {key: value for key, value in vars(self).items() if value}


#: Movements by run and by claim ("tkde2019#example-1").
Runs = dict[str, dict[str, Movement]]


def read_runs(root: Path = ROOT) -> Runs:
    """The movements that the committed file has."""
    runs = read_json(root / RUNS)
    return {
        name: {claim: Movement(**moved) for claim, moved in movements.items()}
        for name, movements in runs.items()
    }


def add_run(name: str, one: Path | str, other: Path | str) -> Runs:
    """Compare two folders of records, write how far claims moved under the name of the run, and
    return the movements of all runs. What is known of claims whose records `other` lacks stays."""
    runs = read_runs()
    runs[name] = runs.get(name, {}) | movements_of_claims(one, other)
    content = {
        name: {claim: movement.as_json() for claim, movement in movements.items()}
        for name, movements in runs.items()
    }
    write_json(ROOT / RUNS, content)
    return runs


def movement_of(published: str, other: str) -> Movement:
    """The largest differences of two texts' numbers."""
    if NUMBER.sub("", published) != NUMBER.sub("", other):
        return Movement(is_other=True)
    relative = 0.0
    near_zero = 0.0
    for before, now in zip(numbers_in(published), numbers_in(other), strict=True):
        size = max(abs(before), abs(now))
        if size < NEAR_ZERO:
            near_zero = max(near_zero, abs(before - now))
        else:
            relative = max(relative, abs(before - now) / size)
    percent = math.ceil(1000 * relative - 1e-9) / 10
    return Movement(percent, float(f"{near_zero:.3g}"))


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
        movement = Movement(is_other=True)
        if second.verdict:
            movement = movement_of(first.verdict.ours, second.verdict.ours)
        movements[f"{first.page}#{first.claim.id}"] = movement
    return movements


def is_reproducible(record: str, notebooks: Mapping[str, Notebook]) -> bool:
    """Whether a record is of a notebook, and of one that measures no times."""
    owner = owner_of(record, notebooks)
    return owner is not None and not notebooks[owner].timing


def summarise_runs(runs: Runs) -> str:
    """A sentence for each run."""
    return " ".join(summarise_run(name, movements) for name, movements in runs.items())


def summarise_run(name: str, movements: Mapping[str, Movement]) -> str:
    """How many claims showed the same digits, and how far the others moved."""
    moved = [movement.percent for movement in movements.values() if movement.percent]
    near_zero = [claim for claim, movement in movements.items() if movement.near_zero]
    others = [claim for claim, movement in movements.items() if movement.is_other]
    same = sum(movement == Movement() for movement in movements.values())
    sentence = f"With {name}, {same} of {len(movements)} claims showed the same digits"
    if moved:
        extremes = f"{min(moved):g} to {max(moved):g} %"
        sentence += f", the numbers of {len(moved)} moved by {extremes}"
    if near_zero:
        alone = sum(not movements[claim].percent for claim in near_zero)
        sentence += f"; numbers near 0 moved in {len(near_zero)}, and in {alone} of these no others"
    if others:
        sentence += f"; {OTHER}: {', '.join(sorted(others))}"
    return f"{sentence}."
