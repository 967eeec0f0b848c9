"""Simulations of linear answers against closed forms."""

import re

import numpy as np
import pandas as pd
import pytest

import tplfrontier as tf
import tplrepro as tpl
from experiments.adaptive_gaussian import Secret, TwoStates
from experiments.linear_answers import Answers, simulated_delta, simulated_noise
from workflow.configuration import ROOT

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


def test_the_page_on_intervals_has_the_noise_of_the_record():
    page = (ROOT / "docs/theory/intervals.md").read_text("utf-8")
    rows = re.findall(r"^\| ([a-z].*, .*?)(?: of \[1\])? \| (.*) \|$", page, re.MULTILINE)
    printed = {
        answers: [float(cell.strip("* ")) for cell in cells.split("|")] for answers, cells in rows
    }
    record = pd.read_csv(ROOT / "figures/explore/intervals.csv", index_col="answers")
    assert list(printed) == list(record.index)
    for answers, (first, series, _, both, independent) in printed.items():
        noise = record.loc[answers]
        bounds = noise[["Theorem 1'", "whole series", "Theorem C"]]
        assert [first, series, both] == [float(f"{value:.3g}") for value in bounds]
        assert independent == round(noise["independent"])
