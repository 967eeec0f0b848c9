"""What `import tplrepro` takes beyond starting Python."""

import statistics
import subprocess
import sys
from collections.abc import Iterator

from benchmarks.measuring import seconds_in_turn
from benchmarks.tables import PLAIN_HEAD, row, shown


def measure() -> Iterator[str]:
    bare, ours = seconds_in_turn(
        9, lambda: run_python("pass"), lambda: run_python("import tplrepro")
    )
    beyond = statistics.median(ours) - statistics.median(bare)
    yield PLAIN_HEAD
    yield row("`import tplrepro`, beyond starting Python", shown(beyond), "0.5 s")


def run_python(code: str) -> None:
    """Run code in a Python of its own."""
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
