import dataclasses

import numpy as np
import pytest

from tplrepro import comparison


@pytest.fixture(scope="session")
def setting():
    """Six cells in two rows of three, walked by 40 users for 5 times; the chain is that of the walks."""
    rng = np.random.default_rng(5)
    positions = np.array([(x + 0.5, y + 0.5) for y in range(2) for x in range(3)])
    near = np.linalg.norm(positions[:, None] - positions, axis=-1) <= 1
    walks = []
    for _ in range(20):
        walk = [int(rng.integers(6))]
        for _ in range(9):
            walk.append(int(rng.choice(np.flatnonzero(near[walk[-1]]))) if rng.random() < 0.4 else walk[-1])
        walks.append(np.array(walk))
    return comparison.setting_from_sequences(walks, positions, horizon=5, smoothing=0.5, radius=1.0)


@pytest.fixture(scope="session")
def mechanisms(setting):
    return comparison.mechanisms(setting, window=2, block=2.0, radius=1.0)


@pytest.fixture(scope="session")
def leakage(setting):
    """A function from a release to the measured leakage of its runs, (m, T)."""
    return lambda release: comparison.measured_leakage(setting.adversary.told(release.log_likelihoods))


@pytest.fixture(scope="session")
def crowd(setting):
    """A function that draws users from the chain, as a setting of their own."""

    def draw(rng, n_users, horizon):
        matrix, initial = setting.adversary.transitions.toarray(), setting.adversary.initial
        paths = [rng.choice(6, size=n_users, p=initial)]
        for _ in range(horizon - 1):
            paths.append((matrix[paths[-1]].cumsum(axis=1) < rng.random((n_users, 1))).sum(axis=1))
        return dataclasses.replace(setting, paths=np.array(paths).T)

    return draw
