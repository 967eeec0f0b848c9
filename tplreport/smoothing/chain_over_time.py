"""A public chain beside noisy counts: the state of each column, and the matrix of each step."""

from __future__ import annotations
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from tplreport.publishing.clock import CycleOnClock
from tplreport.reading.time_steps import in_units_of
from tplrepro.markov.cycle import Cycle
from tplrepro.validation import check_distribution

MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, eq=False)
class ChainOverTime:
    """The matrices (n, n) of T - 1 steps, the law (n,) of the first time, and the place among the
    states of each column; states without a column are hidden."""

    steps: list[np.ndarray]
    law: np.ndarray
    places: list[int]

    @property
    def has_hidden(self) -> bool:
        """Whether a state has no column."""
        return len(self.places) < self.law.size

    def law_at(self, time: int) -> np.ndarray:
        """The law of a later time."""
        law = self.law
        for step in self.steps[:time]:
            law = law @ step
        return law


def chain_over_time(
    chain: Any, columns: Sequence, index: Any, initial: ArrayLike | None = None
) -> ChainOverTime:
    """The steps and states of a chain for counts with these columns and times.

    Parameters
    ----------
    chain : TransitionMatrix, array-like (n, n), sequence of T - 1 of them, or Cycle
        By label of the states where it has some, which are columns, or hidden.
    columns : sequence of labels
    index : pandas.Index (T,)
        Dates say the phase of a Cycle of a day or week; otherwise the first time has phase 0.
    initial : array-like (n,), optional
        The law of the first time, by default the habit's.

    Returns
    -------
    ChainOverTime

    Raises
    ------
    ValueError
        For columns that are no states, matrices of unknown or other steps, another number of them,
        or a chain whose habit is not unique without `initial`.
    """
    cycle = chain
    if not isinstance(chain, Cycle):
        cycle = Cycle(chain)
        _check_length_of_list(cycle, len(index))
    if isinstance(chain, Cycle) or len(cycle) == 1:
        _check_steps(cycle.step, index)
    cycle.known_matrices([*cycle, *cycle.first])
    phases = _phases_by_clock(cycle, index)
    matrices = cycle.over(len(index) - 1)
    first_phase = 0
    if phases:
        matrices = [cycle[phase] for phase in phases[:-1]]
        first_phase = phases[0]
    arrays = {id(matrix): np.asarray(matrix.toarray(), dtype=float) for matrix in matrices}
    law = _first_law(cycle, first_phase, initial)
    places = _places_of(columns, cycle.states)
    return ChainOverTime([arrays[id(matrix)] for matrix in matrices], law, places)


def _check_length_of_list(cycle: Cycle, horizon: int) -> None:
    if len(cycle) not in (1, horizon - 1):
        raise ValueError(
            f"a list of matrices must have one for each of {horizon - 1} steps, found "
            f"{len(cycle)}; give a Cycle if they are those of its phases"
        )


def _phases_by_clock(cycle: Cycle, index: pd.Index) -> list[int]:
    """The phase of each time, if the cycle and the times have a clock."""
    if not isinstance(index, pd.DatetimeIndex) or cycle.step is None or cycle.period is None:
        return []
    by_clock = CycleOnClock(cycle.period, 1000 * (cycle.begins // MICROSECOND), cycle.phases)
    step = 1000 * (cycle.step // MICROSECOND)
    local = index.tz_localize(None).as_unit("ns").asi8.tolist()
    return [by_clock.phase_at(tick, step) for tick in local]


def _check_steps(step: timedelta | None, index: pd.Index) -> None:
    """ValueError unless dates are one step of the chain apart."""
    if not isinstance(index, pd.DatetimeIndex) or len(index) < 2:
        return
    if index.hasnans:
        raise ValueError("times must not be missing, found NaT; leave out rows without a time")
    distances = np.diff(index.as_unit("ns").asi8)
    by_clock = np.diff(index.tz_localize(None).as_unit("ns").asi8)
    width = distances[0]
    if step is not None:
        width = 1000 * (step // MICROSECOND)
    if (distances == width).all() or (by_clock == width).all():
        return
    found = pd.Timedelta(distances[np.argmax(distances != width)])
    raise ValueError(
        f"times must be one step of the chain apart, {in_units_of(pd.Timedelta(width))}, found "
        f"{in_units_of(found)}; give a row of NaN for each time without a release, and a chain of "
        "that step"
    )


def _first_law(cycle: Cycle, phase: int, initial: ArrayLike | None) -> np.ndarray:
    if initial is not None:
        return check_distribution(initial, cycle.states, "initial")
    try:
        return cycle.laws()[phase]
    except ValueError:
        raise ValueError(
            "the law of the first time must be known where a chain has several laws that repeat "
            "themselves, found no initial=; give the shares of the states then"
        ) from None


def _places_of(columns: Sequence, states: Sequence) -> list[int]:
    """The place of each column among the states: by label, or by position where the states have
    none."""
    columns = list(columns)
    place_of = {state: place for place, state in enumerate(states)}
    unknown = [column for column in columns if column not in place_of]
    are_distinct = len(set(columns)) == len(columns)
    has_labels = not isinstance(states, range)
    if not unknown and are_distinct and (has_labels or len(columns) == len(states)):
        return [place_of[column] for column in columns]
    if has_labels:
        raise ValueError(
            f"columns must be states of the chain, once each, found {(unknown or columns)[:5]} and "
            f"the states {list(states[:5])}; rename them"
        )
    if len(columns) != len(states):
        raise ValueError(
            f"there must be a column for each of the {len(states)} states of the chain, found "
            f"{len(columns)}; name the states, and those without a column are hidden"
        )
    return [*range(len(states))]
