"""Run every notebook of a profile that is not up to date: check, run Snakemake, summarise.

It can be killed at any moment and started again: finished notebooks stay finished, and no
half-written file remains. The exit status is 0 when every notebook is up to date, 1 when one
failed, 2 when the configuration is wrong, 3 when another batch is running, 130 after an
interruption, 143 after a SIGTERM and 129 after a SIGHUP.
"""

import argparse
import fcntl
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TextIO

import psutil

from tplreport.compilation import compile_kernels
from workflow.batch.fingerprint import outdated, read_status
from workflow.batch.run_notebook import exit_at_signal, kernel_environment
from workflow.check_parameters import find_problems
from workflow.configuration import PROFILES, ROOT, read_notebooks, read_profile, writing_problems

# Exit statuses; those of signals are 128 and their number.
UP_TO_DATE = 0
FAILED = 1
MISCONFIGURED = 2
LOCKED = 3
INTERRUPTED = 130
LINES_OF_LOG = 15  # that are shown where Snakemake stopped

_say = partial(print, sep="\n", flush=True)


@dataclass(frozen=True)
class Batch:
    """The notebooks of a profile that are to be up to date, and those of them that are not."""

    profile: str
    root: Path
    chosen: Sequence[str]
    waiting: Sequence[str]
    number: str  # in the statuses of the notebooks that it has run

    @property
    def build(self) -> Path:
        return self.root / "build" / self.profile

    def announce(self) -> None:
        """Say how many notebooks run, and on which data."""
        data = "synthetic data (TPLREPRO_DATA is not set)"
        if os.environ.get("TPLREPRO_DATA"):
            data = "real data where TPLREPRO_DATA has them"
        counts = f"{len(self.waiting)} of {len(self.chosen)} notebooks to run"
        _say(f"Profile {self.profile}: {counts}, {data}.")

    def results(self) -> "Results":
        """What the statuses on the disk say."""
        statuses = {name: read_status(name, self.profile, self.root) for name in self.chosen}
        ran = [name for name in self.waiting if statuses[name].get("batch") == self.number]
        not_run = [name for name in self.waiting if name not in ran]
        return Results(statuses, ran, not_run)

    def say_what_is_left(self, results: "Results") -> None:
        """Which notebooks are not up to date, and where to look."""
        count = len(results.failed) + len(results.not_run)
        _say(f"{count} of {len(self.chosen)} notebooks are not up to date.")
        for name in results.failed:
            _say(f"  {name}: see build/{self.profile}/partial/{name}.ipynb")
        _say(*writing_problems(self.build))
        if not results.failed:
            log = (self.build / "snakemake.log").read_text(encoding="utf-8", errors="replace")
            _say(
                f"Snakemake stopped; the end of build/{self.profile}/snakemake.log:",
                *log.splitlines()[-LINES_OF_LOG:],
            )


@dataclass(frozen=True)
class Results:
    """What a batch has done."""

    statuses: Mapping[str, Mapping[str, Any]]  # of all chosen notebooks; empty: never run
    ran: Sequence[str]  # in this batch
    not_run: Sequence[str]  # that are not up to date

    @cached_property
    def failed(self) -> list[str]:
        return [name for name in self.ran if self.statuses[name]["status"] != "ok"]

    def state_of(self, name: str) -> str:
        if name in self.ran:
            return self.statuses[name]["status"]
        if name in self.not_run:
            return "not run"
        return "up to date"

    def table(self) -> str:
        """The notebooks with their seconds, data and state, as text."""
        rows = [("notebook", "seconds", "data", "status")]
        for name, status in self.statuses.items():
            seconds = str(status.get("seconds", "-"))
            rows.append((name, seconds, status.get("data", "-"), self.state_of(name)))
        total = round(sum(self.statuses[name]["seconds"] for name in self.ran), 1)
        rows.append(("sum of what ran", str(total), "", ""))
        width = max(len(name) for name, _, _, _ in rows)
        width_of_data = max(len(data) for _, _, data, _ in rows)
        lines = [
            f"{name:<{width}}  {seconds:>8}  {data:<{width_of_data}}  {state}"
            for name, seconds, data, state in rows
        ]
        return "\n".join(line.rstrip() for line in lines)


def run_batch(
    profile: str, jobs: int | None = None, only: Collection[str] = (), root: Path = ROOT
) -> int:
    """Run the outdated notebooks and print the summary.

    Parameters
    ----------
    profile : str
        Its name.
    jobs : int, optional
        How many notebooks run at once; by default one per processor.
    only : collection of str
        The notebooks to run; by default all.
    root : Path
        The repository.

    Returns
    -------
    int
        The exit status, see the module.
    """
    problems = find_mistakes(profile, jobs, only, root)
    if not problems:
        problems = writing_problems(root / "build" / profile)
    if problems:
        _say("Nothing was run:", *(f"  {problem}" for problem in problems))
        return MISCONFIGURED
    status = UP_TO_DATE
    with open(root / "build" / "lock", "a+", encoding="utf-8") as lock:
        if not take_lock(lock):
            _say(f"Another batch is running ({lock.read().strip()}); wait for it or end it.")
            return LOCKED
        batch = plan_batch(profile, only, root)
        batch.announce()
        if batch.waiting:
            compile_kernels()  # before any notebook is timed or prints a message
            status = run_snakemake(batch, jobs, lock)
    return finish_batch(batch, status)


