"""Algorithm 2 of [3], gradient descent for batches, beside the exact optimum of
`tplrepro.sip.batches`.

It is kept as printed, but repaired where it leaves the simplex of each row, and with line 13 read
as Eq. (30): s / a, not s / (a beta). An entry that has met its constraint never moves again, so
that the result depends on which entries stop first: in 15 of 30 random cases it cost more than
always releasing the same batch.
"""

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.sip.batches import batch_distance
from tplrepro.sip.response import BeliefMechanism, Response
from tplrepro.validation import check_distribution

#: Steps after which the descent ends at the latest.
SWEEPS = 5000


class GradientResponse(BeliefMechanism):
    """Arguments as in `BatchResponse`, with the Hamming distance; `step` is the step length phi of
    the descent."""

    def __init__(self, epsilon: float, width: int, n_symbols: int, step: float = 1e-2):
        super().__init__(epsilon)
        self.distance = batch_distance(n_symbols, width)
        self.step = step

    def response(self, belief: ArrayLike) -> Response:
        """The response to a belief (n,) over batches, by the descent from equal rows."""
        beta = check_distribution(belief, len(self.distance), "a belief")
        rows = np.full((beta.size, beta.size), 1.0 / beta.size)
        rows = _descend(beta, self.distance, self.epsilon, self.step, rows)
        every = np.arange(beta.size)
        return Response(beta, every, 0.0, beta @ rows, rows, every)


def _descend(
    belief: np.ndarray, distance: np.ndarray, epsilon: float, step: float, rows: np.ndarray
) -> np.ndarray:
    """Follow the gradient until each entry has met its constraint, from `rows` (n, n), Pr(output |
    batch); `belief` (n,), and `distance` (n, n) from a batch to an output."""
    # one step length for all, whatever the scale of the belief
    gradient = distance * (belief / belief.max())[:, None]
    possible = np.repeat((belief > 0)[:, None], belief.size, axis=1)
    active = possible.copy()
    for _ in range(SWEEPS):
        # The gradient is centred over the entries of a row that still move, which keeps the row on
        # the simplex; positivity follows from the constraint.
        n_active = np.maximum(active.sum(axis=1, keepdims=True), 1)
        centre = (gradient * active).sum(axis=1, keepdims=True) / n_active
        move = np.where(active, gradient - centre, 0.0)
        trial = rows - step * move
        marginal = belief @ trial
        too_small = trial < np.exp(-epsilon) * marginal
        too_large = trial > np.exp(epsilon) * marginal
        violated = possible & (too_small | too_large)
        # an entry stops for good when the next step would violate Eq. (30)
        if (violated & active).any():
            active &= ~violated
        # stopped entries that the marginal of their column overtakes: the whole column stops
        elif violated.any():
            active[:, violated.any(axis=0)] = False
        elif np.abs(move).max() <= 1e-12:
            break
        else:
            rows = trial
    rows[belief <= 0] = belief @ rows
    return rows / rows.sum(axis=1, keepdims=True)
