"""Nothing is handed out twice with other values, nothing that was spent is forgotten, and mistakes
have a remedy."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta, timezone
from fcntl import LOCK_EX, LOCK_NB, LOCK_SH, flock
from pathlib import Path
from uuid import UUID

import numpy as np
import pandas as pd
import pytest

import tplfrontier as tf
import tplreport as tr
import tplrepro as tpl
from tests.tplreport.publishing.killed_workers import (
    FIRST_HOUR,
    counts_of,
    run_and_kill_workers,
    time_of,
)
from tests.work import lines_run
from tplreport.publishing import mark as marks
from tplreport.publishing import marked_file
from tplreport.publishing.chain import is_made_with
from tplreport.publishing.publisher import RepeatedTimeWarning
from tplreport.publishing.store import Columns, Store
from tplreport.publishing.values import Given, arrange

P = [[0.8, 0.2], [0.1, 0.9]]
LEVELS = {"alpha": 1.0, "sensitivity": 1}
SETTINGS = {"backward": P, "forward": P, **LEVELS}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "counts.sqlite"


@pytest.fixture
def publisher(path):
    return tr.Publisher(path, **SETTINGS, floor=0.1)


def limited(pragma, connect=sqlite3.connect):
    def opened(*words, **options):
        database = connect(*words, **options)
        database.execute(f"PRAGMA {pragma}")
        return database

    return opened


def test_a_time_keeps_its_value_and_a_file_its_labels_and_types(publisher, path):
    noisy = publisher.publish(5, {"home": 105, "work": 98})
    assert all(type(value) is int for value in noisy.values())
    for counts in ({"work": 98, "home": 105}, {"home": 105, "work": 99}):
        with pytest.warns(
            RepeatedTimeWarning,
            match="time 5 was handed out before: the same values are returned again, and the "
            "counts that are given now were not compared",
        ):
            assert tr.Publisher(path).publish(5, counts) == noisy
    row = publisher.publish(6, pd.Series([3, 4], ["work", "home"], name="now"))
    assert (row.index.tolist(), row.name, row.dtype) == (["work", "home"], "now", np.int64)
    frame = publisher.to_frame()
    assert frame.index.tolist() == [5, 6]
    assert frame.loc[5].to_dict() == noisy
    assert frame.loc[6].to_dict() == row.to_dict()
    publisher.export(path.with_name("noisy.csv"))
    pd.testing.assert_frame_equal(pd.read_csv(path.with_name("noisy.csv"), index_col="time"), frame)
    with pytest.raises(ValueError, match=r"must have the labels \['home', 'work'\]"):
        publisher.publish(7, {"home": 1, "office": 2})
    with pytest.raises(ValueError, match="whole numbers as before, found decimals"):
        publisher.publish(7, {"home": 1.5, "work": 2})
    with pytest.raises(ValueError, match="labels of counts must be distinct, text or numbers"):
        tr.Publisher(path.with_name("b"), **SETTINGS).publish(0, {float("nan"): 1, "work": 2}, 0.1)
    with pytest.raises(ValueError, match="a publisher needs the level alpha"):
        tr.Publisher(path, backward=None, forward=P)
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    named = tr.Publisher(path.with_name("c"), **SETTINGS, floor=0.1)
    named.publish(0, {composed: 1})
    with pytest.raises(
        ValueError, match=r"labels \[\"'caf\\\\xe9'\"\] .* look alike, but their acc"
    ):
        named.publish(1, {decomposed: 1})


AROUND = [[0.04, 0.75, 0.21], [0.27, 0.73, 0.0], [0.37, 0.61, 0.02]]
TO_AND_FRO = [[0.5, 0.5, 0.0], [0.25, 0.5, 0.25], [0.0, 0.5, 0.5]]
SINKS = np.diag([1.0, 1.0, 1.0])  # with many stationary laws


@pytest.mark.parametrize("form", [list, np.array, tpl.TransitionMatrix, pd.DataFrame])
def test_one_matrix_for_both_sides_is_warned_of_unless_it_is_its_own_reversal(path, form):
    """It was taken without a word, and leaked nine times alpha."""
    around = form(AROUND)
    with pytest.warns(UserWarning, match="are one matrix, but .*; give start='habit' in place of"):
        warned = tr.Publisher(path, backward=around, forward=form(AROUND), floor=0.01, **LEVELS)
    assert is_made_with(warned.settings, around, around, None)  # which does not warn again
    made = tr.Publisher(path.with_name("b"), forward=around, start="habit", floor=0.01, **LEVELS)
    made.skip(0)
    with pytest.warns(UserWarning, match="are one matrix"):
        made.change_chain(1, backward=around, forward=around)
    reverse = tpl.TransitionMatrix(AROUND).reverse()
    sides = ((reverse, around), (None, around), (TO_AND_FRO, TO_AND_FRO), (SINKS, SINKS))
    for number, (backward, forward) in enumerate(sides):
        other = path.with_name(f"fine{number}")
        tr.Publisher(other, backward=backward, forward=forward, **LEVELS)


def test_a_publisher_spends_as_a_temporal_filter(publisher, monkeypatch):
    account = tpl.TemporalFilter(1.0, P, P, floor=0.1)
    for at, budget in enumerate([0.4, None, 0.1, 0.2]):
        publisher.publish(at, 10, budget) if budget else publisher.skip(at)
        account.spend(budget) if budget else account.skip()
        assert publisher.remaining == account.remaining
    rest = publisher.remaining
    with pytest.raises(tpl.LeakageExceededError, match="epsilon must be at most"):
        publisher.publish(4, 10, rest * 1.001)
    assert (publisher.remaining, len(publisher)) == (rest, 4)
    assert publisher.ledger["epsilon"].tolist() == [0.4, 0.0, 0.1, 0.2]
    expected = tpl.TemporalAccountant(P, P).compose(0.4).skip().compose(0.1).compose(0.2).tpl
    assert publisher.leakage.tpl.tolist() == expected.tolist()
    rest = publisher.skip(4, 4000).remaining
    monkeypatch.setattr(tpl.TemporalFilter, "_tolerated_over", None)  # which takes long
    assert publisher.remaining == rest


@pytest.mark.parametrize(
    "loss", [tpl.PriorFreeLoss(P), tf.loss_from_counts([[800, 200], [100, 900]]), None]
)
def test_any_loss_function_is_stored(path, loss):
    made = tr.Publisher(path, backward=loss, forward=loss, alpha=1.0, sensitivity=1, floor=0.01)
    made.publish(0, 10, 0.2)
    again = tr.Publisher(path)
    assert again.publish(1, 10, 0.1) is not None
    expected = tpl.TemporalAccountant(loss, loss).compose(0.2).compose(0.1).tpl
    assert again.leakage.tpl.tolist() == expected.tolist()


def test_sparse_matrices_with_labels_are_stored(path):
    walk = np.random.default_rng(0).integers(0, 4, 400)
    sparse = tpl.TransitionMatrix.from_sequences([walk], n_states=4, smoothing=0.1, sparse=True)
    named = tpl.TransitionMatrix(sparse.probabilities, list("abcd"), background=sparse.background)
    made = tr.Publisher(path, backward=None, forward=named, alpha=1.0, sensitivity=1, floor=0.01)
    made.publish(0, 1)
    again = tr.Publisher(path)
    assert again._chain.forward[0].matrix.states == list("abcd")
    assert again.remaining == made.remaining


def test_a_publisher_spends_its_plan_and_no_more(path):
    plan = tpl.allocate_by_quantification(1.0, P, P, 3)
    made = tr.Publisher(path, **SETTINGS, plan=plan)
    made.publish_table(pd.Series([1, 2], name="n"))
    assert made.remaining == plan[2]
    made.skip(2)
    assert (made.remaining, made.ledger["epsilon"].tolist()) == (0.0, [*plan[:2], 0.0])
    with pytest.raises(
        ValueError, match="has 3 times, 0 of them left, found 1 new .*; end here, or"
    ):
        made.publish(3, 1)
    for spend in (lambda: made.publish(3, 1, 0.1), lambda: made.skip(3, epsilon=0.1)):
        with pytest.raises(ValueError, match="a plan holds the budget of each time"):
            spend()


def test_more_times_than_a_plan_has_left_are_counted_and_none_is_published(path):
    made = tr.Publisher(path, **SETTINGS, plan=[0.1] * 3)
    made.publish(0, 1)
    message = "has 3 times, 2 of them left, found 4 new times, of which none was published; "
    message += "give at most 2, and the others to a new file with a plan of its own"
    with pytest.raises(ValueError, match=message):
        made.publish_table(pd.Series([1] * 5, name="n"))
    assert len(made) == 1


def test_a_backup_without_times_does_not_begin_a_plan_again(publisher, path):
    planned = tr.Publisher(path.with_name("planned"), **SETTINGS, plan=[0.1, 0.1])
    for made in (publisher, planned):
        made.backup(path.with_name(f"copy of {made.path.name}"))
        made.publish_table(pd.Series([1, 1], [5, 6]))
        copy = tr.Publisher(path.with_name(f"copy of {made.path.name}"))
        if made is planned:
            with pytest.raises(
                ValueError, match="must know the first time of its plan, .* up to 6"
            ):
                copy.resume(6)
        else:
            assert copy.resume(6).remaining <= made.remaining


def test_budgets_of_numpy_are_stored_as_numbers(publisher):
    publisher.skip(0, epsilon=np.float32(0.25))
    publisher.publish(1, 1, np.float32(0.125))
    assert publisher.ledger["epsilon"].tolist() == [0.25, 0.125]


def test_a_plan_of_gaussian_noise_is_spent_and_keeps_alpha_at_delta(path):
    plan = tf.allocate_noise(2.0, 1e-6, P, P, 3)
    made = tr.Publisher(path, **SETTINGS | {"alpha": 2.0}, plan=plan, delta=1e-6)
    made.publish(0, 1000)
    made.publish(1, 1000)
    assert made.ledger["noise_multiplier"].tolist() == list(plan[:2])
    assert made.leakage.epsilon(1e-6).max() < 2.0
    with pytest.raises(
        ValueError, match="every TPL within alpha = 1 and delta = 1e-06, found 2; add noise"
    ):
        tr.Publisher(path.with_name("b"), **SETTINGS, plan=plan, delta=1e-6)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alpha": None}, "needs the level alpha"),
        ({"alpha": None, "sensitivity": None, "floor": 0.1}, "needs the level alpha"),
        ({"alpha": 30.0}, "protects nobody; give 20, or allow_large=True"),
        ({"floor": 0.5}, "floor must keep the TPL within alpha"),
        ({"floor": 0.1, "plan": [0.1]}, "those of a plan or a floor, found both"),
        ({"delta": 1e-6}, "a delta needs a plan, fixed in advance"),
        ({"plan": [0.9, 0.9]}, "the plan must keep every TPL within alpha = 1, found 1.5"),
        ({"step": 0}, "step must be above 0"),
        (
            {"mechanism": "opendp-gaussian"},
            "mechanism must be 'opendp' without a delta, found 'opendp-gaussian'; "
            "Gaussian noise needs",
        ),
        (
            {"backward": tpl.TransitionMatrix(P, [(0, 1), (2, 3)]), "forward": None},
            "text or numbers to be stored",
        ),
    ],
)
def test_settings_that_do_not_keep_the_promise_leave_no_file(path, settings, message):
    with pytest.raises(ValueError, match=message):
        tr.Publisher(path, **SETTINGS | settings)
    assert not path.exists()


def test_the_largest_floor_is_below_its_bound_by_a_margin(path):
    """Which no rounding on the way to a filter, of this version or another, takes up."""
    made = tr.Publisher(path, **SETTINGS, floor="largest")
    bound = tpl.allocate_by_upper_bound(SETTINGS["alpha"], P, P)
    assert bound * (1 - 2e-12) < made.settings["floor"] < bound * (1 - 5e-13)


def test_a_file_keeps_its_settings(publisher, path):
    publisher.publish(0, 1)
    assert len(tr.Publisher(path, **SETTINGS, floor=0.1)) == 1
    with pytest.raises(ValueError, match="made with other settings of sensitivity, floor"):
        tr.Publisher(path, **SETTINGS | {"sensitivity": 2}, floor=0.05)
    for side in ("backward", "forward"):
        with pytest.raises(ValueError, match=f"made with other settings of {side}"):
            tr.Publisher(path, **SETTINGS | {side: [[0.5, 0.5], [0.2, 0.8]]}, floor=0.1)


@pytest.mark.parametrize("zone", [None, "Europe/Berlin", timezone(timedelta(hours=2), "CEST")])
def test_times_are_dates_with_a_step(path, zone):
    """Also over the night in which the clocks go back, where a zone is known."""
    made = tr.Publisher(path, **SETTINGS, floor=0.05, step="1h")
    times = pd.date_range("2024-10-26 22:00", periods=8, freq="1h", tz=zone, unit="ns")
    noisy = made.publish_table(pd.DataFrame({"a": range(8)}, times))
    pd.testing.assert_frame_equal(made.to_frame(), noisy, check_names=False, check_freq=False)
    assert made.to_frame().index.equals(times)
    cases = [
        (
            times[-1] + pd.Timedelta("3h"),
            "is next, not .* 2 missing; publish them, or skip from .* until",
        ),
        (times[-1] + pd.Timedelta("30min"), "whole steps apart"),
        (times[0] - pd.Timedelta("1h"), "times begin at .*; the clock went back"),
        (12, "times must be dates with" + ("out" if zone is None else "") + " a zone as before"),
        ("noon", "times must be whole numbers or dates, found 'noon'"),
    ]
    for wrong, message in cases:
        with pytest.raises(ValueError, match=message):
            made.publish(wrong, {"a": 1})
    with pytest.raises(ValueError, match="step by step, found .* twice; leave"):
        made.publish_table(pd.DataFrame({"a": [1, 2]}, times[[0, 0]]))
    made.skip(times[-1] + pd.Timedelta("1h"))
    with pytest.raises(ValueError, match="was skipped, or spent elsewhere"):
        made.publish(times[-1] + pd.Timedelta("1h"), {"a": 1})
    with pytest.raises(ValueError, match="needs a step such as '1h'"):
        tr.Publisher(path.with_name("b"), **SETTINGS).publish("2024-05-01", 1)


def test_an_hour_that_clocks_repeat_is_told_by_its_offset(path):
    made = tr.Publisher(path, **SETTINGS, floor=0.05, step="1h")
    local = ["2024-10-27 02:00", "2024-10-27 02:00"]
    with pytest.raises(
        ValueError,
        match="; an hour that clocks repeat needs its offset from UTC, such as 2024-10-27",
    ):
        made.publish_table(pd.Series([1, 2], local))
    made.publish_table(pd.Series([1, 2], [f"{local[0]}+02:00", f"{local[1]}+01:00"]))
    assert made.to_frame().index.astype(str).tolist() == [
        "2024-10-27 02:00:00+02:00",
        "2024-10-27 03:00:00+02:00",
    ]
    with pytest.raises(ValueError, match="with a zone or without one, found both"):
        made.publish_table(pd.Series([1, 2], ["2024-10-27 03:00+01:00", "2024-10-27 04:00"]))


def test_a_crash_before_the_draw_spends_once_and_draws_once(publisher, path, monkeypatch):
    def crash(self, counts, *words):
        if not counts.any():  # whether it can be drawn
            return draw(self, counts, *words)
        # on the disk before the draw
        assert tr.Publisher(path).ledger["kind"].tolist() == ["spent, not drawn"]
        raise KeyboardInterrupt

    draw = tr.Publisher._noise
    with monkeypatch.context() as patched:
        patched.setattr(tr.Publisher, "_noise", crash)
        with pytest.raises(KeyboardInterrupt):
            publisher.publish(0, 10)
    rest = publisher.remaining
    noisy = publisher.publish(0, 10**12)  # what was meant then is not known, and not needed
    assert abs(noisy - 10**12) < 10**3
    assert publisher.remaining == rest
    with pytest.warns(RepeatedTimeWarning):
        assert publisher.publish(0, 10) == noisy
    assert publisher.to_frame()["count"].tolist() == [noisy]
    assert publisher.ledger["kind"].tolist() == ["published"]


def test_of_two_draws_the_first_that_is_stored_counts(publisher, path, monkeypatch):
    def slow(self, counts, *words):
        if counts.any():
            monkeypatch.setattr(tr.Publisher, "_noise", draw)
            seen.append(other.publish(0, 10**6))
        return draw(self, counts, *words)

    other, draw, seen = tr.Publisher(path), tr.Publisher._noise, []
    monkeypatch.setattr(tr.Publisher, "_noise", slow)
    assert [publisher.publish(0, 10**6)] == seen


def test_a_budget_whose_noise_cannot_be_drawn_is_not_spent(path):
    made = tr.Publisher(path, **SETTINGS | {"sensitivity": 1.5}, floor=0.1)
    with pytest.raises(ValueError, match="the sensitivity of whole counts must be a whole number"):
        made.publish(0, 10)
    assert len(made) == 0
    assert type(made.publish(0, 10.0)) is float


@pytest.mark.filterwarnings("ignore::tplreport.publishing.publisher.RepeatedTimeWarning")
def test_threads_share_a_publisher(publisher):
    def publish():
        for at in range(20):
            while len(publisher) < at:  # another thread is in front, or this one is next
                time.sleep(0.01)
            seen[at].add(publisher.publish(at, 10**6))

    seen = defaultdict(set)
    with ThreadPoolExecutor(4) as pool:
        [*pool.map(lambda _: publish(), range(4))]
    assert [len(seen[at]) for at in range(20)] == [1] * 20
    assert publisher.ledger["epsilon"].tolist() == [0.1] * 20


@pytest.mark.parametrize(("place", "moment"), [(Store, "write"), (marks.fcntl, "flock")])
def test_a_fork_while_another_thread_changes_the_file_waits_and_its_child_can_publish(
    publisher, monkeypatch, place, moment
):
    """A child would inherit the thread's locks, and SQLite's belief that this process is
    writing."""

    def slow(*words):
        done(*words)
        reached.set()
        time.sleep(0.3)

    done = getattr(place, moment)
    reached = threading.Event()
    monkeypatch.setattr(place, moment, slow)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(publisher.skip, 0)
        reached.wait()
        if (child := os.fork()) == 0:
            signal.signal(signal.SIGALRM, signal.SIG_DFL), signal.alarm(120)
            try:
                publisher.publish(1, 1)
            finally:
                os._exit(len(publisher.to_frame()) != 1)
        assert os.waitpid(child, 0)[1] == 0
    assert publisher.ledger["kind"].tolist() == ["skipped", "published"]


@pytest.mark.parametrize(
    ("kills", "last"),
    [(20, 100), pytest.param(500, 10_000, marks=pytest.mark.slow)],
    ids=["few", "many"],
)
@pytest.mark.parametrize("by_clock", [False, True], ids=["one matrix", "cycle"])
def test_processes_killed_at_any_moment_publish_no_value_twice(
    path, tmp_path, kills, last, by_clock
):
    floors = [0.1]
    if by_clock:
        floors = [0.05] * 6 + [0.1] * 18
        habits = tpl.Cycle([[[0.9, 0.1], [0.05, 0.95]]] * 6 + [P] * 18, step="1h")
        chain = {"forward": habits, "start": "habit", "alpha": 1.0, "sensitivity": 1}
        tr.Publisher(path, **chain, floor=floors, step="1h")
    else:
        tr.Publisher(path, **SETTINGS, floor=0.1)
    handed_out = run_and_kill_workers(path, tmp_path / "notes", last, kills)
    reader = tr.Publisher(path)
    frame, ledger = reader.to_frame(), reader.ledger
    for line in handed_out:
        at, _, values = line.partition(" ")
        if values != "skipped":
            assert str(frame.loc[time_of(reader, int(at))].to_numpy()) == values
    assert len(reader) == last + 1
    assert ledger["time"].tolist() == [time_of(reader, at) for at in range(last + 1)]
    drawn = ledger["kind"] != "skipped"
    floor_of_times = [floors[(FIRST_HOUR + at) % len(floors)] for at in range(last + 1)]
    assert ledger["epsilon"].tolist() == (drawn * floor_of_times).tolist()
    assert reader.leakage.max() <= 1.0
    open_ends = ledger.index[ledger["kind"] == "spent, not drawn"].tolist()
    assert len(frame) + len(open_ends) == drawn.sum()
    for at in open_ends:
        reader.publish(time_of(reader, at), counts_of(at))
    error = reader.to_frame().to_numpy() - [counts_of(at) for at in ledger.index[drawn]]
    assert np.abs(error).max() < 20 * 60


def test_a_deleted_renamed_or_linked_file_is_noticed(publisher, path):
    publisher.publish(0, 1)
    os.link(path, path.with_name("second name"))
    with pytest.raises(OSError, match="must have one name, found 2 hard links; remove the others"):
        publisher.publish(1, 1)
    with pytest.raises(ValueError, match="must spare .*counts.sqlite, found the same file"):
        publisher.backup(path.with_name("second name"))
    path.with_name("second name").unlink()
    publisher.resume()  # links change the file's change time, as putting it back does
    other = path.with_name("other.sqlite")
    path.rename(other)
    opened = (
        lambda: publisher.publish(1, 1),
        lambda: publisher.remaining,
        lambda: publisher.skip(1),
    )
    missing = (
        "there must be a publisher's file .*, found none; "
        "counts.sqlite.mark tells that it was used: put"
    )
    for action in (*opened, lambda: tr.Publisher(path), lambda: tr.Publisher(path, **SETTINGS)) * 2:
        with pytest.raises(FileNotFoundError, match=missing):
            action()
        assert not path.exists() or path.stat().st_size == 0
        path.touch()
    moved = tr.Publisher(other)
    with pytest.raises(OSError, match="is a copy, was renamed, .*: other.sqlite.mark knows"):
        moved.publish(1, 1)
    path.with_name("counts.sqlite.mark").rename(path.with_name("other.sqlite.mark"))
    with pytest.raises(OSError, match="is a copy, was renamed, .* or resume.. if none was"):
        moved.publish(1, 1)
    moved.resume().publish(1, 1)
    tr.Publisher(path, **SETTINGS).publish(0, 1, 0.1)
    with pytest.raises(OSError, match="was replaced by another file while it was open"):
        publisher.publish(1, 1)


def test_a_damaged_mark_counts_as_spent_until_resume(publisher, path):
    mark = path.with_name("counts.sqlite.mark")
    publisher.publish(0, 1)
    mark.write_text("damaged " * 20)
    with pytest.raises(OSError, match="is a copy, was renamed"):
        publisher.publish(1, 1)
    publisher.resume().publish(1, 1)
    mark.write_text("damaged")
    path.unlink()
    with pytest.raises(FileNotFoundError, match="tells that it was used"):
        tr.Publisher(path, **SETTINGS)


def test_an_older_state_put_back_within_a_call_is_not_published_from(publisher, path, monkeypatch):
    def after_the_first(self):
        if calls:
            shutil.copyfile(path.with_name("older"), path)
        calls.append(self)
        return reading(self)

    reading = tr.Publisher._reading
    calls = []
    publisher.publish(0, 1)
    publisher.backup(path.with_name("older"))
    publisher.publish(1, 1)
    monkeypatch.setattr(tr.Publisher, "_reading", after_the_first)
    with pytest.raises(OSError, match="was put back or replaced while it was read; publish again"):
        publisher.publish(1, 1)


def test_symbolic_links_are_one_file(publisher, path):
    link = path.with_name("link")
    link.symlink_to(path)
    tr.Publisher(link).publish(0, 1)
    assert len(publisher) == 1


@pytest.mark.parametrize("way", ["elsewhere", "over the file"])
def test_a_backup_that_is_put_back_forgets_nothing(publisher, path, way):
    noisy = publisher.publish(0, 1)
    copy = path.with_name("copy.sqlite")
    publisher.backup(copy)
    publisher.publish_table(pd.Series([1, 1], [1, 2]), 0.3)
    rest = publisher.remaining
    if way == "over the file":
        copy = shutil.copyfile(copy, path)
    found = tr.Publisher(copy)
    assert len(found.to_frame()) == len(found) == 1  # it can be read
    with pytest.warns(RepeatedTimeWarning):
        assert found.publish(0, 1) == noisy
    with pytest.raises(
        OSError, match=r"older state was put back.*releases may be missing in this.*resume\(until\)"
    ):
        found.publish(1, 1)
    assert found.resume(2).remaining <= rest
    assert found.ledger["kind"].tolist() == ["published", "spent elsewhere"]
    with pytest.raises(ValueError, match="was skipped, or spent elsewhere"):
        found.publish(2, 1)
    found.publish(3, 1)
    with pytest.raises(ValueError, match="times spent elsewhere; each is within alpha"):
        _ = found.leakage


def test_a_copy_made_before_a_draw_does_not_draw_again(publisher, path, monkeypatch):
    def back_up_before_the_draw(self, counts, *words):
        if counts.any():
            publisher.backup(path.with_name("copy"))
        return draw(self, counts, *words)

    draw = tr.Publisher._noise
    monkeypatch.setattr(tr.Publisher, "_noise", back_up_before_the_draw)
    publisher.publish(0, 10)
    copy = tr.Publisher(path.with_name("copy"))
    assert copy.ledger["kind"].tolist() == ["spent, not drawn"]
    with pytest.raises(ValueError, match="spent elsewhere"):
        copy.resume().publish(0, 10)
    assert copy.leakage.tpl.tolist() == publisher.leakage.tpl.tolist()


def test_a_value_that_resume_gave_up_is_not_handed_out(publisher, path, monkeypatch):
    def resume(self, counts, *words):
        if counts.any():
            tr.Publisher(path).resume()
        return draw(self, counts, *words)

    draw = tr.Publisher._noise
    monkeypatch.setattr(tr.Publisher, "_noise", resume)
    with pytest.raises(ValueError, match="drawn while resume was called, which counts them"):
        publisher.publish(0, 10)


def test_a_transaction_locks_the_mark_also_when_the_file_is_closed_elsewhere(publisher, path):
    """SQLite's own locks are gone then: another process would read what is half written, or
    write."""
    publisher.publish(0, 1)
    for transaction in (publisher._writing, publisher._reading):
        with transaction(), open(path.with_name("counts.sqlite.mark")) as mark:
            open(path).close()
            with pytest.raises(BlockingIOError):
                # of several who share it a writer would wait for ever
                flock(mark, LOCK_SH | LOCK_NB)
    with (
        open(path.with_name("counts.sqlite.mark")) as mark,
        pytest.MonkeyPatch.context() as patched,
    ):
        flock(mark, LOCK_EX)
        patched.setattr(marks, "WAIT", 0.1)
        with pytest.raises(OSError, match="mark was locked by another process for 0.1 s"):
            publisher.publish(1, 1)


def test_a_mark_that_cannot_be_written_is_an_error_before_anything_is_spent(publisher, monkeypatch):
    def refuse(path, *words):
        if str(path).endswith(".mark"):
            raise PermissionError(13, "Permission denied", path)
        return opened(path, *words)

    opened = os.open
    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(OSError, match="mark: Permission denied.*, and nothing was handed out"):
        publisher.publish(0, 1)
    assert len(publisher) == 0


def test_a_signal_handler_may_not_use_the_file_of_the_call_that_it_interrupts(
    publisher, monkeypatch
):
    """A reading in a signal's handler would put back what the interrupted call has spent."""
    with monkeypatch.context() as patched:
        patched.setattr(Store, "commit", lambda *words: publisher.remaining)
        with pytest.raises(
            RuntimeError, match="must be used after the call that a signal interrupts"
        ):
            publisher.publish(0, 1, 0.5)
    assert publisher.remaining > 0.7


