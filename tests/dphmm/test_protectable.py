from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.dphmm.policies import F, categorical, random_policy
from tplrepro.dphmm import (
    NoPrivacyError,
    PolicyGraph,
    SensitivityHull,
    exposed_states,
    is_protectable,
    protectable_graph,
    sensitivity_hull,
)
from tplrepro.dphmm.protectable import protect


def _added(before, after):
    return set(after.edges) - set(before.edges)


def test_example_6_1():
    G = categorical().constrain([2, 3, 4, 5])
    areas = {other: sensitivity_hull(G.connect(2, other), F).volume for other in (3, 4, 5)}
    assert min(areas, key=areas.get) == 3
    assert _added(G, protectable_graph(G, F, "optimal")) == {(2, 3)}
    # Algorithm 1 takes the nearest answer instead: s_5, at distance sqrt(5).
    assert _added(G, protectable_graph(G, F, "greedy")) == {(2, 4)}


@given(st.integers(0, 100_000), st.integers(1, 3), st.booleans(), st.sampled_from(["greedy", "optimal"]))
@settings(max_examples=60)
def test_the_result_is_protectable_and_contains_the_policy(seed, d, whole, method):
    rng = np.random.default_rng(seed)
    policy, f = random_policy(rng, 12, d, density=0.02, whole=whole)
    policy = policy.constrain(rng.permutation(12)[: rng.integers(2, 13)])
    result, hull, added = protect(policy, f, method)
    assert {tuple(sorted(pair)) for pair in added} == _added(policy, result)
    assert is_protectable(result, f)
    assert set(policy.edges) <= set(result.edges)
    assert result.possible.tolist() == policy.possible.tolist()
    rebuilt = sensitivity_hull(result, f)
    assert hull.volume == pytest.approx(rebuilt.volume)
    assert hull.norm(f - f[0]) == pytest.approx(rebuilt.norm(f - f[0]))


def _algorithm_3(policy, f):
    """Algorithm 3 with all hulls built anew, exposed states found again after each step."""
    while exposed_states(policy, f).size:
        i = exposed_states(policy, f)[0]
        others = [j for j in policy.possible if j != i]
        hulls = {j: sensitivity_hull(policy.connect(i, j), f) for j in others}
        flattest = min(hull.dimension for hull in hulls.values())
        volumes = {j: hull.volume for j, hull in hulls.items() if hull.dimension == flattest}
        best = [j for j, volume in volumes.items() if volume <= min(volumes.values()) * (1 + 1e-9)]
        policy = policy.connect(i, _nearest(f, i, best))
    return policy


def _nearest(f, i, others):
    return min(others, key=lambda j: np.linalg.norm(f[j] - f[i]))


def _algorithm_1(policy, f):
    while exposed_states(policy, f).size:
        i = exposed_states(policy, f)[0]
        others = [j for j in policy.possible if j != i]
        policy = policy.connect(i, _nearest(f, i, others))
    return policy


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("seed", range(6))
def test_both_methods_step_by_step(d, seed):
    policy, f = random_policy(np.random.default_rng([d, seed]), 10, d, density=0.03)
    assert protectable_graph(policy, f, "optimal") == _algorithm_3(policy, f)
    assert protectable_graph(policy, f, "greedy") == _algorithm_1(policy, f)


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("seed", range(6))
def test_with_one_exposed_state_no_set_of_edges_does_better(d, seed):
    rng = np.random.default_rng([d, seed])
    while True:
        policy, f = random_policy(rng, 5 + (d == 3), d, density=0.4)
        if exposed_states(policy, f).size == 1 and sensitivity_hull(policy, f).dimension == d:
            break
    best = sensitivity_hull(protectable_graph(policy, f, "optimal"), f).volume
    missing = sorted(set(combinations(range(policy.n_states), 2)) - set(policy.edges))
    for chosen in product([False, True], repeat=len(missing)):
        edges = [edge for edge, taken in zip(missing, chosen, strict=True) if taken]
        other = PolicyGraph.from_edges(policy.n_states, [*policy.edges, *edges])
        if len(edges) <= 3 and is_protectable(other, f):
            assert sensitivity_hull(other, f).volume >= best * (1 - 1e-9)


def test_with_several_exposed_states_algorithm_3_need_not_be_optimal():
    # Two exposed states: each step is optimal, the two together are not.
    rng = np.random.default_rng(0)
    worst = 1.0
    for _ in range(300):
        f = rng.integers(-4, 5, (5, 2)).astype(float)
        policy = PolicyGraph.from_edges(5, [(0, 1), (0, 2)])
        exposed = exposed_states(policy, f)
        if exposed.size != 2 or sensitivity_hull(policy, f).dimension < 2:
            continue
        first, second = policy.edge_array.T
        own = f[first] - f[second]
        joint = min(
            SensitivityHull(np.vstack([own, f[i] - f[exposed[0]], f[j] - f[exposed[1]]])).volume
            for i in range(5)
            for j in range(5)
            if i != exposed[0] and j != exposed[1]
        )
        found = sensitivity_hull(protectable_graph(policy, f, "optimal"), f).volume
        assert found >= joint * (1 - 1e-9)
        worst = max(worst, found / joint)
    assert worst > 1.05


def test_an_edgeless_policy_is_built_from_nothing():
    result = protectable_graph(PolicyGraph.from_edges(4, []), [0.0, 1.0, 3.0, 7.0], "greedy")
    assert set(result.edges) == {(0, 1), (1, 2), (2, 3)}


def test_states_with_equal_answers_hide_each_other():
    policy = PolicyGraph.from_edges(4, [])
    assert protectable_graph(policy, [2.0, 2, 5, 5]) == policy


def test_errors():
    with pytest.raises(NoPrivacyError, match="at least two possible states, found only state 4"):
        protectable_graph(categorical().constrain([4]), F)
    with pytest.raises(ValueError, match="method must be 'greedy' or 'optimal', found 'best'"):
        protectable_graph(categorical(), F, "best")
