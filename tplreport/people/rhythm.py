"""Which hours and days have matrices of their own: phases chosen by how well they predict others.

Each candidate (one chain, blocks of hours, hours, each of them apart for the weekend or not)
predicts the steps of users from those of others: users are dealt to five folds, and the matrices
for a fold are estimated from the other four, those of the phases shrunk towards the one of all
phases as in `Cycle.from_sequences`. A candidate's gain is how much more log-likelihood it gives to
all steps than one chain does, in nats; its standard error is over users, or over stretches of time
where there are few users. The choice is one chain unless the best candidate's gain exceeds both
the log of `ODDS` a candidate and `ERRORS` times its error; else it is the candidate with the fewest
phases that the best one does not exceed by more than one standard error of their difference.

The time that a user has already stayed in her state is one more context, whose gain is over the
chosen phases: habits in which it matters are no chain of any order or phase.
"""

from __future__ import annotations
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from math import inf
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from tplrepro.markov.cycle import Cycle
from tplrepro.markov.phases import (
    HOURS,
    DayBlocks,
    PhaseGroups,
    RowEvidence,
    count_by_group,
    group_phases,
)
from tplrepro.markov.sequences import Sequences, as_sequences
from tplrepro.markov.transition import DAY

#: Lengths of blocks that are tried, in hours.
BLOCKS_OF_HOURS = (24, 12, 8, 6, 4, 3, 2, 1)
FOLDS = 5
#: More steps than these are judged by a part of the users.
MOST_STEPS = 2_000_000
#: With fewer users, folds are dealt so many stretches of time.
FEWEST_UNITS = 20
#: Of a gain that is not taken for chance, for each candidate that might have been the best.
ODDS = 20.0
#: So many times its standard error must such a gain be, too.
ERRORS = 2.0
#: Steps in a state are counted up to those: 1, 2 or 3, and 4 or more.
STAYS = (2, 4)


@dataclass(frozen=True)
class HeldOutGain:
    """How much better a context predicts the steps of other users."""

    nats: float
    error: float  # standard error of the nats
    n_tried: int = 1  # of how many contexts it is the best

    @property
    def matters(self) -> bool:
        """Whether it is hardly chance."""
        least = float(np.log(ODDS * self.n_tried))
        return self.nats > max(least, ERRORS * self.error)


@dataclass(frozen=True)
class PhaseCandidate:
    """Phases that were tried, and their gain over one chain."""

    phase: DayBlocks
    n_phases: int
    gain: HeldOutGain

    @property
    def name(self) -> str:
        """In words, such as "blocks of 6 hours"."""
        if self.phase.hours == HOURS:
            if self.phase.weekend:
                return "weekdays and the weekend"
            return "one chain"
        name = f"blocks of {self.phase.hours:g} hours"
        if self.phase.hours == 1:
            name = "hours"
        if self.phase.weekend:
            name += ", apart for weekdays and the weekend"
        return name


@dataclass(frozen=True, eq=False)
class Rhythm:
    """The phases that predict other users best, and what all candidates gain."""

    candidates: tuple[PhaseCandidate, ...]  # from few phases to many; the first is one chain
    chosen: PhaseCandidate
    unit: str  # what errors are taken over: "user" or "stretch of time"
    sequences: Sequences
    smoothing: float

    @property
    def matters(self) -> bool:
        """Whether phases have matrices of their own."""
        return self.chosen.n_phases > 1

    @property
    def groups(self) -> PhaseGroups:
        """Which steps of a day or week share a matrix, and what their phases are called."""
        return group_phases(self.chosen.phase, self.sequences.step)

    @cached_property
    def stay(self) -> HeldOutGain:
        """The gain of the time already spent in a state over the chosen phases."""
        return _gain_of_stay(_draw_users(self.sequences), self.groups)

    @cached_property
    def cycle(self) -> Cycle:
        """The forward cycle of the chosen phases, estimated from all users."""
        return Cycle.from_sequences(self.sequences, self.chosen.phase, self.smoothing)


