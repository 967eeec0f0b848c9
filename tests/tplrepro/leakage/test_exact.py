"""The exact leakage against all vertices of the boxes, 50 digits, sampled outputs, and what can be
proved about it."""

from itertools import pairwise, product

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tplfrontier as tf
import tplrepro as tpl
from tests.oracles import exhaustive_leakage
from tests.tplrepro.leakage.matrices import FORWARD, THREE, matrices
from tplfrontier.exact import finite_mechanism


def vertices(n, epsilon, released=None):
    """All vectors of lowest and highest likelihoods of the released states; (2^k, n)."""
    k = n if released is None else len(released)
    columns = range(n) if released is None else released
    width = 0.5 if k > 1 else 1.0
    x = np.ones((2**k, n))
    x[:, list(columns)] = np.exp(epsilon * width * np.array(list(product([-1, 1], repeat=k))))
    return x


def both(epsilons, *sides):
    return tpl.exact_leakage(epsilons, *sides), tpl.temporal_privacy_leakage(epsilons, *sides)


@st.composite
def cases(draw, longest=4):
    n, horizon = draw(st.integers(2, 3)), draw(st.integers(1, longest))
    epsilons = 10.0 ** np.array(
        draw(st.lists(st.floats(-2, 0.5), min_size=horizon, max_size=horizon))
    )
    # some of the steps are not known
    side = st.lists(matrices(n), min_size=horizon - 1, max_size=horizon - 1)
    backward, forward = (draw(side) for _ in range(2))
    # one matrix for all steps, or one for each
    return (
        epsilons,
        n,
        *(P[:1] * (horizon - 1) if draw(st.booleans()) else P for P in (backward, forward)),
    )


@settings(max_examples=60)
@given(cases(), st.data())
def test_exact_leakage_is_the_largest_over_all_sequences_of_vertices(case, data):
    """If the counts of all states are released, or of some of them."""
    epsilons, n, *sides = case
    n = n if any(P is not None for side in sides for P in side) else 2
    released = data.draw(st.none() | st.sets(st.integers(0, n - 1), min_size=1).map(sorted))
    r = tpl.exact_leakage(epsilons, *sides, released=released)
    outputs = [vertices(n, epsilon, released) for epsilon in epsilons]
    np.testing.assert_allclose(
        [r.bpl, r.fpl, r.tpl], exhaustive_leakage(outputs, *sides), 1e-11, 1e-13
    )
    assert (r.tpl <= tpl.exact_leakage(epsilons, *sides).tpl + 1e-12).all()


@pytest.mark.parametrize("epsilon", [1e-9, 1e-4, 0.3, 8.0])
def test_exact_leakage_agrees_with_fifty_digits(epsilon):
    """The ratio by exhaustion with mpmath: tiny budgets keep their digits, large ones do not
    overflow."""
    rng = np.random.default_rng(11)
    P = rng.dirichlet(np.full(3, 0.6), size=3)
    P[:, 2] = 1.0 - P[:, 0] - P[:, 1]
    value = tpl.exact_leakage([epsilon] * 3, backward=P, forward=None).bpl[2]
    with mpmath.workdps(50):
        high = mpmath.exp(mpmath.mpf(epsilon))
        rows = [[mpmath.mpf(float(p)) for p in row] for row in P]
        rows = [[p / mpmath.fsum(row) for p in row] for row in rows]
        largest = mpmath.mpf(0)
        for first, second in product(product([1, high], repeat=3), repeat=2):
            m = [x * mpmath.fdot(row, first) for x, row in zip(second, rows, strict=True)]
            told = [mpmath.fdot(row, m) for row in rows]
            largest = max(largest, mpmath.log(max(told) / min(told)))
        expected = largest + mpmath.mpf(epsilon)
        assert abs(value - expected) <= 1e-13 * expected


@pytest.mark.parametrize("n", [2, 3, 4])
def test_worst_mechanism_lists_the_same_vertices(n):
    """Two algorithms that share nothing: listing extreme messages, and fixing outputs from the last
    to the first."""
    rng = np.random.default_rng(n)
    backward, forward = rng.dirichlet(np.full(n, 0.4), size=(2, n))
    T = {2: 30, 3: 15, 4: 6}[n]
    listed = tf.mechanism_leakage(vertices(n, 0.8).T, backward, forward, horizon=T)
    direct = tpl.exact_leakage([0.8] * T, backward, forward)
    for name in ("epsilons", "bpl", "fpl", "tpl"):
        np.testing.assert_allclose(getattr(listed, name), getattr(direct, name), rtol=1e-11)


