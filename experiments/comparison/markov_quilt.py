"""The Markov Quilt Mechanism on a chain, exact (MQMExact of Song, Wang, Chaudhuri: Pufferfish
Privacy Mechanisms for Correlated Data, SIGMOD 2017).

A quilt of a time t is a set of other times that separates t from all times beyond them: on a chain
the time a steps earlier, the time b steps later, both, or none. Its max-influence is the largest
log-likelihood ratio of the states at the quilt between two states at t. Laplace noise with the same
budget at every time keeps a level if each time has a quilt with  budget * (times within the quilt)
+ max-influence <= level: the times within are hidden as a group, and the times beyond reveal no
more than the quilt does. Without a quilt this is group privacy, their GroupDP.
"""

from collections.abc import Iterator

import numpy as np

from experiments.comparison.setting import Setting
from tplrepro.markov.transition import TransitionMatrix

#: Relative rounding error of a few operations, added on the safe side.
ROUNDING = 2.0**-49


def quilt_level(setting: Setting, budget: float) -> float:
    """The smallest level in nats that the quilts prove for releases with this budget at each time
    of the setting."""
    largest = max(float((budget * sizes + e).min()) for sizes, e in _quilts(setting))
    return largest * (1.0 + ROUNDING)


def _quilts(setting: Setting) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """For each time, the number of times within each of its quilts, and the quilts'
    max-influences."""
    horizon = setting.horizon
    sides = [
        _influences(side, horizon)
        for side in (setting.adversary.reversed, setting.adversary.transitions)
    ]
    # The states at both ends of a quilt are independent given the state between them.
    influence = np.array([[(before + after).max() for after in sides[1]] for before in sides[0]])
    for t in range(horizon):
        # Distance 0 means that the quilt has no time on this side.
        before, after = np.arange(t + 1), np.arange(horizon - t)
        sizes = np.where(before, before, t + 1)[:, None] + np.where(after, after, horizon - t) - 1
        yield sizes, influence[: t + 1, : horizon - t]


def _influences(matrix: TransitionMatrix, horizon: int) -> list[np.ndarray]:
    """The largest log Pr(value at each distance | i) - log Pr(.. | j), (n, n), for distances 0 .. T
    - 1; 0 at 0."""
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
