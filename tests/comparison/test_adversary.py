from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tplrepro import comparison
from tplrepro.comparison.adversary import Adversary, _multiply_logarithms
from tplrepro.markov.filtering import log_product
from tplrepro.markov import TransitionMatrix, random_matrix

RNG = np.random.default_rng(11)


def evidence_by_enumeration(told, matrix, initial):
    """log Pr(outputs | l_t = k) from the definition: a sum over all paths."""
    horizon, n = told.shape
    joint, prior = np.full((horizon, n), -np.inf), np.full((horizon, n), -np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_matrix, log_initial = np.log(matrix), np.log(initial)
        for path in product(range(n), repeat=horizon):
            chance = log_initial[path[0]] + sum(log_matrix[i, j] for i, j in pairwise(path))
            for t, k in enumerate(path):
                prior[t, k] = np.logaddexp(prior[t, k], chance)
                joint[t, k] = np.logaddexp(joint[t, k], chance + sum(told[s, path[s]] for s in range(horizon)))
        return joint - prior


def assert_same_up_to_a_constant(found, expected):
    assert np.array_equal(np.isnan(found), np.isnan(expected))
    for a, b in zip(found, expected, strict=True):
        keep = ~np.isnan(a)
        a, b = a[keep], b[keep]
        assert np.array_equal(np.isneginf(a), np.isneginf(b))
        finite = np.isfinite(a)
        np.testing.assert_allclose(a[finite] - a[finite].max(), b[finite] - b[finite].max(), atol=1e-9)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 4), st.integers(1, 4), st.booleans())
def test_evidence_is_the_sum_over_all_paths(seed, n, horizon, sparse):
    rng = np.random.default_rng(seed)
    matrix = rng.dirichlet(np.full(n, 0.5), size=n)
    if sparse:  # impossible steps, starts and outputs
        matrix = np.maximum(matrix - 0.15, 0) + 1e-3 * np.eye(n)
        matrix /= matrix.sum(axis=1, keepdims=True)
    initial = rng.dirichlet(np.ones(n))
    if sparse:
        initial[rng.integers(n)] = 0
        initial /= initial.sum()
    told = rng.normal(size=(horizon, n)) * 2
    expected = evidence_by_enumeration(told, matrix, initial)
    assert_same_up_to_a_constant(comparison.log_evidence(told, matrix, initial), expected)


def test_outputs_that_rule_cells_out():
    matrix, initial = np.array([[0.7, 0.3, 0], [0, 0.5, 0.5], [0.2, 0.2, 0.6]]), np.array([0.5, 0.25, 0.25])
    told = np.array([[0.0, -1, -2], [-np.inf, 0, -1], [0, -0.5, -0.1]])
    evidence = comparison.log_evidence(told, matrix, initial)
    assert_same_up_to_a_constant(evidence, evidence_by_enumeration(told, matrix, initial))
    assert comparison.measured_leakage(evidence)[1] == np.inf
    # The two cells that remain are still to be told apart.
    assert np.isfinite(comparison.measured_leakage(evidence, [(1, 2)])[1])


def test_huge_likelihoods_do_not_underflow():
    matrix, initial = np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([2 / 3, 1 / 3])
    told = np.array([[0.0, -900.0], [-800.0, 0.0], [0.0, -700.0]])
    found = comparison.log_evidence(told, matrix, initial)
    assert_same_up_to_a_constant(found, evidence_by_enumeration(told, matrix, initial))
    assert found[0, 0] - found[0, 1] == pytest.approx(900 + np.log(0.1) - np.log(0.8), abs=1e-9)
    # Who never moves pays 800 nats in one cell and 900 in the other, though no double holds exp(-800).
    still = comparison.log_evidence([[0.0, -900.0], [-800.0, 0.0]], np.eye(2), [0.5, 0.5])
    np.testing.assert_allclose(comparison.measured_leakage(still), 100)
    weights = RNG.normal(size=(5, 2))
    np.testing.assert_allclose(
        np.diff(log_product(weights, matrix)), np.diff(_multiply_logarithms(weights, matrix)), atol=1e-12
    )


@pytest.mark.parametrize("n", [2, 5])
def test_independent_times_leak_only_their_own_release(n):
    initial = RNG.dirichlet(np.ones(n))
    told = RNG.normal(size=(7, 4, n))
    leakage = comparison.measured_leakage(comparison.log_evidence(told, np.tile(initial, (n, 1)), initial))
    np.testing.assert_allclose(leakage, np.ptp(told, axis=-1), atol=1e-12)


def test_a_target_who_never_moves_leaks_all_releases_at_every_time():
    told = RNG.normal(size=(3, 4, 3))
    leakage = comparison.measured_leakage(comparison.log_evidence(told, np.eye(3), [0.2, 0.3, 0.5]))
    np.testing.assert_allclose(leakage, np.ptp(told.sum(axis=1), axis=-1)[:, None] * np.ones(4), atol=1e-12)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.05, 3.0))
def test_measured_leakage_never_exceeds_temporal_privacy_leakage(seed, epsilon):
    rng = np.random.default_rng(seed)
    adversary = Adversary(TransitionMatrix(0.05 / 4 + 0.95 * random_matrix(4, seed=rng).toarray()))
    budgets = epsilon * rng.uniform(0.2, 1, size=5)
    told = rng.uniform(0, 1, size=(200, 5, 4))
    told = np.where(told < 0.5, 0, 1) * budgets[:, None]  # the extreme outputs of epsilon_t-DP releases
    leakage = comparison.measured_leakage(adversary.log_evidence(told))
    assert leakage.max() <= adversary.bound(budgets) + 1e-9


def test_posteriors_sum_to_one_and_are_bayes_rule():
    matrix = random_matrix(3, seed=1).toarray()
    initial = TransitionMatrix(matrix).stationary()
    told = RNG.normal(size=(4, 3))
    posterior = comparison.smoothed_posteriors(comparison.log_evidence(told, matrix, initial), matrix, initial)
    expected = np.exp(evidence_by_enumeration(told, matrix, initial)) * initial
    np.testing.assert_allclose(posterior, expected / expected.sum(axis=1, keepdims=True), atol=1e-12)


def test_errors():
    matrix, initial = np.full((2, 2), 0.5), [0.5, 0.5]
    with pytest.raises(ValueError, match=r"shape \(..., T, 2\)"):
        comparison.log_evidence([0.0, 1.0], matrix, initial)
    with pytest.raises(ValueError, match="NaN"):
        comparison.log_evidence([[0.0, np.nan]], matrix, initial)
    with pytest.raises(ValueError, match="possible in some cell"):
        comparison.log_evidence([[-np.inf, -np.inf]], matrix, initial)
    with pytest.raises(ValueError, match="none of its paths"):
        comparison.log_evidence([[0, -np.inf], [-np.inf, 0]], np.eye(2), initial)
