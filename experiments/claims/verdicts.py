"""The verdicts that a notebook shows in its last cell."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from experiments.claims.judging import judge
from experiments.claims.numbers import fill, names_of
from experiments.claims.statement import Claim, ClaimError, claims_of, read_claims
from experiments.figures import output_folder
from experiments.parameters import literal_assignments, load_yaml
from experiments.provenance import owner_of, repository_folder


@dataclass(frozen=True)
class Verdicts:
    """A table of statements, our results and verdicts, and a link to the published figure, shown by
    notebooks."""

    markdown: str
    count: int

    def _repr_markdown_(self) -> str:
        return self.markdown

    def __repr__(self) -> str:
        return f"{self.count} claims"


def verdicts(name: str) -> Verdicts:
    """Verdicts on the statements that the notebook `name` decides, from the record that it has just
    written.

    Where the parameters differ from those at which a claim is judged, the table has the published
    verdict. Never fails.
    """
    paper, _, _ = name.partition("/")
    page = repository_folder() / "docs" / "claims" / f"{paper}.yaml"
    record = json.loads((output_folder() / f"{name}.json").read_text(encoding="utf-8"))
    profile = profile_of(record)
    claims = claims_of(read_claims(page)) if page.is_file() else []
    rows = [row_of(claim, record, profile, paper) for claim in claims if claim.record == name]
    text = markdown_table((head_of(paper), "ours", "verdict"), rows)
    return Verdicts(text + link_to_published(name), len(rows))


def row_of(claim: Claim, record: Mapping, profile: str, paper: str) -> tuple[str, str, str]:
    """The statement, our result, and the verdict with its links: the cells of a row of Markdown.

    `profile` is that of the record's parameters; at others than those at which the claim is judged,
    the verdict is the published one. `paper` is the name of the claim's page.
    """
    is_judged = profile == "paper" or (profile == "quick" and claim.quick)
    ours = ""
    words = f"Not judged at these parameters. Published verdict: {published_verdict(claim)}"
    try:
        ours = fill(claim, claim.ours, names_of(claim, record))
        if is_judged:
            words = judge(claim, record).words
    except ClaimError as problem:
        if is_judged:
            words = str(problem)
    links = f"[claim](../../docs/claims/{paper}.md#{claim.id})"
    if claim.erratum:
        links += f", [erratum](../../docs/{claim.erratum})"
    return claim.place_and_statement, ours, f"{words} ({links})"


def published_verdict(claim: Claim) -> str:
    """The kind of the verdict on the published record; "none" if it has none."""
    path = repository_folder() / "figures" / f"{claim.record}.json"
    try:
        return judge(claim, json.loads(path.read_text(encoding="utf-8"))).kind
    except (ClaimError, OSError):
        return "none"


def link_to_published(name: str) -> str:
    """A link to the published figure, or else to the table; nothing if neither is there."""
    for kind, published in (("figure", f"figures/{name}.png"), ("table", f"figures/{name}.csv")):
        if (repository_folder() / published).is_file():
            return f"\n\nThe published {kind}: [{published}](../../{published})"
    return ""


def head_of(page: str) -> str:
    """The heading of a page's column of statements."""
    if page in ("datasets", "explore"):
        return "statement"
    return "the paper"


def markdown_table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Lines of a Markdown table."""
    heads = list(heads)
    lines = []
    for row in [heads, ["---"] * len(heads), *rows]:
        cells = [cell.replace("|", "\\|").replace("\n", " ") for cell in row]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def profile_of(record: Mapping) -> str:
    """Profile of a record; of one made by hand, the profile with exactly its parameters."""
    if record["profile"] != "interactive":
        return record["profile"]
    root = repository_folder()
    published = root / "figures" / f"{record['name']}.json"
    if published.is_file():
        known = json.loads(published.read_text(encoding="utf-8"))
        if known["parameters"] == record["parameters"]:
            return known["profile"]
    if quick_parameters(record["name"], root) == record["parameters"]:
        return "quick"
    return "interactive"


def quick_parameters(name: str, root: Path) -> dict | None:
    """What the quick profile gives to the notebook that saves a record, in the form of a record;
    None if there is no such notebook."""
    entries = _read_yaml(root / "config" / "notebooks.yaml")
    owner = owner_of(name, entries) or name
    facts = entries.get(owner) or {}
    notebook = root / "notebooks" / f"{facts.get('notebook', owner)}.ipynb"
    if not notebook.is_file():
        return None
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        if "parameters" in cell["metadata"].get("tags", ()):
            defaults = literal_assignments("".join(cell["source"]))
            values = defaults | facts.get("parameters", {}) | facts.get("quick", {})
            return json.loads(json.dumps(values))
    return None


def _read_yaml(path: Path) -> dict:
    """The mapping in a file; empty if there is none."""
    if not path.is_file():
        return {}
    return load_yaml(path.read_text(encoding="utf-8"))
