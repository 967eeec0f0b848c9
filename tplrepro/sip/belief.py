"""The adversary's belief: what the outputs so far tell about the next symbol (Eqs. (3) and (13) of [3]).

A chain of order 1 or 2 is kept as a first-order chain over *contexts*, each with a last symbol: for order 1 the symbols
themselves, for order 2 the symbols (what is known after the first one) and the pairs. The belief is a distribution over
contexts, kept in logarithms where it gets too small; observing y multiplies it by a(y|x) / p(y), and one step of the
chain follows. A sparse chain costs O(nonzeros) a step and holds no table of all pairs.

Chains estimated from data assign probability 0 to steps never seen. `restart` is the probability with which the next
symbol is drawn from the initial distribution whatever the context, which keeps a chain sparse and everything possible.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.markov.filtering import LOWEST, condition, log_probabilities, log_product
from tplrepro.markov.sequences import Sequences, as_sequences
from tplrepro.markov.transition import TransitionMatrix, as_transition_matrix
from tplrepro.sip.response import Response
from tplrepro.validation import FrozenArrays, check_choice, check_distribution, check_probability

__all__ = ["Belief", "SymbolChain", "chain_from_sequences"]


@dataclass(frozen=True, eq=False)
class SymbolChain(FrozenArrays):
    """A chain over contexts, and the symbol in which each ends."""

    initial: np.ndarray  # (n,), distribution of the first symbol; context x stands for "first symbol x"
    transition: TransitionMatrix  # over c >= n contexts
    symbols: np.ndarray  # (c,), last symbol of each context; the first n contexts are the symbols
    restart: np.ndarray  # (c,), probability of drawing the next symbol from `initial`

    @classmethod
    def first_order(cls, initial: ArrayLike, transition: TransitionMatrix | ArrayLike) -> Self:
        """A chain of order 1 from its initial distribution (n,) and transition matrix (n, n), dense or sparse."""
        matrix = as_transition_matrix(transition)
        n = matrix.n_states
        return cls(check_distribution(initial, n, "a belief"), matrix, np.arange(n), np.zeros(n))

    @property
    def n_symbols(self) -> int:
        return self.initial.size

    @property
    def order_1(self) -> bool:
        """Whether the contexts are the symbols."""
        return self.symbols.size == self.initial.size

    def toarray(self) -> np.ndarray:
        """Pr(next context | context), restarts included, dense (c, c)."""
        rows = (1 - self.restart)[:, None] * self.transition.toarray()
        rows[:, : self.n_symbols] += self.restart[:, None] * self.initial
        return rows

    @cached_property
    def steps(self) -> tuple[Any, np.ndarray, float]:
        """The matrix less a constant of each row, transposed; the constants; a bound of what `predict` multiplies by.

        The bound is the smallest positive factor, or 0 where something is subtracted.
        """
        matrix = self.transition
        beyond = matrix.excess if matrix.is_sparse else matrix.probabilities
        constants = matrix.background if matrix.is_sparse else np.zeros(matrix.n_states)
        stored = beyond.data if matrix.is_sparse else beyond
        moves = 0.0 if stored.min() < 0 else min(map(_smallest, (stored, constants, self.initial)))
        return beyond.T, constants, moves * min(_smallest(self.restart), _smallest(1.0 - self.restart))

    def predict(self, weights: np.ndarray) -> np.ndarray:
        """One step: the probabilities of the contexts (c,) after `weights` (c,)."""
        beyond, constants, _ = self.steps
        staying = weights * (1.0 - self.restart)
        following = beyond @ staying + constants @ staying
        following[: self.n_symbols] += (self.restart @ weights) * self.initial
        return following

    def log_predict(self, log_weights: np.ndarray) -> np.ndarray:
        """The same in logarithms, for what is too small to be told from 0."""
        following = log_product(log_weights + log_probabilities(1.0 - self.restart), self.transition)
        renewed = np.logaddexp.reduce(log_weights + log_probabilities(self.restart)) + log_probabilities(self.initial)
        following[: self.n_symbols] = np.logaddexp(following[: self.n_symbols], renewed)
        return following


def _smallest(values: Any) -> float:
    """The smallest positive one of numbers from 0 to 1, or 1."""
    return float(np.min(values) or np.min(values, where=values > 0, initial=1.0))


@dataclass(frozen=True, eq=False)
class Belief:
    """A belief over the contexts of a chain, probabilities (c,); immutable: `observe` returns the next one.

    >>> from tplrepro.sip import ConditionalRandomizedResponse
    >>> belief = Belief.start(SymbolChain.first_order([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]]))
    >>> response = ConditionalRandomizedResponse(1.0).response(belief.current)
    >>> belief.observe(1, response).current.round(4).tolist()
    [0.2472, 0.7528]
    """

    chain: SymbolChain
    weights: np.ndarray
    log_weights: np.ndarray | None = None  # where some of them are too small to be told from 0

    @classmethod
    def start(cls, chain: SymbolChain) -> Self:
        """The belief before the first output."""
        return cls(chain, np.append(chain.initial, np.zeros(chain.symbols.size - chain.n_symbols)))

    @cached_property
    def current(self) -> np.ndarray:
        """Pr(X_k = x | y_1 .. y_{k-1}), (n,): what a mechanism is given."""
        chain = self.chain
        return self.weights if chain.order_1 else np.bincount(chain.symbols, self.weights, minlength=chain.n_symbols)

    def observe(self, y: int, response: Response) -> "Belief":
        """The belief about the next symbol after output y, Eq. (13); ImpossibleOutputError if y cannot be given."""
        likelihood = response.column(y)
        return self._after(likelihood if self.chain.order_1 else likelihood[self.chain.symbols])

    def unobserved(self) -> "Belief":
        """The belief about the next symbol where no output is taken into account."""
        return self._after(np.ones_like(self.weights))

    def _after(self, likelihood: np.ndarray) -> "Belief":
        posterior = self.weights * likelihood
        smallest = _smallest(self.weights) * _smallest(likelihood) * self.chain.steps[2]
        if self.log_weights is None and smallest > LOWEST and posterior.any():
            weights = self.chain.predict(posterior)
            return Belief(self.chain, weights / weights.sum())
        logs = log_probabilities(self.weights) if self.log_weights is None else self.log_weights
        logs = self.chain.log_predict(condition(logs, log_probabilities(likelihood))[0])
        weights = np.exp(logs)
        return Belief(self.chain, weights / weights.sum(), logs if (weights[logs > -np.inf] < LOWEST).any() else None)


def chain_from_sequences(
    sequences: Any, n_symbols: int, order: int = 1, restart: float = 0.01, initial: ArrayLike | None = None
) -> SymbolChain:
    """Maximum-likelihood chain of order 1 or 2, sparse; contexts that are never left restart with probability 1.

    `sequences` are Sequences or iterables of symbols 0..n-1. For order 2, a pair that was never seen counts as its last
    symbol. `restart` is explained above; `initial` (n,) is by default the frequencies of all symbols, one added to each
    count. ValueError for what is out of range, or without any symbol.

    >>> chain = chain_from_sequences([[0, 1, 0, 1, 1]], 2, order=2, restart=0.0)
    >>> chain.symbols.tolist()
    [0, 1, 1, 0, 1]
    """
    from scipy.sparse import coo_array

    check_choice(order, "order", (1, 2))
    coded = as_sequences(sequences, n_symbols)
    n, (origin, target) = coded.n_states, coded.transitions()
    counts = np.bincount(coded.values, minlength=n) + 1.0
    start = counts / counts.sum() if initial is None else check_distribution(initial, n, "initial")
    symbols = np.arange(n)
    if order == 2:
        pairs, codes = np.unique(origin.astype(np.int64) * n + target, return_inverse=True)
        ends = np.cumsum(np.maximum(coded.lengths - 1, 0))
        earlier, later = Sequences(codes, np.append(0, ends), pairs, coded.users).transitions()
        # From a lone symbol (the first, or after an unseen pair) and from a pair the chain goes to the pair it makes.
        origin, target = np.append(origin, n + earlier), np.append(n + codes, n + later)
        symbols = np.append(symbols, pairs % n)
    dead = np.setdiff1d(np.arange(symbols.size), origin)
    steps = np.append(origin, dead), np.append(target, dead)
    matrix = coo_array((np.ones(steps[0].size), steps), shape=(symbols.size, symbols.size)).tocsr()
    again = np.full(symbols.size, check_probability(restart, "restart"))
    again[dead] = 1.0
    return SymbolChain(start, TransitionMatrix(matrix, normalize=True), symbols, again)
