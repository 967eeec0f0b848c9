"""The proofs of docs/theory/private_model.md by enumeration: what one user changes, and what a
model and releases after it leak together."""

from itertools import product

import numpy as np
import pytest

import tplrepro as tpl
from tplreport.learning.first_steps import FirstSteps


def subsets(n):
    return np.array([*product([False, True], repeat=n)])


@pytest.mark.parametrize(("n", "length", "steps_per_user"), [(2, 5, 2), (2, 4, 3), (3, 3, 2)])
def test_one_user_changes_a_row_and_a_set_by_no_more_than_her_steps(n, length, steps_per_user):
    """All pairs of histories of one user, up to a length, beside two other users."""
    others = {"ann": [0, 1, 1, 0], "bob": [[1, 0], [0, 0, 1]]}
    histories = [h for size in range(1, length + 1) for h in product(range(n), repeat=size)]
    tables = []
    for history in histories:
        counted = FirstSteps.of({**others, "eve": list(history)}, n, steps_per_user, None)
        assert counted.users == 3
        tables.append(counted.counts)
    counts = np.array(tables)
    of_sets = counts @ subsets(n).T
    change = np.abs(of_sets[:, None] - of_sets[None])
    assert change.max() == steps_per_user
    in_sum = np.abs(counts[:, None] - counts[None]).sum(axis=(2, 3))
    assert in_sum.max() == 2 * steps_per_user


def chains(count, rng):
    """Chains of two states, some of them nearly deterministic."""
    for _ in range(count):
        rows = rng.beta(0.5, 0.5, size=(2, 2))
        rows = np.clip(rows / rows.sum(axis=1, keepdims=True), 1e-3, 1 - 1e-3)
        yield tpl.TransitionMatrix(rows, normalize=True)


class Histories:
    """All histories of a chain that starts in its habit, with their probabilities."""

    def __init__(self, chain, times):
        self.states = np.array([*product(range(2), repeat=times)])
        probabilities = chain.stationary()[self.states[:, 0]]
        rows = chain.toarray()
        for earlier, later in zip(self.states.T, self.states.T[1:], strict=False):
            probabilities = probabilities * rows[earlier, later]
        self.probabilities = probabilities

    def largest_leakage(self, likelihoods, time):
        """About one time, of outputs with these likelihoods (outputs, histories)."""
        means = []
        for state in range(2):
            is_there = self.states[:, time] == state
            weights = self.probabilities[is_there]
            means.append(likelihoods[:, is_there] @ weights / weights.sum())
        return np.abs(np.log(means[0] / means[1])).max()


def worst_models(training, epsilon):
    """All models that make one set of training histories e^epsilon times as likely as the rest,
    (2^(2^training), 2^training)."""
    return np.exp(epsilon * subsets(2**training))


def worst_releases(states, budgets):
    """All outputs that are e^epsilon_t times as likely in one state as in the other, at each
    time."""
    rows = []
    for favoured in product(range(2), repeat=len(budgets)):
        log_likelihoods = (states == np.array(favoured)) @ budgets
        rows.append(np.exp(log_likelihoods))
    return np.array(rows)


@pytest.mark.parametrize("training", [1, 2, 3])
def test_a_model_of_the_past_leaks_as_one_release_of_its_last_time(training):
    """All extreme models, of which every other one is a mixture, with all extreme outputs of three
    releases, for chains and budgets at random."""
    rng = np.random.default_rng(training)
    closest = 0.0
    for chain in chains(20, rng):
        epsilon, *budgets = rng.uniform(0.05, 1.0, size=4)
        histories = Histories(chain, training + 3)
        first = histories.states[:, :training] @ (2 ** np.arange(training)[::-1])
        models = worst_models(training, epsilon)[:, first]
        releases = worst_releases(histories.states[:, training:], np.array(budgets))
        together = (models[:, None] * releases[None]).reshape(-1, histories.states.shape[0])
        tpl_of_series = tpl.temporal_privacy_leakage(
            [epsilon, *budgets], chain.reverse(), chain
        ).tpl
        for time in range(training + 3):
            bound = tpl_of_series[max(time - training + 1, 0)]
            leaked = histories.largest_leakage(together, time)
            assert leaked <= bound * (1 + 1e-9)
            closest = max(closest, leaked / bound)
    assert closest > 0.999


def test_a_model_of_all_times_adds_its_epsilon():
    """A model that looks at the published times, too: here the bound of the past is broken, and the
    sum holds."""
    rng = np.random.default_rng(9)
    is_above_the_past = False
    for chain in chains(20, rng):
        epsilon, *budgets = rng.uniform(0.05, 1.0, size=4)
        histories = Histories(chain, 3)
        releases = worst_releases(histories.states, np.array(budgets))
        models = worst_models(3, epsilon)
        together = (models[:, None] * releases[None]).reshape(-1, 8)
        alone = tpl.temporal_privacy_leakage(budgets, chain.reverse(), chain).tpl
        after = tpl.temporal_privacy_leakage([epsilon, *budgets], chain.reverse(), chain).tpl[1:]
        for time in range(3):
            leaked = histories.largest_leakage(together, time)
            assert leaked <= (epsilon + alone[time]) * (1 + 1e-9)
            is_above_the_past |= leaked > after[time] * (1 + 1e-9)
    assert is_above_the_past


@pytest.mark.parametrize("alpha", [0.3, 1.0, 3.0])
def test_a_model_within_the_supremum_of_the_plan_is_free(alpha):
    """With epsilon up to sup BPL of the largest floor, that floor remains for ever."""
    rng = np.random.default_rng(11)
    for chain in chains(30, rng):
        backward = chain.reverse()
        floor = tpl.allocate_by_upper_bound(alpha, backward, chain)
        most = tpl.PrivacyLossFunction(backward).supremum(floor)
        account = tpl.TemporalFilter(alpha, backward, chain, floor=floor)
        assert account.remaining == pytest.approx(most, rel=1e-6)
        account.spend(account.remaining)
        account.spend(floor, 500)
        budgets = [most * (1 - 1e-9), *[floor] * 500]
        leaked = tpl.temporal_privacy_leakage(budgets, backward, chain).tpl
        assert alpha * (1 - 1e-3) < leaked.max() <= alpha * (1 + 1e-9)
