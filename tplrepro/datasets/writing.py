"""Writing stand-ins: never a half-written file under the final name, never one that is not marked as synthetic.

A file or folder is written under a temporary name beside it and renamed when it is complete; after any failure (disk
full, no permission, an interruption) nothing is left of it. The note that the data are synthetic is put down first.
"""

from __future__ import annotations

import contextlib
import errno
import gzip
import json
import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.csv

from tplrepro.datasets.reading import marker_path

__all__ = ["atomic_folder", "atomic_output", "line_bytes", "mark_synthetic", "stand_in"]

REMEDIES = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "free some space or give another path="),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "give a path= that you may write to"),
    errno.EFBIG: "raise the limit on file sizes or ask for fewer users",
}


@contextlib.contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """A temporary name beside `path` to write to, renamed to `path` at the end, or removed after any failure."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        if path.is_dir():
            shutil.rmtree(path)
        os.replace(temporary, path)
    except BaseException as error:
        if temporary.is_dir():
            shutil.rmtree(temporary, ignore_errors=True)
        else:
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno in REMEDIES:
            problem = f"{os.strerror(error.errno)} while writing, so nothing was kept; {REMEDIES[error.errno]}"
            raise OSError(error.errno, problem, str(path)) from error
        raise


@contextlib.contextmanager
def atomic_output(path: str | Path) -> Iterator:
    """A binary file to write to, compressed if `path` ends in .gz, renamed to `path` at the end.

    Raises
    ------
    OSError
        With the final name and the remedy in its message; nothing is left behind.
    """
    path = Path(path)
    with _replacing(path) as temporary:
        with open(temporary, "xb") as raw:
            if path.suffix == ".gz":
                # mtime=0 and no name: the same seed gives the same bytes.
                with gzip.GzipFile("", "wb", compresslevel=1, fileobj=raw, mtime=0) as stream:
                    yield stream
            else:
                yield raw
            raw.flush()
            os.fsync(raw.fileno())


@contextlib.contextmanager
def atomic_folder(path: str | Path) -> Iterator[Path]:
    """A folder to fill, renamed to `path` at the end; an earlier stand-in at `path` is replaced, other data never."""
    path = Path(path)
    if path.exists() and any(path.iterdir()) and not marker_path(path).exists():
        raise FileExistsError(
            errno.EEXIST, "the folder holds files that are not a stand-in of ours; give another path=", str(path)
        )
    with _replacing(path) as temporary:
        temporary.mkdir()
        yield temporary


def mark_synthetic(path: str | Path, generator: dict) -> None:
    """Note beside the file (or in the folder) `path` that it is synthetic, and how it was made."""
    with atomic_output(marker_path(path)) as out:
        out.write(json.dumps({"synthetic": True, **generator}, indent=1, sort_keys=True).encode() + b"\n")


def stand_in(path: str | Path | None, name: str, write: Callable, read: Callable) -> pd.DataFrame:
    """Write a stand-in to `path` and read it back; without a path, to a temporary folder that goes away afterwards.

    Then the frame's ``attrs`` name the file alone, so that the same seed gives the same frame everywhere.
    """
    if path is not None:
        write(Path(path))
        return read(Path(path))
    with tempfile.TemporaryDirectory(prefix="tplrepro-") as folder:
        target = Path(folder) / name
        write(target)
        frame = read(target)
        frame.attrs["source"] = f"synthetic {name}"
        frame.attrs["skipped_examples"] = {
            reason: where.removeprefix(folder + os.sep) for reason, where in frame.attrs["skipped_examples"].items()
        }
        return frame


def line_bytes(columns: dict[str, object], delimiter: str, end: bytes = b"\n") -> bytes:
    """Columns, arrays of one length, as lines of text without header or quotes."""
    sink = pa.BufferOutputStream()
    options = pa.csv.WriteOptions(include_header=False, delimiter=delimiter, quoting_style="none")
    pa.csv.write_csv(pa.table(columns), sink, options)
    data = sink.getvalue().to_pybytes()
    return data if end == b"\n" else data.replace(b"\n", end)
