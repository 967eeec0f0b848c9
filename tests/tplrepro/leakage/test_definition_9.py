"""Composition, w-event and user level against Definition 9 of [1], by enumeration: the largest log
ratio of the probabilities of outputs given two series of states, over all outputs and all pairs of
series that can happen. Each probability is a sum over whole series of states, by the law of the
chain; nothing is taken from the package but the backward matrices of Bayes' rule.
"""

from functools import partial
from itertools import product
from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tplfrontier as tf
import tplrepro as tpl
from tests.oracles import exhaustive_leakage


def by_definition(outputs, law, steps, first, last):
    """The largest log ratio of Pr(o | l_first..l_last) of two such series; `outputs[t]` (k, n) are
    likelihood vectors, `law` (n,) that of the first state, `steps` the matrices of the steps."""
    T, n = len(outputs), law.size
    probabilities, told = {}, {}
    for path in product(range(n), repeat=T):
        probability = law[path[0]]
        for t in range(T - 1):
            probability *= steps[t][path[t], path[t + 1]]
        if probability == 0.0:
            continue
        likelihood = np.ones(1)
        for t in range(T):  # of every series of outputs
            likelihood = np.multiply.outer(likelihood, outputs[t][:, path[t]]).ravel()
        window = path[first : last + 1]
        probabilities[window] = probabilities.get(window, 0.0) + probability
        told[window] = told.get(window, 0.0) + probability * likelihood
    given = np.array([told[window] / probabilities[window] for window in told])
    return log((given[:, None] / given[None]).max())


def vertices(n, epsilon):
    """The likelihood vectors of outputs of the worst epsilon-DP mechanism."""
    return np.exp(epsilon * np.array(list(product([0.0, 1.0], repeat=n))))


def both_sides(law, forward, horizon):
    """The matrices of each step: backward by Bayes' rule, and forward."""
    backward = []
    for _ in range(horizon - 1):
        backward.append(tpl.TransitionMatrix(forward).reverse(law))
        law = law @ forward
    return backward, [forward] * (horizon - 1)


@st.composite
def chains(draw):
    """A law without zeros and a matrix, with zeros in some."""
    n = draw(st.integers(2, 3))
    horizon = draw(st.integers(2, {2: 4, 3: 3}[n]))
    weights = st.lists(st.sampled_from([0.0, 0.1, 0.5, 1.0, 3.0]), min_size=n, max_size=n)
    rows = draw(st.lists(weights.filter(any), min_size=n, max_size=n))
    law = draw(st.lists(st.floats(0.1, 1.0), min_size=n, max_size=n))
    forward = np.array(rows)
    epsilons = draw(st.lists(st.floats(0.05, 2.0), min_size=horizon, max_size=horizon))
    return (
        np.array(law) / np.sum(law),
        forward / forward.sum(axis=1, keepdims=True),
        np.array(epsilons),
    )


@given(chains())
@settings(max_examples=60, deadline=None)
def test_exact_composition_is_definition_9(chain):
    law, forward, epsilons = chain
    T = epsilons.size
    reached = law @ np.linalg.matrix_power(forward, T - 1)
    if (reached == 0.0).any() or any(
        (law @ np.linalg.matrix_power(forward, t) == 0.0).any() for t in range(1, T)
    ):
        return  # a state that cannot happen has no backward row
    backward, steps = both_sides(law, forward, T)
    r = tpl.exact_leakage(epsilons, backward, steps)
    bound = tpl.temporal_privacy_leakage(epsilons, backward, steps)
    outputs = [vertices(law.size, epsilon) for epsilon in epsilons]
    for first in range(T):
        for last in range(first, T):
            expected = by_definition(outputs, law, steps, first, last)
            assert r.composed(first, last) == pytest.approx(expected, rel=1e-9)
            # Theorem 3: the sum is an upper bound
            assert expected <= bound.composed(first, last) * (1 + 1e-12)
    assert r.user_level == pytest.approx(by_definition(outputs, law, steps, 0, T - 1), rel=1e-9)
    assert r.user_level <= bound.user_level * (1 + 1e-12)
    for w in range(1, T + 1):
        windows = [r.composed(first, first + w - 1) for first in range(T - w + 1)]
        assert r.w_event(w) == max(windows) <= bound.w_event(w) * (1 + 1e-12)


