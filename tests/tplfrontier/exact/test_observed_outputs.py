"""Log-likelihood ratios of outputs that were seen, as a table."""

import numpy as np
import pytest

import tplfrontier as tf

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
