"""A single flipped bit or digit of a publisher's file is an error with a remedy, or changes
nothing."""

import collections
import contextlib
import os
import re
import shutil
import sqlite3
import threading
from fcntl import LOCK_EX, LOCK_NB, flock
from types import SimpleNamespace

import numpy as np
import pytest

import tplreport as tr
from tplreport.publishing.mark import (
    DAMAGED,
    LENGTH,
    MOST_CHANGES,
    Facts,
    Mark,
    Record,
    UnusableMark,
    check_is_not_in_use,
    facts_of,
    mark_of,
)
from tplreport.publishing.store import Kind, Row

P = [[0.8, 0.2], [0.1, 0.9]]
NAME = "counts.sqlite"


@pytest.fixture
def home(tmp_path):
    """A file with times of each kind, some of them on pages of their own."""
    folder = tmp_path / "home"
    folder.mkdir()
    sides = {"backward": P, "forward": P}
    publisher = tr.Publisher(folder / NAME, **sides, alpha=1.0, sensitivity=1, floor=0.02)
    labels = [f"place {number}" for number in range(60)]
    for time in range(12):
        publisher.publish(time, dict.fromkeys(labels, 100 + time), 0.02 + time / 1000)
    publisher.skip(12, 15)
    publisher.skip(16, epsilon=0.03)
    publisher.resume(17)
    publisher.publish(18, dict.fromkeys(labels, 0))
    with contextlib.suppress(KeyboardInterrupt), pytest.MonkeyPatch.context() as patched:
        patched.setattr(tr.Publisher, "_draw", interrupt)
        publisher.publish(19, dict.fromkeys(labels, 5))
    assert publisher.ledger["kind"].nunique() == 4
    return folder


def interrupt(*words):
    raise KeyboardInterrupt


def what_it_knows(path):
    """All that a publisher says of its file."""
    publisher = tr.Publisher(path)
    return {
        "settings": str(publisher.settings),
        "remaining": publisher.remaining,
        "length": len(publisher),
        "ledger": publisher.ledger.to_csv(),
        "values": publisher.to_frame().to_csv(),
        "columns": [*publisher.to_frame()],
    }


def flipped_bit(content, rng):
    place = int(rng.integers(len(content)))
    changed = bytearray(content)
    changed[place] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def changed_digit(content, rng):
    places = [found.start() for found in re.finditer(rb"\d", content)]
    place = places[int(rng.integers(len(places)))]
    others = [digit for digit in b"0123456789" if digit != content[place]]
    changed = bytearray(content)
    changed[place] = others[int(rng.integers(9))]
    return bytes(changed)


def seal(path):
    """Let the mark know the damaged file: bits that rot on a disk change no change time."""
    mark = Mark(path.with_name(f"{NAME}.mark"))
    record = mark.read()
    with mark.locked(write=True):
        facts = facts_of(path)
        mark.write(Record(**vars(record) | {"facts": Facts(**vars(facts))}), durable=False)


def consequence(path, before):
    """What a damage does: "error" with a remedy, "nothing", or what goes wrong."""
    try:
        found = what_it_knows(path)
        if found != before:
            return f"unnoticed: {[name for name in before if before[name] != found[name]]}"
        publisher = tr.Publisher(path)
        labels = found["columns"]
        publisher.publish(20, dict.fromkeys(labels, 10**6))
        after = what_it_knows(path)
        is_same = after["ledger"].startswith(before["ledger"])
        is_same &= after["values"].startswith(before["values"])
        is_same &= after["remaining"] <= before["remaining"] and after["length"] == 21
        with sqlite3.connect(path) as database:
            is_same &= database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return "nothing" if is_same else "unnoticed: after publishing"
    except (OSError, ValueError) as error:
        has_remedy = "restore a backup" in str(error) or "resume" in str(error)
        return "error" if has_remedy else f"riddle: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize(
    "flips", [60, pytest.param(1000, marks=pytest.mark.slow)], ids=["few", "many"]
)
@pytest.mark.parametrize("damage", [flipped_bit, changed_digit], ids=["bits", "digits"])
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_damaged_file_is_an_error_or_says_the_same_as_before(home, tmp_path, damage, flips):
    """The same: all that it says, also after another time was published, and SQLite finds nothing;
    so where nothing is stored."""
    rng = np.random.default_rng(flips)
    before = what_it_knows(home / NAME)
    content = (home / NAME).read_bytes()
    counts = collections.Counter()
    for _ in range(flips):
        folder = tmp_path / "damaged"
        shutil.copytree(home, folder)
        (folder / NAME).write_bytes(damage(content, rng))
        seal(folder / NAME)
        counts[consequence(folder / NAME, before)] += 1
        shutil.rmtree(folder)
    assert counts.keys() <= {"error", "nothing"}
    assert counts["error"] > flips / 4


