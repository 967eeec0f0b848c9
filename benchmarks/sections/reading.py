"""Reading observations, beside DuckDB and Polars."""

import importlib.util
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from benchmarks.measuring import in_process, peak_bytes
from benchmarks.sections.visits import write_visits
from benchmarks.tables import head, megabytes, row, shown

ROUNDS = 3


def measure() -> Iterator[str]:
    yield "Ours gives the sequences, checked. The others count steps in order of time, missing"
    yield "values and users in two states at once, and refuse rows that they cannot read. Each"
    yield "reading has its own process, three in turn; DuckDB may use as much memory as ours"
    yield "takes. Ours looks up users and states in threads while another one parses the next"
    yield "block. Most of the remaining difference to DuckDB is a hash table of all users' names,"
    yield "which is built again for each block."
    yield ""
    yield head(
        "10⁷ rows",
        "median",
        "of the processor",
        "peak memory",
        "ours takes, of its time",
        "of its processor's",
    )
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("csv", "parquet"):
            path = Path(folder) / f"visits.{kind}"
            write_visits(path, 10**7)
            yield from compare_tools(path, kind)


def compare_tools(path: Path, kind: str) -> Iterator[str]:
    """A row for each of the installed tools, for a file of this kind ("csv" or "parquet")."""
    found = measure_in_turns(path)
    steps = {one["steps"] for rounds in found.values() for one in rounds}
    assert len(steps) == 1, steps
    medians = {tool: pd.DataFrame(rounds).median() for tool, rounds in found.items()}
    for tool, of_tool in medians.items():
        ratios = medians["tplreport"] / of_tool
        yield row(
            f"{kind}: {tool}",
            shown(of_tool["seconds"]),
            shown(of_tool["processor"]),
            megabytes(of_tool["memory"]),
            f"{ratios['seconds']:.2f}",
            f"{ratios['processor']:.2f}",
        )


def measure_in_turns(path: Path) -> dict[str, list[dict]]:
    """What each of the installed tools took in each round."""
    tools = [tool for tool in READERS if importlib.util.find_spec(tool)]
    found: dict[str, list[dict]] = {tool: [] for tool in tools}
    for _ in range(ROUNDS):
        for tool in tools:
            most = 0
            if tool == "duckdb":
                most = found["tplreport"][-1]["memory"] >> 20
            found[tool].append(in_process(read_by, tool, str(path), most))
    return found


def read_by(tool: str, path: str, most: int) -> dict[str, float]:
    """Read the observations in the file `path` with a library: seconds, seconds of the processor,
    bytes of memory and the number of steps.

    The library may take `most` MiB of memory, if it can be told so.
    """
    start = time.perf_counter()
    start_of_processor = time.process_time()
    steps = READERS[tool](path, most)
    return {
        "seconds": time.perf_counter() - start,
        "processor": time.process_time() - start_of_processor,
        "memory": peak_bytes(),
        "steps": steps,
    }


def steps_by_tplreport(path: str, most: int) -> int:
    """The number of steps, as every reader returns it; `most` is not used."""
    import tplreport as tr

    return tr.read_sequences(path).n_transitions


def steps_by_duckdb(path: str, most: int) -> int:
    """The number of steps, with the checks that the section names, in at most `most` MiB of
    memory."""
    import duckdb

    types = "{'user': 'VARCHAR', 'time': 'TIMESTAMP', 'state': 'VARCHAR'}"
    source = f"'{path}'"
    if path.endswith("csv"):
        source = f"read_csv('{path}', strict_mode=true, types={types})"
    connection = duckdb.connect(config={"threads": 2, "memory_limit": f"{most}MiB"})
    connection.execute(f"set temp_directory = '{Path(path).parent}/duckdb'")
    found = connection.execute(f"""
        with following as (
            select "user", time, state, lead(state) over own as next, lead(time) over own as after
            from {source} window own as (partition by "user" order by time))
        select state, next, count(*), count(*) filter (time = after and state <> next),
            count(*) filter ("user" is null or time is null)
        from following group by state, next""").fetchall()
    return sum(count for _, after, count, *_ in found if after is not None)


def steps_by_polars(path: str, most: int) -> int:
    """The number of steps, with the checks that the section names; `most` is not used."""
    import polars as pl

    rows = pl.scan_parquet(path)
    if path.endswith("csv"):
        rows = pl.scan_csv(path, try_parse_dates=True)
    rows = rows.with_columns(pl.col("state").cast(pl.Categorical))
    rows = rows.sort("user", "time", maintain_order=True)
    following = pl.col("user", "time", "state").shift(-1).name.prefix("next_")
    at_one_time = pl.col("time") == pl.col("next_time")
    elsewhere = pl.col("state") != pl.col("next_state")
    found = (
        rows.with_columns(following)
        .filter(pl.col("user") == pl.col("next_user"))
        .group_by("state", "next_state")
        .agg(pl.len(), (at_one_time & elsewhere).sum().alias("in two"), pl.col("time").null_count())
    )
    return int(found.collect()["len"].sum())


READERS = {"tplreport": steps_by_tplreport, "duckdb": steps_by_duckdb, "polars": steps_by_polars}
