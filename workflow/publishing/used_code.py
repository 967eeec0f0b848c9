"""Which code a notebook uses: the qualified names that its cells, and what these call in
`experiments`, look up.

A name is followed through imports, also those of the stubs that list a package's public names, to
the module that defines it. A method or field of an object counts if the object's class is at hand:
named somewhere on the way, or what a function or method on the way returns.

>>> used = code_used_by("import tplrepro as tpl\\ntpl.PrivacyLossFunction([[1]]).supremum(0.1)")
>>> "tplrepro.leakage.loss_function.PrivacyLossFunction.supremum" in used
True
>>> "tplrepro.leakage.loss_function.PrivacyLossFunction.vertices" in used
False
"""

import ast
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from workflow.configuration import ROOT

#: The roofs of our packages; other libraries are not followed.
ROOFS = ("experiments", "tplfrontier", "tplreport", "tplrepro")
#: What a notebook calls here is followed into its bodies.
FOLLOWED = "experiments."


@dataclass(frozen=True)
class Module:
    """What a file defines, and what it imports under which name."""

    name: str  # such as "tplrepro.leakage.published"
    defined: dict[str, ast.AST]  # by name; of methods and fields as "Class.name"
    imported: dict[str, str]  # local name -> qualified name


@dataclass(frozen=True)
class Lookups:
    """What a piece of code looks up."""

    names: frozenset[str]  # qualified
    attributes: frozenset[str]  # of objects, without their class


@dataclass
class Uses:
    """What was found so far on the way from a notebook."""

    names: set[str] = field(default_factory=set)  # qualified
    attributes: set[str] = field(default_factory=set)
    classes: set[str] = field(default_factory=set)  # of objects at hand, qualified

    def add(self, lookups: Lookups) -> None:
        """Add what a piece of code looks up, and follow the names of `experiments`."""
        self.attributes |= lookups.attributes
        new = lookups.names - self.names
        self.names |= new
        for name in new:
            if name.startswith(FOLLOWED):
                self.add(lookups_of(name))


@cache
def code_used_by(code: str) -> frozenset[str]:
    """The qualified names of our functions, classes, methods, fields and modules that code uses."""
    tree = ast.parse(code)
    uses = Uses()
    uses.add(lookups_in(tree, read_module(tree, "")))
    before = -1
    while before != len(uses.names) + len(uses.classes):
        before = len(uses.names) + len(uses.classes)
        for name in uses.names:
            uses.classes |= classes_of(name)
        for owner in list(uses.classes):
            members = members_of(owner, frozenset(uses.attributes))
            uses.add(Lookups(members, frozenset()))
    return frozenset(uses.names | uses.classes)


@cache
def lookups_of(name: str) -> Lookups:
    """What the definition of a name looks up; of a module nothing."""
    module, inside = split_name(name)
    if module is None or inside not in module.defined:
        return Lookups(frozenset(), frozenset())
    return lookups_in(module.defined[inside], module)


def lookups_in(node: ast.AST, module: Module) -> Lookups:
    """What a part of a module looks up."""
    names = set()
    attributes = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute | ast.Name):
            name = name_of(part, module)
            if name is not None:
                names.add(name)
            elif isinstance(part, ast.Attribute):
                attributes.add(part.attr)
    return Lookups(frozenset(names), frozenset(attributes))


def name_of(node: ast.AST, module: Module) -> str | None:
    """The qualified name of what an expression such as ``tpl.Cycle.reverse`` names, if ours."""
    if isinstance(node, ast.Name):
        if node.id in module.imported:
            return defining_name(module.imported[node.id])
        if module.name and node.id in module.defined:
            return f"{module.name}.{node.id}"
        return None
    if isinstance(node, ast.Attribute):
        owner = name_of(node.value, module)
        if owner is not None:
            return defining_name(f"{owner}.{node.attr}")
    return None


