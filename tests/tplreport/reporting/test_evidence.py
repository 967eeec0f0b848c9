"""E-values: against sums over single steps, in any order, and for worlds with odd users."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.special import gammaln

import tplreport as tr
import tplrepro as tpl
from tests.tplreport.people.test_rhythm import people, staying
from tests.tplreport.reporting.test_time_of_day import joined
from tplfrontier.chains.confidence import loss_from_counts
from tplreport.people.rhythm import evidence_of_finer_phases
from tplreport.reporting import believable, checks, counted_steps, evidence, plans, steps_of_users
from tplreport.reporting.allocation_schemes import COMPOSED
from tplreport.reporting.believable import JudgedChain, trusted_chain
from tplreport.reporting.checks import DOUBTFUL, FINE, REFUSED, UNCHECKED, check_amount, check_users
from tplreport.reporting.counted_steps import CountedSteps
from tplreport.reporting.evidence import WEIGHTS, Given, Habits, JudgedBlock, Tables
from tplreport.reporting.habits_of_users import HabitsOfUser, losses_of_user, users_apart
from tplreport.reporting.plans import UPPER, WORST_USER
from tplreport.reporting.steps_of_users import FOLDS, Clock, StepBlocks, steps_of_block
from tplreport.reporting.time_of_day import variation_of_hours
from tplrepro.markov import as_sequences
from tplrepro.markov.phases import count_by_group, group_phases
from tplrepro.markov.sequences import Sequences

MIXING = tpl.TransitionMatrix([[0.6, 0.4], [0.3, 0.7]])
STILL = tpl.TransitionMatrix([[0.99, 0.01], [0.01, 0.99]])


def walks_with_odd_users(odd, users=100, length=400, seed=0):
    """Users who mix, but for the last `odd` of them, who stay where they are."""
    rng = np.random.default_rng(seed)
    ordinary = {f"u{k}": MIXING.sample(length, rng=rng) for k in range(users - odd)}
    return ordinary | {f"z{k}": STILL.sample(length, rng=rng) for k in range(odd)}


def look_at(blocks):
    tables = Tables.merged([Tables.of(steps, min(FOLDS, blocks.n_users)) for steps in blocks])
    return evidence.look(blocks, evidence.HabitsOfAll.of(tables, blocks.clock), Given())


@pytest.fixture(scope="module")
def by_hours():
    data = people(1, 20, 6, [staying(0.95, 3)] * 8 + [staying(0.5, 3)] * 16)
    return StepBlocks.of(data, group_phases(4, timedelta(hours=1)))


def test_predictions_are_probabilities_of_the_next_state(by_hours):
    """For whatever state comes next they add up to 1, those by own habits and shifts, too."""
    (steps,) = by_hours
    clock = by_hours.clock
    tables = Tables.of(steps, FOLDS)
    weights = evidence.likeliest_weights(tables, clock)
    habits = Habits.of(tables, clock, evidence.see_others, weights)
    rng = np.random.default_rng(0)
    chosen = rng.integers(0, steps.after.size, 20)
    totals = np.zeros((20, 3))
    for state in range(3):
        for number, place in enumerate(chosen):
            # the steps until then, the last of which goes elsewhere
            upto = slice(None, place + 1)
            arrays = {
                name: getattr(steps, name)[upto].copy()
                for name in ("before", "after", "user", "hour")
            }
            arrays["after"][-1] = state
            block = JudgedBlock(replace(steps, **arrays))
            p = block.predicted(habits)
            own = block.own("phase")
            totals[number, 0] += p[-1]
            totals[number, 1] += (p * np.exp(evidence.gained(own, p, 3.0)))[-1]
            totals[number, 2] += next(block.shifted(habits))[-1]
    assert totals == pytest.approx(np.ones((20, 3)), abs=1e-12)


def test_the_evidence_of_a_user_is_that_of_single_steps():
    """By loops over the steps of two of three users, against the others'."""
    rng = np.random.default_rng(5)
    walks = {name: rng.integers(0, 3, 60).tolist() for name in "abc"}
    blocks = StepBlocks.of(as_sequences(walks))
    tables = Tables.merged([Tables.of(steps, 3) for steps in blocks])
    weights = evidence.likeliest_weights(tables, blocks.clock)
    known = evidence.HabitsOfAll.of(tables, blocks.clock)
    found = evidence.look(blocks, known, Given()).users

    def counts_of(names):
        counts = np.zeros((3, 3))
        for name in names:
            np.add.at(counts, (walks[name][:-1], walks[name][1:]), 1)
        return counts

    for number, name in enumerate("abc"):
        others = counts_of(set("abc") - {name})
        moves = others - np.diag(np.diag(others))
        own = np.zeros((3, 3))
        logs = np.zeros(len(WEIGHTS))
        stays = np.diag(others).sum()
        for i, j in zip(walks[name][:-1], walks[name][1:], strict=True):
            stay = (stays + 0.5) / (others.sum() + 1.0)
            popular = (moves.sum(axis=0) + 1 / 3) / (moves.sum() + 1.0)
            stay_of_i = (others[i, i] + own[i, i] + weights.leaving * stay) / (
                others[i].sum() + own[i].sum() + weights.leaving
            )
            p = stay_of_i
            if i != j:
                going = others[i, j] + own[i, j] + weights.going * popular[j] / (1 - popular[i])
                going /= moves[i].sum() + own[i].sum() - own[i, i] + weights.going
                p = (1.0 - stay_of_i) * going
            if others[i].sum() >= evidence.FEWEST:
                of_weights = np.array(WEIGHTS)
                logs += np.log((of_weights + own[i, j] / p) / (of_weights + own[i].sum()))
            own[i, j] += 1
        assert found.own[number] == pytest.approx(np.log(np.mean(np.exp(logs))), abs=1e-9)


