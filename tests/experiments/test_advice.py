"""The simulated truth behind the advice: its leakage, and that recommended plans keep their promise."""

import numpy as np
import pytest

import tplrepro as tpl
from experiments import advice


@pytest.mark.parametrize("kind", advice.KINDS)
def test_plans_keep_their_promise(kind):
    """Doubted reports recommend α/T, and a cheaper plan is cheaper."""
    rng = np.random.default_rng(8)
    outcomes = [advice.simulated(kind, rng=rng) for _ in range(2)]
    assert not any(one.is_broken for one in outcomes)
    assert all(one.true_tpl <= one.alpha for one in outcomes if one.doubted)
    assert all(one.composed == (one.saved == 1.0) and one.saved >= 1.0 for one in outcomes)
    assert {one.verdict for one in outcomes} <= set(advice.VERDICTS[:4])


def test_true_leakage():
    """Of one chain by its matrix and its reversal; a drift between equal matrices is that chain; order 2 halves it."""
    rows = np.array([[0.8, 0.2], [0.2, 0.8]])
    expected = tpl.temporal_privacy_leakage(np.full(6, 0.3), rows, rows).tpl.max()
    assert advice._true_tpl("one chain", [rows], np.full(6, 0.3)) == pytest.approx(expected)
    assert advice._true_tpl("drift", [rows, rows], np.full(6, 0.3)) == pytest.approx(expected)
    assert advice._true_tpl("order 2", [rows], np.full(12, 0.3)) == pytest.approx(expected)
