"""E-values against one chain for everybody: evidence that cannot be drowned.

Each step is predicted twice: by the habits of all, p, and by those of its context, (w p + k) / (w +
K), where k of K earlier steps of this context went where this one goes. Both are probabilities of
the same steps, so that the product of their ratios, and any mean of such products over contexts,
weights w and users, is 1 in expectation if p is right (docs/theory/evidence.md). It then exceeds 20
in at most 5 % of all data sets.

p is not known: it is predicted as well, from the steps of other users and the user's own earlier
ones. Rows of an hour are shrunk towards those of the hours around it, these towards those of the
phase, these towards those of all hours, and these towards how often anybody stays or goes to a
state. Users are dealt to folds. For one user after the other, p is from the folds before hers
("earlier"), so that products over users are right, too; for one odd user among all, from all other
folds ("others").

Steps are judged in blocks of users. What is counted in a block, `Tables`, and what is found there,
`BlockFindings`, can be added up in any order, to the last bit.
"""

from __future__ import annotations
import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import fsum
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import gammaln

from tplreport.people.workers import run_tasks
from tplreport.reading.rows_by_user import stable_order
from tplreport.reporting.steps_of_users import Clock, PartOfUsers, StepBlocks, Steps
from tplrepro.leakage.envelope.compiled import has_room, kernel

#: Weights of the habits of all in those of a context, in steps.
WEIGHTS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
#: Further weights for all steps together, of which there are more.
MORE_WEIGHTS = (3e3, 1e4, 3e4, 1e5)
#: Shares of users who may be odd.
SHARES = (0.01, 0.03, 0.1, 0.3, 1.0)
#: By how many hours a user's habits may be earlier or later.
HOURS_SHIFTED = (-6, -5, -4, -3, -2, -1, 1, 2, 3, 4, 5, 6, 8, 12)
#: Spreads of the hours of users: that a user is s hours earlier or later than all is as likely as
#: exp(-|s| / spread) says.
HOURS_APART = (0.5, 1.0, 2.0, 4.0, 24.0)
#: An e-value above this counts: against what is right, at most one of so many data sets has one.
ALARM = 20.0
#: How far the hours are whose habits stand for those of an hour, by level: all that are no nearer
#: than those of the next level.
AROUND = {"wide": (2, 3, 4), "around": (1,), "hour": (0,)}
#: Users of this share of folds, the first ones, are not judged by earlier ones where hours matter.
WARM_UP = 0.25
#: Steps from states that fewer others left at their phase are not judged: habits there are hardly
#: known.
FEWEST = 10
#: Logarithms are added up in whole multiples of this, so that no order of users matters.
UNIT = 2.0**-30
#: Numbers below this are looked up in a table, which takes a twentieth of the time of a search.
MOST_IN_TABLE = 1 << 20
#: Up to so many groups for each of their entries are counted one by one; more are sorted.
MOST_GROUPS = 8
#: Earlier steps among fewer are found by sorting, which takes less time than loading Numba.
MANY_STEPS = 1 << 16
#: Weights of the rows of a level in those of the next one that are tried, in steps.
LEVEL_WEIGHTS = tuple(4.0**power for power in range(10, 0, -1))
#: By which it is estimated how likely these are.
EM_STEPS = 5

#: Of one of four differences before any evidence, if one chain for all is as likely as not.
ODDS = 0.25

EARLIER = "earlier"
OTHERS = "others"


@dataclass(frozen=True, eq=False)
class Counts:
    """How often the users of each fold went from a row to an outcome."""

    cells: np.ndarray  # (c,), distinct numbers row * n + outcome, ascending
    of_cells: np.ndarray  # (folds, c)
    n: int  # outcomes

    @classmethod
    def of(
        cls, fold: np.ndarray, row: np.ndarray, outcome: np.ndarray, n: int, folds: int
    ) -> Counts:
        """Count steps; `fold`, `row` and `outcome` are arrays (m,). Rows below 0 do not count."""
        known = row >= 0
        if not known.all():
            fold = fold[known]
            row = row[known]
            outcome = outcome[known]
        numbers = row * n + outcome
        size = int(numbers.max(initial=-1)) + 1
        if size * folds <= MOST_GROUPS * numbers.size:
            places = fold * size + numbers
            of_numbers = np.bincount(places, minlength=folds * size).reshape(folds, size)
            cells = np.flatnonzero(of_numbers.any(axis=0))
            return cls(cells, of_numbers[:, cells], n)
        codes, cells = pd.factorize(numbers, sort=True)
        places = fold * len(cells) + codes
        of_cells = np.bincount(places, minlength=folds * len(cells))
        return cls(cells, of_cells.reshape(folds, len(cells)), n)

    @classmethod
    def merged(cls, parts: list[Counts]) -> Counts:
        """The counts of all parts together."""
        numbers = np.concatenate([part.cells for part in parts])
        of_cells = np.concatenate([part.of_cells for part in parts], axis=1)
        return cls(*_add_up(numbers, of_cells), parts[0].n)

    def regrouped(self, row: np.ndarray, outcome: np.ndarray) -> Counts:
        """The same steps by other rows and outcomes, (c,) of the cells; rows below 0 do not
        count."""
        known = row >= 0
        numbers = row[known] * self.n + outcome[known]
        return Counts(*_add_up(numbers, self.of_cells[:, known]), self.n)

    @property
    def row(self) -> np.ndarray:
        return self.cells // self.n

    @property
    def outcome(self) -> np.ndarray:
        return self.cells % self.n


