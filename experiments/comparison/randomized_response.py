"""Randomised response of one report over n values: k-ary, and as optimised unary encoding.

Each user perturbs her own value and trusts no server: epsilon-local differential privacy. Both mechanisms
have the same methods, which take arrays of any shape: `sample` perturbs values, `log_likelihood` is that of
an output for every value, `unbiased_counts` estimates how many users hold each value, and `mean_variance` is
the mean variance of these counts over values, per user.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.validation import check_codes, check_horizon, check_level


@dataclass(frozen=True)
class _LocalMechanism:
    """A budget `epsilon` of one report in nats, and the number `n` of values."""

    epsilon: float
    n: int

    def __post_init__(self):
        vars(self).update(epsilon=check_level(self.epsilon, "epsilon"), n=check_horizon(self.n, "n"))

    def _mean_variance(self, truth: float, other: float) -> float:
        """The variance if users report a value with these probabilities if it is theirs and if it is not."""
        return (truth * (1 - truth) + (self.n - 1) * other * (1 - other)) / self.n / (truth - other) ** 2


class KaryRandomizedResponse(_LocalMechanism):
    """Each user reports her value with odds e^epsilon against each other value.

    >>> KaryRandomizedResponse(np.log(3), 2).matrix().round(6).tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """

    @property
    def truth(self) -> float:
        """Probability of reporting the value itself; otherwise the report is uniform, and may be the value, too."""
        return float(-np.expm1(-self.epsilon) / (1.0 + (self.n - 1) * np.exp(-self.epsilon)))

    @property
    def other(self) -> float:
        """Probability of reporting each other value."""
        return float(np.exp(-self.epsilon) / (1.0 + (self.n - 1) * np.exp(-self.epsilon)))

    def matrix(self) -> np.ndarray:
        """Rows Pr(output | value), (n, n)."""
        return self.other + self.truth * np.eye(self.n)

    def sample(self, values: ArrayLike, rng: np.random.Generator) -> np.ndarray:
        """An output for each of the values 0..n-1, of the same shape."""
        values = check_codes(values, self.n, "values")
        uniform = rng.integers(self.n, size=values.shape)
        return np.where(rng.random(values.shape) < self.truth, values, uniform)

    def log_likelihood(self, outputs: ArrayLike) -> np.ndarray:
        """log Pr(output | value) for every value, (..., n), of outputs (...)."""
        other = check_codes(outputs, self.n, "outputs")[..., None] != np.arange(self.n)
        return -self.epsilon * other - np.log1p((self.n - 1) * np.exp(-self.epsilon))

    def unbiased_counts(self, outputs: ArrayLike) -> np.ndarray:
        """How many users hold each value, (..., n), from the outputs (users, ...)."""
        reported = check_codes(outputs, self.n, "outputs")[..., None] == np.arange(self.n)
        return (reported.sum(axis=0) - len(reported) * self.other) / self.truth

    @property
    def mean_variance(self) -> float:
        return self._mean_variance(self.other + self.truth, self.other)


class UnaryEncoding(_LocalMechanism):
    """One bit per value: that of the user's value is set with probability 1/2, others with 1/(e^epsilon + 1).

    The error of its counts does not grow with n (Wang, Blocki, Li, Jha: Locally Differentially Private
    Protocols for Frequency Estimation, USENIX Security 2017).

    >>> UnaryEncoding(1.0, 3).log_likelihood([0, 1, 0]).round(4).tolist()
    [-2.3197, -1.3197, -2.3197]
    """

    @property
    def others(self) -> float:
        """Probability that the bit of another value is set."""
        return float(np.exp(-np.logaddexp(0.0, self.epsilon)))

    def sample(self, values: ArrayLike, rng: np.random.Generator) -> np.ndarray:
        """Bits (..., n) for values 0..n-1 (...)."""
        is_value = check_codes(values, self.n, "values")[..., None] == np.arange(self.n)
        return rng.random(is_value.shape) < np.where(is_value, 0.5, self.others)

    def log_likelihood(self, bits: ArrayLike) -> np.ndarray:
        """log Pr(bits | value) for every value, (..., n), of bits (..., n)."""
        is_set = check_codes(np.asarray(bits) * 1, 2, "bits") == 1
        as_other = -np.logaddexp(0.0, np.where(is_set, self.epsilon, -self.epsilon))
        return as_other.sum(axis=-1, keepdims=True) + np.log(0.5) - as_other

    def unbiased_counts(self, bits: ArrayLike) -> np.ndarray:
        """How many users hold each value, (..., n), from bits (users, ..., n)."""
        return (check_codes(np.asarray(bits) * 1, 2, "bits") - self.others).sum(axis=0) / (0.5 - self.others)

    @property
    def mean_variance(self) -> float:
        return self._mean_variance(0.5, self.others)
