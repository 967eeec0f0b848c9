"""A data set's name in, sequences of states with their provenance out.

The recorded data are read where they are found, else a synthetic stand-in takes their place and says so. Positions
become cells of a grid, gaze becomes areas of the screen, pages are states as they are; then time is cut into steps.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from tplrepro.datasets import gaze, geolife, gowalla, kosarak, registry
from tplrepro.datasets.grid import BEIJING_3RD_RING, LOS_ANGELES, Box, Grid
from tplrepro.datasets.time_steps import fixed_steps, observed_sequences
from tplrepro.markov.sequences import Sequences
from tplrepro.validation import check_choice

__all__ = ["Prepared", "joint_record", "prepare"]

#: How each data set is cut into states and steps where the caller does not say.
CUTS: dict[str, dict[str, Any]] = {
    "geolife": {"box": BEIJING_3RD_RING, "cell_km": 1.0, "step": "5min", "max_gap": "30min"},
    "gowalla": {"box": LOS_ANGELES, "cell_km": 5.0, "step": None, "max_gap": "2D"},
    "kosarak": {},
    "gaze": {"layout": "GAZEGRAPH", "columns": 4, "rows": 3, "step": 0.2, "max_gap": 0.5},
}
PLACES = {BEIJING_3RD_RING: "Beijing", LOS_ANGELES: "Los Angeles"}


@dataclass(frozen=True, eq=False)
class Prepared:
    """Sequences ready for a chain, and where they come from."""

    sequences: Sequences  # whose labels are the numbers of cells, pages or areas
    state_names: list[str]  # one a state: "r3c14", "page 7" or "area r0c1"
    grid: Grid | None  # of the cells
    title: str  # of a figure: the set, its place, and "(synthetic data)" where it is so
    synthetic: bool
    official: bool  # whether what was read is known to be the whole published set
    inputs: tuple[Path, ...]  # what was read; empty for synthetic data and never for recorded data
    observations: pd.DataFrame  # as the reader gave it, with a column "cell", "page" or "area" of states, -1 outside

    @property
    def record(self) -> dict:
        """The keywords `data` and `inputs` of `figures.save_figure` and `figures.save_table`."""
        return joint_record(self)

    def __repr__(self) -> str:
        return f"Prepared({self.title}: {self.sequences})"


def joint_record(*prepared: Prepared) -> dict:
    """`Prepared.record` of a result from several data sets: synthetic if one of them is, with all files that were read.

    >>> joint_record(prepare("kosarak", synthetic=True, stand_in={"n_users": 9}))
    {'data': 'synthetic', 'inputs': []}
    """
    synthetic = any(one.synthetic for one in prepared)
    real = "real" if all(one.official for one in prepared) else "real (unverified)"
    return {"data": "synthetic" if synthetic else real, "inputs": [path for one in prepared for path in one.inputs]}


def prepare(
    name: str, *, path: str | Path | None = None, synthetic: bool = False, stand_in: Mapping | None = None, **cut: Any
) -> Prepared:
    """Sequences of states of a data set: recorded where it is found, else a synthetic stand-in.

    Parameters
    ----------
    name : {"geolife", "gowalla", "kosarak", "gaze"}
    path : path-like, optional; by default the data are looked for as `registry.locate` says
    synthetic : bool, whether to take the stand-in even where there are recorded data
    stand_in : dict, optional, arguments of the set's ``synthetic``: n_users, seed, ...
    **cut : how to make states and steps; by default as in `CUTS`
        geolife, gowalla: `box` and `cell_km` of a `Grid`. gaze: `layout`, "GAZEGRAPH" or "ANDERSSON2017", and the
        numbers of `columns` and `rows` of areas. All three: `step` and `max_gap` as in `fixed_steps`, or with `step`
        None as in `observed_sequences`. gowalla: of several files none of which is the official one, that with the most
        check-ins in the box is taken.

    ValueError for an unknown name or cut, or if no two consecutive states are found; DatasetNotFoundError only if
    `path` is given; DataFormatError and OSError as the readers.

    >>> prepared = prepare("geolife", synthetic=True, stand_in={"n_users": 2}, cell_km=4.0)
    >>> prepared
    Prepared(Geolife in Beijing (synthetic data): Sequences(40 sequences, 5328 values, 5 states))
    >>> prepared.state_names[:3]
    ['r0c2', 'r1c1', 'r1c2']
    """
    check_choice(name, "name", CUTS)
    unknown = sorted(set(cut) - set(CUTS[name]))
    if unknown:
        raise ValueError(
            f"{name} is cut by {', '.join(CUTS[name]) or 'nothing'}, found {', '.join(unknown)}; leave it out"
        )
    cut = CUTS[name] | cut
    grid = Grid(cut["box"], cut["cell_km"]) if "box" in cut else None
    observations = _observations(name, path, synthetic, dict(stand_in or {}), cut, grid)
    synthetic = observations.attrs["synthetic"]
    if name == "kosarak":
        title = "Kosarak"
        sequences = kosarak.to_sequences(observations)
        names = [f"page {page}" for page in sequences.labels.tolist()]
    elif grid is None:
        title = f"Gaze, {cut['layout']}"
        columns = cut["columns"]
        observations["area"] = gaze.areas(observations, columns, cut["rows"], *gaze.SCREENS[cut["layout"]])
        sequences = _in_time(observations, cut, "area", ["user", "recording"])
        names = [f"area r{area // columns}c{area % columns}" for area in sequences.labels.tolist()]
    else:
        title = name.capitalize() + _place(grid.box)
        observations["cell"] = grid.cell(observations["latitude"].to_numpy(), observations["longitude"].to_numpy())
        sequences = _in_time(observations, cut, "cell", "user")
        names = grid.labels(sequences.labels)
    if not sequences.n_transitions:
        raise ValueError(f"{title}: {_nothing_found(observations, cut, grid)}")
    title += " (synthetic data)" * synthetic
    inputs = () if synthetic else (Path(observations.attrs["source"]),)
    official = all(registry.is_official(name, path) for path in inputs)
    return Prepared(sequences, names, grid, title, synthetic, official, inputs, observations)


def _observations(name: str, path, synthetic: bool, stand_in: dict, cut: dict, grid: Grid | None) -> pd.DataFrame:
    """What the reader gives of recorded data or, where there are none or it is asked for, of the stand-in."""
    reader: Any = {"geolife": geolife, "gowalla": gowalla, "kosarak": kosarak, "gaze": gaze}[name]
    options = {"box": grid.box} if grid else {}
    if name == "geolife":
        stand_in = options | stand_in
    if name == "gaze":
        check_choice(cut["layout"], "layout", gaze.SCREENS)
        options = getattr(gaze, cut["layout"])
        stand_in = {"layout": options} | stand_in
    if not synthetic:
        try:
            return _densest(**options) if name == "gowalla" and path is None else reader.load(path, **options)
        except registry.DatasetNotFoundError:
            if path is not None:
                raise
    return reader.synthetic(**stand_in)


def _densest(box: Box) -> pd.DataFrame:
    """Gowalla's official file, or else, of the files beside the one found, that with the most check-ins in the box."""
    found = registry.locate("gowalla")
    beside = sorted([*found.parent.glob("*.txt"), *found.parent.glob("*.txt.gz")])
    files = [found] if "totalCheckins" in found.name else beside
    visits = (gowalla.load(file, box=box) for file in files)
    return max(visits, key=lambda part: (len(part), part.attrs["outside_box"]))


def _in_time(observations: pd.DataFrame, cut: dict, state: str, user) -> Sequences:
    if cut["step"] is None:
        return observed_sequences(observations, max_gap=cut["max_gap"], state=state, user=user)
    return fixed_steps(observations, cut["step"], cut["max_gap"], state=state, user=user)


def _place(box: Box) -> str:
    """Where a box lies, for a title: the place that holds all of it, if it has a name here."""
    places = [place for known, place in PLACES.items() if known.contains(box[:2], box[2:]).all()]
    around = f", latitude {box.south:g} to {box.north:g}, longitude {box.west:g} to {box.east:g}"
    return f" in {places[0]}" if places else around


def _nothing_found(observations: pd.DataFrame, cut: dict, grid: Grid | None) -> str:
    """Why there is no step between two states, in words."""
    if grid is None:
        return f"there must be sequences of two states or more, found none in {len(observations)} rows; check the file"
    inside = int((observations["cell"] >= 0).sum())
    outside = len(observations) - inside + observations.attrs.get("outside_box", 0)
    return (
        f"there must be two observations of someone in the box {tuple(grid.box)} within max_gap, {cut['max_gap']!r}; "
        f"found {inside} observations in it and {outside} outside; give the box= of your region"
    )
