"""One transition matrix for each phase of a day or week, estimated from sequences with times.

Phases that behave alike share a matrix: blocks of hours, weekdays and the weekend, or what else a
user says. Each row of a phase is shrunk towards that of the pooled matrix,

    (c_i + w p_i) / (|c_i| + w)

for its counts c_i, the pooled row p_i and a weight w in steps: the mean of a Dirichlet distribution
with the base measure w p_i, given the counts. The weight is the likeliest one, for which the counts
of all phases have the largest probability (empirical Bayes, [1]), so that a phase with few data is
the pooled one, and so are all where the phases do not differ.

[1] D. J. C. MacKay, L. C. B. Peto: A hierarchical Dirichlet language model. Natural Language
Engineering 1(3), 1995, Eq. (17) for one base measure and all contexts.
"""

from __future__ import annotations
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tplrepro.markov.sequences import CountedPairs, Sequences, as_sequences, steps_of_period
from tplrepro.markov.transition import DAY, WEEK, WEEKDAYS, TransitionMatrix
from tplrepro.validation import check_choice

if TYPE_CHECKING:
    from pandas import DatetimeIndex

HOURS = 24
SATURDAY = 5  # as Monday is 0
#: A Monday at midnight.
SOME_MONDAY = "2024-01-01"
#: Steps that a day or week may have: those of a second in a week.
MOST_STEPS = 7 * 86_400
#: Weights of the pooled row that are tried, in steps; further ones lie between the two best.
WEIGHTS = tuple(4.0**power for power in range(-3, 11))
#: What tells the phases: a name, a number of blocks of a day, a function of times, or labels of the
#: steps of a day or week.
Phase: TypeAlias = "str | int | Callable[[DatetimeIndex], Any] | Iterable[Hashable]"


@dataclass(frozen=True)
class DayBlocks:
    """Blocks of so many hours of a day, apart for Saturday and Sunday if so wanted.

    >>> import pandas as pd
    >>> night_and_weekend = DayBlocks(12, weekend=True)
    >>> list(night_and_weekend(pd.DatetimeIndex(["2024-01-05T11:59", "2024-01-06T12:00"])))
    ['Mon-Fri 00:00-12:00', 'Sat-Sun 12:00-24:00']
    """

    hours: float  # which divide 24
    weekend: bool = False

    def __call__(self, times: DatetimeIndex) -> list[str]:
        """The label of the block of each time."""
        seconds = (times - times.normalize()).total_seconds().to_numpy()
        blocks = np.floor_divide(seconds, self.hours * 3600)
        labels = []
        for block, weekday in zip(blocks.tolist(), times.day_of_week.tolist(), strict=True):
            parts = []
            if self.weekend:
                parts.append(_part_of_week(weekday))
            if self.hours < HOURS or not self.weekend:
                parts.append(f"{_clock(block * self.hours)}-{_clock((block + 1) * self.hours)}")
            labels.append(" ".join(parts))
        return labels


def _part_of_week(weekday: int) -> str:
    if weekday >= SATURDAY:
        return "Sat-Sun"
    return "Mon-Fri"


def weekdays(times: DatetimeIndex) -> list[str]:
    """The day of the week of each time: seven phases."""
    return [WEEKDAYS[number] for number in times.day_of_week]


#: Phases that have a name.
NAMED: dict[str, Callable[[Any], list[str]]] = {
    "hour": DayBlocks(1),
    "weekday": weekdays,
    "weekend": DayBlocks(HOURS, weekend=True),
}


@dataclass(frozen=True, eq=False)
class PhaseGroups:
    """Which steps of a day or week share a matrix."""

    codes: np.ndarray  # (p,), the group of each step of a period
    labels: list  # of the groups
    step: timedelta

    @property
    def period(self) -> timedelta:
        return self.step * len(self.codes)

    @property
    def n_groups(self) -> int:
        return len(self.labels)

    def of_values(self, sequences: Sequences) -> np.ndarray:
        """The group of each value of sequences with this step, (m,)."""
        return self.codes[sequences.phases(self.period)]