def test_one_more_release_raises_the_forward_leakage_of_all_before():
    """Definition 7 of [1] over all outputs. With two states that mostly stay Eq. (15) is exact."""
    forward = np.array([[0.8, 0.2], [0.3, 0.7]])
    epsilon = 0.4
    shorter = np.zeros(0)
    for horizon in range(1, 7):
        outputs = [vertices(2, epsilon)] * horizon
        steps = [forward] * (horizon - 1)
        found = exhaustive_leakage(outputs, [None] * (horizon - 1), steps)[1]
        assert (found[: horizon - 1] > shorter).all()
        bound = tpl.temporal_privacy_leakage([epsilon] * horizon, None, forward)
        assert bound.fpl == pytest.approx(found, rel=1e-9)
        shorter = found


@pytest.mark.parametrize("seed", range(5))
def test_the_user_level_is_the_sum_of_budgets_where_every_series_can_happen(seed):
    """Corollary 1 of [1]."""
    rng = np.random.default_rng(seed)
    epsilons = rng.uniform(0.1, 1.0, 3)
    forward = rng.dirichlet([1.0, 1.0], 2)
    law = np.array([0.3, 0.7])
    outputs = [vertices(2, epsilon) for epsilon in epsilons]
    found = by_definition(outputs, law, [forward] * 2, 0, 2)
    assert found == pytest.approx(epsilons.sum(), rel=1e-12)


def test_the_user_level_is_less_where_series_cannot_happen():
    """Everybody is in the first state from the second time on: Corollary 1 holds as a bound."""
    law, forward = np.array([0.5, 0.5]), np.array([[1.0, 0.0], [1.0, 0.0]])
    outputs = [vertices(2, 1.0)] * 3
    assert by_definition(outputs, law, [forward] * 2, 0, 2) == pytest.approx(1.0, rel=1e-12)
    r = tpl.exact_leakage(1.0, None, forward, horizon=3)
    assert (r.user_level, r.composed(1, 2), r.w_event(2)) == (1.0, 0.0, 1.0)
    assert tpl.temporal_privacy_leakage(1.0, None, forward, horizon=3).user_level == 3.0
    # by the backward matrix everybody was in the first state until the last time but one
    r = tpl.exact_leakage(1.0, forward, None, horizon=3)
    assert (r.user_level, r.composed(0, 1), r.w_event(2)) == (1.0, 0.0, 1.0)


def test_independent_releases_add_up():
    """Theorem 4 of [1], and Table 2 for independent data: epsilon, w epsilon, T epsilon."""
    epsilons = np.array([0.3, 0.5, 0.2, 0.4])
    law = np.array([0.3, 0.7])
    independent = np.tile(law, (2, 1))
    outputs = [vertices(2, epsilon) for epsilon in epsilons]
    for first in range(4):
        for last in range(first, 4):
            found = by_definition(outputs, law, [independent] * 3, first, last)
            added = epsilons[first : last + 1].sum()
            assert found == pytest.approx(added, rel=1e-12)
            nobody = tpl.temporal_privacy_leakage(epsilons, None, None)
            assert nobody.composed(first, last) == pytest.approx(added, rel=1e-12)


