"""Writing stand-ins: never a half-written file under the final name, never one that is not marked as synthetic.

A file is written under a temporary name in the same folder and renamed when it is complete; after any failure (disk
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
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.csv

from tplrepro.datasets.reading import marker_path

__all__ = ["atomic_folder", "atomic_output", "line_bytes", "mark_synthetic", "stand_in"]


@contextlib.contextmanager
def atomic_output(path) -> Iterator:
    """A binary file to write to, compressed if `path` ends in .gz, renamed to `path` at the end.

    Raises
    ------
    OSError
        With the final name and the remedy in its message; nothing is left behind.
    """
    path = Path(path)
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
        with os.fdopen(handle, "wb") as raw:
            if path.suffix == ".gz":
                # mtime=0 and no name: the same seed gives the same bytes.
                with gzip.GzipFile("", "wb", compresslevel=1, fileobj=raw, mtime=0) as stream:
                    yield stream
            else:
                yield raw
            raw.flush()
            os.fsync(raw.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException as error:
        if temporary is not None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
        if isinstance(error, OSError):
            raise _explained(error, path) from error
        raise


@contextlib.contextmanager
def atomic_folder(path) -> Iterator[Path]:
    """A folder to fill, renamed to `path` at the end; an earlier stand-in at `path` is replaced, other data never."""
    path = Path(path)
    if path.exists() and any(path.iterdir()) and not marker_path(path).exists():
        raise FileExistsError(
            errno.EEXIST, "the folder holds files that are not a stand-in of ours; give another path=", str(path)
        )
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent))
        yield temporary
        os.chmod(temporary, 0o777 & ~_umask())
        if path.exists():
            shutil.rmtree(path)
        os.replace(temporary, path)
    except BaseException as error:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)
        if isinstance(error, OSError):
            raise _explained(error, path) from error
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _explained(error: OSError, path: Path) -> OSError:
    remedy = {
        errno.ENOSPC: "free some space or give another path=",
        errno.EDQUOT: "free some space or give another path=",
        errno.EFBIG: "raise the limit on file sizes or ask for fewer users",
        errno.EACCES: "give a path= that you may write to",
        errno.EPERM: "give a path= that you may write to",
        errno.EROFS: "give a path= that you may write to",
    }.get(error.errno)
    if remedy is None:
        return error
    return OSError(error.errno, f"{os.strerror(error.errno)} while writing, so nothing was kept; {remedy}", str(path))


def mark_synthetic(path, generator: dict) -> None:
    """Note beside the file (or in the folder) `path` that it is synthetic, and how it was made."""
    with atomic_output(marker_path(path)) as out:
        out.write(json.dumps({"synthetic": True, **generator}, indent=1, sort_keys=True).encode() + b"\n")


def stand_in(path, name: str, write, read):
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