def test_an_exhausted_filter_has_no_more_left_than_any_spending_elsewhere_leaves(path):
    rng = np.random.default_rng(0)
    for _ in range(200):
        floor = float(rng.choice([0.0, 0.1]))
        account = tpl.TemporalFilter(1.0, P, P, floor=floor)
        worst = tpl.TemporalFilter(1.0, P, P, floor=floor)
        for _ in range(rng.integers(1, 6)):
            rest = account.remaining
            spent = max(rest * rng.random(), floor, 1e-6 * rest)
            account.skip(
                int(rng.integers(1, 4))
            ) if rng.random() < 0.3 or rest == 0 else account.spend(spent)
        worst.state = worst.exhausted()
        for _ in range(4):
            assert worst.remaining <= account.remaining * (1 + 1e-12)
            spent = worst.remaining
            for one in (worst, account):
                one.spend(spent) if spent > 0 else one.skip()


def test_a_file_that_was_copied_in_the_middle_opens(publisher, path):
    publisher.publish(0, 1)
    publisher.backup(path.with_name("a"))
    with pytest.raises(KeyError), publisher._writing() as store:
        store._database.execute("UPDATE times SET kind = 3")
        shutil.copyfile(path, path.with_name("b"))
        raise KeyError
    for copy in "ab":
        assert tr.Publisher(path.with_name(copy)).ledger["kind"].tolist() == ["published"]


