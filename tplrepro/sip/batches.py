"""Batched release: w symbols at a time are one symbol of the alphabet of batches (section V of
[3]).

With memory L = 1 (Theorem 5) the mechanism sees the current batch only, and the belief over the
next batch (Eq. (29)) follows from that over its first symbol. Problem (30) is problem (15) over n^w
batches with the distance summed over the batch, so `tplrepro.sip.optimal` solves it.

**Batches that occur in data**, the frequency table of section VI of [3], are symbols of their own:

    batches = observed_batches(sequences, 5)
    chain = chain_from_sequences(batches, restart=0.05)
    mechanisms = {w: OptimalResponse(w * epsilon, batches.distance()) for w in batches.widths}
    released = release_sequences(batches, mechanisms, chain, rng=rng)
    symbols = [np.concatenate(batches.labels[output]) for output in released.outputs]

Under the estimated chain, no output changes the belief in any batch, or in any sequence of batches,
by more than its budget. The adversary may know the length of each sequence, and so the width of its
last batch. Mind three limits:

- A batch that is not in the table cannot be released: fix the table in advance, and replace other
  batches by a public rule.
- The table itself is not protected: build it from public data, or publish it with a guarantee of
  its own.
- If each batch was seen only a few times, the chain predicts the next one almost with certainty.
  Outputs then leak little to an adversary who knows the table, which says nothing about others. A
  larger `restart` makes the chain less certain; report results for several values.
"""

from __future__ import annotations
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.markov.sequences import Sequences, as_sequences
from tplrepro.markov.transition import MatrixLike, TransitionMatrix, as_transition_matrix
from tplrepro.sip.leakage import markov_sequences
from tplrepro.sip.optimal import OptimalResponse
from tplrepro.sip.response import Distance, check_distance, distance_function
from tplrepro.sip.sequence_release import SymbolChain
from tplrepro.validation import FrozenArrays, check_horizon

#: Batches that a mechanism may tell apart.
LARGEST_ALPHABET = 1024


def _check_alphabet(n_symbols: int, width: int) -> None:
    n = check_horizon(n_symbols, "n_symbols")
    w = check_horizon(width, "width")
    digits = w * np.log10(n)
    if digits > 15 or n**w > LARGEST_ALPHABET:
        digits_of_gigabytes = 2 * digits - 8.1
        raise ValueError(
            f"{n} symbols in batches of {w} make 10^{digits:.1f} batches and a response of "
            f"10^{digits_of_gigabytes:.1f} GB, the limit is {LARGEST_ALPHABET} batches; "
            "shorten the batch or merge symbols"
        )


def batch_distance(n_symbols: int, width: int, distance: str | ArrayLike = "hamming") -> np.ndarray:
    """Distance between batches: the sum over their symbols. Batch 3 of two bits is (1, 1).

    Parameters
    ----------
    n_symbols : int
        n.
    width : int
        The number w of symbols in a batch.
    distance : "hamming" or array-like (n, n)
        Between symbols.

    Returns
    -------
    array (n^w, n^w)

    Raises
    ------
    ValueError
        If there are more than 1,024 batches, or a distance is negative or not finite.

    Examples
    --------
    >>> batch_distance(2, 2).tolist()[0]
    [0.0, 1.0, 1.0, 2.0]
    """
    _check_alphabet(n_symbols, width)
    single = check_distance(distance, n_symbols)
    digits = np.indices((n_symbols,) * width).reshape(width, -1)  # the symbols of each batch
    return np.sum([single[np.ix_(digit, digit)] for digit in digits], axis=0)


def batch_belief(belief: ArrayLike, transition: MatrixLike, width: int) -> np.ndarray:
    """Belief over the next batch from that over its first symbol (Eqs. (21) and (29) of [3],
    L = 1).

    Parameters
    ----------
    belief : array-like (n,)
        The distribution of the first symbol.
    transition : TransitionMatrix or array-like (n, n)
        Pr(X_k | X_{k-1}).
    width : int
        The number w of symbols in a batch.

    Returns
    -------
    array (n^w,)

    Raises
    ------
    ValueError
        If there are more than 1,024 batches, or something is no distribution.

    Examples
    --------
    >>> batch_belief([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], 2).tolist()
    [0.45, 0.05, 0.05, 0.45]
    """
    matrix = as_transition_matrix(transition)
    _check_alphabet(matrix.n_states, width)
    return markov_sequences(belief, matrix, width).ravel()


def batch_chain(initial: ArrayLike, transition: MatrixLike, width: int) -> SymbolChain:
    """The chain of order 1 over batches of a chain over symbols.

    Parameters
    ----------
    initial : array-like (n,)
        The distribution of the first symbol.
    transition : TransitionMatrix or array-like (n, n)
        Pr(X_k | X_{k-1}).
    width : int
        The number w of symbols in a batch.

    Returns
    -------
    SymbolChain
        Over n^w batches; batches of named states are tuples.

    Raises
    ------
    ValueError
        If there are more than 1,024 batches, or something is no distribution.
    """
    matrix = as_transition_matrix(transition)
    after_symbol = np.array([batch_belief(row, matrix, width) for row in matrix.toarray()])
    states = None
    if not isinstance(matrix.states, range):
        states = product(matrix.states, repeat=width)
    last_symbol = np.arange(after_symbol.shape[1]) % matrix.n_states
    batches = TransitionMatrix(after_symbol[last_symbol], states)
    return SymbolChain.first_order(batch_belief(initial, matrix, width), batches)


