"""Run what the documents tell readers to type, as ``config/gate.yaml`` lists it: ``make check``.

`unguarded` names the advertised commands that the table neither runs nor excuses; a test calls it.
"""

import os
import re
import shlex
import signal
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
import yaml

from tplreport.files import write_whole
from workflow.configuration import ROOT

DOCUMENTS = (
    "README.md",
    "CONTRIBUTING.md",
    "REPRODUCING.md",
    "ARTIFACT.md",
    "data/README.md",
    "docs/guide/*.md",
)
PROGRAMS = (
    r"(?:make|tplrepro|pip|papermill|pytest|docker|conda|micromamba|pre-commit|\.venv/bin/[\w-]+)"
)
LOGS = ROOT / "build" / "gate"
# Settings of the one who runs the gate, or of make, that a reader does not have.
SETTINGS = (
    r"TPLREPRO_\w+|PYTHON\w+|M\w*FLAGS|MAKE\w+|PROFILE|ONLY|JOBS|RECORDS|ARGS|\w+_NUM_THREADS"
)


@dataclass(frozen=True)
class Line:
    """One line of the table, and what must come of it."""

    run: str
    stands_for: tuple = ()  # advertised commands that it tests in other words
    status: int = 0
    says: str = ""  # pattern in what it prints
    makes: tuple = ()  # files that it leaves
    # text of the page at the printed address, and of paths at its host
    serves: dict = field(default_factory=dict)
    minutes: float = 15


def read_table(root=ROOT):
    """The lines of the table; reasons by excused command; reasons by allowed skip (a pattern)."""
    table = yaml.safe_load((root / "config" / "gate.yaml").read_text(encoding="utf-8"))
    lines = [Line(**({"run": line} if isinstance(line, str) else line)) for line in table["runs"]]
    return lines, table["excused"], table["skips"]


