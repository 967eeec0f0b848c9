from itertools import count, pairwise, product

import numpy as np
import pytest

from experiments.dphmm.running_example import TRANSITIONS
from tests.tplrepro.dphmm.policies import START, F, categorical, pairwise_norms, running_example
from tplrepro import dphmm
from tplrepro.markov.filtering import forward_backward


def first_step(state, prior, **change):
    return next(running_example([state], transitions=np.eye(6), initial=prior, **change))


@pytest.mark.parametrize("mechanism", ["k-norm", "laplace", "planar isotropic"])
@pytest.mark.parametrize("method", ["greedy", "stepwise"])
def test_each_step_of_the_running_example_protects_all_possible_states(mechanism, method):
    states, draw = [1], np.random.default_rng(0)
    for _ in range(14):
        states.append(draw.choice(6, p=TRANSITIONS[states[-1]]))
    budgets = np.linspace(0.8, 1.1, 15)
    given = budgets.copy()
    steps = running_example(states, epsilon=given, mechanism=mechanism, method=method)
    given[:] = 9.0  # too late
    steps = list(steps)
    prior = np.array(START)
    for t, (step, state, epsilon) in enumerate(zip(steps, states, budgets, strict=True)):
        # Eq. (2): the Markov step, and Bayes' rule
        assert step.prior == pytest.approx(prior)
        weights = prior * np.exp(step.mechanism.log_density(step.z, F))
        assert step.posterior == pytest.approx(weights / weights.sum())
        prior = weights / weights.sum() @ TRANSITIONS
        assert (step.time, step.perturbed_state, step.mechanism.epsilon) == (t, state, epsilon)
        possible = np.flatnonzero(step.prior > 0)
        assert step.policy == categorical().constrain(possible).connect(step.added_edges)
        assert not dphmm.exposed_states(step.policy, F).size
        assert step.mechanism.hull.volume == pytest.approx(
            dphmm.sensitivity_hull(step.policy, F).volume
        )
        # {epsilon, G, C}-DPHMM at this value, and constrained DP between any two (Theorems 6.2 and
        # 6.3).
        log_density = step.mechanism.log_density(step.z, F)
        for i, j in step.policy.edge_array:
            assert abs(log_density[i] - log_density[j]) <= epsilon
        assert np.ptp(log_density[possible]) <= step.constrained_epsilon
        factor = dphmm.constrained_dp_factor(step.policy, F, step.mechanism.body)
        assert step.constrained_epsilon == pytest.approx(epsilon * factor)
    log_likelihoods = np.array([step.mechanism.log_density(step.z, F) for step in steps])
    inferred = forward_backward(log_likelihoods, TRANSITIONS, START)
    assert inferred.posteriors == pytest.approx(np.array([step.posterior for step in steps]))
    assert inferred.priors == pytest.approx(np.array([step.prior for step in steps]))


def test_the_baseline_replaces_states_outside_the_delta_location_set_by_the_nearest():
    prior = np.array([0.4, 0.3, 0.2, 0.06, 0.03, 0.01])
    # rounding does not decide which answer is nearest
    nearer = F + 1e-12 * np.outer(np.arange(6) == 2, [1, 1])
    for state, answers in product(range(6), (F, nearer)):
        options = {
            "policy": dphmm.PolicyGraph.complete(6),
            "answers": answers,
            "excluded_probability": 0.11,
        }
        step = first_step(state, prior, **options)
        assert step.policy == dphmm.PolicyGraph.complete(6).constrain(
            dphmm.delta_location_set(prior, 0.11)
        )
        assert dphmm.degree_of_protection(step.policy, F).tolist() == [3, 3, 3, 0, 0, 0]
        # f(s_4) = (0, 1) is nearest to f(s_1), f(s_5) = (4, 2) and f(s_6) = (1, 2) to f(s_2).
        assert step.perturbed_state == [0, 1, 2, 0, 1, 1][state]
        # The adversary's inference knows the rule: states with one surrogate keep their ratio.
        assert step.posterior[3] / step.posterior[0] == pytest.approx(prior[3] / prior[0])
        assert step.posterior[4] / step.posterior[5] == pytest.approx(3)


def test_states_stay_possible_however_unlikely_they_become():
    # The belief in the last state falls below e^-1000, which no float holds; by Definition 4.1 it
    # stays possible.
    chain = {"policy": dphmm.PolicyGraph.complete(3), "answers": np.arange(3.0)}
    steps = list(
        running_example([0] * 40, epsilon=50.0, transitions=np.eye(3), initial=[1 / 3] * 3, **chain)
    )
    assert all(step.policy.possible.tolist() == [0, 1, 2] for step in steps)
    assert steps[-1].log_posterior[2] < -1000
    # Where no other state is possible there is a named error, or the timestamp is skipped.
    with pytest.raises(dphmm.NoPrivacyError, match="found only state 0"):
        first_step(0, [1, 0, 0, 0, 0, 0])
    P = np.array([[0, 1, 0], [0.5, 0, 0.5], [0.5, 0, 0.5]])
    steps = list(running_example([0, 1, 2], transitions=P, initial=[1, 0, 0], skip=True, **chain))
    assert steps[:2] == [None, None]
    assert (steps[2].time, steps[2].prior.tolist()) == (2, [0.5, 0, 0.5])