@pytest.mark.parametrize("many_steps", [0, evidence.MANY_STEPS])
def test_earlier_steps_of_a_user_are_counted_as_by_a_loop(by_hours, monkeypatch, many_steps):
    """Whether codes rise with time or not, and whether steps are counted in a table or sorted."""
    monkeypatch.setattr(evidence, "MANY_STEPS", many_steps)
    (steps,) = by_hours
    history = evidence.OwnHistory(steps)
    quarters = steps.quarter * steps.n_states + steps.before
    pairs = steps.earlier * steps.n_states + steps.before
    looped = {
        "all": (history.of_states, np.zeros_like(steps.before), steps.after),
        "moves": (history.of_moves, np.zeros_like(steps.before), steps.after == steps.before),
        "quarters": (history.of_rows(quarters), steps.quarter, steps.after),
        "before": (history.of_rows(pairs), steps.earlier, steps.after),
    }
    for own, code, outcome in looped.values():
        rows = Counter()
        cells = Counter()
        steps_of_users = zip(steps.user, code, steps.before, outcome, strict=True)
        for place, (user, of_step, before, after) in enumerate(steps_of_users):
            row = (user, of_step, before)
            assert own.rows[place] == rows[row]
            assert own.cells[place] == cells[row, after]
            rows[row] += 1
            cells[row, after] += 1


@pytest.mark.parametrize(
    ("most_in_table", "has_room"),
    [(0, True), (evidence.MOST_IN_TABLE, True), (evidence.MOST_IN_TABLE, False)],
)
def test_earlier_steps_are_those_of_one_user_only_in_a_table_or_not(
    monkeypatch, most_in_table, has_room
):
    monkeypatch.setattr(evidence, "MANY_STEPS", 0)
    monkeypatch.setattr(evidence, "MOST_IN_TABLE", most_in_table)
    monkeypatch.setattr(evidence, "has_room", lambda: has_room)
    if not has_room:
        monkeypatch.setattr(evidence, "count_in_table", None)
    rng = np.random.default_rng(3)
    user = np.sort(rng.integers(0, 9, 200))
    number = rng.integers(0, 5, 200)
    counted = evidence.count_earlier(user, number, 5).tolist()
    alike = [*zip(user.tolist(), number.tolist(), strict=True)]
    assert counted == [alike[:step].count(one) for step, one in enumerate(alike)]
    assert evidence.count_earlier(user[:0], number[:0], 5).size == 0


