"""Rows of files that may be larger than memory: gathered by user, in a temporary file if there are many.

Up to `IN_MEMORY` bytes stay in memory. A temporary file has no name, stands in the folder that TMPDIR names,
and is gone as soon as the process ends, however it ends.
"""

import errno
import tempfile
from collections.abc import Hashable, Iterator
from typing import IO

import numpy as np
import pandas as pd

from tplrepro.datasets.table import whole_numbers
from tplrepro.progress import progress_bar

#: Bytes of arrays that need no temporary file.
IN_MEMORY = 128 << 20
#: Rows that are sorted by user at once, and about so many rows of whole users that are given back at once.
RUN, PART = 1 << 21, 1 << 20


class Spill:
    """Arrays, one after the other: in memory while they are small, in a temporary file from then on."""

    def __init__(self) -> None:
        self.arrays: list[np.ndarray] = []
        self.places: list[tuple[int, int, np.dtype]] = []  # first byte, length and type of each array in the file
        self.size = 0  # bytes
        self.file: IO[bytes] | None = None

    def __del__(self) -> None:
        if self.file is not None:
            self.file.close()  # which removes it, unless an array is mapped from it

    def append(self, array: np.ndarray) -> None:
        """Add an array; OSError if there is no room for it."""
        self.size += array.nbytes
        self.arrays.append(array)
        if self.size <= IN_MEMORY and self.file is None:
            return
        try:
            self.file = self.file or tempfile.TemporaryFile()
            for one in self.arrays:
                self.places.append((self.file.seek(0, 2), len(one), one.dtype))
                self.file.write(np.ascontiguousarray(one).view(np.uint8).data)
            self.file.flush()
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise
            raise OSError(
                f"there must be room for a temporary file, found none in {tempfile.gettempdir()} after "
                f"{self.size >> 20:,} MB; set TMPDIR to a folder with more"
            ) from None
        self.arrays = []

    def read(self, k: int, start: int = 0, stop: int | None = None) -> np.ndarray:
        """The entries from `start` to `stop` of array k."""
        if self.file is None:
            return self.arrays[k][start:stop]
        first, length, kind = self.places[k]
        stop = length if stop is None else stop
        self.file.seek(first + start * kind.itemsize)
        return np.frombuffer(self.file.read((stop - start) * kind.itemsize), kind)

    def joined(self) -> np.ndarray:
        """All arrays, which have one type, as one array; it is mapped from the temporary file if there is one."""
        if self.file is None:
            return np.concatenate(self.arrays)
        return np.memmap(self.file, self.places[0][2], "r")


class RowsByUser:
    """Rows that are added in blocks of columns, and given back in parts of whole users."""

    def __init__(self) -> None:
        self.n_rows = 0
        self.blocks: list[dict[str, np.ndarray]] = []  # not in a run yet
        self.runs = Spill()  # records, sorted by user, each with its row within the run
        self.starts: list[int] = []  # first row of each run
        self.counts = np.zeros(0, dtype=np.int64)  # rows of each user

    def add(self, columns: dict[str, np.ndarray]) -> None:
        """Add the columns of a block; "user" holds codes from 0."""
        self.blocks.append(columns)
        self.n_rows += len(columns["user"])
        if sum(len(block["user"]) for block in self.blocks) >= RUN:
            self._close_run()

    def _close_run(self) -> None:
        users = np.concatenate([block["user"] for block in self.blocks])
        order = np.argsort(users, kind="stable")
        names = [name for name in self.blocks[0] if name != "user"]
        columns = {name: _of_one_type([block[name] for block in self.blocks]) for name in names}
        self.blocks = []
        types = [("row", np.uint32), ("user", np.int32), *((name, columns[name].dtype) for name in names)]
        records = np.empty(len(order), types)
        records["row"], records["user"] = order, users[order]
        for name in names:
            records[name] = columns.pop(name)[order]
        self.starts.append(self.n_rows - len(order))
        self.runs.append(records)
        counts = np.bincount(users, minlength=len(self.counts))
        counts[: len(self.counts)] += self.counts
        self.counts = counts

    def parts(self, progress: bool = False) -> Iterator[dict[str, np.ndarray]]:
        """The columns of about `PART` rows at a time, and "row", from 0, by which they are sorted; users in order.

        The rows are gone afterwards.
        """
        if self.blocks:
            self._close_run()
        part_of = (np.cumsum(self.counts) - self.counts) // PART
        limits = np.append(np.unique(part_of, return_index=True)[1], len(part_of))
        runs = range(len(self.starts))
        edges = [np.searchsorted(self.runs.read(k)["user"], limits).tolist() for k in runs]
        types = [self.runs.read(k, 0, 1).dtype for k in runs]
        with progress_bar(self.n_rows, progress, "sequences", "row") as bar:
            for number in range(len(limits) - 1):
                pieces = [self.runs.read(k, *edges[k][number : number + 2]) for k in runs]
                rows = np.concatenate(
                    [piece["row"] + np.int64(start) for piece, start in zip(pieces, self.starts, strict=True)]
                )
                order = np.argsort(rows)
                part = {"row": rows[order]}
                for name in list(types[0].fields or ())[1:]:
                    columns = [piece[name] for piece in pieces]
                    part[name] = _of_one_type(columns, [kind[name] for kind in types])[order]
                yield part
                bar.update(len(rows))
        self.runs = Spill()


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


def _of_one_type(columns: list[np.ndarray], types: list[np.dtype] | None = None) -> np.ndarray:
    """Columns of these types, by default their own, as one array of a type for all; OutOfBoundsDatetime."""
    common = np.result_type(*(types or [column.dtype for column in columns]))
    same = (column if column.dtype == common else pd.Series(column).astype(common).to_numpy() for column in columns)
    return np.concatenate([*same])
