"""Whether a result is up to date: each run leaves a status with digests of all that its result
depends on.

What counts is the notebook's code, its parameters, its data files, the pinned environment, and
those modules of the package that the run imported; new outputs in the notebook, other modules and
the times of files do not. Snakemake's own triggers know neither the modules nor the data.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import nbformat

from experiments.provenance import ROOTS, list_files
from workflow.configuration import ROOT, Notebook, Profile, read_json, write_json

ABSENT = "absent"  # stands for a data set in whose place a stand-in is used
Fingerprint = dict[str, Any]


def fingerprint(entry: Notebook, profile: Profile, root: Path = ROOT) -> Fingerprint:
    """Digests of all that the result of a notebook with a profile's parameters may depend on:
    readable, so that a diff of two shows what changed."""
    content = nbformat.read(entry.path(root), as_version=4)
    code = "\n\0".join(cell.source for cell in content.cells if cell.cell_type == "code")
    return {
        "parameters": entry.parameters[profile.name],
        "notebook": _digest(code.encode()),
        "environment": _digest((root / "requirements.lock").read_bytes()),
        "data": {name: _data_state(name) for name in entry.data},
        "package": digests_of(ROOTS, root),
    }


def digests_of(folders: Iterable[str], root: Path = ROOT) -> dict[str, str]:
    """Digest of each Python file in the folders, by its path."""
    files = sorted(path for folder in folders for path in (root / folder).rglob("*.py"))
    return {path.relative_to(root).as_posix(): _digest(path.read_bytes()) for path in files}


def of_modules(whole: Fingerprint, modules: Iterable[str]) -> Fingerprint:
    """The fingerprint, of `whole`, of a run that imported these modules of the package alone."""
    used = files_of_modules(modules)
    digests = {name: digest for name, digest in whole["package"].items() if name in used}
    return whole | {"package": digests}


def files_of_modules(modules: Iterable[str]) -> set[str]:
    """Paths that hold these modules, if they exist."""
    files = set()
    for name in modules:
        path = name.replace(".", "/")
        files.add(f"{path}.py")
        files.add(f"{path}/__init__.py")
    return files


def is_current(entry: Notebook, profile: Profile, root: Path = ROOT) -> bool:
    """Whether the result of a notebook with a profile's parameters exists, the last run succeeded,
    and what it depends on is unchanged."""
    status = read_status(entry.name, profile.name, root)
    before = status.get("fingerprint")
    if before is None or status.get("status") == "failed":
        return False
    if not result_path(entry.name, profile.name, root).is_file():
        return False
    now = fingerprint(entry, profile, root)
    now["package"] = {name: now["package"].get(name) for name in before["package"]}
    as_written = json.loads(json.dumps(now))  # JSON knows no tuples
    return as_written == before


def outdated(entries: Mapping[str, Notebook], profile: Profile, root: Path = ROOT) -> list[str]:
    """Names of the entries whose result is missing or older than something it depends on."""
    return [name for name, entry in entries.items() if not is_current(entry, profile, root)]


def result_path(name: str, profile_name: str, root: Path = ROOT) -> Path:
    """Where the executed notebook `name` is once it has succeeded with the parameters of the
    profile."""
    return root / "build" / profile_name / "notebooks" / f"{name}.ipynb"


def read_status(name: str, profile_name: str, root: Path = ROOT) -> dict[str, Any]:
    """The status that the last run wrote; empty if there was none."""
    return read_json(_status_path(name, profile_name, root))


def write_status(
    name: str, profile_name: str, status: Mapping[str, Any], root: Path = ROOT
) -> None:
    """Keep how the run of the notebook `name` ended, for the next batch."""
    write_json(_status_path(name, profile_name, root), status)


def _status_path(name: str, profile_name: str, root: Path) -> Path:
    return root / "build" / profile_name / "status" / f"{name}.json"


def _data_state(name: str) -> str:
    """Digest of names, sizes and times of a data set's files, or `ABSENT`."""
    from experiments.datasets.readers.registry import (
        SOURCES,
        DatasetNotFoundError,
        data_folder,
        locate,
    )

    try:
        if name in SOURCES:
            folder = locate(name)
        else:
            folder = (data_folder() or Path(os.devnull)) / name
        files = list_files(folder)
    except (DatasetNotFoundError, ValueError):
        return ABSENT
    states = []
    for path in files:
        label = path.relative_to(folder.parent).as_posix()
        stat = path.stat()
        states.append(f"{label} {stat.st_size} {stat.st_mtime_ns}".encode())
    return _digest(*states)


def _digest(*parts: bytes) -> str:
    """The digest of parts with their lengths, so that no two lists of parts have the same."""
    framed = [len(part).to_bytes(8, "big") + part for part in parts]
    return hashlib.sha256(b"".join(framed)).hexdigest()
