"""The loss function of all matrices that counts leave: every set enumerated, coverage, and rows
without steps."""

from datetime import timedelta
from itertools import permutations, product

import mpmath
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.sparse import csr_array

import tplfrontier as tf
import tplrepro as tpl
from tplfrontier.chains import confidence as estimated


def upper_end(share, radius):
    """The largest p with KL(share || p) <= radius, by bisection."""

    def excess(p):
        terms = [q * np.log(q / r) for q, r in ((share, p), (1 - share, 1 - p)) if q > 0]
        return sum(terms) - radius

    most = 1 - 1e-16
    return (
        1.0
        if share >= 1 or radius == np.inf or excess(most) < 0
        else brentq(excess, max(share, 1e-300), most, xtol=1e-15)
    )


def enumerated_loss(counts, alpha, confidence, noise=0.0):
    """The largest loss over all pairs of rows and sets of columns, each probability at its worse
    end."""
    totals = counts.sum(axis=1)
    least_totals = np.maximum(totals - noise, 0.0)
    radius = estimated.divergence_radii(least_totals, len(counts), confidence)
    shift = noise / totals
    u, largest = np.expm1(alpha), 0.0
    for chosen in product([False, True], repeat=len(counts)):
        if 0 < sum(chosen) < len(counts):
            shares = counts[:, list(chosen)].sum(axis=1) / totals
            ends = list(zip(shares.tolist(), shift.tolist(), radius.tolist(), strict=True))
            high = [upper_end(min(share + by, 1.0), r) for share, by, r in ends]
            low = [1 - upper_end(min(1 - share + by, 1.0), r) for share, by, r in ends]
            pairs = permutations(range(len(counts)), 2)
            largest = max(
                [largest, *(np.log((high[i] * u + 1) / (low[j] * u + 1)) for i, j in pairs)]
            )
    return largest


@given(st.floats(0, 1), st.floats(-11, 0))
def test_ends_of_intervals_are_rounded_outwards(share, size):
    end = float(estimated.upper_end(np.array(share), 10.0**size))
    with mpmath.workdps(40):
        parts = ((mpmath.mpf(share), end), (1 - mpmath.mpf(share), 1 - mpmath.mpf(end)))
        assert end == 1.0 or 10.0**size <= sum(q * mpmath.log(q / r) for q, r in parts if q > 0)


def random_counts(rng, n, steps):
    return np.array([rng.multinomial(steps, row) for row in rng.dirichlet(np.ones(n), n)])


def test_loss_from_counts_bounds_the_loss_of_every_set_closely():
    rng = np.random.default_rng(2)
    ratios = []
    for _ in range(60):
        counts = random_counts(rng, int(rng.integers(2, 6)), int(10 ** rng.uniform(1, 5)))
        alpha, confidence = float(10 ** rng.uniform(-1, 1)), float(rng.choice([0.5, 0.95, 0.999]))
        loss = tf.loss_from_counts(counts, confidence)(alpha)
        ratios.append(loss / enumerated_loss(counts, alpha, confidence))
    assert min(ratios) >= 1
    assert max(ratios) < 1.2
    assert np.median(ratios) < 1.005


def test_shares_of_clipped_noisy_counts_are_shifted_by_no_more_than_proved():
    """All rows of three counts up to 3, all noise up to 2, and all sets of columns."""
    noise = np.array([*product(range(-2, 3), repeat=3)])
    of_sign = np.maximum(np.maximum(noise, 0).sum(axis=1), np.maximum(-noise, 0).sum(axis=1))
    attained = 0
    for row in product(range(4), repeat=3):
        clipped = np.maximum(row + noise, 0)
        totals = clipped.sum(axis=1)
        assert (sum(row) >= totals - of_sign).all()
        known = totals > 0
        for chosen in product([False, True], repeat=3):
            if sum(row) == 0:
                continue
            share = np.dot(row, chosen) / sum(row)
            most = (clipped[known] @ chosen + of_sign[known]) / totals[known]
            assert (share <= np.minimum(most, 1) + 1e-15).all()
            attained += np.isclose(share, most).sum()
    assert attained > 1000


