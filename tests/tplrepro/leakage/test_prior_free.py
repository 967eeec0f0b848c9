"""Leakage against any prior and any evidence: the closed form, and every output of small chains
enumerated."""

from fractions import Fraction
from itertools import combinations, pairwise, product

import mpmath
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

import tplfrontier as tf
import tplrepro as tpl
from tests.oracles import recursion


@pytest.fixture
def rng():
    return np.random.default_rng(20261123)


def random_rows(rng, n):
    """Rows of numbers that differ by up to ten orders of magnitude."""
    rows = rng.random((n, n)) ** rng.integers(1, 10) + 1e-12
    return rows / rows.sum(axis=1, keepdims=True)


def exact_cross_ratio(P):
    rows = [[Fraction(p) for p in row] for row in np.asarray(P).tolist()]
    pairs = product(combinations(rows, 2), combinations(range(len(rows)), 2))
    ratios = (a[k] * b[m] / (a[m] * b[k]) for (a, b), (k, m) in pairs)
    return max(max(ratio, 1 / ratio) for ratio in ratios)


def exact_loss(P, alpha):
    """The closed form of section 2, with 40 digits."""
    ratio = exact_cross_ratio(P)
    with mpmath.workdps(40):
        kappa = mpmath.sqrt(mpmath.mpf(ratio.numerator) / ratio.denominator)
        half = mpmath.exp(mpmath.mpf(alpha) / 2)
        return 2 * mpmath.log((kappa * half + 1) / (kappa + half))


def check_against_weights(rng, draws):
    """No weights exceed the loss, those of the witness attain it, and so does a search over all
    weights."""
    n, alpha = int(rng.integers(2, 6)), float(10 ** rng.uniform(-2, 1))
    P = random_rows(rng, n)
    loss = tpl.PriorFreeLoss(P)
    attained = 0.0
    for h in np.exp(rng.normal(scale=4, size=(draws, n))):
        attained = max(
            attained, tpl.PrivacyLossFunction(tpl.TransitionMatrix(P * h, normalize=True))(alpha)
        )
    assert attained <= loss(alpha) * (1 + 1e-12)
    i, _, (k,), q, *_ = loss.witness(alpha)
    other = next(m for m in range(n) if f" {m} has probability" in str(loss.witness(alpha)))
    two = np.full(n, 1e-280)
    two[k], two[other] = q / P[i, k], (1 - q) / P[i, other]
    best = tpl.PrivacyLossFunction(tpl.TransitionMatrix(P * two, normalize=True))(alpha)
    assert best == pytest.approx(loss(alpha), rel=1e-9)
    return P, alpha, loss(alpha)


def test_no_weights_exceed_the_closed_form_and_two_columns_attain_it(rng):
    for _ in range(300):
        check_against_weights(rng, 3)

    def negative(logs, P, alpha):
        return -tpl.privacy_loss(
            tpl.TransitionMatrix(P * np.exp(logs - logs.max()), normalize=True), alpha
        )

    P, alpha, loss = check_against_weights(rng, 1)
    starts = [
        3 * np.eye(len(P))[k] + 3 * np.eye(len(P))[m] for k, m in combinations(range(len(P)), 2)
    ]
    found = [
        minimize(negative, x, (P, alpha), method="Nelder-Mead", options={"maxiter": 4000}).fun
        for x in starts
    ]
    assert -min(found) == pytest.approx(loss, rel=1e-3)


@given(st.integers(0, 2**32 - 1), st.floats(1e-8, 300))
def test_loss_and_budget_err_on_the_safe_side_in_high_precision(seed, alpha):
    P = random_rows(np.random.default_rng(seed), 3)
    loss = tpl.PriorFreeLoss(P)
    exact = exact_loss(loss.matrix, alpha)
    assert abs(loss(alpha) - exact) <= 1e-13 * exact
    budget = loss.budget_for(alpha)
    assert alpha - exact - 1e-12 * alpha <= budget <= alpha - exact
    assert loss.supremum(budget) <= alpha
    inverse = loss.inverse(level := float(exact))
    assert exact_loss(loss.matrix, inverse) <= level
    assert inverse >= level
    with mpmath.workdps(40):
        ratio, gamma = exact_cross_ratio(loss.matrix), 1.0 + alpha
        kappa = mpmath.sqrt(mpmath.mpf(ratio.numerator) / ratio.denominator)
        assert loss.hockey_stick(gamma) >= max(kappa - mpmath.sqrt(gamma), 0) ** 2 / (kappa**2 - 1)
    assert loss.cross_ratio >= exact_cross_ratio(loss.matrix)


