"""Committed notebooks: `check` compares a new run with their outputs, `refresh` writes the outputs
anew.

Both run every notebook with its defaults (the quick profile) on the stand-ins, even if recorded
data are installed, so its outputs hold on every machine. Parts that differ from run to run are
stripped.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import nbformat

from tplreport.compilation import compile_kernels
from tplreport.files import write_whole
from workflow.batch.run_notebook import exit_at_signal, kernel_environment
from workflow.configuration import METADATA, ROOT, sources
from workflow.publishing.start_page import write_start_page

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
MOST_PROCESSES = 4


def check(names: Sequence[str], threads: int = 1) -> int:
    """Run nbval on notebooks.

    Parameters
    ----------
    names : sequence of str
        Such as ``tkde2019/fig3``; none means all.
    threads : int
        Of BLAS and Numba.

    Returns
    -------
    int
        The exit status.
    """
    names = names or list(sources())
    processes = min(os.cpu_count() or 1, len(names), MOST_PROCESSES)
    command = [
        # The package `workflow`, imported before nbval, saves each process the second that its
        # __init__ names.
        *(sys.executable, "-m", "pytest", "-p", "workflow", "--nbval"),
        # Several notebooks at once, but each in one process: its cells come one after the other.
        *("--numprocesses", str(processes), "--dist", "loadscope"),
        *("-p", "no:cacheprovider"),
        *(f"notebooks/{name}.ipynb" for name in names),
    ]
    figures = ROOT / "build" / "nbval" / "figures"
    environment = kernel_environment(
        figures, "quick", "make test-notebooks", real_data=False, threads=threads
    )
    # pictures are not compared, and each takes a second or two
    environment["TPLREPRO_PICTURES"] = "no"
    return subprocess.run(command, cwd=ROOT, env=environment).returncode


def refresh(path: Path) -> bool:
    """Execute one notebook in this process and write it back; whether the file changed.

    ValueError if a cell wrote to the standard error stream: fix the cause of the warning instead of
    committing it.
    """
    from nbclient import NotebookClient

    before = path.read_text(encoding="utf-8")
    notebook = nbformat.reads(before, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=None,
        kernel_name="python3",
        record_timing=False,
        resources={"metadata": {"path": str(path.parent)}},
    )
    client.execute()
    refuse_warnings(notebook, path.name)
    after = nbformat.writes(clean(notebook)) + "\n"
    if after == before:
        return False
    write_whole(path, after.encode())
    return True


def refuse_warnings(notebook: nbformat.NotebookNode, name: str) -> None:
    """ValueError if a cell wrote to the standard error stream."""
    for number, cell in enumerate(notebook.cells):
        for output in cell.get("outputs", ()):
            if output.output_type == "stream" and output.name == "stderr":
                raise ValueError(
                    f"cell {number} of {name} must not write to stderr, found:\n{output.text}"
                )


def clean(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Strip the parts that differ between machines and runs; tags, cell ids and execution counts
    stay."""
    notebook.metadata = nbformat.from_dict(METADATA)
    for number, cell in enumerate(notebook.cells):
        kept = {}
        if cell.metadata.get("tags"):
            kept["tags"] = cell.metadata.tags
        cell.metadata = nbformat.from_dict(kept)
        cell.setdefault("id", f"cell-{number}")
        if "outputs" in cell:  # a widget is nothing without its kernel
            cell.outputs = [
                output for output in cell.outputs if WIDGET_VIEW not in output.get("data", {})
            ]
    # Format 4.5 is the first with cell ids.
    notebook.nbformat = 4
    notebook.nbformat_minor = 5
    return notebook


def refresh_all(names: Sequence[str]) -> None:
    """Refresh notebooks and the start page, and print a line for each."""
    notebooks = sources()
    figures = ROOT / "build" / "refresh" / "figures"
    os.environ.update(kernel_environment(figures, "quick", "make notebooks", real_data=False))
    os.environ.pop("TPLREPRO_DATA", None)
    for name in names or notebooks:
        started = time.monotonic()
        is_changed = refresh(notebooks[name].path())
        print(progress_line(name, is_changed, time.monotonic() - started), flush=True)
    if write_start_page():
        print(progress_line("index", True, 0.0))


def progress_line(name: str, is_changed: bool, seconds: float) -> str:
    """A line on one notebook: its name, whether it changed, and how long it took."""
    state = "changed" if is_changed else "as before"
    return f"{name:<34}{state:>10}{seconds:8.1f} s"


def main(arguments: Sequence[str] | None = None) -> int:
    """Check or refresh all notebooks, or those named."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("what", choices=("check", "refresh"))
    parser.add_argument("--threads", type=int, default=1, help="of BLAS and Numba, for check")
    parser.add_argument("names", nargs="*", metavar="paper/figure")
    options = parser.parse_args(arguments)
    notebooks = sources()
    unknown = [name for name in options.names if name not in notebooks]
    if unknown:
        parser.error(f"config/notebooks.yaml does not list {', '.join(unknown)}; add it there")
    compile_kernels()  # before any notebook prints a message about it
    if options.what == "check":
        signal.signal(signal.SIGTERM, exit_at_signal)
        return check(options.names, options.threads)
    refresh_all(options.names)
    return 0


if __name__ == "__main__":
    sys.exit(main())
