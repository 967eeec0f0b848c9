"""A publisher that follows the clock: its promise against plain recursions, and what it refuses."""

from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest

import tplfrontier as tf
import tplreport as tr
import tplrepro as tpl
from tplreport.publishing.chain import Chain, is_made_with
from tplreport.publishing.losses_as_json import side_from_json, side_to_json
from tplreport.publishing.statistics import Statistic
from tplrepro.leakage.temporal import REQUIRED, loss_cycles

NIGHT, DAY = [[0.98, 0.02], [0.03, 0.97]], [[0.7, 0.3], [0.4, 0.6]]
HABITS = tpl.Cycle([NIGHT] * 6 + [DAY] * 18, step="1h")
SETTINGS = {"alpha": 1.0, "sensitivity": 1, "step": "1h"}
MONDAY = pd.Timestamp("2024-04-29")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "counts.sqlite"


def plain_loss(matrix, level):
    """L by its definition: the largest over pairs of rows and sets of states."""
    n = len(matrix)
    sets = [list(chosen) for size in range(1, n) for chosen in combinations(range(n), size)]
    largest = 0.0
    for q, d in product(np.asarray(matrix), repeat=2):
        for chosen in sets:
            numerator = 1.0 + q[chosen].sum() * np.expm1(level)
            denominator = 1.0 + d[chosen].sum() * np.expm1(level)
            largest = max(largest, np.log(numerator / denominator))
    return largest


def plain_side(budgets, steps):
    """BPL by Eq. (13) of [1], a matrix for each step; since the last release it is of their
    product. FPL is the same with times in reverse."""
    leaked = []
    of_release = None
    since = np.eye(len(steps[0]))
    for time, budget in enumerate(budgets):
        if time:
            since = steps[time - 1] @ since
        carried = 0.0
        if of_release is not None:
            carried = plain_loss(since, of_release)
        leaked.append(carried + budget)
        if budget:
            of_release = leaked[-1]
            since = np.eye(len(since))
    return np.array(leaked)


def plain_leakages(budgets, backward, forward):
    """TPL by Eqs. (11), (13) and (15) of [1]."""
    bpl = plain_side(budgets, backward)
    fpl = plain_side(budgets[::-1], forward[::-1])[::-1]
    return bpl + fpl - budgets


def true_steps(habits, law, count):
    """Forward matrices of the steps from phase 0 on, and backward ones for a law of the first
    state."""
    forward = [habits[t % len(habits)].toarray() for t in range(count)]
    backward = []
    for matrix in forward:
        joint = (law[:, None] * matrix).T
        law = joint.sum(axis=1)
        backward.append(joint / law[:, None])
    return backward, forward


@pytest.mark.parametrize("start", ["habit", "any", "law"])
@pytest.mark.parametrize("first_hour", [0, 5, 17])
def test_each_leakage_of_several_days_is_within_alpha_and_no_floor_is_refused(
    path, start, first_hour
):
    rng = np.random.default_rng([first_hour, len(start)])
    habits = HABITS.starting_at(f"{first_hour:02d}:00")
    law = habits.laws()[0]
    if start != "habit":
        law = rng.dirichlet([1.0, 1.0])
    forward = HABITS
    named = start
    if start == "law":
        forward = habits  # the law is that of the first hour
        named = law
    floors = {label: 0.02 if label < "06:00" else 0.05 for label in HABITS.phases}
    made = tr.Publisher(path, forward=forward, start=named, floor=floors, **SETTINGS)
    now = MONDAY + pd.Timedelta(hours=first_hour)
    budgets = []
    while len(budgets) < 70:
        draw = rng.random()
        if draw < 0.2:
            count = int(rng.integers(1, 5))
            made.skip(now, until=now + pd.Timedelta(hours=count - 1))
            budgets += [0.0] * count
            now += pd.Timedelta(hours=count)
            continue
        floor = floors[f"{now.hour:02d}:00"]
        assert made.remaining >= floor
        budget = floor
        if draw < 0.4:
            budget = made.remaining * rng.uniform(0.5, 1.0)
            made.publish(now, 10, budget)
        else:
            made.publish(now, 10)
        budgets.append(budget)
        now += pd.Timedelta(hours=1)
    assert np.repeat(made.ledger["epsilon"], made.ledger["count"]).tolist() == budgets
    backward, steps = true_steps(habits, law, len(budgets) - 1)
    leaked = plain_leakages(budgets, backward, steps)
    assert leaked.max() <= 1.0
    assert (made.leakage.tpl >= leaked - 1e-12).all()
    assert tr.Publisher(path).remaining == made.remaining


