"""Tables of observations: the files of a folder, their columns by usual names, and their rows.

A CSV file is text in UTF-8 or UTF-16, plain or compressed, with the delimiter (comma, semicolon,
tab or "|") that occurs most in its first line. Rows follow RFC 4180: each has as many fields as the
first, and a field with a quote in it is quoted; any other row is an error that names its line. A
last line without end is a warning: the file may be cut.
"""

import csv
import json
import re
import warnings
import zipfile
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from io import BytesIO, StringIO
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute
import pyarrow.dataset  # noqa: F401 - makes it an attribute of pa
import pyarrow.json  # noqa: F401 - makes it an attribute of pa

from tplreport.reading.rows_by_user import MISSING, STORED_ONCE
from tplreport.reading.text_files import (
    COMPRESSED,
    Ahead,
    DataFormatError,
    Defects,
    Limits,
    Rows,
    describe_content,
    file_blocks,
    line_blocks,
    parse_table,
    read_rows,
    refuse_more,
)
from tplreport.reading.times import SAMPLE
from tplrepro.display import count_noun
from tplrepro.validation import warn_caller

#: Usual names of the columns of a table, the best first, compared without regard to case, "_", "-"
#: and " ".
USUAL_NAMES = {
    "user": (
        "case:concept:name",
        "caseid",
        "casename",
        "case",
        "traceid",
        "trace",
        "user",
        "userid",
        "uid",
        "person",
        "session",
        "sequence",
        "id",
    ),
    "time": (
        "time:timestamp",
        "completetimestamp",
        "endtimestamp",
        "timestamp",
        "time",
        "datetime",
        "eventtime",
        "starttimestamp",
        "date",
        "day",
    ),
    "state": (
        "concept:name",
        "activity",
        "activityid",
        "activityname",
        "state",
        "place",
        "cell",
        "location",
        "page",
        "label",
        "event",
        "eventname",
        "taskid",
        "task",
    ),
    "latitude": ("latitude", "lat"),
    "longitude": ("longitude", "lon", "lng"),
}
#: Types of the columns of a CSV file that are no texts.
TYPES = dict.fromkeys(("latitude", "longitude"), pa.float64())
#: Format -> pattern of the first bytes of a file; any other file is text. The first three are names
#: of pyarrow.dataset.
FORMATS = {
    "parquet": rb"PAR1",
    "ipc": rb"ARROW1",
    "json": rb"\s*[\[{]",
    "xes": rb"(?s)\s*<(log\b|\?xml.{0,4000}<log\b)",
    "excel": rb"(?s)PK\x03\x04.*(xl/|Content_Types)",
    "spmf": rb"(@[^\n]*\n|\s)*\d+\s+(-1\s+\d+\s+)*-1\s+-2\s",
}
#: Ends of the names of files that are read from a folder.
TABLES = (
    ".csv",
    ".tsv",
    ".txt",
    ".parquet",
    ".feather",
    ".arrow",
    ".jsonl",
    ".gz",
    ".bz2",
    ".xz",
    ".zip",
)
MARK = b"\xef\xbb\xbf"
#: A number whose point or comma may separate thousands, or decimals.
THOUSANDS = r"[-+]?[1-9]\d{0,2}[.,]\d{3}"
FIRST_LINE_BYTES = 1 << 20  # of a block, until the first line ends


def plain_name(name: Hashable) -> str:
    """The name of a column as in `USUAL_NAMES`."""
    return re.sub("[ _-]", "", str(name).casefold())


def find_columns(
    wanted: Mapping[str, Hashable],
    names: Sequence[Hashable],
    source: str | Path,
    kind: str = "",
    remedy: str = "",
) -> dict[str, int]:
    """The position of the column for each key of `wanted`, by its name there or by a usual name if
    that is None.

    Users may be absent if not named. For the error, `source` and `kind` say where the names stand
    and in what kind of file, and `remedy` how to name columns where the caller has no arguments for
    it.

    >>> find_columns({"user": None, "state": "town"}, ["User ID", "town"], "visits.csv")
    {'user': 0, 'state': 1}
    """
    places = {}
    wrong = []
    for thing, matches in _matching_columns(wanted, names).items():
        may_be_absent = thing == "user" and wanted[thing] is None and not remedy
        if len(matches) == 1:
            places[thing] = matches[0]
        elif matches or not may_be_absent:
            wrong.append(thing)
    if wrong:
        problem = _problem_of_columns(wrong, wanted, names, kind, remedy)
        raise DataFormatError(problem, source)
    things = {place: thing for thing, place in places.items()}
    if len(things) < len(places):
        twice = next(thing for thing, place in places.items() if things[place] != thing)
        both = f"{twice} and {things[places[twice]]}"
        raise DataFormatError(
            f"a column must be one thing, found {names[places[twice]]!r} for {both}; name another "
            "one",
            source,
        )
    return places


def _matching_columns(
    wanted: Mapping[str, Hashable], names: Sequence[Hashable]
) -> dict[str, list[int]]:
    """For each key of `wanted`, the positions of all columns of its name, or of its best usual
    name; a column that is named has no usual name beside it."""
    given = {name for name in wanted.values() if name is not None}
    plain = ["" if name in given else plain_name(name) for name in names]
    matches = {}
    for thing, name in wanted.items():
        if name is None:
            usual = next((usual for usual in USUAL_NAMES[thing] if usual in plain), None)
            matches[thing] = _places_of(usual, plain)
        else:
            matches[thing] = _places_of(name, names)
    return matches


