"""Policies and oracles that several tests share."""

import numpy as np

from tplrepro import dphmm

__all__ = ["F", "categorical", "linear_norm", "random_policy"]

#: The running example, written out again from the paper's text.
F = np.array([[1, 2, 3, 0, 4, 1], [0, 1, 0, 1, 2, 2]], dtype=float).T


def categorical():
    """The graph of Fig. 3b."""
    return dphmm.PolicyGraph.categorical([[0], [1, 2], [3, 4, 5]])


def random_policy(rng, n, d, density=0.3, whole=False):
    """A random graph over n states with at least one edge, and answers in R^d (small whole numbers: many ties)."""
    pairs = np.column_stack(np.triu_indices(n, 1))
    chosen = rng.random(len(pairs)) < density
    chosen[rng.integers(len(pairs))] = True
    answers = rng.integers(-3, 4, (n, d)).astype(float) if whole else rng.normal(size=(n, d)) * 10 ** rng.uniform(-2, 2)
    return dphmm.PolicyGraph.from_edges(n, pairs[chosen]), answers


def linear_norm(policy, answers, vector):
    """The K-norm by linear programming: the least total weight of edge differences that make up the vector."""
    from scipy.optimize import linprog

    first, second = policy.edge_array.T
    forward = answers[first] - answers[second]
    differences = np.concatenate([forward, -forward])
    scale = max(np.abs(differences).max(), 1e-300)
    result = linprog(np.ones(len(differences)), A_eq=differences.T / scale, b_eq=vector / scale, method="highs")
    return result.fun if result.status == 0 else np.inf