def test_the_first_time_fixes_the_phase_by_the_clock(path):
    floors = {label: 0.01 + 0.001 * number for number, label in enumerate(HABITS.phases)}
    back = HABITS.reverse()
    made = tr.Publisher(path, backward=back, forward=HABITS, floor=floors, **SETTINGS)
    least = made.remaining
    made.publish("2024-05-01 08:00", 7)
    turned = HABITS.starting_at("08:00")
    in_order = [floors[label] for label in turned.phases]
    account = tpl.TemporalFilter(1.0, turned.reverse(), turned, floor=in_order)
    assert least <= account.remaining
    assert made.remaining == account.spend(floors["08:00"]).remaining
    assert tr.Publisher(path).remaining == account.remaining
    again = tr.Publisher(path, backward=back, forward=HABITS, floor=floors, **SETTINGS)
    assert again.publish("2024-05-01 09:00", 7) is not None
    assert again.remaining == account.spend(floors["09:00"]).remaining
    weekly = tpl.Cycle([NIGHT] * 120 + [DAY] * 48, step="1h")
    other = tr.Publisher(path.with_name("w"), forward=weekly, start="habit", floor=0.01, **SETTINGS)
    other.skip("2024-05-04 01:00")  # a Saturday
    assert other._phase == 5 * 24 + 1


def test_a_refused_first_time_fixes_no_phase(path):
    made = tr.Publisher(path, forward=HABITS, start="habit", floor=0.02, **SETTINGS)
    with pytest.raises(tpl.LeakageExceededError):
        made.publish("2024-05-01 08:00", 7, 5.0)
    made.publish("2024-05-01 03:00", 7)
    assert made._phase == 3


def test_plans_and_first_steps_belong_to_one_phase(path):
    plan = tpl.allocate_by_quantification(1.0, HABITS.reverse(), HABITS, 3)
    planned = tr.Publisher(path, backward=HABITS.reverse(), forward=HABITS, plan=plan, **SETTINGS)
    at_home = tr.Publisher(
        path.with_name("home"), forward=HABITS, start=[0.9, 0.1], floor=0.01, **SETTINGS
    )
    for made in (planned, at_home):
        with pytest.raises(
            ValueError,
            match=r"begin at one phase, '00:00', found a first time at '08:00'; make "
            r"them of cycle.starting_at\('08:00'\)",
        ):
            made.publish("2024-05-01 08:00", 7)
        with pytest.raises(ValueError, match="must know the first time of its plan, of its start"):
            made.resume("2024-05-01 00:00")
        assert len(made.skip("2024-05-01 00:00")) == 1
    numbered = tr.Publisher(
        path.with_name("n"),
        forward=tpl.Cycle([NIGHT, DAY]),
        start="habit",
        floor=0.1,
        alpha=1.0,
        sensitivity=1,
    )
    with pytest.raises(ValueError, match="must know the first time of its plan, of its start or"):
        numbered.resume(3)
    assert numbered.publish(17, 1) is not None
    account = tpl.TemporalFilter(
        1.0, tpl.Cycle([NIGHT, DAY]).reverse(), tpl.Cycle([NIGHT, DAY]), floor=0.1
    )
    assert numbered.remaining == account.spend(0.1).remaining


def test_a_file_is_made_with_a_chain_if_both_sides_are_those(path):
    settings = {"alpha": 1.0, "sensitivity": 1, "floor": 0.05}
    by_sides = tr.Publisher(path, backward=DAY, forward=NIGHT, **settings).settings
    assert is_made_with(by_sides, DAY, NIGHT, None)
    assert not is_made_with(by_sides, NIGHT, NIGHT, None)
    assert not is_made_with(by_sides, DAY, DAY, None)
    by_start = tr.Publisher(path.with_name("b"), forward=DAY, start="habit", **settings).settings
    assert is_made_with(by_start, REQUIRED, DAY, "habit")
    assert not is_made_with(by_start, REQUIRED, NIGHT, "habit")
    assert not is_made_with(by_start, REQUIRED, DAY, [0.3, 0.7])
    rounded = by_start | {"backward": by_sides["backward"]}  # by another computer
    assert is_made_with(rounded, REQUIRED, DAY, "habit")


