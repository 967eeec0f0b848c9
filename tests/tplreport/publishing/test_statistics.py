"""Several statistics over the same people: what they spend together, what each of them gets, and
that no value is drawn twice."""

import sqlite3
from copy import copy
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import tplfrontier as tf
import tplreport as tr
import tplrepro as tpl
from tests.tplreport.publishing.killed_workers import run_and_kill_workers, statistics_of
from tests.tplreport.publishing.test_publisher import killed_at_line
from tests.tplreport.publishing.test_publisher_cycles import plain_leakages
from tplreport.publishing.publisher import RepeatedTimeWarning
from tplreport.publishing.statistics import (
    Statistic,
    checked_statistics,
    divided,
    schedule_of,
    sum_of,
)

P = [[0.8, 0.2], [0.1, 0.9]]
BOTH = {"backward": P, "forward": P, "alpha": 1.0}
THREE = {
    "people": {"sensitivity": 2, "share": 0.5},
    "visits": {"sensitivity": 3, "share": 0.3},
    "spent": {"sensitivity": 50.5, "share": 0.2, "every": 4, "at": 1},
}
BY_CLOCK = {
    "people": {"sensitivity": 2, "share": 0.5},
    "spent": {"sensitivity": 50, "share": 0.3, "every": "1D", "at": "06:00"},
    "new": {"sensitivity": 1, "share": 0.2, "every": "7D", "at": "Tue 12:00"},
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "counts.sqlite"


@pytest.fixture
def publisher(path):
    return tr.Publisher(path, **BOTH, statistics=THREE, floor=0.1)


def counts_at(time):
    """Those that are due at a time of `THREE`."""
    counts = {"people": {"home": 1000 + time, "work": 7 * time}, "visits": 300}
    if time % 4 == 1:
        counts["spent"] = 5000.25
    return counts


def test_each_statistic_has_its_share_its_sensitivity_and_its_time(publisher, path, monkeypatch):
    seen = []

    def look(self, counts, budgets, place):
        if counts.any():
            seen.append((self._statistics[place].name, budgets))
        return draw(self, counts, budgets, place)

    draw = tr.Publisher._noise
    monkeypatch.setattr(tr.Publisher, "_noise", look)
    noisy = [publisher.publish(time, counts_at(time)) for time in range(4)]
    assert [[*of_time] for of_time in noisy] == [
        ["people", "visits"],
        ["people", "visits", "spent"],
        ["people", "visits"],
        ["people", "visits"],
    ]
    assert type(noisy[1]["people"]["home"]) is int
    assert type(noisy[1]["visits"]) is int
    assert type(noisy[1]["spent"]) is float
    of_one_time = [("people", [0.05]), ("visits", [0.03]), ("spent", [0.1 * 0.2])]
    assert seen == [*of_one_time[:2], *of_one_time, *of_one_time[:2] * 2]
    ledger = publisher.ledger
    assert ledger.columns.tolist() == [
        "time",
        "count",
        "epsilon",
        "epsilon: people",
        "epsilon: visits",
        "epsilon: spent",
        "kind",
    ]
    assert ledger["epsilon: spent"].tolist() == [0.0, 0.1 * 0.2, 0.0, 0.0]
    spent = [0.08, 0.1, 0.08, 0.08]
    assert ledger["epsilon"].tolist() == pytest.approx(spent)
    account = tpl.TemporalFilter(1.0, tpl.Cycle([P] * 4), P, floor=ledger["epsilon"].tolist())
    for budget in ledger["epsilon"]:
        account.spend(budget)
    assert publisher.remaining == tr.Publisher(path).remaining == account.remaining
    expected = tpl.temporal_privacy_leakage(ledger["epsilon"].tolist(), P, P)
    assert publisher.leakage.tpl.tolist() == expected.tpl.tolist()


def test_values_are_handed_out_again_whole_or_in_part(publisher, path):
    first = publisher.publish(0, counts_at(0))
    second = publisher.publish(1, counts_at(1))
    again = tr.Publisher(path)
    with pytest.warns(RepeatedTimeWarning):
        assert again.publish(1, counts_at(2) | {"spent": 1.0}) == second
    with pytest.warns(RepeatedTimeWarning):
        found = again.publish(1, {"spent": 7.5, "people": {"work": 0, "home": 0}})
    assert found == {"spent": second["spent"], "people": second["people"]}
    assert list(found["people"]) == ["work", "home"]
    with pytest.raises(ValueError, match="time 0 was published with people, visits, found spent"):
        again.publish(0, {"spent": 1.0})
    table = again.to_frame()
    assert table.columns.tolist() == ["people: home", "people: work", "visits", "spent"]
    assert table["visits"].tolist() == [first["visits"], second["visits"]]
    assert table["spent"].isna().tolist() == [True, False]
    assert again.to_frame("people").to_dict("index") == {0: first["people"], 1: second["people"]}
    assert again.to_frame("spent").index.tolist() == [1]
    with pytest.raises(ValueError, match="mapping of the statistics people, visits, spent, found"):
        again.to_frame("sales")


def test_one_statistic_has_no_name_to_ask_for(path):
    publisher = tr.Publisher(path, **BOTH, sensitivity=1, floor=0.1)
    publisher.publish(0, 3)
    message = "names of statistics belong to a file of several, found people; correct it"
    for ask in (
        lambda: publisher.to_frame("people"),
        lambda: publisher.smoothed(statistic="people", chain=None),
        lambda: publisher.publish(1, 3, epsilon={"people": 0.1}),
        lambda: publisher.publish(1, 3, without="people"),
    ):
        with pytest.raises(ValueError, match=message):
            ask()
    assert len(publisher) == 1


def test_tables_of_statistics_keep_their_own_times(publisher, path):
    times = np.arange(9)
    people = pd.DataFrame({"work": 7 * times, "home": 500 - times}, times)
    visits = pd.Series(300, times, name="n")
    spent = pd.Series([5000.0, 5100.5], [1, 5])
    noisy = publisher.publish_table({"spent": spent, "visits": visits, "people": people})
    assert [*noisy] == ["people", "visits", "spent"]
    assert noisy["people"].columns.tolist() == ["work", "home"]
    assert noisy["people"].dtypes.tolist() == [np.int64] * 2
    assert (noisy["visits"].name, noisy["spent"].index.tolist()) == ("n", [1, 5])
    assert abs(noisy["people"] - people).to_numpy().max() < 60 * 2 / 0.05
    found = tr.Publisher(path).to_frame("people")[["work", "home"]]
    pd.testing.assert_frame_equal(found, noisy["people"], check_names=False)
    with pytest.warns(RepeatedTimeWarning, match="9 of 9 times were"):
        again = publisher.publish_table({"people": people[["home", "work"]]})
    pd.testing.assert_frame_equal(again["people"], noisy["people"][["home", "work"]])
    with pytest.raises(ValueError, match="spent is due at 9, found no counts"):
        publisher.publish_table(
            {"people": people.set_axis(times + 9), "visits": visits.set_axis(times + 9)}
        )
    assert len(publisher) == 9


def test_a_statistic_that_comes_first_may_have_fewer_times(path):
    rare = {
        "spent": {"sensitivity": 50, "share": 0.5, "every": 2},
        "people": {"sensitivity": 2, "share": 0.5},
    }
    made = tr.Publisher(path, **BOTH, statistics=rare, floor=0.1)
    tables = {"spent": pd.Series([10, 20], [0, 2]), "people": pd.Series(range(4))}
    noisy = made.publish_table(tables)
    assert {name: table.index.tolist() for name, table in noisy.items()} == {
        "spent": [0, 2],
        "people": [0, 1, 2, 3],
    }
    assert len(made) == 4


@pytest.mark.usefixtures("seeded_noise")
def test_a_share_that_is_not_spent_stays_in_the_account(path, tmp_path):
    """By periods the floor can be larger, and what is not known is not paid for."""
    rare = {
        "people": {"sensitivity": 2, "share": 0.5},
        "spent": {"sensitivity": 50, "share": 0.5, "every": 24},
    }
    made = tr.Publisher(path, **BOTH, statistics=rare, floor="largest")
    floor = made.settings["floor"]
    alone = tpl.allocate_by_upper_bound(1.0, P, P)
    assert 1.7 * alone < floor < 2.0 * alone
    with pytest.raises(ValueError, match="floor must keep the TPL within alpha = 1 for ever"):
        tr.Publisher(tmp_path / "b", **BOTH, statistics=rare, floor=floor * (1 + 1e-9))
    for time in range(120):
        counts = {"people": 100}
        if time % 24 == 0:
            counts["spent"] = 1000
        made.publish(time, counts)
    budgets = made.ledger["epsilon"].to_numpy()
    leaked = plain_leakages(budgets, [np.array(P)] * 119, [np.array(P)] * 119)
    assert 0.99 < leaked.max() <= 1.0
    account = copy(made._filter).spend(floor)
    made.publish(120, {"people": 100}, without="spent")
    assert made.ledger["epsilon: spent"].iloc[-1] == 0.0
    assert made.remaining > account.remaining
    assert tr.Publisher(path, **BOTH, statistics=rare, floor="largest").remaining == made.remaining


@pytest.mark.parametrize(
    "statistics",
    [
        {"people": {"sensitivity": 2, "share": 1.0, "every": 2}},
        {
            "people": {"sensitivity": 2, "share": 0.25},
            "spent": {"sensitivity": 5, "share": 0.75, "every": 2},
        },
        {
            "people": {"sensitivity": 2, "share": 0.25, "every": 3},
            "spent": {"sensitivity": 5, "share": 0.75, "every": 3, "at": 1},
        },
    ],
)
def test_the_largest_floor_is_that_of_few_phases_too(tmp_path, statistics):
    settings = BOTH | {"statistics": statistics}
    floor = tr.Publisher(tmp_path / "a", **settings, floor="largest").settings["floor"]
    tr.Publisher(tmp_path / "b", **settings, floor=floor)
    with pytest.raises(ValueError, match="floor must keep the TPL within alpha = 1 for ever"):
        tr.Publisher(tmp_path / "c", **settings, floor=floor * (1 + 1e-9))


def test_noise_of_a_small_share_must_be_possible_to_draw(path):
    """A quarter of the budget has twice the Gaussian noise."""
    statistics = {
        "people": {"sensitivity": 1, "share": 0.25},
        "visits": {"sensitivity": 1, "share": 0.75},
    }
    settings = BOTH | {"statistics": statistics, "delta": 1e-6}
    with pytest.raises(ValueError, match=r"must be at most 2\*\*57, found 2.0381e\+17; reduce"):
        tr.Publisher(path, **settings, plan=[2.0**56.5])
    assert not path.exists()
    tr.Publisher(path, **settings, plan=[2.0**55.5])


@pytest.mark.parametrize(
    ("first", "hours"),
    [("2024-05-01 03:00", 200), ("2024-05-06 06:00", 40), ("2024-05-07 12:00", 40)],
)
@pytest.mark.usefixtures("seeded_noise")
def test_statistics_follow_the_clock(path, first, hours):
    """A day and a week of matrices, with a first time at any hour: due is what the clock shows.

    Each statistic is due within these hours; after the first 200 a week has begun anew.
    """
    night = [[0.98, 0.02], [0.03, 0.97]]
    habits = tpl.Cycle([night] * 8 + [P] * 16, step="1h")
    settings = {"alpha": 1.0, "step": "1h", "start": "habit", "forward": habits}
    made = tr.Publisher(path, **settings, statistics=BY_CLOCK, floor="largest")
    floor = made.settings["floor"]
    least = made.remaining
    for time in pd.date_range(first, periods=hours, freq="1h"):
        counts = {"people": {"a": 10, "b": 20}}
        if time.hour == 6:
            counts["spent"] = 1000
        if time.hour == 12 and time.day_name() == "Tuesday":
            counts["new"] = 3
        assert made.remaining >= floor * sum(BY_CLOCK[name]["share"] for name in counts) - 1e-15
        if not len(made):
            assert made.remaining >= least
        made.publish(time, counts)
    is_spent = (made.ledger.filter(like="epsilon: ") > 0.0).any()
    assert is_spent.all()
    assert made.leakage.max() <= 1.0
    assert tr.Publisher(path).remaining == made.remaining


def test_floors_of_phases_are_shared_by_those_that_are_due(path):
    habits = tpl.Cycle([P] * 12 + [[[0.9, 0.1], [0.05, 0.95]]] * 12, step="1h")
    floors = {label: 0.01 if label < "06:00" else 0.02 for label in habits.phases}
    settings = {"alpha": 1.0, "step": "1h", "start": "habit", "forward": habits}
    made = tr.Publisher(path, **settings, statistics=BY_CLOCK, floor=floors)
    made.publish("2024-05-07 05:00", {"people": 1})  # a Tuesday
    made.publish("2024-05-07 06:00", {"people": 1, "spent": 2.5})
    made.skip("2024-05-07 07:00", until="2024-05-07 11:00")
    made.publish("2024-05-07 12:00", {"people": 1, "new": 3})
    expected = [0.005, 0.02 * 0.8, 0.0, 0.02 * 0.7]
    assert made.ledger["epsilon"].tolist() == pytest.approx(expected)
    assert len(tr.Publisher(path, **settings, statistics=BY_CLOCK, floor=floors)) == 8


def test_an_epsilon_is_divided_or_given_to_each(publisher):
    publisher.publish(0, counts_at(0), epsilon=0.2)
    publisher.publish(1, {"spent": 5000.0}, epsilon={"spent": 0.15})
    with pytest.raises(ValueError, match="epsilon must have a budget for each .* those of people"):
        publisher.publish(2, counts_at(2), epsilon={"people": 0.1})
    with pytest.raises(tpl.LeakageExceededError, match="epsilon must be at most"):
        publisher.publish(2, counts_at(2), epsilon={"people": 0.5, "visits": 0.4})
    assert len(publisher) == 2
    ledger = publisher.ledger
    assert ledger["epsilon"].tolist() == [0.2, 0.15]
    assert ledger["epsilon: people"].tolist() == pytest.approx([0.125, 0.0])
    assert ledger["epsilon: visits"].tolist() == pytest.approx([0.075, 0.0])
    assert ledger["epsilon: spent"].tolist() == [0.0, 0.15]


def test_a_plan_is_divided_among_those_that_are_due(path):
    plan = [0.3, 0.2, 0.2]
    made = tr.Publisher(path, **BOTH, statistics=THREE, plan=plan)
    for time in range(3):
        made.publish(time, counts_at(time))
    ledger = made.ledger
    assert ledger["epsilon"].tolist() == plan
    assert ledger["epsilon: visits"].tolist() == pytest.approx([0.3 * 3 / 8, 0.06, 0.2 * 3 / 8])


def test_gaussian_statistics_spend_one_multiplier_together(path):
    plan = tf.allocate_noise(2.0, 1e-6, P, P, 3)
    settings = BOTH | {"alpha": 2.0}
    made = tr.Publisher(path, **settings, statistics=THREE, plan=plan, delta=1e-6)
    for time in range(3):
        made.publish(time, counts_at(time))
    ledger = made.ledger
    names = [f"noise_multiplier: {name}" for name in THREE]
    for row, level in zip(ledger[names].to_numpy(), plan, strict=True):
        together = sum(1 / Fraction(each) ** 2 for each in row if each)
        assert together <= 1 / Fraction(level) ** 2
        assert float(together) == pytest.approx(level**-2)
    assert made.leakage.epsilon(1e-6).max() < 2.0


def schedule(fields, p, step, begins):
    """That of one statistic beside another one that is always due."""
    some = {"sensitivity": 1, "share": 0.5}
    found = checked_statistics({"always": some, "rare": some | fields}, step)
    return schedule_of([Statistic(**of_one) for of_one in found], p, step, begins)


@pytest.mark.parametrize("begins", [0, 1, 3, 7])
@pytest.mark.parametrize(("every", "at", "p"), [(2, 0, 1), (4, 1, 2), (3, 2, 2), (6, 5, 4)])
def test_statistics_of_numbers_are_due_at_multiples_after_their_first_time(every, at, p, begins):
    found = schedule({"every": every, "at": at}, p, 1, begins)
    assert len(found) == np.lcm(every, p)
    for phase, due in enumerate(found.phases):
        assert 0 in due
        assert (1 in due) == ((begins + phase) % every == at)


@pytest.mark.parametrize("begins", [0, 7, 22])
@pytest.mark.parametrize(
    ("every", "at", "hours", "period"),
    [("1D", "06:00", 24, "day"), ("2h", "01:00", 24, "day"), ("7D", "Tue 12:00", 168, "week")],
)
def test_statistics_of_dates_are_due_when_the_clock_shows_it(every, at, hours, period, begins):
    """Phase 0 begins at a full hour of a Monday."""
    hour = 3600 * 10**9
    found = schedule({"every": every, "at": at}, 24, "0 days 01:00:00", begins * hour)
    assert (len(found), found.period) == (hours, period)
    shown = pd.date_range("2024-05-06", periods=hours, freq="1h") + pd.Timedelta(hours=begins)
    for due, time in zip(found.phases, shown, strict=True):
        text = f"{time:%a %H:%M}"
        is_due = text.endswith(at)
        if every == "2h":
            is_due = time.hour % 2 == 1
        assert (1 in due) == is_due


@pytest.mark.parametrize("seed", range(20))
def test_no_rounding_spends_more_than_a_time_has(seed):
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.ones(rng.integers(2, 12))).tolist()
    total = float(rng.uniform(0.0, 1.0))
    parts = divided(total, shares, gaussian=False)
    assert sum(map(Fraction, parts)) <= Fraction(total)
    assert sum(parts) == pytest.approx(total, rel=1e-12)
    assert Fraction(sum_of(parts)) >= sum(map(Fraction, parts))
    multipliers = divided(total, shares, gaussian=True)
    assert sum(1 / Fraction(each) ** 2 for each in multipliers) <= 1 / Fraction(total) ** 2