def test_steps_together_are_rounded_to_the_safe_side(rng):
    for _ in range(50):
        first, second = (tpl.PriorFreeLoss(random_rows(rng, 3)) for _ in range(2))
        (rest, gap), (other_rest, other_gap) = (
            map(Fraction, loss.table[0, :2]) for loss in (first, second)
        )
        found_rest, found_gap = first.after([second]).table[0, :2].tolist()
        assert 0.999 * found_rest < rest + other_rest * (1 - 2 * rest) > found_rest
        assert 1.001 * gap * other_gap > found_gap > gap * other_gap
    unbounded = tpl.PriorFreeLoss([[1.0, 0.0], [0.5, 0.5]])
    assert unbounded.after([unbounded]).table[0, :2].tolist() == [0.0, 1.0]


def test_reversal_under_any_prior_has_the_same_cross_ratio_and_sparse_matrices_those_of_dense_ones(
    rng,
):
    P = tpl.TransitionMatrix(random_rows(rng, 4))
    for _ in range(5):
        reverse = P.reverse(rng.dirichlet(np.ones(4)))
        assert tpl.PriorFreeLoss(reverse).cross_ratio == pytest.approx(
            tpl.PriorFreeLoss(P).cross_ratio, rel=1e-9
        )
    walk = np.abs(np.cumsum(rng.integers(-1, 2, 4000))) % 150
    sparse = tpl.TransitionMatrix.from_sequences([walk], n_states=150, smoothing=0.1, sparse=True)
    logs = np.log(sparse.toarray())
    ranges = [np.ptp(logs[i] - logs[j]) for i, j in combinations(range(150), 2)]
    assert np.log(tpl.PriorFreeLoss(sparse).cross_ratio) == pytest.approx(max(ranges), rel=1e-12)
    # No row reaches the first state, which is a stored 0 over a background.
    stored = scipy.sparse.csr_array(
        ([0.3, 0.0, 0.4, 0.0, 0.0], ([0, 0, 1, 1, 2], [1, 0, 2, 0, 0])), shape=(3, 3)
    )
    P = tpl.TransitionMatrix(stored, background=[0.7, 0.6, 0.5])
    assert tpl.PriorFreeLoss(P).cross_ratio == pytest.approx((0.7 / 0.3) / (0.4 / 0.6), rel=1e-12)


def test_rows_of_other_supports_lose_everything_and_equal_rows_nothing():
    P = tpl.TransitionMatrix(
        [[0.5, 0.5, 0], [0.2, 0.3, 0.5], [0.2, 0.3, 0.5]], states=["home", "shop", "work"]
    )
    loss = tpl.PriorFreeLoss(P)
    assert (loss.cross_ratio, loss(2.5), loss.supremum(0.1), loss.budget_for(1.0)) == (
        np.inf,
        2.5,
        np.inf,
        0.0,
    )
    with pytest.raises(
        tpl.NoFiniteSupremumError, match="'work' is possible next to 'shop' but not next to 'home'"
    ):
        tpl.allocate_by_upper_bound(1.0, loss, None)
    alike = tpl.PriorFreeLoss([[0.5, 0.5, 0.0]] * 3)
    assert (alike.cross_ratio, alike(2.5), alike.supremum(0.1)) == (1.0, 0.0, 0.1)
    assert alike.budget_for(1.0) == pytest.approx(1.0, rel=1e-14)
    assert alike.inverse([0.0, 0.1]).tolist() == [np.inf, np.inf]
    assert tpl.PriorFreeLoss([[1.0]])(1.0) == 0.0
    assert "gains nothing" in str(alike.witness(1.0))


