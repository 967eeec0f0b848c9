import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.sip import setups
from tplrepro import sip


@settings(max_examples=40)
@given(st.floats(0.02, 0.98), st.floats(0.0, 1.0), st.floats(0.1, 3.0))
def test_noise_of_two_steps_has_the_closed_forms_of_example_1(p1, phi, epsilon):
    crr = sip.ConditionalRandomizedResponse(epsilon)
    found = setups.two_step_noise(crr, crr, p1, phi)
    mixed = p1 * phi + (1 - p1) * (1 - phi)
    if mixed * (1 - mixed) > 1e-12:  # Eq. (16)
        rho = (1 - 2 * phi) * np.sqrt(p1 * (1 - p1)) / np.sqrt(mixed * (1 - mixed))
        assert found.data_correlation == pytest.approx(rho, abs=1e-9)
    assert found.first == pytest.approx(2 * p1 * (1 - p1) / np.exp(epsilon), rel=1e-12)
    weights, beliefs = setups.second_beliefs(p1, phi, crr)
    expected = weights @ (1 - (beliefs**2).sum(axis=1)) / np.exp(epsilon)
    assert found.second == pytest.approx(expected, rel=1e-10, abs=1e-14)
    assert found.leakages[0] == pytest.approx(crr.leakage([1 - p1, p1]))


@pytest.mark.parametrize("phi", [0.2, 0.5])
def test_noise_is_correlated_as_in_a_simulation_and_not_where_the_data_are_independent(phi):
    crr, p1, draws = sip.ConditionalRandomizedResponse(0.5), 0.7, 40_000
    found, rng = setups.two_step_noise(crr, crr, p1, phi), np.random.default_rng(8)
    assert (
        (found.mutual_information < 1e-12) == (abs(found.noise_correlation) < 1e-12) == (phi == 0.5)
    )
    x1 = (rng.random(draws) < p1).astype(int)
    x2 = x1 ^ (rng.random(draws) < phi)
    y1 = (rng.random(draws) < crr.matrix([1 - p1, p1])[x1, 1]).astype(int)
    _, beliefs = setups.second_beliefs(p1, phi, crr)
    rows = np.array([crr.matrix(b) for b in beliefs])
    y2 = (rng.random(draws) < rows[y1, x2, 1]).astype(int)
    shown = np.corrcoef(y1 != x1, y2 != x2)[0, 1]
    assert found.noise_correlation == pytest.approx(shown, abs=5 / np.sqrt(draws))


def noise_correlation_by_hand(p1, epsilon):
    """rho(N_1, N_2) of the published response where X_2 = X_1, by sums over X_1 and Y_1.

    A response changes x with probability (1 - belief in x) / e^epsilon (Theorem 4 of [3])."""
    prior = [1 - p1, p1]
    changed = [(1 - belief) / np.exp(epsilon) for belief in prior]  # Pr(N_1 = 1 | x)
    first = second = both = 0.0
    for x, y in np.ndindex(2, 2):
        joint = np.array([prior[z] * (changed[z] if y != z else 1 - changed[z]) for z in (0, 1)])
        also_changed = (1 - joint[x] / joint.sum()) / np.exp(epsilon)  # Pr(N_2 = 1 | x, y)
        second += joint[x] * also_changed
        if y != x:
            first += joint[x]
            both += joint[x] * also_changed
    return (both - first * second) / np.sqrt(first * (1 - first) * second * (1 - second))


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_noise_at_full_correlation_is_correlated_more_for_a_more_skewed_prior(epsilon):
    crr = sip.ConditionalRandomizedResponse(epsilon)
    priors = [0.5, 0.55, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999]
    for skewed in (priors, [1 - p1 for p1 in priors]):
        found = [setups.two_step_noise(crr, crr, p1, 0.0).noise_correlation for p1 in skewed]
        by_hand = [noise_correlation_by_hand(p1, epsilon) for p1 in skewed]
        assert found == pytest.approx(by_hand, rel=1e-8)
        assert (np.diff(found) > 0).all()


@pytest.mark.parametrize("kind", [sip.ConditionalRandomizedResponse, sip.OptimalResponse])
def test_least_leakage_meets_the_noise_bound(kind):
    weights, beliefs = setups.second_beliefs(0.95, 0.1, kind(1.0))
    for noise in (0.05, 0.1):
        budget, leakage = setups.least_leakage(kind, beliefs, weights, noise)
        cost = [
            weights @ [kind(e).response(b).cost() for b in beliefs] for e in (budget, budget - 1e-6)
        ]
        assert cost[0] <= noise < cost[1] + 1e-9
        leakages = [
            sip.instantaneous_leakage(kind(budget).matrix(belief), belief) for belief in beliefs
        ]
        # more than the budget of the published response
        assert leakage == pytest.approx(max(leakages), rel=1e-9)
    assert setups.least_leakage(kind, beliefs, weights, 0.9) == (0.0, 0.0)
