"""The noisy values of a time as the bytes of its row, and counts as they are given.

A file of one statistic without a name keeps the values alone, in the order of its columns. One of
several begins with the budget of each of them, 0 where it is not released, and has the values of
the others after it: a reserved row knows what was spent on each, and has zeros in place of values.
"""

from __future__ import annotations
import struct
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import nan
from typing import Any
from unicodedata import normalize

import numpy as np
import pandas as pd

from tplreport.publishing.store import Columns, Kind, Row

#: Whole numbers and floats of 64 bits.
WIDTH = 8


@dataclass(frozen=True)
class Given:
    """Counts of one statistic, (T, n), and the labels of its columns.

    `is_given` (T,) tells at which of the times there are some; others have rows of zeros.
    """

    labels: list
    counts: np.ndarray
    is_given: np.ndarray


@dataclass(frozen=True)
class Arranged:
    """Counts of one statistic in the columns of the file; `order` tells where each column that was
    given is among them."""

    columns: Columns
    counts: np.ndarray
    order: list[int]
    is_given: np.ndarray


@dataclass(frozen=True)
class Layout:
    """Where a row keeps the budgets and the values of each statistic; `columns` holds None for
    those that were never published."""

    is_named: bool
    columns: Sequence[Columns | None]

    def pack(self, budgets: Sequence[float], values: Mapping[int, bytes]) -> bytes:
        """The bytes of a row: budgets of all statistics, and the values of those that have one."""
        if not self.is_named:
            return values[0]
        of_budgets = struct.pack(f"<{len(budgets)}d", *budgets)
        return of_budgets + b"".join(values[place] for place in sorted(values))

    def room(self, budgets: Sequence[float]) -> bytes:
        """The bytes of a row whose values are not drawn yet."""
        values = {
            place: bytes(WIDTH * len(self._columns_of(place).labels))
            for place, budget in enumerate(budgets)
            if budget
        }
        return self.pack(budgets, values)

    def budgets_of(self, row: Row) -> list[float]:
        """What a row spent on each statistic; NaN where it is not known."""
        count = len(self.columns)
        if row.kind in (Kind.SKIPPED, Kind.MODEL):
            return [0.0] * count
        if self.is_named and row.noisy is not None:
            return [*struct.unpack_from(f"<{count}d", row.noisy)]
        if self.is_named or row.budget is None:
            return [nan] * count
        return [row.budget]

    def budgets_of_each(self, rows: Sequence[Row]) -> list[list[float]]:
        """`budgets_of` rows with known budgets."""
        if not self.is_named:
            return [[row.budget or 0.0] for row in rows]
        return [self.budgets_of(row) for row in rows]

    def places_in(self, row: Row) -> tuple[int, ...]:
        """The statistics that a row releases."""
        if not self.is_named:
            return (0,)
        return tuple(place for place, budget in enumerate(self.budgets_of(row)) if budget > 0.0)

    def values_in(self, row: Row, place: int) -> bytes:
        """The values of one of several statistics that a row releases; empty for another one."""
        content = row.noisy or b""
        start = WIDTH * len(self.columns)
        for other in self.places_in(row):
            size = WIDTH * len(self._columns_of(other).labels)
            if other == place:
                return content[start : start + size]
            start += size
        return b""

    def table_of(self, rows: Sequence[Row], place: int) -> np.ndarray:
        """The values (T, n) of a statistic that rows release."""
        columns = self._columns_of(place)
        if self.is_named:
            content = b"".join(self.values_in(row, place) for row in rows)
        else:
            content = b"".join(row.noisy or b"" for row in rows)
        return np.frombuffer(content, columns.kind).reshape(len(rows), len(columns.labels))

    def _columns_of(self, place: int) -> Columns:
        """The columns of a statistic; none if it was never published."""
        return self.columns[place] or Columns([], "<i8")


def column_name(statistic: str, label: Hashable) -> str:
    """The name of a column in a table of several statistics."""
    return f"{statistic}: {label}"


def in_one_table(values: pd.DataFrame, statistic: str) -> pd.DataFrame:
    """The values of a statistic with the names of columns in a table of several: its own where it
    has one without a name. Whole numbers may be missing.

    Parameters
    ----------
    values : DataFrame
    statistic : str

    Returns
    -------
    DataFrame
    """
    names = [column_name(statistic, label) for label in values.columns]
    if values.columns.tolist() == ["count"]:
        names = [statistic]
    table = values.set_axis(names, axis=1)
    whole = [name for name in names if table[name].dtype.kind == "i"]
    return table.astype(dict.fromkeys(whole, "Int64"))


