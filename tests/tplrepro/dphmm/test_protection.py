from itertools import chain, combinations, product
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.dphmm.running_example import COUNTS, PATIENT_EDGES
from tests.tplrepro.dphmm.policies import F, algorithm_4, categorical, linear_norm, random_policy
from tplrepro import dphmm
from tplrepro.dphmm import protection


@given(st.integers(0, 100_000), st.integers(1, 3), st.booleans())
@settings(max_examples=12)
def test_algorithm_4_as_published_agrees_and_so_does_linear_programming(seed, d, whole):
    rng = np.random.default_rng(seed)
    policy, f = random_policy(rng, 6, d, density=0.2, whole=whole)
    policy = policy.constrain(np.flatnonzero(rng.random(6) < 0.8).tolist() or [0])
    counts = dphmm.degree_of_protection(policy, f)
    assert counts.tolist() == algorithm_4(policy, f).tolist()
    assert dphmm.degree_of_protection(policy, f + 1e6, states=[1, 4]).tolist() == [
        0,
        counts[1],
        0,
        0,
        counts[4],
        0,
    ]
    assert dphmm.exposed_states(policy, f).tolist() == np.flatnonzero(counts == 1).tolist()
    assert all(counts[i] > policy.graph.degree(i) for i in policy.possible.tolist())
    if policy.n_edges:
        for i in policy.possible:
            assert counts[i] == sum(
                linear_norm(policy, f, f[j] - f[i]) <= 1 + 1e-7 for j in policy.possible
            )


def test_an_answer_far_away_makes_no_hull_too_thin_for_qhull():
    f = np.vstack([np.eye(4), np.zeros((1, 4)), np.full((1, 4), 1e5), 7 - 3e4 * np.eye(4)[:2]])
    policy = dphmm.PolicyGraph.from_edges(8, [(i, 4) for i in range(4)])
    assert not dphmm.exposed_states(dphmm.protectable_graph(policy, f), f).size


def test_laplace_noise_may_protect_what_theorem_5_2_calls_exposed():
    # s_3 has DoP 1, yet its l1 distance to s_1 is within the sensitivity.
    f = np.array([[0, 0], [1, 1], [1, -1]], dtype=float)
    G = dphmm.PolicyGraph.from_edges(3, [(0, 1)])
    assert dphmm.exposed_states(G, f).tolist() == [2]
    assert dphmm.exposed_states(G, f, dphmm.cross_polytope(2, dphmm.l1_sensitivity(G, f))).size == 0


@given(
    st.integers(0, 100_000), st.integers(1, 5), st.booleans(), st.sampled_from(protection.METHODS)
)
@settings(max_examples=30)
def test_the_result_is_protectable_and_contains_the_policy(seed, d, whole, method):
    rng = np.random.default_rng(seed)
    policy, f = random_policy(rng, 12, d, density=0.02, whole=whole)
    policy = policy.constrain(rng.permutation(12)[: rng.integers(2, 13)])
    found = protection.protect(policy, f, method)
    result, hull, added = found.policy, found.hull, found.added_edges
    assert found.gap == 0 if method == "optimal" else np.isnan(found.gap)
    assert not dphmm.exposed_states(result, f).size
    assert result == policy.connect(added)
    assert result.n_edges == policy.n_edges + len(added)
    rebuilt = dphmm.sensitivity_hull(result, f)
    assert hull.volume == pytest.approx(rebuilt.volume)
    assert hull.norm(f - f[0]) == pytest.approx(rebuilt.norm(f - f[0]))


@pytest.mark.parametrize("method", ["greedy", "stepwise"])
@pytest.mark.parametrize(("d", "seed"), [*product([1, 2, 3, 4, 5], range(3))])
def test_algorithms_1_and_3_add_the_edges_found_with_all_hulls_built_anew(method, d, seed):
    n, density = (13, 0.1) if d > 3 else (10, 0.03)
    policy, f = random_policy(np.random.default_rng([d, seed]), n, d, density, whole=seed == 2)
    found = dphmm.protectable_graph(policy, f, method)
    while (exposed := dphmm.exposed_states(policy, f)).size:  # found again after each step
        i, best = exposed[0], [j for j in policy.possible if j != exposed[0]]
        if method == "stepwise":
            hulls = {j: dphmm.sensitivity_hull(policy.connect([(i, j)]), f) for j in best}
            flattest = min(hull.dimension for hull in hulls.values())
            volumes = {j: hull.volume for j, hull in hulls.items() if hull.dimension == flattest}
            best = [
                j for j, volume in volumes.items() if volume <= min(volumes.values()) * (1 + 1e-9)
            ]
        policy = policy.connect([(i, min(best, key=lambda j: np.linalg.norm(f[j] - f[i])))])
    assert found == policy


