"""What the synthetic stand-ins share: heavy-tailed popularity, and the places of a city.

People stay at few places (home, work and some others), commute between them at the usual hours, and choose the others
by a popularity with a heavy tail. These are the features of recorded mobility that make it predictable, and so leak.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["Places", "city", "cumulative_zipf", "draw", "heavy_tailed_counts"]


class Places(NamedTuple):
    """Places of a city: degrees, (m,) each, in order of popularity, and the popularity's cumulative distribution."""

    latitude: np.ndarray
    longitude: np.ndarray
    cumulative: np.ndarray


def cumulative_zipf(n: int, exponent: float = 1.0) -> np.ndarray:
    """Cumulative distribution (n,) of ranks 0..n-1 with probability proportional to (rank + 1) ** -exponent.

    >>> cumulative_zipf(3).round(4).tolist()
    [0.5455, 0.8182, 1.0]
    """
    if n < 1:
        raise ValueError(f"n must be at least 1, found {n}; ask for one place or page or more")
    total = np.cumsum(np.arange(1, n + 1, dtype=float) ** -exponent)
    return total / total[-1]


def draw(rng: np.random.Generator, cumulative: np.ndarray, size) -> np.ndarray:
    """Ranks drawn from a cumulative distribution, by inversion."""
    # random() < 1 and the last entry is 1, so the rank is always one of them.
    return np.searchsorted(cumulative, rng.random(size), side="right")


def city(rng: np.random.Generator, box, n_places: int, n_districts: int = 12, exponent: float = 1.0) -> Places:
    """Places within a box (south, north, west, east), gathered in districts, the busier ones near the centre."""
    south, north, west, east = box
    middle = np.array([(south + north) / 2, (west + east) / 2])
    size = np.array([north - south, east - west])
    centres = middle + rng.normal(0, 0.22, (n_districts, 2)) * size
    district = draw(rng, cumulative_zipf(n_districts, 0.7), n_places)
    points = centres[district] + rng.normal(0, 0.06, (n_places, 2)) * size
    low, span = middle - 0.48 * size, 0.96 * size
    latitude, longitude = (low + (points - low) % span).T  # clipping would pile places up on the edges
    return Places(latitude, longitude, cumulative_zipf(n_places, exponent))


def heavy_tailed_counts(rng: np.random.Generator, n: int, mean: float, most: int, spread: float = 1.3) -> np.ndarray:
    """Counts (n,), at least 1 and at most `most`, log-normal with about the given mean."""
    counts = rng.lognormal(np.log(mean) - spread**2 / 2, spread, n)
    return np.clip(np.rint(counts), 1, most).astype(np.int64)


def check_size(value, name: str) -> int:
    """A number of users, sessions, ... as an int, at least 1."""
    if int(value) != value or value < 1:
        raise ValueError(f"{name} must be a whole number, at least 1, found {value!r}; ask for one or more")
    return int(value)