@pytest.mark.parametrize("side", ["backward", "forward"])
def test_one_first_step_of_a_side_belongs_to_the_first_time(path, side):
    cycle = tpl.Cycle([NIGHT, DAY])
    sides = {"backward": cycle, "forward": cycle, side: tpl.Cycle([NIGHT, DAY], first=[DAY])}
    settings = {"alpha": 1.0, "sensitivity": 1, "floor": 0.05}
    made = tr.Publisher(path, **sides, **settings)
    assert made._unturned.has_first_steps
    with pytest.raises(ValueError, match="must know the first time of its plan, of its start or"):
        made.resume(3)
    other = tr.Publisher(path.with_name("other"), backward=cycle, forward=cycle, **settings)
    assert not other._unturned.has_first_steps


def test_what_was_published_elsewhere_leaves_the_floor_of_each_phase(path):
    floors = {label: 0.02 if label < "06:00" else 0.05 for label in HABITS.phases}
    made = tr.Publisher(path, forward=HABITS, start="habit", floor=floors, **SETTINGS)
    made.resume("2024-05-01 08:00").publish("2024-05-01 09:00", 1)
    made.resume("2024-05-02 03:00")
    for hour in range(4, 31):
        made.publish(pd.Timestamp("2024-05-02") + pd.Timedelta(hours=hour), 1)
    assert made.ledger["epsilon"].iloc[-1] == 0.05
    assert made.ledger["kind"].tolist()[:3] == ["spent elsewhere", "published", "spent elsewhere"]


@pytest.mark.parametrize(
    ("chain", "step", "said"),
    [
        (tpl.TransitionMatrix(DAY, step="1D"), "1h", "found steps of 1D .* estimate it with"),
        (tpl.TransitionMatrix(DAY, step="1h"), "1D", r"P \*\* 24 or cycle.every\(24\)"),
        (tpl.Cycle([NIGHT] * 24, step="1h"), "6h", r"P \*\* 6 or cycle.every\(6\)"),
        (tpl.TransitionMatrix(DAY, step="1h"), "2h", r"P \*\* 2 or cycle.every\(2\)"),
        (tpl.Cycle([NIGHT] * 12 + [DAY] * 12, step="1h"), 1, "need times that are dates"),
        (tpl.Cycle([NIGHT, DAY]), "1h", "a cycle that is no day and no week; give Cycle"),
        (tpl.Cycle([NIGHT, DAY], step="1h"), "1h", "a cycle that is no day and no week; give Cyc"),
    ],
)
def test_a_chain_by_another_clock_is_refused(path, chain, step, said):
    with pytest.raises(ValueError, match=said):
        tr.Publisher(
            path, forward=chain, start="habit", alpha=1.0, sensitivity=1, floor=0.01, step=step
        )
    assert not path.exists()


def test_a_chain_made_coarser_has_the_clock_of_its_releases(path):
    for number, chain in enumerate((HABITS.every(6), tpl.TransitionMatrix(DAY, step="1h") ** 6)):
        made = tr.Publisher(
            path.with_name(f"file {number}"),
            forward=chain,
            start="habit",
            floor=0.05,
            **SETTINGS | {"step": "6h"},
        )
        assert made.publish("2024-05-01 06:00", 3) is not None


