"""The console command ``tplrepro``: a subcommand for each job, of which ``--help`` lists the
options."""

import argparse
import json
import os
import re
import sys
import warnings
from codecs import lookup
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from io import TextIOWrapper
from math import isfinite
from pathlib import Path
from typing import Any

import tplreport as tr
import tplrepro as tpl
from tplreport.address_space import spare_address_space, told
from tplreport.files import check_spares, write_whole
from tplreport.publishing.clock import Clock
from tplreport.publishing.mark import files_beside
from tplreport.reading.matrices import read_column, read_matrix
from tplrepro.lazy import optional_import
from tplrepro.validation import EPSILON, NOISE_MULTIPLIER

#: That the true chain is among those that the data leave possible, unless another is given.
CONFIDENCE = 0.95
USED, WRONG, WITHHELD, REFUSED = 0, 2, 3, 4
#: As shells count a program that a signal ended: 128 and the number of SIGINT, SIGPIPE.
INTERRUPTED, PIPE = 130, 141
EPILOG = (
    "exit status: 0 done; 2 arguments, data or files that cannot be used; 3 a report withholds its advice, or the data "
    "show no chain to publish by; 4 a release was refused, because a leakage would exceed alpha"
)
#: Exit status by the name of an error, whose import may fail, too.
STATUS = {"LeakageExceededError": REFUSED, "DoubtfulModelError": WITHHELD}
# in the order of `schemes.SCHEMES`
SCHEME_NAMES = ("composed", "constant", "quantification", "optimal")
#: Options that go to the reader of files, with their types, and their help.
COLUMNS = {
    "user": (str, "column of users; by default found by its usual names, as the others"),
    "time": (str, "column of times"),
    "state": (str, "column of states"),
    "latitude": (str, "column of latitudes, with --longitude and --cell-km in place of --state"),
    "longitude": (str, "column of longitudes"),
    "cell_km": (float, "side of the cells that positions fall into, km"),
    "step": (
        str,
        "time between two time points, such as 1h; without it each observation is a step",
    ),
    "max_gap": (str, "how long the last known state holds, or a sequence may pause, such as 6h"),
    "time_format": (
        str,
        "format of times, such as '%%d.%%m.%%Y %%H:%%M'; by default ISO 8601 or numbers",
    ),
    "time_unit": (
        str,
        "unit of times that are numbers: s, ms, us, ns, min, h, D, or excel for days of a spreadsheet",
    ),
    "same_time": (
        str,
        "which of a user's states at one time counts: first, last or rows (their order); else an error",
    ),
    "until": (str, "column of the ends of spells, which begin at --time"),
    "bins": (int, "number of bins of a state that is a measured number"),
    "binning": (str, "bins of equal shares (quantiles, the default) or of equal width"),
    "order": (str, "rows, if there are no times and the rows of each user are in order of time"),
    "missing": (
        str,
        "texts that stand for no value, such as NA,null; by default the usual ones, with a warning",
    ),
    "box": (
        str,
        "south,north,west,east of the cells in degrees; a position outside ends a sequence",
    ),
}
#: Those that go to `tr.report` beside --alpha and --horizon.
NUMBERS = {
    "draws": (int, "draws for the interval of the leakage; 0: none"),
    "against": (
        str,
        "whom the plan withstands: 'the upper end', 'the worst user's habits' or 'any prior'",
    ),
    "epsilon": (
        float,
        "budget of each release, nats; by default alpha in a report, the floor where one publishes",
    ),
    "delta": (
        float,
        "Gaussian noise that keeps (alpha, delta); to publish it, --plan has noise multipliers",
    ),
    "sensitivity": (
        float,
        "by how much one user may change the counts of a time: 2 for a histogram, 1 for one count",
    ),
    "smoothing": (float, "steps added to each row of counts, spread over the states"),
    "confidence": (
        float,
        "that the true chain is among those that the plan withstands, such as 0.95",
    ),
    "count": (float, "usual size of a count"),
}
#: Help of options that mean something else to `publish`.
TO_PUBLISH = {
    "step": "of a new file: time between two releases, such as 1h; without it times are whole numbers",
    "against": "whom --plan withstands, too, where users of --data differ: 'the worst user's habits'",
}
#: Options -> what they belong to, for all subcommands that take a chain, and for `publish`.
PART_OF = dict.fromkeys((*COLUMNS, "confidence"), "data") | {"backward": "matrix"}
PART_OF_PUBLISHING = PART_OF | {
    **dict.fromkeys(("data_step", "against", "anyway"), "data"),
    **dict.fromkeys(("epsilon", "time_column", "numbered", "csv"), "counts"),
    "skip_until": "skip",
}
PART_OF_PUBLISHING.pop("step")
#: What options have beside their type and help.
MORE: dict[str, dict] = {
    "scheme": {"choices": SCHEME_NAMES, "default": SCHEME_NAMES[-1]},
    "resume": {"nargs": "?", "const": ""},
}
#: Options that name files which are read, and those that name files which are written.
INPUTS = ("observations", "counts", "data", "matrix", "backward", "plan", "witness")
OUTPUTS = ("html", "budgets", "csv", "plot", "backup")
#: All options and arguments; a flag is bool.
OPTIONS = COLUMNS | NUMBERS
OPTIONS |= {
    "observations": (str, "file of observations: who was in which state at which time"),
    "file": (str, "the publisher's file; a new one needs --alpha, --sensitivity and a chain"),
    "counts": (str, "CSV of counts with a column of times; -: standard input"),
    "alpha": (float, "level that every time point keeps, nats"),
    "horizon": (int, "number of releases T"),
    "anyway": (bool, "rely on the chain of the data though a check refuses or doubts it"),
    "html": (str, "write the report as a page to this file"),
    "budgets": (
        str,
        "CSV of budgets: a report writes a column for each plan; leakage reads the column epsilon",
    ),
    "json": (bool, "print JSON in place of text; null stands for what is infinite or missing"),
    "matrix": (
        str,
        "CSV of the forward matrix Pr(next state | state): a row for each state, with or without names",
    ),
    "backward": (str, "CSV of the backward matrix; by default that of a stationary chain"),
    "data": (str, "observations in place of --matrix: every chain that they leave possible counts"),
    "csv": (str, "write the table to this CSV file"),
    "plot": (str, "draw the leakages into this file (.png, .svg, .pdf)"),
    "scheme": (
        str,
        f"how budgets spread over time: {', '.join(SCHEME_NAMES)} (the default, of least error)",
    ),
    "data_step": (
        str,
        "time between two time points of --data; without it each observation is a step",
    ),
    "floor": (float, "of a new file: the budget of each time, for ever"),
    "plan": (
        str,
        "of a new file, in place of --floor: CSV of budgets, such as that of a report, whose recommended plan counts; "
        "with --delta of noise multipliers",
    ),
    "allow_large": (bool, "of a new file: alpha may be above 20 nats"),
    "time_column": (str, "column of times of the counts; by default found by its usual names"),
    "numbered": (bool, "times are the numbers of the rows, and the column of times stays as it is"),
    "skip": (str, "let this time pass without a release, before anything is published"),
    "skip_until": (str, "the last of several times to skip"),
    "resume": (
        str,
        "publish from a copy: the last time that may have been published elsewhere, or none",
    ),
    "leakage": (bool, "the leakages of all times, in place of what was spent"),
    "noisy": (bool, "the noisy counts, in place of what was spent"),
    "witness": (
        str,
        "a second mark of the publisher's file, on another disk: a disk put back as a whole is noticed",
    ),
    "backup": (str, "write a copy of the file, which is whole also while others publish"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with these arguments, by default those of the process; returns the exit
    status."""
    options = vars(_parser().parse_args(arguments))
    run, command = options.pop("run"), options.pop("command")
    _write_any_label()
    try:
        status = _run(run, command, options)
        if sys.stdout is not None:
            sys.stdout.flush()
        return status
    except BrokenPipeError:
        # what reads it, such as head, has had enough; else Python complains when it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE
    except KeyboardInterrupt:
        print(f"tplrepro {command}: interrupted", file=sys.stderr)
        return INTERRUPTED


def _write_any_label() -> None:
    """Write UTF-8 where the locale has only ASCII, in which many a label cannot be written."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and lookup(stream.encoding).name == "ascii":
            stream.reconfigure(encoding="utf-8")


def _run(run: Callable[[dict], int], command: str, options: dict) -> int:
    try:
        spare_address_space()
        with optional_import(), warnings.catch_warnings():
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
        # a fault of ours
        if isinstance(error, RuntimeError) and "start new thread" not in str(error):
            raise
        print(f"tplrepro {command}: {_as_typed(told(error), options)}", file=sys.stderr)
        return STATUS.get(type(error).__name__, WRONG)


def _as_typed(message: str, options: dict) -> str:
    """A message with options as they are typed here: --time-format '%d' for time_format='%d'."""

    def option(found: re.Match) -> str:
        space = " " if found[2] and found[2] not in ",;.)" else ""
        return f"--{found[1].replace('_', '-')}{space}{found[2]}"

    return re.sub(rf"\b({'|'.join(options)})=(?:True\b)?(\S?)", option, message)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tplrepro", allow_abbrev=False, epilog=EPILOG)
    parser.add_argument("--version", action="version", version=f"tplrepro {tpl.__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    chain, shown = ("matrix", "backward", "data", *COLUMNS, "confidence"), ("csv", "plot", "json")
    trusted = (*chain, "data_step", "against", "anyway")
    reported = (*COLUMNS, *NUMBERS, "anyway", "html", "budgets", "json")
    new_file = ("alpha", "sensitivity", "floor", "plan", "delta", "allow_large", "witness")
    once = ("epsilon", "time_column", "numbered", "skip", "skip_until", "resume", "csv", "json")
    asked = ("leakage", "noisy", "csv", "json", "backup", "witness")
    for run, about, required, names in (
        (
            _leakage,
            "what a series of budgets leaks over time",
            (),
            (*chain, "epsilon", "horizon", "budgets", *shown),
        ),
        (
            _budgets,
            "budgets that keep a level at every time",
            ("alpha", "horizon"),
            (*chain, "scheme", *shown),
        ),
        (
            _report,
            "which budgets keep a promise about the people in a file",
            ("alpha", "horizon"),
            reported,
        ),
        (_publish, "publish noisy counts that cannot leak twice", (), (*trusted, *new_file, *once)),
        (_ledger, "what was spent and handed out", (), asked),
    ):
        words: dict[str, Any] = {
            "help": about,
            "description": about,
            "epilog": EPILOG,
            "allow_abbrev": False,
        }
        command = commands.add_parser(run.__name__.strip("_"), **words)
        command.set_defaults(run=run)
        for name in {
            _report: ["observations"],
            _publish: ["file", "counts"],
            _ledger: ["file"],
        }.get(run, []):
            command.add_argument(
                name, help=OPTIONS[name][1], nargs="?" if name == "counts" else None
            )
        for name in (*required, *names):
            kind, about = OPTIONS[name]
            if run is _publish:
                about = TO_PUBLISH.get(name, about)
            words = (
                {"action": "store_true"}
                if kind is bool
                else {"type": kind, "required": name in required}
            )
            command.add_argument(
                f"--{name.replace('_', '-')}", help=about, **words, **MORE.get(name, {})
            )
    return parser


def _check_outputs(command: str, options: dict) -> None:
    """ValueError if a file that is to be written is one that is read, or another one to be
    written."""
    budgets_are_read = command == "leakage"
    needed = [*_given(options, INPUTS).values()]
    if "file" in options:
        needed += files_beside(Path(options["file"]))
    for name, path in _given(options, OUTPUTS).items():
        if name != "budgets" or not budgets_are_read:
            check_spares(path, needed)
        needed.append(path)


def _check_parts(command: str, options: dict) -> None:
    """ValueError for an option that would be ignored, as it belongs to one that is not given."""
    if command == "report":
        return
    parts = PART_OF_PUBLISHING if command == "publish" else PART_OF
    for name, whole in parts.items():
        if options.get(name) not in (None, False) and options.get(whole) is None:
            remedy = "give them" if whole == "counts" else f"give {whole}="
            raise ValueError(
                f"{name}= belongs to {whole}, found none; {remedy}, or leave {name}= out"
            )


def _check_spared(options: dict, publisher: Any) -> None:
    """ValueError if the table is to be written over the file of this publisher or another one."""
    if options["csv"]:
        publisher.check_target(options["csv"])


def _given(options: dict, names: Iterable[str]) -> dict:
    return {name: options[name] for name in names if options.get(name) is not None}


def _report(options: dict) -> int:
    sequences = tr.read_sequences(options["observations"], **_given(options, COLUMNS))
    numbers = _given(options, [*NUMBERS, "alpha", "horizon", "anyway"])
    result = tr.report(sequences, title=Path(options["observations"]).name, **numbers)
    print(_as_json(result.to_dict(), indent=2) if options["json"] else result)
    if options["html"]:
        write_whole(Path(options["html"]), result.to_html().encode())
    if options["budgets"]:
        write_whole(Path(options["budgets"]), result.budgets.to_csv(index=False).encode())
    return WITHHELD if result.withheld else USED


def _chain(options: dict) -> tuple[Any, Any]:
    """Backward and forward matrices or loss functions; a warning if the data show no chain."""
    _check_source(options)
    if options["data"] is None:
        return _matrices(options)
    from tplreport.reporting.believable import counted_steps, doubts_about
    from tplreport.reporting.plans import upper_pair

    data = tr.read_sequences(options["data"], **_given(options, COLUMNS))
    if doubts := doubts_about(data):
        warnings.warn(f"do not rely on the chain of the data: {doubts}", stacklevel=2)
    return upper_pair(*counted_steps(data), options["confidence"] or CONFIDENCE)


def _check_source(options: dict) -> None:
    if (options["matrix"] is None) == (options["data"] is None):
        raise ValueError(
            "the chain must be that of matrix= or data=, found both or neither; give one"
        )


def _matrices(options: dict) -> tuple[Any, Any]:
    """Backward and forward matrix; without the first that of a stationary chain."""
    forward = read_matrix(options["matrix"])
    if options["backward"]:
        return read_matrix(options["backward"]), forward
    try:
        return forward.reverse(forward.stationary()), forward
    except ValueError as error:
        reason = str(error).partition(";")[0]
        raise ValueError(f"{reason}; give backward=, or smooth the matrix") from None


def _leakage(options: dict) -> int:
    if (options["epsilon"] is None) == (options["budgets"] is None):
        raise ValueError(
            "budgets must be epsilon= with horizon=, or budgets=, found both or neither; give one"
        )
    budgets = options["epsilon"]
    if options["budgets"] is not None:
        budgets = read_column(options["budgets"], EPSILON)
    leakage = tpl.temporal_privacy_leakage(budgets, *_chain(options), horizon=options["horizon"])
    return _show_leakage(leakage, options)


def _budgets(options: dict) -> int:
    from tplreport.reporting.allocation_schemes import SCHEMES, rounded_down

    pair, allocate = _chain(options), [*SCHEMES.values()][SCHEME_NAMES.index(options["scheme"])]
    budgets = rounded_down(allocate(options["alpha"], *pair, horizon=options["horizon"]))
    return _show_leakage(tpl.temporal_privacy_leakage(budgets, *pair), options)


def _show_leakage(leakage: Any, options: dict) -> int:
    """Print leakages of releases, which count from 1 as in a report's budgets."""
    from pandas import RangeIndex

    numbered = replace(leakage, index=RangeIndex(1, len(leakage) + 1, name="t"))
    return _show(numbered.to_frame(), options, numbered)


def _show(table: Any, options: dict, plotted: Any = None) -> int:
    """Print a table, without its middle if it is long, and write what the options ask for."""
    if options["json"]:
        form: dict = {"orient": "records", "date_format": "iso", "double_precision": 15}
        print(table.reset_index().to_json(**form, date_unit=_unit_of(table.index)))
    else:
        print(table.to_string(max_rows=60, float_format="{:.6g}".format))
    if options["csv"]:
        write_whole(Path(options["csv"]), table.to_csv(index=table.index.name is not None).encode())
    if options.get("plot"):
        plotted.plot().figure.savefig(options["plot"])
    return USED


def _unit_of(times: Any) -> str:
    """The coarsest unit, from milliseconds on, in which different times are written differently."""
    if times.dtype.kind != "M" and not hasattr(times, "tz"):
        return "ms"
    nanoseconds = times.as_unit("ns").asi8
    if not (nanoseconds % 10**6).any():
        return "ms"
    return "ns" if (nanoseconds % 1000).any() else "us"


def _publish(options: dict) -> int:
    """Publish; a new file is gone again if the command is refused before anything is spent."""
    path = Path(options["file"])
    has_file = path.is_file() and path.stat().st_size > 0
    publisher = _opened(options) if has_file else _made(options)
    try:
        return _use(publisher, options)
    except BaseException:
        if not has_file:
            publisher._remove_unused()
        raise


def _made(options: dict) -> tr.Publisher:
    """The publisher of a new file; without settings, an error that there is none."""
    settings = _given(options, ("alpha", "sensitivity", "floor", "delta"))
    plan = _plan(options)
    if not settings and plan is None:
        return tr.Publisher(options["file"], witness=options["witness"])
    if plan is None and options["floor"] is None and options["epsilon"] is None:
        raise ValueError(
            "a new file needs the budget of each time, found none; give floor= or plan=, or counts with epsilon="
        )
    settings |= {"plan": plan, "allow_large": options["allow_large"]}
    settings |= {"step": _time(options["step"] or "1")}
    backward, forward = _publishing_chain(options, plan)
    return tr.Publisher(
        options["file"],
        backward=backward,
        forward=forward,
        witness=options["witness"],
        **settings,
    )


def _plan(options: dict) -> Any:
    """The budgets, or with a delta the noise multipliers, if there is a plan."""
    if options["plan"] is None:
        return None
    return read_column(options["plan"], EPSILON if options["delta"] is None else NOISE_MULTIPLIER)


def _publishing_chain(options: dict, plan: Any) -> tuple[Any, Any]:
    """Backward and forward matrices or loss functions, which a report relies on, too."""
    _check_source(options)
    if options["data"] is None:
        return _matrices(options)
    from tplreport.reporting.believable import trusted_chain
    from tplreport.reporting.plans import UPPER

    if options["alpha"] is None:
        raise ValueError("a new file needs the level that every TPL keeps, found none; give alpha=")
    data = _publishing_data(options)
    return trusted_chain(
        data,
        options["alpha"],
        plan if options["delta"] is None else None,
        confidence=options["confidence"] or CONFIDENCE,
        against=options["against"] or UPPER,
        anyway=options["anyway"],
    )


def _publishing_data(options: dict) -> Any:
    """The sequences of the data, whose step is another option than that of the releases."""
    columns = _given(options, COLUMNS) | {"step": options["data_step"]}
    data = tr.read_sequences(options["data"], **columns)
    _check_steps(options["step"], options["data_step"])
    return data


def _check_steps(step: str | int | None, data_step: str | None) -> None:
    """ValueError if moves between times of one distance are to protect releases of another one."""
    from pandas import Timedelta

    if data_step is None or not isinstance(step, str) or re.fullmatch(r"\d+", step):
        return
    if Timedelta(step) != Timedelta(data_step):
        raise ValueError(
            f"the chain must be that of steps as long as those of the releases, found data_step={data_step} and "
            f"step={step}; give one distance"
        )


def _opened(options: dict) -> tr.Publisher:
    """The publisher of a file that exists; ValueError if it was made with other settings than
    those that are given."""
    publisher = tr.Publisher(options["file"], witness=options["witness"])
    given = _given(options, ("alpha", "sensitivity", "floor", "delta"))
    plan = _plan(options | {"delta": publisher.settings["delta"]})
    if plan is not None:
        given["plan"] = plan.tolist()
    if options["step"] is not None:
        given["step"] = Clock.checked_step(_time(options["step"]))
    different = [name for name, value in given.items() if publisher.settings[name] != value]
    sources = [name for name in ("matrix", "backward", "data") if options[name] is not None]
    if sources and not _has_chain(publisher, options):
        different += sources
    if different:
        names = " or ".join(f"{name}=" for name in different)
        raise ValueError(
            f"{publisher.path} must be used as it was made, found another {names}; leave out what it knows, or take a "
            "new file, whose releases add to those of this one"
        )
    return publisher


def _has_chain(publisher: tr.Publisher, options: dict) -> bool:
    """Whether a file was made with the matrices or the data that are given."""
    from tplreport.publishing.losses_as_json import loss_to_json
    from tplrepro.leakage.temporal import loss_functions

    kept = {name: publisher.settings[name] for name in ("alpha", "delta", "step")}
    pair = _publishing_chain(options | kept | {"anyway": True}, publisher.settings["plan"])
    known = [publisher.settings[side] for side in ("backward", "forward")]
    return known == [loss_to_json(loss) for loss in loss_functions(*pair)]


def _use(publisher: tr.Publisher, options: dict) -> int:
    """Resume, skip and publish what the options ask for."""
    _check_spared(options, publisher)
    counts = None if options["counts"] is None else _counts(publisher, options)
    if options["resume"] is not None:
        publisher.resume(_time(options["resume"]))
    if options["skip"]:
        publisher.skip(_time(options["skip"]), _time(options["skip_until"]))
    if counts is None:
        print(_remaining(publisher) if options["json"] else publisher)
        return USED
    has_times = counts.index.name is not None
    table = counts if has_times and not options["numbered"] else number_rows(counts, publisher)
    noisy = publisher.publish_table(table, options["epsilon"]).set_axis(counts.index)
    untouched = f", and not to {counts.index.name}" if has_times else ""
    print(f"noise was added to {', '.join(map(str, counts.columns))}{untouched}", file=sys.stderr)
    return _show(noisy, options)


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
    if isinstance(content, dict):
        return {name: _finite(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(value) for value in content]
    if isinstance(content, float) and not isfinite(content):
        return None
    return content


def _counts(publisher: tr.Publisher, options: dict) -> Any:
    """The counts of a file or of standard input, where the heading may be left out later."""
    from tplreport.reading.table import parse_counts, read_counts

    if options["counts"] != "-":
        return read_counts(options["counts"], options["time_column"])
    columns = publisher.to_frame().columns.tolist()
    return parse_counts(_standard_input(), "standard input", options["time_column"], columns)


def _standard_input() -> bytes:
    """All of it, in memory: true counts are written into no file."""
    if sys.stdin is None:
        raise ValueError(
            "standard input must be open for counts from -, found it closed; name a file"
        )
    return sys.stdin.buffer.read()


def number_rows(counts: Any, publisher: tr.Publisher) -> Any:
    """The counts with the numbers of their rows as times, from 1 unless the file counts from
    another one."""
    from pandas import RangeIndex

    first = 1 if len(publisher) == 0 else publisher.ledger["time"][0]
    return counts.set_axis(RangeIndex(first, first + len(counts)))


def _time(text: str | None) -> Any:
    """A time that was typed, if there was one."""
    return int(text) if text and re.fullmatch(r"-?\d+", text) else text or None


def _leakage_table(publisher: tr.Publisher) -> Any:
    """The leakages of all times; of a plan of Gaussian noise their epsilon at its delta."""
    from pandas import DataFrame

    leakage = publisher.leakage
    delta = publisher.settings["delta"]
    if delta is None:
        return leakage.to_frame()
    return DataFrame({"epsilon": leakage.epsilon(delta), "delta": delta}, publisher.times)


def _ledger(options: dict) -> int:
    if options["leakage"] and options["noisy"]:
        raise ValueError("one table is shown, found leakage= and noisy=; give one")
    publisher = tr.Publisher(options["file"], witness=options["witness"])
    _check_spared(options, publisher)
    if options["backup"]:
        publisher.backup(options["backup"])
    if options["leakage"]:
        return _show(_leakage_table(publisher), options)
    return _show(
        publisher.to_frame() if options["noisy"] else publisher.ledger.set_index("time"), options
    )


if __name__ == "__main__":
    sys.exit(main())