def test_blocks_and_the_order_of_users_do_not_matter_to_the_last_bit(by_hours, monkeypatch):
    whole = look_at(by_hours)
    data = by_hours.data
    shuffled = data.select(np.random.default_rng(2).permutation(len(data)))
    monkeypatch.setattr(steps_of_users, "STEPS_AT_ONCE", 1000)
    monkeypatch.setattr(steps_of_users, "STEPS_OF_TASK", 3000)
    blocks = StepBlocks.of(shuffled, by_hours.groups)
    assert len([*blocks]) > 2
    found = look_at(blocks)
    assert found.users.parts() == whole.users.parts()
    assert found.users.each.tolist() == whole.users.each.tolist()
    assert {name: sums.tolist() for name, sums in found.contexts.items()} == {
        name: sums.tolist() for name, sums in whole.contexts.items()
    }


@pytest.mark.parametrize("odd", [1, 2])
def test_an_odd_user_among_a_hundred_is_found_by_name_and_no_plan_leaks_more_for_her(odd):
    """However few they are. Algorithm 8 for the shared chain leaked 6.45 nats here."""
    advice = tr.report(walks_with_odd_users(odd), 1.0, 10, draws=0)
    verdicts = {check.name: check for check in advice.checks}
    assert verdicts[checks.USERS].verdict == checks.DOUBTFUL
    assert all(f"z{k}" in verdicts[checks.USERS].sentence for k in range(odd))
    assert {verdicts[name].verdict for name in (checks.ORDER, checks.HALVES)} == {checks.FINE}
    plan = advice.recommendation
    leaked = tpl.temporal_privacy_leakage(plan.budgets, STILL.reverse(), STILL).tpl.max()
    assert leaked <= max(plan.tpl[WORST_USER], plan.user_level) <= 1.0
    for_all = next(one for one in advice.plans if one.against == UPPER)
    assert for_all.tpl[WORST_USER] > 3.0


@pytest.mark.parametrize("place", [0, 50, 99])
def test_it_does_not_matter_where_in_the_alphabet_an_odd_user_is(place):
    walks = walks_with_odd_users(0)
    walks[f"u{place}"] = STILL.sample(400, rng=np.random.default_rng(3))
    judged = JudgedChain.of(as_sequences(walks))
    assert judged.checked.answers.found == (checks.USERS,)
    odd = judged.blocks.names[judged.checked.answers.users.odd]
    assert odd.tolist() == [f"u{place}"]


def test_users_whose_habits_are_those_of_all_have_the_plan_for_all():
    advice = tr.report(walks_with_odd_users(0), 1.0, 10, draws=0)
    assert {check.verdict for check in advice.checks[1:]} == {checks.FINE}
    assert advice.recommendation.scheme != COMPOSED
    assert advice.recommendation.tpl[WORST_USER] <= 1.0


def test_a_publisher_relies_on_a_plan_for_odd_users_alone():
    data = as_sequences(walks_with_odd_users(2))
    advice = tr.report(data, 1.0, 4, draws=0, against=WORST_USER)
    plan = advice.recommendation.budgets
    trusted_chain(data, 1.0, plan)
    for_all = next(one for one in advice.plans if one.against == UPPER)
    with pytest.raises(ValueError, match="must keep alpha = 1 against the worst user's habits"):
        trusted_chain(data, 1.0, for_all.budgets)


def test_users_who_rise_at_other_hours_are_found():
    habit = [staying(0.98, 3)] * 8 + [staying(0.5, 3)] * 16
    early = people(1, 30, 14, habit)
    late = people(2, 30, 14, [habit[hour - 2] for hour in range(24)])
    judged = JudgedChain.of(joined(early, late))
    assert judged.time_of_day.groups is not None
    assert judged.checked.answers.found[0] == checks.USERS
    assert judged.checked.answers.users.parts()["hours"] > 20.0


