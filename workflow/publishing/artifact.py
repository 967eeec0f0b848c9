"""What reviewers ask of batches, rendered by ``make claims`` into ARTIFACT.md, REPRODUCING.md and
codecheck.yml."""

import re
from math import ceil

import yaml

from experiments.claims import markdown_table
from workflow.configuration import ROOT, owner_of, read_notebooks, records_in, title_of
from workflow.publishing.records import read_runs, summary

REGION = re.compile(
    r"(<!-- rendered by make claims -->\n).*(<!-- end of what is rendered -->)", re.DOTALL
)
CODECHECK = re.compile(r"(?<=^manifest:\n).*", re.DOTALL | re.MULTILINE)


def render(root=ROOT):
    """Texts by path."""
    notebooks, pages, records = read_notebooks(root), {}, records_in(root / "figures")
    regions = {
        "ARTIFACT.md": f"{summary(read_runs(root))}\n",
        "REPRODUCING.md": _costs(notebooks, records),
    }
    for name, rendered in regions.items():
        pages[name] = with_region((root / name).read_text(encoding="utf-8"), rendered)
    manifest = yaml.safe_dump(
        _manifest(notebooks, records, root), sort_keys=False, allow_unicode=True, width=120
    )
    codecheck = (root / "codecheck.yml").read_text(encoding="utf-8")
    return pages | {"codecheck.yml": CODECHECK.sub(lambda _: manifest, codecheck)}


def with_region(text, rendered):
    """A page with what stands between its marks replaced."""
    return REGION.sub(lambda found: f"{found[1]}\n{rendered}\n{found[2]}", text)


def _costs(notebooks, records):
    """Processor time and memory of the published batch, and of each notebook in it."""
    rows = []
    for name in notebooks:
        if cost := records.get(name, {}).get("cost"):
            # rounded up, so that nothing takes 0.0 minutes
            minutes = ceil(cost["cpu_seconds"] / 6) / 10
            rows.append((name, f"{minutes:.1f}", str(cost["peak_megabytes"])))
    minutes, most = (
        sum(float(row[1]) for row in rows),
        max((int(row[2]) for row in rows), default=0),
    )
    machines = {
        "{processor}, {cores} cores".format(**record["machine"]) for record in records.values()
    }
    text = f"{len(rows)} notebooks, {minutes:.0f} minutes of one processor, at most {most} MB; measured on "
    text += f"{'; '.join(sorted(machines))}.\n\n"
    return text + markdown_table(("notebook", "minutes of one processor", "MB"), rows) + "\n"


def _manifest(notebooks, records, root):
    """The published figures in the order of their notebooks, each with the notebook's title."""
    owned = [(name, owner) for name in records if (owner := owner_of(name, notebooks))]
    order, manifest = list(notebooks), []
    for name, owner in sorted(owned, key=lambda pair: order.index(pair[1])):
        files = (root / "figures" / f"{name}{suffix}" for suffix in (".png", ".csv", ".json"))
        file = next(file for file in files if file.is_file()).relative_to(root).as_posix()
        manifest.append(
            {"file": file, "comment": f"{name}: {title_of(notebooks[owner].path(root))}"}
        )
    return manifest
