"""The adversary's belief: what the outputs so far tell about the next symbol (Eqs. (3) and (13) of [3]).

A chain of order 1 or 2 is kept as a first-order chain over *contexts*, each with a last symbol: for order 1 the symbols
themselves, for order 2 the symbols (what is known after the first one) and the pairs. The belief is a distribution over
contexts, kept in logarithms; observing y multiplies it by a(y|x) / p(y) and one step of the chain follows. A sparse
chain costs O(nonzeros) a step and holds no table of all pairs.

Chains estimated from data assign probability 0 to steps never seen. `restart` is the probability with which the next
symbol is drawn from the initial distribution whatever the context, which keeps a chain sparse and everything possible.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.markov.filtering import condition, log_probabilities, log_product
from tplrepro.markov.sequences import Sequences, as_sequences
from tplrepro.markov.transition import TransitionMatrix, as_transition_matrix
from tplrepro.sip.response import Response
from tplrepro.validation import check_choice, check_distribution, check_probability

__all__ = ["Belief", "SymbolChain", "chain_from_sequences"]


@dataclass(frozen=True, eq=False)
class SymbolChain:
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

    def toarray(self) -> np.ndarray:
        """Pr(next context | context), restarts included, dense (c, c)."""
        rows = (1 - self.restart)[:, None] * self.transition.toarray()
        rows[:, : self.n_symbols] += self.restart[:, None] * self.initial
        return rows

    @cached_property
    def _logs(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return log_probabilities(1.0 - self.restart), log_probabilities(self.restart), log_probabilities(self.initial)

    def predict(self, log_weights: np.ndarray) -> np.ndarray:
        """One step: the log-probabilities of the contexts (c,) after `log_weights` (c,)."""
        stay, restart, initial = self._logs
        following = log_product(log_weights + stay, self.transition)
        renewed = log_weights + restart
        top = renewed.max()
        if np.isfinite(top):
            renewed = top + np.log(np.exp(renewed - top).sum())  # logaddexp.reduce takes ten times as long
            following[: self.n_symbols] = np.logaddexp(following[: self.n_symbols], renewed + initial)
        return following


@dataclass(frozen=True, eq=False)
class Belief:
    """A belief over the contexts of a chain, log-probabilities (c,); immutable: `observe` returns the next one.

    >>> from tplrepro.sip import ConditionalRandomizedResponse
    >>> belief = Belief.start(SymbolChain.first_order([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]]))
    >>> response = ConditionalRandomizedResponse(1.0).response(belief.current)
    >>> belief.observe(1, response).current.round(4).tolist()
    [0.2472, 0.7528]
    """

    chain: SymbolChain
    log_weights: np.ndarray

    @classmethod
    def start(cls, chain: SymbolChain) -> Self:
        """The belief before the first output."""
        weights = np.zeros(chain.symbols.size)
        weights[: chain.n_symbols] = chain.initial
        return cls(chain, log_probabilities(weights))

    @cached_property
    def current(self) -> np.ndarray:
        """Pr(X_k = x | y_1 .. y_{k-1}), (n,): what a mechanism is given."""
        weights = np.exp(self.log_weights - self.log_weights.max())
        return np.bincount(self.chain.symbols, weights, minlength=self.chain.n_symbols) / weights.sum()

    def observe(self, y: int, response: Response) -> "Belief":
        """The belief about the next symbol after output y, Eq. (13); ImpossibleOutputError if y cannot be given."""
        posterior, _ = condition(self.log_weights, log_probabilities(response.column(y))[self.chain.symbols])
        return Belief(self.chain, self.chain.predict(posterior))

    def unobserved(self) -> "Belief":
        """The belief about the next symbol where no output is taken into account."""
        return Belief(self.chain, self.chain.predict(self.log_weights))


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
    counts = np.bincount(coded.values, minlength=n_symbols) + 1.0
    start = counts / counts.sum() if initial is None else check_distribution(initial, n_symbols, "initial")
    symbols, (origin, target) = np.arange(n_symbols), coded.transitions()
    if order == 2:
        pairs, codes = np.unique(origin.astype(np.int64) * n_symbols + target, return_inverse=True)
        ends = np.cumsum(np.maximum(coded.lengths - 1, 0))
        earlier, later = Sequences(codes, np.append(0, ends), pairs, coded.users).transitions()
        # From a lone symbol (the first, or after an unseen pair) and from a pair the chain goes to the pair it makes.
        origin = np.concatenate([origin, n_symbols + earlier])
        target = np.concatenate([n_symbols + codes, n_symbols + later])
        symbols = np.concatenate([symbols, pairs % n_symbols])
    c = symbols.size
    again = np.full(c, check_probability(restart, "restart"))
    dead = np.setdiff1d(np.arange(c), origin)
    again[dead] = 1.0
    steps = np.append(origin, dead), np.append(target, dead)
    matrix = coo_array((np.ones(steps[0].size), steps), shape=(c, c)).tocsr()
    return SymbolChain(start, TransitionMatrix(matrix, normalize=True), symbols, again)