def _places_of(name: Hashable, names: Sequence[Hashable]) -> list[int]:
    return [place for place, one in enumerate(names) if one == name]


def _problem_of_columns(
    wrong: Sequence[str],
    wanted: Mapping[str, Hashable],
    names: Sequence[Hashable],
    kind: str,
    remedy: str,
) -> str:
    """The sentence on `wrong`, keys of `wanted` for which no column or several may be meant; `kind`
    says what the file seems to be, `remedy` how to name columns, "" for by arguments."""
    named = ", ".join(
        thing if wanted[thing] is None else f"{thing} {wanted[thing]!r}" for thing in wrong
    )
    shown = ", ".join(map(repr, names[:12]))
    if len(names) > 12:
        shown += ", ..."
    if not remedy:
        remedy = _remedy_by_arguments(wrong)
    if "state" in wrong and wanted["state"] is None and "state=" in remedy:
        remedy += ", or all states of a row as state='first..last'"
        remedy += _remedy_for_positions(names)
    return f"there must be one column of {named}, found {shown}{kind}; {remedy}"


def _remedy_for_positions(names: Sequence[Hashable]) -> str:
    """How states are made of positions, if there are columns of usual names of both coordinates."""
    latitude = usual_column("latitude", names)
    longitude = usual_column("longitude", names)
    if latitude is None or longitude is None:
        return ""
    return f", or give cell_km= for cells of the positions in {latitude!r} and {longitude!r}"


def _remedy_by_arguments(wrong: Sequence[str]) -> str:
    """What to do about columns that were not found: name them by arguments."""
    pronoun = "them"
    if len(wrong) == 1:
        pronoun = "it"
    arguments = ", ".join(f"{thing}=" for thing in wrong)
    return f"name {pronoun} by {arguments}"


def check_is_no_pipe(path: Path) -> None:
    """ValueError for what can be read only once, from its begin."""
    if path.is_fifo() or path.is_char_device():
        raise ValueError(
            f"there must be a file that can be read from any place, found a pipe {path}; write "
            "what comes from it into a file first"
        )


def check_first_line(path: Path, kind: str | None, limits: Limits) -> None:
    """DataFormatError if the first line of a text of this kind ("json", or None for a table) has
    more bytes or columns than the limits allow."""
    line = b""
    for block in file_blocks(path, lambda: 1, FIRST_LINE_BYTES):
        if not line:
            block = block.lstrip()
        line, end, _ = (line + block).partition(b"\n")
        refuse_more(path, "bytes in the first line", limits.line_bytes, len(line), limits)
        if end:
            break
    if kind == "json":
        columns = _count_keys(line)
    else:
        columns = 1 + max(line.count(mark) for mark in (b",", b";", b"\t", b"|"))
    refuse_more(path, "columns", limits.columns, columns, limits)


def _count_keys(line: bytes) -> int:
    try:
        return len(json.loads(line))
    except (ValueError, RecursionError, TypeError):
        return 0  # which its reader says better


@dataclass(frozen=True)
class Header:
    """The first line of a table of text."""

    separator: str
    names: list[str]
    kind: str  # what the file seems to be
    lines: int = 1  # before the first row
    first_row: Sequence[str] = ()


def read_header(path: str | Path) -> Header:
    """The header of a file; DataFormatError if it is no table of text."""
    head, _ = next(line_blocks(path, 1 << 16), (b"", 1))
    return parse_header(head.removeprefix(MARK), path)


def parse_header(head: bytes, path: str | Path) -> Header:
    """The header of a table, by its first lines."""
    head, named = split_separator_line(head)
    text = _checked_first_line(head, path)
    separator = named or max(",;\t|", key=text.count)
    lines = head.decode(errors="replace").splitlines()[:2]
    names, *second = (
        [field.strip() for field in _fields([line], separator, path)[0]] for line in lines
    )
    has_row_names = re.match(rb'[^\n]*\n"1"', head) is not None  # in quotes, as R writes them
    if has_row_names and len(second[0]) == len(names) + 1:
        names = ["", *names]  # R leaves out the name of the column of row names
    n_lines = 1
    if named:
        n_lines = 2
    first_row: list[str] = []
    if second:
        first_row = second[0]
    return Header(separator, names, describe_content(head), n_lines, first_row)


def split_separator_line(content: bytes) -> tuple[bytes, str]:
    """The content after a first line such as "sep=;", which Excel writes and heeds, and that
    separator; "" if there is none.

    >>> split_separator_line(b"sep=;\\r\\na;b\\n"), split_separator_line(b"a;b\\n")
    ((b'a;b\\n', ';'), (b'a;b\\n', ''))
    """
    found = re.match(rb'"?sep=([,;\t|])"?\r?\n', content, re.IGNORECASE)
    if found is None:
        return content, ""
    return content[found.end() :], found[1].decode()


