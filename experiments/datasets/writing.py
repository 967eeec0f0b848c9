"""Writing stand-ins: each is marked as synthetic, and moved to its place once it is whole."""

import gzip
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pandas as pd
import pyarrow as pa
import pyarrow.csv

from tplrepro.datasets.reading import marker_path, read_marker
from tplrepro.files import write_whole


def stand_in(
    path: str | Path | None, set_name: str, file_name: str, write: Callable, read: Callable, **options
) -> pd.DataFrame:
    """Write a stand-in by `write(path, **options)` and read it back; without a path, from a temporary folder.

    In that case the frame's ``attrs`` hold only the name of the file, so equal seeds give equal frames
    everywhere. An earlier stand-in at `path` is replaced, a folder of other data never.
    """
    place = None if path is None else Path(path)
    if place is not None:
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.is_dir() and any(place.iterdir()) and read_marker(place) is None:
            raise FileExistsError(f"{place} holds files that are not a stand-in of ours; give another path=")
    with tempfile.TemporaryDirectory(prefix=".tplrepro-", dir=place and place.parent) as folder:
        target = Path(folder) / (place.name if place else file_name)
        write(target, **options)
        note = {"synthetic": True, "set": set_name, **options}
        write_whole(marker_path(target), json.dumps(note, indent=1, sort_keys=True, default=int).encode() + b"\n")
        if place is None:
            frame = read(target)
        else:
            if place.is_dir():
                shutil.rmtree(place)
            for file in sorted(Path(folder).iterdir(), reverse=True):  # the note before the file that it marks
                os.replace(file, place.parent / file.name)
            return read(place)
    skipped = frame.attrs["skipped_examples"].items()
    frame.attrs["skipped_examples"] = {reason: found.removeprefix(folder + os.sep) for reason, found in skipped}
    frame.attrs["source"] = f"synthetic {file_name}"
    return frame


def lines_to(path: str | Path) -> BinaryIO | gzip.GzipFile:
    """A file to write to, compressed if `path` ends in .gz; the same content gives the same bytes."""
    if Path(path).suffix == ".gz":
        return gzip.GzipFile(path, "wb", compresslevel=1, mtime=0)
    return open(path, "wb")


def line_bytes(columns: dict[str, object], delimiter: str, end: bytes = b"\n") -> bytes:
    """Columns, arrays of one length, as lines of text without header or quotes."""
    sink = pa.BufferOutputStream()
    options = pa.csv.WriteOptions(include_header=False, delimiter=delimiter, quoting_style="none")
    pa.csv.write_csv(pa.table(columns), sink, options)
    return sink.getvalue().to_pybytes().replace(b"\n", end)
