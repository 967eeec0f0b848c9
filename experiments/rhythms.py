"""Does the plan that a report recommends keep its promise to people whose habits follow the clock?

Each simulated world has hourly data of people, the true chains of whom give the exact TPL of
budgets: the largest over users, who start in their habit at the hour at which the plan begins.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
import pandas as pd

import tplreport as tr
import tplrepro as tpl
from experiments.advice.judging import (
    Judgement,
    judgement_of,
    plan_for_one_chain,
    row_of,
    summarize_by_kind,
)
from experiments.advice.walking import walk
from tplreport.reporting.believable import JudgedChain
from tplreport.reporting.checks import DOUBTFUL
from tplrepro.markov import Sequences

HOURS = 24
HOURS_OF_WEEK = 7 * HOURS
MONDAY = np.datetime64("2024-05-06", "us")
NO_RHYTHM = "no rhythm"
USERS_DIFFER = "users who differ"
SHIFTED = "users who rise earlier or later"
#: Of habits that all users have.
SHARED_RHYTHMS = ("still nights", "three parts of a day", "smooth over the day", "still weekends")
KINDS = (NO_RHYTHM, *SHARED_RHYTHMS, USERS_DIFFER, SHIFTED)
#: Of the table by kind: what happened in how many worlds.
RHYTHM_FOUND = "rhythm found"
ONE_CHAIN_BREAKS = "above α by one chain"


@dataclass(frozen=True)
class World:
    """People with known habits, and what is to be published about them."""

    kind: str
    habits: list[np.ndarray]  # each (p, n, n): the matrices of the hours of a day or week
    of_user: np.ndarray  # (users,), whose habits each user has
    days: int
    alpha: float
    horizon: int
    first: int  # the hour of the week of the first release

    @property
    def time_of_first(self) -> str:
        """A date and time of that hour."""
        return str(MONDAY + np.timedelta64(self.first, "h"))

    def data(self, *, rng: np.random.Generator) -> Sequences:
        """Hourly places of all users, from a Monday at midnight on."""
        length = self.days * HOURS
        habits = np.array(self.habits)
        laws = np.array([tpl.Cycle(habit).laws()[0] for habit in habits])
        paths = walk(habits, laws, self.of_user, length, rng=rng)
        n = habits.shape[2]
        return Sequences(
            paths.ravel(),
            np.arange(self.of_user.size + 1) * length,
            np.arange(n),
            np.arange(self.of_user.size),
            starts=np.full(self.of_user.size, MONDAY),
            step=timedelta(hours=1),
        )

    def tpl(self, budgets: Any) -> float:
        """The largest TPL about any user to an adversary who knows her chains."""
        largest = []
        for number in np.unique(self.of_user):
            habit = self.habits[number]
            from_first = np.roll(habit, -self.first, axis=0)
            cycle = tpl.Cycle(from_first)
            leakage = tpl.temporal_privacy_leakage(budgets, cycle.reverse(), cycle)
            largest.append(leakage.max())
        return max(largest)


@dataclass(frozen=True)
class RhythmOutcome:
    """One simulated world, and the report on it; nats."""

    kind: str
    users: int
    days: int
    rhythm: str  # the phases by which the report judges; empty: one chain
    finds_rhythm: bool  # whether the time of day or of the week matters to the check
    pooled_tpl: float  # of the model's plan of a report with one chain for all hours
    judgement: Judgement


def judge_rhythms(worlds: int, *, rng: np.random.Generator) -> pd.DataFrame:
    """The outcomes of so many random worlds, all kinds in turn.

    Parameters
    ----------
    worlds : int
        The number of data sets.
    rng : numpy.random.Generator
        Draws the worlds and their data.

    Returns
    -------
    DataFrame
        A row for each world, with the fields of `RhythmOutcome`, and what its judgement says.
    """
    rows = []
    for number, own_rng in enumerate(rng.spawn(worlds)):  # so that each can be looked at alone
        outcome = simulate(KINDS[number % len(KINDS)], rng=own_rng)
        rows.append(row_of(outcome))
    return pd.DataFrame(rows)


def summarize(outcomes: pd.DataFrame) -> pd.DataFrame:
    """What happened in how many of the `outcomes` of `judge_rhythms`, by kind."""
    more = {
        RHYTHM_FOUND: outcomes["finds_rhythm"],
        ONE_CHAIN_BREAKS: outcomes["pooled_tpl"] > outcomes["alpha"],
    }
    return summarize_by_kind(outcomes, **more)


def simulate(kind: str, *, rng: np.random.Generator) -> RhythmOutcome:
    """The outcome of one world of this kind, of random size, habits, level and horizon."""
    world = random_world(kind, rng=rng)
    data = world.data(rng=rng)
    advice = tr.report(data, world.alpha, world.horizon, first=world.time_of_first, draws=0)
    pooled = JudgedChain.of(data, cycle=None)
    believed = JudgedChain.of(data, first=world.time_of_first).counted
    by_one_chain = plan_for_one_chain(pooled.counted, world.alpha, world.horizon)
    return RhythmOutcome(
        kind,
        users=world.of_user.size,
        days=world.days,
        rhythm="" if advice.rhythm is None else advice.rhythm.name,
        finds_rhythm=pooled.time_of_day.check.verdict == DOUBTFUL,
        pooled_tpl=world.tpl(by_one_chain.budgets),
        judgement=judgement_of(advice, believed, world.tpl),
    )


def random_world(kind: str, *, rng: np.random.Generator) -> World:
    """People with random habits of one of `KINDS`."""
    n = int(rng.integers(2, 5))
    users = int(rng.choice([10, 30, 60, 120]))
    of_user = np.zeros(users, dtype=np.int64)
    habits = list(_random_habits(kind, n, rng=rng))
    if len(habits) > 1:
        of_user = rng.integers(len(habits), size=users)
    return World(
        kind,
        habits,
        of_user,
        days=int(rng.choice([7, 14, 28])),
        alpha=float(rng.choice([0.5, 1.0, 2.0])),
        horizon=int(rng.choice([12, 24, 48])),
        first=int(rng.integers(HOURS_OF_WEEK)),
    )


def _random_habits(kind: str, n: int, *, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """The matrices of all hours, (24, n, n) or (168, n, n); of each sort of user."""
    day = _random_chain(n, rng)
    if kind == NO_RHYTHM:
        yield np.array([day] * HOURS)
    elif kind == "three parts of a day":
        cuts = np.sort(rng.choice(np.arange(1, HOURS), 2, replace=False))
        parts = [_random_chain(n, rng) for _ in range(3)]
        yield np.array([parts[int(np.searchsorted(cuts, hour, "right"))] for hour in range(HOURS)])
    elif kind == "smooth over the day":
        width = rng.uniform(0.2, 0.9)
        angles = 2.0 * np.pi * np.arange(HOURS) / HOURS
        yield np.array([_stiller(day, width * (1.0 + np.cos(angle)) / 2.0) for angle in angles])
    elif kind == "still weekends":
        still = _stiller(day, rng.uniform(0.3, 0.95))
        yield np.array([day] * (5 * HOURS) + [still] * (2 * HOURS))
    else:
        habit = _still_nights(day, rng)
        yield habit
        if kind == USERS_DIFFER:
            yield _still_nights(_random_chain(n, rng), rng)
        elif kind == SHIFTED:
            yield from (np.roll(habit, hours, axis=0) for hours in (-2, -1, 1, 2))


def _still_nights(day: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The matrices of 24 hours, of which those of a night are stiller."""
    begins = int(rng.integers(21, 27))
    hours_of_night = (begins + np.arange(rng.integers(4, 10))) % HOURS
    night = _stiller(day, rng.uniform(0.3, 0.98))
    habit = np.array([day] * HOURS)
    habit[hours_of_night] = night
    return habit


def _stiller(matrix: np.ndarray, share: float) -> np.ndarray:
    """The matrix of who does not move with this probability, and else as before."""
    return share * np.eye(len(matrix)) + (1.0 - share) * matrix


def _random_chain(n: int, rng: np.random.Generator) -> np.ndarray:
    """A random matrix, no entry of which is below 0.02 / n."""
    rows = _stiller(rng.dirichlet(np.full(n, rng.choice([1.0, 3.0])), n), 0.9 * rng.random())
    return 0.98 * rows + 0.02 / n
