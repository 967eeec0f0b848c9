"""The mutation run changes loaded code as it says, and its excuses belong to the code as it is."""

import gc
import importlib
import sys
import weakref
from collections import Counter
from dataclasses import replace

import pytest

from benchmarks.mutation import grafting, page
from benchmarks.mutation.changes import Module
from benchmarks.mutation.rooms import ROOT, Configuration, Excuse, read_configuration
from benchmarks.mutation.session import Session, run_session

SOURCE = """
from functools import cache
from math import nextafter

MARGIN = 3

class Account:
    level: int = 2

    @property
    def left(self):
        return self.level - 1

@cache
def spent(amount, more=5):
    if amount < 1 and more > 2:
        return 0
    return [value * 2 for value in (amount, MARGIN)]

def below(value: "1 + 1"):
    return nextafter(value, 0.0)
"""


@pytest.fixture(autouse=True)
def few_objects():
    """Only what a test makes is looked through for functions and for garbage, again and again: a
    process of all tests holds half a million objects."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def loaded(tmp_path, monkeypatch):
    """A module of this source, loaded, with its changes."""
    (tmp_path / "changed_room.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("changed_room"), Module(tmp_path, "changed_room.py")
    del sys.modules["changed_room"]


def graft(loaded, name):
    """Give the loaded module the code with one change."""
    thing, module = loaded
    change = next(change for change in module.changes if change.name == name)
    code = module.changed_code(change)
    grafting.replace_code(str(module.file), module.code(), code)
    if change.statement is None:
        grafting.replace_values(thing, code)
    return change


def test_operators_numbers_and_margins_are_changed_but_no_words_and_annotations(loaded):
    names = [change.name for change in loaded[1].changes]
    assert sorted(names) == sorted(
        [
            *("3 -> 4", "2 -> 3", "5 -> 6", "self.level - 1 -> self.level + 1", "1 -> 2"),
            *("amount < 1 -> amount <= 1", "more > 2 -> more >= 2", "1 -> 2", "2 -> 3"),
            "amount < 1 and more > 2 -> amount < 1 or more > 2",
            *("0 -> 1", "value * 2 -> value / 2", "2 -> 3 (no. 2)", "0.0 -> 1.0"),
            "nextafter(value, 0.0) -> nextafter(value, value)",
        ]
    )


def test_a_change_meets_functions_that_were_imported_before_it(loaded):
    thing, _ = loaded
    account, spent, below = thing.Account(), thing.spent, thing.below
    spent(4)
    graft(loaded, "self.level - 1 -> self.level + 1")
    assert account.left == 3
    graft(loaded, "value * 2 -> value / 2")
    spent.cache_clear()
    assert spent(4) == [2.0, 1.5]
    graft(loaded, "nextafter(value, 0.0) -> nextafter(value, value)")
    assert below(1.0) == 1.0


@pytest.mark.parametrize(
    ("name", "value"), [("3 -> 4", [8, 8]), ("5 -> 6", [8, 6]), ("2 -> 3", [8, 6])]
)
def test_constants_and_defaults_of_a_loaded_module_are_changed(loaded, name, value):
    thing, _ = loaded
    change = graft(loaded, name)
    assert change.statement is None
    assert thing.spent(4) == value
    assert thing.spent.__wrapped__.__defaults__ == ((6,) if name == "5 -> 6" else (5,))
    assert thing.Account.level == (3 if name == "2 -> 3" else 2)


def test_a_probe_counts_the_statements_that_a_test_reaches(loaded, monkeypatch):
    thing, module = loaded
    reached = set()
    monkeypatch.setattr("builtins." + grafting.PROBE, reached.add, raising=False)
    probing = grafting.with_probes(module, module.changes)
    grafting.replace_code(str(module.file), module.code(), probing)
    assert thing.spent(4) == [8, 6]
    names = {module.changes[number].name for _, number in reached}
    assert "value * 2 -> value / 2" in names
    assert "0 -> 1" not in names  # the early return


HOLDING = """
from dataclasses import dataclass

@dataclass(frozen=True)
class Inner:
    limits: tuple

@dataclass(frozen=True)
class Outer:
    inner: Inner
    size: int

