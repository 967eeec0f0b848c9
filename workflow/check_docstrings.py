"""Check that the docstrings of public functions say what a caller must know (part of `make lint`).

numpydoc validates each function and method of two or more arguments that one of the three packages
exports: Parameters (all of them, in their order, each with its type) and Returns. Beside that each
has a section Raises. The constructor of a class is documented by the class.
"""

import dataclasses
import importlib
import inspect
import sys
from collections.abc import Callable, Iterator
from typing import Any

from numpydoc.docscrape import get_doc_object
from numpydoc.validate import Validator, validate

PACKAGES = (
    "tplrepro",
    "tplrepro.dphmm",
    "tplrepro.eventlog",
    "tplrepro.markov",
    "tplrepro.mechanisms",
    "tplrepro.sip",
    "tplfrontier",
    "tplreport",
)
#: Parameters: undocumented, unknown, in another order, without a type; a return value without a
#: word.
CODES = ("PR01", "PR02", "PR03", "PR04", "RT01")


def main() -> int:
    """Print one line for each fault; 1 if there is one."""
    faults = [fault for name in sorted(set(callables())) for fault in faults_of(name)]
    for fault in faults:
        print(fault)
    return 1 if faults else 0


def callables() -> Iterator[str]:
    """The qualified names of the public functions, classes and methods of two or more arguments."""
    for package_name in PACKAGES:
        package = importlib.import_module(package_name)
        for name in package.__all__:
            value = getattr(package, name)
            if inspect.isfunction(value) and has_several_arguments(value):
                yield qualified_name(value)
            if inspect.isclass(value):
                yield from callables_of_class(value)


def callables_of_class(kind: type) -> Iterator[str]:
    """Its constructor, if a caller uses it and no fields with comments document it, and its public
    methods."""
    is_raised = issubclass(kind, BaseException)
    is_documented_by_fields = dataclasses.is_dataclass(kind)
    is_constructed = not (is_raised or is_documented_by_fields)
    if is_constructed and has_several_arguments(kind):
        yield qualified_name(kind)
    for name, member in vars(kind).items():
        function = getattr(member, "__func__", member)
        is_public = not name.startswith("_")
        if is_public and inspect.isfunction(function) and has_several_arguments(function):
            yield qualified_name(function)


def has_several_arguments(function: Callable) -> bool:
    """Whether a caller gives two or more."""
    names = [name for name in inspect.signature(function).parameters if name not in ("self", "cls")]
    return len(names) >= 2


def qualified_name(value: Any) -> str:
    """Where it is defined."""
    return f"{value.__module__}.{value.__qualname__}"


def faults_of(name: str) -> list[str]:
    """What numpydoc finds, and whether there is no word on errors."""
    found = validate(name)
    place = f"{found['file']}:{found['file_line']}: {name}"
    faults = [f"{place}: {code} {text}" for code, text in found["errors"] if code in CODES]
    if not get_doc_object(Validator._load_obj(name))["Raises"]:
        faults.append(f'{place}: no section "Raises"')
    return faults


if __name__ == "__main__":
    sys.exit(main())