def test_times_off_the_grid_and_clocks_that_change_are_refused(path):
    def made(name, habits=HABITS, step="1h"):
        return tr.Publisher(
            path.with_name(name),
            forward=habits,
            start="habit",
            floor=0.01,
            **SETTINGS | {"step": step},
        )

    with pytest.raises(ValueError, match="found 2024-05-01 08:30:00 after 2024-05-01 08:00:00; ro"):
        made("a").publish("2024-05-01 08:30", 1)
    berlin = pd.Timestamp("2024-05-01 08:00", tz="Europe/Berlin")
    with pytest.raises(ValueError, match="whose clocks are changed; give times without a zone"):
        made("a").publish(berlin, 1)
    fixed = made("a").skip("2024-05-01 08:00+02:00")
    assert fixed._phase == 8
    fixed.skip("2024-05-01 09:00+02:00")
    with pytest.raises(ValueError, match="must keep the offset from UTC of the first, UTC.02:00"):
        fixed.publish("2024-05-01 09:00+01:00", 1)
    tokyo = made("t").skip(pd.Timestamp("2024-05-01 08:00", tz="Asia/Tokyo"))
    assert tokyo._phase == 8
    week = tpl.Cycle([NIGHT] * 5 + [DAY] * 2, step="1D")
    days = made("d", week, "1D")
    days.skip(pd.Timestamp("2024-03-30", tz="Europe/Berlin"))
    days.skip(pd.Timestamp("2024-03-31", tz="Europe/Berlin"))
    days.publish(pd.Timestamp("2024-04-01", tz="Europe/Berlin"), 1)  # clocks changed on the 31st
    assert days._phase == 5
    with pytest.raises(ValueError, match="a phase of the cycle begins, found 2024-05-01 08:00:00"):
        made("e", week, "1D").publish("2024-05-01 08:00", 1)


def test_floors_are_given_by_phase(path):
    def made(floor):
        return tr.Publisher(path, forward=HABITS, start="habit", floor=floor, **SETTINGS)

    with pytest.raises(ValueError, match="floor must have a budget for each phase, found .'00:00'"):
        made({"00:00": 0.1})
    with pytest.raises(ValueError, match="one budget, or one for each phase, found shape"):
        made([0.1, 0.1])
    silent = made([0.0] * 6 + [0.05] * 18)
    with pytest.raises(ValueError, match="no floor at this time; give epsilon, or skip it"):
        silent.publish("2024-05-01 03:00", 1)
    silent.publish("2024-05-01 03:00", 1, 0.1)
    assert made([0.0] * 6 + [0.05] * 18).remaining == silent.remaining
    with pytest.raises(ValueError, match="was made with other settings of floor"):
        made(0.05)
    one_matrix = tpl.Cycle([DAY] * 24, step="1h")
    quiet = tr.Publisher(
        path.with_name("one"),
        forward=one_matrix,
        start="habit",
        floor=[0.0] * 6 + [0.05] * 18,
        **SETTINGS,
    )
    quiet.publish("2024-05-01 06:00", 1)
    assert quiet.ledger["epsilon"].tolist() == [0.05]


def test_a_start_is_named_once(path):
    with pytest.raises(ValueError, match="found backward= too; leave out one of them"):
        tr.Publisher(path, backward=None, forward=DAY, start="any", floor=0.1, **SETTINGS)
    with pytest.raises(ValueError, match="found none; give forward="):
        tr.Publisher(path, start="any", floor=0.1, **SETTINGS)
    with pytest.raises(ValueError, match='start must be "habit", "any" or the law of the first'):
        tr.Publisher(path, forward=DAY, start="home", floor=0.1, **SETTINGS)
    made = tr.Publisher(path, forward=DAY, start="any", floor=0.1, **SETTINGS)
    assert repr(made).endswith("0 times, for users with any start)")
    assert made.settings["start"] == "any"
    assert (
        made.remaining == tpl.TemporalFilter(1.0, tpl.PriorFreeLoss(DAY), DAY, floor=0.1).remaining
    )
    with pytest.raises(ValueError, match="was made with other settings of .*start"):
        tr.Publisher(path, forward=DAY, start="habit", floor=0.1, **SETTINGS)
    unknown = tr.Publisher(path.with_name("b"), backward=None, forward=DAY, floor=0.1, **SETTINGS)
    assert repr(unknown).endswith("0 times)")


def test_a_start_in_another_law_than_that_of_the_habit_leaks_no_more_than_alpha(path):
    seldom = [[0.9999, 0.0001], [0.5, 0.5]]
    start = np.array([0.5, 0.5])
    settings = SETTINGS | {"step": 1}
    floor = tpl.allocate_by_upper_bound(1.0, tpl.TransitionMatrix(seldom).reverse(), seldom)
    backward, forward = true_steps(tpl.Cycle([seldom]), start, 39)
    assert plain_leakages([floor] * 40, backward, forward).max() > 2.5
    for number, named in enumerate((start, "any")):
        made = tr.Publisher(
            path.with_name(f"{number}"), forward=seldom, start=named, floor=0.01, **settings
        )
        budgets = [0.01] * 40
        budgets[10] = budgets[30] = 0.05
        for time, budget in enumerate(budgets):
            made.publish(time, 1, budget)
        leaked = plain_leakages(budgets, backward, forward)
        assert (leaked <= made.leakage.tpl + 1e-12).all()
        assert made.leakage.max() <= 1.0
    with pytest.raises(ValueError, match="floor must keep the TPL within"):
        tr.Publisher(path, forward=seldom, start=start, floor=floor, **settings)


