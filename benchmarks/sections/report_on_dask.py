"""`tr.report` on many rows by two workers of Dask, as the rows grow.

    ROWS=1000000,10000000,100000000 python -m benchmarks.run dask

The rows of 10⁸ take 0.4 GB of Parquet, and up to 5 GB in the temporary file of the report (TMPDIR).
"""

import os
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import joblib
import numpy as np
import pyarrow as pa
import pyarrow.parquet

from benchmarks.measuring import in_process, peak_bytes
from benchmarks.sections.shuffled_rows import HOURS, shuffled_rows
from benchmarks.sections.ten_million_users import CLUSTER
from benchmarks.tables import head, megabytes, row

#: Rows of each file.
ROWS_OF_FILE = 1_000_000
MOST_OF_WORKER = "1,500 MB"


def measure() -> Iterator[str]:
    rows = [int(number) for number in os.environ.get("ROWS", "1000000,10000000").split(",")]
    yield f"Parquet files of {ROWS_OF_FILE:,} rows in random order, {HOURS} of each user and 20"
    yield "states, as a DataFrame of Dask with a partition for each file."
    yield ""
    yield head(
        "rows",
        "users",
        "seconds",
        "of all processors",
        "of the caller's",
        "a worker, peak",
        "aim",
        "the caller, peak",
    )
    for number in rows:
        with tempfile.TemporaryDirectory() as folder:
            write_files(Path(folder), number)
            found = in_process(report_on_cluster, folder)
        yield row(
            f"{number:,}",
            f"{number // HOURS:,}",
            f"{found['seconds']:.0f}",
            f"{found['processors']:.0f}",
            f"{found['own']:.0f}",
            megabytes(found["worker"]),
            MOST_OF_WORKER,
            megabytes(found["caller"]),
        )


def write_files(folder: Path, rows: int) -> None:
    """So many rows in files, some users in each."""
    n_files = -(-rows // ROWS_OF_FILE)
    for number in range(n_files):
        of_file = rows // n_files
        rng = np.random.default_rng(number)
        table = shuffled_rows(of_file, rng, first_user=number * (of_file // HOURS))
        pa.parquet.write_table(table, folder / f"rows {number:04d}.parquet")


def report_on_cluster(folder: str) -> dict[str, float]:
    """What a report on the files of a folder takes."""
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    import tplreport as tr

    with (
        LocalCluster(**CLUSTER) as cluster,
        Client(cluster) as client,
        joblib.parallel_config(backend="dask"),
    ):
        start = time.perf_counter()
        before = time.process_time()
        tr.report(dd.read_parquet(folder), 1.0, 30)
        found = {
            "seconds": time.perf_counter() - start,
            "worker": max(client.run(peak_bytes).values()),
            "caller": peak_bytes(),
        }
    found["own"] = time.process_time() - before
    of_workers = resource.getrusage(resource.RUSAGE_CHILDREN)
    found["processors"] = found["own"] + of_workers.ru_utime + of_workers.ru_stime
    return found
