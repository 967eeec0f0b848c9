"""Steps whose law is near that of the habit, against the backward matrix under that law."""

import mpmath
import numpy as np
import pytest

import tplrepro as tpl
from tests.oracles import exact_loss
from tplrepro.leakage.near_habit import NearHabitLoss

ALPHAS = (1e-3, 0.1, 0.5, 2.0, 10.0)


def backward_matrix(P, law):
    """Pr(earlier state | later state) where the earlier state has this law."""
    joint = law[:, None] * P
    return (joint / joint.sum(axis=0)).T


def random_step(seed, spread):
    """The loss of a step near the habit, and the backward matrix under a law at its distance."""
    rng = np.random.default_rng(seed)
    P = 0.5 * rng.dirichlet(np.ones(3), 3) + 0.5 * np.eye(3)
    habit = tpl.TransitionMatrix(P).stationary()
    log_ratios = rng.uniform(0.0, spread, 3)
    law = habit * np.exp(log_ratios)
    law /= law.sum()
    of_habit = tpl.PrivacyLossFunction(backward_matrix(P, habit))
    distance = float(np.ptp(log_ratios)) * (1 + 1e-12)
    return NearHabitLoss(of_habit, tpl.PriorFreeLoss(P), distance), backward_matrix(P, law)


@pytest.mark.parametrize("spread", [1e-6, 0.01, 0.3])
def test_a_law_within_the_distance_never_leaks_more(spread):
    for seed in range(5):
        near, backward = random_step(seed, spread)
        exact = exact_loss(backward)
        with mpmath.workdps(40):
            assert all(exact(alpha) <= near.at_most(alpha) * (1 + 1e-15) for alpha in ALPHAS)
        slopes = np.array([0.0, 0.1, 1.0, 5.0])
        differences = backward[:, None] - (1.0 + slopes[:, None, None, None]) * backward
        divergences = np.maximum(differences, 0.0).sum(axis=-1).max(axis=(1, 2))
        assert (divergences <= near.support(slopes) + 1e-15).all()


@pytest.mark.parametrize("spread", [0.0, 1e-6, 0.01, 0.3])
def test_the_loss_and_the_divergence_near_the_habit_are_those_of_the_theory(spread):
    near, _ = random_step(0, spread)
    h = near.distance
    L, of_any_law = near.of_habit, near.of_any_law
    for alpha in ALPHAS:
        loss = min(L.at(alpha + h) + L.at(h), of_any_law.at(alpha), alpha)
        assert near.at(alpha) == pytest.approx(loss, rel=1e-12)
        assert near.at_most(alpha) == pytest.approx(loss, rel=1e-12)
        assert near.budget_for(alpha) == pytest.approx(alpha - loss, rel=1e-9)
        supremum = near.supremum(near.budget_for(alpha))
        assert alpha * (1 - 1e-6) <= supremum <= alpha * (1 + 1e-12)
    rho = max(np.exp(-h), 1.0 - np.expm1(h) * L.hockey_stick(1.0))
    for gamma in (1.0, 1.1, 2.0, 6.0):
        below_one = max(1.0 - rho * gamma, 0.0)
        divergence = np.exp(h) * (L.hockey_stick(max(rho * gamma, 1.0)) + below_one)
        expected = min(divergence, of_any_law.hockey_stick(gamma))
        assert near.hockey_stick(gamma) == pytest.approx(expected, rel=1e-12, abs=2e-14)


@pytest.mark.parametrize("spread", [0.0, 1e-6, 0.01, 0.3])
def test_the_inverses_near_the_habit_are_as_large_as_can_be(spread):
    near, _ = random_step(1, spread)
    for level in (1e-4, 0.01, 0.1, 0.3):
        alpha = near.inverse_at(level)
        assert near.at(alpha) <= level * (1 + 1e-15)
        assert near.at(alpha * (1 + 1e-9)) >= level * (1 - 1e-12)
        within = near.inverse_within(level, 0.5)
        assert near.at(min(within, 0.5)) <= level * (1 + 1e-15)
        assert near.at(min(within, 0.5)) >= min(level, near.at(0.5)) * (1 - 1e-9)


def test_the_slope_near_the_habit_is_the_derivative():
    near, _ = random_step(2, 0.01)
    change = 1e-6
    for alpha in ALPHAS[1:]:
        difference = near.at(alpha + change) - near.at(alpha - change)
        assert near.slope_at(alpha) == pytest.approx(difference / (2 * change), rel=1e-4, abs=1e-9)


def test_what_is_below_the_distance_leaks_in_full_where_a_law_may_tell_all():
    P = np.array([[0.5, 0.5], [1.0, 0.0]])  # a later state may tell the earlier one
    near = NearHabitLoss(tpl.PrivacyLossFunction(P), tpl.PriorFreeLoss(P), 0.1)
    assert near.at(0.01) == 0.01
    assert near.slope_at(0.01) == 1.0
    assert not near.is_identity
    assert near.at(3.0) < 3.0


def test_equal_rows_leak_nothing_near_the_habit():
    P = np.full((2, 2), 0.5)
    near = NearHabitLoss(tpl.PrivacyLossFunction(P), tpl.PriorFreeLoss(P), 0.1)
    assert near.is_zero
    assert near.at_most(2.0) == near.hockey_stick(1.0) == 0.0
    assert not random_step(0, 0.01)[0].is_zero
