"""The noise has the scale that the budgets ask for, and OpenDP's privacy map stays within them."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from opendp import measurements
from scipy import sparse, stats
from scipy.special import erf

import tplreport as tr
from tplreport.publishing.counts import noise_width

BUDGETS = [0.1, 0.5, 2.0]
GAUSSIAN = {"mechanism": "opendp-gaussian", "epsilons": None, "noise_multipliers": 1.0}
TOO_WIDE = GAUSSIAN | {"noise_multipliers": 1.1 * 2.0**57, "sensitivity": 1e-9}
ERRORS = [
    ({"epsilons": [1.0]}, "one for each release, found 1 for 3 releases; give 3"),
    ({"epsilons": [1, 0, 1]}, "epsilons must be a finite privacy budget .* found 0"),
    *(({"sensitivity": bad}, f"greater than 0, found {bad}; give the most") for bad in (0, np.inf)),
    ({"sensitivity": "1"}, "sensitivity must be .* greater than 0, found str"),
    (
        {"sensitivity": None},
        "sensitivity must be given, found none; give how much .* such as 2 for a histogram",
    ),
    (
        {"series": [0.1] * 3, "epsilons": [100, 200, 300]},
        "at most 20 nats, found more, .* the counts come first, then the budgets",
    ),
    (
        {"sensitivity": 1.5},
        "sensitivity of whole counts must be a whole number below .*, found 1.5; round it up",
    ),
    ({"sensitivity": 2.0**63}, r"below 2\*\*63, found 9.22"),
    (
        {"series": [1.0, 2.0, 3.0], "epsilons": 1e-300, "sensitivity": 1e300},
        r"must be a finite number, found 1e\+300 / 1e-300; give more budget",
    ),
    (
        {"epsilons": 1e-300, "sensitivity": 1e300, "mechanism": "numpy"},
        r"must be a finite number, found 1e\+300 / 1e-300; give more budget",
    ),
    (
        {"mechanism": "gauss"},
        "mechanism must be one of 'opendp', 'opendp-gaussian', 'numpy', found 'gauss'",
    ),
    (
        {"rng": np.random.default_rng(0)},
        'takes no generator, found rng; leave rng out, or pass mechanism="numpy"',
    ),
    ({"series": []}, r"not be empty, found \(0,\)"),
    ({"series": np.zeros((3, 2, 2))}, r"series must have shape .* found \(3, 2, 2\)"),
    ({"series": [1.0, np.nan, 2.0]}, "counts must be finite, found nan; fill in missing counts"),
    ({"series": [[1, 2], [3], [4]]}, "series must be a rectangular array of counts, found list"),
    ({"series": np.ma.masked_less([1, 2, 3], 2)}, "series must be .*some are masked"),
    *(
        ({"series": big}, r"below 2\*\*63, found a larger one; give")
        for big in ([2**63, -2], np.array([2**63], np.uint64))
    ),
    (
        {"series": [-(2**63) - 1, 0, 0]},
        r"at least -2\*\*63, found a smaller one; give them as floats",
    ),
    (
        {"mechanism": "numpy", "rng": True},
        "rng must be .*numpy.random.Generator or None, found True; give",
    ),
    (
        {"epsilons": None},
        'mechanism="opendp" needs epsilons and no noise_multipliers, found neither; Laplace',
    ),
    (
        {"mechanism": "opendp-gaussian"},
        "needs noise_multipliers and no epsilons, found epsilons; Laplace",
    ),
    (
        {"noise_multipliers": 1},
        "needs epsilons and no noise_multipliers, found epsilons and noise_multipliers",
    ),
    (
        GAUSSIAN | {"noise_multipliers": -1},
        "noise_multipliers must be .* greater than 0, found -1; give standard",
    ),
    (
        GAUSSIAN | {"noise_multipliers": [1, 2]},
        "one multiplier or .*, found 2 for 3 releases; give 3",
    ),
    (TOO_WIDE, r"must be at most 2\*\*57, found 1.58527e\+17; reduce"),
    (GAUSSIAN | {"rng": np.random.default_rng(0)}, "takes no generator, found rng"),
]


@pytest.mark.parametrize(("arguments", "message"), ERRORS)
def test_each_wrong_argument_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        tr.release_counts(**({"series": [3, 4, 5], "epsilons": 1.0, "sensitivity": 1} | arguments))


def release(counts, epsilons=BUDGETS, sensitivity=1):
    return tr.release_counts(
        counts, epsilons, sensitivity, "numpy", rng=np.random.default_rng(2017)
    )


@pytest.mark.parametrize("shape", [(3,), (3, 1), (3, 50)])
@pytest.mark.parametrize("kind", [np.uint8, np.int32, bool, float])
def test_noisy_counts_keep_shape_and_type_and_do_not_overflow(shape, kind):
    series, whole = np.ones(shape, dtype=kind), np.issubdtype(kind, np.integer)
    for mechanism, level in (
        ("opendp", {"epsilons": 1e-3}),
        ("opendp-gaussian", {"noise_multipliers": 1e3}),
    ):
        noisy = tr.release_counts(series, sensitivity=2, mechanism=mechanism, **level)
        assert (noisy.shape, noisy.dtype) == (shape, np.int64 if whole else np.float64)
        assert np.array_equal(series, np.ones(shape))
        assert np.abs(noisy).max() > 256 or shape != (3, 50)
    assert (release(series).shape, release(series).dtype) == (shape, np.float64)


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
    # one budget for all time points
    assert np.array_equal(release(counts, 0.5), release(counts, [0.5] * 3))
    with pytest.warns(UserWarning, match="NumPy's noise is for experiments"):
        unseeded = [tr.release_counts(counts, BUDGETS, 1, mechanism="numpy") for _ in range(2)]
    assert not np.any(unseeded[0] == unseeded[1])


# also beyond 32 bits
@pytest.mark.parametrize(("kind", "count"), [(float, 9), (np.uint64, 2**33), (int, -(2**62))])
def test_opendp_noise_has_the_right_size(kind, count):
    counts = np.full((3, 12_000), count, dtype=kind)
    noise = tr.release_counts(counts, BUDGETS, sensitivity=2) - counts.astype(
        float if kind is float else np.int64
    )
    for row, epsilon in zip(noise, BUDGETS, strict=True):
        law = stats.laplace(scale=2 / epsilon) if kind is float else stats.dlaplace(epsilon / 2)
        size = 2 / epsilon if kind is float else 1 / np.sinh(epsilon / 2)
        # The standard errors of 12,000 draws are 0.9% to 1.2% for the mean of |X|, and 2.1% for the
        # variance.
        assert np.abs(row).mean() == pytest.approx(size, rel=0.06)
        assert row.var() == pytest.approx(law.var(), rel=0.1)
        assert abs(row.mean()) < 6 * np.sqrt(law.var() / row.size)


MULTIPLIERS = [0.3, 2.0, 1e4]
#: Of tests of noise that is new in each run. A scale that is off by a tenth has about 1e-7.
LEVEL = 1e-6


@pytest.mark.parametrize(
    ("kind", "count"), [(float, 9), (np.uint64, 2**63 - 2**21), (int, 2**21 - 2**63)]
)
def test_gaussian_noise_is_normal_and_of_whole_counts_rounded(kind, count):
    """Also near the ends of 64 bits, which draws of these scales do not reach."""
    counts = np.full((3, 12_000), count, dtype=kind)
    options = {"mechanism": "opendp-gaussian", "noise_multipliers": MULTIPLIERS}
    noisy = tr.release_counts(counts, sensitivity=2**0.5, **options)
    for row, scale in zip(
        noisy - counts.astype(noisy.dtype), 2**0.5 * np.array(MULTIPLIERS), strict=True
    ):
        spread = scale if kind is float else np.hypot(scale, 12**-0.5)
        if kind is float:
            assert stats.kstest(row, stats.norm(scale=scale).cdf).pvalue > LEVEL
        elif scale < 10:
            law = rounded(scale)
            spread = np.sqrt(law @ np.arange(-REACH, REACH + 1) ** 2)
            drawn, often = np.bincount(row + REACH, minlength=law.size), row.size * law > 5
            expected = law[often] / law[often].sum() * drawn[often].sum()
            assert stats.chisquare(drawn[often], expected).pvalue > LEVEL
        assert abs(row.mean()) < 6 * spread / np.sqrt(row.size)
        assert row.std() == pytest.approx(spread, rel=0.04)  # its standard error is 0.7% to 0.9%


REACH = 40


def rounded(scale):
    """The law of normal noise, rounded, on -REACH..REACH."""
    upper = stats.norm.sf(np.arange(-0.5, REACH + 1) / scale)
    right = upper[:-1] - upper[1:]
    return np.concatenate((right[:0:-1], right))


@pytest.mark.parametrize("scale", [0.5, 1.0, 4.0])
def test_rounded_gaussian_noise_keeps_the_privacy_of_the_continuous_one_and_discrete_noise_does_not(
    scale,
):
    epsilons = np.linspace(0, 4, 201)
    low, high = (stats.norm.sf(epsilons * scale + sign * 0.5 / scale) for sign in (-1, 1))
    continuous = low - np.exp(epsilons) * high
    p, q = np.append(rounded(scale), 0.0), np.append(0.0, rounded(scale))
    kept = np.maximum(p - np.exp(epsilons)[:, None] * q, 0.0).sum(axis=1)
    assert (kept <= continuous * (1 + 1e-9) + 1e-15).all()
    one = pld.from_discrete_gaussian_mechanism(scale, value_discretization_interval=1e-3)
    assert (np.array(one.get_delta_for_epsilon(epsilons.tolist())) > 1.05 * continuous).any()


@pytest.mark.parametrize("kind", [int, float])
@pytest.mark.parametrize("sensitivity", [1, 2, 3])
def test_opendp_privacy_map_is_within_each_budget(kind, sensitivity, monkeypatch):
    """The map is asked again here: the scale sensitivity/epsilon, rounded, may give slightly
    more."""
    made = []

    def recorded(make, *given):
        made.append((make(*given), given[2]))
        return made[-1][0]

    for name in ("make_laplace", "make_gaussian"):
        monkeypatch.setattr(measurements, name, partial(recorded, getattr(measurements, name)))
    for budget in (10 ** np.random.default_rng(5).uniform(-9, 2, 60)).tolist():
        tr.release_counts([kind(3)], budget, sensitivity, allow_large=True)
        assert budget * (1 - 1e-12) < made[-1][0].map(kind(sensitivity)) <= budget
        tr.release_counts(
            [kind(3)], None, sensitivity**0.5, "opendp-gaussian", noise_multipliers=budget
        )
        measurement, scale = made[-1]
        # whole counts take noise on a finer grid
        finer = 2.0 ** round(np.log2(scale / budget / sensitivity**0.5))
        assert (kind is int) == (finer > 1)
        rho = measurement.map(finer * sensitivity**0.5)
        assert (1 - 1e-12) * 0.5 / budget**2 < rho <= 0.5 / budget**2


@pytest.mark.parametrize("sensitivity", [1.0, 2.0**50])
def test_gaussian_noise_of_floats_or_whole_counts_is_as_wide_as_any_sensitivity(sensitivity):
    options = {"mechanism": "opendp-gaussian", "noise_multipliers": 8.0}
    for counts in (np.zeros(400), np.zeros(400, dtype=int)):
        noisy = tr.release_counts(counts, sensitivity=sensitivity, **options)
        spread = np.sqrt(np.mean(noisy.astype(float) ** 2)) / (8.0 * sensitivity)
        assert 0.7 < spread < 1.3  # eight standard errors


def test_whole_counts_stay_at_the_ends_of_64_bits():
    ends = np.array([np.iinfo(np.int64).min, np.iinfo(np.int64).max])
    gaussian = (
        {"noise_multipliers": scale, "mechanism": "opendp-gaussian"} for scale in (100, 2.0**57)
    )
    for level in ({"epsilons": 0.01}, *gaussian):
        noisy = tr.release_counts(np.repeat(ends[None], 100, axis=0), sensitivity=1, **level)
        assert (np.sign(noisy) == [-1, 1]).all()
        assert (noisy == ends).any(axis=0).all()


@pytest.mark.parametrize(
    "counts",
    [
        sparse.csr_array([[2**60 + 1, 7]]),
        np.array([2**60 + 1, 7], object),
        [2**60 + 1, 7],
        [np.uint64(7)],
    ],
)
def test_whole_counts_of_any_type_stay_whole(counts):
    noisy = tr.release_counts(counts, 100.0, 1, allow_large=True)  # noise of scale 0.01
    assert noisy.dtype == np.int64
    assert (
        noisy.tolist()
        == (counts.toarray() if sparse.issparse(counts) else np.array(counts)).tolist()
    )


def test_labels_are_kept_and_each_count_has_the_noise_of_its_own_budget():
    times = pd.date_range("2024-05-01", periods=6, freq="1h", name="hour")
    frame = pd.DataFrame({"home": range(6), "work": range(10, 16)}, times)
    budgets = [1e-3, 1e3, 1e-3, 1e3, 1e-3, 1e3]
    for counts in (frame, frame["home"], frame["home"].astype(float)):
        noisy = tr.release_counts(counts, budgets, 1, allow_large=True)
        assert type(noisy) is type(counts)
        assert noisy.index.equals(times)
        if counts is frame:
            assert noisy.columns.equals(frame.columns)
        else:
            assert (noisy.name, noisy.dtype) == ("home", counts.dtype)
        assert np.abs(noisy - counts)[1::2].to_numpy().max() < 1
        assert np.abs(noisy - counts)[::2].to_numpy().max() > 1
    with pytest.warns(UserWarning, match="NumPy's noise"):
        assert tr.release_counts(frame, 0.1, 1, "numpy").index.equals(times)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.999])
def test_the_width_of_a_band_is_a_quantile_of_the_noise(level):
    """Of discrete Laplace noise P(|N| > k) = 2 q^(k + 1) / (1 + q) with q = exp(-1 / scale)."""
    budgets = np.array([0.01, 0.3, 2.0])
    scales = 3.0 / budgets
    width = noise_width(budgets, 3.0, gaussian=False, whole=False, probability=level)
    assert np.exp(-width / scales) == pytest.approx(1.0 - level)
    whole = noise_width(budgets, 3.0, gaussian=False, whole=True, probability=level)
    q = np.exp(-1.0 / scales)
    assert (2.0 * q ** (whole + 1.0) / (1.0 + q) <= 1.0 - level).all()
    assert (whole == np.ceil(width)).all()
    multipliers = np.array([0.5, 4.0])
    normal = noise_width(multipliers, 3.0, gaussian=True, whole=False, probability=level)
    assert erf(normal / (3.0 * multipliers) / np.sqrt(2.0)) == pytest.approx(level)
