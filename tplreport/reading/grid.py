"""Grids: a geographic box divided into square cells of a given size in kilometres.

Cells are the states of a chain. The locations of [5], Section 8, are cells of 0.34 km by 0.34 km
within the 3rd ring of Beijing and of 0.89 km by 0.89 km in Los Angeles. The paper gives no boxes;
`BEIJING_3RD_RING`, `LOS_ANGELES` and `NEW_YORK` are ours.

Coordinates are projected by PROJ to a transverse Mercator plane centred on the box, with a scale
error of at most 2e-4 in boxes up to 200 km wide; boxes that would distort lengths by more than 1 %
are errors.
"""

from __future__ import annotations
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.lazy import optional_import
from tplrepro.validation import as_numbers, check_codes, check_positive

CHUNK = 1 << 20
MOST_CELLS = np.iinfo(np.int32).max
MOST_DISTORTION = 0.01  # of lengths, at the edges of a box


class Box(NamedTuple):
    """A box in degrees of WGS 84; it must not cross the 180th meridian.

    Parameters
    ----------
    south, north : float, latitudes in degrees
    west, east : float, longitudes in degrees

    Raises
    ------
    ValueError
        By what takes a box, such as `Grid`; not by a box itself.

    Examples
    --------
    >>> Box(39.86, 39.97, 116.27, 116.49).contains([39.9, 400.0], [116.3, 116.3]).tolist()
    [True, False]
    """

    south: float
    north: float
    west: float
    east: float

    def contains(self, latitude: ArrayLike, longitude: ArrayLike) -> np.ndarray:
        """Which points lie in the box, edges included.

        Parameters
        ----------
        latitude, longitude : array-like (m,) or float, degrees of WGS 84

        Returns
        -------
        ndarray (m,) of bool

        Raises
        ------
        ValueError
            For what is no number.
        """
        latitude = _degrees(latitude)
        longitude = _degrees(longitude)
        return (
            (latitude >= self.south)
            & (latitude <= self.north)
            & (longitude >= self.west)
            & (longitude <= self.east)
        )


def _degrees(values: ArrayLike) -> np.ndarray:
    return as_numbers(values, "latitude and longitude must be numbers", "give degrees of WGS 84")


def as_box(box) -> Box:
    """Four numbers (south, north, west, east), or a text of them with commas, as a checked Box.

    A box of numbers may lack width or height, as that around positions on one line does. A text was
    typed by somebody, who meant an area.

    >>> as_box("52,53,13,14")
    Box(south=52.0, north=53.0, west=13.0, east=14.0)
    >>> as_box((52, 53, 13, 13)).east
    13.0
    """
    is_text = isinstance(box, str)
    numbers = box
    example = "(39.86, 39.97, 116.27, 116.49)"
    if is_text:
        numbers = box.split(",")
        example = "'39.86,39.97,116.27,116.49'"
    try:
        found = Box(*map(float, numbers))
    except (TypeError, ValueError):
        found = None
    if found is None or not _is_on_globe(found) or (is_text and not _has_area(found)):
        raise ValueError(
            "box must be four numbers with commas between them, south, north, west and east, with "
            "-90 <= south < north <= 90 and -180 <= west < east <= 180, "
            f"found {_as_given(box)}; give such as box={example}"
        )
    return found


def _is_on_globe(box: Box) -> bool:
    """Whether the edges are degrees, the southern and the western one first."""
    return -90 <= box.south <= box.north <= 90 and -180 <= box.west <= box.east <= 180


def _has_area(box: Box) -> bool:
    return box.south < box.north and box.west < box.east


def _as_given(box: Any) -> str:
    """A box as it was given; a `Box` without its name, as its four numbers."""
    if isinstance(box, Box):
        return repr(tuple(box))
    return repr(box)


#: Bounding box of Beijing's 3rd ring road.
BEIJING_3RD_RING = Box(39.86, 39.97, 116.27, 116.49)
#: Los Angeles and its surroundings, from the ocean to Anaheim.
LOS_ANGELES = Box(33.6, 34.4, -118.8, -117.8)
#: The five boroughs of New York and the New Jersey side of the Hudson.
NEW_YORK = Box(40.484, 40.918, -74.259, -73.701)


