"""Public names that are imported on first use (PEP 562), so that importing a package loads no
module.

The stub beside a package's ``__init__.py`` is the one place that lists its public names; editors
and type checkers read the same file.
"""

import ast
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

#: The extra of pyproject.toml that brings a library, by the name under which it is imported.
EXTRAS = {
    "distributed": "dask",
    "dp_accounting": "events",
    "opendp": "counts",
    "highspy": "solvers",
    "pulp": "solvers",
    "pooch": "data",
    "pyarrow": "data",
    "pyproj": "data",
    "python_calamine": "data",
}
#: Optional libraries that no extra brings.
OPTIONAL = ("matplotlib",)


@contextmanager
def optional_import() -> Iterator[None]:
    """Around the imports of a library that an extra brings: without it, an error names the extra.

    >>> with optional_import():
    ...     raise ModuleNotFoundError(name="pyarrow.csv")
    Traceback (most recent call last):
    ModuleNotFoundError: pyarrow must be installed, found none; install it with: ...[data]"
    """
    try:
        yield
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library not in EXTRAS and library not in OPTIONAL:
            raise
        package = library
        if library in EXTRAS:
            package = f'"tplrepro[{EXTRAS[library]}]"'
        remedy = f"install it with: pip install {package}"
        raise ModuleNotFoundError(
            f"{library} must be installed, found none; {remedy}", name=error.name
        ) from None


def lazy_names(
    package: str, init: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """The public names of a package, as the stub beside its `__init__.py` lists them.

    Parameters
    ----------
    package : str
        Its name.
    init : str
        The path of its `__init__.py`.

    Returns
    -------
    `__getattr__`, `__dir__` and `__all__` of the package

    Examples
    --------
    >>> import tplrepro.markov
    >>> attribute, listing, names = lazy_names("tplrepro.markov", tplrepro.markov.__file__)
    >>> attribute("drop_dead_ends").__module__
    'tplrepro.markov.transition'
    >>> "drop_dead_ends" in names, listing() == sorted(names)
    (True, True)
    """
    stub = ast.parse(Path(init).with_suffix(".pyi").read_text(encoding="utf-8"))
    homes = {
        alias.name: str(node.module)
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

    def attribute(name: str) -> Any:
        if name not in homes:
            module = sys.modules[package]
            raise AttributeError(
                f"module {package!r} has no attribute {name!r}", name=name, obj=module
            )
        with optional_import():
            value = _import_name(homes[name], name, package)
        setattr(sys.modules[package], name, value)
        return value

    return attribute, lambda: sorted(homes), list(homes)


def _import_name(home: str, name: str, package: str) -> Any:
    """What the module `home` has under this name, or its submodule of that name. The `package`
    itself, whose attribute is being asked for, is only searched for a submodule."""
    if home != package:
        module = import_module(home)
        if hasattr(module, name):
            return getattr(module, name)
    return import_module(f"{home}.{name}")
