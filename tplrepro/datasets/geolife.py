"""Geolife: GPS trajectories of 182 people, most of them in Beijing, from 2007 to 2012.

Format: files NNN/Trajectory/*.plt, one a trajectory of user NNN, read in place from the official zip or from its
unpacked folders. Six header lines, then lines of latitude, longitude (WGS 84), 0, altitude in feet (-777: unknown), day
number, date, time (GMT), separated by commas, with CRLF ends. The official zip holds 18,670 trajectories and 24,876,978
points.

Known defects, skipped and counted: coordinates out of range (there is a latitude of 400), times out of the limits
(clocks that say 2000-01-01), repeated points of a user at one second (all but the first), files without points.

Reading: pyarrow parses each file from memory, two files at a time. On 2,000 trajectories (2.6 million points) in a
zip this takes 2.1 s, against 2.3 s with DuckDB (which cannot read inside a zip: unpacking is included), 2.7 s with
Polars and 3.9 s with pandas (`benchmarks/datasets.py --engines`). Columns are joined user by user: the official size
takes 13 s and 2.0 GB.

References
----------
Y. Zheng, X. Xie, W.-Y. Ma, "GeoLife: A Collaborative Social Networking Service among User, Location and Trajectory",
IEEE Data Engineering Bulletin 33(2), 2010.
"""

from __future__ import annotations

import contextlib
import re
import zipfile
import zlib
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from tplrepro.datasets import registry
from tplrepro.datasets.grid import BEIJING_3RD_RING, as_box
from tplrepro.datasets.reading import (
    DataFormatError,
    Defects,
    describe_content,
    finish,
    first_true,
    line_of_row,
    parse_lines,
    parse_table,
    time_limit,
    warn_unterminated,
)
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
SECOND = 1_000_000  # times are kept in microseconds


def fetch(**options):
    """Download "Geolife Trajectories 1.3.zip" into the cache and return its path; options as in `registry.fetch`."""
    return registry.fetch("geolife", **options)


def load(
    path=None,
    *,
    users=None,
    box=None,
    not_before="2007-01-01",
    not_after=None,
    strict: bool = False,
    max_malformed: int = 0,
    threads: int = 2,
    progress: bool = False,
) -> pd.DataFrame:
    """Read trajectories into a tidy frame, one point a row, ordered by user and time.

    Parameters
    ----------
    path : path-like, optional
        The zip, or a folder above the folders NNN/Trajectory; by default it is looked for as `registry.locate` says.
    users : iterable of int, optional
        Read these users only.
    box : (south, north, west, east), optional
        Keep points in this box only; the others are counted in ``attrs["outside_box"]``.
    not_before, not_after : time, optional
        Points out of these limits are defects. By default the year in which recording began, and now.
    strict : bool
        Raise at the first defect instead of skipping and counting.
    max_malformed : int
        How many lines that do not follow the format may be skipped and counted in all; one more is an error.
    threads : int
        Files read at a time.
    progress : bool
        Show a progress bar.

    Returns
    -------
    DataFrame
        user : int32; trajectory : categorical, "NNN/name of the file"; time : datetime64[us, UTC]; latitude,
        longitude : float64, degrees of WGS 84; altitude : float32, metres, NaN where unknown.
        ``attrs``: source, synthetic, skipped, skipped_examples, reordered (points older than the one before in their
        file), outside_box.

    Raises
    ------
    registry.DatasetNotFoundError, DataFormatError, OSError
    """
    path = registry.locate("geolife", path, accept=_holds_trajectories)
    box = None if box is None else as_box(box)
    earliest, latest = time_limit(not_before, "not_before"), time_limit(not_after, "not_after")
    limits = (
        np.iinfo(np.int64).min if earliest is None else earliest.value // 1000,
        (pd.Timestamp.now(tz="UTC") if latest is None else latest).value // 1000,
    )
    defects = Defects(strict, max_malformed, EXPECTED)
    with contextlib.ExitStack() as stack:
        files = _files(path, stack)
        if users is not None:
            wanted = {int(u) for u in users}
            absent = wanted - {user for user, *_ in files}
            if absent:
                raise ValueError(
                    f"users must be among those of {path}, found {sorted(absent)} that are not; leave "
                    "users= out to read all"
                )
            files = [f for f in files if f[0] in wanted]
        if not files:
            raise DataFormatError(
                "there must be trajectories NNN/Trajectory/*.plt, found none; give the official zip or the folder "
                "that holds its folders NNN",
                path,
            )

        def read_one(file):
            _user, _, name, read = file
            own = Defects(strict, max_malformed, EXPECTED)
            return _read_file(read(), name, own, limits, box), own

        gather = _Gather(files, defects, box)
        results = stack.enter_context(contextlib.closing(_mapped(read_one, files, threads, progress)))
        for file, (part, own) in zip(files, results, strict=True):
            gather.add(file, part, own)
        frame, outside, total, out_of_range = gather.frame(path)
    if 2 * out_of_range > total:
        example = defects.examples["coordinates out of range"].rpartition(", line ")
        raise DataFormatError(
            f"{out_of_range} of {total} points have coordinates out of range, so the columns may be swapped; the order "
            "must be latitude, longitude",
            example[0],
            int(example[2]),
        )
    return finish(frame, path, defects, outside_box=outside)


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


