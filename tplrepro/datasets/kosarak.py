"""Kosarak: page visits of a Hungarian news site, one session a line, page ids in the order of the file.

Format (FIMI): page ids, whole numbers, separated by blanks; also gzip-compressed. The official file has 990,002
sessions and 41,270 pages. There are no times and no users: a session is taken for a user, as in [3].

Reading: all ids of a block become one column that pyarrow parses, and the ends of lines give the offsets; 8 million
clicks take 0.4 s this way, against 0.5 s with ``numpy.fromstring`` (which stops at the first bad token without naming
it) and 0.7 s with pyarrow's list columns. Engines for tables (pandas, Polars, DuckDB) have no reader for ragged lines.

References
----------
[3] B. Jiang, M. Li, R. Tandon, "Online Context-Aware Data Release with Sequence Information Privacy", 2023.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa

from tplrepro.datasets import registry
from tplrepro.datasets.reading import (
    DataFormatError,
    Defects,
    finish,
    line_blocks,
    parse_lines,
    parse_table,
    warn_unterminated,
)
from tplrepro.datasets.stand_ins.kosarak import write
from tplrepro.datasets.writing import stand_in
from tplrepro.markov.sequences import Sequences

__all__ = ["fetch", "load", "load_sequences", "synthetic", "to_sequences"]

EXPECTED = "a line of page ids, whole numbers from 0 to 2147483647 separated by blanks"


def fetch(**options):
    """Download kosarak.dat.gz into the cache and return its path; options are those of `registry.fetch`."""
    return registry.fetch("kosarak", **options)


def load(path=None, *, strict: bool = False, max_malformed: int = 0) -> pd.DataFrame:
    """Read sessions into a tidy frame, one click a row.

    Parameters
    ----------
    path : path-like, optional
        kosarak.dat, plain or gzip-compressed; by default it is looked for as `registry.locate` says.
    strict : bool
        Raise at an empty session instead of skipping and counting it.
    max_malformed : int
        How many lines that are not page ids may be skipped and counted; one more is an error.

    Returns
    -------
    DataFrame
        session : int32, the number of its line in the file, from 0;
        position : int32, the number of the click in its session, from 0;
        page : int32.
        ``attrs``: source, synthetic, skipped, skipped_examples, reordered (always 0).

    Raises
    ------
    registry.DatasetNotFoundError, DataFormatError, OSError
    """
    path = registry.locate("kosarak", path)
    defects = Defects(strict, max_malformed, EXPECTED)
    pages, offsets, sessions = _read(path, defects)
    lengths = np.diff(offsets)
    frame = pd.DataFrame(
        {
            "session": np.repeat(sessions, lengths),
            "position": (np.arange(len(pages)) - np.repeat(offsets[:-1], lengths)).astype(np.int32),
            "page": pages,
        },
        copy=False,
    )
    return finish(frame, path, defects)


def load_sequences(path=None, *, strict: bool = False, max_malformed: int = 0) -> Sequences:
    """Read sessions straight into `Sequences`, without the frame: half the memory.

    Labels are the page ids that occur, users the sessions' line numbers.
    """
    path = registry.locate("kosarak", path)
    pages, offsets, sessions = _read(path, Defects(strict, max_malformed, EXPECTED))
    return Sequences.from_flat(pages, offsets, sessions)


def to_sequences(frame: pd.DataFrame) -> Sequences:
    """The sequences of pages of a frame that `load` gave, or of some of its sessions.

    >>> frame = pd.DataFrame({"session": [0, 0, 3], "position": [0, 1, 0], "page": [7, 9, 7]})
    >>> [s.tolist() for s in to_sequences(frame)]
    [[0, 1], [0]]
    """
    session = frame["session"].to_numpy()
    step = np.diff(session)
    if (step < 0).any() or (np.diff(frame["position"].to_numpy()) < 1)[step == 0].any():
        frame = frame.sort_values(["session", "position"], kind="stable")
        session = frame["session"].to_numpy()
        step = np.diff(session)
    starts = np.flatnonzero(step) + 1
    offsets = np.concatenate([[0], starts, [len(session)]]) if len(session) else np.zeros(1, dtype=np.int64)
    return Sequences.from_flat(frame["page"].to_numpy(), offsets, session[offsets[:-1]])


def _read(path, defects: Defects) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pages (m,), offsets (k + 1,) and line numbers from 0 (k,)."""
    pages, lengths, sessions = [], [], []
    for block, first_line in line_blocks(path):
        warn_unterminated(block, first_line, path, defects.strict)
        ids, block, rejected = parse_lines(block, first_line, path, _ids, defects)
        count = _line_lengths(block)
        empty = np.setdiff1d(np.flatnonzero(count == 0), rejected)
        defects.known("empty session", len(empty), path, lambda: (first_line + int(empty[0]), ""))  # noqa: B023
        filled = np.flatnonzero(count)
        pages.append(ids)
        lengths.append(count[filled])
        sessions.append((filled + (first_line - 1)).astype(np.int32))
    if not pages:
        raise DataFormatError("the file is empty; download it again", path)
    offsets = np.concatenate([[0], *lengths]).cumsum(dtype=np.int64)
    return np.concatenate(pages), offsets, np.concatenate(sessions)


_BLANKS = bytes.maketrans(b" \t\r", b"\n\n\n")


def _ids(block: bytes) -> np.ndarray:
    table = parse_table(block.translate(_BLANKS), {"page": pa.uint32()}, "\t")
    return table["page"].cast(pa.int32()).to_numpy()  # the cast rejects ids that int32 does not hold


def _line_lengths(block: bytes) -> np.ndarray:
    """Number of ids in each line, (lines,)."""
    content = np.frombuffer(block, dtype=np.uint8)
    inside = content > 32
    begins = inside.copy()
    begins[1:] &= ~inside[:-1]
    ends = np.flatnonzero(content == 10)
    if not block.endswith(b"\n"):
        ends = np.append(ends, len(block))
    return np.diff(np.searchsorted(np.flatnonzero(begins), ends), prepend=0)


def synthetic(
    n_users: int = 10_000,
    seed: int = 0,
    path=None,
    *,
    n_pages: int = 41_270,
    mean_length: float = 8.1,
    longest: int = 2_498,
    follow: float = 0.6,
) -> pd.DataFrame:
    """Write a stand-in in the official format, and read it back.

    Page popularity has a heavy tail (Zipf). A session goes from a page to one of the page's eight links with
    probability `follow`, the first links more often, and to any page by popularity otherwise. Pages are numbered
    by first appearance, as in the official file. At any size memory stays bounded by one batch of sessions.

    Parameters
    ----------
    n_users : int
        Number of sessions; 990_002 is the official size.
    seed : int
    path : path-like, optional
        File to write, compressed if it ends in .gz; by default a temporary one.
    n_pages : int
        Most pages that may appear.
    mean_length, longest : float, int
        Clicks a session, about; and at most.
    follow : float
        In [0, 1].

    Returns
    -------
    DataFrame
        As `load` gives it, with ``attrs["synthetic"]`` True.
    """
    options = {"n_pages": n_pages, "mean_length": mean_length, "longest": longest, "follow": follow}
    return stand_in(path, "kosarak.dat", lambda target: write(target, n_users, seed, **options), load)
