"""Leakage of many users by their own chains."""

from collections.abc import Iterator

import numpy as np

import tplreport as tr
from benchmarks.measuring import processor_seconds, seconds_in_turn, seconds_of
from benchmarks.sections.walks import N_STATES, walking_users
from benchmarks.tables import PLAIN_HEAD, RATIO_HEAD, ratio_row, row, shown
from tplrepro.leakage.envelope import dense
from tplrepro.markov import Sequences

USERS = 100_000
BUDGETS = [0.1] * 10
#: Aim for the seconds of the processor that a user takes.
AIM = 33e-6


def measure() -> Iterator[str]:
    data = walking_users(USERS)
    some = data.select(np.arange(2000))
    yield from measure_against_single_calls(some, data.n_states)
    tr.population_leakage(some, BUDGETS, n_jobs=2, batch_size=500)
    spent = seconds_of(lambda: tr.population_leakage(data, BUDGETS, n_jobs=2))
    yield ""
    yield PLAIN_HEAD
    what = f"{USERS:,} users, 20 states, 50 steps each, both sides, T = 10, two processes"
    yield row(what, f"{spent:.1f} s, {USERS / spent:,.0f} users/s", "60,000 users/s")
    fewer = data.select(np.arange(20_000))
    one = processor_seconds(lambda: tr.population_leakage(fewer, BUDGETS)) / 20_000
    yield row("CPU time a user, in one process", shown(one), "33 µs")
    matrices = matrices_of_users(data, 2000)
    of_hulls = processor_seconds(lambda: [*map(dense.hull_of_few_rows, matrices)]) / 1000
    what = "of which two hulls: all 380 pairs of rows at the slope of each edge"
    yield row(what, shown(of_hulls), "")
    rest = one - of_hulls
    left = shown(max(AIM - rest, 0.0))
    yield ""
    yield "Half of a hull are searches, in which a bound dismisses most rows and the others are"
    yield "compared with all, and most of the other half are pairs that are sorted into it. All"
    yield f"else takes {shown(rest)} a user, so that 33 µs would need two hulls in {left}."


def measure_against_single_calls(some: Sequences, n_states: int) -> Iterator[str]:
    """The rows of one call for all users of `some` beside one for each user."""

    def one_by_one() -> None:
        for user in range(len(some)):
            tr.population_leakage(some.select([user]), BUDGETS, n_states=n_states)

    theirs, own = seconds_in_turn(3, one_by_one, lambda: tr.population_leakage(some, BUDGETS))
    yield RATIO_HEAD
    yield ratio_row("2,000 users: one call for each, and one for all", theirs, own)


def matrices_of_users(data: Sequences, users: int) -> np.ndarray:
    """Smoothed chains of the first users, (users, n, n)."""
    n_pairs = N_STATES**2
    user = np.arange(data.values.size) // 50
    steps = n_pairs * user + N_STATES * data.values + np.roll(data.values, -1)
    counts = np.bincount(steps)[: n_pairs * users]
    matrices = counts.reshape(-1, N_STATES, N_STATES) + 0.05
    return matrices / matrices.sum(axis=2, keepdims=True)
