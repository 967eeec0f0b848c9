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
  Hence the solution is rounded to a few digits, and candidates are compared in single precision;
  the first of equal ones wins.

The result keeps the budget (see `mix_with_marginal`), but its cost has no proven bound: among 300
symbols, at budgets of 1 to 8, it was at most 6 % above the least cost in 14 of 16 cases, and 17 and
34 % in two with a large K and many likely symbols.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tplrepro.blas import one_blas_thread
from tplrepro.sip.hamming import constant_response, mix_with_marginal, usable_budget
from tplrepro.sip.interior_point import least_column_means, solve_interior
from tplrepro.sip.response import Response, distances_by
from tplrepro.validation import check_entries

#: Symbols of smaller belief are treated as impossible.
NEGLIGIBLE = 1e-18
#: If more symbols than this have a belief of 1/K or more, they are output unchanged.
MOST_COMMON = 8
#: This many of the most probable symbols are inputs of their own.
SEPARATE_INPUTS = 160
#: This many quantiles of the belief in the other symbols stand for these in the sample.
SAMPLED_INPUTS = 160
#: Outputs of a programme, apart from two that each round may add.
MOST_OUTPUTS = 64
#: This many of the nearest symbols of each output are tried as new outputs.
NEIGHBOURS = 12
#: Classes are split where the margin between the two best outputs passes these shares of its mean,
MARGIN_LEVELS = np.array([0.02, 0.1, 0.4])
#: in programmes of at most this many outputs.
MOST_OUTPUTS_WITH_LEVELS = 32
#: Most rounds after the first one.
MOST_ROUNDS = 10
#: Each round adds this many outputs; fewer where there is no room for them, but at least two.
OUTPUTS_PER_ROUND = 8
#: A round is idle if it saves less than this share of the cost.
LEAST_SAVING = 2e-3
#: The search ends after this many idle rounds in a row.
MOST_IDLE_ROUNDS = 2
#: Duality gap of a round's programme, as a share of its cost.
GAP = 1e-5
#: Largest error of a row's sum in a solution.
ROW_ERROR = 1e-6
#: The entries of a solution are rounded by about this share of themselves, divided by K, which adds
#: less than 0.05 % to the cost.
ROUNDING = 1 / 512
#: Outputs whose probability is less than this share of 1/K are left out.
SLIGHT_OUTPUT = 1e-4
#: Distances that are computed at once.
MOST_DISTANCES = 4_000_000


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
        generation = _Generation(belief, distance, usable_budget(epsilon))
        return generation.response(epsilon)


@dataclass(frozen=True, eq=False)
class _Solved:
    """The programme over some outputs, solved for classes of inputs.

    If some symbols are output unchanged, they form the last class, and w has one more column: the
    cheapest one of them.
    """

    outputs: np.ndarray  # (m,)
    table: np.ndarray  # (k, m), distances of all symbols
    class_of: np.ndarray  # (k,), class of each symbol
    class_mass: np.ndarray  # (c,), belief in each class
    w: np.ndarray  # (c, m or m + 1)
    nu: np.ndarray  # (c,), prices of the inputs
    kappa: np.ndarray  # (m or m + 1,), prices of the outputs
    cost: float

    @property
    def n_outputs(self) -> int:
        """m."""
        return self.outputs.size


@dataclass(frozen=True, eq=False)
class _Sample:
    """Some of the inputs, and the mass for which each stands."""

    symbols: np.ndarray  # (n,)
    mass: np.ndarray  # (n,)


@dataclass(frozen=True, eq=False)
class _CheapestUnchanged:
    """Of each symbol, the unchanged one that is its output of least cost, and that cost.

    Costs are those of `_Generation.costs`, which adds to the distance the output's mean one.
    """

    output: np.ndarray  # (k,)
    cost: np.ndarray  # (k,)


@dataclass(frozen=True, eq=False)
class _PricedOutputs:
    """The outputs of the next programme, and the prices by which it merges inputs."""

    outputs: np.ndarray  # (m,)
    kappa: np.ndarray  # (m,), one more if w has one


