"""`prepare` against the steps that it joins, one data set after the other."""

import pytest

import tplreport as tr
from experiments.datasets import gaze, geolife, gowalla, kosarak
from experiments.datasets.preparation import joint_kind, joint_record, prepare
from experiments.datasets.readers import registry
from experiments.datasets.readers.registry import DATA_VARIABLE, DatasetNotFoundError


def assert_same(sequences, expected):
    assert [s.tolist() for s in sequences] == [s.tolist() for s in expected]
    assert sequences.labels.tolist() == expected.labels.tolist()
    assert list(sequences.users) == list(expected.users)


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    """A data folder whose files are not marked as synthetic, as recorded ones are not; gives its
    path."""
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    geolife.synthetic(2, 1, tmp_path / "geolife" / "some.zip", n_trajectories=4)
    gowalla.synthetic(20, 1, tmp_path / "gowalla" / "loc-gowalla_a.txt")
    gowalla.synthetic(60, 2, tmp_path / "gowalla" / "loc-gowalla_b.txt")
    kosarak.synthetic(20, 1, tmp_path / "kosarak" / "kosarak.dat")
    gaze.synthetic(2, 1, tmp_path / "gaze" / "gazegraph", seconds=4.0)
    for marker in [*tmp_path.rglob("*.synthetic.json"), *tmp_path.rglob("SYNTHETIC.json")]:
        marker.unlink()
    return tmp_path


def test_positions_become_cells_at_fixed_steps_or_as_observed_and_pages_states():
    found = prepare(
        "geolife", stand_in={"n_users": 2, "seed": 3}, cell_km=2.0, step="10min", max_gap="20min"
    )
    points = geolife.synthetic(2, 3)
    grid = tr.Grid(tr.BEIJING_3RD_RING, 2.0)
    points["cell"] = grid.cell(points["latitude"], points["longitude"])
    assert_same(found.sequences, tr.fixed_steps(points, "10min", "20min"))
    assert (found.grid, found.state_names) == (grid, grid.labels(found.sequences.labels))
    assert found.observations.equals(points)
    assert (found.title, found.synthetic, found.inputs) == (
        "Geolife in Beijing (synthetic data)",
        True,
        (),
    )
    found = prepare("gowalla", stand_in={"n_users": 50, "seed": 3}, max_gap="1D")
    visits = gowalla.synthetic(50, 3)
    visits["cell"] = tr.Grid(tr.NEW_YORK, 5.0).cell(visits["latitude"], visits["longitude"])
    assert_same(found.sequences, tr.observed_sequences(visits, max_gap="1D"))
    found = prepare("kosarak", stand_in={"n_users": 30, "seed": 3})
    assert_same(found.sequences, kosarak.to_sequences(kosarak.synthetic(30, 3)))
    assert found.state_names[0] == f"page {found.sequences.labels[0]}"


@pytest.mark.parametrize(
    ("layout", "title"), [("GAZEGRAPH", "GazeGraph"), ("ANDERSSON2017", "Andersson et al. (2017)")]
)
def test_gaze_is_cut_into_areas_at_fixed_steps(layout, title):
    found = prepare(
        "gaze", stand_in={"n_users": 2, "seed": 3, "seconds": 9.0}, layout=layout, columns=3, rows=2
    )
    samples = gaze.synthetic(2, 3, seconds=9.0, layout=getattr(gaze, layout))
    samples["area"] = gaze.areas(samples, 3, 2, *gaze.SCREENS[layout])
    assert_same(
        found.sequences, tr.fixed_steps(samples, 0.2, 0.5, state="area", user=["user", "recording"])
    )
    assert set(found.state_names) <= {
        f"area r{row}c{column}" for row in range(2) for column in range(3)
    }
    assert found.title == f"{title} (synthetic data)"


@pytest.mark.parametrize("name", ["geolife", "gowalla", "kosarak", "gaze"])
def test_recorded_data_come_first_and_name_their_files(recorded, name):
    found = prepare(name)
    assert not found.synthetic
    assert "synthetic" not in found.title
    assert all(path.is_relative_to(recorded / name) for path in found.inputs)
    files = {"inputs": list(found.inputs)}
    assert found.inputs
    assert found.record == {"data": "real (unverified)"} | files
    stand_in = prepare(name, synthetic=True)
    assert stand_in.record == {"data": "synthetic", "inputs": []}
    assert joint_record(found, stand_in) == {"data": f"synthetic in part: {found.name}"} | files
    assert (
        joint_kind(found, stand_in) == f"{found.name}: recorded data, {found.name}: synthetic data"
    )
    assert joint_kind(found, found) == "recorded data"


def test_the_official_file_is_taken_or_the_densest_and_no_stand_in_passes_for_one(recorded):
    kosarak.synthetic(20, 1, recorded / "kosarak" / "kosarak.dat")
    assert prepare("kosarak").record == {"data": "synthetic", "inputs": []}
    found = prepare("gowalla")
    assert found.inputs[0].name == "loc-gowalla_b.txt"
    sizes = [len(gowalla.load(path, box=tr.NEW_YORK)) for path in (recorded / "gowalla").iterdir()]
    assert len(found.observations) == max(sizes)
    (recorded / "gowalla" / "loc-gowalla_a.txt").rename(
        recorded / "gowalla" / "loc-gowalla_totalCheckins.txt"
    )
    assert prepare("gowalla").inputs[0].name == "loc-gowalla_totalCheckins.txt"


def test_the_place_of_a_box_and_a_box_without_observations_are_named(recorded):
    inside, outside = (33.9, 34.1, -118.5, -118.1), (30.1, 30.5, -98.0, -97.5)
    found = [
        prepare("gowalla", synthetic=True, stand_in={"n_users": 30}, box=box)
        for box in (inside, outside)
    ]
    elsewhere = "Gowalla, latitude 30.1 to 30.5, longitude -98 to -97.5 (synthetic data)"
    assert [one.title for one in found] == ["Gowalla in Los Angeles (synthetic data)", elsewhere]
    assert [one.place for one in found] == ["Los Angeles", ""]
    (recorded / "gowalla" / "loc-gowalla_b.txt").rename(recorded / "gowalla" / registry.THINNED[0])
    assert prepare("gowalla").title == "Gowalla in New York (thinned)"
    message = (
        "latitude 0 to 1, .*: there must be two observations of a user .*, "
        "found none in 0 rows; give the region by"
    )
    with pytest.raises(ValueError, match=message):
        prepare("gowalla", box=(0, 1, 0, 1))


def test_wrong_names_cuts_and_paths_are_named(tmp_path):
    with pytest.raises(ValueError, match="name must be one of 'geolife', .*found 'netflix'"):
        prepare("netflix")
    with pytest.raises(
        ValueError, match="geolife is cut by box, cell_km, step, max_gap, found cells"
    ):
        prepare("geolife", cells=1.0)
    with pytest.raises(
        ValueError, match="layout must be one of 'GAZEGRAPH', 'ANDERSSON2017', found 'mojo'"
    ):
        prepare("gaze", layout="mojo")
    with pytest.raises(DatasetNotFoundError, match="no file or folder"):
        prepare("kosarak", path=tmp_path / "absent")
