"""Transition systems: what an adversary knows about how a trace goes on ([4], "we rely on transition systems").

A complete trace a_1 ... a_n runs through the positions ▶, a_1, ..., a_n, ■. The state at a position is the part of the
trace up to it (direction "prefix") or from it on ("suffix"), cut to the `window` items nearest to it, and seen as a
sequence, as a multiset or as a set. A transition leads from the state at one position to the state at the next.

The forward probability of a transition is the share of the cases leaving its first state that take it; the backward one
is, by Bayes' rule, the share of the cases entering its second state that come by it. The implementation published with
[4] instead takes all predecessors of a state as equally likely: `backward_matrix("uniform")`.

A state at which incomplete traces end has no known successor, and ▶ no predecessor. In the matrices these states stay
where they are, as ■ does after the end; which ones they are is said by `has_successor` and `has_predecessor`, and the
leakages leave their rows out, as [4] does ("bounded to the traces in the state space").

References
----------
[4] M. Rafiei, G. Elkoumy, W. M. P. van der Aalst: Quantifying Temporal Privacy Leakage in Continuous Event Data
    Publishing. 2022.
"""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from itertools import pairwise

import numpy as np
import pandas as pd
import scipy.sparse

from tplrepro.eventlog.log import as_traces
from tplrepro.eventlog.states import WholeTraces, WindowedTraces
from tplrepro.markov.transition import TransitionMatrix
from tplrepro.validation import check_horizon

__all__ = ["ABSTRACTIONS", "DIRECTIONS", "TransitionSystem"]

DIRECTIONS = ("prefix", "suffix")
ABSTRACTIONS = ("sequence", "multiset", "set")


class TransitionSystem:
    """The states of a log's traces and how often each transition was taken; sparse throughout. See `from_log`.

    Attributes
    ----------
    counts : scipy.sparse.csr_array (n, n)
        The number of cases that take each transition (a case that takes it twice counts once).
    initial, final : ndarray of bool (n,)
        Whether a state is one at ▶, and one at ■.
    visits : ndarray (n,)
        The number of cases that leave each state, or are in it at the end of the log: the distribution of the state
        before that Bayes' rule needs.
    direction, abstraction, window : as given to `from_log`
    """

    def __init__(self, counts, ended, initial, final, labels, activities, direction, abstraction, window):
        self.counts = counts
        self.initial = initial
        self.final = final
        self.activities = activities
        self.direction = direction
        self.abstraction = abstraction
        self.window = window
        self._labels = labels
        self.visits = counts.sum(axis=1) + ended

    @classmethod
    def from_log(
        cls,
        log: pd.DataFrame,
        window: int | None = None,
        direction: str = "prefix",
        abstraction: str = "sequence",
        incomplete: str = "keep",
    ) -> TransitionSystem:
        """Discover the transition system of a log.

        Parameters
        ----------
        log : DataFrame with columns case:concept:name, concept:name and, to order the events, time:timestamp
            With a column case:complete, traces where it is False have no ■; otherwise all traces are complete.
        window : int >= 1, optional
            The number of items of a trace that make a state, the one at its position and ▶ and ■ included; by default
            all of them.
        direction : {"prefix", "suffix"}
        abstraction : {"sequence", "multiset", "set"}
        incomplete : {"keep", "drop"}, what to do with traces that are not complete

        Returns
        -------
        TransitionSystem

        Raises
        ------
        ValueError
            If the log is none (see `check_log`), an option is unknown, or no complete trace is left.

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
        paths = (
            (0, *events, traces.end) if complete else (0, *events)
            for events, complete in zip(traces.events, traces.complete.tolist(), strict=True)
        )
        return cls.from_paths(Counter(paths), traces.activities, window, direction, abstraction, incomplete)

    @classmethod
    def from_paths(
        cls,
        paths: Counter,
        activities: list,
        window=None,
        direction="prefix",
        abstraction="sequence",
        incomplete="keep",
    ) -> TransitionSystem:
        """The same from distinct paths and their numbers of cases.

        Parameters
        ----------
        paths : Counter of tuples of int
            Positions in `activities`; each path begins with 0 (▶) and a complete one ends with the last (■).
        """
        if window is not None:
            window = check_horizon(window, "window")
        _check_choice(direction, "direction", DIRECTIONS)
        _check_choice(abstraction, "abstraction", ABSTRACTIONS)
        _check_choice(incomplete, "incomplete", ("keep", "drop"))
        end = len(activities) - 1
        if incomplete == "drop":
            paths = {path: cases for path, cases in paths.items() if path[-1] == end}
            if not paths:
                raise ValueError(
                    "a transition system of complete traces needs at least one, found none; pass incomplete='keep'"
                )
        numbering = WholeTraces(abstraction) if window is None else WindowedTraces(abstraction, window)
        counts: dict[tuple[int, int], int] = {}
        ended: dict[int, int] = {}
        initial, final = set(), set()
        for path, cases in paths.items():
            states = numbering.along(path) if direction == "prefix" else numbering.along(path[::-1])[::-1]
            initial.add(states[0])
            ended[states[-1]] = ended.get(states[-1], 0) + cases
            if path[-1] == end:
                final.add(states[-1])
            for transition in set(pairwise(states)):
                counts[transition] = counts.get(transition, 0) + cases
        n = numbering.n_states
        ends = np.array(list(counts), dtype=np.int64).reshape(-1, 2)
        values = np.fromiter(counts.values(), dtype=float, count=len(counts))
        matrix = scipy.sparse.coo_array((values, (ends[:, 0], ends[:, 1])), shape=(n, n)).tocsr()
        at = np.arange(n)
        return cls(
            matrix,
            np.array([ended.get(state, 0) for state in range(n)], dtype=float),
            np.isin(at, list(initial)),
            np.isin(at, list(final)),
            numbering,
            activities,
            direction,
            abstraction,
            window,
        )

    def __repr__(self) -> str:
        return (
            f"TransitionSystem({self.n_states} states, {self.counts.nnz} transitions, {self.direction}, "
            f"{self.abstraction}, window {self.window})"
        )

    @property
    def n_states(self) -> int:
        return self.counts.shape[0]

    def label(self, state: int) -> tuple[str, ...]:
        """The items that make a state; those of a multiset or set are sorted, ▶ first and ■ last."""
        items = self._labels.items(state)
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
        return self._matrix(self.counts)

    @cached_property
    def backward(self) -> TransitionMatrix:
        """Pr(state before | state), one event back, by Bayes' rule; states without predecessor stay."""
        return self.backward_matrix("bayes")

    def backward_matrix(self, method: str = "bayes") -> TransitionMatrix:
        """Pr(state before | state) by "bayes", from case counts, or "uniform" over the predecessors (as published)."""
        _check_choice(method, "method", ("bayes", "uniform"))
        counts = self.counts.T.tocsr()
        if method == "uniform":
            counts = scipy.sparse.csr_array((np.ones_like(counts.data), counts.indices, counts.indptr), counts.shape)
        return self._matrix(counts)

    def _matrix(self, counts) -> TransitionMatrix:
        empty = np.flatnonzero(np.diff(counts.indptr) == 0)
        stay = scipy.sparse.coo_array((np.ones(empty.size), (empty, empty)), shape=counts.shape)
        return TransitionMatrix((counts + stay).tocsr(), states=self.states, normalize=True)


def _check_choice(value, name: str, choices: tuple) -> None:
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, found {value!r}; choose one of them")
