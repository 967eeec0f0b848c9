"""What reviewers ask of batches, rendered by ``make claims`` into ARTIFACT.md, REPRODUCING.md and codecheck.yml.

Minutes and memory of each notebook are in ``docs/costs.json``, which ``make publish-figures`` writes.
"""

import re
from datetime import datetime, timedelta
from math import ceil

import yaml

from experiments.claims import markdown_table
from workflow.configuration import PROFILES, ROOT, owner_of, read_json, read_notebooks, records_in, title_of
from workflow.records import read_runs, summary

COSTS = "docs/costs.json"
REGION = re.compile(r"(<!-- rendered by make claims -->\n).*(<!-- end of what is rendered -->)", re.DOTALL)
CODECHECKER = """# Rendered by make claims from CITATION.cff, config/notebooks.yaml and figures/. make figures
# PROFILE=paper, then make publish-figures, write the files again. The codechecker adds codechecker, report,
# summary and certificate. Version 1.0 of the specification, because 2.0 asks for an ORCID of every author.
"""


def render(root=ROOT):
    """Texts by path."""
    notebooks, pages = read_notebooks(root), {}
    regions = {"ARTIFACT.md": f"{summary(read_runs(root))}\n", "REPRODUCING.md": _takes(notebooks, read_costs(root))}
    for name, rendered in regions.items():
        pages[name] = with_region((root / name).read_text(encoding="utf-8"), rendered)
    return pages | {"codecheck.yml": _codecheck(notebooks, root)}


def with_region(text, rendered):
    """A page with what stands between its marks replaced."""
    return REGION.sub(lambda found: f"{found[1]}\n{rendered}\n{found[2]}", text)


def read_costs(root=ROOT):
    """Costs of the published batches: by profile, by notebook; empty if nothing was published."""
    costs = read_json(root / COSTS)
    return {profile: costs.get(profile, {}) for profile in PROFILES}


def _takes(notebooks, costs):
    """Minutes and memory of each profile, and of each notebook in it."""
    heads = ("profile", "notebooks", "minutes in all", "minutes one after another", "most memory, MB", "measured on")
    profiles = []
    for profile, took in costs.items():
        parts = list(took.values())
        if not parts:
            profiles.append((profile, *["not measured yet"] * 5))
            continue
        each = sum(part["seconds"] for part in parts) / 60
        most = max(part["peak_megabytes"] for part in parts)
        machines = "; ".join(sorted({part["machine"] for part in parts}))
        profiles.append((profile, str(len(parts)), f"{_minutes(parts):.0f}", f"{each:.0f}", str(most), machines))
    rows = []
    for name in notebooks:
        noted = [took.get(name) for took in costs.values()]
        cells = [(_tenths(cost["seconds"] / 60), str(cost["peak_megabytes"])) if cost else ("", "") for cost in noted]
        rows.append([name, *(cell for pair in cells for cell in pair)])
    each = markdown_table(("notebook", "quick, minutes", "quick, MB", "paper, minutes", "paper, MB"), rows)
    return f"{markdown_table(heads, profiles)}\n\n{each}\n"


def _tenths(minutes):
    """Rounded up to tenths, so that nothing takes 0.0 minutes."""
    return f"{ceil(10 * minutes) / 10:.1f}"


def _minutes(costs):
    """From the first start to the last end."""
    ends = [datetime.fromisoformat(cost["time_utc"]) for cost in costs]
    starts = [end - timedelta(seconds=cost["seconds"]) for end, cost in zip(ends, costs, strict=True)]
    return (max(ends) - min(starts)).total_seconds() / 60


def _codecheck(notebooks, root):
    """The author's part of a CODECHECK configuration file."""
    citation = yaml.safe_load((root / "CITATION.cff").read_text(encoding="utf-8"))
    authors = []
    for author in citation["authors"]:
        parts = (author.get(part, "") for part in ("given-names", "name-particle", "family-names"))
        authors.append({"name": author.get("name") or " ".join(filter(None, parts))})
        if "orcid" in author:
            authors[-1]["ORCID"] = author["orcid"].rpartition("/")[2]
    reference = citation.get("url") or citation.get("repository-code")
    if "doi" in citation:
        reference = f"https://doi.org/{citation['doi']}"
    content = {
        "version": "https://codecheck.org.uk/spec/config/1.0/",
        "paper": {
            "title": citation["title"],
            "authors": authors,
            "reference": reference or "unpublished; CITATION.cff lists the papers that it reproduces",
        },
        "source": "data/README.md says where each data set comes from, and under which licence",
        "manifest": _manifest(notebooks, root),
    }
    if "repository-code" in citation:
        content["repository"] = citation["repository-code"]
    return f"---\n{CODECHECKER}{yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=120)}"


def _manifest(notebooks, root):
    """The published figures in the order of their notebooks, each with the notebook's title."""
    figures = root / "figures"
    owned = [(name, owner) for name in records_in(figures) if (owner := owner_of(name, notebooks))]
    order, manifest = list(notebooks), []
    for name, owner in sorted(owned, key=lambda pair: order.index(pair[1])):
        suffix = next(suffix for suffix in (".png", ".csv", ".json") if (figures / f"{name}{suffix}").is_file())
        title = title_of(notebooks[owner].path(root))
        manifest.append({"file": f"figures/{name}{suffix}", "comment": f"{name}: {title}"})
    return manifest
