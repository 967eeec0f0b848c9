"""Sparse matrices over a background against their dense form, which has oracles of its own."""

from itertools import permutations

import numpy as np
import pytest
import scipy.sparse

import tplrepro as tpl
from tests.oracles import loss_mpmath
from tplrepro.leakage.envelope import compiled
from tplrepro.leakage.envelope.sparse import GROUP, _Search, may_exceed

ALPHAS = np.array([1e-200, *np.geomspace(1e-9, 600.0, 60), 1e5])


def random_sparse_matrix(rng, kind, n):
    density = rng.uniform(0.02, 0.6)
    counts = scipy.sparse.csr_array(
        (rng.random((n, n)) < density) * rng.integers(1.0, 6.0, (n, n)).astype(float)
    )
    if kind == "smoothed":
        return tpl.TransitionMatrix.from_counts(
            counts, float(rng.choice([1e-4, 0.01, 0.3, 1.0])), sparse=True
        )
    if kind == "any background":  # also above the stored values
        return tpl.TransitionMatrix(counts, background=rng.random(n) * 4 + 0.01, normalize=True)
    return tpl.TransitionMatrix(
        scipy.sparse.csr_array(counts + scipy.sparse.eye_array(n)), normalize=True
    )


@pytest.mark.parametrize("kind", ["smoothed", "any background", "no background"])
def test_the_loss_of_a_sparse_matrix_is_that_of_its_dense_form(kind):
    rng = np.random.default_rng(11)
    for _ in range(50):  # 150 matrices in all
        P = random_sparse_matrix(rng, kind, int(rng.integers(1, 25)))
        sparse = tpl.PrivacyLossFunction(P)
        dense = tpl.PrivacyLossFunction(tpl.TransitionMatrix(P.toarray(), normalize=True))
        assert sparse(ALPHAS) == pytest.approx(dense(ALPHAS), rel=1e-12)
        if P.n_states == 9:
            expected = np.array(loss_mpmath(dense.matrix, ALPHAS[::10]), dtype=float)
            assert sparse(ALPHAS[::10]) == pytest.approx(expected, rel=1e-12, abs=0)
        for alpha in (1e-3, 0.5, 10.0, 100.0):
            assert tpl.privacy_loss(P, alpha) == pytest.approx(dense(alpha), rel=1e-12)
        assert sparse.supremum(0.3) == pytest.approx(dense.supremum(0.3), rel=1e-9)
        w, u = sparse.witness(2.0), np.expm1(2.0)
        q, d = (P.row(state)[list(w.columns)].sum() for state in (w.state_q, w.state_d))
        assert np.log((q * u + 1) / (d * u + 1)) == pytest.approx(dense(2.0), rel=1e-12)


@pytest.mark.parametrize("seed", [4, 62, 141, 180])
def test_rows_that_differ_by_few_last_bits_have_the_loss_of_their_dense_form(seed):
    """One entry above and one below that of all rows, in random columns: ratios of rows differ by
    their rounding."""
    rng = np.random.default_rng(seed)
    n, base, most = (
        int(rng.integers(4, 40)),
        rng.uniform(1, 2) / 128,
        int(10 ** rng.uniform(0.5, 3)),
    )
    columns = 1 + rng.permuted(np.tile(np.arange(n - 1), (n, 1)), axis=1)[:, :2]
    bits = most * rng.integers(1, 3, (n, 1)) + rng.integers(0, 4, (n, 1))
    stored = scipy.sparse.lil_array((n, n))
    stored[:, 0] = 1 - (n - 1) * base
    stored[np.arange(n)[:, None], columns] = base + bits * [1, -1] * 2.0**-59
    P = tpl.TransitionMatrix(scipy.sparse.csr_array(stored), background=np.full(n, base))
    assert tpl.privacy_loss(P, 100.0) == pytest.approx(
        tpl.privacy_loss(P.toarray(), 100.0), rel=1e-9, abs=0
    )


