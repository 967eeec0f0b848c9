"""Markov quilts against the definitions of Song, Wang and Chaudhuri on the table of all paths."""

from itertools import pairwise, product

import numpy as np
import pytest

from experiments import comparison
from tplrepro import TransitionMatrix
from tplrepro.leakage.exact import exact_leakage

CHAINS = {
    "random": TransitionMatrix.random(3, rng=np.random.default_rng(4)).toarray(),
    "not reversible": np.array([[0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.7, 0.2, 0.1]]),
    "zeros": np.array([[0.9, 0.1, 0.0], [0.0, 0.8, 0.2], [0.3, 0.0, 0.7]]),
    "two states": np.array([[0.95, 0.05], [0.1, 0.9]]),
}


def by_definition(matrix, initial, horizon):
    """For each time, (times within, max-influence) of each quilt, from the probabilities of all paths."""
    paths = list(product(range(len(initial)), repeat=horizon))
    weights = [initial[path[0]] * np.prod([matrix[step] for step in pairwise(path)]) for path in paths]
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


@pytest.mark.parametrize("matrix", CHAINS.values(), ids=CHAINS)
@pytest.mark.parametrize("horizon", [1, 2, 5])
def test_budget_and_level_are_those_of_the_definition(matrix, horizon):
    chain = TransitionMatrix(matrix)
    initial = chain.stationary()
    backward = chain.reverse(initial)
    quilts = list(by_definition(matrix, initial, horizon))
    for epsilon in (0.3, 2.0, 20.0):
        sigma = max(min(within / (epsilon - e) for within, e in of_time if e < epsilon) for of_time in quilts)
        assert comparison.quilt_budget(epsilon, backward, chain, horizon) == pytest.approx(1 / sigma, rel=1e-9)
        level = max(min(epsilon * within + e for within, e in of_time) for of_time in quilts)
        assert comparison.quilt_level(epsilon, backward, chain, horizon) == pytest.approx(level, rel=1e-9)


@pytest.mark.parametrize("matrix", CHAINS.values(), ids=CHAINS)
def test_no_release_leaks_more_than_quilts_prove(matrix):
    chain = TransitionMatrix(matrix)
    backward = chain.reverse(chain.stationary())
    for budget, horizon in product((0.05, 1.0), (3, 6)):
        level = comparison.quilt_level(budget, backward, chain, horizon)
        exact = exact_leakage(np.full(horizon, budget), backward, chain).tpl.max()
        assert exact <= level
        assert comparison.quilt_level(
            comparison.quilt_budget(level, backward, chain, horizon), backward, chain, horizon
        ) == pytest.approx(level)


def test_limits():
    same = TransitionMatrix(np.tile([0.2, 0.3, 0.5], (3, 1)))
    never = TransitionMatrix(np.eye(3))
    with pytest.raises(ValueError, match="same states in the same order"):
        comparison.quilt_level(0.1, np.eye(2), np.eye(3), 7)
    assert comparison.quilt_level(0.1, same, same, 7) == pytest.approx(0.1)  # nothing is correlated
    assert comparison.quilt_level(0.1, never, never, 7) == pytest.approx(0.7)  # group privacy
    # Two rows have no column in common, so that L is the identity and the bound of TPL is that of the group; two steps
    # mix all states, which quilts see.
    chain = TransitionMatrix([[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5], [0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5]])
    adversary = comparison.Adversary(chain)
    assert adversary.bound(np.full(40, 0.1)) == pytest.approx(4.0)
    assert comparison.quilt_level(0.1, adversary.reversed, chain, 40) == pytest.approx(0.3)
    # Of a chain that mostly stays, the recursion of TPL adds less than a quilt's influence.
    staying = comparison.Adversary(TransitionMatrix([[0.9, 0.1], [0.1, 0.9]]))
    assert staying.bound(np.full(40, 0.1)) < comparison.quilt_level(0.1, *[staying.transitions] * 2, 40)
