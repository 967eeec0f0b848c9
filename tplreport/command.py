"""The console command ``tplrepro``: a subcommand for each job, of which ``--help`` lists the
options."""

from __future__ import annotations
import argparse
import gc
import json
import os
import re
import sys
import warnings
from codecs import lookup
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from io import TextIOWrapper
from math import isfinite
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

import tplreport as tr
import tplrepro as tpl
from tplreport.address_space import explain, spare_address_space
from tplreport.files import check_spares, write_whole
from tplreport.publishing.mark import check_is_no_publisher, files_beside
from tplrepro.lazy import optional_import

#: That the true chain is among those that the data leave possible, unless another is given.
CONFIDENCE = 0.95
#: Exit status, as `EPILOG` explains it.
USED = 0
WRONG = 2
WITHHELD = 3
REFUSED = 4
LOW = 5
#: As shells count a program that a signal ended: 128 and the number of SIGINT, SIGPIPE.
INTERRUPTED = 130
PIPE_CLOSED = 141
#: New objects after which Python looks for unreachable ones. By default it looks after 700, among
#: half a million that libraries make and keep, which takes a tenth of the time of a small report.
NEW_OBJECTS = 50_000
EPILOG = (
    "exit status: 0 done; 2 arguments, data or files that cannot be used; 3 a report withholds "
    "its advice, or the data show no chain to publish by; 4 a release was refused, because a "
    "leakage would exceed alpha; 5 done, and less remains than --warn-below"
)
ABOUT = (
    "Budgets and noise for statistics about the same people that are published again and again. "
    "Begin with report, if you have observations of people, or with budgets, if you have the "
    "matrix of their moves; then publish. tplrepro report --help lists the options of report."
)
#: Exit status by the name of an error, whose import may fail, too.
STATUS = {"LeakageExceededError": REFUSED, "DoubtfulModelError": WITHHELD}
# in the order of `allocation_schemes.SCHEMES`
SCHEME_NAMES = ("composed", "constant", "quantification", "optimal")


@dataclass(frozen=True)
class Option:
    """An option or an argument: the type of its value, and its help; a flag is bool."""

    kind: type
    help: str


