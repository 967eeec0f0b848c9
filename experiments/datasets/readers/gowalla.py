"""Gowalla: check-ins of a location-based social network, world-wide (Cho, Myers, Leskovec 2011).

Format (SNAP): user, time (ISO 8601, UTC), latitude, longitude, location id; separated by tabs;
newest first within a user; also gzip-compressed. The official file has 6,442,890 check-ins, from
February 2009 to October 2010.

Known defects, skipped and counted: coordinates out of range, position (0, 0), a missing field, a
time in the future, and repeated check-ins of a user in the same second.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from experiments.datasets.readers import registry
from experiments.datasets.readers.positions import Positions
from tplreport.reading.text_files import Defects, in_time, parse_table, read_rows

EXPECTED = (
    "five fields separated by tabs (user, time such as 2010-10-19T23:55:27Z, latitude, longitude, "
    "location id)"
)
COLUMNS = {
    "user": pa.int64(),
    "time": pa.timestamp("s", tz="UTC"),
    "latitude": pa.float64(),
    "longitude": pa.float64(),
    "location": pa.int64(),
}


def load(path: str | Path | None = None, *, box: Any = None) -> pd.DataFrame:
    """Read check-ins into a tidy frame, one per row, ordered by user and time.

    Parameters
    ----------
    path : path-like, optional
        A file, plain or gzip-compressed; by default found by `registry.locate`.
    box : (south, north, west, east), optional
        Keep only check-ins in it, and count the others in ``attrs["outside_box"]``.

    Returns
    -------
    DataFrame
        user : int64; time : datetime64[us, UTC]; latitude, longitude : float64, degrees of WGS 84;
        location : int64. ``attrs``: source, synthetic, skipped, skipped_examples, outside_box.

    Raises
    ------
    DatasetNotFoundError, DataFormatError, OSError
        If there is nothing to read or it cannot be read.
    """
    path = registry.locate("gowalla", path)
    defects = Defects(EXPECTED)
    positions = Positions(box, defects)
    parts = []
    for rows in read_rows(path, _parse, defects):
        rows.drop(_has_missing_field(rows.table), "missing field")
        rows.drop((rows["latitude"] == 0) & (rows["longitude"] == 0), "position (0, 0)")
        positions.select(rows, "user")
        parts.append(rows.table)
    return positions.finish(_join_check_ins(parts, path, defects), path)


def _has_missing_field(table: pa.Table) -> np.ndarray:
    """Whether a field of each row is null, (rows,)."""
    is_missing = np.zeros(table.num_rows, dtype=bool)
    for column in table.columns:
        if column.null_count:
            is_missing |= column.is_null().to_numpy()
    return is_missing


def _parse(lines: bytes) -> pa.Table:
    """The columns, with times in microseconds since 1970 and null for empty fields."""
    table = parse_table(lines, COLUMNS, "\t", nulls=("",))
    if lines.count(b":") != 2 * (table.num_rows - table["time"].null_count):
        raise pa.ArrowInvalid("a time that is cut, for which pyarrow would take another")
    microseconds = table["time"].cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())
    return table.set_column(1, "time", microseconds)


def _join_check_ins(parts: list[pa.Table], path: Path, defects: Defects) -> pd.DataFrame:
    """One frame of all parts, ordered by user and time, with at most one check-in per user and
    second; the others are counted in `defects`."""
    table = pa.concat_tables(parts)
    user = table["user"].to_numpy()
    time = table["time"].to_numpy()
    order = in_time(time, defects, lambda row: (path, None), user)
    columns: dict[str, Any] = {name: table[name].to_numpy()[order] for name in COLUMNS}
    columns["time"] = pd.DatetimeIndex(columns["time"].view("datetime64[us]"), tz="UTC")
    return pd.DataFrame(columns, copy=False)
