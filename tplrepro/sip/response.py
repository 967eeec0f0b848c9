"""Responses: what a mechanism does at one time step, and conditional randomised response as published.

A mechanism turns a belief into a response a(y|x). With alphabets of tens of thousands of symbols a response
is never written out: `ConditionalResponse` needs O(n), and `MixtureResponse` a few rows over the symbols that
are ever output.

Conditional randomised response (CRR, Theorem 4 and Algorithm 1 of [3]; the theorem misprints x for y off the
diagonal)

    a(y|x) = beta(y) / e^eps for y != x,   a(x|x) = 1 - (1 - beta(x)) / e^eps

is the mixture "with probability e^-eps draw from the belief, else tell the truth". Its outputs have the
distribution of its inputs, but its leakage is max(eps, log((e^eps - 1 + b) / (b e^eps))) with b the smallest
positive belief: more than eps as soon as b < 1 / (e^eps + 1). Every response reports its true leakage.

References
----------
[3] B. Jiang, M. Li, R. Tandon, "Online Context-Aware Data Release with Sequence Information Privacy", 2023.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tplrepro.sip.leakage import check_belief, check_distance, instantaneous_leakage
from tplrepro.validation import check_level

__all__ = [
    "ConditionalRandomizedResponse",
    "ConditionalResponse",
    "DenseResponse",
    "Mechanism",
    "MixtureResponse",
    "Response",
]

#: Responses over more symbols than this are not written out as a matrix (it would take 800 MB).
LARGEST_MATRIX = 10_000


class Response:
    """A response a(y|x) under one belief; subclasses define `belief`, `marginal`, `leakage`, `row` and `column`.

    Attributes
    ----------
    belief : ndarray (n,)
    marginal : ndarray (n,), distribution of the output
    leakage : float, the true instantaneous information leakage, nats
    """

    belief: np.ndarray
    marginal: np.ndarray
    leakage: float

    @property
    def n_symbols(self) -> int:
        return self.belief.size

    def row(self, x: int) -> np.ndarray:
        """Distribution of the output given symbol x, (n,)."""
        raise NotImplementedError

    def column(self, y: int) -> np.ndarray:
        """Likelihood of output y given each symbol, (n,)."""
        raise NotImplementedError

    def kept(self) -> np.ndarray:
        """Probability that each symbol is output unchanged, (n,)."""
        return np.array([self.column(x)[x] for x in range(self.n_symbols)])

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
        cumulative = np.cumsum(self.row(self.checked_symbol(x)))
        return int(min(np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right"), self.n_symbols - 1))

    def cost(self, distance="hamming") -> float:
        """Expected distance between input and output (Eq. (14) of [3])."""
        if isinstance(distance, str) and distance == "hamming":
            return float((self.belief * (1.0 - self.kept())).sum())
        values = check_distance(distance, self.n_symbols)
        return float(sum(b * (values[x] @ self.row(x)) for x, b in enumerate(self.belief) if b > 0))

    def checked_symbol(self, x) -> int:
        if not 0 <= x < self.n_symbols:
            raise ValueError(f"a symbol must be one of 0..{self.n_symbols - 1}, found {x}; check the input")
        return int(x)


@dataclass(frozen=True, eq=False)
class DenseResponse(Response):
    """A response given by all its rows.

    Parameters
    ----------
    belief : ndarray (n,)
    rows : ndarray (n, n), a(.|x)
    bound : float, a proven lower bound of the cost of every response within the budget; -inf if none is known
    """

    belief: np.ndarray
    rows: np.ndarray
    bound: float = -np.inf

    @cached_property
    def marginal(self) -> np.ndarray:
        return self.belief @ self.rows

    @cached_property
    def leakage(self) -> float:
        return instantaneous_leakage(self.rows, self.belief)

    def row(self, x):
        return self.rows[x]

    def column(self, y):
        return self.rows[:, y]

    def kept(self):
        return np.diagonal(self.rows).copy()

    def matrix(self):
        return self.rows.copy()


@dataclass(frozen=True, eq=False)
class ConditionalResponse(Response):
    """Conditional randomised response under one belief, in O(n) memory."""

    belief: np.ndarray
    epsilon: float

    @property
    def marginal(self) -> np.ndarray:
        return self.belief

    @cached_property
    def leakage(self) -> float:
        positive = self.belief[self.belief > 0]
        if positive.size == 1:
            return 0.0
        # log((e^eps - 1 + b) / (b e^eps)), written so that nothing overflows
        smallest = positive.min()
        return float(max(self.epsilon, np.log(-np.expm1(-self.epsilon) / smallest + np.exp(-self.epsilon))))

    def row(self, x):
        values = self.belief * np.exp(-self.epsilon)
        values[x] += -np.expm1(-self.epsilon)
        return values

    def column(self, y):
        values = np.full(self.n_symbols, self.belief[y] * np.exp(-self.epsilon))
        values[y] += -np.expm1(-self.epsilon)
        return values

    def kept(self):
        return self.belief * np.exp(-self.epsilon) - np.expm1(-self.epsilon)

    def sample(self, x, rng):
        x = self.checked_symbol(x)
        if rng.random() >= np.exp(-self.epsilon):
            return x
        return super().sample(x, rng) if self.belief[x] == 1 else _draw(self.belief, rng)


@dataclass(frozen=True, eq=False)
class MixtureResponse(Response):
    """a(y|x) = share q(y) + (1 - share) w(y|x) over a few outputs, with q = sum_x belief(x) w(.|x).

    Mixing with the marginal leaves q as it is and draws every ratio a(y|x) / q(y) towards 1, so the leakage
    is that of the largest ratio of w, and `share` can be set to keep a budget exactly: see
    `tplrepro.sip.mixing`.

    Parameters
    ----------
    belief : ndarray (n,)
    labels : int array (m,), the symbols that are ever output
    share : float in [0, 1]
    table : ndarray (c, m), rows of w shared by classes of symbols
    row_class : int array (n,), the class of each symbol; -1: w(.|x) is x itself, which must be among the labels
    bound : float, a proven lower bound of the cost of every response within the budget; -inf if none is known
    """

    belief: np.ndarray
    labels: np.ndarray
    share: float
    table: np.ndarray
    row_class: np.ndarray
    bound: float = -np.inf

    @cached_property
    def position(self) -> np.ndarray:
        """Place of each symbol among the labels, (n,); -1 if it is never output."""
        place = np.full(self.n_symbols, -1)
        place[self.labels] = np.arange(self.labels.size)
        return place

    @cached_property
    def class_mass(self) -> np.ndarray:
        shared = self.row_class >= 0
        return np.bincount(self.row_class[shared], self.belief[shared], minlength=len(self.table))

    @cached_property
    def own_mass(self) -> np.ndarray:
        """Belief of each label's own symbol where that symbol's w is itself, (m,)."""
        return np.where(self.row_class[self.labels] < 0, self.belief[self.labels], 0.0)

    @cached_property
    def output(self) -> np.ndarray:
        """q over the labels, (m,)."""
        return self.class_mass @ self.table + self.own_mass

    @cached_property
    def marginal(self) -> np.ndarray:
        values = np.zeros(self.n_symbols)
        values[self.labels] = self.output
        return values

    @cached_property
    def largest_ratio(self) -> float:
        """The largest w(y|x) / q(y) over possible x."""
        seen = self.output > 0
        ratio = (self.table[self.class_mass > 0][:, seen] / self.output[seen]).max(initial=0.0)
        own = seen & (self.own_mass > 0)
        return float(max(ratio, (1.0 / self.output[own]).max(initial=0.0)))

    @cached_property
    def leakage(self) -> float:
        seen = self.output > 0
        ratios = self.table[self.class_mass > 0][:, seen] / self.output[seen]
        smallest = ratios.min(initial=np.inf)
        if (self.own_mass > 0).any() and self.labels.size > 1:
            smallest = 0.0
        low = self.share + (1 - self.share) * min(smallest, 1.0)
        high = self.share + (1 - self.share) * max(self.largest_ratio, 1.0)
        return float(max(np.log(high), -np.log(low) if low > 0 else np.inf))

    def row(self, x):
        values = np.zeros(self.n_symbols)
        values[self.labels] = self.share * self.output
        if self.row_class[x] >= 0:
            values[self.labels] += (1 - self.share) * self.table[self.row_class[x]]
        else:
            values[x] += 1 - self.share
        return values

    def column(self, y):
        place = self.position[y]
        if place < 0:
            return np.zeros(self.n_symbols)
        densities = np.append(self.table[:, place], 0.0)[self.row_class]
        if self.row_class[y] < 0:
            densities[y] = 1.0
        return self.share * self.output[place] + (1 - self.share) * densities

    def kept(self):
        values = np.zeros(self.n_symbols)
        own = self.row_class[self.labels]
        density = np.where(
            own < 0,
            1.0,
            np.append(self.table, np.zeros((1, self.labels.size)), axis=0)[own, self.position[self.labels]],
        )
        values[self.labels] = self.share * self.output + (1 - self.share) * density
        return values


class Mechanism:
    """What all mechanisms share: a budget `epsilon` in nats, and a response for every belief.

    A subclass defines `response(belief)`.
    """

    def __init__(self, epsilon: float):
        self.epsilon = check_level(epsilon, "epsilon")

    def __repr__(self) -> str:
        return f"{type(self).__name__}(epsilon={self.epsilon:g})"

    def response(self, belief) -> Response:
        """The response under a belief (n,)."""
        raise NotImplementedError

    def matrix(self, belief) -> np.ndarray:
        """Rows a(.|x) under a belief, (n, n)."""
        return self.response(belief).matrix()

    def sample(self, x: int, belief, rng: np.random.Generator) -> int:
        """Draw the output for symbol x under a belief."""
        return self.response(belief).sample(x, rng)

    def leakage(self, belief) -> float:
        """True instantaneous information leakage under a belief, nats."""
        return self.response(belief).leakage


class ConditionalRandomizedResponse(Mechanism):
    """Conditional randomised response as published (Theorem 4, Algorithm 1 of [3]).

    It does **not** keep its budget when a positive belief is below 1 / (e^epsilon + 1); `leakage` says what
    it leaks. `OptimalResponse` is the exact optimum of the same problem.

    Parameters
    ----------
    epsilon : float, the budget that the formula is given, nats

    Raises
    ------
    ValueError
        If epsilon is not finite and positive, or a belief is not a distribution.

    Examples
    --------
    >>> mechanism = ConditionalRandomizedResponse(1.0)
    >>> mechanism.matrix([0.05, 0.95]).round(4).tolist()
    [[0.6505, 0.3495], [0.0184, 0.9816]]
    >>> round(mechanism.leakage([0.05, 0.95]), 3), round(mechanism.response([0.05, 0.95]).cost(), 4)
    (2.566, 0.0349)
    """

    def response(self, belief) -> ConditionalResponse:
        return ConditionalResponse(check_belief(belief), self.epsilon)


def _draw(distribution: np.ndarray, rng: np.random.Generator) -> int:
    cumulative = np.cumsum(distribution)
    return int(min(np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right"), distribution.size - 1))