#: Options that go to the reader of files.
COLUMNS = {
    "user": Option(
        str,
        "column of users, or none if all rows are one person's; by default found by its usual "
        "names, as the others",
    ),
    "time": Option(str, "column of times"),
    "state": Option(str, "column of states"),
    "latitude": Option(
        str, "column of latitudes, with --longitude and --cell-km in place of --state"
    ),
    "longitude": Option(str, "column of longitudes"),
    "cell_km": Option(float, "side of the cells that positions fall into, km"),
    "step": Option(
        str, "time between two time points, such as 1h; without it observations must be regular"
    ),
    "max_gap": Option(
        str, "how long the last known state holds, or a sequence may pause, such as 6h"
    ),
    "time_format": Option(
        str, "format of times, such as '%%d.%%m.%%Y %%H:%%M'; by default ISO 8601 or numbers"
    ),
    "time_unit": Option(
        str,
        "unit of times that are numbers: s, ms, us, ns, min, h, D, or excel for days of a "
        "spreadsheet",
    ),
    "zone": Option(
        str,
        "zone by whose clock hours and days count, such as Europe/Berlin: times with an offset and "
        "seconds since 1970 are shown by it, others taken for what it shows",
    ),
    "same_time": Option(
        str,
        "which of a user's states at one time counts: first, last or rows (their order); else an "
        "error",
    ),
    "until": Option(str, "column of the ends of spells, which begin at --time"),
    "bins": Option(int, "number of bins of a state that is a measured number"),
    "binning": Option(str, "bins of equal shares (quantiles, the default) or of equal width"),
    "order": Option(
        str, "times or rows: each observation is a step, in order of time or of the file"
    ),
    "missing": Option(
        str,
        "drop: leave out rows without a user, a time or an end; state: a missing state is a state; "
        "or texts that stand for no value, such as NA,null; or both, such as drop,NA",
    ),
    "box": Option(
        str, "south,north,west,east of the cells in degrees; a position outside ends a sequence"
    ),
}
#: Those that go to `tr.report` beside --alpha and --horizon.
NUMBERS = {
    "draws": Option(int, "draws for the interval of the leakage; 0: none"),
    "against": Option(
        str,
        "whom the plan withstands: 'the upper end', 'the worst user's habits' or 'any prior on "
        "both sides'",
    ),
    "epsilon": Option(
        float,
        "budget of each release, nats; by default alpha in a report, the floor where one publishes",
    ),
    "delta": Option(
        float,
        "Gaussian noise that keeps (alpha, delta); to publish it, give --burst, or noise "
        "multipliers with --plan",
    ),
    "sensitivity": Option(
        float,
        "by how much one user may change the counts of a time: 2 for a histogram, 1 for one count",
    ),
    "smoothing": Option(float, "steps added to each row of counts, spread over the states"),
    "confidence": Option(
        float, "that the true chain is among those that the plan withstands, such as 0.95"
    ),
    "count": Option(float, "usual size of a count"),
}
#: Help of options that mean something else to `publish`.
TO_PUBLISH = {
    "file": (
        "the publisher's file; a new one needs --alpha, --sensitivity or --statistics, and a chain "
        "(--matrix, --data or --model)"
    ),
    "step": (
        "of a new file: time between two releases, such as 1h; without it times are whole numbers"
    ),
    "against": (
        "whom --plan withstands, too, where users of --data differ: 'the worst user's habits'"
    ),
}
#: The same of `ledger`.
OF_LEDGER = {
    "html": (
        "write a status page to this file: what was spent, what leaks and remains, the last values "
        "with their bands"
    )
}
#: Help of options that mean something else to `smooth`.
TO_SMOOTH = {
    "matrix": (
        "CSV of the matrix Pr(next state | state), or of a cycle, which must be public: never one "
        "that was counted from private data (docs/guide/smoothing.md, 'Which chain may I use?')"
    ),
    "model": "the noisy matrix of a model of tplrepro learn in place of a public one",
    "plot": "draw a count with its band into this file (.png, .svg, .pdf)",
}
#: Help of options that mean something else to `learn`.
TO_LEARN = {"epsilon": "budget of the model, about a person's whole training series; nats"}
#: Options of a chain, of what is written, and of a publisher's new file.
CHAIN = ("matrix", "backward", "start", "data", *COLUMNS, "confidence", "cycle", "first")
SHOWN = ("csv", "plot", "json")
NEW_FILE = (
    "alpha",
    "sensitivity",
    "statistics",
    "floor",
    "plan",
    "delta",
    "burst",
    "allow_large",
    "witness",
    "model",
)
#: Options -> what they belong to, for all subcommands that take a chain, and for `publish`.
PART_OF = dict.fromkeys((*COLUMNS, "confidence", "cycle"), "data")
PART_OF |= dict.fromkeys(("backward", "start"), "matrix")
PART_OF_PUBLISHING = PART_OF | {
    **dict.fromkeys(("data_step", "against", "anyway"), "data"),
    **dict.fromkeys(
        ("epsilon", "noise_multiplier", "without", "time_column", "numbered", "csv"), "counts"
    ),
    "skip_until": "skip",
}
PART_OF_PUBLISHING.pop("step")
PART_OF_SMOOTHING = {"first": "matrix", "column": "plot"}
PARTS = {"publish": PART_OF_PUBLISHING, "smooth": PART_OF_SMOOTHING}
#: What options have beside their type and help.
MORE: dict[str, dict] = {
    "scheme": {"choices": SCHEME_NAMES, "default": SCHEME_NAMES[-1]},
    "resume": {"nargs": "?", "const": ""},
    "cycle": {"choices": ("auto", "day", "week", "none")},
}
#: Words of the package -> those of the command.
IN_OTHER_WORDS = (
    (r"cycle\.starting_at\('(.*?)'\)", r"first='\1'"),
    (r", or give the chain of every \d+-th time, .*?$", ""),
    (r"\bor skip from\b", "or give skip from"),
    (r"\bskip from (\S.*?) until \1(?= before the others|$)", r'--skip "\1"'),
    (
        r"\bskip from (\S.*?) until (\S.*?)(?= before the others|$)",
        r'--skip "\1" --skip-until "\2"',
    ),
    (
        r"\bpublish those up to (\S.*?) alone, and then (--skip .*?) before the others",
        r"publish those up to \1 alone, and then the others with \2",
    ),
    (
        r"\b(has passed, (\S.*?) is next; give) that, and until not before it",
        r'\1 --skip "\2", and --skip-until not before it',
    ),
    (r"\bcall resume\(until\) with the last time", "publish with --resume and the last time"),
    (r"\bcall resume\(until\)", "publish with --resume"),
    (r"\bresume\(\)", "--resume alone"),
    (r"\brepeat change_chain\b", "repeat the change of then by --change"),
    (r"give at most allocate_by_upper_bound\(alpha, \.\.\.\)", "give less, or --floor largest"),
    (r"\bmake one with settings\b", "make one by tplrepro publish with --alpha and a chain"),
    (r"\ba Cycle without a step, which begins\b", "phases 0, 1, ... in matrix=, which begin"),
    (r"\bCycle\(\.\.\., step='.*?'\) with\b", "matrix= with"),
    (r"(?<=or name a column of times 'time')$", ", or by time_column="),
    (r"\bforward=", "matrix="),
    (r"\bchain=None\b", "no_chain=True"),
    (r"\bchain=", "matrix="),
)
#: Arguments without a name before them.
POSITIONAL = ("observations", "model_file", "file", "counts")
#: Options that name files which are read, and those that name files which are written.
INPUTS = (
    "observations",
    "model",
    "counts",
    "data",
    "matrix",
    "backward",
    "plan",
    "statistics",
    "witness",
)
OUTPUTS = ("html", "budgets", "csv", "plot", "backup")
#: What an option may be that can also name a file.
BESIDE_A_FILE = {
    "start": "habit, any or ",
    "floor": "a number, largest or ",
    "states": "several labels with commas between them, or ",
}
#: All options and arguments.
OPTIONS = COLUMNS | NUMBERS
OPTIONS |= {
    "model_file": Option(str, "file of the model, which is written once; it may be published"),
    "model": Option(
        str,
        "of a new file: a model of tplrepro learn in place of a chain, which is the release of the "
        "time before the first; its floor is the budget of each time",
    ),
    "states": Option(
        str, "all states that are possible, with commas between them, or a file with one a line"
    ),
    "steps_per_user": Option(int, "how many steps of each user count, the first ones"),
    "method": Option(
        str, "matrix (noisy counts), or floor (one number); by default what needs fewer users"
    ),
    "training_until": Option(
        str, "the last training time, by what is public: the first release must come after it"
    ),
    "elsewhere": Option(str, "the state that stands for all values that are none of the states"),
    "observations": Option(str, "file of observations: who was in which state at which time"),
    "file": Option(str, "the publisher's file"),
    "counts": Option(str, "CSV of counts with a column of times; -: standard input"),
    "alpha": Option(float, "level that every time point keeps, nats"),
    "horizon": Option(int, "number of releases T"),
    "anyway": Option(bool, "rely on the chain of the data though a check refuses or doubts it"),
    "workers": Option(
        int, "judge users by so many processes, which the extra dask starts; by default by this one"
    ),
    "html": Option(str, "write the report as a page to this file"),
    "budgets": Option(
        str,
        "CSV of budgets: a report writes a column for each plan; leakage reads the column epsilon, "
        "or without it the one that begins with 'recommended: ', as in a report's file, and says "
        "which",
    ),
    "json": Option(
        bool, "print JSON in place of text; null stands for what is infinite or missing"
    ),
    "matrix": Option(
        str,
        "CSV of the forward matrix Pr(next state | state): a row for each state, with or without "
        "names; of a cycle with a first column phase, or a folder with a file for each phase",
    ),
    "backward": Option(
        str, "the same of the backward matrix; by default that of --start, in the habit"
    ),
    "start": Option(
        str,
        "how the chain of --matrix begins: habit (the default), any, or CSV of a state and its "
        "probability a line",
    ),
    "cycle": Option(
        str,
        "phases of the chain of the data: auto (the default) where habits follow the clock, day, "
        "week, or none",
    ),
    "first": Option(
        str,
        "phase of the first release, such as 08:00 or 'Mon 08:00'; by default the first of the "
        "cycle, and where one publishes what the clock shows",
    ),
    "data": Option(
        str, "observations in place of --matrix: every chain that they leave possible counts"
    ),
    "csv": Option(str, "write the table to this CSV file"),
    "plot": Option(str, "draw the leakages into this file (.png, .svg, .pdf)"),
    "scheme": Option(
        str,
        f"how budgets spread over time: {', '.join(SCHEME_NAMES)} (the default, of least error)",
    ),
    "data_step": Option(
        str, "time between two time points of --data; without it each observation is a step"
    ),
    "floor": Option(
        str,
        "of a new file: the budget of each time, for ever, largest for the largest one, or CSV of "
        "columns phase and epsilon",
    ),
    "statistics": Option(
        str,
        "of a new file, in place of --sensitivity: CSV of several statistics over the same people, "
        "with columns statistic, sensitivity, share, every and at; columns of counts are then such "
        "as 'people: home'",
    ),
    "plan": Option(
        str,
        "of a new file, in place of --floor: CSV of budgets, such as that of a report, whose "
        "recommended plan counts; with --delta of noise multipliers; times beside them must be "
        "those of the releases",
    ),
    "burst": Option(
        float,
        "of a new file with --delta, in place of --floor and --plan: noise may depend on all that "
        "was published, for ever; what times do not spend is saved, up to this many times what one "
        "always has",
    ),
    "noise_multiplier": Option(
        float,
        "noise of each of these times where the file has a --burst, as standard deviation over the "
        "sensitivity; by default what is always left",
    ),
    "allow_large": Option(bool, "of a new file: alpha may be above 20 nats"),
    "time_column": Option(
        str, "column of times of the counts; by default found by its usual names"
    ),
    "numbered": Option(
        bool, "times are the numbers of the rows, and the column of times stays as it is"
    ),
    "without": Option(
        str, "statistics that are due, but whose counts are not known, such as spent,doors"
    ),
    "skip": Option(str, "let this time pass without a release, before anything is published"),
    "skip_until": Option(str, "the last of several times to skip"),
    "change": Option(
        str,
        "follow the chain of --matrix or --data from this time on, the next one: with --floor, and "
        "beside --matrix --start any, habit or CSV of a law (by default that of the earlier chain)",
    ),
    "resume": Option(
        str, "publish from a copy: the last time that may have been published elsewhere, or none"
    ),
    "warn_below": Option(
        float, "exit status 5, and a warning, where less than this remains for the next time, nats"
    ),
    "leakage": Option(bool, "the leakages of all times, in place of what was spent"),
    "noisy": Option(bool, "the noisy counts, in place of what was spent"),
    "witness": Option(
        str,
        "a second mark of the publisher's file, on another disk: a disk put back as a whole is "
        "noticed",
    ),
    "no_chain": Option(bool, "smooth without a chain, as counts that walk at random"),
    "column": Option(str, "the count that --plot shows; by default the first"),
    "statistic": Option(str, "the one to smooth, of several"),
    "total": Option(
        float, "number of all people in all states at all times, if that is known exactly"
    ),
    "online": Option(bool, "each estimate by the counts up to its time alone: it is never revised"),
    "whole": Option(bool, "round the estimates to whole numbers"),
    "level": Option(float, "share of true counts that the bands hold, 0.9 by default"),
    "backup": Option(str, "write a copy of the file, which is whole also while others publish"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with these arguments, by default those of the process; returns the exit
    status."""
    if arguments is None:
        arguments = sys.argv[1:]
    options = vars(_parser().parse_args(_with_southern_boxes(arguments)))
    run = options.pop("run")
    command = options.pop("command")
    _write_any_label()
    try:
        status = _run_and_report_errors(run, command, options)
        if sys.stdout is not None:
            sys.stdout.flush()
        return status
    except BrokenPipeError:
        # what reads it, such as head, has had enough; else Python complains when it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except KeyboardInterrupt:
        print(f"tplrepro {command}: interrupted", file=sys.stderr)
        return INTERRUPTED


def _with_southern_boxes(arguments: Sequence[str]) -> list[str]:
    """The arguments, where a box that begins with a minus follows its option by "=": the parser
    would take it for another option."""
    words: list[str] = []
    for word in arguments:
        if words and words[-1] == "--box" and re.match(r"-[\d.]", word):
            words[-1] = f"--box={word}"
        else:
            words.append(word)
    return words


def _write_any_label() -> None:
    """Write UTF-8 where the locale has only ASCII, in which many a label cannot be written."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and lookup(stream.encoding).name == "ascii":
            stream.reconfigure(encoding="utf-8")


@contextmanager
def rare_collections() -> Iterator[None]:
    """Let Python look for unreachable objects after `NEW_OBJECTS` new ones only."""
    before = gc.get_threshold()
    gc.set_threshold(NEW_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _run_and_report_errors(run: Callable[[dict], int], command: str, options: dict) -> int:
    """The exit status of `run(options)`; an error of what was typed or read is one line on standard
    error."""
    try:
        spare_address_space()
        with optional_import(), warnings.catch_warnings(), rare_collections():
            # without the line of Python that said so
            warnings.showwarning = lambda message, *_: print(
                f"tplrepro {command}: warning: {_as_typed(str(message), options)}", file=sys.stderr
            )
            _check_outputs(command, options)
            _check_parts(command, options)
            return run(options)
    except BrokenPipeError:
        raise
    except (ValueError, OSError, ImportError, MemoryError, RuntimeError) as error:
        is_want_of_threads = "start new thread" in str(error)
        if isinstance(error, RuntimeError) and not is_want_of_threads:
            raise  # a fault of ours
        said = _about_file(error, options) or explain(error)
        print(f"tplrepro {command}: {_as_typed(said, options)}", file=sys.stderr)
        return STATUS.get(type(error).__name__, WRONG)


def _about_file(error: Exception, options: dict) -> str | None:
    """What the system says of a file, with the option that names it; None for other errors."""
    if not isinstance(error, OSError) or error.filename is None:
        return None
    path = error.filename
    found = f"{error.strerror} ({path})"
    if isinstance(error, FileNotFoundError):
        found = f"none at {path}"
    named = [name for name, value in options.items() if value == path]
    for name in _written_by(path, options):
        found = f"{error.strerror} ({options[name]})"
        named.append(name)
    if not named:
        return f"there must be a file that can be used, found {found}; check its name"
    name = named[0]
    wanted = f"{BESIDE_A_FILE.get(name, '')}a file that can be used"
    if name in POSITIONAL:
        return f"{name} must be {wanted}, found {found}; check its name"
    return f"{name}= must be {wanted}, found {found}; check its name"


def _written_by(path: Any, options: dict) -> list[str]:
    """The options whose file was being written, by the path of the partial one beside it."""
    partial = Path(str(path)).resolve()
    if partial.suffix != ".partial":
        return []
    return [
        name
        for name, value in _given(options, OUTPUTS).items()
        if partial.parent == Path(value).resolve().parent
        and partial.name.startswith(f".{Path(value).name}")
    ]


def _as_typed(message: str, options: dict) -> str:
    """A message with options as they are typed here: --time-format '%d' for time_format='%d'."""

    for of_package, of_command in IN_OTHER_WORDS:
        message = re.sub(of_package, of_command, message)

    def name_option(found: re.Match) -> str:
        """A constraint on an option, by a match of its Python name, which is typed below."""
        if found[1] not in options or found[1] in POSITIONAL:
            return found[0]
        return f"{found[1]}= must"

    message = re.sub(r"\b([a-z]+(?:_[a-z]+)+) must\b", name_option, message)

    def type_option(found: re.Match) -> str:
        """An option as it is typed, by a match of its Python name and of the character after
        "="."""
        name, following = found.groups()
        typed = f"--{name.replace('_', '-')}"
        if following and following not in ",;.)":
            typed += " "
        return typed + following

    return re.sub(rf"\b({'|'.join(options)})=(?:True\b)?(\S?)", type_option, message)


class Parser(argparse.ArgumentParser):
    """One that says what is wrong in a line, in place of all options first."""

    def error(self, message: str) -> NoReturn:
        """End with this message and the remedy."""
        self.exit(WRONG, f"{self.prog}: {message}; {self.prog} --help says more\n")


def _number(text: str) -> float:
    """A number that was typed."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"must be a number such as 0.1, with a decimal point, found {text!r}"
        ) from None


def _whole_number(text: str) -> int:
    """A whole number that was typed."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"must be a whole number such as 30, found {text!r}"
        ) from None


#: Type of an option -> what reads its text.
READERS: dict[type, Callable[[str], Any]] = {str: str, float: _number, int: _whole_number}


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="tplrepro", description=ABOUT, allow_abbrev=False, epilog=EPILOG)
    parser.add_argument("--version", action="version", version=f"tplrepro {tpl.__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    _add_leakage_parser(commands)
    _add_budgets_parser(commands)
    _add_report_parser(commands)
    _add_publish_parser(commands)
    _add_ledger_parser(commands)
    _add_smooth_parser(commands)
    _add_learn_parser(commands)
    return parser


def _add_leakage_parser(commands: Any) -> None:
    about = "what a series of budgets leaks over time"
    parser = _add_parser(commands, "leakage", about, _show_leakage_of_budgets)
    _add_options(parser, CHAIN)
    _add_options(parser, ("epsilon", "horizon", "budgets"))
    _add_options(parser, SHOWN)


def _add_budgets_parser(commands: Any) -> None:
    about = "budgets that keep a level at every time"
    parser = _add_parser(commands, "budgets", about, _allocate_budgets)
    _add_options(parser, ("alpha", "horizon"), required=True)
    _add_options(parser, CHAIN)
    _add_options(parser, ("scheme",))
    _add_options(parser, SHOWN)


def _add_report_parser(commands: Any) -> None:
    about = "which budgets keep a promise about the people in a file"
    parser = _add_parser(commands, "report", about, _report)
    _add_argument(parser, "observations")
    _add_options(parser, ("alpha", "horizon"), required=True)
    _add_options(parser, COLUMNS)
    _add_options(parser, NUMBERS)
    _add_options(parser, ("cycle", "first", "anyway", "workers", "html", "budgets", "json"))


def _add_publish_parser(commands: Any) -> None:
    about = "publish noisy counts that cannot leak twice"
    parser = _add_parser(commands, "publish", about, _publish)
    _add_argument(parser, "file", help_of=TO_PUBLISH)
    _add_argument(parser, "counts", nargs="?")
    _add_options(parser, CHAIN, help_of=TO_PUBLISH)
    _add_options(parser, ("data_step", "against", "anyway"), help_of=TO_PUBLISH)
    _add_options(parser, NEW_FILE)
    _add_options(parser, ("epsilon", "noise_multiplier", "without", "time_column", "numbered"))
    _add_options(parser, ("skip", "skip_until"))
    _add_options(parser, ("change", "resume"))
    _add_options(parser, ("csv", "json", "warn_below"))


def _add_ledger_parser(commands: Any) -> None:
    about = "what was spent and handed out"
    parser = _add_parser(commands, "ledger", about, _show_ledger)
    _add_argument(parser, "file")
    _add_options(parser, ("leakage", "noisy", "csv", "json", "html"), help_of=OF_LEDGER)
    _add_options(parser, ("backup", "witness", "warn_below"))


def _add_learn_parser(commands: Any) -> None:
    about = "learn a chain with a budget about each person's whole training series"
    parser = _add_parser(commands, "learn", about, _learn)
    _add_argument(parser, "observations")
    _add_argument(parser, "model_file")
    _add_options(parser, ("states", "steps_per_user", "epsilon"), required=True, help_of=TO_LEARN)
    _add_options(parser, ("alpha", "method", "confidence", "training_until", "elsewhere"))
    _add_options(parser, (*COLUMNS, "json"))


def _add_smooth_parser(commands: Any) -> None:
    about = "estimates of the true counts, with bands, for no further privacy cost"
    parser = _add_parser(commands, "smooth", about, _smooth)
    _add_argument(parser, "file")
    _add_options(parser, ("matrix", "first", "model", "no_chain"), help_of=TO_SMOOTH)
    _add_options(parser, ("total", "statistic", "online", "whole", "level"))
    _add_options(parser, ("csv", "plot", "column", "json", "witness"), help_of=TO_SMOOTH)


def _add_parser(
    commands: Any, name: str, about: str, run: Callable[[dict], int]
) -> argparse.ArgumentParser:
    """Add the parser of the command `name`; `about` is its help, and `run` maps its options to an
    exit status."""
    parser = commands.add_parser(
        name, help=about, description=about, epilog=EPILOG, allow_abbrev=False
    )
    parser.set_defaults(run=run)
    return parser


def _add_argument(
    parser: argparse.ArgumentParser,
    name: str,
    nargs: str | None = None,
    help_of: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Add the positional argument of this name; `help_of` may replace its help."""
    parser.add_argument(name, help=help_of.get(name, OPTIONS[name].help), nargs=nargs)


def _add_options(
    parser: argparse.ArgumentParser,
    names: Iterable[str],
    required: bool = False,
    help_of: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Add the options of these names; `help_of` replaces the help of some."""
    for name in names:
        option = OPTIONS[name]
        words: dict[str, Any] = {"help": help_of.get(name, option.help)}
        if option.kind is bool:
            words["action"] = "store_true"
        else:
            words |= {"type": READERS[option.kind], "required": required}
        parser.add_argument(f"--{name.replace('_', '-')}", **words, **MORE.get(name, {}))


def _check_outputs(command: str, options: dict) -> None:
    """ValueError if a file that is to be written is one that is read, another one to be written,
    or one of a publisher."""
    budgets_are_read = command == "leakage"
    has_publisher = "file" in options  # which checks what is written over
    needed = list(_given(options, INPUTS).values())
    if has_publisher:
        needed += files_beside(Path(options["file"]))
    for name, path in _given(options, OUTPUTS).items():
        if name != "budgets" or not budgets_are_read:
            check_spares(path, needed)
            if not has_publisher:
                check_is_no_publisher(path)
            _check_is_file(name, path)
        needed.append(path)
    _check_picture(options.get("plot"))
    if options.get("html"):
        import_module("matplotlib")  # whose absence is told before anything is computed


def _check_is_file(name: str, path: str) -> None:
    """ValueError for a folder in place of the file that the option of this name writes."""
    if path and Path(path).is_dir():
        raise ValueError(
            f"{name}= must be a file, found the folder {path}; give the name of a file in it"
        )


def _check_picture(path: str | None) -> None:
    """ValueError for a plot into a file of a kind that Matplotlib cannot write."""
    if not path:
        return
    from matplotlib.backend_bases import FigureCanvasBase

    ending = Path(path).suffix.lower().removeprefix(".")
    if ending not in FigureCanvasBase.get_supported_filetypes():
        raise ValueError(
            f"plot= must end in .png, .svg, .pdf or another kind of picture, found {path}; name it "
            "such as plot.png"
        )


def _check_parts(command: str, options: dict) -> None:
    """ValueError for an option that would be ignored, as it belongs to one that is not given."""
    if command in ("report", "learn"):
        return
    for name, whole in PARTS.get(command, PART_OF).items():
        is_given = options.get(name) not in (None, False)
        if is_given and options.get(whole) is None:
            remedy = f"give {whole}="
            if whole == "counts":
                remedy = "give them"
            raise ValueError(
                f"{name}= belongs to {whole}, found none; {remedy}, or leave {name}= out"
            )


def _check_spared(options: dict, publisher: Any) -> None:
    """ValueError if the table is to be written over the file of this publisher or another one."""
    for name in ("csv", "html"):
        if options.get(name):
            publisher.check_target(options[name])


def _given(options: dict, names: Iterable[str]) -> dict:
    return {name: options[name] for name in names if options.get(name) is not None}


def _report(options: dict) -> int:
    """Print the report on a file, and write what the options ask for; the exit status."""
    from tplreport.people.workers import local_workers

    sequences = tr.read_sequences(options["observations"], **_given(options, COLUMNS))
    numbers = _given(options, [*NUMBERS, "alpha", "horizon", "anyway", "first"])
    numbers["cycle"] = _cycle(options)
    with local_workers(options["workers"]):
        result = tr.report(sequences, title=Path(options["observations"]).name, **numbers)
    if options["json"]:
        print(_as_json(result.to_dict(), indent=2))
    else:
        print(result)
    if options["html"]:
        write_whole(Path(options["html"]), result.to_html().encode())
    if options["budgets"]:
        write_whole(Path(options["budgets"]), result.budgets.to_csv(index=False).encode())
    if result.withheld:
        return WITHHELD
    return USED


def _chain(options: dict) -> tuple[Any, Any]:
    """Backward and forward matrices or loss functions, or cycles of them; a warning if the data
    show no chain."""
    from tplreport.publishing.chain import both_sides

    _check_source(options)
    if options["data"] is None:
        return both_sides(**_matrices(options))
    from tplreport.reporting.believable import possible_chain

    data = tr.read_sequences(options["data"], **_given(options, COLUMNS))
    confidence = options["confidence"] or CONFIDENCE
    first = _first_phase(options)
    found = possible_chain(data, confidence, cycle=_cycle(options), first=first)
    if found.doubts:
        warnings.warn(f"do not rely on the chain of the data: {found.doubts}", stacklevel=2)
    return found.pair


def _first_phase(options: dict) -> str | None:
    """The phase of the first release: as typed, or that of the table of releases, if there is
    one."""
    releases = options.get("releases")
    if options["first"] is not None or releases is None:
        return options["first"]
    return releases.first_phase


def _cycle(options: dict) -> str | None:
    """By which cycle data are judged, as `tr.report` takes it."""
    if options["cycle"] == "none":
        return None
    return options["cycle"] or "auto"


def _check_source(options: dict) -> None:
    if (options["matrix"] is None) == (options["data"] is None):
        found = _listed(options, ("matrix", "data"))
        raise ValueError(f"the chain must be that of matrix= or data=, found {found}; give one")


def _listed(options: dict, names: Iterable[str]) -> str:
    """Those of some options that are given, for a message."""
    given = [f"{name}=" for name in names if options[name] not in (None, False)]
    return " and ".join(given) or "none"


def _matrices(options: dict, step: str | None = None) -> dict[str, Any]:
    """The forward side and the backward one, or without that the start; `step` is the length of
    the steps, if it is known."""
    from tplreport.reading.matrices import read_law
    from tplrepro.leakage.temporal import REQUIRED

    forward = _side(options["matrix"], options["first"], step)
    if options["backward"]:
        if options["start"]:
            raise ValueError(
                "the backward side must be that of backward= or start=, found both; give one"
            )
        backward = _side(options["backward"], options["first"], step)
        return {"backward": backward, "forward": forward, "start": None}
    start: Any = options["start"] or "habit"
    if start not in ("habit", "any"):
        start = read_law(start, forward.states)
    try:
        tpl.Cycle(forward).reverse(start)
    except ValueError as error:
        raise ValueError(_about_start(str(error), options["start"])) from None
    return {"backward": REQUIRED, "forward": forward, "start": start}


def _about_start(problem: str, start: str | None) -> str:
    """Why there is no backward side for a start, in place of the words of the package."""
    constraint, _, remedy = problem.partition("; ")
    if "initial distribution" in remedy:  # which is no option
        if start not in (None, "habit"):
            # Bounds come near the law of the habit, of which there must be one (`Cycle.reverse`).
            found = constraint.partition(", found ")[2]
            constraint = f"start={start} needs a chain that forgets how it began, found {found}"
        return f"{constraint}; give backward=, or smooth the matrix"
    if start not in (None, "habit", "any") and problem.startswith("start must "):
        return f"{start}: start= {problem.removeprefix('start ')}"
    return problem


def _side(path: str, first: str | None, step: str | None) -> Any:
    """The matrix or the cycle of a file, from the first phase on."""
    from tplreport.reading.matrices import read_chain

    chain = read_chain(path)
    if not isinstance(chain, tpl.Cycle):
        if first is not None:
            raise ValueError(
                f"first= is a phase of a cycle, found one matrix in {path}; leave it out, or write "
                "a matrix for each phase"
            )
        return chain
    if step is not None and chain.step is None:
        chain = tpl.Cycle(list(chain), chain.phases, step=step)
    if first is None:
        return chain
    names = list(map(str, chain.phases))
    if first not in names:
        raise ValueError(
            f"first= must be a phase of {path}, found {first!r}; give one of {', '.join(names)}"
        )
    return chain.starting_at(chain.phases[names.index(first)])


def _show_leakage_of_budgets(options: dict) -> int:
    """Show the leakages of budgets that are given; the exit status."""
    from tplreport.reading.matrices import read_releases
    from tplrepro.validation import EPSILON

    if (options["epsilon"] is None) == (options["budgets"] is None):
        found = _listed(options, ("epsilon", "budgets"))
        raise ValueError(
            f"budgets must be epsilon= with horizon=, or budgets=, found {found}; give one"
        )
    if options["budgets"] is None and options["horizon"] is None:
        raise ValueError(
            "epsilon= is the budget of each of several releases, found no horizon=; give how many "
            "there are"
        )
    if options["budgets"] is None:
        budgets = options["epsilon"]
    else:
        releases = read_releases(options["budgets"])
        options = options | {"releases": releases}
        budgets = releases.column(EPSILON)
        _say_which_column(releases)
    pair = _chain(options)
    leakage = tpl.temporal_privacy_leakage(budgets, *pair, horizon=options["horizon"])
    return _show_leakage(leakage, pair, options)


def _say_which_column(releases: Any) -> None:
    """Say of which column the budgets are where a report recommends it."""
    from tplreport.reading.matrices import RECOMMENDED
    from tplrepro.validation import EPSILON

    recommended = [name for name in releases.headings if name.startswith(RECOMMENDED)]
    if EPSILON not in releases.headings and recommended:
        print(
            f"budgets are those of the column {recommended[0]!r} in {releases.file}",
            file=sys.stderr,
        )


def _allocate_budgets(options: dict) -> int:
    """Show the budgets of a scheme, rounded down, with their leakages; the exit status."""
    from tplreport.reporting.allocation_schemes import SCHEMES, rounded_down

    pair = _chain(options)
    allocate_of = dict(zip(SCHEME_NAMES, SCHEMES.values(), strict=True))
    allocate = allocate_of[options["scheme"]]
    budgets = rounded_down(allocate(options["alpha"], *pair, horizon=options["horizon"]))
    return _show_leakage(tpl.temporal_privacy_leakage(budgets, *pair), pair, options)


def _show_leakage(leakage: Any, pair: tuple[Any, Any], options: dict) -> int:
    """Print leakages of releases, which count from 1 as in a report's budgets, with their phases
    if there are some."""
    from pandas import RangeIndex

    from tplreport.reading.matrices import PHASE

    numbered = replace(leakage, index=RangeIndex(1, len(leakage) + 1, name="t"))
    table = numbered.to_frame()
    cycles = [side for side in pair if isinstance(side, tpl.Cycle) and len(side) > 1]
    if cycles:
        phases = max(cycles, key=len).phases
        table.insert(0, PHASE, [phases[time % len(phases)] for time in range(len(leakage))])
    return _show(table, options, numbered)


def _show(table: Any, options: dict, plotted: Any = None) -> int:
    """Print a table, without its middle if it is long, and write what the options ask for;
    `plotted` is what has a method `plot`."""
    if options["json"]:
        form: dict = {"orient": "records", "date_format": "iso", "double_precision": 15}
        print(table.reset_index().to_json(**form, date_unit=_unit_of(table.index)))
    else:
        print(table.to_string(max_rows=60, float_format="{:.6g}".format))
    if options["csv"]:
        write_whole(Path(options["csv"]), table.to_csv(index=table.index.name is not None).encode())
    if options.get("plot"):
        _draw(plotted.plot(), options["plot"])
    return USED


def _draw(axes: Any, target: str) -> None:
    """Write a plot to a file, and the folders that it needs."""
    Path(target).parent.mkdir(parents=True, exist_ok=True)
    axes.figure.savefig(target)


def _unit_of(times: Any) -> str:
    """The coarsest unit, from milliseconds on, in which different times are written differently."""
    if times.dtype.kind != "M" and not hasattr(times, "tz"):
        return "ms"
    nanoseconds = times.as_unit("ns").asi8
    if not (nanoseconds % 10**6).any():
        return "ms"
    if not (nanoseconds % 1000).any():
        return "us"
    return "ns"


def _learn(options: dict) -> int:
    """Learn a chain privately, and print what is promised; the exit status."""
    sequences = tr.read_sequences(options["observations"], **_given(options, COLUMNS))
    elsewhere = options["elsewhere"]
    states = _states(options["states"])
    if elsewhere is not None and isinstance(states[0], int):
        elsewhere = int(elsewhere)
    model = tr.learn_privately(
        sequences,
        path=options["model_file"],
        states=states,
        until=_parse_time(options["training_until"]),
        elsewhere=elsewhere,
        confidence=options["confidence"] or CONFIDENCE,
        **_given(options, ("steps_per_user", "epsilon", "alpha", "method")),
    )
    if options["json"]:
        print(model.to_json())
    else:
        print(model)
    if options["alpha"] is not None:
        model.check_suffices(options["alpha"])
        if not options["json"]:
            print(f"Floor: {model.floor:.6g} nats at each time, for ever.")
    return USED


def _states(text: str) -> list:
    """The states that were typed, or those of a file."""
    from tplreport.reading.table import whole_numbers

    listed = text.split(",")
    if len(listed) == 1:
        listed = Path(text).read_text("utf-8").splitlines()
    named = [label.strip() for label in listed if label.strip()]
    return whole_numbers(named)


def _publish(options: dict) -> int:
    """Publish; a new file is gone again if the command is refused before anything is spent."""
    path = Path(options["file"])
    has_file = path.is_file() and path.stat().st_size > 0
    if options["change"] is not None and not has_file:
        raise ValueError(
            f"change= is for a file that has published, found none at {path}; leave it out"
        )
    if options["change"] is not None and options["model"] is not None:
        raise ValueError(
            "a model is a release of the time before the first, found model= with change=; give "
            "a public matrix=, or take a new file, whose releases add to those of this one"
        )
    options = options | {"releases": _planned_releases(options)}
    publisher = _open_publisher(options) if has_file else _make_publisher(options)
    try:
        return _use_publisher(publisher, options)
    except BaseException:
        if not has_file:
            publisher._remove_unused()
        raise


def _planned_releases(options: dict) -> Any:
    """The table of the plan, if there is one."""
    from tplreport.reading.matrices import read_releases

    if options["plan"] is None:
        return None
    return read_releases(options["plan"])


def _make_publisher(options: dict) -> tr.Publisher:
    """The publisher of a new file; without settings, an error that there is none."""
    from tplreport.reading.statistics import read_statistics

    settings = _given(options, ("alpha", "sensitivity", "delta", "burst"))
    floor = _floor(options)
    if floor is not None:
        settings["floor"] = floor
    if options["statistics"] is not None:
        settings["statistics"] = read_statistics(options["statistics"])
    plan = _plan(options)
    if options["model"] is not None:
        settings |= _given(options, ("model", "allow_large"))
        settings["step"] = _parse_time(options["step"] or "1")
        _check_is_alone(options)
        return tr.Publisher(options["file"], witness=options["witness"], **settings)
    if not settings and plan is None:
        return tr.Publisher(options["file"], witness=options["witness"])
    if plan is None and not _given(options, ("floor", "burst", "epsilon")):
        raise ValueError(
            "a new file needs the budget of each time, found none; "
            "give floor=, plan=, or delta= and burst=, or counts with epsilon="
        )
    settings["plan"] = plan
    settings["allow_large"] = options["allow_large"]
    settings["step"] = _parse_time(options["step"] or "1")
    settings |= _publishing_chain(options, plan)
    return tr.Publisher(options["file"], witness=options["witness"], **settings)


def _check_is_alone(options: dict) -> None:
    """ValueError for another chain beside a model, or a plan."""
    others = _given(options, ("matrix", "data", "plan"))
    if others:
        names = " and ".join(f"{name}=" for name in others)
        raise ValueError(f"model= holds the chain and its floor, found {names} too; leave it out")


def _floor(options: dict) -> Any:
    """The floor, or that of each phase, if there is one."""
    from tplreport.publishing.settings import LARGEST_FLOOR
    from tplreport.reading.matrices import number, read_by_phase
    from tplreport.reading.table import whole_numbers
    from tplrepro.validation import EPSILON

    text = options["floor"]
    if text in (None, LARGEST_FLOOR):
        return text
    value = number(text)
    if isfinite(value):
        return value
    by_phase = read_by_phase(text, EPSILON)
    return dict(zip(whole_numbers([*by_phase]), by_phase.values(), strict=True))


def _plan(options: dict) -> Any:
    """The budgets, or with a delta the noise multipliers, if there is a plan."""
    from tplrepro.validation import EPSILON, NOISE_MULTIPLIER

    releases = options["releases"]
    if releases is None:
        return None
    if options["delta"] is None:
        return releases.column(EPSILON)
    return releases.column(NOISE_MULTIPLIER)


def _check_times_of_plan(releases: Any, clock: Any) -> None:
    """ValueError unless the times beside a plan are the first ones of the clock, or count releases
    from 0 or 1 on, as a report does."""
    column = releases.heading_of_times
    times = releases.cells(column)
    expected = range(len(times))
    numbers = list(map(_parse_time, times))
    if numbers in (list(expected), list(range(1, len(times) + 1))):
        return
    remedy = f"leave the column {column!r} out to count from the first release"
    try:
        positions = clock.positions(numbers)
    except ValueError as error:
        raise ValueError(f"{releases.file}: {error}, or {remedy}") from None
    for position, wanted, text in zip(positions, expected, times, strict=True):
        if position != wanted:
            raise ValueError(
                f"{releases.file}: the times of a plan must be those of its releases, found {text} "
                f"for release {wanted + 1}, which is that of {clock.label(wanted)}; correct them, "
                f"or {remedy}"
            )


def _heed_times_of_plan(publisher: tr.Publisher, counts: Any, options: dict) -> None:
    """ValueError for a plan whose times are not those of the releases; a warning if no release says
    when they begin."""
    releases = options["releases"]
    if releases is None or releases.heading_of_times is None:
        return
    begin = []
    if options["skip"]:
        begin = [_parse_time(options["skip"])]
    elif counts is not None and counts.index.name is not None and not options["numbered"]:
        begin = [counts.index[0]]
    elif counts is not None:
        begin = [number_rows(counts, publisher).index[0]]
    if not begin and not len(publisher):
        warnings.warn(
            f"the times in the column {releases.heading_of_times!r} of {releases.file} are "
            "compared with those of releases only where it is given with them, found none; give "
            "plan= with the first counts again",
            stacklevel=2,
        )
        return
    with publisher._reading() as store:
        clock = publisher._clock(store, begin)
    _check_times_of_plan(releases, clock)


def _publishing_chain(options: dict, plan: Any) -> dict[str, Any]:
    """Both sides, or the forward one and the start; of data, a chain that a report relies on,
    too."""
    _check_source(options)
    if options["data"] is None:
        return _matrices(options, _duration(options["step"]))
    from tplreport.reporting.believable import trusted_chain
    from tplreport.reporting.plans import UPPER

    if options["alpha"] is None:
        raise ValueError("a new file needs the level that every TPL keeps, found none; give alpha=")
    budgets = None
    if options["delta"] is None:
        budgets = plan
    backward, forward = trusted_chain(
        _publishing_data(options),
        options["alpha"],
        budgets,
        confidence=options["confidence"] or CONFIDENCE,
        against=options["against"] or UPPER,
        cycle=_cycle(options),
        first=_first_phase(options),
        anyway=options["anyway"],
    )
    return {"backward": backward, "forward": forward, "start": None}


def _duration(step: Any) -> str | None:
    """A step that is typed with its unit; None for a whole number, or none."""
    if not isinstance(step, str) or re.fullmatch(r"\d+", step):
        return None
    return step


def _publishing_data(options: dict) -> Any:
    """The sequences of the data, whose step is another option than that of the releases."""
    columns = _given(options, COLUMNS) | {"step": options["data_step"]}
    data = tr.read_sequences(options["data"], **columns)
    _check_steps(options, data.step)
    return data


def _check_steps(options: dict, of_data: Any) -> None:
    """ValueError if moves between times of one distance are to protect releases of another one;
    `of_data` is that of all observations, if they have one."""
    from pandas import Timedelta

    from tplreport.reading.time_steps import about, in_units

    duration = _duration(options["step"])
    if duration is None or of_data is None or Timedelta(duration) == Timedelta(of_data):
        return
    releases = Timedelta(duration).total_seconds()
    observations = Timedelta(of_data).total_seconds()
    found = f"observations {about(observations)} apart"
    if options["data_step"] is not None:
        found = f"data_step={options['data_step']}"
    remedies = []
    if options["change"] is None:
        remedies.append(f"give step={in_units(observations)}")
    if options["data_step"] is not None or releases > observations:
        remedies.append(f"give data_step={in_units(releases)}")
    if not remedies:
        remedies.append("take observations as often as releases")
    raise ValueError(
        "the chain must be that of steps as long as those of the releases, "
        f"found {found} and step={in_units(releases)}; {', or '.join(remedies)}"
    )


def _open_publisher(options: dict) -> tr.Publisher:
    """The publisher of a file that exists; ValueError if it was made with other settings than
    those that are given."""
    publisher = tr.Publisher(options["file"], witness=options["witness"])
    as_made = options
    if options["change"] is not None:
        as_made = options | dict.fromkeys(("matrix", "backward", "start", "data", "floor"))
    different = _different_settings(publisher, as_made)
    if options["resume"] is None:
        publisher._check_witness()
    if different:
        names = " or ".join(f"{name}=" for name in different)
        raise ValueError(
            f"{publisher.path} must be used as it was made, found another {names}; leave out what "
            "it knows, or take a new file, whose releases add to those of this one"
        )
    return publisher


def _different_settings(publisher: tr.Publisher, options: dict) -> list[str]:
    """The options that are given and are not those that the file was made with."""
    from tplreport.publishing.chain import Chain, floor_as_stored
    from tplreport.publishing.clock import Clock
    from tplreport.publishing.learned import learned_chain
    from tplreport.publishing.settings import LARGEST_FLOOR, largest_floor
    from tplreport.publishing.statistics import checked_statistics
    from tplreport.reading.statistics import read_statistics

    given = _given(options, ("alpha", "sensitivity", "delta", "burst"))
    floor = _floor(options)
    if floor == LARGEST_FLOOR:
        floor = largest_floor(publisher.settings["alpha"], Chain.of_settings(publisher.settings))
    if floor is not None:
        given["floor"] = floor_as_stored(floor, publisher.settings)
    plan = _plan(options | {"delta": publisher.settings["delta"]})
    if plan is not None:
        given["plan"] = plan.tolist()
    if options["step"] is not None:
        given["step"] = Clock.checked_step(_parse_time(options["step"]))
    if options["statistics"] is not None:
        table = read_statistics(options["statistics"])
        given["statistics"] = checked_statistics(table, publisher.settings["step"])
    if options["model"] is not None:
        alpha = publisher.settings["alpha"]
        given["model"] = learned_chain(options["model"], alpha).content
    different = [name for name, value in given.items() if publisher.settings.get(name) != value]
    sources = [
        name for name in ("matrix", "backward", "start", "data") if options[name] is not None
    ]
    if sources and not _has_chain(publisher, options):
        different += sources
    return different


def _has_chain(publisher: tr.Publisher, options: dict) -> bool:
    """Whether a file was made with the matrices or the data that are given."""
    from tplreport.publishing.chain import is_made_with

    kept = {name: publisher.settings[name] for name in ("alpha", "delta", "step")}
    chain = _publishing_chain(options | kept | {"anyway": True}, publisher.settings["plan"])
    return is_made_with(publisher.settings, **chain)


def _use_publisher(publisher: tr.Publisher, options: dict) -> int:
    """Resume, skip and publish what the options ask for."""
    _check_spared(options, publisher)
    _check_level(publisher, options)
    counts = None
    change = None
    if options["counts"] is not None:
        counts = _read_counts(publisher, options)
    if options["change"] is not None:
        change = _chain_to_follow(publisher, options)
    _heed_times_of_plan(publisher, counts, options)
    if options["resume"] is not None:
        publisher.resume(_parse_time(options["resume"]))
    if options["skip"]:
        publisher.skip(_parse_time(options["skip"]), _parse_time(options["skip_until"]))
    if change is not None:
        time = _parse_time(options["change"])
        publisher.change_chain(time, **change, floor=_floor(options))
    if counts is None:
        print(_remaining(publisher) if options["json"] else publisher)
    else:
        _publish_counts(publisher, counts, options)
    return _status_of_remaining(publisher, options)


def _chain_to_follow(publisher: tr.Publisher, options: dict) -> dict[str, Any]:
    """The chain of a change, whose law is that of the earlier chain unless a start is given."""
    kept = {name: publisher.settings[name] for name in ("alpha", "delta")}
    step = str(publisher.settings["step"])
    chain = _publishing_chain(options | kept | {"step": step}, None)
    if options["start"] is None:
        chain["start"] = None
    return chain


def _check_level(publisher: tr.Publisher, options: dict) -> None:
    """ValueError for a level of what remains where no budgets do."""
    if options["warn_below"] is not None and publisher.settings["delta"] is not None:
        raise ValueError("warn_below= is a level of budgets, found noise multipliers; leave it out")


def _status_of_remaining(publisher: tr.Publisher, options: dict) -> int:
    """The exit status, and a warning, where less remains than the level that is given."""
    level = options["warn_below"]
    if level is None:
        return USED
    remaining = publisher.remaining
    if remaining >= level:
        return USED
    warnings.warn(
        f"{publisher.path.name}: {remaining:.6g} nats remain for the next time, less than "
        f"warn_below={level:g}; skip some times, or end the series",
        stacklevel=2,
    )
    return LOW


def _publish_counts(publisher: tr.Publisher, counts: Any, options: dict) -> None:
    """Publish a frame of counts, whose index holds times if it has a name, and show the noisy one;
    say what got noise, and what not."""
    has_times = counts.index.name is not None
    table = counts
    if not (has_times or options["numbered"]):
        _check_no_times(counts, publisher)
    if options["numbered"] or not has_times:
        table = number_rows(counts, publisher)
    noisy = _published(publisher, table, options).set_axis(counts.index)
    said = f"noise was added to {', '.join(map(str, counts.columns))}"
    if has_times:
        said += f", and not to {counts.index.name}"
    print(said, file=sys.stderr)
    _show(noisy, options)


def _check_no_times(counts: Any, publisher: tr.Publisher) -> None:
    """ValueError for a column of times that would get noise as a count, since nothing says that it
    is one; or if there is none, and times are dates."""
    from tplreport.reading.matrices import OF_RELEASES
    from tplreport.reading.table import plain_name

    known = publisher.to_frame().columns
    likely = [name for name in counts if plain_name(name) in OF_RELEASES and name not in known]
    if likely:
        raise ValueError(
            f"each column must be a count, found {likely[0]!r}, which may be one of times, and "
            f"would get noise; give time_column={likely[0]!r}, or numbered= if it is a count"
        )
    step = publisher.settings["step"]
    if isinstance(step, str):
        from tplreport.reading.time_steps import in_units_of

        raise ValueError(
            f"counts need a column of times, as releases are {in_units_of(step)} apart, found "
            f"{', '.join(map(repr, counts))}; name it 'time', or by time_column="
        )


def _published(publisher: tr.Publisher, table: Any, options: dict) -> Any:
    """The noisy table of counts, with the columns of several statistics side by side."""
    from pandas import concat

    from tplreport.publishing.statistics import statistic_names
    from tplreport.publishing.values import by_statistic, in_one_table

    names = statistic_names(publisher.settings)
    epsilon = options["epsilon"]
    without = [name.strip() for name in (options["without"] or "").split(",") if name.strip()]
    if not names:
        multiplier = options["noise_multiplier"]
        return publisher.publish_table(table, epsilon, noise_multiplier=multiplier, without=without)
    noisy = publisher.publish_table(by_statistic(table, names), epsilon, without=without)
    parts = [in_one_table(part, name) for name, part in noisy.items()]
    return concat(parts, axis=1).reindex(table.index)


def _remaining(publisher: tr.Publisher) -> str:
    """What remains, in JSON: null once a plan of noise multipliers has ended."""
    found: dict = {"remaining": publisher.remaining}
    if not isfinite(publisher.remaining):
        found["note"] = "the plan has ended"
    return _as_json(found)


def _as_json(content: Any, indent: int | None = None) -> str:
    """JSON, which has no word for infinite numbers and NaN: they are null."""
    return json.dumps(_finite(content), ensure_ascii=False, allow_nan=False, indent=indent)


def _finite(content: Any) -> Any:
    """The same content with None for numbers that are infinite or NaN."""
    if isinstance(content, dict):
        return {name: _finite(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(value) for value in content]
    if isinstance(content, float) and not isfinite(content):
        return None
    return content


def _read_counts(publisher: tr.Publisher, options: dict) -> Any:
    """The counts of a file or of standard input, where the heading may be left out later."""
    from tplreport.publishing.statistics import statistic_names
    from tplreport.reading.table import parse_counts, read_counts

    time = options["time_column"]
    are_several = len(statistic_names(publisher.settings)) > 0
    if options["counts"] != "-":
        return read_counts(options["counts"], time, may_be_missing=are_several)
    columns = publisher.to_frame().columns.tolist()
    content = _standard_input()
    return parse_counts(content, "standard input", time, columns, may_be_missing=are_several)


def _standard_input() -> bytes:
    """All of it, in memory: true counts are written into no file."""
    if sys.stdin is None:
        raise ValueError(
            "standard input must be open for counts from -, found it closed; name a file"
        )
    return sys.stdin.buffer.read()


def number_rows(counts: Any, publisher: tr.Publisher) -> Any:
    """The counts with the numbers of their rows as times, from 1 unless the file counts from
    another one; ValueError if its times are dates."""
    from pandas import RangeIndex

    first = 1
    if len(publisher) > 0:
        first = publisher.times[0]
        if hasattr(first, "year"):
            raise ValueError(
                f"times must be dates as before, the first of them {first}, found numbers of rows; "
                "give a column of times, and leave numbered= out"
            )
    return counts.set_axis(RangeIndex(first, first + len(counts)))


def _parse_time(text: str | None) -> Any:
    """A time that was typed, a whole number or a text; None if there was none."""
    if not text:
        return None
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    return text


def _leakage_table(publisher: tr.Publisher) -> Any:
    """The leakages of all times; of a plan of Gaussian noise their epsilon at its delta."""
    from pandas import DataFrame

    leakage = publisher.leakage
    delta = publisher.settings["delta"]
    if delta is None:
        return leakage.to_frame()
    return DataFrame({"epsilon": leakage.epsilon(delta), "delta": delta}, publisher.times)


def _show_ledger(options: dict) -> int:
    """Show what a publisher's file holds: its ledger, leakages or noisy values; the exit status."""
    if options["leakage"] and options["noisy"]:
        raise ValueError("one table is shown, found leakage= and noisy=; give one")
    publisher = tr.Publisher(options["file"], witness=options["witness"])
    publisher._check_witness()
    _check_spared(options, publisher)
    _check_level(publisher, options)
    if options["backup"]:
        publisher.backup(options["backup"])
    if options["html"]:
        from tplreport.reporting.status_page import status_page

        write_whole(Path(options["html"]), status_page(publisher).encode())
    if options["leakage"]:
        table = _leakage_table(publisher)
    elif options["noisy"]:
        table = publisher.to_frame()
    else:
        table = publisher.ledger.set_index("time")
    _show(table, options)
    return _status_of_remaining(publisher, options)


def _smoothing_chain(publisher: tr.Publisher, options: dict) -> Any:
    """The public chain, or that of a model; None for none."""
    from tplreport.learning.model import FLOOR, PrivateModel

    if options["matrix"] is not None:
        step = _duration(str(publisher.settings["step"]))
        return _side(options["matrix"], options["first"], step)
    if options["model"] is None:
        return None
    model = PrivateModel.read(options["model"])
    if model.request.method == FLOOR:
        raise ValueError(
            f"model= must hold noisy counts, found {options['model']} with one number, the floor; "
            "give a public matrix=, or no_chain="
        )
    return model.matrix


def _smooth(options: dict) -> int:
    """Show the estimates of a publisher's counts; the exit status."""
    chains = _given(options, ("matrix", "model"))
    if len(chains) + options["no_chain"] != 1:
        found = _listed(options, ("matrix", "model", "no_chain"))
        raise ValueError(
            "the chain must be that of matrix=, which is public, of model=, or no_chain=, found "
            f"{found}; give one"
        )
    publisher = tr.Publisher(options["file"], witness=options["witness"])
    publisher._check_witness()
    _check_spared(options, publisher)
    if options["plot"]:
        publisher.check_target(options["plot"])
    chosen = _given(options, ("total", "statistic", "online", "whole", "level"))
    smoothed = publisher.smoothed(chain=_smoothing_chain(publisher, options), **chosen)
    print(smoothed, file=sys.stderr)
    status = _show(smoothed.to_frame(), options | {"plot": None})
    if options["plot"]:
        _draw(smoothed.plot(options["column"]), options["plot"])
    return status


if __name__ == "__main__":
    sys.exit(main())
