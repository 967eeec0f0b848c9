"""`make test` in this checkout."""

from collections.abc import Iterator

from benchmarks.measuring import ROOT, run_command
from benchmarks.tables import PLAIN_HEAD, on_busy_processors, row


def measure() -> Iterator[str]:
    run = run_command(["make", "test"], cwd=ROOT, check=True, capture_output=True)
    yield PLAIN_HEAD
    yield row("`make test`", f"{run.wall:.0f} s", "180 s")
    yield row("the same: time of the processors", f"{run.processors:.0f} s", "")
    yield from on_busy_processors(run, "fewer examples of property tests, or fewer notebooks,")
