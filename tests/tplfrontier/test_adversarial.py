"""Random and extreme cases against oracles that share no code with the package: rationals, 50
digits, outputs.

Outputs of normal noise are put into bins, whose laws are exact up to rounding: bins leak at most
what the outputs leak.
"""

from fractions import Fraction
from functools import partial
from itertools import pairwise, product

import mpmath
import numpy as np
import pytest
from dp_accounting import dp_event
from scipy.special import ndtr

import tplfrontier as tf
import tplrepro as tpl
from tests.oracles import exact_loss, exact_tpl, gaussian_leakage_mpmath
from tests.test_attacks import chain
from tests.tplrepro.leakage.matrices import BACKWARD, FORWARD

mpf = mpmath.mpf


def bins(means, deviation=1.0, count=30):
    """The probabilities of bins of a normal number with each of the means, (n, count)."""
    means = np.asarray(means, float)
    edges = np.linspace(means.min() - 4 * deviation, means.max() + 4 * deviation, count - 1)
    z = np.concatenate(([-np.inf], edges, [np.inf]))
    left, right = (z[:-1] - means[:, None]) / deviation, (z[1:] - means[:, None]) / deviation
    return np.where(left > 0, ndtr(-left) - ndtr(-right), ndtr(right) - ndtr(left))


def check_event_level_budgets(seed):
    """Against rational sums; theorem 1' in 50 digits."""
    rng = np.random.default_rng(seed)
    R, T = int(rng.choice([1, 2, 5, 100])), int(rng.integers(1, 7))
    A = (
        rng.normal(size=(R, T)) * (rng.random((R, T)) < 0.8)
        if rng.random() < 0.7
        else np.full((R, T), 0.1)
    )
    scale, width = 10.0 ** rng.uniform(-2, 2, R), float(rng.choice([0.3, 1.0, 2.0]))
    if rng.random() < 0.3:  # products and squares that are no floats
        A, scale = (
            A * 10.0 ** rng.uniform(-300, 300, (R, T)),
            scale * 10.0 ** rng.uniform(-200, 200),
        )
        width = float(10.0 ** rng.uniform(-200, 200))
    delta, n = float(rng.choice([1e-12, 1e-5, 0.4, 0.99])), int(rng.integers(1, 5))
    found = tf.event_level_budgets(A, scale, width)
    gaussian = tf.gaussian_event_level_budgets(A, scale, delta, n_states=n, sensitivity=width)
    weights = [
        [Fraction(width) * abs(Fraction(a)) / Fraction(s) for a in row]
        for row, s in zip(A.tolist(), scale.tolist(), strict=True)
    ]
    weights = [[mpf(w.numerator) / w.denominator for w in row] for row in weights]
    level = mpf(delta) / (T * n * max(n - 1, 1))
    quantile = max(
        mpmath.findroot(lambda q: mpmath.log(mpmath.ncdf(-q) / level), 5 if level < 0.01 else 0), 0
    )
    for t in range(T):
        gram = [abs(mpmath.fsum(row[t] * row[u] for row in weights)) for u in range(T)]
        assert found[t] >= mpmath.fsum(row[t] for row in weights) * (1 - mpf(10) ** -45)
        assert gaussian[t] >= (
            mpmath.fsum(gram) - gram[t] / 2 + mpmath.sqrt(gram[t]) * quantile
        ) * (1 - mpf(10) ** -45)


def check_gaussian_series(seed):
    """Random state spaces, near a unit root and without innovation, against inverses with many
    digits."""
    rng = np.random.default_rng(seed)
    T = int(rng.integers(1, 9))
    if rng.random() < 0.5:
        rho = float(rng.choice([-1, 1]) * (1 - 10.0 ** -rng.uniform(0, 9)))
        series = tf.LinearGaussianSeries.autoregressive(rho, T, 10.0 ** rng.uniform(-3, 3))
    else:
        d = int(rng.integers(1, 4))
        F = rng.normal(size=(d, d)) / np.sqrt(d)
        roots = rng.normal(size=(2, d, d)) * 10.0 ** rng.uniform(-3, 1, (2, 1, 1))
        Q, initial = roots @ roots.transpose(0, 2, 1)
        series = tf.LinearGaussianSeries(
            F, Q * (rng.random() < 0.8), rng.normal(size=d), initial, T
        )
    noise = 10.0 ** rng.uniform(-5, 5, T if rng.random() < 0.5 else None)
    expected = np.array(
        gaussian_leakage_mpmath(exact_covariance(series), np.broadcast_to(noise, T), 1.0), float
    )
    np.testing.assert_allclose(tf.gaussian_series_leakage(series, noise, 1.0), expected, rtol=2e-8)
    if series.value.size == 1 and not (np.ptp(noise) or series.value[0] != 1.0):  # AR(1)
        a, innovation, known = map(
            mpf, (series.transition.item(), series.innovation.item(), 1 / float(np.min(noise)))
        )
        rest = 1 - a * a - innovation * known  # one side's I is known + a^2 I / (1 + innovation I)
        side = (mpmath.sqrt(rest * rest + 4 * innovation * known) - rest) / (2 * innovation)
        limit = tf.gaussian_series_limit(series, float(np.min(noise)), 1.0)
        assert limit == pytest.approx(float(mpmath.sqrt(2 * side - known)), rel=1e-14)