@settings(max_examples=40)
@given(cases(longest=7))
def test_exact_leakage_lies_between_the_budget_and_the_recursion(case):
    epsilons, _, *sides = case
    r, bound = both(epsilons, *sides)
    for name in ("bpl", "fpl", "tpl"):
        assert (getattr(r, name) <= getattr(bound, name) + 1e-11).all()
        assert (getattr(r, name) >= epsilons - 1e-12).all()
    assert (r.tpl <= r.bpl + r.fpl - epsilons + 1e-12).all()
    assert (r.tpl >= np.maximum(r.bpl, r.fpl) - 1e-12).all()
    np.testing.assert_allclose(r.bpl[:2], bound.bpl[:2], rtol=1e-11)
    np.testing.assert_allclose(r.fpl[-2:], bound.fpl[-2:], rtol=1e-11)
    assert r.w_event(len(epsilons)) <= r.user_level + 1e-10


def test_the_worst_outputs_attain_it_and_no_others_exceed_it():
    rng = np.random.default_rng(3)
    for _ in range(10):
        n, T = int(rng.integers(2, 6)), int(rng.integers(2, 8))
        epsilons = rng.uniform(0.1, 2.0, T)
        backward, forward = rng.dirichlet(np.full(n, 0.5), size=(2, n))
        r = tpl.exact_leakage(epsilons, backward, forward)
        for t in range(T):
            worst = tpl.worst_outputs(epsilons, backward, forward, time=t)
            assert worst.states == tuple(r.pairs[t])
            told = tf.measured_leakage(worst.high * epsilons[:, None], backward, forward)
            assert told.tpl[t] == pytest.approx(r.tpl[t], rel=1e-12)
        anything = tf.measured_leakage(
            rng.uniform(0, 1, (500, T, n)) * epsilons[:, None], backward, forward
        )
        for name in ("bpl", "fpl", "tpl"):
            assert (getattr(anything, name) <= getattr(r, name) + 1e-12).all()


@settings(max_examples=60)
@given(st.floats(0, 1), st.floats(0, 1), st.floats(0.05, 2.0))
def test_two_states_attain_the_recursion_if_the_determinant_is_not_negative(p, q, epsilon):
    low, high = sorted((p, q))
    P = np.array([[high, 1 - high], [low, 1 - low]])
    for known in (P, P[::-1]):  # exchanging the rows gives the determinant -det P
        r, bound = both([epsilon] * 8, known, known)
        if known is P or high + low == 1:
            np.testing.assert_allclose(r.tpl, bound.tpl, rtol=1e-9)
            np.testing.assert_allclose(r.bpl, bound.bpl, rtol=1e-9)
        elif high - low > 0.05 and abs(high + low - 1) > 0.05 and epsilon > 0.2:
            assert (r.bpl[2:] < bound.bpl[2:]).all()


@pytest.mark.parametrize("n", [2, 3, 6])
@pytest.mark.parametrize("s", [0.0, 0.01, 0.3])
@pytest.mark.parametrize("seed", [None, 4])
def test_smoothed_strongest_correlations_attain_the_bound(n, s, seed):
    P = tpl.smoothed(tpl.strongest(n, seed), s)
    r, bound = both([0.4] * 9, P.reverse(np.full(n, 1 / n)), P)
    np.testing.assert_allclose(r.tpl, bound.tpl, rtol=1e-11)
    if s == 0:
        np.testing.assert_allclose(r.tpl, 9 * 0.4, rtol=1e-12)


def test_an_identity_as_loss_function_need_not_leak_everything():
    """Two rows of disjoint supports make the recursion T epsilon, as if each step could have the
    vector that is high on one support and low on the other."""
    forward = tpl.TransitionMatrix.random(8, rng=np.random.default_rng(2019), zeros=0.6)
    backward = forward.reverse()
    assert tpl.PrivacyLossFunction(forward).is_identity
    r, bound = both([1.0] * 40, backward, forward)
    assert bound.tpl == pytest.approx([40.0] * 40)
    assert r.tpl.max() == pytest.approx(5.528, abs=1e-3)


def test_blocks_of_pairs_have_the_exact_leakage_of_single_pairs():
    P = np.random.default_rng(2).dirichlet(np.full(45, 0.3), size=45)  # 1,980 pairs, in two blocks
    r, bound = both([0.5] * 3, P, None)
    assert r.bpl[1] == pytest.approx(bound.bpl[1], rel=1e-12)
    worst = tpl.worst_outputs([0.5] * 3, P, None, time=2)
    assert tf.measured_leakage(worst.high * 0.5, P, None).tpl[2] == pytest.approx(
        r.tpl[2], rel=1e-12
    )


def assert_all_outputs(r, responses, *sides):
    each = ([P] * (len(responses) - 1) for P in sides)
    np.testing.assert_allclose(
        [r.bpl, r.fpl, r.tpl], exhaustive_leakage([x.T for x in responses], *each), rtol=1e-11
    )


