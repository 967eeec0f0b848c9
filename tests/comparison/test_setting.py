import numpy as np
import pytest

from tplrepro import comparison
from tplrepro.comparison import Adversary, Setting
from tplrepro.markov import TransitionMatrix


def test_sequences_are_cut_without_overlap(setting):
    assert setting.n_users == 40
    walk = [np.array([0, 1, 2, 0, 1]), np.array([2]), np.array([1, 1])]
    cut = comparison.setting_from_sequences(walk, np.eye(3)[:, :2], horizon=2, smoothing=1.0, radius=2.0)
    assert cut.paths.tolist() == [[0, 1], [2, 0], [1, 1]]
    assert cut.counts.sum(axis=1).tolist() == [3, 3]
    assert cut.near.tolist() == [[0, 1], [0, 2], [1, 2]]


def test_a_crowd_is_drawn_without_replacement_where_it_can_be(setting):
    rng = np.random.default_rng(0)
    everybody = setting.sample(40, rng)
    np.testing.assert_array_equal(np.sort(everybody.paths, axis=0), np.sort(setting.paths, axis=0))
    assert setting.sample(100, rng).n_users == 100


def test_errors(setting):
    with pytest.raises(ValueError, match="choose a smaller horizon"):
        comparison.setting_from_sequences([np.array([0, 1])], [[0, 0], [1, 0]], 3, 1.0, 1.0)
    with pytest.raises(ValueError, match=r"cells 0\.\.5"):
        Setting(np.full((2, 3), 6), setting.adversary, setting.positions, setting.near)
    with pytest.raises(ValueError, match=r"shape \(6, 2\)"):
        Setting(setting.paths, setting.adversary, setting.positions[:5], setting.near)
    leaving = Adversary(TransitionMatrix([[0.5, 0.5], [0.0, 1.0]]))
    with pytest.raises(ValueError, match="cell 0 of stationary probability 0"):
        Setting(np.zeros((1, 1), dtype=int), leaving, np.eye(2), np.array([[0, 1]]))
