"""The Markov Quilt Mechanism on a chain, exact (MQMExact of Song, Wang, Chaudhuri: Pufferfish Privacy Mechanisms for
Correlated Data, SIGMOD 2017).

A quilt of a time t is a set of other times that separates t from all times beyond them: on a chain the time a
steps earlier, the time b steps later, both, or none. Its max-influence is the largest log-likelihood ratio of
the states at the quilt between two states at t. Laplace noise with the same budget at every time keeps a
level if each time has a quilt with  budget * (times within the quilt) + max-influence <= level: the times
within are hidden as a group, and the times beyond reveal no more than the quilt does. Without a quilt this is
group privacy, their GroupDP.
"""

from collections.abc import Iterator

import numpy as np

from tplrepro.markov.transition import TransitionMatrix, as_transition_matrix
from tplrepro.states import common_states

#: Relative rounding error of a few operations, added on the safe side.
ROUNDING = 2.0**-49


def quilt_level(budget: float, backward: TransitionMatrix, forward: TransitionMatrix, horizon: int) -> float:
    """The smallest level in nats that the quilts prove for releases with this budget at each of T = `horizon` times.

    `backward` and `forward` are those of one stationary chain.

    >>> chain = TransitionMatrix([[0.8, 0.2], [0.2, 0.8]])
    >>> [round(quilt_level(0.1, chain, chain, horizon), 4) for horizon in (5, 50, 500)]
    [0.5, 1.2117, 1.2117]
    """
    largest = max(float((budget * sizes + e).min()) for sizes, e in _quilts(backward, forward, horizon))
    return largest * (1.0 + ROUNDING)


def quilt_budget(level: float, backward: TransitionMatrix, forward: TransitionMatrix, horizon: int) -> float:
    """The largest budget of each release whose `quilt_level` is at most `level`: 1 / sigma_max of the paper; nats.

    >>> chain = TransitionMatrix([[0.8, 0.2], [0.2, 0.8]])
    >>> round(quilt_budget(1.0, chain, chain, 50), 6), round(quilt_level(0.076481, chain, chain, 50), 4)
    (0.076481, 1.0)
    """
    least = min(float(((level - e) / sizes).max()) for sizes, e in _quilts(backward, forward, horizon))
    return least * (1.0 - ROUNDING)


def _quilts(
    backward: TransitionMatrix, forward: TransitionMatrix, horizon: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """For each time, the number of times within each of its quilts, and the quilts' max-influences."""
    matrices = as_transition_matrix(backward), as_transition_matrix(forward)
    common_states(matrix.states for matrix in matrices)
    sides = [_influences(matrix, horizon) for matrix in matrices]
    # The states at both ends of a quilt are independent given the state between them.
    influence = np.array([[(before + after).max() for after in sides[1]] for before in sides[0]])
    for t in range(horizon):
        # Distance 0 means that the quilt has no time on this side.
        before, after = np.arange(t + 1), np.arange(horizon - t)
        sizes = np.where(before, before, t + 1)[:, None] + np.where(after, after, horizon - t) - 1
        yield sizes, influence[: t + 1, : horizon - t]


def _influences(matrix: TransitionMatrix, horizon: int) -> list[np.ndarray]:
    """The largest log Pr(value at each distance | i) - log Pr(.. | j), (n, n), for distances 0 .. T - 1; 0 at 0."""
    n = matrix.n_states
    step = matrix.toarray()
    power = np.eye(n)
    influences = [np.zeros((n, n))]
    for distance in range(1, horizon):
        power = power @ step  # relative error of each entry: at most distance * n * ROUNDING
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(power)
            largest = np.array([np.nanmax(row - logs, axis=1, initial=0.0) for row in logs])
        influences.append(largest + distance * n * ROUNDING)
    return influences
