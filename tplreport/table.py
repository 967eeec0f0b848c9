"""Tables of observations: the files of a folder, their columns by usual names, and their rows.

A CSV file is text in UTF-8 or UTF-16, plain or compressed, with the delimiter (comma, semicolon, tab or "|")
that occurs most in its first line. Rows follow RFC 4180: each has as many fields as the first, and a field
with a quote in it is quoted; any other row is an error that names its line. A last line without end is a
warning: the file may be cut.
"""

import csv
import re
import warnings
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset

from tplreport.reading import (
    DataFormatError,
    Defects,
    Rows,
    describe_content,
    file_blocks,
    line_blocks,
    parse_table,
    read_rows,
)
from tplrepro.markov.sequences import Sequences
from tplrepro.validation import warn_caller
from tplrepro.words import counted

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
#: Format -> pattern of the first bytes of a file; any other file is text. The first three are names of
#: pyarrow.dataset.
FORMATS = {
    "parquet": rb"PAR1",
    "ipc": rb"ARROW1",
    "json": rb'[ \t]*\{[ \t]*"',
    "excel": rb"(?s)PK\x03\x04.*(xl/|Content_Types)",
    "spmf": rb"(@[^\n]*\n|\s)*\d+\s+(-1\s+\d+\s+)*-1\s+-2\s",
}
#: Ends of the names of files that are read from a folder.
TABLES = (".csv", ".tsv", ".txt", ".parquet", ".feather", ".arrow", ".jsonl", ".gz", ".bz2", ".xz", ".zip")
OPTIONAL = ("user", "time")
TIMES = ("time", "clock", "until")
MARK = b"\xef\xbb\xbf"


def plain_name(name: Hashable) -> str:
    """The name of a column as in `USUAL_NAMES`."""
    return re.sub("[ _-]", "", str(name).casefold())