def _files(path: Path, stack) -> list[tuple]:
    """User, label, name for messages, and a function giving the bytes, of each trajectory, ordered."""
    if path.is_dir():
        files = []
        for plt in _plt_files(path):
            user, name = MEMBER.search(plt.as_posix()).groups()
            files.append((int(user), f"{user}/{name}", str(plt), plt.read_bytes))
        return sorted(files, key=lambda f: f[:2])
    with open(path, "rb") as file:  # an error of the system names the file
        head = file.read(4096)
    try:
        archive = stack.enter_context(zipfile.ZipFile(path))
    except zipfile.BadZipFile as error:
        what = "a zip archive that ends early or is damaged" if head[:2] == b"PK" else describe_content(head)
        raise DataFormatError(
            f"expected the zip archive of Geolife or a folder, found {what} ({error}); download it again", path
        ) from None

    def reader(member):
        def read() -> bytes:
            try:
                return archive.read(member)
            except (zipfile.BadZipFile, zlib.error, EOFError) as error:
                raise DataFormatError(
                    f"the archive is damaged ({error}); download it again", f"{path}::{member.filename}"
                ) from None

        return read

    files = []
    for member in archive.infolist():
        match = MEMBER.search(member.filename)
        if match:
            user, name = match.groups()
            files.append((int(user), f"{user}/{name}", f"{path}::{member.filename}", reader(member)))
    return sorted(files, key=lambda f: f[:2])


def _mapped(function, files, threads: int, progress: bool):
    """Results in order, with a bounded number of files in flight."""
    from tqdm import tqdm

    with tqdm(total=len(files), unit="file", desc="geolife", disable=not progress) as bar:
        if threads <= 1:
            for file in files:
                yield function(file)
                bar.update()
            return
        pool = ThreadPoolExecutor(threads)
        try:
            waiting: deque = deque()
            for file in files:
                waiting.append(pool.submit(function, file))
                if len(waiting) >= 4 * threads:
                    yield waiting.popleft().result()
                    bar.update()
            while waiting:
                yield waiting.popleft().result()
                bar.update()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _read_file(data: bytes, name: str, defects: Defects, limits, box):
    """Columns of one file without its defects: time, latitude, longitude, altitude; and rows read, rows outside."""
    empty = (np.empty(0, np.int64), np.empty(0), np.empty(0), np.empty(0, np.float32)), 0, 0, 0
    if not data.startswith(b"Geolife trajectory"):
        what = describe_content(data) if data else "an empty file"
        raise DataFormatError(
            f"expected six header lines that begin with 'Geolife trajectory', found {what}; check that this is a "
            "Geolife file",
            name,
            1,
        )
    start = 0
    for line in range(1, 7):
        start = data.find(b"\n", start) + 1
        if not start:
            raise DataFormatError("expected six header lines, found the end of the file; download it again", name, line)
    body = data[start:]
    if not body.strip():
        defects.known("file without points", 1, name, lambda: (7, ""))
        return empty
    warn_unterminated(body, 7, name, defects.strict)
    table, body, _ = parse_lines(body, 7, name, _parse, defects)
    latitude, longitude = table["latitude"].to_numpy(), table["longitude"].to_numpy()
    altitude = table["altitude"].to_numpy()
    days, clock = (table[c].cast(pa.int32()).to_numpy().astype(np.int64) for c in ("date", "clock"))
    time = (days * 86_400 + clock) * SECOND
    n = len(time)

    rows = np.arange(n)
    wrong = ~((np.abs(latitude) <= 90) & (np.abs(longitude) <= 180))
    out_of_range = int(wrong.sum())
    for bad, reason in (
        (wrong, "coordinates out of range"),
        (time < limits[0], "time before not_before"),
        (time > limits[1], "time after not_after"),
    ):
        left = bad[rows]
        if left.any():
            row = int(rows[first_true(left)])
            defects.known(reason, int(left.sum()), name, lambda row=row: line_of_row(body, row, 7))
            rows = rows[~left]
    step = np.diff(time[rows])
    if (step < 0).any():
        row = int(rows[first_true(step < 0) + 1])
        defects.out_of_order(int((step < 0).sum()), name, lambda: line_of_row(body, row, 7))
        rows = rows[np.argsort(time[rows], kind="stable")]
        step = np.diff(time[rows])
    again = np.append(False, step == 0) if len(rows) else np.zeros(0, dtype=bool)
    if again.any():
        row = int(rows[first_true(again)])
        defects.known("duplicate time", int(again.sum()), name, lambda: line_of_row(body, row, 7))
        rows = rows[~again]
    outside = 0
    if box is not None:
        inside = box.contains(latitude[rows], longitude[rows])
        outside = len(rows) - int(inside.sum())
        rows = rows[inside]
    height = np.where(altitude == -777, np.float32(np.nan), altitude * np.float32(FOOT))
    if len(rows) == n:
        return (time, latitude, longitude, height), n, outside, out_of_range
    return (time[rows], latitude[rows], longitude[rows], height[rows]), n, outside, out_of_range


