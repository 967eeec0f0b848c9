"""Copy a batch's figures into ``figures/``, where they are committed.

Published evidence is the paper profile's, from code that is committed. Only figures of a batch that
is up to date are copied, and none in which a stand-in replaced a data set. If the whole batch is up
to date, other files in ``figures/`` are removed.
"""

import shutil
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any

from experiments.advice import simulated_plans
from workflow.batch.fingerprint import outdated
from workflow.configuration import (
    ROOT,
    owner_of,
    read_notebooks,
    read_profile,
    records_in,
    why_no_evidence,
)

SUFFIXES = (".png", ".pdf", ".csv", ".json")
PUBLISHED = "paper"
#: Reports quote its numbers, by a table of the package.
ADVICE = "explore/advice"


def publish(root: Path = ROOT) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Copy the figures of the published profile from build/ to figures/, those of current notebooks
    only: the records of those copied, by name, and a sentence for each one refused.

    If nothing is stale or refused, other files of figures/ are removed.
    """
    notebooks = read_notebooks(root)
    stale = outdated(notebooks, read_profile(PUBLISHED, root), root)
    source = root / "build" / PUBLISHED / "figures"
    target = root / "figures"
    copied = {}
    refused = []
    for name, record in records_in(source).items():
        owner = owner_of(name, notebooks)
        if owner is None:
            continue
        why = why_no_evidence(name, record, notebooks)
        if owner in stale:
            why = f"is of a notebook that is not up to date; run make figures PROFILE={PUBLISHED}"
        if why:
            refused.append(f"{name} {why}")
        else:
            copy_figure(name, source, target)
            copied[name] = record
    if not stale and not refused:
        remove_others(target, copied)
    return copied, refused


def copy_figure(name: str, source: Path, target: Path) -> None:
    """Copy the files of a figure from the folder `source` to the folder `target`, and remove those
    that it no longer has."""
    (target / name).parent.mkdir(parents=True, exist_ok=True)
    for suffix in SUFFIXES:
        file = f"{name}{suffix}"
        (target / file).unlink(missing_ok=True)
        if (source / file).is_file():
            shutil.copyfile(source / file, target / file)


def remove_others(folder: Path, names: Collection[str]) -> None:
    """Remove the files of a folder that are of no figure with one of these names."""
    for file in folder.rglob("*.*"):
        if file.relative_to(folder).with_suffix("").as_posix() not in names:
            file.unlink()


def main() -> int:
    """Publish the figures of the paper profile."""
    copied, refused = publish()
    if ADVICE in copied:
        simulated_plans.write_table()
    print(*(f"figures/{name}" for name in copied), sep="\n")
    for reason in refused:
        print(f"not published: {reason}", file=sys.stderr)
    commits = {record["commit"]["id"] for record in copied.values()}
    if len(commits) > 1:
        again = f"for one, make clean and run make figures PROFILE={PUBLISHED}"
        print(f"published, but from {len(commits)} commits: {again}", file=sys.stderr)
    return 1 if refused or len(commits) != 1 else 0


if __name__ == "__main__":
    sys.exit(main())
