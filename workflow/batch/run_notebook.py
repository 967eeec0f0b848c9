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

import nbformat

from tplreport.files import write_whole
from workflow.batch.fingerprint import fingerprint, of_modules, result_path, write_status
from workflow.configuration import ROOT, read_json, read_notebooks, read_profile

# a bar of cells, like those of the packages
LINES = {"bar_format": "{l_bar}{bar:20}{r_bar}\n", "mininterval": 10.0}


class TimeLimitError(Exception):
    """A notebook takes too long. Not a TimeoutError, because libraries catch those."""


def run_notebook(name, profile_name, threads=None, root=ROOT):
    """Execute a notebook with the profile's parameters; returns its status, which is also
    written."""
    entry, profile = read_notebooks(root)[name], read_profile(profile_name, root)
    # changes made while it runs are left to the next batch
    before = fingerprint(entry, profile, root)
    build, final = root / "build" / profile_name, result_path(name, profile_name, root)
    partial, log = build / "partial" / f"{name}.ipynb", build / "logs" / f"{name}.log"
    for path in (final, partial, log):
        path.parent.mkdir(parents=True, exist_ok=True)
    settings = {
        "command": f"make figures PROFILE={profile_name}",
        "real_data": True,
        "threads": threads,
        "root": root,
    }
    os.environ.update(
        kernel_environment(build / "figures", profile_name, **settings), TPLREPRO_PROGRESS=str(log)
    )
    started = time.time()
    error = execute(entry.path(root), partial, before["parameters"], profile, LINES)
    path = build / "figures" / f"{name}.json"
    record = read_json(path)
    if error is None and entry.figure and not (record and path.stat().st_mtime >= started - 1):
        error = f"saved nothing under its own name; end it with save_figure(figure, {name!r}, ...)"
    status = {
        "notebook": name,
        "status": "ok" if error is None else "failed",
        "seconds": round(time.time() - started, 1),
        "data": record.get("data", "none"),
        "error": error,
        "batch": os.environ.get("TPLREPRO_BATCH", ""),
        "fingerprint": of_modules(before, record["modules"])
        if error is None and record
        else before,
    }
    write_status(name, profile_name, status, root)
    if error is None:  # last: a result without its status counts as outdated
        os.replace(partial, final)
    return status


def execute(source, target, parameters, profile, progress_bar=False):
    """Message of the first failing cell, or that the notebook took longer than the profile allows;
    or None."""
    import papermill
    from papermill.exceptions import PapermillExecutionError

    def too_late(number, frame):
        limit = "the limit in config/profiles.yaml; find what hangs, or raise the limit"
        raise TimeLimitError(f"ran for {profile.hours:g} h, {limit}")

    signal.signal(signal.SIGALRM, too_late)
    options = {
        "kernel_name": "python3",
        "language": "python",
        "progress_bar": progress_bar,
        "start_timeout": 120,
    }
    for attempt in (1, 2):
        try:
            signal.setitimer(signal.ITIMER_REAL, 3600.0 * profile.hours)
            papermill.execute_notebook(str(source), str(target), parameters=parameters, **options)
            return None
        except PapermillExecutionError as failure:
            return f"cell {failure.exec_count}: {failure.ename}: {failure.evalue or _failing_line(failure.traceback)}"
        except Exception as failure:
            # Two kernels that start at once can take the same port (nteract/papermill#239); nothing
            # ran then.
            ran = target.is_file() and any(
                cell.get("execution_count") for cell in nbformat.read(target, 4).cells
            )
            if attempt == 2 or "Kernel d" not in str(failure) or ran:
                return f"{type(failure).__name__}: {failure}"
            target.unlink(missing_ok=True)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)


def kernel_environment(figures, profile, command, *, real_data, threads=None, root=ROOT):
    """Environment variables (dict) of a process that starts notebook kernels.

    `figures` is where `experiments.figures.save_figure` writes; `profile` and `command` go into the
    records. Without `real_data`, ``TPLREPRO_DATA`` and downloads are hidden, so that the stand-ins
    are read whatever is there. `threads` limits Numba, OpenMP and BLAS.
    """
    kernel = root / "build" / "jupyter" / "kernels" / "python3" / "kernel.json"
    # Else the kernel warns at every start that it speaks unencrypted TCP to this same machine, and
    # at some ends that it was interrupted.
    words = [
        sys.executable,
        "-m",
        "ipykernel_launcher",
        "--log-level=50",
        "-f",
        "{connection_file}",
    ]
    write_whole(
        kernel,
        json.dumps(
            {"argv": words, "display_name": "Python 3 (ipykernel)", "language": "python"}
        ).encode(),
    )
    environment = os.environ | dict(
        TPLREPRO_FIGURES=str(figures),
        TPLREPRO_PROFILE=profile,
        TPLREPRO_COMMAND=command,
        # A kernel that the user installed elsewhere under the same name must not be taken.
        JUPYTER_PATH=str(root / "build" / "jupyter"),
        IPYTHONDIR=str(root / "build" / "ipython"),
        PYTHONNOUSERSITE="1",
        # The code beside the notebooks, even if the environment is that of another checkout.
        PYTHONPATH=str(ROOT),
        PYDEVD_DISABLE_FILE_VALIDATION="1",
    )
    if not real_data:
        environment.pop("TPLREPRO_DATA", None)
        environment["TPLREPRO_CACHE"] = str(root / "build" / "no-downloads")
        environment["TQDM_DISABLE"] = "1"  # bars would be among the committed outputs
    elif environment.get("TPLREPRO_DATA"):
        environment["TPLREPRO_DATA"] = os.path.abspath(
            os.path.expanduser(environment["TPLREPRO_DATA"])
        )
    if threads is not None:
        environment |= {
            f"{name}_NUM_THREADS": str(threads) for name in ("NUMBA", "OMP", "OPENBLAS", "MKL")
        }
    return environment


def main(arguments=None):
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
    print(_progress_line(status, options.profile), flush=True)
    return 0 if status["status"] == "ok" else 1


def _failing_line(traceback):
    """The line at the traceback's first arrow, because a bare assertion has no other message."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(traceback))
    arrow = re.search(r"^-+> *\d+ (.*)$", plain, re.MULTILINE)
    return arrow[1].strip() if arrow else ""


def _progress_line(status, profile):
    """The number of notebooks that have run, and how this one ended, with the first line of its
    error."""
    line = f"{status['notebook']:<34}{status['seconds']:>8.1f} s  {status['status']}"
    total = os.environ.get("TPLREPRO_BATCH_TOTAL")
    if total:
        paths = (ROOT / "build" / profile / "status").rglob("*.json")
        done = sum(read_json(path)["batch"] == status["batch"] for path in paths)
        line = f"[{done:>{len(total)}}/{total}] {line}"
    return (
        line
        if status["error"] is None
        else f"{line}\n    {status['error'].strip().splitlines()[0][:300]}"
    )


if __name__ == "__main__":
    sys.exit(main())
