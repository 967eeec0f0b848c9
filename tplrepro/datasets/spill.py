"""Rows of files that may be larger than memory: gathered by user, in a temporary file if there are many.

Up to `IN_MEMORY` bytes stay in memory. A temporary file has no name, stands in the folder that TMPDIR names,
and is gone as soon as the process ends, however it ends.
"""

import errno
import tempfile
from collections.abc import Hashable, Iterator

import numpy as np
import pandas as pd

from tplrepro.datasets.table import whole_numbers

#: Bytes of arrays that need no temporary file.
IN_MEMORY = 128 << 20
#: About so many rows of whole users are given back at once.
PART = 1 << 20


class Spill:
    """Arrays, one after the other: in memory while they are small, in a temporary file from then on."""

    def __init__(self) -> None:
        self.file = tempfile.SpooledTemporaryFile(IN_MEMORY)
        self.size = 0  # bytes
        self.places: list[tuple[int, int, np.dtype]] = []  # first byte, length and type of each array

    def __del__(self) -> None:
        self.file.close()  # which removes it, unless an array is mapped from it

    def append(self, array: np.ndarray) -> None:
        """Add an array; OSError if there is no room for it."""
        self.places.append((self.size, len(array), array.dtype))
        self.size += array.nbytes
        try:
            self.file.seek(0, 2)
            self.file.write(array.tobytes())
            self.file.flush()
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise
            raise OSError(
                f"there must be room for a temporary file, found none in {tempfile.gettempdir()} after "
                f"{self.size >> 20:,} MB; set TMPDIR to a folder with more"
            ) from None

    def read(self, k: int, start: int = 0, stop: int | None = None) -> np.ndarray:
        """The entries from `start` to `stop` of array k."""
        first, length, kind = self.places[k]
        stop = length if stop is None else stop
        self.file.seek(first + start * kind.itemsize)
        return np.frombuffer(self.file.read((stop - start) * kind.itemsize), kind)

    def joined(self) -> np.ndarray:
        """All arrays, which have one type, as one array; it is mapped from the temporary file if there is one."""
        if self.size > IN_MEMORY:
            return np.memmap(self.file, self.places[0][2], "r")
        return np.concatenate([self.read(k) for k in range(len(self.places))])


class RowsByUser:
    """Rows that are added in blocks of columns, and given back in parts of whole users."""

    def __init__(self) -> None:
        self.n_rows = 0
        self.n_blocks = 0
        self.blocks = Spill()  # records, sorted by user
        self.counts = np.zeros(0, dtype=np.int64)  # rows of each user

    def add(self, columns: dict[str, np.ndarray]) -> None:
        """Add the columns of a block; "user" holds codes from 0."""
        users = columns["user"]
        order = np.argsort(users, kind="stable")
        columns = columns | {"row": np.arange(self.n_rows, self.n_rows + len(users))}
        records = np.empty(len(order), [(name, column.dtype) for name, column in columns.items()])
        for name, column in columns.items():
            records[name] = column[order]
        self.blocks.append(records)
        self.n_blocks += 1
        self.n_rows += len(order)
        counts = np.bincount(users, minlength=len(self.counts))
        counts[: len(self.counts)] += self.counts
        self.counts = counts

    def parts(self) -> Iterator[pd.DataFrame]:
        """About `PART` rows at a time in the order of "row", their number from 0; users in order."""
        part_of = (np.cumsum(self.counts) - self.counts) // PART
        limits = np.append(np.unique(part_of, return_index=True)[1], len(part_of))
        edges = [np.searchsorted(self.blocks.read(k)["user"], limits).tolist() for k in range(self.n_blocks)]
        for number in range(len(limits) - 1):
            part = _joined([self.blocks.read(k, *own[number : number + 2]) for k, own in enumerate(edges)])
            yield part.iloc[np.argsort(part["row"].to_numpy())]


def _joined(pieces: list[np.ndarray]) -> pd.DataFrame:
    """The columns of records, one below the other."""
    if len({piece.dtype for piece in pieces}) > 1:  # pandas finds a common type, and refuses years that it cannot hold
        return pd.concat(map(pd.DataFrame, pieces), ignore_index=True)
    names = pieces[0].dtype.names or ()
    return pd.DataFrame({name: np.concatenate([piece[name] for piece in pieces]) for name in names}, copy=False)


class Codes:
    """Numbers for labels, in the order in which these first occur, over blocks of a column."""

    def __init__(self, is_text: bool = False) -> None:
        self.is_text = is_text  # labels written as whole numbers are whole numbers
        self.code_of: dict[Hashable, int] = {}
        self.blocks: list[np.ndarray] = []  # new labels of each block
        self.counts = np.zeros(0, dtype=np.int64)  # rows with each label

    def of(self, column: pd.Series) -> np.ndarray:
        """The codes of a block, int32; -1 for a missing value."""
        codes, labels = pd.factorize(column)
        known, code_of = len(self.code_of), self.code_of
        code = np.array([code_of.setdefault(label, len(code_of)) for label in labels.tolist()], dtype=np.int32)
        self.blocks.append(np.asarray(labels)[code >= known])
        self.counts = np.pad(self.counts, (0, len(code_of) - known))
        self.counts[code] += np.bincount(codes[codes >= 0], minlength=len(code))
        return np.append(code, np.int32(-1))[codes]

    @property
    def labels(self) -> np.ndarray:
        """The label of each code."""
        labels = np.concatenate(self.blocks)
        return np.asarray(pd.Index(whole_numbers(labels.tolist()))) if self.is_text else labels
