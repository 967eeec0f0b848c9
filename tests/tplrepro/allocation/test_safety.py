"""No allocation exceeds alpha: the leakage of random problems by the recursion of [1] with 50
digits.

Budgets by exact leakage are checked over all sequences of outputs; they are as large as can be
besides.
"""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import tplrepro as tpl
from tests.oracles import (
    exact_budgets,
    exact_loss,
    exact_tpl,
    exhaustive_leakage,
    extended_loss,
    recursion,
)
from tests.tplrepro.allocation.problems import as_functions
from tests.tplrepro.leakage.matrices import KINDS, SWAPPED, THREE, random_matrix

ALLOCATIONS = {
    "upper bound": lambda alpha, *sides, T: np.full(T, tpl.allocate_by_upper_bound(alpha, *sides)),
    "quantification": lambda alpha, *sides, T: tpl.allocate_by_quantification(alpha, *sides, T),
    "optimal": lambda alpha, *sides, T: tpl.allocate_optimally(alpha, *sides, T),
    "exact": lambda alpha, *sides, T: tpl.allocate_by_exact_leakage(alpha, *sides, T),
}
FEW = {"upper bound": 60, "quantification": 60, "optimal": 40, "exact": 30}
MANY, CHUNK = 20_000, 5_000  # problems of each allocation in the long run, about ten minutes in all


def problem(allocation, k):
    """A level, a horizon and the matrices of both sides, None where one is not known."""
    rng = np.random.default_rng([list(ALLOCATIONS).index(allocation), k])
    n, exponent = int(rng.integers(2, 5)), rng.uniform(-6, 1.3)
    horizon = {49: 100, 4999: 2000}.get(k if k == 4999 else k % 50, int(rng.integers(1, 9)))
    alpha = 10.0**exponent if k % 10 else float(rng.choice([1e-300, 1e-12, 690.0, 2000.0]))
    # all outputs of all times are listed, and the budgets' sum is limited
    if allocation == "exact":
        n, horizon, alpha = min(n, 3), 1 + horizon % 3, 10.0**exponent
    if allocation == "upper bound":  # the leakage comes close to that of releases without end
        horizon += 30
    kinds = rng.choice([*KINDS, "strong", "strong", "tiny", "unknown"], 2)
    return (
        alpha,
        horizon,
        [None if kind == "unknown" else random_matrix(rng, kind, n) for kind in kinds],
    )


def largest_exact_leakage(budgets, sides):
    """Over all outputs of the worst mechanism, with the 64 bits of extended precision."""
    n = max(2 if P is None else len(P) for P in sides)
    outputs = np.array(list(product([0, 1], repeat=n)), dtype=np.longdouble)
    extended = [
        None if P is None else np.divide(P, P.sum(axis=1, keepdims=True, dtype=np.longdouble))
        for P in sides
    ]
    each = [[P] * (budgets.size - 1) for P in extended]
    return exhaustive_leakage([np.exp(outputs * epsilon) for epsilon in budgets], *each)[2].max()


def largest_tpl(budgets, sides, alpha):
    """With 50 digits where the 64 bits of extended precision cannot tell on which side of alpha it
    is.

    For n <= 4 a loss from below `alpha` errs by less than 2e-18 alpha, 36 units of the last bit: 16
    for its gap, a sum of up to 3 differences, and less for its other roundings. Losses pass an
    error on without enlarging it.
    """
    largest = max(recursion(budgets.astype(np.longdouble), *map(extended_loss, sides))[2])
    clear = largest + (budgets.size - 1) * 2e-18 * alpha <= alpha
    return largest if clear else max(exact_tpl(budgets, *map(exact_loss, sides)))


def assert_safe(allocation, alpha, horizon, sides):
    try:
        budgets = ALLOCATIONS[allocation](alpha, *as_functions(*sides), T=horizon)
    # said only where no budget, or none above the rounding errors, lasts for ever
    except tpl.NoFiniteSupremumError:
        disjoint = any(P is not None and not ((P > 0) @ (P > 0).T).all() for P in sides)
        assert (
            disjoint
            or exact_budgets(alpha, *map(extended_loss, sides), np.longdouble, 18)[2]
            < 1e-13 * alpha
        )
        return
    assert budgets.shape == (horizon,)
    assert budgets.min() > 0
    if allocation == "exact":
        # of logarithms of about 0
        largest = largest_exact_leakage(budgets, sides) - 8 * np.finfo(np.longdouble).eps
    else:
        largest = largest_tpl(budgets, sides, alpha)
    assert largest <= alpha
    assert largest > alpha * (1 - 1e-9) or allocation == "upper bound"  # for releases without end