def test_a_prior_free_loss_takes_the_place_of_a_matrix_everywhere(rng):
    P = rng.uniform(0.2, 1.0, (3, 3))
    P /= P.sum(axis=1, keepdims=True)
    loss, budgets = tpl.PriorFreeLoss(P), rng.uniform(0.1, 0.5, 5)
    free = tpl.temporal_privacy_leakage(budgets, loss, loss)
    bpl, _, _ = recursion(
        budgets, lambda alpha: float(exact_loss(loss.matrix, alpha)), np.zeros_like
    )
    np.testing.assert_allclose(free.bpl, bpl, rtol=1e-12)
    # Without a release between, evidence may be about that time: two steps, not the squared matrix.
    alone = tpl.leakage_at_all_times([0.3, 0.3], loss, None, times=[0, 3], horizon=4)
    assert alone.bpl[3] == pytest.approx(loss(loss(loss(0.3))) + 0.3, rel=1e-12)
    mixed = tpl.leakage_at_all_times(
        [0.3, 0.3], [loss, tpl.PrivacyLossFunction(P)], None, times=[0, 2], horizon=3
    )
    assert mixed.bpl[2] == pytest.approx(loss(loss(0.3)) + 0.3, rel=1e-12)
    for budgets in (
        np.full(6, tpl.allocate_by_upper_bound(1.0, loss, loss)),
        tpl.allocate_by_quantification(1.0, loss, loss, 6),
        tpl.allocate_optimally(1.0, loss, loss, 6),
        tf.allocate_with_stopping(1.0, loss, loss, 0.3).budgets(6),
    ):
        largest = tpl.temporal_privacy_leakage(budgets, loss, loss).tpl.max()
        assert 0.9 < largest <= 1.0


def test_profiles_hold_for_any_weights(rng):
    events = pytest.importorskip("dp_accounting")
    P = random_rows(rng, 3) + 0.05
    P = tpl.TransitionMatrix(P, normalize=True)
    loss = tpl.PriorFreeLoss(P)
    releases = [events.GaussianDpEvent(2.0)] * 3
    free = tf.temporal_privacy_profile(releases, loss, loss)
    for h in np.exp(rng.normal(scale=2, size=(20, 3))):
        weighted = tpl.TransitionMatrix(P.probabilities * h, normalize=True)
        assert (
            free.delta(1.0) >= tf.temporal_privacy_profile(releases, weighted, weighted).delta(1.0)
        ).all()
        gammas = np.array([1.0, 1.5, 4.0])
        assert (
            loss.hockey_stick(gammas) >= tpl.PrivacyLossFunction(weighted).hockey_stick(gammas)
        ).all()
    assert tf.allocate_noise(2.0, 1e-6, loss, loss, 3).min() > 0


def leakages_by_enumeration(P, initial, mechanisms, evidence):
    """The largest log-ratio of Pr(outputs | l^t = i, evidence) over all outputs and possible pairs,
    for each t."""
    horizon, n = evidence.shape
    outputs = mechanisms[0].shape[1]
    joint = np.zeros((horizon, n, outputs**horizon))
    for path in product(range(n), repeat=horizon):
        weight = initial[path[0]] * np.prod([P[a, b] for a, b in pairwise(path)])
        weight *= np.prod([evidence[t, state] for t, state in enumerate(path)])
        of_outputs = np.ones(1)
        for mechanism, state in zip(mechanisms, path, strict=True):
            of_outputs = np.outer(of_outputs, mechanism[state]).ravel()
        for t, state in enumerate(path):
            joint[t, state] += weight * of_outputs
    largest = []
    for of_time in joint:
        possible = of_time[of_time.sum(axis=1) > 0]
        logs = np.log(possible / possible.sum(axis=1, keepdims=True))
        largest.append(float((logs.max(axis=0) - logs.min(axis=0)).max()))
    return np.array(largest), joint.sum(axis=2) > 0


