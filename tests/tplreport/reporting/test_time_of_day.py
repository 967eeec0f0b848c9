"""Reports on people whose habits follow the clock: the right check doubts them or not, and the plan
that is recommended keeps its promise under the true habits."""

import json
from dataclasses import replace
from datetime import timedelta
from functools import cache
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import tplfrontier as tf
import tplreport as tr
import tplrepro as tpl
from tests.tplreport.people.test_rhythm import lasting, people, staying
from tplreport.reporting import checks, time_of_day
from tplreport.reporting.allocation_schemes import COMPOSED
from tplreport.reporting.believable import (
    DoubtfulModelError,
    JudgedChain,
    possible_chain,
    trusted_chain,
)
from tplreport.reporting.plans import (
    ESTIMATE,
    PRIOR_FREE,
    UPPER,
    WORST_USER,
    Plan,
    largest_tpl,
    steps_by_group,
)
from tplrepro.markov import Sequences, count_transitions
from tplrepro.markov.phases import count_by_group, group_phases

MIXING = np.array([[0.6, 0.3, 0.1], [0.25, 0.5, 0.25], [0.1, 0.3, 0.6]])
#: The matrices of 24 hours.
HABITS = {
    "three states, nearly still at night": [staying(0.99, 3)] * 6 + [MIXING] * 18,
    "two states, .98 at night": [staying(0.98)] * 6 + [staying(0.85)] * 18,
    "two states, .95 at night": [staying(0.95)] * 4 + [staying(0.75)] * 20,
}
#: What α/T errs, and what the recommended plan may at most.
ERROR_OF_SHARES = 96.0
ERRORS = dict(zip(HABITS, (18.0, 27.0, 14.0), strict=True))


@cache
def data_of(name):
    return people(0, 100, 14, HABITS[name])


@cache
def truth_of(name):
    cycle = tpl.Cycle(HABITS[name], step="1h")
    return cycle.reverse(), cycle


def verdicts_of(report):
    return {check.name: check.verdict for check in report.checks}


def plan_of(report, scheme, against):
    (plan,) = (
        plan for plan in report.plans if plan.scheme.startswith(scheme) and plan.against == against
    )
    return plan


@pytest.fixture(scope="module")
def advice():
    data = data_of("two states, .95 at night")
    return tr.report(data, 1.0, 48, draws=20, title="by the clock", progress=False)


@pytest.mark.parametrize("name", HABITS)
def test_a_plan_by_the_clock_keeps_alpha_where_one_for_all_hours_does_not(name):
    data = data_of(name)
    truth = truth_of(name)
    pooled = tr.report(data, 1.0, 48, draws=0, cycle=None)
    for_all_hours = plan_of(pooled, "Algorithm 8", ESTIMATE)
    assert largest_tpl(for_all_hours.budgets, truth) > 1.2
    assert verdicts_of(pooled)[checks.RHYTHM] == checks.DOUBTFUL
    assert pooled.recommendation.scheme == COMPOSED
    by_clock = tr.report(data, 1.0, 48, draws=0)
    assert set(verdicts_of(by_clock).values()) == {checks.FINE}
    assert "habits follow the clock" in by_clock.checks[0].sentence
    plan = by_clock.recommendation
    assert plan.scheme != COMPOSED
    assert largest_tpl(plan.budgets, truth) <= 1.0
    assert plan.error < ERRORS[name] < ERROR_OF_SHARES / 3
    assert by_clock.plans[0].error == pytest.approx(ERROR_OF_SHARES, rel=1e-5)


@pytest.mark.parametrize("name", HABITS)
def test_other_hours_are_ruled_out_where_all_users_keep_the_same(name):
    """What phases add to the habits of all is asked at the phases of these hours, too."""
    judged = JudgedChain.of(data_of(name))
    assert judged.checked.answers.users.of_spreads.max() < -5.0
    assert judged.users.shifts == ()


