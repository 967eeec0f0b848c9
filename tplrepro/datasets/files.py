"""Blocks of the wanted columns of a file of observations, of a folder of such files, or of a DataFrame.

Files are text, plain or compressed, of one of the `FORMATS`, or folders of either; a folder may be
partitioned. SPMF files hold whole sequences.
"""

import re
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset

from tplrepro.datasets.reading import DataFormatError
from tplrepro.datasets.table import find_columns, line_of, read_header, table_blocks
from tplrepro.markov.sequences import Sequences

#: Format -> pattern of the first bytes of a file; any other file is text. The first three are names of
#: pyarrow.dataset.
FORMATS = {
    "parquet": rb"PAR1",
    "ipc": rb"ARROW1",
    "json": rb'{"',
    "excel": rb"(?s)PK\x03\x04.*(xl/|Content_Types)",
    "spmf": rb"(@[^\n]*\n|\s)*\d+\s+(-1\s+\d+\s+)*-1\s+-2\s",
}
#: Ends of the names of files that are read from a folder.
TABLES = (".csv", ".tsv", ".txt", ".parquet", ".feather", ".arrow", ".jsonl", ".gz", ".bz2", ".xz", ".zip")
OPTIONAL = ("user", "time")
TIMES = ("time", "clock", "until")


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
        columns = find_columns(wanted, list(data.columns), name, optional=OPTIONAL)
        frame = data.iloc[:, [*columns.values()]].set_axis([*columns], axis=1)
        blocks = iter([frame] if len(frame) else [])
        return Source(name, blocks, lambda row: f"{kind} {data.index[row]} of {name}", is_text=False)
    files, starts = _files_of(data), [0]

    def place(row: int) -> str:
        number = int(np.searchsorted(starts, row, "right")) - 1
        file, row = files[number], row - starts[number]
        if format_of(file) is not None:
            return f"row {row} of {file}"
        return f"line {line_of(row, file, wanted, optional=OPTIONAL)} of {file}"

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
    files = sorted(file for file in path.iterdir() if file.suffix in TABLES and file.stat().st_size)
    if files:
        return files
    if next(path.rglob("*.parquet"), None):
        return [path]
    plt = next(path.rglob("*.plt"), None)
    remedy = "read it by tplrepro.datasets.geolife" if plt else "check it"
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
                users = pa.array([file.name.partition(".")[0]] * len(table), pa.string())
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
    if kind in (None, "spmf"):  # SPMF files are read alone, not in a folder
        yield from (rows.table for rows in table_blocks(path, wanted, optional=OPTIONAL))
        return
    try:
        whole = pa.dataset.dataset(path, format=kind, partitioning="hive" if path.is_dir() else None)
        names = whole.schema.names
        columns = {thing: names[k] for thing, k in find_columns(wanted, names, path, optional=OPTIONAL).items()}
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
        frame = pd.read_excel(path, engine="calamine")
    except CalamineError as error:
        problem = f"there must be a whole Excel workbook, found a broken one ({error}); save it again"
        raise DataFormatError(problem, path) from None
    frame.index = pd.RangeIndex(2, len(frame) + 2, name="row")
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
    labels = np.array([names.get(item, item) for item in items], dtype=object) if names else np.array(items, np.int64)
    return Sequences.from_flat(labels, offsets)
