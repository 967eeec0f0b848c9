"""When a chain is relied on, by checks whose verdicts are given."""

from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace

import numpy as np
import pytest

import tplrepro as tpl
from tplreport.reporting import believable
from tplreport.reporting.allocation_schemes import COMPOSED
from tplreport.reporting.believable import (
    DoubtfulModelError,
    JudgedChain,
    doubts_in_words,
    possible_chain,
    trusted_chain,
)
from tplreport.reporting.checks import (
    DOUBTFUL,
    FINE,
    HALVES,
    REFUSED,
    RHYTHM,
    USERS,
    Check,
    CheckedChain,
)
from tplreport.reporting.counted_steps import EstimatedMatrices
from tplreport.reporting.plans import UPPER, Plan, largest_tpl, pair_of
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
    """Give the checks of all users, of whom the last are odd if they differ, and of the others."""

    def give(of_all, of_others, odd=1):
        def verdicts(rhythm, blocks, counts, smoothing):
            checks = of_others
            if blocks.n_users == N_USERS:
                checks = of_all
            found = tuple(check.name for check in checks if check.name == USERS)
            users = SimpleNamespace(odd=np.arange(N_USERS - odd, N_USERS))
            answers = SimpleNamespace(
                found=found, users=users, variation_of_users=0.5, place_before_matters=True
            )
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


def test_users_who_are_no_exception_are_not_left_out(give_checks):
    give_checks([USERS_DIFFER], [GOOD], odd=2)
    assert JudgedChain.of(walks()).without_odd_users is None


HALF_DAY = timedelta(hours=12)
NIGHT_AND_DAY = PhaseGroups(np.array([0, 1]), ["night", "day"], HALF_DAY)


def test_phases_are_the_same_if_their_steps_share_matrices_alike():
    two = NIGHT_AND_DAY
    as_well = PhaseGroups(np.array([0, 1]), ["early", "late"], HALF_DAY)
    other = PhaseGroups(np.array([1, 0]), ["night", "day"], HALF_DAY)
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


def test_the_order_is_doubted_where_no_rhythm_may_be_why(give_checks):
    give_checks([GOOD], [GOOD])
    judged = JudgedChain.of(walks())
    assert judged.doubts_order
    doubtful = Check(RHYTHM, DOUBTFUL, "habits may follow the clock", 5.0)
    assert not replace(judged, time_of_day=replace(judged.time_of_day, check=doubtful)).doubts_order
    assert not replace(judged, counted=replace(judged.counted, groups=NIGHT_AND_DAY)).doubts_order


def test_rows_vary_by_users_and_by_hours_up_to_some_number_of_states(give_checks, monkeypatch):
    give_checks([GOOD], [GOOD])
    monkeypatch.setattr(believable, "variation_of_hours", lambda data, groups: 0.25)
    monkeypatch.setattr(believable, "MOST_FOR_UPPER", 2)
    judged = JudgedChain.of(walks())
    assert judged.counted_for_anybody.variation == 0.75
    assert judged.well_known_users(Plan("exact", UPPER, np.ones(3), {}), 1.0) is not None
    monkeypatch.setattr(believable, "MOST_FOR_UPPER", 1)
    assert JudgedChain.of(walks()).counted_for_anybody.variation == 0.0
    assert judged.well_known_users(Plan("exact", UPPER, np.ones(3), {}), 1.0) is None


def test_habits_break_a_plan_that_leaks_more_than_twice_alpha_with_them(give_checks, monkeypatch):
    give_checks([GOOD], [GOOD])
    tried = []

    def look_at_shared(blocks, matrices, breaks):
        tried.append(matrices)
        return breaks(matrices)

    monkeypatch.setattr(believable, "count_well_known", look_at_shared)
    judged = JudgedChain.of(walks(), smoothing=3.0)
    plan = Plan("exact", UPPER, np.full(10, 0.3), {})
    matrices = EstimatedMatrices.of(judged.counted, 3.0)
    half = largest_tpl(plan.budgets, pair_of(judged.counted, matrices)) / 2.0
    assert judged.well_known_users(plan, 0.999 * half)
    assert not judged.well_known_users(plan, half)
    assert not judged.well_known_users(plan, 1.001 * half)
    assert tried[0].forward[0].toarray().tolist() == matrices.forward[0].toarray().tolist()


def test_doubts_say_what_is_refused_and_then_what_is_doubtful():
    said = doubts_in_words([GOOD, HABITS_CHANGE, USERS_DIFFER, TOO_FEW])
    assert said == (
        "steps is refused: there are too few steps; "
        f"{USERS} is doubtful: users differ; {HALVES} is doubtful: habits change"
    )


def test_the_possible_chains_are_those_of_a_confidence_of_95_percent(give_checks):
    give_checks([GOOD], [GOOD])
    loss = possible_chain(walks()).pair[0](1.0)
    assert loss == possible_chain(walks(), 0.95).pair[0](1.0)
    assert loss < possible_chain(walks(), 0.99).pair[0](1.0)


def test_a_plan_withstands_an_adversary_to_whom_it_leaks_just_alpha():
    loss = tpl.PrivacyLossFunction(MIXING)
    plan = np.full(4, 0.2)
    leaked = largest_tpl(plan, (loss, loss))
    believable._check_withstands(plan, leaked, UPPER, (loss, loss))
    with pytest.raises(ValueError, match="must keep alpha"):
        believable._check_withstands(plan, 0.999 * leaked, UPPER, (loss, loss))
