"""Whether a result is up to date: each run leaves a status with digests of all that its result
depends on.

What counts is the notebook's code, its parameters, its data files, the pinned environment, and
those modules of the package that the run imported; new outputs in the notebook, other modules and
the times of files do not. Snakemake's own triggers know neither the modules nor the data.
"""

import hashlib
import json
import os
from pathlib import Path

import nbformat

from experiments.provenance import ROOTS, files_of
from workflow.configuration import ROOT, read_json, write_json


def fingerprint(entry, profile, root=ROOT):
    """Digests of all that the result may depend on: readable, so that a diff of two shows what
    changed."""
    content = nbformat.read(entry.path(root), as_version=4)
    source = "\n\0".join(cell.source for cell in content.cells if cell.cell_type == "code")
    return {
        "parameters": entry.parameters[profile.name],
        "notebook": _digest(source.encode()),
        "environment": _digest((root / "requirements.lock").read_bytes()),
        "data": {name: _data_state(name) for name in entry.data},
        "package": digests_of(ROOTS, root),
    }


def digests_of(folders, root=ROOT):
    """Digest of each Python file in the folders, by its path."""
    files = sorted(path for folder in folders for path in (root / folder).rglob("*.py"))
    return {path.relative_to(root).as_posix(): _digest(path.read_bytes()) for path in files}


def of_modules(whole, modules):
    """The fingerprint of a run that imported these modules of the package alone."""
    used = files_of_modules(modules)
    return whole | {
        "package": {name: digest for name, digest in whole["package"].items() if name in used}
    }


def files_of_modules(modules):
    """Paths that hold these modules, if they exist."""
    paths = [name.replace(".", "/") for name in modules]
    return {file for path in paths for file in (f"{path}.py", f"{path}/__init__.py")}


def is_current(entry, profile, root=ROOT):
    """Whether the result exists, the last run succeeded, and what it depends on is unchanged."""
    status = read_status(entry.name, profile.name, root)
    before = status.get("fingerprint")
    if before is None or status.get("status") == "failed":
        return False
    if not result_path(entry.name, profile.name, root).is_file():
        return False
    now = fingerprint(entry, profile, root)
    now["package"] = {name: now["package"].get(name) for name in before["package"]}
    return json.loads(json.dumps(now)) == before


def outdated(entries, profile, root=ROOT):
    """Names of those whose result is missing or older than something it depends on."""
    return [name for name, entry in entries.items() if not is_current(entry, profile, root)]


def result_path(name, profile_name, root=ROOT):
    return root / "build" / profile_name / "notebooks" / f"{name}.ipynb"


def read_status(name, profile_name, root=ROOT):
    """The status that the last run wrote; empty if there was none."""
    return read_json(root / "build" / profile_name / "status" / f"{name}.json")


def write_status(name, profile_name, status, root=ROOT):
    write_json(root / "build" / profile_name / "status" / f"{name}.json", status)


def _data_state(name):
    """Digest of names, sizes and times of a data set's files; "absent" if the stand-in is used."""
    from experiments.datasets.readers.registry import (
        SOURCES,
        DatasetNotFoundError,
        data_folder,
        locate,
    )

    try:
        found = locate(name) if name in SOURCES else (data_folder() or Path(os.devnull)) / name
        files = files_of(found)
    except (DatasetNotFoundError, ValueError):
        return "absent"
    states = ((path.relative_to(found.parent).as_posix(), path.stat()) for path in files)
    return _digest(
        *(f"{label} {stat.st_size} {stat.st_mtime_ns}".encode() for label, stat in states)
    )


def _digest(*parts):
    return hashlib.sha256(
        b"".join(len(part).to_bytes(8, "big") + part for part in parts)
    ).hexdigest()