def advertised(root=ROOT):
    """The documents (set) that name each command, by command."""
    found = {}
    for pattern, path in [(one, path) for one in DOCUMENTS for path in sorted(root.glob(one))]:
        place, text = path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")
        blocks = re.findall(r"^```(\w*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
        commands = [
            line for kind, block in blocks if kind in ("", "sh") for line in block.splitlines()
        ]
        commands += [f"python {place}" for kind, _ in blocks if kind == "python"]
        # one test runs these pages
        commands += [f"python {pattern}" for kind, _ in blocks if kind == "pycon"]
        prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
        commands += re.findall(rf"`((?:[A-Z_]+=\S+ )?{PROGRAMS}\s[^`]+)`", prose)
        for command in filter(
            None, (re.sub(r"\s+", " ", re.sub(r" +# .*", "", line)).strip() for line in commands)
        ):
            found.setdefault(command, set()).add(place)
    for target in re.findall(
        r"^([a-z-]+):.* ## ", (root / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
    ):
        found.setdefault(f"make {target}", set()).add("make help")
    return found


def forms(command):
    """(program with target or subcommand, names of options) of each thing that a command does."""
    found = []
    for part in re.split(r" \| | && |; ", command):
        words = shlex.split(part)
        options = {word.partition("=")[0] for word in words if re.match(r"[A-Z_]+=|--?[a-z]", word)}
        first, *others = [word for word in words if not re.match(r"[A-Z_]+=|--?[a-z]", word)]
        program = first.rpartition("/")[2]
        if program == "make":
            found += [(f"make {target}", options) for target in others]
        elif program in ("tplrepro", "python", "docker", "conda"):
            found.append((" ".join([program, *others[:1]]), options))
        elif program not in ("echo", "export", "rm"):
            found.append((program, options))
    return found


def unguarded(root=ROOT):
    """A sentence for each advertised command that is neither run nor excused, and each excuse that
    nothing needs."""
    lines, excused, _ = read_table(root)
    tested = [
        form
        for line in lines
        for command in (line.run, *line.stands_for)
        for form in forms(command)
    ]
    excuses = {command: forms(command) for command in excused}
    problems, used = [], set()
    for command, places in advertised(root).items():
        for name, options in forms(command):
            reasons = [excuse for excuse, known in excuses.items() if (name, options) in known]
            used.update(reasons)
            if not reasons and not any(
                name == known and options <= given for known, given in tested
            ):
                where = ", ".join(sorted(places))
                problems.append(f"{where}: {command}: nothing tests it; add it to config/gate.yaml")
    return problems + [
        f"config/gate.yaml: {excuse}: nothing names it; drop it"
        for excuse in excused
        if excuse not in used
    ]


def failures_of(line, number, skips):
    """Run a line; why it fails, in words (list)."""
    log, problems = LOGS / f"{number:02}.log", []
    environment = {
        name: value for name, value in os.environ.items() if not re.fullmatch(SETTINGS, name)
    }
    environment |= {"PYTEST_ADDOPTS": "-rs", "BROWSER": "true"}
    for path in line.makes:
        (ROOT / path).unlink(missing_ok=True)
    settings = {
        "cwd": ROOT,
        "env": environment,
        "stdin": subprocess.DEVNULL,
        "start_new_session": True,
    }
    with (
        open(log, "w", encoding="utf-8") as out,
        subprocess.Popen(
            ["sh", "-c", line.run], stdout=out, stderr=subprocess.STDOUT, **settings
        ) as process,
    ):
        try:
            if line.serves:
                problems += _unserved(line, process, log)
                _end(process, signal.SIGTERM)
            status = process.wait(60 * line.minutes)
        except subprocess.TimeoutExpired:
            return [f"must end within {line.minutes:g} minutes"]
        # a batch ends its notebooks, which have groups of their own, if it is asked to end
        finally:
            _end(process, signal.SIGTERM, signal.SIGKILL)
    text = log.read_text(encoding="utf-8", errors="replace")
    if status != line.status and not line.serves:
        problems.append(f"must end with {line.status}, found {status}")
    if not re.search(line.says, text):
        problems.append(f"must say {line.says!r}")
    problems += [f"must leave {path}" for path in line.makes if not (ROOT / path).is_file()]
    return problems + skipped(text, skips)


def _end(process, *signals):
    """Send signals to all that the process has started, some seconds apart, until none of it is
    left."""
    with suppress(ProcessLookupError):
        for number in signals:
            os.killpg(process.pid, number)
            for _ in range(50 * (number != signals[-1])):
                process.poll()
                os.killpg(process.pid, 0)
                time.sleep(0.1)


def skipped(text, skips):
    """The tests that were skipped without a line in the table."""
    found = re.findall(r"^SKIPPED \[\d+\] (.*)$", text, re.MULTILINE)
    return [
        f"skips {reason}"
        for reason in found
        if not any(re.search(known, reason) for known in skips)
    ]


def _unserved(line, process, log):
    """What a server does not show: wait for its address, and ask for each page with the token."""
    deadline = time.monotonic() + 120
    while not (link := re.search(r"(http://127\.0\.0\.1:\d+/)(\S*\?token=\w+)", log.read_text())):
        if process.poll() is not None or time.monotonic() > deadline:
            return ["must print its address"]
        time.sleep(0.2)
    token, problems = link[2].partition("?")[2], []
    for path, words in line.serves.items():
        address = link[0] if path == "/" else f"{link[1]}{path}?{token}"
        try:
            page = urllib.request.urlopen(address, timeout=60).read().decode()
        except OSError as error:
            page = str(error)
        if words not in page:
            problems.append(f"must show {words!r} at {path}, found {page[:80]!r}")
    return problems


def write_examples(folder=LOGS):
    """Observations, a matrix and series of counts, as a reader's own."""
    rng, rows = np.random.default_rng(0), ["user,day,place"]
    for user in range(150):
        place = 0
        for day in range(40):
            place = int(rng.choice(3, p=np.roll([0.5, 0.3, 0.2], place)))
            rows.append(f"u{user},{day},{('home', 'work', 'park')[place]}")
    write_whole(folder / "my.csv", "\n".join([*rows, ""]).encode())
    series = [f"{day},{100 + day},{50 - day}" for day in range(30)]
    write_whole(folder / "series.csv", "\n".join(["day,home,work", *series, ""]).encode())
    write_whole(folder / "moves.csv", b"home,work\n0.8,0.2\n0.1,0.9\n")
    hours = [f"2024-05-01 {hour:02}:00,{300 - hour},{100 + hour}" for hour in range(24)]
    write_whole(folder / "counts.csv", "\n".join(["time,home,work", *hours, ""]).encode())


def main(arguments):
    """Run the lines that hold all words given, by default all; the exit status is 0 if nothing
    fails."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    lines, excused, skips = read_table()
    chosen = [
        (number, line)
        for number, line in enumerate(lines)
        if all(words in line.run for words in arguments)
    ]
    if not chosen:
        sys.exit(
            f"ONLY must be words of a line in config/gate.yaml, found {arguments[0]!r}; correct it"
        )
    write_examples()
    before, failed, started = _changes(), {}, time.monotonic()
    for number, line in chosen:
        began = time.monotonic()
        problems = failures_of(line, number, skips)
        seconds = time.monotonic() - began
        print(f"{seconds:7.1f} s  {'FAILED' if problems else 'passed'}  {line.run}", flush=True)
        for problem in problems:
            print(f"           {problem}; see build/gate/{number:02}.log", flush=True)
        failed |= {line.run: problems} if problems else {}
    tests = LOGS / "make-test.log"  # which .ci/run leaves
    if tests.is_file() and not arguments:
        failed |= (
            {"make test": found}
            if (found := skipped(tests.read_text(encoding="utf-8"), skips))
            else {}
        )
    if _changes() != before:
        failed["all of them"] = [
            "must leave the committed files as they are, found changes: see git diff"
        ]
    for name, problems in failed.items():
        print(f"FAILED: {name}: {'; '.join(problems)}")
    print(
        f"{len(failed)} failures in {(time.monotonic() - started) / 60:.1f} minutes; {len(excused)} commands excused"
    )
    return 1 if failed else 0


def _changes():
    return subprocess.run(["git", "diff", "HEAD"], cwd=ROOT, capture_output=True).stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
