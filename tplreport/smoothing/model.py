"""Counts of people who move by a public chain, seen through noise.

Each person moves by the transition matrix P_t, independently of the others. Given the counts c_t of
a time, those of the next one have

    mean P_t' c_t   and covariance   Q(c_t) = diag(P_t' c_t) - P_t' diag(c_t) P_t,

and a noisy count is the true one plus noise of a known variance. Two settings make up for what is
wrong with that: `spread` multiplies Q, for people who differ or a chain that is not theirs;
`turnover` adds a variance in proportion to the counts, for people who enter, leave or move
together, which no multiple of Q allows since the rows of Q sum to 0.
"""

from __future__ import annotations
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tplrepro.validation import FrozenArrays


@dataclass(frozen=True, eq=False)
class Settings(FrozenArrays):
    """Those of S filters that run side by side, (S,) each."""

    spread: np.ndarray
    turnover: np.ndarray

    def __len__(self) -> int:
        return self.spread.size

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Settings):
            return NotImplemented
        same_spread = np.array_equal(self.spread, other.spread)
        return same_spread and np.array_equal(self.turnover, other.turnover)

    __hash__ = None  # type: ignore[assignment]

    def __getitem__(self, place: int) -> Settings:
        """One of them."""
        return Settings(self.spread[[place]], self.turnover[[place]])

    @classmethod
    def one(cls, spread: float, turnover: float) -> Settings:
        return cls(np.array([spread]), np.array([turnover]))


@dataclass(frozen=True, eq=False)
class CountModel:
    """Noisy counts of n states at T times, and how the true ones move.

    `variances` (T, n) are those of the noise of `values` (T, n), inf where nothing is known of a
    count. `steps` are T - 1 matrices (n, n). Counts of the first time have the mean `first_mean`
    (n,) and the covariance `first_covariance` (n, n). With `has_total` their sum never changes.
    """

    values: np.ndarray
    variances: np.ndarray
    steps: list[np.ndarray]
    first_mean: np.ndarray
    first_covariance: np.ndarray
    has_total: bool = False

    def __len__(self) -> int:
        return len(self.values)

    @property
    def n_states(self) -> int:
        return self.first_mean.size

    def seen(self, time: int) -> np.ndarray:
        """The places of the counts of a time of which something is known."""
        return self._seen[time]

    @cached_property
    def _seen(self) -> list[np.ndarray]:
        return [np.flatnonzero(variances < np.inf) for variances in self.variances]

    @property
    def is_seen(self) -> np.ndarray:
        """At which times something is known of a count, (T,)."""
        return np.any(self.variances < np.inf, axis=1)

    @property
    def predicted_values(self) -> np.ndarray:
        """How many noisy counts of each time are predicted by earlier ones, (T,): all but those of
        the first time that is seen."""
        numbers = np.sum(self.variances < np.inf, axis=1)
        numbers[np.flatnonzero(numbers)[:1]] = 0
        return numbers

    def until(self, end: int) -> CountModel:
        """The same without the times from `end` on."""
        return CountModel(
            self.values[:end],
            self.variances[:end],
            self.steps[: max(end - 1, 0)],
            self.first_mean,
            self.first_covariance,
            self.has_total,
        )
