import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.dphmm.policies import F, categorical, linear_norm, random_policy
from tplrepro.dphmm import (
    PolicyGraph,
    cross_polytope,
    degree_of_protection,
    exposed_states,
    is_protectable,
    l1_sensitivity,
    protection,
    published,
)


def test_example_5_2_exposes_s5():
    G = categorical().constrain([1, 2, 4])
    assert degree_of_protection(G, F).tolist() == [0, 2, 2, 0, 1, 0]
    assert exposed_states(G, F).tolist() == [4]
    assert not is_protectable(G, F)


def test_figure_9a_protects_s2_without_a_neighbour():
    # f(s_5) - f(s_2) = (2, 1) lies on the boundary of K: rounding must not lose it.
    G = categorical().constrain([1, 3, 4, 5])
    assert degree_of_protection(G, F)[1] == 3
    assert exposed_states(G, F).size == 0
    assert is_protectable(G, F)


def test_figure_9b_exposes_s3():
    assert exposed_states(categorical().constrain([2, 3, 4, 5]), F).tolist() == [2]


@given(st.integers(0, 100_000), st.integers(1, 3), st.booleans())
@settings(max_examples=30)
def test_degree_of_protection_by_linear_programming(seed, d, whole):
    rng = np.random.default_rng(seed)
    policy, f = random_policy(rng, 6, d, density=0.2, whole=whole)
    policy = policy.constrain(np.flatnonzero(rng.random(6) < 0.8).tolist() or [0])
    counts = degree_of_protection(policy, f)
    for i in range(6):
        if i not in policy.possible:
            assert counts[i] == 0
        elif policy.n_edges:
            norms = [linear_norm(policy, f, f[j] - f[i]) for j in policy.possible]
            assert counts[i] == sum(norm <= 1 + 1e-7 for norm in norms)
        else:
            assert counts[i] == sum(np.array_equal(f[j], f[i]) for j in policy.possible)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("whole", [False, True])
def test_algorithm_4_as_published_agrees(d, whole):
    for seed in range(4):
        rng = np.random.default_rng([d, seed])
        policy, f = random_policy(rng, 8, d, density=0.25, whole=whole)
        policy = policy.constrain(rng.permutation(8)[:6])
        assert published.degree_of_protection(policy, f).tolist() == degree_of_protection(policy, f).tolist()


@given(st.integers(0, 100_000))
@settings(max_examples=30)
def test_a_state_is_hidden_by_its_neighbours_at_least(seed):
    rng = np.random.default_rng(seed)
    policy, f = random_policy(rng, 40, 2)
    counts = degree_of_protection(policy, f)
    degrees = np.array([policy.neighbors(i).size for i in range(40)])
    assert (counts >= degrees).all()
    assert exposed_states(policy, f).tolist() == np.flatnonzero(counts == 1).tolist()


def test_the_complete_graph_protects_everybody():
    f = np.random.default_rng(0).normal(size=(30, 2))
    assert degree_of_protection(PolicyGraph.complete(30), f).tolist() == [30] * 30


def test_counting_a_few_states_and_in_blocks(monkeypatch):
    policy, f = random_policy(np.random.default_rng(3), 30, 2)
    whole = degree_of_protection(policy, f)
    monkeypatch.setattr(protection, "ROWS", 7)
    assert degree_of_protection(policy, f).tolist() == whole.tolist()
    few = degree_of_protection(policy, f, states=[4, 9])
    assert few[[4, 9]].tolist() == whole[[4, 9]].tolist()
    assert few.sum() == whole[[4, 9]].sum()


def test_far_from_the_origin_nothing_changes():
    policy, f = random_policy(np.random.default_rng(4), 30, 2, whole=True)
    shifted = f * 0.34 + [4e5, 4.4e6]
    assert degree_of_protection(policy, shifted).tolist() == degree_of_protection(policy, f).tolist()


def test_laplace_noise_may_protect_what_theorem_5_2_calls_exposed():
    # s_3 has DoP 1, yet its l1 distance to s_1 is within the sensitivity: the theorem holds for the K-norm body only.
    f = np.array([[0, 0], [1, 1], [1, -1]], dtype=float)
    G = PolicyGraph.from_edges(3, [(0, 1)])
    assert exposed_states(G, f).tolist() == [2]
    assert exposed_states(G, f, cross_polytope(2, l1_sensitivity(G, f))).size == 0


def test_errors():
    with pytest.raises(ValueError, match="unknown state 6"):
        degree_of_protection(categorical(), F, states=[6])
    with pytest.raises(ValueError, match=r"shape \(6, d\)"):
        exposed_states(categorical(), F.T)
