"""Which states the noise hides, and graphs that hide all of them (sections 5.2 and 6.1 of [5]).

The degree of protection DoP(s_i) counts the possible states s_j, s_i among them, whose answer lies
in f(s_i) + K (Definition 5.2). A state with DoP 1 is exposed: no other state makes the released
value as likely within a factor e^epsilon (Theorem 5.2).

A graph becomes protectable by connecting each exposed state to one other state: to the one with the
nearest answer (Algorithm 1), or to the one that makes the volume of K grow least (Algorithm 3). K
grows with each edge, so the exposed states are then determined anew. Branch and bound over all such
edges gives the optimum of Eq. (5).
"""

from __future__ import annotations
from collections.abc import Iterable
from dataclasses import dataclass, replace
from heapq import heappop, heappush

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.dphmm.constraint import TIED, as_answers, check_states
from tplrepro.dphmm.hull import SensitivityHull, sensitivity_hull
from tplrepro.dphmm.policy_graph import PolicyGraph
from tplrepro.validation import check_choice

#: Algorithms 1 and 3 and Eq. (5) of [5].
METHODS = ("greedy", "stepwise", "optimal")
#: Hulls that the search for the optimum may build: half a minute of them.
MOST_HULLS = 10_000
#: Rows of the matrix of pairwise norms that are held at a time: 8 MB for 2,000 states.
ROWS = 512


class NoPrivacyError(ValueError):
    """Only one state is possible, or no two are connected: nothing can hide the true state (section
    11.6 of [5])."""


def degree_of_protection(
    policy: PolicyGraph,
    answers: ArrayLike,
    hull: SensitivityHull | None = None,
    states: ArrayLike | None = None,
) -> np.ndarray:
    """DoP of every state (Definition 5.2 of [5]), (N,): at least 1 for possible states, 0 for
    others.

    Parameters
    ----------
    policy : PolicyGraph over N states, constrained to the possible ones
    answers : array-like (N, d) or (N,), f
    hull : the body of the noise, by default K(G, f); a `cross_polytope` for Laplace noise
    states : array-like of int, the states to count for, by default all; the others get 0

    >>> f = [[1, 0], [2, 1], [3, 0], [0, 1], [4, 2], [1, 2]]
    >>> G = PolicyGraph.categorical([[0], [1, 2], [3, 4, 5]]).constrain([1, 3, 4, 5])
    >>> degree_of_protection(G, f).tolist()
    [0, 3, 0, 4, 4, 3]
    """
    f = as_answers(answers, policy.n_states)
    hull = sensitivity_hull(policy, f) if hull is None else hull
    possible = policy.possible
    wanted = (
        possible
        if states is None
        else np.intersect1d(check_states(states, policy.n_states), possible)
    )
    counts = np.zeros(policy.n_states, dtype=int)
    for rows in np.split(wanted, range(ROWS, wanted.size, ROWS)):
        counts[rows] = hull.pairwise_contains(f[rows], f[possible]).sum(axis=1)
    return counts


def exposed_states(
    policy: PolicyGraph, answers: ArrayLike, hull: SensitivityHull | None = None
) -> np.ndarray:
    """Possible states with DoP 1 (Theorem 5.2 of [5]), ascending; parameters as in
    `degree_of_protection`.

    A policy without exposed states is protectable (Definition 5.3). Example 5.2 of [5]: s_5 (index
    4).

    >>> f = [[1, 0], [2, 1], [3, 0], [0, 1], [4, 2], [1, 2]]
    >>> exposed_states(PolicyGraph.categorical([[0], [1, 2], [3, 4, 5]]).constrain([1, 2, 4]), f).tolist()
    [4]
    """
    alone = policy.disconnected  # a connected state is hidden by its neighbour
    return alone[degree_of_protection(policy, answers, hull, alone)[alone] == 1]


def constrained_dp_factor(
    policy: PolicyGraph, answers: ArrayLike, hull: SensitivityHull | None = None
) -> float:
    """max ||f(s_j) - f(s_k)||_K over possible states; parameters as in `degree_of_protection`.

    The loss between any two possible states is at most epsilon times that, and the released value
    f(s_j) attains it (Theorems 5.3 (1) and 6.3 of [5]). Infinite if some difference lies off the
    span of a flat hull.

    >>> round(constrained_dp_factor(PolicyGraph.from_edges(4, [(0, 1), (1, 2), (2, 3)]), [0, 1, 2, 3]), 6)
    3.0
    """
    f = as_answers(answers, policy.n_states)[policy.possible]
    hull = sensitivity_hull(policy, answers) if hull is None else hull
    if not np.isfinite(hull.norm(f - f[0])).all():
        return np.inf
    # The largest norm of a difference is the widest spread along a normal; the slack covers its
    # rounding.
    return float((1 + hull.slack) * np.ptp((f - f[0]) @ hull.halfspaces.T, axis=0).max(initial=0.0))


