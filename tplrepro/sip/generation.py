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
from tplrepro.sip.interior_point import least_column_means, solve_interior
from tplrepro.sip.response import Response, distances_by
from tplrepro.validation import check_entries

#: Symbols of smaller belief are treated as impossible.
NEGLIGIBLE = 1e-18
#: If more symbols than this have a belief of 1/K or more, they are output unchanged.
MOST_COMMON = 8
#: Number of the most probable symbols, which are inputs of their own.
APART = 160
#: Size of a sample of the other symbols.
STANDING = 160
#: Most outputs.
MOST_OUTPUTS = 64
#: How many of the nearest symbols of each output are tried as new outputs.
NEIGHBOURS = 12
#: With at most FINE outputs, classes are split where the margin between the two best passes these
#: shares of its mean, LEVELS.
FINE = 32
LEVELS = np.array([0.02, 0.1, 0.4])
#: Stop after this many rounds,
ROUNDS = 10
#: each of which adds this many outputs,
ADDED = 8
#: or after PATIENCE of them that each save less than this share of the cost.
WORTH = 2e-3
PATIENCE = 2
#: Duality gap of a round's programme, as a share of its cost.
GAP = 1e-5
#: Largest error of a row's sum in a solution.
ROW_ERROR = 1e-6
#: A solution is rounded to this share of its entries, divided by K, which adds less than 0.05 % to
#: the cost.
ROUNDING = 1 / 512
#: Outputs of a smaller share of 1/K are left out.
SLIGHT = 1e-4
#: Distances computed at once.
BLOCK = 4_000_000


def generated_response(
    belief: np.ndarray, distance: Callable[..., np.ndarray], epsilon: float
) -> Response:
    """A response of small expected distance within a budget; it is not proven optimal.

    Parameters
    ----------
    belief : array (n,)
        The distribution of the symbol.
    distance : callable
        A function of two arrays of symbols that broadcast against each other.
    epsilon : float
        The budget in nats.

    Returns
    -------
    Response
    """
    with one_blas_thread():
        return _Generation(belief, distance, usable_budget(epsilon)).response(epsilon)


@dataclass(frozen=True, eq=False)
class _Solved:
    """The programme over some outputs, solved for classes of inputs."""

    outputs: np.ndarray  # (m,)
    table: np.ndarray  # (k, m), distances of all symbols
    # (k,), class of each symbol; symbols that are output unchanged, if any, form the last class
    class_of: np.ndarray
    w: np.ndarray  # (c, m), with one more column for these symbols, if any
    nu: np.ndarray  # (c,)
    kappa: np.ndarray  # (m,), one more if w has one
    cost: float


@dataclass(frozen=True, eq=False)
class _Sample:
    """Some of the inputs, and the mass for which each stands."""

    symbols: np.ndarray
    mass: np.ndarray


