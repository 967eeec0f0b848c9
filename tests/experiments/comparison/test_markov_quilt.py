"""Markov quilts against the definitions of Song, Wang and Chaudhuri on the table of all paths."""

from itertools import pairwise, product

import numpy as np
import pytest

from experiments.comparison.markov_quilt import quilt_level
from experiments.comparison.setting import Adversary, Setting
from tplrepro import TransitionMatrix
from tplrepro.leakage.exact import exact_leakage

CHAINS = {
    "random": TransitionMatrix.random(3, rng=np.random.default_rng(4)).toarray(),
    "not reversible": np.array([[0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.7, 0.2, 0.1]]),
    "zeros": np.array([[0.9, 0.1, 0.0], [0.0, 0.8, 0.2], [0.3, 0.0, 0.7]]),
    "two states": np.array([[0.95, 0.05], [0.1, 0.9]]),
}


def by_definition(matrix, initial, horizon):
    """For each time, (times within, max-influence) of each quilt, from the probabilities of all
    paths."""
    paths = list(product(range(len(initial)), repeat=horizon))
    weights = [
        initial[path[0]] * np.prod([matrix[step] for step in pairwise(path)]) for path in paths
    ]
    for t in range(horizon):
        quilts = []
        for a, b in product([None, *range(t)], [None, *range(t + 1, horizon)]):
            quilt = [time for time in (a, b) if time is not None]
            joint = np.zeros((len(initial),) * (1 + len(quilt)))
            for path, weight in zip(paths, weights, strict=True):
                joint[(path[t], *(path[time] for time in quilt))] += weight
            given = joint / joint.sum(axis=tuple(range(1, joint.ndim)), keepdims=True)
            with np.errstate(divide="ignore", invalid="ignore"):
                influence = max(np.nanmax(np.log(p) - np.log(q)) for p in given for q in given)
            within = (horizon if b is None else b) - (-1 if a is None else a) - 1
            quilts.append((within, influence))
        yield quilts


def setting_of(matrix, horizon):
    """A setting of this chain and length; quilts know nothing else."""
    n = len(matrix)
    return Setting(
        np.zeros((1, horizon), dtype=int),
        Adversary(TransitionMatrix(matrix)),
        np.zeros((n, 2)),
        np.empty(0),
    )


@pytest.mark.parametrize("matrix", CHAINS.values(), ids=CHAINS)
@pytest.mark.parametrize("horizon", [1, 2, 5])
def test_the_level_of_quilts_equals_its_definition_and_bounds_the_exact_leakage(matrix, horizon):
    setting = setting_of(matrix, horizon)
    adversary = setting.adversary
    quilts = list(by_definition(matrix, adversary.initial, horizon))
    for budget in (0.05, 0.3, 2.0, 20.0):
        level = max(min(budget * within + e for within, e in of_time) for of_time in quilts)
        assert quilt_level(setting, budget) == pytest.approx(level, rel=1e-9)
        exact = exact_leakage(
            np.full(horizon, budget), adversary.reversed, adversary.transitions
        ).tpl.max()
        assert exact <= quilt_level(setting, budget)


def test_neither_markov_quilts_nor_temporal_privacy_leakage_always_give_less():
    # Two rows have no column in common, so that L is the identity and the bound of TPL is that of
    # the group; two steps mix all states, which quilts see.
    mixing = setting_of(
        [[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5], [0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5]], 40
    )
    assert mixing.adversary.bound(np.full(40, 0.1)) == pytest.approx(4.0)
    assert quilt_level(mixing, 0.1) == pytest.approx(0.3)
    # Of a chain that mostly stays, the recursion of TPL adds less than a quilt's influence.
    staying = setting_of([[0.9, 0.1], [0.1, 0.9]], 40)
    assert staying.adversary.bound(np.full(40, 0.1)) < quilt_level(staying, 0.1)
