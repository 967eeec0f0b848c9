"""Tables of text: their columns by usual names, the rows of CSV files, and times.

A CSV file is text in UTF-8 or UTF-16, plain or compressed, with the delimiter (comma, semicolon, tab or "|")
that occurs most in its first line. Rows follow RFC 4180: each has as many fields as the first, and a field
with a quote in it is quoted; any other row is an error that names its line. A last line without end is a
warning: the file may be cut.

A time is a complete ISO 8601 date, with or without a time of day: 2022-08-03, 2022/08/03 10:00,
2022-08-03T10:00:00.1Z, 2022-08-03 10:00:00 +02:00. Other texts that pandas accepts ("2022-8", "today") are
unreadable here, because truncated and damaged files contain such texts; so are years before 1000 and from
9999 on, which stand for "unknown" and "never". Nanoseconds are kept; with them, years are those from 1678 to
2261.
"""

import csv
import re
import warnings
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute
from pandas.tseries.api import guess_datetime_format

from tplrepro.datasets.reading import (
    DataFormatError,
    Defects,
    Rows,
    describe_content,
    file_blocks,
    line_blocks,
    parse_table,
    read_rows,
)

#: Usual names of the columns of a table, the best first, compared without regard to case, "_", "-" and " ".
USUAL_NAMES = {
    "user": ("user", "userid", "uid", "person", "session", "sequence", "case:concept:name", "caseid", "id"),
    "time": ("time", "timestamp", "time:timestamp", "datetime", "date", "day"),
    "state": ("state", "place", "cell", "location", "page", "label", "concept:name", "activity"),
    "latitude": ("latitude", "lat"),
    "longitude": ("longitude", "lon", "lng"),
    "case:concept:name": ("case:concept:name", "caseid", "case", "casename", "traceid", "trace"),
    "concept:name": ("concept:name", "activity", "activityid", "activityname", "event", "eventname", "taskid", "task"),
    "time:timestamp": (
        "time:timestamp",
        "completetimestamp",
        "endtimestamp",
        "timestamp",
        "eventtime",
        "starttimestamp",
        "time",
    ),
}
#: Types of the columns of a CSV file; columns of users and states repeat their texts.
TYPES = dict.fromkeys(USUAL_NAMES, pa.string()) | {
    **dict.fromkeys(("user", "state"), pa.dictionary(pa.int32(), pa.string())),
    **dict.fromkeys(("latitude", "longitude"), pa.float64()),
}
MARK = b"\xef\xbb\xbf"

ISO_TIME = (
    r" *([0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{4}/[0-9]{2}/[0-9]{2})"
    r"([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?( ?(Z|[-+][0-9]{2}(:?[0-9]{2})?))?)?"
)
CLOCK = r"\d?\d:\d\d(:\d\d)?( [AP]M)?"  # a time of day alone
OFFSET = r"(\d:\d\d\S*?)\s*(?:Z|[+-]\d\d(?::?\d\d)?)$"  # after a time of day
LOCAL = {"time": "clock of time", "until": "clock of until"}  # instants -> the local clock there, where it differs
UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}  # in a second
LATEST = 1e11  # seconds since 1970: the year 5138
Place = Callable[[int], str]  # a row -> where it stands, for messages
WITH_DIGIT = "(?s).*[0-9].*"  # unlike "now" and "today", which pandas accepts in any format
FIRST_TIME, LAST_TIME = np.datetime64("1000-01-01", "us"), np.datetime64("9998-12-31", "us")


def plain_name(name: Hashable) -> str:
    """The name of a column as in `USUAL_NAMES`."""
    return re.sub("[ _-]", "", str(name).casefold())


