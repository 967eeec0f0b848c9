"""The exact optimum of problem (15) of [3]: the least expected distance within the leakage budget.

    minimise sum_x beta(x) sum_y a(y|x) D(x, y)
    over responses a with e^-eps p(y) <= a(y|x) <= e^eps p(y), p = sum beta(x) a(.|x)

Under Hamming distance `hamming` solves it for any alphabet. For other distances `interior_point`
solves its one-sided form (see `hamming`), and its dual prices prove the reported lower bound on the
cost.
"""

from __future__ import annotations
from collections.abc import Callable
from dataclasses import replace
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.blas import one_blas_thread
from tplrepro.sip.generation import MOST_DISTANCES, generated_response
from tplrepro.sip.hamming import (
    LARGEST_BUDGET,
    constant_response,
    hamming_response,
    mix_nearly_feasible,
    usable_budget,
)
from tplrepro.sip.interior_point import lower_bound, solve_interior
from tplrepro.sip.response import BeliefMechanism, Distance, Response, check_distance, distances_by
from tplrepro.validation import check_distribution, check_entries, frozen

#: Response and bound agree when they differ by less than this share of the bound.
AGREEMENT = 1e-8
#: Duality gap of the programme's solution, as a share of its cost.
GAP = 1e-9
#: Symbols of smaller belief are answered like those that cannot occur.
NEGLIGIBLE = 1e-18
#: Up to this many possible symbols a distance function is written out as a matrix.
FEW = 250
#: Memory for the responses to the last beliefs under an array of distances.
RECENT_BYTES = 32_000_000
#: How many responses to the last beliefs are kept under a distance function.
RECENT_GENERATED = 16