@pytest.mark.parametrize(("d", "seed"), [*product([2, 3], range(2))])
def test_with_one_exposed_state_no_set_of_edges_does_better(d, seed):
    rng = np.random.default_rng([d, seed])
    policy, f = random_policy(rng, 5 + (d == 3), d, density=0.4)
    while (
        dphmm.exposed_states(policy, f).size != 1 or dphmm.sensitivity_hull(policy, f).dimension < d
    ):
        policy, f = random_policy(rng, 5 + (d == 3), d, density=0.4)
    best = protection.protect(policy, f, "stepwise").hull.volume
    missing = sorted({*combinations(range(policy.n_states), 2)} - {*policy.edges})
    for edges in chain.from_iterable(combinations(missing, size) for size in range(4)):
        other = policy.connect(edges)
        hull = dphmm.sensitivity_hull(other, f)
        if hull.volume < best * (1 - 1e-9):
            assert dphmm.exposed_states(other, f, hull).size


def exhaustive(policy, f):
    """Dimension and volume of the smallest hull under which nobody is exposed, over all connections
    of the exposed."""
    exposed = dphmm.exposed_states(policy, f)
    others = [[(i, j) for j in policy.possible if j != i] for i in exposed]
    hulls = (dphmm.sensitivity_hull(policy.connect(edges), f) for edges in product(*others))
    return min((hull.dimension, hull.volume) for hull in hulls)


@pytest.mark.parametrize(("n", "d"), [*product(range(3, 7), [2, 3])])
def test_the_optimum_is_that_of_an_exhaustive_search(n, d):
    tried = 0
    for seed in range(200):
        rng = np.random.default_rng([n, d, seed])
        policy, f = random_policy(rng, n, d, density=0.1, whole=seed % 2)
        if 0 < dphmm.exposed_states(policy, f).size <= (4 if n < 6 else 3):
            found, least = protection.protect(policy, f, "optimal"), exhaustive(policy, f)
            assert (found.hull.dimension, found.gap) == (least[0], 0)
            assert found.hull.volume == pytest.approx(least[1])
            tried += 1
            if tried == 3:
                break
    assert tried


@pytest.mark.parametrize("d", [2, 3])
def test_no_supergraph_at_all_does_better_than_the_optimum(d):
    # All 1,024 graphs on five states, not only those that connect exposed ones.
    policy, f = random_policy(np.random.default_rng([d, 0]), 5, d, density=0.1, whole=True)
    best = protection.protect(policy, f, "optimal")
    missing = sorted({*combinations(range(5), 2)} - {*policy.edges})
    for edges in chain.from_iterable(
        combinations(missing, size) for size in range(len(missing) + 1)
    ):
        other = policy.connect(edges)
        hull = dphmm.sensitivity_hull(other, f)
        if hull.dimension == best.hull.dimension and hull.volume < best.hull.volume * (1 - 1e-9):
            assert dphmm.exposed_states(other, f, hull).size


def test_a_hull_that_is_smaller_by_rounding_alone_is_no_better():
    best = SimpleNamespace(hull=SimpleNamespace(dimension=2, volume=3.0))
    search = SimpleNamespace(best=best)
    improves = protection._SmallestHull.improves
    for dimension, volume, is_better in (
        (2, 3.0, False),
        (2, 3.0 * (1 - 1e-13), False),
        (2, 3.0 * (1 - 1e-11), True),
        (1, 9.0, True),
        (3, 1.0, False),
    ):
        assert improves(search, protection.HullSize(dimension, volume)) is is_better


def test_stepwise_is_never_better_and_sometimes_much_worse():
    ratios = []
    for seed in (*range(40, 60), 174):  # the last one has five states
        rng = np.random.default_rng(seed)
        policy, f = random_policy(rng, int(rng.integers(3, 10)), 2, density=0.08, whole=seed % 2)
        hulls = [
            protection.protect(policy, f, method).hull
            for method in ("stepwise", "greedy", "optimal")
        ]
        *others, best = [(hull.dimension, hull.volume * (1 + 1e-9)) for hull in hulls]
        assert best <= (min(others)[0], min(others)[1] * (1 + 1e-9))
        ratios.append(
            hulls[0].volume / hulls[2].volume
            if hulls[0].dimension == hulls[2].dimension
            else np.inf
        )
    assert np.median(ratios) == pytest.approx(1)
    assert 6 < np.max(ratios) < np.inf