def find_columns(
    wanted: Mapping[str, Hashable],
    names: Sequence[Hashable],
    source: str | Path,
    kind: str = "",
    optional: Sequence[str] = (),
    argument: str = "",
) -> dict[str, int]:
    """The position of the column for each key of `wanted`, by its name there or by a usual name if that is None.

    For the error, `source` and `kind` say where the names stand and in what kind of file, and `argument`
    where the caller names columns.

    >>> find_columns({"user": None, "state": "town"}, ["User ID", "town"], "visits.csv")
    {'user': 0, 'state': 1}
    """
    plain = [plain_name(name) for name in names]
    places, missing = {}, []
    for thing, given in wanted.items():
        possible: Sequence[Hashable] = USUAL_NAMES[thing] if given is None else [given]
        present: list[Hashable] = list(plain if given is None else names)
        column = next((column for column in possible if column in present), None)
        if present.count(column) == 1:
            places[thing] = present.index(column)
        elif column is not None or given is not None or thing not in optional:
            missing.append(thing)
    if missing:
        named = ", ".join(thing if wanted[thing] is None else f"{thing} {wanted[thing]!r}" for thing in missing)
        shown = ", ".join(map(repr, names[:12])) + ", ..." * (len(names) > 12)
        if "state" in missing and wanted["state"] is None:
            argument = (
                argument or f"{', '.join(f'{k}=' for k in missing)}, or all states of a row as state='first..last'"
            )
        remedy = f"name {'them' if len(missing) > 1 else 'it'} by {argument or ', '.join(f'{k}=' for k in missing)}"
        raise DataFormatError(f"there must be one column of {named}, found {shown}{kind}; {remedy}", source)
    return places


def read_header(path: str | Path, separator: str | None = None) -> tuple[str, list[str], str]:
    """The separator of a table, the fields of its first line, and what the file seems to be."""
    head = next(line_blocks(path, 1 << 16), (b"", 1))[0].removeprefix(MARK)
    first = head.partition(b"\n")[0].rstrip(b"\r")
    try:
        text = first.decode()
    except UnicodeDecodeError:
        text = "\0"
    if not text.strip() or "\0" in text:
        found = describe_content(first.strip() and head)
        raise DataFormatError(f"there must be a table in UTF-8, found {found}; unpack or export it again", path, 1)
    if text.startswith("#"):
        raise DataFormatError(f"a header must not begin with #, found {text[:40]!r}; remove # or the comment", path, 1)
    if "\r" in text:
        raise DataFormatError("lines must end in LF or CRLF, found a CR alone; convert the line ends", path, 1)
    separator = separator or max(",;\t|", key=text.count)
    if len(separator.encode()) != 1 or separator in '"\r\n':
        raise ValueError(f"separator must be one character, found {separator!r}; replace it in {path} by a comma")
    names, *second = (
        [field.strip() for field in next(csv.reader([line], delimiter=separator))]
        for line in head.decode(errors="replace").splitlines()[:2]
    )
    has_row_names = re.match(rb'[^\n]*\n"1"', head) is not None  # in quotes, as R writes them
    if has_row_names and len(second[0]) == len(names) + 1:
        names = ["", *names]  # R leaves out the name of the column of row names
    return separator, names, describe_content(head)


def table_blocks(
    path: str | Path,
    wanted: Mapping[str, Hashable],
    types: Mapping[str, pa.DataType] | None = None,
    defects: Defects | None = None,
    *,
    separator: str | None = None,
    quotes: bool = True,
    optional: Sequence[str] = (),
    argument: str = "",
) -> Iterator[Rows]:
    """The columns of a CSV file for the keys of `wanted`, block by block; empty fields are null.

    If a column is given by number, the file has no header. Other arguments as in `find_columns` and
    `read_rows`.
    """
    types = TYPES if types is None else types
    defects = defects or Defects("as many fields as in line 1, any with a quote in quotes, and numbers as degrees")
    separator, names, kind = read_header(path, separator)
    # On a command line, numbers are positions of columns, unless the header has all of them.
    digits = {given for given in wanted.values() if isinstance(given, str) and given.isdecimal()}
    if not digits.issubset(names):
        wanted = {thing: int(str(given)) if given in digits else given for thing, given in wanted.items()}
    numbered = any(isinstance(given, int) for given in wanted.values())
    places = find_columns(wanted, range(len(names)) if numbered else names, path, f" in {kind}", optional, argument)
    columns = dict.fromkeys(map(str, range(len(names)))) | {
        str(place): types.get(k, pa.string()) for k, place in places.items()
    }
    parse = partial(parse_table, columns=columns, delimiter=separator, empty_is_null=True, quotes=quotes)
    for rows in read_rows(path, parse, defects, header=not numbered, quotes=quotes):
        rows.table = rows.table.select([str(place) for place in places.values()]).rename_columns([*places])
        yield rows