WRONG = "sensitivity and a share, and may have every and at"


@pytest.mark.parametrize(
    ("statistics", "message"),
    [
        ({}, "statistics must be a mapping of names"),
        ([1], "statistics must be a mapping of names"),
        ({"a": {"sensitivity": 1, "share": 0.5}}, "shares of all .* sum to 1, found 0.5 = 0.5"),
        ({"a": {"sensitivity": 1}}, f"{WRONG}, found sensitivity; correct it"),
        ({"a": {}}, f"{WRONG}, found nothing; correct it"),
        ({"a": {"sensitivity": 1, "share": 1, "period": 2}}, WRONG),
        ({"a": 1}, "statistic 'a' must have a sensitivity and a share, found 1"),
        ({"a: b": {"sensitivity": 1, "share": 1}}, "texts without a colon and a blank, found"),
        ({3: {"sensitivity": 1, "share": 1}}, "names of statistics must be texts"),
        ({"a": {"sensitivity": 1, "share": -1}}, "the share of 'a' must be finite and greater"),
        ({"a": {"sensitivity": 0, "share": 1}}, "sensitivity must be finite and greater than 0"),
        ({"a": {"sensitivity": 1, "share": 1, "every": "1D"}}, "whole number of steps, .* every=7"),
        ({"a": {"sensitivity": 1, "share": 1, "every": 7, "at": 7}}, "from 0 to 6, found 7"),
        ({"a": {"sensitivity": 1, "share": 1, "at": 0}}, "at of statistic 'a' belongs to every"),
        ({"a": {"sensitivity": 1, "share": 1, "every": 10**6}}, "at most 20000 steps, found"),
    ],
)
def test_wrong_statistics_are_refused_with_a_remedy(path, statistics, message):
    with pytest.raises(ValueError, match=message):
        tr.Publisher(path, **BOTH, statistics=statistics, floor=0.1)
    assert not path.exists()


