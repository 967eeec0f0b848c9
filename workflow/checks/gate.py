"""Run what the documents tell readers to type, as ``config/gate.yaml`` lists it: ``make check``.

`find_unguarded` names the advertised commands that the table neither runs nor excuses; a test calls
it.
"""

import os
import re
import shlex
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TextIO

import numpy as np
import yaml

from tplreport.files import write_whole
from workflow.batch.run_notebook import exit_at_signal
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
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
IN_PROSE = re.compile(rf"`((?:[A-Z_]+=\S+ )?{PROGRAMS}\s[^`]+)`")
OPTION = re.compile(r"[A-Z_]+=|--?[a-z]")
TARGET = re.compile(r"^([a-z-]+):.* ## ", re.MULTILINE)
# Programs whose first argument says what they do.
WITH_SUBCOMMANDS = ("tplrepro", "python", "docker", "conda")
NOT_TESTED = ("echo", "export", "rm")
# The tests that were skipped, in pytest's words.
SKIPPED = re.compile(r"^SKIPPED \[\d+\] (.*)$", re.MULTILINE)
ADDRESS = re.compile(r"(http://127\.0\.0\.1:\d+/)(\S*\?token=\w+)")
LOGS = ROOT / "build" / "gate"
# Settings of the one who runs the gate, or of make, that a reader does not have.
SETTINGS = (
    r"TPLREPRO_\w+|PYTHON\w+|M\w*FLAGS|MAKE\w+|PROFILE|ONLY|JOBS|RECORDS|ARGS|\w+_NUM_THREADS"
)
START_SECONDS = 120  # that a server may take until it prints its address
END_SECONDS = 5  # that processes may take to end when they are asked to


@dataclass(frozen=True)
class Line:
    """One line of the table, and what must come of it."""

    run: str
    stands_for: Sequence[str] = ()  # advertised commands that it tests in other words
    status: int = 0
    says: str = ""  # pattern in what it prints
    makes: Sequence[str] = ()  # files that it leaves
    # text of the page at the printed address, and of paths at its host
    serves: Mapping[str, str] = field(default_factory=dict)
    minutes: float = 15


@dataclass(frozen=True)
class Form:
    """One thing that a command does, without the values that it is given."""

    name: str  # program with target or subcommand
    options: frozenset[str]  # their names

    def is_tested_by_any(self, others: Iterable["Form"]) -> bool:
        """Whether another one does the same, with these options and perhaps more."""
        return any(self.name == other.name and self.options <= other.options for other in others)


@dataclass(frozen=True)
class Table:
    """What ``config/gate.yaml`` says."""

    lines: Sequence[Line]
    excused: Mapping[str, str]  # reasons by command
    skips: Mapping[str, str]  # reasons by allowed skip (a pattern)

    def tested_forms(self) -> list[Form]:
        """What the commands do that are run, and those that they stand for."""
        commands = [command for line in self.lines for command in (line.run, *line.stands_for)]
        return [form for command in commands for form in parse_forms(command)]


def read_table(root: Path = ROOT) -> Table:
    content = yaml.safe_load((root / "config" / "gate.yaml").read_text(encoding="utf-8"))
    lines = [Line(run=line) if isinstance(line, str) else Line(**line) for line in content["runs"]]
    return Table(lines, content["excused"], content["skips"])


def find_advertised(root: Path = ROOT) -> dict[str, set[str]]:
    """The documents that name each command, by command."""
    advertised: dict[str, set[str]] = {}
    for pattern in DOCUMENTS:
        for path in sorted(root.glob(pattern)):
            place = path.relative_to(root).as_posix()
            text = path.read_text(encoding="utf-8")
            for command in commands_in(text, place, pattern):
                advertised.setdefault(command, set()).add(place)
    for target in TARGET.findall((root / "Makefile").read_text(encoding="utf-8")):
        advertised.setdefault(f"make {target}", set()).add("make help")
    return advertised


