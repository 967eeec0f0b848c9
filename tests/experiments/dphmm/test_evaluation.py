import os
import subprocess
import sys
from itertools import product

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import LineCollection

from experiments import figures
from experiments.dphmm import drawing, evaluation, mobility
from experiments.dphmm.running_example import TRANSITIONS
from tests.tplrepro.dphmm.policies import F, categorical
from tplreport.reading.grid import NEW_YORK
from tplrepro.dphmm import PolicyGraph, degree_of_protection, hull, release, sensitivity_hull
from tplrepro.markov import Sequences

BOX = (33.6, 34.4, -118.8, -117.8)
CHOSEN = {"cuts": ["10s/20s"], "boxes": [BOX], "seed": 0}


def _model(walks, centres, n_trajectories, horizon):
    k, length = np.shape(walks)
    sequences = Sequences(
        np.ravel(walks), np.arange(k + 1) * length, np.arange(len(centres)), np.arange(k)
    )
    return mobility.mobility_model(sequences, centres, n_trajectories, horizon)


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    centres, chain = evaluation.grid_of_states(16)
    walks = rng.integers(16, size=(6, 81))
    for walk, t in product(walks, range(1, 81)):
        walk[t] = rng.choice(16, p=chain.row(walk[t - 1]))
    return _model(walks, centres, 3, 8)


def test_mobility_model_keeps_cells_that_reach_each_other(model):
    walk = [[0, 1, 0, 1, 2, 3, 2, 3, 2]]  # nobody returns from 2 or 3
    assert repr(_model(walk, np.eye(4, 2), 2, 3)) == "MobilityModel(2 states, 1 trajectories of 3)"
    with pytest.raises(ValueError, match="trajectories must have 6 states .* found 5 at most"):
        _model(walk, np.eye(4, 2), 2, 5)
    # Trajectories are possible under the model.
    P = np.asarray(model.transitions)
    assert model.trajectories.shape == (3, 9)
    assert (P[model.trajectories[:, :-1], model.trajectories[:, 1:]] > 0).all()


@pytest.mark.parametrize("excluded", [None, 0.05])
def test_evaluate_makes_the_same_releases_as_release_with_its_seeds(model, excluded):
    policy = (
        PolicyGraph.transition(model.transitions) if excluded is None else PolicyGraph.complete(16)
    )
    table = evaluation.evaluate(model, policy, [0.7], excluded, seed=4)
    assert len(table) == 24
    assert (table["degree_of_protection"] >= 2).all()
    for i, trajectory in enumerate(model.trajectories):
        P, rng = model.transitions, np.random.default_rng([4, i])
        steps = release(
            trajectory[1:],
            policy,
            model.answers,
            0.7,
            P,
            P.row(trajectory[0]),
            excluded_probability=excluded,
            rng=rng,
        )
        part = table[table.trajectory == i]
        for step, state, row in zip(steps, trajectory[1:], part.itertuples(), strict=True):
            assert row.released
            assert row.error == pytest.approx(np.linalg.norm(step.z - model.answers[state]))
            assert row.possible == step.policy.possible.size
            assert (
                row.degree_of_protection
                == degree_of_protection(step.policy, model.answers)[step.perturbed_state]
            )
    # Where one state is possible, nothing is released: here from 0 only to 1, from 1 only to 2.
    model = _model([[0, 1, 2, 0, 1, 2, 0, 1, 2, 2, 0, 1]], np.arange(6.0).reshape(3, 2), 1, 5)
    table = evaluation.evaluate(model, PolicyGraph.complete(3), [1.0], seed=0)
    assert (table["released"].any(), table["released"][0], np.isnan(table["error"][0])) == (
        True,
        False,
        True,
    )


PRINT_SUMS = """
from experiments.dphmm import evaluation, mobility
given = {"cuts": ["10s/20s"], "boxes": [(33.6, 34.4, -118.8, -117.8)], "seed": 1}
models, _ = mobility.recorded_models(2, 12, stand_ins={"geolife": 2, "gowalla": 200}, **given)
releases = evaluation.compare(
    models, {"Geolife": 1.0, "Gowalla": 2.0}, [1.0], excluded_probability=0.01, seed=5
)
columns = ["degree_of_protection", "error", "possible", "added_edges"]
print(releases.groupby(["data", "method", "time"])[columns].sum().round(6).to_csv())
"""


@pytest.mark.slow
def test_no_digit_depends_on_the_processor_or_the_number_of_threads(tmp_path):
    # Kernels of OpenBLAS for another processor, and fewer instructions for NumPy, change last bits.
    few = "AVX512F AVX512_SKX AVX2 FMA3"
    printed = []
    for core, threads, disabled in (
        ("Haswell", "1", ""),
        ("Prescott", "2", few),
        ("Nehalem", "1", few),
    ):
        machine = {
            "OPENBLAS_CORETYPE": core,
            "OPENBLAS_NUM_THREADS": threads,
            "NPY_DISABLE_CPU_FEATURES": disabled,
        }
        machine |= {name: str(tmp_path) for name in ("TPLREPRO_DATA", "TPLREPRO_CACHE")}
        command = [sys.executable, "-c", PRINT_SUMS]
        printed.append(subprocess.check_output(command, env=os.environ | machine, text=True))
    assert printed[0].count("\n") > 70
    assert printed[1:] == printed[:1] * 2


