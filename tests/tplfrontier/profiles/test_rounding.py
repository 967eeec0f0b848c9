"""Profiles are upper bounds in floating point, too: every operation against the same operation with
50 digits.

Guards of the profiles are needed by at least one of these tests, which fails when the guard is
removed.
"""

from itertools import accumulate, islice

import mpmath
import numpy as np
import pytest
from dp_accounting import dp_event

import tplfrontier as tf
import tplrepro as tpl
from tests.oracles import exact_loss, loss_mpmath, recursion
from tests.tplrepro.leakage.matrices import random_matrix
from tplfrontier.profiles.privacy_profile import (
    DIRECT,
    EPS,
    Release,
    _slopes_at,
    bound_after,
    losses_of_grid,
    product_rounding,
)
from tplfrontier.profiles.repeated_releases import approach_limit

mpf = mpmath.mpf
BITS = 300


@pytest.fixture(autouse=True)
def fifty_digits():
    with mpmath.workdps(50):
        yield


class Exact:
    """A mechanism whose losses lie on a grid: masses p_1, p_2, ... of the positive losses, and an
    infinite loss.

    `reverse` are the masses of the reverse order of the two values, if they differ.
    """

    def __init__(self, grid, masses, infinite=0, reverse=None):
        self.grid, self.masses, self.infinite = (
            mpf(grid),
            [mpf(mass) for mass in masses],
            mpf(infinite),
        )
        shrunk = self.shrunk(self.masses)
        self.mirrored = shrunk if reverse is None else self.shrunk(map(mpf, reverse))
        above, below = [self.infinite], [mpf(0)]
        for p, mirrored in zip(self.masses[::-1], shrunk[::-1], strict=True):
            above.append(above[-1] + p)
            below.append(below[-1] + mirrored)
        self.above, self.below = above[::-1], below[::-1]  # Pr(loss > x_j) given either value

    def shrunk(self, masses):
        """The probabilities given the other value."""
        return [p * mpmath.exp(-self.grid * k) for k, p in enumerate(masses, start=1)]

    def delta(self, x):
        j = max(0, min(int(mpmath.floor(mpf(x) / self.grid)), len(self.masses)))
        return self.above[j] - mpmath.exp(x) * self.below[j]

    def deltas(self):
        """At the points of the grid."""
        powers = accumulate(
            self.masses, lambda power, _: power * mpmath.exp(self.grid), initial=mpf(1)
        )
        return [a - power * b for a, power, b in zip(self.above, powers, self.below, strict=True)]

    def compose(self, other):
        """The product of polynomials with the masses as coefficients, as one product of
        integers."""
        packed = []
        for each in (self, other):
            zero = 1 - each.infinite - sum(each.masses) - sum(each.mirrored)
            masses = [*each.mirrored[::-1], zero, *each.masses]
            digits = (
                int(mpmath.floor(mpmath.ldexp(p, BITS))).to_bytes(BITS // 4 + 4, "little")
                for p in masses
            )
            packed.append(int.from_bytes(b"".join(digits), "little"))
        size, width = 2 * (len(self.masses) + len(other.masses)) + 1, BITS // 4 + 4
        product = (packed[0] * packed[1]).to_bytes(size * width, "little")
        sums = [
            int.from_bytes(product[k * width : (k + 1) * width], "little")
            for k in range(size // 2 + 1, size)
        ]
        infinite = self.infinite + other.infinite - self.infinite * other.infinite
        return Exact(self.grid, [mpmath.ldexp(mpf(p), -2 * BITS) for p in sums], infinite)

    def profile(self):
        """Its profile in floating point, each delta rounded up once."""
        deltas = np.minimum.accumulate([rounded_up(delta) for delta in self.deltas()])
        return tf.PrivacyProfile(deltas, float(self.grid))


def rounded_up(value):
    nearest = float(value)
    return nearest if nearest >= value else np.nextafter(nearest, np.inf)


def random_mechanism(rng, size=60, grid=None):
    """Losses of probabilities from about 1 down to 1e-25, some of which are 0; a grid from 1e-4 to
    0.3."""
    masses = 10.0 ** -rng.uniform(0, rng.choice([1, 8, 25]), size) * (rng.random(size) < 0.8)
    masses[-1] = masses[-1] or 1e-10
    masses *= rng.choice([0.01, 0.3, 0.5]) / masses.sum()
    return Exact(grid or rng.choice([1e-4, 0.01, 0.3]), masses, rng.choice([0.0, 1e-9]))


def assert_bounds(profile, exact):
    for found, true in zip(profile.deltas.tolist(), exact.deltas(), strict=False):
        assert found >= true


@pytest.mark.parametrize("direct", [0, DIRECT], ids=["Fourier", "direct"])
@pytest.mark.parametrize("seed", range(10))
def test_compositions_round_up(seed, direct, monkeypatch):
    monkeypatch.setattr("tplfrontier.profiles.privacy_profile.DIRECT", direct)
    rng = np.random.default_rng(seed)
    one = random_mechanism(rng)
    other = random_mechanism(rng, grid=one.grid)
    assert_bounds(one.profile().compose(other.profile()), one.compose(other))


@pytest.mark.parametrize(("grid", "size", "tiny"), [(1e-3, 800, 4e-15), (0.3, 6000, 3e-17)])
def test_compositions_of_one_large_and_many_tiny_masses_round_up(grid, size, tiny):
    """Each tiny mass is less than the rounding of the large one, in a difference or in a sum."""
    one, other = Exact(grid, [*[tiny] * size, 0.3]), Exact(grid, [0.1])
    assert_bounds(one.profile().compose(other.profile()), one.compose(other))


@pytest.mark.parametrize("seed", range(8))
def test_deltas_between_the_points_of_the_grid_round_up(seed):
    """A mechanism on the grid has a profile that is linear in e^x between its points."""
    rng = np.random.default_rng(seed)
    exact = random_mechanism(rng, size=[60, 1000][seed % 2])
    profile = exact.profile()
    points = float(exact.grid) * rng.integers(1, len(exact.masses), 60)
    losses = [
        rng.uniform(0, points.max(), 60),
        points,
        np.nextafter(points, 0),
        np.nextafter(points, 999),
    ]
    losses = np.concatenate([*losses, points * (1 - 1e-12)])
    for x, found in zip(losses.tolist(), profile.delta(losses).tolist(), strict=True):
        assert found >= exact.delta(x)
    deltas = np.append(10.0 ** rng.uniform(-20, 0, 60), np.nextafter(profile.deltas[:60], 0)).clip(
        1e-300, 0.99
    )
    for delta, epsilon in zip(deltas.tolist(), profile.epsilon(deltas).tolist(), strict=True):
        assert epsilon == np.inf or exact.delta(epsilon) <= delta


def exact_eta(P, x):
    rows = [[mpf(p) for p in row] for row in P.tolist()]
    return max(
        sum(max(p - mpmath.exp(x) * q, 0) for p, q in zip(a, b, strict=True))
        for a in rows
        for b in rows
    )


@pytest.mark.parametrize("seed", range(8))
def test_steps_of_correlation_round_up(seed):
    rng = np.random.default_rng(seed)
    exact = random_mechanism(rng, size=[40, 300][seed % 2])
    P = random_matrix(rng, ["dense", "near_identity", "sharp"][seed % 3], 2)
    found = exact.profile().correlated(tpl.PrivacyLossFunction(P)).deltas.tolist()
    for j, value in enumerate(found):
        x = j * exact.grid
        eta = exact_eta(P, x)
        assert value >= (eta * exact.delta(mpmath.log1p(mpmath.expm1(x) / eta)) if eta else 0)


@pytest.mark.parametrize("share", [1e-9, 0.3, 0.999])
def test_bounds_on_the_loss_itself_round_up(share):
    rng = np.random.default_rng(3)
    for _ in range(100):
        first, second = 10.0 ** rng.uniform(-3, 2, 2)
        bounds = [tf.PrivacyProfile(np.ones(1), 1.0, x) for x in (first, second)]
        assert bounds[0].compose(bounds[1]).largest >= mpf(first) + mpf(second)
        once = tf.PrivacyProfile.pure(first, 1.0)
        sampled = dp_event.PoissonSampledDpEvent(share, once)
        assert Release(sampled).epsilon >= mpmath.log1p(mpf(share) * mpmath.expm1(first))
        q, d = rng.random(2)
        P = [[q, 1.0 - q], [d, 1.0 - d]]
        assert once.correlated(tpl.PrivacyLossFunction(P)).largest >= loss_mpmath(P, first)


@pytest.mark.parametrize("seed", range(10))
def test_bounds_on_the_loss_of_several_releases_round_up(seed):
    epsilons = (10.0 ** np.random.default_rng(seed).uniform(-2, 0, 9)).tolist()
    alone, everything = (
        tf.temporal_privacy_profile(epsilons, P, P, grid=0.1) for P in (None, np.eye(2))
    )
    total = mpmath.fsum(map(mpf, epsilons))
    for largest in (
        *everything.both.largest,
        everything.user_level.largest,
        everything.w_event(3).largest,
    ):
        assert largest >= total
    assert (everything.backward.largest >= [*accumulate(map(mpf, epsilons))]).all()
    for first in range(7):
        window = mpmath.fsum(map(mpf, epsilons[first : first + 3]))
        assert alone.composed(first, first + 2).largest >= window
    P = [[0.75, 0.25], [0.125, 0.875]]
    exact, _, _ = recursion([*map(mpf, epsilons)], exact_loss(P), exact_loss(None))
    assert (
        tf.temporal_privacy_profile(epsilons, P, None, grid=0.1).backward.largest >= exact
    ).all()


def test_deltas_below_the_rounding_of_a_step_are_not_forgotten():
    """Releases tell the state with probability 1e-18 or 3e-16: through one step, as far as two rows
    differ."""
    P, remains = [[0.55, 0.45], [0.45, 0.55]], 0.55 - 0.45 * np.exp(0.1)
    kinds = [tf.PrivacyProfile(np.full(50, delta), 0.01) for delta in (1e-18, 1e-18, 3e-16, 1e-18)]
    by_pairs = tf.temporal_privacy_profile(kinds[1:], P, None, grid=0.01, pairs=True)
    shorter, series = (
        tf.temporal_privacy_profile(kinds[:count], None, P, grid=0.01) for count in (2, 3)
    )
    for found in (by_pairs.backward.delta(0.1)[2], series.following(shorter).forward.delta(0.1)[1]):
        assert found >= 3e-16 * remains


@pytest.mark.parametrize("rate", [0.5, 0.9995])
def test_extrapolated_profiles_round_up(rate):
    limit, near = np.sort(np.random.default_rng(0).random((2, 3)))[:, ::-1] * [[1.0], [0.01]]
    high, low = (np.array([*map(mpf, deltas.tolist())]) for deltas in (limit, near))
    for number, profile in enumerate(islice(approach_limit(limit, near, rate, 0.1), 3000), 1):
        assert (profile().deltas >= high - mpf(rate) ** number * (high - low)).all()


def exact_gaussian(shift, x):
    return mpmath.ncdf(shift / 2 - x / shift) - mpmath.exp(x) * mpmath.ncdf(-shift / 2 - x / shift)


def exact_zero_concentrated(rho, x):
    def bound(order):
        less = order - 1
        return mpmath.exp(less * (rho * order - x)) * (1 - 1 / order) ** order / less

    return min(
        bound(1 + less)
        for less in np.geomspace(0.01, 100.0 * (1.0 + 1.0 / np.sqrt(float(rho))), 400).tolist()
    )


@pytest.mark.parametrize("grid", [1e-3, 0.07])
@pytest.mark.parametrize("size", [0.013, 0.7, 3.1])
def test_curves_of_events_round_up(size, grid):
    parameter = mpf(size)
    inverse = 1 / mpf(1 / size)
    exact = {
        size: lambda x: max(-mpmath.expm1(x - parameter), 0) / (1 + mpmath.exp(-parameter)),
        dp_event.GaussianDpEvent(1 / size): lambda x: exact_gaussian(inverse, x),
        dp_event.LaplaceDpEvent(1 / size): lambda x: max(-mpmath.expm1((x - inverse) / 2), 0),
        dp_event.DiscreteLaplaceDpEvent(size, 1): lambda x: (
            max(-mpmath.expm1(x - parameter), 0) / (1 + mpmath.exp(-parameter))
        ),
        dp_event.RandomizedResponseDpEvent(0.3, 3): lambda x: max(
            1 - mpf(0.3) + mpf(0.3) / 3 - mpmath.exp(x) * mpf(0.3) / 3, 0
        ),
        dp_event.ZCDpEvent(size): lambda x: min(exact_zero_concentrated(parameter, x), 1),
    }
    for event, delta in exact.items():
        profile = tf.PrivacyProfile.of_event(event, grid)
        points = np.unique(np.linspace(0, profile.deltas.size - 1, 40).astype(int)).tolist()
        for j in points:
            assert profile.deltas[j] >= delta(j * mpf(profile.grid)) - mpf(1e-30), (event, j)
        if profile.largest < np.inf:
            assert delta(mpf(profile.largest)) <= 0, event


@pytest.mark.parametrize("epsilon", [1.0, 600.0, 800.0, 1250.0, 1400.0])
def test_exact_gaussian_delta_keeps_its_digits_beyond_the_largest_power(epsilon):
    found = tf.ExactGaussianProfile(0.02, None, None, horizon=1).delta(epsilon)[0]
    assert found == pytest.approx(float(exact_gaussian(mpf(50), mpf(epsilon))), rel=1e-9)
    along = tf.ExactGaussianProfile([0.05, 0.05], np.eye(2), None).delta(epsilon)[1]
    assert along == pytest.approx(
        float(exact_gaussian(20 * mpmath.sqrt(2), mpf(epsilon))), rel=1e-9
    )


@pytest.mark.parametrize("delta", [1e-3, 1e-12, 1e-15, 1e-16, 1e-100])
def test_gaussian_mu_without_epsilon_keeps_delta(delta):
    mu = tf.gaussian_mu(0.0, delta)
    with mpmath.workdps(200):
        exact = float(mpmath.erf(mpf(mu) / mpmath.sqrt(8)))
    assert delta * (1.0 - 1e-13) <= exact <= delta


def test_discrete_laplace_noise_of_a_large_sensitivity_rounds_up():
    p, sensitivity = mpf(1e-3), 10_000
    profile = tf.PrivacyProfile.of_event(
        dp_event.DiscreteLaplaceDpEvent(float(p), sensitivity), 0.01
    )
    masses = [(1 / (1 + mpmath.exp(-p)), p * sensitivity)]
    between = range(1, sensitivity // 2)
    masses += [
        (mpmath.tanh(p / 2) * mpmath.exp(-p * b), p * (sensitivity - 2 * b)) for b in between
    ]
    for j in (0, 300, 999):
        exact = mpmath.fsum(
            mass * max(-mpmath.expm1(j * mpf(0.01) - loss), 0) for mass, loss in masses
        )
        assert exact <= profile.deltas[j] <= exact * (1 + 1e-9)


@pytest.mark.parametrize("grid", [1e-3, 0.07, 0.3])
def test_slopes_are_rounded_down_up_to_the_largest_loss(grid):
    points = np.unique(np.geomspace(1, 699.0 / grid, 60).astype(int))
    losses = losses_of_grid(grid, int(points[-1]) + 1)[points]
    for point, found in zip(points.tolist(), _slopes_at(losses).tolist(), strict=True):
        exact = mpmath.expm1(mpf(grid) * point)
        assert exact * (1 - mpf(1e-12)) <= found <= exact


@pytest.mark.parametrize("n", [2, 20])
@pytest.mark.parametrize("length", [2, 3, 100, 5000])
def test_bounds_after_products_of_matrices_have_the_margin_of_their_rounding(n, length):
    """An entry of a product of m matrices (n, n) >= 0 is wrong by a share of (m - 1) n u at most
    (Higham 2002, section 3.5), each of two rows sums to 1, and EPS = 2 u."""
    most = (length - 1) * n * EPS
    assert most <= product_rounding(n, length) <= 20.0 * most
    assert product_rounding(n, 1) == 0.0
    loss = tpl.PrivacyLossFunction(np.full((n, n), 0.5 / n) + 0.5 * np.eye(n))
    after = loss.at_most(1.0)
    assert after + 0.99 * most <= bound_after(loss, length, 1.0) <= after + 21.0 * most
    assert bound_after(loss, 1, 1.0) == after
