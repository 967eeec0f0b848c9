"""The privacy loss function by exhaustion and in high precision: slow, plain, and independent of the package.

Both evaluate Eq. (24) of [1] from its definition, in the form log f = log1p((q(S) - d(S)) u / (d(S) u + 1)) with
u = e^alpha - 1, so that they stay exact where alpha is tiny.
"""

from itertools import permutations

import mpmath
import numpy as np

__all__ = ["DIGITS", "brute_force_loss", "exact_loss", "loss_mpmath", "pair_loss_mpmath", "supremum_mpmath"]

DIGITS = 50


def brute_force_loss(P, alpha):
    """L(alpha) as the largest value over all ordered pairs of rows and all sets of columns; n <= 12, alpha <= 700."""
    rows = np.asarray(P, dtype=float)
    n = len(rows)
    if n > 12:
        raise ValueError(f"2^n sets of columns are too many for n = {n}")
    sets = (np.arange(2**n)[:, None] >> np.arange(n) & 1).astype(float)
    d_sums = sets @ rows.T
    u = np.expm1(alpha)
    best = 0.0
    for i, j in permutations(range(n), 2):
        gaps = sets @ (rows[i] - rows[j])
        best = max(best, float(np.log1p(np.max(gaps * u / (d_sums[:, j] * u + 1)))))
    return best


def _prefix_sums(q, d):
    """q(S) - d(S) and d(S) of all prefixes S of the columns in order of falling q_j / d_j, one of which is the best."""
    pairs = [(mpmath.mpf(a), mpmath.mpf(b)) for a, b in zip(q, d, strict=True) if a > b]
    pairs.sort(key=lambda ab: mpmath.inf if ab[1] == 0 else ab[0] / ab[1], reverse=True)
    gap, below = mpmath.mpf(0), mpmath.mpf(0)
    for a, b in pairs:
        gap, below = gap + (a - b), below + b
        yield gap, below


def _largest(sums, alpha):
    u = mpmath.expm1(mpmath.mpf(alpha))
    return mpmath.log1p(max((gap * u / (below * u + 1) for gap, below in sums), default=mpmath.mpf(0)))


def pair_loss_mpmath(q, d, alpha, dps=60):
    """log f of one pair of rows, as an mpmath number; any alpha >= 0."""
    with mpmath.workdps(dps):
        return _largest(_prefix_sums(map(float, q), map(float, d)), float(alpha))


def loss_mpmath(P, alpha, dps=60):
    """L(alpha) over all ordered pairs of rows with `dps` digits; any n, any alpha >= 0."""
    rows = np.asarray(P, dtype=float)
    return max((pair_loss_mpmath(q, d, alpha, dps) for q, d in permutations(rows, 2)), default=mpmath.mpf(0))


def exact_loss(P):
    """L of the matrix whose rows are divided by their exact sums, as a function of mpmath numbers; 0 for no matrix."""
    if P is None:
        return lambda alpha: mpmath.mpf(0)
    with mpmath.workdps(DIGITS):
        rows = [[mpmath.mpf(float(p)) for p in row] for row in P]
        rows = [[p / mpmath.fsum(row) for p in row] for row in rows]
        sums = {pair for q, d in permutations(rows, 2) for pair in _prefix_sums(q, d)}
    return lambda alpha: _largest(sums, alpha)


def supremum_mpmath(q, d, epsilon, dps=60):
    """The alpha > 0 with alpha = log((q (e^alpha - 1) + 1) / (d (e^alpha - 1) + 1)) + epsilon, by bisection.

    mpmath.inf where d = 0 and q e^epsilon >= 1. Bisection on the definition, not on the quadratic of Theorem 11.
    """
    with mpmath.workdps(dps):
        q, d, epsilon = (mpmath.mpf(float(v)) for v in (q, d, epsilon))
        if d == 0 and q * mpmath.exp(epsilon) >= 1:
            return mpmath.inf

        def surplus(alpha):
            u = mpmath.expm1(alpha)
            return alpha - epsilon - mpmath.log1p((q - d) * u / (d * u + 1))

        low, high = mpmath.mpf(0), epsilon
        while surplus(high) < 0:
            low, high = high, 2 * high
        while high - low > high * mpmath.mpf(10) ** (10 - dps):
            middle = (low + high) / 2
            low, high = (middle, high) if surplus(middle) < 0 else (low, middle)
        return high