def test_comparisons_have_a_row_for_each_level_method_and_step(model):
    table = evaluation.compare(
        {"grid": model}, {"grid": 1.0}, [0.5, 1.0], excluded_probability=0.01, seed=0
    )
    assert table["method"].unique().tolist() == ["DPHMM, G_util", "DPHMM, G_trs", "DPLS"]
    assert len(table) == 2 * 3 * 24
    two = pd.concat([table, table.assign(data="grid twice", error=2 * table.error)])
    found = evaluation.by_choice(two, ["error", "possible"])
    part = table[table["method"] == "DPLS"]
    values = [each["value"] for each in found["grid, DPLS: error"]]
    assert values == pytest.approx([part["error"].mean(), 2 * part["error"].mean()])
    growth = evaluation.time_growth([9, 16], 1.0, seed=0)
    assert (growth[["G_trs", "complete"]] > 0).all(axis=None)


def test_a_complete_graph_with_its_edges_listed_has_the_same_hull(model, monkeypatch):
    """Corners of the answers, by which complete graphs are faster, are then not asked for."""
    complete = PolicyGraph.complete(len(model.answers))
    expected = sensitivity_hull(complete, model.answers)
    monkeypatch.setattr(hull, "_corners_of_answers", None)
    with evaluation.edges_listed():
        listed = sensitivity_hull(complete, model.answers)
    assert listed.volume == pytest.approx(expected.volume)
    assert complete.is_complete


def test_the_baseline_with_its_edges_listed_makes_the_same_releases(model):
    found = evaluation.compare(
        {"Geolife": model},
        {"Geolife": 1.0},
        [1.0],
        excluded_probability=0.1,
        seed=1,
        list_edges=True,
    )
    columns = ["possible", "edges", "hull_area", "degree_of_protection", "added_edges"]
    of_method = {method: part[columns].to_numpy() for method, part in found.groupby("method")}
    assert of_method[evaluation.LISTED] == pytest.approx(of_method["DPLS"])
    assert of_method[evaluation.PAIRED] == pytest.approx(of_method["DPLS"])
    complete = found[found["method"] == evaluation.PAIRED]
    assert (2 * complete["edges"]).equals(complete["possible"] * (complete["possible"] - 1))


def test_pairs_of_possible_states_are_made_without_those_of_all_states(model, monkeypatch):
    """They are listed, so that no corners are asked for, and the graph of all states lists none."""
    complete = PolicyGraph.complete(len(model.answers))
    expected = sensitivity_hull(complete.constrain([0, 3, 5]), model.answers)
    monkeypatch.setattr(hull, "_corners_of_answers", None)
    with evaluation.pairs_of_possible_states():
        constrained = complete.constrain([0, 3, 5])
        found = sensitivity_hull(constrained, model.answers)
    assert found.volume == pytest.approx(expected.volume)
    assert constrained.edge_array.tolist() == [[0, 3], [0, 5], [3, 5]]
    assert "edge_array" not in vars(complete)


def test_stand_ins_take_the_place_of_missing_files(monkeypatch, tmp_path):
    monkeypatch.delenv("TPLREPRO_DATA", raising=False)
    monkeypatch.setenv("TPLREPRO_CACHE", str(tmp_path))
    models, record = mobility.recorded_models(
        2, 6, stand_ins={"geolife": 2, "gowalla": 200}, **CHOSEN
    )
    assert record == {"data": "synthetic", "inputs": []}
    shapes = {name: model.trajectories.shape for name, model in models.items()}
    assert shapes == {"Geolife 10s/20s": (2, 7), "Gowalla Los Angeles 89 x 92 km": (2, 7)}


@pytest.mark.slow
@pytest.mark.real_data
def test_the_real_files_hold_twenty_trajectories():
    given = CHOSEN | {"boxes": [tuple(NEW_YORK), BOX]}
    models, record = mobility.recorded_models(
        20, 100, stand_ins={"geolife": 1, "gowalla": 1}, **given
    )
    assert record["data"] == "real (unverified)"  # parts of the sets have no published checksum
    assert [model.trajectories.shape for model in models.values()] == [(20, 101)] * 3
    assert list(models)[1:] == [
        "Gowalla New York 48 x 47 km",
        "Gowalla Los Angeles (thinned) 89 x 92 km",
    ]
    assert len(record["inputs"]) == 3  # of the two cities, too


def test_each_edge_and_state_is_drawn_once_added_edges_dashed_and_hulls_about_their_centre():
    graph = categorical().connect([(0, 1)]).constrain([0, 1, 2])
    for impossible, shown in ((True, 6), (False, 3)):
        axes = figures.subplots()[1]
        drawing.draw_policy(
            axes, graph, F, added=[(1, 0)], exposed=np.array([2]), impossible=impossible
        )
        edges = next(each for each in axes.collections if isinstance(each, LineCollection))
        assert [segment.tolist() for segment in edges.get_segments()] == [
            [[1, 0], [2, 1]],
            [[2, 1], [3, 0]],
        ]
        assert [pattern is None for _, pattern in edges.get_linestyle()] == [False, True]
        assert sorted(text.get_text() for text in axes.texts) == [
            f"$s_{{{i}}}$" for i in range(1, shown + 1)
        ]
    axes = figures.subplots()[1]
    K = sensitivity_hull(categorical(), F)
    drawing.draw_hull(axes, K, F[1])
    assert np.array_equal(axes.lines[0].get_xydata()[:-1], K.vertices + F[1])
    drawing.draw_transitions(axes, TRANSITIONS, F)
    assert len(axes.patches) == 1 + np.count_nonzero(TRANSITIONS) - np.count_nonzero(
        np.diag(TRANSITIONS)
    )
