"""A week of hours: suprema at each phase and budgets of Algorithm 7, beside plain iteration."""

from collections.abc import Iterator

import numpy as np

import tplrepro as tpl
from benchmarks.measuring import seconds_in_turn, seconds_of
from benchmarks.tables import PLAIN_HEAD, RATIO_HEAD, ratio_row, row, shown

#: Within this, plain iteration has come to its end.
SETTLED = 1e-12


def measure() -> Iterator[str]:
    yield RATIO_HEAD
    week = Habits(phases=168, stay=0.2)
    day = Habits(phases=24, stay=0.9995)
    for habits in (week, day):
        theirs, own = seconds_in_turn(3, habits.iterated_suprema, habits.suprema)
        what = (
            f"{len(habits.budgets)} phases, n = 50, states stay with {habits.stay:g} or more: "
            "suprema at budgets for α = 1; laps of both sides until they settle"
        )
        yield ratio_row(what, theirs, own)
    yield ""
    yield PLAIN_HEAD
    took = seconds_of(week.allocate)
    yield row("equal budgets of the 168 phases (Algorithm 7)", shown(took), "50 ms")
    took = seconds_of(lambda: week.allocate(shape="least error"))
    yield row("those of least error", shown(took), "")
    yield ""
    yield "Times are beyond the loss functions, of which there is one for each phase and side."


class Habits:
    """The loss functions of random habits over 50 states, and the largest equal budgets for α = 1.

    Each of `phases` matrices keeps a state with a probability of `stay` at least.
    """

    def __init__(self, phases: int, stay: float):
        self.stay = stay
        steps = np.random.default_rng(0).dirichlet(np.full(50, 0.3), (phases, 50))
        habits = tpl.Cycle((1.0 - stay) * steps + stay * np.eye(50))
        self.backward = habits.reverse().map(tpl.PrivacyLossFunction)
        self.forward = habits.map(tpl.PrivacyLossFunction)
        self.budgets = self.allocate()

    def allocate(self, shape: str | None = None) -> np.ndarray:
        return tpl.allocate_by_upper_bound(1.0, self.backward, self.forward, shape=shape)

    def suprema(self) -> object:
        return tpl.leakage_suprema(self.budgets, self.backward, self.forward)

    def iterated_suprema(self) -> list[float]:
        """BPL and FPL of Eqs. (13) and (15) of [1], lap after lap, until no phase changes."""
        *others, last = self.forward
        reverse = [*reversed(others), last]
        bpl = iterated(self.budgets.tolist(), [*self.backward])
        fpl = iterated(self.budgets.tolist()[::-1], reverse)
        return bpl + fpl


def iterated(budgets: list[float], losses: list) -> list[float]:
    """The leakages of the last lap, when no phase changes any more; each loss function leads from a
    phase to the next one."""
    following = [*budgets[1:], budgets[0]]
    lap = [0.0] * len(budgets)
    leakage = budgets[0]
    while True:
        previous = lap
        lap = []
        for loss, epsilon in zip(losses, following, strict=True):
            leakage = epsilon + loss.at(leakage)
            lap.append(leakage)
        if max(map(abs, np.subtract(lap, previous).tolist())) <= SETTLED:
            return lap
