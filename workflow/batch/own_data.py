"""``make own-data FILE=my.csv USER=user TIME=day STATE=place ALPHA=1 HORIZON=30
COUNTS=series.csv``: run the notebook explore/own_data on a user's file, and publish the series of
counts.

Each variable but COUNTS is a parameter of the notebook, whose report is printed; its page, figure,
tables, record and the executed notebook appear under ``build/own_data``. The counts are published
by ``tplrepro publish``, which keeps beside them what they spent. The exit status is that of the
command; 3 if the recommendation is withheld (make prints it and ends with 2).
"""

import os
import re
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import nbformat

from tplreport import command
from tplreport.reading.table import read_counts, read_header
from workflow.batch.run_notebook import execute, kernel_environment
from workflow.configuration import ROOT, Notebook, Profile, read_json, writing_problems

NOTEBOOK = Notebook("explore/own_data", "explore/own_data")
TARGET = ROOT / "build" / "own_data"
#: The parameter of the notebook that each variable of make gives.
PARAMETERS = {
    "FILE": "path",
    "USER": "user",
    "TIME": "time",
    "STATE": "state",
    "ALPHA": "alpha",
    "HORIZON": "horizon",
}
COUNTS = "COUNTS"
#: What one user changes in the counts of a time, as the report takes it: those of a histogram.
SENSITIVITY = 2


def main(names: Sequence[str]) -> int:
    """Report and publish as the named variables of the environment say; returns the exit status."""
    given = {name: os.environ[name] for name in names}
    publishing = []
    try:
        parameters = parameters_of(given)
        if given.get(COUNTS):
            publishing = publishing_words(Path(given[COUNTS]).expanduser(), parameters)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    # no report on another file remains; releases are elsewhere
    shutil.rmtree(TARGET, ignore_errors=True)
    if problems := writing_problems(TARGET):
        print(*problems, sep="\n", file=sys.stderr)
        return 2
    failure = report(parameters)
    if failure is not None:
        print(as_make_knows_it(failure), file=sys.stderr)
        return 1
    if read_json(TARGET / "own_data.json")["results"]["withheld"]:
        return command.WITHHELD
    if not publishing:
        return 0
    print(f"tplrepro {shlex.join(publishing)}", flush=True)
    return command.main(publishing)


def parameters_of(given: Mapping[str, str]) -> dict[str, Any]:
    """Parameters of the notebook from text by variable; ValueError for an unknown variable, a wrong
    type, or a file that is not there."""
    check_variables(given)
    declared = NOTEBOOK.declared_parameters()
    parameters = {}
    for name in PARAMETERS.keys() & given.keys():
        default = declared[PARAMETERS[name]]
        try:
            parameters[PARAMETERS[name]] = type(default)(given[name])
        except ValueError:
            raise ValueError(
                f"{name} must be a {type(default).__name__}, found {given[name]!r}; "
                f"give such as {default}"
            ) from None
    parameters["path"] = str(Path(given["FILE"]).expanduser().resolve())
    return declared | parameters


def check_variables(given: Mapping[str, str]) -> None:
    """ValueError for an unknown variable, or a file that is not there."""
    known = [*PARAMETERS, COUNTS]
    for name in given:
        if name not in known:
            raise ValueError(
                f"{name} must be one of {', '.join(known)}, found no such variable; "
                "for other options use tplrepro report, whose --help lists them"
            )
    if not given.get("FILE"):
        raise ValueError(
            "FILE must name a file of observations, found none; "
            "such as: make own-data FILE=my.csv ALPHA=1"
        )
    for name in ("FILE", COUNTS):
        if given.get(name) and not Path(given[name]).expanduser().exists():
            raise ValueError(f"there must be a file {given[name]}, found none; check its name")


def report(parameters: Mapping[str, Any]) -> str | None:
    """Run the notebook, print what it prints, and list its files; returns its error, or None."""
    environment = kernel_environment(TARGET, "own data", "make own-data", real_data=True)
    os.environ.update(environment, TPLREPRO_PROGRESS=os.devnull)
    if sys.stderr.isatty():
        os.environ["TPLREPRO_PROGRESS"] = "/dev/tty"
    print(f"Running {NOTEBOOK.path().relative_to(ROOT)} on {parameters['path']}", flush=True)
    executed = TARGET / "own_data.ipynb"
    error = execute(NOTEBOOK.path(), executed, parameters, Profile("own_data"))
    if error is not None:
        return f"{error}\nThe notebook as far as it came: {executed}"
    print_outputs(executed)
    saved = TARGET / "explore"
    for path in saved.iterdir():
        path.rename(TARGET / path.name)
    saved.rmdir()
    print(*(os.path.relpath(path) for path in sorted(TARGET.iterdir())), sep="\n")
    return None


def print_outputs(notebook: Path) -> None:
    """Print what the cells of an executed notebook printed."""
    for cell in nbformat.read(notebook, as_version=4).cells:
        for output in cell.get("outputs", []):
            print(output.get("text", ""), end="")


def publishing_words(counts: Path, parameters: Mapping[str, Any]) -> list[str]:
    """The words after ``tplrepro`` that publish a series of counts by the recommended plan.

    A defect of the counts is a ValueError before anything runs.
    """
    words: list[Any] = [
        "publish",
        counts.with_suffix(".sqlite"),
        counts,
        "--data",
        parameters["path"],
    ]
    for name in ("user", "time", "state"):
        if parameters[name]:
            words += [f"--{name}", parameters[name]]
    words += ["--alpha", parameters["alpha"], "--sensitivity", SENSITIVITY]
    words += ["--plan", TARGET / "own_data_budgets.csv", "--numbered"]
    time_column = None
    if parameters["time"] in read_header(counts).names:
        time_column = parameters["time"]
        words += ["--time-column", time_column]
    read_counts(counts, time_column)
    words += ["--csv", counts.with_name(f"{counts.stem}_noisy.csv")]
    return [str(word) for word in words]


def as_make_knows_it(error: str) -> str:
    """An error with the parameters in capitals, as they are given to make."""
    variables = {parameter: name for name, parameter in PARAMETERS.items()}
    mentioned = re.compile(rf"\b({'|'.join(variables)})(?==| must )")
    return mentioned.sub(lambda found: variables[found[1]], error)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
