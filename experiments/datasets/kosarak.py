"""Kosarak: its pages as states; its stand-in has sessions over pages of heavy-tailed popularity."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from experiments.datasets.preparation import DataSet, States
from experiments.datasets.readers.kosarak import load, to_sequences
from experiments.datasets.stand_ins import (
    draw_counts,
    draw_popular,
    format_lines,
    make_stand_in,
    open_for_writing,
)
from tplrepro.validation import check_horizon

BATCH_SESSIONS = 20_000
# As in the official file: number of pages, mean and maximum clicks per session.
N_PAGES = 41_270
MEAN_CLICKS = 8.1
MOST_CLICKS = 2_498
LINKS = 8  # per page
FOLLOW = 0.6  # probability of following a link


def synthetic(n_users: int = 10_000, seed: int = 0, path: str | Path | None = None) -> pd.DataFrame:
    """Write a stand-in of `n_users` sessions in the official format, and read it back, like
    `geolife.synthetic`.

    A session goes from a page to one of its eight links, or to any page by popularity.
    """
    return make_stand_in(
        path, "kosarak", "kosarak.dat", write_sessions, load, n_users=n_users, seed=seed
    )


def write_sessions(target: Path, n_users: int, seed: int) -> None:
    """Write `n_users` synthetic sessions in Kosarak's format, batch by batch, so that memory holds
    one batch."""
    n_users = check_horizon(n_users, "n_users")
    # 3: the stand-ins of other data sets draw other numbers from the same seed
    rng = np.random.default_rng([int(seed), 3])
    links = draw_popular(rng, N_PAGES, (N_PAGES, LINKS))
    with open_for_writing(target) as out:
        for start in range(0, n_users, BATCH_SESSIONS):
            n_sessions = min(BATCH_SESSIONS, n_users - start)
            lengths = draw_counts(rng, n_sessions, MEAN_CLICKS, MOST_CLICKS)
            offsets = np.concatenate([[0], lengths.cumsum()])
            out.write(_session_lines(offsets, _draw_clicks(rng, offsets, links)))


def _session_lines(offsets: np.ndarray, pages: np.ndarray) -> bytes:
    """One line a session, its page ids, from 1, separated by blanks."""
    page_ids = pa.array(pages + 1).cast(pa.string())
    sessions = pa.ListArray.from_arrays(offsets, page_ids)
    return format_lines({"session": pc.binary_join(sessions, " ")}, "\t")


def _draw_clicks(rng: np.random.Generator, offsets: np.ndarray, links: np.ndarray) -> np.ndarray:
    """Pages of a batch of sessions, (clicks,): by popularity, or by a link on the page before.

    Session k has the clicks from offsets[k] to offsets[k + 1]; `links` (pages, `LINKS`) are the
    pages that each page links to.
    """
    clicks = np.arange(offsets[-1])
    pages = draw_popular(rng, N_PAGES, len(clicks))
    link = draw_popular(rng, LINKS, len(clicks))
    is_anew = rng.random(len(clicks)) >= FOLLOW
    is_anew[offsets[:-1]] = True
    latest_anew = np.maximum.accumulate(np.where(is_anew, clicks, 0))
    links_since = clicks - latest_anew
    for step in range(1, links_since.max() + 1):
        following = np.flatnonzero(links_since == step)
        pages[following] = links[pages[following - 1], link[following]]
    return pages


def pages_as_states(observations: pd.DataFrame, cut: Mapping) -> States:
    """The pages of each session; nothing is to be cut."""
    sequences = to_sequences(observations)
    return States(sequences, [f"page {page}" for page in sequences.labels.tolist()])


DATA_SET = DataSet(title="Kosarak", load=load, synthetic=synthetic, states=pages_as_states, cut={})
