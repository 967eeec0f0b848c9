"""Public names that are imported on first use (PEP 562), so that importing a package loads no module."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from importlib import import_module
from types import FunctionType, ModuleType
from typing import Any

# The extra of pyproject.toml that brings a library, by the name under which it is imported.
EXTRAS = {
    **{"dp_accounting": "events", "opendp": "counts"},
    **dict.fromkeys(("highspy", "pulp"), "solvers"),
    **dict.fromkeys(("pooch", "pyarrow", "pyproj", "python_calamine"), "data"),
}
# Optional libraries that no extra brings.
OPTIONAL = ("matplotlib",)

# Names that moved to the repository and are still found in a checkout; the wheel does not have them.
STILL_PUBLIC = ("datasets.prepare", "gaze.synthetic", "geolife.synthetic", "gowalla.synthetic", "kosarak.synthetic")


@contextmanager
def extra() -> Iterator[None]:
    """Around the imports of a library that an extra brings: without it, an error names the extra.

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

    `exports` maps a public name to its module, below the package or as a full name from ``tplrepro.`` on;
    `modules` are public submodules, or a mapping where a public name stands for a module of another place.

    >>> import tplrepro.markov
    >>> attribute, listing, names = lazy_names("tplrepro.markov", {"every_kth": "higher_order"})
    >>> attribute("every_kth").__module__, names
    ('tplrepro.markov.higher_order', ['every_kth'])
    """
    names = [*exports, *modules]
    paths = modules if isinstance(modules, Mapping) else {name: name for name in modules}
    full = {
        name: path if path.startswith("tplrepro.") else f"{package}.{path}"
        for name, path in {**paths, **exports}.items()
    }

    def attribute(name: str) -> Any:
        if name not in names:
            return _from_repository(package, name)
        with extra():
            value: Any = import_module(full[name])
        if name in exports:
            value = _explaining_arguments(value, name)
        setattr(sys.modules[package], name, value)
        return value

    sys.modules[package].__class__ = _Room
    return attribute, lambda: sorted(names), names


def moved_names(module: str) -> Callable:
    """`__getattr__` for a module that is no package, from which public names went: it says where they are.

    >>> moved_names("tplrepro.datasets.gowalla")("_absent")
    Traceback (most recent call last):
    tplrepro.lazy.UnknownNameError: module 'tplrepro.datasets.gowalla' has no attribute '_absent'
    """

    return lambda name: _from_repository(module, name)


def _from_repository(module: str, name: str) -> Any:
    """One of the names `STILL_PUBLIC`, in a checkout; otherwise an UnknownNameError."""
    key = f"{module.rpartition('.')[2]}.{name}"
    if key in STILL_PUBLIC:
        from tplrepro.suggestions import MOVED

        home = next(place for place, names in MOVED.items() if key in names)
        try:
            with extra():
                return getattr(import_module(home), name)
        except ModuleNotFoundError as error:
            if not (error.name or "").startswith("experiments"):  # a library is missing, not the folder
                raise
    raise UnknownNameError(module, name)


class UnknownNameError(AttributeError):
    """A name that a module or a class does not have; suggestions are searched for when the message is read."""

    def __init__(self, owner: str | type, name: str):
        super().__init__(owner, name)

    def __str__(self) -> str:
        from tplrepro import suggestions

        owner, name = self.args
        subject = owner.__name__ if isinstance(owner, type) else f"module {owner!r}"
        return f"{subject} has no attribute {name!r}{suggestions.for_name(owner, name)}"


class _SuggestingClass(type):
    """The metaclass by which unknown attributes of a class itself give suggestions: `TransitionMatrix.fit`."""

    def __getattr__(cls, name: str) -> Any:
        raise UnknownNameError(cls, name)


class Suggesting(metaclass=_SuggestingClass):
    """A base of classes whose unknown attributes give suggestions, and whose objects' do."""

    def __getattr__(self, name: str) -> Any:
        if any(name in vars(parent) for parent in type(self).__mro__):  # a property raised it: raise that again
            return object.__getattribute__(self, name)
        raise UnknownNameError(type(self), name)


class _Room(ModuleType):
    """A package that says which function to call when somebody calls the package itself."""

    def __call__(self, *arguments, **keywords):
        from tplrepro import suggestions

        hint = suggestions.for_name(self.__name__, self.__name__.rpartition(".")[2])
        raise TypeError(f"module {self.__name__!r} cannot be called{hint}")


def _explaining_arguments(module: ModuleType, name: str) -> Any:
    """A public function, whose errors of wrong arguments name the right ones; or a class of such.

    It replaces the function in its module, so that there is one of it.
    """
    value = getattr(module, name)
    if isinstance(value, FunctionType):
        value = _explaining(value)
        setattr(module, name, value)
    elif isinstance(value, type) and not issubclass(value, (tuple, Exception)):
        for member, function in [*vars(value).items()]:
            if member == "__init__" or (isinstance(function, FunctionType) and not member.startswith("_")):
                setattr(value, member, _explaining(function))
            elif isinstance(function, classmethod):
                setattr(value, member, classmethod(_explaining(function.__func__)))
        if not issubclass(value, Suggesting):
            setattr(value, "__getattr__", Suggesting.__getattr__)  # noqa: B010
    return value


def _explaining(function: Any) -> Any:
    if hasattr(function, "explains_arguments"):
        return function

    def call(*arguments, **keywords):
        try:
            return function(*arguments, **keywords)
        except TypeError:
            from tplrepro import suggestions

            suggestions.check_arguments(function, arguments, keywords)
            raise

    # With the globals of the function's own module, where doctest looks for it and warnings belong.
    result = wraps(function)(FunctionType(call.__code__, function.__globals__, closure=call.__closure__))
    vars(result)["explains_arguments"] = True
    return result
