"""A new chain from a date on: what releases under the earlier one have left is carried over.

The recursions take a matrix a step (Theorem 1, docs/theory/promises.md): those of the earlier chain
up to the step that leads to the date, those of the new one from it on. Backward matrices depend on
the law of the state at the date, which is that of the earlier chain if nothing else is known.
Theorem 8 (docs/theory/cycles.md) says which floor can be kept from there.
"""

from __future__ import annotations
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tplreport.publishing.chain import (
    OF_BACKWARD,
    Chain,
    both_sides,
    chain_as_json,
    phases_of,
    start_as_json,
)
from tplreport.publishing.clock import LENGTH_OF, MONDAY, Clock
from tplreport.publishing.settings import checked_floor
from tplreport.publishing.store import Store
from tplrepro.leakage.filter import FloorSuprema, Settled
from tplrepro.leakage.loss_function import PrivacyLossFunction
from tplrepro.leakage.prior_free import PriorFreeLoss
from tplrepro.leakage.temporal import REQUIRED, Correlation, LossCycle, LossCycles, loss_cycles
from tplrepro.markov.cycle import Cycle, Start, as_cycle, product_of
from tplrepro.search import largest_within

#: Steps over which a law is followed one by one; over more, by whole periods first.
MOST_STEPS = 100_000
#: By such a share the floor that is found may be too small.
TOLERANCE = 1e-9


@dataclass(frozen=True)
class Segment:
    """A chain, and the position of the time at which its phase 0 is."""

    position: int
    chain: Chain


@dataclass(frozen=True)
class KnownChanges:
    """The changes of chain that a publisher knows, and their digest in its file: another process
    may have written others."""

    digest: bytes | None
    chains: list[dict]

    @classmethod
    def of(cls, store: Store) -> KnownChanges:
        """Those of a file."""
        return cls(store.digest_of_changes(), store.changes_of_chain())


NO_CHANGES = KnownChanges(None, [])


def chain_of_change(settings: Mapping, change: Mapping) -> Segment:
    """The chain of a change, as the file holds it; `settings` are those of the file."""
    chain = Chain.of_settings({**settings, **change["chain"]}, change["begins"])
    return Segment(change["position"], chain)


def joined(before: Segment, after: Segment) -> Segment:
    """The later of two chains, from the last time before it on: its first step is the one of the
    earlier chain that leads to it."""
    time = after.position - 1 - before.position
    chain = after.chain
    losses = LossCycles(
        _after_step(before.chain.backward.at(time), chain.backward),
        _after_step(before.chain.forward.at(time), chain.forward),
        _one_later(chain.forward.phases),
        None,
        timedelta(0),
    )
    in_place = Chain(
        losses.cycle_of(losses.backward),
        losses.cycle_of(losses.forward),
        _one_later(chain.full_floors),
        None,
        chain.statistics,
        _one_later(chain.due),
    )
    return Segment(after.position - 1, in_place)


def _after_step(step: Any, cycle: Cycle) -> LossCycle:
    return LossCycle(_one_later([*cycle]), [step, *cycle.first])


def _one_later(of_phases: Sequence) -> list:
    """What belongs to phases in the order of times, the first of which has the last phase."""
    return [of_phases[-1], *of_phases[:-1]]


def whole_series(segments: Sequence[Segment]) -> tuple[Cycle, Cycle]:
    """Backward and forward loss functions of all steps from the first time on."""
    last = segments[-1]
    first_b: list = []
    first_f: list = []
    for segment, following in pairwise(segments):
        count = following.position - segment.position
        first_b += segment.chain.backward.over(count)
        first_f += segment.chain.forward.over(count)
    return _later_on(last.chain.backward, first_b), _later_on(last.chain.forward, first_f)


def _later_on(cycle: Cycle, before: list) -> Cycle:
    """A cycle whose phase 0 comes after other steps."""
    p = len(cycle)
    steps = [cycle[(phase - len(before)) % p] for phase in range(p)]
    return Cycle(steps, first=[*before, *cycle.first])


