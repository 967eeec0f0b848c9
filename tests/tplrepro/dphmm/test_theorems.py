"""What [5] says follows from its definitions: Example 5.3, composition, other adversaries, the
attack on LocalDP."""

from itertools import pairwise

import numpy as np
import pytest

from experiments.dphmm.local_mechanism import LocalMechanism
from experiments.dphmm.running_example import (
    ANSWERS,
    ATTACKED_EDGES,
    COUNTS,
    PATIENT_EDGES,
    TRANSITIONS,
)
from tests.tplrepro.dphmm.policies import START, F, categorical, linear_norm, running_example
from tplrepro import dphmm
from tplrepro.markov.filtering import ImpossibleOutputError


def test_the_running_example_is_that_of_the_paper():
    assert ANSWERS.T.tolist() == [[1, 2, 3, 0, 4, 1], [0, 1, 0, 1, 2, 2]]
    assert TRANSITIONS.sum(axis=1) == pytest.approx(np.ones(6))
    for sequence in ([0, 1, 4], [0, 3, 4], [0, 1, 2]):  # possible, says the introduction
        assert all(TRANSITIONS[a, b] > 0 for a, b in pairwise(sequence))
    assert np.flatnonzero(TRANSITIONS[1]).tolist() == [1, 2, 4]  # the constraint of Example 5.2


def test_the_hull_and_the_noise_of_example_5_3_are_as_printed_and_laplace_protects():
    G = dphmm.PolicyGraph.from_edges(6, PATIENT_EDGES)
    K = dphmm.sensitivity_hull(G, COUNTS)
    assert {tuple(v) for v in K.vertices.tolist()} == {(1, 0), (-1, 0), (1, -1), (-1, 1)}
    assert K.norm(COUNTS) == pytest.approx(np.array([1, 0, 1, 2, 1, 2]))
    assert dphmm.l1_sensitivity(G, COUNTS) == 2
    # With Laplace noise s_6 is protected, and so is s_5: their records change the counts by 1, at
    # most S = 2.
    laplace = dphmm.LaplaceMechanism(G, COUNTS, 0.7)
    assert (laplace.body.norm(COUNTS) <= 1).all()
    assert dphmm.degree_of_protection(G, COUNTS, laplace.body).tolist() == [6] * 6


def test_several_queries_lose_no_more_than_the_sums_of_theorem_7_1():
    # Two answers about one state: losses between connected states stay within the sum of the
    # budgets, and those between any two possible states within the sum of the constrained ones.
    other = F[:, ::-1] ** 2
    policies = [dphmm.protect(categorical(), f).policy for f in (F, other)]
    first, second = map(dphmm.KNormMechanism, policies, (F, other), (0.5, 0.2))
    bound = 0.5 * dphmm.constrained_dp_factor(first.policy, F) + 0.2 * dphmm.constrained_dp_factor(
        second.policy, other
    )
    rng = np.random.default_rng(0)
    for state in range(6):
        total = first.log_density(first.sample(F[state], rng=rng), F)
        total = total + second.log_density(second.sample(other[state], rng=rng), other)
        assert all(abs(total[i] - total[j]) <= 0.7 for i, j in categorical().edges)
        assert np.ptp(total) <= bound


def test_all_possible_sequences_lose_no_more_than_the_sum_of_theorem_7_2():
    steps = list(running_example([1, 4, 2], epsilon=0.6))
    # The log-density of the whole release under each possible sequence; sums, since noise is drawn
    # afresh each time.
    totals = []
    for path in np.ndindex(6, 6, 6):
        if START[path[0]] * TRANSITIONS[path[0], path[1]] * TRANSITIONS[path[1], path[2]] > 0:
            totals.append(
                sum(s.mechanism.log_density(s.z, F[i]) for s, i in zip(steps, path, strict=True))
            )
    assert len(totals) > 10
    assert np.ptp(totals) <= sum(step.constrained_epsilon for step in steps)


def test_theorem_7_1_needs_one_state_that_hides_an_exposed_one_in_every_query():
    # s_5 is near s_2 in the first query and near s_4 in the second. Made for each query by itself,
    # the graphs leave no state that is within the sum of the budgets of s_5.
    first, second = (
        np.array([[0.0], [0.1], [9], [9.1], [1]]),
        np.array([[9.0], [9.1], [0], [0.1], [1]]),
    )
    G = dphmm.PolicyGraph.from_edges(5, [(0, 1), (2, 3)])

    def least_loss(*graphs):
        pairs = list(zip(graphs, (first, second), strict=True))
        norms = sum(0.5 * dphmm.sensitivity_hull(graph, f).norm(f - f[4]) for graph, f in pairs)
        return np.min(norms[:4])

    assert least_loss(*(dphmm.protectable_graph(G, f) for f in (first, second))) > 4
    joint = dphmm.protectable_graph(G, np.hstack([first, second]))
    assert least_loss(joint, joint) <= 1


def _against_adversary(possible, adversary_states):
    """Noise for the constraint C against an adversary with constraint C^A: exposed states and
    broken edges of hers."""
    hull = dphmm.protect(categorical().constrain(possible), F).hull
    theirs = categorical().constrain(adversary_states)
    broken = [edge for edge in theirs.edge_array.tolist() if hull.norm(F[edge[0]] - F[edge[1]]) > 1]
    return (
        dphmm.exposed_states(theirs, F, hull).tolist(),
        broken,
        dphmm.constrained_dp_factor(theirs, F, hull),
    )


