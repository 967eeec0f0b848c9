"""The exact leakage against all vertices of the boxes, 50 digits, sampled outputs, and what can be proved about it."""

from itertools import product

import mpmath
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import tplrepro as tpl
from tests.leakage.matrices import KINDS, random_matrix
from tplrepro.leakage import exact
from tplrepro.mechanisms import LaplaceNoise

SWAPPED = [[0.2, 0.8], [1.0, 0.0]]  # Fig. 3 of [1] with its columns exchanged
THREE = [[0.1, 0.1, 0.8], [0.2, 0.7, 0.1], [0.7, 0.2, 0.1]]


def vertices(n, epsilon, released=None):
    """All vectors of lowest and highest likelihoods of the released states; (2^k, n)."""
    k = n if released is None else len(released)
    columns = range(n) if released is None else released
    width = 0.5 if k > 1 else 1.0
    x = np.ones((2**k, n))
    x[:, list(columns)] = np.exp(epsilon * width * np.array(list(product([-1, 1], repeat=k))))
    return x


def brute_force(epsilons, backward, forward, released=None):
    """BPL, FPL and TPL over all sequences of vertices and all pairs; backward[t] and forward[t] join t and t + 1."""
    T, n = len(epsilons), len(next(P for P in [*backward, *forward] if P is not None))
    boxes = [vertices(n, epsilon, released) for epsilon in epsilons]

    def step(P, messages):
        return np.ones_like(messages) if P is None else messages @ np.asarray(P).T

    def all_messages(steps, boxes):
        messages = [np.ones((1, n))]
        for P, x in zip(steps, boxes, strict=False):
            messages.append(step(P, (messages[-1][:, None] * x).reshape(-1, n)))
        return messages

    past = all_messages(backward, boxes)
    future = all_messages(forward[::-1], boxes[::-1])[::-1]
    bpl, fpl, tpl_ = np.empty(T), np.empty(T), np.empty(T)
    for t in range(T):
        largest = {}
        for name, m in (("past", past[t]), ("now", boxes[t]), ("future", future[t])):
            largest[name] = np.log((m[:, :, None] / m[:, None, :]).max(axis=0))
        bpl[t] = (largest["past"] + largest["now"]).max()
        fpl[t] = (largest["future"] + largest["now"]).max()
        # past, present and future outputs are chosen independently, so the maximum over all three is taken in turn
        tpl_[t] = sum(largest.values()).max()
    return bpl, fpl, tpl_


@st.composite
def cases(draw, kinds=KINDS, longest=4):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(2, 3))
    horizon = draw(st.integers(1, longest))
    epsilons = 10.0 ** rng.uniform(-2, 0.5, horizon)

    def side():
        given = [random_matrix(rng, draw(st.sampled_from(kinds)), n) for _ in range(horizon - 1)]
        return given if draw(st.booleans()) else given[:1] * (horizon - 1)

    return rng, epsilons, side(), side()


