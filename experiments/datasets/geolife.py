"""Geolife: its cut into cells; its stand-in has days of people who live, work and go out in one
city."""

import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from experiments.datasets.preparation import DataSet, cells_as_states, grid_box
from experiments.datasets.readers.geolife import load
from experiments.datasets.stand_ins import draw_places, draw_popular, format_lines, make_stand_in
from tplreport.reading.grid import BEIJING_3RD_RING, as_box
from tplrepro.validation import check_horizon

HEADER = (
    b"Geolife trajectory\r\nWGS 84\r\nAltitude is in Feet\r\nReserved 3\r\n"
    b"0,2,255,My Track,0,0,2,8421376\r\n0\r\n"
)
ROOT = "Geolife Trajectories 1.3/Data"
METRES_A_DEGREE = np.array([111_000.0, 85_000.0])  # in Beijing
FIRST_DAY = 13_615  # since 1970: 2007-04-12
DAY_SECONDS = 86_400
HOUR_SECONDS = 3600
BEIJING_TIME = 8 * HOUR_SECONDS  # ahead of UTC
HOME = 0  # the number of this place of a user
WORK = 1
GPS_ERROR = 4e-5  # degrees


def synthetic(
    n_users: int = 10, seed: int = 0, path: str | Path | None = None, **options
) -> pd.DataFrame:
    """Write a stand-in in the official format, to `path` or a temporary file, and read it back.

    Each user has a home, a work place and six more popular places within the `box`. A trajectory is
    a day, with a point every `seconds_between_points` on the way and few while staying. The
    `n_trajectories`, by default 20 per user, are spread over users with a heavy tail. `options` are
    those of `write_archive`.
    """
    options |= {"n_users": n_users, "seed": seed}
    return make_stand_in(
        path, "geolife", "Geolife Trajectories 1.3.zip", write_archive, load, **options
    )


@dataclass(frozen=True, eq=False)
class Track:
    """The points of a trajectory."""

    time: np.ndarray  # (m,), seconds since 1970, UTC
    degrees: np.ndarray  # (m, 2), latitude and longitude


def write_archive(
    target: Path,
    n_users: int,
    seed: int,
    *,
    n_trajectories: int | None = None,
    seconds_between_points: float = 2.5,
    box=BEIJING_3RD_RING,
) -> None:
    """Write a synthetic zip archive in Geolife's format, one trajectory after the other, so that
    memory holds one.

    `n_trajectories` (None: 20 per user) are spread over users with a heavy tail; `box` (south,
    north, west, east), in degrees, holds their places.
    """
    n_users = check_horizon(n_users, "n_users")
    n_trajectories = _check_trajectories(n_trajectories, n_users)
    rng = np.random.default_rng([int(seed), 0])
    town = draw_places(rng, as_box(box), 2000)
    activity = rng.lognormal(0, 1, n_users)
    counts = 1 + rng.multinomial(n_trajectories - n_users, activity / activity.sum())
    with zipfile.ZipFile(target, "w") as archive:
        for user, count in enumerate(counts.tolist()):
            places = town[draw_popular(rng, len(town), 8)]
            days = FIRST_DAY + rng.choice(max(1800, count), count, replace=False)
            for day in np.sort(days).tolist():
                track = _draw_day(rng, day, places, seconds_between_points)
                content = _file_content(rng, track)
                archive.writestr(_member(user, track), content, zipfile.ZIP_DEFLATED, 1)


def _check_trajectories(n_trajectories: int | None, n_users: int) -> int:
    """The number of trajectories, by default 20 per user."""
    if n_trajectories is None:
        return 20 * n_users
    n_trajectories = check_horizon(n_trajectories, "n_trajectories")
    if n_trajectories < n_users:
        raise ValueError(
            f"n_trajectories must be at least n_users, {n_users}, found {n_trajectories}; "
            "a user has one"
        )
    return n_trajectories


