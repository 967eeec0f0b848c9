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
BLANKS = bytes.maketrans(b" \t\r", b"\n\n\n")


def load(path: str | Path | None = None) -> pd.DataFrame:
    """Read sessions into a tidy frame, one click per row.

    `path` is a file, plain or gzip-compressed; errors are those of `geolife.load`. The known defect
    is an empty session.

    Returns
    -------
    DataFrame
        session : int32, the number of its line in the file, from 0; position : int32, the number of the click in its
        session, from 0; page : int32. ``attrs``: source, synthetic, skipped, skipped_examples.
    """
    path = registry.locate("kosarak", path)
    defects = Defects(EXPECTED)
    parts = []
    for rows in read_rows(path, _parse, defects):
        count = _line_lengths(rows.block)
        empty = np.flatnonzero(count == 0) + rows.first_line
        defects.known("empty session", len(empty), lambda: (path, int(empty[0])))  # noqa: B023 (called at once)
        filled = np.flatnonzero(count)
        parts.append(
            (rows["page"], count[filled], (filled + (rows.first_line - 1)).astype(np.int32))
        )
    pages, length, sessions = map(np.concatenate, zip(*parts, strict=True))
    frame = pd.DataFrame(
        {
            "session": np.repeat(sessions, length),
            "position": (
                np.arange(length.sum()) - np.repeat(np.cumsum(length) - length, length)
            ).astype(np.int32),
            "page": pages,
        },
        copy=False,
    )
    return finish(frame, path, defects)


def to_sequences(frame: pd.DataFrame) -> Sequences:
    """The sequences of pages of a frame from `load`, or of some of its sessions.

    >>> frame = pd.DataFrame({"session": [0, 0, 3], "position": [0, 1, 0], "page": [7, 9, 7]})
    >>> [s.tolist() for s in to_sequences(frame)]
    [[0, 1], [0]]
    """
    step = np.diff(frame["session"].to_numpy())
    if (step < 0).any() or (np.diff(frame["position"].to_numpy()) < 1)[step == 0].any():
        frame = frame.sort_values(["session", "position"], kind="stable")
    session = frame["session"].to_numpy()
    starts = np.flatnonzero(np.append(True, np.diff(session) != 0)[: len(session)])
    return Sequences.from_flat(
        frame["page"].to_numpy(), np.append(starts, len(session)), session[starts]
    )


def _parse(block: bytes) -> pa.Table:
    table = parse_table(block.translate(BLANKS), {"page": pa.uint32()}, "\t")
    return table.cast(pa.schema([("page", pa.int32())]))  # raises for ids beyond int32


def _line_lengths(block: bytes) -> np.ndarray:
    """Number of ids in each line, (lines,)."""
    content = np.frombuffer(b"\n" + block, dtype=np.uint8)
    begins = np.flatnonzero((content[1:] > 32) & (content[:-1] <= 32))
    return np.diff(np.searchsorted(begins, np.flatnonzero(content[1:] == 10)), prepend=0)
