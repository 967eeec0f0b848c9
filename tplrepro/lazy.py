"""Public names that are imported on first use (PEP 562), so that importing a package loads none of its modules."""

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import SequenceMatcher
from importlib import import_module

__all__ = ["extra", "lazy_names"]

# The extra of pyproject.toml that brings a library, by the name under which it is imported.
EXTRAS = {
    **{"dp_accounting": "events", "opendp": "counts"},
    **dict.fromkeys(("highspy", "pulp"), "solvers"),
    **dict.fromkeys(("hmmlearn", "pooch", "pyarrow", "pyproj"), "data"),
}
# Optional libraries that no extra brings.
OPTIONAL = ("matplotlib",)

# What others call a thing, and what it is called here.
OUR_WORDS = {
    **{"bpl": "temporal", "fpl": "temporal", "tpl": "temporal", "compute": "privacy", "quantify": "temporal"},
    **{"fit": "transition", "estimate": "transition", "markov": "transition", "chain": "transition"},
    **{"load": "read sequences", "open": "read", "csv": "sequences", "data": "sequences"},
    **{"budget": "allocate", "budgets": "allocate", "split": "allocate", "schedule": "allocate", "plan": "allocate"},
    **{"calibrate": "allocate", "epsilon": "allocate", "noise": "release", "noisy": "release", "add": "counts"},
    **{
        "publish": "release",
        "perturb": "release",
        "mechanism": "noise",
        "odometer": "accountant",
        "filter": "accountant",
    },
    **{"ledger": "accountant", "graph": "policy", "hull": "sensitivity", "users": "population", "log": "xes"},
}

# Public names of 0.2 that 0.3 renamed or moved -> what to use instead, which ends the error message of an access to the
# old name. Keys are written "tpl.old" for a name of the package itself, "sip.old" for one of a room, "gowalla.old" for
# one of a module below it, and "PolicyGraph.old" for a member of a class.
RENAMED: dict[str, str] = {
    "tpl.comparison": "experiments.comparison, in the repository",
    "tpl.explore": "the folder page/ of the repository",
    "tpl.claims": "experiments.claims, in the repository",
    "tpl.figures": "experiments.figures, in the repository",
    "tpl.timing": "experiments.timing, in the repository",
    "tpl.provenance": "experiments.provenance, in the repository",
    "dphmm.drawing": "experiments.dphmm.drawing, in the repository",
    "dphmm.evaluation": "experiments.dphmm.evaluation, in the repository",
    "dphmm.mobility": "experiments.dphmm.mobility, in the repository",
    "dphmm.running_example": "experiments.dphmm.running_example, in the repository",
    "sip.cell_distance": "experiments.sip.settings.cell_distance, in the repository",
    "sip.gaze_cells": "experiments.sip.settings.gaze_cells, in the repository",
    "sip.grid_distance": "experiments.sip.settings.grid_distance, in the repository",
    "sip.halves": "experiments.sip.settings.halves, in the repository",
    "sip.least_leakage": "experiments.sip.settings.least_leakage, in the repository",
    "sip.second_beliefs": "experiments.sip.settings.second_beliefs, in the repository",
    "sip.two_step_noise": "experiments.sip.settings.two_step_noise, in the repository",
    "sip.MarkovClassifier": "experiments.sip.identification.MarkovClassifier, in the repository",
    "sip.RecurrentClassifier": "experiments.sip.identification.RecurrentClassifier, in the repository",
    "sip.identification_rate": "experiments.sip.identification.identification_rate, in the repository",
    "sip.smoothed_symbols": "experiments.sip.identification.smoothed_symbols, in the repository",
}


@contextmanager
def extra() -> Iterator[None]:
    """Around the imports of a library that an extra brings: without it, a ModuleNotFoundError names the extra.

    >>> with extra():
    ...     raise ModuleNotFoundError(name="pyarrow.csv")
    Traceback (most recent call last):
    ModuleNotFoundError: pyarrow must be installed, found none; install it with: pip install "tplrepro[data]"
    """
    try:
        yield
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library not in EXTRAS and library not in OPTIONAL:
            raise
        package = f'"tplrepro[{EXTRAS[library]}]"' if library in EXTRAS else library
        remedy = f"install it with: pip install {package}"
        raise ModuleNotFoundError(f"{library} must be installed, found none; {remedy}", name=error.name) from None


def lazy_names(
    package: str, exports: Mapping[str, str], modules: Iterable[str] | Mapping[str, str] = ()
) -> tuple[Callable, Callable, list[str]]:
    """`__getattr__`, `__dir__` and `__all__` for a package's `__init__.py`.

    Parameters
    ----------
    package : its `__name__`
    exports : public name -> the module that defines it, below the package or as a full name from ``tplrepro.`` on
    modules : public submodules; a mapping where a public name stands for a module of another place

    Examples
    --------
    >>> attribute, listing, names = lazy_names("tplrepro.markov", {"strongest": "generators"})
    >>> attribute("strongest").__module__, names
    ('tplrepro.markov.generators', ['strongest'])
    """
    names = [*exports, *modules]
    paths = modules if isinstance(modules, Mapping) else {name: name for name in modules}
    full = {
        name: path if path.startswith("tplrepro.") else f"{package}.{path}"
        for name, path in {**paths, **exports}.items()
    }

    def attribute(name: str):
        if name not in names:
            _refuse_renamed(package, name)
            near = "" if name.startswith("_") else ", ".join(_nearest(name))
            raise AttributeError(
                f"module {package!r} has no attribute {name!r}" + f"; the nearest are {near}" * bool(near)
            )
        with extra():
            module = import_module(full[name])
        value = getattr(module, name) if name in exports else module
        setattr(sys.modules[package], name, value)
        return value

    return attribute, lambda: sorted(names), names


def moved_names(module: str) -> Callable:
    """`__getattr__` for a module that is no package, from which public names went: it says where they are.

    >>> moved_names("tplrepro.datasets.gowalla")("absent")
    Traceback (most recent call last):
    AttributeError: module 'tplrepro.datasets.gowalla' has no attribute 'absent'
    """

    def attribute(name: str):
        _refuse_renamed(module, name)
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return attribute


def _refuse_renamed(module: str, name: str) -> None:
    """AttributeError that names the successor, if the table has one."""
    room = "tpl" if module == "tplrepro" else module.rpartition(".")[2]
    if f"{room}.{name}" in RENAMED:
        raise AttributeError(f"{module}.{name} was renamed in 0.3: use {RENAMED[f'{room}.{name}']}")


def _nearest(name: str) -> list[str]:
    """Public names of all rooms that share a word with a name, or nearly are it, the nearest first; at most four."""
    package = import_module("tplrepro")
    rooms = [package, *(getattr(package, room) for room in package._MODULES)]
    wanted, ranked = _words(name), []
    for room in rooms:
        for public in getattr(room, "_EXPORTS", ()):
            alike = SequenceMatcher(None, name.lower(), public.lower()).ratio()
            shared = len(wanted & _words(public))
            if shared or alike > 0.75:
                ranked.append((-shared, len(room.__name__), -alike, f"{room.__name__}.{public}"))
    return [full for *_, full in sorted(ranked)[:4]]


def _words(name: str) -> set[str]:
    """Beginnings of the words of a name, and of those that we use for them."""
    words = {word.lower() for word in re.findall("[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}
    return {own[:6] for word in words for own in (word, *OUR_WORDS.get(word, "").split())} - {"from", "by", "of", "the"}
