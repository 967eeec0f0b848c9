"""Which published records are older than the code that makes them: `make claims` lists these.

The code is that of the notebook's cells and of the modules that its run imported, without those that only
save and show results. Comments, docstrings and layout do not count.
"""

import ast
import json
import subprocess
from functools import cache

import nbformat

from workflow.configuration import ROOT, owner_of, read_notebooks, read_profile

COMPUTE_NOTHING = {"experiments/claims.py", "experiments/figures.py", "experiments/provenance.py"}


def older_records(root=ROOT):
    """By published record, the parts of its code that differ from the commit that made it; without those that agree."""
    notebooks, profile, older = read_notebooks(root), read_profile("paper", root), {}
    for path in sorted((root / "figures").rglob("*.json")):
        record, name = json.loads(path.read_text(encoding="utf-8")), path.relative_to(root / "figures").as_posix()
        entry = notebooks[owner_of(name.removesuffix(".json"), notebooks)]
        commit = record["commit"]["id"]
        if _committed(commit, "Makefile", root) is None:
            older[name] = [f"commit {commit[:7]}, which this clone does not have"]
            continue
        parts = [entry.path(root).relative_to(root).as_posix(), *_files_of(record["modules"], commit, root)]
        parts = [part for part in parts if _code(_committed(commit, part, root), part) != _code(_now(part, root), part)]
        if entry.declared_parameters(root) | profile.notebooks[entry.name] != record["parameters"]:
            parts.append("parameters")
        if parts:
            older[name] = parts
    return older


def _files_of(modules, commit, root):
    """Paths of modules and packages as they were at a commit."""
    there = set(_git("ls-tree", "-r", "--name-only", commit, root=root).splitlines())
    paths = [module.replace(".", "/") for module in modules]
    files = {file for path in paths for file in (f"{path}.py", f"{path}/__init__.py")}
    return sorted(files & there - COMPUTE_NOTHING)


@cache
def _code(text, path):
    """What a file does, in a form that comments, docstrings and layout do not change."""
    if text is None:
        return None
    if path.endswith(".ipynb"):
        cells = [cell for cell in nbformat.reads(text, as_version=4).cells if cell.cell_type == "code"]
        text = "\n".join(cell.source for cell in cells if "parameters" not in cell.metadata.get("tags", []))
    return ast.dump(_WithoutText().visit(ast.parse(text)))


class _WithoutText(ast.NodeTransformer):
    """Removes docstrings."""

    def visit_Expr(self, node):
        return None if isinstance(node.value, ast.Constant) else node


def _now(path, root):
    return (root / path).read_text(encoding="utf-8") if (root / path).is_file() else None


def _committed(commit, path, root):
    """The text of a file at a commit, None if there is none."""
    return _git("show", f"{commit}:{path}", root=root)


@cache
def _git(*words, root):
    done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, encoding="utf-8", check=False)
    return done.stdout if done.returncode == 0 else None