def test_a_file_of_before_opens_with_the_settings_that_it_was_made_with(path):
    one = {"backward": DAY, "forward": DAY, "floor": 0.1}
    made = tr.Publisher(path, **one, **SETTINGS)
    made.publish("2024-05-01 08:00", 3)
    with made._writing() as store:
        settings = {k: v for k, v in store.read("settings").items() if k not in ("cycle", "start")}
        store.write("settings", settings)
        clock = store.read("clock")
        del clock["phase"]
        store.write("clock", clock)
    before = tr.Publisher(path, **one, **SETTINGS)
    assert before.settings["start"] == "backward"
    assert before.remaining == made.remaining
    assert before.publish("2024-05-01 09:00", 3) is not None


def random_sides(start, rng):
    habits = tpl.Cycle([tpl.TransitionMatrix.random(3, rng=rng) for _ in range(4)], step="6h")
    if start == "law":
        start = rng.dirichlet(np.ones(3))
    return habits.reverse(start=start), habits


@pytest.mark.parametrize("start", ["habit", "any", "law"])
def test_cycles_are_the_same_after_a_round_trip_through_json(start):
    rng = np.random.default_rng(5)
    losses = loss_cycles(*random_sides(start, rng))
    for side in (losses.backward, losses.forward):
        again = side_from_json(side_to_json(side), 4)
        assert len(again.first) == len(side.first)
        for loss, stored in zip(
            [*side.steps, *side.first], [*again.steps, *again.first], strict=True
        ):
            assert type(loss) is type(stored)
            for level in (0.1, 0.7, 3.0):
                assert loss.at(level) == stored.at(level)
        assert side_to_json(again) == side_to_json(side)


def test_each_matrix_is_stored_once():
    counts = {"night": [[980, 20], [30, 970]], "day": [[700, 300], [400, 600]]}
    bounds = tf.loss_from_counts(counts, step="12h")
    for cycle, matrices in ((HABITS, 2), (bounds, 2), (tpl.Cycle([DAY, None]), 1)):
        losses = loss_cycles(None, cycle)
        assert len(side_to_json(losses.forward)["losses"]) == matrices
        assert side_to_json(losses.backward) is None
        again = side_from_json(side_to_json(losses.forward), len(cycle))
        assert [loss is None for loss in again.steps] == [step is None for step in cycle]
    known = HABITS.reverse(start=[0.9, 0.1])
    content = side_to_json(loss_cycles(known, HABITS).backward)
    assert len(content["first"]) == len(known.first)
    assert len(content["losses"]) < len(known.first) + 4 * 24


def test_chains_turn_with_their_floors():
    losses = loss_cycles(HABITS.reverse(), HABITS)
    chain = Chain(
        losses.cycle_of(losses.backward),
        losses.cycle_of(losses.forward),
        [*range(24)],
        None,
        [Statistic(None, 1.0)],
        [(0,)] * 24,
    )
    turned = chain.turned(20)
    assert turned.forward.phases[:5] == ["20:00", "21:00", "22:00", "23:00", "00:00"]
    assert [*turned.runs(2, 4)] == [(2, 1), (3, 1), (4, 1), (5, 1)]
    assert [turned.floors[time] for time in range(2, 6)] == [22, 23, 0, 1]


def test_before_its_first_time_a_publisher_says_what_remains_at_any_hour(path):
    from_noon = HABITS.starting_at("12:00")
    made = tr.Publisher(path, forward=from_noon, start="habit", floor=0.02, **SETTINGS)
    remaining = []
    for phase in HABITS.phases:
        turned = HABITS.starting_at(phase)
        account = tpl.TemporalFilter(1.0, turned.reverse(), turned, floor=0.02)
        remaining.append(account.remaining)
    assert made.remaining == pytest.approx(min(remaining), rel=1e-12)
    assert made.remaining < remaining[12] - 0.01
    made.publish("2024-05-01 17:00", 1)
    assert made._chain.forward.phases[0] == "17:00"