@cache
def defining_name(name: str) -> str | None:
    """A name with the module that defines it, such as the ``Cycle`` of ``tplrepro``; of
    modules their own; None for what is not ours."""
    if name.partition(".")[0] not in ROOFS:
        return None
    module, inside = split_name(name)
    if module is None:
        return None
    first, _, rest = inside.partition(".")
    if not inside or first in module.defined:
        return known_member(module, inside)
    if first not in module.imported:
        return None
    owner = defining_name(module.imported[first])
    if owner is None or not rest:
        return owner
    return defining_name(f"{owner}.{rest}")


def known_member(module: Module, inside: str) -> str | None:
    """The name of what a module defines; None for a member that its class does not define."""
    if not inside:
        return module.name
    if inside in module.defined:
        return f"{module.name}.{inside}"
    return None


@cache
def split_name(name: str) -> tuple[Module | None, str]:
    """The module of a qualified name, and the name inside it."""
    parts = name.split(".")
    found = None
    inside = name
    for length in range(1, len(parts) + 1):  # of what is no package nothing is a module
        module = module_named(".".join(parts[:length]))
        if module is None:
            break
        found = module
        inside = ".".join(parts[length:])
    return found, inside


@cache
def module_named(name: str) -> Module | None:
    """A module of ours by its name; a package with what its stub imports."""
    path = ROOT / name.replace(".", "/")
    files = [path / "__init__.py", path / "__init__.pyi", path.with_suffix(".py")]
    trees = [parse_file(file) for file in files if file.is_file()]
    if not trees:
        return None
    body = [statement for tree in trees for statement in tree.body]
    return read_module(ast.Module(body, []), name)


def parse_file(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def read_module(tree: ast.Module, name: str) -> Module:
    """What a module of this name defines and imports, also inside its functions."""
    return Module(name, definitions_in(tree), imports_in(tree))


def definitions_in(tree: ast.Module) -> dict[str, ast.AST]:
    """What a module defines: functions, classes and values, and the members of its classes."""
    defined: dict[str, ast.AST] = {}
    for statement in tree.body:
        for target in names_defined_by(statement):
            defined[target] = statement
        if isinstance(statement, ast.ClassDef):
            for member in statement.body:
                for target in names_defined_by(member):
                    defined[f"{statement.name}.{target}"] = member
    return defined


def imports_in(tree: ast.Module) -> dict[str, str]:
    """The qualified name behind each name that a module imports."""
    imported = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                imported[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Import):
            for alias in node.names:
                imported[alias.asname or alias.name.partition(".")[0]] = alias.name
    return imported


def names_defined_by(statement: ast.stmt) -> list[str]:
    """The names that a statement gives to a function, a class or values."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return [statement.name]
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    return [target.id for target in targets if isinstance(target, ast.Name)]


@cache
def classes_of(name: str) -> frozenset[str]:
    """The classes of the objects that a name gives: itself, or what it returns or holds."""
    module, _ = split_name(name)
    node = definition_of(name)
    annotation = None
    if isinstance(node, ast.ClassDef):
        return frozenset([name])
    if isinstance(node, ast.FunctionDef):
        annotation = node.returns
    elif isinstance(node, ast.AnnAssign):
        annotation = node.annotation
    if module is None or annotation is None:
        return frozenset()
    named = lookups_in(annotation, module).names
    return frozenset(one for one in named if isinstance(definition_of(one), ast.ClassDef))


def definition_of(name: str) -> ast.AST | None:
    """The statement that defines a name."""
    module, inside = split_name(name)
    if module is None:
        return None
    return module.defined.get(inside)


@cache
def members_of(owner: str, attributes: frozenset[str]) -> frozenset[str]:
    """The methods and fields of a class and its bases that have these names."""
    members = [f"{one}.{name}" for one in with_bases(owner) for name in attributes]
    return frozenset(member for member in members if definition_of(member) is not None)


@cache
def with_bases(name: str) -> tuple[str, ...]:
    """A class and the classes of ours that it is derived from."""
    module, _ = split_name(name)
    node = definition_of(name)
    names = [name]
    if module is not None and isinstance(node, ast.ClassDef):
        for base in node.bases:
            owner = name_of(base, module)
            if owner is not None:
                names += with_bases(owner)
    return tuple(names)
