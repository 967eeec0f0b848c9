"""README's two commands in a fresh clone, the environment included."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measuring import ROOT, run_command
from benchmarks.tables import PLAIN_HEAD, megabytes, row, shown

#: Aims for each target.
TARGETS = {"figures": "240 s", "test": "360 s"}


def measure() -> Iterator[str]:
    yield PLAIN_HEAD
    for target, aim in TARGETS.items():
        yield from measure_target(target, aim)
    yield ""
    yield "One processor is idle while the kernels are compiled (section on first calls)."


def measure_target(target: str, aim: str) -> Iterator[str]:
    """The rows of a target of make, in a clone of its own, in which the environment is made first;
    `aim` is the time to reach."""
    variables = {name: value for name, value in os.environ.items() if name != "TPLREPRO_DATA"}
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["git", "clone", "--quiet", ROOT, "clone"], cwd=folder, check=True)
        clone = Path(folder) / "clone"
        settings = {"cwd": clone, "env": variables, "stdout": subprocess.DEVNULL, "check": True}
        environment = run_command(["make", "env"], **settings)
        run = run_command(["make", target], **settings)
        size = sum(path.lstat().st_size for path in (clone / ".venv").rglob("*"))
    yield row(f"`make {target}`, no data", f"{environment.wall + run.wall:.0f} s", aim)
    yield row(f"of which the environment, {megabytes(size)}", shown(environment.wall), "")
    processors = environment.processors + run.processors
    yield row("the same: time of the processors", f"{processors:.0f} s", "")
