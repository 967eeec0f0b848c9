"""The page docs/mutation.md: what became of the changes of each module."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchmarks.mutation.rooms import ROOT, Configuration

PAGE = ROOT / "docs" / "mutation.md"
HEAD = """# What the tests notice

Written by `make mutate`, which changes one operator, number or margin of a module at a time (`+` to
`-`, `<` to `<=`, a number by one, a rounding margin to none) and runs the tests that reach it,
doctests among them and slow tests aside. A change survives if they all pass. Excused changes alter
nothing that is promised; their reasons are below."""
TITLES = ("module", "changes", "drawn", "killed", "excused", "survived", "on")
ROW = re.compile(r"\| `(?P<module>[^`]+)` \| (?P<figures>[\d |]+) \| (?P<date>[-\d]+) \|")
SURVIVOR = re.compile(r"\| `(?P<module>[^`]+)`, `(?P<place>[^`]+)` \| `(?P<change>[^`]+)` \|")
#: Where a change is outside of functions and classes.
TOP = "module"
#: Module, place and words of a change.
Key = tuple[str, str, str]


@dataclass(frozen=True)
class Row:
    """The figures of a module."""

    module: str
    changes: int
    drawn: int
    killed: int
    date: str
    survivors: tuple[Key, ...] = ()

    @property
    def n_excused(self) -> int:
        """The number of changes that neither were killed nor are among the survivors."""
        return self.drawn - self.killed - len(self.survivors)

    def excusing(self, excused: set[Key]) -> "Row":
        """The row without those survivors that are excused."""
        left = tuple(key for key in self.survivors if key not in excused)
        return replace(self, survivors=left)


@dataclass(frozen=True)
class Page:
    """The rows of a page, by module."""

    rows: dict[str, Row] = field(default_factory=dict)

    @classmethod
    def read(cls, file: Path = PAGE) -> "Page":
        """That of a file; an empty one if there is none."""
        if not file.exists():
            return cls()
        text = file.read_text(encoding="utf-8")
        below = text.partition("## Surviving")[2].partition("## Excused")[0]
        survivors: dict[str, list[Key]] = {}
        for found in SURVIVOR.finditer(below):
            place = found["place"]
            if place == TOP:
                place = ""
            key = found["module"], place, found["change"].replace(r"\|", "|")
            survivors.setdefault(found["module"], []).append(key)
        rows = {}
        for found in ROW.finditer(text):
            changes, drawn, killed = map(int, found["figures"].split("|")[:3])
            module = found["module"]
            left = tuple(survivors.get(module, ()))
            rows[module] = Row(module, changes, drawn, killed, found["date"], left)
        return cls(rows)

    @property
    def share_survived(self) -> float:
        """The share of the changes drawn and not excused that survive."""
        survived = sum(len(row.survivors) for row in self.rows.values())
        killed = sum(row.killed for row in self.rows.values())
        return survived / max(killed + survived, 1)

    def write(self, configuration: Configuration, file: Path = PAGE) -> None:
        """Write the page anew."""
        rows = sorted(self.rows.values(), key=lambda row: row.module)
        lines = [HEAD, "", self._summary(configuration), "", *table_head(TITLES)]
        for row in rows:
            figures = (row.changes, row.drawn, row.killed, row.n_excused, len(row.survivors))
            lines.append(table_row([f"`{row.module}`", *map(str, figures), row.date]))
        lines += ["", "## Surviving", ""]
        surviving = [table_row(shown_key(key)) for row in rows for key in row.survivors]
        if surviving:
            lines += [*table_head(("where", "change")), *surviving]
        else:
            lines.append("None.")
        lines += ["", "## Excused", "", *table_head(("where", "change", "reason"))]
        for excuse in configuration.excuses:
            lines.append(table_row((*shown_key(excuse.key), excuse.reason)))
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def _summary(self, configuration: Configuration) -> str:
        """Two sentences with the sums of all modules."""
        n_modules = sum(len(room.modules) for room in configuration.rooms)
        drawn = sum(row.drawn for row in self.rows.values())
        n_excused = sum(row.n_excused for row in self.rows.values())
        survived = sum(len(row.survivors) for row in self.rows.values())
        return (
            f"{len(self.rows)} of the {n_modules} modules in `config/mutation.yaml` have been "
            "judged. "
            f"Of {drawn:,} changes drawn from them, {n_excused} are excused; "
            f"of the others {survived} survive, {self.share_survived:.1%}."
        )


def shown_key(key: Key) -> tuple[str, str]:
    """Two cells for a change."""
    module, place, change = key
    return f"`{module}`, `{place or TOP}`", f"`{change}`".replace("|", r"\|")


def table_head(titles: Iterable[str]) -> list[str]:
    """The first two lines of a table."""
    titles = [*titles]
    return [table_row(titles), table_row(["---"] * len(titles))]


def table_row(cells: Iterable[str]) -> str:
    """A row of a table."""
    return f"| {' | '.join(cells)} |"