def test_the_less_evidence_there_is_the_more_users_may_differ():
    """As if all steps were few, but not where users are found to differ: there, own steps tell."""
    variations = []
    for odd, length in ((0, 1000), (0, 30), (8, 100)):
        judged = JudgedChain.of(as_sequences(walks_with_odd_users(odd, 20, length)))
        variations.append(judged.counted_for_anybody.variation)
    much, little, found = variations
    assert 0.0 < much < little / 4
    assert found == 0.0
    counted = replace(judged.counted, variation=0.01)
    (table,) = counted.tables()
    steps = table.toarray().sum(axis=1)
    told = counted.told_of_anybody(table)
    assert told.sum(axis=1) == pytest.approx(1.0 / (1.0 / steps + 0.01), rel=1e-12)


def test_evidence_of_hours_is_the_probability_of_counts_around_the_rows_of_phases():
    """Of two hours that differ: the mean of 1 / w is that of sums over all candidates."""
    data = people(3, 10, 7, [staying(0.8)] * 12 + [staying(0.7)] * 12)
    assert variation_of_hours(replace(data, starts=None, step=None), None) == 0.0
    of_one_chain = variation_of_hours(data, None)
    by_halves = group_phases(2, data.step)
    assert 0.0 < variation_of_hours(data, by_halves) < of_one_chain / 2
    candidates = list(evidence_of_finer_phases(data, None))
    assert len(candidates) == 15  # all but one chain
    counts = count_by_group(data, by_halves).toarray()
    rows = counts.reshape(2, 2, 2).sum(axis=0)
    expected = np.tile(rows / rows.sum(axis=1, keepdims=True), (2, 1))
    base = 30.0 * expected
    logs = gammaln(base + counts) - gammaln(base)
    of_rows = gammaln(30.0) - gammaln(30.0 + counts.sum(axis=1))
    assert candidates[1].at(30.0) == pytest.approx(logs.sum() + of_rows.sum(), rel=1e-12)
    assert candidates[1].of_prior == pytest.approx((counts * np.log(expected)).sum(), rel=1e-12)


def test_no_plan_is_made_where_all_others_have_other_phases(monkeypatch):
    """Habits at the phases of all cannot be compared with those at other phases."""
    data = joined(
        people(1, 40, 7, [staying(0.5, 3)] * 24), people(2, 1, 7, [staying(0.99, 3)] * 24)
    )
    assert JudgedChain.of(data).is_answered
    real = believable.judge_time_of_day
    looked = []

    def judge_others_by_the_day(data, cycle):
        looked.append(cycle)
        if len(looked) > 1:
            cycle = "day"
        return real(data, cycle)

    monkeypatch.setattr(believable, "judge_time_of_day", judge_others_by_the_day)
    assert not JudgedChain.of(data).is_answered
    assert looked == ["auto", "auto"]


def test_hours_of_a_clock_have_the_phases_of_their_steps():
    groups = group_phases(4, timedelta(minutes=20))
    clock = Clock.of(groups)
    assert clock.n_hours == 24
    assert clock.phase_of_hour.tolist() == np.repeat(range(4), 6).tolist()
    assert Clock.of(group_phases(4, timedelta(hours=2))).n_hours == 12


def test_the_levels_of_near_hours_share_the_steps_of_four_hours_before_and_after():
    """Each of these hours, across midnight, too, belongs to one of the three levels."""
    clock = Clock.of(group_phases(4, timedelta(hours=1)))
    rng = np.random.default_rng(0)
    steps = rng.integers(1, 100, (24, 2, 2))
    levels = evidence.levels_of(evidence.Counts(np.arange(96), steps.reshape(1, -1), 2), clock)
    near = sum(levels[level].of_cells.reshape(24, 2, 2) for level in ("hour", "around", "wide"))
    days = np.concatenate([steps, steps, steps])
    expected = [days[24 + hour - 4 : 24 + hour + 5].sum(axis=0) for hour in range(24)]
    assert near.tolist() == np.array(expected).tolist()
    sizes = [levels[level].of_cells.sum() / steps.sum() for level in ("hour", "around", "wide")]
    assert sizes == [1, 2, 6]