def test_each_plan_keeps_alpha_against_its_adversary_from_the_hour_that_is_said(advice):
    assert {plan.against for plan in advice.plans} == {
        "anybody",
        ESTIMATE,
        UPPER,
        PRIOR_FREE,
        WORST_USER,
    }
    for plan in advice.plans:
        assert plan.tpl.get(plan.against, plan.user_level) <= 1.0
        for name, pair in advice.adversaries.items():
            assert largest_tpl(plan.budgets, pair) == plan.tpl[name]
    of_phases = plan_of(advice, "Algorithm 7", UPPER).budgets
    assert (of_phases[:24] == of_phases[24:]).all()
    assert of_phases[0] < of_phases[12]


def test_the_upper_end_of_all_phases_holds_at_once(advice):
    """It is that of the counts of each block, whose confidence is shared by all, and which tell
    less of the row of one user at one hour."""
    data = data_of("two states, .95 at night")
    groups = group_phases(6, data.step)
    counts = count_by_group(data, groups).toarray().reshape(6, 2, 2)
    forward = advice.adversaries[UPPER][1]
    variation = JudgedChain.of(data).counted_for_anybody.variation
    assert 0.0 < variation < 0.002
    told = counts / (1.0 + variation * counts.sum(axis=2, keepdims=True))
    expected = tf.loss_from_counts(told, 0.975)
    assert [forward[hour](0.7) for hour in range(24)] == [
        expected[hour // 4](0.7) for hour in range(24)
    ]


def test_the_plan_begins_at_the_phase_that_is_asked_for():
    name = "two states, .95 at night"
    data = data_of(name)
    backward, forward = truth_of(name)
    noon = tr.report(data, 1.0, 30, draws=0, first="12:00")
    truth = backward.starting_at("12:00"), forward.starting_at("12:00")
    assert largest_tpl(noon.recommendation.budgets, truth) <= 1.0
    assert noon.budgets["phase"].tolist()[:13:12] == ["12:00", "00:00"]
    assert "the first one at 12:00" in noon.sentences[1]
    for same in ("Fri 12:00", "2024-05-10 12:30"):
        assert JudgedChain.of(data, first=same).counted.cycle.phases[0] == noon.rhythm.first
    same = pd.Timestamp("2024-05-10 12:00", tz="UTC")
    again = tr.report(data, 1.0, 30, draws=0, first=same)
    assert again.recommendation.budgets.tolist() == noon.recommendation.budgets.tolist()
    json.dumps(again.to_dict(), allow_nan=False)
    with pytest.raises(ValueError, match=r"first must be a date .* '00:00', .*, found 'noon'"):
        tr.report(data, 1.0, 30, draws=0, first="noon")


def test_all_that_a_report_shows_says_the_phases(advice):
    name = advice.recommendation.name
    assert [*advice.budgets][:2] == ["t", "phase"]
    assert advice.budgets["phase"].tolist()[:25:24] == ["00:00", "00:00"]
    assert "the first one at 00:00" in advice.sentences[1]
    assert "6 chains in turn (blocks of 4 hours of a day)" in advice.sentences[3]
    assert "users who start in the habit" in advice.sentences[3]
    assert "a first release at another time than 00:00" in advice.sentences[4]
    assert "users who start in the habit" in advice.notes[0]
    assert advice.interval.lower <= advice.interval.upper
    found = json.loads(json.dumps(advice.to_dict(), allow_nan=False))
    assert found["rhythm"]["period"] == "day"
    assert found["rhythm"]["of_releases"] == advice.budgets["phase"].tolist()
    assert found["settings"]["cycle"] == "auto"
    page = advice.to_html()
    for said in ("time of day and of week", "6 chains in turn", "the first one at 00:00"):
        assert said in page
    assert advice.plot().get_xlabel() == "release $t$, the first at 00:00"
    said = advice.judge(advice.recommendation.budgets)
    assert (said.answer, said.worst) == (
        "yes",
        max(leaked for who, leaked in advice.recommendation.tpl.items() if who != PRIOR_FREE),
    )
    assert name in str(advice)


def test_one_chain_for_all_hours_has_the_numbers_that_it_has_without_times():
    """But for the upper end: single hours may differ a little from all."""
    data = people(1, 40, 14, [staying(0.7)])
    without = replace(data, starts=None, step=None)
    timed = tr.report(data, 1.0, 12, draws=4, progress=False)
    untimed = tr.report(without, 1.0, 12, draws=4, progress=False)
    assert timed.checks[0].verdict == checks.FINE
    assert timed.checks[0].sentence.startswith("one chain predicts all hours and days by the clock")
    assert untimed.checks[0].verdict == checks.UNCHECKED
    assert "no times of day are known; read a column of dates" in untimed.checks[0].sentence
    assert timed.rhythm is None
    assert "phase" not in timed.budgets
    assert verdicts_of(timed)[checks.USERS] == verdicts_of(untimed)[checks.USERS] == checks.FINE
    others = [
        [check for check in found.checks[1:] if check.name != checks.USERS]
        for found in (timed, untimed)
    ]
    assert others[0] == others[1]  # users may also differ by parts of the day, if these are known
    for adversary in (ESTIMATE, PRIOR_FREE):
        assert timed.planned[adversary] == untimed.planned[adversary]
    assert untimed.planned[UPPER] < timed.planned[UPPER] < 1.1 * untimed.planned[UPPER]
    assert timed.smoothings == untimed.smoothings
    assert timed.interval.values.tolist() == untimed.interval.values.tolist()


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (timedelta(hours=7), "steps of 7:00:00 have no time of day or of the week"),
        (timedelta(hours=25), "a period must be a whole number of steps"),
        (timedelta(days=7), "steps of 7 days, 0:00:00 have no time of day or of the week"),
    ],
)
def test_steps_that_are_no_part_of_a_day_are_not_checked(step, said):
    data = replace(people(2, 30, 4, [staying(0.6)]), step=step)
    check = tr.report(data, 1.0, 3, draws=0).checks[0]
    assert check.verdict == checks.UNCHECKED
    assert said in check.sentence


