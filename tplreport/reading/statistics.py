"""The table of several statistics that a publisher releases: a file with a row for each."""

import csv
from pathlib import Path
from typing import Any

from tplreport.reading.matrices import number, read_text
from tplreport.reading.table import plain_name, whole_numbers
from tplreport.reading.text_files import DataFormatError

#: The column of names, and those of what is known of each.
NAME = "statistic"
NUMBERS = ("sensitivity", "share")
TIMES = ("every", "at")


def read_statistics(path: str | Path) -> dict[str, dict[str, Any]]:
    """Statistics by their names, with their sensitivity, share, and every and at if they have one.

    Parameters
    ----------
    path : file of CSV with the columns statistic, sensitivity, share, every and at

    Returns
    -------
    dict of dict

    Raises
    ------
    DataFormatError
        For other columns, a name that comes twice, or a cell that is no number.
    """
    lines = [line for line in read_text(path).splitlines() if line.strip()]
    separator = ","
    if lines:
        separator = max(",;\t", key=lines[0].count)
    rows = [[cell.strip() for cell in row] for row in csv.reader(lines, delimiter=separator)]
    if not rows or plain_name(rows[0][0]) != NAME:
        raise DataFormatError(
            f"a table of statistics must have the columns {NAME}, {', '.join(NUMBERS + TIMES)}, "
            f"found {', '.join(rows[0]) if rows else 'none'}; name them so",
            path,
        )
    statistics: dict[str, dict[str, Any]] = {}
    for row in rows[1:]:
        if row[0] in statistics:
            raise DataFormatError(
                f"each statistic must have one row, found {row[0]!r} twice; rename one", path
            )
        cells = dict(zip(map(plain_name, rows[0][1:]), row[1:], strict=False))
        filled = {name: text for name, text in cells.items() if text}
        statistics[row[0]] = {name: _value(name, text, path) for name, text in filled.items()}
    return statistics


def _value(name: str, text: str, path: str | Path) -> Any:
    if name in TIMES:
        (value,) = whole_numbers([text])
        return value
    found = number(text)
    if name in NUMBERS and found != found:
        raise DataFormatError(
            f"{name} must be numbers such as 2 or 0.5, found {text!r}; correct it", path
        )
    return found
