"""Run one notebook of a batch through papermill, in a process of its own.

The executed copy appears under its final name only when every cell succeeded; until then, and after a failure, it
stands in ``build/<profile>/partial``, where it can be read.
"""

import argparse
import json
import os
import re
import sys
import time
from datetime import UTC, datetime

import nbformat

from workflow.check_parameters import declared_parameters, effective_parameters
from workflow.configuration import ROOT, read_notebooks, read_profile
from workflow.kernel_environment import kernel_environment

__all__ = ["run_notebook", "main"]


def run_notebook(name, profile_name, threads=None, root=ROOT):
    """Execute a notebook with the profile's parameters.

    Parameters
    ----------
    name : str
        Paper and figure, ``"tkde2019/fig3"``.
    profile_name : str
    threads : int, optional
        Threads that Numba, OpenMP and BLAS may use.

    Returns
    -------
    dict
        The status that is also written to ``build/<profile>/status``.
    """
    notebook = read_notebooks(root)[name]
    profile = read_profile(profile_name, root)
    build = root / "build" / profile_name
    final = build / "notebooks" / f"{name}.ipynb"
    partial = build / "partial" / f"{name}.ipynb"
    for path in (final, partial):
        path.parent.mkdir(parents=True, exist_ok=True)

    declared = declared_parameters(nbformat.read(notebook.path(root), as_version=4))
    parameters = effective_parameters(declared, profile.common, profile.notebooks.get(name, {}))
    command = f"make figures PROFILE={profile_name}"
    os.environ.update(
        kernel_environment(build / "figures", profile_name, command, real_data=True, threads=threads, root=root)
    )
    started = time.time()
    error = _execute(notebook.path(root), partial, parameters)
    record = build / "figures" / f"{name}.json"
    if error is None and notebook.figure and not (record.is_file() and record.stat().st_mtime >= started - 1):
        error = f"saved nothing under its own name; end it with save_figure(figure, {name!r}, ...)"
    seconds = time.time() - started
    if error is None:
        os.replace(partial, final)
    status = {
        "notebook": name,
        "status": "ok" if error is None else "failed",
        "seconds": round(seconds, 1),
        "data": json.loads(record.read_text(encoding="utf-8"))["data"] if record.is_file() else "none",
        "error": error,
        "batch": os.environ.get("TPLREPRO_BATCH", ""),
        "finished_utc": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    _write_json(build / "status" / f"{name}.json", status)
    return status


def main(arguments=None):
    """Run one notebook and print its progress line."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("notebook")
    parser.add_argument("--profile", default="quick")
    parser.add_argument("--threads", type=int)
    options = parser.parse_args(arguments)
    status = run_notebook(options.notebook, options.profile, options.threads)
    print(_progress_line(status, options.profile), flush=True)
    return 0 if status["status"] == "ok" else 1


def _execute(source, target, parameters):
    """Error message of the first failing cell, or None."""
    import papermill
    from papermill.exceptions import PapermillExecutionError

    for attempt in (1, 2):
        try:
            papermill.execute_notebook(
                str(source),
                str(target),
                parameters=parameters,
                kernel_name="python3",
                language="python",
                progress_bar=False,
                start_timeout=120,
            )
            return None
        except PapermillExecutionError as failure:
            return f"cell {failure.exec_count}: {failure.ename}: {failure.evalue or _failing_line(failure.traceback)}"
        except RuntimeError as failure:
            # Two kernels that start at once can take the same port (nteract/papermill#239); nothing ran then.
            if attempt == 2 or "Kernel d" not in str(failure) or _any_cell_ran(target):
                return f"{type(failure).__name__}: {failure}"
            target.unlink(missing_ok=True)
        except Exception as failure:
            return f"{type(failure).__name__}: {failure}"


def _failing_line(traceback):
    """The line that the traceback's first arrow points at: a bare assertion says nothing else."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(traceback))
    arrow = re.search(r"^-+> *\d+ (.*)$", plain, re.MULTILINE)
    return arrow[1].strip() if arrow else ""


def _any_cell_ran(path):
    if not path.is_file():
        return False
    cells = nbformat.read(path, as_version=4).cells
    return any(cell.get("execution_count") for cell in cells if cell.cell_type == "code")


def _progress_line(status, profile, root=ROOT):
    batch, total = status["batch"], os.environ.get("TPLREPRO_BATCH_TOTAL")
    place = ""
    if batch and total:
        done = sum(
            json.loads(path.read_text(encoding="utf-8"))["batch"] == batch
            for path in (root / "build" / profile / "status").rglob("*.json")
        )
        place = f"[{done:>{len(total)}}/{total}] "
    line = f"{place}{status['notebook']:<34}{status['seconds']:>8.1f} s  {status['status']}"
    return line if status["error"] is None else f"{line}\n    {_first_line(status['error'])}"


def _first_line(text):
    return text.strip().splitlines()[0][:300]


def _write_json(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    os.replace(partial, path)


if __name__ == "__main__":
    sys.exit(main())
