"""Generated matrices against Eq. (28) of TKDE 2019."""

import numpy as np
import pytest

import tplrepro as tpl


def test_strongest_is_the_identity_or_a_permutation():
    assert tpl.strongest(4).probabilities.tolist() == np.eye(4).tolist()
    P = tpl.strongest(20, seed=1).probabilities
    assert sorted(P.argmax(axis=1)) == list(range(20))
    assert set(P.ravel()) == {0.0, 1.0}
    assert (tpl.strongest(20, seed=1).probabilities == P).all()


@pytest.mark.parametrize("s", [0.0, 0.005, 1.0, 50.0])
def test_smoothed_is_equation_28_as_printed(s):
    P = tpl.random_matrix(6, seed=2, zeros=0.5).probabilities
    expected = [[(p + s) / sum(x + s for x in row) for p in row] for row in P]
    assert tpl.smoothed(P, s).probabilities == pytest.approx(np.array(expected), rel=1e-14)


def test_adding_s_twice_is_another_smoothing():
    # The generator published with TKDE 2019 does this: its 0.05 is 0.10 of Eq. (28).
    n, s = 10, 0.05
    twice = (np.eye(n) + s + s) / (np.eye(n) + s + s).sum(axis=1, keepdims=True)
    assert twice == pytest.approx(tpl.smoothed(tpl.strongest(n), 2 * s).probabilities)


def test_smoothing_a_sparse_matrix_keeps_it_sparse():
    import scipy.sparse

    P = tpl.TransitionMatrix(scipy.sparse.csr_array(tpl.strongest(9, seed=3).probabilities))
    Q = tpl.smoothed(P, 0.2)
    assert Q.is_sparse
    assert Q.toarray() == pytest.approx(tpl.smoothed(P.toarray(), 0.2).probabilities)


def test_random_matrix_is_seeded_and_clears_entries():
    P = tpl.random_matrix(40, seed=5, zeros=0.3).probabilities
    assert 0.2 < (P == 0).mean() < 0.4
    assert (P == tpl.random_matrix(40, seed=5, zeros=0.3).probabilities).all()
