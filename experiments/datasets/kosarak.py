"""Kosarak: its pages as states; its stand-in has sessions over pages of heavy-tailed popularity."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from experiments.datasets.preparation import DataSet
from experiments.datasets.readers.kosarak import load, to_sequences
from experiments.datasets.stand_ins import (
    heavy_tailed_counts,
    line_bytes,
    lines_to,
    popular,
    stand_in,
)
from tplrepro.markov.sequences import Sequences
from tplrepro.validation import check_horizon

BATCH_SESSIONS = 20_000
# As in the official file: number of pages, mean and maximum clicks per session.
N_PAGES, MEAN_LENGTH, LONGEST = 41_270, 8.1, 2_498
LINKS = 8  # per page
FOLLOW = 0.6  # probability of following a link


def synthetic(n_users: int = 10_000, seed: int = 0, path: str | Path | None = None) -> pd.DataFrame:
    """Write a stand-in of `n_users` sessions in the official format, and read it back, like
    `geolife.synthetic`.

    A session goes from a page to one of its eight links, or to any page by popularity.
    """
    return stand_in(path, "kosarak", "kosarak.dat", write, load, n_users=n_users, seed=seed)


def write(target, n_users, seed) -> None:
    """Write the file in memory bounded by one batch of sessions."""
    n_users = check_horizon(n_users, "n_users")
    rng = np.random.default_rng([int(seed), 3])
    links = popular(rng, N_PAGES, (N_PAGES, LINKS))
    with lines_to(target) as out:
        for start in range(0, n_users, BATCH_SESSIONS):
            lengths = heavy_tailed_counts(
                rng, min(BATCH_SESSIONS, n_users - start), MEAN_LENGTH, LONGEST
            )
            offsets = np.concatenate([[0], lengths.cumsum()])
            pages = pa.array(_clicks(rng, offsets, links) + 1).cast(pa.string())
            out.write(
                line_bytes(
                    {"session": pc.binary_join(pa.ListArray.from_arrays(offsets, pages), " ")}, "\t"
                )
            )


def _clicks(rng: np.random.Generator, offsets: np.ndarray, links: np.ndarray) -> np.ndarray:
    """Pages of a batch of sessions, (clicks,): by popularity, or by a link on the page before."""
    clicks = np.arange(offsets[-1])
    pages, link = popular(rng, N_PAGES, len(clicks)), popular(rng, LINKS, len(clicks))
    anew = rng.random(len(clicks)) >= FOLLOW
    anew[offsets[:-1]] = True
    # links since the last page by popularity
    followed = clicks - np.maximum.accumulate(np.where(anew, clicks, 0))
    for step in range(1, followed.max() + 1):
        now = np.flatnonzero(followed == step)
        pages[now] = links[pages[now - 1], link[now]]
    return pages


def pages_as_states(observations: pd.DataFrame, cut: dict) -> tuple[Sequences, list[str], None]:
    """Sequences of pages and the names of the pages."""
    sequences = to_sequences(observations)
    return sequences, [f"page {page}" for page in sequences.labels.tolist()], None


DATA_SET = DataSet("Kosarak", load, synthetic, pages_as_states, {})
