"""Reading event logs from CSV files, as process-mining tools export them.

The columns are found by name: the XES names that ProM and pm4py write, or the ones that Disco does. Other files need
`columns`. The delimiter is the one of comma, semicolon and tab that occurs most in the header.
"""

import gzip
from pathlib import Path

import pandas as pd

from tplrepro.datasets.reading import DataFormatError, line_blocks
from tplrepro.eventlog.log import ACTIVITY, CASE, TIMESTAMP, as_log, microseconds

__all__ = ["read_csv"]

#: Names under which a column is looked for, the best first; compared without regard to case, "_" and " ".
ALIASES = {
    CASE: ("case:concept:name", "case id", "case", "caseid", "trace"),
    ACTIVITY: ("concept:name", "activity", "event", "task"),
    TIMESTAMP: ("time:timestamp", "complete timestamp", "timestamp", "start timestamp", "time"),
}


def read_csv(
    path: str | Path,
    *,
    columns: dict[str, str] | None = None,
    separator: str | None = None,
    time_format: str = "ISO8601",
    strict: bool = False,
) -> pd.DataFrame:
    """Read a CSV file, plain or gzip-compressed, into the same frame as `read_xes`; other columns are left out.

    DataFormatError if a column is missing, the file is empty, or no row has a case, an activity and a readable time.

    Parameters
    ----------
    columns : dict, optional
        The file's name for case:concept:name, concept:name or time:timestamp, where it is none of the usual ones.
    separator : str, optional, between two fields; by default told from the header
    time_format : str, as for `pandas.to_datetime`; times without an offset are read as UTC
    strict : bool, default False
        Raise at a row without case, activity or time, or out of order, instead of counting it.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     _ = file.write("Case ID;Activity;Complete Timestamp\\n7;register;2022-08-03 10:00:00\\n"), file.flush()
    ...     log = read_csv(file.name)
    >>> log.iloc[0].map(str).tolist()
    ['7', 'register', '2022-08-03 10:00:00+00:00']
    """
    block, _ = next(line_blocks(path, 1 << 16), (b"", 1))
    header = block.partition(b"\n")[0].decode("utf-8", "replace")
    if not header.strip():
        raise DataFormatError("expected a table of events, found an empty file; export the log again", path, 1)
    separator = separator or max(",;\t", key=header.count)
    try:
        table = pd.read_csv(path, sep=separator, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    except (pd.errors.ParserError, EOFError, gzip.BadGzipFile, UnicodeDecodeError) as error:
        problem = f"expected a table with {separator!r} between the fields, found: {error}"
        raise DataFormatError(f"{problem}; mend the file, or pass separator=", path) from None
    table = table[[_find(name, list(table.columns), columns or {}, path) for name in ALIASES]]
    texts = table.iloc[:, 2]
    try:
        times = microseconds(texts, time_format)
    except ValueError as error:
        problem = f"time_format must be a format of pandas.to_datetime, found {time_format!r} ({error})"
        raise ValueError(f"{problem}; give one such as '%d.%m.%Y %H:%M'") from None
    return as_log(
        path,
        _coded(table.iloc[:, 0]),
        _coded(table.iloc[:, 1]),
        times,
        (texts != "").to_numpy(),
        unit="row",
        strict=strict,
        place=lambda row: (row + 2, ", ".join(table.iloc[row])),
        remedy="check the file, or pass columns= or time_format=",
    )


def _coded(names: pd.Series) -> pd.Categorical:
    """Names in the order in which they are first met; an empty one is missing."""
    return pd.Categorical.from_codes(*pd.factorize(names.where(names != "")))


def _find(name: str, present: list[str], columns: dict[str, str], path) -> str:
    plain = {column.casefold().replace("_", " ").strip(): column for column in reversed(present)}
    wanted = columns.get(name, name)
    for column in [wanted] if name in columns else map(plain.get, ALIASES[name]):
        if column is not None and column in present:
            return column
    found = f"found {', '.join(present[:12])}; name it by columns={{{name!r}: ...}}"
    raise DataFormatError(f"expected a column {wanted!r}, {found}", path, 1)
