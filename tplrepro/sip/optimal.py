"""The exact optimum of problem (15) of [3]: least expected distance with both sides of the leakage constraint.

    minimise sum_x beta(x) sum_y a(y|x) D(x, y)   over responses a with  e^-eps p(y) <= a(y|x) <= e^eps p(y),
    p = sum beta(x) a(.|x)

Under Hamming distance `tplrepro.sip.hamming` solves it for any alphabet. For other distances it is a linear programme
in the form of `tplrepro.sip.hamming` over the outputs that are worth using: few are, so outputs are added as the dual
prices call for them until the dual bound is met, which proves optimality for all outputs.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.sip.hamming import constant_response, hamming_response, mix_dense, solve_one_sided, usable_budget
from tplrepro.sip.response import BeliefMechanism, Response, check_distance
from tplrepro.validation import check_distribution, frozen

__all__ = ["OptimalResponse"]

#: Response and bound agree when they differ by less than this share of the largest cost.
AGREEMENT = 1e-8
#: How often outputs may be added.
MOST_ROUNDS = 60
#: Memory for the responses to the last beliefs, under distances other than Hamming.
RECENT_BYTES = 32_000_000


class OptimalResponse(BeliefMechanism):
    """The response of least expected distance among all whose leakage is at most epsilon, which it never exceeds.

    `response(belief).bound` is a proven lower bound of the cost; the response's own cost agrees with it to 1e-8.

    `distance` is "hamming", or an array (n, n) of distances between symbols, finite and not negative.

    >>> mechanism = OptimalResponse(1.0)
    >>> response = mechanism.response([0.2, 0.3, 0.5])
    >>> round(response.cost(), 4), response.leakage <= 1.0
    (0.2742, True)
    >>> line = OptimalResponse(1.0, distance=[[0, 1, 2], [1, 0, 1], [2, 1, 0]])
    >>> round(line.response([0.2, 0.3, 0.5]).cost(line.distance), 4)
    0.3605
    """

    def __init__(self, epsilon: float, distance: str | ArrayLike = "hamming"):
        super().__init__(epsilon)
        table = frozen(check_distance(distance, max((*np.shape(distance), 1)[0], 1)))
        self.distance: str | np.ndarray = distance if isinstance(distance, str) else table
        # Many users start from the same belief and see the same outputs.
        recent = lru_cache(max(1, RECENT_BYTES // table.nbytes))
        self._recent = recent(lambda belief: _distance_response(np.frombuffer(belief), table, self.epsilon))

    def __reduce__(self):
        return type(self), (self.epsilon, self.distance)

    def response(self, belief: ArrayLike) -> Response:
        table = None if isinstance(self.distance, str) else self.distance
        beta = check_distribution(belief, None if table is None else len(table), "a belief")
        if usable_budget(self.epsilon) <= 0:
            return constant_response(beta, table)
        return hamming_response(beta, self.epsilon) if table is None else self._recent(beta.tobytes())


def _distance_response(belief: np.ndarray, distance: np.ndarray, epsilon: float) -> Response:
    """Solve the programme over the outputs that pay, until the dual bound holds for all outputs."""
    possible, odds = belief > 0, np.exp(usable_budget(epsilon))
    scale = max(float(distance[possible].max()), np.finfo(float).tiny)
    b, d = belief[possible], distance[possible] / scale
    labels = _medoids(b, d, min(belief.size, int(np.ceil(2 * min(odds, 1e3))) + 6))
    best = -np.inf
    for _ in range(MOST_ROUNDS):
        w_cost, q_cost = (1 - 1 / odds) * b[:, None] * d[:, labels], b @ d[:, labels] / odds
        w, value, dual = solve_one_sided(b, w_cost, q_cost, odds)
        table = np.zeros_like(distance)
        table[np.ix_(possible, labels)] = w
        reduced = _reduced_costs(b, d, odds, dual)
        best = max(best, float(b @ dual + reduced.min()))
        worth = np.argsort(reduced, kind="stable")[: max(8, labels.size // 2)]
        fresh = np.setdiff1d(worth[reduced[worth] < -AGREEMENT / 10], labels)
        if value - best <= AGREEMENT or not fresh.size:
            break
        labels = np.union1d(labels, fresh)
    return mix_dense(belief, table, epsilon, distance, best * scale)


def _reduced_costs(b, distance, odds, dual) -> np.ndarray:
    """What each output would cost at best at these prices, (m,): below 0 it pays to add it."""
    value = (1 - 1 / odds) * distance - dual[:, None]
    order = np.argsort(value, axis=0)
    mass = b[order]
    taken = np.clip(1 / (odds + 1) - (np.cumsum(mass, axis=0) - mass), 0.0, mass)
    return b @ distance / odds + (odds + 1) * (taken * np.take_along_axis(value, order, axis=0)).sum(axis=0)


def _medoids(b, distance, count) -> np.ndarray:
    """Outputs to begin with: each in turn lowers the expected distance to the nearest one most."""
    nearest = np.full(b.size, 1e300)
    chosen: list[int] = []
    for _ in range(count):
        cost = b @ np.minimum(nearest[:, None], distance)
        cost[chosen] = np.inf
        best = int(np.argmin(cost))
        if cost[best] >= b @ nearest:
            break
        chosen.append(best)
        nearest = np.minimum(nearest, distance[:, best])
    return np.array(sorted(chosen))
