from itertools import product

import numpy as np
import pytest

from tplrepro.datasets import Sequences
from tplrepro.dphmm import PolicyGraph, degree_of_protection, evaluation, mobility, release

STEPS = {"step": "10s", "max_gap": "20s"}


def _model(horizon=8, seed=0):
    rng = np.random.default_rng(seed)
    centres = np.stack(np.divmod(np.arange(16), 4), axis=1).astype(float)
    near = [np.flatnonzero(np.abs(centres - c).max(axis=1) <= 1) for c in centres]
    walks = rng.integers(16, size=(6, 81))
    for walk, t in product(walks, range(1, 81)):
        walk[t] = rng.choice(near[walk[t - 1]])
    sequences = Sequences(walks.ravel(), np.arange(7) * 81, np.arange(16), np.arange(6))
    return mobility.mobility_model(sequences, centres, 3, horizon)


def _model_of_one(walk, n_cells, n_trajectories, horizon):
    sequences = Sequences(np.array(walk), np.array([0, len(walk)]), np.arange(n_cells), np.array([5]))
    return mobility.mobility_model(sequences, np.arange(2.0 * n_cells).reshape(-1, 2), n_trajectories, horizon)


def test_mobility_model_keeps_cells_that_reach_each_other():
    walk = [0, 1, 0, 1, 2, 3, 2, 3, 2]  # nobody returns from 2 or 3
    model = _model_of_one(walk, 4, 2, 3)
    assert len(model.answers) == 2
    assert model.trajectories.shape == (1, 4)
    with pytest.raises(ValueError, match="trajectories must have 6 states .* found 5 at most"):
        _model_of_one(walk, 4, 2, 5)
    # Trajectories are possible under the model.
    model = _model()
    P = np.asarray(model.transitions)
    assert model.trajectories.shape == (3, 9)
    assert (P[model.trajectories[:, :-1], model.trajectories[:, 1:]] > 0).all()
    assert repr(model) == "MobilityModel(16 states, 3 trajectories of 8)"


@pytest.mark.parametrize("delta", [None, 0.05])
def test_evaluate_repeats_the_release(delta):
    model = _model()
    policy = PolicyGraph.transition(model.transitions) if delta is None else PolicyGraph.complete(16)
    table = evaluation.evaluate(model, policy, 0.7, delta, seed=4)
    assert len(table) == 24
    assert table["released"].all()
    assert (table["degree_of_protection"] >= 2).all()
    for i, trajectory in enumerate(model.trajectories):
        P, rng = model.transitions, np.random.default_rng([4, i])
        steps = release(trajectory[1:], policy, model.answers, 0.7, P, P.row(trajectory[0]), delta=delta, rng=rng)
        part = table[table.trajectory == i]
        for step, state, row in zip(steps, trajectory[1:], part.itertuples(), strict=True):
            assert row.error == pytest.approx(np.linalg.norm(step.z - model.answers[state]))
            assert row.possible == step.policy.possible.size
            assert row.degree_of_protection == degree_of_protection(step.policy, model.answers)[step.perturbed_state]


def test_where_one_state_is_possible_nothing_is_released():
    model = _model_of_one([0, 1, 2, 0, 1, 2, 0, 1, 2, 2, 0, 1], 3, 1, 5)  # from 0 only to 1, from 1 only to 2
    table = evaluation.evaluate(model, PolicyGraph.complete(3), 1.0, seed=0)
    assert not table["released"][0]
    assert np.isnan(table["error"][0])
    assert table["released"].any()


def test_compare_and_growth():
    model = _model(horizon=3)
    table = evaluation.compare({"grid": model}, {"grid": 1.0}, [0.5, 1.0], delta=0.01, seed=0)
    assert table["method"].unique().tolist() == ["DPHMM, G_util", "DPHMM, G_trs", "DPLS"]
    assert table.columns[:3].tolist() == ["data", "epsilon", "method"]
    assert len(table) == 2 * 27
    growth = evaluation.time_growth([9, 16], 1.0, seed=0, repeats=1)
    assert growth["states"].tolist() == [9, 16]
    assert (growth[["G_trs", "complete"]] > 0).all(axis=None)


def test_stand_ins_take_the_place_of_missing_files(monkeypatch, tmp_path):
    monkeypatch.delenv("TPLREPRO_DATA", raising=False)
    monkeypatch.setenv("TPLREPRO_CACHE", str(tmp_path))
    models, record = mobility.recorded_models(2, 6, stand_ins={"geolife": 2, "gowalla": 200}, seed=0, **STEPS)
    assert record == {"data": "synthetic", "inputs": []}
    assert [model.trajectories.shape for model in models.values()] == [(2, 7)] * 2
    assert models["Geolife"].answers.shape[1] == 2


@pytest.mark.real_data
def test_the_real_files_hold_twenty_trajectories():
    models, record = mobility.recorded_models(20, 100, stand_ins={"geolife": 1, "gowalla": 1}, seed=0, **STEPS)
    assert record["data"] == "real"
    assert [model.trajectories.shape for model in models.values()] == [(20, 101)] * 2