def test_a_folder_that_cannot_be_written_is_an_error(publisher, monkeypatch):
    """As SQLite sees it; root may write everywhere."""
    publisher.publish(0, 1)
    monkeypatch.setattr(sqlite3, "connect", limited("query_only = 1"))
    with pytest.raises(
        OSError, match="cannot be used .attempt to write a readonly database., and nothing was"
    ):
        publisher.publish(1, 1)
    assert len(publisher.to_frame()) == 1


def test_a_full_disk_is_an_error_and_forgets_nothing(publisher, path, monkeypatch):
    publisher.publish(0, 1)
    monkeypatch.setattr(
        sqlite3, "connect", limited(f"max_page_count = {path.stat().st_size // 4096}")
    )
    with pytest.raises(
        OSError, match="is full., and nothing was handed out; look at the free space"
    ):
        publisher.publish_table(pd.Series(range(1, 3001), range(1, 3001)))
    monkeypatch.undo()
    assert len(publisher) == 1
    publisher.publish(1, 1)


def test_a_damaged_file_is_an_error(path):
    path.write_bytes(b"not a database, but long enough to be read as one" * 100)
    with pytest.raises(
        OSError, match="cannot be used .file is not a database.* restore a backup and call resume"
    ):
        tr.Publisher(path)
    with sqlite3.connect(path.with_name("other")) as database:
        database.execute("CREATE TABLE settings (name, value)")
    with pytest.raises(ValueError, match="must be a publisher's file of this version, found other"):
        tr.Publisher(path.with_name("other"))