class OptimalResponse(BeliefMechanism):
    """The response of least expected distance among all whose leakage is at most epsilon (problem
    (15) of [3]).

    Parameters
    ----------
    epsilon : float
        The budget in nats, > 0.
    distance : "hamming", array-like (n, n), or callable
        Between symbols. An array is finite and not negative. For more than a few hundred symbols
        give a function of two arrays of symbols that broadcast against each other: then only
        symbols that are possible under the belief are output, and distances may be infinite, but an
        output must be at a finite distance from all possible symbols.

    Raises
    ------
    ValueError
        If epsilon is not positive, or a distance is negative or not finite.

    Notes
    -----
    `response(belief).bound` is a proven lower bound on the cost of every response within the
    budget. The cost of the response itself exceeds it by at most 1e-8 under Hamming distance, else
    by at most 1e-8 of the cost or 1e-11 of the largest distance. Budgets above 20 nats get the
    response for 20 nats, which costs at most 3e-9 of the largest distance more.

    `bound` is -inf (nothing is proven) for budgets up to about 4e-12 nats, which get the best
    constant output. With a function it also is -inf if some symbols are impossible, since they
    might be better outputs, or if more than 250 are possible: then `tplrepro.sip.generation` says
    how near to the optimum its responses were in trials.

    Examples
    --------
    >>> mechanism = OptimalResponse(1.0)
    >>> response = mechanism.response([0.2, 0.3, 0.5])
    >>> round(response.cost(), 4), response.leakage <= 1.0
    (0.2742, True)
    >>> line = OptimalResponse(1.0, distance=[[0, 1, 2], [1, 0, 1], [2, 1, 0]])
    >>> round(line.response([0.2, 0.3, 0.5]).cost(line.distance), 4)
    0.3605
    """

    def __init__(self, epsilon: float, distance: Distance = "hamming"):
        super().__init__(epsilon)
        self.distance: Any = distance
        self._n_kept = RECENT_GENERATED
        if not callable(distance):
            table = frozen(check_distance(distance, None))
            self._n_kept = max(1, RECENT_BYTES // table.nbytes)
            if not isinstance(distance, str):
                self.distance = table
        self._recent: dict[bytes, Response] = {}

    def response(self, belief: ArrayLike) -> Response:
        """The optimal response, from the cache if this belief was met recently; a constant output
        if `usable_budget` is not positive."""
        n = len(self.distance) if isinstance(self.distance, np.ndarray) else None
        beta = check_distribution(belief, n, "a belief")
        if usable_budget(self.epsilon) <= 0:
            return constant_response(beta, self._best_constant(beta))
        if isinstance(self.distance, str):
            return hamming_response(beta, self.epsilon)
        # Many users start from the same belief and see the same outputs.
        response = self._recent.pop(beta.tobytes(), None)
        if response is None:
            response = self._solve_for(beta)
        self._recent[beta.tobytes()] = response  # the last one used is the last to go
        if len(self._recent) > self._n_kept:
            oldest = next(iter(self._recent))
            del self._recent[oldest]
        return response

    def _best_constant(self, belief: np.ndarray) -> int:
        """The symbol that costs least if it is always the output."""
        if isinstance(self.distance, str):
            return int(np.argmax(belief))
        if callable(self.distance):
            return _best_possible_constant(belief, self.distance)
        return int(np.argmin(belief @ self.distance))

    def _solve_for(self, belief: np.ndarray) -> Response:
        with one_blas_thread():
            if callable(self.distance):
                return _function_response(belief, self.distance, self.epsilon)
            return _distance_response(belief, self.distance, self.epsilon)


def _best_possible_constant(belief: np.ndarray, distance: Callable[..., np.ndarray]) -> int:
    """The possible symbol whose mean distance, a function of two arrays of symbols, is least."""
    possible = np.flatnonzero(belief)
    n_parts = ceil(possible.size**2 / MOST_DISTANCES)
    costs = [
        belief[possible] @ distances_by(distance, possible[:, None], outputs)
        for outputs in np.array_split(possible, n_parts)
    ]
    return int(possible[np.argmin(np.concatenate(costs))])


def _function_response(
    belief: np.ndarray, distance: Callable[..., np.ndarray], epsilon: float
) -> Response:
    """`_distance_response` over the possible symbols if they are few, else `generated_response`;
    `belief` (n,), `distance` a function of two arrays of symbols, `epsilon` in nats."""
    possible = np.flatnonzero(belief)
    if possible.size > FEW:
        return generated_response(belief, distance, epsilon)
    table = distances_by(distance, possible[:, None], possible)
    check_entries(table, "distances between possible symbols")
    response = _distance_response(belief[possible], table, epsilon)
    bound = -np.inf
    if possible.size == belief.size:
        bound = response.bound
    return replace(response.extended(belief, possible), bound=bound)


def _distance_response(belief: np.ndarray, distance: np.ndarray, epsilon: float) -> Response:
    """The response for a distance matrix (n, n): solved for `usable_budget(epsilon)`, with a bound
    on its cost for `epsilon` nats."""
    is_possible = belief > NEGLIGIBLE
    b = belief[is_possible]
    b = b / b.sum()
    d = distance[is_possible]
    costs_of_constants = b @ d
    scale = float(costs_of_constants.min())
    if scale == 0:
        free_output = int(np.argmin(belief @ distance))
        return constant_response(belief, free_output, 0.0)
    budget = usable_budget(epsilon)
    usable_costs = _one_sided_costs(b, d / scale, budget)
    optimum = solve_interior(b, usable_costs, np.exp(budget), GAP)
    # Symbols that cannot occur, or hardly, give nothing away.
    marginal = b @ optimum.w
    table = np.tile(marginal, (belief.size, 1))
    table[is_possible] = optimum.w
    response = mix_nearly_feasible(belief, table, epsilon, distance)
    least_distances = d.min(axis=1)
    bound = float(b @ least_distances)
    if epsilon <= LARGEST_BUDGET:
        costs = _one_sided_costs(b, d / scale, epsilon)
        odds = float(np.exp(epsilon))
        bound = max(bound, scale * lower_bound(b, costs, odds, optimum.nu))
        excess = response.cost(distance) - bound
        if excess > AGREEMENT * bound:
            # The prices are those of a slightly smaller budget, which matters where the cost is all
            # but 0.
            nu = solve_interior(b, costs, odds, GAP).nu
            bound = max(bound, scale * lower_bound(b, costs, odds, nu))
    return replace(response, bound=bound)


def _one_sided_costs(b: np.ndarray, distance: np.ndarray, budget: float) -> np.ndarray:
    """Costs (n, m) of w in the one-sided programme, from the distances (n, m): (1 - e^-eps) D for w
    itself and e^-eps beta D for its marginal, beta = `b` (n,), eps = `budget`."""
    marginal_share = np.exp(-budget)
    for_w = (1 - marginal_share) * distance
    for_marginal = marginal_share * (b @ distance)
    return for_w + for_marginal
