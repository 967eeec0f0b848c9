"""What a publisher's file holds: settings, the state, and a row for each time or run of times.

What may be large, the chains of the settings, has a table of its own: in the first one, whose keys
SQLite compares as whole rows, each look-up of a small setting would read it. Files that were made
before have it there.

Each of them carries a digest, which is checked when it is read. It is a checksum against damage,
without a key: whoever may write the file can write the digest, too. Nothing in the file is computed
from true counts, except for the noisy values.
"""

from __future__ import annotations
import json
import sqlite3
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from enum import IntEnum
from hashlib import blake2b
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from tplreport.publishing.mark import facts_of

FORMAT = "tplreport publisher 3"
#: As SQLite keeps them, word for word.
TABLES = (
    "CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT, digest BLOB) WITHOUT ROWID",
    "CREATE TABLE times (position INTEGER PRIMARY KEY, count INTEGER, kind INTEGER, budget REAL,"
    " noisy BLOB, digest BLOB)",
)
#: Files that were made before have none.
TABLE_OF_LARGE = "CREATE TABLE large (name TEXT, value TEXT, digest BLOB)"
#: What is kept there.
LARGE = ("settings", "chains")
PRAGMAS = (
    "synchronous = EXTRA",
    "cell_size_check = ON",
    "trusted_schema = OFF",
    "cache_spill = OFF",  # nothing is written into the file before the commit
)
WAIT = 60.0  # seconds, for other programs that use the file


class Damage(Exception):
    """What a file holds is not what was written."""


class Kind(IntEnum):
    """What happened at a time."""

    SKIPPED = 0
    RESERVED = 1
    PUBLISHED = 2
    ELSEWHERE = 3
    MODEL = 4  # of settings; no row of a file has it

    @property
    def label(self) -> str:
        """The words for it in the ledger."""
        labels = ("skipped", "spent, not drawn", "published", "spent elsewhere", "model")
        return labels[self]


class Row(NamedTuple):
    """A time, or several `times` that passed together; `budget` None: not known; `noisy`: the bytes
    of its values."""

    position: int
    times: int
    kind: int
    budget: float | None
    noisy: bytes | None

    @property
    def end(self) -> int:
        """The position after it."""
        return self.position + self.times

    def within(self, first: int, last: int) -> Row:
        """What of it lies between two positions, both included."""
        position = max(self.position, first)
        return self._replace(position=position, times=min(self.end - 1, last) - position + 1)

    def digest(self) -> bytes:
        """A digest of all its fields."""
        numbers = (*self[:3], self.budget is not None, self.budget or 0.0)
        content = struct.pack("<qqq?d", *numbers) + (self.noisy or b"")
        return blake2b(content, digest_size=8).digest()


@dataclass
class State:
    """What changes with each commit.

    `commit` is its random name, `following` the position of the next time, `filter` the state of a
    `TemporalFilter`, `witness` the path of a second mark, and `changes_of_chain` their number.
    `changed_at` are the positions of all changes of chain that are known; those after the first
    `changes_of_chain` of them are lost: made in a file of which this one is an older copy.
    """

    identity: str
    commit: str = ""
    changes: int = 0
    following: int = 0
    filter: tuple = (0, None, inf)
    witness: str | None = None
    changes_of_chain: int = 0
    changed_at: tuple[int, ...] = ()

    @property
    def lost_change(self) -> int | None:
        """The position of the first change of chain that is lost, if one is."""
        lost = self.changed_at[self.changes_of_chain :]
        if not lost:
            return None
        return lost[0]

    def learn_of_changes(self, n_chains: int, last: Sequence[int]) -> None:
        """Learn how often the chain was changed in a later state of the file, and the positions of
        the last changes.

        One whose position is not known may have been made at once.
        """
        n_lost = n_chains - len(self.changed_at)
        if n_lost <= 0:
            return
        known = last[-n_lost:]
        n_unknown = n_lost - len(known)
        self.changed_at = (*self.changed_at, *[self.following] * n_unknown, *known)


@dataclass(frozen=True)
class Columns:
    """The labels of the counts of a time, in the order of the file, and their NumPy type."""

    labels: list
    kind: str


