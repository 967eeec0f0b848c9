"""Rows of observations as they are gathered: labels as codes, rows by user, in memory or in a
temporary file.

Labels of users and states are the same whatever format they come from: text without blanks around
it, whole numbers (1, 1.0, "1" and "1.0") as whole numbers, if all labels of the column are, and no
other number twice.
"""

import errno
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import suppress
from ctypes import CDLL
from dataclasses import dataclass
from functools import lru_cache
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute

#: Bytes of arrays that stay in memory.
IN_MEMORY = 64 << 20
#: About so many rows of whole users are given back at once.
PART = 1 << 19
#: At most so many labels of a column are looked up at once.
KNOWN = 1 << 19
#: Of a number that are sorted at once.
BITS = 16
#: Under this name the attributes of a frame list columns that are dictionaries of Arrow to hold
#: each text once. Other dictionaries say which values there may be.
STORED_ONCE = "stored once"
#: Texts that stand for no value, as R, spreadsheets, Python, JSON and SQL write them.
MISSING = ("", "NA", "N/A", "#N/A", "<NA>", "NaN", "nan", "NaT", "null", "NULL", "None", r"\N")
WHOLE = re.compile(r"(-?)(0|[1-9][0-9]*)(\.0+)?")
#: Whole numbers of at most so many digits are labels of type int.
MOST_DIGITS = 18


class Extent(NamedTuple):
    """Where an array stands in a file."""

    first_byte: int
    length: int  # entries
    dtype: np.dtype


class Spill:
    """Arrays, one after the other: in memory while they are small, in a temporary file from then
    on.

    The file has no name, stands in the folder that TMPDIR names, and is gone once the process ends,
    however it ends.
    """

    def __init__(self) -> None:
        self.file = tempfile.SpooledTemporaryFile(IN_MEMORY)
        self.size = 0  # bytes
        self.extents: list[Extent] = []  # of each array

    def __del__(self) -> None:
        self.file.close()  # which removes it, unless an array is mapped from it

    def append(self, array: np.ndarray) -> None:
        """Add an array; OSError if there is no room for it."""
        self.extents.append(Extent(self.size, len(array), array.dtype))
        self.size += array.nbytes
        try:
            self.file.seek(0, 2)
            self.file.write(array.view(np.uint8).data)
            self.file.flush()
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise
            raise OSError(
                f"there must be room for a temporary file, found none in {tempfile.gettempdir()} "
                "after "
                f"{self.size >> 20:,} MB; set TMPDIR to a folder with more"
            ) from None

    def read(self, k: int, start: int = 0, stop: int | None = None) -> np.ndarray:
        """The entries from `start` to `stop` of array number k of those that were appended."""
        extent = self.extents[k]
        if stop is None:
            stop = extent.length
        width = extent.dtype.itemsize
        self.file.seek(extent.first_byte + start * width)
        return np.frombuffer(self.file.read((stop - start) * width), extent.dtype)

    def joined(self) -> np.ndarray:
        """All arrays, which have one type, as one array; it is mapped from the temporary file if
        there is one."""
        dtype = self.extents[0].dtype
        if self.size > IN_MEMORY:
            return np.memmap(self.file, dtype, "r")
        self.file.seek(0)
        return np.frombuffer(self.file.read(), dtype)


def stable_order(*keys: np.ndarray) -> np.ndarray:
    """What sorts by the last of the keys, and where that is equal by those before it, as
    `np.lexsort` does.

    Whole numbers are sorted by 16 bits at a time, which takes NumPy a third of the time.

    >>> stable_order(np.array([3, 1, 1, 2]), np.array([0, 1, 0, 1])).tolist()
    [2, 0, 1, 3]
    """
    if not len(keys[-1]) or any(key.dtype.kind not in "iu" for key in keys):
        return np.lexsort(keys)
    order = None
    for key in keys:
        for digits in _digits_of(key):
            if order is None:
                order = np.argsort(digits, kind="stable")
            else:
                order = order.take(np.argsort(digits.take(order), kind="stable"))
    if order is None:
        return np.arange(len(keys[-1]))
    return order


def _digits_of(key: np.ndarray) -> Iterator[np.ndarray]:
    """16 bits after the other of whole numbers, beginning with the least, without those that all
    numbers share."""
    least = key.min()
    distance = key.astype(np.uint64) - least.astype(np.uint64)  # modulo 2**64, which takes any
    unit = np.gcd.reduce(distance)
    if unit > 1:
        distance //= unit
    for shift in range(0, int(distance.max()).bit_length(), BITS):
        yield (distance >> np.uint64(shift)).astype(np.uint16)