@pytest.mark.parametrize(
    ("every", "at", "message"),
    [
        (24, "06:00", "whole number of steps, found every=24 with step='1h'; .*'1D'"),
        ("90min", "06:00", "whole number of steps"),
        ("5h", "06:00", "return with the day or week, found every='5h' of 'a' with step='1h'"),
        ("1D", "06:30", "must be a time of the publisher, found one 30min after"),
        ("1D", "noon", "a time of the day or week, found 'noon'; give such as at='18:00'"),
        ("7D", "Fun 06:00", "a time of the day or week, found 'Fun 06:00'"),
    ],
)
def test_wrong_times_of_the_clock_are_refused(path, every, at, message):
    statistics = {"a": {"sensitivity": 1, "share": 1, "every": every, "at": at}}
    with pytest.raises(ValueError, match=message):
        tr.Publisher(path, **BOTH, statistics=statistics, floor=0.1, step="1h")


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        (5, "counts must be a mapping of the statistics people, visits, spent, found int"),
        ({"people": 1, "sales": 2}, "found sales; correct it"),
        ({"people": 1}, "visits is due at 0, found no counts; give them, or without='visits'"),
        ({"people": 1, "visits": 1, "spent": 1}, "spent must not be given at 0, when due are peo"),
    ],
)
def test_wrong_counts_are_refused_and_nothing_is_spent(publisher, counts, message):
    with pytest.raises(ValueError, match=message):
        publisher.publish(0, counts)
    assert len(publisher) == 0


