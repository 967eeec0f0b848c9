"""Simulations of linear answers against closed forms."""

import numpy as np
import pytest

import tplfrontier as tf
import tplrepro as tpl
from experiments.adaptive_gaussian import Secret, TwoStates
from experiments.linear_answers import Answers, simulated_delta, simulated_noise

EVEN = np.array([[0.5, 0.5], [0.5, 0.5]])


def answers_of(matrix, horizon=3):
    forward = tpl.TransitionMatrix(matrix)
    steps = horizon - 1
    return Answers(np.eye(horizon), [forward.reverse()] * steps, [forward] * steps, 0.5, 0.02)


def test_independent_data_are_one_release():
    answers = answers_of(EVEN)
    chain = TwoStates.of_matrix(EVEN, [0.5, 0.5], 3)
    found = simulated_delta(answers, chain, Secret(1, 0), 2.0, draws=100_000, seed=0)
    exact = tf.gaussian_delta(np.sqrt(2.0) / 2.0, 0.5)
    assert abs(found.mean - exact) <= found.error


def test_bounds_are_in_their_order():
    answers = answers_of([[0.8, 0.2], [0.2, 0.8]])
    chain = TwoStates.of_matrix(np.array([[0.8, 0.2], [0.2, 0.8]]), [0.5, 0.5], 3)
    least, most = simulated_noise(answers, chain, 1, 4000, np.random.default_rng(0))
    assert answers.independent_noise(1) <= most
    assert least <= answers.interval_noise(1) <= 1.01 * answers.whole_series_noise()
    assert answers.interval_noise(1) < answers.event_level_noise(1)


def test_the_noise_of_independent_data_keeps_the_level():
    answers = answers_of(EVEN)
    delta = tf.gaussian_delta(np.sqrt(2.0) / answers.independent_noise(1), 0.5)
    assert delta == pytest.approx(0.02, rel=1e-6)