class RowsByUser:
    """Rows that are added in blocks of columns, and given back in parts of whole users."""

    def __init__(self) -> None:
        self.n_rows = 0
        self.blocks = Spill()  # records, sorted by user
        self.counts = np.zeros(0, dtype=np.int64)  # rows of each user

    def add(self, columns: dict[str, np.ndarray]) -> None:
        """Add the columns of a block; "user" holds codes from 0, or -1 for a row that only
        counts."""
        users = columns["user"]
        order = stable_order(users)
        order = order[np.searchsorted(users, 0, sorter=order) :]
        columns = columns | {"row": np.arange(self.n_rows, self.n_rows + len(users))}
        records = np.empty(len(order), [(name, column.dtype) for name, column in columns.items()])
        for name, column in columns.items():
            records[name] = column.take(order)
        self.n_rows += len(users)
        if not order.size:
            return
        self.blocks.append(records)
        counts = np.bincount(users[order], minlength=len(self.counts))
        counts[: len(self.counts)] += self.counts
        self.counts = counts

    def parts(self) -> Iterator[pd.DataFrame]:
        """About `PART` rows at a time, sorted by user, those of a user in order; "row" is their
        number from 0."""
        part_of = (np.cumsum(self.counts) - self.counts) // PART
        limits = np.append(np.unique(part_of, return_index=True)[1], len(part_of))
        edges = [
            np.searchsorted(self.blocks.read(k)["user"], limits).tolist()
            for k in range(len(self.blocks.extents))
        ]
        for number in range(len(limits) - 1):
            pieces = [self.blocks.read(k, *own[number : number + 2]) for k, own in enumerate(edges)]
            yield _sorted_by_user(pieces)


def _sorted_by_user(pieces: Sequence[np.ndarray]) -> pd.DataFrame:
    """Records as one frame, sorted by user; those of a user keep their order."""
    order = stable_order(np.concatenate([piece["user"] for piece in pieces]))
    if len({piece.dtype for piece in pieces}) > 1:
        # pandas finds a common type, and refuses years beyond it
        return pd.concat(map(pd.DataFrame, pieces), ignore_index=True).take(order)
    joined = np.concatenate(pieces).take(order)
    return pd.DataFrame({name: joined[name] for name in joined.dtype.names or ()}, copy=False)


def release_memory() -> None:
    """Give memory that is free back to the system; pyarrow and the C library would keep it, beside
    what comes next."""
    pa.default_memory_pool().release_unused()
    with suppress(AttributeError, OSError, TypeError):  # only glibc has it
        CDLL(None).malloc_trim(0)


def plain_label(label: Any, missing: frozenset[str] = frozenset(MISSING)) -> Hashable:
    """One label in its plain form: an int if it is a whole number of at most 18 digits, else a text
    without blanks around it, or a float with a fraction.

    Tuples stay, and other objects become `str`. None if the label is missing; TypeError for a list,
    dict, set or array.

    >>> [plain_label(label) for label in (" a ", "1.0", 2.0, True, "007", "NA", float("nan"), 1.5)]
    ['a', 1, 2, 'True', '007', None, None, 1.5]
    >>> [plain_label(label) for label in (1e20, 10**20, "-0")]
    ['100000000000000000000', '100000000000000000000', 0]
    """
    if type(label) is int:  # asked first, as most labels are texts or whole numbers
        if abs(label) < 10**MOST_DIGITS:
            return label
        return str(label)
    if isinstance(label, str | bytes):
        return _label_of_text(label, missing)
    if isinstance(label, bool | np.bool_):
        return str(bool(label))
    if isinstance(label, Integral):
        return plain_label(int(label), missing)
    if isinstance(label, Real) or type(label).__name__ == "Decimal":
        return _label_of_number(label)
    return _label_of_object(label)


def _label_of_object(label: Any) -> Hashable:
    """A label that is neither a text nor a number."""
    if label is None or label is pd.NA or label is pd.NaT:
        return None
    if isinstance(label, list | dict | set | np.ndarray):
        raise TypeError("a list or record")
    if isinstance(label, tuple):
        return label
    return str(label)