@pytest.mark.parametrize("times", [pd.date_range("2024-05-01", periods=2), ["Monday", "Tuesday"]])
def test_a_column_of_times_among_counts_is_named(publisher, times):
    people = pd.DataFrame({"date": times, "home": [1, 2]})
    with pytest.raises(ValueError, match="in the column 'date'; .* counts.set_index\\('date'\\)"):
        publisher.publish_table({"people": people}, without=("visits", "spent"))
    assert len(publisher) == 0


def test_what_is_not_known_is_named_and_costs_nothing(publisher):
    with pytest.raises(ValueError, match="no statistic is published at 0; skip that time"):
        publisher.publish(0, {}, without=["people", "visits"])
    with pytest.raises(
        ValueError, match="mapping of the statistics people, visits, spent, found x"
    ):
        publisher.publish(0, counts_at(0), without="x")
    people = pd.DataFrame({"home": [1, 2], "work": [3, 4]})
    noisy = publisher.publish_table({"people": people}, without=("visits", "spent"))
    assert [*noisy] == ["people"]
    assert publisher.ledger["epsilon"].tolist() == [0.05, 0.05]


def test_statistics_and_one_sensitivity_exclude_each_other(path, publisher):
    with pytest.raises(ValueError, match="own sensitivity, found sensitivity= beside"):
        tr.Publisher(path.with_name("b"), **BOTH, statistics=THREE, sensitivity=1)
    with pytest.raises(ValueError, match="floor must be one of .*'largest'"):
        tr.Publisher(path.with_name("b"), **BOTH, statistics=THREE, floor="big")
    other = THREE | {"people": {"sensitivity": 2, "share": 0.5, "every": 2}}
    with pytest.raises(ValueError, match="made with other settings of statistics"):
        tr.Publisher(path, **BOTH, statistics=other, floor=0.1)
    frame = pd.DataFrame(THREE).T
    assert len(tr.Publisher(path, **BOTH, statistics=frame, floor=0.1)) == 0


