"""Policies and oracles that several tests share."""

from itertools import product

import numpy as np
from scipy.optimize import linprog, nnls

from experiments.dphmm.running_example import TRANSITIONS
from tplrepro import dphmm

#: The running example, written out again from the paper's text.
F = np.array([[1, 2, 3, 0, 4, 1], [0, 1, 0, 1, 2, 2]], dtype=float).T
START = np.array([0, 1, 1, 0, 1, 0]) / 3


def categorical():
    """The graph of Fig. 3b."""
    return dphmm.PolicyGraph.categorical([[0], [1, 2], [3, 4, 5]])


def running_example(states, **change):
    """A release on the running example, with a generator of a fixed seed."""
    arguments = {
        "policy": categorical(),
        "answers": F,
        "epsilon": 1.0,
        "transitions": TRANSITIONS,
        "initial": START,
    }
    return dphmm.release(states, **(arguments | {"rng": np.random.default_rng(1)} | change))


def random_policy(rng, n, d, density=0.3, whole=False):
    """A random graph over n states with at least one edge, and answers in R^d (small whole numbers:
    many ties)."""
    pairs = np.column_stack(np.triu_indices(n, 1))
    chosen = rng.random(len(pairs)) < density
    chosen[rng.integers(len(pairs))] = True
    answers = (
        rng.integers(-3, 4, (n, d)).astype(float)
        if whole
        else rng.normal(size=(n, d)) * 10 ** rng.uniform(-2, 2)
    )
    return dphmm.PolicyGraph.from_edges(n, pairs[chosen]), answers


def linear_norm(policy, answers, vector):
    """The K-norm by linear programming: the least total weight of edge differences that make up the
    vector."""
    differences = np.concatenate([policy.differences(answers), -policy.differences(answers)])
    scale = max(np.abs(differences).max(), 1e-300)
    result = linprog(
        np.ones(len(differences)), A_eq=differences.T / scale, b_eq=vector / scale, method="highs"
    )
    return result.fun if result.status == 0 else np.inf


def algorithm_4(policy, answers, tolerance=1e-9):
    """DoP by Algorithm 4 of [5] as published: one quadratic programme a pair of states (section
    11.4).

    A difference v is a convex combination of the columns p of Delta f if the least ||p x - v||_2
    over x >= 0 with sum 1 is 0 (Eq. (6)); the sum is one more coordinate of the residual. Rounding
    never gives the equality tested there.
    """
    points = np.concatenate([policy.differences(answers), -policy.differences(answers)])
    counts = np.zeros(policy.n_states, dtype=int)
    for i, j in product(policy.possible, repeat=2):
        vector = answers[j] - answers[i]
        scale = max(np.abs(points).max(initial=0.0), np.abs(vector).max())
        if scale == 0:
            counts[i] += 1  # equal answers, whether or not there is an edge
        elif len(points):
            augmented = np.vstack([points.T / scale, np.ones(len(points))])
            counts[i] += (
                nnls(augmented, np.append(vector / scale, 1.0), maxiter=30 * len(points))[1]
                <= tolerance
            )
    return counts


def pairwise_norms(hull, vectors):
    """||v_i - v_j||_K of vectors (n, d), (n, n)."""
    return hull.norm(vectors[:, None] - vectors)
