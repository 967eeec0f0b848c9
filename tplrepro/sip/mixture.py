"""Keeping a budget exactly: mixtures with the output marginal, and the limits that rounding leaves.

Every response within a budget eps can be written a(y|x) = q(y) / E + (1 - 1/E) w(y|x) with E = e^eps, w a response of
the same marginal q and w(y|x) <= (E + 1) q(y): the two-sided constraint of problem (15) of [3] becomes one-sided.
Conversely, for any response w with marginal q and largest ratio R = max w/q, mixing with a share t of q gives ratios
between t and t + (1 - t) R, so

    t = max(1/E, (R - E) / (R - 1))

is enough to keep the budget. Solvers' answers go through this step, with R computed from the numbers at hand: no
tolerance of a solver ever reaches the guarantee.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tplrepro.sip.response import Response

__all__ = ["constant_response", "mix", "mix_dense", "usable_budget"]

#: Beyond this budget the exact response is that of this budget: costs differ by less than 3e-9 of the distance.
LARGEST_BUDGET = 20.0


def usable_budget(epsilon: float) -> float:
    """The budget that computations aim at: below `epsilon` by more than their rounding, and at most LARGEST_BUDGET.

    Below about 1e-11 it is negative: rounding alone could leak more, so the output must not depend on the input.
    """
    return min(epsilon, LARGEST_BUDGET) - max(1e-10 * epsilon, 4e-12)


def mix(response: Response, epsilon: float) -> Response:
    """The response with the least share of the marginal that keeps the budget `usable_budget(epsilon)`."""
    seen = response.w_marginal > 0
    ratio = float((response.w_range[1][seen] / response.w_marginal[seen]).max())
    mixed = replace(response, share=_least_share(ratio, epsilon))
    if mixed.leakage > epsilon:  # cannot happen; the guarantee does not rest on that
        raise ArithmeticError(
            f"rounding: the response leaks {mixed.leakage!r} > {epsilon!r}; please report this belief"
        )
    return mixed


def mix_dense(
    belief: np.ndarray, table: np.ndarray, epsilon: float, cost: np.ndarray, bound: float = -np.inf
) -> Response:
    """As `mix` for a full table (n, n) of w that is only nearly feasible; `cost` (n, n) chooses what to drop.

    Outputs with a tiny marginal are where a solver's tolerance is large against the constraint: dropping them (their
    inputs keep the rest of their row) can cost less than mixing the whole response. Several cuts are tried.
    """
    possible = belief > 0
    best, least = Response.from_rows(belief, constant_response(belief, cost).matrix(), bound), np.inf
    for cut in (0.0, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4):
        w = np.maximum(table, 0.0)
        w[:, belief @ w <= cut] = 0.0
        sums = w.sum(axis=1, keepdims=True)
        if (sums[possible] <= 0).any():
            break
        w = np.divide(w, sums, out=np.zeros_like(w), where=sums > 0)
        q = belief @ w
        w[~possible] = q  # a symbol that cannot occur gives nothing away
        seen = q > 0
        share = _least_share(float((w[possible][:, seen] / q[seen]).max()), epsilon)
        rows = share * q + (1 - share) * w
        rows /= rows.sum(axis=1, keepdims=True)
        value = float((belief[:, None] * rows * cost).sum())
        if value < least:
            response = Response.from_rows(belief, rows, bound)
            if response.leakage <= epsilon:
                best, least = response, value
    return best


def constant_response(belief: np.ndarray, cost: np.ndarray | None = None, bound: float = -np.inf) -> Response:
    """The best output that does not depend on the input; `cost` None is Hamming distance. Its leakage is 0."""
    label = int(np.argmax(belief)) if cost is None else int(np.argmin(belief @ cost))
    everyone = np.zeros(belief.size, dtype=np.intp)
    return Response(belief, np.array([label]), 1.0, np.ones((1, 1)), everyone, bound=bound)


def _least_share(ratio: float, epsilon: float) -> float:
    odds = np.exp(usable_budget(epsilon))
    return max(1.0 / odds, (ratio - odds) / (ratio - 1.0)) if ratio > 1.0 else 1.0 / odds
