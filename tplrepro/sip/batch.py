"""Batched release: w symbols at a time are one symbol of the alphabet of batches (section V of [3]).

With memory L = 1 (Theorem 5) the mechanism sees the current batch only; the belief over the next batch (Eq.
(29)) is that over its first symbol, carried along the chain. Problem (30) is problem (15) over n^w batches
with the distance summed over the batch, so the exact optimum is the programme of `tplrepro.sip.optimal`.
Algorithm 2 of [3], gradient descent, is kept beside it, repaired where it leaves the simplex of each row, and
with line 13 read as Eq. (30): s / a, not s / (a beta).
"""

from itertools import product

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.markov.transition import TransitionMatrix, as_transition_matrix
from tplrepro.sip.leakage import markov_sequences
from tplrepro.sip.optimal import OptimalResponse
from tplrepro.sip.response import Response, check_distance
from tplrepro.sip.sequence_release import SymbolChain
from tplrepro.validation import check_choice, check_distribution, check_horizon

#: Batches that a mechanism may tell apart.
LARGEST_ALPHABET = 1024
#: Steps after which the gradient descent ends at the latest.
SWEEPS = 5000


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

    `distance` is "hamming" or an array, as in `OptimalResponse`, between symbols; batches add it up. `method`
    is "exact" (the optimum of problem (30)) or "gradient" (Algorithm 2 of [3], with steps of length phi =
    `step`).

    The algorithm is kept as printed, for comparison: an entry that has met its constraint never moves again,
    so that the result depends on which entries stop first. In 15 of 30 random cases it cost more than always
    releasing the same batch.

    >>> belief = batch_belief([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], 2)
    >>> exact = BatchResponse(1.0, width=2, n_symbols=2)
    >>> response = exact.response(belief)
    >>> round(response.cost(exact.distance), 4), response.leakage <= 1.0
    (0.4311, True)
    """

    def __init__(
        self,
        epsilon: float,
        width: int,
        n_symbols: int,
        distance: str | ArrayLike = "hamming",
        method: str = "exact",
        step: float = 1e-2,
    ):
        check_choice(method, "method", ("exact", "gradient"))
        if not 0 < step < np.inf:
            raise ValueError(f"step must be a positive step length, found {step}; give such as 0.01")
        super().__init__(epsilon, batch_distance(n_symbols, width, distance))
        self.width, self.n_symbols, self.method, self.step = width, n_symbols, method, step

    def response(self, belief: ArrayLike) -> Response:
        if self.method == "exact":
            return super().response(belief)
        beta = check_distribution(belief, len(self.distance), "a belief")
        rows = np.full((beta.size, beta.size), 1.0 / beta.size)
        rows = _gradient_descent(beta, self.distance, self.epsilon, self.step, rows)
        return Response(beta, np.arange(beta.size), 0.0, beta @ rows, rows, np.arange(beta.size))


def _gradient_descent(
    belief: np.ndarray, distance: np.ndarray, epsilon: float, step: float, rows: np.ndarray
) -> np.ndarray:
    """Algorithm 2 of [3]: follow the gradient from these rows (n, n) until each entry has met its constraint."""
    gradient = distance * (belief / belief.max())[:, None]  # one step length for all, whatever the scale of the belief
    possible = np.repeat((belief > 0)[:, None], belief.size, axis=1)
    active = possible.copy()
    for _ in range(SWEEPS):
        # The gradient is centred over the entries of a row that still move, which keeps the row on the
        # simplex; positivity follows from the constraint.
        centre = (gradient * active).sum(axis=1, keepdims=True) / np.maximum(active.sum(axis=1, keepdims=True), 1)
        move = np.where(active, gradient - centre, 0.0)
        trial = rows - step * move
        marginal = belief @ trial
        violated = possible & ((trial < np.exp(-epsilon) * marginal) | (trial > np.exp(epsilon) * marginal))
        if (violated & active).any():  # an entry stops for good when the next step would violate Eq. (30)
            active &= ~violated
        elif violated.any():  # stopped entries that the marginal of their column overtakes: the whole column stops
            active[:, violated.any(axis=0)] = False
        elif np.abs(move).max() <= 1e-12:
            break
        else:
            rows = trial
    rows[belief <= 0] = belief @ rows
    return rows / rows.sum(axis=1, keepdims=True)