def check_enumerated(rng, anchored):
    """Returns the number of outputs, times and pairs that were compared."""
    n, horizon, outputs = int(rng.integers(2, 4)), int(rng.integers(2, 5)), int(rng.integers(2, 4))
    P, initial = random_rows(rng, n), rng.dirichlet(np.ones(n))
    evidence = rng.random((horizon, n)) ** 4
    if anchored:
        evidence[rng.integers(horizon)] = np.eye(n)[rng.integers(n)]
    rows = [rng.random((n, outputs)) ** rng.uniform(0.1, 1.5) for _ in range(horizon)]
    mechanisms = [row / row.sum(axis=1, keepdims=True) for row in rows]
    epsilons = [np.ptp(np.log(rows), axis=0).max() for rows in mechanisms]
    leakages, possible = leakages_by_enumeration(P, initial, mechanisms, evidence)
    chain = tpl.condition_on(P, initial, evidence)
    np.testing.assert_array_equal(chain.possible, possible)
    known = tpl.temporal_privacy_leakage(epsilons, chain.backward, chain.forward).tpl
    free = tpl.temporal_privacy_leakage(epsilons, tpl.PriorFreeLoss(P), tpl.PriorFreeLoss(P)).tpl
    assert (leakages <= known * (1 + 1e-9)).all()
    assert (known <= free * (1 + 1e-9)).all()
    return horizon * n * (n - 1) * outputs**horizon


@pytest.mark.parametrize("cases", [30_000, pytest.param(10**6, marks=pytest.mark.slow)])
def test_no_output_of_a_chain_with_evidence_leaks_more(rng, cases):
    compared = k = 0
    while compared < cases:
        compared, k = compared + check_enumerated(rng, anchored=k % 2), k + 1


def test_without_evidence_the_conditional_matrices_are_those_of_bayes_rule(rng):
    P, initial = (
        tpl.TransitionMatrix(random_rows(rng, 3), states=["a", "b", "c"]),
        np.array([0.2, 0.3, 0.5]),
    )
    chain = tpl.condition_on(P, initial, np.ones((3, 3)))
    for t in range(2):
        np.testing.assert_allclose(chain.forward[t].probabilities, P.probabilities, rtol=1e-12)
        reverse = P.reverse(initial @ np.linalg.matrix_power(P.probabilities, t))
        np.testing.assert_allclose(
            chain.backward[t].probabilities, reverse.probabilities, rtol=1e-12
        )
        assert chain.forward[t].states == chain.backward[t].states == ["a", "b", "c"]


def test_knowing_a_state_for_certain_may_raise_a_leakage():
    """The example of docs/theory/promises.md: it is known where the user is at the end."""
    P, initial = [[0.1, 0.1, 0.8], [0.0, 0.4, 0.6], [0.4, 0.0, 0.6]], [1 / 3, 1 / 3, 1 / 3]
    chains = [
        tpl.condition_on(P, initial, [[1, 1, 1]] * 3 + [last]) for last in ([1, 1, 1], [0, 1, 0])
    ]
    without, anchored = (
        tpl.temporal_privacy_leakage(0.5, chain.backward, chain.forward, horizon=4)
        .tpl.round(3)
        .tolist()
        for chain in chains
    )
    assert without == [0.934, 1.276, 1.613, 1.804]
    assert anchored == [1.311, 1.418, 1.382, 0.5]


def test_the_loss_is_below_the_bound_of_lange_et_al(rng):
    """2 S(epsilon) - epsilon against epsilon + 4 ln gamma of arXiv 2506.21308, gamma the largest
    P_ik / P_jk."""
    for _ in range(2500):
        P, epsilon = random_rows(rng, int(rng.integers(2, 5))), float(10 ** rng.uniform(-3, 1))
        gamma = max((P.max(axis=0) / P.min(axis=0)).max(), 1.0)
        assert 2 * tpl.PriorFreeLoss(P).supremum(epsilon) - epsilon < epsilon + 4 * np.log(gamma)


@pytest.mark.parametrize("gamma", [1.0, 1.5, 4.0, 30.0, 40.0])
def test_divergences_under_any_evidence_are_those_of_the_cross_ratio(gamma):
    """(kappa - sqrt(gamma))^2 / (kappa^2 - 1), where gamma is below C = kappa^2."""
    loss = tpl.PriorFreeLoss([[0.8, 0.2], [0.1, 0.9]])
    kappa = np.sqrt(36.0)
    expected = max(kappa - np.sqrt(gamma), 0.0) ** 2 / (kappa**2 - 1.0)
    assert loss.hockey_stick(gamma) == pytest.approx(expected, rel=1e-12)
    assert tpl.PriorFreeLoss([[0.3, 0.7]] * 2).hockey_stick(gamma) == 0.0
    assert tpl.PriorFreeLoss([[1.0, 0.0], [0.5, 0.5]]).hockey_stick(gamma) == 1.0
