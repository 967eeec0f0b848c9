"""The common ground of the comparison: who is where at each of T times, and what an adversary knows about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.comparison.adversary import Adversary
from tplrepro.dphmm.policy_graph import PolicyGraph
from tplrepro.markov.transition import TransitionMatrix
from tplrepro.validation import check_horizon

__all__ = ["Setting", "setting_from_sequences"]


@dataclass(frozen=True, eq=False)
class Setting:
    """True locations, and the adversary.

    Attributes
    ----------
    paths : int array (N, T), the cell 0..n-1 of each user at each time
    adversary : Adversary over n cells, none of which its chain leaves for ever
    positions : ndarray (n, 2), centres of the cells
    near : int array (m, 2), pairs of neighbouring cells
    """

    paths: np.ndarray
    adversary: Adversary
    positions: np.ndarray
    near: np.ndarray

    def __post_init__(self):
        n = self.adversary.transitions.n_states
        if self.paths.ndim != 2 or not self.paths.size or self.paths.min() < 0 or self.paths.max() >= n:
            raise ValueError(
                f"paths must hold cells 0..{n - 1} in shape (N, T), found shape {self.paths.shape}; cut sequences "
                "with setting_from_sequences"
            )
        if self.positions.shape != (n, 2):
            raise ValueError(f"positions must have shape ({n}, 2), found {self.positions.shape}; give one row a cell")
        if not (self.adversary.initial > 0).all():
            cell = int(np.argmin(self.adversary.initial))
            raise ValueError(
                f"every cell must stay possible for ever, found cell {cell} of stationary probability "
                f"{self.adversary.initial[cell]:g}; estimate the chain with smoothing > 0"
            )

    @property
    def n_users(self) -> int:
        return self.paths.shape[0]

    @property
    def horizon(self) -> int:
        return self.paths.shape[1]

    @property
    def n_cells(self) -> int:
        return self.positions.shape[0]

    @cached_property
    def present(self) -> np.ndarray:
        """Whether each user is in each cell, (N, T, n), as 0.0 and 1.0."""
        return (self.paths[..., None] == np.arange(self.n_cells)).astype(float)

    @cached_property
    def counts(self) -> np.ndarray:
        """The task: how many users are in each cell at each time, (T, n)."""
        return self.present.sum(axis=0)

    @cached_property
    def expected_counts(self) -> np.ndarray:
        """What the chain says without any release, (n,): N times its stationary distribution."""
        return self.n_users * self.adversary.initial

    def sample(self, n_users: int, rng: np.random.Generator) -> Setting:
        """The same with `n_users` of the users, drawn without replacement; with it where there are too few."""
        size = check_horizon(n_users, "n_users")
        chosen = rng.choice(self.n_users, size, replace=size > self.n_users)
        return Setting(self.paths[chosen], self.adversary, self.positions, self.near)

    def __repr__(self) -> str:
        return f"Setting({self.n_users} users, {self.horizon} times, {self.n_cells} cells)"


def setting_from_sequences(
    sequences: Iterable[ArrayLike], positions: ArrayLike, horizon: int, smoothing: float, radius: float
) -> Setting:
    """Estimate the chain from sequences of cells, and cut them into users of T times each.

    Each stretch of T = `horizon` consecutive states counts as a user of its own, and all of them as present together: a
    large crowd, whose times of day are mixed. The states are the cells 0..n-1 with centres at `positions` (n, 2); those
    at most `radius` apart are neighbours. ValueError if no sequence has T states.

    >>> walk = [np.array([0, 1, 0, 0, 1, 1, 0])]
    >>> setting = setting_from_sequences(walk, [[0.5, 0.5], [1.5, 0.5]], horizon=3, smoothing=1.0, radius=1.0)
    >>> setting, setting.counts.tolist()
    (Setting(2 users, 3 times, 2 cells), [[2.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
    """
    places = np.asarray(positions, dtype=float)
    length = check_horizon(horizon)
    transitions = TransitionMatrix.from_sequences(sequences, len(places), smoothing, sparse=False)
    pieces = [s[: s.size // length * length].reshape(-1, length) for s in map(np.asarray, sequences)]
    paths = np.concatenate(pieces) if pieces else np.empty((0, length), dtype=int)
    if not len(paths):
        raise ValueError(f"some sequence must have {length} states, found none so long; choose a smaller horizon")
    return Setting(paths, Adversary(transitions), places, PolicyGraph.utility(places, radius).edge_array)
