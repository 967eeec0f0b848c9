"""Gaze: areas of the screen as states; its stand-in has fixations on spots of a screen, in a given
layout."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from experiments.datasets.preparation import DataSet, in_time
from experiments.datasets.readers.gaze import ANDERSSON2017, GAZEGRAPH, SCREENS, areas, load
from experiments.datasets.stand_ins import line_bytes, popular, stand_in
from tplrepro.markov.sequences import Sequences
from tplrepro.validation import check_choice, check_horizon

N_SPOTS = 40
LAYOUTS: dict[str, dict[str, Any]] = {"GAZEGRAPH": GAZEGRAPH, "ANDERSSON2017": ANDERSSON2017}


def synthetic(
    n_users: int = 8,
    seed: int = 0,
    path: str | Path | None = None,
    *,
    layout: dict[str, Any] = GAZEGRAPH,
    **options,
) -> pd.DataFrame:
    """Write a stand-in in the layout of a recorded set to a folder, and read it back, like
    `geolife.synthetic`.

    The gaze rests on popular areas of interest for about 0.3 s each, often near the previous one;
    some samples are lost. Each user has `n_recordings` of `seconds` length at `rate` samples per
    second.
    """
    options |= {"n_users": n_users, "seed": seed, "layout": layout}
    return stand_in(path, "gaze", "gaze", write, partial(load, **layout), **options)


def write(target, n_users, seed, *, seconds=30.0, rate=60.0, n_recordings=1, layout) -> None:
    """Write the folder."""
    size = SCREENS["ANDERSSON2017" if layout["unit"] == "px" else "GAZEGRAPH"]
    n_users, n_recordings = (
        check_horizon(n_users, "n_users"),
        check_horizon(n_recordings, "n_recordings"),
    )
    samples = check_horizon(int(seconds * rate), "seconds * rate")
    rng = np.random.default_rng([int(seed), 4])
    spots = rng.uniform(0.05, 0.95, (N_SPOTS, 2))
    header = f"{layout['time']},{layout['x']},{layout['y']}\n".encode()
    target.mkdir()
    for user in range(1, n_users + 1):
        for recording in range(1, n_recordings + 1):
            looked_at = spots[_scan_path(rng, spots, samples, rate)] + rng.normal(
                0, 0.004, (samples, 2)
            )
            points = np.round(looked_at.clip(0.001, 0.999) * size, 5)
            points[(rng.random(samples // 50 + 1) < 0.03).repeat(50)[:samples]] = 0  # blinks
            columns = {
                "time": np.round(np.arange(samples) / rate, 4),
                "x": points[:, 0],
                "y": points[:, 1],
            }
            (target / f"P{user}_SYNTHETIC{recording}.csv").write_bytes(
                header + line_bytes(columns, ",")
            )


def _scan_path(
    rng: np.random.Generator, spots: np.ndarray, samples: int, rate: float
) -> np.ndarray:
    """Number of the spot looked at, (samples,): popular or near the last one, for about 0.3 s."""
    nearest = np.argsort(np.linalg.norm(spots[:, None] - spots, axis=-1), axis=1)
    fixations = 5 + int(samples / rate / 0.1)  # more than are needed
    stays = 1 + (rng.gamma(4, 0.075, fixations) * rate).astype(np.int64)
    anew, rank, looked_at = rng.random(fixations) < 0.5, popular(rng, N_SPOTS, fixations), [0]
    for k in range(1, fixations):
        looked_at.append(rank[k] if anew[k] else nearest[looked_at[-1], rank[k]])
    return np.repeat(looked_at, stays)[:samples]


def layout_of(cut: dict) -> dict:
    """The columns and the unit of the layout that the cut names."""
    check_choice(cut["layout"], "layout", LAYOUTS)
    return LAYOUTS[cut["layout"]]


def areas_as_states(observations: pd.DataFrame, cut: dict) -> tuple[Sequences, list[str], None]:
    """Sequences of areas of the screen and the names of the areas; adds a column "area"."""
    columns = cut["columns"]
    observations["area"] = areas(observations, columns, cut["rows"], *SCREENS[cut["layout"]])
    sequences = in_time(observations, cut, "area", ["user", "recording"])
    return (
        sequences,
        [f"area r{area // columns}c{area % columns}" for area in sequences.labels.tolist()],
        None,
    )


DATA_SET = DataSet(
    "Gaze, {layout}",
    load,
    synthetic,
    areas_as_states,
    {"layout": "GAZEGRAPH", "columns": 4, "rows": 3, "step": 0.2, "max_gap": 0.5},
    load_options=layout_of,
    synthetic_options=lambda cut: {"layout": layout_of(cut)},
)
