"""Geolife (Zheng, Xie, Ma 2010): GPS trajectories of 182 people, most of them in Beijing, from 2007 to 2012.

Format: files NNN/Trajectory/*.plt, one a trajectory of user NNN, read in place from the official zip or from its
unpacked folders. Six header lines, then lines of latitude, longitude (WGS 84), 0, altitude in feet (-777: unknown), day
number, date, time (GMT), separated by commas, with CRLF ends. The official zip holds 18,670 trajectories and 24,876,978
points.

Known defects, skipped and counted: coordinates out of range (there is a latitude of 400), times out of the limits
(clocks that say 2000-01-01), repeated points of a user at one second (all but the first), files without points.

Reading: pyarrow parses each file from memory in threads, faster than Polars, DuckDB and pandas (docs/readers.md).
Columns are joined user by user, to keep memory low.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from tplrepro.datasets import registry
from tplrepro.datasets.grid import BEIJING_3RD_RING
from tplrepro.datasets.positions import Positions
from tplrepro.datasets.reading import DataFormatError, Defects, attempt, describe_content, in_time, parse_table, rows_of
from tplrepro.datasets.stand_ins.geolife import write
from tplrepro.datasets.writing import stand_in

__all__ = ["fetch", "load", "synthetic"]

EXPECTED = "seven fields separated by commas (latitude, longitude, 0, altitude, day number, date, time)"
MEMBER = re.compile(r"(?:^|/)(\d+)/Trajectory/([^/]+)\.plt$", re.IGNORECASE)
COLUMNS = {
    "latitude": pa.float64(),
    "longitude": pa.float64(),
    "zero": None,
    "altitude": pa.float32(),
    "day": None,
    "date": pa.date32(),
    "clock": pa.time32("s"),
}
FOOT = 0.3048  # metres


def fetch(**options) -> Path:
    """Download "Geolife Trajectories 1.3.zip" into the cache and return its path; options as in `registry.fetch`."""
    return registry.fetch("geolife", **options)


def load(
    path: str | Path | None = None,
    *,
    box=None,
    not_before="2007-01-01",
    not_after=None,
    strict: bool = False,
    max_malformed: int = 0,
    threads: int = 2,
) -> pd.DataFrame:
    """Read trajectories into a tidy frame, one point a row, ordered by user and time.

    Parameters
    ----------
    path : path-like, optional
        The zip, or a folder above the folders NNN/Trajectory; by default it is looked for as `registry.locate` says.
    box : (south, north, west, east), optional
        Keep points in this box only; the others are counted in ``attrs["outside_box"]``.
    not_before, not_after : time, optional
        Points out of these limits are defects. By default the year in which recording began, and now.
    strict : bool
        Raise at the first defect instead of skipping and counting.
    max_malformed : int
        How many lines that do not follow the format may be skipped and counted in all; one more is an error.
    threads : int
        Files unpacked and parsed at a time.

    Returns
    -------
    DataFrame
        user : int32; trajectory : categorical, "NNN/name of the file"; time : datetime64[us, UTC]; latitude,
        longitude : float64, degrees of WGS 84; altitude : float32, metres, NaN where unknown.
        ``attrs``: source, synthetic, skipped, skipped_examples, reordered (points older than the one before in their
        file), outside_box.

    Raises
    ------
    DatasetNotFoundError, DataFormatError, OSError
    """
    path = registry.locate("geolife", path, accept=_holds_trajectories)
    defects = Defects(strict, max_malformed, EXPECTED)
    positions = Positions(box, not_before, not_after, defects)
    columns: list[list[np.ndarray]] = [[] for _ in range(6)]
    with contextlib.ExitStack() as stack:
        files = _files(path, stack)
        if not files:
            raise DataFormatError(
                "there must be trajectories NNN/Trajectory/*.plt, found none; give the official zip or the folder "
                "that holds its folders NNN",
                path,
            )
        pool = stack.enter_context(ThreadPoolExecutor(max(1, threads)))
        first = 0
        for _, own in itertools.groupby(files, key=lambda file: file.user):
            trajectories = list(own)
            parts = [
                _checked(file, parsed, positions)
                for file, parsed in zip(trajectories, pool.map(_parsed, trajectories), strict=True)
            ]
            for column, values in zip(columns, _joined(trajectories, parts, first, defects), strict=True):
                column.append(values)
            first += len(trajectories)
    return positions.finish(_frame(columns, [file.label for file in files]), path)


class _File(NamedTuple):
    """One trajectory: its user, its label "NNN/name", its place for messages, and how to get its bytes."""

    user: int
    label: str
    place: str
    read: Callable[[], bytes]


def _holds_trajectories(path: Path) -> bool:
    if path.is_file():
        return path.suffix == ".zip"
    return next(_plt_files(path), None) is not None


def _plt_files(folder: Path) -> Iterator[Path]:
    """Trajectories of a folder that is, or holds, or whose only kind of content is, Data/NNN/Trajectory."""
    for depth in ("", "Data/", "*/Data/", "*/"):
        found = False
        for path in folder.glob(f"{depth}[0-9]*/Trajectory/*.[pP][lL][tT]"):
            found = True
            yield path
        if found:
            return


def _files(path: Path, stack: contextlib.ExitStack) -> list[_File]:
    """The trajectories of a folder or a zip, ordered by user and label."""
    found: Iterator[tuple[str, str, Callable[[], bytes]]]
    if path.is_dir():
        found = ((plt.as_posix(), str(plt), plt.read_bytes) for plt in _plt_files(path))
    else:
        archive = stack.enter_context(_opened(path))
        found = ((m.filename, f"{path}::{m.filename}", _unpacker(archive, m, path)) for m in archive.infolist())
    files = [
        _File(int(match[1]), f"{match[1]}/{match[2]}", place, read)
        for name, place, read in found
        if (match := MEMBER.search(name))
    ]
    return sorted(files, key=lambda file: file[:2])


def _opened(path: Path) -> zipfile.ZipFile:
    with open(path, "rb") as file:  # an error of the system names the file
        head = file.read(4096)
    try:
        return zipfile.ZipFile(path)
    except zipfile.BadZipFile as error:
        what = "a zip archive that ends early or is damaged" if head[:2] == b"PK" else describe_content(head)
        raise DataFormatError(
            f"expected the zip archive of Geolife or a folder, found {what} ({error}); download it again", path
        ) from None


def _unpacker(archive: zipfile.ZipFile, member: zipfile.ZipInfo, path: Path) -> Callable[[], bytes]:
    def read() -> bytes:
        try:
            return archive.read(member)
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            problem = f"the archive is damaged ({error}); download it again"
            raise DataFormatError(problem, f"{path}::{member.filename}") from None

    return read


def _parsed(file: _File) -> tuple[bytes, pa.Table | None]:
    """The lines of a file below its header, and what pyarrow makes of them."""
    data = file.read()
    if not data.startswith(b"Geolife trajectory"):
        what = describe_content(data) if data else "an empty file"
        raise DataFormatError(
            f"expected six header lines that begin with 'Geolife trajectory', found {what}; check that this is a "
            "Geolife file",
            file.place,
            1,
        )
    parts = data.split(b"\n", 6)
    if len(parts) < 7:
        problem = "expected six header lines, found the end of the file; download it again"
        raise DataFormatError(problem, file.place, len(parts))
    return parts[6], attempt(_parse, parts[6])


def _parse(lines: bytes) -> pa.Table:
    """Columns time (microseconds since 1970), latitude, longitude and altitude (metres)."""
    table = parse_table(lines, COLUMNS, ",")
    days, seconds = (table[name].cast(pa.int32()).to_numpy().astype(np.int64) for name in ("date", "clock"))
    feet = table["altitude"].to_numpy()
    metres = np.where(feet == -777, np.float32(np.nan), feet * np.float32(FOOT))
    positions = {name: table[name] for name in ("latitude", "longitude")}
    return pa.table({"time": (days * 86_400 + seconds) * 10**6, **positions, "altitude": metres})


def _checked(file: _File, parsed: tuple[bytes, pa.Table | None], positions: Positions) -> pa.Table:
    """One trajectory without its defects."""
    lines, table = parsed
    defects = positions.defects
    if not lines.strip():
        defects.known("file without points", 1, file.place, lambda: (7, ""))
        lines, table = b"", None
    rows = rows_of(lines, 7, file.place, _parse, defects, table=table)
    positions.check(rows)
    rows.check_order()
    positions.select(rows)
    return rows.table


def _joined(files: list[_File], parts: list[pa.Table], first: int, defects: Defects) -> list[np.ndarray]:
    """Columns of one user, ordered by time where trajectories overlap, without what two of them say of one second."""
    which = np.repeat(np.arange(first, first + len(parts), dtype=np.int32), [part.num_rows for part in parts])
    names = ("time", "latitude", "longitude", "altitude")
    time, *others = (np.concatenate([part[name].to_numpy() for part in parts]) for name in names)
    columns = [np.full(len(which), files[0].user, dtype=np.int32), which, time, *others]
    if (np.diff(time) <= 0).any():
        order, again = in_time(time)
        if len(again):
            stamp = pd.Timestamp(int(time[again[0]]), unit="us", tz="UTC").isoformat()
            place = files[which[again[0]] - first].place
            defects.known("duplicate time", len(again), place, lambda: (None, stamp))
        columns = [column[order] for column in columns]
    return columns


def _frame(columns: list[list[np.ndarray]], labels: list[str]) -> pd.DataFrame:
    """The columns of all users joined one after the other, each freed when it is joined, to keep memory low."""
    joined = []
    for column in columns:
        joined.append(np.concatenate(column))
        column.clear()
    user, which, time, latitude, longitude, altitude = joined
    del joined
    codes = which.astype(np.min_scalar_type(-max(len(labels), 1)))
    return pd.DataFrame(
        {
            "user": user,
            "trajectory": pd.Categorical.from_codes(codes, pd.Index(labels)),
            "time": pd.DatetimeIndex(time.view("datetime64[us]"), tz="UTC"),
            "latitude": latitude,
            "longitude": longitude,
            "altitude": altitude,
        },
        copy=False,
    )


def synthetic(
    n_users: int = 10,
    seed: int = 0,
    path: str | Path | None = None,
    *,
    n_trajectories: int | None = None,
    seconds_between_points: float = 2.5,
    box=BEIJING_3RD_RING,
) -> pd.DataFrame:
    """Write a stand-in in the official format, and read it back.

    Each user has a home, a work place and six more places within the box, drawn by a popularity with a heavy tail. A
    trajectory is a day: stays at home and work on work days with the commutes between them, other places in the
    evening and on other days; points are dense on the way and sparse while staying. The number of trajectories a user
    has a heavy tail. Memory stays bounded by one trajectory at any size.

    Parameters
    ----------
    n_users : int
        182 is the official size.
    seed : int
    path : path-like, optional
        The zip to write; by default a temporary one.
    n_trajectories : int, optional
        In all, 20 a user by default; 18_670 is the official size.
    seconds_between_points : float
        On the way; the official files have 1 to 5 seconds for most points.
    box : (south, north, west, east)
        Where the city is.

    The result is as `load` gives it, with ``attrs["synthetic"]`` True.
    """
    options = {"n_trajectories": n_trajectories, "seconds_between_points": seconds_between_points, "box": box}
    name = "Geolife Trajectories 1.3.zip"
    return stand_in(path, name, lambda target: write(target, n_users, seed, **options), load)
