"""The configuration is checked against the notebooks before anything runs.

A misspelt parameter would run a whole batch with the default. Here the cell tagged ``parameters``
is parsed, and every mismatch is an error.
"""

import sys
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from experiments.datasets.readers.registry import SOURCES
from experiments.parameters import describe_problems as unusable
from workflow.configuration import (
    PROFILES,
    ROOT,
    ConfigurationError,
    Notebook,
    read_notebooks,
    read_profile,
)

# Data sets that have no official file to download, only a folder below TPLREPRO_DATA.
OTHER_DATA = ("eventlogs", "authors")
KNOWN_DATA = sorted({*SOURCES, *OTHER_DATA})


def find_problems(root: Path = ROOT, profiles: Collection[str] = PROFILES) -> list[str]:
    """Mismatches between the configuration and the notebooks, one sentence each; empty if there are
    none."""
    try:
        for profile in profiles:
            read_profile(profile, root)
        registered = read_notebooks(root)
    except ConfigurationError as error:
        return [str(error)]
    present = names_of_notebooks(root / "notebooks")
    problems = [*problems_of_names(registered, present)]
    declared = {}
    for name, entry in registered.items():
        problems += problems_of_data(name, entry)
        if entry.notebook not in present:
            continue
        try:
            declared[name] = entry.declared_parameters(root)
        except (ValueError, SyntaxError) as error:
            problems.append(f"notebooks/{entry.notebook}.ipynb: {error}")
    for name, defaults in declared.items():
        for profile in profiles:
            problems += problems_of_parameters(name, profile, registered[name], defaults)
    return problems


def problems_of_names(registered: Mapping[str, Notebook], present: set[str]) -> Iterator[str]:
    """Notebooks that are listed in the batch (`registered`) and not present, or present and not
    listed."""
    used = {entry.notebook for entry in registered.values()}
    for name in sorted(used - present):
        remedy = "write it or remove the line"
        yield f"notebooks.yaml: lists {name}, which is not in notebooks/; {remedy}"
    for name in sorted(present - used):
        remedy = f"add the line '{name}:'"
        yield f"notebooks.yaml: does not list notebooks/{name}.ipynb; {remedy}"


def problems_of_data(name: str, entry: Notebook) -> Iterator[str]:
    """Data sets of an entry that there are not."""
    for data in sorted(set(entry.data) - set(KNOWN_DATA)):
        allowed = ", ".join(KNOWN_DATA)
        yield f"notebooks.yaml: {name} may read {allowed}, found data {data!r}; correct it"


def problems_of_parameters(
    name: str, profile: str, entry: Notebook, defaults: Mapping[str, Any]
) -> Iterator[str]:
    """Parameters of a profile that the notebook does not declare, or whose values do not fit."""
    for problem in unusable(entry.parameters[profile], defaults):
        yield f"notebooks.yaml: {name}: {profile}: {problem}"


def names_of_notebooks(folder: Path) -> set[str]:
    """The notebooks in a folder, but for the start page, which makes nothing."""
    paths = [path.relative_to(folder) for path in folder.rglob("*.ipynb")]
    kept = [path for path in paths if ".ipynb_checkpoints" not in path.parts]
    return {path.with_suffix("").as_posix() for path in kept} - {"index"}


def main() -> int:
    """Print the problems; the exit status is 0 if there are none."""
    problems = find_problems()
    for problem in problems:
        print(problem, file=sys.stderr)
    return 2 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