def _checked_first_line(head: bytes, path: str | Path) -> str:
    """The text of the first line; DataFormatError if it can be no header."""
    first = head.partition(b"\n")[0].rstrip(b"\r")
    try:
        text = first.decode()
    except UnicodeDecodeError:
        text = "\0"
    if not text.strip() and head.strip():
        raise DataFormatError(
            "the first line must be a header, or a row, found an empty line; remove it", path, 1
        )
    if not text.strip() or "\0" in text:
        found = describe_content(first.strip() and head)
        raise DataFormatError(
            f"there must be a table in UTF-8, found {found}; unpack or export it again", path, 1
        )
    if text.startswith("#"):
        raise DataFormatError(
            f"a header must not begin with #, found {text[:40]!r}; remove # or the comment", path, 1
        )
    if "\r" in text:
        raise DataFormatError(
            "lines must end in LF or CRLF, found a CR alone; convert the line ends", path, 1
        )
    return text


def _fields(lines: list[str], separator: str, path: str | Path) -> list[list[str]]:
    """The fields of the first lines of a file between separators; DataFormatError if one is too
    long."""
    try:
        return list(csv.reader(lines, delimiter=separator))
    except csv.Error as error:
        raise DataFormatError(
            f"there must be a table of short names, found another file ({error})", path, 1
        ) from None


def table_blocks(
    path: str | Path,
    wanted: Mapping[str, Hashable],
    types: Mapping[str, pa.DataType] = TYPES,
    defects: Defects | None = None,
    *,
    quotes: bool = True,
    remedy: str = "",
) -> Iterator[Rows]:
    """The columns of a CSV file for the keys of `wanted`, block by block; empty fields are null.

    If a column is given by number, the file has no header. Other arguments as in `find_columns` and
    `read_rows`.
    """
    must = (
        "as many fields as in line 1, and any with a quote in quotes, without a blank before them"
    )
    if "latitude" in wanted:
        must += ", and numbers as degrees"
    defects = defects or Defects(must)
    header = read_header(path)
    wanted = _positions_as_numbers(wanted, header.names)
    is_numbered = any(isinstance(given, int) for given in wanted.values())
    names: Sequence[Hashable] = header.names
    if is_numbered:
        names = range(len(names))
    places = find_columns(wanted, names, path, f" in {header.kind}", remedy)
    columns: dict[str, pa.DataType | None] = dict.fromkeys(map(str, range(len(names))))
    for thing, place in places.items():
        columns[str(place)] = types.get(thing, pa.string())
    nulls: Sequence[str] = ("",)
    if "latitude" in places:
        nulls = MISSING
    degrees = [places[name] for name in ("latitude", "longitude") if name in places]
    parse = partial(
        parse_table,
        columns=columns,
        delimiter=header.separator,
        nulls=nulls,
        quotes=quotes,
        decimal_point=_decimal_point(header, degrees),
    )
    selected = [str(place) for place in places.values()]
    n_lines = header.lines
    if is_numbered:
        n_lines -= 1
    for rows in read_rows(path, parse, defects, header=n_lines, quotes=quotes):
        rows.table = rows.table.select(selected).rename_columns(list(places))
        yield rows


def _decimal_point(header: Header, places: Sequence[int]) -> str:
    """The decimal point of the numbers in these columns, by the first row: a comma where it does
    not separate columns."""
    first = [header.first_row[place] for place in places if place < len(header.first_row)]
    if header.separator != "," and any(re.fullmatch(r"[-+]?\d+,\d+", text) for text in first):
        return ","
    return "."


def _positions_as_numbers(
    wanted: Mapping[str, Hashable], names: Sequence[str]
) -> Mapping[str, Hashable]:
    """Digits as positions of columns, as typed on a command line, unless the header has all of
    them as names."""
    digits = {given for given in wanted.values() if isinstance(given, str) and given.isdecimal()}
    if digits.issubset(names):
        return wanted
    return {thing: int(str(given)) if given in digits else given for thing, given in wanted.items()}


def line_of(row: int, path: str | Path, wanted: Mapping[str, Hashable]) -> int:
    """The line of row number `row`, from 0, of a text file whose columns are `wanted`; the file is
    read again, because its text is not kept."""
    if format_of(Path(path)) == "json":
        numbers = (number for lines in json_lines(path) for number, _ in lines)
        return next(islice(numbers, row, None), 0)
    with warnings.catch_warnings(action="ignore"):
        for rows in table_blocks(path, wanted):
            if row < len(rows):
                return rows.place(row)[1]
            row -= len(rows)
    raise DataFormatError(
        f"the file must stay as it is while it is read, found {row} rows fewer; read it again", path
    )


#: What a damaged Parquet or Feather file raises.
BROKEN = (pa.ArrowException, OSError, UnicodeDecodeError, OverflowError)


def _open_dataset(path: Path, kind: str, stored_once: Collection[str] = ()) -> Any:
    """A Parquet or Feather file, or a partitioned folder; the columns called `stored_once`, of
    Parquet, hold each text once."""
    partitioning = "hive" if path.is_dir() else None
    how: Any = kind
    if stored_once:
        how = pa.dataset.ParquetFileFormat(dictionary_columns={*stored_once})
    try:
        return pa.dataset.dataset(path, format=how, partitioning=partitioning)
    except BROKEN as error:
        raise _broken(error, path, kind) from None


