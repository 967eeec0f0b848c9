"""`tplrepro report` on rows in random order, beside the counts that DuckDB and Polars make."""

import importlib.util
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv  # noqa: F401 - makes it an attribute of pa
import pyarrow.parquet  # noqa: F401 - makes it an attribute of pa

from benchmarks.measuring import in_process
from benchmarks.sections.own_data import report_on
from benchmarks.sections.reading import read_by
from benchmarks.tables import head, megabytes, row, shown

REPORT = "`tplrepro report`"
ROUNDS = 3
ROWS = 5_000_000
#: Hourly rows of each user.
HOURS = 100
N_PLACES = 20
#: As many MiB as the report may take.
MOST = 600
#: The processor time of the report is to be at most so many times that of DuckDB.
AIMS = {"csv": 3, "parquet": 4}


def measure() -> Iterator[str]:
    yield f"{ROWS:,} rows of {ROWS // HOURS:,} users in random order, {N_PLACES} states. The"
    yield "others only count steps in order of time, with the checks of the section before. A run"
    yield "has its own process, of which starting Python is a part for the report alone. Medians of"
    yield f"{ROUNDS} rounds. About 2 s of the report's are for any number of rows: starting Python,"
    yield "loading Numba and its stored kernels, plans. Reading a Parquet file takes as long as"
    yield "DuckDB takes for everything. Most of the rest are the evidence about users, order,"
    yield "halves and stays: counts, each user's own earlier steps, and 78 log-ratios of each step,"
    yield "of which 11 show what the habits of all lack."
    yield ""
    yield head("", "seconds", "of the processor", "peak memory", "of DuckDB's processor", "aim")
    with tempfile.TemporaryDirectory() as folder:
        for kind in AIMS:
            path = Path(folder) / f"rows.{kind}"
            write_shuffled(path, ROWS)
            yield from compare(path, kind)


def compare(path: Path, kind: str) -> Iterator[str]:
    """A row for the report, for reading alone, and for each library that is installed."""
    runs: dict[str, Callable[[], dict]] = {
        REPORT: partial(in_process, report_on, str(path)),
        "of which reading": partial(in_process, read_by, "tplreport", str(path), MOST),
    }
    for tool in ("duckdb", "polars"):
        if importlib.util.find_spec(tool):
            runs[tool] = partial(in_process, read_by, tool, str(path), MOST)
    rounds = [{name: run() for name, run in runs.items()} for _ in range(ROUNDS)]
    for name in runs:
        of_run = pd.DataFrame([found[name] for found in rounds]).median()
        ratio = aim = ""
        if "duckdb" in runs:
            ratios = [found[name]["processor"] / found["duckdb"]["processor"] for found in rounds]
            ratio = f"{np.median(ratios):.1f}"
        if name == REPORT:
            aim = f"{AIMS[kind]}, {MOST} MB"
        yield row(
            f"{kind}: {name}",
            shown(of_run["seconds"]),
            shown(of_run["processor"]),
            megabytes(of_run["memory"]),
            ratio,
            aim,
        )


def write_shuffled(path: Path, rows: int) -> None:
    """Hourly rows of users who move by one chain, in random order; CSV or Parquet by the suffix."""
    table = shuffled_rows(rows, np.random.default_rng(0))
    if path.suffix == ".csv":
        written = pa.compute.strftime(table["time"], "%Y-%m-%d %H:%M:%S")
        table = table.set_column(1, "time", written)
        pa.csv.write_csv(table, path, pa.csv.WriteOptions(quoting_style="none"))
    else:
        pa.parquet.write_table(table, path)


def shuffled_rows(rows: int, rng: np.random.Generator, first_user: int = 0) -> pa.Table:
    """The rows of `rows // HOURS` users, whose numbers begin with `first_user`."""
    users = rows // HOURS
    chain = 0.5 * np.random.default_rng(1).dirichlet(np.full(N_PLACES, 0.3), N_PLACES)
    chain += 0.5 * np.eye(N_PLACES)
    upto = chain.cumsum(axis=1)
    place = np.empty((users, HOURS), dtype=np.int32)
    place[:, 0] = rng.integers(0, N_PLACES, users)
    for hour in range(1, HOURS):
        exceeded = upto[place[:, hour - 1]] < rng.random((users, 1))
        place[:, hour] = exceeded.sum(axis=1).clip(0, N_PLACES - 1)
    first_hour = rng.integers(0, 24 * 14, users)
    time = np.datetime64("2024-03-04", "s") + 3600 * (first_hour[:, None] + np.arange(HOURS))
    user = np.repeat(np.arange(users), HOURS)
    order = rng.permutation(rows)
    names = pa.array([f"u{first_user + k:08d}" for k in range(users)])
    places = pa.array([f"place {k}" for k in range(N_PLACES)])
    return pa.table(
        {
            "user": names.take(pa.array(user[order])),
            "time": pa.array(time.ravel()[order]),
            "state": places.take(pa.array(place.ravel()[order])),
        }
    )
