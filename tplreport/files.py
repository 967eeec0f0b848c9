"""Files that are never seen half-written, and never written over what somebody needs."""

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

#: The path of a file.
FilePath = str | os.PathLike


def write_whole(target: Path, content: bytes) -> None:
    """Write a file, and the folders that it needs, so that it is never seen half-written."""
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, partial = tempfile.mkstemp(
        dir=target.parent, prefix=f".{target.name}", suffix=".partial"
    )
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(handle)  # else a power cut may leave the new name without its content
        os.chmod(partial, 0o644)
        os.replace(partial, target)
    except BaseException:
        Path(partial).unlink(missing_ok=True)
        raise


def is_same_file(path: str | os.PathLike, other: str | os.PathLike) -> bool:
    """Whether two paths lead to one file, by links of either kind, too; it need not exist yet."""
    try:
        return os.path.samefile(path, other)
    except FileNotFoundError:
        return os.path.realpath(path) == os.path.realpath(other)


def check_spares(target: str | os.PathLike, needed: Iterable[str | os.PathLike]) -> None:
    """ValueError if what is written to `target` would destroy one of the files that are needed."""
    is_device = os.path.exists(target) and not os.path.isfile(target)
    if is_device:
        return
    for path in needed:
        if is_same_file(target, path):
            raise ValueError(
                f"what is written to {target} must spare {path}, found the same file; take another "
                "name"
            )
