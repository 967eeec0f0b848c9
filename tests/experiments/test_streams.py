"""Mechanisms for running totals against their matrices, and the theorem that lets their leakage be computed."""

from itertools import pairwise, product

import numpy as np
import pytest
from scipy.optimize import linprog

import tplrepro as tpl
from experiments import streams


def plain_strategies(T, window):
    """Strategy matrices, and the variances of the least-noisy sums that make up each answer."""
    answers = np.array([[float(max(0, t - (window or T) + 1) <= s <= t) for s in range(T)] for t in range(T)])
    return {"each count": (np.eye(T), answers), "each answer": (answers, np.eye(T))}


@pytest.mark.parametrize("T", [1, 2, 5, 8, 13])
@pytest.mark.parametrize("window", [None, 3])
def test_strategies_are_those_of_their_matrices(T, window):
    made = {strategy.name: strategy for strategy in streams.strategies(T, window)}
    for name, (matrix, decode) in plain_strategies(T, window).items():
        np.testing.assert_allclose(made[name].sums, tpl.mechanisms.event_level_budgets(matrix, 1.0))
        np.testing.assert_allclose(made[name].variances, (decode**2).sum(axis=1))
    tree = streams.tree_matrix(T).toarray()
    np.testing.assert_allclose(made["binary tree"].sums, tree.sum(axis=0))
    for t in range(T):  # the fewest nodes that make up the answer
        answer = np.array([float(max(0, t - (window or T) + 1) <= s <= t) for s in range(T)])
        fewest = next(
            size
            for size in range(1, T + 1)
            for rows in [[row for row in tree if (row <= answer).all()]]
            if _can_cover(rows, answer, size)
        )
        assert made["binary tree"].variances[t] == fewest
    if window is None:
        root = made["square root"]
        coefficients = np.sqrt(root.variances - np.concatenate(([0.0], root.variances[:-1])))
        lower = np.array([[coefficients[t - s] if s <= t else 0.0 for s in range(T)] for t in range(T)])
        np.testing.assert_allclose(lower @ lower, np.tril(np.ones((T, T))), atol=1e-12)
        np.testing.assert_allclose(root.sums, tpl.mechanisms.event_level_budgets(lower, 1.0))


def _can_cover(rows, answer, size):
    """Whether `size` disjoint rows add up to the answer."""
    if not answer.any():
        return size >= 0
    if size == 0:
        return False
    first = int(np.argmax(answer))
    return any(_can_cover(rows, answer - row, size - 1) for row in rows if row[first] and (row <= answer).all())


def test_no_mechanism_with_these_event_level_budgets_leaks_more_and_one_leaks_as_much():
    """A linear programme over the probabilities of one output under all paths, for each time and pair of states."""
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
        weight = np.array([initial[s[0]] * np.prod([P[a, b] for a, b in pairwise(s)]) for s in paths])
        limits = []
        for a, s in enumerate(paths):
            for b, other in enumerate(paths):
                changed = [t for t in range(T) if s[t] != other[t]]
                if len(changed) == 1:
                    row = np.zeros(len(paths))
                    row[a], row[b] = 1.0, -np.exp(epsilons[changed[0]])
                    limits.append(row)
        for t in range(T):
            given = [np.where([s[t] == k for s in paths], weight, 0.0) / priors[t][k] for k in range(n)]
            for i, j in product(range(n), repeat=2):
                best = linprog(-given[i], np.array(limits), np.zeros(len(limits)), given[j][None], [1.0])
                assert np.log(-best.fun) <= tpl_bound[t] + 1e-9
                tightest = max(tightest, np.log(-best.fun) / tpl_bound[t])
    assert tightest > 0.999


@pytest.mark.parametrize(
    ("strategy", "scale", "message"),
    [
        ([1.0, 2.0], 1.0, "strategy must have shape"),
        (np.eye(2), [1.0, 0.0], "scale must be above 0 and finite, one or 2 of them"),
        (np.eye(2), [1.0, 1.0, 1.0], "scale must be above 0 and finite, one or 2 of them"),
        ([["a"]], 1.0, "strategy must be numbers"),
    ],
)
def test_what_is_no_linear_mechanism_is_refused(strategy, scale, message):
    with pytest.raises(ValueError, match=message):
        tpl.mechanisms.event_level_budgets(strategy, scale)
