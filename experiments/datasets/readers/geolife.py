"""Geolife (Zheng, Xie, Ma 2010): GPS trajectories of 182 people, most of them in Beijing, from 2007
to 2012.

Format: files NNN/Trajectory/*.plt, one per trajectory of user NNN, read in place from the official
zip or from its unpacked folders. Six header lines, then lines of latitude, longitude (WGS 84), 0,
altitude in feet (-777: unknown), day number, date, time (GMT), separated by commas, with CRLF ends.
The official zip holds 18,670 trajectories and 24,876,978 points.

Known defects, skipped and counted: coordinates out of range (there is a latitude of 400), times
before 2007 (wrong clocks) or in the future, repeated points of a user in the same second, files
without points or in other folders. Users are joined one by one, to keep memory low.
"""

import contextlib
import functools
import itertools
import re
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from experiments.datasets.readers import registry
from tplreport.reading.text_files import (
    DAMAGES,
    DataFormatError,
    Defects,
    Positions,
    attempt,
    check_growth,
    describe_content,
    in_time,
    parse_table,
    rows_of,
)

EXPECTED = (
    "seven fields separated by commas (latitude, longitude, 0, altitude, day number, date, time)"
)
MEMBER = re.compile(r"(?:^|/)(\d{1,9})/Trajectory/([^/]+)\.plt$", re.IGNORECASE)
HEADER = re.compile(rb"Geolife trajectory(?:.*\n){5}\d+\r?\n")
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
#: Errors of `zipfile` for damaged or encrypted archives and unknown methods.
DAMAGE = (*DAMAGES, struct.error, ValueError)


def load(path: str | Path | None = None, *, box: Any = None) -> pd.DataFrame:
    """Read trajectories into a tidy frame, one point per row, ordered by user and time.

    Parameters
    ----------
    path : path-like, optional
        The zip, or a folder above the folders NNN/Trajectory; by default found by `registry.locate`.
    box : (south, north, west, east), optional: keep only points in it, and count the others in ``attrs["outside_box"]``

    Returns
    -------
    DataFrame
        user : int32; trajectory : categorical, "NNN/name of the file"; time : datetime64[us, UTC]; latitude,
        longitude : float64, degrees of WGS 84; altitude : float32, metres, NaN where unknown.
        ``attrs``: source, synthetic, skipped, skipped_examples, outside_box.

    Raises DatasetNotFoundError, DataFormatError or OSError if there is nothing to read or it cannot
    be read.
    """
    path = registry.locate("geolife", path, accept=_holds_trajectories)
    defects = Defects(EXPECTED)
    positions = Positions(box, defects, earliest="2007-01-01")
    with contextlib.ExitStack() as stack:
        files = _files(path, stack, defects)
        if not files:
            raise DataFormatError(
                "there must be trajectories NNN/Trajectory/*.plt, found none; "
                "give the official zip or the folder that holds its folders NNN",
                path,
            )
        users = [
            _joined([_trajectory(number, file, positions) for number, file in own], files, defects)
            for _, own in itertools.groupby(enumerate(files), key=lambda one: one[1].user)
        ]
    return positions.finish(_frame(users, files), path)


class _File(NamedTuple):
    """One trajectory: its user, its label "NNN/name", its place for messages, and a function that
    reads it."""

    user: int
    label: str
    place: str
    read: Callable[[], bytes]


def _holds_trajectories(path: Path) -> bool:
    return path.suffix == ".zip" if path.is_file() else bool(_plt_files(path))


def _plt_files(folder: Path) -> list[Path]:
    """Trajectories of a folder that is, or holds, or whose only kind of content is,
    Data/NNN/Trajectory."""
    below = (
        list(folder.glob(f"{depth}[0-9]*/Trajectory/*.[pP][lL][tT]"))
        for depth in ("", "Data/", "*/Data/", "*/")
    )
    return next(filter(None, below), [])


def _files(path: Path, stack: contextlib.ExitStack, defects: Defects) -> list[_File]:
    """The trajectories of a folder or a zip, ordered by user and label."""
    if path.is_dir():
        found = [(plt.as_posix(), str(plt), plt.read_bytes) for plt in _plt_files(path)]
    else:
        archive = _archive(path, stack)
        places = ((f"{path}::{info.filename}", info) for info in archive.infolist())
        found = [
            (info.filename, at, functools.partial(_unpacked, archive, info, at))
            for at, info in places
        ]
    files = sorted((_file(*one) for one in found), key=lambda file: file[:2])
    for before, file in itertools.pairwise(files):
        if before.label == file.label:
            raise DataFormatError(
                "there must be one trajectory of a name, found two; remove one", file.place
            )
    others = [file for file in files if file.user < 0]
    for file in others:
        file.read()  # which tells a damaged name
        is_plt = file.label.lower().endswith(".plt")
        defects.known(
            "trajectory in another folder than NNN/Trajectory",
            is_plt,
            lambda: (file.place, None),  # noqa: B023 - called before the next file
        )
    return files[len(others) :]


