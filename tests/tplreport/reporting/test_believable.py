"""When a chain is relied on, by checks whose verdicts are given."""

from datetime import timedelta
from types import SimpleNamespace

import numpy as np
import pytest

import tplrepro as tpl
from tplreport.reporting import believable
from tplreport.reporting.allocation_schemes import COMPOSED
from tplreport.reporting.believable import DoubtfulModelError, JudgedChain, trusted_chain
from tplreport.reporting.checks import DOUBTFUL, FINE, HALVES, REFUSED, USERS, Check, CheckedChain
from tplreport.reporting.plans import UPPER, Plan
from tplrepro.markov import as_sequences
from tplrepro.markov.phases import PhaseGroups

#: Users of all data here; those without odd ones are fewer.
N_USERS = 5
MIXING = tpl.TransitionMatrix([[0.6, 0.4], [0.3, 0.7]])
#: Verdicts that agree with a chain, doubt it, and refuse it.
GOOD = Check(HALVES, FINE, "habits stay", 0.0)
HABITS_CHANGE = Check(HALVES, DOUBTFUL, "habits change", 5.0)
TOO_FEW = Check("steps", REFUSED, "there are too few steps", 0.0)
USERS_DIFFER = Check(USERS, DOUBTFUL, "users differ", 9.0)


def walks(users=N_USERS):
    rng = np.random.default_rng(0)
    return as_sequences({f"u{k}": MIXING.sample(40, rng=rng) for k in range(users)})


@pytest.fixture
def give_checks(monkeypatch):
    """Give the checks of all users, of whom the last is odd if they differ, and of the others."""

    def give(of_all, of_others):
        def verdicts(rhythm, blocks, counts, smoothing):
            checks = of_others
            if blocks.n_users == N_USERS:
                checks = of_all
            found = tuple(check.name for check in checks if check.name == USERS)
            users = SimpleNamespace(odd=np.array([N_USERS - 1]))
            answers = SimpleNamespace(found=found, users=users, variation_of_users=0.0)
            return CheckedChain(tuple(checks), answers)

        monkeypatch.setattr(believable, "check_chain", verdicts)

    return give


@pytest.mark.parametrize("doubt", [HABITS_CHANGE, TOO_FEW])
def test_odd_users_are_left_out_only_where_nothing_is_wrong_about_the_others(give_checks, doubt):
    give_checks([USERS_DIFFER], [GOOD])
    others = JudgedChain.of(walks()).without_odd_users
    assert others.blocks.names.tolist() == ["u0", "u1", "u2", "u3"]
    give_checks([USERS_DIFFER], [GOOD, doubt])
    judged = JudgedChain.of(walks())
    assert judged.without_odd_users is None
    assert judged.shared is judged


def test_phases_are_the_same_if_their_steps_share_matrices_alike():
    hours = timedelta(hours=12)
    two = PhaseGroups(np.array([0, 1]), ["night", "day"], hours)
    as_well = PhaseGroups(np.array([0, 1]), ["early", "late"], hours)
    other = PhaseGroups(np.array([1, 0]), ["night", "day"], hours)
    have_same = believable._have_same_phases
    assert have_same(None, None)
    assert have_same(two, as_well)
    assert not have_same(two, other)
    assert not have_same(two, None)
    assert not have_same(None, two)


def test_a_plan_within_alpha_in_sum_needs_no_chain(give_checks):
    give_checks([HABITS_CHANGE], [])
    whole = np.array([0.5, 0.25, 0.25])
    pair = trusted_chain(walks(), 1.0, whole)
    assert pair[0](1.0) > 0.0
    with pytest.raises(DoubtfulModelError, match="habits change"):
        trusted_chain(walks(), 1.0, 1.01 * whole)
    trusted_chain(walks(), 1.0, 1.01 * whole, anyway=True)


def test_odd_users_are_answered_by_a_plan_and_by_nothing_else(give_checks):
    give_checks([USERS_DIFFER], [GOOD])
    assert JudgedChain.of(walks()).is_answered
    with pytest.raises(DoubtfulModelError, match="users differ"):
        trusted_chain(walks(), 1.0, None)


def test_nobodys_habits_break_shares_of_alpha_or_the_plan_of_a_single_user(give_checks):
    give_checks([GOOD], [GOOD])
    budgets = np.full(10, 0.3)
    judged = JudgedChain.of(walks())
    assert judged.well_known_users(Plan("exact", UPPER, budgets, {}), 1.0) is not None
    assert judged.well_known_users(Plan(COMPOSED, UPPER, budgets, {}), 1.0) is None
    single = JudgedChain.of(walks(1))
    assert single.well_known_users(Plan("exact", UPPER, budgets, {}), 1.0) is None


def test_smoothing_adds_one_step_to_each_row_unless_it_is_given():
    assert JudgedChain.of(walks()).smoothing == 1.0
    assert JudgedChain.of(walks(), smoothing=0.0).smoothing == 0.0
