"""Which published records are older than the code that would make them today.

`make claims` says so in a line. The code of a record is that of its notebook's cells and of the
modules that its run imported.
"""

import ast
import subprocess
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import nbformat

from workflow.batch.fingerprint import files_of_modules
from workflow.configuration import (
    ROOT,
    Notebook,
    Profile,
    owner_of,
    read_notebooks,
    read_profile,
    records_in,
)

# Modules that only save and show results: a record is not older when they change.
COMPUTE_NOTHING = {
    "experiments/claims/__init__.py",
    "experiments/claims/judging.py",
    "experiments/claims/numbers.py",
    "experiments/claims/statement.py",
    "experiments/claims/verdicts.py",
    "experiments/figures.py",
    "experiments/parameters.py",
    "experiments/provenance.py",
    "tplrepro/progress.py",
}


def find_older_records(root: Path = ROOT) -> dict[str, list[str]]:
    """The parts of its code that differ from the commit that made it, by published record that has
    some.

    The code is looked for at the places where it was: a module that has moved makes the record
    older. Comments, docstrings, layout and what only type checkers read do not count.
    """
    notebooks = read_notebooks(root)
    profile = read_profile("paper", root)
    older = {}
    for name, record in records_in(root / "figures").items():
        entry = notebooks[owner_of(name, notebooks) or ""]
        changed = changes_since(record, entry, profile, root)
        if changed:
            older[name] = changed
    return older


def changes_since(
    record: Mapping[str, Any], entry: Notebook, profile: Profile, root: Path
) -> list[str]:
    """The files and parameters that differ today from the commit that made a record, of those on
    which the result of `entry` depends."""
    commit = record["commit"]["id"]
    there = files_of_commit(commit, root)
    if not there:
        return [f"commit {commit[:7]}, which this clone does not have"]
    modules = sorted(files_of_modules(record["modules"]) & there - COMPUTE_NOTHING)
    notebook = entry.path(root).relative_to(root).as_posix()
    changed = [
        file for file in (notebook, *modules) if file not in there or is_changed(file, commit, root)
    ]
    parameters = entry.declared_parameters(root) | entry.parameters[profile.name]
    if parameters != record["parameters"]:
        changed.append("parameters")
    return changed


def describe_older_records(root: Path = ROOT) -> str:
    """A line on the published records that are older than their code; empty if there are none."""
    older = find_older_records(root)
    if not older:
        return ""
    count = len(records_in(root / "figures"))
    which = "all" if len(older) == count else first_of(older)
    parts = sorted({part for changed in older.values() for part in changed})
    return (
        f"{len(older)} of {count} published records ({which}) are older than their code "
        f"({first_of(parts)} changed since); to renew them, run and publish the paper profile"
    )


def first_of(names: Iterable[str], shown: int = 4) -> str:
    """The first names, and dots if there are more."""
    words = list(names)
    if len(words) > shown:
        words = [*words[:shown], "..."]
    return ", ".join(words)


@cache
def is_changed(file: str, commit: str, root: Path) -> bool:
    """Whether a file of a commit is gone, or its code does something else now."""
    if not (root / file).is_file():
        return True
    before = read_git("show", f"{commit}:{file}", root=root)
    now = (root / file).read_text(encoding="utf-8")
    if file.endswith(".ipynb"):
        before = code_of_cells(before)
        now = code_of_cells(now)
    return meaning_of(before) != meaning_of(now)


def code_of_cells(notebook: str) -> str:
    """The code of a notebook without its parameters."""
    cells = nbformat.reads(notebook, as_version=4).cells
    sources = [
        cell.source
        for cell in cells
        if cell.cell_type == "code" and "parameters" not in cell.metadata.get("tags", [])
    ]
    return "\n".join(sources)


def meaning_of(source: str) -> str:
    """What Python does: the code without comments, docstrings, layout, the order of names that are
    imported together, and the types of functions.

    Annotated names stay: they are the fields of a dataclass.
    """
    return ast.dump(_WhatRuns().visit(ast.parse(source)))


class _WhatRuns(ast.NodeTransformer):
    """Leaves out what readers and type checkers alone read."""

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        if isinstance(node.value, ast.Constant):
            return None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST | None:
        if any(ast.unparse(decorator) == "overload" for decorator in node.decorator_list):
            return None
        node.returns = None
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.ImportFrom | None:
        if node.module == "typing":
            return None
        node.names.sort(key=ast.dump)
        return node

    def visit_If(self, node: ast.If) -> ast.AST | None:
        if ast.unparse(node.test) == "TYPE_CHECKING" and not node.orelse:
            return None
        return self.generic_visit(node)


def files_of_commit(commit: str, root: Path) -> set[str]:
    """The paths in a commit; none if this clone does not have it."""
    return set(read_git("ls-tree", "-r", "--name-only", commit, root=root).splitlines())


@cache
def read_git(*words: str, root: Path) -> str:
    """What git prints; nothing if it fails."""
    command = ["git", "-C", str(root), *words]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    return done.stdout if done.returncode == 0 else ""
