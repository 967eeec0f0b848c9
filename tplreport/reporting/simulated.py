"""In how many simulated data sets a plan like that of a report leaked more than α.

The true chains of these data sets are known; their kinds and sizes are those of explore/advice. The
table beside this module is made from its published record by
``python -m experiments.advice.simulated_plans``.
"""

from __future__ import annotations
import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tplreport.reporting.allocation_schemes import COMPOSED
from tplreport.reporting.checks import DOUBTFUL, OF_CHAIN, REFUSED
from tplrepro.display import count_noun

TABLE = Path(__file__).with_name("simulated_plans.csv")
#: What a report found, unless it is the check that doubts the chain most.
NOTHING = "nothing doubtful"
CYCLE = "habits by the clock"
FINDINGS = (NOTHING, CYCLE, *OF_CHAIN)
#: Of the data sets of a row: up to so many users, and steps of each, or more.
FEW_USERS = 20
FEW_STEPS = 100
#: Of fewer data sets nothing is said; first those of all sizes are taken together.
LEAST_WORLDS = 20


@dataclass(frozen=True)
class Cell:
    """Simulated data sets in which a report found the same, and which are alike in size.

    Of the recommended plans, those that need a model, and of the plans for one chain, which a
    report would recommend without its checks: how many there are, and how many leaked more than α.
    """

    finding: str
    many_users: bool  # more than `FEW_USERS`
    many_steps: bool  # more than `FEW_STEPS` of each
    plans: int
    above: int
    plans_of_one_chain: int
    above_of_one_chain: int


@dataclass(frozen=True)
class SimulatedPlans:
    """Plans like that of a report, and how many of them leaked more than α."""

    finding: str
    size: str  # of the data sets, in words
    for_one_chain: bool  # plans that the report does not recommend
    plans: int
    above: int

    @property
    def sentence(self) -> str:
        """Such as "In 1 of 214 simulated data sets ...", with a full stop."""
        what = "such a plan"
        if self.for_one_chain:
            what = "a plan for one chain"
        found = f"with {self.finding}"
        if self.finding in OF_CHAIN:
            found = f"in which the check '{self.finding}' was the first to doubt"
        data_sets = count_noun(self.plans, "simulated data set", ",")
        return f"In {self.above:,} of {data_sets} {self.size}, {found}, {what} leaked more than α."


@cache
def read_cells(path: Path = TABLE) -> tuple[Cell, ...]:
    """The table of a file; empty if nothing was recorded."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = [*csv.DictReader(file)]
    cells = []
    for row in rows:
        finding = row.pop("finding")
        numbers = {name: int(value) for name, value in row.items()}
        many_users = bool(numbers.pop("many_users"))
        many_steps = bool(numbers.pop("many_steps"))
        cells.append(Cell(finding, many_users, many_steps, **numbers))
    return tuple(cells)


def finding_of(report: Any) -> str:
    """What a `Report` found: the check that doubts the chain most, or none."""
    doubting = [
        check
        for check in report.checks
        if check.name in OF_CHAIN and check.verdict in (DOUBTFUL, REFUSED)
    ]
    if doubting:
        return max(doubting, key=lambda check: check.value).name
    if report.rhythm is not None:
        return CYCLE
    return NOTHING


def simulated_plans(report: Any) -> SimulatedPlans | None:
    """What became of plans like the recommended one of a `Report`; of plans for one chain, if it
    recommends α/T because of doubts. None where α/T has another reason, or there are too few."""
    plan = report.recommendation
    finding = finding_of(report)
    if plan is None:
        return None
    for_one_chain = plan.scheme == COMPOSED
    if for_one_chain and finding not in OF_CHAIN:
        return None
    many_users = report.size["users"] > FEW_USERS
    many_steps = report.size["steps"] > FEW_STEPS * report.size["users"]
    of_finding = [cell for cell in read_cells() if cell.finding == finding]
    alike = [
        cell
        for cell in of_finding
        if (cell.many_users, cell.many_steps) == (many_users, many_steps)
    ]
    for cells, size in (
        (alike, _size_in_words(many_users, many_steps)),
        (of_finding, "of all sizes"),
    ):
        found = _sum_of(cells, finding, size, for_one_chain)
        if found.plans >= LEAST_WORLDS:
            return found
    return None


def _sum_of(cells: list[Cell], finding: str, size: str, for_one_chain: bool) -> SimulatedPlans:
    plans = sum(cell.plans for cell in cells)
    above = sum(cell.above for cell in cells)
    if for_one_chain:
        plans = sum(cell.plans_of_one_chain for cell in cells)
        above = sum(cell.above_of_one_chain for cell in cells)
    return SimulatedPlans(finding, size, for_one_chain, plans, above)


def _size_in_words(many_users: bool, many_steps: bool) -> str:
    users = f"up to {FEW_USERS} users"
    if many_users:
        users = f"more than {FEW_USERS} users"
    steps = f"up to {FEW_STEPS} steps"
    if many_steps:
        steps = f"more than {FEW_STEPS} steps"
    return f"with {users} and {steps} of each"
