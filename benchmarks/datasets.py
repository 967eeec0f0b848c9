"""Time and peak memory of the readers on synthetic sets of the official sizes, and on the recorded ones if there are.

    python benchmarks/datasets.py               # full size: about 600 MB in a temporary folder, some two minutes
    python benchmarks/datasets.py --scale 0.05  # a twentieth of it
    python benchmarks/datasets.py --engines     # the same files by pyarrow, pandas, Polars and DuckDB, as installed

Each line is measured in a process of its own; its peak resident memory includes Python and the libraries.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

GEOLIFE = "Geolife Trajectories 1.3.zip"
GOWALLA = "loc-gowalla_totalCheckins.txt.gz"
KOSARAK = "kosarak.dat.gz"
FULL = {"geolife": (182, 18_670), "gowalla": 196_591, "kosarak": 990_002}
ENGINE_FILES = 2000


def write_geolife(folder, scale):
    from tplrepro.datasets.stand_ins.geolife import write

    users, trajectories = FULL["geolife"]
    write(folder / GEOLIFE, users, 0, n_trajectories=max(users, int(trajectories * scale)), seconds_between_points=2.1)
    return 0


def write_gowalla(folder, scale):
    from tplrepro.datasets.stand_ins.gowalla import write

    write(folder / GOWALLA, int(FULL["gowalla"] * scale), 0)
    return 0


def write_kosarak(folder, scale):
    from tplrepro.datasets.stand_ins.kosarak import write

    write(folder / KOSARAK, int(FULL["kosarak"] * scale), 0)
    return 0


def read_geolife(folder, scale):
    from tplrepro.datasets import geolife

    return len(geolife.load(folder / GEOLIFE))


def read_geolife_ring(folder, scale):
    from tplrepro.datasets import geolife

    return len(geolife.load(folder / GEOLIFE, box=geolife.BEIJING_3RD_RING))


def geolife_states(folder, scale):
    """Read, cells of 0.34 km, steps of one minute."""
    from tplrepro.datasets import fixed_steps, geolife, grid

    ring = grid.Grid(grid.BEIJING_3RD_RING, 0.34)
    points = geolife.load(folder / GEOLIFE, box=ring.box)
    points["cell"] = ring.cell(points.pop("latitude"), points.pop("longitude"))
    return len(fixed_steps(points, "1min", "10min").values)


def read_gowalla(folder, scale):
    from tplrepro.datasets import gowalla

    return len(gowalla.load(folder / GOWALLA))


def gowalla_states(folder, scale):
    """Read Los Angeles, cells of 0.89 km, gaps up to a day."""
    from tplrepro.datasets import gowalla, grid, observed_sequences

    city = grid.Grid(grid.LOS_ANGELES, 0.89)
    visits = gowalla.load(folder / GOWALLA, box=city.box)
    visits["cell"] = city.cell(visits["latitude"], visits["longitude"])
    return len(observed_sequences(visits, max_gap="1D").values)


def read_kosarak(folder, scale):
    from tplrepro.datasets import kosarak

    return len(kosarak.load(folder / KOSARAK))


def kosarak_states(folder, scale):
    """Read, and the sequences of pages."""
    from tplrepro.datasets import kosarak

    sequences = kosarak.to_sequences(kosarak.load(folder / KOSARAK))
    print(f"    {sequences}, {sequences.n_transitions} transitions", file=sys.stderr)
    return len(sequences.values)


def recorded(folder, scale):
    """What TPLREPRO_DATA holds."""
    from tplrepro.datasets import gaze, geolife, gowalla, kosarak

    total = 0
    for name, load in (
        ("geolife", geolife.load),
        ("gowalla", gowalla.load),
        ("kosarak", kosarak.load),
        ("gaze, Andersson", lambda: gaze.load(**gaze.ANDERSSON2017)),
        ("gaze, GazeGraph", lambda: gaze.load(**gaze.GAZEGRAPH)),
    ):
        begin = time.perf_counter()
        frame = load()
        seconds = time.perf_counter() - begin
        what = f"{name}: {len(frame):,} rows in {seconds:.2f} s, skipped {frame.attrs['skipped']}"
        print(f"    {what}, {Path(frame.attrs['source']).name}", file=sys.stderr)
        total += len(frame)
    return total


def engine_pyarrow_check_ins(folder, scale):
    import pyarrow as pa
    import pyarrow.csv as csv

    kinds = [pa.int64(), pa.timestamp("us", tz="UTC"), pa.float64(), pa.float64(), pa.int64()]
    return csv.read_csv(
        folder / GOWALLA,
        csv.ReadOptions(column_names=list("abcde")),
        csv.ParseOptions(delimiter="\t"),
        csv.ConvertOptions(column_types=dict(zip("abcde", kinds, strict=True))),
    ).num_rows


def engine_pandas_check_ins(folder, scale):
    import pandas as pd

    return len(pd.read_csv(folder / GOWALLA, sep="\t", names=list("abcde"), parse_dates=["b"]))


def engine_polars_check_ins(folder, scale):
    import polars as pl

    frame = pl.read_csv(folder / GOWALLA, separator="\t", has_header=False, new_columns=list("abcde"))
    return len(frame.with_columns(pl.col("b").str.to_datetime("%Y-%m-%dT%H:%M:%SZ")))


def engine_duckdb_check_ins(folder, scale):
    import duckdb

    kinds = "{'a': 'BIGINT', 'b': 'TIMESTAMP', 'c': 'DOUBLE', 'd': 'DOUBLE', 'e': 'BIGINT'}"
    query = f"select * from read_csv('{folder / GOWALLA}', delim='\t', header=false, columns={kinds})"
    return duckdb.sql(query).arrow().read_all().num_rows


def _trajectories(folder):
    with zipfile.ZipFile(folder / GEOLIFE) as archive:
        for name in archive.namelist()[:ENGINE_FILES]:
            yield archive.read(name)


def engine_pyarrow_trajectories(folder, scale):
    from tplrepro.datasets.geolife import _parse

    return sum(_parse(data.split(b"\n", 6)[6]).num_rows for data in _trajectories(folder))


def engine_pandas_trajectories(folder, scale):
    import pandas as pd

    total = 0
    for data in _trajectories(folder):
        frame = pd.read_csv(io.BytesIO(data), skiprows=6, names=list("abcdefg"), usecols=list("abdfg"))
        pd.to_datetime(frame["f"] + " " + frame["g"], format="%Y-%m-%d %H:%M:%S")
        total += len(frame)
    return total


def engine_polars_trajectories(folder, scale):
    import polars as pl

    total = 0
    for data in _trajectories(folder):
        frame = pl.read_csv(data, skip_rows=6, has_header=False, new_columns=list("abcdefg"))
        stamp = (pl.col("f") + " " + pl.col("g")).str.to_datetime("%Y-%m-%d %H:%M:%S")
        total += len(frame.with_columns(stamp))
    return total


def engine_duckdb_trajectories(folder, scale):
    """DuckDB does not read inside a zip: unpacking is part of the time."""
    import duckdb

    with tempfile.TemporaryDirectory(dir=folder) as unpacked:
        for i, data in enumerate(_trajectories(folder)):
            Path(unpacked, f"{i}.plt").write_bytes(data)
        kinds = "{'a':'DOUBLE','b':'DOUBLE','c':'INT','d':'DOUBLE','e':'DOUBLE','f':'DATE','g':'TIME'}"
        query = (
            f"select a, b, d, f + g from read_csv('{unpacked}/*.plt', delim=',', header=false, skip=6, columns={kinds})"
        )
        return duckdb.sql(query).arrow().read_all().num_rows


def engine_pyarrow_sessions(folder, scale):
    return read_kosarak(folder, scale)


def engine_python_sessions(folder, scale):
    """Line by line, as a plain script would."""
    import gzip

    import numpy as np

    with gzip.open(folder / KOSARAK, "rt") as lines:
        sessions = [np.array(line.split(), dtype=np.int32) for line in lines]
    return sum(len(s) for s in sessions)


STEPS = [
    write_geolife, write_gowalla, write_kosarak,
    read_geolife, read_geolife_ring, geolife_states, read_gowalla, gowalla_states, read_kosarak, kosarak_states,
]  # fmt: skip
ENGINES = [value for name, value in list(globals().items()) if name.startswith("engine_")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--scale", type=float, default=1.0, help="share of the official sizes")
    parser.add_argument("--engines", action="store_true", help="compare libraries instead of the package's readers")
    parser.add_argument("--folder", type=Path, help="where to write; kept, and files that are there are used again")
    parser.add_argument("--step", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        begin = time.perf_counter()
        rows = globals()[options.step](options.folder, options.scale)
        seconds = time.perf_counter() - begin
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # KiB on Linux
        print(json.dumps({"rows": rows, "seconds": seconds, "peak_mib": peak}))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        steps = STEPS[:3] + ENGINES if options.engines else STEPS
        if os.environ.get("TPLREPRO_DATA") and not options.engines:
            steps = [*steps, recorded]
        print(f"{'step':32} {'rows':>12} {'seconds':>9} {'peak MiB':>9}", flush=True)
        for step in steps:
            target = {"write_geolife": GEOLIFE, "write_gowalla": GOWALLA, "write_kosarak": KOSARAK}.get(step.__name__)
            if target and (folder / target).exists():
                continue
            command = [sys.executable, __file__, "--step", step.__name__, "--scale", str(options.scale)]
            done = subprocess.run([*command, "--folder", str(folder)], stdout=subprocess.PIPE, text=True, check=False)
            if done.returncode:
                print(f"{step.__name__:32} failed or not installed", flush=True)
                continue
            result = json.loads(done.stdout)
            size = f"{(folder / target).stat().st_size / 1e6:.0f} MB" if target else f"{result['rows']:,}"
            print(f"{step.__name__:32} {size:>12} {result['seconds']:9.2f} {result['peak_mib']:9.0f}", flush=True)


if __name__ == "__main__":
    main()