def test_beyond_the_size_that_is_searched_the_gap_is_said(monkeypatch):
    f, policy = np.random.default_rng(0).normal(size=(40, 2)), dphmm.PolicyGraph.from_edges(40, [])
    least = protection.protect(policy, f, "optimal")
    assert least.gap == 0
    stepwise = protection.protect(policy, f, "stepwise").hull.volume
    gaps = []
    for most in range(0, 120, 20):
        monkeypatch.setattr(protection, "MOST_HULLS", most)
        found = protection.protect(policy, f, "optimal")
        assert least.hull.volume * (1 - 1e-9) <= found.hull.volume <= stepwise * (1 + 1e-9)
        assert found.hull.volume <= least.hull.volume * (1 + found.gap) * (1 + 1e-9)
        assert not dphmm.exposed_states(found.policy, f).size
        gaps.append(found.gap)
    assert gaps[0] == np.inf
    assert any(0 < gap < 1 for gap in gaps)
    assert gaps == sorted(gaps, reverse=True)


@pytest.mark.parametrize("method", protection.METHODS)
def test_edges_that_the_user_insists_on_come_first(method):
    # Section 4.3: s_3 is exposed and hidden by s_6, not by the state that the method would take.
    G = categorical().constrain([2, 3, 4, 5])
    found = protection.protect(G, F, method, [(5, 2), (0, 2), (3, 4)])
    assert found.added_edges == [(2, 5)]  # s_1 is impossible; s_4 and s_5 are not exposed
    assert found.policy == G.connect([(2, 5)])
    assert found.hull.volume == pytest.approx(20)
    # Footnote 5: a whole graph of the user's; the method has nothing left to do.
    whole = dphmm.PolicyGraph.from_edges(5, [(0, 4), (1, 4), (2, 4), (3, 4)])
    bare, f = (
        dphmm.PolicyGraph.from_edges(5, []),
        np.array([[0.0, 0], [1, 0], [0, 1], [1, 1], [9, 9]]),
    )
    assert dphmm.protectable_graph(bare, f, method, whole) == whole
    rest = dphmm.protectable_graph(bare, f, method, [(0, 4)])
    assert (0, 4) in rest.edges
    assert not dphmm.exposed_states(rest, f).size


def test_null_nodes_protect_existence():
    # Example 5.3, edges of Fig. 2b, null node of Fig. 2c: no existence is leaked by more than
    # epsilon.
    f = np.vstack([COUNTS, [0, 0]])
    patients = dphmm.PolicyGraph.from_edges(6, PATIENT_EDGES)
    assert dphmm.sensitivity_hull(patients, COUNTS).norm(COUNTS).max() == pytest.approx(2)
    both = patients.with_null()
    assert both.n_edges == 2 + 6
    assert dphmm.sensitivity_hull(both, f).norm(f).max() == pytest.approx(1)
    mechanism, without = (
        dphmm.KNormMechanism(both, f, 0.7),
        dphmm.KNormMechanism(patients, COUNTS, 0.7),
    )
    z = f - [0.3, 0.2]
    pairs = [
        (each.log_density(z, COUNTS[:, None]), each.log_density(z, [0, 0]))
        for each in (mechanism, without)
    ]
    losses = [np.abs(existing - missing).max() for existing, missing in pairs]
    assert losses[0] <= 0.7 * (1 + 1e-9) < losses[1]
    alone = dphmm.PolicyGraph.from_edges(3, [(0, 1)]).with_null([]).constrain([0, 1, 2, 3])
    answers = [[0.0, 5], [1, 5], [0, 1], [0, 0]]
    assert dphmm.exposed_states(alone, answers).tolist() == [2, 3]
    assert protection.protect(alone, answers).added_edges == [(2, 3)]
    assert patients.constrain([1, 2]).with_null().edge_array.tolist() == [[1, 6], [2, 6]]


@pytest.mark.parametrize("method", ["greedy", "stepwise", "optimal"])
def test_states_that_differ_by_rounding_beside_a_point_are_hidden_in_a_thin_body_too(method):
    """Once an edge makes the second coordinate a dimension, the first two states differ in it."""
    f = np.array([[1, -1e-9, -1e9], [1, 1e-9, -1e9], [1, -1e-9, 2e9], [1, 0, 1e9]])
    protection = dphmm.protect(dphmm.PolicyGraph(4), f, method)
    assert dphmm.exposed_states(protection.policy, f, protection.hull).size == 0
    assert dphmm.exposed_states(protection.policy, f).size == 0
    assert len(protection.added_edges) == protection.policy.n_edges > 1
