"""Provenance: the record beside every figure and table.

A record names the code, the parameters, the data files (SHA-256 by a name that is the same on every
machine) and the numbers behind a result. Machine paths never enter it.
"""

import glob
import hashlib
import json
import math
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

from experiments.parameters import checked_parameters
from tplreport.files import write_whole

#: Folders of Python code that a result may depend on.
ROOTS = ("tplrepro", "tplfrontier", "tplreport", "experiments", "page")
DATA_KINDS = ("none", "real", "real (unverified)", "synthetic", "synthetic in part")
PACKAGES = ("tplrepro", "numpy", "scipy", "numba", "matplotlib")
_LISTED_INPUTS = 40


def provenance(
    name: str, results: dict | None = None, data: str = "none", inputs: Iterable = ()
) -> dict:
    """The record of a result, ready for JSON; arguments and errors as for
    `experiments.figures.save_figure`."""
    if data.partition(":")[0] not in DATA_KINDS:
        raise ValueError(f"data must be one of {', '.join(DATA_KINDS)}, found {data!r}; choose one")
    digests = file_digests(inputs)
    if data.startswith(("real", "synthetic in part")) and not digests:
        raise ValueError(
            f"inputs must name the files read when data is {data!r}, found none; pass inputs=[paths]"
        )
    return {
        "name": str(name),
        "data": data,
        "profile": os.environ.get("TPLREPRO_PROFILE", "interactive"),
        "command": os.environ.get("TPLREPRO_COMMAND", "notebook run by hand"),
        "parameters": _plain(checked_parameters()),
        "results": _plain(results or {}),
        "inputs": _shortened(digests),
        "commit": _commit(),
        "modules": sorted(name for name in sys.modules if name.partition(".")[0] in ROOTS),
        "versions": _versions(),
        "machine": machine(),
        "cost": _cost(),
        "time_utc": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


def owner_of(name: str, notebooks: Iterable[str]) -> str | None:
    """The entry of ``config/notebooks.yaml`` that saves this figure; an entry may save further ones
    as ``<its name>_<something>``."""
    return next(
        (known for known in notebooks if name == known or name.startswith(f"{known}_")), None
    )


def file_digests(inputs: Iterable) -> dict[str, str]:
    """SHA-256 of data files by a name that is the same on every machine; a folder stands for all
    files below it.

    The name is the path below the folder ``TPLREPRO_DATA``, or the last two parts of a path
    elsewhere.
    """
    named = os.environ.get("TPLREPRO_DATA")
    root = Path(named).expanduser().resolve() if named else None
    digests: dict[str, str] = {}
    for file in dict.fromkeys(file for given in inputs for file in files_of(Path(given).resolve())):
        base = root if root is not None and file.is_relative_to(root) else file.parent.parent
        label = file.relative_to(base).as_posix()
        others = sum(known.split(" (")[0] == label for known in digests)
        with file.open("rb") as handle:
            digests[f"{label} ({others + 1})" if others else label] = hashlib.file_digest(
                handle, "sha256"
            ).hexdigest()
    return dict(sorted(digests.items()))


def files_of(path: Path) -> list[Path]:
    """A file itself, or all files below a folder, links followed."""
    below = (
        glob.glob("**", root_dir=path, recursive=True, include_hidden=True)
        if path.is_dir()
        else [""]
    )
    files = sorted(path / part for part in below if (path / part).is_file())
    if not files:
        raise ValueError(
            f"inputs must be files or folders of files, found {path.name!r}, which has none; name existing ones"
        )
    return files


def repository_folder() -> Path:
    """The nearest folder at or above the working folder that holds the Snakefile; else the working
    folder."""
    here = Path.cwd()
    return next(
        (folder for folder in (here, *here.parents) if (folder / "Snakefile").is_file()), here
    )


def write_with_record(target: Path, contents: dict[str, bytes], record: dict) -> None:
    """Write the files of one result, by suffix, and last its record as ``.json``; none is ever seen
    half-written."""
    # The record comes last: where it exists, the files it describes are complete.
    contents = contents | {".json": (json.dumps(record, indent=2, allow_nan=False) + "\n").encode()}
    for suffix, content in contents.items():
        write_whole(target.parent / (target.name + suffix), content)


def _shortened(digests):
    """Replaces the digests of many files (trajectories) by one line: their number and the digest of
    all digests."""
    if len(digests) <= _LISTED_INPUTS:
        return digests
    listing = "".join(f"{digest}  {label}\n" for label, digest in digests.items())
    return {
        f"all {len(digests)} files, listed by sha256sum": hashlib.sha256(
            listing.encode()
        ).hexdigest()
    }


def _commit():
    """Commit of the repository and whether tracked files differ from it; None outside a
    repository."""

    def git(*words):
        command = ["git", "-C", str(repository_folder()), *words]
        return subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=20
        ).stdout.strip()

    try:
        # The published figures are written by this run, so they do not count.
        changed = git(
            "status", "--porcelain", "--untracked-files=no", "--", ".", ":(exclude)figures"
        )
        return {"id": git("rev-parse", "HEAD"), "modified": bool(changed)}
    except (OSError, subprocess.SubprocessError):
        return None


def machine() -> dict:
    """Processor, number of cores, and memory in gigabytes: running times depend on them."""
    found: dict = {"processor": platform.processor() or platform.machine(), "cores": os.cpu_count()}
    with suppress(OSError, IndexError):  # of other systems than Linux
        named = Path("/proc/cpuinfo").read_text(encoding="utf-8").partition("model name")[2]
        found["processor"] = named.splitlines()[0].strip(" \t:") or found["processor"]
        found["gigabytes"] = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)
    return found


def _cost():
    """CPU seconds of this process and its children so far, and the peak memory of the largest of
    them."""
    try:
        import resource
    except ImportError:  # of other systems than Unix
        return {"cpu_seconds": round(time.process_time(), 1)}
    used = [resource.getrusage(of) for of in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return {
        "cpu_seconds": round(sum(part.ru_utime + part.ru_stime for part in used), 1),
        "peak_megabytes": round(max(part.ru_maxrss for part in used) / unit),
    }


def _versions():
    found = {"python": platform.python_version()} | dict.fromkeys(PACKAGES)
    for package in PACKAGES:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


def _plain(value):
    """JSON form of dicts, sequences, NumPy arrays and scalars; JSON has no infinity: "inf" stands
    for it."""
    match value:
        case dict():
            return {str(key): _plain(part) for key, part in value.items()}
        case np.ndarray() | np.generic():
            return _plain(value.tolist())
        case list() | tuple():
            return [_plain(part) for part in value]
        case float():
            return value if math.isfinite(value) else str(value)
        case None | int() | str():
            return value
    raise ValueError(
        "parameters and results must be numbers, strings, lists, dicts or arrays, "
        f"found {type(value).__name__}; convert it first"
    )
