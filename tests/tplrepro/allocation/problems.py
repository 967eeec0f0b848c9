"""Random problems that the allocations must handle, and derivatives checked by differences."""

import numpy as np
import pytest
from hypothesis import strategies as st

import tplrepro as tpl
from tests.tplrepro.leakage.matrices import KINDS, matrices


def as_functions(*sides):
    """The loss functions, made once, of matrices that are known."""
    return [None if P is None else tpl.PrivacyLossFunction(P) for P in sides]


LEVELS = st.one_of(
    st.sampled_from([1.0, 2.0]), st.floats(-6, 1.3).map(lambda exponent: 10.0**exponent)
)


@st.composite
def problems(draw, kinds=(*KINDS, "strong", "strong", None)):
    """A level alpha and the matrices of both sides; None is not known."""
    n = draw(st.integers(2, 4))
    return draw(LEVELS), draw(matrices(n, kinds)), draw(matrices(n, kinds))


def assert_derivatives(programme, budgets, rng):
    """The derivatives of a programme's leakages are central differences, in three random
    directions."""
    change = rng.normal(size=(budgets.size, 3))
    leakages, jacobian = programme.tpl(budgets, change)
    assert np.isfinite(leakages).all()
    for k, step in enumerate(1e-6 * change.T):
        above, below = (programme.tpl(budgets + sign * step, change)[0] for sign in (1, -1))
        assert jacobian[:, k] == pytest.approx((above - below) / 2e-6, rel=1e-6, abs=1e-9)
