import dataclasses

import numpy as np
import pytest

from experiments import comparison
from experiments.comparison.calibration import realised_leakage


def walk(rng, matrix, initial, n_users, horizon):
    paths = [rng.choice(len(initial), size=n_users, p=initial)]
    for _ in range(horizon - 1):
        paths.append((matrix[paths[-1]].cumsum(axis=1) < rng.random((n_users, 1))).sum(axis=1))
    return np.array(paths).T


@pytest.fixture(scope="session")
def setting():
    """Six cells in two rows of three, walked by 40 users for 5 times; the chain is that of the
    walks."""
    rng = np.random.default_rng(5)
    positions = np.array([(x + 0.5, y + 0.5) for y in range(2) for x in range(3)])
    near = np.linalg.norm(positions[:, None] - positions, axis=-1) <= 1
    walks = walk(
        rng,
        0.6 * np.eye(6) + 0.4 * near / near.sum(axis=1, keepdims=True),
        np.full(6, 1 / 6),
        20,
        10,
    )
    return comparison.setting_from_sequences(
        list(walks), positions, horizon=5, smoothing=0.5, radius=1.0
    )


@pytest.fixture(scope="session")
def mechanisms(setting):
    return comparison.mechanisms(setting, window=2, block=2.0, radius=1.0)


@pytest.fixture(scope="session")
def leakage(setting):
    """A function from a release to the measured leakage of its runs, (m, T)."""
    return lambda release: realised_leakage(
        setting.adversary.output_log_likelihoods(release.log_likelihoods)
    )


@pytest.fixture(scope="session")
def crowd(setting):
    """A function that draws users from the chain, as a setting of their own."""
    chain = setting.adversary.transitions.toarray(), setting.adversary.initial
    return lambda rng, *size: dataclasses.replace(setting, paths=walk(rng, *chain, *size))
