"""Run every notebook of a profile that is not up to date: check, run Snakemake, summarise.

Kill it at any moment and start it again: what was finished stays finished, and nothing is left half-written. The
exit status is 0 when every notebook is up to date, 1 when one failed, 2 when the configuration is wrong, 3 when
another batch is running and 130 after an interruption.
"""

import argparse
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
import uuid

from workflow.check_parameters import find_problems
from workflow.configuration import ROOT, ConfigurationError, read_notebooks, read_profile
from workflow.fingerprint import fingerprint_changed, write_fingerprint

__all__ = ["run_batch", "outdated", "outdated_now", "summary", "main"]


def run_batch(profile_name, jobs=None, only=(), root=ROOT):
    """Run what is out of date and print the summary.

    Parameters
    ----------
    profile_name : str
    jobs : int, optional
        Notebooks that run at once; by default one a processor.
    only : sequence of str
        Names of the notebooks to run; all by default.

    Returns
    -------
    int
        Exit status.
    """
    problems = find_problems(root)
    try:
        profile = read_profile(profile_name, root)
        notebooks = read_notebooks(root)
    except ConfigurationError as error:
        problems = problems or [str(error)]
    if not problems:
        problems = [f"ONLY: no notebook is called {name!r}" for name in only if name not in notebooks]
    data = os.environ.get("TPLREPRO_DATA")
    if data and not os.path.isdir(os.path.expanduser(data)):
        problems.append(f"TPLREPRO_DATA must name a folder with the data, got {data!r}; correct it, or unset it")
    if problems:
        _say("Nothing was run, because of the configuration:", *(f"  {problem}" for problem in problems))
        return 2

    chosen = {name: notebooks[name] for name in (only or notebooks)}
    build = root / "build" / profile_name
    build.mkdir(parents=True, exist_ok=True)
    with open(root / "build" / "lock", "a+", encoding="utf-8") as lock:
        if not _acquire(lock):
            lock.seek(0)
            _say(f"Another batch is running ({lock.read().strip() or 'unknown process'}); wait for it or end it.")
            return 3
        waiting = outdated(chosen, profile, root)
        _say(
            f"Profile {profile_name}: {len(waiting)} of {len(chosen)} notebooks to run, "
            + ("real data where TPLREPRO_DATA has them." if data else "synthetic data (TPLREPRO_DATA is not set).")
        )
        batch = uuid.uuid4().hex
        code = _snakemake(profile_name, batch, waiting, jobs, lock, root) if waiting else 0
    # Against the fingerprints the batch began with: what was edited meanwhile is the next batch's work.
    left = [name for name in chosen if not _is_current(name, profile_name, root)]
    _say("", summary(chosen, profile_name, waiting, left, root), "")
    if code < 0 or code == 130:
        _say("Interrupted. The same command finishes the rest.")
        return 130
    if left:
        failed = [name for name in left if _status(profile_name, name, root).get("batch") == batch]
        _say(f"{len(left)} of {len(chosen)} notebooks are not up to date.")
        _say(*(f"  {name}: see build/{profile_name}/partial/{name}.ipynb" for name in failed))
        if not failed:
            _say(f"Snakemake stopped; the end of build/{profile_name}/snakemake.log:", *_tail(build))
        return 1
    _say(f"Figures are in build/{profile_name}/figures, executed notebooks in build/{profile_name}/notebooks.")
    return 0


def outdated(notebooks, profile, root=ROOT):
    """Names of the notebooks whose result is missing or older than something it depends on."""
    for notebook in notebooks.values():
        write_fingerprint(notebook, profile, root)
    return [name for name in notebooks if not _is_current(name, profile.name, root)]


def outdated_now(notebooks, profile, root=ROOT):
    """The same for who only asks: nothing is written, so asking without TPLREPRO_DATA makes no result outdated."""
    return [
        name
        for name, notebook in notebooks.items()
        if fingerprint_changed(notebook, profile, root) or not _is_current(name, profile.name, root)
    ]


def summary(notebooks, profile_name, waiting, left, root=ROOT):
    """Table of the notebooks with their seconds and status, as text."""
    rows = [("notebook", "seconds", "data", "status")]
    total = 0.0
    for name in notebooks:
        status = _status(profile_name, name, root)
        ran = status and name in waiting and (name not in left or status["status"] == "failed")
        if ran:
            total += status["seconds"]
        state = status["status"] if ran else "not run" if name in left else "up to date"
        seconds = f"{status['seconds']:.1f}" if status else "-"
        rows.append((name, seconds, status.get("data", "-"), state))
    rows.append(("sum of what ran", f"{total:.1f}", "", ""))
    first = max(len(row[0]) for row in rows)
    lines = [f"{row[0]:<{first}}  {row[1]:>8}  {row[2]:<9}  {row[3]}".rstrip() for row in rows]
    lines.insert(1, "-" * (first + 33))
    return "\n".join(lines)


def main(arguments=None):
    """Run the batch of one profile."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--profile", default="quick")
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--only", nargs="*", default=[], metavar="NOTEBOOK")
    options = parser.parse_args(arguments)
    return run_batch(options.profile, options.jobs, options.only)


def _is_current(name, profile_name, root):
    result = root / "build" / profile_name / "notebooks" / f"{name}.ipynb"
    stamp = root / "build" / profile_name / "fingerprints" / f"{name}.json"
    return result.is_file() and result.stat().st_mtime >= stamp.stat().st_mtime


def _snakemake(profile_name, batch, waiting, jobs, lock, root):
    command = [
        *(sys.executable, "-m", "snakemake", "--snakefile", str(root / "Snakefile")),
        *("--cores", str(jobs or os.cpu_count() or 1), "--scheduler", "greedy"),
        # Our own lock is released by the kernel when its holders die, so it can never be stale.
        *("--nolock", "--rerun-incomplete", "--keep-going", "--rerun-triggers", "mtime", "--nocolor"),
        # Times alone decide, as in `outdated`: by checksums a fingerprint back in an older state would not count.
        *("--max-checksum-file-size", "0"),
        *("--config", f"profile={profile_name}", "--"),
        *(f"build/{profile_name}/notebooks/{name}.ipynb" for name in waiting),
    ]
    environment = {**os.environ, "TPLREPRO_BATCH": batch, "TPLREPRO_BATCH_TOTAL": str(len(waiting))}
    with open(root / "build" / profile_name / "snakemake.log", "w", encoding="utf-8") as log:
        child = subprocess.Popen(
            command, cwd=root, env=environment, stderr=log, stdin=subprocess.DEVNULL, pass_fds=[lock.fileno()]
        )
        # Snakemake is in the same process group, so it got the interrupt too; wait until its jobs have ended.
        interrupted = False
        previous = signal.signal(signal.SIGTERM, lambda number, frame: child.terminate())
        try:
            while True:
                try:
                    code = child.wait()
                    break
                except KeyboardInterrupt:
                    interrupted = True
        finally:
            signal.signal(signal.SIGTERM, previous)
    return 130 if interrupted else code


def _acquire(lock):
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    lock.seek(0)
    lock.truncate()
    lock.write(f"process {os.getpid()}, started {time.strftime('%Y-%m-%d %H:%M:%S')}\n")
    lock.flush()
    return True


def _status(profile_name, name, root):
    path = root / "build" / profile_name / "status" / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def _tail(build, lines=15):
    log = build / "snakemake.log"
    return log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:] if log.is_file() else []


def _say(*lines):
    for line in lines:
        print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
