"""docs/map.md: from what a paper numbers to our code, notebooks and claims.

docs/map.yaml is the table of algorithms, definitions, theorems and equations: by paper, the code
that implements each and the claims that name it. A notebook belongs to the code that it uses, by
`workflow.publishing.used_code`. Figures and tables are those that the claims' places name, and
those after which notebooks are named.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import yaml

from experiments.claims import Claim, claims_of, markdown_table
from workflow.configuration import (
    ROOT,
    ConfigurationError,
    Notebook,
    owner_of,
    read_notebooks,
    sources,
)
from workflow.publishing.used_code import code_used_by, definition_of, split_name

TABLE = "docs/map.yaml"
HEAD = """# From the papers to the code

What a paper numbers, the code that implements it, the notebooks of that paper that use the code,
and the claims that name it. A claim without code or notebook is decided by tests, or says why
nothing decides it. A figure without a row is a drawing. `make claims` renders this page from
docs/map.yaml.
"""
HEADINGS = ("in the paper", "code", "notebooks", "claims")
NUMBER = r"(?:\d+|[IVX]+\b)(?:\([a-z]+\))*"
FIGURES = re.compile(rf"\b(Fig|Table)s?\.? ({NUMBER}(?:(?:, | and | to ){NUMBER})*)")
FIGURE_NAME = re.compile(r"(fig|table)(\d+)[a-z]?")
ROMAN = {"I": 1, "II": 2, "III": 3}


@dataclass(frozen=True)
class Code:
    """A function, class, method or module that implements something."""

    name: str  # such as "TemporalLeakage.tpl"; of a module its own name
    file: str
    path: str  # qualified: "tplrepro.leakage.temporal.TemporalLeakage.tpl"

    def link(self) -> str:
        return f"`{self.name}` ([{self.file}](../{self.file}))"

    def is_among(self, used: Iterable[str]) -> bool:
        """Whether qualified names have it, or a part of it."""
        return any(name == self.path or name.startswith(f"{self.path}.") for name in used)


@dataclass(frozen=True)
class Figure:
    """A figure or a table of a paper."""

    kind: str  # "Fig" or "Table"
    number: int

    def __str__(self) -> str:
        return {"Fig": "Fig.", "Table": "Table"}[self.kind] + f" {self.number}"


@dataclass(frozen=True)
class Row:
    """What one algorithm, definition or theorem of a paper leads to."""

    item: str  # such as "Algorithm 7"
    code: list[Code]
    claims: list[str]  # their ids on the paper's page


def render_map(contents: Mapping[str, Any], root: Path = ROOT) -> str:
    """The text of docs/map.md; `contents` are the pages of claims."""
    notebooks = read_notebooks(root)
    parts = [HEAD]
    for paper, rows in read_table(root).items():
        if paper not in contents:
            continue
        claims = claims_of(contents[paper])
        check_claims(paper, rows, {claim.id for claim in claims})
        used = read_used_code(paper, root)
        cells = [cells_of(row, paper, used) for row in rows]
        cells += rows_of_figures(paper, claims, list(used), notebooks)
        table = markdown_table(HEADINGS, cells)
        parts.append(f"## {contents[paper]['title']}\n\n{table}\n")
    return "\n".join(parts)


def cells_of(row: Row, paper: str, used: Mapping[str, Iterable[str]]) -> list[str]:
    """The cells of a row; `used` maps each notebook of the paper to the names that it uses."""
    code = [one.link() for one in row.code]
    notebooks = [
        name for name, names in used.items() if any(one.is_among(names) for one in row.code)
    ]
    return [row.item, ", ".join(code), link_notebooks(notebooks), link_claims(paper, row.claims)]


def link_notebooks(names: Iterable[str]) -> str:
    return ", ".join(f"[{name.split('/')[1]}](../notebooks/{name}.ipynb)" for name in names)


def link_claims(paper: str, names: Iterable[str]) -> str:
    return ", ".join(f"[{name}](claims/{paper}.md#{name})" for name in names)


def rows_of_figures(
    paper: str, claims: Sequence[Claim], of_paper: Sequence[str], notebooks: Mapping[str, Notebook]
) -> list[list[str]]:
    """The cells of the figures and tables of a paper that claims or its notebooks name."""
    stated: dict[Figure, list[str]] = {}
    shown: dict[Figure, set[str]] = {}
    for name in of_paper:
        figure = figure_of_notebook(name)
        if figure is not None:
            shown.setdefault(figure, set()).add(name)
    for claim in claims:
        for figure in figures_in(claim.place or ""):
            stated.setdefault(figure, []).append(claim.id)
            shown.setdefault(figure, set()).update(notebook_of(claim, notebooks))
    figures = sorted(shown, key=lambda figure: (figure.kind, figure.number))
    return [
        [
            str(figure),
            "",
            link_notebooks(sorted(shown[figure])),
            link_claims(paper, stated.get(figure, [])),
        ]
        for figure in figures
    ]


def figure_of_notebook(name: str) -> Figure | None:
    """The figure after which a notebook is named, as ``tkde2019/fig6a`` is."""
    found = FIGURE_NAME.fullmatch(name.split("/")[1])
    if found is None:
        return None
    return Figure(found[1].capitalize(), int(found[2]))


def figures_in(place: str) -> set[Figure]:
    """The figures and tables that the place of a claim names, such as ``Figs. 3(a) and 4``.

    >>> sorted(map(str, figures_in("Example 2, Figs. 3(a)(i) and 4; Table II, Section III")))
    ['Fig. 3', 'Fig. 4', 'Table 2']
    """
    figures = set()
    for kind, numbers in FIGURES.findall(place):
        for number in re.findall(r"\d+|[IVX]+", numbers):
            figures.add(Figure(kind, ROMAN.get(number) or int(number)))
    return figures


def notebook_of(claim: Claim, notebooks: Mapping[str, Notebook]) -> list[str]:
    """The notebook that makes the record of a claim, if it has one."""
    if claim.record is None:
        return []
    owner = owner_of(claim.record, notebooks)
    if owner is None:
        return []
    return [notebooks[owner].notebook]


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
    module, name = split_name(path)
    if module is None or (name and definition_of(path) is None):
        raise ConfigurationError(
            f"{TABLE}: must name a module, or a function, class or member of one in it, found "
            f"{path}; correct it"
        )
    file = f"{module.name.replace('.', '/')}.py"
    if not (root / file).is_file():
        file = file.replace(".py", "/__init__.py")
    return Code(name or module.name.rpartition(".")[2], file, path)


def check_claims(paper: str, rows: Iterable[Row], stated: set[str]) -> None:
    """ConfigurationError if the table of a paper names a claim that is not among those stated."""
    for row in rows:
        unknown = [claim for claim in row.claims if claim not in stated]
        if unknown:
            raise ConfigurationError(
                f"{TABLE}: {row.item} must name claims of docs/claims/{paper}.yaml, "
                f"found {', '.join(unknown)}; correct it"
            )


def read_used_code(paper: str, root: Path = ROOT) -> dict[str, frozenset[str]]:
    """The qualified names that each notebook of a paper uses."""
    used = {}
    of_paper = {name: one for name, one in sources(root).items() if name.startswith(paper)}
    for name, entry in of_paper.items():
        cells = nbformat.read(entry.path(root), as_version=4).cells
        code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
        used[name] = code_used_by(code)
    return used
