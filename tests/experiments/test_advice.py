"""The simulated truth behind the advice: its leakage, and that recommended plans keep their
promise."""

import numpy as np
import pytest

import tplrepro as tpl
from experiments import advice


@pytest.mark.parametrize("kind", advice.KINDS)
def test_simulated_plans_keep_alpha_and_cheaper_ones_are_cheaper(kind):
    """Doubted reports recommend α/T, and a cheaper plan is cheaper."""
    rng = np.random.default_rng(8)
    recordings = advice.RECORDINGS[:: 3 if kind == "many states" else 1]  # which take seconds each
    outcomes = [advice.simulated(kind, recording, rng=rng) for recording in recordings]
    assert not any(one.is_broken for one in outcomes)
    assert all(one.true_tpl <= one.alpha for one in outcomes if one.doubted)
    assert all(one.composed == (one.saved == 1.0) and one.saved >= 1.0 for one in outcomes)
    assert {one.verdict for one in outcomes} <= set(advice.VERDICTS[:4])


def test_each_recording_is_read_as_it_was_meant():
    """Shuffled rows and times of another name give the walks; of three times a step the third one
    counts."""
    rng = np.random.default_rng(0)
    walks = [rng.integers(0, 3, 30).tolist() for _ in range(4)]
    for recording in advice.RECORDINGS[:3]:
        read = advice._read(walks, recording, rng)
        found = {
            user: read.labels[walk].tolist() for user, walk in zip(read.users, read, strict=True)
        }
        assert found == {f"user {k}": walk for k, walk in enumerate(walks)}
    # which leaves out no row
    dropped = advice._read(walks, advice.RECORDINGS[3], np.random.default_rng(4))
    assert [dropped.labels[walk].tolist() for walk in dropped] == [
        walk[::3] + [walk[-1]] for walk in walks
    ]


def test_true_leakage_is_that_of_the_matrix_and_halved_by_order_2():
    """Of one chain by its matrix and its reversal; a drift between equal matrices is that chain;
    order 2 halves it."""
    rows = np.array([[0.8, 0.2], [0.2, 0.8]])

    def true_tpl(kind, horizon, parts=1):
        truth = advice.Truth(kind, [rows, rows], np.array([0]), parts)
        return truth.tpl(np.full(horizon, 0.3))

    expected = tpl.temporal_privacy_leakage(np.full(6, 0.3), rows, rows).tpl.max()
    assert true_tpl("one chain", 6) == pytest.approx(expected)
    assert true_tpl("drift", 6) == pytest.approx(expected)
    assert true_tpl("order 2", 12) == pytest.approx(expected)
    three_steps = rows @ rows @ rows
    expected = tpl.temporal_privacy_leakage(np.full(6, 0.3), three_steps, three_steps).tpl.max()
    for kind in ("one chain", "drift"):
        assert true_tpl(kind, 6, parts=3) == pytest.approx(expected)
