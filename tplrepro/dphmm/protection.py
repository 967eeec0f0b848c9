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
from typing import NamedTuple

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
#: A hull that is smaller by less than this share is no better.
SAME_VOLUME = 1e-12
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
    """DoP of every state (Definition 5.2 of [5]).

    Parameters
    ----------
    policy : PolicyGraph over N states
        Constrained to the possible states.
    answers : array-like (N, d) or (N,)
        f.
    hull : SensitivityHull, optional
        The body of the noise, by default K(G, f); a `cross_polytope` for Laplace noise.
    states : array-like of int, optional
        The states to count for, by default all; the others get 0.

    Returns
    -------
    array (N,) of int
        At least 1 for possible states, 0 for others.

    Raises
    ------
    ValueError
        If the answers are not finite, or not those of N states.

    Examples
    --------
    >>> f = [[1, 0], [2, 1], [3, 0], [0, 1], [4, 2], [1, 2]]
    >>> G = PolicyGraph.categorical([[0], [1, 2], [3, 4, 5]]).constrain([1, 3, 4, 5])
    >>> degree_of_protection(G, f).tolist()
    [0, 3, 0, 4, 4, 3]
    """
    f = as_answers(answers, policy.n_states)
    if hull is None:
        hull = sensitivity_hull(policy, f)
    possible = policy.possible
    wanted = possible
    if states is not None:
        states = check_states(states, policy.n_states)
        wanted = np.intersect1d(states, possible)
    counts = np.zeros(policy.n_states, dtype=int)
    starts_of_parts = range(ROWS, wanted.size, ROWS)
    for rows in np.split(wanted, starts_of_parts):
        is_inside = hull.pairwise_contains(f[rows], f[possible])
        counts[rows] = is_inside.sum(axis=1)
    return counts


def exposed_states(
    policy: PolicyGraph, answers: ArrayLike, hull: SensitivityHull | None = None
) -> np.ndarray:
    """Possible states with DoP 1 (Theorem 5.2 of [5]).

    A policy without exposed states is protectable (Definition 5.3).

    Parameters
    ----------
    policy : PolicyGraph over N states
        Constrained to the possible states.
    answers : array-like (N, d) or (N,)
        f.
    hull : SensitivityHull, optional
        The body of the noise, by default K(G, f); a `cross_polytope` for Laplace noise.

    Returns
    -------
    array of int
        The exposed states, ascending.

    Raises
    ------
    ValueError
        If the answers are not finite, or not those of N states.

    Examples
    --------
    Example 5.2 of [5]: s_5 (index 4).

    >>> f = [[1, 0], [2, 1], [3, 0], [0, 1], [4, 2], [1, 2]]
    >>> G = PolicyGraph.categorical([[0], [1, 2], [3, 4, 5]]).constrain([1, 2, 4])
    >>> exposed_states(G, f).tolist()
    [4]
    """
    alone = policy.disconnected  # a connected state is hidden by its neighbour
    degrees = degree_of_protection(policy, answers, hull, alone)
    return alone[degrees[alone] == 1]


def constrained_dp_factor(
    policy: PolicyGraph, answers: ArrayLike, hull: SensitivityHull | None = None
) -> float:
    """max ||f(s_j) - f(s_k)||_K over possible states.

    The loss between any two possible states is at most epsilon times that, and the released value
    f(s_j) attains it (Theorems 5.3 (1) and 6.3 of [5]).

    Parameters
    ----------
    policy : PolicyGraph over N states
        Constrained to the possible states.
    answers : array-like (N, d) or (N,)
        f.
    hull : SensitivityHull, optional
        The body of the noise, by default K(G, f); a `cross_polytope` for Laplace noise.

    Returns
    -------
    float
        Infinite if some difference lies off the span of a flat hull.

    Raises
    ------
    ValueError
        If the answers are not finite, or not those of N states.

    Examples
    --------
    >>> path = PolicyGraph.from_edges(4, [(0, 1), (1, 2), (2, 3)])
    >>> round(constrained_dp_factor(path, [0, 1, 2, 3]), 6)
    3.0
    """
    f = as_answers(answers, policy.n_states)[policy.possible]
    if hull is None:
        hull = sensitivity_hull(policy, answers)
    from_first = f - f[0]
    if not np.isfinite(hull.norm(from_first)).all():
        return np.inf
    # The largest norm of a difference is the widest spread along a normal; the slack covers its
    # rounding.
    along_normals = from_first @ hull.halfspaces.T
    widest = (1 + hull.slack) * np.ptp(along_normals, axis=0).max(initial=0.0)
    return float(widest)


