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
