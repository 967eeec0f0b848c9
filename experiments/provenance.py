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
from typing import Any

import numpy as np

from experiments.parameters import checked_parameters
from tplreport.files import write_whole

#: Folders of Python code that a result may depend on.
ROOTS = ("tplrepro", "tplfrontier", "tplreport", "experiments", "page")
DATA_KINDS = ("none", "real", "real (unverified)", "synthetic", "synthetic in part")
PACKAGES = ("tplrepro", "numpy", "scipy", "numba", "matplotlib")
LISTED_INPUTS = 40  # more files are one line of a record


def provenance(
    name: str, results: dict | None = None, data: str = "none", inputs: Iterable = ()
) -> dict:
    """The record of a result, ready for JSON.

    Parameters
    ----------
    name : str
        Of the result, such as "tkde2019/fig3".
    results : dict, optional
        The numbers that the result shows or that the text quotes.
    data : str
        One of `DATA_KINDS`; names of data sets may follow the last, after ":".
    inputs : iterable of path-like
        The data files that were read, required if `data` is real.

    Returns
    -------
    dict

    Raises
    ------
    ValueError
        For other `data`, for real data without `inputs`, and where the parameters of the notebook
        are not those that `parameters.check` found.
    """
    if data.partition(":")[0] not in DATA_KINDS:
        raise ValueError(f"data must be one of {', '.join(DATA_KINDS)}, found {data!r}; choose one")
    digests = file_digests(inputs)
    if data.startswith(("real", "synthetic in part")) and not digests:
        raise ValueError(
            f"inputs must name the files read when data is {data!r}, found none; "
            "pass inputs=[paths]"
        )
    return {
        "name": str(name),
        "data": data,
        "profile": os.environ.get("TPLREPRO_PROFILE", "interactive"),
        "command": os.environ.get("TPLREPRO_COMMAND", "notebook run by hand"),
        "parameters": _to_plain(checked_parameters()),
        "results": _to_plain(results or {}),
        "inputs": _shorten_listing(digests),
        "commit": describe_commit(),
        "modules": sorted(name for name in sys.modules if name.partition(".")[0] in ROOTS),
        "versions": _package_versions(),
        "machine": describe_machine(),
        "cost": _measure_cost(),
        "time_utc": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


def owner_of(name: str, notebooks: Iterable[str]) -> str | None:
    """The entry of ``config/notebooks.yaml`` that saves this figure; an entry may save further ones
    as ``<its name>_<something>``."""
    for notebook in notebooks:
        if name == notebook or name.startswith(f"{notebook}_"):
            return notebook
    return None


def file_digests(inputs: Iterable) -> dict[str, str]:
    """SHA-256 of data files by a name that is the same on every machine; a folder stands for all
    files below it.

    The name is the path below the folder ``TPLREPRO_DATA``, or the last two parts of a path
    elsewhere.
    """
    root = _data_root()
    digests: dict[str, str] = {}
    for file in _distinct_files(inputs):
        label = _label_of(file, root)
        namesakes = sum(known.split(" (")[0] == label for known in digests)
        if namesakes:
            label += f" ({namesakes + 1})"
        with file.open("rb") as content:
            digests[label] = hashlib.file_digest(content, "sha256").hexdigest()
    return dict(sorted(digests.items()))


def _data_root() -> Path | None:
    """The folder of the data, with links followed."""
    named = os.environ.get("TPLREPRO_DATA")
    if not named:
        return None
    return Path(named).expanduser().resolve()


def _distinct_files(inputs: Iterable) -> list[Path]:
    """All files that inputs stand for, each once, in their order."""
    files: dict[Path, None] = {}
    for path in inputs:
        files |= dict.fromkeys(list_files(Path(path).resolve()))
    return list(files)


def _label_of(file: Path, root: Path | None) -> str:
    """The path below the data folder, or the last two parts of a path elsewhere."""
    if root is not None and file.is_relative_to(root):
        return file.relative_to(root).as_posix()
    return file.relative_to(file.parent.parent).as_posix()


def list_files(path: Path) -> list[Path]:
    """A file itself, or all files below a folder, links followed."""
    below = [""]
    if path.is_dir():
        below = glob.glob("**", root_dir=path, recursive=True, include_hidden=True)
    files = sorted(path / part for part in below if (path / part).is_file())
    if not files:
        raise ValueError(
            f"inputs must be files or folders of files, found {path.name!r}, which has none; "
            "name existing ones"
        )
    return files


def repository_folder() -> Path:
    """The nearest folder at or above the working folder that holds the Snakefile; else the working
    folder."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / "Snakefile").is_file():
            return folder
    return here


def write_with_record(target: Path, contents: dict[str, bytes], record: dict) -> None:
    """Write the files `target` + suffix of one result, whose `contents` are given by suffix, and
    last its record as ``.json``; none is ever seen half-written."""
    text = json.dumps(record, indent=2, allow_nan=False) + "\n"
    # The record comes last: where it exists, the files it describes are complete.
    contents = contents | {".json": text.encode()}
    for suffix, content in contents.items():
        write_whole(target.parent / (target.name + suffix), content)


def _shorten_listing(digests: dict[str, str]) -> dict[str, str]:
    """Replaces the digests of many files (trajectories) by one line: their number and the digest of
    all digests."""
    if len(digests) <= LISTED_INPUTS:
        return digests
    listing = "".join(f"{digest}  {label}\n" for label, digest in digests.items())
    digest = hashlib.sha256(listing.encode()).hexdigest()
    return {f"all {len(digests)} files, listed by sha256sum": digest}


def describe_commit() -> dict[str, Any] | None:
    """Commit of the repository and whether tracked files differ from it; None outside a
    repository."""
    # The published figures are written by this run, so they do not count.
    but_figures = ("--", ".", ":(exclude)figures")
    try:
        changes = _run_git("status", "--porcelain", "--untracked-files=no", *but_figures)
        return {"id": _run_git("rev-parse", "HEAD"), "modified": bool(changes)}
    except (OSError, subprocess.SubprocessError):
        return None


def date_of_commit() -> str:
    """The date of the commit of the repository, such as 2026-11-29."""
    return _run_git("show", "-s", "--format=%cs", "HEAD")


def _run_git(*words: str) -> str:
    """What git prints in the repository."""
    command = ["git", "-C", str(repository_folder()), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20)
    return done.stdout.strip()


def describe_machine() -> dict:
    """Processor, number of cores, and memory in gigabytes: running times depend on them."""
    found: dict[str, Any] = {
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
    }
    with suppress(OSError, IndexError):  # of other systems than Linux
        found["processor"] = _processor_name() or found["processor"]
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        found["gigabytes"] = round(memory / 2**30)
    return found


def _processor_name() -> str:
    """The first "model name : ..." of Linux; IndexError where there is none."""
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    _, _, after_key = text.partition("model name")
    return after_key.splitlines()[0].strip(" \t:")


def _measure_cost() -> dict[str, float]:
    """CPU seconds of this process and its children so far, and the peak memory of the largest of
    them."""
    try:
        import resource
    except ImportError:  # of other systems than Unix
        return {"cpu_seconds": round(time.process_time(), 1)}
    own = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime
    peak = max(own.ru_maxrss, children.ru_maxrss)
    units_a_megabyte = 2**10
    if sys.platform == "darwin":
        units_a_megabyte = 2**20
    return {"cpu_seconds": round(seconds, 1), "peak_megabytes": round(peak / units_a_megabyte)}


def _package_versions() -> dict[str, str | None]:
    """Versions of Python and of the packages that figures depend on; None for absent ones."""
    versions: dict[str, str | None] = {"python": platform.python_version()}
    for package in PACKAGES:
        versions[package] = None
        with suppress(PackageNotFoundError):
            versions[package] = version(package)
    return versions


def _to_plain(value: Any) -> Any:
    """JSON form of dicts, sequences, NumPy arrays and scalars; JSON has no infinity: "inf" stands
    for it."""
    match value:
        case dict():
            return {str(key): _to_plain(part) for key, part in value.items()}
        case np.ndarray() | np.generic():
            return _to_plain(value.tolist())
        case list() | tuple():
            return [_to_plain(part) for part in value]
        case float():
            if math.isfinite(value):
                return value
            return str(value)
        case None | int() | str():
            return value
    raise ValueError(
        "parameters and results must be numbers, strings, lists, dicts or arrays, "
        f"found {type(value).__name__}; convert it first"
    )
