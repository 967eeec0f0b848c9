"""DPHMM in the comparison: each user adds K-norm noise, fitted to a policy graph, to her position ([5]).

The chain of the comparison holds every cell possible at every time, so that the constraint of Definition 4.1 never
binds, and the mechanism is the same for all users and times. Then the released points tell a log-likelihood of each
cell, and no history matters.

References
----------
[5] Y. Xiao, Y. Shen, J. Liu, L. Xiong, H. Jin, X. Xu: DPHMM: Customizable Data Release with Differential Privacy via
    Hidden Markov Model. 2016.
"""

from __future__ import annotations

import numpy as np

from tplrepro.comparison.release import Release
from tplrepro.dphmm.mechanisms import KNormMechanism
from tplrepro.dphmm.policy_graph import PolicyGraph

__all__ = ["blocks", "mechanism_for", "release_by_policy"]


def blocks(positions, size: float) -> list[list[int]]:
    """Cells grouped by squares of side `size`, for `PolicyGraph.categorical`.

    >>> blocks(np.array([[0.5, 0.5], [1.5, 0.5], [2.5, 0.5]]), 2.0)
    [[0, 1], [2]]
    """
    places = np.asarray(positions, dtype=float)
    square = np.floor(places / size + 1e-9)
    _, group = np.unique(square, axis=0, return_inverse=True)
    return [np.flatnonzero(group == g).tolist() for g in range(group.max() + 1)]


def mechanism_for(setting, policy: PolicyGraph, epsilon: float) -> KNormMechanism:
    """K-norm noise for the policy graph, made protectable (section 6.1 of [5]), on the positions of the cells."""
    return KNormMechanism.protecting(policy, setting.positions, epsilon)


def release_by_policy(setting, policy: PolicyGraph, epsilon: float, rng: np.random.Generator) -> Release:
    """A noisy position a user and time.

    Parameters
    ----------
    setting : Setting
    policy : PolicyGraph over the cells
    epsilon : float > 0, nats: the loss of one release between cells that the policy connects
    rng : numpy.random.Generator

    Returns
    -------
    Release; all N users are targets. There are no counts without a model: noise wider than a cell cannot be inverted.
    """
    mechanism = mechanism_for(setting, policy, epsilon)
    size = setting.paths.size
    noise = mechanism.sample(np.zeros(2), size=size, rng=rng).reshape(*setting.paths.shape, 2)
    values = setting.positions[setting.paths] + noise
    return Release(mechanism.log_density(values[..., None, :], setting.positions), None, None)
