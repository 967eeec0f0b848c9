"""Reading event logs from CSV files, as process-mining tools export them.

The columns are found by name: the XES names that ProM and pm4py write, or the ones that Disco does. Other
files need `columns`. The delimiter is the one of comma, semicolon and tab that occurs most in the header.
Rows follow RFC 4180: each has as many fields as the header, and a field with a quote in it is quoted; others
are errors. A last line without end is a warning, as in all readers: the file may have been cut there.
"""

import csv
import re
from collections.abc import Iterator
from io import StringIO
from itertools import islice, tee
from pathlib import Path

import pandas as pd

from tplrepro.datasets.reading import DataFormatError, describe_content, line_blocks, separator_of, with_end
from tplrepro.eventlog.events import as_log
from tplrepro.eventlog.log import ACTIVITY, CASE, TIMESTAMP
from tplrepro.validation import check_choice

#: Names under which a column is looked for, the best first; compared without regard to case, "_", "-" and " ".
ALIASES = {
    CASE: ("case:concept:name", "caseid", "case", "casename", "traceid", "trace"),
    ACTIVITY: ("concept:name", "activity", "activityid", "activityname", "event", "eventname", "taskid", "task"),
    TIMESTAMP: (
        "time:timestamp",
        "completetimestamp",
        "endtimestamp",
        "timestamp",
        "eventtime",
        "starttimestamp",
        "time",
    ),
}


def read_csv(
    path: str | Path,
    *,
    columns: dict[str, str] | None = None,
    separator: str | None = None,
    time_format: str = "ISO8601",
    strict: bool = False,
) -> pd.DataFrame:
    """Read a CSV file, plain or gzip-compressed, into the same frame as `read_xes`; other columns are ignored.

    Raises DataFormatError if a column is missing, a row does not fit the header, the file is empty or not
    UTF-8, or no row has a case, an activity and a readable time.

    Parameters
    ----------
    columns : dict, optional
        Column names in the file for case:concept:name, concept:name or time:timestamp, if they are unusual.
    separator : one character, optional; by default guessed from the header
    time_format : "ISO8601" (see `events`) or as for `strptime`; times without an offset are read as UTC
    strict : bool, default False
        Raise at a row without case, activity or time, or out of order, instead of counting it.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     _ = file.write("Case ID;Activity;Complete Timestamp\\n7;register;2022-08-03 10:00:00\\n"), file.flush()
    ...     log = read_csv(file.name)
    >>> log.iloc[0].map(str).tolist()
    ['7', 'register', '2022-08-03 10:00:00+00:00']
    """
    if not re.fullmatch("ISO8601|([^%]*%[aAbBdfHIjmMpSyYzZ%])+[^%]*", str(time_format)):
        raise ValueError(
            f"time_format must be 'ISO8601' or made of directives such as %Y, found {time_format!r}; give one such as "
            "'%d.%m.%Y %H:%M'"
        )
    for name in columns or {}:
        check_choice(name, "columns", ALIASES)
    return as_log(
        path,
        "row",
        _rows(path, columns or {}, separator, strict),
        strict=strict,
        remedy="check the file, or pass columns= or time_format=",
        time_format=time_format,
    )


def _rows(
    path: str | Path, columns: dict[str, str], separator: str | None, strict: bool
) -> Iterator[tuple[str, str, str, int]]:
    """Case, activity, time and line of each row, by RFC 4180: a field that contains a quote must be quoted."""
    lines, again = tee(_lines(path, strict))
    header = next(again, "")
    if not header.strip():
        raise DataFormatError("expected a table of events, found an empty file; export the log again", path, 1)
    separator = separator or separator_of(header)
    if len(separator) != 1 or separator in '"\r\n':
        raise ValueError(f"separator must be one character, found {separator!r}; replace it in {path} by a comma")
    reader, line = csv.reader(lines, delimiter=separator, strict=True), 1
    try:
        names = next(reader)
        places = _places(names, columns, path)
        for row in reader:
            text, line = "".join(islice(again, reader.line_num - line)), reader.line_num
            quoted = ('{0}"{1}"{0}'.format(separator, field.replace('"', '""')) for field in row if '"' in field)
            if '"' in text and any(field not in f"{separator}{text.strip()}{separator}" for field in quoted):
                raise csv.Error("a quote in a field without quotes around it")
            if len(row) not in (0, len(names)):
                raise csv.Error(f"{len(row)} fields for {len(names)} columns")
            if row:
                yield row[places[0]], row[places[1]], row[places[2]], line
    except csv.Error as error:
        raise DataFormatError(
            f"expected a table with {separator!r} between the fields, found: {error}; mend it, or pass separator=",
            path,
            reader.line_num,
        ) from None


def _lines(path: str | Path, strict: bool) -> Iterator[str]:
    """The lines of a file including their line ends."""
    for block, first_line in line_blocks(path, 1 << 20):
        try:
            yield from StringIO(with_end(block, first_line, path, strict).decode("utf-8-sig"), newline="")
        except UnicodeDecodeError as error:
            raise DataFormatError(
                f"expected text in UTF-8, found {describe_content(block[error.start :])}; unpack or "
                "export the file again",
                path,
                first_line + block.count(b"\n", 0, error.start),
            ) from None


def _places(header: list[str], columns: dict[str, str], path: str | Path) -> list[int]:
    """Positions of the columns of case, activity and time in the header."""
    plain = [re.sub("[ _-]", "", column.casefold()) for column in header]
    places, missing = [], []
    for name, usual in ALIASES.items():
        wanted, present = ((columns[name],), header) if name in columns else (usual, plain)
        column = next((column for column in wanted if column in present), "")
        if present.count(column) == 1:
            places.append(present.index(column))
        else:
            missing.append(name)
    if missing:
        names = " and ".join(f"one column {columns.get(name, name)!r}" for name in missing)
        remedy = ", ".join(f"{name!r}: ..." for name in missing)
        raise DataFormatError(
            f"expected {names}, found {', '.join(header[:12])}; name {'it' if len(missing) == 1 else 'them'} by "
            f"columns={{{remedy}}}",
            path,
            1,
        )
    return places
