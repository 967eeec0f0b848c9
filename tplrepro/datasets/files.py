"""Files of observations that are not text: Parquet, Feather, JSON lines, Excel, and sequences in SPMF."""

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset

from tplrepro.datasets.reading import DataFormatError
from tplrepro.markov.sequences import Sequences


def arrow_names(path: Path, kind: str) -> list[str]:
    """The names of the columns of a file of a kind that pyarrow.dataset knows."""
    return pa.dataset.dataset(path, format=kind).schema.names


def arrow_blocks(path: Path, kind: str, find_columns: Callable[[Sequence[str]], dict[str, int]]) -> Iterator[pa.Table]:
    """The columns that `find_columns` takes from the names of all, renamed to its keys, block by block."""
    try:
        whole = pa.dataset.dataset(path, format=kind, partitioning="hive" if path.is_dir() else None)
        columns = {thing: whole.schema.names[k] for thing, k in find_columns(whole.schema.names).items()}
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
    labels = np.array([names.get(item, item) for item in items], dtype=object) if names else np.array(items, np.int64)
    return Sequences.from_flat(labels, offsets)
