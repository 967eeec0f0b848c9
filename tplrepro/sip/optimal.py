"""The exact optimum of problem (15) of [3]: least expected distance with both sides of the leakage constraint.

    minimise sum_x beta(x) sum_y a(y|x) D(x, y)   over responses a with  e^-eps p(y) <= a(y|x) <= e^eps p(y),
    p = sum beta(x) a(.|x)

Under Hamming distance `tplrepro.sip.hamming` solves it for any alphabet. For other distances it is a linear
programme for HiGHS, in the one-sided form of `tplrepro.sip.mixing`, over the outputs that are worth using:
few are, so outputs are added as the dual prices call for them until the dual bound is met (a proof of
optimality, as for the whole programme at once).

References
----------
[3] B. Jiang, M. Li, R. Tandon, "Online Context-Aware Data Release with Sequence Information Privacy", 2023.
"""

from __future__ import annotations

import numpy as np

from tplrepro.sip.hamming import hamming_response
from tplrepro.sip.leakage import check_belief, check_distance
from tplrepro.sip.mixing import constant_response, mix_dense, usable_budget
from tplrepro.sip.response import DenseResponse, Mechanism, Response

__all__ = ["OptimalResponse", "label_programme"]

#: Response and bound agree when they differ by less than this share of the largest cost.
AGREEMENT = 1e-8
#: Memory for the responses to the last beliefs, under distances other than Hamming.
RECENT_BYTES = 32_000_000


class OptimalResponse(Mechanism):
    """The response of least expected distance among all whose leakage is at most epsilon, which it never exceeds.

    Parameters
    ----------
    epsilon : float, nats
    distance : "hamming", or array-like (n, n) of distances between symbols, not negative

    Raises
    ------
    ValueError
        If epsilon is not finite and positive, the distances are not finite and not negative, or a belief is
        no distribution.

    Notes
    -----
    `response(belief).bound` is a proven lower bound of the cost; the response's own cost agrees with it to
    1e-8.

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

    def __init__(self, epsilon: float, distance="hamming"):
        super().__init__(epsilon)
        if isinstance(distance, str):
            if distance != "hamming":
                raise ValueError(
                    f"distance must be 'hamming' or an array (n, n), found {distance!r}; give one of these"
                )
            self.distance = distance
        else:
            values = np.array(distance, dtype=float)
            self.distance = check_distance(values, values.shape[0] if values.ndim else 0)
            self.distance.setflags(write=False)
        self._recent: dict[bytes, Response] = {}

    def response(self, belief) -> Response:
        if isinstance(self.distance, str):
            return hamming_response(check_belief(belief), self.epsilon)
        beta = check_belief(belief, len(self.distance))
        key = beta.tobytes()
        if key not in self._recent:
            # Many users start from the same belief and see the same outputs; the oldest response makes room.
            while len(self._recent) >= max(1, RECENT_BYTES // (8 * beta.size**2)):
                self._recent.pop(next(iter(self._recent)))
            self._recent[key] = _distance_response(beta, self.distance, self.epsilon)
        return self._recent[key]


def _distance_response(belief: np.ndarray, distance: np.ndarray, epsilon: float) -> DenseResponse:
    effective = usable_budget(epsilon)
    if effective <= 0:
        return DenseResponse(belief, constant_response(belief, distance).matrix())
    possible = np.flatnonzero(belief > 0)
    odds = float(np.exp(effective))
    w, bound = label_programme(belief[possible], distance[possible], odds)
    table = np.zeros_like(distance)
    table[possible] = w
    return mix_dense(belief, table, epsilon, distance, bound)


def label_programme(b: np.ndarray, distance: np.ndarray, odds: float, rounds: int = 60) -> tuple[np.ndarray, float]:
    """Solve the one-sided programme over the outputs that pay.

    Parameters
    ----------
    b : ndarray (n,), positive beliefs
    distance : ndarray (n, m), from symbols to outputs
    odds : float, e^epsilon
    rounds : int, how often outputs may be added

    Returns
    -------
    w : ndarray (n, m), nearly feasible to the solver's tolerance
    bound : float, a lower bound of the cost (Eq. (14) of [3]) of every response within the budget
    """
    scale = max(float(distance.max()), np.finfo(float).tiny)
    labels = _medoids(b, distance, min(distance.shape[1], int(np.ceil(2 * min(odds, 1e3))) + 6))
    best = -np.inf
    for _ in range(rounds):
        w, value, dual = _restricted_programme(b, distance[:, labels] / scale, odds)
        reduced = _reduced_costs(b, distance / scale, odds, dual)
        best = max(best, float(b @ dual + reduced.min()))
        if value - best <= AGREEMENT or labels.size == distance.shape[1]:
            break
        worth = np.argsort(reduced, kind="stable")[: max(8, labels.size // 2)]
        worth = worth[reduced[worth] < -AGREEMENT / 10]
        fresh = np.setdiff1d(worth, labels)
        if not fresh.size:
            break
        labels = np.union1d(labels, fresh)
    full = np.zeros_like(distance)
    full[:, labels] = w
    return full, best * scale


def _restricted_programme(b, distance, odds):
    """The programme with the given outputs only: w (n, m), its cost, and dual values of the rows (n,)."""
    from scipy.optimize import linprog
    from scipy.sparse import coo_array, vstack

    n, m = distance.shape
    size = n * m
    objective = np.concatenate([((1 - 1 / odds) * b[:, None] * distance).T.ravel(), b @ distance / odds])
    index = np.arange(size)
    capped = coo_array(
        (
            np.concatenate([np.ones(size), np.full(size, -(odds + 1.0))]),
            (np.tile(index, 2), np.concatenate([index, size + index // n])),
        ),
        shape=(size, size + m),
    )
    rows = coo_array((np.ones(size), (index % n, index)), shape=(n, size + m))
    marginals = coo_array(
        (
            np.concatenate([np.tile(b, m), -np.ones(m)]),
            (np.concatenate([index // n, np.arange(m)]), np.arange(size + m)),
        ),
        shape=(m, size + m),
    )
    solved = linprog(
        objective,
        capped.tocsr(),
        np.zeros(size),
        vstack([rows, marginals]).tocsr(),
        np.concatenate([np.ones(n), np.zeros(m)]),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if solved.status != 0:
        raise ArithmeticError(
            f"HiGHS found no optimum for the exact response ({solved.message}); please report the belief"
        )
    return solved.x[:size].reshape(m, n).T, float(solved.fun), np.asarray(solved.eqlin.marginals[:n]) / b


def _reduced_costs(b, distance, odds, dual) -> np.ndarray:
    """What each output would cost at best at these prices, (m,): below 0 it pays to add it."""
    value = (1 - 1 / odds) * distance - dual[:, None]
    order = np.argsort(value, axis=0)
    mass = b[order]
    taken = np.clip(1 / (odds + 1) - (np.cumsum(mass, axis=0) - mass), 0.0, mass)
    return b @ distance / odds + (odds + 1) * (taken * np.take_along_axis(value, order, axis=0)).sum(axis=0)


def _medoids(b, distance, count) -> np.ndarray:
    """Outputs to begin with: each in turn lowers the expected distance to the nearest one most."""
    nearest = np.full(b.size, np.inf)
    chosen: list[int] = []
    for _ in range(count):
        cost = b @ np.minimum(np.minimum(nearest, 1e300)[:, None], distance)
        cost[chosen] = np.inf
        best = int(np.argmin(cost))
        if chosen and cost[best] >= b @ nearest:
            break
        chosen.append(best)
        nearest = np.minimum(nearest, distance[:, best])
    return np.array(sorted(chosen))