@pytest.mark.slow
def test_a_million_releases_fit_a_small_file_and_are_read_at_once(publisher, path):
    publisher.publish_table(pd.Series(np.arange(10**6)))
    assert path.stat().st_size < 200e6
    assert lines_run(lambda: publisher.remaining) < 1000


def test_the_work_per_row_does_not_grow_with_the_number_of_rows(publisher):
    for first in (0, 1000, 2000):
        table = pd.Series(np.arange(1000), np.arange(first, first + 1000))
        assert lines_run(lambda table=table: publisher.publish_table(table)) < 100 * 1000
        assert lines_run(lambda: publisher.remaining) < 1000


def test_a_file_depends_on_true_counts_through_noisy_values_alone(path):
    """Nothing in a file depends on true counts, so that nobody can try which they were."""
    contents = []
    for number, counts in enumerate(([7, 10**12], [10**12, 7])):
        made = tr.Publisher(path.with_name(f"file {number}"), **SETTINGS, floor=0.1)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(tr.Publisher, "_noise", lambda self, counts, *words: 0 * counts)
            patched.setattr(marked_file, "uuid4", lambda: UUID(int=5))
            made._file.identity = None
            with made._writing() as store:
                store.state.identity = UUID(int=5).hex
            made.publish(0, counts)
        contents.append(made.path.read_bytes())
    assert contents[0] == contents[1]


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_all_files_are_their_owners_only_from_the_beginning(tmp_path, mask):
    seen = {}

    def look():
        for file in tmp_path.iterdir():
            seen.setdefault(file.name.partition(".tmp")[0], set()).add(file.stat().st_mode & 0o777)

    def watched(connect):
        def opened(*words, **options):
            look()
            database = connect(*words, **options)
            database.set_trace_callback(lambda _: look())
            return database

        return opened

    before = os.umask(mask)
    try:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(sqlite3, "connect", watched(sqlite3.connect))
            witness = tmp_path / "witness"
            made = tr.Publisher(tmp_path / "counts", **SETTINGS, floor=0.1, witness=witness)
            made.publish(0, 10)
            made.backup(tmp_path / "backup")
            made.resume()
            look()
    finally:
        os.umask(before)
    assert {"counts", "counts.mark", "counts-journal", "witness", "backup"} <= seen.keys()
    assert set().union(*seen.values()) == {0o600}


