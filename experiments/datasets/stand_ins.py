"""What the stand-ins share: how they are written, and how people of a city move.

A stand-in is marked as synthetic, and moved to its place once it is whole. People stay at few
places, commute between them at the usual hours, and choose other places by a heavy-tailed
popularity. This makes recorded mobility predictable, and therefore makes it leak.
"""

import gzip
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv

from tplreport.files import write_whole
from tplreport.reading.text_files import marker_path, read_marker


def make_stand_in(
    path: str | Path | None,
    set_name: str,
    file_name: str,
    write: Callable,
    read: Callable,
    **options,
) -> pd.DataFrame:
    """Write a stand-in and read it back.

    Parameters
    ----------
    path : path-like or None
        Where it is written; an earlier stand-in there is replaced, a folder of other data never.
        With None it is in a temporary folder, and the frame's ``attrs`` hold only the name of the
        file, so equal seeds give equal frames everywhere.
    set_name : str
        Of the data set, for the note that marks the stand-in.
    file_name : str
        In the temporary folder.
    write : callable
        ``write(path, **options)``.
    read : callable
        ``read(path)``.
    **options
        Are in the note, too.

    Returns
    -------
    DataFrame
        As `read` gives it.

    Raises
    ------
    FileExistsError
        If `path` is a folder of other data.
    """
    note = {"synthetic": True, "set": set_name, **options}
    if path is not None:
        _write_marked(Path(path), write, options, note)
        return read(Path(path))
    with tempfile.TemporaryDirectory(prefix="tplrepro-") as folder:
        target = Path(folder) / file_name
        _write_marked(target, write, options, note)
        frame = read(target)
    examples = frame.attrs["skipped_examples"]
    for reason, place in examples.items():
        examples[reason] = place.removeprefix(folder + os.sep)
    frame.attrs["source"] = f"synthetic {file_name}"
    return frame


def _write_marked(path: Path, write: Callable, options: dict, note: dict) -> None:
    """Let `write(target, **options)` write a file or folder, and mark it by `note`, which is
    written beside it.

    Both are written in a folder beside `path`, and moved to their place when they are whole.
    """
    _check_replaceable(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".tplrepro-", dir=path.parent) as folder:
        target = Path(folder) / path.name
        write(target, **options)
        text = json.dumps(note, indent=1, sort_keys=True, default=int) + "\n"
        write_whole(marker_path(target), text.encode())
        if path.is_dir():
            shutil.rmtree(path)
        # the note before the file that it marks
        for written in sorted(Path(folder).iterdir(), reverse=True):
            os.replace(written, path.parent / written.name)


def _check_replaceable(path: Path) -> None:
    """Raise FileExistsError for a folder of files that are no stand-in."""
    if path.is_dir() and any(path.iterdir()) and read_marker(path) is None:
        raise FileExistsError(
            f"{path} holds files that are not a stand-in of ours; give another path="
        )


def open_for_writing(path: str | Path) -> BinaryIO | gzip.GzipFile:
    """A file to write to, compressed if `path` ends in .gz; the same content gives the same
    bytes."""
    if Path(path).suffix == ".gz":
        return gzip.GzipFile(path, "wb", compresslevel=1, mtime=0)
    return open(path, "wb")


def format_lines(columns: Mapping[str, Any], delimiter: str, end: bytes = b"\n") -> bytes:
    """Columns, arrays of one length, as lines of text with this delimiter and end, without header
    or quotes."""
    sink = pa.BufferOutputStream()
    options = pa.csv.WriteOptions(include_header=False, delimiter=delimiter, quoting_style="none")
    pa.csv.write_csv(pa.table(columns), sink, options)
    return sink.getvalue().to_pybytes().replace(b"\n", end)


def draw_popular(rng: np.random.Generator, n: int, size) -> np.ndarray:
    """Random ranks 0..n-1, an array of shape `size`; rank k has a probability proportional to log(1
    + 1 / (k + 1))."""
    return np.minimum((n + 1) ** rng.random(size), n).astype(np.int64) - 1


def draw_places(rng: np.random.Generator, box, n_places: int) -> np.ndarray:
    """Random places in districts of a box (south, north, west, east): degrees (n_places, 2)."""
    south, north, west, east = box
    low = np.array([south, west])
    span = np.array([north - south, east - west])
    districts = rng.normal(0.5, 0.22, (12, 2))
    district = draw_popular(rng, 12, n_places)
    points = districts[district] + rng.normal(0, 0.06, (n_places, 2))
    # clipping would accumulate places on the edges
    return low + span * (0.02 + 0.96 * (points % 1))


def draw_counts(rng: np.random.Generator, n: int, mean: float, most: int) -> np.ndarray:
    """Counts (n,), at least 1 and at most `most`, log-normal with about the given mean."""
    return np.clip(np.rint(mean * rng.lognormal(-0.72, 1.2, n)), 1, most).astype(np.int64)
