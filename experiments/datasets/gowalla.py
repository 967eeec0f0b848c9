"""Gowalla: its cut into cells; its stand-in has check-ins of people in four cities, in SNAP
format."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from experiments.datasets.preparation import DataSet, cells, grid_box
from experiments.datasets.readers import registry
from experiments.datasets.readers.gowalla import load
from experiments.datasets.stand_ins import (
    city,
    heavy_tailed_counts,
    line_bytes,
    lines_to,
    popular,
    stand_in,
)
from tplreport.reading.grid import LOS_ANGELES, NEW_YORK, Box, as_box
from tplrepro.validation import check_horizon

BATCH_USERS = 4096
MEAN_CHECK_INS, MOST_CHECK_INS = 32.8, 2175  # as in the official file

#: Where the others live.
OTHER_CITIES = ((30.1, 30.5, -98.0, -97.5), (59.2, 59.5, 17.8, 18.3), LOS_ANGELES)
SHARES = (0.5, 0.2, 0.15, 0.15)


def synthetic(
    n_users: int = 500, seed: int = 0, path: str | Path | None = None, *, box=NEW_YORK
) -> pd.DataFrame:
    """Write a stand-in in the official format, and read it back, like `geolife.synthetic`.

    Half of the users live in the `box` (south, north, west, east), the others in three other
    cities. Each has a home, a work place and six more popular places; few users have many
    check-ins.
    """
    options = {"n_users": n_users, "seed": seed, "box": box}
    return stand_in(path, "gowalla", "loc-gowalla_totalCheckins.txt", write, load, **options)


def write(target, n_users, seed, box=NEW_YORK) -> None:
    """Write the file in memory bounded by one batch of users."""
    n_users = check_horizon(n_users, "n_users")
    n_places = max(100, int(n_users * MEAN_CHECK_INS / 20))  # in each city
    rng = np.random.default_rng([int(seed), 1])
    degrees = np.concatenate([city(rng, box, n_places) for box in (as_box(box), *OTHER_CITIES)])
    location_ids = rng.permutation(len(degrees))
    with lines_to(target) as out:
        for start in range(0, n_users, BATCH_USERS):
            counts = heavy_tailed_counts(
                rng, min(BATCH_USERS, n_users - start), MEAN_CHECK_INS, MOST_CHECK_INS
            )
            user, time = _times(rng, counts)
            lives_in = rng.choice(len(SHARES), len(counts), p=SHARES)
            place = lives_in[user] * n_places + _places(rng, user, time, len(counts), n_places)
            columns = {
                "user": user + start,
                "time": pc.strftime(
                    pa.array(time.astype("datetime64[s]")), format="%Y-%m-%dT%H:%M:%SZ"
                ),
                "latitude": np.round(degrees[place, 0], 10),
                "longitude": np.round(degrees[place, 1], 10),
                "location": location_ids[place],
            }
            out.write(line_bytes(columns, "\t"))


def _times(rng: np.random.Generator, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """User and seconds since 1970 of each check-in, newest first, most in the evening (local time
    read as UTC)."""
    user = np.repeat(np.arange(len(counts)), counts)
    begin, span = rng.integers(0, 500, len(counts)), 5 + 2 * counts
    day = np.minimum(begin[user] + (rng.random(len(user)) * span[user]).astype(np.int64), 626)
    hour = rng.triangular(0, 18, 24, len(user))
    time = ((14_276 + day) * 86_400 + hour * 3600).astype(np.int64)  # from 2009-02-01
    return user, time[np.lexsort((-time, user))]


def _places(
    rng: np.random.Generator, user: np.ndarray, time: np.ndarray, n_users: int, n_places: int
) -> np.ndarray:
    """Place of each check-in in the user's city: home or work by the hour, else a favourite place,
    or any."""
    own, m = popular(rng, n_places, (n_users, 8)), len(time)
    hour, weekday = time // 3600 % 24, (time // 86_400 + 3) % 7
    works = (weekday < 5) & (hour >= 7) & (hour < 18) & (rng.random(m) < 0.6)
    rests = ((hour >= 21) | (hour < 7)) & (rng.random(m) < 0.7)
    known = own[user, np.where(works, 1, np.where(rests, 0, popular(rng, 8, m)))]
    explores = ~works & ~rests & (rng.random(m) < 0.3)
    return np.where(explores, popular(rng, n_places, m), known)


def contents(path: str | Path | None = None, box: Box = NEW_YORK) -> dict[str, Any]:
    """What a file holds in a box, however it writes numbers: check-ins and users as read, and a
    digest of them.

    The SHA-256 is that of lines of user, time, latitude, longitude and location, ordered by user
    and time, with degrees in units of 1e-10, the last digit of the official file.
    """
    visits = load_in_box(path, as_box(box))
    degrees = {
        name: np.rint(visits[name] * 1e10).astype(np.int64) for name in ("latitude", "longitude")
    }
    seconds = visits["time"].astype("int64") // 1_000_000
    lines = line_bytes(
        {"user": visits["user"], "time": seconds, **degrees, "location": visits["location"]}, "\t"
    )
    digest = hashlib.sha256(lines).hexdigest()
    return {"check-ins": len(visits), "users": visits["user"].nunique(), "sha256": digest}


def load_in_box(path: str | Path | None, box: Box) -> pd.DataFrame:
    """A file; without a path the official one, or else the file with the most check-ins in the
    box."""
    if path is not None:
        return load(path, box=box)
    files = [registry.locate("gowalla")]
    if "totalCheckins" not in files[0].name:
        files = sorted([*files[0].parent.glob("*.txt"), *files[0].parent.glob("*.txt.gz")])
    return max(
        (load(file, box=box) for file in files),
        key=lambda part: (len(part), part.attrs["outside_box"]),
    )


DATA_SET = DataSet(
    "Gowalla",
    load_in_box,
    synthetic,
    cells,
    {"box": NEW_YORK, "cell_km": 5.0, "step": None, "max_gap": "2D"},
    load_options=grid_box,
    synthetic_options=lambda cut: {"box": cut["box"]},
)
