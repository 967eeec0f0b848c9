"""Renyi leakages: no mixture, and no series of discrete releases enumerated in full, exceeds the bound."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tplrepro as tpl
from tests.leakage.matrices import BACKWARD, FIG_3, FIG_4, FORWARD, matrices
from tplrepro.leakage.renyi import RenyiStep

ORDERS = np.array([0.3, 1.0, 1.5, 2.0, 8.0, 64.0, 300.0])
SLACK = 1 + 1e-9


def divergences(laws):
    """The largest Renyi divergence of each of ORDERS between two columns of positive laws (outputs, n)."""
    P, Q = laws[:, :, None], laws[:, None, :]
    largest = []
    for a in ORDERS:
        if a == 1.0:
            between = np.sum(P * np.log(P / Q), axis=0)
        else:
            exponents = a * np.log(P) + (1 - a) * np.log(Q)
            top = exponents.max(axis=0)
            between = (top + np.log(np.exp(exponents - top).sum(axis=0))) / (a - 1)
        largest.append(between.max())
    return np.array(largest)


def random_laws(rng, outputs, n):
    """Laws (outputs, n) that lie close together or many orders of magnitude apart."""
    laws = rng.random((outputs, n)) ** rng.choice([0.1, 1.0, 5.0, 20.0]) + 1e-9
    return laws / laws.sum(axis=0)


@settings(max_examples=100)
@given(st.integers(0, 2**32 - 1), st.integers(2, 6), st.data())
def test_no_mixture_of_laws_exceeds_the_step(seed, n, data):
    rows = data.draw(matrices(n, ("dense", "zeros", "ties", "near_identity", "sharp", "sparse")))
    laws = random_laws(np.random.default_rng(seed), data.draw(st.integers(2, 6)), n)
    tau = max(np.maximum(q - d, 0).sum() for q in rows for d in rows)
    assert tpl.PrivacyLossFunction(rows).slope_at(0.0) == pytest.approx(tau, rel=1e-12)
    bounds = [RenyiStep(min(tau, 1.0), a).at(rho) for a, rho in zip(ORDERS, divergences(laws), strict=True)]
    assert np.all(divergences(laws @ rows.T) <= np.array(bounds) * SLACK + 1e-15)


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(2, 3), st.integers(1, 4), st.data())
def test_no_enumerated_series_exceeds_bpl_fpl_or_tpl(seed, n, T, data):
    rng = np.random.default_rng(seed)
    outputs = [random_laws(rng, 2 + (T < 4), n) for _ in range(T)]
    backward, forward = (data.draw(matrices(n, ("dense", "zeros", "near_identity"))) for _ in range(2))
    bounds = tpl.temporal_renyi_leakage(np.array([divergences(x) for x in outputs]).T, backward, forward, orders=ORDERS)
    past, future = [np.ones((1, n))], [np.ones((1, n))]  # laws of all outputs before and after, given the state
    for x, y in zip(outputs[:-1], outputs[:0:-1], strict=True):
        past.append((past[-1][:, None] * x).reshape(-1, n) @ backward.T)
        future.append((future[-1][:, None] * y).reshape(-1, n) @ forward.T)
    for t, (before, x, after) in enumerate(zip(past, outputs, future[::-1], strict=True)):
        with_past, with_future = (before[:, None] * x).reshape(-1, n), (after[:, None] * x).reshape(-1, n)
        both = (with_past[:, None] * after).reshape(-1, n)
        for laws, bound in ((with_past, bounds.bpl), (with_future, bounds.fpl), (both, bounds.tpl)):
            assert np.all(divergences(laws) <= bound[:, t] * SLACK + 1e-14)


def test_ends_of_the_scale():
    rho = np.outer(ORDERS, [0.5] * 6)
    nobody = tpl.temporal_renyi_leakage(rho, orders=ORDERS)
    np.testing.assert_array_equal(nobody.tpl, rho)
    np.testing.assert_array_equal(tpl.temporal_renyi_leakage(rho, np.full((2, 2), 0.5), orders=ORDERS).tpl, rho)
    always = tpl.temporal_renyi_leakage(rho, np.eye(2), np.eye(2), orders=ORDERS)
    np.testing.assert_allclose(always.tpl, 6 * rho, rtol=1e-15)  # composition
    changing = tpl.temporal_renyi_leakage(
        rho[:, :3], [FIG_3, FIG_4[:2, :2] / FIG_4[:2, :2].sum(1)[:, None]], orders=ORDERS
    )
    assert np.all(changing.bpl[:, 1:] > rho[:, 1:3])
    assert RenyiStep(0.5, 1e6).at(3.0) == pytest.approx(3.0 + np.log(0.5) / (1e6 - 1), rel=1e-14)
    for lower, upper in pairwise(np.linspace(0.01, 1.0, 20)):
        assert all(RenyiStep(lower, a).at(0.7) < RenyiStep(upper, a).at(0.7) for a in ORDERS)


def test_epsilon_is_never_below_that_of_the_privacy_profile_of_gaussian_noise():
    orders, horizon = np.concatenate((np.linspace(1.05, 4.0, 40), np.geomspace(4.5, 200.0, 40))), 20
    leakage = tpl.temporal_renyi_leakage(
        np.outer(orders / 2 / 3.0**2, [1.0] * horizon), BACKWARD, FORWARD, orders=orders
    )
    alone = tpl.temporal_renyi_leakage(orders[:, None] / 2 / 3.0**2, orders=orders)
    exact = tpl.gaussian_epsilon(1 / 3.0, 1e-6)
    assert exact <= alone.epsilon(1e-6)[0] <= 1.1 * exact
    together = tpl.gaussian_epsilon(np.sqrt(horizon) / 3.0, 1e-6)  # composition, whatever the correlation
    assert np.all((leakage.epsilon(1e-6) > exact) & (leakage.epsilon(1e-6) < 1.1 * together))


@pytest.mark.parametrize(
    ("refused", "message"),
    [
        (lambda: tpl.temporal_renyi_leakage([[0.1]], orders=0.0), "orders must be finite and greater than 0"),
        (lambda: tpl.temporal_renyi_leakage([[0.1]], orders=[np.inf]), "orders must be finite"),
        (lambda: tpl.temporal_renyi_leakage([[0.1]], orders=[2.0, 3.0]), r"shape \(2, T\), found \(1, 1\)"),
        (lambda: tpl.temporal_renyi_leakage([-0.1], orders=2.0), "divergences must be .*found -0.1"),
        (lambda: tpl.temporal_renyi_leakage([0.1], orders=0.5).epsilon(1e-6), r"order above 1, found \[0.5\]"),
        (lambda: tpl.temporal_renyi_leakage([0.1], orders=2.0).epsilon(0.0), "delta must be .*found 0"),
        (lambda: tpl.temporal_renyi_leakage([0.1] * 3, [FIG_3], orders=2.0), "1 matrices for 2 steps"),
    ],
)
def test_errors_name_constraint_value_and_remedy(refused, message):
    with pytest.raises(ValueError, match=message):
        refused()
