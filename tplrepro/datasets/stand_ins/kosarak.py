"""Writes the stand-in of Kosarak: sessions over pages of heavy-tailed popularity, in FIMI format."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from tplrepro.datasets.stand_ins.places import check_size, cumulative_zipf, draw, heavy_tailed_counts
from tplrepro.datasets.writing import atomic_output, line_bytes, mark_synthetic

__all__ = ["write"]

BATCH_SESSIONS = 20_000
# Of the official file: pages, clicks a session and the most of them.
N_PAGES, MEAN_LENGTH, LONGEST = 41_270, 8.1, 2_498
FOLLOW = 0.6  # probability of going on by a link


def write(target: str | Path, n_users: int, seed: int) -> None:
    """Write the stand-in that `tplrepro.datasets.kosarak.synthetic` reads back; parameters as there."""
    n_users, n_pages = check_size(n_users, "n_users"), N_PAGES
    mark_synthetic(target, {"set": "kosarak", "n_users": n_users, "seed": int(seed), "n_pages": n_pages})
    rng = np.random.default_rng([int(seed), 3])
    popularity, link_choice = cumulative_zipf(n_pages, 0.95), cumulative_zipf(8)
    links = draw(rng, popularity, (n_pages, 8)).astype(np.int32)
    number = np.zeros(n_pages, dtype=np.int32)  # 0: not seen yet
    seen = 0
    with atomic_output(target) as out:
        for start in range(0, n_users, BATCH_SESSIONS):
            k = min(BATCH_SESSIONS, n_users - start)
            lengths = heavy_tailed_counts(rng, k, MEAN_LENGTH, LONGEST, spread=1.1)
            offsets = np.concatenate([[0], lengths.cumsum()])
            ranks = _clicks(rng, lengths, offsets, popularity, links, link_choice)
            fresh, first = np.unique(ranks, return_index=True)
            fresh = fresh[number[fresh] == 0][np.argsort(first[number[fresh] == 0])]
            number[fresh] = np.arange(seen + 1, seen + 1 + len(fresh))
            seen += len(fresh)
            out.write(_lines(number[ranks], offsets))


def _clicks(rng, lengths, offsets, popularity, links, link_choice) -> np.ndarray:
    """Page ranks of a batch of sessions, (clicks,), position by position."""
    ranks = np.empty(offsets[-1], dtype=np.int32)
    longest_first = np.argsort(-lengths, kind="stable")
    begins, sorted_lengths = offsets[:-1][longest_first], lengths[longest_first]
    here = draw(rng, popularity, len(lengths))
    for position in range(int(sorted_lengths[0])):
        active = int(np.searchsorted(-sorted_lengths, -position, side="left"))
        if position:
            link = links[here[:active], draw(rng, link_choice, active)]
            here = np.where(rng.random(active) < FOLLOW, link, draw(rng, popularity, active))
        ranks[begins[:active] + position] = here[:active]
    return ranks


def _lines(ids: np.ndarray, offsets: np.ndarray) -> bytes:
    text = line_bytes({"page": pa.array(ids)}, "\t")
    content = np.frombuffer(text, dtype=np.uint8).copy()
    ends = np.flatnonzero(content == 10)
    between = np.ones(len(ids), dtype=bool)
    between[offsets[1:] - 1] = False
    content[ends[between]] = ord(" ")
    return content.tobytes()