@dataclass(frozen=True)
class Grid:
    """Square cells over a box, numbered from the south-west corner eastwards, then northwards.

    Cell ``row * n_columns + column`` covers the square from ``(column, row)`` to ``(column + 1, row
    + 1)`` in units of `cell_km`. The last row and column may extend beyond the box; -1 means
    outside.

    `box` is (south, north, west, east) in degrees of WGS 84, `cell_km` the side of a cell in
    kilometres. A box without width or height has one column or row of cells. Raises ValueError for
    an invalid box or size, a distortion above 1 %, and more than 2**31 - 1 cells.

    >>> grid = Grid((39.86, 39.97, 116.27, 116.49), 0.34)
    >>> grid.n_rows, grid.n_columns, grid.n_cells
    (36, 56, 2016)
    >>> cell = grid.cell([39.9087, 400.0], [116.3975, 116.3975])
    >>> cell.tolist()
    [872, -1]
    >>> grid.labels(cell[:1])
    ['r15c32']
    >>> grid.centre(cell[:1]).round(2).tolist()
    [[11.05, 5.27]]
    """

    box: Box
    cell_km: float
    n_rows: int = field(init=False)
    n_columns: int = field(init=False)
    # (2,) the corner in projected km
    _south_west: np.ndarray = field(init=False, repr=False, compare=False)
    _projection: Any = field(init=False, repr=False, compare=False)

    def __post_init__(self):
        with optional_import():
            import pyproj

        box = as_box(self.box)
        cell_km = check_positive(self.cell_km, "cell_km", "give a size such as 0.34")
        south, north, west, east = box
        # latitude where the box is widest
        nearest = min(abs(south), abs(north))
        if south < 0 < north:
            nearest = 0.0
        half_width = np.radians(east - west) / 2 * np.cos(np.radians(nearest))
        distortion = np.cosh(half_width) - 1
        if distortion > MOST_DISTORTION:
            raise ValueError(
                f"cells of a grid must have one size within {MOST_DISTORTION:.0%}, found a box "
                f"{2 * half_width * 6371:.0f} km wide, whose cells differ by {distortion:.1%}; "
                "give a smaller box="
            )
        projection = pyproj.Proj(
            proj="tmerc",
            ellps="WGS84",
            units="m",
            lat_0=(south + north) / 2,
            lon_0=(west + east) / 2,
        )
        # The projected box has curved edges: the grid covers all of them.
        x, y = projection(*np.meshgrid(np.linspace(west, east, 65), np.linspace(south, north, 65)))
        n_columns, n_rows = (
            max(1, int(np.ceil(np.ptp(edge) / 1000 / cell_km - 1e-9))) for edge in (x, y)
        )
        if n_rows * n_columns > MOST_CELLS:
            raise ValueError(
                f"the grid must have at most {MOST_CELLS} cells, found {n_rows} x {n_columns}; "
                "choose larger cells or a smaller box"
            )
        # Past the frozen __setattr__.
        vars(self).update(box=box, cell_km=cell_km, n_rows=n_rows, n_columns=n_columns)
        vars(self).update(_projection=projection, _south_west=np.array([x.min(), y.min()]) / 1000)

    @property
    def n_cells(self) -> int:
        """Number of cells, including those that extend beyond the box."""
        return self.n_rows * self.n_columns

    def project(self, latitude: ArrayLike, longitude: ArrayLike) -> np.ndarray:
        """Coordinates east and north of the grid's south-west corner.

        Parameters
        ----------
        latitude, longitude : array-like (m,), degrees of WGS 84

        Returns
        -------
        ndarray (m, 2), km

        Raises
        ------
        ValueError
            For what is no number.
        """
        east, north = self._projection(_degrees(longitude), _degrees(latitude))
        return np.stack([east, north], axis=-1) / 1000 - self._south_west

    def cell(self, latitude: ArrayLike, longitude: ArrayLike) -> np.ndarray:
        """The cell of each point.

        Parameters
        ----------
        latitude, longitude : array-like (m,), degrees of WGS 84

        Returns
        -------
        ndarray (m,) of int32, -1 outside the box and for NaN

        Raises
        ------
        ValueError
            For what is no number, and arrays of other shapes.
        """
        latitude = np.atleast_1d(_degrees(latitude))
        longitude = np.atleast_1d(_degrees(longitude))
        if latitude.shape != longitude.shape or latitude.ndim != 1:
            raise ValueError(
                "latitude and longitude must be flat and of one length, "
                f"found {latitude.shape} and {longitude.shape}; give one of each a point"
            )
        cells = np.full(latitude.shape, -1, dtype=np.int32)
        inside = np.flatnonzero(self.box.contains(latitude, longitude))
        for start in range(0, len(inside), CHUNK):
            part = inside[start : start + CHUNK]
            in_cells = self.project(latitude[part], longitude[part]) / self.cell_km
            column, row = np.floor(in_cells).astype(np.int64).T
            # A point on the northern or eastern edge belongs to the last cell.
            row = row.clip(0, self.n_rows - 1)
            column = column.clip(0, self.n_columns - 1)
            cells[part] = row * self.n_columns + column
        return cells

    def centre(self, cells: ArrayLike) -> np.ndarray:
        """Centres of cells (m,), as (m, 2) km east and north of the grid's south-west corner."""
        row, column = np.divmod(check_codes(cells, self.n_cells, "cells"), self.n_columns)
        return (np.stack([column, row], axis=-1) + 0.5) * self.cell_km

    def labels(self, cells: ArrayLike) -> list[str]:
        """Short names of cells (m,): their row and column."""
        row, column = np.divmod(check_codes(cells, self.n_cells, "cells"), self.n_columns)
        return [f"r{r}c{c}" for r, c in zip(row.tolist(), column.tolist(), strict=True)]
