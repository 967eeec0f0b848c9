"""Run one notebook of a batch through papermill, in its own process and without settings of the
user's own.

The executed copy appears under its final name only when every cell succeeded; until then, and after
a failure, it stands in ``build/<profile>/partial``, where it can be read.
"""

import argparse
import fcntl
import json
import os
import re
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import nbformat

from tplreport.files import write_whole
from workflow.batch.fingerprint import fingerprint, of_modules, result_path, write_status
from workflow.configuration import ROOT, Profile, read_json, read_notebooks, read_profile

# a bar of cells, like those of the packages
LINES = {"bar_format": "{l_bar}{bar:20}{r_bar}\n", "mininterval": 10.0}
LAUNCHER = (
    *(sys.executable, "-m", "ipykernel_launcher"),
    # Else the kernel warns at every start that it speaks unencrypted TCP to this same machine, and
    # at some ends that it was interrupted.
    "--log-level=50",
    *("-f", "{connection_file}"),
)
THREAD_LIMITS = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
ATTEMPTS = 2
START_SECONDS = 120  # that a kernel may take to start
CLOCK_SECONDS = 1  # by which the times of files may lie behind the clock


class TimeLimitError(Exception):
    """A notebook takes too long. Not a TimeoutError, because libraries catch those."""


def run_notebook(
    name: str, profile_name: str, threads: int | None = None, root: Path = ROOT
) -> dict[str, Any]:
    """Execute a notebook with the profile's parameters.

    Parameters
    ----------
    name : str
        Of its entry in config/notebooks.yaml.
    profile_name : str
        Such as "quick".
    threads : int, optional
        Of Numba, OpenMP and BLAS; by default theirs.
    root : Path
        The repository.

    Returns
    -------
    dict
        Its status, which is also written.
    """
    entry = read_notebooks(root)[name]
    profile = read_profile(profile_name, root)
    # changes made while it runs are left to the next batch
    before = fingerprint(entry, profile, root)
    build = root / "build" / profile_name
    final = result_path(name, profile_name, root)
    partial = build / "partial" / f"{name}.ipynb"
    log = build / "logs" / f"{name}.log"
    for path in (final, partial, log):
        path.parent.mkdir(parents=True, exist_ok=True)
    environment = kernel_environment(
        build / "figures",
        profile_name,
        f"make figures PROFILE={profile_name}",
        real_data=True,
        threads=threads,
        root=root,
    )
    os.environ.update(environment, TPLREPRO_PROGRESS=str(log))
    started = time.time()
    error = execute(entry.path(root), partial, before["parameters"], profile, LINES)
    record_path = build / "figures" / f"{name}.json"
    record = read_json(record_path)
    if error is None and entry.figure and not was_saved_since(record_path, started):
        error = f"saved nothing under its own name; end it with save_figure(figure, {name!r}, ...)"
    if error is None and record:
        before = of_modules(before, record["modules"])
    outcome = "failed"
    if error is None:
        outcome = "ok"
    status = {
        "notebook": name,
        "status": outcome,
        "seconds": round(time.time() - started, 1),
        "data": record.get("data", "none"),
        "error": error,
        "batch": os.environ.get("TPLREPRO_BATCH", ""),
        "fingerprint": before,
    }
    write_status(name, profile_name, status, root)
    if error is None:  # last: a result without its status counts as outdated
        os.replace(partial, final)
    return status


def was_saved_since(record: Path, started: float) -> bool:
    """Whether the record of a figure is there, and not from an earlier run."""
    return bool(read_json(record)) and record.stat().st_mtime >= started - CLOCK_SECONDS


def execute(
    source: Path,
    target: Path,
    parameters: Mapping[str, Any],
    profile: Profile,
    progress_bar: Any = False,
) -> str | None:
    """Execute a notebook, with one more attempt if its kernel dies at the start.

    Parameters
    ----------
    source, target : Path
        The notebook, and its executed copy.
    parameters : mapping
        Those that differ from its parameters cell.
    profile : Profile
        It limits the hours.
    progress_bar : bool or mapping
        Options of tqdm, for papermill.

    Returns
    -------
    str or None
        Message of the first failing cell, or that the notebook took longer than the profile allows.
    """
    from papermill.exceptions import PapermillExecutionError

    def stop_late(number: int, frame: FrameType | None) -> NoReturn:
        raise TimeLimitError(
            f"ran for {profile.hours:g} h, the limit in config/profiles.yaml; "
            "find what hangs, or raise the limit"
        )

    signal.signal(signal.SIGALRM, stop_late)
    for attempt in range(1, ATTEMPTS + 1):
        signal.setitimer(signal.ITIMER_REAL, 3600.0 * profile.hours)
        try:
            run_papermill(source, target, parameters, progress_bar)
            return None
        except PapermillExecutionError as failure:
            reason = failure.evalue or line_of_failure(failure.traceback)
            return f"cell {failure.exec_count}: {failure.ename}: {reason}"
        except Exception as failure:
            if attempt == ATTEMPTS or not has_died_at_start(failure, target):
                return f"{type(failure).__name__}: {failure}"
            target.unlink(missing_ok=True)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
    raise AssertionError("the last attempt returns")


