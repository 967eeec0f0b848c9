"""Responses among many symbols under any distance, by column generation for outputs and classes of
similar inputs.

The one-sided programme of `tplrepro.sip.hamming` has n^2 unknowns, but about K outputs are enough
for all inputs: each output's posterior is at most K = e^eps + 1 times the belief.

1. *Outputs.* The programme over a few outputs has dual prices nu(x) of the inputs and kappa(y) of
  the outputs. Adding an output y would save g - g(y), g(y) = min { sum_x b(x) (c(x, y) - nu(x))
  w(x) : 0 <= w <= K, sum_x b(x) w(x) = 1 }. Each round adds the best candidates near the present
  outputs or in a sample of all symbols, until none saves much.
2. *Inputs.* The most probable symbols are inputs of their own. Others form a class if, at prices
  kappa, they prefer the same two outputs by similar margins; a class has one row, for the mean of
  its costs.
3. If many symbols have a belief of 1/K or more, each of them is always output unchanged, which
  keeps the budget (Theorem 4 of [3]).
4. Each response decides the next belief, so rounding errors would grow until two machines differ.
  Hence the solution is rounded, and candidates are compared in single precision; the first of equal
  ones wins.

The result keeps the budget (see `mix`), but its cost has no proven bound: among 300 symbols, at
budgets of 1 to 8, it was at most 6 % above the least cost in 14 of 16 cases, and 17 and 34 % in two
with a large K and many likely symbols.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tplrepro.blas import one_blas_thread
from tplrepro.sip.hamming import constant_response, mix, usable_budget
from tplrepro.sip.interior_point import filled, solve_interior
from tplrepro.sip.response import Response, distances_by
from tplrepro.validation import check_entries

#: Symbols of smaller belief are treated as impossible.
NEGLIGIBLE = 1e-18
#: If more symbols than this have a belief of 1/K or more, they are output unchanged.
MOST_COMMON = 8
#: Number of the most probable symbols, which are inputs of their own; size of a sample of the others.
APART, STANDING = 160, 160
#: Most outputs, and how many of the nearest symbols of each are tried as new outputs.
MOST_OUTPUTS, NEIGHBOURS = 64, 12
#: With at most FINE outputs, classes are split where the margin between the two best passes these shares of its mean.
FINE, LEVELS = 32, np.array([0.02, 0.1, 0.4])
#: Stop after ROUNDS rounds of ADDED outputs, or after PATIENCE that each save less than this share (WORTH) of the cost.
ROUNDS, ADDED, WORTH, PATIENCE = 10, 8, 2e-3, 2
#: Duality gap of a round's programme, as a share of its cost.
GAP = 1e-5
#: Largest error of a row's sum in a solution.
ROW_ERROR = 1e-6
#: A solution is rounded to this share of its entries, divided by K, which adds less than 0.05 % to the cost.
ROUNDING = 1 / 512
#: Outputs of a smaller share of 1/K are left out.
SLIGHT = 1e-4
#: Distances computed at once.
BLOCK = 4_000_000


def generated_response(
    belief: np.ndarray, distance: Callable[..., np.ndarray], epsilon: float
) -> Response:
    """A response of small expected distance with leakage at most `epsilon`; it is not proven
    optimal."""
    with one_blas_thread():
        return _Generation(belief, distance, usable_budget(epsilon)).response(epsilon)


@dataclass(frozen=True, eq=False)
class _Solved:
    """The programme over some outputs, solved for classes of inputs."""

    outputs: np.ndarray  # (m,)
    table: np.ndarray  # (k, m), distances of all symbols
    # (k,), class of each symbol; symbols that are output unchanged, if any, form the last class
    of: np.ndarray
    w: np.ndarray  # (c, m), with one more column for these symbols, if any
    nu: np.ndarray  # (c,)
    kappa: np.ndarray  # (m,), one more if w has one
    cost: float


class _Generation:
    """The programme over the k symbols that can occur, numbered in falling order of belief."""

    def __init__(self, belief: np.ndarray, distance: Callable[..., np.ndarray], budget: float):
        order = np.argsort(-belief.astype(np.float32), kind="stable")
        self.belief, self.distance = belief, distance
        self.order = order[: np.count_nonzero(belief > NEGLIGIBLE)]
        self.b = belief[self.order] / belief[self.order].sum()
        self.odds = float(np.exp(budget))
        self.cap = self.odds + 1.0
        common = int(np.searchsorted(-self.b, -1.0 / self.cap, side="right"))
        self.n_own = common if common > MOST_COMMON else 0
        self.sample, self.sample_mass = self.few()
        self.most = int(max(8, min(MOST_OUTPUTS, 1.5 * self.cap + 12, 4 * BLOCK // self.b.size)))
        if self.n_own:
            tried = np.arange(min(self.n_own, max(1, BLOCK // self.b.size)))
            costs = self.costs(self.between(np.arange(self.b.size), tried), self.b)
            self.nearest = np.argmin(costs, axis=1)  # among the symbols that are output unchanged
            self.to_nearest = np.take_along_axis(costs, self.nearest[:, None], axis=1)[:, 0]

    def between(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Distances (n, m) between symbols."""
        return distances_by(self.distance, self.order[x][:, None], self.order[y])

    def costs(self, table: np.ndarray, mass: np.ndarray) -> np.ndarray:
        """Costs of w (n, m) in the one-sided programme, from distances (n, m), for inputs of masses
        (n,)."""
        return (1 - 1 / self.odds) * table + (mass @ table) / self.odds

    def few(self) -> tuple[np.ndarray, np.ndarray]:
        """A sample of the inputs and their masses: the most probable ones, and quantiles of the
        belief in others."""
        end = min(self.n_own + APART, self.b.size)
        rest = end + np.argsort(self.order[end:], kind="stable")
        steps = np.cumsum(self.b[rest])
        aims = (np.arange(STANDING if rest.size else 0) + 0.5) / STANDING
        standing, counts = np.unique(
            rest[np.searchsorted(steps[:-1], steps[-1:].sum() * aims)], return_counts=True
        )
        mass = self.b[end:].sum() * counts / STANDING
        return np.append(np.arange(self.n_own, end), standing), np.append(
            self.b[self.n_own : end], mass
        )

    def first_outputs(self) -> np.ndarray:
        """Greedy medians: add, one by one, the symbol that lowers the mean distance to the nearest
        output most."""
        table = self.between(self.sample, self.sample)
        far = 1.0 + table[np.isfinite(table)].max(initial=0.0)
        nearest = (
            np.minimum(far, self.to_nearest[self.sample])
            if self.n_own
            else np.full(self.sample.size, far)
        )
        chosen = []
        for _ in range(int(min(self.cap + 1, self.most, self.sample.size))):
            means = self.sample_mass @ np.minimum(table, nearest[:, None])
            chosen.append(int(np.argmin(means.astype(np.float32))))
            nearest = np.minimum(nearest, table[:, chosen[-1]])
        return np.unique(self.sample[chosen])

    def solve(self, outputs: np.ndarray, kappa: np.ndarray | None) -> _Solved:
        """Merge inputs that are similar at prices kappa of the outputs, and solve the programme for
        the classes."""
        table = self.between(np.arange(self.b.size), outputs)
        costs = self.costs(table, self.b)
        if self.n_own:  # one more output: the nearest symbol that is output unchanged
            costs = np.column_stack([costs, self.to_nearest])
        check_entries(costs, "distances between possible symbols")
        of = self.classes((costs - (0.0 if kappa is None else kappa)).astype(np.float32))
        mass = np.bincount(of, self.b)
        merged = (
            np.column_stack([np.bincount(of, self.b * column) for column in costs.T])
            / mass[:, None]
        )
        if self.n_own:
            merged[-1, :-1] = 2.0 * merged.max()  # they stay
        scale = float((mass @ merged).min())
        w, nu, kappa = solve_interior(mass, merged / scale, self.odds, GAP)
        cost = float(mass @ np.einsum("xy,xy->x", w, merged))
        if np.abs(w.sum(axis=1) - 1.0).max() > ROW_ERROR:
            cost = np.inf  # rounding errors have spoilt the solution
        return _Solved(outputs, table, of, w, scale * nu, scale * kappa, cost)

    def classes(self, costs: np.ndarray) -> np.ndarray:
        """The class of each symbol, (k,); symbols that are output unchanged form the last one."""
        k, m = costs.shape
        first = np.argmin(costs, axis=1)
        key = first
        if m > 1:
            at_first = costs[np.arange(k), first]
            costs[np.arange(k), first] = np.inf
            second = np.argmin(costs, axis=1)
            more = costs[np.arange(k), second] - at_first
            level = np.searchsorted(LEVELS * float(self.b @ more), more) if m <= FINE else 0
            key = (first * m + second) * (LEVELS.size + 1) + level
        if self.n_own:
            key = key * (int(self.nearest.max()) + 1) + self.nearest
        end = min(self.n_own + APART, k)
        key[self.n_own : end] = -1 - np.arange(self.n_own, end)
        key[: self.n_own] = key.max() + 1
        return np.unique(key, return_inverse=True)[1]

    def more_outputs(self, solved: _Solved) -> tuple[np.ndarray, np.ndarray]:
        """The outputs in use and those that would save most, with prices: for new ones, the highest
        price so far."""
        m = solved.outputs.size
        q = np.bincount(solved.of, self.b) @ solved.w
        # Many symbols are equally near, and argpartition would choose among these by the processor.
        near = np.argsort(solved.table.astype(np.float32), axis=0, kind="stable")[:NEIGHBOURS]
        tried = np.setdiff1d(np.append(self.sample, near[near >= self.n_own]), solved.outputs)
        table = self.between(self.sample, tried)
        costs = self.costs(table, self.sample_mass)
        worth = filled(
            costs - solved.nu[solved.of[self.sample]][:, None], self.sample_mass, 1.0 / self.cap
        )
        used = q[:m] >= SLIGHT / self.cap
        room = max(2, min(ADDED, self.most - np.count_nonzero(used)))
        added = tried[np.argsort(worth.astype(np.float32), kind="stable")[:room]]
        kappa = np.concatenate(
            [solved.kappa[:m][used], np.full(added.size, solved.kappa.max()), solved.kappa[m:]]
        )
        return np.append(solved.outputs[used], added), kappa

    def response(self, epsilon: float) -> Response:
        if not self.sample.size:  # all symbols are output unchanged
            row_class = np.where(self.belief > NEGLIGIBLE, -1, 0)
            return mix(
                Response(self.belief, self.order, 0.0, self.b, self.b[None], row_class), epsilon
            )
        first = self.first_outputs()
        means = self.b @ self.between(np.arange(self.b.size), first)
        if means.min() == 0:  # a constant output costs nothing
            return constant_response(self.belief, self.order[first[np.argmin(means)]], 0.0)
        best = current = self.solve(first, None)
        idle = 0
        for _ in range(ROUNDS):
            outputs, kappa = self.more_outputs(current)
            if not outputs.size:
                break
            current = self.solve(outputs, kappa)
            idle = 0 if current.cost < (1.0 - WORTH) * best.cost else idle + 1
            best = min(best, current, key=lambda solved: solved.cost)
            if idle == PATIENCE:
                break
        return self.whole(best, epsilon)

    def whole(self, solved: _Solved, epsilon: float) -> Response:
        """The response of all symbols from the solution for classes, mixed to keep the budget."""
        mass = np.bincount(solved.of, self.b)
        m, own = solved.outputs.size, self.n_own
        table = self.rounded(np.maximum(solved.w, 0.0), mass)
        table[:, mass @ table < SLIGHT / self.cap] = 0.0
        if own:
            table[-1] = np.eye(m + 1)[-1]
            spread = np.zeros((len(table), own))
            # equal in each class but the last, which is dropped
            spread[solved.of, self.nearest] = table[solved.of, -1]
            table = np.column_stack([table[:, :m], spread])[:-1]
        table /= table.sum(axis=1, keepdims=True)
        labels, row_class = (
            np.append(solved.outputs, np.arange(own)),
            np.where(np.arange(self.b.size) < own, -1, solved.of),
        )
        possible = Response(self.b, labels, 0.0, table[0], table, row_class)
        return mix(possible.extended(self.belief, self.order), epsilon)

    def rounded(self, w: np.ndarray, mass: np.ndarray) -> np.ndarray:
        """w rounded to fewer binary digits, and to 0 where it is small relative to its output's
        probability."""
        mantissa, exponent = np.frexp(np.where(w < ROUNDING * (mass @ w), 0.0, w))
        steps = np.ceil(self.cap / ROUNDING)
        return np.ldexp(np.rint(mantissa * steps) / steps, exponent)
