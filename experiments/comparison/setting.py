"""The common ground of the comparison: who is where, what the adversary knows of it, and what is released."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.dphmm.policy_graph import PolicyGraph
from tplrepro.leakage.loss_function import PrivacyLossFunction
from tplrepro.leakage.temporal import temporal_privacy_leakage
from tplrepro.markov.filtering import messages
from tplrepro.markov.transition import TransitionMatrix
from tplrepro.validation import FrozenArrays, check_horizon, frozen

__all__ = ["Adversary", "Setting", "SimulatedRelease", "setting_from_sequences"]


@dataclass(frozen=True, eq=False)
class Adversary:
    """She knows the chain by which the target moves, Pr(l^t | l^{t-1}), the mechanism, and all data of all other users.

    She sees all T releases and wants to know in which of n cells the target was at one time.
    """

    transitions: TransitionMatrix

    @cached_property
    def initial(self) -> np.ndarray:
        """Distribution of the target at every time before anything is released, (n,): the stationary one."""
        return frozen(self.transitions.stationary())

    @cached_property
    def forward(self) -> PrivacyLossFunction:
        return PrivacyLossFunction(self.transitions)

    @cached_property
    def backward(self) -> PrivacyLossFunction:
        """Loss function of Pr(l^{t-1} | l^t); homogeneous, because the chain is stationary."""
        return PrivacyLossFunction(self.reversed)

    @cached_property
    def reversed(self) -> TransitionMatrix:
        """Pr(l^{t-1} | l^t)."""
        return self.transitions.reverse(self.initial)

    def bound(self, epsilons: ArrayLike) -> float:
        """The largest TPL of releases whose one-time losses are at most `epsilons` (T,); nats."""
        return float(temporal_privacy_leakage(epsilons, self.backward, self.forward).tpl.max())

    def told(self, log_likelihoods: ArrayLike, staying: float = 0.0) -> np.ndarray:
        """log Pr(all outputs | l_t = k), (..., T, n), up to a summand of each time: `output_log_likelihoods`.

        Here the chain is stationary and all cells are possible, so that messages from both sides do. `staying` is added
        to the log-likelihood of each step into the same cell, as noise that is correlated does.
        """
        told = np.asarray(log_likelihoods, dtype=float)
        weights = np.exp(staying * np.eye(self.initial.size) - max(staying, 0.0))
        before, after = (
            messages(side, [chain.toarray() * weights] * (told.shape[-2] - 1))
            for side, chain in ((told, self.reversed), (told[..., ::-1, :], self.transitions))
        )
        return before + told + after[..., ::-1, :]

    def posteriors(self, told: np.ndarray) -> np.ndarray:
        """Pr(l_t = k | all outputs), (..., T, n), from `told`; every cell is possible before anything is released."""
        weights = self.initial * np.exp(told - told.max(axis=-1, keepdims=True))
        return weights / weights.sum(axis=-1, keepdims=True)


@dataclass(frozen=True, eq=False)
class Setting(FrozenArrays):
    """True locations, and the adversary, whose chain leaves none of the n cells for ever.

    `paths` (N, T) is the cell 0..n-1 of each user at each time; cells have their centres at `positions` (n, 2), and
    `near` (m, 2) are the pairs of neighbours.
    """

    paths: np.ndarray
    adversary: Adversary
    positions: np.ndarray
    near: np.ndarray

    def __post_init__(self):
        super().__post_init__()
        n = self.adversary.transitions.n_states
        if self.paths.ndim != 2 or not self.paths.size or self.paths.min() < 0 or self.paths.max() >= n:
            raise ValueError(
                f"paths must be (N, T) cells 0..{n - 1}, found {self.paths.shape}; use setting_from_sequences"
            )
        if self.positions.shape != (n, 2):
            raise ValueError(f"positions must have shape ({n}, 2), found {self.positions.shape}; give one row a cell")
        if not (self.adversary.initial > 0).all():
            raise ValueError(
                f"every cell must stay possible for ever, found cell {np.argmin(self.adversary.initial)} of stationary "
                "probability 0; estimate the chain with smoothing > 0"
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
        return frozen(np.eye(self.n_cells)[self.paths])

    @cached_property
    def counts(self) -> np.ndarray:
        """The task: how many users are in each cell at each time, (T, n)."""
        return frozen(self.present.sum(axis=0))

    @cached_property
    def expected_counts(self) -> np.ndarray:
        """What the chain says without any release, (n,): N times its stationary distribution."""
        return frozen(self.n_users * self.adversary.initial)

    def sample(self, n_users: int, rng: np.random.Generator) -> Self:
        """The same with `n_users` of the users, drawn without replacement; with it where there are too few."""
        size = check_horizon(n_users, "n_users")
        chosen = rng.choice(self.n_users, size, replace=size > self.n_users)
        return replace(self, paths=self.paths[chosen])

    def __repr__(self) -> str:
        return f"Setting({self.n_users} users, {self.horizon} times, {self.n_cells} cells)"


@dataclass(frozen=True, eq=False)
class SimulatedRelease(FrozenArrays):
    """T releases, as the adversary and the reader of the counts see them.

    `log_likelihoods` (m, T, n) is, for each of m targets, log Pr(output at t | the target is in cell k, earlier
    outputs), up to a constant of each time. `counts` (T, n) are as released, without any model; None for mechanisms
    that give no such counts. `variances` (T,) are those of the noise of each count of a trusted server, infinite where
    nothing was published; None if users perturb their own data. The noise of one count at consecutive times has this
    `correlation`; where it is not 0, variances are equal, and each step into the same cell is likelier by `staying`.
    """

    log_likelihoods: np.ndarray
    counts: np.ndarray | None = None
    variances: np.ndarray | None = None
    correlation: float = 0.0

    @property
    def staying(self) -> float:
        """What is to be added to the log-likelihood of a step into the same cell: see `Adversary.told`."""
        if self.correlation == 0.0 or self.variances is None:
            return 0.0
        return float(self.correlation / (1.0 - self.correlation**2) / self.variances[0])


def setting_from_sequences(
    sequences: Iterable[ArrayLike], positions: ArrayLike, horizon: int, smoothing: float, radius: float
) -> Setting:
    """Estimate the chain from sequences of cells, and cut them into users of T times each.

    Each stretch of T = `horizon` consecutive states counts as a user of its own, all present together. Cells at most
    `radius` apart are neighbours. ValueError if no sequence has T states.

    >>> walks = [np.array([0, 1, 0, 0, 1, 1, 0]), np.array([1])]
    >>> setting = setting_from_sequences(walks, [[0.5, 0.5], [1.5, 0.5]], horizon=3, smoothing=1.0, radius=1.0)
    >>> setting, setting.paths.tolist(), setting.counts.tolist(), setting.near.tolist()
    (Setting(2 users, 3 times, 2 cells), [[0, 1, 0], [0, 1, 1]], [[2.0, 0.0], [0.0, 2.0], [1.0, 1.0]], [[0, 1]])
    """
    places = np.asarray(positions, dtype=float)
    length = check_horizon(horizon)
    transitions = TransitionMatrix.from_sequences(sequences, len(places), smoothing, sparse=False)
    pieces = [s[: s.size // length * length].reshape(-1, length) for s in map(np.asarray, sequences)]
    if not any(map(len, pieces)):
        raise ValueError(f"some sequence must have {length} states, found none so long; choose a smaller horizon")
    return Setting(
        np.concatenate(pieces), Adversary(transitions), places, PolicyGraph.utility(places, radius).edge_array
    )
