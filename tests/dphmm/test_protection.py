from itertools import chain, combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.dphmm.policies import F, algorithm_4, categorical, linear_norm, random_policy
from tplrepro import dphmm
from tplrepro.dphmm import protection


@pytest.mark.parametrize(
    ("possible", "counts"),
    [
        ([1, 2, 4], [0, 2, 2, 0, 1, 0]),  # Example 5.2, Fig. 8: s_5 is exposed
        ([1, 3, 4, 5], [0, 3, 0, 4, 4, 3]),  # Fig. 9a; f(s_5) - f(s_2) is on K's boundary: rounding must not lose it
        ([2, 3, 4, 5], [0, 0, 1, 3, 3, 3]),  # Fig. 9b: s_3 is exposed
    ],
)
def test_figures_8_and_9(possible, counts):
    G = categorical().constrain(possible)
    assert dphmm.degree_of_protection(G, F).tolist() == counts
    assert dphmm.exposed_states(G, F).tolist() == [state for state, count in enumerate(counts) if count == 1]
    assert dphmm.is_protectable(G, F) == (1 not in counts)


@given(st.integers(0, 100_000), st.integers(1, 3), st.booleans())
@settings(max_examples=40)
def test_algorithm_4_as_published_agrees_and_so_does_linear_programming(seed, d, whole):
    rng = np.random.default_rng(seed)
    policy, f = random_policy(rng, 6, d, density=0.2, whole=whole)
    policy = policy.constrain(np.flatnonzero(rng.random(6) < 0.8).tolist() or [0])
    counts = dphmm.degree_of_protection(policy, f)
    assert counts.tolist() == algorithm_4(policy, f).tolist()
    assert dphmm.exposed_states(policy, f).tolist() == np.flatnonzero(counts == 1).tolist()
    assert all(counts[i] >= policy.neighbors(i).size for i in policy.possible)
    if policy.n_edges:
        for i in policy.possible:
            assert counts[i] == sum(linear_norm(policy, f, f[j] - f[i]) <= 1 + 1e-7 for j in policy.possible)


def test_counting_a_few_states_in_blocks_and_far_away(monkeypatch):
    policy, f = random_policy(np.random.default_rng(4), 30, 2, whole=True)
    assert dphmm.degree_of_protection(dphmm.PolicyGraph.complete(30), f).tolist() == [30] * 30
    whole = dphmm.degree_of_protection(policy, f)
    assert dphmm.degree_of_protection(policy, f * 0.34 + [4e5, 4.4e6]).tolist() == whole.tolist()
    monkeypatch.setattr(protection, "ROWS", 7)
    assert dphmm.degree_of_protection(policy, f).tolist() == whole.tolist()
    few = np.isin(np.arange(30), [4, 9])
    assert dphmm.degree_of_protection(policy, f, states=[4, 9]).tolist() == (few * whole).tolist()


def test_laplace_noise_may_protect_what_theorem_5_2_calls_exposed():
    # s_3 has DoP 1, yet its l1 distance to s_1 is within the sensitivity: the theorem holds for the K-norm body only.
    f = np.array([[0, 0], [1, 1], [1, -1]], dtype=float)
    G = dphmm.PolicyGraph.from_edges(3, [(0, 1)])
    assert dphmm.exposed_states(G, f).tolist() == [2]
    assert dphmm.exposed_states(G, f, dphmm.cross_polytope(2, dphmm.l1_sensitivity(G, f))).size == 0


def test_a_flat_hull_tells_some_states_apart():
    assert dphmm.constrained_dp_factor(categorical().constrain([1, 2, 4]), F) == np.inf


@given(st.integers(0, 100_000), st.integers(1, 5), st.booleans(), st.sampled_from(protection.METHODS))
@settings(max_examples=80)
def test_the_result_is_protectable_and_contains_the_policy(seed, d, whole, method):
    rng = np.random.default_rng(seed)
    policy, f = random_policy(rng, 12, d, density=0.02, whole=whole)
    policy = policy.constrain(rng.permutation(12)[: rng.integers(2, 13)])
    result, hull, added = protection.protect(policy, f, method)
    assert dphmm.is_protectable(result, f)
    assert result == policy.connect(added)
    assert result.n_edges == policy.n_edges + len(added)
    rebuilt = dphmm.sensitivity_hull(result, f)
    assert hull.volume == pytest.approx(rebuilt.volume)
    assert hull.norm(f - f[0]) == pytest.approx(rebuilt.norm(f - f[0]))


