"""Prior-free losses, pairs of states, and budgets that are chosen as one goes."""

from collections.abc import Iterator
from itertools import permutations

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array

import tplfrontier as tf
import tplrepro as tpl
from benchmarks.measuring import seconds_in_turn, seconds_of
from benchmarks.tables import PLAIN_HEAD, RATIO_HEAD, ratio_row, row, shown

#: Nats between two cells of a grid, a step.
STEP = 0.3
RELEASES = 10**6


def measure() -> Iterator[str]:
    rng = np.random.default_rng(0)
    yield from measure_ratios(rng)
    yield ""
    yield PLAIN_HEAD
    rows = rng.dirichlet(np.full(1000, 0.5), 1000)
    took = seconds_of(lambda: tpl.PriorFreeLoss(rows))
    yield row("prior-free loss, n = 1,000", shown(took), "0.5 s")
    rows = rng.dirichlet(np.full(100, 0.5), 100)
    distances = grid_distances(10, 10)
    took = seconds_of(lambda: tf.pairwise_leakage([distances] * 2, rows, None))
    what = "pairs of states, n = 100, a 10 × 10 grid, one step of one side"
    yield row(what, shown(took), "5 s")
    yield from measure_filter(rng)


def measure_ratios(rng: np.random.Generator) -> Iterator[str]:
    """Beside NumPy and beside HiGHS."""
    rows = rng.dirichlet(np.full(500, 0.5), 500)
    theirs, own = seconds_in_turn(
        3, lambda: cross_ratio_by_numpy(rows), lambda: tpl.PriorFreeLoss(rows)
    )
    yield RATIO_HEAD
    what = "prior-free loss, n = 500: quotients of each row with all others (NumPy)"
    yield ratio_row(what, theirs, own)
    few = rng.dirichlet(np.full(30, 0.5), 30)
    distances = grid_distances(5, 6)
    theirs, own = seconds_in_turn(
        3,
        lambda: pairs_by_highs(few, distances),
        lambda: tf.pairwise_leakage([distances] * 2, few, None),
    )
    what = "pairs of states, n = 30, a 5 × 6 grid, one step: 870 sparse linear programmes (HiGHS)"
    yield ratio_row(what, theirs, own)


def measure_filter(rng: np.random.Generator) -> Iterator[str]:
    """Budgets that are spent as long as they remain, and what remains after a pause."""
    P = tpl.TransitionMatrix([[0.8, 0.2], [0.1, 0.9]])
    account = tpl.TemporalAccountant(backward=P, forward=P, alpha=1.0, floor=0.1)
    draws = rng.uniform(0.02, 0.18, RELEASES).tolist()
    what = (
        "a million different releases within α = 1 with a floor of 0.1: from 0.02 to 0.18, "
        "or what remains"
    )
    took = seconds_of(lambda: spend_what_remains(account, draws))
    yield row(what, shown(took), "5 s")
    hours = tpl.Cycle([[[0.8, 0.2], [0.1 + hour / 1000, 0.9 - hour / 1000]] for hour in range(24)])
    account = tpl.TemporalAccountant(backward=hours, forward=hours, alpha=1.0, floor=0.1)
    took = seconds_of(lambda: spend_what_remains(account, draws))
    yield row("the same with a cycle of 24 phases", shown(took), "10 s")
    account = tpl.TemporalAccountant(backward=hours.reverse(), forward=hours)
    for draw in draws:
        account.compose(draw)
    took = seconds_of(lambda: account.leakage)
    yield row("all leakages of a million releases, with a cycle of 24 phases", shown(took), "5 s")
    for pause in (10**3, 10**6):
        paused = tpl.TemporalAccountant(backward=P, forward=P, alpha=1.0).compose(0.2).skip(pause)
        first = seconds_of(lambda paused=paused: paused.remaining)
        again = seconds_of(lambda paused=paused: paused.remaining)
        what = f"`remaining` after a pause of {pause:,} times, and again"
        yield row(what, f"{shown(first)}, {shown(again)}", "")


def spend_what_remains(account: tpl.TemporalAccountant, draws: list[float]) -> None:
    """Compose each of the budgets `draws`, or as much of it as remains in the account."""
    for draw in draws:
        account.compose(min(draw, account.remaining))


def cross_ratio_by_numpy(rows: np.ndarray) -> float:
    """The largest P_ik P_jl / (P_jk P_il)."""
    quotients = (one_row / rows for one_row in rows)
    return max((quotient.max(axis=1) / quotient.min(axis=1)).max() for quotient in quotients)


def grid_distances(rows: int, columns: int) -> np.ndarray:
    """`STEP` for each step between cells (rows columns, rows columns)."""
    place = np.stack(np.divmod(np.arange(rows * columns), columns))
    return STEP * abs(place[:, :, None] - place[:, None]).sum(axis=0)


def pairs_by_highs(rows: np.ndarray, distances: np.ndarray) -> float:
    """The largest log ratio of two rows' means, by a programme for each pair, with neighbours'
    constraints."""
    high, low = np.nonzero((distances > 0.0) & (distances < 0.5))
    each = np.arange(high.size)
    values = np.concatenate([np.ones(high.size), -np.exp(distances[high, low])])
    places = (np.tile(each, 2), np.concatenate([high, low]))
    above = csr_array((values, places))
    least = min(
        linprog(-q, above, np.zeros(high.size), d[None], [1.0], method="highs").fun
        for q, d in permutations(rows, 2)
    )
    return -least