def _frame(table: pa.Table) -> pd.DataFrame:
    """A frame of the table's own columns, which are not copied."""
    return table.to_pandas(types_mapper=pd.ArrowDtype)


def _broken(error: Exception, path: Path, kind: str) -> DataFormatError:
    name = {"ipc": "Feather"}.get(kind, kind.capitalize())
    return DataFormatError(
        f"there must be a whole {name} file, found a broken one ({error}); export it again", path
    )


def _arrow_blocks(path: Path, kind: str, wanted: Mapping[str, Hashable]) -> Iterator[pd.DataFrame]:
    """The columns of a Parquet or Feather file (`kind` "parquet" or "ipc"), or of a partitioned
    folder, renamed to the keys of `wanted`."""
    whole = _open_dataset(path, kind)
    names = whole.schema.names
    columns = {thing: names[k] for thing, k in find_columns(wanted, names, path).items()}
    selected = list(columns.values())
    stored_once = []
    if kind == "parquet" and path.is_file():
        stored_once = _columns_of_texts(whole.schema, columns)
        whole = _open_dataset(path, kind, [columns[thing] for thing in stored_once])
    try:
        for piece in _dataset_pieces(whole, kind):
            for batch in piece.to_batches(
                schema=whole.schema, columns=selected, batch_size=1 << 19
            ):
                table = pa.Table.from_batches([batch]).select(selected)
                # bytes that are not what their types say would crash later
                table.validate(full=True)
                # without pandas' notes
                frame = _frame(table.rename_columns(list(columns)).replace_schema_metadata(None))
                frame.attrs[STORED_ONCE] = stored_once
                yield frame
    except BROKEN as error:
        raise _broken(error, path, kind) from None


def _columns_of_texts(schema: Any, columns: Mapping[str, str]) -> list[str]:
    """Which of the columns of users and states, whose names are `columns`, hold texts."""
    return [
        thing
        for thing in ("user", "state")
        if thing in columns
        and schema.field(columns[thing]).type in (pa.string(), pa.large_string())
    ]


def _dataset_pieces(whole: Any, kind: str) -> Iterator[Any]:
    """The files of a dataset; those of Parquet by groups of rows, as reading ahead in a whole file
    takes memory."""
    for piece in whole.get_fragments():
        if kind == "parquet":
            yield from piece.split_by_row_group()
        else:
            yield piece


def json_lines(path: str | Path) -> Iterator[list[tuple[int, bytes]]]:
    """The lines of a file that are not blank, with their numbers from 1, block by block."""
    # as Python objects they take several times the memory
    for block, first_line in line_blocks(path, 1 << 22):
        yield [
            (number, line)
            for number, line in enumerate(block.split(b"\n"), first_line)
            if line.strip()
        ]


def _json_blocks(path: Path, wanted: Mapping[str, Hashable]) -> Iterator[pd.DataFrame]:
    """The columns of a file with a JSON object a line; what is missing in an object is None."""
    columns = dict[str, Hashable]()
    for lines in json_lines(path):
        if not lines:
            continue
        first = [_json_object(line, number, path) for number, line in lines[:SAMPLE]]
        if not columns:
            columns = _json_columns(first, wanted, path)
        names = list(columns.values())
        table = _json_table(lines, first, names)
        if table is not None:
            yield _frame(table.select(names).rename_columns(list(columns)))
            continue
        rows = chain(first, (_json_object(line, number, path) for number, line in lines[SAMPLE:]))
        yield _frame_of_objects(rows, columns)


def _frame_of_objects(rows: Iterable[dict], columns: Mapping[str, Hashable]) -> pd.DataFrame:
    """The columns of these objects, renamed, whatever their values are."""
    values = [[row.get(name) for name in columns.values()] for row in rows]
    return pd.DataFrame(values, columns=list(columns), dtype=object)


def _json_columns(
    rows: list[dict], wanted: Mapping[str, Hashable], path: Path
) -> dict[str, Hashable]:
    """For each key of `wanted`, the name that the objects of the first lines have for it."""
    names = _names_in(rows)
    kind = ""
    if any(isinstance(value, list | dict) for value in rows[0].values()):
        kind = " in JSON, with lists or records in it: write one object a line"
    return {thing: names[k] for thing, k in find_columns(wanted, names, path, kind).items()}


def _names_in(objects: Iterable[dict]) -> list[Hashable]:
    """All names of JSON objects, in the order in which they first occur."""
    return list(dict.fromkeys(name for row in objects for name in row))


def _json_object(line: bytes, number: int, path: Path) -> dict[Hashable, Any]:
    """The object of a line, `number` of the file; DataFormatError for any other line."""
    problem = ""
    found: Any = None
    try:
        found = json.loads(line.removeprefix(MARK))
    except UnicodeDecodeError:
        problem = "bytes that are not UTF-8: convert the file, such as by iconv -f LATIN1 -t UTF-8"
    except (ValueError, RecursionError):
        problem = repr(line[:40].decode("utf-8", "replace"))
    if isinstance(found, dict):
        _check_is_row(found, number, path)
        return found
    if not problem:
        kind = "array" if isinstance(found, list) else type(found).__name__
        problem = f"a JSON {kind}"
    raise DataFormatError(
        f"there must be one JSON object a line, found {problem}; write one object a line",
        path,
        number,
    )


