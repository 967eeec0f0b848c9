"""Kosarak: page visits of a Hungarian news site, one session a line, page ids in the order of the
file.

Format (FIMI): page ids, whole numbers, separated by blanks; also gzip-compressed. The official file
has 990,002 sessions and 41,270 pages. There are no times and no users: each session counts as a
user, as in [3].

Reading: pyarrow parses all ids of a block as one column, and the line ends separate the sessions.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from experiments.datasets.readers import registry
from tplreport.reading.text_files import Defects, finish, parse_table, read_rows
from tplrepro.markov.sequences import Sequences

EXPECTED = "a line of page ids, whole numbers from 0 to 2147483647 separated by blanks"
BLANKS_TO_LINE_ENDS = bytes.maketrans(b" \t\r", b"\n\n\n")
BLANK = ord(" ")
LINE_END = ord("\n")


def load(path: str | Path | None = None) -> pd.DataFrame:
    """Read sessions into a tidy frame, one click per row.

    `path` is a file, plain or gzip-compressed; errors are those of `geolife.load`. The known defect
    is an empty session.

    Returns
    -------
    DataFrame
        session : int32, the number of its line in the file, from 0; position : int32, the number of
        the click in its session, from 0; page : int32. ``attrs``: source, synthetic, skipped,
        skipped_examples.
    """
    path = registry.locate("kosarak", path)
    defects = Defects(EXPECTED)
    pages = []
    lengths = []
    sessions = []
    for rows in read_rows(path, _parse, defects):
        length = _count_ids(rows.block)
        _count_empty_sessions(length, rows.first_line, path, defects)
        filled = np.flatnonzero(length)
        pages.append(rows["page"])
        lengths.append(length[filled])
        sessions.append((filled + (rows.first_line - 1)).astype(np.int32))
    length = np.concatenate(lengths)
    columns = {
        "session": np.repeat(np.concatenate(sessions), length),
        "position": _positions(length),
        "page": np.concatenate(pages),
    }
    return finish(pd.DataFrame(columns, copy=False), path, defects)


def _count_empty_sessions(
    length: np.ndarray, first_line: int, path: Path, defects: Defects
) -> None:
    """Count in `defects` the lines without an id, of a block that begins at line `first_line` of
    the file; `length` is the number of ids of each line."""
    empty = np.flatnonzero(length == 0) + first_line
    defects.known("empty session", len(empty), lambda: (path, int(empty[0])))


def _positions(length: np.ndarray) -> np.ndarray:
    """Numbers 0, 1, ... of the clicks of sessions of these lengths, one after the other."""
    begins = np.cumsum(length) - length
    return (np.arange(length.sum()) - np.repeat(begins, length)).astype(np.int32)


def to_sequences(frame: pd.DataFrame) -> Sequences:
    """The sequences of pages of a frame from `load`, or of some of its sessions.

    >>> frame = pd.DataFrame({"session": [0, 0, 3], "position": [0, 1, 0], "page": [7, 9, 7]})
    >>> [s.tolist() for s in to_sequences(frame)]
    [[0, 1], [0]]
    """
    if not _is_in_order(frame):
        frame = frame.sort_values(["session", "position"], kind="stable")
    session = frame["session"].to_numpy()
    is_first = np.ones(len(session), dtype=bool)
    is_first[1:] = np.diff(session) != 0
    starts = np.flatnonzero(is_first)
    offsets = np.append(starts, len(session))
    return Sequences.from_flat(frame["page"].to_numpy(), offsets, session[starts])


def _is_in_order(frame: pd.DataFrame) -> bool:
    """Whether the clicks are ordered by session and position."""
    session_step = np.diff(frame["session"].to_numpy())
    position_step = np.diff(frame["position"].to_numpy())
    follows = (session_step > 0) | ((session_step == 0) & (position_step >= 1))
    return bool(follows.all())


def _parse(block: bytes) -> pa.Table:
    """All ids of a block as one column."""
    table = parse_table(block.translate(BLANKS_TO_LINE_ENDS), {"page": pa.uint32()}, "\t")
    return table.cast(pa.schema([("page", pa.int32())]))  # raises for ids beyond int32


def _count_ids(block: bytes) -> np.ndarray:
    """Number of ids in each line, (lines,)."""
    content = np.frombuffer(b"\n" + block, dtype=np.uint8)
    before = content[:-1]
    here = content[1:]
    id_begins = np.flatnonzero((here > BLANK) & (before <= BLANK))
    line_ends = np.flatnonzero(here == LINE_END)
    ids_up_to_end = np.searchsorted(id_begins, line_ends)
    return np.diff(ids_up_to_end, prepend=0)