@pytest.mark.parametrize(
    ("own", "shift", "expected"),
    [(3.0, 2.0, 0), (3.0, 9.0, 12), (3.0, -9.0, 0), (-1.0, -2.0, 0), (-2.0, -1.0, 0)],
)
def test_a_user_is_shifted_where_other_hours_speak_for_it_and_own_rows_do_less(
    by_hours, own, shift, expected
):
    """Where neither predicts her better than the habits of all do, her hours are theirs."""
    n_users = by_hours.n_users
    found = evidence.UserEvidence(
        users=np.arange(n_users),
        own=np.full(n_users, own),
        best=np.zeros(n_users, dtype=int),
        shift=np.full(n_users, shift),
        best_shift=np.full(n_users, evidence.HOURS_SHIFTED.index(12)),
        own_earlier=np.zeros(n_users),
        shift_earlier=np.zeros((n_users, 1)),
        sums=np.zeros(1, dtype=int),
        shift_sums=np.zeros(1, dtype=int),
    )
    assert [habits.shift for habits in users_apart(found, by_hours)] == [expected] * n_users


def test_the_report_says_for_how_many_users_habits_are_known_well_enough():
    """Of users with a few steps nobody can say what they would leak."""
    walks = walks_with_odd_users(0, users=60)
    short = {name: walk[:4] for name, walk in list(walks.items())[:20]}
    advice = tr.report(walks | short, 1.0, 10, draws=0)
    assert advice.well_known_users == 40
    said = "40 of 60 users have records long enough to show habits of their own for which it leaks"
    assert said in advice.sentences[3]
    assert advice.to_dict()["well_known_users"] == 40
    doubted = tr.report(walks_with_odd_users(1), 1.0, 10, draws=0)
    if doubted.recommendation.scheme == COMPOSED:
        assert doubted.well_known_users is None


def test_a_doubtful_report_names_the_cause_with_the_most_evidence_and_its_remedy():
    """Places alternate between two walks, so that users seem to differ as well."""
    rng = np.random.default_rng(4)
    walks = {}
    for user in range(30):
        pair = [STILL.sample(100, rng=rng) for _ in range(2)]
        walks[f"u{user}"] = [place for both in zip(*pair, strict=True) for place in both]
    advice = tr.report(walks, 1.0, 10, draws=0)
    assert advice.recommendation.scheme == COMPOSED
    said = advice.sentences[1]
    assert f"that of a chain is doubtful ({checks.ORDER}" in said
    assert "the place before the last one predicts the next as well" in said
    assert "use longer steps of time, or, where each single place is the secret" in said
    assert "see whether a chain of order 2 allows more" in said


@pytest.mark.slow
def test_e_values_of_one_chain_have_a_mean_of_at_most_one_whatever_the_chain():
    """Of sparse and still chains, few users, and series of very different lengths, too."""
    rng = np.random.default_rng(11)
    found = []
    doubted = 0
    for _ in range(250):
        n = int(rng.choice([2, 3, 6, 10]))
        rows = rng.dirichlet(np.full(n, rng.choice([0.05, 0.2, 1.0, 5.0])), n)
        stay = rng.choice([0.0, 0.5, 0.9, 0.99])
        chain = tpl.TransitionMatrix((1.0 - stay) * rows + stay * np.eye(n), normalize=True)
        lengths = np.minimum(3.0 + rng.choice([5, 15, 50]) * rng.pareto(1.2, 40), 1_000)
        users = int(rng.choice([2, 5, 20, 40]))
        walks = [chain.sample(int(length), rng=rng) for length in lengths[:users]]
        if len(np.unique(np.concatenate(walks))) < 2:
            continue  # there is nothing to report on
        answers = JudgedChain.of(as_sequences(walks), None).checked.answers
        found.append(answers.nats)
        doubted += len(answers.found) > 0
    assert len(found) > 200
    for name in checks.QUESTIONS:
        values = np.exp([nats[name] for nats in found])
        assert np.minimum(values, 80.0).mean() <= 1.0, name
    assert doubted <= 0.05 * len(found)


