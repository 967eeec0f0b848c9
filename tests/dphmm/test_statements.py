from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.dphmm.policies import F, categorical, random_policy
from tplrepro.dphmm import (
    ImpossibleReleaseError,
    KNormMechanism,
    LaplaceMechanism,
    LocalMechanism,
    NoPrivacyError,
    PolicyGraph,
    PrivacyStatement,
    against_adversary,
    compose_queries,
    compose_times,
    constrained_dp_factor,
    cross_polytope,
    degree_of_protection,
    existence_factors,
    l1_sensitivity,
    protectable_graph,
    release,
    sensitivity_hull,
)
from tplrepro.dphmm.running_example import ANSWERS, ATTACKED_EDGES, COUNTS, PATIENT_EDGES, TRANSITIONS


def test_the_running_example_is_that_of_the_paper():
    assert ANSWERS.T.tolist() == [[1, 2, 3, 0, 4, 1], [0, 1, 0, 1, 2, 2]]
    assert TRANSITIONS.sum(axis=1) == pytest.approx(np.ones(6))
    for sequence in ([0, 1, 4], [0, 3, 4], [0, 1, 2]):  # possible, says the introduction
        assert all(TRANSITIONS[a, b] > 0 for a, b in pairwise(sequence))
    assert np.flatnonzero(TRANSITIONS[1]).tolist() == [1, 2, 4]  # the constraint of Example 5.2


def test_example_5_3():
    G = PolicyGraph.from_edges(6, PATIENT_EDGES)
    K = sensitivity_hull(G, COUNTS)
    assert {tuple(v) for v in K.vertices.tolist()} == {(1, 0), (-1, 0), (1, -1), (-1, 1)}
    assert existence_factors(K, COUNTS) == pytest.approx(np.array([1, 0, 1, 2, 1, 2]))
    assert l1_sensitivity(G, COUNTS) == 2
    # By densities: how much likelier a value can be with the record than without, epsilon = 0.7.
    mechanism = KNormMechanism(G, COUNTS, 0.7)
    database = np.array([10.0, 20.0])
    rng = np.random.default_rng(0)
    z = np.vstack([database + COUNTS, mechanism.sample(database, 500, rng)])
    for record, multiple in zip(COUNTS, [1, 0, 1, 2, 1, 2], strict=True):
        loss = mechanism.log_density(z, database + record) - mechanism.log_density(z, database)
        assert loss.max() == pytest.approx(0.7 * multiple, abs=1e-9)
    # With Laplace noise s_6 is protected, and so is s_5: their records change the counts by 1, at most S = 2.
    laplace = LaplaceMechanism(G, COUNTS, 0.7)
    assert (existence_factors(laplace.body, COUNTS) <= 1).all()


@given(st.integers(0, 100_000), st.integers(1, 3), st.booleans())
@settings(max_examples=40)
def test_the_constrained_factor_is_the_largest_loss(seed, d, whole):
    rng = np.random.default_rng(seed)
    policy, f = random_policy(rng, 8, d, whole=whole)
    policy = policy.constrain([*policy.edge_array[0], *rng.permutation(8)[:4]])
    factor = constrained_dp_factor(policy, f)
    possible = policy.possible
    norms = sensitivity_hull(policy, f).pairwise_norms(f[possible], f[possible])
    assert factor == pytest.approx(norms.max(), rel=1e-9)
    mechanism = KNormMechanism(policy, f, 1.3)
    at_answers = mechanism.log_density(f[possible][:, None], f[possible])
    losses = np.diag(at_answers)[:, None] - at_answers
    assert losses.max() == pytest.approx(1.3 * factor, rel=1e-9)


def test_a_flat_hull_tells_some_states_apart():
    assert constrained_dp_factor(categorical().constrain([1, 2, 4]), F) == np.inf


def test_statements_read_well():
    statement = PrivacyStatement(0.5, 3.0, categorical())
    assert statement.constrained_epsilon == 1.5
    assert str(statement) == "{0.5, G, C}-DPHMM and {1.5, G, C}-constrained differential privacy, |C| = 6"


def test_theorem_7_1_several_queries():
    G = protectable_graph(categorical(), F)
    first = PrivacyStatement(0.5, constrained_dp_factor(G, F), G)
    other = protectable_graph(categorical(), F[:, ::-1] ** 2)
    second = PrivacyStatement(0.2, constrained_dp_factor(other, F[:, ::-1] ** 2), other)
    epsilon, constrained = compose_queries([first, second])
    assert epsilon == pytest.approx(0.7)
    assert constrained == pytest.approx(first.constrained_epsilon + second.constrained_epsilon)
    with pytest.raises(ValueError, match="same possible states, found 6 and 2"):
        compose_queries([first, PrivacyStatement(1.0, 1.0, categorical().constrain([1, 2]))])
    with pytest.raises(ValueError, match="at least one statement"):
        compose_queries([])