def run_papermill(
    source: Path, target: Path, parameters: Mapping[str, Any], progress_bar: Any
) -> None:
    """Run the notebook `source` once with these parameters, and write it to `target`;
    `progress_bar` is that of papermill's settings."""
    import papermill

    papermill.execute_notebook(
        str(source),
        str(target),
        parameters=parameters,
        kernel_name="python3",
        language="python",
        progress_bar=progress_bar,
        start_timeout=START_SECONDS,
    )


def has_died_at_start(failure: Exception, target: Path) -> bool:
    """Whether the kernel died before any cell ran: of two kernels that start at once, both can take
    the same port (nteract/papermill#239)."""
    if "Kernel d" not in str(failure):  # died, or didn't respond
        return False
    if not target.is_file():
        return True
    cells = nbformat.read(target, as_version=4).cells
    return not any(cell.get("execution_count") for cell in cells)


def kernel_environment(
    figures: Path,
    profile: str,
    command: str,
    *,
    real_data: bool,
    threads: int | None = None,
    root: Path = ROOT,
) -> dict[str, str]:
    """Environment variables of a process that starts notebook kernels.

    Parameters
    ----------
    figures : Path
        Where `experiments.figures.save_figure` writes.
    profile, command : str
        They go into the records.
    real_data : bool
        Else ``TPLREPRO_DATA`` and downloads are hidden, so that the stand-ins are read whatever is
        there.
    threads : int, optional
        Limits Numba, OpenMP and BLAS.
    root : Path
        The repository, below which the kernel is described.

    Returns
    -------
    dict
        All of them, those of this process too.
    """
    write_kernel(root)
    environment = os.environ | {
        "TPLREPRO_FIGURES": str(figures),
        "TPLREPRO_PROFILE": profile,
        "TPLREPRO_COMMAND": command,
        # A kernel that the user installed elsewhere under the same name must not be taken.
        "JUPYTER_PATH": str(root / "build" / "jupyter"),
        "IPYTHONDIR": str(root / "build" / "ipython"),
        "PYTHONNOUSERSITE": "1",
        # The code beside the notebooks, even if the environment is that of another checkout.
        "PYTHONPATH": str(ROOT),
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }
    if not real_data:
        environment.pop("TPLREPRO_DATA", None)
        environment["TPLREPRO_CACHE"] = str(root / "build" / "no-downloads")
        environment["TQDM_DISABLE"] = "1"  # bars would be among the committed outputs
    elif environment.get("TPLREPRO_DATA"):
        folder = os.path.expanduser(environment["TPLREPRO_DATA"])
        environment["TPLREPRO_DATA"] = os.path.abspath(folder)
    if threads is not None:
        environment |= dict.fromkeys(THREAD_LIMITS, str(threads))
    return environment


def write_kernel(root: Path) -> None:
    """Describe to Jupyter the kernel of this interpreter."""
    kernel = root / "build" / "jupyter" / "kernels" / "python3" / "kernel.json"
    description = {"argv": LAUNCHER, "display_name": "Python 3 (ipykernel)", "language": "python"}
    write_whole(kernel, json.dumps(description).encode())


def line_of_failure(traceback: Sequence[str]) -> str:
    """The line at the traceback's first arrow, because a bare assertion has no other message."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(traceback))
    arrow = re.search(r"^-+> *\d+ (.*)$", plain, re.MULTILINE)
    if arrow is None:
        return ""
    return arrow[1].strip()


def progress_line(status: Mapping[str, Any], profile: str) -> str:
    """The number of notebooks that have run, and how this one ended, with the first line of its
    error."""
    line = f"{status['notebook']:<34}{status['seconds']:>8.1f} s  {status['status']}"
    total = os.environ.get("TPLREPRO_BATCH_TOTAL")
    if total:
        paths = (ROOT / "build" / profile / "status").rglob("*.json")
        done = sum(read_json(path)["batch"] == status["batch"] for path in paths)
        line = f"[{done:>{len(total)}}/{total}] {line}"
    if status["error"] is not None:
        first_line = status["error"].strip().splitlines()[0]
        line += f"\n    {first_line[:300]}"
    return line


def exit_at_signal(number: int, frame: FrameType | None) -> NoReturn:
    """A handler: end as if asked to, so that what was started is ended as well."""
    sys.exit(128 + number)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one notebook and print its progress line."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("notebook")
    parser.add_argument("--profile", default="quick")
    parser.add_argument("--threads", type=int)
    options = parser.parse_args(arguments)
    (ROOT / "build").mkdir(exist_ok=True)
    with open(ROOT / "build" / "lock", "a", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)  # no other batch starts meanwhile, even if ours is killed
        print(f"process {os.getpid()} runs {options.notebook};", file=lock, flush=True)
        status = run_notebook(options.notebook, options.profile, options.threads)
    print(progress_line(status, options.profile), flush=True)
    return 0 if status["status"] == "ok" else 1


if __name__ == "__main__":
    sys.exit(main())
