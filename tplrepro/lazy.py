"""Public names that are imported on first use (PEP 562), so that importing a package loads none of its modules."""

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module

__all__ = ["lazy_names"]


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
    paths = dict(modules) if isinstance(modules, Mapping) else {name: name for name in modules}
    names = [*exports, *paths]

    def full(path: str) -> str:
        return path if path.startswith("tplrepro.") else f"{package}.{path}"

    def attribute(name: str):
        if name in exports:
            value = getattr(import_module(full(exports[name])), name)
        elif name in paths:
            value = import_module(full(paths[name]))
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        setattr(sys.modules[package], name, value)
        return value

    return attribute, lambda: sorted(names), names
