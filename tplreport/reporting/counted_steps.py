"""The steps of all users, counted at all hours together, or at each phase of a day or week; and the
chains that they show.

What is known of a step, such as a matrix or a loss function, is made for each group of phases that
behave alike. Where there are several groups, the two sides are cycles that begin at the phase of
the first release.
"""

from __future__ import annotations
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import pandas as pd

from tplreport.people.uncertainty import bootstrap_counts, posterior_draws
from tplrepro.display import count_noun
from tplrepro.markov.cycle import Cycle
from tplrepro.markov.phases import (
    PhaseGroups,
    count_by_group,
    likeliest_weight,
    matrices_of_groups,
    sum_of_groups,
    tables_of_groups,
)
from tplrepro.markov.sequences import MONDAY, Sequences, count_transitions
from tplrepro.markov.transition import WEEKDAYS, TransitionMatrix, drop_dead_ends

#: How a date begins.
DATE = re.compile(r"\d{4}-\d\d-\d\d")

#: Estimates of more states are kept sparse, for their hulls are much faster where rows have few
#: counts.
SPARSE_ABOVE = 500


@dataclass(frozen=True, eq=False)
class CountedSteps:
    """Counts of steps; those of each group of phases are rows below those of the group before."""

    counts: Any  # csr_array (g n, n) of float, from each state (row) to each state (column)
    states: list  # their n labels
    groups: PhaseGroups | None = None  # None: all hours are alike
    first: Any = None  # the label of the phase of the first release; None: the first phase
    # by how much rows of users and hours vary about the shared ones, in 1 / steps
    variation: float = 0.0

    @classmethod
    def of(
        cls, data: Sequences, groups: PhaseGroups | None = None, first: Any = None
    ) -> CountedSteps:
        """Count the steps of `data`, for each group of phases, or together without groups;
        ValueError unless they lead to a second state.

        `first` is the label of the phase of the first release, None the first phase.
        """
        if groups is None:
            counts, states = count_transitions(data)
        else:
            counts = count_by_group(data, groups)
            states = data.labels.tolist()
        if not counts.nnz or len(states) < 2:
            raise ValueError(
                "there must be steps between at least two states, found "
                f"{count_noun(data.n_transitions, 'step')} and "
                f"{count_noun(len(states), 'state')}; "
                "check the columns of users and times, and the step"
            )
        return cls(counts, states, groups, first)

    @property
    def pooled(self) -> Any:
        """The counts (n, n) at all hours together."""
        return sum_of_groups(self.counts)

    def tables(self) -> list:
        """The counts (n, n) of each group."""
        return tables_of_groups(self.counts)

    def backward_tables(self) -> list:
        """The counts (n, n) of each group, from the later state (row) to the earlier one
        (column)."""
        return [table.T.tocsr() for table in self.tables()]

    def told_of_anybody(self, table: Any) -> Any:
        """The counts (n, n) of a group, N steps in a row as N / (1 + N variation).

        So many steps of a user at an hour would tell as much of her row: what all N tell of the
        shared row has the variance p (1 - p) / N, and hers differs by p (1 - p) times the variation
        from that.
        """
        if not self.variation:
            return table
        dense = table.toarray()
        return dense / (1.0 + self.variation * dense.sum(axis=1, keepdims=True))

    def at_phases(self, of_groups: Iterable) -> Any:
        """What is known of the steps of each group, as one side of the chain: a `Cycle` from the
        phase of the first release on, or the only one."""
        known = list(of_groups)
        if self.groups is None:
            return known[0]
        return self.at_steps([known[group] for group in self.groups.codes.tolist()])

    def at_steps(self, known: list) -> Any:
        """What is known of each step of a period, as one side of the chain: a `Cycle` from the
        phase of the first release on, or the only one."""
        if self.groups is None:
            return known[0]
        cycle = Cycle(known, step=self.groups.step)
        if self.first is None:
            return cycle
        return cycle.starting_at(_phase_of(self.first, cycle))

    @property
    def cycle(self) -> Cycle | None:
        """The phases from the first release on, of whose steps nothing is known; None where all
        hours are alike."""
        if self.groups is None:
            return None
        return self.at_phases([None] * self.groups.n_groups)

    def without_dead_ends(self) -> CountedSteps:
        """The counts between states that are left and entered."""
        _, states = drop_dead_ends(self.pooled, self.states)
        place = {state: number for number, state in enumerate(self.states)}
        kept = [place[state] for state in states]
        n = len(self.states)
        rows = [first + state for first in range(0, self.counts.shape[0], n) for state in kept]
        return replace(self, counts=self.counts[rows][:, kept], states=states)

    def redrawn(
        self, data: Sequences, smoothing: float, draws: int, *, rng: Any, progress: bool
    ) -> Iterator[EstimatedMatrices]:
        """Estimates, where smoothing adds `smoothing` steps to each row, from `draws` redrawn sets
        of users of `data`, or draws of the posterior of a single user."""
        if data.n_users > 1:
            for counts in bootstrap_counts(
                data, draws, rng=rng, groups=self.groups, progress=progress
            ):
                yield EstimatedMatrices.of(replace(self, counts=counts), smoothing)
            return
        share = smoothing / len(self.states)
        backward = _draw_tables(self.backward_tables(), share, draws, rng)
        forward = _draw_tables(self.tables(), share, draws, rng)
        for of_backward, of_forward in zip(backward, forward, strict=True):
            yield EstimatedMatrices(list(of_backward), list(of_forward))


