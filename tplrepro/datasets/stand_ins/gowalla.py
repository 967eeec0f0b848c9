"""Writes the stand-in of Gowalla: check-ins of people in four cities, newest first, in SNAP format."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tplrepro.datasets.grid import LOS_ANGELES
from tplrepro.datasets.stand_ins.places import check_size, city, cumulative_zipf, draw, heavy_tailed_counts
from tplrepro.datasets.writing import atomic_output, line_bytes, mark_synthetic

__all__ = ["write"]

BATCH_USERS = 4096
MEAN_CHECK_INS = 32.8  # as in the official file

#: Where the stand-in's people live: box and share of the users.
CITIES = (
    (LOS_ANGELES, 0.5),
    ((30.1, 30.5, -98.0, -97.5), 0.2),
    ((59.2, 59.5, 17.8, 18.3), 0.15),
    ((40.6, 40.9, -74.1, -73.8), 0.15),
)


def write(target: str | Path, n_users: int, seed: int) -> None:
    """Write the stand-in that `tplrepro.datasets.gowalla.synthetic` reads back; parameters as there."""
    n_users = check_size(n_users, "n_users")
    n_places = max(400, int(n_users * MEAN_CHECK_INS / 5))
    mark_synthetic(target, {"set": "gowalla", "n_users": n_users, "seed": int(seed), "n_places": n_places})
    rng = np.random.default_rng([int(seed), 1])
    shares = np.array([share for _, share in CITIES])
    cities = [city(rng, box, max(8, int(n_places * share))) for box, share in CITIES]
    first_id = np.concatenate([[0], np.cumsum([len(c.latitude) for c in cities])])
    latitude = np.concatenate([c.latitude for c in cities])
    longitude = np.concatenate([c.longitude for c in cities])
    location_id = rng.permutation(len(latitude))
    with atomic_output(target) as out:
        for start in range(0, n_users, BATCH_USERS):
            k = min(BATCH_USERS, n_users - start)
            counts = heavy_tailed_counts(rng, k, MEAN_CHECK_INS, 2175, spread=1.3)
            lives_in = rng.choice(len(CITIES), size=k, p=shares / shares.sum())
            own, explored = np.empty((k, 8), dtype=np.int64), np.empty(int(counts.sum()), dtype=np.int64)
            user = np.repeat(np.arange(k), counts)
            for c, spot in enumerate(cities):
                members = np.flatnonzero(lives_in == c)
                own[members] = first_id[c] + draw(rng, spot.cumulative, (len(members), 8))
                visits = np.flatnonzero(lives_in[user] == c)
                explored[visits] = first_id[c] + draw(rng, spot.cumulative, len(visits))
            time = _times(rng, counts, user)
            order = np.lexsort((-time, user))  # newest first
            time = time[order]
            place = _places(rng, time, user, own, explored)
            out.write(
                line_bytes(
                    {
                        "user": pa.array(user + start),
                        "time": pc.strftime(pa.array(time.astype("datetime64[s]")), format="%Y-%m-%dT%H:%M:%SZ"),
                        "latitude": np.round(latitude[place], 10),
                        "longitude": np.round(longitude[place], 10),
                        "location": location_id[place],
                    },
                    "\t",
                )
            )


_HOURS = np.array([2, 1, 1, 1, 1, 2, 4, 7, 9, 8, 7, 7, 10, 9, 7, 7, 8, 10, 12, 12, 10, 8, 6, 4], dtype=float)


def _times(rng, counts, user) -> np.ndarray:
    """Seconds since 1970 of each check-in, local hours read as UTC: an active span of a user, days in it, an hour."""
    first_day = 14276  # 2009-02-01
    begin = first_day + rng.integers(0, 500, len(counts))
    span = np.minimum(626 - (begin - first_day), 5 + 2 * counts)
    day = begin[user] + np.floor(rng.random(len(user)) * span[user]).astype(np.int64)
    hour = draw(rng, np.cumsum(_HOURS) / _HOURS.sum(), len(user))
    return (day * 24 + hour) * 3600 + rng.integers(0, 3600, len(user))


def _places(rng, time, user, own, explored) -> np.ndarray:
    """Place of each check-in: on work days home and work by the hour, else an own place by rank, or a new one."""
    hour, weekday = time // 3600 % 24, (time // 86400 + 3) % 7
    rank = draw(rng, cumulative_zipf(8), len(time))
    works = (weekday < 5) & (hour >= 7) & (hour < 18) & (rng.random(len(time)) < 0.6)
    rests = ((hour >= 21) | (hour < 7)) & (rng.random(len(time)) < 0.7)
    rank = np.where(works, 1, np.where(rests, 0, rank))
    explores = ~works & ~rests & (rng.random(len(time)) < 0.3)
    return np.where(explores, explored, own[user, rank])