def test_a_file_of_one_statistic_is_as_it_was(path):
    """Files of earlier versions, and of one statistic, hold values alone."""
    made = tr.Publisher(path, **BOTH, sensitivity=2, floor=0.1)
    noisy = made.publish(0, {"home": 5, "work": 7})
    with sqlite3.connect(path) as database:
        content = dict(database.execute("SELECT name, value FROM settings"))
        content |= dict(database.execute("SELECT name, value FROM large"))
        ((stored,),) = database.execute("SELECT noisy FROM times").fetchall()
    assert "statistics" not in content["settings"]
    assert content["columns"] == '{"labels": ["home", "work"], "kind": "<i8"}'
    assert np.frombuffer(stored, "<i8").tolist() == [*noisy.values()]


def test_reserved_statistics_are_drawn_once_and_together(publisher, path, monkeypatch):
    def crash(self, counts, budgets, place):
        if counts.any() and place == 1:
            raise KeyboardInterrupt
        return draw(self, counts, budgets, place)

    draw = tr.Publisher._noise
    with monkeypatch.context() as patched:
        patched.setattr(tr.Publisher, "_noise", crash)
        with pytest.raises(KeyboardInterrupt):
            publisher.publish(0, counts_at(0))
    assert publisher.ledger["kind"].tolist() == ["spent, not drawn"]
    assert publisher.ledger["epsilon: visits"].tolist() == [0.03]
    with pytest.raises(ValueError, match="time 0 are spent on people, visits, found people; give"):
        publisher.publish(0, {"people": {"home": 1, "work": 2}})
    rest = publisher.remaining
    noisy = publisher.publish(0, {"people": {"home": 10**9, "work": 2}, "visits": 10**9})
    assert abs(noisy["visits"] - 10**9) < 10**4
    assert publisher.remaining == rest


