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
from dataclasses import dataclass

import numpy as np

from experiments.comparison.setting import Setting
from tplrepro.markov.transition import TransitionMatrix

#: Relative rounding error of a few operations, added on the safe side.
ROUNDING = 2.0**-49


def quilt_level(setting: Setting, budget: float) -> float:
    """The smallest level in nats that the quilts prove for releases with this budget at each time
    of the setting."""
    levels = [
        float((budget * quilts.sizes + quilts.influences).min()) for quilts in _quilts(setting)
    ]
    return max(levels) * (1.0 + ROUNDING)


@dataclass(frozen=True)
class Quilts:
    """All quilts of a time, by their distances before it and after it; 0: no time on this side."""

    sizes: np.ndarray  # the number of times within each
    influences: np.ndarray  # the max-influence of each


def _quilts(setting: Setting) -> Iterator[Quilts]:
    """The quilts of each time."""
    horizon = setting.horizon
    influences_before = _influences(setting.adversary.reversed, horizon)
    influences_after = _influences(setting.adversary.transitions, horizon)
    # The states at both ends of a quilt are independent given the state between them.
    influences = np.array(
        [[(before + after).max() for after in influences_after] for before in influences_before]
    )
    for t in range(horizon):
        distances_before = np.arange(t + 1)
        distances_after = np.arange(horizon - t)
        times_before = np.where(distances_before, distances_before, t + 1)
        times_after = np.where(distances_after, distances_after, horizon - t)
        sizes = times_before[:, None] + times_after - 1
        yield Quilts(sizes, influences[: t + 1, : horizon - t])


def _influences(matrix: TransitionMatrix, horizon: int) -> list[np.ndarray]:
    """The largest log Pr(value at each distance | i) - log Pr(.. | j), (n, n), of a chain, for
    distances 0 .. T - 1; 0 at 0."""
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
