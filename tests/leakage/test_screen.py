"""The screen: its sums bound the excess from above, and what it settles is inside the hull."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tplrepro as tpl
from tplrepro.leakage.envelope import dense, kernels
from tplrepro.leakage.envelope.dense import SAMPLED_PAIRS, choose_screen

SLOPES = (0.0, 1e-9, 0.1, 0.7, 3.0, 50.0, 1e5)


def excesses(rows, j, mu):
    """In extended precision, whose rounding is far below that of the bounds."""
    q, d = rows.astype(np.longdouble), rows[j].astype(np.longdouble)
    return np.maximum(q - (1 + np.longdouble(mu)) * d, 0).sum(axis=1)


def bounds_on_excesses(rows, j, mu, precision):
    n = rows.shape[0]
    tile = np.ascontiguousarray(rows.T, dtype=precision)
    bounds = np.empty(n, dtype=precision)
    kernels.bound_excesses(tile, dense.read_only(rows), j, mu, rows.max(axis=0), kernels.room_for(tile), bounds)
    return bounds


@pytest.mark.parametrize("precision", [np.float32, np.float64])
@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(2, 150),
    shape=st.sampled_from([0.03, 1.0, 30.0, 1e12]),  # of the Dirichlet distribution: nearly empty rows to nearly equal
    mu=st.sampled_from(SLOPES),
)
def test_bounds_are_above_the_excess_but_not_by_much(precision, seed, n, shape, mu):
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.full(n, shape), size=n)
    rows /= rows.sum(axis=1, keepdims=True)
    exact = excesses(rows, 0, mu)
    bounds = bounds_on_excesses(rows, 0, mu, precision)
    assert (bounds >= exact).all()
    room = 2 * kernels.rounding_error(n, rows.max(axis=0).sum(), np.finfo(precision).eps / 2)
    assert (bounds <= exact + 1.01 * room).all()


def test_bounds_need_their_allowance_for_rounding():
    # The same sums without the allowance fall below the excess for some rows, so the test above can fail.
    rows = np.random.default_rng(0).dirichlet(np.ones(100), size=100)
    bounds = bounds_on_excesses(rows, 0, 0.1, np.float32)
    without = bounds - np.float32(kernels.rounding_error(100, 1.1, 2.0**-24))
    assert (without < excesses(rows, 0, 0.1)).any()


@pytest.mark.parametrize("smoothing", [None, 1e-2, 1e3, 1e8])
def test_the_polygon_of_caps_is_under_the_hull(smoothing):
    P = tpl.random_matrix(150, seed=4)
    rows = dense.read_only((P if smoothing is None else tpl.smoothed(P, smoothing)).probabilities)
    edges = kernels.edges(dense.joint_hull(rows)[0])
    slopes, support, _ = edges
    far, largest = kernels.last_slopes(rows)
    chosen, precision = choose_screen(rows, far, edges, largest, kernels.spread_pairs(150, SAMPLED_PAIRS))
    assert 2 <= chosen.slope.size <= 16
    assert chosen.slope[0] == 0.0
    assert (chosen.slope == slopes[chosen.edge]).all()
    inside = slopes <= chosen.slope[-1]
    assert (np.interp(slopes[inside], chosen.slope, chosen.cap) <= support[inside] * (1 + 1e-12)).all()
    # Small differences need double precision.
    assert precision is (np.float64 if smoothing in (1e3, 1e8) else np.float32)


def test_the_number_of_threads_changes_nothing(monkeypatch):
    # Rows with many zeros tie; which of them is the witness must not depend on the machine.
    rows = tpl.random_matrix(300, seed=6, zeros=0.9).probabilities
    hulls = []
    for threads in (1, 2, 5):
        monkeypatch.setattr(kernels, "thread_count", lambda n, enough, threads=threads: threads)
        hulls.append(dense.joint_hull(rows))
    for hull in hulls[1:]:
        for field, first in zip(hull, hulls[0], strict=True):
            np.testing.assert_array_equal(field, first)
