import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sip.oracles import leakage_by_loops
from tests.sip.strategies import beliefs
from tplrepro import sip


@given(beliefs(), st.floats(0.01, 5.0))
def test_randomised_response(belief, epsilon):
    response = sip.RandomizedResponse(epsilon).response(belief)
    rows = response.matrix()
    n, odds = belief.size, np.exp(epsilon)
    assert np.diagonal(rows) == pytest.approx(odds / (odds + n - 1), rel=1e-12)
    assert sip.local_differential_privacy(rows) == pytest.approx(epsilon, rel=1e-9)
    assert response.leakage == pytest.approx(leakage_by_loops(rows, belief), abs=1e-9)
    assert response.leakage <= epsilon + 1e-12
    assert belief @ rows == pytest.approx(response.marginal, rel=1e-12)
    assert rows[:, 1] == pytest.approx(response.column(1), rel=1e-12)
    assert np.diagonal(rows) == pytest.approx(response.kept(), rel=1e-12)


@given(beliefs(smallest=3), st.floats(0.01, 5.0), st.data())
def test_the_temporal_variant(belief, epsilon, data):
    n = belief.size
    support = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n).filter(any)))
    mechanism = sip.TemporalRandomizedResponse(epsilon, np.tile(support / support.sum(), (n, 1)))
    response = mechanism.response(belief, previous=0)
    rows = response.matrix()
    assert rows.sum(axis=1) == pytest.approx(1.0)
    assert not rows[:, ~support].any()
    assert response.leakage == pytest.approx(leakage_by_loops(rows, belief), abs=1e-9)
    assert belief @ rows == pytest.approx(response.marginal, abs=1e-12)
    inside = np.flatnonzero(support)
    odds = np.exp(epsilon)
    assert rows[inside, inside] == pytest.approx(odds / (odds + inside.size - 1))
    assert mechanism.response(belief).labels.size == n


def test_tops():
    rng = np.random.default_rng(0)
    sequence = rng.integers(0, 8, 400)
    exact = sip.release_tops(sequence, 8, 60.0, rng=rng, smoothing=1.0, quantile=1.0, warm_up=50)
    assert (exact == sequence).mean() > 0.99
    errors = [np.abs(sip.release_tops(sequence, 8, e, rng=rng) - sequence).mean() for e in (0.05, 20.0)]
    assert errors[1] < errors[0]
    cut = sip.release_tops(np.r_[np.zeros(5, int), np.full(50, 7)], 8, 200.0, rng=rng, smoothing=1.0)
    assert cut[5:].max() <= 1  # everything is cut off at a threshold taken from zeros
    assert sip.release_tops([0], 1, 1.0, rng=rng).tolist() == [0]


@pytest.mark.parametrize(
    ("sequence", "epsilon", "smoothing", "message"),
    [
        ([], 1.0, 0.5, "a sequence must hold at least one symbol"),
        ([0, 4], 1.0, 0.5, "symbols must be 0..3, found 0 to 4"),
        ([0], 1.0, 0.0, "smoothing must be in"),
        ([0], -1.0, 0.5, "epsilon must be a finite level"),
    ],
)
def test_tops_bad_input(sequence, epsilon, smoothing, message):
    with pytest.raises(ValueError, match=message):
        sip.release_tops(sequence, 4, epsilon, rng=np.random.default_rng(0), smoothing=smoothing)