def _phase_of(first: Any, cycle: Cycle) -> Any:
    """The label of the phase of a time: such a label, with a day of the week too many, or a date
    with a time of day."""
    if first in cycle.phases:
        return first
    words = str(first).split()
    if words and words[0] in WEEKDAYS and words[-1] in cycle.phases:
        return words[-1]
    moment = None
    if cycle.step is not None and DATE.match(str(first)):
        moment = pd.to_datetime(first, errors="coerce")
    if not isinstance(moment, pd.Timestamp):
        listed = ", ".join(map(repr, cycle.phases))
        raise ValueError(
            f"first must be a date with a time of day, or one of the phases {listed}, found "
            f"{first!r}; choose one"
        )
    since_monday = moment.tz_localize(None) - pd.Timestamp(MONDAY)
    return cycle.phases[since_monday // cycle.step % len(cycle)]


@dataclass(frozen=True, eq=False)
class EstimatedMatrices:
    """The backward and the forward matrix of each group of phases."""

    backward: list[TransitionMatrix]
    forward: list[TransitionMatrix]

    @classmethod
    def of(cls, counted: CountedSteps, smoothing: float) -> EstimatedMatrices:
        """The matrices of counts, where smoothing adds `smoothing` steps to each row at all hours
        together.

        Without smoothing, states that are never left or never entered are left out.
        """
        if not smoothing:
            counted = counted.without_dead_ends()
        backward = _estimate(counted.backward_tables(), counted.states, smoothing)
        return cls(backward, _estimate(counted.tables(), counted.states, smoothing))


def _estimate(tables: list, states: list, smoothing: float) -> list[TransitionMatrix]:
    """The matrix of the counts (n, n) of each group, shrunk towards that of all, to each row of
    which `smoothing` steps are added."""
    share = smoothing / len(states)
    sparse = len(states) > SPARSE_ABOVE
    pooled = TransitionMatrix.from_counts(sum(tables[1:], tables[0]), share, states, sparse)
    if len(tables) == 1:
        return [pooled]
    return matrices_of_groups(_stacked(tables), pooled)


def _stacked(tables: list) -> Any:
    from scipy.sparse import vstack

    return vstack(tables, format="csr")


def _draw_tables(tables: list, share: float, draws: int, rng: Any) -> Iterator[tuple]:
    """Draws of the matrices of all groups, as tuples, from their counts (n, n).

    The prior of a group is the matrix of all with the likeliest weight, to each count of which
    `share` is added.
    """
    if len(tables) == 1:
        return zip(posterior_draws(tables[0], share, draws, rng=rng))
    together = sum(tables[1:], tables[0])
    pooled = TransitionMatrix.from_counts(together, share)
    weight = likeliest_weight(_stacked(tables), pooled)
    if weight == inf:
        drawn = posterior_draws(together, share, draws, rng=rng)
        return ((matrix,) * len(tables) for matrix in drawn)
    prior = weight * pooled.toarray()
    each = [posterior_draws(table.toarray() + prior, 0.0, draws, rng=rng) for table in tables]
    return zip(*each, strict=True)
