"""Transition systems: what an adversary knows about how a trace continues ([4], "we rely on transition systems").

A complete trace a_1 ... a_n has the positions ▶, a_1, ..., a_n, ■. The state at a position is the part of the
trace up to it (direction "prefix") or from it on ("suffix"), limited to the nearest items, as a sequence, a
multiset or a set. A transition leads from the state at one position to the state at the next.

Transitions are counted by "cases", once for each case that takes them, or by "occurrences", each time they
are taken. The forward probability of a transition is its share of the counts of all transitions that leave
its first state; the backward probability, by Bayes' rule, is its share of the counts of all that enter its
second state. For the single trace aaaaaaaaab with one item per state, a is followed by a with probability 1/2
by cases (one case continues with a, one with b) and 8/9 by occurrences.

A state at which incomplete traces end has no known successor, and ▶ has no predecessor. In the matrices these
states have a transition to themselves, like ■; `has_successor` and `has_predecessor` mark them, and the
leakages omit their rows, as in [4] ("bounded to the traces in the state space").
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Self

import numpy as np
import pandas as pd
import scipy.sparse

from tplrepro.eventlog.log import TIMESTAMP, as_traces
from tplrepro.markov.transition import TransitionMatrix
from tplrepro.validation import FrozenArrays, check_choice, check_horizon, frozen

ABSTRACTIONS: dict[str, Callable] = {"sequence": tuple, "multiset": sorted, "set": lambda items: sorted(set(items))}
COUNTED: dict[str, Callable] = {"cases": set, "occurrences": iter}  # the transitions of a trace that count


@dataclass(frozen=True, eq=False)
class TransitionSystem(FrozenArrays):
    """The states of a log's traces and the counts of their transitions; sparse throughout. See `from_log`.

    `counts` (n, n) are the counts of the transitions, by cases or by occurrences. `visits` (n,) are the
    counts that leave each state plus the cases that end in it: the prior of Bayes' rule. `final` (n,) marks
    the states at ■; `activities` begins with ▶ and ends with ■.
    """

    counts: scipy.sparse.csr_array
    visits: np.ndarray
    final: np.ndarray
    activities: list[str]
    direction: str
    _numbering: "_TraceStates"

    @classmethod
    def from_log(
        cls,
        log: pd.DataFrame,
        window: int | None = None,
        direction: str = "prefix",
        abstraction: str = "sequence",
        counting: str = "cases",
    ) -> Self:
        """Discover the transition system of a log; ValueError for an invalid log or option.

        The log has columns case:concept:name, concept:name and, to order the events, time:timestamp; with a
        column case:complete, traces where it is False have no ■. A state consists of `window` >= 1 items of a
        trace including ▶ and ■, by default of all; `direction` is "prefix" or "suffix", `abstraction`
        "sequence", "multiset" or "set"; `counting` is by "cases" or "occurrences".

        >>> log = pd.DataFrame({"case:concept:name": list("1122"), "concept:name": list("abac")})
        >>> system = TransitionSystem.from_log(log, window=1)
        >>> system.states
        [('▶',), ('a',), ('b',), ('■',), ('c',)]
        >>> system.forward.toarray()[1].tolist(), system.backward.toarray()[3].tolist()
        ([0.0, 0.0, 0.5, 0.0, 0.5], [0.0, 0.0, 0.5, 0.0, 0.5])
        >>> aaab = pd.DataFrame({"case:concept:name": list("1111"), "concept:name": list("aaab")})
        >>> for counting in "cases", "occurrences":  # from a: a or b
        ...     TransitionSystem.from_log(aaab, window=1, counting=counting).forward.toarray()[1].round(3).tolist()
        [0.0, 0.5, 0.5, 0.0]
        [0.0, 0.667, 0.333, 0.0]
        """
        traces = as_traces(log, timed=TIMESTAMP in getattr(log, "columns", ()))
        paths = traces.paths(traces.lengths + traces.complete)
        return cls.from_paths(paths, traces.activities, window, direction, abstraction, counting)

    @classmethod
    def from_paths(
        cls,
        paths: Counter[tuple[int, ...]],
        activities: list[str],
        state_window: int | None = None,
        direction: str = "prefix",
        abstraction: str = "sequence",
        counting: str = "cases",
    ) -> Self:
        """Discover the transition system of distinct paths and their numbers of cases.

        A path holds positions in `activities`; it begins with 0 (▶), and a complete one ends with the last
        (■).
        """
        check_choice(direction, "direction", ("prefix", "suffix"))
        check_choice(abstraction, "abstraction", ABSTRACTIONS)
        check_choice(counting, "counting", COUNTED)
        numbering = _TraceStates(abstraction, None if state_window is None else check_horizon(state_window, "window"))
        counts: Counter[tuple[int, int]] = Counter()
        ended: Counter[int] = Counter()
        final = set()
        for path, cases in paths.items():
            states = numbering.along(path) if direction == "prefix" else numbering.along(path[::-1])[::-1]
            ended[states[-1]] += cases
            if path[-1] == len(activities) - 1:
                final.add(states[-1])
            for transition in COUNTED[counting](pairwise(states)):
                counts[transition] += cases
        n = len(numbering.numbers)
        values = np.array(list(counts.values()), dtype=float)
        ends = np.array(list(counts), dtype=np.int64).reshape(-1, 2)
        matrix = scipy.sparse.coo_array((values, tuple(ends.T)), shape=(n, n)).tocsr()
        visits = matrix.sum(axis=1) + np.array([ended[state] for state in range(n)])
        return cls(matrix, visits, np.isin(np.arange(n), list(final)), activities, direction, numbering)

    def __repr__(self) -> str:
        kind = f"{self.direction}, {self._numbering.abstraction}, window {self._numbering.window}"
        return f"TransitionSystem({self.n_states} states, {self.counts.nnz} transitions, {kind})"

    @property
    def n_states(self) -> int:
        return self.counts.shape[0]

    def label(self, state: int) -> tuple[str, ...]:
        """The items of a state; those of a multiset or set are sorted, ▶ first and ■ last."""
        items = self._numbering.items(self._numbering.example[state])
        if self.direction == "suffix" and self._numbering.abstraction == "sequence":
            items = items[::-1]
        return tuple(self.activities[k] for k in items)

    @cached_property
    def states(self) -> list[tuple[str, ...]]:
        """The labels of all states, in the order of the matrices."""
        return [self.label(k) for k in range(self.n_states)]

    @cached_property
    def has_successor(self) -> np.ndarray:
        """Whether some case left each state, or the state is final; (n,) of bool."""
        return frozen((np.diff(self.counts.indptr) > 0) | self.final)

    @cached_property
    def has_predecessor(self) -> np.ndarray:
        """Whether some case entered each state; (n,) of bool."""
        return frozen(np.bincount(self.counts.indices, minlength=self.n_states) > 0)

    @cached_property
    def forward(self) -> TransitionMatrix:
        """Pr(next state | state), one event ahead; final states and those without successor keep the state."""
        return self._as_matrix(self.counts)

    @cached_property
    def backward(self) -> TransitionMatrix:
        """Pr(previous state | state), one event back, by Bayes' rule; without predecessor the state is kept."""
        return self._as_matrix(self.counts.T.tocsr())

    def _as_matrix(self, counts: scipy.sparse.csr_array) -> TransitionMatrix:
        stay = scipy.sparse.diags_array((np.diff(counts.indptr) == 0) * 1.0)
        return TransitionMatrix(counts + stay, states=self.states, normalize=True)


