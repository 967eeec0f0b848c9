"""Synthetic walks of many users."""

import numpy as np

import tplrepro as tpl
from tplrepro.markov import Sequences

N_STATES = 20
LENGTH = 50
#: Users whose steps are drawn together.
TOGETHER = 100_000


def walking_users(users: int) -> Sequences:
    """Fifty steps each of a smoothed chain of 20 states, drawn in steps of 1/256."""
    rng = np.random.default_rng(0)
    chain = tpl.smoothed(tpl.strongest(N_STATES, seed=1), 0.05)
    cumulative = np.cumsum(chain.probabilities, axis=1)
    levels = (np.arange(256) / 256)[:, None]
    reached = (cumulative[:, None] < levels).sum(axis=2, dtype=np.uint8)
    following = reached.clip(0, N_STATES - 1)
    walks = rng.integers(0, N_STATES, (users, LENGTH), dtype=np.uint8)
    for start in range(0, users, TOGETHER):
        part = walks[start : start + TOGETHER]
        draws = rng.integers(0, 256, part.shape, dtype=np.uint8)
        for t in range(1, LENGTH):
            part[:, t] = following[part[:, t - 1], draws[:, t]]
    offsets = np.arange(users + 1) * LENGTH
    return Sequences(walks.ravel(), offsets, np.arange(N_STATES), np.arange(users))
