"""Log-likelihood ratios of outputs that were seen, as a table."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

import tplfrontier as tf
import tplrepro as tpl

P = [[0.8, 0.2], [0.1, 0.9]]


@pytest.mark.parametrize("runs", [(), (3,), (2, 3)])
def test_a_table_shows_the_largest_ratio_of_all_runs_at_each_time(runs):
    outputs = np.random.default_rng(0).normal(size=(*runs, 5, 2))
    measured = tf.measured_leakage(outputs, P, P)
    frame = measured.to_frame()
    assert frame.index.tolist() == [0, 1, 2, 3, 4]
    for name in ("bpl", "fpl", "tpl"):
        largest = getattr(measured, name).reshape(-1, 5).max(axis=0)
        assert frame[name].tolist() == largest.tolist()


def seen_from_end(likelihoods, matrix):
    """The likelihood of outputs (T, n) for each state at the last time, over all paths before."""
    horizon, n = likelihoods.shape
    found = np.zeros(n)
    for path in product(range(n), repeat=horizon):
        weight = likelihoods[-1, path[-1]]
        for time in reversed(range(horizon - 1)):
            weight *= matrix[path[time + 1], path[time]] * likelihoods[time, path[time]]
        found[path[-1]] += weight
    return found


def largest_log_ratio(likelihoods):
    return np.log(likelihoods.max() / likelihoods.min())


def test_leakages_are_the_log_ratios_of_all_paths():
    rng = np.random.default_rng(3)
    backward, forward = rng.dirichlet(np.ones(3), (2, 3))
    outputs = rng.normal(size=(4, 3))
    found = tf.measured_leakage(outputs, backward, forward)
    likelihoods = np.exp(outputs)
    for time in range(4):
        up_to = seen_from_end(likelihoods[: time + 1], backward)
        after = seen_from_end(likelihoods[time:][::-1], forward)
        both = up_to * after / likelihoods[time]
        assert found.bpl[time] == pytest.approx(largest_log_ratio(up_to), rel=1e-12)
        assert found.fpl[time] == pytest.approx(largest_log_ratio(after), rel=1e-12)
        assert found.tpl[time] == pytest.approx(largest_log_ratio(both), rel=1e-12)


def test_outputs_that_are_not_finite_are_refused():
    with pytest.raises(ValueError, match="finite"):
        tf.measured_leakage([[0.0, np.inf], [0.0, 1.0]], P, P)


def test_columns_are_those_of_the_states_and_as_many():
    outputs = np.array([[0.0, 1.0, 3.0], [2.0, 0.5, 0.0]])
    alone = tf.measured_leakage(outputs, None, None)
    assert alone.tpl.tolist() == [3.0, 2.0]
    with pytest.raises(ValueError, match="a column for each of the 2 states, found 3"):
        tf.measured_leakage(outputs, P, None)
    matrix = tpl.TransitionMatrix(np.roll(np.eye(3), 1, axis=1) * 0.7 + 0.1, states=["a", "b", "c"])
    frame = pd.DataFrame(outputs, columns=["a", "b", "c"])
    by_label = tf.measured_leakage(frame[["c", "a", "b"]], matrix, None)
    assert by_label.tpl.tolist() == tf.measured_leakage(frame, matrix, None).tpl.tolist()
