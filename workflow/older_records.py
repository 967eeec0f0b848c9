"""Which published records are older than the code that makes them: `make claims` lists these.

The code is that of the notebook's cells and of the modules that its run imported, without those that only
save and show results. Comments, docstrings and layout do not count.
"""

import ast
import subprocess
from functools import cache

import nbformat

from workflow.configuration import ROOT, owner_of, read_notebooks, read_profile, records_in
from workflow.fingerprint import files_of_modules

COMPUTE_NOTHING = {"experiments/claims.py", "experiments/figures.py", "experiments/provenance.py"}


def older_records(root=ROOT):
    """The parts of its code that differ from the commit that made it, by published record that has some."""
    notebooks, profile, older = read_notebooks(root), read_profile("paper", root), {}
    for name, record in records_in(root / "figures").items():
        entry, commit = notebooks[owner_of(name, notebooks)], record["commit"]["id"]
        there = set(_git("ls-tree", "-r", "--name-only", commit, root=root).splitlines())
        if not there:
            older[name] = [f"commit {commit[:7]}, which this clone does not have"]
            continue
        files = sorted(files_of_modules(record["modules"]) & there - COMPUTE_NOTHING)
        notebook = entry.path(root).relative_to(root).as_posix()
        changed = [file for file in (notebook, *files) if file not in there or _is_changed(file, commit, root)]
        if entry.declared_parameters(root) | profile.notebooks[entry.name] != record["parameters"]:
            changed.append("parameters")
        if changed:
            older[name] = changed
    return older


@cache
def _is_changed(file, commit, root):
    """Whether a file of a commit is gone, or does something else now."""
    if not (root / file).is_file():
        return True
    texts = (_git("show", f"{commit}:{file}", root=root), (root / file).read_text(encoding="utf-8"))
    if file.endswith(".ipynb"):
        texts = map(_source, texts)
    before, now = (ast.dump(_WithoutDocstrings().visit(ast.parse(text))) for text in texts)
    return before != now


def _source(notebook):
    """The code of a notebook without its parameters."""
    cells = [cell for cell in nbformat.reads(notebook, as_version=4).cells if cell.cell_type == "code"]
    return "\n".join(cell.source for cell in cells if "parameters" not in cell.metadata.get("tags", []))


class _WithoutDocstrings(ast.NodeTransformer):
    def visit_Expr(self, node):
        return None if isinstance(node.value, ast.Constant) else node


@cache
def _git(*words, root):
    """What git prints; nothing if it fails."""
    done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, encoding="utf-8", check=False)
    return done.stdout if done.returncode == 0 else ""