def exact_covariance(series):
    F, Q, P = (
        mpmath.matrix(part.tolist())
        for part in (series.transition, series.innovation, series.initial)
    )
    value, T = mpmath.matrix(series.value.tolist()), series.horizon
    K = np.empty((T, T), dtype=object)
    for t in range(T):
        ahead = P * value
        for s in range(t, T):
            K[s, t] = K[t, s] = (value.T * ahead)[0]
            ahead = F * ahead
        P = F * P * F.T + Q
    return K


def check_several(seed):
    """The exact TPL of the budgets within alpha for the share of the chains, in 40 digits."""
    rng = np.random.default_rng(seed)
    n, T, alpha = (
        int(rng.integers(2, 4)),
        int(rng.integers(1, 6)),
        float(10.0 ** rng.uniform(-2, 1)),
    )
    pairs = [(chain(rng, n), chain(rng, n)) for _ in range(int(rng.integers(1, 5)))]
    share = float(rng.choice([1.0, 0.75, 0.5]))
    over_time = rng.random() < 0.5
    allocate = (
        partial(tpl.allocate_by_quantification, horizon=T)
        if over_time
        else tpl.allocate_by_upper_bound
    )
    try:
        budgets = np.broadcast_to(
            tf.allocate_for_several(partial(allocate, alpha), pairs, share=share), T
        )
    except tpl.NoFiniteSupremumError:
        return
    budgets = [mpf(float(budget)) for budget in budgets]
    leakages = [max(exact_tpl(budgets, *map(exact_loss, pair))) for pair in pairs]
    assert sum(leakage <= alpha for leakage in leakages) >= share * len(pairs)


def test_a_pair_without_a_budget_is_left_out_or_an_error():
    pairs, by_bound = (
        [(BACKWARD, FORWARD)] * 3 + [(np.eye(2), np.eye(2))],
        partial(tpl.allocate_by_upper_bound, 1.0),
    )
    assert tf.allocate_for_several(by_bound, pairs, share=0.75) == by_bound(BACKWARD, FORWARD)
    with pytest.raises(tpl.NoFiniteSupremumError):
        tf.allocate_for_several(by_bound, pairs, share=0.76)


def check_theorem_1_prime(seed, adaptive=False):
    """All paths of two states, all bins of up to three answers; rows may shrink after a large first
    answer."""
    rng = np.random.default_rng(seed)
    T, R = int(rng.integers(2, 6)), int(rng.integers(1, 4))
    P, initial = tpl.TransitionMatrix(0.98 * rng.dirichlet([1, 1], 2) + 0.01), rng.dirichlet([2, 2])
    A = rng.normal(size=(R, T)) if rng.random() < 0.7 else np.tril(np.ones((T, T)))[T - R :]
    R = len(A)
    scale, delta = float(10.0 ** rng.uniform(-0.5, 1)), float(10.0 ** -rng.uniform(0.2, 3))
    budgets = tf.gaussian_event_level_budgets(A, scale, delta, n_states=2)
    priors = [initial]
    for _ in range(T - 1):
        priors.append(priors[-1] @ P.toarray())
    backward = [P.reverse(prior) for prior in priors[:-1]]
    alpha = tpl.temporal_privacy_leakage(budgets, backward, [P] * (T - 1)).tpl.max()
    paths = np.array([*product(range(2), repeat=T)])
    weights = np.array(
        [initial[s[0]] * np.prod([P[a, b] for a, b in pairwise(s)]) for s in paths.tolist()]
    )
    count = 24
    laws = np.ones((len(paths), 1))
    for row in range(R):
        shares = (1.0, rng.random()) if adaptive and row else (1.0, 1.0)
        options = [bins(np.sqrt(2) * share * paths @ A[row], scale, count) for share in shares]
        large = (np.arange(laws.shape[1]) * count // max(laws.shape[1], 1) >= count // 2).astype(
            int
        )
        laws = np.stack(
            [laws[:, k, None] * options[large[k]] for k in range(laws.shape[1])], axis=1
        )
        laws = laws.reshape(len(paths), -1)
    for t in range(T):
        given = np.array([weights * (paths[:, t] == k) / priors[t][k] @ laws for k in range(2)])
        assert np.maximum(given[:, None] - np.exp(alpha) * given, 0.0).sum(axis=2).max() <= delta


