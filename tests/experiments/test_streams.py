"""Mechanisms for running totals against their matrices, and the theorem that lets their leakage be
computed."""

from itertools import pairwise, product

import numpy as np
import pytest
from scipy.optimize import linprog

import tplfrontier as tf
import tplrepro as tpl
from experiments import streams
from tplfrontier.budgets import linear_mechanisms


def plain_strategies(T, window):
    """Strategy matrices, and the variances of the least-noisy sums that make up each answer."""
    answers = np.array(
        [[float(max(0, t - (window or T) + 1) <= s <= t) for s in range(T)] for t in range(T)]
    )
    return {"each count": (np.eye(T), answers), "each answer": (answers, np.eye(T))}


@pytest.mark.parametrize("T", [1, 2, 5, 8, 13])
@pytest.mark.parametrize("window", [None, 3])
def test_strategies_have_the_column_sums_of_their_matrices(T, window):
    made = {strategy.name: strategy for strategy in streams.strategies(T, window)}
    for name, (matrix, decode) in plain_strategies(T, window).items():
        check_columns(made[name], matrix)
        np.testing.assert_allclose(made[name].variances, (decode**2).sum(axis=1))
    tree = streams.tree_matrix(T).toarray()
    check_columns(made["binary tree"], tree)
    for t in range(T):
        assert made["binary tree"].variances[t] == fewest_nodes(
            max(0, t - (window or T) + 1), t + 1
        )
    if window is None:
        root = made["square root"]
        coefficients = np.sqrt(root.variances - np.concatenate(([0.0], root.variances[:-1])))
        lower = np.array(
            [[coefficients[t - s] if s <= t else 0.0 for s in range(T)] for t in range(T)]
        )
        np.testing.assert_allclose(lower @ lower, np.tril(np.ones((T, T))), atol=1e-12)
        check_columns(root, lower)


def check_columns(strategy, matrix):
    np.testing.assert_allclose(strategy.sums, tf.event_level_budgets(matrix, 1.0))
    np.testing.assert_allclose(strategy.squares, (matrix**2).sum(axis=0))
    np.testing.assert_allclose(strategy.products, (matrix.T @ matrix).sum(axis=1))


@pytest.mark.parametrize("window", [None, 3])
def test_strategy_matrices_have_the_columns_that_bounds_use(window):
    for strategy in streams.strategies(9, window):
        matrix = streams.matrix_of(strategy.name, 9, window)
        if strategy.name == "binary tree":
            matrix = matrix.toarray()
        check_columns(strategy, matrix)


def test_intervals_need_less_noise_than_the_bounds_for_long_series():
    sides = [
        tpl.PrivacyLossFunction(P) for P in ([[0.8, 0.2], [0.2, 0.8]], [[0.8, 0.2], [0.1, 0.9]])
    ]
    for strategy in streams.strategies(6)[1:]:
        matrix = streams.matrix_of(strategy.name, 6)
        noise = streams.interval_noise_at(1.0, 1e-5, matrix, sides, sensitivity=np.sqrt(2.0))
        of_bounds = streams.gaussian_noise_at(1.0, 1e-5, strategy, sides, 2, np.sqrt(2.0))
        assert noise < 0.95 * of_bounds
        leaked = tf.linear_gaussian_leakage(matrix, noise, 1e-5, *sides)
        assert leaked.max() <= 1.0


def fewest_nodes(start, stop):
    """The fewest nodes of a binary tree that make up start..stop-1."""
    sizes = [1 << k for k in range(5) if start % (1 << k) == 0 and start + (1 << k) <= stop]
    return 1 + min(fewest_nodes(start + size, stop) for size in sizes) if start < stop else 0


