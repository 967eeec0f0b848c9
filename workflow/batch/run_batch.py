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
from contextlib import suppress
from functools import partial

import psutil

from tplfrontier.pairs.leakage import compile_kernels
from workflow.batch.fingerprint import outdated, read_status
from workflow.batch.run_notebook import kernel_environment
from workflow.check_parameters import find_problems
from workflow.configuration import PROFILES, ROOT, read_notebooks, read_profile, writing_problems

_say = partial(print, sep="\n", flush=True)


def run_batch(profile_name, jobs=None, only=(), root=ROOT):
    """Run the outdated notebooks and print the summary; returns the exit status.

    `jobs` notebooks run at once, by default one per processor; `only` names those to run, by
    default all.
    """
    build = root / "build" / profile_name
    problems = _problems(profile_name, jobs, only, root) or writing_problems(build)
    if problems:
        _say("Nothing was run:", *(f"  {problem}" for problem in problems))
        return 2
    profile, entries = read_profile(profile_name, root), read_notebooks(root)
    chosen = {name: entries[name] for name in (only or entries)}
    batch, code = uuid.uuid4().hex, 0
    with open(root / "build" / "lock", "a+", encoding="utf-8") as lock:
        if not _locked(lock):
            _say(f"Another batch is running ({lock.read().strip()}); wait for it or end it.")
            return 3
        waiting = outdated(chosen, profile, root)
        has_data = bool(os.environ.get("TPLREPRO_DATA"))
        data = (
            "real data where TPLREPRO_DATA has them"
            if has_data
            else "synthetic data (TPLREPRO_DATA is not set)"
        )
        _say(f"Profile {profile_name}: {len(waiting)} of {len(chosen)} notebooks to run, {data}.")
        if waiting:
            compile_kernels()  # before any notebook is timed or prints a message
            code = _snakemake(profile_name, batch, waiting, jobs, lock, root)
    statuses = {name: read_status(name, profile_name, root) for name in chosen}
    ran = {name for name in waiting if statuses[name].get("batch") == batch}
    failed = [name for name in waiting if name in ran and statuses[name]["status"] != "ok"]
    left = [name for name in waiting if name in failed or name not in ran]
    _say("", summary(statuses, ran, left), "")
    if code < 0 or code > 128:
        _say("Interrupted. The same command finishes the rest.")
        return code if code > 0 else 128 - code
    if left:
        _say(f"{len(left)} of {len(chosen)} notebooks are not up to date.")
        _say(*(f"  {name}: see build/{profile_name}/partial/{name}.ipynb" for name in failed))
        _say(*writing_problems(build))
        if not failed:
            words = (
                (build / "snakemake.log").read_text(encoding="utf-8", errors="replace").splitlines()
            )
            _say(f"Snakemake stopped; the end of build/{profile_name}/snakemake.log:", *words[-15:])
        return 1
    _say(
        f"Figures are in build/{profile_name}/figures, executed notebooks in build/{profile_name}/notebooks."
    )
    return 0


def summary(statuses, ran, left):
    """Table of the notebooks with their seconds and status, as text."""
    rows = [("notebook", "seconds", "data", "status")]
    for name, status in statuses.items():
        state = status["status"] if name in ran else "not run" if name in left else "up to date"
        rows.append((name, status.get("seconds", "-"), status.get("data", "-"), state))
    rows.append(
        ("sum of what ran", round(sum(statuses[name]["seconds"] for name in ran), 1), "", "")
    )
    width, kind = (max(len(row[column]) for row in rows) for column in (0, 2))
    return "\n".join(
        f"{name:<{width}}  {took:>8}  {data:<{kind}}  {state}".rstrip()
        for name, took, data, state in rows
    )


def main(arguments=None):
    """Run the batch of one profile."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--profile", default="quick")
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--only", nargs="*", default=[], metavar="NOTEBOOK")
    options = parser.parse_args(arguments)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # as nohup asks
            signal.signal(number, lambda number, frame: sys.exit(128 + number))
    return run_batch(options.profile, options.jobs, options.only)


def _problems(profile_name, jobs, only, root):
    problems = find_problems(root, dict.fromkeys([*PROFILES, profile_name]))
    if not problems:
        problems = [
            f"ONLY: no notebook is called {name!r}"
            for name in only
            if name not in read_notebooks(root)
        ]
    if jobs is not None and jobs < 1:
        problems.append(
            f"JOBS must be a whole number of notebooks at once, at least 1, found {jobs}; or leave it out"
        )
    data = os.environ.get("TPLREPRO_DATA")
    if data and not os.path.isdir(os.path.expanduser(data)):
        problems.append(
            f"TPLREPRO_DATA must name a folder with the data, found {data!r}; correct it, or unset it"
        )
    return problems


def _locked(lock):
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


def _snakemake(profile_name, batch, waiting, jobs, lock, root):
    """Exit status of Snakemake, which runs the waiting notebooks."""
    command = [
        *(sys.executable, "-m", "snakemake", "--snakefile", str(root / "Snakefile")),
        *("--cores", str(jobs or os.cpu_count() or 1), "--scheduler", "greedy"),
        # Its lock outlives a kill and must then be removed by hand; the operating system releases
        # ours.
        *("--nolock", "--rerun-incomplete", "--keep-going", "--nocolor"),
        # The Snakefile knows which results are outdated; changed code or file times are no further
        # reason.
        *("--rerun-triggers", "mtime"),
        *("--config", f"profile={profile_name}", "--"),
        *(f"build/{profile_name}/notebooks/{name}.ipynb" for name in waiting),
    ]
    build = root / "build" / profile_name
    # Those that measure times get more threads from the Snakefile.
    settings = {
        "command": f"make figures PROFILE={profile_name}",
        "real_data": True,
        "threads": 1,
        "root": root,
    }
    environment = kernel_environment(build / "figures", profile_name, **settings)
    environment |= {"TPLREPRO_BATCH": batch, "TPLREPRO_BATCH_TOTAL": str(len(waiting))}
    with open(build / "snakemake.log", "w", encoding="utf-8") as log:
        process = {"cwd": root, "env": environment, "stderr": log, "stdin": subprocess.DEVNULL}
        # Snakemake keeps our lock if we are killed.
        with subprocess.Popen(command, **process, pass_fds=[lock.fileno()]) as child:
            try:
                return child.wait()
            except (KeyboardInterrupt, SystemExit) as asked:
                _end_children()
                return getattr(asked, "code", 130)


def _end_children(seconds=5):
    """End Snakemake and with it the notebooks and their kernels."""
    family = psutil.Process().children(recursive=True)
    for process in family:
        with suppress(psutil.NoSuchProcess):
            process.terminate()
    for process in psutil.wait_procs(family, seconds)[1]:
        with suppress(psutil.NoSuchProcess):
            process.kill()


if __name__ == "__main__":
    sys.exit(main())
