"""In which parameters our runs differ from a paper: a table for its page of claims.

The page's ``parameters`` in docs/claims/<paper>.yaml say what is meant, what the paper takes, and
in ``ours`` a text with ``{names}`` of the record's parameters, or of its results if ``numbers``
names some.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.claims import markdown_table
from workflow.publishing.number_tables import fill_from_record

HEAD = "## Where our parameters differ"
HEADINGS = ("parameter", "paper", "here", "record")


def render_parameters(rows: Sequence[Mapping[str, Any]], records: Path) -> str:
    """The table of `rows`, with the parameters of the records in this folder."""
    cells = []
    for row in rows:
        name = row["record"]
        link = f"[{name}](../../figures/{name}.json)"
        ours = fill_from_record(row["what"], name, row.get("numbers"), row["ours"], records)
        cells.append([row["what"], row["paper"], ours, link])
    return f"{HEAD}\n\n{markdown_table(HEADINGS, cells)}\n"
