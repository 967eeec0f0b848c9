"""Numbering the states of a transition system along paths: the part of a trace that an adversary looks at.

A state is the sequence, multiset or set of the last items (all, or `window` of them) of a path up to a position. A
sequence and the next item determine the next sequence, and only these edges are kept: the items of each whole sequence
would take memory that grows with the square of a path's length.
"""

from __future__ import annotations

__all__ = ["TraceStates"]


class TraceStates:
    """Numbers states in the order in which they are first met; `along` a path, `items` is what a number stands for."""

    def __init__(self, abstraction: str, window: int | None):
        self.abstraction = abstraction
        self.window = window
        self.following: dict[tuple[int, int], int] = {}  # a sequence and the next item -> the next sequence
        self.edges: list[tuple[int, int]] = []  # by sequence, the first edge that led to it
        self.windowed: dict[tuple[int, ...], int] = {}  # sequences by their last items, if `window` cuts them
        self.state_of: list[int] = []  # by sequence
        self.example: list[int] = []  # by state, its first sequence
        self.numbers: dict[tuple[int, ...], int] = {}  # states by their items, if these are not sequences

    @property
    def n_states(self) -> int:
        return len(self.example)

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

    def items(self, state: int) -> tuple[int, ...]:
        """The items of a state; those of a multiset or set are sorted."""
        return self._abstract(self.example[state])

    def _reached(self, edge: tuple[int, int]) -> int:
        """The sequence at the end of a new edge."""
        sequence = len(self.edges)
        self.edges.append(edge)
        if self.window is not None:
            known = self.windowed.setdefault(self._last_items(sequence), sequence)
            if known != sequence:
                self.edges.pop()
                return known
        state = len(self.example)
        if self.abstraction != "sequence":
            state = self.numbers.setdefault(self._abstract(sequence), state)
        if state == len(self.example):
            self.example.append(sequence)
        self.state_of.append(state)
        return sequence

    def _last_items(self, sequence: int) -> tuple[int, ...]:
        found: list[int] = []
        while sequence >= 0 and len(found) != self.window:
            sequence, item = self.edges[sequence]
            found.append(item)
        return tuple(reversed(found))

    def _abstract(self, sequence: int) -> tuple[int, ...]:
        items = self._last_items(sequence)
        if self.abstraction == "sequence":
            return items
        return tuple(sorted(items if self.abstraction == "multiset" else set(items)))
