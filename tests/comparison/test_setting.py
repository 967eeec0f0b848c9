import numpy as np

from tplrepro import comparison


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
