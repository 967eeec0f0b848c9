"""Writing stand-ins: each is marked as synthetic first, and is never seen half-written under its final name."""

import contextlib
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
from tplrepro.files import write_whole


@contextlib.contextmanager
def synthetic_file(path: str | Path, **note) -> Iterator[Any]:
    """A binary file to write to, compressed if `path` ends in .gz, marked as synthetic with `note` beside it."""
    path = Path(path)
    with _replacing(path) as temporary:
        write_whole(marker_path(path), _synthetic(note))
        with open(temporary, "xb") as raw:
            # mtime=0 and no name: the same seed gives the same bytes.
            packed = gzip.GzipFile("", "wb", compresslevel=1, fileobj=raw, mtime=0) if path.suffix == ".gz" else None
            with packed or contextlib.nullcontext(raw) as stream:
                yield stream


@contextlib.contextmanager
def synthetic_folder(path: str | Path, **note) -> Iterator[Path]:
    """A folder to fill, marked as synthetic; an earlier stand-in at `path` is replaced, other data never."""
    path = Path(path)
    if path.exists() and any(path.iterdir()) and not marker_path(path).exists():
        raise FileExistsError(f"{path} holds files that are not a stand-in of ours; give another path=")
    with _replacing(path) as temporary:
        temporary.mkdir()
        write_whole(marker_path(temporary), _synthetic(note))
        yield temporary


def _synthetic(note: dict) -> bytes:
    return json.dumps({"synthetic": True, **note}, indent=1, sort_keys=True).encode() + b"\n"


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
    except OSError as error:
        remedy = "free some space, or give another path= that you may write to"
        raise OSError(
            error.errno, f"{error.strerror} while writing, so nothing was kept; {remedy}", str(path)
        ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)  # does nothing to a file
        temporary.unlink(missing_ok=True)


def stand_in(path: str | Path | None, name: str, write: Callable, read: Callable, **options) -> pd.DataFrame:
    """Write a stand-in to `path` with these options and read it back; without a path, by a temporary folder.

    In that case the frame's ``attrs`` hold only the name of the file, so equal seeds give equal frames
    everywhere.
    """
    if path is not None:
        write(Path(path), **options)
        return read(Path(path))
    with tempfile.TemporaryDirectory(prefix="tplrepro-") as folder:
        target = Path(folder) / name
        write(target, **options)
        frame = read(target)
    skipped = frame.attrs["skipped_examples"].items()
    frame.attrs["skipped_examples"] = {reason: place.removeprefix(folder + os.sep) for reason, place in skipped}
    frame.attrs["source"] = f"synthetic {name}"
    return frame


def line_bytes(columns: dict[str, object], delimiter: str, end: bytes = b"\n") -> bytes:
    """Columns, arrays of one length, as lines of text without header or quotes."""
    sink = pa.BufferOutputStream()
    options = pa.csv.WriteOptions(include_header=False, delimiter=delimiter, quoting_style="none")
    pa.csv.write_csv(pa.table(columns), sink, options)
    return sink.getvalue().to_pybytes().replace(b"\n", end)