def find_columns(
    wanted: Mapping[str, Hashable],
    names: Sequence[Hashable],
    source: str | Path,
    kind: str = "",
    argument: str = "",
) -> dict[str, int]:
    """The position of the column for each key of `wanted`, by its name there or by a usual name if that is None.

    Without a given name, the things in `OPTIONAL` may be absent. For the error, `source` and `kind` say where
    the names stand and in what kind of file, and `argument` where the caller names columns.

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
        elif column is not None or given is not None or thing not in OPTIONAL:
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


def read_header(path: str | Path) -> tuple[str, list[str], str]:
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
    separator = max(",;\t|", key=text.count)
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
    types: Mapping[str, pa.DataType] = TYPES,
    defects: Defects | None = None,
    *,
    quotes: bool = True,
    argument: str = "",
) -> Iterator[Rows]:
    """The columns of a CSV file for the keys of `wanted`, block by block; empty fields are null.

    If a column is given by number, the file has no header. Other arguments as in `find_columns` and
    `read_rows`.
    """
    defects = defects or Defects("as many fields as in line 1, any with a quote in quotes, and numbers as degrees")
    separator, names, kind = read_header(path)
    # On a command line, numbers are positions of columns, unless the header has all of them.
    digits = {given for given in wanted.values() if isinstance(given, str) and given.isdecimal()}
    if not digits.issubset(names):
        wanted = {thing: int(str(given)) if given in digits else given for thing, given in wanted.items()}
    numbered = any(isinstance(given, int) for given in wanted.values())
    places = find_columns(wanted, range(len(names)) if numbered else names, path, f" in {kind}", argument)
    columns = dict.fromkeys(map(str, range(len(names)))) | {
        str(place): types.get(k, pa.string()) for k, place in places.items()
    }
    parse = partial(parse_table, columns=columns, delimiter=separator, empty_is_null=True, quotes=quotes)
    for rows in read_rows(path, parse, defects, header=not numbered, quotes=quotes):
        rows.table = rows.table.select([str(place) for place in places.values()]).rename_columns([*places])
        yield rows


def line_of(row: int, path: str | Path, wanted: Mapping[str, Hashable]) -> int:
    """The line of a row; the file is read again, because its text is not kept."""
    with warnings.catch_warnings(action="ignore"):
        for rows in table_blocks(path, wanted):
            if row < len(rows):
                return rows.place(row)[1]
            row -= len(rows)
    raise DataFormatError(f"the file must stay as it is while it is read, found {row} rows fewer; read it again", path)


def _arrow_blocks(path: Path, kind: str, wanted: Mapping[str, Hashable]) -> Iterator[pa.Table]:
    """The columns of a file of a kind that pyarrow.dataset knows, renamed to the keys of `wanted`, block by block."""
    try:
        whole = pa.dataset.dataset(path, format=kind, partitioning="hive" if path.is_dir() else None)
        names = whole.schema.names
        columns = {thing: names[k] for thing, k in find_columns(wanted, names, path).items()}
        ahead = {"batch_readahead": 2, "fragment_readahead": 1}  # more would only take memory
        for batch in whole.to_batches(columns=[*columns.values()], batch_size=1 << 18, **ahead):
            table = pa.Table.from_batches([batch]).select([*columns.values()]).rename_columns([*columns])
            for k, name in enumerate(columns):
                if name in ("user", "state") and pa.types.is_string(table.schema.types[k]):
                    table = table.set_column(k, name, table[name].dictionary_encode())
            yield table
    except (pa.ArrowInvalid, OSError) as error:
        problem = f"there must be a whole {kind.capitalize()} file, found a broken one ({error}); export it again"
        raise DataFormatError(problem, path) from None


def read_workbook(path: Path) -> pd.DataFrame:
    """The first sheet of an Excel workbook, whose rows have the numbers that Excel shows."""
    from python_calamine import CalamineError

    try:
        # Text cells stay text: "007" is no number, and "NA" is a name.
        frame = pd.read_excel(path, engine="calamine", dtype=object, keep_default_na=False, na_values=[""])
    except CalamineError as error:
        problem = f"there must be a whole Excel workbook, found a broken one ({error}); save it again"
        raise DataFormatError(problem, path) from None
    frame = frame.infer_objects().set_axis(pd.RangeIndex(2, len(frame) + 2, name="row"))
    frame.attrs["source"] = str(path)
    return frame


def read_spmf(path: Path) -> Sequences:
    """Read SPMF, a sequence per line: -1 after each item and -2 at the end; "@ITEM=7=bread" names an item."""
    names = dict[str, str]()
    items, offsets = list[str](), [0]
    try:
        lines = path.read_text("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise DataFormatError(f"an SPMF file must be text in UTF-8 ({error}); convert it", path) from None
    for number, line in enumerate(lines, 1):
        if line.startswith("@ITEM="):
            item, _, names[item] = line.removeprefix("@ITEM=").partition("=")
        elif line.strip() and not line.startswith("@"):
            if not re.fullmatch(r"\s*([0-9]{1,18}\s+-1\s+)+-2\s*", line):
                raise DataFormatError(
                    "each item of an SPMF file must be followed by -1 and each sequence by -2, found "
                    f"{line[:40]!r}; split sets of several items, and check that the file is whole",
                    path,
                    number,
                )
            items += line.split()[:-1:2]
            offsets.append(len(items))
    if not names:
        return Sequences.from_flat(np.array(items, np.int64), offsets)
    item_of = dict[str, str]()
    for item in items:
        name = names.setdefault(item, item)
        if item_of.setdefault(name, item) != item:
            both = f"{item_of[name]} and {item}"
            raise DataFormatError(f"items must have different names, found {name!r} for {both}; rename one", path)
    return Sequences.from_flat(np.array([names[item] for item in items], dtype=object), offsets)


def read_counts(path: str | Path, time: str | None = None) -> pd.DataFrame:
    """A small table of numbers, whose index is the column `time`, or one of a usual name; DataFormatError for others.

    Whole numbers stay whole. Commas are decimal beside ";" and tabs.
    """
    separator, names, _ = read_header(path)
    if number := next((name for name in names if re.fullmatch(r"\W*\d[\d\W]*", name)), None):
        remedy = f"add a line of names, such as 'cell {number}': a first row of counts would be published as it is"
        raise DataFormatError(f"counts must begin with names of their columns, found {number!r}; {remedy}", path)
    content = b"".join(file_blocks(path, lambda: 1)).removeprefix(MARK)
    decimal = "," if separator != "," and re.search(rb"\d,\d", content) else "."
    try:
        with warnings.catch_warnings(action="error", category=pd.errors.ParserWarning):
            counts = pd.read_csv(BytesIO(content), sep=separator, decimal=decimal, index_col=False)
    except (pd.errors.ParserError, pd.errors.ParserWarning, UnicodeDecodeError) as error:
        must = "counts must be in UTF-8, with as many fields in each line as in the first"
        raise DataFormatError(f"{must}, found: {str(error).strip()}; export them again", path) from None
    times = [name for name in counts if name == time or (time is None and plain_name(name) in USUAL_NAMES["time"])][:1]
    if time is not None and not times:
        raise DataFormatError(f"counts must have a column of times {time!r}, found {', '.join(counts)}; name it", path)
    counts = counts.set_index(times) if times else counts
    for name, column in counts.items():  # a cell that is no number would get no noise
        wrong = ~np.isfinite(pd.to_numeric(column, errors="coerce").astype(float)) | (column.dtype.kind not in "iuf")
        if wrong.any():
            place, remedy = f"{str(column[wrong].iloc[0])!r} in column {name!r}", "name a column of times 'time'"
            raise DataFormatError(f"counts must be such as 1234 or 98.2, found {place}; correct it, or {remedy}", path)
    if not counts.size:
        raise DataFormatError(f"there must be a row and a column of counts, found {counts.shape}; add them", path)
    return counts


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
    is_text: bool


def open_source(data: Path | pd.DataFrame, wanted: Mapping[str, Hashable]) -> Source:
    """The wanted columns; of a folder without a column of users, each file is a user's."""
    if isinstance(data, pd.DataFrame):
        name, kind = data.attrs.get("source", "the DataFrame"), data.index.name or "row"
        columns = find_columns(wanted, list(data.columns), name)
        frame = data.iloc[:, [*columns.values()]].set_axis([*columns], axis=1)
        blocks = iter([frame] if len(frame) else [])
        return Source(name, blocks, lambda row: f"{kind} {data.index[row]} of {name}", is_text=False)
    files, starts = _files_of(data), [0]

    def place(row: int) -> str:
        number = int(np.searchsorted(starts, row, "right")) - 1
        file, row = files[number], row - starts[number]
        if format_of(file) is not None:
            return f"row {row} of {file}"
        return f"line {line_of(row, file, wanted)} of {file}"

    is_text = all(format_of(file) is None for file in files)
    return Source(str(data), _blocks_of_files(data, files, wanted, starts), place, is_text)


