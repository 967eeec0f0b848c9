"""Mechanisms of finitely many outputs: a table for each release, and messages left out."""

import numpy as np
import pytest

import tplfrontier as tf
import tplrepro as tpl
from tplfrontier.exact import finite_mechanism

P = [[0.1, 0.1, 0.8], [0.2, 0.7, 0.1], [0.7, 0.2, 0.1]]
TABLE = [[np.e, 1.0], [1.0, np.e], [1.0, np.e]]


def test_a_table_for_each_release_is_one_for_all_if_they_are_equal():
    each = tf.mechanism_leakage([TABLE] * 4, P, P)
    for_all = tf.mechanism_leakage(TABLE, P, P, horizon=4)
    assert each.tpl.tolist() == for_all.tpl.tolist()


def test_messages_inside_of_others_are_left_out_and_none_outside(monkeypatch):
    rng = np.random.default_rng(0)
    corners = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
    inner = rng.dirichlet(np.ones(3) * 5, 20) @ corners
    left = finite_mechanism._leave_out_inner(np.concatenate((inner, corners)))
    assert sorted(left.tolist()) == sorted(corners.tolist())
    in_one_line = np.linspace(corners[0], corners[1], 9)
    assert len(finite_mechanism._leave_out_inner(in_one_line)) == 9
    leakage = tf.mechanism_leakage(TABLE, P, P, horizon=6).tpl
    monkeypatch.setattr(finite_mechanism, "_leave_out_inner", lambda messages: messages)
    np.testing.assert_allclose(tf.mechanism_leakage(TABLE, P, P, horizon=6).tpl, leakage, rtol=1e-9)


def test_randomised_response_is_the_worst_mechanism_of_two_states():
    steps = [[0.8, 0.2], [0.1, 0.9]]
    found = tf.mechanism_leakage([[np.e, 1.0], [1.0, np.e]], steps, steps, horizon=4)
    worst = tpl.exact_leakage([1.0] * 4, steps, steps)
    np.testing.assert_allclose(found.tpl, worst.tpl, rtol=1e-12)


def test_messages_are_counted_before_they_are_listed(monkeypatch):
    """Two outputs at each of two times before the last one: four messages."""
    monkeypatch.setattr(finite_mechanism, "MAX_MESSAGES", 4)
    expected = tf.mechanism_leakage(TABLE, P, P, horizon=3).tpl
    assert expected[1] > expected[0] > 1.0
    monkeypatch.setattr(finite_mechanism, "MAX_MESSAGES", 3)
    with pytest.raises(ValueError, match="at most 3 messages at a time, found 2 times 2 outputs"):
        tf.mechanism_leakage(TABLE, P, P, horizon=3)


def test_one_state_and_one_output_leak_nothing():
    assert tf.mechanism_leakage([[1.0]], [[1.0]], [[1.0]], horizon=2).tpl.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(("epsilon", "horizon"), [(1, 742), (1, 760), (5, 200), (10, 100)])
def test_ratios_beyond_doubles_are_refused(epsilon, horizon):
    """Leakages were NaN, or a little more than their upper bound."""
    outputs = [[np.exp(epsilon), 1], [1, np.exp(epsilon)]]
    with pytest.raises(ValueError, match=r"must stay below e\^667 \(doubles\), found a message of"):
        tf.mechanism_leakage(outputs, np.eye(2), np.eye(2), horizon=horizon)
    few = tf.mechanism_leakage(outputs, np.eye(2), np.eye(2), horizon=600 // epsilon)
    assert few.bpl[-1] == pytest.approx(600, rel=1e-12)
