"""From anybody's observations (who was in which state at what time) to sequences of states.

Observations come as a CSV file (plain or gzip-compressed), a Parquet file, a folder of either, an SPMF file
or a DataFrame. A state is the value of a column, or the cell of a geographic position. Users and states keep
their names, including "007" and "NA": text becomes whole numbers only if the whole column consists of whole
numbers. Observations are ordered by instant; time steps follow the local clock given by the offset or time
zone.
"""

import re
from collections.abc import Hashable, Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from tplrepro.datasets.grid import Box, Grid
from tplrepro.datasets.reading import DataFormatError, describe_content, separator_of
from tplrepro.datasets.time_steps import fixed_steps, observed_sequences
from tplrepro.markov.sequences import USUAL_NAMES, Sequences, whole_numbers
from tplrepro.validation import warn_caller

TABLES = (".csv", ".tsv", ".txt", ".parquet", ".gz")  # files read from a folder
POSITION = ("latitude", "longitude")
KINDS = dict.fromkeys(POSITION, pa.float64()) | {
    "time": pa.string()
}  # column types; other columns are coded as categories
OFFSET = r"(\d:\d\d\S*?)\s*(?:Z|[+-]\d\d(?::?\d\d)?)$"  # after a time of day
SPMF = re.compile(rb"(@[^\n]*\n|\s)*\d+\s+(-1\s+\d+\s+)*-1\s+-2\s")


def read_sequences(
    data: str | Path | pd.DataFrame,
    *,
    user: Hashable = None,
    time: Hashable = None,
    state: Hashable = None,
    latitude: Hashable = None,
    longitude: Hashable = None,
    cell_km: float | None = None,
    box: Box | tuple[float, float, float, float] | None = None,
    step: str | float | timedelta | None = None,
    max_gap: str | float | timedelta | None = None,
    time_format: str | None = None,
) -> Sequences:
    """Sequences of states from observations, one per row in any order.

    Parameters
    ----------
    data : DataFrame, or path of a CSV, Parquet or SPMF file, or of a folder of CSV or Parquet files
    user, time, state : column names, or column numbers from 0 in CSV files without a header; by default the first
        column with one of the `USUAL_NAMES`
        Without users each file is one user, with a warning if that user would be in two states at once;
        without times rows are in order. Times are time stamps, text in ISO 8601 or in `time_format` (see
        `strptime`), or numbers, which are seconds if `step` is given. A row without a state ends a sequence.
    latitude, longitude, cell_km : instead of `state`, the columns of degrees of WGS 84 and the side of the cells of a
        `Grid` over `box`, (south, north, west, east), by default around all positions
        States are named by row and column of the grid. A position outside the box ends a sequence.
    step, max_gap : with `step`, one state per time step as in `fixed_steps`, where the last known state holds for
        `max_gap`, by default one step; without `step`, one state per row, and a gap longer than `max_gap`
        ends a sequence

    Raises DataFormatError, a ValueError, if a file cannot be read; ValueError for a missing column, missing
    or unreadable users or times, and arguments that do not fit together; and the errors of `fixed_steps` and
    `Grid`.

    Examples
    --------
    >>> visits = pd.DataFrame({"who": ["007", "007", "8"], "day": [2, 1, 1], "place": ["bar", "NA", "bar"]})
    >>> found = read_sequences(visits, user="who", time="day", state="place")
    >>> found.users.tolist(), found.labels.tolist(), [sequence.tolist() for sequence in found]
    (['007', '8'], ['NA', 'bar'], [[0, 1], [1]])
    """
    positions = dict(zip(POSITION, (latitude, longitude), strict=True))
    has_coordinates = any(argument is not None for argument in (latitude, longitude, box))
    if (has_coordinates and cell_km is None) or (cell_km is not None and state is not None):
        raise ValueError(
            f"states must be a column or the cells of positions, found state={state!r}, cell_km={cell_km!r}, "
            f"{positions}; give state, or cell_km with the columns of positions"
        )
    wanted = {"user": user, "time": time} | ({"state": state} if cell_km is None else positions)
    source = "the DataFrame" if isinstance(data, pd.DataFrame) else str(data)
    if isinstance(data, pd.DataFrame):
        columns = _columns(wanted, list(data.columns), source)
        frame = data[[*columns.values()]].set_axis([*columns], axis=1)
    elif (path := Path(data)).is_dir():
        frame = _read_folder(path, wanted)
    elif _is_spmf(path):
        return _read_spmf(path)
    else:
        frame = _read_file(path, wanted)
    if frame.empty or (step is not None and "time" not in frame):
        lacking = "observations, found no row" if frame.empty else f"times, found none for step={step!r}"
        raise ValueError(f"there must be {lacking} in {source}; check the file and the names of its columns")
    codes, users = pd.factorize(frame["user"]) if "user" in frame else (np.zeros(len(frame), int), [0])
    if (codes < 0).any():
        raise ValueError(f"users must not be missing, found none in row {np.argmax(codes < 0)} of {source}; drop it")
    instants, clock = _times(frame["time"], time_format, source) if "time" in frame else (range(len(frame)),) * 2
    if cell_km is None:
        cells, states = pd.factorize(frame["state"])
    else:
        degrees = [frame[name].to_numpy(float) for name in positions]
        around = [float(edge(one)) for one in degrees for edge in (np.nanmin, np.nanmax)]
        grid = Grid(Box(*(around if box is None else box)), cell_km)
        cells = grid.cell(*degrees)
    if "user" not in frame and "time" in frame:
        visits = pd.DataFrame({"time": instants, "cell": cells}).drop_duplicates()
        if visits["time"].duplicated().any():
            warn_caller(
                f"all rows of {source} are taken for one user's, though some share a time and not the state; give "
                "user= the column that tells users apart",
            )
    reports = pd.DataFrame({"user": codes, "time": instants if step is None else clock, "cell": cells})
    if step is None:
        found = observed_sequences(reports, max_gap=max_gap)
    else:
        found = fixed_steps(reports, step, step if max_gap is None else max_gap)
    labels = np.asarray(states)[found.labels] if cell_km is None else np.array(grid.labels(found.labels))
    return Sequences.from_flat(labels[found.values], found.offsets, np.asarray(users)[found.users])