def format_of(path: Path) -> str | None:
    """The format of a file that is not text, or of a folder that is partitioned."""
    if path.is_dir():
        return "parquet"
    with open(path, "rb") as file:
        head = file.read(1 << 16)
    return next((kind for kind, pattern in FORMATS.items() if re.match(pattern, head)), None)


def column_names(data: Path | pd.DataFrame) -> list[Hashable]:
    """The names of the columns of a DataFrame, of a file, or of the first file of a folder."""
    if isinstance(data, pd.DataFrame):
        return list(data.columns)
    first = _files_of(data)[0]
    kind = format_of(first)
    if kind == "excel":
        return list(read_workbook(first).columns)
    return [*(pa.dataset.dataset(first, format=kind).schema.names if kind else read_header(first)[1])]


def _files_of(path: Path) -> list[Path]:
    """The file itself, or the tables of a folder; a folder that is partitioned counts as one file."""
    if not path.is_dir():
        return [path]
    filled = sorted(file for file in path.iterdir() if file.is_file() and file.stat().st_size)
    files = [file for file in filled if file.suffix.lower() in TABLES]
    if files:
        if others := [file.name for file in filled if file not in files and file.name[0] not in "._"]:
            ends = f"only those that end in {', '.join(TABLES)} are read"
            warn_caller(f"{counted(len(others), 'file')} of {path} left out, such as {others[0]!r}: {ends}")
        return files
    if next(path.rglob("*.parquet"), None):
        return [path]
    plt = next(path.rglob("*.plt"), None)
    remedy = "read it by experiments.datasets.readers.geolife" if plt else "check it"
    problem = f"there must be files that end in {', '.join(TABLES)}, found {plt or 'none'}; {remedy}"
    raise DataFormatError(problem, path)


def _blocks_of_files(
    path: Path, files: list[Path], wanted: Mapping[str, Hashable], starts: list[int]
) -> Iterator[pd.DataFrame]:
    """The blocks of all files, which must have the same columns; `starts` gets the first row after each file."""
    rows, names, schema = 0, list[str](), pa.schema([])
    for file in files:
        for table in filter(len, _blocks_of_file(file, wanted)):
            if "user" not in table.column_names and files != [path]:
                user = re.sub(f"({'|'.join(map(re.escape, TABLES))})+$", "", file.name, flags=re.IGNORECASE)
                users = pa.array([user] * len(table), pa.string())
                table = table.append_column("user", users.dictionary_encode())
            names = names or table.column_names
            if set(names) != set(table.column_names):
                raise DataFormatError(
                    f"all files of a folder must have the columns {', '.join(names)}, found "
                    f"{', '.join(table.column_names)}; add or rename one",
                    file,
                )
            others = pa.schema([column for column in table.schema if column.name not in TIMES])
            try:
                schema = pa.unify_schemas([schema, others], promote_options="default")
            except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
                raise unlike_columns(error, path) from None
            rows += len(table)
            yield table.to_pandas(integer_object_nulls=True)
        starts.append(rows)


def unlike_columns(error: Exception, path: str | Path) -> DataFormatError:
    """The error for a column that is of one kind here and of another one there."""
    return DataFormatError(f"a column must be of one kind in all files, found two ({error}); convert one", path)


def _blocks_of_file(path: Path, wanted: Mapping[str, Hashable]) -> Iterator[pa.Table]:
    """The columns of a file, renamed to the keys of `wanted`, block by block."""
    kind = format_of(path)
    if kind == "excel":
        problem = "files of a folder must be text, Parquet, Feather or JSON lines, found an Excel workbook"
        raise DataFormatError(f"{problem}; read it alone, or save it as CSV", path)
    if kind in (None, "spmf"):  # SPMF files are read alone, not in a folder
        return (rows.table for rows in table_blocks(path, wanted))
    return _arrow_blocks(path, kind, wanted)
