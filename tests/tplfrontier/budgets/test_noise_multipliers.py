"""Noise multipliers are refused wherever budgets are wanted, and budgets where noise is."""

import copy
import json
import pickle

import numpy as np
import pandas as pd
import pytest

import tplfrontier as tf
import tplreport as tr
import tplrepro as tpl

P = [[0.8, 0.2], [0.1, 0.9]]
PLAN = tf.allocate_noise(1.0, 1e-6, P, P, 4)
COUNTS = [[60, 40]] * 4


@pytest.mark.parametrize(
    "levels",
    [
        PLAN,
        PLAN[:4],
        2.0 * PLAN,
        PLAN.round(2),
        copy.deepcopy(PLAN),
        pickle.loads(pickle.dumps(PLAN)),
        list(PLAN),
        PLAN.tolist(),
        PLAN[0],
        PLAN.max(),
        PLAN.min(),
        np.min(PLAN),
        np.mean(PLAN),
        np.maximum(PLAN, 7.0),
        PLAN[:1].item(),
        tf.allocate_noise(1.0, 1e-6, P, P, 4, index=list("abcd")),
        pd.DataFrame({"noise_multiplier": np.asarray(PLAN)})["noise_multiplier"],
    ],
    ids=str,
)
def test_noise_multipliers_are_refused_as_budgets(levels):
    """24 releases at 7 nats each were made of multipliers of 7.09."""
    message = "must be privacy budgets in nats, found multipliers of Gaussian noise; release"
    with pytest.raises(ValueError, match=f"epsilons {message}"):
        tr.release_counts(COUNTS, levels, sensitivity=2)
    with pytest.raises(ValueError, match=message):
        tpl.temporal_privacy_leakage(levels, P, P, horizon=4)
    gaussian = {"sensitivity": 2**0.5, "mechanism": "opendp-gaussian"}
    assert tr.release_counts(COUNTS, noise_multipliers=levels, **gaussian).shape == (4, 2)


def test_a_publisher_refuses_multipliers_without_a_delta(tmp_path):
    settings = {"backward": P, "forward": P, "sensitivity": 2**0.5, "alpha": 20.0}
    with pytest.raises(ValueError, match="found multipliers of Gaussian noise.* with delta="):
        tr.Publisher(tmp_path / "own.sqlite", plan=PLAN, **settings)
    with pytest.raises(ValueError, match="found multipliers of Gaussian noise"):
        tpl.TemporalAccountant(P, P).compose(PLAN[0])
    made = tr.Publisher(tmp_path / "own.sqlite", plan=PLAN, delta=1e-6, **settings)
    assert made.remaining == PLAN[0]


def test_budgets_are_refused_as_noise_multipliers():
    budgets = tpl.allocate_by_quantification(1.0, P, P, 4, index=list("abcd"))
    with pytest.raises(ValueError, match="found budgets in nats; release counts with epsilons="):
        tr.release_counts(
            COUNTS, noise_multipliers=budgets, sensitivity=1.5, mechanism="opendp-gaussian"
        )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            {"mechanism": "gaussian"},
            "one of 'opendp', 'opendp-gaussian', 'numpy', found 'gaussian'",
        ),
        ({}, 'needs epsilons and no noise_multipliers, found .*mechanism="opendp-gaussian"'),
    ],
)
def test_errors_name_the_mechanism_of_gaussian_noise(words, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        tr.release_counts(COUNTS, noise_multipliers=PLAN, sensitivity=2, **words)
    settings = {"backward": P, "forward": P, "sensitivity": 2, "alpha": 1.0, "floor": 0.1}
    for name in ("gaussian", "opendp-gaussian"):
        with pytest.raises(ValueError, match="opendp-gaussian"):
            tr.Publisher(tmp_path / "own.sqlite", mechanism=name, **settings)


def test_what_is_computed_of_multipliers_are_numbers_and_truth_values():
    assert isinstance(PLAN.max() * 2.0 / np.sqrt(np.pi), float)
    assert json.loads(json.dumps([PLAN.mean(), *PLAN.tolist()]))[1:] == np.asarray(PLAN).tolist()
    assert type(PLAN > 7.0) is np.ndarray
    assert (PLAN == PLAN[0]).all() is np.True_
