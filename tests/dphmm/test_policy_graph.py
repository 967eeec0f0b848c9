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


def test_the_categorical_policy_of_figure_3_and_the_constraint_of_figure_8():
    G = categorical()
    assert set(G.edges) == {(1, 2), (3, 4), (3, 5), (4, 5)}
    assert (5, 3) in G.edges
    assert (G.disconnected.tolist(), G.neighbors(4).tolist(), G.neighbors(0).tolist()) == ([0], [3, 4, 5], [0])
    constrained = G.constrain([1, 2, 4])
    assert set(constrained.edges) == {(1, 2)}
    assert (constrained.possible.tolist(), constrained.disconnected.tolist()) == ([1, 2, 4], [4])
    assert constrained.n_states == 6
    assert constrained.constrain([4, 0]).possible.tolist() == [4]
    assert constrained == G.constrain(np.isin(np.arange(6), [1, 2, 4]))


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
    assert PolicyGraph.utility([0.1, 0.4], 0.3).n_edges == 1  # their difference is 0.30000000000000004


def _reached_together(P):
    n = len(P)
    return {(j, k) for i in range(n) for j in range(n) for k in range(j + 1, n) if P[i, j] > 0 and P[i, k] > 0}


@pytest.mark.parametrize("P", [TRANSITIONS, *(tpl.random_matrix(7, seed=seed, zeros=0.6) for seed in range(5))])
@pytest.mark.parametrize("sparse", [False, True])
def test_transition_policy_by_its_definition(P, sparse):
    P = np.asarray(P)
    given_as = tpl.TransitionMatrix(scipy.sparse.csr_array(P)) if sparse else P
    assert set(PolicyGraph.transition(given_as).edges) == _reached_together(P)


@pytest.mark.parametrize(
    ("stored", "background"),
    [
        (np.eye(4), 0.05),
        (np.eye(4), [0.05, 0.05, 0.05, 0.0]),
        (np.diag([0.0, 1, 1, 1]), [1 / 4, 0, 0, 0]),  # a row that is only background reaches everything
    ],
)
def test_transition_policy_of_a_smoothed_sparse_matrix(stored, background):
    P = tpl.TransitionMatrix(scipy.sparse.csr_array(stored), background=background, normalize=True)
    assert PolicyGraph.transition(P) == PolicyGraph.complete(4)


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
        (lambda: PolicyGraph.from_edges(3, [(0, 3)]), "states of edges must be among 0..2, found the unknown state 3"),
        (lambda: PolicyGraph.from_edges(3, [(0, 1, 2)]), r"pairs of states, shape \(m, 2\), found shape \(1, 3\)"),
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
