"""Shared by the stand-ins: heavy-tailed popularity and activity, and the places of a city.

People stay at few places, commute between them at the usual hours, and choose other places by a heavy-tailed
popularity. This makes recorded mobility predictable, and therefore makes it leak.
"""

import numpy as np


def popular(rng: np.random.Generator, n: int, size) -> np.ndarray:
    """Random ranks 0..n-1, rank k with probability proportional to log(1 + 1 / (k + 1))."""
    return np.minimum((n + 1) ** rng.random(size), n).astype(np.int64) - 1


def city(rng: np.random.Generator, box, n_places: int) -> np.ndarray:
    """Random places in districts of a box (south, north, west, east): degrees (n_places, 2)."""
    low, span = np.array([box[0], box[2]]), np.array([box[1] - box[0], box[3] - box[2]])
    districts = rng.normal(0.5, 0.22, (12, 2))
    points = districts[popular(rng, 12, n_places)] + rng.normal(0, 0.06, (n_places, 2))
    return low + span * (0.02 + 0.96 * (points % 1))  # clipping would accumulate places on the edges


def heavy_tailed_counts(rng: np.random.Generator, n: int, mean: float, most: int) -> np.ndarray:
    """Counts (n,), at least 1 and at most `most`, log-normal with about the given mean."""
    return np.clip(np.rint(mean * rng.lognormal(-0.72, 1.2, n)), 1, most).astype(np.int64)
