"""A publisher of noisy counts that cannot leak twice: one SQLite file knows what was spent and
handed out.

Contract. A time's intention (its budget, a digest of its counts) is on the disk before its noise is
drawn, and the noisy value before it is returned. After a crash in between the budget counts as
spent, and the value is drawn once. The same time and counts give the same value again; other counts
are refused. Processes and threads share a file by SQLite's locks; values are drawn outside of them,
and the first that is stored counts.

A mark beside the file (``name.mark``: its identity, inode and number of changes) shows what SQLite
cannot see: a copy, an older state that was put back, a new name. Such a file is read, and publishes
after `resume`. Each transaction locks the mark, too: SQLite's locks of a file are gone once anybody
in the process closes it.

The file holds a digest of the true counts, from which small counts can be guessed: keep it as you
keep them.
"""

from __future__ import annotations
import json
import logging
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from fcntl import LOCK_EX, LOCK_NB, LOCK_UN, flock
from hashlib import sha256
from itertools import groupby, repeat
from math import inf
from pathlib import Path
from threading import RLock
from time import monotonic, sleep
from typing import Any, Self
from uuid import uuid4

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

import tplfrontier as tf
from tplfrontier.profiles.gaussian import check_noise_multipliers
from tplreport.clock import Clock
from tplreport.counts import LARGE, checked_counts, release_counts
from tplreport.stored import loss_of, stored
from tplrepro.display import frame_as_html
from tplrepro.leakage.accountant import TemporalAccountant
from tplrepro.leakage.filter import FilterState, TemporalFilter
from tplrepro.leakage.temporal import REQUIRED, LossLike, loss_functions
from tplrepro.progress import Bar
from tplrepro.validation import (
    check_budgets,
    check_choice,
    check_delta,
    check_level,
    check_sensitivity,
)

LOG = logging.getLogger(__name__)
FORMAT = "tplreport publisher 2"
SKIPPED, INTENDED, PUBLISHED, ELSEWHERE = range(4)
KINDS = ("skipped", "spent, not drawn", "published", "spent elsewhere")
CHUNK = 50_000  # times a transaction
# of times
COLUMNS = "position INTEGER PRIMARY KEY, count INTEGER, kind INTEGER, budget REAL, digest BLOB, noisy BLOB"
WAIT = 60.0  # seconds, for other processes
#: Held by each transaction. A fork waits for it: a child that inherits its locks can never write.
LOCK = RLock()


def _is_inside() -> bool:
    """Whether this thread holds LOCK."""
    return LOCK._is_owned()  # type: ignore[attr-defined]


def _hold() -> None:
    """Acquire LOCK if a signal's handler ended the wait for it by an exception: Python forks all
    the same."""
    while not _is_inside():
        with suppress(BaseException):
            LOCK.acquire()


os.register_at_fork(before=_hold)  # the last that is registered comes first
os.register_at_fork(before=LOCK.acquire, after_in_parent=LOCK.release, after_in_child=LOCK.release)


