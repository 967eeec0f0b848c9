"""Transition systems: what an adversary knows about how a trace goes on ([4], "we rely on transition systems").

A complete trace a_1 ... a_n runs through the positions ▶, a_1, ..., a_n, ■. The state at a position is the part of the
trace up to it (direction "prefix") or from it on ("suffix"), cut to the items nearest to it, and seen as a sequence, as
a multiset or as a set. A transition leads from the state at one position to the state at the next.

The forward probability of a transition is the share of the cases leaving its first state that take it; the backward one
is, by Bayes' rule, the share of the cases entering its second state that come by it.

A state at which incomplete traces end has no known successor, and ▶ no predecessor. In the matrices these states stay
where they are, as ■ does after the end; which ones they are is said by `has_successor` and `has_predecessor`, and the
leakages leave their rows out, as [4] does ("bounded to the traces in the state space").
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import pandas as pd
import scipy.sparse

from tplrepro.eventlog.log import as_traces
from tplrepro.eventlog.trace_states import TraceStates
from tplrepro.markov.transition import TransitionMatrix
from tplrepro.validation import check_choice, check_horizon

__all__ = ["TransitionSystem"]


@dataclass(frozen=True, eq=False)
class TransitionSystem:
    """The states of a log's traces and how often each transition was taken; sparse throughout. See `from_log`.

    Attributes
    ----------
    counts : csr_array (n, n), the cases that take each transition (a case that takes it twice counts once)
    visits : ndarray (n,)
        The cases that leave each state, or are in it at the end of the log: the distribution of the state before that
        Bayes' rule needs.
    final : ndarray of bool (n,), whether a state is one at ■
    activities : list of str, ▶ first and ■ last
    direction, abstraction, state_window : what a state is; `state_window` is the `window` of `from_log`
    """

    counts: scipy.sparse.csr_array
    visits: np.ndarray
    final: np.ndarray
    activities: list[str]
    direction: str
    abstraction: str
    state_window: int | None
    _numbering: TraceStates

    @classmethod
    def from_log(
        cls, log: pd.DataFrame, window: int | None = None, direction: str = "prefix", abstraction: str = "sequence"
    ) -> TransitionSystem:
        """Discover the transition system of a log; ValueError if it is none or an option is unknown.

        Parameters
        ----------
        log : DataFrame with columns case:concept:name, concept:name and, to order the events, time:timestamp
            With a column case:complete, traces where it is False have no ■; otherwise all traces are complete.
        window : int >= 1, optional
            The items of a trace that make a state, the one at its position and ▶ and ■ included; by default all.
        direction : {"prefix", "suffix"}
        abstraction : {"sequence", "multiset", "set"}

        Examples
        --------
        >>> log = pd.DataFrame({"case:concept:name": list("1122"), "concept:name": list("abac")})
        >>> system = TransitionSystem.from_log(log, window=1)
        >>> system.states
        [('▶',), ('a',), ('b',), ('■',), ('c',)]
        >>> system.forward.toarray()[1].tolist(), system.backward.toarray()[3].tolist()
        ([0.0, 0.0, 0.5, 0.0, 0.5], [0.0, 0.0, 0.5, 0.0, 0.5])
        """
        traces = as_traces(log)
        paths = traces.paths(traces.lengths + traces.complete)
        return cls.from_paths(paths, traces.activities, window, direction, abstraction)

    @classmethod
    def from_paths(
        cls,
        paths: Counter[tuple[int, ...]],
        activities: list[str],
        state_window: int | None = None,
        direction: str = "prefix",
        abstraction: str = "sequence",
    ) -> TransitionSystem:
        """The same from distinct paths and their numbers of cases.

        A path holds positions in `activities`; it begins with 0 (▶), and a complete one ends with the last (■).
        """
        if state_window is not None:
            state_window = check_horizon(state_window, "window")
        check_choice(direction, "direction", ("prefix", "suffix"))
        check_choice(abstraction, "abstraction", ("sequence", "multiset", "set"))
        numbering = TraceStates(abstraction, state_window)
        counts: dict[tuple[int, int], int] = {}
        ended: dict[int, int] = {}
        final = set()
        for path, cases in paths.items():
            states = numbering.along(path) if direction == "prefix" else numbering.along(path[::-1])[::-1]
            ended[states[-1]] = ended.get(states[-1], 0) + cases
            if path[-1] == len(activities) - 1:
                final.add(states[-1])
            for transition in set(pairwise(states)):
                counts[transition] = counts.get(transition, 0) + cases
        n = numbering.n_states
        ends = np.array(list(counts), dtype=np.int64).reshape(-1, 2)
        values = np.fromiter(counts.values(), dtype=float, count=len(counts))
        matrix = scipy.sparse.coo_array((values, (ends[:, 0], ends[:, 1])), shape=(n, n)).tocsr()
        visits = matrix.sum(axis=1) + np.array([ended.get(state, 0) for state in range(n)], dtype=float)
        is_final = np.isin(np.arange(n), list(final))
        return cls(matrix, visits, is_final, activities, direction, abstraction, state_window, numbering)

    def __repr__(self) -> str:
        return (
            f"TransitionSystem({self.n_states} states, {self.counts.nnz} transitions, {self.direction}, "
            f"{self.abstraction}, window {self.state_window})"
        )

    @property
    def n_states(self) -> int:
        return self.counts.shape[0]

    def label(self, state: int) -> tuple[str, ...]:
        """The items that make a state; those of a multiset or set are sorted, ▶ first and ■ last."""
        items = self._numbering.items(state)
        if self.direction == "suffix" and self.abstraction == "sequence":
            items = items[::-1]
        return tuple(self.activities[k] for k in items)

    @cached_property
    def states(self) -> list[tuple[str, ...]]:
        """The labels of all states, in the order of the matrices."""
        return [self.label(k) for k in range(self.n_states)]

    @cached_property
    def has_successor(self) -> np.ndarray:
        """Whether a step after each state is known: a case was seen to leave it, or it is final; (n,) of bool."""
        return (np.diff(self.counts.indptr) > 0) | self.final

    @cached_property
    def has_predecessor(self) -> np.ndarray:
        """Whether a case was seen to enter each state; (n,) of bool."""
        return np.bincount(self.counts.indices, minlength=self.n_states) > 0

    @cached_property
    def forward(self) -> TransitionMatrix:
        """Pr(next state | state), one event ahead, by case counts; final states and those without successor stay."""
        return self._as_matrix(self.counts)

    @cached_property
    def backward(self) -> TransitionMatrix:
        """Pr(state before | state), one event back, by Bayes' rule; states without predecessor stay."""
        return self._as_matrix(self.counts.T.tocsr())

    def _as_matrix(self, counts: scipy.sparse.csr_array) -> TransitionMatrix:
        empty = np.diff(counts.indptr) == 0
        return TransitionMatrix(counts + scipy.sparse.diags_array(empty * 1.0), states=self.states, normalize=True)
