"""Responses: what a mechanism does at one time step, and conditional randomised response as published.

A mechanism turns a belief into a response a(y|x). With alphabets of tens of thousands of symbols a response is never
written out: `ConditionalResponse` needs O(n), and `tplrepro.sip.mixture.MixtureResponse` a few rows over the symbols
that are ever output.

Conditional randomised response (CRR, Theorem 4 and Algorithm 1 of [3]; the theorem misprints x for y off the diagonal)

    a(y|x) = beta(y) / e^eps for y != x,   a(x|x) = 1 - (1 - beta(x)) / e^eps

is the mixture "with probability e^-eps draw from the belief, else tell the truth". Its outputs have the distribution of
its inputs, but its leakage is max(eps, log((e^eps - 1 + b) / (b e^eps))) with b the smallest positive belief: more than
eps as soon as b < 1 / (e^eps + 1). Every response reports its true leakage.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.sip.checks import check_distance
from tplrepro.sip.leakage import instantaneous_leakage
from tplrepro.validation import check_distribution, check_level

__all__ = ["BeliefMechanism", "ConditionalRandomizedResponse", "ConditionalResponse", "DenseResponse", "Response"]

#: Responses over more symbols than this are not written out as a matrix (it would take 800 MB).
LARGEST_MATRIX = 10_000


class Response(ABC):
    """A response a(y|x) under one `belief` (n,)."""

    belief: np.ndarray

    @property
    def n_symbols(self) -> int:
        return self.belief.size

    @property
    @abstractmethod
    def marginal(self) -> np.ndarray:
        """Distribution of the output, (n,)."""

    @property
    @abstractmethod
    def leakage(self) -> float:
        """The true instantaneous information leakage, nats."""

    @abstractmethod
    def row(self, x: int) -> np.ndarray:
        """Distribution of the output given symbol x, (n,)."""

    @abstractmethod
    def column(self, y: int) -> np.ndarray:
        """Likelihood of output y given each symbol, (n,)."""

    @abstractmethod
    def kept(self) -> np.ndarray:
        """Probability that each symbol is output unchanged, (n,)."""

    def matrix(self) -> np.ndarray:
        """All rows, (n, n); ValueError above 10,000 symbols."""
        n = self.n_symbols
        if n > LARGEST_MATRIX:
            raise ValueError(
                f"a matrix over {n} symbols would take {8 * n * n / 1e9:.1f} GB, the limit is {LARGEST_MATRIX} "
                "symbols; use row(x), column(y) or sample(x, rng)"
            )
        return np.array([self.row(x) for x in range(n)])

    def sample(self, x: int, rng: np.random.Generator) -> int:
        """Draw the output for symbol x."""
        return _draw(self.row(self.checked_symbol(x)), rng)

    def cost(self, distance: str | ArrayLike = "hamming") -> float:
        """Expected distance between input and output (Eq. (14) of [3])."""
        if isinstance(distance, str) and distance == "hamming":
            return float((self.belief * (1.0 - self.kept())).sum())
        values = check_distance(distance, self.n_symbols)
        return float(sum(b * (values[x] @ self.row(x)) for x, b in enumerate(self.belief) if b > 0))

    def checked_symbol(self, x: int) -> int:
        if not 0 <= x < self.n_symbols:
            raise ValueError(f"a symbol must be one of 0..{self.n_symbols - 1}, found {x}; check the input")
        return int(x)


def _draw(distribution: np.ndarray, rng: np.random.Generator) -> int:
    cumulative = np.cumsum(distribution)
    drawn = np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right")
    return int(min(drawn, distribution.size - 1))


@dataclass(frozen=True, eq=False)
class DenseResponse(Response):
    """A response given by all its rows.

    Attributes
    ----------
    belief : ndarray (n,)
    rows : ndarray (n, n), a(.|x); read-only from now on
    bound : float, a proven lower bound of the cost of every response within the budget; -inf if none is known
    """

    belief: np.ndarray
    rows: np.ndarray
    bound: float = -np.inf

    def __post_init__(self):
        self.rows.setflags(write=False)

    @cached_property
    def marginal(self) -> np.ndarray:
        return self.belief @ self.rows

    @cached_property
    def leakage(self) -> float:
        return instantaneous_leakage(self.rows, self.belief)

    def row(self, x: int) -> np.ndarray:
        return self.rows[x]

    def column(self, y: int) -> np.ndarray:
        return self.rows[:, y]

    def kept(self) -> np.ndarray:
        return np.diagonal(self.rows)

    def matrix(self) -> np.ndarray:
        return self.rows.copy()


@dataclass(frozen=True, eq=False)
class ConditionalResponse(Response):
    """Conditional randomised response under one belief, in O(n) memory."""

    belief: np.ndarray
    epsilon: float

    @property
    def marginal(self) -> np.ndarray:
        return self.belief

    @property
    def truth(self) -> float:
        """Share of the time at which the symbol is told as it is; else the output is drawn from the belief."""
        return float(-np.expm1(-self.epsilon))

    @cached_property
    def leakage(self) -> float:
        positive = self.belief[self.belief > 0]
        if positive.size == 1:
            return 0.0
        # log((e^eps - 1 + b) / (b e^eps)), written so that nothing overflows
        return float(max(self.epsilon, np.log(self.truth / positive.min() + np.exp(-self.epsilon))))

    def row(self, x: int) -> np.ndarray:
        values = self.belief * np.exp(-self.epsilon)
        values[x] += self.truth
        return values

    def column(self, y: int) -> np.ndarray:
        values = np.full(self.n_symbols, self.belief[y] * np.exp(-self.epsilon))
        values[y] += self.truth
        return values

    def kept(self) -> np.ndarray:
        return self.belief * np.exp(-self.epsilon) + self.truth

    def sample(self, x: int, rng: np.random.Generator) -> int:
        own = self.checked_symbol(x)
        return own if rng.random() >= np.exp(-self.epsilon) else _draw(self.belief, rng)


class BeliefMechanism(ABC):
    """A mechanism that responds to a belief within a budget of `epsilon` nats; a subclass defines `response`.

    One that `uses_previous` is also told the true previous symbol, `response(belief, previous=x)`.
    """

    uses_previous = False

    def __init__(self, epsilon: float):
        self.epsilon = check_level(epsilon, "epsilon")

    def __repr__(self) -> str:
        return f"{type(self).__name__}(epsilon={self.epsilon:g})"

    @abstractmethod
    def response(self, belief: ArrayLike) -> Response:
        """The response under a belief (n,); ValueError if that is no distribution."""

    def matrix(self, belief: ArrayLike) -> np.ndarray:
        """Rows a(.|x) under a belief, (n, n)."""
        return self.response(belief).matrix()

    def sample(self, x: int, belief: ArrayLike, rng: np.random.Generator) -> int:
        """Draw the output for symbol x under a belief."""
        return self.response(belief).sample(x, rng)

    def leakage(self, belief: ArrayLike) -> float:
        """True instantaneous information leakage under a belief, nats."""
        return self.response(belief).leakage


class ConditionalRandomizedResponse(BeliefMechanism):
    """Conditional randomised response as published (Theorem 4, Algorithm 1 of [3]).

    It does **not** keep its budget when a positive belief is below 1 / (e^epsilon + 1); `leakage` says what it leaks.
    `OptimalResponse` is the exact optimum of the same problem.

    Parameters
    ----------
    epsilon : float, the budget that the formula is given, nats

    Examples
    --------
    >>> mechanism = ConditionalRandomizedResponse(1.0)
    >>> mechanism.matrix([0.05, 0.95]).round(4).tolist()
    [[0.6505, 0.3495], [0.0184, 0.9816]]
    >>> round(mechanism.leakage([0.05, 0.95]), 3), round(mechanism.response([0.05, 0.95]).cost(), 4)
    (2.566, 0.0349)
    """

    def response(self, belief: ArrayLike) -> ConditionalResponse:
        return ConditionalResponse(check_distribution(belief, name="a belief"), self.epsilon)
