"""The derivative of L at a vertex against high precision."""

import mpmath
import numpy as np
import pytest

import tplrepro as tpl
from tests.leakage.matrices import KINDS, random_matrix
from tests.leakage.oracles import largest_loss
from tplrepro.leakage.vertex import vertex_loss, vertex_slope

VERTICES = [(0.1, 0.7, 0.2), (0.0, 0.8, 0.2), (1e-9, 0.5, 0.5 - 1e-9), (0.0, 1e-5, 1 - 1e-5)]
VERTICES += [(1e-290, 0.5, 0.5), (1e-310, 0.5, 0.5)]


@pytest.mark.parametrize("vertex", VERTICES)
@pytest.mark.parametrize("alpha", [1e-12, 1e-3, 1.0, 10.0, 50.0, 699.0, 701.0, 750.0])
def test_slope_is_the_derivative_of_the_loss(vertex, alpha):
    with mpmath.workdps(500):
        d, gap = mpmath.mpf(vertex[0]), mpmath.mpf(vertex[1])
        at = mpmath.mpf(alpha)
        step = mpmath.mpf(10) ** -100
        there, here = (largest_loss([(gap, d)], alpha) for alpha in (at + step, at - step))
        expected = float((there - here) / (2 * step))
    assert vertex_slope(*vertex, alpha) == pytest.approx(expected, rel=1e-12, abs=1e-300)


@pytest.mark.parametrize("kind", KINDS)
def test_slope_of_the_loss_function_agrees_with_differences(kind):
    rng = np.random.default_rng(4)
    L = tpl.PrivacyLossFunction(random_matrix(rng, kind, 4))
    for alpha in 10.0 ** rng.uniform(-2, 1.5, 20):
        step = 1e-5 * alpha
        if np.abs(L.breakpoints - alpha).min(initial=np.inf) > step:
            difference = (L.at(alpha + step) - L.at(alpha - step)) / (2 * step)
            assert L.slope_at(alpha) == pytest.approx(difference, rel=1e-6, abs=1e-9)
            assert 0 <= L.slope_at(alpha) <= 1


def test_the_loss_stays_below_its_argument_where_the_slope_rounds_to_one():
    assert vertex_slope(0.3, 0.0, 0.7, 1.0) == 0.0  # equal rows
    assert vertex_loss(0.0, 0.8, 0.2, 50.0) < 50.0
    assert vertex_slope(0.0, 0.8, 0.2, 50.0) == 1.0