def _columns(wanted: Mapping[str, Hashable], names: list, source: str) -> dict[str, Hashable]:
    """The column for each key of `wanted`, by its name or a usual name; users and times are optional."""
    usual = {str(name).casefold().strip(): name for name in reversed(names)}
    found = {}
    for thing, given in wanted.items():
        column = next((usual[name] for name in USUAL_NAMES[thing] if name in usual), None) if given is None else given
        if given not in [None, *names] or (column is None and thing not in ("user", "time")):
            raise ValueError(
                f"{thing} must be a column of {source}, found {given!r}; give {thing}= one of "
                f"{', '.join(map(repr, names[:12]))}{', ...' * (len(names) > 12)}"
            )
        if column is not None:
            found[thing] = column
    return found


def _read_folder(path: Path, wanted: Mapping[str, Hashable]) -> pd.DataFrame:
    """All files of a folder; without a column of users, the name of a file is its user."""
    files = sorted(file for file in path.iterdir() if file.suffix in TABLES and file.stat().st_size)
    if not files:
        raise DataFormatError(f"a folder must hold files that end in {', '.join(TABLES)}, found none; check it", path)
    frames = [_read_file(file, wanted) for file in files]
    for frame, file in zip(frames, files, strict=True):
        if "user" not in frame:
            frame["user"] = file.name.partition(".")[0]
    return pd.concat(frames, ignore_index=True)


def _read_file(path: Path, wanted: Mapping[str, Hashable]) -> pd.DataFrame:
    """The columns of a file, renamed to the keys of `wanted`."""
    with open(path, "rb") as file:
        start = file.read(4)
    try:
        if start == b"PAR1":
            columns = _columns(wanted, pa.parquet.read_schema(path).names, str(path))
            frame = pa.parquet.read_table(path, columns=[*columns.values()]).to_pandas()
            return frame[[*columns.values()]].set_axis([*columns], axis=1)
        compression = "gzip" if start.startswith(b"\x1f\x8b") else None
        with pa.input_stream(path, compression=compression) as stream:
            first = stream.read(1 << 16).removeprefix(b"\xef\xbb\xbf").partition(b"\n")[0].strip(b"\r")
        if not first:
            raise DataFormatError("there must be a table, found an empty first line; export it again", path)
        form = pa.csv.ParseOptions(delimiter=separator_of(first.decode("utf-8", "replace")), newlines_in_values=True)
        names = pa.csv.read_csv(pa.BufferReader(first + b"\n"), parse_options=form).column_names
        numbered = any(isinstance(given, int) for given in wanted.values())
        columns = _columns(wanted, [*range(len(names))] if numbered else names, str(path))
        kinds = {str(name): KINDS.get(thing, pa.dictionary(pa.int32(), pa.string())) for thing, name in columns.items()}
        with pa.input_stream(path, compression=compression) as stream:
            table = pa.csv.read_csv(
                stream,
                pa.csv.ReadOptions(column_names=[*map(str, range(len(names)))] if numbered else None),
                form,
                pa.csv.ConvertOptions(
                    column_types=kinds, include_columns=[*kinds], null_values=[""], strings_can_be_null=True
                ),
            )
    except (pa.ArrowInvalid, OSError) as error:
        raise DataFormatError(
            f"there must be a table of text in UTF-8, found {describe_content(start)} ({error}); export it again", path
        ) from None
    frame = table.unify_dictionaries().to_pandas().set_axis([*columns], axis=1)
    for name in frame.columns.difference([*KINDS]):
        frame[name] = frame[name].cat.rename_categories(whole_numbers(frame[name].cat.categories.tolist()))
    return frame


