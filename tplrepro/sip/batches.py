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
    """Refuse more batches than a mechanism may tell apart."""
    n = check_horizon(n_symbols, "n_symbols")
    w = check_horizon(width, "width")
    digits = w * np.log10(n)
    is_huge = digits > 15  # n^w would take long to compute
    if is_huge or n**w > LARGEST_ALPHABET:
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
    shape = (n_symbols,) * width
    symbols_of_batches = np.indices(shape).reshape(width, -1)
    distances_by_place = []
    for symbols in symbols_of_batches:
        between_symbols = single[np.ix_(symbols, symbols)]
        distances_by_place.append(between_symbols)
    return np.sum(distances_by_place, axis=0)


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
    beliefs_after_symbols = [batch_belief(row, matrix, width) for row in matrix.toarray()]
    after_symbol = np.array(beliefs_after_symbols)
    states = None
    if not isinstance(matrix.states, range):
        states = product(matrix.states, repeat=width)
    n_batches = after_symbol.shape[1]
    last_symbol = np.arange(n_batches) % matrix.n_states
    batches = TransitionMatrix(after_symbol[last_symbol], states)
    first_batch = batch_belief(initial, matrix, width)
    return SymbolChain.first_order(first_batch, batches)


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
        between_batches = batch_distance(n_symbols, width, distance)
        super().__init__(epsilon, between_batches)


@dataclass(frozen=True, eq=False, repr=False)
class Batches(Sequences):
    """Sequences of the batches that occur, each labelled by the tuple of its symbols."""

    # (n, w), codes of the symbols of each batch; -1 beyond the end of a shorter one
    symbols: np.ndarray
    alphabet: np.ndarray  # (m,), the symbol of each code; some may occur in no batch

    @cached_property
    def widths(self) -> np.ndarray:
        """Symbols in each batch, (n,)."""
        is_symbol = self.symbols >= 0
        return np.count_nonzero(is_symbol, axis=1)

    def distance(self, between: Distance = "hamming") -> BatchDistance:
        """Distance between batches: the sum over their symbols, infinite between different widths.

        `between` symbols it is "hamming", an array (m, m) in the order of the `alphabet`, or a
        function of two arrays of symbols that broadcast against each other.
        """
        alphabet = self.alphabet.tolist()
        between_symbols = distance_function(between, alphabet)
        return BatchDistance(self.symbols, between_symbols)


@dataclass(frozen=True, eq=False, repr=False)
class BatchDistance(FrozenArrays):
    """The distances of two arrays of batches (their numbers), which broadcast against each
    other."""

    symbols: np.ndarray  # (n, w), as in `Batches`
    between: Callable[..., np.ndarray] = np.not_equal  # codes of symbols

    def __call__(self, x: ArrayLike, y: ArrayLike) -> np.ndarray:
        rows = np.asarray(x)
        columns = np.asarray(y)
        total: Any = 0.0
        for symbols_at_place in self.symbols.T:
            first = symbols_at_place[rows]
            second = symbols_at_place[columns]
            first_ended = first < 0
            second_ended = second < 0
            both_ended = first_ended & second_ended
            one_ended = first_ended | second_ended
            at_the_end = np.where(both_ended, 0.0, np.inf)
            between_symbols = self.between(first, second)
            total = total + np.where(one_ended, at_the_end, between_symbols)
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
    n_batches = -(-coded.lengths // w)  # rounded up
    offsets = np.append(0, np.cumsum(n_batches))
    number_among_all = np.arange(offsets[-1])
    first_of_sequence = np.repeat(offsets[:-1], n_batches)
    number_in_sequence = number_among_all - first_of_sequence
    start_of_sequence = np.repeat(coded.offsets[:-1], n_batches)
    end_of_sequence = np.repeat(coded.offsets[1:], n_batches)
    start_of_batch = start_of_sequence + number_in_sequence * w
    places = start_of_batch[:, None] + np.arange(w)
    is_inside = places < end_of_sequence[:, None]
    places_inside = np.where(is_inside, places, 0)
    rows = np.where(is_inside, coded.values[places_inside], -1)
    distinct, codes = np.unique(rows, axis=0, return_inverse=True)
    return Batches(
        values=codes.reshape(-1),
        offsets=offsets,
        labels=_label_batches(distinct, coded.labels),
        users=coded.users,
        symbols=distinct,
        alphabet=coded.labels,
    )


def _label_batches(symbols: np.ndarray, alphabet: np.ndarray) -> np.ndarray:
    """The tuple of the symbols of each batch, from their codes (n, w), -1 beyond its end."""
    names: list = alphabet.tolist()
    labels = np.empty(len(symbols), dtype=object)
    for number, codes in enumerate(symbols.tolist()):
        labels[number] = tuple(names[code] for code in codes if code >= 0)
    return labels
