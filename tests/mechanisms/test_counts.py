"""The noise has the scale that the budgets ask for, OpenDP's privacy map stays within them, and bad input is named."""

import numpy as np
import pytest
from scipy import stats

import tplrepro as tpl
from tplrepro.mechanisms.counts import _calibrated

BUDGETS = [0.1, 0.5, 2.0]


@pytest.mark.parametrize("mechanism", ["opendp", "numpy"])
@pytest.mark.parametrize("shape", [(3,), (3, 1), (3, 5)])
@pytest.mark.parametrize("kind", [int, float])
def test_shape_and_type(mechanism, shape, kind):
    series = np.arange(np.prod(shape)).reshape(shape).astype(kind)
    before = series.copy()
    noisy = tpl.release_counts(series, BUDGETS, sensitivity=2, mechanism=mechanism)
    assert noisy.shape == shape
    assert noisy.dtype == (np.int64 if mechanism == "opendp" and kind is int else np.float64)
    assert np.array_equal(series, before)


def test_the_default_is_opendp_and_gives_whole_numbers_for_whole_counts():
    noisy = tpl.release_counts([10, 11, 12], 0.5, sensitivity=1)
    assert noisy.dtype == np.int64


@pytest.mark.parametrize("kind", [np.uint8, np.int32, bool])
def test_small_integers_do_not_overflow(kind):
    noisy = tpl.release_counts(np.ones((2, 50), dtype=kind), 1e-3, sensitivity=1, mechanism="numpy", rng=rng())
    assert noisy.min() < -100
    assert noisy.max() > 256


@pytest.mark.parametrize("sensitivity", [1, 2.5])
def test_numpy_noise_is_laplace_of_scale_sensitivity_over_budget(sensitivity):
    counts = np.full((3, 20_000), 100.0)
    noise = tpl.release_counts(counts, BUDGETS, sensitivity, mechanism="numpy", rng=rng()) - counts
    for row, epsilon in zip(noise, BUDGETS, strict=True):
        assert stats.kstest(row, stats.laplace(scale=sensitivity / epsilon).cdf).pvalue > 1e-3
        # A scale that is off by 10% would be told apart from the right one.
        assert stats.kstest(row, stats.laplace(scale=1.1 * sensitivity / epsilon).cdf).pvalue < 1e-3


def test_numpy_noise_repeats_with_its_generator_and_only_then():
    counts = np.zeros((3, 4))
    first, again, other = (
        tpl.release_counts(counts, BUDGETS, 1, mechanism="numpy", rng=np.random.default_rng(seed)) for seed in (7, 7, 8)
    )
    assert np.array_equal(first, again)
    assert not np.any(first == other)
    unseeded = [tpl.release_counts(counts, BUDGETS, 1, mechanism="numpy") for _ in range(2)]
    assert not np.any(unseeded[0] == unseeded[1])


