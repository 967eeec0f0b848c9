"""The adversary's belief: what the outputs so far tell about the next symbol (Eqs. (3) and (13) of [3]).

A chain of order 1 or 2 is kept as a first-order chain over *contexts*, each with a last symbol: for order 1
the symbols themselves, for order 2 the symbols (what is known after the first one) and the pairs. The belief
is a distribution over contexts; observing y multiplies it by a(y|x) / p(y) and one step of the chain follows.
A sparse chain costs O(nonzeros) a step and holds no table of all pairs.

Chains estimated from data assign probability 0 to steps never seen. `restart` is the probability with which
the next symbol is drawn from the initial distribution whatever the context, which keeps a chain sparse and
everything possible.

References
----------
[3] B. Jiang, M. Li, R. Tandon, "Online Context-Aware Data Release with Sequence Information Privacy", 2023.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tplrepro.markov.transition import TransitionMatrix, as_transition_matrix
from tplrepro.sip.leakage import check_belief
from tplrepro.sip.response import Response

__all__ = ["Belief", "SymbolChain", "ZeroProbabilityError", "second_order", "chain_from_sequences"]


class ZeroProbabilityError(ValueError):
    """An output was observed that the mechanism never gives under the belief."""


@dataclass(frozen=True, eq=False)
class SymbolChain:
    """A chain over contexts, and the symbol in which each ends.

    Parameters
    ----------
    initial : ndarray (n,), distribution of the first symbol; context x stands for "first symbol x"
    transition : TransitionMatrix over c >= n contexts
    symbols : int array (c,), last symbol of each context; the first n contexts are the symbols
    restart : ndarray (c,), probability of drawing the next symbol from `initial`
    """

    initial: np.ndarray
    transition: TransitionMatrix
    symbols: np.ndarray
    restart: np.ndarray

    @classmethod
    def first_order(cls, initial, transition, restart: float = 0.0) -> SymbolChain:
        """A chain of order 1 from its initial distribution (n,) and transition matrix (n, n), dense or sparse."""
        matrix = as_transition_matrix(transition)
        start = check_belief(initial, matrix.n_states)
        return cls(start, matrix, np.arange(matrix.n_states), _checked_restart(restart, matrix.n_states))

    @property
    def n_symbols(self) -> int:
        return self.initial.size

    def predict(self, weights: np.ndarray) -> np.ndarray:
        """One step: the distribution over contexts (c,) after `weights` (c,)."""
        # Sums of products, not dot products: threads of a BLAS cost more than they save at this size.
        leaving = weights * self.restart
        renewed = float(leaving.sum())
        following = self._step(weights - leaving)
        if renewed > 0:
            following[: self.n_symbols] += renewed * self.initial
        return following / following.sum()

    def _step(self, weights: np.ndarray) -> np.ndarray:
        matrix = self.transition
        if not matrix.is_sparse or matrix.background.any():
            total = weights.sum()
            return np.zeros_like(weights) if total <= 0 else matrix.propagate(weights / total) * total
        return np.asarray(weights @ matrix.probabilities)


@dataclass(frozen=True, eq=False)
class Belief:
    """A belief over the contexts of a chain; immutable: `observe` returns the next one.

    Parameters
    ----------
    chain : SymbolChain
    weights : ndarray (c,), probabilities of the contexts given the outputs so far

    Examples
    --------
    >>> from tplrepro.sip import ConditionalRandomizedResponse
    >>> belief = Belief.start(SymbolChain.first_order([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]]))
    >>> response = ConditionalRandomizedResponse(1.0).response(belief.current)
    >>> belief.observe(1, response).current.round(4).tolist()
    [0.2472, 0.7528]
    """

    chain: SymbolChain
    weights: np.ndarray

    @classmethod
    def start(cls, chain: SymbolChain) -> Belief:
        """The belief before the first output."""
        weights = np.zeros(chain.symbols.size)
        weights[: chain.n_symbols] = chain.initial
        return cls(chain, weights)

    @property
    def current(self) -> np.ndarray:
        """Pr(X_k = x | y_1 .. y_{k-1}), (n,): what a mechanism is given."""
        if self.weights.size == self.chain.n_symbols:
            return self.weights
        return np.bincount(self.chain.symbols, self.weights, minlength=self.chain.n_symbols)

    def observe(self, y: int, response) -> Belief:
        """The belief about the next symbol, after output y of `response` (a Response or rows (n, n)); Eq. (13).

        Raises
        ------
        ZeroProbabilityError
            If y has probability 0 under this belief.
        """
        likelihood = response.column(y) if isinstance(response, Response) else np.asarray(response, dtype=float)[:, y]
        posterior = self.weights * (
            likelihood if self.weights.size == likelihood.size else likelihood[self.chain.symbols]
        )
        total = posterior.sum()
        if not total > 0:
            raise ZeroProbabilityError(
                f"output {y} has probability 0 under the adversary's belief, so it cannot have been observed; check "
                "the chain against the data, or estimate it with restart > 0"
            )
        return Belief(self.chain, self.chain.predict(posterior / total))


def second_order(initial, transition, tensor) -> SymbolChain:
    """A chain of order 2, dense.

    Parameters
    ----------
    initial : array-like (n,), distribution of X_1
    transition : array-like (n, n), Pr(X_2 | X_1)
    tensor : array-like (n, n, n), entry (u, v, w) = Pr(X_{k+1} = w | X_{k-1} = u, X_k = v)
    """
    from scipy.sparse import coo_array

    first = np.asarray(as_transition_matrix(transition))
    n = first.shape[0]
    values = np.asarray(tensor, dtype=float)
    if values.shape != (n, n, n):
        raise ValueError(
            f"a chain of order 2 over {n} symbols needs shape ({n}, {n}, {n}), found {values.shape}; reshape it"
        )
    # Contexts: x for "X_1 = x", then n + u n + v for the pair (u, v).
    u, w = np.divmod(np.arange(n * n), n)
    start_rows, start_columns = u, n + np.arange(n * n)
    pair, following = np.divmod(np.arange(n**3), n)
    rows = np.concatenate([start_rows, n + pair])
    columns = np.concatenate([start_columns, n + (pair % n) * n + following])
    matrix = coo_array((np.concatenate([first.ravel(), values.ravel()]), (rows, columns)), shape=(n + n * n, n + n * n))
    symbols = np.concatenate([np.arange(n), w])
    matrix = TransitionMatrix(matrix.tocsr())
    return SymbolChain(check_belief(initial, n), matrix, symbols, np.zeros(symbols.size))


def chain_from_sequences(sequences, n_symbols: int, order: int = 1, restart: float = 0.01, initial=None) -> SymbolChain:
    """Maximum-likelihood chain of order 1 or 2, sparse; contexts that are never left restart with probability 1.

    Parameters
    ----------
    sequences : iterable of int arrays of symbols 0..n-1
    n_symbols : int
    order : 1 or 2; for order 2 a pair that was never seen counts as its last symbol
    restart : float in [0, 1], see the module
    initial : array-like (n,), optional; default the frequencies of all symbols, one added to each count

    Raises
    ------
    ValueError
        For sequences without symbols, symbols out of range, an order that is not 1 or 2, or a bad restart.

    Examples
    --------
    >>> chain = chain_from_sequences([[0, 1, 0, 1, 1]], 2, order=2, restart=0.0)
    >>> chain.symbols.tolist()
    [0, 1, 1, 0, 1]
    """
    if order not in (1, 2):
        raise ValueError(f"order must be 1 or 2, found {order!r}; choose one of them")
    arrays = [np.asarray(s, dtype=np.int64) for s in sequences]
    arrays = [a for a in arrays if a.size]
    if not arrays:
        raise ValueError("estimation needs at least one observed symbol, found none; give non-empty sequences")
    flat = np.concatenate(arrays)
    if flat.min() < 0 or flat.max() >= n_symbols:
        raise ValueError(f"symbols must be 0..{n_symbols - 1}, found {flat.min()} to {flat.max()}; raise n_symbols")
    counts = np.bincount(flat, minlength=n_symbols) + 1.0
    start = counts / counts.sum() if initial is None else check_belief(initial, n_symbols)
    position = np.concatenate([np.arange(a.size) for a in arrays])
    end = np.flatnonzero(position >= 1)
    code = flat[end - 1] * n_symbols + flat[end]
    if order == 1:
        return _assemble(start, np.arange(n_symbols), flat[end - 1], flat[end], restart)
    pairs, which = np.unique(code, return_inverse=True)
    context_of = np.full(flat.size, -1)
    context_of[end] = n_symbols + which
    symbols = np.concatenate([np.arange(n_symbols), pairs % n_symbols])
    third = np.flatnonzero(position >= 2)
    # From a lone symbol (the first, or after an unseen pair) and from a pair the chain goes to the pair it makes.
    origin = np.concatenate([flat[end - 1], context_of[third - 1]])
    target = np.concatenate([context_of[end], context_of[third]])
    return _assemble(start, symbols, origin, target, restart)


def _assemble(start, symbols, origin, target, restart) -> SymbolChain:
    from scipy.sparse import coo_array

    c = symbols.size
    totals = np.bincount(origin, minlength=c)
    dead = np.flatnonzero(totals == 0)
    rows, columns = np.concatenate([origin, dead]), np.concatenate([target, dead])
    matrix = coo_array((np.ones(rows.size), (rows, columns)), shape=(c, c)).tocsr()
    matrix.sum_duplicates()
    matrix.data /= np.repeat(np.maximum(totals, 1), np.diff(matrix.indptr))
    again = _checked_restart(restart, c)
    again[dead] = 1.0
    return SymbolChain(start, TransitionMatrix(matrix), symbols, again)


def _checked_restart(restart, c: int) -> np.ndarray:
    values = np.full(c, restart, dtype=float)
    if not (0 <= restart <= 1):
        raise ValueError(f"restart must be a probability, found {restart}; give a number from 0 to 1")
    return values
