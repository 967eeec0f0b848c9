"""Gowalla: its cut into cells; its stand-in has check-ins of people in four cities, in SNAP
format."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from experiments.datasets.preparation import DataSet, cells_as_states, grid_box
from experiments.datasets.readers import registry
from experiments.datasets.readers.gowalla import load
from experiments.datasets.stand_ins import (
    draw_counts,
    draw_places,
    draw_popular,
    format_lines,
    make_stand_in,
    open_for_writing,
)
from tplreport.reading.grid import LOS_ANGELES, NEW_YORK, Box, as_box
from tplrepro.validation import check_horizon

BATCH_USERS = 4096
# As in the official file.
MEAN_CHECK_INS = 32.8
MOST_CHECK_INS = 2175
FIRST_DAY = 14_276  # since 1970: 2009-02-01
LAST_DAY = 626  # since the first
DAY_SECONDS = 86_400
HOUR_SECONDS = 3600

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
    return make_stand_in(
        path, "gowalla", "loc-gowalla_totalCheckins.txt", write_check_ins, load, **options
    )


def write_check_ins(target: Path, n_users: int, seed: int, box=NEW_YORK) -> None:
    """Write synthetic check-ins of `n_users` users in Gowalla's format, batch by batch, so that
    memory holds one batch; half of the users live in the `box` (south, north, west, east)."""
    n_users = check_horizon(n_users, "n_users")
    n_places = max(100, int(n_users * MEAN_CHECK_INS / 20))  # in each city
    rng = np.random.default_rng([int(seed), 1])
    degrees = np.concatenate(
        [draw_places(rng, box, n_places) for box in (as_box(box), *OTHER_CITIES)]
    )
    location_ids = rng.permutation(len(degrees))
    with open_for_writing(target) as out:
        for start in range(0, n_users, BATCH_USERS):
            n_batch = min(BATCH_USERS, n_users - start)
            counts = draw_counts(rng, n_batch, MEAN_CHECK_INS, MOST_CHECK_INS)
            visits = _draw_times(rng, counts)
            city_of_user = rng.choice(len(SHARES), n_batch, p=SHARES)
            place_in_city = _draw_places(rng, visits, n_batch, n_places)
            place = city_of_user[visits.user] * n_places + place_in_city
            columns = {
                "user": visits.user + start,
                "time": _written_times(visits.time),
                "latitude": np.round(degrees[place, 0], 10),
                "longitude": np.round(degrees[place, 1], 10),
                "location": location_ids[place],
            }
            out.write(format_lines(columns, "\t"))


def _written_times(time: np.ndarray) -> pa.Array:
    """Seconds since 1970 as the official file writes them, such as 2010-10-19T23:55:27Z."""
    return pc.strftime(pa.array(time.astype("datetime64[s]")), format="%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True, eq=False)
class Visits:
    """Who checks in when: user and seconds since 1970 of each check-in, newest first for a user."""

    user: np.ndarray
    time: np.ndarray


def _draw_times(rng: np.random.Generator, counts: np.ndarray) -> Visits:
    """So many check-ins of each user, most in the evening (local time read as UTC)."""
    user = np.repeat(np.arange(len(counts)), counts)
    first_day = rng.integers(0, 500, len(counts))
    n_days = 5 + 2 * counts
    days_later = (rng.random(len(user)) * n_days[user]).astype(np.int64)
    day = np.minimum(first_day[user] + days_later, LAST_DAY)
    hour = rng.triangular(0, 18, 24, len(user))
    time = ((FIRST_DAY + day) * DAY_SECONDS + hour * HOUR_SECONDS).astype(np.int64)
    return Visits(user, time[np.lexsort((-time, user))])


def _draw_places(
    rng: np.random.Generator, visits: Visits, n_users: int, n_places: int
) -> np.ndarray:
    """Number, below `n_places`, of the place of each check-in in the user's city: home or work by
    the hour, else a favourite place, or any."""
    n_visits = len(visits.time)
    favourites = draw_popular(rng, n_places, (n_users, 8))  # home, work, and six more
    hour = visits.time // HOUR_SECONDS % 24
    weekday = (visits.time // DAY_SECONDS + 3) % 7
    is_working_time = (weekday < 5) & (hour >= 7) & (hour < 18)
    is_night = (hour >= 21) | (hour < 7)
    works = is_working_time & (rng.random(n_visits) < 0.6)
    rests = is_night & (rng.random(n_visits) < 0.7)
    favourite = draw_popular(rng, 8, n_visits)
    favourite[rests] = 0
    favourite[works] = 1
    explores = ~works & ~rests & (rng.random(n_visits) < 0.3)
    anywhere = draw_popular(rng, n_places, n_visits)
    return np.where(explores, anywhere, favourites[visits.user, favourite])


def contents(path: str | Path | None = None, box: Box = NEW_YORK) -> dict[str, Any]:
    """What a file holds in a box, however it writes numbers: check-ins and users as read, and a
    digest of them.

    The SHA-256 is that of lines of user, time, latitude, longitude and location, ordered by user
    and time, with degrees in units of 1e-10, the last digit of the official file.
    """
    visits = load_in_box(path, as_box(box))
    columns = {
        "user": visits["user"],
        "time": visits["time"].astype("int64") // 1_000_000,
        "latitude": np.rint(visits["latitude"] * 1e10).astype(np.int64),
        "longitude": np.rint(visits["longitude"] * 1e10).astype(np.int64),
        "location": visits["location"],
    }
    digest = hashlib.sha256(format_lines(columns, "\t")).hexdigest()
    return {"check-ins": len(visits), "users": visits["user"].nunique(), "sha256": digest}


def load_in_box(path: str | Path | None, box: Box) -> pd.DataFrame:
    """A file; without a path the official one, or else the file with the most check-ins in the
    box."""
    if path is None:
        path = registry.locate("gowalla")
        if "totalCheckins" not in path.name:
            return _densest_in_box(path.parent, box)
    return load(path, box=box)


def _densest_in_box(folder: Path, box: Box) -> pd.DataFrame:
    """The file with the most check-ins in the box; among equal ones, with the most outside."""
    files = sorted([*folder.glob("*.txt"), *folder.glob("*.txt.gz")])
    frames = (load(file, box=box) for file in files)
    return max(frames, key=lambda frame: (len(frame), frame.attrs["outside_box"]))


def box_of_cut(cut: Mapping) -> dict[str, Any]:
    """The box as it is given, as an argument."""
    return {"box": cut["box"]}


DATA_SET = DataSet(
    title="Gowalla",
    load=load_in_box,
    synthetic=synthetic,
    states=cells_as_states,
    cut={"box": NEW_YORK, "cell_km": 5.0, "step": None, "max_gap": "2D"},
    load_options=grid_box,
    synthetic_options=box_of_cut,
)
