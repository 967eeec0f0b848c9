"""The two traces behind a leakage, in words."""

from __future__ import annotations

from typing import NamedTuple

from tplrepro.eventlog.transition_system import TransitionSystem
from tplrepro.leakage.loss_function import Witness

__all__ = ["LeakageWitness"]

SHOWN = 8


class LeakageWitness(NamedTuple):
    """The pair of states that an adversary tells apart best at a release, in words by `str`.

    Attributes
    ----------
    side : {"backward", "forward"}
    trace_q, trace_d : tuple of str
        The labels of the two states; the evidence favours the first.
    neighbours : tuple of labels
        The states at the neighbouring release (the one before for backward, the next for forward) that speak for
        `trace_q`.
    q, d : float, the probabilities of `neighbours` from `trace_q` and from `trace_d`
    alpha, loss : float, the leakage of the neighbouring release and what it adds, nats
    direction, abstraction : of the transition system

    A plain tuple, so that a table that carries witnesses in its ``attrs`` can be written to JSON and Parquet.
    """

    side: str
    trace_q: tuple
    trace_d: tuple
    neighbours: tuple
    q: float
    d: float
    alpha: float
    loss: float
    direction: str
    abstraction: str

    @classmethod
    def of(cls, witness: Witness, system: TransitionSystem, source, side: str) -> LeakageWitness:
        """From a `Witness` whose columns are states of `system`, and whose rows are those of the states `source`."""
        return cls(
            side=side,
            trace_q=system.label(int(source[witness.state_q])),
            trace_d=system.label(int(source[witness.state_d])),
            neighbours=tuple(system.label(k) for k in witness.columns),
            q=witness.q,
            d=witness.d,
            alpha=witness.alpha,
            loss=witness.loss,
            direction=system.direction,
            abstraction=system.abstraction,
        )

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

    def _words(self, label: tuple) -> str:
        if len(label) > SHOWN:  # the nearest items say most
            label = ("...", *label[1 - SHOWN :]) if self.direction == "prefix" else (*label[: SHOWN - 1], "...")
        if self.abstraction == "sequence":
            return "<" + " -> ".join(label) + ">"
        left, right = "{}" if self.abstraction == "set" else "[]"
        return left + ", ".join(label) + right