class Publisher:
    """Publishes one noisy row of counts for each time point, and never more than `alpha` allows.

    `Publisher(path)` opens a file; with settings it makes a new one, or opens one that has the same
    settings. A file that was deleted is not made anew while its mark is there. Scripts that run
    again should open it without settings, so that it is an error in any case.

    Parameters
    ----------
    path : the file; `backward` and `forward` as in `TemporalFilter`, written out, None if not known
    alpha : float > 0, the level that every TPL keeps, nats; above 20 only with `allow_large`
    sensitivity : float > 0, as in `release_counts`
    mechanism : "opendp", Laplace noise, or with a delta "opendp-gaussian"; None: the one that fits
    floor : float > 0, the budget of each time for ever, unless `publish` is given another within what remains
    plan : array-like (T,), in place of a floor: budgets, fixed in advance, which keep alpha
    delta : float, 0 < delta < 1, with a plan of noise multipliers of Gaussian noise that keep (alpha, delta)
    step : int or text such as "1h", the distance of two times: whole numbers, or dates

    ValueError for settings that do not keep the promise; OSError for a file that cannot be used;
    RuntimeError for what a signal's handler asks while a call that it interrupts uses a file.

    Examples
    --------
    >>> import tempfile
    >>> P = [[0.8, 0.2], [0.1, 0.9]]
    >>> path = tempfile.mkdtemp() + "/counts.sqlite"
    >>> publisher = Publisher(path, backward=P, forward=P, alpha=1.0, sensitivity=2, floor=0.1, step="1h")
    >>> noisy = publisher.publish("2024-05-01 08:00", {"home": 105, "work": 98})
    >>> sorted(noisy), round(publisher.remaining, 3)
    (['home', 'work'], 0.686)
    >>> publisher.skip("2024-05-01 09:00", until="2024-05-01 12:00").ledger["count"].tolist()
    [1, 4]
    """

    _identity: str | None = None
    _filter: TemporalFilter | None = None

    def __init__(
        self,
        path: str | os.PathLike,
        *,
        backward: LossLike = REQUIRED,
        forward: LossLike = REQUIRED,
        alpha: float | None = None,
        sensitivity: float | None = None,
        mechanism: str | None = None,
        floor: float | None = None,
        plan: ArrayLike | None = None,
        delta: float | None = None,
        step: int | str = 1,
        allow_large: bool = False,
    ):
        self.path = Path(path).resolve()
        self._mark_path = self.path.with_name(f"{self.path.name}.mark")
        settings: dict = {}
        given = backward is not REQUIRED, forward is not REQUIRED, step != 1
        if any(given) or any(
            value is not None for value in (alpha, sensitivity, mechanism, floor, plan, delta)
        ):
            settings = _checked(
                backward, forward, alpha, sensitivity, mechanism, floor, plan, delta, allow_large
            )
            settings["step"] = Clock.checked_step(step)
            self._create(settings)
        with self._transaction(write=False) as (database, state):
            self.settings, self._identity = _setting(database, "settings"), state["id"]
        if different := [name for name in settings if self.settings.get(name) != settings[name]]:
            raise ValueError(
                f"{self.path} was made with other settings of {', '.join(different)}; open it without settings, or "
                "take a new file, whose releases add to those of this one"
            )
        self._backward, self._forward = (
            loss_of(self.settings[side]) for side in ("backward", "forward")
        )
        if self.settings["plan"] is None:
            limits = self.settings["alpha"], self._backward, self._forward
            self._filter = TemporalFilter(*limits, floor=self.settings["floor"])

    def __repr__(self) -> str:
        return f"Publisher({str(self.path)!r}, alpha={self.settings['alpha']:g}, {len(self)} times)"

    def _repr_html_(self) -> str:
        return frame_as_html(repr(self), self.ledger.set_index("time"))

    def __len__(self) -> int:
        """The number of time points so far."""
        with self._transaction(write=False) as (_, state):
            return state["next"]

    def publish(self, time: Any, counts: Any, epsilon: float | None = None) -> Any:
        """The noisy counts of one time point, whole numbers for whole numbers, in the form of
        `counts`.

        A number, a mapping or Series with labels, which must be the same at each time, or an array.
        `epsilon` is in place of the floor. The value of a time that was published before is
        returned again, and logged. LeakageExceededError if the budget would raise a TPL above
        alpha; ValueError for other counts than before, or a time that is not the next.
        """
        row = pd.Series(
            counts, ["count"] if np.ndim(counts) == 0 and not isinstance(counts, Mapping) else None
        )
        noisy = pd.Series(
            self._publish([time], [row.to_numpy()], row.index.tolist(), epsilon)[0], row.index
        )
        if isinstance(counts, Mapping):
            return noisy.to_dict()
        if isinstance(counts, pd.Series):
            return noisy.rename(counts.name)
        return noisy.item() if np.ndim(counts) == 0 else noisy.to_numpy()

    def publish_table(
        self, counts: Any, epsilon: float | None = None, progress: bool = True
    ) -> Any:
        """The noisy counts of many times, which are the index of the Series or DataFrame `counts`.

        Fast: a million in a minute. If one is refused, so are all after the last full 50,000 before
        it.
        """
        table = counts.to_frame("count") if isinstance(counts, pd.Series) else counts
        parts = []
        with Bar(len(table), "publishing", "time", progress) as bar:
            for first in range(0, max(len(table), 1), CHUNK):
                part = table.iloc[first : first + CHUNK]
                parts.append(
                    self._publish(part.index, part.to_numpy(), table.columns.tolist(), epsilon)
                )
                bar.update(len(part))
        noisy = pd.DataFrame(np.concatenate(parts), table.index, table.columns)
        return noisy["count"].rename(counts.name) if isinstance(counts, pd.Series) else noisy

    def _publish(self, times: Any, counts: Any, labels: list, epsilon: float | None) -> np.ndarray:
        values = checked_counts(counts)
        # what is known is returned from a copy, too
        with self._transaction(write=False) as (_, state):
            is_new = (
                state["clock"] is None or self._clock(state).positions(times)[-1] >= state["next"]
            )
        with self._transaction(write=is_new) as (database, state):
            clock = self._clock(state, times)
            values, order = _in_columns(state, values, labels)
            positions = clock.positions(times)
            clock.check_follow(positions, state["next"])
            ends, old = (
                (positions[0], positions[-1]),
                min(state["next"] - positions[0], len(positions)),
            )
            rows = zip(positions, values, strict=True)
            digests = [sha256(f"{at}".encode() + row.tobytes()).digest()[:16] for at, row in rows]
            known = dict(
                _rows(database, "position, digest", f"kind IN ({INTENDED}, {PUBLISHED})", *ends)
            )
            for at, digest in zip(positions[:old], digests, strict=False):
                if at not in known:
                    raise ValueError(
                        f"time {clock.label(at)} was skipped, or spent elsewhere; go on after the last one"
                    )
                if known[at] != digest:
                    raise ValueError(
                        f"time {clock.label(at)} was published with other counts, and what was handed out cannot be "
                        "corrected; take its value from to_frame()"
                    )
            if new := positions[old:]:
                if not is_new:
                    raise OSError(
                        f"{self.path} was put back or replaced while it was read; publish again"
                    )
                budgets = self._spend(state, len(new), epsilon)
                different = [*{*budgets}]
                # else an error, and nothing spent
                self._noise(np.zeros((len(different), 1), values.dtype), different)
                insert = f"INSERT INTO times VALUES (?, 1, {INTENDED}, ?, ?, zeroblob({8 * len(labels)}))"
                database.executemany(insert, zip(new, budgets, digests[old:], strict=True))
                state["next"] += len(new)
            intended = _rows(database, "position, budget", f"kind = {INTENDED}", *ends)
        if old:
            some = (
                f"time {clock.label(ends[0])} was"
                if len(positions) == 1
                else f"{old} of {len(positions)} were"
            )
            LOG.warning(
                "%s published before, with the same counts: what was handed out is returned again",
                some,
            )
        drawn = []
        if intended:
            noisy = self._noise(
                values[[at - ends[0] for at, _ in intended]], [budget for _, budget in intended]
            )
            drawn = [(row.tobytes(), at) for row, (at, _) in zip(noisy, intended, strict=True)]
        # another process may have drawn first
        with self._transaction(write=bool(drawn)) as (database, _):
            update = f"UPDATE times SET kind = {PUBLISHED}, noisy = ? WHERE position = ? AND kind = {INTENDED}"
            database.executemany(update, drawn)
            stored_rows = _rows(database, "noisy", f"kind = {PUBLISHED}", *ends)
        if len(stored_rows) < len(values):
            raise ValueError(
                "times were drawn while resume was called, which counts them as spent elsewhere"
            )
        return np.frombuffer(b"".join(row for (row,) in stored_rows), values.dtype).reshape(
            values.shape
        )[:, order]

    def _noise(self, counts: np.ndarray, budgets: list[float]) -> np.ndarray:
        levels: dict = {"noise_multipliers" if self.settings["delta"] else "epsilons": budgets}
        chosen = {name: self.settings[name] for name in ("mechanism", "sensitivity")}
        return release_counts(counts, **levels, **chosen, allow_large=True)

    def _spend(self, state: dict, count: int, epsilon: float | None) -> list[float]:
        """The budgets of the next times; LeakageExceededError, or ValueError after the end of a
        plan."""
        if self._filter is None:
            plan, first = self.settings["plan"], state["next"]
            if epsilon is not None:
                raise ValueError(
                    "a plan holds the budget of each time, found epsilon; leave it out"
                )
            if first + count > len(plan):
                raise ValueError(f"the plan has {len(plan)} times, found one more; end here")
            return plan[first : first + count]
        if epsilon is None and not self.settings["floor"]:
            raise ValueError("publish needs a budget, found no floor and no plan; give epsilon")
        budget = self.settings["floor"] if epsilon is None else epsilon
        self._filter.spend(budget, count)
        return [float(budget)] * count

    def skip(self, time: Any, until: Any = None, epsilon: float = 0.0) -> Self:
        """Let time points pass without a release, from `time` to `until`, both included.

        With an `epsilon` each had a release elsewhere, of this budget.
        """
        with self._transaction() as (database, state):
            clock = self._clock(state, [time])
            first, last = clock.positions([time, time if until is None else until])
            clock.check_follow([first], state["next"])
            if (earliest := min(first, last)) < state["next"]:
                passed, following = clock.label(earliest), clock.label(state["next"])
                raise ValueError(
                    f"time {passed} has passed, {following} is next; give that, and until not before it"
                )
            self._pass(database, state, last - first + 1, float(epsilon))
        return self

    def resume(self, until: Any = None) -> Self:
        """Publish from a file that is a copy, was renamed or was put back, when the other one is
        out of use.

        `until` is the last time that may have been published since the copy was made: all times up
        to it count as spent, with as much as alpha allows. None: nothing was published since.
        """
        with self._transaction(copies=True) as (database, state):
            state["number"] = max(state["number"], self._marked()[2])
            # Whether their noise was drawn elsewhere is not known.
            database.execute(f"UPDATE times SET kind = {ELSEWHERE} WHERE kind = {INTENDED}")
            if until is not None:
                if self._filter is None and state["clock"] is None:
                    raise ValueError(
                        f"{self.path} must know the first time of its plan, found none, and all may be spent "
                        f"up to {until}; take a new file, whose releases add to those of this one"
                    )
                count = self._clock(state, [until]).positions([until])[0] - state["next"] + 1
                if count > 0:
                    self._pass(database, state, count, None)
        return self

    def _pass(
        self, database: sqlite3.Connection, state: dict, count: int, budget: float | None
    ) -> None:
        """Let `count` times pass: skipped (budget 0), or with a budget that was spent elsewhere
        (None: not known)."""
        if budget:
            self._spend(state, count, budget)
        elif self._filter and budget is None:  # the tightest state that it can be in
            self._filter.state = self._filter.exhausted()
        elif self._filter:
            self._filter.skip(count)
        kind = SKIPPED if budget == 0.0 else ELSEWHERE
        database.execute(
            "INSERT INTO times VALUES (?, ?, ?, ?, NULL, NULL)",
            (state["next"], count, kind, budget),
        )
        state["next"] += count

    @property
    def remaining(self) -> float:
        """The largest budget of the next time; of a plan its budget (with a delta: noise
        multiplier)."""
        with self._transaction(write=False) as (_, state):
            if self._filter:
                return self._filter.remaining
        end = inf if self.settings["delta"] else 0.0
        return next(iter(self.settings["plan"][state["next"] :]), end)

    @property
    def ledger(self) -> pd.DataFrame:
        """What was spent: time, number of times, budget or noise multiplier (NaN if not known),
        kind."""
        with self._transaction(write=False) as (database, state):
            rows = _rows(database, "position, count, budget, kind")
        level = "noise_multiplier" if self.settings["delta"] else "epsilon"
        table = pd.DataFrame(rows, columns=["time", "count", level, "kind"]).astype({level: float})
        return table.assign(
            time=self._clock(state).index(table["time"]),
            kind=[KINDS[kind] for kind in table["kind"]],
        )

    @property
    def leakage(self) -> Any:
        """All leakages as of now: `TemporalLeakage`, or with a delta a `TemporalPrivacyProfile`."""
        with self._transaction(write=False) as (database, state):
            rows = _rows(database, "budget, count")
        if any(budget is None for budget, _ in rows):
            raise ValueError(
                "leakages need all budgets, found times spent elsewhere; each is within alpha"
            )
        leakages = _leakages(rows, self.settings["delta"], self._backward, self._forward)
        if self.settings["delta"] is None:
            leakages = replace(leakages, index=self._clock(state).index(range(state["next"])))
        return leakages

    def to_frame(self) -> pd.DataFrame:
        """All noisy values: a row for each published time, a column for each count."""
        with self._transaction(write=False) as (database, state):
            rows = _rows(database, "position, noisy", f"kind = {PUBLISHED}")
        values = np.frombuffer(b"".join(noisy for _, noisy in rows), state["kind"])
        values = values.reshape(len(rows), len(state["columns"])).copy()
        return pd.DataFrame(
            values, self._clock(state).index([at for at, _ in rows]), state["columns"]
        )

    def export(self, path: str | os.PathLike) -> None:
        """Write the noisy values as CSV."""
        self.to_frame().to_csv(path)

    def backup(self, path: str | os.PathLike) -> None:
        """Write a copy of the file, which is whole also while others publish; ValueError for this
        file."""
        if Path(path).exists() and Path(path).samefile(self.path):
            raise ValueError(
                f"a backup must be another file than {self.path}, found the same; take another name"
            )
        with (
            self._transaction(write=False) as (database, _),
            closing(sqlite3.connect(path)) as copy,
        ):
            database.backup(copy)

    def _remove_unused(self) -> None:
        """Remove the file and its mark unless a time was spent: a command that made them and is
        then refused leaves nothing behind."""
        with self._connection(write=True, new=False, copies=False) as (database, _):
            if not _rows(database, "position", f"kind != {SKIPPED}"):
                self._mark_path.unlink()
                self.path.unlink()

    def _create(self, settings: dict) -> None:
        """Make the file, if there is none."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._connection(write=True, new=True, copies=False) as (database, mark):
            if not database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                database.execute("CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT)")
                database.execute(f"CREATE TABLE times ({COLUMNS})")
                state = {"id": uuid4().hex, "number": 0, "next": 0, "filter": (0, None, inf)}
                state |= {"clock": None, "columns": [], "kind": "<i8"}
                for name, value in {"format": FORMAT, "settings": settings, "state": state}.items():
                    _set(database, name, value)
                self._mark(mark, state)

    @contextmanager
    def _transaction(
        self, write: bool = True, copies: bool = False
    ) -> Iterator[tuple[sqlite3.Connection, dict]]:
        """One transaction, and the state that it may change; to write, the file must be no copy,
        but for `copies`."""
        with self._connection(write, new=False, copies=copies) as (database, mark):
            if (found := _setting(database, "format")) != FORMAT:
                raise ValueError(
                    f"a publisher's file must be of format {FORMAT!r}, found {found!r}; check its name"
                )
            state = _setting(database, "state")
            if self._identity not in (None, state["id"]):
                raise OSError(
                    f"{self.path} was replaced by another file while it was open; open it again"
                )
            if write and not copies:
                self._check_original(state, mark)
            # else it knows what remains
            if self._filter and self._filter.state != (found := FilterState(*state["filter"])):
                self._filter.state = found
            yield database, state
            if write:
                state["number"] += 1
                if self._filter:
                    state["filter"] = self._filter.state
                _set(database, "state", state)
                database.execute("COMMIT")
                self._mark(mark, state)

    @contextmanager
    def _connection(
        self, write: bool, new: bool, copies: bool
    ) -> Iterator[tuple[sqlite3.Connection, int]]:
        """A transaction of a connection of its own, and the locked mark; OSError if the file is not
        usable."""
        if not (self.path.is_file() and self.path.stat().st_size):
            remedy = "open it by its new name, or make one with settings"
            if has_spent := self._marked()[2] > 0:
                remedy = (
                    f"{self._mark_path.name} tells that it spent budgets: put it back, or a backup and call "
                    "resume(until); or take a new name, whose releases add to those that were made"
                )
            if has_spent or not new:
                raise FileNotFoundError(
                    f"there must be a publisher's file {self.path}, found none; {remedy}"
                )
        if _is_inside():
            raise RuntimeError(
                f"{self.path} must be used after the call that a signal interrupts, found within it"
            )
        try:
            with (
                LOCK,
                self._locked(write, new or copies) as mark,
                closing(sqlite3.connect(self.path, timeout=WAIT, isolation_level=None)) as database,
                database,
            ):
                database.execute("PRAGMA synchronous = EXTRA")
                database.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                yield database, mark
        except sqlite3.Error as error:
            raise OSError(
                f"{self.path} cannot be used ({error}), and nothing was handed out; look at the free space and the "
                "permissions of its folder, or restore a backup and call resume(until)"
            ) from None

    @contextmanager
    def _locked(self, write: bool, new: bool) -> Iterator[int]:
        """Lock the mark; -1 if there is none, or none that whoever reads may write. `new`: make it.

        Whoever reads locks it for himself, too: of several who share a lock, a writer would wait
        for ever.
        """
        mark, process = -1, os.getpid()
        try:
            mark = os.open(self._mark_path, os.O_RDWR | (os.O_CREAT if new else 0), 0o644)
        except OSError as error:
            if write and not isinstance(error, FileNotFoundError):
                raise sqlite3.OperationalError(
                    f"{self._mark_path.name}: {error.strerror}"
                ) from None
        try:
            until = monotonic() + WAIT
            while mark >= 0:
                try:
                    flock(mark, LOCK_EX | LOCK_NB)
                    break
                except BlockingIOError:
                    if monotonic() > until:
                        raise sqlite3.OperationalError("database is locked") from None
                    sleep(0.002)
            yield mark
        finally:
            if mark >= 0:
                if os.getpid() == process:  # else a child that was forked meanwhile keeps it locked
                    flock(mark, LOCK_UN)
                os.close(mark)

    def _check_original(self, state: dict, mark: int) -> None:
        """OSError unless the file has one name and the mark of its state."""
        found = os.stat(self.path)
        if found.st_nlink > 1:
            raise OSError(
                f"{self.path} must have one name, found {found.st_nlink} hard links; remove the others"
            )
        identity, inode, last = self._marked()
        if mark < 0 or (identity, inode) != (state["id"], found.st_ino) or last > state["number"]:
            raise OSError(
                f"{self.path} is a copy, was renamed without {self.path.name}.mark, or an older state was put back: "
                "releases may be missing in it; publish from the original, or call resume(until) with the last time "
                "that may have been published since"
            )

    def _marked(self) -> tuple[str, int, int]:
        """The identity, the inode and the number of changes in the mark, if there is one; if
        damaged, 1."""
        try:
            text = self._mark_path.read_text(errors="replace")
            identity, inode, number = text.split()
            return identity, int(inode), int(number)
        except OSError:
            return "", 0, -1
        except ValueError:
            return "", 0, 1 if text else -1

    def _mark(self, mark: int, state: dict) -> None:
        """Write the locked mark, one short line by one call."""
        new = state["id"], os.stat(self.path).st_ino
        is_known = self._marked()[:2] == new
        written = os.pwrite(mark, "{} {:<20} {:<20}\n".format(*new, state["number"]).encode(), 0)
        if not is_known:  # later ones may be lost with the power: they only grow
            os.ftruncate(mark, written)
            os.fsync(mark)

    def _clock(self, state: dict, times: Any = ()) -> Clock:
        """The times of the file; the first time that is given sets their start."""
        if state["clock"] is None and len(times):
            state["clock"] = Clock.starting(times[0], self.settings["step"])
        return Clock(**state["clock"] or Clock.starting(0, 1))


def _setting(database: sqlite3.Connection, name: str) -> Any:
    found = database.execute("SELECT value FROM settings WHERE name = ?", (name,)).fetchone()
    return found and json.loads(found[0])


def _set(database: sqlite3.Connection, name: str, value: Any) -> None:
    database.execute("INSERT OR REPLACE INTO settings VALUES (?, ?)", (name, json.dumps(value)))


def _rows(
    database: sqlite3.Connection, columns: str, where: str = "1", first: int = 0, last: int = 2**62
) -> list:
    ordered = (
        f"SELECT {columns} FROM times WHERE {where} AND position BETWEEN ? AND ? ORDER BY position"
    )
    return database.execute(ordered, (first, last)).fetchall()


def _in_columns(state: dict, values: np.ndarray, labels: list) -> tuple[np.ndarray, list[int]]:
    """Counts (T, n) in the order and kind of those published so far, and where each of the labels
    is in that order."""
    if not state["columns"]:
        # no NaN
        known = all(isinstance(label, (str, int, float)) and label == label for label in labels)
        if not known or len({*labels}) < len(labels):
            raise ValueError(
                f"labels of counts must be distinct, text or numbers, found {labels[:3]}; rename them"
            )
        state |= {"columns": labels, "kind": values.dtype.str}
    columns, kind = state["columns"], state["kind"]
    if {*labels} != {*columns} or len(labels) != len(columns):
        raise ValueError(
            f"counts must have the labels {columns[:5]} as before, found {labels[:5]}; rename them"
        )
    if values.dtype.str != kind and np.dtype(kind).kind == "i":
        raise ValueError("counts must be whole numbers as before, found decimals; round them")
    values = np.ascontiguousarray(values[:, [labels.index(name) for name in columns]], dtype=kind)
    return values, [columns.index(label) for label in labels]


def _checked(
    backward, forward, alpha, sensitivity, mechanism, floor, plan, delta, allow_large: bool
) -> dict:
    """The settings of a publisher that keeps its promise, as JSON has them."""
    if alpha is None:
        raise ValueError(
            "a publisher needs the level alpha that every TPL keeps, found none; give nats"
        )
    alpha, sensitivity = check_level(alpha), check_sensitivity(sensitivity)
    if alpha > LARGE and not allow_large:
        raise ValueError(
            f"alpha = {alpha:g} nats protects nobody; give {LARGE:g}, or allow_large=True"
        )
    backward, forward = loss_functions(backward, forward)
    if plan is not None and floor is not None:
        raise ValueError("budgets are those of a plan or a floor, found both; leave one out")
    if plan is None and delta is not None:
        raise ValueError(
            "a delta needs a plan, fixed in advance, of noise multipliers; see allocate_noise"
        )
    fitting = "opendp" if delta is None else "opendp-gaussian"
    check_choice(mechanism, "mechanism", (None, fitting))
    if plan is None:
        TemporalFilter(alpha, backward, forward, floor=floor or 0.0)
    else:
        plan = (check_budgets(plan) if delta is None else check_noise_multipliers(plan)).tolist()
        delta = None if delta is None else float(check_delta(delta))
        leakages = _leakages(zip(plan, repeat(1)), delta, backward, forward)
        worst = (leakages.tpl if delta is None else leakages.epsilon(delta)).max()
        if worst > alpha:
            promise = f"every TPL within alpha = {alpha:g}" + (
                f" and delta = {delta:g}" if delta else ""
            )
            raise ValueError(f"the plan must keep {promise}, found {worst:.6g}; add noise")
    levels = {
        "alpha": alpha,
        "sensitivity": sensitivity,
        "floor": float(floor or 0.0),
        "plan": plan,
        "delta": delta,
    }
    return levels | {"mechanism": fitting, "backward": stored(backward), "forward": stored(forward)}


def _leakages(
    rows: Iterable[tuple[float, int]], delta: float | None, backward: Any, forward: Any
) -> Any:
    """Of rows (budget, or with a delta noise multiplier, which is 0 without a release; number of
    times)."""
    runs = [
        (level, sum(count for _, count in run))
        for level, run in groupby(rows, key=lambda row: row[0])
    ]
    if delta is None:
        account = TemporalAccountant(backward, forward)
        for budget, count in runs:
            account.compose(budget, count) if budget else account.skip(count)
        return account.leakage
    from dp_accounting import GaussianDpEvent

    events = [
        (GaussianDpEvent(multiplier) if multiplier else None, count) for multiplier, count in runs
    ]
    return tf.temporal_privacy_profile(events, backward, forward)