def _check_is_row(found: dict, number: int, path: Path) -> None:
    """DataFormatError for an object of whole columns, as pandas writes it by default."""
    if found and all(isinstance(value, dict) for value in found.values()):
        raise DataFormatError(
            f"there must be one JSON object for each row, found one whose {len(found)} values are "
            "columns; write one object a line, with pandas by to_json(path, orient='records', "
            "lines=True)",
            path,
            number,
        )


def _json_table(
    lines: list[tuple[int, bytes]], first: list[dict], names: list[Hashable]
) -> pa.Table | None:
    """The columns of these names, read at once from lines with their numbers; None where types
    change, or a number could lose digits.

    `first` are the objects of the first lines, which determine the types.
    """
    schema = _json_schema(first, names)
    if schema is None:
        return None
    content = b"\n".join(line for _, line in lines)
    options = pa.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    size = pa.json.ReadOptions(use_threads=False, block_size=len(content) + 1)
    try:
        table = pa.json.read_json(pa.BufferReader(content), size, options)
        table.validate(full=True)
    except pa.ArrowException:
        return None
    if table.num_rows != len(lines) or any(map(_may_lose_digits, table.columns)):
        return None
    return table


def _json_schema(rows: list[dict], names: list[Hashable]) -> pa.Schema | None:
    """The types of columns in the first rows; None for one of several types, or of lists or
    records."""
    kinds = {str: pa.string(), int: pa.int64(), float: pa.float64()}
    fields = []
    for name in names:
        types = {type(row.get(name)) for row in rows} - {type(None)}
        if len(types) != 1 or not types <= kinds.keys():
            return None
        fields.append((name, kinds[types.pop()]))
    return pa.schema(fields)


def _may_lose_digits(column: pa.ChunkedArray) -> bool:
    """Whether floats are so large that whole numbers between them are lost."""
    if not pa.types.is_floating(column.type):
        return False
    largest = pa.compute.max(pa.compute.abs(column)).as_py()
    return largest is not None and largest >= 2**53


def read_workbook(path: Path) -> pd.DataFrame:
    """The first sheet of an Excel workbook, whose rows have the numbers that Excel shows."""
    from python_calamine import CalamineError

    try:
        # Text cells stay text: "007" is no number, and "NA" is a name.
        frame = pd.read_excel(
            path, engine="calamine", dtype=object, keep_default_na=False, na_values=[""]
        )
    except (
        CalamineError,
        zipfile.BadZipFile,
        ValueError,
        TypeError,
        KeyError,
        OverflowError,
    ) as error:
        problem = (
            f"there must be a whole Excel workbook, found a broken one ({error}); save it again"
        )
        raise DataFormatError(problem, path) from None
    frame = frame.infer_objects().set_axis(pd.RangeIndex(2, len(frame) + 2, name="row"))
    frame.attrs["source"] = str(path)
    return frame


