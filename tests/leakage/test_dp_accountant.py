"""The accountant for users of dp_accounting: that library's own tests, its answers, and what it does not know of."""

import copy
import pickle

import dp_accounting as dp
import numpy as np
import pytest
from dp_accounting import privacy_accountant_test
from dp_accounting.pld import PLDAccountant

import tplrepro as tpl

ONE = dp.NeighboringRelation.REPLACE_ONE
CHAIN = [[0.8, 0.2], [0.1, 0.9]]
SAME, INDEPENDENT = np.eye(2), [[0.5, 0.5]] * 2
DELTAS = 10.0 ** -np.arange(1, 9)


class TestOfDpAccounting(privacy_accountant_test.PrivacyAccountantTest):
    def _make_test_accountants(self):
        sides = (None, None), (SAME, SAME), (CHAIN, None), (INDEPENDENT, CHAIN)
        return [tpl.TemporalPrivacyAccountant(*known) for known in sides]


SERIES = [(dp.GaussianDpEvent(8.0), 5), (dp.RandomizedResponseDpEvent(0.7, 3), 1), (dp.GaussianDpEvent(5.0), 2)]


@pytest.mark.parametrize("grid", [1e-3, 2.5e-4])
def test_a_value_that_never_changes_is_plain_composition_and_independent_ones_are_each_alone(grid):
    library, alone = PLDAccountant(ONE, grid), [PLDAccountant(ONE, grid).compose(event) for event, _ in SERIES]
    same = tpl.TemporalPrivacyAccountant(SAME, SAME, grid=grid)
    others = [tpl.TemporalPrivacyAccountant(*sides, grid=grid) for sides in ((None, None), (INDEPENDENT, INDEPENDENT))]
    for event, count in SERIES:
        for account in (library, same, *others):
            account.compose(event, count)
    for delta in DELTAS:
        epsilon = library.get_epsilon(delta)
        assert same.get_epsilon(delta) == pytest.approx(epsilon, abs=grid)
        assert same.get_delta(epsilon) == pytest.approx(delta, rel=grid * 10, abs=1e-12)
        worst = max(account.get_epsilon(delta) for account in alone)
        assert [account.get_epsilon(delta) for account in others] == pytest.approx([worst] * 2, abs=grid)


def test_laplace_noise_is_relative_to_the_norm_and_never_better_than_the_truth():
    """dp_accounting has no Laplace under REPLACE_ONE: two norms against the noise are one against half of it."""
    library = PLDAccountant().compose(dp.LaplaceDpEvent(2.0), 4)
    account = tpl.TemporalPrivacyAccountant(SAME, None).compose(dp.LaplaceDpEvent(4.0), 4)
    assert account.get_epsilon(1e-6) == pytest.approx(library.get_epsilon(1e-6), abs=1e-3)
    assert account.get_epsilon(0) == pytest.approx(2.0)
    discrete = tpl.TemporalPrivacyAccountant().compose(dp.dp_event.DiscreteLaplaceDpEvent(0.25, 1))
    assert discrete.get_epsilon(0) == pytest.approx(0.5)
    for noise in (1.0, 8.0):
        exact = dp.get_epsilon_gaussian(noise / 2 / np.sqrt(5), 1e-6)
        gaussian = tpl.TemporalPrivacyAccountant(SAME, SAME).compose(dp.GaussianDpEvent(noise), 5)
        assert exact <= gaussian.get_epsilon(1e-6) <= exact + 1e-3


def test_successive_times_however_they_are_composed():
    """What counts is the ledger, in which dp_accounting writes a count, a composition and calls in turn alike."""
    g, r = dp.GaussianDpEvent(6.0), dp.RandomizedResponseDpEvent(0.7, 3)
    account = tpl.TemporalPrivacyAccountant(CHAIN, CHAIN).compose(g, 3).compose(r).compose(g)
    again = tpl.TemporalPrivacyAccountant(CHAIN, CHAIN).compose(account.ledger)
    nested = tpl.TemporalPrivacyAccountant(CHAIN, CHAIN).compose(dp.SelfComposedDpEvent(g, 2))
    nested.compose(dp.NoOpDpEvent()).compose(dp.ComposedDpEvent([dp.ComposedDpEvent([g]), r, g]))
    profile = tpl.temporal_privacy_profile([(dp.GaussianDpEvent(3.0), 3), r, dp.GaussianDpEvent(3.0)], CHAIN, CHAIN)
    found = [one.get_epsilon(1e-5) for one in (account, again, nested, copy.deepcopy(nested))]
    assert found == pytest.approx([profile.epsilon(1e-5).max()] * 4, abs=1e-3)
    turns, rounds = (tpl.TemporalPrivacyAccountant(CHAIN, CHAIN) for _ in range(2))
    turns.compose(g).compose(r).compose(g).compose(r)
    assert rounds.compose(dp.ComposedDpEvent([g, r]), 2).get_delta(1.0) == turns.get_delta(1.0)
    assert pickle.loads(pickle.dumps(account)).compose(g).get_epsilon(1e-5) > found[0] == account.get_epsilon(1e-5)


def test_randomised_response_composes_as_often_as_it_happens():
    """dp_accounting 0.6.0 forgets the count."""
    event, once = dp.RandomizedResponseDpEvent(0.5, 2), np.log(3)
    account = tpl.TemporalPrivacyAccountant(SAME, None).compose(event, 3)
    assert account.get_epsilon(0) == pytest.approx(3 * once)
    assert account.get_epsilon(1e-3) > 2 * once
    assert PLDAccountant(ONE).compose(event, 3).get_epsilon(1e-3) < 1.01 * once


def test_calibration_of_dp_accounting_takes_it():
    noise = dp.calibrate_dp_mechanism(
        lambda: tpl.TemporalPrivacyAccountant(CHAIN, CHAIN),
        lambda multiplier: dp.SelfComposedDpEvent(dp.GaussianDpEvent(multiplier), 10),
        2.0,
        1e-6,
        tol=1e-3,
    )
    account = tpl.TemporalPrivacyAccountant(CHAIN, CHAIN).compose(dp.GaussianDpEvent(noise), 10)
    assert 1.99 < account.get_epsilon(1e-6) <= 2.0


def test_what_is_not_supported_says_why():
    for relation in (dp.NeighboringRelation.ADD_OR_REMOVE_ONE, dp.NeighboringRelation.REPLACE_SPECIAL):
        with pytest.raises(
            ValueError, match="must be REPLACE_ONE, found NeighboringRelation.*; give noise for the change"
        ):
            tpl.TemporalPrivacyAccountant(neighboring_relation=relation)
    account = tpl.TemporalPrivacyAccountant(CHAIN)
    mixture = dp.dp_event.MixtureOfGaussiansDpEvent(1.0, [0, 1], [0.5, 0.5])
    for event, message in ((mixture, "no profile is known of Mixture"), (dp.GaussianDpEvent(-1.0), "greater than 0")):
        with pytest.raises(dp.UnsupportedEventError, match=message):
            account.compose(event)
    assert (account.ledger, account.get_epsilon(1e-6)) == (dp.NoOpDpEvent(), 0.0)
    sampled = dp.PoissonSampledDpEvent(0.1, dp.ComposedDpEvent([dp.GaussianDpEvent(0.0)]))
    assert account.compose(sampled).get_delta(3.0) == pytest.approx(0.1)
    assert account.compose(dp.LaplaceDpEvent(0.0)).get_epsilon(0.5) == np.inf
