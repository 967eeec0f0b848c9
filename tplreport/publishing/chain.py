"""What a publisher knows of the chain: the loss functions of both sides at each phase, the floors,
and how the chain begins.

The phase of the first time turns all of them. Two things belong to one phase of the first time, the
one at which the cycle begins: steps that are known from a start, and a plan.
"""

from __future__ import annotations
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd

from tplreport.publishing.clock import CycleOnClock
from tplreport.publishing.losses_as_json import (
    as_json,
    check_labels,
    side_from_json,
    side_to_json,
    side_without_matrices_of_hulls,
)
from tplreport.publishing.statistics import Statistic, schedule_of, statistics_of, sum_of
from tplreport.reading.time_steps import in_units_of
from tplrepro.leakage.temporal import (
    REQUIRED,
    Correlation,
    LossCycle,
    LossCycles,
    is_several,
    loss_cycles,
)
from tplrepro.markov.cycle import Cycle, Start, as_cycle
from tplrepro.markov.transition import TransitionMatrix, as_transition_matrix
from tplrepro.validation import warn_caller

#: That no `start` is named: the backward matrices are those of some law of the first state.
OF_BACKWARD = "backward"
#: With more states it is not asked whether one matrix can be that of both sides.
MOST_COMPARED = 2_000
#: Probabilities that differ by less are the same.
SAME = 1e-9
CONDITIONS = {
    "habit": "users who start in the habit",
    "any": "users with any start",
    OF_BACKWARD: "users who start in the law of backward=",
}