@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize("kind", ["randomised response", "any", "near", "changing"])
def test_a_mechanism_leaks_the_largest_over_all_sequences_of_outputs(n, kind):
    rng = np.random.default_rng(n)
    T = 5
    backward, forward = rng.dirichlet(np.full(n, 0.4), size=(2, n))
    if kind == "changing":
        responses = [rng.dirichlet(np.ones(2 + t % 2), size=n) for t in range(T)]
        r = tf.mechanism_leakage(responses, backward, forward)
    else:
        response = (
            np.exp(1.3 * np.eye(n))
            if kind == "randomised response"
            else rng.dirichlet(np.ones(3), size=n)
        )
        if kind == "near":  # outputs that hardly differ
            change = 1e-9 * rng.random((n, 3))
            response = np.hstack((response, response * (1.0 + change), response * (1.0 - change)))
        responses = [response] * T
        r = tf.mechanism_leakage(response, backward, forward, horizon=T)
    assert_all_outputs(r, responses, backward, forward)
    worst = tpl.exact_leakage(r.epsilons, backward, forward)
    assert (r.tpl <= worst.tpl + 1e-11).all()


def test_messages_that_round_to_the_same_stay_apart():
    """Both of two messages round to (1, 0); the state never changes, so all outputs are about one
    state."""
    table = [[1, 1, 1], [1e-10, 1e-20, 1]]
    found = tf.mechanism_leakage(table, np.eye(2), np.eye(2), horizon=3)
    assert found.tpl == pytest.approx(np.full(3, 3 * np.log(1e20)))


def test_flat_sets_of_messages_and_unknown_sides_leak_what_all_outputs_do(monkeypatch):
    """Two equal rows put all messages in one plane, where Qhull finds no volume."""
    P = [[0.5, 0.3, 0.2], [0.5, 0.3, 0.2], [0.1, 0.1, 0.8]]
    for n, sides in ((3, (P, P)), (2, (FORWARD, None))):
        response = np.exp(np.eye(n))
        r = tf.mechanism_leakage(response, *sides, horizon=5)
        assert_all_outputs(r, [response] * 5, *sides)
    np.testing.assert_allclose(
        r.tpl, tpl.temporal_privacy_leakage([1.0] * 5, FORWARD, None).tpl, rtol=1e-12
    )
    monkeypatch.setattr(finite_mechanism, "MAX_MESSAGES", 5)
    with pytest.raises(ValueError, match="at most 5 messages at a time, found 3 times 3 outputs"):
        tf.mechanism_leakage(np.exp(np.eye(3)), THREE, None, horizon=3)


def test_leakage_is_that_of_a_sum_over_all_paths():
    """Pr(o | l_t) from the joint distribution of states and outputs; the backward matrix is the
    chain's own."""
    rng = np.random.default_rng(6)
    n, T = 3, 5
    initial = rng.dirichlet(np.ones(n))
    forward = tpl.TransitionMatrix(rng.dirichlet(np.ones(n), size=n), normalize=True)
    powers = [np.linalg.matrix_power(forward.probabilities, k) for k in range(T - 1)]
    backward = [forward.reverse(initial @ power) for power in powers]
    x = rng.uniform(0.1, 1.0, (T, n))
    joint = np.zeros((3, T, n))  # Pr(o, l_t) for the outputs up to t, from t on, and all
    marginal = np.zeros((T, n))
    for path in product(range(n), repeat=T):
        p = initial[path[0]] * np.prod([forward.probabilities[a, b] for a, b in pairwise(path)])
        seen = x[np.arange(T), list(path)]
        for t, state in enumerate(path):
            marginal[t, state] += p
            joint[:, t, state] += p * np.array([seen[: t + 1].prod(), seen[t:].prod(), seen.prod()])
    told = np.ptp(np.log(joint / marginal), axis=-1)
    r = tf.measured_leakage(np.log(x), backward, forward)
    for value, expected in zip((r.bpl, r.fpl, r.tpl), told, strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-12)


def test_runs_are_leading_axes_and_a_constant_added_at_each_time_changes_nothing():
    rng = np.random.default_rng(1)
    logs = rng.normal(size=(4, 5, 6, 3))
    P = rng.dirichlet(np.ones(3), size=3)
    r = tf.measured_leakage(logs, P, P)
    assert r.tpl.shape == (4, 5, 6)
    np.testing.assert_allclose(r.tpl[2, 3], tf.measured_leakage(logs[2, 3], P, P).tpl, rtol=1e-13)
    shifted = logs + rng.normal(size=(4, 5, 6, 1)) * 100
    np.testing.assert_allclose(tf.measured_leakage(shifted, P, P).tpl, r.tpl, rtol=1e-10)
