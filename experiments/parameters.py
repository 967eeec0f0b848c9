"""Parameters of notebooks: each must have a declared name, the type of its default, and a value
within its range.

Papermill injects a parameter that no cell reads and only warns, and passes on a value of any type.
So each notebook calls `check` before anything else runs; ``make lint`` and every batch check the
profiles by the same rules.
"""

import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import takewhile
from typing import Any

from experiments.provenance import executed_cells, literal_assignments

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
FROM_ZERO = ("from 0 on", 0.0, math.inf)
ABOVE_ZERO = ("above 0", math.nextafter(0.0, 1.0), math.inf)
RANGES = {
    **dict.fromkeys(("draws", "seed", "smoothing", "smoothings"), FROM_ZERO),
    **dict.fromkeys(CORRELATIONS, ("from -1 to 1", -1.0, 1.0)),
    **dict.fromkeys(DEGREES, ("from -180 to 180", -180.0, 180.0)),
    **dict.fromkeys((*PROBABILITIES, "zeros"), ("from 0 to 1", 0.0, 1.0)),
}
KINDS = {
    bool: "true or false",
    float: "a number",
    int: "a whole number",
    list: "a list",
    str: "a text",
}


def check() -> None:
    """Raise ValueError, with a sentence for each parameter of the running notebook that cannot be
    used."""
    before = list(executed_cells())[-2::-1]
    injected = [*takewhile(bool, map(_assigned, before))]  # the last first
    if injected:
        declared = injected.pop()
        if found := [
            words for values in injected or [declared] for words in problems(values, declared)
        ]:
            raise ValueError("\n".join(found))


def problems(values: Mapping[str, Any], declared: Mapping[str, Any]) -> Iterable[str]:
    """A sentence for each value whose name is not declared, or that has not the type or the range
    of its default."""
    for name, value in values.items():
        if name not in declared:
            yield f"there is no parameter {name!r}; the parameters cell declares {', '.join(declared) or 'none'}"
        elif wanted := _unmet(name, value, declared[name]):
            yield f"{name} must be {wanted}, found {value!r}; its default is {declared[name]!r}"


def _assigned(source):
    with suppress(SyntaxError, ValueError):  # of an ordinary cell
        return literal_assignments(source)


def _unmet(name, value, default):
    """What a value must be and is not, in words; empty if it can be used."""
    kind, also = type(default), {float: (int,), tuple: (list,)}
    if default is None:
        return ""
    if type(value) not in (kind, *also.get(kind, ())):
        return KINDS.get(kind, f"a {kind.__name__}")
    if kind in (list, tuple):
        words = [_unmet(name, part, min(default, key=bool)) for part in value if default]
        return next((f"a list, each entry {entry}" for entry in words if entry), "")
    if kind not in (float, int):
        return ""
    words, low, high = RANGES.get(name, ABOVE_ZERO if default else FROM_ZERO)
    return "" if low <= value <= high and math.isfinite(value) else f"{KINDS[kind]} {words}"
