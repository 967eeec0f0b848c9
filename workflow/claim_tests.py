"""Outcomes of the tests that decide claims.

A name without brackets stands for all cases of a test. Its outcome is "passed" only if every case passed;
"failed" and "skipped" if any case was; a name that no test has is missing from the outcomes.
"""

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from workflow.configuration import ROOT


def outcomes_of(names: Iterable[str], root: Path = ROOT) -> dict[str, str]:
    """Run these tests of a repository in a process of their own."""
    names = sorted(set(names))
    if not names:
        return {}
    print(f"running the {len(names)} tests that decide claims", file=sys.stderr)
    command = [sys.executable, "-m", "workflow.claim_tests", *names]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    lines = done.stdout.splitlines()
    if not lines or not lines[-1].startswith("{"):
        raise RuntimeError(f"pytest must end with the outcomes, found:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return json.loads(lines[-1])


class _Outcomes:
    """A plugin of pytest that runs the named tests alone and keeps the worst outcome of each."""

    def __init__(self, names):
        self.names, self.found = names, {}

    def _name(self, node):
        return node if node in self.names else node.partition("[")[0]

    def pytest_collection_modifyitems(self, items):
        items[:] = [item for item in items if self._name(item.nodeid) in self.names]

    def pytest_runtest_logreport(self, report):
        name = self._name(report.nodeid)
        order = ("passed", "skipped", "failed")
        self.found[name] = max(report.outcome, self.found.get(name, "passed"), key=order.index)


def main(names):
    """Print the outcomes of the named tests as the last line."""
    files = sorted({file for file in (name.partition("::")[0] for name in names) if Path(file).is_file()})
    plugin = _Outcomes(names)
    options = ["-p", "no:nbval", "-p", "no:cacheprovider", "-q", "-m", "", "--continue-on-collection-errors"]
    if files:  # else pytest would collect all tests
        pytest.main([*options, *files], plugins=[plugin])
    print(f"\n{json.dumps(plugin.found)}")


if __name__ == "__main__":
    main(sys.argv[1:])