def read_spmf(path: Path) -> pd.DataFrame:
    """Read SPMF, a sequence per line: -1 after each item and -2 at the end; "@ITEM=7=bread" names
    an item."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise DataFormatError(
            f"an SPMF file must be text in UTF-8 ({error}); convert it", path
        ) from None
    names = dict[str, str]()
    items, users, places = list[str](), list[int](), list[int]()
    user = 0
    for number, line in enumerate(lines, 1):
        if line.startswith("@ITEM="):
            item, _, name = line.removeprefix("@ITEM=").partition("=")
            names[item] = name
        elif line.strip() and not line.startswith("@"):
            sequence = _spmf_sequence(line, number, path)
            items += sequence
            users += [user] * len(sequence)
            places += [number] * len(sequence)
            user += 1
    _check_names_of_items(items, names, path)
    frame = pd.DataFrame(
        {"user": users, "state": [names[item] for item in items]}, pd.Index(places, name="line")
    )
    frame.attrs["source"] = str(path)
    return frame


def _spmf_sequence(line: str, number: int, path: Path) -> list[str]:
    """The items of a line, `number` of the file, as texts."""
    if not re.fullmatch(r"\s*([0-9]{1,18}\s+-1\s+)+-2\s*", line):
        raise DataFormatError(
            "each item of an SPMF file must be followed by -1 and each sequence by -2, found "
            f"{line[:40]!r}; split sets of several items, and check that the file is whole",
            path,
            number,
        )
    return line.split()[:-1:2]


def _check_names_of_items(items: list[str], names: dict[str, str], path: Path) -> None:
    """DataFormatError if two items have one name; an item without a name gets its number, in
    `names`."""
    item_of = dict[str, str]()
    for item in dict.fromkeys(items):
        name = names.setdefault(item, item)
        if item_of.setdefault(name, item) != item:
            both = f"{item_of[name]} and {item}"
            raise DataFormatError(
                f"items must have different names, found {name!r} for {both}; rename one", path
            )


def read_counts(
    path: str | Path, time: str | None = None, may_be_missing: bool = False
) -> pd.DataFrame:
    """A small table of numbers, as `parse_counts` reads it, from a file."""
    read_header(path)  # says what the file is where it is no table
    content = b"".join(file_blocks(path, lambda: 1))
    return parse_counts(content, path, time, may_be_missing=may_be_missing)


def parse_counts(
    content: bytes,
    source: str | Path,
    time: str | None = None,
    columns: Sequence[Hashable] = (),
    may_be_missing: bool = False,
) -> pd.DataFrame:
    """A small table of numbers, whose index is the column of times, if there is one.

    Whole numbers stay whole. Commas are decimal beside ";" and tabs. Messages name no cell, since
    they go to logs.

    Parameters
    ----------
    content : bytes of CSV in UTF-8, with a line of names
    source : file, or another name of where it comes from, for messages
    time : name of the column of times; by default the first of a usual name
    columns : names of counts that are known: without them in its first line, the content has no
        names, but a column of times and these counts
    may_be_missing : whether cells may be empty; columns are then those of pandas that may be so

    Returns
    -------
    DataFrame of numbers

    Raises
    ------
    DataFormatError
        For any other content.

    Examples
    --------
    >>> parse_counts(b"time\\thome\\n8\\t105\\n", "standard input").to_dict()
    {'home': {8: 105}}
    >>> parse_counts(b"8;105\\n", "standard input", columns=["home"]).to_dict()
    {'home': {8: 105}}
    """
    content = content.removeprefix(MARK)
    header = parse_header(content, source)
    content, _ = split_separator_line(content)
    separator = header.separator
    names = header.names
    if columns and not {*map(str, columns)} & {*names}:
        names = [time or "time", *map(str, columns)]
        content = _line_of(names, separator) + content
    _check_names(names, source)
    counts = _parsed_counts(content, separator, source, may_be_missing)
    column_of_times = _column_of_times(counts, time, source)
    if column_of_times is not None:
        counts = counts.set_index(column_of_times)
    if separator != ",":
        places = [names.index(str(name)) for name in counts]
        _check_are_no_thousands(content, separator, places, source)
    for name, column in counts.items():
        if may_be_missing:
            column = column.dropna()
        _check_numbers(column, name, source)
    if not counts.size:
        raise DataFormatError(
            f"there must be a row and a column of counts, found {counts.shape}; add them", source
        )
    return counts


def _parsed_counts(
    content: bytes, separator: str, source: str | Path, may_be_missing: bool
) -> pd.DataFrame:
    """The table of counts in UTF-8; commas are decimal where fields are separated by something
    else."""
    decimal = "."
    if separator != "," and re.search(rb"\d,\d", content):
        decimal = ","
    form: dict = {"sep": separator, "decimal": decimal, "index_col": False}
    if may_be_missing:
        form["dtype_backend"] = "numpy_nullable"
    try:
        with warnings.catch_warnings(action="error", category=pd.errors.ParserWarning):
            return pd.read_csv(BytesIO(content), **form)
    except (pd.errors.ParserError, pd.errors.ParserWarning, UnicodeDecodeError) as error:
        must = "counts must be in UTF-8, with as many fields in each line as in the first"
        raise DataFormatError(
            f"{must}, found: {str(error).strip()}; export them again", source
        ) from None


def _column_of_times(counts: pd.DataFrame, time: str | None, source: str | Path) -> str | None:
    """The column called `time`, or if that is None the first of a usual name; None if there is
    none."""
    if time is None:
        usual = USUAL_NAMES["time"]
        return next((name for name in counts if plain_name(name) in usual), None)
    if time not in counts:
        raise DataFormatError(
            f"counts must have a column of times {time!r}, found {', '.join(counts)}; name it",
            source,
        )
    return time


def _line_of(names: Sequence[str], separator: str) -> bytes:
    line = StringIO()
    csv.writer(line, delimiter=separator, lineterminator="\n").writerow(names)
    return line.getvalue().encode()


def _check_names(names: Sequence[str], source: str | Path) -> None:
    """DataFormatError unless columns of counts have names of their own."""
    if any(re.fullmatch(r"\W*\d[\d\W]*", name) for name in names):
        raise DataFormatError(
            "counts must begin with names of their columns, found a number; add a line of names, "
            "such as 'cell 1': a first row of counts would be published as it is",
            source,
        )
    if "" in names:
        raise DataFormatError(
            f"counts must have a name above each column, found none above column "
            f"{names.index('') + 1}; write time there if it holds times, or leave it out if it "
            "numbers the rows, as pandas does by index=False: else it would get noise as a count",
            source,
        )
    repeated = [name for name in names if names.count(name) > 1]
    if repeated:
        raise DataFormatError(
            f"counts must have columns of different names, found {repeated[0]!r} "
            f"{names.count(repeated[0])} times; rename them",
            source,
        )


def _check_are_no_thousands(
    content: bytes, separator: str, places: Sequence[int], source: str | Path
) -> None:
    """DataFormatError if each count that has a point or a comma, in the columns at `places`, has
    three digits behind it, so that 1.234 may be 1234 as well."""
    if re.search(rb"\d[.,]\d{3}(?!\d)", content) is None:
        return
    rows = csv.reader(StringIO(content.decode()), delimiter=separator)
    next(rows)
    cells = (row[place].strip() for row in rows for place in places if place < len(row))
    separated = [cell for cell in cells if re.search("[.,]", cell)]
    if separated and all(re.fullmatch(THOUSANDS, cell) for cell in separated):
        raise DataFormatError(
            "counts must be numbers of one meaning, found none with a point or a comma but those "
            "with three digits behind it, where 1.234 may be 1234 or a little more than 1; leave "
            "out what separates thousands, or write decimals with other digits, such as 1.2340",
            source,
        )


def _check_numbers(column: pd.Series, name: Hashable, source: str | Path) -> None:
    """DataFormatError for a cell of the column `name` that is no number, which would get no
    noise."""
    numbers = pd.to_numeric(column, errors="coerce").astype(float)
    is_text = ~np.isfinite(numbers.to_numpy())
    is_of_other_type = len(column) > 0 and column.dtype.kind not in "iuf"
    if is_text.any() or is_of_other_type:
        place = int(np.argmax(is_text))
        found = "another cell"
        remedy = "correct it, or name a column of times 'time'"
        if column.isna().iloc[place]:
            found = "an empty cell"
            remedy = (
                "write its count, 0 if nobody was there, or leave its row out and skip its time"
            )
        raise DataFormatError(
            f"counts must be such as 1234 or 98.2, in a row for each time, found {found} in row "
            f"{place + 1} of column {name!r}; {remedy}",
            source,
        )


def whole_numbers(labels: list[str]) -> list[str] | list[int]:
    """Labels as whole numbers if all of them are written as such; "007" is not.

    >>> whole_numbers(["10", "-3"]), whole_numbers(["10", "007"])
    ([10, -3], ['10', '007'])
    """
    if all(re.fullmatch("0|-?[1-9][0-9]{0,17}", label) for label in labels):
        return [int(label) for label in labels]
    return labels


@dataclass(frozen=True)
class Source:
    """What is read."""

    name: str
    blocks: Iterator[pd.DataFrame]  # with the names of the wanted things as columns
    place: Callable[[int], str]  # a row -> where it stands, for messages
    columns: Mapping[str, Hashable]  # what is read -> the name of its column


def open_source(data: Any, wanted: Mapping[str, Hashable]) -> Source:
    """The wanted columns; of a folder without a column of users, each file is a user's."""
    names = column_names(data)
    if isinstance(data, pd.DataFrame):
        return _open_frame(data, wanted, names)
    if is_in_partitions(data):
        return _open_partitions(data, wanted, names)
    files = _files_of(data)
    starts = [0]

    def place(row: int) -> str:
        """Where a row of all files together stands."""
        number = int(np.searchsorted(starts, row, "right")) - 1
        file = files[number]
        row -= starts[number]
        if format_of(file) in (None, "json"):
            return f"line {line_of(row, file, wanted)} of {file}"
        return f"row {row} of {file}"

    found = {
        thing: usual_column(thing, names) if name is None else name
        for thing, name in wanted.items()
    }
    return Source(str(data), _blocks_of_files(data, files, wanted, starts), place, found)