def choose_rhythm(sequences: Any, smoothing: float = 0.0) -> Rhythm:
    """Choose the phases of the day or week that predict other users' steps best.

    Parameters
    ----------
    sequences : Sequences or DataFrame
        With times that are one step apart in each sequence; a DataFrame has the columns user, time
        (time stamps) and state.
    smoothing : float
        Of the cycle that is estimated from all users in the end, as in `Cycle.from_sequences`.

    Returns
    -------
    Rhythm

    Raises
    ------
    ValueError
        Without times or one step, for a step that divides no week, or without any step from state
        to state.

    Examples
    --------
    >>> import pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> night, day = np.array([[0.99, 0.01], [0.01, 0.99]]), np.array([[0.5, 0.5], [0.5, 0.5]])
    >>> habits = Cycle([night] * 6 + [day] * 18)
    >>> times = pd.date_range("2024-05-06", periods=24 * 7, freq="1h")
    >>> walks = [
    ...     pd.DataFrame({"user": user, "time": times, "state": habits.sample(len(times), rng=rng)})
    ...     for user in range(20)
    ... ]
    >>> rhythm = choose_rhythm(pd.concat(walks))
    >>> rhythm.chosen.name, rhythm.chosen.gain.matters, rhythm.stay.matters
    ('blocks of 6 hours', True, False)
    """
    data = as_sequences(sequences)
    tried = _candidates(data.step)
    groups = [group_phases(phase, data.step) for phase in tried]
    finest = _common_refinement(groups)
    table = StepTable.of(_draw_users(data), finest.of_values)
    contexts = [_group_of_refinement(group, finest)[table.context] for group in groups]
    gains = table.gains_over_pooled(contexts)
    n_tried = max(len(tried) - 1, 1)
    candidates = [
        PhaseCandidate(phase, group.n_groups, _gain(own, n_tried))
        for phase, group, own in zip(tried, groups, gains, strict=True)
    ]
    chosen = _choose(candidates, gains)
    return Rhythm(tuple(candidates), candidates[chosen], table.unit, data, smoothing)


def evidence_of_finer_phases(data: Sequences, groups: PhaseGroups | None) -> Iterator[RowEvidence]:
    """The evidence that rows of the phases of each candidate are drawn around those of `groups`.

    Parameters
    ----------
    data : Sequences
        With times that are one step apart in each sequence.
    groups : PhaseGroups, optional
        None: one chain for all hours.

    Yields
    ------
    RowEvidence
        Of each candidate that tells more phases apart.

    Raises
    ------
    ValueError
        Without times, or for a step that divides no week.
    """
    tried = [group_phases(phase, data.step) for phase in _candidates(data.step)]
    coarse = groups or tried[0]
    finest = _common_refinement([*tried, coarse])
    counts = count_by_group(data, finest).tocoo()
    n = data.n_states
    phase, before = np.divmod(counts.row.astype(np.int64), n)
    coarse_row = _group_of_refinement(coarse, finest)[phase] * n + before
    n_rows = coarse.n_groups * n
    in_cell = _sum_over(_numbered(coarse_row * n + counts.col), counts.data)
    expected = in_cell / _sum_over(_numbered(coarse_row), counts.data)
    for group in tried:
        row = _numbered(_group_of_refinement(group, finest)[phase] * n_rows + coarse_row)
        if row.max() == _numbered(coarse_row).max():
            continue
        cells, first, cell = np.unique(row * n + counts.col, return_index=True, return_inverse=True)
        of_cells = np.bincount(cell.ravel(), counts.data, minlength=cells.size)
        yield RowEvidence(of_cells, expected[first], np.bincount(row, counts.data))


def _numbered(values: np.ndarray) -> np.ndarray:
    """A number below their number for each of the distinct values."""
    return np.unique(values, return_inverse=True)[1].ravel()


def _draw_users(data: Sequences) -> Sequences:
    """About `MOST_STEPS` steps, all of users who are drawn at random."""
    users, names = pd.factorize(data.users, use_na_sentinel=False)
    if data.n_transitions <= MOST_STEPS or len(names) <= FEWEST_UNITS:
        return data
    order = np.random.default_rng(0).permutation(len(names))
    steps_of_user = np.bincount(users, np.maximum(data.lengths - 1, 0))[order]
    enough = int(np.searchsorted(np.cumsum(steps_of_user), MOST_STEPS)) + 1
    return data.select(np.isin(users, order[: max(FEWEST_UNITS, enough)]))