class _Generation:
    """The programme over the k symbols that can occur, numbered in falling order of belief."""

    def __init__(self, belief: np.ndarray, distance: Callable[..., np.ndarray], budget: float):
        self.belief = belief
        self.distance = distance
        order = np.argsort(-belief.astype(np.float32), kind="stable")
        self.order = order[: np.count_nonzero(belief > NEGLIGIBLE)]
        self.b = belief[self.order] / belief[self.order].sum()
        self.k = self.b.size
        self.odds = float(np.exp(budget))
        self.cap = self.odds + 1.0
        self.n_own = 0  # the first symbols, if they are output unchanged
        n_common = int(np.searchsorted(-self.b, -1.0 / self.cap, side="right"))
        if n_common > MOST_COMMON:
            self.n_own = n_common
        self.sample = self._sample()
        room = min(MOST_OUTPUTS, 1.5 * self.cap + 12, 4 * BLOCK // self.k)
        self.most_outputs = int(max(8, room))
        if self.n_own:
            n_tried = min(self.n_own, max(1, BLOCK // self.k))
            distances = self.distances(np.arange(self.k), np.arange(n_tried))
            costs = self.costs(distances, self.b)
            self.nearest = np.argmin(costs, axis=1)  # among the symbols that are output unchanged
            self.to_nearest = np.take_along_axis(costs, self.nearest[:, None], axis=1)[:, 0]

    def distances(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Distances (n, m) between symbols."""
        return distances_by(self.distance, self.order[x][:, None], self.order[y])

    def costs(self, table: np.ndarray, mass: np.ndarray) -> np.ndarray:
        """Costs of w (n, m) in the one-sided programme, from distances (n, m), for inputs of masses
        (n,)."""
        return (1 - 1 / self.odds) * table + (mass @ table) / self.odds

    def _sample(self) -> _Sample:
        """The most probable inputs, and quantiles of the belief in the others."""
        end = min(self.n_own + APART, self.k)
        rest = end + np.argsort(self.order[end:], kind="stable")
        cumulative = np.cumsum(self.b[rest])
        n_standing = STANDING if rest.size else 0
        levels = (np.arange(n_standing) + 0.5) / STANDING * cumulative[-1:].sum()
        places = np.searchsorted(cumulative[:-1], levels)
        standing, counts = np.unique(rest[places], return_counts=True)
        return _Sample(
            symbols=np.append(np.arange(self.n_own, end), standing),
            mass=np.append(self.b[self.n_own : end], self.b[end:].sum() * counts / STANDING),
        )

    def first_outputs(self) -> np.ndarray:
        """Greedy medians: add, one by one, the symbol that lowers the mean distance to the nearest
        output most."""
        symbols = self.sample.symbols
        table = self.distances(symbols, symbols)
        far = 1.0 + table[np.isfinite(table)].max(initial=0.0)
        nearest = np.full(symbols.size, far)
        if self.n_own:
            nearest = np.minimum(far, self.to_nearest[symbols])
        chosen: list[int] = []
        for _ in range(int(min(self.cap + 1, self.most_outputs, symbols.size))):
            means = self.sample.mass @ np.minimum(table, nearest[:, None])
            chosen.append(int(np.argmin(means.astype(np.float32))))
            nearest = np.minimum(nearest, table[:, chosen[-1]])
        return np.unique(symbols[chosen])

    def solve(self, outputs: np.ndarray, kappa: np.ndarray | None) -> _Solved:
        """Merge inputs that are similar at prices kappa of the outputs, and solve the programme for
        the classes."""
        table = self.distances(np.arange(self.k), outputs)
        costs = self.costs(table, self.b)
        if self.n_own:  # one more output: the nearest symbol that is output unchanged
            costs = np.column_stack([costs, self.to_nearest])
        check_entries(costs, "distances between possible symbols")
        if kappa is None:
            kappa = np.zeros(costs.shape[1])
        class_of = self.classes((costs - kappa).astype(np.float32))
        mass = np.bincount(class_of, self.b)
        sums = np.column_stack([np.bincount(class_of, self.b * column) for column in costs.T])
        merged = sums / mass[:, None]
        if self.n_own:
            merged[-1, :-1] = 2.0 * merged.max()  # they stay
        scale = float((mass @ merged).min())
        optimum = solve_interior(mass, merged / scale, self.odds, GAP)
        cost = float(mass @ np.einsum("xy,xy->x", optimum.w, merged))
        if np.abs(optimum.w.sum(axis=1) - 1.0).max() > ROW_ERROR:
            cost = np.inf  # rounding errors have spoilt the solution
        return _Solved(
            outputs=outputs,
            table=table,
            class_of=class_of,
            w=optimum.w,
            nu=scale * optimum.nu,
            kappa=scale * optimum.kappa,
            cost=cost,
        )

    def classes(self, costs: np.ndarray) -> np.ndarray:
        """The class of each symbol, (k,); symbols that are output unchanged form the last one."""
        key = self._preferences(costs)
        if self.n_own:
            key = key * (int(self.nearest.max()) + 1) + self.nearest
        apart = np.arange(self.n_own, min(self.n_own + APART, self.k))
        key[apart] = -1 - apart
        key[: self.n_own] = key.max() + 1
        return np.unique(key, return_inverse=True)[1]

    def _preferences(self, costs: np.ndarray) -> np.ndarray:
        """A number for the two best outputs of each symbol and the level of the margin between
        them, (k,)."""
        k, m = costs.shape
        rows = np.arange(k)
        first = np.argmin(costs, axis=1)
        if m == 1:
            return first
        least = costs[rows, first]
        costs[rows, first] = np.inf
        second = np.argmin(costs, axis=1)
        margin = costs[rows, second] - least
        level = 0
        if m <= FINE:
            level = np.searchsorted(LEVELS * float(self.b @ margin), margin)
        return (first * m + second) * (LEVELS.size + 1) + level

    def more_outputs(self, solved: _Solved) -> tuple[np.ndarray, np.ndarray]:
        """The outputs in use and those that would save most, with prices: for new ones, the highest
        price so far."""
        m = solved.outputs.size
        q = np.bincount(solved.class_of, self.b) @ solved.w
        is_used = q[:m] >= SLIGHT / self.cap
        room = max(2, min(ADDED, self.most_outputs - np.count_nonzero(is_used)))
        added = self._candidates_by_worth(solved)[:room]
        prices = np.concatenate(
            [solved.kappa[:m][is_used], np.full(added.size, solved.kappa.max()), solved.kappa[m:]]
        )
        return np.append(solved.outputs[is_used], added), prices

    def _candidates_by_worth(self, solved: _Solved) -> np.ndarray:
        """New outputs near the present ones or in the sample, those first that would save most."""
        symbols = self.sample.symbols
        # Many symbols are equally near, and argpartition would choose among these by the processor.
        nearest = np.argsort(solved.table.astype(np.float32), axis=0, kind="stable")[:NEIGHBOURS]
        near = nearest[nearest >= self.n_own]
        candidates = np.setdiff1d(np.append(symbols, near), solved.outputs)
        costs = self.costs(self.distances(symbols, candidates), self.sample.mass)
        nu = solved.nu[solved.class_of[symbols]]
        reduced = least_column_means(costs - nu[:, None], self.sample.mass, 1.0 / self.cap)
        return candidates[np.argsort(reduced.astype(np.float32), kind="stable")]

    def response(self, epsilon: float) -> Response:
        """The response, by rounds of new outputs until none saves much."""
        if not self.sample.symbols.size:
            return self._unchanged(epsilon)
        first = self.first_outputs()
        means = self.b @ self.distances(np.arange(self.k), first)
        if means.min() == 0:  # a constant output costs nothing
            return constant_response(self.belief, self.order[first[np.argmin(means)]], 0.0)
        best = current = self.solve(first, None)
        n_idle = 0
        for _ in range(ROUNDS):
            outputs, kappa = self.more_outputs(current)
            if not outputs.size:
                break
            current = self.solve(outputs, kappa)
            n_idle += 1
            if current.cost < (1.0 - WORTH) * best.cost:
                n_idle = 0
            best = min(best, current, key=lambda solved: solved.cost)
            if n_idle == PATIENCE:
                break
        return self._response_of_all(best, epsilon)

    def _unchanged(self, epsilon: float) -> Response:
        """All symbols are output unchanged."""
        row_class = np.where(self.belief > NEGLIGIBLE, -1, 0)
        response = Response(self.belief, self.order, 0.0, self.b, self.b[None], row_class)
        return mix(response, epsilon)

    def _response_of_all(self, solved: _Solved, epsilon: float) -> Response:
        """The response of all symbols from the solution for classes, mixed to keep the budget."""
        m = solved.outputs.size
        n_own = self.n_own
        mass = np.bincount(solved.class_of, self.b)
        table = self._rounded(np.maximum(solved.w, 0.0), mass)
        table[:, mass @ table < SLIGHT / self.cap] = 0.0
        if n_own:
            table[-1] = np.eye(m + 1)[-1]
            to_own = np.zeros((len(table), n_own))
            # Equal in each class but the last, which is dropped.
            to_own[solved.class_of, self.nearest] = table[solved.class_of, -1]
            table = np.column_stack([table[:, :m], to_own])[:-1]
        table /= table.sum(axis=1, keepdims=True)
        labels = np.append(solved.outputs, np.arange(n_own))
        row_class = np.where(np.arange(self.k) < n_own, -1, solved.class_of)
        possible = Response(self.b, labels, 0.0, table[0], table, row_class)
        return mix(possible.extended(self.belief, self.order), epsilon)

    def _rounded(self, w: np.ndarray, mass: np.ndarray) -> np.ndarray:
        """w rounded to fewer binary digits, and to 0 where it is small relative to its output's
        probability."""
        is_small = w < ROUNDING * (mass @ w)
        mantissa, exponent = np.frexp(np.where(is_small, 0.0, w))
        steps = np.ceil(self.cap / ROUNDING)
        return np.ldexp(np.rint(mantissa * steps) / steps, exponent)
