"""Small tables of recorded numbers on a page of claims, where a sentence would be a row of digits.

A section's ``tables`` in docs/claims/<paper>.yaml name a record, its ``numbers`` as a claim does,
``columns`` as {what: expression} or {what: [head, ...]}, ``rows`` as {label: text} with
``{expression:format}`` in all of them, and under ``claims`` those whose results it
shows, under ``beside`` those whose own words stay beside its link. ``turned: true`` shows the
columns as rows.
"""

from collections.abc import Callable, Mapping, Sequence
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
    heads = heads_of(columns, filled)
    if UNRECORDED in heads:
        return f"{title} {UNRECORDED}"
    lines = [[filled(what), *heads]]
    for label, text in table["rows"].items():
        row = [filled(label), *filled(text).split(BETWEEN)]
        if len(row) != len(lines[0]):
            raise ClaimError(
                f"{table['title']}: {label} must have a number for each of {len(heads)} "
                f"columns, found {len(row) - 1}; correct it"
            )
        lines.append(row)
    if table.get("turned"):
        lines = [list(column) for column in zip(*lines, strict=True)]
    return f"{title}\n\n{markdown_table(lines[0], lines[1:])}"


def heads_of(columns: str | Sequence[str], filled: Callable[[str], str]) -> list[str]:
    """The heads of the columns: the values of an expression, or texts; `filled` fills a text from
    the record."""
    if isinstance(columns, str):
        return filled(f"{{{columns}}}").split(BETWEEN)
    return [filled(head) for head in columns]


def link_tables(
    tables: Sequence[Mapping[str, Any]], results: Mapping[str, str] | None = None
) -> dict[str, str]:
    """What a page shows as a claim's result, by claim: the links to its tables, after its own words
    in `results` if a table stands beside them."""
    shown: dict[str, list[str]] = {}
    for table in tables:
        link = f"[{table['title']}](#{table['id']})"
        for claim in table.get("claims", ()):
            shown.setdefault(claim, []).append(link)
        for claim in table.get("beside", ()):
            words = (results or {}).get(claim, "")
            shown.setdefault(claim, [words]).append(link)
    return {claim: "; ".join(filter(None, parts)) for claim, parts in shown.items()}