@dataclass(frozen=True, eq=False)
class Chain:
    """The loss functions of both sides, the statistics that are due at each phase, and the floor:
    the budget of each phase if all of them were due there."""

    backward: Cycle
    forward: Cycle
    full_floors: list[float]
    clock: CycleOnClock | None  # of a day or week
    statistics: list[Statistic]
    due: list[tuple[int, ...]]

    @classmethod
    def of_settings(cls, settings: Mapping, begins: int | None = None) -> Chain:
        """The chain that the settings of a publisher's file hold; files of earlier versions have no
        cycle.

        Parameters
        ----------
        settings : mapping
        begins : int, optional
            When its phase 0 begins, as `schedule_of` takes it, of a chain that comes after another
            one. None: what the cycle says, or the first time.

        Returns
        -------
        Chain
        """
        known = settings.get("cycle") or {"phases": [0], "step": None, "begins": 0, "period": None}
        p = len(known["phases"])
        losses = LossCycles(
            side_from_json(settings["backward"], p),
            side_from_json(settings["forward"], p),
            known["phases"],
            None if known["step"] is None else pd.Timedelta(known["step"]).to_pytimedelta(),
            timedelta(microseconds=known["begins"]),
        )
        statistics = statistics_of(settings)
        if begins is None:
            begins = 1000 * known["begins"]
        schedule = schedule_of(statistics, p, settings.get("step", 1), begins)
        period = known["period"]
        if len(schedule) > p:
            period = schedule.period
            losses = _repeated(losses, len(schedule), settings["step"])
        clock = None
        if period is not None:
            clock = CycleOnClock(period, 1000 * known["begins"], losses.phases)
        chain = cls(
            losses.cycle_of(losses.backward),
            losses.cycle_of(losses.forward),
            [],
            clock,
            statistics,
            schedule.phases,
        )
        return chain.with_floor(settings["floor"])

    def with_floor(self, floor: float | list[float]) -> Chain:
        """The same chain with another floor: one number, or those of the phases of a period."""
        floors = floor if isinstance(floor, list) else [floor]
        return replace(self, full_floors=floors * (len(self) // len(floors)))

    def __len__(self) -> int:
        """The number of phases."""
        return len(self.forward)

    @cached_property
    def floors(self) -> list[float]:
        """What those that are due at each phase spend there together."""
        return [sum_of(self.budgets_at(phase)) for phase in range(len(self))]

    def budgets_at(self, phase: int) -> list[float]:
        """The budget of each statistic that is due at a phase."""
        full = self.full_floors[phase]
        return [full * self.statistics[place].share for place in self.due[phase]]

    @property
    def has_first_steps(self) -> bool:
        """Whether the first steps differ from those of the cycle."""
        return len(self.backward.first) > 0 or len(self.forward.first) > 0

    @property
    def floor(self) -> float | list[float]:
        """One number, or one for each phase."""
        if len(set(self.floors)) == 1:
            return self.floors[0]
        return self.floors

    def turned(self, phase: int) -> Chain:
        """The chain whose first time has this phase."""
        if phase == 0:
            return self
        label = self.forward.phases[phase]
        return Chain(
            self.backward.starting_at(label),
            self.forward.starting_at(label),
            [*self.full_floors[phase:], *self.full_floors[:phase]],
            self.clock,
            self.statistics,
            [*self.due[phase:], *self.due[:phase]],
        )

    def runs(self, time: int, count: int) -> Iterator[tuple[int, int]]:
        """`count` times from one on, in runs of one floor at which the same statistics are due:
        the first of each, and their number."""
        p = len(self)
        if len(set(zip(self.full_floors, self.due, strict=True))) == 1:
            yield time, count
            return
        levels = [
            (self.full_floors[(time + k) % p], self.due[(time + k) % p]) for k in range(count)
        ]
        start = time
        for _, run in groupby(levels):
            length = len([*run])
            yield start, length
            start += length


def _repeated(losses: LossCycles, size: int, step: int | str) -> LossCycles:
    """The same chain with so many phases, a multiple of those that it has."""
    times = size // len(losses)
    length = losses.step
    if isinstance(step, str):
        length = pd.Timedelta(step).to_pytimedelta()
    labels = Cycle([None] * size, step=length, begins=losses.begins)
    return LossCycles(
        LossCycle(losses.backward.steps * times, losses.backward.first),
        LossCycle(losses.forward.steps * times, losses.forward.first),
        labels.phases,
        length,
        losses.begins,
    )


def both_sides(
    backward: Correlation, forward: Correlation, start: Start | None
) -> tuple[Correlation, Correlation]:
    """Backward and forward side of a new chain; the first is made of the second and a start, if
    that is given. A warning if one matrix is given for both and its reversal is another one."""
    if start is None:
        _warn_of_one_matrix(backward, forward)
    return _sides(backward, forward, start)


def _sides(
    backward: Correlation, forward: Correlation, start: Start | None
) -> tuple[Correlation, Correlation]:
    """Backward and forward side, of which the first may have to be made."""
    is_forward_alone = backward is REQUIRED and forward is not REQUIRED
    if start is None and is_forward_alone and forward is not None:
        raise TypeError(
            "the backward side must be known, found forward= alone; give start='habit', 'any' or a "
            "law, or backward= (None: the adversary does not know it)"
        )
    if start is None:
        return backward, forward
    if backward is not REQUIRED:
        raise ValueError(
            "start= makes the backward side of forward=, found backward= too; leave out one of them"
        )
    if forward is REQUIRED or forward is None:
        raise ValueError(
            "start= makes the backward side of the forward one, found none; give forward="
        )
    cycle = as_cycle(forward)
    return cycle.reverse(start), cycle


def _warn_of_one_matrix(backward: Correlation, forward: Correlation) -> None:
    """Warn of one matrix for both sides of people who can have no such habits: the backward matrix
    of their chain is another one."""
    is_of_matrices = all(map(_is_matrix, (backward, forward)))
    if not is_of_matrices:
        return
    before = as_transition_matrix(backward)
    after = as_transition_matrix(forward)
    if after.n_states > MOST_COMPARED or not np.array_equal(before.toarray(), after.toarray()):
        return
    with suppress(ValueError):  # a chain that has no stationary law
        reverse = after.reverse().toarray()
        if not np.allclose(before.toarray(), reverse, atol=SAME):
            warn_caller(
                "backward= and forward= are one matrix, but people who move by it have another "
                "backward matrix, so that leakages may be several times too low; give "
                "start='habit' in place of backward="
            )


def _is_matrix(side: Correlation) -> bool:
    kinds = (TransitionMatrix, np.ndarray, list, tuple, pd.DataFrame)
    return isinstance(side, kinds) and not is_several(side)


def start_as_json(start: Start | None) -> Any:
    """What a file keeps of the start: a name, or a law."""
    if start is None:
        return OF_BACKWARD
    if isinstance(start, str):
        return start
    return np.asarray(start, dtype=float).tolist()


def without_matrices_of_hulls(settings: Mapping) -> dict:
    """The settings as files have them now: those of before held the shares from which a hull was
    made."""
    p = len(phases_of(settings))
    sides = {
        name: side_without_matrices_of_hulls(settings[name], p) for name in ("backward", "forward")
    }
    return {**settings, **sides}


def is_made_with(
    settings: Mapping, backward: Correlation, forward: Correlation, start: Start | None
) -> bool:
    """Whether a file was made with this chain, which the same start and forward side make again; a
    computer may round the backward side in its own way."""
    start_of_file = settings.get("start", OF_BACKWARD)
    given = chain_as_json(*_sides(backward, forward, start), settings["step"])
    compared = ["forward", "cycle"]
    if start_of_file == OF_BACKWARD or start_as_json(start) != start_of_file:
        compared.append("backward")
    return all(settings.get(name) == given[name] for name in compared)


def condition_of_promise(settings: Mapping) -> str:
    """The users for whom the promise holds, as words for the publisher's repr; empty if no backward
    side is known, so that it does not matter how the chain begins."""
    start = settings.get("start", OF_BACKWARD)
    if start == OF_BACKWARD and settings["backward"] is None:
        return ""
    if isinstance(start, list):
        return "users who start in the given law"
    return CONDITIONS[start]


def chain_as_json(backward: Cycle | Correlation, forward: Correlation, step: int | str) -> dict:
    """The settings of a publisher that hold its chain; ValueError for a clock that is not that of
    its step."""
    losses = loss_cycles(backward, forward)
    _check_step(losses.step, step)
    settings = {
        "backward": side_to_json(losses.backward),
        "forward": side_to_json(losses.forward),
        "cycle": None,
    }
    if len(losses) == 1:
        return settings
    cycle = losses.cycle_of(losses.forward)
    _check_clock(cycle, step)
    _check_is_multiple(len(losses), backward, forward)
    check_labels(losses.phases, "phases")
    settings["cycle"] = as_json(
        {
            "phases": losses.phases,
            "step": None if losses.step is None else str(pd.Timedelta(losses.step)),
            "begins": losses.begins // timedelta(microseconds=1),
            "period": cycle.period,
        }
    )
    return settings


def _check_step(of_chain: timedelta | None, step: int | str) -> None:
    """ValueError if the steps of a chain are known to be of another length than those of the
    publisher."""
    if of_chain is None or not isinstance(step, str):
        return
    of_publisher = pd.Timedelta(step).to_pytimedelta()
    if pd.Timedelta(step) == pd.Timedelta(of_chain):
        return
    shown = in_units_of(step)
    remedy = f"estimate it with steps of {shown}"
    k, rest = divmod(of_publisher, of_chain)
    if not rest and k > 1:
        remedy += f", or give the chain of every {k}-th time, P ** {k} or cycle.every({k})"
    raise ValueError(
        "the chain must be that of steps as long as those of the publisher, found steps of "
        f"{in_units_of(of_chain)} and step={shown!r}; {remedy}"
    )


def _check_clock(cycle: Cycle, step: int | str) -> None:
    """ValueError if the phase of a time is not known."""
    if isinstance(step, int) and cycle.period is not None:
        raise ValueError(
            f"the phases of a {cycle.period} need times that are dates, found whole numbers; give "
            f"step={in_units_of(cycle.step)!r}, or a Cycle without a step, which begins at "
            "phase 0 with the first time"
        )
    if isinstance(step, str) and cycle.period is None:
        raise ValueError(
            "the phase of a date must be known, found a cycle that is no day and no week; give "
            f"Cycle(..., step={in_units_of(step)!r}) with a matrix for each step of a day or week, "
            "or times that are whole numbers, of which the first has phase 0"
        )


def _check_is_multiple(p: int, backward: Correlation, forward: Correlation) -> None:
    """ValueError unless the p phases of both sides together are those of one side."""
    lengths = [len(as_cycle(side)) for side in (backward, forward)]
    if p not in lengths:
        raise ValueError(
            "the phases of one side must repeat within those of the other, found "
            f"{lengths[0]} and {lengths[1]}; repeat both up to {p}"
        )


def phases_of(settings: Mapping) -> list:
    """The labels of the phases of the chain that settings hold."""
    if settings.get("cycle") is None:
        return [0]
    return settings["cycle"]["phases"]


def floor_as_stored(floor: Any, settings: Mapping) -> Any:
    """A floor as settings have it: one number, or one for each phase of their chain."""
    floors = in_order_of_phases(floor, phases_of(settings))
    if isinstance(floors, Sequence) and len(set(floors)) == 1:
        return floors[0]
    return floors


def in_order_of_phases(floor: Any, phases: Sequence) -> Any:
    """Floors as they are, and 0.0 for None; of a mapping the budgets of its labels, in the order of
    the phases."""
    if floor is None:
        return 0.0
    if not isinstance(floor, Mapping):
        return floor
    if set(phases) != set(floor):
        raise ValueError(
            f"floor must have a budget for each phase, found {sorted(map(str, floor))[:5]} in "
            f"place of {sorted(map(str, phases))[:5]}; give one for each of {len(phases)} "
            "phases, 0 where there is no release"
        )
    return [floor[phase] for phase in phases]
