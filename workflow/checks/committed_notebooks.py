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

import nbformat

from tplfrontier.pairs.leakage import compile_kernels
from tplreport.files import write_whole
from workflow.batch.run_notebook import kernel_environment
from workflow.configuration import METADATA, ROOT, sources
from workflow.publishing.start_page import write_start_page

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


def check(names, threads=1):
    """Run nbval on the notebooks named (``tkde2019/fig3``), or on all; `threads` are those of BLAS
    and Numba."""
    names = names or list(sources())
    command = [
        *(sys.executable, "-m", "pytest", "--nbval"),
        # Several notebooks at once, but each in one process: its cells come one after the other.
        *("--numprocesses", str(min(os.cpu_count() or 1, len(names), 4)), "--dist", "loadscope"),
        *("-p", "no:cacheprovider"),
        *(f"notebooks/{name}.ipynb" for name in names),
    ]
    figures = ROOT / "build" / "nbval" / "figures"
    environment = kernel_environment(
        figures, "quick", "make test", real_data=False, threads=threads
    )
    # pictures are not compared, and each takes a second or two
    environment["TPLREPRO_PICTURES"] = "no"
    return subprocess.run(command, cwd=ROOT, env=environment).returncode


def refresh(path):
    """Execute one notebook in this process and write it back; returns whether the file changed.

    ValueError if a cell wrote to the standard error stream: fix the cause of the warning instead of
    committing it.
    """
    from nbclient import NotebookClient

    before = path.read_text(encoding="utf-8")
    notebook = nbformat.reads(before, as_version=4)
    options = {"timeout": None, "kernel_name": "python3", "record_timing": False}
    NotebookClient(
        notebook, **options, resources={"metadata": {"path": str(path.parent)}}
    ).execute()
    for number, cell in enumerate(notebook.cells):
        for output in cell.get("outputs", ()):
            if output.output_type == "stream" and output.name == "stderr":
                raise ValueError(
                    f"cell {number} of {path.name} must not write to stderr, found:\n{output.text}"
                )
    after = nbformat.writes(clean(notebook)) + "\n"
    if after == before:
        return False
    write_whole(path, after.encode())
    return True


def clean(notebook):
    """Strip the parts that differ between machines and runs; tags, cell ids and execution counts
    stay."""
    notebook.metadata = nbformat.from_dict(METADATA)
    for number, cell in enumerate(notebook.cells):
        cell.metadata = nbformat.from_dict(
            {"tags": cell.metadata.tags} if cell.metadata.get("tags") else {}
        )
        cell.setdefault("id", f"cell-{number}")
        if "outputs" in cell:  # a widget is nothing without its kernel
            cell.outputs = [
                output for output in cell.outputs if WIDGET_VIEW not in output.get("data", {})
            ]
    # Format 4.5 is the first with cell ids.
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    return notebook


def main(arguments=None):
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
        # ends what it started
        signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
        return check(options.names, options.threads)
    figures = ROOT / "build" / "refresh" / "figures"
    os.environ.update(kernel_environment(figures, "quick", "make notebooks", real_data=False))
    os.environ.pop("TPLREPRO_DATA", None)
    for name in options.names or notebooks:
        started = time.monotonic()
        is_changed = refresh(notebooks[name].path())
        print(_progress_line(name, is_changed, time.monotonic() - started), flush=True)
    if write_start_page():
        print(_progress_line("index", True, 0.0))
    return 0


def _progress_line(name, is_changed, seconds):
    """One notebook, whether it changed, and how long it took."""
    state = "changed" if is_changed else "as before"
    return f"{name:<34}{state:>10}{seconds:8.1f} s"


if __name__ == "__main__":
    sys.exit(main())