def line_of(row: int, path: str | Path, wanted: Mapping[str, Hashable], **options: Any) -> int:
    """The line of a row; the file is read again, because its text is not kept."""
    with warnings.catch_warnings(action="ignore"):
        for rows in table_blocks(path, wanted, **options):
            if row < len(rows):
                return rows.place(row)[1]
            row -= len(rows)
    raise DataFormatError(f"the file must stay as it is while it is read, found {row} rows fewer; read it again", path)


def read_counts(path: str | Path) -> pd.DataFrame:
    """A small table of any columns, read like a table of observations; beside ";" and tabs, commas are decimal."""
    separator, _, _ = read_header(path)
    content = b"".join(file_blocks(path, lambda: 1)).removeprefix(MARK)
    has_decimal_comma = separator != "," and re.search(rb"\d,\d", content) and not re.search(rb"\d\.\d", content)
    return pd.read_csv(BytesIO(content), sep=separator, decimal="," if has_decimal_comma else ".")


def whole_numbers(labels: list[str]) -> list[str] | list[int]:
    """Labels as whole numbers if all of them are written as such; "007" is not.

    >>> whole_numbers(["10", "-3"]), whole_numbers(["10", "007"])
    ([10, -3], ['10', '007'])
    """
    if all(re.fullmatch("0|-?[1-9][0-9]{0,17}", label) for label in labels):
        return [int(label) for label in labels]
    return labels


def parse_numbers(texts: pd.Series) -> np.ndarray | None:
    """Texts as whole numbers, or else as floats; None if one of them is no number."""
    text = pa.array(texts, pa.string())
    for kind in (pa.int64(), pa.uint64(), pa.float64()):
        with suppress(pa.ArrowInvalid):
            text[:1].cast(kind)  # most texts that are no numbers are refused here, at once
            numbers = text.cast(kind).to_numpy(zero_copy_only=False)
            has_letters = pa.compute.any(pa.compute.match_substring_regex(text, "[^-+.0-9eE]")).as_py()
            return None if has_letters else numbers  # "nan" and "0x10"
    return None


def parse_times(texts: pd.Series, time_format: str = "ISO8601") -> np.ndarray:
    """Instants in UTC, as datetime64 without a zone; NaT for an unreadable text. Times without an offset are UTC.

    `time_format` is "ISO8601" or as for `strptime`.
    """
    is_iso = time_format == "ISO8601"
    instants = _uniform_times(pa.array(texts, pa.string())) if is_iso else None
    if instants is None:
        formed = texts.str.fullmatch(ISO_TIME if is_iso else WITH_DIGIT).astype(bool)
        parsed = pd.to_datetime(texts.where(formed), format=time_format, utc=True, errors="coerce")
        instants = parsed.dt.tz_localize(None).to_numpy()
    if np.datetime_data(instants.dtype)[0] != "ns":
        instants = instants.astype("datetime64[us]")
        instants[(instants < FIRST_TIME) | (instants > LAST_TIME)] = np.datetime64("NaT")
    return instants


def _uniform_times(text: pa.Array) -> np.ndarray | None:
    """The instants of ISO 8601 texts that all have an offset or all have none; None for others.

    Reading a CSV file takes 1.4 times as long without it.
    """
    has_minutes = pa.compute.equal(pa.compute.utf8_slice_codeunits(text, 13, 14), ":")
    is_whole = pa.compute.or_(has_minutes, pa.compute.equal(pa.compute.binary_length(text), 10))
    if text.null_count or not pa.compute.all(is_whole).as_py():  # pyarrow also accepts an hour without minutes
        return None
    for unit in ("us", "ns"):
        for zone in (None, "UTC"):
            with suppress(pa.ArrowInvalid):
                return text.cast(pa.timestamp(unit, zone)).cast(pa.timestamp(unit)).to_numpy(zero_copy_only=False)
    return None


