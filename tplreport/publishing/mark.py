"""Marks of a publisher's file: which file on this disk it is, and what its last commit was.

A mark is one line in a file of its own. The publisher's file has one beside it (``name.mark``), and
may have a second one elsewhere, its witness. A mark holds the random name of the last commit, which
the publisher's file holds, too, and what the file system said of that file after it: its inode, the
generation or birth of this inode, its size and its change time, which nobody can set. Whatever is
copied, unpacked or put back is therefore another file than the mark knows, with or without its
mark.

Protocol. Before a commit the mark says which one is pending, and is forced to the disk; after it
the mark says that it is done. A process that is killed in between leaves a pending commit, of which
the file has all or nothing: either is accepted, in the same inode. The number of the device does
not count: it changes as a disk is mounted again.

The mark also is the lock of the publisher's file, because SQLite's own locks of a file are gone
once anybody in the process closes it.
"""

from __future__ import annotations
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from time import monotonic, sleep
from typing import Any

try:
    import fcntl
except ImportError:  # not a POSIX system: `check_system` says so where a mark is needed
    fcntl = None  # type: ignore[assignment]

WAIT = 60.0  # seconds, for other processes
PAUSE = 0.002  # seconds between two attempts
LENGTH = 511  # bytes of a mark, less than a sector of a disk
MOST_CHANGES = 5  # whose positions a mark holds, so that it is no longer
GENERATION = 0x80087601  # FS_IOC_GETVERSION of Linux
DATABASE = b"SQLite format 3\0"  # how a file of SQLite begins


class UnusableMark(Exception):
    """A mark cannot be locked, or cannot be written."""


@dataclass(frozen=True)
class Facts:
    """What the file system says of one file; times in nanoseconds."""

    inode: int
    born: int
    changed: int
    size: int


@dataclass(frozen=True)
class Record:
    """What a mark says.

    `commit` is the last one, or None if a resumed file must not be taken for what it was before.
    `n_chains` is how often the chain was changed, and `changed_at` the positions of the last
    `MOST_CHANGES` of these.
    """

    identity: str
    changes: int
    commit: str | None = None
    pending: str | None = None
    facts: Facts | None = None
    n_chains: int = 0
    changed_at: tuple[int, ...] = ()

    def knows(self, identity: str, commit: str, facts: Facts) -> bool:
        """Whether the publisher's file with this identity, last commit and `facts_of` is the one
        that was marked.

        While a commit is pending, the file may be in the state before or after it.
        """
        if self.identity != identity or self.facts is None:
            return False
        if self.pending is None:
            return self.commit == commit and self.facts == facts
        is_same_inode = (self.facts.inode, self.facts.born) == (facts.inode, facts.born)
        return commit in (self.commit, self.pending) and is_same_inode


#: What a mark says that cannot be read: something was spent, and no file is known.
DAMAGED = Record(identity="", changes=1)


def check_system() -> None:
    """OSError where there are no locks of POSIX."""
    if fcntl is None:
        raise OSError(
            "a publisher needs a POSIX system, such as Linux or macOS, whose locks of files keep "
            f"processes apart, found {os.name}; publish there, or use release_counts here"
        )