def test_loss_from_noisy_counts_bounds_the_loss_of_every_set_closely():
    rng = np.random.default_rng(12)
    ratios = []
    for _ in range(60):
        counts = random_counts(rng, int(rng.integers(2, 6)), int(10 ** rng.uniform(1, 5)))
        noise = float(10 ** rng.uniform(-4, -0.5) * counts.sum(axis=1).max())
        alpha, confidence = float(10 ** rng.uniform(-1, 1)), float(rng.choice([0.5, 0.95, 0.999]))
        loss = tf.loss_from_counts(counts, confidence, noise=noise)(alpha)
        assert loss <= alpha
        ratios.append(loss / enumerated_loss(counts, alpha, confidence, noise))
    assert min(ratios) >= 1 - 1e-15
    assert max(ratios) < 1.2
    assert np.median(ratios) < 1.005


def test_loss_from_noisy_counts_is_above_that_of_the_exact_ones():
    rng = np.random.default_rng(13)
    for _ in range(100):
        n = int(rng.integers(2, 6))
        counts = random_counts(rng, n, int(10 ** rng.uniform(1, 4)))
        scale = 10 ** rng.uniform(0, 2)
        added = np.round(rng.laplace(0, scale, (n, n))).astype(int)
        noise = max(np.maximum(part, 0).sum(axis=1).max() for part in (added, -added))
        loss = tf.loss_from_counts(np.maximum(counts + added, 0), noise=noise)
        exact = tf.loss_from_counts(counts)
        for alpha in (0.01, 0.5, 1.0, 5.0):
            assert loss(alpha) >= exact(alpha) * (1 - 1e-12)


def test_noise_of_nothing_changes_nothing_and_noise_of_all_leaves_nothing():
    counts = np.array([[80, 20], [10, 90]])
    exact = tf.loss_from_counts(counts)
    assert tf.loss_from_counts(counts, noise=0).hull.tolist() == exact.hull.tolist()
    assert tf.loss_from_counts(counts, noise=1e-9)(1.0) == pytest.approx(exact(1.0), rel=1e-6)
    assert tf.loss_from_counts(counts, noise=100).is_identity
    both = tf.loss_from_counts({"night": counts, "day": counts + 1}, noise=3)
    assert [loss(1.0) > exact(1.0) for loss in both] == [True, True]
    for wrong in (-1.0, np.inf, np.nan):
        with pytest.raises(ValueError, match="noise must be a sum of noise"):
            tf.loss_from_counts(counts, noise=wrong)


@pytest.mark.slow
def test_loss_from_counts_exceeds_the_truth_as_often_as_promised():
    rng = np.random.default_rng(3)
    above = []
    for _ in range(300):
        n, steps = int(rng.integers(2, 8)), int(10 ** rng.uniform(1.5, 4))
        rows = rng.dirichlet(np.ones(n), n)
        counts = np.array([rng.multinomial(steps, row) for row in rows])
        truth = tpl.privacy_loss(rows, 1.0)
        plug_in = tpl.privacy_loss(tpl.TransitionMatrix.from_counts(counts), 1.0)
        above.append((tf.loss_from_counts(counts)(1.0) >= truth, plug_in >= truth))
    covered, plug_in = np.mean(above, axis=0)
    assert covered >= 0.95
    assert plug_in < 0.9


def test_loss_from_counts_falls_with_more_steps_and_serves_as_a_loss_function():
    counts = np.array([[80, 20], [10, 90]])
    truth = tpl.PrivacyLossFunction(counts / 100)
    losses = [tf.loss_from_counts(counts * 10**k) for k in range(8)]
    at_one = [loss(1.0) for loss in losses]
    assert at_one == sorted(at_one, reverse=True)
    assert at_one[-1] == pytest.approx(truth(1.0), rel=1e-2)
    assert (losses[3].hockey_stick([1.0, 2.0]) >= truth.hockey_stick([1.0, 2.0])).all()
    budget = tpl.allocate_by_upper_bound(1.0, losses[3], losses[3])
    assert 0 < budget < tpl.allocate_by_upper_bound(1.0, truth, truth)
    assert losses[3].supremum(budget) <= 1.0
    more = tf.loss_from_counts(counts, confidence=0.999)
    assert more(1.0) > tf.loss_from_counts(counts, confidence=0.5)(1.0)


def test_the_phases_of_a_cycle_hold_jointly_and_one_phase_is_one_matrix():
    rng = np.random.default_rng(4)
    counts = np.array([random_counts(rng, 3, 200) for _ in range(4)])
    cycle = tf.loss_from_counts(counts, 0.9)
    for loss, of_phase in zip(cycle, counts, strict=True):
        each = tf.loss_from_counts(of_phase, 1 - 0.1 / 4)
        np.testing.assert_allclose(loss.hull, each.hull, rtol=0, atol=1e-12)
        assert loss(1.0) >= enumerated_loss(of_phase, 1.0, 1 - 0.1 / 4)
        assert loss(1.0) > tf.loss_from_counts(of_phase, 0.9)(1.0)
    (single,) = tf.loss_from_counts(counts[:1], 0.3)
    assert single.hull.tolist() == tf.loss_from_counts(counts[0], 0.3).hull.tolist()