def test_a_weekend_has_the_cycle_of_a_week_and_that_of_a_day_stays_doubtful():
    week = [staying(0.7)] * 24 * 5 + [staying(0.95)] * 48
    data = people(1, 40, 28, week)
    found = tr.report(data, 1.0, 24, draws=0)
    assert found.rhythm.period == "week"
    assert found.rhythm.first == "Mon 00:00"
    truth = tpl.Cycle(week, step="1h")
    assert largest_tpl(found.recommendation.budgets, (truth.reverse(), truth)) <= 1.0
    by_day = tr.report(data, 1.0, 24, draws=0, cycle="day")
    assert by_day.checks[0].verdict == checks.DOUBTFUL
    assert "report by the cycle of a week" in by_day.checks[0].sentence
    assert by_day.recommendation.scheme == COMPOSED
    with pytest.raises(ValueError, match="found '12:00'"):
        tr.report(data, 1.0, 24, draws=0, first="12:00")
    friday = tr.report(data, 1.0, 24, draws=0, first="2024-05-10 12:00")
    backward, forward = (side.starting_at("Fri 12:00") for side in (truth.reverse(), truth))
    assert largest_tpl(friday.recommendation.budgets, (backward, forward)) <= 1.0
    assert friday.budgets["phase"].tolist()[11:13] == ["Fri 23:00", "Sat 00:00"]


def test_a_cycle_that_is_asked_for_is_given_although_one_chain_would_do():
    data = people(1, 40, 14, [staying(0.7)])
    for period in ("day", "week"):
        found = tr.report(data, 1.0, 10, draws=0, cycle=period)
        assert found.rhythm.period == period
        assert "as asked for" in found.checks[0].sentence
        assert found.checks[0].verdict == checks.FINE
        plan = found.recommendation
        chain = tpl.TransitionMatrix(staying(0.7))
        assert largest_tpl(plan.budgets, (chain.reverse(), chain)) <= 1.0
    untimed = replace(data, starts=None, step=None)
    with pytest.raises(ValueError, match="cycle='week' needs the phases of a week, but no times"):
        tr.report(untimed, 1.0, 10, draws=0, cycle="week")
    with pytest.raises(ValueError, match="cycle must be one of 'auto', 'day', 'week', None"):
        tr.report(data, 1.0, 10, draws=0, cycle="month")


