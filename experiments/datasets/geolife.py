"""Geolife: its cut into cells; its stand-in has days of people who live, work and go out in one
city."""

import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from experiments.datasets.preparation import DataSet, cells, grid_box
from experiments.datasets.readers.geolife import load
from experiments.datasets.stand_ins import city, line_bytes, popular, stand_in
from tplreport.reading.grid import BEIJING_3RD_RING, as_box
from tplrepro.validation import check_horizon

HEADER = b"Geolife trajectory\r\nWGS 84\r\nAltitude is in Feet\r\nReserved 3\r\n0,2,255,My Track,0,0,2,8421376\r\n0\r\n"
METRES_A_DEGREE = np.array([111_000.0, 85_000.0])  # in Beijing


def synthetic(
    n_users: int = 10, seed: int = 0, path: str | Path | None = None, **options
) -> pd.DataFrame:
    """Write a stand-in in the official format, to `path` or a temporary file, and read it back.

    Each user has a home, a work place and six more popular places within the `box`. A trajectory is
    a day, with a point every `seconds_between_points` on the way and few while staying. The
    `n_trajectories`, by default 20 per user, are spread over users with a heavy tail. `options` are
    those of `write`.
    """
    options |= {"n_users": n_users, "seed": seed}
    return stand_in(path, "geolife", "Geolife Trajectories 1.3.zip", write, load, **options)


def write(
    target, n_users, seed, *, n_trajectories=None, seconds_between_points=2.5, box=BEIJING_3RD_RING
) -> None:
    """Write the file in memory bounded by one trajectory."""
    n_users, box = check_horizon(n_users, "n_users"), as_box(box)
    n_trajectories = (
        20 * n_users if n_trajectories is None else check_horizon(n_trajectories, "n_trajectories")
    )
    if n_trajectories < n_users:
        raise ValueError(
            f"n_trajectories must be at least n_users, {n_users}, found {n_trajectories}; a user has one"
        )
    rng = np.random.default_rng([int(seed), 0])
    town = city(rng, box, 2000)
    activity = rng.lognormal(0, 1, n_users)
    counts = 1 + rng.multinomial(n_trajectories - n_users, activity / activity.sum())
    with zipfile.ZipFile(target, "w") as archive:
        for user, count in enumerate(counts.tolist()):
            places = town[popular(rng, len(town), 8)]
            days = 13_615 + rng.choice(max(1800, count), count, replace=False)  # from 2007-04-12
            for day in np.sort(days).tolist():
                time, track = _day(rng, day, places, seconds_between_points)
                stamp = f"{np.datetime64(int(time[0]), 's')}".translate(
                    str.maketrans("", "", "-T:")
                )
                # Without the time of writing: the same bytes at any time.
                info = zipfile.ZipInfo(
                    f"Geolife Trajectories 1.3/Data/{user:03d}/Trajectory/{stamp}.plt"
                )
                info.external_attr = 0o644 << 16
                archive.writestr(info, _plt(rng, time, track), zipfile.ZIP_DEFLATED, 1)


def _day(
    rng: np.random.Generator, day: int, places: np.ndarray, between: float
) -> tuple[np.ndarray, np.ndarray]:
    """Seconds since 1970 (m,) and degrees (m, 2) of a day's track: home, work, elsewhere and home
    again."""
    works = (day + 3) % 7 < 5
    others = popular(rng, 8, 2)
    stops = places[np.array([0, 1 if works else others[0], others[1], 0])]
    # 3 to 7 m/s
    ways = (
        np.linalg.norm(np.diff(stops, axis=0) * METRES_A_DEGREE, axis=1) / rng.uniform(3, 7, 3) + 1
    )
    stays = 3600 * rng.uniform([0.2, 8 if works else 2, 1, 0.2], [0.6, 10 if works else 5, 3, 0.4])
    lasting = np.insert(stays, [1, 2, 3], ways)
    ends = rng.uniform(7, 9 if works else 12) * 3600 + np.cumsum(lasting)
    intervals = [120.0, between] * 3 + [120.0]  # sparse while staying
    parts = [
        np.arange(end - long, end, every)
        for end, long, every in zip(ends, lasting, intervals, strict=True)
    ]
    local = np.unique(np.floor(np.concatenate(parts)))
    knots = np.append(ends[0] - lasting[0], ends)
    track = np.stack(
        [np.interp(local, knots, np.repeat(degrees, 2)) for degrees in stops.T], axis=-1
    )
    # Beijing time
    return (day * 86_400 - 8 * 3600 + local).astype(np.int64), track + rng.normal(
        0, 4e-5, track.shape
    )


def _plt(rng: np.random.Generator, time: np.ndarray, track: np.ndarray) -> bytes:
    stamps = pa.array(time.astype("datetime64[s]"))
    altitude = np.where(
        rng.random(len(time)) < 0.02, -777, np.rint(160 + rng.normal(0, 15, len(time)))
    )
    columns = {
        "latitude": np.round(track[:, 0], 6),
        "longitude": np.round(track[:, 1], 6),
        "zero": np.zeros(len(time), dtype=np.int8),
        "altitude": altitude.astype(np.int32),
        "day": np.round(25_569 + time / 86_400, 10),
        "date": stamps.cast(pa.date32()),
        "clock": pc.strftime(stamps, format="%H:%M:%S"),
    }
    return HEADER + line_bytes(columns, ",", b"\r\n")


DATA_SET = DataSet(
    "Geolife",
    load,
    synthetic,
    cells,
    {"box": BEIJING_3RD_RING, "cell_km": 1.0, "step": "5min", "max_gap": "30min"},
    load_options=grid_box,
    synthetic_options=grid_box,
)
