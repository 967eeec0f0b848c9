"""The recursions of [1] in high precision, and random problems of every kind that the allocations must handle.

References
----------
[1] Cao, Yoshikawa, Xiao, Xiong: Quantifying Differential Privacy in Continuous Data Release under Temporal
    Correlations. IEEE TKDE, 2019.
"""

from itertools import permutations

import mpmath
import numpy as np
from hypothesis import strategies as st

from tests.leakage.matrices import KINDS, random_matrix

__all__ = ["DIGITS", "exact_budgets", "exact_loss", "exact_supremum", "exact_tpl", "matrices", "problems", "strong"]

DIGITS = 50


def exact_loss(P):
    """L of the matrix whose rows are divided by their exact sums, as a function of mpmath numbers; 0 for no matrix.

    The largest value over all pairs of rows and all prefixes of the columns in order of falling q_j / d_j, as in
    `oracles.pair_loss_mpmath`, with the sums kept from one alpha to the next.
    """
    if P is None:
        return lambda alpha: mpmath.mpf(0)
    with mpmath.workdps(DIGITS):
        rows = [[mpmath.mpf(float(p)) for p in row] for row in P]
        rows = [[p / mpmath.fsum(row) for p in row] for row in rows]
        sums = set()
        for q, d in permutations(rows, 2):
            columns = [(a, b) for a, b in zip(q, d, strict=True) if a > b]
            columns.sort(key=lambda ab: mpmath.inf if ab[1] == 0 else ab[0] / ab[1], reverse=True)
            gap, below = mpmath.mpf(0), mpmath.mpf(0)
            for a, b in columns:
                gap, below = gap + (a - b), below + b
                sums.add((gap, below))

    def loss(alpha):
        u = mpmath.expm1(alpha)
        return mpmath.log1p(max((gap * u / (below * u + 1) for gap, below in sums), default=mpmath.mpf(0)))

    return loss


def exact_tpl(budgets, loss_b, loss_f):
    """TPL at each time point by the recursions (11), (13) and (15) of [1] with 50 digits."""
    with mpmath.workdps(DIGITS):
        budgets = [mpmath.mpf(float(epsilon)) for epsilon in budgets]
        bpl, fpl = budgets[:1], budgets[-1:]
        for epsilon in budgets[1:]:
            bpl.append(loss_b(bpl[-1]) + epsilon)
        for epsilon in budgets[-2::-1]:
            fpl.append(loss_f(fpl[-1]) + epsilon)
        return [b + f - epsilon for b, f, epsilon in zip(bpl, fpl[::-1], budgets, strict=True)]


def exact_supremum(loss, epsilon, ceiling):
    """The fixed point of x = L(x) + epsilon by bisection from above, so never below it; inf if it is over `ceiling`."""
    low, high = epsilon, mpmath.mpf(ceiling)
    if loss(high) + epsilon > high:
        return mpmath.inf
    while high - low > high * mpmath.mpf(10) ** -40:
        middle = (low + high) / 2
        low, high = (low, middle) if loss(middle) + epsilon <= middle else (middle, high)
    return high


def exact_budgets(alpha, loss_b, loss_f):
    """The solution a^B, a^F of Eqs. (26), (27) of [1] and the budget between, by bisection on a^B."""
    low, high = mpmath.mpf(0), mpmath.mpf(alpha)
    while high - low > alpha * mpmath.mpf(10) ** -30:
        a_b = (low + high) / 2
        low, high = (a_b, high) if loss_f(alpha - loss_b(a_b)) + a_b <= alpha else (low, a_b)
    a_f = alpha - loss_b(low)
    return low, a_f, low + a_f - alpha


def strong(rng, n):
    """A permutation smoothed by s between 1e-9 and 1."""
    weights = np.eye(n)[rng.permutation(n)] + 10.0 ** rng.uniform(-9, 0)
    return weights / weights.sum(axis=1, keepdims=True)


@st.composite
def matrices(draw, n, known=False):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from([*KINDS, "strong", "strong"] + ([] if known else [None])))
    if kind is None:
        return None
    return strong(rng, n) if kind == "strong" else random_matrix(rng, kind, n)


@st.composite
def problems(draw):
    n = draw(st.integers(2, 4))
    alpha = draw(st.one_of(st.sampled_from([1.0, 2.0]), st.floats(-6, 1.3).map(lambda exponent: 10.0**exponent)))
    return alpha, draw(matrices(n)), draw(matrices(n))
