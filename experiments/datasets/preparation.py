"""From the name of a data set to sequences of states with their provenance: recorded data, or else
a stand-in.

States are cells of a grid, pages or areas of a screen. `DATA_SET` of each set's module says how it
is read, what stands in for it, and how it is cut into states.
"""

from collections.abc import Callable, Mapping, Sequence
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
class States:
    """Sequences of states, the names of the states, and the grid whose cells they are."""

    sequences: Sequences
    names: list[str]
    grid: Grid | None = None


def no_options(cut: Mapping) -> dict[str, Any]:
    """The options of a data set whose reader or stand-in takes no arguments from the cut."""
    return {}


@dataclass(frozen=True, eq=False)
class DataSet:
    """How one data set is read, what stands in for it, and how it is cut into states."""

    title: str | Callable[[Mapping], str]  # or cut -> title
    load: Callable[..., pd.DataFrame]
    synthetic: Callable[..., pd.DataFrame]
    states: Callable[[pd.DataFrame, dict], States]
    cut: Mapping[str, Any]  # default arguments of the cut
    load_options: Callable[[dict], dict] = no_options  # cut -> arguments of `load`
    synthetic_options: Callable[[dict], dict] = no_options  # cut -> arguments of `synthetic`


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
        if self.synthetic:
            return "synthetic data"
        return "recorded data"

    def __repr__(self) -> str:
        return f"Prepared({self.title}: {self.sequences})"


def joint_record(*prepared: Prepared) -> dict:
    """`Prepared.record` of a result from several data sets, with all files that were read.

    If only some are synthetic it names these: "synthetic in part: Kosarak".
    """
    inputs = [path for one in prepared for path in one.inputs]
    return {"data": _joint_data_kind(prepared), "inputs": inputs}


