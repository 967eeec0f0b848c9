"""Policy graphs: which pairs of states must be indistinguishable (section 4.2 of [5]).

States are the indices 0..N-1. A graph constrained to the possible states C_t still has N states, so
that answers f stay (N, d), but no edges of impossible ones.
"""

from __future__ import annotations
import math
from collections import Counter
from collections.abc import Iterable
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from tplrepro.dphmm.constraint import as_answers, as_numbered_chain, check_states
from tplrepro.markov.transition import MatrixLike
from tplrepro.validation import (
    FrozenArrays,
    as_numbers,
    as_scalar,
    check_codes,
    check_horizon,
    frozen,
)

#: Widens a radius for the rounding of distances.
ROUNDED_UP = 1 + 1e-12


class PolicyGraph(FrozenArrays):
    """An immutable graph over the states; an edge means "indistinguishable" (Definition 4.2 of
    [5]).

    Parameters
    ----------
    n_states : int
        N.
    edges : iterable of pairs (i, j) of states 0..N-1
        In any order; a pair may be repeated.

    Raises
    ------
    ValueError
        If something is no pair of states.

    Examples
    --------
    >>> G = PolicyGraph.categorical([[0], [1, 2], [3, 4, 5]])
    >>> sorted(G.edges)
    [(1, 2), (3, 4), (3, 5), (4, 5)]
    >>> constrained = G.constrain([1, 2, 4])
    >>> sorted(constrained.edges), constrained.disconnected.tolist()
    ([(1, 2)], [4])
    """

    n_states: int  # N
    possible: np.ndarray  # (c,) of int, ascending: the constraint C_t, all states at first

    def __init__(self, n_states: int, edges: Iterable = ()):
        self.n_states = check_horizon(n_states, "n_states")
        self.possible = frozen(np.arange(self.n_states))
        vars(self)["edge_array"] = frozen(_checked_edges(edges, self.n_states))

    @classmethod
    def from_edges(cls, n_states: int, edges: Iterable) -> PolicyGraph:
        """A policy from pairs of states.

        Parameters
        ----------
        n_states : int
            N.
        edges : iterable of pairs (i, j) of states 0..N-1
            In any order; a pair may be repeated.

        Returns
        -------
        PolicyGraph

        Raises
        ------
        ValueError
            If something is no pair of states.
        """
        return cls(n_states, edges)

    @classmethod
    def complete(cls, n_states: int) -> PolicyGraph:
        """Complete protection, G_cplt: each state is hidden among all."""
        graph = cls(n_states)
        return graph._copy(None, graph.possible)

    @classmethod
    def categorical(cls, categories: Iterable, n_states: int | None = None) -> PolicyGraph:
        """Categorical protection, G_categ: each state is hidden in its category, a clique.

        Parameters
        ----------
        categories : iterable of lists of states
            Disjoint.
        n_states : int, optional
            N, by default the number of states in the categories; others stay unconnected.

        Returns
        -------
        PolicyGraph

        Raises
        ------
        ValueError
            If a state is in two categories, or is none of 0..N-1.
        """
        groups = [_as_list(category) for category in categories]
        times_named = Counter(chain.from_iterable(groups))
        n = len(times_named)
        if n_states is not None:
            n = check_horizon(n_states, "n_states")
        cliques = [
            _pair_members(check_states(group, n, "states of categories")) for group in groups
        ]
        repeated = [state for state, times in times_named.items() if times > 1]
        if repeated:
            raise ValueError(
                f"categories must be disjoint, found state {repeated[0]} twice; "
                "put it in one of them"
            )
        no_edges = np.empty((0, 2), dtype=int)
        return cls(n, np.concatenate([no_edges, *cliques]))

    @classmethod
    def utility(cls, answers: ArrayLike, radius: float) -> PolicyGraph:
        """Utility-oriented policy, G_util: edges between states with answers at most `radius`
        apart.

        Parameters
        ----------
        answers : array-like (N, d) or (N,)
            f.
        radius : float
            A distance between answers, >= 0.

        Returns
        -------
        PolicyGraph

        Raises
        ------
        ValueError
            If the radius is negative or not finite, or an answer is not finite.
        """
        from scipy.spatial import cKDTree

        f = as_answers(answers)
        number = as_numbers(radius, "radius must be a number", "give a distance of answers")
        radius = as_scalar(number, "radius")
        if not (np.isfinite(radius) and radius >= 0):
            raise ValueError(
                f"radius must be finite and at least 0, found {radius}; "
                "give a distance between answers"
            )
        # Each answer was rounded by half a unit in the last place, and so is the difference.
        rounding = 2.0**-51 * float(np.linalg.norm(np.abs(f).max(axis=0)))
        pairs = cKDTree(f).query_pairs(radius * ROUNDED_UP + rounding, output_type="ndarray")
        return cls(len(f), pairs)

    @classmethod
    def transition(cls, matrix: MatrixLike) -> PolicyGraph:
        """One-step transition protection, G_trs: edges between states that one state reaches in a
        step of M (N, N)."""
        P = as_numbered_chain(matrix)
        probabilities = P.probabilities
        if np.any(P.background):
            probabilities = P.toarray()
        support = scipy.sparse.csr_array(probabilities > 0)
        if (np.diff(support.indptr) == P.n_states).any():
            return cls.complete(P.n_states)
        # (S^T S)_jk counts the states from which both j and k can be reached.
        counts = support.T.astype(np.int32) @ support.astype(np.int32)
        common = scipy.sparse.triu(counts, k=1).tocoo()
        return cls(P.n_states, np.column_stack(common.coords))

    def constrain(self, states: ArrayLike) -> PolicyGraph:
        """The graph constrained to those possible states that are in `states`, indices or a mask
        (N,); not to none."""
        kept = np.intersect1d(
            check_states(states, self.n_states), self.possible, assume_unique=True
        )
        if kept.size == 0:
            raise ValueError(
                "a constraint must leave at least one possible state, found none; check the prior"
            )
        if kept.size == self.possible.size:
            return self
        if self.is_complete:
            return self._copy(None, kept)
        is_kept = np.isin(np.arange(self.n_states), kept)
        return self._copy(self.edge_array[is_kept[self.edge_array].all(axis=1)], kept)

    def connect(self, edges: Iterable) -> PolicyGraph:
        """This graph with more edges, which must join possible states."""
        more = _checked_edges(edges, self.n_states)
        impossible = more[~np.isin(more, self.possible)]
        if impossible.size:
            raise ValueError(
                f"edges must join possible states, found {impossible[0]}; take others of `possible`"
            )
        if not len(more):
            return self
        edges = _sorted_edges(np.vstack([self.edge_array, more]), self.n_states)
        return self._copy(edges, self.possible)

    def with_null(self, states: ArrayLike | None = None) -> PolicyGraph:
        """This graph with a null node N, "no such record", connected to `states` (by default all
        possible ones).

        It protects the existence of a record (Definition 3.4 of [5]). Append its answer, a
        row of zeros, to f.

        >>> sorted(PolicyGraph.from_edges(3, [(0, 1)]).with_null([1, 2]).edges)
        [(0, 1), (1, 3), (2, 3)]
        """
        null = self.n_states
        connected = self.possible
        if states is not None:
            connected = check_states(states, self.n_states)
        possible = np.append(self.possible, null)
        extended = PolicyGraph(self.n_states + 1)._copy(self.edge_array.copy(), possible)
        return extended.connect(np.column_stack([connected, np.full(len(connected), null)]))

    @cached_property
    def graph(self) -> Any:
        """The possible states and their edges as a frozen networkx.Graph."""
        import networkx

        graph = networkx.Graph()
        graph.add_nodes_from(self.possible.tolist())  # in this order, so that edges are pairs i < j
        graph.add_edges_from(self.edge_array.tolist())
        return networkx.freeze(graph)

    @property
    def edges(self) -> Any:
        """The edges (i, j), i < j, as a set of pairs: networkx's EdgeView."""
        return self.graph.edges

    @cached_property
    def edge_array(self) -> np.ndarray:
        """Rows i < j in lexicographic order, (m, 2) of int; made on use for complete graphs
        only."""
        return frozen(_pair_members(self.possible))

    @property
    def n_edges(self) -> int:
        is_made = "edge_array" in vars(self)
        if not is_made:  # all possible states are connected
            return self._most_edges
        return len(self.edge_array)

    @property
    def _most_edges(self) -> int:
        """How many edges connect all possible states with each other."""
        return math.comb(self.possible.size, 2)

    @property
    def is_complete(self) -> bool:
        """Whether all possible states are connected with each other."""
        return self.n_edges == self._most_edges

    def differences(self, answers: ArrayLike) -> np.ndarray:
        """f(s_i) - f(s_j) for each edge, (m, d): half of the columns of Delta f (Definition 5.1 of
        [5])."""
        f = as_answers(answers, self.n_states)
        return f[self.edge_array[:, 0]] - f[self.edge_array[:, 1]]

    @cached_property
    def disconnected(self) -> np.ndarray:
        """Possible states without an edge, ascending."""
        if self.is_complete and self.possible.size > 1:
            return frozen(self.possible[:0])
        return frozen(self.possible[~np.isin(self.possible, self.edge_array)])

    def _copy(self, edge_array: np.ndarray | None, possible: np.ndarray) -> PolicyGraph:
        """A graph with these edges, not checked, or all edges if None, between the possible
        states."""
        copy = object.__new__(PolicyGraph)
        copy.n_states = self.n_states
        copy.possible = frozen(possible)
        if edge_array is not None:
            edge_array.setflags(write=False)
            vars(copy)["edge_array"] = edge_array
        return copy

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PolicyGraph):
            return NotImplemented
        if self.n_states != other.n_states:
            return False
        same_states = np.array_equal(self.possible, other.possible)
        return same_states and np.array_equal(self.edge_array, other.edge_array)

    def __repr__(self) -> str:
        size = f"{self.n_states} states, {self.possible.size} possible, {self.n_edges} edges"
        return f"PolicyGraph({size})"


