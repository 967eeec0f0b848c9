"""Grids against geodesic distances; fixed time steps against a search at every step, and reports
against a loop."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyproj import Geod

from tests.tplreport.reading.test_observations import listed
from tplreport import fixed_steps, observed_sequences, read_sequences
from tplreport.command import main
from tplreport.reading import grid as grids
from tplreport.reading.grid import BEIJING_3RD_RING, LOS_ANGELES, Grid
from tplreport.reading.times import are_clocks, seconds_of, with_instants

WGS84 = Geod(ellps="WGS84")
BEIJING, ANGELES = Grid(BEIJING_3RD_RING, 0.34), Grid(LOS_ANGELES, 0.89)  # those of the DPHMM paper


@pytest.mark.parametrize("grid", [BEIJING, ANGELES, Grid((-35, -34.5, 170, 170.5), 5.0)])
def test_a_projection_keeps_distances_between_points(grid):
    rng = np.random.default_rng(1)
    south, north, west, east = grid.box
    latitude, longitude = rng.uniform(south, north, (2, 100)), rng.uniform(west, east, (2, 100))
    a, b = grid.project(latitude[0], longitude[0]), grid.project(latitude[1], longitude[1])
    _, _, metres = WGS84.inv(longitude[0], latitude[0], longitude[1], latitude[1])
    np.testing.assert_allclose(np.linalg.norm(a - b, axis=1), metres / 1000, rtol=5e-5)


@pytest.mark.parametrize("grid", [BEIJING, Grid(LOS_ANGELES, 7.0)])
def test_cells_partition_the_box(grid, monkeypatch):
    """Points of a raster finer than the cells, by their kilometres, against the definition of a
    cell's number."""
    south, north, west, east = grid.box
    latitude, longitude = (
        part.ravel()
        for part in np.meshgrid(np.linspace(south, north, 300), np.linspace(west, east, 301))
    )
    column, row = np.floor(grid.project(latitude, longitude) / grid.cell_km).astype(int).T
    for chunk in (len(row), 1000):
        monkeypatch.setattr("tplreport.reading.grid.CHUNK", chunk)
        assert (grid.cell(latitude, longitude) == row * grid.n_columns + column).all()
    offset = grid.project(latitude, longitude) - grid.centre(row * grid.n_columns + column)
    assert np.abs(offset).max() <= grid.cell_km / 2 * (1 + 1e-9)
    assert (grid.cell(latitude + (north - south) * 1.001, longitude) == -1).all()
    for wrong in (400.0, np.nan, south - 0.01, -60):
        assert grid.cell([wrong, north], [east, east + 0.01]).tolist() == [-1, -1]
    assert len(grid.cell([], [])) == 0


def test_the_edge_of_a_box_that_is_a_whole_number_of_cells_is_in_the_last_cell():
    south, north, _, east = BEIJING.box
    (width, _), (_, height) = BEIJING.project([south, north], [east, east])
    one_column, one_row = Grid(BEIJING.box, width), Grid(BEIJING.box, height)
    assert one_column.cell([south], [east]).tolist() == [0]
    assert one_row.cell([north], [east]).tolist() == [one_row.n_columns - 1]


#: Degrees of landmarks.
FORBIDDEN_CITY, SUMMER_PALACE, TONGZHOU = (39.916, 116.397), (39.999, 116.275), (39.91, 116.66)
DOWNTOWN, MALIBU, DISNEYLAND = (34.05, -118.24), (34.037, -118.677), (33.812, -117.919)
OXNARD, PALMDALE, RIVERSIDE = (34.2, -119.18), (34.58, -118.12), (33.95, -117.4)
MANHATTAN, STATEN_ISLAND, NEWARK = (40.783, -73.97), (40.51, -74.24), (40.735, -74.172)
WHITE_PLAINS, NEW_BRUNSWICK, HEMPSTEAD = (41.03, -73.76), (40.486, -74.45), (40.71, -73.62)


