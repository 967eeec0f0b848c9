from copy import deepcopy
from itertools import combinations

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import tplrepro as tpl
from experiments.dphmm.running_example import TRANSITIONS
from tests.tplrepro.dphmm.policies import F, categorical
from tplrepro.dphmm import PolicyGraph, delta_location_set, sensitivity_hull


def test_the_categorical_policy_of_figure_3_and_the_constraint_of_figure_8():
    G = categorical()
    assert set(G.edges) == {(1, 2), (3, 4), (3, 5), (4, 5)}
    assert (5, 3) in G.edges
    assert G.disconnected.tolist() == [0]
    constrained = G.constrain([1, 2, 4])
    assert (set(constrained.edges), constrained.n_states, constrained.disconnected.tolist()) == (
        {(1, 2)},
        6,
        [4],
    )
    assert [constrained.possible.tolist(), constrained.constrain([4, 0]).possible.tolist()] == [
        [1, 2, 4],
        [4],
    ]
    assert constrained == G.constrain(np.isin(np.arange(6), [1, 2, 4])) == G.constrain({4, 2, 1})
    # Graphs stay as they are.
    assert set(G.connect([(4, 0)]).edges) - set(G.edges) == {(0, 4)}
    for owner in (G, deepcopy(G), constrained, G.connect([(4, 0)]), sensitivity_hull(G, F)):
        assert not any(
            array.flags.writeable for array in vars(owner).values() if isinstance(array, np.ndarray)
        )
    with pytest.raises(nx.NetworkXError, match="[Ff]rozen"):
        G.graph.add_edge(0, 1)


def test_complete_policies_also_constrained_and_edges_undirected_and_counted_once():
    for n in (1, 2, 7):
        assert set(PolicyGraph.complete(n).edges) == set(combinations(range(n), 2))
    assert set(PolicyGraph.complete(6).constrain([4, 1, 3]).edges) == {(1, 3), (1, 4), (3, 4)}
    assert PolicyGraph.from_edges(3, [(0, 1)]).constrain([0, 1]).constrain([1]).n_edges == 0
    pairs = np.array([(2, 1), (1, 2), (3, 3), (0, 3)])
    G = PolicyGraph.from_edges(4, pairs)
    for same in (map(tuple, pairs.tolist()), pairs.view(np.matrix)):
        assert PolicyGraph.from_edges(4, same) == G
    assert G.edge_array.tolist() == [[0, 3], [1, 2]]
    assert PolicyGraph.from_edges(4, G.edges) == G != 3
    assert PolicyGraph.from_edges(2, []).n_edges == 0
    assert repr(G) == "PolicyGraph(4 states, 4 possible, 2 edges)"


@given(st.integers(0, 10_000), st.floats(0, 4))
@settings(max_examples=40)
def test_utility_policy_is_every_pair_within_the_radius(seed, radius):
    f = np.random.default_rng(seed).integers(0, 4, (9, 2)).astype(float)
    near = {
        (i, j)
        for i, j in combinations(range(9), 2)
        if np.linalg.norm(f[i] - f[j]) <= radius * (1 + 1e-12)
    }
    assert set(PolicyGraph.utility(f, radius).edges) == near
    # their difference is 0.30000000000000004
    assert PolicyGraph.utility([0.1, 0.4], 0.3).n_edges == 1


@pytest.mark.parametrize(
    "P",
    [
        TRANSITIONS,
        *(
            tpl.TransitionMatrix.random(7, rng=np.random.default_rng(seed), zeros=0.6)
            for seed in range(5)
        ),
    ],
)
# a dense matrix, and sparse ones
@pytest.mark.parametrize("background", [None, 0, 0.05, np.arange(7) == 3])
def test_the_transition_policy_joins_states_reached_from_one_state(P, background):
    P = np.asarray(P)
    if background is not None:
        rows = scipy.sparse.csr_array(P)
        P = tpl.TransitionMatrix(
            rows, background=np.broadcast_to(background, 7)[: len(P)], normalize=True
        )
    reached_together = {
        pair for row in np.asarray(P) for pair in combinations(np.flatnonzero(row > 0).tolist(), 2)
    }
    assert set(PolicyGraph.transition(P).edges) == reached_together


@given(st.integers(0, 10_000), st.floats(0, 0.6))
def test_delta_location_set_is_the_smallest(seed, delta):
    p = np.random.default_rng(seed).dirichlet(np.ones(6) / 2)
    chosen = delta_location_set(p, delta)
    assert p[chosen].sum() >= 1 - delta - 1e-12
    for smaller in combinations(range(6), len(chosen) - 1):
        assert p[list(smaller)].sum() < 1 - delta + 1e-12
    # The sum of the others falls short of 1 by rounding.
    assert delta_location_set([0.1] * 10 + [0.0], 0).tolist() == list(range(10))
    assert delta_location_set([0.25, 0.25, 0.5], 0.25).tolist() == [0, 2]
    # rounding does not decide
    assert delta_location_set([0.25, 0.25 + 1e-12, 0.5], 0.26).tolist() == [0, 2]


@pytest.mark.parametrize("offset", [0.0, 448.0, 4400.0, -73_000.0])
def test_answers_a_radius_apart_are_joined_whatever_their_offset(offset):
    """Tenths of a kilometre are no doubles, far from the origin less so."""
    line = [round(offset + 0.1 * k, 1) for k in range(8)]
    assert PolicyGraph.utility(line, 0.1).n_edges == 7
    assert PolicyGraph.utility(line, 0.0999999).n_edges == 0
    square = [
        (round(offset + 0.1 * j, 1), round(4417 + 0.1 * k, 1)) for j in range(5) for k in range(5)
    ]
    assert PolicyGraph.utility(square, 0.1).n_edges == 40
