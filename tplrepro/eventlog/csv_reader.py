"""Reading event logs from CSV files, as process-mining tools export them.

The columns are found by name: the XES names that ProM and pm4py write, or the ones that Disco does. Other
files need `columns`. `datasets.table` describes the format of the rows and of times.
"""

import re
from pathlib import Path

import pandas as pd
import pyarrow.compute

from tplrepro.datasets.table import read_table
from tplrepro.eventlog.events import as_log
from tplrepro.eventlog.log import ACTIVITY, CASE, TIMESTAMP
from tplrepro.validation import check_choice


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
    time_format : "ISO8601" (see `datasets.table`) or as for `strptime`; times without an offset are read as UTC
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
    wanted: dict[str, str | None] = dict.fromkeys((CASE, ACTIVITY, TIMESTAMP))
    for name in columns or {}:
        check_choice(name, "columns", wanted)
    wanted |= columns or {}
    table, line = read_table(path, wanted, separator=separator, argument="columns=")
    events = pd.DataFrame({name: pyarrow.compute.fill_null(table[name], "").to_pandas() for name in wanted})
    remedy = "check the file, or pass columns= or time_format="
    return as_log(path, "row", events, line, strict=strict, remedy=remedy, time_format=time_format)