@pytest.mark.parametrize(
    ("name", "inside", "outside"),
    [
        ("BEIJING_3RD_RING", [FORBIDDEN_CITY], [SUMMER_PALACE, TONGZHOU]),
        ("LOS_ANGELES", [DOWNTOWN, MALIBU, DISNEYLAND], [OXNARD, PALMDALE, RIVERSIDE]),
        ("NEW_YORK", [MANHATTAN, STATEN_ISLAND, NEWARK], [WHITE_PLAINS, NEW_BRUNSWICK, HEMPSTEAD]),
    ],
)
def test_a_box_has_the_places_that_it_is_named_after(name, inside, outside):
    box = getattr(grids, name)
    latitude, longitude = np.array(inside + outside).T
    expected = [True] * len(inside) + [False] * len(outside)
    assert box.contains(latitude, longitude).tolist() == expected


@pytest.mark.parametrize(
    ("box", "cell_km", "message"),
    [
        ((1, 0, 0, 1), 1, "box must be four numbers .* -90 <= south"),
        ((0, 90.5, 0, 1), 1, "box must be four numbers .* <= 90"),
        ((0, 1, 170, 190), 1, "box must be four numbers .* -90 <= south"),
        ("abcd", 1, "box must be four numbers"),
        ("(52,53,13,14)", 1, r"found '\(52,53,13,14\)'; give such as box='39.86,39.97,1[0-9.,]*'$"),
        ("52,53,13.4,13.4", 1, "west < east <= 180, found '52,53,13.4,13.4'; give"),
        ((1, 0, 0, 1), 1, r"found \(1, 0, 0, 1\); give such as box=\(39.86, 39.97, 116.27, "),
        (grids.Box(1, 0, 0, 1), 1, r"found \(1, 0, 0, 1\); give"),
        ((0, 1, 0, 1), np.nan, "cell_km must be finite and greater than 0"),
        ((0, 1, 0, 1), 1e-6, "the grid must have at most 2147483647 cells"),
    ],
)
def test_wrong_boxes_and_cell_sizes_are_named(box, cell_km, message):
    with pytest.raises(ValueError, match=message):
        Grid(box, cell_km)


@pytest.mark.parametrize(
    ("latitude", "longitude", "n_cells"),
    [
        ([52.5, 52.52, 52.54], [13.4] * 3, 5),  # 4.45 km to the north
        ([-33.9] * 3, [151.2, 151.21, 151.22], 2),  # 1.85 km to the east
        ([52.5] * 3, [13.4] * 3, 1),
        ([90.0] * 3, [180.0] * 3, 1),
    ],
)
def test_positions_on_one_line_have_cells(latitude, longitude, n_cells):
    grid = Grid((min(latitude), max(latitude), min(longitude), max(longitude)), 1.0)
    assert grid.n_cells == n_cells
    assert min(grid.n_rows, grid.n_columns) == 1
    cells = grid.cell(latitude, longitude)
    assert (cells[0], cells[-1]) == (0, n_cells - 1)
    frame = pd.DataFrame({"user": 1, "time": [0, 1, 2], "lat": latitude, "lon": longitude})
    assert read_sequences(frame, cell_km=1.0).lengths.tolist() == [3]


def test_the_command_reads_positions_on_one_line_and_shows_a_box_as_it_takes_it(tmp_path, capsys):
    path = tmp_path / "positions.csv"
    north = np.random.default_rng(0).integers(0, 2, 200)
    frame = pd.DataFrame({"user": np.repeat(range(10), 20), "time": [*range(20)] * 10})
    frame.assign(lat=52.5 + north / 10, lon=13.4).to_csv(path, index=False)
    words = ["report", str(path), "--alpha=1", "--horizon=3", "--draws=0", "--cell-km=10"]
    assert main(words) in (0, 3)
    assert "200 of 200 count" in capsys.readouterr().out
    assert main([*words, "--box=(52,53,13,14)"]) == 2
    said = capsys.readouterr().err
    assert "found '(52,53,13,14)'; give such as --box '39.86,39.97,116.27,116.49'" in said
    assert main([*words, "--box", said.split("--box '")[1].split("'")[0]]) == 2
    assert "box must" not in capsys.readouterr().err


