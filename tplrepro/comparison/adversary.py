"""The adversary of the comparison, and what a series of releases leaks to her in truth.

She knows the chain by which the target moves (homogeneous, started in its stationary distribution), the mechanism, and
all data of all other users; she sees all T releases and wants to know where the target was at one time t. What they
tell her is Pr(outputs | l_t = k), cell by cell; the measured leakage of a run is the largest

    log Pr(outputs | l_t = i) / Pr(outputs | l_t = j)

over the cells i, j that she holds possible. It is realised, not worst-case: the privacy loss of outputs that were
drawn, which temporal privacy leakage (Eq. (2) of [1]) bounds over all outputs. The filter gives it exactly from the
likelihoods Pr(output at t | l_t = k, earlier outputs), the same for every mechanism.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.leakage.loss_function import PrivacyLossFunction
from tplrepro.leakage.temporal import temporal_privacy_leakage
from tplrepro.markov.filtering import output_log_likelihoods
from tplrepro.markov.transition import TransitionMatrix

__all__ = ["Adversary", "measured_leakage"]


@dataclass(frozen=True, eq=False)
class Adversary:
    """What the adversary knows about the target's movement: `transitions`, Pr(l^t | l^{t-1}) over n cells."""

    transitions: TransitionMatrix

    @cached_property
    def initial(self) -> np.ndarray:
        """Distribution of the target at every time before anything is released: the stationary one, (n,)."""
        return self.transitions.stationary()

    @cached_property
    def forward(self) -> PrivacyLossFunction:
        return PrivacyLossFunction(self.transitions)

    @cached_property
    def backward(self) -> PrivacyLossFunction:
        """Loss function of Pr(l^{t-1} | l^t); homogeneous, because the chain is stationary."""
        return PrivacyLossFunction(self.transitions.reverse(self.initial))

    def bound(self, epsilons: ArrayLike) -> float:
        """The largest TPL of releases whose one-time losses are at most `epsilons` (T,); nats."""
        return float(temporal_privacy_leakage(epsilons, self.backward, self.forward).tpl.max())

    def told(self, log_likelihoods: ArrayLike) -> np.ndarray:
        """log Pr(all outputs | l_t = k), (..., T, n), see `output_log_likelihoods`."""
        return output_log_likelihoods(log_likelihoods, self.transitions, self.initial)

    def posteriors(self, told: np.ndarray) -> np.ndarray:
        """Pr(l_t = k | all outputs), (..., T, n), from `told`; every cell is possible before anything is released."""
        weights = self.initial * np.exp(told - told.max(axis=-1, keepdims=True))
        return weights / weights.sum(axis=-1, keepdims=True)


def measured_leakage(told: ArrayLike, pairs: ArrayLike | None = None) -> np.ndarray:
    """The largest realised log-likelihood ratio between two cells at each time, (..., T), nats.

    `told` (..., T, n) is log Pr(all outputs | l_t = k), NaN for cells that are impossible at that time. By default all
    pairs of possible cells are compared, else those given (m, 2). Infinite where a possible cell is ruled out.

    >>> told = [[0.0, 1.0, 3.0]]
    >>> measured_leakage(told).tolist(), measured_leakage(told, [(0, 1), (1, 2)]).tolist()
    ([3.0], [2.0])
    """
    values = np.asarray(told, dtype=float)
    if pairs is None:
        return np.nanmax(values, axis=-1) - np.nanmin(values, axis=-1)
    first, second = np.asarray(pairs, dtype=np.intp).reshape(-1, 2).T
    with np.errstate(invalid="ignore"):
        ratios = np.abs(values[..., first] - values[..., second])
    return np.where(np.isnan(ratios), 0.0, ratios).max(axis=-1, initial=0.0)
