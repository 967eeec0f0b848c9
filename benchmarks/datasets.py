"""Time and peak memory of the readers on synthetic sets of the official sizes, and on the recorded ones if there are.

    python benchmarks/datasets.py               # full size: about 600 MB in a temporary folder, some two minutes
    python benchmarks/datasets.py --scale 0.05  # a twentieth of it

Each line is measured in a process of its own; its peak resident memory includes Python and the libraries.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

GEOLIFE = "Geolife Trajectories 1.3.zip"
GOWALLA = "loc-gowalla_totalCheckins.txt.gz"
KOSARAK = "kosarak.dat.gz"
FULL = {"geolife": (182, 18_670), "gowalla": 196_591, "kosarak": 990_002}


def write_geolife(folder, scale):
    from experiments.datasets.geolife import write

    users, trajectories = FULL["geolife"]
    write(folder / GEOLIFE, users, 0, n_trajectories=max(users, int(trajectories * scale)), seconds_between_points=2.1)


def write_gowalla(folder, scale):
    from experiments.datasets.gowalla import write

    write(folder / GOWALLA, int(FULL["gowalla"] * scale), 0)


def write_kosarak(folder, scale):
    from experiments.datasets.kosarak import write

    write(folder / KOSARAK, int(FULL["kosarak"] * scale), 0)


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


STEPS = [
    write_geolife, write_gowalla, write_kosarak,
    read_geolife, read_geolife_ring, geolife_states, read_gowalla, gowalla_states, read_kosarak, kosarak_states,
]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--scale", type=float, default=1.0, help="share of the official sizes")
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
        steps = [*STEPS, recorded] if os.environ.get("TPLREPRO_DATA") else STEPS
        print(f"{'step':32} {'rows':>12} {'seconds':>9} {'peak MiB':>9}", flush=True)
        for step in steps:
            target = {"write_geolife": GEOLIFE, "write_gowalla": GOWALLA, "write_kosarak": KOSARAK}.get(step.__name__)
            if target and (folder / target).exists():
                continue
            command = [sys.executable, __file__, "--step", step.__name__, "--scale", str(options.scale)]
            done = subprocess.run([*command, "--folder", str(folder)], stdout=subprocess.PIPE, text=True, check=True)
            result = json.loads(done.stdout)
            size = f"{(folder / target).stat().st_size / 1e6:.0f} MB" if target else f"{result['rows']:,}"
            print(f"{step.__name__:32} {size:>12} {result['seconds']:9.2f} {result['peak_mib']:9.0f}", flush=True)


if __name__ == "__main__":
    main()