def by_statistic(table: pd.DataFrame, names: Sequence[str]) -> dict[str, Any]:
    """A table of several statistics, with columns as `in_one_table` names them, as one for each.

    Parameters
    ----------
    table : DataFrame, whose cells are missing where a statistic is not due
    names : of all statistics

    Returns
    -------
    dict of Series and DataFrame, with the rows at which each has values

    Raises
    ------
    ValueError
        For a column of no statistic, or a row with a part of one.
    """
    columns: dict[str, dict[str, str]] = {}
    for column in map(str, table.columns):
        name, separator, label = column.partition(": ")
        if name not in names:
            raise ValueError(
                f"columns must be those of the statistics {', '.join(names)}, found {column!r}; "
                f"name it such as {names[0]!r} or {column_name(names[0], 'home')!r}"
            )
        columns.setdefault(name, {})[column] = label if separator else "count"
    tables = {}
    for name, label_of in columns.items():
        part = table[[*label_of]].rename(columns=label_of).dropna(how="all")
        is_lacking = part.isna().any(axis=1)
        if is_lacking.any():
            raise ValueError(
                f"all or no counts of {name!r} must be there at a time, found a part at "
                f"{part.index[is_lacking][0]}; fill in the others"
            )
        kinds = {label: _plain_kind(part[label].dtype) for label in part}
        tables[name] = part.astype(kinds)
    return tables


def _plain_kind(kind: Any) -> str:
    if kind.kind in "iu":
        return "int64"
    return "float64"


def first_columns(labels: list, counts: np.ndarray) -> Columns:
    """The columns of a statistic that has none yet.

    Parameters
    ----------
    labels : list of labels
    counts : array (T, n)

    Returns
    -------
    Columns

    Raises
    ------
    ValueError
        For labels that a file could not keep apart.
    """
    # no NaN
    are_plain = all(isinstance(label, (str, int, float)) and label == label for label in labels)
    if not are_plain or len(set(labels)) < len(labels):
        raise ValueError(
            f"labels of counts must be distinct, text or numbers, found {labels[:3]}; rename them"
        )
    return Columns(labels, counts.dtype.str)


def arrange(columns: Columns, given: Given) -> Arranged:
    """Counts in the order and type of a file's columns.

    Parameters
    ----------
    columns : Columns of the file
    given : Given

    Returns
    -------
    Arranged

    Raises
    ------
    ValueError
        For other labels, or decimals where the file has whole numbers.
    """
    place_given = _places_by_label(given.labels)
    place_stored = _places_by_label(columns.labels)
    if place_given.keys() != place_stored.keys() or len(given.labels) != len(place_stored):
        raise _other_labels(columns.labels, given.labels)
    _check_type_as_before(given.counts, columns)
    in_order = given.counts[:, [place_given[label] for label in columns.labels]]
    return Arranged(
        columns,
        np.ascontiguousarray(in_order, columns.kind),
        [place_stored[label] for label in given.labels],
        given.is_given,
    )


def _places_by_label(labels: Sequence[Hashable]) -> dict[Any, int]:
    return {label: place for place, label in enumerate(labels)}


def _check_type_as_before(counts: np.ndarray, columns: Columns) -> None:
    """ValueError for decimals where the file has whole numbers."""
    if counts.dtype.str != columns.kind and np.dtype(columns.kind).kind == "i":
        raise ValueError("counts must be whole numbers as before, found decimals; round them")


def _other_labels(before: list, found: list) -> ValueError:
    remedy = "rename them"
    if set(map(_composed, before)) == set(map(_composed, found)):
        remedy = (
            "they look alike, but their accents are written in another way: give them through "
            "unicodedata.normalize, in the form of before"
        )
        before = [ascii(label) for label in before if label not in set(found)]
        found = [ascii(label) for label in found if label not in set(before)]
    return ValueError(
        f"counts must have the labels {before[:5]} as before, found {found[:5]}; {remedy}"
    )


def _composed(label: Any) -> Any:
    if isinstance(label, str):
        return normalize("NFC", label)
    return label
