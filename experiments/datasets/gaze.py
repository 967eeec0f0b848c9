"""Gaze: areas of the screen as states; its stand-in has fixations on spots of a screen, in a given
layout."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from experiments.datasets.preparation import DataSet, States, sequences_in_time
from experiments.datasets.readers.gaze import ANDERSSON2017, GAZEGRAPH, SCREENS, areas, load
from experiments.datasets.stand_ins import draw_popular, format_lines, make_stand_in
from tplrepro.validation import check_choice, check_horizon

N_SPOTS = 40
LAYOUTS: dict[str, dict[str, Any]] = {"GAZEGRAPH": GAZEGRAPH, "ANDERSSON2017": ANDERSSON2017}
TITLES = {"GAZEGRAPH": "GazeGraph", "ANDERSSON2017": "Andersson et al. (2017)"}


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
    return make_stand_in(path, "gaze", "gaze", write_recordings, partial(load, **layout), **options)


def write_recordings(
    target: Path,
    n_users: int,
    seed: int,
    *,
    seconds: float = 30.0,
    rate: float = 60.0,
    n_recordings: int = 1,
    layout: dict[str, Any],
) -> None:
    """Write a folder of synthetic recordings of gaze, one CSV file for each.

    `seconds` is the length of a recording, `rate` its samples a second; `layout` names the columns
    of time, x and y, and the unit of the positions.
    """
    n_users = check_horizon(n_users, "n_users")
    n_recordings = check_horizon(n_recordings, "n_recordings")
    n_samples = check_horizon(int(seconds * rate), "seconds * rate")
    rng = np.random.default_rng([int(seed), 4])
    spots = rng.uniform(0.05, 0.95, (N_SPOTS, 2))
    header = f"{layout['time']},{layout['x']},{layout['y']}\n".encode()
    time = np.round(np.arange(n_samples) / rate, 4)
    target.mkdir()
    for user in range(1, n_users + 1):
        for recording in range(1, n_recordings + 1):
            shares = _draw_looks(rng, spots, n_samples, rate)
            points = np.round(shares * _screen_size(layout), 5)
            points[_draw_blinks(rng, n_samples)] = 0
            columns = {"time": time, "x": points[:, 0], "y": points[:, 1]}
            file = target / f"P{user}_SYNTHETIC{recording}.csv"
            file.write_bytes(header + format_lines(columns, ","))


def _screen_size(layout: Mapping[str, Any]) -> tuple[float, float]:
    """Width and height of the screen, in the unit of the layout."""
    if layout["unit"] == "px":
        return SCREENS["ANDERSSON2017"]
    return SCREENS["GAZEGRAPH"]


def _draw_looks(
    rng: np.random.Generator, spots: np.ndarray, n_samples: int, rate: float
) -> np.ndarray:
    """Where one looks, (samples, 2), in shares of the screen: near the spots (m, 2) of a scan path;
    `rate` in samples a second."""
    path = spots[_draw_scan_path(rng, spots, n_samples, rate)]
    tremor = rng.normal(0, 0.004, (n_samples, 2))
    return (path + tremor).clip(0.001, 0.999)


def _draw_blinks(rng: np.random.Generator, n_samples: int) -> np.ndarray:
    """Whether each sample is lost, (samples,); they are lost in runs of 50."""
    is_blink = rng.random(n_samples // 50 + 1) < 0.03
    return is_blink.repeat(50)[:n_samples]


def _draw_scan_path(
    rng: np.random.Generator, spots: np.ndarray, n_samples: int, rate: float
) -> np.ndarray:
    """Number of the spot looked at, (samples,): popular or near the last one, for about 0.3 s at
    `rate` samples a second."""
    distances = np.linalg.norm(spots[:, None] - spots, axis=-1)
    nearest = np.argsort(distances, axis=1)
    n_fixations = 5 + int(n_samples / rate / 0.1)  # more than are needed
    stays = 1 + (rng.gamma(4, 0.075, n_fixations) * rate).astype(np.int64)
    is_anew = rng.random(n_fixations) < 0.5
    ranks = draw_popular(rng, N_SPOTS, n_fixations)
    spot = 0
    path = [spot]
    for fixation in range(1, n_fixations):
        if is_anew[fixation]:
            spot = ranks[fixation]
        else:
            spot = nearest[spot, ranks[fixation]]
        path.append(spot)
    return np.repeat(path, stays)[:n_samples]


def layout_of_cut(cut: Mapping) -> dict[str, Any]:
    """The columns and the unit of the layout that the cut names, the arguments of `load`."""
    check_choice(cut["layout"], "layout", LAYOUTS)
    return LAYOUTS[cut["layout"]]


def layout_option(cut: Mapping) -> dict[str, Any]:
    """The layout that the cut names, as an argument of `synthetic`."""
    return {"layout": layout_of_cut(cut)}


def areas_as_states(observations: pd.DataFrame, cut: Mapping) -> States:
    """Areas of the screen as states; adds a column "area" to the observations."""
    columns = cut["columns"]
    observations["area"] = areas(observations, columns, cut["rows"], *SCREENS[cut["layout"]])
    sequences = sequences_in_time(observations, cut, state="area", user=["user", "recording"])
    names = []
    for area in sequences.labels.tolist():
        row, column = divmod(area, columns)
        names.append(f"area r{row}c{column}")
    return States(sequences, names)


def title_of_cut(cut: Mapping) -> str:
    """The name of the data set whose layout the cut names, as its authors write it."""
    return TITLES[cut["layout"]]


DATA_SET = DataSet(
    title=title_of_cut,
    load=load,
    synthetic=synthetic,
    states=areas_as_states,
    cut={"layout": "GAZEGRAPH", "columns": 4, "rows": 3, "step": 0.2, "max_gap": 0.5},
    load_options=layout_of_cut,
    synthetic_options=layout_option,
)
