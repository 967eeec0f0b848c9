"""Measure the package against its baselines in one run and write docs/benchmarks.md (`make bench`).

    python -m benchmarks.run                      # a quarter of an hour on a machine that does
                                                  # nothing else
    python -m benchmarks.run one whole            # some sections only
    USERS=1000000 python -m benchmarks.run users  # apart, of ten million by default; so are
                                                  # `nothing` and `readers`

Times are wall-clock medians after a warm-up, so compiled functions are loaded. Baselines and
package take turns, so that a drift of the machine's speed meets both. The page is written after
each section and keeps what the others held: each says when, where and from which commit it was
measured.
"""

import importlib
import platform
import subprocess
import sys
import time
import traceback
from pathlib import Path

import numba
import numpy as np

from benchmarks.measuring import ROOT
from benchmarks.sections import SECTIONS, Section
from experiments.provenance import describe_machine

PAGE = ROOT / "docs" / "benchmarks.md"
HEAD = """# Benchmarks

Written by `make bench`; every ratio comes from one run, measuring baseline and package in turn.
Times are wall-clock medians with compiled functions loaded. The baselines are the paper's
algorithms vectorised with NumPy (`tplrepro.published`) and its linear programme through PuLP
(`tplrepro.linear_program`). Each section says when, from which commit and on which machine it was
measured."""


def main(names: list[str]) -> None:
    """Measure the named sections, or all but those that are run by name only."""
    unknown = sorted(set(names) - set(SECTIONS))
    if unknown:
        raise SystemExit(f"sections are {', '.join(SECTIONS)}; found {', '.join(unknown)}")
    if not names:
        names = [name for name, section in SECTIONS.items() if not section.is_apart]
    circumstances = f"{time.strftime('%Y-%m-%d')}, commit {measured_commit()}, {this_machine()}"
    failed = []
    for name in names:
        section = SECTIONS[name]
        print(f"{section.title} ...", flush=True)
        try:
            body = measure(section, circumstances)
        except Exception:
            traceback.print_exc()
            failed.append(name)
            continue
        print(body, flush=True)
        write_page(PAGE, earlier_bodies(PAGE) | {section.title: body})
    print(f"wrote {PAGE.relative_to(ROOT)}")
    if failed:
        raise SystemExit(
            f"sections that failed, of which the page keeps what it had: {', '.join(failed)}"
        )


def measure(section: Section, circumstances: str) -> str:
    """The text below the title of a section; `circumstances` says when, from which commit and where
    it was measured."""
    module = importlib.import_module(f"benchmarks.sections.{section.module}")
    start = time.perf_counter()
    lines = list(module.measure())
    took = time.perf_counter() - start
    return "\n".join([*lines, "", f"*{circumstances}; {took:.0f} s.*"])


def this_machine() -> str:
    """The machine and the versions that decide how fast it is."""
    this = describe_machine()
    return (
        f"{this['processor']}, {this['cores']} cores, {platform.system()}, "
        f"Python {platform.python_version()}, NumPy {np.__version__}, Numba {numba.__version__}"
    )


def measured_commit() -> str:
    """The commit, and whether anything else than the page itself differs from it."""
    git = ["git", "-C", str(ROOT)]
    page = PAGE.relative_to(ROOT)
    others = ["--", ".", f":(exclude){page}"]
    try:
        head = subprocess.check_output([*git, "rev-parse", "--short=10", "HEAD"], text=True)
        changes = subprocess.check_output(
            [*git, "status", "--porcelain", "--untracked-files=no", *others]
        )
    except (OSError, subprocess.SubprocessError):
        return "no commit"
    if changes:
        return f"{head.strip()} with changes"
    return head.strip()


def write_page(target: Path, bodies: dict[str, str]) -> None:
    """Write the page with the sections that were ever measured; `bodies` are their texts by
    title."""
    titles = [section.title for section in SECTIONS.values() if section.title in bodies]
    parts = [HEAD, *(f"## {title}\n\n{bodies[title]}" for title in titles)]
    partial = target.with_suffix(".partial")
    partial.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    partial.replace(target)


def earlier_bodies(target: Path) -> dict[str, str]:
    """The sections of an earlier run, which one of some sections keeps."""
    if not target.is_file():
        return {}
    bodies = {}
    for section in target.read_text(encoding="utf-8").split("\n## ")[1:]:
        title, _, body = section.partition("\n")
        bodies[title] = body.strip()
    return bodies


if __name__ == "__main__":
    main(sys.argv[1:])
