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

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tplrepro.sip.response import DenseResponse, Response

__all__ = ["MixtureResponse", "constant_response", "mix", "mix_dense", "usable_budget"]

#: Beyond this budget the exact response is that of this budget: costs differ by less than 3e-9 of the distance.
LARGEST_BUDGET = 20.0


@dataclass(frozen=True, eq=False)
class MixtureResponse(Response):
    """a(y|x) = share q(y) + (1 - share) w(y|x) over a few outputs, with q = sum_x belief(x) w(.|x).

    Attributes
    ----------
    belief : ndarray (n,)
    labels : int array (m,), the symbols that are ever output
    share : float in [0, 1]
    table : ndarray (c, m), c >= 1, rows of w shared by classes of symbols
    row_class : int array (n,), the class of each symbol; -1: w(.|x) is x itself, which must be among the labels
    bound : float, as of `DenseResponse`
    """

    belief: np.ndarray
    labels: np.ndarray
    share: float
    table: np.ndarray
    row_class: np.ndarray
    bound: float = -np.inf

    @cached_property
    def class_mass(self) -> np.ndarray:
        """Belief in each class, (c,)."""
        shared = self.row_class >= 0
        return np.bincount(self.row_class[shared], self.belief[shared], minlength=len(self.table))

    @cached_property
    def own_mass(self) -> np.ndarray:
        """Belief of each label's own symbol where that symbol's w is itself, (m,)."""
        return np.where(self.row_class[self.labels] < 0, self.belief[self.labels], 0.0)

    @cached_property
    def output(self) -> np.ndarray:
        """q over the labels, (m,)."""
        return self.class_mass @ self.table + self.own_mass

    @cached_property
    def marginal(self) -> np.ndarray:
        values = np.zeros(self.n_symbols)
        values[self.labels] = self.output
        return values

    @cached_property
    def ratios(self) -> tuple[float, float]:
        """The smallest and the largest w(y|x) / q(y) over possible x and y, and 1."""
        seen = self.output > 0
        shared = self.table[self.class_mass > 0][:, seen] / self.output[seen]
        own = 1.0 / self.output[seen & (self.own_mass > 0)]
        smallest = 0.0 if own.size and self.labels.size > 1 else shared.min(initial=1.0)
        return float(smallest), float(max(shared.max(initial=1.0), own.max(initial=1.0)))

    @cached_property
    def leakage(self) -> float:
        low, high = (self.share + (1 - self.share) * ratio for ratio in self.ratios)
        return float(max(np.log(high), -np.log(low) if low > 0 else np.inf))

    def row(self, x: int) -> np.ndarray:
        values = np.zeros(self.n_symbols)
        values[self.labels] = self.share * self.output
        if self.row_class[x] >= 0:
            values[self.labels] += (1 - self.share) * self.table[self.row_class[x]]
        else:
            values[x] += 1 - self.share
        return values

    def column(self, y: int) -> np.ndarray:
        place = np.flatnonzero(self.labels == y)
        if not place.size:
            return np.zeros(self.n_symbols)
        densities = np.append(self.table[:, place[0]], 0.0)[self.row_class]
        if self.row_class[y] < 0:
            densities[y] = 1.0
        return self.share * self.output[place[0]] + (1 - self.share) * densities

    def kept(self) -> np.ndarray:
        values = np.zeros(self.n_symbols)
        own = self.row_class[self.labels]
        density = np.where(own < 0, 1.0, self.table[own, np.arange(self.labels.size)])
        values[self.labels] = self.share * self.output + (1 - self.share) * density
        return values


def usable_budget(epsilon: float) -> float:
    """The budget that computations aim at: below `epsilon` by more than their rounding, and at most LARGEST_BUDGET.

    Below about 1e-11 it is negative: rounding alone could leak more, so the output must not depend on the input.
    """
    return min(epsilon, LARGEST_BUDGET) - max(1e-10 * epsilon, 4e-12)


def mix(response: MixtureResponse, epsilon: float) -> MixtureResponse:
    """The response with the least share of the marginal that keeps the budget `usable_budget(epsilon)`."""
    mixed = replace(response, share=_least_share(response.ratios[1], epsilon))
    if mixed.leakage > epsilon:  # cannot happen; the guarantee does not rest on that
        raise ArithmeticError(
            f"rounding: the response leaks {mixed.leakage!r} > {epsilon!r}; please report this belief"
        )
    return mixed


def mix_dense(
    belief: np.ndarray, table: np.ndarray, epsilon: float, cost: np.ndarray, bound: float = -np.inf
) -> DenseResponse:
    """As `mix` for a full table (n, n) of w that is only nearly feasible; `cost` (n, n) chooses what to drop.

    Outputs with a tiny marginal are where a solver's tolerance is large against the constraint: dropping them (their
    inputs keep the rest of their row) can cost less than mixing the whole response. Several cuts are tried.
    """
    possible = belief > 0
    best, least = DenseResponse(belief, constant_response(belief, cost).matrix(), bound), np.inf
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
            response = DenseResponse(belief, rows, bound)
            if response.leakage <= epsilon:
                best, least = response, value
    return best


def constant_response(belief: np.ndarray, cost: np.ndarray | None = None, bound: float = -np.inf) -> MixtureResponse:
    """The best output that does not depend on the input; `cost` None is Hamming distance. Its leakage is 0."""
    label = int(np.argmax(belief)) if cost is None else int(np.argmin(belief @ cost))
    everyone = np.zeros(belief.size, dtype=np.intp)
    return MixtureResponse(belief, np.array([label]), 1.0, np.ones((1, 1)), everyone, bound)


def _least_share(ratio: float, epsilon: float) -> float:
    odds = np.exp(usable_budget(epsilon))
    return max(1.0 / odds, (ratio - odds) / (ratio - 1.0)) if ratio > 1.0 else 1.0 / odds
