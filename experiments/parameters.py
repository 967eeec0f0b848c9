"""Parameters of notebooks: each must have a declared name, the type of its default, and a value
within its range.

Papermill injects a parameter that no cell reads and only warns, and passes on a value of any type.
So each notebook calls `check` before anything else runs; ``make lint`` and every batch check the
profiles by the same rules. The record of a figure states the values that `check` found, and saving
fails if they are no longer those of the kernel.

A notebook's parameters cell has ``name: type = literal`` lines alone; the cell that papermill adds
below it begins with "# Parameters". A cell that somebody runs in between is neither.
"""

import ast
import copy
import linecache
import math
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Range:
    """The numbers that a parameter may be, ends included, and how a message says so."""

    words: str
    low: float
    high: float


# The ranges of some parameters by name. The other numbers must be above 0, or from 0 on where the
# default has a 0.
CORRELATIONS = ("correlation", "correlations")
DEGREES = ("box", "gowalla_boxes")
PROBABILITIES = (
    "confidence",
    "delta",
    "leave",
    "p1",
    "quantile",
    "restart",
    "restarts",
    "shares",
    "stay",
    "stopping",
)
FROM_ZERO = Range("from 0 on", 0.0, math.inf)
ABOVE_ZERO = Range("above 0", math.nextafter(0.0, 1.0), math.inf)
RANGES = {
    **dict.fromkeys(("draws", "seed", "smoothing", "smoothings"), FROM_ZERO),
    **dict.fromkeys(CORRELATIONS, Range("from -1 to 1", -1.0, 1.0)),
    **dict.fromkeys(DEGREES, Range("from -180 to 180", -180.0, 180.0)),
    **dict.fromkeys((*PROBABILITIES, "zeros"), Range("from 0 to 1", 0.0, 1.0)),
}
KINDS = {
    bool: "true or false",
    float: "a number",
    int: "a whole number",
    list: "a list",
    str: "a text",
}
#: Types that a value may have beside that of its default.
ALSO_ACCEPTED = {float: (int,), tuple: (list,)}

#: How papermill begins the cell that it adds.
INJECTED = "# Parameters"
#: Where a kernel keeps what `check` found.
CHECKED = "_checked_parameters"


@dataclass(frozen=True)
class Checked:
    """What `check` found in a kernel."""

    cell: str  # source of the parameters cell
    values: dict[str, Any]


@dataclass
class ParametersCell:
    """The parameters cell that was executed last, and what papermill has added to it."""

    source: str
    declared: dict[str, Any]
    injected: dict[str, Any] = field(default_factory=dict)


def check() -> None:
    """Keep the values of the parameters of the running notebook for the records of its figures.

    Raises ValueError, with a sentence for each parameter that cannot be used, and where no
    parameters cell has been executed. Does nothing outside a notebook.
    """
    names = notebook_names()
    if names is None:
        return
    cell = latest_parameters_cell(executed_cells()[:-1])
    if cell is None:
        raise ValueError(
            "the parameters cell must be executed before parameters.check(), found no cell of "
            "'name: type = literal' lines; run the notebook from its beginning"
        )
    undeclared = cell.injected.keys() - cell.declared.keys()
    unknown = {name: cell.injected[name] for name in undeclared}
    values = {name: names.get(name) for name in cell.declared}
    sentences = [
        *describe_problems(values, cell.declared),
        *describe_problems(unknown, cell.declared),
    ]
    if sentences:
        raise ValueError("\n".join(sentences))
    names[CHECKED] = Checked(cell.source, copy.deepcopy(values))


def latest_check() -> Checked | None:
    """What `check` found last in this kernel."""
    names = notebook_names()
    if names is None:
        return None
    return names.get(CHECKED)


def checked_parameters() -> dict[str, Any]:
    """The parameters of the running notebook, for the record of a figure that it saves now; empty
    outside a notebook.

    Raises ValueError where `check` has not run, and where the parameters are no longer those that
    it found: the figure may be of the former values.
    """
    names = notebook_names()
    if names is None:
        return {}
    found = latest_check()
    if found is None:
        raise ValueError(
            "parameters.check() must have run before a figure is saved, found no run of it; "
            "call it in the cell after the parameters cell"
        )
    cell = latest_parameters_cell(executed_cells()[:-1])
    if cell is not None and cell.source != found.cell:
        raise ValueError(
            "the parameters cell must be the one that parameters.check() has seen, found another "
            "one executed since then; run all cells below it again"
        )
    for name, value in found.values.items():
        if not _is_same(names.get(name), value):
            raise ValueError(
                f"{name} must be as when parameters.check() ran, {value!r}, "
                f"found {names.get(name)!r}; run the notebook again from its parameters cell"
            )
    return copy.deepcopy(found.values)


def notebook_names() -> dict[str, Any] | None:
    """The names of the running notebook with their values; None outside a notebook."""
    ipython = sys.modules.get("IPython")
    if ipython is None:
        return None
    shell = ipython.get_ipython()
    if shell is None:
        return None
    return shell.user_ns