class Store:
    """A transaction of a connection of its own; it ends with `commit`, or `close` undoes it."""

    def __init__(self, path: Path, write: bool):
        #: What the file system says before SQLite has opened the file.
        self.found = facts_of(path)
        self._database = sqlite3.connect(
            f"{path.as_uri()}?mode=rw", timeout=WAIT, isolation_level=None, uri=True
        )
        try:
            for pragma in PRAGMAS:
                self._database.execute(f"PRAGMA {pragma}")
            self._database.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            self.is_empty = self._check_tables(path)
            if not self.is_empty:
                self.state = self._state()
        except BaseException:
            self.close()
            raise

    def create(self, settings: dict, state: State) -> None:
        """Make the tables of an empty file and write its settings; `state` is written by
        `commit`."""
        for table in (*TABLES, TABLE_OF_LARGE):
            self._database.execute(table)
        self._has_large = True
        self.write("format", FORMAT)
        self.write("settings", settings)
        self.write("clock", None)
        self.write("columns", None)
        self.state = state

    def commit(self) -> None:
        """Keep what was changed, and the state."""
        self.write("state", asdict(self.state))
        self._database.execute("COMMIT")

    def close(self) -> None:
        """End the connection; what was not committed is undone."""
        self._database.close()

    def copy_to(self, path: Path) -> None:
        """Write the whole file into another one."""
        copy = sqlite3.connect(path)
        try:
            self._database.backup(copy)
        finally:
            copy.close()

    def check_pages(self) -> None:
        """Damage where SQLite finds pages that are used twice, or not in order."""
        (found,) = self._database.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise Damage(found)

    def read(self, name: str) -> Any:
        """One setting; all are there from the beginning."""
        query = f"SELECT value, digest FROM {self._table_of(name)} WHERE name = ?"
        found = self._database.execute(query, (name,)).fetchone()
        if found is None:
            raise Damage(f"its {name} is missing")
        value, digest = found
        if not isinstance(value, str) or digest != _digest_of_setting(name, value):
            raise Damage(f"its {name} is not as it was written")
        return json.loads(value)

    def write(self, name: str, value: Any) -> None:
        """Set one setting."""
        text = json.dumps(value)
        row = (name, text, _digest_of_setting(name, text))
        table = self._table_of(name)
        self._database.execute(f"DELETE FROM {table} WHERE name = ?", (name,))
        self._database.execute(f"INSERT INTO {table} VALUES (?, ?, ?)", row)

    def _table_of(self, name: str) -> str:
        if self._has_large and name in LARGE:
            return "large"
        return "settings"

    def columns(self) -> list[Columns | None]:
        """The columns of each statistic, None for one that was never published; empty before the
        first."""
        found = self.read("columns")
        if found is None:
            return []
        if "statistics" in found:
            return [each and Columns(**each) for each in found["statistics"]]
        return [Columns(**found)]

    def write_columns(self, columns: Sequence[Columns | None], is_named: bool) -> None:
        """Set the columns of each statistic; a file of one without a name keeps them alone."""
        as_fields = [each and asdict(each) for each in columns]
        if is_named:
            self.write("columns", {"statistics": as_fields})
        else:
            self.write("columns", as_fields[0])

    def changes_of_chain(self) -> list[dict]:
        """The chains that followed the first one, as `changes` describes them."""
        if self.state.changes_of_chain == 0:
            return []
        found = self.read("chains")
        if len(found) != self.state.changes_of_chain:
            raise Damage("its chains are not as they were written")
        return found

    def digest_of_changes(self) -> bytes | None:
        """That of the chains that followed the first one, which are not read; None if none did."""
        if self.state.changes_of_chain == 0:
            return None
        query = f"SELECT digest FROM {self._table_of('chains')} WHERE name = 'chains'"
        found = self._database.execute(query).fetchone()
        if found is None:
            raise Damage("its chains is missing")
        return found[0]

    def write_changes_of_chain(self, changes: list[dict]) -> None:
        """Set the chains that followed the first one."""
        self.write("chains", changes)
        self.state.changes_of_chain = len(changes)
        positions = [change["position"] for change in changes]
        self.state.changed_at = (*positions, *self.state.changed_at[len(changes) :])

    def insert(self, rows: Iterable[Row]) -> None:
        """Add rows after the last one."""
        self._database.executemany(
            "INSERT INTO times VALUES (?, ?, ?, ?, ?, ?)", ((*row, row.digest()) for row in rows)
        )

    def settle(self, rows: Iterable[Row]) -> None:
        """Give rows that are still reserved another kind, and their values."""
        changed = ((row.kind, row.noisy, row.digest(), row.position) for row in rows)
        self._database.executemany(
            f"UPDATE times SET kind = ?, noisy = ?, digest = ? WHERE position = ? AND kind = "
            f"{Kind.RESERVED:d}",
            changed,
        )

    def rows(self, first: int = 0, last: int | None = None) -> Iterator[Row]:
        """All rows that hold times from `first` to `last`, of those that have passed."""
        final = self.state.following - 1
        if last is not None:
            final = min(last, final)
        if first > final:
            return
        query = (
            "SELECT position, count, kind, budget, noisy, digest FROM times WHERE position BETWEEN "
            "(SELECT max(position) FROM times WHERE position <= ?) AND ? ORDER BY position"
        )
        end = None
        for found in self._database.execute(query, (first, final)):
            row = _checked_row(found)
            is_next = row.position == end or (end is None and row.position <= first)
            if not is_next:
                raise Damage("one of its times is missing")
            end = row.end
            yield row
        if end is None or end <= final:
            raise Damage("one of its times is missing")

    def _state(self) -> State:
        if self.read("format") != FORMAT:
            raise Damage("its format is another one")
        fields = self.read("state")
        state = State(**fields | {"filter": tuple(fields["filter"])})
        state.changed_at = tuple(state.changed_at)
        return state

    def _check_tables(self, path: Path) -> bool:
        """Whether the file is empty; ValueError for one of another format."""
        query = "SELECT sql FROM sqlite_master ORDER BY rowid"
        found = tuple(text for (text,) in self._database.execute(query))
        self._has_large = found == (*TABLES, TABLE_OF_LARGE)
        if found and found != TABLES and not self._has_large:
            raise ValueError(
                f"{path} must be a publisher's file of this version, found {self._other_format()}; "
                "check its name; if it was one, restore a backup and call resume(until); one of "
                "version 0.4.0 or before is not read any more: take a new name, whose releases "
                "add to those that were made"
            )
        return not found

    def _other_format(self) -> str:
        try:
            query = "SELECT value FROM settings WHERE name = 'format'"
            (value,) = self._database.execute(query).fetchone()
        except (sqlite3.Error, TypeError):
            return "other tables"
        return f"format {value}"


def _checked_row(found: Sequence) -> Row:
    """A row of the table; Damage if it is not as it was written."""
    row = Row(*found[:5])
    try:
        digest = row.digest()
    except (struct.error, TypeError):  # of a value of another kind
        digest = None
    if digest != found[5]:
        raise Damage("one of its times is not as it was written")
    return row


def _digest_of_setting(name: str, text: str) -> bytes:
    return blake2b(f"{name} {text}".encode(), digest_size=8).digest()
