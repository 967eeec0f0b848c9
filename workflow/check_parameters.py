"""Parameters are checked against the notebooks before anything runs.

Papermill injects a parameter that no cell reads and only warns; a misspelt parameter then runs a whole batch with
the default. Here the cell tagged ``parameters`` is parsed, and whatever does not fit is an error.
"""

import ast
import sys

import nbformat

from tplrepro.datasets.registry import SOURCES
from workflow.configuration import PROFILES, ROOT, ConfigurationError, read_notebooks, read_profile

__all__ = ["declared_parameters", "effective_parameters", "find_problems", "main"]

# Data sets that have no official file to download, only a folder below TPLREPRO_DATA.
OTHER_DATA = ("eventlogs",)


def declared_parameters(notebook):
    """Names and default values of the cell tagged ``parameters``.

    Parameters
    ----------
    notebook : nbformat.NotebookNode

    Returns
    -------
    dict
        In the order of the cell.

    Raises
    ------
    ConfigurationError
        If there is not exactly one such cell, or if it holds anything but ``name = literal`` lines: a value
        computed from a parameter there would keep the default's value when another is injected below.
    """
    cells = [cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", [])]
    if len(cells) != 1:
        raise ConfigurationError(f"must have one cell tagged parameters, got {len(cells)}; tag the cell")
    declared = {}
    for statement in ast.parse(cells[0].source).body:
        name, value = _assignment(statement)
        if name is None:
            raise ConfigurationError(
                f"the parameters cell may hold only 'name = value' lines, got {ast.unparse(statement)!r}; "
                "move the rest to the next cell"
            )
        try:
            declared[name] = ast.literal_eval(value)
        except ValueError:
            raise ConfigurationError(
                f"a parameter's default must be a literal, got {ast.unparse(statement)!r}; compute in the next cell"
            ) from None
    return declared


def effective_parameters(declared, common, own):
    """What is injected: the profile's own parameters over the common ones that the notebook declares."""
    return {**{name: value for name, value in common.items() if name in declared}, **own}


def find_problems(root=ROOT, profiles=PROFILES):
    """Everything in the configuration that does not fit the notebooks.

    Returns
    -------
    list of str
        One sentence a problem; empty when all is well.
    """
    problems = []
    try:
        registered = read_notebooks(root)
        settings = [read_profile(profile, root) for profile in profiles]
    except ConfigurationError as error:
        return [str(error)]

    present = {
        path.relative_to(root / "notebooks").with_suffix("").as_posix()
        for path in sorted((root / "notebooks").rglob("*.ipynb"))
        if ".ipynb_checkpoints" not in path.parts
    }
    for name in sorted(set(registered) - present):
        problems.append(f"notebooks.yaml: lists {name}, which is not in notebooks/; write it or remove the line")
    for name in sorted(present - set(registered)):
        problems.append(f"notebooks.yaml: does not list notebooks/{name}.ipynb; add the line '{name}:'")

    known = {*SOURCES, *OTHER_DATA}
    for notebook in registered.values():
        for name in sorted(set(notebook.data) - known):
            problems.append(
                f"notebooks.yaml: {notebook.name} may read {', '.join(sorted(known))}, got data {name!r}; correct it"
            )

    declared = {}
    for name in sorted(present & set(registered)):
        try:
            declared[name] = declared_parameters(nbformat.read(registered[name].path(root), as_version=4))
        except (ConfigurationError, SyntaxError) as error:
            problems.append(f"notebooks/{name}.ipynb: {error}")

    for profile in settings:
        file = f"{profile.name}.yaml"
        for name in sorted(set(profile.notebooks) - set(registered)):
            problems.append(f"{file}: sets parameters for {name}, which notebooks.yaml does not list")
        for name in sorted(set(registered) - set(profile.notebooks)):
            problems.append(f"{file}: does not mention {name}; add the line '{name}: {{}}'")
        for parameter in profile.common:
            if declared and not any(parameter in names for names in declared.values()):
                problems.append(f"{file}: no notebook declares the common parameter {parameter!r}; remove it")
        for name in declared:
            for parameter, value in profile.notebooks.get(name, {}).items():
                problems += _misfit(file, name, parameter, value, declared[name])
            for parameter, value in profile.common.items():
                if parameter in declared[name]:
                    problems += _misfit(file, name, parameter, value, declared[name])
    return problems


def main():
    """Print the problems; 0 when there is none."""
    problems = find_problems()
    for problem in problems:
        print(problem, file=sys.stderr)
    return 2 if problems else 0


def _assignment(statement):
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return name, value
        case ast.AnnAssign(target=ast.Name(id=name), value=value) if value is not None:
            return name, value
    return None, None


def _misfit(file, name, parameter, value, declared):
    if parameter not in declared:
        known = ", ".join(declared) or "none"
        return [f"{file}: {name} has no parameter {parameter!r}; its parameters cell declares {known}"]
    default = declared[parameter]
    kinds = (int, float) if type(default) is float else (list, tuple) if type(default) is tuple else (type(default),)
    if default is not None and (type(value) not in kinds):
        return [
            f"{file}: {name} wants {type(default).__name__} for {parameter!r} as in its default {default!r}, "
            f"got {type(value).__name__} {value!r}"
        ]
    return []


if __name__ == "__main__":
    sys.exit(main())