def _file(name: str, place: str, read: Callable[[], bytes]) -> _File:
    """A file by its name; user -1 for files that are no trajectories."""
    match = MEMBER.search(name)
    return (
        _File(int(match[1]), f"{match[1]}/{match[2]}", place, read)
        if match
        else _File(-1, name, place, read)
    )


def _archive(path: Path, stack: contextlib.ExitStack) -> zipfile.ZipFile:
    raw = stack.enter_context(open(path, "rb"))
    try:
        archive = zipfile.ZipFile(raw)
        if any(b"PK\1\2" in info.comment + info.extra for info in archive.infolist()):
            raise zipfile.BadZipFile("one entry of its directory holds another")
    except DAMAGE as error:
        raw.seek(0)
        found = f"found {describe_content(raw.read(4096))} ({error})"
        problem = f"expected Geolife's whole zip archive or a folder, {found}; download it again"
        raise DataFormatError(problem, path) from None
    check_growth(sum(info.file_size for info in archive.infolist()), path)
    return archive


def _unpacked(archive: zipfile.ZipFile, info: zipfile.ZipInfo, place: str) -> bytes:
    try:
        with archive.open(info) as member:
            return member.read(info.file_size + 1)  # the declared sizes were checked before
    except DAMAGE as error:
        raise DataFormatError(
            f"the archive is damaged or encrypted ({error}); download it again", place
        ) from None


def _trajectory(number: int, file: _File, positions: Positions) -> pa.Table:
    """One trajectory without its defects, each row with the `number` of the file."""
    data = file.read()
    header = HEADER.match(data)
    if not header:
        raise DataFormatError(
            f"expected six header lines, 'Geolife trajectory' to a number, found {describe_content(data)}; "
            "mend the header, or check the file",
            file.place,
            1,
        )
    lines = data[header.end() :]
    positions.defects.known("file without points", not lines.strip(), lambda: (file.place, 7))
    rows = rows_of(attempt(_parse, lines), lines, 7, file.place, _parse, positions.defects)
    positions.select(rows)
    return rows.table.append_column(
        "trajectory", pa.array(np.full(len(rows), number, dtype=np.int32))
    )


def _parse(lines: bytes) -> pa.Table:
    """Columns time (microseconds since 1970), latitude, longitude and altitude (metres)."""
    table = parse_table(lines, COLUMNS, ",")
    if lines.count(b":") != 2 * table.num_rows:
        raise pa.ArrowInvalid("a time that is cut, for which pyarrow would take another")
    days, seconds = (
        table[name].cast(pa.int32()).to_numpy().astype(np.int64) for name in ("date", "clock")
    )
    feet = table["altitude"].to_numpy()
    metres = np.where(
        np.isfinite(feet) & (feet != -777), feet * np.float32(FOOT), np.float32(np.nan)
    )
    positions = {name: table[name] for name in ("latitude", "longitude")}
    return pa.table({"time": (days * 86_400 + seconds) * 10**6, **positions, "altitude": metres})


def _joined(parts: list[pa.Table], files: list[_File], defects: Defects) -> pa.Table:
    """The points of one user by time, without points that overlapping trajectories repeat."""
    table = pa.concat_tables(parts)
    time, trajectory = (table[name].to_numpy() for name in ("time", "trajectory"))
    if not (np.diff(time) <= 0).any():
        return table.combine_chunks()
    order = in_time(time, defects, lambda row: (files[trajectory[row]].place, None))
    return table.take(pa.array(order))


def _frame(users: list[pa.Table], files: list[_File]) -> pd.DataFrame:
    """The points of all users; each column is freed once it is joined, to keep memory low."""
    table = pa.concat_tables(users)
    users.clear()
    columns = {}
    for name in table.column_names:
        columns[name] = table[name].to_numpy()
        table = table.drop_columns(name)
    trajectory = columns["trajectory"].astype(np.min_scalar_type(-len(files)))
    return pd.DataFrame(
        {
            "user": np.array([file.user for file in files], dtype=np.int32)[trajectory],
            "trajectory": pd.Categorical.from_codes(
                trajectory, pd.Index([file.label for file in files])
            ),
            "time": pd.DatetimeIndex(columns["time"].view("datetime64[us]"), tz="UTC"),
            **{name: columns[name] for name in ("latitude", "longitude", "altitude")},
        },
        copy=False,
    )