def _as_list(category: Any) -> list:
    """The states of a category; what is in an array or a pandas object becomes Python's."""
    if not hasattr(category, "dtype"):
        category = [*category]
    return np.asanyarray(category).tolist()


def _pair_members(members: np.ndarray) -> np.ndarray:
    """All pairs of the members, (m, 2), in lexicographic order."""
    first, second = np.triu_indices(len(members), k=1)
    return members[np.column_stack([first, second])]


def _checked_edges(edges: Iterable, n_states: int) -> np.ndarray:
    """Pairs of states as `_sorted_edges` gives them."""
    pairs: Any = edges
    if not hasattr(edges, "shape"):
        pairs = [*edges]
    array = np.asarray(pairs)
    are_pairs = array.ndim == 2 and array.shape[1] == 2
    if np.ma.is_masked(pairs) or (array.size and not are_pairs):
        raise ValueError(
            f"edges must be pairs of states, shape (m, 2), found shape {array.shape}; "
            "give pairs (i, j)"
        )
    check_codes(array, n_states, "states of edges")
    return _sorted_edges(array.reshape(-1, 2), n_states)


def _sorted_edges(pairs: np.ndarray, n_states: int) -> np.ndarray:
    """Distinct rows i < j in lexicographic order, without loops."""
    low = pairs.min(axis=1).astype(np.intp)
    high = pairs.max(axis=1).astype(np.intp)
    codes = np.sort((low * n_states + high)[low < high])
    is_new = np.diff(codes, prepend=-1) > 0  # np.unique hashes, which is slower
    return np.column_stack(np.divmod(codes[is_new], n_states))