def test_a_damaged_mark_is_never_taken_for_a_good_one(home):
    mark = Mark(home / f"{NAME}.mark")
    content = mark.path.read_bytes()
    rng = np.random.default_rng(0)
    record = mark.read()
    for _ in range(500):
        mark.path.write_bytes(flipped_bit(content, rng))
        assert mark.read() in (DAMAGED, record)  # spaces at its end may change


@pytest.mark.parametrize("name", ["format", "settings", "state", "clock", "columns"])
def test_a_missing_setting_is_reported_as_damage(home, name):
    table = "large" if name == "settings" else "settings"
    with sqlite3.connect(home / NAME) as database:
        database.execute(f"DELETE FROM {table} WHERE name = ?", (name,))
    with pytest.raises(OSError, match=f"is damaged .its {name} is missing.*restore a backup"):
        what_it_knows(home / NAME)


@pytest.mark.parametrize("position", [0, 5, 12, 19])
def test_a_missing_time_is_reported_as_damage(home, position):
    with sqlite3.connect(home / NAME) as database:
        database.execute("DELETE FROM times WHERE position = ?", (position,))
    with pytest.raises(OSError, match=r"is damaged .one of its times is missing"):
        what_it_knows(home / NAME)


def test_damage_of_the_tables_themselves_has_a_remedy(home):
    with sqlite3.connect(home / NAME) as database:
        database.execute("ALTER TABLE times RENAME COLUMN budget TO budgeu")
    with pytest.raises(ValueError, match="found format .*if it was one, restore a backup and call"):
        tr.Publisher(home / NAME)


def test_a_mark_is_read_as_it_was_always_written(tmp_path):
    """Other digests would make each file that is there a copy, and so would a new field."""
    mark = Mark(tmp_path / "name.mark")
    of_before = (
        'a519970895544c3e {"identity": "one", "changes": 3, "commit": "last", "pending": "next", '
        '"facts": {"inode": 7, "born": 8, "changed": 9, "size": 10}}'
    )
    mark.path.write_text(f"{of_before.ljust(LENGTH)}\n")
    assert mark.read() == Record("one", 3, "last", "next", Facts(7, 8, 9, 10))


def test_a_mark_is_read_as_it_was_written_and_is_less_than_a_sector(tmp_path):
    late = range(10**18, 10**18 + MOST_CHANGES)
    facts = Facts(*[2**63 - 1] * 4)
    record = Record("1" * 32, 10**12, "2" * 32, "3" * 32, facts, 10**6, tuple(late))
    mark = Mark(tmp_path / "name.mark")
    with mark.locked(write=True, create=True):
        mark.write(record, durable=False)
    assert mark.read() == record
    assert len(mark.path.read_bytes()) == LENGTH + 1


def test_a_pending_commit_is_known_before_and_after_it_in_the_same_inode():
    marked = Facts(7, 8, 9, 10)
    later = Facts(7, 8, 90, 100)
    pending = Record("one", 3, "last", "next", marked)
    assert pending.knows("one", "last", later)
    assert pending.knows("one", "next", later)
    assert not pending.knows("one", "other", marked)
    assert not pending.knows("two", "last", marked)
    assert not pending.knows("one", "last", Facts(6, 8, 9, 10))
    assert not pending.knows("one", "last", Facts(7, 7, 9, 10))
    done = Record("one", 3, "last", None, marked)
    assert done.knows("one", "last", marked)
    assert not done.knows("one", "last", later)
    assert not done.knows("one", "next", marked)


