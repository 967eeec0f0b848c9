"""How much a reader meets in each room, and how dense it is.

For each package and each of its rooms: public names, functions, syntax nodes, nodes a line of code,
tuple assignments (`a, b = x, y`) and conditional expressions per 1,000 statements, complexity, and
the share of public callables of two or more arguments whose docstring has a section "Parameters".
Nothing here fails: what may not be exceeded are rules of ruff and numpydoc in pyproject.toml.

Docstrings, comments and blank lines are not code. Complexity counts the branches, loops,
conditions, handlers and comprehensions of a function. Run as `make size`, or with folders of
another checkout as arguments.
"""

import ast
import io
import sys
import tokenize
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("tplrepro", "tplfrontier", "tplreport", "experiments", "page", "workflow", "benchmarks")
LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
BRANCHES = (ast.If, ast.For, ast.While, ast.IfExp, ast.ExceptHandler, ast.comprehension, ast.BoolOp)
Function = ast.FunctionDef | ast.AsyncFunctionDef
Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class Size:
    """The counts of one room, to which files are added one by one."""

    code_lines: int = 0
    nodes: int = 0
    statements: int = 0
    tuple_assignments: int = 0
    conditional_expressions: int = 0
    complexities: list[int] = field(default_factory=list)
    public_callables: int = 0
    documented_callables: int = 0

    def add(self, source: str) -> None:
        """Count one file."""
        tree = ast.parse(source)
        self.code_lines += len(code_lines(source, tree))
        for node in ast.walk(tree):
            self.nodes += not isinstance(node, ast.Load | ast.Store)
            self.statements += isinstance(node, ast.stmt)
            self.conditional_expressions += isinstance(node, ast.IfExp)
            self.tuple_assignments += is_tuple_assignment(node)
            if isinstance(node, Function):
                self._add_function(node)

    def _add_function(self, function: Function) -> None:
        """Count the complexity of a function, and whether it is documented if it is public and has
        two or more arguments."""
        branches = sum(isinstance(inner, BRANCHES) for inner in ast.walk(function))
        self.complexities.append(1 + branches)
        if function.name.startswith("_") or argument_count(function) < 2:
            return
        self.public_callables += 1
        docstring = ast.get_docstring(function) or ""
        self.documented_callables += "Parameters\n" in docstring

    def row(self, room: str, public_names: int) -> str:
        """The line of the table."""
        ordered = sorted(self.complexities) or [0]
        percentile = ordered[int(0.9 * len(ordered))]
        statements = max(self.statements, 1)
        documented = 100 * self.documented_callables // max(self.public_callables, 1)
        return (
            f"{room:<28}{public_names or '':>7}{len(self.complexities):>10}{self.nodes:>8}"
            f"{self.nodes / max(self.code_lines, 1):>11.1f}"
            f"{1000 * self.tuple_assignments / statements:>8.0f}"
            f"{1000 * self.conditional_expressions / statements:>13.0f}"
            f"{percentile:>6}{ordered[-1]:>9}{documented:>10} %"
        )


def code_lines(source: str, tree: ast.AST) -> set[int]:
    """The numbers of the lines that hold a token of code."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in LAYOUT:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree):
        if isinstance(node, Documented) and ast.get_docstring(node, clean=False) is not None:
            docstring = node.body[0]
            last = docstring.end_lineno or docstring.lineno
            lines.difference_update(range(docstring.lineno, last + 1))
    return lines


def is_tuple_assignment(node: ast.AST) -> bool:
    """Whether it is `a, b = x, y`."""
    return (
        isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Tuple)
        and isinstance(node.value, ast.Tuple)
    )


def argument_count(function: Function) -> int:
    """How many arguments a caller gives: `self` and `cls` are not counted."""
    arguments = [*function.args.args, *function.args.kwonlyargs]
    return sum(argument.arg not in ("self", "cls") for argument in arguments)


def public_name_count(folder: Path) -> int:
    """How many names the stub of a package declares; 0 if it has none."""
    stub = folder / "__init__.pyi"
    if not stub.exists():
        return 0
    tree = ast.parse(stub.read_text(encoding="utf-8"))
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    return sum(alias.asname is not None for node in imports for alias in node.names)


def files_by_room(package: Path) -> dict[str, list[Path]]:
    """The Python files of a package, and again those of each of its rooms."""
    rooms: dict[str, list[Path]] = {package.name: []}
    for path in sorted(package.rglob("*.py")):
        if "test" in path.name:
            continue
        rooms[package.name].append(path)
        parts = path.relative_to(package).parts
        if len(parts) > 1:
            rooms.setdefault(f"{package.name}/{parts[0]}", []).append(path)
    return rooms


def size_of(paths: Iterable[Path]) -> Size:
    """The counts of some files."""
    size = Size()
    for path in paths:
        size.add(path.read_text(encoding="utf-8"))
    return size


def main(folders: list[str]) -> None:
    """Print a row for each package and each of its rooms."""
    print(
        f"{'room':<28}{'public':>7}{'functions':>10}{'nodes':>8}{'nodes/line':>11}"
        f"{'tuples':>8}{'conditionals':>13}{'p90':>6}{'largest':>9}{'documented':>12}"
    )
    for package in [Path(folder) for folder in folders] or [ROOT / name for name in PACKAGES]:
        for room, paths in files_by_room(package).items():
            folder = package.parent / room
            print(size_of(paths).row(room, public_name_count(folder)))


if __name__ == "__main__":
    main(sys.argv[1:])