def with_instants(
    block: pd.DataFrame, time_format: str | None, place: Place, kinds: dict[str, tuple[bool, bool]]
) -> pd.DataFrame:
    """The block with instants for times, and the local clock where it differs; `kinds` holds the kinds so far."""
    block = block.copy(deep=False)
    if "clock" in block:
        block["time"] = block["time"].astype(str) + " " + block.pop("clock").astype(str)
    for name in block.columns.intersection([*LOCAL]):
        check_filled(block[name], name, place)
        texts = block[name]
        instants, clock = _times(texts, time_format, place)
        kind = instants.dtype.kind == "M", clock is instants
        if kinds.setdefault(name, kind) != kind:
            raise _unlike_times(str(texts.iloc[0]), time_format, place(0))
        block[name] = instants
        if clock is not instants:
            block[LOCAL[name]] = clock
    return block


def check_filled(column: pd.Series, name: str, place: Place) -> None:
    """ValueError for a missing value."""
    missing = column.isna().to_numpy()
    if missing.any():
        raise ValueError(f"{name} must not be empty, found nothing in {place(int(np.argmax(missing)))}; drop it")


def _times(column: pd.Series, time_format: str | None, place: Place) -> tuple[np.ndarray, np.ndarray]:
    """Instants, which order the observations, and local clock times, which determine the time steps."""
    if isinstance(column.dtype, pd.ArrowDtype):
        column = pa.array(column).to_pandas()
    if isinstance(column.dtype, pd.DatetimeTZDtype):
        return column.dt.tz_convert(None).to_numpy(), column.dt.tz_localize(None).to_numpy()
    if column.dtype.kind in "iufM":
        return (column.to_numpy(),) * 2
    texts, form = column.astype(str), time_format or "ISO8601"
    numbers = None if time_format else parse_numbers(texts)
    if numbers is not None:
        return numbers, numbers
    instants = clock = parse_times(texts, form)
    text = pa.array(texts, pa.string())
    has_offset = pa.compute.match_substring_regex(text, OFFSET).to_numpy(zero_copy_only=False)
    if has_offset.any():
        there = pa.compute.replace_substring_regex(text, OFFSET, r"\1").to_pandas()
        clock = parse_times(there, form.replace("%z", "").strip())
    wrong = np.isnat(instants) | np.isnat(clock) | (has_offset != has_offset[0])
    if wrong.any():
        first = int(np.argmax(wrong))
        raise _unlike_times(texts.iloc[first], time_format, place(first))
    return instants, clock


def _unlike_times(text: str, time_format: str | None, place: str) -> ValueError:
    """The error for a time that cannot be read, or that is not like the others."""
    remedy = "join the columns of the date and of this time of day, such as time='date+time'"
    if not re.fullmatch(CLOCK, text):
        with warnings.catch_warnings(action="ignore"):  # pandas says that it swaps day and month
            is_day_first = re.match("[0-9]{4}", text) is None
            likely = guess_datetime_format(text, dayfirst=is_day_first) or "%d.%m.%Y %H:%M"
        remedy = f"give such as time_format={likely!r}"
    return ValueError(
        f"times must all be numbers, or in the format {time_format or 'ISO8601'}, all with an offset from UTC or all "
        f"without, found {text!r} in {place}; {remedy}"
    )


def seconds_of(times: np.ndarray, place: Place, unit: str | None) -> np.ndarray:
    """Times that are numbers of a unit, as seconds; an error if they would be centuries away."""
    far = np.abs(times.astype(float)) > LATEST
    if unit is None and far.any():
        first = int(np.argmax(far))
        likely = next((name for name, many in UNITS.items() if abs(times[first]) / many <= LATEST), "ns")
        raise ValueError(
            f"times that are numbers must be seconds, found {times[first]} in {place(first)}, after the year 5000; "
            f"give time_unit={likely!r} for {likely} since 1970"
        )
    many = UNITS[unit or "s"]
    return times if many == 1 else times.astype(float) / many
