"""Transition systems: what an adversary knows about how a trace continues ([4], "we rely on
transition systems").

A complete trace a_1 ... a_n has the positions ▶, a_1, ..., a_n, ■. The state at a position is the
part of the trace up to it (direction "prefix") or from it on ("suffix"), limited to the nearest
items, as a sequence, a multiset or a set. A transition leads from the state at one position to the
state at the next, and is counted by "cases", once for each case that takes it, or by "occurrences",
each time it is taken.

A state at which incomplete traces end has no known successor, and ▶ has no predecessor. In the
matrices these states have a transition to themselves, like ■, but the leakages omit their rows, as
in [4] ("bounded to the traces in the state space").

**From one event to one release.** In a *certain* release each case that continues publishes exactly
w new events, so its state moves by w transitions; in an *uncertain* release it publishes from 0 to
w events, all equally likely. The forward matrix is the w-th power of the one-event matrix, or the
mean of its powers 0 to w. The backward matrix follows by Bayes' rule, with the counts that leave
each state or end in it as prior; or, as published with [4], by going back with all predecessors
equally likely ("uniform"). Probabilities are conditioned on reaching states that are known; if none
is, the row is unknown, and `loss_matrix` omits it.

Both matrices of the step from release t - 1 to t are indexed by the states of the system discovered
at t, which contains the traces of both releases. Rows of different releases are never matched: only
a number, the leakage alpha, passes from step to step.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np
import pandas as pd
from scipy.sparse import coo_array, csr_array, diags_array

from tplrepro.eventlog.log import TIMESTAMP, Release, as_traces
from tplrepro.markov.transition import TransitionMatrix
from tplrepro.validation import FrozenArrays, check_choice, check_horizon, check_smoothing, frozen


def _sort_distinct(items: tuple[int, ...]) -> list[int]:
    """The distinct items, ascending."""
    return sorted(set(items))


#: The key of a state, from the items that it consists of.
ABSTRACTIONS: dict[str, Callable] = {"sequence": tuple, "multiset": sorted, "set": _sort_distinct}
#: The transitions of a trace that count, from all its transitions.
COUNTED: dict[str, Callable] = {"cases": set, "occurrences": iter}


@dataclass(frozen=True, eq=False)
class TransitionSystem(FrozenArrays):
    """The states of a log's traces and the counts of their transitions; sparse throughout. See
    `from_log`."""

    counts: csr_array  # (n, n), of the transitions, by cases or by occurrences
    # (n,), the counts that leave each state plus the cases that end in it: the prior of Bayes' rule
    visits: np.ndarray
    final: np.ndarray  # (n,) of bool, the states at ■
    activities: list[str]  # ▶ first and ■ last
    direction: str
    _numbering: "_Numbering"

    @classmethod
    def from_log(
        cls,
        log: pd.DataFrame | Release,
        window: int | None = None,
        direction: str = "prefix",
        abstraction: str = "sequence",
        counting: str = "cases",
    ) -> Self:
        """Discover the transition system of a log or one release of it.

        Parameters
        ----------
        log : DataFrame or Release
            Times are optional in a DataFrame; they order the events of a case.
        window : int, optional
            The number of items of a trace, including ▶ and ■, that a state consists of; by default
            all.
        direction : str
            "prefix" or "suffix".
        abstraction : str
            "sequence", "multiset" or "set".
        counting : str
            By "cases" or "occurrences".

        Returns
        -------
        TransitionSystem

        Raises
        ------
        ValueError
            If the log is malformed, or an argument none of these.

        Examples
        --------
        >>> log = pd.DataFrame({"case:concept:name": list("1122"), "concept:name": list("abac")})
        >>> system = TransitionSystem.from_log(log, window=1)
        >>> system.states
        [('▶',), ('a',), ('b',), ('■',), ('c',)]
        >>> system.forward.toarray()[1].tolist(), system.backward.toarray()[3].tolist()
        ([0.0, 0.0, 0.5, 0.0, 0.5], [0.0, 0.0, 0.5, 0.0, 0.5])
        """
        if not isinstance(log, Release):
            columns = getattr(log, "columns", ())
            traces = as_traces(log, timed=TIMESTAMP in columns)
            log = Release(traces.full_lengths, traces)
        activities = log.traces.activities
        check_choice(direction, "direction", ("prefix", "suffix"))
        check_choice(abstraction, "abstraction", ABSTRACTIONS)
        check_choice(counting, "counting", COUNTED)
        if window is not None:
            window = check_horizon(window, "window")
        numbering = _Numbering(abstraction, window)
        counts: Counter[tuple[int, int]] = Counter()
        ended: Counter[int] = Counter()
        final = set()
        end_of_trace = len(activities) - 1  # ■
        for path, n_cases in log.traces.paths(log.published).items():
            if direction == "prefix":
                states = numbering.number_path(path)
            else:
                backward_states = numbering.number_path(path[::-1])
                states = backward_states[::-1]
            last = states[-1]
            ended[last] += n_cases
            if path[-1] == end_of_trace:
                final.add(last)
            for transition in COUNTED[counting](pairwise(states)):
                counts[transition] += n_cases
        n = len(numbering.numbers)
        matrix = _count_matrix(counts, n)
        n_ended = np.array([ended[state] for state in range(n)])
        return cls(
            counts=matrix,
            visits=matrix.sum(axis=1) + n_ended,
            final=np.isin(np.arange(n), list(final)),
            activities=activities,
            direction=direction,
            _numbering=numbering,
        )

    def __repr__(self) -> str:
        size = f"{self.n_states} states, {self.counts.nnz} transitions"
        return f"TransitionSystem({size}, {self.direction})"

    @property
    def n_states(self) -> int:
        return self.counts.shape[0]

    def label(self, state: int) -> tuple[str, ...]:
        """The items of a state; those of a multiset or set are sorted, ▶ first and ■ last."""
        items = self._numbering.items(state)
        is_sequence = self._numbering.abstraction == "sequence"
        if is_sequence and self.direction == "suffix":
            items = items[::-1]
        return tuple(self.activities[k] for k in items)

    @cached_property
    def states(self) -> list[tuple[str, ...]]:
        """The labels of all states, in the order of the matrices."""
        return [self.label(k) for k in range(self.n_states)]

    @cached_property
    def has_successor(self) -> np.ndarray:
        """Whether each state was left by some case or is final, (n,) of bool."""
        is_left = np.diff(self.counts.indptr) > 0
        return frozen(is_left | self.final)

    @cached_property
    def has_predecessor(self) -> np.ndarray:
        """Whether each state was entered by some case, (n,) of bool."""
        n_entries = np.bincount(self.counts.indices, minlength=self.n_states)
        return frozen(n_entries > 0)

    @cached_property
    def forward(self) -> TransitionMatrix:
        """Pr(next state | state), one event ahead; final states and those without successor lead to
        themselves."""
        return self._as_matrix(self.counts)

    @cached_property
    def backward(self) -> TransitionMatrix:
        """Pr(previous state | state), one event back, by Bayes' rule; states without one lead to
        themselves."""
        return self._as_matrix(self.counts.T.tocsr())

    def _as_matrix(self, counts: csr_array) -> TransitionMatrix:
        is_empty = np.diff(counts.indptr) == 0
        stay = diags_array(is_empty * 1.0)
        return TransitionMatrix(counts + stay, states=self.states, normalize=True)


def _count_matrix(counts: Mapping[tuple[int, int], int], n_states: int) -> csr_array:
    """The counts of transitions (from, to) as a matrix (n, n)."""
    values = np.array(list(counts.values()), dtype=float)
    transitions = np.array(list(counts), dtype=np.int64).reshape(-1, 2)
    origins = transitions[:, 0]
    destinations = transitions[:, 1]
    matrix = coo_array((values, (origins, destinations)), shape=(n_states, n_states))
    return matrix.tocsr()


class _Numbering:
    """Numbers the states along paths in the order of their first occurrence.

    The key of a state is its items; for whole sequences it is the previous state and the last item,
    since items would take memory that grows with the square of a path's length.
    """

    def __init__(self, abstraction: str, window: int | None):
        self.abstraction = abstraction
        self.window = window
        self.whole_sequences = abstraction == "sequence" and window is None
        self.numbers: dict[tuple[int, ...], int] = {}

    def number_path(self, path: tuple[int, ...]) -> list[int]:
        """The states at all positions of a path."""
        numbers = self.numbers
        abstract = ABSTRACTIONS[self.abstraction]
        state = -1
        states = []
        for end, item in enumerate(path, start=1):
            if self.whole_sequences:
                key: tuple[int, ...] = (state, item)
            else:
                first = 0
                if self.window is not None:
                    first = max(0, end - self.window)
                key = tuple(abstract(path[first:end]))
            state = numbers.setdefault(key, len(numbers))
            states.append(state)
        return states

    @cached_property
    def _keys(self) -> list[tuple[int, ...]]:
        return list(self.numbers)

    def items(self, state: int) -> tuple[int, ...]:
        """The items of a state, after all paths were numbered."""
        if not self.whole_sequences:
            return self._keys[state]
        from_last = []
        while state >= 0:
            state, item = self._keys[state]
            from_last.append(item)
        return tuple(reversed(from_last))


@dataclass(frozen=True, eq=False)
class StepMatrices(FrozenArrays):
    """Pr(previous state | state) and Pr(next state | state), (n, n); rows sum to 1, unknown ones
    are empty."""

    backward: csr_array
    forward: csr_array


def release_step(
    system: TransitionSystem, depth: int = 1, certain: bool = True, backward_from: str = "bayes"
) -> StepMatrices:
    """The matrices of the step to a release.

    Parameters
    ----------
    system : TransitionSystem
        Of the release to which the step leads.
    depth : int
        At least 1: each case publishes exactly this number of events if `certain`, else any number
        from 0 to it.
    certain : bool
    backward_from : str
        "bayes": the backward matrix follows by Bayes' rule; "uniform": all predecessors are equally
        likely, as published with [4].

    Returns
    -------
    StepMatrices

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> log = pd.DataFrame({"case:concept:name": list("1122"), "concept:name": list("abac")})
    >>> step = release_step(TransitionSystem.from_log(log, window=1))
    >>> step.forward.toarray()[1].tolist()  # from a: b or c
    [0.0, 0.0, 0.5, 0.0, 0.5]
    >>> step.backward.toarray()[3].tolist()  # complete now: ended with b or c, or was complete
    [0.0, 0.0, 0.25, 0.5, 0.25]
    """
    depth = check_horizon(depth, "depth")
    check_choice(certain, "certain", (True, False))
    check_choice(backward_from, "backward_from", ("bayes", "uniform"))
    stays = diags_array(system.final * 1.0)
    forward = _step_probabilities(system.counts + stays, depth, certain)
    if backward_from == "uniform":
        predecessors = (system.counts.T > 0).astype(float)
        return StepMatrices(_step_probabilities(predecessors, depth, certain), forward)
    # A case in a state without known successor may have been there before, if it published nothing.
    may_have_moved = system.has_successor | certain
    stayed = np.where(may_have_moved, 0.0, 1.0 / (depth + 1))
    moved_or_stayed = forward + diags_array(stayed)
    joint = diags_array(system.visits) @ moved_or_stayed
    # Nothing precedes ▶, although an uncertain release may leave a case there.
    has_predecessor = diags_array(system.has_predecessor * 1.0)
    return StepMatrices(_normalize_rows(has_predecessor @ joint.T), forward)


def loss_matrix(
    rows: csr_array, smoothing: float = 0.0
) -> tuple[TransitionMatrix, np.ndarray] | None:
    """A matrix with the privacy loss function of the known rows.

    Empty rows are unknown; each is replaced by the known row with the fewest entries, since a copy
    of a row adds nothing to L, a maximum over pairs of rows.

    Parameters
    ----------
    rows : csr_array (n, n)
        Rows sum to 1 or are empty.
    smoothing : float
        The s >= 0 of Eq. (28) of [1], added to every probability of the known rows.

    Returns
    -------
    matrix : TransitionMatrix (n, n)
    state_of_row : array (n,) of int
        The state whose row each row of the matrix is.

    Instead of both, None if fewer than two rows are known.

    Raises
    ------
    ValueError
        If the smoothing is negative or not finite.
    """
    n_stored = np.diff(rows.indptr)
    is_known = n_stored > 0
    known = np.flatnonzero(is_known)
    smoothing = check_smoothing(smoothing)
    if known.size < 2:
        return None
    shortest = known[np.argmin(n_stored[known])]
    states = np.arange(n_stored.size)
    state_of_row = np.where(is_known, states, shortest)
    complete = rows[state_of_row]
    raised = csr_array(
        (complete.data + smoothing, complete.indices, complete.indptr), complete.shape
    )
    return TransitionMatrix(raised, background=smoothing, normalize=True), state_of_row


def _step_probabilities(one_event: Any, depth: int, certain: bool) -> csr_array:
    """Probabilities (n, n) of `depth` events at once if `certain`, else of 0 to `depth`, equally
    likely; from those of one event, not normalized. Unknown rows are empty."""
    one_step = _normalize_rows(one_event)
    moves = [one_step]
    for _ in range(depth - 1):
        moves.append(moves[-1] @ one_step)
    if certain:
        return _normalize_rows(moves[-1])
    is_known = (np.diff(one_step.indptr) > 0) * 1.0
    total = diags_array(is_known).tocsr()  # no step; then one term per feasible number of steps
    for move in moves:
        total = total + _normalize_rows(move)
    return _normalize_rows(total)


def _normalize_rows(rows: Any) -> csr_array:
    """Rows divided by their sums; those without entries stay empty."""
    rows = csr_array(rows, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    n_stored = np.diff(rows.indptr)
    rows.data /= np.repeat(rows.sum(axis=1), n_stored)
    return rows