def test_a_mark_that_is_a_link_or_has_two_names_is_refused(publisher, path):
    mark = path.with_name("counts.sqlite.mark")
    other = path.with_name("other")
    publisher.publish(0, 1)
    os.link(mark, other)
    with pytest.raises(OSError, match=r"mark must be a file with one name, found 2 links.*remove"):
        publisher.publish(1, 1)
    mark.unlink()
    content = other.read_bytes()
    mark.symlink_to(other)
    for action in (lambda: publisher.publish(1, 1), publisher.resume):
        with pytest.raises(OSError, match="mark: must be a file, found a symbolic link; remove it"):
            action()
    assert len(publisher) == 1
    mark.unlink()
    mark.symlink_to("nowhere")
    with pytest.raises(OSError, match="found a symbolic link"):
        publisher.resume()
    assert (other.read_bytes(), path.with_name("nowhere").exists()) == (content, False)
    mark.unlink()
    publisher.resume().publish(1, 1)


def test_a_publisher_whose_file_is_gone_says_so_when_it_is_shown(publisher, path):
    publisher.publish(0, 1)
    assert repr(publisher).endswith(
        "counts.sqlite', alpha=1, 1 times, for users who start in the law of backward=)"
    )
    path.unlink()
    assert "counts.sqlite', alpha=1, its file cannot be read, for" in repr(publisher)
    assert "its file cannot be read" in publisher._repr_html_()


