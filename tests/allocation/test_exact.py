"""Budgets by exact leakage: within alpha, not beatable by a common factor, and no smaller than by the upper bound."""

import numpy as np
import pytest

import tplrepro as tpl
from tests.leakage import matrices

THREE = tpl.TransitionMatrix(matrices.THREE)


@pytest.mark.parametrize("alpha", [1e-6, 0.1, 1.0, 4.0])
@pytest.mark.parametrize("horizon", [1, 2, 3, 8])
def test_within_alpha_and_as_large_as_can_be(alpha, horizon):
    rng = np.random.default_rng(horizon)
    for n in (2, 3, 5):
        P = tpl.TransitionMatrix(rng.dirichlet(np.full(n, 0.5), size=n), normalize=True)
        shape = rng.uniform(0.2, 1.0, horizon)
        budgets = tpl.allocate_by_exact_leakage(alpha, P.reverse(), P, proportions=shape)
        np.testing.assert_allclose(budgets / budgets.max(), shape / shape.max(), rtol=1e-14)
        assert tpl.exact_leakage(budgets, P.reverse(), P).tpl.max() <= alpha
        assert tpl.exact_leakage(budgets * (1 + 1e-8), P.reverse(), P).tpl.max() > alpha


def test_no_smaller_than_published_ones():
    for horizon in (2, 5, 12):
        published = tpl.allocate_by_quantification(1.0, THREE.reverse(), THREE, horizon)
        scaled = tpl.allocate_by_exact_leakage(1.0, THREE.reverse(), THREE, proportions=published)
        assert (scaled >= published * (1 - 1e-12)).all()
        assert scaled[0] > 1.02 * published[0] or horizon == 2


def test_extremes():
    assert tpl.allocate_by_exact_leakage(2.0, None, None, 3) == pytest.approx([2.0] * 3, rel=1e-12)
    strongest = tpl.strongest(3)
    budgets = tpl.allocate_by_exact_leakage(2.0, strongest, strongest, 4)  # every release tells the same
    assert budgets == pytest.approx([0.5] * 4, rel=1e-12)
    assert tpl.exact_leakage(budgets, strongest, strongest).tpl.max() <= 2.0


def test_where_no_budget_is_bounded_for_ever_exact_leakage_may_be():
    """(0.2 0.8; 1 0): the recursion has no supremum at epsilon = 1, the exact leakage of 60 releases is 3.27."""
    swapped = matrices.SWAPPED
    assert tpl.PrivacyLossFunction(swapped).supremum(1.0) == np.inf
    assert tpl.exact_leakage([1.0] * 60, backward=swapped).bpl.max() == pytest.approx(3.26511, abs=1e-5)
    budgets = tpl.allocate_by_exact_leakage(3.27, swapped, None, 60)
    assert budgets.min() > 1.0 > 1.5 * tpl.allocate_by_upper_bound(3.27, swapped, None)
