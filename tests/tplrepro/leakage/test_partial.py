"""Leakage at time points with and without a release, against powers of the matrix and exhaustion."""

from cProfile import Profile

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import tplrepro as tpl
from tests.oracles import brute_force_loss
from tests.tplrepro.leakage.matrices import BACKWARD, FORWARD, KINDS, matrices, random_matrix


@st.composite
def problems(draw):
    horizon, n = draw(st.integers(2, 7)), draw(st.integers(2, 4))
    times = sorted(draw(st.sets(st.integers(0, horizon - 1), min_size=1)))
    epsilons = 10.0 ** np.array(draw(st.lists(st.floats(-2, 0.7), min_size=len(times), max_size=len(times))))
    return epsilons, np.array(times), horizon, draw(matrices(n, KINDS)), draw(matrices(n, KINDS))


def by_exhaustion(epsilons, times, horizon, backward, forward):
    """TPL by the definition at each time point: the nearest release on each side, through the power of the matrix."""
    budgets = dict(zip(times.tolist(), epsilons.tolist(), strict=True))

    def one_side(times, matrix):
        leakages, last, gap = {}, None, 0
        for time in times:
            gap += 1
            through = 0.0 if last is None else brute_force_loss(np.linalg.matrix_power(matrix, gap), last)
            leakages[time] = through + budgets.get(time, 0.0)
            if time in budgets:
                last, gap = leakages[time], 0
        return np.array([leakages[time] for time in range(horizon)])

    bpl, fpl = one_side(range(horizon), backward), one_side(range(horizon)[::-1], forward)
    return bpl, fpl, bpl + fpl - np.array([budgets.get(time, 0.0) for time in range(horizon)])


@given(problems())
@settings(max_examples=40)
def test_agrees_with_exhaustion_and_never_leaks_more_than_all_releases(problem):
    epsilons, times, horizon, *sides = problem
    leakage = tpl.leakage_at_all_times(epsilons, *sides, times=times, horizon=horizon)
    assert np.flatnonzero(leakage.epsilons).tolist() == times.tolist()
    everywhere = np.full(horizon, 0.3)
    everywhere[times] = epsilons
    full = tpl.temporal_privacy_leakage(everywhere, *sides)
    for name, expected in zip(("bpl", "fpl", "tpl"), by_exhaustion(*problem), strict=True):
        assert getattr(leakage, name) == pytest.approx(expected, rel=1e-9, abs=1e-12)
        assert np.all(getattr(leakage, name) <= getattr(full, name) * (1 + 1e-9) + 1e-12)


def test_a_list_multiplies_in_the_order_of_time():
    rng = np.random.default_rng(5)
    forward = tpl.TransitionMatrix(random_matrix(rng, "dense", 3))
    start = [0.5, 0.3, 0.2]
    backward = [forward.reverse(start @ np.linalg.matrix_power(forward.probabilities, k)) for k in range(3)]
    # The reverse of three steps at once is the product of the three reversed steps, the last one first.
    three_steps = tpl.TransitionMatrix(np.linalg.matrix_power(forward.probabilities, 3), normalize=True)
    expected = tpl.PrivacyLossFunction(three_steps.reverse(start))(0.7)
    leakage = tpl.leakage_at_all_times([0.7, 0.1], backward, None, times=[0, 3], horizon=4)
    assert leakage.bpl[3] - 0.1 == pytest.approx(expected, rel=1e-10)
    matrices = [random_matrix(rng, "dense", 3) for _ in range(3)]
    leakage = tpl.leakage_at_all_times([0.1, 0.7], None, matrices, times=[0, 3], horizon=4)
    product = matrices[0] @ matrices[1] @ matrices[2]
    assert leakage.fpl[0] - 0.1 == pytest.approx(brute_force_loss(product, 0.7), rel=1e-10)
    leakage = tpl.leakage_at_all_times([0.7, 0.1], [BACKWARD, None, BACKWARD], None, times=[0, 3], horizon=4)
    assert leakage.bpl[1] > 0  # a step that is not known breaks the chain
    assert leakage.bpl[2:].tolist() == [0, 0.1]


def test_sparse_matrices(monkeypatch):
    steps = scipy.sparse.diags_array([np.full(39, 0.5), np.full(39, 0.4)], offsets=[1, -1])
    sparse = tpl.TransitionMatrix(
        steps.tocsr(), background=(1 - steps.sum(axis=1)) / (40 - np.diff(steps.tocsr().indptr))
    )
    dense = tpl.TransitionMatrix(sparse.toarray())
    expected = tpl.leakage_at_all_times([0.4, 0.6], dense, dense, times=[1, 4], horizon=6).tpl
    found = tpl.leakage_at_all_times([0.4, 0.6], sparse, sparse, times=[1, 4], horizon=6).tpl
    assert found == pytest.approx(expected, rel=1e-12)
    monkeypatch.setattr("tplrepro.leakage.partial.MAX_STATES", 3)
    with pytest.raises(ValueError, match="a sparse one may have 3 states, found 40; release every time point"):
        tpl.leakage_at_all_times([0.4, 0.6], sparse, None, times=[0, 2], horizon=3)
    with pytest.raises(ValueError, match="release every time point"):
        tpl.TemporalAccountant(sparse, None).skip()
    assert tpl.leakage_at_all_times([0.4, 0.6], sparse, None, times=[0, 1], horizon=2).tpl.size == 2


def test_unsigned_times():
    times = np.array([0, 3], np.uint8)
    result = tpl.leakage_at_all_times(0.5, FORWARD, FORWARD, times=times, horizon=5)
    assert (result.epsilons > 0).tolist() == [True, False, False, True, False]
    with pytest.raises(ValueError, match="increasing time points in 0..4"):
        tpl.allocate_optimally(1.0, FORWARD, FORWARD, 5, times=times[::-1])


@pytest.mark.parametrize("kind", [tpl.PrivacyLossFunction, tpl.PriorFreeLoss])
def test_the_cost_of_a_pause_is_in_proportion_to_its_length(kind):
    calls = []
    for pause in (200, 400):
        account = tpl.TemporalAccountant(*[kind(FORWARD)] * 2).compose(0.1).skip(pause).compose(0.1)
        with Profile() as profile:
            assert account.leakage.tpl.size == pause + 2
        calls.append(sum(entry.callcount for entry in profile.getstats()))
    assert calls[1] < 2.2 * calls[0]
