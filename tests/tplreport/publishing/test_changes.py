"""A new chain from a date on: leakages by enumeration and by plain recursions, the floor that
remains, and what is refused."""

import json
import shutil
import sqlite3
from datetime import timedelta
from itertools import product

import numpy as np
import pandas as pd
import pytest

import tplfrontier as tf
import tplreport as tr
import tplrepro as tpl
from tests.tplreport.publishing.test_publisher import killed_at_line
from tests.tplreport.publishing.test_publisher_cycles import plain_leakages
from tplreport.publishing.changes import _nanoseconds
from tplreport.publishing.mark import MOST_CHANGES, _digest
from tplreport.publishing.store import Store
from tplrepro.leakage.filter import FloorSuprema

OLD, NEW = [[0.8, 0.2], [0.1, 0.9]], [[0.6, 0.4], [0.3, 0.7]]
STILL = [[0.98, 0.02], [0.03, 0.97]]
MIXING = [[0.55, 0.45], [0.45, 0.55]]
EVEN = [[0.5, 0.5], [0.5, 0.5]]
SETTINGS = {"alpha": 1.0, "sensitivity": 1}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "counts.sqlite"


def random_matrix(rng, n):
    rows = rng.dirichlet(np.ones(n), n)
    share = rng.choice([0.1, 0.5, 1.0])
    mixed = share * rows + (1.0 - share) * np.eye(n) + 1e-3
    return mixed / mixed.sum(axis=1, keepdims=True)


def random_chain(rng, n):
    if rng.random() < 0.5:
        return tpl.Cycle([random_matrix(rng, n)])
    return tpl.Cycle([random_matrix(rng, n) for _ in range(rng.integers(2, 5))])


def series_of(publisher):
    ledger = publisher.ledger
    return np.repeat(ledger["epsilon"], ledger["count"]).to_numpy()


def steps_of_both(before, after, law, at, count):
    """Forward and true backward matrices of a chain that changes at a time."""
    forward = [before[t % len(before)].toarray() for t in range(at)]
    forward += [after[t % len(after)].toarray() for t in range(count - at)]
    backward = []
    for matrix in forward:
        joint = (law[:, None] * matrix).T
        law = joint.sum(axis=1)
        backward.append(joint / law[:, None])
    return backward, forward


def spend(rng, publisher, until, habit):
    """Budgets that spend all, the floor, or anything between."""
    while len(publisher) < until:
        now = len(publisher)
        floor = publisher._chain.floors[publisher._phase_at(now)]
        rest = publisher.remaining
        assert rest >= floor
        budget = floor
        if habit == "all" or (habit == "random" and rng.random() < 0.3):
            budget = max(rest * rng.uniform(0.5, 1.0), floor)
        if habit == "all":
            budget = rest
        if budget <= 0.0 or (habit != "floor" and rng.random() < 0.2):
            publisher.skip(now)
        else:
            publisher.skip(now, epsilon=budget)


