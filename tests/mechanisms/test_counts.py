"""The noise has the scale that the budgets ask for, OpenDP's privacy map stays within them, and bad input is named."""

import numpy as np
import pytest
from scipy import stats

import tplrepro as tpl
from tplrepro.mechanisms.counts import _calibrated

BUDGETS = [0.1, 0.5, 2.0]
ERRORS = [
    ({"epsilons": [1.0]}, "one for each release, found 1 for 3 releases; give 3"),
    ({"epsilons": [1, 0, 1]}, "epsilons must be a finite privacy budget .* found 0"),
    ({"sensitivity": 0}, "sensitivity must be finite and greater than 0, found 0; give the most"),
    ({"sensitivity": np.inf}, "sensitivity must be .* found inf"),
    ({"sensitivity": 1.5}, "whole counts change by whole numbers, found sensitivity 1.5; round it up"),
    ({"mechanism": "gauss"}, "mechanism must be one of 'opendp', 'numpy', found 'gauss'"),
    ({"rng": np.random.default_rng(0)}, 'takes no generator, found rng; leave rng out, or pass mechanism="numpy"'),
    ({"series": []}, r"not be empty, found \(0,\)"),
    ({"series": np.zeros((3, 2, 2))}, r"series must have shape .* found \(3, 2, 2\)"),
    ({"series": [1.0, np.nan, 2.0]}, "counts must be finite, found nan; fill in missing counts"),
    ({"series": [[1, 2], [3], [4]]}, "series must be a rectangular array of counts, found list"),
    ({"series": np.array(["3", "4", "5"], dtype=object)}, "series must be .*<U1 are no real numbers"),
    ({"series": np.array(["2024-01-01"] * 3, dtype="M8[D]")}, "series must be .*datetime64"),
    ({"series": np.ma.masked_less([1, 2, 3], 2)}, "series must be .*some are masked"),
    ({"series": np.array([1, 2, 2**63], dtype=np.uint64)}, r"below 2\*\*63, found 9223372036854775808; give .* floats"),
    ({"sensitivity": "1"}, "sensitivity must be a number, found str"),
]


@pytest.mark.parametrize(("arguments", "message"), ERRORS)
def test_errors(arguments, message):
    with pytest.raises(ValueError, match=message):
        tpl.release_counts(**({"series": [3, 4, 5], "epsilons": 1.0, "sensitivity": 1} | arguments))


def release(counts, epsilons=BUDGETS, sensitivity=1):
    return tpl.release_counts(counts, epsilons, sensitivity, "numpy", np.random.default_rng(2017))


@pytest.mark.parametrize("mechanism", ["opendp", "numpy"])
@pytest.mark.parametrize("shape", [(3,), (3, 1), (3, 50)])
@pytest.mark.parametrize("kind", [np.uint8, np.int32, bool, float])
def test_shape_and_type_and_no_overflow(mechanism, shape, kind):
    series = np.ones(shape, dtype=kind)
    noisy = tpl.release_counts(series, 1e-3, sensitivity=2, mechanism=mechanism)
    assert noisy.shape == shape
    assert noisy.dtype == (np.int64 if mechanism == "opendp" and np.issubdtype(kind, np.integer) else np.float64)
    assert np.array_equal(series, np.ones(shape))
    assert np.abs(noisy).max() > 256 or shape != (3, 50)


@pytest.mark.parametrize("sensitivity", [1, 2.5])
def test_numpy_noise_is_laplace_of_scale_sensitivity_over_budget(sensitivity):
    counts = np.full((3, 20_000), 100.0)
    noise = release(counts, sensitivity=sensitivity) - counts
    for row, epsilon in zip(noise, BUDGETS, strict=True):
        assert stats.kstest(row, stats.laplace(scale=sensitivity / epsilon).cdf).pvalue > 1e-3
        # A scale that is off by 10% would be told apart from the right one.
        assert stats.kstest(row, stats.laplace(scale=1.1 * sensitivity / epsilon).cdf).pvalue < 1e-3


def test_numpy_noise_repeats_with_its_generator_and_only_then():
    counts = np.zeros((3, 4))
    assert np.array_equal(release(counts), release(counts))
    assert np.array_equal(release(counts, 0.5), release(counts, [0.5] * 3))  # one budget for all time points
    with pytest.warns(UserWarning, match="NumPy's noise is for experiments"):
        unseeded = [tpl.release_counts(counts, BUDGETS, 1, mechanism="numpy") for _ in range(2)]
    assert not np.any(unseeded[0] == unseeded[1])


# Also at the ends of 32 bits and beyond.
@pytest.mark.parametrize(("kind", "count"), [(float, 9), (int, 9), (int, 2**31), (np.uint64, 2**33), (int, -(2**62))])
def test_opendp_noise_has_the_right_size(kind, count):
    counts = np.full((3, 20_000), count, dtype=kind)
    noise = tpl.release_counts(counts, BUDGETS, sensitivity=2) - counts.astype(float if kind is float else np.int64)
    for row, epsilon in zip(noise, BUDGETS, strict=True):
        law = stats.laplace(scale=2 / epsilon) if kind is float else stats.dlaplace(epsilon / 2)
        size = 2 / epsilon if kind is float else 1 / np.sinh(epsilon / 2)
        # 20,000 draws leave 0.7% to 0.9% of the mean of |X|, and 1.6% of the variance.
        assert np.abs(row).mean() == pytest.approx(size, rel=0.06)
        assert row.var() == pytest.approx(law.var(), rel=0.1)
        assert abs(row.mean()) < 6 * np.sqrt(law.var() / row.size)


@pytest.mark.parametrize("kind", [int, float])
@pytest.mark.parametrize("sensitivity", [1, 2, 3])
def test_opendp_privacy_map_is_within_each_budget(kind, sensitivity):
    """The map is asked again here: the scale sensitivity/epsilon, rounded, may give slightly more than epsilon."""
    for budget in 10 ** np.random.default_rng(5).uniform(-9, 2, 60):
        measurement = _calibrated(kind is int, sensitivity, float(budget))
        assert budget * (1 - 1e-12) < measurement.map(kind(sensitivity)) <= budget


def test_whole_counts_stay_at_the_ends_of_64_bits():
    ends = np.array([np.iinfo(np.int64).min, np.iinfo(np.int64).max])
    noisy = tpl.release_counts(np.repeat(ends[None], 100, axis=0), 0.01, sensitivity=1)
    assert (np.sign(noisy) == [-1, 1]).all()
    assert (noisy == ends).any(axis=0).all()