@dataclass(frozen=True, eq=False)
class Protection:
    """A graph in which no possible state is exposed, and its sensitivity hull."""

    policy: PolicyGraph
    hull: SensitivityHull  # K(policy, f)
    added_edges: list[tuple[int, int]]  # the edges (i, j), i < j, that were added
    #: For "optimal": the least volume (Eq. (5)) is at least volume / (1 + gap); infinite if a flatter hull may do.
    gap: float = np.nan


def protectable_graph(
    policy: PolicyGraph,
    answers: ArrayLike,
    method: str = "greedy",
    insisted: PolicyGraph | Iterable = (),
) -> PolicyGraph:
    """A supergraph of `policy` on the same possible states in which no state is exposed; itself if
    none is.

    Parameters
    ----------
    policy, answers : as in `degree_of_protection`
    method : str
        "greedy": Algorithm 1 of [5]. "stepwise": Algorithm 3, the smallest volume after each step. "optimal":
        Eq. (5), the smallest volume, for about 150 exposed states in the plane, 60 in space, 6 in four
        dimensions; beyond, the best of 10,000 hulls.
    insisted : PolicyGraph or pairs of states
        Edges of the user's own choice (footnotes 3 and 5 of [5]): an exposed state first gets those of its
        edges among these that lead to possible states.

    NoPrivacyError if only one state is possible. Example 6.1 of [5]: s_3 (index 2) is exposed.

    >>> f = [[1, 0], [2, 1], [3, 0], [0, 1], [4, 2], [1, 2]]
    >>> G = PolicyGraph.categorical([[0], [1, 2], [3, 4, 5]]).constrain([2, 3, 4, 5])
    >>> sorted(set(protectable_graph(G, f, "stepwise").edges) - set(G.edges))
    [(2, 3)]
    """
    return protect(policy, answers, method, insisted).policy


def protect(
    policy: PolicyGraph,
    answers: ArrayLike,
    method: str = "greedy",
    insisted: PolicyGraph | Iterable = (),
) -> Protection:
    """The graph of `protectable_graph`, with the same parameters, and its hull, added edges and
    optimality gap.

    >>> f = [[1, 0], [2, 1], [3, 0], [0, 1], [4, 2], [1, 2]]
    >>> G = PolicyGraph.categorical([[0], [1, 2], [3, 4, 5]]).constrain([2, 3, 4, 5])
    >>> protection = protect(G, f, "optimal")
    >>> protection.added_edges, round(protection.hull.volume, 6), protection.gap
    ([(2, 3)], 14.0, 0.0)
    """
    check_choice(method, "method", METHODS)
    f = as_answers(answers, policy.n_states)
    possible = policy.possible
    if possible.size == 1:
        raise NoPrivacyError(
            f"privacy needs at least two possible states, found only state {possible[0]}; release nothing, or smooth "
            "the model"
        )
    hull = sensitivity_hull(policy, f)
    exposed = exposed_states(policy, f, hull)
    gap = np.nan
    own = as_policy(insisted, policy.n_states).edge_array
    own = own[np.isin(own, exposed).any(axis=1) & np.isin(own, possible).all(axis=1)]
    if len(own):
        policy = policy.connect(own)
        hull = sensitivity_hull(policy, f)
        exposed = exposed_states(policy, f, hull)
    start = hull, f, possible, exposed
    if method == "optimal":
        tried = [_one_by_one(*start, by_volume=by_volume) for by_volume in (True, False)]
        hull, added, gap = _smallest(*start, *min(tried, key=lambda each: _size(each[0])))
    else:
        hull, added = _one_by_one(*start, by_volume=method == "stepwise")
    pairs = {(min(pair), max(pair)) for pair in [*added, *own.tolist()]}
    policy = policy.connect(added)
    # by what was rounding beside a smaller body
    if hull.uneven and exposed_states(policy, f, hull).size:
        more = protect(policy, answers, method, insisted)
        return replace(more, added_edges=sorted({*pairs, *more.added_edges}), gap=gap + np.inf)
    return Protection(policy, hull, sorted(pairs), gap)