def test_rows_differ_from_shares_of_all_by_less_than_is_taken_where_users_have_as_many_steps():
    """Simulated rows of one weight: of users with as many steps, and of three beside one."""
    rng = np.random.default_rng(0)
    weight = 30.0
    mean = 0.3
    n_steps = 1000
    table = csr_array([[mean * n_steps, (1.0 - mean) * n_steps], [0.0, 1.0]])
    counted = CountedSteps(table, ["away", "home"], variation=1.0 / weight)
    steps_of_user = counted.told_of_anybody(table)[0].sum()
    taken = mean * (1.0 - mean) / steps_of_user
    for parts, least, most in (([0.25] * 4, 0.7, 0.77), ([0.97, 0.01, 0.01, 0.01], 1.75, 2.0)):
        rows = rng.beta(weight * mean, weight * (1.0 - mean), (20_000, 4))
        counts = rng.binomial((n_steps * np.array(parts)).astype(int), rows)
        shares = counts.sum(axis=1) / n_steps
        ratio = ((rows[:, 3] - shares) ** 2).mean() / taken
        assert least < ratio < most


def test_backward_rows_vary_mostly_as_forward_ones_do():
    """Sets of states in backward rows of chains of three to five states around one, of weight 30:
    the variance over that of a set of a forward row with the same probability."""
    rng = np.random.default_rng(2)
    weight = 30.0
    ratios = []
    for _ in range(30):
        n = int(rng.integers(3, 6))
        shared = 0.99 * rng.dirichlet(np.ones(n), n) + 0.01 / n
        drawn = np.stack([rng.dirichlet(weight * row, 500) for row in shared], axis=1)
        of_shared, *of_users = [backward_rows(matrix) for matrix in (shared, *drawn)]
        sets = np.array([*product([0.0, 1.0], repeat=n)])[1:-1].T
        expected = of_shared @ sets
        squares = ((np.array(of_users) @ sets - expected) ** 2).mean(axis=0)
        ratio = squares * (weight + 1.0) / (expected * (1.0 - expected))
        ratios += ratio[(expected > 0.02) & (expected < 0.98)].tolist()
    median, high = np.quantile(ratios, [0.5, 0.9])
    assert [round(median, 1), round(high, 1)] == [1.0, 1.8]
    assert 5.0 < max(ratios) < 10.0


def backward_rows(matrix):
    """Bayes' rule in the stationary law."""
    n = len(matrix)
    balance = np.vstack([matrix.T - np.eye(n), np.ones(n)])
    law = np.linalg.lstsq(balance, np.append(np.zeros(n), 1.0), rcond=None)[0]
    flows = law[:, None] * matrix
    return (flows / flows.sum(axis=0)).T


def test_sums_by_user_have_a_place_for_users_without_steps():
    values = np.array([0, 1, 1, 0, 1, 1])
    data = Sequences(values, np.array([0, 2, 3, 6]), np.arange(2), np.arange(3))
    steps = steps_of_block(data, 3)
    assert steps.has_steps.tolist() == [True, False, True]
    assert steps.before.tolist() == [0, 0, 1]
    assert steps.after.tolist() == [1, 1, 1]
    assert steps.user.tolist() == [0, 2, 2]
    assert steps.sum_by_user(np.array([5.0, 7.0, 8.0])).tolist() == [5.0, 0.0, 15.0]


