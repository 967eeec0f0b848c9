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
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from experiments.datasets.readers import registry
from experiments.datasets.readers.positions import Positions
from tplreport.reading.text_files import (
    DAMAGES,
    DataFormatError,
    Defects,
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
UNKNOWN = -777  # feet
#: Errors of `zipfile` for damaged or encrypted archives and unknown methods.
DAMAGE = (*DAMAGES, struct.error, ValueError)


def load(path: str | Path | None = None, *, box: Any = None) -> pd.DataFrame:
    """Read trajectories into a tidy frame, one point per row, ordered by user and time.

    Parameters
    ----------
    path : path-like, optional
        The zip, or a folder above the folders NNN/Trajectory; by default found by
        `registry.locate`.
    box : (south, north, west, east), optional
        Keep only points in it, and count the others in ``attrs["outside_box"]``.

    Returns
    -------
    DataFrame
        user : int32; trajectory : categorical, "NNN/name of the file"; time : datetime64[us, UTC];
        latitude, longitude : float64, degrees of WGS 84; altitude : float32, metres, NaN where
        unknown. ``attrs``: source, synthetic, skipped, skipped_examples, outside_box.

    Raises
    ------
    DatasetNotFoundError, DataFormatError, OSError
        If there is nothing to read or it cannot be read.
    """
    path = registry.locate("geolife", path, accept=_holds_trajectories)
    positions = Positions(box, Defects(EXPECTED), earliest="2007-01-01")
    with contextlib.ExitStack() as stack:
        if path.is_dir():
            files = _files_of_folder(path)
        else:
            files = _files_of_archive(path, stack)
        trajectories = _select_trajectories(files, positions.defects)
        if not trajectories:
            raise DataFormatError(
                "there must be trajectories NNN/Trajectory/*.plt, found none; "
                "give the official zip or the folder that holds its folders NNN",
                path,
            )
        users = list(_read_users(trajectories, positions))
    return positions.finish(_join_users(users, trajectories), path)


@dataclass(frozen=True)
class File:
    """One file of the data set, by its name."""

    name: str  # with folders, separated by "/"
    place: str  # for messages
    read: Callable[[], bytes]

    @functools.cached_property
    def member(self) -> re.Match | None:
        """User and name of a trajectory; None for other files."""
        return MEMBER.search(self.name)

    @functools.cached_property
    def user(self) -> int:
        """The number of the folder; -1 for files that are no trajectories."""
        if self.member is None:
            return -1
        return int(self.member[1])

    @functools.cached_property
    def label(self) -> str:
        """The name of the trajectory, "NNN/name"."""
        if self.member is None:
            return self.name
        return f"{self.member[1]}/{self.member[2]}"


def _holds_trajectories(path: Path) -> bool:
    """Whether a file or folder can be Geolife."""
    if path.is_file():
        return path.suffix == ".zip"
    return bool(_plt_files(path))


def _plt_files(folder: Path) -> list[Path]:
    """Trajectories of a folder that is, or holds, or whose only kind of content is,
    Data/NNN/Trajectory."""
    for above in ("", "Data/", "*/Data/", "*/"):
        found = list(folder.glob(f"{above}[0-9]*/Trajectory/*.[pP][lL][tT]"))
        if found:
            return found
    return []


def _files_of_folder(folder: Path) -> list[File]:
    return [File(plt.as_posix(), str(plt), plt.read_bytes) for plt in _plt_files(folder)]


def _files_of_archive(path: Path, stack: contextlib.ExitStack) -> list[File]:
    """The files of a zip, which is closed with the stack."""
    archive = _open_archive(path, stack)
    files = []
    for info in archive.infolist():
        place = f"{path}::{info.filename}"
        files.append(File(info.filename, place, functools.partial(_unpack, archive, info, place)))
    return files


def _select_trajectories(files: list[File], defects: Defects) -> list[File]:
    """The files that hold trajectories, ordered by user and label; those in a wrong folder are
    counted in `defects`."""
    files = sorted(files, key=lambda file: (file.user, file.label))
    for before, file in itertools.pairwise(files):
        if before.label == file.label:
            raise DataFormatError(
                "there must be one trajectory of a name, found two; remove one", file.place
            )
    for file in files:
        if file.member is None:
            file.read()  # which tells a damaged name
            if file.label.lower().endswith(".plt"):
                _count_misplaced(file, defects)
    return [file for file in files if file.member is not None]


def _count_misplaced(file: File, defects: Defects) -> None:
    reason = "trajectory in another folder than NNN/Trajectory"
    defects.known(reason, 1, lambda: (file.place, None))


def _open_archive(path: Path, stack: contextlib.ExitStack) -> zipfile.ZipFile:
    """The zip, whose directory is sound; it is closed with the stack."""
    raw = stack.enter_context(open(path, "rb"))
    try:
        archive = zipfile.ZipFile(raw)
        for info in archive.infolist():
            if b"PK\1\2" in info.comment + info.extra:
                raise zipfile.BadZipFile("one entry of its directory holds another")
    except DAMAGE as error:
        raw.seek(0)
        content = describe_content(raw.read(4096))
        raise DataFormatError(
            f"expected Geolife's whole zip archive or a folder, found {content} ({error}); "
            "download it again",
            path,
        ) from None
    check_growth(sum(info.file_size for info in archive.infolist()), path)
    return archive


def _unpack(archive: zipfile.ZipFile, info: zipfile.ZipInfo, place: str) -> bytes:
    """The content of a member of the archive; DataFormatError, with its `place`, if that is
    damaged."""
    try:
        with archive.open(info) as member:
            return member.read(info.file_size + 1)  # the declared sizes were checked before
    except DAMAGE as error:
        raise DataFormatError(
            f"the archive is damaged or encrypted ({error}); download it again", place
        ) from None


def _read_users(trajectories: list[File], positions: Positions) -> Iterator[pa.Table]:
    """The points of each user by time; users are joined one by one, to keep memory low."""
    number = 0
    for _, files in itertools.groupby(trajectories, key=lambda file: file.user):
        parts = []
        for file in files:
            parts.append(_read_trajectory(number, file, positions))
            number += 1
        yield _merge_trajectories(parts, trajectories, positions.defects)


def _read_trajectory(number: int, file: File, positions: Positions) -> pa.Table:
    """The points of one trajectory without defects and in the box, by time; `number`, its place
    among all trajectories, is a column."""
    data = file.read()
    header = HEADER.match(data)
    if not header:
        raise DataFormatError(
            "expected six header lines, 'Geolife trajectory' to a number, "
            f"found {describe_content(data)}; mend the header, or check the file",
            file.place,
            1,
        )
    lines = data[header.end() :]
    positions.defects.known("file without points", not lines.strip(), lambda: (file.place, 7))
    rows = rows_of(attempt(_parse, lines), lines, 7, file.place, _parse, positions.defects)
    positions.select(rows)
    numbers = np.full(len(rows), number, dtype=np.int32)
    return rows.table.append_column("trajectory", pa.array(numbers))


def _parse(lines: bytes) -> pa.Table:
    """Columns time (microseconds since 1970), latitude, longitude and altitude (metres)."""
    table = parse_table(lines, COLUMNS, ",")
    if lines.count(b":") != 2 * table.num_rows:
        raise pa.ArrowInvalid("a time that is cut, for which pyarrow would take another")
    days = _whole_numbers(table["date"])
    seconds = _whole_numbers(table["clock"])
    feet = table["altitude"].to_numpy()
    metres = feet * np.float32(FOOT)
    metres[~np.isfinite(feet) | (feet == UNKNOWN)] = np.nan
    columns = {
        "time": (days * 86_400 + seconds) * 10**6,
        "latitude": table["latitude"],
        "longitude": table["longitude"],
        "altitude": metres,
    }
    return pa.table(columns)


def _whole_numbers(column: pa.ChunkedArray) -> np.ndarray:
    """Days since 1970, or seconds of a day."""
    return column.cast(pa.int32()).to_numpy().astype(np.int64)


def _merge_trajectories(parts: list[pa.Table], files: list[File], defects: Defects) -> pa.Table:
    """The points of one user by time, without points that overlapping trajectories repeat.

    `parts` are the user's trajectories; `files`, by the numbers in their column trajectory, tell
    where a repeated point stands, which `defects` counts.
    """
    table = pa.concat_tables(parts)
    time = table["time"].to_numpy()
    if (np.diff(time) > 0).all():
        return table.combine_chunks()
    trajectory = table["trajectory"].to_numpy()
    order = in_time(time, defects, lambda row: (files[trajectory[row]].place, None))
    return table.take(pa.array(order))


def _join_users(users: list[pa.Table], files: list[File]) -> pd.DataFrame:
    """The points of all users in one frame; `files`, by the numbers in the column trajectory, tell
    user and label.

    Each column is freed once it is joined, to keep memory low.
    """
    table = pa.concat_tables(users)
    users.clear()
    columns = {}
    for name in table.column_names:
        columns[name] = table[name].to_numpy()
        table = table.drop_columns(name)
    user_of_file = np.array([file.user for file in files], dtype=np.int32)
    labels = pd.Index([file.label for file in files])
    trajectory = columns["trajectory"].astype(np.min_scalar_type(-len(files)))
    tidy = {
        "user": user_of_file[trajectory],
        "trajectory": pd.Categorical.from_codes(trajectory, labels),
        "time": pd.DatetimeIndex(columns["time"].view("datetime64[us]"), tz="UTC"),
        "latitude": columns["latitude"],
        "longitude": columns["longitude"],
        "altitude": columns["altitude"],
    }
    return pd.DataFrame(tidy, copy=False)
