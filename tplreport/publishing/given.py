"""Counts as users give them: numbers, mappings, Series, arrays or tables, of one statistic or of
several at their own times; and noisy values in the same form."""

from __future__ import annotations
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from tplreport.publishing.counts import checked_counts
from tplreport.publishing.values import Given


def _is_number(counts: Any) -> bool:
    """Whether counts are one number, without a label."""
    return np.ndim(counts) == 0 and not isinstance(counts, Mapping)


def in_form_of(counts: Any, noisy: pd.Series) -> Any:
    """Noisy counts of a time in the form of the true ones: a number, mapping, Series or array.

    Parameters
    ----------
    counts : as they were given
    noisy : Series

    Returns
    -------
    number, dict, Series or array

    Raises
    ------
    ValueError
        For several noisy counts in place of a number.
    """
    if isinstance(counts, Mapping):
        return noisy.to_dict()
    if isinstance(counts, pd.Series):
        return noisy.rename(counts.name)
    if _is_number(counts):
        return noisy.item()
    return noisy.to_numpy()


def as_series(counts: Any) -> pd.Series:
    """The counts of one statistic at one time with the labels of its columns."""
    index = None
    if _is_number(counts):
        index = ["count"]
    return pd.Series(counts, index)


def given_at_one_time(row: pd.Series) -> Given:
    """The counts of one statistic at one time, as of `as_series`."""
    return Given(row.index.tolist(), checked_counts([row.to_numpy()]), np.ones(1, dtype=bool))


def as_table(counts: Any) -> pd.DataFrame:
    """The counts of one statistic as a table, with a row for each time."""
    if isinstance(counts, pd.Series):
        return counts.to_frame("count")
    for name, column in counts.items():
        if column.dtype.kind == "M" or pd.api.types.is_string_dtype(column):
            raise ValueError(
                f"counts must be numbers, found others in the column {name!r}; if these are the "
                f"times, give counts.set_index({name!r})"
            )
    return counts


def times_of(tables: Mapping[int, pd.DataFrame]) -> pd.Index:
    """The times of all tables, in their order; ValueError for a table in which one comes twice, or
    comes before an earlier one of these."""
    indexes = [table.index for table in tables.values()]
    if len(indexes) == 1:
        return indexes[0]
    for index in indexes:
        if not index.is_unique:
            raise ValueError(
                "times of a table must differ, found "
                f"{index[index.duplicated()][0]} twice; leave out one of its rows"
            )
    times = pd.Index([])
    if indexes:
        times = indexes[0]
    for index in indexes[1:]:
        times = times.union(index)
    for index in indexes:
        places = times.get_indexer(index)
        back = np.flatnonzero(np.diff(places) < 0)
        if back.size:
            raise ValueError(
                f"times of each table must be in order, found {index[back[0] + 1]} after "
                f"{index[back[0]]}; sort them"
            )
    return times


def given_in_tables(
    tables: Mapping[int, pd.DataFrame], times: pd.Index, numbers: range
) -> dict[int, Given]:
    """The counts of each statistic at those of all times that have these numbers, by its place.

    Parameters
    ----------
    tables : mapping of place to DataFrame, as of `as_table`
    times : Index, as of `times_of`
    numbers : range

    Returns
    -------
    dict of place to Given

    Raises
    ------
    ValueError
        For values that are no counts.
    """
    first = numbers.start
    end = numbers.stop
    if len(tables) == 1:
        return {place: _given_of_table(table.iloc[first:end]) for place, table in tables.items()}
    return {place: _given_at(times[first:end], table) for place, table in tables.items()}


def _given_of_table(table: pd.DataFrame) -> Given:
    """A row for each time."""
    is_given = np.ones(len(table), dtype=bool)
    return Given(table.columns.tolist(), checked_counts(table.to_numpy()), is_given)


def _given_at(times: pd.Index, table: pd.DataFrame) -> Given:
    """The rows of a table that has some of these times, and other ones."""
    rows = table.index.get_indexer(times)
    is_given = rows >= 0
    counts = np.zeros((len(times), table.shape[1]), np.int64)
    if is_given.any():
        found = checked_counts(table.iloc[rows[is_given]].to_numpy())
        counts = counts.astype(found.dtype)
        counts[is_given] = found
    return Given(table.columns.tolist(), counts, is_given)


def as_given(noisy: np.ndarray, table: pd.DataFrame, given: Any) -> Any:
    """Noisy values with the labels of the table that was given.

    Parameters
    ----------
    noisy : array (T, n)
    table : DataFrame (T, n), as of `as_table`
    given : DataFrame or Series of which it was made

    Returns
    -------
    DataFrame, or Series if such a one was given

    Raises
    ------
    ValueError
        For another shape.
    """
    frame = pd.DataFrame(noisy, table.index, table.columns)
    if isinstance(given, pd.Series):
        return frame["count"].rename(given.name)
    return frame