@pytest.mark.parametrize("box", ["-34.2,-33.6,150.9,151.4", "-.2,.6,-1,1"])
def test_the_command_takes_a_box_south_of_the_equator(tmp_path, capsys, box):
    path = tmp_path / "positions.csv"
    south, north, west, east = map(float, box.split(","))
    step = np.random.default_rng(0).integers(0, 2, 200)
    frame = pd.DataFrame({"user": np.repeat(range(10), 20), "time": [*range(20)] * 10})
    frame = frame.assign(lat=south + (0.2 + step / 10) * (north - south), lon=(west + east) / 2)
    frame.to_csv(path, index=False)
    words = ["report", str(path), "--alpha", "1", "--horizon", "3", "--draws", "0"]
    assert main([*words, "--cell-km", "5", "--box", box]) in (0, 3)
    assert "200 of 200 count" in capsys.readouterr().out


def test_cells_and_points_are_checked():
    for wrong in ([-1], [BEIJING.n_cells], [0.5]):
        with pytest.raises(ValueError, match=r"cells must be (among|whole numbers in) 0\.\.2015"):
            BEIJING.centre(wrong)
    with pytest.raises(ValueError, match="latitude and longitude must be flat and of one length"):
        BEIJING.cell([1.0, 2.0], [1.0])


def stepwise(reports, step, max_gap, outside=-1):
    """Ask at each step where a user is: the latest report at or before, not older than max_gap;
    integers only."""
    result = []
    for user in sorted({u for u, _, _ in reports}):
        own = {}
        for u, t, s in reports:
            if u == user:
                own[t] = s  # of two at the same time the later row counts
        times = sorted(own)
        end = -(-times[-1] // step) * step
        run, t = [], (times[0] // step) * step
        while t <= end:
            before = [x for x in times if x <= t]
            known = before and t - before[-1] <= max_gap and own[before[-1]] != outside
            if known:
                run.append(own[before[-1]])
            elif run:
                result.append((user, run))
                run = []
            t += step
        if run:
            result.append((user, run))
    return result


REPORTS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(-30, 60), st.integers(-1, 3)), min_size=1, max_size=25
)


@given(REPORTS, st.integers(1, 9), st.integers(1, 25), st.booleans())
@settings(max_examples=300)
def test_fixed_steps_equal_a_search_for_the_last_report_at_each_step(
    reports, step, max_gap, stamps
):
    frame = pd.DataFrame(reports, columns=["user", "time", "cell"])
    expected = stepwise(reports, step, max_gap)
    if stamps:
        frame["time"] = pd.to_datetime(frame["time"], unit="s", utc=True)
        sequences = fixed_steps(frame, f"{step}s", pd.Timedelta(seconds=max_gap))
    else:
        sequences = fixed_steps(frame, step, max_gap)
    assert listed(sequences) == expected


@given(REPORTS, st.one_of(st.none(), st.integers(1, 25)))
@settings(max_examples=200)
def test_observed_sequences_equal_those_of_a_plain_loop(reports, max_gap):
    expected, run, before = [], [], None
    for user, time, cell in sorted(reports, key=lambda r: r[:2]):
        broken = (
            before is None
            or before[0] != user
            or (max_gap is not None and time - before[1] > max_gap)
        )
        if broken or cell == -1:
            expected.append(run)
            run = []
        if cell != -1:
            run.append(cell)
        before = user, time
    expected = [r for r in [*expected, run] if r]
    sequences = observed_sequences(
        pd.DataFrame(reports, columns=["user", "time", "cell"]), max_gap=max_gap
    )
    assert [sequences.labels[s].tolist() for s in sequences] == expected


def test_no_reports_give_no_sequences_and_a_gap_of_years_gives_no_steps():
    frame = pd.DataFrame(
        {"user": 0, "time": pd.to_datetime(["1990-01-01", "2020-01-01"], utc=True), "cell": [1, 2]}
    )
    assert fixed_steps(frame, "1s", "10s").lengths.tolist() == [11, 1]
    assert len(fixed_steps(frame[:0], "1min", "5min")) == len(observed_sequences(frame[:0])) == 0


