"""Theorem C against all outputs of small mechanisms, and against its limits."""

from itertools import product

import numpy as np
import pytest

import tplrepro as tpl
from tests.tplrepro.leakage.matrices import BACKWARD, FORWARD
from tplfrontier.profiles import intervals
from tplfrontier.profiles.gaussian import gaussian_delta
from tplfrontier.profiles.intervals import GaussianRows, Intervals, LossGrid
from tplrepro.leakage.temporal import LossCycle, loss_cycles


def divergences(laws, other, gammas):
    """E_g of each law (..., K) against another, (..., G)."""
    gaps = laws[..., None, :] - gammas[:, None] * other[..., None, :]
    return np.maximum(gaps, 0.0).sum(axis=-1)


def random_chain(rng, n, horizon):
    """The law of the first state, and the forward and the backward matrices, all without zeros."""
    concentration = rng.choice([0.2, 1.0, 3.0])
    forward = [
        0.999 * rng.dirichlet([concentration] * n, n) + 0.001 / n for _ in range(horizon - 1)
    ]
    if rng.random() < 0.3:
        forward = [forward[0]] * (horizon - 1)
    if rng.random() < 0.3:
        forward = [0.9 * np.eye(n) + 0.1 * matrix for matrix in forward]
    law = rng.dirichlet([1.0] * n)
    initial = law
    backward = []
    for matrix in forward:
        joint = matrix * law[:, None]
        law = law @ matrix
        backward.append(joint.T / law[:, None])
    return initial, forward, backward


def random_mechanism(rng, paths):
    """The law of the output for each path, (paths, K)."""
    outputs = int(rng.integers(2, 9))
    kind = rng.integers(3)
    if kind == 0:
        return rng.dirichlet([rng.choice([0.3, 1.0, 5.0])] * outputs, len(paths))
    if kind == 1:
        sums = paths @ rng.normal(size=paths.shape[1])
        places = np.linspace(sums.min() - 2.0, sums.max() + 2.0, outputs)
        weights = np.exp(-((sums[:, None] - places) ** 2) / rng.uniform(0.2, 18.0))
    else:
        weights = np.exp(rng.normal(size=(len(paths), outputs)) * rng.uniform(0.1, 1.0))
    return weights / weights.sum(axis=1, keepdims=True)


def profiles_of_intervals(paths, mechanism, gammas):
    """The largest E_g of two paths that differ in an interval only, for each interval."""
    of_pairs = divergences(mechanism[:, None, :], mechanism[None, :, :], gammas)
    found = {}
    horizon = paths.shape[1]
    for start in range(horizon):
        for end in range(start, horizon):
            outside = np.delete(paths, np.s_[start : end + 1], axis=1)
            agree = (outside[:, None] == outside[None]).all(axis=2)
            found[start, end] = of_pairs[agree].max(axis=0) * (1.0 + 1e-13)
    return found


