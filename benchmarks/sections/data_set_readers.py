"""Writing and reading synthetic data sets of the official sizes."""

import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.measuring import in_process, peak_bytes
from benchmarks.tables import head, megabytes, row
from experiments.datasets.geolife import write_archive
from experiments.datasets.gowalla import write_check_ins
from experiments.datasets.kosarak import write_sessions
from experiments.datasets.readers import geolife, gowalla, kosarak
from tplreport import fixed_steps, observed_sequences
from tplreport.reading import grid


@dataclass(frozen=True)
class OfficialSet:
    """A data set of the official size: the name of its file, and how to write a stand-in."""

    write: Callable[..., None]  # of a path, a number of users, a seed and the settings
    file_name: str
    users: int
    settings: dict = field(default_factory=dict)


OFFICIAL_SETS = {
    "geolife": OfficialSet(
        write_archive,
        "Geolife Trajectories 1.3.zip",
        182,
        {"n_trajectories": 18_670, "seconds_between_points": 2.1},
    ),
    "gowalla": OfficialSet(
        write_check_ins, "loc-gowalla_totalCheckins.txt.gz", 196_591, {"box": grid.LOS_ANGELES}
    ),
    "kosarak": OfficialSet(write_sessions, "kosarak.dat.gz", 990_002),
}


def measure() -> Iterator[str]:
    yield "On synthetic sets, each step in its own process; peak memory includes Python and the"
    yield "libraries."
    yield ""
    yield head("", "rows or states", "seconds", "peak memory")
    with tempfile.TemporaryDirectory() as folder:
        for name in OFFICIAL_SETS:
            found = in_process(write_official_set, name, folder)
            yield measured_row(f"write {name}", megabytes(found["size"]), found)
        for what in READERS:
            found = in_process(read_official_set, what, folder)
            yield measured_row(what, f"{found['size']:,}", found)


def measured_row(what: str, size: str, found: dict) -> str:
    """A line of the table: `what` was read or written, of this size, and the seconds and bytes of
    memory that `found` holds."""
    return row(what, size, f"{found['seconds']:.1f}", megabytes(found["memory"]))


def write_set(name: str, path: Path) -> None:
    """Write the stand-in of a data set to a file."""
    official = OFFICIAL_SETS[name]
    official.write(path, official.users, 0, **official.settings)


def write_official_set(name: str, folder: str) -> dict:
    """Write the stand-in `name` in a folder: its bytes, the seconds and the memory in bytes."""
    path = Path(folder) / OFFICIAL_SETS[name].file_name
    start = time.perf_counter()
    write_set(name, path)
    took = time.perf_counter() - start
    return {"size": path.stat().st_size, "seconds": took, "memory": peak_bytes()}


def read_official_set(what: str, folder: str) -> dict:
    """Read the stand-in in a folder by `READERS[what]`: rows or states, seconds, and memory in
    bytes."""
    name = next(name for name in OFFICIAL_SETS if name in what)
    path = Path(folder) / OFFICIAL_SETS[name].file_name
    start = time.perf_counter()
    rows = len(READERS[what](path))
    took = time.perf_counter() - start
    return {"size": rows, "seconds": took, "memory": peak_bytes()}


def geolife_within_ring(path: Path) -> Any:
    return geolife.load(path, box=grid.BEIJING_3RD_RING)


def geolife_states(path: Path) -> Any:
    """The states (m,) of all sequences at steps of a minute, which hold for ten."""
    ring = grid.Grid(grid.BEIJING_3RD_RING, 0.34)
    points = geolife.load(path, box=ring.box)
    points["cell"] = ring.cell(points.pop("latitude"), points.pop("longitude"))
    return fixed_steps(points, "1min", "10min").values


def gowalla_states(path: Path) -> Any:
    """The states (m,) of all sequences of check-ins with gaps of a day at most."""
    city = grid.Grid(grid.LOS_ANGELES, 0.89)
    visits = gowalla.load(path, box=city.box)
    visits["cell"] = city.cell(visits["latitude"], visits["longitude"])
    return observed_sequences(visits, max_gap="1D").values


def kosarak_states(path: Path) -> Any:
    return kosarak.to_sequences(kosarak.load(path)).values


READERS = {
    "read geolife": geolife.load,
    "geolife within Beijing's third ring": geolife_within_ring,
    "geolife to cells of 0.34 km, steps of a minute": geolife_states,
    "read gowalla": gowalla.load,
    "gowalla in Los Angeles to sequences": gowalla_states,
    "read kosarak": kosarak.load,
    "kosarak to sequences": kosarak_states,
}