def plan_batch(profile: str, only: Collection[str], root: Path) -> Batch:
    """What a batch has to do: of the notebooks named in `only`, or of all if it is empty, those
    that are outdated."""
    entries = read_notebooks(root)
    chosen = {name: entries[name] for name in (only or entries)}
    waiting = outdated(chosen, read_profile(profile, root), root)
    return Batch(profile, root, list(chosen), waiting, uuid.uuid4().hex)


def finish_batch(batch: Batch, status: int) -> int:
    """Print the summary; the exit status of the batch, by `status`, that of Snakemake."""
    results = batch.results()
    _say("", results.table(), "")
    if status < 0:  # the number of the signal that ended it
        status = 128 - status
    if status > 128:
        _say("Interrupted. The same command finishes the rest.")
        return status
    if results.failed or results.not_run:
        batch.say_what_is_left(results)
        return FAILED
    folder = f"build/{batch.profile}"
    _say(f"Figures are in {folder}/figures, executed notebooks in {folder}/notebooks.")
    return UP_TO_DATE


def find_mistakes(profile: str, jobs: int | None, only: Collection[str], root: Path) -> list[str]:
    """Sentences on what is wrong with the configuration, TPLREPRO_DATA and the arguments.

    `jobs` is the number of notebooks at once, None for one on each processor; `only` are the
    notebooks that were named, empty for all.
    """
    problems = find_problems(root, dict.fromkeys([*PROFILES, profile]))
    if not problems:
        entries = read_notebooks(root)
        problems = [f"ONLY: no notebook is called {name!r}" for name in only if name not in entries]
    if jobs is not None and jobs < 1:
        problems.append(
            f"JOBS must be a whole number of notebooks at once, at least 1, found {jobs}; "
            "or leave it out"
        )
    data = os.environ.get("TPLREPRO_DATA")
    if data and not os.path.isdir(os.path.expanduser(data)):
        problems.append(
            f"TPLREPRO_DATA must name a folder with the data, found {data!r}; correct it, "
            "or unset it"
        )
    return problems


def take_lock(lock: TextIO) -> bool:
    """Share the lock, which notebooks keep even if the batch is killed, with them; False if another
    has it."""
    lock.seek(0)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        lock.truncate()
        lock.write(f"process {os.getpid()}, started {time.strftime('%Y-%m-%d %H:%M:%S')}\n")
        lock.flush()
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def snakemake_command(batch: Batch, jobs: int | None) -> list[str]:
    """The command that runs the waiting notebooks."""
    return [
        *(sys.executable, "-m", "snakemake", "--snakefile", str(batch.root / "Snakefile")),
        *("--cores", str(jobs or os.cpu_count() or 1), "--scheduler", "greedy"),
        # Its lock outlives a kill and must then be removed by hand; the operating system releases
        # ours.
        *("--nolock", "--rerun-incomplete", "--keep-going", "--nocolor"),
        # The Snakefile knows which results are outdated; changed code or file times are no further
        # reason.
        *("--rerun-triggers", "mtime"),
        *("--config", f"profile={batch.profile}", "--"),
        *(f"build/{batch.profile}/notebooks/{name}.ipynb" for name in batch.waiting),
    ]


def run_snakemake(batch: Batch, jobs: int | None, lock: TextIO) -> int:
    """Run the waiting notebooks, `jobs` at once (None: one on each processor); the exit status of
    Snakemake.

    Snakemake inherits the file `lock`, so that the batch stays locked if this process is killed.
    """
    environment = kernel_environment(
        batch.build / "figures",
        batch.profile,
        f"make figures PROFILE={batch.profile}",
        real_data=True,
        threads=1,  # those that measure times get more from the Snakefile
        root=batch.root,
    )
    environment["TPLREPRO_BATCH"] = batch.number
    environment["TPLREPRO_BATCH_TOTAL"] = str(len(batch.waiting))
    with (
        open(batch.build / "snakemake.log", "w", encoding="utf-8") as log,
        subprocess.Popen(
            snakemake_command(batch, jobs),
            cwd=batch.root,
            env=environment,
            stderr=log,
            stdin=subprocess.DEVNULL,
            pass_fds=[lock.fileno()],  # Snakemake keeps our lock if we are killed
        ) as child,
    ):
        try:
            return child.wait()
        except KeyboardInterrupt:
            end_children()
            return INTERRUPTED
        except SystemExit as signalled:
            end_children()
            return int(signalled.code or 0)


def end_children(seconds: float = 5) -> None:
    """End Snakemake and with it the notebooks and their kernels."""
    family = psutil.Process().children(recursive=True)
    for process in family:
        with suppress(psutil.NoSuchProcess):
            process.terminate()
    _, alive = psutil.wait_procs(family, seconds)
    for process in alive:
        with suppress(psutil.NoSuchProcess):
            process.kill()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the batch of one profile."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--profile", default="quick")
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--only", nargs="*", default=[], metavar="NOTEBOOK")
    options = parser.parse_args(arguments)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # as nohup asks
            signal.signal(number, exit_at_signal)
    return run_batch(options.profile, options.jobs, options.only)


if __name__ == "__main__":
    sys.exit(main())
