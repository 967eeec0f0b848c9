"""Randomised response of one report over n values: k-ary, and as optimised unary encoding.

Each user perturbs her own value, and trusts nobody: epsilon-local differential privacy. Both mechanisms have the same
methods, which take arrays of any shape: `sample` values, `log_likelihood` of what was released for every value that it
may stand for, the `unbiased_counts` of many users, and their `mean_variance` over values, a user.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.validation import check_horizon, check_level

__all__ = ["KaryRandomizedResponse", "UnaryEncoding", "check_values"]


def check_values(values: ArrayLike, n: int, name: str) -> np.ndarray:
    """Whole numbers 0..n-1 of any shape; ValueError for others."""
    array = np.asarray(values)
    if array.size and (array.dtype.kind not in "iu" or np.ma.is_masked(values)):
        raise ValueError(
            f"{name} must be whole numbers in 0..{n - 1}, found {type(values).__name__} of {array.dtype}; code them so"
        )
    unknown = array[(array < 0) | (array >= n)]
    if unknown.size:
        raise ValueError(f"{name} must be among 0..{n - 1}, found {unknown[0]}; drop it, or number them from 0 on")
    return array.astype(np.intp)


@dataclass(frozen=True)
class _LocalMechanism:
    """A budget `epsilon` of one report in nats, and the number `n` of values."""

    epsilon: float
    n: int

    def __post_init__(self):
        vars(self).update(epsilon=check_level(self.epsilon, "epsilon"), n=check_horizon(self.n, "n"))

    def _mean_variance(self, own: float, other: float) -> float:
        """Of counts of values that are told with these probabilities by who holds them, and by who does not."""
        return (own * (1 - own) + (self.n - 1) * other * (1 - other)) / self.n / (own - other) ** 2


class KaryRandomizedResponse(_LocalMechanism):
    """The own value with odds e^epsilon against each other one.

    >>> KaryRandomizedResponse(np.log(3), 2).matrix().round(6).tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """

    @property
    def truth(self) -> float:
        """Share of the time at which the value is told as it is; else a uniform one, which may be the own one."""
        return float(-np.expm1(-self.epsilon) / (1.0 + (self.n - 1) * np.exp(-self.epsilon)))

    def matrix(self) -> np.ndarray:
        """Rows Pr(output | value), (n, n)."""
        return (1 - self.truth) / self.n + self.truth * np.eye(self.n)

    def sample(self, values: ArrayLike, rng: np.random.Generator) -> np.ndarray:
        """An output for each of the values 0..n-1, of the same shape."""
        own = check_values(values, self.n, "values")
        uniform = rng.integers(self.n, size=own.shape)
        return np.where(rng.random(own.shape) < self.truth, own, uniform)

    def log_likelihood(self, outputs: ArrayLike) -> np.ndarray:
        """log Pr(output | value) for every value, (..., n), of outputs (...)."""
        other = check_values(outputs, self.n, "outputs")[..., None] != np.arange(self.n)
        return -self.epsilon * other - np.log1p((self.n - 1) * np.exp(-self.epsilon))

    def unbiased_counts(self, outputs: ArrayLike) -> np.ndarray:
        """How many users hold each value, (..., n), from the outputs (users, ...)."""
        hit = np.asarray(outputs)[..., None] == np.arange(self.n)
        return (hit.sum(axis=0) - len(hit) * (1 - self.truth) / self.n) / self.truth

    @property
    def mean_variance(self) -> float:
        other = (1 - self.truth) / self.n
        return self._mean_variance(other + self.truth, other)


class UnaryEncoding(_LocalMechanism):
    """A bit a value: the own one is kept with probability 1/2, others are set with 1/(e^epsilon + 1).

    The error of its counts does not grow with n (Wang, Blocki, Li, Jha: Locally Differentially Private Protocols for
    Frequency Estimation, USENIX Security 2017).

    >>> UnaryEncoding(1.0, 3).log_likelihood([0, 1, 0]).round(4).tolist()
    [-2.3197, -1.3197, -2.3197]
    """

    @property
    def others(self) -> float:
        """Probability with which a bit that is not the own one is set."""
        return float(np.exp(-np.logaddexp(0.0, self.epsilon)))

    def sample(self, values: ArrayLike, rng: np.random.Generator) -> np.ndarray:
        """Bits (..., n) for values 0..n-1 (...)."""
        own = check_values(values, self.n, "values")[..., None] == np.arange(self.n)
        return rng.random(own.shape) < np.where(own, 0.5, self.others)

    def log_likelihood(self, bits: ArrayLike) -> np.ndarray:
        """log Pr(bits | value) for every value, (..., n), of bits (..., n)."""
        told = np.asarray(bits, dtype=bool)
        as_other = -np.logaddexp(0.0, np.where(told, self.epsilon, -self.epsilon))
        return as_other.sum(axis=-1, keepdims=True) + np.log(0.5) - as_other

    def unbiased_counts(self, bits: ArrayLike) -> np.ndarray:
        """As of `KaryRandomizedResponse`, from bits (users, ..., n)."""
        return (np.asarray(bits) - self.others).sum(axis=0) / (0.5 - self.others)

    @property
    def mean_variance(self) -> float:
        return self._mean_variance(0.5, self.others)
