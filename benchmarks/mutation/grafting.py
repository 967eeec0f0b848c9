"""Give loaded modules changed code, without importing them or what imports them again."""

import ast
import copy
import dataclasses
import functools
import gc
import sys
import types
from collections.abc import Iterable
from typing import Any

from benchmarks.mutation.changes import Change, Module

#: The name under which probes find what counts them.
PROBE = "_mutation_probe_"


def module_name(path: str) -> str:
    """The name under which Python imports a file of this repository."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def replace_code(file: str, old: types.CodeType, new: types.CodeType) -> None:
    """Give each function that has code of `old` the code at the same place of `new`."""
    pairs = zip(code_objects(old), code_objects(new), strict=True)
    changed = {before: after for before, after in pairs if before != after}
    for thing in gc.get_objects():
        # isinstance would ask the object behind a weak proxy, which may be gone
        if type(thing) is types.FunctionType and thing.__code__.co_filename == file:
            after = changed.get(thing.__code__)
            if after is not None:
                thing.__code__ = after


def code_objects(code: types.CodeType) -> Iterable[types.CodeType]:
    """A code object and those within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from code_objects(constant)


def replace_values(module: types.ModuleType, code: types.CodeType) -> None:
    """Give a module, and those that imported from it, the numbers and defaults that its changed
    code makes when it is imported."""
    twin = types.ModuleType(module.__name__)
    twin.__dict__.update(
        {name: vars(module)[name] for name in ("__file__", "__package__", "__spec__")}
    )
    exec(code, twin.__dict__)
    for name, new in list(vars(twin).items()):
        old = vars(module).get(name)
        if name.startswith("__") or old is new:
            continue
        if isinstance(new, type) and isinstance(old, type):
            replace_attributes(old, new)
        elif isinstance(inner_function(new), types.FunctionType):
            replace_defaults(old, new)
        elif dataclasses.is_dataclass(new):
            replace_fields(old, new)
        elif is_plain(new) and repr(new) != repr(old):
            replace_everywhere(name, old, new)


def replace_attributes(old: type, new: type) -> None:
    """Give a class the numbers of another one, and its functions the defaults."""
    for key, value in list(vars(new).items()):
        replace_defaults(vars(old).get(key), value)
        if is_plain(value) and value != vars(old).get(key):
            setattr(old, key, value)


def replace_fields(old: Any, new: Any) -> None:
    """Give a dataclass, also a frozen one, the numbers of another one and of those it holds."""
    for name in (field.name for field in dataclasses.fields(new)):
        before = getattr(old, name)
        value = getattr(new, name)
        if dataclasses.is_dataclass(value):
            replace_fields(before, value)
        elif is_plain(value) and repr(value) != repr(before):
            object.__setattr__(old, name, value)


def replace_defaults(old: Any, new: Any) -> None:
    """Give a function the defaults of another one, where they are numbers."""
    old = inner_function(old)
    new = inner_function(new)
    if not (isinstance(old, types.FunctionType) and isinstance(new, types.FunctionType)):
        return
    if old.__defaults__ and new.__defaults__:
        pairs = zip(old.__defaults__, new.__defaults__, strict=True)
        old.__defaults__ = tuple(chosen_default(*pair) for pair in pairs)
    for name, value in (new.__kwdefaults__ or {}).items():
        if old.__kwdefaults__ and name in old.__kwdefaults__:
            old.__kwdefaults__[name] = chosen_default(old.__kwdefaults__[name], value)


def inner_function(thing: Any) -> Any:
    """The function that a method, a property or a cache holds."""
    for name in ("__func__", "fget", "func", "__wrapped__"):
        thing = getattr(thing, name, thing)
    return thing


def chosen_default(old: Any, new: Any) -> Any:
    """The new default if it is a number or a collection of such, else the old one."""
    if is_plain(new):
        return new
    return old


def is_plain(value: Any) -> bool:
    """Whether a value is a number or a collection of numbers and words, which has no identity."""
    if isinstance(value, (tuple, list, set, frozenset)):
        return all(is_plain(item) for item in value)
    if isinstance(value, dict):
        return all(is_plain(item) for item in value.values())
    return isinstance(value, (int, float, complex, str, slice)) or hasattr(value, "dtype")


def replace_everywhere(name: str, old: Any, new: Any) -> None:
    """Replace a module's constant there, and where it was imported by this name."""
    for module in list(sys.modules.values()):
        names = getattr(module, "__dict__", {})
        if name in names and names[name] is old:
            names[name] = new


def clear_caches() -> None:
    """Empty the caches of functions of this repository."""
    for thing in gc.get_objects():
        if type(thing) is functools._lru_cache_wrapper:
            if thing.__module__.startswith(("tplrepro", "tplfrontier", "tplreport")):
                thing.cache_clear()


def run_plain_kernels() -> None:
    """From now on kernels run as plain Python, whose code can be changed."""
    from tplrepro.leakage.envelope.compiled import Kernel

    Kernel.worth = sys.maxsize


def forget_plain_kernels() -> None:
    """Make kernels look their constants up again."""
    from tplrepro.leakage.envelope.compiled import Kernel

    for thing in gc.get_objects():
        if type(thing) is Kernel:
            vars(thing).pop("plain", None)


def with_probes(module: Module, drawn: list[Change]) -> types.CodeType:
    """The module's code, in which the statement of each change first counts itself as reached."""
    probes: dict[int, list[int]] = {}
    for number, change in enumerate(drawn):
        if change.statement is not None:
            probes.setdefault(id(change.statement), []).append(number)
    changes_of = {id(node): probes.get(id(node), []) for node in ast.walk(module.tree)}
    tree = copy.deepcopy(module.tree)
    originals = ast.walk(module.tree)
    numbers = {
        id(twin): changes_of[id(node)] for node, twin in zip(originals, ast.walk(tree), strict=True)
    }
    for node in list(ast.walk(tree)):
        for field, value in ast.iter_fields(node):
            if isinstance(value, list) and any(isinstance(item, ast.stmt) for item in value):
                setattr(node, field, probed(value, module.path, numbers))
    return compile(ast.fix_missing_locations(tree), str(module.file), "exec")


def probed(body: list[Any], path: str, numbers: dict[int, list[int]]) -> list[Any]:
    """The statements of a body, each after its probes."""
    result = []
    for statement in body:
        for number in numbers.get(id(statement), []):
            words = f"{PROBE}({(path, number)!r})"
            probe = ast.parse(words).body[0]
            for part in ast.walk(probe):
                ast.copy_location(part, statement)
            result.append(probe)
        result.append(statement)
    return result
