"""Synthetic visits that the sections on own data read."""

from pathlib import Path

import numpy as np
import pandas as pd

#: Hourly visits of each user.
VISITS = 50
N_PLACES = 60


def write_visits(path: Path, rows: int) -> None:
    """Fifty hourly visits of each user to one of 60 places, in order of time, so that users
    alternate; CSV or Parquet by the suffix."""
    rng = np.random.default_rng(0)
    users = rows // VISITS
    place = rng.integers(0, N_PLACES, users)
    parts = []
    for hour in pd.date_range("2026-01-01", periods=VISITS, freq="h"):
        stays = rng.random(users) < 0.6
        moved = (place + rng.choice([-1, 1, 7], users)) % N_PLACES
        place = np.where(stays, place, moved)
        parts.append(pd.DataFrame({"user": np.arange(users), "time": hour, "state": place}))
    table = pd.concat(parts)
    table["state"] = "place " + table["state"].astype(str)
    if path.suffix == ".csv":
        table.to_csv(path, index=False, date_format="%Y-%m-%d %H:%M:%S")
    else:
        table.to_parquet(path, index=False)