def facts_of(path: Path, durable: bool = False) -> Facts:
    """What the file system says of a file; `durable`: once this is safe on the disk, too, so that a
    power cut does not bring back an earlier change time."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if durable:
            os.fsync(handle)
        status = os.fstat(handle)
        return Facts(
            inode=status.st_ino,
            born=_birth(handle, status),
            changed=status.st_ctime_ns,
            size=status.st_size,
        )
    finally:
        os.close(handle)


def _birth(handle: int, status: os.stat_result) -> int:
    """When an inode was made, or its generation; 0 where the system tells neither."""
    seconds = getattr(status, "st_birthtime", None)
    if seconds is not None:
        return int(seconds * 1e9)
    generation = 0
    with suppress(OSError):
        answer = fcntl.ioctl(handle, GENERATION, bytes(8))
        generation = int.from_bytes(answer[:4], "little")
    return generation


class Mark:
    """A mark at a path, which one process at a time locks, reads and writes."""

    def __init__(self, path: Path):
        self.path = path
        self._handle: int | None = None

    @property
    def is_locked(self) -> bool:
        """Whether this mark is there, and locked."""
        return self._handle is not None

    @contextmanager
    def locked(self, write: bool, create: bool = False) -> Iterator[Mark]:
        """Lock the mark, if there is one; whoever only reads goes on without, if he may not write
        it.

        Whoever reads locks it for himself, too: of several who share a lock, a writer would wait
        for ever.
        """
        process = os.getpid()
        self._handle = self._opened(write, create)
        try:
            if self._handle is not None:
                self._wait(self._handle)
                if write:
                    self._check_is_one_file(self._handle)
            yield self
        finally:
            handle = self._handle
            self._handle = None
            if handle is not None:
                # a child that was forked meanwhile leaves its parent's lock
                if os.getpid() == process:
                    fcntl.flock(handle, fcntl.LOCK_UN)
                os.close(handle)

    def _opened(self, write: bool, create: bool) -> int | None:
        """The handle of the mark; None if there is none and it is not to be created, or if it is to
        be read and cannot be written."""
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        if create:
            flags |= os.O_CREAT
        try:
            return os.open(self.path, flags, 0o600)
        except FileNotFoundError:
            return None
        except OSError as error:
            if not write:
                return None
            reason = error.strerror
            if self.path.is_symlink():
                reason = "must be a file, found a symbolic link; remove it"
            raise UnusableMark(f"{self.path.name}: {reason}") from None

    def _wait(self, handle: int) -> None:
        end = monotonic() + WAIT
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if monotonic() > end:
                    raise UnusableMark(
                        f"{self.path.name} was locked by another process for {WAIT:g} s"
                    ) from None
                sleep(PAUSE)
            except OSError as error:
                raise UnusableMark(f"{self.path.name}: {error.strerror}") from None

    def _check_is_one_file(self, handle: int) -> None:
        """UnusableMark for a device, a file of two names, or one that was replaced meanwhile."""
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
            raise UnusableMark(
                f"{self.path.name} must be a file with one name, found {status.st_nlink} links to "
                "it, or a device; remove them"
            )
        with suppress(FileNotFoundError):
            if os.path.samestat(os.stat(self.path), status):
                return
        raise UnusableMark(f"{self.path.name} was replaced or removed meanwhile")

    def read(self) -> Record | None:
        """What the mark says; None if there is none, or an empty one."""
        try:
            text = self.path.read_bytes()
        except OSError:
            return None
        if not text.strip():
            return None
        try:
            digest, content = text.decode().rstrip().split(" ", 1)
            if digest != _digest(content):
                return DAMAGED
        except ValueError:
            return DAMAGED
        fields = json.loads(content)
        facts = fields.pop("facts")
        changed_at = tuple(fields.pop("changed_at", ()))
        return Record(**fields, facts=facts and Facts(**facts), changed_at=changed_at)

    def write(self, record: Record, durable: bool) -> None:
        """Write the locked mark by one call; `durable`: and force it to the disk."""
        assert self._handle is not None
        content = json.dumps(asdict(record))
        line = f"{_digest(content)} {content}".ljust(LENGTH) + "\n"
        try:
            written = os.pwrite(self._handle, line.encode(), 0)
            if durable:
                os.ftruncate(self._handle, written)
                os.fsync(self._handle)
        except OSError as error:
            raise UnusableMark(f"{self.path.name}: {error.strerror}") from None


def _digest(content: Any) -> str:
    return blake2b(content.encode(), digest_size=8).hexdigest()


def mark_of(path: Path) -> Path:
    """Where the mark of a publisher's file is."""
    return path.with_name(f"{path.name}.mark")


def files_beside(path: Path) -> list[Path]:
    """A publisher's file, its mark, and the journals that SQLite may keep beside it."""
    journals = [path.with_name(f"{path.name}{end}") for end in ("-journal", "-wal", "-shm")]
    return [path, mark_of(path), *journals]


def check_is_no_publisher(path: str | os.PathLike) -> None:
    """ValueError for a file that a publisher needs, or a database, which may be its backup."""
    target = Path(path).resolve()
    if not target.is_file():
        return
    check_is_not_in_use(target)
    with open(target, "rb") as file:
        is_database = file.read(len(DATABASE)) == DATABASE
    if is_database:
        raise ValueError(
            f"{path} is a database, such as a backup of a publisher, and must stay; take another "
            "name"
        )


def check_is_not_in_use(path: str | os.PathLike) -> None:
    """ValueError for a file that a publisher publishes from, a mark, or a witness."""
    target = Path(path).resolve()
    if target.is_file() and _is_in_use(target):
        raise ValueError(
            f"{path} is the file or the mark of a publisher, and must stay; take another name"
        )


def _is_in_use(path: Path) -> bool:
    """Whether a file has a mark, or is itself a mark or a witness."""
    if mark_of(path).exists():
        return True
    if path.suffix == ".mark" and path.with_suffix("").exists():
        return True
    is_short = path.stat().st_size <= 2 * LENGTH
    return is_short and Mark(path).read() not in (None, DAMAGED)
