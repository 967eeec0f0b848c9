"""Baum-Welch on models that are known."""

import numpy as np
import pytest

from experiments.datasets import hidden
from experiments.datasets.hidden import fit_hidden_chain

MATRIX = np.array([[0.9, 0.1, 0.0], [0.05, 0.85, 0.1], [0.1, 0.0, 0.9]])


@pytest.fixture(scope="module")
def moving():
    rng = np.random.default_rng(5)
    states = [[0], [0]]
    for walk, steps in zip(states, (1000, 400), strict=True):
        while len(walk) < steps:
            walk.append(rng.choice(3, p=MATRIX[walk[-1]]))
    places = np.array([[0.0, 0.0], [3.0, 0.0], [5.0, 4.0]])
    return [places[s] + rng.normal(size=(len(s), 2)) * [0.5, 0.7] for s in states]


def test_the_fit_recovers_a_known_gaussian_chain(moving):
    chain = fit_hidden_chain(moving, 3, rng=np.random.default_rng(0), restarts=2)
    assert chain.converged
    assert np.abs(chain.matrix.probabilities - MATRIX).max() < 0.04
    assert np.abs(chain.means - [[0, 0], [3, 0], [5, 4]]).max() < 0.1


def test_a_fit_does_not_depend_on_units_and_warns_where_iterations_run_out(moving, monkeypatch):
    two_units = moving[1], moving[1] * 1e-5 + 7.0
    plain, scaled = (
        fit_hidden_chain([one], 3, rng=np.random.default_rng(1), restarts=2) for one in two_units
    )
    assert scaled.matrix.probabilities == pytest.approx(plain.matrix.probabilities, abs=1e-6)
    assert (scaled.means - 7.0) * 1e5 == pytest.approx(plain.means, abs=1e-5)
    monkeypatch.setattr(hidden, "MOST_ITERATIONS", 2)
    with pytest.warns(UserWarning, match="stopped after 2 iterations"):
        chain = fit_hidden_chain([moving[1]], 3, rng=np.random.default_rng(0), restarts=1)
    assert not chain.converged
