"""In which parameters our runs differ from a paper: a table for its page of claims.

The page's ``parameters`` in docs/claims/<paper>.yaml say what is meant, what the paper takes, and
in ``ours`` a text with ``{names}`` of the record's parameters, or of its results if ``numbers``
names some.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.claims import markdown_table
from workflow.configuration import owner_of, read_notebooks
from workflow.publishing.number_tables import fill_from_record

HEAD = "## Where our parameters differ"
HEADINGS = ("parameter", "paper", "here", "record")


def render_parameters(rows: Sequence[Mapping[str, Any]], records: Path) -> str:
    """The table of `rows`, with the parameters of the records in this folder."""
    cells = []
    for row in rows:
        name = row["record"]
        ours = fill_from_record(row["what"], name, row.get("numbers"), row["ours"], records)
        cells.append([row["what"], row["paper"], ours, link_notebook(name)])
    return f"{HEAD}\n\n{markdown_table(HEADINGS, cells)}\n"


def link_notebook(record: str) -> str:
    """The name of a record, with a link to the notebook that makes it, if one does."""
    notebooks = read_notebooks()
    owner = owner_of(record, notebooks)
    if owner is None:
        return record
    return f"[{record}](../../notebooks/{notebooks[owner].notebook}.ipynb)"
