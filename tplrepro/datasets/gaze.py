"""Gaze: where on a screen people look, one recording a file, as comma-separated values with a header.

There is no common format: the caller names the columns of time and coordinates, the unit of the coordinates, and how
user and recording are told from a file's name. Two layouts are given: `ANDERSSON2017` (30 subjects watching pictures,
videos and moving dots, 500 Hz, pixels) and `GAZEGRAPH` (8 subjects at six desktop activities, 30 Hz, shares of the
screen), to be passed as ``load(path, **GAZEGRAPH)``.

Times are seconds since the beginning of a recording: there is no clock, so no time zone.

Known defects, skipped and counted: lost samples, which trackers write as (0, 0) or leave empty; samples off the screen,
where a screen is given; repeated times (all but the first).

References
----------
R. Andersson, L. Larsson, K. Holmqvist, M. Stridh, M. Nyström, "One algorithm to rule them all? An evaluation and
discussion of ten eye movement event-detection algorithms", Behavior Research Methods 49, 2017,
doi 10.3758/s13428-016-0738-9.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from tplrepro.datasets import registry
from tplrepro.datasets.reading import (
    DataFormatError,
    Defects,
    describe_content,
    finish,
    first_true,
    line_blocks,
    line_of_row,
    parse_lines,
    parse_table,
    warn_unterminated,
)
from tplrepro.datasets.stand_ins.gaze import write
from tplrepro.datasets.stand_ins.places import check_size
from tplrepro.datasets.writing import stand_in

__all__ = ["ANDERSSON2017", "GAZEGRAPH", "SCREENS", "areas", "fetch", "load", "synthetic"]

#: Andersson et al. 2017: pixels of a screen of 1024 x 768, 500 Hz; "UH21_trial17.csv" is user UH21.
ANDERSSON2017 = {"time": "t_s", "x": "x_px", "y": "y_px", "unit": "px", "extra": ("event_label",)}
#: GazeGraph: shares of the screen's width and height, 30 Hz; "P1_READ.csv" is user P1.
GAZEGRAPH = {"time": "t_s", "x": "x", "y": "y", "unit": "share"}
#: Width and height of the screen of each layout, in the unit of its coordinates.
SCREENS = {"GAZEGRAPH": (1.0, 1.0), "ANDERSSON2017": (1024.0, 768.0)}

NAME = r"(?P<user>[^_]+)_(?P<recording>.+)"


def fetch(**options):
    """Download gaze recordings: none are published as CSV, so `url` of a zip of such a folder must be given.

    Raises
    ------
    registry.DatasetNotFoundError
        Without `url`; the message says where the recordings are described and how to lay them out.
    """
    return registry.fetch("gaze", **options)


def load(
    path=None,
    *,
    time: str,
    x: str,
    y: str,
    unit: str = "px",
    extra: tuple[str, ...] = (),
    name: str = NAME,
    missing: tuple[float, float] | None = (0.0, 0.0),
    screen: tuple[float, float] | None = None,
    time_unit: float = 1.0,
    strict: bool = False,
    max_malformed: int = 0,
) -> pd.DataFrame:
    """Read recordings into a tidy frame, one sample a row, ordered by user, recording and time.

    Parameters
    ----------
    path : path-like, optional
        A folder of CSV files, or one file; by default it is looked for as `registry.locate` says, by the columns.
    time, x, y : str
        Columns of the files.
    unit : str
        Unit of the coordinates, noted in ``attrs["unit"]``: "px" or "share", say.
    extra : tuple of str
        More columns to keep, as they stand.
    name : str
        Regular expression for a file's name without its ending, with groups ``user`` and ``recording``.
    missing : (float, float) or None
        Coordinates that stand for a lost sample.
    screen : (width, height), optional
        Samples out of [0, width] x [0, height] are defects.
    time_unit : float
        Seconds in one unit of the files' times: 0.001 for milliseconds.
    strict : bool
        Raise at the first defect instead of skipping and counting.
    max_malformed : int
        How many lines that do not follow the format may be skipped and counted; one more is an error.

    Returns
    -------
    DataFrame
        user, recording : categorical; time : float64, seconds since the recording's beginning; x, y : float64, in
        `unit`; and the columns of `extra`. ``attrs``: source, synthetic, unit, screen, skipped, skipped_examples,
        reordered.

    Raises
    ------
    registry.DatasetNotFoundError, DataFormatError, OSError
    """
    wanted = [time, x, y, *extra]
    if len(set(wanted)) != len(wanted):
        raise ValueError(f"time, x, y and extra must name different columns, found {wanted}; correct the names")
    pattern = _checked_pattern(name)
    path = registry.locate("gaze", path, accept=lambda p: _has_columns(p, wanted))
    files = sorted(_csv_files(path))
    if not files:
        raise DataFormatError("there must be CSV files, one a recording, found none; correct path=", path)
    defects = Defects(strict, max_malformed, f"a line of values with numbers for {time!r}, {x!r} and {y!r}")
    parts, whose = [], []
    for file in files:
        match = pattern.fullmatch(file.name.removesuffix(".gz").removesuffix(".csv"))
        if not match:
            raise DataFormatError(
                f"the file's name must match {name!r} to tell user and recording; pass name= for names of this form",
                file,
            )
        part = _read(file, time, x, y, extra, missing, screen, time_unit, defects)
        parts.append(part)
        whose.append((match["user"], match["recording"], len(part)))
    users, recordings, sizes = zip(*whose, strict=True)
    frame = pd.concat(parts, ignore_index=True)
    frame.insert(0, "user", pd.Categorical(np.repeat(np.array(users, dtype=object), sizes), sorted(set(users))))
    frame.insert(
        1, "recording", pd.Categorical(np.repeat(np.array(recordings, dtype=object), sizes), sorted(set(recordings)))
    )
    frame = frame.sort_values(["user", "recording", "time"], kind="stable", ignore_index=True)
    return finish(frame, path, defects, unit=unit, screen=screen)


def _checked_pattern(name: str) -> re.Pattern:
    try:
        pattern = re.compile(name)
    except re.error as error:
        raise ValueError(
            f"name must be a regular expression, found {name!r} ({error}); the default is {NAME!r}"
        ) from None
    if not {"user", "recording"} <= set(pattern.groupindex):
        raise ValueError(f"name must have groups 'user' and 'recording', found {name!r}; the default is {NAME!r}")
    return pattern


def _csv_files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    return [p for p in path.iterdir() if p.name.endswith((".csv", ".csv.gz")) and not p.name.startswith(".")]


def _has_columns(path: Path, wanted) -> bool:
    """Whether the first file of a folder has the columns: tells which of several sets is meant."""
    files = sorted(_csv_files(path))
    if not files:
        return False
    block, _ = next(line_blocks(files[0]), (b"", 1))
    return set(wanted) <= set(_header(block))


def _header(block: bytes) -> list[str]:
    line = block.split(b"\n", 1)[0].rstrip(b"\r").removeprefix(b"\xef\xbb\xbf")
    return [c.strip() for c in line.decode("utf-8", "replace").split(",")]


def _read(file, time, x, y, extra, missing, screen, time_unit, defects) -> pd.DataFrame:
    """One recording without its defects."""
    columns, parts = None, []
    last = -np.inf
    for block, first_line in line_blocks(file):
        warn_unterminated(block, first_line, file, defects.strict)
        if columns is None:
            columns = _columns(block, file, time, x, y, extra)
            block, first_line = block.partition(b"\n")[2], 2
            if not block.strip():
                continue
        parsed, block, _ = parse_lines(
            block,
            first_line,
            file,
            lambda lines: parse_table(lines, columns, ",", empty_is_null=True),  # noqa: B023
            defects,
            encoding="utf-8",
        )
        seconds = parsed[time].to_numpy() * time_unit
        across, down = parsed[x].to_numpy(), parsed[y].to_numpy()
        rows = np.arange(len(seconds))
        lost = np.isnan(seconds) | np.isnan(across) | np.isnan(down)
        if missing is not None:
            lost |= (across == missing[0]) & (down == missing[1])
        away = ~(np.isfinite(across) & np.isfinite(down) & np.isfinite(seconds))
        if screen is not None:
            away |= (across < 0) | (across > screen[0]) | (down < 0) | (down > screen[1])
        for bad, reason in ((lost, "lost sample"), (away, "sample off the screen")):
            if bad[rows].any():
                row = int(rows[first_true(bad[rows])])
                defects.known(
                    reason,
                    int(bad[rows].sum()),
                    file,
                    lambda row=row: line_of_row(block, row, first_line),  # noqa: B023
                )
                rows = rows[~bad[rows]]
        back = np.diff(seconds[rows], prepend=last) < 0
        if back.any():
            row = int(rows[first_true(back)])
            defects.out_of_order(int(back.sum()), file, lambda: line_of_row(block, row, first_line))  # noqa: B023
        part = {"time": seconds[rows], "x": across[rows], "y": down[rows]}
        part |= {name: parsed[name].take(pa.array(rows)).to_pandas() for name in extra}
        if len(rows):
            last = part["time"][-1]
        parts.append(pd.DataFrame(part, copy=False))
    if columns is None:
        raise DataFormatError("the file is empty; record or download it again", file)
    if not parts:
        defects.known("file without samples", 1, file, lambda: (2, ""))
        parts = [pd.DataFrame({c: pd.Series(dtype=float) for c in ("time", "x", "y", *extra)})]
    frame = pd.concat(parts, ignore_index=True).sort_values("time", kind="stable", ignore_index=True)
    again = frame["time"].duplicated().to_numpy()
    if again.any():
        stamp = f"time {frame['time'].iloc[first_true(again)]:g}"
        defects.known("duplicate time", int(again.sum()), file, lambda: (None, stamp))
        frame = frame[~again]
    return frame


def _columns(block: bytes, file, time, x, y, extra) -> dict:
    header = _header(block)
    absent = [c for c in (time, x, y, *extra) if c not in header]
    if absent:
        raise DataFormatError(
            f"the header must have the columns {[time, x, y, *extra]}, found {header if len(header) < 20 else ''} in "
            f"{describe_content(block)}; pass the names of this file's columns",
            file,
            1,
        )
    if len(set(header)) != len(header):
        raise DataFormatError(f"the header must name each column once, found {header}; rename one", file, 1)
    kinds = dict.fromkeys((time, x, y), pa.float64()) | dict.fromkeys(extra, pa.string())
    return {column: kinds.get(column) for column in header}


def areas(frame: pd.DataFrame, columns: int, rows: int, width: float, height: float) -> np.ndarray:
    """Area of interest of each sample: cells of a grid over the screen, numbered along the lines; -1 off the screen.

    Parameters
    ----------
    frame : DataFrame
        With columns x and y, y pointing down.
    columns, rows : int
        Number of areas across and down.
    width, height : float
        Size of the screen, in the unit of the coordinates.

    Returns
    -------
    int32 array (m,)

    Examples
    --------
    >>> import pandas as pd
    >>> areas(pd.DataFrame({"x": [0.0, 0.9, 1.5], "y": [0.1, 1.0, 0.5]}), 2, 2, 1.0, 1.0).tolist()
    [0, 3, -1]
    """
    columns, rows = check_size(columns, "columns"), check_size(rows, "rows")
    if not (width > 0 and height > 0):
        raise ValueError(f"width and height must be positive, found {width} and {height}; give the screen's size")
    across, down = frame["x"].to_numpy(), frame["y"].to_numpy()
    on = (across >= 0) & (across <= width) & (down >= 0) & (down <= height)
    column = np.minimum(np.where(on, across, 0) / width * columns, columns - 1).astype(np.int32)
    row = np.minimum(np.where(on, down, 0) / height * rows, rows - 1).astype(np.int32)
    return np.where(on, row * columns + column, -1).astype(np.int32)


def synthetic(
    n_users: int = 8,
    seed: int = 0,
    path=None,
    *,
    seconds: float = 30.0,
    rate: float = 60.0,
    n_recordings: int = 1,
    layout: dict | None = None,
) -> pd.DataFrame:
    """Write a stand-in in the layout of one of the recorded sets, and read it back.

    The gaze rests on areas of interest, chosen by a popularity with a heavy tail and more often near the last one, for
    some 0.3 s with a tremor, and jumps between them; now and then samples are lost, written as (0, 0).

    Parameters
    ----------
    n_users : int
    seed : int
    path : path-like, optional
        Folder to write; by default a temporary one.
    seconds, rate : float
        Length of a recording, and samples a second.
    n_recordings : int
        Recordings a user.
    layout : dict
        `GAZEGRAPH` (the default) or `ANDERSSON2017`.

    Returns
    -------
    DataFrame
        As `load` gives it, with ``attrs["synthetic"]`` True.
    """
    layout = GAZEGRAPH if layout is None else layout
    options = {"seconds": seconds, "rate": rate, "n_recordings": n_recordings, "layout": layout}
    return stand_in(
        path,
        "gaze",
        lambda target: write(target, n_users, seed, **options),
        lambda target: load(target, **layout),
    )
