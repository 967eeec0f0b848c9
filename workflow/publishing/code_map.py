"""docs/map.md: from each algorithm, definition, theorem and equation of a paper to our code.

docs/map.yaml is the table: by paper and by what the paper numbers, the code that implements it and
the claims that name it. A notebook of that paper belongs to the code that its cells mention, or the
modules of `experiments` that it imports.
"""

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import nbformat
import yaml

from experiments.claims import claims_of, markdown_table
from workflow.configuration import ROOT, ConfigurationError, sources

TABLE = "docs/map.yaml"
HEAD = """# From the papers to the code

What a paper numbers, the code that implements it, the notebooks of that paper that use the code,
and the claims that name it. A claim without code or notebook is decided by tests, or says why
nothing decides it. `make claims` renders this page from docs/map.yaml.
"""
HEADINGS = ("in the paper", "code", "notebooks", "claims")
IMPORT = re.compile(r"from (experiments\.[\w.]+) import ([\w, ]+)")


@dataclass(frozen=True)
class Code:
    """A function, class, method or module that implements something."""

    name: str  # such as "TemporalLeakage.tpl"; of a module its own name
    file: str

    def link(self) -> str:
        return f"`{self.name}` ([{self.file}](../{self.file}))"

    def is_mentioned(self, text: str) -> bool:
        """Whether a text has its name; of a method, its name after a dot."""
        owner, _, name = self.name.rpartition(".")
        prefix = r"\." if owner else ""
        return re.search(rf"{prefix}\b{name}\b", text) is not None


@dataclass(frozen=True)
class Row:
    """What one algorithm, definition or theorem of a paper leads to."""

    item: str  # such as "Algorithm 7"
    code: list[Code]
    claims: list[str]  # their ids on the paper's page


def render_map(contents: Mapping[str, Any], root: Path = ROOT) -> str:
    """The text of docs/map.md; `contents` are the pages of claims."""
    texts = read_used_code(root)
    parts = [HEAD]
    for paper, rows in read_table(root).items():
        if paper not in contents:
            continue
        check_claims(paper, rows, contents[paper])
        of_paper = {name: text for name, text in texts.items() if name.startswith(paper)}
        cells = [cells_of(row, paper, of_paper) for row in rows]
        table = markdown_table(HEADINGS, cells)
        parts.append(f"## {contents[paper]['title']}\n\n{table}\n")
    return "\n".join(parts)


def cells_of(row: Row, paper: str, texts: Mapping[str, str]) -> list[str]:
    """The cells of a row; `texts` maps each notebook of the paper to the code that it uses."""
    code = [one.link() for one in row.code]
    notebooks = [
        f"[{name.split('/')[1]}](../notebooks/{name}.ipynb)"
        for name, text in texts.items()
        if any(one.is_mentioned(text) for one in row.code)
    ]
    claims = [f"[{claim}](claims/{paper}.md#{claim})" for claim in row.claims]
    return [row.item, ", ".join(code), ", ".join(notebooks), ", ".join(claims)]


def read_table(root: Path = ROOT) -> dict[str, list[Row]]:
    """The rows of docs/map.yaml by paper; ConfigurationError for code that there is not."""
    rows = {}
    table = yaml.safe_load((root / TABLE).read_text(encoding="utf-8"))
    for paper, items in table.items():
        rows[paper] = [
            Row(
                item,
                [find_code(path, root) for path in facts.get("code", ())],
                facts.get("claims", []),
            )
            for item, facts in items.items()
        ]
    return rows


def find_code(path: str, root: Path = ROOT) -> Code:
    """The code at a path such as ``tplrepro.leakage.temporal.TemporalLeakage.tpl``."""
    parts = path.split(".")
    for length in range(len(parts), 0, -1):
        file = f"{'/'.join(parts[:length])}.py"
        if not (root / file).is_file():
            continue
        if length == len(parts):
            return Code(parts[-1], file)
        name = ".".join(parts[length:])
        if name in names_defined_in(root / file):
            return Code(name, file)
    raise ConfigurationError(
        f"{TABLE}: must name a module, or a function, class or method in one, found {path}; "
        "correct it"
    )


@cache
def names_defined_in(file: Path) -> set[str]:
    """The functions and classes of a file, and its classes' methods as ``Class.method``."""
    names = set()
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            methods = [part for part in node.body if isinstance(part, ast.FunctionDef)]
            names.update(f"{node.name}.{method.name}" for method in methods)
    return names


def check_claims(paper: str, rows: list[Row], content: Mapping[str, Any]) -> None:
    """ConfigurationError if the table of a paper names a claim that `content`, the page of its
    claims, does not have."""
    stated = {claim.id for claim in claims_of(content)}
    for row in rows:
        unknown = [claim for claim in row.claims if claim not in stated]
        if unknown:
            raise ConfigurationError(
                f"{TABLE}: {row.item} must name claims of docs/claims/{paper}.yaml, "
                f"found {', '.join(unknown)}; correct it"
            )


def read_used_code(root: Path = ROOT) -> dict[str, str]:
    """The code of each notebook's cells, and of the modules of `experiments` that it imports, by
    notebook."""
    texts = {}
    for name, entry in sources(root).items():
        cells = nbformat.read(entry.path(root), as_version=4).cells
        code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
        files = [root / f"{module.replace('.', '/')}.py" for module in imported_modules(code)]
        modules = [file.read_text(encoding="utf-8") for file in files if file.is_file()]
        texts[name] = "".join([code, *modules])
    return texts


def imported_modules(code: str) -> list[str]:
    """The modules of `experiments` that code may import: those that it names, and parts of them."""
    modules = []
    for module, names in IMPORT.findall(code):
        modules.append(module)
        modules += [f"{module}.{name}" for name in names.split(", ")]
    return modules
