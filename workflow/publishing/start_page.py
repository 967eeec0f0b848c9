"""The start page of JupyterLab, ``notebooks/index.ipynb``: an introduction, written by hand, and
below it a list of all notebooks by paper, which `make notebooks` renders."""

from itertools import groupby
from pathlib import Path

import nbformat
from nbformat.v4 import new_markdown_cell

from tplreport.files import write_whole
from workflow.configuration import PAPERS, ROOT, sources, title_of

START = "notebooks/index.ipynb"


def start_page(root: Path = ROOT) -> str:
    """The text of the page with the notebooks that there are; its first cell stays as it is."""
    page = nbformat.read(root / START, as_version=4)
    notebooks = sources(root).values()
    page.cells = page.cells[:1]
    for paper, of_paper in groupby(notebooks, lambda entry: entry.notebook.split("/")[0]):
        lines = [_line(entry.notebook, title_of(entry.path(root))) for entry in of_paper]
        text = "\n".join([f"## {PAPERS[paper]}", "", *lines])
        page.cells.append(new_markdown_cell(text, id=f"cell-{len(page.cells)}"))
    return nbformat.writes(page) + "\n"


def write_start_page(root: Path = ROOT) -> bool:
    """Write the page; returns whether it changed."""
    path = root / START
    text = start_page(root)
    if path.read_text(encoding="utf-8") == text:
        return False
    write_whole(path, text.encode())
    return True


def _line(notebook: str, title: str) -> str:
    """The line of a notebook, whose links begin in the folder of the page."""
    figure = notebook.split("/")[1]
    return f"- [{figure}]({notebook}.ipynb): {title}"
