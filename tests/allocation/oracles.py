"""The recursions of [1] in high precision, and random problems of every kind that the allocations must handle."""

import mpmath
import numpy as np
from hypothesis import strategies as st

from tests.leakage.matrices import KINDS, random_matrix
from tests.leakage.oracles import DIGITS

__all__ = ["exact_budgets", "exact_supremum", "exact_tpl", "matrices", "problems", "strong"]


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