def commands_in(text: str, place: str, pattern: str) -> Iterator[str]:
    """The commands that the `text` of a document names, in blocks and in prose.

    A block of Python is the command ``python PLACE``; one of a Python session ``python PATTERN``,
    the pattern by which the document was found, because one test runs all these pages.
    """
    commands = []
    for kind, block in BLOCK.findall(text):
        if kind in ("", "sh"):
            commands += block.splitlines()
        elif kind == "python":
            commands.append(f"python {place}")
        elif kind == "pycon":  # one test runs all these pages
            commands.append(f"python {pattern}")
    commands += IN_PROSE.findall(BLOCK.sub("", text))
    for command in commands:
        without_comment = re.sub(r" +# .*", "", command)
        words = re.sub(r"\s+", " ", without_comment).strip()
        if words:
            yield words


def parse_forms(command: str) -> list[Form]:
    """What the parts of a command line do."""
    forms = []
    for part in re.split(r" \| | && |; ", command):
        words = shlex.split(part)
        options = frozenset(word.partition("=")[0] for word in words if OPTION.match(word))
        first, *others = [word for word in words if not OPTION.match(word)]
        program = first.rpartition("/")[2]
        if program == "make":
            forms += [Form(f"make {target}", options) for target in others]
        elif program in WITH_SUBCOMMANDS:
            forms.append(Form(" ".join([program, *others[:1]]), options))
        elif program not in NOT_TESTED:
            forms.append(Form(program, options))
    return forms


def find_unguarded(root: Path = ROOT) -> list[str]:
    """A sentence for each advertised command that is neither run nor excused, and each excuse that
    nothing needs."""
    table = read_table(root)
    tested = table.tested_forms()
    excuses = {command: parse_forms(command) for command in table.excused}
    problems = []
    used = set()
    for command, places in find_advertised(root).items():
        for form in parse_forms(command):
            reasons = [excuse for excuse, excused in excuses.items() if form in excused]
            used.update(reasons)
            if not reasons and not form.is_tested_by_any(tested):
                where = ", ".join(sorted(places))
                problems.append(f"{where}: {command}: nothing tests it; add it to config/gate.yaml")
    for excuse in table.excused:
        if excuse not in used:
            problems.append(f"config/gate.yaml: {excuse}: nothing names it; drop it")
    return problems


def run_line(line: Line, number: int, skips: Mapping[str, str]) -> list[str]:
    """Run line `number` of the table, with its output in a log; why it fails, in words.

    `skips` are the patterns of reasons for which tests may be skipped.
    """
    log = LOGS / f"{number:02}.log"
    for path in line.makes:
        (ROOT / path).unlink(missing_ok=True)
    problems = []
    status = None
    with open(log, "w", encoding="utf-8") as output, start_shell(line.run, output) as process:
        try:
            if line.serves:
                problems += problems_of_server(line.serves, process, log)
                end_group(process, signal.SIGTERM)
            status = process.wait(60 * line.minutes)
        except subprocess.TimeoutExpired:
            return [f"must end within {line.minutes:g} minutes"]
        # a batch ends its notebooks, which have groups of their own, if it is asked to end
        finally:
            end_group(process, signal.SIGTERM, signal.SIGKILL)
    text = log.read_text(encoding="utf-8", errors="replace")
    problems += problems_of_outcome(line, status, text)
    return problems + find_skipped(text, skips)


def problems_of_outcome(line: Line, status: int | None, text: str) -> list[str]:
    """What of the exit status, the output `text` and the files that a line leaves is not as the
    table says."""
    problems = []
    if status != line.status and not line.serves:
        problems.append(f"must end with {line.status}, found {status}")
    if not re.search(line.says, text):
        problems.append(f"must say {line.says!r}")
    return problems + [f"must leave {path}" for path in line.makes if not (ROOT / path).is_file()]


