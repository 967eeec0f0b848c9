"""Commands and costs for reviewers: ``make claims`` renders them into ARTIFACT.md, REPRODUCING.md, codecheck.yml.

Minutes and memory of each notebook are in ``docs/costs.json``, which ``make publish-figures`` writes.
"""

import json
import math
import re
from datetime import datetime, timedelta

import yaml

from experiments.claims import markdown_table
from workflow.configuration import PROFILES, ROOT, owner_of, read_notebooks
from workflow.fingerprint import read_status
from workflow.other_runs import SEED, read_runs, summary, tolerance_of
from workflow.site import PAPERS, title_of

COSTS = "docs/costs.json"
REGION = re.compile(r"(<!-- rendered by make claims -->\n).*(<!-- end of what is rendered -->)", re.DOTALL)
CODECHECKER = """# Rendered by make claims from CITATION.cff, config/notebooks.yaml and figures/. make figures
# PROFILE=paper, then make publish-figures, write the files again. The codechecker adds codechecker, report,
# summary and certificate. Version 1.0 of the specification, because 2.0 asks for an ORCID of every author.
"""


def render(judged, root=ROOT):
    """Texts by path; `judged` has each paper's name, claim, and verdict or None."""
    notebooks, costs = read_notebooks(root), read_costs(root)
    claims = _claims(judged, notebooks, costs["paper"], read_runs(root))
    regions = {"ARTIFACT.md": claims, "REPRODUCING.md": _takes(notebooks, costs)}
    texts = {name: (root / name).read_text(encoding="utf-8") for name in regions if (root / name).is_file()}
    pages = {name: _with_region(text, regions[name]) for name, text in texts.items()}
    if (root / "CITATION.cff").is_file():
        pages["codecheck.yml"] = _codecheck(notebooks, root)
    return pages


def batch_costs(names, profile, root=ROOT):
    """Seconds, memory, machine and time of each notebook that the last batch of a profile ran."""
    costs = {}
    for name in names:
        path = root / "build" / profile / "figures" / f"{name}.json"
        if path.is_file():
            record = json.loads(path.read_text(encoding="utf-8"))
            costs[name] = {
                "seconds": read_status(name, profile, root)["seconds"],
                "peak_megabytes": record["cost"]["peak_megabytes"],
                "machine": "{processor}, {cores} cores".format(**record["machine"]),
                "time_utc": record["time_utc"],
            }
    return costs


def read_costs(root=ROOT):
    """Costs of the published batches: by profile, by notebook; empty if nothing was published."""
    path = root / COSTS
    costs = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return {profile: costs.get(profile, {}) for profile in PROFILES}


def _with_region(text, rendered):
    return REGION.sub(lambda found: f"{found[1]}\n{rendered}\n{found[2]}", text)


def _claims(judged, notebooks, costs, runs):
    """Tables of checks by paper: claim, command, expected result, verdict, tolerance, and minutes."""
    tables, with_seed = {}, runs.get(SEED, {})
    for paper, claim, verdict in judged:
        if claim.record:
            owner = owner_of(claim.record, notebooks)
            command = f"`make figures PROFILE=paper ONLY={owner}`"
            took = _tenths(costs[owner]["seconds"] / 60) if owner in costs else ""
        elif claim.test:
            owner, took = None, ""
            command = f"`.venv/bin/pytest -p no:nbval {' '.join(claim.tests)}`"
        else:
            continue
        tolerance = "no verdict yet"
        if verdict is not None:
            timing = owner is not None and notebooks[owner].timing
            tolerance = "the test passes" if owner is None else "the verdict alone" if timing else "digits shown"
            tolerance = "its interval" if verdict.random and not timing else tolerance
            moved = tolerance_of(with_seed.get(f"{paper}#{claim.id}"))
            tolerance += f"; {moved}" if moved else ""
        expected = (verdict.ours, verdict.kind) if verdict else ("", "")
        name = f"[{claim.place}](docs/claims/{paper}.md#{claim.id}): {claim.statement}"
        tables.setdefault(paper, []).append((name, command, *expected, tolerance, took))
    heads = ("claim", "command", "expected", "verdict", "tolerance", "minutes")
    parts = [f"{summary(runs)}\n"] if runs else []
    parts += (f"### {PAPERS[paper]}\n\n{markdown_table(heads, rows)}\n" for paper, rows in tables.items())
    return "\n".join(parts)


def _takes(notebooks, costs):
    """Minutes and memory of each profile, and of each notebook in it."""
    heads = ("profile", "notebooks", "minutes in all", "minutes one after another", "most memory, MB", "measured on")
    profiles = []
    for profile, took in costs.items():
        parts = list(took.values())
        if not took:
            profiles.append((profile, *["not measured yet"] * 5))
            continue
        each = f"{sum(part['seconds'] for part in parts) / 60:.0f}"
        most = str(max(part["peak_megabytes"] for part in parts))
        machines = "; ".join(sorted({part["machine"] for part in parts}))
        profiles.append((profile, str(len(took)), f"{_minutes(parts):.0f}", each, most, machines))
    rows = []
    for name in notebooks:
        cells = [name]
        for took in costs.values():
            cost = took.get(name)
            cells += [_tenths(cost["seconds"] / 60), str(cost["peak_megabytes"])] if cost else ["", ""]
        rows.append(cells)
    each = markdown_table(("notebook", "quick, minutes", "quick, MB", "paper, minutes", "paper, MB"), rows)
    return f"{markdown_table(heads, profiles)}\n\n{each}\n"


def _tenths(minutes):
    """Rounded up to tenths, so that nothing takes 0.0 minutes."""
    return f"{math.ceil(10 * minutes) / 10:.1f}"


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
        named = {"name": author.get("name") or " ".join(filter(None, parts))}
        orcid = author.get("orcid", "").rpartition("/")[2]
        authors.append(named | ({"ORCID": orcid} if orcid else {}))
    place = citation.get("url") or citation.get("repository-code")
    reference = f"https://doi.org/{citation['doi']}" if "doi" in citation else place
    manifest = []
    for record in sorted((root / "figures").rglob("*.json")):
        name = record.relative_to(root / "figures").with_suffix("").as_posix()
        owner = owner_of(name, notebooks)
        if owner is not None:
            suffix = next(suffix for suffix in (".png", ".csv", ".json") if record.with_suffix(suffix).is_file())
            facts = {"file": f"figures/{name}{suffix}", "comment": f"{name}: {title_of(notebooks[owner].path(root))}"}
            manifest.append((list(notebooks).index(owner), facts))
    content = {
        "version": "https://codecheck.org.uk/spec/config/1.0/",
        "paper": {
            "title": citation["title"],
            "authors": authors,
            "reference": reference or "unpublished; CITATION.cff lists the papers that it reproduces",
        },
        "source": "data/README.md says where each data set comes from, and under which licence",
        "manifest": [facts for _, facts in sorted(manifest, key=lambda pair: pair[0])],
    }
    if "repository-code" in citation:
        content["repository"] = citation["repository-code"]
    return f"---\n{CODECHECKER}{yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=120)}"