def _times(column: pd.Series, time_format: str | None, source: str) -> tuple[np.ndarray, np.ndarray]:
    """Instants, which order the observations, and local clock times, which determine the time steps."""
    missing = column.isna().to_numpy()
    if missing.any():
        raise ValueError(f"times must not be missing, found none in row {np.argmax(missing)} of {source}; drop it")
    if column.dtype.kind not in "iufM":
        with suppress(pa.ArrowInvalid, pa.ArrowTypeError):  # the fast path for uniform columns
            text = pa.array(column.astype(str), pa.string())
            kind = pa.float64() if re.fullmatch(r"[-+.\deE]+", text[0].as_py()) else pa.timestamp("us")
            column = column if time_format else text.cast(kind).to_pandas()
    if column.dtype.kind in "iufM":
        if isinstance(column.dtype, pd.DatetimeTZDtype):
            return column.dt.tz_convert(None).to_numpy(), column.dt.tz_localize(None).to_numpy()
        return (column.to_numpy(),) * 2
    codes, distinct = pd.factorize(column.astype(str))
    texts, form = pd.Series(distinct), time_format or "ISO8601"
    there = texts.str.replace(OFFSET, r"\1", regex=True)
    instants = pd.to_datetime(texts, format=form, utc=True, errors="coerce").dt.tz_localize(None)
    clock = pd.to_datetime(there, format=form.replace("%z", "").strip(), errors="coerce")
    known = there != texts
    if (wrong := instants.isna() | clock.isna() | (known != known[0])).any():
        first = np.argmax(wrong)
        raise ValueError(
            f"times must all be numbers, or in the format {form}, all with an offset from UTC or all without, found "
            f"{texts[first]!r} in row {np.argmax(codes == first)} of {source}; give such as "
            "time_format='%d.%m.%Y %H:%M'"
        )
    return instants.to_numpy()[codes], clock.to_numpy()[codes]


def _is_spmf(path: Path) -> bool:
    with open(path, "rb") as file:
        return SPMF.match(file.read(1 << 16)) is not None


def _read_spmf(path: Path) -> Sequences:
    """Read SPMF: each item is followed by -1, each sequence by -2; lines such as "@ITEM=7=bread" name items."""
    lines = path.read_bytes().splitlines()
    header = [line.removeprefix(b"@ITEM=").decode() for line in lines if line.startswith(b"@ITEM=")]
    try:
        numbers = np.array(b" ".join(line for line in lines if not line.startswith(b"@")).split(), dtype=np.int64)
    except ValueError as error:
        raise DataFormatError(f"an SPMF file must hold whole numbers ({error}); download it again", path) from None
    items, end = numbers >= 0, numbers == -2
    then = np.append(numbers[1:], 0)  # the end of the file follows a sequence
    wrong = np.where(items, then != -1, np.where(end, then < 0, (numbers != -1) | ((then != -2) & (then < 0))))
    if wrong.any() or not end[-1]:
        first = int(np.argmax(np.append(wrong, True)))
        raise DataFormatError(
            "each item of an SPMF file must be followed by -1 and each sequence by -2, found "
            f"{numbers[first:][:3].tolist()} in sequence {end[:first].sum()}; split sets of several items, and check "
            "that the file is whole",
            path,
        )
    labels: np.ndarray = numbers[items]
    if header:
        names = dict(line.split("=", 1) for line in header)
        labels = np.array([names.get(item, item) for item in labels.astype(str).tolist()], dtype=object)
    return Sequences.from_flat(labels, np.append(0, np.cumsum(items)[end]))
