"""Grids: a box on the earth cut into square cells of a given size in kilometres; the cells are the chain's states.

The locations of [5], Section 8, are cells of 0.34 km by 0.34 km within the 3rd ring of Beijing and of 0.89 km by
0.89 km in Los Angeles. The paper gives no boxes; the presets name theirs. Coordinates are projected by PROJ, through
pyproj, to a transverse Mercator
plane centred on the box, whose scale is within 2e-4 of true in boxes up to 200 km wide.

References
----------
[5] Y. Xiao, Y. Shen, J. Liu, L. Xiong, H. Jin, X. Xu, "DPHMM: Customizable Data Release with Differential Privacy
    via Hidden Markov Model", 2016.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

__all__ = ["BEIJING_3RD_RING", "Box", "Grid", "LOS_ANGELES", "beijing_3rd_ring", "los_angeles"]

CHUNK = 1 << 20


class Box(NamedTuple):
    """A box in degrees of WGS 84; it must not cross the 180th meridian.

    >>> Box(39.86, 39.97, 116.27, 116.49).contains([39.9, 400.0], [116.3, 116.3]).tolist()
    [True, False]
    """

    south: float
    north: float
    west: float
    east: float

    def contains(self, latitude, longitude) -> np.ndarray:
        """Which points lie in the box, edges included."""
        latitude, longitude = np.asarray(latitude, dtype=float), np.asarray(longitude, dtype=float)
        return (latitude >= self.south) & (latitude <= self.north) & (longitude >= self.west) & (longitude <= self.east)


def as_box(box) -> Box:
    """Four numbers (south, north, west, east) as a checked Box."""
    try:
        box = Box(*(float(v) for v in box))
    except (TypeError, ValueError):
        raise ValueError(
            f"box must be four numbers (south, north, west, east) in degrees, found {box!r}; "
            "give such as (39.86, 39.97, 116.27, 116.49)"
        ) from None
    if not (-90 <= box.south < box.north <= 90 and -180 <= box.west < box.east <= 180):
        raise ValueError(
            f"box must satisfy -90 <= south < north <= 90 and -180 <= west < east <= 180, found {tuple(box)}; "
            "give (south, north, west, east) in degrees"
        )
    return box


#: Bounding box of Beijing's 3rd ring road.
BEIJING_3RD_RING = Box(39.86, 39.97, 116.27, 116.49)
#: Los Angeles and its surroundings, from the ocean to Anaheim.
LOS_ANGELES = Box(33.6, 34.4, -118.8, -117.8)


@dataclass(frozen=True)
class Grid:
    """Square cells over a box, numbered from the south-west corner eastwards, then northwards.

    Cell ``row * n_columns + column`` covers the square from ``(column, row)`` to ``(column + 1, row + 1)`` in units of
    `cell_km`. The last row and column may stick out of the box; -1 stands for outside.

    Parameters
    ----------
    box : Box or (south, north, west, east)
        Degrees of WGS 84.
    cell_km : float
        Side of a cell in kilometres.

    Raises
    ------
    ValueError
        The box is not one, the size is not positive, or the grid would have more than 2**31 - 1 cells.

    Examples
    --------
    >>> grid = Grid((39.86, 39.97, 116.27, 116.49), 0.34)
    >>> grid.n_rows, grid.n_columns, grid.n_cells
    (36, 56, 2016)
    >>> cell = grid.cell([39.9087, 400.0], [116.3975, 116.3975])
    >>> cell.tolist()
    [872, -1]
    >>> grid.label(cell[0])
    'r15c32'
    >>> grid.centre(cell[:1]).round(2).tolist()
    [[11.05, 5.27]]
    """

    box: Box
    cell_km: float
    n_rows: int = field(init=False)
    n_columns: int = field(init=False)
    west_km: float = field(init=False, repr=False)
    south_km: float = field(init=False, repr=False)
    _projection: object = field(init=False, repr=False, compare=False)

    def __post_init__(self):
        box = as_box(self.box)
        cell_km = float(self.cell_km)
        if not 0 < cell_km < np.inf:
            raise ValueError(f"cell_km must be a positive size in kilometres, found {self.cell_km}; give such as 0.34")
        set_field = object.__setattr__
        set_field(self, "box", box)
        set_field(self, "cell_km", cell_km)
        set_field(self, "_projection", _projection(box))
        # The projected box has curved edges: the grid covers all of them.
        s = np.linspace(0, 1, 65)
        edge_latitude = np.concatenate(
            [box.south + s * (box.north - box.south)] * 2 + [np.full_like(s, box.south), np.full_like(s, box.north)]
        )
        edge_longitude = np.concatenate(
            [np.full_like(s, box.west), np.full_like(s, box.east)] + [box.west + s * (box.east - box.west)] * 2
        )
        east, north = self._projection(edge_longitude, edge_latitude)
        set_field(self, "west_km", float(east.min()) / 1000)
        set_field(self, "south_km", float(north.min()) / 1000)
        columns = int(np.ceil(np.ptp(east) / 1000 / cell_km - 1e-9))
        rows = int(np.ceil(np.ptp(north) / 1000 / cell_km - 1e-9))
        if rows * columns > np.iinfo(np.int32).max:
            raise ValueError(
                f"the grid must have at most {np.iinfo(np.int32).max} cells, found {rows} x {columns}; "
                "choose larger cells or a smaller box"
            )
        set_field(self, "n_rows", max(rows, 1))
        set_field(self, "n_columns", max(columns, 1))

    @property
    def n_cells(self) -> int:
        """Number of cells, inside the box or sticking out of it."""
        return self.n_rows * self.n_columns

    def project(self, latitude, longitude) -> np.ndarray:
        """Coordinates (m, 2) in km east and north of the grid's south-west corner."""
        east, north = self._projection(np.asarray(longitude, dtype=float), np.asarray(latitude, dtype=float))
        return np.stack([east / 1000 - self.west_km, north / 1000 - self.south_km], axis=-1)

    def cell(self, latitude, longitude, outside: str = "mark") -> np.ndarray:
        """The cell of each point.

        Parameters
        ----------
        latitude, longitude : array-like (m,)
            Degrees of WGS 84.
        outside : {"mark", "clip", "raise"}
            Points out of the box get -1, or the nearest cell, or are an error. NaN counts as outside; "clip" is
            meant for points near the box, and marks those more than its size away from it, and NaN, with -1.

        Returns
        -------
        int32 array (m,)
        """
        if outside not in ("mark", "clip", "raise"):
            raise ValueError(f'outside must be "mark", "clip" or "raise", found {outside!r}; choose one of them')
        latitude, longitude = np.atleast_1d(np.asarray(latitude, float)), np.atleast_1d(np.asarray(longitude, float))
        if latitude.shape != longitude.shape or latitude.ndim != 1:
            raise ValueError(
                f"latitude and longitude must be flat and of one length, found {latitude.shape} and "
                f"{longitude.shape}; give one of each a point"
            )
        near = self.box.contains(latitude, longitude)
        if outside == "raise" and not near.all():
            i = int(np.argmin(near))
            raise ValueError(
                f"points must lie in the box {tuple(self.box)}, found latitude {latitude[i]:g}, longitude "
                f'{longitude[i]:g} at index {i} and {int((~near).sum())} points outside in all; pass outside="mark"'
            )
        if outside == "clip":
            south, north, west, east = self.box
            high, wide = north - south, east - west
            reach = Box(max(south - high, -90), min(north + high, 90), max(west - wide, -180), min(east + wide, 180))
            near = reach.contains(latitude, longitude)
        cells = np.full(latitude.shape, -1, dtype=np.int32)
        which = np.flatnonzero(near)
        for start in range(0, len(which), CHUNK):
            part = which[start : start + CHUNK]
            column, row = np.floor(self.project(latitude[part], longitude[part]) / self.cell_km).astype(np.int64).T
            # A point on the northern or eastern edge belongs to the last cell.
            row, column = row.clip(0, self.n_rows - 1), column.clip(0, self.n_columns - 1)
            cells[part] = row * self.n_columns + column
        return cells

    def centre(self, cells) -> np.ndarray:
        """Centres of cells (m,), as (m, 2) km east and north of the grid's south-west corner."""
        cells = self._checked(cells)
        row, column = np.divmod(cells, self.n_columns)
        return (np.stack([column, row], axis=-1) + 0.5) * self.cell_km

    def cell_at(self, km) -> np.ndarray:
        """The cell of each point (m, 2) in km, -1 off the grid: the inverse of `centre`."""
        position = np.floor(np.asarray(km, dtype=float) / self.cell_km)
        column, row = position[..., 0], position[..., 1]
        on = (column >= 0) & (column < self.n_columns) & (row >= 0) & (row < self.n_rows)
        return np.where(on, np.where(on, row, 0) * self.n_columns + np.where(on, column, 0), -1).astype(np.int32)

    def coordinates(self, cells) -> tuple[np.ndarray, np.ndarray]:
        """Latitudes and longitudes of the centres of cells (m,), in degrees."""
        east, north = (self.centre(cells) + [self.west_km, self.south_km]).T * 1000
        longitude, latitude = self._projection(east, north, inverse=True)
        return latitude, longitude

    def label(self, cell) -> str:
        """A short name of one cell: its row and column."""
        row, column = divmod(int(self._checked(cell)), self.n_columns)
        return f"r{row}c{column}"

    def labels(self, cells=None) -> list[str]:
        """Names of cells, of all by default."""
        cells = np.arange(self.n_cells) if cells is None else self._checked(cells)
        return [self.label(c) for c in cells]

    def _checked(self, cells) -> np.ndarray:
        cells = np.asarray(cells)
        whole = np.issubdtype(cells.dtype, np.integer)
        if cells.size and not (whole and 0 <= cells.min() <= cells.max() < self.n_cells):
            raise ValueError(
                f"cells must be integers from 0 to {self.n_cells - 1}, found {cells.min()} to {cells.max()} as "
                f"{cells.dtype}; drop the points outside, marked -1, first"
            )
        return cells


def _projection(box: Box):
    import pyproj

    return pyproj.Proj(
        proj="tmerc", lat_0=(box.south + box.north) / 2, lon_0=(box.west + box.east) / 2, ellps="WGS84", units="m"
    )


def beijing_3rd_ring(cell_km: float = 0.34) -> Grid:
    """The grid of [5] for Geolife: the bounding box of Beijing's 3rd ring, cells of 0.34 km."""
    return Grid(BEIJING_3RD_RING, cell_km)


def los_angeles(cell_km: float = 0.89) -> Grid:
    """The grid of [5] for Gowalla: Los Angeles, cells of 0.89 km.

    >>> los_angeles().n_rows, los_angeles().n_columns
    (100, 105)
    """
    return Grid(LOS_ANGELES, cell_km)
