"""Transactions of a publisher's file, which is the one that its marks know.

Whoever reads may read any file. Whoever writes must have the marked one: the check, the commit and
the marks after it are one step under the lock of the mark.
"""

from __future__ import annotations
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

from tplreport.publishing.mark import (
    MOST_CHANGES,
    Mark,
    Record,
    UnusableMark,
    facts_of,
    files_beside,
    mark_of,
)
from tplreport.publishing.store import Damage, Kind, State, Store
from tplrepro.locks import ForkLock

#: Held by each transaction: a child that inherits the locks of SQLite can never write.
LOCK = ForkLock()


class MarkedFile:
    """A publisher's file, its mark and its witness, by which `check_witness` judges the witness
    that the file names; None: that one is used."""

    def __init__(self, path: Path, witness: Path | None):
        self.path = path
        self.mark = Mark(mark_of(path))
        self.witness = witness
        #: Of the file that was opened first: another one may take its name.
        self.identity: str | None = None

    def files(self) -> list[Path]:
        """The file, its mark, its journals, and its witness."""
        files = files_beside(self.path)
        if self.witness is not None:
            files.append(self.witness)
        with suppress(OSError, ValueError), self.reading() as store:
            if store.state.witness is not None:
                files.append(Path(store.state.witness))
        return files

    def create(self, settings: dict) -> None:
        """Make the file, if there is none."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._opened(write=True, create=True) as store:
            if not store.is_empty:
                return
            state = State(uuid4().hex, witness=_text(self.witness))
            store.create(settings, state)
            with self._marks(state, create=True) as marks:
                self._commit(store, marks, Record(state.identity, 0, facts=store.found))

    def remove_unused(self) -> None:
        """Remove the file and its marks, unless a time was spent."""
        with self._opened(write=True) as store, self._marks(store.state) as marks:
            if all(row.kind == Kind.SKIPPED for row in store.rows()):
                for mark in marks:
                    mark.path.unlink(missing_ok=True)
                self.path.unlink()

    @contextmanager
    def reading(self) -> Iterator[Store]:
        """A transaction that changes nothing."""
        with self._opened(write=False) as store:
            yield store

    @contextmanager
    def writing(self) -> Iterator[Store]:
        """A transaction that ends with a commit; OSError unless the marks know the file."""
        with self._opened(write=True) as store:
            state = store.state
            self._check_names(state)
            with self._marks(state) as marks:
                for mark in marks:
                    self._check_known(mark, store)
                known = Record(state.identity, state.changes, state.commit, facts=store.found)
                yield store
                state.changes += 1
                self._commit(store, marks, known)

    @contextmanager
    def resuming(self) -> Iterator[Store]:
        """A transaction of any file, which its marks know from then on; its witness may be another
        one."""
        with self._opened(write=True, create_mark=True) as store:
            state = store.state
            earlier = state.witness
            state.witness = _text(self.witness) or earlier
            with self._marks(state, create=True) as marks:
                records = [mark.read() for mark in marks]
                changes = [record.changes for record in records if record is not None]
                for record in records:
                    if record is not None and record.identity == state.identity:
                        state.learn_of_changes(record.n_chains, record.changed_at)
                yield store
                state.changes = max(state.changes, *changes, 0) + 1
                # not known by its last commit: a crash must not leave it as if it were resumed
                self._commit(store, marks, Record(state.identity, 0, facts=store.found))
            if earlier not in (None, state.witness):
                self._forget(Path(earlier or ""))

    def _commit(self, store: Store, marks: Sequence[Mark], known: Record) -> None:
        """Commit the transaction of `store` and close it; `marks` know the file then.

        Before the commit, each mark holds `known`, a record of the file as it was, and the commit
        that is pending: after a crash, it knows whichever of the two states the file is in.
        """
        state = store.state
        state.commit = uuid4().hex
        known = replace(
            known,
            changes=state.changes,
            n_chains=len(state.changed_at),
            changed_at=state.changed_at[-MOST_CHANGES:],
        )
        pending = replace(known, pending=state.commit)
        for mark in marks:
            mark.write(pending, durable=True)
        store.commit()
        store.close()  # before `facts_of`: whoever closes a file loses SQLite's locks of it
        facts = facts_of(self.path, durable=True)
        done = replace(known, identity=state.identity, commit=state.commit, facts=facts)
        for mark in marks:
            mark.write(done, durable=False)

    @contextmanager
    def _opened(
        self, write: bool, create: bool = False, create_mark: bool = False
    ) -> Iterator[Store]:
        """A transaction within the lock of the mark; OSError if the file is not usable.

        `create`: make the file if there is none; `create_mark`: make its mark alone if there is
        none.
        """
        self._check_present(create)
        if LOCK.is_held:
            raise RuntimeError(
                f"{self.path} must be used after the call that a signal interrupts, found within it"
            )
        try:
            with LOCK, self.mark.locked(write, create or create_mark):
                if create:
                    self._check_present(create)
                    _make_private(self.path)
                with closing(Store(self.path, write)) as store:
                    if not store.is_empty:
                        self._check_identity(store.state)
                    elif not create:
                        raise self._missing()
                    yield store
        except (Damage, UnicodeDecodeError) as damage:  # of a message of SQLite, too
            raise OSError(
                f"{self.path} is damaged ({damage}), and nothing was handed out; restore a backup "
                "and call resume(until)"
            ) from None
        except (sqlite3.Error, UnusableMark) as error:
            remedy = "look at the free space and the permissions of its folder"
            if "not a database" in str(error):
                remedy = "check that this is the name of a publisher's file"
            raise OSError(
                f"{self.path} cannot be used ({error}), and nothing was handed out; {remedy}, or "
                "restore a backup and call resume(until)"
            ) from None

    @contextmanager
    def _marks(self, state: State, create: bool = False) -> Iterator[list[Mark]]:
        """The mark, which is locked, and the witness, locked too."""
        if state.witness is None:
            yield [self.mark]
            return
        with Mark(Path(state.witness)).locked(write=True, create=create) as witness:
            if create and not witness.is_locked:
                raise UnusableMark(f"the folder of its witness {witness.path} is missing")
            yield [self.mark, witness]

    def _check_present(self, create: bool) -> None:
        """FileNotFoundError if there is no file, or an empty one, unless `create` and no mark tells
        of earlier changes."""
        is_present = self.path.is_file() and self.path.stat().st_size > 0
        if is_present:
            return
        if not create or self._mark_of_changes() is not None:
            raise self._missing()

    def _mark_of_changes(self) -> str | None:
        """The name of a mark that tells of changes to a file since it was made."""
        marks = [self.mark]
        if self.witness is not None:
            marks.append(Mark(self.witness))
        for mark in marks:
            record = mark.read()
            if record is not None and record.changes > 0:
                return mark.path.name
        return None

    def _missing(self) -> FileNotFoundError:
        """The error for a file that is not there, or empty; the remedy depends on its marks."""
        remedy = "open it by its new name, or make one with settings"
        used = self._mark_of_changes()
        if used is not None:
            remedy = (
                f"{used} tells that it was used: put it back, or a backup and call "
                "resume(until); or take a new name, whose releases add to those that were made"
            )
        return FileNotFoundError(
            f"there must be a publisher's file {self.path}, found none; {remedy}"
        )

    def _check_identity(self, state: State) -> None:
        if self.identity not in (None, state.identity):
            raise OSError(
                f"{self.path} was replaced by another file while it was open; open it again"
            )

    def _check_names(self, state: State) -> None:
        """OSError for hard links; ValueError for another witness than that of the file."""
        links = os.stat(self.path).st_nlink
        if links > 1:
            raise OSError(
                f"{self.path} must have one name, found {links} hard links; remove the others, and "
                "call resume(until)"
            )
        self.check_witness(state)

    def check_witness(self, state: State) -> None:
        """ValueError for another witness than that of the file."""
        if self.witness is not None and _text(self.witness) != state.witness:
            known = state.witness or "none"
            raise ValueError(
                f"the witness of {self.path} must be {known}, found {self.witness}; leave it out, "
                "or call resume(until) to change it"
            )

    def _check_known(self, mark: Mark, store: Store) -> None:
        """OSError unless a mark knows the file."""
        record = mark.read() if mark.is_locked else None
        state = store.state
        if record is not None and record.knows(state.identity, state.commit, store.found):
            return
        if mark is not self.mark:
            found = "none" if record is None else "a witness of another state"
            raise OSError(
                f"{self.path} must be as its witness {mark.path} knows it, found {found}; mount "
                "it, or if the disk was put back, call resume(until) with the last time that may "
                "have been published since"
            )
        raise OSError(
            f"{self.path} is a copy, was renamed, an older state was put back, or its permissions, "
            f"links or times were changed: {mark.path.name} knows another file, and releases may "
            "be missing in this one; publish from the original, or call resume(until) with the "
            "last time that may have been published since, or resume() if none was"
        )

    def _forget(self, witness: Path) -> None:
        """Remove a witness that is not used any more: it would know an older state."""
        record = Mark(witness).read()
        if record is not None and record.identity == self.identity:
            with suppress(OSError):
                witness.unlink()


def _make_private(path: Path) -> None:
    """Make an empty file that only its owner may read, unless it is there."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)
