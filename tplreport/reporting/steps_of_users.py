"""The steps of users, in the order of users and of time, with all that a check may condition on."""

from __future__ import annotations
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property

import numpy as np
import pandas as pd

from tplreport.people.rhythm import stays
from tplrepro.markov.phases import SATURDAY, PhaseGroups
from tplrepro.markov.sequences import Sequences, steps_of_period
from tplrepro.markov.transition import DAY, WEEK

#: Parts of the day, of which each has fewer phases than a rhythm may have.
PARTS_OF_DAY = 4
#: Users are dealt to so many folds, in the order of their names.
FOLDS = 16
#: Steps are judged in blocks of users with about so many.
STEPS_AT_ONCE = 125_000
#: A worker gets about so many at once, in fewer bytes than Dask warns of (10 MiB).
STEPS_OF_TASK = 1_000_000
HOUR = timedelta(hours=1)


@dataclass(frozen=True, eq=False)
class Clock:
    """What the hours of a period are, and to which phase each of them belongs."""

    phase_of_hour: np.ndarray  # (h,), for hours of a day or week, or longer steps
    steps_per_hour: int
    period: timedelta

    @classmethod
    def of(cls, groups: PhaseGroups) -> Clock:
        """The hours of the period of `groups`; steps, where these are no parts of an hour."""
        steps_per_hour = 1
        if HOUR % groups.step == timedelta(0):
            steps_per_hour = HOUR // groups.step
        return cls(groups.codes[::steps_per_hour], steps_per_hour, groups.period)

    @property
    def n_hours(self) -> int:
        return len(self.phase_of_hour)

    @property
    def n_phases(self) -> int:
        return int(self.phase_of_hour.max()) + 1

    def hours_of(self, data: Sequences) -> np.ndarray:
        """The hour of each value, (m,)."""
        return data.phases(self.period) // self.steps_per_hour


#: One hour of one phase.
NO_CLOCK = Clock(np.zeros(1, dtype=np.int64), 1, timedelta(0))


@dataclass(frozen=True, eq=False)
class Steps:
    """The steps of a block of users, all those of a user one after the other; arrays (m,)."""

    before: np.ndarray  # codes of states
    after: np.ndarray
    user: np.ndarray  # places in `users`
    hour: np.ndarray  # of the clock
    users: np.ndarray  # (u,), numbers of the users of the block among all
    folds: np.ndarray  # (u,), to which they are dealt
    clock: Clock
    data: Sequences  # of these users
    place: np.ndarray  # of `before` among the values of these

    @property
    def n_states(self) -> int:
        return self.data.n_states

    @cached_property
    def earlier(self) -> np.ndarray:
        """The state before `before`, -1 at the start of a sequence, (m,)."""
        is_first = np.ones(self.data.values.size, dtype=bool)
        is_first[self.place + 1] = False
        return np.where(is_first[self.place], -1, self.data.values[self.place - 1])

    @cached_property
    def quarter(self) -> np.ndarray:
        """The quarter of the user's own steps, 0 to 3, (m,)."""
        return _quarters(np.bincount(self.user, minlength=len(self.users)))

    @cached_property
    def stay(self) -> np.ndarray:
        """How long the user has been in the state `before`, 0 to 2; -1 if not known, (m,)."""
        return stays(self.data)[self.place] - 1

    @cached_property
    def part(self) -> np.ndarray:
        """The part of the day, by weekdays and the weekend where they differ, (m,)."""
        return _parts(self.data, self.clock)[self.place]

    @property
    def has_parts(self) -> bool:
        """Whether the part of the day is known."""
        return has_parts_of_day(self.data)

    @cached_property
    def phase(self) -> np.ndarray:
        """The phase of each step, (m,)."""
        return self.clock.phase_of_hour[self.hour]

    @cached_property
    def fold(self) -> np.ndarray:
        """The fold of each step's user, (m,)."""
        return self.folds[self.user]

    @property
    def n_phases(self) -> int:
        return self.clock.n_phases

    def sum_by_user(self, values: np.ndarray) -> np.ndarray:
        """The sum of the values (m,) of each user's steps, (u,)."""
        sums = np.zeros(len(self.users), dtype=values.dtype)
        if self.first_steps.size:
            sums[self.has_steps] = np.add.reduceat(values, self.first_steps)
        return sums

    @cached_property
    def has_steps(self) -> np.ndarray:
        """Which users have steps, (u,)."""
        return np.bincount(self.user, minlength=len(self.users)) > 0

    @cached_property
    def first_steps(self) -> np.ndarray:
        """The places of the first steps of these users."""
        return np.flatnonzero(np.diff(self.user, prepend=-1))


