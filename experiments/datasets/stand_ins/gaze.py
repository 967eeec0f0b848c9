"""The stand-in for gaze recordings: fixations on spots of a screen, as CSV files of a given layout."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from experiments.datasets.stand_ins.places import check_size, popular
from experiments.datasets.writing import line_bytes, stand_in, synthetic_folder
from tplrepro.datasets.gaze import GAZEGRAPH, SCREENS, load

N_SPOTS = 40


def synthetic(
    n_users: int = 8,
    seed: int = 0,
    path: str | Path | None = None,
    *,
    seconds: float = 30.0,
    rate: float = 60.0,
    n_recordings: int = 1,
    layout: dict[str, Any] = GAZEGRAPH,
) -> pd.DataFrame:
    """Write a stand-in in the layout of one of the recorded sets, and read it back, as `geolife.synthetic` does.

    The gaze rests on popular areas of interest for about 0.3 s each, often near the previous one, and jumps
    between them; some samples are lost. Each user has `n_recordings` of `seconds` length at `rate` samples
    per second; `layout` is `GAZEGRAPH` or `ANDERSSON2017`, and `path` a folder.
    """
    size = SCREENS["ANDERSSON2017" if layout["unit"] == "px" else "GAZEGRAPH"]
    options = {"seconds": seconds, "rate": rate, "n_recordings": n_recordings, "layout": layout, "size": size}
    return stand_in(path, "gaze", partial(write, n_users=n_users, seed=seed, **options), partial(load, **layout))


def write(target, n_users, seed, *, seconds=30.0, rate=60.0, n_recordings=1, layout, size) -> None:
    """Write the folder; `size` is the size of the screen, other parameters as in `synthetic`."""
    n_users, n_recordings = check_size(n_users, "n_users"), check_size(n_recordings, "n_recordings")
    samples = check_size(int(seconds * rate), "seconds * rate")
    if not 1 <= rate <= 2000:
        raise ValueError(f"rate must be from 1 to 2000 samples a second, found {rate}; times have four decimals")
    rng = np.random.default_rng([int(seed), 4])
    spots = rng.uniform(0.05, 0.95, (N_SPOTS, 2))
    header = f"{layout['time']},{layout['x']},{layout['y']}\n".encode()
    with synthetic_folder(target, set="gaze", n_users=n_users, seed=int(seed)) as folder:
        for user in range(1, n_users + 1):
            for recording in range(1, n_recordings + 1):
                looked_at = spots[_scan_path(rng, spots, samples, rate)] + rng.normal(0, 0.004, (samples, 2))
                points = np.round(looked_at.clip(0.001, 0.999) * size, 5)
                points[(rng.random(samples // 50 + 1) < 0.03).repeat(50)[:samples]] = 0  # blinks
                columns = {"time": np.round(np.arange(samples) / rate, 4), "x": points[:, 0], "y": points[:, 1]}
                (folder / f"P{user}_SYNTHETIC{recording}.csv").write_bytes(header + line_bytes(columns, ","))


def _scan_path(rng: np.random.Generator, spots: np.ndarray, samples: int, rate: float) -> np.ndarray:
    """Number of the spot looked at, (samples,): a popular one or one near the last one, each for some 0.3 s."""
    nearest = np.argsort(np.linalg.norm(spots[:, None] - spots, axis=-1), axis=1)
    fixations = 5 + int(samples / rate / 0.1)  # more than are needed
    stays = 1 + (rng.gamma(4, 0.075, fixations) * rate).astype(np.int64)
    anew, rank, looked_at = rng.random(fixations) < 0.5, popular(rng, N_SPOTS, fixations), [0]
    for k in range(1, fixations):
        looked_at.append(rank[k] if anew[k] else nearest[looked_at[-1], rank[k]])
    return np.repeat(looked_at, stays)[:samples]
