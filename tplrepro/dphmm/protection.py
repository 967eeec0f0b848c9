"""Who is hidden by the noise, and graphs that hide everybody (sections 5.2 and 6.1 of [5]).

The degree of protection DoP(s_i) counts the possible states s_j, s_i among them, whose answer lies in f(s_i) + K
(Definition 5.2). A state with DoP 1 is exposed: no other state makes the released value as likely within a factor
e^epsilon (Theorem 5.2).

A graph becomes protectable by connecting each exposed state to one other state: to the one with the nearest answer
(Algorithm 1), or to the one that makes the volume of K grow least (Algorithm 3, in any dimension). Each connection
enlarges K and may protect other states as well, so the exposed states are found again after each step. The optimum of
Eq. (5) is found among all such connections: hulls only grow, so a search from the smallest hull on ends at it.
"""

from heapq import heappop, heappush
from itertools import takewhile

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.dphmm.constraint import as_answers, check_states
from tplrepro.dphmm.hull import GrowingHull, SensitivityHull, sensitivity_hull
from tplrepro.dphmm.policy_graph import PolicyGraph
from tplrepro.validation import check_choice

__all__ = [
    "METHODS",
    "NoPrivacyError",
    "constrained_dp_factor",
    "degree_of_protection",
    "exposed_states",
    "is_protectable",
    "protect",
    "protectable_graph",
]

#: Algorithms 1 and 3 and Eq. (5) of [5].
METHODS = ("greedy", "stepwise", "optimal")
#: Hulls that the search for the optimum may build: some ten seconds of them.
MOST_HULLS = 10_000
#: Rows of the matrix of pairwise norms that are held at a time: 8 MB for 2,000 states.
ROWS = 512


class NoPrivacyError(ValueError):
    """Only one state is left, or no two states are connected: nothing can hide the true state (section 11.6 of [5])."""


def degree_of_protection(
    policy: PolicyGraph, answers: ArrayLike, hull: SensitivityHull | None = None, states: ArrayLike | None = None
) -> np.ndarray:
    """DoP of every state (Definition 5.2 of [5]), (N,): 0 for impossible states, at least 1 for possible ones.

    Parameters
    ----------
    policy : PolicyGraph over N states, constrained to the possible ones
    answers : array-like (N, d) or (N,), f
    hull : SensitivityHull, optional: the body of the noise, by default K(G, f); `cross_polytope` for Laplace noise
    states : array-like of int, optional: count for these possible states only; the others get 0

    Fig. 9(a) of [5]: s_2 (index 1) has lost its neighbour but is hidden among three states.

    >>> f = [[1, 0], [2, 1], [3, 0], [0, 1], [4, 2], [1, 2]]
    >>> G = PolicyGraph.categorical([[0], [1, 2], [3, 4, 5]]).constrain([1, 3, 4, 5])
    >>> degree_of_protection(G, f).tolist()
    [0, 3, 0, 4, 4, 3]
    """
    f = as_answers(answers, policy.n_states)
    hull = sensitivity_hull(policy, f) if hull is None else hull
    possible = policy.possible
    wanted = possible if states is None else np.intersect1d(check_states(states, policy.n_states), possible)
    counts = np.zeros(policy.n_states, dtype=int)
    for rows in np.split(wanted, range(ROWS, wanted.size, ROWS)):
        counts[rows] = hull.pairwise_contains(f[rows], f[possible]).sum(axis=1)
    return counts


def exposed_states(policy: PolicyGraph, answers: ArrayLike, hull: SensitivityHull | None = None) -> np.ndarray:
    """Possible states with DoP 1 (Theorem 5.2 of [5]), ascending; parameters as in `degree_of_protection`.

    With Laplace noise pass its body, `cross_polytope(d, l1_sensitivity)`: it hides more (Example 5.3).
    Example 5.2 of [5]: s_5 (index 4) is exposed.

    >>> f = [[1, 0], [2, 1], [3, 0], [0, 1], [4, 2], [1, 2]]
    >>> exposed_states(PolicyGraph.categorical([[0], [1, 2], [3, 4, 5]]).constrain([1, 2, 4]), f).tolist()
    [4]
    """
    alone = policy.disconnected  # a connected state is hidden by its neighbour
    return alone[degree_of_protection(policy, answers, hull, alone)[alone] == 1]


def is_protectable(policy: PolicyGraph, answers: ArrayLike, hull: SensitivityHull | None = None) -> bool:
    """Whether every possible state has DoP > 1 (Definition 5.3 of [5]); parameters as in `degree_of_protection`."""
    return exposed_states(policy, answers, hull).size == 0


def constrained_dp_factor(policy: PolicyGraph, answers: ArrayLike, hull: SensitivityHull | None = None) -> float:
    """max ||f(s_j) - f(s_k)||_K over possible states; parameters as in `degree_of_protection`.

    Between any two possible states the loss is at most epsilon times that, and the released value f(s_j) attains it
    (Theorems 5.3 (1) and 6.3 of [5]). Infinite if some difference lies off the span of a flat hull.

    >>> round(constrained_dp_factor(PolicyGraph.from_edges(4, [(0, 1), (1, 2), (2, 3)]), [0, 1, 2, 3]), 6)
    3.0
    """
    f = as_answers(answers, policy.n_states)[policy.possible]
    hull = sensitivity_hull(policy, answers) if hull is None else hull
    if not np.isfinite(hull.norm(f - f[0])).all():
        return np.inf
    # The largest norm of a difference is the widest spread along a half-space's normal; the slack covers its rounding.
    return float((1 + hull.slack) * np.ptp((f - f[0]) @ hull.halfspaces.T, axis=0).max(initial=0.0))