def check_all_outputs(seed, monkeypatch):
    """No E_g about a time exceeds its bound, at any point of the grid."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 4))
    horizon = int(rng.integers(2, 7 - n))
    initial, forward, backward = random_chain(rng, n, horizon)
    paths = np.array([*product(range(n), repeat=horizon)])
    weights = initial[paths[:, 0]]
    for time, matrix in enumerate(forward):
        weights = weights * matrix[paths[:, time], paths[:, time + 1]]
    mechanism = random_mechanism(rng, paths)
    grid = LossGrid(float(rng.choice([0.03, 0.1])), int(rng.choice([24, 48])))
    points = grid.points
    gammas = np.exp(grid.step * np.arange(-points, 2 * points))
    found = profiles_of_intervals(paths, mechanism, gammas)

    def rows(start, ends):
        return np.stack([found[start, end] for end in ends.tolist()])

    monkeypatch.setattr(intervals, "EXACT", int(rng.choice([1, 48])))
    monkeypatch.setattr(intervals, "BLOCK", int(rng.integers(1, 4)))
    monkeypatch.setattr(intervals, "DIGITS", 1)
    sides = [
        LossCycle([tpl.PrivacyLossFunction(matrix) for matrix in matrices], [])
        for matrices in (backward, forward)
    ]
    series = Intervals(*sides, (0, horizon - 1), grid)
    bounds = np.concatenate([series.bounds(block, rows) for block in series.blocks(range(horizon))])
    tightest = 0.0
    for time in range(horizon):
        of_state = [weights * (paths[:, time] == state) for state in range(n)]
        laws = np.array([law @ mechanism / law.sum() for law in of_state])
        true = divergences(laws[:, None], laws[None], np.exp(grid.losses)).max(axis=(0, 1))
        assert (true <= bounds[time] * (1.0 + 1e-12) + 1e-15).all()
        tightest = max(tightest, (true / bounds[time])[bounds[time] > 1e-9].max(initial=0.0))
    return tightest


def test_no_mechanism_leaks_more_than_its_intervals_allow(monkeypatch):
    tightest = [check_all_outputs(seed, monkeypatch) for seed in range(40)]
    assert max(tightest) > 0.999


@pytest.mark.slow
def test_no_mechanism_of_many_leaks_more_than_its_intervals_allow(monkeypatch):
    for seed in range(1000, 1600):
        check_all_outputs(seed, monkeypatch)


def series_of(backward, forward, horizon, grid):
    losses = loss_cycles(backward, forward)
    return Intervals(losses.backward, losses.forward, (0, horizon - 1), grid)


def bounds_of_lengths(series, mu_of_length, times):
    """The bounds about some times where data that differ in an interval are mu_of_length(its
    length) apart."""
    gaussian = GaussianRows(series.grid)

    def rows(start, ends):
        return gaussian.rows(mu_of_length(ends - start + 1.0))

    return np.concatenate([series.bounds(block, rows) for block in series.blocks(times)])


def test_without_knowledge_of_a_side_only_the_time_itself_counts():
    grid = LossGrid(0.01, 200)
    series = series_of(None, None, 9, grid)
    bounds = bounds_of_lengths(series, np.sqrt, range(9))
    exact = gaussian_delta(1.0, grid.losses)
    assert (bounds >= exact).all()
    np.testing.assert_allclose(bounds, np.tile(exact, (9, 1)), rtol=0.02)


def test_who_never_moves_leaks_what_all_times_leak():
    grid = LossGrid(0.02, 200)
    series = series_of(np.eye(2), np.eye(2), 9, grid)
    bounds = bounds_of_lengths(series, np.sqrt, range(9))
    exact = gaussian_delta(3.0, grid.losses)
    assert (bounds >= exact).all()
    np.testing.assert_allclose(bounds, np.tile(exact, (9, 1)), rtol=0.02)


def test_checkpoints_cost_little(monkeypatch):
    grid = LossGrid(1.0 / 32, 128)
    horizon = 60

    def mu_of_length(length):
        return 0.1 * np.sqrt(length)

    few = bounds_of_lengths(
        series_of(BACKWARD, FORWARD, horizon, grid), mu_of_length, range(horizon)
    )
    monkeypatch.setattr(intervals, "EXACT", horizon)
    exact = bounds_of_lengths(
        series_of(BACKWARD, FORWARD, horizon, grid), mu_of_length, range(horizon)
    )
    is_likely = exact > 1e-6
    assert (few >= exact * (1.0 - 1e-9))[is_likely].all()
    assert (few[is_likely] <= 1.1 * exact[is_likely]).all()


def test_a_walk_whose_single_steps_tell_everything_is_coupled_over_several():
    n = 6
    walk = np.zeros((n, n))
    for state in range(n):
        walk[state, (state - 1) % n] = 0.25
        walk[state, state] = 0.5
        walk[state, (state + 1) % n] = 0.25
    assert tpl.PrivacyLossFunction(walk).is_identity
    grid = LossGrid(1.0 / 16, 64)
    series = series_of(walk, walk, 40, grid)
    bounds = bounds_of_lengths(series, lambda length: 0.05 * np.sqrt(length), range(40))
    whole = gaussian_delta(0.05 * np.sqrt(40.0), grid.losses)
    assert (bounds[20] < 0.5 * whole)[16:48].all()
