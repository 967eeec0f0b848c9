"""Grids against geodesic distances, and their conversions against each other."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyproj import Geod

from tplrepro.datasets.grid import BEIJING_3RD_RING, LOS_ANGELES, Grid

WGS84 = Geod(ellps="WGS84")
BEIJING, ANGELES = Grid(BEIJING_3RD_RING, 0.34), Grid(LOS_ANGELES, 0.89)  # those of the DPHMM paper


@pytest.mark.parametrize("grid", [BEIJING, ANGELES, Grid((-35, -34.5, 170, 170.5), 5.0)])
def test_distances_between_points_are_kept(grid):
    rng = np.random.default_rng(1)
    south, north, west, east = grid.box
    latitude, longitude = rng.uniform(south, north, (2, 100)), rng.uniform(west, east, (2, 100))
    a, b = grid.project(latitude[0], longitude[0]), grid.project(latitude[1], longitude[1])
    _, _, metres = WGS84.inv(longitude[0], latitude[0], longitude[1], latitude[1])
    np.testing.assert_allclose(np.linalg.norm(a - b, axis=1), metres / 1000, rtol=5e-5)


@given(
    st.floats(BEIJING_3RD_RING.south, BEIJING_3RD_RING.north),
    st.floats(BEIJING_3RD_RING.west, BEIJING_3RD_RING.east),
    st.sampled_from([0.1, 0.34, 1.0, 50.0]),
)
@settings(max_examples=100)
def test_a_point_lies_in_its_cell(latitude, longitude, cell_km):
    grid = Grid(BEIJING_3RD_RING, cell_km)
    cell = grid.cell([latitude], [longitude])
    assert 0 <= cell[0] < grid.n_cells
    offset = grid.project(latitude, longitude) - grid.centre(cell)[0]
    assert np.abs(offset).max() <= cell_km / 2 * (1 + 1e-9)


@pytest.mark.parametrize("grid", [BEIJING, Grid(LOS_ANGELES, 7.0)])
def test_cells_partition_the_box(grid, monkeypatch):
    """Points of a raster finer than the cells, by their kilometres, against the definition of a cell's number."""
    south, north, west, east = grid.box
    latitude, longitude = (
        part.ravel() for part in np.meshgrid(np.linspace(south, north, 300), np.linspace(west, east, 301))
    )
    column, row = np.floor(grid.project(latitude, longitude) / grid.cell_km).astype(int).T
    for chunk in (len(row), 1000):
        monkeypatch.setattr("tplrepro.datasets.grid.CHUNK", chunk)
        assert (grid.cell(latitude, longitude) == row * grid.n_columns + column).all()
    assert (grid.cell(latitude + (north - south) * 1.001, longitude) == -1).all()
    for wrong in (400.0, np.nan, south - 0.01, -60):
        assert grid.cell([wrong, north], [east, east + 0.01]).tolist() == [-1, -1]
    assert len(grid.cell([], [])) == 0


def test_numbers_grow_eastwards_then_northwards():
    grid = BEIJING
    south, north, west, east = grid.box
    corners = grid.cell([south, south, north, north], [west, east, west, east])
    assert corners.tolist() == [0, grid.n_columns - 1, (grid.n_rows - 1) * grid.n_columns, grid.n_cells - 1]
    assert len(set(grid.labels(np.arange(grid.n_cells)))) == grid.n_cells
    assert grid.labels([0, grid.n_columns + 2]) == ["r0c0", "r1c2"]


@pytest.mark.parametrize(
    ("box", "cell_km", "message"),
    [
        ((1, 0, 0, 1), 1, "box must be four numbers .* -90 <= south"),
        ((0, 1, 170, 190), 1, "box must be four numbers .* -90 <= south"),
        ("abcd", 1, "box must be four numbers"),
        ((0, 1, 0, 1), np.nan, "cell_km must be a positive size"),
        ((0, 1, 0, 1), 1e-6, "the grid must have at most 2147483647 cells"),
    ],
)
def test_arguments_are_checked(box, cell_km, message):
    with pytest.raises(ValueError, match=message):
        Grid(box, cell_km)


def test_cells_and_points_are_checked():
    for wrong in ([-1], [BEIJING.n_cells], [0.5]):
        with pytest.raises(ValueError, match="cells must be integers from 0 to 2015"):
            BEIJING.centre(wrong)
    with pytest.raises(ValueError, match="latitude and longitude must be flat and of one length"):
        BEIJING.cell([1.0, 2.0], [1.0])


def test_grids_compare_by_box_and_size():
    assert BEIJING == Grid(tuple(BEIJING_3RD_RING), 0.34) != Grid(BEIJING_3RD_RING, 0.5)