def can_be_locked(path):
    with open(path) as file:
        try:
            flock(file, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            return False
    return True


def test_a_child_leaves_the_lock_to_its_parent_who_frees_it_from_its_children(tmp_path):
    mark = Mark(tmp_path / "name.mark")
    lock = mark.locked(write=True, create=True)
    lock.__enter__()
    ended = os.fork()
    if ended == 0:
        try:
            lock.__exit__(None, None, None)
        finally:
            os._exit(0)
    os.waitpid(ended, 0)
    assert not can_be_locked(mark.path)
    reader, writer = os.pipe()
    living = os.fork()
    if living == 0:
        os.read(reader, 1)
        os._exit(0)
    lock.__exit__(None, None, None)
    assert can_be_locked(mark.path)
    os.write(writer, b"x")
    os.waitpid(living, 0)
    os.close(reader)
    os.close(writer)


def test_each_change_and_each_resume_is_counted(tmp_path):
    path = tmp_path / NAME
    settings = {"backward": P, "forward": P, "alpha": 1.0, "sensitivity": 1, "floor": 0.02}
    publisher = tr.Publisher(path, **settings)
    mark = Mark(mark_of(path))
    changes = [mark.read().changes]
    for act in (
        publisher.resume,
        lambda: publisher.skip(0),
        publisher.resume,
        publisher.resume,
        lambda: publisher.skip(1),
    ):
        act()
        changes.append(mark.read().changes)
    assert changes[0] == 0
    assert (np.diff(changes) > 0).all()


@pytest.mark.parametrize(
    ("first", "last", "found"), [(0, 99, (3, 4)), (4, 5, (4, 2)), (5, 5, (5, 1)), (0, 3, (3, 1))]
)
def test_a_part_of_a_row_has_the_times_between_two_positions(first, last, found):
    row = Row(3, 4, Kind.PUBLISHED, 0.1, None)
    part = row.within(first, last)
    assert (part.position, part.times) == found
    assert (part.kind, part.budget) == (row.kind, row.budget)


def test_a_lock_of_another_process_is_waited_for(tmp_path):
    path = tmp_path / "name.mark"
    path.touch()
    file = open(path)
    flock(file, LOCK_EX)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("tplreport.publishing.mark.WAIT", 0.01)
        with pytest.raises(UnusableMark, match="was locked by another process for 0.01 s"):
            with Mark(path).locked(write=True):
                pass
    ends = threading.Timer(0.05, file.close)
    ends.start()
    with Mark(path).locked(write=True) as mark:
        assert mark.is_locked
    ends.join()


def test_a_file_is_known_by_its_birth_where_the_system_tells_it(tmp_path, monkeypatch):
    path = tmp_path / "name"
    path.write_text("abc")
    status = SimpleNamespace(st_ino=7, st_birthtime=2.5, st_ctime_ns=9, st_size=3)
    with monkeypatch.context() as patched:
        patched.setattr(os, "fstat", lambda handle: status)
        facts = facts_of(path)
    assert facts == Facts(inode=7, born=2_500_000_000, changed=9, size=3)


def test_files_of_publishers_are_told_from_others(tmp_path):
    witness = tmp_path / "far" / "witness"
    witness.parent.mkdir()
    settings = {"backward": P, "forward": P, "alpha": 1.0, "sensitivity": 1, "floor": 0.02}
    tr.Publisher(tmp_path / "counts", **settings, witness=witness)
    for path in (tmp_path / "counts", tmp_path / "counts.mark", witness):
        with pytest.raises(ValueError, match="is the file or the mark of a publisher, and must"):
            check_is_not_in_use(path)
    for name in ("counts.csv", "other.mark", "short"):
        (tmp_path / name).write_text("home,work\n")
        check_is_not_in_use(tmp_path / name)
    (tmp_path / "other").touch()
    with pytest.raises(ValueError, match="must stay"):
        check_is_not_in_use(tmp_path / "other.mark")