def test_what_a_setting_keeps_changes_no_release_and_states_are_read_one_at_a_time():
    walk, even = [1, *np.random.default_rng(0).integers(6, size=11)], np.full((6, 6), 1 / 6)
    expected = [
        step.z.tolist()
        for step in running_example(walk, transitions=even, rng=np.random.default_rng(3))
    ]
    for kept in (128, 2, 0):
        setting = dphmm.DataRelease(categorical(), F, even, kept=kept)
        for _ in range(2):
            run = setting.series(walk, 1.0, START, rng=np.random.default_rng(3))
            assert [step.z.tolist() for step in run] == expected
    taken = []
    steps = running_example((taken.append(t) or 1 for t in count()), transitions=even)
    assert [next(steps).time, next(steps).time] == taken == [0, 1]


def test_a_chain_that_changes_over_time_gives_the_priors_of_the_filter():
    shift, stay = np.roll(np.eye(6), 1, axis=1), np.eye(6)
    mixed = (shift + stay) / 2
    steps = list(running_example([1, 2, 2, 3], transitions=[shift, stay, mixed]))
    priors = [step.prior for step in steps]
    for before, matrix, after in zip(steps[:-1], [shift, stay, mixed], priors[1:], strict=True):
        assert after == pytest.approx(before.posterior @ matrix)
    likelihoods = np.array([step.mechanism.log_density(step.z, F) for step in steps])
    assert forward_backward(likelihoods, [shift, stay, mixed], START).priors == pytest.approx(
        np.array(priors)
    )
    same = running_example([1, 2, 4], transitions=[TRANSITIONS] * 2)
    assert [s.z.tolist() for s in same] == [s.z.tolist() for s in running_example([1, 2, 4])]


#: The last state of each pair of states of the running example, by 6 times the earlier plus the
#: later.
LAST = np.tile(np.arange(6), 6)


def lift(policy):
    """A policy over pairs of states: edges between pairs whose last states `policy` connects."""
    return dphmm.PolicyGraph.from_edges(
        36, [(a, b) for a, b in product(range(36), repeat=2) if (LAST[a], LAST[b]) in policy.edges]
    )


def test_a_chain_of_order_2_is_released_as_one_over_pairs_of_states():
    rng = np.random.default_rng(2)
    law = rng.dirichlet(np.ones(6), (6, 6)) * (rng.random((6, 6, 6)) < 0.6) + 1e-3 * TRANSITIONS
    law /= law.sum(axis=2, keepdims=True)  # law[a, b, c] = Pr(c | a, b)
    first = np.outer(START, np.full(6, 1 / 6))  # of the first two states; the second is released
    over_pairs = np.zeros((36, 36))
    for a, b, c in product(range(6), repeat=3):
        over_pairs[6 * a + b, 6 * b + c] = law[a, b, c]
    walk = [1, 2]
    for _ in range(3):
        walk.append(int(rng.choice(6, p=law[walk[-2], walk[-1]])))
    pairs = [6 * a + b for a, b in pairwise(walk)]
    steps = list(
        running_example(
            pairs,
            policy=lift(categorical()),
            answers=F[LAST],
            transitions=over_pairs,
            initial=first.ravel(),
        )
    )
    # The law of all sequences so far, given what was released before, by enumeration.
    sequences = first
    for time, step in enumerate(steps):
        if time > 0:
            sequences = sequences[..., None] * law.reshape((1,) * (time - 1) + law.shape)
        expected = sequences.sum(axis=tuple(range(time + 1))) / sequences.sum()
        assert step.prior.reshape(6, 6).sum(axis=0) == pytest.approx(expected, rel=1e-9)
        log_density = step.mechanism.log_density(step.z, F[LAST])
        for i, j in categorical().constrain(np.flatnonzero(expected)).edges:
            assert abs(log_density[LAST == i][0] - log_density[LAST == j][0]) <= 1.0
        sequences = sequences * np.exp(log_density[:6])
    assert len(steps) == 4


