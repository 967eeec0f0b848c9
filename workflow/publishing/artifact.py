"""What reviewers ask of batches, rendered by ``make claims`` into ARTIFACT.md, REPRODUCING.md and
codecheck.yml."""

import re
from collections.abc import Mapping
from math import ceil
from pathlib import Path
from typing import Any

import yaml

from experiments.claims import markdown_table
from workflow.configuration import ROOT, Notebook, owner_of, read_notebooks, records_in, title_of
from workflow.publishing.other_runs import read_runs, summarise_runs

REGION = re.compile(
    r"(<!-- rendered by make claims -->\n).*(<!-- end of what is rendered -->)", re.DOTALL
)
CODECHECK = re.compile(r"(?<=^manifest:\n).*", re.DOTALL | re.MULTILINE)
# What stands for a figure in the manifest: the first of these that there is.
MANIFEST_SUFFIXES = (".png", ".csv", ".json")
Records = Mapping[str, Mapping[str, Any]]


def render(root: Path = ROOT) -> dict[str, str]:
    """Texts by path."""
    notebooks = read_notebooks(root)
    records = records_in(root / "figures")
    regions = {
        "ARTIFACT.md": f"{summarise_runs(read_runs(root))}\n",
        "REPRODUCING.md": render_costs(notebooks, records),
    }
    pages = {}
    for name, rendered in regions.items():
        pages[name] = replace_region((root / name).read_text(encoding="utf-8"), rendered)
    manifest = list_figures(notebooks, records, root)
    rendered = yaml.safe_dump(manifest, sort_keys=False, allow_unicode=True, width=120)
    codecheck = (root / "codecheck.yml").read_text(encoding="utf-8")
    pages["codecheck.yml"] = CODECHECK.sub(lambda _: rendered, codecheck)
    return pages


def replace_region(text: str, rendered: str) -> str:
    """A page with what stands between its marks replaced."""
    return REGION.sub(lambda found: f"{found[1]}\n{rendered}\n{found[2]}", text)


def render_costs(notebooks: Mapping[str, Notebook], records: Records) -> str:
    """Processor time and memory of the published batch, and of each notebook in it."""
    rows = []
    total = 0.0
    largest = 0
    for name in notebooks:
        cost = records.get(name, {}).get("cost")
        if not cost:
            continue
        minutes = ceil(cost["cpu_seconds"] / 6) / 10  # rounded up, so that nothing takes 0.0
        total += minutes
        largest = max(largest, cost["peak_megabytes"])
        rows.append((name, f"{minutes:.1f}", str(cost["peak_megabytes"])))
    machines = {
        "{processor}, {cores} cores".format(**record["machine"]) for record in records.values()
    }
    summary = (
        f"{len(rows)} notebooks, {total:.0f} minutes of one processor, at most {largest} MB; "
        f"measured on {'; '.join(sorted(machines))}."
    )
    table = markdown_table(("notebook", "minutes of one processor", "MB"), rows)
    return f"{summary}\n\n{table}\n"


def list_figures(
    notebooks: Mapping[str, Notebook], records: Records, root: Path
) -> list[dict[str, str]]:
    """The file and the comment of each published figure, in the order of their notebooks; the
    comment is the notebook's title."""
    owners = {name: owner_of(name, notebooks) for name in records}
    manifest = []
    for notebook, entry in notebooks.items():
        for name, owner in owners.items():
            if owner == notebook:
                comment = f"{name}: {title_of(entry.path(root))}"
                manifest.append({"file": find_published_file(name, root), "comment": comment})
    return manifest


def find_published_file(name: str, root: Path) -> str:
    """The picture of a figure, or else its table, or its record, relative to the repository."""
    files = [root / "figures" / f"{name}{suffix}" for suffix in MANIFEST_SUFFIXES]
    first = next(file for file in files if file.is_file())
    return first.relative_to(root).as_posix()
