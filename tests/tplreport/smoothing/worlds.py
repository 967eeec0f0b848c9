"""People who move by known chains, and counts of them with noise, for tests of smoothing."""

import numpy as np

TWO = np.array([[0.83, 0.17], [0.11, 0.89]])


def dense_chain(n, rng):
    """A chain whose people stay with .7 and else go anywhere."""
    return 0.3 * rng.dirichlet(np.ones(n), size=n) + 0.7 * np.eye(n)


def map_chain(side, rng):
    """A chain on a square map, whose people stay or go to neighbours."""
    n = side**2
    moves = np.zeros((n, n))
    for place in range(n):
        row, column = divmod(place, side)
        for down, right in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            if 0 <= row + down < side and 0 <= column + right < side:
                moves[place, (row + down) * side + column + right] = rng.random()
    moves *= 0.3 / moves.sum(axis=1, keepdims=True)
    return moves + 0.7 * np.eye(n)


def law_of(P):
    return np.linalg.matrix_power(P, 4096)[0]


def counts_of(P, people, times, rng):
    """True counts (T, n) from the stationary law on."""
    law = law_of(P)
    counts = [rng.multinomial(people, law / law.sum())]
    for _ in range(times - 1):
        moved = [rng.multinomial(there, row) for there, row in zip(counts[-1], P, strict=True)]
        counts.append(np.sum(moved, axis=0))
    return np.array(counts)


def laplace(shape, epsilon, rng, sensitivity=2):
    """Laplace noise on whole numbers."""
    q = np.exp(-epsilon / sensitivity)
    return rng.geometric(1.0 - q, shape) - rng.geometric(1.0 - q, shape)