def test_a_file_of_an_earlier_version_is_refused_with_a_remedy(path):
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT)")
        database.execute("INSERT INTO settings VALUES ('format', '\"tplreport publisher 2\"')")
    for settings in ({}, {**SETTINGS, "floor": 0.1}):
        with pytest.raises(
            ValueError,
            match="found format .*publisher 2.*0.4.0 or before is not read any more: take",
        ):
            tr.Publisher(path, **settings)


def as_made_before(path):
    """A file as it was before chains had a table of their own."""
    with sqlite3.connect(path) as database:
        ((row,),) = [database.execute("SELECT * FROM large").fetchall()]
        database.execute("INSERT INTO settings VALUES (?, ?, ?)", row)
        database.execute("DROP TABLE large")
    return tr.Publisher(path).resume()


def test_a_file_whose_settings_have_the_chain_opens_publishes_and_changes(path):
    made = tr.Publisher(path, forward=P, start="habit", alpha=1.0, sensitivity=1, floor=0.1)
    noisy = made.publish_table(pd.DataFrame({"a": [5, 6]}, [3, 4]))
    rest = made.remaining
    before = as_made_before(path)
    pd.testing.assert_frame_equal(before.to_frame(), noisy, check_names=False)
    assert before.remaining == rest
    before.publish(5, {"a": 7})
    before.change_chain(6, forward=[[0.6, 0.4], [0.3, 0.7]], floor=0.05)
    before.publish(6, {"a": 7})
    assert tr.Publisher(path).ledger["epsilon"].tolist() == [0.1] * 3 + [0.05]
    before.backup(path.with_name("copy"))
    assert len(tr.Publisher(path.with_name("copy"))) == 4


