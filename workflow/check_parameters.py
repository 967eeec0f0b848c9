"""The configuration is checked against the notebooks before anything runs.

A misspelt parameter would run a whole batch with the default. Here the cell tagged ``parameters``
is parsed, and every mismatch is an error.
"""

import sys

from experiments.datasets.readers.registry import SOURCES
from experiments.parameters import problems as unusable
from workflow.configuration import PROFILES, ROOT, ConfigurationError, read_notebooks, read_profile

# Data sets that have no official file to download, only a folder below TPLREPRO_DATA.
OTHER_DATA = ("eventlogs",)


def find_problems(root=ROOT, profiles=PROFILES):
    """Mismatches between the configuration and the notebooks, one sentence each; empty if there are
    none."""
    try:
        for profile in profiles:
            read_profile(profile, root)
        registered = read_notebooks(root)
    except ConfigurationError as error:
        return [str(error)]
    used = {entry.notebook for entry in registered.values()}
    present = _notebooks_below(root / "notebooks")
    absent = "which is not in notebooks/; write it or remove the line"
    problems = [f"notebooks.yaml: lists {name}, {absent}" for name in sorted(used - present)]
    missing = "notebooks.yaml: does not list notebooks"
    problems += [
        f"{missing}/{name}.ipynb; add the line '{name}:'" for name in sorted(present - used)
    ]
    known, declared = {*SOURCES, *OTHER_DATA}, {}
    for name, entry in registered.items():
        may = f"notebooks.yaml: {name} may read {', '.join(sorted(known))}"
        problems += [
            f"{may}, found data {data!r}; correct it" for data in sorted(set(entry.data) - known)
        ]
        if entry.notebook in present:
            try:
                declared[name] = entry.declared_parameters(root)
            except (ValueError, SyntaxError) as error:
                problems.append(f"notebooks/{entry.notebook}.ipynb: {error}")
    for name, defaults in declared.items():
        for profile in profiles:
            where = f"notebooks.yaml: {name}: {profile}"
            parameters = registered[name].parameters[profile]
            problems += [f"{where}: {problem}" for problem in unusable(parameters, defaults)]
    return problems


def _notebooks_below(folder):
    """Names (set) of the notebooks in a folder, but for the start page, which makes nothing."""
    paths = [path.relative_to(folder) for path in folder.rglob("*.ipynb")]
    kept = [path for path in paths if ".ipynb_checkpoints" not in path.parts]
    return {path.with_suffix("").as_posix() for path in kept} - {"index"}


def main():
    """Print the problems; the exit status is 0 if there are none."""
    problems = find_problems()
    print(*problems, sep="\n", end="\n" * bool(problems), file=sys.stderr)
    return 2 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
