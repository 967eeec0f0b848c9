"""The two traces behind a leakage, in words."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tplrepro.eventlog.transition_system import TransitionSystem
from tplrepro.leakage.loss_function import Witness

__all__ = ["LeakageWitness"]

SHOWN = 8


class LeakageWitness(NamedTuple):
    """The pair of traces that an adversary tells apart best at a release; in words by `str`.

    What a `Witness` says by numbers of states, with their labels: `trace_q`, `trace_d`, and the `neighbours` at the
    release before (side "backward") or at the next one ("forward"). A plain tuple, so that a table that carries
    witnesses in its ``attrs`` can be written to JSON and Parquet.
    """

    side: str
    trace_q: tuple[str, ...]
    trace_d: tuple[str, ...]
    neighbours: tuple[tuple[str, ...], ...]
    q: float
    d: float
    alpha: float
    loss: float
    direction: str
    abstraction: str

    @classmethod
    def of(cls, witness: Witness, system: TransitionSystem, source: np.ndarray, side: str) -> LeakageWitness:
        """From a `Witness` whose columns are states of `system`, and whose rows are those of the states `source`."""
        trace_q, trace_d = map(system.label, source[np.array([witness.state_q, witness.state_d])].tolist())
        neighbours = tuple(map(system.label, witness.columns))
        numbers = witness.q, witness.d, witness.alpha, witness.loss
        return cls(side, trace_q, trace_d, neighbours, *numbers, system.direction, system.abstraction)

    def __str__(self) -> str:
        where = "the release before" if self.side == "backward" else "the next release"
        what = "so far" if self.direction == "prefix" else "from here on"
        more = f" or {len(self.neighbours) - 1} more" if len(self.neighbours) > 1 else ""
        return (
            f"the adversary gains most by telling a case whose trace {what} is {self._words(self.trace_q)} from one "
            f"whose trace {what} is {self._words(self.trace_d)}: at {where} it is {self._words(self.neighbours[0])}"
            f"{more} with probability {self.q:.4g} for the first and {self.d:.4g} for the second, so a leakage of "
            f"{self.alpha:.4g} there adds {self.loss:.4g} here"
        )

    def _words(self, label: tuple[str, ...]) -> str:
        if len(label) > SHOWN:  # the nearest items say most
            label = ("...", *label[1 - SHOWN :]) if self.direction == "prefix" else (*label[: SHOWN - 1], "...")
        if self.abstraction == "sequence":
            return "<" + " -> ".join(label) + ">"
        left, right = "{}" if self.abstraction == "set" else "[]"
        return left + ", ".join(label) + right
