"""Accounts on disk: a file of JSON lines, which a server opens again after a restart.

The first line holds the version, the settings, the matrices, and the SHA-256 digest of settings and matrices;
each further line is one entry [release, count, digest]. Its digest, of the one before and of the entry, shows
lines that are changed, missing or in another order; whole lines that are missing at the very end leave no trace.
Files of version 1, whose entries have no digests, stay as they are. An entry is on disk before `compose` returns,
so a release that was made is never forgotten. A process that is killed while it writes leaves at most an
incomplete last line, whose release was never made; it is dropped. A lock that dies with its process keeps a
second one away.
"""

import errno
import json
import os
from hashlib import sha256
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from tplfrontier.profile import PrivacyProfile
from tplreport.files import write_whole
from tplrepro.leakage.loss_function import PrivacyLossFunction
from tplrepro.leakage.prior_free import PriorFreeLoss
from tplrepro.markov.transition import TransitionMatrix

FORMAT, VERSION = "tplrepro account", 2
LOSSES = {"PrivacyLossFunction": PrivacyLossFunction, "PriorFreeLoss": PriorFreeLoss}


class Ledger:
    """The file of one account, locked until it is closed or its process ends."""

    def __init__(self, path: str | os.PathLike):
        self.path, self._process = Path(path).resolve(), os.getpid()
        self._lock = _locked(self.path)
        self._file: Any = None
        self._end = 0
        self._digest: str | None = None  # of the last line; None in files of version 1

    def create(self, settings: dict, sides: dict[str, PrivacyLossFunction | None], entries: list) -> None:
        """Write a new file with these entries, (release, count) each."""
        if self.path.exists():
            raise ValueError(
                f"path must be new, found a file {self.path}; use TemporalAccountant.open, or another name"
            )
        matrices = {name: None if loss is None else _matrix(loss) for name, loss in sides.items()}
        content = {"settings": settings, "sides": matrices}
        self._digest = _digest(content)
        lines = [_line({"format": FORMAT, "version": VERSION, "digest": self._digest, **content})]
        for release, count in entries:
            entry = [_released(release), count]
            self._digest = _chained(entry, self._digest)
            lines.append(_line([*entry, self._digest]))
        write_whole(self.path, "".join(lines).encode())
        self._append_to(self.path.stat().st_size)

    def read(self) -> tuple[dict, dict, list]:
        """Settings, loss functions of both sides, and entries; ValueError if the file is damaged."""
        if not self.path.is_file():
            raise ValueError(f"path must name an account's file, found none at {self.path}; make one with save(path)")
        stored = self.path.read_bytes()
        complete = stored[: stored.rfind(b"\n") + 1]
        lines = [_parsed(line, number, self.path) for number, line in enumerate(complete.splitlines(), 1)]
        header = lines[0] if lines and isinstance(lines[0], dict) else {}
        version = header.get("version", "another file")
        if header.get("format") != FORMAT or version not in (1, VERSION):
            raise ValueError(f"{self.path} must be an account of version 1 or 2, found {version}; check its name")
        content: dict[str, dict] = {name: header.get(name, {}) for name in ("settings", "sides")}
        if _digest(content) != header.get("digest"):
            raise ValueError(f"the first line of {self.path} must have its digest, found another; restore a copy")
        sides = {name: _loss(matrix) for name, matrix in content["sides"].items()}
        if content["sides"]["backward"] == content["sides"]["forward"]:
            sides["forward"] = sides["backward"]
        self._digest = header["digest"] if version == VERSION else None
        entries = []
        for number, line in enumerate(lines[1:], 2):
            entry, self._digest = _entry(line, self._digest, number, self.path)
            entries.append(entry)
        self._append_to(len(complete))
        return content["settings"], sides, entries

    def add(self, release: Any, count: int) -> None:
        """Append one entry; when this returns it is on the disk. After an error the file is as before."""
        entry = [_released(release), count]
        digest = _chained(entry, self._digest)
        line = _line(entry if digest is None else [*entry, digest]).encode()
        end = self._end + len(line)
        if os.getpid() != self._process:
            raise ValueError(
                f"an account must be used by the process that opened it, {self._process}, found {os.getpid()}, a fork "
                "of it; open the file after the fork, in one process"
            )
        try:
            if self._file.write(line) < len(line):  # what is left of a full disk is written without an error
                raise OSError(errno.ENOSPC, "No space left on device", str(self.path))
            os.fsync(self._file.fileno())
        except BaseException:
            self._file.truncate(self._end)
            self._file.seek(self._end)
            raise
        self._end = end  # no call since the last one above, at which an interrupt could part file and account
        self._digest = digest

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._lock.close()

    def _append_to(self, end: int) -> None:
        self._end, self._file = end, open(self.path, "r+b", buffering=0)
        self._file.truncate(end)
        self._file.seek(end)