def start_shell(command: str, output: TextIO) -> subprocess.Popen:
    """Start a command as a reader would, in a process group of its own, and write what it prints to
    `output`."""
    environment = {
        name: value for name, value in os.environ.items() if not re.fullmatch(SETTINGS, name)
    }
    environment["PYTEST_ADDOPTS"] = "-rs"
    environment["BROWSER"] = "true"
    return subprocess.Popen(
        ["sh", "-c", command],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def end_group(process: subprocess.Popen, *signals: signal.Signals) -> None:
    """Send signals to all that the process has started, some seconds apart, until none of it is
    left."""
    *first, last = signals
    with suppress(ProcessLookupError):
        for number in first:
            os.killpg(process.pid, number)
            wait_for_group(process)
        os.killpg(process.pid, last)


def wait_for_group(process: subprocess.Popen) -> None:
    """Wait some seconds; ProcessLookupError as soon as none of the group is left."""
    for _ in range(10 * END_SECONDS):
        process.poll()
        os.killpg(process.pid, 0)
        time.sleep(0.1)


def find_skipped(text: str, skips: Mapping[str, str]) -> list[str]:
    """The tests that were skipped without a line in the table."""
    reasons = SKIPPED.findall(text)
    return [
        f"skips {reason}"
        for reason in reasons
        if not any(re.search(pattern, reason) for pattern in skips)
    ]


def problems_of_server(pages: Mapping[str, str], process: subprocess.Popen, log: Path) -> list[str]:
    """What a server does not show: `pages` maps each path to a text that the page there must have.

    Waits for the address in the server's log, and asks for each page with the token in it.
    """
    link = wait_for_address(process, log)
    if link is None:
        return ["must print its address"]
    host, rest = link.groups()
    token = rest.partition("?")[2]
    problems = []
    for path, words in pages.items():
        address = link[0]
        if path != "/":
            address = f"{host}{path}?{token}"
        page = read_page(address)
        if words not in page:
            problems.append(f"must show {words!r} at {path}, found {page[:80]!r}")
    return problems


def wait_for_address(process: subprocess.Popen, log: Path) -> re.Match[str] | None:
    """Host and rest of the address that a server prints; None if it does not."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        link = ADDRESS.search(log.read_text())
        if link is not None:
            return link
        if process.poll() is not None or time.monotonic() > deadline:
            return None
        time.sleep(0.2)


def read_page(address: str) -> str:
    """The text of a page, or the error."""
    try:
        return urllib.request.urlopen(address, timeout=60).read().decode()
    except OSError as error:
        return str(error)


def write_examples(folder: Path = LOGS) -> None:
    """Observations, a matrix, series of counts and several statistics, as a reader's own."""
    walks = [*walks_of_users()]
    by_day = [f"{user},{step},{place}" for user, step, place in walks]
    write_lines(folder / "my.csv", ["user,day,place", *by_day])
    midnight = datetime(2024, 4, 1)
    by_hour = [f"{user},{midnight + timedelta(hours=step)},{place}" for user, step, place in walks]
    write_lines(folder / "walks.csv", ["user,time,place", *by_hour])
    series = [f"{day},{100 + day},{50 - day}" for day in range(30)]
    write_lines(folder / "series.csv", ["day,home,work", *series])
    write_lines(folder / "moves.csv", ["home,work", "0.8,0.2", "0.1,0.9"])
    write_lines(folder / "holidays.csv", ["home,work", "0.9,0.1", "0.2,0.8"])
    counts = counts_of_people()
    hours = [f"2024-05-01 {hour:02}:00,{row}" for hour, row in enumerate(counts)]
    write_lines(folder / "counts.csv", ["time,home,work", *hours])
    write_lines(
        folder / "statistics.csv",
        ["statistic,sensitivity,share,every,at", "people,2,0.6,,", "spent,50,0.4,1D,18:00"],
    )
    spent = ["", "", "4000.5", ""]
    rows = [
        f"2024-05-01 {hour}:00,{row},{amount}"
        for hour, row, amount in zip(range(16, 20), counts[16:20], spent, strict=True)
    ]
    write_lines(folder / "three.csv", ["time,people: home,people: work,spent", *rows])


def counts_of_people(people: int = 400, hours: int = 24) -> list[str]:
    """Counts at home and at work of people who move by the matrix of the examples, from its habit
    on."""
    rng = np.random.default_rng(0)
    at_home = people // 3
    rows = []
    for _ in range(hours):
        rows.append(f"{at_home},{people - at_home}")
        arriving = int(rng.binomial(people - at_home, 0.1))
        leaving = int(rng.binomial(at_home, 0.2))
        at_home += arriving - leaving
    return rows


def walks_of_users(users: int = 150, steps: int = 40) -> Iterator[tuple[str, int, str]]:
    """A user, the number of a step, and the place then, from a Markov chain."""
    rng = np.random.default_rng(0)
    places = ("home", "work", "park")
    for user in range(users):
        place = 0
        for step in range(steps):
            place = int(rng.choice(3, p=np.roll([0.5, 0.3, 0.2], place)))
            yield f"u{user}", step, places[place]


def write_lines(path: Path, lines: Sequence[str]) -> None:
    write_whole(path, "\n".join([*lines, ""]).encode())


def main(arguments: Sequence[str]) -> int:
    """Run the lines that hold all words given, by default all; the exit status is 0 if nothing
    fails."""
    signal.signal(signal.SIGTERM, exit_at_signal)
    table = read_table()
    chosen = choose_lines(table.lines, arguments)
    write_examples()
    before = read_changes()
    started = time.monotonic()
    failed = {}
    for number, line in chosen.items():
        problems = run_and_report(line, number, table.skips)
        if problems:
            failed[line.run] = problems
    if not arguments:
        skipped = skipped_in_tests(table.skips)
        if skipped:
            failed["make test"] = skipped
    if read_changes() != before:
        failed["all of them"] = [
            "must leave the committed files as they are, found changes: see git diff"
        ]
    print_failures(failed)
    minutes = (time.monotonic() - started) / 60
    counts = f"{len(failed)} failures in {minutes:.1f} minutes"
    print(f"{counts}; {len(table.excused)} commands excused")
    return 1 if failed else 0


def print_failures(failed: Mapping[str, Sequence[str]]) -> None:
    for name, problems in failed.items():
        print(f"FAILED: {name}: {'; '.join(problems)}")


def choose_lines(lines: Sequence[Line], arguments: Sequence[str]) -> dict[int, Line]:
    """The lines that hold all words given, by number; ends the process if there are none."""
    chosen = {}
    for number, line in enumerate(lines):
        if all(words in line.run for words in arguments):
            chosen[number] = line
    if not chosen:
        sys.exit(
            f"ONLY must be words of a line in config/gate.yaml, found {arguments[0]!r}; correct it"
        )
    return chosen


def run_and_report(line: Line, number: int, skips: Mapping[str, str]) -> list[str]:
    """Run line `number` of the table and print how it ended; why it fails, in words.

    `skips` are the patterns of reasons for which tests may be skipped.
    """
    started = time.monotonic()
    problems = run_line(line, number, skips)
    seconds = time.monotonic() - started
    outcome = "passed"
    if problems:
        outcome = "FAILED"
    print(f"{seconds:7.1f} s  {outcome}  {line.run}", flush=True)
    for problem in problems:
        print(f"           {problem}; see build/gate/{number:02}.log", flush=True)
    return problems


def skipped_in_tests(skips: Mapping[str, str]) -> list[str]:
    """The tests that `make test` skipped without a line in the table, by the log of .ci/run."""
    log = LOGS / "make-test.log"
    if not log.is_file():
        return []
    return find_skipped(log.read_text(encoding="utf-8"), skips)


def read_changes() -> bytes:
    """What differs from the last commit."""
    return subprocess.run(["git", "diff", "HEAD"], cwd=ROOT, capture_output=True).stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