def test_a_look_up_of_a_small_setting_does_not_read_a_large_one(path):
    """SQLite reads whole rows to compare their keys; those of a large table stay unread."""
    n = 200
    rows = np.random.default_rng(0).dirichlet(np.ones(n), n)
    large = tpl.TransitionMatrix(0.9 * np.eye(n) + 0.1 * rows, normalize=True)
    tr.Publisher(path, **SETTINGS | {"backward": None, "forward": large}, floor=0.001)
    with closing(Store(path, write=False)) as store:
        sizes = dict(store._database.execute("SELECT name, length(value) FROM settings"))
    assert sizes.keys() == {"format", "state", "clock", "columns"}
    assert max(sizes.values()) < 1000


@pytest.mark.parametrize("name", ["counts.sqlite", "counts.sqlite.mark", "link", "hard", "other"])
def test_export_and_backup_destroy_no_publisher(publisher, path, name):
    publisher.publish(0, 1)
    publisher.backup(path.with_name("first"))
    publisher.publish(1, 1)
    publisher.backup(path.with_name("first"))  # takes the place of an older one
    assert len(tr.Publisher(path.with_name("first"))) == 2
    tr.Publisher(path.with_name("other"), **SETTINGS, floor=0.1).publish(0, 1)
    path.with_name("link").symlink_to(path)
    path.with_name("hard").hardlink_to(path)
    before = {file.name: file.read_bytes() for file in path.parent.iterdir()}
    for write in (publisher.export, publisher.backup):
        with pytest.raises(ValueError, match="must spare|is the file or the mark of a publisher"):
            write(path.with_name(name))
    assert {file.name: file.read_bytes() for file in path.parent.iterdir()} == before