def _locked(path: Path) -> Any:
    """A file beside the account's that this process alone has locked."""
    try:
        import fcntl
    except ImportError:
        raise ValueError("an account is locked by fcntl, found a system without it; use Linux or macOS") from None
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = open(path.with_name(path.name + ".lock"), "a+", encoding="utf-8")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        owner = lock.read().strip()
        lock.close()
        raise ValueError(f"{path} must be open in one process only, found {owner}; close the account there") from None
    lock.truncate(0)
    lock.write(f"process {os.getpid()}")
    lock.flush()
    return lock


def _line(content: Any) -> str:
    return json.dumps(content, allow_nan=False, separators=(",", ":"), default=lambda array: array.tolist()) + "\n"


def _parsed(line: bytes, number: int, path: Path) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        raise ValueError(f"line {number} of {path} must be JSON, found {line[:40]!r}; restore a copy") from None


def _digest(content: Any) -> str:
    return sha256(_line(content).encode()).hexdigest()


def _chained(entry: list, previous: str | None) -> str | None:
    """The digest of an entry and of the line before by its digest; None in files of version 1."""
    return None if previous is None else _digest([previous, entry])[:16]


def _matrix(loss: PrivacyLossFunction) -> dict:
    """A loss function as JSON: its kind, its matrix and the labels of the states, or their number."""
    if not loss.of_matrix:
        raise ValueError(f"a loss function must be that of a matrix to be saved, found {loss!r} from counts; keep it")
    states, values = loss.matrix.states, loss.matrix.probabilities
    for label in states:
        if not isinstance(label, (str, int, float, np.generic)):
            raise ValueError(
                f"labels of states must be text or numbers to be saved, found {label!r}; rename the states"
            )
    labels = states.stop if isinstance(states, range) else [*states]
    content = {"loss": type(loss).__name__, "states": labels}
    if not loss.matrix.is_sparse:
        return content | {"rows": values}
    parts = {"data": values.data, "indices": values.indices, "indptr": values.indptr}
    return content | parts | {"background": loss.matrix.background}


def _loss(content: dict | None) -> PrivacyLossFunction | None:
    if content is None:
        return None
    states = None if isinstance(content["states"], int) else content["states"]
    if "rows" in content:
        return LOSSES[content["loss"]](TransitionMatrix(content["rows"], states))
    from scipy.sparse import csr_array

    n = len(content["background"])
    stored = csr_array((content["data"], content["indices"], content["indptr"]), shape=(n, n))
    return LOSSES[content["loss"]](TransitionMatrix(stored, states, background=content["background"]))


def _released(release: Any) -> Any:
    """A release as JSON: a budget, an event of dp_accounting by its class and fields, or a profile."""
    if isinstance(release, (list, tuple)):
        return [_released(part) for part in release]
    if isinstance(release, PrivacyProfile):
        largest = None if release.largest == inf else release.largest
        return {"deltas": release.deltas, "grid": release.grid, "largest": largest}
    if hasattr(release, "to_named_tuple"):
        fields = release.to_named_tuple()._fields[2:]  # after the names of module and class
        return {"class": type(release).__name__} | {name: _released(getattr(release, name)) for name in fields}
    return release


def _entry(line: Any, previous: str | None, number: int, path: Path) -> tuple[tuple[Any, int], str | None]:
    """An entry, and its digest, after a check of both."""
    try:
        release, count, *found = line
        digest = _chained([release, count], previous)
        if found != ([] if digest is None else [digest]):
            raise ValueError("its digest is not that of what was written: it or a line before was changed or lost")
        return (_release(release), count), digest
    except (TypeError, ValueError, KeyError) as error:
        must = f"line {number} of {path} must be [release, count, digest] as it was written"
        raise ValueError(f"{must}, found {str(line)[:60]} ({error}); restore a copy") from None


def _release(content: Any) -> Any:
    if isinstance(content, list):
        return [_release(part) for part in content]
    if not isinstance(content, dict):
        return content
    if "deltas" in content:
        largest = inf if content["largest"] is None else content["largest"]
        return PrivacyProfile(np.array(content["deltas"]), content["grid"], largest)
    import dp_accounting

    fields = {name: _release(value) for name, value in content.items() if name != "class"}
    event = getattr(dp_accounting, content.get("class", ""), None)
    if not (isinstance(event, type) and issubclass(event, dp_accounting.DpEvent)):
        raise ValueError(f"a release must be an event of dp_accounting, found {content}; restore a copy of the file")
    return event(**fields)