HALF_AN_HOUR = (0.0, -4.0, -4.0, -4.0, -4.0)
ANY_SPREAD_BUT_THE_WIDEST = (0.0, -2.9, -2.9, -2.9, -4.0)


@pytest.mark.parametrize(
    ("users", "of_spreads", "expected"),
    [
        (1, HALF_AN_HOUR, ()),
        (200, HALF_AN_HOUR, (-2, -1, 1, 2)),
        (10**12, HALF_AN_HOUR, evidence.HOURS_SHIFTED),
        (15, ANY_SPREAD_BUT_THE_WIDEST, (-3, -2, -1, 1, 2, 3)),
        (10**12, (-4.0,) * 5, ()),
    ],
)
def test_shifts_are_likely_of_which_a_user_is_expected(users, of_spreads, expected):
    """Those by s hours are of about exp(-2 s) / 1.3 of all where the spread is half an hour; e^-4
    rules a spread out."""
    of_users = SimpleNamespace(
        shift=np.zeros((1, 1)), of_spreads=np.array(of_spreads), each=SimpleNamespace(size=users)
    )
    assert evidence.UserEvidence.likely_shifts(of_users) == expected


def test_states_that_are_left_few_times_are_doubted_by_the_time_in_them():
    steps, made_up = check_amount(np.array([[96, 4], [4, 1]]), 0.5)
    assert (steps.verdict, steps.value) == (DOUBTFUL, pytest.approx(10 / 210))
    assert "50% of the states, in which users spend 4.8% of their time" in steps.sentence
    assert (made_up.verdict, made_up.value) == (FINE, pytest.approx((0.5 / 100.5 + 0.5 / 5.5) / 2))
    assert check_amount(np.array([[980, 10], [10, 0]]), 0.5)[0].verdict == FINE
    of_many = check_amount(np.diag([10**5, 10**5, 9]), 10.0)
    assert [check.verdict for check in of_many] == [FINE, DOUBTFUL]
    guessed = check_amount(np.array([[2, 0], [0, 2]]), 20.0)[1]
    assert (guessed.verdict, guessed.value) == (REFUSED, pytest.approx(20 / 22))


def test_half_of_the_states_may_be_left_few_times_if_nobody_is_there():
    assert check_amount(np.array([[10**5, 4], [4, 1]]), 0.5)[0].verdict == FINE


def test_an_alarm_is_false_in_one_of_twenty_data_sets_of_one_chain():
    """For all four questions together."""
    assert evidence.ALARM == pytest.approx(1 / 0.05)
    assert pytest.approx(np.log(4 / 0.05)) == checks.LEAST_NATS


def test_of_a_single_user_nothing_is_known_of_differences():
    check = check_users(None, SimpleNamespace(n_users=1))
    assert (check.verdict, check.value) == (UNCHECKED, 0.0)