def _label_of_text(label: str | bytes, missing: frozenset[str]) -> Hashable:
    """The plain form of a text: None if it is one of `missing`."""
    if isinstance(label, bytes):
        label = label.decode()
    text = label.strip()
    if text in missing:
        return None
    whole = WHOLE.fullmatch(text)
    if whole is None:
        return text
    sign, digits, _ = whole.groups()
    if len(digits) > MOST_DIGITS:
        return sign + digits
    return int(sign + digits)


def _label_of_number(number: Any) -> Hashable:
    """The plain form of a float, or of another number that is no int: None for NaN."""
    if number != number:
        return None
    if number in (np.inf, -np.inf):
        return str(float(number))
    if number == number // 1:
        return _label_of_text(f"{number:f}", frozenset())
    return float(number)


def arrow_of(column: pd.Series) -> pa.Array:
    """The values of a column that pyarrow holds."""
    found = pa.array(column)
    if isinstance(found, pa.ChunkedArray):
        return found.combine_chunks()
    return found


@dataclass(frozen=True, eq=False)
class DistinctValues:
    """The values of an array, each once, in the order in which they occur."""

    values: pa.Array
    of_rows: np.ndarray  # (m,), the number of the value of each row, -1 for none


def distinct_values(array: pa.Array) -> DistinctValues:
    """The distinct values of an array, which may be a dictionary with more of them.

    >>> array = pa.DictionaryArray.from_arrays([2, None, 0, 2], ["a", "b", "c"])
    >>> found = distinct_values(array)
    >>> found.values.to_pylist(), found.of_rows.tolist()
    (['c', 'a'], [0, -1, 1, 0])
    """
    if pa.types.is_dictionary(array.type):
        encoded = array.indices.dictionary_encode()
        values = array.dictionary.take(encoded.dictionary)
    else:
        encoded = array.dictionary_encode()
        values = encoded.dictionary
    return DistinctValues(values, np.asarray(encoded.indices.fill_null(-1)))


@dataclass(frozen=True, eq=False)
class Labels:
    """The labels of a block of a column."""

    of_rows: np.ndarray  # the number of the label of each row, -1 for none
    labels: Any  # in the order in which they occur
    codes: np.ndarray  # of each label, int32, -1 for one that stands for no value
    declared: Sequence = ()  # all that a column of categories may hold