def group_phases(phase: Phase, step: timedelta | None) -> PhaseGroups:
    """Which steps of a day or week share a matrix.

    Parameters
    ----------
    phase : str, int, callable or sequence
        "hour", "weekday" (seven), "weekend" (Saturday and Sunday against the rest), the number of
        blocks of a day, a function from a DatetimeIndex to a label of each time, or the labels of
        all steps of a day, or of a week from Monday on.
    step : datetime.timedelta
        The length of a step, which divides a day, or a week.

    Returns
    -------
    PhaseGroups of a day, or of a week if its days differ

    Raises
    ------
    ValueError
        Without a step, or if it divides no period; for an unknown name, a number of blocks that
        does not divide 24, or another number of labels.

    Examples
    --------
    >>> groups = group_phases(lambda times: times.hour < 6, timedelta(hours=3))
    >>> groups.codes.tolist(), groups.labels
    ([0, 0, 1, 1, 1, 1, 1, 1], [True, False])
    >>> group_phases("weekend", timedelta(days=1)).codes.tolist()
    [0, 0, 0, 0, 0, 1, 1]
    """
    n_steps = steps_of_period(step, WEEK)
    assert step is not None
    if n_steps > MOST_STEPS:
        raise ValueError(
            f"a week may have {MOST_STEPS:,} steps, found {n_steps:,}, each of {step}; read the "
            "sequences with a longer step="
        )
    labels = _labels_of_steps(phase, n_steps, step)
    codes = _numbers_in_order(labels)
    if DAY % step == timedelta(0):
        days = codes.reshape(7, -1)
        if (days == days[0]).all():
            codes = days[0]
    return PhaseGroups(codes, list(dict.fromkeys(labels)), step)


def _labels_of_steps(phase: Phase, n_steps: int, step: timedelta) -> list[Hashable]:
    """The label of each of the `n_steps` steps of a week, by a phase as `group_phases` takes
    it."""
    if isinstance(phase, str):
        check_choice(phase, "phase", tuple(NAMED))
        phase = NAMED[phase]
    elif isinstance(phase, int | np.integer):
        if phase < 1 or HOURS % phase:
            raise ValueError(
                f"a number of phases must divide the 24 hours of a day, found {phase}; give 1, 2, "
                "3, 4, 6, 8, 12 or 24"
            )
        phase = DayBlocks(HOURS / phase)
    if callable(phase):
        import pandas as pd

        times = pd.date_range(SOME_MONDAY, periods=n_steps, freq=pd.Timedelta(step))
        given = np.asarray(phase(times)).tolist()
    else:
        given = list(phase)
        if 7 * len(given) == n_steps:
            given *= 7
    if len(given) != n_steps:
        raise ValueError(
            f"phase must give one label for each step of a day or week, found {len(given)} for the "
            f"{n_steps} steps of a week; give as many"
        )
    return given


def _numbers_in_order(labels: list[Hashable]) -> np.ndarray:
    """A number of each label, in the order in which they first occur."""
    number = {label: k for k, label in enumerate(dict.fromkeys(labels))}
    return np.array([number[label] for label in labels])


def _clock(hour: float) -> str:
    minutes = round(60 * hour)
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


def estimate_matrices(
    sequences: Any,
    phase: Phase,
    *,
    smoothing: float = 0.0,
    weight: float | None = None,
    states: Iterable | None = None,
    direction: str = "forward",
    sparse: bool | None = None,
) -> list[TransitionMatrix]:
    """The matrix of each step of a day or week; `Cycle.from_sequences` says the rest.

    Parameters
    ----------
    sequences : Sequences or DataFrame, with times
    phase : str, int, callable or sequence
    smoothing : float
    weight : float, optional
    states : sequence of labels, optional
    direction : str
    sparse : bool, optional

    Returns
    -------
    list of p TransitionMatrix, those of a group of phases being one object

    Raises
    ------
    ValueError
        As `Cycle.from_sequences` says.
    """
    check_choice(direction, "direction", ("forward", "backward"))
    if weight is not None and not weight > 0:
        raise ValueError(f"weight must be positive, found {weight}; give such as 100.0, or None")
    data = as_sequences(sequences, states=states)
    groups = group_phases(phase, data.step)
    counts = count_by_group(data, groups, direction)
    pooled = TransitionMatrix.from_counts(
        sum_of_groups(counts), smoothing, data.labels.tolist(), sparse, step=data.step
    )
    matrices = matrices_of_groups(counts, pooled, weight)
    return [matrices[group] for group in groups.codes.tolist()]


def tables_of_groups(counts: Any) -> list:
    """The counts (n, n) of each group, of those (g n, n) that `count_by_group` returns."""
    n = counts.shape[1]
    return [counts[first : first + n] for first in range(0, counts.shape[0], n)]


def sum_of_groups(counts: Any) -> Any:
    """The counts (n, n) of all groups together."""
    first, *others = tables_of_groups(counts)
    return sum(others, first)


def matrices_of_groups(
    counts: Any, pooled: TransitionMatrix, weight: float | None = None
) -> list[TransitionMatrix]:
    """The matrix of each group of phases, shrunk towards that of all.

    Parameters
    ----------
    counts : csr_array (g n, n)
        Those of one group below those of another.
    pooled : TransitionMatrix
        Positive where a count is.
    weight : float, optional
        Of the pooled matrix, in steps from each state; by default the likeliest one.

    Returns
    -------
    list of g TransitionMatrix
    """
    if weight is None:
        weight = likeliest_weight(counts, pooled)
    return [shrunk_matrix(own, pooled, weight) for own in tables_of_groups(counts)]