def _joint_data_kind(prepared: Sequence[Prepared]) -> str:
    """What a record says of the data of several sets, one of `provenance.DATA_KINDS`."""
    synthetic = [one.name for one in prepared if one.synthetic]
    if synthetic and len(synthetic) == len(prepared):
        return "synthetic"
    if synthetic:
        return f"synthetic in part: {', '.join(synthetic)}"
    if all(one.official for one in prepared):
        return "real"
    return "real (unverified)"


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
    stand-in. Also `experiments.datasets.load`.

    Parameters
    ----------
    name : {"geolife", "gowalla", "kosarak", "gaze"}
    path : path-like, optional
        By default the data are looked for as in `registry.locate`.
    synthetic : bool
        Whether to use the stand-in even if there are recorded data.
    stand_in : dict, optional
        Arguments of the set's ``synthetic``: n_users, seed, ...
    **cut
        How to make states and steps; the defaults are those of the data set's `DATA_SET`.
        geolife, gowalla: `box` and `cell_km` of a `Grid`. gaze: `layout`, and the numbers of
        `columns` and `rows` of areas. All three: `step` and `max_gap` as in `fixed_steps`, or with
        `step` None as in `observed_sequences`.

    Returns
    -------
    Prepared

    Raises
    ------
    ValueError
        For an unknown name or cut, and if there are no two consecutive states.
    DatasetNotFoundError
        Only if `path` is given.
    DataFormatError, OSError
        Like the readers.
    """
    check_choice(name, "name", registry.SOURCES)
    data_set: DataSet = import_module(f"experiments.datasets.{name}").DATA_SET
    cut = _complete_cut(name, data_set, cut)
    observations = None
    if not synthetic:
        observations = _load_if_found(data_set, path, cut)
    if observations is None:
        options = data_set.synthetic_options(cut) | dict(stand_in or {})
        observations = data_set.synthetic(**options)
    states = data_set.states(observations, cut)
    set_name = _title_of(data_set, cut)
    place = _place_of(states.grid, observations.attrs["source"])
    title = set_name + place.in_title
    _check_transitions(states.sequences, title, len(observations))
    is_synthetic = observations.attrs["synthetic"]
    inputs: tuple[Path, ...] = ()
    if is_synthetic:
        title += " (synthetic data)"
    else:
        inputs = (Path(observations.attrs["source"]),)
    return Prepared(
        sequences=states.sequences,
        state_names=states.names,
        grid=states.grid,
        name=set_name,
        place=place.name,
        title=title,
        synthetic=is_synthetic,
        official=all(registry.is_official(name, path) for path in inputs),
        inputs=inputs,
        observations=observations,
    )


def _title_of(data_set: DataSet, cut: Mapping) -> str:
    if callable(data_set.title):
        return data_set.title(cut)
    return data_set.title


def _complete_cut(name: str, data_set: DataSet, cut: Mapping) -> dict[str, Any]:
    """The arguments by which the data set `name` is cut, with defaults for those that are not
    given; ValueError for one that it does not have."""
    unknown = sorted(set(cut) - set(data_set.cut))
    if unknown:
        allowed = ", ".join(data_set.cut) or "nothing"
        raise ValueError(f"{name} is cut by {allowed}, found {', '.join(unknown)}; leave it out")
    return {**data_set.cut, **cut}


def _load_if_found(data_set: DataSet, path: str | Path | None, cut: dict) -> pd.DataFrame | None:
    """The recorded data, from `path` or where they are usually kept; None if no path is given and
    none are found."""
    try:
        return data_set.load(path, **data_set.load_options(cut))
    except registry.DatasetNotFoundError:
        if path is not None:
            raise
        return None


@dataclass(frozen=True)
class Place:
    """Where the grid of a data set lies."""

    name: str = ""  # "Beijing", "Los Angeles (thinned)"; empty where none is known
    in_title: str = ""  # " in Beijing", or ", latitude 30 to 31, longitude -98 to -97"


def _place_of(grid: Grid | None, source: str) -> Place:
    """The place of a grid of points from a file or folder."""
    if grid is None:
        return Place()
    name = _city_around(grid)
    if name:
        in_title = f" in {name}"
    else:
        in_title = ", latitude {:g} to {:g}, longitude {:g} to {:g}".format(*grid.box)
    if Path(source).name in registry.THINNED:
        name += " (thinned)"
        in_title += " (thinned)"
    return Place(name, in_title)


def _city_around(grid: Grid) -> str:
    """The first of the known places that contains the grid; empty if none does."""
    for box, name in PLACES.items():
        if box.contains(grid.box[:2], grid.box[2:]).all():
            return name
    return ""


def _check_transitions(sequences: Sequences, title: str, n_rows: int) -> None:
    """ValueError if no state follows another; `title` of the data set and `n_rows` are for the
    message."""
    if not sequences.n_transitions:
        raise ValueError(
            f"{title}: there must be two observations of a user within max_gap, found none in "
            f"{n_rows} rows; give the region by box=, or check the file"
        )


def grid_box(cut: Mapping) -> dict[str, Any]:
    """The box of the whole cells, as an argument."""
    return {"box": Grid(cut["box"], cut["cell_km"]).box}


def cells_as_states(observations: pd.DataFrame, cut: Mapping) -> States:
    """Cells of the positions as states; adds a column "cell" to the observations."""
    grid = Grid(cut["box"], cut["cell_km"])
    latitude = observations["latitude"].to_numpy()
    longitude = observations["longitude"].to_numpy()
    observations["cell"] = grid.cell(latitude, longitude)
    sequences = sequences_in_time(observations, cut, state="cell", user="user")
    return States(sequences, grid.labels(sequences.labels), grid)


def sequences_in_time(
    observations: pd.DataFrame, cut: Mapping, *, state: str, user: str | list[str]
) -> Sequences:
    """Sequences of the column `state`, by the column or columns `user`, at the fixed `step` of the
    cut, or as observed where that is None."""
    if cut["step"] is None:
        return observed_sequences(observations, max_gap=cut["max_gap"], state=state, user=user)
    return fixed_steps(observations, cut["step"], cut["max_gap"], state=state, user=user)