@pytest.mark.parametrize("seed", range(12))
def test_no_time_before_or_after_leaks_more_than_alpha_and_the_floor_remains(path, seed):
    """By a plain recursion with the matrices of each step, in which the floor is what remains."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 4))
    before, after = random_chain(rng, n), random_chain(rng, n)
    made = tr.Publisher(path, forward=before, start="habit", floor="largest", **SETTINGS)
    at = int(rng.integers(1, 9))
    spend(rng, made, at, rng.choice(["all", "floor", "random"]))
    start = None
    if seed % 3 == 0:
        start = "any"
    made.change_chain(at, forward=after, start=start, floor="largest")
    assert made.changes["floor"][0] > 0.0
    spend(rng, made, at + 6, rng.choice(["all", "floor", "random"]))
    spend(rng, made, at + 40, "floor")
    budgets = series_of(made)
    law = before.laws()[0]
    backward, forward = steps_of_both(before, after, law, at, len(budgets) - 1)
    leaked = plain_leakages(budgets, backward, forward)
    assert leaked.max() <= 1.0 + 1e-12
    assert (made.leakage.tpl >= leaked - 1e-12).all()
    again = tr.Publisher(path)
    assert again.remaining == made.remaining
    assert again.leakage.tpl.tolist() == made.leakage.tpl.tolist()


def exact_leakage(budgets, law, forward, rng):
    """The largest log ratio of the probabilities of outputs given the states of a time, over all
    outputs of randomised answers: two for each time, with any pair of states the worst."""
    horizon = len(budgets)
    n = len(law)
    answers = []
    for budget in budgets:
        sign = rng.choice([0, 1], n)
        sign[rng.integers(n)] = 1 - sign[0] if len(set(sign)) == 1 else sign[0]
        likely = np.exp(budget) / (1.0 + np.exp(budget))
        answers.append(np.where(sign[None] == np.arange(2)[:, None], likely, 1.0 - likely))
    outputs = np.array([*product((0, 1), repeat=horizon)])  # a row for each
    likelihoods = [answers[t][outputs[:, t]] for t in range(horizon)]
    alphas = [law * likelihoods[0]]
    laws = [law]
    for t in range(1, horizon):
        alphas.append((alphas[-1] @ forward[t - 1]) * likelihoods[t])
        laws.append(laws[-1] @ forward[t - 1])
    worst = -np.inf
    betas = np.ones((len(outputs), n))
    for t in reversed(range(horizon)):
        given = alphas[t] * betas / laws[t]
        worst = max(worst, np.log(given.max(axis=1) / given.min(axis=1)).max())
        if t:
            betas = (likelihoods[t] * betas) @ forward[t - 1].T
    return worst


@pytest.mark.parametrize("paths", [40, pytest.param(300, marks=pytest.mark.slow)])
def test_no_output_of_small_chains_tells_more_than_alpha(tmp_path, paths):
    """All outputs of randomised answers, whose budgets the publisher allowed; skips are times
    without an answer."""
    rng = np.random.default_rng(paths)
    largest = 0.0
    for number in range(paths):
        n = int(rng.integers(2, 4))
        before, after = random_chain(rng, n), random_chain(rng, n)
        path = tmp_path / f"{number}"
        made = tr.Publisher(path, forward=before, start="habit", floor="largest", **SETTINGS)
        at = int(rng.integers(1, 6))
        spend(rng, made, at, "all")
        start = rng.choice(["any", "carried"])
        made.change_chain(
            at, forward=after, start=None if start == "carried" else start, floor="largest"
        )
        spend(rng, made, 7, "all")
        law = before.laws()[0]
        _, forward = steps_of_both(before, after, law, at, 6)
        largest = max(largest, exact_leakage(series_of(made), law, forward, rng))
    assert 0.8 < largest <= 1.0 + 1e-12


def test_without_the_condition_of_theorem_8_a_floor_would_break_the_promise(path, monkeypatch):
    """The largest floor of the new chain alone is too much after the old one was spent."""
    made = tr.Publisher(path, forward=OLD, start="habit", floor="largest", **SETTINGS)
    for now in range(20):
        made.publish(now, 5, made.remaining if now in (0, 19) else None)
    alone = tpl.allocate_by_upper_bound(1.0, tpl.TransitionMatrix(NEW).reverse(), NEW)
    with pytest.raises(ValueError, match="floor must (leave all earlier|keep the TPL) .* found"):
        made.change_chain(20, forward=NEW, floor=0.99 * alone)
    monkeypatch.setattr(FloorSuprema, "_check_floors_fit", lambda self: None)
    monkeypatch.setattr(FloorSuprema, "_check_is_tolerated", lambda self: None)
    made.change_chain(20, forward=NEW, floor=0.99 * alone)
    for now in range(20, 60):
        made.publish(now, 5)
    law = tpl.Cycle(OLD).laws()[0]
    steps = steps_of_both(tpl.Cycle(OLD), tpl.Cycle(NEW), law, 20, 59)
    assert plain_leakages(series_of(made), *steps).max() > 1.01


def test_a_floor_is_kept_exactly_if_spending_it_for_ever_is(path):
    """The condition of Theorem 8 refuses no floor whose leakages are within alpha."""
    made = tr.Publisher(path, forward=OLD, start="habit", floor="largest", **SETTINGS)
    spend(np.random.default_rng(5), made, 12, "random")
    made.change_chain(12, forward=NEW, floor="largest")
    floor = made.changes["floor"][0]
    spend(np.random.default_rng(6), made, 80, "floor")
    law = tpl.Cycle(OLD).laws()[0]
    steps = steps_of_both(tpl.Cycle(OLD), tpl.Cycle(NEW), law, 12, 79)
    budgets = series_of(made).copy()
    assert plain_leakages(budgets, *steps).max() <= 1.0
    budgets[12:] = 1.005 * floor
    assert plain_leakages(budgets, *steps).max() > 1.0


@pytest.mark.parametrize(("share", "later"), [(1.0, 0.756), (0.98, 0.99)])
def test_a_little_less_than_the_largest_floor_soon_leaves_more(path, share, later):
    """What is tolerated stays where it is if all of it is spent, and else grows step by step."""
    made = tr.Publisher(path, forward=OLD, start="habit", floor="largest", **SETTINGS)
    made.publish_table(pd.Series(range(50)))
    made.backup(path.with_name("before"))
    trial = tr.Publisher(path.with_name("before")).resume()
    largest = trial.change_chain(50, forward=NEW, floor="largest").changes["floor"][0]
    made.change_chain(50, forward=NEW, floor=share * largest * (1 - 1e-12))
    made.publish_table(pd.Series(range(6), range(50, 56)))
    made.change_chain(56, forward=NEW, floor="largest")
    alone = tpl.allocate_by_upper_bound(1.0, tpl.TransitionMatrix(NEW).reverse(), NEW)
    assert made.changes["floor"][1] / alone == pytest.approx(later, abs=0.012)
    made.publish_table(pd.Series(range(50), range(56, 106)))
    law = tpl.Cycle(OLD).laws()[0]
    steps = steps_of_both(tpl.Cycle(OLD), tpl.Cycle(NEW), law, 50, 105)
    assert plain_leakages(series_of(made), *steps).max() <= 1.0


def test_the_law_at_the_change_is_carried_over(path):
    """Users who start in the habit do not have the law of the new one, and backward matrices of it
    would be wrong."""
    made = tr.Publisher(path, forward=OLD, start="habit", floor=0.05, **SETTINGS)
    for now in range(5):
        made.publish(now, 10)
    made.change_chain(5, forward=NEW)
    law = tpl.TransitionMatrix(OLD).stationary()
    stored = made._changes.chains[0]["chain"]["start"]
    assert stored == pytest.approx(law.tolist(), abs=1e-15)
    known = tpl.Cycle(NEW).reverse(start=law)
    first = made._segments[1].chain.backward.first[0]
    assert first.matrix.probabilities.tolist() == known.first[0].probabilities.tolist()
    assert made.changes["start"].tolist() == ["carried over"]
    for now in range(5, 9):
        made.publish(now, 10)
    made.change_chain(9, forward=STILL, floor="largest")
    after = law @ np.linalg.matrix_power(np.array(NEW), 4)
    assert made._changes.chains[1]["chain"]["start"] == pytest.approx(after.tolist(), abs=1e-14)
    for now in range(9, 30):
        made.publish(now, 10)
    forward = [np.array(OLD)] * 5 + [np.array(NEW)] * 4 + [np.array(STILL)] * 20
    backward = []
    for matrix in forward:
        joint = (law[:, None] * matrix).T
        law = joint.sum(axis=1)
        backward.append(joint / law[:, None])
    leaked = plain_leakages(series_of(made), backward, forward)
    assert made.leakage.tpl == pytest.approx(leaked, rel=2e-3)
    assert (made.leakage.tpl >= leaked - 1e-12).all()
    assert len(tr.Publisher(path).changes) == 2


@pytest.mark.parametrize("most", [100_000, 10])
def test_the_law_at_a_late_change_is_that_of_its_phase(path, monkeypatch, most):
    """Over many steps the law is followed by whole periods, and ends at the phase of the change."""
    monkeypatch.setattr("tplreport.publishing.changes.MOST_STEPS", most)
    cycle = tpl.Cycle([OLD, STILL, NEW])
    made = tr.Publisher(path, forward=cycle, start=[0.3, 0.7], floor=0.01, **SETTINGS)
    made.skip(0, 13)
    made.change_chain(14, forward=NEW)
    law = np.array([0.3, 0.7])
    for matrix in cycle.over(14):
        law = law @ matrix
    assert made._changes.chains[0]["chain"]["start"] == pytest.approx(law.tolist(), abs=1e-14)


@pytest.mark.parametrize(
    "begins", [timedelta(hours=7), timedelta(days=6, seconds=5), timedelta(microseconds=250)]
)
def test_a_phase_begins_at_the_nanosecond(begins):
    assert _nanoseconds(begins) == pd.Timedelta(begins).as_unit("ns").value


def test_a_pause_over_the_change_and_nothing_before_it(path):
    made = tr.Publisher(path, forward=OLD, start="habit", floor=0.1, **SETTINGS)
    made.skip(0, 3)
    made.change_chain(4, forward=NEW, floor="largest")
    alone = tpl.allocate_by_upper_bound(1.0, tpl.TransitionMatrix(NEW).reverse(), NEW)
    assert made.changes["floor"][0] == pytest.approx(alone, rel=5e-3)
    made.publish(4, 5, 0.3)
    made.skip(5, 8)
    made.change_chain(9, forward=OLD, floor="largest")
    made.skip(9, 10)
    made.publish(11, 5, made.remaining)
    for now in range(12, 40):
        made.publish(now, 5)
    law = tpl.TransitionMatrix(OLD).stationary()
    forward = [np.array(OLD)] * 4 + [np.array(NEW)] * 5 + [np.array(OLD)] * 30
    backward = []
    for matrix in forward:
        joint = (law[:, None] * matrix).T
        law = joint.sum(axis=1)
        backward.append(joint / law[:, None])
    assert plain_leakages(series_of(made), backward, forward).max() <= 1.0


@pytest.mark.parametrize("hour", [0, 1, 7, 13])
def test_a_cycle_follows_a_matrix_by_the_clock_with_statistics_of_their_own_periods(path, hour):
    statistics = {
        "people": {"sensitivity": 2, "share": 0.7},
        "spent": {"sensitivity": 5, "share": 0.3, "every": "1D", "at": "06:00"},
    }
    settings = {"alpha": 1.0, "statistics": statistics, "step": "1h"}
    made = tr.Publisher(path, forward=OLD, start="habit", floor="largest", **settings)
    times = pd.date_range("2024-05-01 22:00", periods=80, freq="1h")

    def publish(now):
        counts = {"people": 10}
        if now.hour == 6:
            counts["spent"] = 7.5
        made.publish(now, counts)

    change = next(number for number, now in enumerate(times) if number > 9 and now.hour == hour)
    for now in times[:change]:
        publish(now)
    habits = tpl.Cycle([STILL] * 6 + [NEW] * 18, step="1h")
    made.change_chain(times[change], forward=habits, floor="largest")
    for now in times[change:]:
        publish(now)
    law = tpl.TransitionMatrix(OLD).stationary()
    after = habits.starting_at(f"{hour:02d}:00")
    backward, forward = steps_of_both(tpl.Cycle(OLD), after, law, change, len(times) - 1)
    leaked = plain_leakages(series_of(made), backward, forward)
    assert leaked.max() <= 1.0
    assert (made.leakage.tpl >= leaked - 1e-12).all()
    with pytest.raises(ValueError, match="times of a cycle must keep the offset|dates without a z"):
        made.publish(f"{times[-1] + pd.Timedelta('1h')}+02:00", {"people": 1})
    assert tr.Publisher(path).remaining == made.remaining


def test_a_cycle_that_follows_a_matrix_refuses_another_offset_from_utc(path):
    made = tr.Publisher(path, forward=OLD, start="habit", floor=0.05, step="1h", **SETTINGS)
    made.publish("2024-05-01 22:00+01:00", 5)
    made.publish("2024-05-02 00:00+02:00", 5)
    habits = tpl.Cycle([STILL] * 6 + [NEW] * 18, step="1h")
    made.change_chain("2024-05-02 00:00+01:00", forward=habits, floor=0.01)
    with pytest.raises(ValueError, match="times of a cycle must keep the offset"):
        made.publish("2024-05-02 01:00+02:00", 5)
    made.publish("2024-05-02 00:00+01:00", 5)


def test_another_process_follows_the_change(path):
    made = tr.Publisher(path, forward=OLD, start="habit", floor=0.05, **SETTINGS)
    other = tr.Publisher(path)
    made.publish(0, 5)
    made.change_chain(1, forward=NEW, start="any")
    other.publish(1, 5)
    assert other.remaining == made.remaining
    assert other.changes["start"].tolist() == ["any"]
    assert len(tr.Publisher(path, forward=OLD, start="habit", floor=0.05, **SETTINGS)) == 2


def mixing_with_alpha_spent(path):
    """A publisher of three times, after which a chain that hardly mixes leaves little."""
    made = tr.Publisher(path, forward=MIXING, start="habit", floor="largest", **SETTINGS)
    made.publish_table(pd.Series(range(3)))
    return made


def largest_leakage(publisher, at):
    """By a plain recursion for a chain that hardly mixes from `at` on."""
    budgets = series_of(publisher)
    before, after = tpl.Cycle([MIXING]), tpl.Cycle([STILL])
    law = before.laws()[0]
    backward, forward = steps_of_both(before, after, law, at, len(budgets) - 1)
    return plain_leakages(budgets, backward, forward).max()


def fail_to_change(made, monkeypatch):
    """The disk is full at the commit."""

    def commit(store):
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(Store, "commit", commit)
        with pytest.raises(OSError, match="disk is full"):
            made.change_chain(3, forward=EVEN, floor="largest")


def change_and_put_back(made, _):
    """The file is what it was before a change, as a backup has taken its place."""
    backup = made.path.with_name("backup")
    made.backup(backup)
    made.change_chain(3, forward=EVEN, floor="largest")
    shutil.copy(backup, made.path)
    tr.Publisher(made.path).resume()


@pytest.mark.parametrize("change_in_vain", [fail_to_change, change_and_put_back])
def test_an_open_publisher_forgets_its_own_change_if_the_file_holds_another(
    path, monkeypatch, change_in_vain
):
    made = mixing_with_alpha_spent(path)
    change_in_vain(made, monkeypatch)
    tr.Publisher(path).change_chain(3, forward=STILL, floor="largest")
    assert made.remaining == tr.Publisher(path).remaining
    assert made.changes["floor"].tolist() == tr.Publisher(path).changes["floor"].tolist()
    for now in range(3, 7):
        made.publish(now, 1)
    assert largest_leakage(made, 3) <= 1.0 + 1e-12


def test_an_older_copy_counts_no_time_from_a_lost_change_on_until_it_is_repeated(path):
    """By the first chain such a time would have left more than it did."""
    made = mixing_with_alpha_spent(path)
    backup = path.with_name("backup")
    made.backup(backup)
    made.publish(3, 1)
    made.change_chain(4, forward=STILL, floor=0.01)
    made.publish(4, 1, epsilon=made.remaining)
    spent = series_of(made)
    shutil.copy(backup, path)
    copy = tr.Publisher(path)
    lost = "the chain was changed at 4 in a later state of this file, found times up to "
    with pytest.raises(ValueError, match=f"{lost}4; go on up to the time before it, repeat"):
        copy.resume(4)
    copy.resume(3)
    with pytest.raises(ValueError, match=f"{lost}4"):
        copy.publish(4, 1)
    with pytest.raises(ValueError, match=f"{lost}4"):
        copy.skip(4)
    with pytest.raises(ValueError, match=f"{lost}9"):
        copy.resume(9)
    copy.resume()  # which still knows
    copy.change_chain(4, forward=STILL, floor=0.01)
    copy.resume(4)
    assert copy.remaining == 0.01
    budgets = [*spent, *[0.01] * 20]
    before, after = tpl.Cycle([MIXING]), tpl.Cycle([STILL])
    steps = steps_of_both(before, after, before.laws()[0], 4, len(budgets) - 1)
    assert plain_leakages(np.array(budgets), *steps).max() <= 1.0 + 1e-12


def test_a_lost_change_is_repeated_before_another_one(path):
    made = mixing_with_alpha_spent(path)
    backup = path.with_name("backup")
    made.backup(backup)
    made.skip(3)
    made.change_chain(4, forward=STILL, floor=0.0)
    shutil.copy(backup, path)
    copy = tr.Publisher(path).resume()
    message = "was changed from 4 on in a later state of this file, found a change at 3; repeat"
    with pytest.raises(ValueError, match=message):
        copy.change_chain(3, forward=STILL, floor=0.0)
    copy.skip(3).change_chain(4, forward=STILL, floor=0.0)
    copy.publish(4, 1, epsilon=copy.remaining)
    copy.skip(5).change_chain(6, forward=MIXING, floor=0.0)
    assert tr.Publisher(path).changes["time"].tolist() == [4, 6]


def test_a_witness_knows_of_more_changes_than_it_has_room_for(path, tmp_path):
    """The first of them, of which it does not tell when, may have been made at once."""
    witness = tmp_path / "elsewhere" / "witness"
    witness.parent.mkdir()
    made = tr.Publisher(path, forward=OLD, start="habit", witness=witness, **SETTINGS)
    made.skip(0)
    made.backup(path.with_name("copy"))
    for number in range(MOST_CHANGES + 1):
        made.skip(2 * number + 1, until=2 * number + 2)
        made.change_chain(2 * number + 3, forward=NEW)
    path.with_name(f"{path.name}.mark").unlink()
    shutil.move(path.with_name("copy"), path)
    copy = tr.Publisher(path).resume()
    with pytest.raises(ValueError, match="changed at 1 in a later state"):
        copy.skip(1)
    copy.change_chain(1, forward=OLD)
    copy.skip(1, until=4)
    with pytest.raises(ValueError, match="changed at 5 in a later state"):
        copy.skip(5)


def test_a_mark_of_an_earlier_version_knows_of_no_change(path):
    tr.Publisher(path, forward=OLD, start="habit", **SETTINGS).skip(0)
    mark = path.with_name(f"{path.name}.mark")
    fields = json.loads(mark.read_text().split(" ", 1)[1])
    del fields["n_chains"], fields["changed_at"]
    content = json.dumps(fields)
    mark.write_text(f"{_digest(content)} {content}\n")
    resumed = tr.Publisher(path).resume()
    assert resumed.publish(1, 5, epsilon=0.1) is not None


def test_the_largest_floor_is_0_where_all_was_spent_at_the_last_time(path):
    made = tr.Publisher(path, forward=OLD, start="habit", **SETTINGS)
    made.publish(0, 1, epsilon=made.remaining)
    made.skip(1).change_chain(2, forward=NEW, floor="largest")
    assert made.changes["floor"][0] <= 1e-12


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"time": 4, "forward": NEW}, "at a time that is next, and once, found 4, with 5 next"),
        ({"time": 6, "forward": NEW}, "5 is next, not 6: 1 missing; publish them, or skip"),
        ({"time": 5}, "a change needs the new chain, found no forward="),
        ({"time": 5, "forward": NEW, "backward": NEW, "start": "any"}, "leave out one of them"),
        (
            {"time": 5, "forward": np.full((3, 3), 1 / 3), "start": "any"},
            "must have the states of the earlier",
        ),
        ({"time": 5, "forward": NEW, "floor": 0.9}, "floor must keep the TPL within alpha"),
        ({"time": 5, "forward": NEW, "floor": [0.1, 0.1]}, "of the 1 phases of the new chain, fou"),
        (
            {"time": 5, "forward": tpl.Cycle([NEW] * 24, step="1h")},
            "the phases of a day need times that are dates, found whole numbers",
        ),
    ],
)
def test_a_change_that_does_not_fit_is_refused_and_nothing_changes(path, words, message):
    made = tr.Publisher(path, forward=OLD, start="habit", floor=0.1, **SETTINGS)
    for now in range(5):
        made.publish(now, 10)
    rest = made.remaining
    with pytest.raises(ValueError, match=message):
        made.change_chain(**words)
    assert (made.remaining, len(made.changes)) == (rest, 0)
    made.publish(5, 10)


def test_floors_of_phases_go_with_the_phases_of_the_new_chain(path):
    made = tr.Publisher(path, forward=OLD, start="habit", floor=0.1, **SETTINGS)
    made.publish(0, 10)
    cycle = tpl.Cycle([NEW, STILL], ["day", "night"])
    made.change_chain(1, forward=cycle, start="any", floor=[0.05, 0.01])
    assert [made.publish(time, 10) is not None for time in (1, 2)] == [True, True]
    assert made.ledger["epsilon"].tolist() == [0.1, 0.05, 0.01]
    for other in (tpl.Cycle([NEW, STILL], ["work", "home"]), tpl.Cycle([NEW] * 3)):
        with pytest.raises(ValueError, match=f"that of the {len(other)} phases of the new chain"):
            made.change_chain(3, forward=other, start="any")


def test_a_side_alone_keeps_its_states(path):
    made = tr.Publisher(path, backward=None, forward=OLD, floor=0.1, **SETTINGS)
    made.publish(0, 10)
    other_states = r"found \[0, 1, 2\] in place of \[0, 1\]; give a .* in the same order$"
    with pytest.raises(ValueError, match=other_states):
        made.change_chain(1, backward=None, forward=np.full((3, 3), 1 / 3))
    named = tpl.TransitionMatrix(NEW, states=["home", "work"])
    with pytest.raises(ValueError, match="order, without names of states: the earlier chain has n"):
        made.change_chain(1, backward=None, forward=named)
    made.change_chain(1, backward=None, forward=tpl.Cycle([NEW, OLD]), floor=0.05)
    assert made.publish(1, 10) is not None


@pytest.mark.parametrize(
    "chain",
    [
        {"backward": OLD, "forward": OLD},
        {"forward": OLD, "start": "any"},
        {"backward": None, "forward": tf.loss_from_counts([[800, 200], [100, 900]])},
    ],
)
def test_a_law_that_is_not_known_must_be_given(path, chain):
    made = tr.Publisher(path, **chain, floor=0.05, **SETTINGS)
    made.publish(0, 10)
    with pytest.raises(ValueError, match="the law of the state at the change must be known, found"):
        made.change_chain(1, forward=NEW)
    made.change_chain(1, forward=NEW, start=[0.5, 0.5])
    made.publish(1, 10)
    with pytest.raises(ValueError, match="at a time that is next, and once"):
        made.change_chain(1, forward=OLD)


def test_a_plan_and_a_file_without_times_keep_their_chain(path):
    made = tr.Publisher(path, forward=OLD, start="habit", floor=0.1, **SETTINGS)
    with pytest.raises(ValueError, match="after its first time, found none that passed"):
        made.change_chain(0, forward=NEW)
    planned = tr.Publisher(path.with_name("b"), forward=OLD, start="habit", plan=[0.1], **SETTINGS)
    with pytest.raises(ValueError, match="a plan is fixed in advance for one chain"):
        planned.change_chain(0, forward=NEW)


def test_a_copy_of_a_changed_file_is_resumed_within_alpha(path):
    made = tr.Publisher(path, forward=OLD, start="habit", floor=0.1, **SETTINGS)
    made.publish_table(pd.Series(range(5)))
    made.change_chain(5, forward=NEW, floor="largest")
    made.publish(5, 10)
    made.backup(path.with_name("copy"))
    made.publish(6, 10, made.remaining)
    copy = tr.Publisher(path.with_name("copy")).resume(6)
    assert copy.remaining <= made.remaining * (1 + 1e-12)
    assert copy.remaining >= made.changes["floor"][0]


def test_a_lost_change_is_damage(path):
    made = tr.Publisher(path, forward=OLD, start="habit", floor=0.1, **SETTINGS)
    made.publish(0, 10)
    made.change_chain(1, forward=NEW, floor="largest")
    with sqlite3.connect(path) as database:
        database.execute("DELETE FROM large WHERE name = 'chains'")
    with pytest.raises(OSError, match="is damaged .its chains is missing"):
        tr.Publisher(path)


@pytest.mark.parametrize("stride", [997, pytest.param(101, marks=pytest.mark.slow)])
def test_a_process_killed_at_any_line_of_a_change_has_changed_all_or_nothing(tmp_path, stride):
    line = 1
    is_killed = True
    while is_killed:
        path = tmp_path / f"killed at {line}"
        tr.Publisher(path, forward=OLD, start="habit", floor=0.1, **SETTINGS).publish(0, 10)
        is_killed = killed_at_line(
            lambda path=path: tr.Publisher(path).change_chain(1, forward=NEW, floor=0.11), line
        )
        publisher = tr.Publisher(path)
        publisher.publish(1, 5)
        floors = publisher.changes["floor"].tolist()
        assert floors in ([], [0.11])
        assert publisher.ledger["epsilon"].tolist() == [0.1, *(floors or [0.1])]
        line += stride
    assert line > 1000


@pytest.mark.parametrize("paths", [60, pytest.param(200, marks=pytest.mark.slow)])
def test_a_person_who_comes_and_goes_is_within_the_leakage_of_her_stay(tmp_path, paths):
    """All outputs of her times, of randomised answers; she comes in any law, or in the habit."""
    rng = np.random.default_rng(paths)
    largest = 0.0
    for number in range(paths):
        n = int(rng.integers(2, 4))
        before, after = random_chain(rng, n), random_chain(rng, n)
        made = tr.Publisher(
            tmp_path / f"{number}", forward=before, start="habit", floor="largest", **SETTINGS
        )
        at = int(rng.integers(1, 6))
        spend(rng, made, at, "all")
        made.change_chain(at, forward=after, floor="largest")
        spend(rng, made, 8, "random")
        first = int(rng.integers(0, 8))
        last = int(rng.integers(first, min(first + 6, 8)))
        law = before.laws()[0]
        _, forward = steps_of_both(before, after, law, at, 8)
        for matrix in forward[:first]:
            law = law @ matrix
        start = None
        if rng.random() < 0.6:
            law = rng.dirichlet(np.full(n, 0.5)) + 1e-4
            law = law / law.sum()
            start = "any"
        stay = made.leakage_of_stay(first, last, start)
        budgets = series_of(made)[first : last + 1]
        exact = exact_leakage(budgets, law, forward[first:last], rng)
        assert exact <= stay.max() + 1e-12
        assert (stay.tpl <= made.leakage.tpl[first : last + 1] + 1e-12).all() or start == "any"
        assert stay.user_level == pytest.approx(budgets.sum())
        assert stay.index.tolist() == list(range(first, last + 1))
        if stay.max() > 0.0:
            largest = max(largest, exact / stay.max())
    assert 0.9 < largest <= 1.0 + 1e-12


def test_a_stay_is_of_known_budgets_of_times_that_have_passed(path):
    made = tr.Publisher(path, backward=OLD, forward=OLD, floor=0.1, **SETTINGS)
    made.publish_table(pd.Series(range(6)))
    made.skip(6, 9)
    assert made.leakage_of_stay(5, 8).epsilons.tolist() == [0.1, 0.0, 0.0, 0.0]
    for first, last in ((3, 2), (8, 10), (-1, 3)):
        with pytest.raises(ValueError, match="a stay must be of times that have passed, the first"):
            made.leakage_of_stay(first, last)
    with pytest.raises(ValueError, match="start must be"):
        made.leakage_of_stay(0, 1, "habit")
    made.resume(11)
    with pytest.raises(ValueError, match="found times spent elsewhere"):
        made.leakage_of_stay(8, 10)
    counted = tf.loss_from_counts([[800, 200], [100, 900]])
    other = tr.Publisher(path.with_name("b"), backward=None, forward=counted, floor=0.1, **SETTINGS)
    other.publish_table(pd.Series(range(3)))
    with pytest.raises(ValueError, match="start='any' needs the forward matrix of each step, fou"):
        other.leakage_of_stay(0, 2, "any")