class _Generation:
    """The programme over the k symbols that can occur, numbered in falling order of belief.

    `belief` (n,) and `distance` are as in `generated_response`, `budget` is the usable one, nats.
    Arrays of symbols hold these numbers; `order` (k,) leads back to the symbols of `belief`.
    """

    def __init__(self, belief: np.ndarray, distance: Callable[..., np.ndarray], budget: float):
        self.belief = belief
        self.distance = distance
        falling = np.argsort(-belief.astype(np.float32), kind="stable")
        n_possible = np.count_nonzero(belief > NEGLIGIBLE)
        self.order = falling[:n_possible]
        possible_belief = belief[self.order]
        self.b = possible_belief / possible_belief.sum()
        self.k = self.b.size
        self.odds = float(np.exp(budget))
        self.cap = self.odds + 1.0
        self.n_unchanged = self._count_unchanged()
        self.end_of_separate = min(self.n_unchanged + SEPARATE_INPUTS, self.k)
        self.sample = self._sample_inputs()
        most_by_budget = 1.5 * self.cap + 12
        most_by_memory = 4 * MOST_DISTANCES // self.k
        most_outputs = min(MOST_OUTPUTS, most_by_budget, most_by_memory)
        self.most_outputs = int(max(8, most_outputs))
        if self.n_unchanged:
            self.unchanged = self._find_cheapest_unchanged()

    def _count_unchanged(self) -> int:
        """How many of the first symbols are always output unchanged."""
        least_common = 1.0 / self.cap
        n_common = int(np.searchsorted(-self.b, -least_common, side="right"))
        if n_common > MOST_COMMON:
            return n_common
        return 0

    def _find_cheapest_unchanged(self) -> _CheapestUnchanged:
        """Of each of the k symbols, the output of least cost among the unchanged ones, and that
        cost. Only the most probable unchanged ones that memory allows are tried."""
        most_tried = max(1, MOST_DISTANCES // self.k)
        n_tried = min(self.n_unchanged, most_tried)
        distances = self.distances(np.arange(self.k), np.arange(n_tried))
        costs = self.costs(distances, self.b)
        cheapest = np.argmin(costs, axis=1)
        least = np.take_along_axis(costs, cheapest[:, None], axis=1)
        return _CheapestUnchanged(output=cheapest, cost=least[:, 0])

    def distances(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Distances (n, m) between symbols x (n,) and y (m,), by their numbers."""
        rows = self.order[x][:, None]
        columns = self.order[y]
        return distances_by(self.distance, rows, columns)

    def costs(self, table: np.ndarray, mass: np.ndarray) -> np.ndarray:
        """Costs of w (n, m) in the one-sided programme, from distances (n, m), for inputs of masses
        (n,)."""
        w_share = 1 - 1 / self.odds
        for_w = w_share * table
        for_marginal = (mass @ table) / self.odds
        return for_w + for_marginal

    def _sample_inputs(self) -> _Sample:
        """The most probable inputs, and quantiles of the belief in the others."""
        separate = np.arange(self.n_unchanged, self.end_of_separate)
        mass_of_separate = self.b[separate]
        others = self.order[self.end_of_separate :]
        rest = self.end_of_separate + np.argsort(others, kind="stable")
        if rest.size == 0:
            return _Sample(symbols=separate, mass=mass_of_separate)
        cumulative = np.cumsum(self.b[rest])
        midpoints = (np.arange(SAMPLED_INPUTS) + 0.5) / SAMPLED_INPUTS
        levels = midpoints * cumulative[-1]
        places = np.searchsorted(cumulative[:-1], levels)
        standing, counts = np.unique(rest[places], return_counts=True)
        mass_of_rest = self.b[self.end_of_separate :].sum()
        mass_of_standing = mass_of_rest * counts / SAMPLED_INPUTS
        return _Sample(
            symbols=np.append(separate, standing),
            mass=np.append(mass_of_separate, mass_of_standing),
        )

    def first_outputs(self) -> np.ndarray:
        """Greedy medians: add, one by one, the symbol that lowers the mean distance to the nearest
        output most."""
        symbols = self.sample.symbols
        table = self.distances(symbols, symbols)
        finite = table[np.isfinite(table)]
        far = 1.0 + finite.max(initial=0.0)
        nearest = np.full(symbols.size, far)
        if self.n_unchanged:
            nearest = np.minimum(far, self.unchanged.cost[symbols])
        chosen: list[int] = []
        n_wanted = min(self.cap + 1, self.most_outputs, symbols.size)
        for _ in range(int(n_wanted)):
            distances_with = np.minimum(table, nearest[:, None])
            means = self.sample.mass @ distances_with
            best = int(np.argmin(means.astype(np.float32)))
            chosen.append(best)
            nearest = np.minimum(nearest, table[:, best])
        return np.unique(symbols[chosen])

    def solve(self, outputs: np.ndarray, kappa: np.ndarray | None) -> _Solved:
        """Merge inputs that are similar at prices kappa of the `outputs` (m,), and solve the
        programme for the classes. Without prices (None) all are 0; kappa has one more if symbols
        are output unchanged."""
        table = self.distances(np.arange(self.k), outputs)
        costs = self.costs(table, self.b)
        if self.n_unchanged:  # one more output: the cheapest symbol that is output unchanged
            costs = np.column_stack([costs, self.unchanged.cost])
        check_entries(costs, "distances between possible symbols")
        if kappa is None:
            kappa = np.zeros(costs.shape[1])
        reduced_costs = costs - kappa
        class_of = self._merge_inputs(reduced_costs.astype(np.float32))
        mass = np.bincount(class_of, self.b)
        merged = self._merged_costs(costs, class_of, mass)
        scale = float((mass @ merged).min())
        optimum = solve_interior(mass, merged / scale, self.odds, GAP)
        costs_of_classes = np.einsum("xy,xy->x", optimum.w, merged)
        cost = float(mass @ costs_of_classes)
        row_sums = optimum.w.sum(axis=1)
        row_errors = np.abs(row_sums - 1.0)
        if row_errors.max() > ROW_ERROR:
            cost = np.inf  # rounding errors have spoilt the solution
        return _Solved(
            outputs=outputs,
            table=table,
            class_of=class_of,
            class_mass=mass,
            w=optimum.w,
            nu=scale * optimum.nu,
            kappa=scale * optimum.kappa,
            cost=cost,
        )

    def _merged_costs(
        self, costs: np.ndarray, class_of: np.ndarray, mass: np.ndarray
    ) -> np.ndarray:
        """The mean costs of the c classes, (c, m), from those of the k symbols, (k, m); `class_of`
        (k,) is the class of each symbol and `mass` (c,) the belief in each class."""
        sums = []
        for column in costs.T:
            sum_of_classes = np.bincount(class_of, self.b * column)
            sums.append(sum_of_classes)
        merged = np.column_stack(sums) / mass[:, None]
        if self.n_unchanged:
            merged[-1, :-1] = 2.0 * merged.max()  # symbols that are output unchanged stay
        return merged

    def _merge_inputs(self, costs: np.ndarray) -> np.ndarray:
        """The class of each symbol, (k,), by its costs (k, m) less the prices, in single precision,
        which are changed; symbols that are output unchanged form the last one."""
        key = self._preferences(costs)
        if self.n_unchanged:
            cheapest = self.unchanged.output
            n_cheapest = int(cheapest.max()) + 1
            key = key * n_cheapest + cheapest
        separate = np.arange(self.n_unchanged, self.end_of_separate)
        key[separate] = -1 - separate
        last = key.max() + 1
        key[: self.n_unchanged] = last
        _, class_of = np.unique(key, return_inverse=True)
        return class_of

    def _preferences(self, costs: np.ndarray) -> np.ndarray:
        """A number for the two best outputs of each symbol, at costs (k, m), and the level of the
        margin between them, (k,). The costs are changed."""
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
        if m <= MOST_OUTPUTS_WITH_LEVELS:
            mean_margin = float(self.b @ margin)
            level = np.searchsorted(MARGIN_LEVELS * mean_margin, margin)
        pair = first * m + second
        n_levels = MARGIN_LEVELS.size + 1
        return pair * n_levels + level

    def more_outputs(self, solved: _Solved) -> _PricedOutputs:
        """The outputs in use and those that would save most; new ones at the highest price so
        far."""
        m = solved.n_outputs
        q = solved.class_mass @ solved.w
        is_used = q[:m] >= SLIGHT_OUTPUT / self.cap
        n_free = self.most_outputs - np.count_nonzero(is_used)
        n_added = max(2, min(OUTPUTS_PER_ROUND, n_free))
        added = self._candidates_by_worth(solved)[:n_added]
        kappa_of_used = solved.kappa[:m][is_used]
        kappa_of_added = np.full(added.size, solved.kappa.max())
        kappa_of_unchanged = solved.kappa[m:]
        kappa = np.concatenate([kappa_of_used, kappa_of_added, kappa_of_unchanged])
        used = solved.outputs[is_used]
        return _PricedOutputs(outputs=np.append(used, added), kappa=kappa)

    def _candidates_by_worth(self, solved: _Solved) -> np.ndarray:
        """New outputs near the present ones or in the sample, those first that would save most."""
        symbols = self.sample.symbols
        # Many symbols are equally near, and argpartition would choose among these by the processor.
        comparable = solved.table.astype(np.float32)
        by_distance = np.argsort(comparable, axis=0, kind="stable")
        nearest = by_distance[:NEIGHBOURS]
        near = nearest[nearest >= self.n_unchanged]
        candidates = np.setdiff1d(np.append(symbols, near), solved.outputs)
        distances = self.distances(symbols, candidates)
        costs = self.costs(distances, self.sample.mass)
        nu = solved.nu[solved.class_of[symbols]]
        margins = costs - nu[:, None]
        reduced_costs = least_column_means(margins, self.sample.mass, 1.0 / self.cap)
        by_worth = np.argsort(reduced_costs.astype(np.float32), kind="stable")
        return candidates[by_worth]

    def response(self, epsilon: float) -> Response:
        """The response, by rounds of new outputs until none saves much."""
        if not self.sample.symbols.size:
            return self._unchanged_response(epsilon)
        first = self.first_outputs()
        distances = self.distances(np.arange(self.k), first)
        costs_of_constants = self.b @ distances
        if costs_of_constants.min() == 0:
            free_output = first[np.argmin(costs_of_constants)]
            return constant_response(self.belief, self.order[free_output], 0.0)
        best = self._best_of_rounds(first)
        return self._response_of_all(best, epsilon)

    def _best_of_rounds(self, first: np.ndarray) -> _Solved:
        """The cheapest solution of several rounds, the first of which has the `first` outputs."""
        current = self.solve(first, None)
        best = current
        n_idle = 0
        for _ in range(MOST_ROUNDS):
            priced = self.more_outputs(current)
            if not priced.outputs.size:
                break
            current = self.solve(priced.outputs, priced.kappa)
            n_idle += 1
            cost_worth_a_round = (1.0 - LEAST_SAVING) * best.cost
            if current.cost < cost_worth_a_round:
                n_idle = 0
            best = min(best, current, key=lambda solved: solved.cost)
            if n_idle == MOST_IDLE_ROUNDS:
                break
        return best

    def _unchanged_response(self, epsilon: float) -> Response:
        """The response that outputs all symbols unchanged, mixed to keep the budget."""
        is_possible = self.belief > NEGLIGIBLE
        row_class = np.where(is_possible, -1, 0)
        response = Response(
            belief=self.belief,
            labels=self.order,
            share=0.0,
            base=self.b,
            table=self.b[None],
            row_class=row_class,
        )
        return mix_with_marginal(response, epsilon)

    def _response_of_all(self, solved: _Solved, epsilon: float) -> Response:
        """The response of all symbols from the solution for classes, mixed to keep the budget."""
        n_unchanged = self.n_unchanged
        w = np.maximum(solved.w, 0.0)
        table = _round_off_machine_errors(w, solved.class_mass, self.cap)
        output_probability = solved.class_mass @ table
        is_slight = output_probability < SLIGHT_OUTPUT / self.cap
        table[:, is_slight] = 0.0
        if n_unchanged:
            table = self._with_unchanged_outputs(table, solved)
        table /= table.sum(axis=1, keepdims=True)
        is_unchanged = np.arange(self.k) < n_unchanged
        possible = Response(
            belief=self.b,
            labels=np.append(solved.outputs, np.arange(n_unchanged)),
            share=0.0,
            base=table[0],
            table=table,
            row_class=np.where(is_unchanged, -1, solved.class_of),
        )
        return mix_with_marginal(possible.extended(self.belief, self.order), epsilon)

    def _with_unchanged_outputs(self, table: np.ndarray, solved: _Solved) -> np.ndarray:
        """The rows (c - 1, m + n_unchanged) of the other symbols.

        They come from a table (c, m + 1) whose last column is the cheapest symbol that is output
        unchanged.
        """
        m = solved.n_outputs
        to_cheapest = table[:, -1]
        to_unchanged = np.zeros((len(table), self.n_unchanged))
        # The symbols of a class have the same cheapest one, except in the last class, whose row is
        # not used.
        to_unchanged[solved.class_of, self.unchanged.output] = to_cheapest[solved.class_of]
        rows = np.column_stack([table[:, :m], to_unchanged])
        return rows[:-1]


def _round_off_machine_errors(w: np.ndarray, mass: np.ndarray, cap: float) -> np.ndarray:
    """A solution w (c, m) rounded so coarsely that it is the same on all machines, whose rounding
    errors differ.

    `mass` (c,) is the belief in each class of inputs, `cap` is K. An entry is written as a mantissa
    from 1/2 to 1 times a power of 2, and the mantissa is rounded to a multiple of ROUNDING / K.
    Entries below ROUNDING of their output's probability become 0. (Machines can still differ where
    an entry lies in the middle between two multiples.)
    """
    output_probability = mass @ w
    is_small = w < ROUNDING * output_probability
    kept = np.where(is_small, 0.0, w)
    mantissa, exponent = np.frexp(kept)
    steps_per_unit = np.ceil(cap / ROUNDING)
    rounded_mantissa = np.rint(mantissa * steps_per_unit) / steps_per_unit
    return np.ldexp(rounded_mantissa, exponent)
