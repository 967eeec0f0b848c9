"""What all mechanisms of the comparison share: the true locations, the adversary, and what a
release holds."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.dphmm.policy_graph import PolicyGraph
from tplrepro.leakage.loss_function import PrivacyLossFunction
from tplrepro.leakage.temporal import temporal_privacy_leakage
from tplrepro.markov.filtering import log_likelihoods_before
from tplrepro.markov.sequences import Sequences, as_sequences
from tplrepro.markov.transition import TransitionMatrix
from tplrepro.validation import FrozenArrays, as_numbers, by_state, check_horizon, frozen


@dataclass(frozen=True, eq=False)
class Adversary:
    """An adversary who knows the target's chain Pr(l^t | l^{t-1}), the mechanism, and the data of
    all other users.

    The adversary sees all T releases and wants to know in which of n cells the target was at one
    time.
    """

    transitions: TransitionMatrix

    @cached_property
    def initial(self) -> np.ndarray:
        """Prior of the target's cell at every time, (n,): the stationary distribution."""
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

    def output_log_likelihoods(
        self, log_likelihoods: ArrayLike, staying: float = 0.0
    ) -> np.ndarray:
        """log Pr(all outputs | l_t = k), (..., T, n), up to a constant for each time, by messages
        from both sides.

        `staying` is added to the log-likelihood of each step into the same cell: the effect of
        correlated noise.
        """
        observed = np.asarray(log_likelihoods, dtype=float)
        reversed_observed = observed[..., ::-1, :]
        n_steps = observed.shape[-2] - 1
        weights = np.exp(staying * np.eye(self.initial.size) - max(staying, 0.0))
        before = log_likelihoods_before(observed, [self.reversed.toarray() * weights] * n_steps)
        after = log_likelihoods_before(
            reversed_observed, [self.transitions.toarray() * weights] * n_steps
        )
        return before + observed + after[..., ::-1, :]

    def posteriors(self, log_likelihoods: np.ndarray) -> np.ndarray:
        """Pr(l_t = k | all outputs), (..., T, n), from `output_log_likelihoods`."""
        largest = log_likelihoods.max(axis=-1, keepdims=True)
        weights = self.initial * np.exp(log_likelihoods - largest)
        return weights / weights.sum(axis=-1, keepdims=True)


@dataclass(frozen=True, eq=False)
class Setting(FrozenArrays):
    """True locations, and an adversary under whose chain every one of the n cells stays
    possible."""

    paths: np.ndarray  # (N, T), the cell 0..n-1 of each user at each time
    adversary: Adversary
    positions: np.ndarray  # (n, 2), the centres of the cells
    near: np.ndarray  # (m, 2), the pairs of neighbouring cells

    def __post_init__(self):
        super().__post_init__()
        if not (self.adversary.initial > 0).all():
            impossible = np.argmin(self.adversary.initial)
            raise ValueError(
                f"every cell must stay possible, found cell {impossible} of stationary "
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
        """Number of users in each cell at each time, (T, n): what the mechanisms release."""
        return frozen(self.present.sum(axis=0))

    @cached_property
    def expected_counts(self) -> np.ndarray:
        """Expected counts without any release, (n,): N times the stationary distribution."""
        return frozen(self.n_users * self.adversary.initial)

    def sample(self, n_users: int, *, rng: np.random.Generator) -> Self:
        """A setting of `n_users` users drawn without replacement, or with replacement if there are
        fewer."""
        size = check_horizon(n_users, "n_users")
        chosen = rng.choice(self.n_users, size, replace=size > self.n_users)
        return replace(self, paths=self.paths[chosen])

    def __repr__(self) -> str:
        return f"Setting({self.n_users} users, {self.horizon} times, {self.n_cells} cells)"


@dataclass(frozen=True, eq=False)
class SimulatedRelease(FrozenArrays):
    """T releases, as the adversary and the reader of the counts see them."""

    # (m, T, n), log Pr(output | a target is in cell k, earlier outputs), up to a constant
    log_likelihoods: np.ndarray
    counts: np.ndarray | None = None  # (T, n) as released, if they are
    # (T,), of a trusted server's noise, infinite where nothing was published
    variances: np.ndarray | None = None
    # of the noise of one count at consecutive times; then all variances are equal
    correlation: float = 0.0

    @property
    def staying(self) -> float:
        """Added to the log-likelihood of a step into the same cell: see
        `Adversary.output_log_likelihoods`."""
        if self.correlation == 0.0 or self.variances is None:
            return 0.0
        return float(self.correlation / (1.0 - self.correlation**2) / self.variances[0])


def setting_from_sequences(
    sequences: Any, positions: Any, horizon: int, smoothing: float, radius: float
) -> Setting:
    """Estimate the chain of all users, and cut their sequences into users of T times each.

    `sequences` are those that `as_sequences` takes, with labels that `positions`, (n, 2) or by
    label, has a row for. Each stretch of T = `horizon` consecutive states counts as a separate
    user, all present at once. `smoothing` is added to each count of the chain. Cells at most
    `radius` apart, in the unit of the positions, are neighbours. Raises ValueError if no sequence
    has T states.
    """
    if hasattr(positions, "shape"):
        n_cells = positions.shape[0]
    else:
        n_cells = len(positions)
    coded = as_sequences(sequences, n_cells)
    aligned = by_state(positions, coded.labels.tolist(), "positions")
    places = as_numbers(aligned, "positions must be numbers", "give a row for each state")
    transitions = TransitionMatrix.from_sequences(coded, smoothing=smoothing, sparse=False)
    neighbours = PolicyGraph.utility(places, radius).edge_array
    paths = _stretches(coded, check_horizon(horizon))
    return Setting(paths, Adversary(transitions), places, neighbours)


def _stretches(sequences: Sequences, length: int) -> np.ndarray:
    """All stretches of so many consecutive states, (N, length), one after the other."""
    pieces = []
    for sequence in sequences:
        n_whole = sequence.size // length
        pieces.append(sequence[: n_whole * length].reshape(-1, length))
    if not any(map(len, pieces)):
        raise ValueError(
            f"some sequence must have {length} states, found none so long; choose a smaller horizon"
        )
    return np.concatenate(pieces)
