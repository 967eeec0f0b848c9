"""The published rule understates; the package's sparse loss does not."""

import numpy as np
import pytest
import scipy.sparse

import tplrepro as tpl
from tplrepro.eventlog import PublishedLoss

EXAMPLE = [[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.5, 0.5, 0.0]]


def random_sparse_rows(rng, n, fewest=1):
    """Rows with `fewest` to 6 entries, as the rows of transition systems have."""
    stored = rng.integers(fewest, min(6, n) + 1, (n, 1))
    rows = (rng.random((n, n)) + 0.01) * (rng.random((n, n)).argsort(axis=1) < stored)
    return rows / rows.sum(axis=1, keepdims=True)


def as_printed(rows, alpha):
    """The published elimination, pair by pair: coordinates with d_j = 0 left out unless q_j = 1."""
    best, u = 0.0, np.expm1(alpha)
    for a, q in enumerate(rows):
        for b, d in enumerate(rows):
            if a == b:
                continue
            if ((q == 1) & (d == 0)).any():
                return alpha
            kept = (q > d) & (d > 0)
            while True:
                f = (q[kept].sum() * u + 1) / (d[kept].sum() * u + 1)
                drop = kept & (q <= f * d)
                if not drop.any():
                    break
                kept &= ~drop
            best = max(best, np.log(f))
    return best


def test_the_published_rule_finds_no_leakage_in_the_example_that_leaks():
    exact = tpl.privacy_loss(tpl.TransitionMatrix(scipy.sparse.csr_array(EXAMPLE)), 1.0)
    assert exact == pytest.approx(np.log(0.5 * (np.e - 1) + 1), rel=1e-14)
    assert exact == pytest.approx(tpl.linear_program.loss(EXAMPLE, 1.0, solver="HiGHS"), abs=1e-7)
    assert PublishedLoss(EXAMPLE).at(1.0) == 0.0


def test_the_rule_is_the_published_elimination():
    rng = np.random.default_rng(7)
    for _ in range(60):
        rows = random_sparse_rows(rng, int(rng.integers(3, 16)))
        for alpha in (0.05, 1.0, 8.0):
            found = PublishedLoss(scipy.sparse.csr_array(rows)).at(alpha)
            assert found == pytest.approx(as_printed(rows, alpha), rel=1e-12, abs=1e-14)
    assert PublishedLoss(np.eye(3)).at(2.0) == 2.0  # some q_j = 1 where d_j = 0
    assert PublishedLoss(rows).at(0.0) == 0.0
    assert PublishedLoss([[0.5, 0.5], [0.4, 0.6]]).at(800.0) == pytest.approx(
        np.log(5 / 4), rel=1e-12
    )


def test_the_published_rule_understates_on_every_sparse_matrix():
    """Rows of 2 to 6 entries among 12 columns; never above the exact value, always below it
    here."""
    rng, ratios = np.random.default_rng(8), []
    for _ in range(50):
        rows = random_sparse_rows(rng, 12, fewest=2)
        ratios.append([PublishedLoss(rows).at(a) / tpl.privacy_loss(rows, a) for a in (1.0, 10.0)])
    assert np.max(ratios) < 1.0
    at_1, at_10 = np.median(ratios, axis=0)
    assert at_10 < 0.5 < at_1 < 0.95


def test_the_published_rule_is_exact_for_matrices_without_zeros():
    smooth = tpl.smoothed(tpl.TransitionMatrix(scipy.sparse.csr_array(EXAMPLE)), 0.1)
    for rows in (tpl.TransitionMatrix.random(8, rng=np.random.default_rng(1)), smooth):
        assert PublishedLoss(rows).at(2.0) == pytest.approx(tpl.privacy_loss(rows, 2.0), rel=1e-12)