@dataclass(frozen=True, eq=False)
class PartOfUsers:
    """All steps of some users, as a worker gets them."""

    data: Sequences  # whose users are numbers, in order
    n_users: int  # of all
    clock: Clock

    def __iter__(self) -> Iterator[Steps]:
        steps = np.maximum(self.data.lengths - 1, 0)
        for chosen in users_together(self.data.users, steps, STEPS_AT_ONCE):
            block = self.data.part(chosen.start, chosen.stop)
            yield steps_of_block(block, self.n_users, self.clock)

    @property
    def users(self) -> np.ndarray:
        """The numbers of the users, (u,)."""
        return np.unique(self.data.users)


@dataclass(frozen=True, eq=False)
class StepBlocks:
    """All steps of `data`, in parts of users."""

    data: Sequences
    order: np.ndarray  # (k,), the sequences in the order of the numbers of their users
    user_of_sequence: np.ndarray  # (k,), these numbers, by the names of users
    names: np.ndarray  # (u,)
    groups: PhaseGroups | None = None

    @classmethod
    def of(cls, data: Sequences, groups: PhaseGroups | None = None) -> StepBlocks:
        """The steps of `data`, whose users are numbered in the order of their names, whatever the
        order in which the data have them."""
        codes, names = pd.factorize(data.users, use_na_sentinel=False)
        order = np.argsort(np.array([str(name) for name in names]), kind="stable")
        number = np.empty(len(names), dtype=np.int64)
        number[order] = np.arange(len(names))
        users = number[codes]
        sequences = np.argsort(users, kind="stable")
        return cls(data, sequences, users[sequences], np.asarray(names)[order], groups)

    @property
    def n_users(self) -> int:
        return len(self.names)

    @property
    def clock(self) -> Clock:
        if self.groups is None:
            return NO_CLOCK
        return Clock.of(self.groups)

    def __iter__(self) -> Iterator[Steps]:
        for part in self.parts():
            yield from part

    def parts(self) -> Iterator[PartOfUsers]:
        """The steps of all users, some users at a time."""
        steps = np.maximum(self.data.lengths - 1, 0)[self.order]
        for chosen in users_together(self.user_of_sequence, steps, STEPS_OF_TASK):
            part = self.data.select(self.order[chosen])
            part = replace(part, users=self.user_of_sequence[chosen])
            yield PartOfUsers(part, self.n_users, self.clock)


def users_together(users: np.ndarray, steps: np.ndarray, size: int) -> Iterator[slice]:
    """The places of sequences, those of some users with about `size` steps at a time.

    Sequences (k,) are in the order of their `users`, and have so many `steps`.
    """
    block = (np.cumsum(steps) - steps) // size
    first_of_user = np.searchsorted(users, users)
    block = block[first_of_user]  # that of a user's first sequence
    limits = np.flatnonzero(np.diff(block, prepend=-1, append=-1))
    for first, stop in itertools.pairwise(limits.tolist()):
        yield slice(first, stop)


def steps_of_block(data: Sequences, n_users: int, clock: Clock = NO_CLOCK) -> Steps:
    """The steps of some users of whom there are `n_users` in all, and whose names in `data` are
    their numbers, in order."""
    users, user_of_sequence = np.unique(data.users, return_inverse=True)
    later = data.places_of_later_values()
    user = np.repeat(user_of_sequence, np.maximum(data.lengths - 1, 0))
    hour = np.zeros(later.size, dtype=np.int64)
    if clock.period:
        hour = clock.hours_of(data)[later - 1]
    return Steps(
        before=data.values[later - 1].astype(np.int64),
        after=data.values[later].astype(np.int64),
        user=user,
        hour=hour,
        users=users,
        folds=users * min(FOLDS, n_users) // n_users,
        clock=clock,
        data=data,
        place=later - 1,
    )


def _quarters(numbers: np.ndarray) -> np.ndarray:
    """The quarter, 0 to 3, of each step of users who take so many.

    >>> _quarters(np.array([2, 5])).tolist()
    [0, 2, 0, 0, 1, 2, 3]
    """
    begins = -(-np.outer(numbers, np.arange(5)) // 4)
    lengths = np.diff(begins, axis=1)
    return np.repeat(np.tile(np.arange(4), len(numbers)), lengths.ravel())


def has_parts_of_day(data: Sequences) -> bool:
    """Whether the part of the day of each value is known."""
    has_clock = data.starts is not None or data.times is not None
    return has_clock and data.step is not None and DAY % data.step == timedelta(0)


def _parts(data: Sequences, clock: Clock) -> np.ndarray:
    """The part of the day of each value, (m,), apart for the weekend if the phases are of a week; 0
    where no part of the day is known."""
    if not has_parts_of_day(data):
        return np.zeros(data.values.size, dtype=np.int64)
    assert data.step is not None
    part = data.phases(DAY) * PARTS_OF_DAY // (DAY // data.step)
    if clock.period == WEEK:
        day = data.phases(WEEK) * 7 // steps_of_period(data.step, WEEK)
        part = part + PARTS_OF_DAY * (day >= SATURDAY)
    return part