def as_policy(insisted: PolicyGraph | Iterable, n_states: int) -> PolicyGraph:
    """The edges that the user insists on as a graph over N states."""
    graph = (
        insisted
        if isinstance(insisted, PolicyGraph)
        else PolicyGraph.from_edges(n_states, insisted)
    )
    if graph.n_states != n_states:
        found = f"{n_states} states, found {graph.n_states}"
        raise ValueError(
            f"insisted must be a graph over the policy's {found}; build both over 0..N-1"
        )
    return graph


def _one_by_one(
    hull: SensitivityHull,
    f: np.ndarray,
    possible: np.ndarray,
    exposed: np.ndarray,
    *,
    by_volume: bool,
) -> tuple[SensitivityHull, list[tuple[int, int]]]:
    """Algorithm 3 of [5] (`by_volume`), or Algorithm 1: the hull, and the edges added for exposed
    states in turn."""
    added: list[tuple[int, int]] = []
    while exposed.size:
        state, others = exposed[0], possible[possible != exposed[0]]
        differences = f[others] - f[state]
        distances = np.linalg.norm(differences, axis=1)
        if by_volume:
            dimensions, volumes = hull.extended_volumes(differences)
            # The flattest body first, then the smallest, then the nearest answer: equal volumes are
            # common.
            volumes[dimensions > dimensions.min()] = np.inf
            distances[volumes > volumes.min() * (1 + TIED)] = np.inf
        # the first of equal ones
        nearest = int(np.argmax(distances <= distances.min() * (1 + TIED)))
        added.append((int(state), int(others[nearest])))
        hull = hull.extended(differences[nearest])
        remaining = exposed[(exposed != state) & (exposed != others[nearest])]
        exposed = _exposed(hull, f, possible, remaining)
    return hull, added


def _exposed(
    hull: SensitivityHull, f: np.ndarray, possible: np.ndarray, states: np.ndarray
) -> np.ndarray:
    """Those of the `states` with DoP 1."""
    return states[hull.pairwise_contains(f[states], f[possible]).sum(axis=1) == 1]


def _size(hull: SensitivityHull) -> tuple[int, float]:
    """The order of hulls by volume: a flatter one is smaller, since its volume in space is 0."""
    return hull.dimension, hull.volume


def _smallest(
    hull: SensitivityHull,
    f: np.ndarray,
    possible: np.ndarray,
    exposed: np.ndarray,
    best: SensitivityHull,
    best_edges: list[tuple[int, int]],
) -> tuple[SensitivityHull, list[tuple[int, int]], float]:
    """The smallest hull under which no state is exposed (Eq. (5) of [5]), the edges that make it,
    and the gap.

    Branch and bound from a first solution (`best`, `best_edges`). Each exposed state must be
    connected in the end, and hulls only grow, so the least extension that hides one is a lower
    bound. The state with the largest such bound is connected next, to each other state in turn.
    """
    queue: list[tuple] = [((0, 0.0), 0, [], hull, exposed)]
    built, seen = 0, set()

    def improves(size: tuple[int, float]) -> bool:
        return size < (best.dimension, best.volume * (1 - 1e-12))

    while queue and improves(queue[0][0]) and built < MOST_HULLS:
        bound, _, edges, hull, exposed = heappop(queue)
        if edges:
            built += 1
            state, other = edges[-1]
            hull = hull.extended(f[other] - f[state])
            exposed = _exposed(hull, f, possible, exposed[(exposed != state) & (exposed != other)])
        if not exposed.size:
            if improves(_size(hull)):
                best, best_edges = hull, edges
            continue
        vectors = (f[possible] - f[exposed][:, None]).reshape(-1, f.shape[1])
        dimensions, volumes = (
            sizes.reshape(len(exposed), -1) for sizes in hull.extended_volumes(vectors)
        )
        dimensions[exposed[:, None] == possible] = f.shape[1] + 1  # no state hides itself
        flattest = dimensions.min(axis=1)
        least = np.where(dimensions == flattest[:, None], volumes, np.inf).min(axis=1)
        hardest = np.lexsort((least, flattest))[-1]
        state = int(exposed[hardest])
        sizes = zip(dimensions[hardest].tolist(), volumes[hardest].tolist(), strict=True)
        for size, other in zip(sizes, possible.tolist(), strict=True):
            more = [*edges, (state, other)]
            made = frozenset(map(frozenset, more))
            if state != other and improves(size) and made not in seen:
                seen.add(made)
                heappush(queue, (max(bound, size), len(seen), more, hull, exposed))
    if not queue or not improves(queue[0][0]):
        return best, best_edges, 0.0
    dimension, volume = queue[0][0]
    return best, best_edges, best.volume / volume - 1 if dimension == best.dimension else np.inf
