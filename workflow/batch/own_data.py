"""Run the notebook explore/own_data on a user's file, for ``make own-data FILE=my.csv USER=user
ALPHA=1``.

Each variable given to make is a parameter of the notebook; FILE is its path. The notebook's
messages are printed; its page, figure, tables, record and the executed notebook appear under
``build/own_data``. The noisy counts of COUNTS, and the file that knows what they spent, appear
beside it, and are never removed. The exit status is 3 if the recommendation is withheld (make
prints it and ends with 2).
"""

import os
import re
import shutil
import sys
from pathlib import Path

import nbformat

from experiments.own_data import check_same_promise
from tplreport.command import WITHHELD
from tplreport.reading.table import read_counts, read_header
from workflow.batch.run_notebook import execute, kernel_environment
from workflow.configuration import ROOT, Notebook, Profile, read_json, writing_problems

NOTEBOOK = Notebook("explore/own_data", "explore/own_data")
NAME = "own_data"
TARGET = ROOT / "build" / NAME


def main(names):
    """The parameters are the named variables of the environment; returns the exit status."""
    given = {name: os.environ[name] for name in names}
    try:
        parameters = parameters_of(given)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    # no report on another file remains; releases are elsewhere
    shutil.rmtree(TARGET, ignore_errors=True)
    if problems := writing_problems(TARGET):
        print(*problems, sep="\n", file=sys.stderr)
        return 2
    os.environ.update(kernel_environment(TARGET, "own data", "make own-data", real_data=True))
    os.environ["TPLREPRO_PROGRESS"] = "/dev/tty" if sys.stderr.isatty() else os.devnull
    print(f"Running {NOTEBOOK.path().relative_to(ROOT)} on {parameters['path']}", flush=True)
    source, executed = str(NOTEBOOK.path()), TARGET / f"{NAME}.ipynb"
    error = execute(source, executed, parameters | {"saved_as": NAME}, Profile("own_data"))
    if error is not None:
        print(
            f"{as_make_knows_them(error)}\nThe notebook as far as it came: {executed}",
            file=sys.stderr,
        )
        return 1
    for cell in nbformat.read(executed, as_version=4).cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "image/png" not in data:
                print(output.get("text", data.get("text/plain", "")).rstrip())
    print("\n".join(os.path.relpath(path) for path in sorted(TARGET.iterdir()) if path.is_file()))
    return WITHHELD if read_json(TARGET / f"{NAME}.json")["results"]["withheld"] else 0


def parameters_of(given):
    """Parameters (dict) from text by upper-case name; ValueError for an unknown one or a wrong
    type."""
    declared = NOTEBOOK.declared_parameters()
    keys = {"FILE" if key == "path" else key.upper(): key for key in declared if key != "saved_as"}
    for name in given:
        if name not in keys:
            remedy = f"choose one of {', '.join(keys)}"
            raise ValueError(
                f"{name} must be a parameter of {NOTEBOOK.notebook}, found no such one; {remedy}"
            )
    if not given.get("FILE"):
        example = "make own-data FILE=my.csv ALPHA=1"
        raise ValueError(f"FILE must name a file of observations, found none; such as: {example}")
    parameters = {}
    for name, text in given.items():
        default = declared[keys[name]]
        try:
            parameters[keys[name]] = type(default)(text)
        except ValueError:
            wanted = f"{name} must be a {type(default).__name__}"
            raise ValueError(f"{wanted}, found {text!r}; give such as {default}") from None
    for key in ("path", "counts"):
        if parameters.get(key):
            path = Path(parameters[key]).expanduser().resolve()
            if not path.exists():
                raise ValueError(f"there must be a file {path}, found none; check its name")
            parameters[key] = str(path)
    if parameters.get("counts"):
        time = parameters.get("time") or None
        column = time if time in read_header(parameters["counts"]).names else None
        read_counts(parameters["counts"], column)  # a defect is an error before anything runs
        names = ("alpha", "sensitivity", "horizon")
        promise = {name: parameters.get(name, declared[name]) for name in names}
        try:
            check_same_promise(parameters["counts"], **promise)
        except ValueError as error:
            raise ValueError(as_make_knows_them(str(error))) from None
    return parameters


def as_make_knows_them(error):
    """An error with the parameters in capitals, as they are given to make."""
    words = re.compile(rf"\b({'|'.join(NOTEBOOK.declared_parameters())})(?==| must )")
    return words.sub(lambda name: name[0].upper(), error)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