def test_no_mechanism_with_these_event_level_budgets_leaks_more_and_one_leaks_as_much():
    """A linear programme over the probabilities of one output under all paths, for each time and
    pair of states."""
    rng = np.random.default_rng(4)
    tightest = 0.0
    for trial in range(30):
        n, T = (2, 3) if trial % 3 else (3, 2)
        rows = rng.random((n, n)) ** 2 + 0.02
        P, initial = tpl.TransitionMatrix(rows, normalize=True), rng.dirichlet(np.ones(n))
        epsilons = rng.uniform(0.1, 1.5, T)
        priors = [initial]
        for _ in range(T - 1):
            priors.append(priors[-1] @ P.probabilities)
        tpl_bound = tpl.temporal_privacy_leakage(
            epsilons, [P.reverse(prior) for prior in priors[:-1]], [P] * (T - 1)
        ).tpl
        paths = list(product(range(n), repeat=T))
        weight = np.array(
            [initial[s[0]] * np.prod([P[a, b] for a, b in pairwise(s)]) for s in paths]
        )
        limits = []
        for a, s in enumerate(paths):
            for b, other in enumerate(paths):
                changed = [t for t in range(T) if s[t] != other[t]]
                if len(changed) == 1:
                    row = np.zeros(len(paths))
                    row[a], row[b] = 1.0, -np.exp(epsilons[changed[0]])
                    limits.append(row)
        for t in range(T):
            given = [
                np.where([s[t] == k for s in paths], weight, 0.0) / priors[t][k] for k in range(n)
            ]
            for i, j in product(range(n), repeat=2):
                best = linprog(
                    -given[i], np.array(limits), np.zeros(len(limits)), given[j][None], [1.0]
                )
                assert np.log(-best.fun) <= tpl_bound[t] + 1e-9
                tightest = max(tightest, np.log(-best.fun) / tpl_bound[t])
    assert tightest > 0.999


def test_gaussian_noise_of_a_stream_keeps_the_level():
    chain = [
        tpl.PrivacyLossFunction(P) for P in ([[0.8, 0.2], [0.2, 0.8]], [[0.8, 0.2], [0.1, 0.9]])
    ]
    for strategy in streams.strategies(40):
        scale = streams.gaussian_noise_at(1.0, 1e-5, strategy, chain, 2, np.sqrt(2))
        whole = np.sqrt(2 * strategy.products.sum()) / tf.gaussian_mu(1.0, 1e-5)
        assert scale <= whole * (1 + 1e-12)
        squares, products = strategy.squares / scale**2, strategy.products / scale**2
        budgets = linear_mechanisms.gaussian_budgets_of_columns(
            squares, products, 1e-5, 2, np.sqrt(2)
        )
        assert (
            scale == pytest.approx(whole)
            or tpl.temporal_privacy_leakage(budgets, *chain).tpl.max() <= 1.0
        )


@pytest.mark.parametrize(
    ("strategy", "scale", "message"),
    [
        ([1.0, 2.0], 1.0, "strategy must have shape"),
        (np.eye(2), [1.0, 0.0], "scale must be above 0 and finite, one or 2 of them"),
        (np.eye(2), [1.0, 1.0, 1.0], "scale must be above 0 and finite, one or 2 of them"),
        ([["a"]], 1.0, "strategy must be numbers"),
    ],
)
def test_a_strategy_of_no_linear_mechanism_is_refused(strategy, scale, message):
    with pytest.raises(ValueError, match=message):
        tf.event_level_budgets(strategy, scale)
    with pytest.raises(ValueError, match=message):
        tf.gaussian_event_level_budgets(strategy, scale, 1e-5, n_states=2)


def test_strategies_of_infinite_entries_are_refused_and_no_budget_is_negative():
    for entry in (np.nan, np.inf):
        with pytest.raises(
            ValueError, match="entries of the strategy, over the scale, must be finite numbers"
        ):
            tf.event_level_budgets([[entry]], 1.0)
    assert (tf.gaussian_event_level_budgets(np.eye(1), 1.0, 0.99, n_states=1) >= 0).all()
