"""How a data set becomes sequences of states: cells of a grid or areas of a screen, and steps of time."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from tplrepro.datasets.grid import Grid
from tplrepro.datasets.time_steps import fixed_steps, observed_sequences
from tplrepro.markov.sequences import Sequences


@dataclass(frozen=True, eq=False)
class DataSet:
    """How one data set is read, what stands in for it, and how it is cut into states."""

    title: str
    load: Callable[..., pd.DataFrame]
    synthetic: Callable[..., pd.DataFrame]
    states: Callable[[pd.DataFrame, dict], tuple[Sequences, list[str], Grid | None]]
    cut: Mapping[str, Any]  # default arguments of the cut
    load_options: Callable[[dict], dict] = lambda cut: {}  # cut -> arguments of `load`
    synthetic_options: Callable[[dict], dict] = lambda cut: {}  # cut -> arguments of `synthetic`


def grid_box(cut: dict) -> dict:
    """The box of the whole cells, as an argument."""
    return {"box": Grid(cut["box"], cut["cell_km"]).box}


def cells(observations: pd.DataFrame, cut: dict) -> tuple[Sequences, list[str], Grid]:
    """Sequences of cells of positions, the names of the cells, and their grid; adds a column "cell"."""
    grid = Grid(cut["box"], cut["cell_km"])
    observations["cell"] = grid.cell(observations["latitude"].to_numpy(), observations["longitude"].to_numpy())
    sequences = in_time(observations, cut, "cell", "user")
    return sequences, grid.labels(sequences.labels), grid


def in_time(observations: pd.DataFrame, cut: dict, state: str, user: str | list[str]) -> Sequences:
    """Sequences at fixed steps, or as observed where the cut has `step` None."""
    if cut["step"] is None:
        return observed_sequences(observations, max_gap=cut["max_gap"], state=state, user=user)
    return fixed_steps(observations, cut["step"], cut["max_gap"], state=state, user=user)