def _open_frame(
    frame: pd.DataFrame, wanted: Mapping[str, Hashable], names: Sequence[Hashable]
) -> Source:
    """The wanted columns of a frame, whose columns have these `names`; in one block, or none if the
    frame has no rows.

    `wanted`: what is read -> the name of its column, None for a usual name.
    """
    source = frame.attrs.get("source", "the DataFrame")
    row_kind = frame.index.name or "row"
    places = find_columns(wanted, names, source)
    blocks = []
    if len(frame):
        block = frame.iloc[:, list(places.values())].set_axis(list(places), axis=1)
        blocks.append(block)
    return Source(
        name=source,
        blocks=iter(blocks),
        place=lambda row: f"{row_kind} {frame.index[row]} of {source}",
        columns={thing: names[k] for thing, k in places.items()},
    )


def is_in_partitions(data: Any) -> bool:
    """Whether data are a DataFrame of Dask."""
    return hasattr(data, "get_partition") and hasattr(data, "npartitions")


def name_of_source(data: Any) -> Any:
    """What messages call the data: their source, or the path itself."""
    if is_in_partitions(data):
        return "the Dask DataFrame"
    if isinstance(data, pd.DataFrame):
        return data.attrs.get("source", "the DataFrame")
    return data


def _open_partitions(
    frame: Any, wanted: Mapping[str, Hashable], names: Sequence[Hashable]
) -> Source:
    """The wanted columns of a DataFrame of Dask, a block for each partition; workers make the next
    one while one is used."""
    source = name_of_source(frame)
    columns = {thing: names[k] for thing, k in find_columns(wanted, names, source).items()}
    starts = [0]

    def blocks() -> Iterator[pd.DataFrame]:
        for number in range(frame.npartitions):
            block = frame.get_partition(number)[list(columns.values())].compute()
            starts.append(starts[-1] + len(block))
            if len(block):
                yield block.set_axis(list(columns), axis=1).reset_index(drop=True)

    def place(row: int) -> str:
        """Where a row of all partitions together stands."""
        number = int(np.searchsorted(starts, row, "right")) - 1
        return f"row {row - starts[number]} of partition {number} of {source}"

    return Source(source, Ahead(blocks()), place, columns)


def usual_column(thing: str, names: Sequence[Hashable]) -> Hashable:
    """The column of a usual name, if there is one."""
    return next(
        (name for usual in USUAL_NAMES[thing] for name in names if plain_name(name) == usual), None
    )