@pytest.mark.filterwarnings("ignore::tplreport.publishing.publisher.RepeatedTimeWarning")
@pytest.mark.parametrize("stride", [397, pytest.param(7, marks=pytest.mark.slow)])
def test_several_statistics_killed_at_any_line_are_drawn_once(tmp_path, stride):
    line = 1
    is_killed = True
    tr.release_counts([1], 0.1, 1)  # so that its imports are done
    while is_killed:
        path = tmp_path / f"killed at {line}"
        tr.Publisher(path, **BOTH, statistics=THREE, floor=0.1).publish(0, counts_at(0))
        is_killed = killed_at_line(
            lambda path=path: tr.Publisher(path).publish(1, counts_at(1)), line
        )
        publisher = tr.Publisher(path)
        known = publisher.to_frame()
        values = publisher.publish(1, {"people": {"home": 0, "work": 0}, "visits": 0, "spent": 0.5})
        if 1 in known.index:
            assert known.loc[1, "spent"] == values["spent"]
            assert known.loc[1, "people: home"] == values["people"]["home"]
            assert values["people"]["home"] > 300
        else:
            assert abs(values["people"]["home"]) < 60 * 40
        assert publisher.publish(1, counts_at(1)) == values
        publisher.publish(2, counts_at(2))
        assert publisher.ledger["epsilon"].tolist() == pytest.approx([0.08, 0.1, 0.08])
        line += stride
    assert line > 500


