"""Gowalla (and Brightkite): check-ins of a location-based social network, world-wide.

Format (SNAP): user, time (ISO 8601, UTC), latitude, longitude, location id; separated by tabs; newest first within a
user; also gzip-compressed. The official Gowalla file has 6,442,890 check-ins, from February 2009 to October 2010.
Brightkite's location ids are strings, and some of its lines lack fields or have the position (0, 0).

Known defects, skipped and counted: coordinates out of range, position (0, 0), a missing field, a time out of the
limits, and of several check-ins of a user at one second all but the first line.

Reading: pyarrow parses blocks of lines. On a synthetic file of the official size, compressed, on two cores, parsing
alone takes 1.9 s with pyarrow, 1.1 s with Polars, 2.0 s with DuckDB and 2.5 s with pandas (`benchmarks/datasets.py
--engines`). Polars saves a second but would be one more dependency; pyarrow is there already, parses blocks from
memory, and rejects a line that does not have the declared types, which is how such a line is found and named. With the
checks and the ordering `load` takes 5 s and 0.9 GB.

References
----------
E. Cho, S. A. Myers, J. Leskovec, "Friendship and Mobility", KDD 2011.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa

from tplrepro.datasets import registry
from tplrepro.datasets.grid import as_box
from tplrepro.datasets.reading import (
    DataFormatError,
    Defects,
    finish,
    first_true,
    line_blocks,
    line_of_row,
    parse_lines,
    parse_table,
    time_limit,
    warn_unterminated,
)
from tplrepro.datasets.stand_ins.gowalla import write
from tplrepro.datasets.writing import stand_in

__all__ = ["fetch", "load", "synthetic"]

EXPECTED = "five fields separated by tabs (user, time such as 2010-10-19T23:55:27Z, latitude, longitude, location id)"
SECOND = 1_000_000  # times are kept in microseconds


def fetch(**options):
    """Download loc-gowalla_totalCheckins.txt.gz into the cache and return its path; options as in `registry.fetch`."""
    return registry.fetch("gowalla", **options)


def load(
    path=None,
    *,
    box=None,
    not_before=None,
    not_after=None,
    strict: bool = False,
    max_malformed: int = 0,
) -> pd.DataFrame:
    """Read check-ins into a tidy frame, one a row, ordered by user and time.

    Parameters
    ----------
    path : path-like, optional
        A file in SNAP format, plain or gzip-compressed; by default it is looked for as `registry.locate` says.
    box : (south, north, west, east), optional
        Keep check-ins in this box only; the others are counted in ``attrs["outside_box"]``.
    not_before, not_after : time, optional
        Check-ins out of these limits are defects, in the future for instance. By default there is no earliest time,
        and the latest is now.
    strict : bool
        Raise at the first defect instead of skipping and counting.
    max_malformed : int
        How many lines that do not follow the format may be skipped and counted; one more is an error.

    Returns
    -------
    DataFrame
        user : int64; time : datetime64[us, UTC]; latitude, longitude : float64, degrees of WGS 84;
        location : int64, or a categorical where ids are strings (Brightkite).
        ``attrs``: source, synthetic, skipped, skipped_examples, reordered (lines that are newer than the line
        before of the same user), outside_box.

    Raises
    ------
    registry.DatasetNotFoundError, DataFormatError, OSError
    """
    path = registry.locate("gowalla", path)
    box = None if box is None else as_box(box)
    earliest, latest = time_limit(not_before, "not_before"), time_limit(not_after, "not_after")
    limits = (
        np.iinfo(np.int64).min if earliest is None else earliest.value // 1000,
        (pd.Timestamp.now(tz="UTC") if latest is None else latest).value // 1000,
    )
    defects = Defects(strict, max_malformed, EXPECTED)
    parts, total, out_of_range, outside, before, parse = [], 0, 0, 0, None, None
    for block, first_line in line_blocks(path):
        warn_unterminated(block, first_line, path, strict)
        parse = parse or _parser(block)
        table, block, _ = parse_lines(block, first_line, path, parse, defects)
        total += table.num_rows
        before = _check_order(table, before, block, first_line, path, defects)
        kept, wrong = _without_defects(table, limits, block, first_line, path, defects)
        out_of_range += wrong
        if box is not None:
            inside = box.contains(kept["latitude"].to_numpy(), kept["longitude"].to_numpy())
            outside += len(inside) - int(inside.sum())
            kept = kept.filter(pa.array(inside))
        parts.append(kept)
    if not parts:
        raise DataFormatError("the file is empty; download it again", path)
    if 2 * out_of_range > total:
        raise DataFormatError(
            f"{out_of_range} of {total} lines have coordinates out of range, so the columns may be swapped; the order "
            "must be user, time, latitude, longitude, location id",
            path,
            int(defects.examples["coordinates out of range"].rpartition(" ")[2]),
        )
    return finish(_tidy(parts, path, defects), path, defects, outside_box=outside)


def _parser(block: bytes):
    """How to parse lines like the first of the file: location ids are whole numbers or strings."""
    first = block.split(b"\n", 1)[0].rstrip(b"\r").split(b"\t")
    whole = len(first) == 5 and first[4].isdigit() and len(first[4]) < 19
    columns = {
        "user": pa.int64(),
        "time": pa.timestamp("us", tz="UTC"),
        "latitude": pa.float64(),
        "longitude": pa.float64(),
        "location": pa.int64() if whole else pa.dictionary(pa.int32(), pa.string()),
    }
    return lambda lines: parse_table(lines, columns, "\t", empty_is_null=True)


def _check_order(table, before, block, first_line, path, defects):
    """Note lines newer than the one before of their user; return the last user and time for the next block."""
    user = table["user"].fill_null(-1).to_numpy()
    time = table["time"].cast(pa.int64()).fill_null(0).to_numpy()
    if before is not None:
        user, time = np.append(before[0], user), np.append(before[1], time)
    wrong = (np.diff(user) == 0) & (np.diff(time) > 0)
    row = first_true(wrong) + (before is None) if len(wrong) else 0
    defects.out_of_order(int(wrong.sum()), path, lambda: line_of_row(block, row, first_line))
    if defects.strict:  # here the line is known; otherwise duplicates are found in the whole, in `_tidy`
        again = (np.diff(user) == 0) & (np.diff(time) == 0)
        repeat = first_true(again) + (before is None) if len(again) else 0
        defects.known("duplicate time", int(again.sum()), path, lambda: line_of_row(block, repeat, first_line))
    return (user[-1], time[-1]) if len(user) else None


def _without_defects(table, limits, block, first_line, path, defects):
    """The rows without known defects, and how many had coordinates out of range."""

    def drop(table, rows, bad, reason):
        if bad.any():
            row = int(rows[first_true(bad)])
            defects.known(reason, int(bad.sum()), path, lambda: line_of_row(block, row, first_line))
            table, rows = table.filter(pa.array(~bad)), rows[~bad]
        return table, rows

    rows = np.arange(table.num_rows)
    missing = np.zeros(len(rows), dtype=bool)
    for column in table.columns:
        if column.null_count:
            missing |= column.is_null().to_numpy()
    table, rows = drop(table, rows, missing, "missing field")
    latitude, longitude = table["latitude"].to_numpy(), table["longitude"].to_numpy()
    wrong = ~((np.abs(latitude) <= 90) & (np.abs(longitude) <= 180))
    table, rows = drop(table, rows, wrong, "coordinates out of range")
    nowhere = (table["latitude"].to_numpy() == 0) & (table["longitude"].to_numpy() == 0)
    table, rows = drop(table, rows, nowhere, "position (0, 0)")
    time = table["time"].cast(pa.int64()).to_numpy()
    table, rows = drop(table, rows, time < limits[0], "time before not_before")
    time = table["time"].cast(pa.int64()).to_numpy()
    table, rows = drop(table, rows, time > limits[1], "time after not_after")
    return table, int(wrong.sum())


def _tidy(parts, path, defects) -> pd.DataFrame:
    """One frame of all parts, ordered by user and time, with one check-in of a user a second."""
    table = pa.concat_tables(parts).unify_dictionaries()
    parts.clear()
    user = table["user"].to_numpy()
    time = table["time"].cast(pa.int64()).to_numpy()
    order = np.lexsort((time, user))  # stable: of equal times the first line comes first
    again = np.zeros(len(order), dtype=bool)
    again[1:] = (np.diff(user[order]) == 0) & (np.diff(time[order]) == 0)
    if again.any():
        row = int(order[first_true(again)])
        found = f"user {user[row]} at {pd.Timestamp(int(time[row]) * 1000, tz='UTC').isoformat()}"
        defects.known("duplicate time", int(again.sum()), path, lambda: (None, found))
        defects.examples["duplicate time"] = f"{path}, {found}"
        order = order[~again]
    location = table["location"]
    if pa.types.is_dictionary(location.type):
        location = location.combine_chunks()
        location = location.chunk(0) if isinstance(location, pa.ChunkedArray) else location
        location = pd.Categorical.from_codes(location.indices.to_numpy()[order], location.dictionary.to_pylist())
    else:
        location = location.to_numpy()[order]
    return pd.DataFrame(
        {
            "user": user[order],
            "time": pd.to_datetime(time[order], unit="us", utc=True),
            "latitude": table["latitude"].to_numpy()[order],
            "longitude": table["longitude"].to_numpy()[order],
            "location": location,
        },
        copy=False,
    )


def synthetic(
    n_users: int = 500,
    seed: int = 0,
    path=None,
    *,
    mean_check_ins: float = 32.8,
    n_places: int | None = None,
) -> pd.DataFrame:
    """Write a stand-in in the official format, and read it back.

    Users live in one of four cities, half of them in Los Angeles. Each has a home, a work place and six more places,
    drawn by a popularity with a heavy tail; check-ins follow the hours of the day, alternate between home and work on
    work days, return to the own places by rank and sometimes explore. The number of check-ins a user has a heavy tail.
    At any size memory stays bounded by one batch of users.

    Parameters
    ----------
    n_users : int
        196_591 is the official size.
    seed : int
    path : path-like, optional
        File to write, compressed if it ends in .gz; by default a temporary one.
    mean_check_ins : float
        Check-ins a user, about.
    n_places : int, optional
        Places in all cities; by default one for five check-ins.

    Returns
    -------
    DataFrame
        As `load` gives it, with ``attrs["synthetic"]`` True.
    """
    options = {"mean_check_ins": mean_check_ins, "n_places": n_places}
    name = "loc-gowalla_totalCheckins.txt"
    return stand_in(path, name, lambda target: write(target, n_users, seed, **options), load)
