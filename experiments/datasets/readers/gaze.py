"""Gaze: where people look on a screen, one recording per file, as comma-separated values with a
header.

There is no common format: the caller names the columns of time and coordinates and the unit of the
coordinates. Two layouts are defined, for use as ``load(path, **GAZEGRAPH)``: `ANDERSSON2017`
(Andersson et al. 2017, doi 10.3758/s13428-016-0738-9: 30 subjects watching pictures, videos and
moving dots, 500 Hz, pixels) and `GAZEGRAPH` (8 subjects at six desktop activities, 30 Hz, shares of
the screen).

Times are seconds since the beginning of a recording: there is no clock, so no time zone.

Known defects, skipped and counted: lost samples, which trackers write as (0, 0) or leave empty, and
repeated times (all but the first).
"""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from experiments.datasets.readers import registry
from tplreport.reading.table import read_header, table_blocks
from tplreport.reading.text_files import DataFormatError, Defects, finish, in_time
from tplrepro.validation import check_horizon

#: Andersson et al. 2017: pixels of a screen of 1024 x 768, 500 Hz; "UH21_trial17.csv" is user UH21.
ANDERSSON2017 = {"time": "t_s", "x": "x_px", "y": "y_px", "unit": "px"}
#: GazeGraph: shares of the screen's width and height, 30 Hz; "P1_READ.csv" is user P1.
GAZEGRAPH = {"time": "t_s", "x": "x", "y": "y", "unit": "share"}
#: Width and height of the screen of each layout, in the unit of its coordinates.
SCREENS = {"GAZEGRAPH": (1.0, 1.0), "ANDERSSON2017": (1024.0, 768.0)}

NAME = re.compile(r"([^_]+)_(.+?)\.csv(\.gz)?")


def load(
    path: str | Path | None = None, *, time: str, x: str, y: str, unit: str = "px"
) -> pd.DataFrame:
    """Read recordings into a tidy frame, one sample per row, ordered by user, recording and time.

    Parameters
    ----------
    path : path-like, optional
        A folder of files USER_RECORDING.csv, plain or gzip-compressed, or one of them; by default
        the first data folder whose files have these columns.
    time, x, y : str
        Columns of the files.
    unit : str
        Of the coordinates, such as "px" or "share".

    Returns
    -------
    DataFrame
        user, recording : categorical; time : float64, seconds since the recording's beginning;
        x, y : float64, in `unit`. ``attrs``: source, synthetic, unit, skipped, skipped_examples.

    Raises
    ------
    ValueError
        Where two names of columns are the same.
    DatasetNotFoundError, DataFormatError, OSError
        If there is nothing to read or it cannot be read.
    """
    wanted = {"time": time, "x": x, "y": y}
    if len(set(wanted.values())) != 3:
        raise ValueError(
            f"time, x and y must name different columns, found {[time, x, y]}; correct the names"
        )
    path = registry.locate("gaze", path, accept=lambda folder: _has_columns(folder, [time, x, y]))
    defects = Defects(f"a line of values with numbers for {time!r}, {x!r} and {y!r}")
    files = _csv_files(path)
    if not files:
        raise DataFormatError(
            "there must be CSV files, one a recording, found none; correct path=", path
        )
    recordings = [_read_recording(file, wanted, defects) for file in files]
    frame = pd.concat(recordings, ignore_index=True)[["user", "recording", "time", "x", "y"]]
    frame = frame.astype({"user": "category", "recording": "category"})
    frame = frame.sort_values(["user", "recording"], kind="stable", ignore_index=True)
    return finish(frame, path, defects, unit=unit)


def _csv_files(path: Path) -> list[Path]:
    """A file itself, or the recordings of a folder."""
    if path.is_file():
        return [path]
    return sorted(file for file in path.iterdir() if _is_csv(file.name))


def _is_csv(name: str) -> bool:
    return name.endswith((".csv", ".csv.gz")) and not name.startswith(".")


def _has_columns(path: Path, wanted: list[str]) -> bool:
    """Whether the first file of a folder has the columns `wanted`, by which several sets are told
    apart."""
    files = _csv_files(path)
    if not files:
        return False
    columns = read_header(files[0]).names
    return set(wanted) <= set(columns)


def _read_recording(file: Path, wanted: dict[str, str], defects: Defects) -> pd.DataFrame:
    """One recording without its defects, which are counted in `defects`, ordered by time; `wanted`
    maps time, x and y to columns of the file."""
    match = NAME.fullmatch(file.name)
    if not match:
        raise DataFormatError(
            "the file's name must tell user and recording, as P1_READ.csv does; rename it", file
        )
    tables: list[pa.Table] = []
    has_samples = False
    types = dict.fromkeys(wanted, pa.float64())
    for rows in table_blocks(file, wanted, types, defects, quotes=False):
        has_samples |= bool(rows.block.strip())
        is_finite = np.isfinite([rows[name] for name in wanted]).all(axis=0)
        is_lost = ~is_finite | ((rows["x"] == 0) & (rows["y"] == 0))
        rows.drop(is_lost, "lost sample")
        rows.put_in_time()
        tables.append(rows.table)
    defects.known("file without samples", not has_samples, lambda: (file, 2))
    frame = pa.concat_tables(tables).to_pandas().assign(user=match[1], recording=match[2])
    order = in_time(frame["time"].to_numpy(), defects, lambda row: (file, None))
    return frame.iloc[order]


def areas(frame: pd.DataFrame, columns: int, rows: int, width: float, height: float) -> np.ndarray:
    """Area of interest of each sample: the cell of a grid over the screen.

    Parameters
    ----------
    frame : DataFrame
        Columns x and y, y pointing down.
    columns, rows : int
        Numbers of cells across and down.
    width, height : float
        Of the screen, in the unit of the coordinates.

    Returns
    -------
    int32 array (m,)
        Cells are numbered row by row; -1 is off the screen.

    Raises
    ------
    ValueError
        If a number or a size is not positive.

    Examples
    --------

    >>> areas(pd.DataFrame({"x": [0.0, 0.9, 1.5], "y": [0.1, 1.0, 0.5]}), 2, 2, 1.0, 1.0).tolist()
    [0, 3, -1]
    """
    columns = check_horizon(columns, "columns")
    rows = check_horizon(rows, "rows")
    if not (width > 0 and height > 0):
        raise ValueError(
            f"width and height must be positive, found {width} and {height}; give the screen's size"
        )
    across = frame["x"].to_numpy()
    down = frame["y"].to_numpy()
    is_on_screen = (across >= 0) & (across <= width) & (down >= 0) & (down <= height)
    column = _interval(np.where(is_on_screen, across, 0) / width, columns)
    row = _interval(np.where(is_on_screen, down, 0) / height, rows)
    return np.where(is_on_screen, row * columns + column, -1).astype(np.int32)


def _interval(share: np.ndarray, count: int) -> np.ndarray:
    """The number, from 0 on, of the one of `count` equal parts of [0, 1] in which each share is; 1
    is in the last one."""
    return np.minimum(share * count, count - 1).astype(np.int32)
