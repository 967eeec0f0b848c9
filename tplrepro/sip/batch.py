"""Batched release: w symbols at a time are one symbol of the alphabet of batches (section V of [3]).

With memory L = 1 (Theorem 5) the mechanism sees the current batch only; the belief over the next batch (Eq.
(29)) is that over its first symbol, carried along the chain. Problem (30) is problem (15) over n^w batches
with the distance summed over the batch, so the exact optimum is the programme of `tplrepro.sip.optimal`.
"""

from itertools import product

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.markov.transition import TransitionMatrix, as_transition_matrix
from tplrepro.sip.leakage import markov_sequences
from tplrepro.sip.optimal import OptimalResponse
from tplrepro.sip.response import check_distance
from tplrepro.sip.sequence_release import SymbolChain
from tplrepro.validation import check_horizon

#: Batches that a mechanism may tell apart.
LARGEST_ALPHABET = 1024


def _check_alphabet(n_symbols: int, width: int) -> None:
    n, w = check_horizon(n_symbols, "n_symbols"), check_horizon(width, "width")
    digits = w * np.log10(n)
    if digits > 15 or n**w > LARGEST_ALPHABET:
        raise ValueError(
            f"{n} symbols in batches of {w} make 10^{digits:.1f} batches and a response of 10^{2 * digits - 8.1:.1f} "
            f"GB, the limit is {LARGEST_ALPHABET} batches; shorten the batch or merge symbols"
        )


def batch_distance(n_symbols: int, width: int, distance: str | ArrayLike = "hamming") -> np.ndarray:
    """Distance between batches, (n^w, n^w): the sum over their symbols; batch 3 of two bits is (1, 1).

    >>> batch_distance(2, 2).tolist()[0]
    [0.0, 1.0, 1.0, 2.0]
    """
    _check_alphabet(n_symbols, width)
    single = check_distance(distance, n_symbols)
    digits = np.indices((n_symbols,) * width).reshape(width, -1)  # the symbols of each batch
    return np.sum([single[np.ix_(digit, digit)] for digit in digits], axis=0)


def batch_belief(belief: ArrayLike, transition: TransitionMatrix | ArrayLike, width: int) -> np.ndarray:
    """Belief over the next batch, (n^w,), from that over its first symbol (Eqs. (21) and (29) of [3], L = 1).

    >>> batch_belief([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], 2).tolist()
    [0.45, 0.05, 0.05, 0.45]
    """
    matrix = as_transition_matrix(transition)
    _check_alphabet(matrix.n_states, width)
    return markov_sequences(belief, matrix, width).ravel()


def batch_chain(initial: ArrayLike, transition: TransitionMatrix | ArrayLike, width: int) -> SymbolChain:
    """The chain of order 1 over batches that a chain over symbols makes; batches of named states are tuples."""
    matrix = as_transition_matrix(transition)
    after = np.array([batch_belief(row, matrix, width) for row in matrix.toarray()])
    states = None if isinstance(matrix.states, range) else product(matrix.states, repeat=width)
    batches = TransitionMatrix(after[np.arange(after.shape[1]) % matrix.n_states], states)
    return SymbolChain.first_order(batch_belief(initial, matrix, width), batches)


class BatchResponse(OptimalResponse):
    """Release of batches of w symbols within a budget of `epsilon` nats for each batch; n^w may be at most 1,024.

    `distance` is "hamming" or an array, as in `OptimalResponse`, between symbols; batches add it up.

    >>> belief = batch_belief([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], 2)
    >>> exact = BatchResponse(1.0, width=2, n_symbols=2)
    >>> response = exact.response(belief)
    >>> round(response.cost(exact.distance), 4), response.leakage <= 1.0
    (0.4311, True)
    """

    def __init__(self, epsilon: float, width: int, n_symbols: int, distance: str | ArrayLike = "hamming"):
        super().__init__(epsilon, batch_distance(n_symbols, width, distance))
        self.width, self.n_symbols = width, n_symbols
