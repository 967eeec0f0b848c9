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
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Self

import numpy as np
import pandas as pd
from scipy.sparse import coo_array, csr_array, diags_array

from tplrepro.eventlog.log import TIMESTAMP, Release, as_traces
from tplrepro.markov.transition import TransitionMatrix
from tplrepro.validation import FrozenArrays, check_choice, check_horizon, check_smoothing, frozen

ABSTRACTIONS: dict[str, Callable] = {
    "sequence": tuple,
    "multiset": sorted,
    "set": lambda items: sorted(set(items)),
}
# the transitions of a trace that count
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

        Times are optional; they order the events of a case. A state consists of `window` >= 1 items
        of a trace including ▶ and ■, by default of all. `direction` is "prefix" or "suffix",
        `abstraction` "sequence", "multiset" or "set", `counting` by "cases" or "occurrences".

        >>> log = pd.DataFrame({"case:concept:name": list("1122"), "concept:name": list("abac")})
        >>> system = TransitionSystem.from_log(log, window=1)
        >>> system.states
        [('▶',), ('a',), ('b',), ('■',), ('c',)]
        >>> system.forward.toarray()[1].tolist(), system.backward.toarray()[3].tolist()
        ([0.0, 0.0, 0.5, 0.0, 0.5], [0.0, 0.0, 0.5, 0.0, 0.5])
        """
        if not isinstance(log, Release):
            traces = as_traces(log, timed=TIMESTAMP in getattr(log, "columns", ()))
            log = Release(traces.full_lengths, traces)
        activities = log.traces.activities
        check_choice(direction, "direction", ("prefix", "suffix"))
        check_choice(abstraction, "abstraction", ABSTRACTIONS)
        check_choice(counting, "counting", COUNTED)
        numbering = _Numbering(
            abstraction, None if window is None else check_horizon(window, "window")
        )
        counts: Counter[tuple[int, int]] = Counter()
        ended: Counter[int] = Counter()
        final = set()
        for path, cases in log.traces.paths(log.published).items():
            states = (
                numbering.along(path)
                if direction == "prefix"
                else numbering.along(path[::-1])[::-1]
            )
            ended[states[-1]] += cases
            if path[-1] == len(activities) - 1:
                final.add(states[-1])
            for transition in COUNTED[counting](pairwise(states)):
                counts[transition] += cases
        n = len(numbering.numbers)
        values = np.array(list(counts.values()), dtype=float)
        ends = np.array(list(counts), dtype=np.int64).reshape(-1, 2)
        matrix = coo_array((values, tuple(ends.T)), shape=(n, n)).tocsr()
        visits = matrix.sum(axis=1) + np.array([ended[state] for state in range(n)])
        return cls(
            matrix, visits, np.isin(np.arange(n), list(final)), activities, direction, numbering
        )

    def __repr__(self) -> str:
        return f"TransitionSystem({self.n_states} states, {self.counts.nnz} transitions, {self.direction})"

    @property
    def n_states(self) -> int:
        return self.counts.shape[0]

    def label(self, state: int) -> tuple[str, ...]:
        """The items of a state; those of a multiset or set are sorted, ▶ first and ■ last."""
        items = self._numbering.items(state)
        if self.direction == "suffix" and self._numbering.abstraction == "sequence":
            items = items[::-1]
        return tuple(self.activities[k] for k in items)

    @cached_property
    def states(self) -> list[tuple[str, ...]]:
        """The labels of all states, in the order of the matrices."""
        return [self.label(k) for k in range(self.n_states)]

    @cached_property
    def has_successor(self) -> np.ndarray:
        """Whether each state was left by some case or is final, (n,) of bool."""
        return frozen((np.diff(self.counts.indptr) > 0) | self.final)

    @cached_property
    def has_predecessor(self) -> np.ndarray:
        """Whether each state was entered by some case, (n,) of bool."""
        return frozen(np.bincount(self.counts.indices, minlength=self.n_states) > 0)

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
        stay = diags_array((np.diff(counts.indptr) == 0) * 1.0)
        return TransitionMatrix(counts + stay, states=self.states, normalize=True)


class _Numbering:
    """Numbers the states along paths in the order of their first occurrence.

    The key of a state is its items; for whole sequences it is the previous state and the last item,
    since items would take memory that grows with the square of a path's length.
    """

    def __init__(self, abstraction: str, window: int | None):
        self.abstraction, self.window = abstraction, window
        self.whole_sequences = abstraction == "sequence" and window is None
        self.numbers: dict[tuple[int, ...], int] = {}

    def along(self, path: tuple[int, ...]) -> list[int]:
        """The states at all positions of a path."""
        numbers, abstract, state, states = self.numbers, ABSTRACTIONS[self.abstraction], -1, []
        for end, item in enumerate(path, start=1):
            if self.whole_sequences:
                key: tuple[int, ...] = (state, item)
            else:
                key = tuple(abstract(path[max(0, end - (self.window or end)) : end]))
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
        found = []
        while state >= 0:
            state, item = self._keys[state]
            found.append(item)
        return tuple(reversed(found))


@dataclass(frozen=True, eq=False)
class StepMatrices(FrozenArrays):
    """Pr(previous state | state) and Pr(next state | state), (n, n); rows sum to 1, unknown ones
    are empty."""

    backward: csr_array
    forward: csr_array


def release_step(
    system: TransitionSystem, depth: int = 1, certain: bool = True, backward_from: str = "bayes"
) -> StepMatrices:
    """The matrices of the step to the release of `system`; `backward_from` is "bayes" or "uniform".

    Each case publishes exactly `depth` >= 1 events if `certain`, else any number from 0 to `depth`.

    >>> log = pd.DataFrame({"case:concept:name": list("1122"), "concept:name": list("abac")})
    >>> step = release_step(TransitionSystem.from_log(log, window=1))
    >>> step.forward.toarray()[1].tolist()  # from a: b or c
    [0.0, 0.0, 0.5, 0.0, 0.5]
    >>> step.backward.toarray()[3].tolist()  # complete now: ended with b, ended with c, or was complete before
    [0.0, 0.0, 0.25, 0.5, 0.25]
    """
    depth = check_horizon(depth, "depth")
    check_choice(certain, "certain", (True, False))
    check_choice(backward_from, "backward_from", ("bayes", "uniform"))
    forward = _explored(system.counts + diags_array(system.final * 1.0), depth, certain)
    if backward_from == "uniform":
        return StepMatrices(_explored((system.counts.T > 0).astype(float), depth, certain), forward)
    # A case in a state without known successor may have been there before, if it published nothing.
    stayed = np.where(system.has_successor | certain, 0.0, 1.0 / (depth + 1))
    joint = diags_array(system.visits) @ (forward + diags_array(stayed))
    # Nothing precedes ▶, although an uncertain release may leave a case there.
    return StepMatrices(_normalized(diags_array(system.has_predecessor * 1.0) @ joint.T), forward)


def loss_matrix(
    rows: csr_array, smoothing: float = 0.0
) -> tuple[TransitionMatrix, np.ndarray] | None:
    """A matrix (n, n) with the privacy loss function of the known rows, and the state (n,) whose
    row each of its is.

    None if fewer than two rows are known. Empty rows are unknown; each is replaced by the known row
    with the fewest entries, since a copy of a row adds nothing to L, a maximum over pairs of rows.
    `smoothing` >= 0 is the s of Eq. (28) of [1], added to every probability of the known rows.
    """
    stored = np.diff(rows.indptr)
    known, smoothing = np.flatnonzero(stored > 0), check_smoothing(smoothing)
    if known.size < 2:
        return None
    source = np.where(stored > 0, np.arange(stored.size), known[np.argmin(stored[known])])
    complete = rows[source]
    raised = csr_array(
        (complete.data + smoothing, complete.indices, complete.indptr), complete.shape
    )
    return TransitionMatrix(raised, background=smoothing, normalize=True), source


def _explored(one_event, depth: int, certain: bool) -> csr_array:
    """Probabilities of `depth` steps if `certain`, else of 0 to `depth`, equally likely; unknown
    rows are empty."""
    one_step = _normalized(one_event)
    moves = [one_step]
    for _ in range(depth - 1):
        moves.append(moves[-1] @ one_step)
    if certain:
        return _normalized(moves[-1])
    known = diags_array((np.diff(one_step.indptr) > 0) * 1.0).tocsr()
    return _normalized(sum(map(_normalized, moves), known))  # one term per feasible number of steps


def _normalized(rows) -> csr_array:
    """Rows divided by their sums; those without entries stay empty."""
    rows = csr_array(rows, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    rows.data /= np.repeat(rows.sum(axis=1), np.diff(rows.indptr))
    return rows