def latest_parameters_cell(cells: Iterable[str]) -> ParametersCell | None:
    """The parameters cell among executed cells, the last one if there are several, with what
    papermill's cells after it say.

    >>> latest_parameters_cell(["x = 3", "epsilon: float = 0.1", "# Parameters\\nepsilon = 1.0"])
    ParametersCell(source='epsilon: float = 0.1',
                   declared={'epsilon': 0.1}, injected={'epsilon': 1.0})
    """
    latest = None
    for source in cells:
        is_injected = source.startswith(INJECTED)
        if is_injected and latest is not None:
            latest.injected |= literal_assignments(source)
        elif not is_injected and _is_parameters_cell(source):
            latest = ParametersCell(source, literal_assignments(source))
    return latest


def _is_parameters_cell(source: str) -> bool:
    """Whether a cell has ``name: type = literal`` lines alone."""
    try:
        statements = ast.parse(source).body
        literal_assignments(source)
    except (SyntaxError, ValueError):  # an ordinary cell
        return False
    return bool(statements) and all(isinstance(one, ast.AnnAssign) for one in statements)


def _is_same(value: Any, other: Any) -> bool:
    """Whether two values are of one type and equal; 1 and True are not."""
    return type(value) is type(other) and bool(value == other)


def load_yaml(text: str) -> Any:
    """The content of a text in YAML; yaml.YAMLError if it is none."""
    import yaml

    # in C, where there is one: ten times as fast
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(text, loader)


def literal_assignments(source: str) -> dict:
    """Names and values of a cell of ``name = literal`` lines, in order: a notebook's parameters
    cell.

    Raises ValueError if the cell holds anything else: a value computed from a parameter would not
    change when papermill injects another value in a later cell.

    >>> literal_assignments("epsilon: float = 0.1  # nats\\nsizes = [2, 5]")
    {'epsilon': 0.1, 'sizes': [2, 5]}
    """
    declared = {}
    for statement in ast.parse(source).body:
        try:
            name, value = _literal_assignment(statement)
        except ValueError:
            raise ValueError(
                "the parameters cell may hold only 'name = literal' lines, "
                f"found {ast.unparse(statement)!r}; move the rest to the next cell"
            ) from None
        declared[name] = value
    return declared


def _literal_assignment(statement: ast.stmt) -> tuple[str, Any]:
    """Name and value of ``name = literal`` or ``name: type = literal``; ValueError for others."""
    match statement:
        case ast.Assign([ast.Name(name)], value):
            return name, ast.literal_eval(value)
        case ast.AnnAssign(ast.Name(name), value=ast.expr() as value):
            return name, ast.literal_eval(value)
    raise ValueError


def executed_cells() -> list[str]:
    """Sources of the notebook's cells executed so far, in order; the last is the running one."""
    names = notebook_names() or {}
    history = [source for source in names.get("In", []) if source]
    if history:
        return history
    # Cells executed without history, as nbval does, are kept only for tracebacks, in files named by
    # the kernel.
    folder = f"ipykernel_{os.getpid()}"
    files = [name for name in linecache.cache if folder in Path(name).parts]
    return ["".join(linecache.getlines(file)) for file in files]


def describe_problems(values: Mapping[str, Any], declared: Mapping[str, Any]) -> Iterable[str]:
    """A sentence for each value whose name is not declared, or that has not the type or the range
    of its default."""
    for name, value in values.items():
        if name not in declared:
            known = ", ".join(declared) or "none"
            yield f"there is no parameter {name!r}; the parameters cell declares {known}"
            continue
        default = declared[name]
        wanted = _unmet_requirement(name, value, default)
        if wanted:
            yield f"{name} must be {wanted}, found {value!r}; its default is {default!r}"


def _unmet_requirement(name: str, value: Any, default: Any) -> str:
    """What the value of the parameter `name` must be and is not, in words; "" if it can be used.

    It must have the type of its `default`, and lie in the range for its name.
    """
    if default is None:
        return ""
    kind = type(default)
    if type(value) not in (kind, *ALSO_ACCEPTED.get(kind, ())):
        return KINDS.get(kind, f"a {kind.__name__}")
    if kind in (list, tuple):
        return _unmet_by_entries(name, value, default)
    if kind in (float, int):
        allowed = _range_of(name, default)
        if not (allowed.low <= value <= allowed.high and math.isfinite(value)):
            return f"{KINDS[kind]} {allowed.words}"
    return ""


def _unmet_by_entries(name: str, values: Sequence, defaults: Sequence) -> str:
    """What each entry of a list must be and one is not, in words, "" if all can be used.

    Entries must be as the strictest of the `defaults`; any entry will do if there are none.
    """
    if not defaults:
        return ""
    strictest = min(defaults, key=bool)  # a 0 allows from 0 on
    for value in values:
        wanted = _unmet_requirement(name, value, strictest)
        if wanted:
            return f"a list, each entry {wanted}"
    return ""


def _range_of(name: str, default: float) -> Range:
    """The range of a parameter by its name; else from 0 on where its default is 0, and above 0
    where it is not."""
    if name in RANGES:
        return RANGES[name]
    if default:
        return ABOVE_ZERO
    return FROM_ZERO