def test_draws_of_a_group_are_around_its_counts_and_the_shared_rows(monkeypatch):
    monkeypatch.setattr(counted_steps, "likeliest_weight", lambda tables, pooled: 30.0)
    tables = [csr_array([[8, 2], [1, 9]]), csr_array([[2, 8], [9, 1]])]
    draws = list(counted_steps._draw_tables(tables, 0.5, 2000, np.random.default_rng(0)))
    for group, table in enumerate(tables):
        mean = np.mean([drawn[group].toarray() for drawn in draws], axis=0)
        expected = (table.toarray() + 30.0 * 0.5) / 40.0  # the shared rows are equal shares
        assert mean == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize(
    ("users", "is_judged"),
    [
        (1, False),
        (2, True),
        (plans.MOST_FOR_USERS // 4, True),
        (plans.MOST_FOR_USERS // 4 + 1, False),
    ],
)
def test_habits_of_single_users_are_an_adversary_unless_there_are_too_many(
    users, is_judged, monkeypatch
):
    monkeypatch.setattr(plans, "_losses_of_users", lambda *words: None)
    monkeypatch.setattr(plans, "worst_of_users", lambda *words: "of users")
    counted = JudgedChain.of(as_sequences(walks_with_odd_users(0, 4, 30))).counted
    of_users = SimpleNamespace(data=SimpleNamespace(n_users=users))
    found = plans.adversaries_of(counted, 0.5, 0.95, of_users)
    assert (found.get(WORST_USER) == "of users") == is_judged
    assert (WORST_USER in found) == is_judged


def user_of(probability, weight=4.0):
    return HabitsOfUser(0, "ann", probability, weight, at_all_hours=True, shift=0)


def test_the_rows_of_a_user_are_as_probable_as_own_habits_are():
    """(c + w p) / (|c| + w) with this probability, and p with the rest."""
    data = Sequences(np.array([0, 1, 1, 0, 0, 0]), np.array([0, 6]), np.arange(2), ["ann"])
    counts = [[2.0, 1.0], [1.0, 1.0]]
    shared = [[0.6, 0.4], [0.3, 0.7]]
    expected = np.empty((2, 2))
    for j in range(2):
        for k in range(2):
            of_user = (counts[j][k] + 4.0 * shared[j][k]) / (sum(counts[j]) + 4.0)
            expected[j, k] = 0.3 * of_user + 0.7 * shared[j][k]
    matrices = SimpleNamespace(
        backward=[tpl.TransitionMatrix(shared)], forward=[tpl.TransitionMatrix(shared)]
    )
    counted = SimpleNamespace(groups=None, states=[0, 1])
    (probable,) = losses_of_user(user_of(0.3), data, counted, matrices, 0.9)
    for alpha in (0.1, 1.0, 10.0):
        leaked = tpl.privacy_loss(tpl.TransitionMatrix(expected), alpha)
        assert probable.forward[0](alpha) == pytest.approx(leaked, rel=1e-12)
    _, upper = losses_of_user(user_of(0.6), data, counted, matrices, 0.9)
    posterior = np.array(counts) + 4.0 * np.array(shared)
    backward = np.array(counts).T + 4.0 * np.array(shared)
    for side, of_side in ((upper.forward[0], posterior), (upper.backward[0], backward)):
        (end,) = loss_from_counts([of_side], 0.95, [0, 1])  # half of what may fail for each side
        assert side(1.0) == end(1.0)


@pytest.mark.parametrize(
    ("odd", "said"),
    [
        (1, "1 user (u0) has habits of their own"),
        (2, "2 users (u0, u1) have habits of their own"),
        (3, "users have habits of their own"),
    ],
)
def test_users_are_named_where_they_are_less_than_half(odd, said):
    nats = {checks.USERS: 50.0}
    users = SimpleNamespace(odd=np.arange(odd))
    answers = SimpleNamespace(nats=nats, found=(checks.USERS,), users=users)
    blocks = SimpleNamespace(n_users=5, names=np.array([f"u{k}" for k in range(5)]))
    check = check_users(answers, blocks)
    assert check.sentence.startswith(f"{said} (evidence e^50.0")


def test_smoothing_is_shared_among_the_states_of_a_row(monkeypatch):
    seen = []
    monkeypatch.setattr(plans, "_losses_of_all", lambda *words: seen.append(words))
    counted = SimpleNamespace(states=[*"abcd"])
    users = SimpleNamespace(shared_weight=3.0, data="data")
    plans._losses_of_users(counted, "matrices", 2.0, "upper", users)
    assert seen == [("data", counted, "matrices", 0.5, 3.0)]


def test_a_plan_that_leaks_exactly_alpha_keeps_it():
    def plan(scheme, error, leaked):
        return SimpleNamespace(
            scheme=scheme, error=error, budgets=np.ones(2), tpl={UPPER: leaked, "other": 9.0}
        )

    shares = plan(COMPOSED, 10.0, 0.5)
    for leaked, expected in ((1.0, "better"), (np.nextafter(1.0, 2.0), COMPOSED)):
        found = plans.recommended([shares, plan("better", 1.0, leaked)], 1.0, True)
        assert found.scheme == expected
