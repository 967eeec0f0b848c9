"""Numbering the states of a transition system along paths: the part of a trace that an adversary looks at.

A state is the sequence, multiset or set of the items of a path up to a position. `along` gives the numbers of the
states at all positions of a path, `items` what a number stands for.
"""

from __future__ import annotations

__all__ = ["WholeTraces", "WindowedTraces"]


class WholeTraces:
    """Numbers states that look at the whole trace: a state and the next item determine the next state.

    As sequences the states form a tree of which only the edges are kept, because the labels of a long trace's states
    would take memory that grows with the square of its length.
    """

    def __init__(self, abstraction: str):
        self.abstraction = abstraction
        self.following: dict[tuple[int, int], int] = {}
        self.parents: list[tuple[int, int]] = []  # of a sequence: the state before, the item
        self.numbers: dict[tuple[int, ...], int] = {}  # of a multiset or set: by its items
        self.keys: list[tuple[int, ...]] = []

    @property
    def n_states(self) -> int:
        return len(self.parents) if self.abstraction == "sequence" else len(self.keys)

    def along(self, path) -> list[int]:
        following, state, states = self.following, -1, []
        for item in path:
            step = (state, item)
            state = following.get(step, -1)
            if state < 0:
                state = following[step] = self._new(*step)
            states.append(state)
        return states

    def _new(self, state: int, item: int) -> int:
        if self.abstraction == "sequence":
            self.parents.append((state, item))
            return len(self.parents) - 1
        items = (*(self.keys[state] if state >= 0 else ()), item)
        key = tuple(sorted(items if self.abstraction == "multiset" else set(items)))
        number = self.numbers.setdefault(key, len(self.keys))
        if number == len(self.keys):
            self.keys.append(key)
        return number

    def items(self, state: int) -> tuple[int, ...]:
        if self.abstraction != "sequence":
            return self.keys[state]
        found = []
        while state >= 0:
            state, item = self.parents[state]
            found.append(item)
        return tuple(reversed(found))


class WindowedTraces:
    """Numbers states that look at the last `window` items."""

    def __init__(self, abstraction: str, window: int):
        self.abstraction = abstraction
        self.window = window
        self.numbers: dict[tuple[int, ...], int] = {}
        self.abstract: dict[tuple[int, ...], int] = {}  # a sequence's state, so that each is sorted once
        self.keys: list[tuple[int, ...]] = []

    @property
    def n_states(self) -> int:
        return len(self.keys)

    def along(self, path) -> list[int]:
        known, window, states = self.abstract, self.window, []
        for position in range(1, len(path) + 1):
            items = path[max(0, position - window) : position]
            state = known.get(items)
            if state is None:
                state = known[items] = self._number(items)
            states.append(state)
        return states

    def _number(self, items) -> int:
        if self.abstraction != "sequence":
            items = tuple(sorted(items if self.abstraction == "multiset" else set(items)))
        number = self.numbers.setdefault(items, len(self.keys))
        if number == len(self.keys):
            self.keys.append(items)
        return number

    def items(self, state: int) -> tuple[int, ...]:
        return self.keys[state]
