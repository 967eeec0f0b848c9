"""Public names that are imported on first use (PEP 562), so that importing a package loads none of its modules."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module

__all__ = ["extra", "lazy_names"]

# The extra of pyproject.toml that brings a library, by the name under which it is imported.
EXTRAS = {
    **{"dp_accounting": "events", "matplotlib": "figures", "opendp": "counts", "yaml": "workflow"},
    **dict.fromkeys(("highspy", "pulp"), "solvers"),
    **dict.fromkeys(("jax", "jaxlib", "keras"), "attack"),
    **dict.fromkeys(("hmmlearn", "pooch", "pyarrow", "pyproj"), "data"),
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
        if library not in EXTRAS:
            raise
        remedy = f'install it with: pip install "tplrepro[{EXTRAS[library]}]"'
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
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with extra():
            module = import_module(full[name])
        value = getattr(module, name) if name in exports else module
        setattr(sys.modules[package], name, value)
        return value

    return attribute, lambda: sorted(names), names