def count_by_group(data: Sequences, groups: PhaseGroups, direction: str = "forward") -> Any:
    """The steps from state to state in each group of phases, that of the earlier value.

    Parameters
    ----------
    data : Sequences with times
    groups : PhaseGroups
    direction : str
        "forward" or "backward": whether rows are those of the earlier or the later state.

    Returns
    -------
    csr_array (g n, n) of float, the counts (n, n) of one group below those of another

    Raises
    ------
    ValueError
        If the sequences have no times, or another step.
    """
    n = data.n_states
    counts = CountedPairs((groups.n_groups * n, n), data.n_transitions)
    for block in data.blocks():
        later = block.places_of_later_values()
        group = groups.of_values(block)[later - 1].astype(np.int64)
        rows = block.values[later - 1]
        columns = block.values[later]
        if direction == "backward":
            rows, columns = columns, rows
        counts.add(group * n + rows, columns)
    return counts.table


def likeliest_weight(counts: Any, pooled: TransitionMatrix) -> float:
    """The weight of the pooled rows for which the counts of all groups are likeliest.

    Parameters
    ----------
    counts : csr_array (g n, n)
        Those of one group below those of another.
    pooled : TransitionMatrix
        Positive where a count is.

    Returns
    -------
    float > 0, in steps; infinite if no group differs from the pooled matrix

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> night, day = [[98, 2], [2, 98]], [[50, 50], [50, 50]]
    >>> pooled = TransitionMatrix([[0.74, 0.26], [0.26, 0.74]])
    >>> likeliest_weight(csr_array([*night, *day]), pooled)
    2.0
    >>> likeliest_weight(csr_array([*day, *day]), TransitionMatrix([[0.5, 0.5], [0.5, 0.5]]))
    inf
    """
    entries = counts.tocoo()
    is_seen = entries.data > 0
    rows = entries.row[is_seen] % pooled.n_states
    expected = _entries_of(pooled, rows, entries.col[is_seen])
    totals = np.asarray(counts.sum(axis=1)).ravel()
    return RowEvidence(entries.data[is_seen], expected, totals[totals > 0]).likeliest_weight()


@dataclass(frozen=True, eq=False)
class RowEvidence:
    """The probability of counts whose rows are drawn around those of a prior matrix."""

    counts: np.ndarray  # (e,), those that are positive
    expected: np.ndarray  # (e,), the prior probability of each
    totals: np.ndarray  # (r,), of the rows with counts

    def likeliest_weight(self) -> float:
        """The weight of the prior, in steps, for which the counts are likeliest; may be
        infinite."""
        best = max(WEIGHTS, key=self.at)
        weight = max((best / 2, best, 2 * best), key=self.at)
        if self.of_prior >= self.at(weight):
            return inf
        return weight

    @cached_property
    def of_prior(self) -> float:
        """The log-likelihood of the prior matrix itself."""
        return float(self.counts @ np.log(self.expected))

    def at(self, weight: float) -> float:
        """The log-probability of the counts in the order in which they were seen."""
        from scipy.special import gammaln

        base = weight * self.expected
        of_entries = gammaln(base + self.counts) - gammaln(base)
        of_rows = gammaln(weight) - gammaln(weight + self.totals)
        return float(of_entries.sum() + of_rows.sum())


def _entries_of(matrix: TransitionMatrix, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """The probabilities (e,) at these rows and columns (e,), all of which are stored if the matrix
    is sparse."""
    return np.asarray(matrix.probabilities[rows, columns]).ravel()


def shrunk_matrix(counts: Any, prior: TransitionMatrix, weight: float) -> TransitionMatrix:
    """The matrix with the rows (c_i + w p_i) / (|c_i| + w).

    Parameters
    ----------
    counts : csr_array (n, n)
    prior : TransitionMatrix
        Sparse if the result is to be so.
    weight : float
        w > 0, in steps.

    Returns
    -------
    TransitionMatrix, `prior` itself if there are no counts or the weight is infinite

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> prior = TransitionMatrix([[0.5, 0.5], [0.5, 0.5]])
    >>> shrunk_matrix(csr_array([[3.0, 0.0], [0.0, 0.0]]), prior, 1.0).toarray().tolist()
    [[0.875, 0.125], [0.5, 0.5]]
    """
    if weight == inf or counts.nnz == 0:
        return prior
    totals = np.asarray(counts.sum(axis=1)).ravel() + weight
    if not prior.is_sparse:
        rows = (counts.toarray() + weight * prior.toarray()) / totals[:, None]
        return TransitionMatrix(rows, prior.states, normalize=True, step=prior.step)
    joint = (counts + weight * prior.excess).tocsr()
    background = weight * prior.background / totals
    stored = np.diff(joint.indptr)
    joint.data = joint.data / np.repeat(totals, stored) + np.repeat(background, stored)
    return TransitionMatrix(
        joint, prior.states, background=background, normalize=True, step=prior.step
    )
