"""Distributions are tested at p > 1e-4 with fixed seeds: a wrong sampler fails by far, a right one
never."""

from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from tplrepro.dphmm import SensitivityHull, cross_polytope
from tplrepro.mechanisms import LaplaceNoise
from tplrepro.mechanisms.k_norm import KNormNoise, uniform_points

SIZE = 20_000
LEVEL = 1e-4


def _hull(d):
    return SensitivityHull(np.random.default_rng(0).normal(size=(6, d)) * [4, 1, 0.3][:d])


def _noise(K, epsilon):
    return KNormNoise(K, epsilon).sample(SIZE, rng=np.random.default_rng(5))


@pytest.mark.parametrize("d", [1, 2, 3])
def test_uniform_points_are_distributed_as_by_rejection(d):
    K, rng = _hull(d), np.random.default_rng(d)
    exact = uniform_points(K, SIZE, rng=rng)
    box = np.abs(K.vertices).max(axis=0)
    proposals = rng.uniform(-box, box, (SIZE * 20, d))
    rejection = proposals[K.contains(proposals)][:SIZE]
    assert len(rejection) == SIZE
    for direction in np.vstack([np.eye(d), rng.normal(size=(4, d))]):
        assert stats.ks_2samp(exact @ direction, rejection @ direction).pvalue > LEVEL
    # ||u||^d of a uniform point is uniform in [0, 1].
    assert stats.kstest(K.norm(exact) ** d, "uniform").pvalue > LEVEL
    assert exact.T @ exact / SIZE == pytest.approx(
        K.second_moment(), rel=0.1, abs=0.05 * K.second_moment().max()
    )


# Also a segment in the plane, and a body so thin that it is widened by a tenth, which the noise
# must follow.
@pytest.mark.parametrize(
    "K", [*map(_hull, (1, 2, 3)), *map(SensitivityHull, ([[3, -4]], [[1, 1], [1, 1 + 2e-12]]))]
)
def test_the_norm_of_the_noise_has_a_gamma_distribution_of_shape_d(K):
    d, epsilon = K.dimension, 0.7
    noise = _noise(K, epsilon)
    norms = K.norm(noise)
    assert stats.kstest(norms, stats.gamma(d, scale=1 / epsilon).cdf).pvalue > LEVEL
    # The mistake that is easily made, shape d + 1 for the norm, is far off.
    assert stats.kstest(norms, stats.gamma(d + 1, scale=1 / epsilon).cdf).pvalue < 1e-100
    uniform = uniform_points(K, SIZE, rng=np.random.default_rng(2))  # of the same directions
    first, second = ((points[:, 0] / K.norm(points)).round(9) for points in (noise, uniform))
    assert stats.ks_2samp(first, second).pvalue > LEVEL


@pytest.mark.parametrize("d", [1, 2, 3])
def test_on_a_cross_polytope_the_noise_is_laplace(d):
    noise = _noise(cross_polytope(d, radius=3.0), epsilon=0.5)
    assert all(
        stats.kstest(column, stats.laplace(scale=6.0).cdf).pvalue > LEVEL for column in noise.T
    )
    # Independent coordinates: the ranks are uncorrelated, and so are those of the absolute values.
    for first, second in combinations(noise.T, 2):
        assert stats.spearmanr(first, second).pvalue > LEVEL
        assert stats.spearmanr(np.abs(first), np.abs(second)).pvalue > LEVEL


def test_densities_and_tails_are_scipy_s_and_scales_broadcast():
    scales = np.array([[0.3], [1.0], [25.0]])
    noise, law = LaplaceNoise(scales), stats.laplace(scale=scales)
    x = np.concatenate([-np.geomspace(1e-6, 600, 40), [0], np.geomspace(1e-6, 600, 40)]) * scales
    assert noise.log_density(x) == pytest.approx(law.logpdf(x), rel=1e-13)
    assert noise.mean_square == pytest.approx(law.var())
    assert noise.log_ratio(x, 0.7) == pytest.approx(
        law.logpdf(x - 0.7) - law.logpdf(x), rel=1e-9, abs=1e-9
    )
    assert np.exp(noise.log_cdf(x)) == pytest.approx(law.cdf(x), rel=1e-12)
    assert noise.log_cdf(-x) == pytest.approx(np.log(law.sf(x)), rel=1e-12)
    assert LaplaceNoise(0.5).log_ratio(pd.Series([3, 1], ["b", "a"])).to_dict() == {
        "b": 2.0,
        "a": 2.0,
    }
    sample = noise.sample((3, SIZE), rng=np.random.default_rng(0))
    for row, scale in zip(sample, scales, strict=True):
        assert stats.kstest(row, stats.laplace(scale=scale).cdf).pvalue > LEVEL
        assert stats.kstest(row, stats.laplace(scale=1.1 * scale).cdf).pvalue < LEVEL
    # Draws do not depend on the scale; noise of scale 0 is a point mass.
    assert sample / scales == pytest.approx(
        LaplaceNoise(1.0).sample((3, SIZE), rng=np.random.default_rng(0))
    )
    assert LaplaceNoise(0.0).sample(2, rng=np.random.default_rng(0)).tolist() == [0, 0]
    assert LaplaceNoise(0.0).log_density([0.0, 1e-9]).tolist() == [0, -np.inf]
    for bad in (-1.0, [1.0, np.nan], np.inf, "1"):
        with pytest.raises(ValueError, match="scale"):
            LaplaceNoise(bad)


@pytest.mark.parametrize("epsilon", [0, -1, np.nan, np.inf])
def test_k_norm_noise_needs_a_finite_positive_epsilon(epsilon):
    """Infinity would release answers without noise; -1 would have the mean square of 1."""
    with pytest.raises(
        ValueError, match="epsilon must be a finite level in nats, greater than 0, found"
    ):
        KNormNoise(_hull(2), epsilon)


def test_noise_is_that_of_the_widened_body():
    body = SimpleNamespace(
        dimension=2, volume=3.0, slack=0.5, norm=lambda z: 2.0, second_moment=lambda: np.eye(2)
    )
    noise = KNormNoise(body, 0.8)
    volume = 3.0 * (1.5 / 0.8) ** 2
    assert noise.log_density([1.0, 0.0]) == pytest.approx(-1.6 - np.log(2.0 * volume), rel=1e-12)
    assert noise.mean_square == pytest.approx(1.5**2 * 3 * 4 * 2 / 0.8**2, rel=1e-12)
