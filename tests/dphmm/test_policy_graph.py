import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import tplrepro as tpl
from tests.dphmm.policies import F, categorical
from tplrepro.dphmm import PolicyGraph
from tplrepro.dphmm.running_example import TRANSITIONS


def test_categorical_policy_of_figure_3():
    G = categorical()
    assert set(G.edges) == {(1, 2), (3, 4), (3, 5), (4, 5)}
    assert (5, 3) in G.edges
    assert G.disconnected.tolist() == [0]
    assert G.neighbors(4).tolist() == [3, 4, 5]
    assert G.neighbors(0).tolist() == [0]


def test_constraint_of_figure_8_removes_the_edges_of_impossible_states():
    G = categorical().constrain([1, 2, 4])
    assert set(G.edges) == {(1, 2)}
    assert G.possible.tolist() == [1, 2, 4]
    assert G.disconnected.tolist() == [4]
    assert G.n_states == 6
    assert G.constrain([4, 0]).possible.tolist() == [4]
    assert G == categorical().constrain(np.isin(np.arange(6), [1, 2, 4]))


@pytest.mark.parametrize("n", [1, 2, 7])
def test_complete_policy(n):
    assert set(PolicyGraph.complete(n).edges) == set(nx.complete_graph(n).edges)


def test_a_constrained_complete_policy_is_complete():
    G = PolicyGraph.complete(6).constrain([4, 1, 3])
    assert set(G.edges) == {(1, 3), (1, 4), (3, 4)}
    assert PolicyGraph.from_edges(3, [(0, 1)]).constrain([0, 1]).constrain([1]).n_edges == 0


@given(st.integers(0, 10_000), st.floats(0, 4))
@settings(max_examples=30)
def test_utility_policy_is_every_pair_within_the_radius(seed, radius):
    f = np.random.default_rng(seed).integers(0, 4, (9, 2)).astype(float)
    expected = {
        (i, j) for i in range(9) for j in range(i + 1, 9) if np.linalg.norm(f[i] - f[j]) <= radius * (1 + 1e-12)
    }
    assert set(PolicyGraph.utility(f, radius).edges) == expected


def test_utility_policy_keeps_pairs_at_exactly_the_radius():
    f = np.array([0.1, 0.4])  # their difference is 0.30000000000000004
    assert set(PolicyGraph.utility(f, 0.3).edges) == {(0, 1)}


def _reached_together(P):
    n = len(P)
    return {(j, k) for i in range(n) for j in range(n) for k in range(j + 1, n) if P[i, j] > 0 and P[i, k] > 0}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("sparse", [False, True])
def test_transition_policy_by_its_definition(seed, sparse):
    P = np.asarray(tpl.random_matrix(7, seed=seed, zeros=0.6))
    given_as = tpl.TransitionMatrix(scipy.sparse.csr_array(P)) if sparse else P
    assert set(PolicyGraph.transition(given_as).edges) == _reached_together(P)


def test_transition_policy_of_the_running_example():
    assert set(PolicyGraph.transition(TRANSITIONS).edges) == _reached_together(TRANSITIONS)


@pytest.mark.parametrize("background", [0.05, [0.05, 0.05, 0.05, 0.0]])
def test_transition_policy_of_a_smoothed_sparse_matrix(background):
    stored = scipy.sparse.csr_array(np.diag([1.0, 1, 1, 1]))
    P = tpl.TransitionMatrix(stored, background=background, normalize=True)
    assert PolicyGraph.transition(P) == PolicyGraph.complete(4)


def test_rows_that_are_only_background_reach_everything():
    stored = scipy.sparse.csr_array(np.array([[0.0, 0, 0], [0, 1, 0], [0, 0, 1]]))
    P = tpl.TransitionMatrix(stored, background=[1 / 3, 0, 0])
    assert PolicyGraph.transition(P) == PolicyGraph.complete(3)


def test_edges_are_undirected_and_counted_once():
    G = PolicyGraph.from_edges(4, [(2, 1), (1, 2), (3, 3), (0, 3)])
    assert G.edge_array.tolist() == [[0, 3], [1, 2]]
    assert PolicyGraph.from_edges(4, G.edges) == G
    assert PolicyGraph.from_edges(2, []).n_edges == 0
    assert repr(G) == "PolicyGraph(4 states, 4 possible, 2 edges)"
    assert G != 3


def test_connect_adds_one_edge_and_leaves_the_graph_as_it_was():
    G = categorical()
    assert set(G.connect([(4, 0)]).edges) - set(G.edges) == {(0, 4)}
    assert (0, 4) not in G.edges
    with pytest.raises(ValueError, match="read-only"):
        G.edge_array[0] = 7
    with pytest.raises(nx.NetworkXError, match="[Ff]rozen"):
        G.graph.add_edge(0, 1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PolicyGraph.from_edges(3, [(0, 3)]), r"states 0..2, found \(0, 3\), which names an unknown state"),
        (lambda: PolicyGraph.from_edges(3, [(-1, 2)]), "unknown state"),
        (lambda: PolicyGraph.from_edges(3, [(0, 1, 2)]), r"pairs of states, shape \(m, 2\), found int64"),
        (lambda: PolicyGraph.from_edges(3, [(0.5, 1)]), "whole numbers"),
        (lambda: PolicyGraph.from_edges(0, []), "at least one state"),
        (lambda: PolicyGraph.from_edges("six", []), "whole number of states, found 'six'"),
        (lambda: PolicyGraph.categorical([[0, 1], [1, 2]]), "disjoint, found state 1 twice"),
        (lambda: PolicyGraph.categorical([]), "at least one state"),
        (lambda: PolicyGraph.categorical([[0, 5]], n_states=3), "unknown state 5"),
        (lambda: PolicyGraph.utility(F, -1), "radius must be finite and at least 0, found -1"),
        (lambda: categorical().constrain([1, 6]), "unknown state 6"),
        (lambda: categorical().constrain([]), "at least one possible state"),
        (lambda: categorical().constrain([0.5]), "whole numbers"),
        (lambda: categorical().constrain([1, 2]).connect([(1, 4)]), "must join possible states, found 4"),
    ],
)
def test_errors(make, message):
    with pytest.raises(ValueError, match=message):
        make()
