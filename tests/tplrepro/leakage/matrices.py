"""The matrices of the papers' figures, and random ones of every kind that the algorithms must
handle."""

import numpy as np
from hypothesis import strategies as st

FIG_3 = np.array([[0.8, 0.2], [0.0, 1.0]])  # the moderate correlation of [1]
FIG_4 = np.array([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.5, 0.3, 0.2]])  # Example 4
BACKWARD = np.array([[0.8, 0.2], [0.2, 0.8]])  # Fig. 8
FORWARD = np.array([[0.8, 0.2], [0.1, 0.9]])
# the same loss function as Fig. 3, of which the exact leakage stays far below
SWAPPED = FIG_3[:, ::-1]
# doubly stochastic: its reverse is its transpose
THREE = np.array([[0.1, 0.1, 0.8], [0.2, 0.7, 0.1], [0.7, 0.2, 0.1]])

KINDS = ("dense", "zeros", "ties", "smoothed", "near_identity", "sharp", "sparse", "repeated_rows")
EXTREME = ("magnitudes", "near_disjoint")


def random_matrix(rng, kind, n):  # noqa: C901 - one branch a kind of matrix
    """One (n, n) transition matrix.

    dense: uniform entries. zeros: a third of them 0. ties: entries from {0, 1, 2, 3} before
    normalising, and thus equal ratios. smoothed: a permutation, smoothed by Eq. (28) of [1];
    strong: by far less. near_identity: leaves a state with probability at most 1e-3. sharp: entries
    over eight orders of magnitude; tiny: over all there are. sparse: two or three entries a row.
    repeated_rows: dense with about half of the rows equal to the first. magnitudes: ties with
    ratios over many. near_disjoint: most of each row in one column, the rest in multiples of 2^-53.
    """
    if kind == "dense":
        weights = rng.random((n, n))
    elif kind == "zeros":
        weights = rng.random((n, n)) * (rng.random((n, n)) > 1 / 3)
    elif kind == "ties":
        weights = rng.integers(0, 4, (n, n)).astype(float)
    elif kind in ("smoothed", "strong"):
        weights = np.eye(n)[rng.permutation(n)] + 10.0 ** rng.uniform(
            -4 if kind == "smoothed" else -9, 0
        )
    elif kind == "near_identity":
        weights = np.eye(n) + 1e-3 / n * rng.random((n, n)) * (rng.random((n, n)) > 0.3)
    elif kind in ("sharp", "tiny"):
        weights = 10.0 ** rng.uniform(-8 if kind == "sharp" else -323, 0, (n, n))
    elif kind == "sparse":
        weights = np.zeros((n, n))
        for row in weights:
            stored = rng.choice(n, min(n, int(rng.integers(2, 4))), replace=False)
            row[stored] = rng.random(len(stored))
    elif kind == "repeated_rows":
        weights = rng.random((n, n))
        weights[rng.random(n) < 0.5] = weights[0]
    elif kind == "magnitudes":
        weights = rng.integers(0, 5, (n, n)) * 10.0 ** rng.choice([0, 0, -1, -9, -15, -60], (n, n))
    elif kind == "near_disjoint":
        weights = rng.integers(0, 4, (n, n)) / 16 * (rng.random((n, n)) < 0.4)
        weights *= 2.0 ** -rng.choice([2, 20, 30, 47, 48, 49], (n, n))
        weights[np.arange(n), rng.integers(0, n, n)] += 1.0 - weights.sum(axis=1)
    empty = weights.sum(axis=1) == 0
    weights[empty, rng.integers(0, n, empty.sum())] = 1.0
    return weights / weights.sum(axis=1, keepdims=True)


def random_matrices(rng, kind, n, count):
    return (random_matrix(rng, kind, n) for _ in range(count))


@st.composite
def matrices(draw, n, kinds=(*KINDS, None)):
    """A random matrix of any of the kinds, or None, a correlation that is not known."""
    kind, seed = draw(st.sampled_from(kinds)), draw(st.integers(0, 2**32 - 1))
    return None if kind is None else random_matrix(np.random.default_rng(seed), kind, n)
