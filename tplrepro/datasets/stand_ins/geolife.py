"""Writes the stand-in of Geolife: days of people who live, work and go out in one city, as .plt files."""

from __future__ import annotations

import itertools
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from tplrepro.datasets.grid import BEIJING_3RD_RING, as_box
from tplrepro.datasets.stand_ins.places import check_size, city, draw
from tplrepro.datasets.writing import atomic_output, line_bytes, mark_synthetic

__all__ = ["write"]

HEADER = b"Geolife trajectory\r\nWGS 84\r\nAltitude is in Feet\r\nReserved 3\r\n0,2,255,My Track,0,0,2,8421376\r\n0\r\n"


def write(target, n_users, seed, *, n_trajectories=None, seconds_between_points=2.5, box=BEIJING_3RD_RING) -> None:
    """Write the stand-in that `tplrepro.datasets.geolife.synthetic` reads back; parameters as there."""
    n_users = check_size(n_users, "n_users")
    n_trajectories = 20 * n_users if n_trajectories is None else check_size(n_trajectories, "n_trajectories")
    if n_trajectories < n_users:
        raise ValueError(f"n_trajectories must be at least n_users, {n_users}, found {n_trajectories}; a user has one")
    if not 1 <= seconds_between_points <= 600:
        raise ValueError(f"seconds_between_points must be from 1 to 600, found {seconds_between_points}; try 2.5")
    box = as_box(box)
    mark_synthetic(target, {"set": "geolife", "n_users": n_users, "seed": int(seed), "n_trajectories": n_trajectories})
    with atomic_output(target) as out, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        rng = np.random.default_rng([int(seed), 0])
        town = city(rng, box, 2000)
        weight = rng.lognormal(0, 1, n_users)
        counts = 1 + rng.multinomial(n_trajectories - n_users, weight / weight.sum())
        for user, count in enumerate(counts.tolist()):
            own_rng = np.random.default_rng([int(seed), 0, user])
            own = draw(own_rng, town.cumulative, 8)
            places = np.stack([town.latitude[own], town.longitude[own]], axis=-1)
            days = 13_615 + np.sort(own_rng.choice(max(1800, count), count, replace=False))  # from 2007-04-12
            for day in days.tolist():
                time, track = _day(own_rng, day, places, seconds_between_points)
                stamp = pd.Timestamp(int(time[0]), unit="s").strftime("%Y%m%d%H%M%S")
                name = f"Geolife Trajectories 1.3/Data/{user:03d}/Trajectory/{stamp}.plt"
                info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))  # the same bytes at any time
                info.external_attr = 0o644 << 16
                archive.writestr(info, _plt(own_rng, time, track), zipfile.ZIP_DEFLATED, 1)


def _day(rng, day: int, places, between: float):
    """Seconds since 1970 (m,) and degrees (m, 2) of one day's track: stays and the ways between them, Beijing time."""
    free = places[2 + draw(rng, np.array([0.4, 0.63, 0.79, 0.9, 0.96, 1.0]), 2)]
    home, work = places[0], places[1]
    if (day + 3) % 7 < 5:
        stops = [home, work, home] if rng.random() < 0.5 else [home, work, free[0], home]
        leave = [rng.normal(8, 0.7), rng.normal(18, 1.0), rng.normal(20.5, 0.7)]
    else:
        stops = [home, free[0], home] if rng.random() < 0.5 else [home, free[0], free[1], home]
        leave = [rng.normal(10.5, 1.2), rng.normal(15, 1.0), rng.normal(19, 1.0)]
    knots_time, knots = [], []
    now = (leave[0] - rng.uniform(0.1, 0.5)) * 3600
    times = []
    for k, (here, there) in enumerate(itertools.pairwise(stops)):
        go = max(now + 300, leave[k] * 3600)
        times.append(np.arange(now, go, 120.0))  # sparse while staying
        corner = np.array([here[0], there[1]])  # along the streets: first east or west, then north or south
        east, north = np.abs(there - here) * [1.0, 0.77] * 111_000 @ [[0, 1], [1, 0]]
        speed = rng.uniform(4, 9)  # metres a second
        turn, arrive = go + east / speed + 1, go + (east + north) / speed + 2
        knots_time += [now, go, turn, arrive]
        knots += [here, here, corner, there]
        times.append(np.arange(go, arrive, between))
        now = arrive
    times.append(np.arange(now, now + 600, 60.0))
    knots_time.append(now + 600)
    knots.append(stops[-1])
    local = np.unique(np.floor(np.concatenate(times)))
    track = np.stack([np.interp(local, knots_time, degrees) for degrees in np.transpose(knots)], axis=-1)
    # GPS errors of some 5 metres.
    track += rng.normal(0, 4e-5, track.shape)
    return (day * 86_400 - 8 * 3600 + local).astype(np.int64), track


def _plt(rng, time, track) -> bytes:
    stamps = pa.array(time.astype("datetime64[s]"))
    altitude = np.where(rng.random(len(time)) < 0.02, -777, np.rint(160 + rng.normal(0, 15, len(time))))
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