@dataclass(frozen=True, eq=False)
class Protection:
    """A graph in which no possible state is exposed, and its sensitivity hull."""

    policy: PolicyGraph
    hull: SensitivityHull  # K(policy, f)
    added_edges: list[tuple[int, int]]  # the edges (i, j), i < j, that were added
    #: For "optimal": the least volume (Eq. (5)) is at least volume / (1 + gap); infinite if a
    #: flatter hull may do.
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
    policy : PolicyGraph over N states
        Constrained to the possible states.
    answers : array-like (N, d) or (N,)
        f.
    method : str
        "greedy": Algorithm 1 of [5]. "stepwise": Algorithm 3, the smallest volume after each step.
        "optimal": Eq. (5), the smallest volume, for about 150 exposed states in the plane, 60 in
        space, 6 in four dimensions; beyond, the best of 10,000 hulls.
    insisted : PolicyGraph or pairs of states
        Edges of the user's own choice (section 4.3 and footnote 5 of [5]): an exposed state first
        gets those of its edges among these that lead to possible states.

    Returns
    -------
    PolicyGraph

    Raises
    ------
    NoPrivacyError
        If only one state is possible.
    ValueError
        If the answers are not finite, or not those of N states.

    Examples
    --------
    Example 6.1 of [5]: s_3 (index 2) is exposed.

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
    """The graph of `protectable_graph`, and its hull, added edges and optimality gap.

    Parameters
    ----------
    policy : PolicyGraph over N states
        Constrained to the possible states.
    answers : array-like (N, d) or (N,)
        f.
    method : str
        "greedy" (Algorithm 1 of [5]), "stepwise" (Algorithm 3) or "optimal" (Eq. (5)).
    insisted : PolicyGraph or pairs of states
        Edges that an exposed state gets first.

    Returns
    -------
    Protection

    Raises
    ------
    NoPrivacyError
        If only one state is possible.
    ValueError
        If the answers are not finite, or not those of N states.

    Examples
    --------
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
            f"privacy needs at least two possible states, found only state {possible[0]}; "
            "release nothing, or smooth the model"
        )
    hull = sensitivity_hull(policy, f)
    exposed = exposed_states(policy, f, hull)
    insisted_graph = as_policy(insisted, policy.n_states)
    insisted_edges = _insisted_edges_from(exposed, insisted_graph, possible)
    if len(insisted_edges):
        policy = policy.connect(insisted_edges)
        hull = sensitivity_hull(policy, f)
        exposed = exposed_states(policy, f, hull)
    states = _PossibleStates(f, possible)
    start = _Attempt(hull, [], exposed)
    gap = np.nan
    if method == "optimal":
        search = _SmallestHull(states, start)
        attempt = search.run()
        gap = search.gap()
    else:
        attempt = states.connect_one_by_one(start, by_volume=method == "stepwise")
    protection = Protection(
        policy=policy.connect(attempt.edges),
        hull=attempt.hull,
        added_edges=_sort_edges([*attempt.edges, *insisted_edges.tolist()]),
        gap=gap,
    )
    # A state may be exposed by what was rounding beside a smaller body.
    if attempt.hull.uneven:
        still_exposed = exposed_states(protection.policy, f, attempt.hull)
        if still_exposed.size:
            return _protect_further(protection, f, method, insisted_graph)
    return protection


def _insisted_edges_from(
    exposed: np.ndarray, insisted: PolicyGraph, possible: np.ndarray
) -> np.ndarray:
    """The edges (k, 2) of the graph `insisted` on by the user between an `exposed` state and a
    `possible` one, both given by number."""
    edges = insisted.edge_array
    joins_exposed = np.isin(edges, exposed).any(axis=1)
    joins_possible = np.isin(edges, possible).all(axis=1)
    return edges[joins_exposed & joins_possible]


def _sort_edges(edges: Iterable) -> list[tuple[int, int]]:
    """Distinct edges (i, j) with i < j, in ascending order."""
    distinct = set()
    for state, other in edges:
        first = min(state, other)
        last = max(state, other)
        distinct.add((first, last))
    return sorted(distinct)


def _protect_further(
    protection: Protection, answers: ArrayLike, method: str, insisted: PolicyGraph
) -> Protection:
    """The `protection` with further edges for states that are exposed although every one had been
    connected.

    Each of two steps may be optimal and both together not, so that nothing bounds their gap: it is
    inf, or NaN for a method without one.
    """
    further = protect(protection.policy, answers, method, insisted)
    edges = _sort_edges([*protection.added_edges, *further.added_edges])
    gap = np.nan
    if method == "optimal":
        gap = np.inf
    return replace(further, added_edges=edges, gap=gap)


def as_policy(insisted: PolicyGraph | Iterable, n_states: int) -> PolicyGraph:
    """The edges that the user insists on as a graph over N states."""
    if isinstance(insisted, PolicyGraph):
        graph = insisted
    else:
        graph = PolicyGraph.from_edges(n_states, insisted)
    if graph.n_states != n_states:
        found = f"{n_states} states, found {graph.n_states}"
        raise ValueError(
            f"insisted must be a graph over the policy's {found}; build both over 0..N-1"
        )
    return graph


@dataclass(frozen=True, eq=False)
class _Attempt:
    """Edges that were added for exposed states, the hull with them, and who is still exposed."""

    hull: SensitivityHull
    edges: list[tuple[int, int]]
    exposed: np.ndarray  # states, ascending

    @property
    def size(self) -> HullSize:
        return HullSize(self.hull.dimension, self.hull.volume)


class HullSize(NamedTuple):
    """The order of hulls by volume: a flatter one is smaller, since its volume in space is 0."""

    dimension: int
    volume: float


@dataclass(frozen=True, eq=False)
class _PossibleStates:
    """The possible states, and the answers of all."""

    f: np.ndarray  # (N, d)
    possible: np.ndarray  # (c,) of int

    def exposed_among(self, hull: SensitivityHull, states: np.ndarray) -> np.ndarray:
        """The states, of those given, whose DoP is 1."""
        is_inside = hull.pairwise_contains(self.f[states], self.f[self.possible])
        degrees = is_inside.sum(axis=1)
        return states[degrees == 1]

    def connect(self, attempt: _Attempt, state: int, other: int) -> _Attempt:
        """The attempt with an edge between two states, of which `state` is exposed."""
        difference = self.f[other] - self.f[state]
        hull = attempt.hull.extended(difference)
        is_connected = (attempt.exposed == state) | (attempt.exposed == other)
        remaining = attempt.exposed[~is_connected]
        exposed = self.exposed_among(hull, remaining)
        edges = [*attempt.edges, (state, other)]
        return _Attempt(hull, edges, exposed)

    def connect_one_by_one(self, attempt: _Attempt, *, by_volume: bool) -> _Attempt:
        """Algorithm 3 of [5] (`by_volume`), or Algorithm 1: an edge for each exposed state in
        turn."""
        while attempt.exposed.size:
            state = int(attempt.exposed[0])
            other = self._best_neighbour(attempt.hull, state, by_volume)
            attempt = self.connect(attempt, state, other)
        return attempt

    def _best_neighbour(self, hull: SensitivityHull, state: int, by_volume: bool) -> int:
        """The possible state to connect with `state`: the one by which the hull grows least
        (`by_volume`), or the one with the nearest answer."""
        others = self.possible[self.possible != state]
        differences = self.f[others] - self.f[state]
        distances = np.linalg.norm(differences, axis=1)
        if by_volume:
            dimensions, volumes = hull.extended_volumes(differences)
            # The flattest body first, then the smallest, then the nearest answer: equal volumes are
            # common.
            is_flattest = dimensions == dimensions.min()
            volumes[~is_flattest] = np.inf
            distances[volumes > volumes.min() * (1 + TIED)] = np.inf
        nearest = distances.min()
        is_nearest = distances <= nearest * (1 + TIED)
        return int(others[np.argmax(is_nearest)])  # the first of equal ones


class _Branch(NamedTuple):
    """Edges that a solution may start with; the queue is in the order of the first two fields."""

    bound: HullSize  # no solution with these edges has a smaller hull
    number: int
    edges: list[tuple[int, int]]  # the last one is not yet in the attempt
    attempt: _Attempt


class _SmallestHull:
    """The smallest hull under which no state is exposed (Eq. (5) of [5]), by branch and bound.

    Each exposed state must be connected in the end, and hulls only grow, so the least extension
    that hides one is a lower bound. The state with the largest such bound is connected next, to
    each other state in turn. The first solution is the better one of Algorithms 1 and 3.
    """

    def __init__(self, states: _PossibleStates, start: _Attempt):
        self.states = states
        by_volume = states.connect_one_by_one(start, by_volume=True)
        by_distance = states.connect_one_by_one(start, by_volume=False)
        self.best = min(by_volume, by_distance, key=lambda attempt: attempt.size)
        root = _Branch(bound=HullSize(0, 0.0), number=0, edges=[], attempt=start)
        self.queue = [root]
        self.seen: set[frozenset] = set()

    def improves(self, size: HullSize) -> bool:
        """Whether a hull of this size is smaller than the best one, by more than rounding."""
        best = self.best.hull
        return size < (best.dimension, best.volume * (1 - SAME_VOLUME))

    @property
    def is_open(self) -> bool:
        """Whether a branch may hold a better solution."""
        if not self.queue:
            return False
        return self.improves(self.queue[0].bound)

    def run(self) -> _Attempt:
        """The best solution that was found."""
        n_built = 0
        while self.is_open and n_built < MOST_HULLS:
            branch = heappop(self.queue)
            attempt = branch.attempt
            if branch.edges:
                n_built += 1
                state, other = branch.edges[-1]
                attempt = self.states.connect(attempt, state, other)
            if attempt.exposed.size:
                self._branch_on_hardest(attempt, branch.bound)
            elif self.improves(attempt.size):
                self.best = attempt
        return self.best

    def gap(self) -> float:
        """By what share of the least volume the best one found may exceed it."""
        if not self.is_open:
            return 0.0
        bound = self.queue[0].bound
        best = self.best.size
        if bound.dimension != best.dimension:
            return np.inf
        return best.volume / bound.volume - 1

    def _branch_on_hardest(self, attempt: _Attempt, bound: HullSize) -> None:
        """Queue a branch for each other state to which the hardest exposed one may be connected."""
        possible = self.states.possible
        dimensions, volumes = self._extended_sizes(attempt)
        flattest = dimensions.min(axis=1)
        is_flattest = dimensions == flattest[:, None]
        least = np.where(is_flattest, volumes, np.inf).min(axis=1)
        in_order_of_bounds = np.lexsort((least, flattest))
        hardest = in_order_of_bounds[-1]
        state = int(attempt.exposed[hardest])
        sizes = map(HullSize, dimensions[hardest].tolist(), volumes[hardest].tolist())
        for size, other in zip(sizes, possible.tolist(), strict=True):
            if state != other and self.improves(size):
                edges = [*attempt.edges, (state, other)]
                self._queue_branch(max(bound, size), edges, attempt)

    def _extended_sizes(self, attempt: _Attempt) -> tuple[np.ndarray, np.ndarray]:
        """Dimensions and volumes of the hull, (e, c) each, with an edge from each exposed state to
        each possible one."""
        f = self.states.f
        possible = self.states.possible
        exposed = attempt.exposed[:, None]
        d = f.shape[1]
        differences = f[possible] - f[exposed]
        dimensions, volumes = attempt.hull.extended_volumes(differences.reshape(-1, d))
        shape = (exposed.size, possible.size)
        dimensions = dimensions.reshape(shape)
        is_same_state = exposed == possible
        dimensions[is_same_state] = d + 1  # no state hides itself
        return dimensions, volumes.reshape(shape)

    def _queue_branch(
        self, bound: HullSize, edges: list[tuple[int, int]], attempt: _Attempt
    ) -> None:
        """Queue the branch of an attempt and its edges, of which the last is not yet in it, unless
        one with the same edges was queued before."""
        key = frozenset(map(frozenset, edges))
        if key in self.seen:
            return
        self.seen.add(key)
        branch = _Branch(bound=bound, number=len(self.seen), edges=edges, attempt=attempt)
        heappush(self.queue, branch)