class Codes:
    """Numbers for labels, in the order in which these first occur, over blocks of a column.

    `name` of the column is for messages; texts in `missing` stand for no value.
    """

    def __init__(self, name: str, missing: frozenset[str]) -> None:
        self.name = name
        self.missing = missing
        self.code_of: dict[Hashable, int] = {}
        # looks at each label once, whatever blocks have it
        self.codes = lru_cache(None, typed=True)(self._code)
        self.known = pa.array([], pa.string())  # the first `KNOWN` labels
        self.code_of_known = np.zeros(0, np.int32)
        self.is_settled = False  # whether the last block had no others
        self.counts = np.zeros(0, dtype=np.int64)  # rows with each label
        self.is_declared = False
        self.absent = Counter[str]()  # rows whose text stands for no value

    def of(
        self, column: pd.Series, place: Callable[[int], str], factorized: Callable[[], Labels]
    ) -> np.ndarray:
        """The codes of a block, int32, -1 for a missing value.

        `place` tells where a row of the block stands; `factorized()` gives what the method of that
        name found in the column.
        """
        try:
            found = factorized()
            self.is_declared |= len(found.declared) > len(found.labels)
            for label in found.declared:
                self._code(label)  # one that does not occur is a label as well
        except (TypeError, UnicodeDecodeError) as error:
            raise self._no_label(column, place, error) from None
        self.counts = np.pad(self.counts, (0, len(self.code_of) - len(self.counts)))
        of_rows = found.of_rows
        codes = found.codes
        rows = np.bincount(of_rows[of_rows >= 0], minlength=len(codes))
        np.add.at(self.counts, codes[codes >= 0], rows[codes >= 0])
        for k in np.flatnonzero(codes < 0):
            label = found.labels[k]
            if rows[k] and isinstance(label, str | bytes | pa.StringScalar):
                self.absent[str(label).strip()] += int(rows[k])
        return np.append(codes, np.int32(-1))[of_rows]

    def factorized(self, column: pd.Series) -> Labels:
        """The labels of a block, and which of them each row has."""
        if isinstance(column.dtype, pd.ArrowDtype):
            array = arrow_of(column)
            is_stored_once = column.name in column.attrs.get(STORED_ONCE, ())
            is_usual = array.type in (pa.string(), pa.int64()) or is_stored_once
            if is_usual and len(self.known) <= KNOWN:
                return self._looked_up(array)
            is_category = pa.types.is_dictionary(array.type) and not is_stored_once
            if not pa.types.is_nested(array.type) and not is_category:
                return self._encoded(array)
            column = array.to_pandas()
        if column.dtype == object and pd.api.types.infer_dtype(column).startswith("mixed"):
            column = column.map(lambda label: plain_label(label, self.missing)).astype(object)
        of_rows, labels = pd.factorize(column)
        codes = np.array([*map(self.codes, labels.tolist())], np.int32)
        declared = []
        if isinstance(column.dtype, pd.CategoricalDtype):
            declared = column.cat.categories.tolist()
        return Labels(of_rows, labels, codes, declared)

    def _encoded(self, array: pa.Array) -> Labels:
        """The labels of a block of numbers or times, whose distinct values pyarrow finds."""
        found = distinct_values(array)
        labels = found.values.to_pandas(integer_object_nulls=True).tolist()
        codes = np.array([*map(self.codes, labels)], np.int32)
        return Labels(found.of_rows, labels, codes)

    def _looked_up(self, array: pa.Array) -> Labels:
        """The labels of a block; those that are known are looked up without Python."""
        is_stored_once = pa.types.is_dictionary(array.type)
        kind = array.type
        if is_stored_once:
            kind = kind.value_type
        if self.known.type != kind:
            self.known = pa.array([], kind)
            self.code_of_known = self.code_of_known[:0]
            self.is_settled = False
        if self.is_settled and not is_stored_once:
            found = pa.compute.index_in(array, value_set=self.known)
            if found.null_count == array.null_count:
                of_rows = np.asarray(found.fill_null(-1))
                return Labels(of_rows, self.known, self.code_of_known)
        distinct = distinct_values(array)
        labels = distinct.values
        place = np.asarray(pa.compute.index_in(labels, value_set=self.known).fill_null(-1))
        new = labels.filter(pa.array(place < 0))
        code = np.append(self.code_of_known, np.int32(-1))[place]
        code[place < 0] = [*map(self._code, new.to_pandas().tolist())]
        self.known = pa.concat_arrays([self.known, new])
        self.is_settled = len(new) == 0
        self.code_of_known = np.append(self.code_of_known, code[place < 0])
        return Labels(distinct.of_rows, labels, code)

    def _code(self, label: Hashable) -> int:
        """The code of a label, a new one if it was not met before; -1 for one that stands for no
        value."""
        name = plain_label(label, self.missing)
        if name is None:
            return -1
        if isinstance(name, str) and "\0" in name:
            raise TypeError("a character NUL")
        return self.code_of.setdefault(name, len(self.code_of))

    def _no_label(
        self, column: pd.Series, place: Callable[[int], str], error: Exception
    ) -> ValueError:
        """The error for the first value of a block that is no label, by the `error` that it raised;
        `place` tells where a row stands."""
        for row, label in enumerate(column.tolist()):
            try:
                self._code(label)
            except (TypeError, UnicodeDecodeError):
                return ValueError(
                    f"{self.name} must be one text or number a row, found {str(label)[:40]!r} in "
                    f"{place(row)} ({error}); write a row for each, such as by "
                    "DataFrame.explode, or correct it"
                )
        return ValueError(
            f"{self.name} must be one text or number a row, found {error} near {place(0)}; "
            "correct it"
        )

    @property
    def labels(self) -> np.ndarray:
        """The label of each code; numbers as text unless all labels are numbers."""
        return _of_one_type([*self.code_of])

    @property
    def met(self) -> np.ndarray:
        """The codes of labels that a row has, or all if the column declares its labels."""
        if self.is_declared:
            return np.arange(len(self.code_of))
        return np.flatnonzero(self.counts)

    @property
    def labels_met(self) -> np.ndarray:
        """The labels of these codes, as those of `labels`."""
        labels = [*self.code_of]
        return _of_one_type([labels[code] for code in self.met])


def _of_one_type(labels: list) -> np.ndarray:
    """Labels as an array; numbers as text unless all are numbers."""
    kinds = {*map(type, labels)}
    if not kinds <= {int} and not kinds <= {int, float}:
        labels = [str(label) if isinstance(label, int | float) else label for label in labels]
    return np.asarray(pd.Index(labels, tupleize_cols=False))