def extreme_event(rng, depth=0):
    size = float(
        10.0 ** rng.uniform(-6, 4)
        if rng.random() < 0.7
        else rng.choice([1e-300, 1e-12, 40.0, 701.0, 1e8])
    )
    return (
        lambda: size,
        lambda: None if depth == 0 else 0.5,
        lambda: dp_event.GaussianDpEvent(size),
        lambda: dp_event.LaplaceDpEvent(size),
        lambda: dp_event.DiscreteLaplaceDpEvent(
            min(max(size, 1e-4), 50.0), int(rng.integers(1, 6))
        ),
        lambda: dp_event.RandomizedResponseDpEvent(
            float(rng.choice([1e-12, 0.5, 1 - 1e-12])), int(rng.integers(2, 6))
        ),
        lambda: dp_event.PoissonSampledDpEvent(
            float(rng.choice([0, 1e-15, 0.5, 1.0])), extreme_event(rng, 1)
        ),
        lambda: tf.PrivacyProfile.pure(
            min(size, 600.0), 0.01 if size < 100 else 0.3, float(rng.choice([0, 1e-12, 1]))
        ),
    )[int(rng.integers(8))]()


def check_extremes(seed):
    """No event and no chain leads to an internal error or a warning, or below the pure leakages."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 5))
    events = [
        *(extreme_event(rng) for _ in range(int(rng.integers(0, 4)))),
        float(10.0 ** rng.uniform(-3, 2)),
    ]
    pairs, grid = bool(rng.random() < 0.3), [None, 0.01, 5.0, 300.0][int(rng.integers(4))]
    events = events if pairs else [(event, int(rng.choice([1, 2, 60]))) for event in events]
    sides = [chain(rng, n) if rng.random() < 0.8 else None for _ in range(2)]
    r = tf.temporal_privacy_profile(events, *sides, grid=grid, pairs=pairs)
    for values in (
        r.epsilon(1e-9),
        r.delta(0.0),
        r.delta(1.0),
        r.both.largest,
        [r.w_event(1).delta(1.0)],
    ):
        assert not np.isnan(values).any()
    epsilons = events if pairs else [event for event, count in events for _ in range(count)]
    if all(isinstance(epsilon, float) for epsilon in epsilons):
        pure = tpl.temporal_privacy_leakage(epsilons, *sides).tpl
        assert pairs or (r.both.largest >= pure * (1 - 1e-15)).all()
        assert (r.both.largest <= pure * (1 + 2e-9) + 1e-12).all()


CHECKS = {
    check_event_level_budgets: 3000,
    check_extremes: 300,
    check_gaussian_series: 2000,
    check_several: 1000,
    check_theorem_1_prime: 1000,
    partial(check_theorem_1_prime, adaptive=True): 500,
}


def test_a_single_state_leaks_nothing_and_two_releases_that_hide_little_add_up():
    for pairs in (False, True):
        assert tf.temporal_privacy_profile([0.5, 0.5], [[1.0]], None, pairs=pairs).delta(
            0.5
        ).tolist() == [0.0, 0.0]
    for P in ([[1 - 1e-15, 1e-15], [0, 1]], np.eye(2)):
        assert tf.temporal_privacy_profile([(40.0, 2)], P, None).backward.epsilon(
            1e-9
        ) == pytest.approx([40.0, 80.0])


@pytest.mark.parametrize("share", [0.01, pytest.param(1.0, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("check", "cases"), CHECKS.items(), ids=lambda one: getattr(one, "__name__", None)
)
def test_no_bound_of_a_random_case_is_below_its_oracle(check, cases, share):
    with mpmath.workdps(50):
        for seed in range(max(2, int(share * cases))):
            check(seed)