@settings(max_examples=60, deadline=None)
@given(cases())
def test_all_sequences_of_vertices(case):
    _, epsilons, backward, forward = case
    if len(epsilons) == 1:
        r = tpl.exact_leakage(epsilons, THREE, THREE)
        assert r.bpl == r.fpl == r.tpl == pytest.approx(epsilons, rel=1e-15)
        return
    r = tpl.exact_leakage(epsilons, backward, forward)
    for value, expected in zip((r.bpl, r.fpl, r.tpl), brute_force(epsilons, backward, forward), strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("released", [[0], [2], [0, 1], [1, 2], [0, 1, 2]])
def test_counts_of_some_states_against_all_vertices(released):
    rng = np.random.default_rng(5)
    for _ in range(5):
        epsilons = rng.uniform(0.1, 2.0, 4)
        backward, forward = ([rng.dirichlet(np.full(3, 0.5), size=3) for _ in range(3)] for _ in range(2))
        r = tpl.exact_leakage(epsilons, backward, forward, released=released)
        for value, expected in zip(
            (r.bpl, r.fpl, r.tpl), brute_force(epsilons, backward, forward, released), strict=True
        ):
            np.testing.assert_allclose(value, expected, rtol=1e-12)
        assert (r.tpl <= tpl.exact_leakage(epsilons, backward, forward).tpl + 1e-12).all()


def test_one_released_count_is_one_bit():
    """Laplace noise of scale 1/epsilon on one count has the likelihoods of randomised response on 'in state 0'."""
    bit = [[np.e, 1.0], [1.0, np.e], [1.0, np.e]]
    one = tpl.exact_leakage([1.0] * 8, THREE, THREE, released=[0])
    np.testing.assert_allclose(one.tpl, tpl.mechanism_leakage(bit, THREE, THREE, horizon=8).tpl, rtol=1e-13)
    assert (one.tpl < tpl.exact_leakage([1.0] * 8, THREE, THREE).tpl - 0.05).all()


@pytest.mark.parametrize("side", ["backward", "forward"])
def test_unknown_steps_forget_what_was_before(side):
    epsilons = [0.5, 0.7, 0.9, 0.4]
    steps = [THREE, None, THREE]
    r = tpl.exact_leakage(epsilons, **{side: steps})
    backward, forward = ([THREE, None, THREE], [None] * 3) if side == "backward" else ([None] * 3, [THREE, None, THREE])
    for value, expected in zip((r.bpl, r.fpl, r.tpl), brute_force(epsilons, backward, forward), strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-13)


@pytest.mark.parametrize("epsilon", [1e-9, 1e-4, 0.3, 8.0])
def test_fifty_digits(epsilon):
    """The ratio by exhaustion with mpmath: tiny budgets keep their digits, large ones do not overflow."""
    rng = np.random.default_rng(11)
    P = rng.dirichlet(np.full(3, 0.6), size=3)
    P[:, 2] = 1.0 - P[:, 0] - P[:, 1]
    value = tpl.exact_leakage([epsilon] * 3, backward=P).bpl[2]
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
    """Two algorithms that share nothing: listing extreme messages, and fixing outputs from the last to the first."""
    rng = np.random.default_rng(n)
    backward, forward = rng.dirichlet(np.full(n, 0.4), size=(2, n))
    T = {2: 30, 3: 15, 4: 6}[n]
    listed = tpl.mechanism_leakage(vertices(n, 0.8).T, backward, forward, horizon=T)
    direct = tpl.exact_leakage([0.8] * T, backward, forward)
    for name in ("epsilons", "bpl", "fpl", "tpl"):
        np.testing.assert_allclose(getattr(listed, name), getattr(direct, name), rtol=1e-11)


@settings(max_examples=40, deadline=None)
@given(cases(longest=7))
def test_never_above_the_recursion_and_never_below_the_budget(case):
    _, epsilons, backward, forward = case
    r, bound = (
        f(epsilons, backward or None, forward or None) for f in (tpl.exact_leakage, tpl.temporal_privacy_leakage)
    )
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
            told = tpl.measured_leakage(worst.high * epsilons[:, None], backward, forward)
            assert told.tpl[t] == pytest.approx(r.tpl[t], rel=1e-12)
        anything = tpl.measured_leakage(rng.uniform(0, 1, (500, T, n)) * epsilons[:, None], backward, forward)
        for name in ("bpl", "fpl", "tpl"):
            assert (getattr(anything, name) <= getattr(r, name) + 1e-12).all()


def test_laplace_noise_stays_below_and_comes_close():
    """Noise on the counts of a user who moves: never more than the exact leakage, and the worst run reaches it."""
    rng = np.random.default_rng(17)
    epsilons, truth = np.array([1.0, 0.5, 1.5]), np.eye(2)[[0, 1, 1]]
    r = tpl.exact_leakage(epsilons, SWAPPED, SWAPPED)
    released = truth + rng.laplace(size=(4000, 3, 2)) * (2.0 / epsilons)[:, None]
    told = tpl.measured_leakage(LaplaceNoise(2.0 / epsilons[:, None]).log_ratio(released), SWAPPED, SWAPPED)
    for name in ("bpl", "fpl", "tpl"):
        assert (getattr(told, name) <= getattr(r, name) + 1e-12).all()
        np.testing.assert_allclose(getattr(told, name).max(axis=0), getattr(r, name), rtol=1e-9)
    assert (np.median(told.tpl, axis=0) < 0.9 * r.tpl).all()


def test_density_of_laplace_noise_gives_these_likelihoods():
    y, epsilon = np.array([1.3, -0.2, 0.4]), 0.7
    density = [np.prod(epsilon / 4 * np.exp(-epsilon / 2 * np.abs(y - one_hot))) for one_hot in np.eye(3)]
    logs = LaplaceNoise(2.0 / epsilon).log_ratio(y)
    np.testing.assert_allclose(logs - logs[0], np.log(density) - np.log(density[0]), rtol=1e-13, atol=1e-15)


def test_errata_s_numbers():
    bound = tpl.temporal_privacy_leakage([1.0] * 10, backward=SWAPPED)
    assert round(bound.bpl[-1], 2) == 8.15
    assert round(tpl.exact_leakage([1.0] * 10, backward=SWAPPED).bpl[-1], 2) == 3.26
    # Theorem 2's example: the sum of the largest of each side, against one pair of states
    forward = np.array(THREE)
    assert tpl.temporal_privacy_leakage([1.0] * 3, forward.T, forward).tpl[1] == pytest.approx(2.41255, abs=1e-5)
    assert tpl.exact_leakage([1.0] * 3, forward.T, forward).tpl[1] == pytest.approx(2.34558, abs=1e-5)


@settings(max_examples=60, deadline=None)
@given(st.floats(0, 1), st.floats(0, 1), st.floats(0.05, 2.0))
def test_two_states_attain_the_recursion_if_the_determinant_is_not_negative(p, q, epsilon):
    low, high = sorted((p, q))
    P = np.array([[high, 1 - high], [low, 1 - low]])
    for known in (P, P[::-1]):  # exchanging the rows gives the determinant -det P
        r, bound = (f([epsilon] * 8, known, known) for f in (tpl.exact_leakage, tpl.temporal_privacy_leakage))
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
    r, bound = (
        f([0.4] * 9, P.reverse(np.full(n, 1 / n)), P) for f in (tpl.exact_leakage, tpl.temporal_privacy_leakage)
    )
    np.testing.assert_allclose(r.tpl, bound.tpl, rtol=1e-11)
    if s == 0:
        np.testing.assert_allclose(r.tpl, 9 * 0.4, rtol=1e-12)


def test_an_identity_as_loss_function_need_not_leak_everything():
    """Two rows of disjoint supports make the recursion T epsilon, as if each step could have the vector that is high on
    one support and low on the other."""
    forward = tpl.random_matrix(8, 2019, zeros=0.6)
    backward = forward.reverse()
    assert tpl.PrivacyLossFunction(forward).is_identity
    assert tpl.temporal_privacy_leakage([1.0] * 40, backward, forward).tpl == pytest.approx([40.0] * 40)
    assert tpl.exact_leakage([1.0] * 40, backward, forward).tpl.max() == pytest.approx(5.528, abs=1e-3)


def test_budgets_may_differ_and_matrices_come_in_every_form():
    epsilons = [0.3, 1.0, 0.2]
    expected = tpl.exact_leakage(epsilons, THREE, THREE).tpl
    matrix = tpl.TransitionMatrix(THREE)
    forms = (np.array(THREE), matrix, [matrix] * 2, np.array([THREE, THREE]), tpl.PrivacyLossFunction(matrix))
    for given_ in forms:
        np.testing.assert_array_equal(tpl.exact_leakage(epsilons, given_, given_).tpl, expected)


def test_pairs_are_done_in_blocks_alike():
    rng = np.random.default_rng(2)
    P = rng.dirichlet(np.full(45, 0.3), size=45)  # 1,980 pairs, in two blocks
    r = tpl.exact_leakage([0.5] * 3, P)
    assert r.bpl[1] == pytest.approx(tpl.temporal_privacy_leakage([0.5] * 3, P).bpl[1], rel=1e-12)
    worst = tpl.worst_outputs([0.5] * 3, P, time=2)
    assert tpl.measured_leakage(worst.high * 0.5, P).tpl[2] == pytest.approx(r.tpl[2], rel=1e-12)


def test_one_state_has_nothing_to_tell_apart():
    assert tpl.exact_leakage([0.5, 0.5], [[1.0]], [[1.0]]).tpl.tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tpl.exact_leakage([0.0], THREE), "greater than 0"),
        (lambda: tpl.exact_leakage([1.0] * 3, SWAPPED, THREE), r"same states, found \[2, 3\]"),
        (lambda: tpl.exact_leakage([1.0] * 3, [THREE] * 5), "5 matrices for 2 steps"),
        (lambda: tpl.exact_leakage([1.0] * 3, [[0.5, 0.6], [1, 0]]), "rows must sum to 1"),
        (lambda: tpl.exact_leakage([300.0] * 3, THREE), "at most 700 nats, found 900"),
        (lambda: tpl.exact_leakage([1e-6] * 10**6, THREE), "n = 3, T = 1000000"),
        (lambda: tpl.exact_leakage([1.0], THREE, released=[3]), "states 0..2"),
        (lambda: tpl.exact_leakage([1.0] * 2, THREE, released=[]), "must name some of the states 0..2"),
        (lambda: tpl.exact_leakage([1.0] * 2, THREE, released=[3]), r"0..2, found \[3\]"),
        (lambda: tpl.exact_leakage([1.0] * 2, tpl.smoothed(scipy.sparse.eye_array(5000), 1e-6)), "found 5000"),
        (lambda: tpl.worst_outputs([1.0] * 2, THREE, time=2), "less than T = 2, found 2"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_frozen_and_in_agreement_with_its_parts():
    r = tpl.exact_leakage([1.0] * 4, THREE, THREE)
    assert isinstance(r, exact.ExactLeakage)
    assert r.composed(1, 1) == r.tpl[1]
    assert r.composed(0, 3) == pytest.approx(r.bpl[0] + r.fpl[3] + 2.0)
    assert r.user_level == 4.0