def steps_of_stay(
    segments: Sequence[Segment], position: int, count: int, start: str | None
) -> tuple[Cycle, Cycle]:
    """Backward and forward loss functions of the steps between `count` times from a position on.

    Parameters
    ----------
    segments : sequence of Segment
    position : int
    count : int >= 1
    start : None or "any"
        Whether the backward steps hold for every law of the first state, in place of the one that
        the chain assumes.

    Returns
    -------
    tuple of two Cycle, backward and forward

    Raises
    ------
    ValueError
        For any law where the forward matrix of a step is not known.
    """
    sides = [side.over(position + count - 1)[position:] for side in whole_series(segments)]
    backward, forward = sides
    if start is not None:
        any_law: dict[int, PriorFreeLoss] = {}
        for loss in forward:
            if not (type(loss) is PrivacyLossFunction and loss.of_matrix):
                raise ValueError(
                    f"start='any' needs the forward matrix of each step, found {loss!r}; leave it "
                    "out"
                )
            any_law.setdefault(id(loss), PriorFreeLoss(loss.matrix))
        backward = [any_law[id(loss)] for loss in forward]
    # After the last time there is nothing that a step could lead to.
    return Cycle([None], first=backward), Cycle([None], first=forward)


@dataclass(frozen=True)
class Change:
    """A chain that is to follow, as it was given."""

    backward: Correlation
    forward: Correlation
    start: Start | None
    floor: ArrayLike | Mapping | str | None


@dataclass(frozen=True)
class SoFar:
    """What is known before a change: the settings of the file with those of its last chain, that
    chain, the clock, and what releases have left."""

    settings: Mapping
    segment: Segment
    clock: Clock
    settled: Settled


def checked_change(change: Change, so_far: SoFar, position: int) -> dict:
    """A change as the file keeps it.

    Parameters
    ----------
    change : Change
    so_far : SoFar
    position : int, that of the first time of the new chain

    Returns
    -------
    dict

    Raises
    ------
    ValueError
        For a chain whose clock or states do not fit, a law that is not known, or a floor that
        cannot be kept.
    """
    settings = so_far.settings
    clock = so_far.clock
    forward = _from_position(change.forward, "forward", clock, position)
    backward = change.backward
    start = change.start
    if backward is not REQUIRED:
        backward = _from_position(backward, "backward", clock, position)
    elif start is None:
        start = _law_at(settings["start"], so_far.segment, position)
    chain = chain_as_json(*both_sides(backward, forward, start), settings["step"])
    begins = position
    if clock.dates:
        begins = (clock.local_time(position) - MONDAY) % LENGTH_OF["week"]
    kept: dict[str, Any] = {
        "position": position,
        "begins": begins,
        "is_carried": change.start is None and change.backward is REQUIRED,
        "settled": list(so_far.settled),
        "chain": {**chain, "start": start_as_json(start), "floor": 0.0},
    }
    following = chain_of_change(settings, kept)
    _check_states(so_far.segment.chain, following.chain)
    floor = _floor_by_phase(change, settings, kept["chain"])
    kept["chain"]["floor"] = _kept_floor(floor, so_far, kept["chain"], following)
    return kept


def _from_position(side: Correlation, name: str, clock: Clock, position: int) -> Any:
    """A side with its phase 0 at a position, by what the clock on the wall shows there."""
    if side is REQUIRED:
        raise ValueError(
            f"a change needs the new chain, found no {name}=; give it, or a matrix for all times"
        )
    if side is None:
        return None
    cycle = as_cycle(side)
    if len(cycle) == 1 or cycle.period is None:
        return side
    if not clock.dates:
        raise ValueError(
            f"the phases of a {cycle.period} need times that are dates, found whole numbers; give "
            "a Cycle without a step, which begins with the new chain"
        )
    clock.check_keeps_hours()
    since = clock.local_time(position) - MONDAY - _nanoseconds(cycle.begins)
    phase, rest = divmod(since % LENGTH_OF[cycle.period], clock.step)
    if rest or phase >= len(cycle):
        raise ValueError(
            f"the new chain must begin at a time at which a phase of its cycle does, found "
            f"{clock.label(position)}; give a cycle with the step of the publisher"
        )
    if phase == 0:
        return cycle
    return cycle.starting_at(cycle.phases[phase])