@pytest.mark.parametrize("kind", [int, float])
def test_opendp_noise_has_the_right_size(kind):
    counts = np.full((3, 20_000), 1000, dtype=kind)
    noise = tpl.release_counts(counts, BUDGETS, sensitivity=2) - counts
    for row, epsilon in zip(noise, BUDGETS, strict=True):
        scale = 2 / epsilon
        decay = np.exp(-1 / scale)
        # E|X| of the Laplace distribution, and of the discrete one with Pr(k) proportional to exp(-|k|/scale).
        size = scale if kind is float else 2 * decay / (1 - decay**2)
        # |X| has a standard deviation of about its mean, and 20,000 draws leave 0.7% to 0.9% of it: 6% is out of reach.
        assert np.abs(row).mean() == pytest.approx(size, rel=0.06)
        # The variance has a standard error of 1.6%.
        variance = 2 * scale**2 if kind is float else 2 * decay / (1 - decay) ** 2
        assert row.var() == pytest.approx(variance, rel=0.1)
        assert abs(row.mean()) < 6 * np.sqrt(variance / row.size)


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("sensitivity", [1, 2, 3])
def test_opendp_privacy_map_is_within_each_budget(whole, sensitivity):
    """The map is asked again here: the scale sensitivity/epsilon, rounded, may give slightly more than epsilon."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    kind = int if whole else float
    domain = dp.vector_domain(dp.atom_domain(T=int) if whole else dp.atom_domain(T=float, nan=False))
    for budget in 10 ** np.random.default_rng(5).uniform(-9, 2, 60):
        measurement = _calibrated(domain, dp.l1_distance(T=kind), kind(sensitivity), float(budget))
        assert budget * (1 - 1e-12) < measurement.map(kind(sensitivity)) <= budget


def test_budgets_follow_the_time_points():
    counts = np.zeros((2, 2000))
    noise = tpl.release_counts(counts, [0.01, 10.0], 1, mechanism="numpy", rng=rng())
    assert np.abs(noise[0]).mean() > 100 * np.abs(noise[1]).mean()
    noise = tpl.release_counts(counts.astype(int), [10.0, 0.01], 1)
    assert np.abs(noise[1]).mean() > 100 * np.abs(noise[0]).mean()


def test_one_budget_for_all_time_points():
    first, second = (
        tpl.release_counts(np.zeros(4), epsilons, 1, mechanism="numpy", rng=rng()) for epsilons in (0.5, [0.5] * 4)
    )
    assert np.array_equal(first, second)


def test_allocated_budgets_are_accepted():
    budgets = tpl.allocate_by_quantification(1.0, [[0.8, 0.2], [0.2, 0.8]], [[0.8, 0.2], [0.1, 0.9]], horizon=5)
    assert tpl.release_counts(np.arange(15).reshape(5, 3), budgets, sensitivity=2).shape == (5, 3)


def rng():
    return np.random.default_rng(2017)


COUNTS = [3, 4, 5]
BAD = {
    "lengths": (dict(series=COUNTS, epsilons=[1.0]), "one entry a time point, found 3 and 1; give a budget for each"),
    "not positive": (dict(epsilons=[1, 0, 1]), "epsilons must be a finite privacy budget .* found 0; leave out"),
    "negative": (dict(epsilons=-1.0), "epsilons must be a finite privacy budget in nats, greater than 0; found -1"),
    "infinite": (dict(epsilons=[1, np.inf, 1]), "finite privacy budget in nats, greater than 0; found inf"),
    "not numbers": (dict(epsilons=["a", "b", "c"]), "epsilons must be a sequence of numbers, found list"),
    "sensitivity 0": (dict(sensitivity=0), "sensitivity must be finite and greater than 0, found 0; give the most"),
    "sensitivity nan": (dict(sensitivity=np.nan), "sensitivity must be finite and greater than 0, found nan"),
    "sensitivity inf": (dict(sensitivity=np.inf), "sensitivity must be finite and greater than 0, found inf"),
    "fractional": (dict(sensitivity=1.5), "whole counts change by whole numbers, found sensitivity 1.5; round it up"),
    "mechanism": (dict(mechanism="gauss"), "mechanism must be 'opendp' or 'numpy', found 'gauss'; choose one"),
    "generator": (
        dict(rng=np.random.default_rng(0)),
        'takes no generator, found rng; leave rng out, or pass mechanism="n',
    ),
    "empty": (dict(series=[], epsilons=1.0), r"shape \(T,\) or \(T, n\) and not be empty, found \(0,\); give T >= 1"),
    "cube": (dict(series=np.zeros((3, 2, 2))), r"series must have shape .* found \(3, 2, 2\)"),
    "scalar": (dict(series=5, epsilons=1.0), r"series must have shape .* found \(\)"),
    "nan": (dict(series=[1.0, np.nan, 2.0]), "counts must be finite, found nan; fill in missing counts"),
    "ragged": (dict(series=[[1, 2], [3], [4]]), "series must be a rectangular array of counts, found list; give shape"),
}


@pytest.mark.parametrize(("arguments", "message"), BAD.values(), ids=BAD)
def test_messages(arguments, message):
    with pytest.raises(ValueError, match=message):
        tpl.release_counts(**(dict(series=COUNTS, epsilons=1.0, sensitivity=1) | arguments))