def format_of(path: Path) -> str | None:
    """The format of a file that is not a table of text, or of a folder that is partitioned."""
    if path.is_dir():
        return "parquet"
    with open(path, "rb") as file:
        head = file.read(1 << 16).removeprefix(MARK)
    kind = next((kind for kind, pattern in FORMATS.items() if re.match(pattern, head)), None)
    if kind is None and head.startswith((*COMPRESSED, b"\xff\xfe", b"\xfe\xff")):
        head = next(file_blocks(path, lambda: 1, 1 << 16), b"").removeprefix(MARK)
        return next((kind for kind in ("json", "xes") if re.match(FORMATS[kind], head)), None)
    return kind


def column_names(data: Any) -> list[Hashable]:
    """The names of the columns of a DataFrame, of a file, or of the first file of a folder."""
    if isinstance(data, pd.DataFrame) or is_in_partitions(data):
        return list(data.columns)
    path = _files_of(data)[0]
    kind = format_of(path)
    if kind == "excel":
        return list(read_workbook(path).columns)
    if kind == "json":
        lines = next(filter(None, json_lines(path)), [])[:SAMPLE]
        return _names_in([_json_object(line, number, path) for number, line in lines])
    if kind in ("parquet", "ipc"):
        return list(_open_dataset(path, kind).schema.names)
    return list(read_header(path).names)


def first_rows(data: Any, names: Sequence[Hashable]) -> pd.DataFrame:
    """The first rows, with those of the named columns that have a name of their own."""
    if is_in_partitions(data):
        return data.head(SAMPLE, npartitions=-1)
    if isinstance(data, pd.DataFrame):
        return data.head(SAMPLE)
    wanted = {str(name): name for name in names if [*names].count(name) == 1}
    return next(_blocks_of_file(_files_of(data)[0], wanted), pd.DataFrame()).head(SAMPLE)


def _files_of(path: Path) -> list[Path]:
    """The file itself, or the tables of a folder; a folder that is partitioned counts as one
    file."""
    if not path.is_dir():
        return [path]
    filled = sorted(file for file in path.iterdir() if file.is_file() and file.stat().st_size)
    files = [file for file in filled if file.suffix.lower() in TABLES]
    if files:
        _warn_of_others([file.name for file in filled if file not in files], path)
        return files
    if next(path.rglob("*.parquet"), None):
        return [path]
    raise _no_tables(path)


def _no_tables(folder: Path) -> DataFormatError:
    """The error for a folder without tables."""
    found = "none"
    remedy = "check it"
    if plt := next(folder.rglob("*.plt"), None):
        found = str(plt)
        remedy = "read it by experiments.datasets.readers.geolife"
    return DataFormatError(
        f"there must be files that end in {', '.join(TABLES)}, found {found}; {remedy}", folder
    )


def _warn_of_others(names: list[str], folder: Path) -> None:
    """Warn of files that are left out, unless they are hidden."""
    others = [name for name in names if name[0] not in "._"]
    if others:
        warn_caller(
            f"{count_noun(len(others), 'file')} of {folder} left out, such as {others[0]!r}: "
            f"only those that end in {', '.join(TABLES)} are read"
        )


def _blocks_of_files(
    path: Path, files: list[Path], wanted: Mapping[str, Hashable], starts: list[int]
) -> Iterator[pd.DataFrame]:
    """The blocks of all files of the folder or file `path`, which must have the same columns.

    The number of the first row after each file is appended to `starts`.
    """
    rows = 0
    names = list[str]()
    first = path
    for file in files:
        for block in filter(len, _blocks_of_file(file, wanted)):
            if not names:
                names = list(block)
                first = file
            if {*names} != {*block}:
                raise DataFormatError(
                    f"all files of a folder must have the same columns, found {', '.join(names)} "
                    f"in {first.name} and {', '.join(block)} in {file.name}; name them alike",
                    path,
                )
            if "user" in wanted and "user" not in block and files != [path]:
                block = block.assign(user=pd.Categorical([_stem_of(file)]).repeat(len(block)))
            rows += len(block)
            yield block
        starts.append(rows)


def _stem_of(file: Path) -> str:
    """The name of a file without all its ends, such as .csv.gz."""
    ends = "|".join(map(re.escape, TABLES))
    return re.sub(f"({ends})+$", "", file.name, flags=re.IGNORECASE)


def unlike_columns(error: Exception, path: str | Path) -> DataFormatError:
    """The error for a column that is of one kind here and of another one there."""
    return DataFormatError(
        f"a column must be of one kind in all files, found two ({error}); convert one", path
    )


def _blocks_of_file(path: Path, wanted: Mapping[str, Hashable]) -> Iterator[pd.DataFrame]:
    """The columns of a file, renamed to the keys of `wanted`, block by block."""
    kind = format_of(path)
    if kind == "excel":
        raise DataFormatError(
            "files of a folder must be text, Parquet, Feather or JSON lines, found an Excel "
            "workbook; read it alone, or save it as CSV",
            path,
        )
    if kind == "json":
        return Ahead(_json_blocks(path, wanted))
    if kind in (None, "spmf"):  # SPMF files are read alone, not in a folder
        return (_frame(rows.table) for rows in table_blocks(path, wanted))
    return Ahead(_arrow_blocks(path, kind, wanted))