def _nanoseconds(begins: Any) -> int:
    return (begins.days * 86_400 + begins.seconds) * 10**9 + begins.microseconds * 1000


def _law_at(start: Any, before: Segment, position: int) -> np.ndarray:
    """The law of the state at a position, as the promise so far assumes it, which the `start` of
    the chain so far names."""
    losses = [*before.chain.forward]
    are_known = all(type(loss) is PrivacyLossFunction and loss.of_matrix for loss in losses)
    if not are_known or start in (OF_BACKWARD, "any"):
        raise ValueError(
            "the law of the state at the change must be known, found none; give start='any' for "
            "all laws, start= with that law, or backward="
        )
    matrices = [loss.matrix for loss in losses]
    time = position - before.position
    if isinstance(start, str):
        laws = Cycle(matrices).laws()
        return laws[time % len(laws)]
    law = np.array(start)
    first = 0
    if time > max(MOST_STEPS, len(matrices)):
        first = time - time % len(matrices)
        law = law @ product_of(matrices) ** (first // len(matrices))
    for step in range(first, time):
        law = law @ matrices[step % len(matrices)]
        law = law / law.sum()
    return law / law.sum()


def _check_states(before: Chain, after: Chain) -> None:
    """ValueError for a new chain with other states than the earlier one."""
    known = [side.states for chain in (before, after) for side in (chain.backward, chain.forward)]
    named = [list(states) for states in known if states is not None]
    for states in named[1:]:
        if states != named[0]:
            remedy = "give a matrix of the same places in the same order"
            if len(states) == len(named[0]):
                remedy += _remedy_for_names(named[0], states)
            raise ValueError(
                f"the new chain must have the states of the earlier one, found {states[:5]} in "
                f"place of {named[0][:5]}; {remedy}"
            )


def _remedy_for_names(before: list, after: list) -> str:
    """What to do about names of states that only one of two chains has."""
    numbers = list(range(len(before)))
    if before == numbers:
        return ", without names of states: the earlier chain has none"
    if after == numbers:
        return ", with the names of states that the earlier chain has"
    return ""


def _floor_by_phase(change: Change, settings: Mapping, chain: Mapping) -> Any:
    """The floor as it is given, or that of before; of several phases by their labels, as the new
    chain begins at another one than the cycle that was given."""
    floor: Any = change.floor
    phases = as_cycle(change.forward).phases
    if floor is None:
        floor = settings["floor"]
        phases = phases_of(settings)
    if isinstance(floor, (str, Mapping)) or np.ndim(floor) == 0:
        return floor
    if len(phases) != len(floor) or set(phases) != set(phases_of(chain)):
        raise ValueError(
            f"the floor must be that of the {len(phases_of(chain))} phases of the new chain, "
            f"found {len(floor)} budgets; give floor="
        )
    return dict(zip(phases, floor, strict=True))


def _kept_floor(
    floor: Any, so_far: SoFar, chain: Mapping, following: Segment
) -> float | list[float]:
    """The floor that is kept from the change on; ValueError if that is not possible."""
    settings = {**so_far.settings, **chain}
    stored: Any = checked_floor(floor, settings, following.chain)
    account = FloorsAfter(so_far, following)
    if not isinstance(floor, str):
        account.check(stored)
        return stored
    return largest_within(account.are_kept, 0.0, stored, tolerance=TOLERANCE)


class FloorsAfter:
    """Which floors of a chain can be kept after what was released."""

    def __init__(self, so_far: SoFar, following: Segment):
        self.so_far = so_far
        self.chain = following.chain
        in_place = joined(so_far.segment, following).chain
        self.losses = loss_cycles(in_place.backward, in_place.forward)

    def check(self, floor: float | list[float]) -> None:
        """ValueError for one that cannot be kept (Theorem 8)."""
        floors = _one_later(self.chain.with_floor(floor).floors)
        FloorSuprema(self.so_far.settings["alpha"], self.losses, floors, self.so_far.settled)

    def are_kept(self, floor: float) -> bool:
        """Whether one can be kept."""
        try:
            self.check(floor)
        except ValueError:
            return False
        return True
