"""The Gaussian noise that linear answers about a chain of two states need at one time, by several
bounds and by simulation.

A user's states are unit vectors, a distance sqrt(2) apart.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np

from experiments.adaptive_gaussian import Secret, SimulatedDelta, TwoStates
from tplfrontier import gaussian_event_level_budgets, gaussian_mu, linear_gaussian_leakage
from tplrepro import temporal_privacy_leakage
from tplrepro.search import largest_within

DISTANCE = np.sqrt(2.0)
TOLERANCE = 2e-3


@dataclass(frozen=True)
class Answers:
    """A strategy (R, T) about a chain, whose backward and forward matrices are given, and the level
    that each time keeps."""

    strategy: np.ndarray
    backward: list
    forward: list
    epsilon: float
    delta: float

    @property
    def _gram(self) -> np.ndarray:
        return abs(self.strategy.T @ self.strategy)

    def whole_series_noise(self) -> float:
        """That of a promise about all data together."""
        return float(DISTANCE * np.sqrt(self._gram.sum()) / gaussian_mu(self.epsilon, self.delta))

    def independent_noise(self, time: int) -> float:
        """That of data which are independent over time: no bound can be below it."""
        norm = np.sqrt(self._gram[time, time])
        return float(DISTANCE * norm / gaussian_mu(self.epsilon, self.delta))

    def event_level_noise(self, time: int) -> float:
        """By theorem 1' of docs/theory/promises.md."""

        def keeps(noise: float) -> bool:
            budgets = gaussian_event_level_budgets(self.strategy, noise, self.delta, n_states=2)
            leakage = temporal_privacy_leakage(budgets, self.backward, self.forward)
            return bool(leakage.tpl[time] <= self.epsilon)

        return self._least_noise(time, keeps, 100.0 * self.whole_series_noise())

    def interval_noise(self, time: int) -> float:
        """By theorem C of docs/theory/intervals.md."""

        def keeps(noise: float) -> bool:
            leakage = linear_gaussian_leakage(
                self.strategy, noise, self.delta, self.backward, self.forward
            )
            return bool(leakage[time] <= self.epsilon)

        return self._least_noise(time, keeps, 1.01 * self.whole_series_noise())

    def _least_noise(self, time: int, keeps: Callable[[float], bool], most: float) -> float:
        def keeps_precision(precision: float) -> bool:
            return keeps(1.0 / precision)

        low = 1.0 / most
        high = 1.0 / self.independent_noise(time)
        found = largest_within(keeps_precision, low, high, tolerance=TOLERANCE, logarithmic=True)
        return 1.0 / found


def simulated_noise(
    answers: Answers, chain: TwoStates, time: int, draws: int, rng: np.random.Generator
) -> tuple[float, float]:
    """An interval of the noise that the exact law of the outputs needs at a time, by simulation:
    that at which 4 standard errors are added to the mean, or subtracted."""
    seed = int(rng.integers(2**32))
    ends = []
    for sign in (-1.0, 1.0):

        def keeps(precision: float, sign: float = sign) -> bool:
            noise = 1.0 / precision
            found = [
                simulated_delta(answers, chain, Secret(time, state), noise, draws=draws, seed=seed)
                for state in (0, 1)
            ]
            return max(one.mean + sign * one.error for one in found) <= answers.delta

        low = 1.0 / answers.whole_series_noise()
        high = 2.0 / answers.independent_noise(time)
        ends.append(1.0 / largest_within(keeps, low, high, tolerance=TOLERANCE, logarithmic=True))
    return ends[0], ends[1]


def simulated_delta(
    answers: Answers,
    chain: TwoStates,
    secret: Secret,
    noise: float,
    *,
    draws: int,
    seed: int,
    errors: float = 4.0,
) -> SimulatedDelta:
    """The delta about a secret state against the other one, for outputs by the exact law."""
    rng = np.random.default_rng(seed)
    horizon = len(chain.laws)
    paths = np.array([*product((0, 1), repeat=horizon)])
    weights = chain.laws[0][paths[:, 0]]
    for t in range(horizon - 1):
        weights = weights * chain.forward[t][paths[:, t], paths[:, t + 1]]
    means = DISTANCE / noise * paths @ answers.strategy.T
    of_draws = chain.paths(secret.time, secret.state, draws, rng)
    outputs = DISTANCE / noise * of_draws @ answers.strategy.T
    outputs = outputs + rng.normal(size=outputs.shape)
    logarithms = outputs @ means.T - 0.5 * (means**2).sum(axis=1)
    densities = np.exp(logarithms - logarithms.max(axis=1, keepdims=True)) * weights
    likelihoods = [
        densities[:, paths[:, secret.time] == value].sum(axis=1) / chain.laws[secret.time][value]
        for value in (secret.state, 1 - secret.state)
    ]
    ratios = np.log(likelihoods[0]) - np.log(likelihoods[1])
    gains = np.maximum(-np.expm1(answers.epsilon - ratios), 0.0)
    return SimulatedDelta(float(gains.mean()), float(errors * gains.std() / np.sqrt(draws)))