def _candidates(step: timedelta | None) -> list[DayBlocks]:
    """The phases that are tried for this step, from few to many."""
    found = [DayBlocks(HOURS)]
    if step is not None and DAY % step == timedelta(0):
        found = [
            DayBlocks(hours, weekend)
            for hours in BLOCKS_OF_HOURS
            for weekend in (False, True)
            if timedelta(hours=hours) % step == timedelta(0)
        ]
    return sorted(found, key=lambda phase: (1 + phase.weekend) / phase.hours)


def _common_refinement(groups: list[PhaseGroups]) -> PhaseGroups:
    """The coarsest phases that are parts of the phases of all candidates."""
    longest = max(len(group.codes) for group in groups)
    columns = [np.resize(group.codes, longest) for group in groups]
    distinct, codes = np.unique(np.column_stack(columns), axis=0, return_inverse=True)
    return PhaseGroups(codes.reshape(-1), [*range(len(distinct))], groups[0].step)


def _group_of_refinement(group: PhaseGroups, finest: PhaseGroups) -> np.ndarray:
    """The phase of a candidate, `group`, that each of the finest phases is part of."""
    found = np.empty(finest.n_groups, dtype=np.int64)
    found[finest.codes] = np.resize(group.codes, len(finest.codes))
    return found


def _gain(gains: np.ndarray, n_tried: int = 1) -> HeldOutGain:
    """The sum of the gains of units (u,), and its standard error; `n_tried` candidates were
    compared."""
    error = float(np.std(gains) * np.sqrt(len(gains)))
    return HeldOutGain(float(gains.sum()), error, n_tried)


def _choose(candidates: list[PhaseCandidate], gains: np.ndarray) -> int:
    """The number of the candidate with the fewest phases that is about as good as the best one;
    `gains` (candidates, u) are those of units."""
    best = int(np.argmax([candidate.gain.nats for candidate in candidates]))
    if not candidates[best].gain.matters:
        return 0
    for number, own in enumerate(gains):
        lost = _gain(gains[best] - own)
        if lost.nats <= lost.error:
            return number
    return best


