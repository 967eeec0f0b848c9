"""Copy a batch's figures into ``figures/``, where they are committed.

Only figures of a batch that is up to date are copied, and none that was computed from a synthetic stand-in: the
committed figures show real data or none.
"""

import argparse
import json
import shutil
import sys

from workflow.configuration import ROOT, owner_of, read_notebooks, read_profile
from workflow.fingerprint import outdated

__all__ = ["publish", "main"]

SUFFIXES = (".png", ".pdf", ".csv", ".json")


def publish(profile_name="quick", root=ROOT):
    """Copy the figures; returns the names of those copied, and one sentence for each that was refused."""
    notebooks = read_notebooks(root)
    stale = set(outdated(notebooks, read_profile(profile_name, root), root))
    source = root / "build" / profile_name / "figures"
    copied, refused = [], []
    for record in sorted(source.rglob("*.json")):
        name = record.relative_to(source).with_suffix("").as_posix()
        owner = owner_of(name, notebooks)
        if owner is None:
            continue
        if owner in stale:
            refused.append(f"{name}: notebooks/{owner}.ipynb is not up to date; run make figures (same TPLREPRO_DATA)")
        elif json.loads(record.read_text(encoding="utf-8"))["data"] == "synthetic":
            refused.append(f"{name}: computed from synthetic data; set TPLREPRO_DATA and run make figures")
        else:
            for suffix in SUFFIXES:
                file = record.with_name(record.stem + suffix)
                target = root / "figures" / file.relative_to(source)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.unlink(missing_ok=True)
                if file.is_file():
                    shutil.copyfile(file, target)
            copied.append(name)
    return copied, refused


def main(arguments=None):
    """Publish the figures of a profile."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--profile", default="quick")
    options = parser.parse_args(arguments)
    copied, refused = publish(options.profile)
    for name in copied:
        commit = json.loads((ROOT / "figures" / f"{name}.json").read_text(encoding="utf-8"))["commit"] or {}
        warning = "  (made from files that are not committed: commit, run again)"
        print(f"figures/{name}{warning if commit.get('modified', True) else ''}")
    for reason in refused:
        print(f"not published: {reason}", file=sys.stderr)
    return 1 if refused or not copied else 0


if __name__ == "__main__":
    sys.exit(main())