def test_case_1_of_section_11_6_needs_a_condition():
    # C = {s_2..s_6} needs no more edges. The adversary rules out all but s_3 and s_5, whose answers
    # differ by (1, 2), outside K: section 11.6 says that DPHMM still holds, but by Definition 4.4
    # it does not.
    C = range(1, 6)
    assert dphmm.sensitivity_hull(categorical().constrain(C), F).norm([1, 2]) > 1
    assert _against_adversary(C, [2, 4])[:2] == ([2, 4], [])
    assert _against_adversary(C, [1, 2, 3])[:2] == ([], [])
    assert _against_adversary([1, 2, 4], [1, 2, 4])[:2] == ([], [])


def test_case_2_of_section_11_6_exposes_states_that_the_mechanism_held_impossible():
    # Only s_2 and s_3 were held possible: noise along their line. The adversary also considers s_4,
    # s_5 and s_6.
    _, broken, factor = _against_adversary([1, 2], [1, 2, 3, 4, 5])
    assert broken == [[3, 4], [3, 5], [4, 5]]
    assert factor == np.inf


def test_the_attack_of_example_11_2_finds_the_state_under_local_noise_alone():
    G = dphmm.PolicyGraph.from_edges(6, ATTACKED_EDGES).constrain([3, 4, 5])
    local = LocalMechanism(G, F, epsilon=1.0)
    prior = np.array([0, 0, 0, 1, 1, 1]) / 3
    rng = np.random.default_rng(0)
    assert [local.mechanisms[s].hull.dimension for s in (3, 4, 5)] == [1, 1, 2]
    for state in [3, 4, 5] * 20:
        assert local.posterior(local.sample(state, rng=rng), prior)[state] == 1
    # DPHMM on the same graph hides them.
    steps = dphmm.release([3], G, F, 1.0, np.eye(6), prior, rng=rng)
    assert next(steps).posterior[3:].max() < 0.9
    with pytest.raises(ValueError, match="must be possible, found 0"):
        local.sample(0, rng=rng)
    for z in (local.sample(5, rng=rng), [50.0, 0.0]):
        with pytest.raises(ImpossibleOutputError):
            local.posterior(z, [0, 0, 0, 0.5, 0.5, 0])


def test_laplace_noise_fitted_to_the_true_neighbourhood_is_attacked_by_its_scale():
    # s_1 - s_2 - s_3 on a line: s_1's neighbourhood has sensitivity 1, s_2's has 4. Far out the
    # wider noise is likelier beyond every bound, so epsilon-LocalDP bounds no loss between
    # connected states.
    f, G = [0.0, 1.0, 4.0], dphmm.PolicyGraph.from_edges(3, [(0, 1), (1, 2)])
    local = LocalMechanism(G, f, 1.0, mechanism="laplace")
    for state, scale in ((0, 1), (1, 4), (2, 3)):
        z = 2.5
        density = -abs(z - f[state]) / scale - np.log(2 * scale)
        assert local.log_likelihood([z])[state] == pytest.approx(density)
    losses = [np.subtract(*local.log_likelihood([z])[[1, 0]]) for z in (-4.0, -40.0, -400.0)]
    assert losses == sorted(losses)
    assert losses[0] > 1
    assert losses[-1] > 290
    # DPHMM with Laplace noise on the same graph keeps the bound everywhere.
    uniform = dphmm.LaplaceMechanism(G, f, 1.0)
    assert abs(uniform.log_density(-400.0, 0.0) - uniform.log_density(-400.0, 1.0)) <= 1
    # On average the adversary knows more than under DPHMM: the mean probability of the true state.
    rng, prior = np.random.default_rng(0), np.full(3, 1 / 3)
    named = [
        [local.posterior(local.sample(s, rng=rng), prior)[s] for s in (0, 1, 2)] for _ in range(60)
    ]
    assert np.mean(named) > 0.4
    # States with equal answers need no noise, and Laplace's is none then.
    same = LocalMechanism(
        dphmm.PolicyGraph.from_edges(4, [(0, 1), (2, 3)]), [2.0, 2, 5, 5], 1.0, "laplace"
    )
    assert same.posterior([2.0], np.full(4, 0.25)).tolist() == [0.5, 0.5, 0, 0]


def test_transition_protection_holds_after_an_exposed_state_only_if_it_has_two_successors():
    """Section 4.2, of G_trs: "even if the true state were exposed, the next one would still be
    protected"."""
    steps = np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [1.0, 0.0, 0.0]])
    graph = dphmm.PolicyGraph.transition(steps)
    for state, exposed in ((0, []), (1, []), (2, [0])):
        after = graph.constrain(np.flatnonzero(steps[state]))
        assert dphmm.exposed_states(after, np.eye(3)[:, :2]).tolist() == exposed


def test_complete_graphs_are_protectable():
    rng = np.random.default_rng(0)
    for n in (2, 5, 20):
        complete = dphmm.PolicyGraph.complete(n)
        answers = rng.normal(size=(n, 2))
        assert dphmm.exposed_states(complete, answers).size == 0
        hull = dphmm.sensitivity_hull(complete, answers)
        assert dphmm.degree_of_protection(complete, answers, hull).tolist() == [n] * n
        # by linear programming, from the edges
        farthest = answers[np.linalg.norm(answers - answers[0], axis=1).argmax()]
        assert linear_norm(complete, answers, farthest - answers[0]) <= 1 + 1e-7
