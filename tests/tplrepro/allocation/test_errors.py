"""The errors of all allocations name the argument that cannot be, what it must be and what was
found."""

from functools import partial

import numpy as np
import pytest

import tplfrontier as tf
import tplrepro as tpl
from tests.tplrepro.leakage.matrices import BACKWARD, FORWARD
from tplfrontier.budgets.stopping import EndlessBudgets

SIDES = {"backward": BACKWARD, "forward": FORWARD}
BY_BOUND = partial(tpl.allocate_by_upper_bound, **SIDES, alpha=1.0)
BY_QUANTIFICATION = partial(tpl.allocate_by_quantification, **SIDES, alpha=1.0, horizon=3)
BY_EXACT_LEAKAGE = partial(tpl.allocate_by_exact_leakage, **SIDES, alpha=1.0, horizon=3)
OPTIMALLY = partial(tpl.allocate_optimally, **SIDES, alpha=1.0, horizon=3)
WITH_STOPPING = partial(tf.allocate_with_stopping, **SIDES, alpha=1.0, stopping_probability=0.1)
NOISE = partial(tf.allocate_noise, **SIDES, epsilon=1.0, delta=1e-6, horizon=3)
SERIES_NOISE = partial(tf.allocate_series_noise, mu=1.0, covariance=np.eye(2), change=1.0)
CORRELATED = partial(tf.correlate_series_noise, mu=1.0, covariance=np.eye(2), change=1.0, band=1)
SEVERAL = partial(tf.allocate_for_several, tpl.allocate_by_upper_bound, pairs=[(BACKWARD, FORWARD)])
LONG = tf.LinearGaussianSeries.autoregressive(0.5, 1001)
WALK = tf.LinearGaussianSeries([[1.0]], [[1.0]], [1.0], [[1.0]], 5)
WITH_LEVEL = (BY_BOUND, BY_QUANTIFICATION, BY_EXACT_LEAKAGE, OPTIMALLY, WITH_STOPPING)
WITH_HORIZON = (BY_QUANTIFICATION, OPTIMALLY, NOISE, EndlessBudgets(np.array([0.5]), 0.1).budgets)

CASES = [
    *(
        (allocate, {"alpha": 0}, "alpha must be .*greater than 0, found 0; choose")
        for allocate in WITH_LEVEL
    ),
    *(
        (allocate, {"horizon": 0}, "horizon must be at least 1, found 0")
        for allocate in WITH_HORIZON
    ),
    *(
        (BY_BOUND, {"alpha": bad}, "alpha must be .*greater than 0, found")
        for bad in (-1, np.nan, np.inf)
    ),
    (BY_BOUND, {"alpha": [1.0, 2.0]}, "alpha must be one number"),
    (BY_BOUND, {"backward": [[0.8, 0.1], [0.2, 0.8]]}, "rows must sum to 1.*found 0.9 in row 0"),
    (BY_QUANTIFICATION, {"horizon": 2.5}, "whole number"),
    (BY_EXACT_LEAKAGE, {"horizon": None}, "found neither"),
    (BY_EXACT_LEAKAGE, {"proportions": [1.0, 2.0]}, "proportions must be .*found 2 for 3 releases"),
    (BY_EXACT_LEAKAGE, {"proportions": [1.0, 0.0, 1.0]}, "proportions must be .*found 0"),
    (BY_EXACT_LEAKAGE, {"alpha": 500.0}, "at most 700 nats"),
    (OPTIMALLY, {"weights": [1, 1]}, r"each of the 3 releases, found \[1. 1.\]"),
    *(
        (OPTIMALLY, {"weights": [1, bad, 1]}, f"weights must hold .*found .*{bad}.*leave")
        for bad in (0, np.nan)
    ),
    *(
        (f, {"error": "cubed"}, "'absolute', 'squared', found 'cubed'")
        for f in (OPTIMALLY, WITH_STOPPING)
    ),
    *(
        (OPTIMALLY, {"weights": bad}, "weights must hold .*share")
        for bad in ([5e-324, 1, 1], [1, 1e308, 1e308])
    ),
    (OPTIMALLY, {"times": [0, 3]}, "increasing time points in 0..2"),
    (OPTIMALLY, {"backward": [BACKWARD] * 3}, "3 matrices for 2 steps"),
    *(
        (WITH_STOPPING, {"stopping_probability": p}, "0, 1.*, found .*known number.*optimally")
        for p in (0.0, 1.0)
    ),
    *(
        (WITH_STOPPING, {"stopping_probability": p}, "must be a probability")
        for p in (np.nan, "0.5", None)
    ),
    (
        NOISE,
        {"epsilon": 0.0},
        "epsilon must be a finite level in nats, greater than 0, found 0; choose",
    ),
    (NOISE, {"delta": 0.0}, "delta must be greater than 0 and less than 1, found 0; give"),
    (NOISE, {"delta": [1e-6]}, "delta must be one number"),
    (
        NOISE,
        {"delta": 1e-17},
        "delta must be above the rounding errors .* 3 releases, found 1e-17; give a lar",
    ),
    (
        NOISE,
        {"method": "best"},
        "method must be one of 'equal', 'least_variance', found 'best'; choose one",
    ),
    (NOISE, {"forward": np.eye(3)}, r"must have the same states .* found \[2, 3\]"),
    (
        NOISE,
        {"forward": [FORWARD]},
        "forward must be one matrix, or one for each .* found 1 matrices for 2 steps",
    ),
    (SERIES_NOISE, {"mu": 0.0}, "mu must be .*found 0"),
    (SERIES_NOISE, {"change": -1.0}, "change must be .*found -1"),
    (SERIES_NOISE, {"covariance": LONG, "equal": False}, "at most 1000 times, found 1001"),
    *(
        (CORRELATED, {"band": bad}, "band must be .* from 0 to T - 1 = 1, found")
        for bad in (2, 1.0, True, [0, 1])
    ),
    (CORRELATED, {"workload": [1.0]}, r"shape \(k, 2\), found \(1,\)"),
    (
        tf.endless_series_noise,
        {"mu": 1.0, "series": WALK, "change": 1.0},
        "eigenvalue of modulus 1",
    ),
    (SEVERAL, {"pairs": []}, "pairs must hold at least one"),
    (SEVERAL, {"share": 0.0}, "share must be a probability"),
]


@pytest.mark.parametrize(("allocate", "arguments", "message"), CASES)
def test_each_wrong_argument_is_named(allocate, arguments, message):
    with pytest.raises(ValueError, match=message):
        allocate(**arguments)