@pytest.mark.parametrize("method", ["greedy", "stepwise"])
@pytest.mark.parametrize(("d", "seed"), [*product([1, 2, 3, 4, 5], range(6))])
def test_algorithms_1_and_3_with_all_hulls_built_anew(method, d, seed):
    policy, f = random_policy(np.random.default_rng([d, seed]), 10 + 3 * (d > 3), d, density=0.1 if d > 3 else 0.03)
    found = dphmm.protectable_graph(policy, f, method)
    while (exposed := dphmm.exposed_states(policy, f)).size:  # found again after each step
        i, best = exposed[0], [j for j in policy.possible if j != exposed[0]]
        if method == "stepwise":
            hulls = {j: dphmm.sensitivity_hull(policy.connect([(i, j)]), f) for j in best}
            flattest = min(hull.dimension for hull in hulls.values())
            volumes = {j: hull.volume for j, hull in hulls.items() if hull.dimension == flattest}
            best = [j for j, volume in volumes.items() if volume <= min(volumes.values()) * (1 + 1e-9)]
        policy = policy.connect([(i, min(best, key=lambda j: np.linalg.norm(f[j] - f[i])))])
    assert found == policy


@pytest.mark.parametrize(("d", "seed"), [*product([2, 3], range(6))])
def test_with_one_exposed_state_no_set_of_edges_does_better(d, seed):
    rng = np.random.default_rng([d, seed])
    policy, f = random_policy(rng, 5 + (d == 3), d, density=0.4)
    while dphmm.exposed_states(policy, f).size != 1 or dphmm.sensitivity_hull(policy, f).dimension < d:
        policy, f = random_policy(rng, 5 + (d == 3), d, density=0.4)
    best = dphmm.sensitivity_hull(dphmm.protectable_graph(policy, f, "stepwise"), f).volume
    missing = sorted(set(combinations(range(policy.n_states), 2)) - set(policy.edges))
    for edges in chain.from_iterable(combinations(missing, size) for size in range(4)):
        other = policy.connect(edges)
        if dphmm.is_protectable(other, f):
            assert dphmm.sensitivity_hull(other, f).volume >= best * (1 - 1e-9)


def test_with_several_exposed_states_algorithm_3_need_not_be_optimal(monkeypatch):
    # Two exposed states: each step is optimal, the two together are not; all pairs of edges decide.
    policy, ratios = dphmm.PolicyGraph.from_edges(5, [(0, 1), (0, 2)]), []
    for f in np.random.default_rng(0).integers(-4, 5, (300, 5, 2)).astype(float):
        exposed = dphmm.exposed_states(policy, f)
        if exposed.size == 2 and dphmm.sensitivity_hull(policy, f).dimension == 2:
            more = (np.delete(f, state, axis=0) - f[state] for state in exposed)
            joint = min(dphmm.SensitivityHull([*policy.differences(f), *pair]).volume for pair in product(*more))
            found = [protection.protect(policy, f, method)[1].volume for method in ("stepwise", "optimal")]
            ratios.append(np.divide(found, joint))
    assert np.min(ratios) >= 1 - 1e-9
    stepwise, optimal = np.max(ratios, axis=0)
    assert stepwise > 1.05
    assert optimal <= 1 + 1e-9
    monkeypatch.setattr(protection, "MOST_HULLS", 1)
    with pytest.raises(ValueError, match="take method 'stepwise'"):
        protection.protect(policy, f, "optimal")


def test_an_edgeless_policy_is_built_from_nothing():
    policy = dphmm.PolicyGraph.from_edges(4, [])
    result = dphmm.protectable_graph(policy, [0.0, 1.0, 3.0, 7.0], "greedy")
    assert set(result.edges) == {(0, 1), (1, 2), (2, 3)}
    # States with equal answers hide each other.
    assert dphmm.protectable_graph(policy, [2.0, 2, 5, 5]) == policy