def protectable_graph(policy: PolicyGraph, answers: ArrayLike, method: str = "greedy") -> PolicyGraph:
    """A supergraph of `policy` on the same possible states in which no state is exposed; itself if none is.

    `policy` and `answers` as in `degree_of_protection`; the method is "greedy" (Algorithm 1 of [5]), "stepwise"
    (Algorithm 3: the smallest volume after each step, which is optimal for one exposed state, but need not be for
    several) or "optimal" (Eq. (5): the smallest volume; exponential in the number of exposed states, so ValueError
    where more than 10,000 hulls would be compared). NoPrivacyError if only one state is possible.

    Example 6.1 of [5]: s_3 (index 2) is exposed; the area grows least by the edge to s_4.

    >>> f = [[1, 0], [2, 1], [3, 0], [0, 1], [4, 2], [1, 2]]
    >>> G = PolicyGraph.categorical([[0], [1, 2], [3, 4, 5]]).constrain([2, 3, 4, 5])
    >>> sorted(set(protectable_graph(G, f, "stepwise").edges) - set(G.edges))
    [(2, 3)]
    >>> sorted(set(protectable_graph(G, f, "greedy").edges) - set(G.edges))
    [(2, 4)]
    """
    return protect(policy, answers, method)[0]


def protect(
    policy: PolicyGraph, answers: ArrayLike, method: str = "greedy"
) -> tuple[PolicyGraph, SensitivityHull, list[tuple[int, int]]]:
    """The protectable graph, its sensitivity hull and the edges added; parameters as in `protectable_graph`."""
    check_choice(method, "method", METHODS)
    f = as_answers(answers, policy.n_states)
    possible = policy.possible
    if possible.size == 1:
        raise NoPrivacyError(
            f"privacy needs at least two possible states, found only state {possible[0]}; "
            "the adversary knows the true state already, so release nothing or smooth the model"
        )
    hull = sensitivity_hull(policy, f)
    exposed = exposed_states(policy, f, hull)
    added: list[tuple[int, int]] = []
    if method == "optimal":
        hull, added = _smallest(hull, f, possible, exposed)
        return policy.connect(added), hull, added
    growing = GrowingHull(hull)
    while exposed.size:
        state, others = exposed[0], possible[possible != exposed[0]]
        differences = f[others] - f[state]
        distances = np.linalg.norm(differences, axis=1)
        if method == "stepwise":
            dimensions, volumes = growing.hull.extended_volumes(differences)
            # A flat body has volume 0 in the space around it; among flat ones their own volume decides. Equal volumes
            # are common there (all apexes at one height), and among them the nearest answer decides.
            volumes[dimensions > dimensions.min()] = np.inf
            distances[volumes > volumes.min() * (1 + 1e-9)] = np.inf
        nearest = int(np.argmin(distances))
        added.append((int(state), int(others[nearest])))
        growing.add(differences[nearest])
        remaining = exposed[(exposed != state) & (exposed != others[nearest])]
        if growing.has_many_facets:  # then no more states are tested than need be
            hidden = (growing.contains(f[possible] - f[state]).sum() > 1 for state in remaining)
            exposed = remaining[sum(takewhile(bool, hidden)) :]
        else:
            exposed = _exposed(growing.hull, f, possible, remaining)
    return policy.connect(added), growing.hull, added


def _exposed(hull: SensitivityHull, f: np.ndarray, possible: np.ndarray, states: np.ndarray) -> np.ndarray:
    """Those of some possible states that have no other answer in the hull about theirs."""
    return states[hull.pairwise_contains(f[states], f[possible]).sum(axis=1) == 1]


def _connected(
    hull: SensitivityHull, f: np.ndarray, possible: np.ndarray, exposed: np.ndarray, state: int, other: int
) -> tuple[SensitivityHull, np.ndarray]:
    """The hull with one edge more, and the states that are exposed then: one that was hidden stays so."""
    hull = hull.extended(f[other] - f[state])
    remaining = exposed[(exposed != state) & (exposed != other)]
    return hull, _exposed(hull, f, possible, remaining)


def _smallest(
    hull: SensitivityHull, f: np.ndarray, possible: np.ndarray, exposed: np.ndarray
) -> tuple[SensitivityHull, list[tuple[int, int]]]:
    """The smallest hull under which no state is exposed, of least dimension first, and the edges that make it."""
    queue: list[tuple] = [(0, 0.0, [], hull, exposed)]
    for _ in range(MOST_HULLS):
        *_, added, hull, exposed = heappop(queue)
        if added:
            hull, exposed = _connected(hull, f, possible, exposed, *added[-1])
        if not exposed.size:
            return hull, added
        others = possible[possible != exposed[0]]
        sizes = zip(*hull.extended_volumes(f[others] - f[exposed[0]]), others.tolist(), strict=True)
        for dimension, volume, other in sizes:
            heappush(queue, (dimension, volume, [*added, (int(exposed[0]), other)], hull, exposed))
    raise ValueError(
        f"the smallest hull must be among the first {MOST_HULLS:,} built, found none with {exposed.size} states still "
        "exposed; take method 'stepwise'"
    )