def test_a_backup_takes_the_place_of_no_other_file(publisher, path):
    publisher.publish(0, 1)
    path.with_name("true.csv").write_text("home,work\n1,2\n")
    strange = tr.Publisher(path.with_name("strange"), **SETTINGS, floor=0.1)
    strange.backup(path.with_name("backup of strange"))
    for name in ("true.csv", "backup of strange"):
        before = path.with_name(name).read_bytes()
        with pytest.raises(
            ValueError, match="a backup must be a new file, or take the place of an"
        ):
            publisher.backup(path.with_name(name))
        assert path.with_name(name).read_bytes() == before


def test_the_work_per_label_does_not_grow_with_the_number_of_labels(path):
    """A row of 100,000 labels: a thousandth of the work of looking each up in a list."""
    lines = []
    for count in (1_000, 10_000):
        made = tr.Publisher(path.with_name(f"{count}"), **SETTINGS, floor=0.1)
        columns = Columns([f"place {number}" for number in range(count)], "<i8")
        shown = columns.labels[::-1]
        counted = Counted(shown)
        given = Given(counted, np.zeros((1, count), np.int64), np.ones(1, bool))
        assert arrange(columns, given).order == list(range(count))[::-1]
        lines.append(counted.asked)
        assert made.publish(0, dict.fromkeys(shown, 1)).keys() == {*shown}
    assert lines == [0, 0]


class Counted(list):
    """A list that counts how often it is searched."""

    asked = 0

    def index(self, *words):
        self.asked += 1
        return super().index(*words)

    def __contains__(self, value):
        self.asked += 1
        return super().__contains__(value)


def test_without_the_locks_of_posix_everything_but_the_publisher_works(tmp_path):
    code = (
        "import sys; sys.modules['fcntl'] = None\n"
        "import tplreport as tr\n"
        "from tplreport import command\n"
        "assert tr.release_counts([1, 2], 0.1, 1).size == 2\n"
        "assert command.main(['ledger', 'a.sqlite']) == 2\n"
        "tr.Publisher('a.sqlite', backward=None, forward=None, alpha=1.0, sensitivity=1)"
    )
    words = [sys.executable, "-c", code]
    root = os.fspath(Path(__file__).parents[3])
    done = subprocess.run(
        words, cwd=tmp_path, env=os.environ | {"PYTHONPATH": root}, capture_output=True, text=True
    )
    assert done.returncode == 1
    for line in (done.stderr.splitlines()[0], done.stderr.splitlines()[-1]):
        assert "a publisher needs a POSIX system, such as Linux or macOS" in line
    assert list(tmp_path.iterdir()) == []


class KilledAtLine:
    """Kills its own process at a line of our modules, counted from the first."""

    def __init__(self, last):
        self.left = last

    def __call__(self, frame, event, argument):
        if "/tplreport/" not in frame.f_code.co_filename:
            return None
        if event == "line":
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return self


def killed_at_line(action, line):
    """Whether a child process that does this was killed there; else it was done before."""
    child = os.fork()
    if child == 0:
        sys.settrace(KilledAtLine(line))
        action()
        os._exit(0)
    return os.waitpid(child, 0)[1] == signal.SIGKILL


@pytest.mark.filterwarnings("ignore::tplreport.publishing.publisher.RepeatedTimeWarning")
@pytest.mark.parametrize("stride", [197, pytest.param(5, marks=pytest.mark.slow)])
@pytest.mark.parametrize("has_witness", [True, False], ids=["with a witness", "without"])
def test_a_process_killed_at_any_line_of_publish_draws_no_value_twice(
    tmp_path, stride, has_witness
):
    line = 1
    is_killed = True
    tr.release_counts([1], 0.1, 1)  # so that its imports are done
    while is_killed:
        path = tmp_path / f"killed at {line}"
        witness = path.with_name(f"{path.name}.witness") if has_witness else None
        tr.Publisher(path, **SETTINGS, floor=0.1, witness=witness).publish(0, 10)
        is_killed = killed_at_line(lambda path=path: tr.Publisher(path).publish(1, 20), line)
        publisher = tr.Publisher(path)
        known = publisher.to_frame()["count"].to_dict()
        value = publisher.publish(1, 10**6)
        assert value == known.get(1, value)
        assert 1 in known or abs(value - 10**6) < 10**3
        assert publisher.publish(1, 0) == value
        publisher.publish(2, 5)
        assert publisher.ledger["epsilon"].tolist() == [0.1] * 3
        line += stride
    assert line > 500


@pytest.mark.parametrize("stride", [197, pytest.param(5, marks=pytest.mark.slow)])
def test_a_copy_killed_at_any_line_of_resume_is_resumed_or_as_it_was(tmp_path, stride):
    """A copy is as it was, or resumed; never published from without."""
    line = 1
    is_killed = True
    original = tmp_path / "original"
    tr.Publisher(original, **SETTINGS, floor=0.1).publish(0, 10)
    while is_killed:
        path = tmp_path / f"killed at {line}"
        shutil.copyfile(original, path)
        is_killed = killed_at_line(lambda path=path: tr.Publisher(path).resume(5), line)
        copy = tr.Publisher(path)
        if len(copy) == 1:
            with pytest.raises(OSError, match="is a copy"):
                copy.publish(1, 1)
        else:
            copy.publish(6, 1)
        line += stride
    assert line > 300