def _member(user: int, track: Track) -> zipfile.ZipInfo:
    """Where a track is in the archive, named by its beginning."""
    begin = str(np.datetime64(int(track.time[0]), "s"))
    stamp = begin.translate(str.maketrans("", "", "-T:"))
    # Without the time of writing: the same bytes at any time.
    info = zipfile.ZipInfo(f"{ROOT}/{user:03d}/Trajectory/{stamp}.plt")
    info.external_attr = 0o644 << 16
    return info


@dataclass(frozen=True)
class Habits:
    """Hours between which a day begins, and a stay at work (or elsewhere) lasts."""

    begin: tuple[float, float]
    stay: tuple[float, float]


WORKDAY = Habits(begin=(7, 9), stay=(8, 10))
DAY_OFF = Habits(begin=(7, 12), stay=(2, 5))


def _draw_day(
    rng: np.random.Generator, day: int, places: np.ndarray, seconds_between_points: float
) -> Track:
    """A day's track: home, work or elsewhere, elsewhere, and home again.

    `day` counts from 1970-01-01 in local time; `places` (8, 2) are the user's, in degrees, home and
    work first.
    """
    is_workday = (day + 3) % 7 < 5
    others = draw_popular(rng, 8, 2)
    if is_workday:
        habits = WORKDAY
        stops = places[[HOME, WORK, others[1], HOME]]
    else:
        habits = DAY_OFF
        stops = places[[HOME, others[0], others[1], HOME]]
    metres = np.linalg.norm(np.diff(stops, axis=0) * METRES_A_DEGREE, axis=1)
    metres_a_second = rng.uniform(3, 7, 3)
    ways = metres / metres_a_second + 1
    shortest = [0.2, habits.stay[0], 1, 0.2]
    longest = [0.6, habits.stay[1], 3, 0.4]
    stays = HOUR_SECONDS * rng.uniform(shortest, longest)
    durations = np.insert(stays, [1, 2, 3], ways)  # a stay, a way, a stay, ...
    ends = rng.uniform(*habits.begin) * HOUR_SECONDS + np.cumsum(durations)
    intervals = [120.0, seconds_between_points] * 3 + [120.0]  # sparse while staying
    parts = [
        np.arange(end - duration, end, interval)
        for end, duration, interval in zip(ends, durations, intervals, strict=True)
    ]
    local_time = np.unique(np.floor(np.concatenate(parts)))
    changes = np.append(ends[0] - durations[0], ends)
    ways_and_stays = [np.interp(local_time, changes, np.repeat(degrees, 2)) for degrees in stops.T]
    degrees = np.stack(ways_and_stays, axis=-1)
    time = (day * DAY_SECONDS - BEIJING_TIME + local_time).astype(np.int64)
    return Track(time, degrees + rng.normal(0, GPS_ERROR, degrees.shape))


def _file_content(rng: np.random.Generator, track: Track) -> bytes:
    """A track as a file of the official format, with altitudes in feet, -777 where unknown."""
    n_points = len(track.time)
    is_unknown = rng.random(n_points) < 0.02
    altitude = np.rint(160 + rng.normal(0, 15, n_points))
    altitude[is_unknown] = -777
    stamps = pa.array(track.time.astype("datetime64[s]"))
    columns = {
        "latitude": np.round(track.degrees[:, 0], 6),
        "longitude": np.round(track.degrees[:, 1], 6),
        "zero": np.zeros(n_points, dtype=np.int8),
        "altitude": altitude.astype(np.int32),
        "day": np.round(25_569 + track.time / DAY_SECONDS, 10),  # since 1899-12-30
        "date": stamps.cast(pa.date32()),
        "clock": pc.strftime(stamps, format="%H:%M:%S"),
    }
    return HEADER + format_lines(columns, ",", b"\r\n")


DATA_SET = DataSet(
    title="Geolife",
    load=load,
    synthetic=synthetic,
    states=cells_as_states,
    cut={"box": BEIJING_3RD_RING, "cell_km": 1.0, "step": "5min", "max_gap": "30min"},
    load_options=grid_box,
    synthetic_options=grid_box,
)
