"""A schedule: the budget of each phase of a cycle as text, a line per phase."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from tplreport.reading.matrices import parse_column
from tplrepro.validation import EPSILON

HEADING = f"phase,{EPSILON}"


def equal_schedule(phases: Sequence[Any], epsilon: float) -> str:
    """One budget for all phases, as text to be edited.

    >>> print(equal_schedule(["night", "day"], 0.1))
    phase,epsilon
    night,0.1
    day,0.1
    """
    table = pd.DataFrame({"phase": phases, EPSILON: epsilon})
    return table.to_csv(index=False).strip()


def read_schedule(text: str, phases: Sequence[Any]) -> tuple[float, ...]:
    """The budgets (p,), nats, in the order of the phases; ValueError for another text."""
    budgets = parse_column(text, EPSILON)
    if len(budgets) != len(phases):
        raise ValueError(
            f"a schedule must have an ε for each of the {len(phases)} phases, found "
            f"{len(budgets)}; give a line per phase"
        )
    for phase, budget in zip(phases, budgets, strict=True):
        if budget <= 0.0:
            raise ValueError(
                f"each ε must be greater than 0, found {budget:g} at phase {phase!r}; give a "
                "small one where releases may be noisy"
            )
    _check_order(text, phases)
    return tuple(budgets.tolist())


def _check_order(text: str, phases: Sequence[Any]) -> None:
    """ValueError if the lines name other phases, or the same ones in another order."""
    heading, *lines = [line for line in text.splitlines() if line.strip()]
    if heading.strip() != HEADING:
        return
    expected = equal_schedule(phases, 1.0).splitlines()[1:]
    for line, expected_line in zip(lines, expected, strict=True):
        named, _, _ = line.rpartition(",")
        phase, _, _ = expected_line.rpartition(",")
        if named.strip() != phase:
            raise ValueError(
                f"phases must stand in the order of the cycle, found {named!r} in place of "
                f"{phase!r}; sort the lines"
            )