def test_theorem_7_2_on_all_possible_sequences():
    start = np.array([0, 1, 1, 0, 1, 0]) / 3
    steps = list(release([1, 4, 2], categorical(), F, 0.6, TRANSITIONS, start, rng=np.random.default_rng(8)))
    bound = compose_times(step.statement for step in steps)
    assert bound == pytest.approx(sum(step.statement.constrained_epsilon for step in steps))
    # The log-density of the whole release under each possible sequence; sums, since noise is drawn afresh each time.
    totals = []
    for path in np.ndindex(6, 6, 6):
        if start[path[0]] * TRANSITIONS[path[0], path[1]] * TRANSITIONS[path[1], path[2]] > 0:
            totals.append(sum(s.mechanism.log_density(s.z, F[i]) for s, i in zip(steps, path, strict=True)))
    assert len(totals) > 10
    assert np.ptp(totals) <= bound
    with pytest.raises(ValueError, match="at least one statement"):
        compose_times([])


def _released(possible):
    G = protectable_graph(categorical().constrain(possible), F)
    return sensitivity_hull(G, F)


def test_an_adversary_with_the_same_constraint():
    C = [1, 2, 4]
    statement = against_adversary(protectable_graph(categorical().constrain(C), F), F, _released(C), 0.5, C, C)
    assert (statement.relation, statement.holds, statement.epsilon) == ("equal", True, 0.5)
    assert statement.constrained_epsilon == pytest.approx(
        0.5 * constrained_dp_factor(categorical().constrain(C), F, _released(C))
    )


def test_case_1_needs_a_condition():
    # C = {s_2..s_6} needs no more edges. The adversary rules out all but s_3 and s_5, whose answers differ by (1, 2),
    # outside K: section 11.6 says that DPHMM still holds, but by Definition 4.4 it does not.
    C = [1, 2, 3, 4, 5]
    assert _released(C).norm([1, 2]) > 1
    against = against_adversary(categorical(), F, _released(C), 1.0, C, [2, 4])
    assert against.relation == "narrower"
    assert against.exposed.tolist() == [2, 4]
    assert not against.holds
    assert against_adversary(categorical(), F, _released(C), 1.0, C, [1, 2, 3]).holds


def test_case_2_exposes_states_that_the_mechanism_held_impossible():
    # Only s_2 and s_3 were held possible: noise along their line. The adversary also considers s_4, s_5 and s_6.
    against = against_adversary(categorical(), F, _released([1, 2]), 1.0, [1, 2], [1, 2, 3, 4, 5])
    assert against.relation == "wider"
    assert not against.holds
    assert against.broken_edges.tolist() == [[3, 4], [3, 5], [4, 5]]
    assert against.constrained_epsilon == np.inf
    assert against_adversary(categorical(), F, _released([1, 2]), 1.0, [1, 2], [1, 4]).relation == "other"


def test_an_adversary_who_knows_the_state():
    with pytest.raises(NoPrivacyError, match="found only state 4"):
        against_adversary(categorical(), F, _released([1, 2, 4]), 1.0, [1, 2, 4], [4])


def test_example_11_2_the_attack_on_local_differential_privacy():
    G = PolicyGraph.from_edges(6, ATTACKED_EDGES).constrain([3, 4, 5])
    local = LocalMechanism(G, F, epsilon=1.0)
    prior = np.array([0, 0, 0, 1, 1, 1]) / 3
    rng = np.random.default_rng(0)
    assert local.mechanisms[3].hull.norm([1, 1]) == pytest.approx(1)  # Conv(+-(1, 1)), as printed
    assert [local.mechanisms[s].hull.dimension for s in (3, 4, 5)] == [1, 1, 2]
    for state in (3, 4, 5):
        for _ in range(100):
            z = local.sample(state, rng)
            assert local.explained_by(z).tolist() == [state]
            assert local.posterior(z, prior)[state] == 1
    # DPHMM on the same graph hides them.
    steps = release([3], G, F, 1.0, np.eye(6), prior, rng=rng)
    assert next(steps).posterior[3:].max() < 0.9
    with pytest.raises(ValueError, match="must be possible, found 0"):
        local.sample(0, rng)
    with pytest.raises(ImpossibleReleaseError, match="only \\[5\\]"):
        local.posterior(local.sample(5, rng), [0, 0, 0, 0.5, 0.5, 0])


def test_a_local_mechanism_that_fills_the_plane_everywhere_compares_densities():
    G = PolicyGraph.complete(6)
    local = LocalMechanism(G, F, epsilon=1.0)
    z = local.sample(1, np.random.default_rng(0))
    assert local.explained_by(z).tolist() == list(range(6))
    weights = np.exp([local.log_density(z, s) for s in range(6)])
    assert local.posterior(z, np.full(6, 1 / 6)) == pytest.approx(weights / weights.sum())
    flat = LocalMechanism(PolicyGraph.from_edges(2, [(0, 1)]), F[:2], 1.0)
    with pytest.raises(ImpossibleReleaseError, match="zero under all"):
        flat.explained_by([50.0, 0.0])


def test_protection_by_laplace_noise_in_example_5_3():
    G = PolicyGraph.from_edges(6, PATIENT_EDGES)
    assert degree_of_protection(G, COUNTS, cross_polytope(2, 2.0)).tolist() == [6] * 6
