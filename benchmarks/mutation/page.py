"""The page docs/mutation.md: what became of the changes of each module."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.mutation.rooms import ROOT, Excuse

PAGE = ROOT / "docs" / "mutation.md"
HEAD = """# What the tests notice

Written by `make mutate`, which changes one operator, number or margin of a module at a time (`+` to
`-`, `<` to `<=`, a number by one, a rounding margin to none) and runs the tests that reach it,
doctests among them and slow tests aside. A change survives if they all pass. Excused changes alter
nothing that is promised; their reasons are below."""
TITLES = ("module", "changes", "drawn", "killed", "excused", "survived", "on")
ROW = re.compile(r"\| `(?P<module>[^`]+)` \| (?P<figures>[\d |]+) \| (?P<date>[-\d]+) \|")


@dataclass(frozen=True)
class Row:
    """The figures of a module."""

    module: str
    changes: int
    drawn: int
    killed: int
    excused: int
    survived: int
    date: str


def read_rows(page: Path = PAGE) -> dict[str, Row]:
    """The rows of a page, by module."""
    if not page.exists():
        return {}
    rows = {}
    for found in ROW.finditer(page.read_text(encoding="utf-8")):
        changes, drawn, killed, excused, survived = map(int, found["figures"].split("|"))
        rows[found["module"]] = Row(
            found["module"], changes, drawn, killed, excused, survived, found["date"]
        )
    return rows


def share_survived(rows: Iterable[Row]) -> float:
    """The share of the changes drawn and not excused that survive."""
    rows = list(rows)
    judged = sum(row.killed + row.survived for row in rows)
    return sum(row.survived for row in rows) / max(judged, 1)


def write_page(rows: Iterable[Row], excuses: Iterable[Excuse], page: Path = PAGE) -> None:
    """Write the page anew."""
    rows = sorted(rows, key=lambda row: row.module)
    lines = [HEAD, "", summary(rows), "", table_row(TITLES), table_row(["---"] * len(TITLES))]
    for row in rows:
        figures = (row.changes, row.drawn, row.killed, row.excused, row.survived)
        lines.append(table_row([f"`{row.module}`", *map(str, figures), row.date]))
    lines += ["", "## Excused", "", table_row(("where", "change", "reason"))]
    lines.append(table_row(["---"] * 3))
    for excuse in excuses:
        where = f"`{excuse.module}`: `{excuse.place or 'module'}`"
        lines.append(table_row((where, f"`{excuse.change}`".replace("|", "\\|"), excuse.reason)))
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")


def summary(rows: list[Row]) -> str:
    """One sentence with the sums of all modules."""
    drawn = sum(row.drawn for row in rows)
    excused = sum(row.excused for row in rows)
    survived = sum(row.survived for row in rows)
    return (
        f"Of {drawn:,} changes drawn from {len(rows)} modules, {excused} are excused; of the "
        f"others {survived} survive, {share_survived(rows):.1%}."
    )


def table_row(cells: Iterable[str]) -> str:
    """A row of a table."""
    return f"| {' | '.join(cells)} |"
