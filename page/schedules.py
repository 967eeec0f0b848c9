"""A schedule: the budget of each phase of a cycle as text, a line per phase."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from tplreport.reading.matrices import PHASE, parse_by_phase
from tplrepro.validation import EPSILON


def equal_schedule(phases: Sequence[Any], epsilon: float) -> str:
    """One budget for all phases, nats, as text to be edited.

    >>> print(equal_schedule(["night", "day"], 0.1))
    phase,epsilon
    night,0.1
    day,0.1
    """
    table = pd.DataFrame({PHASE: phases, EPSILON: epsilon})
    return table.to_csv(index=False).strip()


def read_schedule(text: str, phases: Sequence[Any]) -> tuple[float, ...]:
    """The budgets (p,), nats, of the phases in their order; ValueError for another text."""
    budgets = parse_by_phase(text, EPSILON)
    labels = [str(phase) for phase in phases]
    missing = [label for label in labels if label not in budgets]
    unknown = [label for label in budgets if label not in labels]
    if missing or unknown:
        raise ValueError(
            f"a schedule must have an ε for each of the {len(phases)} phases, found none for "
            f"{missing[:3]}, and one for the unknown {unknown[:3]}; give a line per phase"
        )
    for label, budget in budgets.items():
        if budget <= 0.0:
            raise ValueError(
                f"each ε must be greater than 0, found {budget:g} at phase {label!r}; give a "
                "small one where counts may be noisy"
            )
    return tuple(budgets[label] for label in labels)