def test_exposed_states_of_a_chain_of_order_2_are_sought_among_the_last_states():
    """Two pairs with one last state have one answer, and would count as hiding each other."""
    of_example_5_2 = categorical().constrain([1, 2, 4])
    assert dphmm.exposed_states(of_example_5_2, F).tolist() == [4]
    possible = [6 * 0 + 1, 6 * 0 + 2, 6 * 0 + 4, 6 * 1 + 4]
    prior = np.isin(np.arange(36), possible) / 4
    arguments = {"answers": F[LAST], "transitions": np.eye(36), "initial": prior}
    lifted = lift(categorical())
    assert not dphmm.exposed_states(lifted.constrain(possible), F[LAST]).size
    revealed = next(running_example([6 * 1 + 4], policy=lifted, **arguments))
    assert revealed.posterior[LAST != 4].max() == 0.0
    protectable = dphmm.protect(of_example_5_2, F).policy
    hidden = next(running_example([6 * 1 + 4], policy=lift(protectable), **arguments))
    assert not hidden.added_edges
    norms = pairwise_norms(hidden.mechanism.hull, F[[1, 2, 4]])
    assert (np.sort(norms, axis=1)[:, 1] <= 1 + 1e-9).all()  # Definition 4.4, for all outputs


def test_several_queries_at_a_timestamp_keep_the_sum_of_their_budgets():
    second = np.array([[0, 0], [1, 0], [1, 1], [0, 9], [5, 5], [1, 2]], dtype=float)
    queries, budgets = {"place": F, "load": second}, {"place": 0.6, "load": [0.3, 0.2, 0.1]}
    steps = list(
        running_example(
            [4, 2, 1], answers=queries, epsilon=budgets, transitions=np.full((6, 6), 1 / 6)
        )
    )
    assert [(step.time, step.query) for step in steps] == [
        (t, name) for t in range(3) for name in queries
    ]
    for first, other in zip(steps[::2], steps[1::2], strict=True):
        assert np.array_equal(other.log_prior, first.log_posterior)
        assert first.policy == other.policy
        spent = first.mechanism.epsilon + other.mechanism.epsilon
        assert [first.mechanism.epsilon, other.mechanism.epsilon] == [
            0.6,
            budgets["load"][first.time],
        ]
        possible = first.policy.possible
        # Definition 4.4 for both answers together: Theorem 7.1 on whatever is released.
        norms = sum(
            s.mechanism.epsilon * pairwise_norms(s.mechanism.hull, f)
            for s, f in ((first, F), (other, second))
        )
        for state in possible:
            assert np.sort(norms[state, possible])[1] <= spent * (1 + 1e-9)
        for i, j in first.policy.edge_array:
            assert norms[i, j] <= spent * (1 + 1e-9)
        log_density = sum(s.mechanism.log_density(s.z, f) for s, f in ((first, F), (other, second)))
        assert (
            np.ptp(log_density[possible]) <= first.constrained_epsilon + other.constrained_epsilon
        )
        expected = first.prior * np.exp(log_density)
        assert other.posterior == pytest.approx(expected / expected.sum())
    one = running_example([4, 2, 1], answers={"place": F}, epsilon={"place": 1.0})
    assert [s.z.tolist() for s in one] == [
        s.z.tolist() for s in running_example([4, 2, 1], epsilon=1.0)
    ]


def test_the_method_and_the_edges_insisted_on_reach_the_graph():
    bare = dphmm.PolicyGraph.from_edges(6, [])
    for method in ("greedy", "stepwise", "optimal"):
        step = first_step(2, np.full(6, 1 / 6), policy=bare, method=method, insisted=[(2, 5)])
        assert step.added_edges == dphmm.protect(bare, F, method, [(2, 5)]).added_edges
    # An iterator is read once, for all timestamps.
    steps = running_example(
        [2, 2], policy=bare, insisted=iter([(2, 5)]), transitions=np.full((6, 6), 1 / 6)
    )
    assert [(2, 5) in step.added_edges for step in list(steps)[1:]] == [True]


@pytest.mark.parametrize("unit", [1.0, 1e3, 1e9])
@pytest.mark.parametrize("mechanism", ["k-norm", "laplace"])
@pytest.mark.parametrize("method", ["greedy", "stepwise", "optimal"])
def test_no_query_is_answered_exactly_beside_one_of_far_larger_numbers(unit, mechanism, method):
    """A difference of latitudes is no rounding of milliseconds since 1970."""
    policy = dphmm.PolicyGraph.from_edges(3, [(0, 1)])
    time = (1_700_000_000 + np.array([0, 7200, 3600.0])) * unit
    queries = {"time": time, "latitude": [39.90, 39.90, 39.91]}
    releases = dphmm.release(
        [2],
        policy,
        queries,
        {"time": 0.1, "latitude": 0.1},
        np.full((3, 3), 1 / 3),
        np.full(3, 1 / 3),
        rng=1,
        mechanism=mechanism,
        method=method,
    )
    for released in releases:
        assert released.added_edges == [(0, 2)]
        assert released.posterior.max() < 0.99
        assert np.isfinite(released.constrained_epsilon)
