"""In which parameters our runs differ from a paper: a table for its page of claims.

The page's ``parameters`` in docs/claims/<paper>.yaml say what is meant, what the paper takes, and
in ``ours`` a text with ``{names}`` of the record's parameters, or of its results if ``numbers``
names some.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.claims import Claim, judge, markdown_table
from workflow.configuration import read_json

HEAD = "## Where our parameters differ"
HEADINGS = ("parameter", "paper", "here", "record")


def render_parameters(rows: Sequence[Mapping[str, Any]], records: Path) -> str:
    """The table of `rows`, with the parameters of the records in this folder; of a missing record
    no numbers."""
    cells = []
    for row in rows:
        name = row["record"]
        link = f"[{name}](../../figures/{name}.json)"
        cells.append([row["what"], row["paper"], parameters_in_words(row, records), link])
    return f"{HEAD}\n\n{markdown_table(HEADINGS, cells)}\n"


def parameters_in_words(row: Mapping[str, Any], records: Path) -> str:
    """What a record was run with, in the words of its row."""
    record = read_json(records / f"{row['record']}.json")
    if not record:
        return "no record yet"
    claim = Claim(
        id=row["what"],
        place="",
        statement="",
        record=row["record"],
        numbers=row.get("numbers"),
        ours=row["ours"],
        why="a parameter, not a statement",
    )
    return judge(claim, record).ours