def test_equal_rows_lose_nothing_and_disjoint_rows_everything():
    for stored, background, loss in (
        (scipy.sparse.csr_array((4, 4)), 0.25, 0.0),
        (scipy.sparse.eye_array(5), 0, 3.0),
    ):
        P = tpl.TransitionMatrix(stored, background=background)
        assert tpl.PrivacyLossFunction(P)(3.0) == tpl.privacy_loss(P, 3.0) == loss
        assert (
            tpl.PrivacyLossFunction(P).is_zero
            == (loss == 0.0)
            != tpl.PrivacyLossFunction(P).is_identity
        )


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_disjoint_supports_are_found_in_any_order_of_rows(order):
    # (1, 0, 0) and (0, 0.5, 0.5), both over a background, and a row whose point ties with theirs
    # within rounding.
    place, background = np.array(order), np.zeros(3)
    values = [1.0, 0.0, 0.0, 0.0, 1 - 2.0**-50, 2.0**-50]
    stored = scipy.sparse.csr_array((values, (place[[0, 0, 0, 1, 2, 2]], [0, 1, 2, 0, 0, 1])))
    background[place[:2]] = 0.5
    P = tpl.TransitionMatrix(stored, background=background)
    for matrix in (P, P.toarray()):
        assert tpl.PrivacyLossFunction(matrix).is_identity


# Popular pages have many successors: the pairs that the bound does not dismiss, in several groups.
@pytest.mark.parametrize(
    ("n", "power", "smoothing", "threads"),
    [(600, 1.3, 1e-4, 1), (600, 1.3, 1.0, 1), (700, 1.2, 0.01, 3)],
)
def test_long_tailed_chains_have_the_loss_of_their_dense_form(
    monkeypatch, n, power, smoothing, threads
):
    monkeypatch.setattr(compiled, "thread_count", lambda n, enough: threads)
    pages = np.split(np.random.default_rng(13).zipf(power, 60_000) % n, 3000)
    P = tpl.TransitionMatrix.from_sequences(pages, n_states=n, smoothing=smoothing, sparse=True)
    dense = tpl.PrivacyLossFunction(P.toarray())
    assert tpl.PrivacyLossFunction(P)(ALPHAS) == pytest.approx(dense(ALPHAS), rel=1e-12)
    assert tpl.privacy_loss(P, 2.0) == pytest.approx(dense(2.0), rel=1e-12)


@pytest.mark.parametrize("kind", ["smoothed", "any background", "popular"])
def test_pairs_that_may_exceed_caps_are_those_that_do(kind):
    rng, n = np.random.default_rng(8), 140
    P = random_sparse_matrix(rng, "smoothed" if kind == "popular" else kind, n)
    if kind == "popular":  # rows of all sizes
        counts = (rng.random((n, n)) < rng.uniform(0.01, 1.0, (n, 1))) * rng.integers(
            1.0, 6.0, (n, n)
        )
        P = tpl.TransitionMatrix.from_counts(
            scipy.sparse.csr_array(counts.astype(float)), 0.01, sparse=True
        )
    search = _Search(P.probabilities, P.background)
    rows, work = P.toarray()[search.order], search.work[0]
    slopes = np.array([0.0, 0.4, 5.0, 1e3, 1e6])
    for first in range(0, n, GROUP):
        stop = min(first + GROUP, n)
        excess = np.maximum(
            rows - (1.0 + slopes[:, None, None]) * rows[first:stop, None, None], 0.0
        ).sum(axis=3)
        # one pair exceeds it by a hair
        caps = np.quantile(excess, 0.5, axis=(0, 2), method="lower") * (1 - 2e-16)
        caps[-1] = 0.0
        exceeds = (excess > caps[:, None]).any(axis=1)  # (members, q)
        search.selected = rng.permutation(n)  # the backgrounds in any order
        _, bounds = search.left_over(first, slopes, caps, work)
        assert set(exceeds.any(axis=0).nonzero()[0]) <= set(bounds.candidates.tolist())
        for j in range(first, stop):
            found = bounds.candidates[may_exceed(bounds, search.rows, j, search.rows, work)]
            exact = exceeds[j - first].nonzero()[0]
            assert set(exact) <= set(found.tolist())
            if kind != "any background":
                clear = (np.abs(excess[j - first] - caps[:, None]) > 1e-10).all(axis=0)
                assert set(found[clear[found]].tolist()) <= set(exact)
    whole = tpl.PrivacyLossFunction(P)
    for alpha in (1e-3, 0.5, 3.0):
        assert tpl.privacy_loss(P, alpha) == pytest.approx(whole(alpha), rel=1e-12)