@pytest.mark.parametrize(
    ("kills", "last"),
    [(20, 100), pytest.param(500, 10_000, marks=pytest.mark.slow)],
    ids=["few", "many"],
)
def test_killed_processes_publish_no_statistic_twice(path, tmp_path, kills, last):
    tr.Publisher(path, **BOTH, statistics=THREE, floor=0.1)
    handed_out = run_and_kill_workers(path, tmp_path / "notes", last, kills)
    reader = tr.Publisher(path)
    tables = {name: reader.to_frame(name) for name in THREE}
    for line in handed_out:
        at, _, values = line.partition(" ")
        if values != "skipped":
            found = {
                name: table.loc[int(at)].tolist()
                for name, table in tables.items()
                if int(at) in table.index
            }
            assert str(found) == values
    ledger = reader.ledger
    assert len(reader) == last + 1
    is_drawn = ledger["kind"] != "skipped"
    due = np.arange(last + 1) % 4 == 1
    assert ledger["epsilon: spent"].tolist() == (0.1 * 0.2 * (is_drawn & due)).tolist()
    assert ledger["epsilon: people"].tolist() == (0.05 * is_drawn).tolist()
    assert reader.leakage.max() <= 1.0
    open_ends = ledger.index[ledger["kind"] == "spent, not drawn"].tolist()
    for at in open_ends:
        reader.publish(at, statistics_of(at))
    for at in ledger.index[is_drawn][-50:]:
        error = reader.to_frame("people").loc[at].to_numpy() - statistics_of(at)["people"]
        assert np.abs(error).max() < 60 * 40


TWO = {
    "people": {"sensitivity": 1, "share": 0.5},
    "spent": {"sensitivity": 1, "share": 0.5, "every": 2},
}


@pytest.mark.parametrize("later", ["people", "spent"])
def test_tables_in_another_order_are_refused_before_anything_is_spent(path, later):
    """Their values were handed out at the times of others."""
    made = tr.Publisher(path, **BOTH, statistics=TWO, floor=0.1)
    tables = {
        "people": pd.Series([0, 10**6, 2 * 10**6, 3 * 10**6]),
        "spent": pd.Series([0, 20 * 10**6], index=[0, 2]),
    }
    back = tables | {later: tables[later][::-1]}
    with pytest.raises(ValueError, match="times of each table must be in order, found .* after"):
        made.publish_table(back)
    assert len(made) == 0
    noisy = made.publish_table(tables)
    assert noisy["spent"].round(-7).tolist() == [0, 20 * 10**6]
    assert noisy["people"].round(-6).tolist() == tables["people"].tolist()


def test_a_statistic_that_is_not_due_in_the_first_table_may_have_decimals_later(path):
    """It was taken for one of whole numbers for ever."""
    statistics = TWO | {"spent": {"sensitivity": 1, "share": 0.5, "every": 4, "at": 3}}
    made = tr.Publisher(path, **BOTH, statistics=statistics, floor=0.1)
    nothing = pd.Series([], index=pd.Index([], dtype=int), dtype=float)
    noisy = made.publish_table({"people": pd.Series([1, 2, 3]), "spent": nothing})
    assert noisy["spent"].empty
    made.publish(3, {"people": 5, "spent": 4125.5})
    assert made.to_frame("spent")["count"].dtype.kind == "f"
    assert made.to_frame("people")["count"].dtype.kind == "i"


@pytest.mark.parametrize("skipped", [0, 2])
def test_nothing_that_was_published_cannot_be_smoothed(path, skipped):
    made = tr.Publisher(path, **BOTH, sensitivity=1, floor=0.1)
    for time in range(skipped):
        made.skip(time)
    with pytest.raises(ValueError, match="needs counts that were published, found none"):
        made.smoothed(chain=None)
