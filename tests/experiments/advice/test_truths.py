"""What is true of simulated users: their walks, and the leakage of budgets about them."""

import itertools

import numpy as np
import pytest

import tplrepro as tpl
from experiments.advice import kinds, truths

LAZY = np.array([[0.8, 0.2], [0.2, 0.8]])
LIVELY = np.array([[0.6, 0.4], [0.3, 0.7]])
BUDGETS = np.linspace(0.1, 0.3, 6)


def recursion(matrix, budgets):
    return tpl.temporal_privacy_leakage(budgets, tpl.TransitionMatrix(matrix).reverse(), matrix)


def as_shown_chain(matrix):
    return truths.ShownChain(matrix, np.arange(len(matrix)), 1)


def test_leakage_of_chains_is_that_of_the_worst_user():
    truth = truths.Chains(np.array([LIVELY, LAZY, np.eye(2)]), np.array([0, 1, 0]))
    expected = recursion(LAZY, BUDGETS).tpl.max()
    assert truth.tpl(BUDGETS) == pytest.approx(expected, rel=1e-12)
    three_steps = LAZY @ LAZY @ LAZY
    expected = recursion(three_steps, BUDGETS).tpl.max()
    assert truth.tpl(BUDGETS, every=3) == pytest.approx(expected, rel=1e-12)


def test_a_drift_between_equal_matrices_is_one_chain():
    expected = recursion(LAZY, BUDGETS).tpl.max()
    assert truths.Drift(LAZY, LAZY, 1).tpl(BUDGETS) == pytest.approx(expected, rel=1e-12)
    expected = truths.Chains(LAZY[None], np.array([0])).tpl(BUDGETS, every=3)
    assert truths.Drift(LAZY, LAZY, 1).tpl(BUDGETS, every=3) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("every", [1, 3])
def test_joint_laws_leak_what_the_recursion_says_about_two_places(every):
    """With three places the recursion is an upper bound, as the worst likelihoods of all releases
    together may not exist."""
    expected = truths.tpl_of_chain(LIVELY, BUDGETS, every)
    assert as_shown_chain(LIVELY).tpl(BUDGETS, every) == pytest.approx(expected, rel=1e-12)
    rows = kinds.random_chain(3, np.random.default_rng(1))
    bound = truths.tpl_of_chain(rows, BUDGETS, every)
    assert 0.8 * bound < as_shown_chain(rows).tpl(BUDGETS, every) < bound


@pytest.mark.parametrize("every", [1, 3])
def test_chains_in_turn_leak_what_their_joint_law_says(every):
    hidden = np.zeros((2, 2, 2, 2))
    for before, place in itertools.product(range(2), repeat=2):
        hidden[before, place, place] = LIVELY[before]
    joint = truths.ShownChain(hidden.reshape(4, 4), np.array([0, 1, 0, 1]), 1)
    found = truths.ChainsInTurn(LIVELY, 1).tpl(BUDGETS, every)
    assert found == pytest.approx(joint.tpl(BUDGETS, every), rel=1e-12)


def test_joint_law_leaks_what_every_pair_of_outcomes_of_a_mechanism_shows():
    """Randomized response of two places cannot leak more, and with these budgets leaks as much."""
    truth = kinds.random_truth(kinds.STAYS, 1, rng=np.random.default_rng(1))
    assert set(truth.places) == {0, 1}
    budgets = np.array([0.3, 0.2, 0.4])
    law = truth.law_of_places(3)
    assert law.sum() == pytest.approx(1.0)
    largest = 0.0
    for time, shown in itertools.product(range(3), itertools.product(range(2), repeat=3)):
        likelihood = np.zeros(2)
        for places in itertools.product(range(2), repeat=3):
            honest = np.array(places) == np.array(shown)
            likelihood[places[time]] += law[places] * np.exp(budgets @ honest)
        given = likelihood / law.sum(axis=tuple({0, 1, 2} - {time}))
        largest = max(largest, abs(np.log(given[0] / given[1])))
    assert truth.tpl(budgets) == pytest.approx(largest, rel=1e-12)


@pytest.mark.parametrize("kind", [kinds.SECOND_ORDER, kinds.STAYS])
def test_no_law_leaks_more_than_all_budgets_together(kind):
    truth = kinds.random_truth(kind, 1, rng=np.random.default_rng(4))
    assert 0.3 < truth.tpl(np.full(4, 0.3)) <= np.full(4, 0.3).sum()


def test_walks_are_by_the_law_of_places():
    """Frequencies of triples of places over many users, within five standard errors."""
    rng = np.random.default_rng(0)
    for kind in (kinds.SECOND_ORDER, kinds.STAYS, kinds.IN_TURN, kinds.ONE_CHAIN):
        truth = kinds.random_truth(kind, 20_000, rng=rng)
        walks = truth.walks(3, rng=rng)
        assert walks.shape == (20_000, 3)
        if kind == kinds.IN_TURN:
            joint = np.histogram2d(*walks[:, [0, 2]].T, bins=np.arange(len(truth.matrix) + 1))[0]
            expected = truths.habit_of(truth.matrix)[:, None] * truth.matrix
        else:
            chain = truth
            if kind == kinds.ONE_CHAIN:
                chain = as_shown_chain(truth.matrices[0])
            expected = chain.law_of_places(3)
            joint = np.zeros(expected.shape)
            np.add.at(joint, tuple(walks.T), 1)
        error = np.sqrt(20_000 * expected)
        assert (np.abs(joint - 20_000 * expected) <= 5 * error + 1).all()


@pytest.mark.parametrize("kind", kinds.KINDS)
def test_each_kind_has_as_many_users_as_it_is_asked_for(kind):
    truth = kinds.random_truth(kind, 7, rng=np.random.default_rng(2))
    assert truth.n_users == 7
    assert truth.walks(5, rng=np.random.default_rng(0)).shape == (7, 5)


def test_odd_users_are_few_and_stay():
    rng = np.random.default_rng(0)
    for kind, least, most in ((kinds.GROUP, 2, 10), (kinds.ODD_ONES, 1, 2)):
        for _ in range(20):
            truth = kinds.random_truth(kind, 100, rng=rng)
            assert least <= truth.of_user.sum() <= most
            assert np.diag(truth.matrices[1]).min() >= 0.97
            assert np.diag(truth.matrices[0]).min() < 0.97
