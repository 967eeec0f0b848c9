"""`tplrepro report` from a file to recommended budgets."""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measuring import in_process, peak_bytes, seconds_of
from benchmarks.sections.visits import VISITS, write_visits
from benchmarks.tables import PLAIN_HEAD, megabytes, row, shown

#: Name of a file and its rows, with the aims for time and memory.
FILES = (
    ("visits.csv", 10**6, "", ""),
    ("visits.csv", 10**7, "12 s", "600 MB"),
    ("visits.parquet", 10**7, "8 s", "600 MB"),
)
#: Rows of a first run, which are enough for all kernels to be compiled.
FEW = 10**5


def measure() -> Iterator[str]:
    yield "About 2 s are for any number of rows: starting Python, loading Numba and its stored"
    yield "kernels, plans. Of the processor's time beyond these, about a third is reading. Most of"
    yield "the rest are three passes over all steps for the evidence about users, order, halves and"
    yield "stays: one counts, one asks what the habits of all lack, one takes 67 log-ratios of each"
    yield "step. Memory is largest while rows are read and gathered by user."
    yield ""
    yield PLAIN_HEAD
    with tempfile.TemporaryDirectory() as folder:
        few = Path(folder) / "few.csv"
        write_visits(few, FEW)
        in_process(report_on, str(few))  # keeps compiled kernels
        for name, rows, aim, memory_aim in FILES:
            path = Path(folder) / name
            write_visits(path, rows)
            found = in_process(report_on, str(path))
            size = megabytes(path.stat().st_size)
            users = f"{rows:,} synthetic rows of {rows // VISITS:,} users"
            what = f"`tplrepro report` on {users}, {path.suffix[1:]} of {size}"
            yield row(what, shown(found["seconds"]), aim)
            memory = megabytes(found["memory"])
            yield row("the same: peak memory, Python included", memory, memory_aim)


def report_on(path: str) -> dict[str, float]:
    """Seconds, those of the processor with starting Python, and memory of the command, which
    nothing before it has warmed up."""
    from tplreport.command import main

    took = seconds_of(lambda: main(["report", path, "--alpha", "1", "--horizon", "30"]))
    return {"seconds": took, "processor": time.process_time(), "memory": peak_bytes()}