class BatchResponse(OptimalResponse):
    """The optimal release of batches of w symbols (Theorem 5 of [3]).

    Parameters
    ----------
    epsilon : float
        The budget of a batch in nats, > 0.
    width : int
        The number w of symbols in a batch.
    n_symbols : int
        n; n^w may be at most 1,024.
    distance : "hamming" or array-like (n, n)
        Between symbols; batches add it up.

    Raises
    ------
    ValueError
        If there are more than 1,024 batches, or an argument is out of range.

    Examples
    --------
    >>> belief = batch_belief([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], 2)
    >>> exact = BatchResponse(1.0, width=2, n_symbols=2)
    >>> response = exact.response(belief)
    >>> round(response.cost(exact.distance), 4), response.leakage <= 1.0
    (0.4311, True)
    """

    def __init__(
        self, epsilon: float, width: int, n_symbols: int, distance: str | ArrayLike = "hamming"
    ):
        super().__init__(epsilon, batch_distance(n_symbols, width, distance))


@dataclass(frozen=True, eq=False, repr=False)
class Batches(Sequences):
    """Sequences of the batches that occur, each labelled by the tuple of its symbols."""

    # (n, w), codes of the symbols of each batch; -1 beyond the end of a shorter one
    symbols: np.ndarray
    alphabet: np.ndarray  # (m,), the symbol of each code; some may occur in no batch

    @cached_property
    def widths(self) -> np.ndarray:
        """Symbols in each batch, (n,)."""
        return np.count_nonzero(self.symbols >= 0, axis=1)

    def distance(self, between: Distance = "hamming") -> BatchDistance:
        """Distance between batches: the sum over their symbols, infinite between different widths.

        `between` symbols it is "hamming", an array (m, m) in the order of the `alphabet`, or a
        function of two arrays of symbols that broadcast against each other.
        """
        return BatchDistance(self.symbols, distance_function(between, self.alphabet.tolist()))


@dataclass(frozen=True, eq=False, repr=False)
class BatchDistance(FrozenArrays):
    """The distances of two arrays of batches (their numbers), which broadcast against each
    other."""

    symbols: np.ndarray
    between: Callable[..., np.ndarray] = np.not_equal

    def __call__(self, x: ArrayLike, y: ArrayLike) -> np.ndarray:
        total: Any = 0.0
        for symbols in self.symbols.T:
            first = symbols[np.asarray(x)]
            second = symbols[np.asarray(y)]
            both_ended = (first < 0) & (second < 0)
            one_ended = (first < 0) | (second < 0)
            at_the_end = np.where(both_ended, 0.0, np.inf)
            total = total + np.where(one_ended, at_the_end, self.between(first, second))
        return total


def observed_batches(sequences: Any, width: int, n_symbols: int | None = None) -> Batches:
    """Cut sequences into consecutive batches; the last of each sequence may be shorter.

    Parameters
    ----------
    sequences : Sequences, DataFrame, mapping, or iterable of sequences
        A DataFrame has the columns user, time and state; a mapping leads from each user to her
        sequence or sequences; a sequence holds whole numbers or labels.
    width : int
        The number w of symbols in a batch.
    n_symbols : int, optional
        The symbols are 0..n-1, instead of the values seen.

    Returns
    -------
    Batches

    Raises
    ------
    ValueError
        If the sequences are malformed, or the width is not positive.

    Examples
    --------
    >>> batches = observed_batches([[7, 30, 30, 7, 7], [30, 7, 7, 30]], 2)
    >>> batches.labels.tolist(), [own.tolist() for own in batches]
    ([(7,), (7, 30), (30, 7)], [[1, 2, 0], [2, 1]])
    >>> batches.alphabet.tolist(), batches.widths.tolist()
    ([7, 30], [1, 2, 2])
    >>> batches.distance()([1, 1], [2, 0]).tolist()
    [2.0, inf]
    """
    w = check_horizon(width, "width")
    coded = as_sequences(sequences, n_symbols)
    n_batches = -(-coded.lengths // w)
    offsets = np.append(0, np.cumsum(n_batches))
    number = np.arange(offsets[-1]) - np.repeat(offsets[:-1], n_batches)  # in its sequence
    first = np.repeat(coded.offsets[:-1], n_batches) + number * w
    end = np.repeat(coded.offsets[1:], n_batches)
    places = first[:, None] + np.arange(w)
    is_inside = places < end[:, None]
    codes_of_symbols = coded.values[np.where(is_inside, places, 0)]
    rows = np.where(is_inside, codes_of_symbols, -1)
    distinct, codes = np.unique(rows, axis=0, return_inverse=True)
    names: list = coded.labels.tolist()
    tuples = (tuple(names[k] for k in row if k >= 0) for row in distinct.tolist())
    labels = np.fromiter(tuples, object, len(distinct))
    return Batches(codes.reshape(-1), offsets, labels, coded.users, distinct, coded.labels)