def test_users_may_have_several_columns_and_states_may_be_strings():
    frame = pd.DataFrame({"u": ["a", "a"], "r": [1, 2], "time": [0.0, 1.0], "s": ["home", "work"]})
    for sequences in (
        fixed_steps(frame, 1, 5, state="s", user=["u", "r"]),
        observed_sequences(frame, state="s", user=["u", "r"]),
    ):
        assert sequences.users.tolist() == [("a", 1), ("a", 2)]
        assert sequences.labels.tolist() == ["home", "work"]


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({"cell": None}, {}, r"the frame must have the columns .* add \['cell'\]"),
        ({"time": [np.nan]}, {}, "column 'time' must not miss values, found 1"),
        (
            {"time": [20240101123000]},
            {},
            "times must be within 4611686018427 seconds of 0, found 20240101123000",
        ),
        ({"time": ["noon"]}, {}, "must hold time stamps or seconds"),
        ({"user": [np.nan]}, {}, "column 'user' must not miss values, found 1"),
        ({}, {"step": 0}, "step must be a positive duration, found 0"),
        (
            {},
            {"step": "often"},
            "step must be a positive duration, found 'often'; give such as '5m",
        ),
        ({}, {"step": -1}, "step must be a positive duration, found -1; give seconds or such as"),
        ({}, {"max_gap": float("nan")}, "max_gap must be a positive duration"),
    ],
)
def test_arguments_of_time_steps_are_checked(change, options, message):
    frame = pd.DataFrame({"user": [0], "time": [0.0], "cell": [1]})
    for name, value in change.items():
        frame = frame.drop(columns=name) if value is None else frame.assign(**{name: value})
    with pytest.raises(ValueError, match=message):
        fixed_steps(frame, **{"step": 1, "max_gap": 5, **options})


@pytest.mark.parametrize("read", [lambda file: fixed_steps(file, 1), observed_sequences])
def test_a_file_in_place_of_reports_is_an_error_that_names_the_reader(read):
    with pytest.raises(
        ValueError, match=r"DataFrame, found str; read a file with .*read_sequences"
    ):
        read("my.csv")


def test_a_report_just_after_a_step_holds_at_the_next_one():
    frame = pd.DataFrame({"user": 0, "time": [0, 61, 121, 181], "cell": [0, 1, 2, 3]})
    assert listed(fixed_steps(frame, 60)) == [(0, [0]), (0, [1, 2, 3])]
    frame["time"] = [0.0, 60.000001, 120.000001, 180.000001]
    assert listed(fixed_steps(frame, 60)) == [(0, [0]), (0, [1, 2, 3])]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns", "min", "h", "D"])
def test_units_of_times_are_those_of_pandas(unit):
    numbers = np.array([0.0, 1.0, 3.0]) * (10**9 if unit.endswith("s") else 1)
    expected = pd.to_timedelta(numbers, unit=unit).total_seconds()
    assert seconds_of(numbers, unit).astype(float) == pytest.approx(expected)


def test_times_of_day_may_have_odd_minutes():
    quarters = np.array([100 * hour + minute for hour in range(6, 20) for minute in (0, 15, 30)])
    assert are_clocks(quarters)
    assert not are_clocks(quarters + 0.5)
    assert not are_clocks(quarters + 45)


def test_the_error_for_dates_as_numbers_names_the_first():
    frame = pd.DataFrame(
        {"user": 1, "time": [31012024, 1022024, 2022024, 3022024], "state": [*"abab"]}
    )
    with pytest.raises(ValueError, match="found '31012024' in row 0 of .*time_format='%d%m%Y'"):
        read_sequences(frame)


def test_the_error_for_a_block_of_other_times_names_its_first_row():
    dates = pd.DataFrame({"time": ["2024-05-01 08:00", "2024-05-01 09:00"]})
    numbers = pd.DataFrame({"time": [17, 18]})
    kinds = {}
    with_instants(dates, None, lambda row: f"row {row}", kinds)
    with pytest.raises(ValueError, match="found '17' in row 0"):
        with_instants(numbers, None, lambda row: f"row {row}", kinds)