def assert_all_safe(allocation, numbers):
    for k in numbers:
        assert_safe(allocation, *problem(allocation, k))


@pytest.mark.parametrize("allocation", ALLOCATIONS)
def test_no_budgets_of_some_random_problems_exceed_alpha(allocation):
    assert_all_safe(allocation, range(FEW[allocation]))


@pytest.mark.parametrize("k", [239, 461, 866, 1971])
def test_a_chain_that_is_the_identity_to_rounding_keeps_alpha_for_more_than_three_times(k):
    """The budgets of three times, of which each has a third of alpha, are no plan for four."""
    assert_safe("quantification", *problem("quantification", k))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, MANY, CHUNK))
@pytest.mark.parametrize("allocation", ALLOCATIONS)
def test_no_budgets_of_very_many_random_problems_exceed_alpha(allocation, first):
    assert_all_safe(allocation, range(first, first + CHUNK))


@pytest.mark.parametrize("alpha", [1.0, 1.6])
def test_the_margin_grows_with_the_number_of_releases(alpha):
    """Under perfect correlation the exact TPL is the sum of the budgets; their float sum is too
    small."""
    budgets = tpl.allocate_by_quantification(alpha, np.eye(2), np.eye(2), 4000)
    assert sum(map(Fraction, budgets.tolist())) <= Fraction(alpha)


@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e3])
def test_exact_leakage_is_allocated_up_to_700_nats_in_all(scale):
    """T times alpha, or as much as proportions add up to over the largest; whatever their unit."""
    budgets = tpl.allocate_by_exact_leakage(140.0, None, THREE, proportions=[scale] * 5)
    assert tpl.exact_leakage(budgets, None, THREE).tpl.max() == pytest.approx(140.0, rel=1e-9)
    one = tpl.allocate_by_exact_leakage(400.0, None, THREE, proportions=[scale, scale / 2])
    assert one[0] == pytest.approx(2.0 * one[1], rel=1e-12)


@pytest.mark.parametrize("alpha", [1e-6, 0.1, 1.0, 4.0])
@pytest.mark.parametrize("horizon", [1, 2, 3, 8])
def test_budgets_by_exact_leakage_are_in_proportion_and_as_large_as_can_be(alpha, horizon):
    rng = np.random.default_rng(horizon)
    for n in (2, 3, 5):
        P = tpl.TransitionMatrix(rng.dirichlet(np.full(n, 0.5), size=n), normalize=True)
        shape = rng.uniform(0.2, 1.0, horizon)
        budgets = tpl.allocate_by_exact_leakage(alpha, P.reverse(), P, proportions=shape)
        np.testing.assert_allclose(budgets / budgets.max(), shape / shape.max(), rtol=1e-14)
        assert tpl.exact_leakage(budgets, P.reverse(), P).tpl.max() <= alpha
        assert tpl.exact_leakage(budgets * (1 + 1e-8), P.reverse(), P).tpl.max() > alpha


def test_budgets_by_exact_leakage_are_no_smaller_and_exist_where_published_ones_do_not():
    published = tpl.allocate_by_quantification(1.0, THREE.T, THREE, 5)
    scaled = tpl.allocate_by_exact_leakage(1.0, THREE.T, THREE, proportions=published)
    assert scaled == pytest.approx(published * scaled[0] / published[0], rel=1e-12)
    assert scaled[0] > 1.02 * published[0]
    # (0.2 0.8; 1 0): the recursion has no supremum at epsilon = 1, the exact leakage of 60 releases
    # is 3.27.
    assert tpl.PrivacyLossFunction(SWAPPED).supremum(1.0) == np.inf
    budgets = tpl.allocate_by_exact_leakage(3.27, SWAPPED, None, 60)
    assert budgets.min() > 1.0 > 1.5 * tpl.allocate_by_upper_bound(3.27, SWAPPED, None)
