"""The matrices of the figures of [1], and random ones of every kind that the algorithms must handle."""

import numpy as np

__all__ = ["BACKWARD", "FIG_3", "FIG_4", "FORWARD", "KINDS", "random_matrices", "random_matrix"]

FIG_3 = np.array([[0.8, 0.2], [0.0, 1.0]])  # the moderate correlation
FIG_4 = np.array([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.5, 0.3, 0.2]])  # Example 4
BACKWARD = np.array([[0.8, 0.2], [0.2, 0.8]])  # Fig. 8
FORWARD = np.array([[0.8, 0.2], [0.1, 0.9]])

KINDS = ("dense", "zeros", "ties", "smoothed", "near_identity", "sharp", "sparse", "repeated_rows")


def random_matrix(rng, kind, n):
    """One (n, n) transition matrix.

    dense: uniform entries. zeros: a third of them 0. ties: entries from {0, 1, 2, 3} before normalising, and thus
    equal ratios. smoothed: a permutation, smoothed by Eq. (28) of TKDE 2019. near_identity: leaves a state with
    probability at most 1e-3. sharp: entries over eight orders of magnitude. sparse: two or three entries a row.
    repeated_rows: dense with about half of the rows equal to the first.
    """
    if kind == "dense":
        weights = rng.random((n, n))
    elif kind == "zeros":
        weights = rng.random((n, n)) * (rng.random((n, n)) > 1 / 3)
    elif kind == "ties":
        weights = rng.integers(0, 4, (n, n)).astype(float)
    elif kind == "smoothed":
        weights = np.eye(n)[rng.permutation(n)] + 10.0 ** rng.uniform(-4, 0)
    elif kind == "near_identity":
        weights = np.eye(n) + 1e-3 / n * rng.random((n, n)) * (rng.random((n, n)) > 0.3)
    elif kind == "sharp":
        weights = 10.0 ** rng.uniform(-8, 0, (n, n))
    elif kind == "sparse":
        weights = np.zeros((n, n))
        for row in weights:
            stored = rng.choice(n, min(n, int(rng.integers(2, 4))), replace=False)
            row[stored] = rng.random(len(stored))
    elif kind == "repeated_rows":
        weights = rng.random((n, n))
        weights[rng.random(n) < 0.5] = weights[0]
    else:
        raise ValueError(f"kind must be one of {KINDS}, found {kind!r}")
    empty = weights.sum(axis=1) == 0
    weights[empty, rng.integers(0, n, empty.sum())] = 1.0
    return weights / weights.sum(axis=1, keepdims=True)


def random_matrices(rng, kind, n, count):
    """`count` matrices from `random_matrix`, one after the other."""
    for _ in range(count):
        yield random_matrix(rng, kind, n)
