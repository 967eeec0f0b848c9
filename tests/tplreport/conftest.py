"""The fixtures of the recorded data sets' tests serve here as well; noise that is repeated."""

import numpy as np
import pytest

from tests.experiments.datasets.conftest import own_folders, real_data  # noqa: F401


@pytest.fixture
def seeded_noise(monkeypatch):
    """Noise of counts that has its distribution but is the same in each run, for tests of what is
    computed from noisy counts: a failure that cannot be repeated helps nobody."""
    rng = np.random.default_rng(0)

    def add_noise(counts, levels, sensitivity, gaussian):
        shape = counts.shape
        levels = levels.reshape(-1, *[1] * (counts.ndim - 1))
        whole = counts.dtype.kind == "i"
        if gaussian:
            noise = rng.normal(0.0, sensitivity * levels, shape)
            if whole:
                noise = np.rint(noise)
        elif whole:
            stop = -np.expm1(-levels / sensitivity)
            noise = rng.geometric(stop, shape) - rng.geometric(stop, shape)
        else:
            noise = rng.laplace(0.0, sensitivity / levels, shape)
        return counts + noise.astype(counts.dtype)

    monkeypatch.setattr("tplreport.publishing.counts._add_noise", add_noise)
