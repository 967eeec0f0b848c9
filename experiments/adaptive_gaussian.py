"""Gaussian releases whose noise adaptive policies choose from the earlier outputs, about one time
of a chain of two states: Monte Carlo with the exact law of the outputs.

A policy sees the log-ratio that the outputs so far have about the two values of the secret time.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

#: policy(log-ratio (N,), largest budget (N,), smallest budget that is always left, rng) -> (N,)
Policy = Callable[[np.ndarray, np.ndarray, float, np.random.Generator], np.ndarray]


@dataclass(frozen=True)
class SimulatedDelta:
    """The mean of N draws of the delta at a level, and the half-width of its interval of so many
    standard errors."""

    mean: float
    error: float

    @property
    def least(self) -> float:
        return self.mean - self.error


@dataclass(frozen=True)
class Secret:
    """A time, and the state that the user has then."""

    time: int
    state: int


@dataclass(frozen=True)
class Bucket:
    """The `rate` of a token bucket, and the most that is `saved`, in units of 1 / multiplier^2."""

    rate: float
    saved: float


def spend_all(ratios: np.ndarray, most: np.ndarray, rate: float, rng) -> np.ndarray:
    """Whatever may be spent."""
    return most


def spend_evenly(ratios: np.ndarray, most: np.ndarray, rate: float, rng) -> np.ndarray:
    """The rate."""
    return np.full_like(most, rate)


def spend_when_ahead(ratios: np.ndarray, most: np.ndarray, rate: float, rng) -> np.ndarray:
    """All unless the outputs point to the other value."""
    return np.where(ratios >= 0.0, most, 0.0)


def spend_when_behind(ratios: np.ndarray, most: np.ndarray, rate: float, rng) -> np.ndarray:
    """All unless they point to the secret one."""
    return np.where(ratios <= 0.0, most, 0.0)


def spend_until_told(ratios: np.ndarray, most: np.ndarray, rate: float, rng) -> np.ndarray:
    """All until the outputs point far to one value."""
    return np.where(abs(ratios) < 1.0, most, 0.0)


def spend_at_random(ratios: np.ndarray, most: np.ndarray, rate: float, rng) -> np.ndarray:
    """A share at random."""
    return most * rng.random(most.size)


POLICIES: tuple[Policy, ...] = (
    spend_all,
    spend_evenly,
    spend_when_ahead,
    spend_when_behind,
    spend_until_told,
    spend_at_random,
)


@dataclass(frozen=True)
class TwoStates:
    """A chain of two states over T times: the law of each time (T, 2), and the matrix of each step
    (T - 1, 2, 2), forward; state k moves an answer by k noise-free units."""

    laws: np.ndarray
    forward: np.ndarray

    @classmethod
    def of_matrix(cls, matrix: np.ndarray, initial: np.ndarray, horizon: int) -> "TwoStates":
        laws = [np.asarray(initial, float)]
        for _ in range(horizon - 1):
            laws.append(laws[-1] @ matrix)
        return cls(np.array(laws), np.array([matrix] * (horizon - 1)))

    def backward(self, time: int) -> np.ndarray:
        """Pr(state at `time` | state after it), (2, 2)."""
        joint = self.forward[time] * self.laws[time][:, None]
        return (joint / self.laws[time + 1]).T

    def paths(self, time: int, state: int, draws: int, rng: np.random.Generator) -> np.ndarray:
        """Paths (draws, T) whose state at a time is given."""
        horizon = len(self.laws)
        paths = np.empty((draws, horizon), int)
        paths[:, time] = state
        for t in reversed(range(time)):
            is_one = self.backward(t)[paths[:, t + 1], 1]
            paths[:, t] = rng.random(draws) < is_one
        for t in range(time, horizon - 1):
            is_one = self.forward[t][paths[:, t], 1]
            paths[:, t + 1] = rng.random(draws) < is_one
        return paths

    def predictions(self, time: int) -> list[np.ndarray]:
        """Pr(state at `time` | state at t), (2, 2), for each t up to it."""
        found = [np.eye(2)]
        for t in reversed(range(time)):
            found.append(self.forward[t] @ found[-1])
        return found[::-1]


def simulate_delta(
    chain: TwoStates,
    secret: Secret,
    alpha: float,
    bucket: Bucket,
    policy: Policy,
    *,
    draws: int,
    rng: np.random.Generator,
    errors: float = 4.0,
) -> SimulatedDelta:
    """The delta at `alpha` (nats) of a secret state against the other one, for budgets that a
    policy takes from a bucket, with an interval of so many standard errors."""
    time = secret.time
    horizon = len(chain.laws)
    paths = chain.paths(time, secret.state, draws, rng)
    predictions = chain.predictions(time)
    level = np.zeros(draws)
    # Pr(outputs so far, state now), and from the secret time on, given each of its values.
    beliefs = np.tile(chain.laws[0], (draws, 1))
    given: np.ndarray | None = None
    ratios = np.zeros(draws)
    for t in range(horizon):
        if t == time:
            known = beliefs / chain.laws[time]
            given = np.zeros((draws, 2, 2))
            given[:, 0, 0] = known[:, 0]
            given[:, 1, 1] = known[:, 1]
        most = bucket.rate + bucket.saved - level
        budgets = np.minimum(policy(ratios, most, bucket.rate, rng), most)
        level = np.maximum(level + budgets - bucket.rate, 0.0)
        shifts = np.sqrt(budgets)
        outputs = paths[:, t] * shifts + rng.normal(size=draws)
        likelihoods = np.exp(outputs[:, None] * shifts[:, None] * [0, 1])
        likelihoods *= np.exp(-0.5 * budgets[:, None] * [0, 1])
        if given is None:
            beliefs = beliefs * likelihoods
            told = beliefs @ predictions[t] / chain.laws[time]
        else:
            given = given * likelihoods[:, None, :]
            told = given.sum(axis=2)
        ratios = np.log(told[:, secret.state]) - np.log(told[:, 1 - secret.state])
        if t < horizon - 1:
            if given is None:
                beliefs = beliefs @ chain.forward[t]
            else:
                given = given @ chain.forward[t]
    gains = np.maximum(-np.expm1(alpha - ratios), 0.0)
    error = errors * gains.std() / np.sqrt(draws)
    return SimulatedDelta(float(gains.mean()), float(error))