@pytest.mark.parametrize("stay", [0.6, 0.9])
def test_levels_of_table_2_lie_in_order(stay):
    """Event level, w-event and user level of a moderate correlation, by the definition."""
    law, forward = np.array([0.5, 0.5]), np.array([[stay, 1 - stay], [1 - stay, stay]])
    epsilon, T = 0.5, 4
    outputs = [vertices(2, epsilon)] * T
    steps = [forward] * (T - 1)
    level = [
        max(by_definition(outputs, law, steps, first, first + w - 1) for first in range(T - w + 1))
        for w in (1, 2, T)
    ]
    assert epsilon < level[0] < level[1] < level[2] == pytest.approx(T * epsilon, rel=1e-12)
    backward, _ = both_sides(law, forward, T)
    bound = tpl.temporal_privacy_leakage([epsilon] * T, backward, forward)
    # two states with p >= q: the recursion is exact
    assert [bound.max(), bound.w_event(2), bound.user_level] == pytest.approx(level, rel=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_pufferfish_on_a_chain_is_the_temporal_leakage(seed):
    """Section 3.4 of [1]: the secrets are the states at a time, and every pair is discriminative.

    Pufferfish takes the joint law of the chain, Definition 5 the adversary's two matrices.
    """
    rng = np.random.default_rng(seed)
    T = 4
    law = rng.dirichlet(np.ones(2))
    forward = rng.dirichlet(np.ones(2), 2)
    epsilons = rng.uniform(0.1, 1.0, T)
    outputs = [vertices(2, epsilon) for epsilon in epsilons]
    backward, steps = both_sides(law, forward, T)
    pufferfish = [by_definition(outputs, law, steps, t, t) for t in range(T)]
    assert pufferfish == pytest.approx(exhaustive_leakage(outputs, backward, steps)[2], rel=1e-9)
    assert pufferfish == pytest.approx(tpl.exact_leakage(epsilons, backward, steps).tpl, rel=1e-9)
    bound = tpl.temporal_privacy_leakage(epsilons, backward, steps)
    assert (pufferfish <= bound.tpl * (1 + 1e-12)).all()
    # independent tuples: DP
    independent = [by_definition(outputs, law, [np.tile(law, (2, 1))] * 3, t, t) for t in range(T)]
    assert independent == pytest.approx(epsilons, rel=1e-12)


#: Backward and forward matrices of two states that rather stay: the recursion is exact.
PAIRS = [
    (np.array([[0.7, 0.3], [0.1, 0.9]]), np.array([[0.9, 0.1], [0.4, 0.6]])),
    (np.array([[0.6, 0.4], [0.3, 0.7]]), np.array([[0.8, 0.2], [0.1, 0.9]])),
    (np.array([[0.55, 0.45], [0.45, 0.55]]), np.array([[0.7, 0.3], [0.3, 0.7]])),
]


def enumerated_tpl(epsilons, backward, forward):
    """TPL by Definition 5 over all outputs of the worst mechanism for two states."""
    outputs = [vertices(2, epsilon) for epsilon in epsilons]
    between = len(epsilons) - 1
    return exhaustive_leakage(outputs, [backward] * between, [forward] * between)[2]


def test_the_largest_leakage_over_a_set_of_matrices_is_that_of_the_recursions():
    """Section 3.5 of [1]; budgets for the set keep a level under each of its matrices."""
    epsilons = np.array([0.5, 0.2, 0.4, 0.3])
    largest = max(enumerated_tpl(epsilons, *pair).max() for pair in PAIRS)
    recursions = [tpl.temporal_privacy_leakage(epsilons, *pair).max() for pair in PAIRS]
    assert max(recursions) == pytest.approx(largest, rel=1e-9)
    assert len(set(recursions)) == len(PAIRS)
    allocate = partial(tpl.allocate_by_quantification, 1.0, horizon=4)
    budgets = tf.allocate_for_several(allocate, PAIRS)
    assert max(enumerated_tpl(budgets, *pair).max() for pair in PAIRS) <= 1.0 + 1e-12


def test_personal_budgets_keep_each_user_at_her_own_level():
    """Section 3.5 of [1]: personalised DP with the budgets of each user's level and matrices."""
    levels = [0.5, 1.0, 2.0]
    budgets = [
        tpl.allocate_by_quantification(level, *pair, horizon=4)
        for level, pair in zip(levels, PAIRS, strict=True)
    ]
    for level, own, pair in zip(levels, budgets, PAIRS, strict=True):
        largest = enumerated_tpl(own, *pair).max()
        assert largest == pytest.approx(level, rel=1e-6)
        assert largest <= level * (1 + 1e-12)
    # the most generous budgets would not do for the first user
    assert enumerated_tpl(budgets[-1], *PAIRS[0]).max() > levels[0]