def _gain_of_stay(data: Sequences, groups: PhaseGroups) -> HeldOutGain:
    """What it gains, beyond the phase, to know how long a user has been in the state."""
    n_stays = len(STAYS) + 2

    def phase_and_stay(block: Sequences) -> np.ndarray:
        return groups.of_values(block) * n_stays + stays(block)

    table = StepTable.of(data, phase_and_stay)
    is_known = table.context % n_stays > 0
    return _gain(table.gains_over(table.context // n_stays, table.context, is_known))


def stays(sequences: Sequences) -> np.ndarray:
    """How long each value's state has lasted, (m,): 1 for one step, 2 for two or three, 3 for more,
    0 where the beginning is not known.

    >>> stays(as_sequences([[0, 1, 1, 1, 1, 0], [0, 0, 0, 0]])).tolist()
    [0, 1, 2, 2, 3, 1, 0, 0, 0, 3]
    """
    places = np.arange(len(sequences.values))
    begins = np.ones(len(places), dtype=bool)
    later = sequences.places_of_later_values()
    begins[later] = sequences.values[later] != sequences.values[later - 1]
    first = np.maximum.accumulate(places * begins)
    steps = places - first + 1
    stay = np.ones(len(places), dtype=np.int64)
    for least in STAYS:
        stay += steps >= least
    is_first = np.ones(len(places), dtype=bool)
    is_first[later] = False
    is_unknown = is_first[first] & (stay <= len(STAYS))
    stay[is_unknown] = 0
    return stay


@dataclass(frozen=True, eq=False)
class StepTable:
    """How often each unit takes each kind of step, and what folds predict of each other.

    A unit is a user, or a stretch of time. Kinds of steps, (k,), are distinct triples of a context
    and two states.
    """

    context: np.ndarray  # (k,)
    before: np.ndarray  # (k,) codes of states
    after: np.ndarray  # (k,)
    counts: Any  # csr_array (u, k)
    n_states: int
    unit: str  # "user" or "stretch of time"

    @classmethod
    def of(cls, data: Sequences, context_of: Callable[[Sequences], np.ndarray]) -> StepTable:
        """The table of all steps of `data`, by the contexts (m,), whole numbers from 0 on, that
        `context_of` gives for the m values of some of its sequences; a step has the context of its
        earlier value."""
        units = Units.of(data)
        n = data.n_states
        parts = []
        for block in units.numbered.blocks():
            later = block.places_of_later_values()
            context = context_of(block)[later - 1].astype(np.int64)
            kinds = (context * n + block.values[later - 1]) * n + block.values[later]
            parts.append(KindsOfUnits.of(units.of_steps(block, later), kinds, units.number))
        together = KindsOfUnits.joined(parts)
        return cls(
            context=together.kinds // n**2,
            before=together.kinds // n % n,
            after=together.kinds % n,
            counts=together.counts,
            n_states=n,
            unit=units.name,
        )

    def gains_over_pooled(self, contexts: list[np.ndarray]) -> np.ndarray:
        """What each context (k,) gains over one chain for each unit, (c, u), in nats."""

        together = self._cells_in(np.zeros_like(self.context))
        cells = [self._cells_in(context) for context in contexts]

        def log_ratios(counts: np.ndarray) -> list[np.ndarray]:
            pooled = self._pooled(counts, together)
            return [_log_ratio(counts, pooled, of_context) for of_context in cells]

        return self._gains(log_ratios)

    def gains_over(self, context: np.ndarray, finer: np.ndarray, known: np.ndarray) -> np.ndarray:
        """What a finer context (k,) gains over another one, `context` (k,), for each unit, (u,), in
        nats; only steps where `known` (k,) is true count."""

        together = self._cells_in(np.zeros_like(self.context))
        of_context = self._cells_in(context)
        of_finer = self._cells_in(finer)

        def log_ratios(counts: np.ndarray) -> list[np.ndarray]:
            pooled = self._pooled(counts, together)
            coarse = pooled * np.exp(_log_ratio(counts, pooled, of_context))
            ratio = _log_ratio(np.where(known, counts, 0.0), coarse, of_finer)
            return [np.where(known, ratio, 0.0)]

        return self._gains(log_ratios)[0]

    def _gains(self, log_ratios: Callable[[np.ndarray], list[np.ndarray]]) -> np.ndarray:
        """The sums over the steps of each unit, (c, u), of log-ratios, each (k,), which are made
        from the counts (k,) of the other folds."""
        total = self.counts.sum(axis=0)
        gains = []
        for fold in range(FOLDS):
            own = self.counts[fold::FOLDS]
            ratios = np.column_stack(log_ratios(total - own.sum(axis=0)))
            gains.append(own @ ratios)
        together = np.empty((self.counts.shape[0], gains[0].shape[1]))
        for fold, own_gains in enumerate(gains):
            together[fold::FOLDS] = own_gains
        return together.T

    def _pooled(self, counts: np.ndarray, together: CellsOfKinds) -> np.ndarray:
        """The probability of each kind of step in one chain for all contexts, (k,), whose cells are
        `together`, with one pseudo-step from each state."""
        totals = _sum_over(together.row, counts)
        own = _sum_over(together.cell, counts)
        return (own + 1.0 / self.n_states) / (totals + 1.0)

    def _cells_in(self, context: np.ndarray) -> CellsOfKinds:
        """The rows and cells of the kinds of steps, whose contexts are (k,)."""
        row = pd.factorize(context * self.n_states + self.before)[0]
        cell = pd.factorize(row * self.n_states + self.after)[0]
        return CellsOfKinds(row, cell)


@dataclass(frozen=True, eq=False)
class CellsOfKinds:
    """To which row, and to which of its cells, each kind of step belongs; numbers in the order of
    their first kinds, (k,)."""

    row: np.ndarray
    cell: np.ndarray

    @cached_property
    def is_first_of_row(self) -> np.ndarray:
        """Whether a kind is the first one of its row, (k,)."""
        return _is_first_of_its(self.row)

    @cached_property
    def is_first_of_cell(self) -> np.ndarray:
        """Whether a kind is the first one of its cell, (k,)."""
        return _is_first_of_its(self.cell)


def _log_ratio(counts: np.ndarray, prior: np.ndarray, cells: CellsOfKinds) -> np.ndarray:
    """The log-ratio (k,) of two probabilities of each kind of step: that by its row, shrunk towards
    the prior's, to that of the `prior` (k,) itself. `counts` (k,) are those of the other folds."""
    totals = _sum_over(cells.row, counts)
    own = _sum_over(cells.cell, counts)
    is_counted = (own > 0) & cells.is_first_of_cell
    is_left = (totals > 0) & cells.is_first_of_row
    evidence = RowEvidence(own[is_counted], prior[is_counted], totals[is_left])
    weight = evidence.likeliest_weight()
    if weight == inf:
        return np.zeros(len(counts))
    return np.log((own / prior + weight) / (totals + weight))


@dataclass(frozen=True, eq=False)
class KindsOfUnits:
    """How often each unit takes each kind of step."""

    kinds: np.ndarray  # (k,), distinct
    counts: Any  # csr_array (u, k)

    @classmethod
    def of(cls, units: np.ndarray, kinds: np.ndarray, n_units: int) -> KindsOfUnits:
        """Count the m steps of `n_units` units; `units` (m,) holds the number of the unit of each
        step, `kinds` (m,) its kind."""
        codes, distinct = pd.factorize(kinds)
        shape = (n_units, len(distinct))
        each_once = np.ones(codes.size)
        counts = csr_array((each_once, (units, codes)), shape=shape)  # adds up equal places
        return cls(distinct, counts)

    @classmethod
    def joined(cls, parts: list[KindsOfUnits]) -> KindsOfUnits:
        """The counts of all parts together."""
        codes, distinct = pd.factorize(np.concatenate([part.kinds for part in parts]))
        n_units = parts[0].counts.shape[0]
        counts = csr_array((n_units, len(distinct)))
        first = 0
        for part in parts:
            own = part.counts
            code_of_own = codes[first : first + len(part.kinds)]
            first += len(part.kinds)
            renamed = (own.data, code_of_own[own.indices], own.indptr)
            counts = counts + csr_array(renamed, shape=counts.shape)
        return cls(distinct, counts)


class Units:
    """Users, or so many stretches of time where there are few users.

    `users` (k,) are those of the sequences of `data`, as numbers below `n_users`.
    """

    def __init__(self, data: Sequences, users: np.ndarray, n_users: int):
        self.numbered = replace(data, users=users)
        self.name = "user"
        self.number = n_users
        self.n_steps = data.n_transitions
        self.n_seen = 0
        if n_users < FEWEST_UNITS:
            self.name = "stretch of time"
            self.number = min(FEWEST_UNITS, self.n_steps)

    @classmethod
    def of(cls, data: Sequences) -> Units:
        """ValueError without any step."""
        if data.n_transitions == 0:
            raise ValueError(
                "a rhythm needs steps from state to state, found none; give longer sequences"
            )
        users, names = pd.factorize(data.users, use_na_sentinel=False)
        return cls(data, users.astype(np.int64), len(names))

    def of_steps(self, block: Sequences, later: np.ndarray) -> np.ndarray:
        """The unit of each step of a block, in the order of blocks; `later` is where it ends."""
        if self.name == "user":
            return np.repeat(block.users, block.lengths)[later]
        numbers = self.n_seen + np.arange(later.size)
        self.n_seen += later.size
        return numbers * self.number // self.n_steps


def _sum_over(groups: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """For each entry the sum of the counts of its group."""
    return np.bincount(groups, counts)[groups]


def _is_first_of_its(groups: np.ndarray) -> np.ndarray:
    """Whether an entry is the first one of its group; groups are numbered in order of their first
    entries."""
    highest = np.maximum.accumulate(groups)
    return np.append(True, highest[1:] > highest[:-1])
