"""From the name of a data set to sequences of states with their provenance: recorded data, or else
a stand-in.

States are cells of a grid, pages or areas of a screen. `DATA_SET` of each set's module says how it
is read, what stands in for it, and how it is cut into states.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd

from experiments.datasets.readers import registry
from tplreport.reading.grid import BEIJING_3RD_RING, LOS_ANGELES, NEW_YORK, Grid
from tplreport.reading.time_steps import fixed_steps, observed_sequences
from tplrepro.markov.sequences import Sequences
from tplrepro.validation import check_choice

PLACES = {BEIJING_3RD_RING: "Beijing", LOS_ANGELES: "Los Angeles", NEW_YORK: "New York"}


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


@dataclass(frozen=True, eq=False)
class Prepared:
    """Sequences ready to estimate a chain from, and their provenance."""

    sequences: Sequences  # labelled by the numbers of cells, pages or areas
    state_names: list[str]  # one per state: "r3c14", "page 7" or "area r0c1"
    grid: Grid | None  # of the cells
    name: str  # "Geolife"
    place: str  # of its grid: "Beijing", "Los Angeles (thinned)", or coordinates
    title: str  # of a figure: data set, place, and "(synthetic data)" if synthetic
    synthetic: bool
    official: bool  # whether the files are known to be the whole published set
    # files that were read; empty for synthetic data, never for recorded data
    inputs: tuple[Path, ...]
    # as read, with the states in a column "cell", "page" or "area", -1 outside
    observations: pd.DataFrame

    @property
    def record(self) -> dict:
        """The keywords `data` and `inputs` of `figures.save_figure` and `figures.save_table`."""
        return joint_record(self)

    @property
    def kind(self) -> str:
        """ "recorded data" or "synthetic data"."""
        return "synthetic data" if self.synthetic else "recorded data"

    def __repr__(self) -> str:
        return f"Prepared({self.title}: {self.sequences})"


def joint_record(*prepared: Prepared) -> dict:
    """`Prepared.record` of a result from several data sets, with all files that were read.

    If only some are synthetic it names these: "synthetic in part: Kosarak".
    """
    synthetic = [one.name for one in prepared if one.synthetic]
    kind = "real" if all(one.official for one in prepared) else "real (unverified)"
    if synthetic:
        kind = (
            "synthetic"
            if len(synthetic) == len(prepared)
            else f"synthetic in part: {', '.join(synthetic)}"
        )
    return {"data": kind, "inputs": [path for one in prepared for path in one.inputs]}


def joint_kind(*prepared: Prepared) -> str:
    """For a heading: "recorded data", or "Geolife: recorded data, Kosarak: synthetic data"."""
    if len({one.kind for one in prepared}) == 1:
        return prepared[0].kind
    return ", ".join(f"{one.name}: {one.kind}" for one in prepared)


def prepare(
    name: str,
    *,
    path: str | Path | None = None,
    synthetic: bool = False,
    stand_in: Mapping | None = None,
    **cut: Any,
) -> Prepared:
    """Sequences of states of a data set: recorded data where they are found, else a synthetic
    stand-in.

    Parameters
    ----------
    name : {"geolife", "gowalla", "kosarak", "gaze"}
    path : path-like, optional; by default the data are looked for as in `registry.locate`
    synthetic : bool, whether to use the stand-in even if there are recorded data
    stand_in : dict, optional, arguments of the set's ``synthetic``: n_users, seed, ...
    **cut : how to make states and steps; the defaults are those of the data set's `DATA_SET`
        geolife, gowalla: `box` and `cell_km` of a `Grid`. gaze: `layout`, and the numbers of `columns` and
        `rows` of areas. All three: `step` and `max_gap` as in `fixed_steps`, or with `step` None as in
        `observed_sequences`.

    Raises ValueError for an unknown name or cut, and if there are no two consecutive states;
    DatasetNotFoundError only if `path` is given; DataFormatError and OSError like the readers.
    Also `experiments.datasets.load`.
    """
    check_choice(name, "name", registry.SOURCES)
    data_set = import_module(f"experiments.datasets.{name}").DATA_SET
    unknown = sorted(set(cut) - set(data_set.cut))
    if unknown:
        allowed = ", ".join(data_set.cut) or "nothing"
        raise ValueError(f"{name} is cut by {allowed}, found {', '.join(unknown)}; leave it out")
    cut = {**data_set.cut, **cut}
    observations = None
    if not synthetic:
        try:
            observations = data_set.load(path, **data_set.load_options(cut))
        except registry.DatasetNotFoundError:
            if path is not None:
                raise
    if observations is None:
        observations = data_set.synthetic(**{**data_set.synthetic_options(cut), **(stand_in or {})})
    sequences, state_names, grid = data_set.states(observations, cut)
    title = set_name = data_set.title.format(**cut)
    place = ""
    if grid is not None:
        place = next(
            (
                known
                for box, known in PLACES.items()
                if box.contains(grid.box[:2], grid.box[2:]).all()
            ),
            "",
        )
        thinned = (
            " (thinned)" if Path(observations.attrs["source"]).name in registry.THINNED else ""
        )
        title += (
            f" in {place}"
            if place
            else ", latitude {:g} to {:g}, longitude {:g} to {:g}".format(*grid.box)
        )
        title, place = title + thinned, place + thinned
    if not sequences.n_transitions:
        found = (
            f"found none in {len(observations)} rows; give the region by box=, or check the file"
        )
        raise ValueError(
            f"{title}: there must be two observations of a user within max_gap, {found}"
        )
    is_synthetic = observations.attrs["synthetic"]
    if is_synthetic:
        title += " (synthetic data)"
    inputs = () if is_synthetic else (Path(observations.attrs["source"]),)
    official = all(registry.is_official(name, path) for path in inputs)
    return Prepared(
        sequences,
        state_names,
        grid,
        set_name,
        place,
        title,
        is_synthetic,
        official,
        inputs,
        observations,
    )


def grid_box(cut: dict) -> dict:
    """The box of the whole cells, as an argument."""
    return {"box": Grid(cut["box"], cut["cell_km"]).box}


def cells(observations: pd.DataFrame, cut: dict) -> tuple[Sequences, list[str], Grid]:
    """Sequences of cells of positions, the names of the cells, and their grid; adds a column
    "cell"."""
    grid = Grid(cut["box"], cut["cell_km"])
    observations["cell"] = grid.cell(
        observations["latitude"].to_numpy(), observations["longitude"].to_numpy()
    )
    sequences = in_time(observations, cut, "cell", "user")
    return sequences, grid.labels(sequences.labels), grid


def in_time(observations: pd.DataFrame, cut: dict, state: str, user: str | list[str]) -> Sequences:
    """Sequences at fixed steps, or as observed where the cut has `step` None."""
    if cut["step"] is None:
        return observed_sequences(observations, max_gap=cut["max_gap"], state=state, user=user)
    return fixed_steps(observations, cut["step"], cut["max_gap"], state=state, user=user)
