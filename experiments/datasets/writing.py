"""Writing stand-ins: never a half-written file under its final name, each marked as synthetic.

A file or folder is written under a temporary name and renamed when it is complete; after a failure (disk
full, no permission, an interruption) nothing is left. The note that the data are synthetic is written first.
"""

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
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.csv

from tplrepro.datasets.reading import marker_path

REMEDIES = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "free some space or give another path="),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "give a path= that you may write to"),
    errno.EFBIG: "raise the limit on file sizes or ask for fewer users",
}


@contextlib.contextmanager
def synthetic_file(path: str | Path, **note) -> Iterator[Any]:
    """A binary file to write to, compressed if `path` ends in .gz, marked as synthetic with `note` beside it.

    OSError with the final name and the remedy; nothing is left behind.
    """
    path = Path(path)
    with _output(marker_path(path)) as marker:
        marker.write(_note(note))
    with _output(path) as out:
        yield out


@contextlib.contextmanager
def synthetic_folder(path: str | Path, **note) -> Iterator[Path]:
    """A folder to fill, marked as synthetic; an earlier stand-in at `path` is replaced, other data never."""
    path = Path(path)
    if path.exists() and any(path.iterdir()) and not marker_path(path).exists():
        raise FileExistsError(
            errno.EEXIST, "the folder holds files that are not a stand-in of ours; give another path=", str(path)
        )
    with _replacing(path) as temporary:
        temporary.mkdir()
        marker_path(temporary).write_bytes(_note(note))
        yield temporary


def _note(note: dict) -> bytes:
    return json.dumps({"synthetic": True, **note}, indent=1, sort_keys=True).encode() + b"\n"


@contextlib.contextmanager
def _output(path: Path) -> Iterator[Any]:
    """A binary file that gets its name when it is complete and on disk."""
    with _replacing(path) as temporary, open(temporary, "xb") as raw:
        # mtime=0 and no name: the same seed gives the same bytes.
        packed = gzip.GzipFile("", "wb", compresslevel=1, fileobj=raw, mtime=0) if path.suffix == ".gz" else None
        with packed or contextlib.nullcontext(raw) as stream:
            yield stream
        raw.flush()
        os.fsync(raw.fileno())


@contextlib.contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """A temporary path beside `path`, renamed to `path` at the end, or removed after a failure."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        if path.is_dir():
            shutil.rmtree(path)
        os.replace(temporary, path)
    except BaseException as error:
        shutil.rmtree(temporary, ignore_errors=True)  # does nothing to a file
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno in REMEDIES:
            problem = f"{os.strerror(error.errno)} while writing, so nothing was kept; {REMEDIES[error.errno]}"
            raise OSError(error.errno, problem, str(path)) from error
        raise


def stand_in(path: str | Path | None, name: str, write: Callable, read: Callable) -> pd.DataFrame:
    """Write a stand-in to `path` and read it back; without a path, use a temporary folder and remove it.

    In that case the frame's ``attrs`` hold only the name of the file, so equal seeds give equal frames
    everywhere.
    """
    if path is not None:
        write(Path(path))
        return read(Path(path))
    with tempfile.TemporaryDirectory(prefix="tplrepro-") as folder:
        target = Path(folder) / name
        write(target)
        frame = read(target)
    frame.attrs |= {
        "source": f"synthetic {name}",
        "skipped_examples": {
            reason: place.removeprefix(folder + os.sep) for reason, place in frame.attrs["skipped_examples"].items()
        },
    }
    return frame


def line_bytes(columns: dict[str, object], delimiter: str, end: bytes = b"\n") -> bytes:
    """Columns, arrays of one length, as lines of text without header or quotes."""
    sink = pa.BufferOutputStream()
    options = pa.csv.WriteOptions(include_header=False, delimiter=delimiter, quoting_style="none")
    pa.csv.write_csv(pa.table(columns), sink, options)
    return sink.getvalue().to_pybytes().replace(b"\n", end)