def _parse(body: bytes) -> pa.Table:
    return parse_table(body, COLUMNS, ",")


class _Gather:
    """Collects the columns of all files, user by user, and joins them column by column to keep memory low."""

    def __init__(self, files, defects, box):
        self.labels = [label for _, label, *_ in files]
        self.defects = defects
        self.columns = [[] for _ in range(6)]  # user, trajectory, time, latitude, longitude, altitude
        self.own: list = []
        self.user = None
        self.index = 0
        self.counts = np.zeros(3, dtype=np.int64)  # rows read, outside the box, out of range

    def add(self, file, part, defects):
        columns, *counts = part
        self.counts += (counts[0], counts[1], counts[2])
        self.defects.merge(defects)
        malformed = self.defects.skipped.get("malformed line", 0)
        if malformed > self.defects.max_malformed:
            raise DataFormatError(
                f"{malformed} malformed lines so far, more than max_malformed={self.defects.max_malformed}; mend the "
                "files or the download, or allow more",
                file[2],
            )
        if file[0] != self.user:
            self._close_user()
            self.user = file[0]
        self.own.append((self.index, file[2], columns))
        self.index += 1

    def _close_user(self):
        """Order the points of a user whose trajectories overlap, and drop what two of them report for one second."""
        own, self.own = self.own, []
        if not own:
            return
        sizes = [len(columns[0]) for _, _, columns in own]
        joined = [np.concatenate([columns[c] for _, _, columns in own]) for c in range(4)]
        which = np.repeat(np.array([i for i, *_ in own], dtype=np.int32), sizes)
        time = joined[0]
        if (np.diff(time) <= 0).any():
            order = np.argsort(time, kind="stable")
            again = np.append(False, np.diff(time[order]) == 0)
            if again.any():
                row = order[first_true(again)]
                name = own[int(np.searchsorted(np.cumsum(sizes), row, side="right"))][1]
                stamp = pd.Timestamp(int(time[row]) * 1000, tz="UTC").isoformat()
                self.defects.known(
                    "duplicate time in another trajectory", int(again.sum()), name, lambda: (None, stamp)
                )
                order = order[~again]
            joined = [column[order] for column in joined]
            which = which[order]
        user = np.full(len(which), self.user, dtype=np.int32)
        for column, values in zip(self.columns, [user, which, *joined], strict=True):
            column.append(values)

    def frame(self, path):
        self._close_user()
        joined = []
        for column in self.columns:
            joined.append(np.concatenate(column))
            column.clear()
        user, which, time, latitude, longitude, altitude = joined
        del joined
        codes = which.astype(np.min_scalar_type(-max(len(self.labels), 1)))
        frame = pd.DataFrame(
            {
                "user": user,
                "trajectory": pd.Categorical.from_codes(codes, pd.Index(self.labels)),
                "time": pd.to_datetime(time, unit="us", utc=True),
                "latitude": latitude,
                "longitude": longitude,
                "altitude": altitude,
            },
            copy=False,
        )
        rows, outside, out_of_range = (int(c) for c in self.counts)
        return frame, outside, rows, out_of_range


def synthetic(
    n_users: int = 10,
    seed: int = 0,
    path=None,
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
        A zip to write if it ends in .zip, else a folder; by default a temporary zip.
    n_trajectories : int, optional
        In all, 20 a user by default; 18_670 is the official size.
    seconds_between_points : float
        On the way; the official files have 1 to 5 seconds for most points.
    box : (south, north, west, east)
        Where the city is.

    Returns
    -------
    DataFrame
        As `load` gives it, with ``attrs["synthetic"]`` True.
    """
    options = {"n_trajectories": n_trajectories, "seconds_between_points": seconds_between_points, "box": box}
    name = "Geolife Trajectories 1.3.zip"
    return stand_in(path, name, lambda target: write(target, n_users, seed, **options), load)