@pytest.mark.slow
def test_all_phases_are_above_the_truth_at_once_as_often_as_promised():
    rng = np.random.default_rng(5)
    above = []
    for _ in range(200):
        n, p = int(rng.integers(2, 5)), int(rng.integers(2, 7))
        rows = rng.dirichlet(np.ones(n), (p, n))
        steps = int(10 ** rng.uniform(1.5, 3))
        counts = [[rng.multinomial(steps, row) for row in matrix] for matrix in rows]
        truths = [tpl.privacy_loss(matrix, 1.0) for matrix in rows]
        found = [loss(1.0) for loss in tf.loss_from_counts(np.array(counts), 0.8)]
        above.append(np.greater_equal(found, truths).all())
    assert np.mean(above) >= 0.8


def test_phases_are_given_by_labels_tables_and_the_length_of_a_step():
    night = pd.DataFrame([[80, 20], [10, 90]], ["home", "work"], ["home", "work"])
    day = night.loc[["work", "home"], ["work", "home"]]
    cycle = tf.loss_from_counts({"night": night, "day": day}, states=["home", "work"], step="12h")
    assert (cycle.phases, cycle.period, list(cycle.states)) == (
        ["night", "day"],
        "day",
        ["home", "work"],
    )
    assert cycle[0].hull.tolist() == cycle[1].hull.tolist()
    listed = tf.loss_from_counts([night, night], step="12h")
    assert listed.phases == ["00:00", "12:00"]
    assert tf.loss_from_counts(night, step="1h").matrix.step == timedelta(hours=1)
    with pytest.raises(ValueError, match="states"):
        tf.loss_from_counts([[[1, 1], [1, 1]], np.ones((3, 3))])
    with pytest.raises(ValueError, match="at least one step, found none"):
        tf.loss_from_counts(np.empty((0, 2, 2)))


def test_phases_that_share_a_matrix_share_its_counts_and_its_confidence():
    night, day = [csr_array(counts) for counts in ([[80.0, 20], [10, 90]], [[30.0, 70], [40, 60]])]
    cycle = tf.loss_from_counts([night] * 6 + [day] * 18, step="1h")
    two = tf.loss_from_counts([(night, ["home", "work"]), (day, ["home", "work"])])
    assert (len(cycle), cycle.phases[23], len(set(map(id, cycle)))) == (24, "23:00", 2)
    assert (cycle[5].hull == two[0].hull).all()
    assert (cycle[6].hull == two[1].hull).all()
    assert list(two.states) == ["home", "work"]


def test_budgets_of_a_cycle_from_counts_are_below_those_of_its_shares():
    rng = np.random.default_rng(6)
    counts = np.array([random_counts(rng, 2, 3000) for _ in range(3)])
    shares = tpl.Cycle([tpl.TransitionMatrix.from_counts(each) for each in counts])
    upper_ends = tf.loss_from_counts(counts)
    for horizon in (1, 2, 7, 30):
        upper = tpl.temporal_privacy_leakage(0.1, None, upper_ends, horizon=horizon)
        plug_in = tpl.temporal_privacy_leakage(0.1, None, shares, horizon=horizon)
        assert (upper.fpl >= plug_in.fpl).all()


def test_a_state_that_was_never_left_may_lead_to_any_state():
    loss = tf.loss_from_counts([[8, 2], [0, 0]], states=["home", "work"])
    assert (loss(2.0), loss.is_identity, loss.matrix.states) == (2.0, True, ["home", "work"])
    with pytest.raises(ValueError, match="confidence must be a probability"):
        tf.loss_from_counts([[1, 1], [1, 1]], confidence=1.0)


def test_loss_from_counts_refuses_what_needs_its_matrix(tmp_path):
    """Their products over skipped times, and a loss function made of them again, would leak more
    than stated."""
    loss = tf.loss_from_counts([[80, 20], [10, 90]])
    with pytest.raises(ValueError, match="steps over a time without a release need matrices"):
        tpl.leakage_at_all_times([0.1, 0.1], loss, None, times=[0, 2], horizon=3)
    with pytest.raises(ValueError, match="steps over a time without a release need matrices"):
        tpl.TemporalAccountant(loss, None).skip()
