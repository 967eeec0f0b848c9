"""Simulated users, their floors, and floors that are too high."""

import numpy as np
import pytest

import tplrepro as tpl
from experiments import private_model as models
from tests.tplreport.learning.test_learn import weeks
from tplreport.learning.first_steps import FirstSteps

P = tpl.TransitionMatrix([[0.8, 0.2], [0.1, 0.9]])


def test_counts_of_all_users_have_the_law_of_their_walks():
    rng = np.random.default_rng(0)
    sums = models.counts_of_walks(P, 20_000, rng)
    single = FirstSteps.of(weeks(20_000, rng, P), 2, models.STEPS, None).counts
    assert sums.sum() == single.sum() == 20_000 * models.STEPS
    np.testing.assert_allclose(sums, single, rtol=0.03)


def test_a_floor_is_kept_up_to_that_of_the_hull():
    rng = np.random.default_rng(1)
    counts = models.counts_of_walks(P, 3000, rng)
    for noise in (0, 400):
        floor = models.floor_of_counts(counts, 0.3, noise)
        assert models.is_kept(counts, noise, floor * (1 - 1e-9), 0.3)
        assert not models.is_kept(counts, noise, floor * 1.01, 0.3)


def test_floors_are_too_high_where_users_differ_and_there_alone():
    rng = np.random.default_rng(2)
    alike = models.Cell(2, 3000, 0.4)
    outcomes = models.judge((alike, models.Cell(2, 3000, 0.4, differ=True)), 10, rng=rng)
    assert outcomes["method"].tolist() == 2 * [models.EXACT, models.MATRIX, models.FLOOR]
    too_high = outcomes.groupby("differ")[models.TOO_HIGH].sum()
    assert too_high[False] == 0
    assert too_high[True] >= 20
    by_method = outcomes[~outcomes["differ"]].set_index("method")
    assert by_method["floor"].is_monotonic_decreasing
    assert by_method[models.OF_EXACT][models.EXACT] == 1.0


def test_the_noise_of_the_simulation_is_that_of_the_library():
    rng = np.random.default_rng(3)
    noisy, noise = models.with_noise(np.full((30, 30), 10_000), 0.5, rng)
    scale = 2 * models.STEPS / 0.5
    assert np.abs(noisy - 10_000).mean() == pytest.approx(scale, rel=0.15)
    added = noisy - 10_000
    assert max(np.maximum(part, 0).sum(axis=1).max() for part in (added, -added)) <= noise
