"""Copy a batch's figures into ``figures/``, where they are committed.

Published evidence is the paper profile's, from code that is committed. Only figures of a batch that is up to
date are copied, and none in which a stand-in replaced a data set. If the whole batch is up to date, other
files in ``figures/`` are removed. The costs of both profiles' notebooks are written to docs/costs.json.
"""

import argparse
import json
import shutil
import sys

from tplrepro.files import write_whole
from workflow.artifact import COSTS, batch_costs, read_costs
from workflow.configuration import ROOT, from_committed_code, owner_of, read_notebooks, read_profile
from workflow.fingerprint import outdated

SUFFIXES = (".png", ".pdf", ".csv", ".json")
PUBLISHED = "paper"
AGAIN = "run make figures PROFILE=paper (same TPLREPRO_DATA)"


def publish(root=ROOT):
    """Copy the figures; returns the names of those copied, and one sentence for each that was refused."""
    notebooks = read_notebooks(root)
    stale = set(outdated(notebooks, read_profile(PUBLISHED, root), root))
    source = root / "build" / PUBLISHED / "figures"
    copied, refused = [], []
    for record in sorted(source.rglob("*.json")):
        name = record.relative_to(source).with_suffix("").as_posix()
        owner = owner_of(name, notebooks)
        if owner is None:
            continue
        facts = json.loads(record.read_text(encoding="utf-8"))
        if owner in stale:
            refused.append(f"{name}: notebooks/{owner}.ipynb is not up to date; {AGAIN}")
        elif facts["data"].startswith("synthetic") and notebooks[owner].data:
            refused.append(f"{name}: computed from synthetic data; set TPLREPRO_DATA, {AGAIN}")
        elif not from_committed_code(facts):
            refused.append(f"{name}: made from files that are not committed; commit, {AGAIN}")
        else:
            for suffix in SUFFIXES:
                file = record.with_name(record.stem + suffix)
                target = root / "figures" / file.relative_to(source)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.unlink(missing_ok=True)
                if file.is_file():
                    shutil.copyfile(file, target)
            copied.append(name)
    if not stale and not refused:
        for file in (root / "figures").rglob("*.*"):
            if file.relative_to(root / "figures").with_suffix("").as_posix() not in copied:
                file.unlink()
    return copied, refused


def note_costs(root=ROOT):
    """Write the costs of each batch's notebooks; returns the profiles whose batch is outdated, left as before."""
    notebooks, costs, stale = read_notebooks(root), read_costs(root), []
    for profile in costs:
        if outdated(notebooks, read_profile(profile, root), root):
            stale.append(profile)
        else:
            costs[profile] = batch_costs(notebooks, profile, root)
    write_whole(root / COSTS, (json.dumps(costs, indent=1) + "\n").encode())
    return stale


def main(arguments=None):
    """Publish the figures of the paper profile."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--profile", default=PUBLISHED)
    options = parser.parse_args(arguments)
    if options.profile != PUBLISHED:
        print(
            f"PROFILE must be {PUBLISHED}, whose figures are evidence, found {options.profile!r}; leave it out",
            file=sys.stderr,
        )
        return 2
    copied, refused = publish()
    records = [json.loads((ROOT / "figures" / f"{name}.json").read_text(encoding="utf-8")) for name in copied]
    commits = {record["commit"]["id"] for record in records}
    print(*(f"figures/{name}" for name in copied), sep="\n")
    for reason in refused:
        print(f"not published: {reason}", file=sys.stderr)
    for profile in note_costs():
        print(f"{COSTS} keeps the {profile} profile: run make figures PROFILE={profile}", file=sys.stderr)
    if len(commits) > 1:
        print(f"published, but from {len(commits)} commits: for one, make clean and {AGAIN}", file=sys.stderr)
    return 1 if refused or len(commits) != 1 else 0


if __name__ == "__main__":
    sys.exit(main())
