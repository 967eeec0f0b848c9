"""Writes the stand-in of Kosarak: sessions over pages of heavy-tailed popularity, in FIMI format."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tplrepro.datasets.stand_ins.places import check_size, heavy_tailed_counts, popular
from tplrepro.datasets.writing import line_bytes, synthetic_file

__all__ = ["write"]

BATCH_SESSIONS = 20_000
# Of the official file: pages, clicks a session and the most of them.
N_PAGES, MEAN_LENGTH, LONGEST = 41_270, 8.1, 2_498
LINKS = 8  # of a page
FOLLOW = 0.6  # probability of going on by a link


def write(target, n_users, seed) -> None:
    """Write the stand-in that `tplrepro.datasets.kosarak.synthetic` reads back; parameters as there."""
    n_users = check_size(n_users, "n_users")
    rng = np.random.default_rng([int(seed), 3])
    links = popular(rng, N_PAGES, (N_PAGES, LINKS))
    with synthetic_file(target, set="kosarak", n_users=n_users, seed=int(seed)) as out:
        for start in range(0, n_users, BATCH_SESSIONS):
            lengths = heavy_tailed_counts(rng, min(BATCH_SESSIONS, n_users - start), MEAN_LENGTH, LONGEST)
            offsets = np.concatenate([[0], lengths.cumsum()])
            pages = pa.array(_clicks(rng, offsets, links) + 1).cast(pa.string())
            out.write(line_bytes({"session": pc.binary_join(pa.ListArray.from_arrays(offsets, pages), " ")}, "\t"))


def _clicks(rng: np.random.Generator, offsets: np.ndarray, links: np.ndarray) -> np.ndarray:
    """Pages of a batch of sessions, (clicks,): any page by popularity, or one that the page before links to."""
    clicks = np.arange(offsets[-1])
    pages, link = popular(rng, N_PAGES, len(clicks)), popular(rng, LINKS, len(clicks))
    anew = rng.random(len(clicks)) >= FOLLOW
    anew[offsets[:-1]] = True
    followed = clicks - np.maximum.accumulate(np.where(anew, clicks, 0))  # links since the last page by popularity
    for step in range(1, followed.max() + 1):
        now = np.flatnonzero(followed == step)
        pages[now] = links[pages[now - 1], link[now]]
    return pages