class _TraceStates:
    """Numbers the states along paths in the order of their first occurrence.

    A state is the sequence, multiset or set of the last items (all, or `window`) of a path up to a position.
    A sequence and the next item determine the next sequence, and only these edges are stored: storing the
    items of each sequence would take memory that grows with the square of a path's length.
    """

    def __init__(self, abstraction: str, window: int | None):
        self.abstraction = abstraction
        self.window = window
        self.following: dict[tuple[int, int], int] = {}  # a sequence and the next item -> the next sequence
        self.edges: list[tuple[int, int]] = []  # by sequence, the first edge that led to it
        self.windowed: dict[tuple[int, ...], int] = {}  # sequences by their last items, if `window` cuts them
        self.state_of: list[int] = []  # by sequence
        self.numbers: dict[object, int] = {}  # states by their items, or by the number of a sequence that is one
        self.example: list[int] = []  # by state, its first sequence

    def along(self, path: tuple[int, ...]) -> list[int]:
        """The states at all positions of a path."""
        following, state_of, sequence, states = self.following, self.state_of, -1, []
        for item in path:
            edge = (sequence, item)
            sequence = following.get(edge, -1)
            if sequence < 0:
                sequence = following[edge] = self._reached(edge)
            states.append(state_of[sequence])
        return states

    def _reached(self, edge: tuple[int, int]) -> int:
        """The sequence at the end of a new edge."""
        sequence = len(self.edges)
        self.edges.append(edge)
        if self.window is not None:
            known = self.windowed.setdefault(self._last_items(sequence), sequence)
            if known != sequence:
                self.edges.pop()
                return known
        key = sequence if self.abstraction == "sequence" else self.items(sequence)
        self.state_of.append(self.numbers.setdefault(key, len(self.numbers)))
        if len(self.numbers) > len(self.example):
            self.example.append(sequence)
        return sequence

    def _last_items(self, sequence: int) -> tuple[int, ...]:
        found: list[int] = []
        while sequence >= 0 and len(found) != self.window:
            sequence, item = self.edges[sequence]
            found.append(item)
        return tuple(reversed(found))

    def items(self, sequence: int) -> tuple[int, ...]:
        """The items of the state of a sequence; those of a multiset or set are sorted."""
        return tuple(ABSTRACTIONS[self.abstraction](self._last_items(sequence)))
