"""Reading event logs from CSV files, as process-mining tools export them.

The columns are found by name: the XES names that ProM and pm4py write, or the ones that Disco does. Other files need
`columns`. The delimiter is the one of comma, semicolon and tab that occurs most in the header.
"""

from __future__ import annotations

import gzip

import numpy as np
import pandas as pd

from tplrepro.datasets.reading import DataFormatError, Defects, finish
from tplrepro.eventlog.log import ACTIVITY, CASE, TIMESTAMP

__all__ = ["read_csv"]

#: Names under which a column is looked for, the best first; compared without regard to case, "_" and " ".
ALIASES = {
    CASE: ("case:concept:name", "case id", "case", "caseid", "trace"),
    ACTIVITY: ("concept:name", "activity", "event", "task"),
    TIMESTAMP: ("time:timestamp", "complete timestamp", "timestamp", "start timestamp", "time"),
}


def read_csv(
    path, *, columns: dict[str, str] | None = None, separator: str | None = None, time_format: str = "ISO8601",
    strict: bool = False,
) -> pd.DataFrame:  # fmt: skip
    """Read a CSV file, plain or gzip-compressed, into the same frame as `read_xes`.

    Parameters
    ----------
    path : path-like
    columns : dict, optional
        The file's name for case:concept:name, concept:name or time:timestamp, where it is none of the usual ones.
    separator : str, optional
        Between two fields; by default told from the header.
    time_format : str
        As for `pandas.to_datetime`. Times without an offset are read as UTC.
    strict : bool, default False
        Raise at the first row without case, activity or time, or out of order, instead of counting it.

    Returns
    -------
    DataFrame
        As `read_xes` gives it; other columns of the file are left out. ``attrs``: source, synthetic, skipped,
        skipped_examples, reordered.

    Raises
    ------
    DataFormatError
        A column is missing, the file is empty, or no row has a case, an activity and a readable time.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     _ = file.write("Case ID;Activity;Complete Timestamp\\n7;register;2022-08-03 10:00:00\\n"), file.flush()
    ...     log = read_csv(file.name)
    >>> log.iloc[0].map(str).tolist()
    ['7', 'register', '2022-08-03 10:00:00+00:00']
    """
    header = _header(path)
    separator = separator or max(",;\t", key=header.count)
    try:
        table = pd.read_csv(path, sep=separator, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    except (pd.errors.ParserError, EOFError, gzip.BadGzipFile, UnicodeDecodeError) as error:
        raise DataFormatError(
            f"expected a table with {separator!r} between the fields, found: {error}; "
            "mend the file, or pass separator=",
            path,
        ) from None
    found = {name: _find(name, list(table.columns), columns or {}, path) for name in (CASE, ACTIVITY, TIMESTAMP)}
    frame = pd.DataFrame({name: table[column] for name, column in found.items()})
    missing = frame[TIMESTAMP] == ""
    frame[TIMESTAMP] = _times(frame[TIMESTAMP], time_format)
    defects = Defects(strict, 0, "a table of events")
    good = pd.Series(True, index=frame.index)
    for reason, bad in (
        ("row without a case", frame[CASE] == ""),
        ("row without an activity", frame[ACTIVITY] == ""),
        ("row without a time", missing),
        ("row with an unreadable time", frame[TIMESTAMP].isna()),
    ):
        bad = (bad & good).to_numpy()
        defects.known(reason, int(bad.sum()), path, lambda bad=bad: _place(table, found, int(np.argmax(bad))))
        good &= ~bad
    if not good.any():
        reasons = ", ".join(f"{count} times {reason}" for reason, count in defects.skipped.items())
        raise DataFormatError(
            f"no row has a case, an activity and a readable time ({reasons or 'no rows'}); "
            "check the file, or pass columns= or time_format=",
            path,
        )
    frame = frame[good]
    case_codes = pd.factorize(frame[CASE])[0]
    stamps = frame[TIMESTAMP].dt.tz_localize(None).to_numpy()
    in_file = np.argsort(case_codes, kind="stable")
    same_case = case_codes[in_file][1:] == case_codes[in_file][:-1]
    backwards = np.flatnonzero(same_case & (stamps[in_file][1:] < stamps[in_file][:-1]))
    rows = frame.index.to_numpy()
    defects.out_of_order(backwards.size, path, lambda: _place(table, found, int(rows[in_file[backwards[0] + 1]])))
    order = np.lexsort((np.arange(len(frame)), stamps, case_codes))
    return finish(frame.iloc[order].reset_index(drop=True), path, defects)


def _header(path) -> str:
    with open(path, "rb") as raw:
        compressed = raw.read(2) == b"\x1f\x8b"
    try:
        with (gzip.open if compressed else open)(path, "rb") as stream:
            header = stream.readline(1 << 16).decode("utf-8", "replace")
    except (EOFError, gzip.BadGzipFile) as error:
        raise DataFormatError(f"the compressed file is damaged ({error}); download it again", path) from None
    if not header.strip():
        raise DataFormatError("expected a table of events, found an empty file; export the log again", path, 1)
    return header


def _find(name: str, present: list[str], columns: dict[str, str], path) -> str:
    plain = {column.casefold().replace("_", " ").strip(): column for column in reversed(present)}
    if name in columns:
        if columns[name] in present:
            return columns[name]
        wanted = repr(columns[name])
    else:
        for alias in ALIASES[name]:
            if alias in plain:
                return plain[alias]
        wanted = name
    raise DataFormatError(
        f"expected a column {wanted}, found {', '.join(present[:12])}; say which it is with columns={{{name!r}: ...}}",
        path,
        1,
    )


def _times(texts: pd.Series, time_format: str) -> pd.Series:
    try:
        stamps = pd.to_datetime(texts, format=time_format, utc=True, errors="coerce")
    except ValueError as error:
        raise ValueError(
            f"time_format must be a format of pandas.to_datetime, found {time_format!r} ({error}); give one such as "
            "'%d.%m.%Y %H:%M'"
        ) from None
    return stamps.astype("datetime64[us, UTC]")


def _place(table: pd.DataFrame, found: dict[str, str], row: int) -> tuple[int, str]:
    return row + 2, ", ".join(table[column].iloc[row] for column in found.values())
