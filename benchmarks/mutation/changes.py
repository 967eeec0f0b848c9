"""The changes of a module: one operator, number or margin each."""

import ast
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
}
OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Edit:
    """Another value for a field of a node of the syntax tree."""

    node: Any
    field: str
    new: Any


@dataclass(frozen=True)
class Change:
    """One change of a module."""

    module: str
    #: Qualified name of the function or class around it; empty at the top of the module.
    place: str
    line: int
    #: Code before and after, and which of the same changes of this place it is.
    words: str
    occurrence: int
    edit: Edit
    #: The statement of a function that contains it; None for what importing the module runs.
    statement: ast.stmt | None

    @property
    def name(self) -> str:
        """The change in words that stay while other code of the module changes."""
        if self.occurrence:
            return f"{self.words} (no. {self.occurrence + 1})"
        return self.words

    @property
    def key(self) -> tuple[str, str, str]:
        """What an excuse names."""
        return self.module, self.place, self.name

    @property
    def rank(self) -> str:
        """Its place in the draw."""
        return hashlib.sha256(" ".join(self.key).encode()).hexdigest()


class Module:
    """A module's syntax tree and its changes."""

    def __init__(self, root: Path, path: str):
        self.path = path
        self.file = root / path
        self.tree = ast.parse(self.file.read_text(encoding="utf-8"))
        self.changes = list(self._changes())

    def draw(self, most: int) -> list[Change]:
        """At most so many changes, in the order of the file."""
        drawn = sorted(self.changes, key=lambda change: change.rank)[:most]
        return sorted(drawn, key=lambda change: (change.line, change.words, change.occurrence))

    def code(self) -> Any:
        """The module's code as it is."""
        return compile(self.tree, str(self.file), "exec")

    def changed_code(self, change: Change) -> Any:
        """The module's code with this change."""
        edit = change.edit
        previous = getattr(edit.node, edit.field)
        setattr(edit.node, edit.field, edit.new)
        try:
            return compile(ast.fix_missing_locations(self.tree), str(self.file), "exec")
        finally:
            setattr(edit.node, edit.field, previous)

    def _changes(self) -> Iterator[Change]:
        seen: dict[tuple[str, str], int] = {}
        for node, place, statement in walk(self.tree):
            for edit in edits(node):
                words = describe(edit)
                occurrence = seen.get((place, words), 0)
                seen[place, words] = occurrence + 1
                yield Change(self.path, place, node.lineno, words, occurrence, edit, statement)


def walk(
    node: ast.AST, place: str = "", statement: ast.stmt | None = None, is_called: bool = False
) -> Iterator[tuple[Any, str, ast.stmt | None]]:
    """Each node below this one, the place around it, and its statement if a call runs it; without
    messages and annotations."""
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns"):
            continue
        body_of_function = isinstance(node, FUNCTIONS) and field == "body"
        for child in children(value):
            if isinstance(child, ast.JoinedStr):
                continue
            inner_place = place
            inner_statement = statement
            inner_is_called = is_called or body_of_function
            if isinstance(child, (*FUNCTIONS, ast.ClassDef)):
                inner_place = f"{place}.{child.name}".lstrip(".")
            if isinstance(child, ast.stmt) and inner_is_called:
                inner_statement = child
            yield child, inner_place, inner_statement
            yield from walk(child, inner_place, inner_statement, inner_is_called)


def children(value: Any) -> list[ast.AST]:
    """The nodes in a field of a node."""
    if isinstance(value, list):
        return [item for item in value if isinstance(item, ast.AST)]
    if isinstance(value, ast.AST):
        return [value]
    return []


def edits(node: Any) -> Iterator[Edit]:
    """The edits of one node."""
    match node:
        case ast.Compare(ops=[operator]) if type(operator) in COMPARISONS:
            yield Edit(node, "ops", [COMPARISONS[type(operator)]()])
        case ast.BinOp(op=operator) | ast.BoolOp(op=operator) if type(operator) in OPERATORS:
            yield Edit(node, "op", OPERATORS[type(operator)]())
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            yield Edit(node, "value", number + 1)
        case ast.Call(func=ast.Name("nextafter") | ast.Attribute(attr="nextafter")):
            yield Edit(node, "args", [node.args[0], node.args[0]])  # no margin


def describe(edit: Edit) -> str:
    """The code before and after an edit."""
    original = ast.unparse(edit.node)
    previous = getattr(edit.node, edit.field)
    setattr(edit.node, edit.field, edit.new)
    changed = ast.unparse(edit.node)
    setattr(edit.node, edit.field, previous)
    return f"{original} -> {changed}"