@pytest.mark.parametrize(
    ("users", "said"), [(1, "7 of 12 phases (blocks of 2 hours)"), (40, "1 of 2 phases")]
)
def test_phases_at_which_nobody_was_seen_are_doubted(users, said):
    """Their chains are those of all hours, with which no plan but α/T is recommended."""
    data = people(1, users, 1, [staying(0.7)])
    morning = data.gather(data.offsets[:-1], data.offsets[:-1] + 10, np.arange(users))
    found = tr.report(morning, 1.0, 12, draws=5, progress=False, cycle="day")
    assert found.checks[0].verdict == checks.DOUBTFUL
    assert f"no step was seen at {said}" in found.checks[0].sentence
    assert "give data of each part of a day" in found.checks[0].sentence
    assert found.recommendation.scheme == COMPOSED
    assert {plan.against for plan in found.plans} >= {ESTIMATE, UPPER}


def test_the_clock_is_that_of_the_zone_of_the_times():
    """A rhythm by the clock of New York, which is found in instants of UTC as well, and said."""
    data = people(5, 40, 14, [staying(0.97)] * 6 + [staying(0.6)] * 18)
    local = pd.date_range("2024-05-06", periods=14 * 24, freq="1h", tz="America/New_York")
    rows = pd.DataFrame(
        {
            "user": np.repeat(data.users, data.lengths),
            "time": np.tile(local, len(data)),
            "state": data.values,
        }
    )
    found = tr.report(tr.read_sequences(rows, step="1h"), 1.0, 24, draws=0)
    assert "habits follow the clock of America/New_York" in found.checks[0].sentence
    assert found.rhythm.zone == "America/New_York"
    night = plan_of(found, "Algorithm 7", UPPER).budgets[:6]
    day = plan_of(found, "Algorithm 7", UPPER).budgets[6:]
    assert night.max() < day.max()


def test_how_long_a_user_has_stayed_is_doubted_by_its_own_name():
    found = tr.report(lasting(0, 30, 14), 1.0, 12, draws=0)
    assert verdicts_of(found)[checks.RHYTHM] == checks.FINE
    order = found.checks[1]
    assert (order.name, order.verdict) == (checks.ORDER, checks.DOUBTFUL)
    assert "how long a user has been in a place" in order.sentence
    assert "states that say how long" in order.sentence
    assert found.recommendation.scheme == COMPOSED


def joined(first, second):
    """The users of both."""
    return Sequences(
        np.concatenate([first.values, second.values]),
        np.concatenate([first.offsets, first.offsets[-1] + second.offsets[1:]]),
        first.labels,
        np.arange(len(first) + len(second)),
        starts=np.concatenate([first.starts, second.starts]),
        step=first.step,
    )


def test_users_who_differ_are_doubted_beside_a_rhythm():
    calm = people(3, 30, 14, [staying(0.97)] * 6 + [staying(0.9)] * 18)
    lively = people(4, 30, 14, [staying(0.9)] * 6 + [staying(0.55)] * 18)
    found = tr.report(joined(calm, lively), 1.0, 24, draws=0)
    assert verdicts_of(found)[checks.RHYTHM] == checks.FINE
    assert verdicts_of(found)[checks.USERS] == checks.DOUBTFUL
    assert found.recommendation.scheme == COMPOSED
    personal = tr.report(joined(calm, lively), 1.0, 24, draws=0, against=WORST_USER)
    plan = personal.recommendation
    assert plan.tpl[WORST_USER] <= 1.0


def test_a_publisher_gets_the_cycle_and_one_matrix_for_all_hours_is_refused():
    data = data_of("two states, .95 at night")
    backward, forward = trusted_chain(data, 1.0, None)
    assert (len(backward), forward.period, forward.phases[0]) == (24, "day", "00:00")
    with pytest.raises(DoubtfulModelError, match="time of day and of week is doubtful"):
        trusted_chain(data, 1.0, None, cycle=None)
    assert not isinstance(trusted_chain(data, 1.0, None, cycle=None, anyway=True)[0], tpl.Cycle)
    found = possible_chain(data, first="06:00")
    assert found.pair[1].phases[0] == "06:00"
    assert found.doubts == ""
    assert "habits follow the clock" in possible_chain(data, cycle=None).doubts


