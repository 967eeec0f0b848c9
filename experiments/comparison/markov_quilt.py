"""The Markov Quilt Mechanism on a chain, exact (MQMExact of Song, Wang, Chaudhuri: Pufferfish Privacy Mechanisms for
Correlated Data, SIGMOD 2017).

A quilt of a time is a set of other times that, once known, makes all times beyond them independent of it: on a chain
the one a times earlier, the one b times later, both, or none. Its max-influence is the largest log-likelihood ratio of
the values at the quilt between two values at the time. Laplace noise with the same budget at every time keeps a level
if each time has a quilt with  budget * (times within the quilt) + max-influence <= level:  the times within are hidden
as a group, and what lies beyond tells no more than the quilt does. No quilt at all is group privacy, their GroupDP.
"""

from collections.abc import Iterator

import numpy as np

from tplrepro.markov.transition import TransitionMatrix

__all__ = ["quilt_budget", "quilt_level"]

#: Relative rounding of a few operations, put on the safe side.
ROUNDING = 2.0**-49


def quilt_level(budget: float, backward: TransitionMatrix, forward: TransitionMatrix, horizon: int) -> float:
    """The least level that the quilts prove of releases with this budget at each of T = `horizon` times; nats.

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
    """For each time, how many times lie within each of its quilts, and the quilts' max-influences."""
    sides = [_influences(matrix, horizon) for matrix in (backward, forward)]
    # of the values at both ends of a quilt, which are independent given the one between
    both = np.array([[(before + after).max() for after in sides[1]] for before in sides[0]])
    for t in range(horizon):
        # at distance 0 stands that there is none on this side
        before, after = np.arange(t + 1), np.arange(horizon - t)
        sizes = np.where(before, before, t + 1)[:, None] + np.where(after, after, horizon - t) - 1
        yield sizes, both[: t + 1, : horizon - t]


def _influences(matrix: TransitionMatrix, horizon: int) -> list[np.ndarray]:
    """The largest log Pr(value at each distance | i) - log Pr(.. | j), (n, n), for distances 0 .. T - 1; 0 at 0."""
    n = matrix.n_states
    step, power, found = matrix.toarray(), np.eye(n), [np.zeros((n, n))]
    for distance in range(1, horizon):
        power = power @ step  # each entry to a share of distance * n * ROUNDING
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(power)
            largest = np.array([np.nanmax(row - logs, axis=1, initial=0.0) for row in logs])
        found.append(largest + distance * n * ROUNDING)
    return found
