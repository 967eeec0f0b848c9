import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tplrepro import comparison
from tplrepro.comparison import Adversary
from tplrepro.markov import TransitionMatrix, random_matrix
from tplrepro.markov.filtering import forward_backward, output_log_likelihoods

RNG = np.random.default_rng(11)


def leakage(told, matrix, initial):
    return comparison.measured_leakage(output_log_likelihoods(told, matrix, initial))


def test_cells_that_are_ruled_out_leak_without_bound():
    """Exact zeros: an impossible output, and a cell that is impossible whatever is released."""
    matrix, initial = np.array([[0.7, 0.3, 0], [0, 0.5, 0.5], [0.2, 0.2, 0.6]]), np.array([0.5, 0.25, 0.25])
    told = output_log_likelihoods([[0.0, -1, -2], [-np.inf, 0, -1], [0, -0.5, -0.1]], matrix, initial)
    assert comparison.measured_leakage(told)[1] == np.inf
    # The two cells that remain are still to be told apart.
    assert np.isfinite(comparison.measured_leakage(told, [(1, 2)])[1])
    never = output_log_likelihoods([[0.0, -1.0]], np.eye(2), [1.0, 0.0])
    assert comparison.measured_leakage(never) == comparison.measured_leakage(never, [(0, 1)]) == 0


def test_huge_likelihoods_do_not_underflow():
    found = output_log_likelihoods(
        [[0.0, -900.0], [-800.0, 0.0], [0.0, -700.0]], np.array([[0.9, 0.1], [0.2, 0.8]]), [2 / 3, 1 / 3]
    )
    assert found[0, 0] - found[0, 1] == pytest.approx(900 + np.log(0.1) - np.log(0.8), abs=1e-9)
    # Who never moves pays 800 nats in one cell and 900 in the other, though no double holds exp(-800).
    np.testing.assert_allclose(leakage([[0.0, -900.0], [-800.0, 0.0]], np.eye(2), [0.5, 0.5]), 100)


@pytest.mark.parametrize("n", [2, 5])
def test_independent_times_leak_only_their_own_release(n):
    initial = RNG.dirichlet(np.ones(n))
    told = RNG.normal(size=(7, 4, n))
    np.testing.assert_allclose(leakage(told, np.tile(initial, (n, 1)), initial), np.ptp(told, axis=-1), atol=1e-12)


def test_a_target_who_never_moves_leaks_all_releases_at_every_time():
    told = RNG.normal(size=(3, 4, 3))
    measured = leakage(told, np.eye(3), [0.2, 0.3, 0.5])
    np.testing.assert_allclose(measured, np.ptp(told.sum(axis=1), axis=-1)[:, None] * np.ones(4), atol=1e-12)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.05, 3.0))
def test_measured_leakage_never_exceeds_temporal_privacy_leakage(seed, epsilon):
    rng = np.random.default_rng(seed)
    adversary = Adversary(TransitionMatrix(0.05 / 4 + 0.95 * random_matrix(4, seed=rng).toarray()))
    budgets = epsilon * rng.uniform(0.2, 1, size=5)
    told = rng.uniform(0, 1, size=(200, 5, 4))
    told = np.where(told < 0.5, 0, 1) * budgets[:, None]  # the extreme outputs of epsilon_t-DP releases
    measured = comparison.measured_leakage(adversary.told(told))
    assert measured.max() <= adversary.bound(budgets) + 1e-9


def test_posteriors_are_those_of_the_filter():
    adversary = Adversary(random_matrix(3, seed=1))
    told = RNG.normal(size=(4, 3))
    expected = forward_backward(told, adversary.transitions, adversary.initial).smoothed
    np.testing.assert_allclose(adversary.posteriors(adversary.told(told)), expected, atol=1e-12)