def _add_up(numbers: np.ndarray, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct numbers (d,), ascending, and the sums (folds, d) of the columns of each."""
    distinct, codes = np.unique(numbers, return_inverse=True)
    order = np.argsort(codes, kind="stable")
    begins = np.searchsorted(codes[order], np.arange(len(distinct)))
    if not len(distinct):
        return distinct, columns
    return distinct, np.add.reduceat(columns[:, order], begins, axis=1)


@dataclass(frozen=True, eq=False)
class Seen:
    """Counts that the users of each fold are predicted from."""

    counts: Counts
    of_cells: np.ndarray  # (folds, c + 1), the last column for cells that are not there
    rows: np.ndarray  # (r,), ascending
    of_rows: np.ndarray  # (folds, r + 1)
    weights: np.ndarray  # (folds, r + 1), of the rows of the level before, in steps
    base: np.ndarray  # (folds, r + 1), which of several levels before is that one

    @classmethod
    def of(cls, counts: Counts, see: Callable[[np.ndarray], np.ndarray], weight: float) -> Seen:
        of_cells = see(counts.of_cells)
        rows, of_rows = _add_up(counts.row, of_cells)
        of_rows = _with_none(of_rows)
        weights = np.full(of_rows.shape, weight)
        base = np.zeros(of_rows.shape, dtype=np.int64)
        return cls(counts, _with_none(of_cells), rows, of_rows, weights, base)

    def with_weight(self, weight: float) -> Seen:
        """With one weight for all rows."""
        return replace(self, weights=np.full(self.weights.shape, weight))

    def weighted(self, bases: list[np.ndarray]) -> Seen:
        """With the likeliest weight and level before of each row, if the levels give cells the
        probabilities `bases`, each (folds, c).

        How likely these are for any row is estimated from all rows (empirical Bayes), by a few
        steps of expectation and maximisation.
        """
        counts = self.of_cells[:, :-1]
        if not counts.size:
            return self
        begins = np.searchsorted(self.counts.row, self.rows)
        logs = []
        for base in bases:
            for weight in LEVEL_WEIGHTS:
                of_cells = gammaln(weight * base + counts) - gammaln(weight * base)
                of_rows = gammaln(weight) - gammaln(weight + self.of_rows[:, :-1])
                logs.append(np.add.reduceat(of_cells, begins, axis=1) + of_rows)
        evidence = np.array(logs)  # (bases * weights, folds, rows)
        is_left = self.of_rows[:, :-1] > 0
        prior = np.zeros(evidence.shape[:2])
        for _ in range(EM_STEPS):
            posterior = evidence + prior[:, :, None]
            posterior = np.exp(posterior - np.logaddexp.reduce(posterior, axis=0))
            prior = np.log((posterior * is_left).sum(axis=2) + 1e-3)
        best = np.argmax(evidence + prior[:, :, None], axis=0)
        number, place = np.divmod(best, len(LEVEL_WEIGHTS))
        weights = np.array(LEVEL_WEIGHTS)[place]
        of_others = np.ones((len(weights), 1))  # for rows that are not there
        return replace(self, weights=np.hstack([weights, of_others]), base=_with_none(number))

    @cached_property
    def _cells(self) -> Places:
        return Places(self.counts.cells)

    @cached_property
    def _rows(self) -> Places:
        return Places(self.rows)

    def places_of_cells(self, row: np.ndarray, outcome: np.ndarray) -> np.ndarray:
        return self._cells.of(row * self.counts.n + outcome)

    def places_of_rows(self, row: np.ndarray) -> np.ndarray:
        return self._rows.of(row)


def see_earlier(of_cells: np.ndarray) -> np.ndarray:
    """The counts of the folds before each one."""
    return np.cumsum(of_cells, axis=0) - of_cells


def see_others(of_cells: np.ndarray) -> np.ndarray:
    """The counts of all other folds."""
    return of_cells.sum(axis=0) - of_cells


def see_all(of_cells: np.ndarray) -> np.ndarray:
    """All counts, seen by a single fold."""
    return of_cells.sum(axis=0, keepdims=True)


def _with_none(columns: np.ndarray) -> np.ndarray:
    return np.column_stack([columns, np.zeros(len(columns), dtype=columns.dtype)])


@dataclass(frozen=True, eq=False)
class Places:
    """The places of numbers among distinct, ascending ones; the number of these if not there.

    >>> Places(np.array([5, 7])).of(np.array([7, -3, 5, 9, 6])).tolist()
    [1, 2, 0, 2, 2]
    """

    distinct: np.ndarray

    @cached_property
    def table(self) -> np.ndarray | None:
        """The place of each number from -1 on, which stands for all below 0; the last entry is for
        those beyond the largest. None if there would be too many."""
        distinct = self.distinct
        if not distinct.size or distinct[-1] >= MOST_IN_TABLE:
            return None
        table = np.full(distinct[-1] + 3, len(distinct))
        table[distinct + 1] = np.arange(len(distinct))
        return table

    def of(self, numbers: np.ndarray) -> np.ndarray:
        """The place of each number."""
        if self.table is not None:
            return self.table.take(numbers + 1, mode="clip")
        places = np.searchsorted(self.distinct, numbers)
        is_found = np.append(self.distinct, -1)[places] == numbers
        return np.where(is_found, places, len(self.distinct))


def _count_in_runs(order: np.ndarray, *keys: np.ndarray) -> np.ndarray:
    """For each entry how many of the same keys, each (m,), come right before it in an order.

    >>> _count_in_runs(np.array([1, 0, 2, 3]), np.array([7, 5, 7, 7])).tolist()
    [0, 0, 1, 2]
    """
    places = np.arange(len(order), dtype=np.int32)
    is_first = np.zeros(len(order), dtype=bool)
    for key in keys:
        ordered = key.take(order)
        is_first[1:] |= ordered[1:] != ordered[:-1]
    firsts = np.maximum.accumulate(places * is_first)
    counts = np.empty_like(places)
    counts[order] = places - firsts
    return counts


#: What rows of states know at a grain by which users, or other contexts, may differ: a code of each
#: step.
GRAINS: dict[str, Callable[[Steps], np.ndarray]] = {
    "state": lambda steps: np.zeros_like(steps.before),
    "part": lambda steps: steps.part,
    "phase": lambda steps: steps.phase,
    "hour": lambda steps: steps.hour,
}
ORDER = "order"
STAY = "stay"
HALVES = "halves"
QUARTERS = "quarters"
#: All steps are alike: no context, by which it is seen what the habits of all lack.
NOTHING = "nothing"
#: What a step may depend on beyond the habits of all; -1 where it is not known.
CONTEXTS: dict[str, Callable[[Steps], np.ndarray]] = {
    ORDER: lambda steps: steps.earlier,
    STAY: lambda steps: steps.stay,
    HALVES: lambda steps: steps.quarter // 2,
    QUARTERS: lambda steps: steps.quarter,
    NOTHING: lambda steps: np.zeros_like(steps.before),
}


def grains_of_users(clock: Clock, has_parts: bool) -> list[str]:
    """The grains at which users are judged."""
    grains = grains_of_contexts(clock)
    if has_parts:
        grains.append("part")
    return grains


def weights_of(context: str) -> tuple[float, ...]:
    """The weights that are tried for a context."""
    if context == NOTHING:
        return (*WEIGHTS, *MORE_WEIGHTS)
    return WEIGHTS


def grains_of_contexts(clock: Clock) -> list[str]:
    """The grains at which other contexts are judged."""
    if clock.n_phases > 1:
        return ["state", "phase"]
    return ["state"]


def row_at(grain: str, steps: Steps) -> np.ndarray:
    """The number of the row of each step at a grain (m,)."""
    return GRAINS[grain](steps) * steps.n_states + steps.before


def row_in(context: str, grain: str, steps: Steps) -> np.ndarray:
    """A number for each pair of a context and a row at a grain (m,); below 0 where the context is
    not known."""
    code = CONTEXTS[context](steps).astype(np.int64)
    return code * (steps.n_phases * steps.n_states) + row_at(grain, steps)


def _in_context(context: str, grain: str) -> str:
    return f"{context} by {grain}"


@dataclass(frozen=True, eq=False)
class Tables:
    """All counts by fold that steps are judged by; those of blocks of users can be added up."""

    hour: Counts  # rows: hours, and states before
    contexts: dict[str, Counts]  # by context and grain

    @classmethod
    def of(cls, steps: Steps, folds: int) -> Tables:
        """Count the steps of a block of users; all users are dealt to so many `folds`."""
        n = steps.n_states
        fold = steps.fold
        hour = Counts.of(fold, row_at("hour", steps), steps.after, n, folds)
        n_rows = steps.n_phases * n
        row_of_grain = {
            "state": hour.row % n,
            "phase": steps.clock.phase_of_hour[hour.row // n] * n + hour.row % n,
        }
        contexts = {}
        for grain in grains_of_contexts(steps.clock):
            for name in (ORDER, STAY, QUARTERS):
                row = row_in(name, grain, steps)
                contexts[_in_context(name, grain)] = Counts.of(fold, row, steps.after, n, folds)
            quarters = contexts[_in_context(QUARTERS, grain)]
            half = quarters.row // n_rows // 2
            of_halves = quarters.regrouped(half * n_rows + quarters.row % n_rows, quarters.outcome)
            contexts[_in_context(HALVES, grain)] = of_halves
            of_all = hour.regrouped(row_of_grain[grain], hour.outcome)
            contexts[_in_context(NOTHING, grain)] = of_all
        return cls(hour, contexts)

    @classmethod
    def merged(cls, parts: list[Tables]) -> Tables:
        """The counts of all blocks together."""
        contexts = {
            name: Counts.merged([part.contexts[name] for part in parts])
            for name in parts[0].contexts
        }
        return cls(Counts.merged([part.hour for part in parts]), contexts)


@dataclass(frozen=True)
class StateWeights:
    """By how many steps rows are shrunk towards what anybody does in any state."""

    leaving: float = LEVEL_WEIGHTS[0]  # whether a state is left
    going: float = LEVEL_WEIGHTS[0]  # where to, if so


@dataclass(frozen=True, eq=False)
class Habits:
    """What steps are predicted from: for each fold, counts of other users by level."""

    seen: dict[str, Seen]
    clock: Clock
    has_hours: bool = False  # whether hours have rows of their own

    @classmethod
    def of(
        cls,
        tables: Tables,
        clock: Clock,
        see: Callable[[np.ndarray], np.ndarray],
        weights: StateWeights,
    ) -> Habits:
        """`see` says which of the counts (folds, c) each fold is predicted from."""
        seen = {name: Seen.of(counts, see, 1.0) for name, counts in tables.contexts.items()}
        for name, counts in levels_of(tables.hour, clock).items():
            seen[name] = Seen.of(counts, see, getattr(weights, name, 1.0))
        habits = cls(seen, clock)
        if clock.n_hours == 1:
            return habits
        habits = habits._with_level("block", ("state",))
        habits = habits._with_level("wide", ("state",))
        habits = habits._with_level("around", ("wide",))
        return replace(habits._with_level("hour", ("block", "around")), has_hours=True)

    def _with_level(self, level: str, before: tuple[str, ...]) -> Habits:
        """These habits, where the rows of a level are weighed against those of the levels
        before."""
        seen = self.seen[level]
        n = seen.counts.n
        folds, n_cells = seen.of_cells[:, :-1].shape
        number = seen.counts.row // n
        predictor = Predictor(
            folds=slice(None),
            place=np.arange(folds * n_cells),
            before=seen.counts.row % n,
            after=seen.counts.outcome,
            own={},
        )
        of_state = predictor.at_state(self)
        bases = [predictor.upto(name, self, number, of_state) for name in before]
        weighted = seen.weighted([base.reshape(folds, n_cells) for base in bases])
        return replace(self, seen=self.seen | {level: weighted})


def likeliest_weights(tables: Tables, clock: Clock) -> StateWeights:
    """The weights by which all other folds predict each fold best, one after the other."""
    hour = tables.hour
    see = see_others
    if len(hour.of_cells) == 1:
        see = see_all
    levels = levels_of_states(hour)
    fold, cell = np.nonzero(hour.of_cells)
    counts = hour.of_cells[fold, cell]
    place = fold * len(hour.cells) + cell
    predictor = Predictor(slice(None), place, hour.row % hour.n, hour.outcome, {})
    seen = {name: Seen.of(of_level, see, LEVEL_WEIGHTS[0]) for name, of_level in levels.items()}
    weights = StateWeights()
    best = -np.inf
    for level in ("leaving", "going"):
        for weight in LEVEL_WEIGHTS:
            tried = seen | {level: seen[level].with_weight(weight)}
            likelihood = float(counts @ np.log(predictor.at_state(Habits(tried, clock))))
            if likelihood > best:
                best = likelihood
                weights = replace(weights, **{level: weight})
        seen[level] = seen[level].with_weight(getattr(weights, level))
    return weights


def levels_of_states(hour: Counts) -> dict[str, Counts]:
    """The counts of levels that know no hours, of those of hours."""
    before = hour.row % hour.n
    after = hour.outcome
    is_move = (before != after).astype(np.int64)
    return {
        "stays": hour.regrouped(np.zeros_like(before), is_move),
        "moves": hour.regrouped(is_move - 1, after),
        "leaving": hour.regrouped(before, is_move),
        "going": hour.regrouped(np.where(is_move, before, -1), after),
    }


def levels_of(hour: Counts, clock: Clock) -> dict[str, Counts]:
    """The counts of all levels, of those of hours."""
    n = hour.n
    number = hour.row // n
    before = hour.row % n
    levels = levels_of_states(hour)
    levels["phase"] = hour.regrouped(clock.phase_of_hour[number] * n + before, hour.outcome)
    if clock.n_hours == 1:
        return levels
    levels["block"] = _other_hours_of_phase(hour, levels["phase"], clock)
    for level, distances in AROUND.items():
        parts = []
        for distance in {*distances, *(-distance for distance in distances)}:
            other = (number + distance) % clock.n_hours
            parts.append(hour.regrouped(other * n + before, hour.outcome))
        levels[level] = Counts.merged(parts)
    return levels


def _other_hours_of_phase(hour: Counts, of_phase: Counts, clock: Clock) -> Counts:
    """For each hour the counts of all other hours of its phase."""
    n = hour.n
    numbers = [hour.cells]
    columns = [-hour.of_cells]
    for number, phase in enumerate(clock.phase_of_hour.tolist()):
        first, last = np.searchsorted(of_phase.cells, [phase * n**2, (phase + 1) * n**2])
        numbers.append(of_phase.cells[first:last] + (number - phase) * n**2)
        columns.append(of_phase.of_cells[:, first:last])
    return Counts(*_add_up(np.concatenate(numbers), np.concatenate(columns, axis=1)), n)


@dataclass(frozen=True, eq=False)
class OwnSteps:
    """How often a user went from the row of each step to its outcome before, and from the row."""

    cells: Any = 0  # (m,)
    rows: Any = 0


NO_STEPS = OwnSteps()


class OwnHistory:
    """The steps of each user of a block before each step."""

    def __init__(self, steps: Steps):
        self.n_states = steps.n_states
        self.user = steps.user
        self.before = steps.before
        self.after = steps.after
        self.is_move = (steps.before != steps.after).astype(np.int64)

    @cached_property
    def of_states(self) -> OwnSteps:
        """Those from the state before each step."""
        return self._in_rows(self.before, self.n_states, self.after, self.n_states)

    @cached_property
    def of_moves(self) -> OwnSteps:
        """The same, where outcomes are whether a user stays or moves."""
        cells = self.before * 2 + self.is_move
        return OwnSteps(count_earlier(self.user, cells, 2 * self.n_states), self.of_states.rows)

    def of_rows(self, row: np.ndarray) -> OwnSteps:
        """Those in the row of each step, which has a number (m,)."""
        row = row - row.min(initial=0)
        return self._in_rows(row, int(row.max(initial=0)) + 1, self.after, self.n_states)

    def _in_rows(
        self, row: np.ndarray, n_rows: int, outcome: np.ndarray, n_outcomes: int
    ) -> OwnSteps:
        """Those in the row of each step (m,), and with its outcome (m,)."""
        cells = count_earlier(self.user, row * n_outcomes + outcome, n_rows * n_outcomes)
        return OwnSteps(cells, count_earlier(self.user, row, n_rows))


def count_earlier(user: np.ndarray, number: np.ndarray, n_numbers: int) -> np.ndarray:
    """How many earlier steps of the same user have the number of each step, (m,).

    Parameters
    ----------
    user : ndarray (m,) of int64, ascending
    number : ndarray (m,) of int64, from 0 on and below `n_numbers`
    n_numbers : int

    Returns
    -------
    ndarray (m,) of int32

    Examples
    --------
    >>> user = np.array([0, 0, 0, 1, 1])
    >>> count_earlier(user, np.array([7, 5, 7, 7, 7]), 8).tolist()
    [0, 0, 1, 0, 1]
    """
    is_worthwhile = len(user) >= MANY_STEPS and n_numbers <= MOST_IN_TABLE
    if is_worthwhile and has_room():  # else slower, and the same
        return count_in_table.compiled(user, number, np.zeros(n_numbers, dtype=np.int32))
    order = stable_order(number, user)
    return _count_in_runs(order, user, number)


@kernel()
def count_in_table(user: np.ndarray, number: np.ndarray, table: np.ndarray) -> np.ndarray:
    """The same by counting steps one after the other in a `table` of zeros (n,)."""
    counts = np.empty(len(user), dtype=np.int32)
    first = 0  # of the user's steps
    for step in range(len(user)):
        if user[step] != user[first]:
            for own in range(first, step):
                table[number[own]] = 0
            first = step
        counts[step] = table[number[step]]
        table[number[step]] += 1
    return counts


@dataclass(frozen=True, eq=False)
class Predictor:
    """Probabilities of steps (m,) from what their folds see. The steps are of K kinds: pairs of
    states, and hours.

    What F folds see is looked up for each fold and kind, (F K,), and then for each step.
    """

    folds: slice  # of all folds, those of the steps
    place: np.ndarray  # (m,), K times the number of the fold among these, and the kind
    before: np.ndarray  # (K,)
    after: np.ndarray  # (K,)
    own: dict[str, OwnSteps]  # of the user, by level

    def cells(self, seen: Seen, row: np.ndarray, outcome: np.ndarray) -> np.ndarray:
        """The counts (F K,) of the cells of each kind; rows and outcomes are (K,)."""
        return seen.of_cells[self.folds, seen.places_of_cells(row, outcome)].ravel()

    def rows(self, seen: Seen, row: np.ndarray) -> np.ndarray:
        """The counts (F K,) of the rows (K,) of each kind."""
        return self.at_rows(seen, seen.of_rows, row)

    def at_rows(self, seen: Seen, of_rows: np.ndarray, row: np.ndarray) -> np.ndarray:
        """What there is of each row, (folds, r + 1), for the rows (K,) of each kind, (F K,)."""
        return of_rows[self.folds, seen.places_of_rows(row)].ravel()

    def overall(self, habits: Habits, is_move: np.ndarray) -> np.ndarray:
        """The probability of a stay or move, whatever the state, (F K,)."""
        only_row = np.zeros_like(self.before)
        seen = habits.seen["stays"]
        return (self.cells(seen, only_row, is_move) + 0.5) / (self.rows(seen, only_row) + 1.0)

    def popularity(self, habits: Habits) -> np.ndarray:
        """The probability that a move from the state before ends in that after it, by how popular
        states are, (F K,)."""
        seen = habits.seen["moves"]
        only_row = np.zeros_like(self.before)
        pseudo = 1.0 / seen.counts.n
        to_after = self.cells(seen, only_row, self.after) + pseudo
        to_before = self.cells(seen, only_row, self.before) + pseudo
        return to_after / (self.rows(seen, only_row) + 1.0 - to_before)

    def at_state(self, habits: Habits) -> np.ndarray:
        """The probability of each step by the habits of all hours: whether a state is left, and
        where to."""
        is_move = self.before != self.after
        outcome = is_move.astype(np.int64)
        seen = habits.seen["leaving"]
        weight = seen.weights[0, 0]
        cells = self.cells(seen, self.before, outcome) + weight * self.overall(habits, outcome)
        rows = self.rows(seen, self.before) + weight
        leaving = self._with_own("leaving", cells, rows)
        seen = habits.seen["going"]
        weight = seen.weights[0, 0]
        cells = self.cells(seen, self.before, self.after) + weight * self.popularity(habits)
        rows = self.rows(seen, self.before) + weight
        goes = np.resize(is_move, cells.size)
        going = self._with_own("going", np.where(goes, cells, 1.0), np.where(goes, rows, 1.0))
        return leaving * going

    def _with_own(self, level: str, cells: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """The probability of each step (m,) by counts (F K,) of others, and those of the user."""
        own = self.own.get(level, NO_STEPS)
        return (cells.take(self.place) + own.cells) / (rows.take(self.place) + own.rows)

    def at_level(
        self, level: str, habits: Habits, number: np.ndarray, base: np.ndarray
    ) -> np.ndarray:
        """The probability of each step by its row at a level, shrunk towards `base` (m,); `number`
        (K,) is that of the phase or hour."""
        own = self.own.get(level, NO_STEPS)
        seen = habits.seen[level]
        row = number * seen.counts.n + self.before
        weight = self.at_rows(seen, seen.weights, row)
        rows = self.rows(seen, row) + weight
        cells = self.cells(seen, row, self.after).take(self.place) + own.cells
        cells = cells + weight.take(self.place) * base
        return cells / (rows.take(self.place) + own.rows)

    def upto(
        self, level: str, habits: Habits, hour: np.ndarray, of_state: np.ndarray
    ) -> np.ndarray:
        """The probability of each step by the rows of a level at these hours (K,), `of_state` (m,)
        being that by the rows of states."""
        if level == "state":
            return of_state
        if level in ("block", "wide"):
            return self.at_level(level, habits, hour, of_state)
        wide = self.upto("wide", habits, hour, of_state)
        around = self.at_level("around", habits, hour, wide)
        if level == "around":
            return around
        block = self.upto("block", habits, hour, of_state)
        seen = habits.seen["hour"]
        row = hour * seen.counts.n + self.before
        is_around = self.at_rows(seen, seen.base, row).take(self.place) == 1
        return self.at_level("hour", habits, hour, np.where(is_around, around, block))

    def at_hours(self, habits: Habits, hour: np.ndarray) -> np.ndarray:
        """The probability of each step by the habits of all at these hours (K,)."""
        of_state = self.at_state(habits)
        if habits.has_hours:
            return self.upto("hour", habits, hour, of_state)
        return of_state


class JudgedBlock:
    """The steps of a block of users, and what is asked about them."""

    def __init__(self, steps: Steps):
        self.steps = steps
        self.fold = steps.fold
        self.history = OwnHistory(steps)
        self._own: dict[str, OwnSteps] = {}
        first = int(steps.folds.min())
        self.folds = slice(first, int(steps.folds.max()) + 1)
        self.number_of_fold = self.fold - first
        n = steps.n_states
        kind, cells = pd.factorize(row_at("hour", steps) * n + steps.after)
        self.hour = cells // n**2
        self.predictor = Predictor(
            folds=self.folds,
            place=self.number_of_fold * len(cells) + kind,
            before=cells // n % n,
            after=cells % n,
            own=self._of_levels(),
        )
        # those of other hours have nothing to do with the user's own phases
        self.shifted_predictor = replace(
            self.predictor,
            own={name: own for name, own in self.predictor.own.items() if name != "block"},
        )

    def _of_levels(self) -> dict[str, OwnSteps]:
        """The user's own steps that count beside those of others, by level."""
        history = self.history
        of_moves = history.of_moves
        levels = {
            "leaving": of_moves,
            # of a stay nobody asks where it leads
            "going": OwnSteps(
                history.of_states.cells * history.is_move, of_moves.cells * history.is_move
            ),
        }
        if self.steps.clock.n_hours == 1:
            return levels
        of_phase = self.own("phase")
        of_hour = self.own("hour")
        levels["block"] = OwnSteps(of_phase.cells - of_hour.cells, of_phase.rows - of_hour.rows)
        levels["hour"] = of_hour
        return levels

    def own(self, grain: str) -> OwnSteps:
        """The user's own earlier steps, by the rows of a grain."""
        if self.steps.clock.n_hours == 1 and grain in ("phase", "hour"):
            grain = "state"
        if grain == "state":
            return self.history.of_states
        if grain not in self._own:
            self._own[grain] = self.history.of_rows(row_at(grain, self.steps))
        return self._own[grain]

    def own_in(self, context: str, grain: str, row: np.ndarray) -> OwnSteps:
        """The user's own earlier steps in the context of each step, by the rows of a grain, whose
        numbers are `row` (m,)."""
        if context == NOTHING:
            return self.own(grain)
        name = _in_context(context, grain)
        if name not in self._own:
            self._own[name] = self.history.of_rows(row)
        return self._own[name]

    def predicted(self, habits: Habits) -> np.ndarray:
        """The probability of each step (m,) by the habits of all."""
        return self.predictor.at_hours(habits, self.hour)

    def shifted(self, habits: Habits) -> Iterator[np.ndarray]:
        """The probability of each step (m,) by the habits of all so many hours later."""
        of_state = self.predictor.at_state(habits)
        for shift in HOURS_SHIFTED:
            other = (self.hour + shift) % habits.clock.n_hours
            yield self.shifted_predictor.upto("hour", habits, other, of_state)

    def is_judged(self, habits: Habits, more: Any = 0) -> np.ndarray:
        """Whether the habits in the row of each step (m,) are known."""
        row = habits.clock.phase_of_hour[self.hour] * self.steps.n_states + self.predictor.before
        rows = self.predictor.rows(habits.seen["phase"], row)
        return rows.take(self.predictor.place) + more >= FEWEST

    def is_warm(self, habits: Habits) -> np.ndarray:
        """Whether enough users come before that of each step (m,)."""
        if habits.clock.n_hours == 1:
            return np.ones(self.fold.size, dtype=bool)
        return self.fold >= WARM_UP * (len(habits.seen["phase"].of_cells) - 1)

    def seen_in(self, context: str, grain: str, habits: Habits, shift: int = 0) -> OwnSteps:
        """How often the context was seen before, in folds before and of the user; at the phases so
        many hours later in folds before alone."""
        seen = habits.seen[_in_context(context, grain)]
        if shift and grain == "phase":
            shifted = replace(self.steps, hour=(self.steps.hour + shift) % self.steps.clock.n_hours)
            row = row_in(context, grain, shifted)
            own = NO_STEPS
        else:
            row = row_in(context, grain, self.steps)
            own = self.own_in(context, grain, row)
        cells = self._of_fold(seen.of_cells, seen.places_of_cells(row, self.steps.after))
        rows = self._of_fold(seen.of_rows, seen.places_of_rows(row))
        return OwnSteps(own.cells + cells, own.rows + rows)

    def _of_fold(self, columns: np.ndarray, place: np.ndarray) -> np.ndarray:
        """What the fold of each step sees, of columns (folds, k), at the place of each step."""
        of_folds = columns[self.folds]
        return of_folds.ravel().take(self.number_of_fold * of_folds.shape[1] + place)


def gained(earlier: OwnSteps, p: np.ndarray, weight: float) -> np.ndarray:
    """The log-ratio (m,) of (w p + k) / (w + K) to p."""
    return np.log((weight + earlier.cells / p) / (weight + earlier.rows))


def gained_by_weights(
    earlier: OwnSteps, p: np.ndarray, judged: np.ndarray, weights: Iterable[float]
) -> Iterator[np.ndarray]:
    """The same (m,) for one weight after the other, and 0 of steps that are not `judged` (m,); the
    array is used again for the next weight."""
    cells = earlier.cells / p
    rows = earlier.rows.astype(float)
    if not judged.all():
        cells *= judged
        rows *= judged
    ratio = np.empty_like(cells)
    of_rows = np.empty_like(rows)
    for weight in weights:
        np.add(cells, weight, out=ratio)
        np.add(rows, weight, out=of_rows)
        np.divide(ratio, of_rows, out=ratio)
        yield np.log(ratio, out=ratio)


def log_mean_exp(values: np.ndarray, axis: int | None = None) -> Any:
    """log(mean(exp(values)))."""
    size = values.size
    if axis is not None:
        size = values.shape[axis]
    return np.logaddexp.reduce(values, axis=axis) - np.log(size)


def mean_variation(logs: np.ndarray, weights: np.ndarray) -> float:
    """By how much rows vary about the shared ones, as far as evidence tells: the mean of 1 / w.

    Parameters
    ----------
    logs : ndarray (k,)
        The evidence for rows that are drawn around the shared ones, nats.
    weights : ndarray (k,)
        With which weight w of these, in steps. Before the evidence all are equally likely, and
        together have the odds `ODDS` against rows that do not vary.

    Returns
    -------
    float

    Examples
    --------
    One fifth of the mean of 1 / 100 and 1 / 300, and nearly 1 / 100 with evidence for that weight:

    >>> round(mean_variation(np.zeros(2), np.array([100.0, 300.0])), 6)
    0.001333
    >>> round(mean_variation(np.array([9.0, -9.0]), np.array([100.0, 300.0])), 6)
    0.00999
    >>> mean_variation(np.full(2, -800.0), np.array([100.0, 300.0])) < 1e-300
    True
    """
    logs = logs + np.log(ODDS / logs.size)
    total = np.logaddexp(0.0, np.logaddexp.reduce(logs))
    return float(np.sum(np.exp(logs - total) / weights))


def in_units(values: np.ndarray) -> np.ndarray:
    """Whole multiples of `UNIT`, whose sums are exact."""
    return np.rint(values / UNIT).astype(np.int64)


#: Fields of `UserEvidence` with a number for each user.
OF_EACH_USER = ("users", "own", "best", "shift", "best_shift", "own_earlier", "shift_earlier")


@dataclass(frozen=True, eq=False)
class UserEvidence:
    """How much better own habits predict each user of a block; logarithms, nats."""

    users: np.ndarray  # (u,), numbers
    own: np.ndarray  # (u,), log-mean over grains and weights, against all others
    best: np.ndarray  # (u,), the place of the best among grains times weights
    shift: np.ndarray  # (u,), log-mean over shifts; -inf without hours
    best_shift: np.ndarray  # (u,), the place of the best
    own_earlier: np.ndarray  # (u,), own, against those of folds before
    shift_earlier: np.ndarray  # (u, spreads), against those of folds before; no shift is one
    sums: np.ndarray  # (grains * weights,), over users, against folds before, in units
    shift_sums: np.ndarray  # (shifts,), the same if all users are shifted alike

    @classmethod
    def merged(cls, parts: list[UserEvidence]) -> UserEvidence:
        """That of all users."""
        arrays = {
            name: np.concatenate([getattr(part, name) for part in parts]) for name in OF_EACH_USER
        }
        order = np.argsort(arrays["users"])
        ordered = {name: array[order] for name, array in arrays.items()}
        sums = {
            name: np.sum([getattr(part, name) for part in parts], axis=0)
            for name in ("sums", "shift_sums")
        }
        return cls(**ordered, **sums)

    def part(self, first: int, stop: int) -> UserEvidence:
        """That of the users from place `first` to `stop`, with the sums of all."""
        return replace(self, **{name: getattr(self, name)[first:stop] for name in OF_EACH_USER})

    @cached_property
    def each(self) -> np.ndarray:
        """The evidence for each user alone, (u,)."""
        if np.isneginf(self.shift).all():
            return self.own
        return np.logaddexp(self.own, self.shift) - np.log(2.0)

    @property
    def has_own_rows(self) -> np.ndarray:
        """Whether own rows predict a user best, (u,): better than the habits of all, at any
        hours."""
        return (self.own > 0.0) & (self.own >= self.shift)

    @property
    def is_shifted(self) -> np.ndarray:
        """Whether the habits of all at other hours predict a user best, (u,)."""
        return (self.shift > 0.0) & ~self.has_own_rows

    @property
    def odd(self) -> np.ndarray:
        """The numbers of the users who are odd at even odds or better if one of all is, the oddest
        first."""
        is_odd = self.each >= np.log(self.each.size)
        order = np.argsort(-self.each, kind="stable")
        return order[is_odd[order]]

    def variation(self, lacking: float = 0.0) -> float:
        """By how much rows of users vary about the shared ones; evidence is less by what the habits
        of all are `lacking`."""
        logs = self.sums * UNIT - lacking
        return mean_variation(logs, np.resize(WEIGHTS, logs.size))

    def likely_shifts(self) -> tuple[int, ...]:
        """The hours by which one user or more can be expected to be earlier or later than all, at
        any spread that the data do not rule out."""
        if np.isneginf(self.shift).all():
            return ()
        is_open = self.of_spreads >= -np.log(ALARM)
        expected = self.each.size * np.exp(_log_shares_of_shifts()[is_open, :-1])
        return tuple(np.array(HOURS_SHIFTED)[(expected >= 1.0).any(axis=0)].tolist())

    @property
    def of_spreads(self) -> np.ndarray:
        """The evidence for each spread of the hours of users, nats."""
        return np.array([fsum(logs) for logs in self.shift_earlier.T])

    @property
    def best_weight(self) -> float:
        """The weight of the habits of all in those of each user that is likeliest for all."""
        return WEIGHTS[int(np.argmax(self.sums)) % len(WEIGHTS)]

    def parts(self, lacking: float = 0.0) -> dict[str, float]:
        """The evidence of each construction, nats; products over users are less by what the habits
        of all are `lacking`."""
        each_earlier = self.own_earlier
        parts = {
            "odd users": _sum_exp(self.each) - float(np.log(self.each.size)),
            "all users": float(log_mean_exp(self.sums * UNIT)) - lacking,
        }
        if not np.isneginf(self.shift).all():
            lacking += UNIT * max(0, int(self.shift_sums.max()))  # of the hours, for all alike
            parts["hours"] = float(log_mean_exp(self.of_spreads)) - lacking
            shift_earlier = log_mean_exp(self.shift_earlier, axis=1)
            each_earlier = np.logaddexp(each_earlier, shift_earlier) - np.log(2.0)
        of_shares = []
        for share in SHARES:
            logs = each_earlier
            if share < 1.0:
                logs = np.logaddexp(np.log1p(-share), np.log(share) + each_earlier)
            of_shares.append(fsum(logs))
        parts["some users"] = float(log_mean_exp(np.array(of_shares))) - lacking
        return parts

    def nats(self, lacking: float = 0.0) -> float:
        """The evidence that users differ."""
        return float(log_mean_exp(np.array([*self.parts(lacking).values()])))


def _sum_exp(logs: np.ndarray) -> float:
    """log(sum(exp(logs))), in any order."""
    most = float(logs.max())
    return most + float(np.log(fsum(np.exp(logs - most))))


def user_evidence(
    block: JudgedBlock, known: HabitsOfAll, given: Given, predicted: dict[str, np.ndarray]
) -> UserEvidence:
    """Evidence of the users of a block; the habits of the earlier users and of the others give its
    steps the probabilities `predicted`, (m,) each."""
    steps = block.steps
    own = {}
    shift = {}
    for kind, habits in known.by_kind.items():
        judged = block.is_judged(habits)
        if kind == EARLIER:
            judged &= block.is_warm(habits)
        p = predicted[kind]
        own[kind] = np.array(
            [
                steps.sum_by_user(gain)
                for grain in grains_of_users(steps.clock, steps.has_parts)
                for gain in gained_by_weights(block.own(grain), p, judged, WEIGHTS)
            ]
        )
        none = np.full((1, len(steps.users)), -np.inf)
        shift[kind] = none
        if steps.clock.n_hours > 1:
            shift[kind] = np.array(
                [
                    steps.sum_by_user(np.where(judged, np.log(q / p), 0.0))
                    for q in given.shifted(block, habits)
                ]
            )
    shift_earlier = np.zeros((len(steps.users), len(HOURS_APART)))
    shift_sums = np.zeros(1, dtype=np.int64)
    if steps.clock.n_hours > 1:
        shift_sums = in_units(shift[EARLIER]).sum(axis=1)
        shift_earlier = _means_over_shifts(shift[EARLIER])
    return UserEvidence(
        users=steps.users,
        own=log_mean_exp(own[OTHERS], axis=0),
        best=np.argmax(own[OTHERS], axis=0),
        shift=log_mean_exp(shift[OTHERS], axis=0),
        best_shift=np.argmax(shift[OTHERS], axis=0),
        own_earlier=log_mean_exp(own[EARLIER], axis=0),
        shift_earlier=shift_earlier,
        sums=in_units(own[EARLIER]).sum(axis=1),
        shift_sums=shift_sums,
    )


def _means_over_shifts(shifted: np.ndarray) -> np.ndarray:
    """The log-mean (u, spreads) of the ratios of all shifts and of none, as likely as `HOURS_APART`
    say; `shifted` (shifts, u) are their logarithms."""
    with_none = np.vstack([shifted, np.zeros((1, shifted.shape[1]))])
    means = [
        np.logaddexp.reduce(with_none + logs[:, None], axis=0) for logs in _log_shares_of_shifts()
    ]
    return np.column_stack(means)


def _log_shares_of_shifts() -> np.ndarray:
    """The logarithms of the shares of users with each shift, and with none, for each spread,
    (spreads, shifts + 1)."""
    hours = np.abs([*HOURS_SHIFTED, 0])
    logs = -hours / np.array(HOURS_APART)[:, None]
    return logs - np.logaddexp.reduce(logs, axis=1, keepdims=True)


def context_sums(
    block: JudgedBlock, habits: Habits, p: np.ndarray, names: Iterable[str] = tuple(CONTEXTS)
) -> dict[str, np.ndarray]:
    """The log-ratios of each context, (grains * weights,), in units, summed over the block; the
    habits give its steps the probabilities `p` (m,)."""
    steps = block.steps
    more: Any = 0
    if len(habits.seen["phase"].of_cells) == 1:  # of a single user nothing else is known
        more = block.own("phase").rows
    judged = block.is_judged(habits, more)
    judged &= block.is_warm(habits)
    sums = {}
    for name in names:
        each = []
        for grain in grains_of_contexts(steps.clock):
            seen = block.seen_in(name, grain, habits)
            known = judged & (CONTEXTS[name](steps) >= 0)
            for gain in gained_by_weights(seen, p, known, weights_of(name)):
                each.append(in_units(steps.sum_by_user(gain)).sum())
        sums[name] = np.array(each)
    return sums


@dataclass(frozen=True, eq=False)
class Given:
    """What was found already, and is part of the habits by which steps are predicted."""

    contexts: tuple[tuple[str, str, float], ...] = ()  # names, grains and weights
    users: UserEvidence | None = None

    def about(self, users: np.ndarray) -> Given:
        """What is known of these users, numbers in order, which follow each other."""
        if self.users is None:
            return self
        first, last = np.searchsorted(self.users.users, users[[0, -1]])
        return replace(self, users=self.users.part(first, last + 1))

    def predicted(self, block: JudgedBlock, habits: Habits) -> np.ndarray:
        p = block.predicted(habits)
        if self.users is None:
            return self._with_contexts(block, habits, p)
        p = _with_own_rows(block, p, self.users)
        p = self._with_contexts(block, habits, p)
        best = _best_shifts(block.steps, self.users)
        if (best >= 0).any():
            for number, shifted in enumerate(self.shifted(block, habits)):
                p = np.where(best == number, shifted, p)
        return p

    def shifted(self, block: JudgedBlock, habits: Habits) -> Iterator[np.ndarray]:
        """The probability of each step (m,) by the habits of all so many hours later."""
        for shift, p in zip(HOURS_SHIFTED, block.shifted(habits), strict=True):
            yield self._with_contexts(block, habits, p, shift)

    def _with_contexts(
        self, block: JudgedBlock, habits: Habits, p: np.ndarray, shift: int = 0
    ) -> np.ndarray:
        for name, grain, weight in self.contexts:
            known = CONTEXTS[name](block.steps) >= 0
            ratio = np.exp(gained(block.seen_in(name, grain, habits, shift), p, weight))
            p = np.where(known, p * ratio, p)
        return p


def _with_own_rows(block: JudgedBlock, p: np.ndarray, found: UserEvidence) -> np.ndarray:
    """The probabilities (m,) by the best own rows of each user whom own rows predict best, in place
    of those by the habits of all, `p` (m,)."""
    steps = block.steps
    place = np.searchsorted(found.users, steps.users)
    result = p.copy()
    best = np.where(found.has_own_rows[place], found.best[place], -1)[steps.user]
    grains = grains_of_users(steps.clock, steps.has_parts)
    for number, (grain, weight) in enumerate(itertools.product(grains, WEIGHTS)):
        chosen = best == number
        if chosen.any():
            gain = gained(block.own(grain), p, weight)
            result[chosen] *= np.exp(gain[chosen])
    return result


def _best_shifts(steps: Steps, found: UserEvidence) -> np.ndarray:
    """The place (m,) among `HOURS_SHIFTED` of the best shift of the user of each step, if habits at
    other hours predict the user best; -1 of others."""
    place = np.searchsorted(found.users, steps.users)
    return np.where(found.is_shifted[place], found.best_shift[place], -1)[steps.user]


@dataclass(frozen=True, eq=False)
class Found:
    """The evidence of one round: against the habits of all, given what was found before."""

    users: UserEvidence
    contexts: dict[str, np.ndarray]  # sums in units
    grains: list[str]

    @property
    def lacking(self) -> int:
        """What the habits of all gain by rows of states or phases at once, at most, in units: no
        context deserves that."""
        return max(0, int(self.contexts[NOTHING].max()))

    @classmethod
    def merged(cls, parts: list[Found]) -> Found:
        """That of all users."""
        contexts = {
            name: np.sum([part.contexts[name] for part in parts], axis=0)
            for name in parts[0].contexts
        }
        users = UserEvidence.merged([part.users for part in parts])
        return cls(users, contexts, parts[0].grains)

    def nats_of(self, name: str) -> float:
        """The evidence that a context matters."""
        return float(log_mean_exp((self.contexts[name] - self.lacking) * UNIT))

    @property
    def nats_of_users(self) -> float:
        """The evidence that users differ."""
        return self.users.nats(self.lacking * UNIT)

    def best_of(self, name: str) -> tuple[str, str, float]:
        """A context with its likeliest grain and weight."""
        return best_of(name, self.contexts[name], self.grains)


def best_of(name: str, sums: np.ndarray, grains: list[str]) -> tuple[str, str, float]:
    """A context with its likeliest grain and weight, by sums (grains * weights,)."""
    weights = weights_of(name)
    grain, place = divmod(int(np.argmax(sums)), len(weights))
    return name, grains[grain], weights[place]


@dataclass(frozen=True, eq=False)
class HabitsOfAll:
    """What steps of each fold are predicted from: the folds before it, or all others."""

    earlier: Habits
    others: Habits

    @classmethod
    def of(cls, tables: Tables, clock: Clock) -> HabitsOfAll:
        weights = likeliest_weights(tables, clock)
        earlier = Habits.of(tables, clock, see_earlier, weights)
        return cls(earlier, Habits.of(tables, clock, see_others, weights))

    @property
    def by_kind(self) -> dict[str, Habits]:
        return {EARLIER: self.earlier, OTHERS: self.others}


def what_is_lacking(blocks: StepBlocks, known: HabitsOfAll) -> Given:
    """What rows of states or phases at once add to the habits of all, if they add anything."""
    tasks = ((part, known.earlier) for part in blocks.parts())
    sums = np.sum(list(run_tasks(_lacking_in_part, tasks)), axis=0)
    if np.max(sums) <= 0:
        return Given()
    return Given((best_of(NOTHING, sums, grains_of_contexts(blocks.clock)),))


def _lacking_in_part(part: PartOfUsers, earlier: Habits) -> np.ndarray:
    """The sums (grains * weights,) of some users, in units."""
    of_blocks = []
    for steps in part:
        block = JudgedBlock(steps)
        sums = context_sums(block, earlier, block.predicted(earlier), [NOTHING])
        of_blocks.append(sums[NOTHING])
    return np.sum(of_blocks, axis=0)


def count_tables(blocks: StepBlocks, folds: int) -> Tables:
    """The counts of all blocks."""
    tasks = ((part, folds) for part in blocks.parts())
    return Tables.merged(list(run_tasks(_tables_of_part, tasks)))


def _tables_of_part(part: PartOfUsers, folds: int) -> Tables:
    return Tables.merged([Tables.of(steps, folds) for steps in part])


def look(blocks: StepBlocks, known: HabitsOfAll, given: Given) -> Found:
    """One round over all blocks."""
    tasks = ((part, known, given.about(part.users)) for part in blocks.parts())
    return Found.merged(list(run_tasks(_found_in_part, tasks)))


def _found_in_part(part: PartOfUsers, known: HabitsOfAll, given: Given) -> Found:
    """The evidence of some users."""
    users = []
    contexts: dict[str, Any] = dict.fromkeys(CONTEXTS, 0)
    for steps in part:
        block = JudgedBlock(steps)
        predicted = {kind: given.predicted(block, habits) for kind, habits in known.by_kind.items()}
        users.append(user_evidence(block, known, given, predicted))
        for name, sums in context_sums(block, known.earlier, predicted[EARLIER]).items():
            contexts[name] = contexts[name] + sums
    return Found(UserEvidence.merged(users), contexts, grains_of_contexts(part.clock))
