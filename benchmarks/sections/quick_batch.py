"""`make figures` in a copy of the repository, with the environment and caches at hand."""

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measuring import ROOT, Run, run_command
from benchmarks.tables import PLAIN_HEAD, on_busy_processors, row, shown

#: What a fresh clone does not have.
LEFT_OUT = (".git", ".venv*", ".snakemake", "build", "shared", ".*_cache", ".hypothesis")
#: A finished notebook and its seconds, as the batch prints them.
FINISHED = re.compile(r"^(\S+/\S+) +([0-9.]+)  \S.*ok$", re.MULTILINE)


def measure() -> Iterator[str]:
    run = run_in_copy()
    if run.done.returncode:
        raise RuntimeError(run.done.stdout[-3000:] + run.done.stderr[-1000:])
    seconds = {name: float(took) for name, took in FINISHED.findall(run.done.stdout)}
    longest = sorted(seconds, key=seconds.__getitem__, reverse=True)
    yield PLAIN_HEAD
    what = f"`make figures`: all {len(seconds)} notebooks, no data"
    yield row(what, shown(run.wall), "150 s")
    yield row("the same: time of the processors", f"{run.processors:.0f} s", "")
    what = f"the notebooks' own time, {os.cpu_count()} at once"
    yield row(what, f"{sum(seconds.values()):.0f} s", "")
    for name in longest[:6]:
        yield row(f"of which {name}", f"{seconds[name]:.1f} s", "")
    what = "of which the shortest, which mostly starts, loads and saves"
    yield row(what, shown(seconds[longest[-1]]), "")
    yield from on_busy_processors(run, "fewer or smaller notebooks")


def run_in_copy() -> Run:
    """The batch without data."""
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "clone"
        shutil.copytree(ROOT, clone, ignore=shutil.ignore_patterns(*LEFT_OUT))
        environment = os.environ | {"PYTHONPATH": str(clone)}
        environment.pop("TPLREPRO_DATA", None)
        command = [sys.executable, "-m", "workflow.batch.run_batch", "--profile", "quick"]
        return run_command(command, cwd=clone, env=environment, capture_output=True, text=True)