def test_a_plan_is_judged_from_the_phase_at_which_it_begins():
    data = data_of("two states, .95 at night")
    plan = tr.report(data, 1.0, 24, draws=0, against=WORST_USER).recommendation.budgets
    trusted_chain(data, 1.0, plan, against=WORST_USER)
    with pytest.raises(ValueError, match="the plan must keep alpha = 1 against"):
        trusted_chain(data, 1.0, plan, against=WORST_USER, first="20:00")


def test_a_single_user_has_draws_of_the_posterior_of_each_phase():
    data = people(0, 1, 365, [staying(0.95)] * 6 + [staying(0.6)] * 18)
    found = tr.report(data, 1.0, 24, draws=10, progress=False)
    assert found.rhythm is not None
    assert found.interval.lower < found.planned[ESTIMATE] * 1.05
    assert found.interval.upper > found.planned[ESTIMATE] * 0.95
    assert WORST_USER not in found.adversaries


@pytest.mark.slow
def test_clean_chains_have_no_rhythm_and_are_not_doubted():
    rhythms = 0
    doubts = 0
    for seed in range(200, 220):
        n = 2 + seed % 3
        matrix = np.random.default_rng(seed).dirichlet(np.ones(n), n)
        data = people(seed, (40, 6)[seed % 2], 14, [matrix])
        found = tr.report(data, 1.0, 5, draws=0)
        rhythms += found.rhythm is not None
        doubts += any(check.verdict == checks.DOUBTFUL for check in found.checks[1:4])
    assert rhythms <= 1
    assert doubts <= 2


def test_users_who_differ_a_little_at_all_hours_are_doubted_beside_many_phases():
    """For their own chains at each hour there are too few steps; all hours together have enough."""
    nights = [staying(0.95)] * 6
    calm = people(3, 30, 14, [*nights, *(staying(0.85 - 0.02 * hour) for hour in range(18))])
    lively = people(4, 30, 14, [*nights, *(staying(0.72 - 0.02 * hour) for hour in range(18))])
    judged = JudgedChain.of(joined(calm, lively), "auto")
    assert judged.counted.groups.n_groups > 4
    assert checks.USERS in judged.checked.answers.found
    alone = JudgedChain.of(people(3, 60, 14, [*nights] + [staying(0.6)] * 18))
    assert alone.checked.answers.found == ()


@pytest.mark.parametrize("days_of_user", [7, 4])
def test_a_weekend_is_neither_a_change_of_habits_nor_a_difference_of_users(days_of_user):
    """In one week, which ends with it; and of users who are seen on different days of it."""
    week = [staying(0.6)] * 24 * 5 + [staying(0.98)] * 48
    data = people(2, 120, 7, week)
    length = 24 * days_of_user
    begins = data.offsets[:-1] + np.arange(120) % 3 * 24 * (7 - days_of_user) // 2
    shorter = data.gather(begins, begins + length, np.arange(120))
    judged = JudgedChain.of(shorter)
    assert judged.counted.cycle.period == "week"
    assert {check.verdict for check in judged.checked.checks} == {checks.FINE}


def test_steps_that_tell_no_hours_have_no_evidence():
    rhythm = SimpleNamespace(matters=False, candidates=[], sequences=SimpleNamespace(step="5h"))
    check = time_of_day._check_of_one_chain(rhythm, "the clock")
    assert (check.verdict, check.value) == ("not checked", 0.0)
    assert check.sentence == "steps of 5h have no time of day or of the week"


def test_steps_of_a_group_of_phases_are_those_that_are_counted_there():
    data = people(3, 6, 7, [staying(0.8)] * 12 + [staying(0.7)] * 12)
    short = replace(data.select(np.arange(1)), offsets=np.array([0, 1]), values=data.values[:1])
    groups = group_phases(2, data.step)
    for some in (data, joined(short, data)):
        counts = count_by_group(some, groups).toarray().reshape(2, 2, 2)
        parts = list(steps_by_group(some, groups))
        for part, expected in zip(parts, counts, strict=True):
            found, _ = count_transitions(part, n_states=2)
            assert found.toarray().tolist() == expected.tolist()
            assert (part.lengths == 2).all()


def test_a_plan_counts_releases_from_one():
    assert Plan("any", UPPER, np.array([0.1, 0.2]), {}).to_frame().index.tolist() == [1, 2]
    assert len(Plan("any", UPPER, None, {}).to_frame()) == 0