OUTER = Outer(Inner((1, 5)), 8)
"""


def test_a_change_meets_numbers_that_frozen_objects_hold(tmp_path, monkeypatch):
    (tmp_path / "holding_room.py").write_text(HOLDING)
    monkeypatch.syspath_prepend(tmp_path)
    thing = importlib.import_module("holding_room")
    outer = thing.OUTER  # as imported elsewhere
    graft((thing, Module(tmp_path, "holding_room.py")), "5 -> 6")
    assert (outer.inner.limits, outer.size) == ((1, 6), 8)
    graft((thing, Module(tmp_path, "holding_room.py")), "8 -> 9")
    assert outer.size == 9
    del sys.modules["holding_room"]


def test_a_draw_keeps_its_changes_where_more_are_drawn_or_other_code_changes(loaded):
    module = loaded[1]
    few = {change.key for change in module.draw(4)}
    assert few < {change.key for change in module.draw(9)}
    module.file.write_text("EARLIER = 7\n" + SOURCE)
    moved = Module(module.file.parent, module.path)
    assert few <= {change.key for change in moved.draw(5)}


def test_each_excuse_belongs_to_a_change_of_the_code_as_it_is():
    configuration = read_configuration()
    modules = {room_module for room in configuration.rooms for room_module in room.modules}
    changes = {}
    for excuse in configuration.excuses:
        assert excuse.module in modules
        if excuse.module not in changes:
            changes[excuse.module] = {change.key for change in Module(ROOT, excuse.module).changes}
    stale = configuration.excused() - set().union(*changes.values())
    assert not stale, f"config/mutation.yaml must excuse changes of the code, found {stale}"


def test_each_module_is_in_one_room_whose_tests_exist():
    rooms = read_configuration().rooms
    modules = [module for room in rooms for module in room.modules]
    assert [module for module, count in Counter(modules).items() if count > 1] == []
    missing = [name for room in rooms for name in (*room.modules, *room.tests)]
    assert [name for name in missing if not (ROOT / name).exists()] == []


def test_the_page_is_read_as_it_was_written(tmp_path):
    excuse = Excuse("a/b.py", "f", "a | b -> a & b", "both are sets of one")
    survivors = (excuse.key, ("a/b.py", "", "1 -> 2"))
    row = page.Row("a/b.py", 57, 24, 22, "2026-11-29", survivors)
    written = page.Page({"a/b.py": row})
    written.write(Configuration((), (excuse,)), tmp_path / "page.md")
    read = page.Page.read(tmp_path / "page.md")
    assert read == written
    assert read.share_survived == 2 / 24
    forgiven = read.rows["a/b.py"].excusing({excuse.key})
    assert (forgiven.n_excused, forgiven.survivors) == (1, survivors[1:])
    judged_again = replace(forgiven, survivors=survivors)  # while another room excused it
    assert judged_again.excusing({excuse.key}) == forgiven


def test_a_page_without_survivors_says_so(tmp_path):
    file = tmp_path / "mutation.md"
    page.Page({"a/b.py": page.Row("a/b.py", 57, 24, 24, "2026-11-30")}).write(
        Configuration((), ()), file
    )
    assert "## Surviving\n\nNone.\n\n## Excused\n" in file.read_text(encoding="utf-8")


def test_functions_are_found_beside_a_weak_proxy_whose_object_is_gone():
    proxy = weakref.proxy(set())
    old = compile("def f(): return 1", "grafted", "exec")
    names = {}
    exec(old, names)
    grafting.replace_code("grafted", old, compile("def f(): return 2", "grafted", "exec"))
    assert names["f"]() == 2
    assert type(proxy) is weakref.ProxyType


DOCTESTED = """
def half(value):
    '''
    >>> half(8)
    4.0
    '''
    if value < 0:
        return 0.0
    return value / 2
"""
TESTED = """
from doctested_room import half

RUNS = []

def test_that_passes_only_once():
    half(1)
    RUNS.append(1)
    assert len(RUNS) == 1
"""


def test_a_doctest_or_a_test_that_fails_a_second_time_notices_no_change(tmp_path, monkeypatch):
    """Names that doctests find are gone after a run: each change that one reached was noticed."""
    monkeypatch.setenv("HYPOTHESIS_PROFILE", "default")  # a run sets it
    monkeypatch.setenv("PYTEST_ADDOPTS", "-rs")  # and leaves this out
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "doctested_room.py").write_text(DOCTESTED)
    (tmp_path / "test_room.py").write_text(TESTED)
    module = Module(tmp_path, "doctested_room.py")
    names = ("0 -> 1", "value / 2 -> value * 2")
    drawn = [change for change in module.changes if change.name in names]
    session = Session({module: drawn}, False, lambda _: None)
    run_session(session, ["--doctest-modules", f"--rootdir={tmp_path}", str(tmp_path)])
    fates = {outcome.change.name: outcome.survived for outcome in session.outcomes}
    assert fates == {"0 -> 1": True, "value / 2 -> value * 2": False}
    assert [name.split("::")[-1] for name in session.failures] == ["test_that_passes_only_once"]
    del sys.modules["doctested_room"], sys.modules["test_room"]
