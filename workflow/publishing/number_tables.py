"""Small tables of recorded numbers on a page of claims, where a sentence would be a row of digits.

A section's ``tables`` in docs/claims/<paper>.yaml name a record, its ``numbers`` as a claim does,
``columns`` as {what: expression}, ``rows`` as {label: text} with ``{expression:format}`` in both,
and under ``claims`` those whose results it shows.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.claims import Claim, ClaimError, judge, markdown_table
from workflow.configuration import read_json

#: How lists are divided in words.
BETWEEN = ", "
UNRECORDED = "no record yet"


def fill_from_record(
    name: str, record: str, numbers: Mapping[str, Any] | None, text: str, records: Path
) -> str:
    """A text with ``{expression}`` replaced by numbers and parameters of a record in a folder.

    `name` stands in errors. Without the record it is `UNRECORDED`.
    """
    content = read_json(records / f"{record}.json")
    if not content:
        return UNRECORDED
    why = "a number, not a statement"
    claim = Claim(name, "", "", record=record, numbers=numbers, ours=text, why=why)
    return judge(claim, content).ours


def render_table(table: Mapping[str, Any], records: Path) -> str:
    """The anchor, the title and the lines of a table."""

    def filled(text: str) -> str:
        return fill_from_record(
            table["title"], table["record"], table.get("numbers"), text, records
        )

    title = f'<a id="{table["id"]}"></a>{table["title"]} ({table["record"]}):'
    ((what, columns),) = table["columns"].items()
    columns_in_words = filled(f"{{{columns}}}")
    if columns_in_words == UNRECORDED:
        return f"{title} {UNRECORDED}"
    heads = [what, *columns_in_words.split(BETWEEN)]
    rows = []
    for label, text in table["rows"].items():
        row = [filled(label), *filled(text).split(BETWEEN)]
        if len(row) != len(heads):
            raise ClaimError(
                f"{table['title']}: {label} must have a number for each of {len(heads) - 1} "
                f"columns, found {len(row) - 1}; correct it"
            )
        rows.append(row)
    return f"{title}\n\n{markdown_table(heads, rows)}"


def link_tables(tables: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """By claim the link to the table that shows its result."""
    return {
        claim: f"[{table['title']}](#{table['id']})"
        for table in tables
        for claim in table["claims"]
    }
